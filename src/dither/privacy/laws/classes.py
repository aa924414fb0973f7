"""Classes of mechanisms that are known by a bound of their moments."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dither._format import argument_text
from dither.errors import ArgumentError
from dither.numeric import float_down, float_up, sqrt_upper
from dither.privacy._charge import Charge
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.laplace import DiscreteLaplaceNoise
from dither.privacy.laws.part import Dominated, Part, gdp_of_pure, rho_of_pure
from dither.privacy.laws.rationals import Amount, Ends, printed, printing_at_least
from dither.privacy.laws.response import RandomResponse
from dither.privacy.laws.term import EPS, Array, Term

__all__ = [
    "ApproximateProfile",
    "BoundedRange",
    "Concentrated",
    "MomentTerm",
    "PureProfile",
    "RenyiProfile",
]


_LONGEST = 100_000


class MomentTerm(Term):
    """A term that is only known by a bound of its log-moment c·D_{1+c}."""

    smooth = False

    def __init__(self, part: Concentrated | RenyiProfile | BoundedRange, count: int) -> None:
        self._part, self.count = part, count

    def log_moment(self, c: Array) -> Array:
        """count·c·D_{1+c}."""
        result: Array = self.count * self._part.log_moment(c)
        return result

    def blur(self, c: float) -> float:
        """Its rounding is a rounding of itself."""
        return 0.0

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The bound, rounded; nothing is known from below."""
        value = float(self.log_moment(np.array([c]))[0])
        # Four products and a sum, each half of EPS; what sums cancel is charged by the part.
        return -math.inf, value + 4 * EPS * abs(value)


@dataclass(frozen=True, slots=True)
class Concentrated(Part):
    """Any rho-zCDP mechanism."""

    amount: float

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    def log_moment(self, c: Array) -> Array:
        """c(c+1)·rho."""
        value: Array = c * (c + 1) * self.amount
        return value

    def instance(self) -> Part:
        """The Gaussian of that rho."""
        # Rounded upwards, so that the instance stays in the class.
        return GaussianNoise.of(sqrt_upper(1 / (2 * printed(self.amount))))

    def dominating(self) -> Part | None:
        """No pair is known to dominate."""
        return None

    def moment(self, removal: bool, count: int) -> Term:
        """The profile."""
        return MomentTerm(self, count)

    def grouped(self, size: int) -> Part:
        """size²·rho: Bun and Steinke (2016), proposition 1.9."""
        return Concentrated(printing_at_least(printed(self.amount) * size**2))

    def rho(self) -> Fraction:
        """As stated."""
        return printed(self.amount)

    def tail(self) -> Fraction:
        """The Gaussian's of that rho."""
        return 2 * self.rho()

    def charge(self) -> Charge:
        """rho, as stated."""
        return Charge.concentrated(self.rho())

    def describe(self) -> str:
        """As written."""
        return f"zcdp({self.amount:g})"


@lru_cache(maxsize=16)
def _known_moments(orders: tuple[float, ...], values: tuple[float, ...]) -> tuple[Array, Array]:
    """Where log-moments are known from above, in ascending order, and what they are at most."""
    pairs = [(printed(a) - 1, printed(v)) for a, v in zip(orders, values, strict=True)]
    # As log-moments rise, one that is taken earlier or larger, or later and smaller, holds too.
    x = np.array([0.0, *(float_down(a) for a, _ in pairs)])
    y = np.array([0.0, *(float_up(a * v) for a, v in pairs)])
    y[1:] = np.minimum.accumulate(y[:0:-1])[::-1]
    for held in (x, y):
        held.flags.writeable = False
    return x, y


