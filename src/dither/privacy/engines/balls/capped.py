"""Few Gaussians on sparse samples: what losses up to a soft cap add, by a contour in balls.

A sparse sample's loss has a long tail, and a line of `contour` is as long as that is. But
where one large loss suffices by itself, what large losses add is known. With l, phi, K and a of
`dither.privacy.laws.sampled.gaussian` in the direction of removal, T repetitions of rate g, a cap X
and a width W that are free, let each repetition be kept with the chance ::

    n(z) = Phi((X - e^{az})/W),        N(t) = ∫ phi·n·e^{(1+t)·l}

and be far otherwise. So delta(epsilon) = E(1 - e^{epsilon-L})_+ is the sum of ::

    some far:   1 - N(0)^T - e^epsilon·(1 - N(-1)^T) + leak
    none far:   1/(2·pi·i)·∫ N^T(t)·e^{-t·epsilon}/(t(1+t)) dt   over Re t = c > 0

n falls as e^{-e^{2az}/2W²}, so that no tilt makes a hump of what is cut, and c may be as large as a
light tail would have it: N is analytic everywhere. It fades where phi·e^l, nearly lognormal, does.
What is charged, and how it is proved:

* *Leak.* It is E(e^{epsilon-L} - 1)_+ where some are far, which needs the far loss below
  epsilon - (T-1)·log(w_0), so its z below the place z_p of that: at most e^epsilon - w_0^T times
  T·∫ phi·(1 - n) up to z_p, which is at most a sum over cells, in balls.
* *Aliases.* The trapezoid sum of period 2·pi/P is Σ_i D(epsilon + iP)·e^{ciP}, D >= 0 the profile
  where none is far. To the left D is at most N(0)^T <= 1, to the right Chernoff's bound holds, and
  N is at most an upper sum.
* *On lines Im z = y*, with theta = ay < pi/4, E = e^{ax}, s = (X - E·cos theta)/W and
  tau = E·sin theta/W, |n(x + iy)| is at most e^{tau²/2}·Phi(s), the path of Phi's integral moved by
  i·tau, and at most 1 + e^{tau²/2}·Phi(-s). |e^l| and its argument are bounded as in
  `laws.sampled_gaussian`. So |f| = |phi·n·e^{(1+t)·l}| has an upper sum over cells there, which
  bounds |N(c + iv)| for all v >= u, and the errors of the rule of `laws`.
* *Beyond the ends* x_0 < 0 and x_1 > 0 of cells and nodes, s < 0 at x_1. Below x_0 all rises with
  x. Above x_1 there is Phi(s) <= e^{-s²/2}/2, and l' <= a·K·E·g/(1 - g): of successive summands
  w_j·e^{...} of e^l each j-th is at most (K - j + 1)/j·E·g/(1 - g) times the one before. So the
  exponent falls at a rate of at least a·E·((E·cos 2theta - X·cos theta)/W² - (1 + c)·K·g/(1 - g)).

Upper sums are in doubles, and hold with `_SPARE` to spare; all else is in balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither.numeric._balls import (
    Ball,
    PowerSum,
    library,
    log_ends,
    phi,
    precision,
    tail,
    transforms,
    within,
)
from dither.privacy.engines.balls.laws import LogRatio, kappa
from dither.privacy.engines.search import log_kappa
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import Array, erfc, log_tail

__all__ = ["CappedContour"]


_CAPS = (1.4, 2.2)
"""Caps that are tried, as multiples of the least."""

_HEIGHTS = (0.06, 0.12, 0.2, 0.3, 0.42, 0.56, 0.72, 0.9)
"""Lines that are tried, as parts of the highest."""

_STEEPEST = 1.1
"""Beyond it N fades so slowly that jumps do better: not even a plan is made."""

_CELLS = 80
"""Cells over which the leak is summed."""

_NODES = 60_000

_SPARE = 1e-9
"""What log-bounds in doubles are raised by: themselves, and once more 1 for what is small.

