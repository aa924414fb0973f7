"""Amplification by shuffling: n local reports, each epsilon_0-DP, whose order is forgotten.

*Numeric.* Reports of the others hide a victim among look-alikes. With parameters p, q and beta
(the largest ratio, the least chance to look alike, the total variation of one pair of inputs) [1]_,
theorem 4.7, shuffled outputs are post-processing of counts (a, b) ::

    alpha = beta/(p - 1),  r = alpha·p/q,  C ~ Bin(n-1, 2r),  A ~ Bin(C, 1/2)
    P: (A + 1, C - A) with chance alpha·p;  (A, C - A + 1) with alpha;  else (A, C - A)
    Q: the same with the two chances exchanged

For every epsilon_0-DP randomiser p = q = e^{epsilon_0} and beta = tanh(epsilon_0/2), which is the
clone reduction of [2]_; for k-ary randomised response beta = (e^{epsilon_0}-1)/(e^{epsilon_0}+k-1).
Given a + b = m, the likelihood ratio grows with a, so the divergence is a sum over m of binomial
tails beyond a threshold.

*Closed forms*, for comparison: [3]_, theorem 3.1, and [2]_, theorem 3.2.

Neighbours replace one unit's input. The local randomisers are the same for all units.

References
----------
.. [1] Wang et al., "Privacy amplification via shuffling: unified, simplified, and tightened",
   VLDB 2024.
.. [2] Feldman, McMillan and Talwar, "Stronger privacy amplification by shuffling for Rényi and
   approximate differential privacy", SODA 2023.
.. [3] Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError, nearest
from dither.privacy import Bound
from dither.privacy.loss import number, whole

__all__ = ["Shuffled", "shuffle", "shuffle_clones_2021", "shuffle_clones_2023"]

Array = npt.NDArray[Any]

_ROUNDING = 1e-8
"""Relative charge on delta: binomial masses err by under 1e-10, thresholds and sums by less."""

_KINDS = ("any", "grr")


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The counts (a, b) that shuffled reports are post-processing of.

    Parameters
    ----------
    n : int
        Reports, at least 1.
    p : float
        e^{epsilon_0}, the largest ratio, above 1; q = p.
    beta : float
        Total variation of one pair of inputs, in (0, (p-1)/(p+1)].
    """

    n: int
    p: float
    beta: float

    def delta(self, epsilon: float) -> Bound:
        """The divergence of the counts at an epsilon, rounding and cut tails included."""
        low, high = self._ends(number("epsilon", epsilon, low=0, high=math.inf, closed="low"))
        return Bound(low, high, "variation-ratio, numeric")

    def epsilon(self, delta: float) -> Bound:
        """The least epsilon at a delta in (0, 1)."""
        target = number("delta", delta, low=0, high=1)
        top = math.log(self.p) * (1 + 1e-15)

        def over(e: float, end: int) -> float:
            value = self._ends(e, target)[end]
            return math.log(max(value, 1e-320)) - math.log(target)

        low, high = 0.0, top
        if over(low, 1) <= 0:
            return Bound(0.0, 0.0, "variation-ratio, numeric")
        f_low, f_high, side = over(low, 1), min(over(high, 1), -1e-3), 0
        for _ in range(60):
            if high - low <= 1e-11 * high:
                break
            e = high - f_high * (high - low) / (f_high - f_low)
            e = min(max(e, low + 1e-12 * high), high - 1e-12 * high)
            f = over(e, 1)
            if f <= 0:
                high, f_high = e, f
                f_low = f_low / 2 if side == -1 else f_low
                side = -1
            else:
                low, f_low = e, f
                f_high = f_high / 2 if side == 1 else f_high
                side = 1
        below, step = high, 1e-9 * high
        while below > 0 and over(below, 0) <= 0:
            below, step = max(0.0, below - step), step * 4
        return Bound(below, high, "variation-ratio, numeric")

    def _ends(self, epsilon: float, target: float = 1e-12) -> tuple[float, float]:
        n, p = self.n, self.p
        alpha = self.beta / (p - 1)
        rate = min(1.0, 2 * alpha)
        rest = max(0.0, 1 - alpha - alpha * p)
        if epsilon >= math.log(p):
            return 0.0, 0.0
        first, last, cut = _window(n - 1, rate, min(target, 0.1) * 1e-9)
        # m = a + b is C + 1 where the victim looks alike, C otherwise.
        m = np.arange(first, last + 2, dtype=float)
        with_one = _binomial(m - 1, n - 1, rate) * (m >= 1)
        without = _binomial(m, n - 1, rate) * (m <= n - 1) * rest
        e = math.exp(epsilon)
        positive = np.maximum(m, 1.0)
        slope = with_one * alpha / positive * (p - 1) * (1 + e)
        level = with_one * alpha * (1 - e * p) + without / 2 * (1 - e)
        with np.errstate(divide="ignore", invalid="ignore"):
            k = -level / np.where(slope > 0, slope, 1)
        # Where masses underflow the threshold carries on from its neighbours: it moves smoothly.
        known = (slope > 0) & np.isfinite(k)
        k = np.interp(m, m[known], k[known]) if known.any() else positive
        k = np.clip(np.floor(k), -1, positive)
        tail = _half_tails((positive - 1).astype(np.int64), k.astype(np.int64))
        here = np.exp(_log_half(positive - 1, k))
        s1, s0 = tail + here, tail
        terms = with_one * alpha * ((p - e) * s1 + (1 - e * p) * s0)
        terms += without * (1 - e) * (s1 + s0) / 2
        # Rounding acts on each summand before they cancel.
        size = with_one * alpha * ((p - e) * s1 + (e * p - 1) * s0)
        size += without * (e - 1) * (s1 + s0) / 2
        total = float(np.clip(terms, 0, None).sum())
        error = _ROUNDING * total + 2e-10 * float(size.sum()) + 1e-300
        return max(0.0, total - error), min(1.0, total + error + 2 * cut)


