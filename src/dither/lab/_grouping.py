"""Rows collapsed by integer keys: the one operation that everything here is made of.

Columns are integer codes. Several columns become one key in a mixed radix (re-ranked where the
radix would leave 62 bits), and equal keys become one row with a weight. Small key spaces are
counted in a table, large ones are sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Classes", "Ints", "combine", "grouped", "label", "stable_order", "tally"]

Ints = NDArray[np.int64]
_WIDEST = 1 << 62
_TABLE = 1 << 16
_DIGIT = 16
"""Bits that NumPy sorts by counting, where it compares wider keys."""


class Classes(NamedTuple):
    """Equal keys: one member of each, its weight, and the class of every row."""

    first: Ints
    """A row of each class, shape (classes,)."""
    weight: Ints
    """Rows that the class stands for, shape (classes,)."""
    of: Ints
    """The class of each row, shape (rows,)."""


def combine(columns: Sequence[tuple[NDArray[np.integer], int]], rows: int) -> tuple[Ints, int]:
    """One key for the tuple of codes of each row, ordered as the tuples are.

    Columns are codes in [0, size) with their size, and so is the key; ``rows`` is its length where
    there is no column.
    """
    key, size = np.zeros(rows, dtype=np.int64), 1
    for codes, count in columns:
        if count <= 1:
            continue
        if size > _WIDEST // count:
            # Re-ranking keeps the order and needs no more values than there are rows.
            classes = label(key, size)
            key, size = classes.of, len(classes.first)
        key *= count
        key += codes
        size *= count
    return key, size


def stable_order(key: Ints) -> Ints:
    """The rows in the order of their keys, equal ones as they stood. Keys are not negative.

    Examples
    --------
    >>> stable_order(np.array([70_000, 3, 70_000, 2])).tolist()
    [3, 1, 0, 2]
    """
    top = int(key.max(initial=0))
    if top >> 2 * _DIGIT:
        return np.argsort(key, kind="stable")
    order = np.argsort(key.astype(np.uint16), kind="stable")
    if top >> _DIGIT:
        high = (key >> _DIGIT).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def tally(key: Ints, size: int, weight: NDArray[np.integer] | None) -> tuple[Ints, Ints]:
    """A row of each key, and the weight of the key, in the order of keys. Weights are above 0.

    Examples
    --------
    >>> first, weight = tally(np.array([2, 0, 2]), 3, np.array([5, 1, 4]))
    >>> weight.tolist()
    [1, 9]
    """
    rows = len(key)
    if size <= max(_TABLE, 4 * rows):
        counted = np.bincount(key, weights=weight, minlength=1)
        some = np.zeros(len(counted), dtype=np.int64)
        some[key] = np.arange(rows)
        there = counted > 0
        return some[there], counted[there].astype(np.int64)
    order = np.argsort(key)
    starts = _starts(key[order])
    if weight is None:
        return order[starts], np.diff(np.append(starts, rows))
    return order[starts], np.add.reduceat(weight[order], starts).astype(np.int64)


def label(key: Ints, size: int, weight: NDArray[np.integer] | None = None) -> Classes:
    """The classes of equal keys, numbered in the order of keys.

    Examples
    --------
    >>> label(np.array([7, 3, 7]), 10).of.tolist()
    [1, 0, 1]
    """
    rows = len(key)
    if size <= max(_TABLE, 4 * rows):
        counted = np.bincount(key, minlength=1)
        there = counted > 0
        number = np.cumsum(there) - 1
        some = np.zeros(len(counted), dtype=np.int64)
        some[key] = np.arange(rows)
        of = number[key]
        total = counted if weight is None else np.bincount(key, weights=weight)
        return Classes(some[there], total[there].astype(np.int64), of)
    order = np.argsort(key)
    ordered = key[order]
    starts = _starts(ordered)
    of = np.empty(rows, dtype=np.int64)
    new = np.zeros(rows, dtype=np.int64)
    new[starts[1:]] = 1
    of[order] = np.cumsum(new)
    if weight is None:
        total = np.diff(np.append(starts, rows))
    else:
        total = np.add.reduceat(weight[order], starts)
    return Classes(order[starts], total.astype(np.int64), of)


def grouped(parts: Iterable[Ints]) -> Ints:
    """The class of each row: equal where all parts are, numbered in their order.

    Examples
    --------
    >>> grouped([np.array([5, 5, 7]), np.array([1, 2, 1])])
    array([0, 1, 2])
    """
    columns = [(part, int(part.max(initial=0)) + 1) for part in parts]
    return label(*combine(columns, len(columns[0][0]))).of


def _starts(ordered: Ints) -> Ints:
    """Where each run of equal keys begins."""
    if not len(ordered):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
