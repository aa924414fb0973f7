"""The sections ``[schedule.NAME]``: what is released when, and at which price."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.blocks._calendar import EVERY
from dither.errors import ArgumentError, PolicyError
from dither.policy._fields import LARGEST_EPSILON, Reader
from dither.service.publish._target import check_name
from dither.service.schedule._periods import Periods

__all__ = ["DeclaredSchedule", "read_schedules"]

LONGEST_DELAY = 24 * 366
"""Hours that a block may be left open after its end."""

LONGEST_HORIZON = 2**16
"""Blocks that a running count may go on for."""


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """One section.

    Parameters
    ----------
    name : str
        It names what is released, for good: a block that was released under it is never again.
    every : str
        ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``.
    sql : str
        The question. Where it names ``:first`` and ``:next`` these stand for the first day of the
        block and of the next one; else its rows are restricted to the block.
    epsilon, delta : Fraction
        What each block's release costs; of a running count, what a block costs in all.
    begin : date
        A day of the first block.
    publish : bool
        Whether what is released is published, with all that was before.
    running : bool
        Whether it is a running count.
    horizon : int
        Of a running count: how many blocks it is for.
    delay : int
        Hours after its end for which a block is not closed yet, since rows come late.
    confidence : float
        Of the intervals.
    """

    name: str
    every: str
    sql: str
    epsilon: Fraction
    delta: Fraction
    begin: dt.date
    publish: bool = False
    running: bool = False
    horizon: int = 0
    delay: int = 0
    confidence: float = 0.95

    @property
    def periods(self) -> Periods:
        """The blocks that it is for."""
        return Periods(self.every, self.begin)

    @property
    def levels(self) -> int:
        """Of a running count: in how many numbers each block is counted, at most."""
        return self.horizon.bit_length()

    @property
    def each(self) -> Fraction:
        """What one release costs."""
        return self.epsilon / self.levels if self.running else self.epsilon


def read_schedules(section: Mapping[str, Any]) -> list[DeclaredSchedule]:
    """The sections, in the order of the file.

    Raises
    ------
    PolicyError
        A field is missing or wrong.

    Examples
    --------
    >>> (found,) = read_schedules(
    ...     {
    ...         "visits": {
    ...             "every": "day",
    ...             "sql": "SELECT COUNT(*) AS n FROM visits",
    ...             "epsilon": "0.1",
    ...             "begin": "2024-01-01",
    ...         }
    ...     }
    ... )
    >>> found.name, found.every, found.epsilon
    ('visits', 'day', Fraction(1, 10))
    """
    return [_read(name, Reader(body, f"schedule.{name}")) for name, body in section.items()]


def _read(name: str, part: Reader) -> DeclaredSchedule:
    try:
        check_name(name, part.where)
    except ArgumentError as error:
        raise PolicyError(str(error)) from None
    every = part.required_text("every")
    if every not in EVERY:
        raise PolicyError(f"{part.where}.every must be one of {', '.join(EVERY)}")
    sql, running = part.required_text("sql"), part.flag("running", False)
    epsilon, delta = part.number("epsilon"), part.number("delta", Fraction(0))
    if epsilon is None or not 0 < epsilon <= LARGEST_EPSILON:
        raise PolicyError(f"{part.where}.epsilon must be given, above 0")
    if not 0 <= delta < 1:
        raise PolicyError(f"{part.where}.delta must lie in [0, 1)")
    begin = part.take("begin")
    if isinstance(begin, str):
        try:
            begin = dt.date.fromisoformat(begin)
        except ValueError:
            begin = None
    if not isinstance(begin, dt.date) or isinstance(begin, dt.datetime):
        raise PolicyError(
            f"{part.where}.begin must be a day of the first block, such as 2026-03-01"
        )
    horizon = part.whole("horizon", LONGEST_HORIZON)
    if running and horizon is None:
        raise PolicyError(
            f"{part.where}.horizon is missing: say how many blocks the running count is for, since "
            "its noise depends on it"
        )
    if running and delta:
        raise PolicyError(f"{part.where}.delta must be 0: a running count's noise spends none")
    if not running and horizon is not None:
        raise PolicyError(f"{part.where}.horizon is for running counts: add running = true")
    delay = _delay(part)
    confidence = float(part.number("confidence", Fraction(19, 20)))
    if not 0 < confidence < 1:
        raise PolicyError(f"{part.where}.confidence must lie in (0, 1)")
    publish = part.flag("publish", False)
    part.finish()
    return DeclaredSchedule(
        name, every, sql, epsilon, delta, begin, publish, running, horizon or 0, delay, confidence
    )


def _delay(part: Reader) -> int:
    given = part.take("delay")
    if given is None:
        return 0
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= LONGEST_DELAY:
        raise PolicyError(
            f"{part.where}.delay must be whole hours, from 0 to {LONGEST_DELAY:,}: for so long "
            "after its end rows of a block may still come"
        )
    return given
