"""Discrete Gaussian noise on an integer vector, bounded through continuous noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither.privacy._charge import Charge
from dither.privacy.laws.classes import Concentrated, MomentTerm
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianNoise
from dither.privacy.laws.gaussian import GaussianNoise, WidenedGaussianTerm
from dither.privacy.laws.part import Dominated, Part
from dither.privacy.laws.rationals import printed, printing_at_least
from dither.privacy.laws.term import Term

__all__ = ["DiscreteGaussianVector"]


_LARGEST_SIGMA, _LARGEST_SHIFT = 500.0, 4096


@dataclass(frozen=True, slots=True)
class DiscreteGaussianVector(Part):
    """Discrete Gaussian noise on coordinates whose changes have a bounded sum of squares.

    Parameters
    ----------
    sigma : float
        Of each coordinate, and ``shift``, the most that a single one may change: the instance
        from below.
    shift : int
        At least 1.
    square, entries : int
        The sum of squares of the changes, and how many coordinates may change.
    rho : float
        Sum of squares over 2·sigma².
    mu_squared, moved, lifted : float
        The Gaussian pair that is within e^moved in likelihood ratio and e^lifted in mass.
    sampled : float or None
        Noise multiplier of a Gaussian pair that dominates outright, but for less than any double;
        what a sample starts from.
    """

    sigma: float
    shift: int
    square: int
    entries: int
    rho_: float
    mu_squared: float
    moved: float
    lifted: float
    sampled: float | None

    @property
    def exact(self) -> bool:
        """A bound."""
        return False

    @property
    def one_sided(self) -> bool:
        """Where not even one coordinate's law is listed."""
        return self.instance() is None

    def instance(self) -> Part | None:
        """One coordinate that changes by all of it."""
        if self.sigma > _LARGEST_SIGMA or self.shift > _LARGEST_SHIFT:
            return None
        return DiscreteGaussianNoise(self.sigma, self.shift)

    def dominating(self) -> Part | None:
        """Itself: its term is the bound's."""
        return self

    def for_sampling(self) -> Part | None:
        """The Gaussian that dominates outright."""
        if self.sampled is None:
            return None
        return Dominated(GaussianNoise(self.sampled), self.describe())

    def term(self, removal: bool, count: int) -> Term:
        """The Gaussian, moved and raised."""
        return WidenedGaussianTerm(
            self.mu_squared,
            self.moved,
            self.lifted,
            count,
            sigma=self.sigma,
            square=self.square,
            entries=self.entries,
        )

    def moment(self, removal: bool, count: int) -> Term:
        """c(c+1)·rho: Canonne, Kamath and Steinke (2020), theorem 4."""
        return MomentTerm(Concentrated(self.rho_), count)

    def grouped(self, size: int) -> Part:
        """As any mechanism of its rho."""
        return Concentrated(printing_at_least(printed(self.rho_) * size**2))

    def rho(self) -> Fraction:
        """As stated."""
        return printed(self.rho_)

    def charge(self) -> Charge:
        """rho, as stated."""
        return Charge.concentrated(printed(self.rho_))

    def describe(self) -> str:
        """What it is compared with."""
        return f"gaussian({1 / math.sqrt(self.mu_squared):g}) rounded to integers"
