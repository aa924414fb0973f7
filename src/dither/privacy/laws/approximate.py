"""Groups under any (epsilon, delta)-DP mechanism, exactly.

Let T(a) = min(delta + e^epsilon·a, 1 - e^-epsilon·(1 - delta - a), 1) be the most power that a test
of level a has against neighbours. Along a chain of m neighbours a test's power at one step is its
level at the next, so its power is at most the m-fold T(T(...T(a))) [1]_. A chain that reaches it
everywhere: let the first law be uniform on [0, 1] and the i-th have the distribution function
T^i; then the sets [0, a] are best at every step, as T is concave.

For delta = 0 the chain is that of discrete Laplace noise moved by one step a time.

References
----------
.. [1] Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, theorem 2.14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from dither._format import argument_text
from dither.errors import ArgumentError
from dither.privacy._charge import Charge
from dither.privacy.laws.atoms import AtomTerm, shifted_noise
from dither.privacy.laws.part import Dominated, Part, gdp_of_pure, rho_of_pure
from dither.privacy.laws.rationals import Amount, Ends, printed, printing_at_least, rounded
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["LARGEST_CHAIN", "Approximate", "ApproximateGroup", "everything_lost"]


LARGEST_CHAIN = 2_000
"""Members of a group whose curve is followed step by step."""


@dataclass(frozen=True, slots=True)
class ApproximateGroup(Part):
    """Groups of ``size`` units under any (epsilon, delta)-DP mechanism, epsilon > 0."""

    epsilon: float
    delta: float
    size: int

    def term(self, removal: bool, count: int) -> Term:
        """The pair whose trade-off is the chain's."""
        if self.delta == 0:
            # Discrete Laplace noise moved a step a member: the chain that reaches every bound.
            return shifted_noise(rounded(1 / printed(self.epsilon))[0], self.size, count)
        steps, masses, infinite, doubt = _chain(self.epsilon, self.delta, self.size)
        losses = self.epsilon * steps
        lattice = (float(losses[0]), 2 * self.epsilon)
        return AtomTerm(losses, masses, count, infinite, lattice, relative=32 * EPS, lost=doubt)

    def top(self, removal: bool) -> Ends:
        """So many epsilons as the longest step of the chain."""
        steps = self.size
        if self.delta > 0:
            steps = int(_chain(self.epsilon, self.delta, self.size)[0][-1])
        return steps * printed(self.epsilon), steps * printed(self.epsilon)

    def grouped(self, size: int) -> Part:
        """The chain grows."""
        return Approximate(self.epsilon, self.delta).grouped(self.size * size)

    def gdp(self) -> Amount:
        """As any pure mechanism, where delta is 0."""
        return gdp_of_pure(printed(self.epsilon) * self.size) if self.delta == 0 else math.inf

    def rho(self) -> Amount:
        """Of discrete Laplace noise, where delta is 0."""
        return rho_of_pure(printed(self.epsilon) * self.size) if self.delta == 0 else math.inf

    def describe(self) -> str:
        """As written."""
        inner = f"{self.epsilon:g}" if self.delta == 0 else f"{self.epsilon:g}, {self.delta:g}"
        return f"{'approximate' if self.delta else 'pure'}({inner}).group({self.size})"


def everything_lost(epsilon: float, delta: float, size: int) -> bool:
    """Whether a test that never errs one way finds a group of this size: T^size(0) is 1."""
    a, grow = 0.0, math.exp(min(epsilon, 700.0))
    for _ in range(size):
        a = min(delta + grow * a, 1 - (1 - delta - a) / grow)
        # Rounding is given room: whoever is told so refuses.
        if a >= 1 - 1e-12:
            return True
    return False