def shuffle(n: int, epsilon_0: float, *, randomiser: str = "any", k: int | None = None) -> Shuffled:
    """Reports of n units, each epsilon_0-DP on its own, shuffled.

    Parameters
    ----------
    n : int
        Reports, at least 1.
    epsilon_0 : float
        In (0, 100].
    randomiser : {"any", "grr"}
        Any epsilon_0-DP randomiser, or k-ary randomised response.
    k : int, optional
        Answers of randomised response, at least 2.

    Raises
    ------
    ArgumentError
        An argument is out of range, or k is missing or not wanted.

    Examples
    --------
    >>> round(shuffle(1_000_000, 4.0).epsilon(1e-6), 4)
    0.0343
    >>> round(shuffle(1_000_000, 4.0, randomiser="grr", k=18).epsilon(1e-6), 4)
    0.0299
    """
    n = whole("n", n, 1)
    p = math.exp(number("epsilon_0", epsilon_0, low=0, high=100, closed="high")) * (1 + 1e-15)
    if randomiser not in _KINDS:
        raise ArgumentError("randomiser must be 'any' or 'grr'" + nearest(str(randomiser), _KINDS))
    if (randomiser == "grr") != (k is not None):
        raise ArgumentError("k belongs to randomiser='grr': the number of its answers")
    answers = 2 if k is None else whole("k", k, 2)
    return Shuffled(n, p, (p - 1) / (p + answers - 1))


def shuffle_clones_2021(n: int, epsilon_0: float, delta: float) -> float:
    """Closed form of 2021: needs epsilon_0 <= log(n/(16·log(4/delta))).

    Examples
    --------
    >>> shuffle_clones_2021(1_000_000, 1.0, 1e-6) < 0.05
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    if n <= 16 * math.log(4 / d) or e0 > math.log(n / (16 * math.log(4 / d))):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 8 * math.sqrt(e * math.log(4 / d) / n) + 8 * e / n
    return math.log1p((e - 1) / (e + 1) * inner) * (1 + 1e-14)


def shuffle_clones_2023(n: int, epsilon_0: float, delta: float) -> float:
    """Closed form of 2023: needs epsilon_0 <= log(n/(8·log(2/delta)) - 1).

    Examples
    --------
    >>> shuffle_clones_2023(1_000_000, 4.0, 1e-6) > shuffle(1_000_000, 4.0).epsilon(1e-6)
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    room = n / (8 * math.log(2 / d)) - 1
    if room <= 0 or e0 > math.log(room):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 4 * math.sqrt(2 * math.log(4 / d) / ((e + 1) * n)) + 4 / n
    return math.log1p((e - 1) * inner) * (1 + 1e-14)


def _checked(n: int, epsilon_0: float, delta: float) -> tuple[int, float, float]:
    return (
        whole("n", n, 1),
        number("epsilon_0", epsilon_0, low=0, high=100, closed="high"),
        number("delta", delta, low=0, high=1),
    )


def _window(n: int, rate: float, tail: float) -> tuple[int, int, float]:
    """Counts outside of which Bin(n, rate) has mass at most ``tail`` a side, by Chernoff."""
    if rate >= 1:
        return n, n, 0.0
    mean = n * rate

    def exponent(x: float) -> float:
        """n·KL(x/n, rate)."""
        a = x * math.log(x / mean) if x > 0 else 0.0
        b = (n - x) * math.log((n - x) / (n * (1 - rate))) if x < n else 0.0
        return a + b

    goal, ends = -math.log(tail), []
    for far in (0.0, float(n)):
        near = mean
        if exponent(far) <= goal:
            ends.append(far)
            continue
        for _ in range(60):
            middle = (near + far) / 2
            if exponent(middle) > goal:
                far = middle
            else:
                near = middle
        ends.append(far)
    return max(0, math.floor(ends[0])), min(n, math.ceil(ends[1])), tail


