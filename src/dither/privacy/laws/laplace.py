"""The Laplace loss law: atoms at ±epsilon and an exponential density between them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.atoms import shifted_noise
from dither.privacy.laws.part import Dominated, Part, PureNoise, ScaledNoise
from dither.privacy.laws.rationals import printing_at_least, rounded, written
from dither.privacy.laws.term import (
    EPS,
    UNKNOWN,
    Array,
    Complex,
    LawCells,
    Term,
    faded,
    left,
    paired,
)

__all__ = ["FINEST", "DiscreteLaplaceNoise", "LaplaceNoise", "LaplaceTerm"]


# Level sets under the density: any number gives a bound of the fading.
_STEPS = 12

_SMALL = 0.5
"""A (c + 1)·epsilon below which moments are summed as a series."""

FINEST = 1_000_000
"""Losses that a discrete Laplace may take: one a unit of its sensitivity."""


class LaplaceTerm(Term):
    """All Laplace parts of a total at once.

    For noise of scale b = 1/epsilon at sensitivity 1, L = epsilon with probability 1/2, -epsilon
    with probability e^{-epsilon}/2, and between them L has density e^{(L - epsilon)/2}/4. So ::

        E[e^{tL}] = e^{epsilon t}·(1 - t·(1 - e^{-epsilon(2t+1)})/(2t+1)),   Re t > -1/2

    Parameters
    ----------
    epsilons, counts : array, shape (n,)
        One entry a distinct scale.
    """

    def __init__(self, epsilons: Array, counts: Array) -> None:
        self.epsilons = epsilons
        self.counts = counts

    def log_moment(self, c: Array) -> Array:
        """The logarithm of the formula above, times the counts.

        Where losses are small its two summands agree in most digits. With r(x) = e^x - 1 - x it is
        log(1 + ((c + 1)·r(c·epsilon) + c·r(-(c + 1)·epsilon))/(2c + 1)), whose summands are all at
        least 0.
        """
        all_e, all_t = np.broadcast_arrays(self.epsilons[:, None], c[None, :])
        small = (all_t + 1) * all_e < _SMALL
        each = np.empty(small.shape)
        e, t = all_e[small], all_t[small]
        # All summands at least 0: nothing cancels where losses are small.
        sharp = (t + 1) * _beyond_line(t * e) + t * _beyond_line(-(t + 1) * e)
        each[small] = np.log1p(sharp / (2 * t + 1))
        e, t = all_e[~small], all_t[~small]
        each[~small] = e * t + np.log1p(t * np.expm1(-e * (2 * t + 1)) / (2 * t + 1))
        result: Array = (self.counts[:, None] * each).sum(axis=0)
        return result

    def moment_error(self, c: Array) -> Array:
        """How far `log_moment` may be off at each c.

        Small losses: r(x) errs by its argument's two roundings, twice, and by 6 more; products,
        sums and a quotient add 6 and log1p 2, so 18 halves of EPS relative to each; 12·EPS are
        charged. Large ones: a product c·epsilon, of 1 rounding, and a logarithm no larger than it,
        as M >= 1; the latter's argument errs by 9 roundings of itself and is at most 1/2, where
        log1p at most doubles that. These 20 halves of EPS, and those of the sum, are within
        18·EPS·c·epsilon. The sum over n scales adds n roundings.
        """
        e, t = self.epsilons[:, None], c[None, :]
        k = self.counts[:, None]
        # r(x) <= x²/2·e^max(x, 0): the value is at most 0.7·c·(c + 1)·epsilon² where that is used.
        size = np.where((t + 1) * e < _SMALL, 0.7 * t * (t + 1) * e * e, 1.5 * e * t)
        result: Array = EPS * (12 + len(self.epsilons)) * (k * size).sum(axis=0)
        return result

    def moment_ends(self, c: float) -> tuple[float, float]:
        """`log_moment`, with its error on either side."""
        at = np.array([c])
        value, off = float(self.log_moment(at)[0]), float(self.moment_error(at)[0])
        return value - off, value + off

    def blur(self, c: float) -> float:
        """The error of `log_moment`."""
        return float(self.moment_error(np.array([c]))[0])

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The same at c + iu until the atoms alone have faded; a bound of it from there on."""
        whole = float(self.log_moment(np.array([c]))[0])
        value, slack = np.zeros(len(u), dtype=complex), np.full(len(u), UNKNOWN)
        value.real[:] = self._bound(c, u)
        head = left(value.real)
        if head:
            value[:head], slack[:head] = self._found(c, u[:head])
        return whole, value, slack

    def _found(self, c: float, u: Array) -> tuple[Complex, Array]:
        """Less its value at c; the bracket errs by at most 32 roundings."""
        e, t = self.epsilons[:, None], (c + 1j * u)[None, :]
        bracket = 1 + t * np.expm1(-e * (2 * t + 1)) / (2 * t + 1)
        base = np.log1p(c * np.expm1(-e * (2 * c + 1)) / (2 * c + 1))
        value = e * 1j * u[None, :] + np.log(bracket) - base
        slack = np.log1p(32 * EPS / np.maximum(np.abs(bracket), 1e-300)) + 4 * EPS * (
            4 + e * np.abs(t)
        )
        k = self.counts[:, None]
        return (k * value).sum(axis=0), (k * slack).sum(axis=0)

    def _pairs(self, c: float) -> Array:
        """Repetitions times the tilted chances of both atoms, which are at ±epsilon."""
        each = [self._one(e, c) for e in self.epsilons.tolist()]
        result: Array = self.counts / 4 * np.exp(-self.epsilons - 2 * np.array(each))
        return result

    def _bound(self, c: float, u: Array) -> Array:
        """At least the logarithm of the modulus of all, where it may be tiny."""
        # What chances are off by: exponents of up to c·epsilon; and what `UNKNOWN` allows for.
        if float(self.epsilons.max()) * c > 1e4 or self.blur(c) > 5e-4:
            return np.zeros(len(u))
        return paired(self._pairs(c), 2 * self.epsilons, 4 * EPS * self.epsilons, u)

    def fade(self, c: float, u: Array) -> Array:
        """The density rises with L, so each level set is an interval that ends at +epsilon."""
        e = self.epsilons[:, None]
        ends = e * np.linspace(-1, 1, _STEPS + 1)[:-1]
        log_m = np.array([[self._one(x, c)] for x in self.epsilons.tolist()])
        height = 0.25 * np.exp(-e / 2 + (c + 0.5) * ends - log_m)
        # Under a rising step function lie uniform laws that all end at +epsilon.
        masses = np.diff(height, prepend=0.0, axis=1) * (e - ends)
        result: Array = self.counts @ faded(masses, e - ends, u)
        return result

    @staticmethod
    def _one(e: float, c: float) -> float:
        return e * c + math.log1p(c * math.expm1(-e * (2 * c + 1)) / (2 * c + 1))

    def variation(self) -> float:
        """An upper bound of Σ (1 - e^{-epsilon/2}), the sum of the total variations.

        A summand has a halving, which is exact, two units of its exponential, and a product; their
        sum is rounded once. Twice that is charged.
        """
        each = self.counts * -np.expm1(-self.epsilons / 2)
        return math.fsum(each.tolist()) * (1 + 8 * EPS)

    def cost(self, c: float, u: float) -> float:
        """One a scale, or next to nothing where the atoms fade."""
        pairs = self._pairs(c)
        away, deviation = float(pairs.sum()), math.sqrt(float((pairs**2).sum()) / 2)
        share = 0.01 if away - 7 * deviation > 30 else 1.0
        return share * len(pairs) + 0.04 * len(pairs)

    def singles(self) -> list[tuple[Term, int]]:
        """One term a scale."""
        return [
            (LaplaceTerm(self.epsilons[i : i + 1], np.ones(1)), int(self.counts[i]))
            for i in range(len(self.epsilons))
        ]

    def ends(self, tail: float) -> tuple[float, float]:
        """±epsilon."""
        e = float(self.epsilons.max())
        return -e, e

    def top(self) -> float:
        """Σ epsilon."""
        return float((self.counts * self.epsilons).sum())

    def least(self) -> float:
        """-epsilon of the largest."""
        return -float(self.epsilons.max())

    def anchors(self) -> tuple[float, float]:
        """The two atoms."""
        e = float(self.epsilons[0])
        return -e, 2 * e

    def cells(self, edges: Array) -> LawCells:
        """Exact antiderivatives; an atom belongs to the cell that ends at or holds it."""
        e = float(self.epsilons[0])
        inner = np.clip(edges, -e, e)
        left, right = inner[:-1], inner[1:]
        gap = right - left
        # ∫ e^{(L-e)/2}/4 dL under P, and e^{-L} times that under Q.
        # As a product with expm1: a difference of antiderivatives would lose narrow cells.
        p = -0.5 * np.exp((right - e) / 2) * np.expm1(-gap / 2)
        q = -0.5 * np.exp((-left - e) / 2) * np.expm1(-gap / 2)
        # Cells hold their upper edge, so that an atom on an edge belongs to the cell below it.
        top = (edges[:-1] < e) & (edges[1:] >= e)
        bottom = (edges[:-1] < -e) & (edges[1:] >= -e)
        p = p + 0.5 * top + 0.5 * math.exp(-e) * bottom
        q = q + 0.5 * math.exp(-e) * top + 0.5 * bottom
        error = 16 * EPS * (1 + e)
        # A cell's own width errs by the rounding of its edges.
        shift = 4 * EPS * (np.abs(left) + np.abs(right)) / 4
        p_shift = shift * np.exp((right - e) / 2)
        q_shift = shift * np.exp((-left - e) / 2)
        below = 0.0 if edges[0] < -e else math.exp(-e) / 2 + max(0.0, float(edges[0]) + e) / 4
        above = 0.0 if edges[-1] >= e else 0.5 + (e - float(edges[-1])) / 4
        return LawCells(p, q, p * error + p_shift, q * error + q_shift, below, above)

    @property
    def most_mean(self) -> float:
        """The mean loss itself."""
        return self.mean()

    def mean(self) -> float:
        """epsilon - 1 + e^{-epsilon} each."""
        return float((self.counts * (self.epsilons + np.expm1(-self.epsilons))).sum())


