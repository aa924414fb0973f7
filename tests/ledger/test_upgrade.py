"""A ledger of the format before: read as ever, never written, and brought to the newest whole."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import LedgerCorruptError, LedgerError, LedgerVersionError
from dither.ledger import BlockBudget, Ledger, _witness
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Promise
from ledger.earlier import earlier
from ledger.stores import only_files, resealed, tamper

PATIENT = Promise("patient")
SMALL = Charge(0, 0, Fraction(1, 1000), 0, PATIENT)
BOTH = ["dataset:patient", "analyst:ann:patient"]


@pytest.fixture
def old(place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger of format 2, which no process has seen: each test has the same one."""
    monkeypatch.setattr(_witness, "_process", {})
    earlier(place)
    return Ledger.open(place, create=False)


def spend(ledger: Ledger, token: str = "z") -> int:
    """Charge a little."""
    return ledger.charge(["dataset:patient"], SMALL, token=token, request="ab" * 32, note={}).entry


def test_the_format_before_is_read(old: Ledger) -> None:
    """Balances, entries, tables, replays and checks are what they were."""
    assert old.verify().describe().startswith("10 entries, chain whole")
    assert old.balance("dataset:patient").spent.rho == Fraction(30204081632653062, 10**18)
    assert [entry.kind for entry in old.entries()] == [
        *("genesis", "account", "account", "charge", "answer"),
        *("charge", "amend", "account", "charge", "answer"),
    ]
    again = old.replay(BOTH, token="a", request="aa" * 32)
    assert again is not None
    assert again.answer == "answer of three"
    assert set(old.tables()) == {"visits", "others"}
    assert old.owner is None
    assert len(old.answered("query")) == 2


def test_the_format_before_is_not_written(old: Ledger) -> None:
    """A charge, an amendment and an account are refused, and name the command."""
    before = old.entries()
    caps = BudgetFilter(Fraction(9))
    for write in (
        lambda: spend(old),
        lambda: old.amend("dataset:patient", caps, "more"),
        lambda: old.ensure_account("new", caps, PATIENT),
        lambda: old.store_answer(5, "late"),
    ):
        with pytest.raises(LedgerVersionError, match="`dither ledger upgrade LEDGER`"):
            write()
    assert old.entries() == before
    # One that is there with these caps needs nothing.
    old.ensure_account("dataset:row of visits", BudgetFilter(Fraction(1)), old.entry(7).promise)


def test_an_upgrade_keeps_everything_on_the_record(old: Ledger) -> None:
    """Numbers, hashes, caps, spending, tokens and answers; and then it is charged on."""
    before, balances = old.entries(), [old.balance(name) for name in old.accounts()]
    identity = old.id
    assert old.upgrade()
    assert not old.upgrade()
    assert old.entries()[:-1] == before
    assert [old.balance(name) for name in old.accounts()] == balances
    newest = old.entries()[-1]
    assert (newest.kind, newest.number) == ("upgrade", 10)
    assert newest.note["accounts"]["dataset:row of visits"] == {
        "caps": {"delta": "0", "epsilon": "1"},
        "spent": {
            "delta": "0",
            "epsilon": str(5 * 10**17),
            "rho": str(125 * 10**15),
            "rho_delta": "0",
        },
    }
    spend(old)
    again = old.replay(BOTH, token="a", request="aa" * 32)
    assert again is not None
    assert again.answer == "answer of three"
    assert old.id == identity
    with Ledger.open(old.place) as other:
        found = other.verify()
        assert (found.ok, found.entries) == (True, 12), found.describe()


def test_an_upgraded_ledger_goes_on_by_blocks(old: Ledger) -> None:
    """What was spent before counts in every block that had begun."""
    old.upgrade()
    each = BudgetFilter(Fraction(1), Fraction(1, 10**6))
    months = Calendar(every="month")
    old.amend("dataset:patient", BlockBudget(months, each), "by month")
    blocks = old.balance("dataset:patient").blocks
    assert blocks is not None
    assert blocks.of(0).rho == old.balance("dataset:patient").spent.rho
    far = BlockSet.of_range(12 * 3000, 12 * 3000)
    old.charge(["dataset:patient"], SMALL, token="m", request="ab" * 32, note={}, blocks=far)
    assert old.verify().ok


@only_files
def test_the_old_file_is_kept_beside(old: Ledger) -> None:
    """It reads and verifies as it did, and is no ledger to charge."""
    old.upgrade()
    kept = old.path.with_name(f"{old.path.name}.format-2")
    assert sorted(p.name for p in old.path.parent.iterdir()) == [old.path.name, kept.name]
    with Ledger.open(kept) as copy:
        assert copy.verify().entries == 10
        with pytest.raises(LedgerError):
            spend(copy)


def test_a_ledger_that_does_not_hold_is_not_upgraded(old: Ledger) -> None:
    """It stays as it is."""
    if isinstance(old.place, Path):
        raw = sqlite3.connect(old.place)
        raw.execute("DROP TRIGGER entries_update")
        raw.execute("UPDATE entries SET note = 'x' WHERE number = 3")
        raw.commit()
        raw.close()
    else:
        tamper(old, "UPDATE entries SET note = 'x' WHERE number = 3")
    with pytest.raises(LedgerCorruptError, match="not brought to another format"):
        old.upgrade()
    with pytest.raises(LedgerVersionError):
        spend(old)


@pytest.mark.parametrize("what", ["spent", "caps", "gone"])
def test_an_upgrade_that_forgets_is_found(old: Ledger, what: str) -> None:
    """An entry that says other caps or less spending than there were."""
    old.upgrade()
    note = json.loads(json.dumps(dict(old.entry(10).note)))
    if what == "gone":
        del note["accounts"]["dataset:patient"]
    elif what == "spent":
        note["accounts"]["dataset:patient"]["spent"]["rho"] = "0"
    else:
        note["accounts"]["dataset:patient"]["caps"]["epsilon"] = "9"
    resealed(old, 10, {"note": json.dumps(note, sort_keys=True, separators=(",", ":"))})
    found = old.verify()
    assert (found.ok, found.bad) == (False, 10)
    assert "does not keep what accounts" in str(found.problem)


@only_files
def test_a_ledger_says_one_format(old: Ledger) -> None:
    """One that is kept in the newest and begins in the one before was upgraded, or is odd."""
    old.upgrade()
    resealed(old, 10, {"kind": "answer"})
    assert not old.verify().ok
