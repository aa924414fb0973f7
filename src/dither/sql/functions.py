"""Functions and CASE: sqlglot's tree to expressions of the plan."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import NoReturn

from sqlglot import exp

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.sql.dates import date_part, read_date, read_timestamp, truncation
from dither.sql.places import Place, Rule, Rules, word
from dither.sql.refusal import refuse, take

__all__ = ["FUNCTIONS"]


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
            condition = ex.Compare("=", whole, condition)
        branches.append((condition, value))
    if not branches:
        raise QueryError(f"{place.where}: CASE needs at least one WHEN")
    otherwise = place.read(default) if default is not None else ex.Literal(None)
    return ex.Case(tuple(branches), otherwise)


def _if(node: exp.If, place: Place) -> ex.Expression:
    this, true, false = take(node, place.where, "this", "true", "false")
    otherwise = place.read(false) if false is not None else ex.Literal(None)
    return ex.Case(((place.read(this), place.read(true)),), otherwise)


def _nullif(node: exp.Nullif, place: Place) -> ex.Expression:
    left, right = place.sides(node)
    return ex.Case(((ex.Compare("=", left, right), ex.Literal(None)),), left)


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
    if not isinstance(first, int) or not isinstance(size, int) or first < 1 or size < 0:
        raise QueryError(
            f"{place.where}: SUBSTRING starts at 1 or later and has a whole length of 0 or more"
        )
    return ex.Substring(place.read(this), first, size)


# --- functions that sqlglot does not know -----------------------------------------------------


def _named(node: exp.Anonymous, place: Place) -> ex.Expression:
    name, arguments = node.name.upper(), list(node.expressions)
    take(node, place.where, "this", "expressions")
    if name == "CLAMP":
        if len(arguments) != 3:
            _usage("CLAMP(x, lower, upper)", place)
        lower, upper = (Fraction(place.number(x, "a bound of CLAMP")) for x in arguments[1:])
        if lower > upper:
            raise QueryError(f"{place.where}: CLAMP has its lower bound above the upper one")
        return ex.Clamp(place.read(arguments[0]), lower, upper)
    if name == "BIN":
        if len(arguments) < 3:
            _usage("BIN(x, edge, edge, ...)", place)
        edges = tuple(Fraction(place.number(x, "an edge of BIN")) for x in arguments[1:])
        if any(a >= b for a, b in pairwise(edges)):
            raise QueryError(f"{place.where}: the edges of BIN must increase")
        return ex.Bin(place.read(arguments[0]), edges)
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
