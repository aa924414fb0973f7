"""Laplace noise, on a line and on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dither.privacy.parts.part import Part, gdp_of_pure, rho_of_pure
from dither.privacy.terms import AtomTerm, LaplaceTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["DiscreteLaplaceNoise", "LaplaceNoise"]


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Part):
    """Laplace noise of scale b at sensitivity 1."""

    noise_multiplier: float

    def term(self, removal: bool, count: int) -> Term:
        """epsilon = 1/b."""
        return LaplaceTerm(np.array([1 / self.noise_multiplier]), np.array([float(count)]))

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return LaplaceNoise(self.noise_multiplier / size)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(1 / self.noise_multiplier)

    def rho(self) -> float:
        """As any pure mechanism."""
        return rho_of_pure(1 / self.noise_multiplier)

    def describe(self) -> str:
        """As written."""
        return f"laplace({self.noise_multiplier:g})"


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(Part):
    """Discrete Laplace of a scale on the integers, at an integer sensitivity."""

    scale: float
    sensitivity: int

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

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        return replace(self, sensitivity=self.sensitivity * size)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self.sensitivity / self.scale)

    def rho(self) -> float:
        """As any pure mechanism."""
        return rho_of_pure(self.sensitivity / self.scale)

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_laplace({self.scale:g}{extra})"
