"""What a question needs of its session: where to charge, and what to run on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.accounting.filters import BudgetFilter
from dither.errors import ArgumentError
from dither.ledger import Ledger

if TYPE_CHECKING:
    from dither.engines.base import Engine

__all__ = ["Desk"]


@dataclass(slots=True)
class Desk:
    """One session's engine, ledger and accounts; open until its session is closed.

    Parameters
    ----------
    engine : Engine
    ledger : Ledger
    accounts : mapping of str to BudgetFilter
        The accounts that every release is charged to, with their caps.
    delta : Fraction
        The budget's whole delta; 0 for a pure budget.
    release_delta : Fraction
        The delta of a release that names none.
    policy : str
        The digest of the policy.
    closed : bool
    process : int
        The process that opened it. The engine's threads do not live on in a fork.
    """

    engine: Engine
    ledger: Ledger
    accounts: Mapping[str, BudgetFilter]
    delta: Fraction
    release_delta: Fraction
    policy: str
    closed: bool = False
    process: int = field(default_factory=os.getpid)

    def open_accounts(self) -> None:
        """Write the accounts and their caps down, where the ledger does not have them yet.

        Only a question that is charged does so: until then the owner may still change the caps.
        """
        for name, budget in self.accounts.items():
            self.ledger.ensure_account(name, budget)

    def check_open(self) -> None:
        """Refuse to charge where the engine could not answer.

        Raises
        ------
        ArgumentError
            Where the session is closed, or was opened in another process.
        """
        if self.closed:
            raise ArgumentError("this session is closed; open another with dither.open")
        if self.process != os.getpid():
            raise ArgumentError(
                "this session was opened in another process, and its engine is not there after a "
                "fork; open a session in each process with dither.open"
            )
