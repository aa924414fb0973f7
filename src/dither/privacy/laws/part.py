"""What every part of a loss answers.

For each direction of the neighbour relation a part gives the law of its loss, or, where only a
class of mechanisms is known, a Rényi profile and one member of the class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Self

from dither.numeric import exp_upper
from dither.numeric._balls import precision, tail
from dither.privacy._charge import Charge
from dither.privacy.laws.rationals import Amount, Ends, rounded, written
from dither.privacy.laws.term import Term

__all__ = [
    "Dominated",
    "Part",
    "PureNoise",
    "Reversed",
    "ScaledNoise",
    "gdp_of_pure",
    "rho_of_pure",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism's loss."""

    @property
    def symmetric(self) -> bool:
        """Whether the pair and the swapped pair have the same loss law."""
        return True

    @property
    def either(self) -> bool:
        """Whether what is known from above is the same in both directions."""
        return self.symmetric

    @property
    def exact(self) -> bool:
        """Whether the pair is known, and not only a bound on a class."""
        return True

    @property
    def one_sided(self) -> bool:
        """Whether nothing is known to come near what the part charges."""
        return False

    def term(self, removal: bool, count: int) -> Term:
        """The law of ``count`` repetitions."""
        raise NotImplementedError

    def instance(self) -> Part | None:
        """A member of the class that the part bounds; None for the trivial one."""
        return self

    def instance_for(self, removal: bool) -> Part | None:
        """The same for one direction; where these are several pairs, the part is `unlike`."""
        return self.instance()

    @property
    def unlike(self) -> bool:
        """Whether the two directions' members are not one pair and the swapped one."""
        return False

    def dominating(self) -> Part | None:
        """A part with a known pair that is at least as lossy, where there is one."""
        return self

    def for_sampling(self) -> Part | None:
        """What a sample of it starts from; None where no pair is known."""
        return None if self.dominating() is None else self

    def moment(self, removal: bool, count: int) -> Term | None:
        """What bounds E[e^{cL}]; None where nothing does."""
        return self.term(removal, count)

    def top(self, removal: bool) -> Ends | None:
        """Ends of the largest finite loss; None where there is none, or only a term's doubles.

        Of a class, of the least number that no member's largest loss exceeds.
        """
        return None

    def grouped(self, size: int) -> Part:
        """The loss against groups of ``size`` units."""
        raise NotImplementedError

    def group(self, size: int) -> tuple[Part, int]:
        """The same as a part and how often it runs."""
        return self.grouped(size), 1

    def gdp(self) -> Amount:
        """A mu such that the part is mu-GDP; infinity where there is none."""
        return math.inf

    def rho(self) -> Amount:
        """A rho such that the part is rho-zCDP; infinity where there is none."""
        return math.inf

    def charge(self) -> Charge:
        """Exact amounts that are true of the part, its numbers read as they print.

        Nothing finite, unless the part says what; then a loss carries them (`Loss.charges`).
        """
        return Charge.unknown()

    def tail(self) -> Fraction:
        """A mu² such that Pr[L > s] falls no faster than exp(-s²/(2·mu²)); 0 where none is known.

        What sampling scales by a rate to a fixed power falls as fast as before, so a sample has the
        tail of its base.
        """
        return Fraction(0)

    def describe(self) -> str:
        """The part as it is written."""
        raise NotImplementedError


_SATURATED = 64
"""Losses from which (e^epsilon - 1)/(e^epsilon + 1) is taken for 1: it is, but for 1e-27."""

_FARTHEST = 650
"""Losses from which no mu is given: it would be above 50."""


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """The least rho of every epsilon-DP mechanism, rounded up: see `concentration`."""
    if epsilon >= _SATURATED:
        return epsilon
    # tanh(epsilon/2) rises with e^epsilon.
    y = exp_upper(epsilon)
    return epsilon * (y - 1) / (y + 1)


@lru_cache(maxsize=256)
def gdp_of_pure(epsilon: Fraction) -> Amount:
    """The least mu such that every epsilon-DP mechanism is mu-GDP, rounded up.

    Phi(-mu/2) = 1/(1 + e^epsilon); a guess in doubles is raised until balls prove it enough.
    """
    if epsilon == 0:
        return Fraction(0)
    if epsilon > _FARTHEST:
        return math.inf
    with precision(192) as flint:
        e = flint.arb(flint.fmpq(epsilon.numerator, epsilon.denominator))
        chance = 1 / (1 + e.exp())
        x = float(epsilon)
        mu = x * math.sqrt(math.pi / 2) * (1 - 0.01789 * x * x)
        if x > 1e-3:
            mu = -2 * NormalDist().inv_cdf(float(chance))
        step = 2.0**-50
        # Upwards until balls say that it is enough: the guess has no proof.
        while not tail(flint.arb(mu) / 2) <= chance:
            mu, step = mu * (1 + step), 2 * step
    return Fraction(mu)


