"""Text of a Parquet file that is not UTF-8: it fails nothing, and makes nobody another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dt
from conformance.engines import by_group
from dither.engines.duckdb import DuckDBEngine, FileSource, parquet
from dither.errors import PolicyError
from dither.plan.lowering.lower import lower
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query

KEY = b"0123456789abcdef"
SCHEMA = Schema(
    {
        "t": Table(
            "t",
            {"u": ColumnFacts("u", Kind.TEXT), "g": ColumnFacts("g", Kind.TEXT)},
            unit="u",
            max_groups=9,
            max_rows=1,
        )
    }
)
BROKEN = (b"\xff", b"caf\xe9", b"\xc3(", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
"""Latin-1, a sequence cut short, a lone surrogate, a character beyond the last."""


def strings(values: list[bytes | None], kind: pa.DataType) -> pa.Array:
    """Bytes that a column calls text, which no writer checks."""
    raw = pa.array(values, pa.binary() if kind == pa.string() else pa.large_binary())
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


WRITERS: dict[str, dict[str, Any]] = {
    "a dictionary": {},
    "plain": {"use_dictionary": False},
    "deltas": {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    "lengths": {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},
    "small row groups": {"row_group_size": 2, "data_page_version": "2.0"},
}


def answered(path: Any, sql: str) -> dict[Any, list[Any]]:
    """The exact answer over a file."""
    with DuckDBEngine({"t": FileSource(path, "parquet", unit="u")}, threads=1) as engine:
        engine.check(SCHEMA)
        job = lower(parse_query(sql, SCHEMA), SCHEMA).job
        engine.prepare(job, SCHEMA)
        return by_group(engine.run(job, SCHEMA, KEY))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("writer", WRITERS)
def test_broken_text_fails_no_release(tmp_path, writer, kind):
    """Whoever wrote it: rows of broken text count, and others are what they were."""
    values = [b"a", *BROKEN, b"a", None, "é".encode()]
    columns = {
        "u": pa.array([f"p{i}" for i in range(len(values))]),
        "g": strings(values, kind),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", **WRITERS[writer])
    found = answered(tmp_path / "t.parquet", "SELECT g, COUNT(*) AS n FROM t GROUP BY g")
    counts = {key: numbers[0] for (key,), numbers in found.items()}
    assert sum(counts.values()) == len(values)
    assert {key: counts[key] for key in ("a", None, "é")} == {"a": 2, None: 1, "é": 1}
    assert all("?" in key for key in set(counts) - {"a", None, "é"})


@pytest.mark.parametrize("writer", WRITERS)
def test_nobody_becomes_another_by_broken_text(tmp_path, writer):
    """An identifier that is not text is nobody's, and a question mark is like any other sign."""
    units = [b"ada", b"\xff", b"\xfe", b"?", b"bob", b"b\xe9b", b"b?b", b"ada"]
    table = pa.table({"u": strings(units, pa.string()), "g": ["x"] * len(units)})
    pq.write_table(table, tmp_path / "t.parquet", **WRITERS[writer])
    counted = answered(tmp_path / "t.parquet", "SELECT COUNT(DISTINCT u) AS n FROM t")
    assert counted == {(): [4]}


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_units_of_every_type_of_text_are_told_apart(tmp_path, kind):
    """However a writer stores text, all identifiers are as they were."""
    units = ["?", "ada", "ada?", "", "é", None, "ada"]
    table = pa.table({"u": pa.array(units).cast(kind), "g": ["x"] * len(units)})
    pq.write_table(table, tmp_path / "t.parquet")
    counted = answered(tmp_path / "t.parquet", "SELECT COUNT(DISTINCT u) AS n FROM t")
    assert counted == {(): [5]}


INDICES = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]


