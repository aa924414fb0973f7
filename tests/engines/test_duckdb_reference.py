"""The engine against the reference, on hostile tables in every format."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine
from dither.errors import PolicyError
from dither.plan.job import Histogram
from dither.plan.schema import Schema
from engines.hostile import LABS, SCHEMA, VISITS, Swapped, jobs, stored, tables
from engines.reference import answer

KEY = b"sixteen bytes..."
FORMS = ("polars", "arrow", "pandas", "parquet", "csv", "duckdb")

WIDE = Schema(
    {
        **SCHEMA.tables,
        "visits": replace(VISITS, max_join_rows=1000),
        "labs": replace(LABS, max_join_rows=1000),
    }
)


swapped = cache(Swapped)


def by_group(found) -> dict:
    """An answer as the reference gives it."""
    return {
        key: [found.values[place].dense()[row].tolist()
              if isinstance(found.values[place], Histogram)
              else int(found.values[place][row]) for place in sorted(found.values)]
        for row, key in enumerate(found.keys)
    }  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(rows=tables(), job=jobs(most=1000))
def test_engine_agrees_with_the_reference(rows, job):
    """Where nothing has to be chosen by hash, every integer is the reference's."""
    found = swapped().run(rows, job, WIDE, KEY)
    assert by_group(found) == answer(job, WIDE, rows)


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables(), data=st.data())
def test_every_format_reads_the_same_values(form, tmp_path, rows, data):
    """A table means the same in every format that it can be stored in."""
    job = data.draw(jobs(most=1000))
    sources = {n: stored(tmp_path, n, r, form) for n, r in rows.items()}
    with DuckDBEngine(sources, threads=1) as engine:
        if form == "csv":
            # Its units are text, which the schema would read as whole numbers.
            with pytest.raises(PolicyError, match="two people could become one"):
                engine.check(SCHEMA)
        else:
            engine.check(SCHEMA)
        found = engine.run(job, WIDE, KEY)
    assert by_group(found) == answer(job, WIDE, rows)
