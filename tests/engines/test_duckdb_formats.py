"""Every format that a table can be stored in, read alike: held against the reference."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.engines.duckdb import DuckDBEngine
from dither.errors import PolicyError
from engines.conformance.engines import by_group
from engines.conformance.plans import WIDE
from engines.hostile import SCHEMA, jobs, stored, tables
from engines.reference import answer

KEY = b"sixteen bytes..."
FORMS = ("polars", "arrow", "pandas", "parquet", "csv", "duckdb")


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
