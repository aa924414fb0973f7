"""The price of a block that is open is reserved, so that nobody else spends it before it closes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, LedgerError
from dither.ledger.quotas._reserved import new_id
from dither.privacy import Charge
from dither.service.schedule._asking import restricted
from dither.service.schedule._periods import TreeNode
from dither.service.schedule._settings import DeclaredSchedule
from dither.service.schedule._state import ScheduleState

if TYPE_CHECKING:
    from dither.session._session import Session

__all__ = ["open_reservation", "reserve"]

GRACE = dt.timedelta(days=7)
"""So long after a block has closed its reservation holds: what runs this may be down for days."""

LONGEST = dt.timedelta(days=366)


def open_reservation(
    session: Session, schedule: DeclaredSchedule, node: TreeNode, state: ScheduleState
) -> str | None:
    """The id of the reservation of some stretches of time; None where none is open."""
    known = state.known(schedule.name, node.low, node.high)
    if known is None:
        return None
    try:
        session.ledger.reserved(known)
    except LedgerError:
        # It has lapsed, or was never made.
        return None
    return known


def reserve(
    session: Session, schedule: DeclaredSchedule, node: TreeNode, state: ScheduleState
) -> None:
    """Reserve what a release of some stretches of time will cost, once.

    Raises
    ------
    BudgetError
        An account cannot bear it.
    """
    lapsed = state.known(schedule.name, node.low, node.high)
    if open_reservation(session, schedule, node, state) is not None:
        return
    opened = session._opened
    first = schedule.periods.first(node.low)
    after = schedule.periods.first(node.high + 1)
    plan = restricted(session, schedule, first, after)._plan
    (promise,) = (p for p in opened.promises if p.unit == plan.table.unit_name)
    calendar = opened.calendar(promise.unit)
    if calendar is None:
        return
    low, high = calendar.block_of(first), calendar.block_of(after)
    assert isinstance(low, int)
    assert isinstance(high, int)
    apart = high - low > 1 and (
        plan.job.unit is not None if schedule.running else plan.job.block_key is not None
    )
    blocks = BlockSet(((low, high - 1),), parallel=apart)
    each = schedule.each
    made = Charge.approximate(each, schedule.delta) if schedule.delta else Charge.pure(each)
    ends = dt.datetime.combine(after, dt.time(), dt.UTC) + dt.timedelta(hours=schedule.delay)
    clock = session.ledger.now()
    until = max(min(ends + GRACE, clock + LONGEST), clock + dt.timedelta(hours=2))
    # Written down first: after a crash it is found again, or was never made.
    known = state.keep(schedule.name, node.low, node.high, new_id(), lapsed)
    amount = (made * blocks.steps).promising(promise)
    accounts = opened.accounts(promise.unit)
    digest = session.policy.digest
    try:
        session.ledger.reserve(
            accounts, amount, until=until, blocks=blocks, known=known, policy=digest
        )
    except ArgumentError:
        # Another process, whose id it is, was quicker.
        if open_reservation(session, schedule, node, state) is None:
            raise
