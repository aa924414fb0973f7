"""The engine of the samplers: a unimodal law on the integers drawn under an exact staircase.

Both the discrete Laplace and the discrete Gaussian law have a mass proportional to
exp(−γ(|x|)), with γ(0) = 0, γ increasing, and γ(a+b) ≥ γ(a) + γ(b). That is all this module uses.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dither.noise._cells import WeightedOutcomes
from dither.numeric import Words, exp_lower, exp_upper

__all__ = ["StaircaseLaw", "StaircaseSampler"]

# Fixed point of the weights: 2**-_POINT is their unit.
_POINT = 256
# The staircase ends where exp(−γ) falls below 2**-_CUT.
_CUT = 144
# A draw that the double-precision filter finds within this of the threshold is decided exactly.
_MARGIN = 2.0**-32
_BLOCK = 1 << 15
_GUIDE_FROM = 1 << 11
_UNDECIDED = np.int16(-(1 << 15))

_Guide = tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]


class StaircaseLaw(Protocol):
    """A law with mass proportional to exp(−γ(|x|)) on the integers."""

    def exponent(self, magnitude: int) -> Fraction:
        """Return γ(magnitude), exactly."""
        ...

    def gap(
        self, step: npt.NDArray[np.float64], part: npt.NDArray[np.float64], width: int
    ) -> npt.NDArray[np.float64]:
        """Return γ((step + 1)·width) − γ((step + part)·width) in doubles.

        Each is within 16 units in the last place, for part in [0, 1].
        """
        ...


class StaircaseSampler:
    """A sampler of a law, exact but for a tail of mass below 2**-143.

    Parameters
    ----------
    law : StaircaseLaw
        The law to draw from. Its γ must be a polynomial of degree at most 2 in |x|.
    shift : int
        Steps are 2**shift wide; 0 for laws narrow enough to be tabled point by point.

    Notes
    -----
    Write w = 2**shift, and e(x) = exp(−γ(|x|)). Let H be the first step with e(H·w) < 2**-144.

    *Tail.* The law is drawn conditionally on −H·w ≤ x < H·w (for shift = 0 on |x| < H). As γ is
    superadditive, e(m+j) ≤ e(m)·e(j), hence with S the sum of e(j) over j ≥ 0

        Pr[|X| ≥ m] ≤ 2·e(m)·S / (2S − 1) ≤ 2·e(m),

    so that conditioning moves the law by less than 2**-143 in total variation.

    *Point by point (shift = 0).* Integer weights W_x ≤ 2**256·e(x) are drawn exactly, by
    `WeightedOutcomes`. They are the lower ends of intervals that hold 2**256·e(x), computed by
    directed rounding. With M the sum of 2**256·e(x) over the points and W ≤ M that of the weights,
    the distance is at most (M − W)/M, as the weights lie below; `rounding` is that bound, computed
    at construction from the intervals, and construction fails unless it is below 2**-144.

    *Staircase (shift > 0).* Over the step of S ≥ 0, x = S·w + l with 0 ≤ l < w, as well as over
    its mirror x = (−1−S)·w + l, one has S·w ≤ |x| ≤ (S+1)·w, so with integers
    t_S ≥ 2**256·e(S·w) and b_S ≤ 2**256·e((S+1)·w)

        b_S ≤ 2**256·e(x) ≤ t_S.

    A side and a step are drawn with weight t_S, split into a box of weight b_S and a wedge of
    weight t_S − b_S, exactly, by `WeightedOutcomes`; l is drawn uniformly; a box is accepted, and a
    wedge is accepted if a uniform V in [b_S, t_S) is below 2**256·e(x). A point is thus proposed
    and accepted with probability (b_S + (2**256·e(x) − b_S)) / (w·N) = 2**256·e(x) / (w·N), with N
    the sum of the weights over both sides: proportional to e(x), exactly. The rounding of t and b
    changes the share of the wedges and nothing of the law.

    *The filter.* V is known by its leading bits, and (V − b_S)/(t_S − b_S) is compared in doubles
    with expm1(g(part))/expm1(g(0)), where g(part) = γ((S+1)·w) − γ(|x|). g is accurate to 16
    units in the last place and below 1, numpy's expm1 to 4, so the quotient (at most 1) errs by
    less than 2**-45; t and b differ from what it takes them for by 2**-64 of themselves
    (checked at construction), which moves the exact threshold by less than 2**-48. A comparison
    closer than 2**-32, four thousand times all that, is decided with directed bounds of
    e(x) at 128 bits and more, drawing further bits of V until it is (`accept`). Doubles therefore
    decide nothing that they could decide wrongly.

    In all: total variation below 2**-142 a draw from ideal words.
    """

    __slots__ = ("_guide", "_lock", "cells", "law", "lower", "rounding", "shift", "steps", "upper")

    def __init__(self, law: StaircaseLaw, shift: int) -> None:
        self.law = law
        self.shift = shift
        # Integers on either side of the true edges: boxes take the lower ones, proposals the upper.
        lower, upper = _edges(law, 1 << shift)
        self.lower = lower
        self.upper = upper
        self.steps = steps = len(upper) - 1
        if shift == 0:
            # Points −(H−1) … H−1, in this order.
            self.cells = WeightedOutcomes(lower[steps - 1 : 0 : -1] + lower[:steps])
            slack = 2 * sum(upper) - 2 * sum(lower)
            self.rounding = Fraction(slack, 1 << _POINT)
            if self.rounding >= Fraction(1, 1 << _CUT):
                raise AssertionError("the weights are not as accurate as proved")
        else:
            boxes = lower[1:]
            wedges = [t - b for t, b in zip(upper, boxes, strict=False)]
            # Boxes −H … H−1, then wedges −H … H−1.
            self.cells = WeightedOutcomes(boxes[::-1] + boxes + wedges[::-1] + wedges)
            self.rounding = Fraction(0)
            # What the filter takes t and b for is right to 2**-64, as its margin counts on.
            if any((t - b) << 64 > b for t, b in zip(upper, lower, strict=True)):
                raise AssertionError("the edges are not as accurate as proved")
        self._guide: _Guide | None = None
        self._lock = threading.Lock()

    def guide(self) -> _Guide:
        """Return what each 16-bit prefix decides: the accepted point or box, and the outcome.

        The first table holds -2**15 where the prefix decides none or a wedge, the second -1 where
        it decides none.
        """
        # Threads share a sampler: its tables are made once.
        with self._lock:
            if self._guide is None:
                outcome = self.cells.prefixes()
                settled = (outcome >= 0) & ~self._wedge(outcome)
                points = np.where(settled, self._point(outcome), _UNDECIDED).astype(np.int16)
                self._guide = points, outcome.astype(np.int16)
            return self._guide

    def _point(self, outcome: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if self.shift == 0:
            return outcome - (self.steps - 1)
        return outcome % (2 * self.steps) - self.steps

    def _wedge(self, outcome: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        if self.shift == 0:
            return np.zeros(outcome.shape, dtype=np.bool_)
        return outcome >= 2 * self.steps

    def draw(self, size: int, words: Words) -> npt.NDArray[np.int64]:
        """Draw independent values.

        Parameters
        ----------
        size : int
            How many, at least 0.
        words : Words
            The source of randomness.

        Returns
        -------
        array of int64, shape (size,)
        """
        out = np.empty(size, dtype=np.int64)
        # A table of all prefixes pays only for many draws.
        # A smaller draw still uses one that is there.
        guide = self.guide() if size >= _GUIDE_FROM else self._guide
        again = []
        for start in range(0, size, _BLOCK):
            rejected = self._fill(out[start : start + _BLOCK], guide, words)
            if rejected.size:
                again.append(rejected + start)
        if again:
            places = np.concatenate(again)
            # A rejected proposal is drawn anew as a whole: keeping its step would change the law.
            out[places] = self.draw(places.size, words)
        return out

    def _fill(
        self, out: npt.NDArray[np.int64], guide: _Guide | None, words: Words
    ) -> npt.NDArray[np.int64]:
        """Fill a block with proposals, and return the places whose proposal is rejected."""
        # Four prefixes a word: what decides most draws costs 16 bits.
        prefixes = words.words(-(-out.size // 4)).view(np.uint16)[: out.size]
        if guide is None:
            slow = np.arange(out.size)
            outcome = self.cells.decide(prefixes, words)
        else:
            points = guide[0].take(prefixes, mode="wrap")
            out[:] = points
            slow = np.flatnonzero(points == _UNDECIDED)
            prefixes = prefixes[slow]
            outcome = guide[1].take(prefixes, mode="wrap").astype(np.int64)
            open_ = np.flatnonzero(outcome < 0)
            outcome[open_] = self.cells.decide(prefixes[open_], words)
        out[slow] = self._point(outcome)
        if self.shift == 0:
            return slow[:0]
        out <<= self.shift
        out |= _low_bits(self.shift, out.size, words)
        return self._rejected(out, slow[self._wedge(outcome)], words)

    def _rejected(
        self, out: npt.NDArray[np.int64], places: npt.NDArray[np.int64], words: Words
    ) -> npt.NDArray[np.int64]:
        """Return the places, of those where a wedge proposes out, at which it is rejected."""
        if not places.size:
            return places
        x = out[places]
        u = words.words(x.size)
        height = self.acceptance(x)
        # The leading 53 bits, which a double holds exactly.
        height -= (u >> np.uint64(11)).astype(np.float64) * 2.0**-53
        accepted = height > 0
        # Too close for doubles: integers and directed bounds decide.
        for i in np.flatnonzero(np.abs(height) < _MARGIN):
            accepted[i] = self.accept(int(x[i]), int(u[i]), 64, words)
        return places[~accepted]

    def acceptance(self, x: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the share of their wedges that accept given values, in doubles, within 2**-45."""
        high = x >> self.shift
        below_zero = high < 0
        step = np.where(below_zero, ~high, high).astype(np.float64)
        part = (x & ((1 << self.shift) - 1)).astype(np.float64) * 2.0**-self.shift
        # |x| = (step + part)·w with part in [0, 1), or in (0, 1] below zero; both are exact.
        part = np.where(below_zero, 1.0 - part, part)
        width = 1 << self.shift
        share = np.expm1(self.law.gap(step, part, width))
        share /= np.expm1(self.law.gap(step, np.zeros_like(part), width))
        return share

    def accept(self, x: int, u: int, bits: int, words: Words) -> bool:
        """Return whether V, in the part [u, u+1)/2**bits of [b, t), is below 2**256·e(x)."""
        high = x >> self.shift
        step = ~high if high < 0 else high
        base = self.lower[step + 1]
        wedge = self.upper[step] - base
        while True:
            below = exp_lower(-self.law.exponent(abs(x)), bits + 64) * (1 << (_POINT + bits))
            above = exp_upper(-self.law.exponent(abs(x)), bits + 64) * (1 << (_POINT + bits))
            if (base << bits) + wedge * (u + 1) <= below:
                return True
            if (base << bits) + wedge * u >= above:
                return False
            # Neither bound decides: V is known to more bits, and e(x) as well.
            u = (u << 64) | words.bits(64)
            bits += 64


