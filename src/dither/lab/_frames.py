"""Frames in and out: Polars, pandas and pyarrow tables, and columns as integer codes.

NULL and NaN are values of their own: all NULLs of a column are equal, all NaNs are, and neither
equals the other or anything else. So a person whose age is missing hides among those whose age is
missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither._extras import check_library
from dither.errors import ArgumentError, nearest
from dither.lab._grouping import Ints
from dither.numeric import secure_words

__all__ = [
    "Coded",
    "as_given",
    "as_it_is",
    "columns_of",
    "encode",
    "in_rows",
    "names",
    "one_column",
    "read",
    "released",
    "secret_order",
    "sorted_codes",
    "texts",
]


_FARTHEST = 90_000_000
"""Days from 1970: the calendar that Polars writes ends some 262,000 years away."""


class Coded(NamedTuple):
    """A column as codes, and the distinct values in the order of codes."""

    codes: NDArray[np.int32]
    values: pl.Series

    @property
    def size(self) -> int:
        """How many distinct values there are."""
        return len(self.values)


def released(table: object, argument: str) -> pl.DataFrame:
    """A table as Polars, or the ``frame`` of a release that has one."""
    return read(getattr(table, "frame", table), argument)


def read(frame: object, argument: str = "frame") -> pl.DataFrame:
    """The frame as Polars.

    Raises
    ------
    ArgumentError
        Where it is not a frame, or has no row or no column.
    """
    if isinstance(frame, pl.LazyFrame):
        raise ArgumentError(f"{argument} is lazy: pass {argument}.collect()")
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if isinstance(frame, pl.DataFrame):
        found = frame
    elif pandas is not None and isinstance(frame, pandas.DataFrame):
        columns = [str(name) for name in frame.columns]
        if len(set(columns)) < len(columns):
            raise ArgumentError(f"{argument} must have a different name for every column")
        found = pl.DataFrame(
            [_from_pandas(name, frame.iloc[:, i]) for i, name in enumerate(columns)]
        )
    elif arrow is not None and isinstance(frame, arrow.Table):
        if len(set(frame.column_names)) < len(frame.column_names):
            raise ArgumentError(f"{argument} must have a different name for every column")
        found = pl.DataFrame(frame)
    else:
        raise ArgumentError(
            f"{argument} must be a Polars or pandas DataFrame or a pyarrow Table, "
            f"not {type(frame).__name__}"
        )
    if not found.height or not found.width:
        raise ArgumentError(f"{argument} is empty: it needs at least one row and one column")
    return found


def _from_pandas(name: str, column: Any) -> pl.Series:
    check_library("pyarrow", "arrow", "frames of pandas need")
    if column.dtype == object:
        # Arrow would read 1 beside a date as the second of January 1970; here a cell is what it is.
        missing = column.isna().tolist()
        cells = [None if m else v for v, m in zip(column.tolist(), missing, strict=True)]
        if len({type(cell) for cell in cells if cell is not None}) > 1:
            return pl.Series(name, _distinct_texts(cells), dtype=pl.String)
        found = one_column(cells).alias(name)
        # Neither pandas nor Arrow has whole numbers of 128 bits, so there would be no way back.
        return found.cast(pl.String) if found.dtype == pl.Int128 else found
    try:
        return pl.Series(name, pl.from_pandas(column, nan_to_null=False))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    except Exception as error:
        # pyarrow is imported by now: it is what refused.
        if not type(error).__module__.startswith("pyarrow"):
            raise
    return pl.Series(name, _distinct_texts(column.tolist()), dtype=pl.String)


def _distinct_texts(values: Sequence[object]) -> list[str | None]:
    """Objects of mixed types as texts, where 1 and "1" stay two values."""
    return [
        None
        if value is None
        else _encodable(value if isinstance(value, str) else f"{value!s} ({type(value).__name__})")
        for value in values
    ]


def _encodable(text: str) -> str:
    """The text with lone surrogates written out, as no file could hold them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_given(frame: pl.DataFrame, given: object) -> Any:
    """The frame in the kind that was given."""
    if isinstance(given, pl.DataFrame):
        return frame
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(given, arrow.Table):
        return frame.to_arrow()
    return frame.to_pandas()


def as_it_is(column: pl.Series, coded: Coded) -> pl.Series | Coded:
    """The column, with one way to write equal values: a sign would tell 0.0 from -0.0."""
    return coded if column.dtype.is_float() or column.dtype.is_nested() else column


def in_rows(name: str, column: pl.Series | Coded, rows: Ints | None = None) -> pl.Series:
    """A column, by its codes where it has some, in the order of these rows or of its own."""
    if isinstance(column, Coded):
        codes = column.codes if rows is None else column.codes[rows]
        return column.values.gather(codes).alias(name)
    return column if rows is None else column.gather(rows)


