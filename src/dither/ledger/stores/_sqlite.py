"""One SQLite file: transactions that survive a crash, and errors that say what to do.

How a commit is made durable
----------------------------
The file keeps SQLite's rollback journal (``journal_mode=DELETE``) under ``synchronous=EXTRA``: the
journal is on the disk before the file is touched, the file before the journal goes, and the
directory is synced after the journal has gone. When a commit returns, the entry outlives SIGKILL
and power loss; when a writer dies before, the next one to open the file rolls its half back.

A write-ahead log would be faster, and is not used: it spreads a ledger over three files, so
that a copy of the one that people know would lack the newest entries, and it needs shared
memory, which network file systems do not give.

No connection outlives a call
-----------------------------
Each call opens the file and closes it again. A process may therefore fork at any time (a fork
waits for a call that another thread is in), threads share one object behind a lock, and a file
that was moved away is missed at once. It costs about 0.2 ms, less than the sync beside it.
What SQLAlchemy has made of a statement is kept for all files of the process: it takes several
times longer than running it.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from dither.errors import LedgerCorruptError, LedgerError, LedgerLockedError
from dither.ledger._entries import FIRST
from dither.ledger.stores._store import (
    FORMAT,
    REQUESTS,
    Store,
    check_version,
    entries,
    format_of,
    head,
    locked,
    states,
    touches,
)

__all__ = ["APPLICATION", "TRIGGERS", "FileStore", "create_file"]

APPLICATION = 0x64697468
"""Marks the file as a ledger for programs like ``file``: "dith" in ASCII."""


def _trigger(name: str, event: str, when: str = "") -> str:
    condition = f" WHEN {when}" if when else ""
    return (
        f"CREATE TRIGGER {name} BEFORE {event}{condition} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


EARLIER_TRIGGERS: dict[str, str] = {
    name: _trigger(name, event, when)
    for name, event, when in [
        ("entries_update", "UPDATE ON entries", ""),
        ("entries_delete", "DELETE ON entries", ""),
        # INSERT OR REPLACE deletes what it collides with, and fires no DELETE trigger.
        (
            "entries_insert",
            "INSERT ON entries",
            "NEW.number IS NOT (SELECT count FROM head)"
            " OR EXISTS (SELECT 1 FROM entries WHERE token = NEW.token)"
            " OR EXISTS (SELECT 1 FROM entries WHERE answers = NEW.answers)",
        ),
        ("touches_update", "UPDATE ON touches", ""),
        ("touches_delete", "DELETE ON touches", ""),
        ("touches_insert", "INSERT ON touches", "NEW.entry IS NOT (SELECT count FROM head)"),
        ("head_update", "UPDATE ON head", "NEW.count IS NOT OLD.count + 1 OR NEW.id IS NOT 1"),
        ("head_delete", "DELETE ON head", ""),
        ("head_insert", "INSERT ON head", "EXISTS (SELECT 1 FROM head)"),
    ]
}
"""Those of format 2."""

_NOT_NOW = (
    "NEW.entry IS NOT (SELECT count FROM head)"
    " OR NOT EXISTS (SELECT 1 FROM touches WHERE account = NEW.account AND entry = NEW.entry)"
)
"""A state changes with the entry that is being written, and that entry touches the account."""

TRIGGERS: dict[str, str] = EARLIER_TRIGGERS | {
    name: _trigger(name, event, when)
    for name, event, when in [
        (
            "states_insert",
            "INSERT ON states",
            f"{_NOT_NOW} OR EXISTS (SELECT 1 FROM states WHERE account = NEW.account)",
        ),
        ("states_update", "UPDATE ON states", f"NEW.account IS NOT OLD.account OR {_NOT_NOW}"),
        ("states_delete", "DELETE ON states", ""),
    ]
}
"""Name and text of each trigger, as SQLite keeps them."""


def _make(connection: Connection) -> None:
    """Make the tables and triggers of an empty ledger inside the running transaction."""
    for table in (entries, touches, states, head):
        table.create(connection)
    for text in TRIGGERS.values():
        connection.exec_driver_sql(text)
    connection.execute(head.insert().values(id=1, count=0, hash=FIRST))
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")


class FileStore(Store):
    """Transactions on one existing file.

    Parameters
    ----------
    path : Path
        The file.
    timeout : float
        Seconds to wait for another process or thread that holds it.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__(path.name, timeout)
        self.path = path

    @property
    def place(self) -> Path:
        """The file."""
        return self.path

    @property
    def spot(self) -> str:
        """The file, whatever links lead to it."""
        return os.path.realpath(self.path)

    def fault(self, connection: Connection) -> str | None:
        """Whether SQLite finds it whole, and its triggers are as they were made."""
        if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one() != "ok":
            return "the file is damaged: its tables and indexes disagree"
        found = connection.exec_driver_sql(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        )
        expected = TRIGGERS if format_of(connection) == FORMAT else EARLIER_TRIGGERS
        if {row[0]: row[1] for row in found} != expected:
            return "the triggers that keep it append-only were changed"
        return None

    def _upgraded(self, fill: Callable[[Connection], None]) -> bool:
        with _in_words(self.path), self._connected() as connection:
            connection.execution_options(immediate=True)
            with connection.begin():
                _check_format(connection, self.path, writes=False)
                before = format_of(connection)
                if before == FORMAT:
                    return False
                # Nobody else writes now, and nothing is written yet: what is copied is what was.
                _copy(self.path, self.path.with_name(f"{self.path.name}.format-{before}"))
                connection.execution_options(ledger_format=FORMAT)
                for column in ("blocks", "signature"):
                    connection.exec_driver_sql(f"ALTER TABLE entries ADD COLUMN {column} TEXT")
                for index in entries.indexes:
                    index.create(connection)
                states.create(connection)
                for name in TRIGGERS.keys() - EARLIER_TRIGGERS.keys():
                    connection.exec_driver_sql(TRIGGERS[name])
                fill(connection)
                connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
        return True

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        with _in_words(self.path), self._connected() as connection:
            connection.execution_options(immediate=writes)
            with connection.begin():
                _check_format(connection, self.path, writes=writes)
                if writes and not self.indexed:
                    connection.execute(REQUESTS)
                yield connection
        self.indexed = self.indexed or writes

    def _connected(self) -> Connection:
        token = _wanted.set((self.path, self.timeout))
        try:
            return _engine().connect()
        finally:
            _wanted.reset(token)


