"""The store of a ledger, opened where it is, or begun there with its first entry."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, select

from dither._files import looked_at
from dither.errors import LedgerError
from dither.ledger import _chain as chain
from dither.ledger._entries import FIRST
from dither.ledger._place import LedgerSchema, read_place
from dither.ledger.stores._sqlite import FileStore, create_file
from dither.ledger.stores._store import FORMAT, Store, columns_of, head

__all__ = ["opened_store"]


def opened_store(
    place: str | Path | LedgerSchema | Mapping[str, str], create: bool, timeout: float
) -> Store:
    """A store that can be read; parameters and errors as of `Ledger.open`."""
    where = read_place(place)
    store = (
        _on_server(where, create, timeout)
        if isinstance(where, LedgerSchema)
        else _in_file(where.absolute(), create, timeout)
    )
    try:
        with store.read() as connection:
            for table in (head, columns_of(connection)):
                connection.execute(select(table).limit(1))
    except BaseException:
        store.close()
        raise
    return store


def _in_file(file: Path, create: bool, timeout: float) -> Store:
    with looked_at(file, LedgerError):
        within, directory, there = file.parent.is_dir(), file.is_dir(), file.exists()
    if not within:
        raise LedgerError(
            f"there is no directory {str(file.parent)!r} for the ledger: make it first"
        )
    if directory:
        raise LedgerError(f"{str(file)!r} is a directory: name a file in it")
    if not there:
        if not create:
            raise LedgerError(f"there is no ledger {str(file)!r}: see the path in the policy")
        create_file(file, _first_entry)
    return FileStore(file, timeout)


def _on_server(where: LedgerSchema, create: bool, timeout: float) -> Store:
    # A process whose ledger is a file never loads this.
    from dither.ledger.stores._postgres import ServerStore

    store = ServerStore(where, timeout)
    try:
        if not store.exists():
            if not create:
                raise LedgerError(
                    f"there is no ledger {store.name}: schema {where.schema!r} of that database "
                    "has none"
                )
            store.create(_first_entry)
    except BaseException:
        store.close()
        raise
    return store


def _first_entry(connection: Connection) -> None:
    note = {"format": FORMAT, "ledger": secrets.token_hex(16)}
    chain.append(connection, chain.Head(0, FIRST), "genesis", totals={}, note=note)
