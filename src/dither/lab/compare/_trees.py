"""Boosted trees on codes: a classifier that sees what columns do together, in one page of NumPy.

For each class and round a tree of a few levels is fitted to the gradient of the log-loss, and its
leaves take Newton's step (Friedman, 2001; Chen and Guestrin, 2016). Cells of a column have no
order: in each node they are sorted by their own step, and the best cut of that order is the best of
all splits into two sets (Fisher, 1958). A small weight in each cell keeps rare ones in the middle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.lab._grouping import Ints

__all__ = ["BoostedTrees", "boosted"]

Floats = npt.NDArray[np.float64]

_RATE = 0.3
_CALM = 10.0
"""Added to the curvature of a cell that is ranked, and to that of a leaf: few rows say little."""


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """At a node: the column that is asked, and which of its cells go right; or none."""

    column: int
    right: npt.NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    levels: tuple[tuple[_Split, ...], ...]
    leaves: Floats

    def at(self, codes: Sequence[Ints]) -> Floats:
        """The value of each row."""
        node = np.zeros(len(codes[0]), dtype=np.int64)
        for splits in self.levels:
            node = _down(node, splits, codes)
        found: Floats = self.leaves[node]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class BoostedTrees:
    """Trees by round and class."""

    base: Floats
    rounds: tuple[tuple[_Tree, ...], ...]

    def scores(self, codes: Sequence[Ints]) -> Floats:
        """The score of each class, shape (rows, classes)."""
        found = np.tile(self.base, (len(codes[0]), 1))
        for trees in self.rounds:
            for k, tree in enumerate(trees):
                found[:, k] += tree.at(codes)
        return found


def boosted(
    codes: Sequence[Ints],
    sizes: Sequence[int],
    labels: Ints,
    classes: int,
    *,
    rounds: int = 40,
    depth: int = 3,
) -> BoostedTrees:
    """Fit.

    Parameters
    ----------
    codes : sequence of array of int64
        A column each, in [0, size).
    sizes : sequence of int
    labels : array of int64
        In [0, classes).
    classes : int
        Of two classes only the second is scored; the first stays at 0.
    rounds, depth : int
    """
    seen = np.bincount(labels, minlength=classes) + 1.0
    base = np.log(seen / seen.sum())
    scored = range(1, 2) if classes == 2 else range(classes)
    if classes == 2:
        base -= base[0]
    score = np.tile(base, (len(labels), 1))
    still = _Tree((), np.zeros(1))
    made = []
    for _ in range(rounds):
        chance = np.exp(score - score.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        trees = [still] * classes
        for k in scored:
            p = chance[:, k]
            trees[k], grown = _grown(codes, sizes, p - (labels == k), p * (1 - p), depth)
            score[:, k] += grown
        made.append(tuple(trees))
    return BoostedTrees(base, tuple(made))


def _grown(
    codes: Sequence[Ints], sizes: Sequence[int], slope: Floats, bend: Floats, depth: int
) -> tuple[_Tree, Floats]:
    """A tree, and its value at each row."""
    node = np.zeros(len(slope), dtype=np.int64)
    levels = []
    for level in range(depth):
        splits = _best(codes, sizes, node, 1 << level, slope, bend)
        levels.append(splits)
        node = _down(node, splits, codes)
    nodes = 1 << depth
    g, h = (np.bincount(node, weights=w, minlength=nodes) for w in (slope, bend))
    leaves = -_RATE * g / (h + _CALM)
    return _Tree(tuple(levels), leaves), leaves[node]


def _best(
    codes: Sequence[Ints],
    sizes: Sequence[int],
    node: Ints,
    nodes: int,
    slope: Floats,
    bend: Floats,
) -> tuple[_Split, ...]:
    gains = np.zeros(nodes)
    splits = [_Split(0, None)] * nodes
    for column, (cells, size) in enumerate(zip(codes, sizes, strict=True)):
        if size < 2:
            continue
        key = node * size + cells
        g, h = (
            np.bincount(key, weights=w, minlength=nodes * size).reshape(nodes, size)
            for w in (slope, bend)
        )
        order = np.argsort(g / (h + _CALM), axis=1, kind="stable")
        left_g, left_h = (np.cumsum(np.take_along_axis(x, order, 1), axis=1) for x in (g, h))
        all_g, all_h = left_g[:, -1:], left_h[:, -1:]
        gain = (
            left_g**2 / (left_h + _CALM)
            + (all_g - left_g) ** 2 / (all_h - left_h + _CALM)
            - all_g**2 / (all_h + _CALM)
        )[:, :-1]
        cut = gain.argmax(axis=1)
        for i in np.flatnonzero(gain[np.arange(nodes), cut] > gains):
            gains[i] = gain[i, cut[i]]
            right = np.zeros(size, dtype=np.bool_)
            right[order[i, cut[i] + 1 :]] = True
            splits[i] = _Split(column, right)
    return tuple(splits)


def _down(node: Ints, splits: Sequence[_Split], codes: Sequence[Ints]) -> Ints:
    """The node of each row a level below; where nothing is asked, rows go left."""
    found = node * 2
    for i, split in enumerate(splits):
        if split.right is not None:
            here = np.flatnonzero(node == i)
            found[here] += split.right[codes[split.column][here]]
    return found
