"""One schema of a PostgreSQL database: transactions for many machines, and what guards its rows.

How charges wait for each other
-------------------------------
``write`` begins a READ COMMITTED transaction and locks the one row of ``head`` before it reads
anything. The server makes a commit visible before it gives back the locks of its transaction, and
under READ COMMITTED each statement sees what was committed before it began: so whoever has the lock
sees every entry that was ever written, and nobody writes one beside it. Nothing more would be
gained by SERIALIZABLE, which refuses late what the lock makes wait; and REPEATABLE READ would be
wrong here, since its one snapshot may be older than the lock. Should a program forget the lock, the
keys of ``entries`` and the triggers still let in one entry for each number and one for each token.

How a commit is made durable
----------------------------
Each transaction asks for ``synchronous_commit`` itself, whatever server, database and role are set
to: when the commit returns, the entry is on the server's disk, and on that of every standby that
the server calls synchronous. A server that runs with ``fsync = off`` is refused, because nothing
that it says of its disk holds. A standby that is not synchronous may lack the newest entries: on
promoting it, it is an older copy (see docs/ledger.md).

When the connection breaks during a commit
------------------------------------------
Then the client does not know whether the entry was written. ``write`` connects again and takes the
lock, which the broken transaction held until it ended, one way or the other: so the entry is there
or never will be. If it is, the call goes on as if nothing had happened; if not, it says that
nothing was written. Where the server cannot be asked in time, it says that the charge must be
counted as made; nothing is answered in any case, since the engine never starts.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Select,
    bindparam,
    create_engine,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from dither._environment import PREFIX, Secret, secret
from dither._postgres import Unreachable, check_driver, connect, quoted
from dither.errors import DitherError, LedgerCorruptError, LedgerError, LedgerLockedError
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._askers import refusal
from dither.ledger.stores._guards import (
    APPEND_ONLY,
    RESTORE,
    fault,
    has_tables,
    ledger,
    make,
    upgrade,
)
from dither.ledger.stores._store import (
    FORMAT,
    REQUESTS,
    Store,
    check_version,
    entries,
    head,
    locked,
)

__all__ = ["ServerStore"]

BEGIN = """
BEGIN ISOLATION LEVEL {level};
SET LOCAL search_path = pg_catalog;
SET LOCAL lock_timeout = {wait};
SET LOCAL idle_in_transaction_session_timeout = '60s';
SELECT set_config(
    'synchronous_commit',
    CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on'
    END,
    true
)
"""

_SETTINGS = text("SELECT current_setting('fsync'), current_setting('server_encoding')")
_ONE_CREATOR = text("SELECT pg_advisory_xact_lock(hashtextextended('dither ' || :schema, 0))")
_FORMAT = select(ledger.c["format"])
# The role that a transaction asks as, where it is no member of the one that owns the tables.
_ROLE = text("""
SELECT CASE WHEN NOT pg_has_role(c.relowner, 'USAGE') THEN session_user::text END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = 'entries'
""")
_INDEXED = text("SELECT FROM pg_indexes WHERE schemaname = :schema AND indexname = 'requests'")
# Locks the head until the transaction ends.
_AT = select(head.c["count"].label("length"), head.c["hash"]).where(head.c["id"] == 1)
_LOCKED = _AT.with_for_update()
_HASH = select(entries.c["hash"]).where(entries.c["number"] == bindparam("number"))


class ServerStore(Store):
    """Transactions on one existing schema.

    It keeps one connection, which is made anew where it broke in between, and which no other
    process uses: a fork makes its own.

    Parameters
    ----------
    place : LedgerSchema
        The database and the schema.
    timeout : float
        Seconds to wait for the server, and for another process that holds the ledger.

    Raises
    ------
    PolicyError
        The environment has no such variable.
    MissingLibraryError
        The driver is not installed; the extra ``postgres`` brings it.
    """

    def __init__(self, place: LedgerSchema, timeout: float) -> None:
        super().__init__(str(place), timeout)
        self._place = place
        self._kept = _Kept()
        self._dsn = secret(place.dsn, "ledger.postgres")
        with _in_words(self.name):
            check_driver()
        self._engine = _engine(place, self._dsn, timeout, self._kept)
        weakref.finalize(self, self._kept.close)

    @property
    def place(self) -> LedgerSchema:
        """The database and the schema."""
        return self._place

    @property
    def spot(self) -> tuple[Secret, str]:
        """The connection string and the schema."""
        return self._dsn, self._place.schema

    @property
    def environment(self) -> dict[str, str]:
        """The connection string as it was when the ledger was opened; it may be another now."""
        dsn = self._place.dsn
        held = {dsn.removeprefix(PREFIX): self._dsn.reveal()}
        return held if dsn.startswith(PREFIX) else {}

    def close(self) -> None:
        """Refuse every later call, and give back the connection."""
        super().close()
        self._engine.dispose()
        self._kept.close()

    def _forked(self) -> None:
        # The parent goes on using the connection: it must not be closed from here.
        self._kept.leave()
        self._engine.dispose(close=False)

    def exists(self) -> bool:
        """Whether the schema holds a ledger, or nothing that is called so.

        Raises
        ------
        LedgerCorruptError
            It holds a part of one, or other tables with these names.
        LedgerError
            The server cannot be reached, or may lose what it has committed.
        """
        with self._held(), _in_words(self.name), self._engine.connect() as connection:
            _check_server(connection, self.name)
            return has_tables(connection, self._place)

    def create(self, fill: Callable[[Connection], None]) -> None:
        """Begin a ledger, all or nothing.

        Of those that try at once one makes it, and the others find it. A schema that is there is
        used.

        Raises
        ------
        LedgerError
            The role may not, or the database cannot keep a ledger.
        """
        schema = self._place.schema
        with (
            self._held(),
            _in_words(self.name),
            self._engine.connect() as connection,
            _ending(connection),
        ):
            self._begin(connection, "READ COMMITTED READ WRITE")
            connection.execute(_ONE_CREATOR, {"schema": schema})
            if not has_tables(connection, self._place):
                make(connection, schema)
                fill(connection)
            connection.commit()

    def fault(self, connection: Connection) -> str | None:
        """Whether tables, keys and triggers are as they were made, and nothing stands between."""
        return fault(connection, self._place.schema)

    def _upgraded(self, fill: Callable[[Connection], None]) -> bool:
        with (
            _in_words(self.name),
            self._engine.connect() as connection,
            _ending(connection),
        ):
            self._begin(connection, "READ COMMITTED READ WRITE")
            connection.execute(_LOCKED)
            version = connection.execute(_FORMAT).scalar_one()
            check_version(version, self.name, writes=False)
            if version == FORMAT:
                connection.rollback()
                return False
            _check_server(connection, self.name)
            connection.execution_options(ledger_format=FORMAT)
            upgrade(connection, self._place.schema)
            fill(connection)
            connection.commit()
        return True

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        with _in_words(self.name), self._engine.connect() as connection:
            with _ending(connection):
                before = self._begun(connection, writes)
                yield connection
                after = _at(connection, _AT) if writes else None
            written = after if after != before else None
            try:
                connection.commit()
                return
            except Exception:
                connection.invalidate()
        if written is not None:
            self._settle(written)

    def _begun(self, connection: Connection, writes: bool) -> tuple[int, str] | None:
        """Begin; the head, locked, of a transaction that writes."""
        level = "READ COMMITTED READ WRITE" if writes else "REPEATABLE READ READ ONLY"
        self._begin(connection, level)
        version = connection.execute(_FORMAT).scalar_one_or_none()
        if version is None:
            raise LedgerCorruptError(f"{self.name} is empty or no ledger: {RESTORE}")
        check_version(version, self.name, writes=writes)
        connection.execution_options(ledger_format=version)
        if not writes:
            return None
        schema = self._place.schema
        role = connection.execute(_ROLE, {"schema": schema}).scalar_one()
        connection.execution_options(ledger_role=role)
        _check_server(connection, self.name)
        if role is None:
            at = _at(connection, _LOCKED)
            self._index(connection)
            return at
        of = quoted(schema).replace("%", "%%")
        row = connection.exec_driver_sql(f"SELECT * FROM {of}.locked()").one()
        return None if row[0] is None else (row[0], row[1])

    def _index(self, connection: Connection) -> None:
        """Make the index of requests where an earlier version made the ledger."""
        if self.indexed:
            return
        self.indexed = True
        at = {"schema": self._place.schema}
        if connection.execute(_INDEXED, at).first() is not None:
            return
        connection.exec_driver_sql("SAVEPOINT unindexed")
        try:
            connection.execute(REQUESTS)
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            # An owner who may make nothing more in the schema charges as before.
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT unindexed")

    def _begin(self, connection: Connection, level: str) -> None:
        wait = round(self.timeout * 1000)
        connection.exec_driver_sql(BEGIN.format(level=level, wait=wait))

    def _settle(self, written: tuple[int, str]) -> None:
        """Find out whether a commit that was never answered took place.

        Raises
        ------
        LedgerError
            It did not, or nobody can say in time.
        """
        end = time.monotonic() + self.timeout
        while True:
            try:
                committed = self._wrote(written)
                break
            except LedgerError:
                if time.monotonic() > end:
                    raise LedgerError(
                        f"the connection to {self.name} broke while an entry was being written, "
                        "and the server does not say whether it was: count a charge as made. "
                        "Later, the same request under the same token tells"
                    ) from None
                time.sleep(0.1)
        if not committed:
            raise LedgerError(
                f"the connection to {self.name} broke before anything was written; nothing was "
                "charged: try again"
            )

    def _wrote(self, written: tuple[int, str]) -> bool:
        with _in_words(self.name), self._engine.connect() as connection, _ending(connection):
            self._begun(connection, writes=True)
            count, hash_ = written
            found = connection.execute(_HASH, {"number": count - 1}).scalar_one_or_none()
            connection.rollback()
            return bool(found == hash_)


class _Kept:
    """The connection that a store keeps, and the process that it belongs to."""

    def __init__(self) -> None:
        self.raw: Any = None
        self.process = 0

    def hold(self, raw: Any) -> Any:
        self.close()
        self.raw, self.process = raw, os.getpid()
        return raw

    def close(self) -> None:
        if self.raw is not None and self.process == os.getpid():
            self.raw.close()
            self.raw = None

    def leave(self) -> None:
        """Forget it without a word to the server: in a new process it is the parent's."""
        if self.raw is not None:
            _left.append(self.raw)
            self.raw = None


