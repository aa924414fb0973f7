"""The staircase mechanism: the pure noise of least error for one number of large sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._search import least_integer
from dither._stats import log_of
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import _coins as coins
from dither.mechanisms._base import AdditiveNoise, Integers, cheapest
from dither.mechanisms._composable import pure_class
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["Staircase"]

Floats = npt.NDArray[np.float64]

_MOST = 1 << 48


@dataclass(frozen=True, slots=True)
class Staircase(AdditiveNoise):
    """Discrete staircase noise for one number, bound to its exact epsilon, sensitivity and step.

    For sensitivity D, step r in 1..D and b = exp(-epsilon), with z an integer ::

        Pr[Z = z] = a·b^L(z),   L(z) = floor((|z| + D - r)/D),
        1/a = 2r - 1 + 2·D·b/(1 - b)

    so that the law is flat for |z| < r and then falls by the factor b after every D integers.

    Parameters
    ----------
    epsilon : Fraction
        Above 0.
    sensitivity : int
        D, at least 1.
    step : int
        r in 1..D: how far the flat middle reaches.

    Raises
    ------
    ArgumentError
        A parameter is out of range, or the noise would not fit 64 bits.

    Notes
    -----
    *Guarantee.* Where the integer changes by at most D between neighbours, of either relation:
    epsilon-DP exactly; in general ceil(d/D)·epsilon at sensitivity d. A vector costs as much for
    every coordinate that changes: the noise is meant for one number.

    *Proof.* If | |z| - |w| | <= D, then |z| + D - r and |w| + D - r differ by at most D, so their
    quotients by D, rounded down, differ by at most 1, and the probabilities by at most the factor
    e^epsilon. It is attained at z = 0 and w = D.

    *Error.* `for_loss` takes the r of least variance. Beyond epsilon of about 1 the gain on
    discrete Laplace noise grows quickly: for large D the variance falls as exp(-2·epsilon/3), and
    that of discrete Laplace noise as 1/epsilon². For D = 1 the two laws are the same.

    References
    ----------
    Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy", IEEE
    Transactions on Information Theory 2016 (section on the discrete setting); Geng, Kairouz, Oh and
    Viswanath, "The staircase mechanism in differential privacy", 2015.

    Examples
    --------
    >>> from dither.mechanisms import DiscreteLaplace
    >>> mechanism = Staircase.for_loss(4, sensitivity=100)
    >>> mechanism.step, mechanism.loss(sensitivity=100).charge.epsilon
    (20, Fraction(4, 1))
    >>> round(mechanism.variance), round(DiscreteLaplace.for_loss(4, l1=100).variance)
    (650, 1250)
    """

    title: ClassVar[str] = "staircase"

    epsilon: Fraction
    sensitivity: int
    step: int

    def __post_init__(self) -> None:
        self._settle_positive("epsilon")
        self._settle(sensitivity=check.whole("sensitivity", self.sensitivity, 1))
        self._settle(step=check.whole("step", self.step, 1))
        if self.step > self.sensitivity:
            raise ArgumentError("step must be at most the sensitivity")
        _check_lattice(self.epsilon, self.sensitivity)

    @classmethod
    def for_loss(cls, epsilon: Number, *, sensitivity: int) -> Self:
        """The mechanism of least variance that costs exactly epsilon at this sensitivity."""
        exact = check.positive("epsilon", epsilon)
        whole = check.whole("sensitivity", sensitivity, 1)
        _check_lattice(exact, whole)
        return cls(exact, whole, _best_step(float(exact), whole))

    @classmethod
    def for_half_width(cls, half_width: int, *, sensitivity: int, confidence: float) -> Self:
        """The mechanism of least epsilon (three digits) whose half-width is at most the one given.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        made = partial(cls.for_loss, sensitivity=sensitivity)
        return cheapest("half_width", half_width, made, lambda m: m.half_width(confidence))

    def loss(
        self,
        *,
        sensitivity: int,
        coordinates: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What a release costs: ceil(d/D)·epsilon for each coordinate that changes, by up to d."""
        whole = check.whole("sensitivity", sensitivity)
        # Rounded up: a change of a little over D may cross two steps.
        each = -(-whole // self.sensitivity) * self.epsilon
        return check.whole("coordinates", coordinates, 1) * pure_class(each, neighbours)

    def _draw(self, n: int) -> Integers:
        """The middle or the outside is chosen by an exact coin.

        Outside, the number of further steps is geometric and the rest uniform.
        """
        middle = coins.real_coins(self._middle_bounds, n)
        # Flat within the middle, and within each step outside.
        inner = noise.below(2 * self.step - 1, n) - (self.step - 1)
        outer = self.step + self.sensitivity * coins.geometric(1 / self.epsilon, n)
        outer += noise.below(self.sensitivity, n)
        outer *= 1 - 2 * noise.below(2, n)
        return np.where(middle, inner, outer)

    @property
    def variance(self) -> float:
        """Σ z²·Pr[Z = z], in closed form."""
        return float(_variances(float(self.epsilon), self.sensitivity, np.array([self.step]))[0])

    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]; for t <= 0 it is 1, which serves no guarantee."""
        if t < 1:
            return Fraction(1)
        # Above the line the larger end of b, below it the end that makes the divisor small.
        low, high = directed.exp_lower(-self.epsilon), directed.exp_upper(-self.epsilon)
        level, left = self._level(t)
        top = directed.exp_upper(-level * self.epsilon)
        return min(
            Fraction(1),
            top
            * (left * (1 - low) + self.sensitivity * high)
            / ((2 * self.step - 1) * (1 - high) + 2 * self.sensitivity * low),
        )

    def _survival(self, t: int) -> float:
        b, lost = math.exp(-float(self.epsilon)), -math.expm1(-float(self.epsilon))
        level, left = self._level(t)
        whole = (2 * self.step - 1) * lost + 2 * self.sensitivity * b
        return math.exp(-level * float(self.epsilon)) * (left * lost + self.sensitivity * b) / whole

    def _guess(self, outside: float) -> float:
        return least_integer(lambda w: 2 * self.survival(w + 1) <= outside)

    def _level(self, t: int) -> tuple[int, int]:
        """L(t), and how many integers from t on have that level."""
        level = (t + self.sensitivity - self.step) // self.sensitivity
        return level, self.step + level * self.sensitivity - t

    def _middle_bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Bounds of Pr[|Z| < r] = m/(m + 2·D·b/(1 - b)) for m = 2r - 1."""
        m, twice = 2 * self.step - 1, 2 * self.sensitivity
        # The odds lose the bits that D/epsilon has.
        spare = bits + 2 * int(abs(log_of(self.epsilon / self.sensitivity)) * 1.5) + 8
        low = directed.exp_lower(-self.epsilon, spare)
        high = directed.exp_upper(-self.epsilon, spare)
        # m·(1 - b) and 2·D·b, each with the end of b that pushes the chance the same way.
        least, most = m * (1 - high), m * (1 - low)
        return least / (least + twice * high), most / (most + twice * low)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise = cls.for_loss(1, sensitivity=3)
        yield Subject("staircase", lambda total, size: total + noise.draw(size), 0, 3)


def _variances(epsilon: float, d: int, steps: Integers) -> Floats:
    """The variance for each step, by Σ over blocks [r + kD, r + (k + 1)D) of their sums of z²."""
    r = steps.astype(float)
    b, lost = math.exp(-epsilon), -math.expm1(-epsilon)
    # Σ_k b^(k+1)·k^m for m = 0, 1, 2
    s0, s1, s2 = b / lost, b**2 / lost**2, b**2 * (1 + b) / lost**3
    one, two = d * (d - 1) / 2, d * (d - 1) * (2 * d - 1) / 6
    outside = s0 * (d * r**2 + 2 * r * one + two) + s1 * (2 * d**2 * r + 2 * d * one) + s2 * d**3
    inside = (r - 1) * r * (2 * r - 1) / 6
    return np.asarray(2 * (inside + outside) / (2 * r - 1 + 2 * d * s0))


@lru_cache(maxsize=1024)
def _check_lattice(epsilon: Fraction, sensitivity: int) -> None:
    if sensitivity > _MOST * min(Fraction(1), epsilon):
        raise ArgumentError("sensitivity must be at most 2**48·epsilon: use a coarser lattice")


def _best_step(epsilon: float, d: int) -> int:
    """The step of least variance, on ever finer grids (the variance has one valley in r)."""
    low, high = 1, d
    while True:
        grid = np.unique(np.linspace(low, high, 513).astype(np.int64))
        best = int(np.argmin(_variances(epsilon, d, grid)))
        if high - low < 512:
            return int(grid[best])
        low, high = int(grid[max(0, best - 1)]), int(grid[min(grid.size - 1, best + 1)])
