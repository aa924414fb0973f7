"""Gaussian noise on a line: the part that it is of a loss, and the law of its loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.privacy._charge import Charge
from dither.privacy.laws.part import Part, ScaledNoise
from dither.privacy.laws.term import EPS, Array, Complex, LawCells, Term, normal_mass

__all__ = ["GaussianNoise", "GaussianTerm", "WidenedGaussianTerm"]


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
        """mu², less what its products with u² round by, where they are of up to 745."""
        return self.mu_squared * (1 - 1e-12)

    def ends(self, tail: float) -> tuple[float, float]:
        """mu²/2 ± z·mu with Pr[|N| > z] <= 2·exp(-z²/2) <= tail."""
        mu = math.sqrt(self.mu_squared)
        z = math.sqrt(2 * math.log(2 / tail))
        return self.mu_squared / 2 - z * mu, self.mu_squared / 2 + z * mu

    def cells(self, edges: Array) -> LawCells:
        """Normal masses, mean mu²/2 under P and -mu²/2 under Q."""
        mu = math.sqrt(self.mu_squared)
        p, p_error, below, above = normal_mass(edges, self.mu_squared / 2, mu)
        q, q_error, _, _ = normal_mass(edges, -self.mu_squared / 2, mu)
        return LawCells(p, q, p_error, q_error, below, above)

    @property
    def most_mean(self) -> float:
        """The mean loss itself."""
        return self.mean()

    def mean(self) -> float:
        """mu²/2."""
        return self.mu_squared / 2


class WidenedGaussianTerm(Term):
    """Laws whose likelihood ratio is within e^shift of a Gaussian's, and whose mass within e^lift.

    Where p <= e^lift·p' and p/q <= e^shift·p'/q' for a Gaussian pair (P', Q') of mu², delta at
    epsilon is at most e^lift times the Gaussian's at epsilon - shift, alone and composed.

    Parameters
    ----------
    mu_squared, shift, lift : float
        Of one repetition.
    count : int
        Repetitions.
    sigma : float
        Of the discrete noise that it stands for.
    square, entries : int
        The sum of squares of one repetition's changes, and how many numbers may change.
    """

    def __init__(
        self,
        mu_squared: float,
        shift: float,
        lift: float,
        count: int,
        *,
        sigma: float,
        square: int,
        entries: int,
    ) -> None:
        # As one law: every figure adds up over the repetitions.
        self.gauss = GaussianTerm(mu_squared * count)
        self.shift, self.lift = shift * count, lift * count
        self.sigma, self.square, self.entries, self.times = sigma, square, entries, count

    def log_moment(self, c: Array) -> Array:
        """The Gaussian's, moved and raised."""
        value: Array = self.gauss.log_moment(c) + c * self.shift + self.lift
        return value

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The same at c + iu."""
        base, value, slack = self.gauss.along(c, u)
        turned = 1j * u * self.shift
        more = 4 * EPS * (c * self.shift + self.lift + np.abs(turned))
        return base + c * self.shift + self.lift, value + turned, slack + more

    def curvature(self) -> float:
        """The Gaussian's."""
        return self.gauss.curvature()

    def ends(self, tail: float) -> tuple[float, float]:
        """The Gaussian's, moved."""
        # The mass beyond is raised by e^lift, so that the Gaussian's has to be smaller by as much.
        low, high = self.gauss.ends(tail * math.exp(-self.lift))
        return low + self.shift, high + self.shift

    def cells(self, edges: Array) -> LawCells:
        """The Gaussian's, moved and raised."""
        inner = self.gauss.cells(edges - self.shift)
        # p <= e^lift·p', and q = p·e^-L with losses moved by the shift.
        up, down = math.exp(self.lift), math.exp(self.lift - self.shift)
        return LawCells(
            inner.p * up,
            inner.q * down,
            inner.p_error * up,
            inner.q_error * down,
            inner.below * up,
            inner.above * up,
            inner.position + 4 * EPS * float(np.abs(edges).max()),
        )


@dataclass(frozen=True, slots=True)
class GaussianNoise(ScaledNoise):
    """N(0, sigma²) at sensitivity 1, sigma its scale; also any mu-GDP mechanism, mu = 1/sigma."""

    def term(self, removal: bool, count: int) -> Term:
        """mu² = count/sigma²."""
        return GaussianTerm(count / self.noise_multiplier**2)

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return GaussianNoise.of(self.scale / size)

    def gdp(self) -> Fraction:
        """1/sigma."""
        return 1 / self.scale

    def rho(self) -> Fraction:
        """1/(2·sigma²)."""
        return 1 / (2 * self.scale**2)

    def charge(self) -> Charge:
        """rho."""
        return Charge.concentrated(self.rho())

    def tail(self) -> Fraction:
        """1/sigma²."""
        return 1 / self.scale**2

    def describe(self) -> str:
        """As written."""
        return f"gaussian({self.noise_multiplier:g})"
