"""The discrete Gaussian mechanism: concentrated privacy for integer vectors of bounded L2 norm.

Tails. With f(x) = exp(-x²/(2σ²)) and N = Σ_z f(z), N >= σ√(2π) by Poisson summation. f is convex
for x >= σ, so there f(z) is at most its integral over [z - 1/2, z + 1/2] (Hermite and Hadamard),
and ::

    Pr[Z >= t] <= Pr[normal(0, σ²) >= t - 1/2]      for t - 1/2 >= σ,

For other t >= 1, f falls on [t - 1, ∞), and the same holds with t - 1. The normal tail is bounded
by a convergent of Laplace's continued fraction. For σ <= 64 the sum itself is taken, term by term,
rounded upwards, with a geometric bound of what follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._stats import log_of, two_sided
from dither._subjects import Subject
from dither.accounting import delta_of_rho, rho_of_epsilon
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise, Integers, largest_parameter
from dither.mechanisms._composable import gaussian_pair
from dither.mechanisms.counts._analytic import (
    gaussian_mu,
    mass_below,
    rounded_delta,
    shortened_up,
    summed_delta,
)
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["DiscreteGaussian"]

_SUMMED = 4096
"""Up to this sigma2 tails are summed term by term, and so is the delta of shifts up to this."""

_LARGEST, _SMALLEST = 600, 1e-290
"""Epsilons and deltas that the loss's doubles hold."""

