"""What an engine hands back of a job: exact integers, by group.

A histogram is mostly empty, so it is kept as the places that are not, in order; so are the cells of
tables that are too large to write down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither.plan.schema import Value

Integers = npt.NDArray[np.int64]

__all__ = ["CellsInUse", "ExactAnswer", "Histogram", "Integers"]


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of ``Leaves`` in every group; what is not listed is 0.

    Parameters
    ----------
    groups, bins : int
        How many there are.
    places : array of int64
        ``group * bins + leaf``, rising and without repetition.
    counts : array of int64
        Of the same length.

    Examples
    --------
    >>> found = Histogram.of(2, 4, np.array([1, 0, 0]), np.array([3, 2, 0]), np.array([5, 6, 7]))
    >>> found.dense().tolist()
    [[7, 0, 6, 0], [0, 0, 0, 5]]
    >>> found.stretches(np.array([1]), np.array([1]), 2).tolist()
    [[0, 5]]
    """

    groups: int
    bins: int
    places: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, groups: int, bins: int, group: Integers, leaf: Integers, count: Integers) -> Self:
        """From triples in any order, no two of one place."""
        places = group * bins + leaf
        # Mostly in long runs that rise, which a stable order only merges.
        order = np.argsort(places, kind="stable")
        return cls(groups, bins, places[order], count[order])

    def __getitem__(self, rows: Integers) -> Histogram:
        """Some of the groups, in the given order; each at most once."""
        to = np.full(self.groups, -1, dtype=np.int64)
        to[rows] = np.arange(len(rows))
        return self.moved(to, len(rows))

    def moved(self, to: Integers, groups: int) -> Histogram:
        """Each group where ``to`` says, out of ``groups``; left out where it says -1."""
        group, leaf = np.divmod(self.places, self.bins)
        kept = to[group] >= 0
        return self.of(groups, self.bins, to[group[kept]], leaf[kept], self.counts[kept])

    def dense(self) -> npt.NDArray[np.int64]:
        """All counts, of shape (groups, bins)."""
        found = np.zeros(self.groups * self.bins, dtype=np.int64)
        found[self.places] = self.counts
        return found.reshape(self.groups, self.bins)

    def stretches(self, group: Integers, stretch: Integers, size: int) -> npt.NDArray[np.int64]:
        """The leaves ``stretch * size`` and on of the named groups; shape (number named, size).

        Beyond the last leaf there is nothing.
        """
        start = group * self.bins + stretch * size
        end = np.minimum(start + size, (group + 1) * self.bins)
        first, last = np.searchsorted(self.places, start), np.searchsorted(self.places, end)
        number = last - first
        row = np.repeat(np.arange(len(group)), number)
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + first[row]
        found = np.zeros((len(group), size), dtype=np.int64)
        found[row, self.places[place] - start[row]] = self.counts[place]
        return found

    def coarser(self, size: int) -> Histogram:
        """The histogram of stretches of so many leaves.

        Examples
        --------
        >>> Histogram(1, 5, np.array([0, 1, 4]), np.array([5, 6, 7])).coarser(2).dense().tolist()
        [[11, 0, 7]]
        """
        bins = -(-self.bins // size)
        group, leaf = np.divmod(self.places, self.bins)
        places = group * bins + leaf // size
        first = np.flatnonzero(np.diff(places, prepend=-1))
        places = places[first]
        counts = np.add.reduceat(self.counts, first) if first.size else self.counts
        return Histogram(self.groups, bins, places, counts)

    def tolist(self) -> list[list[int]]:
        """All counts as lists, for people and tests."""
        listed: list[list[int]] = self.dense().tolist()
        return listed


@dataclass(frozen=True, slots=True)
class CellsInUse:
    """The cells of ``ListedCells`` that are not empty, in no particular order.

    Parameters
    ----------
    places : array of int64, shape (cells, axes)
        No two rows are the same.
    counts : array of int64, shape (cells,)
        Above 0.
    """

    places: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def tolist(self) -> list[tuple[tuple[int, ...], int]]:
        """All cells with their counts, in order, for people and tests."""
        found = zip(map(tuple, self.places.tolist()), self.counts.tolist(), strict=True)
        return sorted(found)


@dataclass(frozen=True, slots=True)
class ExactAnswer:
    """What an engine hands back: exact, so it must never leave ``dither.query`` without noise.

    Parameters
    ----------
    keys : sequence of tuple
        The group of each row of the arrays, as public kinds of value (reals as float), with the
        place of its set last where there are sets. Groups in which no unit has a row are absent.
        In no particular order.
    values : mapping of int to array
        By position in ``Job.measurements``: int64 or object (Python int), shape (groups,); for
        ``Leaves``, ``UnitSizeHistogram`` and ``Cells``, a ``Histogram``; for ``ListedCells``,
        ``CellsInUse``. A job of tables has one group.
    """

    keys: Sequence[tuple[Value | float | None, ...]]
    values: Mapping[int, Any]
