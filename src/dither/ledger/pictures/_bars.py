"""A balance as bars: one for each block, or one for all."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import count_text, loss_text
from dither._format import remaining as left_text
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet, Range, name_of
from dither.ledger._states import charge_of
from dither.ledger.pictures._rules import CapShares, DrawnRule, rule_of
from dither.ledger.quotas._caps import QuestionQuota, ReservedQuota, UnlockedQuota
from dither.privacy._charge import Charge
from dither.privacy.accounts._budget import BudgetFilter

if TYPE_CHECKING:
    from dither.ledger._accounts import Balance
    from dither.ledger._block_budget import BlockSpending
    from dither.plots.budgets._bars import Bar

__all__ = ["MOST", "bars_of", "draw", "drawn"]

MOST = 600
"""So many blocks are drawn one by one."""

_STRETCHES = 60
"""Where blocks lie further apart, so many stretches that have spent the same are."""


def draw(balance: Balance, path: str | Path | None, title: str | None) -> Any:
    """The picture of a balance."""
    from dither.plots.budgets._bars import Whole, draw_bars

    held, reserved = balance.blocks, balance.reserved
    name = title or balance.name
    said = [balance.describe()]
    if balance.quota and not isinstance(balance.caps, BudgetFilter):
        said.append(balance.caps.describe())
    if held is not None:
        bars, rule, notes = bars_of(held)
        said += notes
        whole, cap, noun = (
            held.budget.lifetime,
            _number(rule.cap(held.budget.each)),
            held.budget.noun,
        )
        below = None
        if whole is not None:
            by = rule_of(whole, [balance.spent + reserved])
            below = _whole(f"all {noun}s together", whole, balance.spent, reserved, by)
            if by != rule:
                said.append(f"all {noun}s together: counted by {by.words}")
        capped = f"cap: {_capped(held, rule)} a {noun}"
        across = f"{noun} of the {'rows' if balance.window is None else 'charge'}"
        return draw_bars(
            bars, cap=cap, capped=capped, across=across, along=f"{rule.said} of each",
            symbol=rule.symbol, below=below,
            title=name, foot=_foot(said, rule), path=path,
        )  # fmt: skip
    caps, spent = balance.caps, balance.spent
    rule = DrawnRule("ε")
    match caps:
        case QuestionQuota():
            rule = rule_of(caps.each, [])
            cap = _number(rule.cap(caps.each))
            only = Whole("a question", 0.0, 0.0, cap, False, "", of="of one question")
            said.append(f"questions so far cost {_said(rule, spent)} together")
        case UnlockedQuota():
            rule = rule_of(caps.whole, [spent + reserved])
            only = _whole("all", caps.whole, spent, reserved, rule)
            open_now = rule.of(spent + reserved) or Fraction(0)
            more = balance.remaining.epsilon if rule.symbol == "ε" else balance.remaining.rho
            if more is not None:
                only = only.unlocked_at(float(open_now + more))
        case ReservedQuota():
            kept = charge_of(caps.amount)
            rule = DrawnRule("ε" if spent.epsilon is not None else "ρ")
            only = Whole(
                "reserved", _number(rule.of(spent)), 0.0, _number(rule.of(kept)),
                rule.of(spent) is None, _said(rule, spent),
            )  # fmt: skip
        case BudgetFilter():
            rule = rule_of(caps, [spent + reserved])
            only = _whole("all", caps, spent, reserved, rule)
        case _:
            raise AssertionError("caps of a kind that no picture knows")
    return draw_bars(
        [], cap=0.0, capped="", across="", along="", symbol=rule.symbol, below=only, title=name,
        foot=_foot(said, rule), path=path,
    )  # fmt: skip


def bars_of(held: BlockSpending) -> tuple[list[Bar], DrawnRule, list[str]]:
    """A bar for each block or stretch of blocks, the rule they count by, and notes on them."""
    from dither.plots.budgets._bars import Bar

    calendar, each, noun = held.budget.calendar, held.budget.each, held.budget.noun
    found = list(_stretches(calendar, held))
    names = sorted({*held.state.named, *held.reserved.named})
    # An account knows names by what was charged; a declared list of values has one of its own.
    names += [name for name in sorted(calendar.all.named) if calendar.values and name not in names]
    totals = [held.of(_any_of(at)) for at in found] + [held.of(name) for name in names]
    rule, notes = rule_of(each, totals), []
    if any(rule.share(each, total) is None for total in totals):
        rule = CapShares("share", caps=each)
    cap = rule.cap(each)
    bars = []
    every: list[Range | str] = [*found, *names]
    for at, total in zip(every, totals, strict=True):
        kept = held.reserved.of(at if isinstance(at, str) else _any_of(at))
        amount, part = rule.of(total), rule.part(total, charge_of(kept))
        closed = rule.share(each, total) is None
        spent = Fraction(0) if amount is None else amount - part
        one = isinstance(at, str) or (at[0] is not None and at[0] == at[1])
        bars.append(
            Bar(
                label=_label(calendar, at),
                spent=_number(cap) if closed else float(spent),
                reserved=0.0 if closed else float(part),
                closed=closed,
                stretch=not one,
                rank=0 if isinstance(at, str) or at[0] is None else _rank(calendar, at[0]),
                named=isinstance(at, str),
                said="closed" if closed else _amounts(rule, spent, part),
            )
        )
    if not any(bar.spent or bar.reserved for bar in bars):
        notes.append(f"no {noun} has spent anything")
    elif not one_by_one(held):
        notes.append(f"each stretch of {noun}s has one bar: each of them has spent as much")
    elif any(bar.stretch for bar in bars):
        notes.append(f"a stretch of {noun}s has one bar: each of them has spent as much")
    if (out := _left_out(calendar, held)) > 0:
        notes.append(f"{count_text(out, 'earlier stretch', 'earlier stretches')} left out")
    notes += _limits(held, rule, totals)
    return bars, rule, notes


def drawn(held: BlockSpending) -> list[tuple[str, BlockSet]]:
    """What `bars_of` has a bar for: how each is called, and its blocks."""
    calendar = held.budget.calendar
    found = [(_label(calendar, at), BlockSet((at,))) for at in _stretches(calendar, held)]
    names = sorted({*held.state.named, *held.reserved.named})
    return found + [(name_of(name), BlockSet.of_names(name)) for name in names]


def _limits(held: BlockSpending, rule: DrawnRule, totals: list[Charge]) -> Iterator[str]:
    """What else bounds a charge than the height of its block's bar."""
    each, whole, noun = held.budget.each, held.budget.lifetime, held.budget.noun
    if isinstance(rule, CapShares):
        return
    delta = max((rule.delta(total) for total in totals), default=Fraction(0))
    if delta:
        most = loss_text(rule.delta_cap(each))
        yield f"δ {loss_text(delta)} of {most} is spent where most is"
    cap = None if whole is None else rule.cap(whole)
    total = rule.of(held.total)
    if cap is None or total is None:
        return
    rest, most_left = max(cap - total, Fraction(0)), rule.cap(each)
    if most_left is not None and rest < most_left:
        yield (
            f"what is left of all {noun}s together, {rule.symbol} {left_text(rest)}, is the most "
            f"that any {noun} may still spend"
        )


