"""Gaussian noise, on a line and on the integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dither.privacy.charge import Charge
from dither.privacy.parts.ends import printed, rounded, written
from dither.privacy.parts.part import Part
from dither.privacy.terms import DiscreteGaussianLaw, GaussianTerm, Term

__all__ = ["DiscreteGaussianNoise", "GaussianNoise"]


@dataclass(frozen=True, slots=True)
class GaussianNoise(Part):
    """N(0, sigma²) at sensitivity 1; also any mu-GDP mechanism, mu = 1/sigma.

    ``rational`` is sigma where the double is a rounding of it, downwards: `of` makes both.
    """

    noise_multiplier: float
    rational: Fraction | None = None

    @classmethod
    def of(cls, sigma: Fraction) -> GaussianNoise:
        """The noise of a rational deviation."""
        return cls(*rounded(sigma))

    @property
    def sigma(self) -> Fraction:
        """The deviation as it was written."""
        return written(self.noise_multiplier, self.rational)

    def term(self, removal: bool, count: int) -> Term:
        """mu² = count/sigma²."""
        return GaussianTerm(count / self.noise_multiplier**2)

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return GaussianNoise.of(self.sigma / size)

    def gdp(self) -> Fraction:
        """1/sigma."""
        return 1 / self.sigma

    def rho(self) -> Fraction:
        """1/(2·sigma²)."""
        return 1 / (2 * self.sigma**2)

    def charge(self) -> Charge:
        """rho."""
        return Charge.concentrated(self.rho())

    def tail(self) -> Fraction:
        """1/sigma²."""
        return 1 / self.sigma**2

    def describe(self) -> str:
        """As written."""
        return f"gaussian({self.noise_multiplier:g})"


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(Part):
    """Discrete Gaussian of parameter sigma on the integers, at an integer sensitivity."""

    sigma: float
    sensitivity: int

    def term(self, removal: bool, count: int) -> Term:
        """L = (s² - 2·s·x)/(2·sigma²) at noise x: a lattice of spacing s/sigma²."""
        return self.law().term(count)

    def law(self) -> DiscreteGaussianLaw:
        """The pair, with moments that no tail is cut from."""
        return DiscreteGaussianLaw(self.sigma, self.sensitivity)

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        return replace(self, sensitivity=self.sensitivity * size)

    def rho(self) -> Fraction:
        """s²/(2·sigma²), by Canonne, Kamath and Steinke (2020), theorem 4."""
        return self.tail() / 2

    def charge(self) -> Charge:
        """rho."""
        return Charge.concentrated(self.rho())

    def tail(self) -> Fraction:
        """s²/sigma²: the losses are s·x/sigma², and x falls as exp(-x²/(2·sigma²))."""
        return self.sensitivity**2 / printed(self.sigma) ** 2

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_gaussian({self.sigma:g}{extra})"
