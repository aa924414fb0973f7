"""The owner's key: caps change under its signature alone, and a recovery is seen by everyone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, LedgerCorruptError, LedgerError
from dither.ledger import BlockBudget, Ledger, OwnerKey
from dither.ledger._place import LedgerSchema
from dither.ledger._states import NO_SPENDING
from dither.privacy import Charge, Promise
from ledger.stores import record, resealed, tamper

PATIENT = Promise("patient")
ONE, TWO = BudgetFilter(Fraction(1)), BudgetFilter(Fraction(2))
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
KEY, NEW, THIEF = OwnerKey.make(), OwnerKey.make(), OwnerKey.make()


@pytest.fixture
def owned(place: Path | LedgerSchema) -> Iterator[Ledger]:
    """A ledger that has an owner; entry 1 names it, 2 opens an account."""
    with Ledger.open(place) as ledger:
        ledger.set_owner(KEY)
        ledger.ensure_account("visits", ONE, PATIENT, key=KEY)
        yield ledger


def spend(ledger: Ledger, token: str = "z") -> int:
    """Charge a tenth."""
    return ledger.charge(["visits"], TENTH, token=token, request="ab" * 32, note={}).entry


def test_caps_change_under_the_owners_signature(owned: Ledger) -> None:
    """With it an amendment is written and verifies; without it nothing is."""
    spend(owned)
    owned.amend("visits", TWO, "agreed", key=KEY)
    assert owned.balance("visits").caps == TWO
    assert owned.entry(4).signature is not None
    assert owned.entry(3).signature is None
    assert owned.owner is not None
    assert owned.owner.key == KEY.public
    found = owned.verify()
    assert (found.ok, found.notes) == (True, ()), found.describe()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda book: book.amend("visits", TWO, "no key"), "has an owner"),
        (lambda book: book.amend("visits", TWO, "x", key=THIEF), "is owned by key"),
        (lambda book: book.ensure_account("new", ONE, PATIENT), "has an owner"),
        (lambda book: book.ensure_account("new", ONE, PATIENT, key=THIEF), "is owned by key"),
        (lambda book: book.set_owner(THIEF), "is owned by key"),
        (lambda book: book.set_owner(THIEF.public, key=THIEF), "is owned by key"),
        (lambda book: book.set_owner(NEW.public, key=THIEF, recovered="x"), "the new key itself"),
        (
            lambda book: book.charge({"new": ONE}, TENTH, token="a", request="ab" * 32, note={}),
            "`dither ledger open POLICY --key OWNER.key`",
        ),
    ],
)
def test_nobody_else_changes_anything(
    owned: Ledger, change: Callable[[Ledger], None], said: str
) -> None:
    """Refused, and nothing is written."""
    before = owned.entries()
    with pytest.raises(LedgerError, match=said):
        change(owned)
    assert owned.entries() == before


def test_a_ledger_without_an_owner_takes_no_key(book: Ledger) -> None:
    """Whose it is is said first; a recovery of nothing is none."""
    with pytest.raises(LedgerError, match="has no owner yet"):
        book.amend("visits", TWO, "x", key=KEY)
    with pytest.raises(LedgerError, match="no key of one can be lost"):
        book.set_owner(KEY, recovered="lost")
    with pytest.raises(LedgerError, match="whose key signs"):
        book.set_owner(NEW.public, key=KEY)
    with pytest.raises(ArgumentError, match="a public one cannot"):
        book.set_owner(KEY.public)
    book.set_owner(KEY)
    with pytest.raises(LedgerError, match="has an owner"):
        book.amend("visits", TWO, "x")
    assert book.verify().ok


def test_the_owner_hands_over(owned: Ledger) -> None:
    """The old key signs; from then on the new one does, and the old one no more."""
    owned.set_owner(NEW.public, key=KEY)
    with pytest.raises(LedgerError, match="is owned by key"):
        owned.amend("visits", TWO, "x", key=KEY)
    owned.amend("visits", TWO, "x", key=NEW)
    found = owned.verify()
    assert (found.ok, found.notes) == (True, ())


def test_a_recovery_is_said_for_good_and_raises_nothing(owned: Ledger) -> None:
    """A new key without the old one's signature: caps stay or fall, until the old one signs."""
    owned.set_owner(NEW, recovered="the card is lost")
    with pytest.raises(LedgerError, match="may only stay or fall"):
        owned.amend("visits", TWO, "more", key=NEW)
    with pytest.raises(LedgerError, match="no account of a data set"):
        owned.ensure_account("other", ONE, PATIENT, key=NEW)
    owned.ensure_account("analyst:ann", ONE, PATIENT, key=NEW)
    owned.amend("visits", BudgetFilter(Fraction(1, 2)), "less", key=NEW)
    owned.amend("visits", BudgetFilter(Fraction(1, 2)), "the same", key=NEW)
    with pytest.raises(LedgerError, match="may only stay or fall"):
        owned.amend("visits", ONE, "what it was", key=NEW)
    spend(owned)
    found = owned.verify()
    assert found.ok
    assert "RECOVERED WITHOUT THE OLD KEY" in found.describe()
    assert "the card is lost" in found.describe()
    # Handing on does not wash it off, nor does recovering once more.
    owned.set_owner(THIEF.public, key=NEW)
    owned.set_owner(NEW, recovered="again")
    with pytest.raises(LedgerError, match="may only stay or fall"):
        owned.amend("visits", ONE, "more", key=NEW)
    assert owned.owner is not None
    assert owned.owner.before == KEY.public
    # The old key is found again, and says whose the ledger is.
    owned.set_owner(NEW.public, key=KEY)
    owned.amend("visits", TWO, "more", key=NEW)
    found = owned.verify()
    assert found.ok, found.describe()
    assert "RECOVERED" in found.describe()


