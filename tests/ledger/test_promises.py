"""An account protects one unit under one neighbour relation, from its first entry to its last."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, LedgerError, PromiseError
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Neighbours, Promise
from ledger.racing import raced
from ledger.stores import resealed, rows

PATIENT = Promise("patient")
REPLACED = Promise("patient", Neighbours.REPLACE)
ROW = Promise("row of visits")
TENTH = Fraction(1, 10)
CAPS = BudgetFilter(Fraction(1), Fraction(0))


def charge(ledger: Ledger, account: str, promise: Promise | None, **changes: object) -> int:
    """Charge a tenth for a promise; the number of the entry."""
    arguments: dict[str, object] = {
        "token": os.urandom(8).hex(),
        "request": "ab" * 32,
        "note": {},
        **changes,
    }
    return ledger.charge([account], Charge.pure(TENTH, promise), **arguments).entry  # type: ignore[arg-type]


@pytest.mark.parametrize("promise", [REPLACED, ROW])
def test_promises_that_cannot_be_added_are_not(book: Ledger, promise: Promise) -> None:
    """Other neighbours or another unit: refused by both names, and nothing is written."""
    charge(book, "visits", PATIENT)
    before = rows(book)
    said = rf"'visits' protects one patient, added or removed.*{promise.describe()}.*to_replace"
    with pytest.raises(PromiseError, match=said):
        charge(book, "visits", promise)
    assert rows(book) == before


def test_a_charge_says_whom_it_protects(book: Ledger) -> None:
    """A mechanism's bare loss is refused, and so is what is not a charge at all."""
    with pytest.raises(PromiseError, match=r"does not say whom it protects.*loss\.promising"):
        charge(book, "visits", None)
    with pytest.raises(ArgumentError, match="charge must be a Loss"):
        book.charge(["visits"], TENTH, token="x", request="ab" * 32, note={})  # type: ignore[arg-type]


def test_the_promise_is_fixed_at_the_first_entry(book: Ledger) -> None:
    """Opening the account again for something else is refused, spent or not; amending keeps it."""
    for promise in (REPLACED, ROW):
        with pytest.raises(PromiseError, match="protects one patient, added or removed"):
            book.ensure_account("visits", CAPS, promise)
    book.amend("visits", BudgetFilter(Fraction(2), Fraction(0)), "more")
    assert book.balance("visits").promise == PATIENT
    assert {entry.promise for entry in book.entries("visits")} == {PATIENT}
    with pytest.raises(PromiseError):
        charge(book, "visits", REPLACED)
    with pytest.raises(ArgumentError, match="promise must be a Promise"):
        book.ensure_account("new", CAPS, "patient")  # type: ignore[arg-type]


def test_one_charge_to_two_promises_is_refused_whole(book: Ledger) -> None:
    """An account of other neighbours beside one that fits: neither is charged."""
    book.ensure_account("other", CAPS, REPLACED)
    with pytest.raises(PromiseError, match="'other' protects one patient, replaced"):
        book.charge(
            ["visits", "other"],
            Charge.pure(TENTH, PATIENT),
            token="t",
            request="ab" * 32,
            note={},
        )
    assert book.balance("visits").spent == Charge(promise=PATIENT)


def test_a_converted_charge_is_borne_at_its_price(book: Ledger) -> None:
    """A replacement costs twice, a patient of three rows three times, and the account knows it."""
    book.ensure_account("replaced", CAPS, REPLACED)
    for account, found, epsilon in (
        ("replaced", Charge.pure(TENTH, PATIENT).to_replace(), 2 * TENTH),
        ("visits", Charge.pure(TENTH, ROW).to_group("patient", 3), 3 * TENTH),
    ):
        book.charge([account], found, token=account, request="ab" * 32, note={})
        assert book.balance(account).spent.epsilon == epsilon
    assert book.verify().ok


def test_a_table_stays_with_its_promise(book: Ledger) -> None:
    """One that was read for patients is not read for rows on another account, nor by other ids."""
    book.ensure_account("rows", CAPS, ROW)
    book.ensure_account("replaced", CAPS, REPLACED)
    by = {"visits": "column pid"}
    charge(book, "visits", PATIENT, tables=by)
    charge(book, "visits", PATIENT, tables={**by, "labs": "column pid"})
    before = rows(book)
    for account, promise, tables in (
        ("rows", ROW, {"visits": "each row"}),
        ("replaced", REPLACED, by),
        ("replaced", REPLACED, {"labs": "column pid"}),
        ("visits", PATIENT, {"visits": "column household"}),
    ):
        with pytest.raises(PromiseError, match=r"table '(visits|labs)'.*begin a new ledger"):
            charge(book, account, promise, tables=tables)
        with pytest.raises(PromiseError):
            book.check(promise, tables=tables)
        with pytest.raises(PromiseError):
            book.check(ROW if promise == PATIENT else PATIENT, accounts={account: CAPS})
    book.check(PATIENT, accounts={"visits": CAPS, "new": CAPS}, tables=by)
    assert rows(book) == before
    charge(book, "rows", ROW, tables={"people": "each row"})
    assert book.tables() == {
        "visits": (PATIENT, "column pid"),
        "labs": (PATIENT, "column pid"),
        "people": (ROW, "each row"),
    }
    assert book.verify().ok


