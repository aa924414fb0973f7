"""Caps that change under a signature which is made elsewhere.

The owner is told where the ledger stands (`AmendmentBase`), makes the very entry that would be
written, signs it, and sends what only they can say: caps, reason, policy and signature. The ledger
makes that entry again from its own state, in the transaction that writes it. So nothing but caps
and words come from outside, and a signature holds for one entry in one place of one chain: used
again, on another ledger or after another entry, it signs something else.

The note names the policy whose caps are replaced. Such a policy is served on under the new caps
(`dither.ledger._accounts.same_caps`); one whose file was written anew must have them itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from dither.errors import AmendmentError, ArgumentError, LedgerError
from dither.ledger._accounts import AccountState, check_text, read_budget, same_rule
from dither.ledger._block_budget import Budget
from dither.ledger._chain import Head, next_record, read_account
from dither.ledger._changes import budget_json
from dither.ledger._entries import PURPOSE, Amounts, Record, canonical, dated, digest
from dither.ledger._owner import may_set, read_owner
from dither.ledger.quotas._reserved import is_reservation
from dither.ledger.stores._store import asking_role
from dither.privacy._promise import Promise

if TYPE_CHECKING:
    from dither.ledger._ledger import Ledger
    from dither.ledger._signing import OwnerKey

__all__ = ["AmendmentBase", "SignedAmendment", "amend_by", "base_of"]

MOVED = (
    "the ledger went on since the amendment was signed: look at what it holds now, and sign again; "
    "nothing was changed"
)
FORGED = (
    "the signature is not the ledger owner's, or of another account, other caps, another reason, "
    "another policy or another ledger; nothing was changed"
)
OTHER_RULE = (
    "an amendment that is sent changes amounts alone: blocks, windows and parts change where the "
    "ledger is, with the policy (`dither ledger amend LEDGER --policy POLICY`); nothing was changed"
)


@dataclass(frozen=True, slots=True)
class AmendmentBase:
    """Where a ledger stands, as far as an amendment of one account follows from it.

    Parameters
    ----------
    account : str
    caps : mapping
        Those in force, as their ``to_dict``.
    promise : mapping
        Whom the account protects, likewise.
    spent : mapping
        What it has spent, in units of the ledger.
    state : str or None
        The hash of what its blocks have spent, where it has blocks.
    number : int
        Of the entry that would be written.
    previous : str
        The hash of the entry before it.
    time : str
        Its hour.
    tables : str
        All tables charged so far, as entries hold them.
    owner : str or None
        The public key of whoever must sign.
    """

    account: str
    caps: Mapping[str, Any]
    promise: Mapping[str, Any]
    spent: Mapping[str, str]
    state: str | None
    number: int
    previous: str
    time: str
    tables: str
    owner: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> AmendmentBase:
        """Read back what `to_dict` wrote.

        Raises
        ------
        LedgerError
            It is something else.
        """
        try:
            found = cls(**stored)
            _ = found.budget, found.record(found.budget, "read", "read")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            raise LedgerError(
                "where the ledger stands cannot be read: it is of another version of dither"
            ) from None
        return found

    @property
    def budget(self) -> Budget:
        """The caps in force."""
        return read_budget(canonical(self.caps, "budget"))

    def record(self, budget: Budget, reason: str, policy: str) -> Record:
        """The entry that would be written, which nobody has signed."""
        promise = Promise.from_dict(dict(self.promise))
        return next_record(
            Head(self.number, self.previous, self.tables, self.time),
            "amend",
            totals={self.account: Amounts(**self.spent).charge(promise)},
            note={"reason": reason, "policy": policy},
            promise=promise,
            states={} if self.state is None else {self.account: self.state},
            budget=budget_json(self.account, budget),
            time=self.time,
        )


@dataclass(frozen=True, slots=True)
class SignedAmendment:
    """What an owner says, and where in the chain it is said.

    Parameters
    ----------
    account : str
    caps : mapping
        The new ones.
    reason : str
    policy : str
        The digest of the policy whose caps are replaced.
    number, previous, time
        As of the `AmendmentBase` that it was signed for.
    signature : str
    """

    account: str
    caps: Mapping[str, Any]
    reason: str
    policy: str
    number: int
    previous: str
    time: str
    signature: str

    @classmethod
    def made(
        cls, base: AmendmentBase, budget: Budget, reason: str, policy: str, key: OwnerKey
    ) -> SignedAmendment:
        """Sign new caps.

        Raises
        ------
        LedgerError
            The ledger has no owner, or another one.
        AmendmentError
            More than amounts would change.
        """
        check_text("reason", reason, limit=10_000)
        if base.owner is None:
            raise AmendmentError(_ownerless("the ledger"))
        if key.public.text != base.owner:
            raise AmendmentError(
                f"the ledger has another owner than key {key.public.fingerprint}; nothing was "
                "changed"
            )
        record = base.record(budget, reason, policy)
        if not same_rule(canonical(base.caps, "budget"), str(record.budget)):
            raise AmendmentError(OTHER_RULE)
        return cls(
            base.account,
            budget.to_dict(),
            reason,
            policy,
            base.number,
            base.previous,
            base.time,
            key.sign(PURPOSE, record.covered()),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def _ownerless(name: str) -> str:
    return (
        f"{name} has no owner, whose signature could be told from anybody's: name one where the "
        "ledger is with `dither ledger owner LEDGER --key OWNER.key`; nothing was changed"
    )


def base_of(ledger: Ledger, account: str) -> AmendmentBase:
    """Where a ledger stands.

    Raises
    ------
    AmendmentError
        There is no such account.
    """
    with ledger._reading() as (connection, at):
        return _base(connection, at, _account(connection, account))


def _account(connection: Connection, name: str) -> AccountState:
    found = read_account(connection, name)
    if found is None:
        # What was sent may be anything: it is not said again.
        raise AmendmentError("there is no account of this name; nothing was changed")
    return found


def _base(connection: Connection, at: Head, account: AccountState) -> AmendmentBase:
    owner = read_owner(connection)
    return AmendmentBase(
        account.name,
        account.budget.to_dict(),
        account.promise.to_dict(),
        asdict(Amounts.of(account.spent)),
        None if account.state is None else digest(account.state.text()),
        at.count,
        at.hash,
        dated(at.time),
        at.tables_text,
        None if owner is None else owner.key.text,
    )


def amend_by(ledger: Ledger, signed: SignedAmendment) -> int:
    """Change caps as their owner signed it, and give the number of the entry.

    Parameters
    ----------
    ledger : Ledger
    signed : SignedAmendment
        Which may come from anybody.

    Raises
    ------
    AmendmentError
        It is not the owner's, of another state of the ledger, or changes more than amounts; there
        is no such account; the ledger has no owner; its key was recovered and caps would rise; or
        this process may not change caps.
    """
    check_text("reason", signed.reason, limit=10_000)
    check_text("policy", signed.policy, limit=64)
    if is_reservation(signed.account):
        raise ArgumentError("account: a reservation is fixed for good; nothing was changed")
    with ledger._writing() as writing:
        connection = writing.connection
        if (role := asking_role(connection)) is not None:
            raise AmendmentError(
                f"the role {role!r} may charge accounts and change none: amend them as the role "
                "that owns the ledger's tables; nothing was changed"
            )
        account = _account(connection, signed.account)
        owner = read_owner(connection)
        if owner is None:
            raise AmendmentError(_ownerless(ledger.name))
        budget = _read_caps(signed.caps, account)
        base = _base(connection, writing.at, account)
        if (signed.number, signed.previous, signed.time) != (base.number, base.previous, base.time):
            raise AmendmentError(MOVED)
        record = base.record(budget, signed.reason, signed.policy)
        if not owner.key.signed(PURPOSE, record.covered(), signed.signature):
            raise AmendmentError(FORGED)
        if refused := may_set(owner, account.name, str(record.budget), account.budget_text):
            raise AmendmentError(f"{refused}; nothing was changed")
        written = writing.append(
            "amend",
            totals={account.name: account.spent},
            promise=account.promise,
            note={"reason": signed.reason, "policy": signed.policy},
            budget=record.budget,
            spending={} if account.state is None else {account.name: account.state},
            time=signed.time,
            signature=signed.signature,
        )
        if written.hash != record.hash:
            raise AmendmentError(FORGED)
        return written.number


_AMOUNT = re.compile("[0-9]{1,100}(/[0-9]{1,100})?")


def _read_caps(caps: Any, account: AccountState) -> Budget:
    """New caps of an account, which may be anybody's: nothing is read but amounts."""
    try:
        text = canonical(caps, "caps")
        if not same_rule(account.budget_text, text):
            raise AmendmentError(OTHER_RULE)
        if all(map(_AMOUNT.fullmatch, _amounts(caps))):
            found = read_budget(text)
            if canonical(found.to_dict(), "caps") == text:
                return found
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        pass
    raise ArgumentError("caps must be those of an account, with exact amounts as text")


def _amounts(caps: Any) -> Iterator[str]:
    for name, value in caps.items():
        if name in ("epsilon", "delta"):
            yield value
        elif isinstance(value, Mapping):
            yield from _amounts(value)
