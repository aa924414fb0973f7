"""How a Parquet file is read: so that no value fails a query, and none becomes another's.

The engine's own reader is fast, and two of its habits would break a promise. It turns timestamps in
milliseconds into microseconds as it reads, and fails on the first that does not fit. And it
replaces each byte of a text that is not UTF-8 by ``?``, so that two people's identifiers could
become one. Both happen before any expression could see the value. So a file is read

- by the engine itself where it has no timestamps in milliseconds and its unit is not text;
- through Arrow otherwise, several times slower. Milliseconds arrive there as the whole numbers that
  are stored, and become timestamps in the years 1 to 9999, else NULL. Text arrives as its bytes.

Either way text that is not UTF-8 fails nothing: each byte that has no place in it is read as ``?``.
In the column that says who is protected such a text is NULL instead, and its rows are nobody's; a
question mark that is stored is a character like any other.

Arrow's reader is pyarrow, of the extra ``arrow``. Without it there is the engine's own alone: units
of text that hold a ``?`` are then NULL, as nobody can say whether it was stored, and files with
timestamps in milliseconds are refused.

Arrow has habits of its own. It reads categories with indices of the width that the file's writer
had, and fails where a group of rows has more of them; and it takes moments of 96 bits for another
type than the engine does. A file with such columns is read by the engine where it has no
milliseconds, and then every unit whose text holds a ``?`` is NULL; else they are not read. Columns
that are not read are left out of what Arrow is asked for, as the engine looks at the first even
where nobody names it.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._extras import missing
from dither.engines.duckdb.frames import is_plain, is_text
from dither.engines.duckdb.names import FILE, keyed, listed, text
from dither.engines.files import Files
from dither.engines.writer.dialect import LAST_MOMENT
from dither.errors import PolicyError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["FIELDS", "ArrowRoute", "arrow_route", "direct", "footers", "nobody"]

FIELDS = (
    "SELECT file_name, name, type, num_children, converted_type, scale, precision, logical_type "
    "FROM parquet_schema({files})"
)
"""The names and types of the columns of files as they have them now, each after its file."""

UNREAD = (
    "it stands beside timestamps in milliseconds or a unit of text, where its type is not read; "
    "hand over a frame"
)
ODD = (
    "it holds categories with indices of other than 32 bits, or timestamps of 96 bits, beside "
    "timestamps in milliseconds, where these are not read; store it as plain text or as timestamps "
    "in microseconds, or hand over a frame"
)

MILLIS = re.compile(r"TIMESTAMP_MILLIS|Timestamp.*MILLIS=(?!<null>)")
"""What `FIELDS` says of stored milliseconds, in whichever of two ways a writer noted them."""

MOMENTS = "TIMESTAMP"
"""How the names of all types begin that the engine gives to stored milliseconds."""

EPOCH = dt.datetime(1970, 1, 1)
FIRST = (dt.datetime(1, 1, 1) - EPOCH) // dt.timedelta(milliseconds=1)
LAST = (LAST_MOMENT - EPOCH) // dt.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ArrowRoute:
    """Files that are read through Arrow.

    Parameters
    ----------
    files : Files
    found, schema : Arrow schema
        That of each file, and that they are read by, in which no type is converted by value.
    columns : mapping of str to str
        By name, as the engine gives them: the SQL of a column's value.
    unread : mapping of str to str
        Columns that cannot be read, and why.
    """

    files: Files
    found: Any
    schema: Any
    columns: Mapping[str, str]
    unread: Mapping[str, str]

    def register(self, connection: DuckDBPyConnection, name: str) -> None:
        """Let a name of the engine stand for the files as they are when they are next read.

        Arrow remembers what it has seen of a file, so this comes before each run.
        """
        from pyarrow import dataset, fs

        form, local = dataset.ParquetFileFormat(), fs.LocalFileSystem()
        values = self.files.values or ((),) * len(self.files.paths)
        parts = [
            form.make_fragment(str(path), local, _expression(self.files.keys, row))
            for path, row in zip(self.files.paths, values, strict=True)
        ]
        connection.register(name, dataset.FileSystemDataset(parts, self.schema, form, local))

    def unchanged(self) -> bool:
        """Whether every file still has the types that it was opened with."""
        from pyarrow import parquet

        return all(parquet.read_schema(p).equals(self.found) for p in self.files.paths)


def _expression(keys: Sequence[str], values: Sequence[str | None]) -> Any:
    """What Arrow fills the columns of a file's keys from."""
    from pyarrow import dataset

    held = [
        dataset.field(key).is_null() if value is None else dataset.field(key) == value
        for key, value in zip(keys, values, strict=True)
    ]
    return reduce(and_, held) if held else None


TAIL = 8
"""Bytes at a file's end: the length of its footer, and four letters."""


def footers(paths: Sequence[Path]) -> tuple[bytes, ...]:
    """A digest of each file's footer, which says all that there is to know of its columns.

    While it is what it was, so are the names and types; and it is read in a fraction of the time
    that the engine takes to make sense of it.

    Raises
    ------
    OSError
        Where a file cannot be read.
    """
    found = []
    for path in paths:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL, 0))
            length = TAIL + int.from_bytes(file.read(TAIL)[:4], "little")
            # A length that lies asks for no more than there is.
            file.seek(max(size - length, 0))
            found.append(hashlib.blake2b(file.read(min(size, length))).digest())
    return tuple(found)


