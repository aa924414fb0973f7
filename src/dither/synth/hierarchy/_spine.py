"""A spine: levels of public places, each place of a level inside one of the level above.

Places come from a public table, one row a place of the last level, and never from private rows. Of
each level they are sorted by the values of their whole path, so that the places inside one place
stand next to each other and sums over them run over a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._format import count_text, display_text
from dither.errors import ArgumentError

__all__ = ["Spine"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spine:
    """Levels of places, the widest first.

    Parameters
    ----------
    levels : tuple of str
        Their names.
    places : tuple of tuple
        By level: the values that name its places.
    parents : tuple of array of int64
        By level but the first: where in the level above the place lies that each is inside of.
        They rise.

    Examples
    --------
    >>> spine = Spine.of(["state", "county"], [("N", "a"), ("S", "c"), ("N", "b")])
    >>> spine.places, spine.parents[0].tolist(), spine.sizes
    ((('N', 'S'), ('a', 'b', 'c')), [0, 0, 1], (2, 3))
    >>> [level.tolist() for level in spine.sums(np.array([5, 1, 2]))]
    [[6, 2], [5, 1, 2]]
    """

    levels: tuple[str, ...]
    places: tuple[tuple[Any, ...], ...]
    parents: tuple[Integers, ...]

    @classmethod
    def of(cls, levels: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Spine:
        """Read a spine off the rows of a public table, one value for each level.

        Raises
        ------
        ArgumentError
            There are no rows, a value is missing, the last level names one place twice, or a place
            lies in two places of the level above.
        """
        names = tuple(levels)
        if not rows:
            raise ArgumentError(f"levels: the public table has no row, so no {names[-1]}")
        for depth, name in enumerate(names):
            if any(row[depth] is None for row in rows):
                raise ArgumentError(f"levels: the public table has a row without a {name}")
        rows = sorted(rows)
        for depth in range(1, len(names)):
            inside: dict[Any, Any] = {}
            for row in rows:
                first = inside.setdefault(row[depth], row[:depth])
                if first != row[:depth]:
                    other = next(a for a, b in zip(first, row[:depth], strict=True) if a != b)
                    at = first.index(other)
                    raise ArgumentError(
                        f"levels are not nested: {names[depth]} {display_text(row[depth])} lies in "
                        f"{names[at]} {display_text(other)} and in {display_text(row[at])}; where "
                        f"two places share a name, let {names[depth]} be a code of which each has "
                        "its own"
                    )
        last = [row[-1] for row in rows]
        for one, two in pairwise(last):
            if one == two:
                raise ArgumentError(
                    f"levels: the public table has two rows of {names[-1]} {display_text(one)}"
                )
        places: list[tuple[Any, ...]] = []
        own: list[Integers] = []
        for depth in range(len(names)):
            # Sorted by path, equal places stand together.
            column = [row[depth] for row in rows]
            new = np.array([True, *(a != b for a, b in pairwise(column))], dtype=bool)
            places.append(tuple(v for v, first in zip(column, new, strict=True) if first))
            own.append(np.cumsum(new) - 1)
        parents = []
        for above, level in pairwise(own):
            first_rows = np.unique(level, return_index=True)[1]
            parents.append(above[first_rows])
        return cls(names, tuple(places), tuple(parents))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many places each level has."""
        return tuple(len(level) for level in self.places)

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    def inside(self, level: int, place: int) -> slice:
        """The places of the next level that lie inside of one."""
        parents = self.parents[level]
        first, end = np.searchsorted(parents, [place, place + 1])
        return slice(int(first), int(end))

    def starts(self, level: int) -> npt.NDArray[np.intp]:
        """Where, in the next level, the places inside of each place of this level begin."""
        return np.searchsorted(self.parents[level], np.arange(self.sizes[level]))

    def summed(self, level: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Of values of the next level, the sums over the places inside of each of this one."""
        return np.asarray(np.add.reduceat(values, self.starts(level), axis=0))

    def sums(self, leaves: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Values of every level: those of the last level added up, widest level first."""
        found = [np.asarray(leaves)]
        for level in range(self.depth - 2, -1, -1):
            found.append(self.summed(level, found[-1]))
        return found[::-1]

    def ancestors(self, level: int) -> list[Integers]:
        """By level down to this one: in which place each place of this one lies."""
        found = [np.arange(self.sizes[level])]
        for depth in range(level - 1, -1, -1):
            found.append(self.parents[depth][found[-1]])
        return found[::-1]

    def describe(self) -> str:
        """Its levels in a line: ``1 country, 2 states``."""
        return ", ".join(
            count_text(n, "place") + f" of {name}"
            for n, name in zip(self.sizes, self.levels, strict=True)
        )
