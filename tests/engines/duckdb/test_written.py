"""What DuckDB is asked, to the letter, and every format that it reads, against the reference."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dt
from conformance.engines import by_group
from conformance.plans import LISTED, PLANS, TABLES, WIDE, job, rows, schema
from dither.engines import FAILED
from dither.engines.duckdb import DuckDBEngine
from dither.engines.writer import Seeds
from dither.errors import EngineError, PolicyError
from engines.hostile import SCHEMA, frame, jobs, stored, tables
from engines.reference import answer

KEPT = Path(__file__).with_name("duckdb_golden.sql")


def written() -> str:
    """Every query of every plan, under its name."""
    lines = []
    empty = {name: frame(SCHEMA, name, []) for name in SCHEMA.tables}
    with DuckDBEngine(empty, threads=1) as engine:
        for name in PLANS:
            asked = job(name), schema(name), Seeds(1, 2)
            if name in TABLES or name in LISTED or job(name).history is not None:
                queries = [sql for _, sql in engine._written_tables(*asked)]
            else:
                _, sums, others = engine._written(*asked)
                queries = [sums, *others.values()]
            lines += [f"-- {name}", *(f"{sql};" for sql in queries), ""]
    return "\n".join(lines)


def test_the_sql_of_every_plan_is_what_it_was():
    """A change here is meant, and its text was read before it was kept."""
    assert written() == KEPT.read_text(encoding="utf-8")


def test_without_units_the_sql_is_the_same_for_every_key():
    """So that the text that was tried is the one that runs."""
    empty = {name: frame(SCHEMA, name, []) for name in SCHEMA.tables}
    plans = [n for n in PLANS if job(n).unit is None and n not in (*TABLES, *LISTED)]
    assert len(plans) > 5
    with DuckDBEngine(empty, threads=1) as engine:
        for name in plans:
            one, other = (engine._written(job(name), schema(name), Seeds(i, i)) for i in (1, 2))
            assert one[1:] == other[1:], name


@pytest.mark.parametrize("name", ["rows", "rows by unit"])
def test_a_query_without_a_key_is_written_once(name, monkeypatch):
    """Tried over empty tables and run over the source in one text, and right both times."""
    tables = {n: frame(SCHEMA, n, rows()[n]) for n in SCHEMA.tables}
    asked, facts = job(name), schema(name)
    texts = []
    with DuckDBEngine(tables, threads=1) as engine:
        write = engine._written

        def watched(*given):
            found = write(*given)
            texts.append(found[1])
            return found

        monkeypatch.setattr(engine, "_written", watched)
        engine.prepare(asked, facts)
        found = engine.run(asked, facts, KEY)
    assert by_group(found) == answer(asked, facts, rows())
    assert len(texts) == (1 if asked.unit is None else 2)


def test_a_trial_reads_no_row():
    """There the source's name stands for an empty table, and only there."""
    with DuckDBEngine({"t": frame(SCHEMA, "visits", rows()["visits"])}, threads=1) as engine:
        asked = 'SELECT count(*) FROM "source_0"'
        assert engine._execute(asked) == [(len(rows()["visits"]),)]
        assert engine._trial.execute(asked).fetchall() == [(0,)]
        engine._drop()
        assert engine._execute(asked) == [(len(rows()["visits"]),)]
        assert engine._trial.execute(asked).fetchall() == [(0,)]


if __name__ == "__main__":
    print(written(), end="")


KEY = b"sixteen bytes..."
FORMS = ("polars", "arrow", "pandas", "parquet", "parts", "ipc", "csv", "duckdb")


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables(), data=st.data())
def test_every_format_reads_the_same_values(form, tmp_path, rows, data):
    """A table means the same in every format that it can be stored in."""
    job = data.draw(jobs(most=1000))
    sources = {n: stored(tmp_path, n, r, form) for n, r in rows.items()}
    with DuckDBEngine(sources, threads=1) as engine:
        if form == "csv":
            # Its units are text, which the schema would read as whole numbers.
            with pytest.raises(PolicyError, match="two people could become one"):
                engine.check(SCHEMA)
        else:
            engine.check(SCHEMA)
        found = engine.run(job, WIDE, KEY)
    assert by_group(found) == answer(job, WIDE, rows)


ENDLESS = "SELECT COUNT(*) FROM source_0 a, source_0 b, source_0 c, source_0 d"


def test_a_statement_that_takes_too_long_is_ended():
    """With the message of every other failure; what comes next runs as ever."""
    numbers = pl.DataFrame({"a": list(range(20_000))})
    with DuckDBEngine({"t": numbers}, timeout=0.05) as engine:
        for _ in range(2):
            with pytest.raises(EngineError, match="could not compute the answer"):
                engine._execute(ENDLESS)
        engine._timeout = 600
        assert engine._execute("SELECT COUNT(*) FROM source_0") == [(20_000,)]


def test_a_question_that_is_ended_stays_charged(tmp_path, monkeypatch):
    """And says nothing but that it is; the policy says after how many seconds."""
    policy = {
        "budget": {"epsilon": 2, "ledger": str(tmp_path / "l.ledger")},
        "engine": {"timeout": 7},
        "tables": {"t": {}},
    }
    with dt.open(policy, sources={"t": pl.DataFrame({"a": list(range(20_000))})}) as session:
        engine = session._engine
        assert engine._timeout == 7
        question = session.sql("SELECT COUNT(*) AS n FROM t")
        monkeypatch.setattr(engine, "_timeout", 0.05)
        real = engine._watched
        monkeypatch.setattr(
            engine, "_watched", lambda sql, take, report: real(ENDLESS, take, report)
        )
        with pytest.raises(EngineError) as ended:
            question.release(epsilon=1)
        assert str(ended.value) == FAILED
        monkeypatch.undo()
        assert [b.spent.epsilon for b in session.balance()] == [1]
        assert question.release(epsilon=0.5).frame.shape == (1, 3)
