"""Classes of a release as an attacker sees them: who looks like whom, and what they answered.

What `homogeneity`, `skewness` and `background` share: the table of counts, class by sensitive
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.lab.attack.tables import Ints, codes, columns, grouped, opened

__all__ = ["Classes", "hidden", "in_classes"]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
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
    sensitive: str | None,
    name: str | None,
) -> Classes:
    """The classes of a release.

    Parameters
    ----------
    table : frame, or a release of `dither.lab.anonymize`
        What was published: rows with equal values of ``quasi`` are a class.
    quasi : sequence of str, optional
        By default those that the release names.
    sensitive : str, optional
        By default the one that the release names.
    name : str, optional
        What to call the release.

    Raises
    ------
    ArgumentError
        For unknown columns, more than one sensitive column, or one that is also known.
    """
    frame = opened(table, "table")
    known = columns(quasi, "quasi", frame, table)
    wanted = columns(sensitive, "sensitive", frame, table)
    if len(wanted) != 1:
        raise ArgumentError("sensitive must name one column: attack one after the other")
    if wanted[0] in known:
        raise ArgumentError("sensitive must not be in quasi: who knows it needs no attack")
    of = grouped(codes(frame[c])[0] for c in known)
    answers, values = codes(frame[wanted[0]])
    width = len(values)
    if len(of) and (int(of.max()) + 1) * width > 50_000_000:
        raise ArgumentError(
            "sensitive has too many values for a table of classes by values: round it first"
        )
    counts = np.bincount(of * width + answers, minlength=(int(of.max()) + 1) * width)
    k = getattr(table, "k", None)
    said = f"a {k}-anonymous release" if isinstance(k, int) else "the released rows"
    return Classes(
        of,
        answers,
        values,
        counts.reshape(-1, width).astype(np.int64),
        tuple(known),
        wanted[0],
        name or said,
    )


def hidden(values: Sequence[Any], asked: Any, argument: str) -> int:
    """The number of a sensitive value.

    Raises
    ------
    ArgumentError
        Where no row has it. Its message tells no value of the data.
    """
    for i, value in enumerate(values):
        if value == asked and isinstance(value, bool) == isinstance(asked, bool):
            return i
    raise ArgumentError(f"{argument} must be a value that the sensitive column has")
