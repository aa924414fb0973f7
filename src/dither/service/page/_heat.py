"""Blocks and time as a picture: how full each block of a budget was at the end of each period."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither._format import percent
from dither.blocks._sets import BlockSet
from dither.ledger import Balance
from dither.ledger._block_budget import BlockBudget
from dither.ledger._states import BlockState, charge_of
from dither.ledger.pictures._bars import drawn
from dither.ledger.pictures._rules import DrawnRule
from dither.ledger.quotas._forecast import whole_caps
from dither.privacy import Charge
from dither.privacy.accounts._budget import BudgetFilter
from dither.service.page._spending import SpendingDays, periods

__all__ = ["HeatCell", "heat_of"]

ROWS = 24
"""Blocks that are drawn: the newest."""

ROW, LEFT, TOP, ACROSS = 28, 132, 24, 56
"""Pixels: a row's height, what its name takes, what names of periods take, a cell's width."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """How full one block was at one time.

    Parameters
    ----------
    share : Fraction or None
        Of its cap, by the rule that leaves it more room; None where nothing more may be charged.
    when : str
        The period's name; empty for now.
    """

    share: Fraction | None
    when: str

    @property
    def text(self) -> str:
        """In the cell: rounded up, so that it never says less than was spent."""
        if self.share is None:
            return "100 %"
        whole = -(-100 * self.share // 1)
        return f"{whole} %"

    @property
    def exact(self) -> str:
        """For the table: with a decimal."""
        return "100 %" if self.share is None else percent(self.share, turn=math.ceil)

    @property
    def step(self) -> int:
        """Its colour, from 0 for nothing to 5 for full."""
        if self.share is None or self.share >= 1:
            return 5
        return 0 if not self.share else 1 + int(self.share * 4)


def heat_of(balance: Balance, history: SpendingDays | None, now: dt.date) -> dict[str, Any]:
    """The picture of an account, and all that it says as a table.

    Parameters
    ----------
    balance : Balance
    history : SpendingDays, optional
        Without it there is one period, now: what an account had spent before is not for everybody.
    now : date
    """
    first = None if history is None else history.first(balance.name)
    times = [("", now)] if history is None or first is None else periods(first, now)
    rows: list[dict[str, Any]] = []
    hidden = 0
    held = balance.blocks
    if held is not None and isinstance(balance.caps, BlockBudget) and balance.window is None:
        blocks = drawn(held)
        hidden = max(0, len(blocks) - ROWS)
        states: list[BlockState] = [
            held.state if history is None or end >= now else history.state(balance.name, end)
            for _, end in times
        ]
        for label, at in blocks[hidden:]:
            cells = [
                HeatCell(_fullest(balance.caps.each, state, at), when)
                for state, (when, _) in zip(states, times, strict=True)
            ]
            rows.append({"label": label, "cells": cells})
    caps = whole_caps(balance)
    if caps is not None:
        cells = []
        for when, end in times:
            gone = balance.spent + balance.reserved
            if history is not None and end < now:
                gone = history.spent(balance.name, end)
            cells.append(HeatCell(_share(caps, gone), when))
        rows.append({"label": None, "cells": cells})
    return {
        "name": balance.name,
        "whom": balance.promise.describe(),
        "times": [when for when, _ in times],
        "rows": rows,
        "hidden": hidden,
        "width": LEFT + ACROSS * len(times),
        "height": TOP + ROW * len(rows),
        "row": ROW,
        "left": LEFT,
        "top": TOP,
        "across": ACROSS,
    }


def _fullest(caps: BudgetFilter, state: BlockState, blocks: BlockSet) -> Fraction | None:
    """Of several blocks the one that has least left: they are as full as one another now, and need
    not have been before."""
    found = [_share(caps, charge_of(units)) for _, units in state.within(blocks)]
    return None if None in found else max(one for one in found if one is not None)


def _share(caps: BudgetFilter, gone: Charge) -> Fraction | None:
    """By the rule that leaves more room; None where both have closed."""
    found = [rule.share(caps, gone) for rule in (DrawnRule("ε"), DrawnRule("ρ"))]
    return min((one for one in found if one is not None), default=None)