@pytest.mark.parametrize("tables", [{"": "x"}, {"visits": ""}, {"visits": 3}, {3: "x"}])
def test_tables_are_named_by_text(book: Ledger, tables: dict[object, object]) -> None:
    """Refused before anything is written."""
    with pytest.raises(ArgumentError, match="tables"):
        charge(book, "visits", PATIENT, tables=tables)


RACE = """
import sys
from fractions import Fraction
from dither.accounting import BudgetFilter
from dither.errors import PromiseError
from dither.ledger import Ledger
from dither.ledger._entries import Record
from dither.privacy import Charge, Neighbours, Promise

number = int(sys.argv[2])
relation = Neighbours.REPLACE if number % 2 else Neighbours.ADD_REMOVE
promise = Promise("patient", relation)
ledger = Ledger.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
taken = 0
for i in range(5):
    try:
        ledger.ensure_account("new", BudgetFilter(Fraction(9), Fraction(0)), promise)
        charge = Charge.pure(Fraction(1, 10), promise)
        ledger.charge(["new"], charge, token=f"{number}-{i}", request="ab" * 32, note={},
                      tables={"visits": "column pid"})
        taken += 1
    except PromiseError:
        pass
print(relation.value, taken, flush=True)
"""


def test_eight_processes_agree_on_one_promise(place: Path | LedgerSchema) -> None:
    """They open and charge one account at once, half for each relation: one half wins, whole."""
    Ledger.open(place).close()
    said = raced([["-c", RACE, str(place), str(number)] for number in range(8)])
    taken = {relation: 0 for relation, _ in said}
    for relation, count in said:
        taken[relation] += int(count)
    assert sorted(taken.values()) == [0, 20]
    ledger = Ledger.open(place)
    balance = ledger.balance("new")
    assert taken[balance.promise.neighbours.value] == 20
    assert balance.spent.epsilon == 2
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"promise": '{"neighbours":"replace","unit":"patient"}'},
            "promises something else than account 'visits'",
        ),
        (
            {"promise": '{"neighbours":"add-remove","unit":"row"}'},
            "promises something else than account 'visits'",
        ),
        ({"promise": "{}"}, "cannot be read"),
        ({"tables": "{}"}, "moves a table"),
        (
            {
                "tables": '{"visits":{"by":"column other","promise":'
                '{"neighbours":"add-remove","unit":"patient"}}}'
            },
            "moves a table",
        ),
        (
            {
                "tables": '{"visits":{"by":"column pid","promise":'
                '{"neighbours":"add-remove","unit":"patient"}},"labs":{"by":"each row","promise":'
                '{"neighbours":"add-remove","unit":"row"}}}'
            },
            "moves a table",
        ),
        ({"tables": "[]"}, "cannot be read"),
    ],
)
def test_the_chain_is_checked_for_its_promises(
    book: Ledger, columns: dict[str, str], problem: str
) -> None:
    """What a careless or malicious writer sealed is found by `verify` and not charged upon."""
    charge(book, "visits", PATIENT, tables={"visits": "column pid"})
    last = charge(book, "visits", PATIENT, tables={"visits": "column pid"})
    resealed(book, last, columns)
    found = book.verify()
    assert (found.ok, found.bad) == (False, last)
    assert problem in str(found.problem)
    if "promise" in columns:
        with pytest.raises(LedgerError):
            charge(book, "visits", PATIENT)


def test_entries_and_balances_show_the_promise(book: Ledger) -> None:
    """In every place where amounts are read."""
    number = charge(book, "visits", PATIENT)
    entry = book.entry(number)
    assert entry.promise == PATIENT
    assert entry.charge is not None
    assert entry.charge.promise == PATIENT
    assert book.balance("visits").spent.promise == PATIENT
    assert book.entry(0).promise is None


def test_a_charge_opens_its_accounts_or_nothing(book: Ledger) -> None:
    """In one transaction: what is refused leaves no account, what is borne binds it."""
    before = rows(book)
    whole = Charge(epsilon=Fraction(2), promise=ROW)
    with pytest.raises(BudgetError):
        book.charge({"new": CAPS}, whole, token="a", request="ab" * 32, note={})
    assert rows(book) == before
    assert "new" not in book.accounts()
    book.charge({"new": CAPS}, Charge.pure(TENTH, ROW), token="b", request="ab" * 32, note={})
    assert (book.balance("new").promise, book.balance("new").spent.epsilon) == (ROW, TENTH)
    other = {"new": BudgetFilter(Fraction(9), Fraction(0))}
    with pytest.raises(LedgerError, match="amend"):
        book.charge(other, Charge.pure(TENTH, ROW), token="c", request="ab" * 32, note={})
    with pytest.raises(PromiseError):
        book.charge(
            {"new": CAPS}, Charge.pure(TENTH, PATIENT), token="d", request="ab" * 32, note={}
        )
    assert book.verify().ok
