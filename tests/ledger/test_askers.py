"""Roles that ask: they charge through functions that the owner of the tables gave them, as others
do, and cannot do anything else."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.errors import (
    ArgumentError,
    BudgetError,
    DitherError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    PromiseError,
    TokenError,
)
from dither.ledger import Ledger
from dither.ledger._block_budget import BlockBudget
from dither.ledger._entries import UNIT, canonical
from dither.ledger._place import LedgerSchema
from dither.ledger.stores._askers import granted
from dither.ledger.stores._functions import CALLED, HELPERS
from dither.privacy import Charge, Promise
from ledger.stores import administrator, new_schema, rows
from postgres_server import PASSWORD, Database, literal

PATIENT, ROW = Promise("patient"), Promise("row of visits")
DATASET, ANN, BEN = "dataset:patient", "analyst:ann:patient", "analyst:ben:patient"
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
ONE = BudgetFilter(Fraction(1), Fraction(0))
LOOSE = BudgetFilter(Fraction(1), Fraction(1, 10**6))
REQUEST = "ab" * 32


def quoted(book: Ledger) -> str:
    """The schema of a ledger, as SQL writes it."""
    assert isinstance(book.place, LedgerSchema)
    return '"' + book.place.schema.replace('"', '""') + '"'


def let(book: Ledger, role: str, *quotas: str, kind: str = "asker") -> None:
    """Make a role, and run what is printed for it."""
    assert isinstance(book.place, LedgerSchema)
    with administrator(book) as raw:
        if raw.execute("SELECT FROM pg_roles WHERE rolname = %s", [role]).rowcount == 0:
            raw.execute(f"CREATE ROLE {role} LOGIN PASSWORD {literal(PASSWORD)}")
        raw.execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {raw.info.dbname} TO {role}")
        for statement in granted(book.place.schema, role, kind, quotas, owner="owner"):
            raw.execute(statement.replace("%", "%%"))


@pytest.fixture
def owned(ledgers: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger as its owner sees it: the data set, two analysts, and another unit."""
    monkeypatch.setenv("LEDGER_DSN", ledgers.owner)
    for role in ("ann", "ben"):
        monkeypatch.setenv(f"{role.upper()}_DSN", ledgers.server.dsn(ledgers.name, role))
    with Ledger.open(new_schema()) as book:
        book.open_accounts({DATASET: LOOSE, ANN: ONE, BEN: ONE}, PATIENT)
        book.open_accounts({"dataset:row of visits": ONE}, ROW)
        let(book, "ann", "analyst:ann")
        let(book, "ben", "analyst:ben")
        yield book


def opened_by(book: Ledger, role: str, timeout: float = 30.0) -> Ledger:
    """The same ledger, opened as a role."""
    assert isinstance(book.place, LedgerSchema)
    place = LedgerSchema(f"env:{role.upper()}_DSN", book.place.schema)
    return Ledger.open(place, create=False, timeout=timeout)


@pytest.fixture
def asked(owned: Ledger) -> Iterator[Ledger]:
    """The same, as a role sees it that asks."""
    with opened_by(owned, "ann") as book:
        yield book


def spend(book: Ledger, token: str = "t", charge: Charge = TENTH, **more: Any) -> int:
    """Charge the data set and ann."""
    return book.charge(
        [DATASET, ANN], charge, token=token, request=REQUEST, note={"query": "q"}, **more
    ).entry


def test_a_role_that_asks_does_what_a_question_needs(asked: Ledger, owned: Ledger) -> None:
    """Charge, answer, replay, balance, entries and verify; its name stands in the note."""
    read = {"visits": "column patient"}
    before = spend(asked, tables=read, sources={"visits": {"file:///v": "1"}})
    asked.store_answer(before, "naïve ☃ \U0001f600 '\"\\\n")
    again = asked.charge([DATASET, ANN], TENTH, token="t", request=REQUEST, note={})
    assert (again.replayed, again.answer) == (True, "naïve ☃ \U0001f600 '\"\\\n")
    assert asked.balance(ANN).spent.epsilon == Fraction(1, 10)
    assert asked.charged("t") == owned.charged("t")
    assert asked.entry(before).note == {"query": "q", "role": "ann"}
    for book in (asked, owned):
        assert book.verify().describe().endswith(asked.entries()[-1].hash[:16])
        assert book.verify().ok
