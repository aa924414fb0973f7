"""A ledger that lost what this process saw in it is refused, whoever of the process opens it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.errors import BudgetError, LedgerCorruptError, LedgerError
from dither.ledger import Ledger
from dither.ledger._place import LedgerSchema
from dither.privacy import Charge, Promise
from ledger.stores import only_files, record, tamper

PATIENT = Promise("patient")
HALF = Charge.pure(Fraction(1, 2), PATIENT)
GONE = r"is not the ledger that it was: entry \d+.*nothing was charged"


def charge(ledger: Ledger, token: str) -> int:
    """Charge a half to the account "visits", which has 1."""
    return ledger.charge(["visits"], HALF, token=token, request="ab" * 32, note={}).entry


def put_back(book: Ledger, count: int) -> None:
    """Make it what it was when it had so many entries, whole in itself, as a copy of then is."""
    tamper(
        book,
        f"DELETE FROM touches WHERE entry >= {count}",
        f"DELETE FROM entries WHERE number >= {count}",
        ("UPDATE head SET count = ?, hash = ?", (count, record(book, count - 1).hash)),
    )


def begun(book: Ledger) -> Ledger:
    """A new ledger in the place of one that was deleted."""
    new = Ledger.open(book.place)
    new.ensure_account("visits", BudgetFilter(Fraction(1), Fraction(0)), PATIENT)
    return new


def elsewhere(place: Path | LedgerSchema, token: str) -> None:
    """Charge it in a process that knows nothing of it."""
    where = str(place)
    code = (
        "import sys; from fractions import Fraction; from dither.ledger import Ledger\n"
        "from dither.privacy import Charge, Promise\n"
        "half = Charge.pure(Fraction(1, 2), Promise('patient'))\n"
        "Ledger.open(sys.argv[1]).charge(['visits'], half, token=sys.argv[2], "
        "request='cd' * 32, note={})"
    )
    subprocess.run([sys.executable, "-c", code, where, token], check=True, timeout=60)


def test_a_living_ledger_keeps_to_what_it_charged(book: Ledger) -> None:
    """An older copy in its place: no charge, no balance, no replay, and verify says so."""
    charge(book, "a")
    count = charge(book, "b")
    put_back(book, count)
    for call in (
        lambda: charge(book, "c"),
        lambda: book.balance("visits"),
        lambda: book.replay(["visits"], token="a", request="ab" * 32),
        lambda: book.store_answer(count - 1, "answer"),
        lambda: book.amend("visits", BudgetFilter(Fraction(2), Fraction(0)), "more"),
        lambda: book.ensure_account("new", BudgetFilter(Fraction(2), Fraction(0)), PATIENT),
        lambda: book.check(PATIENT),
        book.entries,
        book.tables,
    ):
        with pytest.raises(LedgerCorruptError, match=GONE):
            call()
    found = book.verify()
    assert not found.ok
    assert "has seen" in str(found.problem)


def test_another_object_of_the_process_knows_it_too(book: Ledger) -> None:
    """One that was opened before, or is opened afterwards, sees what any of the process charged."""
    with Ledger.open(book.place) as before:
        charge(before, "a")
        count = charge(book, "b")
        put_back(book, count)
        with pytest.raises(LedgerCorruptError, match=GONE):
            charge(before, "c")
    with Ledger.open(book.place) as after:
        for call in (lambda: charge(after, "c"), lambda: after.balance("visits")):
            with pytest.raises(LedgerCorruptError, match=GONE):
                call()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_knows_what_its_parent_knew(book: Ledger) -> None:
    """In the child neither the same object nor a new one takes the older copy."""
    charge(book, "a")
    put_back(book, charge(book, "b"))
    child = os.fork()
    if child == 0:
        refused = 0
        for ledger in (book, Ledger.open(book.place)):
            try:
                charge(ledger, "c")
            except LedgerCorruptError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_another_branch_is_refused_however_long(book: Ledger) -> None:
    """An older copy that somebody else went on with has as many entries, and not the same."""
    count = charge(book, "a")
    put_back(book, count)
    elsewhere(book.place, "b")
    elsewhere(book.place, "c")
    with pytest.raises(LedgerCorruptError, match=GONE):
        charge(book, "d")


def test_what_others_add_is_no_loss(book: Ledger) -> None:
    """Entries of another process and of other objects come in between, and nothing is refused."""
    book.amend("visits", BudgetFilter(Fraction(9), Fraction(0)), "more")
    with Ledger.open(book.place) as other:
        for number in range(3):
            charge(book, f"a{number}")
            charge(other, f"b{number}")
        elsewhere(book.place, "c")
        charge(book, "d")
        charge(other, "e")
    assert book.verify().ok
    assert book.balance("visits").spent.epsilon == Fraction(9, 2)


def test_what_was_never_written_is_not_missed(book: Ledger) -> None:
    """A charge that was refused, or that failed inside its transaction, leaves nothing to miss."""
    charge(book, "a")
    charge(book, "b")
    with pytest.raises(BudgetError):
        charge(book, "c")

    def fails() -> None:
        with book._writing() as writing:
            writing.append("amend", totals={}, note={"reason": "fails"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    book.amend("visits", BudgetFilter(Fraction(2), Fraction(0)), "more")
    charge(book, "c")
    assert book.verify().ok


@only_files
def test_another_ledger_in_its_place_is_refused(book: Ledger) -> None:
    """A new ledger under the old one's name has forgotten everything; a new object says so."""
    charge(book, "a")
    book.path.unlink()
    with pytest.raises(LedgerError):
        charge(book, "b")
    with pytest.warns(UserWarning, match="another ledger than the one that this process used"):
        new = begun(book)
    with pytest.raises(LedgerCorruptError, match=GONE):
        charge(book, "b")
    charge(new, "a")


