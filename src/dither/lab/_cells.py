"""Tables as codes: the same cell of a column has the same code in all of them.

A column of numbers or of times that has many values is cut where the real ones divide into parts of
equal size, so that a table of counts has more rows than cells. NULL is a cell of its own, and so is
NaN. A value that only one table has is a cell in which the others have nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import whole
from dither.errors import ArgumentError, nearest
from dither.lab._frames import released, sorted_codes
from dither.lab._grouping import Ints

__all__ = [
    "Bins",
    "CodedColumn",
    "alike",
    "coded",
    "distances_of",
    "kind_of",
    "under_one_another",
]

Floats = npt.NDArray[np.float64]
Bins = int | None | Mapping[str, int | Sequence[Any] | None]

_KINDS = {
    "text": "texts",
    "number": "numbers",
    "boolean": "booleans",
    "date": "dates",
    "datetime": "times of a date",
}


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A column of all tables, as codes.

    Attributes
    ----------
    name : str
    codes : array of int64
        Of the rows of each table, one under the other.
    size : int
        How many cells there are.
    place : array of float64 or None
        Where a value lies between the least and the largest, in [0, 1]; of NULL and NaN, NaN. None
        where values have no order that a distance could rest on.
    labels : sequence of str
        The cells in words.
    """

    name: str
    codes: Ints = field(repr=False)
    size: int
    place: Floats | None = field(repr=False)
    labels: tuple[str, ...] = field(repr=False)


def alike(given: Mapping[str, object], columns: object = None) -> tuple[pl.DataFrame, ...]:
    """Tables by their arguments' names, as Polars, with the columns of the first in its order.

    Raises
    ------
    ArgumentError
        Where a table is empty, or columns or their kinds differ.
    """
    leading = next(iter(given))
    found: list[pl.DataFrame] = []
    wanted: list[str] = []
    for argument, one in given.items():
        table = released(one, argument)
        if not found:
            wanted = _named(columns, table.columns)
        missing = [name for name in wanted if name not in table.columns]
        if missing:
            raise ArgumentError(
                f"{argument} has no column {missing[0]!r}, which {leading} has"
                f"{nearest(missing[0], table.columns)}: name the columns to compare by columns="
            )
        more = [name for name in table.columns if name not in wanted]
        if more and columns is None:
            raise ArgumentError(
                f"{argument} has a column {more[0]!r} that {leading} has not: name the columns to "
                "compare by columns="
            )
        table = table.select(wanted)
        for name in wanted if found else []:
            ours, theirs = (kind_of(t.schema[name]) for t in (found[0], table))
            if ours != theirs and "null" not in (ours, theirs):
                one_kind, other = (_KINDS.get(kind, kind) for kind in (ours, theirs))
                raise ArgumentError(
                    f"column {name!r} holds {one_kind} in {leading} and {other} in {argument}: "
                    "cast one of them"
                )
        found.append(table)
    return tuple(found)


def _named(asked: object, there: Sequence[str]) -> list[str]:
    if asked is None:
        return list(there)
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        raise ArgumentError("columns must be a list of column names")
    found = list(asked)
    for name in found:
        if name not in there:
            close = nearest(name, there) if isinstance(name, str) else ""
            raise ArgumentError(f"columns has an unknown column {name!r}{close}")
    if not found or len(set(found)) < len(found):
        raise ArgumentError("columns must name at least one column, each once")
    return found


def kind_of(dtype: pl.DataType) -> str:
    """What a column holds, where Polars has several types for it."""
    if dtype == pl.String or dtype == pl.Categorical or isinstance(dtype, pl.Enum):
        return "text"
    if dtype.is_numeric():
        return "number"
    if dtype == pl.Boolean:
        return "boolean"
    if dtype == pl.Datetime:
        return "datetime"
    return str(dtype).lower()


def coded(frames: Sequence[pl.DataFrame], bins: Bins) -> tuple[CodedColumn, ...]:
    """The columns of tables, one under the other; cut by the values of the first of them.

    Raises
    ------
    ArgumentError
        For bins of a column that is not there or has no order, or that do not rise.
    """
    names = frames[0].columns
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in names:
                close = nearest(name, names) if isinstance(name, str) else ""
                raise ArgumentError(f"bins has an unknown column {name!r}{close}")
        asked = {name: bins.get(name, 32) for name in names}
    else:
        asked = dict.fromkeys(names, bins)
    return tuple(_coded(name, [f[name] for f in frames], asked[name]) for name in names)


