"""Failures that other systems are known for, each held off by a test."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction as F
from itertools import count

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dither as dt
from dither.errors import DitherError, EngineError, PolicyError, QueryError, TokenError
from dither.plan.answers import ExactAnswer
from dither.plan.job import Distinct
from engines.hostile import Bench, frame
from soundness.queries import queries
from soundness.sessions import MEASURES, Watch, opened, policy_in, spent
from soundness.tables import MEASURED, TARGET, drawn_pair, drawn_row, planned, schema_of, violations


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all tests here."""
    made = Bench(schema_of())
    yield made
    made.close()


def as_dict(answer: ExactAnswer) -> dict[object, list[object]]:
    """An answer by group; groups of zeros are as good as absent."""
    places = sorted(answer.values)
    found = {}
    for at, key in enumerate(answer.keys):
        parts = [answer.values[p].tolist()[at] for p in places]
        if np.any([np.any(part) for part in parts]):
            found[key] = parts
    return found


def added(one: dict, other: dict) -> dict:
    """The sum of two answers by group."""
    total = dict(one)
    for key, parts in other.items():
        mine = total.get(key)
        total[key] = (
            parts if mine is None else [_sum(a, b) for a, b in zip(mine, parts, strict=True)]
        )
    return {k: v for k, v in total.items() if np.any([np.any(part) for part in v])}


def _sum(a, b):
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b


# --- one person's rows and another's ------------------------------------------------------------


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(sql=queries(tables=("visits",)), seed=st.integers(0, 2**32), groups=st.integers(1, 3))
def test_an_answer_is_the_sum_of_what_each_unit_gives(bench, sql, seed, groups):
    """Bounding sees a unit's own rows alone: the answer without a unit, plus its own, is whole.

    Distinct values are a union, and not a sum: a value that two units have counts once.
    """
    schema = schema_of(max_groups=groups)
    try:
        plan = planned(sql, schema)
    except DitherError:
        assume(False)
        raise
    assume(not any(isinstance(m, Distinct) for m in plan.job.measurements))
    whole = drawn_pair(seed, replace_one=False, most=15).first
    alone = {t: [r for r in rows if r.get("u", TARGET) == TARGET] for t, rows in whole.items()}
    rest = {t: [r for r in rows if "u" not in r or r["u"] != TARGET] for t, rows in whole.items()}
    parts = [as_dict(bench.run(plan.job, schema, rows)) for rows in (alone, rest)]
    assert as_dict(bench.run(plan.job, schema, whole)) == added(*parts)


def test_the_order_of_rows_changes_nothing(bench):
    """Shuffled, sorted and reversed tables have one answer."""
    schema = schema_of(max_groups=1, max_rows=2)
    rows = list(drawn_pair(3, replace_one=False, most=60).first["visits"])
    sql = "SELECT g AS k, COUNT(*) AS n, SUM(x) AS s, MEDIAN(i) AS q FROM visits GROUP BY g"
    plan = planned(sql, schema)
    found = []
    for order in range(4):
        random.Random(order).shuffle(rows)
        found.append(as_dict(bench.run(plan.job, schema, {"visits": rows})))
    assert all(answer == found[0] for answer in found)
    assert found[0]


# --- values that raise, poison or wrap ----------------------------------------------------------

RISKY = (
    "SELECT SUM(100 / i) AS s, AVG(CLAMP(1 / y, -5, 5)) AS a FROM visits",
    "SELECT SUM(CLAMP(n, -9, 9) // CLAMP(n, -3, 3)) AS s, SUM(CLAMP(n, 0, 99) % i) AS m "
    "FROM visits",
    "SELECT SUM(FLOOR(x / z)) AS s FROM visits WHERE 1 / y > -2 OR y = 0",
    "SELECT AVG(j) AS s, VARIANCE(x) AS v FROM visits WHERE n > 0 AND EXTRACT(YEAR FROM d) > 0",
    "SELECT EXTRACT(HOUR FROM t) AS k, SUM(x * y) AS s FROM visits GROUP BY k",
    "SELECT DATE_TRUNC('week', d) AS k, COUNT(*) AS s FROM visits GROUP BY k",
    "SELECT SUBSTRING(w, 1, 2) AS k, COUNT(*) AS s FROM visits WHERE LOWER(w) <> 'x' GROUP BY k",
)


