"""Quantiles, and columns of public tables as keys, from end to end."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import dither as dt
from query.query_data import REGIONS, policy, visits


def opened(folder, frame, columns, **table):
    """A session on one table ``t`` with next to no limit on what may be spent."""
    policy = {
        "budget": {"epsilon": 10**9, "ledger": str(folder / "quantiles.ledger")},
        "tables": {"t": {"source": "t.parquet", "columns": columns, **table}},
    }
    return dt.open(policy, sources={"t": frame})


def test_one_value_in_a_wide_range_is_told_to_its_resolution(tmp_path):
    """1,000 among a million: within 1 of it, and the notes say that no more can be told."""
    frame = pl.DataFrame({"x": [1000.0] * 500, "y": [1000] * 500})
    columns = {"x": {"bounds": [0, 10**6]}, "y": {"bounds": [0, 10**6], "type": "integer"}}
    with opened(tmp_path, frame, columns) as session:
        release = session.sql("SELECT MEDIAN(x) AS x, MEDIAN(y) AS y FROM t").release(10**4)
    row = release.frame.row(0, named=True)
    assert (row["y"], row["y_lower"], row["y_upper"]) == (1000, 1000, 1000)
    assert row["x_lower"] <= 1000 <= row["x_upper"]
    assert 0 < row["x_upper"] - row["x_lower"] <= 2
    assert "quantiles of x are found in steps of 1, and no finer" in release.notes


def test_rows_of_a_unit_that_do_not_all_count_leave_no_gap_in_the_interval(tmp_path):
    """With 2 of 40 rows counted, the interval holds the median of all rows at any epsilon.

    30 releases at ε = 100, of intervals of at least 95 %: fewer than 20 hold it with probability
    below 1e-8. Were rows chosen by chance, about 9 of 30 would.
    """
    rng = np.random.default_rng(7)
    values = rng.normal(rng.normal(50, 10, 150)[:, None], 15, (150, 40)).round().clip(0, 100)
    frame = pl.DataFrame({"user": np.repeat(np.arange(150), 40), "x": values.ravel().astype(int)})
    columns = {"x": {"type": "integer", "bounds": [0, 100]}}
    with opened(tmp_path, frame, columns, unit="user", max_groups=1, max_rows=2) as session:
        question = session.sql("SELECT MEDIAN(x) AS m FROM t")
        frames = [question.release(100).frame for _ in range(30)]
    truth = frame["x"].median()
    found = pl.concat(frames)
    assert (found["m_lower"].le(truth) & found["m_upper"].ge(truth)).sum() >= 20


@pytest.mark.parametrize("values", [[0, 10], [3, 3, 9], list(range(0, 60, 6)), [1, 50, 50, 90]])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantile_cont_is_that_of_duckdb(tmp_path, values, q):
    """With next to no noise the interval holds what DuckDB says, between two rows too."""
    import duckdb

    frame = pl.DataFrame({"x": values})
    with duckdb.connect() as engine:
        listed = ", ".join(f"({v})" for v in values)
        asked = f"SELECT QUANTILE_CONT(x, {q}) FROM (VALUES {listed}) AS t(x)"
        ((truth,),) = engine.execute(asked).fetchall()
    with opened(tmp_path, frame, {"x": {"type": "integer", "bounds": [0, 100]}}) as session:
        sql = f"SELECT QUANTILE_CONT(x, {q}) AS v FROM t"
        row = session.sql(sql).release(10**4).frame.row(0, named=True)
    assert row["v_lower"] <= truth <= row["v_upper"]


def test_values_that_are_rounded_widen_the_interval_by_half_a_step(tmp_path):
    """A real column is read on a lattice: a multiple of its step stands for what is near it."""
    frame = pl.DataFrame({"x": [22.6] * 500})
    with opened(tmp_path, frame, {"x": {"bounds": [0, 30], "step": 0.5}}) as session:
        row = session.sql("SELECT MEDIAN(x) AS v FROM t").release(100).frame.row(0)
    assert row == (22.5, 22.25, 22.75)


PLACES = pl.DataFrame(
    {
        "region": REGIONS,
        "land": ["upper", "lower", "upper", None],
        "code": [3, 1, 2, 1],
        "since": [datetime.date(1990, 1, d) for d in (1, 2, 3, 3)],
        "written": ["3", " 1", "x", "01"],
        "dated": ["1990-01-02", "none", "1990-01-01", "9999999-01-01"],
        "rank": [2, 1, 2, 3],
        "size": [1.5, 2.5, 0.5, 1.0],
    }
)


READ_AS = {"written": "integer", "dated": "date", "rank": "text"}


@pytest.fixture
def places(tmp_path):
    """Visits beside a public table about which the policy says its key, and a few kinds."""
    made = policy(tmp_path, budget={"delta": 0})
    made["tables"]["regions"]["columns"] = {n: {"type": kind} for n, kind in READ_AS.items()}
    with dt.open(made, sources={"visits": visits(), "regions": PLACES}) as opened:
        yield opened


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("land", ["lower", "upper"]),
        ("UPPER(land)", ["LOWER", "UPPER"]),
        ("code", [1, 2, 3]),
        ("since", [datetime.date(1990, 1, d) for d in (1, 2, 3)]),
        ("written", [1, 3]),
        ("written + 1", [2, 3, 4]),
        ("dated", [datetime.date(1990, 1, d) for d in (1, 2)]),
        ("rank", ["1", "2", "3"]),
    ],
)
def test_public_values_are_keys(places, key, keys):
    """All of them appear, for no delta, by either door."""
    asked = places.sql(
        f"SELECT {key} AS k, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY k"
    )
    built = places.table("visits").join("regions", on="region").group_by(k=key).agg(n=dt.count())
    assert asked._plan == built._plan
    assert asked.release(1).frame["k"].to_list() == keys


def test_a_join_with_public_keys_counts_right(tmp_path):
    """With a huge budget the counts are those of the join; rows under NULL belong to no group."""
    frame = visits(units=4000)
    made = policy(tmp_path, budget={"epsilon": 10**7}, visits={"max_groups": 2, "max_rows": 50})
    with dt.open(made, sources={"visits": frame, "regions": PLACES}) as opened:
        question = opened.sql(
            "SELECT land, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY land"
        )
        assert "rows in which land is NULL or not one of these keys belong to no group" in str(
            question.explain()
        )
        found = question.release(10**6, 0).frame
    truth = frame.join(PLACES, on="region").drop_nulls("land").group_by("land").agg(n=pl.len())
    assert dict(found.select("land", "n").iter_rows()) == dict(truth.iter_rows())


def test_private_columns_are_never_listed(places, monkeypatch):
    """Nothing is read for keys of a private table, or where keys are to be discovered."""
    monkeypatch.setattr(places._engine, "public_values", lambda *_: pytest.fail("values were read"))
    assert places.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city")._plan.discovered
    joined = places.table("visits").join("regions", on="region")
    assert joined.group_by("land", discover=True).agg(n=dt.count())._plan.discovered
    assert places.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")._plan.public_keys
