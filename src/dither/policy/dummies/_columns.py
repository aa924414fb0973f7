"""Values of a column of dummy rows: what its public facts allow, and nothing else.

Everything follows from the facts and a seed. No value is read, of any table: what is drawn here
protects nobody, and needs to protect nobody.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dither.blocks._calendar import Calendar
from dither.plan.readings import MONTHS, TextReading, directives
from dither.plan.schema import ColumnFacts, Kind

if TYPE_CHECKING:
    import numpy as np

__all__ = ["POOL", "DummyColumn", "StoredColumns"]

POOL = 12
"""So many values has a column of which nothing is known but its kind."""

FIRST_DAY = dt.date(2024, 1, 1)
"""Where days begin of which nothing is known: a past year, whose blocks have begun."""

FIRST_MOMENT = dt.datetime(2024, 1, 1)
DAYS = 366
NULLS = 0.05
"""The share of NULL in a column that may have them."""

LONGEST = 3
"""Elements of a list, at most."""

_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True)
class StoredColumns:
    """What a source's schema says of the columns of a table.

    Parameters
    ----------
    kinds : mapping of str to Kind or None
        Of each column; ``None`` where its type is not read.
    lists : mapping of str to Kind
        Of columns that hold lists: the kind of their elements.
    zoned : frozenset of str
        Columns that hold moments with a time zone.
    labels : mapping of str to tuple of str
        Columns whose type lists its values, and these.
    """

    kinds: Mapping[str, Kind | None]
    lists: Mapping[str, Kind] = field(default_factory=dict)
    zoned: frozenset[str] = frozenset()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class DummyColumn:
    """What is public of one column, as dummy values are made of it.

    Parameters
    ----------
    facts : ColumnFacts
    stored : Kind
        As the source holds it: a CSV file holds dates as text.
    zoned : bool
    labels : tuple of str
    calendar : Calendar, optional
        How the table's rows are cut into blocks by this column.
    """

    facts: ColumnFacts
    stored: Kind
    zoned: bool = False
    labels: tuple[str, ...] = ()
    calendar: Calendar | None = None

    @classmethod
    def of(
        cls,
        facts: ColumnFacts,
        stored: Kind | None,
        *,
        zoned: bool = False,
        labels: tuple[str, ...] = (),
        calendar: Calendar | None = None,
    ) -> DummyColumn:
        """Where a column is read as text that its source holds as something else, and no list says
        which texts, they are those of what it holds."""
        stored = facts.kind if stored is None else stored
        if facts.kind is Kind.TEXT is not stored and facts.values is None:
            facts = replace(facts, kind=stored)
        return cls(facts, stored, zoned, labels, calendar)

    @property
    def listed(self) -> tuple[Any, ...] | None:
        """All values there may be, where they are listed."""
        if self.facts.values is not None:
            return self.facts.values
        if self.facts.kind is Kind.BOOLEAN:
            return (False, True)
        if self.facts.kind is Kind.TEXT and self.labels:
            return self.labels
        if self.calendar is not None and self.calendar.values is not None:
            return self.calendar.values
        return None

    @property
    def known(self) -> bool:
        """Whether more is known of its values than their kind."""
        return self.listed is not None or self._declared is not None

    @property
    def _declared(self) -> tuple[Any, Any] | None:
        """The least and the largest value by bounds, bins or blocks."""
        facts = self.facts
        if facts.lower is not None and facts.upper is not None:
            return facts.lower, facts.upper
        if facts.edges is not None:
            # The last edge belongs to no bin.
            return _inside(facts.edges[0], facts.edges[-1], facts.kind)
        if self.calendar is not None and self.calendar.edges is not None:
            return _about(self.calendar.edges)
        return None

    @property
    def ends(self) -> tuple[Any, Any]:
        """The least and the largest value, of numbers, days and moments."""
        found = self._declared
        if found is None:
            first, last = FIRST_DAY, FIRST_DAY + dt.timedelta(days=DAYS - 1)
            temporal = self.facts.kind.temporal
            found = (first, last) if temporal else (Fraction(1), Fraction(POOL))
        low: Any = found[0]
        high: Any = found[1]
        match self.facts.kind:
            case Kind.INTEGER:
                return math.ceil(low), max(math.ceil(low), math.floor(high))
            case Kind.TIMESTAMP:
                return _moment(low), _moment(high)
        return low, high

    def distinct(self, most: int) -> list[Any]:
        """Values that differ, at most so many: the first ones there are."""
        if self.listed is not None:
            return list(self.listed[:most])
        kind = self.facts.kind
        if kind is Kind.TEXT:
            return [f"dummy {i}" for i in range(1, most + 1)]
        low, high = self.ends
        if not self.known:
            # As many as are asked for; of days up to the year 9999.
            high = {
                Kind.DATE: dt.date.max,
                Kind.TIMESTAMP: FIRST_MOMENT + dt.timedelta(minutes=most - 1),
            }.get(kind, low + most - 1 if kind.numeric else None)
        match kind:
            case Kind.INTEGER:
                return list(range(int(low), min(int(high), int(low) + most - 1) + 1))
            case Kind.REAL:
                steps = self._steps(most)
                return list(dict.fromkeys(self._point(k, steps) for k in range(steps + 1)))[:most]
            case Kind.DATE:
                number = min(most, (high - low).days + 1)
                return [low + dt.timedelta(days=i) for i in range(number)]
        apart = max(_MICROSECOND, (high - low) // max(1, most - 1))
        return [low + i * apart for i in range(min(most, (high - low) // apart + 1))]

    def drawn(self, number: int, generator: np.random.Generator) -> list[Any]:
        """So many values, at random among what may be."""
        if self.listed is not None or self.facts.kind is Kind.TEXT:
            among = self.distinct(POOL if self.listed is None else len(self.listed))
            return [among[i] for i in generator.integers(0, len(among), number)]
        low, high = self.ends
        match self.facts.kind:
            case Kind.INTEGER:
                return list(generator.integers(low, high, number, endpoint=True).tolist())
            case Kind.REAL:
                steps = self._steps(10**6)
                places = generator.integers(0, steps, number, endpoint=True).tolist()
                return [self._point(k, steps) for k in places]
            case Kind.DATE:
                days = generator.integers(0, (high - low).days, number, endpoint=True).tolist()
                return [low + dt.timedelta(days=i) for i in days]
        seconds = (high - low) // dt.timedelta(seconds=1)
        places = generator.integers(0, seconds, number, endpoint=True).tolist()
        return [low + dt.timedelta(seconds=i) for i in places]

    def _steps(self, most: int) -> int:
        """Into how many steps the range of a real is cut."""
        low, high = map(Fraction, self.ends)
        if self.facts.step is None:
            return max(1, most - 1)
        step = self.facts.step
        return min(max(0, math.floor(high / step) - math.ceil(low / step)), 2**62)

    def _point(self, place: int, steps: int) -> float:
        low, high = map(Fraction, self.ends)
        if self.facts.step is not None:
            exact = (math.ceil(low / self.facts.step) + place) * self.facts.step
            return float(min(exact, high))
        return float(low + (high - low) * place / steps)

    def missing(self, number: int, generator: np.random.Generator) -> list[bool]:
        """Which of so many values are NULL."""
        if not self.facts.nullable:
            return [False] * number
        return [share < NULLS for share in generator.random(number).tolist()]

    def as_stored(self, values: Sequence[Any]) -> list[Any]:
        """The values as the source would hold them."""
        made = {value: self._one(value) for value in dict.fromkeys(values)}
        return [made[value] for value in values]

    def _one(self, value: Any) -> Any:
        if value is None:
            return None
        stored, kind = self.stored, self.facts.kind
        if stored is Kind.TEXT:
            return written(value, kind, self.facts.reading or TextReading())
        # What cannot be held is no value: it would be read as NULL, too.
        with suppress(ValueError, TypeError, OverflowError):
            return _converted(value, stored)
        return None


def _converted(value: Any, stored: Kind) -> Any:
    match stored:
        case Kind.INTEGER:
            return round(value) if isinstance(value, float) else int(value)
        case Kind.REAL:
            return float(value)
        case Kind.BOOLEAN:
            return value == "true" if isinstance(value, str) else bool(value)
        case Kind.DATE:
            day = dt.date.fromisoformat(value) if isinstance(value, str) else value
            return day.date() if isinstance(day, dt.datetime) else day
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    return _moment(moment)


def _moment(day: dt.date) -> dt.datetime:
    if isinstance(day, dt.datetime):
        return day
    return dt.datetime(day.year, day.month, day.day)


def _inside(low: Fraction, high: Fraction, kind: Kind) -> tuple[Fraction, Fraction]:
    if kind is Kind.INTEGER:
        return low, Fraction(math.ceil(high) - 1)
    return low, high - (high - low) / 1000


def _about(edges: Sequence[Any]) -> tuple[Any, Any]:
    """Ends such that every block between edges has values, and so have the two beyond."""
    low, high = edges[0], edges[-1]
    width = (high - low) / max(1, len(edges) - 1)
    if isinstance(low, dt.date):
        width = max(dt.timedelta(days=1), width)
        room = (low - dt.date.min, dt.date.max - high)
        return low - min(width, room[0]), high + min(width, room[1])
    return low - (width or 1), high + (width or 1)


def written(value: Any, kind: Kind, reading: TextReading) -> str:
    """A value as a text that is read as it, as a policy says that its kind is written.

    Examples
    --------
    >>> written(1.5, Kind.REAL, TextReading(decimal=","))
    '1,5'
    >>> written(dt.date(2024, 3, 1), Kind.DATE, TextReading(date_format="%d-%b-%y"))
    '01-Mar-24'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind.temporal and reading.date_format is not None:
        return "".join(
            _field(value, piece) if is_directive else piece
            for piece, is_directive in directives(reading.date_format)
        )
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return text.replace(".", reading.point)
    return str(value)


def _field(value: dt.date, letter: str) -> str:
    month = MONTHS[value.month - 1].title()
    time = value.time() if isinstance(value, dt.datetime) else dt.time()
    return {
        "d": f"{value.day:02}",
        "m": f"{value.month:02}",
        "Y": f"{value.year:04}",
        "y": f"{value.year % 100:02}",
        "b": month[:3],
        "B": month,
        "H": f"{time.hour:02}",
        "M": f"{time.minute:02}",
        "S": f"{time.second:02}",
    }[letter]
