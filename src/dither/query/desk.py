"""What a question needs of its session: where to charge, and what to run on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.accounting.filters import BudgetFilter
from dither.errors import ArgumentError
from dither.ledger import Balance, Ledger
from dither.plan.relations import scans
from dither.privacy import Charge, Promise

if TYPE_CHECKING:
    from dither.engines.base import Engine
    from dither.plan.lower import Plan
    from dither.query.units import TableUnit

__all__ = ["Desk"]


@dataclass(slots=True)
class Desk:
    """One session's engine, ledger and accounts; open until its session is closed.

    Parameters
    ----------
    engine : Engine
    ledger : Ledger
    caps : mapping of str to BudgetFilter
        The caps of the data set and of the analyst who asks. Every unit has an account under each.
    delta : Fraction
        The budget's whole delta; 0 for a pure budget.
    release_delta : Fraction
        The delta of a release that names none.
    policy : str
        The digest of the policy.
    units : mapping of str to TableUnit
        By private table: whom it holds.
    closed : bool
    process : int
        The process that opened it. The engine's threads do not live on in a fork.
    """

    engine: Engine
    ledger: Ledger
    caps: Mapping[str, BudgetFilter]
    delta: Fraction
    release_delta: Fraction
    policy: str
    units: Mapping[str, TableUnit]
    closed: bool = False
    process: int = field(default_factory=os.getpid)

    def accounts(self, unit: str) -> dict[str, BudgetFilter]:
        """The accounts that a release about this unit is charged to, with their caps.

        The first charge that they bear opens them: until then the owner may change the policy.
        """
        return {f"{whose}:{unit}": budget for whose, budget in self.caps.items()}

    def check_accounts(self, promises: Iterable[Promise]) -> None:
        """Hold what the ledger has against the policy: caps, units and neighbours.

        Raises
        ------
        LedgerError
            Where an account that is written down has other caps, or another promise.
        """
        known = set(self.ledger.accounts())
        for promise in promises:
            for name, budget in self.accounts(promise.unit).items():
                if name in known:
                    self.ledger.ensure_account(name, budget, promise)
            held = {table: u.by for table, u in self.units.items() if u.name == promise.unit}
            self.ledger.check_tables(held, promise)

    def tables(self, plan: Plan) -> dict[str, str]:
        """The private tables that a plan reads, each with how its units are told."""
        read = (scan.table for scan in scans(plan.query.relation))
        return {name: self.units[name].by for name in read if name in self.units}

    def balances(self, promises: Iterable[Promise]) -> list[Balance]:
        """The accounts of every promise; one that was never charged has all of its caps left."""
        known = set(self.ledger.accounts())
        found = []
        for promise in promises:
            for name, budget in self.accounts(promise.unit).items():
                nothing = Charge(promise=promise)
                found.append(
                    self.ledger.balance(name)
                    if name in known
                    else Balance(name, promise, budget, nothing, budget.remaining(nothing))
                )
        return found

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
