"""Amendments that are signed elsewhere: what is written is what the owner signed, or nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import AmendmentError, ArgumentError, LedgerError
from dither.ledger import BlockBudget, Ledger, OwnerKey
from dither.ledger._place import LedgerSchema
from dither.ledger.amendments import AmendmentBase, SignedAmendment, amend_by, base_of
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")
ONE, TWO = BudgetFilter(Fraction(1)), BudgetFilter(Fraction(2))
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
KEY, NEW, THIEF = OwnerKey.make(), OwnerKey.make(), OwnerKey.make()
POLICY, OTHER = "cd" * 32, "ef" * 32


@pytest.fixture
def owned(place: Path | LedgerSchema) -> Iterator[Ledger]:
    """A ledger that has an owner, and an account that has spent something."""
    with Ledger.open(place) as ledger:
        ledger.set_owner(KEY)
        ledger.ensure_account("visits", ONE, PATIENT, key=KEY)
        spend(ledger)
        yield ledger


def spend(ledger: Ledger, token: str = "z", **more: Any) -> int:
    """Charge a tenth."""
    accounts = more.pop("accounts", ["visits"])
    return ledger.charge(accounts, TENTH, token=token, request="ab" * 32, note={}, **more).entry


def signed(ledger: Ledger, budget: Any = TWO, key: OwnerKey = KEY, **more: Any) -> SignedAmendment:
    """An amendment as its owner signs it far away: the base travels as plain data."""
    base = AmendmentBase.from_dict(base_of(ledger, "visits").to_dict())
    made = SignedAmendment.made(replace(base, owner=key.public.text), budget, "agreed", POLICY, key)
    return replace(made, **more)


def test_it_is_the_entry_that_an_owner_writes_locally(owned: Ledger) -> None:
    """Caps change, the chain holds, and the signature is seen to be the owner's."""
    number = amend_by(owned, signed(owned))
    assert owned.balance("visits").caps == TWO
    entry = owned.entry(number)
    assert (entry.kind, entry.note) == ("amend", {"reason": "agreed", "policy": POLICY})
    assert entry.signature is not None
    found = owned.verify()
    assert (found.ok, found.notes) == (True, ()), found.describe()


def test_an_account_with_blocks_keeps_what_they_spent(place: Path | LedgerSchema) -> None:
    """Amounts of blocks change; their calendar does not by what is sent."""
    months = Calendar("month")
    each = BlockBudget(months, ONE, None)
    with Ledger.open(place) as ledger:
        ledger.set_owner(KEY)
        ledger.ensure_account("visits", each, PATIENT, key=KEY)
        spend(ledger, blocks=BlockSet(((3, 5),)))
        before = ledger.balance("visits").blocks
        amend_by(ledger, signed(ledger, BlockBudget(months, TWO, None)))
        after = ledger.balance("visits").blocks
        assert before is not None
        assert after is not None
        assert (after.state.text(), after.budget.each) == (before.state.text(), TWO)
        for other in (BlockBudget(Calendar("week"), ONE, None), TWO):
            with pytest.raises(AmendmentError, match="amounts alone"):
                signed(ledger, other)
        assert ledger.verify().ok


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: replace(one, caps={"epsilon": "3", "delta": "0"}), "signature"),
        (lambda one: replace(one, reason="another"), "signature"),
        (lambda one: replace(one, policy=OTHER), "signature"),
        (lambda one: replace(one, account="second"), "signature"),
        (lambda one: replace(one, signature="A" * 86 + "=="), "signature"),
        (lambda one: replace(one, signature="é"), "signature"),
        (lambda one: replace(one, number=one.number + 1), "went on"),
        (lambda one: replace(one, previous="0" * 64), "went on"),
        (lambda one: replace(one, time="2020-01-01T00:00:00+00:00"), "went on"),
        (lambda one: replace(one, account="nobody"), "no account"),
        (lambda one: replace(one, caps={"epsilon": "2", "delta": "0", "x": "1"}), "amounts alone"),
        (lambda one: replace(one, caps={"blocks": {}, "each": {}, "lifetime": None}), "amounts"),
    ],
)
def test_what_was_not_signed_is_not_written(
    owned: Ledger, change: Callable[[SignedAmendment], SignedAmendment], said: str
) -> None:
    """Each part of it is covered, and so is its place in the chain."""
    owned.ensure_account("second", ONE, PATIENT, key=KEY)
    made = change(signed(owned))
    before = owned.entries()
    with pytest.raises(AmendmentError, match=said):
        amend_by(owned, made)
    assert owned.entries() == before


@pytest.mark.parametrize(
    "caps",
    [
        {"epsilon": "1e999999999", "delta": "0"},
        {"epsilon": "0x2", "delta": "0"},
        {"epsilon": 2, "delta": "0"},
        {"epsilon": {"epsilon": "2", "delta": "0"}, "delta": "0"},
        {"epsilon": "4/2", "delta": "0"},
        {"epsilon": "1/0", "delta": "0"},
        {"epsilon": "-1", "delta": "0"},
        {"epsilon": 2.5, "delta": "0"},
        [],
        "x",
    ],
)
def test_caps_that_are_none_are_refused(owned: Ledger, caps: Any) -> None:
    """Numbers that fill a memory, other ways to write one, and other shapes: nothing is written."""
    before = owned.entries()
    with pytest.raises((ArgumentError, AmendmentError)):
        amend_by(owned, signed(owned, caps=caps))
    assert owned.entries() == before


