"""The Gaussian loss law: L ~ N(mu²/2, mu²) under P, for N(0, 1) against N(mu, 1)."""

from __future__ import annotations

import math

import numpy as np

from dither.privacy.terms.base import EPS, Array, Cells, Complex, Term, normal_mass

__all__ = ["GaussianTerm"]


class GaussianTerm(Term):
    """All Gaussian parts of a total at once: mu² adds up, so the count is always 1.

    log E[e^{tL}] = t(t+1)·mu²/2 for every complex t. The law of a pair and of the swapped pair are
    the same.
    """

    def __init__(self, mu_squared: float) -> None:
        self.mu_squared = mu_squared

    def log_moment(self, c: Array) -> Array:
        """c(c+1)·mu²/2."""
        value: Array = c * (c + 1) * (self.mu_squared / 2)
        return value

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """c(c+1)·mu²/2 and (iu(2c+1) - u²)·mu²/2."""
        value = (1j * u * (2 * c + 1) - u * u) * (self.mu_squared / 2)
        base = c * (c + 1) * (self.mu_squared / 2)
        return base, value, 4 * EPS * (base + np.abs(value))

    def curvature(self) -> float:
        """mu², less a rounding."""
        return self.mu_squared * (1 - 1e-12)

    def ends(self, tail: float) -> tuple[float, float]:
        """mu²/2 ± z·mu with Pr[|N| > z] <= 2·exp(-z²/2) <= tail."""
        mu = math.sqrt(self.mu_squared)
        z = math.sqrt(2 * math.log(2 / tail))
        return self.mu_squared / 2 - z * mu, self.mu_squared / 2 + z * mu

    def cells(self, edges: Array) -> Cells:
        """Normal masses, mean mu²/2 under P and -mu²/2 under Q."""
        mu = math.sqrt(self.mu_squared)
        p, p_error, below, above = normal_mass(edges, self.mu_squared / 2, mu)
        q, q_error, _, _ = normal_mass(edges, -self.mu_squared / 2, mu)
        return Cells(p, q, p_error, q_error, below, above)

    def mean(self) -> float:
        """mu²/2."""
        return self.mu_squared / 2
