"""The parts that a loss is a sum of: one frozen value a mechanism, in the field's names.

A part says what it is. For each direction of the neighbour relation it gives the law of its loss,
or, where only a class of mechanisms is known, a Rényi profile and one member of the class.

The file is long because parts know one another: a sample has a base, a group of one part is
another part, and a class names its member.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dither.errors import ArgumentError
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

__all__ = [
    "Approximate",
    "BoundedRange",
    "Concentrated",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "FixedSize",
    "GaussianNoise",
    "LaplaceNoise",
    "MomentTerm",
    "Part",
    "PmfPair",
    "Poisson",
    "RandomResponse",
    "RenyiProfile",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism's loss."""

    @property
    def symmetric(self) -> bool:
        """Whether the pair and the swapped pair have the same loss law."""
        return True

    @property
    def exact(self) -> bool:
        """Whether the pair is known, and not only a bound on a class."""
        return True

    def term(self, removal: bool, count: int) -> Term:
        """The law of ``count`` repetitions."""
        raise NotImplementedError

    def instance(self) -> Part | None:
        """A member of the class that the part bounds; None for the trivial one."""
        return self

    def dominating(self) -> Part | None:
        """A part with a known pair that is at least as lossy, where there is one."""
        return self

    def moment(self, removal: bool, count: int) -> Term | None:
        """What bounds E[e^{cL}]; None where nothing does."""
        return self.term(removal, count)

    def grouped(self, size: int) -> Part:
        """The loss against groups of ``size`` units."""
        raise NotImplementedError

    def gdp(self) -> float:
        """A mu such that the part is mu-GDP; infinity where there is none."""
        return math.inf

    def rho(self) -> float:
        """A rho such that the part is rho-zCDP; infinity where there is none."""
        return math.inf

    def tail(self) -> float:
        """A mu² such that Pr[L > s] falls no faster than exp(-s²/(2·mu²)); 0 where none is known.

        What sampling scales by a rate to a fixed power falls as fast as before, so a sample has the
        tail of its base.
        """
        return 0.0

    def describe(self) -> str:
        """The part as it is written."""
        raise NotImplementedError


def gdp_of_pure(epsilon: float) -> float:
    """The least mu such that every epsilon-DP mechanism is mu-GDP: Phi(mu/2) = e^ε/(1 + e^ε)."""
    from statistics import NormalDist

    q = 1 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    if q < 1e-300:
        return math.inf
    return -2 * NormalDist().inv_cdf(q) * (1 + 1e-8)


@dataclass(frozen=True, slots=True)
class GaussianNoise(Part):
    """N(0, sigma²) at sensitivity 1; also any mu-GDP mechanism, mu = 1/sigma."""

    noise_multiplier: float

    def term(self, removal: bool, count: int) -> Term:
        """mu² = count/sigma²."""
        return GaussianTerm(count / self.noise_multiplier**2)

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return GaussianNoise(self.noise_multiplier / size)

    def gdp(self) -> float:
        """1/sigma."""
        return 1 / self.noise_multiplier

    def rho(self) -> float:
        """1/(2·sigma²)."""
        return 0.5 / self.noise_multiplier**2

    def tail(self) -> float:
        """1/sigma²."""
        return 1 / self.noise_multiplier**2

    def describe(self) -> str:
        """As written."""
        return f"gaussian({self.noise_multiplier:g})"


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
        """epsilon²/2."""
        return 0.5 / self.noise_multiplier**2

    def describe(self) -> str:
        """As written."""
        return f"laplace({self.noise_multiplier:g})"


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(Part):
    """Discrete Gaussian of parameter sigma on the integers, at an integer sensitivity."""

    sigma: float
    sensitivity: int

    def term(self, removal: bool, count: int) -> Term:
        """L = (s² - 2·s·x)/(2·sigma²) at noise x: a lattice of spacing s/sigma².

        Noise beyond 90·sigma + 40·s is left out; its mass is below e^{-4000}.
        """
        s, v = self.sensitivity, self.sigma**2
        half = math.ceil(90 * self.sigma + 40 * s)
        x = np.arange(half, -half - 1, -1.0)
        weight = np.exp(-x * x / (2 * v))
        kept = weight > 0
        x, weight = x[kept], weight[kept]
        losses = (s * s - 2 * s * x) / (2 * v)
        # Masses below the smallest double are dropped; they are charged as infinite loss.
        return AtomTerm(
            losses,
            weight / weight.sum(),
            count,
            1e-300,
            (float(losses[0]), s / v),
            relative=1000 * EPS,
        )

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        return replace(self, sensitivity=self.sensitivity * size)

    def rho(self) -> float:
        """s²/(2·sigma²), by Canonne, Kamath and Steinke (2020), theorem 4."""
        return self.sensitivity**2 / (2 * self.sigma**2)

    def tail(self) -> float:
        """s²/sigma²: the losses are s·x/sigma², and x falls as exp(-x²/(2·sigma²))."""
        return self.sensitivity**2 / self.sigma**2

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_gaussian({self.sigma:g}{extra})"


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
        return AtomTerm((d - 2 * x) / s, mass, count, 0.0, (-d / s, 2 / s), relative=rough)

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        return replace(self, sensitivity=self.sensitivity * size)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self.sensitivity / self.scale)

    def rho(self) -> float:
        """epsilon²/2."""
        return (self.sensitivity / self.scale) ** 2 / 2

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_laplace({self.scale:g}{extra})"


