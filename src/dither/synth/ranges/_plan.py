"""How all ranges of one column are counted: a tree over its bins, and the noise of each level.

Fixed by public facts alone. Every level of the tree is a table of sums of the leaves, so one unit
moves it by no more than it moves these, and each level has noise of its own: the losses compose
(`dither.synth.marginals._divided`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.mechanisms import DiscreteLaplace
from dither.mechanisms._combination import continuous_deviation
from dither.privacy import Loss, Neighbours
from dither.synth.hierarchy._consistent import half_widths
from dither.synth.marginals._divided import Noise, noises_of
from dither.synth.ranges._tree import Family, RangeTree

__all__ = ["RangePlan", "planned"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LEAST = 1e-12
"""A level whose noise is hardly ever drawn has a variance near 0, whose inverse is a weight. Any
weights leave estimates unbiased, and `RangePlan.half_width` counts each variance that it finds."""


@dataclass(frozen=True)
class RangePlan:
    """A tree, the noise of each of its levels, and what all of them lose."""

    tree: RangeTree
    noises: tuple[Noise, ...]
    loss: Loss

    @cached_property
    def variances(self) -> list[float]:
        """By level, exact; noise that is hardly ever drawn counts for a little."""
        return [max(noise.variance, _LEAST) for noise in self.noises]

    def measure(self, leaves: Integers) -> list[Integers]:
        """Every level with its noise: the only step that sees exact counts."""
        exact = self.tree.counts(leaves)
        return [
            level + noise.draw(level.shape) for level, noise in zip(exact, self.noises, strict=True)
        ]

    def half_width(self, first: npt.ArrayLike, end: npt.ArrayLike, confidence: float) -> Floats:
        """Of the interval of the leaves ``first`` .. ``end`` - 1."""
        spread = [continuous_deviation(noise) ** 2 for noise in self.noises]
        # Weights follow from the exact variances. The continuous laws that stand for the noises are
        # wider, by the largest of these ratios at most.
        wider = max(s / v for s, v in zip(spread, self.variances, strict=True))
        squares = wider * self.tree.variance(first, end, self.variances)
        cubes = None
        if isinstance(self.noises[0], DiscreteLaplace):
            cubes = math.sqrt(wider) * self.tree.largest(self.variances) * squares
        return half_widths(squares, cubes, confidence)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        made = planned(5, Fraction(1), Fraction(0), (1, 1), Neighbours.ADD_REMOVE)

        def run(leaves: Integers) -> list[int]:
            return [int(n) for level in made.measure(leaves) for n in level]

        here, there = np.zeros((2, 5), dtype=np.int64)
        there[2] = 1
        yield Subject("ranges of a column", run, here, there)


def planned(
    bins: int,
    epsilon: Fraction,
    delta: Fraction,
    bounds: tuple[int, int],
    neighbours: Neighbours,
) -> RangePlan:
    """The tree and noise of least mean variance over all ranges.

    Parameters
    ----------
    bins : int
    epsilon, delta : Fraction
        What all of it may lose; at delta 0 the noise is Laplace.
    bounds : (l1, l2_squared)
        By how much one unit moves a table of the leaves.
    neighbours : Neighbours
    """
    found: RangePlan | None = None
    families: tuple[Family, ...] = ("laplace",) if delta == 0 else ("laplace", "gaussian")
    for family in families:
        tree = RangeTree.choose(bins, family)
        noises, loss = noises_of(tree.shares, family, epsilon, delta, bounds, neighbours)
        made = RangePlan(tree, noises, loss)
        if found is None or tree.mean_variance(made.variances) < found.tree.mean_variance(
            found.variances
        ):
            found = made
    assert found is not None
    return found