def categories(parts: list[list[bytes]], index: pa.DataType) -> pa.ChunkedArray:
    """Text as categories, each part with those of its own, as when daily files are put together."""

    def encoded(part: list[bytes]) -> pa.Array:
        kinds = sorted(set(part))
        places = pa.array([kinds.index(value) for value in part], index)
        return pa.DictionaryArray.from_arrays(places, strings(kinds, pa.string()))

    return pa.chunked_array([encoded(part) for part in parts])


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("last", [128, 129, 300])
def test_one_more_category_fails_no_query(tmp_path, index, last):
    """Neighbours on both sides of what an index of eight bits can count, in one group of rows."""
    people = [f"p{i}".encode() for i in range(last)]
    units = categories([people[i : i + 100] for i in range(0, last, 100)], index)
    pq.write_table(pa.table({"u": units, "g": ["x"] * last}), tmp_path / "t.parquet")
    counted = answered(tmp_path / "t.parquet", "SELECT COUNT(DISTINCT u) AS n FROM t")
    assert counted == {(): [last]}


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_categories_that_are_not_text_fail_nothing(tmp_path, index):
    """As the unit they are nobody's, elsewhere they are read with a question mark."""
    units = categories([[b"ada", b"\xff", b"\xfe", b"bob"], [b"b\xe9b", b"ada"]], index)
    groups = categories([[b"a", b"caf\xe9", b"a"], [b"a", b"\xff", b"a"]], index)
    pq.write_table(pa.table({"u": units, "g": groups}), tmp_path / "t.parquet")
    path = tmp_path / "t.parquet"
    assert answered(path, "SELECT COUNT(DISTINCT u) AS n FROM t") == {(): [2]}
    assert answered(path, "SELECT COUNT(*) AS n FROM t WHERE g = 'a'") == {(): [2]}
    with DuckDBEngine({"t": FileSource(path, "parquet", unit="u")}, threads=1) as engine:
        told = engine.nobody("t")
    # Arrow reads those of 32 bits, and then a stored question mark makes nobody of anyone.
    assert ("store its categories" in told) == (index.bit_width != 32)
    assert told == "" or index.bit_width != 32


def test_a_unit_that_the_source_was_not_told_of_is_refused(tmp_path):
    """Without it, the engine's own reader would replace bytes in identifiers too."""
    pq.write_table(pa.table({"u": ["a"], "g": ["x"]}), tmp_path / "t.parquet")
    with (
        DuckDBEngine({"t": tmp_path / "t.parquet"}, threads=1) as engine,
        pytest.raises(PolicyError, match="not read as it is stored"),
    ):
        engine.check(SCHEMA)


def test_one_broken_row_moves_an_answer_as_any_row_does(tmp_path):
    """Neighbours with and without a broken row: the release is there in both, one apart."""
    found = []
    for name, extra in (("with", [b"\xff"]), ("without", [])):
        rows = [b"a", b"b", b"a", *extra]
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"g": strings(rows, pa.string())}), path)
        policy = {
            "budget": {"epsilon": 1000, "delta": 0, "ledger": str(tmp_path / f"{name}.ledger")},
            "tables": {"t": {"source": str(path), "columns": {"g": {"values": ["a", "b"]}}}},
        }
        with dt.open(policy) as session:
            asked = session.sql("SELECT COUNT(*) AS n FROM t")
            found.append(round(asked.release(epsilon=500).frame["n"][0]))
    assert found == [4, 3]


def test_without_the_rule_for_units_two_people_are_one(tmp_path, monkeypatch):
    """The planted fault: identifiers are read as other text is, with a mark for each byte."""

    def direct(path, unit=None, own=parquet.direct):
        return own(path)

    monkeypatch.setattr(parquet, "arrow_route", lambda *_: None)
    monkeypatch.setattr(parquet, "direct", direct)
    units = [b"\xff", b"\xfe", b"?"]
    table = pa.table({"u": strings(units, pa.string()), "g": ["x"] * 3})
    pq.write_table(table, tmp_path / "t.parquet")
    counted = answered(tmp_path / "t.parquet", "SELECT COUNT(DISTINCT u) AS n FROM t")
    assert counted == {(): [1]}
