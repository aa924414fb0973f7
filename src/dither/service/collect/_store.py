"""What a collector keeps, in a file of SQLite or a schema of PostgreSQL: counts, and tokens spent.

Nothing here has an address, nor a time beside a report. A token that was spent is kept as its
random half, in the order of that, so that a row says neither when it came nor what came with it.
Reports that wait to be shuffled lie in an order drawn for each. Devices that asked for tokens are
kept for one day, under a name that nobody can make without the collector's secret.

Whatever is acknowledged was committed before: SQLite with ``synchronous = FULL``, PostgreSQL with
``synchronous_commit = on``. Transactions that write wait for one another, in SQLite for the file's
lock, in PostgreSQL for one advisory lock; so what was read in one still holds when it writes.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    create_engine,
    delete,
    event,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from dither._environment import secret
from dither._postgres import Unreachable, connect
from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._askers import quoted

__all__ = ["CollectorStore"]

FORMAT = b"1"
SECRET = 32
PLACE = 16
AT_ONCE = 500
"""Tokens that one statement looks for."""

LOCK = 0x646974686572636F
"""Of PostgreSQL's advisory locks, the one of whoever writes."""

_TABLES = MetaData()


def _table(name: str, *columns: Any, key: Sequence[str]) -> Table:
    # Without a row's own number, SQLite keeps rows in the order of the key alone.
    parts = (*columns, PrimaryKeyConstraint(*key))
    return Table(name, _TABLES, *parts, sqlite_with_rowid=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


META = _table("collect_meta", Column("name", String(40)), _blob("value"), key=["name"])
SPENT = _table("collect_spent", _blob("survey"), _blob("token"), key=["survey", "token"])
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
        self.place = place
        self._file = isinstance(place, Path)
        try:
            self._engine = _of_file(place) if isinstance(place, Path) else _of_server(place)
            with self._engine.connect() as connection:
                if not isinstance(place, Path):
                    connection.execute(CreateSchema(place.schema, if_not_exists=True))
                    connection.commit()
            with self.writing() as connection:
                _TABLES.create_all(connection)
                self.secret = self._known_secret(connection)
        except (DBAPIError, OSError, Unreachable):
            shown = place.name if isinstance(place, Path) else str(place)
            raise LedgerError(
                f"the collector's state at {shown!r} cannot be used: see that its folder or server "
                "is there, and that nobody else may not write to it"
            ) from None

    @staticmethod
    def _known_secret(connection: Connection) -> bytes:
        held = dict(connection.execute(select(META.c.name, META.c.value)).all())
        if not held:
            held = {"format": FORMAT, "secret": secrets.token_bytes(SECRET)}
            rows = [{"name": name, "value": value} for name, value in held.items()]
            connection.execute(insert(META), rows)
        if bytes(held["format"]) != FORMAT:
            raise LedgerError("the collector's state is of a format not known here; update dither")
        return bytes(held["secret"])

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that no other one writes beside; on the disk when this ends."""
        with self._engine.begin() as connection:
            if not self._file:
                connection.execute(text("SET LOCAL synchronous_commit = on"))
                connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and keeps nobody waiting."""
        with self._engine.execution_options(reading=True).connect() as connection:
            yield connection

    def close(self) -> None:
        """Give back all connections."""
        self._engine.dispose()

    def unspent(self, connection: Connection, survey: bytes, tokens: Iterable[bytes]) -> set[bytes]:
        """Those tokens that were never spent: they are, now."""
        wanted = sorted(set(tokens))
        mark = "?" if self._file else "%s"
        name = SPENT.name if self._file else f"{quoted(self.place.schema)}.{SPENT.name}"  # type: ignore[union-attr]
        insert_them = (
            f"INSERT INTO {name} (survey, token) VALUES ({mark}, {mark}) ON CONFLICT DO NOTHING"
        )
        if not wanted:
            return set()
        # Mostly all are new, and that is known by their number.
        with connection.begin_nested() as tried:
            done = connection.exec_driver_sql(insert_them, [(survey, one) for one in wanted])
            if done.rowcount == len(wanted):
                return set(wanted)
            tried.rollback()
        spent: set[bytes] = set()
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            marks = ", ".join([mark] * len(some))
            found = connection.exec_driver_sql(
                f"SELECT token FROM {name} WHERE survey = {mark} AND token IN ({marks})",
                (survey, *some),
            )
            spent |= {bytes(token) for (token,) in found}
        new = [token for token in wanted if token not in spent]
        if new:
            connection.exec_driver_sql(insert_them, [(survey, token) for token in new])
        return set(new)

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


def _of_file(path: Path) -> Any:
    # Nobody else reads it, from its first moment on; what SQLite puts beside it has its mode.
    handle = os.open(path, os.O_RDWR | os.O_CREAT, stat.S_IRUSR | stat.S_IWUSR)
    os.close(handle)
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})

    @event.listens_for(engine, "connect")
    def _(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _(connection: Any) -> None:
        # The lock first: what is read in a transaction that writes holds until it ends.
        reads = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _of_server(place: LedgerSchema) -> Any:
    dsn = secret(place.dsn, "collect.state")

    def opened() -> Any:
        found = connect(dsn, application="dither collector", timeout=10)
        found.autocommit = False
        return found

    engine = create_engine("postgresql+psycopg://", creator=opened, pool_pre_ping=True)
    return engine.execution_options(schema_translate_map={None: place.schema})
