"""How well scores separate members from others, and whether that is more than a loss allows.

Shown are areas and true alarms, each with an interval. What refutes a loss is tested at a stated
level:

*A statistic.* Plays are independent, each with one coin, and scores are a fixed function of a
release. Three things that are shown are tested at once, with the level shared among them:

- guesses that are right: each is with probability at most 1 - R, where R is the least Bayes risk,
  so they are dominated by a binomial;
- the area A under the curve, of n members and m others: a mean over pairs whose expectation is at
  most the area under ``loss.tpr``. It is an average of averages of min(n, m) independent scores in
  [0, 1], so Pr[A >= x] <= exp(-min(n, m)·KL(x, area)) (Hoeffding, 1963, section 5);
- the curve: at thresholds that shadows fixed in advance, Clopper and Pearson's bounds of true and
  false alarms must leave ``true <= loss.tpr(false)``.

*Models.* A model has a coin for each record. Models are attacked in folds, each with shadows of the
other folds, so given those the models of a fold are one run with many canaries, of which
`chance_of_guesses` gives how many guesses may be right, whatever depends on what. Guesses by
the attack's own threshold are tested, and those about the highest and lowest scores alone.

Source. Area and its interval: DeLong, DeLong and Clarke-Pearson, Biometrics 1988. True alarms at a
given rate of false alarms: both rates are binomial, and an error in the threshold moves the first
by the slope of the curve. Tests: Hoeffding, 1963; Steinke, Nasr and Jagielski, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._format import at_least, at_most, count_text, percent
from dither._stats import (
    EPS,
    binomial_tail_above,
    hoeffding_tail,
    lower_bound,
    two_sided,
    upper_bound,
)
from dither.errors import ArgumentError
from dither.lab.attack._verdict import most_right
from dither.lab.audit import chance_of_guesses, guess_by_score
from dither.privacy import Loss

__all__ = [
    "Allowed",
    "Floats",
    "Mask",
    "Played",
    "Rate",
    "Roc",
    "certified",
    "placed",
    "refuted_by_models",
    "refuted_by_plays",
]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Played = tuple[Floats, Mask, Mask]
"""Scores, who is a member, and who is guessed to be one."""

_LINES, _STEPS = 101, 4_000
_STEEPEST = 30.0
"""Steeper lines matter below e^-30 alone."""

_SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of all records, those with the most telling scores that are guessed."""