def gdp_of_variation(distance: float) -> float:
    """A mu below which nothing of this total variation is mu-GDP, rounded down.

    Phi(mu/2) - Phi(-mu/2) = erf(mu/sqrt(8)); a guess is lowered until balls prove it.
    """
    # At 1 there is no finite mu; a smaller distance gives a lower end that is as true.
    x = min(distance, 1 - 2.0**-53)
    if x <= 0:
        return 0.0
    mu = x * math.sqrt(2 * math.pi) * (1 + math.pi / 12 * x * x)
    if x > 1e-3:
        mu = -2 * NormalDist().inv_cdf((1 - x) / 2)
    with precision(192) as flint:
        step = 2.0**-50
        # Downwards until balls say that no smaller mu would do.
        while not (flint.arb(mu) / flint.arb(8).sqrt()).erf() <= flint.arb(x):
            mu, step = mu * (1 - step), 2 * step
    return mu


@dataclass(frozen=True, slots=True)
class ScaledNoise(Part):
    """Noise on a line, of a scale at sensitivity 1.

    ``rational`` is the scale where the double is a rounding of it, downwards: `of` makes both.
    """

    noise_multiplier: float
    rational: Fraction | None = None

    @classmethod
    def of(cls, scale: Fraction) -> Self:
        """The noise of a rational scale."""
        return cls(*rounded(scale))

    @property
    def scale(self) -> Fraction:
        """As it was written."""
        return written(self.noise_multiplier, self.rational)


class PureNoise(Part):
    """Noise with a largest loss, known exactly, which its pair reaches."""

    __slots__ = ()

    @property
    def epsilon(self) -> Fraction:
        """The largest loss."""
        raise NotImplementedError

    def top(self, removal: bool) -> Ends:
        """epsilon."""
        own = self.epsilon
        return own, own

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(self.epsilon)

    def rho(self) -> Fraction:
        """As any pure mechanism."""
        return rho_of_pure(self.epsilon)

    def charge(self) -> Charge:
        """epsilon."""
        return Charge.pure(self.epsilon)


@dataclass(frozen=True, slots=True)
class Reversed(Part):
    """A part with its directions exchanged."""

    part: Part

    @property
    def symmetric(self) -> bool:
        """As the part."""
        return self.part.symmetric

    def term(self, removal: bool, count: int) -> Term:
        """The other direction's."""
        return self.part.term(not removal, count)

    def top(self, removal: bool) -> Ends | None:
        """The other direction's."""
        return self.part.top(not removal)

    def describe(self) -> str:
        """As the part."""
        return self.part.describe()


@dataclass(frozen=True, slots=True)
class Dominated(Part):
    """What ``bound`` dominates, and no member of which is known to reach it.

    Parameters
    ----------
    bound : Part
        A part with a known pair.
    words : str
        As it was written.
    """

    bound: Part
    words: str

    @property
    def symmetric(self) -> bool:
        """As the bound."""
        return self.bound.symmetric

    @property
    def either(self) -> bool:
        """As the bound."""
        return self.bound.either

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    @property
    def one_sided(self) -> bool:
        """By construction."""
        return True

    def instance(self) -> Part | None:
        """Nothing may be lost."""
        return None

    def dominating(self) -> Part | None:
        """The bound."""
        return self.bound.dominating()

    def moment(self, removal: bool, count: int) -> Term | None:
        """The bound's."""
        return self.bound.moment(removal, count)

    def top(self, removal: bool) -> Ends | None:
        """The bound's, from above."""
        found = self.bound.top(removal)
        return None if found is None else (Fraction(0), found[1])

    def grouped(self, size: int) -> Part:
        """The bound's, as a bound."""
        return Dominated(self.bound.grouped(size), f"{self.words}.group({size})")

    def gdp(self) -> Amount:
        """The bound's."""
        return self.bound.gdp()

    def rho(self) -> Amount:
        """The bound's."""
        return self.bound.rho()

    def charge(self) -> Charge:
        """The bound's."""
        return self.bound.charge()

    def describe(self) -> str:
        """As written."""
        return self.words
