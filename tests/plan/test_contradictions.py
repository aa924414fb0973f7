"""Conditions that no row can meet: found where every value fails, and never where one does not."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.plan import expressions as ex
from dither.plan.facts.contradictions import contradiction
from dither.plan.facts.values import Scope
from dither.plan.schema import ColumnFacts, Kind, Table

X = ex.Column("t", "x")


def scope_of(*columns):
    """A scope with one table ``t``."""
    return Scope({"t": (Table("t", {column.name: column for column in columns}), False)})


SCOPE = scope_of(ColumnFacts("x", Kind.REAL))
VALUES = [None, *(Fraction(i, 2) for i in range(-2, 12))]
OPS = ("=", "<>", "<", "<=", ">", ">=")


def truth(node, x):
    """A condition on x in three-valued logic."""
    match node:
        case ex.Literal(value=value):
            return value
        case ex.Column():
            return x
        case ex.Compare(op=op, left=left, right=right):
            a, b = truth(left, x), truth(right, x)
            if a is None or b is None:
                return None
            return {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[
                op
            ]
        case ex.Between(operand=operand, low=low, high=high):
            between = ex.And((ex.Compare(">=", operand, low), ex.Compare("<=", operand, high)))
            return truth(between, x)
        case ex.InList(values=values):
            return None if x is None else x in values
        case ex.IsNull(operand=operand):
            return truth(operand, x) is None
        case ex.Not(operand=operand):
            found = truth(operand, x)
            return None if found is None else not found
        case ex.And(operands=xs):
            each = [truth(one, x) for one in xs]
            return False if False in each else None if None in each else True
        case ex.Or(operands=xs):
            each = [truth(one, x) for one in xs]
            return True if True in each else None if None in each else False
    raise TypeError(node)


numbers = st.integers(0, 4).map(ex.Literal)
comparisons = st.one_of(
    st.builds(ex.Compare, st.sampled_from(OPS), st.just(X), numbers),
    st.builds(ex.Compare, st.sampled_from(OPS), numbers, st.just(X)),
    st.builds(ex.Between, st.just(X), numbers, numbers),
    st.lists(st.integers(0, 4), min_size=1, max_size=3).map(lambda v: ex.InList(X, tuple(v))),
    st.just(ex.IsNull(X)),
)
plain = st.lists(comparisons, min_size=1, max_size=4)
nested = st.recursive(
    st.one_of(comparisons, st.builds(ex.Compare, st.sampled_from(OPS), numbers, numbers)),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda v: ex.And(tuple(v))),
        st.lists(inner, min_size=1, max_size=3).map(lambda v: ex.Or(tuple(v))),
        inner.map(ex.Not),
    ),
    max_leaves=8,
)


@given(plain)
def test_plain_conditions_are_found_exactly_where_no_value_meets_them(parts):
    """Half-numbers lie between all constants, so that one of them meets what anything meets."""
    met = any(all(truth(part, x) is True for part in parts) for x in VALUES)
    assert (contradiction(parts, SCOPE) == ()) is met


@given(nested)
def test_nothing_is_called_impossible_that_some_value_meets(condition):
    """However conditions stand inside one another."""
    if contradiction([condition], SCOPE):
        assert not any(truth(condition, x) is True for x in VALUES)


def test_constants_with_one_double_are_not_told_apart():
    """An engine that compares doubles finds 2^53 and 2^53 + 1 equal."""
    both = [
        ex.Compare(">=", X, ex.Literal(2**53 + 1)),
        ex.Compare("<=", X, ex.Literal(2**53)),
    ]
    assert contradiction(both, SCOPE) == ()
    tenth = Fraction(1, 10)
    close = [
        ex.Compare("=", X, ex.Literal(tenth)),
        ex.Compare("=", X, ex.Literal(tenth + Fraction(1, 10**30))),
    ]
    assert contradiction(close, SCOPE) == ()


@pytest.mark.parametrize("first", [ex.Literal("5"), ex.Literal(True)])
def test_kinds_that_differ_are_left_to_others(first):
    """What cannot be compared is refused elsewhere, by name."""
    assert contradiction([ex.Compare("=", first, ex.Literal(5))], SCOPE) == ()


def test_declared_values_are_believed_and_bounds_are_not():
    """What is not listed is read as NULL; a value beyond its bounds is seen as it is."""
    listed = ColumnFacts("x", Kind.INTEGER, values=(1, 2, 3))
    bounded = ColumnFacts("y", Kind.INTEGER, lower=Fraction(0), upper=Fraction(10))
    scope = scope_of(listed, bounded)
    assert contradiction([ex.Compare(">", X, ex.Literal(3))], scope) != ()
    assert contradiction([ex.Compare(">", X, ex.Literal(2))], scope) == ()
    assert contradiction([ex.Compare(">", ex.Column("t", "y"), ex.Literal(50))], scope) == ()
