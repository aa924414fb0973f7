"""Polars frames are read as Arrow's tables are, without pyarrow; and what needs it says so."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from dither.engines.duckdb.frames import NO_COLUMN, to_arrow
from dither.engines.duckdb.polars_frames import ROWS, to_stream

LAST = (2**63 - 1) // 1000
"""The last millisecond that is a microsecond of 64 bits, too."""

EVERY = {
    "int8": pl.Series([1, None, -3], dtype=pl.Int8),
    "uint64": pl.Series([1, 2**64 - 1, None], dtype=pl.UInt64),
    "float32": pl.Series([1.5, float("nan"), None], dtype=pl.Float32),
    "float64": pl.Series([float("inf"), -0.0, None]),
    "boolean": pl.Series([True, None, False]),
    "text": pl.Series(["?", None, "ü\x00x"]),
    "category": pl.Series(["u", None, "v"], dtype=pl.Categorical),
    "enum": pl.Series(["u", None, "v"], dtype=pl.Enum(["w", "v", "u"])),
    "date": pl.Series([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "ms": pl.Series([0, None, -1], dtype=pl.Datetime("ms")),
    "us": pl.Series([0, None, 2**62], dtype=pl.Datetime("us")),
    "ns": pl.Series([0, None, 2**62], dtype=pl.Datetime("ns")),
    "berlin": pl.Series([0, None, 10**15], dtype=pl.Datetime("us", "Europe/Berlin")),
    "berlin ms": pl.Series([0, None, 10**12], dtype=pl.Datetime("ms", "Europe/Berlin")),
    "decimal": pl.Series(["1.50", None, "-2.25"]).cast(pl.Decimal(10, 2)),
    "list": pl.Series([[1, None], None, []], dtype=pl.List(pl.Int64)),
    "texts": pl.Series([["a", None], None, []], dtype=pl.List(pl.String)),
    "array": pl.Series([[1, 2], None, [3, None]], dtype=pl.Array(pl.Int64, 2)),
}
UNREAD = {
    "time": pl.Series([dt.time(1), None, dt.time(2)]),
    "duration": pl.Series([dt.timedelta(1), None, dt.timedelta(2)]),
    "bytes": pl.Series([b"a", None, b"\xff"]),
    "struct": pl.Series([{"a": 1}, None, {"a": None}]),
    "object": pl.Series([{1}, None, {2}], dtype=pl.Object),
    "wide": pl.Series([1, None, 2**100], dtype=pl.Int128),
    "nothing": pl.Series([None, None, None], dtype=pl.Null),
    "lists": pl.Series([[[1]], None, []], dtype=pl.List(pl.List(pl.Int64))),
    "moments": pl.Series([[0], None, []], dtype=pl.List(pl.Datetime("ms"))),
    "categories": pl.Series([["u"], None, []], dtype=pl.List(pl.Categorical)),
}


def read(source: object) -> tuple[list[tuple[object, ...]], list[str]]:
    """The rows and types that the engine finds."""
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.register("given", source)
        found = engine.execute("SELECT *, hash(COLUMNS(*)) FROM given")
        return found.fetchall(), [str(kind) for _, kind, *_ in found.description or ()]


@pytest.mark.parametrize("name", EVERY)
def test_a_column_is_read_as_of_an_arrow_table(name: str) -> None:
    """Type and values, to the bit, NULL, NaN and signs included."""
    pytest.importorskip("pyarrow")
    frame = pl.DataFrame({name: EVERY[name]})
    stream, unread, objects = to_arrow(frame)
    assert (unread, objects) == ((), ())
    table, *_ = to_arrow(frame.to_arrow())
    assert repr(read(stream)) == repr(read(table))


@pytest.mark.parametrize("name", UNREAD)
def test_other_types_are_not_read(name: str) -> None:
    """They are named, and the rows that hold nothing else are still counted."""
    frame = pl.DataFrame({name: UNREAD[name]})
    stream, unread = to_stream(frame, NO_COLUMN)
    assert unread == (name,)
    with duckdb.connect() as engine:
        engine.register("given", stream)
        assert engine.execute("SELECT COUNT(*) FROM given").fetchall() == [(3,)]
        assert [row[0] for row in engine.execute("DESCRIBE given").fetchall()] == [NO_COLUMN]


@pytest.mark.parametrize("rows", [0, 1])
def test_a_frame_without_columns_that_are_read_has_its_rows(rows: int) -> None:
    """None is one, and one is not two."""
    stream, _ = to_stream(pl.DataFrame({"x": pl.Series([b"x"] * rows, dtype=pl.Binary)}), NO_COLUMN)
    with duckdb.connect() as engine:
        engine.register("given", stream)
        assert engine.execute("SELECT COUNT(*) FROM given").fetchall() == [(rows,)]


def test_milliseconds_that_do_not_fit_are_null() -> None:
    """At both ends of what microseconds of 64 bits hold."""
    ticks = [LAST, LAST + 1, -LAST, -LAST - 1, 2**63 - 1, -(2**63), None, 0]
    frame = pl.DataFrame({"t": pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime("ms"))})
    stream, _ = to_stream(frame, NO_COLUMN)
    with duckdb.connect() as engine:
        engine.register("given", stream)
        found = engine.execute("SELECT epoch_us(t) FROM given").fetchall()
    kept = [LAST * 1000, None, -LAST * 1000, None, None, None, None, 0]
    assert [row[0] for row in found] == kept


def test_a_long_frame_is_read_in_parts_and_again() -> None:
    """In pieces that threads share; in order, whole, and as often as it is asked."""
    n = 2 * ROWS + 1
    whole = pl.DataFrame({"x": range(n)})
    for frame in (whole, pl.concat([whole.head(3), whole.tail(n - 3)], rechunk=False)):
        stream, _ = to_stream(frame, NO_COLUMN)
        assert stream._frame.n_chunks() == 3
        with duckdb.connect() as engine:
            engine.register("given", stream)
            for _ in range(2):
                asked = engine.execute("SELECT COUNT(*), SUM(x), MIN(x), MAX(x) FROM given")
                assert asked.fetchall() == [(n, n * (n - 1) // 2, 0, n - 1)]


WITHOUT = """
import sys
sys.modules["pyarrow"] = sys.modules["scipy"] = sys.modules["pandas"] = None
import gzip, warnings
from pathlib import Path
import polars as pl
import dither as dt
from dither.errors import ArgumentError, MissingLibraryError, PolicyError

