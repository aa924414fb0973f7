"""Any (epsilon, delta)-DP mechanism, by the pair that dominates all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither._format import argument_text
from dither.errors import ArgumentError
from dither.privacy.parts.part import Part, gdp_of_pure
from dither.privacy.terms import AtomTerm, Term

__all__ = ["Approximate"]


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
        low = math.exp(-e)
        mass = (1 - self.delta) * np.array([low, 1.0]) / (1 + low)
        if e == 0:
            return AtomTerm(np.zeros(1), np.array([1 - self.delta]), count, self.delta)
        return AtomTerm(np.array([-e, e]), mass, count, self.delta, (-e, 2 * e))

    def grouped(self, size: int) -> Part:
        """(m·epsilon, delta·(e^{m·epsilon} - 1)/(e^epsilon - 1))."""
        e, m = self.epsilon, size
        if self.delta == 0:
            return Approximate(m * e, 0.0)
        grown = m * self.delta if e == 0 else self.delta * math.expm1(m * e) / math.expm1(e)
        if grown * (1 + 1e-12) >= 1:
            raise ArgumentError("size is too large: the group's delta would reach 1")
        return Approximate(m * e, grown * (1 + 1e-12))

    def gdp(self) -> float:
        """Finite where delta is 0."""
        return gdp_of_pure(self.epsilon) if self.delta == 0 else math.inf

    def rho(self) -> float:
        """epsilon²/2 where delta is 0."""
        return self.epsilon**2 / 2 if self.delta == 0 else math.inf

    def describe(self) -> str:
        """As written."""
        if self.delta == 0:
            return f"pure({argument_text(self.epsilon)})"
        return f"approximate({argument_text(self.epsilon)}, {argument_text(self.delta)})"
