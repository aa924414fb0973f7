"""Walking on along a chain, some thousand entries in one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, Text, case, cast, func, null, select

from dither.errors import DitherError
from dither.ledger._entries import Record
from dither.ledger.stores._store import Store, columns_of, entries, touches
from dither.ledger.verification._rows import COLUMNS, AccountIndex
from dither.ledger.verification._standing import Bad
from dither.ledger.verification._walk import Walk

__all__ = ["onward"]

_TOGETHER = 1000
"""So many accounts are looked up in one statement."""


def onward(
    walk: Walk,
    store: Store,
    accounts: list[str],
    stop: int,
    batch: int,
    told: Callable[[int], None],
) -> None:
    """Walk on to an entry; what is appended meanwhile comes after it, and is not looked at.

    Parameters
    ----------
    walk : Walk
        Where to begin; afterwards, how far it came.
    store : Store
        Where the ledger is.
    accounts : list of str
        The accounts that the index of accounts names.
    stop : int
        The number of the first entry that is not looked at.
    batch : int
        So many entries are read in one transaction.
    told : callable
        Called after each with the number of the next entry.

    Raises
    ------
    Bad
        An entry is not what it must be.
    """
    while walk.count < stop:
        with store.read() as connection:
            _batch(walk, min(walk.count + batch, stop), accounts, connection)
        told(walk.count)


def _batch(walk: Walk, last: int, accounts: list[str], connection: Connection) -> None:
    first = walk.count
    held = columns_of(connection)
    number = held.c["number"]
    columns = [held.c[name] if name in held.c else null().label(name) for name in COLUMNS]
    rows = select(*columns).where((number >= first) & (number < last)).order_by(number)
    records = _rows(connection, rows)
    index = _index(connection, accounts, first, last)
    walk.along(records, index, lambda record: _diagnosis(record, connection))
    if walk.count < last:
        rest = connection.execute(
            select(entries.c["number"]).where(entries.c["number"] > walk.count).limit(1)
        ).scalar_one_or_none()
        raise Bad(walk.count, "removed" if rest else "removed, with every entry after it")


def _index(connection: Connection, accounts: list[str], first: int, last: int) -> AccountIndex:
    """What the index of accounts has for some entries."""
    account, entry, sets = touches.c["account"], touches.c["entry"], touches.c["sets_budget"]
    # By account: the index begins with it. As one text, numbers are read many times faster.
    numbers = func.aggregate_strings(cast(entry, Text), ",")
    set_by = func.sum(case((sets.is_(False), 0), else_=1))
    alike: dict[str, tuple[str, ...]] = {}
    setting: dict[int, set[str]] = defaultdict(set)
    for at in range(0, len(accounts), _TOGETHER):
        inside = account.in_(accounts[at : at + _TOGETHER]) & (entry >= first) & (entry < last)
        query = select(account, numbers, set_by).where(inside).group_by(account)
        for name, held, some in _rows(connection, query):
            alike[held] = (*alike.get(held, ()), name)
            if some:
                own = (account == name) & (entry >= first) & (entry < last)
                for number, it_sets in _rows(connection, select(entry, sets).where(own)):
                    if it_sets != 0:
                        setting[number].add(name)
    names: dict[int, tuple[str, ...]] = {}
    for held, of in alike.items():
        try:
            for number in map(int, held.split(",")):
                names[number] = (*names[number], *of) if number in names else of
        except (AttributeError, ValueError):
            raise Bad(None, "the index of accounts holds what is no number of an entry") from None
    return AccountIndex(names, setting)


def _rows(connection: Connection, query: Select[Any]) -> Sequence[Sequence[Any]]:
    """The rows of texts and whole numbers as the driver has them, of which there may be many."""
    found: Sequence[Sequence[Any]] = connection.execute(query).cursor.fetchall()
    return found


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
