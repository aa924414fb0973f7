"""What a program writes for a database, as questions: a price in its OPTIONS, and parameters."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import Token, TokenType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from dither.errors import QueryError

__all__ = ["PRICE", "PricedStatement", "with_parameters", "without_price"]

PRICE = ("epsilon", "delta", "confidence", "token")
"""Options of a statement that say what a release may cost, and how it is named."""

UNPRICED = (
    "the statement names no price, and every answer costs some: end it with "
    "OPTIONS (epsilon = 0.1), or give execution_options(epsilon=0.1). Nothing was charged"
)


@dataclass(frozen=True, slots=True)
class PricedStatement:
    """A question in SQL, and what its release may cost.

    Parameters
    ----------
    sql : str
        Without the price.
    price : mapping of str to str
        Of `PRICE`, those that were given.
    """

    sql: str
    price: dict[str, str]


def _tokens(sql: str) -> list[Token]:
    if not isinstance(sql, str) or len(sql) > 100_000:
        raise QueryError("a statement must be a text of at most 100,000 characters")
    try:
        return list(DuckDB().tokenize(sql))
    except SqlglotError:
        raise QueryError("the statement cannot be read") from None


def without_price(sql: str) -> PricedStatement:
    """Take the price out of the ``OPTIONS (...)`` at a statement's end; others stay.

    Raises
    ------
    QueryError
        An option of the price has no value, or stands twice.

    Examples
    --------
    >>> without_price("SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = 0.1)")
    PricedStatement(sql='SELECT COUNT(*) AS n FROM visits', price={'epsilon': '0.1'})
    """
    tokens = _tokens(sql)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        sql = sql[: tokens.pop().start].rstrip()
    begin = _options_at(tokens)
    if begin is None:
        return PricedStatement(sql.strip(), {})
    price: dict[str, str] = {}
    kept = []
    for option in _parts(tokens[begin + 2 : -1]):
        name = option[0].text.lower()
        if name not in PRICE:
            kept.append(sql[option[0].start : option[-1].end + 1])
            continue
        if len(option) < 3 or option[1].token_type is not TokenType.EQ or name in price:
            raise QueryError(f"OPTIONS: {name} must stand once, as in {name} = 0.1")
        text = "".join(token.text for token in option[2:])
        price[name] = text
    # Up to the last word before them: a comment in between would swallow what is added.
    left = sql[: tokens[begin - 1].end + 1] if begin else ""
    if kept:
        left += f" OPTIONS ({', '.join(kept)})"
    return PricedStatement(left, price)


def _options_at(tokens: Sequence[Token]) -> int | None:
    """Where the last words begin, if they are ``OPTIONS (...)``."""
    if not tokens or tokens[-1].token_type is not TokenType.R_PAREN:
        return None
    for i in range(len(tokens) - 2, 0, -1):
        kind = tokens[i].token_type
        if kind is TokenType.R_PAREN:
            return None
        if kind is TokenType.L_PAREN:
            return i - 1 if tokens[i - 1].text.upper() == "OPTIONS" else None
    return None


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            found.append([])
        else:
            found[-1].append(token)
    return [part for part in found if part]


def with_parameters(sql: str, parameters: Sequence[Any]) -> str:
    """A statement with a literal in place of each question mark that is no part of a text.

    Raises
    ------
    QueryError
        There are more or fewer parameters than question marks, or one cannot be written.

    Examples
    --------
    >>> with_parameters("SELECT COUNT(*) AS n FROM v WHERE a = ? AND b = '?'", ["it's"])
    "SELECT COUNT(*) AS n FROM v WHERE a = 'it''s' AND b = '?'"
    """
    marks = [t for t in _tokens(sql) if t.token_type is TokenType.PLACEHOLDER and t.text == "?"]
    if len(marks) != len(parameters):
        raise QueryError(
            f"the statement has {len(marks)} question marks, and {len(parameters)} parameters "
            "were given"
        )
    made, end = [], 0
    for mark, value in zip(marks, parameters, strict=True):
        made += [sql[end : mark.start], literal(value)]
        end = mark.end + 1
    return "".join([*made, sql[end:]])


def literal(value: Any) -> str:
    """A value as SQL writes it.

    Raises
    ------
    QueryError
        It is of another kind, not finite, or not printable.
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal() | Fraction() | float():
            if isinstance(value, float | Decimal) and not math.isfinite(value):
                raise QueryError("a parameter is not finite")
            if isinstance(value, Fraction):
                return f"({value.numerator} / {value.denominator})"
            text = format(value, "f") if isinstance(value, Decimal) else repr(value)
            return f"({text})" if value < 0 else text
        case str():
            if "\0" in value:
                raise QueryError("a parameter holds a character that SQL cannot write")
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise QueryError(f"a parameter of type {type(value).__name__} cannot be written in SQL")
