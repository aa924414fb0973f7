"""What becomes of a row hangs on that row alone, whatever a file's statistics say.

Writers leave NaN out of the smallest and largest value that a Parquet file tells of its columns, so
an engine that reasons from these takes a column with NaN for one without.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction as F
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from conformance.engines import by_group
from dither.engines.duckdb import DuckDBEngine, FileSource
from dither.engines.duckdb import connection as sandbox
from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.writer import forms
from dither.engines.writer.dialect import Seeds
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, Job, Rows, Values
from dither.plan.lowering.lower import lower
from dither.plan.relations import Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query
from engines.reference import answer

KEY = b"sixteen bytes..."
NAN = float("nan")

FACTS = (
    ColumnFacts("u", Kind.INTEGER),
    ColumnFacts("g", Kind.TEXT, values=("a", "b")),
    ColumnFacts("x", Kind.REAL, F(0), F(1), F(1, 4), nullable=False),
    ColumnFacts("y", Kind.REAL),
)
SCHEMA = Schema(
    {
        "rows": Table("rows", {f.name: f for f in FACTS}),
        "visits": Table(
            "visits", {f.name: f for f in FACTS}, unit="u", max_groups=9, max_rows=9999,
            max_join_rows=999, unit_name="person",
        ),
        "codes": Table(
            "codes",
            {
                "code": ColumnFacts("code", Kind.INTEGER),
                "land": ColumnFacts("land", Kind.TEXT, values=("p", "q")),
            },
            private=False,
            unique=frozenset({"code"}),
        ),
    }
)  # fmt: skip
CODES = [{"code": 0, "land": "p"}, {"code": 5, "land": "q"}, {"code": None, "land": "p"}]

CONDITIONS = (
    "{x} <= 1",
    "{x} > 1",
    "{x} = 5",
    "{x} = 0.5",
    "{x} <> 0.5",
    "{x} IS NULL",
    "NOT ({x} IS NULL)",
    "NOT ({x} <= 1)",
    "{x} BETWEEN 0 AND 1",
    "NOT ({x} BETWEEN 0 AND 1)",
    "{x} IN (0.5, 5)",
    "{x} <= 1 OR {x} > 1",
    "CASE WHEN {x} > 1 THEN 1 ELSE 0 END = 0",
    "COALESCE({x}, 7) = 7",
    "GREATEST({x}, 0) <= 1",
    "x <= y",
    "x = y AND x < 1",
    "x + x > 1",
    "(x - x) IS NULL",
)
ASKED = (
    "SELECT COUNT(x) AS a, COUNT(y) AS b, COUNT(*) AS n FROM {t}",
    "SELECT SUM(x) AS s, AVG(x) AS m, VARIANCE(x) AS v, MEDIAN(x) AS q FROM {t}",
    "SELECT SUM(LEAST(x, CLAMP(y, 0, 9))) AS s, COUNT(x + CLAMP(y, 0, 1)) AS n FROM {t}",
    "SELECT SUM(CASE WHEN y > 1 THEN x ELSE 1 END) AS s FROM {t}",
    "SELECT g, COUNT(x) AS n, SUM(x) AS s FROM {t} GROUP BY g",
    "SELECT BIN(y, 0, 1, 6) AS k, COUNT(*) AS n FROM {t} GROUP BY k",
    "SELECT FLOOR(CLAMP(y, 0, 9)) AS k, COUNT(*) AS n FROM {t} GROUP BY k",
    "SELECT CASE WHEN x <= 1 THEN 1 WHEN x > 1 THEN 2 ELSE 3 END AS k, COUNT(*) AS n FROM {t} "
    "GROUP BY k",
    "SELECT land, COUNT(*) AS n FROM {t} JOIN codes ON FLOOR(CLAMP(y, 0, 9)) = codes.code "
    "GROUP BY land",
)
UNITS = (
    "SELECT COUNT(DISTINCT u) AS n FROM visits WHERE x <= 1",
    "SELECT g, COUNT(DISTINCT u) AS n FROM visits WHERE NOT (y > 1) GROUP BY g",
    "SELECT COUNT(*) AS n, SUM(visits.x) AS s FROM visits JOIN more ON visits.u = more.u "
    "WHERE more.x > 1 OR visits.x IS NULL",
)
QUERIES = [
    *(f"SELECT COUNT(*) AS n FROM rows WHERE {c.format(x='x')}" for c in CONDITIONS),
    *(f"SELECT COUNT(*) AS n FROM visits WHERE {c.format(x='y')}" for c in CONDITIONS[::2]),
    *(sql.format(t="rows") for sql in ASKED),
    *(sql.format(t="visits") for sql in ASKED[:4]),
    *UNITS,
]

TABLES = {
    "almost all NaN": [NAN] * 60 + [0.5],
    "one row more": [NAN] * 60 + [0.5, 5.0],
    "one NaN among equals": [0.5] * 40 + [NAN] + [0.5] * 20,
    "only NaN": [NAN] * 5,
    "all sorts": [0.5, NAN, None, 0.75, NAN, -NAN, 5.0, None, NAN, NAN, float("inf"), NAN, -0.0],
}


def rows_of(values: list[float | None]) -> list[dict[str, Any]]:
    """Rows in which ``x`` and ``y`` hold the values, beside a unit and a group."""
    return [{"u": i // 3, "g": "ab"[i % 2], "x": v, "y": v} for i, v in enumerate(values)]


def arrow(rows: list[dict[str, Any]], real: pa.DataType) -> pa.Table:
    """The rows with ``x`` and ``y`` of the given type."""
    types = {"u": pa.int64(), "g": pa.string(), "x": real, "y": real}
    # Without from_pandas, which makes NULL of NaN.
    return pa.table(
        {n: pa.array([r[n] for r in rows], kind, from_pandas=False) for n, kind in types.items()}
    )


def polars_parquet(table: pa.Table, path: Path, size: int) -> Any:
    pl.from_arrow(table).write_parquet(path, row_group_size=size, statistics="full")
    return path


def pyarrow_parquet(table: pa.Table, path: Path, size: int) -> Any:
    pq.write_table(table, path, row_group_size=size, write_page_index=True)
    return path


def pandas_parquet(table: pa.Table, path: Path, size: int) -> Any:
    table.to_pandas(types_mapper=None).to_parquet(path, row_group_size=size)
    return path


def duckdb_parquet(table: pa.Table, path: Path, size: int) -> Any:
    with duckdb.connect() as connection:
        connection.register("made", table)
        connection.execute(f"COPY made TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {size})")
    return path


def duckdb_database(table: pa.Table, path: Path, size: int) -> Any:
    path = path.with_suffix(".duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.register("made", table)
        connection.execute("CREATE TABLE kept AS SELECT * FROM made")
    return FileSource(path, "duckdb", "kept")


def csv_file(table: pa.Table, path: Path, size: int) -> Any:
    path = path.with_suffix(".csv")
    pl.from_arrow(table).write_csv(path)
    return path


def in_memory(table: pa.Table, path: Path, size: int) -> Any:
    return table


WRITERS = (
    polars_parquet,
    pyarrow_parquet,
    pandas_parquet,
    duckdb_parquet,
    duckdb_database,
    csv_file,
    in_memory,
)
NULLS_FOR_NAN = {pandas_parquet}
"""Who writes NULL for NaN; nothing may tell the two apart."""


def sources(folder: Path, values: Any, writer: Any, real: pa.DataType, size: int) -> dict[str, Any]:
    """All tables in the format of one writer."""
    table = arrow(rows_of(values), real)
    made = {n: writer(table, folder / f"{n}.parquet", size) for n in ("rows", "visits", "more")}
    return {**made, "codes": pl.DataFrame(CODES, schema={"code": pl.Int64, "land": pl.String})}


@cache
def schema() -> Schema:
    """With ``more``, a second table of the units in ``visits``."""
    visits = SCHEMA.tables["visits"]
    more = replace(visits, name="more")
    return Schema({**SCHEMA.tables, "more": more})


@cache
def job_of(sql: str) -> Job:
    """The job of a query over all tables."""
    return lower(parse_query(sql, schema()), schema()).job


def wrong(given: dict[str, Any], values: list[float | None]) -> list[str]:
    """The queries whose answer is not the reference's, which knows no statistics."""
    known, rows = schema(), rows_of(values)
    told = {"rows": rows, "visits": rows, "more": rows, "codes": CODES}
    with DuckDBEngine(given, threads=1) as engine:
        if not str(given["rows"]).endswith(".csv"):
            # The units of a CSV file are text, which a policy may not have read as whole numbers.
            engine.check(known)
        return [
            sql
            for sql in QUERIES
            if by_group(engine.run(job_of(sql), known, KEY)) != answer(job_of(sql), known, told)
        ]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
