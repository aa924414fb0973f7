"""A mechanism on a sample of the units, Poisson or of fixed size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianNoise
from dither.privacy.laws.gaussian import GaussianNoise, GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.part import Dominated, Part, Reversed
from dither.privacy.laws.rationals import (
    Amount,
    Ends,
    mixed,
    mixed_away,
    printed,
    printing_at_least,
)
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import FixedSizeTerm, SampledTerm, mixed_loss
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["FixedSize", "Poisson"]


@dataclass(frozen=True, slots=True)
class Poisson(Part):
    """A mechanism on a Poisson sample; neighbours add or remove one unit.

    Parameters
    ----------
    base : Part
        The mechanism's loss where a unit is added or removed; where ``fixed``, replaced.
    rate : float
        The chance of each unit to be sampled, in (0, 1).
    size : int
        Units of the group that changes together.
    fixed : bool
        Whether the sample has a fixed size: a unit that is added takes the place of another one.
    """

    base: Part
    rate: float
    size: int = 1
    fixed: bool = False

    @property
    def symmetric(self) -> bool:
        """Never."""
        return False

    @property
    def exact(self) -> bool:
        """As the base."""
        return self.base.exact

    @property
    def one_sided(self) -> bool:
        """As the base."""
        return self.base.one_sided

    def instance(self) -> Part | None:
        """A sample of the base's."""
        inner = self.base.instance()
        return None if inner is None else replace(self, base=inner)

    def dominating(self) -> Part | None:
        """A sample of what dominates the base."""
        inner = self.base.dominating()
        return None if inner is None else replace(self, base=inner)

    def moment(self, removal: bool, count: int) -> Term | None:
        """Of what dominates."""
        known = self.dominating()
        return None if known is None else known.term(removal, count)

    def term(self, removal: bool, count: int) -> Term:
        """The base's pair, mixed."""
        if isinstance(self.base, GaussianNoise):
            multiplier = self.base.noise_multiplier
            return SampledGaussianTerm(multiplier, self.rate, removal, count, self.size)
        base = self.base.term(removal, 1)
        if isinstance(base, AtomTerm):
            swapped = base if self.base.symmetric else self.base.term(not removal, 1)
            found = _sampled_atoms(base, swapped, self.rate, removal, count)
            if isinstance(self.base, DiscreteGaussianNoise):
                law = self.base.law()
                # Atoms leave out tails that decide moments of high order: the law itself knows
                # them.
                found.moment = lambda c: law.sampled(c, self.rate, removal)
            if isinstance(base, ResponseTerm) and base.answers == 2 and base.infinite == 0:
                found.mixture = base.epsilon, self.rate, removal
            return found
        sampled = SampledTerm(base, self.rate, removal, count)
        return SampledLineTerm(sampled) if isinstance(base, LaplaceTerm) else sampled

    def top(self, removal: bool) -> Ends | None:
        """That of the base, mixed; without the unit, one of an infinite loss too."""
        found = self.base.top(removal)
        if removal:
            return None if found is None else mixed(found, printed(self.rate))
        if isinstance(self.base, GaussianNoise | DiscreteGaussianNoise):
            away = mixed_away(None, printed(self.rate))
            return None if away is None else (self.size * away[0], self.size * away[1])
        if found is None:
            return None
        known = self.base.dominating()
        # Under addition no loss is above -log(1 - g), which is what an infinite one becomes.
        missed = known is None or known.term(removal, 1).infinite > 0
        return mixed_away(None if missed else found, printed(self.rate))

    def grouped(self, size: int) -> Part:
        """A binomial number of the group is sampled: Ganesh, "Tight group-level DP guarantees
        for DP-SGD with sampling via mixture of Gaussians mechanisms", 2024.

        Of a sample of fixed size each is drawn with at most this chance whatever happened to the
        others before, so that fewer are: delta is a mean of (Σ_j w_j·z_j - e^epsilon)+ over
        likelihood ratios z_j of j units, and no larger than where all z_j rise together, and rise
        with j.
        """
        if isinstance(self.base, GaussianNoise):
            return replace(self, size=self.size * size)
        base, words = self.base.dominating(), f"{self.describe()}.group({size})"
        if isinstance(base, Approximate):
            g, loss = printed(self.rate), printed(base.epsilon)
            one = Approximate(
                printing_at_least(mixed((loss, loss), g)[1]),
                printing_at_least(g * printed(base.delta)),
            )
            return Dominated(one.grouped(size), words)
        epsilon = None if base is None else _pure_both_ways(base, replace(self, base=base))
        if epsilon is None:
            raise ArgumentError("group of a sampled mechanism needs Gaussian or pure mechanisms")
        return Dominated(Approximate(epsilon, 0.0).grouped(size), words)

    def gdp(self) -> Amount:
        """Sampling is post-processing of the pair: not worse than the base."""
        return self.base.grouped(self.size).gdp() if self.size > 1 else self.base.gdp()

    def rho(self) -> Amount:
        """Not worse than the base."""
        return self.base.grouped(self.size).rho() if self.size > 1 else self.base.rho()

    def tail(self) -> Fraction:
        """The base's, when the whole group is sampled."""
        return self.base.grouped(self.size).tail() if self.size > 1 else self.base.tail()

    def describe(self) -> str:
        """As written."""
        group = f".group({self.size})" if self.size > 1 else ""
        return f"{self.base.describe()}.poisson({self.rate:g}){group}"