_TWO_PI_BELOW = Fraction(6_283_185_307_179_586, 10**15)
"""2π = 6.283185307179586476..., cut."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(AdditiveNoise):
    """Discrete Gaussian noise for integer vectors, bound to its exact parameter σ².

    Added to each coordinate independently, with z an integer ::

        Pr[Z = z] proportional to exp(-z²/(2σ²))

    The variance is at most σ², and nearly equal from σ = 1.

    Parameters
    ----------
    sigma2 : Fraction
        σ² above 0, in squared units of the integers it is added to.

    Raises
    ------
    ArgumentError
        σ² is not a number above 0, or beyond the sampler's reach.

    Notes
    -----
    *Guarantee.* Where ``l2_squared`` bounds Σ(q_i(D) - q_i(D'))² of the integer vector q for all
    neighbours D, D', of either relation: rho-zCDP with rho = l2_squared/(2σ²) exactly, and at every
    epsilon (epsilon, `delta`)-DP. That delta is exact where one coordinate changes, and for vectors
    as good as continuous noise's on all but coarse lattices (`_analytic`).

    *Proof.* For an integer shift m the Rényi divergence of order alpha between Z + m and Z is ::

        log( Σ_z exp(-(alpha(z-m)² + (1-alpha)z²)/(2σ²)) / N ) / (alpha - 1)
          = alpha·m²/(2σ²) + log( Σ_z exp(-(z - alpha·m)²/(2σ²)) / N ) / (alpha - 1),

    and a Gaussian sum over a shifted lattice is largest at shift 0 (Poisson summation has positive
    terms), so the last logarithm is at most 0. Divergences of independent coordinates add.

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020,
    theorem 4 and, for tails, section 3.

    Examples
    --------
    >>> mechanism = DiscreteGaussian.for_loss("1/50", l2_squared=4)
    >>> mechanism.sigma2, mechanism.loss(l2_squared=4).charge.rho
    (Fraction(100, 1), Fraction(1, 50))
    >>> mechanism.half_width(0.95)
    20
    """

    title: ClassVar[str] = "discrete Gaussian"

    sigma2: Fraction

    def __post_init__(self) -> None:
        self._settle_positive("sigma2")
        if self.sigma2 > noise.MAX_SIGMA2:
            raise ArgumentError(
                "sigma2 must be at most 2**104: ask for a larger epsilon or a coarser lattice"
            )

    @classmethod
    def for_loss(cls, rho: Number, *, l2_squared: Number) -> DiscreteGaussian:
        """The mechanism that costs exactly rho at squared L2 sensitivity ``l2_squared``."""
        return cls(check.positive("l2_squared", l2_squared) / (2 * check.positive("rho", rho)))

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        l2_squared: Number,
        coordinates: int | None = None,
    ) -> DiscreteGaussian:
        """The least noise found that is (epsilon, delta)-DP, by the delta of the law itself.

        Parameters
        ----------
        epsilon, delta : Fraction
            Above 0, and in (0, 1).
        l2_squared : number
            Squared L2 sensitivity.
        coordinates : int, optional
            The most coordinates that change; without it, what l2_squared allows.

        Examples
        --------
        >>> noise = DiscreteGaussian.for_epsilon(1, 1e-6, l2_squared=100)
        >>> noise.delta(1, l2_squared=100) <= 1e-6
        True
        >>> round(math.sqrt(noise.sigma2), 1)
        42.2
        """
        moved, square = _moved(check.positive("l2_squared", l2_squared), coordinates)
        if square == 0:
            raise ArgumentError("l2_squared must be at least 1 for a vector of integers to change")
        exact = check.positive("epsilon", epsilon)
        target = check.exact("delta", delta, above=0, below=1)
        return cls(_sigma2(exact, target, square, moved))

    @classmethod
    def for_half_width(cls, half_width: int, *, confidence: float) -> DiscreteGaussian:
        """The noise of largest sigma2 (three digits) whose half-width is at most the one given.

        Raises
        ------
        ArgumentError
            An argument is out of range.
        """
        found = largest_parameter("half_width", half_width, cls, confidence, noise.MAX_SIGMA2)
        return cls(found)

    def loss(
        self,
        *,
        l2_squared: Number,
        coordinates: int | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What a release costs: rho = l2_squared/(2σ²), and no finite epsilon at delta 0.

        With ``coordinates``, the most that change, it composes more closely where that is one.
        """
        square = check.exact("l2_squared", l2_squared, least=0)
        return gaussian_pair(self.sigma2, square, _moved(square, coordinates)[0], neighbours)

    def delta(
        self, epsilon: Number, *, l2_squared: Number, coordinates: int | None = None
    ) -> Fraction:
        """A proven upper bound of the delta at an epsilon; parameters as in `for_epsilon`."""
        moved, square = _moved(check.exact("l2_squared", l2_squared, least=0), coordinates)
        return _delta(check.exact("epsilon", epsilon, least=0), self.sigma2, square, moved)

    def _draw(self, n: int) -> Integers:
        return noise.discrete_gaussian(self.sigma2, n)

    @property
    def variance(self) -> float:
        """Σ z² exp(-z²/(2σ²)) / N; σ² itself once σ² >= 16, where they agree to 1e-130."""
        s2 = float(self.sigma2)
        if s2 >= 16:
            return s2
        weights = [(z, math.exp(-z * z / (2 * s2))) for z in range(1, 160)]
        return 2 * sum(z * z * w for z, w in weights) / (1 + 2 * sum(w for _, w in weights))

    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]; for t <= 0 it is 1, which serves no guarantee."""
        return _upper_tail(self.sigma2, t) if t >= 1 else Fraction(1)

    def _survival(self, t: int) -> float:
        return _survival(float(self.sigma2), t)

    def _guess(self, outside: float) -> float:
        return two_sided(1 - outside) * math.sqrt(float(self.sigma2))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise = cls(Fraction(1))
        delta = Fraction(noise.loss(l2_squared=1).delta(1.0).upper)
        yield Subject(
            "discrete Gaussian", lambda count, size: count + noise.draw(size), 0, 1, 1, delta
        )


def _moved(l2_squared: Fraction, coordinates: int | None) -> tuple[int, int]:
    """(how many coordinates may change, squared sensitivity as an integer)."""
    # Integers change by integers: their squares' sum is one, too.
    square = math.floor(l2_squared)
    if coordinates is None:
        # Each coordinate that changes takes at least 1 of the square.
        return max(1, square), square
    return check.whole("coordinates", coordinates, 1), square


@lru_cache(maxsize=4096)
def _delta(epsilon: Fraction, sigma2: Fraction, l2_squared: int, moved: int) -> Fraction:
    """An upper bound of delta for integer vectors of ``moved`` coordinates, epsilon >= 0.

    The exact value, rounded up, where one coordinate changes and sigma2 and its square are at most
    4096; else that of the mechanism's own loss, or by zCDP where that is less.
    """
    if l2_squared == 0:
        return Fraction(0)
    moved = min(moved, l2_squared)
    shift = math.isqrt(l2_squared)
    # One coordinate's delta is a sum that can be taken to the last digit.
    if moved == 1 and sigma2 <= _SUMMED and shift <= _SUMMED:
        return summed_delta(epsilon, sigma2, shift)
    found = delta_of_rho(l2_squared / (2 * sigma2), epsilon)
    if epsilon > _LARGEST or found < _SMALLEST:
        return min(found, rounded_delta(epsilon, sigma2, l2_squared, moved))
    near = epsilon if epsilon > 0 else None
    loss = gaussian_pair(sigma2, l2_squared, moved, Neighbours.ADD_REMOVE, near=near)
    # delta falls with epsilon: a double below it gives no less.
    return min(found, Fraction(loss.delta(directed.float_down(epsilon)).upper))


@lru_cache(maxsize=1024)
def _sigma2(epsilon: Fraction, delta: Fraction, l2_squared: int, moved: int) -> Fraction:
    """The least sigma2 found, of 40 bits, whose `_delta` at epsilon is at most delta."""
    moved = min(moved, l2_squared)
    rough = l2_squared / gaussian_mu(epsilon, delta) ** 2
    # Where zCDP alone is enough: `_delta` includes it.
    high = shortened_up(l2_squared / (2 * rho_of_epsilon(epsilon, delta)), 40)
    # One coordinate's is known to the last digit, and a vector's to that of doubles.
    width = Fraction(1, 1 << (36 if moved == 1 else 28))

    def excess(sigma2: Fraction) -> float:
        found = _delta(epsilon, sigma2, l2_squared, moved)
        gap = log_of(found) - log_of(delta) if found > 0 else -1e3
        # Of two rationals whose logarithms agree in doubles, the comparison decides.
        return max(gap, 5e-324) if found > delta else min(gap, 0.0)

    # Continuous noise's is most often nearly it.
    low, over = rough / 4, math.inf
    for part in (1, 1 + width, 1 + 64 * width, 1 + (1 << 14) * width):
        tried = shortened_up(rough * part, 40)
        if tried >= high:
            break
        value = excess(tried)
        if value <= 0:
            high = tried
            break
        low, over = tried, value
    # Not by `false_position`: its places are rationals of 40 bits, rounded up.
    under, side = excess(high), 0
    for _ in range(60):
        if high - low <= high * width:
            break
        part = Fraction(1, 2)
        if math.isfinite(over) and over > under:
            part = Fraction(over / (over - under))
        # A step that lands on the root is pushed to its far side; the middle is rounded up.
        margin = high * width / 3
        middle = low + part * (high - low) + (margin if side < 0 else -margin)
        middle = shortened_up(min(max(middle, low + margin), high - margin), 40)
        value = excess(middle)
        if value <= 0:
            over = over / 2 if side > 0 else over
            high, under, side = middle, value, 1
        else:
            under = under / 2 if side < 0 else under
            low, over, side = middle, value, -1
    return high


@lru_cache(maxsize=1024)
def _upper_tail(sigma2: Fraction, t: int) -> Fraction:
    if sigma2 <= _SUMMED:
        bound = _summed_tail(sigma2, t)
    else:
        half = Fraction(2 * t - 1, 2)
        # From one deviation on the law is convex, and t - 1/2 may stand for t; before, t - 1 does.
        start = half if half * half >= sigma2 else Fraction(t - 1)
        bound = _normal_tail(start * start / sigma2)
    return min(Fraction(1), bound)


def _summed_tail(sigma2: Fraction, t: int) -> Fraction:
    """Σ_{z>=t} f(z) / N with f(z) = f(t)·term_j, z = t + j; fixed point, rounded upwards."""
    bits = 96
    one = 1 << bits
    # term_{j+1} = term_j·ratio_j with ratio_j = exp(-(2(t+j)+1)/(2σ²)) falling in j.
    ratio = _scaled_up(directed.exp_upper(-Fraction(2 * t + 1) / (2 * sigma2)), one)
    step = _scaled_up(directed.exp_upper(-1 / sigma2), one)
    term, total = one, 0
    # Until terms fall and are below 2^-64 of the first.
    while term > 1 << (bits - 64) or ratio >= one:
        total += term
        term = -((-term * ratio) >> bits)
        ratio = -((-ratio * step) >> bits)
    # The rest, as a geometric series whose ratio only falls; upwards like everything before.
    total += -(-term * one // (one - ratio))
    first = directed.exp_upper(-Fraction(t * t) / (2 * sigma2))
    return first * Fraction(total, one) / mass_below(sigma2)


def _normal_tail(x2: Fraction) -> Fraction:
    """An upper bound of Pr[normal >= x] for x = sqrt(x2).

    exp(-x²/2)/√(2π) times 1/(x + 1/(x + 2/(x + 3/(x + ...)))). Cut after an even number of inner
    fractions the continued fraction lies above its limit; it falls in x, so a lower bound of x may
    stand for x. Below x = 1, where it is slow, exp(-x²/2)/2 bounds the tail.
    """
    density = directed.exp_upper(-x2 / 2)
    if x2 < 1:
        return density / 2
    x = Fraction(math.floor(directed.sqrt_lower(x2) * 2**40), 2**40)
    inner = x
    for k in range(80, 0, -1):
        inner = x + k / inner
        # Short numbers, rounded so that the outermost level (k = 1), a divisor, errs downwards:
        # each level in is a divisor of the one before, so the direction alternates.
        scaled = inner * 2**64
        inner = Fraction(math.floor(scaled) if k % 2 else math.ceil(scaled), 2**64)
    return density / (inner * directed.sqrt_lower(_TWO_PI_BELOW))


def _scaled_up(value: Fraction, one: int) -> int:
    return math.ceil(value * one)


@lru_cache(maxsize=1024)
def _survival(s2: float, t: int) -> float:
    if s2 <= _SUMMED:
        last = t + 64 + int(14 * math.sqrt(s2))
        above = math.fsum(math.exp(-z * z / (2 * s2)) for z in range(t, last))
        if s2 >= 4:
            return above / math.sqrt(2 * math.pi * s2)
        return above / (1 + 2 * math.fsum(math.exp(-z * z / (2 * s2)) for z in range(1, 40)))
    # Midpoint rule with its first correction, f'(t - 1/2)/24. The next one, 7/5760 of the third
    # derivative, is about 0.0013·x⁴/σ⁴ of the tail.
    x = (t - 0.5) / math.sqrt(s2)
    density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return 0.5 * math.erfc(x / math.sqrt(2)) - x * density / (24 * s2)
