"""Every value that an expression can really have lies within the facts inferred for it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction as F
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.expressions import PARTS, TRUNCATIONS
from dither.plan.facts.values import Facts, Scope, infer, listed_values
from dither.plan.schema import ColumnFacts, Kind, Table, kind_of_value
from plan import calls
from plan.plan_interpreter import value_of

DAYS = (dt.date(2023, 12, 30), dt.date(2024, 1, 1), dt.date(2024, 2, 29), dt.date(2024, 4, 1))
ALL_DAYS = [dt.date(2023, 12, 30) + dt.timedelta(days=i) for i in range(94)]

COLUMNS = {
    "i": ColumnFacts("i", Kind.INTEGER, F(-2), F(3)),
    "j": ColumnFacts("j", Kind.INTEGER, F(1), F(4), nullable=False),
    "v": ColumnFacts("v", Kind.INTEGER, values=(2, 5), nullable=False),
    "x": ColumnFacts("x", Kind.REAL, F(-1), F(3, 2), step=F(1, 2)),
    "y": ColumnFacts("y", Kind.REAL, F(1, 3), F(1), step=F(1, 3), nullable=False),
    "t": ColumnFacts("t", Kind.TEXT, values=("North", "south")),
    "b": ColumnFacts("b", Kind.BOOLEAN, nullable=False),
    "d": ColumnFacts("d", Kind.DATE, ALL_DAYS[0], ALL_DAYS[-1]),
}
VALUES: dict[str, list[Any]] = {
    "i": [*range(-2, 4), None],
    "j": [1, 2, 3, 4],
    "v": [2, 5],
    "x": [F(n, 2) for n in range(-2, 4)] + [None],
    "y": [F(1, 3), F(2, 3), F(1)],
    "t": ["North", "south", None],
    "b": [True, False],
    "d": [*ALL_DAYS, None],
}
DAYS_OF = [part for part in TRUNCATIONS if part not in ex.TIMES]
SCOPE = Scope({"T": (Table("T", COLUMNS), False)})


def column(name: str) -> ex.Column:
    return ex.Column("T", name)


def numbers(depth: int) -> st.SearchStrategy[ex.Expression]:
    leaf = st.one_of(
        st.sampled_from([column(n) for n in "ijvxy"]),
        st.integers(-3, 3).map(ex.Literal),
        st.sampled_from([F(1, 2), F(-3, 4), F(0), F(2)]).map(ex.Literal),
    )
    if depth == 0:
        return leaf
    below = numbers(depth - 1)
    pairs = st.lists(below, min_size=1, max_size=3).map(tuple)
    ends = st.lists(st.integers(-2, 3), min_size=2, max_size=2).map(sorted)
    return st.one_of(
        leaf,
        st.builds(ex.Arithmetic, st.sampled_from(["+", "-", "*", "/", "//", "%"]), below, below),
        below.map(lambda e: ex.Arithmetic("*", e, e)),
        st.builds(ex.Absolute, below),
        st.builds(ex.Floor, below),
        st.builds(ex.Ceil, below),
        st.builds(ex.Least, pairs),
        st.builds(ex.Greatest, pairs),
        st.builds(ex.Coalesce, pairs),
        st.builds(lambda e, q: ex.Clamp(e, F(q[0]), F(q[1])), below, ends),
        st.builds(
            lambda c, a, o: ex.Case(((c, a),), o),
            conditions(depth - 1),
            below,
            st.one_of(below, st.just(ex.Literal(None))),
        ),
        below.map(lambda e: ex.Bin(e, (F(-1), F(1, 2), F(2)))),
        st.builds(
            ex.DatePart,
            st.sampled_from([p for p in PARTS if p not in ex.TIMES]),
            dates(),
        ),
        calls.calls(calls.NUMBERS, calls.operands(below, texts(), dates())),
        calls.casts(Kind.INTEGER, calls.operands(below, texts(), dates())),
        calls.casts(Kind.REAL, calls.operands(below, texts(), dates())),
    )


def dates() -> st.SearchStrategy[ex.Expression]:
    day = st.just(column("d"))
    return st.one_of(
        day,
        st.builds(ex.DateTruncate, st.sampled_from(DAYS_OF), day),
        calls.calls(calls.DAYS, calls.operands(st.just(column("i")), st.just(column("t")), day)),
        st.sampled_from(DAYS).map(lambda v: ex.Coalesce((column("d"), ex.Literal(v)))),
    )


def _leaves() -> calls.Operands:
    text = st.sampled_from([column("t"), ex.Literal("-"), ex.Literal(" 7 ")])
    return calls.operands(st.sampled_from([column("i"), column("x")]), text, st.just(column("d")))


def texts() -> st.SearchStrategy[ex.Expression]:
    return st.one_of(
        st.just(column("t")),
        st.just(ex.Lower(column("t"))),
        st.just(ex.Coalesce((column("t"), ex.Literal("none")))),
        calls.calls(calls.TEXTS, _leaves()),
        calls.casts(Kind.TEXT, _leaves()),
        st.builds(
            ex.Substring, st.just(ex.Upper(column("t"))), st.integers(1, 4), st.integers(0, 3)
        ),
    )


def conditions(depth: int) -> st.SearchStrategy[ex.Expression]:
    below = numbers(0)
    leaf = st.one_of(
        st.just(column("b")),
        st.builds(ex.Compare, st.sampled_from(["<", "<=", ">", ">=", "="]), below, below),
        st.builds(ex.Between, below, below, below),
        st.builds(ex.IsNull, below),
        st.builds(ex.InList, st.just(column("t")), st.just(("North",))),
        calls.calls(calls.TRUTHS, _leaves()),
    )
    if depth == 0:
        return leaf
    parts = st.lists(conditions(depth - 1), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        leaf, st.builds(ex.And, parts), st.builds(ex.Or, parts), parts.map(lambda p: ex.Not(p[0]))
    )


def possible(node: ex.Expression, most: int = 400) -> list[Any]:
    """The values of the expression in every row, or in as many of them as is quick."""
    names = [c.name for c in ex.columns(node)]
    rows = list(product(*(VALUES[n] for n in names)))
    rows = rows[:: max(1, len(rows) // most)] + rows[-1:]
    return [value_of(node, dict(zip(names, row, strict=True))) for row in rows]


def hold(facts: Facts, value: Any) -> None:
    if value is None:
        assert facts.nullable
        return
    kind = kind_of_value(value)
    assert kind is facts.kind or (kind is Kind.INTEGER and facts.kind is Kind.REAL)
    if facts.lower is not None and facts.upper is not None:
        ordered: Any = (facts.lower, value, facts.upper)
        if kind is Kind.REAL:  # What a function gives is known as its double prints.
            ordered = [float(number) for number in ordered]
        assert ordered[0] <= ordered[1] <= ordered[2]
    if facts.domain is not None:
        assert value in facts.domain
    if facts.step is not None:
        assert value == 0 or (facts.step and (F(value) / facts.step).denominator == 1)
    listed = listed_values(facts)
    assert listed is None or value in listed


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@example(ex.Call("cast", (column("y"),), ("real",)))
@given(st.one_of(numbers(2), numbers(3), conditions(2), dates(), texts()))
def test_no_value_escapes_the_facts(node):
    """Bounds, list, lattice, kind and NULL hold for every row of small public domains."""
    try:
        facts = infer(node, SCOPE)
    except QueryError:
        reject()
    for value in possible(node):
        hold(facts, value)


@pytest.mark.parametrize(
    ("node", "lower", "upper"),
    [
        (ex.Arithmetic("-", column("i"), column("j")), -6, 2),
        (ex.Arithmetic("*", column("i"), column("i")), 0, 9),
        (ex.Arithmetic("*", column("i"), column("j")), -8, 12),
        (ex.Arithmetic("/", column("j"), column("i")), -4, 4),
        (ex.Arithmetic("//", column("j"), column("i")), -4, 4),
        (ex.Arithmetic("%", column("i"), column("j")), -2, 3),
        (ex.Absolute(column("i")), 0, 3),
        (ex.Floor(column("x")), -1, 1),
        (ex.Ceil(column("x")), -1, 2),
        (ex.Least((column("i"), column("j"))), -2, 4),
        (ex.Greatest((column("i"), column("v"))), 2, 5),
        (ex.Clamp(column("i"), F(0), F(9)), 0, 3),
        (ex.Coalesce((column("i"), ex.Literal(7))), -2, 7),
        (ex.DatePart("year", column("d")), 2023, 2024),
    ],
)
def test_bounds_are_tight(node, lower, upper):
    """Bounds are met: wider ones would cost noise."""
    facts = infer(node, SCOPE)
    assert facts.range == (lower, upper)
    values = [v for v in possible(node, most=10_000) if v is not None]
    assert (min(values), max(values)) == (lower, upper)


@pytest.mark.parametrize(
    ("node", "step"),
    [
        (ex.Arithmetic("+", column("x"), column("y")), F(1, 6)),
        (ex.Arithmetic("+", column("x"), ex.Literal(F(0))), F(1, 2)),
        (ex.Arithmetic("*", column("x"), column("y")), F(1, 6)),
        (ex.Arithmetic("/", column("x"), ex.Literal(-3)), F(1, 6)),
        (ex.Arithmetic("/", column("x"), column("j")), None),
        (ex.Clamp(column("x"), F(1, 3), F(5)), F(1, 6)),
        (ex.Clamp(column("x"), F(-9, 7), F(9, 7)), F(1, 14)),
        (ex.Clamp(column("x"), F(-9), F(9)), F(1, 2)),
        (ex.Absolute(column("y")), F(1, 3)),
        (ex.Floor(column("y")), F(1)),
    ],
)
def test_lattices_follow_the_arithmetic(node, step):
    """The coarsest lattice that holds every value, bounds of a CLAMP included."""
    assert infer(node, SCOPE).step == step


def test_a_left_join_pads_with_null():
    """Columns of a table that a left join pads can be NULL, whatever the policy says."""
    padded = Scope({"T": (Table("T", COLUMNS), True)})
    assert infer(column("j"), padded).nullable
    assert not infer(column("j"), SCOPE).nullable


@pytest.mark.parametrize("part", DAYS_OF)
def test_truncation_lists_every_period_to_the_end_of_time(part):
    """The list of periods is complete, also where bounds end at the last day that there is."""
    facts = ColumnFacts("d", Kind.DATE, dt.date(9990, 5, 5), dt.date.max)
    scope = Scope({"T": (Table("T", {"d": facts}), False)})
    found = infer(ex.DateTruncate(part, column("d")), scope)
    days = [dt.date(9990, 5, 5) + dt.timedelta(days=i) for i in range(0, 3527, 3)]
    starts = {value_of(ex.DateTruncate(part, column("d")), {"d": day}) for day in days}
    assert found.domain is not None
    assert starts <= set(found.domain)
    assert found.lower == min(found.domain) <= max(found.domain) == found.upper