def _beyond_line(x: Array) -> Array:
    """e^x - 1 - x for |x| <= 1/2, to 6 roundings of itself: its series up to x^15/15!."""
    value = np.ones_like(x)
    for k in range(15, 2, -1):
        # Each step's rounding is weighed by x/k, at most 1/6 in all.
        value = 1 + x / k * value
    result: Array = x * x / 2 * value
    return result


@dataclass(frozen=True, slots=True)
class LaplaceNoise(ScaledNoise, PureNoise):
    """Laplace noise of scale b at sensitivity 1."""

    @property
    def epsilon(self) -> Fraction:
        """1/b."""
        return 1 / self.scale

    def term(self, removal: bool, count: int) -> Term:
        """epsilon = 1/b."""
        return LaplaceTerm(np.array([1 / self.noise_multiplier]), np.array([float(count)]))

    def grouped(self, size: int) -> Part:
        """The mean moves ``size`` times as far."""
        return LaplaceNoise.of(1 / (self.epsilon * size))

    def describe(self) -> str:
        """As written."""
        return f"laplace({self.noise_multiplier:g})"


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(PureNoise):
    """Discrete Laplace of a scale on the integers, at an integer sensitivity.

    ``rational`` is the scale where the double is a rounding of it, downwards: `of` makes both.
    """

    scale: float
    sensitivity: int
    rational: Fraction | None = None

    @classmethod
    def of(cls, scale: Fraction, sensitivity: int) -> DiscreteLaplaceNoise:
        """The noise of a rational scale."""
        double, rational = rounded(scale)
        return cls(double, sensitivity, rational)

    @property
    def epsilon(self) -> Fraction:
        """d/s."""
        return self.sensitivity / written(self.scale, self.rational)

    def term(self, removal: bool, count: int) -> Term:
        """±d/s at the outside, in steps of 2/s between."""
        return shifted_noise(self.scale, self.sensitivity, count)

    def grouped(self, size: int) -> Part:
        """The shift grows; of one whose losses are too many to list, any pure mechanism's pair."""
        if self.sensitivity * size <= FINEST:
            return replace(self, sensitivity=self.sensitivity * size)
        pure = Approximate(printing_at_least(self.epsilon * size), 0.0)
        return Dominated(pure, f"{self.describe()}.group({size})")

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_laplace({self.scale:g}{extra})"