def names(argument: str, asked: object, frame: pl.DataFrame, *, some: bool = True) -> list[str]:
    """The columns that an argument names, checked.

    Raises
    ------
    ArgumentError
        For an unknown or repeated name, or none at all where ``some`` is needed.
    """
    if isinstance(asked, str):
        asked = [asked]
    if not isinstance(asked, Iterable):
        raise ArgumentError(f"{argument} must be a list of column names")
    found = list(asked)
    for name in found:
        if not isinstance(name, str):
            raise ArgumentError(f"{argument} must be a list of column names")
        if name not in frame.columns:
            raise ArgumentError(
                f"{argument} has an unknown column {name!r}{nearest(name, frame.columns)}"
            )
    if len(set(found)) < len(found):
        raise ArgumentError(f"{argument} names a column twice")
    if some and not found:
        raise ArgumentError(f"{argument} must name at least one column")
    return found


def columns_of(argument: str, asked: object, frame: pl.DataFrame, release: object) -> list[str]:
    """The columns that an argument names, or by default those that the release says itself."""
    if asked is None:
        asked = getattr(release, "sensitive" if argument == "sensitive" else "quasi", None)
        if asked is None:
            raise ArgumentError(f"{argument} must name columns: the table does not say them itself")
    return names(argument, asked, frame)


def one_column(column: object, argument: str = "column") -> pl.Series:
    """A column as a Polars series."""
    if isinstance(column, pl.Series):
        return column
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(column, pandas.Series):
        return _from_pandas(str(column.name or ""), column)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):
        try:
            return pl.Series(column, strict=True)
        except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
            return pl.Series(_distinct_texts(column), dtype=pl.String)
    raise ArgumentError(
        f"{argument} must be a Polars or pandas Series or a list, not {type(column).__name__}"
    )


def encode(column: pl.Series) -> Coded:
    """The codes of a column; equal values have equal codes."""
    name, dtype = column.name, column.dtype
    if dtype == pl.Object:
        column = pl.Series(name, _distinct_texts(column.to_list()), dtype=pl.String)
    elif isinstance(dtype, pl.Enum) or dtype == pl.Categorical:
        column = column.cast(pl.String)
    elif dtype == pl.Date or dtype == pl.Datetime:
        column = _within_calendar(column)
    if column.dtype == pl.String:
        return _encode_text(column)
    # Grouping knows that NaN equals NaN and that -0.0 equals 0.0.
    groups = (
        pl.DataFrame({"value": column})
        .with_row_index("row")
        .group_by("value", maintain_order=True)
        .agg("row")
    )
    sizes = groups["row"].list.len().to_numpy()
    rows = groups["row"].explode().to_numpy()
    codes = np.empty(len(column), dtype=np.int32)
    codes[rows] = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return Coded(codes, groups["value"].alias(name))


def sorted_codes(column: pl.Series) -> tuple[Ints, list[Any]]:
    """The codes of a column in the order of its values, NULL first, and the value of each.

    Examples
    --------
    >>> sorted_codes(pl.Series(["b", None, "b"]))
    (array([1, 0, 1]), [None, 'b'])
    """
    coded = encode(texts(column) if column.dtype.is_nested() else column)
    order = coded.values.arg_sort(nulls_last=False).to_numpy()
    rank = np.empty(coded.size, dtype=np.int64)
    rank[order] = np.arange(coded.size)
    return rank[coded.codes], coded.values.gather(order).to_list()


def _within_calendar(column: pl.Series) -> pl.Series:
    """Dates, or their numbers where one is so far off that Polars cannot write it."""
    number = column.to_physical().cast(pl.Int64)
    unit = getattr(column.dtype, "time_unit", None)
    per_day = {None: 1, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}[unit]
    lowest, highest = cast("int | None", number.min()), cast("int | None", number.max())
    if lowest is None or highest is None:
        return column
    return column if max(-lowest, highest) <= _FARTHEST * per_day else number


def _encode_text(column: pl.Series) -> Coded:
    """Texts by Polars' own dictionary, which numbers every text it has seen in this process."""
    physical = column.cast(pl.Categorical).to_physical()
    filled = physical.cast(pl.Int64).fill_null(-1).to_numpy() + 1
    top = int(filled.max(initial=0))
    if top <= max(1 << 16, 4 * len(filled)):
        there = np.bincount(filled, minlength=top + 1) > 0
        number: Ints = np.cumsum(there) - 1
        codes = number[filled]
        some = np.zeros(top + 1, dtype=np.int64)
        some[filled] = np.arange(len(filled))
        first = some[there]
    else:
        _, first, codes = np.unique(filled, return_index=True, return_inverse=True)
    return Coded(codes.astype(np.int32), column.gather(first))


def texts(values: pl.Series) -> pl.Series:
    """Values as the text that a CSV file of them would hold; NaN is ``NaN``, NULL stays NULL."""
    if values.dtype == pl.String:
        return values
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Binary, pl.Duration):
        said = [None if v is None else str(v) for v in values.to_list()]
        return pl.Series(values.name, said, dtype=pl.String)
    return values.cast(pl.String)


def secret_order(rows: int) -> Ints:
    """A uniform permutation: words sorted, drawn again while two are equal."""
    while True:
        words = secure_words().words(rows)
        order = np.argsort(words)
        ordered = words[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order
