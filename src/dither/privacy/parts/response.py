"""Randomised response."""

from __future__ import annotations

from dataclasses import dataclass

from dither._format import argument_text
from dither.privacy.charge import Charge
from dither.privacy.parts.ends import Amount, Ends, printed
from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import ResponseTerm, Term

__all__ = ["RandomResponse"]


@dataclass(frozen=True, slots=True)
class RandomResponse(Part):
    """The truth with probability e^epsilon/(e^epsilon + k - 1), else one of the k - 1 others."""

    epsilon: float
    k: int

    def term(self, removal: bool, count: int) -> Term:
        """Losses ±epsilon, and 0 for the k - 2 answers that neither input favours."""
        return ResponseTerm(self.epsilon, count, answers=self.k)

    def top(self, removal: bool) -> Ends:
        """epsilon."""
        return printed(self.epsilon), printed(self.epsilon)

    def group(self, size: int) -> tuple[Part, int]:
        """Each member reports once, so that the group's reports are as many responses."""
        return self, size

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(printed(self.epsilon))

    def rho(self) -> Amount:
        """As any pure mechanism."""
        return rho_of_pure(printed(self.epsilon))

    def charge(self) -> Charge:
        """epsilon, and rho = epsilon·tanh(epsilon/2)."""
        return Charge.response(printed(self.epsilon))

    def describe(self) -> str:
        """As written."""
        return f"randomized_response({argument_text(self.epsilon)}, k={self.k})"
