"""The engines that must agree. A new one adds an entry to ``ENGINES``.

The fixture ``engine`` (in ``conftest.py``) gives each in turn, or skips it where it is not on this
machine. An engine is opened once, and its rows are exchanged: opening one anew for each example is
slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from conformance.postgres import postgres_bench
from conformance.spark import SparkBench
from conformance.sqlite import AVAILABLE, SQLiteEngine
from dither.plan.answers import CellsInUse, ExactAnswer, Histogram
from dither.plan.job import Job
from dither.plan.schema import Schema
from engines.hostile import Bench
from engines.reference import answer
from spark_session import needs_spark

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


class Runs(Protocol):
    """An engine over rows that are new each time."""

    def run(self, job: Job, schema: Schema, rows: Tables, key: bytes) -> ExactAnswer:
        """The answer over these rows."""
        ...


class FreshSQLite:
    """SQLite over rows that are new each time."""

    def run(self, job: Job, schema: Schema, rows: Tables, key: bytes) -> ExactAnswer:
        """The answer over these rows, after a trial over none, as a release has it."""
        with SQLiteEngine(rows, schema) as engine:
            engine.check(schema)
            engine.prepare(job, schema)
            return engine.run(job, schema, key)


def duckdb(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The embedded engine."""
    bench = Bench()
    yield bench
    bench.close()


def sqlite(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The proof that the writer is neutral."""
    if not AVAILABLE:
        pytest.skip("SQLite before 3.39 lacks HAVING alone")
    yield FreshSQLite()


def postgres(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """A server that the tests start."""
    yield from postgres_bench(request.getfixturevalue("postgres_server"))


def spark(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The one session of the tests."""
    yield SparkBench()


@dataclass(frozen=True)
class Entry:
    """How an engine is opened, and how many random examples it is worth trying it on.

    Parameters
    ----------
    opened : callable
        Yields the engine once; skips the test where it is not on this machine.
    share : int
        One in so many examples is tried: Spark takes a hundred times longer than others.
    marks : sequence of MarkDecorator
        Of the tests on it.
    """

    opened: Callable[[pytest.FixtureRequest], Iterator[Runs]]
    share: int = 1
    marks: Sequence[pytest.MarkDecorator] = ()


ENGINES: Mapping[str, Entry] = {
    "duckdb": Entry(duckdb),
    "sqlite": Entry(sqlite),
    "postgres": Entry(postgres),
    "spark": Entry(spark, share=5, marks=needs_spark),
}


@dataclass(frozen=True)
class Tried:
    """An engine of the list, as tests are handed it."""

    name: str
    bench: Runs

    def run(self, job: Job, schema: Schema, rows: Tables, key: bytes) -> ExactAnswer:
        """The answer over these rows."""
        return self.bench.run(job, schema, rows, key)

    def holds(self, rows: Tables) -> Tables:
        """The rows as the engine can store them: SQLite has no NaN, and keeps NULL for it."""
        return without_nan(rows) if isinstance(self.bench, FreshSQLite) else rows

    def examples(self, number: int) -> int:
        """How many random examples to try where a quick engine has so many."""
        return number // ENGINES[self.name].share


def without_nan(rows: Tables) -> Tables:
    """The rows with NULL where they have NaN, as SQLite stores them."""
    return {
        name: [{n: None if v != v else v for n, v in row.items()} for row in content]
        for name, content in rows.items()
    }


def by_group(found: ExactAnswer) -> dict[Any, list[Any]]:
    """An answer as the reference gives it."""
    columns = [_listed(found.values[place]) for place in sorted(found.values)]
    return {key: [column[i] for column in columns] for i, key in enumerate(found.keys)}


def _listed(values: Any) -> list[Any]:
    """The numbers of one measurement, by group."""
    if isinstance(values, CellsInUse):
        return [values.tolist()]
    return values.dense().tolist() if isinstance(values, Histogram) else [int(n) for n in values]


def expected(job: Job, schema: Schema, rows: Tables) -> dict[Any, list[Any]]:
    """What every engine must answer where nothing is chosen by hash."""
    return answer(job, schema, rows)
