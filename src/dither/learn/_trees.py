"""Trees whose splits are chosen by the exponential mechanism, all rows in every tree.

Targets. Of each row leave integers in its *cell* of a table: of classes 1 for its class, so that a
row is 1 long; of numbers ``UNIT`` and its target, from -UNIT to UNIT, so that it is at most √2·UNIT
long.

Statistics. (0) The table of one cell: the numbers of rows by class, or of rows and the sum of their
targets. They say how many trees there are and how deep they are, down to one tree of one question
(`dither.learn._ways`). (1) Of each list a table by its categories, which are put in order by their
targets. (2) Of each node of each level of each tree a split: a column and where its codes are cut.
Candidates are cuts of some columns that are drawn by chance, without regard to rows. (3) Of each
tree the table by its leaves. The value of a leaf is drawn to that of the nodes above, whose sums
are those of their leaves, as far as noise is large.

Where splits are to be drawn by chance, all is spent on the leaves: (3) alone.

Choices. A row has scores, integers that follow from its target and from (0) alone, and the utility
of a split is that of the scores on its left and that of those on its right. Where a row is added to
the node, it is on one side of each split: if that side's utility then rises by something in an
interval R long, the same for all splits, so do the utilities of all of them. Where it is removed,
the same with the sign turned.

- With few rows beside the noise: the largest of the sums of scores. Of classes a row has its
  ``WEIGHT``, less for a class with more rows, in the place of its class, and 0 elsewhere: the
  weight of the rows that a split puts right, each side taken for one class. It rises by something
  from 0 to WEIGHT, which is R. Of numbers it has s and -s, s being the target less the mean by (0),
  a whole number: what rises does so from -|s| to |s|, and R = 2·(UNIT + |mean|).
- With many: S²/n, of the n rows and the sums S of their targets v, which are 1 in the place of the
  class, or a number. It is Σ|v|² less the squares about the mean S/n, so that with one more row v
  it rises by |v|² - n/(n + 1)·|v - S/n|². |v|² is the same for all splits, and |v - S/n|² at most 2
  for classes and (2·UNIT)² for numbers: R. Multiplied by K, which is ``WEIGHT`` for classes and 1
  for numbers, and rounded down, it rises by less than 1 more or less than that: whole numbers that
  lie less than K·R + 2 apart, K·R + 1 at most.

Which node a row is in depends on its own values, and on what left before. So it is in one node of a
level; `dither.learn._ways` has what follows for the levels of all trees.

Tables. A row has one cell in each: added or removed it moves a table by 1 (classes), or by at most
2·UNIT in absolute value and 2·UNIT² squared (numbers). Replaced, it leaves one cell and enters
another, or changes within one: in absolute value at most twice that, and squared at most twice that
too: where cells differ the squares add up, and where they do not, |t - t'|² is 2 for classes and at
most 4·UNIT² for numbers. Of a unit with up to m rows all is m times as much, and m² times where it
is squared (`Moved.of_unit`); and 2·m rows enter or leave nodes where rows are replaced, m if not.

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn._ways` proves; of splits by
chance as `dither.learn._noise` does.

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
from dither.learn._noise import Asked, Moved, Noise, RunNoise, left
from dither.learn._tree import Ends, Grown, Tree, cuts_of, drawn_tree, halved
from dither.learn._ways import FOR_SPLITS, ForestWay, ForestWays
from dither.mechanisms import Exponential
from dither.privacy import Loss, Neighbours

__all__ = ["UNIT", "WEIGHT", "Trees"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNIT = 1 << 8
WEIGHT = 1 << 8
_FIRM = 2.0
_MANY_OF_CLASSES, _MANY_OF_NUMBERS = 60, 120
"""Rows times the epsilon of a level, from which on they are many."""
_SHARE = 3
"""One column in so many is tried for a split, where that is more than asked for."""


@dataclass(frozen=True)
class _Scores:
    """What splits are chosen by.

    Parameters
    ----------
    rows : array of int, shape (n, k)
        The scores.
    span : int
        R.
    utility : callable
        Of sums of scores on one side, shape (k, splits), for each split.
    """

    rows: Integers
    span: int
    utility: Callable[[Integers], Integers]


def _largest(sums: Integers) -> Integers:
    return np.asarray(sums.max(axis=0))


def _squares_of_classes(sums: Integers) -> Integers:
    # Whole numbers of any size, as squares outgrow 64 bits.
    exact = sums.astype(object)
    return np.asarray(WEIGHT * (exact**2).sum(axis=0) // np.maximum(sums.sum(axis=0), 1))


def _squares_of_numbers(sums: Integers) -> Integers:
    exact = sums.astype(object)
    return np.asarray(exact[1] ** 2 // np.maximum(sums[0], 1))


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
    asked : Asked
    drawn : bool
        Whether splits are drawn by chance.
    of_unit : int
        m: so many rows may be one unit's, at most.

    Attributes
    ----------
    ways : ForestWays
    noisy : RunNoise
        Of the leaves, where splits are drawn by chance.
    """

    columns: tuple[FeatureColumn, ...]
    classes: int
    trees: int
    depth: int
    tries: int
    asked: Asked
    drawn: bool = False
    of_unit: int = 1
    ways: ForestWays = field(init=False)
    noisy: RunNoise = field(init=False)

    def __post_init__(self) -> None:
        listed = sum(column.categories is not None for column in self.columns)
        units = self.of_unit * (2 if self.asked.replace else 1)
        ways = ForestWays(self.moved(1), units, listed, self.trees, self.depth, self.asked)
        object.__setattr__(self, "ways", ways)
        if self.drawn:
            object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved(self.trees))))

    @property
    def loss(self) -> Loss:
        """Of all that leaves."""
        return self.noisy.loss if self.drawn else self.ways.loss

    @property
    def outputs(self) -> int:
        """How many integers a row has in a table."""
        return self.classes or 2

    def moved(self, tables: int) -> Moved:
        """How far a unit moves so many tables; see the module."""
        one = Moved(1, 1, 1) if self.classes else Moved(2 * UNIT, 2 * UNIT**2, 2)
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
        return Exponential(level / (self.ways.units * span)).draw(utilities.tolist())

    # --- how trees grow ---------------------------------------------------------------------------

    def run(
        self,
        places: Sequence[Integers],
        targets: Integers,
        seen: Callable[[int], None] | None = None,
        stands: Integers | None = None,
    ) -> Grown:
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
        way, scores = self._opened(targets)
        orders = self._orders(places, targets, None if self.drawn else way.lists)
        codes = Grown(self.columns, tuple(orders), (), (), ()).codes(places)
        trees, values, sizes = [], [], []
        for t in range(way.trees):
            if self.drawn:
                tree = drawn_tree(orders, self.depth)
            else:
                tree = self._chosen_tree(codes, scores, way, orders)
            found, held = self._values(tree, tree.places(codes), targets, way.leaves)
            trees.append(tree)
            values.append(found)
            sizes.append(held)
            if seen is not None:
                seen((t + 1) * self.trees // way.trees)
        return Grown(self.columns, tuple(orders), tuple(trees), tuple(values), tuple(sizes))

    def _opened(self, targets: Integers) -> tuple[ForestWay, _Scores]:
        """The way, and what splits are chosen by."""
        if self.drawn:
            noise, none = self.noisy.noise, Fraction(0)
            way = ForestWay(self.trees, self.depth, none, noise, noise)
            return way, _Scores(targets, 1, _largest)
        whole = self.table(self.ways.rows, np.zeros(len(targets), np.int64), 1, targets)[0]
        off, rows = self.deviation(self.ways.rows), float(self._rows(whole))
        way = self.ways.way(rows)
        clear = rows * float(way.level) / self.ways.units
        # Of numbers the first of the targets is UNIT for each row.
        count = targets[:, 0] // UNIT
        if self.classes and clear > _MANY_OF_CLASSES:
            return way, _Scores(targets, 2 * WEIGHT + 1, _squares_of_classes)
        if self.classes:
            # Where noise is large, as if classes had as many rows.
            held = np.maximum(whole, 0.0) + 2 * off
            weights = np.rint(WEIGHT * held.min() / held).astype(np.int64)
            return way, _Scores(targets * weights, WEIGHT, _largest)
        if clear > _MANY_OF_NUMBERS:
            pair = np.column_stack([count, targets[:, 1]])
            return way, _Scores(pair, 4 * UNIT**2 + 1, _squares_of_numbers)
        mean = round(UNIT * min(max(whole[1] / max(rows, off, 1.0), -1.0), 1.0))
        score = targets[:, 1] - mean * count
        pair = np.column_stack([score, -score])
        return way, _Scores(pair, 2 * (UNIT + abs(mean)), _largest)

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

    def _chosen_tree(
        self, codes: Integers, scores: _Scores, way: ForestWay, orders: Sequence[Integers]
    ) -> Tree:
        """A tree whose questions are chosen by noisy utilities."""
        tree, most = Tree(), np.array([int(order.max()) for order in orders])
        ends: dict[int, Ends] = {0: (np.zeros_like(most), most)}
        rows = {0: np.arange(len(codes))}
        tries = max(self.tries, math.ceil(len(most) / _SHARE))
        if way.trees * way.depth == 1:
            tries = len(most)
        for _ in range(way.depth):
            below: dict[int, Ends] = {}
            for node, (low, high) in ends.items():
                free = np.flatnonzero(high > low)
                if not len(free):
                    continue
                tried = free[randomness.permutation(len(free))[:tries]].tolist()
                mine = rows.pop(node)
                column, code = self._split(codes, scores, mine, tried, ends[node], way.level)
                new = halved(tree, node, ends[node], column, code)
                right = codes[mine, column] > code
                rows |= dict(zip(new, (mine[~right], mine[right]), strict=True))
                below |= new
            ends = below
        return tree

    def _split(
        self,
        codes: Integers,
        scores: _Scores,
        rows: Integers,
        tried: Sequence[int],
        ends: Ends,
        level: Fraction,
    ) -> tuple[int, int]:
        """A column and a code of a node, one of the candidates."""
        held = scores.rows[rows].T.astype(np.float64)
        asked: list[tuple[int, int]] = []
        utilities = []
        for column in tried:
            low, high = int(ends[0][column]), int(ends[1][column])
            cuts = cuts_of(low, high)
            code, size = codes[rows, column], high + 1
            sums = np.array([np.bincount(code, part, size) for part in held]).astype(np.int64)
            rising = np.cumsum(sums, axis=1)
            lefts, rights = rising[:, cuts], rising[:, -1:] - rising[:, cuts]
            utilities.append(scores.utility(lefts) + scores.utility(rights))
            asked += [(column, int(cut)) for cut in cuts]
        return asked[self.choose(level, scores.span, np.concatenate(utilities))]

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
        firm = _FIRM * self.deviation(noise) * np.sqrt(leaves)
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
            asked = Asked(Fraction(1), delta, Neighbours.ADD_REMOVE)
            return cls((column,), 2, 2, 1, 1, asked, of_unit=of_unit)

        for of_unit, name in ((1, "tables of a forest"), (2, "tables of a forest, units of 2")):
            forest = made(delta, of_unit)
            way = forest.ways.concentrated(2, 1)

            def tables(
                rows: int, size: int, forest: Trees = forest, way: ForestWay = way
            ) -> Floats:
                # As many cells as outputs; each number is seen as much as neighbours move it.
                places, found = np.repeat(np.arange(size), rows), np.zeros(size)
                targets = np.tile(np.array([[1, 0]]), (len(places), 1))
                for law in (way.lists, way.leaves, way.leaves):
                    sums = forest.table(law, places, size, targets)[:, 0]
                    found = found + sums / law.variance
                return found

            # What tables cost, without the splits.
            epsilon = epsilon_of_rho(forest.ways.rho * (1 - FOR_SPLITS), delta)
            yield Subject(name, tables, 1, 1 + of_unit, epsilon, delta)

        pure = made(Fraction(0))

        def splits(rows: int, size: int) -> Floats:
            # A row that one of many splits puts right, and the others do not.
            utilities = np.array([WEIGHT * rows, *[0] * 15])
            drawn = [pure.choose(Fraction(1), WEIGHT, utilities) for _ in range(size)]
            return np.array([-float(index == 0) for index in drawn])

        yield Subject("splits of a forest", splits, 1, 2)
