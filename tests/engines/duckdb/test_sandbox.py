"""The connection reads its sources and nothing else, spills where it may, and fails in one way."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from dither.engines import FAILED
from dither.engines.duckdb import DuckDBEngine, FileSource, connection
from dither.engines.duckdb.connection import wait_until_shut
from dither.errors import ArgumentError, EngineError, PolicyError
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, Job, Rows, Total
from dither.plan.relations import PublicJoin, Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table

KEY = b"k" * 16
COLUMNS = {
    "u": ColumnFacts("u", Kind.INTEGER),
    "x": ColumnFacts("x", Kind.REAL, Fraction(0), Fraction(10), Fraction(1, 10)),
}
SCHEMA = Schema({"t": Table("t", COLUMNS, unit="u")})
COUNT = Job(Scan("t", "t"), Column("t", "u"), (), (Rows(),), 1, 2)


def names(folder: Path) -> list[str]:
    """What a folder holds."""
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def engine(tmp_path):
    """An engine over one Parquet file."""
    pl.DataFrame({"u": [1, 1, 2], "x": [0.5, 1.0, 99.0]}).write_parquet(tmp_path / "t.parquet")
    with DuckDBEngine({"t": tmp_path / "t.parquet"}) as opened:
        yield opened


@pytest.mark.parametrize(
    "statement",
    [
        "SET threads = 1",
        "SET memory_limit = '1GB'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "SET allowed_paths = ['/']",
        "SET TimeZone = 'Europe/Rome'",
        "SET error_on_division_by_zero = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '{folder}/new.duckdb'",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPORT DATABASE '{folder}/out'",
        "SELECT * FROM read_csv('{folder}/other.csv')",
        "SELECT * FROM read_text('{folder}/other.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM frame_in_python",
    ],
)
def test_the_connection_is_locked(engine, tmp_path, statement):
    """No setting changes, no other file is read or written, no extension comes in."""
    frame_in_python = pl.DataFrame({"a": [1]})
    (tmp_path / "other.csv").write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        engine._open().execute(statement.format(folder=tmp_path))
    assert len(frame_in_python) == 1
    assert names(tmp_path) == ["other.csv", "t.parquet"]


def test_a_database_is_only_read(tmp_path):
    """A DuckDB source is attached read-only, also from another schema."""
    path = tmp_path / "s.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS u, 2.5 AS x")
    before = path.read_bytes()
    with DuckDBEngine({"t": FileSource(path, "duckdb", "other.t")}) as engine:
        assert engine.run(COUNT, SCHEMA, KEY).values[0].tolist() == [1]
        with pytest.raises(duckdb.Error):
            engine._open().execute('DELETE FROM source_0_database."other"."t"')
    assert path.read_bytes() == before


def test_what_does_not_fit_is_spilled(tmp_path):
    """A quarter of a gigabyte of groups under a limit of 120 MB: spilled, exact, cleaned up."""
    rows = 1_500_000
    table = pl.DataFrame({"u": np.arange(rows) * 7919 % rows, "x": np.full(rows, 1.5)})
    table = table.with_columns(g=pl.col("u").cast(pl.String) + "-" + "long" * 10)
    path = tmp_path / "t.parquet"
    table.write_parquet(path, row_group_size=100_000)
    columns = {**COLUMNS, "g": ColumnFacts("g", Kind.TEXT)}
    schema = Schema({"t": Table("t", columns, unit="u")})
    del table
    spilled, nowhere = tmp_path / "spilled", tmp_path / "file"
    spilled.mkdir()
    nowhere.write_text("a file is not a folder to spill to")
    wanted = (Rows(), Total(Column("t", "x"), Fraction(1, 10), 0, 100))
    job = Job(Scan("t", "t"), Column("t", "g"), (), wanted, 1, 2)
    limits = {"memory_limit": "120MB", "threads": 2}
    source = FileSource(path, "parquet", unit="g")
    with DuckDBEngine({"t": source}, temp_directory=str(spilled), **limits) as engine:
        found = engine.run(job, schema, KEY)
    assert [found.values[i].tolist() for i in (0, 1)] == [[rows], [15 * rows]]
    assert names(spilled) == []
    with pytest.raises(ArgumentError, match="temp_directory must be a folder that can be written"):
        DuckDBEngine({"t": source}, temp_directory=str(nowhere), **limits)


def test_progress_is_reported_and_nothing_is_printed(monkeypatch, capfd):
    """While a job runs, whoever asked is told the share done."""
    monkeypatch.setattr("dither.engines.duckdb.engine.TICK", 0.001)
    seen, table = [], pl.DataFrame({"u": np.arange(10**6), "x": np.ones(10**6)})
    with DuckDBEngine({"t": table}, progress=seen.append, threads=1) as engine:
        while not seen:
            engine.run(COUNT, SCHEMA, KEY)
    assert all(0 <= share <= 1 for share in seen)
    assert capfd.readouterr() == ("", "")


def test_a_failure_says_nothing_and_the_engine_recovers(tmp_path):
    """A damaged file gives the one message, without a cause; mended, the engine works again."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"u": [1], "x": [2.5]}).write_parquet(path)
    whole = path.read_bytes()
    with DuckDBEngine({"t": path}) as engine:
        path.write_bytes(b"PAR1" + b"secret" * 50)
        with pytest.raises(EngineError) as caught:
            engine.run(COUNT, SCHEMA, KEY)
        assert str(caught.value) == FAILED
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        path.write_bytes(whole)
        assert engine.run(COUNT, SCHEMA, KEY).values[0].tolist() == [1]


