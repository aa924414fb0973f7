"""Facts of dates: their parts, and the days that truncation leaves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction

from dither.errors import QueryError, nearest
from dither.plan import expressions as ex
from dither.plan.facts.common import FactsOf, temporal
from dither.plan.facts.values import LONGEST_LIST, Facts
from dither.plan.kinds import Kind
from dither.plan.text import show

__all__ = ["PARTS", "TRUNCATIONS", "date_part", "date_truncate"]

PARTS: Mapping[str, tuple[int, int] | None] = {
    "year": None,
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
}
"""The date parts and their ranges; 0 is Sunday. The range of years follows from the bounds."""

TRUNCATIONS = ("year", "quarter", "month", "week", "day")
"""What a date can be truncated to; weeks start on Monday."""

REACH = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}
"""Days from the first day of a period that always lead into the next one, and not past it."""


def date_part(node: ex.DatePart, of: FactsOf) -> Facts:
    """A part of a date."""
    facts = temporal(node.operand, of, node)
    if node.part not in PARTS:
        raise QueryError(f"{show(node)}: unknown date part" + nearest(node.part, PARTS))
    if node.part in ("hour", "minute") and facts.kind is Kind.DATE:
        raise QueryError(f"{show(node)}: a date has no {node.part}")
    ends = PARTS[node.part]
    if ends is None and isinstance(facts.lower, dt.date) and isinstance(facts.upper, dt.date):
        ends = facts.lower.year, facts.upper.year
    if ends is None:
        return Facts(Kind.INTEGER, step=Fraction(1), nullable=facts.nullable)
    low, high = (Fraction(end) for end in ends)
    return Facts(Kind.INTEGER, low, high, None, Fraction(1), facts.nullable)


def date_truncate(node: ex.DateTruncate, of: FactsOf) -> Facts:
    """The first day of a period."""
    facts = temporal(node.operand, of, node)
    if node.part not in TRUNCATIONS:
        raise QueryError(f"{show(node)}: unknown truncation" + nearest(node.part, TRUNCATIONS))
    if not isinstance(facts.lower, dt.date) or not isinstance(facts.upper, dt.date):
        return Facts(Kind.DATE, nullable=facts.nullable)
    first, last = _truncated(facts.lower, node.part), _truncated(facts.upper, node.part)
    days, day = [first], first
    while day < last and len(days) <= LONGEST_LIST:
        day = _truncated(day + dt.timedelta(days=REACH[node.part]), node.part)
        days.append(day)
    domain = tuple(days) if day >= last else None
    return Facts(Kind.DATE, first, last, domain, None, facts.nullable)


def _truncated(value: dt.date, part: str) -> dt.date:
    day = value.date() if isinstance(value, dt.datetime) else value
    match part:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
    return day
