"""Stretches of time, one after another; and the dyadic ones that a running count is made of.

The total of the first t of them is the sum of at most log2(t) + 1 numbers, one for each one in the
binary form of t: of 13 = 8 + 4 + 1 these are 1 to 8, 9 to 12, and 13. A stretch lies in one number
of each length, so in at most log2(T) + 1 of a horizon T.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from dither.blocks._calendar import Calendar
from dither.errors import PolicyError

__all__ = ["Periods", "TreeNode", "ending_at", "halves", "parts_of"]


@dataclass(frozen=True, slots=True)
class Periods:
    """Days, weeks, months, quarters or years, numbered from 1.

    Parameters
    ----------
    every : str
    begin : date
        A day of the first.

    Examples
    --------
    >>> months = Periods("month", dt.date(2024, 1, 15))
    >>> months.first(2), months.label(2), months.ended(dt.datetime(2024, 3, 1, tzinfo=dt.UTC), 0)
    (datetime.date(2024, 2, 1), '2024-02', 2)
    """

    every: str
    begin: dt.date

    @property
    def _calendar(self) -> Calendar:
        return Calendar(every=self.every)

    def _block(self, number: int) -> int:
        first = self._calendar.block_of(self.begin)
        assert isinstance(first, int)
        return first + number - 1

    def first(self, number: int) -> dt.date:
        """The first day.

        Raises
        ------
        PolicyError
            It lies beyond the year 9999.
        """
        found = self._calendar.first(self._block(number))
        if found is None:
            raise PolicyError("a schedule is for the years 1 to 9999")
        day: dt.date = found
        return day

    def label(self, number: int) -> str:
        """What it is called, as ``2024-03``."""
        return self._calendar.label(self._block(number))

    def ended(self, now: dt.datetime, delay: int) -> int:
        """How many have ended by a moment, so many hours ago."""
        moment = now.astimezone(dt.UTC) - dt.timedelta(hours=delay)
        found = self._calendar.block_of(moment.date())
        assert isinstance(found, int)
        return max(found - self._block(1), 0)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """The stretches of time from one number to another, both inside: a power of two of them."""

    low: int
    high: int


def ending_at(number: int) -> list[TreeNode]:
    """The dyadic stretches that end with one, the shortest first.

    Examples
    --------
    >>> [(one.low, one.high) for one in ending_at(12)]
    [(12, 12), (11, 12), (9, 12)]
    """
    found, length = [], 1
    while number % length == 0:
        found.append(TreeNode(number - length + 1, number))
        length *= 2
    return found


def parts_of(number: int) -> list[TreeNode]:
    """The dyadic stretches that make up all from 1 to a number, the longest first.

    Examples
    --------
    >>> [(one.low, one.high) for one in parts_of(13)]
    [(1, 8), (9, 12), (13, 13)]
    """
    found, low = [], 1
    for place in reversed(range(number.bit_length())):
        length = 1 << place
        if number & length:
            found.append(TreeNode(low, low + length - 1))
            low += length
    return found


def halves(node: TreeNode) -> list[TreeNode]:
    """The two that make it up; none of one stretch of time."""
    if node.low == node.high:
        return []
    middle = (node.low + node.high) // 2
    return [TreeNode(node.low, middle), TreeNode(middle + 1, node.high)]