def test_an_interrupt_passes_through(engine, monkeypatch):
    """Stopping a run by hand is not an engine error, and the next run works."""

    class Interrupted:
        def execute(self, _):
            raise KeyboardInterrupt

        def interrupt(self):
            pass

        def close(self):
            pass

    monkeypatch.setattr(engine, "_connection", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        engine.run(COUNT, SCHEMA, KEY)
    assert engine.run(COUNT, SCHEMA, KEY).values[0].tolist() == [3]


def test_private_temporary_folder_goes_with_the_engine():
    """The default folder for spilled data is ours alone, and removed."""
    engine = DuckDBEngine({"t": pl.DataFrame({"u": [1]})})
    folder = Path(engine._temporary)
    assert folder.stat().st_mode & 0o077 == 0
    engine.close()
    assert not folder.exists()
    with pytest.raises(ArgumentError, match="closed"):
        engine.public_values("t", ColumnFacts("u", Kind.INTEGER))


def test_no_data_value_in_errors(tmp_path):
    """Declared facts that a source does not meet are refused by name, before any data is read."""
    pl.DataFrame({"u": ["p-123"], "x": [1.0]}).write_parquet(tmp_path / "t.parquet")
    with DuckDBEngine({"t": tmp_path / "t.parquet"}) as engine:
        with pytest.raises(PolicyError, match="two people could become one") as caught:
            engine.check(SCHEMA)
        assert "123" not in str(caught.value)
    pl.DataFrame({"u": [123], "x": [[1.0]]}).write_parquet(tmp_path / "t.parquet")
    with DuckDBEngine({"t": tmp_path / "t.parquet"}) as engine:
        assert engine.describe("t") == {"u": Kind.INTEGER, "x": None}
        with pytest.raises(PolicyError, match="'x' of table 't' cannot be read as real"):
            engine.check(SCHEMA)
    with pytest.raises(PolicyError, match="no file"):
        DuckDBEngine({"t": tmp_path / "missing.parquet"})
    with pytest.raises(ArgumentError, match="ending"):
        DuckDBEngine({"t": "t.xlsx"})
    with pytest.raises(ArgumentError, match="key"):
        DuckDBEngine({"t": pl.DataFrame({"u": [1]})}).run(COUNT, SCHEMA, b"short")


def test_a_declared_unique_column_must_be_unique():
    """A public key that repeats is refused; even unchecked, a join on it cannot fan out."""
    public = Table(
        "p",
        {"code": ColumnFacts("code", Kind.INTEGER, Fraction(0), Fraction(10))},
        private=False,
        unique=frozenset({"code"}),
    )
    schema = Schema({**SCHEMA.tables, "p": public})
    frames = {
        "t": pl.DataFrame({"u": [1, 10], "x": [0.5, 0.5]}),
        # The last two differ in the source, and are the same once they are read.
        "p": pl.DataFrame({"code": ["1", "10", "010"]}),
    }
    join = PublicJoin(
        Scan("t", "t"), Scan("p", "p"), ((Column("t", "u"), Column("p", "code")),), False
    )
    job = Job(join, None, (), (Rows(),), 1, 1)
    with DuckDBEngine(frames) as engine:
        with pytest.raises(PolicyError, match="unique"):
            engine.check(schema)
        assert engine.run(job, schema, KEY).values[0].tolist() == [2]


def test_empty_tables_have_no_groups():
    """Where nobody has a row, there is no group, with keys or without."""
    nobody = pl.DataFrame({"u": [], "x": []}, schema={"u": pl.Int64, "x": pl.Float64})
    with DuckDBEngine({"t": nobody}) as opened:
        for keys in ((), (GroupKey("u", Column("t", "u"), Kind.INTEGER, (1, 2)),)):
            for unit in (None, Column("t", "u")):
                job = Job(Scan("t", "t"), unit, keys, (Rows(),), 1, 1)
                found = opened.run(job, SCHEMA, KEY)
                assert list(found.keys) == []
                assert found.values[0].shape == (0,)


def closed_by(monkeypatch, engine):
    """Whether each of the engine's connections was closed in this thread, in the order of closing.

    Until the list is asked for, the thread that closes waits.
    """
    may, found = threading.Event(), []

    class Watched:
        def __init__(self, connection):
            self._connection = connection

        def close(self):
            here = threading.current_thread() is threading.main_thread()
            assert here or may.wait(60)
            self._connection.close()
            found.append(here)

    for name in ("_connection", "_trial"):
        monkeypatch.setattr(engine, name, Watched(getattr(engine, name)))
    engine.close()
    may.set()
    wait_until_shut()
    return found


def test_memory_is_given_back_meanwhile(monkeypatch):
    """Nobody waits for a database in memory to be forgotten; a fork and the next one do."""
    engine = DuckDBEngine({"t": pl.DataFrame({"u": [1]})})
    folder, connection = Path(engine._temporary), engine._connection
    assert closed_by(monkeypatch, engine) == [False, False]
    assert not folder.exists()
    with pytest.raises(duckdb.ConnectionException):
        connection.execute("SELECT 1")
    engine.close()


def test_files_are_given_back_at_once(monkeypatch, tmp_path):
    """A database that was attached can be written to, and what was spilled is gone."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as writer:
        writer.execute("CREATE TABLE t AS SELECT 1 AS u")
    engine = DuckDBEngine({"t": FileSource(tmp_path / "t.duckdb", "duckdb", "t")})
    assert closed_by(monkeypatch, engine) == [True, True]
    with duckdb.connect(str(tmp_path / "t.duckdb")) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
    engine = DuckDBEngine({"t": pl.DataFrame({"u": [1]})})
    spilled = Path(engine._temporary, "spilled")
    spilled.touch()
    assert closed_by(monkeypatch, engine) == [True, True]
    assert not spilled.exists()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_what_is_being_given_back():
    """Its child would have half of it, and nobody who does the rest."""
    for _ in range(3):
        DuckDBEngine({"t": pl.DataFrame({"u": [1]})}).close()
        child = os.fork()
        if child == 0:
            alive = [t for t in threading.enumerate() if t.name == "dither-duckdb-close"]
            os._exit(len(alive) + len(connection._shutting))
        assert os.waitpid(child, 0)[1] == 0


def test_what_is_closed_as_the_interpreter_ends_is_closed_at_once(monkeypatch):
    """No thread begins then."""

    def none_begins(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    engine = DuckDBEngine({"t": pl.DataFrame({"u": [1]})})
    monkeypatch.setattr(threading.Thread, "start", none_begins)
    assert closed_by(monkeypatch, engine) == [True, True]
