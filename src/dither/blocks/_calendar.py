"""A calendar: which block a value is in."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.blocks._sets import NULL, OTHERS, BlockSet, name_of
from dither.errors import ArgumentError

__all__ = ["EVERY", "Calendar"]

EVERY = ("day", "week", "month", "quarter", "year")
"""What a calendar may cut time into. A week begins on Monday."""

Value = Any
"""A date, a datetime, a number or a text."""

_LISTED = 4
"""So many stretches of a set are listed."""

_EPOCH_MONDAY = dt.date(1, 1, 1).toordinal()
"""The first of January of the year 1 was a Monday."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Which block a value is in: exactly one of the three is given.

    Parameters
    ----------
    every : str, optional
        One of ``EVERY``: blocks are these stretches of time.
    edges : tuple, optional
        Dates, or numbers, in ascending order. Block 0 lies below the first, block i from edge i-1
        on and below edge i.
    values : tuple, optional
        Texts or whole numbers; block i is the value at place i, and all others are ``OTHERS``.

    Examples
    --------
    >>> months = Calendar(every="month")
    >>> march = months.block_of(dt.date(2024, 3, 9))
    >>> months.label(march), months.first(march), months.first(march + 1)
    ('2024-03', datetime.date(2024, 3, 1), datetime.date(2024, 4, 1))
    >>> months.describe(BlockSet.of_range(march - 2, march) | BlockSet.of_names(NULL))
    '2024-01 to 2024-03, NULL'
    """

    every: str | None = None
    edges: tuple[Value, ...] | None = None
    values: tuple[Value, ...] | None = None

    def block_of(self, value: Value) -> int | str:
        """The number, or the name, of the block that a value is in. ``None`` is NULL."""
        if value is None:
            return NULL
        if self.values is not None:
            return self.values.index(value) if value in self.values else OTHERS
        if self.edges is not None:
            return bisect_right(self.edges, _as(self.edges[0], value))
        day = _day(value)
        match self.every:
            case "day":
                return day.toordinal()
            case "week":
                return (day.toordinal() - _EPOCH_MONDAY) // 7
            case "month":
                return day.year * 12 + day.month - 1
            case "quarter":
                return day.year * 4 + (day.month - 1) // 3
        return day.year

    def first(self, block: int) -> Value | None:
        """The least value of a block: the next block's is where it ends.

        ``None`` where there is none: below the first edge, beyond the last block, and beyond the
        years 1 to 9999. Not for declared values.
        """
        if self.edges is not None:
            return self.edges[block - 1] if 1 <= block <= len(self.edges) else None
        try:
            match self.every:
                case "day":
                    return dt.date.fromordinal(block)
                case "week":
                    return dt.date.fromordinal(block * 7 + _EPOCH_MONDAY)
                case "month":
                    return dt.date(block // 12, block % 12 + 1, 1)
                case "quarter":
                    return dt.date(block // 4, block % 4 * 3 + 1, 1)
            return dt.date(block, 1, 1)
        except (ValueError, OverflowError):
            return None

    @property
    def all(self) -> BlockSet:
        """Every block there can be."""
        if self.values is not None:
            return BlockSet(((0, len(self.values) - 1),), frozenset({NULL, OTHERS}))
        if self.edges is not None:
            return BlockSet(((0, len(self.edges)),), frozenset({NULL}))
        return BlockSet(((None, None),), frozenset({NULL}))

    def begun(self, today: dt.date) -> BlockSet:
        """The blocks that have begun by a day: which there are follows from the calendar alone."""
        if self.every is None:
            return self.all
        last = self.block_of(today)
        assert isinstance(last, int)
        return BlockSet(((None, last),), frozenset({NULL}))

    def label(self, block: int) -> str:
        """How a block is called: ``2024-03``, ``2024-Q1``, ``2024-W09``, ``[10, 20)``."""
        if self.values is not None:
            return str(self.values[block]) if 0 <= block < len(self.values) else f"block {block}"
        if self.edges is not None:
            low, high = self.first(block), self.first(block + 1)
            if low is None:
                return f"below {_shown(high)}"
            return f"from {_shown(low)}" if high is None else f"[{_shown(low)}, {_shown(high)})"
        day = self.first(block)
        if day is None:
            return f"{self.every} {block}"
        match self.every:
            case "day":
                return str(day.isoformat())
            case "week":
                year, week, _ = day.isocalendar()
                return f"{year}-W{week:02}"
            case "month":
                return f"{day.year:04}-{day.month:02}"
            case "quarter":
                return f"{day.year:04}-Q{(day.month + 2) // 3}"
        return f"{day.year:04}"

    def describe(self, blocks: BlockSet) -> str:
        """A set of blocks for people; at most a few are listed."""
        parts = [self._range(*held) for held in blocks.ranges[:_LISTED]]
        if len(blocks.ranges) > _LISTED:
            parts.append(f"{len(blocks.ranges) - _LISTED} more stretches")
        return ", ".join([*parts, *map(name_of, sorted(blocks.named))]) or "nothing"

    def reading(self, blocks: BlockSet) -> str:
        """What a question reads, and how many blocks that charges.

        Examples
        --------
        >>> Calendar(every="quarter").reading(BlockSet.of_range(8096, 8098))
        'reads 2024-Q1 to 2024-Q3; 3 blocks charged'
        """
        if blocks.endless:
            return f"reads {self.describe(blocks)}; each of these blocks charged"
        number = len(blocks)
        if blocks.parallel:
            return f"reads {self.describe(blocks)}, each by itself; {number:,} blocks charged"
        return f"reads {self.describe(blocks)}; {number:,} block{'s'[: number != 1]} charged"

    def _range(self, low: int | None, high: int | None) -> str:
        if low is None:
            return "all" if high is None else f"all up to {self.label(high)}"
        if high is None:
            return f"{self.label(low)} and later"
        return self.label(low) if low == high else f"{self.label(low)} to {self.label(high)}"

    def to_dict(self) -> dict[str, Any]:
        """As plain data, every number as text."""
        if self.every is not None:
            return {"every": self.every}
        kind, held = ("edges", self.edges) if self.values is None else ("values", self.values)
        return {kind: [_shown(value) for value in held or ()]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Calendar:
        """Read back what `to_dict` wrote: the same blocks under the same names.

        Declared values come back as text, since what is stored does not tell a number from one.

        Raises
        ------
        ArgumentError
            It is something else.
        """
        try:
            match dict(stored):
                case {"every": str(every)} if len(stored) == 1 and every in EVERY:
                    return cls(every=every)
                case {"edges": [_, *_] as edges} if len(stored) == 1:
                    return cls(edges=tuple(map(_edge, edges)))
                case {"values": [_, *_] as values} if len(stored) == 1:
                    return cls(values=tuple(map(str, values)))
        except (TypeError, ValueError, ZeroDivisionError):
            pass
        raise ArgumentError("a stored calendar must hold 'every', 'edges' or 'values'")


def _day(value: Value) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value


def _as(edge: Value, value: Value) -> Value:
    """A value as edges can be compared with it."""
    if isinstance(edge, dt.datetime) or not isinstance(edge, dt.date):
        return value
    return _day(value)


def _edge(text: str) -> Value:
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        # A number of eight digits would be read as a day: days are written with hyphens.
        if "-" in text[1:]:
            try:
                return read(text)
            except ValueError:
                continue
    return Fraction(text)


def _shown(value: Value) -> str:
    if isinstance(value, Fraction) and value.denominator != 1:
        return str(float(value)) if Fraction(str(float(value))) == value else str(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)
