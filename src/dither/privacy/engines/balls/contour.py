"""The contour quadrature of `contour` in ball arithmetic: slower, and as sharp as is asked for.

On a line Re t = c the sum Σ_j delta(epsilon + jP)·e^{cjP} loses e^{K(c) - c·epsilon}/delta to
cancellation, and a heavy tail, the mark of few or sparse samples, makes that 10²⁰ on the lines that
have short periods. Doubles then know nothing; balls of some more bits know everything. What is
charged, and how it is proved:

* *Aliases to the left.* By delta(-x) = 1 - e^{-x} + e^{-x}·delta'(x), delta' of the swapped pair,
  all of them are known up to small ones: with Chernoff's bound of delta' at a tilt c' >= 0 ::

      Σ_{j>=1} e^{-cjP}·delta(epsilon - jP)
          = 1/(e^{cP} - 1) - e^epsilon/(e^{(1+c)P} - 1)
            + [0, kappa(c')·M'(c')·e^{(1+c')·epsilon}/(e^{(1+c+c')P} - 1)]

  So the line may lie as low as one likes: a shorter period costs digits, not nodes.
* *Aliases to the right* are at most kappa(c')·M(c')·e^{-c'·epsilon}/(e^{(c'-c)P} - 1), c' > c.
* *Truncation* as in `contour`. Each law's bound of its decay is computed in doubles and holds as it
  is; what remains are products and the sum, a few roundings of their own size.
* *Rounding and inner quadrature* are in the balls.

The interval is sound at every epsilon, and tight near the one that it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.numeric._balls import Ball, PowerSum, library, log_ends, precision
from dither.privacy.engines.balls.laws import Law, kappa, law_of
from dither.privacy.engines.search import log_kappa
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["BallContour", "laws_of"]


_COARSER = 1e3
"""By how much what truncation and aliases may add grows, where the line would be dear."""

_DEAR = 5e5

_PARTS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)
"""Where the line may lie, as parts of the tilt of the best Chernoff bound."""

_NODES = 60_000

_PERIODS = 220
"""Lengths that a period may have, a tenth apart: up to a thousand million of the first."""


def laws_of(terms: Sequence[Term]) -> list[Law] | None:
    """Every term's law in balls, if all have one."""
    found = [law_of(term) for term in terms]
    known = [law for law in found if law is not None]
    return known if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A line, its period, its last node, the tilts that bound its aliases, and what it costs."""

    c: float
    period: float
    nodes: int
    bits: int
    work: float
    right: float
    left: float


class BallContour:
    """A proved two-sided profile.

    Parameters
    ----------
    laws : sequence of Law
        The total.
    epsilon, log_delta : float
        About where the profile will be asked, and about what it is there.
    tilt : float
        That of about the best Chernoff bound there.
    tolerance : float
        What truncation and aliases may add, relative to delta.
    dearest : float
        Summands of all inner quadratures beyond which nothing is done: ``work`` says how many there
        would be.
    """

    name = "contour quadrature in ball arithmetic"

    def __init__(
        self,
        laws: Sequence[Law],
        *,
        epsilon: float,
        log_delta: float,
        tilt: float,
        tolerance: float = 1e-13,
        dearest: float = 6e6,
    ) -> None:
        self.start, self.certified, self.work = epsilon, False, math.inf
        self._laws, self._swapped = laws, [law.swapped() for law in laws]
        self._log_size = log_delta
        # A line with the tolerance that was asked for, and a coarser one where that is dear.
        plan = None
        for coarse in (tolerance, _COARSER * tolerance):
            if plan is None or plan.work > _DEAR:
                plan = self._planned(tilt, log_delta + math.log(coarse))
        if plan is None:
            return
        self.work = plan.work
        if plan.work > dearest:
            return
        self.c, self._period = plan.c, plan.period
        with precision(plan.bits) as flint:
            arb, acb = flint.arb, flint.acb
            step = 2 * arb.pi() / arb(plan.period)
            # The step is a double: the period is what it makes it.
            self._step = float(step)
            self._bits = plan.bits
            values = [acb(1)] * (plan.nodes + 1)
            for law in laws:
                # Twenty bits go to the products and sums that follow.
                line = law.line(self.c, self._step, plan.nodes + 1, plan.bits - 20)
                values = [v * x for v, x in zip(values, line, strict=True)]
            points = [acb(self.c, arb(self._step) * j) for j in range(plan.nodes + 1)]
            values = [v / (t * (1 + t)) for v, t in zip(values, points, strict=True)]
            # The node on the real line counts once, every other one for its conjugate too.
            values[0] /= 2
            self._sum = PowerSum(values)
            self._line_bounds(plan)
        self.certified = True

    def _moments(self, laws: Sequence[Law], c: Array) -> Array:
        total = np.zeros_like(c)
        for law in laws:
            total = total + law.term.log_moment(c)
        return total

    def _planned(self, tilt: float, wanted: float) -> _Plan | None:
        """The cheapest line, judged in doubles."""
        reach = min(law.term.reach for law in self._laws)
        far = min(3.0 * tilt, reach)
        tilts = np.geomspace(0.02 * tilt, max(far, 1.01 * tilt), 48)
        # The swapped pair may have a tail where this one has none.
        back = min([0.02 * tilt, *(law.term.reach for law in self._swapped)])
        lefts = np.geomspace(back, min([far, *(law.term.reach for law in self._swapped)]), 48)
        with np.errstate(over="ignore", invalid="ignore"):
            right = self._moments(self._laws, tilts) + log_kappa(tilts)
            left = self._moments(self._swapped, lefts) + log_kappa(lefts)
        tilts, right = tilts[np.isfinite(right)], right[np.isfinite(right)]
        lefts, left = lefts[np.isfinite(left)], left[np.isfinite(left)]
        if not lefts.size:
            return None
        e = self.start
        best: _Plan | None = None
        for part in _PARTS:
            c = tilt * part
            lead = float(self._moments(self._laws, np.array([c]))[0]) - c * e
            # Next to c itself an alias is proved small by an endless period alone.
            higher = tilts > 1.001 * c
            if not higher.any() or not math.isfinite(lead):
                continue

            def alias(
                period: float, c: float = c, higher: Array = higher
            ) -> tuple[float, float, float]:
                gap = (tilts[higher] - c) * period
                up_side = right[higher] - tilts[higher] * e - _log_expm1(gap)
                low_side = left + (1 + lefts) * e - _log_expm1((1 + c + lefts) * period)
                # c' = 0: delta' is a chance, at most 1.
                plain = e - float(_log_expm1(np.array([(1 + c) * period]))[0])
                i, j = int(np.argmin(up_side)), int(np.argmin(low_side))
                most = float(np.logaddexp(up_side[i], min(plain, low_side[j])))
                return most, float(tilts[higher][i]), float(lefts[j])

            # The shortest of a geometric grid of periods; aliases fall with the period.
            few, many = -1, _PERIODS
            while many - few > 1:
                middle = (few + many) // 2
                if alias(1e-3 / c * 1.1**middle)[0] > wanted:
                    few = middle
                else:
                    many = middle
            period = 1e-3 / c * 1.1**many
            found = alias(period)
            # A line is of no use whose end is not proved.
            last = self._last(c, lead, wanted, period)
            if last is None or found[0] > wanted:
                continue
            # What the left aliases add, and what cancels on the line, are digits to carry.
            lost = max(lead, -math.log(-math.expm1(-c * period)) - c * period, self._log_size)
            bits = 70 + math.ceil(max(lost - self._log_size, 0.0) / math.log(2))
            # A power of so many repetitions loses as many bits.
            bits += 2 * max(1, max(law.term.count for law in self._laws)).bit_length()
            work = last * sum(law.work(c, bits) for law in self._laws) + 1.0
            if best is None or work < best.work:
                best = _Plan(c, period, last, bits, work, *found[1:])
        return best

    def _last(self, c: float, lead: float, wanted: float, period: float) -> int | None:
        """The first node beyond which little is left."""
        step = 2 * math.pi / period
        u = step * np.unique(np.geomspace(4, _NODES, 120).astype(int))
        fade = lead - np.log(math.pi * u) + self._faded(c, u)
        good = np.flatnonzero(fade < wanted)
        return math.ceil(u[good[0]] / step) if good.size else None

    def _faded(self, c: float, u: Array) -> Array:
        total = np.zeros_like(u)
        for law in self._laws:
            total = total + law.fade(c, u)
        return total

    def _line_bounds(self, plan: _Plan) -> None:
        """In balls, what does not depend on epsilon: the line's end and the aliases."""
        arb = library().arb
        self._period_ball = 2 * arb.pi() / arb(self._step)
        # A little before the next node: bounds of what decays do not increase, and the place rounds
        # twice. A Gaussian's -v·u²/2 rounds four times, and the sum of numbers of one sign once a
        # law.
        at = self._step * (plan.nodes + 1) * (1 - 4 * EPS)
        faded = float(self._faded(plan.c, np.array([at]))[0])
        faded *= 1 - EPS * (8 + len(self._laws))
        size = self._moment(self._laws, plan.c)
        # Terms from the next node on: Σ step/u² <= 1/u of the last.
        last = arb(self._step) * plan.nodes
        # A transform is nowhere larger than on the real line, whatever the bound of its decay says.
        self._cut = size * arb(min(faded, 0.0)).exp() / (arb.pi() * last)
        self._right, self._left = plan.right, plan.left
        self._right_size = self._moment(self._laws, self._right) * kappa(self._right)
        self._left_size = self._moment(self._swapped, self._left) * kappa(self._left)

    def _moment(self, laws: Sequence[Law], c: float) -> Ball:
        total = library().arb(1)
        for law in laws:
            # A bound of what is small to begin with needs few digits.
            total *= law.moment(c, 40 + law.term.count.bit_length())
        return total

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon); the lower one may be -inf."""
        with precision(self._bits) as flint:
            arb, acb = flint.arb, flint.acb
            e, c, period = arb(epsilon), arb(self.c), self._period_ball
            turn = acb(0, -arb(self._step) * e).exp()
            scale = (-c * e).exp()
            total = scale * arb(self._step) / arb.pi() * self._sum(turn)
            # The part of the left aliases that is known is taken off; what it leaves is at least 0.
            total -= 1 / (c * period).expm1() - e.exp() / ((1 + c) * period).expm1()
            cut = (scale * self._cut).upper()
            right = self._right_size * (-self._right * e).exp()
            right /= ((self._right - c) * period).expm1()
            plain = e.exp() / ((1 + c) * period).expm1()
            left = self._left_size * ((1 + self._left) * e).exp()
            left /= ((1 + c + self._left) * period).expm1()
            # Two bounds of the same rest.
            least = plain if plain < left else left
            # Aliases are at least 0: only the lower end gives them up.
            low = total - cut - (right + least).upper()
            high = total + cut
            return log_ends(low, high)


def _log_expm1(x: Array) -> Array:
    """log(e^x - 1), for the planning alone."""
    with np.errstate(over="ignore", divide="ignore"):
        value: Array = np.where(x > 30, x, np.log(np.expm1(np.minimum(x, 30.0))))
    return value
