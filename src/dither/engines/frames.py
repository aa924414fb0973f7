"""Frames in memory as Arrow tables that the engine reads in place."""

from __future__ import annotations

from typing import Any

from dither.errors import ArgumentError, PolicyError

__all__ = ["NO_COLUMN", "to_arrow"]

NO_COLUMN = "\x01"


def to_arrow(frame: Any) -> tuple[Any, tuple[str, ...]]:
    """The frame as an Arrow table, and the columns whose type cannot be read.

    Polars and Arrow frames are not copied; of a pandas frame, only what pandas keeps as Python
    objects. Text that is not valid Unicode is NULL: mended, two people's names could become one.

    Raises
    ------
    ArgumentError
        Where it is not a frame.
    PolicyError
        Where a column of a pandas frame mixes types, or a name occurs twice.
    """
    import pyarrow as pa

    table = _table(frame, pa)
    names = table.column_names
    if len(set(names)) < len(names):
        raise PolicyError("a frame names a column twice; give each its own name")
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
    return pa.table(kept), tuple(unread)


def _table(frame: Any, pa: Any) -> Any:
    if type(frame).__module__.split(".")[0] == "pandas":
        return _from_pandas(frame, pa)
    if type(frame).__module__.split(".")[0] == "polars" and hasattr(frame, "collect"):
        frame = frame.collect()
    try:
        return frame.to_arrow() if hasattr(frame, "to_arrow") else pa.table(frame)
    except Exception:
        if hasattr(frame, "get_columns"):
            return pa.table({column.name: _column(column, pa) for column in frame.get_columns()})
        raise ArgumentError(
            "a source must be a path, or a Polars, pandas or Arrow frame; got "
            + type(frame).__name__
        ) from None


def _column(column: Any, pa: Any) -> Any:
    """A Polars column, or, where Arrow has no such type, one that is not read."""
    try:
        return column.to_arrow()
    except Exception:
        return pa.nulls(len(column), pa.binary())


def _from_pandas(frame: Any, pa: Any) -> Any:
    columns = {}
    for position, name in enumerate(frame.columns):
        series = frame.iloc[:, position]
        if str(name) in columns:
            raise PolicyError("a frame names a column twice; give each its own name")
        try:
            columns[str(name)] = pa.chunked_array(_chunks(pa.Array.from_pandas(series)))
        except Exception:
            columns[str(name)] = pa.chunked_array([_words(series, str(name), pa)])
    return pa.table(columns)


def _chunks(array: Any) -> list[Any]:
    return list(array.chunks) if hasattr(array, "chunks") else [array]


def _words(series: Any, name: str, pa: Any) -> Any:
    values = series.tolist()
    if any(not isinstance(v, str) and v is not None and v == v for v in values):
        raise PolicyError(f"column {name!r} of a pandas frame mixes types; convert it to one")
    valid = [v if isinstance(v, str) and _is_unicode(v) else None for v in values]
    return pa.array(valid, pa.large_string())


def _is_unicode(word: str) -> bool:
    try:
        word.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


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
            _readable(column.cast(kind.value_type), pa)
            if _is_text(kind.value_type, types)
            else None
        )
    if _is_text(kind, types):
        return _valid_text(column, pa)
    if types.is_timestamp(kind) or types.is_date64(kind):
        return _stamps(column, pa)
    plain = (
        types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_date32(kind)
        or (types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    )
    if plain:
        return column
    return column.cast(pa.float32()) if types.is_float16(kind) else None


def _is_text(kind: Any, types: Any) -> bool:
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
