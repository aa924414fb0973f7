"""Spark where the rows are: a job's queries run there, and only their sums come back.

The answer is exact whatever the cluster does: nothing in a query is random or depends on an order
of rows, the key of a run is drawn here once, and so a task that is repeated gives the same again.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from dither.engines import FAILED, TableSource
from dither.engines.deadline import TIMEOUT, Deadline
from dither.engines.spark.dialect import SPARK
from dither.engines.spark.parted import kept, parts_of, same_columns
from dither.engines.spark.sessions import Sessions, is_remote, open_sessions, quietly
from dither.engines.spark.sources import Attached, attach, layout
from dither.engines.sql_engine import Cursor, SQLEngine, all_rows
from dither.engines.writer.forms import identifier
from dither.engines.writer.rows import Stored
from dither.errors import ArgumentError, EngineError, PolicyError, UnsupportedError
from dither.plan.job import Job
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Kind, Schema, Value

__all__ = ["SparkEngine"]

CHANGED = "its files or columns are not those that it had when it was opened; open it anew"
GONE = "Spark no longer answers; see that it runs, and open the policy anew. Nothing was charged"

TICK = 0.5
"""Seconds between two reports of progress."""


class SparkEngine(SQLEngine):
    """Runs jobs on Spark.

    Parameters
    ----------
    tables : mapping of str to TableSource
        Tables and views of a catalog, paths of Parquet or ORC files, and Spark's frames.
    session : SparkSession, optional
        Where names are looked up; it stays open, and its settings stay as they are. A frame's own
        where left out.
    master : str, optional
        Where Spark runs otherwise: ``"local[*]"`` by default.
    memory_limit : str, optional
        Of the driver, where this starts Spark: ``"2GB"``.
    threads : int, optional
        Of a local Spark without a ``master``.
    temp_directory : str, optional
        Where a Spark that this starts spills to.
    timeout : float
        Seconds that one statement may take.
    progress : callable, optional
        Called about twice a second with the share of tasks done, between 0 and 1.

    Raises
    ------
    ArgumentError, PolicyError
        Where pyspark or Java is missing, Spark cannot be reached, or a source is not there or
        cannot be protected.
    """

    dialect = SPARK

    def __init__(
        self,
        tables: Mapping[str, TableSource],
        session: Any = None,
        *,
        master: str | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: str | None = None,
        timeout: float = TIMEOUT,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        frames = (t.source for t in tables.values() if not isinstance(t.source, str))
        given = session if session is not None else next((f.sparkSession for f in frames), None)
        self._timeout = timeout
        self._progress = progress
        self._running = threading.Lock()
        self._closed = False
        self._rehearsed: dict[str, Sequence[str]] = {}
        self._keys: dict[tuple[str | None, ColumnFacts], Value | None] = {}
        self._sessions: Sessions = open_sessions(
            given, master, memory_limit, threads, temp_directory
        )
        try:
            with quietly():
                self._attached: Mapping[str, Attached] = {
                    name: attach(self._sessions, number, name, table)
                    for number, (name, table) in enumerate(tables.items())
                }
        except BaseException:
            self.close()
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise ArgumentError("the engine is closed")

    def _stored_tables(self) -> Mapping[str, Stored]:
        return {name: found.stored for name, found in self._attached.items()}

    def places(self, table: str) -> frozenset[Hashable]:
        return frozenset(("spark", place) for place in self._attached[table].places)

    def sources(self, table: str) -> Mapping[str, str]:
        return self._attached[table].sources

    def _hold(self, job: Job, schema: Schema) -> None:
        for table in dict.fromkeys(scan.table for scan in scans(job.relation)):
            attached = self._attached[table]
            if attached.parts is not None:
                if not self._holds_part(table, job, schema):
                    raise PolicyError(f"table {table!r}: {CHANGED if self._answers() else GONE}")
                continue
            try:
                with quietly():
                    same = layout(self._sessions, attached) == (
                        attached.stored.layout,
                        attached.listing,
                    )
            except Exception:
                same = False
            if not same:
                raise PolicyError(f"table {table!r}: {CHANGED if self._answers() else GONE}")

    def _holds_part(self, table: str, job: Job, schema: Schema) -> bool:
        """Whether the files of the blocks that a job reads are what they were; no other counts."""
        attached, own = self._attached[table], schema.table(table)
        parts, key = attached.parts or frozenset(), attached.stored.parted_by or ""
        read = [scan.blocks for scan in scans(job.relation) if scan.table == table]
        block, blocks = own.block, [one for one in read if one is not None]

        def wanted(text: str | None) -> bool:
            if block is None or block[0] != key or len(blocks) < len(read):
                return True
            found = block[1].block_of(self._as_read(text, own.column(key)))
            return any(found in one for one in blocks)

        try:
            with quietly():
                session = self._sessions.own
                before = kept(parts, key, wanted)
                now = kept(parts_of(session, attached.roots), key, wanted)
                columns = dict(attached.stored.layout)
                return before == now and same_columns(
                    session, attached.roots[0], attached.form, [p[0] for p in now], columns, key
                )
        except Exception:
            return False

    def _as_read(self, text: str | None, facts: ColumnFacts) -> Value | None:
        """A text of a folder's key, read as the rows of its files read it."""
        if (text, facts) not in self._keys:
            key = self.dialect.text(text) if text is not None else self.dialect.null(Kind.TEXT)
            typed = self.dialect.sql(self.dialect.read(identifier("k"), "string", facts))
            value = self.dialect.sql(self.dialect.cleaned(identifier("t"), facts))
            rows = f"SELECT {typed} AS t FROM (SELECT {self.dialect.sql(key)} AS k)"
            ((found,),) = self._sessions.own.sql(f"SELECT {value} FROM ({rows})").collect()
            self._keys[text, facts] = self.dialect.value_of(found, facts.kind)
        return self._keys[text, facts]

    def _answers(self) -> bool:
        """Whether Spark itself is still there."""
        try:
            with quietly():
                return bool(self._sessions.own.sql("SELECT 1").collect())
        except Exception:
            return False

    def _rehearse(self, sql: str) -> Sequence[str]:
        digest = hashlib.sha256(sql.encode()).hexdigest()
        if digest not in self._rehearsed:
            try:
                with self._running, quietly():
                    found = self._sessions.own.sql(sql)
                    types = [field.dataType.simpleString() for field in found.schema.fields]
                    found.collect()
            except Exception:
                raise UnsupportedError(
                    "Spark does not run this question, even over empty tables; nothing was "
                    "charged. Ask for less at once, or see that Spark still runs"
                ) from None
            self._rehearsed[digest] = types
        return self._rehearsed[digest]

    def _execute(self, sql: str, take: Callable[[Cursor], Any] = all_rows) -> Any:
        session, tag = self._sessions.own, f"dither-{uuid.uuid4().hex}"
        with self._running:
            watch = _watch(session, tag, self._progress) if self._progress else None
            add, remove, cancel = _tags(session)
            try:
                add(tag)
                with quietly(), Deadline(self._timeout, partial(cancel, tag)):
                    return take(_Rows(session.sql(sql).collect()))
            except Exception:
                raise EngineError(FAILED) from None
            except BaseException:
                # What nobody waits for any more need not run on.
                with contextlib.suppress(Exception):
                    cancel(tag)
                raise
            finally:
                with contextlib.suppress(Exception):
                    remove(tag)
                if watch is not None:
                    watch.stop()

    def close(self) -> None:
        """Give the views back, and stop Spark where it was started for this."""
        if not self._closed:
            self._closed = True
            for attached in getattr(self, "_attached", {}).values():
                for view in (attached.stored.view, attached.stored.empty):
                    with contextlib.suppress(Exception):
                        self._sessions.own.catalog.dropTempView(view)
            self._sessions.close()