@dataclass(frozen=True, slots=True)
class RandomResponse(Part):
    """The truth with probability e^epsilon/(e^epsilon + k - 1), else one of the k - 1 others."""

    epsilon: float
    k: int

    def term(self, removal: bool, count: int) -> Term:
        """Losses ±epsilon, and 0 for the k - 2 answers that neither input favours."""
        e, k = self.epsilon, self.k
        low = math.exp(-e)
        whole = 1 + (k - 1) * low
        if k == 2:
            losses, mass = np.array([-e, e]), np.array([low, 1.0]) / whole
            return AtomTerm(losses, mass, count, 0.0, (-e, 2 * e))
        mass = np.array([low, (k - 2) * low, 1.0]) / whole
        return AtomTerm(np.array([-e, 0.0, e]), mass, count, 0.0, (-e, e))

    def grouped(self, size: int) -> Part:
        """Each member reports once; by the chain of neighbours it is size·epsilon pure."""
        return Approximate(self.epsilon * size, 0.0)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self.epsilon)

    def rho(self) -> float:
        """epsilon²/2."""
        return self.epsilon**2 / 2

    def describe(self) -> str:
        """As written."""
        return f"randomized_response({self.epsilon:g}, k={self.k})"


@dataclass(frozen=True, slots=True)
class Approximate(Part):
    """Any (epsilon, delta)-DP mechanism; delta = 0 is pure.

    Dominated by randomised response that fails with probability delta: Kairouz, Oh and Viswanath,
    "The composition theorem for differential privacy", ICML 2015.
    """

    epsilon: float
    delta: float

    def term(self, removal: bool, count: int) -> Term:
        """(1 - delta) of randomised response, and delta at infinity."""
        e = self.epsilon
        low = math.exp(-e)
        mass = (1 - self.delta) * np.array([low, 1.0]) / (1 + low)
        if e == 0:
            return AtomTerm(np.zeros(1), np.array([1 - self.delta]), count, self.delta)
        return AtomTerm(np.array([-e, e]), mass, count, self.delta, (-e, 2 * e))

    def grouped(self, size: int) -> Part:
        """(m·epsilon, delta·(e^{m·epsilon} - 1)/(e^epsilon - 1))."""
        e, m = self.epsilon, size
        if self.delta == 0:
            return Approximate(m * e, 0.0)
        grown = m * self.delta if e == 0 else self.delta * math.expm1(m * e) / math.expm1(e)
        if grown * (1 + 1e-12) >= 1:
            raise ArgumentError("size is too large: the group's delta would reach 1")
        return Approximate(m * e, grown * (1 + 1e-12))

    def gdp(self) -> float:
        """Finite where delta is 0."""
        return gdp_of_pure(self.epsilon) if self.delta == 0 else math.inf

    def rho(self) -> float:
        """epsilon²/2 where delta is 0."""
        return self.epsilon**2 / 2 if self.delta == 0 else math.inf

    def describe(self) -> str:
        """As written."""
        if self.delta == 0:
            return f"pure({self.epsilon:g})"
        return f"approximate({self.epsilon:g}, {self.delta:g})"


