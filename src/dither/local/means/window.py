"""The window law: likely within a window of positions that moves with the value, unlikely outside.

Inputs are the points i = 0..N of an interval, reports the positions j = 0..M-1. The window of
point i has W positions and begins at u_i = (M - W)·i/N; where u_i is no whole number, the report
is drawn from one of the windows at its two neighbours, the upper with chance u_i - floor(u_i)::

    Pr[j | i] = p in the window,  q outside,  between them at the two edges of a mixture
    P = W·p = the chance of the window,   q = (1 - P)/(M - W)

Guarantee. Every row lies within [q, p], so every likelihood ratio is at most p/q: the law is
epsilon-local DP where p/q <= e^epsilon.

Expectation. For a window that begins at a, the sum of all positions drops out and
E[j - (M-1)/2] = (p - q)·W·(a - (M-W)/2), linear in a; a mixture of two neighbouring beginnings
keeps the line. Hence with the spacing g = 2/((p - q)·W·(M - W)) the value g·(j - (M-1)/2) has
expectation exactly -1 + 2i/N, for every point, whatever the widths.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither.local.chances import ONE, coins, pick
from dither.local.channel import Codes
from dither.numeric import Words

__all__ = ["WindowLaw", "WindowProducts", "toss"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WindowLaw:
    """The law above.

    Parameters
    ----------
    steps : int
        N: the inputs are 0, ..., N.
    outputs : int
        M.
    width : int
        W, from 1 to M - 1.
    inside : Fraction
        P, the chance of the window.
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
        """The law's two products, with reports in bins that begin at `edges`, breaks included.

        Merging positions that all rows hold alike loses nothing: their sum is sufficient.
        """
        return WindowProducts(self, edges)

    def forward(self, f: Array) -> Array:
        """Shares of the positions, where shares of the points are f: f @ matrix in O(N + M)."""
        return _finest(self).forward(f)

    def back(self, weights: Array) -> Array:
        """E[weights[report] | point] for every point: matrix @ weights in O(N + M)."""
        return _finest(self).back(weights)

    def row(self, x: int) -> Array:
        """Pr[y | x] for all y, shape (M,)."""
        only = np.zeros(self.steps + 1)
        only[x] = 1.0
        return self.forward(only)


class WindowProducts:
    """f @ matrix and matrix @ w by sliding sums, without the matrix.

    Parameters
    ----------
    law : WindowLaw
    edges : array of int
        Where bins of reports begin: 0 and at least the law's breaks, ascending.
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


@lru_cache(maxsize=8)
def _finest(law: WindowLaw) -> WindowProducts:
    return WindowProducts(law, np.arange(law.outputs))


def toss(chance: Fraction, size: int, words: Words) -> npt.NDArray[np.bool_]:
    """Independent coins of a rational chance, exactly; its denominator is at most 2**64."""
    if ONE % chance.denominator == 0:
        return coins(chance.numerator * (ONE // chance.denominator), size, words)
    return pick(chance.denominator, size, words) < chance.numerator
