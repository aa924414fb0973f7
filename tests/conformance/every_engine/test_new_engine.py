"""What a new engine supplies: a dialect and a connection, and no other part of the house."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import dither as dt
from conformance import sqlite
from conformance.sqlite import SQLiteDialect, SQLiteEngine
from dither import engines
from dither.engines import Engine
from dither.engines.sql_engine import SQLEngine
from dither.engines.writer import Dialect
from dither.errors import DitherError, PolicyError
from dither.plan.schema import ColumnFacts, Kind, Schema, Table

ROWS = [{"u": i // 2, "region": "north" if i % 3 else "south", "age": i % 90} for i in range(120)]
COLUMNS = {
    "u": ColumnFacts("u", Kind.INTEGER),
    "region": ColumnFacts("region", Kind.TEXT),
    "age": ColumnFacts("age", Kind.INTEGER),
}


@pytest.mark.skipif(not sqlite.AVAILABLE, reason="SQLite before 3.39 lacks HAVING alone")
def test_a_session_runs_on_a_new_engine(tmp_path, monkeypatch):
    """From SQL to a release: a policy names it, and nothing above the engine knows more."""
    opened = []

    def connect(tables, options):
        ((name, table),) = tables.items()
        assert (name, table.format, table.unit) == ("visits", "rows", "u")
        assert (table.source, table.table) == ("nowhere at all", "visits")
        assert options["threads"] == 3
        opened.append(SQLiteEngine({name: ROWS}, Schema({name: Table(name, COLUMNS)})))
        return opened[0]

    monkeypatch.setattr(engines, "_REGISTERED", {})
    rows = engines.Format((".rows",), is_file=False, holds_tables=True)
    engines.register(engines.Backend("sqlite", connect, {"rows": rows}))
    policy = {
        "budget": {"epsilon": 2000, "delta": "1e-6", "ledger": str(tmp_path / "visits.ledger")},
        "engine": {"name": "sqlite", "threads": 3},
        "tables": {
            "visits": {
                "source": "nowhere at all",
                "format": "rows",
                "unit": "u",
                "max_groups": 2,
                "max_rows": 2,
                "columns": {
                    "region": {"values": ["north", "south"]},
                    "age": {"bounds": [0, 100]},
                },
            }
        },
    }
    with dt.open(policy) as session:
        asked = session.sql(
            "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM visits GROUP BY region"
        )
        frame = asked.release(epsilon=1000).frame.sort("region")
    assert frame["n"].round().to_list() == [80, 40]
    for region, mean in zip(frame["region"], frame["a"], strict=True):
        ages = [row["age"] for row in ROWS if row["region"] == region]
        assert mean == pytest.approx(sum(ages) / len(ages), abs=1)
    with pytest.raises(DitherError, match="closed"):
        opened[0].describe("visits")
    policy["engine"]["name"] = "sqlit"
    with pytest.raises(PolicyError, match=r"engine.name .*'sqlit'; did you mean 'sqlite'"):
        dt.open(policy)


def test_an_engine_stands_on_the_engines_room_and_on_plans_alone():
    """What the smallest engine imports of the library is what every engine may need."""
    tree = ast.parse(Path(sqlite.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    packages = {name.split(".")[1] for name in imported if name and name.startswith("dither.")}
    assert packages == {"engines", "errors", "plan"}


def test_what_is_abstract_is_what_an_engine_must_supply():
    """The two lists that a new engine starts from, and the toy has no more than these to fill."""
    assert set(Dialect.__abstractmethods__) == {
        *("narrowed", "is_number", "nearest", "date_part", "date_truncate", "keyed_hash"),
        *("kind_of_type", "one_to_one", "stored_alike", "typed", "largest"),
    }
    assert set(SQLEngine.__abstractmethods__) == {
        *("_check_open", "_stored_tables", "_execute", "_rehearse", "_hold", "close"),
    }
    assert not inspect.isabstract(SQLiteDialect)
    assert issubclass(SQLiteEngine, Engine)


@pytest.mark.parametrize("missing", sorted(Dialect.__abstractmethods__))
def test_a_dialect_that_lacks_a_form_cannot_be_made(missing):
    """What is forgotten is noticed before any query is written."""
    partial = type("Partial", (SQLiteDialect,), {missing: getattr(Dialect, missing)})
    with pytest.raises(TypeError, match=missing):
        partial()