class _Rows:
    """Spark's rows as tuples of Python's own numbers."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self._rows = rows
        self._next = 0

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        start, self._next = self._next, self._next + size
        return [
            tuple(int(v) if isinstance(v, Decimal) else v for v in row)
            for row in self._rows[start : self._next]
        ]


class _Stages:
    """Reports the share of tasks done from a thread of its own, while a query runs."""

    def __init__(self, session: Any, tag: str, report: Callable[[float], None]) -> None:
        self._done = threading.Event()
        self._session, self._tag, self._report = session, tag, report
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._done.wait(TICK):
            with contextlib.suppress(Exception):
                share = self._share()
                if share is not None:
                    self._report(share)

    def _share(self) -> float | None:
        """Of the stages that Spark knows of by now: more may follow, and it may fall."""
        context = self._session.sparkContext
        tracker = context.statusTracker()
        done = total = 0
        for job in context._jsc.sc().statusTracker().getJobIdsForTag(self._tag):
            found = tracker.getJobInfo(job)
            for stage in found.stageIds if found else ():
                about = tracker.getStageInfo(stage)
                if about is not None:
                    done, total = done + about.numCompletedTasks, total + about.numTasks
        return done / total if total else None

    def stop(self) -> None:
        self._done.set()
        self._thread.join()


class _Remote:
    """The same over Spark Connect, which reports by itself."""

    def __init__(self, session: Any, report: Callable[[float], None]) -> None:
        self._session, self._report = session, report
        session.registerProgressHandler(self._told)

    def _told(self, stages: Any, **_: Any) -> None:
        total = sum(stage.num_tasks for stage in stages or ())
        if total:
            with contextlib.suppress(Exception):
                self._report(sum(stage.num_completed_tasks for stage in stages) / total)

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self._session.removeProgressHandler(self._told)


def _tags(session: Any) -> tuple[Callable[[str], Any], ...]:
    """How to mark the jobs of this thread, to stop marking them, and to cancel them."""
    if is_remote(session):
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


def _watch(session: Any, tag: str, report: Callable[[float], None]) -> _Stages | _Remote:
    return _Remote(session, report) if is_remote(session) else _Stages(session, tag, report)
