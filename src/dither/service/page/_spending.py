"""What accounts have spent day by day, read from the ledger once and then only where it grew."""

from __future__ import annotations

import datetime as dt
import threading
from fractions import Fraction
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from dither.ledger._block_budget import BlockBudget
from dither.ledger._states import NO_SPENDING, BlockState, grain, units_of
from dither.ledger.pictures._rules import DrawnRule
from dither.ledger.quotas._caps import by_clock
from dither.ledger.quotas._forecast import whole_caps
from dither.privacy._charge import Charge

if TYPE_CHECKING:
    from dither.ledger import Balance, Ledger
    from dither.service._desk import Desk

__all__ = ["Outlook", "SpendingDays", "outlook", "periods", "spending_of"]

AT_ONCE = 1000
"""Entries that are read in one go, so that whoever charges is not kept waiting."""


class SpendingDays:
    """By account and day: what was charged, and of blocks what each had spent by its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger = ""
        self._last = -1
        self.days: dict[str, dict[dt.date, Charge]] = {}
        self.states: dict[str, dict[dt.date, BlockState]] = {}

    def read(self, ledger: Ledger) -> None:
        """Read what was written since the last time."""
        with self._lock:
            if ledger.id != self._ledger:
                self._ledger, self._last = ledger.id, -1
                self.days, self.states = {}, {}
            found = []
            before = None
            while True:
                part = ledger.entries(limit=AT_ONCE, kind="charge", before=before, after=self._last)
                found.append(part)
                if len(part) < AT_ONCE:
                    break
                before = part[0].number
            blocked: dict[str, bool] = {}
            for entry in (one for part in reversed(found) for one in part):
                assert entry.charge is not None
                day = entry.time.date()
                for name in entry.accounts:
                    days = self.days.setdefault(name, {})
                    days[day] = days[day] + entry.charge if day in days else entry.charge
                    if entry.blocks is None:
                        continue
                    if name not in blocked:
                        caps = ledger.balance(name).caps
                        blocked[name] = isinstance(caps, BlockBudget) and not by_clock(caps)
                    if blocked[name]:
                        states = self.states.setdefault(name, {})
                        last = next(reversed(states.values()), NO_SPENDING)
                        units = units_of(entry.charge.rounded_up(grain(entry.blocks)))
                        states[day] = last.plus(entry.blocks, units)[0]
                self._last = entry.number

    def spent(self, account: str, until: dt.date, since: dt.date | None = None) -> Charge:
        """What was charged from one day to another, both inside."""
        total = Charge()
        for day, charge in self.days.get(account, {}).items():
            if day <= until and (since is None or day >= since):
                total = total + Charge(charge.epsilon, charge.delta, charge.rho, charge.rho_delta)
        return total

    def state(self, account: str, until: dt.date) -> BlockState:
        """What each block had spent at the end of a day."""
        found = NO_SPENDING
        for day, state in self.states.get(account, {}).items():
            if day <= until:
                found = state
        return found

    def first(self, account: str) -> dt.date | None:
        """The day of its first charge."""
        return min(self.days.get(account, {}), default=None)


_known: WeakKeyDictionary[Desk, SpendingDays] = WeakKeyDictionary()


def spending_of(desk: Desk) -> SpendingDays:
    """That of a policy, as its ledger is now."""
    found = _known.setdefault(desk, SpendingDays())
    found.read(desk.session.ledger)
    return found


def periods(first: dt.date, last: dt.date, most: int = 12) -> list[tuple[str, dt.date]]:
    """The time between two days in at most so many parts: how each is called, and its last day.

    Days, else weeks, months, quarters or years; of longer times the newest are left.

    Examples
    --------
    >>> day = dt.date(2026, 11, 28)
    >>> [name for name, _ in periods(day - dt.timedelta(days=2), day)]
    ['2026-11-26', '2026-11-27', '2026-11-28']
    >>> periods(dt.date(2026, 9, 10), day)[0], len(periods(dt.date(2026, 1, 10), day))
    (('2026-W37', datetime.date(2026, 9, 13)), 11)
    """
    from dither.blocks._calendar import EVERY, Calendar

    for every in EVERY:
        calendar = Calendar(every=every)
        low, high = calendar.block_of(first), calendar.block_of(last)
        assert isinstance(low, int)
        assert isinstance(high, int)
        if high - low < most or every == EVERY[-1]:
            found = []
            for block in range(max(low, high - most + 1), high + 1):
                after = calendar.first(block + 1)
                end = last if after is None else min(last, after - dt.timedelta(days=1))
                found.append((calendar.label(block), end))
            return found
    raise AssertionError("years cut every time")


class Outlook:
    """When an account would be spent at a rate, which promises nothing.

    Parameters
    ----------
    kind : str
        ``"on"`` a day, ``"far"`` beyond all that matters, ``"idle"`` where nothing was charged in
        these days, ``"spent"`` already, or ``"anew"`` where no cap is of all time.
    day : date, optional
    rate : Fraction, optional
        What it spends a day, by the rule that is named.
    symbol : str
        ``"ε"`` or ``"ρ"``.
    """

    def __init__(
        self,
        kind: str,
        day: dt.date | None = None,
        rate: Fraction | None = None,
        symbol: str = "ε",
    ) -> None:
        self.kind, self.day, self.rate, self.symbol = kind, day, rate, symbol

    def __repr__(self) -> str:
        return f"<outlook: {self.kind}{'' if self.day is None else f' {self.day}'}>"


FAR = 365_000
"""Days from now that nobody needs a date of."""


def outlook(balance: Balance, recent: Charge, days: int, today: dt.date) -> Outlook:
    """At the rate of the last days, when the cap is reached.

    A filter admits what either of its two rules admits: it is spent once both are. Of a rule the
    delta may be spent before the rest is.

    Parameters
    ----------
    balance : Balance
    recent : Charge
        What was charged in so many days.
    days : int
    today : date
    """
    caps = whole_caps(balance)
    if caps is None:
        return Outlook("anew")
    gone = balance.spent + balance.reserved
    best: tuple[Fraction | None, DrawnRule] | None = None
    for rule in (DrawnRule("ε"), DrawnRule("ρ")):
        used, cap, pace = rule.of(gone), rule.cap(caps), rule.of(recent)
        share = rule.share(caps, gone)
        if used is None or cap is None or pace is None or share is None or share >= 1:
            continue
        left = [(cap - used) * days / pace] if pace else []
        if rule.delta(recent):
            left.append((rule.delta_cap(caps) - rule.delta(gone)) * days / rule.delta(recent))
        lasts = min(left, default=None)
        if best is None or (best[0] is not None and (lasts is None or lasts > best[0])):
            best = lasts, rule
    if best is None:
        return Outlook("spent")
    lasts, rule = best
    rate = (rule.of(recent) or Fraction(0)) / days
    if lasts is None:
        return Outlook("idle")
    if lasts > FAR:
        return Outlook("far", None, rate, rule.symbol)
    try:
        return Outlook("on", today + dt.timedelta(days=int(lasts)), rate, rule.symbol)
    except OverflowError:
        return Outlook("far", None, rate, rule.symbol)
