"""An opened policy: its engine, its ledger, and the accounts that releases are charged to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from dither.engines import Engine
from dither.errors import ArgumentError
from dither.ledger import Balance, Ledger
from dither.privacy import Charge, Promise
from dither.privacy._budget import BudgetFilter
from dither.query._facts import Fact
from dither.query._policy import Policy

__all__ = ["OpenedPolicy"]


class OpenedPolicy:
    """What a question needs of the session that it is asked in.

    Parameters
    ----------
    policy : Policy
    engine : Engine
    ledger : Ledger
    caps : mapping of str to BudgetFilter
        Whose accounts bear each charge (the data set's, the analyst's), with their caps.
    """

    def __init__(
        self, policy: Policy, engine: Engine, ledger: Ledger, caps: Mapping[str, BudgetFilter]
    ) -> None:
        self.policy = policy
        self.engine = engine
        self.ledger = ledger
        self.caps = dict(caps)
        self.closed = False
        self.facts: Mapping[tuple[str, str], Fact] = {}
        """By table and field: what the policy has learned, and where the ledger has it."""
        units = dict.fromkeys(unit.name for unit in policy.units.values())
        self.promises = tuple(policy.promise(unit) for unit in units)
        # The engine's threads do not live on in a fork.
        self._process = os.getpid()

    def close(self) -> None:
        """Give back the engine and the ledger; once is enough."""
        if not self.closed:
            self.closed = True
            self.engine.close()
            self.ledger.close()

    def accounts(self, unit: str) -> dict[str, BudgetFilter]:
        """The accounts that a release about this unit is charged to, with their caps.

        The first charge that they bear opens them: until then the owner may change the policy.
        """
        return {f"{whose}:{unit}": budget for whose, budget in self.caps.items()}

    def check_accounts(self) -> None:
        """Hold what the ledger has against the policy: caps, units and neighbours.

        Raises
        ------
        LedgerError
            Where an account that is written down has other caps, or another promise.
        """
        for promise in self.promises:
            units = self.policy.units.items()
            held = {table: unit.by for table, unit in units if unit.name == promise.unit}
            self.ledger.check(promise, accounts=self.accounts(promise.unit), tables=held)

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
        if self._process != os.getpid():
            raise ArgumentError(
                "this session was opened in another process, and its engine is not there after a "
                "fork; open a session in each process with dither.open"
            )
