"""Tables of counts on neighbours: what one unit moves, and that all tables are of the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.writer import cells
from dither.plan.job import Cells, Job, ListedCells
from dither.plan.lowering.sensitivity import sensitivity
from engines.hostile import Bench
from soundness.tables import DOCTOR_ROWS, drawn_pair, moved, planned, schema_of

GROUPED = (
    "SELECT g, b, CLAMP(i, 0, 4) AS k, BIN(x, -10, 0, 5, 1000) AS m, COUNT(*) AS n FROM visits "
    "GROUP BY g, b, k, m"
)
EVERY = [axes for size in range(4) for axes in combinations(range(4), size)]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(schema_of())
    yield made
    made.close()


def asked(limits: dict[str, Any]) -> tuple[Job, Any]:
    """All tables of up to three of four columns."""
    schema = schema_of(**limits)
    job = planned(GROUPED, schema).job
    tables: tuple[Cells, ...] = tuple(Cells.of(job.keys, axes) for axes in EVERY)
    tables += (ListedCells.of(job.keys, range(len(job.keys))),)
    return Job(job.relation, job.unit, job.keys, tables, 1, limits["max_rows"]), schema


def broken(bench: Bench, seed: int, most: int, limits: dict[str, Any]) -> list[str]:
    """What is wrong with the tables of two neighbours."""
    job, schema = asked(limits)
    pair = drawn_pair(seed, replace_one=schema.replace_one, most=most)
    first, second = (
        bench.run(job, schema, {"doctors": DOCTOR_ROWS, **rows})
        for rows in (pair.first, pair.second)
    )
    claim = sensitivity(
        job.measurements[0], max_groups=1, max_rows=job.max_rows, replace_one=schema.replace_one
    )
    found = [
        f"{axes} moves by {l1}, {l2}"
        for axes, (l1, l2) in zip([*EVERY, "listed"], moved(job, first, second), strict=True)
        if l1 > claim.l1 or l2 > claim.l2_squared
    ]
    tables = {
        axes: first.values[at].dense().reshape(table.shape)
        for at, (axes, table) in enumerate(zip(EVERY, job.measurements[:-1], strict=True))
    }
    listed = job.measurements[-1]
    whole = np.zeros(listed.shape, dtype=np.int64)
    cells = first.values[len(EVERY)]
    whole[tuple(cells.places.T)] = cells.counts
    tables[listed.axes] = whole
    for wide, table in tables.items():
        for axes in EVERY:
            if set(axes) < set(wide):
                others = tuple(i for i, v in enumerate(wide) if v not in axes)
                if not np.array_equal(table.sum(axis=others), tables[axes]):
                    found.append(f"{axes} is not of the rows of {wide}")
    return found


LIMITS = st.fixed_dictionaries(
    {
        "max_groups": st.just(1),
        "max_rows": st.sampled_from((1, 2, 3, 40)),
        "replace_one": st.booleans(),
    }
)


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(seed=st.integers(0, 2**32), most=st.sampled_from((1, 4, 15, 60)), limits=LIMITS)
def test_no_unit_moves_a_table_further_than_claimed(bench, seed, most, limits):
    """L1 and squared L2 of every table; each is a sum of any that holds its columns, listed too."""
    assert broken(bench, seed, most, limits) == []


def _uncut(query: cells.CellsQuery) -> Any:
    """Every row of every unit."""
    return query._places(range(len(query._job.keys)))


def _by_table(query: cells.CellsQuery, tables: Any) -> Any:
    """Rows of a unit chosen anew for each table: by the columns that it has."""
    kept = query._key_columns
    query._key_columns = lambda: [cells.identifier(f"k{a}") for a in cells.axes_of(tables)]
    try:
        return REAL_QUERY(query, tables)
    finally:
        query._key_columns = kept


REAL_QUERY = cells.CellsQuery.query


@pytest.mark.parametrize(
    ("name", "mutant", "says"), [("_kept", _uncut, "moves"), ("query", _by_table, "is not of")]
)
def test_mistakes_in_the_choice_of_rows_are_seen(bench, monkeypatch, name, mutant, says):
    """A unit whose rows are not cut moves too much; rows chosen by table do not add up."""
    monkeypatch.setattr(cells.CellsQuery, name, mutant)
    # One table a query, so that a choice by table can differ.
    monkeypatch.setattr("dither.engines.sql_engine.MOST_SETS_OF_UNITS", 1)
    limits = {"max_groups": 1, "max_rows": 2, "replace_one": False}
    found = [fault for seed in range(8) for fault in broken(bench, seed, 60, limits)]
    assert any(says in fault for fault in found)
