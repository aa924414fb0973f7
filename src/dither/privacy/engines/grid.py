"""Any losses on one grid: a law that dominates the true one, and one that it dominates.

*Pessimistic.* The mass (p, q) of a cell (l, l + h] goes to its two ends so that both P's and Q's
mass are kept: b = (p - q·e^l)/(1 - e^{-h}) to the upper end, p - b to the lower. This undoes a
post-processing, so the new pair is at least as easy to tell apart [1]_. Mass above the grid goes to
infinity, below it to the lowest point.

*Optimistic.* A cell is merged into one outcome of loss log(p/q): post-processing. That value lies
near the cell's middle; all of them are then lowered onto one lattice middle + d, with the shift d
that loses least. Lowering losses lowers delta. Mass outside the grid is dropped or lowered.

Both err by O(h²) a repetition, and are composed by `lattice`.

*Rare large losses.* A sparse sample's loss has a tail a thousand times as long as its body. Where
every loss has a lower end, of sum -F over all repetitions, the grid may end at cap + F: call what
lies above a hit. Once there is one, the total is above cap whatever the others are, so at any
epsilon <= cap the hits contribute exactly Pr_P[hit] - e^epsilon·Pr_Q[hit], and the grid holds what
is left, a body that is short. Above cap that difference is only a lower end, and Pr_P[hit] an upper
one. A law whose grid ends below cap + F by itself has no hits: what lies above its grid goes to
infinity. In the other direction, where the total of the upper ends is T, a loss below -T leaves no
positive total, so that it matters not how far below it is.

References
----------
.. [1] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter discrete
   approximations of privacy loss distributions", PoPETs 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.privacy.engines.lattice import LatticeEngine, LatticeLaw
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.term import EPS, Array, LawCells, Term

__all__ = ["Grid", "moment_ends", "pessimistic_law"]


# Of all laws together. A wider spacing is as sound, and only less sharp.
_CELLS = 1 << 18

_WIDEST = 100.0
"""Cells so wide that e^h times a mass may leave the doubles lend each other nothing."""


@dataclass(frozen=True, slots=True)
class _Hits:
    """The chance of a loss above its grid: ends of it under P, under Q, and of the difference."""

    p_low: float
    p_high: float
    q_low: float
    q_high: float
    least: float
    most: float


class Grid:
    """A certified two-sided profile of any terms, from two composed grids."""

    name = "tilted FFT on a pessimistic and an optimistic grid"

    def __init__(
        self,
        terms: Sequence[Term],
        *,
        log_delta: float | None,
        epsilon: float | None,
        points: int = 1 << 15,
        tilt: float | None = None,
        cap: float | None = None,
    ) -> None:
        singles = [pair for term in terms for pair in term.singles()]
        # Only a size for what may be cut: whatever is cut is charged.
        rough = log_delta if log_delta is not None else -30.0 - 2.0 * float(epsilon or 0.0)
        repeats = sum(count for _, count in singles)
        # What is cut at the ends of one law, over all repetitions, is 1e-16 of delta.
        tail = math.exp(max(rough - 37.0, -680.0)) / repeats
        most = sum(term.top() for term in terms)
        ends = [term.ends(tail) for term, _ in singles]
        if math.isfinite(most):
            # Below -most one loss keeps the whole below 0; but a law may be joined at 0.
            least = min(-most, 0.0)
            ends = [(max(low, min(least, high - 1e-6 * abs(high))), high) for low, high in ends]
        # Any end of a grid proves something: these parts of it only keep the grid from being empty.
        ends = [(min(low, high - 1e-9 * abs(high) - 1e-290), high) for low, high in ends]
        floor = sum(count * max(0.0, -term.least()) for term, count in singles)
        self._cap = -math.inf
        target = {"log_delta": log_delta, "epsilon": epsilon}
        if cap is None and math.isfinite(floor):
            cap = self._guided(singles, ends, target, tilt)[0].start
        # No hits, unless there are both a cap and a floor under all losses.
        end = math.inf
        if cap is not None and math.isfinite(floor):
            # No less than cap + F, with a product and a sum a law and the few of this line.
            end = cap + floor + EPS * (4 + 2 * len(singles)) * (abs(cap) + floor)
            if any(high > end for _, high in ends):
                ends = [(low, min(high, max(end, low + 1e-9 * abs(low)))) for low, high in ends]
                self._cap = cap
                # What is left is asked at the cap, so that its tilt is for there.
                target = {"log_delta": None, "epsilon": cap}
        first, guide, coarse = self._guided(singles, ends, target, tilt)
        width = self._width(first, guide)
        spacing = max(width / points, max(high - low for low, high in ends) / (8 * points))
        # Any spacing proves something; one this fine has too many points.
        spacing = max(spacing, 1e-5 * coarse)
        gaps = [(count, term.anchors()[1]) for term, count in singles if term.anchors()[1] > 0]
        if gaps and max(gaps)[1] >= spacing:
            # The commonest law's two atoms fall on its grid.
            gap = max(gaps)[1]
            spacing = gap / math.ceil(gap / spacing)
        total = sum(high - low for low, high in ends)
        self.spacing = spacing if total / spacing <= _CELLS else total / _CELLS
        # A tilt that is poor for the lower grid makes it loose, not wrong.
        up, down = self._laws(singles, ends, self.spacing, first.c)
        self.start = first.start if self._cap == -math.inf else self._cap
        laws = [law for law, _ in up]
        self.upper = LatticeEngine(laws, self.spacing, tilt=tilt, **target)
        # Of laws whose every mass is within its error nothing is known from below.
        known = all(law.masses.any() for law in down)
        self.lower = LatticeEngine(down, self.spacing, **target) if known else None
        # Atoms are off by their position, so that delta is read as far to the side that errs.
        self._shift = sum(
            count * term.position for term, count in singles if isinstance(term, AtomTerm)
        )
        hits = [self._cap > -math.inf and top >= end for top in self._tops]
        # 1 - Π(1 - above): a loss above any grid that has no hits is taken for infinite.
        lost = sum(
            law.count * _log_rest(above)
            for (law, above), hit in zip(up, hits, strict=True)
            if not hit
        )
        self._cut = -math.expm1(lost) * (1 + EPS * (8 + len(singles)))
        if self._cap > -math.inf:
            pairs = zip(singles, self._tops, hits, strict=True)
            self._hits = self._hit([(one, top) for one, top, hit in pairs if hit])
        self.certified = self.upper.certified and (self.lower is None or self.lower.certified)

    def _guided(
        self,
        singles: Sequence[tuple[Term, int]],
        ends: Sequence[tuple[float, float]],
        target: dict[str, float | None],
        tilt: float | None,
    ) -> tuple[LatticeEngine, list[tuple[LatticeLaw, float]], float]:
        """A coarse composition, to learn the tilt and the width."""
        # Nothing that is learnt from it is trusted: a tilt and a width.
        coarse = max(high - low for low, high in ends) / 2048
        guide = self._laws(singles, ends, coarse)[0]
        laws = [law for law, _ in guide]
        return LatticeEngine(laws, coarse, tilt=tilt, **target), guide, coarse

    @staticmethod
    def _hit(singles: Sequence[tuple[tuple[Term, int], float]]) -> _Hits:
        """Ends of the chance that any loss lies above its grid, which ends at cap + F or above."""
        logs, gaps, known = [0.0, 0.0, 0.0, 0.0], [0.0, 0.0], True
        for (term, count), end in singles:
            # Next to nothing lies beyond, and is charged: of Q no more than of P, as losses there
            # are above 0, and 1e-299 for masses that underflow.
            far = max(term.ends(1e-300)[1], end, 0.0) * (1 + 1e-6) + 1e-6
            # One cell holds all hits, so that p and q are two masses and no sums.
            cells = term.cells(np.array([end, far]))
            p, q = float(cells.p[0]), float(cells.q[0])
            p_off, q_off = float(cells.p_error[0]), float(cells.q_error[0])
            # Edges were mapped with rounding: the mass next to the end may be on either side. Twice
            # what this edge, or one a billionth above it, is off by; and what these here round by.
            off = 2 * term.cells(np.array([end, end + 1e-9 * abs(end)])).position
            off += 8 * EPS * abs(end)
            near = term.cells(np.array([end - off, end + off]))
            p_off += float(near.p[0] + near.p_error[0])
            q_off += float(near.q[0] + near.q_error[0])
            beyond = cells.above + 1e-299
            ends = (p - p_off, p + p_off + beyond, q - q_off, q + q_off + beyond)
            # Π(1 - mass)^count as a sum of logarithms keeps the digits of small masses.
            for i, value in enumerate(ends):
                logs[i] += count * _log_rest(value)
            # Without p - q as a number of its own the plain difference is all that is known.
            if cells.apart is None or cells.apart_error is None or near.apart is None:
                known = False
                continue
            doubt = beyond + float(cells.apart_error[0]) + float(np.abs(near.apart[0]))
            doubt += float(near.apart_error[0]) if near.apart_error is not None else 0.0
            # (1 - p)/(1 - q) = 1 - (p - q)/(1 - q)
            for i, gap in enumerate((-doubt, doubt)):
                # Losses above the grid are above 0, so that p >= q there.
                gap = max(float(cells.apart[0]) + gap, 0.0)
                # The larger end has the smaller divisor, and the smaller one the larger.
                rest = 1 - max(q + (q_off if i else -q_off), 0.0)
                gaps[i] += count * _log_rest(gap / rest if rest > 0 else 1.0)
        p_low, p_high, q_low, q_high = (-math.expm1(x) for x in logs)
        # A term's logarithm, product and sum, and a quotient; 1 - e^-x errs by no more of itself
        # than x does, and by 2 roundings.
        off = EPS * (8 + len(singles))
        ends = (
            p_low * (1 - off),
            p_high * (1 + off),
            q_low * (1 - off),
            q_high * (1 + off),
        )
        if not known:
            # Ends that say nothing of the difference: it is taken from p and q.
            return _Hits(*ends, 0.0, math.inf)
        # Π(1 - q) - Π(1 - p) = Π(1 - q)·(1 - Π(1 - p)/(1 - q)).
        low, high = -math.expm1(gaps[0]), -math.expm1(gaps[1])
        # An exponential errs by its argument's error; one below e^-700 is taken for that, or for 0.
        rest = max(logs[2], -700.0)
        most = math.exp(rest) * high * (1 + off * (1 - rest))
        least = math.exp(logs[3]) * low * (1 - off * (1 - logs[3])) if logs[3] > -700 else 0.0
        return _Hits(*ends, least, most)

    @staticmethod
    def _width(first: LatticeEngine, guide: Sequence[tuple[LatticeLaw, float]]) -> float:
        """Twenty deviations of the tilted sum, or its whole range where that is less."""
        deviation, whole = 0.0, 0.0
        for law, _ in guide:
            index = np.arange(len(law.masses)) * first.spacing
            with np.errstate(divide="ignore"):
                z = np.log(law.masses) + first.c * index
            weight = np.exp(z - z.max())
            weight /= weight.sum()
            # In parts of the range, whose square may be beyond the doubles.
            span = float(index[-1])
            part = index / span
            mean = float((weight * part).sum())
            variance = law.count * float((weight * (part - mean) ** 2).sum())
            deviation = math.hypot(deviation, span * math.sqrt(variance))
            whole += law.count * span
        return min(20 * deviation, whole)

    def _laws(
        self,
        singles: Sequence[tuple[Term, int]],
        ends: Sequence[tuple[float, float]],
        h: float,
        tilt: float = 1.0,
    ) -> tuple[list[tuple[LatticeLaw, float]], list[LatticeLaw]]:
        up, down, self._tops = [], [], []
        for (term, count), (low, high) in zip(singles, ends, strict=True):
            anchor = term.anchors()[0]
            # Two points to spare on either side, so that rounding a quotient cuts nothing.
            first = math.floor((low - anchor) / h) - 2
            last = math.ceil((high - anchor) / h) + 2
            # Half cells serve both grids: pessimistic points lie on even edges.
            edges = anchor + (h / 2) * np.arange(2 * first, 2 * last + 1)
            cells = term.cells(edges)
            self._tops.append(float(edges[-1]))
            up.append(_pessimistic(cells, edges, h, count))
            down.append(_optimistic(cells, edges, h, count, tilt))
        return up, down

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of the finite part's delta(epsilon)."""
        # delta falls with epsilon: an upper end is read further down, a lower one further up.
        high = self.upper.bounds(epsilon - self._shift)[1]
        low = self.lower.bounds(epsilon + self._shift)[0] if self.lower else -math.inf
        if self._cut > 0:
            high = float(np.logaddexp(high, math.log(self._cut))) + 4 * EPS * (1 + abs(high))
        if self._cap == -math.inf:
            return low, high
        hits = self._hits
        # Cut at 700 it is still safe: q_high is 1e-299 at least, so that the lower end is 0 there.
        grown, rise = math.exp(min(epsilon, 700.0)), math.expm1(min(epsilon, 700.0))
        # An exponential, a product and a difference: 3 halves of EPS, and what differences leave.
        off = 4 * EPS
        least = hits.p_low * (1 - off) - grown * hits.q_high * (1 + off)
        # p - e^epsilon·q = (p - q) - (e^epsilon - 1)·q, which keeps digits where p and q are close.
        least = max(0.0, least, hits.least * (1 - off) - rise * hits.q_high * (1 + off))
        most = hits.p_high
        # Above the cap one hit need not suffice: then only its chance under P bounds what it adds.
        if epsilon <= self._cap:
            most = most * (1 + off) - grown * hits.q_low * (1 - off)
            most = min(most, hits.most * (1 + off) - rise * hits.q_low * (1 - off))
        if least > 0:
            low = float(np.logaddexp(low, math.log(least)))
        # 1e-300 is for differences that underflow.
        high = float(np.logaddexp(high, math.log(max(most, 1e-300))))
        return low - 4 * EPS * (1 + abs(low)), high + 4 * EPS * (1 + abs(high))


