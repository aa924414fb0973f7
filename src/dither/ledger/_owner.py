"""Who may change caps: the owner of a ledger, by signatures that anybody can check.

An entry of the kind ``owner`` names the owner's public key. From then on every entry that opens an
account, changes its caps, brings the ledger to another format or names another owner carries a
signature of that key over all of its hashed columns, the hash of the entry before included.

A lost key
----------
Whoever can write to a ledger can also write that the key was lost, and no chain tells the owner
from a thief there. So a recovery is signed by the new key alone, is said by `verify` and `show` for
good, and cannot give anybody more than the old key did: caps may only stay or fall from then on,
and no account of a data set is opened, until the old key signs again. What the old key promised to
people so outlives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from dither.errors import LedgerError
from dither.ledger import _chain as chain
from dither.ledger._accounts import is_quota, read_budget
from dither.ledger._block_budget import BlockBudget
from dither.ledger._entries import FORMAT, PURPOSE, Record, reading
from dither.ledger._signing import OwnerKey, PublicKey
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, by_clock, is_own_rule
from dither.ledger.stores._store import entries, format_of
from dither.privacy.accounts._budget import BudgetFilter

__all__ = [
    "SIGNED",
    "LedgerOwner",
    "after_owner_entry",
    "may_set",
    "owner_note",
    "read_owner",
    "signer",
]

SIGNED = ("account", "amend", "owner", "upgrade")
"""The kinds of entries that an owner signs."""

_NEWEST = select(func.max(entries.c["number"])).where(entries.c["kind"] == "owner")


@dataclass(frozen=True, slots=True)
class LedgerOwner:
    """The owner of a ledger.

    Parameters
    ----------
    key : PublicKey
        What tells their signature.
    entry : int
        The entry that names it.
    recovered : str or None
        Why the key before was replaced without its signature; ``None`` where it was not.
    before : PublicKey or None
        The last key that was not recovered, where one was. What it signed is the most that caps
        may be; if it signs again, that ends.
    """

    key: PublicKey
    entry: int
    recovered: str | None = None
    before: PublicKey | None = None

    def describe(self) -> str:
        """The owner in one line; a recovery is said loudly."""
        said = f"owner: key {self.key.fingerprint} (entry {self.entry})"
        if self.before is not None:
            said += (
                f", RECOVERED WITHOUT THE OLD KEY {self.before.fingerprint} ({self.recovered}): "
                "caps may only stay or fall"
            )
        return said


def owner_note(
    new: PublicKey, recovered: str | None, now: LedgerOwner | None, key: PublicKey
) -> dict[str, Any]:
    """The note of an entry that makes ``new`` the owner, signed by ``key``.

    Raises
    ------
    LedgerError
        That key may not.
    """
    note: dict[str, Any] = {"owner": new.text}
    if now is None:
        if recovered is not None:
            raise LedgerError("the ledger has no owner yet, so that no key of one can be lost")
        if key != new:
            raise LedgerError("the first owner of a ledger is the one whose key signs")
        return note
    if recovered is not None:
        if key != new:
            raise LedgerError("a recovery is signed by the new key itself")
        return note | {"recovered": recovered, "before": (now.before or now.key).text}
    if key not in (now.key, now.before):
        raise LedgerError(
            f"the ledger is owned by key {now.key.fingerprint}, and this is key {key.fingerprint}: "
            "the owner's own key hands it over. Where that is lost, say so: --recovered REASON"
        )
    if now.before is not None and key != now.before:
        return note | {"recovered": now.recovered, "before": now.before.text}
    return note


def after_owner_entry(record: Record, now: LedgerOwner | None) -> LedgerOwner | None:
    """The owner once an entry that names one is written; ``None`` where nobody may write it."""
    note = record.entry().note
    new = PublicKey(str(note["owner"]))
    recovered = note.get("recovered")
    signers = [new] if now is None else [now.key, now.before, new]
    for key in signers:
        if key is None or not _signed(record, key):
            continue
        # The same entry that this signer would have written, a recovery said or not.
        for said in (recovered, None):
            try:
                if owner_note(new, said, now, key) == dict(note):
                    return _named(record.number, note)
            except LedgerError:
                continue
    return None


def _named(number: int, note: Any) -> LedgerOwner:
    before = note.get("before")
    return LedgerOwner(
        PublicKey(str(note["owner"])),
        number,
        note.get("recovered"),
        None if before is None else PublicKey(str(before)),
    )


def read_owner(connection: Connection) -> LedgerOwner | None:
    """The owner of the ledger, as its newest entry of that kind says it."""
    if format_of(connection) != FORMAT:
        return None
    number = connection.execute(_NEWEST).scalar_one()
    if number is None:
        return None
    record = chain.read_record(connection, number)
    with reading(f"entry {number}"):
        return _named(number, record.entry().note)


def _signed(record: Record, key: PublicKey) -> bool:
    return record.signature is not None and key.signed(PURPOSE, record.covered(), record.signature)


def signer(connection: Connection, key: OwnerKey | None, name: str) -> OwnerKey | None:
    """The key that signs what changes a ledger: ``None`` where it has no owner.

    Raises
    ------
    LedgerError
        The ledger has an owner, and this is not their key; or it has none, and a key was given.
    """
    now = read_owner(connection)
    if now is None:
        if key is not None:
            raise LedgerError(
                f"{name} has no owner yet, whose key this could be: make it theirs first with "
                "`dither ledger owner LEDGER --key OWNER.key`"
            )
        return None
    if key is None:
        raise LedgerError(
            f"{name} has an owner, whose signature alone changes what it may spend: give the key "
            f"{now.key.fingerprint} (--key OWNER.key); nothing was changed"
        )
    if key.public != now.key:
        raise LedgerError(
            f"{name} is owned by key {now.key.fingerprint}, and this is key "
            f"{key.public.fingerprint}; nothing was changed"
        )
    return key


def may_set(owner: LedgerOwner | None, name: str, new: str, old: str | None) -> str | None:
    """Why an owner may not give an account these caps; ``None`` where they may.

    Parameters
    ----------
    owner : LedgerOwner or None
    name : str
        The account.
    new, old : str, str or None
        Its caps and those before, as JSON; ``None`` of one that is opened.
    """
    if owner is None or owner.before is None:
        return None
    if old is None:
        if is_quota(name):
            return None
        return (
            f"the owner's key was recovered without the old one (entry {owner.entry}), so no "
            "account of a data set is opened until the old key signs"
        )
    if _above(new, old):
        return (
            f"the owner's key was recovered without the old one (entry {owner.entry}), so caps may "
            "only stay or fall until the old key signs"
        )
    return None


def _above(new_text: str, old_text: str) -> bool:
    """Whether caps may let more through than those before."""
    new, old = read_budget(new_text), read_budget(old_text)
    match new, old:
        case QuestionQuota(), QuestionQuota():
            return _more(new.each, old.each)
        case UnlockedQuota(), UnlockedQuota():
            same = (new.every, new.parts) == (old.every, old.parts)
            return not same or _more(new.whole, old.whole)
    if is_own_rule(new) or is_own_rule(old) or by_clock(new) != by_clock(old):
        return True
    if isinstance(new, BlockBudget):
        if not isinstance(old, BlockBudget):
            assert isinstance(old, BudgetFilter)
            return new.lifetime is None or _more(new.lifetime, old)
        if new.calendar.to_dict() != old.calendar.to_dict() or _more(new.each, old.each):
            return True
        return old.lifetime is not None and (
            new.lifetime is None or _more(new.lifetime, old.lifetime)
        )
    assert isinstance(new, BudgetFilter)
    if isinstance(old, BlockBudget):
        return _more(new, old.each)
    assert isinstance(old, BudgetFilter)
    return _more(new, old)


def _more(new: BudgetFilter, old: BudgetFilter) -> bool:
    return new.epsilon > old.epsilon or new.delta > old.delta
