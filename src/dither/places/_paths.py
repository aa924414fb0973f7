"""Paths as records: who was where and when, a public grid, and what is kept of each unit.

A row that cannot be read, such as one with NaN for a coordinate or without a unit, is left out; so
is a point outside the grid. Both follow from the row alone, and neither raises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._columns import array_of, is_text, numbers
from dither.errors import ArgumentError
from dither.numeric import secure_words
from dither.privacy import Loss

if TYPE_CHECKING:
    from dither.ledger import Ledger
    from dither.ledger._bindings import BearingAccount

__all__ = [
    "Floats",
    "Integers",
    "Paths",
    "PlaceGrid",
    "checked_gap",
    "checked_grid",
    "checked_paths",
    "kept_rows",
    "places_in",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_MOST_CELLS = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, init=False)
class PlaceGrid:
    """Square cells over a map. It is public: no cell may be chosen by looking at the data.

    Parameters
    ----------
    rows, columns : int
        At least 1 each; at most 2**20 cells. A cell's code is row·columns + column.
    cell : number
        The side of a cell, in the units of the coordinates; read exactly.
    left, bottom : number
        The corner with the least x and the least y.
    unit : str
        Of a distance, for reading.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Examples
    --------
    >>> grid = PlaceGrid(2, 3, cell=1, unit="km")
    >>> grid.locate([0.5, 2.9, 3.0, float("nan")], [0.5, 1.5, 0.5, 0.5]).tolist()
    [0, 5, -1, -1]
    """

    rows: int
    columns: int
    cell: Fraction
    left: Fraction
    bottom: Fraction
    unit: str

    def __init__(
        self,
        rows: int,
        columns: int,
        cell: Number,
        *,
        left: Number = 0,
        bottom: Number = 0,
        unit: str = "unit",
    ) -> None:
        found = {
            "rows": check.whole("rows", rows, 1, _MOST_CELLS),
            "columns": check.whole("columns", columns, 1, _MOST_CELLS),
            "cell": check.positive("cell", cell),
            "left": check.exact("left", left),
            "bottom": check.exact("bottom", bottom),
            "unit": str(unit),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if self.cells > _MOST_CELLS:
            raise ArgumentError(f"the grid must have at most {_MOST_CELLS:,} cells")
        ends = (self.left, self.bottom, self.cell * max(rows, columns))
        if any(abs(end) > 10**15 for end in ends) or self.cell < Fraction(1, 10**15):
            raise ArgumentError("cell, left and bottom must be of sizes from 1e-15 to 1e15")

    @property
    def cells(self) -> int:
        """How many there are."""
        return self.rows * self.columns

    @property
    def said(self) -> tuple[object, ...]:
        """What makes the grid, in numbers."""
        return self.rows, self.columns, self.cell, self.left, self.bottom

    def _steps(self, x: Any, y: Any) -> tuple[Floats, Floats]:
        across, up = _doubles("x", x), _doubles("y", y)
        if across.size != up.size:
            raise ArgumentError("x and y must be of one length")
        with np.errstate(all="ignore"):
            side = float(self.cell)
            return (
                np.floor((across - float(self.left)) / side),
                np.floor((up - float(self.bottom)) / side),
            )

    def locate(self, x: Any, y: Any) -> Integers:
        """Codes of the cells that hold some points; -1 for points outside, or that are none.

        Parameters
        ----------
        x, y : array of float, shape (n,)
        """
        column, row = self._steps(x, y)
        inside = (column >= 0) & (column < self.columns) & (row >= 0) & (row < self.rows)
        # What is outside, NaN and infinities too, is 0 before it is cast.
        column, row = np.where(inside, column, 0.0), np.where(inside, row, 0.0)
        found = row.astype(np.int64) * self.columns + column.astype(np.int64)
        return np.where(inside, found, -1)

    def nearest(self, x: Any, y: Any) -> Integers:
        """Codes of the cells nearest to some points; of what is no point, the middle cell.

        For a device, which must send a report whatever it holds.
        """
        column, row = self._steps(x, y)
        found = []
        for step, size in ((row, self.rows), (column, self.columns)):
            known = np.where(np.isnan(step), size // 2, step)
            found.append(np.clip(known, 0, size - 1).astype(np.int64))
        return np.asarray(found[0] * self.columns + found[1])

    def codes_of(self, name: str, values: Any) -> Integers:
        """Codes of cells that were handed in, checked.

        Raises
        ------
        ArgumentError
            They are none of this grid's.
        """
        try:
            found = np.asarray(values)
        except (TypeError, ValueError):
            found = np.asarray(None)
        # NumPy has an empty list for one of doubles.
        whole = found.dtype.kind in "iu" or not found.size
        if not whole or (found.size and not (found.min() >= 0 and found.max() < self.cells)):
            raise ArgumentError(f"{name} must be codes of the grid's cells, from 0 on")
        return found.astype(np.int64)

    def centres(self, codes: Any) -> tuple[Floats, Floats]:
        """x and y of the middles of some cells."""
        row, column = np.divmod(self.codes_of("codes", codes), self.columns)
        side = float(self.cell)
        return (
            np.asarray(float(self.left) + (column + 0.5) * side),
            np.asarray(float(self.bottom) + (row + 0.5) * side),
        )

    def distances(self) -> Floats:
        """Of all cells' middles, shape (cells, cells), in units of distance."""
        x, y = self.centres(np.arange(self.cells))
        return np.hypot(x[:, None] - x, y[:, None] - y)

    def __str__(self) -> str:
        return f"{self.rows} × {self.columns} cells of {float(self.cell):g} {self.unit}"