An exponent is a sum of at most six numbers, of up to `_LARGEST` where they matter, within 60 of the
largest exponent: the rest are next to nothing. The ratio's error is in its bound; others come of at
most twenty roundings of themselves, but for a difference s of numbers of up to 500, which moves a
tail's logarithm where it matters, |s| < 140, by 10·500·140·2^-53 at most. With ten for sums that is
less than 6·30·1e4·2^-53 = 2e-10, and 1e-10; sums of thousands of exponentials add 1e-12. The
argument of e^l has a sine of summands of one sign: it is off by less than 1e-9 of itself.
"""

_LARGEST = 1e4


class _Bounds:
    """Upper sums over cells, for one cap and one width."""

    def __init__(self, term: SampledGaussianTerm, cap: float, width: float) -> None:
        self.term, self.cap, self.width = term, cap, width
        # There s is -40 on the real line, and Phi(s) below e^-800.
        end = math.log(cap + 40 * width) / term.a
        self.z = np.linspace(-14.0, end, 2 + math.ceil((end + 14.0) / min(0.05, 0.05 / term.a)))
        self.ratio, self._off = term.log_ratio(self.z)
        z = self.z
        # phi is largest on a cell where |z| is least: at an end, or at 0 inside it.
        least = np.where(z[:-1] * z[1:] > 0, np.minimum(z[:-1] ** 2, z[1:] ** 2), 0.0)
        self._normal = math.log((z[1] - z[0]) / math.sqrt(2 * math.pi)) - 0.5 * least
        self._grown = np.exp(term.a * z)
        self._weights: dict[float, tuple[Array, Array, float]] = {}
        j = np.arange(term.k + 1)[:, None]
        with np.errstate(divide="ignore"):
            share = np.log(term.weights)[:, None] + j * term.a * z[None, :-1]
        # A summand's share of e^l is at most 1: rounding must not make it more.
        self._size = np.exp(np.minimum(share - 0.5 * (j * term.a) ** 2 - self.ratio[:-1], 0.0))

    def _weight(self, y: float) -> tuple[Array, Array, float]:
        """On each cell log of a bound of |n(x + iy)|, tau²/2, and at the end the former's bound."""
        if y not in self._weights:
            theta = self.term.a * y
            s = (self.cap - self._grown * math.cos(theta)) / self.width
            growth = (self._grown * (math.sin(theta) / self.width)) ** 2 / 2
            # E and tau grow with x, and s falls: each factor is bounded at the end where it is
            # largest.
            near = growth[1:] + log_tail(-s[:-1])
            if y:
                # Where Phi(s) is near 1 the other bound of |n| is closer; at y = 0 the first is n
                # itself.
                near = np.minimum(near, np.logaddexp(0.0, growth[1:] + log_tail(s[1:])))
            end = growth[-1] - s[-1] ** 2 / 2 - math.log(2)
            self._weights[y] = near, growth[1:], end if s[-1] < 0 else math.inf
        return self._weights[y]

    def _rate(self, c: float, y: float) -> float:
        """How fast the exponent falls above the last cell."""
        theta, e, g = self.term.a * y, float(self._grown[-1]), self.term.rate
        fall = (e * math.cos(2 * theta) - self.cap * math.cos(theta)) / self.width**2
        fall -= (1 + c) * self.term.k * g / (1 - g)
        # Where the summands do not cancel to a millionth, a billionth outweighs their roundings.
        clear = fall * self.width**2 > 1e-6 * e
        return self.term.a * e * fall * (1 - _SPARE) if clear else -1.0

    def summands(self, c: float, y: float) -> Array:
        """log of a bound of |f| on each cell, times the cell."""
        value: Array = self._normal + (1 + c) * (self.ratio + self._off)[1:] + self._weight(y)[0]
        return value + y * y / 2

    def most(self, c: float, y: float, u: Array | None = None) -> Array:
        """log of a bound of ∫|f(x + iy)|dx at Re t = c, for Im t of at least each u >= 0."""
        f, rate, z = self.summands(c, y), self._rate(c, y), self.z
        top, cell = float(f.max()), float(z[1] - z[0])
        last = (1 + c) * (self.ratio + self._off)[-1] + self._weight(y)[2]
        last += (y * y - z[-1] ** 2) / 2 - top
        sizes = (1 + c) * np.abs(self.ratio[1:]), 0.5 * z[1:] ** 2 + y * y, self._weight(y)[1]
        # Cells far below the largest are added as they are, without their decay.
        kept = f > top - 60
        # Outside of what `_SPARE` was derived for nothing is claimed.
        if not (rate > 0 and last < 0 and all(np.all(x[kept] < _LARGEST) for x in sizes)):
            return np.full(1 if u is None else len(u), np.inf)
        # Below the first cell: Q(14) <= phi(14)/14, and Phi(s) is at least 1/2 there.
        ends = math.exp(f[0] - top) / cell / 7 + math.exp(last) / rate
        ends += float(np.exp(f[~kept] - top).sum())
        mass = np.exp(f[kept] - top)
        whole = np.array([mass.sum() + ends])
        if u is not None:
            j = np.arange(self.term.k + 1)[:, None] * (self.term.a * y)
            size = self._size[:, kept]
            turn = np.arctan2((size * np.sin(j)).sum(0), (size * np.cos(j)).sum(0))
            whole = (np.exp(-np.outer(u, turn * (1 - _SPARE))) * mass).sum(axis=1) + ends
        result: Array = top + np.log(whole)
        return result + _SPARE * (1 + np.abs(result))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The cap and its width, tilts, period, sizes, and the inner rule: all of them guesses."""

    bounds: _Bounds
    c: float
    right: float
    period: float
    nodes: int
    faded: float
    nats: float
    h: float
    y: float
    first: int
    last: int

    @property
    def work(self) -> float:
        """Summands; a node's weight costs as much as two hundred of them."""
        return (self.last - self.first) * (self.nodes + 200.0)


