"""What a chain claims to have come to before one of its entries, read from it without walking.

A walk can so begin in the middle of a chain, beside one that begins at its start. Nothing read here
is believed: it counts only where the walk of all before came to the very same.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, case, func, select

from dither.blocks._sets import BlockSet
from dither.ledger._accounts import AccountState, read_budget
from dither.ledger._block_budget import BlockBudget, Budget, limits
from dither.ledger._changes import carried
from dither.ledger._entries import FORMAT, Record, promise_of, tables_of
from dither.ledger._states import NO_SPENDING, BlockState, Units, charge_of, share
from dither.ledger.quotas._caps import QuestionQuota, ReservedQuota, by_clock, current
from dither.ledger.stores._store import Store, columns_of, entries, format_of, touches
from dither.ledger.verification._rows import AMOUNTS, of_amounts, units_of
from dither.ledger.verification._standing import AccountStanding
from dither.ledger.verification._walk import Walk

__all__ = ["NoSeam", "seam"]

_READ = 20_000
"""So many entries are read in one transaction."""
_TOGETHER = 500
"""So many entries are looked up in one statement."""
_MOST = 1 << 16
"""So many different charges are added up before they are charged."""

_HASH = re.compile(r':"[0-9a-f]{64}"')


class NoSeam(Exception):
    """What the chain came to there is only found by walking."""


def seam(store: Store, at: int) -> Walk:
    """The state in which a walk of all before an entry ends, if these are good.

    Parameters
    ----------
    store : Store
        Where the ledger is.
    at : int
        The number of the entry, 1 or more.

    Raises
    ------
    NoSeam
        The ledger is of an earlier format, or the entries claim what no ledger writes.
    Bad, DitherError, LookupError, TypeError, ValueError
        The entries hold something that the ledger never writes.
    """
    with store.read() as connection:
        walk, since = _sketched(connection, at)
    if since:
        _charge_blocks(walk, since, store, at)
    return walk


def _sketched(connection: Connection, at: int) -> tuple[Walk, dict[str, int]]:
    """All but what blocks have spent, and by account the entry from which on they are counted."""
    number = entries.c["number"]
    walk = Walk(format_of(connection))
    last = _records(connection, [at - 1])[at - 1]
    walk.count, walk.hash = at, last.hash
    walk.tables_text, walk.tables = last.tables, tables_of(last.tables)
    begun = _begun(connection, at)
    walk.at = int(json.loads(begun.note)["format"])
    if walk.at == FORMAT:
        dated = (number >= begun.number) & (number < at) & (entries.c["kind"] != "answer")
        newest = select(entries.c["time"]).where(dated).order_by(number.desc()).limit(1)
        walk.time = connection.execute(newest).scalar_one()
        owners = select(number).where((entries.c["kind"] == "owner") & (number < at))
        named = _records(connection, list(connection.execute(owners.order_by(number)).scalars()))
        for record in named.values():
            walk.name_owner(record)
    return walk, _open_accounts(walk, connection, at)


def _begun(connection: Connection, at: int) -> Record:
    """The entry that says which format those after it are in."""
    kind, number = entries.c["kind"], entries.c["number"]
    upgrades = (number > 0) & (number < at) & (kind == "upgrade")
    found = 0
    if json.loads(_records(connection, [0])[0].note)["format"] != FORMAT:
        found = connection.execute(select(func.max(number)).where(upgrades)).scalar_one() or 0
    return _records(connection, [found])[found]


def _open_accounts(walk: Walk, connection: Connection, at: int) -> dict[str, int]:
    """Every account that was opened before, in the order in which they were.

    And of those with blocks the entry from which on these are counted.
    """
    account, entry = touches.c["account"], touches.c["entry"]
    sets = touches.c["sets_budget"].is_(True)
    capped = select(account, entry).where(sets & (entry < at)).order_by(entry)
    setters: dict[str, list[int]] = defaultdict(list)
    for name, number in connection.execute(capped):
        setters[name].append(number)
    newest = {
        name: (number, setter)
        for name, number, setter in connection.execute(
            select(account, func.max(entry), func.max(case((sets, entry))))
            .where(entry < at)
            .group_by(account)
        )
    }
    numbers = {number for held in setters.values() for number in held}
    numbers.update(number for number, _ in newest.values())
    records = _records(connection, sorted(numbers))
    since = {}
    for name, (first, *more) in setters.items():
        number, setter = newest[name]
        last = records[number]
        opened = AccountStanding(name)
        caps = [read_budget(_capped(records[place])) for place in (first, *more)]
        opened.budget, opened.caps = records[setter].budget, caps[-1]
        each = isinstance(opened.caps, BlockBudget | QuestionQuota)
        opened.each = limits(opened.caps.each) if each else None  # type: ignore[union-attr]
        opened.opened = records[first].time
        opened.promise, opened.promise_text = promise_of(last.promise), last.promise
        opened.spent = of_amounts(last.totals_after()[name])
        opened.charged = number if last.kind == "charge" else None
        if isinstance(opened.caps, BlockBudget):
            opened.written = number
            begun = records[_counted_from(caps, (first, *more))]
            since[name] = begun.number
            opened.state = (
                _begun_with(name, begun, opened.caps) if begun.number != first else NO_SPENDING
            )
        if isinstance(caps[0], ReservedQuota) and caps[0].until > walk.time:
            walk.reservations[name] = caps[0]
        walk.accounts[name] = opened
    return since


def _capped(record: Record) -> str:
    if record.budget is None:
        raise NoSeam
    return record.budget


def _counted_from(caps: Sequence[Budget], numbers: Sequence[int]) -> int:
    """The number of the last entry that made other blocks of an account, or opened it."""
    found = numbers[0]
    before = None
    for held, number in zip(caps, numbers, strict=True):
        now = held.calendar.to_dict() if isinstance(held, BlockBudget) else None
        if now is not None and now != before:
            found = number
        before = now
    return found


def _begun_with(name: str, record: Record, caps: BlockBudget) -> BlockState:
    """What the blocks have spent that an entry made of an account, as `Walk` has them then."""
    promise = promise_of(record.promise)
    if record.budget is None or promise is None:
        raise NoSeam
    spent = charge_of(of_amounts(record.totals_after()[name]))
    until = dt.date.fromisoformat(json.loads(record.note)["read_until"])
    held = AccountState(name, record.budget, promise, spent)
    return carried(held, caps.calendar, until, tables_of(record.tables))


def _charge_blocks(walk: Walk, since: dict[str, int], store: Store, at: int) -> None:
    """Charge the blocks of all accounts with what entries before one have charged to them.

    Charges add up in any order, so those that are alike are charged at once.
    """
    begun = sorted(set(since.values()))
    alike: Counter[tuple[Any, ...]] = Counter()
    for first in range(0, at, _READ):
        with store.read() as connection:
            if format_of(connection) != FORMAT:
                raise NoSeam
            alike.update(_charges(connection, first, min(first + _READ, at), begun))
        if len(alike) > _MOST:
            _charge(walk, since, alike)
            alike.clear()
    _charge(walk, since, alike)


def _charges(
    connection: Connection, first: int, end: int, begun: Sequence[int]
) -> Iterator[tuple[Any, ...]]:
    """Of each charge of blocks: its column without hashes, its hour and its amounts.

    And before these the number of the last entry before it from which on blocks are counted.
    """
    number, blocks = entries.c["number"], entries.c["blocks"]
    columns = [number, blocks, *(entries.c[name] for name in ("time", *AMOUNTS))]
    query = select(*columns).where(
        (number >= first) & (number < end) & (entries.c["kind"] == "charge") & blocks.is_not(None)
    )
    for at, text, *others in connection.execute(query).cursor.fetchall():
        place = bisect_left(begun, at)
        yield begun[place - 1] if place else -1, _HASH.sub("", text), *others


def _charge(walk: Walk, since: dict[str, int], alike: Counter[tuple[Any, ...]]) -> None:
    for (begun, text, time, *amounts), times in alike.items():
        said, _, names = text.rpartition('"states":{')
        read = None
        if said != "{":
            read = BlockSet.from_dict(json.loads(f"{said[:-1]}}}")["read"])
        charge = units_of(amounts)
        for name in json.loads(f"[{names.removesuffix('}}')}]"):
            if name not in since or begun < since[name]:
                # Its blocks were others then, and what these had spent was carried over.
                continue
            account = walk.accounts[name]
            caps = account.caps
            if account.state is None or not isinstance(caps, BlockBudget):
                raise NoSeam
            charged = current(caps, time) if by_clock(caps) else read
            if charged is None:
                raise NoSeam
            each = BlockSet(charged.ranges, charged.named)
            account.state, _ = account.state.plus(each, _times(share(charge, charged), times))


def _times(units: Units, number: int) -> Units:
    epsilon, delta, rho, rho_delta = units
    return (
        None if epsilon is None else epsilon * number,
        delta * number,
        None if rho is None else rho * number,
        rho_delta * number,
    )


def _records(connection: Connection, numbers: Sequence[int]) -> dict[int, Record]:
    """Some entries, by their numbers; whether they are sound is not looked at."""
    held = columns_of(connection)
    found = {}
    for place in range(0, len(numbers), _TOGETHER):
        some = held.c["number"].in_(numbers[place : place + _TOGETHER])
        for row in connection.execute(select(held).where(some).order_by(held.c["number"])):
            record = Record(**row._mapping)
            found[record.number] = record
    return found