class MomentTerm(Term):
    """A term that is only known by a bound of its log-moment c·D_{1+c}."""

    smooth = False

    def __init__(self, part: Concentrated | RenyiProfile | BoundedRange, count: int) -> None:
        self._part, self.count = part, count

    def log_moment(self, c: Array) -> Array:
        """count·c·D_{1+c}."""
        result: Array = self.count * self._part.log_moment(c)
        return result


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
        return GaussianNoise(1 / math.sqrt(2 * self.amount))

    def dominating(self) -> Part | None:
        """No pair is known to dominate."""
        return None

    def moment(self, removal: bool, count: int) -> Term:
        """The profile."""
        return MomentTerm(self, count)

    def grouped(self, size: int) -> Part:
        """size²·rho: Bun and Steinke (2016), proposition 1.9."""
        return Concentrated(self.amount * size**2)

    def rho(self) -> float:
        """As stated."""
        return self.amount

    def describe(self) -> str:
        """As written."""
        return f"zcdp({self.amount:g})"


@dataclass(frozen=True, slots=True)
class RenyiProfile(Part):
    """Any mechanism with D_order <= value at the listed orders."""

    orders: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    def log_moment(self, c: Array) -> Array:
        """Convex in c and 0 at 0: chords are bounds; beyond the last order nothing is known."""
        x = np.array([0.0, *(a - 1 for a in self.orders)])
        y = np.array([0.0, *((a - 1) * v for a, v in zip(self.orders, self.values, strict=True))])
        value = np.interp(c, x, y)
        return np.where(c <= x[-1], value * (1 + 1e-12), np.inf)

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
class BoundedRange(Part):
    """Any epsilon-bounded-range mechanism, such as the exponential one: epsilon-DP, and more.

    All losses lie in one [t - epsilon, t]. With y = e^L, E_Q[y] = 1 and E_Q[y^{1+c}] convex in y,
    the worst law of a given t has its two ends only [1]_. With r = e^{-epsilon}, a = 1 + c ::

        E[e^{cL}] = e^{ct}/(1 - r)·((1 - r^a) - e^t·(r - r^a))

    which is largest at e^t = (c/a)·(1 - r^a)/(r - r^a). The log-moment is at most
    c(c+1)·epsilon²/8 besides [2]_, lemma 3.4. As it bounds each mechanism whatever was answered
    before, sums of it bound adaptive runs too.

    References
    ----------
    .. [1] Dong, Durfee and Rogers, "Optimal differential privacy composition for exponential
       mechanisms", ICML 2020.
    .. [2] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021.
    """

    epsilon: float

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    def log_moment(self, c: Array) -> Array:
        """The largest over t, by the formula above, and never more than c(c+1)·epsilon²/8."""
        e, a = self.epsilon, 1 + c
        whole, apart = -np.expm1(-a * e), -np.expm1(-c * e)
        log_y = np.log(c / a) + np.log(whole) - np.log(apart) + e
        value = c * log_y + np.log(whole / a) - math.log(-math.expm1(-e))
        # A sum of terms of order 1 + c·e, each rounded.
        value = value + 8 * EPS * (8 + np.abs(c * log_y) + c * (8 + e) + np.abs(np.log(a)))
        result: Array = np.minimum(np.minimum(value, c * (c + 1) * (e**2 / 8)), c * e)
        return result

    def instance(self) -> Part:
        """Two outcomes whose utilities swap: randomised response of half the epsilon."""
        return RandomResponse(self.epsilon / 2, 2)

    def dominating(self) -> Part | None:
        """Any pure mechanism's pair."""
        return Approximate(self.epsilon, 0.0)

    def moment(self, removal: bool, count: int) -> Term:
        """The profile."""
        return MomentTerm(self, count)

    def grouped(self, size: int) -> Part:
        """Ranges add up along the chain of neighbours."""
        return BoundedRange(self.epsilon * size)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self.epsilon)

    def rho(self) -> float:
        """epsilon²/8."""
        return self.epsilon**2 / 8

    def describe(self) -> str:
        """As written."""
        return f"exponential({self.epsilon:g})"


