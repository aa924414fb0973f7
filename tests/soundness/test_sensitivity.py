"""The exact part of generated plans, run on neighbours: the difference against what is claimed."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction as F
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine, FileSource
from dither.engines.duckdb.dialect import DUCKDB, DuckDBDialect
from dither.errors import DitherError
from dither.plan.answers import ExactAnswer, Histogram
from dither.plan.job import Total
from dither.plan.lowering.lower import Plan
from dither.plan.relations import PublicJoin
from dither.plan.schema import Kind, Schema, Table
from engines.hostile import KEY, Bench, frame
from soundness.queries import CONDITIONS, NUMBERS, queries
from soundness.tables import (
    DOCTOR_ROWS,
    MEASURED,
    TARGET,
    WARD_ROWS,
    Row,
    Rows,
    drawn_pair,
    drawn_row,
    moved,
    planned,
    planned_once,
    planned_ranks,
    schema_of,
    summed,
    violations,
)

EXAMPLES = int(os.environ.get("DITHER_EXAMPLES", "160"))

SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="DITHER_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

bounds = st.fixed_dictionaries(
    {
        "max_groups": st.sampled_from((1, 2, 3, 50)),
        "max_rows": st.sampled_from((1, 2, 3, 40)),
        "max_join_rows": st.sampled_from((1, 3)),
        "replace_one": st.booleans(),
    }
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(schema_of())
    yield made
    made.close()


def drawn_plan(sql: str, limits: dict[str, object], discover: bool) -> tuple[Plan, object]:
    """The plan of generated SQL; what is refused is not an example."""
    schema = schema_of(**limits)  # type: ignore[arg-type]
    try:
        return planned(sql, schema, discover=discover), schema
    except DitherError:
        assume(False)
        raise


@SETTINGS
@given(
    sql=queries(),
    limits=bounds,
    discover=st.integers(0, 5).map(lambda n: n == 0),
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 15, 60, 3000)),
)
def test_no_unit_moves_an_answer_further_than_claimed(bench, sql, limits, discover, seed, most):
    """L1 and squared L2 over all groups and leaves stay within the plan's sensitivities."""
    plan, schema = drawn_plan(sql, limits, discover)
    pair = drawn_pair(seed, replace_one=schema.replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


@SETTINGS
@given(
    numbers=st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3, unique=True),
    key=st.sampled_from(("", "g", "b", "i", "BIN(x, -10, 0, 5, 1000)")),
    condition=st.sampled_from(("", *CONDITIONS)),
    limits=bounds,
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 15, 60)),
)
def test_no_unit_that_counts_once_moves_an_answer_further_than_claimed(
    bench, numbers, key, condition, limits, seed, most
):
    """Sums, squares and products of units' means, as inference asks for them."""
    sums = [f"SUM({x}) AS s{i}" for i, x in enumerate(numbers)]
    by = f" GROUP BY {key}" if key else ""
    where = f" WHERE {condition}" if condition else ""
    chosen = ", ".join([*([f"{key} AS k"] if key else []), "COUNT(*) AS n", *sums])
    schema = schema_of(**limits)
    try:
        plan = planned_once(f"SELECT {chosen} FROM visits{where}{by}", schema)
    except DitherError:
        assume(False)
    pair = drawn_pair(seed, replace_one=schema.replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


@SETTINGS
@given(
    number=st.sampled_from(NUMBERS),
    bins=st.sampled_from((2, 7, 512)),
    once=st.booleans(),
    condition=st.sampled_from(("", *CONDITIONS)),
    limits=bounds,
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 15, 60)),
)
def test_no_unit_moves_ranks_further_than_claimed(
    bench, number, bins, once, condition, limits, seed, most
):
    """Numbers below the edges of a grid, as inference asks for quantiles."""
    where = f" WHERE {condition}" if condition else ""
    schema = schema_of(**limits)
    try:
        plan = planned_ranks(
            f"SELECT SUM({number}) AS s FROM visits{where}", bins, schema, once=once
        )
    except DitherError:
        assume(False)
    pair = drawn_pair(seed, replace_one=schema.replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


# --- claims that are attained -----------------------------------------------------------------

GROUPED = (
    "SELECT g AS k, COUNT(*) AS n, COUNT(x) AS m, COUNT(DISTINCT u) AS us, SUM(x) AS s, "
    "AVG(z) AS a, VARIANCE(z) AS v, MEDIAN(i) AS q FROM visits GROUP BY g"
)


def target_rows(groups: str, *, per_group: int, **values: Any) -> list[Row]:
    """Rows of the one unit, the same number in each group, all with these values."""
    plain = dict.fromkeys((c.name for c in MEASURED), None) | {"x": 1000.0, "i": 110, "z": 5.0}
    return [{"u": TARGET, **plain, **values, "g": g} for g in groups for _ in range(per_group)]


def reached(bench: Bench, sql: str, one: list[Row], other: list[Row], **limits: Any) -> list[bool]:
    """By measurement: whether the two targets' answers differ by all that is claimed."""
    plan = planned(sql, schema_of(**limits))
    first, second = (
        bench.run(plan.job, bench.schema, {"visits": rows, "doctors": DOCTOR_ROWS})
        for rows in (one, other)
    )
    assert violations(plan, first, second) == []
    distances = moved(plan.job, first, second)
    return [
        (F(l1), F(l2)) == (claim.l1, claim.l2_squared)
        for (l1, l2), claim in zip(distances, plan.sensitivities, strict=True)
    ]


@pytest.mark.parametrize("per_group", [3, 4, 700])
def test_a_unit_that_comes_or_goes_reaches_every_claim(bench, per_group):
    """Rows at the extremes, in as many groups as count: no claim is larger than it must be."""
    rows = target_rows("abc", per_group=per_group)
    assert all(reached(bench, GROUPED, rows, [], max_groups=2, max_rows=3))


def test_sets_of_keys_reach_every_claim(bench):
    """A unit counts in each set, up to its limits there: the sizes of small sets are limits too."""
    sql = GROUPED.replace("g AS k", "g AS k, b AS l").replace("BY g", "BY CUBE (g, b)")
    plan = planned(sql, schema_of(max_groups=3, max_rows=3))
    assert (plan.job.each, plan.job.max_groups) == (3, 3 + 3 + 2 + 1)
    rows = [row | {"b": b} for b in (True, False) for row in target_rows("abc", per_group=5)]
    assert all(reached(bench, sql, rows, [], max_groups=3, max_rows=3))


def test_a_budget_that_sets_do_not_share_is_caught(bench):
    """Noise for one set alone, where a unit counts in three, is refuted by rows of one unit."""
    known = schema_of(max_groups=1, max_rows=2)
    plan = planned("SELECT g, b, COUNT(*) AS n FROM visits GROUP BY ROLLUP (g, b)", known)
    alone = planned("SELECT g, b, COUNT(*) AS n FROM visits GROUP BY g, b", known)
    rows = {"visits": target_rows("a", per_group=2, b=True), "doctors": DOCTOR_ROWS}
    answers = [bench.run(plan.job, bench.schema, r) for r in (rows, {**rows, "visits": []})]
    assert violations(plan, *answers) == []
    assert violations(replace(plan, sensitivities=alone.sensitivities), *answers)


def test_levels_that_add_up_reach_every_claim(bench):
    """A unit's groups meet in the totals; what is claimed for levels by themselves is refuted."""
    known = schema_of(max_groups=3, max_rows=2)
    sql = "SELECT g, b, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY CUBE (g, b)"
    plan = planned(f"{sql} OPTIONS (consistent = TRUE)", known)
    apart = planned(sql, known)
    rows = [row | {"b": b} for b in (True, False) for row in target_rows("a", per_group=5)]
    rows += target_rows("b", per_group=5, b=True)
    answers = [
        bench.run(plan.job, bench.schema, {"visits": r, "doctors": DOCTOR_ROWS}) for r in (rows, [])
    ]
    assert violations(plan, *answers) == []
    distances = moved(plan.job, *(summed(plan, answer) for answer in answers))
    assert [l1 for l1, _ in distances] == [claim.l1 for claim in plan.sensitivities]
    assert violations(replace(plan, sensitivities=apart.sensitivities), *answers)


def test_a_join_on_part_of_a_key_is_caught(bench):
    """A row of a person meets the row of a public table that all columns of its key name.

    Named by one of them it meets another, and one alone all the same.
    """
    plan = planned(
        "SELECT COUNT(*) AS n, SUM(beds) AS s FROM people JOIN wards ON i = place AND g = kind",
        schema_of(),
    )
    join = plan.job.relation
    assert isinstance(join, PublicJoin)
    rows = [{n: v for n, v in row.items() if n != "u"} for row in target_rows("a", per_group=1)]
    tables = ({"people": held, "wards": WARD_ROWS} for held in (rows, []))
    part = replace(plan.job, relation=replace(join, on=join.on[:1]))
    first, second = ([bench.run(job, bench.schema, t) for job in (plan.job, part)] for t in tables)
    assert [violations(plan, *both) for both in zip(first, second, strict=True)] == [[], []]
    (met,) = [row["beds"] for row in WARD_ROWS if row["place"] == 110 and row["kind"] == "a"]
    found = [[int(answer.values[place][0]) for place in (0, 1)] for answer in first]
    assert found[0] == [1, met]
    assert found[1][0] == 1
    assert found[1][1] != met


def test_a_unit_that_is_replaced_reaches_every_claim(bench):
    """Opposite extremes in the same groups reach signed sums; other groups reach the counts."""
    one = target_rows("ab", per_group=5)
    limits = {"max_groups": 2, "max_rows": 3, "replace_one": True}
    others = (
        target_rows("cé", per_group=5),
        target_rows("ab", per_group=5, z=1.0),
        target_rows("ab", per_group=5, z=3.0),
    )
    each = [reached(bench, GROUPED, one, other, **limits) for other in others]
    assert all(any(found) for found in zip(*each, strict=True))


def test_the_smaller_claim_of_a_single_group_is_reached(bench):
    """Replacing a unit in one group of counts moves it by one contribution, not by two."""
    sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS us, SUM(i) AS s FROM visits WHERE i > 0"
    one, gone = (target_rows("a", per_group=9, i=i) for i in (110, 0))
    assert all(reached(bench, sql, one, gone, max_groups=2, max_rows=3, replace_one=True))


def test_a_unit_that_counts_once_reaches_every_claim(bench):
    """Its mean at a bound moves sums, squares and products by all that is claimed."""
    schema = schema_of(max_groups=3, max_rows=9)
    plan = planned_once(
        "SELECT COUNT(*) AS n, SUM(x - 495) AS s, SUM(i - 55) AS t FROM visits", schema
    )
    rest = [{**row, "u": 7} for row in target_rows("b", per_group=1, x=495.0, i=55)]
    found = []
    for value, other in ((1000.0, 110), (495.0, 55)):
        own = target_rows("abc", per_group=30, x=value, i=other)
        answers = [bench.run(plan.job, schema, {"visits": r}) for r in ([*rest, *own], rest)]
        assert violations(plan, *answers) == []
        distances = [F(l1) for l1, _ in moved(plan.job, *answers)]
        found.append([d == c.l1 for d, c in zip(distances, plan.sensitivities, strict=True)])
    assert all(map(any, zip(*found, strict=True)))


@pytest.mark.parametrize("replace_one", [False, True])
def test_ranks_of_units_reach_their_claim(bench, replace_one):
    """However many rows it has, a unit is one, all of it in one leaf at most."""
    schema = schema_of(max_groups=3, max_rows=9, replace_one=replace_one)
    plan = planned_ranks("SELECT SUM(i) AS s FROM visits", 5, schema, once=True)
    first = target_rows("abc", per_group=30, i=110)
    second = target_rows("ab", per_group=5, i=0) if replace_one else []
    answers = [bench.run(plan.job, schema, {"visits": rows}) for rows in (first, second)]
    assert violations(plan, *answers) == []
    ((l1, l2),), (claim,) = moved(plan.job, *answers), plan.sensitivities
    assert (F(l1), F(l2)) == (claim.l1, claim.l2_squared)


def test_a_row_that_is_a_person_reaches_every_claim(bench):
    """One row at the extremes, with and without it."""
    sql = GROUPED.replace("visits", "people").replace("COUNT(DISTINCT u) AS us, ", "")
    (row,) = target_rows("a", per_group=1)
    plan = planned(sql, schema_of())
    rest = [drawn_row("people", None, random.Random(5)) for _ in range(8)]
    first, second = (
        bench.run(plan.job, bench.schema, {"people": rows}) for rows in ([*rest, row], rest)
    )
    assert violations(plan, first, second) == []
    assert [F(l1) for l1, _ in moved(plan.job, first, second)] == [
        claim.l1 for claim in plan.sensitivities
    ]


def test_a_million_rows_of_one_unit_count_as_its_limits_say(bench):
    """10^6 rows in all groups, at the extremes, reach the claims and not more."""
    four = frame(bench.schema, "visits", target_rows("abcé", per_group=1))
    heavy = four.select(pl.all().gather(np.arange(10**6) % 4))
    rest = [drawn_row("visits", i % 5, random.Random(i)) for i in range(50)]
    others = frame(bench.schema, "visits", rest)
    plan = planned(GROUPED, schema_of(max_groups=2, max_rows=3))
    answers = []
    for content in (pl.concat([heavy, others]), others):
        bench.put_frame("visits", content)
        answers.append(bench.engine.run(plan.job, bench.schema, KEY))
    assert violations(plan, *answers) == []
    assert [F(l1) for l1, _ in moved(plan.job, *answers)] == [c.l1 for c in plan.sensitivities]


def test_ties_of_the_hash_are_broken_by_the_unit_alone(bench, monkeypatch):
    """Were every hash equal, the groups and rows kept would still be a matter of the unit's own."""
    monkeypatch.setattr(DuckDBDialect, "keyed_hash", lambda self, seeds, parts: DUCKDB.integer(0))
    for seed in range(8):
        schema = schema_of(max_groups=1 + seed % 2, max_join_rows=1)
        for sql in (
            GROUPED,
            "SELECT w, SUM(v) AS s FROM visits JOIN labs ON visits.u = labs.u GROUP BY w",
        ):
            plan = planned(sql, schema)
            pair = drawn_pair(seed, replace_one=False, most=60)
            answers = [bench.run(plan.job, schema, rows) for rows in (pair.first, pair.second)]
            assert violations(plan, *answers) == []


# --- mutants ----------------------------------------------------------------------------------


def without_group_limit(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """A unit counts in every group."""
    return bench.run(replace(plan.job, max_groups=10**6), bench.schema, rows)


def without_limit_of_sets(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """A unit counts in every group of each set of keys."""
    return bench.run(replace(plan.job, each=10**6), bench.schema, rows)


def without_row_limit(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """All rows of a unit count."""
    return bench.run(replace(plan.job, max_rows=10**6), bench.schema, rows)


def clamped_too_late(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """Values are summed as they are, and each group's sum is moved inside what 10^6 rows reach."""
    tables = {
        name: replace(t, columns={n: replace(c, lower=None) for n, c in t.columns.items()})
        for name, t in bench.schema.tables.items()
    }
    wide = tuple(
        replace(m, lower=-(2**40), upper=2**40) if isinstance(m, Total) else m
        for m in plan.job.measurements
    )
    job = replace(plan.job, measurements=wide)
    answer = bench.run(job, replace(bench.schema, tables=tables), rows)
    clamped = {
        place: np.clip(answer.values[place], *(10**6 * end for end in m.ends))
        if isinstance(m, Total)
        else answer.values[place]
        for place, m in enumerate(plan.job.measurements)
    }
    return ExactAnswer(answer.keys, clamped)


def limited_by_order(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """Only the first rows of the table are read, no matter who they belong to."""
    return bench.run(plan.job, bench.schema, {**rows, "visits": rows["visits"][:12]})


def groups_by_popularity(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """A unit keeps the groups that have the fewest rows of all units."""
    size = Counter(row["g"] for row in rows["visits"])
    order = sorted(size, key=lambda g: (size[g], str(g)))
    mine: dict[Any, set[Any]] = {}
    for row in rows["visits"]:
        mine.setdefault(row["u"], set()).add(row["g"])
    kept = {
        unit: set([g for g in order if g in own and g is not None][: plan.job.max_groups])
        for unit, own in mine.items()
    }
    chosen = [row for row in rows["visits"] if row["g"] in kept[row["u"]]]
    return bench.run(plan.job, bench.schema, {**rows, "visits": chosen})


def wrapped_at_29_bits(bench: Bench, plan: Plan, rows: Rows) -> ExactAnswer:
    """Sums are kept in 29 bits."""
    answer = bench.run(plan.job, bench.schema, rows)
    wrapped = {
        i: v if isinstance(v, Histogram) else (v + 2**28) % 2**29 - 2**28
        for i, v in answer.values.items()
    }
    return ExactAnswer(answer.keys, wrapped)


MUTANTS = (
    without_group_limit,
    without_limit_of_sets,
    without_row_limit,
    clamped_too_late,
    limited_by_order,
    groups_by_popularity,
    wrapped_at_29_bits,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_an_engine_with_a_bug_is_caught(bench, mutant):
    """The comparison that all plans pass refutes each of these engines within a few pairs."""
    sql = "SELECT g AS k, COUNT(*) AS n, SUM(x) AS s, SUM(j) AS t, MEDIAN(i) AS q FROM visits "
    by = "ROLLUP (g)" if mutant is without_limit_of_sets else "g"
    plan = planned(sql + f"GROUP BY {by}", schema_of(max_groups=1, max_rows=2))
    found = []
    for seed in range(25):
        pair = drawn_pair(seed, replace_one=False, most=15)
        found = violations(plan, *(mutant(bench, plan, rows) for rows in (pair.first, pair.second)))
        if found:
            break
    assert found


def distinct_by_popularity(rows: Rows, most: int) -> ExactAnswer:
    """Of a unit's values those count that most others have: its coming changes what others keep."""
    common = Counter(row["n"] for row in rows["visits"])
    mine: dict[Any, set[Any]] = {}
    for row in rows["visits"]:
        if row["u"] is not None and row["n"] is not None:
            mine.setdefault(row["u"], set()).add(row["n"])
    kept = [sorted(own, key=lambda v: (-common[v], v))[:most] for own in mine.values()]
    return ExactAnswer([()] if kept else [], {0: np.array([len({*chain(*kept)})] if kept else [])})


def test_a_distinct_count_that_is_bounded_wrong_is_caught(bench):
    """Without a limit, and with one that depends on others; the engine's own passes."""
    plan = planned("SELECT COUNT(DISTINCT n) AS n FROM visits", schema_of(max_rows=1))
    wide = replace(plan.job, max_rows=10**6)
    found: dict[str, list[str]] = {"own": [], "without a limit": [], "by popularity": []}
    plain = drawn_row("visits", 0, random.Random(0))
    others = [plain | {"u": u, "n": n} for u in (1, 2, 3) for n in (u, 9)]
    # With these rows 1, 2 and 3 become more common than 9, which the others kept before.
    more = [plain | {"u": TARGET, "n": n} for n in (1, 2, 3) for _ in range(5)]
    pairs = [({"visits": [*others, *more]}, {"visits": others})]
    pairs += [
        (p.first, p.second) for p in (drawn_pair(i, replace_one=False, most=60) for i in range(20))
    ]
    for both in pairs:
        found["own"] += violations(plan, *(bench.run(plan.job, bench.schema, r) for r in both))
        found["without a limit"] += violations(
            plan, *(bench.run(wide, bench.schema, r) for r in both)
        )
        found["by popularity"] += violations(plan, *(distinct_by_popularity(r, 1) for r in both))
    assert not found["own"]
    assert found["without a limit"]
    assert found["by popularity"]


@pytest.mark.parametrize("replace_one", [False, True])
def test_distinct_values_reach_their_claim(bench, replace_one):
    """Values that nobody else has, as many as count, in as many groups as count."""
    limits = {"max_groups": 2, "max_rows": 3, "replace_one": replace_one}
    one, other = (
        [{**row, "n": start + i} for i, row in enumerate(target_rows(groups, per_group=4))]
        for start, groups in ((0, "ab"), (1000, "cé" if replace_one else ""))
    )
    sql = "SELECT g AS k, COUNT(DISTINCT n) AS n FROM visits GROUP BY g"
    assert reached(bench, sql, one, other, **limits) == [True]


# --- files ------------------------------------------------------------------------------------


def stored_as(form: str, path: Path, table: pl.DataFrame, kinds: dict[str, Kind]) -> Any:
    """Rows as a source: one file, or a folder of two that are divided by key."""
    if form == "folder":
        for part in ("one", "two"):
            (path / f"part={part}").mkdir(parents=True)
            own = table[::2] if part == "one" else table[1::2]
            own.write_parquet(path / f"part={part}" / "rows.parquet")
        return path
    path = path.with_suffix(f".{form}")
    if form == "jsonl":
        table.write_ndjson(path)
        return FileSource(path, "jsonl", columns=kinds)
    table.write_parquet(path) if form == "parquet" else table.write_csv(path)
    return path


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl", "folder"])
@pytest.mark.parametrize("seed", range(4))
def test_tables_in_files_are_bounded_alike(tmp_path, form, seed):
    """The same comparison over files of hostile rows, of lines, and over folders of files."""
    # Units are compared as they are stored, and files of lines store text.
    kind = Kind.TEXT if form in ("csv", "jsonl") else Kind.INTEGER
    schema = schema_of(max_groups=2, max_rows=3, unit_kind=kind)
    written = schema_of(max_groups=2, max_rows=3)
    pair = drawn_pair(seed, replace_one=False, most=40)
    answers: dict[str, list[ExactAnswer]] = {GROUPED: [], FOUND_BY_WORD: []}
    for side, rows in (("first", pair.first), ("second", pair.second)):
        sources = {}
        for name, content in rows.items():
            kinds = {n: f.kind for n, f in schema.table(name).columns.items()}
            path = tmp_path / f"{side}-{name}"
            sources[name] = stored_as(form, path, frame(written, name, content), kinds)
        with DuckDBEngine(sources, threads=1) as engine:
            engine.check(schema)
            for sql in answers:
                answers[sql].append(engine.run(planned(sql, schema).job, schema, KEY))
    for sql, (first, second) in answers.items():
        assert violations(planned(sql, schema), first, second) == []
    assert all(answers[sql][0].keys for sql in answers)


FOUND_BY_WORD = (
    "SELECT SUBSTRING(w, 1, 1) AS k, COUNT(DISTINCT u) AS n, SUM(x) AS s, AVG(j) AS a, "
    "QUANTILE(y, 0.1) AS q FROM visits WHERE r >= -1 OR r IS NULL GROUP BY k"
)

LINES = (
    b'"never closed',
    b'a,"b""c,1',
    b",,,,,,,,,,,,,,,,,,,,,,,,",
    b"\xff\xfe\x00\xc3\x28",
    b"\x00\x00",
    b"\x02\x03,\x02",
    b"a" * 3_000_000,
    b"'; DROP TABLE source_0; --",
    b"{e},\\N,NULL,NaN",
    b"a,9223372036854775808,1e999,-1e-999",
    b"a,1,2,3" + b'"' * 999,
)


@pytest.mark.parametrize("place", [0, 1, 2, 40])
def test_one_broken_line_of_a_csv_file_changes_one_row(tmp_path, place):
    """Whatever a line holds, the others are read as before."""
    facts = ("g", "i", "x", "w")
    table = Table("people", {c.name: c for c in MEASURED if c.name in facts})
    schema = Schema({"people": table})
    source = random.Random(place)
    rows = [drawn_row("people", None, source) for _ in range(40)]
    text = frame(schema_of(), "people", rows).select(facts).write_csv().encode()
    head, *lines = text.split(b"\n")[:-1]
    sql = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(i) AS a, MEDIAN(x) AS q FROM people"
    plan = planned(sql, schema)

    def answer(content: list[bytes]) -> ExactAnswer:
        path = tmp_path / "people.csv"
        path.write_bytes(b"\n".join([head, *content, b""]))
        with DuckDBEngine({"people": path}, threads=1) as engine:
            return engine.run(plan.job, schema, KEY)

    plain = answer(lines)
    assert plain.values[0].tolist() == [40]
    for broken in LINES:
        assert violations(plan, answer([*lines[:place], broken, *lines[place:]]), plain) == []