@pytest.mark.parametrize(
    ("name", "real", "size"),
    [("one NaN among equals", pa.float64(), 10**6), ("all sorts", pa.float32(), 4)],
    ids=str,
)
def test_nan_is_null_whoever_wrote_the_file(tmp_path, writer, name, real, size):
    """Filters, keys, counts, sums and joins agree with a reference that knows no statistics."""
    values = TABLES[name]
    assert wrong(sources(tmp_path, values, writer, real, size), values) == []


@pytest.mark.parametrize("size", [10**6, 4])
@pytest.mark.parametrize("name", TABLES)
def test_nan_is_null_in_one_row_group_and_in_several(tmp_path, size, name):
    """The same for both types of a real and both layouts, as Polars writes them."""
    values = TABLES[name]
    real = pa.float32() if (size == 4) == (len(name) % 2 == 0) else pa.float64()
    assert wrong(sources(tmp_path, values, polars_parquet, real, size), values) == []


def test_one_more_row_counts_as_one(tmp_path):
    """A value that widens a file's statistics moves a count by its own row."""
    job = job_of("SELECT COUNT(*) AS n FROM rows WHERE x <= 1")
    counts = []
    for name in ("almost all NaN", "one row more"):
        given = sources(tmp_path, TABLES[name], polars_parquet, pa.float64(), 10**6)
        with DuckDBEngine(given, threads=1) as engine:
            counts.append(engine.run(job, schema(), KEY).values[0].tolist())
    assert counts == [[1], [1]]


