"""Functions of dates and timestamps, which lie in the years 1 to 9999 and are in UTC."""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from dither.errors import QueryError, UnsupportedError, nearest
from dither.plan.facts.ranges import Facts
from dither.plan.functions._signature import Option, Signature, nullable, number, quoted, text
from dither.plan.schema import Kind

__all__ = [
    "DATES",
    "DIRECTIVES",
    "PERIODS",
    "UNITS",
    "directives",
    "months_later",
    "part_of",
    "reach",
]

PERIODS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What DATE_DIFF counts; weeks start on Monday."""

UNITS = ("day", "month", "second")
"""What an interval is a number of: a week is 7 days, a year 12 months, an hour 3,600 seconds."""

Day = TypeVar("Day", bound=dt.date)

FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)


def part_of(value: dt.date, part: str) -> int:
    """A part of a date or timestamp; a date is its midnight.

    Examples
    --------
    >>> part_of(dt.date(2021, 1, 3), "week"), part_of(dt.date(2021, 1, 3), "dayofweek")
    (53, 0)
    """
    match part:
        case "quarter":
            return (value.month + 2) // 3
        case "week":
            return value.isocalendar().week
        case "isoyear":
            return value.isocalendar().year
        case "dayofweek":
            return value.isoweekday() % 7
        case "isodow":
            return value.isoweekday()
        case "dayofyear":
            return value.timetuple().tm_yday
        case "hour" | "minute" | "second":
            return int(getattr(value, part)) if isinstance(value, dt.datetime) else 0
    return int(getattr(value, part))


# --- DATE_DIFF ----------------------------------------------------------------------------------


def _period(value: dt.date, part: str) -> int:
    """The number of the period that holds the moment, of all since the year 1."""
    days = value.toordinal() - 1
    match part:
        case "year":
            return value.year
        case "quarter":
            return 4 * value.year + part_of(value, "quarter")
        case "month":
            return 12 * value.year + value.month
        case "week":
            # The first day of the year 1 is a Monday.
            return days // 7
        case "day":
            return days
    hours = 24 * days + part_of(value, "hour")
    if part == "hour":
        return hours
    minutes = 60 * hours + part_of(value, "minute")
    return minutes if part == "minute" else 60 * minutes + part_of(value, "second")


def _difference(start: dt.date, end: dt.date, part: str) -> int:
    """How many periods begin after the start and up to the end; negative where it is before."""
    return _period(end, part) - _period(start, part)


def _difference_facts(parts: Sequence[Facts], part: str) -> Facts:
    start, end = parts
    firsts = start.lower, end.lower
    lasts = start.upper, end.upper
    ends = None
    if all(isinstance(day, dt.date) for day in (*firsts, *lasts)):
        low = _difference(start.upper, end.lower, part)  # type: ignore[arg-type]
        high = _difference(start.lower, end.upper, part)  # type: ignore[arg-type]
        ends = Fraction(low), Fraction(high)
    if ends is None:
        return Facts(Kind.INTEGER, step=Fraction(1), nullable=nullable(parts))
    return number(Kind.INTEGER, ends, partial=nullable(parts))


def _difference_check(name: str, options: tuple[Option, ...]) -> None:
    (part,) = options if len(options) == 1 else ("",)
    if part not in PERIODS:
        raise QueryError(f"DATE_DIFF counts no {part!r}" + nearest(str(part), PERIODS))


# --- intervals ----------------------------------------------------------------------------------


def reach(amount: int, unit: str) -> tuple[dt.datetime, dt.datetime] | None:
    """The first and the last moment that an interval leads to a moment of the years 1 to 9999.

    Months lead to the same day of another month, or to its last day.
    """
    if unit == "month":
        if abs(amount) > 12 * 9998:
            return None
        back = months_later(FIRST, -amount) if amount < 0 else FIRST
        # All days of the last month that is led into December 9999 are.
        months = 12 * 9999 + 11 - max(amount, 0)
        year, month = divmod(months, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return back, LAST.replace(year=year, month=month + 1, day=last)
    try:
        moved = dt.timedelta(**{f"{unit}s": amount})
        return (FIRST, LAST - moved) if amount >= 0 else (FIRST - moved, LAST)
    except OverflowError:
        return None


def months_later(value: Day, amount: int) -> Day:
    """The same day so many months later, or the last of its month.

    Examples
    --------
    >>> months_later(dt.date(2024, 1, 31), 1)
    datetime.date(2024, 2, 29)
    """
    year, month = divmod(12 * value.year + value.month - 1 + amount, 12)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day)


def _shift(value: dt.date, amount: int, unit: str) -> dt.date | None:
    stamp = isinstance(value, dt.datetime)
    moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    ends = reach(amount, unit)
    if ends is None or not ends[0] <= moment <= ends[1]:
        return None
    if unit == "month":
        found = months_later(moment, amount)
    else:
        found = moment + dt.timedelta(**{f"{unit}s": amount})
    return found if stamp or unit == "second" else found.date()


def _shift_facts(parts: Sequence[Facts], amount: int, unit: str) -> Facts:
    (x,) = parts
    kind = Kind.TIMESTAMP if unit == "second" else x.kind
    if not isinstance(x.lower, dt.date) or not isinstance(x.upper, dt.date):
        return Facts(kind, nullable=True)
    # Intervals keep the order of moments. An end that leaves the years that there are is none.
    low, high = (_shift(_utc(end), amount, unit) for end in (x.lower, x.upper))
    if low is None or high is None:
        return Facts(kind, nullable=True)
    return Facts(kind, low, high, nullable=True)


def _utc(value: dt.date) -> dt.date:
    zoned = isinstance(value, dt.datetime) and value.tzinfo is not None
    return value.astimezone(dt.UTC).replace(tzinfo=None) if zoned else value  # type: ignore[attr-defined]


def _shift_check(name: str, options: tuple[Option, ...]) -> None:
    amount, unit = options if len(options) == 2 else ("", "")
    if type(amount) is not int or unit not in UNITS:
        raise QueryError("an interval is a constant whole number of a unit, as INTERVAL 3 DAY")
    if reach(amount, str(unit)) is None:
        raise QueryError("an interval is longer than the years 1 to 9999")


def _shift_words(operands: Sequence[str], amount: int, unit: str) -> str:
    op, size = ("-", -amount) if amount < 0 else ("+", amount)
    return f"{operands[0]} {op} INTERVAL {size} {unit.upper()}"


# --- STRFTIME -----------------------------------------------------------------------------------

DIRECTIVES: dict[str, tuple[str, int]] = {
    "Y": ("year", 4),
    "m": ("month", 2),
    "d": ("day", 2),
    "j": ("dayofyear", 3),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
    "G": ("isoyear", 4),
    "V": ("week", 2),
    "u": ("isodow", 1),
    "w": ("dayofweek", 1),
}
"""By letter: the part of a date that a directive writes, and in how many digits."""

_SHORTHANDS = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S", "%R": "%H:%M"}


def directives(pattern: str) -> list[tuple[str, bool]]:
    """The pieces of a format: letters of ``DIRECTIVES``, and text, each with whether it is one.

    Examples
    --------
    >>> directives("%Y-%m")
    [('Y', True), ('-', False), ('m', True)]
    """
    found: list[tuple[str, bool]] = []
    for piece in re.findall(r"%.|%$|[^%]+", pattern, re.DOTALL):
        if piece in _SHORTHANDS:
            found += directives(_SHORTHANDS[piece])
        elif piece == "%%" or not piece.startswith("%"):
            found.append(("%" if piece == "%%" else piece, False))
        elif piece[1:] in DIRECTIVES:
            found.append((piece[1:], True))
        else:
            offered = ", ".join(f"%{letter}" for letter in DIRECTIVES)
            raise UnsupportedError(
                f"STRFTIME with {piece!r} is not offered; write {offered}, %F, %T or %R"
            )
    return found


def _strftime(value: dt.date, pattern: str) -> str:
    return "".join(
        str(part_of(value, DIRECTIVES[piece][0])).rjust(DIRECTIVES[piece][1], "0") if one else piece
        for piece, one in directives(pattern)
    )


def _strftime_check(name: str, options: tuple[Option, ...]) -> None:
    (pattern,) = options if len(options) == 1 else (None,)
    if not isinstance(pattern, str) or not pattern:
        raise QueryError("STRFTIME(x, '%Y-%m') takes its format as a constant text")
    directives(pattern)


def _strftime_words(operands: Sequence[str], pattern: str) -> str:
    return f"STRFTIME({operands[0]}, {quoted(pattern)})"


DATES = (
    Signature(
        "date difference",
        ("date", "date"),
        _difference_facts,
        _difference,
        lambda xs, part: f"DATE_DIFF('{part}', {xs[0]}, {xs[1]})",
        _difference_check,
    ),
    Signature("interval", ("date",), _shift_facts, _shift, _shift_words, _shift_check, test=True),
    Signature("format of time", ("date",), text, _strftime, _strftime_words, _strftime_check),
)
