"""Whatever the text, a query or a DitherError comes out."""

from __future__ import annotations

import contextlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dither.errors import DitherError
from dither.plan.relations import Scan
from dither.sql import Names, parse_expression, parse_query, to_sql
from dither.sql.allow_list import AGGREGATE_NAMES, FUNCTION_NAMES
from sql.sql_tables import ACCEPTED, SCHEMA, unweighted

NAMES = Names(Scan("visits", "visits"), SCHEMA)

WORDS = st.sampled_from(
    (
        *("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "LIMIT", "JOIN", "LEFT"),
        *("ON", "USING", "AS", "AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "LIKE", "CASE"),
        *("WHEN", "THEN", "ELSE", "END", "DISTINCT", "ALL", "UNION", "WITH", "VALUES", "OVER"),
        *("FILTER", "CAST", "EXTRACT", "INTERVAL", "DATE", "TIMESTAMP", "TRUE", "FALSE", "DESC"),
        *("COUNT", "SUM", "AVG", "MIN", "QUANTILE_CONT", "WITHIN GROUP", "ABS", "CLAMP", "BIN"),
        *sorted({*AGGREGATE_NAMES, *FUNCTION_NAMES}),
        *("QUALIFY", "OFFSET", "OPTIONS", "UNNEST", "CROSS JOIN", "LATERAL", "GROUPING SETS"),
        *("ROLLUP", "CUBE", "UNION ALL", "EXCEPT", "RANK()", "PARTITION BY", "ILIKE", "ESCAPE"),
        *("TRY_CAST", "INTERVAL 1 DAY", "max_rows_contributed", "tags", "t(x)", "smoker"),
        *("visits", "cities", "drugs", "region", "age", "cost", "day", "pid", "v", "x", '"group"'),
        *("(", ")", "[", "]", "{", "}", ",", ".", ";", "*", "+", "-", "/", "//", "%", "=", "<>"),
        *("<", ">=", "::", ":", "?", "$1", "@", "~", "!", "^", "&", "|", "->", ":=", "\\", "'"),
        *('"', "`", "--", "/*", "*/", "$$", "1", "0.5", "1e3", "1e", "'x'", "'2020-01-01'", "\n"),
    )
)


def _any_reading(text: str) -> None:
    try:
        plan = unweighted(parse_query(text, SCHEMA))
    except DitherError:
        pass
    else:
        assert parse_query(to_sql(plan, SCHEMA), SCHEMA) == plan
    with contextlib.suppress(DitherError):
        parse_expression(text, NAMES)


@settings(max_examples=300, deadline=None)
@given(st.text())
@example("\ud800")
@example("SELECT \x00 FROM visits")
@example("１ + ２")
@example("SELECT COUNT(*) FROM visits WHERE age = ²")
@example("ſelect count(*) from visits")
def test_any_text(text: str) -> None:
    """Text of any letters."""
    _any_reading(text)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(WORDS, max_size=14), st.sampled_from(["", "SELECT ", "SELECT COUNT(*) FROM visits "])
)
def test_any_words(words: list[str], start: str) -> None:
    """Words of SQL in any order."""
    _any_reading(start + " ".join(words))


@settings(max_examples=700, deadline=None)
@given(st.data(), st.sampled_from(ACCEPTED))
def test_mutated_queries(data: st.DataObject, text: str) -> None:
    """Accepted queries with pieces cut out, doubled, moved or put in."""
    for _ in range(data.draw(st.integers(1, 3))):
        i, j = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
        j = min(j, i + 12)
        piece = data.draw(
            st.one_of(st.just(""), WORDS, st.just(text[i:j] * 2), st.text(max_size=3))
        )
        text = f"{text[:i]}{piece}{text[j:]}"
    _any_reading(text)
