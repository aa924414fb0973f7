"""Where a service keeps what it must not lose: a SQLite file, or a schema of PostgreSQL.

There is one way to open both, for people and jobs (`_tables`), for what schedules keep and for what
surveys counted. Whatever was written is on the disk when its transaction ends, and a transaction
that writes takes the lock as it begins: nobody writes beside it, so that what is read in it is what
is written upon, with several processes and several servers, too.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dither._environment import secret
from dither._files import looked_at
from dither._postgres import Unreachable, connect, quoted
from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema

__all__ = ["Database", "KeptTables"]


@dataclass(frozen=True, slots=True)
class KeptTables:
    """The tables of a database, and what it is called.

    Parameters
    ----------
    tables : MetaData
    version_table : Table
        One of them: its row says of which version they are. A database that has tables, and no such
        row, was made before there were any, and is of the first.
    name : str
        In messages.
    policy_field : str
        What says where it is.
    program : str
        In a server's list of connections.
    version : int
        Of the tables as they are here.
    migrations : mapping
        By version: what makes the next one of it.
    patience : int
        Seconds to wait for whoever else writes.
    settings : sequence of str
        More of SQLite's, of each connection.
    """

    tables: sa.MetaData
    version_table: sa.Table
    name: str
    policy_field: str
    program: str
    version: int = 1
    migrations: Mapping[int, Callable[[sa.Connection], None]] = field(default_factory=dict)
    patience: int = 10
    settings: Sequence[str] = ()


class Database:
    """Some tables, in a file or on a server.

    Parameters
    ----------
    place : Path or LedgerSchema
        It is made where it is not there: a file for this user alone, or a schema.
    kept : KeptTables
        What it has.

    Raises
    ------
    LedgerError
        It cannot be used, or was written by a newer version.
    """

    def __init__(self, place: Path | LedgerSchema, kept: KeptTables) -> None:
        self.place, self.kept = place, kept
        self.shared = isinstance(place, LedgerSchema)
        """Whether several servers may use it at a time."""
        if isinstance(place, LedgerSchema):
            self._engine = _on_server(place, kept)
        else:
            self._engine = _in_file(place, kept)
        self._reader = self._engine.execution_options(reads=True)
        try:
            with self.writing() as connection:
                self._make(connection)
        except BaseException:
            self.close()
            raise

    @property
    def schema(self) -> str | None:
        """Where the tables are on a server; none of a file."""
        return self.place.schema if isinstance(self.place, LedgerSchema) else None

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that may write, beside no other one: all of it, or nothing.

        Raises
        ------
        LedgerError
            It could not; nothing of it was written, or, where its end was cut off, all of it.
        """
        yield from self._within(self._engine)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that reads what stood there when it began, and keeps nobody waiting."""
        yield from self._within(self._reader)

    def _within(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        failed = None
        try:
            with engine.begin() as connection:
                yield connection
        except Unreachable as error:
            failed = f"{self.kept.name}: {error}"
        except sa.exc.IntegrityError:
            failed = (
                f"{self.kept.name} was changed by somebody else at the same time: try it once more"
            )
        except (sa.exc.DBAPIError, sa.exc.TimeoutError):
            failed = (
                f"{self.kept.name} cannot be used now: another process holds it, its server is "
                "gone or does not let this role, its disk is full or cannot be written, or it is "
                "no database of this kind"
            )
        if failed is not None:
            # What the driver said may quote what was written.
            raise LedgerError(failed) from None

    def _make(self, connection: sa.Connection) -> None:
        kept, column = self.kept, self.kept.version_table.c.version
        if self.schema is not None:
            # Asked for first: a role that may use a schema need not be one that may make any.
            known = sa.text("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = :schema")
            if connection.execute(known, {"schema": self.schema}).scalar_one_or_none() is None:
                made = f"CREATE SCHEMA {quoted(self.schema)}".replace("%", "%%")
                connection.exec_driver_sql(made)
        there = sa.inspect(connection).get_table_names(schema=self.schema)
        kept.tables.create_all(connection)
        version = connection.execute(sa.select(column)).scalar_one_or_none()
        if version is None:
            earlier = any(table.name in there for table in kept.tables.tables.values())
            version = 1 if earlier else kept.version
            connection.execute(kept.version_table.insert().values(version=version))
        if version > kept.version:
            raise LedgerError(
                f"{kept.name} is of version {version}, and this dither keeps {kept.version}: "
                "install a newer one"
            )
        if any(step not in kept.migrations for step in range(version, kept.version)):
            raise LedgerError(
                f"{kept.name} is of version {version}, which this dither cannot bring up to date: "
                "open it once with a version between"
            )
        for step in range(version, kept.version):
            kept.migrations[step](connection)
            connection.execute(kept.version_table.update().values(version=step + 1))

    def close(self) -> None:
        """Give back its connections."""
        self._engine.dispose()


def _in_file(path: Path, kept: KeptTables) -> sa.Engine:
    with looked_at(path, LedgerError):
        folder = path.parent.is_dir()
    if not folder:
        raise LedgerError(f"no folder {str(path.parent)!r} for {kept.name}")
    try:
        # Before SQLite makes it, so that nobody else can read it, not even for a moment.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        raise LedgerError(
            f"{kept.name}: {path.name!r} cannot be opened, or is no file that may be written"
        ) from None

    def opened() -> sqlite3.Connection:
        found = sqlite3.connect(
            path, timeout=kept.patience, isolation_level=None, check_same_thread=False
        )
        _log_ahead(found, time.monotonic() + kept.patience)
        for setting in (
            *("synchronous = FULL", "trusted_schema = OFF"),
            # What is deleted is overwritten: sessions, hashes of keys, who asked for tokens when.
            "secure_delete = ON",
            *kept.settings,
        ):
            found.execute(f"PRAGMA {setting}")
        return found

    # One connection for each thread at a time, and the one that was used last, which has pages of
    # the file in its memory: SQLite takes one writer anyhow.
    engine = sa.create_engine(
        "sqlite://",
        creator=opened,
        poolclass=sa.pool.QueuePool,
        pool_size=8,
        max_overflow=56,
        pool_use_lifo=True,
        hide_parameters=True,
    )

    def begin(connection: sa.Connection) -> None:
        reads = connection.get_execution_options().get("reads")
        connection.exec_driver_sql("BEGIN DEFERRED" if reads else "BEGIN IMMEDIATE")

    sa.event.listen(engine, "begin", begin)
    return engine


def _log_ahead(connection: sqlite3.Connection, until: float) -> None:
    # Of several that open a new file at once, all but one are told at once that it is busy.
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.02)
        else:
            return


def _on_server(place: LedgerSchema, kept: KeptTables) -> sa.Engine:
    dsn = secret(place.dsn, kept.policy_field)

    def opened() -> Any:
        return connect(dsn, application=f"dither {kept.program}", timeout=kept.patience)

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

    def begin(connection: sa.Connection) -> None:
        # Its connections commit each statement unless a transaction is begun, in words.
        reads = connection.get_execution_options().get("reads")
        # One that writes waits for the others, as in a file: what it reads after the lock was
        # committed before, and stays so until it ends.
        level = "REPEATABLE READ READ ONLY" if reads else "READ COMMITTED"
        connection.exec_driver_sql(_BEGIN.format(level=level, patience=kept.patience))
        if not reads:
            connection.execute(_LOCK, {"schema": place.schema})

    sa.event.listen(engine, "begin", begin)
    return engine


_BEGIN = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = pg_catalog;
SET LOCAL lock_timeout = '{patience}s';
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on'
    END,
    true
)
"""
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('dither service ' || :schema, 0))")