_DELTAS = tuple(10.0**-k for k in range(2, 15, 2))


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{at_least(self.low, 4)}, {at_most(self.high, 4)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Scores of members and of others; a higher score says "member".

    Attributes
    ----------
    members, others : array of float64
    confidence : float
        Of the intervals.
    """

    members: Floats = field(repr=False)
    others: Floats = field(repr=False)
    confidence: float = 0.99

    def auc(self) -> Rate:
        """Pr[a member scores higher than another], where ties count a half."""
        n, m = len(self.members), len(self.others)
        over = placed(self.members, self.others)
        under = 1.0 - placed(self.others, self.members)
        value = float(over.mean())
        spread = math.sqrt(float(over.var(ddof=1)) / n + float(under.var(ddof=1)) / m)
        return self._around(value, spread)

    def tpr(self, fpr: float) -> Rate:
        """True alarms where at most this share of others is accused, ties never."""
        caught = self._caught(fpr)
        n, m = len(self.members), len(self.others)
        wide = min(1.0, max(2.0 * fpr, 5.0 / m))
        slope = max(0.0, (self._caught(wide) - self._caught(fpr / 2.0)) / (wide - fpr / 2.0))
        spread = math.sqrt(caught * (1.0 - caught) / n + slope**2 * fpr * (1.0 - fpr) / m)
        return self._around(caught, max(spread, 1.0 / n))

    def curve(self, points: int = 400) -> tuple[Floats, Floats]:
        """False and true alarms, for a picture: the rates on a logarithmic grid."""
        rates = np.geomspace(max(1e-5, 1.0 / len(self.others)), 1.0, points)
        return rates, np.array([self._caught(float(rate)) for rate in rates])

    def _caught(self, fpr: float) -> float:
        # A share of a hundredth of so many may come out just below a whole number.
        allowed = math.floor(fpr * len(self.others) + 1e-9)
        if allowed >= len(self.others):
            return 1.0
        # Nobody at the level of the first who must not be accused is accused.
        level = np.sort(self.others)[len(self.others) - allowed - 1]
        return float((self.members > level).mean())

    def _around(self, value: float, spread: float) -> Rate:
        half = two_sided(self.confidence) * spread
        return Rate(value, max(0.0, value - half), min(1.0, value + half))


@dataclass(frozen=True, slots=True, eq=False)
class Allowed:
    """The curve that a loss allows, from above: no attack's true ROC curve passes it.

    Under (epsilon, delta), true alarms are at most ``e^epsilon·false + delta`` and at most
    ``1 - e^-epsilon·(1 - false - delta)``. The least of these lines, over a hundred epsilons.

    Attributes
    ----------
    slopes, heights : array of float64
        Of the lines.
    """

    slopes: Floats = field(repr=False)
    heights: Floats = field(repr=False)

    @staticmethod
    def of(loss: Loss) -> Allowed:
        """Of a loss.

        Examples
        --------
        >>> from dither import privacy
        >>> round(float(Allowed.of(privacy.pure(1.0)).tpr(0.1)), 4)
        0.2718
        """
        return _lines_of(loss)

    def tpr(self, fpr: float | Floats) -> Floats:
        """The most true alarms at rates of false ones."""
        at = np.asarray(fpr, dtype=np.float64)
        lines = self.slopes[:, None] * at.reshape(1, -1) + self.heights[:, None]
        found: Floats = np.minimum(1.0, lines.min(axis=0)).reshape(at.shape)
        return found

    @property
    def area(self) -> float:
        """The most area under the curve, rounded up by less than 0.001."""
        rates = np.linspace(0.0, 1.0, _STEPS + 1)
        # The curve rises, so its right ends lie above it.
        return float(self.tpr(rates[1:]).mean())


@lru_cache(maxsize=64)
def _lines_of(loss: Loss) -> Allowed:
    last = 0.0
    for delta in (0.0, 1e-9, 1e-6, 1e-3, 0.1):
        try:
            last = float(loss.epsilon(delta))
            break
        except ArgumentError:
            continue
    epsilons = np.linspace(0.0, min(last, _STEEPEST), _LINES)
    deltas = np.array([float(loss.delta(float(e)).upper) for e in epsilons])
    rises = np.exp(epsilons)
    # Rounded up by more than the lines lose in doubles: where a line is at most 1, its exponential
    # errs by EPS twice and by what epsilon differs from the number that it prints, and some five
    # operations by half of EPS.
    heights = np.concatenate([deltas, 1.0 - (1.0 - deltas) / rises]) + EPS * (6 + _STEEPEST)
    return Allowed(np.concatenate([rises, 1.0 / rises]), heights)


def placed(these: Floats, those: Floats) -> Floats:
    """Of each of these, the share of those below; ties count a half."""
    ordered = np.sort(those)
    below = np.searchsorted(ordered, these, side="left")
    upto = np.searchsorted(ordered, these, side="right")
    return np.asarray((below + upto) / (2.0 * len(those)))


def refuted_by_plays(
    played: Played, cuts: Floats, loss: Loss, allowed: Allowed, level: float
) -> str:
    """What refutes a loss in plays of a statistic, as a sentence; empty where nothing does.

    ``cuts`` are thresholds that were fixed without these plays; a true loss is refuted with
    probability at most ``level``.
    """
    scores, member, guesses = played
    bound = most_right(loss)
    if binomial_tail_above(len(member), int((guesses == member).sum()), bound) <= level / 4.0:
        return "No release of the stated loss could be guessed so well."
    inside, outside = scores[member], scores[~member]
    least = min(len(inside), len(outside))
    if least < 2:
        return ""
    area = Roc(inside, outside).auc().value
    if area > bound and hoeffding_tail(area, allowed.area, least) <= level / 4.0:
        return "No release of the stated loss has a curve with so large an area."
    # A quarter of the level for guesses, one for the area, and one for either bound of the curve.
    each = level / (4.0 * max(1, len(cuts)))
    for cut in cuts.tolist():
        p = lower_bound(int((inside >= cut).sum()), len(inside), each)
        q = upper_bound(int((outside >= cut).sum()), len(outside), each)
        if p > (most := float(allowed.tpr(q))):
            return (
                f"The curve is above what the loss allows: of members at least "
                f"{percent(p, 2, math.floor)} are found where of others at most "
                f"{percent(q, 2, math.ceil)} are accused, and {percent(most, 2, math.ceil)} are "
                "allowed."
            )
    return ""


def certified(roc: Roc, cuts: Floats, level: float, delta: float = 0.0) -> float:
    """The largest epsilon that independent plays prove to be lost at a delta.

    ``cuts`` are thresholds that were fixed without these plays. With p and q the true rates of
    alarms above one, a loss of (epsilon, delta) has p <= e^epsilon·q + delta, and the same of
    those who are not accused: 1 - q <= e^epsilon·(1 - p) + delta. In go Clopper and Pearson's
    bounds of p and q, at a share of the level.

    Examples
    --------
    >>> plays = Roc(np.ones(1000), np.zeros(1000))
    >>> round(certified(plays, np.array([0.5]), 0.01), 2)
    5.24
    """
    found, each = 0.0, level / (2.0 * max(1, len(cuts)))
    inside, outside = roc.members, roc.others
    for cut in cuts.tolist():
        p = lower_bound(int((inside >= cut).sum()), len(inside), each)
        q = upper_bound(int((outside >= cut).sum()), len(outside), each)
        for more, less in ((p, q), (1.0 - q, 1.0 - p)):
            if more > delta and less > 0.0:
                found = max(found, math.log((more - delta) / less))
    return found


def refuted_by_models(folds: Sequence[Played], loss: Loss, level: float) -> str:
    """What refutes a loss in attacks on models, as a sentence; empty where nothing does.

    Each fold holds arrays of shape (models, records), of models whose shadows are of other folds.
    The loss is that of one model, for adding or removing one record; a true one is refuted with
    probability at most ``level``.
    """
    claims = list(_claims(loss))
    bound = most_right(loss)
    each = level / (len(folds) * (2 + len(_SHARES)))
    for scores, member, guesses in folds:
        right = float((guesses == member).mean())
        if hoeffding_tail(right, bound, len(member)) <= each:
            return "No release of the stated loss could be guessed so well."
        coins = np.where(member.ravel(), 1, -1)
        guessed = [np.where(guesses.ravel(), 1, -1)]
        for share in _SHARES:
            most = int(share * coins.size / 2.0)
            guessed.append(guess_by_score(scores.ravel(), most, most))
        for one in guessed:
            r, v = int(np.count_nonzero(one)), int(np.count_nonzero(one == coins))
            # Each bounds the same chance, so the least of them does.
            if any(chance_of_guesses(coins.size, r, v, e, d) <= each for e, d in claims):
                return (
                    f"{v:,} of {r:,} guesses about {coins.size:,} coins of "
                    f"{count_text(len(member), 'run')} were right: nothing of the stated loss "
                    "could be guessed so well."
                )
    return ""


def _claims(loss: Loss) -> Iterator[tuple[float, float]]:
    """Pairs of epsilon and delta that the loss promises: the pure one alone, where there is one."""
    for delta in (0.0, *_DELTAS):
        try:
            epsilon = float(loss.epsilon(delta))
        except ArgumentError:
            continue
        yield epsilon, delta
        if delta == 0.0:
            return
