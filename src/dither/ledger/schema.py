"""The tables of a ledger file, and the triggers that keep them append-only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)

__all__ = ["APPLICATION", "FORMAT", "TRIGGERS", "create", "entries", "head", "touches"]

FORMAT = 2
"""The version of the file format; it stands in the header of the file and in the first entry.

1. Accounts had caps alone.
2. Accounts are bound to a promise: a unit and its neighbours; and tables to theirs.
"""

APPLICATION = 0x64697468
"""Marks the file as a ledger for programs like ``file``: "dith" in ASCII."""

metadata = MetaData()


def _text(name: str, **options: Any) -> Column[Any]:
    return Column(name, Text, **options)


entries = Table(
    "entries",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    _text("time", nullable=False),
    _text("kind", nullable=False),
    _text("token", unique=True),
    _text("request"),
    # Amounts are whole numbers of UNIT as text: SQLite's own integers end at 64 bits.
    _text("epsilon"),
    _text("delta"),
    _text("rho"),
    _text("rho_delta"),
    _text("totals", nullable=False),
    _text("promise"),
    # All tables charged so far, carried from entry to entry: the newest entry has them all.
    _text("tables", nullable=False),
    _text("budget"),
    _text("note", nullable=False),
    Column("answers", Integer, unique=True),
    _text("answer"),
    _text("answer_digest"),
    _text("previous", nullable=False),
    _text("hash", nullable=False),
)

# Which entries touch an account: found from here in logarithmic time, held against the chain
# by `verify`. The state of an account is in the entries themselves, so that it is hashed too.
touches = Table(
    "touches",
    metadata,
    _text("account", primary_key=True),
    Column("entry", Integer, ForeignKey("entries.number"), primary_key=True),
    Column("sets_budget", Boolean, nullable=False),
    Index("budgets", "account", "sets_budget", "entry"),
    sqlite_with_rowid=False,
)

head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
    _text("hash", nullable=False),
)


def _trigger(name: str, event: str, when: str = "") -> str:
    condition = f" WHEN {when}" if when else ""
    return (
        f"CREATE TRIGGER {name} BEFORE {event}{condition} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


TRIGGERS: dict[str, str] = {
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
"""Name and text of each trigger, as SQLite keeps them."""


def create(connection: Connection, first: str) -> None:
    """Make the tables and triggers of an empty ledger inside the running transaction."""
    metadata.create_all(connection)
    for text in TRIGGERS.values():
        connection.exec_driver_sql(text)
    connection.execute(head.insert().values(id=1, count=0, hash=first))
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")
