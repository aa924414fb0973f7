"""DuckDB inside this process: its connection, and when it is opened anew.

The answer to a job is exact and its SQL cannot fail on any value. ``dialect`` says what each
column's values are read as, ``sources`` what the lines of a CSV file are.

It is long because one connection runs, counts parts and files, and is opened anew in one place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.engines import FAILED
from dither.engines.deadline import TIMEOUT, Deadline
from dither.engines.duckdb.connection import lock, open_unlocked, second, shut, shut_meanwhile
from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.duckdb.lines import lines_left_out
from dither.engines.duckdb.names import quoted, text
from dither.engines.duckdb.sources import (
    FileSource,
    FrameSource,
    Source,
    arrow_name,
    as_source,
    attach,
    attach_part,
    files_of,
    layout,
    same_layout,
)
from dither.engines.files import Files, Wanted
from dither.engines.identity import of_files, of_frame
from dither.engines.sql_engine import Cursor, SQLEngine, all_rows
from dither.engines.writer.forms import identifier
from dither.engines.writer.rows import Stored
from dither.errors import ArgumentError, EngineError, PolicyError, UnsupportedError
from dither.plan.answers import Integers
from dither.plan.job import Job
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Schema, Value

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDBEngine"]

CHANGED = (
    "its file is gone, or its files or their columns are not what they were when it was opened; "
    "open it anew"
)

AT_ONCE = 50_000_000
"""Rows whose units are bounded at once; of more, each part of the units by itself."""

BYTES = 50
"""About what a row takes in memory meanwhile, where a unit has ten of them in a few groups."""

MOST_PARTS = 16
"""Each reads all rows anew; what does not fit even so is spilled."""

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

EMPTY = "\x02"
"""A column of every empty table, and of no source: names hold no control characters."""

TICK = 0.5
"""Seconds between two reports of progress."""


def _writable(folder: Path) -> Path:
    """A folder that spilled data may go to; found out now, and not once a charge is made."""
    try:
        # DuckDB makes the folder itself, within one that is there.
        with tempfile.TemporaryFile(dir=folder if folder.exists() else folder.parent):
            return folder
    except OSError:
        raise ArgumentError("temp_directory must be a folder that can be written to") from None


class DuckDBEngine(SQLEngine):
    """Runs jobs on DuckDB inside this process.

    Parameters
    ----------
    sources : mapping of str to source
        By table: a ``FileSource``, a ``FrameSource``, a path (``.parquet``, ``.csv``, ``.arrow``),
        a pattern, a folder or a list of paths, or a Polars, pandas or Arrow frame.
    memory_limit : str, optional
        Such as ``"2GB"``; four fifths of the machine's memory by default. What does not fit is
        spilled to ``temp_directory``.
    threads : int, optional
        All processors by default.
    temp_directory : str, optional
        Where to spill; by default a private folder that is removed on ``close``. Spilled data is
        as private as its source.
    timeout : float
        Seconds that one statement may take.
    progress : callable, optional
        Called about twice a second with the share done, between 0 and 1, while a job runs; in a
        notebook only where ipywidgets is installed, without which DuckDB measures none.
    owner : bool
        Whether ``lost`` tells the files of a table apart.

    Raises
    ------
    ArgumentError, PolicyError
        Where a source is not there or not what it is said to be.

    Examples
    --------
    >>> import polars as pl
    >>> engine = DuckDBEngine({"visits": pl.DataFrame({"age": [30, 41]})})
    >>> engine.describe("visits")
    {'age': <Kind.INTEGER: 'integer'>}
    >>> engine.close()
    """

    dialect = DUCKDB

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: str | None = None,
        timeout: float = TIMEOUT,
        progress: Callable[[float], None] | None = None,
        owner: bool = False,
    ) -> None:
        self._owner = owner
        self._sources: dict[str, Source] = {n: as_source(s) for n, s in sources.items()}
        self._options = (memory_limit, threads)
        self._timeout = timeout
        self._progress = progress
        self._running = threading.Lock()
        self._closed = False
        if temp_directory is None:
            self._temporary = tempfile.mkdtemp(prefix="dither-")
            self._cleanup: Any = weakref.finalize(self, shutil.rmtree, self._temporary, True)
        else:
            self._temporary = str(_writable(Path(temp_directory).resolve()))
            self._cleanup = None
        self._stored: dict[str, Stored] = {}
        self._rehearsed: dict[str, Sequence[str]] = {}
        self._keys: dict[tuple[Any, ...], list[Value | None]] = {}
        self._connection: DuckDBPyConnection | None = None
        self._trial: DuckDBPyConnection | None = None
        try:
            self._connection = self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> DuckDBPyConnection:
        connection = open_unlocked(*self._options, self._temporary)
        trial = second(connection)
        try:
            stored: dict[str, Stored] = {}
            for number, (name, source) in enumerate(self._sources.items()):
                view = f"source_{number}"
                before = self._stored.get(name)
                # Which files of other blocks there are by now is nothing that a job may tell of.
                known = before.layout[0] if before is not None and before.parted_by else None
                found = attach(connection, view, source, by_file=self._owner, known=known)
                stored[name] = replace(found, empty=view)
            files = {path for table in stored.values() for path in _files(table)}
            lock(connection, sorted(files))
            for name, table in stored.items():
                _make_twin(connection, trial, name, table)
            if self._stored and stored != self._stored:
                raise PolicyError(CHANGED)
        except BaseException:
            trial.close()
            connection.close()
            raise
        self._stored, self._trial = stored, trial
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the engine is closed")

    def _open(self) -> DuckDBPyConnection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def places(self, table: str) -> frozenset[Hashable]:
        stored = self._table(table)
        found = stored.layout[0].places() if stored.layout else ()
        return frozenset((place, stored.base) for place in found)

    def sources(self, table: str) -> Mapping[str, str]:
        stored, source = self._table(table), self._sources[table]
        if isinstance(source, FrameSource):
            return of_frame(source.frame)
        return of_files(source.path, stored.base)

    def _stored_tables(self) -> Mapping[str, Stored]:
        return self._stored

    def prepare(self, job: Job, schema: Schema) -> None:
        self._check_open()
        with self._running:
            self._open()
        super().prepare(job, schema)

    def _hold(self, job: Job, schema: Schema) -> None:
        for table in dict.fromkeys(scan.table for scan in scans(job.relation)):
            source = self._sources[table]
            if not isinstance(source, FileSource):
                continue
            stored = self._stored[table]
            if stored.parted_by is not None:
                self._hold_part(table, job, schema)
                continue
            try:
                same = same_layout(self._execute, source, stored)
                same = same and (stored.route is None or stored.route.unchanged())
            except Exception:
                same = False
            if not same:
                raise PolicyError(f"table {table!r}: {CHANGED}")
            if stored.route is not None:
                with self._running:
                    stored.route.register(self._open(), arrow_name(stored.view))

    # --- files of some blocks ---------------------------------------------------------------------

    def _stored_of(self, job: Job, schema: Schema) -> Mapping[str, Stored]:
        found = dict(self._stored)
        for table in dict.fromkeys(scan.table for scan in scans(job.relation)):
            if self._stored[table].parted_by is not None:
                try:
                    files, _ = self._part(table, job, schema)
                    found[table] = self._attached_part(table, files)
                except Exception:
                    raise EngineError(FAILED) from None
        return found

    def _part(self, table: str, job: Job, schema: Schema) -> tuple[Files, Wanted | None]:
        """The files of the blocks that a job reads of a table, and which texts of the key are
        theirs; all files where it is not restricted."""
        stored = self._stored[table]
        files, own = stored.layout[0], schema.table(table)
        read = [scan.blocks for scan in scans(job.relation) if scan.table == table]
        if own.block is None or own.block[0] != stored.parted_by or None in read:
            return files, None
        name, calendar = own.block
        facts = own.column(name)
        blocks = [one for one in read if one is not None]

        def wanted(*texts: str | None) -> list[bool]:
            values = self._as_read(texts, stored.types[name] or "", facts)
            return [any(calendar.block_of(v) in one for one in blocks) for v in values]

        kept = wanted(*files.key(name))
        places = [place for place, is_kept in enumerate(kept) if is_kept]
        return files.only(places), lambda text: wanted(text)[0]

    def _as_read(
        self, texts: Sequence[str | None], kind: str, facts: ColumnFacts
    ) -> list[Value | None]:
        """Texts of a folder's key, read as the rows of its files read them."""
        place = (tuple(texts), kind, facts)
        if place not in self._keys:
            listed = ", ".join("NULL" if one is None else text(one) for one in texts)
            typed = self.dialect.sql(self.dialect.read(identifier("k"), kind, facts))
            value = self.dialect.sql(self.dialect.cleaned(identifier("t"), facts))
            keys = f"UNNEST(CAST([{listed}] AS VARCHAR[])) AS k"
            rows = f"SELECT {keys}, UNNEST(range({len(texts)})) AS n"
            read = f"SELECT {typed} AS t, n FROM ({rows})"
            found = self._execute(f"SELECT {value} FROM ({read}) ORDER BY n")
            values = [self.dialect.value_of(one, facts.kind) for (one,) in found]
            self._keys[place] = values
        return self._keys[place]

    def _attached_part(self, table: str, files: Files) -> Stored:
        """A table over some of its files."""
        stored, source = self._stored[table], self._sources[table]
        assert isinstance(source, FileSource)
        named = "\0".join(map(str, files.paths)).encode("utf-8", "surrogateescape")
        view = f"{stored.view}_{hashlib.sha256(named).hexdigest()[:16]}"
        with self._running:
            attach_part(self._open(), view, source, stored, files)
        return replace(stored, view=view)

    def _hold_part(self, table: str, job: Job, schema: Schema) -> None:
        """As `_hold`, of the files of the blocks that a job reads, and of no others."""
        stored, source = self._stored[table], self._sources[table]
        assert isinstance(source, FileSource)
        try:
            files, wanted = self._part(table, job, schema)
            now = files_of(source, wanted)
            same = now.paths == files.paths and (not now.paths or now.values == files.values)
            if same and files.paths:
                same = layout(self._execute, source, files)[1] == stored.layout[1]
                route = stored.route
                same = same and (route is None or replace(route, files=files).unchanged())
            if same:
                self._attached_part(table, files)
        except Exception:
            same = False
        if not same:
            raise PolicyError(f"table {table!r}: {CHANGED}")

    def left_out(self, table: str) -> Mapping[str, tuple[int, int]]:
        stored, source = self._table(table), self._sources[table]
        if not isinstance(source, FileSource) or source.format not in ("csv", "jsonl"):
            return {}
        names = source.format == "csv"
        return {str(path): lines_left_out(path, names=names) for path in stored.layout[0].paths}

    def _rehearse(self, sql: str) -> Sequence[str]:
        digest = hashlib.sha256(sql.encode()).hexdigest()
        if digest in self._rehearsed:
            return self._rehearsed[digest]
        with self._running:
            try:
                self._open()
                assert self._trial is not None
                self._trial.execute(sql).fetchall()
                types = [str(kind) for _, kind, *_ in self._trial.description or ()]
            except Exception:
                self._drop()
                raise UnsupportedError(
                    "the engine does not run this question, even over empty tables; nothing was "
                    "charged. Ask for less at once, or see the engine's memory and threads"
                ) from None
        self._rehearsed[digest] = types
        return types

    def _execute(self, sql: str, take: Callable[[Cursor], Any] = all_rows) -> Any:
        return self._watched(sql, take, self._progress)

    def _execute_part(self, sql: str, number: int, parts: int) -> Any:
        report = self._progress
        if report is None:
            return self._execute(sql)
        return self._watched(sql, all_rows, lambda share: report((number + share) / parts))

    def _watched(
        self, sql: str, take: Callable[[Cursor], Any], report: Callable[[float], None] | None
    ) -> Any:
        with self._running:
            watch = None
            try:
                connection = self._open()
                watch = _Watch(connection, report) if report else None
                with Deadline(self._timeout, connection.interrupt):
                    return take(connection.execute(sql))
            except Exception:
                # A failure inside DuckDB can make a connection useless: the next call opens anew.
                self._drop()
                raise EngineError(FAILED) from None
            except BaseException:
                self._drop()
                raise
            finally:
                if watch is not None:
                    watch.stop()

    def _whole_columns(self, found: Cursor, width: int) -> list[Integers]:
        columns = list(found.fetchnumpy().values())  # type: ignore[attr-defined]
        if any(np.ma.is_masked(column) for column in columns):
            raise ValueError("a whole number that 64 bits do not hold")
        return [np.asarray(column, dtype=np.int64) for column in columns]

    def _number_of_parts(self, job: Job, stored: Mapping[str, Stored]) -> int:
        """From the number of rows, which the time that a job takes shows in any case."""
        names = dict.fromkeys(scan.table for scan in scans(job.relation))
        if not all(self._is_read_fast(name) for name in names):
            return 1
        rows = 0
        for name in names:
            ((found,),) = self._execute(f"SELECT count(*) FROM {quoted(stored[name].view)}")
            rows += found
        ((limit,),) = self._execute("SELECT current_setting('memory_limit')")
        most = min(AT_ONCE, max(1, _bytes(limit) // BYTES))
        return min(MOST_PARTS, -(-rows // most))

    def _is_read_fast(self, table: str) -> bool:
        """Whether reading its rows once more costs little beside what is done with them."""
        source = self._sources[table]
        formats = ("parquet", "duckdb", "arrow")
        quick = isinstance(source, FrameSource) or source.format in formats
        return quick and self._stored[table].route is None

    def _drop(self) -> None:
        both = self._trial, self._connection
        self._trial = self._connection = None
        shut(both)

    def close(self) -> None:
        """Give back memory and files.

        Where no file is held, memory is given back by a thread: nothing can go wrong there, and
        nobody need wait for it.
        """
        self._closed = True
        if self._is_in_memory():
            both = self._trial, self._connection
            self._trial = self._connection = None
            shut_meanwhile(both)
        self._drop()
        if self._cleanup is not None:
            self._cleanup()

    def _is_in_memory(self) -> bool:
        """Whether DuckDB holds nothing that others wait for: no database is attached to it, nothing
        was spilled, and where it is in use no system keeps a file from being moved."""
        databases = (
            isinstance(s, FileSource) and s.format == "duckdb" for s in self._sources.values()
        )
        if os.name != "posix" or self._cleanup is None or any(databases):
            return False
        try:
            return not any(Path(self._temporary).iterdir())
        except OSError:
            return False


def _bytes(size: str) -> int:
    """A size as the engine shows it, such as ``1.5 GiB``."""
    number, _, unit = size.partition(" ")
    return int(float(number) * UNITS[unit])


def _make_twin(
    connection: DuckDBPyConnection, trial: DuckDBPyConnection, name: str, table: Stored
) -> None:
    """See that the locked connection can read a source, and let its name stand for an empty table
    like it on the connection for trials, where queries are tried as they are written.

    No row is read: even LIMIT 0 may read some, and EXPLAIN looks at statistics. A temporary table
    comes before whatever else has its name, and is seen by its own connection alone.
    """
    columns = [
        f"{quoted(column)} {kind}"
        for column, kind in table.types.items()
        if kind is not None and (DUCKDB.kind_of_type(kind) or DUCKDB.element_of(kind)) is not None
    ]
    fields, twin = ", ".join([*columns, f"{quoted(EMPTY)} BOOLEAN"]), quoted(table.empty)
    try:
        connection.execute(f"DESCRIBE SELECT TRUE FROM {quoted(table.view)}").fetchall()
        trial.execute(f"CREATE TEMPORARY TABLE {twin} ({fields})")
        # Fails where the name would still stand for the source.
        trial.execute(f"DESCRIBE SELECT {quoted(EMPTY)} FROM {twin}").fetchall()
    except Exception:
        raise PolicyError(
            f"the source of table {name!r} cannot be read with access to its own file alone; "
            "name a Parquet, CSV or DuckDB file that needs no other"
        ) from None


def _files(table: Stored) -> tuple[Path, ...]:
    """The files that a table is read from."""
    return table.layout[0].paths if table.layout else ()


class _Watch:
    """Reports the share done from a thread of its own, while a query runs."""

    def __init__(self, connection: DuckDBPyConnection, report: Callable[[float], None]) -> None:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, args=(connection, report), daemon=True)
        self._thread.start()

    def _look(self, connection: DuckDBPyConnection, report: Callable[[float], None]) -> None:
        while not self._done.wait(TICK):
            with contextlib.suppress(Exception):
                share = connection.query_progress()
                if share >= 0:
                    report(min(share / 100, 1.0))

    def stop(self) -> None:
        self._done.set()
        self._thread.join()
