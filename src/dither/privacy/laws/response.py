"""Randomised response, whose law one number and the count of answers give exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dither._format import argument_text
from dither.privacy._charge import Charge
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.laws.rationals import Amount, Ends, printed
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["RandomResponse", "ResponseTerm"]


_LARGE = 300.0
"""Exponents from which hyperbolic functions are left alone."""


class ResponseTerm(AtomTerm):
    """Losses -epsilon, 0 and epsilon with P's odds 1 : answers - 2 : e^epsilon.

    A total of ``count`` such losses is an epsilon times an integer, whose law is a function of
    ``epsilon``: nothing that is derived here needs the rounded masses.

    Parameters
    ----------
    epsilon : float
        Above 0.
    count : int
        Repetitions.
    infinite : float
        P's mass where Q has none; the others share the rest.
    answers : int
        At least 2.
    """

    def __init__(
        self, epsilon: float, count: int, infinite: float = 0.0, *, answers: int = 2
    ) -> None:
        e, low = epsilon, math.exp(-epsilon)
        # Over e^epsilon: odds as they are written would overflow.
        odds, losses, lattice = [low, 1.0], [-e, e], (-e, 2 * e)
        if answers > 2:
            odds, losses, lattice = [low, (answers - 2) * low, 1.0], [-e, 0.0, e], (-e, e)
        mass = (1 - infinite) * np.array(odds) / (1 + (answers - 1) * low)
        super().__init__(np.array(losses), mass, count, infinite, lattice)
        self.epsilon, self.answers = epsilon, answers

    def log_grown(self, c: Array) -> Array:
        """log E[e^{cL}] of a finite loss, without a difference of near equals.

        E[e^{cL}] - 1 is Pr[L != 0]·2·sinh((c+1)·e/2)·sinh(c·e/2)/cosh(e/2).
        """
        e = self.epsilon
        low = math.exp(-e)
        some = (1 + low) / (1 + (self.answers - 1) * low)
        with np.errstate(over="ignore", invalid="ignore"):
            grown = 2 * np.sinh((c + 1) * e / 2) * np.sinh(c * e / 2) / math.cosh(e / 2)
            value: Array = np.log1p(some * grown)
        return value

    def moment_ends(self, c: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}; L < infinity] of all repetitions."""
        # Hyperbolic functions of more leave the doubles.
        far = (c + 1) * self.epsilon
        if far > _LARGE:
            return super().moment_ends(c)
        value = self.count * float(self.log_grown(np.array([c]))[0])
        kept = self.count * math.log1p(-self.infinite)
        # In parts of itself: the sinhs' arguments, together below far, round twice, which moves
        # them by EPS·(2 + far); sinhs, cosh and exponential have up to 4 units in their last
        # places, and quotients and products 6 halves; log1p makes that no larger and adds 4 units.
        # Nearly twice those 30 + far are charged. What underflows is below 1e-300.
        slack = EPS * ((48 + 8 * far) * value + 4 * abs(kept)) + 1e-300 * self.count
        return value + kept - slack, value + kept + slack

    def mean(self) -> float:
        """epsilon·tanh(epsilon/2), each time that the loss is not 0."""
        if self.infinite > 0:
            return math.inf
        low = math.exp(-self.epsilon)
        lost = self.epsilon * -math.expm1(-self.epsilon) / (1 + (self.answers - 1) * low)
        return self.count * lost


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
