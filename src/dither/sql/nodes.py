"""Pieces of sqlglot's tree that SQL is written from: names, calls and constants."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction
from typing import NamedTuple

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect

from dither.plan.kinds import Value

__all__ = [
    *("AND", "ATOM", "NOT", "OR", "PRODUCT", "SUM", "TEST"),
    *("Text", "call", "divided", "edge", "identifier", "literal"),
]

LONGEST_DECIMAL = 30
"""Digits of a decimal; a real that needs more is written as a quotient."""

OR, AND, NOT, TEST, SUM, PRODUCT, ATOM = range(7)
"""How tightly a node binds, loosest first."""


class Text(NamedTuple):
    """A node and how tightly it binds."""

    node: exp.Expr
    level: int

    def within(self, level: int) -> exp.Expr:
        """The node, in parentheses where it binds less tightly than ``level``."""
        return self.node if self.level >= level else exp.Paren(this=self.node)


def identifier(name: str) -> exp.Identifier:
    """A name, quoted where it has to be."""
    return exp.Identifier(this=name, quoted=not _bare(name))


def _bare(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    tokens = list(Dialect.get_or_raise("duckdb").tokenize(name))
    return len(tokens) == 1 and tokens[0].token_type is TokenType.VAR


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function of any name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def divided(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """A quotient, without the guards that sqlglot puts around some."""
    return exp.Div(this=left, expression=right, typed=False, safe=False)


def literal(value: Value | None) -> Text:
    """A public constant."""
    match value:
        case None:
            return Text(exp.Null(), ATOM)
        case bool():
            return Text(exp.Boolean(this=value), ATOM)
        case int():
            return Text(_digits(str(abs(value)), value < 0), ATOM)
        case Fraction():
            return _number(value)
        case str():
            return Text(exp.Literal.string(value), ATOM)
        case dt.datetime():
            utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return Text(_typed("timestamp", utc.isoformat(sep=" ")), ATOM)
        case dt.date():
            return Text(_typed("date", value.isoformat()), ATOM)


def _typed(kind: str, text: str) -> exp.Expr:
    to = exp.DataType.build(kind, dialect="duckdb")
    return exp.Cast(this=exp.Literal.string(text), to=to)


def _digits(text: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if negative else number


def edge(value: Fraction) -> exp.Expr:
    """A bound or an edge, which is an exact rational however it is written."""
    if value.denominator == 1:
        return literal(int(value)).node
    return _number(value).node


def _number(value: Fraction) -> Text:
    """A real: a decimal where that is exact and not long, else a quotient of integers."""
    places = _decimal_places(value.denominator)
    if places is None or abs(value) >= Fraction(10) ** (LONGEST_DECIMAL - places):
        top, bottom = (literal(n).node for n in (value.numerator, value.denominator))
        return Text(divided(top, bottom), PRODUCT)
    places = max(places, 1)
    digits = str(abs(value.numerator) * (10**places // value.denominator)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}"
    return Text(_digits(text, value < 0), ATOM)


def _decimal_places(denominator: int) -> int | None:
    """The decimal places that a fraction needs, ``None`` where no number of them is enough."""
    counts = []
    for prime in (2, 5):
        count = 0
        while denominator % prime == 0:
            denominator //= prime
            count += 1
        counts.append(count)
    return max(counts) if denominator == 1 else None
