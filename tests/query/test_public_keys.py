"""Columns of public tables list their own keys."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

import dither as dt
from query.query_data import REGIONS, policy, visits

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
