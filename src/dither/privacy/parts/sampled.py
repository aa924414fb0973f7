"""A mechanism on a sample of the units, Poisson or of fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.parts.approximate import Approximate
from dither.privacy.parts.gaussian import GaussianNoise
from dither.privacy.parts.part import Part
from dither.privacy.terms import (
    AtomTerm,
    FixedSizeTerm,
    GaussianTerm,
    LaplaceTerm,
    SampledGaussianTerm,
    SampledLineTerm,
    SampledTerm,
    Term,
)
from dither.privacy.terms.base import EPS, Array

__all__ = ["FixedSize", "Poisson"]


@dataclass(frozen=True, slots=True)
class Poisson(Part):
    """A mechanism on a Poisson sample; neighbours add or remove one unit.

    ``slack`` is a distance in total variation from the untruncated sample, for each of P and Q.
    """

    base: Part
    rate: float
    size: int = 1

    @property
    def symmetric(self) -> bool:
        """Never."""
        return False

    def term(self, removal: bool, count: int) -> Term:
        """The base's pair, mixed."""
        if isinstance(self.base, GaussianNoise):
            multiplier = self.base.noise_multiplier
            return SampledGaussianTerm(multiplier, self.rate, removal, count, self.size)
        base = self.base.term(removal, 1)
        if isinstance(base, AtomTerm):
            return _sampled_atoms(base, self.base.term(not removal, 1), self.rate, removal, count)
        sampled = SampledTerm(base, self.rate, removal, count)
        return SampledLineTerm(sampled) if isinstance(base, LaplaceTerm) else sampled

    def grouped(self, size: int) -> Part:
        """A binomial number of the group is sampled: Ganesh, "Tight group-level DP guarantees
        for DP-SGD with sampling via mixture of Gaussians mechanisms", 2024."""
        if isinstance(self.base, GaussianNoise):
            return replace(self, size=self.size * size)
        if isinstance(self.base, Approximate):
            e = math.log1p(self.rate * math.expm1(self.base.epsilon)) * (1 + 1e-14)
            return Approximate(e, self.rate * self.base.delta * (1 + 1e-14)).grouped(size)
        top = self.base.term(True, 1)
        if math.isfinite(top.top()) and top.infinite == 0:
            e = math.log1p(self.rate * math.expm1(top.top())) * (1 + 1e-13)
            return Approximate(e * size, 0.0)
        raise ArgumentError("group of a sampled mechanism needs Gaussian or pure mechanisms")

    def gdp(self) -> float:
        """Sampling is post-processing of the pair: not worse than the base."""
        return self.base.grouped(self.size).gdp() if self.size > 1 else self.base.gdp()

    def rho(self) -> float:
        """Not worse than the base."""
        return self.base.grouped(self.size).rho() if self.size > 1 else self.base.rho()

    def tail(self) -> float:
        """The base's, when the whole group is sampled."""
        return self.base.grouped(self.size).tail() if self.size > 1 else self.base.tail()

    def describe(self) -> str:
        """As written."""
        group = f".group({self.size})" if self.size > 1 else ""
        return f"{self.base.describe()}.poisson({self.rate:g}){group}"


@dataclass(frozen=True, slots=True)
class FixedSize(Part):
    """A mechanism on m of n units drawn without replacement; neighbours replace one unit."""

    base: Part
    sample: int
    population: int

    def term(self, removal: bool, count: int) -> Term:
        """Both mixed pairs, joined at 0."""
        rate = self.sample / self.population
        base = self.base.term(removal, 1)
        if isinstance(base, AtomTerm):
            return _joined_atoms(base, self.base.term(not removal, 1), rate, removal, count)
        joined = FixedSizeTerm(base, rate, count)
        return SampledLineTerm(joined) if isinstance(base, GaussianTerm | LaplaceTerm) else joined

    @property
    def symmetric(self) -> bool:
        """As the base."""
        return self.base.symmetric

    def grouped(self, size: int) -> Part:
        """By the pure epsilon of the sampled mechanism, where there is one."""
        top = self.term(True, 1).top()
        if not math.isfinite(top):
            raise ArgumentError(
                "group of a fixed-size sample needs a pure mechanism, such as laplace or pure"
            )
        return Approximate(top * size * (1 + 1e-13), 0.0)

    def gdp(self) -> float:
        """Not worse than the base."""
        return self.base.gdp()

    def rho(self) -> float:
        """Not worse than the base."""
        return self.base.rho()

    def tail(self) -> float:
        """The base's, when the unit is sampled."""
        return self.base.tail()

    def describe(self) -> str:
        """As written."""
        return f"{self.base.describe()}.without_replacement({self.sample}, {self.population})"


