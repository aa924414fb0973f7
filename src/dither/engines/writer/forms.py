"""Small constructors of DuckDB SQL, as sqlglot trees.

Types are always written out: left to itself an engine would read ``5`` as a 32-bit integer and
``0.1`` as a decimal, and both have other rules for overflow and rounding.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from sqlglot import exp

from dither.plan.kinds import Kind, Value, kind_of_value

__all__ = [
    "FIRST_DAY",
    "LARGEST",
    "LARGEST_DOUBLE",
    "LAST_MOMENT",
    "TYPES",
    "all_of",
    "binary",
    "call",
    "case",
    "cast",
    "constant",
    "function_table",
    "identifier",
    "integer",
    "list_of",
    "named",
    "null",
    "real",
    "text",
    "try_cast",
    "whole",
    "without_nan",
]

LARGEST = 2**63 - 1
LARGEST_DOUBLE = 1.7976931348623157e308
_LARGEST_FRACTION = Fraction(LARGEST_DOUBLE)
FIRST_DAY, LAST_MOMENT = dt.date(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
"""Dates outside are read as NULL: neither Python nor every date function knows them."""

TYPES = {
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}
"""The type in which DuckDB computes each kind."""

_BINARY: dict[str, type[exp.Expression]] = {
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "//": exp.IntDiv,
    "%": exp.Mod,
    "=": exp.EQ,
    "<>": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
    "AND": exp.And,
    "OR": exp.Or,
}


@cache
def _parsed(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def _type(name: str) -> exp.DataType:
    # Reading a type takes sqlglot longer than all else that makes a constant.
    return _parsed(name).copy()


def cast(node: exp.Expression, name: str) -> exp.Expression:
    """``CAST(node AS name)``; only where it cannot fail."""
    return exp.Cast(this=node, to=_type(name))


def try_cast(node: exp.Expression, name: str) -> exp.Expression:
    """``TRY_CAST(node AS name)``: NULL where the value does not fit."""
    return exp.TryCast(this=node, to=_type(name))


def call(name: str, *arguments: exp.Expression) -> exp.Expression:
    """``name(arguments)``, passed on as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def function_table(name: str, *arguments: exp.Expression) -> exp.Expression:
    """A table function, to select from."""
    return exp.Table(this=call(name, *arguments))


def binary(op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
    """``(left op right)``."""
    return exp.Paren(this=_BINARY[op](this=left, expression=right))


def all_of(op: str, parts: Sequence[exp.Expression]) -> exp.Expression:
    """The parts joined by ``AND`` or ``OR``; of no parts, what leaves the others unchanged."""
    if not parts:
        return exp.Boolean(this=op == "AND")
    joined = parts[0]
    for part in parts[1:]:
        joined = _joined(op, joined, part)
    return exp.Paren(this=joined)


def _joined(op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
    return _BINARY[op](this=left, expression=right)


def case(
    *branches: tuple[exp.Expression, exp.Expression], otherwise: exp.Expression | None = None
) -> exp.Expression:
    """``CASE WHEN ... THEN ... ELSE otherwise END``; NULL where nothing applies."""
    return exp.Case(ifs=[exp.If(this=c, true=v) for c, v in branches], default=otherwise)


def without_nan(value: exp.Expression) -> exp.Expression:
    """The value of a double, NULL where it is NaN: tested before anything else is asked of it.

    Not by ``ISNAN``, which an optimizer answers from a file's statistics where these leave NaN out.
    """
    number = binary("OR", call("ISFINITE", value.copy()), call("ISINF", value.copy()))
    return case((number, value))


def null(kind: Kind | None = None) -> exp.Expression:
    """NULL, typed where the kind is known."""
    return cast(exp.Null(), TYPES[kind]) if kind else exp.Null()


def identifier(name: str, table: str | None = None) -> exp.Expression:
    """A quoted column name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table and _quoted(table))


def named(node: exp.Expression, name: str) -> exp.Expression:
    """``node AS "name"``."""
    return exp.Alias(this=node, alias=_quoted(name))


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def text(value: str) -> exp.Expression:
    """A string constant."""
    return exp.Literal.string(value)


def integer(value: int, name: str = "BIGINT") -> exp.Expression:
    """An integer constant of the named type."""
    return cast(exp.Literal(this=str(value), is_string=False), name)


def whole(value: int) -> exp.Expression:
    """A BIGINT constant; one that BIGINT cannot hold becomes the nearest that it can."""
    return integer(max(-LARGEST, min(LARGEST, value)))


def real(value: float | Fraction) -> exp.Expression:
    """The double nearest to the value: an exponent makes the engine read a double exactly.

    Examples
    --------
    >>> real(Fraction(1, 10)).sql(dialect="duckdb")
    'CAST(0.1e0 AS DOUBLE)'
    """
    if isinstance(value, Fraction):
        value = float(max(-_LARGEST_FRACTION, min(_LARGEST_FRACTION, value)))
    shown = repr(value)
    digits = shown if "e" in shown or "n" in shown else shown + "e0"
    literal = exp.Literal.string(shown) if "n" in shown else exp.Literal(this=digits)
    literal.set("is_string", "n" in shown)
    return cast(literal, "DOUBLE")


def constant(value: Value | None, kind: Kind | None = None) -> exp.Expression:
    """A public constant as a given kind (its own, if none is given)."""
    if value is None:
        return null(kind)
    kind = kind or kind_of_value(value)
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int() | Fraction():
            return real(Fraction(value)) if kind is Kind.REAL else integer(int(value))
        case str():
            return cast(text(value), "VARCHAR")
        case dt.datetime():
            utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            if kind is Kind.DATE:
                return cast(text(_day(utc.date())), "DATE")
            return cast(text(f"{_day(utc.date())} {utc.time().isoformat()}"), "TIMESTAMP")
        case dt.date():
            return cast(text(_day(value)), TYPES[kind])


def _day(value: dt.date) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def list_of(nodes: list[exp.Expression], name: str) -> exp.Expression:
    """A list of constants of the named type."""
    return exp.Cast(this=exp.Array(expressions=nodes), to=_type(f"{name}[]"))
