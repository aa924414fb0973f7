"""Classes of a release, in which people hide, and guesses of what those in a class answered.

k-anonymity counts rows and not answers, so it bounds none of the attacks on classes: `homogeneity`,
`skewness` and `background`. What they measure is what a release reveals about people *in* it. Some
of that is true of everybody like them, and would be learned without them; certainty is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.lab._frames import columns_of, released, sorted_codes
from dither.lab._grouping import Ints, grouped
from dither.lab.attack._verdict import Score, Verdict, judge

__all__ = ["ClassCounts", "commonest_answer", "in_classes", "number_of"]


@dataclass(frozen=True, slots=True, eq=False)
class ClassCounts:
    """A release's rows by class and by sensitive value.

    Attributes
    ----------
    of, answers : array of int64, shape (people,)
        The class and the sensitive value of each row, as numbers.
    values : list
        The sensitive values.
    counts : array of int64, shape (classes, values)
    quasi : tuple of str
    sensitive : str
    name : str
        What the release is called.
    """

    of: Ints
    answers: Ints
    values: list[Any]
    counts: Ints
    quasi: tuple[str, ...]
    sensitive: str
    name: str

    @property
    def sizes(self) -> Ints:
        """Rows of each class."""
        found: Ints = self.counts.sum(axis=1)
        return found

    @property
    def overall(self) -> Ints:
        """Rows of each sensitive value."""
        found: Ints = self.counts.sum(axis=0)
        return found

    @property
    def people(self) -> int:
        """Rows."""
        return len(self.of)

    @property
    def prior(self) -> float:
        """How often the commonest answer is right for somebody of whom nothing is known."""
        return float(self.overall.max() / self.people)


def in_classes(
    table: object,
    quasi: Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    name: str | None,
) -> ClassCounts:
    """The classes of a release: rows with equal values of ``quasi``."""
    frame = released(table, "table")
    known = columns_of("quasi", quasi, frame, table)
    wanted = columns_of("sensitive", sensitive, frame, table)
    if len(wanted) != 1:
        raise ArgumentError("sensitive must name one column: attack one after the other")
    if wanted[0] in known:
        raise ArgumentError("sensitive must not be in quasi: who knows it needs no attack")
    of = grouped(sorted_codes(frame[c])[0] for c in known)
    answers, values = sorted_codes(frame[wanted[0]])
    width = len(values)
    if len(of) and (int(of.max()) + 1) * width > 50_000_000:
        raise ArgumentError(
            "sensitive has too many values for a table of classes by values: round it first"
        )
    counts = np.bincount(of * width + answers, minlength=(int(of.max()) + 1) * width)
    k = getattr(table, "k", None)
    said = f"a {k}-anonymous release" if isinstance(k, int) else "the released rows"
    return ClassCounts(
        of,
        answers,
        values,
        counts.reshape(-1, width).astype(np.int64),
        tuple(known),
        wanted[0],
        name or said,
    )


def number_of(values: Sequence[Any], asked: Any, argument: str) -> int:
    """The number of a sensitive value; the message where no row has it holds no data."""
    for i, value in enumerate(values):
        if value == asked and isinstance(value, bool) == isinstance(asked, bool):
            return i
    raise ArgumentError(f"{argument} must be a value that the sensitive column has")


def commonest_answer(
    found: ClassCounts,
    game: str,
    attack: str,
    guesses: Ints,
    bare: Ints,
    generator: np.random.Generator,
    confidence: float,
) -> Verdict:
    """The verdict on guesses of answers, and on those of the bare truth."""
    return judge(
        game=f"what {found.sensitive} is, by class{game}",
        release=found.name,
        attack=f"the commonest answer of {attack}",
        score=Score.of_guesses(guesses, found.answers),
        control=Score.of_guesses(bare, found.answers),
        null=Score.of_guesses(guesses, generator.permutation(found.answers)),
        prior=found.prior,
        confidence=confidence,
    )
