"""What is public of the columns of a table, and where each row's values lie in it.

Each column is cut into cells beforehand, from what its owner declared: a number lies in one of
``FINE`` equal parts of its bounds, or between two of the ends that are given, a category in its
place in the list, and what is missing, not a number or not listed in a last cell of its own. The
cell of a value depends on that value alone.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._columns import array_of, doubles, is_masked
from dither.errors import ArgumentError

__all__ = [
    "FeatureColumn",
    "columns_of",
    "days",
    "names_of",
    "numbers",
    "places_in",
    "read_columns",
    "series_of",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FINE = 256
"""Equal parts of the bounds of a number."""

_FIRST_DAY = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class FeatureColumn:
    """One column: its bounds, the list of its categories, or the ends of its cells.

    Parameters
    ----------
    name : str
    bounds : (float, float), optional
    categories : tuple, optional
        Instead of bounds.
    ends : tuple of float, optional
        Instead of bounds: rising. A cell holds its lower end; the last one also its upper.
    outside : bool
        Whether numbers beyond the ends count as missing, and are not moved to the nearest cell.
    dates : bool
        Values are days or moments, and ends days since 1970.
    """

    name: str
    bounds: tuple[float, float] | None = None
    categories: tuple[Hashable, ...] | None = None
    ends: tuple[float, ...] | None = None
    outside: bool = False
    dates: bool = False

    @property
    def cells(self) -> int:
        """How many there are, with the last for what is missing."""
        if self.ends is not None:
            return len(self.ends)
        return 1 + (FINE if self.categories is None else len(self.categories))

    @property
    def listed(self) -> bool:
        """Whether a value says which cell it is in, and no more than that."""
        return self.bounds is None

    def label(self, place: int, last: int | None = None) -> str:
        """What lies in a cell, or in those from there to a last one, in words."""
        last = place if last is None else last
        if last == self.cells - 1:
            return "missing or not declared"
        if self.categories is not None:
            return str(self.categories[place])
        return f"{self.end(place)} to {self.end(last + 1)}"

    def edges(self) -> Floats:
        """The ends of a number's cells, rising."""
        if self.ends is not None:
            return np.array(self.ends)
        assert self.bounds is not None
        return np.linspace(*self.bounds, FINE + 1)

    def end(self, place: int) -> str:
        """One of them in words."""
        value = float(self.edges()[place])
        if self.dates:
            # Whatever the ends are, a calendar has no days beyond its own.
            day = min(max(round(value) + _FIRST_DAY, 1), dt.date.max.toordinal())
            return dt.date.fromordinal(day).isoformat()
        return f"{value:.6g}"

    def places(self, values: Any) -> Integers:
        """The cell of each value; of numbers beyond the bounds that at the end."""
        if self.categories is not None:
            return places_in(self.categories, values)
        if self.ends is not None:
            return self._between(days(values) if self.dates else numbers(values), self.edges())
        shares = self.shares(values)
        near = np.minimum(np.floor(shares * FINE), FINE - 1)
        near[np.isnan(shares)] = FINE
        return np.asarray(near, dtype=np.int64)

    def shares(self, values: Any) -> Floats:
        """Where each number lies from its lower bound, 0, to its upper, 1; NaN for what is none."""
        assert self.bounds is not None
        low, high = self.bounds
        found = numbers(values)
        with np.errstate(over="ignore", invalid="ignore"):
            # In halves, so that the widest bounds do not overflow.
            near = np.clip((found / 2 - low / 2) / (high / 2 - low / 2), 0.0, 1.0)
        near[found == np.inf], near[found == -np.inf] = 1.0, 0.0
        return np.asarray(near)

    def _between(self, found: Floats, ends: Floats) -> Integers:
        last = len(ends) - 2
        near = np.clip(np.searchsorted(ends, found, side="right") - 1, 0, last)
        missing = np.isnan(found)
        if self.outside:
            missing |= (found < ends[0]) | (found > ends[-1])
        return np.where(missing, last + 1, near).astype(np.int64)


def columns_of(
    names: Sequence[str], bounds: Any, categories: Mapping[Hashable, Sequence[Any]] | None
) -> tuple[FeatureColumn, ...]:
    """What was declared of each column.

    Raises
    ------
    ArgumentError
        It does not fit the columns, or a column has neither bounds nor categories.
    """
    listed = _listed(names, categories)
    if bounds is None:
        bounds = (np.full(len(names), np.nan),) * 2
    try:
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=float), (len(names),)).tolist() for end in bounds
        )
    except (TypeError, ValueError):
        raise ArgumentError(
            "bounds must be a pair (low, high) of numbers or of arrays, one value a column "
            f"(there are {len(names)} columns)"
        ) from None
    found = []
    for name, lower, upper in zip(names, low, high, strict=True):
        if name in listed:
            found.append(FeatureColumn(name, categories=listed[name]))
            continue
        if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
            raise ArgumentError(
                f"bounds of column {name!r} must be two finite numbers that rise; declare what is "
                f"possible, not what was seen, or list its values: categories={{{name!r}: [...]}}"
            )
        if not upper / 2 - lower / 2 > 0:
            raise ArgumentError(f"bounds of column {name!r} lie too close to each other")
        found.append(FeatureColumn(name, (lower, upper)))
    return tuple(found)


