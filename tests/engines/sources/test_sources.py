"""Sources: one CSV line is one row, frames of every kind, and types that are hard to read."""

from __future__ import annotations

import datetime as dt
import gzip
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine, FileSource, FrameSource
from dither.errors import ArgumentError, PolicyError
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, Job, Rows, Values
from dither.plan.relations import Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table

KEY = b"0123456789abcdef"


def groups(source, facts: ColumnFacts) -> dict:
    """How often each value is read from a column."""
    schema = Schema({"t": Table("t", {facts.name: facts})})
    key = GroupKey("k", Column("t", facts.name), facts.kind, None)
    with DuckDBEngine({"t": source}) as engine:
        found = engine.run(Job(Scan("t", "t"), None, (key,), (Rows(),), 1, 1), schema, KEY)
    return {k: n for (k,), n in zip(found.keys, found.values[0].tolist(), strict=True)}


def csv(folder, content: bytes, name: str = "t.csv", **options) -> FileSource:
    """A CSV file as a source."""
    path = folder / name
    if name.endswith(".zst"):
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(content)
    else:
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return FileSource(path, "csv", **options)


TEXT = ColumnFacts("b", Kind.TEXT)


def test_csv_fields(tmp_path):
    """Quotes, doubled quotes, delimiters in quotes, empty fields, missing and surplus ones."""
    lines = (
        b'a,b\n1,x\r\n2,"y, ""z"""\n3,""\n4,\n5\n6,x,surplus\n7," x"\n8,p"q\n\xc3\xa9,\xc3\xa9\n'
    )
    expected = {"x": 2, 'y, "z"': 1, "": 1, None: 2, " x": 1, 'p"q': 1, "é": 1}
    assert groups(csv(tmp_path, lines), TEXT) == expected
    assert groups(csv(tmp_path, lines, "t.csv.gz"), TEXT) == expected
    assert groups(csv(tmp_path, lines, "t.csv.zst"), TEXT) == expected
    assert groups(csv(tmp_path, b"\xef\xbb\xbfb\na\n"), TEXT) == {"a": 1}
    assert groups(csv(tmp_path, b'a;b\n1;x,y\n2;"p;q"\n', delimiter=";"), TEXT) == {
        "x,y": 1,
        "p;q": 1,
    }
    assert groups(csv(tmp_path, b'a\tb\n1\t"x\ty"\n', delimiter="\t"), TEXT) == {"x\ty": 1}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.binary(max_size=8).filter(lambda b: b"\n" not in b and b"\r" not in b), max_size=4)
)
def test_a_malformed_line_changes_no_other(tmp_path, hostile):
    """Whatever bytes a line holds, the lines around it read as before."""
    plain = [b"1,first", b'2,"sec,ond"', b"3,third"]
    mixed = plain[:1]
    for line in hostile:
        mixed += [line, plain[1]]
    found = groups(csv(tmp_path, b"\n".join([b"a,b", *mixed, plain[2], b""])), TEXT)
    alone = [groups(csv(tmp_path, b"\n".join([b"a,b", line, b""])), TEXT) for line in hostile]
    expected: dict = {}
    for part in ({"first": 1, "third": 1}, {"sec,ond": len(hostile)}, *alone):
        for value, number in part.items():
            expected[value] = expected.get(value, 0) + number
    assert found == {value: number for value, number in expected.items() if number}


@pytest.mark.parametrize(
    "opening", [b'9,"open', b"9," + b"x" * 3_000_000, b"9,\xff\xfe", b"9,\x00\x02\x03"]
)
def test_hostile_lines_of_a_csv_file(tmp_path, opening):
    """A quote that never closes, an endless line, bad bytes: 20,000 other rows all count."""
    rows = b"1,x\n" * 10_000
    found = groups(csv(tmp_path, b"a,b\n" + rows + opening + b"\n" + rows), TEXT)
    assert found["x"] == 20_000


def test_csv_values_read_as_declared(tmp_path):
    """What cannot be read as its kind is NULL; times without a zone are in UTC."""
    content = b"b\n2020-01-02 03:04:05\n2020-01-02T03:04:05+02:00\nnever\ninfinity\n99999-01-01\n"
    stamps = groups(csv(tmp_path, content), ColumnFacts("b", Kind.TIMESTAMP))
    assert stamps == {
        dt.datetime(2020, 1, 2, 3, 4, 5): 1,
        dt.datetime(2020, 1, 2, 1, 4, 5): 1,
        None: 3,
    }
    content = b'b\n7\n 8 \n9.6\n1e3\nx\n9223372036854775808\nnan\n""\n'
    integers = groups(csv(tmp_path, content), ColumnFacts("b", Kind.INTEGER))
    assert integers == {7: 1, 8: 1, 10: 1, 1000: 1, None: 4}


