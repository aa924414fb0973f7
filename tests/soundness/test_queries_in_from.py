"""Queries in the FROM, run on neighbours and against the reference; each planted bug is caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.engines import by_group
from dither.engines.duckdb.dialect import DuckDBDialect
from dither.errors import DitherError
from dither.plan.answers import ExactAnswer
from dither.plan.lowering.lower import Plan
from engines.hostile import Bench
from engines.reference import answer
from soundness.queries import nested
from soundness.tables import (
    TARGET,
    Rows,
    drawn_pair,
    moved,
    planned,
    schema_of,
    violations,
)
from soundness.test_sensitivity import EXAMPLES, SETTINGS, bounds, drawn_plan, target_rows

WIDE = schema_of(max_groups=1000, max_rows=1000, max_join_rows=1000)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(schema_of())
    yield made
    made.close()


@settings(SETTINGS, max_examples=max(EXAMPLES * 2 // 3, 1))
@given(
    sql=nested(),
    limits=bounds,
    discover=st.integers(0, 5).map(lambda n: n == 0),
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 15, 60)),
)
def test_no_unit_moves_an_answer_further_than_claimed(bench, sql, limits, discover, seed, most):
    """Rows, groups within a unit, several queries as one, and joins of them, to any depth."""
    plan, schema = drawn_plan(sql, limits, discover)
    pair = drawn_pair(seed, replace_one=schema.replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


@settings(
    max_examples=max(EXAMPLES // 3, 1), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(sql=nested(), seed=st.integers(0, 2**32))
def test_answers_are_those_of_the_reference(bench, sql, seed):
    """Where nothing has to be chosen by hash, every integer is the reference's."""
    try:
        plan = planned(sql, WIDE)
    except DitherError:
        assume(False)
    # Limits that follow from the form of a query are no limits here.
    job = replace(plan.job, max_groups=1000, max_rows=1000)
    rows = drawn_pair(seed, replace_one=False, most=8).first
    assert by_group(bench.run(job, WIDE, rows)) == answer(job, WIDE, rows)


