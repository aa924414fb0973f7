"""The mean of the reports' values, and an interval that holds however few reports decide it.

A normal interval trusts the spread that it sees. Where one report in hundreds is far from the
others, as at a large epsilon, a survey may see none of these: no spread, and an interval of no
width. So the normal interval is used only where its known error is small, and elsewhere one that
holds for any values of the people:

- *normal*. With z the quantile, K the largest kurtosis of a report over the points and alpha the
  chance to miss, the chance that a studentised mean of n numbers is off by more than z differs from
  alpha by at most, to the order 1/n,

      (2z·phi(z)/n)·(K(z⁴ + 2z² - 3)/18 + (z² + 3)/4)        [skewness² <= K, by Pearson]

  (Hall 1988). The interval is used where this is below alpha/8.

- *exact*. The reports of two kinds are coins. Clopper and Pearson's interval of the chance is that
  of the mean; for people with different values as well, as sums of unlike coins are less spread
  than those of alike ones (Hoeffding 1956).

- *bounded*. With psi(t) the largest over the points x of log E[exp(t(Y - x))], the mean of n
  reports is u or more above that of the people with chance at most exp(n(psi(t) - tu)) for every
  t > 0 (Chernoff). So u = (psi(t) + log(2/alpha)/n)/t, at the best t of a list, is exceeded with
  chance alpha/2; likewise below.

Source. Hall, "Theoretical comparison of bootstrap confidence intervals", Annals of Statistics 1988;
Clopper and Pearson, Biometrika 1934; Hoeffding, Annals of Mathematical Statistics 1956; Chernoff,
Annals of Mathematical Statistics 1952.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither._stats import EPS, clopper_pearson, two_sided
from dither.errors import ArgumentError
from dither.local._numbers.results import MeanEstimate

if TYPE_CHECKING:
    from dither.local._numbers.numeric import NumericChannel
    from dither.local._reports.aggregate import Aggregate

Array = npt.NDArray[np.float64]

_SDPM = (
    "The mean of SDPM's reports is biased towards the middle: a low value x counts p'x; "
    "estimate(method='likelihood').mean is the estimate to prefer."
)


METHODS = ("normal", "exact", "bounded")

_ALLOWED = 1 / 8
_TILTS = np.geomspace(1 / 8, 8.0, 24)
# No weight is then below e^-24 of the largest, so that a rounding of their sum drowns none.
_MOST_TILT = 24.0
_FLAT = 1e-9
"""Guesses of the best tilt take no smaller variance; any tilt proves an interval."""


def limits(
    channel: NumericChannel, positive: int, mean: float, error: float, n: int, confidence: float
) -> tuple[float, float, str]:
    """An interval of the mean of the people who reported, and how it was made: one of `METHODS`.

    `mean` and `error` are of the reports' values, whose expectation is the value; `positive` says,
    of a channel with two reports, how many were the upper one. The ends are within the public
    bounds, unless the interval is normal.
    """
    if n >= _enough(channel, confidence):
        half = two_sided(confidence) * error
        return mean - half, mean + half, "normal"
    low, high = float(channel.interval.low), float(channel.interval.high)
    if channel.outputs == 2:
        first, last = channel.positions
        chances = clopper_pearson(positive, n, confidence)
        lower, upper = (first + (last - first) * chance for chance in chances)
        method = "exact"
    else:
        below, above = _chernoff(channel, math.log(2 / (1 - confidence)) / n)
        lower, upper = mean - above, mean + below
        method = "bounded"
    if upper < low or lower > high:
        # No people's reports are like these but by a chance that the interval may miss.
        return low, high, method
    return max(lower, low), min(upper, high), method


def least_error(channel: NumericChannel, n: int) -> float:
    """The least standard error that the mean of n reports can have, whatever the values are."""
    return math.sqrt(max(0.0, float(channel.moments()[1].min())) / n)


@lru_cache(maxsize=64)
def _enough(channel: NumericChannel, confidence: float) -> float:
    """How many reports make the normal interval's error small; infinite where none do."""
    alpha, z = 1 - confidence, two_sided(confidence)
    positions = _scaled(channel)
    powers = [channel.law.back(positions**k) for k in (1, 2, 3, 4)]
    first, second, third, fourth = powers
    # Differences of moments, each of which is off; the central ones' factors are at most 14 in all.
    off = 14 * _rounding(channel) * float(np.maximum(1.0, positions**4).sum())
    variance = second - first**2 - off
    if float(variance.min()) <= 0:
        return math.inf
    central = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4 + off
    kurtosis = float((central / variance**2).max())
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    terms = kurtosis * (z**4 + 2 * z**2 - 3) / 18 + (z**2 + 3) / 4
    return 2 * z * density * max(terms, 1.0) / (alpha * _ALLOWED)


