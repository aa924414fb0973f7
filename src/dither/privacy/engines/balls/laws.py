"""Generating functions of losses in ball arithmetic, on vertical lines.

The sampled Gaussian's, with l, phi and the cone of `dither.privacy.laws.sampled.gaussian` and
s = size/noise_multiplier the largest slope of l, is at t = c + iu ::

    F(p) = ∫ phi·e^{p·l},   p = 1 + t for removal,  p = -t for addition;   x = Re p

*Where the nodes lie.* On Im z = y > 0 the factor e^{iul} decays as e^{-u·arg e^l}, arg e^l in
[0, s·y], and oscillates no more where it matters: so nodes on that line, as many as for u = 0, do
for every u. (Addition has -u there: F of the conjugate is the conjugate.) The trapezoid rule of
step h on a line in the middle of the strip [0, 2y], 2·s·y < pi, errs by at most ::

    (I(0) + I(2y))/(e^{2·pi·y/h} - 1),   I(b) = ∫|f(·+ib)| <= E(b)·F(x),
    E(b) = e^{b²/2} for x >= 0,  e^{b²/2}·cos(s·b/2)^x for x < 0

as the contour integrals of f/(e^{∓2·pi·i(z - iy)/h} - 1) along both edges show. For x < 0 and
s·b <= pi/2 also e^{b²/2}·w_0^x will do: there |e^l| is at least w_0, and F(x) at least 1.

*Where they end.* The nodes h·k + iy outside of [z_0, z_1], z_0 <= 0, add at most E(y) times, with
Q(v) = Pr[N(0, 1) > v] (phi is monotone there, so each h·phi(h·k) is below an integral)

    below:  e^{x·l(z_0)}·Q(-z_0) for x >= 0, since l increases;   w_0^x·Q(-z_0) for x < 0
    above:  e^{x·(l(z_1) - s·z_1) + x²s²/2}·Q(z_1 - x·s) for x >= 0 and z_1 >= x·s,
            since l(z) <= l(z_1) + s·(z - z_1);   e^{x·l(z_1)}·Q(z_1) for x < 0

and for x < 0 and s·y <= pi/2 at most e^{y²/2}·w_0^x·(Q(-z_0) + Q(z_1)) in all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from dither.numeric._balls import Ball, down, library, precision, tail, transforms, up, within
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import FixedSizeTerm
from dither.privacy.laws.term import Array, Term

__all__ = ["GaussianLaw", "Law", "LogRatio", "SampledGaussianLaw", "kappa", "law_of", "line_moment"]


def kappa(c: float) -> Ball:
    """c^c/(1+c)^{1+c} of Chernoff's bound, as of `search`."""
    x = library().arb(c)
    return (x * (x / (1 + x)).log()).exp() / (1 + x)


class Law(ABC):
    """One term's generating function M(t) = E[e^{tL}], all repetitions included."""

    term: Term

    def swapped(self) -> Law:
        """The law of the swapped pair."""
        return self

    @abstractmethod
    def moment(self, c: float, bits: int) -> Ball:
        """M(c) for real c > 0, relative to about 2**-bits."""

    @abstractmethod
    def line(self, c: float, step: float, count: int, bits: int) -> list[Ball]:
        """M(c + i·step·j) for j < count, each to about 2**-bits of M(c)."""

    def work(self, c: float, bits: int) -> float:
        """Nodes of the inner quadrature."""
        return 1.0

    def fade(self, c: float, u: Array) -> Array:
        """An upper bound of log sup_{w >= u} |M(c + iw)/M(c)|."""
        return self.term.fade(c, u) - self.term.curvature() * u * u / 2


class GaussianLaw(Law):
    """M(t) = e^{t(t+1)·mu²/2}."""

    def __init__(self, term: GaussianTerm) -> None:
        self.term = term
        self._square = term.mu_squared

    def moment(self, c: float, bits: int) -> Ball:
        """As it stands."""
        x = library().arb(c)
        return (x * (x + 1) * self._square / 2).exp()

    def line(self, c: float, step: float, count: int, bits: int) -> list[Ball]:
        """As it stands."""
        flint = library()
        points = [flint.acb(c, flint.arb(step) * j) for j in range(count)]
        return [(t * (t + 1) * self._square / 2).exp() for t in points]


class LogRatio:
    """l of a sampled Gaussian, at any complex z near the real line."""

    def __init__(self, term: SampledGaussianTerm) -> None:
        arb = library().arb
        g, k = arb(term.rate), term.k
        self.a = 1 / arb(term.noise_multiplier)
        # Binomial, of doubles read as they are: w_j for j members that are sampled.
        self.weights = [arb(math.comb(k, j)) * g**j * (1 - g) ** (k - j) for j in range(k + 1)]
        self.factors = [w * (-((j * self.a) ** 2) / 2).exp() for j, w in enumerate(self.weights)]

    def __call__(self, z: Ball) -> Ball:
        """By Horner's rule in e^{a·z}."""
        rise, value = (self.a * z).exp(), self.factors[-1]
        for factor in reversed(self.factors[:-1]):
            value = value * rise + factor
        return value.log()


