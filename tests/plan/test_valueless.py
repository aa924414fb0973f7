"""What is NULL in every row is seen, and how many values there can be, whatever rows hold."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.valueless import most_values, valueless
from dither.plan.facts.values import infer
from plan.test_facts_hold import SCOPE, column, conditions, dates, numbers, possible, texts

ZERO, NULL = ex.Literal(0), ex.Literal(None)
BY_ZERO = ex.Arithmetic("/", column("x"), ZERO)
LATE = ex.Compare(">", BY_ZERO, ex.Literal(1))


def call(name: str, *operands: ex.Expression) -> ex.Expression:
    return ex.Call(name, operands)


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.one_of(numbers(2), numbers(3), conditions(2), dates(), texts()))
def test_both_hold_for_every_row(node):
    """Nothing that has a value somewhere passes for NULL, nor is there one value more."""
    try:
        infer(node, SCOPE)
    except QueryError:
        reject()
    found = possible(node)
    if valueless(node, SCOPE) is not None:
        assert set(found) == {None}
    most = most_values(node, SCOPE)
    assert most is None or len(set(found) - {None}) <= most


@pytest.mark.parametrize(
    ("node", "part"),
    [
        (BY_ZERO, BY_ZERO),
        (ex.Arithmetic("%", column("i"), ZERO), ex.Arithmetic("%", column("i"), ZERO)),
        (ex.Arithmetic("+", column("i"), BY_ZERO), BY_ZERO),
        (ex.Arithmetic("/", column("x"), ex.Arithmetic("-", ex.Literal(2), ex.Literal(2))), ...),
        (call("ln", ZERO), ...),
        (call("sqrt", ex.Arithmetic("-", ZERO, ex.Literal(1))), ...),
        (ex.Clamp(BY_ZERO, F(0), F(1)), BY_ZERO),
        (ex.Case(((LATE, column("i")),), NULL), BY_ZERO),
        (ex.Case(((column("b"), BY_ZERO),), NULL), BY_ZERO),
        (ex.Not(LATE), BY_ZERO),
        (ex.And((LATE, LATE)), BY_ZERO),
        (ex.Coalesce((NULL, BY_ZERO)), BY_ZERO),
        (ex.Least((BY_ZERO,)), BY_ZERO),
        (ex.InList(BY_ZERO, (1,)), BY_ZERO),
        (ex.Coalesce((BY_ZERO, ZERO)), None),
        (ex.IsNull(BY_ZERO), None),
        (ex.Or((LATE, column("b"))), None),
        (ex.Case(((LATE, ZERO),), column("i")), None),
        (ex.Arithmetic("/", column("x"), column("i")), None),
        (call("ln", column("x")), None),
    ],
)
def test_the_part_that_makes_all_of_it_null_is_named(node, part):
    """... and what rows decide is left to them."""
    found = valueless(node, SCOPE)
    if part is ...:
        assert found == node
    else:
        assert found == part


@pytest.mark.parametrize(
    ("node", "most"),
    [
        (column("t"), 2),
        (ex.Upper(column("t")), 2),
        (column("b"), 2),
        (ex.Compare(">", column("x"), ZERO), 2),
        (ex.IsNull(ex.Literal(1)), 2),
        (column("i"), None),
        (ex.Clamp(column("i"), F(0), F(4)), 5),
        (ex.Clamp(column("x"), F(0), F(4)), None),
        (ex.Clamp(column("v"), F(0), F(4)), 2),
        (ex.Bin(column("x"), (F(0), F(1), F(2))), 2),
        (ex.DatePart("month", column("d")), 12),
        (ex.DatePart("year", column("d")), None),
        (ex.Arithmetic("*", column("v"), ex.Literal(3)), 2),
        (ex.Arithmetic("*", column("v"), column("i")), None),
        (ex.Coalesce((column("v"), ZERO)), 3),
        (ex.Case(((column("b"), column("v")),), NULL), 2),
    ],
)
def test_bounds_that_are_declared_count_no_values(node, most):
    """A list does, since any other value is read as NULL."""
    assert most_values(node, SCOPE) == most
