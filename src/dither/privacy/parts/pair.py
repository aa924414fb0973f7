"""Two probability mass functions on a common support."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.parts.approximate import Approximate
from dither.privacy.parts.at_most import AtMost
from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import AtomTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["PmfPair"]


@dataclass(frozen=True, slots=True)
class PmfPair(Part):
    """Two probability mass functions on a common support, both directions kept."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def symmetric(self) -> bool:
        """Only where swapping permutes the points."""
        return sorted(zip(self.p, self.q, strict=True)) == sorted(zip(self.q, self.p, strict=True))

    def term(self, removal: bool, count: int) -> Term:
        """log(p/q) with mass p; mass where q is 0 is infinite."""
        p, q = (np.array(x) for x in ((self.p, self.q) if removal else (self.q, self.p)))
        both = (p > 0) & (q > 0)
        losses, inverse = np.unique(np.log(p[both]) - np.log(q[both]), return_inverse=True)
        mass = np.bincount(inverse.ravel(), p[both], len(losses))
        infinite = float(p[(p > 0) & (q == 0)].sum())
        if not len(losses):
            return AtomTerm(np.zeros(1), np.zeros(1) + 1e-300, count, infinite)
        logs = float(np.abs(np.log(np.concatenate([p[both], q[both]]))).max())
        return AtomTerm(losses, mass, count, infinite, position=2 * EPS * (1 + logs))

    def _pure(self) -> float:
        pairs = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a > 0 or b > 0]
        if any(a == 0 or b == 0 for a, b in pairs):
            return math.inf
        return max(abs(math.log(a) - math.log(b)) for a, b in pairs) * (1 + 1e-13)

    def grouped(self, size: int) -> Part:
        """By its pure epsilon, where that is finite."""
        epsilon = self._pure()
        if not math.isfinite(epsilon):
            raise ArgumentError(
                "group needs p and q to be above 0 at the same points; state the pair of the "
                "whole group, or approximate(epsilon, delta)"
            )
        bound = Approximate(epsilon, 0.0).grouped(size)
        return AtMost(bound, f"{self.describe()}.group({size})")

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self._pure()) if math.isfinite(self._pure()) else math.inf

    def rho(self) -> float:
        """As any mechanism of its pure epsilon."""
        return rho_of_pure(self._pure())

    def describe(self) -> str:
        """As written."""
        return f"pair of {len(self.p)} points"