@pytest.mark.parametrize("sql", RISKY)
def test_nothing_raises_because_one_person_is_there(bench, sql):
    """Zero divisors, values no cast can hold, dates at the ends: an answer, or none, for all."""
    schema = schema_of()
    plan = planned(sql, schema)
    calm = [drawn_row("visits", unit, random.Random(unit)) for unit in range(4)]
    calm = [row | {"i": 7, "y": 0.5, "n": 3} for row in calm]
    for seed in range(12):
        target = [drawn_row("visits", TARGET, random.Random(seed * 99 + i)) for i in range(4)]
        target[0] |= {"i": 0, "y": 0.0, "n": 0}
        answers = [
            bench.run(plan.job, schema, {"visits": rows}) for rows in ([*calm, *target], calm)
        ]
        assert violations(plan, *answers) == []


def test_casts_of_text_do_not_raise(tmp_path):
    """Text that is read as numbers and dates: what cannot be read is NULL."""
    policy = policy_in(tmp_path)
    policy["tables"] = {
        "people": {
            "columns": {
                "age": {"type": "integer", "bounds": [0, 110]},
                "cost": {"type": "real", "bounds": [0, 10]},
                "day": {"type": "date", "bounds": [dt_date(2020), dt_date(2021)]},
                "flag": {"type": "boolean"},
            }
        }
    }
    words = ["1", "x", "", "1e999", "NaN", "-inf", "99999999999999999999", "2020-02-30", "\x00"]
    people = pl.DataFrame(dict.fromkeys(("age", "cost", "day", "flag"), words))
    with dt.open(policy, sources={"people": people}) as session:
        frame = (
            session.sql(
                "SELECT flag, COUNT(age) AS a, SUM(cost) AS c, COUNT(day) AS d FROM people "
                "GROUP BY flag"
            )
            .release(5)
            .frame
        )
    assert frame.height == 2


def dt_date(year: int):
    import datetime

    return datetime.date(year, 1, 1)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf"), None, 1e308])
def test_one_value_does_not_poison_a_sum(bench, poison):
    """The others' sum is as it was; the value itself counts within its bounds, or not at all."""
    schema = schema_of()
    plan = planned("SELECT SUM(x) AS s, AVG(y) AS a, COUNT(x) AS n FROM people", schema)
    plain = dict.fromkeys((c.name for c in MEASURED), None)
    rest = [{**plain, "x": 10.0, "y": 0.25} for _ in range(50)]
    bad = {**plain, "x": poison, "y": poison}
    answers = [bench.run(plan.job, schema, {"people": rows}) for rows in ([*rest, bad], rest)]
    assert violations(plan, *answers) == []
    kept = 0 if poison is None or poison != poison else 1
    gained = answers[0].values[0][0] - answers[1].values[0][0]
    assert gained == kept * (100_000 if poison and poison > 0 else -1_000)


def test_sums_do_not_wrap(tmp_path):
    """Four thousand times 2^62 is far beyond 64 bits, and so is the answer."""
    people = pl.DataFrame({"j": [2**62, 2**63 - 1] * 2_000})
    policy = policy_in(tmp_path)
    policy["tables"] = {"people": {"columns": {"j": {"bounds": [0, 2**62]}}}}
    with dt.open(policy, sources={"people": people}) as session:
        answer = session.sql("SELECT SUM(j) AS s FROM people").release(10)
        (low,), (high,) = answer.frame["s_lower"], answer.frame["s_upper"]
        assert "s" in answer.summary()
    assert low * 0.99 < 4_000 * 2**62 < high * 1.01
    assert high < 5_000 * 2**62


# --- names --------------------------------------------------------------------------------------

SHADOWS = (
    "SELECT UPPER(g) AS g, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT b AS g, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY 1",
    "SELECT b AS u, COUNT(*) AS n, COUNT(DISTINCT u) AS us FROM visits GROUP BY 1",
    "SELECT i // 30 AS x, SUM(x) AS s FROM visits GROUP BY 1",
    "SELECT g AS n, b AS c, COUNT(*) AS u FROM visits GROUP BY 1, 2",
    "SELECT g AS k1, b AS k0, COUNT(*) AS v0, MEDIAN(x) AS leaf FROM visits GROUP BY 1, 2",
    "SELECT g AS position, b AS value, MEDIAN(i) AS total FROM visits GROUP BY 1, 2",
    "SELECT g AS occurrence, SUM(v) AS rows, COUNT(*) AS parts FROM visits "
    "JOIN labs ON visits.u = labs.u GROUP BY 1",
    "SELECT w AS u, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT n AS g, g AS n, COUNT(*) AS c0, SUM(j) AS rc0 FROM visits GROUP BY 1, 2",
)


