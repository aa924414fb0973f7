"""What accounts have spent in all, by date, with their caps and a look ahead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import count_text, loss_text
from dither.ledger._accounts import Balance
from dither.ledger.pictures._rules import DrawnRule, rule_of
from dither.ledger.quotas._caps import QuestionQuota, ReservedQuota, read_caps
from dither.ledger.quotas._forecast import whole_caps
from dither.ledger.quotas._reserved import is_reservation
from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter

if TYPE_CHECKING:
    from dither.ledger._entries import Entry
    from dither.ledger._shown import ShownLedger
    from dither.plots.budgets._history import Line, UnitPanel

__all__ = ["draw"]

MOST_QUOTAS = 5
"""So many quotas are drawn beside a data set's account: those that have spent most."""


def draw(
    ledger: ShownLedger, path: str | Path | None, account: str | None, title: str | None
) -> Any:
    """The picture of a ledger over time."""
    from dither.plots.budgets._history import draw_history

    names = ledger.accounts() if account is None else [account]
    balances = [ledger.balance(name) for name in names if account or not is_reservation(name)]
    entries = ledger.entries()
    times = [datetime.fromisoformat(b.paced[1]) for b in balances if b.paced is not None]
    now = max([entries[-1].time, *times])
    panels = []
    for promise in dict.fromkeys(balance.promise for balance in balances):
        mine = [balance for balance in balances if balance.promise == promise]
        main = [balance for balance in mine if not balance.quota] or mine[:1]
        quotas = [balance for balance in mine if balance not in main]
        panels.append(_panel(main, quotas, entries, now, promise.describe()))
    foot = "; ".join(dict.fromkeys(note for panel in panels for note in panel.notes))
    return draw_history(panels, title=title or ledger.name, foot=foot, path=path)


def _panel(
    main: Sequence[Balance],
    quotas: Sequence[Balance],
    entries: Sequence[Entry],
    now: datetime,
    whom: str,
) -> UnitPanel:
    from dither.plots.budgets._history import UnitPanel

    caps = next((held for held in map(whole_caps, main) if held is not None), None)
    totals = [balance.spent for balance in main]
    rule = rule_of(caps if caps is not None else BudgetFilter(Fraction(1)), totals)
    if caps is None and any(total.epsilon is None for total in totals):
        # Without caps of all time there is only what can be added up.
        rule = DrawnRule("ρ")
    quotas = sorted(quotas, key=lambda one: (-(rule.of(one.spent) or 0), one.name))
    notes = []
    anew = [one for one in quotas if whole_caps(one) is None]
    if anew:
        notes.append("quotas of a question or of a window begin anew, and are not drawn")
    quotas = [one for one in quotas if one not in anew]
    if len(quotas) > MOST_QUOTAS:
        more = len(quotas) - MOST_QUOTAS
        notes.append(f"{count_text(more, 'quota', 'quotas')} that spent less not drawn")
    lines = [_line(balance, rule, entries, main=True) for balance in main]
    lines += [_line(balance, rule, entries, main=False) for balance in quotas[:MOST_QUOTAS]]
    if quotas:
        notes.append("quotas promise nothing, and their caps are not drawn")
    for balance in main:
        notes += _notes(balance, rule)
    notes.append(f"counted by {rule.words}")
    quota = main[0].quota
    heading = "a quota, which promises nothing" if quota else f"protects {whom}"
    return UnitPanel(heading, rule.symbol, tuple(lines), now, tuple(notes))


def _notes(balance: Balance, rule: DrawnRule) -> list[str]:
    """What the line of an account does not show."""
    notes = []
    if balance.blocks is not None:
        noun = balance.blocks.budget.noun
        if whole_caps(balance) is None:
            notes.append(f"each {noun} has a cap of its own, and there is none for all")
        else:
            notes.append(f"the cap is that of all {noun}s together; each has one of its own")
    if not balance.reserved.free:
        notes.append(f"{rule.symbol} {loss_text(rule.of(balance.reserved))} is reserved beside it")
    if balance.forecast().until is not None:
        notes.append("dashed: at the pace so far, which promises nothing")
    if rule.of(balance.spent) is None:
        notes.append(f"{balance.name} was charged what cannot be added up so, and its line ends")
    return notes


def _line(balance: Balance, rule: DrawnRule, entries: Sequence[Entry], *, main: bool) -> Line:
    """The steps of one account, and of its cap where it has one of all time."""
    from dither.plots.budgets._history import Line

    when: list[datetime] = []
    spent: list[float] = []
    caps: list[tuple[datetime, float]] = []
    total = Charge(promise=balance.promise)
    for entry in entries:
        if balance.name not in entry.accounts:
            continue
        if entry.kind == "charge" and entry.charge is not None:
            total = total + entry.charge
            amount = rule.of(total)
            if amount is None:
                continue
            if when and when[-1] == entry.time:
                # A ledger keeps hours: of one, what was spent at its end.
                spent[-1] = float(amount)
            else:
                when.append(entry.time)
                spent.append(float(amount))
        elif entry.budget is not None and main:
            cap = _cap(entry.budget, rule)
            if cap is not None:
                caps.append((entry.time, cap))
    until = balance.forecast().until if main else None
    if entries and not when:
        when, spent = [entries[0].time], [0.0]
    return Line(balance.name, tuple(when), tuple(spent), tuple(caps), main, until)


def _cap(stored: Any, rule: DrawnRule) -> float | None:
    """The cap of all time that an entry sets, if it does."""
    caps = read_caps(stored)
    if isinstance(caps, QuestionQuota | ReservedQuota):
        return None
    whole = caps if isinstance(caps, BudgetFilter) else getattr(caps, "lifetime", None)
    if whole is None:
        whole = getattr(caps, "whole", None)
    amount = None if whole is None else rule.cap(whole)
    return None if amount is None else float(amount)