def test_it_holds_once_and_there(owned: Ledger, tmp_path: Path) -> None:
    """Sent again, after another entry, or to another ledger of the same owner: refused."""
    made = signed(owned)
    with Ledger.open(tmp_path / "other.ledger") as other:
        other.set_owner(KEY)
        other.ensure_account("visits", ONE, PATIENT, key=KEY)
        spend(other)
        assert other.verify().ok
        with pytest.raises(AmendmentError, match="went on"):
            amend_by(other, made)
        # Even if somebody wrote its place over.
        base = base_of(other, "visits")
        with pytest.raises(AmendmentError, match="signature"):
            amend_by(other, replace(made, previous=base.previous, time=base.time))
    amend_by(owned, made)
    for one in (made, replace(signed(owned, ONE), signature=made.signature)):
        with pytest.raises(AmendmentError):
            amend_by(owned, one)
    stale = signed(owned, ONE)
    spend(owned, "later")
    with pytest.raises(AmendmentError, match="went on"):
        amend_by(owned, stale)
    assert owned.balance("visits").caps == TWO


def test_others_sign_nothing(owned: Ledger, tmp_path: Path) -> None:
    """A thief's key, the owner's before a hand-over, and a ledger that nobody owns."""
    with pytest.raises(AmendmentError, match="signature"):
        amend_by(owned, signed(owned, key=THIEF))
    base = base_of(owned, "visits")
    with pytest.raises(AmendmentError, match="another owner"):
        SignedAmendment.made(base, TWO, "x", POLICY, THIEF)
    owned.set_owner(NEW.public, key=KEY)
    with pytest.raises(AmendmentError, match="signature"):
        amend_by(owned, signed(owned))
    amend_by(owned, signed(owned, key=NEW))
    with Ledger.open(tmp_path / "nobodys.ledger") as free:
        free.ensure_account("visits", ONE, PATIENT)
        with pytest.raises(AmendmentError, match="has no owner"):
            SignedAmendment.made(base_of(free, "visits"), TWO, "x", POLICY, KEY)
        with pytest.raises(AmendmentError, match="has no owner"):
            amend_by(free, signed(free))


def test_a_recovered_key_raises_nothing(owned: Ledger) -> None:
    """As where the ledger is: caps fall, and do not rise."""
    owned.set_owner(NEW, recovered="lost")
    with pytest.raises(AmendmentError, match="may only stay or fall"):
        amend_by(owned, signed(owned, key=NEW))
    amend_by(owned, signed(owned, BudgetFilter(Fraction(1, 2)), NEW))
    assert owned.verify().ok


def test_the_policy_that_it_names_charges_under_the_new_caps(owned: Ledger) -> None:
    """And no other one, nor one that is asked for other blocks; a later change ends it."""
    amend_by(owned, signed(owned))
    caps = {"visits": ONE}
    for policy in (None, OTHER):
        with pytest.raises(LedgerError, match="was asked for"):
            spend(owned, "a", accounts=caps, policy=policy)
        with pytest.raises(LedgerError, match="was asked for"):
            owned.check(PATIENT, accounts=caps, policy=policy)
    owned.check(PATIENT, accounts=caps, policy=POLICY)
    assert owned.open_accounts(caps, PATIENT, key=KEY, policy=POLICY) == []
    with pytest.raises(LedgerError, match="was asked for"):
        owned.open_accounts(caps, PATIENT, key=KEY)
    spend(owned, "a", accounts=caps, policy=POLICY)
    in_blocks = {"visits": BlockBudget(Calendar("month"), ONE, None)}
    with pytest.raises(LedgerError, match="blocks cannot change unnoticed"):
        spend(owned, "b", accounts=in_blocks, policy=POLICY, blocks=BlockSet(((1, 1),)))
    owned.amend("visits", BudgetFilter(Fraction(3)), "on the spot", key=KEY)
    with pytest.raises(LedgerError, match="was asked for"):
        spend(owned, "c", accounts=caps, policy=POLICY)


def test_a_reservation_is_not_amended(owned: Ledger) -> None:
    """It is fixed for good."""
    until = dt.datetime.now(dt.UTC) + dt.timedelta(hours=5)
    owned.reserve(["visits"], TENTH, until=until)
    (name,) = owned.entry(4).accounts
    with pytest.raises(ArgumentError, match="fixed for good"):
        amend_by(owned, signed(owned, account=name))


def test_what_is_no_base_is_refused() -> None:
    """A service of another version, or something that is none."""
    for stored in ({}, {"account": "x"}, dict.fromkeys(AmendmentBase.__slots__, 1)):
        with pytest.raises(LedgerError, match="another version"):
            AmendmentBase.from_dict(stored)
