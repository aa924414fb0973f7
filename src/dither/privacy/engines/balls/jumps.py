"""Few Gaussians on sparse samples: what rare large losses add, by a contour in ball arithmetic.

A sparse sample's loss is nearly an atom at log(1 - g), so its generating function M does not fade
along a line before u is 1/g. But for epsilon > 0 that atom adds nothing to delta: large losses do,
and their transform fades at once. So, with l, phi and P of `dither.privacy.laws.sampled.gaussian`
in the direction of removal, T repetitions, and places z_0 < z_1 and widths v, w that are free, let
each repetition be at random one of three kinds, with chances that add up to 1 at each z ::

    body  b(z) = Phi((z_0 - z)/v)
    jump  j(z) = Phi((z - z_0)/v)·Phi((z_1 - z)/w)
    far   f(z) = Phi((z - z_0)/v)·Phi((z - z_1)/w)

and B(t), F(t), J(t) the integrals of phi·e^{(1+t)·l} with these weights, N = B + J. They are the
transforms of positive measures, and delta(epsilon) = E(1 - e^{epsilon-L})_+ is the sum of ::

    some far:    1 - (1 - F(0))^T - e^epsilon·(1 - (1 - F(-1))^T) + leak
    all body:    between 0 and a bound
    the rest:    1/(2·pi·i)·∫ (N^T - B^T)(t)·e^{-t·epsilon}/(t(1+t)) dt   over Re t = c

and N^T - B^T = J·Σ_k N^k·B^{T-1-k} fades as J does. What is charged, and how it is proved:

* *Far.* Without its first factor F(0) is Σ w_j·Q((z_1 - j·a)/√(1+w²)), Q(x) = Pr[N(0,1) > x], and
  F(-1) the summand of j = 0 without weight. By Phi(-x) <= e^{-x²/2}/2 for x >= 0, what the factor
  takes of the summand is at most, with D = z_1 - z_0, s² = v²w²/(v²+w²), z* the mean of z_1 and
  z_0 with weights v² and w², and z below z_0, between, and above z_1 apart ::

      e^{-D²/(2w²)}/2 + e^{-D²/(2(v²+w²))}/4·s/√(1+s²)·e^{-(z*-j·a)²/(2(1+s²))}
        + e^{-D²/(2v²)}/2·Q(z_1 - j·a)

  The leak is E(e^{epsilon-L} - 1)_+, which needs the far loss below
  epsilon - (T-1)·log(w_0), so its z below the place z_p of that. With
  rate = (z_1 - z_p)/w² - z_p > 0, the log-slope of the bound there, it is at most
  e^epsilon·T·phi(z_p)·e^{-((z_1-z_p)/w)²/2}/(2·rate).
* *Body.* Some z above a place z_m has a chance of at most T·P(z > z_m)·Phi((z_0 - z_m)/v); else
  Chernoff's bound holds of the measure that is cut there, whose moment is an upper sum over cells.
* *Aliases.* The trapezoid sum of period 2·pi/P is Σ_i D(epsilon + iP)·e^{ciP}, D >= 0 the rest's
  profile. To the left D is at most the rest's mass, at most T·J(0); to the right Chernoff's bound
  of the rest holds, whose moment is at most T·J(c')·N(c')^{T-1}.
* *Truncation.* |N^T - B^T| <= T·|J|·N(c)^{T-1}, and |J(c + iv)| for all v >= u is bounded on the
  line Im z = y as in `laws.sampled_gaussian`, with |Phi((x + iy)/v)| <= e^{y²/(2v²)}·Phi(x/v).
* *Inner quadrature.* The rule of `laws` on a line Im z = y. By the same bound of the weights
  E(b) is e^{b²(1 + 1/v² + 1/w²)/2}, or e^{b²(1 + 1/v²)/2} for the body. Nodes left out, beyond ends
  x_0 and x_1, are bounded by what is log-concave in x there: e^{(1+c)·l} by its value at x_0, or by
  its value at x_1 with the slope K·a. So they are geometric, at the rates of `_outside`.

Sums over cells are in doubles, raised by more than they err (`jump_plan._SPARE`); all else is in
balls.
"""

from __future__ import annotations