def _log_rest(mass: float) -> float:
    """log(1 - mass), -inf where nothing is left."""
    return math.log1p(-max(mass, 0.0)) if mass < 1 else -math.inf


def _pairs(values: Array) -> Array:
    result: Array = values[0::2] + values[1::2]
    return result


def _pessimistic(cells: LawCells, edges: Array, h: float, count: int) -> tuple[LatticeLaw, float]:
    p, q = _pairs(cells.p), _pairs(cells.q)
    p_error, q_error = _pairs(cells.p_error), _pairs(cells.q_error)
    left = edges[0:-1:2]
    # Used where |left| < 0.5 alone; elsewhere it would overflow for nothing.
    rise = np.expm1(np.clip(left, -0.5, 0.5))
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.exp(np.minimum(left, 700.0))
        # The module's b; what p and q err by, the factor e^left included, is its doubt.
        b = (p - q * scale) / -math.expm1(-h)
        doubt = (p_error + scale * q_error + 8 * EPS * (1 + np.abs(left)) * (p + q * scale)) / (
            -math.expm1(-h)
        )
        if cells.apart is not None and cells.apart_error is not None:
            apart, apart_error = _pairs(cells.apart), _pairs(cells.apart_error)
            lost = apart_error + np.abs(rise) * q_error
            lost += 8 * EPS * (np.abs(apart) + np.abs(rise) * q)
            close = np.abs(left) < 0.5
            # Near 0 it is (p - q) - q·(e^l - 1), where p - q·e^l would have lost its digits.
            b = np.where(close, (apart - q * rise) / -math.expm1(-h), b)
            doubt = np.where(close, lost / -math.expm1(-h), doubt)
        # Mass that moves to the upper end only raises delta: so up by the doubt, and all if
        # unknown.
        b = np.where(np.isfinite(b + doubt), b + doubt, np.inf)
    b = np.clip(b, 0.0, p + p_error)
    a = p + p_error - b
    masses = np.zeros(len(p) + 1)
    masses[:-1] += a
    masses[1:] += b
    # Raised to the lowest point, which can only raise delta.
    masses[0] += cells.below
    # A lattice point is a multiple of h: its rounding is charged with the law's positions.
    law = LatticeLaw(float(left[0]), masses, count, 8 * EPS, cells.position)
    return law, cells.above


