"""The one noise of all the integers that a training run lets out.

A run gives integer vectors f1, f2, ..., each of which may depend on what left before. Where
neighbours move them, at the same earlier answers, by at most l1 in all in absolute value, and by at
most l2_squared in all when squared, noise of one law on every coordinate makes the whole sequence
(epsilon, delta)-DP: Laplace noise of scale l1/epsilon by basic composition, since the parts of l1
add up; Gaussian noise as one Gaussian mechanism of that many coordinates (Dong, Roth and Su, 2022,
on the adaptive composition of Gaussian mechanisms). Of the two the one of less variance is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

__all__ = ["Noise", "PrivacyParameters", "RunNoise", "TableSensitivity", "left"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Noise = DiscreteGaussian | DiscreteLaplace


@dataclass(frozen=True)
class PrivacyParameters:
    """What a run may cost, and whom it protects.

    Parameters
    ----------
    epsilon, delta : Fraction
        delta 0 asks for a pure guarantee.
    neighbours : Neighbours
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours

    @classmethod
    def of(
        cls, epsilon: Any, delta: Any, neighbours: Any, *, pure: bool = True
    ) -> PrivacyParameters:
        """From what an estimator was given; ``pure`` says whether delta may be 0."""
        above: dict[str, Any] = {"least": 0} if pure else {"above": 0}
        return cls(
            check.positive("epsilon", epsilon),
            check.exact("delta", delta, below=1, **above),
            as_table_neighbours(neighbours),
        )

    @property
    def replace(self) -> bool:
        """Whether rows are replaced, so that their number is public."""
        return self.neighbours is Neighbours.REPLACE

    def gaussian(self, l2_squared: int, coordinates: int) -> tuple[DiscreteGaussian, Loss]:
        """Gaussian noise, and what it costs."""
        noise = DiscreteGaussian.for_epsilon(
            self.epsilon, self.delta, l2_squared=l2_squared, coordinates=coordinates
        )
        loss = noise.loss(
            l2_squared=l2_squared, coordinates=coordinates, neighbours=self.neighbours
        )
        spent = noise.delta(self.epsilon, l2_squared=l2_squared, coordinates=coordinates)
        return noise, loss.with_charge(Charge(self.epsilon, spent, loss.charge.rho))

    def best(self, moved: TableSensitivity) -> tuple[Noise, Loss]:
        """The noise of less variance, and what it costs."""
        laplace = DiscreteLaplace.for_loss(self.epsilon, l1=moved.l1)
        if self.delta > 0:
            gaussian, loss = self.gaussian(moved.l2_squared, moved.coordinates)
            if gaussian.variance < laplace.variance:
                return gaussian, loss
        return laplace, laplace.loss(l1=moved.l1, neighbours=self.neighbours)


@dataclass(frozen=True)
class TableSensitivity:
    """How far neighbours move the integers that leave, at the same earlier answers.

    Parameters
    ----------
    l1, l2_squared : int
    coordinates : int
        How many of them, at most.
    """

    l1: int
    l2_squared: int
    coordinates: int

    def __add__(self, other: TableSensitivity) -> TableSensitivity:
        return TableSensitivity(
            self.l1 + other.l1,
            self.l2_squared + other.l2_squared,
            self.coordinates + other.coordinates,
        )

    def __mul__(self, times: int) -> TableSensitivity:
        return TableSensitivity(self.l1 * times, self.l2_squared * times, self.coordinates * times)

    def of_unit(self, rows: int) -> TableSensitivity:
        """Of a unit of up to so many rows, where what leaves are sums over rows.

        At the same earlier answers each row of the unit that is added, removed or replaced moves
        the whole sequence by a vector of the lengths above, and the unit by the sum of them: by
        the triangle inequality at most ``rows`` times as far, in either norm.
        """
        return TableSensitivity(self.l1 * rows, self.l2_squared * rows**2, self.coordinates * rows)

    @classmethod
    def of_length(cls, length: int, coordinates: int) -> TableSensitivity:
        """Of a vector that moves by at most so much in the L2 norm."""
        most = math.isqrt(coordinates * length**2 - 1) + 1 if length else 0
        return cls(min(most, length * coordinates), length**2, coordinates)


@dataclass(frozen=True)
class RunNoise:
    """A run's noise.

    Parameters
    ----------
    noise : DiscreteGaussian or DiscreteLaplace
    loss : Loss
        Of all that leaves.
    """

    noise: Noise
    loss: Loss

    @property
    def deviation(self) -> float:
        """Of one integer's noise."""
        return math.sqrt(self.noise.variance)

    def leave(self, exact: Any) -> Floats:
        """Integers with their noise: the only way out of a run."""
        return left(self.noise, exact)


def left(noise: Noise, exact: Any) -> Floats:
    """Integers with their noise."""
    array = np.asarray(exact)
    if array.dtype.kind not in "iuO":
        raise ArgumentError("what leaves must be exact integers")
    drawn = np.asarray(noise.draw(array.shape))
    return np.asarray((array + drawn).astype(np.float64))
