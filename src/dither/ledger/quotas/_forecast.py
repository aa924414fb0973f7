"""Until when an account lasts, if charges go on as they did: a look ahead that promises nothing."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.privacy.accounts._budget import BudgetFilter

if TYPE_CHECKING:
    from dither.ledger._accounts import Balance
    from dither.privacy._charge import Charge

__all__ = ["Forecast", "forecast", "whole_caps"]

_HOUR = dt.timedelta(hours=1)
_DAY = dt.timedelta(days=1)
"""What was charged within less says nothing of a pace."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Until when an account lasts at the pace that it had so far.

    Parameters
    ----------
    until : date or None
        The day on which it would be spent; ``None`` where there is no such day.
    reason : str
        What there is to say instead.
    """

    until: dt.date | None
    reason: str = ""

    def describe(self) -> str:
        """The same in a few words: ``at this pace until 2026-03-03``."""
        return self.reason if self.until is None else f"at this pace until {self.until.isoformat()}"

    def __str__(self) -> str:
        return self.describe()


def forecast(balance: Balance) -> Forecast:
    """What an account's charges and their hours say of the days to come.

    The pace is what was spent since the hour of its first charge, by the rule of its filter that
    leaves it more room. Of blocks it is that of the lifetime.
    """
    caps = whole_caps(balance)
    if caps is None:
        return Forecast(None, "it begins anew with time")
    if balance.paced is None:
        return Forecast(None, "nothing was charged yet")
    used = _used(caps, balance.spent)
    if used is None:
        return Forecast(None, "spent")
    if not used:
        return Forecast(None, "nothing was charged yet")
    first, now = map(dt.datetime.fromisoformat, balance.paced)
    # An entry's hour is when that hour began: the charge came within it.
    passed = max(now - first, dt.timedelta(0)) + _HOUR
    if passed < _DAY:
        return Forecast(None, "its first charge is less than a day old")
    hours = Fraction(passed // _HOUR) * (1 - used) / used
    try:
        return Forecast((now + int(hours) * _HOUR).date())
    except OverflowError:
        return Forecast(None, "at this pace for longer than there are dates")


def whole_caps(balance: Balance) -> BudgetFilter | None:
    """The caps of all time; none where windows, blocks or questions bring new ones."""
    from dither.ledger._block_budget import BlockBudget
    from dither.ledger.quotas._caps import UnlockedQuota

    caps = balance.caps
    if isinstance(caps, UnlockedQuota):
        return caps.whole
    if isinstance(caps, BlockBudget):
        return caps.lifetime
    return caps if isinstance(caps, BudgetFilter) else None


def _used(caps: BudgetFilter, spent: Charge) -> Fraction | None:
    """The share that is used by the rule that leaves more room; none where both are closed."""
    left = caps.remaining(spent)
    shares = []
    for amount, cap, rest in (
        (spent.epsilon, caps.epsilon, left.epsilon),
        (spent.rho, caps.rho, left.rho),
    ):
        if rest is not None and cap is not None and amount is not None:
            shares.append(amount / cap)
    for amount, cap in ((spent.delta, caps.basic_delta), (spent.rho_delta, caps.rho_delta)):
        if amount and cap and shares:
            shares = [max(share, amount / cap) for share in shares]
    share = min(shares, default=None)
    return None if share is None or share >= 1 else share
