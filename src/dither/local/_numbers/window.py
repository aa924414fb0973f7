"""The piecewise mechanism and the square wave: likely near the value, unlikely elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither.local._channel import Codes
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._numbers.numeric import NumericChannel, NumericLaw, spread
from dither.numeric import Words

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class WindowLaw(NumericLaw):
    """A window of positions that moves with the value, for PM, SW and the high values of SDPM.

    Inputs are the points i = 0..N (`steps`) of an interval, reports the positions j = 0..M-1
    (`outputs`). The window of point i has W positions (`width`) and begins at u_i = (M - W)·i/N;
    where u_i is not a whole number, the report is drawn from one of the windows at its two
    neighbours, the upper with chance u_i - floor(u_i)::

        Pr[j | i] = p in the window,  q outside,  between them at the two edges of a mixture
        P = W·p = the chance of the window (`inside`),   q = (1 - P)/(M - W)

    Guarantee. Every row lies within [q, p], so every likelihood ratio is at most p/q: the law is
    epsilon-local DP where p/q <= e^epsilon.

    Expectation. For a window that begins at a, the sum of all positions drops out and E[j -
    (M-1)/2] = (p - q)·W·(a - (M-W)/2), linear in a; a mixture of two neighbouring beginnings keeps
    the line. Hence with the spacing g = 2/((p - q)·W·(M - W)) the value g·(j - (M-1)/2) has
    expectation exactly -1 + 2i/N, for every point, whatever the widths.
    """

    steps: int
    outputs: int
    width: int
    inside: Fraction

    @property
    def p(self) -> Fraction:
        """The chance of a position in the window."""
        return self.inside / self.width

    @property
    def q(self) -> Fraction:
        """The chance of a position outside."""
        return (1 - self.inside) / (self.outputs - self.width)

    @property
    def spacing(self) -> Fraction:
        """g: how far neighbouring positions are apart, where inputs go from -1 to 1."""
        return 2 / ((self.p - self.q) * self.width * (self.outputs - self.width))

    def begin(self, codes: Codes) -> tuple[Codes, Codes]:
        """Where the windows begin, and the chance of one position more in N-ths."""
        moved = codes * (self.outputs - self.width)
        return moved // self.steps, moved % self.steps

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[y | x]."""
        first, part = divmod(x * (self.outputs - self.width), self.steps)
        share = Fraction(part, self.steps)
        return (1 - share) * self._flat(first, y) + share * self._flat(first + 1, y)

    def _flat(self, first: int, y: int) -> Fraction:
        return self.p if first <= y < first + self.width else self.q

    def draw(self, codes: Codes, words: Words) -> Codes:
        """Positions for codes. Everyone draws everything, so the time says nothing of the value."""
        n = codes.size
        first, part = self.begin(codes)
        if (self.outputs - self.width) % self.steps:
            first = first + (pick(self.steps, n, words) < part)
        within = first + pick(self.width, n, words)
        without = pick(self.outputs - self.width, n, words)
        without += self.width * (without >= first)
        return np.where(toss(self.inside, n, words), within, without)

    def breaks(self) -> Codes:
        """Positions at which some row changes, from 0: between them all rows are flat."""
        first, part = self.begin(np.arange(self.steps + 1))
        mixed = first[part > 0] + 1
        found = np.unique(np.concatenate(([0], first, mixed, first + self.width)))
        found = np.union1d(found, mixed + self.width)
        return found[found < self.outputs]

    def compiled(self, edges: Codes) -> WindowProducts:
        """Sliding sums over the bins."""
        return WindowProducts(self, edges)


class WindowProducts:
    """f @ matrix and matrix @ w by sliding sums, without the matrix.

    Bins of reports begin at `edges`: 0 and at least the law's breaks, ascending.
    """

    def __init__(self, law: WindowLaw, edges: Codes) -> None:
        first, part = law.begin(np.arange(law.steps + 1))
        ends = np.append(edges, law.outputs)
        self.widths = np.diff(ends).astype(np.float64)
        self.begins = np.searchsorted(ends, first)
        self.stops = np.searchsorted(ends, first + law.width)
        self.share = part / law.steps
        self.mixed = bool(part.any())
        # Where nothing is mixed the second window has weight 0, wherever it is said to begin.
        self.begins_next = np.where(part > 0, np.searchsorted(ends, first + 1), self.begins)
        self.stops_next = np.where(
            part > 0, np.searchsorted(ends, first + 1 + law.width), self.stops
        )
        self.q, self.lift = float(law.q), float(law.p - law.q)

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports."""
        size = self.widths.size + 1
        if self.mixed:
            here, there = (1 - self.share) * f, self.share * f
            moved = np.bincount(self.begins, here, size) - np.bincount(self.stops, here, size)
            moved += np.bincount(self.begins_next, there, size)
            moved -= np.bincount(self.stops_next, there, size)
        else:
            moved = np.bincount(self.begins, f, size) - np.bincount(self.stops, f, size)
        # Running sums of differences may leave a rounding below 0, and chances have logarithms.
        within = np.maximum(np.cumsum(moved[:-1]), 0.0)
        return np.asarray((self.q * f.sum() + self.lift * within) * self.widths)

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | point]."""
        sums = np.concatenate(([0.0], np.cumsum(weights * self.widths)))
        window = sums[self.stops] - sums[self.begins]
        if self.mixed:
            later = sums[self.stops_next] - sums[self.begins_next]
            window = (1 - self.share) * window + self.share * later
        return np.asarray(self.q * sums[-1] + self.lift * window)


