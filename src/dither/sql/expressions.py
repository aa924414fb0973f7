"""The value of a row: sqlglot's tree to expressions of the plan, one node at a time."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.schema import Kind, Value
from dither.sql.allow_list import Place, Rule, Rules, identifier, is_number, plain, take
from dither.sql.functions import FUNCTIONS, interval, moved
from dither.sql.names import Names

__all__ = ["at", "operands"]

LONGEST_NUMBER = 40
"""Digits of a number in a query; of the numerator and the denominator, where it is a quotient."""


def at(where: str, names: Names) -> Place:
    """A part of a query in which the expressions of this module may stand."""
    return Place(where, names, RULES)


# --- leaves -----------------------------------------------------------------------------------


def _column(node: exp.Column, place: Place) -> ex.Column:
    this, table = take(node, place.where, "this", "table")
    name, exact = identifier(this, place.where)
    if table is None:
        return place.names.column(name, exact=exact)
    alias, exact_table = identifier(table, place.where)
    return place.names.column(name, alias, exact=exact, exact_table=exact_table)


def _literal(node: exp.Literal, place: Place) -> ex.Literal:
    take(node, place.where, "this", "is_string")
    if node.is_string:
        return ex.Literal(str(node.this))
    return ex.Literal(_exact(str(node.this), place))


def _exact(text: str, place: Place) -> int | Fraction:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise QueryError(f"{place.where}: {text[:40]!r} is not a number") from None
    # Ahead of the exact check, since 1e999999999 is a short text and a long number.
    if value and not -2 * LONGEST_NUMBER <= value.adjusted() <= LONGEST_NUMBER:
        raise _too_long(place)
    return int(value) if text.isdecimal() else _short(Fraction(value), place)


def _short(value: Fraction, place: Place) -> Fraction:
    if max(abs(value.numerator), value.denominator) > 10**LONGEST_NUMBER:
        raise _too_long(place)
    return value


def _too_long(place: Place) -> QueryError:
    return QueryError(f"{place.where}: a number has more than {LONGEST_NUMBER} digits; round it")


def _boolean(node: exp.Boolean, place: Place) -> ex.Literal:
    # FALSE is stored as `this=False`, which `take` counts as not set.
    (value,) = take(node, place.where, "this")
    return ex.Literal(bool(value))


def _null(node: exp.Null, place: Place) -> ex.Literal:
    take(node, place.where)
    return ex.Literal(None)


# --- arithmetic -------------------------------------------------------------------------------


def _arithmetic(op: str) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        if op in ("+", "-") and any(
            isinstance(n, exp.Interval) for n in (node.this, node.expression)
        ):
            return _with_interval(node, place, op)
        left, right = place.sides(node)
        if op in ("+", "-") and place.names.temporal(left):
            return _of_day(op, left, right, place)
        if op == "/" and isinstance(left, ex.Literal) and isinstance(right, ex.Literal):
            # A quotient of two constants is an exact constant, so that 1/3 can be written.
            a, b = left.value, right.value
            if is_number(a) and is_number(b) and b != 0:
                return ex.Literal(_short(Fraction(a) / Fraction(b), place))
        return ex.Arithmetic(op, left, right)

    return rule


def _with_interval(node: exp.Expr, place: Place, op: str) -> ex.Expression:
    left, right = take(node, place.where, "this", "expression")
    if isinstance(left, exp.Interval) and op == "+":
        left, right = right, left
    if isinstance(left, exp.Interval) or not isinstance(right, exp.Interval):
        raise QueryError(f"{place.where}: an interval is added to a date, or taken from one")
    return moved(place.operand(left), *interval(right, place), place, back=op == "-")


def _of_day(op: str, left: ex.Expression, right: ex.Expression, place: Place) -> ex.Expression:
    """A date and a number of days, or the days between two dates."""
    whole = isinstance(right, ex.Literal) and type(right.value) is int
    days = {place.names.kind(left), place.names.kind(right)} == {Kind.DATE}
    if whole and place.names.kind(left) is Kind.DATE:
        return moved(left, int(right.value), "day", place, back=op == "-")  # type: ignore[attr-defined]
    if op == "-" and days:
        return place.make(ex.Call, "date difference", (right, left), ("day",))
    raise QueryError(
        f"{place.where}: write x + INTERVAL 3 DAY, or DATE_DIFF('day', start, end) for the time "
        "between two moments"
    )


def _negative(node: exp.Neg, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    value = place.operand(this)
    if isinstance(value, ex.Literal) and is_number(value.value):
        return ex.Literal(-value.value)
    return ex.Arithmetic("-", ex.Literal(0), value)


def _paren(node: exp.Paren, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    return place.read(this)


# --- conditions -------------------------------------------------------------------------------


def _compare(op: str) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        left, right = place.sides(node)
        if ex.Literal(None) in (left, right):
            raise QueryError(
                f"{place.where}: {op} NULL is never true; write IS NULL or IS NOT NULL"
            )
        return place.make(ex.Compare, op, left, right)

    return rule


def _between(node: exp.Between, place: Place) -> ex.Expression:
    this, low, high = take(node, place.where, "this", "low", "high")
    return place.make(ex.Between, *(place.operand(x) for x in (this, low, high)))


def _in(node: exp.In, place: Place) -> ex.Expression:
    this, listed, field = take(node, place.where, "this", "expressions", "field")
    if field is not None:
        raise UnsupportedError(f"{place.where}: IN takes a list of constants in parentheses")
    values: list[Value] = []
    for item in listed or ():
        value = place.read(item)
        if not isinstance(value, ex.Literal):
            raise UnsupportedError(f"{place.where}: IN takes a list of constants in parentheses")
        if value.value is None:
            raise QueryError(f"{place.where}: NULL in a list is never found; write IS NULL")
        values.append(value.value)
    return place.make(ex.InList, place.operand(this), tuple(values))


def _is(node: exp.Is, place: Place) -> ex.Expression:
    this, what = take(node, place.where, "this", "expression")
    operand = place.operand(this)
    if isinstance(what, exp.Null):
        take(what, place.where)
        return ex.IsNull(operand)
    if isinstance(what, exp.Boolean):
        truth = operand if place.read(what) == ex.Literal(True) else ex.Not(operand)
        return ex.Coalesce((truth, ex.Literal(False)))
    raise UnsupportedError(f"{place.where}: IS takes NULL, TRUE or FALSE")


def _not(node: exp.Not, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    return ex.Not(place.read(this))


def operands(node: exp.Expr, kind: type[exp.And] | type[exp.Or]) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs, from left to right, without recursion."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        bare = plain(top)
        if isinstance(bare, kind):
            left, right = take(bare, "the condition", "this", "expression")
            stack += [right, left]
        else:
            found.append(top)
    return found


def _and(node: exp.And, place: Place) -> ex.Expression:
    return ex.And(tuple(place.read(x) for x in operands(node, exp.And)))


def _or(node: exp.Or, place: Place) -> ex.Expression:
    return ex.Or(tuple(place.read(x) for x in operands(node, exp.Or)))


RULES: Rules = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Neg: _negative,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.IntDiv: _arithmetic("//"),
    exp.Mod: _arithmetic("%"),
    exp.EQ: _compare("="),
    exp.NEQ: _compare("<>"),
    exp.LT: _compare("<"),
    exp.LTE: _compare("<="),
    exp.GT: _compare(">"),
    exp.GTE: _compare(">="),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    **FUNCTIONS,
}
