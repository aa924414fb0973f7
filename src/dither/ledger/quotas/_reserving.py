"""Making and using reservations, inside the transactions of a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, LedgerError, PromiseError
from dither.ledger import _chain as chain
from dither.ledger._accounts import AccountState, checked_accounts
from dither.ledger._changes import ChangedLedger, caps_json, check_blocks
from dither.ledger._entries import canonical, dated
from dither.ledger._states import grain, units_of
from dither.ledger.quotas._caps import ReservedQuota
from dither.ledger.quotas._reserved import (
    PREFIX,
    Reservation,
    holder_of,
    is_reservation,
    new_id,
    open_reservations,
    read_id,
    read_until,
)
from dither.privacy._charge import Charge
from dither.privacy._loss import Loss, as_charge

if TYPE_CHECKING:
    from dither.ledger._accounts import Balance
    from dither.ledger._block_budget import Budget
    from dither.ledger._states import BlockState

__all__ = ["ReservingLedger", "check_use", "holder_account", "opened_reservations", "unfit"]


class ReservingLedger(ChangedLedger):
    """Keeps budget for whoever holds a reservation."""

    if TYPE_CHECKING:

        def _bear(
            self,
            connection: Connection,
            names: Sequence[str],
            charge: Charge,
            blocks: BlockSet | None,
            now: str,
        ) -> tuple[dict[str, Charge], dict[str, BlockState]]: ...

    def reserved(self, reservation: str) -> Balance:
        """What is left of the open reservation whose id this is, as of an account.

        Raises
        ------
        LedgerError
            There is none.
        """
        with self._reading() as (connection, at):
            now = dated(at.time)
            name = holder_account(connection, reservation, now)
            return self._account(connection, name).balance_at(now)

    def now(self) -> datetime:
        """The hour that an entry would have now, in UTC: none before that of the newest entry.

        So a clock that is set back ends nothing anew, and what waits for an hour waits once.
        """
        with self._reading() as (_, at):
            return datetime.fromisoformat(dated(at.time))

    def reserve(
        self,
        accounts: Sequence[str] | Mapping[str, Budget],
        amount: Loss | Charge,
        *,
        until: datetime,
        blocks: BlockSet | None = None,
        known: str | None = None,
        policy: str | None = None,
    ) -> Reservation:
        """Keep an amount of every account, for whoever holds what this returns; or of none.

        Parameters
        ----------
        accounts : sequence of str, or mapping of str to budget
            As for `Ledger.charge`, which opens those of a mapping likewise.
        amount : Loss or Charge
            What is kept, with its promise; above 0 and finite by both rules.
        until : datetime
            When it lapses, with a time zone: at the beginning of that hour, at least one ahead, and
            at most 366 days. It is fixed for good.
        blocks : BlockSet, optional
            The blocks that it is kept of, where an account has a budget for each.
        known : str, optional
            The id that its holder will know: whoever wrote it down beforehand, as `new_id` made it,
            finds the reservation again after a crash.
        policy : str, optional
            As for `Ledger.charge`.

        Returns
        -------
        Reservation
            Its ``id`` is what its holder knows; the ledger keeps a hash of it.

        Raises
        ------
        ArgumentError
            A parameter is out of range.
        BudgetError
            An account cannot bear it beside what it has spent and what others have reserved.
        """
        cost = as_charge(amount)
        promise = cost.promise
        if promise is None:
            raise PromiseError("the amount must say whom it protects: charge.promising(promise)")
        if cost.free or None in (cost.epsilon, cost.rho):
            raise ArgumentError("amount must be above 0, and finite")
        cost = cost.rounded_up(grain(blocks))
        names = checked_accounts(accounts)
        if any(map(is_reservation, names)):
            raise ArgumentError("accounts must not be reservations themselves")
        texts = caps_json(accounts)
        check_blocks(blocks)
        known = new_id() if known is None else read_id(known)
        holder = holder_of(known)
        with self._writing() as writing:
            connection = writing.connection
            now = dated(writing.at.time)
            lapses = read_until(until, now)
            for state in opened_reservations(connection, now):
                if isinstance(state.budget, ReservedQuota) and state.budget.holder == holder:
                    raise ArgumentError("known: there is an open reservation with this id already")
            self._open_missing(writing, texts, promise, policy)
            # As a charge would be borne, which is then not made.
            self._bear(connection, names, cost, blocks, now)
            quota = ReservedQuota(units_of(cost), tuple(sorted(names)), lapses, holder, blocks)
            record = writing.append(
                "reserve",
                time=now,
                totals={f"{PREFIX}{lapses}:{writing.at.count}": Charge()},
                promise=promise,
                note={},
                budget=canonical(quota.to_dict(), "budget"),
            )
        return Reservation(known, cost, datetime.fromisoformat(lapses), record.number)


def opened_reservations(
    connection: Connection, now: str, without: str | None = None
) -> list[AccountState]:
    """The reservations that have not lapsed, but one."""
    names = [name for name in open_reservations(connection, now) if name != without]
    found = (chain.read_account(connection, name) for name in names)
    return [state for state in found if state is not None]


def holder_account(connection: Connection, known: str, now: str) -> str:
    """The account of the reservation whose holder knows this.

    Raises
    ------
    LedgerError
        There is none, or it has lapsed: one is not told from the other.
    """
    if not isinstance(known, str):
        raise ArgumentError("reservation must be the id of a reservation, as text")
    holder = holder_of(known)
    for state in opened_reservations(connection, now):
        caps = state.budget
        if isinstance(caps, ReservedQuota) and caps.holder == holder:
            return state.name
    raise LedgerError("no open reservation has this id: it has lapsed, or there never was one")


def check_use(state: AccountState, names: Iterable[str], blocks: BlockSet | None) -> None:
    """See that a charge may use a reservation: of the same accounts, and within its blocks.

    Raises
    ------
    ArgumentError
        It may not; nothing is charged.
    """
    caps = state.budget
    assert isinstance(caps, ReservedQuota)
    if why := unfit(caps, names, blocks):
        raise ArgumentError(f"reservation: {why}; nothing was charged")


def unfit(caps: ReservedQuota, names: Iterable[str], blocks: BlockSet | None) -> str | None:
    """Why a charge may not use a reservation, if so."""
    if {name for name in names if not is_reservation(name)} != set(caps.accounts):
        return f"it is for the accounts {', '.join(caps.accounts)}"
    if blocks is not None and (caps.read is None or not blocks <= caps.read):
        return "it is for other blocks than the question reads"
    both = [read for read in (blocks, caps.read) if read is not None]
    if blocks != caps.read and any(read.parallel for read in both):
        return "it is for blocks that are read in another way"
    return None
