"""Filters, CASE, keys and bins see values as they are; only aggregates clamp."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import polars as pl
import pytest

import dither
from dither.errors import BoundsError, QueryError

N = 400
DELAYS = [(-60, 30, 90, 200, 500)[i % 5] for i in range(N)]
FLIGHTS = pl.DataFrame(
    {
        "delay": DELAYS,
        "gain": [float(d) / 2 for d in DELAYS],
        "day": [dt.date(2013, 1 + i % 12, 15) for i in range(N)],
        "seats": [(3, 2**40, 10**15, 2**62)[i % 4] for i in range(N)],
        "carrier": [("AA", "UA", "ZZ")[i % 3] for i in range(N)],
    }
)
POLICY = {
    "budget": {"epsilon": 10**9},
    "tables": {
        "flights": {
            "columns": {
                "delay": {"bounds": [-30, 120], "bins": [-30, 0, 60, 120]},
                "gain": {"bounds": [-15, 60], "step": 0.5},
                "day": {"bounds": ["2013-01-01", "2013-06-30"]},
                "seats": {"bounds": [0, 1000]},
                "carrier": {"values": ["AA", "UA"]},
            }
        }
    },
}


@pytest.fixture(scope="module")
def flights(tmp_path_factory) -> Iterator[dither.Session]:
    """Flights of which many lie outside the bounds, and a budget that makes noise vanish."""
    folder = tmp_path_factory.mktemp("flights")
    made = {**POLICY, "budget": {**POLICY["budget"], "ledger": str(folder / "ledger")}}
    FLIGHTS.write_parquet(folder / "flights.parquet")
    with dither.open(made, sources={"flights": folder / "flights.parquet"}) as session:
        yield session


def asked(session: dither.Session, sql: str) -> pl.DataFrame:
    """The answer, with noise far below one row."""
    return session.sql(sql).release(10**5).frame


def count(condition: pl.Expr) -> int:
    """How many flights it holds for."""
    return FLIGHTS.filter(condition).height


DELAY, GAIN, DAY, SEATS = (pl.col(n) for n in ("delay", "gain", "day", "seats"))


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("delay > 180", DELAY > 180),
        ("delay = 120", DELAY == 120),
        ("delay BETWEEN -100 AND -40", DELAY.is_between(-100, -40)),
        ("delay IN (500, -60)", DELAY.is_in([500, -60])),
        ("NOT (delay <= 120)", DELAY > 120),
        ("gain > 60", GAIN > 60),
        ("gain < -15", GAIN < -15),
        ("day > DATE '2013-06-30'", dt.date(2013, 6, 30) < DAY),
        ("EXTRACT(MONTH FROM day) = 12", DAY.dt.month() == 12),
        ("CASE WHEN delay > 180 THEN 1 ELSE 0 END = 1", DELAY > 180),
        ("delay + gain > 250", DELAY + GAIN > 250),
        ("delay - gain > 100", DELAY - GAIN > 100),
        ("FLOOR(gain / 50) >= 2", GAIN >= 100),
        ("ABS(delay) = 60", DELAY.abs() == 60),
        ("LEAST(delay, 300) = 300", DELAY >= 300),
        ("BIN(delay, -100, 0, 1000) = 0", DELAY < 0),
        ("seats * seats > 1000000000000000", SEATS == 2**40),
        ("seats + 1 > 1000000000000000", SEATS >= 10**15),
    ],
)
def test_conditions_see_values_as_they_are(flights, condition, truth):
    """On columns and on what is derived from them, beyond every bound."""
    if condition.startswith("seats *"):
        # 2^40 squared is beyond 64 bits, and so NULL like the other large ones.
        truth = pl.lit(value=False)
    found = asked(flights, f"SELECT COUNT(*) AS n FROM flights WHERE {condition}")["n"][0]
    assert found == count(truth)


WHOLE = [2**63 - 1, -(2**63), 2**62, 7, None] * 80
REAL = [float("inf"), float("nan"), 1e308, -2.5, None] * 80


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        # Beyond 64 bits, and infinity minus infinity, are NULL; NULL passes no filter.
        ("a + 1 > 0", [2**62, 7]),
        ("a * a > 0", [7]),
        ("a * a IS NULL", [2**63 - 1, -(2**63), 2**62, None]),
        ("ABS(a) > 0", [2**63 - 1, 2**62, 7]),
        ("a - a = 0", [2**63 - 1, -(2**63), 2**62, 7]),
        ("a // 2 > 3", [2**63 - 1, 2**62]),
        ("a = 9223372036854775807", [2**63 - 1]),
        ("a <= -9223372036854775808", [-(2**63)]),
        ("a IN (9223372036854775807, -9223372036854775808)", [2**63 - 1, -(2**63)]),
        ("a BETWEEN -9223372036854775808 AND 7", [-(2**63), 7]),
        ("a - 9223372036854775807 < 0", [2**62, 7]),
        ("a % 4 = 3", [2**63 - 1, 7]),
        ("x * 2 > 1e30", [float("inf"), 1e308]),
        ("x - x = 0", [1e308, -2.5]),
        ("x / 0 IS NULL", REAL[:5]),
        ("1 / x < 0", [-2.5]),
        ("FLOOR(x) = -3", [-2.5]),
    ],
)
def test_arithmetic_in_conditions_needs_no_bounds(tmp_path, condition, truth):
    """It is total: of every value that a column can hold, and the same for rows and keys."""
    frame = pl.DataFrame({"a": WHOLE, "x": REAL}, schema={"a": pl.Int64, "x": pl.Float64})
    frame.write_parquet(tmp_path / "t.parquet")
    policy = {
        "budget": {"epsilon": 10**9, "delta": 1e-9, "ledger": str(tmp_path / "ledger")},
        "tables": {"t": {}},
    }
    with dither.open(policy, sources={"t": tmp_path / "t.parquet"}) as session:
        found = asked(session, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")["n"][0]
        column = REAL if "x" in condition else WHOLE
        assert found == sum(any(v is w or v == w for w in truth) for v in column)
        keys = asked(session, "SELECT a // 2 AS half, COUNT(*) AS n FROM t GROUP BY half")
        assert dict(zip(keys["half"], keys["n"], strict=True))[3] == 80
        with pytest.raises(BoundsError, match=r"of a in the policy, learn .* or write CLAMP"):
            session.sql("SELECT SUM(a // 2) AS s FROM t")


def test_only_the_aggregate_clamps(flights):
    """Of the flights above 180, every delay counts as the bound; so does a CASE over them."""
    sql = "SELECT AVG(delay) AS m, SUM(delay) AS s, COUNT(delay) AS n FROM flights "
    found = asked(flights, sql + "WHERE delay > 180").row(0, named=True)
    assert found["m"] == pytest.approx(120, abs=0.01)
    assert found["s"] == pytest.approx(120 * count(DELAY > 180), abs=1)
    sql = "SELECT SUM(CASE WHEN delay > 180 THEN 1 ELSE 0 END) AS n FROM flights"
    assert round(asked(flights, sql)["n"][0]) == count(DELAY > 180)
    sql = "SELECT AVG(delay * 2) AS twice, AVG(CLAMP(gain / 50, -9, 9)) AS ten FROM flights WHERE "
    found = asked(flights, sql + "delay = 500").row(0, named=True)
    assert found["twice"] == pytest.approx(240, abs=0.01)
    assert found["ten"] == pytest.approx(1.2, abs=0.01)


def test_a_key_outside_its_bounds_is_in_no_public_group(flights):
    """Half a year of dates is that half, and nothing is piled on its last day."""
    question = flights.sql("SELECT day, COUNT(*) AS n FROM flights GROUP BY day")
    found = question.release(10**5).frame
    assert found.height == 181
    truth = FLIGHTS.filter(dt.date(2013, 6, 30) >= DAY).group_by("day").len()
    shown = found.filter(pl.col("n").round() > 0)
    assert dict(zip(shown["day"], shown["n"].round().cast(int), strict=True)) == dict(truth.rows())
    assert found.filter(dt.date(2013, 6, 30) == DAY)["n"][0] == pytest.approx(0, abs=0.4)


def test_bins_hold_what_lies_in_them(flights):
    """Declared bins and BIN leave out what is outside, and the plan says so."""
    question = flights.sql("SELECT delay, COUNT(*) AS n FROM flights GROUP BY delay")
    assert "delay is NULL or outside -30 to 120 belong to no group" in " ".join(
        str(question.explain()).split()
    )
    inside = [count(DELAY.is_between(*ends)) for ends in ((-30, -1), (0, 59), (60, 120))]
    assert question.release(10**5).frame["n"].round().to_list() == inside
    sql = "SELECT BIN(delay, -100, 0, 1000) AS k, COUNT(*) AS n FROM flights GROUP BY k"
    assert asked(flights, sql)["n"].round().to_list() == [count(DELAY < 0), count(DELAY >= 0)]
    made = flights.table("flights").histogram("delay", [-30, 0, 120])
    assert (
        sum(made.release(10**5).frame["n" if "n" in made.release(1).frame.columns else "count"]) < N
    )


def test_declared_bins_may_reach_beyond_the_bounds(tmp_path):
    """Bounds move no value of a key, so that bins in a policy and BIN hold the same rows; nor do
    they say that every value is in some bin; nor are units outside of theirs one person."""
    column = {"bounds": [0, 120], "nullable": False}
    made = {
        "budget": {"epsilon": 10**9, "ledger": str(tmp_path / "ledger")},
        "tables": {
            "t": {
                "unit": "who",
                "max_groups": 1,
                "max_rows": 1,
                "columns": {
                    "cut": column | {"bins": [0, 60, 500]},
                    "x": column,
                    "who": {"bounds": [0, 3]},
                },
            }
        },
    }
    values = [float(i * 10) for i in range(100)]
    frame = pl.DataFrame({"who": range(100), "cut": values, "x": values})
    with dither.open(made, sources={"t": frame}) as session:
        declared = asked(session, "SELECT cut AS k, COUNT(*) AS n FROM t GROUP BY cut")
        written = asked(session, "SELECT BIN(x, 0, 60, 500) AS k, COUNT(*) AS n FROM t GROUP BY k")
        assert declared.select("k", "n").rows() == written.select("k", "n").rows()
        assert declared["n"].to_list() == [6, 45]
        assert asked(session, "SELECT COUNT(BIN(x, 0, 60, 120)) AS n FROM t")["n"][0] == 13
        sure = "SELECT COUNT(BIN(CLAMP(x, 0, 120), 0, 60, 120)) AS n FROM t"
        assert asked(session, sure)["n"][0] == 100
        assert asked(session, "SELECT COUNT(DISTINCT who) AS n FROM t")["n"][0] == 100


def test_keys_that_are_computed_are_computed_from_the_value(flights):
    """A month of a date outside its bounds, and a floor of a number outside."""
    sql = "SELECT EXTRACT(MONTH FROM day) AS k, COUNT(*) AS n FROM flights GROUP BY k"
    truth = [count(DAY.dt.month() == month) for month in range(1, 13)]
    assert asked(flights, sql)["n"].round().to_list() == truth
    sql = "SELECT delay // 30 AS k, COUNT(*) AS n FROM flights GROUP BY k"
    found = asked(flights, sql).filter(pl.col("n").round() > 0)
    assert dict(zip(found["k"], found["n"].round(), strict=True)) == {
        1: count(DELAY == 30),
        3: count(DELAY == 90),
    }


def test_a_comparison_that_declared_values_make_impossible_is_refused(flights):
    """A list says what occurs, and the question is more likely a slip; bounds say no such thing."""
    with pytest.raises(QueryError, match="'ZZ' is not a declared value"):
        flights.sql("SELECT COUNT(*) AS n FROM flights WHERE carrier = 'ZZ'")
    sql = "SELECT COUNT(*) AS n FROM flights WHERE carrier IS NULL"
    assert round(asked(flights, sql)["n"][0]) == count(pl.col("carrier") == "ZZ")


@pytest.mark.parametrize(
    ("output", "truth"),
    [
        ("COUNT(1 / rate)", 3),
        ("COUNT(7 // rate)", 3),
        ("COUNT(7 % rate)", 3),
        ("COUNT(1 / (2 * rate))", 3),
        ("COUNT(1 / CLAMP(rate, 1, 5))", 4),
        ("COUNT(rate / 2)", 4),
        ("AVG(1 / rate)", 0.5),
    ],
)
def test_bounds_do_not_keep_a_divisor_from_being_zero(tmp_path, output, truth):
    """Dividing by zero is NULL, whatever bounds say, and NULL is left out of a count and a mean."""
    made = {**POLICY, "budget": {**POLICY["budget"], "ledger": str(tmp_path / "ledger")}}
    columns = {"rate": {"bounds": [1, 5], "nullable": False}}
    made["tables"] = {"t": {"columns": columns}}
    with dither.open(made, sources={"t": pl.DataFrame({"rate": [0, 2, 2, 2]})}) as session:
        found = asked(session, f"SELECT {output} AS n FROM t")["n"][0]
    assert found == pytest.approx(truth, abs=1e-3)