# --- either defence holds by itself -----------------------------------------------------------


@pytest.fixture
def optimizing(monkeypatch) -> None:
    """Engines with all that DuckDB's optimizer can do."""
    with duckdb.connect() as connection:
        known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    monkeypatch.setattr(sandbox, "OPTIMIZERS", frozenset(name for (name,) in known))
    with DuckDBEngine({"t": pl.DataFrame({"x": [1.0]})}) as engine:
        assert engine._execute("SELECT current_setting('disabled_optimizers')") == [("",)]


@pytest.mark.parametrize("writer", WRITERS[:4], ids=lambda w: w.__name__)
@pytest.mark.parametrize("name", ["almost all NaN", "all sorts"])
def test_the_test_for_nan_holds_without_the_optimizer_setting(tmp_path, optimizing, writer, name):
    """Were statistics believed, the SQL would mean the same."""
    values = TABLES[name]
    given = sources(tmp_path, values, writer, pa.float64(), 4)
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT COUNT(*) FROM '{given['rows']}' WHERE x = 0.5")
        if found.fetchall() != [(values.count(0.5),)]:
            pytest.skip("DuckDB leaves out groups of rows whose statistics this writer left out")
    assert wrong(given, values) == []


def test_the_usual_test_for_nan_would_not(tmp_path, optimizing, monkeypatch):
    """``ISNAN`` is answered from the statistics: the planted fault is seen."""

    def usual(self: object, value: exp.Expression) -> exp.Expression:
        return forms.case((forms.call("ISNAN", value.copy()), exp.Null()), otherwise=value)

    monkeypatch.setattr(DuckDBDialect, "without_nan", usual)
    values = TABLES["one row more"]
    assert wrong(sources(tmp_path, values, polars_parquet, pa.float64(), 10**6), values)


def test_a_clamp_that_tests_nothing_is_caught(tmp_path, monkeypatch):
    """Sums test for NaN as they clamp; without that test, NaN counts as the upper bound."""

    class Believing(DuckDBDialect):
        def is_number(self, value: exp.Expression) -> exp.Expression:
            return exp.true()

    clamp = DuckDBDialect.nearest_within
    monkeypatch.setattr(DuckDBDialect, "nearest_within", lambda self, *x: clamp(Believing(), *x))
    values = TABLES["one NaN among equals"]
    given = sources(tmp_path, values, polars_parquet, pa.float64(), 10**6)
    assert any("SUM(x)" in sql or "AVG(x)" in sql for sql in wrong(given, values))


