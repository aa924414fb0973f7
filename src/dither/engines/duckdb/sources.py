"""What a table can be read from, and how it becomes a view of the engine.

Parquet and Arrow files, DuckDB databases and frames in memory carry a schema. Lines of CSV have
names only and lines of JSON neither names nor types: ``engines.duckdb.lines`` says how these are
read. ``engines.duckdb.parquet`` says it of Parquet. An Arrow file is read into memory, and checked
as a frame is, when it is opened.

The names and types of columns are public. They are read when a source is opened, and must be the
same whenever it is read, and in all of its files: else another column could stand in a column's
place. So must the list of its files, which ``engines.files`` finds.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.engines import Format, format_by_ending
from dither.engines.duckdb import parquet
from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.duckdb.frames import NO_COLUMN, from_arrow_files, to_arrow
from dither.engines.duckdb.lines import csv_rows, header, json_rows
from dither.engines.duckdb.names import FILE, listed, quoted, text
from dither.engines.duckdb.views import Rowwise, rowwise
from dither.engines.files import OWNER, Files, Named, Wanted, find_files, is_many, shown_name
from dither.engines.writer.rows import Stored
from dither.errors import ArgumentError, MissingLibraryError, PolicyError, nearest
from dither.plan.schema import Kind
from dither.plan.text import unwritable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "FileSource",
    "FrameSource",
    "Source",
    "as_source",
    "attach",
    "attach_part",
    "files_of",
    "layout",
    "same_layout",
]

FORMATS = {
    "parquet": Format((".parquet",), many=True),
    "csv": Format((".csv", ".csv.gz", ".csv.zst"), delimited=True, many=True),
    "jsonl": Format(
        tuple(f".{n}{z}" for n in ("jsonl", "ndjson") for z in ("", ".gz", ".zst")),
        many=True,
        pointed=True,
    ),
    "arrow": Format((".arrow", ".feather", ".ipc"), many=True),
    "duckdb": Format((".duckdb", ".db"), holds_tables=True),
    "sqlite": Format((".sqlite", ".sqlite3"), holds_tables=True),
}

NO_SQLITE = (
    "is a SQLite database, which DuckDB reads by an extension that would have to be downloaded, "
    "and nothing is downloaded here; copy the table into a Parquet file or a DuckDB database, or "
    "hand it over as a frame: dither.open(..., sources={...: polars.read_database_uri(...)})"
)


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file, or several of one kind with the same columns.

    Parameters
    ----------
    path : path or sequence of paths
        A file, a pattern such as ``visits/*.parquet``, a folder, or a list of these.
    format : str
        ``"parquet"``, ``"csv"`` or ``"jsonl"`` (both also compressed with gzip or zstd),
        ``"arrow"`` or ``"duckdb"``.
    table : str, optional
        The table of a DuckDB database, where needed with its schema: ``"schema.table"``.
    delimiter : str
        The one character between the fields of a CSV file.
    unit : str, optional
        The column that says who is protected.
    columns : mapping of str to Kind or None
        Of JSON lines: the columns to read, and the kinds that are declared of them.
    block : str, optional
        The column that says in which block a row is. Where the names of folders give it, files of
        blocks that nobody asks for are not opened, not even to see what columns they have.
    """

    path: Named
    format: str
    table: str | None = None
    delimiter: str = ","
    unit: str | None = None
    columns: Mapping[str, Kind | None] = field(default_factory=dict)
    block: str | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            hint = nearest(self.format, sorted(FORMATS))
            raise ArgumentError(f"format {self.format!r} is not read{hint}")
        if self.format == "duckdb" and not self.table:
            raise ArgumentError("table: say which table of the DuckDB database is meant")
        if not FORMATS[self.format].many and is_many(self.path):
            raise ArgumentError(f"path: one file is needed of format {self.format!r}")
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


WIDE = 500
"""DESCRIBE takes the square of the number of columns, and from about here on longer than a look at
all that the engine knows."""

CATALOGUED = (
    "SELECT column_name, data_type FROM duckdb_columns() "
    "WHERE database_name IN ('memory', 'temp') AND table_name = ? ORDER BY column_index"
)

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
    several = isinstance(given, list | tuple) and all(isinstance(g, str | Path) for g in given)
    if not several and not isinstance(given, str | Path):
        return FrameSource(given)
    try:
        return FileSource(given, format_by_ending(given, FORMATS))
    except PolicyError as error:
        raise ArgumentError(f"path: {error}") from None


