"""Every engine on random plans over hostile rows: the same exact integers as the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from engines.conformance.engines import EVERY, by_group, expected, open_engine
from engines.conformance.plans import WIDE
from engines.hostile import jobs, tables

KEY = b"sixteen bytes..."


@pytest.mark.parametrize("engine", EVERY)
@settings(max_examples=60, deadline=None)
@given(rows=tables(), job=jobs(most=1000))
def test_every_engine_agrees_with_the_reference(engine, rows, job):
    """Where nothing has to be chosen by hash, every integer is the reference's."""
    found = open_engine(engine).run(rows, job, WIDE, KEY)
    assert by_group(found) == expected(job, WIDE, rows)
