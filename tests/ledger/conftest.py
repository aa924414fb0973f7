"""A ledger with two accounts, and one with entries of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Promise
from ledger.clocks import ledgers_clock
from ledger.stores import new_schema
from postgres_server import Database, Server

PATIENT = Promise("patient")

PURE = BudgetFilter(Fraction(1), Fraction(0))


@pytest.fixture(scope="session")
def ledgers(postgres_server: Server) -> Database:
    """The database of all ledgers on PostgreSQL, each in a schema of its own."""
    return postgres_server.database()


@pytest.fixture(params=["file", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path | LedgerSchema:
    """Where there is no ledger yet: a file, and a schema on a server."""
    if request.param == "file":
        return tmp_path / "visits.ledger"
    monkeypatch.setenv("LEDGER_DSN", request.getfixturevalue("ledgers").owner)
    return new_schema()


@pytest.fixture
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """What the machine's clock says: the last of these, and at first the module's ``NOW``."""
    return ledgers_clock(monkeypatch, request.module.NOW)


@pytest.fixture
def book(place: Path | LedgerSchema) -> Iterator[Ledger]:
    """An empty ledger with the accounts "visits" and "ann", epsilon 1 each."""
    ledger = Ledger.open(place)
    ledger.ensure_account("visits", PURE, PATIENT)
    ledger.ensure_account("ann", PURE, PATIENT)
    yield ledger
    ledger.close()


@pytest.fixture
def full(book: Ledger) -> Ledger:
    """Entries of every kind; 3, 4 and 7 are charges, 5 answers 3."""
    tenth = Charge.pure(Fraction(1, 10), PATIENT)
    book.charge(["visits", "ann"], tenth, token="a", request="aa" * 32, note={"query": "one"})
    book.charge(["visits"], tenth, token="b", request="bb" * 32, note={"query": "two"})
    book.store_answer(3, "answer of three")
    book.amend("ann", BudgetFilter(Fraction(2), Fraction(0)), "agreed")
    book.charge(["visits", "ann"], tenth, token="c", request="cc" * 32, note={"query": "three"})
    book.store_answer(7, "answer of seven")
    return book