def files_of(source: FileSource, wanted: Wanted | None = None) -> Files:
    """The files of a source, as they are there now; ``wanted``: those of some texts of its key.

    Raises
    ------
    PolicyError
        Where there are none, or they cannot be read together.
    """
    asked = None if wanted is None or source.block is None else (source.block, wanted)
    found = find_files(source.path, FORMATS[source.format].endings, asked)
    if any(glob.has_magic(str(path)) for path in found.paths):
        raise PolicyError(
            f"{shown_name(source.path)}: the name of a file, or of a folder above it, holds *, ? "
            "or [, which the engine takes for a pattern; rename it"
        )
    return found


def attach(
    connection: DuckDBPyConnection,
    view: str,
    source: Source,
    *,
    by_file: bool = False,
    known: Files | None = None,
) -> Stored:
    """Make ``view`` read the source. Runs before the connection is locked.

    ``by_file``: another view says of each row which file it is of, where there are several.
    ``known``: the files that it had, where they are not to be found anew.

    Raises
    ------
    PolicyError
        Where the source is not there, or not what it is said to be.
    """
    if isinstance(source, FrameSource):
        table, odd, objects = to_arrow(source.frame, source.unit)
        connection.register(view, table)
        frame = Stored(
            view,
            {**_described(connection, view, table.num_columns), **dict.fromkeys(odd)},
            computed=frozenset(objects) - {source.unit or ""},
        )
        return _with_names(frame, "the frame")
    shown = shown_name(source.path)
    files = known or files_of(source)
    # Their owner may see what is wrong with any of them.
    parted = source.block in files.keys and not by_file
    if source.format == "arrow" and parted:
        raise PolicyError(
            f"{shown}: its folders are named by the column of blocks, {source.block!r}, and files "
            "of Arrow are read whole when they are opened, those of every block; write them as "
            "Parquet"
        )
    if source.format == "arrow":
        table, odd = from_arrow_files(files, source.unit, shown)
        connection.register(view, table)
        types = {**_described(connection, view, table.num_columns), **dict.fromkeys(odd)}
        return _with_names(Stored(view, types, layout=(files, ())), shown)
    if source.format == "sqlite":
        raise PolicyError(f"{shown} {NO_SQLITE}")
    computed, complete, unread = frozenset[str](), True, dict[str, str]()
    route, base, nobody = None, None, ""
    try:
        seal = () if parted else _seal(source, files)
        now, first = _layout_at_first(connection, source, files, parted=parted)
        if parted:
            # Jobs read views of their own, of the files of their blocks.
            files = files.only([first])
        if source.format == "duckdb":
            rows = _database(connection, view, files.paths[0], source.table or "")
            select = DUCKDB.sql(rows.select)
            computed, complete = rows.columns.computed, not rows.filtered
            base = rows.base
        elif source.format == "csv":
            select, complete = csv_rows(files, list(now[1]), source.delimiter), False
        elif source.format == "jsonl":
            if not source.columns:
                raise PolicyError(
                    f"{shown} is of JSON lines, which carry no schema; declare its columns and "
                    "their types in the policy"
                )
            columns = {n: k for n, k in source.columns.items() if n not in files.keys}
            select, complete = json_rows(files, columns, source.unit), False
        else:
            select = parquet.direct(files)
        connection.execute(f"CREATE VIEW {quoted(view)} AS {select}")
        found: dict[str, str | None] = dict(_described(connection, view, len(now[1])))
    except (MissingLibraryError, PolicyError):
        raise
    except Exception:
        raise PolicyError(f"{shown} cannot be read as {source.format}") from None
    if source.format == "parquet":
        # Bytes that are not UTF-8 are replaced in all text but the unit's.
        words = (n for n, k in found.items() if k == "VARCHAR" and n != source.unit)
        computed = frozenset(words) - set(files.keys)
        route = _read_safely(connection, view, files, found, now[1], source.unit, shown)
        unread = dict(route.unread) if route is not None else {}
        unit = source.unit
        if route is None and unit not in files.keys and found.get(unit or "") == "VARCHAR":
            nobody = parquet.nobody(unit or "")
    # A file that was exchanged meanwhile has no seal, and each time is read as it was here.
    seal = seal if seal and seal == _seal(source, now[0]) else ()
    types = found | dict.fromkeys(unread)
    stored = Stored(view, types, unread, computed, complete, now, seal, route)
    stored = replace(stored, base=base, nobody=nobody)
    if parted:
        stored = replace(stored, parted_by=source.block)
    if source.format == "duckdb":
        # Elsewhere a type lists what its writer met among the values.
        stored = replace(stored, labels=_labels(found))
    if by_file and len(files.paths) > 1 and route is None:
        named = _by_file(files, list(now[1]), source)
        connection.execute(f"CREATE VIEW {quoted(by_file_name(view))} AS {named}")
        stored = replace(stored, by_file=(by_file_name(view), FILE))
    return _with_names(stored, shown)


