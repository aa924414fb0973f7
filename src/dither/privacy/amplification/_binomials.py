"""Binomial laws in doubles, for many counts at once, with how far they err.

Masses are taken in the saddle-point form of Loader, which keeps its digits where log-gammas of
large counts cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._search import bisect

__all__ = ["half_tails", "masses", "window", "windowed"]


Array = npt.NDArray[Any]

_EPS = 2.0**-52


def window(n: int, rate: float, tail: float) -> tuple[int, int, float]:
    """Counts outside of which Bin(n, rate) has mass at most ``tail`` a side, by Chernoff."""
    if rate >= 1:
        return n, n, 0.0
    mean = n * rate
    # What the exponent errs by: its logarithms' arguments round up to four times, which moves it by
    # as much of x and of n - x, and its two summands, of at most 2n + goal, by EPS of themselves.
    # Chernoff: beyond where n·KL is the tail's logarithm there is no more than the tail.
    goal = -math.log(tail) * (1 + 8 * _EPS) + 8 * _EPS * n

    def exponent(x: float) -> float:
        """n·KL(x/n, rate)."""
        a = x * math.log(x / mean) if x > 0 else 0.0
        b = (n - x) * math.log((n - x) / (n * (1 - rate))) if x < n else 0.0
        return a + b

    ends = []
    for far in (0.0, float(n)):
        reach = far - mean
        if exponent(far) > goal:
            beyond = partial(_beyond, exponent, goal, mean, reach)
            reach *= bisect(beyond, 0.0, 1.0, steps=60)[1]
        ends.append(mean + reach)
    # One further at each end, as the sums round by less than 1.
    return max(0, math.floor(ends[0]) - 1), min(n, math.ceil(ends[1]) + 1), tail


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
    # From 15 on the series is right to 1e-14; below, a table.
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
    # So that logarithms exist; at 0 and n the mass has a form of its own.
    a, b = np.maximum(y, 0.5), np.maximum(n - y, 0.5)
    # Exactly: a rounded mean of 10^11 would show in the exponent.
    mean = n * Fraction(rate)
    deviance = _deviance(y, mean) + _deviance(n - y, n - mean)
    log_mass = _remainder(np.full_like(y, float(n))) - _remainder(y) - _remainder(n - y)
    log_mass = log_mass - deviance + 0.5 * np.log(n / (2 * math.pi * a * b))
    log_mass = np.where(y == 0, n * math.log1p(-rate), log_mass)
    log_mass = np.where(y == n, n * math.log(rate), log_mass)
    return np.where(inside, np.exp(log_mass), 0.0)


@lru_cache(maxsize=512)
def windowed(n: int, rate: float, tail: float) -> tuple[Array, Array, float]:
    """The numbers in a `window` of Bin(n, rate), their masses, and what is cut on either side."""
    first, last, cut = window(n, rate, tail)
    numbers = np.arange(first, last + 1, dtype=float)
    return numbers, masses(numbers, n, rate), cut


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
    """log Pr[Bin(m, 1/2) = k]; -inf outside 0..m.

    Off by at most 40·EPS·(1 + D), D the deviance, where a library's function errs by up to 4 units
    in the last place. With |d| < 1/2 D is m/2 times 2d·artanh(d) + log(1 - d²), whose summands are
    at most 3·D together and err by 7·EPS of themselves. Further out it is the plain form, off by
    5·EPS·m, and D is at least 0.13·m. What is left are roundings of numbers of up to 1, but for the
    last logarithm, which is less than D where it is large.
    """
    inside = (k >= 0) & (k <= m)
    y = np.clip(k, 0, m)
    a, b = np.maximum(y, 0.5), np.maximum(m - y, 0.5)
    half = np.maximum(m, 1.0) / 2
    d = (y - half) / half
    near = np.where(np.abs(d) < 0.5, d, 0.0)
    deviance = half * (2 * near * np.arctanh(near) + np.log1p(-near * near))
    far = np.flatnonzero(np.abs(d) >= 0.5)
    if far.size:
        x, z, h = a[far], b[far], half[far]
        deviance[far] = x * np.log(x / h) + z * np.log(z / h)
    value = _remainder(m) - _remainder(y) - _remainder(m - y) - deviance
    value = value + 0.5 * np.log(np.maximum(m, 1.0) / (2 * math.pi * a * b))
    edge = (y == 0) | (y == m)
    # All alike, at chance 2^-m: Stirling's form has no digits there.
    value = np.where(edge, -m * math.log(2), value)
    return np.where(inside, value, -np.inf)


def _half_masses(m: Array, k: Array, roundings: int = 0) -> tuple[Array, Array]:
    """Pr[Bin(m, 1/2) = k], and how far each is off where it is rounded so many times more."""
    log_mass = _log_half(m, k)
    mass = np.exp(log_mass)
    return mass, mass * (_EPS * (48 + roundings) - 40 * _EPS * np.maximum(log_mass, -800.0))


def _running(values: Array) -> Array:
    """Running sums in two levels, so that each is made of 2·sqrt(n) additions and not of n."""
    width = math.isqrt(len(values)) + 1
    rows = np.zeros((-(-len(values) // width), width))
    rows.ravel()[: len(values)] = values
    inner = np.cumsum(rows, axis=1)
    before = np.concatenate([[0.0], np.cumsum(inner[:-1, -1])])[: len(inner), None]
    found: Array = (inner + before).ravel()[: len(values)]
    return found


def _steps(path: Array) -> int:
    """Twice how often `_running` rounds a summand, by half of EPS of a sum that holds it."""
    return 2 * math.isqrt(len(path)) + 2


def _half_tail(m: int, k: int) -> tuple[float, float]:
    """Pr[Bin(m, 1/2) > k] by its sum, and how far it is off.

    5·sqrt(m) beyond k and the middle a mass is below e^-50 of that at the nearer of both.
    """
    # Beyond the middle masses fall: a sum of some deviations is all of it.
    far = max(k, m // 2) + 2 + math.ceil(5 * math.sqrt(m))
    at = np.arange(k + 1, min(m, far) + 1, dtype=float)
    mass, off = _half_masses(np.full_like(at, float(m)), at)
    return float(mass.sum()), float(off.sum())


def half_tails(m: Array, k: Array) -> tuple[Array, Array, Array]:
    """Pr[Bin(m, 1/2) > k], Pr[Bin(m, 1/2) = k], and how far the first, or their sum, is off.

    m grows by 1 and k moves by little. Pr[Bin(m+1) > k] = Pr[Bin(m) > k] + Pr[Bin(m) = k]/2; and
    moving k by one adds or takes one mass. Tails that fall from a large one to a small one by
    differences would keep the large one's rounding: so they are summed from both ends of the path,
    where they are small, up to their greatest. What is off adds up on the way: of each mass, and
    the roundings of `_running`, 2·sqrt(steps) of half of EPS in each level.
    """
    x, y = m.astype(float), k.astype(float)
    here, off = _half_masses(x, y, _steps(m))
    # Where k is m there is no tail, and nothing is off.
    alive = int(np.argmax(k < m)) if (k < m).any() else len(m)
    tails, doubts = np.zeros(len(x)), np.zeros(len(x))
    if alive < len(m):
        found = _along(m[alive:], k[alive:], here[alive:], off[alive:])
        tails[alive:], doubts[alive:] = found
    return np.clip(tails, 0.0, 1.0), here, doubts + off


def _along(m: Array, k: Array, here: Array, off: Array) -> tuple[Array, Array]:
    """The tails of `half_tails`, and how far each is off."""
    x, y, move = m.astype(float), k.astype(float), k[1:] - k[:-1]
    grows = 0.5 * (m[1:] > m[:-1])
    change, wrong = grows * here[:-1], grows * off[:-1]
    for sign, moved in ((-1.0, move), (1.0, -move)):
        for j in range(1, int(moved.max(initial=0)) + 1):
            # Going up from k to k + j, the masses at k + 1, ..., k + j leave the tail.
            some = np.flatnonzero(moved >= j)
            at = y[:-1][some] + j if sign < 0 else y[:-1][some] - j + 1
            mass, doubt = here[1:][some], off[1:][some]
            other = np.flatnonzero(at != y[1:][some])
            if other.size:
                mass[other], doubt[other] = _half_masses(x[1:][some[other]], at[other], _steps(m))
            change[some] += sign * mass
            wrong[some] += doubt
    top = int(np.argmin((2 * y - x) / np.sqrt(np.maximum(x, 1.0))))
    first, first_off = _half_tail(int(m[0]), int(k[0]))
    last, last_off = _half_tail(int(m[-1]), int(k[-1]))
    tails = _from_both(first, last, change[:top], -change[top:])
    return tails, _from_both(first_off, last_off, wrong[:top], wrong[top:])


def _from_both(first: float, last: float, ahead: Array, back: Array) -> Array:
    """Running sums from the first value on, and then from the last one back."""
    left = np.append(first, first + _running(ahead))
    right = np.append((last + _running(back[::-1]))[::-1], last)
    return np.append(left, right[1:])
