"""CAST, of which TRY_CAST is another name: NULL where a value does not fit, and never an error.

Text is read in few forms, alike on every engine, spaces around it ignored:

- whole numbers: an optional sign and up to 30 digits; NULL where 64 bits do not hold them;
- reals: an optional sign, up to 30 digits, a point and up to 30 more, an exponent of one or two;
- dates: ``YYYY-MM-DD``; timestamps: a date, or one and a time ``HH:MM``, ``HH:MM:SS`` or with up to
  six digits more, with a space or a ``T`` between them;
- truth: ``true``, ``t``, ``yes``, ``y``, ``1`` and their opposites, in capitals or not.

A real becomes an integer by rounding to the nearest one, halves to the even one, as in DuckDB.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.facts.ranges import Facts
from dither.plan.functions._signature import Found, Option, Signature, in_64_bits, number
from dither.plan.schema import Kind

__all__ = ["CASTS", "FALSE", "FORMS", "TRUE"]

# Not 0000, which is not a year.
_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DATE = (
    f"(?:{_YEAR}-(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    f"|{_YEAR}-(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|{_YEAR}-02-(?:0[1-9]|1[0-9]|2[0-8])|{_LEAP}-02-29)"
)
_TIME = "(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"

FORMS: dict[Kind, str] = {
    Kind.INTEGER: "[+-]?[0-9]{1,30}",
    Kind.REAL: "[+-]?(?:[0-9]{1,30}(?:[.][0-9]{0,30})?|[.][0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?",
    Kind.DATE: _DATE,
    Kind.TIMESTAMP: f"{_DATE}(?:[ T]{_TIME})?",
}
"""What a text looks like that is read as a kind, as a regular expression of all of it. Every such
text is one, so that no engine's own cast fails on it, but for whole numbers beyond 64 bits; and no
double overflows or underflows."""

TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

_FROM = {
    Kind.INTEGER: {Kind.REAL, Kind.TEXT, Kind.BOOLEAN},
    Kind.REAL: {Kind.INTEGER, Kind.BOOLEAN},
    Kind.BOOLEAN: {Kind.INTEGER, Kind.REAL, Kind.TEXT},
    Kind.TEXT: {Kind.INTEGER, Kind.REAL, Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP},
    Kind.DATE: {Kind.TEXT, Kind.TIMESTAMP},
    Kind.TIMESTAMP: {Kind.DATE},
}
_INSTEAD = {
    (Kind.REAL, Kind.TEXT): "group by the number, or CAST(ROUND(x) AS VARCHAR)",
    (Kind.TIMESTAMP, Kind.TEXT): "write STRFTIME(x, '%F %T')",
}


def _cast(value: Found, target: str) -> Found:
    goal = Kind(target)
    match value:
        case str():
            return value if goal is Kind.TEXT else _read(value.strip(" "), goal)
        case bool():
            words = {Kind.TEXT: str(value).lower(), Kind.BOOLEAN: value}
            return words.get(goal, float(value) if goal is Kind.REAL else int(value))
        case int() | float():
            return _number(value, goal)
        case dt.datetime():
            return value.date() if goal is Kind.DATE else value
        case dt.date():
            if goal is Kind.TIMESTAMP:
                return dt.datetime.combine(value, dt.time())
            return value.isoformat() if goal is Kind.TEXT else value
    raise TypeError(type(value).__name__)


def _number(value: int | float, goal: Kind) -> Found:
    match goal:
        case Kind.REAL:
            return float(value)
        case Kind.BOOLEAN:
            return value != 0
        case Kind.TEXT:
            return str(value)
    return in_64_bits(round(value)) if math.isfinite(value) else None


def _read(value: str, goal: Kind) -> Found:
    if goal is Kind.BOOLEAN:
        low = value.lower()
        return True if low in TRUE else False if low in FALSE else None
    if not re.fullmatch(FORMS[goal], value):
        return None
    match goal:
        case Kind.INTEGER:
            return in_64_bits(int(value))
        case Kind.REAL:
            return float(value)
        case Kind.DATE:
            return dt.date.fromisoformat(value)
    return dt.datetime.fromisoformat(value.replace("T", " "))


def _cast_facts(parts: Sequence[Facts], target: str) -> Facts:
    (x,) = parts
    goal = Kind(target)
    if x.kind is None:
        return Facts(goal, nullable=True)
    if x.kind is goal:
        return x
    if goal not in _FROM[x.kind]:
        hint = _INSTEAD.get((x.kind, goal), "")
        raise QueryError(
            f"CAST of a {x.kind.value} to {goal.value} is not offered" + (hint and f"; {hint}")
        )
    match goal:
        case Kind.REAL if x.kind is Kind.INTEGER:
            return replace(x, kind=goal, domain=None)
        case Kind.INTEGER if x.kind is Kind.REAL:
            ends = x.range and (Fraction(round(x.range[0])), Fraction(round(x.range[1])))
            return number(goal, ends, partial=x.nullable)
        case Kind.INTEGER | Kind.REAL if x.kind is Kind.BOOLEAN:
            return number(goal, (Fraction(0), Fraction(1)), step=Fraction(1), partial=x.nullable)
        case Kind.DATE | Kind.TIMESTAMP if x.kind.temporal:
            low, high = (_as_day(end, goal) for end in (x.lower, x.upper))
            return Facts(goal, low, high, nullable=x.nullable)
    step = Fraction(1) if goal is Kind.INTEGER else None
    return Facts(goal, step=step, nullable=x.nullable or x.kind is Kind.TEXT)


def _as_day(end: object, goal: Kind) -> dt.date | None:
    found = _cast(end, goal.value) if isinstance(end, dt.date) else None
    return found if isinstance(found, dt.date) else None


_NAMES = {
    Kind.INTEGER: "BIGINT",
    Kind.REAL: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def _words(operands: Sequence[str], target: str) -> str:
    return f"CAST({operands[0]} AS {_NAMES[Kind(target)]})"


def _check(name: str, options: tuple[Option, ...]) -> None:
    if len(options) != 1 or options[0] not in [kind.value for kind in Kind]:
        raise QueryError("CAST(x AS type) needs a type")


CASTS = (Signature("cast", ("any",), _cast_facts, _cast, _words, _check),)
