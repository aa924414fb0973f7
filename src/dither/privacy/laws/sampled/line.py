"""Samples of a mechanism whose loss has a density: a quadrature with a proven error.

Let x be the base's loss under Q, g the rate and w(x) = 1 - g + g·e^x. On a Poisson sample the loss
is log w(x) with density w under removal, and -log w(x) under addition (the base's pair is
symmetric: L under P and -L under Q have one law). Without replacement it is the first where x > 0,
the second where x > 0, and 0 with what is left of the mass (see `mechanism`). So ::

    removal: M(t) = E[w^{1+t}]        addition: M(t) = E[w^{-t}]

Gauss and Legendre's rule of n nodes on panels. A function that is analytic and at most B inside
the ellipse of parameter r around [-1, 1] has Chebyshev coefficients of at most 2·B·r^{-k}; the rule
is exact below degree 2n, and both it and the integral are at most 2 on each polynomial beyond, so
it errs by at most 8·B·r^{-2n}/(1 - 1/r). For |Im x| <= d < pi/2 the modulus of w is at most
w(Re x), at least cos(d/2) of it, and arg w <= atan2(g·e^x·sin d, 1 - g + g·e^x·cos d), which grows
with x and d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.sampled.gaussian import TOO_LITTLE_NOISE
from dither.privacy.laws.sampled.mixture import FixedSizeTerm, SampledTerm
from dither.privacy.laws.term import (
    EPS,
    SHORT,
    Array,
    Complex,
    LawCells,
    Term,
    faded,
    layers_of,
    log_of,
    turned,
)

__all__ = ["SampledLineTerm"]


# Nodes a panel: more of them would need fewer panels, and the error is charged in any case.
_ORDER = 16
# Deviations beyond which an integrand is e^-72 of its largest: what is cut is charged.
_MARGIN = 12.0
# Panels; with as many the error is what it is, and is charged.
_MOST = 4096
_HELD = 100_000
"""Nodes that a term keeps, of all its tilts together: 3 MB, as hundreds of terms are kept."""

_LARGEST = 1e10
"""The mu² from which no number of panels is enough."""

# Ellipses of analyticity: each gives a bound, and the best holds.
_RADII = np.array([1.3, 1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 8.0, 11.0, 16.0])


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Places, signed losses and log-masses under P before tilting, with their errors."""

    loss: Array
    logs: Array
    wrong: Array
    shaken: Array
    quadrature: float
    cut: float


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    """Places and weights on [-1, 1], right to a few roundings; 16 are charged."""
    places, weights = np.polynomial.legendre.leggauss(_ORDER)
    return places, weights