@lru_cache(maxsize=64)
def _chain(epsilon: float, delta: float, size: int) -> tuple[Array, Array, float, float]:
    """Losses in steps of epsilon, their masses, the mass at infinity rounded down, and the rest.

    At many digits, of the numbers as they print: a double's own error would grow with the group.

    The curve's corners are where some T^i(a), i < size, is a corner of T. So they lie on the
    backward orbit of T's first corner, and their values on its forward orbit.
    """
    import mpmath

    m = mpmath.MPContext()
    # Corners shrink like e^{-size·epsilon}·delta: these digits, and 40 more.
    m.dps = 40 + math.ceil((size * epsilon - math.log(delta)) / math.log(10))
    loss, fails = (printed(x) for x in (epsilon, delta))
    e = m.exp(m.mpf(loss.numerator) / loss.denominator)
    d = m.mpf(fails.numerator) / fails.denominator
    corner = (1 - d) / (1 + e)

    def forward(a: Any) -> Any:
        return min(d + e * a, 1 - (1 - d - a) / e, m.mpf(1))

    def backward(b: Any) -> Any:
        return (b - d) / e if b <= 1 - corner else 1 - d - e * (1 - b)

    zero, last = m.mpf(0), 1 - d
    for _ in range(size):
        zero = forward(zero)
    for _ in range(size - 1):
        last = backward(last)
    values = [corner]
    for _ in range(size):
        values.append(forward(values[-1]))
    points = [(m.mpf(0), zero), (last, m.mpf(1))]
    a = corner
    for i in range(size):
        if 0 < a < last:
            points.append((a, values[size - i]))
        if a < d:
            break
        a = backward(a)
    points.sort()
    found: dict[int, float] = {}
    for (a0, b0), (a1, b1) in pairwise(points):
        if b1 > b0 and a1 > a0:
            # The slope of a piece is e^loss, and every loss is a whole number of epsilons.
            step = round(float(m.log((b1 - b0) / (a1 - a0)) / epsilon))
            found[step] = found.get(step, 0.0) + float(b1 - b0)
    steps = sorted(found)
    masses = np.array([found[k] for k in steps])
    # Rounded down, and what that leaves out is charged as lost.
    down = math.nextafter(float(zero), 0.0)
    return np.array(steps, dtype=float), masses, down, down * 2 * EPS


_TOO_LARGE = "size is too large: the group's delta would reach 1"

_LONGEST = 100_000
"""Members of a group under pure mechanisms whose losses are listed, one a member."""


@dataclass(frozen=True, slots=True)
class Approximate(Part):
    """Any (epsilon, delta)-DP mechanism; delta = 0 is pure.

    Dominated by randomised response that fails with probability delta: Kairouz, Oh and Viswanath,
    "The composition theorem for differential privacy", ICML 2015.
    """

    epsilon: float
    delta: float

    def term(self, removal: bool, count: int) -> Term:
        """(1 - delta) of randomised response, and delta at infinity."""
        e = self.epsilon
        if e == 0:
            return AtomTerm(np.zeros(1), np.array([1 - self.delta]), count, self.delta)
        return ResponseTerm(e, count, self.delta)

    def top(self, removal: bool) -> Ends:
        """epsilon."""
        return printed(self.epsilon), printed(self.epsilon)

    def grouped(self, size: int) -> Part:
        """The chain of `groups`; of very large groups (m·epsilon, delta·Σ e^{i·epsilon}) alone."""
        e, m = self.epsilon, size
        if e == 0 and self.delta == 0:
            return self
        if self.delta == 0 and m <= _LONGEST:
            return ApproximateGroup(e, 0.0, m)
        words, whole = f"{self.describe()}.group({m})", printing_at_least(m * printed(e))
        if self.delta == 0:
            return Dominated(Approximate(whole, 0.0), words)
        if e > 0 and m <= LARGEST_CHAIN:
            if everything_lost(e, self.delta, m):
                raise ArgumentError(_TOO_LARGE)
            return ApproximateGroup(e, self.delta, m)
        # An exponential that no double holds: the delta is above 1 by far.
        if m * e > 700:
            raise ArgumentError(_TOO_LARGE)
        grown = m * self.delta if e == 0 else self.delta * math.expm1(m * e) / math.expm1(e)
        # m·e rounds, and e stands for what was printed: each moves an exponential of up to e^700
        # by 700 halves of EPS of itself, in all 2e-13.
        if grown * (1 + 1e-12) >= 1:
            raise ArgumentError(_TOO_LARGE)
        found = Approximate(whole, grown * (1 + 1e-12))
        # At epsilon 0 a chain moves m times delta, and one that does is easily written down.
        return found if e == 0 else Dominated(found, words)

    def gdp(self) -> Amount:
        """Finite where delta is 0."""
        return gdp_of_pure(printed(self.epsilon)) if self.delta == 0 else math.inf

    def rho(self) -> Amount:
        """That of any pure mechanism, where delta is 0."""
        return rho_of_pure(printed(self.epsilon)) if self.delta == 0 else math.inf

    def charge(self) -> Charge:
        """(epsilon, delta), and delta-approximate epsilon²/2-zCDP."""
        return Charge.approximate(printed(self.epsilon), printed(self.delta))

    def describe(self) -> str:
        """As written."""
        if self.delta == 0:
            return f"pure({argument_text(self.epsilon)})"
        return f"approximate({argument_text(self.epsilon)}, {argument_text(self.delta)})"