@settings(
    max_examples=max(EXAMPLES // 10, 1), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(sql=nested(), seed=st.integers(0, 2**32))
def test_the_order_of_rows_does_not_matter(bench, sql, seed):
    """A table is a bag of rows, also for what is summed within a unit."""
    try:
        plan = planned(sql, schema_of())
    except DitherError:
        assume(False)
    rows = drawn_pair(seed, replace_one=False, most=30).first
    answers = [
        bench.run(plan.job, bench.schema, {n: list(r)[::turn] for n, r in rows.items()})
        for turn in (1, -1)
    ]
    assert all(l1 == 0 for l1, _ in moved(plan.job, *answers))


# --- claims that are attained -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "groups", "rows"),
    [
        ("SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) AS n FROM visits GROUP BY u) q", 1, 1),
        ("SELECT CLAMP(n, 1, 3) AS k, COUNT(*) AS c FROM (SELECT u, COUNT(*) AS n FROM visits "
         "GROUP BY u) q GROUP BY k", 1, 1),
        ("SELECT g, SUM(s) AS s FROM (SELECT u, g, SUM(x) AS s FROM visits GROUP BY u, g) q "
         "GROUP BY g", 2, 1),
        ("SELECT g, SUM(s) AS s FROM (SELECT u, g, b, SUM(x) AS s FROM visits GROUP BY u, g, b) q "
         "GROUP BY g", 2, 3),
        ("SELECT COUNT(*) AS n FROM (SELECT u, MAX(x) AS m FROM visits GROUP BY u UNION ALL SELECT "
         "u, MAX(v) FROM labs GROUP BY u) q", 1, 2),
        ("SELECT COUNT(*) AS n FROM (SELECT u FROM visits UNION ALL SELECT u FROM labs) q", 1, 6),
        ("SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) AS c FROM (SELECT u, x FROM visits UNION "
         "ALL SELECT u, v FROM labs) AS r GROUP BY u) q", 1, 1),
        ("SELECT COUNT(*) AS n FROM (SELECT o.u AS u, COUNT(*) AS c FROM visits JOIN (SELECT u, "
         "MAX(v) AS v FROM (SELECT u, v FROM labs WHERE v > 0) AS r GROUP BY u) AS o "
         "ON visits.u = o.u GROUP BY o.u) q", 1, 1),
        ("SELECT g, SUM(s) AS s FROM (SELECT u AS w, g, SUM(x) AS s FROM (SELECT u, g, x FROM "
         "visits) AS r GROUP BY u, g) q GROUP BY g", 2, 1),
    ],
)  # fmt: skip
def test_limits_follow_from_the_form(bench, sql, groups, rows):
    """A unit has one row for each inner key; its limits are no larger, and are attained."""
    plan = planned(sql, schema_of(max_groups=2, max_rows=3))
    assert (plan.job.max_groups, plan.job.max_rows) == (groups, rows)
    own = [{**row, "b": b} for b in (True, False, None) for row in target_rows("abcé", per_group=3)]
    labs = [{"u": TARGET, "v": 5} for _ in range(9)]
    answers = [
        bench.run(plan.job, bench.schema, {"visits": visits, "labs": more})
        for visits, more in ((own, labs), ([], []))
    ]
    assert violations(plan, *answers) == []
    distances = [l1 for l1, _ in moved(plan.job, *answers)]
    assert distances == [claim.l1 for claim in plan.sensitivities]


# --- mutants ----------------------------------------------------------------------------------

Mutant = Callable[[str], str]


def asked(bench: Bench, plan: Plan, rows: Rows, mutant: Mutant, monkeypatch) -> ExactAnswer:
    """The answer of an engine that asks for something else."""
    execute = type(bench.engine)._execute
    with monkeypatch.context() as patched:
        patched.setattr(
            type(bench.engine),
            "_execute",
            lambda self, sql, *take: execute(self, mutant(sql), *take),
        )
        return bench.run(plan.job, bench.schema, rows)


def groups_of_everybody(sql: str) -> str:
    """An inner GROUP BY without the unit: one row of many people, given to one of them."""
    found = sql.replace('SELECT "u", "g1", COUNT(*)', 'SELECT MIN("u") AS "u", "g1", COUNT(*)')
    return found.replace('GROUP BY "u", "g1")', 'GROUP BY "g1")')


def joined_to_everybody(sql: str) -> str:
    """A LEFT JOIN on the second pair alone: one person's rows meet another's."""
    if "LEFT JOIN" not in sql:  # the engine counts rows first
        return sql
    start = sql.index("LEFT JOIN")
    place = sql.index(" ON (", start)
    end = sql.index(" AND ", place)
    return sql[:place] + " ON (TRUE" + sql[end:]


PLANTED = {
    groups_of_everybody: "SELECT g, SUM(CLAMP(n, 0, 9)) AS s, COUNT(*) AS c FROM (SELECT u, g, "
    "COUNT(*) AS n FROM visits GROUP BY u, g) AS q GROUP BY g",
    joined_to_everybody: "SELECT COUNT(*) AS n, SUM(v) AS s FROM (SELECT u, CLAMP(i, 0, 1) AS i "
    "FROM visits) AS q LEFT JOIN (SELECT u, CLAMP(v, 0, 1) AS w, v FROM labs) AS o ON q.u = o.u "
    "AND q.i = o.w",
}


@pytest.mark.parametrize("mutant", PLANTED, ids=lambda m: m.__name__)
def test_a_query_with_a_bug_is_caught(bench, mutant, monkeypatch):
    """The comparison that all plans pass refutes each of these within a few pairs."""
    plan = planned(PLANTED[mutant], schema_of(max_groups=1, max_rows=2))
    refuted = 0
    for seed in range(25):
        pair = drawn_pair(seed, replace_one=False, most=15)
        sides = (pair.first, pair.second)
        assert violations(plan, *(bench.run(plan.job, bench.schema, r) for r in sides)) == []
        found = [asked(bench, plan, rows, mutant, monkeypatch) for rows in sides]
        refuted += bool(violations(plan, *found))
    assert refuted


def test_limits_on_each_part_of_a_union_are_caught(bench):
    """A unit that counts in each part by itself counts as often as there are parts."""
    schema = schema_of(max_groups=1, max_rows=2)
    part = "SELECT u, g FROM visits"
    whole = planned(
        f"SELECT g, COUNT(*) AS n FROM ({part} UNION ALL {part}) AS q GROUP BY g", schema
    )
    alone = planned(f"SELECT g, COUNT(*) AS n FROM ({part}) AS q GROUP BY g", schema)
    rows = {"visits": target_rows("a", per_group=9)}
    both = bench.run(whole.job, schema, rows)
    nobody = bench.run(whole.job, schema, {"visits": []})
    assert violations(whole, both, nobody) == []
    one = bench.run(alone.job, schema, rows)
    twice = ExactAnswer(one.keys, {0: one.values[0] * 2})
    assert violations(whole, twice, nobody)


def test_sums_of_doubles_within_a_unit_are_caught(bench, monkeypatch):
    """They would follow the order of rows; sums on the lattice do not.

    As if 64 bits held no sum: the engine's short sum takes no doubles at all.
    """
    monkeypatch.setattr(DuckDBDialect, "sums_in_64_bits", lambda self, size: False)
    plan = planned(
        "SELECT SUM(s) AS s FROM (SELECT u, SUM(y) AS s FROM visits GROUP BY u)", schema_of()
    )
    (row,) = target_rows("a", per_group=1)
    # In steps of the lattice: a half more than a whole number, and twice what is lost beside it.
    steps = (2**18 + 0.5, 2.0**-35, 2.0**-35)
    rows = [{**row, "y": n * 2.0**-19} for n in steps]

    def in_doubles(sql: str) -> str:
        return re.sub(
            r'CASE WHEN TRY_CAST\("o0" AS INT\) BETWEEN(?:(?!END AS).)*END AS "o0"', '"o0"', sql
        )

    def distances(mutant: Mutant) -> list[int]:
        orders = (rows, rows[::-1])
        found = [asked(bench, plan, {"visits": o}, mutant, monkeypatch) for o in orders]
        return [l1 for l1, _ in moved(plan.job, *found)]

    assert distances(lambda sql: sql) == [0]
    assert distances(in_doubles) != [0]
