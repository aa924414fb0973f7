"""What a schedule keeps beside the ledger: ids of reservations, written before they are made, and
up to where all is done.

The ledger has hashes of these ids alone, and whoever knows one may use the reservation. So they are
in a file of the owner's beside the ledger, or in a schema of their own beside that of the ledger,
which nobody who asks is granted. If all of it is lost, reservations lapse, and nothing is released
twice: that rests on the tokens in the ledger.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    delete,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dither._environment import secret
from dither._postgres import Unreachable, connect
from dither.errors import LedgerError
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._askers import quoted

__all__ = ["ScheduleState"]

_metadata = MetaData()
_reservations = Table(
    "schedule_reservations",
    _metadata,
    Column("schedule", String(100), primary_key=True),
    Column("low", Integer, primary_key=True),
    Column("high", Integer, primary_key=True),
    Column("known", String(64), nullable=False),
)

_marks = Table(
    "schedule_marks",
    _metadata,
    Column("schedule", String(100), primary_key=True),
    Column("what", String(20), primary_key=True),
    Column("number", Integer, nullable=False),
)

BESIDE = "_schedule"


class ScheduleState:
    """Ids of reservations, by schedule and stretch of time.

    Parameters
    ----------
    place : Path or LedgerSchema
        Where the ledger is.

    Raises
    ------
    LedgerError
        It cannot be opened.
    """

    def __init__(self, place: Path | LedgerSchema) -> None:
        self._engine = _on_server(place) if isinstance(place, LedgerSchema) else _in_file(place)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        failed = False
        try:
            with self._engine.begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError:
            failed = True
        if failed:
            raise LedgerError("what a schedule keeps beside the ledger cannot be read or written")

    def known(self, schedule: str, low: int, high: int) -> str | None:
        """The id of a reservation that was made, or was about to be."""
        query = select(_reservations.c["known"]).where(*_at(schedule, low, high))
        with self._connected() as connection:
            found: str | None = connection.execute(query).scalar_one_or_none()
        return found

    def keep(self, schedule: str, low: int, high: int, known: str) -> str:
        """Write an id down, in place of one that has lapsed; what stands there then."""
        row = {"schedule": schedule, "low": low, "high": high, "known": known}
        try:
            with self._connected() as connection:
                connection.execute(delete(_reservations).where(*_at(schedule, low, high)))
                connection.execute(insert(_reservations).values(**row))
        except IntegrityError:
            # Another process was quicker.
            return self.known(schedule, low, high) or known
        return known

    def forget(self, schedule: str, low: int, high: int) -> None:
        """Leave one out: it was used."""
        with self._connected() as connection:
            connection.execute(delete(_reservations).where(*_at(schedule, low, high)))

    def mark(self, schedule: str, what: str) -> int:
        """Up to which stretch of time all is done; 0 where nothing is known."""
        held = _marks.c
        query = select(held["number"]).where(held["schedule"] == schedule, held["what"] == what)
        with self._connected() as connection:
            found: int | None = connection.execute(query).scalar_one_or_none()
        return found or 0

    def set_mark(self, schedule: str, what: str, number: int) -> None:
        """Say so: it saves looking at what is done, and nothing rests on it."""
        held = _marks.c
        row = {"schedule": schedule, "what": what, "number": number}
        try:
            with self._connected() as connection:
                old = delete(_marks).where(held["schedule"] == schedule, held["what"] == what)
                connection.execute(old)
                connection.execute(insert(_marks).values(**row))
        except IntegrityError:
            # Another process said it.
            return

    def close(self) -> None:
        """Give connections back."""
        self._engine.dispose()


def _at(schedule: str, low: int, high: int) -> list[Any]:
    held = _reservations.c
    return [held["schedule"] == schedule, held["low"] == low, held["high"] == high]


def _in_file(ledger: Path) -> Engine:
    file = ledger.with_name(f"{ledger.name}{BESIDE}")

    def opened() -> sqlite3.Connection:
        return sqlite3.connect(file, timeout=30)

    engine = create_engine("sqlite://", creator=opened, poolclass=NullPool, hide_parameters=True)
    event.listen(engine, "connect", _durable)
    failed = False
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        _metadata.create_all(engine)
    except (OSError, SQLAlchemyError):
        failed = True
    if failed:
        raise LedgerError(f"{file.name} cannot be opened beside the ledger, or is no file of these")
    return engine


def _durable(connection: Any, _: object) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _on_server(place: LedgerSchema) -> Engine:
    schema = place.beside(BESIDE).schema
    dsn = secret(place.dsn, "ledger.postgres")

    def opened() -> Any:
        found = connect(dsn, application="dither schedule", timeout=30)
        # SQLAlchemy begins and ends transactions by itself.
        found.autocommit = False
        return found

    engine = create_engine(
        "postgresql+psycopg://",
        creator=opened,
        poolclass=NullPool,
        use_native_hstore=False,
        hide_parameters=True,
    ).execution_options(schema_translate_map={None: schema})
    failed = None
    try:
        with engine.begin() as connection:
            connection.execute(
                text(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}".replace(":", "\\:"))
            )
            _metadata.create_all(connection)
    except Unreachable as error:
        failed = f"the ledger's server: {error}"
    except SQLAlchemyError:
        failed = f"the schema {schema!r} cannot be made or used beside the ledger"
    if failed is not None:
        raise LedgerError(failed)
    return engine
