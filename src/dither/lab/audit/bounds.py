"""Bounds of probabilities from counts, and what they say of epsilon and mu.

For X ~ Binomial(n, p) and a count k the bounds of Clopper and Pearson are ::

    lower(k):  the p with Pr[X >= k] = level        upper(k):  the p with Pr[X <= k] = level

so each fails with probability at most ``level``, whatever p is. Tails are summed outwards from k,
where their terms fall, and the level is reduced by one part in a million, far above what doubles
lose here.

Source. Clopper and Pearson, Biometrika 1934.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

__all__ = ["binomial_tail", "epsilon_of", "lower_bound", "mu_of", "upper_bound"]

_SLACK = 1e-6
_STEPS = 80


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


def _outwards(n: int, k: int, p: float, q: float) -> float:
    """Pr[Binomial(n, p) >= k] for k > n·p, where the terms fall from k on; q = 1 - p."""
    if k > n:
        return 0.0
    if p <= 0.0:
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
        return math.exp(math.log(level) / n)
    low, high = 0.0, hits / n
    for _ in range(_STEPS):
        middle = math.sqrt(low * high) if low > 0.0 else high / 16.0
        if high - low <= 1e-9 * low:
            break
        if binomial_tail(n, hits, middle) <= level:
            low = middle
        else:
            high = middle
        if high < 1e-300:
            break
    return low


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
    low, high = hits / n, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if high - low <= 1e-9 * low:
            break
        # Pr[X <= hits] as a tail of the misses.
        if binomial_tail(n, n - hits, 1.0 - middle) <= level:
            high = middle
        else:
            low = middle
    return high


def epsilon_of(p_lower: float, q_upper: float, delta: float) -> float:
    """The epsilon that an event refutes: log((p - delta)/q), or -inf where it says nothing.

    An event of probability at least p on one dataset and at most q on its neighbour is possible
    under (epsilon, delta) only if p <= e^epsilon·q + delta.

    Examples
    --------
    >>> round(epsilon_of(0.5, 0.1, 0.0), 4), epsilon_of(0.01, 0.1, 0.02)
    (1.6094, -inf)
    """
    if p_lower <= delta or q_upper <= 0.0:
        return -math.inf
    return math.log(p_lower - delta) - math.log(q_upper) - 1e-12


def mu_of(p_lower: float, q_upper: float) -> float:
    """The mu of Gaussian differential privacy that an event refutes, or -inf.

    Who accuses on the event has a false-alarm rate of at most q and misses at most 1 - p; under
    mu-GDP, Φ⁻¹(p) - Φ⁻¹(q) <= mu (Dong, Roth and Su, 2022).

    Examples
    --------
    >>> round(mu_of(0.8413447, 0.5), 4)
    1.0
    """
    if not (0.0 < p_lower < 1.0 and 0.0 < q_upper < 1.0):
        return -math.inf
    normal = NormalDist()
    return normal.inv_cdf(p_lower) - normal.inv_cdf(q_upper) - 1e-9