@lru_cache(maxsize=64)
def _chernoff(channel: NumericChannel, rate: float) -> tuple[float, float]:
    """How far the mean of the reports may be below and above that of the people."""
    values, size = _scaled(channel), _size(channel)
    points = _points(channel)
    widest = channel.law.back(values**2) - channel.law.back(values) ** 2
    # Of a normal law the best tilt is known; that of a skew one is not far.
    normal = math.sqrt(2 * rate / max(float(widest.max()), _FLAT))
    tilts = np.minimum(_TILTS * normal, _MOST_TILT / np.ptp(values))
    found = []
    for sign in (-1.0, 1.0):
        best = math.inf
        for tilt in (sign * np.unique(tilts)).tolist():
            top = float((tilt * values).max())
            weights = np.exp(tilt * values - top)
            grown = channel.law.back(weights) + _rounding(channel) * float(weights.sum())
            # Three numbers of up to 24, or logarithms of such, with a few roundings each.
            psi = float((np.log(grown) + top - tilt * points).max()) + 256 * EPS
            best = min(best, (psi + rate) / abs(tilt))
        found.append(best * size)
    return found[0], found[1]


@lru_cache(maxsize=64)
def _rounding(channel: NumericChannel) -> float:
    """What `law.back` of weights of at least 0 may be off by, in parts of their sum.

    It is made of running sums of at most all outputs, each of which rounds by half of EPS of the
    whole, times chances of at most the likeliest report's, and differences of two of them. Chances,
    and weights whose exponents are below 64, err by less than 256·EPS of themselves.
    """
    points = (0, channel.interval.steps // 2, channel.interval.steps)
    likeliest = max(float(channel.law.row(x).max()) for x in points)
    return EPS * (channel.outputs + 256) * likeliest


def _size(channel: NumericChannel) -> float:
    return float(channel.interval.high - channel.interval.low) / 2


def _scaled(channel: NumericChannel) -> Array:
    """Values of the reports where the interval is [-1, 1]."""
    middle = float(channel.interval.low + channel.interval.high) / 2
    return np.asarray((channel.positions - middle) / _size(channel))


def _points(channel: NumericChannel) -> Array:
    """The points where the interval is [-1, 1]."""
    return 2 * np.arange(channel.interval.steps + 1) / channel.interval.steps - 1


def mean(counted: Aggregate, channel: NumericChannel, confidence: float) -> MeanEstimate:
    """Average the values of the reports of a channel for numbers.

    Raises
    ------
    ArgumentError
        There are fewer than two reports.
    """
    n = counted.n
    if n < 2:
        raise ArgumentError("there must be at least two reports to estimate a mean and its error")
    positions, shares = channel.positions, counted.counts / n
    middle = float(channel.interval.low + channel.interval.high) / 2
    found = float(shares @ (positions - middle))
    spread = float(shares @ (positions - middle - found) ** 2) * n / (n - 1)
    error = max(math.sqrt(spread / n), least_error(channel, n))
    ends: tuple[float, float, str] | None = None
    if channel.unbiased:
        upper_ones = int(counted.counts[-1])
        ends = limits(channel, upper_ones, middle + found, error, n, confidence)
    return MeanEstimate(
        kind=channel.kind,
        interval_of_values=channel.interval,
        mean=middle + found,
        standard_error=error,
        n=n,
        rejected=counted.rejected,
        biased=not channel.unbiased,
        confidence=confidence,
        notes=() if channel.unbiased else (_SDPM,),
        limits=ends,
    )
