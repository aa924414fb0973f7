"""Doubles that DuckDB brings to a lattice: what each becomes, about every end that a type has."""

from __future__ import annotations

import math

import duckdb
import pytest

from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.writer.forms import identifier

EDGES = [0.0, 5e-324, 0.5, 1.0, 1.5, 2.5, 100.0, 2.0**53, 2.0**62, 2.0**64, 1e300, math.inf]

ENDS = [
    *[(0, 0), (0, 1), (0, 10_000_000), (-250, 250), (-5_000_000, 0), (7, 7), (3, 9), (-9, -3)],
    *[(0, 2**31 - 1), (0, 2**31), (0, 2**32 - 1), (0, 2**32), (1, 2**32 - 1)],
    *[(-(2**31), 2**31 - 1), (-(2**31) - 1, 0), (-(2**53), 2**53), (0, 2**62), (-(2**62), 2**62)],
]


def near(*ends: int) -> list[float]:
    """Doubles about the ends, and about the halves beside them."""
    found = []
    for end in ends:
        for step in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
            x = end + step
            found += [x, math.nextafter(x, -math.inf), math.nextafter(x, math.inf)]
    return found


def clamped(x: float | None, lower: int, upper: int) -> int | None:
    """What a lattice makes of a number in steps."""
    if x is None or math.isnan(x):
        return None
    return upper if x == math.inf else lower if x == -math.inf else max(lower, min(upper, round(x)))


@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_a_number_in_steps_becomes_the_nearest_whole_one_within_the_bounds(ends):
    """Every edge, alone and in one vector with all others: branches see what others leave."""
    form = DUCKDB.nearest_within(identifier("value"), *ends)
    assert form is not None
    types = (0, 2**31, 2**32, 2**63, -(2**31), -(2**63))
    values = [None, math.nan, *EDGES, *(-x for x in EDGES), *near(*ends, *types)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE given (place INTEGER, value DOUBLE)")
        connection.executemany("INSERT INTO given VALUES (?, ?)", list(enumerate(values)))
        asked = f"SELECT place, {DUCKDB.sql(form)} FROM given"
        for place, found in connection.execute(asked).fetchall():
            assert found == clamped(values[place], *ends), values[place]
        for place, value in enumerate(values):
            alone = connection.execute(f"{asked} WHERE place = {place}").fetchall()
            assert alone == [(place, clamped(value, *ends))], value
        total = connection.execute(f"SELECT SUM(found) FROM ({asked}) AS t(place, found)")
        expected = sum(clamped(x, *ends) or 0 for x in values)
        assert total.fetchall() == [(expected,)]
