"""What every expression means, in exact Python: the truth that inferred facts must hold.

Written from the docstrings of ``dither.plan.expressions`` alone. ``None`` is NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dither.plan import expressions as ex

Row = Mapping[str, Any]


def value_of(node: ex.Expression, row: Row) -> Any:
    """The value of an expression in one row, whose columns are given by name."""

    def of(below: ex.Expression) -> Any:
        return value_of(below, row)

    match node:
        case ex.Column(name=name):
            return row[name]
        case ex.Literal(value=value):
            return value
        case ex.Arithmetic(op=op, left=left, right=right):
            return _arithmetic(op, of(left), of(right))
        case ex.Compare(op=op, left=left, right=right):
            return _compare(op, of(left), of(right))
        case ex.Between(operand=x, low=low, high=high):
            return _and([_compare("<=", of(low), of(x)), _compare("<=", of(x), of(high))])
        case ex.InList(operand=x, values=values):
            return None if of(x) is None else of(x) in values
        case ex.IsNull(operand=x):
            return of(x) is None
        case ex.And(operands=xs):
            return _and([of(x) for x in xs])
        case ex.Or(operands=xs):
            return _not(_and([_not(of(x)) for x in xs]))
        case ex.Not(operand=x):
            return _not(of(x))
        case ex.Case(branches=branches, otherwise=other):
            return next((of(v) for c, v in branches if of(c) is True), of(other))
        case ex.Coalesce(operands=xs):
            return next((of(x) for x in xs if of(x) is not None), None)
        case ex.Least(operands=xs):
            return min((of(x) for x in xs if of(x) is not None), default=None)
        case ex.Greatest(operands=xs):
            return max((of(x) for x in xs if of(x) is not None), default=None)
        case ex.Call(operands=xs, options=options):
            return _call(node, [of(x) for x in xs], options)
    x = of(node.operand)  # type: ignore[attr-defined]
    return None if x is None else _unary(node, x)


def _call(node: ex.Call, operands: list[Any], options: tuple[Any, ...]) -> Any:
    if None in operands:
        return None
    read = [float(x) if isinstance(x, Fraction) else x for x in operands]
    kinds = zip(read, node.kinds, strict=True)
    found = node.signature.meaning(*(float(x) if k == "real" else x for x, k in kinds), *options)
    # What is given back as it came is still a third, and not the double nearest to it.
    for exact, given in zip(operands, read, strict=True):
        if isinstance(exact, Fraction) and isinstance(found, float) and found == given:
            return exact
    # As it prints: 0.1 for the double that is nearest to it.
    return Fraction(repr(found)) if isinstance(found, float) else found


def _unary(node: ex.Expression, x: Any) -> Any:
    match node:
        case ex.Absolute():
            return abs(x)
        case ex.Floor():
            return floor(x)
        case ex.Ceil():
            return ceil(x)
        case ex.Clamp(lower=lower, upper=upper):
            return type(x)(min(max(x, lower), upper))
        case ex.Bin(edges=edges):
            if not edges[0] <= x <= edges[-1]:
                return None
            return max(i for i, e in enumerate(edges[:-1]) if e <= x)
        case ex.DatePart(part=part):
            return _part(part, x)
        case ex.DateTruncate(part=part):
            return _truncate(part, x.date() if isinstance(x, dt.datetime) else x)
        case ex.Lower():
            return x.lower()
        case ex.Upper():
            return x.upper()
        case ex.Substring(start=start, length=length):
            return x[start - 1 : start - 1 + length]
    raise TypeError(type(node).__name__)


def _arithmetic(op: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    if b == 0:
        return None
    quotient = Fraction(a) / Fraction(b)
    if op == "/":
        return quotient
    towards_zero = floor(quotient) if quotient >= 0 else ceil(quotient)
    return towards_zero if op == "//" else a - b * towards_zero


def _compare(op: str, a: Any, b: Any) -> Any:
    if a is None or b is None:
        return None
    return {
        "=": a == b,
        "<>": a != b,
        "<": a < b,
        "<=": a <= b,
        ">": a > b,
        ">=": a >= b,
    }[op]


def _and(parts: list[Any]) -> Any:
    return False if any(p is False for p in parts) else None if None in parts else True


def _not(truth: Any) -> Any:
    return None if truth is None else not truth


def _part(part: str, x: Any) -> int:
    match part:
        case "quarter":
            return (x.month + 2) // 3
        case "dayofweek":
            return x.isoweekday() % 7
        case "week" | "isoyear" | "isodow":
            names = {"week": "week", "isoyear": "year", "isodow": "weekday"}
            return int(getattr(x.isocalendar(), names[part]))
        case "dayofyear":
            return x.toordinal() - dt.date(x.year, 1, 1).toordinal() + 1
    return int(getattr(x, part))


def _truncate(part: str, day: dt.date) -> dt.date:
    while not _first(part, day):
        day -= dt.timedelta(days=1)
    return day


def _first(part: str, day: dt.date) -> bool:
    return {
        "year": (day.month, day.day) == (1, 1),
        "quarter": day.month in (1, 4, 7, 10) and day.day == 1,
        "month": day.day == 1,
        "week": day.isoweekday() == 1,
        "day": True,
    }[part]
