"""Laplace noise, on a line and on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dither.privacy.charge import Charge
from dither.privacy.parts.ends import Amount, Ends, rounded, written
from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import AtomTerm, LaplaceTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["DiscreteLaplaceNoise", "LaplaceNoise"]


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Part):
    """Laplace noise of scale b at sensitivity 1.

    ``rational`` is b where the double is a rounding of it, downwards: `of` makes both.
    """

    noise_multiplier: float
    rational: Fraction | None = None

    @classmethod
    def of(cls, scale: Fraction) -> LaplaceNoise:
        """The noise of a rational scale."""
        return cls(*rounded(scale))

    @property
    def epsilon(self) -> Fraction:
        """1/b, as b was written."""
        return 1 / written(self.noise_multiplier, self.rational)

    def term(self, removal: bool, count: int) -> Term:
        """epsilon = 1/b."""
        return LaplaceTerm(np.array([1 / self.noise_multiplier]), np.array([float(count)]))

    def top(self, removal: bool) -> Ends:
        """1/b."""
        return self.epsilon, self.epsilon

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return LaplaceNoise.of(1 / (self.epsilon * size))

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(self.epsilon)

    def rho(self) -> Fraction:
        """As any pure mechanism."""
        return rho_of_pure(self.epsilon)

    def charge(self) -> Charge:
        """epsilon."""
        return Charge.pure(self.epsilon)

    def describe(self) -> str:
        """As written."""
        return f"laplace({self.noise_multiplier:g})"


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(Part):
    """Discrete Laplace of a scale on the integers, at an integer sensitivity.

    ``rational`` is the scale where the double is a rounding of it, downwards: `of` makes both.
    """

    scale: float
    sensitivity: int
    rational: Fraction | None = None

    @classmethod
    def of(cls, scale: Fraction, sensitivity: int) -> DiscreteLaplaceNoise:
        """The noise of a rational scale."""
        double, rational = rounded(scale)
        return cls(double, sensitivity, rational)

    @property
    def epsilon(self) -> Fraction:
        """d/s."""
        return self.sensitivity / written(self.scale, self.rational)

    def term(self, removal: bool, count: int) -> Term:
        """L = (|x - d| - |x|)/s: ±d/s at the outside, in steps of 2/s between."""
        s, d = self.scale, self.sensitivity
        r = math.exp(-1 / s)
        x = np.arange(d, -1, -1.0)
        whole = -math.expm1(-1 / s) / (1 + r)
        mass = whole * np.exp(-x / s)
        mass[0] = math.exp(-d / s) / (1 + r)
        mass[-1] = 1 / (1 + r)
        rough = EPS * (16 + 4 * d / s + 4 * s)
        losses, lattice = (d - 2 * x) / s, (-d / s, 2 / s)
        # Moved noise has the same masses in the opposite order.
        other = mass[::-1].copy()
        return AtomTerm(losses, mass, count, 0.0, lattice, relative=rough, others=other)

    def top(self, removal: bool) -> Ends:
        """d/s."""
        return self.epsilon, self.epsilon

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        return replace(self, sensitivity=self.sensitivity * size)

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(self.epsilon)

    def rho(self) -> Fraction:
        """As any pure mechanism."""
        return rho_of_pure(self.epsilon)

    def charge(self) -> Charge:
        """epsilon."""
        return Charge.pure(self.epsilon)

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_laplace({self.scale:g}{extra})"