n = 3000
rows = pl.DataFrame({
    "who": ["a", "b?", "c"] * (n // 3), "age": [30, 40, 50] * (n // 3), "day": [0] * n
}).with_columns(pl.col("day").cast(pl.Datetime("us")))
rows.write_parquet("us.parquet")
rows.with_columns(pl.col("day").cast(pl.Datetime("ms"))).write_parquet("ms.parquet")
rows.write_ipc("some.arrow")
rows.write_csv("some.csv")
Path("some.csv.gz").write_bytes(gzip.compress(Path("some.csv").read_bytes()))
Path("some.csv.zst").write_bytes(b"")

def count(source, sources=None):
    columns = {"age": {"type": "integer", "bounds": [0, 100]}}
    table = {"source": source, "unit": "who", "max_rows": 1000, "max_groups": 1, "columns": columns}
    budget = {"epsilon": 10**6, "delta": 1e-6, "ledger": f"{source}.ledger"}
    policy = {"budget": budget, "tables": {"t": table}}
    with dt.open(policy, sources=sources) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM t").release(10**5)
        return answer.frame["n"][0]

def refused(kind, words, ask):
    try:
        ask()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
"""
"""What both scripts begin with: a process in which these libraries are not installed."""

READING = """
assert count("a.parquet", {"t": rows}) == n
assert count("b.parquet", {"t": rows.lazy()}) == n
assert count("some.csv") == count("some.csv.gz") == n
# Whether a ? was stored cannot be said, so it is nobody's, which is told at once.
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert count("us.parquet") == n * 2 // 3
assert [w.filename for w in told] == ["<string>"]
assert "people with a ? in 'who' are nobody's" in str(told[0].message)
assert "pip install 'dither[arrow]'" in str(told[0].message)
whose = {"budget": {"epsilon": 1, "delta": 1e-6, "ledger": "x.ledger"},
         "tables": {"t": {"source": "us.parquet", "unit": "who", "max_groups": 1, "max_rows": 9}}}
warned = [f for f in dt.check(whose).findings if f.level == "warning"]
assert [(f.where, "'dither[arrow]'" in f.text) for f in warned] == [("tables.t.unit", True)]
whose["tables"]["t"]["unit"] = "age"
assert not any("nobody" in f.text for f in dt.check(whose).findings)
for name in ("ms.parquet", "some.arrow", *(["some.csv.zst"] * (sys.version_info < (3, 14)))):
    refused(MissingLibraryError, "pip install 'dither[arrow]'", lambda: count(name))
class Table:
    def to_arrow(self): raise AssertionError
refused(MissingLibraryError, "pip install 'dither[arrow]'", lambda: count("c.csv", {"t": Table()}))
refused(ArgumentError, "a source must be", lambda: count("d.csv", {"t": 3}))

from dither import local
channel = local.GRR(3, epsilon=1)
rows.select(report=pl.lit(1)).write_parquet("reports.parquet")
counted = channel.aggregate([0, 1, 1])
for ask in (
    lambda: local.reports_table(channel, [0, 1]),
    lambda: local.aggregate_table(channel, "reports.parquet"),
    counted.to_arrow,
):
    refused(MissingLibraryError, "pip install 'dither[arrow]'", ask)
# In a stream it is one more bad chunk, which says what is missing.
streamed = local.aggregate_stream(channel, [Path("reports.parquet"), [0, 1]])
assert streamed.aggregate.n == 2
assert "pip install 'dither[arrow]'" in streamed.bad[0].reason
"""

MODELS = """
free = dt.open(
    {"budget": {"epsilon": 10, "delta": 1e-6, "ledger": "e.ledger"},
     "tables": {"t": {"source": "us.parquet", "columns": {
         "age": {"values": [30, 40, 50]}, "who": {"values": ["a", "b?", "c"]}}}}})
table = free.table("t")
refused(MissingLibraryError, "pip install 'dither[inference]'", lambda: table.infer(1))
refused(MissingLibraryError, "pip install 'dither[inference]'",
        lambda: dt.inference.mean([1, 2], bounds=(0, 3), epsilon=1))
assert all(balance.spent.epsilon == 0 for balance in free.balance())
assert table.synthesize(epsilon=1, columns=["age", "who"]).sample(5).height == 5
assert table.marginals(2, epsilon=1, columns=["age", "who"]).release().nonnegative().sample(3)
assert table.learn(1).additive("age ~ who").release().certificate
"""


def done_without(script: str, folder: Path) -> None:
    """Run a script in a plain install."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_a_plain_install_reads_what_it_can(tmp_path: Path) -> None:
    """Files, frames and reports; what needs an extra names it, and whom it makes nobody is told."""
    done_without(READING, tmp_path)


@pytest.mark.heavy("test_a_plain_install_reads_what_it_can")
def test_a_plain_install_does_the_main_job(tmp_path: Path) -> None:
    """Tables of synthetic rows and models; what needs an extra names it, free."""
    done_without(MODELS, tmp_path)