def distances_of(columns: Sequence[CodedColumn]) -> list[tuple[Ints, Floats | None]]:
    """What `nearest_rows` measures along."""
    return [(c.codes, c.place) for c in columns]


def _coded(name: str, parts: Sequence[pl.Series], bins: Any) -> CodedColumn:
    kind = next((k for k in map(kind_of, (p.dtype for p in parts)) if k != "null"), "null")
    if bins is not None and not isinstance(bins, Sequence):
        bins = whole("bins", bins, 2)
    if kind not in ("number", "date", "datetime"):
        if isinstance(bins, Sequence):
            raise ArgumentError(f"bins of column {name!r}: its values have no order to cut along")
        if kind == "text":
            parts = [p.cast(pl.String) for p in parts]
        return _listed(name, under_one_another(parts), None)
    values = np.concatenate([_numbers(p) for p in parts])
    missing = np.concatenate([p.is_null().to_numpy() for p in parts])
    place = _place(values)
    if isinstance(bins, str):
        raise ArgumentError(f"bins of column {name!r} must be a number or a list of rising edges")
    if isinstance(bins, Sequence):
        return _cut(name, values, missing, _edges(name, bins), place)
    known = values[np.isfinite(values)]
    if bins is None or len(np.unique(known)) <= bins:
        return _listed(name, under_one_another(parts), place)
    own = values[: len(parts[0])]
    own = own[np.isfinite(own)]
    own = known if not len(own) else own
    first = np.minimum(-(-np.arange(1, bins) * len(own) // bins), len(own) - 1)
    cuts = np.unique(np.sort(own)[first])
    return _cut(name, values, missing, cuts, place)


def under_one_another(parts: Sequence[pl.Series]) -> pl.Series:
    """Columns of one kind as one."""
    kinds = [p.dtype for p in parts if p.dtype != pl.Null]
    wanted = kinds[0] if kinds else pl.Boolean()
    if any(kind != wanted for kind in kinds):
        if all(kind.is_integer() for kind in kinds):
            wanted = pl.Int128()
        elif wanted.is_numeric():
            wanted = pl.Float64()
        else:
            wanted = pl.Datetime("us")
            parts = [
                p.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
                if getattr(p.dtype, "time_zone", None)
                else p
                for p in parts
            ]
    return pl.concat([p.cast(wanted) for p in parts])


def _numbers(column: pl.Series) -> Floats:
    """Numbers, or days or microseconds from 1970, as doubles; NULL is NaN."""
    if not column.dtype.is_numeric():
        column = column.to_physical()
    return np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)


def _place(values: Floats) -> Floats:
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    # In halves, whose difference no pair of doubles overflows.
    wide = high / 2 - low / 2
    if wide == 0.0:
        return np.where(np.isnan(values), np.nan, np.sign(values - low))
    return np.asarray(np.clip((values / 2 - low / 2) / wide, 0.0, 1.0))


def _edges(name: str, bins: Sequence[Any]) -> Floats:
    try:
        found = _numbers(pl.Series(list(bins)))
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        found = np.empty(0)
    if not len(found) or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
        raise ArgumentError(f"bins of column {name!r} must be a number or a list of rising edges")
    return found


def _cut(
    name: str,
    values: Floats,
    missing: npt.NDArray[np.bool_],
    cuts: Floats,
    place: Floats,
) -> CodedColumn:
    """Cells from one cut to below the next, as bins of a policy are; then NaN and NULL, if any."""
    codes = np.searchsorted(cuts, values, side="right").astype(np.int64)
    said = [f"{x:.6g}" for x in cuts]
    labels: tuple[str, ...] = (
        f"below {said[0]}",
        *(f"{low} to {high}" for low, high in pairwise(said)),
        f"from {said[-1]}",
    )
    for odd, label in ((np.isnan(values) & ~missing, "NaN"), (missing, "NULL")):
        if odd.any():
            codes[odd] = len(labels)
            labels = (*labels, label)
    return CodedColumn(name, codes, len(labels), place, labels)


def _listed(name: str, column: pl.Series, place: Floats | None) -> CodedColumn:
    codes, values = sorted_codes(column)
    return CodedColumn(name, codes, len(values), place, tuple(map(_label, values)))


def _label(value: object) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