def _edges(law: StaircaseLaw, width: int) -> tuple[list[int], list[int]]:
    """Return integers below and above 2**256·e(h·width) for h = 0 … H.

    γ is of degree at most 2, so the ratios of neighbouring edges have a constant ratio
    themselves; both recurrences round outwards.
    """
    first = law.exponent(width)
    second = law.exponent(2 * width) - 2 * first
    low_ratio, high_ratio = _fixed(first)
    low_curve, high_curve = _fixed(second)
    low = high = 1 << _POINT
    lower, upper = [low], [high]
    # By the upper edge, so that the tail is below 2**-144 for certain.
    while high >> (_POINT - _CUT):
        # Downwards, and the other one upwards: each recurrence errs to its own side.
        low = (low * low_ratio) >> _POINT
        high = -((-high * high_ratio) >> _POINT)
        lower.append(low)
        upper.append(high)
        low_ratio = (low_ratio * low_curve) >> _POINT
        high_ratio = -((-high_ratio * high_curve) >> _POINT)
    return lower, upper


def _fixed(exponent: Fraction) -> tuple[int, int]:
    low = exp_lower(-exponent, _POINT + 8) * (1 << _POINT)
    high = exp_upper(-exponent, _POINT + 8) * (1 << _POINT)
    # Floor and ceiling: to integers, outwards again.
    return low.numerator // low.denominator, -(-high.numerator // high.denominator)


def _low_bits(count: int, size: int, words: Words) -> npt.NDArray[np.int64]:
    """Return uniform integers of count bits, 1 ≤ count ≤ 62."""
    unit = next(u for u in (8, 16, 32, 64) if count <= u)
    lanes = 64 // unit
    dtype = np.dtype(f"u{unit // 8}")
    low = words.words(-(-size // lanes)).view(dtype)[:size]
    low &= dtype.type((1 << count) - 1)
    return low.view(np.int64) if unit == 64 else low