class Paths:
    """Who was where and when: a unit is all of its rows, in the order of their times.

    It holds people's data and shows none of them.

    Parameters
    ----------
    unit : column
        Who a row is of: numbers, texts, or anything that can be told apart. A row whose unit is
        missing is left out.
    time : column
        Seconds, or moments; a day is its midnight. Moments without a zone are read as UTC. A row
        whose time is missing is left out, and so is one of a text: read texts as moments first.
    x, y : column of float
        Where. Rows with NaN or infinities lie in no cell, and neither does a text.

    Raises
    ------
    ArgumentError
        They are no columns, or not of one length; ``time``, ``x`` or ``y`` is a column of texts by
        its declared type. No value of the data raises anything.

    Examples
    --------
    >>> paths = Paths(["a", "a", None], [60, 0, 0], [1.5, 0.5, 0.5], [0.5, 0.5, 0.5])
    >>> paths
    <Paths: rows of units, protected>
    >>> Paths.of({"u": [1], "t": [0], "x": [0.1], "y": [0.1]}, unit="u", time="t", x="x", y="y")
    <Paths: rows of units, protected>
    """

    __slots__ = ("_bearer", "_place", "_time", "_unit")

    _bearer: BearingAccount | None

    def __init__(self, unit: Any, time: Any, x: Any, y: Any) -> None:
        codes, moment = _codes(unit), _moments(time)
        place = (_doubles("x", x), _doubles("y", y))
        if len({codes.size, moment.size, place[0].size, place[1].size}) > 1:
            raise ArgumentError("unit, time, x and y must be of one length")
        kept = np.flatnonzero((codes >= 0) & np.isfinite(moment))
        order = kept[np.lexsort((moment[kept], codes[kept]))]
        self._unit, self._time = codes[order], moment[order]
        self._place = place[0][order], place[1][order]
        self._bearer = None

    @classmethod
    def of(cls, frame: Any, *, unit: str, time: str, x: str, y: str) -> Paths:
        """From the columns of a frame, or of a mapping from names to columns."""
        try:
            found = [frame[name] for name in (unit, time, x, y)]
        except Exception:
            raise ArgumentError(
                "unit, time, x and y must be names of the frame's columns"
            ) from None
        return cls(*found)

    def __repr__(self) -> str:
        return "<Paths: rows of units, protected>"

    def charged_to(self, ledger: Ledger, account: str, *, name: str = "paths") -> Paths:
        """The same paths, whose releases charge an account before anything is read.

        Parameters
        ----------
        ledger : Ledger
        account : str
            An account that is bound to the unit and the neighbours that releases state. A release
            that states another is refused, and costs nothing.
        name : str
            What the ledger calls these paths. Within a ledger they stay with the promise that they
            were first charged under.

        Raises
        ------
        ArgumentError
            It is no ledger, or no name.

        Examples
        --------
        >>> from dither import places
        >>> from dither.accounting import BudgetFilter
        >>> from dither.ledger import Ledger
        >>> from dither.privacy import Promise
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(pathlib.Path(folder.name) / "city.ledger")
        >>> opened = ledger.open_accounts({"riders": BudgetFilter(1, 0)}, Promise("rider"))
        >>> paths = Paths([1], [0], [0.5], [0.5]).charged_to(ledger, "riders")
        >>> found = places.visits(
        ...     paths, PlaceGrid(1, 1, 1), max_visits=1, epsilon=0.25, unit="rider")
        >>> ledger.balance("riders").spent.epsilon
        Fraction(1, 4)
        >>> ledger.close(); folder.cleanup()
        """
        from dither.ledger._bindings import BearingAccount

        made: Paths = object.__new__(Paths)
        made._unit, made._time, made._place = self._unit, self._time, self._place
        made._bearer = BearingAccount(ledger, account, name, "paths", "unit of a path")
        return made

    def charge(self, loss: Loss, what: str, *said: object) -> None:
        """Charge what is about to be released, where the paths have an account.

        Raises
        ------
        BudgetError, PromiseError
            The account cannot bear it, or protects another unit; nothing was charged.
        """
        if self._bearer is not None:
            self._bearer.charge(loss, what, *said)

    def located(self, grid: PlaceGrid) -> tuple[Integers, Floats, Integers]:
        """Units, times and cells of the rows that lie on a grid, in order."""
        cells = grid.locate(*self._place)
        inside = cells >= 0
        return self._unit[inside], self._time[inside], cells[inside]

    @property
    def points(self) -> tuple[Integers, Floats, Floats]:
        """Units and coordinates of all rows, in order."""
        return self._unit, *self._place

    def trips(self, grid: PlaceGrid, gap: float | None) -> tuple[Integers, Integers, Integers]:
        """Units, numbers of trips and cells; one begins after a pause of more than ``gap``."""
        unit, time, cells = self.located(grid)
        begins = np.ones(unit.size, dtype=np.bool_)
        begins[1:] = unit[1:] != unit[:-1]
        if gap is not None:
            with np.errstate(all="ignore"):
                begins[1:] |= np.diff(time) > gap
        return unit, np.cumsum(begins) - 1, cells


