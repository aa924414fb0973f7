"""Lists, a row for each element: every engine that has them, against the reference."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction as F

import pytest
from sqlglot import exp

from conformance.engines import by_group, expected
from conformance.postgres import PostgresBench
from conformance.spark import SparkBench
from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.writer.forms import call
from dither.plan.job import Sides
from dither.plan.lowering.lower import lower
from dither.query.learning._learning import learning_query
from dither.sql import parse_query
from engines.hostile import Bench
from engines.lists import BASKETS, SCHEMA, rows
from spark_session import needs_spark

KEY = b"sixteen bytes..."

PLANS = (
    "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS us FROM baskets, UNNEST(words) AS t(w)",
    "SELECT w, COUNT(*) AS n FROM baskets, UNNEST(words) AS t(w) GROUP BY w",
    "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM baskets, UNNEST(kinds) AS t(k) GROUP BY k",
    "SELECT g, SUM(i) AS s, COUNT(i) AS c, MEDIAN(i) AS m, MODE(i % 3) AS o FROM baskets "
    "CROSS JOIN UNNEST(whole) AS t(i) WHERE i <> 7 OR i IS NULL GROUP BY g",
    "SELECT AVG(r) AS m, VARIANCE(r * x) AS v FROM baskets b, UNNEST(b.reals) AS t(r)",
    "SELECT f, COUNT(DISTINCT d) AS n FROM baskets, UNNEST(flags) AS t(f), UNNEST(days) AS s(d) "
    "GROUP BY f",
    "SELECT label, COUNT(*) AS n FROM baskets, UNNEST(kinds) AS t(k) JOIN labels ON k = code "
    "GROUP BY label",
    "SELECT COUNT(*) AS n, SUM(c) AS s FROM (SELECT u, k, COUNT(*) AS c, MAX(i) AS m FROM baskets, "
    "UNNEST(kinds) AS t(k), UNNEST(whole) AS s(i) GROUP BY u, k) AS q WHERE m > 7",
    "SELECT k, COUNT(*) AS n FROM (SELECT u, k FROM baskets, UNNEST(kinds) AS t(k) UNION ALL "
    "SELECT u, w FROM baskets, UNNEST(words) AS t(w)) AS q GROUP BY k",
    "SELECT COUNT(*) AS n FROM baskets, UNNEST(whole) AS t(a), UNNEST(whole) AS s(b) WHERE a < b",
    "SELECT k, COUNT(*) AS n, SUM(i) AS s FROM crates, UNNEST(kinds) AS t(k), UNNEST(whole) AS "
    "s(i) GROUP BY k",
    "SELECT AVG(r) AS m, COUNT(DISTINCT g, r) AS d FROM (SELECT g, x, r FROM crates, UNNEST(reals) "
    "AS t(r)) AS q WHERE r > -1",
)


@pytest.fixture(
    scope="module", params=["duckdb", "postgres", pytest.param("spark", marks=needs_spark)]
)
def bench(request):
    """The engines that have lists."""
    if request.param == "spark":
        yield SparkBench(SCHEMA)
        return
    made = (
        Bench(SCHEMA)
        if request.param == "duckdb"
        else PostgresBench(request.getfixturevalue("postgres_server"), SCHEMA)
    )
    yield made
    made.close()


def test_lists_are_seen_for_what_they_are(bench):
    """Kinds of elements, from types alone; no list is a value that a query could name."""
    assert bench.engine.lists("baskets") == {n: f.kind for n, f in BASKETS.lists.items()}
    described = bench.engine.describe("baskets")
    assert all(described[name] is None for name in BASKETS.lists)
    bench.engine.check(SCHEMA)


@pytest.mark.parametrize("sql", PLANS)
def test_every_engine_agrees_with_the_reference(bench, sql):
    """Integer for integer, over hostile elements."""
    if isinstance(bench, SparkBench) and PLANS.index(sql) % 2:
        pytest.skip("Spark takes long, and every second plan has each kind of element")
    job = lower(parse_query(sql, SCHEMA), SCHEMA).job
    bench.engine.prepare(job, SCHEMA)
    found = by_group(bench.run(job, SCHEMA, rows(), KEY))
    assert found == expected(job, SCHEMA, rows())
    assert found


LEARNED = [("baskets", "whole"), ("baskets", "days"), ("crates", "reals"), ("crates", "days")]


@pytest.mark.parametrize("table,column", LEARNED)  # noqa: PT006 - a pair is one case
def test_the_grid_of_elements_is_the_reference_s(bench, table, column):
    """What bounds of elements are learned by: a unit's share one vote, a row's first two count."""
    origin = dt.date(2000, 2, 1) if column == "days" else None
    plan = lower(learning_query(SCHEMA, table, "bounds", column, origin=origin), SCHEMA)
    edges = [F(-3), F(20)]
    measured = (m.between(*edges) if isinstance(m, Sides) else m for m in plan.job.measurements)
    job = replace(plan.job, measurements=tuple(measured))
    bench.engine.prepare(job, SCHEMA)
    found = by_group(bench.run(job, SCHEMA, rows(), KEY))
    assert found == expected(job, SCHEMA, rows())
    assert found


def of_one(unit, lists, **other):
    """Rows of one unit, with these numbers as words."""
    empty = dict.fromkeys(BASKETS.lists) | {"u": unit, "g": "a", "x": 1.0} | other
    return [empty | {"words": held and list(map(str, held))} for held in lists]


MANY = of_one(1, [[10 * i, 10 * i + 1, 10 * i + 2] for i in range(7)])
FEW = of_one(2, [[200, 201, 202, 203], [210, 211, 212, 213], [], None])
LONG = of_one(3, [list(range(300, 350))])
LEFT_OUT = of_one(4, [[400 + i for i in range(9)]] * 5, g="b") + of_one(4, [[490]])
OURS = "SELECT w, COUNT(*) AS n FROM baskets, UNNEST(words) AS t(w) WHERE g = 'a' GROUP BY w"


def test_rows_of_a_unit_are_unnested_up_to_so_many(bench):
    """Those that come first by the hash of the unit's own rows, and of a list its first elements;
    what a condition leaves out takes no place."""
    schema = replace(
        SCHEMA, tables=SCHEMA.tables | {"baskets": replace(BASKETS, max_unnest_rows=10)}
    )
    job = lower(parse_query(OURS, schema), schema).job
    bench.engine.prepare(job, schema)
    everybody = [*MANY, *FEW, *LONG, *LEFT_OUT]

    def kept(rows, key=KEY):
        answer = bench.run(job, schema, {"baskets": rows, "crates": [], "labels": []}, key)
        return {int(word) for (word,) in by_group(answer)}

    found = kept(everybody)
    of_many = {i for i in found if i < 100}
    assert len(of_many) == 9, "three rows of three elements: a fourth would make them 12"
    assert of_many == {10 * (i // 10) + j for i in of_many for j in range(3)}, "whole rows"
    assert {i for i in found if 200 <= i < 300} == {200, 201, 202, 203, 210, 211, 212, 213}
    assert {i for i in found if 300 <= i < 400} == set(range(300, 310)), "the first of a long list"
    assert {i for i in found if i >= 400} == {490}
    assert kept(MANY) == of_many, "others' rows decide nothing"
    quick = not isinstance(bench, SparkBench)
    assert not quick or kept(everybody[::-1]) == found, "nor does the order of rows"
    others = [kept(MANY, bytes([i]) * 16) for i in range(5 if quick else 1)]
    assert any(other != of_many for other in others), "but the key does"


def test_pairs_of_two_lists_share_what_a_unit_may_have(bench):
    """Of 100 rows of a unit each list has ten elements, and with nine rows of twelve pairs eight
    are unnested."""
    schema = replace(
        SCHEMA, tables=SCHEMA.tables | {"baskets": replace(BASKETS, max_unnest_rows=100)}
    )
    sql = (
        "SELECT w, COUNT(*) AS n FROM baskets, UNNEST(words) AS t(w), UNNEST(whole) AS s(i) "
        "GROUP BY w"
    )
    job = lower(parse_query(sql, schema), schema).job
    long = of_one(1, [list(range(50))], whole=[7] * 30)
    many = of_one(2, [[100 + 3 * i + j for j in range(3)] for i in range(9)], whole=[8] * 4)
    tables = {"baskets": [*long, *many], "crates": [], "labels": []}
    answer = by_group(bench.run(job, schema, tables, KEY))
    found = {int(word): n for (word,), (n, *_) in answer.items()}
    assert {k: n for k, n in found.items() if k < 100} == dict.fromkeys(range(10), 10)
    kept = {k: n for k, n in found.items() if k >= 100}
    assert len(kept) == 3 * 8
    assert set(kept.values()) == {4}


def without_null(self, value):
    return call("UNNEST", call("LIST_FILTER", value, exp.Lambda(
        this=exp.Not(this=exp.Is(this=exp.column("e"), expression=exp.Null())),
        expressions=[exp.to_identifier("e")])))  # fmt: skip


def once_each(self, value):
    return call("UNNEST", call("LIST_DISTINCT", value))


def padded(self, value):
    """An empty list as one row, as in a left join."""
    return call("UNNEST", call("COALESCE", value, exp.Array(expressions=[exp.Null()])))


@pytest.mark.parametrize("mistake", [without_null, once_each, padded])
def test_a_mistake_in_the_elements_is_seen(mistake, monkeypatch):
    """NULL elements left out, equal ones taken once, or rows of no list kept."""
    bench = Bench(SCHEMA)
    monkeypatch.setattr(DuckDBDialect, "unnested", mistake)
    jobs = [lower(parse_query(sql, SCHEMA), SCHEMA).job for sql in PLANS]
    wrong = [
        job for job in jobs
        if by_group(bench.run(job, SCHEMA, rows(), KEY)) != expected(job, SCHEMA, rows())
    ]  # fmt: skip
    bench.close()
    assert wrong
