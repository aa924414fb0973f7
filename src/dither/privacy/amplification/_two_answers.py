"""Shuffled reports of two answers: the delta of the worst inputs of all others, from both sides.

With a = p/(p + 1), b = 1 - a and N = n - 1 others, j of whom hold 1, the count of ones is S_j +
Ber(a) against S_j + Ber(b), S_j = Bin(j, a) + Bin(N - j, b). At e = e^epsilon < p ::

    delta_j = max over x of f(x),   f(x) = (a - e·b)·Pr[S_j = x] - (e - 1)·Pr[S_j > x]

as the events are {count > x}. S_j is log-concave, so that f(x) - f(x-1) = (e·a - b)·Pr[S_j = x] -
(a - e·b)·Pr[S_j = x-1] changes its sign once: where f has risen before a place and falls after it,
nothing further away is larger. Every j gives a lower end.

*All j at once.* For j in [first, last] S_j is Bin(first, a) + Bin(N - last, b) and something
independent of the victim: to leave that out shows an attacker more. So the delta of the shorter sum
bounds delta_j for the whole block, and blocks are halved, the one of the largest bound first, until
none is above what some j reaches; or until they have taken long enough.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.privacy.amplification._binomials import windowed
from dither.privacy.engines.search import invert

__all__ = ["LOGS", "TwoAnswers"]


Array = npt.NDArray[Any]

_EPS = 2.0**-52

_MASSES = 2.5e-13
"""What `masses` errs by of itself, at most, for each nat that a mass is below 1: 2000·2^-53."""

LOGS = 1e-12
"""What a difference of two logarithms may be off by: two units in the last place of up to 745 each,
and a rounding."""

_WORK = 45_000_000
"""Summands in all, or so, after which blocks are no longer halved."""

_CLOSE = 1e-10
"""A part of delta that is not worth halving another block."""


class TwoAnswers:
    """The largest delta over all inputs of the others, at any epsilon.

    Parameters
    ----------
    n : int
        Reports.
    p : float
        e^{epsilon_0}.
    target : float
        About the delta that is asked for: what is cut of the laws is a small part of it.
    most : int
        Blocks to look at; long sums allow fewer.
    """

    def __init__(self, n: int, p: float, target: float, most: int = 100_000) -> None:
        self._others, self._p, self._target = n - 1, p, target
        self._most = min(most, round(_WORK / (500 + 40 * math.sqrt(n))))
        self._b = 1 / (p + 1)
        # In steps, so that laws are shared by questions close to one another.
        self._tail = 10.0 ** (math.floor(math.log10(max(target, 1e-280))) - 12)
        # Two laws; and for windows of up to 40 deviations, 20·sqrt(n) numbers, the sums over them,
        # and what the rate's rounding, 3 halves of EPS in the odds, moves far from the mean. What p
        # was rounded up by moves the lower end alone: by d times a deviation times what is below,
        # while the first has d² of masses d deviations away.
        self._off = 2 * _MASSES * max(40.0, 20 - math.log(self._tail))
        self._off += 120 * _EPS * (1 + math.sqrt(n))
        # p stands for a number that is less by up to (7 + 3/2·log p)·EPS of itself, and e^epsilon
        # for one that is off by (1 + epsilon/2)·EPS of itself; the factor has 3 roundings more.
        self._over = 4e-15 + 4 * _EPS * math.log(p)

    def ends(self, epsilon: float) -> tuple[float, float]:
        """(lower, upper) of delta(epsilon)."""
        return self._largest(epsilon, self._most)[:2]

    def epsilon(self, target: float) -> tuple[float, float]:
        """(lower, upper) of the least epsilon at a delta."""
        if self._at(0, 0.0)[0] <= target and self.ends(0.0)[1] <= target:
            return 0.0, 0.0
        j, found, high = self._others // 2, -1.0, math.log(self._p) / 2
        for _ in range(8):
            low, high = self._root(j, target, high)
            if high <= found:
                break
            found = high
            j = self._largest(high, self._most // 10)[2]
        # Guesses that grow until one is proved.
        goal, step = math.log(target) - LOGS, 1e-10
        while (excess := _log(self.ends(high)[1]) - goal) > 0:
            # The slope of log delta is about that of the worst j.
            here, near = (_log(self._at(j, x)[1]) for x in (high, high * (1 + 1e-5)))
            slope = max((here - near) / (1e-5 * high), 1e-3)
            high, step = high + 1.01 * excess / slope + step * high, 4 * step
        return low, high

    def _at(self, j: int, epsilon: float) -> tuple[float, float]:
        """(lower, upper) of delta(epsilon) where j of the others hold 1."""
        return self._delta(j, self._others - j, epsilon)

    def _root(self, j: int, target: float, start: float) -> tuple[float, float]:
        """(lower, upper) of the least epsilon where j of the others hold 1."""

        def end(which: int) -> Callable[[float], float]:
            return lambda x: _log(self._at(j, x)[which])

        # 1e-13 is the searches' width; what they return is proved.
        goal = math.log(target)
        high = invert(end(1), goal - LOGS, start, above=True, tiny=1e-13)
        return invert(end(0), goal + LOGS, high, above=False, tiny=1e-13), high

    def _largest(self, epsilon: float, most: int) -> tuple[float, float, int]:
        """(lower, upper, j): blocks halved, the one of the largest bound first."""
        whole, spent = self._others, 0
        low, high, best = 0.0, 0.0, 0
        blocks: list[tuple[float, int, int]] = []

        def asked(first: int, last: int) -> None:
            nonlocal low, high, best, spent
            found = self._delta(first, whole - last, epsilon)
            spent += 1
            if first == last:
                high = max(high, found[1])
                if found[0] > low:
                    low, best = found[0], first
            else:
                heapq.heappush(blocks, (-found[1], first, last))

        # Some inputs to begin with: what they reach is a lower end that blocks are held against.
        for j in {0, whole // 2, whole}:
            asked(j, j)
        asked(0, whole)
        least = _CLOSE * self._target
        while blocks and spent < most and -blocks[0][0] > low * (1 + _CLOSE) + least:
            _, first, last = heapq.heappop(blocks)
            middle = (first + last) // 2
            asked(first, middle)
            asked(middle + 1, last)
            if last - first > 2:
                # An input inside the block may raise the lower end, so that fewer blocks are left.
                asked(middle, middle)
        if blocks:
            # Blocks that were not halved hold their bound.
            high = max(high, -blocks[0][0])
        return low, min(high, 1.0), best

    def _delta(self, ones: int, zeros: int, epsilon: float) -> tuple[float, float]:
        """(lower, upper) of the largest f, with ``ones`` and ``zeros`` others."""
        p, tail, rise = self._p, self._tail, math.expm1(epsilon)
        factor = ((p - 1) - rise) / (p + 1)
        # e^epsilon is at least p: no event is as much likelier.
        if factor <= 0:
            return 0.0, 0.0
        begins, down, _ = _law(zeros, self._b, tail)
        last = begins + len(down) - 1
        # Those who hold 1 say 0 as often as the others say 1, at a rate that doubles know better.
        starts, up, tails = _law(ones, self._b, tail)
        starts, up, tails = ones - starts - len(up) + 1, up[::-1], tails[::-1]
        down = down[::-1]

        def parts(x: int) -> tuple[float, float]:
            """Pr[S = x] and Pr[S > x], of what the windows hold."""
            # up[i] is of the count starts + i, and down[last - y] of y = x - starts - i.
            shift = last - x + starts
            i, j = max(0, -shift), max(0, shift)
            length = max(0, min(len(up) - i, len(down) - j))
            # A sum of positive products: nothing cancels in the convolution.
            others = down[j : j + length]
            # All of up is above x - y where y is larger than that.
            beyond = float(tails[i + 1 : i + 1 + length] @ others) + float(
                tails[0] * down[:j].sum()
            )
            return float(up[i : i + length] @ others), beyond

        known: dict[int, tuple[float, float]] = {}

        def f(x: int) -> tuple[float, float]:
            if x not in known:
                here, beyond = parts(x)
                doubt = self._off * (factor * here + rise * beyond) + self._over * here
                # What the windows cut is missing of both.
                known[x] = factor * here - rise * beyond, doubt + 2 * tail * (factor + rise)
            return known[x]

        # Above this count only what the windows cut is left.
        top = starts + len(up) + last
        x = min(self._near(ones, zeros, epsilon), top)
        while f(x - 1)[0] > f(x)[0]:
            x -= 1
        while x < top and f(x + 1)[0] > f(x)[0]:
            x += 1
        # A place on either side at which f is lower for certain: beyond them it only falls.
        ends = []
        for way in (-1, 1):
            far = x + way
            while sum(f(far)) > f(x)[0] - f(x)[1] and -1 <= far <= top:
                far += way
            ends.append(far)
        near = [f(i) for i in range(ends[0], ends[1] + 1)]
        low = max(value - doubt for value, doubt in near)
        return max(0.0, low), max(value + doubt for value, doubt in near)

    def _near(self, ones: int, zeros: int, epsilon: float) -> int:
        """About where f is largest: a normal law's neighbours have the ratio e^{(x - mean)/v}."""
        b, e = self._b, math.exp(epsilon)
        mean, variance = ones * (1 - b) + zeros * b, (ones + zeros) * b * (1 - b)
        ratio = (e * self._p - 1) / (self._p - e) if self._p > e else 1.0
        return min(max(round(mean + variance * math.log(ratio)), 0), ones + zeros)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


@lru_cache(maxsize=512)
def _law(n: int, rate: float, tail: float) -> tuple[int, Array, Array]:
    """(first, masses, tails): a window of Bin(n, rate), and the masses below each place."""
    numbers, mass, _ = windowed(n, rate, tail)
    return int(numbers[0]), mass, np.concatenate([[0.0], np.cumsum(mass)])
