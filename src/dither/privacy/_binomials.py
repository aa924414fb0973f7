"""Binomial laws in doubles, for many counts at once, with how far they err.

Masses are taken in the saddle-point form of Loader, which keeps its digits where log-gammas of
large counts cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._stats import bisect

__all__ = ["half_tails", "masses", "window"]


Array = npt.NDArray[Any]


def window(n: int, rate: float, tail: float) -> tuple[int, int, float]:
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
        reach = far - mean
        if exponent(far) > goal:
            beyond = partial(_beyond, exponent, goal, mean, reach)
            reach *= bisect(beyond, 0.0, 1.0, steps=60)[1]
        ends.append(mean + reach)
    return max(0, math.floor(ends[0])), min(n, math.ceil(ends[1])), tail


def _beyond(
    exponent: Callable[[float], float], goal: float, mean: float, reach: float, share: float
) -> bool:
    return exponent(mean + share * reach) > goal


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
    if n.size and n.min() > 15:
        return np.asarray(series)
    small = _TABLE[np.clip(n, 0, 15).astype(np.int64)]
    return np.where(n <= 15, small, series)


def masses(x: Array, n: int, rate: float) -> Array:
    """Pr[Bin(n, rate) = x], off by under 1e-11 of itself above e^-40; 0 outside 0..n.

    With D the deviance and u = 2^-53, its series errs by 12u·D, the middle form by 2u·D/|gap|, at
    most 2000u·D, and the plain one by 60u·D; D <= 40 there, so that this is below 9e-12. Stirling's
    remainders are cut at 1e-14, and the rest are some ten roundings.
    """
    if rate >= 1:
        return np.where(x == n, 1.0, 0.0)
    if n == 0:
        return np.where(x == 0, 1.0, 0.0)
    inside = (x >= 0) & (x <= n)
    y = np.clip(x, 0, n)
    a, b = np.maximum(y, 0.5), np.maximum(n - y, 0.5)
    mean = n * Fraction(rate)
    deviance = _deviance(y, mean) + _deviance(n - y, n - mean)
    log_mass = _remainder(np.full_like(y, float(n))) - _remainder(y) - _remainder(n - y)
    log_mass = log_mass - deviance + 0.5 * np.log(n / (2 * math.pi * a * b))
    log_mass = np.where(y == 0, n * math.log1p(-rate), log_mass)
    log_mass = np.where(y == n, n * math.log(rate), log_mass)
    return np.where(inside, np.exp(log_mass), 0.0)


def _deviance(x: Array, exact: Fraction) -> Array:
    """x·log(x/mean) + mean - x without cancellation near the mean.

    The mean is taken in two doubles: rounding a mean of 10^11 once moves the exponent by as many
    roundings as x is numbers away from it.
    """
    mean = float(exact)
    gap = ((x - mean) - float(exact - Fraction(mean))) / mean
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
        # (1 + d)·log(1 + d) + (1 - d)·log(1 - d), whose summands agree in most digits where d is
        # small; of 2d² - d² no more than a third is lost. Both ends are set below.
        inside_d = np.where(np.abs(d) < 1, d, 0.0)
        deviance = half * (2 * inside_d * np.arctanh(inside_d) + np.log1p(-inside_d * inside_d))
    value = _remainder(m) - _remainder(y) - _remainder(m - y) - deviance
    value = value + 0.5 * np.log(np.maximum(m, 1.0) / (2 * math.pi * a * b))
    edge = (y == 0) | (y == m)
    value = np.where(edge, -m * math.log(2), value)
    return np.where(inside, value, -np.inf)


def _running(values: Array) -> Array:
    """Running sums in two levels, so that each is made of 2·sqrt(n) additions and not of n."""
    width = math.isqrt(len(values)) + 1
    rows = np.zeros((-(-len(values) // width), width))
    rows.ravel()[: len(values)] = values
    inner = np.cumsum(rows, axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])[: len(inner), None]
    found: Array = (inner + before).ravel()[: len(values)]
    return found


def half_tails(m: Array, k: Array) -> tuple[Array, Array]:
    """Pr[Bin(m, 1/2) > k] and Pr[Bin(m, 1/2) = k], where m grows by 1 and k moves by little.

    Pr[Bin(m+1) > k] = Pr[Bin(m) > k] + Pr[Bin(m) = k]/2; and moving k by one adds or takes one
    mass. The path starts from a direct sum; its errors are those of `_running`, 2·sqrt(steps)
    roundings of its largest partial sum, and of the masses.
    """
    # Beyond 20·sqrt(m) from the middle lies less than exp(-800), by Hoeffding.
    far = max(int(k[0]), int(m[0]) // 2) + 2 + math.ceil(20 * math.sqrt(int(m[0])))
    start = np.arange(int(k[0]) + 1, min(int(m[0]), far) + 1, dtype=float)
    first = float(np.exp(_log_half(np.full_like(start, float(m[0])), start)).sum())
    here = np.exp(_log_half(m.astype(float), k.astype(float)))
    change = np.where(m[1:] > m[:-1], 0.5 * here[:-1], 0.0)
    move = k[1:] - k[:-1]
    for j in range(1, int(move.max(initial=0)) + 1):
        up = np.exp(_log_half(m[1:].astype(float), (k[:-1] + j).astype(float)))
        change = change - np.where(move >= j, up, 0.0)
    for j in range(1, int(-move.min(initial=0)) + 1):
        down = np.exp(_log_half(m[1:].astype(float), (k[:-1] - j + 1).astype(float)))
        change = change + np.where(move <= -j, down, 0.0)
    tails: Array = np.concatenate([[first], first + _running(change)])
    return np.clip(tails, 0.0, 1.0), here
