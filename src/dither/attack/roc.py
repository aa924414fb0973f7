"""How well scores tell members from others: areas and true alarms, each with an interval.

Source. Area and its interval: DeLong, DeLong and Clarke-Pearson, Biometrics 1988. True alarms at a
given rate of false alarms: both rates are binomial, and an error in the threshold moves the first
by the slope of the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.privacy import Loss

__all__ = ["Rate", "Roc", "allowed_area"]

Floats = npt.NDArray[np.float64]


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
        over = _placed(self.members, self.others)
        under = 1.0 - _placed(self.others, self.members)
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
        half = NormalDist().inv_cdf((1.0 + self.confidence) / 2.0) * spread
        return Rate(value, max(0.0, value - half), min(1.0, value + half))


def allowed_area(loss: Loss, points: int = 60) -> float:
    """The largest area under a ROC curve that a loss allows, by the trapezoidal rule.

    The curve is concave, so this is a little low: by less than 0.001 with 60 points.

    Examples
    --------
    >>> from dither import privacy
    >>> round(allowed_area(privacy.gdp(1.0)), 2)
    0.76
    """
    if points < 2:
        raise ArgumentError("points must be at least 2")
    normal = NormalDist()
    inner = [normal.cdf(z) for z in np.linspace(-4.5, 4.5, points)]
    rates = np.array([0.0, *inner, 1.0])
    caught = np.array([float(loss.tpr(float(rate))) for rate in rates])
    return float(np.trapezoid(caught, rates))


def _placed(these: Floats, those: Floats) -> Floats:
    """Of each of these, the share of those below; ties count a half."""
    ordered = np.sort(those)
    below = np.searchsorted(ordered, these, side="left")
    upto = np.searchsorted(ordered, these, side="right")
    return np.asarray((below + upto) / (2.0 * len(those)))