def test_csv_without_names_is_refused(tmp_path):
    """The first line names every column once."""
    for content in (b"", b"a,a\n", b"a,\n", b"\xff\n"):
        with pytest.raises(PolicyError, match=r"column names|name every column|is not UTF-8"):
            DuckDBEngine({"t": csv(tmp_path, content)})


def test_frames_of_every_kind():
    """Polars (lazy too), pandas with objects, and Arrow read alike."""
    expected = {"a": 1, "b": 1, None: 1}
    frames = [
        pl.DataFrame({"b": ["a", None, "b"]}),
        pl.LazyFrame({"b": ["a", None, "b"]}),
        pl.DataFrame({"b": pl.Series(["a", None, "b"], dtype=pl.Categorical)}),
        pd.DataFrame({"b": ["a", None, "b"]}),
        pd.DataFrame({"b": pd.Series(["a", None, "b"], dtype=object)}),
        pd.DataFrame({"b": pd.Categorical(["a", None, "b"])}),
        pa.table({"b": ["a", None, "b"]}),
        pa.record_batch({"b": ["a", None, "b"]}),
    ]
    for made in frames:
        assert groups(made, TEXT) == expected
    with pytest.raises(ArgumentError, match="got dict"):
        DuckDBEngine({"t": FrameSource({"b": 1})})


def test_a_polars_column_that_arrow_lacks_is_not_read():
    """One column of a type that Arrow cannot hold does not keep the others from being read."""
    frame = pl.DataFrame({"a": [1, 2], "wide": pl.Series([1, 2], dtype=pl.Int128)})
    with DuckDBEngine({"t": frame.lazy()}) as engine:
        assert engine.describe("t")["a"] is Kind.INTEGER
        assert engine.describe("t")["wide"] is None


