"""A ledger with two accounts, and one with entries of every kind."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.ledger import Ledger
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")

PURE = BudgetFilter(Fraction(1), Fraction(0))


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    """An empty ledger with the accounts "visits" and "ann", epsilon 1 each."""
    ledger = Ledger.open(tmp_path / "visits.ledger")
    ledger.ensure_account("visits", PURE, PATIENT)
    ledger.ensure_account("ann", PURE, PATIENT)
    return ledger


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
