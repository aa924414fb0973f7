"""What tests do to a ledger behind its back, whichever store keeps it."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from sqlalchemy import select

from dither.ledger import Ledger
from dither.ledger._entries import Record
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._sqlite import TRIGGERS
from dither.ledger.stores._store import entries, head, touches

only_files = pytest.mark.parametrize("place", ["file"], indirect=True)

_schemas = itertools.count()

Statement = str | tuple[str, Iterable[object]]
COLUMNS = [f.name for f in fields(Record)]


def new_schema() -> LedgerSchema:
    """A schema that no other test of this process has."""
    return LedgerSchema("env:LEDGER_DSN", f"ledger {next(_schemas)}")


def rows(book: Ledger) -> list[list[Any]]:
    """Every row of every table."""
    with book._store.read() as connection:
        return [
            sorted(map(repr, connection.execute(select(table))))
            for table in (entries, touches, head)
        ]


def tamper(book: Ledger, *statements: Statement) -> None:
    """Run statements as somebody who knows how to lift the triggers and puts them back.

    Parameters are written ``?``.
    """
    if isinstance(book.place, Path):
        _tamper_file(book.place, statements)
        return
    with administrator(book) as raw:
        # What a superuser may: no trigger fires, and nothing refers to anything.
        raw.execute("SET session_replication_role = replica")
        for statement in statements:
            text, values = (statement, ()) if isinstance(statement, str) else statement
            raw.execute(text.replace("%", "%%").replace("?", "%s"), list(values))


def _tamper_file(path: Path, statements: Iterable[Statement]) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    for name in TRIGGERS:
        raw.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        text, values = (statement, ()) if isinstance(statement, str) else statement
        raw.execute(text, tuple(values))
    for text in TRIGGERS.values():
        raw.execute(text)
    raw.close()


def administrator(book: Ledger) -> Any:
    """A connection of the server's superuser to the schema of a ledger."""
    import psycopg

    place = book.place
    assert not isinstance(place, Path)
    dsn = os.environ[place.dsn.removeprefix("env:")]
    parts = urlsplit(dsn)
    raw = psycopg.connect(
        urlunsplit(parts._replace(netloc=parts.netloc.replace("owner:", "admin:", 1))),
        autocommit=True,
    )
    raw.execute("SELECT set_config('search_path', quote_ident(%s), false)", [place.schema])
    return raw


def record(book: Ledger, number: int) -> Record:
    """An entry as it is stored, sound or not."""
    with book._store.read() as connection:
        row = connection.execute(select(entries).where(entries.c["number"] == number)).one()
        return Record(**row._mapping)


def rehashed(book: Ledger, number: int) -> None:
    """Give an entry the hash that its columns call for."""
    sealed = record(book, number).computed_hash()
    tamper(book, ("UPDATE entries SET hash = ? WHERE number = ?", (sealed, number)))


def resealed(book: Ledger, number: int, columns: Mapping[str, object]) -> None:
    """Change columns of the newest entry, and make its hash and the head anew."""
    for column, value in columns.items():
        tamper(book, (f"UPDATE entries SET {column} = ? WHERE number = ?", (value, number)))
    rehashed(book, number)
    tamper(book, ("UPDATE head SET hash = ?", (record(book, number).hash,)))