@only_files
def test_a_copy_may_be_read_and_not_charged(book: Ledger, tmp_path: Path) -> None:
    """A backup can be looked at beside the original; charging both would spend the budget twice."""
    charge(book, "a")
    copy = tmp_path / "copy.ledger"
    shutil.copyfile(book.path, copy)
    charge(book, "b")
    with Ledger.open(copy) as backup:
        assert backup.balance("visits").spent.epsilon == Fraction(1, 2)
        assert backup.verify().ok
        with pytest.raises(LedgerCorruptError, match=GONE):
            charge(backup, "c")
    with pytest.raises(BudgetError):
        charge(book, "c")


@only_files
def test_the_copy_that_went_on_shuts_out_the_original(book: Ledger, tmp_path: Path) -> None:
    """Whichever of the two was charged last is the ledger, also by the name of a link."""
    charge(book, "a")
    copy, link = tmp_path / "copy.ledger", tmp_path / "link.ledger"
    shutil.copyfile(book.path, copy)
    link.symlink_to(book.path)
    with Ledger.open(copy) as moved:
        charge(moved, "b")
    for place in (book.path, link):
        with Ledger.open(place) as original, pytest.raises(LedgerCorruptError, match=GONE):
            charge(original, "c")


@only_files
def test_threads_raise_no_false_alarm(book: Ledger) -> None:
    """Readers whose state is older than what other threads have written since are not refused."""
    book.amend("visits", BudgetFilter(Fraction(100), Fraction(0)), "more")
    faults: list[BaseException] = []

    def works(work: Callable[[Ledger, int], object]) -> None:
        try:
            with Ledger.open(book.place) as mine:
                for number in range(12):
                    work(mine, number)
        except BaseException as error:
            faults.append(error)

    threads = [
        threading.Thread(target=works, args=(work,))
        for work in (
            lambda mine, i: charge(mine, f"one {i}"),
            lambda mine, i: charge(mine, f"two {i}"),
            lambda mine, i: mine.balance("visits"),
            lambda mine, i: mine.entries(limit=2),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert book.verify().ok
