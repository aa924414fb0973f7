"""Long lists of public values: the same table in each engine, however they are written."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import duckdb
import pytest

from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.postgres.dialect import POSTGRES
from dither.engines.writer.dialect import LONG
from dither.plan.schema import Kind

MARKS = ["", " ", "\x01", "\x02", "'", "''", "a\nb", "\t", ",", "\\", "\\n"]
ODD = [*MARKS, "é", "e\u0301", "🐘", "NULL"]
LISTS = {
    Kind.TEXT: ODD + [f"v{i}" for i in range(LONG)],
    Kind.INTEGER: [-(2**63), 2**63 - 1, Fraction(-7)] + [i * i - 50 for i in range(LONG)],
    Kind.REAL: [Fraction(1, 3), Fraction(-7, 10)] + [Fraction(i, 7) for i in range(LONG)],
    Kind.DATE: [dt.date(1, 1, 1) + dt.timedelta(days=700 * i) for i in range(LONG + 5)],
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_long_list_holds_each_value_at_its_place(kind):
    """Quotes, separators and line ends in texts; numbers at the ends of their type."""
    values = LISTS[kind]
    placed = [(3 * i, value) for i, value in enumerate(values)]
    wanted = [(float(v) if kind is Kind.REAL else v, i) for i, v in placed]
    with duckdb.connect() as connection:
        found = connection.execute(DUCKDB.sql(DUCKDB.listed(placed, kind)))
        names = [column[1] for column in found.description]
        assert found.fetchall() == wanted
    assert names[0] == DUCKDB.types[kind]


@pytest.mark.parametrize("kind", [Kind.TEXT, Kind.INTEGER, Kind.DATE])
def test_a_long_list_of_postgresql_holds_each_value_at_its_place(kind, postgres):
    """As in DuckDB; texts compare by their bytes, as short lists of them do."""
    placed = [(3 * i, value) for i, value in enumerate(LISTS[kind])]
    sql = POSTGRES.sql(POSTGRES.listed(placed, kind))
    found = postgres.execute(sql)
    assert found == [(v, i) for i, v in placed]
    if kind is Kind.TEXT:
        below = f"SELECT value FROM ({sql}) AS l WHERE value < 'a' AND value >= 'A'"
        assert postgres.execute(below) == [("\\",), ("\\n",), ("NULL",)]


def test_a_long_list_is_one_constant():
    """Engines plan each constant by itself, and of 100,000 that takes seconds."""
    placed = list(enumerate(LISTS[Kind.TEXT]))
    for dialect in (DUCKDB, POSTGRES):
        assert dialect.sql(dialect.listed(placed, Kind.TEXT)).count("CAST") < 5


def test_values_that_leave_no_separator_are_written_one_by_one():
    """Where every control character is in some value."""
    placed = list(enumerate([*map(chr, range(1, 9)), *LISTS[Kind.TEXT]]))
    sql = DUCKDB.sql(DUCKDB.listed(placed, Kind.TEXT))
    assert "STRING_SPLIT" not in sql
    with duckdb.connect() as connection:
        assert connection.execute(sql).fetchall() == [(v, i) for i, v in placed]


SHORT = {
    Kind.TEXT: ODD,
    Kind.INTEGER: [-(2**63), 2**63 - 1, 0, Fraction(-7)],
    Kind.REAL: [Fraction(1, 3), Fraction(-7, 10)],
    Kind.BOOLEAN: [True, False],
    Kind.DATE: [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    Kind.TIMESTAMP: [dt.datetime(1, 1, 1), dt.datetime(2024, 2, 29, 23, 59, 59, 999_999)],
}


@pytest.mark.parametrize("kind", SHORT)
def test_a_short_list_holds_each_value_at_its_place(kind):
    """Texts and whole numbers stand in it without a type of their own."""
    values = SHORT[kind]
    for chosen in (values, values[:1], values[-1:]):
        placed = [(300 * i, value) for i, value in enumerate(chosen)]
        wanted = [(float(v) if kind is Kind.REAL else v, i) for i, v in placed]
        with duckdb.connect() as connection:
            found = connection.execute(DUCKDB.sql(DUCKDB.listed(placed, kind)))
            assert found.description[0][1] == DUCKDB.types[kind]
            assert found.fetchall() == wanted