def test_invalid_text_is_null():
    """Bytes that are no UTF-8 and lone surrogates are not mended, which could make two one."""
    raw = pa.array([b"ok", b"\xff"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    assert groups(pa.table({"b": broken}), TEXT) == {"ok": 1, None: 1}
    lone = pd.DataFrame({"b": pd.Series(["ok", "\ud800"], dtype=object)})
    assert groups(lone, TEXT) == {"ok": 1, None: 1}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_instants_of_every_unit(unit, zone, tmp_path):
    """The largest and smallest ticks neither fail nor wrap; zones are turned into UTC."""
    ticks = [0, 2**63 - 1, -(2**63) + 1, None]
    table = pa.table({"b": pa.array(ticks, pa.timestamp(unit, zone))})
    found = groups(table, ColumnFacts("b", Kind.TIMESTAMP))
    assert found[dt.datetime(1970, 1, 1)] == 1
    assert sum(found.values()) == 4
    assert all(k is None or 1677 < k.year < 2263 for k in found)


def test_wide_and_odd_numbers():
    """Decimals, unsigned and half-width numbers read as declared, or are NULL."""
    from decimal import Decimal

    whole = ColumnFacts("b", Kind.INTEGER, Fraction(-5), Fraction(5))
    assert groups(pa.table({"b": pa.array([2**64 - 1, 3], pa.uint64())}), whole) == {None: 1, 3: 1}
    decimals = pa.array([Decimal("2.5"), Decimal("99.9")], pa.decimal128(4, 1))
    assert groups(pa.table({"b": decimals}), whole) == {3: 1, 100: 1}
    half = pa.array([1.5, float("inf"), float("nan")], pa.float16())
    real = ColumnFacts("b", Kind.REAL, None, Fraction(7))
    assert groups(pa.table({"b": half}), real) == {1.5: 1, float("inf"): 1, None: 1}


def test_a_zero_is_one_key():
    """Minus zero and zero are one group, always shown without a sign."""
    for order in ([0.0, -0.0], [-0.0, 0.0]):
        found = groups(pl.DataFrame({"b": order}), ColumnFacts("b", Kind.REAL))
        assert [str(k) for k in found] == ["0.0"]
        assert found == {0.0: 2}


def test_infinite_dates(tmp_path):
    """Infinities and years that Python lacks are NULL, whatever bounds are declared."""
    import duckdb

    path = tmp_path / "d.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE t AS SELECT unnest(['infinity'::DATE, '-infinity'::DATE, "
            "'5877642-06-25 (BC)'::DATE, '5881580-07-10'::DATE, '2020-01-01'::DATE]) AS b"
        )
    source = FileSource(path, "duckdb", "t")
    assert groups(source, ColumnFacts("b", Kind.DATE)) == {None: 4, dt.date(2020, 1, 1): 1}
    low, high = dt.date(2000, 1, 1), dt.date(2010, 1, 1)
    assert groups(source, ColumnFacts("b", Kind.DATE, low, high)) == {
        None: 4,
        dt.date(2020, 1, 1): 1,
    }
    stamp = ColumnFacts("b", Kind.TIMESTAMP)
    assert groups(source, stamp) == {None: 4, dt.datetime(2020, 1, 1): 1}


def test_describe_reads_the_schema_alone(tmp_path):
    """Kinds come from the types; what is not read is None; a CSV file has only text."""
    table = pa.table(
        {
            "i": pa.array([1], pa.int8()),
            "f": pa.array([1.0], pa.float32()),
            "s": ["a"],
            "b": [True],
            "d": pa.array([dt.date(2020, 1, 1)]),
            "t": pa.array([dt.datetime(2020, 1, 1)]),
            "l": pa.array([[1]]),
            "y": pa.array([b"1"]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    kinds = {
        "i": Kind.INTEGER, "f": Kind.REAL, "s": Kind.TEXT, "b": Kind.BOOLEAN, "d": Kind.DATE,
        "t": Kind.TIMESTAMP, "l": None, "y": None,
    }  # fmt: skip
    sources = {"a": tmp_path / "t.parquet", "b": table, "c": csv(tmp_path, b"x,y\n1,2\n")}
    with DuckDBEngine(sources) as engine:
        assert engine.describe("a") == kinds
        assert engine.describe("b") == kinds
        assert engine.describe("c") == {"x": Kind.TEXT, "y": Kind.TEXT}
        assert engine.public_values("b", ColumnFacts("d", Kind.DATE)) == (dt.date(2020, 1, 1),)
        with pytest.raises(PolicyError, match="did you mean"):
            engine.describe("aa")


def test_names_that_sql_would_stumble_on(tmp_path):
    """Table files and columns may carry quotes, spaces and keywords."""
    name = 'we"ird select'
    path = tmp_path / "it's a table.parquet"
    pl.DataFrame({name: [1, None]}).write_parquet(path)
    facts = ColumnFacts(name, Kind.INTEGER)
    schema = Schema({"my table": Table("my table", {name: facts})})
    job = Job(Scan("my table", 'a"b'), None, (), (Values(Column('a"b', name)),), 1, 1)
    with DuckDBEngine({"my table": path}) as engine:
        assert engine.run(job, schema, KEY).values[0].tolist() == [1]


@pytest.mark.parametrize("form", ["frame", "parquet", "milliseconds", "csv", "duckdb"])
def test_a_wide_table_has_the_types_of_a_narrow_one(tmp_path, form):
    """Hundreds of columns are looked up another way than a few, and are the same columns."""
    stamps = pl.Datetime("ms" if form == "milliseconds" else "us")
    few = pl.DataFrame(
        {"n": [1, 2], "x": [0.5, None], "w": ["a", "b"], "t": pl.Series([0, 1]).cast(stamps)}
    ).with_columns(l=pl.concat_list("n"), b=pl.col("n") > 1)
    if form == "csv":
        few = few.drop("l")
    many = few.with_columns(pl.lit(1, dtype=pl.Int32).alias(f"c{i}") for i in range(600))
    kinds = {}
    for name, frame in (("few", few), ("many", many)):
        path = tmp_path / f"{name}.{form}"
        source: object = FrameSource(frame)
        if form in ("parquet", "milliseconds"):
            frame.write_parquet(path)
            source = FileSource(path, "parquet")
        elif form == "csv":
            frame.write_csv(path)
            source = FileSource(path, "csv")
        elif form == "duckdb":
            with duckdb.connect(str(path)) as connection:
                # A name that the engine has for a source itself.
                connection.execute("CREATE TABLE source_0 AS FROM frame")
            source = FileSource(path, "duckdb", "source_0")
        with DuckDBEngine({"t": source}) as engine:
            kinds[name] = dict(engine.describe("t"))
    assert {n: kinds["many"].pop(n) for n in kinds["few"]} == kinds["few"]
    assert set(kinds["many"].values()) == {Kind.TEXT if form == "csv" else Kind.INTEGER}
    assert len(kinds["many"]) == 600