@dataclass(frozen=True, slots=True)
class RenyiProfile(Part):
    """Any mechanism with D_order <= value at the listed orders."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    @property
    def one_sided(self) -> bool:
        """A mechanism that loses nothing has the profile too."""
        return True

    def log_moment(self, c: Array) -> Array:
        """Convex in c and 0 at 0: chords are bounds; beyond the last order nothing is known."""
        x, y = _known_moments(self.orders, self.values)
        # log E[e^{cL}] is convex in c and 0 at 0, so that its chords lie above it.
        value = np.interp(c, x, y)
        # Two differences, a quotient, a product and a sum of positive numbers.
        return np.where(c <= x[-1], value * (1 + 4 * EPS), np.inf)

    def instance(self) -> Part | None:
        """Nothing may be lost."""
        return None

    def dominating(self) -> Part | None:
        """No pair is known to dominate."""
        return None

    def moment(self, removal: bool, count: int) -> Term:
        """The profile."""
        return MomentTerm(self, count)

    def grouped(self, size: int) -> Part:
        """Not offered: orders change with the group."""
        raise ArgumentError(
            "group needs more than a Rényi profile: state zcdp(rho), pure(epsilon) or gdp(mu)"
        )

    def describe(self) -> str:
        """As written."""
        pairs = ", ".join(f"{a:g}: {v:g}" for a, v in zip(self.orders, self.values, strict=True))
        return f"renyi({{{pairs}}})"


@dataclass(frozen=True, slots=True)
class PureProfile(RenyiProfile):
    """Any epsilon-DP mechanism with D_order <= value at the listed orders."""

    epsilon: float

    @property
    def whole(self) -> Fraction:
        """epsilon, as it prints."""
        return printed(self.epsilon)

    def log_moment(self, c: Array) -> Array:
        """The profile's, and at most c·epsilon, as no loss is larger."""
        # E[e^{cL}] <= e^{c·epsilon} where no loss is above epsilon.
        most = c * (float_up(self.whole) * (1 + 2 * EPS))
        value: Array = np.minimum(RenyiProfile.log_moment(self, c), most)
        return value

    def dominating(self) -> Part | None:
        """Any pure mechanism's pair."""
        return Approximate(self.epsilon, 0.0)

    def top(self, removal: bool) -> Ends:
        """At most epsilon."""
        return Fraction(0), self.whole

    def grouped(self, size: int) -> Part:
        """size·epsilon; of the profile nothing is known then."""
        whole = printing_at_least(self.whole * size)
        return Dominated(Approximate(whole, 0.0), f"pure({argument_text(whole)})")

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(self.whole)

    def rho(self) -> Fraction:
        """As any pure mechanism."""
        return rho_of_pure(self.whole)

    def charge(self) -> Charge:
        """epsilon."""
        return Charge.pure(self.whole)


@dataclass(frozen=True, slots=True)
class ApproximateProfile(RenyiProfile):
    """Any mechanism that ``bound`` dominates, and that is known by its moments besides.

    Its D_order is at most ``value`` at the listed orders, and at most order·``amount`` at every
    one. Of a bound that fails with some chance no moment is finite, so neither says what the other
    does: a total is answered by both, each by itself, and the better one holds (`Side`).

    Parameters
    ----------
    bound : Part
        Any (epsilon, delta)-DP mechanism, or groups under one.
    amount : float
        A rho of its zCDP.
    """

    bound: Part
    amount: float

    def log_moment(self, c: Array) -> Array:
        """The profile's, and at most c(c+1)·rho."""
        # Two products and a sum.
        most = c * (c + 1) * (self.amount * (1 + 2 * EPS))
        value: Array = np.minimum(RenyiProfile.log_moment(self, c), most)
        return value

    def dominating(self) -> Part | None:
        """The bound's pair."""
        return self.bound.dominating()

    def top(self, removal: bool) -> Ends | None:
        """The bound's, from above."""
        found = self.bound.top(removal)
        return None if found is None else (Fraction(0), found[1])

    def grouped(self, size: int) -> Part:
        """Of both; of the listed orders nothing is known then."""
        rho = printing_at_least(self.rho() * size**2)
        return ApproximateProfile((), (), self.bound.grouped(size), rho)

    def rho(self) -> Fraction:
        """As stated."""
        return printed(self.amount)

    def charge(self) -> Charge:
        """The bound's, and rho."""
        return replace(self.bound.charge(), rho=self.rho(), rho_delta=Fraction(0))

    def describe(self) -> str:
        """As its bound is written."""
        return self.bound.describe()


