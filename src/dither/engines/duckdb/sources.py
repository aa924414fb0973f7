"""What a table can be read from, and how it becomes a view of the engine.

Parquet, DuckDB databases and frames in memory carry a schema. A CSV file carries names only, so all
of its columns are text, read as the kinds that the policy declares.

How a CSV file is read
----------------------
One line is one row, whatever it holds: a line ends at LF, CR or CRLF, and no quote reaches beyond
it. So a malformed row can never change another. Within a line, a field may stand in double quotes,
with a double quote inside written twice. An empty field without quotes is NULL, missing fields at
the end are NULL, surplus fields are left out. A line that is not UTF-8, and one longer than two
million bytes, is left out. Nothing is guessed from the values. Files whose quoted fields span lines
should be converted to Parquet first.

``engines.duckdb.parquet`` says how a Parquet file is read.

The names and types of columns are public. They are read when a source is opened, and must be the
same whenever it is read: else another column could stand in a column's place.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.engines import Format
from dither.engines.duckdb import parquet
from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.duckdb.frames import NO_COLUMN, to_arrow
from dither.engines.duckdb.views import Rowwise, rowwise
from dither.engines.writer.rows import Stored
from dither.errors import ArgumentError, PolicyError, nearest
from dither.plan.text import unwritable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "FileSource",
    "FrameSource",
    "Source",
    "as_source",
    "attach",
    "layout",
    "quoted",
]

FORMATS = {
    "parquet": Format((".parquet",)),
    "csv": Format((".csv", ".csv.gz"), delimited=True),
    "duckdb": Format((".duckdb", ".db"), holds_tables=True),
}


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file.

    Parameters
    ----------
    path : str or Path
    format : str
        ``"parquet"``, ``"csv"`` (also compressed with gzip) or ``"duckdb"``.
    table : str, optional
        The table of a DuckDB database, where needed with its schema: ``"schema.table"``.
    delimiter : str
        The one character between the fields of a CSV file.
    unit : str, optional
        The column that says who is protected.
    """

    path: str | Path
    format: str
    table: str | None = None
    delimiter: str = ","
    unit: str | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            hint = nearest(self.format, sorted(FORMATS))
            raise ArgumentError(f"format {self.format!r} is not read{hint}")
        if self.format == "duckdb" and not self.table:
            raise ArgumentError("table: say which table of the DuckDB database is meant")
        if any(c in str(self.path) for c in "*?["):
            raise ArgumentError("path: a file name with *, ? or [ is not read; rename the file")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n\\':
            raise ArgumentError("delimiter: one character is needed, not a quote or a line end")


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A Polars, pandas or Arrow frame in memory; read in place where its memory allows it.

    Parameters
    ----------
    frame : frame
    unit : str, optional
        The column that says who is protected. Of a pandas column of Python objects texts alone are
        kept there, since the number 7 and the text '7' are two people's.
    """

    frame: Any
    unit: str | None = None


Source = FileSource | FrameSource
Execute = Callable[[str], Sequence[Any]]


def as_source(given: Any) -> Source:
    """A path by its ending, or a frame.

    Examples
    --------
    >>> as_source("visits.csv.gz").format
    'csv'
    """
    if isinstance(given, FileSource | FrameSource):
        return given
    if not isinstance(given, str | Path):
        return FrameSource(given)
    for name, form in FORMATS.items():
        if str(given).lower().endswith(form.endings):
            return FileSource(given, name)
    known = ", ".join(ending for form in FORMATS.values() for ending in form.endings)
    raise ArgumentError(f"path: unknown ending; known: {known}")


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def attach(connection: DuckDBPyConnection, view: str, source: Source) -> Stored:
    """Make ``view`` read the source. Runs before the connection is locked.

    Raises
    ------
    PolicyError
        Where the source is not there, or not what it is said to be.
    """
    if isinstance(source, FrameSource):
        table, odd, objects = to_arrow(source.frame, source.unit)
        connection.register(view, table)
        found = Stored(
            view,
            {**_described(connection, view), **dict.fromkeys(odd)},
            computed=frozenset(objects) - {source.unit or ""},
        )
        return _with_names(found, "the frame")
    path = Path(source.path).resolve()
    if not path.is_file():
        raise PolicyError(f"no file {str(source.path)!r}")
    shown = repr(str(source.path))
    computed, complete = frozenset[str](), True
    if source.format == "duckdb":
        rows = _database(connection, view, path, source.table or "")
        select = DUCKDB.sql(rows.select)
        computed, complete = rows.columns.computed, not rows.filtered
    elif source.format == "csv":
        select, complete = _lines(path, source.delimiter), False
    else:
        select = parquet.direct(_text(str(path)))
    try:
        connection.execute(f"CREATE VIEW {quoted(view)} AS {select}")
        types: dict[str, str | None] = dict(_described(connection, view))
        found_layout = layout(lambda sql: connection.execute(sql).fetchall(), source)
    except PolicyError:
        raise
    except Exception:
        raise PolicyError(f"{shown} cannot be read as {source.format}") from None
    unread: Mapping[str, str] = {}
    route = None
    if source.format == "parquet":
        # Bytes that are not UTF-8 are replaced in all text but the unit's.
        computed = frozenset(n for n, k in types.items() if k == "VARCHAR" and n != source.unit)
        route = _read_safely(connection, view, path, types, source.unit, shown)
        unread = route.unread if route is not None else {}
    found = Stored(
        view, types | dict.fromkeys(unread), unread, computed, complete, found_layout, route
    )
    return _with_names(found, shown)


def _read_safely(
    connection: DuckDBPyConnection,
    view: str,
    path: Path,
    types: Mapping[str, str | None],
    unit: str | None,
    shown: str,
) -> parquet.ArrowRoute | None:
    """Make ``view`` read a Parquet file safely, where the engine's own reader alone does not."""
    kinds = {name: kind or "" for name, kind in types.items()}
    try:
        route = parquet.arrow_route(path, kinds, unit, quoted)
    except PolicyError as error:
        raise PolicyError(f"{shown}: {error}") from None
    except Exception:
        raise PolicyError(f"{shown} cannot be read as parquet") from None
    if route is not None:
        route.register(connection, arrow_name(view))
        columns = [f"{value} AS {quoted(name)}" for name, value in route.columns.items()]
        select = f"SELECT {', '.join(columns)} FROM {arrow_name(view)}"
    elif unit is not None and types.get(unit) == "VARCHAR":
        select = parquet.direct(_text(str(path)), quoted(unit))
    else:
        return None
    connection.execute(f"CREATE OR REPLACE VIEW {quoted(view)} AS {select}")
    # What is rehearsed over empty tables has these types, and so must have what is read.
    for name, kind in _described(connection, view).items():
        if kind != types[name]:
            raise PolicyError(f"{shown}: its column {name!r} is not read as what it is stored as")
    return route


