"""Parquet files with timestamps in milliseconds, on which DuckDB's own reader fails."""

from __future__ import annotations

import datetime as dt_
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from dither.errors import PolicyError

DAY = dt_.datetime(2024, 2, 29, 12, 30, 15, 250_000)
HOSTILE = [2**63 - 1, -(2**63), 2**62, -(2**62), 9223372036854775, 9223372036854776, 0]


def opened(folder: Path, path: Path, **table: Any) -> dt.Session:
    """A session over one file."""
    made = {
        "budget": {"epsilon": 10**6, "delta": "1e-3", "ledger": str(folder / "l")},
        "tables": {"t": {"source": str(path), **table}},
    }
    return dt.open(made)


def count(session: dt.Session, sql: str) -> Any:
    """The first number that a release gives, with hardly any noise."""
    return session.sql(sql).release(500).frame.row(0)[0]


def by_pandas(path: Path) -> None:
    frame = pd.DataFrame({"t": pd.Series([DAY, None, DAY], dtype="datetime64[ms]"), "i": [1, 2, 3]})
    frame.to_parquet(path)


def by_polars(path: Path) -> None:
    times = pl.Series("t", [DAY, None, DAY], pl.Datetime("ms"))
    pl.DataFrame({"t": times, "i": [1, 2, 3]}).write_parquet(path)


def by_arrow(path: Path) -> None:
    times = pa.array([DAY, None, DAY], pa.timestamp("ms", "Europe/Rome"))
    pq.write_table(pa.table({"t": times, "i": [1, 2, 3]}), path)


def by_arrow_seconds(path: Path) -> None:
    times = pa.array([DAY.replace(microsecond=0), None, DAY], pa.timestamp("s"))
    pq.write_table(pa.table({"t": times, "i": [1, 2, 3]}), path)


def by_duckdb(path: Path) -> None:
    values = f"(TIMESTAMP_MS '{DAY}', 1), (NULL, 2), (TIMESTAMP_MS '{DAY}', 3)"
    duckdb.sql(f"COPY (SELECT * FROM (VALUES {values}) AS v(t, i)) TO '{path}' (FORMAT parquet)")


@pytest.mark.parametrize("write", [by_pandas, by_polars, by_arrow, by_arrow_seconds, by_duckdb])
def test_ordinary_files_are_read(tmp_path, write):
    """Every writer's file, filtered and grouped by its times."""
    write(tmp_path / "t.parquet")
    columns = {
        "i": {"bounds": [0, 9]},
        "t": {"bounds": [dt_.date(2024, 2, 1), dt_.date(2024, 3, 1)]},
    }
    with opened(tmp_path, tmp_path / "t.parquet", columns=columns) as session:
        assert session.tables["t"].column("t").kind.value == "timestamp"
        assert count(session, "SELECT COUNT(*) AS n FROM t") == 3
        assert count(session, "SELECT COUNT(t) AS n FROM t") == 2
        at = "t >= TIMESTAMP '2024-02-29 12:30:15' AND t < TIMESTAMP '2024-02-29 12:30:16'"
        assert count(session, f"SELECT SUM(i) AS s FROM t WHERE {at}") == 4
        days = session.sql("SELECT DATE_TRUNC('month', t) AS m, COUNT(*) AS n FROM t GROUP BY m")
        assert days.release(500).frame["n"].to_list() == [2, 0]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("wanted", ["timestamp", "date", "text"])
def test_no_value_fails_a_release(tmp_path, wanted, zone):
    """Whatever is stored: NULL beyond the years 1 to 9999, and the other rows are as they were."""
    table = pa.table({"t": pa.array(HOSTILE, pa.timestamp("ms", zone)), "i": [1] * len(HOSTILE)})
    pq.write_table(table, tmp_path / "t.parquet")
    with duckdb.connect() as plain, pytest.raises(duckdb.ConversionException):
        plain.execute(f"SELECT t FROM '{tmp_path / 't.parquet'}'").fetchall()
    with opened(tmp_path, tmp_path / "t.parquet", columns={"t": {"type": wanted}}) as session:
        assert count(session, "SELECT COUNT(*) AS n FROM t") == len(HOSTILE)
        assert count(session, "SELECT COUNT(t) AS n FROM t") == 1
        keys = (
            session.sql("SELECT t, COUNT(*) AS n FROM t GROUP BY t")
            if wanted != "timestamp"
            else None
        )
        assert keys is None or keys.release(500).frame["n"].sum() >= len(HOSTILE) - 1


