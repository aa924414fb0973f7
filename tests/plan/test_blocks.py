"""The blocks that a question reads: no row that counts lies in another, and none is in vain."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, BlockSet
from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.blocks import may_be_true, read_blocks
from dither.plan.facts.scopes import scope_of
from dither.plan.lowering.lower import lower
from dither.plan.relations import Scan, scans
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql.select import parse_query
from engines.reference import Evaluator, answer

X = ex.Column("t", "x")
DAYS = [dt.date(2023, 11, 20) + dt.timedelta(days=i) for i in range(110)]
MOMENTS = [
    dt.datetime.combine(day, time)
    for day in DAYS[::4]
    for time in (dt.time(), dt.time(12, 30), dt.time(23, 59, 59, 999999))
]
MONTHS = Calendar(every="month")
OPS = ("=", "<>", "<", "<=", ">", ">=")
PARTS = ("year", "quarter", "month", "week", "day")


def table(kind: Kind, calendar: Calendar) -> Table:
    return Table("t", {"x": ColumnFacts("x", kind)}, block=("x", calendar))


@st.composite
def cases(draw):
    """A column of time cut into blocks, all of its values that are tried, and a predicate on it."""
    kind = draw(st.sampled_from([Kind.DATE, Kind.TIMESTAMP]))
    calendar = draw(
        st.sampled_from(
            [
                *(Calendar(every=every) for every in PARTS),
                Calendar(edges=(dt.date(2023, 12, 10), dt.date(2023, 12, 11), dt.date(2024, 1, 1))),
            ]
        )
    )
    values = DAYS if kind is Kind.DATE else MOMENTS
    constants = st.sampled_from(values)
    return kind, calendar, values, draw(predicates(kind, constants))


def predicates(kind: Kind, constants):
    literals = constants.map(ex.Literal)
    of_time = st.one_of(
        st.just(X),
        st.sampled_from(PARTS).map(lambda part: ex.DateTruncate(part, X)),
        st.sampled_from(PARTS).map(lambda p: ex.DateTruncate(p, ex.DateTruncate("day", X))),
    )
    days = constants.map(lambda v: v.date() if isinstance(v, dt.datetime) else v)
    compared = st.one_of(
        st.builds(ex.Compare, st.sampled_from(OPS), of_time, literals),
        st.builds(lambda op, a, b: ex.Compare(op, b, a), st.sampled_from(OPS), of_time, literals),
        st.builds(ex.Between, of_time, literals, literals),
        st.builds(ex.InList, st.just(X), st.lists(constants, min_size=1, max_size=3).map(tuple)),
        st.builds(
            ex.InList,
            st.just(ex.DateTruncate("month", X)),
            st.lists(days.map(lambda d: d.replace(day=1)), min_size=1, max_size=3).map(tuple),
        ),
        st.builds(
            ex.Compare,
            st.sampled_from(OPS),
            st.just(ex.DatePart("year", X)),
            st.integers(2022, 2025).map(ex.Literal),
        ),
        st.builds(
            ex.Compare,
            st.sampled_from(OPS),
            st.sampled_from([ex.DatePart("month", X), ex.DatePart("quarter", X)]),
            st.integers(0, 13).map(ex.Literal),
        ),
        st.just(ex.IsNull(X)),
        st.sampled_from([ex.Literal(True), ex.Literal(False), ex.Literal(None)]),
        st.just(ex.Compare("=", X, ex.Literal(None))),
    )
    return st.recursive(
        compared,
        lambda inner: st.one_of(
            st.builds(ex.Not, inner),
            st.builds(lambda a, b: ex.And((a, b)), inner, inner),
            st.builds(lambda a, b: ex.Or((a, b)), inner, inner),
        ),
        max_leaves=5,
    )


@settings(max_examples=60)
@given(case=cases())
def test_a_set_of_blocks_is_exactly_where_a_condition_can_be_true(case) -> None:
    """Of what is a condition on the column alone: every value tried, NULL too."""
    kind, calendar, values, predicate = case
    facts = table(kind, calendar)
    schema = Schema({"t": facts})
    true = Evaluator(scope_of(Scan("t", "t"), schema))
    found = may_be_true(predicate, X, facts)
    reached = {calendar.block_of(v) for v in [*values, None] if true(predicate, {X: v}) is True}
    assert all(block in found for block in reached)
    # Of blocks that are tried from end to end nothing is read in vain.
    whole = _tried_whole(calendar, values, kind)
    assert {block for block in whole if block in found} == reached & whole


def _tried_whole(calendar, values, kind):
    """The blocks all of whose days are tried; moments are tried at their ends alone."""
    if kind is Kind.TIMESTAMP:
        return {NULL}
    known = {day: calendar.block_of(day) for day in values}
    blocks = set(known.values()) - {known[values[0]], known[values[-1]]}
    return blocks | {NULL}


@settings(max_examples=25)
@given(case=cases(), other=st.sampled_from([0, 1]))
def test_what_is_not_understood_may_be_true_anywhere(case, other) -> None:
    """Beside a condition on another column, and below NOT, no row is lost."""
    kind, calendar, values, predicate = case
    columns = {"x": ColumnFacts("x", kind), "y": ColumnFacts("y", Kind.INTEGER)}
    facts = Table("t", columns, block=("x", calendar))
    unknown = ex.Compare("=", ex.Column("t", "y"), ex.Literal(other))
    true = Evaluator(scope_of(Scan("t", "t"), Schema({"t": facts})))
    for made in (
        ex.Or((predicate, unknown)),
        ex.Not(ex.And((predicate, unknown))),
        ex.And((ex.Not(predicate), ex.Not(unknown))),
    ):
        found = may_be_true(made, X, facts)
        for value, y in product([*values[::7], None], (0, 1, None)):
            if true(made, {X: value, ex.Column("t", "y"): y}) is True:
                assert calendar.block_of(value) in found


NUMBERS = [Fraction(n, 4) for n in range(-12, 40)]


@given(
    st.sampled_from([Kind.INTEGER, Kind.REAL]),
    st.lists(
        st.tuples(st.sampled_from(OPS), st.sampled_from(NUMBERS), st.booleans()),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_numbers_are_cut_at_edges(kind, tests, all_of) -> None:
    """Integers beside fractions, and doubles, exactly."""
    calendar = Calendar(edges=(Fraction(0), Fraction(2), Fraction(5)))
    facts = table(kind, calendar)
    values = [v for v in NUMBERS if kind is Kind.REAL or v.denominator == 1]
    parts = []
    for op, value, negated in tests:
        constant = int(value) if value.denominator == 1 else value
        test = ex.Compare(op, X, ex.Literal(constant))
        parts.append(ex.Not(test) if negated else test)
    predicate = ex.And(tuple(parts)) if all_of else ex.Or(tuple(parts))
    true = Evaluator(scope_of(Scan("t", "t"), Schema({"t": facts})))
    typed = {v: int(v) if kind is Kind.INTEGER else float(v) for v in values}
    reached = {calendar.block_of(v) for v in values if true(predicate, {X: typed[v]}) is True}
    found = may_be_true(predicate, X, facts)
    assert all(block in found for block in reached)


@pytest.mark.parametrize("values", [("a", "b", "c"), (3, 5, 9)])
def test_declared_values_are_blocks_of_their_own(values) -> None:
    """Equality and IN, and their opposites, with values that are declared and one that is not."""
    kind = Kind.TEXT if isinstance(values[0], str) else Kind.INTEGER
    calendar = Calendar(values=values)
    facts = table(kind, calendar)
    other = "z" if kind is Kind.TEXT else 7
    true = Evaluator(scope_of(Scan("t", "t"), Schema({"t": facts})))
    tests = [ex.Compare(op, X, ex.Literal(v)) for op in ("=", "<>") for v in (*values, other)]
    tests += [ex.InList(X, (values[0], other)), ex.InList(X, values), ex.IsNull(X)]
    for one, two in product(tests, tests):
        for predicate in (one, ex.Not(one), ex.And((one, ex.Not(two))), ex.Or((one, two))):
            found = may_be_true(predicate, X, facts)
            tried = [*values, other, "y" if kind is Kind.TEXT else 8, None]
            reached = {calendar.block_of(v) for v in tried if true(predicate, {X: v}) is True}
            assert all(block in found for block in reached)
            listed = set(range(len(values))) | {NULL}
            assert {block for block in listed if block in found} == reached & listed


# --- through joins and nested queries -------------------------------------------------------------

VISITS = Table(
    "visits",
    {
        "day": ColumnFacts("day", Kind.DATE),
        "u": ColumnFacts("u", Kind.INTEGER),
        "cost": ColumnFacts("cost", Kind.INTEGER, Fraction(0), Fraction(9)),
    },
    unit="u",
    max_groups=30,
    max_rows=30,
    max_join_rows=30,
    block=("day", MONTHS),
    unit_name="u",
)
LABS = replace(
    VISITS,
    name="labs",
    columns={n.replace("day", "at"): replace(f, name=n.replace("day", "at"))
             for n, f in VISITS.columns.items()},
    block=("at", MONTHS),
)  # fmt: skip
PEOPLE = replace(
    VISITS,
    name="people",
    columns={"u": VISITS.columns["u"], "born": ColumnFacts("born", Kind.DATE)},
    block=None,
    one_block=True,
)
SCHEMA = Schema({"visits": VISITS, "labs": LABS, "people": PEOPLE}, today=dt.date(2024, 6, 15))

FEBRUARY, MARCH = (
    "day >= '2024-02-01' AND day < '2024-03-01'",
    "at BETWEEN '2024-03-01' AND '2024-03-31'",
)
NESTED = {
    f"SELECT COUNT(*) FROM visits WHERE {FEBRUARY}": ["2024-02"],
    "SELECT SUM(cost) FROM visits WHERE NOT (day < '2024-05-20')": ["2024-05 to 2024-06"],
    f"SELECT COUNT(*) FROM (SELECT u, day AS d FROM visits WHERE {FEBRUARY}) t": ["2024-02"],
    "SELECT COUNT(*) FROM (SELECT u, day AS d FROM visits) t WHERE d = '2024-02-03'": ["2024-02"],
    "SELECT COUNT(*) FROM (SELECT u, DATE_TRUNC('month', day) AS m, SUM(cost) AS c FROM visits "
    "GROUP BY u, m) t WHERE m = '2024-02-01' AND c > 3": ["2024-02"],
    "SELECT COUNT(*) FROM (SELECT u, MAX(day) AS d FROM visits GROUP BY u) t "
    "WHERE d < '2024-02-01'": ["all up to 2024-06, NULL"],
    f"SELECT COUNT(*) FROM visits v JOIN labs l ON v.u = l.u WHERE {FEBRUARY} AND {MARCH}": [
        "2024-02",
        "2024-03",
    ],
    f"SELECT COUNT(*) FROM visits v LEFT JOIN labs l ON v.u = l.u WHERE {FEBRUARY} AND {MARCH}": [
        "2024-02",
        "2024-03",
    ],
    f"SELECT COUNT(*) FROM visits v LEFT JOIN labs l ON v.u = l.u WHERE {FEBRUARY} "
    f"AND (at IS NULL OR {MARCH})": ["2024-02", "all up to 2024-06, NULL"],
    f"SELECT COUNT(*) FROM visits v LEFT JOIN labs l ON v.u = l.u WHERE {FEBRUARY} "
    "AND NOT COALESCE(at > '2024-03-31', FALSE)": ["2024-02", "all up to 2024-06, NULL"],
    "SELECT COUNT(*) FROM (SELECT u, day FROM visits UNION ALL SELECT u, at AS day FROM labs) t "
    f"WHERE {FEBRUARY}": ["2024-02", "2024-02"],
    "SELECT COUNT(*) FROM (SELECT u, day FROM visits WHERE day < '2024-01-01' UNION ALL "
    f"SELECT u, at AS day FROM labs) t WHERE {FEBRUARY}": ["nothing", "2024-02"],
    "SELECT COUNT(*) FROM (SELECT u, COUNT(*) AS n FROM (SELECT u, day FROM visits "
    f"WHERE {FEBRUARY}) v GROUP BY u) t WHERE n > 1": ["2024-02"],
    f"SELECT COUNT(*) FROM visits v JOIN people p ON v.u = p.u WHERE {FEBRUARY}": ["2024-02", None],
}  # fmt: skip


def described(relation) -> list[str | None]:
    return [None if s.blocks is None else MONTHS.describe(s.blocks) for s in scans(relation)]


@pytest.mark.parametrize("sql", NESTED)
def test_conditions_come_down_to_the_tables(sql: str) -> None:
    """Each table reads the blocks that its own rows can count in."""
    plan = lower(parse_query(sql, SCHEMA), SCHEMA)
    assert described(plan.job.relation) == NESTED[sql]
    assert plan.blocks == read_blocks(plan.job.relation, SCHEMA)
    if "people" in sql:
        assert BlockSet.of_table("people") <= plan.blocks


DATES = [
    dt.date(2023, 12, 31),
    dt.date(2024, 2, 3),
    dt.date(2024, 3, 1),
    dt.date(2024, 5, 31),
    None,
]
rows_of = st.lists(
    st.fixed_dictionaries(
        {"day": st.sampled_from(DATES), "u": st.integers(0, 2), "cost": st.integers(0, 9)}
    ),
    max_size=7,
)


@pytest.mark.parametrize("sql", NESTED)
@settings(max_examples=12)
@given(visits=rows_of, labs=rows_of)
def test_the_answer_is_the_same_over_fewer_blocks(sql: str, visits, labs) -> None:
    """Where no limit cuts, rows of other blocks count for nothing, present or not."""
    tables = {
        "visits": visits,
        "labs": [{"at": r["day"], "u": r["u"], "cost": r["cost"]} for r in labs],
        "people": [{"u": u, "born": None} for u in (0, 1)],
    }
    query = parse_query(sql, SCHEMA)
    plan = lower(query, SCHEMA)
    assert answer(plan.job, SCHEMA, tables) == answer(
        replace(plan.job, relation=query.relation), SCHEMA, tables
    )


def test_listed_keys_are_a_condition() -> None:
    """Rows with other keys are left out, so that their blocks need not be read."""
    columns = {**VISITS.columns}
    columns["day"] = replace(columns["day"], lower=dt.date(2024, 1, 1), upper=dt.date(2024, 3, 31))
    schema = replace(SCHEMA, tables={"visits": replace(VISITS, columns=columns)})
    sql = "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m"
    assert described(lower(parse_query(sql, schema), schema).job.relation) == ["2024-01 to 2024-03"]
    sets = sql.replace("GROUP BY m", "GROUP BY GROUPING SETS ((m), ())")
    found = described(lower(parse_query(sets, schema), schema).job.relation)
    assert found == ["all up to 2024-06, NULL"]


def test_blocks_that_have_not_begun_are_not_read() -> None:
    """Nor is a question about them answered: it is known to read nothing."""
    with pytest.raises(QueryError, match="block that has begun"):
        lower(parse_query("SELECT COUNT(*) FROM visits WHERE day > '2024-07-01'", SCHEMA), SCHEMA)


def test_the_size_of_a_part_is_not_public() -> None:
    """Where rows are replaced, one may move to a block that is not read."""
    rows = replace(VISITS, unit=None, max_groups=1, max_rows=1, max_join_rows=None)
    schema = replace(SCHEMA, tables={"visits": rows}, replace_one=True)
    assert not lower(parse_query("SELECT COUNT(*) FROM visits", schema), schema).public_size
    whole = replace(schema, tables={"visits": replace(rows, block=None)})
    assert lower(parse_query("SELECT COUNT(*) FROM visits", whole), whole).public_size