@dataclass(frozen=True, slots=True)
class FixedSize(Part):
    """A mechanism on m of n units drawn without replacement; neighbours replace one unit.

    With ``poisson`` each unit is taken with probability sample/population instead: then the same
    pair is an upper bound only. The pair is that of the worse of several tables at each epsilon, so
    that of several runs no one table need reach it.
    """

    base: Part
    sample: float
    population: int
    poisson: bool = False

    def term(self, removal: bool, count: int) -> Term:
        """Both mixed pairs, joined at 0."""
        rate = self.sample / self.population
        base = self.base.term(removal, 1)
        if isinstance(base, AtomTerm):
            swapped = self.base.term(not removal, 1)
            found = _joined_atoms(base, swapped, rate, removal, count)
            if isinstance(self.base, DiscreteGaussianNoise):
                law = self.base.law()
                # Atoms leave out tails that decide moments of high order: the law itself knows
                # them.
                found.moment = lambda c: law.fixed(c, rate)
            return found
        joined = FixedSizeTerm(base, rate, count)
        return SampledLineTerm(joined) if isinstance(base, GaussianTerm | LaplaceTerm) else joined

    def top(self, removal: bool) -> Ends | None:
        """That of the base, mixed."""
        found = self.base.top(removal)
        if found is None:
            return None
        low, high = mixed(found, printed(self.sample) / self.population)
        # Of units replaced on Poisson samples the pair bounds from above alone.
        return (Fraction(0), high) if self.poisson else (low, high)

    @property
    def exact(self) -> bool:
        """As the base, if the size is fixed."""
        return self.base.exact and not self.poisson

    @property
    def one_sided(self) -> bool:
        """As the base, if the size is fixed."""
        return self.base.one_sided or self.poisson

    def instance(self) -> Part | None:
        """A sample of the base's."""
        return self.instance_for(True)

    def instance_for(self, removal: bool) -> Part | None:
        """A sample of the base's.

        Where that may be met in either direction: a table on which whoever is drawn in the unit's
        place loses as one of both does, so that the other one's law is mixed with theirs.
        """
        inner = self.base.instance()
        if inner is None or self.poisson:
            return None
        if self.base.symmetric:
            return replace(self, base=inner)
        rate = self.sample / self.population
        # Everybody is in the sample.
        if rate == 1:
            return inner
        return Poisson(inner, rate) if removal else Reversed(Poisson(Reversed(inner), rate))

    @property
    def unlike(self) -> bool:
        """Where the base may be met in either direction."""
        return not self.base.symmetric

    def dominating(self) -> Part | None:
        """A sample of what dominates the base."""
        inner = self.base.dominating()
        return None if inner is None else replace(self, base=inner, poisson=False)

    def moment(self, removal: bool, count: int) -> Term | None:
        """Of what dominates."""
        known = self.dominating()
        return None if known is None else known.term(removal, count)

    @property
    def symmetric(self) -> bool:
        """As the base."""
        return self.base.symmetric

    @property
    def either(self) -> bool:
        """As the base."""
        return self.base.either

    def grouped(self, size: int) -> Part:
        """By the pure epsilon of the sampled mechanism, where there is one."""
        base = self.base.dominating()
        epsilon = None if base is None else _pure_both_ways(base, replace(self, base=base))
        if epsilon is None:
            raise ArgumentError(
                "group of a fixed-size sample needs a pure mechanism, such as laplace or pure"
            )
        bound = Approximate(epsilon, 0.0).grouped(size)
        return Dominated(bound, f"{self.describe()}.group({size})")

    def gdp(self) -> Amount:
        """Not worse than the base."""
        return self.base.gdp()

    def rho(self) -> Amount:
        """Not worse than the base."""
        return self.base.rho()

    def tail(self) -> Fraction:
        """The base's, when the unit is sampled."""
        return self.base.tail()

    def describe(self) -> str:
        """As written."""
        if self.poisson:
            return f"{self.base.describe()}.poisson({self.sample:g}) of units replaced"
        return f"{self.base.describe()}.without_replacement({self.sample}, {self.population})"