def _optimistic(cells: LawCells, edges: Array, h: float, count: int, tilt: float) -> LatticeLaw:
    # Cells around multiples of h: the odd edges are their ends.
    p, q = _pairs(cells.p[1:-1]), _pairs(cells.q[1:-1])
    p = np.maximum(p - _pairs(cells.p_error[1:-1]), 0.0)
    # P's mass down and Q's up give a loss that is too low, if anything: a lower bound of delta.
    q = q + _pairs(cells.q_error[1:-1])
    # The last half cell joins the last whole one.
    p[-1] += max(0.0, float(cells.p[-1] - cells.p_error[-1]))
    q[-1] += float(cells.q[-1] + cells.q_error[-1])
    middle = edges[2:-2:2]
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p) - np.log(q) - 8 * EPS * (np.abs(np.log(p)) + np.abs(np.log(q)) + 1)
        if cells.apart is not None and cells.apart_error is not None:
            # log(p/q) = log(1 + (p - q)/q), with q's end that makes it less.
            known = _pairs((cells.apart - cells.apart_error * (1 + 4 * EPS))[1:-1])
            known[-1] += cells.apart[-1] - cells.apart_error[-1] * (1 + 4 * EPS)
            less = _pairs((cells.q - cells.q_error)[1:-1])
            less[-1] += cells.q[-1] - cells.q_error[-1]
            ratio = known / np.where(known > 0, q, less)
            near = (np.abs(ratio) < 0.5) & (less > 0)
            sharp = np.log1p(np.where(near, ratio, 0.0))
            loss = np.where(near, sharp - 8 * EPS * np.abs(sharp), loss)
        # An infinite loss, or one that is not known, is lowered to the cell's lower edge.
        away = np.where((p > 0) & (q > 0), loss - middle, -h / 2)
    # No loss of a cell is below its lower edge; and to cut at the upper one lowers it.
    away = np.clip(away - 4 * EPS * np.abs(middle), -h / 2, h / 2)
    with np.errstate(divide="ignore"):
        heaviest = int(np.argmax(np.log(p) + tilt * middle))
    # Points where the cells' middles are, or where the heaviest cell's loss is: a near-atom.
    found = [_placed(p, away, middle, h, tilt, at) for at in (0.0, float(away[heaviest]))]
    _, offset, masses = max(found, key=lambda law: law[0])
    return LatticeLaw(offset, masses, count, 8 * EPS, cells.position)


