"""Tails, intervals and searches: the one copy that every room uses.

For X ~ Binomial(n, p) and a count k the bounds of Clopper and Pearson are ::

    lower(k):  the p with Pr[X >= k] = level        upper(k):  the p with Pr[X <= k] = level

so each fails with probability at most ``level``, whatever p is. Tails are summed outwards from k,
where their terms fall, and the level is reduced by one part in a million, far above what doubles
lose here.

Searches bisect a predicate that is false first and true from some point on, and return both ends of
what is left: the caller takes the end at which their statement is safe.

Source. Clopper and Pearson, Biometrika 1934; Wilson, JASA 1927; Hoeffding, JASA 1963, theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import NormalDist
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "binomial_tail",
    "binomial_tail_above",
    "bisect",
    "bisect_arrays",
    "clopper_pearson",
    "greatest_decimal",
    "hoeffding_tail",
    "least_decimal",
    "least_integer",
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
    total, factor, start = 1.0, 1.0, k
    while start < n:
        stop = min(n, start + 4096)
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
    low, _ = bisect(lambda x: binomial_tail(n, hits, math.exp(x)) > level, -700.0, top, 1e-9)
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
    # Pr[X <= hits] as a tail of the misses, by both chances: 1 - p alone would lose a small p.
    return bisect(
        lambda p: _outwards(n, n - hits, 1.0 - p, p) <= level, hits / n, 1.0, 1e-9 * hits / n
    )[1]


def clopper_pearson(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability, which covers it at least so often.

    Examples
    --------
    >>> [round(end, 6) for end in clopper_pearson(100, 100, 0.98)]
    [0.954993, 1.0]
    """
    level = (1.0 - confidence) / 2.0
    return lower_bound(hits, n, level), upper_bound(hits, n, level)


def wilson(rate: Floats, n: int, z: float) -> Floats:
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


def bisect(
    turned: Callable[[Real], bool],
    low: Real,
    high: Real,
    width: float = 0.0,
    *,
    steps: int = 100,
) -> tuple[Real, Real]:
    """Close in on where a predicate turns true, between a point before and a point after.

    Parameters
    ----------
    turned : callable
        False first, true from some point on. It is not asked about the two ends.
    low, high : float or Fraction
        Where it is false, and where it is true; Fractions stay exact.
    width : float
        Stop once the ends are so close.
    steps : int
        How often to halve at the most; doubles also end where nothing lies between them.

    Returns
    -------
    (low, high)
        The last point at which it was false and the first at which it was true.

    Examples
    --------
    >>> low, high = bisect(lambda x: x * x >= 2, 1.0, 2.0)
    >>> low * low < 2 <= high * high, high - low < 1e-15
    (True, True)
    >>> bisect(lambda x: 3 * x >= 1, Fraction(0), Fraction(1), steps=4)
    (Fraction(5, 16), Fraction(3, 8))
    """
    for _ in range(steps):
        middle = (low + high) / 2
        if high - low <= width or middle in (low, high):
            break
        if turned(middle):
            high = middle
        else:
            low = middle
    return low, high


def false_position(
    over: Callable[[float], float],
    low: float,
    high: float,
    ends: tuple[float, float],
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
    steps: int = 100,
) -> tuple[float, float]:
    """As `bisect`, where a falling function passes 0, by its values: Illinois' rule.

    Parameters
    ----------
    over : callable
        Above 0 first, at most 0 from some point on.
    low, high : float
        Where it is above 0, and where it is not. Both are only ever moved to places that were
        asked, so that they stay proved.
    ends : (float, float)
        Its values there. While one is infinite the interval is halved.
    relative, absolute : float
        Stop once the ends are within that part of the upper one, or as close as that: it decides
        how wide an answer is. No step is shorter than a fifth of either.
    steps : int
        How many at the most.

    Returns
    -------
    (low, high)

    Examples
    --------
    >>> low, high = false_position(lambda x: 2 - x * x, 1.0, 2.0, (1.0, -2.0), relative=1e-12)
    >>> low * low < 2 <= high * high, high - low < 1e-11
    (True, True)
    """
    (f_low, f_high), side = ends, 0
    for _ in range(steps):
        close = max(absolute, relative * abs(high))
        if high - low <= close:
            break
        if math.isfinite(f_low) and math.isfinite(f_high) and f_low > f_high:
            at = high - f_high * (high - low) / (f_high - f_low)
            at = min(max(at, low + 0.2 * close), high - 0.2 * close)
        else:
            at = (low + high) / 2
        value = over(at)
        # An end that stays is halved, so that the next step lands beyond the root.
        if value <= 0:
            high, f_high, f_low = at, value, f_low / 2 if side < 0 else f_low
            side = -1
        else:
            low, f_low, f_high = at, value, f_high / 2 if side > 0 else f_high
            side = 1
    return low, high


