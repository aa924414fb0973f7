"""Queries in the FROM inside one another, with lists and joins, on every engine that has lists."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from conformance.engines import by_group, expected
from conformance.postgres import PostgresBench
from conformance.spark import SparkBench
from dither.errors import DitherError
from engines.hostile import KEY, Bench
from soundness.mixed import mixed, neighbours, schema
from soundness.tables import planned
from spark_session import needs_spark

WIDE = schema(max_groups=1000, max_rows=1000, max_join_rows=1000)
TRIED = {"duckdb": 30, "postgres": 30, "spark": 3}
"""How many questions each answers."""


@pytest.fixture(
    scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=needs_spark)]
)
def bench(request):
    """The engines that have lists, and how many questions are worth their time."""
    if request.param == "spark":
        yield SparkBench(WIDE), TRIED["spark"]
        return
    made = (
        Bench(WIDE)
        if request.param == "duckdb"
        else PostgresBench(request.getfixturevalue("postgres_server"), WIDE)
    )
    yield made, TRIED[request.param]
    made.close()


def without_nul(value: Any) -> Any:
    """The same without the character that PostgreSQL's texts cannot hold."""
    if isinstance(value, list):
        return [without_nul(element) for element in value]
    return value.replace("\x00", "~") if isinstance(value, str) else value


def test_every_engine_agrees_with_the_reference(bench):
    """Where nothing has to be chosen by hash, integer for integer."""
    engine, wanted = bench
    answered = seed = 0
    while answered < wanted:
        seed += 1
        sql = mixed(random.Random(seed)).partition(" OPTIONS")[0]
        try:
            plan = planned(sql, WIDE)
        except DitherError:
            continue
        # Limits that follow from the form of a query are no limits here.
        job = replace(plan.job, max_groups=1000, max_rows=1000)
        drawn = neighbours(seed, replace_one=False, most=4)[0]
        rows = {
            name: [{column: without_nul(value) for column, value in row.items()} for row in held]
            for name, held in drawn.items()
        }
        assert by_group(engine.run(job, WIDE, rows, KEY)) == expected(job, WIDE, rows), sql
        answered += 1
