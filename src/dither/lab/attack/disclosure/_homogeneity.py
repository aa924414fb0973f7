"""Homogeneity: where all of a class gave one answer, each of them gave it.

The secret is a person's answer, and a blind guess says the commonest one; the attacker knows the
class and says the answer that is commonest there. Where there is no other, the attacker is certain.
Controls: every row a class of its own, and answers of strangers.

Source. Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam, "l-diversity", 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._verdict import Verdict
from dither.lab.attack.disclosure._classes import ClassCounts, commonest_answer, in_classes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Homogeneity", "homogeneity"]


@dataclass(frozen=True, slots=True, eq=False)
class Homogeneity(Printable):
    """The result of `homogeneity`.

    Attributes
    ----------
    classes : ClassCounts
        Not for release where the table is not.
    given_away : int
        People whose answer is certain, as all of their class share it.
    in_groups : int
        Of these, those who are not alone in their class.
    largest : int
        Rows of the largest class that shares one answer; 0 where none does.
    verdict : Verdict
    """

    classes: ClassCounts
    given_away: int
    in_groups: int
    largest: int
    verdict: Verdict

    @property
    def share(self) -> float:
        """Of all people, those given away."""
        return self.given_away / self.classes.people

    def summary(self) -> str:
        """What was found, and the verdict."""
        c = self.classes
        text = (
            f"Given away, as all of their class share one {c.sensitive}: {self.given_away:,} of "
            f"{count_text(c.people, 'person', 'people')}. Not alone in that class: "
            f"{self.in_groups:,}; the largest such class has {self.largest:,}."
        )
        return f"{paragraph([text])}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw classes by size and by how much of them gave the same answer.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_classes

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
    confidence = check_confidence(confidence)
    found = in_classes(table, quasi, sensitive, name)
    generator = SimulatedWorld.of(seed)
    certain = (found.counts > 0).sum(axis=1) == 1
    sizes = found.sizes
    given_away = int(sizes[certain].sum())
    alone = int((sizes == 1).sum())
    guesses = found.counts.argmax(axis=1)[found.of]
    return Homogeneity(
        found,
        given_away,
        given_away - alone,
        int(sizes[certain].max(initial=0)),
        # The bare truth, every row a class of its own, gives each answer away.
        commonest_answer(found, "", "the class", guesses, found.answers, generator, confidence),
    )
