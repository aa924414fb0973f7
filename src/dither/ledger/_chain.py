"""Reading and extending the chain inside a transaction, with the checks that cost O(1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, bindparam, func, select, update

from dither.errors import LedgerCorruptError
from dither.ledger._accounts import AccountState, has_blocks
from dither.ledger._entries import (
    Amounts,
    Record,
    Tables,
    amounts_json,
    blocks_json,
    canonical,
    dated,
    digest,
    promise_of,
    reading,
    tables_json,
    tables_of,
)
from dither.ledger.stores._store import (
    asking_role,
    columns_of,
    earlier_entries,
    entries,
    head,
    states,
    touches,
)
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

if TYPE_CHECKING:
    from dither.blocks._sets import BlockSet
    from dither.ledger._signing import OwnerKey
    from dither.ledger._states import BlockState

__all__ = [
    "Head",
    "Writing",
    "append",
    "checked",
    "next_record",
    "read_account",
    "read_head",
    "read_record",
    "read_state",
    "record_of",
]


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chain ends: how many entries there are; the last one's hash and tables.

    ``time`` is the newest date of the ledger: that of the last entry that is no answer, since an
    answer has the date of its charge.
    """

    count: int
    hash: str
    tables_text: str = "{}"
    time: str = ""

    @classmethod
    def after(cls, record: Record, newest: str) -> Head:
        """Where a chain ends whose last entry this is; ``newest`` is the date before it."""
        time = newest if record.kind == "answer" else record.time
        return cls(record.number + 1, record.hash, record.tables, time)

    @property
    def tables(self) -> Tables:
        """All tables charged so far, each with its promise."""
        with reading("the newest entry"):
            return tables_of(self.tables_text)


_HEAD = select(head.c["count"].label("length"), head.c["hash"]).where(head.c["id"] == 1)
_LAST = select(func.max(entries.c["number"]))
_LAST_DATED = (
    select(entries.c["number"])
    .where(entries.c["kind"] != "answer")
    .order_by(entries.c["number"].desc())
    .limit(1)
)
_BY_NUMBER = {
    table: select(table).where(table.c["number"] == bindparam("number"))
    for table in (entries, earlier_entries)
}
_LAST_TOUCH = select(func.max(touches.c["entry"])).where(
    touches.c["account"] == bindparam("account")
)
_FIRST_TOUCH = select(func.min(touches.c["entry"])).where(
    touches.c["account"] == bindparam("account")
)
_LAST_BUDGET = _LAST_TOUCH.where(touches.c["sets_budget"].is_(True))
_ADVANCE = update(head).where(head.c["id"] == 1)
_STATE = select(states.c["entry"], states.c["text"]).where(
    states.c["account"] == bindparam("account")
)
_NEW_STATE = update(states).where(states.c["account"] == bindparam("of"))


def record_of(row: Row[Any]) -> Record:
    """The record of a row of ``entries``."""
    return Record(**row._mapping)


def checked(row: Row[Any]) -> Record:
    """The record of a row, once it is seen to agree with its own hash."""
    record = record_of(row)
    if not record.sound():
        raise _broken(f"entry {record.number} was changed")
    return record


def read_head(connection: Connection) -> Head:
    """The head, once it is seen to agree with the last entry.

    Raises
    ------
    LedgerCorruptError
        It does not: entries were removed, added or changed by something else than dither.
    """
    row = connection.execute(_HEAD).one_or_none()
    last = connection.execute(_LAST).scalar_one()
    if row is None or last is None or row.length != last + 1:
        raise _broken("its head does not agree with its last entry")
    record = read_record(connection, last)
    if record.hash != row.hash:
        raise _broken("its head does not agree with its last entry")
    newest = ""
    if record.kind == "answer":
        dated = connection.execute(_LAST_DATED).scalar_one_or_none()
        newest = read_record(connection, -1 if dated is None else dated).time
    return Head.after(record, newest)


def read_record(connection: Connection, number: int) -> Record:
    """An entry that must be there, once it is seen to agree with its own hash."""
    query = _BY_NUMBER[columns_of(connection)]
    row = connection.execute(query, {"number": number}).one_or_none()
    if row is None:
        raise _broken(f"entry {number} is gone")
    return checked(row)


def read_account(connection: Connection, name: str) -> AccountState | None:
    """The state of an account, or ``None`` where it was never opened."""
    last = connection.execute(_LAST_TOUCH, {"account": name}).scalar_one()
    if last is None:
        return None
    sets = connection.execute(_LAST_BUDGET, {"account": name}).scalar_one()
    record = read_record(connection, last)
    setter = record if sets == last else read_record(connection, -1 if sets is None else sets)
    with reading(f"account {name!r}"):
        account = _account(name, record, setter)
        if '"unlock"' in account.budget_text:
            first = connection.execute(_FIRST_TOUCH, {"account": name}).scalar_one()
            return replace(account, opened=read_record(connection, first).time)
        if not has_blocks(account.budget_text):
            return account
        state = read_state(connection, name, last, record.states().get(name))
    return replace(account, state=state)


