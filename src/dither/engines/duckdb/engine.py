"""The embedded engine: DuckDB, locked in, over files and frames.

The answer to a job is exact and its SQL cannot fail on any value. ``types`` says what each column's
values are read as, ``sources`` what the lines of a CSV file are.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.engines.base import FAILED
from dither.engines.duckdb import types as leaves
from dither.engines.duckdb.connection import lock, open_unlocked
from dither.engines.duckdb.frames import NO_COLUMN
from dither.engines.duckdb.sources import (
    Attached,
    FileSource,
    FrameSource,
    Source,
    as_source,
    attach,
    layout,
    quoted,
)
from dither.engines.writer import forms
from dither.engines.writer.bounding import JobQuery
from dither.engines.writer.rows import RowSource, Seeds, Stored
from dither.engines.writer.totals import MOST_ROWS
from dither.errors import ArgumentError, EngineError, PolicyError, UnsupportedError, nearest
from dither.plan.job import Answer, Histogram, Job, Leaves, Measurement, Total, Units
from dither.plan.kinds import Kind, Value
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Schema

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["DuckDBEngine", "FileSource", "FrameSource"]


CHANGED = "its file is gone, or its columns are not what they were when it was opened; open it anew"

TICK = 0.5
"""Seconds between two reports of progress."""


CHUNK = 100_000
"""Rows of a histogram that are Python objects at a time."""


def _rows(found: DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return found.fetchall()


def _histogram(
    found: DuckDBPyConnection, places: Mapping[tuple[Any, ...], int], bins: int
) -> Histogram:
    parts = [np.zeros((0, 3), dtype=np.int64)]
    while rows := found.fetchmany(CHUNK):
        parts.append(np.array([(places[row[:-2]], *row[-2:]) for row in rows], dtype=np.int64))
    group, leaf, count = np.concatenate(parts).T
    return Histogram.of(len(places), bins, group, leaf, count)


class DuckDBEngine:
    """Runs jobs on DuckDB inside this process.

    Parameters
    ----------
    sources : mapping of str to source
        By table: a ``FileSource``, a ``FrameSource``, a path (``.parquet``, ``.csv``, ``.csv.gz``)
        or a Polars, pandas or Arrow frame.
    memory_limit : str, optional
        Such as ``"2GB"``; four fifths of the machine's memory by default. What does not fit is
        spilled to ``temp_directory``.
    threads : int, optional
        All processors by default.
    temp_directory : str, optional
        Where to spill; by default a private folder that is removed on ``close``. Spilled data is
        as private as its source.
    progress : callable, optional
        Called about twice a second with the share done, between 0 and 1, while a job runs.

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

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: str | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._sources: dict[str, Source] = {n: as_source(s) for n, s in sources.items()}
        self._options = (memory_limit, threads)
        self._progress = progress
        self._running = threading.Lock()
        self._closed = False
        if temp_directory is None:
            self._temporary = tempfile.mkdtemp(prefix="dither-")
            self._cleanup: Any = weakref.finalize(self, shutil.rmtree, self._temporary, True)
        else:
            self._temporary = str(Path(temp_directory).resolve())
            self._cleanup = None
        self._stored: dict[str, Stored] = {}
        self._found: dict[str, Attached] = {}
        self._rehearsed: set[str] = set()
        self._connection: DuckDBPyConnection | None = None
        try:
            self._connection = self._connect()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> DuckDBPyConnection:
        connection = open_unlocked(*self._options, self._temporary)
        try:
            stored: dict[str, Stored] = {}
            found: dict[str, Attached] = {}
            for number, (name, source) in enumerate(self._sources.items()):
                view = f"source_{number}"
                found[name] = attach(connection, view, source)
                stored[name] = Stored(view, found[name].types, f"empty_{number}")
            files = [
                Path(s.path).resolve() for s in self._sources.values() if isinstance(s, FileSource)
            ]
            lock(connection, files)
            for name, table in stored.items():
                self._make_twin(connection, name, table)
            if self._found and found != self._found:
                raise PolicyError(CHANGED)
        except BaseException:
            connection.close()
            raise
        self._stored, self._found = stored, found
        return connection

    def _make_twin(self, connection: DuckDBPyConnection, name: str, table: Stored) -> None:
        """See that the locked connection can read a source, and make an empty table like it.

        No row is read: even LIMIT 0 may read some, and EXPLAIN looks at statistics.
        """
        columns = [
            f"{quoted(column)} {kind}"
            for column, kind in table.types.items()
            if kind is not None and leaves.kind_of_type(kind) is not None
        ]
        fields = ", ".join(columns) or f"{quoted(NO_COLUMN)} BOOLEAN"
        try:
            connection.execute(f"DESCRIBE SELECT * FROM {quoted(table.view)}").fetchall()
            connection.execute(f"CREATE TABLE {quoted(table.empty)} ({fields})")
        except Exception:
            raise PolicyError(
                f"the source of table {name!r} cannot be read with access to its own file alone; "
                "name a Parquet, CSV or DuckDB file that needs no other"
            ) from None

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the engine is closed")

    def _open(self) -> DuckDBPyConnection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _table(self, name: str) -> Stored:
        self._check_open()
        if name not in self._stored:
            raise PolicyError(f"no source for table {name!r}" + nearest(name, self._stored))
        return self._stored[name]

    def describe(self, table: str) -> Mapping[str, Kind | None]:
        """The columns of a table and their kinds, from its schema and never from its values.

        ``None``: a type that dither does not read. All columns of a CSV file are text.
        """
        types = self._table(table).types
        return {name: leaves.kind_of_type(kind) if kind else None for name, kind in types.items()}

    def complete(self, table: str) -> bool:
        """Whether every row is read: not of a CSV file, whose broken lines are left out, nor of a
        view with a condition."""
        self._table(table)
        return self._found[table].complete

    def unread(self, table: str) -> Mapping[str, str]:
        """Why columns cannot be read, where there is more to say than their type."""
        self._table(table)
        return self._found[table].unread

    def public_values(self, table: str, facts: ColumnFacts) -> tuple[Value | None, ...]:
        """Every value of a column of a *public* table, in the order of its rows.

        Read as declared, just as a query reads it.

        Raises
        ------
        PolicyError
            Where the table has no such column, or it cannot be read as its kind.
        """
        stored = self._table(table)
        name = stored.types.get(facts.name)
        if name is None or not leaves.readable(name, facts.kind):
            raise PolicyError(
                f"column {facts.name!r} of table {table!r} cannot be read as {facts.kind.value}"
                + nearest(facts.name, stored.types)
            )
        typed = leaves.typed(forms.identifier(facts.name), name, facts.kind)
        value = forms.identifier("v")
        held = leaves.cleaned(value, facts).sql(dialect="duckdb")
        found = self._execute(
            f"SELECT {held} FROM (SELECT {typed.sql(dialect='duckdb')} AS v "
            f"FROM {quoted(stored.view)})"
        )
        return tuple(row[0] for row in found)

    def check(self, schema: Schema) -> None:
        """Hold the sources against the schema: kinds that can be read, public keys unique.

        Reads no value of a private table.

        Raises
        ------
        PolicyError
            Where a declared column is missing or cannot be read as its kind, or a public column
            declared unique is not.
        """
        for table in schema.tables.values():
            stored = self._table(table.name)
            for facts in table.columns.values():
                kind = stored.types.get(facts.name)
                if facts.name not in stored.types:
                    raise PolicyError(
                        f"table {table.name!r} has no column {facts.name!r}"
                        + nearest(facts.name, stored.types)
                    )
                if kind is None or not leaves.readable(kind, facts.kind):
                    why = self._found[table.name].unread.get(facts.name)
                    raise PolicyError(
                        f"column {facts.name!r} of table {table.name!r} cannot be read as "
                        f"{facts.kind.value}" + (f": {why}" if why else "")
                    )
                if facts.name == table.unit:
                    self._check_unit(table.name, facts, kind)
            if not table.private:
                for name in sorted(table.unique):
                    self._check_unique(table.name, name, schema)

    def _check_unit(self, table: str, facts: ColumnFacts, stored: str) -> None:
        """A unit is compared as it is stored, so that nobody is taken for another, or for two."""
        if facts.name in self._found[table].computed:
            raise PolicyError(
                f"table {table!r}: its unit {facts.name!r} is computed from other values, and "
                "two people's could become one; name a column that is stored"
            )
        if not leaves.one_to_one(stored, facts.kind):
            own = leaves.kind_of_type(stored)
            fits = [k.value for k in {own, Kind.TEXT} if k and leaves.one_to_one(stored, k)]
            fix = (
                f"declare type = {' or '.join(map(repr, sorted(fits)))}"
                if fits
                else "store it as whole numbers or text"
            )
            raise PolicyError(
                f"table {table!r}: its unit {facts.name!r} is stored as {stored}, and read as "
                f"{facts.kind.value} two people could become one, or one two; {fix}"
            )

    def _check_unique(self, table: str, column: str, schema: Schema) -> None:
        stored, facts = self._table(table), schema.table(table).column(column)
        kind = stored.types[column]
        assert kind is not None
        typed = leaves.typed(forms.identifier(column), kind, facts.kind)
        value = leaves.cleaned(typed, facts).sql(dialect="duckdb")
        view = quoted(stored.view)
        ((count, distinct),) = self._execute(
            f"SELECT count(v), count(DISTINCT v) FROM (SELECT {value} AS v FROM {view})"
        )
        if count != distinct:
            raise PolicyError(
                f"table {table!r}: column {column!r} is declared unique and is not; a join on it "
                "could fan out"
            )

    def run(self, job: Job, schema: Schema, key: bytes) -> Answer:
        """The exact answer to a job, with contributions bounded by a hash keyed with ``key``.

        No table is assumed to have more than 2⁴⁰ rows.

        Parameters
        ----------
        job : Job
        schema : Schema
        key : bytes
            At least 16, secret and drawn afresh for each run.

        Raises
        ------
        EngineError
            Always with the same message, whatever went wrong on the data.
        ArgumentError, PolicyError, BoundsError
            Before any data is touched: a short key, a column that cannot be read as declared, a
            sum that could overflow.
        """
        self._check_open()
        if len(key) < 16:
            raise ArgumentError("key: at least 16 secret bytes are needed")
        digest = hashlib.blake2b(key, digest_size=16, person=b"dither.bounding").digest()
        seeds = Seeds(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))
        query, sums, histograms = self._written(job, schema, seeds)
        try:
            # Also around the run itself, since the charge has taken a while.
            self._hold(job)
            answer = self._answer(job, query, sums, histograms)
            self._hold(job)
        except Exception:
            raise EngineError(FAILED) from None
        return answer

    def _answer(
        self, job: Job, query: JobQuery, sums: str, histograms: Mapping[int, str]
    ) -> Answer:
        rows = self._execute(sums)
        width = len(job.keys)
        places = {row[:width]: i for i, row in enumerate(rows)}
        values: dict[int, Any] = {}
        column = width
        for place, measurement in enumerate(job.measurements):
            if place in histograms:
                assert isinstance(measurement, Leaves)
                take = partial(_histogram, places=places, bins=measurement.bins)
                values[place] = self._execute(histograms[place], take)
            elif not isinstance(measurement, Leaves):
                kind = _dtype(job, measurement)
                values[place] = np.array([row[column] for row in rows], dtype=kind)
                column += 1
        for place, fine in _summed(job).items():
            leaves = job.measurements[fine]
            assert isinstance(leaves, Leaves)
            values[place] = values[fine].coarser(leaves.within)
        return Answer([query.key_of(row[:width]) for row in rows], values)

    def prepare(self, job: Job, schema: Schema) -> None:
        """Refuse a job that could not run, from public facts alone: before anything is charged.

        Raises
        ------
        PolicyError, BoundsError, UnsupportedError
            For a column that cannot be read as declared, a sum that could overflow, an expression
            too deep, a file that is gone or whose columns are not those it had, and for what the
            engine does not run over empty tables.
        """
        self._check_open()
        with self._running:
            self._open()
        self._hold(job)
        twins = {name: replace(s, view=s.empty) for name, s in self._stored.items()}
        _, sums, histograms = self._written(job, schema, Seeds(0, 0), twins)
        for sql in (sums, *histograms.values()):
            self._rehearse(sql)

    def _hold(self, job: Job) -> None:
        """Hold the files that a job reads against what they were when they were opened."""
        for table in dict.fromkeys(scan.table for scan in scans(job.relation)):
            source = self._sources[table]
            if not isinstance(source, FileSource):
                continue
            try:
                same = layout(self._execute, source) == self._found[table].layout
            except Exception:
                same = False
            if not same:
                raise PolicyError(f"table {table!r}: {CHANGED}")

    def _rehearse(self, sql: str) -> None:
        """Run a query over empty tables: what fails there fails before anything is charged."""
        digest = hashlib.sha256(sql.encode()).hexdigest()
        if digest in self._rehearsed:
            return
        with self._running:
            try:
                self._open().execute(sql).fetchall()
            except Exception:
                self._drop()
                raise UnsupportedError(
                    "the engine does not run this question, even over empty tables; nothing was "
                    "charged. Ask for less at once, or see the engine's memory and threads"
                ) from None
        self._rehearsed.add(digest)

    def _written(
        self,
        job: Job,
        schema: Schema,
        seeds: Seeds,
        stored: Mapping[str, Stored] | None = None,
    ) -> tuple[JobQuery, str, dict[int, str]]:
        """A job as SQL: all that is one integer per group, and each histogram."""
        query = JobQuery(job, RowSource(job, schema, stored or self._stored, seeds), seeds)
        histograms = {
            place: query.leaves(m).sql(dialect="duckdb")
            for place, m in enumerate(job.measurements)
            if isinstance(m, Leaves) and place not in _summed(job)
        }
        return query, query.sums().sql(dialect="duckdb"), histograms

    def _execute(self, sql: str, take: Callable[[DuckDBPyConnection], Any] = _rows) -> Any:
        """Run a query and take its rows; any failure becomes the one error that says nothing."""
        with self._running:
            watch = None
            try:
                connection = self._open()
                watch = _Watch(connection, self._progress) if self._progress else None
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

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def close(self) -> None:
        """Give back memory and files."""
        self._closed = True
        self._drop()
        if self._cleanup is not None:
            self._cleanup()

    def __enter__(self) -> DuckDBEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _summed(job: Job) -> dict[int, int]:
    """Histograms that need no query, each with the finer one that it is a sum of."""
    fine = {
        m.above: place
        for place, m in enumerate(job.measurements)
        if isinstance(m, Leaves) and m.within
    }
    return {place: fine[m] for place, m in enumerate(job.measurements) if m in fine}


def _dtype(job: Job, measurement: Measurement) -> type[np.int64] | type[np.object_]:
    """int64 where the public facts prove that every sum fits, else Python integers."""
    size = measurement.magnitude if isinstance(measurement, Total) else 1
    rows = 1 if job.unit is None or isinstance(measurement, Units) else job.max_rows
    return np.int64 if size * rows * MOST_ROWS < 2**63 else np.object_


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
