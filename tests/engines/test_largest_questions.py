"""Questions as long, as deep and as wide as any that is read, on every engine: answered rightly.

What is larger is refused before an engine sees it, with nothing charged: that is held here too, in
a session on each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither as dt
from dither.errors import QueryError
from spark_session import needs_spark, spark_session

ROWS = pl.DataFrame(
    {
        "age": [20 + i % 70 for i in range(700)],
        "s": ["a", "b"] * 350,
        "person": list(range(700)),
    }
)
SURE = 10**6
"""An epsilon at which noise is nothing."""


def policy(folder: Path, unit: str | None, **source: object) -> dict[str, Any]:
    """A table whose rows are people, or rows of persons."""
    table: dict[str, Any] = {"columns": {"age": {"bounds": [0, 110]}, "s": {"type": "text"}}}
    if unit is not None:
        table |= {"unit": unit, "max_rows": 60, "max_groups": 1}
    budget = {"epsilon": 10**9, "delta": "1e-6", "ledger": str(folder / "l.ledger")}
    return {"budget": budget, "tables": {"people": table | source}}


Opener = Callable[[str | None], dt.Session]


@pytest.fixture(params=["duckdb", "postgres", pytest.param("spark", marks=needs_spark)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """What opens a session whose table is on the engine."""
    source: dict[str, Any] = {}
    if request.param == "postgres":
        database = request.getfixturevalue("postgres")
        database.execute(
            "CREATE TABLE people (age bigint, s text, person bigint)",
            "INSERT INTO people SELECT 20 + i % 70, (ARRAY['a','b'])[1 + i % 2], i"
            " FROM generate_series(0, 699) i",
        )
        request.getfixturevalue("monkeypatch").setenv("TEST_DSN", database.reader)
        source = {"source": {"postgres": "env:TEST_DSN", "table": "people"}}
    frames = {
        "duckdb": lambda: ROWS,
        "spark": lambda: spark_session().createDataFrame(ROWS.to_arrow()),
    }
    with ExitStack() as sessions:
        yield lambda unit: sessions.enter_context(
            dt.open(
                policy(tmp_path, unit, **source),
                sources={} if source else {"people": frames[request.param]()},
            )
        )


def around(before: str, inner: str, after: str, times: int) -> str:
    """A text within many pairs of others."""
    return before * times + inner + after * times


WHERE = "SELECT COUNT(*) AS n FROM people WHERE "
EIGHTY = pl.col("age") < 80
LARGEST: dict[str, tuple[str, Callable[[pl.DataFrame], int]]] = {
    "a long list": (
        f"{WHERE}age IN ({', '.join(map(str, range(30, 4930)))})",
        lambda rows: rows.filter(pl.col("age") >= 30).height,
    ),
    "many conditions": (
        WHERE + " OR ".join(f"age = {i}" for i in range(80, 2500)),
        lambda rows: rows.filter(~EIGHTY).height,
    ),
    "a long text": (f"{WHERE}s = 'a' OR s = '{'x' * 99_000}'", lambda rows: rows.height // 2),
    "conditions inside one another": (
        f"{WHERE}{around('(age > 1 AND ', 'age < 80', ')', 24)}",
        lambda rows: rows.filter(EIGHTY).height,
    ),
    "CASE inside CASE": (
        f"{WHERE}{around('CASE WHEN age > 3 THEN ', 'age', ' ELSE 0 END', 20)} < 80",
        lambda rows: rows.filter(EIGHTY).height,
    ),
    "functions of functions": (
        f"{WHERE}{around('ABS(', 'age', ')', 24)} < 80",
        lambda rows: rows.filter(EIGHTY).height,
    ),
    "queries in the FROM": (
        f"SELECT COUNT(*) AS n FROM {around('(SELECT age FROM ', 'people', ') t', 15)}",
        lambda rows: rows.height,
    ),
    "unions": (
        "SELECT COUNT(*) AS n FROM ("
        + " UNION ALL ".join(["SELECT person, age FROM people"] * 60)
        + ") t",
        lambda rows: 60 * rows.height,
    ),
}


@pytest.mark.parametrize("case", LARGEST)
def test_the_largest_questions_are_answered(opened: Opener, case: str) -> None:
    """To the row, by noise that is nothing."""
    text, expected = LARGEST[case]
    session = opened("person" if case == "unions" else None)
    assert session.sql(text).release(SURE).frame["n"].to_list() == [expected(ROWS)]


def test_many_outputs_are_answered(opened: Opener) -> None:
    """Two hundred of them, each by itself."""
    session = opened(None)
    outputs = ", ".join(f"COUNT_IF(age < {i}) AS n{i}" for i in range(200))
    (row,) = session.sql(f"SELECT {outputs} FROM people").release(200 * SURE).frame.to_dicts()
    assert [row[f"n{i}"] for i in range(200)] == [
        ROWS.filter(pl.col("age") < i).height for i in range(200)
    ]


BEYOND = {
    "a megabyte": f"{WHERE}s = '{'x' * 10**6}'",
    "a thousand brackets": f"SELECT SUM({around('(', 'age', ')', 1000)}) AS n FROM people",
    "a thousand NOT": f"{WHERE}{around('NOT ', 'age > 3', '', 1000)}",
    "queries": f"SELECT COUNT(*) FROM {around('(SELECT age FROM ', 'people', ')', 1000)}",
}


def test_what_is_larger_is_refused_before_the_engine(opened: Opener) -> None:
    """In a short sentence, and for nothing."""
    session = opened(None)
    for text in BEYOND.values():
        with pytest.raises(QueryError) as told:
            session.sql(text)
        assert len(str(told.value)) < 400
    assert session.balance()[0].spent.epsilon == 0