def toss(chance: Fraction, size: int, words: Words) -> npt.NDArray[np.bool_]:
    """Independent coins of a rational chance, exactly; its denominator is at most 2**64."""
    if ONE % chance.denominator == 0:
        return coins(chance.numerator * (ONE // chance.denominator), size, words)
    return pick(chance.denominator, size, words) < chance.numerator


class WindowChannel(NumericChannel):
    """A channel whose law is a window that begins at the point's own number."""

    @property
    @abstractmethod
    def law(self) -> WindowLaw:
        """Of steps + width positions."""

    @property
    def positions(self) -> Array:
        """Values of the reports, whose expectation is the point."""
        places: Array = np.arange(self.outputs, dtype=np.float64) - (self.outputs - 1) / 2
        return spread(self.interval, float(self.law.spacing) * places)


@dataclass(frozen=True, init=False)
class PM(WindowChannel):
    """The piecewise mechanism on a lattice.

    Parameters
    ----------
    interval : Interval
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is not an `Interval`, or `epsilon` is out of range.

    Notes
    -----
    Law. With s = e^{epsilon/2}, on the scale where the interval is [-1, 1], the continuous
    mechanism reports y in [-C, C], C = (s + 1)/(s - 1), with density p = (e - s)/(2s + 2), e =
    e^epsilon, on [l(x), l(x) + C - 1], l(x) = (C + 1)x/2 - (C - 1)/2, and p/e outside. Here it
    stands on a lattice of N steps: a window of W positions that begins at the point's own number, M
    = N + W positions, W = N/s rounded.

    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the interval.
    The window's chance P = e·W/(e·W + N) is rounded down to a multiple of 2**-64, so that the ratio
    of two chances is at most e^epsilon.

    Error. The mean is unbiased, exactly: this is the width that makes it best. As N grows the
    variance of one report goes to x²/(s - 1) + (s + 3)/(3(s - 1)²).

    References
    ----------
    Wang et al., ICDE 2019.

    Examples
    --------
    >>> from dither import local
    >>> channel = PM(local.Interval(0, 10, steps=10), epsilon=1)
    >>> bool(abs(channel.moments()[0] - channel.interval.points).max() < 1e-12)
    True
    """

    kind: ClassVar[str] = "pm"

    @cached_property
    def law(self) -> WindowLaw:
        """A window of N/s positions."""
        steps, (half, _) = self.interval.steps, exp_bounds(self.epsilon / 2)
        return window_law(steps, round(steps / half), self.epsilon)


def window_law(steps: int, width: int, epsilon: Fraction) -> WindowLaw:
    """The window law of this width that is epsilon-local DP and as informative as that allows."""
    width = min(max(width, 1), steps)
    low, _ = exp_bounds(epsilon)
    # Of a lower bound of e^epsilon, and rounded down: p over q never exceeds e^epsilon.
    chance = threshold(low * width / (low * width + steps))
    return WindowLaw(steps, steps + width, width, Fraction(chance, ONE))


@dataclass(frozen=True, init=False)
class SW(WindowChannel):
    """The square wave on a lattice.

    Parameters
    ----------
    interval : Interval
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is not an `Interval`, or `epsilon` is out of range.

    Notes
    -----
    Law. The continuous mechanism reports y in [-b, 1 + b] with density p within b of x in [0, 1],
    and p/e outside, where the width b = (εe - e + 1)/(2e(e - 1 - ε)), e = e^ε, makes the mutual
    information largest. On a lattice of N steps it is the law of `PM` with another width: W = 2bN,
    rounded.

    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the interval.

    Error. The distribution is estimated by EM, smoothed by default; the mean of the reports' values
    is unbiased too, with more variance than PM's.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Škorić and Li, SIGMOD 2020.

    Examples
    --------
    >>> from dither import local
    >>> SW(local.Interval(0, 10), epsilon=1).law.width    # of 1,024 steps
    524
    """

    kind: ClassVar[str] = "sw"

    @cached_property
    def law(self) -> WindowLaw:
        """A window of 2bN positions."""
        steps = self.interval.steps
        return window_law(steps, round(2 * steps * half_width(self.epsilon)), self.epsilon)


def half_width(epsilon: Fraction) -> Fraction:
    """b of the square wave, to 2**-100."""
    e, _ = exp_bounds(epsilon)
    return (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
