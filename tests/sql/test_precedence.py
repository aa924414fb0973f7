"""A text without parentheses means to us what it means to DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import DitherError
from dither.plan import aggregates as ag
from dither.plan.relations import Filter, Scan
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import Names, parse_expression, to_sql

COLUMNS = {n: ColumnFacts(n, Kind.INTEGER) for n in "xy"} | {
    n: ColumnFacts(n, Kind.BOOLEAN) for n in "pq"
}
SCHEMA = Schema({"t": Table("t", COLUMNS)})
NAMES = Names(Scan("t", "t"), SCHEMA)

CONNECTION = duckdb.connect()
CONNECTION.execute("SET error_on_division_by_zero = false")
CONNECTION.execute(
    "CREATE TABLE t AS SELECT * FROM (VALUES (-3::INT), (0), (2), (NULL)) a(x), "
    "(VALUES (-2::INT), (3), (NULL)) b(y), (VALUES (TRUE), (FALSE), (NULL)) c(p), "
    "(VALUES (TRUE), (FALSE), (NULL)) d(q)"
)

# None starts with a number: a quotient of two is read as an exact constant, which DuckDB gives
# another type.
VALUES = st.sampled_from(["x", "y", "y + 2", "x * -3", "- x", "y - 0.5", "x // 2", "ABS(y)"])
SIGNS = st.sampled_from(["+", "-", "*", "/", "//", "%"])
TRUTHS = st.sampled_from(["p", "q", "NOT p", "TRUE", "NULL", "NOT NOT q"])
TESTS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "=="])


@st.composite
def sums(draw: st.DrawFn) -> str:
    """Arithmetic without parentheses."""
    parts = [draw(VALUES)]
    for _ in range(draw(st.integers(0, 3))):
        parts += [draw(SIGNS), draw(VALUES)]
    return " ".join(parts)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    """Conditions without parentheses, some of which we refuse to guess."""
    parts = []
    for i in range(draw(st.integers(1, 4))):
        parts += [draw(st.sampled_from(["AND", "OR"]))] if i else []
        parts += ["NOT"] if draw(st.booleans()) else []
        a, b, c = draw(sums()), draw(sums()), draw(sums())
        test = draw(TESTS)
        forms = (
            *(draw(TRUTHS), f"{a} {test} {b}", f"{a} BETWEEN {b} AND {c}", f"{a} IS NULL"),
            *(f"{a} NOT BETWEEN {b} AND {c}", f"{a} IS NOT NULL", f"{a} IN (1, -3, 2)"),
            *(f"{a} NOT IN (2)", "p IS TRUE", "p IS NOT FALSE", f"{a} {test} {b} IS NULL"),
            *(f"p = {a} {test} {b}", f"NOT {a} {test} {b} IS NOT NULL", "p = q", "p = q IS TRUE"),
            *(f"CASE WHEN {a} {test} {b} THEN p ELSE q END", f"COALESCE({a} {test} {b}, q)"),
        )
        parts.append(draw(st.sampled_from(forms)))
    return " ".join(parts)


def _canonical(text: str) -> str | None:
    try:
        found = parse_expression(text, NAMES)
    except DitherError:
        return None
    query = ag.Query(Filter(Scan("t", "t"), found), (), (ag.Output("n", ag.Count()),))
    return to_sql(query, SCHEMA).partition(" WHERE ")[2]


def _same(text: str, canonical: str) -> bool:
    rows = CONNECTION.execute(
        f"SELECT COUNT(*) FROM t WHERE ({text}) IS DISTINCT FROM ({canonical})"
    ).fetchone()
    assert rows is not None
    return bool(rows[0] == 0)


@settings(max_examples=200, deadline=None)
@given(st.one_of(sums(), conditions()))
def test_parentheses_are_put_where_duckdb_puts_them(text: str) -> None:
    """Text and canonical text agree on every row, or the text is refused."""
    canonical = _canonical(text)
    assert canonical is None or _same(text, canonical), canonical


@pytest.mark.parametrize(
    "text", ["p AND q OR NOT p", "x - y - 2 * -x // 2 % 3", "NOT x = y", "x = y IS NULL"]
)
def test_common_texts_are_read(text: str) -> None:
    """The test above is not met by refusing everything."""
    canonical = _canonical(text)
    assert canonical is not None
    assert _same(text, canonical)
