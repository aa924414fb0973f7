"""What a forest may spend, and the ways to grow it: how many trees, how deep, with which noise.

Three things leave of the rows, each at its own price, for the unit and the neighbours of the claim.
A row moves one table by at most ``table``, a `TableSensitivity`; g rows are added or removed
between neighbours: twice as many as a unit has, where rows are replaced.

- Tables: sums of the targets in cells, with noise of one law. T of them move by T times ``table``:
  one for each list, one for the leaves of each tree, and where nodes have centres one for the nodes
  of each level of each tree but the first.
- Choices: one split for each node of a level, by the exponential mechanism. Its utilities of a node
  change by numbers that differ by at most R for each row that enters or leaves the node. With the
  rate e/(g·R) a choice whose node g' of the g rows enter or leave has a loss of range e·g'/g: it is
  (e·g'/g)-DP, and half of the square of half of that in zCDP (`Exponential`). The g' of the nodes
  of a level add up to g at most, so that a level costs e and e²/8, whatever the number of nodes.
- The number of rows, by class: a table with noise of its own, first.

*Purely.* What is left of epsilon is shared out among the tables and the levels, and adds up: with
discrete Laplace noise all is epsilon-DP.

*By zCDP.* rho is the largest that (epsilon, delta) holds, less e²/2 of the number of rows, which is
e-DP. It is shared out in the same way, and adds up: with discrete Gaussian noise all is rho-zCDP.

Which of the two is taken, how many trees and how deep they are, follows from the noisy number of
rows. As either way keeps to (epsilon, delta), so does the whole, which is a sequence of mechanisms
of which each is chosen by what left before: given the number of rows, the rest is of that way. For
rho, and for the divergence of an order, the larger of the two is stated: purely an order's is at
most epsilon, and the order times what the parts' rho add up to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from dither.accounting import rho_of_epsilon
from dither.learn._noise import Noise, PrivacyParameters, TableSensitivity
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.mechanisms._composable import approximate_profile, pure_class
from dither.privacy import Loss

__all__ = ["FOR_SPLITS", "ForestPlan", "ForestPlanner"]

_FOR_ROWS, _FOR_LISTS, FOR_SPLITS = Fraction(3, 100), Fraction(6, 100), Fraction(54, 100)
"""Of all: the number of rows; of the rest: the order of lists, and splits. Leaves have the rest."""
_FOR_CENTRES = Fraction(10, 100)
"""What centres have of that for splits, where nodes have some."""
_ONE_SPLIT = 150
"""So many rows times epsilon are too few for more than one split."""
_CLEAR, _CLEAR_SQUARED = 40, 800
"""Rows times epsilon, or squared times 8·rho, that one split of one tree needs."""
_LEVELS = 3
"""Of what trees could have, before there is another tree."""


@dataclass(frozen=True)
class ForestPlan:
    """One way to grow a forest.

    Parameters
    ----------
    trees, depth : int
    level : Fraction
        e of the choices of one level of one tree.
    leaves, lists, centres : DiscreteGaussian or DiscreteLaplace
        The noise of tables of leaves, of those that order lists, and of those of nodes.
    """

    trees: int
    depth: int
    level: Fraction
    leaves: Noise
    lists: Noise
    centres: Noise


@dataclass(frozen=True)
class ForestPlanner:
    """What may be spent, fixed before any row is read.

    Parameters
    ----------
    table : TableSensitivity
        By how much a unit moves one table.
    units : int
        g: how many rows are added or removed between neighbours.
    listed : int
        How many columns are lists, whose categories are put in order.
    trees, depth : int
        At most.
    asked : PrivacyParameters
    centred : bool
        Whether nodes have centres.

    Attributes
    ----------
    rows : DiscreteLaplace
        The noise of the number of rows.
    rho : Fraction
        What is left of zCDP; 0 where that is not worth having.
    loss : Loss
        Of all that leaves.
    """

    table: TableSensitivity
    units: int
    listed: int
    trees: int
    depth: int
    asked: PrivacyParameters
    centred: bool = False
    rows: DiscreteLaplace = field(init=False)
    rho: Fraction = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        epsilon, delta = self.asked.epsilon, self.asked.delta
        first = _FOR_ROWS * epsilon
        whole = rho_of_epsilon(epsilon, delta) if delta else Fraction(0)
        # What is e-DP is e²/2-zCDP.
        rho = whole - first**2 / 2
        found = rho if 2 * rho > whole else Fraction(0)
        object.__setattr__(self, "rows", DiscreteLaplace.for_loss(first, l1=self.table.l1))
        object.__setattr__(self, "rho", found)
        object.__setattr__(self, "loss", self._loss(whole if found else None))

    def _loss(self, rho: Fraction | None) -> Loss:
        epsilon, delta, neighbours = self.asked.epsilon, self.asked.delta, self.asked.neighbours
        if rho is None:
            return pure_class(epsilon, neighbours)
        lists, splits, leaves, centres = self._shares(self.depth)
        rest = epsilon - _FOR_ROWS * epsilon
        # Of choices e²/8 is least where they are most, and of tables e²/2 holds in any case.
        tables = (lists * rest) ** 2 + (leaves * rest) ** 2 + (_FOR_ROWS * epsilon) ** 2
        # With one level the share of centres is one of the choices.
        most = max(
            (splits * rest) ** 2 / 8 + (centres * rest) ** 2 / 2, (FOR_SPLITS * rest) ** 2 / 8
        )
        purely = tables / 2 + most

        def divergence(order: Fraction) -> Fraction:
            return max(min(order * purely, epsilon), order * rho)

        return approximate_profile(epsilon, delta, divergence, max(rho, purely), neighbours)

    def _shares(self, depth: int) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Of lists, splits, leaves and centres: of what is left after the number of rows."""
        lists = _FOR_LISTS if self.listed else Fraction(0)
        centres = _FOR_CENTRES if self.centred and depth > 1 else Fraction(0)
        return lists, FOR_SPLITS - centres, 1 - lists - FOR_SPLITS, centres

    def plan(self, rows: float) -> ForestPlan:
        """The way to take with about so many rows, by what left of them with noise."""
        # A unit of m rows is heard like one row among so many fewer.
        clear = max(rows, 1.0) / self.units
        pure = clear * float(self.asked.epsilon)
        squared = 8 * clear**2 * float(self.rho) / _CLEAR_SQUARED
        if pure < _ONE_SPLIT:
            return self.purely(1, 1)
        if squared > pure / _CLEAR:
            return self.concentrated(*self._size(squared))
        return self.purely(*self._size(pure / _CLEAR))

    def _size(self, splits: float) -> tuple[int, int]:
        """How many trees and levels, where so many levels of one tree may be spent on."""
        trees = min(max(int(splits / _LEVELS), 1), self.trees)
        return trees, min(max(int(splits / trees), 1), self.depth)

    def purely(self, trees: int, depth: int) -> ForestPlan:
        """By epsilon alone: e of the levels and of the tables add up to what is left."""
        splits = self._shares(depth)[1]
        rest = self.asked.epsilon * (1 - _FOR_ROWS)

        def noise(share: Fraction, tables: int) -> Noise:
            return DiscreteLaplace.for_loss(rest * share, l1=tables * self.table.l1)

        return self._way(trees, depth, rest * splits / (trees * depth), noise)

    def concentrated(self, trees: int, depth: int) -> ForestPlan:
        """By zCDP: e²/8 of the levels and rho of the tables add up to what is left."""
        splits = self._shares(depth)[1]

        def noise(share: Fraction, tables: int) -> Noise:
            return DiscreteGaussian(tables * self.table.l2_squared / (2 * self.rho * share))

        return self._way(trees, depth, _root_below(8 * self.rho * splits / (trees * depth)), noise)

    def _way(
        self, trees: int, depth: int, level: Fraction, noise: Callable[[Fraction, int], Noise]
    ) -> ForestPlan:
        """With noise of a share for so many tables; what has no table has that of leaves."""
        lists, _, leaves, centres = self._shares(depth)
        common = noise(leaves, trees)
        order = noise(lists, self.listed) if lists else common
        below = noise(centres, trees * (depth - 1)) if centres else common
        return ForestPlan(trees, depth, level, common, order, below)


def _root_below(square: Fraction) -> Fraction:
    """A rational whose square is at most this one, above 0, to 40 bits or so."""
    bits = max(0, 40 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    return Fraction(math.isqrt(square.numerator * 4**bits // square.denominator), 2**bits)