def bisect_arrays(
    turned: Callable[[Floats], npt.NDArray[np.bool_]], low: Floats, high: Floats, *, steps: int = 60
) -> tuple[Floats, Floats]:
    """As `bisect`, for many predicates side by side.

    Examples
    --------
    >>> squares = np.array([4.0, 9.0])
    >>> bisect_arrays(lambda x: x * x >= squares, np.zeros(2), np.full(2, 10.0))[1].round(9)
    array([2., 3.])
    """
    for _ in range(steps):
        middle = (low + high) / 2
        after = turned(middle)
        low, high = np.where(after, low, middle), np.where(after, middle, high)
    return low, high


@overload
def least_integer(turned: Callable[[int], bool], least: int = 0, *, step: int = 1) -> int: ...
@overload
def least_integer(
    turned: Callable[[int], bool], least: int = 0, *, step: int = 1, most: int
) -> int | None: ...
def least_integer(
    turned: Callable[[int], bool], least: int = 0, *, step: int = 1, most: int | None = None
) -> int | None:
    """The least integer, of at least ``least``, for which a predicate that turns true is true.

    Parameters
    ----------
    turned : callable
        False first, true from some integer on.
    least : int
        Where to begin.
    step : int
        The first stride upwards, which doubles until the predicate is true.
    most : int, optional
        Where to give up.

    Returns
    -------
    int or None
        None where the predicate is false up to ``most``.

    Examples
    --------
    >>> least_integer(lambda n: n * n >= 1000), least_integer(lambda n: n >= 9, most=8)
    (32, None)
    """
    low, high = least - 1, least
    while not turned(high):
        if most is not None and high >= most:
            return None
        low, high, step = high, high + step, 2 * step
        if most is not None:
            high = min(high, most)
    return _between(turned, low, high)


def _between(turned: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer at which it is true, where it is false at low and true at high."""
    while high - low > 1:
        middle = (low + high) // 2
        if turned(middle):
            high = middle
        else:
            low = middle
    return high


def least_decimal(
    turned: Callable[[Fraction], bool], low: Fraction, high: Fraction
) -> Fraction | None:
    """The least decimal of three significant digits for which a predicate that turns true is true.

    Parameters
    ----------
    turned : callable
        False first, true from some number on.
    low, high : Fraction
        Where to look, above 0.

    Returns
    -------
    Fraction or None
        None where the predicate is false at ``high``, or there is no such decimal in between.

    Examples
    --------
    >>> least_decimal(lambda x: x * x >= 2, Fraction(1), Fraction(9))
    Fraction(71, 50)
    """
    first, last = _place(low, up=True), _place(high, up=False)
    if last < first or not turned(_decimal(last)):
        return None
    return _decimal(_between(lambda i: turned(_decimal(i)), first - 1, last))


def greatest_decimal(
    fits: Callable[[Fraction], bool], low: Fraction, high: Fraction
) -> Fraction | None:
    """The greatest decimal of three significant digits for which a predicate is still true.

    Parameters
    ----------
    fits : callable
        True first, false from some number on.
    low, high : Fraction
        Where to look, above 0.

    Returns
    -------
    Fraction or None
        None where the predicate is false at ``low``, or there is no such decimal in between.

    Examples
    --------
    >>> greatest_decimal(lambda x: 3 * x <= 1, Fraction(1, 1000), Fraction(100))
    Fraction(333, 1000)
    """
    first, last = _place(low, up=True), _place(high, up=False)
    if last < first or not fits(_decimal(first)):
        return None
    return _decimal(_between(lambda i: not fits(_decimal(i)), first, last + 1) - 1)


def _decimal(index: int) -> Fraction:
    exponent, digits = divmod(index, 900)
    return (digits + 100) * Fraction(10) ** exponent


def _place(value: Fraction, *, up: bool) -> int:
    """The grid point next to a value: the least not below it, or the greatest not above it."""
    exponent = math.floor(log_of(value) / math.log(10)) - 2
    while value < 100 * Fraction(10) ** exponent:  # the logarithm above is rounded
        exponent -= 1
    while value >= 1000 * Fraction(10) ** exponent:
        exponent += 1
    scaled = value / Fraction(10) ** exponent
    return exponent * 900 + (math.ceil(scaled) if up else math.floor(scaled)) - 100
