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

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from dither.errors import DitherError, LedgerCorruptError
from dither.ledger._accounts import read_budget
from dither.ledger._chain import Head, record_of
from dither.ledger._entries import (
    FIRST,
    MORE,
    UNREADABLE,
    Amounts,
    BoundTable,
    Record,
    promise_of,
    tables_of,
)
from dither.ledger.stores._store import FORMAT, Store, entries, head, touches
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

__all__ = ["Verification", "verify"]

BATCH = 1000


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
    """

    ok: bool
    entries: int
    bad: int | None
    problem: str | None
    hash: str

    def describe(self) -> str:
        """The same in one line."""
        if self.ok:
            return f"{self.entries} entries, chain whole, last hash {self.hash[:16]}"
        where = "" if self.bad is None else f"entry {self.bad}: "
        return f"{where}{self.problem} ({self.entries} entries before it are good)"


class _Bad(Exception):
    def __init__(self, number: int | None, problem: str) -> None:
        super().__init__(problem)
        self.number, self.problem = number, problem


class _Walk:
    """The state of a verification between two entries."""

    def __init__(self) -> None:
        self.count = 0
        self.hash = FIRST
        self.spent: dict[str, Charge] = {}
        self.budgets: dict[str, str] = {}
        self.promises: dict[str, Promise] = {}
        self.tables: dict[str, BoundTable] = {}
        self.charged: dict[str, int] = {}

    def step(self, record: Record, index: Mapping[str, bool], connection: Connection) -> None:
        if record.number != self.count:
            raise _Bad(self.count, "removed")
        if not record.sound():
            raise _Bad(self.count, _diagnosis(record, connection))
        if record.previous != self.hash:
            # It is as it was written, and it vouches for another entry before it.
            raise _Bad(max(self.count - 1, 0), "changed, and its hash made anew")
        try:
            self._meaning(record)
        except (DitherError, *UNREADABLE) as error:
            raise _Bad(self.count, "its columns cannot be read") from error
        if index != dict.fromkeys(record.totals_after(), record.budget is not None):
            raise _Bad(self.count, "the index of accounts does not agree with it")
        self.count += 1
        self.hash = record.hash

    def _meaning(self, record: Record) -> None:
        if record.kind == "genesis" and json.loads(record.note)["format"] != FORMAT:
            raise _Bad(self.count, "of another format than what keeps it")
        if (record.kind == "genesis") != (self.count == 0):
            raise _Bad(self.count, "out of place")
        amounts = record.amounts()
        promise = promise_of(record.promise)
        self._bound(record, promise)
        for name, total in record.totals_after().items():
            if record.budget is not None:
                self.within_caps(name)
                read_budget(record.budget)
                self.budgets[name] = record.budget
            if promise is None or self.promises.setdefault(name, promise) != promise:
                raise _Bad(
                    self.count, f"it promises something else than account {name!r} was bound to"
                )
            spent = self.spent.get(name, Charge())
            if amounts is not None:
                spent += amounts.charge(promise)
                self.charged[name] = record.number
            if name not in self.budgets or Amounts.of(spent) != total:
                raise _Bad(
                    self.count, f"the total of account {name!r} is not the sum of its charges"
                )
            self.spent[name] = spent

    def _bound(self, record: Record, promise: Promise | None) -> None:
        """Tables and their sources are only added, by a charge and under its promise."""
        tables = tables_of(record.tables)
        for name, held in tables.items():
            before = self.tables.get(name, BoundTable(held.promise, held.by))
            if name not in self.tables and (record.kind != "charge" or held.promise != promise):
                raise _Bad(self.count, "it moves a table to another promise")
            if (before.promise, before.by) != (held.promise, held.by):
                raise _Bad(self.count, "it moves a table to another promise")
            if before.sources != held.sources and record.kind != "charge":
                raise _Bad(self.count, "it names other sources of a table, and reads none")
            if not before.sources.keys() <= held.sources.keys() and MORE not in held.sources:
                raise _Bad(self.count, "it forgets a source of a table")
        if not self.tables.keys() <= tables.keys():
            raise _Bad(self.count, "it moves a table out of the ledger")
        self.tables = tables

    def within_caps(self, name: str) -> None:
        # Totals only grow, and a filter that admits a total admits every smaller one: so a last
        # total within the caps says that all before it were.
        number = self.charged.pop(name, None)
        if number is not None and not read_budget(self.budgets[name]).admits(self.spent[name]):
            raise _Bad(number, f"it charges more to account {name!r} than its caps bear")


def verify(store: Store, progress: Callable[[int, int], None] | None = None) -> Verification:
    """Check the whole ledger; other processes may go on charging meanwhile."""
    walk = _Walk()
    try:
        with store.read() as connection:
            end = _head(connection)
            if fault := store.fault(connection):
                raise _Bad(None, fault)
        while walk.count < end.count:
            with store.read() as connection:
                _batch(walk, end, connection)
            if progress is not None:
                progress(walk.count, end.count)
        if walk.hash != end.hash:
            raise _Bad(max(end.count - 1, 0), "changed: the head of the ledger knows another hash")
        for name in list(walk.charged):
            walk.within_caps(name)
    except _Bad as bad:
        return Verification(False, walk.count, bad.number, bad.problem, walk.hash)
    except LedgerCorruptError:
        problem = "it cannot be read here"
        return Verification(False, walk.count, walk.count, problem, walk.hash)
    return Verification(True, walk.count, None, None, walk.hash)


def _head(connection: Connection) -> Head:
    row = connection.execute(select(head.c["count"].label("length"), head.c["hash"])).one_or_none()
    if row is None or not isinstance(row.length, int) or row.length < 1:
        raise _Bad(None, "the head of the ledger is gone")
    beyond = connection.execute(
        select(entries.c["number"])
        .where((entries.c["number"] >= row.length) | (entries.c["number"] < 0))
        .order_by(entries.c["number"])
        .limit(1)
    ).scalar_one_or_none()
    if beyond is not None:
        raise _Bad(beyond, "added by something else than the ledger")
    strays = (touches.c["entry"] >= row.length) | (touches.c["entry"] < 0)
    if connection.execute(select(touches.c["entry"]).where(strays).limit(1)).first() is not None:
        raise _Bad(None, "the index of accounts names entries that are gone")
    return Head(row.length, row.hash)


def _batch(walk: _Walk, end: Head, connection: Connection) -> None:
    first, last = walk.count, min(walk.count + BATCH, end.count)
    span = (entries.c["number"] >= first) & (entries.c["number"] < last)
    records = [
        record_of(r)
        for r in connection.execute(select(entries).where(span).order_by(entries.c["number"]))
    ]
    index: dict[int, dict[str, bool]] = {}
    inside = (touches.c["entry"] >= first) & (touches.c["entry"] < last)
    for row in connection.execute(select(touches).where(inside)):
        index.setdefault(row.entry, {})[row.account] = row.sets_budget
    for record in records:
        walk.step(record, index.get(record.number, {}), connection)
    if walk.count < last:
        rest = connection.execute(
            select(entries.c["number"]).where(entries.c["number"] > walk.count).limit(1)
        ).scalar_one_or_none()
        raise _Bad(walk.count, "removed" if rest else "removed, with every entry after it")


def _diagnosis(record: Record, connection: Connection) -> str:
    """Distinguish a moved entry from a changed one; slow, and only needed once."""
    hashes = {row[0] for row in connection.execute(select(entries.c["hash"]))}
    for number in range(len(hashes) + 1000):
        try:
            moved = record.computed_hash(number) == record.hash
        except DitherError:
            return "changed"
        if moved and number != record.number:
            if record.previous in hashes:
                return f"reordered: what stands here was entry {number}"
            return f"removed: what stands here was entry {number}"
    return "changed"