import math

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
from dither.privacy.engines.balls.jump_plan import JumpPlan, Planner
from dither.privacy.engines.balls.laws import LogRatio, kappa
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm

__all__ = ["JumpContour"]


class JumpContour:
    """A proved two-sided profile at epsilon >= 0, tight near the one it is made for.

    Parameters
    ----------
    term : SampledGaussianTerm
        The total, where a unit is removed.
    epsilon, log_delta : float
        About where the profile will be asked, and about what it is there.
    tolerance : float
        What each error may add, relative to delta.
    near : JumpContour, optional
        One that was made for a place near by: its widths spare a search.
    dearest : float
        Summands of the inner quadratures beyond which nothing is done.
    """

    name = "contour quadrature of rare losses in ball arithmetic"

    def __init__(
        self,
        term: SampledGaussianTerm,
        *,
        epsilon: float,
        log_delta: float,
        tolerance: float = 1e-13,
        near: JumpContour | None = None,
        dearest: float = 3e6,
    ) -> None:
        self._term, self.start, self.certified = term, epsilon, False
        # The split holds for epsilon above 0 alone: below, the body has losses that count.
        if epsilon <= 0:
            return
        self._planner = Planner(term, epsilon, log_delta + math.log(tolerance))
        plan = self._planner.best(None if near is None else near.plan.cuts)
        if plan is None or plan.work > dearest:
            return
        self.plan: JumpPlan = plan
        self.c = plan.c
        # What cancels on the line, and 40 bits of what is left.
        self._bits = 40 + math.ceil(plan.nats / math.log(2))
        with precision(self._bits):
            self._lay()
        self.certified = True

    @staticmethod
    def affordable(
        term: SampledGaussianTerm,
        epsilon: float,
        log_delta: float,
        tolerance: float,
        dearest: float = 3e6,
    ) -> bool:
        """Whether one that is made for there would be quick enough."""
        if epsilon <= 0:
            return False
        plan = Planner(term, epsilon, log_delta + math.log(tolerance)).best(None)
        return plan is not None and plan.work <= dearest

    def _lay(self) -> None:
        flint, plan, n = library(), self.plan, self._term.count
        arb, acb = flint.arb, flint.acb
        self._ratio = LogRatio(self._term)
        self._a, self._weights = self._ratio.a, self._ratio.weights
        cuts = plan.cuts
        self._v, self._w, self._low, self._high = map(arb, (cuts.v, cuts.w, cuts.low, cuts.high))
        self._found: dict[tuple[float, bool], tuple[list[Ball], list[Ball], Ball, Ball]] = {}
        self._kept: dict[tuple[bool, int], tuple[Ball, Ball]] = {}
        # A double, so that nodes are exact multiples; the period is what this step makes it.
        self._step = float(2 * arb.pi() / arb(plan.period))
        self._period = 2 * arb.pi() / arb(self._step)
        jumps = self._line(plan.c, plan.nodes + 1, jump=True)
        bodies = self._line(plan.c, plan.nodes + 1, jump=False)
        values = []
        for i, (jump, body) in enumerate(zip(jumps, bodies, strict=True)):
            t = acb(plan.c, arb(self._step) * i)
            # N^T - B^T with its factor J taken out: as a difference it would lose the digits of a
            # small J.
            values.append(jump * _series(jump + body, body, n) / (t * (1 + t)))
        # The node on the real line counts once, every other one for its conjugate too.
        values[0] /= 2
        self._sum = PowerSum(values)
        body = self._real(plan.c, jump=False)
        jump = self._real(plan.c, jump=True)
        # Terms from the next node on: Σ step/u² <= 1/u of the last.
        # |N^T - B^T| <= T·|J|·N^{T-1}: each of T summands has one factor J and T - 1 of at most N.
        whole = n * (jump + body) ** (n - 1)
        self._cut = whole * arb(plan.faded).exp() / (arb.pi() * arb(self._step) * plan.nodes)
        right, other = self._real(plan.right, jump=True), self._real(plan.right, jump=False)
        self._right = n * right * (right + other) ** (n - 1) * kappa(plan.right)
        self._right /= ((arb(plan.right) - plan.c) * self._period).expm1()
        self._left = n * self._real(0.0, jump=True) / (plan.c * self._period).expm1()
        # A normal variable under a normal edge is one of variance 1 + w².
        shrunk = (1 + self._w**2).sqrt()
        far = sum(
            (v * tail((self._high - j * self._a) / shrunk) for j, v in enumerate(self._weights)),
            arb(0),
        )
        # 1 - (1 - F)^T, with the digits of a small F.
        self._far = -(n * (-far).log1p()).expm1()
        self._far_other = -(n * (-tail(self._high / shrunk)).log1p()).expm1()
        middle = arb(cuts.middle)
        above = sum((v * tail(middle - j * self._a) for j, v in enumerate(self._weights)), arb(0))
        self._some = n * above * tail((middle - self._low) / self._v)
        shares = [self._taken_at(j * self._a) for j in range(len(self._weights))]
        self._taken = n * sum((v * x for v, x in zip(self._weights, shares, strict=True)), arb(0))
        # Under Q the mean is that of j = 0.
        self._taken_other = n * shares[0]

    def _taken_at(self, mean: Ball) -> Ball:
        """What the far weight's first factor takes of N(mean, 1)."""
        v, w = self._v**2, self._w**2
        gap, both = (self._high - self._low) ** 2 / 2, self._v**2 + self._w**2
        place, square = (self._high * v + self._low * w) / both, v * w / both
        between = (-gap / both - (place - mean) ** 2 / (2 * (1 + square))).exp() / 4
        between *= (square / (1 + square)).sqrt()
        return (-gap / w).exp() / 2 + between + (-gap / v).exp() / 2 * tail(self._high - mean)

    def _weight(self, z: Ball, jump: bool) -> Ball:
        """b(z) or j(z)."""
        if not jump:
            return phi((self._low - z) / self._v)
        return phi((z - self._low) / self._v) * phi((self._high - z) / self._w)

    def _nodes(self, c: float, jump: bool) -> tuple[list[Ball], list[Ball], Ball, Ball]:
        """What `_laid` finds, kept: real tilts and the line need the same."""
        if (c, jump) not in self._found:
            self._found[c, jump] = self._laid(c, jump)
        return self._found[c, jump]

    def _laid(self, c: float, jump: bool) -> tuple[list[Ball], list[Ball], Ball, Ball]:
        """Weights of the nodes at t = c, l at each, what is cut, and the rule's relative error."""
        flint, cuts, nats = library(), self.plan.cuts, self.plan.nats
        arb, acb = flint.arb, flint.acb
        h, height = self._planner.rule(cuts, nats, jump)
        y, square = arb(height), 1 + self._v**-2
        if jump:
            square += self._w**-2
        # The height's growth is to be outweighed at the ends, too.
        far = math.sqrt(2 * nats + height**2 * float(square) + 20)
        if jump:
            first, last = cuts.low - far * cuts.v, self._planner.last(c, cuts) + (far - 14) * cuts.w
        else:
            # Its own tail has a hump as well.
            first, hump = -far, (1 + c) * self._term.k * self._term.a * cuts.v**2
            last = max(cuts.low, (cuts.low + hump) / (1 + cuts.v**2)) + far * cuts.v
        indices = range(math.floor(first / h), math.ceil(last / h) + 1)
        points = [acb(arb(h) * i, y) for i in indices]
        for i, z in zip(indices, points, strict=True):
            # Nodes are the same at every tilt: l and the weights are found once.
            if (jump, i) not in self._kept:
                self._kept[jump, i] = self._ratio(z), self._weight(z, jump) * (-z * z / 2).exp()
        scale, x = arb(h) / (2 * arb.pi()).sqrt(), 1 + arb(c)
        found = [self._kept[jump, i] for i in indices]
        masses = [scale * (x * ratio).exp() * weight for ratio, weight in found]
        ratios = [ratio for ratio, _ in found]
        cut = self._outside(x, arb(h), arb(h) * indices[0], arb(h) * indices[-1], jump)
        cut *= (y * y * square / 2).exp()
        # The rule's error is derived for a strip in which e^l stays in its cone.
        if not 2 * self._term.k * self._a * y < arb.pi():
            return masses, ratios, arb("inf"), arb("inf")
        error = (1 + (2 * y * y * square).exp()) / (2 * arb.pi() * y / h).expm1()
        return masses, ratios, cut, error

    def _outside(self, x: Ball, h: Ball, first: Ball, last: Ball, jump: bool) -> Ball:
        """A bound of the sum over the nodes of the real line beyond the ends."""
        arb, v = library().arb, self._v
        edge, w = (self._high, self._w) if jump else (self._low, v)
        # Log-slopes at the ends: of the weight's edge and of phi, less what l may rise by.
        below = (self._low - first) / v**2 - first if jump else -first
        above = (last - edge) / w**2 + last - x * self._term.k * self._a
        # Without a fall beyond an end there is no geometric bound.
        if not (below > 0 and above > 0 and last > edge and first < self._low):
            return arb("inf")
        sizes = [(x * self._ratio(z) - z * z / 2).exp() for z in (first, last)]
        held = tail((self._low - first) / v) if jump else arb(1)
        total = sizes[0] * held / (below * h).expm1()
        total += sizes[1] * tail((last - edge) / w) / (above * h).expm1()
        return total * h / (2 * arb.pi()).sqrt()

    def _real(self, c: float, *, jump: bool) -> Ball:
        """J or B at real c. |sum - J| <= e·J says that J is in sum/(1 ± e)."""
        arb = library().arb
        masses, _, cut, error = self._nodes(c, jump)
        total = sum((m.real for m in masses), arb(0)) + within(cut)
        return total / (1 + within(error))

    def _line(self, c: float, count: int, *, jump: bool) -> list[Ball]:
        """J or B at c + i·step·k for k < count."""
        masses, ratios, cut, error = self._nodes(c, jump)
        wrong = within(cut + error * self._real(c, jump=jump))
        doubt = library().acb(wrong, wrong)
        return [value + doubt for value in transforms(masses, ratios, self._step, count)]

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon); the lower one may be -inf."""
        with precision(self._bits) as flint:
            arb, acb, plan, n = flint.arb, flint.acb, self.plan, self._term.count
            e, c = arb(epsilon), arb(plan.c)
            turn = acb(0, -arb(self._step) * e).exp()
            scale = (-c * e).exp()
            rest = self._sum(turn) * scale * arb(self._step) / arb.pi()
            cut = scale * self._cut
            aliases = self._left + self._right * (-plan.right * e).exp()
            total = rest + self._far - e.exp() * self._far_other
            tilt = plan.cuts.tilt
            # All body: some z above z_m, or Chernoff's bound of the rest.
            body = self._some + kappa(tilt) * (n * arb(plan.cuts.moment) - tilt * e).exp()
            # F(0) was taken too large by it, and aliases only add: both burden the lower end.
            low = total - (cut + aliases + self._taken).upper()
            # F(-1) was taken too large, and body and leak are left out: these burden the upper end.
            high = total + (cut + body + self._leak(e) + e.exp() * self._taken_other).upper()
            return log_ends(low, high)

    def _leak(self, e: Ball) -> Ball:
        """What far losses that do not suffice add."""
        arb, n, w = library().arb, self._term.count, self._w
        level = e - (n - 1) * self._weights[0].log()
        # A guess: every place at which l is above the level serves, and balls say whether it is.
        place = arb(self._planner.place(float(level.upper()) * (1 + 1e-12)) + 1e-9)
        rate = (self._high - place) / w**2 - place
        if not (self._ratio(place) >= level and rate > 0 and self._high > place):
            return arb("inf")
        # At that place the bound of the far weight is largest, and falls from there at the rate.
        gap = (self._high - place) / w
        size = (e - place**2 / 2 - gap**2 / 2).exp() / (2 * arb.pi()).sqrt()
        return n * size / (2 * rate)


def _series(x: Ball, y: Ball, n: int) -> Ball:
    """Σ_{k<n} x^k·y^{n-1-k}, by doubling: no difference of powers is formed."""
    total, high, low = x**0, x, y
    for digit in bin(n)[3:]:
        total, high, low = total * (high + low), high * high, low * low
        if digit == "1":
            total, high, low = total * x + low, high * x, low * y
    return total
