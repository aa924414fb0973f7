"""Whole releases over hostile tables: nothing raises, and every frame is well formed."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

import dither as dt
from engines.hostile import frame
from soundness.sessions import policy_in
from soundness.tables import MEASURED, drawn_pair, drawn_row, schema_of

SQL = (
    "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(j) AS a, MEDIAN(y) AS q, STDDEV(z) AS d FROM {t}",
    "SELECT g, b, COUNT(x) AS n, AVG(y) AS a, VARIANCE(i) AS v, MAX(x) AS m FROM {t} GROUP BY g, b",
    "SELECT w, COUNT(*) AS n, AVG(x) AS a, MEDIAN(i) AS q, SUM(x) / COUNT(*) AS r FROM {t} "
    "GROUP BY w",
    "SELECT n, d, COUNT(*) AS c, STDDEV(j) AS s FROM {t} GROUP BY n, d",
    "SELECT DATE_TRUNC('month', t) AS k, b, SUM(j) AS s, SUM(1) AS one FROM {t} "
    "WHERE r IS NOT NULL OR 1 / i > 0 GROUP BY 1, 2 ORDER BY s DESC LIMIT 5",
    "SELECT AVG(0 * x) AS a, VARIANCE(0 * i) AS v, MEDIAN(1) AS q, SUM(0 * j) / COUNT(*) AS r "
    "FROM {t}",
)


def session_over(folder, rows, **limits):
    """A session whose policy declares the facts of ``soundness.tables``."""
    schema = schema_of()
    policy = policy_in(folder, epsilon=10**6, delta="0.1")
    facts = {}
    for column in MEASURED:
        declared = {"nullable": column.nullable}
        if column.values is not None:
            declared["values"] = list(column.values)
        if column.lower is not None:
            declared["bounds"] = [column.lower, column.upper]
        if column.step is not None:
            declared["step"] = column.step
        facts[column.name] = declared
    visits = {"unit": "u", "max_groups": 3, "max_rows": 2, "columns": facts} | limits
    policy["tables"] = {"visits": visits, "people": {"columns": facts}}
    sources = {name: frame(schema, name, rows.get(name, [])) for name in ("visits", "people")}
    return dt.open(policy, sources=sources)


def check(release) -> None:
    """Every possible number is inside its interval, and what people read can be written."""
    table = release.frame
    assert isinstance(table, pl.DataFrame)
    for name in release.outputs:
        for value, lower, upper in zip(
            table[name], table[f"{name}_lower"], table[f"{name}_upper"], strict=True
        ):
            assert not math.isnan(lower)
            assert not math.isnan(upper)
            assert lower <= upper
            # A count or a sum without bias may be impossible; its interval then ends at 0.
            inside = value is None or lower <= value <= upper
            assert inside or (lower if value < lower else upper) == 0
    assert release.summary()
    assert release.certificate.to_json()


@pytest.mark.parametrize("sql", SQL)
@pytest.mark.parametrize("table", ["visits", "people"])
def test_hostile_rows_are_answered(tmp_path, sql, table):
    """Tables of extremes and of nothing, at small and large epsilon: an answer each time."""
    hostile = drawn_pair(11, replace_one=False, most=60).first
    people = [drawn_row("people", None, random.Random(i)) for i in range(60)]
    for name, rows in {"hostile": hostile | {"people": people}, "empty": {}}.items():
        folder = tmp_path / name
        folder.mkdir()
        with session_over(folder, rows) as session:
            for epsilon in ("0.01", 1, 1000):
                check(session.sql(sql.format(t=table)).release(epsilon, "0.001"))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"u": None}] * 50,
        [{"u": 1}] * 4_000,
        [{"u": i} for i in range(3)],
    ],
    ids=["no rows", "no units", "one unit", "all NULL"],
)
def test_degenerate_tables_are_answered(tmp_path, rows):
    """No rows, rows of nobody, one unit alone, NULL everywhere."""
    plain = dict.fromkeys((c.name for c in MEASURED), None)
    with session_over(tmp_path, {"visits": [plain | row for row in rows]}) as session:
        for sql in SQL:
            check(session.sql(sql.format(t="visits")).release(1, "0.001"))


def test_limits_far_beyond_the_data_are_answered(tmp_path):
    """max_groups and max_rows of a million: wide noise, no failure."""
    rows = drawn_pair(5, replace_one=False, most=60).first
    with session_over(tmp_path, rows, max_groups=10**6, max_rows=10**6) as session:
        for sql in SQL[:3]:
            check(session.sql(sql.format(t="visits")).release(10**5, "0.001"))


def test_time_zones_and_odd_types_are_read(tmp_path):
    """Zoned timestamps, narrow and wide integers, decimals, categories and times of day."""
    import datetime
    from zoneinfo import ZoneInfo

    stamp = datetime.datetime(2020, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Amsterdam"))
    people = pl.DataFrame(
        {
            "zoned": pl.Series([stamp.astimezone(datetime.UTC)] * 6).dt.convert_time_zone(
                "Asia/Kathmandu"
            ),
            "small": pl.Series([1, 2, 3, 4, 5, None], dtype=pl.UInt8),
            "wide": pl.Series([2**64 - 1, 0, 1, 2, 3, None], dtype=pl.UInt64),
            "kind": pl.Series(["p", "q", "p", "q", None, "p"], dtype=pl.Categorical),
            "clock": pl.Series([datetime.time(1)] * 6),
            "money": pl.Series(["1.50"] * 6).str.to_decimal(scale=2),
            "half": pl.Series([1.5] * 6, dtype=pl.Float32),
        }
    )
    policy = policy_in(tmp_path)
    policy["tables"] = {
        "people": {
            "columns": {
                "small": {"bounds": [0, 9]},
                "wide": {"bounds": [0, 9]},
                "money": {"bounds": [0, 9], "step": "0.01"},
                "half": {"bounds": [0, 9]},
                "kind": {"values": ["p", "q"]},
            }
        }
    }
    sql = (
        "SELECT kind, COUNT(*) AS n, SUM(small) AS s, SUM(wide) AS w, AVG(money) AS m, "
        "AVG(half) AS h FROM people WHERE EXTRACT(HOUR FROM zoned) = 1 GROUP BY kind"
    )
    with dt.open(policy, sources={"people": people}) as session:
        release = session.sql(sql).release(1000, 0)
    check(release)
    assert release.frame["n"].to_list() == [3, 2]
    # 2^64 - 1 does not fit in 64 bits with a sign: NULL.
    assert release.frame["w"].to_list() == [1, 0 + 2]