_TABLE = np.array(
    [0.0]
    + [
        math.lgamma(i + 1) - ((i + 0.5) * math.log(i) - i + 0.5 * math.log(2 * math.pi))
        for i in range(1, 16)
    ]
)


def _remainder(n: Array) -> Array:
    """log n! - Stirling's main part, n >= 1: a table, then the asymptotic series."""
    x = np.maximum(n, 15.0)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    small = _TABLE[np.clip(n, 0, 15).astype(np.int64)]
    return np.where(n <= 15, small, series)


def _binomial(x: Array, n: int, rate: float) -> Array:
    """Pr[Bin(n, rate) = x] by the saddle-point form of Loader; 0 outside 0..n."""
    if rate >= 1:
        return np.where(x == n, 1.0, 0.0)
    if n == 0:
        return np.where(x == 0, 1.0, 0.0)
    inside = (x >= 0) & (x <= n)
    y = np.clip(x, 0, n)
    a, b = np.maximum(y, 0.5), np.maximum(n - y, 0.5)
    deviance = _deviance(y, n * rate) + _deviance(n - y, n * (1 - rate))
    log_mass = _remainder(np.full_like(y, float(n))) - _remainder(y) - _remainder(n - y)
    log_mass = log_mass - deviance + 0.5 * np.log(n / (2 * math.pi * a * b))
    log_mass = np.where(y == 0, n * math.log1p(-rate), log_mass)
    log_mass = np.where(y == n, n * math.log(rate), log_mass)
    return np.where(inside, np.exp(log_mass), 0.0)


def _deviance(x: Array, mean: float) -> Array:
    """x·log(x/mean) + mean - x without cancellation near the mean."""
    gap = (x - mean) / mean
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = x * np.log(np.maximum(x, 1e-300) / mean) + mean - x
        near = mean * ((1 + gap) * np.log1p(gap) - gap)
        # Below 1e-3 a series: gap²/2 - gap³/6 + gap⁴/12 - gap⁵/20 + gap⁶/30.
        g = gap
        series = mean * g * g * (0.5 - g * (1 / 6 - g * (1 / 12 - g * (1 / 20 - g / 30))))
    return np.where(np.abs(gap) < 1e-3, series, np.where(np.abs(gap) < 0.1, near, plain))


def _log_half(m: Array, k: Array) -> Array:
    """log Pr[Bin(m, 1/2) = k]; -inf outside 0..m."""
    inside = (k >= 0) & (k <= m)
    y = np.clip(k, 0, m)
    a, b = np.maximum(y, 0.5), np.maximum(m - y, 0.5)
    half = np.maximum(m, 1.0) / 2
    d = (y - half) / half
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = half * (
            np.where(d > -1, (1 + d) * np.log1p(np.maximum(d, -1 + 1e-17)), 0.0)
            + np.where(d < 1, (1 - d) * np.log1p(np.maximum(-d, -1 + 1e-17)), 0.0)
        )
    value = _remainder(m) - _remainder(y) - _remainder(m - y) - deviance
    value = value + 0.5 * np.log(np.maximum(m, 1.0) / (2 * math.pi * a * b))
    edge = (y == 0) | (y == m)
    value = np.where(edge, -m * math.log(2), value)
    return np.where(inside, value, -np.inf)


def _half_tails(m: Array, k: Array) -> Array:
    """Pr[Bin(m, 1/2) > k] along a path on which m grows by 1 and k moves by little.

    Pr[Bin(m+1) > k] = Pr[Bin(m) > k] + Pr[Bin(m) = k]/2; and moving k by one adds or takes one
    mass. The path starts from a direct sum; its errors are those of a running sum.
    """
    start = np.arange(int(k[0]) + 1, int(m[0]) + 1, dtype=float)
    first = float(np.exp(_log_half(np.full_like(start, float(m[0])), start)).sum())
    if len(m) == 1:
        return np.array([first])
    grow = 0.5 * np.exp(_log_half(m[:-1].astype(float), k[:-1].astype(float)))
    grow = np.where(m[1:] > m[:-1], grow, 0.0)
    move = k[1:] - k[:-1]
    change = grow
    for j in range(1, int(np.abs(move).max()) + 1):
        up = np.exp(_log_half(m[1:].astype(float), (k[:-1] + j).astype(float)))
        down = np.exp(_log_half(m[1:].astype(float), (k[:-1] - j + 1).astype(float)))
        change = change - np.where(move >= j, up, 0.0) + np.where(move <= -j, down, 0.0)
    tails: Array = np.concatenate([[first], first + np.cumsum(change)])
    return np.clip(tails, 0.0, 1.0)