@dataclass(frozen=True, slots=True)
class PmfPair(Part):
    """Two probability mass functions on a common support, both directions kept."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    @property
    def symmetric(self) -> bool:
        """Only where swapping permutes the points."""
        return sorted(zip(self.p, self.q, strict=True)) == sorted(zip(self.q, self.p, strict=True))

    def term(self, removal: bool, count: int) -> Term:
        """log(p/q) with mass p; mass where q is 0 is infinite."""
        p, q = (np.array(x) for x in ((self.p, self.q) if removal else (self.q, self.p)))
        both = (p > 0) & (q > 0)
        losses, inverse = np.unique(np.log(p[both]) - np.log(q[both]), return_inverse=True)
        mass = np.bincount(inverse.ravel(), p[both], len(losses))
        infinite = float(p[(p > 0) & (q == 0)].sum())
        if not len(losses):
            return AtomTerm(np.zeros(1), np.zeros(1) + 1e-300, count, infinite)
        logs = float(np.abs(np.log(np.concatenate([p[both], q[both]]))).max())
        return AtomTerm(losses, mass, count, infinite, position=2 * EPS * (1 + logs))

    def _pure(self) -> float:
        pairs = [(a, b) for a, b in zip(self.p, self.q, strict=True) if a > 0 or b > 0]
        if any(a == 0 or b == 0 for a, b in pairs):
            return math.inf
        return max(abs(math.log(a) - math.log(b)) for a, b in pairs) * (1 + 1e-13)

    def grouped(self, size: int) -> Part:
        """By its pure epsilon, where that is finite."""
        epsilon = self._pure()
        if not math.isfinite(epsilon):
            raise ArgumentError(
                "group needs p and q to be above 0 at the same points; state the pair of the "
                "whole group, or approximate(epsilon, delta)"
            )
        return Approximate(size * epsilon, 0.0)

    def gdp(self) -> float:
        """As any pure mechanism."""
        return gdp_of_pure(self._pure()) if math.isfinite(self._pure()) else math.inf

    def rho(self) -> float:
        """epsilon²/2 of its pure epsilon."""
        return self._pure() ** 2 / 2

    def describe(self) -> str:
        """As written."""
        return f"pair of {len(self.p)} points"


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
            g, m = self.rate, self.size
            weights = tuple(math.comb(m, j) * g**j * (1 - g) ** (m - j) for j in range(m + 1))
            return SampledGaussianTerm(self.base.noise_multiplier, weights, removal, count)
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
    with np.errstate(over="ignore"):
        q = np.minimum(p * np.exp(-losses), 1.0)
        if removal:
            # Where P has nothing, (1-g)Q is left: loss log(1 - g), with Q's mass there.
            values = np.log1p(g * np.expm1(losses))
            masses = (1 - g) * q + g * p
            if swapped.infinite > 0:
                values = np.concatenate([[math.log1p(-g)], values])
                masses = np.concatenate([[(1 - g) * swapped.infinite], masses])
            position = base.position + 8 * EPS * float(np.abs(values).max())
            rough = base.relative + EPS * (16 + 2 * float(np.abs(losses).max()))
            return AtomTerm(
                values, masses, count, g * base.infinite, relative=rough, position=position
            )
        values = -np.log1p(g * np.expm1(-losses))
    masses = p
    if base.infinite > 0:
        values = np.concatenate([values, [-math.log1p(-g)]])
        masses = np.concatenate([masses, [base.infinite]])
    position = base.position + 8 * EPS * float(np.abs(values).max())
    return AtomTerm(values, masses, count, 0.0, relative=base.relative, position=position)


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