class SampledLineTerm(Term):
    """One Gaussian or one Laplace on a sample, ``count`` times.

    Parameters
    ----------
    inner : SampledTerm or FixedSizeTerm
        The same law as a grid sees it; its base is a Gaussian, or a single Laplace.
    """

    def __init__(self, inner: SampledTerm | FixedSizeTerm) -> None:
        self.inner = inner
        self.count, self.infinite = inner.count, 0.0
        one = inner.first if isinstance(inner, FixedSizeTerm) else inner
        self.rate = one.rate
        self.base = one.base
        self._pieces: tuple[tuple[int, float], ...]
        if isinstance(inner, FixedSizeTerm):
            self._pieces = ((1, 0.0), (-1, 0.0))
        else:
            self._pieces = ((1 if inner.removal else -1, -math.inf),)
        if isinstance(self.base, GaussianTerm):
            self._v = self.base.mu_squared
            # Where losses are large, tilts that matter are small.
            self.reach = 60.0 / math.sqrt(self._v) + 200.0 * min(1.0, 9.0 / self._v)
            self._e = 0.0
        else:
            assert isinstance(self.base, LaplaceTerm)
            self._v, self._e = 0.0, float(self.base.epsilons[0])
        self._still, self._still_error = self._atom()
        self._kept: dict[tuple[float, float], _Nodes] = {}

    def _atom(self) -> tuple[float, float]:
        """The mass at loss 0 of a sample without replacement: (1 - g)·(P - Q)(x > 0)."""
        if len(self._pieces) == 1:
            return 0.0, 0.0
        # P's mass above 0 less Q's: the base's total variation.
        apart = math.erf(math.sqrt(self._v / 8)) if self._v > 0 else -math.expm1(-self._e / 2)
        still = (1 - self.rate) * apart
        return still, 20 * EPS * still

    def _ends(self, sign: int, start: float, c: float) -> tuple[float, float]:
        """A window outside of which the integrand falls by e^{-12} a deviation, or is 0."""
        if self._v == 0:
            return max(-self._e, start), self._e
        v, sd = self._v, math.sqrt(self._v)
        middle = -v / 2
        if sign > 0:
            return max(middle - _MARGIN * sd, start), middle + (1 + c) * v + _MARGIN * sd
        low = middle - _MARGIN * sd
        # w^-c rises to the left by c times the slope of log w: the window ends where that is
        # outweighed.
        steep = self.rate * math.exp(low) / (1 - self.rate)
        low = max(low - c * min(steep, 1.0) * v, start)
        return low, max(middle + _MARGIN * sd, low + sd)

    def _density(self, x: Array) -> tuple[Array, Array]:
        """log of Q's density of x, and the size of its derivative."""
        if self._v > 0:
            away = x + self._v / 2
            log = -away * away / (2 * self._v) - 0.5 * math.log(2 * math.pi * self._v)
            return log, np.abs(away) / self._v
        return -(x + self._e) / 2 - math.log(4.0), np.full_like(x, 0.5)

    def _log_w(self, x: Array) -> tuple[Array, Array]:
        """log w(x) and its slope, stable near 0."""
        rise = self.rate * np.expm1(np.minimum(x, 600.0))
        far = x > 600.0
        value = np.where(far, x + math.log(self.rate), np.log1p(rise))
        return value, np.where(far, 1.0, self.rate * np.exp(np.minimum(x, 600.0)) / (1 + rise))

    def _panels(self, sign: int, low: float, high: float, c: float, u: float) -> tuple[int, float]:
        """How many panels, and a bound of log of the rule's error."""
        # The error counts once a repetition.
        wanted = -40.0 - math.log(self.count)
        n = 8
        while True:
            edges = np.linspace(low, high, n + 1)
            r = (edges[1] - edges[0]) / 2
            middle = (edges[1:] + edges[:-1])[:, None] / 2
            rho = _RADII[None, :]
            d = r * (rho - 1 / rho) / 2
            wide = r * (rho + 1 / rho) / 2
            left, right = middle - wide, middle + wide
            # A density is largest on an interval at its own middle, or at the end that is next to
            # it.
            near = np.clip(-self._v / 2, left, right) if self._v > 0 else left
            size = self._density(near)[0]
            if self._v > 0:
                size = size + d * d / (2 * self._v)
            # Below pi/2, up to which |w| and its argument are bounded; wider ellipses are refused
            # below.
            held = np.minimum(d, 1.5)
            if sign > 0:
                size = size + (1 + c) * self._log_w(right)[0]
            else:
                size = size - c * (self._log_w(left)[0] + np.log(np.cos(held / 2)))
            lift = self.rate * np.exp(np.minimum(right, 600.0))
            angle = np.arctan2(lift * np.sin(held), 1 - self.rate + lift * np.cos(held))
            size = size + u * angle + math.log(8 * r) - 2 * _ORDER * np.log(rho)
            size = np.where(d <= 1.5, size - np.log1p(-1 / rho), np.inf)
            best = size.min(axis=1)
            error = float(best.max()) + math.log(n)
            # Sharp enough, or as sharp as it gets: the error is charged in either case.
            if error <= wanted or n >= _MOST:
                return n, error
            n *= 2

    def _nodes(self, c: float, u: float) -> _Nodes:
        found = self._kept.get((c, u))
        if found is None:
            found = self._laid(c, u)
            while self._kept and sum(len(n.loss) for n in self._kept.values()) > _HELD:
                del self._kept[next(iter(self._kept))]
            self._kept[c, u] = found
        return found

    def _laid(self, c: float, u: float) -> _Nodes:
        if self._v > _LARGEST:
            raise ArgumentError(TOO_LITTLE_NOISE)
        places, weights = _rule()
        losses, logs, wrongs, shakes = [], [], [], []
        quadrature = cut = 0.0
        for sign, start in self._pieces:
            low, high = self._ends(sign, start, c)
            n, error = self._panels(sign, low, high, c, u)
            quadrature += math.exp(min(error, 600.0))
            edges = np.linspace(low, high, n + 1)
            r = (edges[1:] - edges[:-1]) / 2
            middle = (edges[1:] + edges[:-1]) / 2
            x = (middle[:, None] + r[:, None] * places).ravel()
            moved = EPS * (2 * np.abs(x) + 16 * float(r.max()))
            log, steep = self._density(x)
            log = log + np.log((r[:, None] * weights).ravel())
            # Weights and panel lengths are right to this, relative to themselves.
            wrong = EPS * (48 + 2 * np.abs(log)) + moved * steep
            wrong += EPS * 2 * float(np.abs(edges).max()) / float(r.min())
            if self._e > 0:
                # Laplace's atoms are nodes of their own, with their masses as weights.
                inside = [-self._e, self._e] if start < 0 else [self._e]
                mass = [-math.log(2.0), -self._e - math.log(2.0)][-len(inside) :]
                x, log = np.append(x, inside), np.append(log, mass)
                moved = np.append(moved, EPS * np.abs(inside))
                wrong = np.append(wrong, EPS * (8 + 2 * np.abs(mass)))
            value, slope = self._log_w(x)
            shaken = slope * moved + EPS * (4 * np.abs(value) + 4 * slope * np.minimum(1, abs(x)))
            if sign > 0:
                log, wrong = log + value, wrong + shaken
            loss = sign * value
            if self._v > 0:
                tilt = log + c * loss
                last = math.sqrt(self._v) / (_MARGIN - 1) / float(r.min())
                ends = [tilt[:_ORDER].max(), tilt[-_ORDER:].max()]
                if start == 0.0:
                    ends = ends[1:]
                # The rule's weights near an end are above a hundredth of the panel.
                cut += 100 * last * sum(math.exp(min(float(v), 600.0)) for v in ends)
            losses.append(loss)
            logs.append(log)
            wrongs.append(wrong)
            shakes.append(shaken)
        joined = [np.concatenate(part) for part in (losses, logs, wrongs, shakes)]
        return _Nodes(joined[0], joined[1], joined[2], joined[3], quadrature, cut)

    def _whole(self, nodes: _Nodes, c: float) -> tuple[float, float, float]:
        """log M(c), a bound of its error, and log of the largest node's tilted mass."""
        tilt = nodes.logs + c * nodes.loss
        top = float(tilt.max())
        short = len(tilt) / 4 + 24
        size = float(np.abs(c * nodes.loss).max())
        if size < 600.0:
            mass = np.exp(nodes.logs)
            rise = np.expm1(c * nodes.loss)
            total = float((mass * rise).sum())
            if abs(total) < 0.5:
                error = np.abs(rise) * (nodes.wrong + EPS * short) + c * nodes.shaken * (1 + rise)
                lost = 2 * float((mass * error).sum()) + 2 * (nodes.quadrature + nodes.cut)
                return math.log1p(total), lost / (1 + total), top
        weight = np.exp(tilt - top)
        still = self._still * math.exp(-top) if top > -600 else 0.0
        whole = float(weight.sum()) + still
        base = top + math.log(whole)
        each = nodes.wrong + c * nodes.shaken + EPS * (short + np.abs(tilt))
        lost = 2 * float((weight * each).sum()) / whole + EPS * (abs(base) + 8)
        lost += (nodes.quadrature + nodes.cut + self._still_error) * math.exp(-base)
        return base, lost, top

    def log_moment(self, c: Array) -> Array:
        """The quadrature at real points."""
        values = [self._whole(self._nodes(x, 0.0), x)[0] for x in c.tolist()]
        return self.count * np.array(values)

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """1 + Σ W·(e^{iuL} - 1) over nodes of tilted mass W; all errors are in the slack."""
        nodes = self._nodes(c, float(u.max()))
        base, base_error, top = self._whole(nodes, c)
        tilt = nodes.logs + c * nodes.loss
        # Nodes that far below the largest are left out, each counted as e^-60.
        kept = tilt > top - 60.0
        loss, tilt = nodes.loss[kept], tilt[kept]
        weight = np.exp(tilt - base)
        change = turned(loss, weight, u)
        short = min(len(loss), SHORT + len(loss) // SHORT + 1)
        each = nodes.wrong[kept] + c * nodes.shaken[kept] + base_error
        each = 2 * each + EPS * (short + 24 + 2 * np.abs(tilt) + 2 * abs(base))
        shaken = nodes.shaken[kept] + 6 * EPS * np.abs(loss)
        blunt = 4 * float((weight * each).sum())
        steep = float((weight * (each * np.abs(loss) + shaken)).sum())
        turn = float((weight * shaken).sum())
        missed = (nodes.quadrature + nodes.cut) * math.exp(-base) + len(tilt) * math.exp(-60.0)
        lost = np.minimum(blunt + turn * u, steep * u) + 4 * missed
        # Where the sum cancels to nothing its error is all there is: the slack is the larger.
        modulus = np.maximum(np.abs(1.0 + change), 1e-300)
        logs = log_of(change)
        slack = base_error + np.log1p((lost + 4 * EPS * np.abs(change)) / modulus)
        return self.count * base, self.count * logs, self.count * (slack + 4 * EPS * np.abs(logs))

    def cost(self, c: float, u: float) -> float:
        """Nodes; most of their work is one matrix product."""
        total = 0
        for sign, start in self._pieces:
            low, high = self._ends(sign, start, c)
            total += _ORDER * self._panels(sign, low, high, c, u)[0]
        return total / 25

    def fade(self, c: float, u: Array) -> Array:
        """By uniform laws under the tilted density of the loss.

        On a cell the density of x is least at an end (it is log-concave), w is monotone, and the
        slope of log w is largest at the right end.
        """
        base = self._whole(self._nodes(c, 0.0), c)[0]
        every_mass, every_width = [], []
        for sign, start in self._pieces:
            low, high = self._ends(sign, start, c)
            x = np.linspace(low, high, 241)
            value, slope = self._log_w(x)
            log = self._density(x)[0]
            least = np.minimum(log[:-1], log[1:])
            power = 1 + c if sign > 0 else -c
            least = least + power * (value[:-1] if sign > 0 else value[1:])
            density = np.exp(
                np.minimum(least - base - np.log(np.maximum(slope[1:], 1e-300)), 690.0)
            )
            # Exponents of up to 700 err by some 1e-13 of their exponentials.
            masses, widths = layers_of(density * (1 - 1e-9), value)
            every_mass.append(masses)
            every_width.append(widths)
        result: Array = self.count * faded(
            np.concatenate(every_mass), np.concatenate(every_width), u
        )
        return result

    def singles(self) -> list[tuple[Term, int]]:
        """As a grid sees it."""
        return self.inner.singles()

    def top(self) -> float:
        """As a grid sees it."""
        return self.inner.top()

    def ends(self, tail: float) -> tuple[float, float]:
        """As a grid sees it."""
        return self.inner.ends(tail)

    def least(self) -> float:
        """As a grid sees it."""
        return self.inner.least()

    def anchors(self) -> tuple[float, float]:
        """As a grid sees it."""
        return self.inner.anchors()

    def cells(self, edges: Array) -> LawCells:
        """As a grid sees it."""
        return self.inner.cells(edges)

    def mean(self) -> float:
        """Σ mass·loss over the nodes."""
        nodes = self._nodes(0.0, 0.0)
        return self.count * float((np.exp(nodes.logs) * nodes.loss).sum())
