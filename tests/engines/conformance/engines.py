"""The engines that must agree. A new one adds a line to ``ENGINES``.

``open_engine(name)`` gives an engine whose rows can be exchanged: opening one anew for each example
is slow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from dither.errors import BoundsError, UnsupportedError
from dither.plan.job import ExactAnswer, Histogram, Job
from dither.plan.schema import Schema
from engines.conformance.spark import SparkBench
from engines.conformance.sqlite import AVAILABLE, SQLiteEngine
from engines.hostile import Bench
from engines.reference import answer
from spark_session import needs_spark

Tables = Mapping[str, Sequence[Mapping[str, Any]]]


class FreshSQLite:
    """SQLite over rows that are new each time."""

    def run(self, job: Job, schema: Schema, rows: Tables, key: bytes) -> ExactAnswer:
        """The answer over these rows, after a trial over none, as a release has it."""
        with SQLiteEngine(rows, schema) as engine:
            engine.check(schema)
            engine.prepare(job, schema)
            return engine.run(job, schema, key)


ENGINES: Mapping[str, Callable[[], Any]] = {
    "duckdb": Bench,
    "sqlite": FreshSQLite,
    "spark": SparkBench,
}

open_engine = cache(lambda name: ENGINES[name]())

EVERY = [
    pytest.param("duckdb"),
    pytest.param(
        "sqlite",
        marks=pytest.mark.skipif(not AVAILABLE, reason="SQLite before 3.39 lacks HAVING alone"),
    ),
    pytest.param("spark", marks=needs_spark),
]
"""To parametrize a test with."""


def examples(engine: str, number: int) -> int:
    """How many random examples an engine is tried on: Spark takes a hundred times longer."""
    return number // 5 if engine == "spark" else number


REFUSED = (UnsupportedError, BoundsError)
"""What an engine may say of a question that it does not take, before anything is charged."""


def by_group(found: ExactAnswer) -> dict[Any, list[Any]]:
    """An answer as the reference gives it."""
    places = sorted(found.values)
    columns = [
        v.dense().tolist() if isinstance(v, Histogram) else [int(n) for n in v]
        for v in (found.values[p] for p in places)
    ]
    return {key: [column[i] for column in columns] for i, key in enumerate(found.keys)}


def expected(job: Job, schema: Schema, rows: Tables) -> dict[Any, list[Any]]:
    """What every engine must answer where nothing is chosen by hash."""
    return answer(job, schema, rows)
