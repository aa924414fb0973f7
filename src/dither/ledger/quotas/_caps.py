"""Caps of quotas that are more than amounts: by question, by window of time, and unlocked in parts.

A quota limits what some may ask, and promises nothing to anybody: the promise is the data set's.
What a quota lets through is a function of the chain and of the hour that each entry has. No hour is
before that of an earlier entry, whatever clocks say, so no clock that is set back opens a window
again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeGuard

from dither import _checks as check
from dither._format import loss_text
from dither.blocks._calendar import EVERY, Calendar
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError
from dither.ledger._block_budget import BlockBudget, Budget, limits, within
from dither.ledger._states import Units, charge_of, units_of
from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter, Remaining

__all__ = [
    "EVERYBODY",
    "MOST_PARTS",
    "QuestionQuota",
    "ReservedQuota",
    "UnlockedQuota",
    "WindowQuota",
    "by_clock",
    "current",
    "holds",
    "is_own_rule",
    "read_caps",
    "read_quota",
    "say_quota",
    "window",
]

EVERYBODY = "everybody"
"""How the names of quotas begin that hold for all who ask."""

MOST_PARTS = 10_000
"""Into so many parts a budget may be cut."""


@dataclass(frozen=True, slots=True)
class QuestionQuota:
    """A quota for each charge by itself.

    Parameters
    ----------
    each : BudgetFilter
        What one charge may be.
    """

    each: BudgetFilter

    def describe(self) -> str:
        """The quota, in a few words."""
        return f"{_said(self.each)} a question"

    def remaining(self, total: Charge) -> Remaining:
        """What the next charge may be, whatever was charged before."""
        return self.each.remaining(Charge())

    def to_dict(self) -> dict[str, Any]:
        """The caps as exact text."""
        return {"most": self.each.to_dict()}


@dataclass(frozen=True, slots=True)
class WindowQuota(BlockBudget):
    """A quota for each window of time: what is charged in a week, whatever it reads.

    ``calendar`` cuts the time of charges, and not the rows.
    """

    def __post_init__(self) -> None:
        BlockBudget.__post_init__(self)
        if self.calendar.every is None or self.lifetime is not None:
            raise ArgumentError("a rate is of a stretch of time, such as a week, and of that alone")

    def describe(self) -> str:
        """The quota, in a few words."""
        return f"{_said(self.each)} a {self.noun}"

    def to_dict(self) -> dict[str, Any]:
        """The caps as exact text."""
        return BlockBudget.to_dict(self) | {"clock": "charges"}


@dataclass(frozen=True, slots=True)
class UnlockedQuota:
    """A quota that grows with time: one part in each window, from that of the account's opening on.

    Parameters
    ----------
    whole : BudgetFilter
        What may be spent once all parts are unlocked.
    every : str
        ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``.
    parts : int
        From 1 to ``MOST_PARTS``.
    """

    whole: BudgetFilter
    every: str
    parts: int

    def __post_init__(self) -> None:
        if not isinstance(self.whole, BudgetFilter):
            raise ArgumentError("whole must be a BudgetFilter, such as BudgetFilter(0.5)")
        if self.every not in EVERY:
            raise ArgumentError(f"every must be one of {', '.join(EVERY)}")
        check.whole("parts", self.parts, 1, MOST_PARTS)

    def describe(self) -> str:
        """The quota, in a few words."""
        return f"{_said(self.whole)}, unlocked in {self.parts} parts, one a {self.every}"

    def remaining(self, total: Charge) -> Remaining:
        """What may be charged once all parts are unlocked."""
        return self.whole.remaining(total)

    def begun(self, first: str, now: str) -> int:
        """How many parts are unlocked at an entry's time, in an account that was opened at one."""
        passed = window(self.every, now) - window(self.every, first)
        return min(max(passed, 0) + 1, self.parts)

    def at(self, first: str, now: str) -> BudgetFilter:
        """What may be spent in all by then."""
        return self.part(self.begun(first, now))

    def part(self, begun: int) -> BudgetFilter:
        """What may be spent in all once so many parts are unlocked."""
        return _part(self.whole, begun, self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The caps as exact text."""
        return {
            **self.whole.to_dict(),
            "unlock": {"every": self.every, "parts": str(self.parts)},
        }


@dataclass(frozen=True, slots=True)
class ReservedQuota:
    """The caps of a reservation's own account.

    Parameters
    ----------
    amount : Units
        What all that uses it may cost together.
    accounts : tuple of str
        Those that must be able to bear it.
    until : str
        The hour from which it holds nothing, as the ledger writes hours.
    holder : str
        SHA-256 of what its holder knows.
    read : BlockSet or None
        The blocks that it is for, where an account has a budget for each.
    """

    amount: Units
    accounts: tuple[str, ...]
    until: str
    holder: str
    read: BlockSet | None = None

    def describe(self) -> str:
        """The same, in a few words."""
        return f"what was reserved until {self.until[:13].replace('T', ' ')}:00Z"

    def bears(self, total: Units, now: str) -> bool:
        """Whether all that uses it may come to this, at an hour: by rho where epsilon is infinite.

        By the lesser of both a holder could spend more epsilon than was kept.
        """
        epsilon, delta, rho, rho_delta = self.amount
        if total[0] is not None:
            bears = total[0] <= (epsilon or 0) and total[1] <= delta
        else:
            bears = total[2] is not None and total[2] <= (rho or 0) and total[3] <= rho_delta
        return now < self.until and bears

    def left(self, used: Units) -> Units:
        """What it still holds."""
        epsilon, delta, rho, rho_delta = (
            max((whole or 0) - (whole or 0 if part is None else part), 0)
            for whole, part in zip(self.amount, used, strict=True)
        )
        return (epsilon, delta, rho, rho_delta)

    def remaining(self, total: Charge) -> Remaining:
        """What its holder may still charge to it."""
        left = charge_of(self.left(units_of(total)))
        return Remaining(left.epsilon, left.delta, left.rho, left.rho_delta)

    def to_dict(self) -> dict[str, Any]:
        """The caps as exact text."""
        return {
            "reserve": [str(amount) for amount in self.amount],
            "accounts": list(self.accounts),
            "until": self.until,
            "holder": self.holder,
            "read": None if self.read is None else self.read.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ReservedQuota:
        """Read back what `to_dict` wrote."""
        epsilon, delta, rho, rho_delta = map(int, stored["reserve"])
        read = stored["read"]
        return cls(
            (epsilon, delta, rho, rho_delta),
            tuple(map(str, stored["accounts"])),
            str(stored["until"]),
            str(stored["holder"]),
            None if read is None else BlockSet.from_dict(read),
        )


@lru_cache(maxsize=1024)
def _part(whole: BudgetFilter, parts: int, of: int) -> BudgetFilter:
    return BudgetFilter(whole.epsilon * parts / of, whole.delta * parts / of)


@lru_cache(maxsize=1024)
def window(every: str, time: str) -> int:
    """The number of the window that an entry's time lies in."""
    found = Calendar(every=every).block_of(dt.datetime.fromisoformat(time))
    assert isinstance(found, int)
    return found


def read_quota(
    stored: Mapping[str, Any],
) -> QuestionQuota | WindowQuota | UnlockedQuota | ReservedQuota | None:
    """The caps that ``to_dict`` of one of these wrote; ``None`` where it was of others.

    Raises
    ------
    ArgumentError
        It is of one of these, and was written by something else.
    """
    try:
        if "most" in stored:
            return QuestionQuota(BudgetFilter.from_dict(stored["most"]))
        if "clock" in stored:
            read = Calendar.from_dict(stored["blocks"])
            return WindowQuota(read, BudgetFilter.from_dict(stored["each"]))
        if "reserve" in stored:
            return ReservedQuota.from_dict(stored)
        if "unlock" in stored:
            how = stored["unlock"]
            return UnlockedQuota(
                BudgetFilter.from_dict(dict(stored)), how["every"], int(how["parts"])
            )
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError("a stored quota must hold what its kind does") from error
    return None


def read_caps(stored: Mapping[str, Any]) -> Budget:
    """The budget of an account, from what its ``to_dict`` wrote."""
    quota = read_quota(stored)
    if quota is not None:
        return quota
    if "blocks" in stored:
        return BlockBudget.from_dict(stored)
    return BudgetFilter.from_dict(dict(stored))


def say_quota(stored: Mapping[str, Any]) -> str | None:
    """Caps of one of these in a message; ``None`` of others."""
    found = read_quota(stored)
    return None if found is None else found.describe()


def by_clock(caps: object) -> TypeGuard[WindowQuota]:
    """Whether caps are for windows of time in which charges are made, and not of what they read."""
    return isinstance(caps, WindowQuota)


def is_own_rule(caps: object) -> TypeGuard[QuestionQuota | UnlockedQuota | ReservedQuota]:
    """Whether caps are more than a filter of the sum of charges."""
    return isinstance(caps, QuestionQuota | UnlockedQuota | ReservedQuota)


def holds(
    caps: QuestionQuota | UnlockedQuota | ReservedQuota,
    charge: Units,
    total: Units,
    first: str,
    now: str,
) -> bool:
    """Whether caps bear a charge that is made now.

    Parameters
    ----------
    caps : QuestionQuota, UnlockedQuota or ReservedQuota
    charge, total : Units
        The charge, and the sum of all with it.
    first, now : str
        The times of the entry that opened the account, and of the charge's.
    """
    if isinstance(caps, QuestionQuota):
        return within(limits(caps.each), charge)
    if isinstance(caps, UnlockedQuota):
        return within(limits(caps.at(first, now)), total)
    return caps.bears(total, now)


def current(caps: WindowQuota, now: str) -> BlockSet:
    """The window that a charge at this time is counted in, as a set of one block."""
    assert caps.calendar.every is not None
    number = window(caps.calendar.every, now)
    return BlockSet.of_range(number, number)


def _said(caps: BudgetFilter) -> str:
    delta: Fraction = caps.delta
    text = f"ε {loss_text(caps.epsilon)}"
    return f"{text} and δ {loss_text(delta)}" if delta else text
