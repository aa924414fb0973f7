"""Rows as exact integers: what linear models, sums and distances are made of.

Each number of a row is a function of that row's values alone, by operations on single numbers,
wherever it stands and whatever the other rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.learn._columns import FeatureColumn, columns_of, names_of, series_of

__all__ = ["Box", "Encoding", "cut", "declared", "lengths"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_COLUMNS = 10_000


def declared(table: Any, bounds: Any, categories: Any = None) -> tuple[FeatureColumn, ...]:
    """The columns of a table, as they were declared.

    Raises
    ------
    ArgumentError
        They were not, or two have one name.
    """
    names = names_of(table)
    if len(set(names)) != len(names):
        raise ArgumentError("X must not have two columns of one name")
    if len(names) > _MOST_COLUMNS:
        raise ArgumentError(f"X must have at most {_MOST_COLUMNS:,} columns")
    return columns_of(names, bounds, categories)


@dataclass(frozen=True)
class Encoding:
    """Columns as features from -1 to 1: a number has one, a list of categories one each.

    A number lies between its bounds, which are -1 and 1; what is missing is in the middle, 0. Of
    the features of a list of categories that of the value is 1 and others are 0; where the value is
    missing or not listed all are. So the features of a column are at most 1 long. A column that
    has ends of cells is a list of these.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    """

    columns: tuple[FeatureColumn, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the features, such as ``age`` and ``region=north``."""
        found: list[str] = []
        for column in self.columns:
            if not column.listed:
                found.append(column.name)
            else:
                found += [f"{column.name}={column.label(k)}" for k in range(column.cells - 1)]
        return tuple(found)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first feature of each column, and how many there are."""
        found = [0]
        for column in self.columns:
            found.append(found[-1] + (column.cells - 1 if column.listed else 1))
        return tuple(found)

    @property
    def numbers(self) -> int:
        """How many columns are numbers."""
        return sum(not column.listed for column in self.columns)

    @cached_property
    def of_numbers(self) -> npt.NDArray[np.bool_]:
        """Which features are numbers, shape (features,)."""
        found = np.zeros(self.starts[-1], bool)
        pairs = zip(self.starts, self.columns, strict=False)
        found[[start for start, column in pairs if not column.listed]] = True
        return found

    def apart(self) -> frozenset[tuple[int, int]]:
        """Features whose product is 0 in every row: those of two categories of one column."""
        return frozenset(
            (i, j)
            for column, start, end in zip(self.columns, self.starts, self.starts[1:], strict=False)
            if column.listed
            for i in range(start, end)
            for j in range(i + 1, end)
        )

    def points(self, table: Any, steps: int) -> Integers:
        """The features of all rows times ``steps``, rounded, shape (n, features)."""
        parts = []
        for column, values in zip(self.columns, series_of(self.columns, table), strict=True):
            if not column.listed:
                shares = np.where(np.isnan(found := column.shares(values)), 0.5, found)
                parts.append(np.rint((2 * shares - 1) * steps).astype(np.int64)[:, None])
            else:
                place = column.places(values)
                parts.append(steps * (place[:, None] == np.arange(column.cells - 1)))
        return np.concatenate(parts, axis=1).astype(np.int64)


@dataclass(frozen=True)
class Box:
    """Columns of numbers as points of one space, whose unit is half the width of the widest.

    Parameters
    ----------
    columns : tuple of FeatureColumn
        Each with bounds.
    """

    columns: tuple[FeatureColumn, ...]

    @cached_property
    def middle(self) -> Floats:
        """The middle of the bounds, shape (d,)."""
        return np.array([low / 2 + high / 2 for low, high in self._ends])

    @cached_property
    def unit(self) -> float:
        """How much of the columns' own units one is."""
        return max(high / 2 - low / 2 for low, high in self._ends)

    @cached_property
    def reach(self) -> Floats:
        """How far from the middle a point is at most, each in [0, 1], shape (d,)."""
        return np.array([(high / 2 - low / 2) / self.unit for low, high in self._ends])

    @property
    def _ends(self) -> list[tuple[float, float]]:
        return [column.bounds for column in self.columns if column.bounds is not None]

    def points(self, table: Any) -> Floats:
        """All rows, about the middle; what is missing lies there. Shape (n, d)."""
        series = series_of(self.columns, table)
        found = np.empty((len(series[0]), len(series)))
        for j, (column, values) in enumerate(zip(self.columns, series, strict=True)):
            shares = column.shares(values)
            found[:, j] = (2 * np.where(np.isnan(shares), 0.5, shares) - 1) * self.reach[j]
        return found

    def clipped(self, points: Floats) -> Floats:
        """Points moved into the box."""
        return np.asarray(np.clip(points, -self.reach, self.reach))

    def restored(self, points: Floats) -> Floats:
        """Points in the columns' own units."""
        return np.asarray(self.middle + points * self.unit)


def lengths(points: Floats) -> Floats:
    """Squared lengths of rows, column by column: what other rows hold does not change them."""
    found = np.zeros(len(points))
    for column in points.T:
        found = found + column**2
    return found


def cut(points: Floats, radius: float, steps: int) -> Integers:
    """Rows in units of radius/steps, shortened to ``steps`` and cut towards 0 to integers.

    Each is at most ``steps`` long. A square of d columns errs by d + 1 halves of EPS, its root by
    half as many, and a share and its products by 8 more: 1e-12 is enough for d to 8,000, and what
    is cut towards 0 is shorter.
    """
    long = np.sqrt(lengths(points))
    with np.errstate(divide="ignore"):
        share = np.minimum(steps / radius, steps * (1 - 1e-12) / np.maximum(long, 1e-300))
    return np.trunc(points * share[:, None] * (1 - 1e-12)).astype(np.int64)
