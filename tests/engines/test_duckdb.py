"""What DuckDB is asked, to the letter, and every format that it reads, against the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.engines import by_group
from conformance.plans import LISTED, PLANS, TABLES, WIDE, job, schema
from dither.engines.duckdb import DuckDBEngine
from dither.engines.writer import Seeds
from dither.errors import PolicyError
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
            if name in TABLES or name in LISTED:
                queries = [sql for _, sql in engine._written_tables(*asked)]
            else:
                _, sums, others = engine._written(*asked)
                queries = [sums, *others.values()]
            lines += [f"-- {name}", *(f"{sql};" for sql in queries), ""]
    return "\n".join(lines)


def test_the_sql_of_every_plan_is_what_it_was():
    """A change here is meant, and its text was read before it was kept."""
    assert written() == KEPT.read_text(encoding="utf-8")


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