_wanted: ContextVar[tuple[Path, float]] = ContextVar("_wanted")
"""The file that a connection is being made to, and the seconds to wait for it."""


@cache
def _engine() -> Engine:
    """One for all files; it keeps statements as they were compiled, and no connection."""
    # Parameters stay out of the errors: notes and answers are nobody's business in a log.
    engine = create_engine("sqlite://", creator=_open, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "begin", _begin)
    return engine


def _open() -> sqlite3.Connection:
    path, timeout = _wanted.get()
    # mode=rw: a ledger that was deleted is an error, never a new and empty one.
    return connect(path, "rw", timeout)


def connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """A bare connection on which every commit is a full sync."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    for setting in ("synchronous = EXTRA", "fullfsync = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def create_file(path: Path, fill: Callable[[Connection], None]) -> None:
    """Make a ledger under another name, then give it its own, all or nothing.

    A crash leaves no half-made ledger, so an empty file is one that was truncated. Where two
    processes create at once, one of them wins and the other uses the winner's.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    engine = create_engine(
        "sqlite://", creator=lambda: connect(draft, "rwc", 30.0), poolclass=NullPool
    )
    event.listen(engine, "begin", _begin)
    try:
        with _in_words(path), engine.connect() as connection:
            connection.execution_options(immediate=True)
            with connection.begin():
                _make(connection)
                fill(connection)
        _name(draft, path)
        draft.unlink(missing_ok=True)
        _sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(
            f"no file can be made in {str(path.parent)!r}: see that you may write there"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _copy(path: Path, to: Path) -> None:
    """Keep a ledger as it is under another name; a crash leaves no half of it under that name."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    try:
        with (
            closing(connect(path, "ro", 30.0)) as here,
            closing(connect(draft, "rwc", 30.0)) as there,
        ):
            here.backup(there)
        draft.replace(to)
        _sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(
            f"no copy can be made in {str(path.parent)!r}: see that you may write there"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def _name(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not path.exists():
            draft.rename(path)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _begin(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _check_format(connection: Connection, path: Path, *, writes: bool) -> None:
    # No file is ever read past SQLite: closing a second handle would drop its locks.
    application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if application != APPLICATION or version < 1:
        raise LedgerCorruptError(
            f"{path.name} is empty or no ledger: restore it from a copy, or name another file"
        )
    check_version(version, path.name, writes=writes)
    connection.execution_options(ledger_format=version)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn what SQLite says into one of our errors."""
    try:
        yield
    except DBAPIError as error:
        raise _translated(error.orig, path) from error
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _translated(error: BaseException | None, path: Path) -> LedgerError:
    # The low byte is the primary result code; the rest refines it.
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerLockedError(locked(path.name))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return LedgerError(
            f"{path.name} or its directory cannot be written, so nothing can be charged: "
            f"give yourself the right to write both (chmod u+w)"
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH):
        return LedgerError(
            f"{path.name} cannot be opened: see that the file is there and may be read, and "
            "that its directory may be written"
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
        return LedgerError(
            f"the disk that holds {path.name} is full or failing: make room, then see with "
            "`dither ledger show` whether the last charge was written; never count on it not being"
        )
    if code == sqlite3.SQLITE_CONSTRAINT:
        return LedgerError(f"{path.name} is append-only, and refused the change")
    if code in (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LedgerCorruptError(
            f"{path.name} is truncated, damaged or no ledger: restore it from a copy"
        )
    name = getattr(error, "sqlite_errorname", "an unknown error")
    return LedgerError(f"SQLite could not use {path.name}: {name}")
