"""A plan written as SQL and read back is the same plan."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction as F
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin
from dither.sql import parse_query, to_sql
from plan import calls
from sql.sql_tables import ACCEPTED, SCHEMA, unweighted

# --- plans as the parser makes them -----------------------------------------------------------

REALS = st.one_of(
    st.fractions(max_denominator=10**6).filter(lambda q: abs(q.numerator) < 10**12),
    st.builds(F, st.integers(-(10**12), 10**12), st.sampled_from([1, 2, 10, 1000, 2**70, 10**30])),
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False).map(F),
)
NUMBERS = st.one_of(st.integers(-(10**30), 10**30), REALS)
DATES = st.dates()
TIMESTAMPS = st.datetimes()
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
CONSTANTS = st.one_of(NUMBERS, TEXT, st.booleans(), DATES, TIMESTAMPS)
EDGES = st.lists(REALS, min_size=2, max_size=5, unique=True).map(lambda e: tuple(sorted(e)))


@cache
def _expressions(columns: tuple[ex.Column, ...]) -> st.SearchStrategy[ex.Expression]:
    """Trees of every node, well-typed or not; text beside dates is left to other tests."""
    literals = st.builds(ex.Literal, NUMBERS | st.booleans() | DATES | TIMESTAMPS | st.none())
    texts = st.builds(ex.Literal, TEXT)
    leaves = st.sampled_from(columns) | literals

    def grow(inner: st.SearchStrategy[ex.Expression]) -> st.SearchStrategy[ex.Expression]:
        some = st.lists(inner, min_size=1, max_size=3).map(tuple)
        valued = inner.filter(lambda x: x != ex.Literal(None))
        parts = st.sampled_from(list(ex.PARTS))
        drawn = dict.fromkeys(("number", "real", "text", "date", "any"), inner)
        return st.one_of(
            st.builds(
                ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%"]), inner, inner
            ).filter(_not_folded),
            st.builds(
                ex.Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), valued, valued
            ),
            st.builds(ex.Between, inner, inner, inner),
            st.builds(ex.InList, inner, st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)),
            st.builds(ex.IsNull, inner),
            st.builds(ex.Not, inner),
            st.lists(inner.filter(lambda x: not isinstance(x, ex.And)), min_size=2, max_size=3).map(
                lambda xs: ex.And(tuple(xs))
            ),
            st.lists(inner.filter(lambda x: not isinstance(x, ex.Or)), min_size=2, max_size=3).map(
                lambda xs: ex.Or(tuple(xs))
            ),
            st.builds(
                ex.Case,
                st.lists(st.tuples(inner, inner | texts), min_size=1, max_size=2).map(tuple),
                inner | texts,
            ),
            st.builds(ex.Coalesce, some),
            st.builds(ex.Least, some),
            st.builds(ex.Greatest, some),
            *(st.builds(n, inner) for n in (ex.Absolute, ex.Floor, ex.Ceil, ex.Lower, ex.Upper)),
            st.builds(lambda x, e: ex.Clamp(x, e[0], e[-1]), inner, EDGES),
            st.builds(ex.Bin, inner, EDGES),
            st.builds(ex.DatePart, parts, inner),
            st.builds(ex.DateTruncate, st.sampled_from(ex.TRUNCATIONS), inner),
            calls.calls(tuple(ex.FUNCTIONS), drawn),
            st.builds(ex.Substring, inner, st.integers(1, 99), st.integers(0, 99)),
        )

    return st.recursive(leaves, grow, max_leaves=8)


def _of_time(node: ex.Expression) -> bool:
    """What may be a date: one that is moved is read as an interval."""
    match node:
        case ex.Column(name=name):
            return name in ("day", "seen")
        case ex.Literal(value=value):
            return isinstance(value, dt.date)
    return isinstance(node, ex.DateTruncate | ex.Call)


def _not_folded(node: ex.Arithmetic) -> bool:
    """A quotient of two numbers is read as one number."""
    sides = (node.left, node.right)
    numbers = [
        isinstance(s, ex.Literal) and isinstance(s.value, int | F) and not isinstance(s.value, bool)
        for s in sides
    ]
    if node.op in ("+", "-") and any(map(_of_time, ex.walk(node.left))):
        return False
    return node.op != "/" or not all(numbers) or node.right in (ex.Literal(0), ex.Literal(F(0)))


def _columns(table: str, alias: str) -> tuple[ex.Column, ...]:
    return tuple(ex.Column(alias, name) for name in SCHEMA.table(table).columns)


@st.composite
def relations(draw: st.DrawFn) -> tuple[Relation, tuple[ex.Column, ...]]:
    """Tables, joins and a filter, with the columns in scope."""
    alias = draw(st.sampled_from(["visits", "a b", "select"]))
    rows: Relation = Scan("visits", alias)
    columns = _columns("visits", alias)
    shape = draw(st.sampled_from(["one", "public", "unit", "both"]))
    if shape in ("public", "both"):
        left = draw(st.sampled_from([ex.Column(alias, "city"), ex.Column(alias, "age")]))
        pairs = [(left, ex.Column("c", draw(st.sampled_from(["id", "city"]))))]
        if draw(st.booleans()):
            pairs.append((ex.Column(alias, "region"), ex.Column("c", "region")))
        rows = PublicJoin(rows, Scan("cities", "c"), tuple(pairs), draw(st.booleans()))
        columns += _columns("cities", "c")
    if shape in ("unit", "both"):
        units = ex.Column(alias, "pid"), ex.Column("drugs", "pid")
        rows = UnitJoin(rows, Scan("drugs", "drugs"), *units)
        columns += _columns("drugs", "drugs")
    if draw(st.booleans()):
        rows = Filter(rows, draw(_expressions(columns)))
    return rows, columns


@cache
def _aggregates(
    operand: st.SearchStrategy[ex.Expression],
) -> st.SearchStrategy[ag.AggregateFunction]:
    shares = st.fractions(0, 1, max_denominator=1000).filter(lambda q: 0 < q < 1)
    divisible = st.one_of(
        st.just(ag.Count()),
        st.just(ag.CountUnits()),
        st.builds(ag.CountValues, operand.filter(lambda x: not isinstance(x, ex.Literal))),
        st.builds(ag.Sum, operand),
    )
    return st.one_of(
        divisible,
        st.builds(ag.Mean, operand),
        st.builds(ag.Variance, operand, st.booleans(), st.booleans()),
        st.builds(ag.Quantile, operand, shares),
        st.builds(ag.Quantile, operand, st.just(F(1, 2)), st.just("median")),
        st.builds(ag.Quantile, operand, st.just(F(1, 200)), st.just("min")),
        st.builds(ag.Quantile, operand, st.just(F(199, 200)), st.just("max")),
        st.builds(ag.Ratio, divisible, divisible),
    )


def _groups(node: ex.Expression) -> bool:
    """Whether a key is read as it stands: no constant, no unit, no column with edges."""
    bare = isinstance(node, ex.Column) and node.name in ("pid", "age")
    return bool(ex.columns(node)) and not bare


def _is_name(text: str) -> bool:
    return bool(text) and "\0" not in text


@st.composite
def queries(draw: st.DrawFn) -> ag.Query:
    """Whole queries."""
    rows, columns = draw(relations())
    expressions = _expressions(columns)
    keyed = expressions.filter(_groups)
    groups = draw(st.lists(keyed, max_size=2, unique=True))
    outputs = draw(st.lists(_aggregates(expressions), min_size=1, max_size=3))
    names = draw(
        st.lists(
            st.sampled_from(["n", "Total", "a b", "order", "région", "x'y", 'q"r', "1st", "age"])
            | TEXT.filter(_is_name),
            min_size=len(groups) + len(outputs),
            max_size=len(groups) + len(outputs),
            unique_by=str.casefold,
        )
    )
    order = draw(st.lists(st.tuples(st.sampled_from(names), st.booleans()), max_size=2))
    return ag.Query(
        rows,
        tuple(map(ag.Key, names, groups)),
        tuple(map(ag.Output, names[len(groups) :], outputs)),
        tuple(order),
        draw(st.none() | st.integers(0, 10**6)),
    )


@settings(max_examples=200, deadline=None)
@given(queries())
def test_reading_what_was_written(query: ag.Query) -> None:
    """parse_query is the inverse of to_sql."""
    text = to_sql(query, SCHEMA)
    assert parse_query(text, SCHEMA) == query, text


@pytest.mark.parametrize("text", ACCEPTED)
def test_writing_what_was_read(text: str) -> None:
    """The canonical text of a query is a fixed point."""
    query = unweighted(parse_query(text, SCHEMA))
    written = to_sql(query, SCHEMA)
    assert parse_query(written, SCHEMA) == query
    assert to_sql(parse_query(written, SCHEMA), SCHEMA) == written


def test_canonical_text() -> None:
    """It reads as a person would write it."""
    text = (
        "select Region, avg(COST), count(*) n from visits where ((age>=18)) and not(smoker) "
        "group by 1 order by 3 desc limit 5"
    )
    assert to_sql(parse_query(text, SCHEMA), SCHEMA) == (
        "SELECT region, AVG(cost) AS avg_cost, COUNT(*) AS n FROM visits "
        "WHERE age >= 18 AND NOT smoker GROUP BY region ORDER BY n DESC LIMIT 5"
    )


def test_bins_from_the_policy_are_written_out() -> None:
    """The text says what was grouped by, whatever the policy says later."""
    query = parse_query("SELECT age, COUNT(*) AS n FROM visits GROUP BY age", SCHEMA)
    assert to_sql(query, SCHEMA) == (
        "SELECT BIN(age, 0, 18, 65, 110) AS age, COUNT(*) AS n FROM visits GROUP BY 1"
    )


def test_filters_below_a_public_join_are_lifted() -> None:
    """They mean the same above it."""
    one = ex.Compare("=", ex.Column("v", "age"), ex.Literal(1))
    two = ex.Column("v", "smoker")
    pairs = ((ex.Column("v", "city"), ex.Column("cities", "id")),)
    rows = Filter(
        PublicJoin(Filter(Scan("visits", "v"), one), Scan("cities", "cities"), pairs, False), two
    )
    text = to_sql(ag.Query(rows, (), (ag.Output("n", ag.Count()),)), SCHEMA)
    assert text == (
        "SELECT COUNT(*) AS n FROM visits AS v JOIN cities ON v.city = cities.id "
        "WHERE v.age = 1 AND v.smoker"
    )


def test_no_filter_stands_below_a_unit_join() -> None:
    """Above it, it would mean something else; such a relation refuses itself."""
    filtered = Filter(Scan("visits", "visits"), ex.Column("visits", "smoker"))
    pairs = ((ex.Column("visits", "city"), ex.Column("cities", "id")),)
    units = (Scan("drugs", "drugs"), ex.Column("visits", "pid"), ex.Column("drugs", "pid"))
    for left in (filtered, PublicJoin(filtered, Scan("cities", "cities"), pairs, False)):
        with pytest.raises(UnsupportedError, match="join first, then filter"):
            UnitJoin(left, *units)


def test_zoned_timestamps_are_written_in_utc() -> None:
    """A plan of the builder may hold one."""
    zoned = dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    seen = ex.Compare("=", ex.Column("visits", "seen"), ex.Literal(zoned))
    rows = Filter(Scan("visits", "visits"), seen)
    text = to_sql(ag.Query(rows, (), (ag.Output("n", ag.Count()),)), SCHEMA)
    assert "'2019-12-31 23:00:00'" in text
