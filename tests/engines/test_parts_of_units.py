"""A large table's units are bounded in parts: the answer is that of all of them at once."""

from __future__ import annotations

import polars as pl
import pytest

from conformance.engines import by_group
from conformance.plans import LISTED, PLANS, TABLES, job, rows, schema
from dither.engines.duckdb import DuckDBEngine
from dither.engines.duckdb import engine as duckdb
from dither.engines.writer import Seeds
from engines.hostile import frame

KEY = b"sixteen bytes..."
OF_UNITS = [
    n
    for n in PLANS
    # Tables of counts are read at once, and those of histories are.
    if n not in TABLES and n not in LISTED and job(n).unit is not None and job(n).history is None
]


def engine_of(plan: str, **options) -> DuckDBEngine:
    """An engine over the hostile rows."""
    tables, known = rows(), schema(plan)
    return DuckDBEngine({n: frame(known, n, tables[n]) for n in known.tables}, threads=1, **options)


def asked(monkeypatch) -> list[str]:
    """The queries that are run in parts, as they are."""
    found, real = [], DuckDBEngine._execute_part

    def execute(self, sql, number, parts):
        found.append(sql)
        return real(self, sql, number, parts)

    monkeypatch.setattr(DuckDBEngine, "_execute_part", execute)
    return found


@pytest.mark.parametrize("plan", OF_UNITS)
def test_parts_add_up_to_what_all_units_give(plan, monkeypatch):
    """Every plan of units, in as many parts as there may be and in two."""
    with engine_of(plan) as engine:
        whole = by_group(engine.run(job(plan), schema(plan), KEY))
        queries = asked(monkeypatch)
        for most in (1, 12):
            monkeypatch.setattr(duckdb, "AT_ONCE", most)
            assert by_group(engine.run(job(plan), schema(plan), KEY)) == whole
        alone = not engine._written(job(plan), schema(plan), Seeds(1, 2))[2]
    assert bool(queries) is alone


def test_a_table_of_rows_or_of_a_slow_source_is_read_once(tmp_path, monkeypatch):
    """Rows are bounded one by one, and lines of text would be read anew for each part."""
    monkeypatch.setattr(duckdb, "AT_ONCE", 1)
    queries = asked(monkeypatch)
    with engine_of("rows") as engine:
        engine.run(job("rows"), schema("rows"), KEY)
    assert queries == []
    pl.DataFrame({"u": [1, 2], "i": [3, 4]}).write_csv(tmp_path / "visits.csv")
    with DuckDBEngine({"visits": str(tmp_path / "visits.csv")}) as engine:
        assert engine._number_of_parts(job("rows by unit"), engine._stored) == 1


def test_less_memory_makes_more_parts(monkeypatch):
    """As many as fit, up to a number; a megabyte holds some thousands of rows."""
    table = pl.DataFrame({"u": range(1_000_000)})
    found = []
    for memory in ("40MB", "10MB", "1GB"):
        with DuckDBEngine({"visits": table}, memory_limit=memory) as engine:
            found.append(engine._number_of_parts(job("rows by unit"), engine._stored))
    assert found == [2, 6, 1]


def test_progress_of_parts_is_told_as_one(monkeypatch):
    """Shares of parts rise to the share of all."""
    told, plan = [], "rows by unit"
    monkeypatch.setattr(duckdb, "AT_ONCE", 1)

    class Watch:
        def __init__(self, connection, report):
            report(0.5)

        def stop(self):
            return None

    monkeypatch.setattr(duckdb, "_Watch", Watch)
    with engine_of(plan, progress=told.append) as engine:
        parts = engine._number_of_parts(job(plan), engine._stored)
        told.clear()
        queries = asked(monkeypatch)
        engine.run(job(plan), schema(plan), KEY)
    of_parts = [share for share in told if share != 0.5]
    assert of_parts == [(i + 0.5) / parts for i in range(parts) if i + 0.5 != parts / 2]
    assert len(queries) == parts == duckdb.MOST_PARTS