def by_file_name(view: str) -> str:
    """What the rows of a view are called beside the names of their files."""
    return f"{view}_by_file"


def _by_file(files: Files, names: list[Any], source: FileSource) -> str:
    """The rows of a source, each with the name of its file."""
    if source.format == "csv":
        return csv_rows(files, names, source.delimiter, named=True)
    if source.format == "jsonl":
        columns = {n: k for n, k in source.columns.items() if n not in files.keys}
        return json_rows(files, columns, source.unit, named=True)
    return parquet.direct(files, named=True)


def _labels(types: Mapping[str, str | None]) -> dict[str, tuple[str, ...]]:
    """The values that enumerations list, from types such as ``ENUM('a', 'b')``."""
    return {
        name: tuple(label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", kind))
        for name, kind in types.items()
        if kind is not None and kind.startswith("ENUM(")
    }


def _read_safely(
    connection: DuckDBPyConnection,
    view: str,
    files: Files,
    types: Mapping[str, str | None],
    fields: Sequence[Sequence[Any]],
    unit: str | None,
    shown: str,
) -> parquet.ArrowRoute | None:
    """Make ``view`` read Parquet files safely, where the engine's own reader alone does not."""
    kinds = {name: kind or "" for name, kind in types.items() if name not in files.keys}
    try:
        route = parquet.arrow_route(files, kinds, fields, unit, quoted)
    except MissingLibraryError:
        raise
    except PolicyError as error:
        raise PolicyError(f"{shown}: {error}") from None
    except Exception:
        raise PolicyError(f"{shown} cannot be read as parquet") from None
    if route is not None:
        select = _through_arrow(connection, view, route)
    elif unit is not None and kinds.get(unit) == "VARCHAR":
        select = parquet.direct(files, quoted(unit))
    else:
        return None
    connection.execute(f"CREATE OR REPLACE VIEW {quoted(view)} AS {select}")
    # What is rehearsed over empty tables has these types, and so must have what is read.
    for name, kind in _described(connection, view, len(types)).items():
        if kind != types[name]:
            raise PolicyError(f"{shown}: its column {name!r} is not read as what it is stored as")
    return route


def _through_arrow(connection: DuckDBPyConnection, view: str, route: parquet.ArrowRoute) -> str:
    route.register(connection, arrow_name(view))
    columns = [f"{value} AS {quoted(name)}" for name, value in route.columns.items()]
    return f"SELECT {', '.join(columns)} FROM {arrow_name(view)}"


def attach_part(
    connection: DuckDBPyConnection, view: str, source: FileSource, stored: Stored, files: Files
) -> None:
    """Make ``view`` read some files of a source, and look at no other."""
    names = list(stored.layout[1])
    if not files.paths:
        nothing = [
            f"CAST(NULL AS {kind}) AS {quoted(name)}"
            for name, kind in stored.types.items()
            if kind is not None
        ]
        select = f"SELECT {', '.join(nothing)} WHERE FALSE"
    elif stored.route is not None:
        select = _through_arrow(connection, view, replace(stored.route, files=files))
    elif source.format == "csv":
        select = csv_rows(files, names, source.delimiter)
    elif source.format == "jsonl":
        columns = {n: k for n, k in source.columns.items() if n not in files.keys}
        select = json_rows(files, columns, source.unit)
    else:
        is_text = source.unit not in files.keys and stored.types.get(source.unit or "") == "VARCHAR"
        select = parquet.direct(files, quoted(source.unit or "") if is_text else None)
    connection.execute(f"CREATE VIEW IF NOT EXISTS {quoted(view)} AS {select}")


def arrow_name(view: str) -> str:
    """What the rows are called that a view reads through Arrow."""
    return f"{view}_arrow"


def _with_names(found: Stored, shown: str) -> Stored:
    for position, name in enumerate(found.types, start=1):
        fault = unwritable(name)
        if fault is not None:
            raise PolicyError(f"{shown}: the name of its column {position} {fault}")
    return found


def _layout_at_first(
    connection: DuckDBPyConnection, source: FileSource, files: Files, *, parted: bool
) -> tuple[tuple[Files, tuple[Any, ...]], int]:
    """The layout of a source; where its files are parted by blocks, by the first that can be read.

    Which that is, and what columns it has, is all that shows of it: each question holds the files
    that it reads against these columns.
    """

    def execute(sql: str) -> list[Any]:
        return connection.execute(sql).fetchall()

    if not parted:
        return layout(execute, source), 0
    failure: Exception | None = None
    for place in range(len(files.paths)):
        try:
            files.paths[place].stat()
            _, columns = layout(execute, source, files.only([place]))
        except Exception as error:
            failure = failure or error
        else:
            return (files, columns), place
    assert failure is not None
    raise failure


def layout(
    execute: Execute, source: FileSource, files: Files | None = None
) -> tuple[Files, tuple[Any, ...]]:
    """The files of a source, and the names and types of their columns, as they are now.

    A DuckDB database is held open as it was, so there is nothing that could have changed.

    Parameters
    ----------
    execute : callable
        Gives the rows of a query.
    source : FileSource
    files : Files, optional
        Some of them; all that are there now where left out.

    Raises
    ------
    PolicyError
        Where there are no files, or not all have the same columns; where a CSV file does not begin
        with names.
    duckdb.Error
        Where a Parquet file cannot be read.
    """
    files, shown = files or files_of(source), shown_name(source.path)
    each: list[tuple[Any, ...]] = []
    if source.format == "csv":
        each = [tuple(header(path, source.delimiter, shown)) for path in files.paths]
    elif source.format == "parquet":
        fields: dict[str, list[Any]] = {}
        for name, *rest in execute(parquet.FIELDS.format(files=listed(files.paths))):
            fields.setdefault(name, []).append(tuple(rest))
        each = [tuple(fields[str(path)]) for path in files.paths]
    if len(set(each)) > 1:
        raise PolicyError(
            f"the files of {shown} do not all have the same columns, in one order and of the same "
            f"types; write those that differ anew, which {OWNER} names"
        )
    columns = each[0] if each else ()
    own = {str(c if isinstance(c, str) else c[0]).casefold() for c in columns}
    if own & {key.casefold() for key in files.keys}:
        raise PolicyError(
            f"{shown}: a key of its folders is a column of its files too; rename one of them"
        )
    return files, columns


def same_layout(execute: Execute, source: FileSource, stored: Stored) -> bool:
    """Whether the files of a source and their columns are what they were when it was opened.

    Raises
    ------
    PolicyError, OSError, duckdb.Error
        As ``layout``, or where a file is gone.
    """
    if stored.seal:
        files = files_of(source)
        if files == stored.layout[0] and _seal(source, files) == stored.seal:
            return True
    # A file may have been written anew with the same columns.
    return layout(execute, source) == stored.layout


def _seal(source: FileSource, files: Files) -> tuple[bytes, ...]:
    """What says all of the files' columns, where a file has such a thing."""
    return parquet.footers(files.paths) if source.format == "parquet" else ()


def _described(connection: DuckDBPyConnection, view: str, width: int = 0) -> dict[str, str]:
    """The names and types of a view's columns; ``width`` is about how many there are."""
    if width < WIDE:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {quoted(view)}").fetchall()
    else:
        rows = connection.execute(CATALOGUED, [view]).fetchall()
    return {name: kind for name, kind, *_ in rows if name != NO_COLUMN}


def _database(connection: DuckDBPyConnection, view: str, path: Path, table: str) -> Rowwise:
    database = f"{view}_database"
    try:
        connection.execute(f"ATTACH {text(str(path))} AS {quoted(database)} (READ_ONLY)")
    except Exception:
        with path.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                raise PolicyError(f"{str(path)!r} {NO_SQLITE}") from None
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
