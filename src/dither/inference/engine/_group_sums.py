"""Sums of clamped values in one group or in several: what means are told from, whatever their law.

Release. With t = (x - middle)/half clamped to [-1, 1] on a public lattice, of each group

* where its number of rows is public:  Σ t,  k·Σ (t² - 1/2);
* where it is not:  Σ (1 - t)²/4,  w·Σ (1 - t²)/2,  Σ (1 + t)²/4,  whose plain sum is the number n.

Sensitivity. *Public sizes* (a row that is replaced stays in its group): a change from t to t' moves
the two by d = |t - t'| and k·d·|t + t'|, and with |t + t'| <= 2 - d

    d + k·d·(2 - d) <= 2  for k <= 1/2,     d²·(1 + k²·(2 - d)²) <= 4  for k <= 33/20,

since 2 - d·(1 + k·(2 - d)) = (2 - d)·(1 - k·d) >= 0, and (2 + d)/(d²·(2 - d)) >= 2.77 > k²: the
second moment costs nothing beside the first. l1 = 2, l2² = 4.

*Measured sizes.* With p = (1 + t)/2, q = 1 - p a row adds (q², 2·w·p·q, p²): for w = 1 the chances
of a binomial law of two tries, which add up to 1. So l1 = 1 for a row that is added, and 2 for one
that is replaced and may change its group, of which three sums tell n, Σ t and Σ t²:

    n = A + B + C,    Σ t = C - A,    Σ t² = A + C - B.

Numbers, sums and squares thus cost together what a number of rows alone does. A row's squared norm
is q⁴ + p⁴ + 4·w²·p²·q² = 1 - 4·x + (2 + 4·w²)·x², x = p·q <= 1/4, which is at most 1 for
w² <= 7/2: l2² = 1. Both vectors of a row that is replaced have no negative entry, so that their
distance is at most √2, in one group as between two: l2² = 2.

Source. Bernstein's basis of degree two; Alda and Rubinstein, "The Bernstein mechanism: function
release under differential privacy", AAAI 2017, release functions in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    exact_sum,
    exact_sum_of_squares,
    gaussian_is_better,
    noise_of_either,
    seen_at_best,
    spread_of,
)
from dither.privacy import Loss, Neighbours

__all__ = ["GroupSumsRelease"]

_OF_COUNTS = np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0]])
"""n, Σ t and Σ t² from the three sums of a group whose size is measured."""


@dataclass(frozen=True)
class GroupSumsRelease:
    """Layer 1: two or three sums of each group, their sensitivity and their noise.

    Parameters
    ----------
    bounds : Bounds
    asked : Target
    groups : int
    moves : bool
        Whether a row that is replaced may change its group.
    gaussian : bool, optional
        Which noise; by default the better one.

    Attributes
    ----------
    weight : Fraction
        k where sizes are public, else w.
    noise : Laplace or Gaussian
        Of every sum.
    loss : Loss
    """

    bounds: Bounds
    asked: Target
    groups: int = 1
    moves: bool = False
    gaussian: bool | None = None
    weight: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        l1 = Fraction(2 if self.asked.replace else 1)
        # Measured sizes: both are 1 for a row that is added, and 2 for one that is replaced.
        l2_squared = Fraction(4) if self.public else l1
        gaussian = self.gaussian
        if gaussian is None:
            gaussian = gaussian_is_better(self.asked, l1=float(l1), l2=float(l2_squared) ** 0.5)
        # The largest short fractions that cost nothing: k <= 1/2 by l1, k² < 2.77 by l2.
        weight = Fraction(33, 20) if gaussian else Fraction(1, 2)
        if not self.public:
            # w = 1 by l1, where entries add up to 1; w² <= 7/2 by l2.
            weight = Fraction(7, 4) if gaussian else Fraction(1)
        noise, loss = noise_of_either(
            gaussian,
            asked=self.asked,
            dimension=self.dimension,
            l1=l1,
            l2_squared=l2_squared,
        )
        found = {"gaussian": gaussian, "weight": weight, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def public(self) -> bool:
        """Whether the number of rows of each group is public."""
        return self.asked.replace and not self.moves

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return self.groups * (2 if self.public else 3)

    def statistic(self, groups: Sequence[Floats]) -> tuple[Fraction, ...]:
        """The exact vector; what is missing counts as the middle where sizes are public, else not.

        Parameters
        ----------
        groups : sequence of array of float
            The values of each group.
        """
        found: list[Fraction] = []
        for values in groups:
            known = values[~np.isnan(values)]
            points, steps = self.bounds.lattice(known), Bounds.steps
            n = len(values) if self.public else len(known)
            first = Fraction(exact_sum(points), steps)
            second = Fraction(exact_sum_of_squares(points), steps**2)
            if self.public:
                found += [first, self.weight * (second - Fraction(n, 2))]
            else:
                # Squares are at most 1, so that no entry is negative: on that l2 under replacement
                # rests.
                across = self.weight * (n - second) / 2
                found += [(n + second - 2 * first) / 4, across, (n + second + 2 * first) / 4]
        return tuple(found)

    def release(self, groups: Sequence[Floats]) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(groups)), self.noise, self.loss)

    def moments(self, released: Floats, rows: Sequence[int] | None) -> Floats:
        """n, Σ t and Σ t² of each group, shape (..., groups, 3), from vectors, shape (..., k).

        Parameters
        ----------
        released : array of float
            Released vectors, or noise alone.
        rows : sequence of int or None
            The public sizes; for noise, zeros.
        """
        each = released.reshape(*released.shape[:-1], self.groups, -1)
        if not self.public:
            return np.asarray((each / [1.0, float(self.weight), 1.0]) @ _OF_COUNTS.T)
        n = np.broadcast_to(np.asarray(rows, dtype=np.float64), each.shape[:-1])
        return np.stack([n, each[..., 0], each[..., 1] / float(self.weight) + n / 2], axis=-1)

    def drawn(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of n, Σ t and Σ t² of each group, shape (size, groups, 3)."""
        noise = spread_of(self.noise).draw(rng, (size, self.dimension))
        return self.moments(noise, [0] * self.groups)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        bounds, delta, none = bounds_of("bounds", (-1, 1)), Fraction(1, 100), np.zeros(0)
        low, high = np.array([-9.0, 0.5]), np.array([9.0, 0.5])
        design = cls(bounds, target(1, 0, "replace"))
        yield Subject("sums of n rows", seen_at_best(design, (low,), (high,)), (low,), (high,))
        design = cls(bounds, target(1, 0, "add-remove"))
        fewer, more = (high[1:],), (high,)
        yield Subject("sums of unknown n", seen_at_best(design, fewer, more), fewer, more)
        first, second = (high, none), (high[1:], high[:1])
        design = cls(bounds, target(1, 0, "replace"), 2, moves=True)
        seen = seen_at_best(design, first, second)
        yield Subject("sums where a row moves", seen, first, second)
        exact = Target(Fraction(1), delta, Neighbours.REPLACE)
        design = cls(bounds, exact, 2, moves=True, gaussian=True)
        seen = seen_at_best(design, first, second)
        yield Subject("sums where a row moves, Gaussian", seen, first, second, delta=delta)