def read_state(connection: Connection, name: str, entry: int, hash_: str | None) -> BlockState:
    """What the blocks of an account have spent, once it is seen to be what an entry holds.

    Raises
    ------
    LedgerCorruptError
        It is not: another state stands there, or an older one.
    """
    from dither.ledger._states import BlockState

    row = connection.execute(_STATE, {"account": name}).one_or_none()
    if row is None or row.entry != entry or digest(row.text) != hash_:
        raise _broken(
            f"what the blocks of account {name!r} have spent is not what entry {entry} says"
        )
    return BlockState.from_text(row.text)


def _account(name: str, record: Record, setter: Record) -> AccountState:
    totals = record.totals_after()
    if name not in totals or name not in setter.totals_after() or setter.budget is None:
        raise _broken(f"the index of accounts does not agree with entry {record.number}")
    promise = promise_of(setter.promise)
    if promise is None or record.promise != setter.promise:
        raise _broken(f"entry {record.number} promises something else than its account")
    spent = totals[name].charge(promise)
    of = setter.entry().note.get("policy") if setter.kind == "amend" else None
    return AccountState(name, setter.budget, promise, spent, time=record.time, amends=of)


def next_record(
    at: Head,
    kind: str,
    *,
    totals: Mapping[str, Charge],
    note: Mapping[str, Any],
    promise: Promise | None = None,
    charge: Charge | None = None,
    tables: Tables | None = None,
    blocks: BlockSet | None = None,
    states: Mapping[str, str] | None = None,
    **columns: Any,
) -> Record:
    """The next entry, which nobody has written yet.

    ``states`` are the hashes of what the blocks of each account have spent with it.
    """
    spent = {name: Amounts.of(total) for name, total in totals.items()}
    amounts = dict.fromkeys(("epsilon", "delta", "rho", "rho_delta"))
    values: dict[str, Any] = {
        "number": at.count,
        "time": dated(at.time),
        "kind": kind,
        **dict.fromkeys(("token", "request", "budget", "answers", "answer", "answer_digest")),
        **(amounts if charge is None else asdict(Amounts.of(charge))),
        "totals": amounts_json(spent),
        "promise": None if promise is None else canonical(promise.to_dict()),
        "tables": at.tables_text if tables is None else tables_json(tables),
        "note": canonical(note),
        "previous": at.hash,
        "hash": "",
        "blocks": blocks_json(blocks, dict(states or {})),
        **columns,
    }
    return Record(**values).sealed()


def append(
    connection: Connection,
    at: Head,
    kind: str,
    *,
    totals: Mapping[str, Charge],
    note: Mapping[str, Any],
    blocks: BlockSet | None = None,
    spending: Mapping[str, BlockState] | None = None,
    key: OwnerKey | None = None,
    reservation: str | None = None,
    **more: Any,
) -> Record:
    """Write the next entry, its index and the new head, all in the running transaction.

    ``spending`` is what the blocks of each account have spent with it; ``key`` signs it.
    ``reservation`` is the id of the one that a charge uses. ``more`` is as of `next_record`.
    """
    asking = asking_role(connection)
    if asking is not None and kind in ("charge", "reserve"):
        note = {**note, "role": asking}
    texts = {name: state.text() for name, state in (spending or {}).items()}
    record = next_record(
        at,
        kind,
        totals=totals,
        note=note,
        blocks=blocks,
        states={name: digest(text) for name, text in texts.items()},
        **more,
    )
    if key is not None:
        record = record.signed(key)
    if asking is not None:
        from dither.ledger.stores._askers import append_by_function

        read = None if blocks is None else canonical(blocks.to_dict())
        written = read_record(connection, append_by_function(connection, record, read, reservation))
        if replace(record, time=written.time).sealed() != written:
            raise _broken("the server's functions write something else than was asked for")
        return written
    connection.execute(entries.insert(), asdict(record))
    if totals:
        sets = record.budget is not None
        connection.execute(
            touches.insert(),
            [{"account": a, "entry": at.count, "sets_budget": sets} for a in totals],
        )
    for name, text in texts.items():
        new = {"entry": at.count, "text": text}
        if not connection.execute(_NEW_STATE, {"of": name, **new}).rowcount:
            connection.execute(states.insert(), {"account": name, **new})
    connection.execute(_ADVANCE, {"count": at.count + 1, "hash": record.hash})
    if record.budget is not None and connection.dialect.name == "postgresql":
        from dither.ledger.stores._askers import keep_caps

        keep_caps(connection, json.loads(record.budget))
    return record


class Writing:
    """A transaction that writes, and where the chain ends in it."""

    def __init__(self, connection: Connection, at: Head) -> None:
        self.connection = connection
        self.at = at

    def append(self, kind: str, **columns: Any) -> Record:
        """Write the next entry, as the function of this name does."""
        record = append(self.connection, self.at, kind, **columns)
        self.at = Head.after(record, self.at.time)
        return record


def _broken(what: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        f"the chain of the ledger does not hold: {what}; see `dither ledger verify`, "
        "and restore it from a copy"
    )
