"""Any (epsilon, delta)-DP mechanism, by the pair that dominates all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither._format import argument_text
from dither.errors import ArgumentError
from dither.privacy.charge import Charge
from dither.privacy.parts.at_most import AtMost
from dither.privacy.parts.ends import Amount, Ends, printed
from dither.privacy.parts.groups import LARGEST_CHAIN, ApproximateGroup, everything_lost
from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import AtomTerm, ResponseTerm, Term

__all__ = ["Approximate"]

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
        words = f"{self.describe()}.group({m})"
        if self.delta == 0:
            return AtMost(Approximate(m * e, 0.0), words)
        if e > 0 and m <= LARGEST_CHAIN:
            if everything_lost(e, self.delta, m):
                raise ArgumentError(_TOO_LARGE)
            return ApproximateGroup(e, self.delta, m)
        if m * e > 700:
            raise ArgumentError(_TOO_LARGE)
        grown = m * self.delta if e == 0 else self.delta * math.expm1(m * e) / math.expm1(e)
        if grown * (1 + 1e-12) >= 1:
            raise ArgumentError(_TOO_LARGE)
        whole = Approximate(m * e, grown * (1 + 1e-12))
        # At epsilon 0 a chain moves m times delta, and one that does is easily written down.
        return whole if e == 0 else AtMost(whole, words)

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
