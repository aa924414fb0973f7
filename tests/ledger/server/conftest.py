"""A ledger on a server, as its owner and as a role sees it that asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dither.ledger import Ledger
from ledger.server.asking import ANN, BEN, DATASET, LOOSE, ONE, PATIENT, ROW, let, opened_by
from ledger.stores import new_schema
from postgres_server import Database


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


@pytest.fixture
def asked(owned: Ledger) -> Iterator[Ledger]:
    """The same, as a role sees it that asks."""
    with opened_by(owned, "ann") as book:
        yield book
