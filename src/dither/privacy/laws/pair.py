"""Two probability mass functions on a common support."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError
from dither.privacy._charge import Charge
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.part import Dominated, Part, gdp_of_pure, rho_of_pure
from dither.privacy.laws.rationals import Amount, Ends, printed, printing_at_least, ratio
from dither.privacy.laws.term import EPS, Term

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
        # Equal losses are one atom: a map that forgets which outcome it was loses nothing.
        losses, inverse = np.unique(np.log(p[both]) - np.log(q[both]), return_inverse=True)
        mass = np.bincount(inverse.ravel(), p[both], len(losses))
        # What Q never gives is evidence by itself, whatever epsilon is.
        infinite = float(p[(p > 0) & (q == 0)].sum())
        if not len(losses):
            # A law has an atom; next to an infinite loss this one is nothing.
            return AtomTerm(np.zeros(1), np.zeros(1) + 1e-300, count, infinite)
        logs = float(np.abs(np.log(np.concatenate([p[both], q[both]]))).max())
        # Two logarithms and a difference, with up to EPS of `logs` each; and masses that stand for
        # numbers that were printed. As many as share a loss are added one by one.
        position = EPS * (2 + 3 * logs)
        most = int(np.bincount(inverse.ravel()).max())
        return AtomTerm(
            losses, mass, count, infinite, relative=EPS * (16 + most), position=position
        )

    def top(self, removal: bool) -> Ends | None:
        """The largest log(p/q)."""
        rows = [(printed(a), printed(b)) for a, b in zip(self.p, self.q, strict=True)]
        both = [(a, b) if removal else (b, a) for a, b in rows if a > 0 and b > 0]
        return ratio(*max(both, key=lambda row: row[0] / row[1])) if both else None

    def _pure(self) -> Fraction | None:
        """The larger of both directions' largest losses, where both are finite."""
        # An outcome of one law alone has an infinite loss in one direction.
        if any((a == 0) != (b == 0) for a, b in zip(self.p, self.q, strict=True)):
            return None
        ends = [self.top(removal) for removal in (True, False)]
        return max((e[1] for e in ends if e is not None), default=None)

    def grouped(self, size: int) -> Part:
        """By its pure epsilon, where that is finite."""
        epsilon = self._pure()
        if epsilon is None:
            raise ArgumentError(
                "group needs p and q to be above 0 at the same points; state the pair of the "
                "whole group, or approximate(epsilon, delta)"
            )
        bound = Approximate(printing_at_least(epsilon), 0.0).grouped(size)
        return Dominated(bound, f"{self.describe()}.group({size})")

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        epsilon = self._pure()
        return math.inf if epsilon is None else gdp_of_pure(epsilon)

    def rho(self) -> Amount:
        """As any mechanism of its pure epsilon."""
        epsilon = self._pure()
        return math.inf if epsilon is None else rho_of_pure(epsilon)

    def charge(self) -> Charge:
        """The largest log-ratio, rounded up, and the larger mass that the other law lacks."""
        tops = [self.top(removal) for removal in (True, False)]
        epsilon = max((top[1] for top in tops if top is not None), default=Fraction(0))
        rows = [(printed(a), printed(b)) for a, b in zip(self.p, self.q, strict=True)]
        apart = [sum((row[i] for row in rows if not row[1 - i]), Fraction(0)) for i in (0, 1)]
        return Charge.approximate(max(epsilon, Fraction(0)), min(Fraction(1), max(apart)))

    def describe(self) -> str:
        """As written."""
        return f"pair of {len(self.p)} points"