@dataclass(frozen=True, slots=True)
class BoundedRange(Part):
    """Any epsilon-bounded-range mechanism, such as the exponential one: epsilon-DP, and more.

    All losses lie in one [t - epsilon, t]. With y = e^L, E_Q[y] = 1 and E_Q[y^{1+c}] convex in y,
    the worst law of a given t has its two ends only [1]_. With r = e^{-epsilon}, a = 1 + c ::

        E[e^{cL}] = e^{ct}/(1 - r)·((1 - r^a) - e^t·(r - r^a))

    which is largest at e^t = (c/a)·(1 - r^a)/(r - r^a). The log-moment is at most
    c(c+1)·epsilon²/8 besides [2]_, lemma 3.4. As it bounds each mechanism whatever was answered
    before, sums of it bound adaptive runs too, such as the picks of a top-k. The exact optimum for
    utilities that are fixed in advance [1]_ would be lower, by up to a tenth, and is not computed:
    it does not hold for those.

    References
    ----------
    .. [1] Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
       mechanisms", ICML 2020.
    .. [2] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021.
    """

    epsilon: float
    size: int = 1

    @property
    def whole(self) -> Fraction:
        """The range of the group's losses; ``epsilon`` is that of one unit."""
        return printed(self.epsilon) * self.size

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    def log_moment(self, c: Array) -> Array:
        """The largest over t, by the formula above, and never more than c(c+1)·epsilon²/8."""
        e, a = printing_at_least(self.whole), 1 + c
        whole, apart = -np.expm1(-a * e), -np.expm1(-c * e)
        log_y = np.log(c / a) + np.log(whole) - np.log(apart) + e
        value = c * log_y + np.log(whole / a) - math.log(-math.expm1(-e))
        # A sum of terms of order 1 + c·e, each rounded.
        value = value + 8 * EPS * (8 + np.abs(c * log_y) + c * (8 + e) + np.abs(np.log(a)))
        # Three bounds of one number: near 0 and far out the formula's own rounding exceeds the
        # others.
        result: Array = np.minimum(np.minimum(value, c * (c + 1) * (e**2 / 8)), c * e)
        return result

    def instance(self) -> Part:
        """Two outcomes whose utilities swap: randomised response of half the epsilon.

        Of a group of m, a chain of such steps: discrete Laplace noise moved by m of them.
        """
        if self.size > 1:
            return DiscreteLaplaceNoise.of(2 / printed(self.epsilon), self.size)
        # Losses of ± half the range: a member of the class, so that its loss is a lower end.
        return RandomResponse(self.epsilon / 2, 2)

    def dominating(self) -> Part | None:
        """Any pure mechanism's pair."""
        return Approximate(printing_at_least(self.whole), 0.0)

    def moment(self, removal: bool, count: int) -> Term:
        """The profile."""
        return MomentTerm(self, count)

    def top(self, removal: bool) -> Ends:
        """epsilon: t may be as near to it as one likes."""
        return self.whole, self.whole

    def grouped(self, size: int) -> Part:
        """Ranges add up along the chain of neighbours."""
        if self.size * size > _LONGEST:
            raise ArgumentError(f"size must be at most {_LONGEST:,} for this mechanism")
        return replace(self, size=self.size * size)

    def gdp(self) -> Amount:
        """As any pure mechanism."""
        return gdp_of_pure(self.whole)

    def rho(self) -> Fraction:
        """epsilon²/8."""
        return self.whole**2 / 8

    def charge(self) -> Charge:
        """epsilon, and rho = epsilon²/8."""
        return Charge.bounded_range(self.whole)

    def describe(self) -> str:
        """As written."""
        if self.size > 1:
            return f"exponential({argument_text(self.epsilon)}).group({self.size})"
        return f"exponential({argument_text(self.epsilon)})"
