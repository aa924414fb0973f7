"""Where the contour of `jumps` cuts, what it costs, and the two bounds that are in doubles.

Notation is that of `jumps`. All here is a guess but for the bound of the body's moment and for
that of J's decay, which are upper sums over cells, raised by more than they err.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither.privacy.engines.search import log_kappa
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import Array, erfc, log_tail, normal_mass

__all__ = ["Cuts", "JumpPlan", "Planner"]


_WIDTHS = (0.05, 0.08, 0.13, 0.2, 0.32, 0.5)
_SHARPER = (1.0, 0.4)
"""Widths of the body's edge, and the other's as parts of them."""

_LEVELS = (0.95, 0.8, 0.6, 0.4, 0.25, 0.12, 0.05)
"""Parts of epsilon up to which a loss may be body."""

_NODES, _FARTHEST = 60_000, 60.0
"""The most nodes of a line, and how far from an edge inner nodes may go."""

_WIDEST = 600
"""How far apart the edges may be, in widths."""

_SPARE = 1e-9
"""What log-bounds in doubles are raised by: themselves, and once more 1 for what is small.

An exponent is a sum of at most six numbers, of up to `_LARGEST` where they matter, within 60 of the
largest exponent: the rest are next to nothing, and so are their errors. The ratio's error is in
its bound; other numbers come of at most ten roundings of themselves, or, a tail's logarithm, of
places of up to 200 over widths of 0.02 or more, some ten roundings of 10^4. With ten more for sums
that is less than 6·20·2e4·2^-53 = 2.7e-10 in all; the sum of up to 10^5 exponentials, and their
logarithm, adds 1.2e-11. The argument of e^l, in a cone of 0.9·pi, is that of a sum of weights whose
logarithms err as exponents do: its sine has summands of one sign, so that it is off by less than
1e-9 of itself.
"""

_LARGEST = 2e4

_HEIGHTS = (1.0, 2.0, 3.5, 5.0, 6.5, 8.0, 10.0)
"""Lines, in widths of the body's edge, on which a bound of J's decay is tried."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """The edges' widths and places, and Chernoff's bound of the body that is cut at ``middle``."""

    v: float
    w: float
    low: float
    middle: float
    high: float
    tilt: float
    moment: float


@dataclass(frozen=True, slots=True)
class JumpPlan:
    """Cuts, tilts, period and sizes: guessed in doubles; what they lead to is proved."""

    cuts: Cuts
    c: float
    right: float
    period: float
    nodes: int
    faded: float
    nats: float
    work: float


def _square(cuts: Cuts) -> float:
    """1 + 1/v² + 1/w²."""
    return 1 + cuts.v**-2 + cuts.w**-2


class Planner:
    """The cheapest way for one total, near one epsilon.

    Parameters
    ----------
    term : SampledGaussianTerm
        The total, where a unit is removed.
    epsilon : float
        Above 0.
    wanted : float
        log of what each error may add.
    """

    def __init__(self, term: SampledGaussianTerm, epsilon: float, wanted: float) -> None:
        self.term, self.start, self.wanted = term, epsilon, wanted
        self._top = term.k * term.a
        # The most that one run can take from the total: no loss is below its negative.
        self._floor = -term.k * math.log1p(-term.rate)

    def best(self, near: Cuts | None = None) -> JumpPlan | None:
        """Of all widths, or of those next to what was best near by."""
        plans = [
            plan
            for width in _WIDTHS
            # Widths change little from one place to the next.
            if near is None or 0.5 * near.v < width < 2 * near.v
            for plan in self._plans(width)
        ]
        return min(plans, key=lambda found: found.work, default=None)

    def place(self, level: float) -> float:
        """The z at which l(z) is ``level``."""
        term = self.term
        if term.k > 1:
            return float(term.place(np.array([level]))[0])
        # log(e^level - 1 + g), without e^level, which may leave the doubles.
        inner = level + math.log(-math.expm1(-level) + term.rate * math.exp(-level))
        return (inner - math.log(term.rate)) / term.a + term.a / 2

    def _plans(self, v: float) -> list[JumpPlan]:
        """What may be done with a width of the body's edge."""
        e, n, wanted = self.start, self.term.count, self.wanted
        for level in _LEVELS:
            middle = self.place(level * e)
            ask = math.log(n) + float(self._log_above(middle)) - wanted
            # Phi(-x) is about e^{-x²/2}: so far from the edge that a body above z_m is rare enough.
            low = middle - v * math.sqrt(2 * max(ask, 2.0))
            tilt, moment = self._body(low, middle, v)
            # The highest level at which all body adds next to nothing: more body is less to
            # integrate.
            if n * moment + float(log_kappa(tilt)) - tilt * e <= wanted:
                break
        else:
            return []
        last = self.place(e + n * self._floor)
        ask = math.log(n) + e - last * last / 2 - wanted
        plans = []
        for part in _SHARPER:
            w = part * v
            high = last + max(w * math.sqrt(2 * max(ask, 2.0)), w * w * last + w)
            cuts = Cuts(v, w, low, middle, high, tilt, moment)
            plan = self._planned(cuts)
            if plan is not None:
                plans.append(plan)
        return plans

    def _planned(self, cuts: Cuts) -> JumpPlan | None:
        term, e, n, wanted = self.term, self.start, self.term.count, self.wanted
        first, last = cuts.low - 12 * cuts.v, cuts.high + 12 * cuts.w
        # Too many inner nodes, as their step is a part of the narrower width.
        if last - first > _WIDEST * cuts.w:
            return None
        z = np.linspace(first, last, 1 + math.ceil((last - first) / min(cuts.w / 2, 0.1)))
        ratio, step = term.log_ratio(z)[0], z[1] - z[0]
        f = self._log_weight(z, z, cuts) - z * z / 2 + math.log(step / math.sqrt(2 * math.pi))
        tilts = np.geomspace(0.2 / e, 1000 / e + 40, 48)
        g = (1 + tilts[:, None]) * ratio + f
        top = g.max(axis=1)
        jump = top + np.log(np.exp(g - top[:, None]).sum(axis=1))
        body = self._log_body(1 + tilts, cuts)
        # A tilt makes a hump of an edge's tail, which had better be small.
        far = np.linspace(last, last + 1.2 * _FARTHEST, 160)
        over = (1 + tilts[:, None]) * term.log_ratio(far)[0] - far * far / 2
        ends = (over + self._log_weight(far, far, cuts)).max(axis=1)
        over = (over + log_tail((far - cuts.low) / cuts.v)).max(axis=1)
        # Where exponentials stay in the doubles, and the edges' tails make no hump.
        useful = (jump < 300.0) & (body < 300.0) & (ends < top - 40) & (over < -40)
        useful &= (1 + tilts) * self._top * max(cuts.v, cuts.w) ** 2 < _FARTHEST
        rest = n * np.maximum(np.logaddexp(body, jump), 0.0)
        lead = np.where(useful, math.log(n) + jump + rest - tilts * e, np.inf)
        mass = math.log(n) + float(np.logaddexp.reduce(ratio + f))
        best, score = None, math.inf
        for i in np.flatnonzero(useful[:-1]).tolist():
            rights = lead[i + 1 :] + log_kappa(tilts[i + 1 :]) - wanted
            spans = np.maximum(rights, 1.0) / (tilts[i + 1 :] - tilts[i])
            k = int(np.argmin(spans))
            period = max((mass - wanted) / tilts[i], float(spans[k])) * 1.01
            worth = period * math.sqrt(max(lead[i] - wanted, 20.0))
            if math.isfinite(worth) and worth < score:
                best, score = (i, i + 1 + k, period), worth
        if best is None:
            return None
        i, right, period = best
        c, nats = float(tilts[i]), max(float(lead[i]) - wanted, 20.0) + 4
        ends = (4.0, float(_NODES))
        faded = math.inf
        for _ in range(3):
            grid = 2 * math.pi / period * np.unique(np.geomspace(ends[0], ends[1], 9).astype(int))
            fade = self._fade(c, grid, cuts)
            good = np.flatnonzero(lead[i] + fade - jump[i] - np.log(math.pi * grid) < wanted)
            if not good.size:
                return None
            nodes, faded = round(grid[good[0]] * period / (2 * math.pi)), float(fade[good[0]])
            ends = (max(4.0, grid[max(good[0] - 1, 0)] * period / (2 * math.pi)), float(nodes))
        fine, coarse = (self.rule(cuts, nats, kind)[0] for kind in (True, False))
        end = self.last(c, cuts)
        inner = (end - first) / fine + (cuts.low + 12 * cuts.v + 10) / coarse
        return JumpPlan(
            cuts, c, float(tilts[right]), period, nodes, faded, nats, inner * (nodes + 60)
        )

    def _log_body(self, power: Array, cuts: Cuts) -> Array:
        """log of B, near enough."""
        end = cuts.low + 14 * cuts.v
        z = np.linspace(-9.0, end, 1 + math.ceil((end + 9.0) / min(cuts.v, 0.1)))
        f = log_tail((z - cuts.low) / cuts.v) - z * z / 2
        f += math.log((z[1] - z[0]) / math.sqrt(2 * math.pi))
        g = power[:, None] * self.term.log_ratio(z)[0] + f
        top = g.max(axis=1)
        result: Array = top + np.log(np.exp(g - top[:, None]).sum(axis=1))
        return result

    def _log_above(self, z: float) -> Array:
        """log P(Z > z), near enough."""
        j = np.arange(self.term.k + 1)
        x = z - j * self.term.a
        logs = np.where(x > 0, -x * x / 2 - np.log(2 + 2.5 * np.maximum(x, 0)), 0.0)
        result: Array = np.logaddexp.reduce(np.log(self.term.weights) + logs)
        return result

    @staticmethod
    def _log_weight(left: Array, right: Array, cuts: Cuts) -> Array:
        """log of the largest j(z) between left and right."""
        result: Array = log_tail((cuts.low - right) / cuts.v)
        result += log_tail((left - cuts.high) / cuts.w)
        return result

    def _body(self, low: float, middle: float, v: float) -> tuple[float, float]:
        """A tilt, and an upper bound of the log-moment there of the body that is cut at z_m."""
        # Below -40 there is no mass that a double holds.
        edges = np.concatenate([[-40.0], np.linspace(-9.0, max(middle, -8.0), 400)])
        mass, error, below, _ = normal_mass(edges, 0.0, 1.0)
        # Each cell's mass rounded up, with the largest weight on it, at its left end.
        most = (mass + error) * 0.5 * erfc((edges[:-1] - low) / (v * math.sqrt(2))) + 1e-300
        # l grows with z: its right end, and what that errs by, bound it on the cell.
        ratio = np.add(*self.term.log_ratio(edges[1:]))
        tilts = np.geomspace(5.0, 4e4, 40) / self.start
        logs = (1 + tilts)[:, None] * ratio + np.log(most)
        top = logs.max(axis=1)
        moment = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        # Tilted, what lies below the cells is no more than it was.
        moment = np.logaddexp(moment, math.log(below + 1e-300)) + _SPARE * (1 + np.abs(moment))
        # What is e^-60 of the largest may err as it likes.
        near = logs > top[:, None] - 60
        large = np.where(near, np.abs((1 + tilts)[:, None] * ratio), 0.0).max(axis=1) > _LARGEST
        # Beyond what `_SPARE` was derived for no bound is claimed.
        moment[large] = np.inf
        value = self.term.count * moment - tilts * self.start
        i = int(np.argmin(value))
        return float(tilts[i]), float(moment[i])

    def _fade(self, c: float, u: Array, cuts: Cuts) -> Array:
        """log of a bound of |J(c + iy)| for all y >= u."""
        term, square = self.term, _square(cuts)
        first, last = cuts.low - 14 * cuts.v, self.last(c, cuts)
        if last - first > 2 * _WIDEST * cuts.w:
            return np.full_like(u, np.inf)
        z = np.linspace(first, last, 1 + math.ceil((last - first) / min(cuts.w / 4, 0.05)))
        ratio, off = term.log_ratio(z)
        # phi is largest on a cell where |z| is least: at an end, or at 0 inside it.
        most = -0.5 * np.where(z[:-1] * z[1:] > 0, np.minimum(z[:-1] ** 2, z[1:] ** 2), 0.0)
        f = most + (1 + c) * (ratio + off)[1:] + self._log_weight(z[:-1], z[1:], cuts)
        f += math.log((z[1] - z[0]) / math.sqrt(2 * math.pi))
        top = float(f.max())
        near = f > top - 60
        # Beyond what `_SPARE` was derived for no bound is claimed.
        if not max(np.abs((1 + c) * ratio[1:][near]).max(), z[-1] ** 2, z[0] ** 2) < _LARGEST:
            return np.full_like(u, np.inf)
        mass = np.exp(f - top)
        ends = np.exp(min(self._beyond(c, cuts, first, last) - top, 700.0))
        j = np.arange(term.k + 1)[:, None]
        with np.errstate(divide="ignore"):
            share = np.log(term.weights)[:, None] + j * term.a * z[None, :-1]
        # A summand's share of e^l is at most 1: rounding must not make it more.
        size = np.exp(np.minimum(share - 0.5 * (j * term.a) ** 2 - ratio[:-1], 0.0))
        best = np.full_like(u, np.inf)
        for part in _HEIGHTS:
            # arg e^l stays below pi, where it still grows with Re z.
            y = min(part * cuts.v, 0.9 * math.pi / self._top)
            theta = j * (term.a * y)
            turn = np.arctan2((size * np.sin(theta)).sum(0), (size * np.cos(theta)).sum(0))
            # The angle at a cell's left end, its least; what it errs by is taken off.
            whole = (np.exp(-np.outer(u, turn * (1 - _SPARE))) * mass).sum(axis=1) + ends
            best = np.minimum(best, np.log(whole) + y * y * square / 2)
        result: Array = top + best + _SPARE * (1 + np.abs(top + best))
        return result

    def last(self, c: float, cuts: Cuts) -> float:
        """Where nodes may end: beyond the hump that the tilt makes of the far side's tail."""
        square = cuts.w**2
        hump = (cuts.high + (1 + c) * self._top * square) / (1 + square)
        return max(cuts.high, hump) + 14 * cuts.w

    def _beyond(self, c: float, cuts: Cuts, first: float, last: float) -> float:
        """log of a bound of J's integral below and above the ends, in doubles."""
        at = np.add(*self.term.log_ratio(np.array([first, last])))
        gaps = (cuts.low - first) / cuts.v, (last - cuts.high) / cuts.w
        rates = gaps[0] / cuts.v - first, gaps[1] / cuts.w + last - (1 + c) * self._top
        # Unless the exponent falls beyond both ends nothing bounds what is left there.
        if not (min(rates) > 0 and (1 + c) * at[1] < _LARGEST):
            return math.inf
        logs = [
            max((1 + c) * level, -_LARGEST) - x * x / 2 - gap * gap / 2 - math.log(2 * rate)
            for level, x, gap, rate in zip(at.tolist(), (first, last), gaps, rates, strict=True)
        ]
        return float(np.logaddexp(*logs))

    def rule(self, cuts: Cuts, nats: float, jump: bool) -> tuple[float, float]:
        """The inner rule's step, a short binary number, and its height."""
        square = _square(cuts) if jump else 1 + cuts.v**-2
        # Higher lines allow wider steps, until the growth e^{2y²·square} outweighs them.
        y = min(math.sqrt(nats / (2 * square)), 0.49 * math.pi / self._top)
        mantissa, exponent = math.frexp(2 * math.pi * y / (nats + 2 * y * y * square))
        # Eight bits, so that every node is exact; downwards, as a smaller step errs less.
        step = math.ldexp(math.floor(mantissa * 256), exponent - 8)
        return step, math.ldexp(round(math.ldexp(y, 30)), -30)