@pytest.mark.parametrize("sql", SHADOWS)
def test_a_name_given_twice_changes_no_bounding(bench, sql):
    """Keys named like the unit, a column, or the engine's own columns bound as any others."""
    schema = schema_of(max_groups=1, max_rows=2)
    plan = planned(sql, schema)
    for seed in range(6):
        pair = drawn_pair(seed, replace_one=False, most=40)
        answers = [bench.run(plan.job, schema, rows) for rows in (pair.first, pair.second)]
        assert violations(plan, *answers) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS g, COUNT(*) AS n FROM visits GROUP BY g",
        "SELECT UPPER(g) AS g, COUNT(*) AS n FROM visits GROUP BY g",
        "SELECT b AS g, COUNT(*) AS n, SUM(x) AS s FROM visits GROUP BY g",
        "SELECT g, g AS h, COUNT(*) AS g FROM visits GROUP BY g",
        "SELECT g AS a, b AS a, COUNT(*) AS n FROM visits GROUP BY 1, 2",
    ],
)
def test_a_key_that_is_overwritten_is_one_key_or_refused(bench, sql):
    """An alias over a grouping column makes one group, or an error: never more groups a unit."""
    schema = schema_of(max_groups=1, max_rows=2)
    try:
        plan = planned(sql, schema)
    except QueryError:
        return
    pair = drawn_pair(1, replace_one=False, most=40)
    answers = [bench.run(plan.job, schema, rows) for rows in (pair.first, pair.second)]
    assert violations(plan, *answers) == []


# --- what is said before and beside an answer ----------------------------------------------------

ASKED = (
    "SELECT COUNT(*) AS n FROM people",
    "SELECT g, AVG(x) AS m, MEDIAN(i) AS q, VARIANCE(z) AS v FROM visits GROUP BY g",
    "SELECT w, COUNT(*) AS n FROM visits GROUP BY w",
)


@pytest.mark.parametrize("sql", ASKED)
def test_nothing_but_noisy_numbers_depends_on_the_data(tmp_path, monkeypatch, sql):
    """Over 3 rows or 3,000: explain, preview, price, notes and certificate are the same words."""
    said = []
    for name, rows in (("few", 3), ("many", 3_000)):
        folder = tmp_path / name
        folder.mkdir()
        base = {"u": range(rows), "w": "one", "n": 1, "g": "a", "i": 5, "j": 1, "x": 3.0, "y": 0.5}
        visits = pl.DataFrame({"u": list(base.pop("u"))}).with_columns(
            **{k: pl.lit(v) for k, v in base.items()}, z=pl.lit(2.0)
        )
        with opened(folder, {"visits": visits, "people": visits.drop("u")}) as session:
            watch = Watch(session, monkeypatch)
            question = session.sql(sql)
            words = [
                question.sql,
                str(question.explain()),
                str(question.explain(1)),
                str(question.preview(1)),
                str(question.budget_for(100, size=1000)),
                repr(question),
                str(session.balance()),
            ]
            assert (watch.runs, watch.executed) == (0, 0)
            answer = question.release(1)
            assert watch.runs == 1
            body = answer.certificate.to_dict()
            # The answer's hash is one of noisy numbers.
            for field in ("ledger", "digest", "policy", "request", "answer"):
                del body[field]
            said.append([*words, json.dumps(body), answer.keys, answer.outputs, answer.units])
    assert said[0] == said[1]


