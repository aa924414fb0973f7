"""Bounds of dates, times and elements that are learned on a server and on a cluster: the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dither as dt
from query.learning.test_days import DAY, LEARNED, PEOPLE, SURE, UNITS
from spark_session import needs_spark, spark_session

ASKED: dict[str, dict[str, Any]] = {
    "d": {},
    "at": {"origin": DAY(2024, 1, 1)},
    "marks": {},
    "on": {"origin": DAY(2023, 1, 1)},
}
FIELDS = 'u bigint, d date, at timestamp, marks bigint[], "on" date[], tags text[]'


def learned(folder: Path, source: Any, unit: bool, **given: Any) -> dict[str, Any]:
    """By column: its grid with the numbers of units, its bounds, and the share outside."""
    folder.mkdir()
    table = {"columns": LEARNED, **(UNITS if unit else {})}
    table |= {} if source is None else {"source": source}
    budget = {"epsilon": 10**9, "delta": "1e-3", "ledger": str(folder / "learned.ledger")}
    found = {}
    with dt.open({"budget": budget, "tables": {"t": table}}, **given) as session:
        for column, options in ASKED.items():
            made = session.learn("t", column, epsilon=SURE, **options)
            found[column] = (made.lower, made.upper, made.outside, made.frame.to_dicts())
        limits = session.learn("t", by=["d"], epsilon=SURE) if unit else None
        found["limits"] = limits and (limits.max_groups, limits.max_rows, limits.cut)
        asked = "SELECT AVG(DATE_DIFF('day', DATE '2024-01-01', at)) AS m, AVG(YEAR(d)) AS y FROM t"
        found["used"] = session.sql(asked).release(100 * SURE).frame.select("m", "y").row(0)
    return found


@pytest.fixture(params=["postgres", pytest.param("spark", marks=needs_spark)])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The people on an engine: a policy's source, or a frame of it."""
    if request.param == "spark":
        yield None, {"sources": {"t": spark_session().createDataFrame(PEOPLE.to_arrow())}}
        return
    database = request.getfixturevalue("postgres")
    database.execute(f"CREATE TABLE people ({FIELDS})")
    with database.server.connect(database.name, "owner") as owner, owner.cursor() as cursor:
        cursor.executemany("INSERT INTO people VALUES (%s, %s, %s, %s, %s, %s)", PEOPLE.rows())
    request.getfixturevalue("monkeypatch").setenv("TEST_DSN", database.reader)
    yield {"postgres": "env:TEST_DSN", "table": "people"}, {}


@pytest.mark.parametrize("unit", [True, False])
def test_every_engine_learns_the_same(tmp_path: Path, place: Any, unit: bool) -> None:
    """Cell by cell of the grids of days, of times and of elements, by people and by rows."""
    source, given = place
    embedded = learned(tmp_path / "here", None, unit, sources={"t": PEOPLE})
    assert embedded["d"][:2] == (DAY(1960, 1, 1), DAY(1999, 6, 30))
    assert embedded["at"][:2] != embedded["d"][:2]
    assert learned(tmp_path / "there", source, unit, **given) == embedded
