"""Where a service keeps people, keys and jobs: a SQLite file, or a schema of PostgreSQL.

It is no part of the ledger, which may be shown to anybody. A transaction that writes takes the lock
as it begins, so that what is read in it is what is written upon.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, Float, Integer, LargeBinary, MetaData, Table, Text

from dither._environment import secret
from dither._postgres import Unreachable, connect
from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema

__all__ = ["Database", "jobs", "keys", "log", "pauses", "people", "sessions"]

VERSION = 1
"""Of these tables; `MIGRATIONS` make it of an earlier one."""

MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}
"""By version: what makes the next one of it."""

tables = MetaData()

meta = Table("service_meta", tables, Column("version", Integer, nullable=False))

people = Table(
    "service_people",
    tables,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("disabled", Boolean, nullable=False, default=False),
    Column("created", Float, nullable=False),
)

keys = Table(
    "service_keys",
    tables,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Boolean, nullable=False, default=False),
)

sessions = Table(
    "service_sessions",
    tables,
    Column("hash", LargeBinary, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("role", Text, nullable=False),
    Column("csrf", LargeBinary, nullable=False),
    Column("key", Text),
    Column("expires", Float, nullable=False),
)

jobs = Table(
    "service_jobs",
    tables,
    Column("id", Text, primary_key=True),
    Column("person", Text, nullable=False, index=True),
    Column("token", Text, nullable=False),
    Column("purpose", Text),
    Column("reservation", Text),
    Column("ask", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("requested", Text, nullable=False),
    Column("digest", Text, nullable=False, index=True),
    Column("tables", Text, nullable=False),
    Column("price", Text, nullable=False),
    Column("state", Text, nullable=False, index=True),
    Column("attempts", Integer, nullable=False, default=0),
    Column("server", Text),
    Column("beat", Float),
    Column("entry", Integer),
    Column("replayed", Boolean, nullable=False, default=False),
    Column("failure", Text),
    Column("decided", Text),
    Column("created", Float, nullable=False),
    sa.UniqueConstraint("person", "token"),
)

pauses = Table(
    "service_pauses",
    tables,
    Column("table", Text, primary_key=True),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("created", Float, nullable=False),
)

log = Table(
    "service_log",
    tables,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("time", Float, nullable=False),
    Column("by", Text, nullable=False),
    Column("what", Text, nullable=False),
    Column("about", Text, nullable=False),
)


class Database:
    """The tables of one policy's service.

    Parameters
    ----------
    place : Path or LedgerSchema
        It is made where it is not there.

    Raises
    ------
    LedgerError
        It cannot be used, or was written by a newer version.
    """

    def __init__(self, place: Path | LedgerSchema) -> None:
        self.place = place
        self.shared = isinstance(place, LedgerSchema)
        """Whether several servers may use it at a time."""
        self._engine: sa.Engine
        self._reader: sa.Engine
        if isinstance(place, LedgerSchema):
            self._engine = _server(place)
            self._reader = self._engine.execution_options(reads=True)
        else:
            self._engine, self._reader = _file(place, "IMMEDIATE"), _file(place, "DEFERRED")
        try:
            with self.writing() as connection:
                self._make(connection)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that may write: all of it, or nothing."""
        yield from self._within(self._engine)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that reads what stood there when it began."""
        yield from self._within(self._reader)

    @staticmethod
    def _within(engine: sa.Engine) -> Iterator[sa.Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except Unreachable as error:
            raise LedgerError(f"the service's database: {error}") from None
        except sa.exc.IntegrityError:
            raise LedgerError(
                "the service's database was changed by somebody else at the same time: ask again"
            ) from None
        except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.InternalError):
            raise LedgerError(
                "the service's database cannot be used now: another process holds it, its server "
                "is gone, or its disk is full or cannot be written"
            ) from None

    def _make(self, connection: sa.Connection) -> None:
        if self.shared:
            assert isinstance(self.place, LedgerSchema)
            connection.execute(sa.schema.CreateSchema(self.place.schema, if_not_exists=True))
        tables.create_all(connection)
        version = connection.execute(sa.select(meta.c.version)).scalar_one_or_none()
        if version is None:
            connection.execute(meta.insert().values(version=VERSION))
            return
        if version > VERSION:
            raise LedgerError(
                f"the service's database is of version {version}, and this dither keeps {VERSION}: "
                "install a newer one"
            )
        if any(step not in MIGRATIONS for step in range(version, VERSION)):
            raise LedgerError(
                f"the service's database is of version {version}, which this dither cannot bring "
                "up to date: open it once with a version between"
            )
        while version < VERSION:
            MIGRATIONS[version](connection)
            version += 1
            connection.execute(meta.update().values(version=version))

    def close(self) -> None:
        """Give back its connections."""
        self._engine.dispose()
        self._reader.dispose()


def _file(path: Path, begin: str) -> sa.Engine:
    if not path.parent.is_dir():
        raise LedgerError(f"no folder {str(path.parent)!r} for the service's database")
    # Before SQLite makes it, so that nobody else can read it, not even for a moment.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))

    def opened() -> sqlite3.Connection:
        found = sqlite3.connect(path, timeout=10, isolation_level=None, check_same_thread=False)
        for setting in (
            *("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF"),
            # What is deleted is overwritten: sessions, and the hashes of keys.
            "secure_delete = ON",
        ):
            found.execute(f"PRAGMA {setting}")
        return found

    # One connection for each thread at a time: SQLite takes one writer anyhow.
    engine = sa.create_engine(
        "sqlite://",
        creator=opened,
        poolclass=sa.pool.QueuePool,
        pool_size=8,
        max_overflow=56,
        hide_parameters=True,
    )
    sa.event.listen(engine, "begin", lambda c: c.exec_driver_sql(f"BEGIN {begin}"))
    return engine


def _server(place: LedgerSchema) -> sa.Engine:
    dsn = secret(place.dsn, "service.database")

    def opened() -> Any:
        return connect(dsn, application="dither service", timeout=10)

    engine = sa.create_engine(
        "postgresql+psycopg://",
        creator=opened,
        poolclass=sa.pool.QueuePool,
        pool_size=4,
        max_overflow=12,
        pool_pre_ping=True,
        use_native_hstore=False,
        hide_parameters=True,
    ).execution_options(schema_translate_map={None: place.schema})
    # Its connections commit each statement unless a transaction is begun, in words.
    sa.event.listen(engine, "begin", _begin)
    return engine


_BEGIN = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = pg_catalog;
SET LOCAL lock_timeout = '10s';
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on'
    END,
    true
)
"""
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('dither service ' || :schema, 0))")


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("reads"):
        connection.exec_driver_sql(_BEGIN.format(level="REPEATABLE READ READ ONLY"))
        return
    # One that writes waits for the others, as in a file: what it reads after the lock was committed
    # before, and stays so until it ends.
    connection.exec_driver_sql(_BEGIN.format(level="READ COMMITTED"))
    connection.execute(_LOCK, {"schema": options["schema_translate_map"][None]})