def pure(term: Term) -> bool:
    """Whether the largest loss is finite, and certain."""
    cut = isinstance(term, AtomTerm) and term.unbounded
    return math.isfinite(term.top()) and term.infinite == 0 and not cut


def _pure_both_ways(base: Part, sampled: Part) -> float | None:
    """The largest loss of a sample in either direction, where the base is pure in both.

    A chain of neighbours may go through either direction, so that no group does with one alone.
    """
    if not all(pure(base.term(removal, 1)) for removal in (True, False)):
        return None
    tops = [sampled.top(removal) for removal in (True, False)]
    known = [top[1] for top in tops if top is not None]
    return printing_at_least(max(known)) if len(known) == len(tops) else None


def _sampled_atoms(
    base: AtomTerm, swapped: Term, rate: float, removal: bool, count: int
) -> AtomTerm:
    """A finite pair on a Poisson sample is a finite pair."""
    g = rate
    p, losses = base.probabilities, base.losses
    q = _other_masses(base, swapped)
    if removal:
        # Where P has nothing, (1-g)Q is left: loss log(1 - g), with Q's mass there.
        values = mixed_loss(losses, g)
        masses = (1 - g) * q + g * p
        if swapped.infinite > 0:
            values = np.concatenate([[math.log1p(-g)], values])
            masses = np.concatenate([[(1 - g) * swapped.infinite], masses])
        infinite = g * base.infinite
        rough = base.relative + EPS * (16 + 2 * float(np.abs(losses).max()))
    else:
        # Under addition P itself is looked at, and the mixture is the other law.
        values, masses = -mixed_loss(-losses, g), p
        if base.infinite > 0:
            values = np.concatenate([values, [-math.log1p(-g)]])
            masses = np.concatenate([masses, [base.infinite]])
        # (1 - g)·P is part of the other law: no outcome of P is without it.
        infinite, rough = 0.0, base.relative
    return AtomTerm(
        values,
        masses,
        count,
        infinite,
        relative=rough,
        position=base.position + 8 * EPS * float(np.abs(values).max()),
        lost=base.lost,
        # A loss has an upper end log(1 - g) under addition, whatever is left out.
        unbounded=base.unbounded and removal,
    )


def _other_masses(base: AtomTerm, swapped: Term) -> Array:
    """Q's masses on P's losses: as the swapped pair states them, where it has the same outcomes.

    Else p·e^{-L}, which says little of masses near the smallest double.
    """
    losses = base.losses
    if base.others is not None:
        return base.others
    if isinstance(swapped, AtomTerm) and len(swapped.losses) == len(losses):
        turned = -swapped.losses[::-1]
        if np.all(np.abs(turned - losses) <= base.position + swapped.position):
            mirrored: Array = swapped.probabilities[::-1]
            return mirrored
    return base.under_q()


def _joined_atoms(
    base: AtomTerm, swapped: Term, rate: float, removal: bool, count: int
) -> AtomTerm:
    """A finite pair on a sample of fixed size: one mixed pair above 0, the other below.

    The first is (1-g)Q + gP against Q, the second P against (1-g)P + gQ; see `laws.sampled`.
    """
    first = _sampled_atoms(base, swapped, rate, True, 1)
    second = _sampled_atoms(base, swapped, rate, False, 1)
    # A loss within its own rounding of 0 counts as 0, and is charged with the positions.
    near = 2 * (first.position + second.position + base.position)
    above, below = first.losses > near, second.losses < -near
    up = base.losses > 0
    apart = -base.probabilities[up] * np.expm1(-base.losses[up])
    # (1 - g)·(P - Q)(L > 0): what neither pair holds of the whole mass is at 0.
    rest = (1 - rate) * (math.fsum(apart.tolist()) + base.infinite)
    # What sampling brings that close to 0 is not lost: whose losses were below 0, and above it.
    n = len(base.losses)
    rest += float(second.probabilities[:n][~up & ~below[:n]].sum())
    rest += float(first.probabilities[-n:][up & ~above[-n:]].sum())
    losses = np.concatenate([second.losses[below], [0.0], first.losses[above]])
    lost = base.position * float(base.probabilities[up].sum()) / rest if rest > 0 else 0.0
    return AtomTerm(
        losses,
        np.concatenate([second.probabilities[below], [rest], first.probabilities[above]]),
        count,
        first.infinite,
        relative=first.relative + second.relative + 16 * EPS + 2 * lost,
        position=2 * near,
        lost=first.lost + second.lost,
        unbounded=first.unbounded,
    )