_left: list[Any] = []
"""Connections of a parent process, which nobody may close here, not even the end of their life."""


def _engine(place: LedgerSchema, dsn: Secret, timeout: float, kept: _Kept) -> Engine:
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: kept.hold(connect(dsn, application="dither ledger", timeout=timeout)),
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        pool_timeout=timeout,
        pool_pre_ping=True,
        use_native_hstore=False,
        hide_parameters=True,
    ).execution_options(schema_translate_map={None: place.schema})


def _at(connection: Connection, query: Select[Any]) -> tuple[int, str] | None:
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.length, row.hash)


def _check_server(connection: Connection, name: str) -> None:
    fsync, encoding = connection.execute(_SETTINGS).one()
    if fsync != "on":
        raise LedgerError(
            f"the server of {name} runs with fsync = off, so that a power cut could undo a charge "
            "whose answer is out: turn fsync on; nothing was charged"
        )
    if encoding != "UTF8":
        raise LedgerError(
            f"the database of {name} is not in UTF8, so it cannot hold every text: make one with "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )


@contextmanager
def _ending(connection: Connection) -> Iterator[None]:
    """Whatever ends the block early undoes the transaction, or gives up the connection."""
    try:
        yield
    except BaseException:
        try:
            connection.rollback()
        except DBAPIError:
            connection.invalidate()
        raise


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """Turn what the server says into one of our errors, and show none of its words.

    They may quote the connection string, and rows.
    """
    try:
        yield
    except Unreachable as error:
        raise LedgerError(f"the ledger {name} cannot be reached: {error}") from None
    except DBAPIError as error:
        raise _translated(error, name) from None


