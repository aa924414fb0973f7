"""Reservations: budget that nobody else may spend until an hour that is fixed beforehand.

A reservation is an entry of the chain, and an account of its own that counts down. At every charge,
and whenever one is made, what an account has spent and all open reservations of it together must be
within its caps. When its hour comes a reservation lapses: the only refund that is safe, since it
follows from the clock and from nothing that ran.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, func, select

from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError
from dither.ledger._block_budget import BlockBudget, limits, within
from dither.ledger._states import NO_SPENDING, BlockState, Units, added, units_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    ReservedQuota,
    UnlockedQuota,
    by_clock,
    current,
)
from dither.ledger.stores._store import touches
from dither.privacy._charge import Charge

if TYPE_CHECKING:
    from dither.ledger._accounts import AccountState
    from dither.ledger._block_budget import Budget

__all__ = [
    "LONGEST",
    "PREFIX",
    "Held",
    "Reservation",
    "held_on",
    "is_reservation",
    "new_id",
    "open_reservations",
    "read_id",
    "read_until",
    "room",
    "without_reservations",
]

PREFIX = "reservation:"

LONGEST = timedelta(days=366)
"""So long a reservation may last."""

Held = tuple[Units, BlockSet | None]
"""What an open reservation still holds, and in which blocks."""

_NAMES = (
    select(func.distinct(touches.c["account"]))
    .where(touches.c["account"] > bindparam("after"), touches.c["account"] < PREFIX[:-1] + ";")
    .order_by(touches.c["account"])
)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is kept for whoever holds this.

    Parameters
    ----------
    id : str
        Who knows it may use the reservation. The ledger keeps its hash alone.
    amount : Charge
        What was reserved.
    until : datetime
        The hour in which it lapses, in UTC.
    entry : int
        The entry of the ledger that made it.
    """

    id: str
    amount: Charge
    until: datetime
    entry: int

    def describe(self) -> str:
        """The same in one line, without the id."""
        return f"entry {self.entry}: reserved until {self.until:%Y-%m-%d %H:%M}Z"

    def __repr__(self) -> str:
        return f"<reservation, {self.describe()}>"


def is_reservation(account: str) -> bool:
    """Whether an account is that of a reservation."""
    return account.startswith(PREFIX)


def without_reservations(accounts: Iterable[str]) -> set[str]:
    """Accounts, without those of reservations."""
    return {name for name in accounts if not is_reservation(name)}


def new_id() -> str:
    """What the holder of a reservation will know, and nobody else."""
    return secrets.token_hex(16)


def read_id(known: str) -> str:
    """An id that `new_id` made.

    Raises
    ------
    ArgumentError
        It is another text: whoever could guess it could use the reservation.
    """
    if not isinstance(known, str) or not re.fullmatch(r"[0-9a-f]{32}", known):
        raise ArgumentError("known must be an id as new_id makes it: 32 hexadecimal digits")
    return known


def holder_of(known: str) -> str:
    """The hash of what a holder knows."""
    return hashlib.sha256(f"dither reservation\n{known}".encode()).hexdigest()


def read_until(until: datetime, now: str) -> str:
    """The hour in which a reservation lapses, as the ledger writes hours.

    Raises
    ------
    ArgumentError
        It is no moment with a time zone, has passed, or lies too far ahead.
    """
    if not isinstance(until, datetime) or until.tzinfo is None:
        raise ArgumentError("until must be a moment with a time zone, as datetime(..., tzinfo=UTC)")
    begins = datetime.fromisoformat(now)
    hour = until.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if hour <= begins:
        raise ArgumentError(
            "until must lie at least an hour ahead by the clock of the ledger, which keeps hours"
        )
    if hour - begins > LONGEST:
        raise ArgumentError(f"until must be at most {LONGEST.days} days ahead")
    return hour.isoformat()


def open_reservations(connection: Connection, now: str) -> list[str]:
    """The accounts of reservations that have not lapsed at an hour."""
    found = connection.execute(_NAMES, {"after": f"{PREFIX}{now};"})
    return [row[0] for row in found]


def held_on(
    name: str,
    reservations: Sequence[AccountState],
    used: str | None = None,
    charge: Units = (0, 0, 0, 0),
) -> list[Held]:
    """What open reservations hold of an account, once one of them was used for a charge."""
    found = []
    for state in reservations:
        caps = state.budget
        if isinstance(caps, ReservedQuota) and name in caps.accounts:
            spent = units_of(state.spent)
            left = caps.left(added(spent, charge) if state.name == used else spent)
            found.append((left, caps.read))
    return found


def room(
    caps: Budget,
    spent: Units,
    state: BlockState | None,
    read: BlockSet | None,
    held: Iterable[Held],
    first: str,
    now: str,
) -> bool:
    """Whether caps bear what was spent, and beside it all that open reservations hold.

    Parameters
    ----------
    caps : budget
    spent, state : Units, BlockState or None
        What was spent, in all and in blocks, the charge of now included.
    read : BlockSet or None
        The blocks that are charged now; others have not changed.
    held : iterable of Held
    first, now : str
        The hours in which the account was opened, and of now.
    """
    total = spent
    for units, _ in held:
        total = added(total, units)
    if isinstance(caps, QuestionQuota | ReservedQuota):
        return True
    if isinstance(caps, UnlockedQuota):
        return within(limits(caps.at(first, now)), total)
    if not isinstance(caps, BlockBudget):
        return within(limits(caps), total)
    window = current(caps, now) if by_clock(caps) else None
    after = state or NO_SPENDING
    for units, blocks in held:
        where = window or blocks
        if where is not None:
            after, _ = after.plus(where, units)
    looked = window or read
    if looked is not None and not all(
        within(limits(caps.each), units) for _, units in after.within(looked)
    ):
        return False
    return caps.lifetime is None or within(limits(caps.lifetime), total)
