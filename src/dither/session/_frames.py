"""A public table as a text that can be sent, and read where it may be anybody's.

It is JSON, compressed: of each column its name, its kind and its values. No reader of files is let
near what others send, and no more is unpacked than `MOST_BYTES`.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from dither.errors import ArgumentError

__all__ = ["frame_from", "frame_to"]

MOST_BYTES = 2**24
"""Of a table as JSON, once it is unpacked."""

KINDS: Mapping[str, Any] = {
    "integer": pl.Int64,
    "real": pl.Float64,
    "text": pl.String,
    "flag": pl.Boolean,
    "date": pl.Date,
    "time": pl.Datetime("us"),
}


def frame_to(frame: pl.DataFrame) -> str:
    """A table as text.

    Raises
    ------
    ArgumentError
        It is too large, or a column is of a kind that is not sent.

    Examples
    --------
    >>> frame = pl.DataFrame({"age": [41, None], "sex": ["f", "m"]})
    >>> frame_from(frame_to(frame)).equals(frame)
    True
    """
    written = json.dumps([_column(one) for one in frame.get_columns()]).encode()
    if len(written) > MOST_BYTES:
        raise ArgumentError(
            f"a table of {frame.height:,} rows is too large to be sent: take the columns that are "
            "asked about, and fewer rows"
        )
    return base64.b64encode(zlib.compress(written, 6)).decode()


def _column(column: pl.Series) -> list[Any]:
    dtype = column.dtype
    if dtype == pl.Categorical or isinstance(dtype, pl.Enum):
        column = column.cast(pl.String)
    elif isinstance(dtype, pl.Datetime):
        column = column.cast(pl.Datetime("us"))
    elif dtype == pl.Null:
        column = column.cast(pl.Int64)
    elif dtype == pl.UInt64 or isinstance(dtype, pl.Decimal):
        column = column.cast(pl.Float64)
    elif dtype.is_integer():
        column = column.cast(pl.Int64)
    elif dtype.is_float():
        column = column.cast(pl.Float64)
    kind = next((name for name, known in KINDS.items() if column.dtype == known), None)
    if kind is None:
        raise ArgumentError(
            f"column {column.name!r} holds {dtype}, which is not sent to a service: numbers, "
            "texts, dates and times are"
        )
    return [column.name, kind, [_written(value) for value in column.to_list()]]


def _written(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.isoformat() if isinstance(value, dt.date) else value


def frame_from(text: Any) -> pl.DataFrame:
    """Read what `frame_to` wrote, which may be anybody's.

    Raises
    ------
    ArgumentError
        It is something else, or too large.
    """
    try:
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(base64.b64decode(text, validate=True), MOST_BYTES)
        if unpacking.unconsumed_tail or not unpacking.eof:
            raise ValueError
        columns = [_read(*one) for one in json.loads(raw)]
        if len({one.name for one in columns}) < len(columns):
            raise ValueError
        return pl.DataFrame(columns)
    except (
        binascii.Error,
        zlib.error,
        pl.exceptions.PolarsError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ):
        raise ArgumentError(
            f"ask holds a table that cannot be read, or of more than {MOST_BYTES:,} bytes"
        ) from None


_READS: Mapping[str, tuple[type | tuple[type, ...], Callable[[Any], Any]]] = {
    "integer": (int, int),
    "real": ((int, float, str), float),
    "text": (str, str),
    "flag": (bool, bool),
    "date": (str, dt.date.fromisoformat),
    "time": (str, dt.datetime.fromisoformat),
}


def _read(name: Any, kind: Any, values: Any) -> pl.Series:
    if not isinstance(name, str) or "\0" in name or not isinstance(values, list):
        raise TypeError
    name.encode("utf-8")
    types, read = _READS[kind]
    if not all(value is None or isinstance(value, types) for value in values):
        raise TypeError
    found = [None if value is None else read(value) for value in values]
    return pl.Series(name, found, dtype=KINDS[kind], strict=True)
