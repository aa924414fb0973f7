"""Keys that are reals or moments, cut by ROUND and DATE_TRUNC: public, discovered, and replayed."""

from __future__ import annotations

import datetime

import polars as pl
import pytest

import dither as dt

ROWS = 400
START = datetime.datetime(2024, 1, 1)
DAY = [START, datetime.datetime(2024, 1, 1, 9, 59)]


@pytest.fixture
def session(tmp_path):
    """Forty rows for each tenth below 1, and for each hour of ten."""
    frame = pl.DataFrame(
        {
            "x": [i % 10 / 10 for i in range(ROWS)],
            "t": [START + datetime.timedelta(minutes=i * 1.5) for i in range(ROWS)],
        }
    )
    policy = {
        "budget": {"epsilon": 10**6, "delta": "1e-6", "ledger": str(tmp_path / "t.ledger")},
        "tables": {"v": {"columns": {"x": {"bounds": [0, 0.9]}, "t": {"bounds": DAY}}}},
    }
    with dt.open(policy, sources={"v": frame}) as opened:
        yield opened


TENTHS = [i / 10 for i in range(10)]
HOURS = [START + datetime.timedelta(hours=i) for i in range(10)]


@pytest.mark.parametrize("discover", [False, True])
@pytest.mark.parametrize(
    ("key", "wanted"), [("ROUND(x, 1)", TENTHS), ("DATE_TRUNC('hour', t)", HOURS)]
)
def test_each_group_has_its_rows(session, key, wanted, discover):
    """Every key is found, also where no decimal is a double, and a token replays the answer."""
    sql = f"SELECT {key} AS k, COUNT(*) AS n FROM v GROUP BY k"
    asked = session.sql(sql, discover=discover)
    released = asked.release(10**4, token="once")
    assert released.frame.sort("k")["k"].to_list() == wanted
    assert released.frame["n"].to_list() == [40] * 10
    assert asked.release(10**4, token="once").frame.equals(released.frame)
    assert "40" in released.summary()


def test_a_column_of_reals_or_moments_is_no_key(session):
    """What nobody has cut has a group for each row."""
    for name, hint in (("x", "ROUND"), ("t", "DATE_TRUNC")):
        with pytest.raises(dt.errors.QueryError, match=hint):
            session.sql(f"SELECT {name}, COUNT(*) AS n FROM v GROUP BY {name}").preview(1)
