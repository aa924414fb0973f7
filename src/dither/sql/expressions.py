"""The value of a row: sqlglot's tree to expressions of the plan, one node at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn, TypeGuard

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.kinds import Value
from dither.sql.dates import date_part, read_date, read_dates, read_timestamp, truncation
from dither.sql.names import Names
from dither.sql.refusal import refuse, take

__all__ = ["Place", "expression", "number", "operands", "plain"]

LONGEST_NUMBER = 60
"""Digits before, and after, the decimal point of a number in a query."""


@dataclass(frozen=True, slots=True)
class Place:
    """Which part of the query is being read, for messages, and the names in scope there."""

    where: str
    names: Names


def expression(node: exp.Expr, place: Place) -> ex.Expression:
    """Read a whole expression, and text beside dates as dates.

    Raises
    ------
    QueryError
        Naming the part that cannot be asked.
    """
    return read_dates(read(node, place), place.names)


def read(node: exp.Expr, place: Place) -> ex.Expression:
    """Read one node and what is below it."""
    rule = _RULES.get(type(node))
    if rule is None:
        refuse(node, place.where)
    return rule(node, place)


def plain(node: exp.Expr) -> exp.Expr:
    """A node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# --- leaves -----------------------------------------------------------------------------------


def _column(node: exp.Column, place: Place) -> ex.Column:
    this, table = take(node, place.where, "this", "table")
    if isinstance(this, exp.Star):
        refuse(this, place.where)
    if not isinstance(this, exp.Identifier):
        refuse(node, place.where)
    if table is not None and not isinstance(table, exp.Identifier):
        refuse(node, place.where)
    return place.names.column(
        this.name,
        table.name if table is not None else None,
        exact=bool(this.args.get("quoted")),
        exact_table=bool(table is not None and table.args.get("quoted")),
    )


def _literal(node: exp.Literal, place: Place) -> ex.Literal:
    take(node, place.where, "this", "is_string")
    if node.is_string:
        return ex.Literal(str(node.this))
    return ex.Literal(_exact(str(node.this), place))


def _exact(text: str, place: Place) -> int | Fraction:
    try:
        value = Decimal(text)
        whole = text.isdecimal()
    except InvalidOperation:
        raise QueryError(f"{place.where}: {text[:40]!r} is not a number") from None
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) + max(exponent, 0) > LONGEST_NUMBER or exponent < -LONGEST_NUMBER:
        raise QueryError(f"{place.where}: a number has more than {LONGEST_NUMBER} digits; round it")
    return int(value) if whole else Fraction(value)


def _boolean(node: exp.Boolean, place: Place) -> ex.Literal:
    # FALSE is stored as `this=False`, which `take` counts as not set.
    (value,) = take(node, place.where, "this")
    return ex.Literal(bool(value))


def _null(node: exp.Null, place: Place) -> ex.Literal:
    take(node, place.where)
    return ex.Literal(None)


def number(node: exp.Expr, place: Place, what: str) -> int | Fraction:
    """A constant number, or a refusal that says ``what`` must be one."""
    value = read(node, place)
    if isinstance(value, ex.Literal) and _is_number(value.value):
        return value.value
    raise QueryError(f"{place.where}: {what} must be a constant number")


def _is_number(value: Value | None) -> TypeGuard[int | Fraction]:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


# --- arithmetic -------------------------------------------------------------------------------


def _arithmetic(op: str) -> Callable[[exp.Binary, Place], ex.Expression]:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        left, right = _sides(node, place)
        if op == "/" and isinstance(left, ex.Literal) and isinstance(right, ex.Literal):
            # A quotient of two constants is an exact constant, so that 1/3 can be written.
            a, b = left.value, right.value
            if _is_number(a) and _is_number(b) and b != 0:
                return ex.Literal(Fraction(a) / Fraction(b))
        return ex.Arithmetic(op, left, right)

    return rule


