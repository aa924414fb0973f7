"""Real numbers that are listed, such as 2.5, 6 and 9: in questions, models and the wide path."""

from __future__ import annotations

import math

import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError

DOSES = [2.5, 6, 9, 0.1]
TAKEN = [2.5] * 300 + [6.0] * 200 + [9.0] * 100 + [0.1] * 50 + [7.0, math.nan, math.inf, -0.0]


@pytest.fixture
def session(tmp_path):
    """Each row is a person; some hold what is not listed."""
    rows = pl.DataFrame({"dose": TAKEN, "well": [i % 3 == 0 for i in range(len(TAKEN))]})
    made = {
        "budget": {"epsilon": 1e8, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")},
        "tables": {"doses": {"columns": {"dose": {"values": DOSES}, "well": {"nullable": False}}}},
    }
    with dt.open(made, sources={"doses": rows}) as found:
        yield found


def test_questions_know_them(session):
    """What is not listed belongs to no group and to no mean; a condition reads the double."""
    found = session.sql("SELECT dose, COUNT(*) AS n FROM doses GROUP BY dose").release(1e5)
    assert dict(found.frame.select("dose", "n").rows()) == {2.5: 300, 6.0: 200, 9.0: 100, 0.1: 50}
    mean = session.sql("SELECT AVG(dose) AS m FROM doses").release(1e6).frame["m"][0]
    assert mean == pytest.approx((750 + 1200 + 900 + 5) / 650, abs=1e-3)
    some = session.sql("SELECT COUNT(*) AS n FROM doses WHERE dose = 0.1").release(1e5)
    assert some.frame["n"][0] == 50


def test_models_and_rules_know_them(session):
    """As doubles, with what is not listed as null; in zeros, given and known as numbers."""
    model = session.table("doses").synthesize(1e5, "1e-6", zeros=[{"dose": 9, "well": True}])
    frame = model.sample(seed=1)
    assert frame.schema["dose"] == pl.Float64
    assert set(frame["dose"].drop_nulls()) == {2.5, 6.0, 9.0, 0.1}
    # Of four in truth; the fit moves a small cell by the little that f lets it.
    assert 0 < frame["dose"].null_count() < 20
    assert frame.filter((pl.col("dose") == 9) & pl.col("well")).is_empty()
    assert set(model.sample(20, given={"dose": 2.5}, seed=1)["dose"]) == {2.5}
    with pytest.raises(ArgumentError, match="dose: 7 is in none of its cells"):
        model.sample(20, given={"dose": 7})


@pytest.mark.parametrize("n", [0, 1, 30, 1000])
def test_the_wide_path_gives_numbers(session, n):
    """Of any number of rows."""
    found = session.table("doses").marginals(2, 1e5, "1e-6").release().nonnegative()
    frame = found.sample(n, seed=1).frame
    assert frame.schema == {"dose": pl.Float64, "well": pl.Boolean}
    assert frame.height == n
    assert set(frame["dose"].drop_nulls()) <= set(map(float, DOSES))
