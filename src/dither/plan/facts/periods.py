"""What is publicly known of the parts of dates and timestamps, and of what is truncated to one."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

from dither.plan.expressions import PARTS, TIMES
from dither.plan.facts.ranges import LONGEST_LIST, Facts
from dither.plan.functions import part_of
from dither.plan.schema import Kind

__all__ = ["following", "part_facts", "truncated", "truncated_facts"]

_REACH = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}
"""Days from the first day of a period that always lead into the next one, and not past it."""


def part_facts(part: str, facts: Facts) -> Facts:
    """Of a part of a date or timestamp, one of ``PARTS``, with these facts."""
    ends = PARTS[part]
    if ends is None and isinstance(facts.lower, dt.date) and isinstance(facts.upper, dt.date):
        ends = part_of(facts.lower, part), part_of(facts.upper, part)
    if ends is None:
        return Facts(Kind.INTEGER, step=Fraction(1), nullable=facts.nullable)
    low, high = (Fraction(end) for end in ends)
    return Facts(Kind.INTEGER, low, high, None, Fraction(1), facts.nullable)


def truncated_facts(part: str, facts: Facts) -> Facts:
    """Of what is truncated to one of ``TRUNCATIONS``: where it is bounded, few values."""
    if part in TIMES:
        return _time_truncate(part, facts)
    if not isinstance(facts.lower, dt.date) or not isinstance(facts.upper, dt.date):
        return Facts(Kind.DATE, nullable=facts.nullable)
    first, last = truncated(facts.lower, part), truncated(facts.upper, part)
    days, day = [first], first
    while day < last and len(days) <= LONGEST_LIST:
        day = following(day, part)
        days.append(day)
    # A list that was cut short is none: keys would miss what lies beyond.
    domain = tuple(days) if day >= last else None
    return Facts(Kind.DATE, first, last, domain, None, facts.nullable)


def _time_truncate(part: str, facts: Facts) -> Facts:
    ends = facts.lower, facts.upper
    if not all(isinstance(end, dt.datetime) and end.tzinfo is None for end in ends):
        return Facts(Kind.TIMESTAMP, nullable=facts.nullable)
    first, last = (_first_moment(end, part) for end in ends)  # type: ignore[arg-type]
    unit = dt.timedelta(**{f"{part}s": 1})
    steps = (last - first) // unit
    domain = tuple(first + i * unit for i in range(steps + 1)) if steps < LONGEST_LIST else None
    return Facts(Kind.TIMESTAMP, first, last, domain, None, facts.nullable)


def _first_moment(value: dt.datetime, part: str) -> dt.datetime:
    finer = TIMES[TIMES.index(part) + 1 :]
    return value.replace(microsecond=0, **dict.fromkeys(finer, 0))  # type: ignore[arg-type]


def truncated(value: dt.date, part: str) -> dt.date:
    """The first day of the period that a day is in."""
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


def following(start: dt.date, part: str) -> dt.date:
    """The first day of the next period.

    Raises
    ------
    OverflowError
        That would be beyond the year 9999.
    """
    return truncated(start + dt.timedelta(days=_REACH[part]), part)