def _placed(
    p: Array, away: Array, middle: Array, h: float, tilt: float, at: float
) -> tuple[float, float, Array]:
    """One lattice for all cells, and the log-moment that it leaves: more is tighter."""
    if not p.any():
        return -math.inf, float(middle[0]) - h, np.zeros(len(p) + 1)
    p, away = _levelled(p, away, h, at)
    with np.errstate(divide="ignore"):
        z = np.log(p) + tilt * middle
    weight = np.exp(z - z.max())
    order = np.argsort(away, kind="stable")
    ranked = weight[order] / weight.sum()
    before = np.cumsum(ranked) - ranked
    # A shift d gains d for all, and costs a step h for those whose loss is below d.
    gain = away[order] - h * before
    d = float(away[order][int(np.argmax(gain))])
    masses = np.zeros(len(p) + 1)
    fits = away >= d
    masses[1:] += np.where(fits, p, 0.0)
    # A step down is enough: d - h <= -h/2, and no loss lies further below its cell's middle.
    masses[:-1] += np.where(fits, 0.0, p)
    with np.errstate(divide="ignore"):
        z = np.log(masses) + tilt * (float(middle[0]) - h + d + h * np.arange(len(masses)))
    kept = float(z.max()) + math.log(float(np.exp(z - z.max()).sum()))
    return kept, float(middle[0]) - h + d, masses


