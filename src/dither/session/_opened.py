"""An opened policy: its engine, its ledger, and the accounts that releases are charged to."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Any

from dither._search import greatest_decimal
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.engines import FAILED, Engine
from dither.engines.identity import same_rows
from dither.errors import ArgumentError, BudgetError, EngineError, LedgerError
from dither.ledger import Balance, Charged, Entry, Ledger
from dither.ledger._accounts import Balances
from dither.ledger._block_budget import BlockBudget, Budget
from dither.ledger.quotas._reserved import Reservation, without_reservations
from dither.policy._canonical import hashed
from dither.policy._facts import Fact
from dither.policy._policy import Policy
from dither.policy._publishing import EVERYBODY
from dither.privacy import Charge, Loss, Promise
from dither.privacy.accounts._budget import BudgetFilter
from dither.session._charged import within_charge
from dither.session._signer import Signer

__all__ = [
    "DATASET",
    "UNSTORED",
    "OpenedPolicy",
    "accounts_of",
    "after_the_charge",
    "check_accounts",
]

DATASET = "dataset"
"""Every release of a policy is charged to the account of its unit under this name."""

UNSTORED = (
    "the answer could not be stored in the ledger: keep this copy, since its token cannot replay "
    "it and its certificate cannot be verified"
)


def check_accounts(policy: Policy, caps: Mapping[str, Budget], ledger: Ledger) -> None:
    """Hold what a ledger has against a policy: caps, units and neighbours.

    Raises
    ------
    LedgerError
        Where an account that is written down has other caps, or another promise.
    """
    for promise in _promises(policy):
        units = policy.units.items()
        held = {table: unit.by for table, unit in units if unit.name == promise.unit}
        accounts = _accounts(policy, caps, promise.unit)
        ledger.check(promise, accounts=accounts, tables=held, policy=policy.digest)


def _promises(policy: Policy) -> tuple[Promise, ...]:
    """What a policy promises, once for each of its units."""
    return tuple(map(policy.promise, dict.fromkeys(unit.name for unit in policy.units.values())))


def _accounts(policy: Policy, caps: Mapping[str, Budget], unit: str) -> dict[str, Budget]:
    """The accounts of a unit, by their whole names.

    Where what the data set promises is for each block, so are quotas of amounts: then they add up
    to what a block has.
    """
    found = {f"{whose}:{unit}": budget for whose, budget in caps.items()}
    in_blocks = policy.block_budgets.get(unit)
    if in_blocks is not None:
        for name, budget in found.items():
            if isinstance(budget, BudgetFilter):
                found[name] = BlockBudget(in_blocks.calendar, budget)
        found[f"{DATASET}:{unit}"] = in_blocks
    return found


def accounts_of(policy: Policy) -> dict[Promise, dict[str, Budget]]:
    """Every account of a policy with its caps, by whom it protects."""
    caps: dict[str, Budget] = {DATASET: policy.budget, **policy.quotas.caps}
    return {promise: _accounts(policy, caps, promise.unit) for promise in _promises(policy)}


class OpenedPolicy:
    """What a question needs of the session that it is asked in.

    Parameters
    ----------
    policy : Policy
    engine : Engine
    ledger : Ledger
    caps : mapping of str to budget
        Whose accounts bear each charge (the data set's, and quotas), with their caps.
    signer : Signer, optional
        The owner's key, which signs certificates.
    asker : str, optional
        The analyst who asks; None where the policy tells nobody apart.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        ledger: Ledger,
        caps: Mapping[str, Budget],
        signer: Signer | None = None,
        asker: str | None = None,
    ) -> None:
        self.policy = policy
        self.signer, self.asker = signer, asker
        self.engine = within_charge(engine)
        self.ledger = ledger
        self.caps = dict(caps)
        self.reservation: str | None = None
        """What the holder of a reservation knows, where charges are to use it."""
        self.dummy = False
        """Whether its rows are dummy rows: then every certificate says so."""
        self.closed = False
        self.apart = False
        """Whether tokens are their asker's own even where one stands in the ledger as it is."""
        self.elsewhere: Any = None
        """What releases a request where the policy is opened elsewhere, as at a service."""
        self.shown: Callable[[str], Collection[int]] | None = None
        """From a request to the entries that may be shown, where accounts do not tell askers apart
        and whoever opened the policy for many does; None where the ledger alone tells."""
        self.facts: Mapping[tuple[str, str], Fact] = {}
        """By table and field: what the policy has learned, and where the ledger has it."""
        self.promises = _promises(policy)
        # The engine's threads do not live on in a fork.
        self._process = os.getpid()

    def check_sources(self) -> None:
        """See that no rows that another account was charged for are read under another name.

        Raises
        ------
        PromiseError
            Where a table of the policy has rows of another account's table.
        """
        sources = self._sources()
        for promise in self.promises:
            units = self.policy.units.items()
            held = {table: unit.by for table, unit in units if unit.name == promise.unit}
            self.ledger.check(promise, tables=held, sources=sources, same=same_rows)

    def _sources(self) -> dict[str, Mapping[str, str]]:
        """By private table of the policy: what its rows are known by."""
        return {name: self.engine.sources(name) for name in self.policy.units}

    def close(self) -> None:
        """Give back the engine and the ledger; once is enough."""
        if not self.closed:
            self.closed = True
            self.engine.close()
            self.ledger.close()

    def accounts(self, unit: str) -> dict[str, Budget]:
        """The accounts that a release about this unit is charged to, with their caps.

        The first charge that they bear opens them: until then the owner may change the policy.
        """
        return _accounts(self.policy, self.caps, unit)

    def calendar(self, unit: str) -> Calendar | None:
        """How a unit's rows are cut into blocks, where each has a budget."""
        return self.policy.calendars.get(unit)

    def blocks_data(self, unit: str, blocks: BlockSet | None) -> dict[str, Any] | None:
        """What is read, for a certificate: the blocks by number, and what the numbers stand for."""
        calendar = self.calendar(unit)
        if calendar is None or blocks is None:
            return None
        return {"calendar": calendar.to_dict(), **blocks.to_dict()}

    def balances(self, promises: Iterable[Promise]) -> Balances:
        """The accounts of every promise; one that was never charged has all of its caps left."""
        known = set(self.ledger.accounts())
        found = Balances()
        own = self.reservation
        for promise in promises:
            for name, budget in self.accounts(promise.unit).items():
                nothing = Charge(promise=promise)
                found.append(
                    self.ledger.balance(name, reservation=own)
                    if name in known
                    else Balance.of(name, promise, budget, nothing, None)
                )
            if own is not None and (kept := self.ledger.reserved(own)).promise == promise:
                found.append(kept)
        return found

    def reserve(
        self, amount: Charge, promise: Promise, until: datetime, blocks: BlockSet | None
    ) -> Reservation:
        """Keep an amount of every account of a unit, as `Ledger.reserve` does."""
        return self.ledger.reserve(
            self.accounts(promise.unit),
            amount.promising(promise),
            until=until,
            blocks=blocks,
            policy=self.policy.digest,
        )

    def replay(self, promise: Promise, token: str | None, request: str) -> Charged | None:
        """The answer of the same request under the same token; nothing is ever charged.

        Sources may have changed or gone since: what was answered was answered.
        """
        if token is None:
            return None
        accounts, name = list(self.accounts(promise.unit)), self._own(promise, token)
        return self.ledger.replay(accounts, token=name, request=request)

    def charged(self, promise: Promise, token: str) -> Entry | None:
        """The charge that was made under a token of this asker; None where there is none."""
        return self.ledger.charged(self._own(promise, token))

    def _own(self, promise: Promise, token: str) -> str:
        """The name that the ledger has for a token of this asker, and of nobody else.

        Two analysts may choose one token: neither sees by it that the other asked anything.
        """
        if self.asker is None:
            return token
        # Before tokens were their asker's own, they stood there as they are.
        earlier = None if self.apart else self.ledger.charged(token)
        if earlier is not None and without_reservations(earlier.accounts) == set(
            self.accounts(promise.unit)
        ):
            return token
        return hashed("token", {"asker": self.asker, "token": token})

    def versions(self, tables: Iterable[str], ledger: str | None = None) -> dict[str, str]:
        """By table: the version of its data, as it is now; empty without the owner's key.

        Parameters
        ----------
        tables : iterable of str
        ledger : str, optional
            The ledger's identity, where it is known.
        """
        if self.signer is None:
            return {}
        sources = {name: list(self.engine.sources(name)) for name in tables}
        return self.signer.versions(self.ledger.id if ledger is None else ledger, sources)

    def published(self, promise: Promise, request: str) -> list[tuple[Entry, str]]:
        """Earlier answers to one request that this asker may see, oldest first.

        What a policy says of its audience is part of the request: so an answer is shown to whom it
        was released to, and to nobody who came to be told later. Nothing of this reads data.
        """
        return self._seen(promise, self.ledger.answers_to(request))

    def seen(self, promise: Promise) -> list[tuple[Entry, str]]:
        """Earlier answers to any request under this policy that this asker may see, oldest first.

        As of `published`: an entry of another policy is not among them, whose audience may be
        another.
        """
        found = self._seen(promise, self.ledger.answered("policy"))
        return [(e, answer) for e, answer in found if e.note.get("policy") == self.policy.digest]

    def _seen(
        self, promise: Promise, found: Iterable[tuple[Entry, str]]
    ) -> list[tuple[Entry, str]]:
        own = set(self.accounts(promise.unit))
        everybody = self.policy.releases.audience == EVERYBODY
        if self.shown is not None and not everybody:
            found = [one for one in found if one[0].number in self.shown(one[0].request or "")]
        return [
            (entry, answer)
            for entry, answer in found
            if entry.promise == promise
            and (everybody or without_reservations(entry.accounts) == own)
        ]

    def charge(
        self,
        loss: Loss,
        promise: Promise,
        *,
        token: str | None,
        request: str,
        note: Mapping[str, Any],
        tables: Mapping[str, str],
        fits: Callable[[], str],
        blocks: BlockSet | None = None,
    ) -> Charged:
        """Charge every account of a unit; on the disk when this returns.

        Parameters
        ----------
        loss, request, tables
            As of `Ledger.charge`.
        promise : Promise
        token : str or None
            One that nobody knows where left out.
        note : mapping
            What the ledger notes, beside the policy.
        fits : callable
            A sentence on what would still fit, for the message of a refusal.
        blocks : BlockSet, optional
            What is read of rows that lie in blocks: each bears the charge.

        Raises
        ------
        BudgetError
            An account cannot bear it; nothing is spent.
        """
        try:
            return self.ledger.charge(
                self.accounts(promise.unit),
                loss,
                token=secrets.token_hex(16) if token is None else self._own(promise, token),
                request=request,
                note={**note, "policy": self.policy.digest},
                tables=tables,
                sources=self._sources(),
                same=same_rows,
                blocks=blocks,
                reservation=self.reservation,
                policy=self.policy.digest,
            )
        except BudgetError as error:
            calendar = self.calendar(promise.unit)
            read = ""
            if calendar is not None and blocks is not None:
                read = f"The question {calendar.reading(blocks)}. "
            raise BudgetError(f"{str(error).rstrip('.')}. {read}{fits()}") from None

    def stored(self, charged: Charged, answer: str) -> bool:
        """Keep an answer beside its charge; false where the ledger cannot.

        It is paid for and protected, so whoever asked hands it over all the same.
        """
        try:
            self.ledger.store_answer(charged.entry, answer)
        except LedgerError:
            return False
        return True

    def largest_epsilon(
        self,
        promise: Promise,
        charge: Callable[[Fraction], Charge | None],
        most: Fraction,
        blocks: BlockSet | None = None,
    ) -> Fraction | None:
        """The largest epsilon whose charge every account would still bear, from 0.001 on.

        ``charge`` is None where an epsilon has no price, which is then not an obstacle. ``blocks``
        are those that are read.
        """
        balances = self.balances([promise])

        def fits(epsilon: Fraction) -> bool:
            made = charge(epsilon)
            return made is None or all(balance.admits(made, blocks) for balance in balances)

        return greatest_decimal(fits, Fraction(1, 1000), most)

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


@contextmanager
def after_the_charge() -> Iterator[None]:
    """What may depend on data: whatever is raised becomes the one error that says nothing.

    Raises
    ------
    EngineError
        The charge stays.
    """
    try:
        yield
    except EngineError:
        raise
    except Exception:
        # The failure's own words: what failed, and where, may depend on the data.
        raise EngineError(FAILED) from None