class SampledGaussianLaw(Law):
    """A Gaussian on a Poisson sample, by the trapezoid rule."""

    def __init__(self, term: SampledGaussianTerm) -> None:
        self.term: SampledGaussianTerm = term
        # At least K·a, which rounds twice.
        self._slope = term.k * term.a * (1 + 1e-12)

    def swapped(self) -> Law:
        """The other direction."""
        t = self.term
        return SampledGaussianLaw(
            SampledGaussianTerm(t.noise_multiplier, t.rate, not t.removal, t.count, t.k)
        )

    def _power(self, c: float) -> float:
        return 1.0 + c if self.term.removal else -c

    def _window(self, c: float, nats: float) -> tuple[float, float]:
        """Where to end, so that e^{-nats} of M is cut: a guess, which `_doubt` judges."""
        x, term = self._power(c), self.term
        if x < 0:
            # |e^l|^-c may be as large as w_0^-c, so that phi has to be smaller by as much.
            low = math.sqrt(2 * (nats + c * term.k * -math.log1p(-term.rate)))
            return -low, math.sqrt(2 * nats)
        s, y = self._slope, 0.5
        # Where every member is sampled, one normal carries e^{far} of M, and M is at least 1.
        far = x * (term.k * math.log(term.rate) - s * s / 2) + (x * s) ** 2 / 2
        while y * y / 2 < nats:
            z = x * s + y
            at = self._guess(z)
            if x * (at - s * z) + (x * s) ** 2 / 2 - y * y / 2 <= max(far, 0.0) - nats:
                break
            y += 0.5
        return -math.sqrt(2 * nats), x * s + y

    def _guess(self, z: float) -> float:
        """l(z) in doubles."""
        parts = [
            math.log(w) + j * self.term.a * z - 0.5 * (j * self.term.a) ** 2
            for j, w in enumerate(self.term.weights.tolist())
            if w > 0
        ]
        top = max(parts)
        return top + math.log(sum(math.exp(x - top) for x in parts))

    def _growth(self, c: float, b: float) -> float:
        """log E(b), for the planning."""
        turned = 0.0 if self.term.removal else -c * math.log(math.cos(self._slope * b / 2))
        # There |e^l| is at least w_0, as in the module's second bound.
        if self._slope * b < math.pi / 2:
            turned = min(turned, -c * self.term.k * math.log1p(-self.term.rate))
        return b * b / 2 + turned

    def _rule(self, c: float, bits: int) -> tuple[float, float, float, float]:
        """A short binary step h, a height y, and the ends: a guess at the fewest nodes."""
        best = (math.inf, 1.0, 0.0, 0.0, 0.0)
        # The error counts against F, and 4 nats are for both edges of the strip.
        nats = bits * math.log(2) + 4
        # Below half of pi, as the strip reaches to twice the height.
        top = min(0.49 * math.pi / self._slope, 8.0)
        for i in range(1, 25):
            y = top * i / 24
            h = 2 * math.pi * y / (nats + self._growth(c, 2 * y))
            low, high = self._window(c, nats + self._growth(c, y))
            best = min(best, ((high - low) / h, h, y, low, high))
        # Short binary numbers, so that nodes are exact; a smaller step errs less.
        mantissa, exponent = math.frexp(best[1])
        h = math.ldexp(math.floor(mantissa * 256), exponent - 8)
        return h, math.ldexp(round(math.ldexp(best[2], 20)), -20), best[3], best[4]

    def work(self, c: float, bits: int) -> float:
        """Nodes."""
        h, _, low, high = self._rule(c, bits)
        return (high - low) / h + 3

    def _growth_ball(self, c: float, b: Ball) -> Ball:
        """E(b)."""
        size, ratio = (b * b / 2).exp(), LogRatio(self.term)
        if self.term.removal:
            return size
        turned = self.term.k * ratio.a * b
        growth, most = (turned / 2).cos() ** -c, ratio.weights[0] ** -c
        return size * (most if 2 * turned < library().arb.pi() and most < growth else growth)

    def _doubt(self, c: float, y: Ball, low: Ball, high: Ball) -> Ball:
        """A bound of what the nodes of the line Im z = y beyond the ends would add."""
        arb, ratio = library().arb, LogRatio(self.term)
        first, last, s = ratio(low), ratio(high), self.term.k * ratio.a
        if not self.term.removal:
            most = ratio.weights[0] ** -arb(c)
            # s·y <= pi/2: the last bound of the module's list, which needs no growth.
            if 2 * s * y < arb.pi():
                return (y * y / 2).exp() * most * (tail(-low) + tail(high))
            total = most * tail(-low) + (-c * last).exp() * tail(high)
            return total * self._growth_ball(c, y)
        x = 1 + arb(c)
        # The bound above z_1 is for ends beyond the tilted mean.
        if not high >= x * s:
            return arb("inf")
        above = (x * (last - s * high) + (x * s) ** 2 / 2).exp() * tail(high - x * s)
        return (y * y / 2).exp() * ((x * first).exp() * tail(-low) + above)

    def _nodes(self, c: float, bits: int) -> tuple[list[Ball], list[Ball], Ball, Ball]:
        """Weights of the nodes at t = c, l at each, what is cut, and the rule's error over F."""
        flint = library()
        arb, acb = flint.arb, flint.acb
        h, height, low, high = self._rule(c, bits)
        ratio, y = LogRatio(self.term), arb(height)
        first, last = math.floor(low / h), math.ceil(high / h)
        points = [acb(arb(h) * k, y) for k in range(first, last + 1)]
        ratios = [ratio(z) for z in points]
        x = 1 + arb(c) if self.term.removal else -arb(c)
        scale = arb(h) / (2 * arb.pi()).sqrt()
        masses = [scale * (x * r - z * z / 2).exp() for z, r in zip(points, ratios, strict=True)]
        cut = self._doubt(c, y, arb(h) * first, arb(h) * last)
        # Outside of the cone the rule's error has no bound.
        if not 2 * self.term.k * ratio.a * y < arb.pi():
            return masses, ratios, arb("inf"), arb("inf")
        error = (1 + self._growth_ball(c, 2 * y)) / (2 * arb.pi() * y / h).expm1()
        return masses, ratios, cut, error

    def _real(self, c: float, bits: int) -> Ball:
        """F at real p. |T - F| <= e·F says that F is in T/(1 ± e)."""
        arb = library().arb
        masses, _, cut, error = self._nodes(c, bits)
        total = sum((m.real for m in masses), arb(0)) + within(cut)
        return total / (1 + within(error))

    def moment(self, c: float, bits: int) -> Ball:
        """By quadrature."""
        return self._real(c, bits) ** self.term.count

    def line(self, c: float, step: float, count: int, bits: int) -> list[Ball]:
        """By quadrature."""
        masses, ratios, cut, error = self._nodes(c, bits)
        # The error is relative to F at real p, of which a double's digits are enough.
        wrong = within(cut + error * self._real(c, 53))
        doubt = library().acb(wrong, wrong)
        found = [value + doubt for value in transforms(masses, ratios, step, count)]
        if not self.term.removal:
            # Addition has -u: F of the conjugate is the conjugate.
            found = [value.conjugate() for value in found]
        return [value**self.term.count for value in found]