def arrow_name(view: str) -> str:
    """What the rows are called that a view reads through Arrow."""
    return f"{view}_arrow"


def _with_names(found: Stored, shown: str) -> Stored:
    for position, name in enumerate(found.types, start=1):
        fault = unwritable(name)
        if fault is not None:
            raise PolicyError(f"{shown}: the name of its column {position} {fault}")
    return found


def layout(execute: Execute, source: FileSource) -> tuple[Any, ...]:
    """The names and types of a file's columns as the file has them now.

    A DuckDB database is held open as it was, so there is nothing that could have changed.

    Parameters
    ----------
    execute : callable
        Gives the rows of a query.
    source : FileSource

    Raises
    ------
    PolicyError
        Where a CSV file does not begin with names.
    duckdb.Error
        Where a Parquet file cannot be read.
    """
    path = Path(source.path).resolve()
    if source.format == "csv":
        return tuple(_header(path, source.delimiter))
    if source.format == "parquet":
        return tuple(execute(parquet.FIELDS.format(path=_text(str(path)))))
    return ()


def _described(connection: DuckDBPyConnection, view: str) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE SELECT * FROM {quoted(view)}").fetchall()
    return {name: kind for name, kind, *_ in rows if name != NO_COLUMN}


def _database(connection: DuckDBPyConnection, view: str, path: Path, table: str) -> Rowwise:
    database = f"{view}_database"
    try:
        connection.execute(f"ATTACH {_text(str(path))} AS {quoted(database)} (READ_ONLY)")
    except Exception:
        raise PolicyError(
            f"{str(path)!r} cannot be opened as a DuckDB database; if another program has it open "
            "for writing, close it there, or name a copy"
        ) from None
    found = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = ?",
        [database],
    ).fetchall()
    names = {
        name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found
    }
    if table not in names:
        raise PolicyError(f"no table {table!r} in {str(path)!r}" + nearest(table, names))
    return rowwise(connection, database, *names[table])


def _header(path: Path, delimiter: str) -> list[str]:
    """The column names in the first line of a CSV file."""
    opener = _opener(path)
    try:
        with opener(path, "rb") as file:
            line = file.readline(2_000_000).replace(b"\r", b"\n").split(b"\n")[0]
        first = line.decode("utf-8-sig")
        names = next(csv.reader([first], delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise PolicyError(f"{str(path)!r} is not UTF-8; save it as UTF-8 first") from None
    except (OSError, EOFError, csv.Error):
        zipped = "; is it really compressed with gzip?" if opener is gzip.open else ""
        raise PolicyError(
            f"{str(path)!r} does not begin with a line of column names{zipped}"
        ) from None
    if not names or len(set(names)) < len(names) or not all(names):
        raise PolicyError(f"{str(path)!r}: its first line must name every column, each once")
    return names


def _opener(path: Path) -> Any:
    return gzip.open if path.name.lower().endswith(".gz") else open


def _lines(path: Path, delimiter: str) -> str:
    names = _header(path, delimiter)
    # The characters below do not occur in text: no line is cut and none is NULL.
    lines = (
        f"read_csv({_text(str(path))}, auto_detect = false, header = false, skip = 1,"
        " columns = {'line': 'VARCHAR'}, delim = '\x02', quote = '', escape = '', nullstr = '\x03',"
        " new_line = '\\n', strict_mode = false, null_padding = true, ignore_errors = true,"
        f" compression = '{'gzip' if _opener(path) is gzip.open else 'none'}')"
    )
    between = _text(delimiter)
    escaped = "\\" + delimiter if not delimiter.isalnum() and delimiter.isascii() else delimiter
    pattern = _text(f'("(?:[^"]|"")*"|[^{escaped}]*)({escaped}|$)')
    fields = (
        f"""SELECT CASE WHEN contains(line, '"') THEN regexp_extract_all(line, {pattern}, 1)"""
        f" ELSE string_split(line, {between}) END AS fields FROM {lines}"
    )
    columns = ", ".join(f"{_field(i)} AS {quoted(name)}" for i, name in enumerate(names, start=1))
    return f"SELECT {columns} FROM ({fields})"


def _field(position: int) -> str:
    field = f"fields[{position}]"
    return (
        f"CASE WHEN {field} = '' THEN NULL"
        f""" WHEN starts_with({field}, '"') AND ends_with({field}, '"') AND length({field}) > 1"""
        f""" THEN replace({field}[2:length({field}) - 1], '""', '"') ELSE {field} END"""
    )
