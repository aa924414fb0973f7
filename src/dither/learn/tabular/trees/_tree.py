"""A grown forest: trees as lists of nodes, what their leaves say, and questions drawn by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dither import noise as randomness
from dither.learn._columns import FeatureColumn

__all__ = ["Ends", "ReleasedForest", "Tree", "cuts_of", "drawn_tree", "halved"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Ends = tuple[Integers, Integers]
"""Of each column the least and the largest code in a node."""

_DRAWN, _HALVED = 12, 8


@dataclass(eq=False)
class Tree:
    """One tree: of each node its split; a new one is a leaf.

    Parameters
    ----------
    column, code : list of int
        Rows whose code in that column is above ``code`` go right; column -1 is a leaf's.
    left : list of int
        The node to the left; that to the right is the next.
    """

    column: list[int] = field(default_factory=lambda: [-1])
    code: list[int] = field(default_factory=lambda: [0])
    left: list[int] = field(default_factory=lambda: [0])

    def split(self, node: int, column: int, code: int) -> tuple[int, int]:
        """Ask a question at a leaf; the two new ones."""
        left = len(self.left)
        self.column[node], self.code[node], self.left[node] = column, code, left
        for part, value in ((self.column, -1), (self.code, 0), (self.left, 0)):
            part += [value, value]
        return left, left + 1

    def summed(self, leaves: Floats) -> tuple[Floats, Integers]:
        """Sums of the leaves below each node, itself among them, and how many they are."""
        found, count = leaves.copy(), np.ones(len(leaves), np.int64)
        # A node comes before those below it.
        for node in range(len(leaves) - 1, -1, -1):
            if self.column[node] >= 0:
                left = self.left[node]
                found[node] = found[left] + found[left + 1]
                count[node] = count[left] + count[left + 1]
        return found, count

    def places(self, codes: Integers) -> Integers:
        """The leaf of each row."""
        column, code, left = (np.array(v) for v in (self.column, self.code, self.left))
        found = np.zeros(len(codes), np.int64)
        rows = np.arange(len(codes))
        while (inner := column[found] >= 0).any():
            at, which = found[inner], rows[inner]
            found[inner] = left[at] + (codes[which, column[at]] > code[at])
        return found


@dataclass(frozen=True, eq=False)
class ReleasedForest:
    """What a run leaves.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    orders : tuple of array of int
        Of each column the code of each cell.
    trees : tuple of Tree
    values : tuple of array of float, shape (nodes, m)
        Of the leaves of each tree: shares of classes, or a target.
    rows : tuple of array of float, shape (nodes,)
        Noisy numbers of rows.
    """

    columns: tuple[FeatureColumn, ...]
    orders: tuple[Integers, ...]
    trees: tuple[Tree, ...]
    values: tuple[Floats, ...]
    rows: tuple[Floats, ...]

    def codes(self, places: Sequence[Integers]) -> Integers:
        """Rows as trees read them, shape (n, d)."""
        pairs = zip(self.orders, places, strict=True)
        return np.stack([order[cells] for order, cells in pairs], axis=1)

    def mean(self, places: Sequence[Integers]) -> Floats:
        """The mean of the values of a row's leaves, shape (n, m)."""
        codes = self.codes(places)
        found = np.zeros((len(codes), self.values[0].shape[1]))
        for tree, values in zip(self.trees, self.values, strict=True):
            found = found + values[tree.places(codes)] / len(self.trees)
        return found


def halved(tree: Tree, node: int, ends: Ends, column: int, code: int) -> dict[int, Ends]:
    """Split a node, and the ends of codes on either side."""
    found = {}
    for side, below in enumerate(tree.split(node, column, code)):
        low, high = (end.copy() for end in ends)
        (low if side else high)[column] = code + side
        found[below] = (low, high)
    return found


def cuts_of(low: int, high: int) -> Integers:
    """Where codes from low to high may be cut, without regard to rows.

    Some are drawn by chance. Of sizes, costs and counts most are far nearer to the lower bound than
    to the upper, so that there are also the half of what is left, its half, and so on. What is
    missing has the largest code, if not of a list: it is also split from all others.
    """
    width = high - low
    if width <= _DRAWN + _HALVED:
        return np.arange(low, high)
    halves = [width >> times for times in range(1, _HALVED + 1)]
    found = np.array([*halves, width - 1, *randomness.below(width, _DRAWN).tolist()])
    return low + np.unique(found)


def drawn_tree(orders: Sequence[Integers], depth: int) -> Tree:
    """A tree whose questions are drawn by chance, of columns with these codes."""
    tree = Tree()
    sizes = np.array([int(order.max()) for order in orders])
    ends: dict[int, Ends] = {0: (np.zeros_like(sizes), sizes)}
    for _ in range(depth):
        below: dict[int, Ends] = {}
        for node, (low, high) in ends.items():
            free = np.flatnonzero(high > low)
            if len(free):
                column = int(free[randomness.below(len(free), 1)[0]])
                # As most values are near the lower bound, of three places the lowest halves them
                # best.
                places = randomness.below(int(high[column] - low[column]), 3)
                code = int(low[column] + places.min())
                below |= halved(tree, node, (low, high), column, code)
        ends = below
    return tree