@pytest.mark.heavy("test_the_test_for_nan_holds_without_the_optimizer_setting")
def test_the_optimizer_setting_holds_with_the_usual_test_for_nan(tmp_path, monkeypatch):
    """With the engine's settings, even that test is about the row alone."""
    monkeypatch.setattr(
        DuckDBDialect,
        "without_nan",
        lambda self, v: forms.case((forms.call("ISNAN", v.copy()), exp.Null()), otherwise=v),
    )
    for name, values in TABLES.items():
        folder = tmp_path / name
        folder.mkdir()
        assert wrong(sources(folder, values, polars_parquet, pa.float64(), 4), values) == []


# --- statistics of every kind ------------------------------------------------------------------

LIARS = Schema(
    {
        "t": Table(
            "t",
            {
                f.name: f
                for f in (
                    ColumnFacts("n", Kind.INTEGER),
                    ColumnFacts("x", Kind.REAL, F(0), F(10)),
                    ColumnFacts("w", Kind.TEXT),
                    ColumnFacts("d", Kind.DATE),
                    ColumnFacts("s", Kind.TIMESTAMP),
                )
            },
        )
    }
)
TRUE_ROW = {
    "n": 0x1122334455667788,
    "x": 3.141592653589793,
    "w": "abcdefgh",
    "d": dt.date(2020, 2, 29),
    "s": dt.datetime(2020, 2, 29, 12, 34, 56, 789012),
}
SAID = {
    "n": 0x0102030405060708,
    "x": 2.718281828459045,
    "w": "zyxwvuts",
    "d": dt.date(1999, 12, 31),
    "s": dt.datetime(1999, 12, 31, 1, 2, 3, 456789),
}
TYPES = pa.schema(
    {
        "n": pa.int64(),
        "x": pa.float64(),
        "w": pa.string(),
        "d": pa.date32(),
        "s": pa.timestamp("us"),
    }
)


