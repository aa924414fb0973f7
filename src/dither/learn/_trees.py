"""Trees whose splits and leaves are chosen by noisy sums, all rows in every tree.

Targets. Of each row leave integers in its *cell* of some table: of classes 1 for its class, so that
a row is 1 long; of numbers ``UNIT`` and its target, from -UNIT to UNIT, so that it is at most
√2·UNIT long. B² is the square of that. Each table is multiplied by a whole number w of its own.

Statistics. (0) The number of rows. Where it is large beside the noise of what follows:

(a) Of each of d columns the numbers of rows in its cells, which are then joined to ranges that hold
a fair share each. (b) Of each column the targets in its joined cells: they order the cells of a
list, and choose the first split of every tree. (c) Of each of M trees, on each later level, the
targets in ``GROUPS`` ranges of f columns, drawn by chance, in each node. The split with the largest
gain is taken, unless all that is left is noise. (d) Of each tree the targets in its leaves.

Where it is not, splits are drawn by chance, of columns, and of equal parts of their bounds, and all
that is left is spent on the targets in the leaves, with a larger w: (d) alone. The value of a leaf
is drawn to that of the nodes above, whose sums are those of their leaves, as far as noise is large.

Which columns and ranges are tried is drawn without regard to rows. Where a row lies in a table
depends on its own values, and on noisy numbers that left before.

Sensitivity, squared. A row has one cell in each table: added or removed it moves a table by w²
(counts) or w²·B². Replaced, it leaves one cell and enters another, or changes within one: 2·w², and
2·w²·B² where cells differ, or |t - t'|²·w² where they do not, which is 2·w² for classes and
4·UNIT²·w² = 2·B²·w² for numbers. So twice as much in every case. There are d tables in (a), d in
(b), M·(D - 1)·f in (c) and M in (d), D being the depth. In absolute value a table moves by w, or by
w times 1 for classes and 2·UNIT for numbers; twice that where a row is replaced. Which of the two
ways is taken is told by (0); the w of the second way is such that it moves no more than the first
in the norm that the noise is for, and the larger of the two is what is charged.

Of a unit with up to m rows all is m times as much, and m² times where it is squared: each table is
a sum over rows, at the same earlier answers (`Moved.of_unit`).

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn._noise` says.

All rows or parts. M trees may also share out the rows, by a public hash, so that each row is in one
tree and noise does not grow with M. With Gaussian noise of deviation s a node with n rows in one
tree then has n/M of them at noise s, instead of n at s·√M: the noise of its shares is larger by √M
in each tree, and the same in the mean of all. As splits are better where one tree's noise is less,
every row is in every tree.

Source. Random trees under differential privacy: Fletcher and Islam, "Decision tree classification
with differential privacy", ACM Computing Surveys 2019; splits tried at random: Geurts, Ernst and
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
from dither.learn._boosting import joined_cells
from dither.learn._columns import FeatureColumn
from dither.learn._noise import Asked, Moved, RunNoise
from dither.learn._tree import GROUPS, Grown, Tree, drawn, drawn_tree, halved
from dither.privacy import Neighbours

__all__ = ["UNIT", "Trees"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNIT = 1 << 8
_FOR_ROWS, _FOR_COUNTS, _FOR_FIRST, _FOR_LEAVES = 0.01, 0.05, 0.15, 0.3
_WEIGHT = 1 << 8
_BINS = 32
_CLEAR, _SMALLEST = 2.0, 3.0
_RIDGE = 1.0
_RICH = 25.0
"""How many rows there are beside the noise of one sum of (c), where splits are chosen."""
_ALONE, _FIRM = 0.5, 2.0


@dataclass(frozen=True)
class Trees:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    classes : int
        How many, or 0 where targets are numbers.
    trees, depth, tries : int
        M, D and f.
    asked : Asked
    drawn : bool
        Whether the second way is taken without asking how many rows there are.
    of_unit : int
        m: so many rows may be one unit's, at most.

    Attributes
    ----------
    whole, counts, first, later, leaves, alone : int
        The weights w of (0), of (a) to (d), and of (d) without the others.
    noisy : RunNoise
    """

    columns: tuple[FeatureColumn, ...]
    classes: int
    trees: int
    depth: int
    tries: int
    asked: Asked
    drawn: bool = False
    of_unit: int = 1
    whole: int = field(init=False)
    counts: int = field(init=False)
    first: int = field(init=False)
    later: int = field(init=False)
    leaves: int = field(init=False)
    alone: int = field(init=False)
    noisy: RunNoise = field(init=False)

    def __post_init__(self) -> None:
        d, square = len(self.columns), self.longest
        # Each part gets its share of what is squared, as far as whole numbers allow.
        later = max(1, self.trees * (self.depth - 1) * self.tries)
        rest = 1 - _FOR_ROWS - _FOR_COUNTS - _FOR_FIRST - _FOR_LEAVES
        unit = later * square * _WEIGHT**2 / rest
        weights = {
            "whole": max(1, round(math.sqrt(_FOR_ROWS * unit))),
            "counts": max(1, round(math.sqrt(_FOR_COUNTS * unit / d))),
            "first": max(1, round(math.sqrt(_FOR_FIRST * unit / d / square))),
            "later": _WEIGHT,
            "leaves": max(1, round(math.sqrt(_FOR_LEAVES * unit / self.trees / square))),
        }
        for name, value in weights.items():
            object.__setattr__(self, name, value)
        chosen, table = self._chosen, self._table(1)
        if self.drawn:
            alone = _WEIGHT
        elif self.asked.delta:
            alone = math.isqrt(chosen.l2_squared // (self.trees * table.l2_squared))
        else:
            alone = chosen.l1 // (self.trees * table.l1)
        object.__setattr__(self, "alone", alone)
        object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved)))

    @property
    def outputs(self) -> int:
        """How many integers a row has in a table."""
        return self.classes or 2

    @property
    def longest(self) -> int:
        """B²."""
        return 1 if self.classes else 2 * UNIT**2

    @property
    def tables(self) -> int:
        """How many tables later levels have."""
        return self.trees * (self.depth - 1) * self.tries

    def _table(self, weight: int) -> Moved:
        l1, moves = (1, 1) if self.classes else (2 * UNIT, 2)
        return Moved(weight * l1, weight**2 * self.longest, moves)

    @property
    def _chosen(self) -> Moved:
        """How far a row that is added moves (a) to (d)."""
        d = len(self.columns)
        found = Moved(self.counts, self.counts**2, 1) * d + self._table(self.first) * d
        found = found + self._table(self.later) * self.tables
        return found + self._table(self.leaves) * self.trees

    @property
    def moved(self) -> Moved:
        """How far a unit moves what leaves; see the module."""
        one, found = self._chosen, self._table(self.alone) * self.trees
        if not self.drawn:
            found = Moved(
                max(one.l1, found.l1),
                max(one.l2_squared, found.l2_squared),
                max(one.coordinates, found.coordinates),
            ) + Moved(self.whole, self.whole**2, 1)
        return (found * 2 if self.asked.replace else found).of_unit(self.of_unit)

    def counted(self, places: Integers, cells: int, kept: Integers) -> Floats:
        """The numbers of rows in cells, with their noise."""
        exact = np.bincount(places, kept, cells).astype(np.int64)
        return self.noisy.leave(self.counts * exact) / self.counts

    def summed(self, weight: int, places: Integers, cells: int, targets: Integers) -> Floats:
        """The sums of targets over cells, with their noise, shape (cells, m)."""
        parts = [np.bincount(places, part, cells) for part in targets.T.astype(np.float64)]
        exact = np.stack(parts, axis=1).astype(np.int64)
        found = self.noisy.leave(weight * exact) / weight
        return found if self.classes else found / UNIT

    def deviation(self, weight: int) -> float:
        """Of the noise of one sum of a table, in rows."""
        return self.noisy.deviation / weight / (1 if self.classes else UNIT)

    def rows(self, sums: Floats) -> Floats:
        """How many rows sums of targets are of."""
        return np.asarray(sums.sum(axis=-1) if self.classes else sums[..., 0])

    def gain(self, sums: Floats, ridge: float) -> Floats:
        """What a node with these sums explains, drawn to nothing where noise is large."""
        above = sums if self.classes else sums[..., 1:]
        rows = np.maximum(self.rows(sums), 0.0) + ridge
        return np.asarray((above**2).sum(axis=-1) / rows)

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
            Told how many trees are grown.
        stands : array of int, shape (n,), optional
            How many rows each stands for; 1 where left out.
        """
        kept = np.any(targets != 0, axis=1).astype(np.int64)
        if stands is not None:
            kept, targets = kept * stands, targets * stands[:, None]
        rich, depth = False, self.depth
        if not self.drawn:
            total = self.noisy.leave(np.array([self.whole * int(kept.sum())]))
            rows = max(float(total[0]) / self.whole, 1.0)
            rich = rows >= _RICH * self.deviation(self.later)
            if not rich:
                room = max(rows / (_ALONE * self.deviation(self.alone)), 1.0)
                depth = min(self.depth, max(1, math.floor(math.log2(room))))
        orders, firsts = self._coded(places, targets, kept) if rich else self._uncoded()
        codes = Grown(self.columns, tuple(orders), (), (), ()).codes(places)
        trees, values, sizes = [], [], []
        weight = self.leaves if rich else self.alone
        for t in range(self.trees):
            tree = self._chosen_tree(codes, targets, firsts) if rich else drawn_tree(orders, depth)
            found, held = self._values(tree, tree.places(codes), targets, weight)
            trees.append(tree)
            values.append(found)
            sizes.append(held)
            if seen is not None:
                seen(t + 1)
        return Grown(self.columns, tuple(orders), tuple(trees), tuple(values), tuple(sizes))

    def _coded(
        self, places: Sequence[Integers], targets: Integers, kept: Integers
    ) -> tuple[list[Integers], list[Floats]]:
        """The code of each cell, and of each column the sums of targets by code."""
        orders, firsts = [], []
        for column, cells in zip(self.columns, places, strict=True):
            counts = self.counted(cells, column.cells, kept)
            clear = _CLEAR * self.noisy.deviation / self.counts
            groups = joined_cells(column, counts, float(counts.sum()) / _BINS, clear)
            size = int(groups.max()) + 1
            sums = self.summed(self.first, groups[cells], size, targets)
            order = self._order(column, sums)
            orders.append(order[groups])
            ranked = np.zeros_like(sums)
            ranked[order] = sums
            firsts.append(ranked)
        return orders, firsts

    def _uncoded(self) -> tuple[list[Integers], list[Floats]]:
        """Codes that nobody's rows decide: numbers as they rise, lists in any order."""
        return [
            np.arange(c.cells) if c.categories is None else randomness.permutation(c.cells)
            for c in self.columns
        ], []

    def _order(self, column: FeatureColumn, sums: Floats) -> Integers:
        """The code of each joined cell: lists by their targets, what is missing at an end."""
        rows = np.maximum(self.rows(sums), 0.0) + _RIDGE * self.deviation(self.first)
        shares = sums / rows[:, None]
        which = (
            1 if not self.classes else int((rows @ (shares - shares.mean(axis=0)) ** 2).argmax())
        )
        rate = shares[:, which]
        if column.categories is not None:
            return np.argsort(np.argsort(rate, kind="stable"), kind="stable")
        near = abs(rate[-1] - rate[0]) < abs(rate[-1] - rate[-2])
        found = np.arange(len(rate)) + near
        return np.asarray(found % len(rate))

    def _chosen_tree(self, codes: Integers, targets: Integers, firsts: Sequence[Floats]) -> Tree:
        """A tree whose questions are chosen by noisy sums."""
        sizes = np.array([len(sums) for sums in firsts])
        tree = Tree()
        ends = {0: (np.zeros_like(sizes), sizes - 1)}
        at = np.zeros(len(codes), np.int64)
        for level in range(self.depth):
            found = self._tried(codes, targets, at, sorted(ends), ends, firsts, level)
            below: dict[int, tuple[Integers, Integers]] = {}
            for node, (column, code) in found.items():
                below |= halved(tree, node, ends[node], column, code)
            ends, at = below, tree.places(codes)
        return tree

    def _tried(
        self,
        codes: Integers,
        targets: Integers,
        at: Integers,
        nodes: list[int],
        ends: dict[int, tuple[Integers, Integers]],
        firsts: Sequence[Floats],
        level: int,
    ) -> dict[int, tuple[int, int]]:
        """The best split of each node of a level."""
        best: dict[int, tuple[float, tuple[int, int]]] = {}
        if level == 0:
            tried = randomness.permutation(len(firsts))[: max(self.tries, 1)]
            for column in tried.tolist():
                self._better(best, 0, column, np.arange(len(firsts[column])), firsts[column])
            return {node: split for node, (_, split) in best.items()}
        spot = np.full(int(at.max(initial=0)) + 1 + max(nodes, default=0), -1)
        spot[nodes] = np.arange(len(nodes))
        inside = spot[at] >= 0
        rows, mine = np.flatnonzero(inside), spot[at[inside]]
        for _ in range(self.tries):
            column, cuts = drawn([ends[node] for node in nodes])
            code = codes[rows, column[mine]]
            group = (code[:, None] > cuts[mine]).sum(axis=1)
            cells = GROUPS * max(len(nodes), 1)
            sums = self.summed(self.later, GROUPS * mine + group, cells, targets[rows])
            sums = sums.reshape(-1, GROUPS, sums.shape[1])
            for i, node in enumerate(nodes):
                self._better(best, node, int(column[i]), cuts[i], sums[i])
        return {node: split for node, (_, split) in best.items()}

    def _better(
        self,
        best: dict[int, tuple[float, tuple[int, int]]],
        node: int,
        column: int,
        cuts: Integers,
        sums: Floats,
    ) -> None:
        """Keep the best split of a node, where both sides hold more than noise."""
        noise = self.deviation(self.later)
        ridge = _RIDGE * noise
        rising = np.cumsum(sums, axis=0)
        whole = rising[-1]
        base = float(self.gain(whole, ridge))
        for i in range(len(sums) - 1):
            left, right = rising[i], whole - rising[i]
            if min(float(self.rows(left)), float(self.rows(right))) < _SMALLEST * noise:
                continue
            gain = float(self.gain(left, ridge) + self.gain(right, ridge)) - base
            if gain > best.get(node, (0.0,))[0]:
                best[node] = gain, (column, int(cuts[i]))

    def _values(
        self, tree: Tree, at: Integers, targets: Integers, weight: int
    ) -> tuple[Floats, Floats]:
        """Of each node its shares of classes, or its mean target, and its rows.

        Each is drawn to the node above. Means of trees are as good as sums where noise is large, so
        that shares may lie beyond their ends until the mean is taken.
        """
        size = len(tree.left)
        sums, leaves = tree.summed(self.summed(weight, at, size, targets))
        rows = np.maximum(self.rows(sums), 0.0)
        held = sums if self.classes else sums[:, 1:]
        firm = _FIRM * self.deviation(weight) * np.sqrt(leaves)
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
        delta = Fraction(1, 100)
        asked = Asked(Fraction(1), delta, Neighbours.ADD_REMOVE)
        for of_unit, name in ((1, "tables of a forest"), (2, "tables of a forest, units of 2")):
            columns = (FeatureColumn("x", categories=("a",)),)
            made = cls(columns, 2, 2, 2, 1, asked, of_unit=of_unit)

            def run(rows: int, size: int, made: Trees = made) -> Floats:
                # As many cells as outputs; each number is seen as much as neighbours move it.
                places, tables = np.repeat(np.arange(size), rows), [made.first]
                tables += [made.later] * made.tables + [made.leaves] * made.trees
                ones = np.ones(len(places), np.int64)
                found = made.counted(places, size, ones) * made.counts**2
                exact = made.whole * np.bincount(places, ones, size).astype(np.int64)
                found = found + made.noisy.leave(exact) * made.whole
                targets = np.tile(np.array([[1, 0]]), (len(places), 1))
                for weight in tables:
                    sums = made.summed(weight, places, size, targets)[:, 0]
                    found = found + sums * weight**2
                return found

            yield Subject(name, run, 1, 1 + of_unit, delta=delta)
