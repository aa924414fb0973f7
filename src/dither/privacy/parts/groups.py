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

from dither.privacy.parts.ends import Amount, Ends, printed
from dither.privacy.parts.laplace import DiscreteLaplaceNoise
from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import AtomTerm, Term
from dither.privacy.terms.base import EPS, Array

__all__ = ["LARGEST_CHAIN", "ApproximateGroup", "everything_lost"]

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
            return self._laplace().term(removal, count)
        steps, masses, infinite = _chain(self.epsilon, self.delta, self.size)
        losses = self.epsilon * steps
        lattice = (float(losses[0]), 2 * self.epsilon)
        return AtomTerm(losses, masses, count, infinite, lattice, relative=32 * EPS)

    def _laplace(self) -> DiscreteLaplaceNoise:
        return DiscreteLaplaceNoise.of(1 / printed(self.epsilon), self.size)

    def top(self, removal: bool) -> Ends:
        """So many epsilons as the longest step of the chain."""
        steps = self.size
        if self.delta > 0:
            steps = int(_chain(self.epsilon, self.delta, self.size)[0][-1])
        return steps * printed(self.epsilon), steps * printed(self.epsilon)

    def grouped(self, size: int) -> Part:
        """The chain grows."""
        from dither.privacy.parts.approximate import Approximate

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
        if a >= 1 - 1e-12:
            return True
    return False


@lru_cache(maxsize=64)
def _chain(epsilon: float, delta: float, size: int) -> tuple[Array, Array, float]:
    """Losses in steps of epsilon, their masses, and the mass at infinity; at many digits.

    The curve's corners are where some T^i(a), i < size, is a corner of T. So they lie on the
    backward orbit of T's first corner, and their values on its forward orbit.
    """
    import mpmath

    m = mpmath.MPContext()
    m.dps = 40 + math.ceil((size * epsilon - math.log(delta)) / math.log(10))
    e, d = m.exp(m.mpf(epsilon)), m.mpf(delta)
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
            step = round(float(m.log((b1 - b0) / (a1 - a0)) / epsilon))
            found[step] = found.get(step, 0.0) + float(b1 - b0)
    steps = sorted(found)
    masses = np.array([found[k] for k in steps])
    return np.array(steps, dtype=float), masses, float(zero) * (1 + EPS)