def _translated(error: DBAPIError, name: str) -> DitherError:
    state = getattr(error.orig, "sqlstate", None) or ""
    if refused := refusal(state, name):
        return refused
    if error.connection_invalidated or state[:3] in ("08", "57P") or state[:2] == "08":
        return LedgerError(
            f"the connection to {name} broke; nothing was written by this call: try again"
        )
    if state in ("55P03", "40001", "40P01"):
        return LedgerLockedError(locked(name))
    if state == "57014":
        return LedgerLockedError(
            f"the server of {name} ended a statement that took too long (statement_timeout) or "
            "that an administrator cancelled; nothing was written: try again"
        )
    if state == "42501":
        return LedgerError(
            f"the role that {name} connects as lacks a right: `dither ledger grants LEDGER ROLE` "
            "prints what the owner of the ledger's tables runs to let it ask, or read; to begin a "
            "ledger takes CREATE on the database. See docs/ledger.md"
        )
    if state in ("25006", "0A000"):
        return LedgerError(
            f"the server of {name} only reads, as a standby does, so nothing can be charged: name "
            "the primary (target_session_attrs=read-write)"
        )
    if state[:2] == "53":
        return LedgerError(
            f"the server of {name} has no disk, memory or connection left for this; nothing was "
            "written: make room, and try again"
        )
    if state == APPEND_ONLY or state[:2] == "23":
        return LedgerError(f"{name} is append-only, and refused the change")
    if state[:2] == "42" or state in ("3F000", "XX001", "XX002"):
        return LedgerCorruptError(f"{name} is damaged or no ledger: {RESTORE}")
    if state == "22021" or not state:
        return LedgerError(
            f"{name} cannot hold this text, or the driver failed on it; nothing was written"
        )
    return LedgerError(f"the server of {name} refused (SQLSTATE {state}); nothing was written")
