"""The SQL that DuckDB is asked, to the letter: other engines are served without changing it.

``python -m engines.test_duckdb_sql > engines/duckdb_golden.sql``, run in ``tests``, keeps what the
writer says now; read the difference first.
"""

from __future__ import annotations

from pathlib import Path

from dither.engines.duckdb import DuckDBEngine
from dither.engines.writer import Seeds
from engines.conformance.plans import PLANS, job, schema
from engines.hostile import SCHEMA, frame

KEPT = Path(__file__).with_name("duckdb_golden.sql")


def written() -> str:
    """Every query of every plan, under its name."""
    lines = []
    with DuckDBEngine({name: frame(name, []) for name in SCHEMA.tables}, threads=1) as engine:
        for name in PLANS:
            _, sums, histograms = engine._written(job(name), schema(name), Seeds(1, 2))
            lines += [f"-- {name}", *(f"{sql};" for sql in (sums, *histograms.values())), ""]
    return "\n".join(lines)


def test_the_sql_of_every_plan_is_what_it_was():
    """A change here is meant, and its text was read before it was kept."""
    assert written() == KEPT.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(written(), end="")
