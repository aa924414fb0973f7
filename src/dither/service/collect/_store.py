"""What a collector keeps, in a file of SQLite or a schema of PostgreSQL: counts, and tokens spent.

Nothing here has an address, nor a time beside a report. A token that was spent is kept as a
hash of its random half and of its survey, in the order of that, so that a row says neither when it
came nor what came with it.
Reports that wait to be shuffled lie in an order drawn for each. Devices that asked for tokens are
kept for one day, under a name that nobody can make without the collector's secret.

Whatever is acknowledged was committed before, and transactions that write wait for one another
(`Database`); so what was read in one still holds when it writes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    delete,
    func,
    insert,
    literal,
    select,
    tuple_,
    update,
)

from dither._postgres import quoted
from dither.ledger._place import LedgerSchema
from dither.service._database import Database, KeptTables

__all__ = ["CollectorStore"]

SECRET = 32
PLACE = 16
NAME = 16
"""Bytes of what a spent token is known by: two of a billion are known alike with 2e-21."""

AT_ONCE = 256
"""Tokens that one statement spends."""

MOVED = 50_000
"""Tokens of an earlier version that are in memory at a time."""


_TABLES = MetaData()


def _table(name: str, *columns: Any, key: Sequence[str]) -> Table:
    # Without a row's own number, SQLite keeps rows in the order of the key alone.
    parts = (*columns, PrimaryKeyConstraint(*key))
    return Table(name, _TABLES, *parts, sqlite_with_rowid=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


META = _table("collect_meta", Column("name", String(40)), _blob("value"), key=["name"])
SPENT = _table("collect_spent_tokens", _blob("token"), key=["token"])
COUNTS = _table("collect_counts", _blob("survey"), _blob("numbers"), key=["survey"])
WAITING = _table(
    *("collect_waiting", _blob("survey"), _blob("place"), _blob("record")),
    key=["survey", "place"],
)
BATCHES = _table(
    *("collect_batches", _blob("survey"), Column("number", Integer), _blob("records")),
    key=["survey", "number"],
)
ISSUED = _table(
    *("collect_issued", Column("day", String(10)), _blob("device"), _blob("request")),
    *(_blob("survey"), Column("tokens", Integer), Column("epsilon", String(700))),
    key=["day", "device", "request"],
)
PUBLISHED = _table(
    *("collect_published", _blob("survey"), Column("period", String(20)), _blob("estimate")),
    key=["survey", "period"],
)

EARLIER_SPENT = Table(
    *("collect_spent", MetaData(), _blob("survey"), _blob("token")),
    PrimaryKeyConstraint("survey", "token"),
    sqlite_with_rowid=False,
)
"""Of version 1: a third of the tokens in the same space, and so many more pages to write."""


def _name_spent(connection: Connection) -> None:
    """Bring the tokens that were spent to version 2."""
    place, key = EARLIER_SPENT.c, tuple_(EARLIER_SPENT.c.survey, EARLIER_SPENT.c.token)
    query = select(place.survey, place.token).order_by(place.survey, place.token).limit(MOVED)
    rows = connection.execute(query).all()
    while rows:
        names = sorted(_spent_name(bytes(survey), bytes(token)) for survey, token in rows)
        connection.execute(insert(SPENT), [{"token": name} for name in names])
        survey, token = map(bytes, rows[-1])
        after = key > tuple_(literal(survey, LargeBinary), literal(token, LargeBinary))
        rows = connection.execute(query.where(after)).all()
    EARLIER_SPENT.drop(connection)


def _spent_name(survey: bytes, token: bytes) -> bytes:
    return hashlib.blake2b(survey + token, digest_size=NAME).digest()


_KEPT = KeptTables(
    _TABLES,
    Table("collect_version", _TABLES, Column("version", Integer, nullable=False)),
    name="the collector's state",
    policy_field="collect.state",
    program="collector",
    version=2,
    migrations={1: _name_spent},
    patience=30,
    # Tokens are all over their table, so that each is written with a page of its own: into a log
    # that is brought in seldom, and from memory that has room for those of one commit.
    settings=("wal_autocheckpoint = 16384", "cache_size = -32768"),
)


class CollectorStore:
    """The tables of a collector; several processes may have one at a time.

    Parameters
    ----------
    place : Path or LedgerSchema
        A file, which only its owner may read, or a schema of a PostgreSQL database.

    Raises
    ------
    LedgerError
        It cannot be used.
    """

    def __init__(self, place: Path | LedgerSchema) -> None:
        self._database = Database(place, _KEPT)
        try:
            with self.writing() as connection:
                self.secret = self._known_secret(connection)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _known_secret(connection: Connection) -> bytes:
        query = select(META.c.value).where(META.c.name == "secret")
        held = connection.execute(query).scalar_one_or_none()
        if held is None:
            held = secrets.token_bytes(SECRET)
            connection.execute(insert(META).values(name="secret", value=held))
        return bytes(held)

    def writing(self) -> AbstractContextManager[Connection]:
        """As `Database.writing`."""
        return self._database.writing()

    def reading(self) -> AbstractContextManager[Connection]:
        """As `Database.reading`."""
        return self._database.reading()

    def close(self) -> None:
        """Give back all connections."""
        self._database.close()

    def unspent(self, connection: Connection, survey: bytes, tokens: Iterable[bytes]) -> set[bytes]:
        """Those tokens that were never spent: they are, now."""
        named = {_spent_name(survey, token): token for token in tokens}
        # In their order: those that are neighbours in the table come one after the other.
        names, shared = sorted(named), self._database.schema
        new: set[bytes] = set()
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            given: tuple[Any, ...] = tuple(some) if shared is None else (some,)
            if shared is None:
                rows, table = "VALUES " + ",".join(["(?)"] * len(some)), SPENT.name
            else:
                rows = "SELECT unnest(%s::bytea[])"
                table = f"{quoted(shared)}.{SPENT.name}".replace("%", "%%")
            found = connection.exec_driver_sql(
                f"INSERT INTO {table} (token) {rows} ON CONFLICT DO NOTHING RETURNING token", given
            )
            new |= {named[bytes(name)] for (name,) in found}
        return new

    @staticmethod
    def numbers(connection: Connection, survey: bytes) -> Any:
        """The counts of a survey, as a row; None where nothing was counted."""
        found = connection.execute(
            select(COUNTS.c.numbers).where(COUNTS.c.survey == survey)
        ).scalar_one_or_none()
        return None if found is None else np.frombuffer(bytes(found), "<i8").astype(np.int64)

    def add(self, connection: Connection, survey: bytes, numbers: Any) -> None:
        """Add a row to the counts of a survey."""
        before = self.numbers(connection, survey)
        if before is None:
            whole = numbers.astype("<i8").tobytes()
            connection.execute(insert(COUNTS).values(survey=survey, numbers=whole))
        else:
            whole = (before + numbers).astype("<i8").tobytes()
            mine = COUNTS.c.survey == survey
            connection.execute(update(COUNTS).where(mine).values(numbers=whole))

    @staticmethod
    def wait(connection: Connection, survey: bytes, records: Sequence[bytes]) -> int:
        """Put records among those that wait, each at a random place; how many wait, is returned."""
        if records:
            rows = [
                {"survey": survey, "place": secrets.token_bytes(PLACE), "record": record}
                for record in records
            ]
            connection.execute(insert(WAITING), rows)
        found = select(func.count()).select_from(WAITING).where(WAITING.c.survey == survey)
        return int(connection.execute(found).scalar_one())

    @staticmethod
    def leave(connection: Connection, survey: bytes) -> list[bytes]:
        """All records that wait, which wait no more."""
        found = select(WAITING.c.record).where(WAITING.c.survey == survey)
        records = [bytes(record) for (record,) in connection.execute(found)]
        connection.execute(delete(WAITING).where(WAITING.c.survey == survey))
        return records

    @staticmethod
    def next_batch(connection: Connection, survey: bytes, records: bytes) -> int:
        """Keep a batch until it is written; its number is returned."""
        last = select(func.max(BATCHES.c.number)).where(BATCHES.c.survey == survey)
        number = int(connection.execute(last).scalar_one() or 0) + 1
        connection.execute(insert(BATCHES).values(survey=survey, number=number, records=records))
        return number