def _negative(node: exp.Neg, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    value = read(_operand(this, place), place)
    if isinstance(value, ex.Literal) and _is_number(value.value):
        return ex.Literal(-value.value)
    return ex.Arithmetic("-", ex.Literal(0), value)


def _paren(node: exp.Paren, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    return read(this, place)


_PREDICATES = (exp.Predicate, exp.In, exp.Between, exp.Is, exp.Not, exp.And, exp.Or)


def _operand(node: exp.Expr, place: Place) -> exp.Expr:
    # Databases disagree on how conditions bind without parentheses (a = b IS NULL, a < b < c).
    if isinstance(node, _PREDICATES):
        raise QueryError(
            f"{place.where}: a condition stands where a value is expected; put parentheses around "
            "it, or write a < b AND b < c for a < b < c"
        )
    return node


def _sides(node: exp.Expr, place: Place) -> tuple[ex.Expression, ex.Expression]:
    left, right = take(node, place.where, "this", "expression")
    return read(_operand(left, place), place), read(_operand(right, place), place)


# --- conditions -------------------------------------------------------------------------------


def _compare(op: str) -> Callable[[exp.Binary, Place], ex.Expression]:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        left, right = _sides(node, place)
        if ex.Literal(None) in (left, right):
            raise QueryError(
                f"{place.where}: {op} NULL is never true; write IS NULL or IS NOT NULL"
            )
        return ex.Compare(op, left, right)

    return rule


def _between(node: exp.Between, place: Place) -> ex.Expression:
    this, low, high = take(node, place.where, "this", "low", "high")
    return ex.Between(*(read(_operand(x, place), place) for x in (this, low, high)))


def _in(node: exp.In, place: Place) -> ex.Expression:
    this, listed, field = take(node, place.where, "this", "expressions", "field")
    if field is not None:
        raise UnsupportedError(f"{place.where}: IN takes a list of constants in parentheses")
    values: list[Value] = []
    for item in listed or ():
        value = read(item, place)
        if not isinstance(value, ex.Literal):
            raise UnsupportedError(f"{place.where}: IN takes a list of constants in parentheses")
        if value.value is None:
            raise QueryError(f"{place.where}: NULL in a list is never found; write IS NULL")
        values.append(value.value)
    if not values:
        raise QueryError(f"{place.where}: IN needs at least one value")
    return ex.InList(read(_operand(this, place), place), tuple(values))


def _is(node: exp.Is, place: Place) -> ex.Expression:
    this, what = take(node, place.where, "this", "expression")
    operand = read(_operand(this, place), place)
    if isinstance(what, exp.Null):
        return ex.IsNull(operand)
    if isinstance(what, exp.Boolean):
        truth = operand if what.this else ex.Not(operand)
        return ex.Coalesce((truth, ex.Literal(False)))
    raise UnsupportedError(f"{place.where}: IS takes NULL, TRUE or FALSE")


def _not(node: exp.Not, place: Place) -> ex.Expression:
    (this,) = take(node, place.where, "this")
    return ex.Not(read(this, place))


def operands(node: exp.Expr, kind: type[exp.And] | type[exp.Or]) -> list[exp.Expr]:
    """The parts of a chain of ANDs, or of ORs, from left to right, without recursion."""
    found: list[exp.Expr] = []
    stack = [node]
    while stack:
        top = stack.pop()
        bare = plain(top)
        if isinstance(bare, kind):
            stack += [bare.expression, bare.this]
        else:
            found.append(top)
    return found


def _and(node: exp.And, place: Place) -> ex.Expression:
    take(node, place.where, "this", "expression")
    return ex.And(tuple(read(x, place) for x in operands(node, exp.And)))


def _or(node: exp.Or, place: Place) -> ex.Expression:
    take(node, place.where, "this", "expression")
    return ex.Or(tuple(read(x, place) for x in operands(node, exp.Or)))


# --- choices ----------------------------------------------------------------------------------


def _case(node: exp.Case, place: Place) -> ex.Expression:
    subject, arms, default = take(node, place.where, "this", "ifs", "default")
    whole = read(_operand(subject, place), place) if subject is not None else None
    branches: list[tuple[ex.Expression, ex.Expression]] = []
    for arm in arms or ():
        condition, value = (read(x, place) for x in take(arm, place.where, "this", "true"))
        if whole is not None:
            if condition == ex.Literal(None):
                raise QueryError(
                    f"{place.where}: CASE x WHEN NULL is never true; write CASE WHEN x IS NULL"
                )
            condition = ex.Compare("=", whole, condition)
        branches.append((condition, value))
    if not branches:
        raise QueryError(f"{place.where}: CASE needs at least one WHEN")
    otherwise = read(default, place) if default is not None else ex.Literal(None)
    return ex.Case(tuple(branches), otherwise)


def _if(node: exp.If, place: Place) -> ex.Expression:
    this, true, false = take(node, place.where, "this", "true", "false")
    otherwise = read(false, place) if false is not None else ex.Literal(None)
    return ex.Case(((read(this, place), read(true, place)),), otherwise)


def _nullif(node: exp.Nullif, place: Place) -> ex.Expression:
    left, right = _sides(node, place)
    return ex.Case(((ex.Compare("=", left, right), ex.Literal(None)),), left)


def _variadic(
    make: Callable[[tuple[ex.Expression, ...]], ex.Expression], *ignored: str
) -> Callable[[exp.Expr, Place], ex.Expression]:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        this, rest = take(node, place.where, "this", "expressions", ignored=ignored)
        return make(tuple(read(x, place) for x in (this, *(rest or ()))))

    return rule


def _unary(
    make: Callable[[ex.Expression], ex.Expression],
) -> Callable[[exp.Expr, Place], ex.Expression]:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        (this,) = take(node, place.where, "this")
        if this is None:
            raise QueryError(f"{place.where}: a function has no argument")
        return make(read(this, place))

    return rule


# --- dates and text ---------------------------------------------------------------------------


def _extract(node: exp.Extract, place: Place) -> ex.Expression:
    part, operand = take(node, place.where, "this", "expression")
    return ex.DatePart(date_part(part.name), read(operand, place))


def _truncate(node: exp.Expr, place: Place) -> ex.Expression:
    unit, operand = take(node, place.where, "unit", "this")
    return ex.DateTruncate(truncation(unit.name), read(operand, place))


def _cast(node: exp.Cast, place: Place) -> ex.Expression:
    this, to = take(node, place.where, "this", "to")
    name = to.this.name if isinstance(to, exp.DataType) and not to.expressions else ""
    if isinstance(this, exp.Literal) and this.is_string:
        text = str(this.this)
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
    first = number(start, place, "the start of SUBSTRING")
    size = number(length, place, "the length of SUBSTRING")
    if not isinstance(first, int) or not isinstance(size, int) or first < 1 or size < 0:
        raise QueryError(
            f"{place.where}: SUBSTRING starts at 1 or later and has a whole length of 0 or more"
        )
    return ex.Substring(read(this, place), first, size)


# --- functions that sqlglot does not know -----------------------------------------------------


def _named(node: exp.Anonymous, place: Place) -> ex.Expression:
    name, arguments = node.name.upper(), list(node.expressions)
    take(node, place.where, "this", "expressions")
    if name == "CLAMP":
        if len(arguments) != 3:
            _usage("CLAMP(x, lower, upper)", place)
        lower, upper = (Fraction(number(x, place, "a bound of CLAMP")) for x in arguments[1:])
        if lower > upper:
            raise QueryError(f"{place.where}: CLAMP has its lower bound above the upper one")
        return ex.Clamp(read(arguments[0], place), lower, upper)
    if name == "BIN":
        if len(arguments) < 3:
            _usage("BIN(x, edge, edge, ...)", place)
        edges = tuple(Fraction(number(x, place, "an edge of BIN")) for x in arguments[1:])
        if any(a >= b for a, b in pairwise(edges)):
            raise QueryError(f"{place.where}: the edges of BIN must increase")
        return ex.Bin(read(arguments[0], place), edges)
    if name in ("DATE_PART", "DATEPART"):
        if len(arguments) != 2 or not isinstance(arguments[0], exp.Literal):
            _usage("DATE_PART('year', x)", place)
        return ex.DatePart(date_part(arguments[0].name), read(arguments[1], place))
    if name == "WEEKDAY" and len(arguments) == 1:
        return ex.DatePart("dayofweek", read(arguments[0], place))
    return refuse(node, place.where)


def _usage(form: str, place: Place) -> NoReturn:
    raise QueryError(f"{place.where}: write {form}")


def _part(part: str) -> Callable[[exp.Expr, Place], ex.Expression]:
    return _unary(lambda operand: ex.DatePart(part, operand))


_RULES: Mapping[type[exp.Expr], Callable[[Any, Place], ex.Expression]] = {
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
