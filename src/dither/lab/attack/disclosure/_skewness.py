"""Skewness: how far a class moves what is believed of a person.

A class that is certain of nothing can still say much. The attacker starts from what is known of
everybody, the *prior* share of a value, and ends with the share in the person's class, the
*posterior*. Their ratio is what the release did to that person's odds, and it may be large while
every class has all values (l-diversity holds). The game: of two people, one who has the value and
one who does not, say which is which; a blind guess is right half of the time, and ranked by
posterior the success is the area under the ROC curve. Controls: the bare truth, and the classes of
strangers.

Source. Li, Li and Venkatasubramanian, "t-closeness", 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither._checks import confidence as check_confidence
from dither._format import Printable, count_text, percent
from dither.errors import ArgumentError
from dither.lab._simulation import SimulatedWorld
from dither.lab._verdicts import paragraph
from dither.lab.attack._roc import Floats, Mask, placed
from dither.lab.attack._verdict import Score, Verdict, judge
from dither.lab.attack.disclosure._classes import ClassCounts, in_classes, number_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Skewness", "skewness"]

DUELS = 20_000
"""Pairs of people that are ranked, to score."""


@dataclass(frozen=True, slots=True, eq=False)
class Skewness(Printable):
    """The result of `skewness`.

    Attributes
    ----------
    classes : ClassCounts
    prior : float
        The share of people who have the value.
    posterior : array of float64
        Of each person: the share in the class.
    gain : float
        The largest posterior over the prior.
    variation : float
        The largest distance of a class from everybody, as total variation over all values; the t
        of t-closeness for equal distances.
    auc : float
        The area under the ROC curve of the ranking, exactly.
    verdict : Verdict
    """

    classes: ClassCounts
    prior: float
    posterior: Floats = field(repr=False)
    gain: float
    variation: float
    auc: float
    verdict: Verdict

    def raised(self, factor: float) -> int:
        """People whose probability rose to ``factor`` times the prior or more."""
        return int((self.posterior >= factor * self.prior * (1.0 - 1e-12)).sum())

    def reaching(self, probability: float) -> int:
        """People whose probability is now this or more."""
        return int((self.posterior >= probability * (1.0 - 1e-12)).sum())

    def summary(self) -> str:
        """What was found, and the verdict."""
        text = (
            f"The prior is {percent(self.prior)}. It becomes {percent(self.posterior.max())} "
            f"for the worst class ({self.gain:.2f} times). It at least doubles for "
            f"{count_text(self.raised(2), 'person', 'people')} and reaches 90 % for "
            f"{self.reaching(0.9):,}. Farthest class from everybody: total variation "
            f"{self.variation:.3f}."
        )
        return f"{paragraph([text])}\n{self.verdict.summary()}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw how many people end at which probability, beside the prior.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._attack_tables import draw_skewness

        return draw_skewness(self, path)


def skewness(
    table: object,
    quasi: Sequence[str] | None = None,
    sensitive: str | None = None,
    *,
    value: Any,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Skewness:
    """How far a class moves what is believed of a person.

    Parameters
    ----------
    table, quasi, sensitive, name, seed, confidence
        As of `homogeneity`.
    value : object
        The answer that people would rather not have known.

    Raises
    ------
    ArgumentError
        For unknown columns, or a value that nobody or everybody has.

    Examples
    --------
    >>> import polars as pl
    >>> wards = pl.DataFrame({"zip": [1] * 4 + [2] * 4, "ill": [*"yyyn", *"nnny"]})
    >>> found = skewness(wards, ["zip"], "ill", value="y")
    >>> found.prior, found.gain, found.auc
    (0.5, 1.5, 0.75)
    """
    confidence = check_confidence(confidence)
    found = in_classes(table, quasi, sensitive, name)
    which = number_of(found.values, value, "value")
    if len(found.values) < 2:
        raise ArgumentError("value must be one that not everybody has: there is nothing to learn")
    generator = SimulatedWorld.of(seed)
    shares = found.counts / found.sizes[:, None]
    everybody = found.overall / found.people
    posterior = shares[found.of, which]
    has = found.answers == which
    auc = float(placed(posterior[has], posterior[~has]).mean())
    targets = (DUELS,)
    verdict = judge(
        game=f"which of two has this {found.sensitive}",
        release=found.name,
        attack="rank by the share in the class",
        score=Score((_ranked_pairs(posterior, has, generator),), targets),
        control=Score((_ranked_pairs(has.astype(np.float64), has, generator),), targets),
        null=Score((_ranked_pairs(posterior, has, generator, strangers=True),), targets),
        prior=0.5,
        predicted=auc,
        confidence=confidence,
    )
    return Skewness(
        found,
        float(everybody[which]),
        posterior,
        float(posterior.max() / everybody[which]),
        float(np.abs(shares - everybody).sum(axis=1).max() / 2.0),
        auc,
        verdict,
    )


def _ranked_pairs(
    score: Floats,
    has: Mask,
    generator: np.random.Generator,
    *,
    strangers: bool = False,
) -> int:
    """Of so many pairs, how many are ranked rightly; a tie is a coin.

    By strangers' scores no pair of them says anything: each is dealt anew for every duel.
    """
    first = generator.choice(score if strangers else score[has], DUELS)
    second = generator.choice(score if strangers else score[~has], DUELS)
    coin = generator.random(DUELS) < 0.5
    return int(np.where(first == second, coin, first > second).sum())