def kept_rows(unit: Integers, key: Integers, most: int, each: int) -> npt.NDArray[np.intp]:
    """Rows that count: of a unit at most ``each`` with one key, and at most ``most`` in all.

    Which of a unit's rows these are is a function of that unit's rows and of random words that are
    drawn for each row, independent of all others. So what is kept of one unit has the same law
    whoever else is there, and tables that differ in one unit differ in its kept rows alone.
    """
    words = secure_words()
    order = np.lexsort((words.words(unit.size), key, unit))
    order = order[_places(unit[order], key[order]) < each]
    order = order[np.lexsort((words.words(order.size), unit[order]))]
    return order[_places(unit[order]) < most]


def _places(*columns: Integers) -> Integers:
    """Of rows sorted by some columns, the place of each among those that agree in all."""
    size = columns[0].size
    begins = np.ones(size, dtype=np.bool_)
    begins[1:] = np.any([c[1:] != c[:-1] for c in columns], axis=0)
    at = np.arange(size)
    return np.asarray(at - np.maximum.accumulate(np.where(begins, at, 0)))


def places_in(unit: Integers) -> Integers:
    """The place of each row among those of its unit, which lie together."""
    return _places(unit)


def checked_paths(paths: Any) -> Paths:
    """Paths, or a clear refusal."""
    if not isinstance(paths, Paths):
        raise ArgumentError("paths must be Paths(unit, time, x, y), or Paths.of(frame, ...)")
    return paths


def checked_grid(grid: Any) -> PlaceGrid:
    """A grid, or a clear refusal."""
    if not isinstance(grid, PlaceGrid):
        raise ArgumentError("grid must be a PlaceGrid(rows, columns, cell=...)")
    return grid


def checked_gap(gap: Any) -> float | None:
    """A pause in seconds, or None."""
    return None if gap is None else float(check.positive("gap", gap))


def _doubles(name: str, values: Any) -> Floats:
    return _flat(name, numbers(name, values))


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    try:
        found = array_of(values)
    except TypeError:
        raise ArgumentError(f"{name} must be a column, such as a list or an array") from None
    return _flat(name, found)


def _flat(name: str, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if found.ndim != 1:
        raise ArgumentError(f"{name} must be a flat column, such as a list or an array")
    return found


def _moments(values: Any) -> Floats:
    found = _array("time", values)
    if is_text(values):
        raise ArgumentError(
            "time must hold seconds or moments, and is a column of texts: read them as moments "
            "first, as by Polars' str.to_datetime()"
        )
    if found.dtype.kind == "M":
        micro = found.astype("datetime64[us]")
        return np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 1e6)
    if found.dtype.kind == "O":
        found = np.array([_seconds(v) for v in found.tolist()], dtype=object)
    return _doubles("time", found)


def _seconds(value: Any) -> Any:
    try:
        if not isinstance(value, date):
            return value
        if not isinstance(value, datetime):
            return 86_400 * (value - _EPOCH.date()).days
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (aware - _EPOCH).total_seconds()
    except Exception:  # a moment or a time zone of somebody's own may do anything
        return math.nan


def _codes(values: Any) -> Integers:
    """Who is who: a number for each unit, -1 where it is missing."""
    found = _array("unit", values)
    if found.dtype.kind in "OV":
        known: dict[Any, int] = {}
        return np.array([_code(v, known) for v in found.tolist()], dtype=np.int64)
    missing = np.zeros(found.size, dtype=np.bool_)
    if found.dtype.kind in "fcMm":
        missing = found != found
    _, codes = np.unique(found, return_inverse=True)
    return np.where(missing, -1, codes.astype(np.int64).reshape(-1))


def _code(value: Any, known: dict[Any, int]) -> int:
    """What cannot be told apart from others, as a list cannot, is nobody's."""
    try:
        if value is None or value != value:
            return -1
        return known.setdefault(value, len(known))
    except Exception:
        return -1
