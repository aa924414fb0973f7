"""Is the chain whole? Every entry is hashed again, and every total added up again.

What a chain can show, and what it cannot
-----------------------------------------
A changed, removed, moved or added entry breaks the chain, because each hash covers the one before.
Removing the newest entries is found as well, because the head counts them. But somebody who can
write the file can also write a whole new chain, head included, or put an older copy in its place,
and no file alone can show that. The anchor is outside: each certificate holds the number and the
hash of its ledger entry, and a chain without that entry is not the chain that it was released from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from dither.errors import LedgerCorruptError
from dither.ledger._chain import Head
from dither.ledger._entries import FIRST, FORMAT
from dither.ledger.stores._store import Store, entries, format_of, head, states, touches
from dither.ledger.verification._batches import onward
from dither.ledger.verification._helpers import Helpers
from dither.ledger.verification._standing import Bad
from dither.ledger.verification._walk import Walk

__all__ = ["Verification", "verify"]

BATCH = 5000
"""So many entries are read in one transaction."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `Ledger.verify` found.

    Parameters
    ----------
    ok : bool
        The chain is whole, the totals are right and no charge went over its caps.
    entries : int
        How many entries were found good, counted from the first.
    bad : int or None
        The number of the first bad entry; ``None`` where it is not an entry that is bad.
    problem : str or None
        What is wrong with it.
    hash : str
        The hash of the last good entry.
    notes : tuple of str
        What is to be known of a ledger that is whole, such as that its owner's key was recovered.
    """

    ok: bool
    entries: int
    bad: int | None
    problem: str | None
    hash: str
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """The same in one line."""
        if self.ok:
            said = f"{self.entries} entries, chain whole, last hash {self.hash[:16]}"
            return "; ".join([said, *self.notes])
        where = "" if self.bad is None else f"entry {self.bad}: "
        return f"{where}{self.problem} ({self.entries} entries before it are good)"


def verify(store: Store, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Check the whole ledger; other processes may go on charging meanwhile.

    A long one is walked in parts at the same time, each by a process of its own.
    """
    walk = None
    with Helpers() as helpers:
        try:
            with store.read() as connection:
                walk = Walk(format_of(connection))
                end = _head(connection)
                helpers.begin(store, end.count, BATCH)
                if fault := store.fault(connection):
                    raise Bad(None, fault)
                accounts = list(
                    connection.execute(select(touches.c["account"]).distinct()).scalars()
                )
                held = _states(connection)

            def told(done: int) -> None:
                if progress is not None:
                    progress(done, end.count)

            for helper in helpers.running:
                onward(walk, store, accounts, helper.start, BATCH, told)
                reply = helper.reply(told)
                if reply is not None and reply.seam == walk.compared():
                    walk = reply.walk
                    reply.hold()
            onward(walk, store, accounts, end.count, BATCH, told)
            if walk.hash != end.hash:
                problem = "changed: the head of the ledger knows another hash"
                raise Bad(max(end.count - 1, 0), problem)
            if walk.at != walk.form:
                raise Bad(0, "of another format than what keeps it")
            for name in list(walk.accounts):
                walk.within_caps(name)
            _hold_states(walk, held)
        except Bad as bad:
            count, last = (0, FIRST) if walk is None else (walk.count, walk.hash)
            return Verification(False, count, bad.number, bad.problem, last)
        except LedgerCorruptError:
            problem = "it cannot be read here"
            count, last = (0, FIRST) if walk is None else (walk.count, walk.hash)
            return Verification(False, count, count, problem, last)
        return Verification(True, walk.count, None, None, walk.hash, tuple(walk.notes))


def _states(connection: Connection) -> dict[str, tuple[int, str]]:
    """What the blocks of accounts have spent, as it stands beside the chain."""
    if format_of(connection) != FORMAT:
        return {}
    return {row.account: (row.entry, row.text) for row in connection.execute(select(states))}


def _hold_states(walk: Walk, held: dict[str, tuple[int, str]]) -> None:
    """See that it is what the chain adds up to."""
    for name, account in walk.accounts.items():
        state = account.state
        if state is not None and held.get(name) != (account.written, state.text()):
            raise Bad(None, f"what the blocks of account {name!r} have spent was changed beside it")
    if not held.keys() <= walk.accounts.keys():
        raise Bad(None, "it holds what the blocks of an account have spent that there is not")


def _head(connection: Connection) -> Head:
    row = connection.execute(select(head.c["count"].label("length"), head.c["hash"])).one_or_none()
    if row is None or not isinstance(row.length, int) or row.length < 1:
        raise Bad(None, "the head of the ledger is gone")
    beyond = connection.execute(
        select(entries.c["number"])
        .where((entries.c["number"] >= row.length) | (entries.c["number"] < 0))
        .order_by(entries.c["number"])
        .limit(1)
    ).scalar_one_or_none()
    if beyond is not None:
        raise Bad(beyond, "added by something else than the ledger")
    strays = (touches.c["entry"] >= row.length) | (touches.c["entry"] < 0)
    if connection.execute(select(touches.c["entry"]).where(strays).limit(1)).first() is not None:
        raise Bad(None, "the index of accounts names entries that are gone")
    return Head(row.length, row.hash)
