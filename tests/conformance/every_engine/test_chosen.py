"""What is kept of a unit, by a hash that the engines share: one right answer on each of them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

from conformance.engines import by_group, without_nan
from conformance.plans import rows
from conformance.portable import (
    PortableDuckDB,
    PortablePostgres,
    PortableSpark,
    PortableSQLiteEngine,
    chosen,
)
from conformance.postgres import PostgresBench
from conformance.spark import SparkBench
from conformance.sqlite import AVAILABLE
from dither.plan.relations import Filter, PublicJoin, UnitJoin
from engines.hostile import SCHEMA, Bench, jobs
from spark_session import needs_spark

KEY = b"sixteen bytes..."


class SQLiteBench:
    """SQLite over rows that are new each time."""

    def run(self, job, schema, rows, key):
        """The answer over these rows."""
        with PortableSQLiteEngine(rows, schema) as engine:
            return engine.run(job, schema, key)


@pytest.fixture(
    scope="module",
    params=["duckdb", "sqlite", "postgres", pytest.param("spark", marks=needs_spark)],
)
def bench(request: pytest.FixtureRequest):
    """An engine that hashes as the others do."""
    if request.param == "sqlite":
        if not AVAILABLE:
            pytest.skip("SQLite before 3.39 lacks HAVING alone")
        yield SQLiteBench()
        return
    if request.param == "duckdb":
        found = Bench()
        dialect = PortableDuckDB()
    elif request.param == "spark":
        found = SparkBench()
        dialect = PortableSpark()
    else:
        found = PostgresBench(request.getfixturevalue("postgres_server"))
        dialect = PortablePostgres()
    found.engine.dialect = dialect
    yield found
    found.close()


def _held(answer):
    """An answer without groups in which nothing was counted: where histograms are all that is
    asked for, an engine may name groups of which every unit's rows were left out."""
    return {group: found for group, found in answer.items() if str(found).strip("[], 0")}


def test_every_engine_keeps_the_same_rows_and_groups(bench):
    """Integer for integer the reference's, where groups and rows of units are chosen."""
    seen = {"groups": 0, "joins": 0, "by the key": 0}
    # Spark needs about a second for each.
    number = 20 if isinstance(bench, SparkBench) else 40

    @settings(max_examples=number, deadline=None, derandomize=True)
    @given(job=jobs(units=True))
    def check(job):
        relation = job.relation
        while isinstance(relation, Filter):
            relation = relation.source
        assume(not (isinstance(relation, PublicJoin) and isinstance(relation.source, UnitJoin)))
        stored = without_nan(rows()) if isinstance(bench, SQLiteBench) else rows()
        found = _held(by_group(bench.run(job, SCHEMA, stored, KEY)))
        assert found == _held(chosen(job, SCHEMA, stored, KEY))
        # A control: with another key something else is kept, so that the key is what was tested.
        seen["by the key"] += found != _held(chosen(job, SCHEMA, stored, KEY[::-1]))
        seen["groups"] += bool(job.keys)
        seen["joins"] += isinstance(relation, UnitJoin)

    check()
    assert all(seen.values())
