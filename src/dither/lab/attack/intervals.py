"""How sure a rate is: intervals of a success that was seen in some runs, and exact tails.

A run scores ``hits`` of ``targets``. Runs are independent; targets of one run share its release.

*Interval*: Student's over the runs' shares, and never narrower than Clopper and Pearson's over all
targets, so that runs that agree by luck do not look certain. It is nominal.

*Tails*: sound for any dependence inside a run. With X_r in [0, 1] the share of run r and
E[X_r] <= p, Hoeffding's Pr[mean >= x] <= exp(-runs·KL(x, p)). And where each guess is right with
probability at most p *whatever the other targets are*, the hits are dominated by a binomial.

Source. Clopper and Pearson, 1934; Hoeffding, 1963, theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

__all__ = ["binomial_tail", "clopper_pearson", "hoeffding_tail", "interval"]


def binomial_tail(n: int, k: int, p: float) -> float:
    """Pr[Binomial(n, p) >= k], in doubles; relative error below 1e-8 for n to ten million.

    Examples
    --------
    >>> round(binomial_tail(10, 8, 0.5), 7)
    0.0546875
    """
    if k <= 0:
        return 1.0
    if k > n or p <= 0.0:
        return 0.0
    if p >= 1.0:
        return 1.0
    if k <= n * p:
        return max(0.0, 1.0 - binomial_tail(n, n - k + 1, 1.0 - p))
    first = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )
    # Terms fall from k on, geometrically at least by the first ratio.
    j = np.arange(k, min(n, k + 100_000), dtype=np.float64)
    total = 1.0 + float(np.cumprod((n - j) / (j + 1.0) * (p / (1.0 - p))).sum())
    return min(1.0, math.exp(min(0.0, first + math.log(total))))


def clopper_pearson(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability.

    Examples
    --------
    >>> [round(end, 6) for end in clopper_pearson(100, 100, 0.98)]
    [0.954993, 1.0]
    """
    level = (1.0 - confidence) / 2.0
    low = _root(lambda p: binomial_tail(n, hits, p) - level) if hits > 0 else 0.0
    high = 1.0 - _root(lambda q: binomial_tail(n, n - hits, q) - level) if hits < n else 1.0
    return low, high


def hoeffding_tail(mean: float, bound: float, runs: int) -> float:
    """The largest chance of such a mean of independent scores in [0, 1] of mean at most a bound.

    Examples
    --------
    >>> hoeffding_tail(0.4, 0.5, 10), round(hoeffding_tail(1.0, 0.5, 10) * 1024, 9)
    (1.0, 1.0)
    """
    if mean <= bound:
        return 1.0
    if bound <= 0.0:
        return 0.0
    gap = mean * math.log(mean / bound)
    if mean < 1.0:
        gap += (1.0 - mean) * math.log((1.0 - mean) / (1.0 - bound))
    return math.exp(-runs * gap)


def interval(hits: Sequence[int], targets: Sequence[int], confidence: float) -> tuple[float, float]:
    """The nominal interval of a success, as the head of this module says.

    Parameters
    ----------
    hits, targets : sequences of int
        Of each run.
    confidence : float
        In (0, 1).

    Returns
    -------
    (float, float)

    Examples
    --------
    >>> low, high = interval([9, 10, 8], [10, 10, 10], 0.95)
    >>> 0.6 < low < 0.75, high > 0.97
    (True, True)
    """
    low, high = clopper_pearson(sum(hits), sum(targets), confidence)
    if len(hits) > 1:
        shares = np.asarray(hits) / np.asarray(targets)
        middle = sum(hits) / sum(targets)
        half = _student(len(hits) - 1, confidence) * float(shares.std(ddof=1)) / len(hits) ** 0.5
        low, high = min(low, middle - half), max(high, middle + half)
    return max(0.0, low), min(1.0, high)


def _student(freedom: int, confidence: float) -> float:
    """Student's quantile: by Hill's expansion, exact for one and two degrees of freedom."""
    tail = 1.0 - confidence
    if freedom == 1:
        return 1.0 / math.tan(tail * math.pi / 2.0)
    if freedom == 2:
        return math.sqrt(2.0 / (tail * (2.0 - tail)) - 2.0)
    # The normal quantile, widened until the density's own integral agrees.
    return _root(lambda t: tail - _two_tails(t, freedom), 0.0, 1e3 / tail)


def _two_tails(t: float, freedom: int) -> float:
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


def _root(rising: Callable[[float], float], low: float = 0.0, high: float = 1.0) -> float:
    """Where a rising function crosses 0."""
    for _ in range(80):
        middle = (low + high) / 2.0
        if rising(middle) < 0.0:
            low = middle
        else:
            high = middle
    return low
