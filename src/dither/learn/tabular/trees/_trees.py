"""Trees whose splits are chosen by the exponential mechanism, all rows in every tree.

Targets. Of each row leave integers in its *cell* of a table: of classes 1 for its class, so that a
row is 1 long; of numbers ``UNIT`` and its target, from -UNIT to UNIT, so that it is at most √2·UNIT
long.

Statistics. (0) The table of one cell: the numbers of rows by class, or of rows and the sum of their
targets. They say how many trees there are and how deep they are, down to one tree of one question
(`dither.learn.tabular.trees._plans`). (1) Of each list a table by its categories, which are put in
order by their targets. (2) Of each tree, level by level: of numbers a table by the nodes of the
level, below the first, for their centres; and of each node a split, a column and where its codes
are cut (`dither.learn.tabular.trees._growth`, `dither.learn.tabular.trees._scores`). (3) Of each
tree the table by its leaves. The value of a leaf is drawn to that of the nodes above, whose sums
are those of their leaves, as far as noise is large.

Where splits are to be drawn by chance, all is spent on the leaves: (3) alone.

Choices. Each is made by the exponential mechanism, whose utilities change by numbers that differ by
at most R for each row that enters or leaves the node, as `dither.learn.tabular.trees._scores`
proves. Which node a row is in depends on its own values, and on what left before. So it is in one
node of a level; `dither.learn.tabular.trees._plans` has what follows for the levels of all trees.

Tables. A row has one cell in each: added or removed it moves a table by 1 (classes), or by at most
2·UNIT in absolute value and 2·UNIT² squared (numbers). Replaced, it leaves one cell and enters
another, or changes within one: in absolute value at most twice that, and squared at most twice that
too: where cells differ the squares add up, and where they do not, |t - t'|² is 2 for classes and at
most 4·UNIT² for numbers. Of a unit with up to m rows all is m times as much, and m² times where it
is squared (`TableSensitivity.of_unit`); and 2·m rows enter or leave nodes where rows are replaced,
m if not.

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn.tabular.trees._plans` proves; of
splits by chance as `dither.learn._noise` does.

All rows or parts. M trees may also share out the rows, by a public hash, so that each row is in one
tree and noise does not grow with M. With Gaussian noise of deviation s a node with n rows in one
tree then has n/M of them at noise s, instead of n at s·√M: the noise of its shares is larger by √M
in each tree, and the same in the mean of all. As splits are better where one tree's noise is less,
every row is in every tree.

Source. Trees by the exponential mechanism: Friedman and Schuster, "Data mining with differential
privacy", KDD 2010. Random trees: Fletcher and Islam, "Decision tree classification with
differential privacy", ACM Computing Surveys 2019; splits tried at random: Geurts, Ernst and
Wehenkel, "Extremely randomized trees", 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither import noise as randomness
from dither._subjects import Subject
from dither.accounting import epsilon_of_rho
from dither.learn._columns import FeatureColumn
from dither.learn._noise import Noise, PrivacyParameters, RunNoise, TableSensitivity, left
from dither.learn.tabular.trees._growth import Growth
from dither.learn.tabular.trees._plans import FOR_SPLITS, ForestPlan, ForestPlanner
from dither.learn.tabular.trees._scores import FIRM, UNIT, WEIGHT, Scores, of_classes, of_numbers
from dither.learn.tabular.trees._tree import ReleasedForest, Tree, drawn_tree
from dither.mechanisms import Exponential
from dither.privacy import Loss, Neighbours

__all__ = ["UNIT", "WEIGHT", "Trees"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trees:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    classes : int
        How many, or 0 where targets are numbers.
    trees, depth : int
        At most.
    tries : int
        How many columns are tried for a split, at least.
    asked : PrivacyParameters
    drawn : bool
        Whether splits are drawn by chance.
    of_unit : int
        m: so many rows may be one unit's, at most.

    Attributes
    ----------
    planner : ForestPlanner
    noisy : RunNoise
        Of the leaves, where splits are drawn by chance.
    """

    columns: tuple[FeatureColumn, ...]
    classes: int
    trees: int
    depth: int
    tries: int
    asked: PrivacyParameters
    drawn: bool = False
    of_unit: int = 1
    planner: ForestPlanner = field(init=False)
    noisy: RunNoise = field(init=False)

    def __post_init__(self) -> None:
        listed = sum(column.categories is not None for column in self.columns)
        units = self.of_unit * (2 if self.asked.replace else 1)
        planner = ForestPlanner(
            self.moved(1), units, listed, self.trees, self.depth, self.asked, not self.classes
        )
        object.__setattr__(self, "planner", planner)
        if self.drawn:
            object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved(self.trees))))

    @property
    def loss(self) -> Loss:
        """Of all that leaves."""
        return self.noisy.loss if self.drawn else self.planner.loss

    @property
    def outputs(self) -> int:
        """How many integers a row has in a table."""
        return self.classes or 2

    def moved(self, tables: int) -> TableSensitivity:
        """How far a unit moves so many tables; see the module."""
        one = (
            TableSensitivity(1, 1, 1)
            if self.classes
            else TableSensitivity(2 * UNIT, 2 * UNIT**2, 2)
        )
        return (one * tables * (2 if self.asked.replace else 1)).of_unit(self.of_unit)

    # --- what leaves ------------------------------------------------------------------------------

    def table(self, noise: Noise, places: Integers, cells: int, targets: Integers) -> Floats:
        """The sums of targets over cells, with their noise, shape (cells, m), in rows."""
        parts = [np.bincount(places, part, cells) for part in targets.T.astype(np.float64)]
        found = self._leave(noise, np.stack(parts, axis=1).astype(np.int64))
        return found if self.classes else found / UNIT

    def _leave(self, noise: Noise, exact: Integers) -> Floats:
        return left(noise, exact)

    def choose(self, level: Fraction, span: int, utilities: Integers) -> int:
        """One candidate of a node, at the price of ``level`` for all nodes of the level.

        Parameters
        ----------
        level : Fraction
            e.
        span : int
            R.
        utilities : array of int
        """
        return Exponential(level / (self.planner.units * span)).draw(utilities.tolist())

    # --- how trees grow ---------------------------------------------------------------------------

    def run(
        self,
        places: Sequence[Integers],
        targets: Integers,
        seen: Callable[[int], None] | None = None,
        stands: Integers | None = None,
    ) -> ReleasedForest:
        """The one step that touches rows.

        Parameters
        ----------
        places : sequence of array
            The cells of all rows, column by column.
        targets : array of int, shape (n, m)
            0 throughout for a row that does not count.
        seen : callable, optional
            Told how far it is, of the largest number of trees.
        stands : array of int, shape (n,), optional
            How many rows each stands for; 1 where left out.
        """
        if stands is not None:
            targets = targets * stands[:, None]
        opened = None if self.drawn else self._opened(targets)
        orders = self._orders(places, targets, opened and opened[0].lists)
        codes = ReleasedForest(self.columns, tuple(orders), (), (), ()).codes(places)
        if opened is None:
            growth, count, leaves = None, self.trees, self.noisy.noise
        else:
            plan, scores = opened
            most = np.array([int(order.max()) for order in orders])
            growth = Growth(self, plan, codes, targets, scores, most, self.tries)
            count, leaves = plan.trees, plan.leaves
        trees, values, sizes = [], [], []
        for t in range(count):
            tree = growth.tree() if growth else drawn_tree(orders, self.depth)
            found, held = self._values(tree, tree.places(codes), targets, leaves)
            trees.append(tree)
            values.append(found)
            sizes.append(held)
            if seen is not None:
                seen((t + 1) * self.trees // count)
        return ReleasedForest(
            self.columns, tuple(orders), tuple(trees), tuple(values), tuple(sizes)
        )

    def _opened(self, targets: Integers) -> tuple[ForestPlan, Scores]:
        """The way, and what splits are chosen by."""
        whole = self.table(self.planner.rows, np.zeros(len(targets), np.int64), 1, targets)[0]
        off, rows = self.deviation(self.planner.rows), float(self._rows(whole))
        plan = self.planner.plan(rows)
        if not self.classes:
            return plan, of_numbers(targets, whole, off)
        clear = rows * float(plan.level) / self.planner.units
        return plan, of_classes(targets, whole, off, clear)

    def _orders(
        self, places: Sequence[Integers], targets: Integers, noise: Noise | None
    ) -> list[Integers]:
        """The code of each cell: numbers as they rise, lists by their targets or in any order."""
        found = []
        for column, cells in zip(self.columns, places, strict=True):
            if column.categories is None:
                found.append(np.arange(column.cells))
            elif noise is None:
                found.append(randomness.permutation(column.cells))
            else:
                sums = self.table(noise, cells, column.cells, targets)
                found.append(self._order(sums, self.deviation(noise)))
        return found

    def _order(self, sums: Floats, off: float) -> Integers:
        rows = np.maximum(self._rows(sums), 0.0)
        held = sums if self.classes else sums[:, 1:]
        mean = held.sum(axis=0) / max(float(rows.sum()), off)
        # What is seen of few rows is drawn to the mean.
        above = (held - rows[:, None] * mean) / (rows + off)[:, None]
        which = int((rows @ above**2).argmax())
        return np.argsort(np.argsort(above[:, which], kind="stable"), kind="stable")

    # --- what leaves say --------------------------------------------------------------------------

    def deviation(self, noise: Noise) -> float:
        """Of one sum of a table, in rows."""
        return math.sqrt(noise.variance) / (1 if self.classes else UNIT)

    def _rows(self, sums: Floats) -> Floats:
        """How many rows sums of targets are of."""
        return np.asarray(sums.sum(axis=-1) if self.classes else sums[..., 0])

    def _values(
        self, tree: Tree, at: Integers, targets: Integers, noise: Noise
    ) -> tuple[Floats, Floats]:
        """Of each node its shares of classes, or its mean target, and its rows.

        Each is drawn to the node above. Means of trees are as good as sums where noise is large, so
        that shares may lie beyond their ends until the mean is taken.
        """
        size = len(tree.left)
        sums, leaves = tree.summed(self.table(noise, at, size, targets))
        rows = np.maximum(self._rows(sums), 0.0)
        held = sums if self.classes else sums[:, 1:]
        firm = FIRM * self.deviation(noise) * np.sqrt(leaves)
        found = np.full((size, held.shape[1]), 1 / self.classes if self.classes else 0.0)
        found[0] += (held[0] - rows[0] * found[0]) / (rows[0] + firm[0])
        for node in range(size):
            if tree.column[node] >= 0:
                for below in (tree.left[node], tree.left[node] + 1):
                    more = (held[below] - rows[below] * found[node]) / (rows[below] + firm[below])
                    found[below] = found[node] + more
        return found, rows

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        column, delta = FeatureColumn("x", categories=("a",)), Fraction(1, 100)

        def made(delta: Fraction, of_unit: int = 1) -> Trees:
            asked = PrivacyParameters(Fraction(1), delta, Neighbours.ADD_REMOVE)
            return cls((column,), 2, 2, 1, 1, asked, of_unit=of_unit)

        for of_unit, name in ((1, "tables of a forest"), (2, "tables of a forest, units of 2")):
            forest = made(delta, of_unit)
            plan = forest.planner.concentrated(2, 1)

            def tables(
                rows: int, size: int, forest: Trees = forest, plan: ForestPlan = plan
            ) -> Floats:
                # As many cells as outputs; each number is seen as much as neighbours move it.
                places, found = np.repeat(np.arange(size), rows), np.zeros(size)
                targets = np.tile(np.array([[1, 0]]), (len(places), 1))
                for law in (plan.lists, plan.leaves, plan.leaves):
                    sums = forest.table(law, places, size, targets)[:, 0]
                    found = found + sums / law.variance
                return found

            # What tables cost, without the splits.
            epsilon = epsilon_of_rho(forest.planner.rho * (1 - FOR_SPLITS), delta)
            yield Subject(name, tables, 1, 1 + of_unit, epsilon, delta)

        pure = made(Fraction(0))

        def splits(rows: int, size: int) -> Floats:
            # A row that one of many splits puts right, and the others do not.
            utilities = np.array([WEIGHT * rows, *[0] * 15])
            drawn = [pure.choose(Fraction(1), WEIGHT, utilities) for _ in range(size)]
            return np.array([-float(index == 0) for index in drawn])

        yield Subject("splits of a forest", splits, 1, 2)
