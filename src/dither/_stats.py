"""Tails of laws, and intervals from counts: the one copy that every room uses.

For X ~ Binomial(n, p) and a count k the bounds of Clopper and Pearson are ::

    lower(k):  the p with Pr[X >= k] = level        upper(k):  the p with Pr[X <= k] = level

so each fails with probability at most ``level``, whatever p is. Tails are summed outwards from k,
where their terms fall, and the level is reduced by one part in a million, far above what doubles
lose here.

Source. Clopper and Pearson, Biometrika 1934; Wilson, JASA 1927; Hoeffding, JASA 1963, theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dither._search import bisect, false_position

__all__ = [
    "binomial_tail",
    "binomial_tail_above",
    "clopper_pearson",
    "hoeffding_tail",
    "log_of",
    "lower_bound",
    "normal_quantile",
    "quantiles_apart",
    "student_reach",
    "two_sided",
    "upper_bound",
    "wilson",
]

Floats = npt.NDArray[np.float64]
Real = TypeVar("Real", float, Fraction)

EPS = 2.0**-52

_SLACK = 1e-6
"""The part by which a level is reduced for what tails err by, which is below 1e-9 for n to 10^9.

A deviance errs by some 4·EPS of the distance from its mean, |k - n·p|, and of itself. Where a tail
is above e^-745 the distance is at most 20·sqrt(n), so that this is below 6e-10 at n = 10^9; up to
10·sqrt(n) factors of later terms add 3 halves of EPS each, 1e-10; what is cut is 1e-18 of a term.
"""

_QUANTILE = 1e-14
"""The part of itself that `normal_quantile` errs by, at most: Wichura's rational functions are good
to 1e-16, and evaluating them rounds some 30 times."""

_NORMAL = NormalDist()


def log_of(value: Fraction) -> float:
    """The natural logarithm of a positive rational of any size, in floating point.

    Examples
    --------
    >>> round(log_of(Fraction(10**400)) / log_of(Fraction(10)), 9)
    400.0
    """
    return math.log(value.numerator) - math.log(value.denominator)


def normal_quantile(p: float) -> float:
    """Φ⁻¹: where the standard normal law has mass p below, for p strictly between 0 and 1.

    Examples
    --------
    >>> round(normal_quantile(0.975), 6)
    1.959964
    """
    return _NORMAL.inv_cdf(p)


def quantiles_apart(p: float, q: float) -> float:
    """Φ⁻¹(p) - Φ⁻¹(q), rounded down.

    Examples
    --------
    >>> round(quantiles_apart(0.975, 0.025), 6)
    3.919928
    """
    x, y = normal_quantile(p), normal_quantile(q)
    return x - y - _QUANTILE * (abs(x) + abs(y))


def two_sided(confidence: float) -> float:
    """The z with Pr[|Z| <= z] = confidence for a standard normal Z: half an interval's width.

    Taken in the lower tail, where confidence near 1 keeps its digits.

    Examples
    --------
    >>> round(two_sided(0.95), 6)
    1.959964
    """
    return -_NORMAL.inv_cdf((1 - confidence) / 2)


def student_reach(freedom: int, confidence: float) -> float:
    """The t with Pr[|T| <= t] = confidence for Student's law.

    Examples
    --------
    >>> round(student_reach(1, 0.95), 6), round(student_reach(10, 0.95), 6)
    (12.706205, 2.228139)
    """
    tail = 1.0 - confidence
    if freedom == 1:
        return 1.0 / math.tan(tail * math.pi / 2.0)
    if freedom == 2:
        return math.sqrt(2.0 / (tail * (2.0 - tail)) - 2.0)
    return bisect(lambda t: _student_tails(t, freedom) <= tail, 0.0, 1e3 / tail)[1]


def _student_tails(t: float, freedom: int) -> float:
    """Pr[|T| >= t] for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term = total = cosine if freedom % 2 else 1.0
    start = 3 if freedom % 2 else 2
    for k in range(start, freedom, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if freedom % 2:
        inside = 2.0 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    else:
        inside = sine * total
    return max(0.0, 1.0 - inside)


def binomial_tail(n: int, k: int, p: float) -> float:
    """Pr[Binomial(n, p) >= k].

    Parameters
    ----------
    n, k : int
        n at least 0.
    p : float
        In [0, 1].

    Returns
    -------
    float
        Relative error below 1e-9 for n to 10^9.

    Examples
    --------
    >>> round(binomial_tail(10, 8, 0.5), 7)
    0.0546875
    """
    if k <= 0 or p >= 1.0:
        return 1.0 if k <= n else 0.0
    if k > n or p <= 0.0:
        return 0.0
    if k <= n * p:
        return max(0.0, 1.0 - _outwards(n, n - k + 1, 1.0 - p, p))
    return min(1.0, _outwards(n, k, p, 1.0 - p))


def binomial_tail_above(n: int, k: int, p: float) -> float:
    """A number of at least Pr[Binomial(n, p) >= k], for a p that is off by up to 2^-53.

    A chance moves the logarithm of the tail by at most k/p, so by as many roundings.

    Examples
    --------
    >>> round(binomial_tail_above(10, 8, 0.5), 7)
    0.0546876
    """
    off = _SLACK + (EPS * k / p if p > 0 else 0.0)
    return min(1.0, binomial_tail(n, k, p) * (1 + off))


def _outwards(n: int, k: int, p: float, q: float) -> float:
    """Pr[Binomial(n, p) >= k] for k > n·p, where the terms fall from k on; q = 1 - p."""
    if k > n or p <= 0.0:
        return 0.0
    if q <= 0.0:
        return 1.0
    first = _log_law(n, k, p, q)
    if first < -745.0:
        return 0.0
    total, factor, start, size = 1.0, 1.0, k, 256
    while start < n:
        stop, size = min(n, start + size), min(4096, 2 * size)
        j = np.arange(start, stop, dtype=np.float64)
        terms = factor * np.cumprod((n - j) / (j + 1.0) * (p / q))
        total += float(terms.sum())
        factor, start = float(terms[-1]), stop
        if factor < 1e-18 * total:
            break
    return math.exp(first) * total


def _log_law(n: int, k: int, p: float, q: float) -> float:
    """log Pr[Binomial(n, p) = k] for 0 < k <= n, by how far k and n - k are from their means.

    Differences of log-gammas would lose all digits that the law has where n is large.
    Source: Loader, "Fast and accurate computation of binomial probabilities", 2000.
    """
    if k == n:
        return n * math.log(p)
    found = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    found -= _deviance(k, n * p) + _deviance(n - k, n * q)
    return found + 0.5 * math.log(n / (2.0 * math.pi * k * (n - k)))


def _stirling_error(n: int) -> float:
    """log n! less Stirling's formula for it, n at least 1."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    square = float(n) * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / n


def _deviance(x: int, mean: float) -> float:
    """x·log(x/mean) - x + mean, which is small where x is near the mean."""
    off = (x - mean) / mean
    return mean * ((1.0 + off) * math.log1p(off) - off)


def lower_bound(hits: int, n: int, level: float) -> float:
    """Clopper and Pearson's lower bound of a probability.

    Parameters
    ----------
    hits, n : int
        How often it happened in n independent trials, 0 <= hits <= n.
    level : float
        In (0, 1): the probability that the bound is too high.

    Returns
    -------
    float

    Examples
    --------
    >>> lower_bound(0, 100, 0.01), round(lower_bound(100, 100, 0.01), 6)
    (0.0, 0.954993)
    """
    if hits <= 0:
        return 0.0
    level *= 1.0 - _SLACK
    if hits >= n:
        # Next to 1 a double is coarser than the level's slack.
        return math.nextafter(math.exp(math.log(level) / n), 0.0)
    # In logarithms, so that a small probability has as many digits as a large one.
    top = math.log(hits / n)
    # By Chernoff, e^(-hits·(e^-d - 1 + d)) is above the tail at top - d: so low is low enough.
    far = -math.log(level) / hits
    low = max(-700.0, top - (math.sqrt(3.0 * far) if 3.0 * far <= 1.0 else 1.0 + far))
    low, _ = _crossing(lambda x: -_log_over(binomial_tail(n, hits, math.exp(x)), level), low, top)
    return math.exp(low) if low > -700.0 else 0.0


def upper_bound(hits: int, n: int, level: float) -> float:
    """Clopper and Pearson's upper bound of a probability; arguments as of `lower_bound`.

    Examples
    --------
    >>> upper_bound(100, 100, 0.01), round(upper_bound(0, 100, 0.01), 6)
    (1.0, 0.045007)
    """
    if hits >= n:
        return 1.0
    level *= 1.0 - _SLACK
    if hits <= 0:
        return -math.expm1(math.log(level) / n)
    # By Chernoff again, e^(-hits·d²/2) is above the tail at hits/n·e^d.
    high = min(1.0, hits / n * math.exp(math.sqrt(-2.0 * math.log(level) / hits)))
    # Pr[X <= hits] as a tail of the misses, by both chances: 1 - p alone would lose a small p.
    return _crossing(
        lambda p: _log_over(_outwards(n, n - hits, 1.0 - p, p), level), hits / n, high, hits / n
    )[1]


def _log_over(tail: float, level: float) -> float:
    """The logarithm of a tail over a level."""
    return math.log(tail / level) if tail > 0.0 else -math.inf


def _crossing(
    over: Callable[[float], float], low: float, high: float, unit: float = 1.0
) -> tuple[float, float]:
    """Where a falling function passes 0, to a part in 10⁹ of a unit: by its values, or by halves.

    An end that is not beyond it, as where a level is near 1, is moved as if it were.
    """
    ends, close = (over(low), over(high)), 1e-9 * unit
    if ends[0] > 0 >= ends[1]:
        return false_position(over, low, high, ends, absolute=close)
    return bisect(lambda x: over(x) <= 0, low, high, close)


def clopper_pearson(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability, which covers it at least so often.

    Examples
    --------
    >>> [round(end, 6) for end in clopper_pearson(100, 100, 0.98)]
    [0.954993, 1.0]
    """
    level = (1.0 - confidence) / 2.0
    return lower_bound(hits, n, level), upper_bound(hits, n, level)


def wilson(rate: Floats, n: int | Floats, z: float) -> Floats:
    """Wilson's bound of a rate seen in n trials: the lower one for a negative z.

    Nominal, and so for choosing and never for certifying.

    Examples
    --------
    >>> wilson(np.array([0.5]), 100, -2.0).round(4)
    array([0.4019])
    """
    middle = rate + z * z / (2 * n)
    reach = z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return np.asarray((middle + reach) / (1 + z * z / n))


def hoeffding_tail(mean: float, bound: float, runs: int) -> float:
    """The largest chance of such a mean of independent scores in [0, 1] of mean at most a bound.

    Rounded up.

    Examples
    --------
    >>> hoeffding_tail(0.4, 0.5, 10), round(hoeffding_tail(1.0, 0.5, 10) * 1024, 9)
    (1.0, 1.0)
    """
    if mean <= bound:
        return 1.0
    if bound <= 0.0:
        return 0.0
    above = mean * math.log(mean / bound)
    below = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - bound)) if mean < 1.0 else 0.0
    # A logarithm's argument rounds up to three times, which its factor, of at most 1, carries
    # over; a logarithm, a product and the sum err by 2·EPS of the summands.
    gap = above + below - EPS * (3.0 + 2.0 * (above + abs(below)))
    exponent = runs * max(gap, 0.0)
    return min(1.0, math.exp(-exponent) * (1.0 + EPS * (2.0 + exponent)))
