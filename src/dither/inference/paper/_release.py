"""Layer 1 of a description: sums, ranks and counts of every column by group, in one charge.

A row stands in at most one group, and adds to the vector, of its group alone,

* *sizes*, where they are asked for: weight/2 to the group's number of rows;
* of each number, with t = (x - middle)/half in [-1, 1], p = (1 + t)/2 and q = 1 - p, the chances
  of a binomial law of four tries

      B_j = C(4, j)·p^j·q^(4 - j),   j = 0..4,    Σ B_j = 1,

  and the same row in one node of each of L levels of a tree of bins, weighted by v;
* of each category, 1 to the count of its level, or nothing where it has none.

Σ B_j·a_j gives n, Σ t, Σ t², Σ t³ and Σ t⁴, with a_j what the polynomial is in Bernstein's basis: a
mean, a deviation and what the error of a deviation rests on cost together what a count costs.

Sensitivity. No entry is negative. With K numbers and C categories a row that is added moves the
vector by

    l1 <= s + K·(1 + v·L) + C,    l2² <= s² + K·(1 + v²·L) + C,    s = 1/2 or 0,

since Σ B_j = 1 and Σ B_j² <= (Σ B_j)²; one that is replaced moves it by the difference of two such
vectors, wherever both stand: 2·l1, and l2² twice as much, as the cross term of vectors without
negative entries is not positive.

How the charge is split. v = 1/L under Laplace noise, and 1/√L, rounded down, under Gaussian noise:
so each number's moments, each number's ranks and each category weigh alike, and the sizes half of
one of them. A number thus costs twice what a category does.

Source. Bernstein's basis, as in `dither.inference.engine._group_sums`; ranks by
`dither.mechanisms.QuantileTree`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    exact_sum,
    gaussian_is_better,
    noise_of_either,
    seen_at_best,
    spread_of,
)
from dither.mechanisms import QuantileTree
from dither.privacy import Loss

__all__ = ["DescriptionRelease", "ExactDescription", "power_sums"]

Integers = npt.NDArray[np.int64]

_SIZES = Fraction(1, 2)
_TRIES = 4

# 1, t, t², t³ and t⁴ in Bernstein's basis of degree four, from j = 0 to 4: with t = p - q and
# 1 = p + q each is a product of p + q and p - q, whose coefficients are divided by C(4, j).
OF_POWERS = np.array(
    [
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [-1.0, -0.5, 0.0, 0.5, 1.0],
        [1.0, 0.0, -1.0 / 3.0, 0.0, 1.0],
        [-1.0, 0.5, 0.0, -0.5, 1.0],
        [1.0, -1.0, 1.0, -1.0, 1.0],
    ]
)


@dataclass(frozen=True)
class ExactDescription:
    """What is counted and summed of the rows, exactly, before noise.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each group.
    powers : sequence of sequence of sequence of Fraction
        Of each number and group: n, Σ t, Σ t², Σ t³, Σ t⁴.
    leaves : sequence of array of int, shape (groups, bins)
        Of each number.
    counts : sequence of array of int, shape (groups, levels)
        Of each category.
    """

    sizes: Sequence[int]
    powers: Sequence[Sequence[Sequence[Fraction]]]
    leaves: Sequence[Integers]
    counts: Sequence[Integers]


@dataclass(frozen=True)
class DescriptionRelease:
    """Layer 1: the vector of a description, its sensitivity and its noise.

    Parameters
    ----------
    groups : int
    bins : tuple of int
        Of each number: into how many bins its values fall, for ranks.
    levels : tuple of int
        Of each category.
    asked : Target
    sized : bool
        Whether the sizes of the groups are released.
    gaussian : bool, optional
        Which noise; by default the better one.

    Attributes
    ----------
    trees : tuple of QuantileTree
    weight : tuple of Fraction
        v of each number.
    l1, l2_squared : Fraction
    noise : Laplace or Gaussian
        Of every entry.
    loss : Loss

    Examples
    --------
    >>> design = DescriptionRelease(2, (16,), (2, 3), target(1, 0, "add-remove"))
    >>> design.l1, design.loss.charge.epsilon
    (Fraction(9, 2), Fraction(1, 1))
    """

    groups: int
    bins: tuple[int, ...]
    levels: tuple[int, ...]
    asked: Target
    sized: bool = True
    gaussian: bool | None = None
    trees: tuple[QuantileTree, ...] = field(init=False)
    weight: tuple[Fraction, ...] = field(init=False)
    l1: Fraction = field(init=False)
    l2_squared: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        gaussian = self.gaussian
        if gaussian is None:
            l1, l2_squared = self._moved(*self._trees(gaussian=False))
            _, other = self._moved(*self._trees(gaussian=True))
            better = gaussian_is_better(self.asked, l1=float(l1), l2=math.sqrt(other))
            gaussian = better
        trees, weight = self._trees(gaussian=gaussian)
        l1, l2_squared = self._moved(trees, weight)
        noise, loss = noise_of_either(
            gaussian,
            asked=self.asked,
            dimension=self.dimension_of(trees),
            l1=l1,
            l2_squared=l2_squared,
        )
        found = {"gaussian": gaussian, "trees": trees, "weight": weight, "l1": l1}
        found |= {"l2_squared": l2_squared, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def _trees(self, *, gaussian: bool) -> tuple[tuple[QuantileTree, ...], tuple[Fraction, ...]]:
        trees = tuple(
            QuantileTree.choose(size, "gaussian" if gaussian else "laplace") for size in self.bins
        )
        # 1/√L rounded down, so that v²·L is at most 1.
        weight = tuple(
            Fraction(math.isqrt(10**8 // tree.levels), 10**4)
            if gaussian
            else Fraction(1, tree.levels)
            for tree in trees
        )
        return trees, weight

    def _moved(
        self, trees: tuple[QuantileTree, ...], weight: tuple[Fraction, ...]
    ) -> tuple[Fraction, Fraction]:
        one = _SIZES if self.sized else Fraction(0)
        ranks = list(zip(trees, weight, strict=True))
        l1 = one + len(trees) + sum(v * tree.levels for tree, v in ranks) + len(self.levels)
        l2 = one**2 + len(trees) + sum(v**2 * tree.levels for tree, v in ranks) + len(self.levels)
        times = 2 if self.asked.replace else 1
        return times * Fraction(l1), times * Fraction(l2)

    def dimension_of(self, trees: Sequence[QuantileTree]) -> int:
        """How many numbers are released, with these trees."""
        of_group = int(self.sized) + sum(_TRIES + 1 + tree.nodes for tree in trees)
        return self.groups * (of_group + sum(self.levels))

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return self.dimension_of(self.trees)

    def statistic(self, exact: ExactDescription) -> tuple[Fraction, ...]:
        """The exact vector, block by block, and of each block group by group."""
        found: list[Fraction] = []
        if self.sized:
            found += [_SIZES * int(n) for n in exact.sizes]
        numbers = zip(exact.powers, exact.leaves, self.trees, self.weight, strict=True)
        for powers, leaves, tree, v in numbers:
            for group in powers:
                found += _bernstein(group)
            for level in tree.counts(leaves):
                found += [v * int(n) for n in level.ravel()]
        for table in exact.counts:
            found += [Fraction(int(n)) for n in table.ravel()]
        return tuple(found)

    def release(self, exact: ExactDescription) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(exact)), self.noise, self.loss)

    def parts(
        self, released: Floats
    ) -> tuple[Floats | None, list[Floats], list[list[Floats]], list[Floats]]:
        """Sizes, sums of powers, levels of trees and counts, from a released vector.

        Returns
        -------
        array of float, shape (groups,), or None
        list of array of float, shape (groups, 5)
            Of each number, n to Σ t⁴.
        list of list of array of float, shape (groups, branching^level)
        list of array of float, shape (groups, levels)
        """
        at = 0

        def taken(*shape: int) -> Floats:
            nonlocal at
            size = math.prod(shape)
            found = released[at : at + size].reshape(shape)
            at += size
            return found

        sizes = taken(self.groups) / float(_SIZES) if self.sized else None
        powers, levels = [], []
        for tree, v in zip(self.trees, self.weight, strict=True):
            powers.append(taken(self.groups, _TRIES + 1) @ OF_POWERS.T)
            each = [tree.branching ** (i + 1) for i in range(tree.levels)]
            levels.append([taken(self.groups, size) / float(v) for size in each])
        return sizes, powers, levels, [taken(self.groups, k) for k in self.levels]

    @property
    def deviation_of_sizes(self) -> float:
        """Of the noise of a group's number of rows."""
        return spread_of(self.noise).deviation / float(_SIZES)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        bounds, delta = Bounds(Fraction(-1), Fraction(1)), Fraction(1, 100)
        one = exact_description([0], 2, [(np.array([-9.0]), bounds, 4)], [(np.array([0]), 2)])
        other = exact_description([1], 2, [(np.array([9.0]), bounds, 4)], [(np.array([1]), 2)])
        none = exact_description([], 2, [(np.zeros(0), bounds, 4)], [(np.zeros(0, int), 2)])
        pure = cls(2, (4,), (2,), target(1, 0, "replace"))
        yield Subject("a description", seen_at_best(pure, one, other), one, other)
        pure = cls(2, (4,), (2,), target(1, 0, "add-remove"))
        yield Subject("a description of unknown n", seen_at_best(pure, none, other), none, other)
        wide = cls(2, (4,), (2,), target(1, delta, "replace"), gaussian=True)
        seen = seen_at_best(wide, one, other)
        yield Subject("a description, Gaussian", seen, one, other, delta=delta)


