"""Frames in memory as Arrow tables that the engine reads in place."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np

from dither._extras import extra_library
from dither.engines.duckdb.polars_frames import to_stream
from dither.engines.files import OWNER, Files
from dither.errors import ArgumentError, PolicyError
from dither.plan.text import unwritable

__all__ = ["NO_COLUMN", "from_arrow_files", "is_plain", "is_text", "to_arrow"]

NO_COLUMN = "\x01"


def to_arrow(frame: Any, unit: str | None = None) -> tuple[Any, tuple[str, ...], tuple[str, ...]]:
    """The frame as Arrow, the columns whose type cannot be read, and those of objects.

    Polars and Arrow frames are not copied; of a pandas frame, only what pandas keeps as Python
    objects. A Polars frame needs no other library, all others pyarrow. Text that is not valid
    Unicode is NULL: mended, two people's names could become one.

    The types come from the frame's own schema and never from its values, which are private. So a
    pandas column of Python objects is always text: a text as it is, a number, truth value or date
    as it prints, anything else NULL. In the column ``unit`` texts alone are kept, since the number
    7 and the text '7' are two people's.

    Raises
    ------
    ArgumentError
        Where it is not a frame.
    MissingLibraryError
        Where it needs pyarrow, which is not installed.
    PolicyError
        Where a name occurs twice, or cannot be written.
    """
    _check_names(frame)
    library = type(frame).__module__.split(".")[0]
    if library == "polars" and hasattr(frame, "collect"):
        try:
            frame = frame.collect()
        except Exception:
            # Its own words may hold a value.
            raise PolicyError("a lazy frame cannot be computed; collect it first") from None
    if library == "polars" and hasattr(frame, "get_columns"):
        stream, odd = to_stream(frame, NO_COLUMN)
        return stream, odd, ()
    if library != "pandas" and not any(hasattr(frame, name) for name in _ARROW):
        raise _no_frame(frame)
    pa = extra_library("pyarrow", "arrow", "frames of pandas and Arrow need")
    table, objects = _table(frame, unit, pa)
    names = table.column_names
    kept: dict[str, Any] = {}
    unread: list[str] = []
    for name in names:
        column = _readable(table.column(name), pa)
        if column is None:
            unread.append(name)
        else:
            kept[name] = column
    if not kept:
        # A table without columns would lose its number of rows.
        kept[NO_COLUMN] = pa.nulls(table.num_rows, pa.bool_())
    return pa.table(kept), tuple(unread), objects


def from_arrow_files(files: Files, unit: str | None, shown: str) -> tuple[Any, tuple[str, ...]]:
    """Arrow files (Feather among them) as one table in memory, and the columns that are not read.

    All is checked before a value is looked at: offsets that lie would lead outside of the memory
    that holds the text.

    Raises
    ------
    MissingLibraryError
        Where pyarrow is not installed.
    PolicyError
        Where a file is not an Arrow file, damaged, or of other columns than the first.
    """
    pa = extra_library("pyarrow", "arrow", "files of Arrow need")
    parts: list[Any] = []
    first: Any = None
    for number, path in enumerate(files.paths):
        try:
            with pa.OSFile(str(path)) as file:
                table = pa.ipc.open_file(file).read_all()
            for column in table.columns:
                _as_bytes(column, pa).validate(full=True)
        except Exception:
            raise PolicyError(
                f"{shown} cannot be read as Arrow's file format; write it with "
                "polars.DataFrame.write_ipc or pyarrow.feather.write_feather"
            ) from None
        first = first or table.schema
        if not table.schema.equals(first):
            raise PolicyError(
                f"the files of {shown} do not all have the same columns, in one order and of the "
                f"same types; write those that differ anew, which {OWNER} names"
            )
        _check_names(table)
        for key, value in zip(files.keys, files.values[number] if files.keys else (), strict=True):
            if key.casefold() in {name.casefold() for name in first.names}:
                raise PolicyError(
                    f"{shown}: a key of its folders is a column of its files too; rename one"
                )
            table = table.append_column(key, pa.array([value] * table.num_rows, pa.string()))
        parts.append(table)
    # Categories of two files differ, and are read as the texts that they stand for.
    plain, odd, _ = to_arrow(pa.concat_tables([_decoded_table(t, pa) for t in parts]), unit)
    return plain, odd


def _as_bytes(column: Any, pa: Any) -> Any:
    """Text as its bytes, whose offsets are checked without what they lead to."""
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    kinds[pa.string_view()] = pa.binary_view()
    kind = kinds.get(column.type)
    return column if kind is None else pa.chunked_array([c.view(kind) for c in column.chunks], kind)


def _decoded_table(table: Any, pa: Any) -> Any:
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and is_text(field.type.value_type, pa.types):
            words = [
                chunk.dictionary.cast(pa.large_string()).take(chunk.indices)
                for chunk in table.column(place).chunks
            ]
            plain = pa.chunked_array(words, pa.large_string())
            table = table.set_column(place, field.name, plain)
    return table


def _check_names(frame: Any) -> None:
    """Names as Arrow and the engine take them; some libraries fail hard on others."""
    found = getattr(frame, "column_names", None)
    if found is None and hasattr(frame, "collect_schema"):
        found = frame.collect_schema().names()
    if found is None:
        found = getattr(frame, "columns", None)
    if found is None or callable(found):
        found = getattr(getattr(frame, "schema", None), "names", None)
    try:
        names = [str(name) for name in (() if found is None else found)]
    except Exception:
        return
    if len(set(names)) < len(names):
        raise PolicyError("a frame names a column twice; give each its own name")
    for name in names:
        fault = unwritable(name)
        if fault is not None:
            raise PolicyError(f"the name of column {names.index(name) + 1} of a frame {fault}")


def _table(frame: Any, unit: str | None, pa: Any) -> tuple[Any, tuple[str, ...]]:
    if type(frame).__module__.split(".")[0] == "pandas":
        return _from_pandas(frame, unit, pa)
    try:
        return frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame), ()
    except Exception:
        raise _no_frame(frame) from None


_ARROW = ("to_arrow", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "to_batches")
"""What a frame has that can be read as Arrow."""


def _no_frame(given: Any) -> ArgumentError:
    return ArgumentError(
        "a source must be a path, or a Polars, pandas or Arrow frame; got " + type(given).__name__
    )


def _from_pandas(frame: Any, unit: str | None, pa: Any) -> tuple[Any, tuple[str, ...]]:
    columns, objects = {}, []
    for position, label in enumerate(frame.columns):
        series, name = frame.iloc[:, position], str(label)
        if _of_objects(series.dtype):
            objects.append(name)
            columns[name] = pa.chunked_array([_words(series, name == unit, pa)])
            continue
        try:
            columns[name] = pa.chunked_array(_chunks(pa.Array.from_pandas(series)))
        except Exception:
            # A dtype that Arrow lacks, whatever it holds.
            columns[name] = pa.chunked_array([pa.nulls(len(series), pa.binary())])
    return pa.table(columns), tuple(objects)


def _of_objects(dtype: Any) -> bool:
    """Whether pandas keeps Python objects, of which each may be of another type."""
    categories = getattr(dtype, "categories", None)
    return str(dtype if categories is None else categories.dtype) == "object"


def _chunks(array: Any) -> list[Any]:
    return list(array.chunks) if hasattr(array, "chunks") else [array]


def _words(series: Any, only_text: bool, pa: Any) -> Any:
    values = series.astype(object).tolist()
    return pa.array([_word(v, only_text) for v in values], pa.large_string())


def _word(value: Any, only_text: bool) -> str | None:
    """One object as text. No method of its own is called: there is nothing that could raise."""
    if isinstance(value, str):
        text = str.__str__(value)
        return text if unwritable(text, null=True) is None else None
    if only_text:
        return None
    kind = type(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
        kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value) if abs(value) < 10**40 else None
    if kind is float:
        return str(value) if value == value else None
    if kind is Decimal:
        return None if value.is_nan() else str(value)
    if kind is dt.datetime or kind is dt.date:
        return str(value)
    if isinstance(value, dt.datetime) and kind.__module__.startswith("pandas") and value == value:
        return str(value)
    return None


def _decoded(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _readable(column: Any, pa: Any) -> Any:
    """The column in a type that the engine reads without failing; ``None`` if there is none."""
    kind = column.type
    types = pa.types
    if types.is_dictionary(kind):
        return (
            _readable(column.cast(kind.value_type), pa) if is_text(kind.value_type, types) else None
        )
    if is_text(kind, types):
        return _valid_text(column, pa)
    if types.is_timestamp(kind) or types.is_date64(kind):
        return _stamps(column, pa)
    if is_plain(kind, types):
        return column
    if types.is_fixed_size_list(kind):
        column = column.cast(pa.large_list(kind.value_type))
        return _lists(column, pa)
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists(column, pa)
    return column.cast(pa.float32()) if types.is_float16(kind) else None


def _lists(column: Any, pa: Any) -> Any:
    """Lists of what is read as it is, or of text, of which what is not valid is NULL."""
    kind = column.type.value_type
    if is_plain(kind, pa.types):
        return column
    if not is_text(kind, pa.types):
        return None
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_list(pa.large_binary())).to_pylist()
        valid = [v and [None if w is None else _decoded(w) for w in v] for v in raw]
        return pa.chunked_array([pa.array(valid, pa.large_list(pa.large_string()))])
    return column


def is_plain(kind: Any, types: Any) -> bool:
    """Whether an Arrow type is one of those that the engine reads as they are."""
    return bool(
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_date32(kind)
        or (types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    )


def is_text(kind: Any, types: Any) -> bool:
    """Whether an Arrow type is one of its three for text."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _valid_text(column: Any, pa: Any) -> Any:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_binary()).to_pylist()
        valid = [None if v is None else _decoded(v) for v in raw]
        return pa.chunked_array([pa.array(valid, pa.large_string())])
    return column


def _stamps(column: Any, pa: Any) -> Any:
    """Seconds and milliseconds as microseconds, in which what does not fit is NULL."""
    import pyarrow.compute as pc

    kind = column.type
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    if unit in ("us", "ns"):
        return column
    scale = {"s": 1_000_000, "ms": 1_000}[unit]
    zone = None if pa.types.is_date64(kind) else kind.tz
    ticks = column.cast(pa.int64())
    largest = (2**63 - 1) // scale
    fits = pc.and_(pc.greater_equal(ticks, -largest), pc.less_equal(ticks, largest))
    held = pc.if_else(fits, ticks, pa.scalar(None, pa.int64()))
    return pc.multiply(held, scale).cast(pa.timestamp("us", zone))
