"""Homogeneity: where all of a class gave one answer, each of them gave it.

The game: the secret is a person's answer, and a blind guess says the commonest one. The attacker
knows the person's class and says the answer that is commonest there; where there is no other, the
attacker is certain. k-anonymity counts rows and not answers, so it bounds nothing here.

What this measures is what a release tells about people *in* it. Some of that is true of everybody
like them, and would be learned without them; certainty is not.

Controls: the same attack where every row is a class of its own, and on answers of strangers.

Source. Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", 2007.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.lab.attack.classes import Classes, in_classes
from dither.lab.attack.tables import Ints
from dither.lab.attack.verdict import Score, Verdict, judge
from dither.lab.attack.worlds import SimulatedWorld, sure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Homogeneity", "homogeneity"]


@dataclass(frozen=True, slots=True, eq=False)
class Homogeneity:
    """The result of `homogeneity`.

    Attributes
    ----------
    classes : Classes
        Not for release where the table is not.
    given_away : int
        People whose answer is certain, as all of their class share it.
    in_groups : int
        Of these, those who are not alone in their class.
    largest : int
        Rows of the largest class that shares one answer; 0 where none does.
    verdict : Verdict
    """

    classes: Classes
    given_away: int
    in_groups: int
    largest: int
    verdict: Verdict

    @property
    def share(self) -> float:
        """Of all people, those given away."""
        return self.given_away / self.classes.people

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """What was found, and the verdict."""
        c = self.classes
        text = (
            f"{self.given_away:,} of {c.people:,} people are given away: all of their class share "
            f"one {c.sensitive}. {self.in_groups:,} of them are not alone in their class; the "
            f"largest such class has {self.largest:,}."
        )
        return "\n".join([*textwrap.wrap(text, 88), self.verdict.summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw classes by size and by how much of them gave the same answer.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.attack_tables import draw_classes

        return draw_classes(self.classes, self.verdict, path)


def homogeneity(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Homogeneity:
    """Whose answer is certain, because all of their class gave it.

    Parameters
    ----------
    table : frame, or a release of `dither.lab.anonymize`
        What was published: a row a person.
    quasi : sequence of str
        What the attacker knows of people; by default those that the release names.
    sensitive : str
        What the attacker wants; by default the one that the release names.
    name : str, optional
        What the release is called in the verdict.
    seed : int or numpy.random.Generator
        Of the null control.
    confidence : float
        In (0, 1).

    Returns
    -------
    Homogeneity

    Raises
    ------
    ArgumentError
        For unknown columns, or more than one sensitive column.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": ["130**"] * 3 + ["148**"] * 3, "illness": [*"ccc", *"cfh"]})
    >>> found = homogeneity(wards, ["zip"], "illness")
    >>> found.given_away, found.largest
    (3, 3)
    """
    confidence = sure(confidence)
    found = in_classes(table, quasi, sensitive, name)
    generator = SimulatedWorld.of(seed)
    certain = (found.counts > 0).sum(axis=1) == 1
    sizes = found.sizes
    given_away = int(sizes[certain].sum())
    alone = int((sizes == 1).sum())
    guesses = _commonest(found.counts, found.of)
    return Homogeneity(
        found,
        given_away,
        given_away - alone,
        int(sizes[certain].max(initial=0)),
        _verdict(found, guesses, generator, confidence),
    )


def _commonest(counts: Ints, of: Ints) -> Ints:
    """What the attacker says of each person."""
    guesses: Ints = counts.argmax(axis=1)[of]
    return guesses


def _verdict(
    found: Classes, guesses: Ints, generator: np.random.Generator, confidence: float
) -> Verdict:
    right = Score((int((guesses == found.answers).sum()),), (found.people,))
    stranger = Score((int((guesses == generator.permutation(found.answers)).sum()),), right.targets)
    # The bare truth: every row a class of its own.
    each, rows = (
        np.zeros((found.people, len(found.values)), dtype=np.int64),
        np.arange(found.people),
    )
    each[rows, found.answers] = 1
    bare = int((_commonest(each, rows) == found.answers).sum())
    return judge(
        game=f"what {found.sensitive} is, by class",
        release=found.name,
        attack="the commonest answer of the class",
        score=right,
        control=Score((bare,), right.targets),
        null=stranger,
        prior=found.prior,
        bound=1.0,
        pure=None,
        epsilon=None,
        confidence=confidence,
    )
