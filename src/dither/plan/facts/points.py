"""The values of a column as whole numbers in their order, and the blocks that they are in.

So a set of values is a few ranges, whatever the column's kind: a comparison with a constant is one.
"""

from __future__ import annotations

import datetime as dt
import operator
import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.plan.facts.periods import following, truncated
from dither.plan.schema import Kind, Value

__all__ = [
    "ANYTHING",
    "EVERY",
    "NEVER",
    "Points",
    "Truths",
    "Values",
    "complement",
    "first_of_year",
    "period_start",
]

Values = BlockSet
"""Values of a column as whole numbers in their order; ``NULL`` is one of them."""

Truths = tuple[Values, Values]
"""Where a predicate may be true, and where it may be false."""

EVERY = BlockSet.of_range(None, None)
"""All values but NULL."""

ANYTHING = EVERY | BlockSet.of_names(NULL)

YEARS = range(1900, 2200)
"""Where a month without a year is told apart."""

COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def complement(values: Values) -> Values:
    """All other values but NULL."""
    found: list[tuple[int | None, int | None]] = []
    start: int | None = None
    for low, high in values.ranges:
        if low is not None:
            found.append((start, low - 1))
        if high is None:
            return BlockSet(tuple(found))
        start = high + 1
    return BlockSet((*found, (start, None)))


NEVER: Any = object()
"""The start of a period that no date is in."""

EPOCH = dt.datetime(1, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)
A_DAY = 86_400 * 10**6

LARGEST_EXACT = 2**53
"""Engines compare an integer and a real as doubles, which hold all integers up to here."""

PERIODS = {"month": 1, "quarter": 3}
MONTHS = 12


@dataclass(frozen=True)
class Points:
    """The values of a column as whole numbers in their order, and the blocks that they are in.

    A date is its number of days, a timestamp of microseconds, a double its bits with the sign that
    order wants. A text has the place of its value in the calendar's list; all others share one.
    """

    kind: Kind
    calendar: Calendar

    def beginning(self, value: Value, *, strict: bool) -> Values | None:
        """The values that are at least a constant, or above it; ``None`` if that is not known."""
        match self.kind:
            case Kind.DATE if isinstance(value, dt.date):
                day, midnight = _moment(value)
                first = day.toordinal() + (strict or not midnight)
            case Kind.TIMESTAMP if isinstance(value, dt.date):
                first = _microseconds(value) + strict
            case Kind.INTEGER if isinstance(value, int | Fraction) and not isinstance(value, bool):
                if isinstance(value, Fraction) and abs(value) > LARGEST_EXACT:
                    return None
                first = floor(value) + 1 if strict else ceil(value)
            case Kind.REAL if isinstance(value, int | Fraction) and not isinstance(value, bool):
                try:
                    first = _bits(float(value)) + strict
                except OverflowError:
                    return None
            case _:
                return None
        return BlockSet.of_range(first, None)

    def same(self, value: Value) -> Truths | None:
        """Where a column of texts equals a constant."""
        listed = self.calendar.values
        if self.kind is not Kind.TEXT or listed is None or not isinstance(value, str):
            return None
        if value in listed:
            place = listed.index(value)
            true = BlockSet.of_range(place, place)
            return true, complement(true)
        # Of the other values one is meant.
        return BlockSet.of_range(len(listed), len(listed)), EVERY

    def in_months(self, op: str, part: str, value: Value) -> Truths | None:
        """Where a month or quarter compares so with a number, without a year."""
        if part not in PERIODS or not self.kind.temporal or isinstance(value, bool):
            return None
        if not isinstance(value, int | Fraction):
            return None
        length = PERIODS[part]
        found = []
        for number in range(1, MONTHS // length + 1):
            if COMPARED[op](number, value):
                for year in YEARS:
                    first = dt.date(year, (number - 1) * length + 1, 1)
                    found.append((self._point(first), self._point(_next(first, part)) - 1))
        known = BlockSet(tuple(found))
        ends = self._point(dt.date(YEARS[0], 1, 1)), self._point(dt.date(YEARS[-1] + 1, 1, 1))
        return known | BlockSet(((None, ends[0] - 1), (ends[1], None))), complement(known)

    def _point(self, day: dt.date) -> int:
        return day.toordinal() if self.kind is Kind.DATE else _microseconds(day)

    def blocks(self, values: Values) -> BlockSet:
        """The blocks that values are in."""
        named = values.named & {NULL}
        calendar = self.calendar
        if calendar.values is not None:
            return self._listed(values, calendar.values) | BlockSet((), named)
        if calendar.edges is not None:
            edges = [self._edge(edge) for edge in calendar.edges]

            def block(point: int | None, last: int) -> int | None:
                return last if point is None else bisect_right(edges, point)

            ranges = [(block(a, 0), block(b, len(edges))) for a, b in values.ranges]
            return BlockSet(tuple(ranges), named)
        first, last = dt.date.min.toordinal(), dt.date.max.toordinal()
        found: list[tuple[int | None, int | None]] = []
        for low, high in values.ranges:
            start, end = self._day(low, first), self._day(high, last)
            if end >= first and start <= last:
                found.append(
                    (
                        None if start <= first else self._of_day(start),
                        None if end >= last else self._of_day(end),
                    )
                )
        return BlockSet(tuple(found), named)

    def _day(self, point: int | None, end: int) -> int:
        """The number of a day."""
        if point is None:
            return end
        return point if self.kind is Kind.DATE else point // A_DAY + 1

    def _of_day(self, number: int) -> int:
        block = self.calendar.block_of(dt.date.fromordinal(number))
        assert isinstance(block, int)
        return block

    def _edge(self, edge: Value) -> int:
        found = self.beginning(edge, strict=False)
        assert found is not None
        first = found.ranges[0][0]
        assert first is not None
        return first

    def _listed(self, values: Values, listed: Sequence[Value]) -> BlockSet:
        if self.kind is Kind.TEXT:
            places = range(len(listed))
            others = len(listed) in values
        else:
            places = [int(value) for value in listed]  # type: ignore[assignment,arg-type]
            inside = sum(place in values for place in places)
            size = len(values) - len(values.named)
            others = values.endless or size > inside
        found = BlockSet(tuple((i, i) for i, place in enumerate(places) if place in values))
        return found | BlockSet.of_names(OTHERS) if others else found


def _moment(value: dt.date) -> tuple[dt.date, bool]:
    """A day, and whether a moment is its first."""
    if not isinstance(value, dt.datetime):
        return value, True
    return value.date(), value.time() == dt.time()


def _microseconds(value: dt.date) -> int:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND
    return (value.toordinal() - 1) * A_DAY


def _bits(value: float) -> int:
    """A double as a whole number in the order of doubles; both zeros are 0."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return int(bits) if bits >= 0 else -(int(bits) + 2**63)


def period_start(value: Value, part: str, *, strict: bool) -> Any:
    """The first start of a period that is at least a constant, or above it."""
    if not isinstance(value, dt.date):
        return None
    day, midnight = _moment(value)
    own = truncated(day, part)
    return own if own == day and midnight and not strict else _next(own, part)


def _next(start: dt.date, part: str) -> Any:
    """The start of the next period."""
    try:
        return following(start, part)
    except OverflowError:
        return NEVER


def first_of_year(value: Value, *, strict: bool) -> Any:
    """The first day of the first year that is at least a number, or above it."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    year = floor(value) + 1 if strict else ceil(value)
    return NEVER if year > dt.MAXYEAR else dt.date(max(year, dt.MINYEAR), 1, 1)