def stored_bytes(row: dict[str, Any]) -> list[bytes]:
    """Each value as a Parquet file holds it."""
    table = pa.table({n: pa.array([row[n]], TYPES.field(n).type) for n in row})
    return [row["w"].encode() if n == "w" else table.column(n).chunk(0).buffers()[1].to_pybytes()[:
            table.column(n).type.bit_width // 8] for n in row]  # fmt: skip


def lying_file(path: Path, rows: int) -> Path:
    """A file of equal rows whose footer says that all of them are others."""
    table = pa.table({n: pa.array([TRUE_ROW[n]] * rows, TYPES.field(n).type) for n in TRUE_ROW})
    pq.write_table(table, path, row_group_size=7, use_dictionary=False, compression="none")
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    body, footer = content[: -8 - length], content[-8 - length :]
    for true, said in zip(stored_bytes(TRUE_ROW), stored_bytes(SAID), strict=True):
        assert true in footer
        footer = footer.replace(true, said)
    path.write_bytes(body + footer)
    return path


LITERALS = {
    "n": "{n}",
    "x": "{x!r}",
    "w": "'{w}'",
    "d": "DATE '{d}'",
    "s": "TIMESTAMP '{s}'",
}


def asked_of_liars() -> Iterator[str]:
    """Every comparison of every column with what it holds and with what the footer says."""
    for name, form in LITERALS.items():
        for row in (TRUE_ROW, SAID):
            literal = form.format(**row)
            for test in ("= {v}", "<> {v}", "<= {v}", "> {v}", "IN ({v})", "BETWEEN {v} AND {v}"):
                yield f"SELECT COUNT(*) AS n FROM t WHERE {name} {test.format(v=literal)}"
        for test in ("IS NULL", "IS NOT NULL"):
            yield f"SELECT COUNT(*) AS n FROM t WHERE {name} {test}"
    yield "SELECT COUNT(n) AS n, COUNT(w) AS w, SUM(x) AS s, MEDIAN(x) AS m FROM t"
    yield "SELECT w, COUNT(*) AS n FROM t GROUP BY w"
    yield "SELECT d, n, COUNT(*) AS c FROM t GROUP BY d, n"


def test_no_statistic_of_a_file_is_believed(tmp_path):
    """A footer that lies about integers, reals, text, dates and times changes no answer."""
    path = lying_file(tmp_path / "t.parquet", 20)
    told = {"t": [TRUE_ROW] * 20}
    with DuckDBEngine({"t": path}, threads=1) as engine:
        for sql in asked_of_liars():
            job = lower(parse_query(sql, LIARS), LIARS).job
            assert by_group(engine.run(job, LIARS, KEY)) == answer(job, LIARS, told), sql


def test_a_footer_that_lies_is_believed_by_default(tmp_path, optimizing):
    """The lie is one that the engine's optimizer falls for, so the test above can fail."""
    path = lying_file(tmp_path / "t.parquet", 20)
    job = lower(parse_query("SELECT COUNT(*) AS n FROM t WHERE n = 7", LIARS), LIARS).job
    literal = f"SELECT COUNT(*) AS n FROM t WHERE n = {TRUE_ROW['n']}"
    true = lower(parse_query(literal, LIARS), LIARS).job
    with DuckDBEngine({"t": path}, threads=1) as engine:
        assert engine.run(job, LIARS, KEY).keys == []
        assert engine.run(true, LIARS, KEY).keys == []


@pytest.mark.parametrize("text", ["é" * 50, "b" * 200, "\x00" * 80, "😀" * 40])
def test_long_text_is_compared_whole(tmp_path, text):
    """Writers cut long text short in their statistics."""
    table = Table("t", {"w": ColumnFacts("w", Kind.TEXT)})
    known = Schema({"t": table})
    rows = [{"w": text + end} for end in ("a", "z", "")]
    for write in (polars_parquet, pyarrow_parquet, duckdb_parquet):
        path = write(pa.table({"w": [r["w"] for r in rows]}), tmp_path / "t.parquet", 10**6)
        with DuckDBEngine({"t": path}, threads=1) as engine:
            for end in ("a", "z", "", "{"):
                for op in ("=", ">", "<="):
                    sql = f"SELECT COUNT(*) AS n FROM t WHERE w {op} '{text + end}'"
                    job = lower(parse_query(sql, known), known).job
                    assert by_group(engine.run(job, known, KEY)) == answer(job, known, {"t": rows})


def test_reals_are_grouped_by_what_they_are(tmp_path):
    """NaN and NULL are one key, both zeros another."""
    values = [NAN, None, 0.0, -0.0, 0.5, NAN]
    job = Job(
        Scan("rows", "rows"),
        None,
        (GroupKey("y", Column("rows", "y"), Kind.REAL, None),),
        (Rows(), Values(Column("rows", "y"))),
        1,
        1,
    )
    for writer in WRITERS:
        given = sources(tmp_path, values, writer, pa.float64(), 2)
        with DuckDBEngine(given, threads=1) as engine:
            found = by_group(engine.run(job, SCHEMA, KEY))
        assert found == {(None,): [3, 0], (0.0,): [2, 2], (0.5,): [1, 1]}


def test_scans_read_every_row(tmp_path):
    """No plan hands a filter to a scan, where row groups could be skipped by their statistics."""
    import json

    known = schema()
    for writer in (polars_parquet, duckdb_database, in_memory):
        given = sources(tmp_path, TABLES["all sorts"], writer, pa.float64(), 4)
        with DuckDBEngine(given, threads=1) as engine:
            seen = 0
            for sql in QUERIES:
                _, sums, histograms = engine._written(job_of(sql), known, Seeds(1, 2))
                for text in (sums, *histograms.values()):
                    plan = json.loads(engine._execute(f"EXPLAIN (FORMAT json) {text}")[0][1])
                    for node in nodes(plan):
                        if not node["children"]:
                            seen += 1
                            assert not any("ilter" in k for k in node["extra_info"]), sql
            assert seen > len(QUERIES)


def nodes(plan: Any) -> Iterator[dict[str, Any]]:
    """Every node of DuckDB's plan."""
    for node in plan:
        yield node
        yield from nodes(node["children"])
