"""The value of a row: sqlglot's tree to expressions of the plan, one node at a time."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.schema import Value
from dither.sql.allow_list import (
    FUNCTION_NAMES,
    Place,
    Rule,
    Rules,
    identifier,
    is_number,
    plain,
    refuse,
    take,
    word,
)
from dither.sql.dates import date_part, read_date, read_timestamp, truncation
from dither.sql.names import Names

__all__ = [
    "FUNCTIONS",
    "at",
    "operands",
]

# --- choices ----------------------------------------------------------------------------------


def _case(node: exp.Case, place: Place) -> ex.Expression:
    subject, arms, default = take(node, place.where, "this", "ifs", "default")
    whole = place.operand(subject) if subject is not None else None
    branches: list[tuple[ex.Expression, ex.Expression]] = []
    for arm in arms or ():
        condition, value = (place.read(x) for x in take(arm, place.where, "this", "true"))
        if whole is not None:
            if condition == ex.Literal(None):
                raise QueryError(
                    f"{place.where}: CASE x WHEN NULL is never true; write CASE WHEN x IS NULL"
                )
            condition = place.make(ex.Compare, "=", whole, condition)
        branches.append((condition, value))
    otherwise = place.read(default) if default is not None else ex.Literal(None)
    return place.make(ex.Case, tuple(branches), otherwise)


def _if(node: exp.If, place: Place) -> ex.Expression:
    this, true, false = take(node, place.where, "this", "true", "false")
    otherwise = place.read(false) if false is not None else ex.Literal(None)
    return ex.Case(((place.read(this), place.read(true)),), otherwise)


def _nullif(node: exp.Nullif, place: Place) -> ex.Expression:
    left, right = place.sides(node)
    return ex.Case(((place.make(ex.Compare, "=", left, right), ex.Literal(None)),), left)


def _variadic(make: Callable[[tuple[ex.Expression, ...]], ex.Expression], *ignored: str) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        this, rest = take(node, place.where, "this", "expressions", ignored=ignored)
        return make(tuple(place.read(x) for x in (this, *(rest or ()))))

    return rule


def _unary(
    make: Callable[[ex.Expression], ex.Expression],
) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        (this,) = take(node, place.where, "this")
        if this is None:
            raise QueryError(f"{place.where}: a function has no argument")
        return make(place.read(this))

    return rule


# --- dates and text ---------------------------------------------------------------------------


def _extract(node: exp.Extract, place: Place) -> ex.Expression:
    part, operand = take(node, place.where, "this", "expression")
    return ex.DatePart(date_part(word(part, place.where)), place.read(operand))


def _truncate(node: exp.Expr, place: Place) -> ex.Expression:
    unit, operand = take(node, place.where, "unit", "this")
    return ex.DateTruncate(truncation(word(unit, place.where)), place.read(operand))


def _cast(node: exp.Cast, place: Place) -> ex.Expression:
    this, to = take(node, place.where, "this", "to")
    name = to.this.name if isinstance(to, exp.DataType) else ""
    if isinstance(this, exp.Literal) and this.is_string:
        take(to, place.where, "this")
        text = word(this, place.where)
        if name == "DATE":
            return ex.Literal(read_date(text))
        if name in ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"):
            return ex.Literal(read_timestamp(text))
        if name in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
            return ex.Literal(read_timestamp(text, offset=True))
    if name.endswith("INT"):
        hint = "write FLOOR(x)"
    elif name == "DATE":
        hint = "write DATE_TRUNC('day', x), or declare the column as a date in the policy"
    else:
        hint = "declare the column's kind in the policy"
    return refuse(node, place.where, hint)


def _substring(node: exp.Substring, place: Place) -> ex.Expression:
    this, start, length = take(node, place.where, "this", "start", "length")
    if start is None or length is None:
        raise QueryError(f"{place.where}: SUBSTRING needs a start and a length")
    return _slice(this, start, length, place)


def _left(node: exp.Left, place: Place) -> ex.Expression:
    this, length = take(node, place.where, "this", "expression")
    return _slice(this, exp.Literal.number(1), length, place)


def _slice(this: exp.Expr, start: exp.Expr, length: exp.Expr, place: Place) -> ex.Expression:
    first = place.number(start, "the start of SUBSTRING")
    size = place.number(length, "the length of SUBSTRING")
    if not isinstance(first, int) or not isinstance(size, int):
        first, size = 0, 0  # refused like any other place where no character is
    return place.make(ex.Substring, place.read(this), first, size)


# --- functions that sqlglot does not know -----------------------------------------------------


def _named(node: exp.Anonymous, place: Place) -> ex.Expression:
    name, arguments = node.name.upper(), list(node.expressions)
    take(node, place.where, "this", "expressions")
    if name == "CLAMP":
        if len(arguments) != 3:
            _usage("CLAMP(x, lower, upper)", place)
        lower, upper = (Fraction(place.number(x, "a bound of CLAMP")) for x in arguments[1:])
        return place.make(ex.Clamp, place.read(arguments[0]), lower, upper)
    if name == "BIN":
        if len(arguments) < 3:
            _usage("BIN(x, edge, edge, ...)", place)
        edges = tuple(Fraction(place.number(x, "an edge of BIN")) for x in arguments[1:])
        return place.make(ex.Bin, place.read(arguments[0]), edges)
    if name in ("DATE_PART", "DATEPART"):
        if len(arguments) != 2:
            _usage("DATE_PART('year', x)", place)
        return ex.DatePart(date_part(word(arguments[0], place.where)), place.read(arguments[1]))
    if name == "WEEKDAY" and len(arguments) == 1:
        return ex.DatePart("dayofweek", place.read(arguments[0]))
    return refuse(node, place.where)


def _usage(form: str, place: Place) -> NoReturn:
    raise QueryError(f"{place.where}: write {form}")


def _part(part: str) -> Rule:
    return _unary(lambda operand: ex.DatePart(part, operand))


FUNCTIONS: Rules = {
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Coalesce: _variadic(ex.Coalesce, "is_nvl", "is_null"),
    exp.Least: _variadic(ex.Least, "ignore_nulls"),
    exp.Greatest: _variadic(ex.Greatest, "ignore_nulls"),
    exp.Abs: _unary(ex.Absolute),
    exp.Floor: _unary(ex.Floor),
    exp.Ceil: _unary(ex.Ceil),
    exp.Lower: _unary(ex.Lower),
    exp.Upper: _unary(ex.Upper),
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Extract: _extract,
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfWeek: _part("dayofweek"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
    exp.Cast: _cast,
    exp.Anonymous: _named,
}
"""The allow-list of functions."""

FUNCTION_NAMES.update(
    ("ABS", "BIN", "CEIL", "CLAMP", "COALESCE", "DATE_PART", "DATE_TRUNC", "DAY", "DAYOFWEEK"),
    ("EXTRACT", "FLOOR", "GREATEST", "HOUR", "IF", "LEAST", "LEFT", "LOWER", "MINUTE", "MONTH"),
    ("NULLIF", "QUARTER", "SUBSTRING", "UPPER", "YEAR"),
)


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
        left, right = place.sides(node)
        if op == "/" and isinstance(left, ex.Literal) and isinstance(right, ex.Literal):
            # A quotient of two constants is an exact constant, so that 1/3 can be written.
            a, b = left.value, right.value
            if is_number(a) and is_number(b) and b != 0:
                return ex.Literal(_short(Fraction(a) / Fraction(b), place))
        return ex.Arithmetic(op, left, right)

    return rule


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
