"""Frames of Polars, which the engine reads in place by Arrow's C interface, without a copy.

Polars keeps text that is Unicode and nothing else, so there is nothing to mend. What has another
meaning to the engine than to Polars is turned here, and what has none there is not read: the same
as of Arrow's tables in `engines.duckdb.frames`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Stream", "to_stream"]

ROWS = 122_880
"""Rows that the engine takes at a time: what stands in one piece is read by one thread."""

SCALES = {"ms": 1_000, "us": 1, "ns": 1}
"""Microseconds of a stored whole number, or 1 where the engine has the same unit."""


class Stream:
    """A frame of which the engine sees nothing but Arrow's C interface, as often as it asks.

    Parameters
    ----------
    frame : DataFrame
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    @property
    def num_columns(self) -> int:
        """How many columns it has."""
        return self._frame.width


def to_stream(frame: pl.DataFrame, none: str) -> tuple[Stream, tuple[str, ...]]:
    """The frame as the engine reads it, and the columns whose type cannot be read.

    Parameters
    ----------
    frame : DataFrame
    none : str
        The column that stands for all, where none can be read: without it the rows would be lost.
    """
    import polars as pl

    kept, unread = [], []
    for column in frame.get_columns():
        read = _readable(column)
        if read is None:
            unread.append(column.name)
        else:
            kept.append(read)
    if not kept:
        kept = [pl.Series(none, [None], dtype=pl.Boolean).extend_constant(None, frame.height)[1:]]
    whole = pl.DataFrame(kept).rechunk()
    parts = list(_parts(whole))
    return Stream(pl.concat(parts, rechunk=False) if len(parts) > 1 else whole), tuple(unread)


def _parts(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for start in range(0, frame.height, ROWS):
        yield frame.slice(start, ROWS)


def _readable(column: pl.Series) -> pl.Series | None:
    """The column in a type that the engine reads without failing; ``None`` if there is none."""
    import polars as pl

    kind: Any = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if isinstance(kind, pl.Datetime):
        return _stamps(column, kind)
    if isinstance(kind, pl.Array):
        column, kind = column.arr.to_list(), pl.List(kind.inner)
    if isinstance(kind, pl.List):
        inner: Any = kind.inner
        return column if _is_plain(inner) or inner == pl.String else None
    if kind == getattr(pl, "Float16", ""):
        return column.cast(pl.Float32)
    return column if _is_plain(kind) or kind == pl.String else None


def _is_plain(kind: Any) -> bool:
    import polars as pl

    if isinstance(kind, pl.Decimal):
        return kind.precision is None or 0 <= kind.scale <= kind.precision
    wide = kind in (pl.Int128, getattr(pl, "UInt128", pl.Int128))
    real = kind in (pl.Boolean, pl.Date, pl.Float32, pl.Float64)
    return bool(real or (kind.is_integer() and not wide))


def _stamps(column: pl.Series, kind: pl.Datetime) -> pl.Series:
    """Milliseconds as microseconds, in which what does not fit is NULL."""
    import polars as pl

    scale = SCALES[kind.time_unit]
    if scale == 1:
        return column
    ticks, largest = column.cast(pl.Int64), (2**63 - 1) // scale
    fits = ticks.is_between(-largest, largest)
    held = ticks.zip_with(fits.fill_null(False), pl.Series([None], dtype=pl.Int64))
    return (held * scale).cast(pl.Datetime("us", kind.time_zone)).alias(column.name)
