"""Lists: however long one unit's are, it moves an answer by no more than is claimed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.writer.rows import RowSource
from dither.errors import DitherError
from dither.plan.schema import Schema
from engines.hostile import Bench
from engines.lists import BASKETS, CRATES, LABELS, SCHEMA, basket
from soundness.queries import unnested
from soundness.tables import TARGET, planned, violations

SETTINGS = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def schema_of(groups: int, rows: int, replaced: bool, unnested_rows: int = 10_000) -> Schema:
    """The table of lists, with limits."""
    limited = replace(BASKETS, max_groups=groups, max_rows=rows, max_unnest_rows=unnested_rows)
    return Schema({"baskets": limited, "labels": LABELS}, replace_one=replaced)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(SCHEMA)
    yield made
    made.close()


def pair(seed: int, *, replaced: bool) -> list[dict[str, list[dict[str, Any]]]]:
    """Others' rows, with the target's own and without, or with others of its own in their place."""
    source = random.Random(seed)
    others = [basket(source, source.choice((0, 1, 2, None))) for _ in range(source.randrange(12))]

    def own() -> list[dict[str, Any]]:
        made = [basket(source, TARGET) for _ in range(source.randrange(1, 6))]
        for row in made:
            for name, held in row.items():
                if isinstance(held, list):
                    row[name] = held * source.choice((1, 1, 40))
        return made

    return [{"baskets": [*others, *own()]}, {"baskets": [*others, *(own() if replaced else [])]}]


@SETTINGS
@given(
    sql=unnested(),
    groups=st.sampled_from((1, 2, 5)),
    rows=st.sampled_from((1, 3, 10)),
    most=st.sampled_from((1, 9, 100, 10_000)),
    replaced=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_no_list_moves_an_answer_further_than_claimed(
    bench, sql, groups, rows, most, replaced, seed
):
    """Lists of up to 200 elements, in several rows, and pairs of two lists; few of them count."""
    schema = schema_of(groups, rows, replaced, most)
    try:
        plan = planned(sql, schema)
    except DitherError:
        assume(False)
        raise
    answers = bench.both(plan.job, schema, *pair(seed, replaced=replaced))
    assert violations(plan, *answers) == []


def people(seed: int, *, replaced: bool) -> list[dict[str, list[dict[str, Any]]]]:
    """The same of a table in which a row is a person: one of the target's rows, or none."""
    both = [tables["baskets"] for tables in pair(seed, replaced=replaced)]
    others = [row for row in both[0] if row["u"] != TARGET]
    own = [[row for row in rows if row["u"] == TARGET][:1] for rows in both]
    return [
        {"crates": [{n: v for n, v in row.items() if n != "u"} for row in [*others, *rows]]}
        for rows in own
    ]


@SETTINGS
@given(sql=unnested("crates"), replaced=st.booleans(), seed=st.integers(0, 2**32))
def test_no_list_of_a_person_moves_an_answer_further_than_claimed(bench, sql, replaced, seed):
    """Of one row as many elements count as are declared, and the price is of so many."""
    schema = Schema({"crates": CRATES, "labels": LABELS}, replace_one=replaced)
    try:
        plan = planned(sql, schema)
    except DitherError:
        assume(False)
        raise
    assert plan.unit_rows == 2 ** sql.count("UNNEST")
    answers = bench.both(plan.job, schema, *people(seed, replaced=replaced))
    assert violations(plan, *answers) == []


def test_a_list_of_a_person_that_is_not_cut_or_not_paid_for_is_seen(bench, monkeypatch):
    """The planted mistakes: all elements are read; a person is charged for as one row."""
    schema = Schema({"crates": CRATES, "labels": LABELS})
    plan = planned(SQL.replace("baskets", "crates"), schema)
    row = basket(random.Random(1), TARGET) | {"kinds": ["a", "b", "o'b"] * 30, "x": 999.0}
    del row["u"]

    def found(asked: Any) -> list[str]:
        answers = (bench.run(asked.job, schema, {"crates": rows}) for rows in ([row], []))
        return violations(asked, *answers)

    assert found(plan) == []
    monkeypatch.setattr(DuckDBDialect, "first_items", lambda self, value, most: value)
    assert found(plan) != []
    monkeypatch.undo()
    assert found(replace(plan, unit_rows=1)) != []


SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM baskets, UNNEST(kinds) AS t(k) GROUP BY k"


def moved_by(bench: Bench, plan: Any, schema: Schema) -> list[str]:
    """What one unit with a long list breaks."""
    row = basket(random.Random(1), TARGET) | {"kinds": ["a", "b", "o'b"] * 30, "x": 999.0}
    return violations(plan, *(bench.run(plan.job, schema, {"baskets": r}) for r in ([row], [])))


def test_rows_of_others_choose_none_of_a_unit_s_own(bench, monkeypatch):
    """The planted mistake: rows are unnested up to a number of all rows, not of each unit's."""
    schema = schema_of(1, 9, replaced=False, unnested_rows=9)
    plan = planned(SQL, schema)
    source = random.Random(5)
    others = [basket(source, u) | {"kinds": ["a"] * 8, "x": 999.0} for u in range(1, 20)] * 2
    target = [basket(source, TARGET) | {"kinds": ["b"] * 8, "x": 999.0} for _ in range(200)]

    def found() -> list[str]:
        both = ([*others, *target], others)
        return violations(plan, *(bench.run(plan.job, schema, {"baskets": rows}) for rows in both))

    assert found() == []
    real = RowSource._first_of_unit

    def of_all(self, relation, rows, unit, window, most, lists=()):
        made = real(self, relation, rows, unit, window, most, lists)
        window.set("partition_by", [])
        return made

    monkeypatch.setattr(RowSource, "_first_of_unit", of_all)
    assert found() != []


def test_rows_that_are_not_limited_after_unnesting_are_seen(bench):
    """The planted mistake: one row of a unit is taken to give one row, so that none is cut."""
    schema = schema_of(1, 1, replaced=False)
    plan = planned(SQL, schema)
    assert moved_by(bench, plan, schema) == []
    unbounded = replace(plan, job=replace(plan.job, max_rows=1000, max_groups=1000))
    assert moved_by(bench, unbounded, schema) != []
    nobody = replace(plan, job=replace(plan.job, unit=None))
    assert moved_by(bench, nobody, schema) != []