class CappedContour:
    """A proved two-sided profile at epsilon > 0, tight near the one it is made for.

    Parameters
    ----------
    term : SampledGaussianTerm
        The total, where a unit is removed.
    epsilon, log_delta : float
        About where the profile will be asked, and about what it is there.
    tolerance : float
        What each error may add, relative to delta.
    dearest : float
        Summands of the inner quadrature beyond which nothing is done: ``work`` says how many there
        would be.
    """

    name = "contour quadrature of capped losses in ball arithmetic"

    def __init__(
        self,
        term: SampledGaussianTerm,
        *,
        epsilon: float,
        log_delta: float,
        tolerance: float = 1e-13,
        dearest: float = 3e6,
    ) -> None:
        self._term, self.start, self.certified, self.work = term, epsilon, False, math.inf
        # Without a floor of all losses no single one is known to suffice.
        if not epsilon > 0 or term.weights[0] <= 0 or term.a > _STEEPEST:
            return
        self._floor = -term.k * math.log1p(-term.rate)
        self._wanted = log_delta + math.log(tolerance)
        plans = [plan for factor in _CAPS if (plan := self._planned(factor)) is not None]
        plan = min(plans, key=lambda found: found.work, default=None)
        if plan is None:
            return
        self.work, self.plan, self.c = plan.work, plan, plan.c
        # What cancels on the line, and 40 bits of what is left.
        self._bits = 40 + math.ceil(plan.nats / math.log(2))
        self.pay(dearest)

    def pay(self, dearest: float) -> None:
        """Certify the profile where that costs no more, if it was too dear before."""
        if self.certified or self.work > dearest:
            return
        with precision(self._bits):
            self._lay()
        self.certified = True

    def _place(self, level: float) -> float:
        """The z at which l(z) is ``level``."""
        return float(self._term.place(np.array([level]))[0])

    def _planned(self, factor: float) -> _Plan | None:
        """With a cap that is so many times the least."""
        term, e, n, wanted = self._term, self.start, self._term.count, self._wanted
        place = self._place(e + n * self._floor)
        # Above a place that is reached with a chance below what is wanted, all may leak.
        least = min(place, math.sqrt(2 * max(e + math.log(n) - wanted, 1.0)))
        cap = factor * math.exp(term.a * least)
        width = self._width(cap, place)
        if width is None:
            return None
        bounds = _Bounds(term, cap, width)
        tilts = np.geomspace(0.2 / e, 1000 / e + 40, 48)
        f = np.array([bounds.most(c, 0.0)[0] for c in tilts.tolist()])
        with np.errstate(invalid="ignore"):
            lead = np.where(f < 300.0, math.log(n) + n * f - tilts * e, np.inf)
        best, score = None, math.inf
        for i in np.flatnonzero(np.isfinite(lead)[:-1]).tolist():
            rights = lead[i + 1 :] + log_kappa(tilts[i + 1 :]) - wanted
            spans = np.maximum(rights, 1.0) / (tilts[i + 1 :] - tilts[i])
            k = int(np.argmin(spans))
            period = max(-wanted / tilts[i], float(spans[k])) * 1.01
            worth = period * math.sqrt(max(lead[i] - wanted, 20.0))
            if worth < score:
                best, score = (i, i + 1 + k, period), worth
        if best is None:
            return None
        i, right, period = best
        c = float(tilts[i])
        highest = min(math.pi / (4 * term.a), math.pi / (term.k * term.a), 20.0)
        grid = 2 * math.pi / period * np.unique(np.geomspace(4.0, _NODES, 60).astype(int))
        heights = [part * highest for part in _HEIGHTS]
        faded = np.array([bounds.most(c, y, grid) for y in heights]).min(axis=0)
        good = np.flatnonzero(n * faded - c * e - np.log(math.pi * grid) < wanted)
        if not good.size:
            return None
        nodes = round(grid[good[0]] * period / (2 * math.pi))
        # N(0) and N(-1) are to be known as well as what is wanted.
        nats = max(float(lead[i]), math.log(n)) - wanted + 4
        growth = [max(float(bounds.most(c, y)[0] - f[i]), 0.0) for y in heights]
        steps = [math.pi * y / (nats + b) for y, b in zip(heights, growth, strict=True)]
        at = int(np.argmax(steps))
        mantissa, exponent = math.frexp(steps[at])
        # Eight bits, so that every node h·i is exact; downwards, as a smaller step errs less.
        h = math.ldexp(math.floor(mantissa * 256), exponent - 8)
        # A short number too; any height in the strip is as sound.
        y = math.ldexp(round(math.ldexp(heights[at] / 2, 30)), -30)
        shape = bounds.summands(c, y)
        first = -math.sqrt(2 * nats + y * y + 20)
        last = float(bounds.z[np.flatnonzero(shape > shape.max() - nats - 12)[-1] + 1])
        # Where the exponent begins to fall at half of its rate.
        turned = cap * math.cos(term.a * y) + 2 * width**2 * (1 + c) * term.k * term.rate
        last = max(last, math.log(1.02 * turned / math.cos(2 * term.a * y)) / term.a)
        return _Plan(
            bounds,
            c,
            float(tilts[right]),
            period,
            nodes,
            float(faded[good[0]]),
            nats,
            h,
            y,
            math.floor(first / h),
            math.ceil(last / h),
        )

    def _width(self, cap: float, place: float) -> float | None:
        """About the largest width that leaks little enough, if a narrow one does."""
        grown, z = self._cells(place)
        chance = np.diff(-0.5 * erfc(z / math.sqrt(2)), prepend=-1.0)
        ask = math.exp(max(self._wanted - self.start - math.log(self._term.count), -700.0))
        low, high = 0.002 * cap, 0.5 * cap
        if (chance * np.exp(log_tail((cap - grown) / low))).sum() > ask:
            return None
        for _ in range(12):
            middle = math.sqrt(low * high)
            leaks = (chance * np.exp(log_tail((cap - grown) / middle))).sum() > ask
            low, high = (low, middle) if leaks else (middle, high)
        return low

    def _cells(self, place: float) -> tuple[Array, Array]:
        """e^{az} and z at the ends of the cells over which the leak is summed."""
        grown = np.exp(self._term.a * place) * np.arange(1, _CELLS + 1) / _CELLS
        return grown, np.log(grown) / self._term.a

    def _lay(self) -> None:
        """All that does not depend on epsilon."""
        flint, plan, n = library(), self.plan, self._term.count
        arb, acb = flint.arb, flint.acb
        self._ratio = LogRatio(self._term)
        h, y, a = arb(plan.h), arb(plan.y), self._ratio.a
        self._cap, self._wide = arb(plan.bounds.cap), arb(plan.bounds.width)
        points = [acb(h * i, y) for i in range(plan.first, plan.last + 1)]
        ratios = [self._ratio(z) for z in points]
        scale = h / (2 * arb.pi()).sqrt()
        weights = [
            scale * (-z * z / 2).exp() * phi((self._cap - (a * z).exp()) / self._wide)
            for z in points
        ]
        masses = [w * ((1 + arb(plan.c)) * r).exp() for w, r in zip(weights, ratios, strict=True)]
        self._step = float(2 * arb.pi() / arb(plan.period))
        self._period = 2 * arb.pi() / arb(self._step)
        # Real and imaginary parts may both be off by it.
        doubt = within(self._doubt(plan.c))
        wrong = acb(doubt, doubt)
        line = transforms(masses, ratios, self._step, plan.nodes + 1)
        values = [(value + wrong) ** n for value in line]
        points = [acb(plan.c, arb(self._step) * i) for i in range(len(values))]
        values = [value / (t * (1 + t)) for value, t in zip(values, points, strict=True)]
        # The node on the real line counts once, every other one for its conjugate too.
        values[0] /= 2
        self._values = PowerSum(values)
        pairs = zip(weights, ratios, strict=True)
        with_it = sum(((w * r.exp()).real for w, r in pairs), within(self._doubt(0.0)))
        without = sum((w.real for w in weights), within(self._doubt(-1.0)))
        # Some far: under P and under Q what is not none far.
        self._far, self._far_other = 1 - with_it**n, 1 - without**n
        # Terms from the next node on: Σ step/u² <= 1/u of the last.
        self._cut = (n * arb(plan.faded)).exp() / (arb.pi() * arb(self._step) * plan.nodes)
        right = arb(plan.right)
        # Chernoff's bound needs N at the tilt to the right, and |N| is at most the upper sum.
        largest = (n * arb(float(plan.bounds.most(plan.right, 0.0)[0]))).exp()
        self._right = kappa(plan.right) * largest / ((right - plan.c) * self._period).expm1()
        self._left = 1 / (plan.c * self._period).expm1()
        far = 1.05 * self._place(self.start + n * self._floor)
        total, before, self._leaks = arb(0), arb(1), []
        for place in self._cells(far)[1].tolist():
            above = tail(arb(place))
            # z is rounded, so that e^{az} is made again.
            # 1 - n grows with z: its value at a cell's upper end bounds it on the cell.
            total += (before - above) * tail((self._cap - (a * place).exp()) / self._wide)
            before = above
            self._leaks.append((place, total))

    def _doubt(self, c: float) -> Ball:
        """What the inner rule and the nodes beyond its ends may add at Re t = c."""
        arb, plan = library().arb, self.plan
        h, y, a, x = arb(plan.h), arb(plan.y), self._ratio.a, 1 + arb(c)
        g = arb(self._term.rate)
        first, last = h * plan.first, h * plan.last
        # The strip reaches to 2y, where theta has to stay below pi/4 and e^l in its cone.
        if not (2 * self._term.k * a * y < arb.pi() and 8 * a * y < arb.pi() and first < 0):
            return arb("inf")
        edges = (plan.bounds.most(c, height)[0] for height in (0.0, 2 * plan.y))
        error = sum((arb(float(v)).exp() for v in edges), arb(0)) / (2 * arb.pi() * y / h).expm1()
        theta, grown = a * y, [(a * z).exp() for z in (first, last)]
        below, above = ((self._cap - e * theta.cos()) / self._wide for e in grown)
        lift, turned = ((e * theta.sin() / self._wide) ** 2 / 2 for e in grown)
        rate = (grown[1] * (2 * theta).cos() - self._cap * theta.cos()) / self._wide**2
        rate = a * grown[1] * (rate - x * self._term.k * g / (1 - g))
        if not (above < 0 and rate > 0 and last > 0):
            return arb("inf")
        sizes = [(x * self._ratio(z)).exp() for z in (first, last)]
        cut = sizes[0] * (1 + lift.exp() * tail(below)) * tail(-first)
        beyond = sizes[1] * (turned - above**2 / 2 - last**2 / 2).exp() / 2
        cut += beyond * h / (2 * arb.pi()).sqrt() / (rate * h).expm1()
        return error + cut * (y * y / 2).exp()

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon); the lower one may be -inf."""
        # One large loss suffices, and the parts add up, above 0 alone.
        if epsilon <= 0:
            return -math.inf, 0.0
        with precision(self._bits) as flint:
            arb, plan = flint.arb, self.plan
            e = arb(epsilon)
            scale = (-arb(plan.c) * e).exp()
            rest = self._values(flint.acb(0, -arb(self._step) * e).exp())
            total = rest * scale * arb(self._step) / arb.pi()
            total += self._far - e.exp() * self._far_other
            cut = (scale * self._cut).upper()
            aliases = (self._left + self._right * (-plan.right * e).exp()).upper()
            # Aliases only add and a leak is left out of the sum: each burdens one end.
            low, high = total - cut - aliases, total + cut + self._leak(e)
            return log_ends(low, high)

    def _leak(self, e: Ball) -> Ball:
        """What far losses that do not suffice add."""
        n, least = self._term.count, self._ratio.weights[0]
        level, short = e - (n - 1) * least.log(), e.exp() - least**n
        for place, total in self._leaks:
            # The first place at which balls say that l has passed the level: only z below it can
            # leak.
            if self._ratio(library().arb(place)) >= level:
                return n * short * total.upper()
        return n * short * (total + tail(library().arb(place))).upper()