def line_moment(term: SampledLineTerm, c: float) -> tuple[float, float]:
    """Ends of log E[e^{cL}] of Laplace noise on a sample, by integrals in ball arithmetic.

    With x the base's loss under Q, of mass 1/2 at -e, e^{-e}/2 at e and density e^{-(x + e)/2}/4
    between, and w = 1 - g + g·e^x: E[w^{1+c}] where a unit is removed, E[w^{-c}] where it is added,
    and both where x > 0, with what is left at 0, on a sample of fixed size (`laws.sampled.line`).
    """
    fixed = isinstance(term.inner, FixedSizeTerm)
    one = term.inner.first if isinstance(term.inner, FixedSizeTerm) else term.inner
    # For a small c the moment is 1 + c times a mean: as many bits more as c has zeros in front.
    bits = 96 + max(0, -math.frexp(c)[1])
    with precision(bits) as flint:
        arb, acb = flint.arb, flint.acb
        g, power = arb(term.rate), arb(c)
        e = arb(float(term.base.epsilons[0]))  # type: ignore[attr-defined]

        def part(up: bool, low: Ball) -> Ball:
            """E[w·(w^c - 1)] or E[w^{-c} - 1] over x >= low; all of w has the mean 1."""

            def rise(x: Ball) -> Ball:
                w = 1 + g * x.expm1()
                return w * (power * w.log()).expm1() if up else (-power * w.log()).expm1()

            def integrand(x: Ball, analytic: bool) -> Ball:
                w = 1 + g * x.expm1()
                # The integrator asks for a region without singularities: not where the logarithm
                # has its cut.
                if analytic and not (w.real > 0):
                    return acb("nan")
                return rise(x) * (-(x + e) / 2).exp() / 4

            total = acb.integral(integrand, acb(low), acb(e)).real
            # Q's atoms: e^-e/2 at e, and 1/2 at -e, which has no part where only x > 0 counts.
            total += rise(e) * (-e).exp() / 2
            return total if fixed else total + rise(-e) / 2

        total = part(True, arb(0)) + part(False, arb(0)) if fixed else part(one.removal, -e)
        value = term.count * (1 + total).log()
        return down(value), up(value)


def law_of(term: Term) -> Law | None:
    """The term's law in balls, where it has one."""
    if isinstance(term, SampledGaussianTerm):
        return SampledGaussianLaw(term)
    if isinstance(term, GaussianTerm):
        return GaussianLaw(term)
    return None