def _sampled_atoms(
    base: AtomTerm, swapped: Term, rate: float, removal: bool, count: int
) -> AtomTerm:
    """A finite pair on a Poisson sample is a finite pair."""
    g = rate
    p, losses = base.probabilities, base.losses
    if removal:
        # Where P has nothing, (1-g)Q is left: loss log(1 - g), with Q's mass there.
        values = _mixed_loss(losses, g)
        masses = (1 - g) * _other_masses(base, swapped) + g * p
        if swapped.infinite > 0:
            values = np.concatenate([[math.log1p(-g)], values])
            masses = np.concatenate([[(1 - g) * swapped.infinite], masses])
        position = base.position + 8 * EPS * float(np.abs(values).max())
        rough = base.relative + EPS * (16 + 2 * float(np.abs(losses).max()))
        return AtomTerm(values, masses, count, g * base.infinite, relative=rough, position=position)
    values = -_mixed_loss(-losses, g)
    masses = p
    if base.infinite > 0:
        values = np.concatenate([values, [-math.log1p(-g)]])
        masses = np.concatenate([masses, [base.infinite]])
    position = base.position + 8 * EPS * float(np.abs(values).max())
    return AtomTerm(values, masses, count, 0.0, relative=base.relative, position=position)


def _mixed_loss(losses: Array, g: float) -> Array:
    """log(1 - g + g·e^L); beyond 100 the rest is below e^{-100}/g of it."""
    near = np.log1p(g * np.expm1(np.minimum(losses, 100.0)))
    far = losses + math.log(g) + (1 - g) / g * np.exp(-np.maximum(losses, 100.0))
    result: Array = np.where(losses > 100.0, far, near)
    return result


def _other_masses(base: AtomTerm, swapped: Term) -> Array:
    """Q's masses on P's losses: as the swapped pair states them, where it has the same outcomes.

    Else p·e^{-L}, which says little of masses near the smallest double.
    """
    p, losses = base.probabilities, base.losses
    if isinstance(swapped, AtomTerm) and len(swapped.losses) == len(losses):
        turned = -swapped.losses[::-1]
        if np.all(np.abs(turned - losses) <= base.position + swapped.position):
            mirrored: Array = swapped.probabilities[::-1]
            return mirrored
    with np.errstate(divide="ignore"):
        result: Array = np.exp(np.minimum(np.log(p) - losses, 0.0))
    return result


def _joined_atoms(
    base: AtomTerm, swapped: Term, rate: float, removal: bool, count: int
) -> AtomTerm:
    """A finite pair on a sample of fixed size: one mixed pair above 0, the other below.

    The first is (1-g)Q + gP against Q, the second P against (1-g)P + gQ; see `terms.sampled`.
    """
    first = _sampled_atoms(base, swapped, rate, True, 1)
    second = _sampled_atoms(base, swapped, rate, False, 1)
    # A loss within its own rounding of 0 counts as 0, and is charged with the positions.
    near = 2 * (first.position + second.position + base.position)
    above, below = first.losses > near, second.losses < -near
    up = base.losses > 0
    apart = -base.probabilities[up] * np.expm1(-base.losses[up])
    rest = (1 - rate) * (math.fsum(apart.tolist()) + base.infinite)
    rest += float(base.probabilities[~up & (base.losses >= -near)].sum())
    losses = np.concatenate([second.losses[below], [0.0], first.losses[above]])
    lost = base.position * float(base.probabilities[up].sum()) / rest if rest > 0 else 0.0
    return AtomTerm(
        losses,
        np.concatenate([second.probabilities[below], [rest], first.probabilities[above]]),
        count,
        first.infinite,
        relative=first.relative + second.relative + 16 * EPS + 2 * lost,
        position=2 * near,
    )