def _levelled(p: Array, away: Array, h: float, at: float = 0.0) -> tuple[Array, Array]:
    """Masses and distances from their lattice points, after neighbours have lent each other mass.

    An outcome may be split at random and its pieces merged with others: post-processing. One that
    lies below its point takes what brings it there from the point above, and one that lies above
    its point takes it from below. What a lender keeps has the ratio it had; but it owes less then,
    so a loan from below is cut by what it may have lent itself. The distances that come out are
    computed, not trusted. Points lie ``at`` above the middles of the cells.
    """
    if h > _WIDEST:
        return p, away
    away = away - at
    # A cell that is further off would owe more than a neighbour can lend.
    fit = (p > 0) & (np.abs(away) <= h / 4)
    above = -p[1:] * np.expm1(-(away[1:] + h))
    under = p[:-1] * np.expm1(h - away[:-1])
    owed = p * np.expm1(-away)
    down, up = np.zeros_like(p), np.zeros_like(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        # down[k]: the part of k + 1 that goes to k; up[k]: the part of k - 1 that goes to k.
        part = np.where(fit[:-1] & fit[1:] & (owed[:-1] > 0), owed[:-1] / above, 0.0)
        # 0.74 and 0.25 are below 1 together, so that whoever lends both ways keeps something.
        down[:-1] = np.where((part >= 0) & (part <= 0.74), part, 0.0)
        part = np.where(fit[1:] & fit[:-1] & (owed[1:] < 0), -owed[1:] / under, 0.0)
        up[1:] = np.where((part >= 0) & (part <= 0.25), part, 0.0)
    lent = np.concatenate([[0.0], down[:-1]]) + np.concatenate([up[1:], [0.0]])
    up *= 1 - lent
    lent = np.concatenate([[0.0], down[:-1]]) + np.concatenate([up[1:], [0.0]])
    # Rounding: nothing is lent twice.
    kept = p * (1 - lent) * (1 - 4 * EPS)
    from_above = np.append(down[:-1] * p[1:], 0.0)
    from_below = np.append(0.0, up[1:] * p[:-1])
    whole = kept + from_above + from_below
    far, near = np.append(away[1:], 0.0), np.append(0.0, away[:-1])
    # Q's mass of the mixture over e^point: each piece keeps the ratio that it had.
    other = kept * np.exp(-away) + from_above * np.exp(-far - h) + from_below * np.exp(h - near)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(whole > 0, np.log(whole / other) - 16 * EPS, -h / 2 - at)
        # Close to 0 the summands' differences say more than those of their sums.
        parts = [-kept * np.expm1(-away), -from_above * np.expm1(-far - h)]
        parts.append(-from_below * np.expm1(h - near))
        gap, size = sum(parts) / other, sum(np.abs(part) for part in parts) / other
        sharp = np.log1p(np.where(size < 0.5, gap, 0.0)) - 16 * EPS * size
        found = np.where((size < 0.5) & (whole > 0), sharp, found)
    return whole * (1 - 8 * EPS), np.clip(found + at - 4 * EPS * h, -h / 2, h / 2)


def pessimistic_law(
    term: Term, low: float, high: float, h: float
) -> tuple[int, Array, float, float, float]:
    """(k, masses, above, relative error, position): a law at h·(k + 0, 1, ...).

    It dominates the term's, but for losses that are further off by the position.
    """
    first, last = math.floor(low / h) - 2, math.ceil(high / h) + 2
    edges = (h / 2) * np.arange(2 * first, 2 * last + 1)
    law, above = _pessimistic(term.cells(edges), edges, h, 1)
    return first, law.masses, above, law.relative, law.position


def moment_ends(term: Term, c: Array) -> tuple[float, float]:
    """Bounds of log E[e^{cL}] of all repetitions at one c, for any term."""
    if type(term).log_moment is not Term.log_moment:
        return term.moment_ends(float(c[0]))
    # All losses but nothing, and cells of some width where there is one alone.
    low, high = term.ends(1e-300)
    # Of all losses but next to nothing; a width of 0 would give no cells.
    width = max(high - low, 1e-6)
    h = width / (1 << 16)
    total_low = total_high = 0.0
    for single, count in term.singles():
        anchor = single.anchors()[0]
        first, last = math.floor((low - anchor) / h) - 2, math.ceil((high - anchor) / h) + 2
        edges = anchor + (h / 2) * np.arange(2 * first, 2 * last + 1)
        cells = single.cells(edges)
        most, above = _pessimistic(cells, edges, h, count)
        for law, sign in (
            (most, 1.0),
            (_optimistic(cells, edges, h, count, float(c[0])), -1.0),
        ):
            with np.errstate(divide="ignore"):
                z = np.log(law.masses) + float(c[0]) * (law.offset + h * np.arange(len(law.masses)))
            top = float(z.max())
            value = top + math.log(float(np.exp(z - top).sum()))
            # As for atoms (`AtomTerm.moment_error`); places are off by what edges were.
            largest = float(np.abs(edges).max())
            off = law.relative + float(c[0]) * (law.position + 8 * EPS * largest)
            off += EPS * (24 + 4 * math.log(len(z)) + 4 * float(c[0]) * largest + 4 * abs(value))
            value = count * (value + sign * off)
            if sign > 0 and above > 0:
                # A mass so small may still decide a moment of high order.
                value = math.inf
            if sign > 0:
                total_high += value
            else:
                total_low += value
    return total_low, total_high