def test_the_size_of_a_table_is_public_only_where_neighbours_say_so(tmp_path):
    """Exact only for all rows of a table under replace-one, where no neighbour has another."""
    people = pl.DataFrame({"i": [1, 2, 3] * 11, "g": ["a"] * 33})
    exact, noisy = [], []
    for sql, neighbours in (
        ("SELECT COUNT(*) AS n FROM people", "replace_one"),
        ("SELECT COUNT(*) AS n FROM people", "add_remove"),
        ("SELECT COUNT(*) AS n FROM people WHERE i > 0", "replace_one"),
        ("SELECT COUNT(i) AS n FROM people", "replace_one"),
        ("SELECT g, COUNT(*) AS n FROM people GROUP BY g", "replace_one"),
    ):
        folder = tmp_path / str(len(exact) + len(noisy))
        folder.mkdir()
        policy = policy_in(folder, neighbours=neighbours)
        policy["tables"] = {"people": {"columns": {n: dict(MEASURES[n]) for n in ("i", "g")}}}
        with dt.open(policy, sources={"people": people}) as session:
            answers = [session.sql(sql).release("0.05").frame["n"][0] for _ in range(12)]
        (exact if set(answers) == {33} else noisy).append(sql)
    assert len(exact) == 1
    assert len(noisy) == 4


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["budget", "epsilon", "ledger"])
def test_a_policy_without_a_cap_is_refused(tmp_path, missing):
    """No budget, no epsilon, no ledger: no session."""
    policy = policy_in(tmp_path)
    if missing == "budget":
        del policy["budget"]
    else:
        del policy["budget"][missing]
    with pytest.raises(PolicyError, match=missing):
        dt.open(policy, sources={"people": pl.DataFrame({"g": ["a"]})})


class Unlucky(Exception):
    """A failure with a value of the data in its words."""


FAILURES = (
    MemoryError("row 7 of Ada Lovelace"),
    ValueError("could not convert 'Ada Lovelace'"),
    KeyError("Ada Lovelace"),
    Unlucky("Ada Lovelace"),
)


def test_a_failure_after_the_charge_stays_charged_and_says_nothing(tmp_path, monkeypatch):
    """Every failure has one message, costs what the answer would have, and is not asked again."""
    said, numbers = set(), count()
    with opened(tmp_path, {}) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM people")
        for failure in FAILURES:

            def fail(*_, failure=failure):
                raise failure

            with monkeypatch.context() as patch:
                patch.setattr(session._engine, "run", fail)
                before = spent(session)[0].epsilon
                token = f"request {next(numbers)}"
                with pytest.raises(EngineError) as caught:
                    question.release("0.5", token=token)
                said.add(str(caught.value))
                assert caught.value.__cause__ is None
                assert caught.value.__suppress_context__
                assert spent(session)[0].epsilon == before + F(1, 2)
            with pytest.raises(TokenError):
                question.release("0.5", token=token)
            assert spent(session)[0].epsilon == before + F(1, 2)
        assert len(said) == 1
        assert "Lovelace" not in said.pop()


def test_a_file_that_is_gone_costs_nothing_before_the_charge(tmp_path, monkeypatch):
    """Gone before the charge it costs nothing; gone beneath the engine, as much as an answer."""
    path = tmp_path / "people.parquet"
    pl.DataFrame({"g": ["a"] * 9, "w": ["b"] * 9}).write_parquet(path)
    policy = policy_in(tmp_path)
    policy["tables"] = {"people": {"source": str(path), "columns": {"g": MEASURES["g"]}}}
    with dt.open(policy) as session:
        question = session.sql("SELECT COUNT(*) AS n FROM people WHERE g = 'a'")
        whole = path.read_bytes()
        path.unlink()
        with pytest.raises(PolicyError, match="open it anew"):
            question.release(1)
        assert spent(session)[0].epsilon == 0
        path.write_bytes(whole)
        charge = session.ledger.charge

        def charged_and_gone(*arguments, **named):
            path.unlink()
            return charge(*arguments, **named)

        monkeypatch.setattr(session.ledger, "charge", charged_and_gone)
        with pytest.raises(EngineError) as caught:
            question.release(1)
        assert str(path) not in str(caught.value)
        assert spent(session)[0].epsilon == 1


def test_the_same_token_is_answered_once(tmp_path, monkeypatch):
    """A replay costs nothing, runs nothing and tells the same; another question is refused."""
    people = frame(schema_of(), "people", [drawn_row("people", None, random.Random(1))] * 40)
    with opened(tmp_path, {"people": people}) as session:
        watch = Watch(session, monkeypatch)
        question = session.sql("SELECT COUNT(*) AS n FROM people")
        first = question.release(1, token="monday")
        second = question.release(1, token="monday")
        assert (watch.runs, spent(session)[0].epsilon) == (1, 1)
        assert second.replayed
        assert second.frame.equals(first.frame)
        for other in (session.sql("SELECT COUNT(*) AS m FROM people"), question):
            with pytest.raises(TokenError):
                other.release(2, token="monday")
        assert (watch.runs, spent(session)[0].epsilon) == (1, 1)