def _listed(
    names: Sequence[str], categories: Mapping[Hashable, Sequence[Any]] | None
) -> dict[str, tuple[Hashable, ...]]:
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise ArgumentError('categories must be a mapping, such as {"region": ["north", "south"]}')
    found = {}
    for column, values in categories.items():
        if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < len(names):
            name = names[column]
        elif column in names:
            name = str(column)
        else:
            raise ArgumentError(f"categories: there is no column {column!r}")
        try:
            made = tuple(dict.fromkeys(values))
        except TypeError:
            made = ()
        if not made or isinstance(values, str) or len(made) != len(values):
            raise ArgumentError(
                f"categories of column {name!r} must be a list of different values, one at least"
            )
        found[name] = made
    return found


def names_of(table: Any) -> tuple[str, ...]:
    """The names of a table's columns; of an array ``x0``, ``x1``, ..."""
    if hasattr(table, "columns"):
        return tuple(map(str, table.columns))
    if hasattr(table, "toarray"):
        raise ArgumentError("X must not be a sparse matrix: give X.toarray()")
    shape = np.shape(table) if isinstance(table, np.ndarray) else np.asarray(table, object).shape
    if len(shape) != 2 or not shape[1]:
        raise ArgumentError("X must be a table: an array of two dimensions, or a data frame")
    return tuple(f"x{i}" for i in range(shape[1]))


def read_columns(columns: Sequence[FeatureColumn], table: Any) -> list[Integers]:
    """Of each column the cells of all rows; raises as `series_of`."""
    found = series_of(columns, table)
    return [column.places(values) for column, values in zip(columns, found, strict=True)]


def series_of(columns: Sequence[FeatureColumn], table: Any) -> list[Any]:
    """The values of each column, in the order that was declared.

    Raises
    ------
    ArgumentError
        The table has other columns. Nothing depends on what the values are.
    """
    names = names_of(table)
    if len(names) != len(columns):
        raise ArgumentError(f"X must have {len(columns)} columns; it has {len(names)}")
    if hasattr(table, "columns"):
        wanted = [column.name for column in columns]
        if sorted(names) != sorted(wanted) and not all(n == f"x{i}" for i, n in enumerate(wanted)):
            missing = sorted(set(wanted) - set(names))
            raise ArgumentError(f"X must have the columns that were fitted; it lacks {missing}")
        known = dict(zip(names, table.columns, strict=True))
        order = wanted if sorted(names) == sorted(wanted) else names
        return [table[known[name]] for name in order]
    if is_masked(table):
        return [table[:, i] for i in range(len(columns))]
    array = np.asarray(table, None if isinstance(table, np.ndarray) else object)
    return [array[:, i] for i in range(len(columns))]


def numbers(values: Any) -> Floats:
    """Doubles, with NaN for whatever is not a number."""
    return doubles(_array(values), texts=True)


def days(values: Any) -> Floats:
    """Days since 1970, with NaN for whatever is neither a day nor a moment."""
    array = _array(values)
    if array.dtype.kind == "M":
        found = array.astype("datetime64[us]")
        whole = np.where(np.isnat(found), 0, found.astype(np.int64))
        return np.where(np.isnat(found), np.nan, whole / 86_400e6)
    return np.array([_day(v) for v in array.tolist()], dtype=np.float64)


def _day(value: Any) -> float:
    if isinstance(value, dt.datetime):
        midnight = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        return midnight / dt.timedelta(days=1)
    if isinstance(value, dt.date):
        return float(value.toordinal() - _FIRST_DAY)
    if isinstance(value, str):
        try:
            return _day(dt.datetime.fromisoformat(value))
        except ValueError:
            return math.nan
    return math.nan


def _array(values: Any) -> npt.NDArray[Any]:
    try:
        found = array_of(values)
    except TypeError:
        found = None
    if found is None or found.ndim != 1:
        raise ArgumentError("y must be one value for each row: an array of one dimension")
    return found


def places_in(listed: Sequence[Hashable], values: Any) -> Integers:
    """The place of each value in a list; the one after the last for what is not in it."""
    known = {value: i for i, value in enumerate(listed)}
    array = _array(values)
    return np.array([_place(known, v) for v in array.tolist()], dtype=np.int64)


def _place(known: Mapping[Hashable, int], value: Any) -> int:
    try:
        return known.get(value, len(known))
    except Exception:
        return len(known)