def direct(files: Files, unit: str | None = None, *, named: bool = False) -> str:
    """The rows as the engine's own reader gives them.

    Parameters
    ----------
    files : Files
    unit : str, optional
        A name in SQL, of the unit where it is text: NULL where it holds what a bad byte is read as.
    named : bool
        Whether the rows say which file they are of, as the column ``FILE``.
    """
    rows = "*"
    if unit is not None:
        rows = f"* REPLACE (CASE WHEN contains({unit}, '?') THEN NULL ELSE {unit} END AS {unit})"
    own = f", filename = {text(FILE)}" if files.keys or named else ""
    return keyed(
        f"SELECT {rows} FROM read_parquet({listed(files.paths)}, hive_partitioning = false, "
        f"utf8_validation = 'replace'{own})",
        files,
        named=named,
    )


def nobody(unit: str) -> str:
    """Whom the engine's own reader leaves out, where the unit is text, and what would help."""
    helps = (
        "install pyarrow, which reads the file otherwise: pip install 'dither[arrow]'"
        if find_spec("pyarrow") is None
        else "store its categories with indices of 32 bits, and its timestamps in microseconds"
    )
    return (
        f"{unit!r} is text in a Parquet file that DuckDB reads by itself: it puts ? for a byte "
        f"that is not text, so people with a ? in {unit!r} are nobody's, and in no answer; "
        f"{helps}, or keep identifiers as whole numbers"
    )


def arrow_route(
    files: Files,
    types: Mapping[str, str],
    fields: Sequence[Sequence[Any]],
    unit: str | None,
    quoted: Callable[[str], str],
) -> ArrowRoute | None:
    """How to read files through Arrow; ``None`` where the engine's own reader is safe.

    Parameters
    ----------
    files : Files
    types : mapping of str to str
        Their own columns as the engine's reader has them.
    fields : sequence
        What `FIELDS` says of one of them.
    unit : str, optional
        The column that says who is protected.
    quoted : callable
        Writes a name.

    Raises
    ------
    MissingLibraryError
        Where it has timestamps in milliseconds, and pyarrow is not installed.
    """
    if types.get(unit or "") != "VARCHAR" and not any(
        k.startswith(MOMENTS) for k in types.values()
    ):
        # Nothing that Arrow could be asked for, so that it need not be loaded: it is large.
        return None
    if find_spec("pyarrow") is None:
        if any(MILLIS.search(str(said)) for field in fields for said in field[1:]):
            raise missing("pyarrow", "arrow", "files with timestamps in milliseconds need")
        return None
    import pyarrow as pa
    from pyarrow import parquet

    found = parquet.read_schema(files.paths[0])
    late = [pa.types.is_timestamp(field.type) and field.type.unit == "ms" for field in found]
    odd = [_read_otherwise(f.type, own, pa) for f, own in zip(found, types.values(), strict=True)]
    if not any(late) and (types.get(unit or "") != "VARCHAR" or any(odd)):
        return None
    if any(not parquet.read_schema(path).equals(found) for path in files.paths[1:]):
        raise PolicyError(
            "its files do not all have the same columns, of the same types also as Arrow has them; "
            "write those that differ anew"
        )
    if len(set(found.names)) < len(found.names):
        raise PolicyError(
            "two columns of the file have one name beside timestamps in milliseconds or a unit of "
            "text; rename one of them"
        )
    fields, columns, unread = [], {}, {}
    for field, is_late, is_odd, (name, own) in zip(found, late, odd, types.items(), strict=True):
        kept = None if is_odd else _as_stored(field.type, pa)
        if kept is None:
            unread[name] = ODD if is_odd else UNREAD
            continue
        fields.append(pa.field(field.name, kept))
        value = quoted(name)
        if is_late:
            columns[name] = _moment(value, own)
        elif own == "VARCHAR" and _is_text(kept, pa):
            whole = f"decode(encode({value})"
            columns[name] = f"TRY({whole}))" if name == unit else f"{whole}, 'replace')"
        elif own == "VARCHAR[]":
            columns[name] = f"[decode(encode(one), 'replace') FOR one IN {value}]"
        else:
            columns[name] = value
    for key in files.keys:
        fields.append(pa.field(key, pa.string()))
        columns[key] = quoted(key)
    return ArrowRoute(files, found, pa.schema(fields), columns, unread)


def _moment(value: str, own: str) -> str:
    made = f"make_timestamp(CASE WHEN {value} BETWEEN {FIRST} AND {LAST} THEN {value} * 1000 END)"
    return f"CAST({made} AS {own})"


def _is_text(kind: Any, pa: Any) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind, pa.types)


def _read_otherwise(kind: Any, own: str, pa: Any) -> bool:
    """Whether Arrow's reader may fail on a value, or give another type than the engine's."""
    if pa.types.is_dictionary(kind) and _is_text(kind, pa):
        return kind.index_type not in (pa.int32(), pa.uint32())
    nanoseconds = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return nanoseconds and own != "TIMESTAMP_NS"


def _as_stored(kind: Any, pa: Any) -> Any:
    """The type to read as, which no value can fail to have; ``None`` where there is none."""
    types = pa.types
    if types.is_timestamp(kind) and kind.unit == "ms":
        return pa.int64()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_list(kind) or types.is_large_list(kind):
        inner = kind.value_type
        return kind if is_plain(inner, types) or is_text(inner, types) else None
    read = is_plain(kind, types) or types.is_timestamp(kind) or _is_text(kind, pa)
    return kind if read else None