def power_sums(points: Integers, steps: int) -> tuple[Fraction, ...]:
    """n, Σ t, Σ t², Σ t³ and Σ t⁴ of t = points/steps, exactly.

    Examples
    --------
    >>> power_sums(np.array([1, -2]), 2)
    (Fraction(2, 1), Fraction(-1, 2), Fraction(5, 4), Fraction(-7, 8), Fraction(17, 16))
    """
    n = len(points)
    found = [Fraction(n), Fraction(exact_sum(points), steps)]
    # Squares of at most 2^40 in halves of 20 bits: each sum of products stays within 64 bits.
    square = points * points
    high, low = square >> 20, square & (2**20 - 1)
    found.append(Fraction(_whole(high, 20) + _whole(low, 0), steps**2))
    found.append(Fraction(_whole(high * points, 20) + _whole(low * points, 0), steps**3))
    fourth = _whole(high * high, 40) + 2 * _whole(high * low, 20) + _whole(low * low, 0)
    found.append(Fraction(fourth, steps**4))
    return tuple(found)


def exact_description(
    groups: Sequence[int] | Integers,
    size: int,
    numbers: Sequence[tuple[Floats, Bounds, int]],
    categories: Sequence[tuple[Integers, int]],
) -> ExactDescription:
    """Count and sum rows that a caller holds.

    Parameters
    ----------
    groups : sequence of int
        The group of each row, -1 for none.
    size : int
        How many groups there are.
    numbers : sequence of (values, bounds, bins)
        NaN is left out.
    categories : sequence of (places, levels)
        Places of levels; -1 is left out.
    """
    where = np.asarray(groups, dtype=np.int64)
    powers, leaves, counts = [], [], []
    for values, bounds, bins in numbers:
        known = ~np.isnan(values)
        points, steps = bounds.lattice(np.where(known, values, 0.0)), Bounds.steps
        inside = [points[known & (where == g)] for g in range(size)]
        powers.append([power_sums(part, steps) for part in inside])
        # By one more than the distance of the ends, so that the upper one is in the last bin.
        bin_of = [(part + steps) * bins // (2 * steps + 1) for part in inside]
        leaves.append(np.stack([np.bincount(b, minlength=bins) for b in bin_of]).astype(np.int64))
    for places, k in categories:
        inside = [places[(where == g) & (places >= 0)] for g in range(size)]
        counts.append(np.stack([np.bincount(p, minlength=k) for p in inside]).astype(np.int64))
    sizes = [int((where == g).sum()) for g in range(size)]
    return ExactDescription(sizes, powers, leaves, counts)


def _bernstein(powers: Sequence[Fraction]) -> list[Fraction]:
    """Σ B_j from n to Σ t⁴: B_j = C(4, j)·((1 + t)/2)^j·((1 - t)/2)^(4 - j), multiplied out."""
    return [
        sum((c * s for c, s in zip(row, powers, strict=True)), Fraction(0)) / 16
        for row in _MULTIPLIED
    ]


def _multiplied() -> tuple[tuple[int, ...], ...]:
    found = []
    for j in range(_TRIES + 1):
        row = [math.comb(_TRIES, j)]
        for sign in [1] * j + [-1] * (_TRIES - j):
            longer = [*row, 0]
            for i, c in enumerate(row):
                longer[i + 1] += sign * c
            row = longer
        found.append(tuple(row))
    return tuple(found)


_MULTIPLIED = _multiplied()


def _whole(values: Integers, shift: int) -> int:
    """Σ values·2^shift, in parts whose sums stay within 64 bits."""
    # 2^22 numbers of at most 2^40 add up to 2^62.
    size = 1 << 22
    parts = (int(values[i : i + size].sum()) for i in range(0, len(values), size))
    return sum(parts) << shift
