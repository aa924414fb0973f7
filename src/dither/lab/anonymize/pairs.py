"""How a sensitive column falls on the classes: a row for each pair of class and value.

Everything that l-diversity, t-closeness and their kin say is computed from these pairs, class by
class, without a table of classes times values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.lab.anonymize.tally import Ints, combine, tally

__all__ = ["Floats", "Pairs", "Truths", "pair"]

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The pairs, ordered by class and then by value.

    Attributes
    ----------
    owner, value, count : array of int64, shape (pairs,)
        Class, value and rows of each pair; every count is at least 1.
    sizes : array of int64, shape (classes,)
        Rows of each class.
    whole : array of int64, shape (values,)
        Rows of each value in the table that classes are held against.
    """

    owner: Ints
    value: Ints
    count: Ints
    sizes: Ints
    whole: Ints

    @property
    def starts(self) -> Ints:
        """The first pair of each class."""
        return np.searchsorted(self.owner, np.arange(len(self.sizes)))

    @property
    def share(self) -> Floats:
        """The value's share of its class, one for each pair."""
        found: Floats = self.count / self.sizes[self.owner]
        return found

    @property
    def reference(self) -> Floats:
        """Each value's share of the whole table."""
        found: Floats = self.whole / max(int(self.whole.sum()), 1)
        return found

    def per_class(self, amounts: Floats) -> Floats:
        """Sums over the pairs of each class."""
        summed = np.bincount(self.owner, weights=amounts, minlength=len(self.sizes))
        return summed.astype(np.float64)

    def largest(self, amounts: Floats) -> Floats:
        """The largest over the pairs of each class."""
        found: Floats = np.maximum.reduceat(amounts, self.starts)
        return found

    def only(self, kept: Truths) -> Pairs:
        """The pairs of some classes, which are then all that there is."""
        there = kept[self.owner]
        number = np.cumsum(kept) - 1
        value, count = self.value[there], self.count[there]
        whole = np.bincount(value, weights=count, minlength=len(self.whole)).astype(np.int64)
        return Pairs(number[self.owner[there]], value, count, self.sizes[kept], whole)


def pair(
    classes: NDArray[np.integer],
    sizes: Ints,
    values: NDArray[np.integer],
    count: int,
    weight: Ints | None = None,
) -> Pairs:
    """Pairs from the class and the value of each row.

    Parameters
    ----------
    classes, values : array of int, shape (rows,)
    sizes : array of int, shape (classes,)
        Rows of each class.
    count : int
        Number of values.
    weight : array of int, shape (rows,), optional
        Rows that each row stands for.
    """
    key, size = combine([(classes, len(sizes)), (values, count)], len(classes))
    first, counted = tally(key, size, weight)
    owner, value = classes[first].astype(np.int64), values[first].astype(np.int64)
    whole = np.bincount(value, weights=counted, minlength=count).astype(np.int64)
    return Pairs(owner, value, counted, sizes, whole)
