"""What is known between two entries of a chain: accounts, tables, owner, and what is reserved."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import Any

from dither.ledger._block_budget import Budget, Limits
from dither.ledger._entries import FIRST, BoundTable
from dither.ledger._owner import LedgerOwner
from dither.ledger._states import NOTHING, BlockState, Units
from dither.ledger.quotas._caps import ReservedQuota
from dither.ledger.quotas._reserved import Held
from dither.privacy._promise import Promise

__all__ = ["AccountStanding", "Bad", "Standing"]


class Bad(Exception):
    """The first entry that is not what it must be."""

    def __init__(self, number: int | None, problem: str) -> None:
        super().__init__(problem)
        self.number, self.problem = number, problem


class AccountStanding:
    """An account between two entries."""

    __slots__ = (
        "budget",
        "caps",
        "charged",
        "each",
        "name",
        "opened",
        "promise",
        "promise_text",
        "spent",
        "state",
        "written",
    )

    def __init__(self, name: str) -> None:
        self.name = encode_basestring_ascii(name)
        self.budget: str | None = None
        self.caps: Budget | None = None
        self.promise: Promise | None = None
        self.promise_text: str | None = None
        self.spent: Units = NOTHING
        self.state: BlockState | None = None
        self.opened = ""
        """When it was."""
        self.each: Limits | None = None
        """What a block of it, or one charge, may spend."""
        self.charged: int | None = None
        """The last charge that was not held against caps yet."""
        self.written: int | None = None
        """The last entry that says what its blocks have spent."""


class Standing:
    """The state of a verification between two entries.

    Parameters
    ----------
    form : int
        The format of the ledger.
    """

    def __init__(self, form: int) -> None:
        self.form = form
        self.at = form
        """The format that the next entry is in."""
        self.count = 0
        self.hash = FIRST
        self.accounts: dict[str, AccountStanding] = {}
        self.tables: dict[str, BoundTable] = {}
        self.tables_text = "{}"
        self.owner: LedgerOwner | None = None
        self.notes: list[str] = []
        self.time = ""
        """The newest hour of an entry that is no answer; it never goes back."""
        self.reservations: dict[str, ReservedQuota] = {}
        """Those that have not lapsed, by their accounts."""

    def compared(self) -> tuple[Any, ...]:
        """All of it: two that are alike here go on alike, whatever entries come."""
        accounts = [
            (name, *(getattr(account, part) for part in AccountStanding.__slots__))
            for name, account in self.accounts.items()
        ]
        numbers = (self.form, self.at, self.count, self.hash, self.time)
        tables = (self.tables_text, list(self.tables.items()))
        reserved = list(self.reservations.items())
        return (*numbers, *tables, accounts, reserved, self.owner, list(self.notes))

    def _held(self, name: str, now: str) -> list[Held]:
        """What open reservations hold of an account."""
        return [
            (caps.left(self.accounts[at].spent), caps.read)
            for at, caps in self.reservations.items()
            if name in caps.accounts and caps.until > now
        ]