def one_by_one(held: BlockSpending) -> bool:
    """Whether blocks between the first and the last change are drawn one by one."""
    cuts = _cuts(held)
    return not cuts or cuts[-1] - cuts[0] <= MOST or len(cuts) > _STRETCHES


def _cuts(held: BlockSpending) -> list[int]:
    """Where a stretch begins that has spent or reserved something else than the one before."""
    return sorted({*held.state.bounds, *held.reserved.bounds})


def _left_out(calendar: Calendar, held: BlockSpending) -> int:
    """How many stretches come before the first block that is drawn by itself."""
    cuts = _cuts(held)
    if calendar.every is None or not cuts or not one_by_one(held):
        return 0
    return sum(cut <= cuts[-1] - MOST for cut in cuts) if cuts[-1] - cuts[0] > MOST else 0


def _stretches(calendar: Calendar, held: BlockSpending) -> Iterator[Range]:
    """What is drawn, by first and last block: from the first change in spending to the last."""
    if calendar.every is None:
        (_, last), *_ = calendar.all.ranges
        assert last is not None
        first = max(0, last + 1 - MOST)
        yield from ((block, block) for block in range(first, last + 1))
        return
    cuts = _cuts(held)
    if not cuts:
        yield None, None
        return
    if not one_by_one(held):
        ends = [*(cut - 1 for cut in cuts), None]
        yield from _spent(held, zip([None, *cuts], ends, strict=True))
        return
    first = max(cuts[0], cuts[-1] - MOST)
    if first == cuts[0]:
        yield from _spent(held, [(None, first - 1)])
    yield from ((block, block) for block in range(first, cuts[-1]))
    yield from _spent(held, [(cuts[-1], None)])