BLOCKS = BlockBudget(Calendar(every="month"), ONE, TWO)


@pytest.mark.parametrize(
    ("old", "new", "goes"),
    [
        (ONE, BLOCKS, False),
        (TWO, BLOCKS, True),
        (TWO, BlockBudget(BLOCKS.calendar, ONE), False),
        (BLOCKS, ONE, True),
        (BLOCKS, TWO, False),
        (BLOCKS, BlockBudget(BLOCKS.calendar, BudgetFilter(Fraction(1, 2)), ONE), True),
        (BLOCKS, BlockBudget(BLOCKS.calendar, ONE), False),
        (BLOCKS, BlockBudget(BLOCKS.calendar, TWO, TWO), False),
        (BLOCKS, BlockBudget(Calendar(every="week"), ONE, TWO), False),
        (ONE, BudgetFilter(Fraction(1), Fraction(1, 10**9)), False),
    ],
)
def test_caps_of_blocks_stay_or_fall_as_well(
    place: Path | LedgerSchema, old: BudgetFilter, new: BudgetFilter, goes: bool
) -> None:
    """After a recovery nobody may lose more than under the caps before."""
    if not isinstance(place, Path):
        pytest.skip("the same on every store")
    with Ledger.open(place) as ledger:
        ledger.set_owner(KEY)
        ledger.ensure_account("visits", old, PATIENT, key=KEY)
        ledger.set_owner(NEW, recovered="lost")
        if goes:
            ledger.amend("visits", new, "x", key=NEW)
            assert ledger.verify().ok
        else:
            with pytest.raises(LedgerError, match="may only stay or fall"):
                ledger.amend("visits", new, "x", key=NEW)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"signature": None}, "is not signed"),
        ({"signature": "AAAA"}, "is not the owner's"),
        ({"budget": '{"delta":"0","epsilon":"99"}'}, "is not the owner's"),
        ({"note": '{"reason":"other"}'}, "is not the owner's"),
    ],
)
def test_an_amendment_that_the_owner_did_not_sign_is_found(
    owned: Ledger, columns: dict[str, object], problem: str
) -> None:
    """Hash and head made anew, by somebody who has the file and not the key."""
    owned.amend("visits", TWO, "agreed", key=KEY)
    resealed(owned, 3, columns)
    found = owned.verify()
    assert (found.ok, found.bad) == (False, 3)
    assert problem in str(found.problem)


def test_a_signature_holds_at_one_place_only(owned: Ledger) -> None:
    """What the owner signed once is not said again: it covers the entry before."""
    owned.amend("visits", TWO, "agreed", key=KEY)
    signed = record(owned, 3).signature
    owned.amend("visits", ONE, "back", key=KEY)
    owned.amend("visits", TWO, "agreed", key=KEY)
    resealed(owned, 5, {"signature": signed})
    assert owned.verify().bad == 5


@pytest.mark.parametrize("number", [1, 2])
def test_an_owner_who_is_taken_out_is_found(owned: Ledger, number: int) -> None:
    """The entry that names the owner, and the account that they opened, without a signature."""
    tamper(owned, ("UPDATE entries SET signature = NULL WHERE number = ?", (number,)))
    found = owned.verify()
    assert (found.ok, found.bad) == (False, number)


def test_a_charge_bears_no_signature(owned: Ledger) -> None:
    """Nobody's belongs there."""
    spend(owned)
    resealed(owned, 3, {"signature": KEY.sign("ledger entry", record(owned, 3).covered())})
    assert "nobody's signature" in str(owned.verify().problem)


def test_a_thief_who_writes_an_owner_is_found(owned: Ledger) -> None:
    """An entry that names another owner, signed by that one, and says no recovery."""
    spend(owned)
    note = '{"owner":"' + THIEF.public.text + '"}'
    resealed(
        owned,
        3,
        {"kind": "owner", "note": note, "totals": "{}", "promise": None, "token": None}
        | dict.fromkeys(("epsilon", "delta", "rho", "rho_delta", "request")),
    )
    tamper(owned, "DELETE FROM touches WHERE entry = 3")
    resealed(owned, 3, {"signature": THIEF.sign("ledger entry", record(owned, 3).covered())})
    found = owned.verify()
    assert (found.ok, found.bad) == (False, 3)
    assert "whoever signed it may not" in str(found.problem)


def test_accounts_with_blocks_are_opened_by_the_owner(place: Path | LedgerSchema) -> None:
    """Then anybody charges them, block by block."""
    with Ledger.open(place) as ledger:
        ledger.set_owner(KEY)
        assert ledger.open_accounts({"visits": BLOCKS, "analyst:a": ONE}, PATIENT, key=KEY) == [
            "visits",
            "analyst:a",
        ]
        assert ledger.open_accounts({"visits": BLOCKS}, PATIENT) == []
        ledger.charge(
            {"visits": BLOCKS},
            TENTH,
            token="a",
            request="ab" * 32,
            note={},
            blocks=BlockSet.of_range(1, 2),
        )
        assert ledger.verify().ok
        tamper(ledger, ("UPDATE states SET text = ?", (NO_SPENDING.text(),)))
        with pytest.raises(LedgerCorruptError):
            ledger.amend("visits", ONE, "x", key=KEY)
