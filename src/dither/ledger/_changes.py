"""What sets and changes the caps of accounts, and names the owner who may."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.errors import ArgumentError, LedgerError
from dither.ledger import _chain as chain
from dither.ledger._accounts import (
    AccountState,
    check_promise,
    check_text,
    has_blocks,
    is_quota,
    read_budget,
    same_caps,
)
from dither.ledger._block_budget import BlockBudget, Budget
from dither.ledger._entries import Tables, canonical, dated
from dither.ledger._owner import LedgerOwner, may_set, owner_note, read_owner, signer
from dither.ledger._shown import ShownLedger
from dither.ledger.stores._store import asking_role
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

if TYPE_CHECKING:
    from dither.ledger._signing import OwnerKey, PublicKey
    from dither.ledger._states import BlockState

__all__ = ["ChangedLedger", "caps_json", "carried", "check_blocks", "opened"]


class ChangedLedger(ShownLedger):
    """Opens accounts and changes caps; where the ledger has an owner, under their signature."""

    if TYPE_CHECKING:

        def _reading(self) -> AbstractContextManager[tuple[Connection, chain.Head]]: ...
        def _writing(self) -> AbstractContextManager[chain.Writing]: ...
        def _account(self, connection: Connection, name: str) -> AccountState: ...

    @property
    def owner(self) -> LedgerOwner | None:
        """Who signs what changes caps; ``None`` where nobody does."""
        with self._reading() as (connection, _):
            return read_owner(connection)

    def set_owner(
        self,
        owner: OwnerKey | PublicKey,
        *,
        key: OwnerKey | None = None,
        recovered: str | None = None,
    ) -> None:
        """Name the owner of the ledger, who signs what changes caps from then on.

        Parameters
        ----------
        owner : OwnerKey or PublicKey
            The new owner's.
        key : OwnerKey, optional
            The key of the owner until now, who hands it over. Left out where there was none.
        recovered : str, optional
            Why there is no signature of the owner until now, such as a lost key. It is kept for
            good and shown wherever the ledger is; caps may then only stay or fall, and no account
            of a data set is opened, until the old key signs.

        Raises
        ------
        LedgerError
            The ledger has an owner, and it is not their key that signs.
        """
        from dither.ledger._signing import OwnerKey

        if recovered is not None:
            check_text("recovered", recovered, limit=1000)
        signs = key or (owner if isinstance(owner, OwnerKey) else None)
        if signs is None:
            raise ArgumentError("key must be the secret key that signs: a public one cannot")
        public = owner.public if isinstance(owner, OwnerKey) else owner
        with self._writing() as writing:
            now = read_owner(writing.connection)
            note = owner_note(public, recovered, now, signs.public)
            writing.append("owner", totals={}, note=note, key=signs)

    def ensure_account(
        self, name: str, budget: Budget, promise: Promise, *, key: OwnerKey | None = None
    ) -> None:
        """Open an account with these caps and this promise; nothing happens where it has both.

        Parameters
        ----------
        name : str
            The account.
        budget : BudgetFilter or BlockBudget
            Its caps; `amend` changes them.
        promise : Promise
            The unit and the neighbours of everything that will be charged to it, for good.
        key : OwnerKey, optional
            The owner's, where the ledger has one.

        Raises
        ------
        PromiseError
            It is bound to another promise.
        LedgerError
            It has other caps, or the ledger has an owner who did not sign.
        """
        self.open_accounts({name: budget}, promise, key=key)

    def open_accounts(
        self,
        caps: Mapping[str, Budget],
        promise: Promise,
        *,
        key: OwnerKey | None = None,
        policy: str | None = None,
    ) -> list[str]:
        """Open accounts of one promise, all or none, as `ensure_account` does; the new ones.

        ``policy`` is as for `Ledger.charge`.
        """
        check_promise(promise)
        texts = caps_json(caps)

        def missing(connection: Connection) -> list[str]:
            accounts = {name: chain.read_account(connection, name) for name in texts}
            return [
                name
                for name, account in accounts.items()
                if not same_caps(account, texts[name], promise, policy)
            ]

        with self._reading() as (connection, _):
            if not missing(connection):
                return []
        with self._writing() as writing:
            new = missing(writing.connection)
            signs = signer(writing.connection, key, self.name) if new else None
            for name in new:
                opened(writing, name, texts[name], promise, signs)
        return new

    def _open_missing(
        self,
        writing: chain.Writing,
        texts: Mapping[str, str],
        promise: Promise,
        policy: str | None = None,
    ) -> None:
        """Open the accounts that are not there, in the transaction that charges them.

        Raises
        ------
        LedgerError
            One has other caps; or one is not there, and whoever charges may open none.
        """
        for name, text in texts.items():
            if not same_caps(chain.read_account(writing.connection, name), text, promise, policy):
                self._refuse_to_open(writing.connection, name)
                opened(writing, name, text, promise, None)

    def _refuse_to_open(self, connection: Connection, name: str) -> None:
        if (role := asking_role(connection)) is not None:
            raise LedgerError(
                f"account {name!r} is not open, and the role {role!r} may charge accounts and open "
                "none: the role that owns the ledger's tables opens them, with `dither ledger open "
                "POLICY`; nothing was charged"
            )
        if read_owner(connection) is not None:
            raise LedgerError(
                f"account {name!r} is not open, and {self.name} has an owner, who opens accounts: "
                "`dither ledger open POLICY --key OWNER.key`; nothing was charged"
            )

    def amend(
        self,
        name: str,
        budget: Budget,
        reason: str,
        *,
        key: OwnerKey | None = None,
        read_until: dt.date | None = None,
    ) -> None:
        """Change the caps of an account from now on; spending and promise stay as they are.

        Where the account had no blocks before, or others, all that it has spent so far counts in
        every block that had begun: it may have been spent on any of them.

        Parameters
        ----------
        name : str
            The account.
        budget : BudgetFilter or BlockBudget
            Its new caps.
        reason : str
            Kept for good.
        key : OwnerKey, optional
            The owner's, where the ledger has one.
        read_until : date, optional
            The last day of which rows may have been read so far; today where left out. It must be
            later where the tables held rows of days to come.

        Raises
        ------
        LedgerError
            There is no such account; or the ledger has an owner who did not sign, or whose key was
            recovered and who would raise caps.
        """
        check_text("reason", reason, limit=10_000)
        text = budget_json(name, budget)
        note = {"reason": reason}
        with self._writing() as writing:
            account = self._account(writing.connection, name)
            signs = signer(writing.connection, key, self.name)
            if refused := may_set(read_owner(writing.connection), name, text, account.budget_text):
                raise LedgerError(f"{refused}; nothing was changed")
            spending: dict[str, BlockState] = {}
            if isinstance(budget, BlockBudget):
                state = account.state
                if state is None or not _same_blocks(account.budget_text, text):
                    until = read_until or _today(writing.at.time)
                    note["read_until"] = until.isoformat()
                    state = carried(account, budget.calendar, until, writing.at.tables)
                spending[name] = state
            elif read_until is not None:
                raise ArgumentError("read_until must be left out: these caps are not for blocks")
            writing.append(
                "amend",
                totals={name: account.spent},
                promise=account.promise,
                note=note,
                budget=text,
                spending=spending,
                key=signs,
            )


def _today(last: str) -> dt.date:
    """The day by the clock, or that of the newest entry where the clock was set back."""
    return dt.datetime.fromisoformat(dated(last)).date()


def caps_json(accounts: Sequence[str] | Mapping[str, Budget]) -> dict[str, str]:
    """The caps that a charge names beside its accounts, as entries hold them."""
    caps = accounts if isinstance(accounts, Mapping) else {}
    return {name: budget_json(name, budget) for name, budget in caps.items()}


def check_blocks(blocks: BlockSet | None) -> None:
    """Refuse what is no set of blocks, or an empty one."""
    if blocks is None:
        return
    if not isinstance(blocks, BlockSet):
        raise ArgumentError("blocks must be a BlockSet, or left out")
    if not blocks:
        raise ArgumentError("blocks must hold at least one block: whatever reads no row is free")


def budget_json(name: str, budget: Budget) -> str:
    """The caps of an account as an entry holds them.

    Raises
    ------
    ArgumentError
        The name or the caps cannot be written, or are those of a quota alone.
    """
    from dither.ledger.quotas._caps import by_clock, is_own_rule

    check_text("name", name)
    text = canonical(budget.to_dict(), "budget")
    if (is_own_rule(budget) or by_clock(budget)) and not is_quota(name):
        raise ArgumentError(
            f"account {name!r} carries a promise: its caps are a BudgetFilter or a BlockBudget, "
            "and what a question, a window or a part may cost is for quotas beside it"
        )
    if has_blocks(text) and canonical(read_budget(text).to_dict(), "budget") != text:
        raise ArgumentError("budget must be read back as it was written")
    return text


def opened(
    writing: chain.Writing, name: str, budget: str, promise: Promise, key: OwnerKey | None
) -> None:
    """Write the entry that opens an account.

    Raises
    ------
    LedgerError
        Whoever signs may not.
    """
    from dither.ledger._states import NO_SPENDING

    if refused := may_set(read_owner(writing.connection), name, budget, None):
        raise LedgerError(f"{refused}; nothing was changed")
    writing.append(
        "account",
        totals={name: Charge()},
        promise=promise,
        note={},
        budget=budget,
        spending={name: NO_SPENDING} if has_blocks(budget) else {},
        key=key,
    )


def _same_blocks(one: str, other: str) -> bool:
    first, second = read_budget(one), read_budget(other)
    return (
        isinstance(first, BlockBudget)
        and isinstance(second, BlockBudget)
        and first.calendar.to_dict() == second.calendar.to_dict()
    )


def carried(
    account: AccountState, calendar: Calendar, until: dt.date, tables: Tables
) -> BlockState:
    """What the blocks of a calendar have spent where all that was spent may have been on each.

    A unit's loss is at most the sum of all charges so far, whichever of its rows they read. Rows of
    a block that began after ``until`` were not there to be read.
    """
    from dither.ledger._states import NO_SPENDING, units_of

    held = [name for name, table in tables.items() if table.promise == account.promise]
    begun = calendar.begun(until) | BlockSet.of_names(NULL, OTHERS)
    for name in held:
        begun |= BlockSet.of_table(name)
    return NO_SPENDING.plus(begun, units_of(account.spent))[0]