def test_the_last_milliseconds_are_kept(tmp_path):
    """The first and the last of the years that are read, and none beside them."""
    ends = [dt_.datetime(1, 1, 1), dt_.datetime(9999, 12, 31, 23, 59, 59, 999_000)]
    ticks = [(e - dt_.datetime(1970, 1, 1)) // dt_.timedelta(milliseconds=1) for e in ends]
    ticks += [ticks[0] - 1, ticks[1] + 1]
    pq.write_table(pa.table({"t": pa.array(ticks, pa.timestamp("ms"))}), tmp_path / "t.parquet")
    with opened(tmp_path, tmp_path / "t.parquet") as session:
        assert count(session, "SELECT COUNT(t) AS n FROM t") == 2


def test_every_other_type_is_read_beside_them(tmp_path):
    """Numbers, text, dates, names that SQL would quote; what Arrow cannot hand over says why."""
    columns = {
        "t": pa.array([0, 1], pa.timestamp("ms")),
        "a.b": pa.array([1, 2], pa.int32()),
        'q"x': pa.array([1.5, 2.5]),
        "half": pa.array([1.0, 2.0], pa.float16()),
        "day": pa.array([DAY.date(), None]),
        "cents": pa.array([Decimal("1.25"), Decimal(2)], pa.decimal128(10, 2)),
        "us": pa.array([DAY, DAY]),
        "ns": pa.array([DAY, DAY], pa.timestamp("ns")),
        "w": pa.array(["a", "b"]),
        "cat": pa.array(["a", "b"]).dictionary_encode(),
        "flag": pa.array([True, None]),
        "list": pa.array([[1], [2]]),
        "clock": pa.array([dt_.time(1), dt_.time(2)]),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    with opened(tmp_path, tmp_path / "t.parquet") as session:
        kinds = {name: c.kind.value for name, c in session.tables["t"].columns.items()}
        assert set(columns) - set(kinds) == {"list", "clock"}
        for name in kinds:
            quoted = name.replace('"', '""')
            shown = count(session, f'SELECT COUNT("{quoted}") AS n FROM t')
            assert shown == 2 - (name in ("day", "flag")), name
    with pytest.raises(PolicyError, match="hand over a frame"):
        opened(tmp_path, tmp_path / "t.parquet", columns={"clock": {}})


def test_rows_that_are_written_later_are_read_and_other_columns_refused(tmp_path):
    """What Arrow remembers of the file that was opened is not believed of the one that is read."""
    path = tmp_path / "t.parquet"
    by_arrow(path)
    with opened(tmp_path, path) as session:
        question = session.sql("SELECT COUNT(t) AS n FROM t")
        assert question.release(500).frame["n"][0] == 2
        times = pa.array([DAY] * 70_000, pa.timestamp("ms", "Europe/Rome"))
        pq.write_table(pa.table({"t": times, "i": [1] * 70_000}), path, row_group_size=1000)
        assert question.release(500).frame["n"][0] == 70_000
        by_pandas(path)
        with pytest.raises(PolicyError, match="columns are not what they were"):
            question.release(1)
        assert session.balance()[0].spent.epsilon == 1000


@pytest.mark.parametrize("rows", [0, 1])
def test_rows_are_counted_beside_columns_that_are_not_read(tmp_path, rows):
    """The engine looks at a file's first column where a query names none."""
    kinds = [pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.binary(), pa.time64("us")]
    kinds += [pa.dictionary(pa.int8(), pa.string()), pa.duration("s"), pa.decimal256(50, 2)]
    for number, kind in enumerate(kinds):
        times = pa.array([0] * rows, pa.int64()).cast(pa.timestamp("ms"))
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"first": pa.nulls(rows, kind), "t": times}), path)
        with opened(tmp_path, path) as session:
            assert count(session, "SELECT COUNT(*) AS n FROM t") == rows, kind


def test_categories_of_few_bits_beside_them_are_not_read(tmp_path):
    """On which Arrow could fail; a unit of them is refused, with what to do."""
    words = pa.array(["a", "b"]).cast(pa.dictionary(pa.int8(), pa.string()))
    times = pa.array([0, 1], pa.timestamp("ms"))
    pq.write_table(pa.table({"w": words, "t": times}), tmp_path / "t.parquet")
    for asked in ({"columns": {"w": {}}}, {"unit": "w", "max_rows": 1, "max_groups": 1}):
        with pytest.raises(PolicyError, match="store it as plain text"):
            opened(tmp_path, tmp_path / "t.parquet", **asked)


@pytest.mark.parametrize("value", [DAY, None])
def test_moments_of_96_bits_are_read_as_they_were_tried(tmp_path, value):
    """Beside a unit of text, where Arrow would give another type than the one rehearsed."""
    table = pa.table({"u": ["ada"], "t": pa.array([value], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    with pytest.warns(UserWarning, match="people with a [?] in 'u' are nobody's"):
        session = opened(tmp_path, tmp_path / "t.parquet", unit="u", max_rows=1, max_groups=1)
    with session:
        assert count(session, "SELECT COUNT(t) AS n FROM t") == (value is not None)


def test_two_columns_of_one_name_are_refused_before_anything_is_charged(tmp_path):
    """The engine would rename the second, and Arrow would not."""
    times = pa.array([0], pa.timestamp("ms"))
    pq.write_table(pa.table([times, [1], [2]], ["t", "x", "x"]), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="one name"):
        opened(tmp_path, tmp_path / "t.parquet")


def test_arrow_is_left_alone_where_nothing_needs_it(tmp_path, monkeypatch):
    """It is large, and files of numbers, texts and dates are read without it."""
    path = tmp_path / "plain.parquet"
    days = [DAY.date()] * 3
    pl.DataFrame({"i": [1, 2, 3], "w": ["a", None, "b"], "d": days}).write_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with opened(tmp_path, path, columns={"i": {"bounds": [0, 9]}}) as session:
        assert count(session, "SELECT COUNT(*) AS n FROM t WHERE i > 1") == 2