def _spent(held: BlockSpending, ranges: Any) -> Iterator[Range]:
    """Those without the endless ones that have spent nothing."""
    for at in ranges:
        if None not in at or not held.of(_any_of(at)).free:
            yield at


def _any_of(at: Range) -> int:
    """A block of a stretch: all have spent the same."""
    low, high = at
    return low if low is not None else 0 if high is None else high


def _label(calendar: Calendar, at: Range | str) -> str:
    if isinstance(at, str):
        return name_of(at)
    if at == (None, None):
        return f"every {calendar.every}"
    return calendar.describe(BlockSet((at,)))


def _rank(calendar: Calendar, block: int) -> int:
    """How long a time begins with a block: 1 a month, 2 a quarter, 3 a year, 4 and 5 ten."""
    day = calendar.first(block)
    before = calendar.first(block - 1)
    if calendar.every is None or not isinstance(day, dt.date) or not isinstance(before, dt.date):
        return 0
    # A week is called by the year in which most of it lies.
    if calendar.every == "week":
        day, before = day + dt.timedelta(days=3), before + dt.timedelta(days=3)
    if day.year != before.year:
        return 5 if day.year % 10 == 0 else 4 if day.year % 5 == 0 else 3
    if day.month == before.month:
        return 0
    return 2 if day.month % 3 == 1 else 1


def _whole(label: str, caps: BudgetFilter, spent: Charge, reserved: Charge, rule: DrawnRule) -> Any:
    from dither.plots.budgets._bars import Whole

    closed = rule.share(caps, spent + reserved) is None
    cap = _number(rule.cap(caps))
    if closed:
        return Whole(label, cap, 0.0, cap, True, "all: what was charged cannot be added up")
    said = f"{_said(rule, spent)} of {left_text(rule.cap(caps) or 0)} spent"
    if not reserved.free:
        said += f", {_said(rule, reserved)} reserved"
    return Whole(label, _number(rule.of(spent)), _number(rule.of(reserved)), cap, False, said)


def _capped(held: BlockSpending, rule: DrawnRule) -> str:
    each = held.budget.each
    if isinstance(rule, CapShares):
        return f"ε {left_text(each.epsilon)}, δ {left_text(each.delta)}"
    return f"{rule.symbol} {left_text(rule.cap(each) or 0)}"


def _amounts(rule: DrawnRule, spent: Fraction, reserved: Fraction) -> str:
    """What stands on a bar."""
    if isinstance(rule, CapShares):
        return f"{-(-100 * (spent + reserved) // 1)} %"
    return loss_text(spent) + (f"\n+ {loss_text(reserved)}" if reserved else "")


def _said(rule: DrawnRule, charge: Charge) -> str:
    return f"{rule.symbol} {loss_text(rule.of(charge))}"


def _number(amount: Fraction | None) -> float:
    return 0.0 if amount is None else float(amount)


def _foot(said: list[str], rule: DrawnRule) -> str:
    return "; ".join([*said, f"counted by {rule.words}"])
