"""How well scores tell members from others: areas and true alarms, each with an interval.

Source. Area and its interval: DeLong, DeLong and Clarke-Pearson, Biometrics 1988. True alarms at a
given rate of false alarms: both rates are binomial, and an error in the threshold moves the first
by the slope of the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.privacy import Loss

__all__ = ["Allowed", "Floats", "Mask", "Rate", "Roc", "placed"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LINES, _STEPS = 101, 4_000
_STEEPEST = 30.0
"""Steeper lines matter below e^-30 alone."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its interval.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


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
    # Rounded up by more than the lines lose in doubles.
    heights = np.concatenate([deltas, 1.0 - (1.0 - deltas) / rises]) + 1e-15
    return Allowed(np.concatenate([rises, 1.0 / rises]), heights)


def placed(these: Floats, those: Floats) -> Floats:
    """Of each of these, the share of those below; ties count a half."""
    ordered = np.sort(those)
    below = np.searchsorted(ordered, these, side="left")
    upto = np.searchsorted(ordered, these, side="right")
    return np.asarray((below + upto) / (2.0 * len(those)))
