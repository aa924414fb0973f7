"""Opening: what is no ledger, is newer, locked, gone or read-only is refused with the fix."""

from __future__ import annotations

import sqlite3
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.errors import (
    ArgumentError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerVersionError,
    MissingLibraryError,
)
from dither.ledger import Ledger
from dither.ledger.stores import _sqlite as store
from dither.ledger.stores._sqlite import APPLICATION
from dither.ledger.stores._store import FORMAT
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")

TENTH = Charge.pure(Fraction(1, 10), PATIENT)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file alone: what is done to it is done to SQLite."""
    return tmp_path / "visits.ledger"


def spend(ledger: Ledger, token: str = "z") -> None:
    """Charge a tenth to "visits"."""
    ledger.charge(["visits"], TENTH, token=token, request="ab" * 32, note={})


def test_a_new_ledger_holds_its_version_and_identity(tmp_path: Path) -> None:
    """The first entry says format and id; the header marks the file; no other file is left."""
    ledger = Ledger.open(tmp_path / "x.ledger")
    genesis = ledger.entry(0)
    assert genesis.kind == "genesis"
    assert genesis.note == {"format": FORMAT, "ledger": ledger.id}
    assert len(ledger.id) == 32
    with sqlite3.connect(ledger.path) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
        assert raw.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    raw.close()
    assert [file.name for file in tmp_path.iterdir()] == ["x.ledger"]
    assert Ledger.open(tmp_path / "y.ledger").id != ledger.id


def test_opening_again_finds_what_was_spent(full: Ledger) -> None:
    """A second object on the same file, by text and by path, without creating."""
    again = Ledger.open(str(full.path), create=False)
    assert again.id == full.id
    assert again.entries() == full.entries()


def test_every_commit_is_a_full_sync(book: Ledger) -> None:
    """The connection runs with synchronous=EXTRA over a rollback journal."""
    with book._store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 3
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "delete"


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    """Spaces, question marks and percent signs are no part of SQLite's address."""
    ledger = Ledger.open(tmp_path / "a b?mode=memory&c#d%20é.ledger")
    assert ledger.path.exists()
    assert ledger.verify().ok


def test_there_must_be_a_directory_and_a_file(tmp_path: Path) -> None:
    """No directory, no file where none may be made, a directory instead of a file."""
    with pytest.raises(LedgerError, match="make it first"):
        Ledger.open(tmp_path / "no" / "x.ledger")
    with pytest.raises(LedgerError, match="there is no ledger"):
        Ledger.open(tmp_path / "x.ledger", create=False)
    with pytest.raises(LedgerError, match="is a directory"):
        Ledger.open(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ArgumentError, match="timeout"):
        Ledger.open(tmp_path / "x.ledger", timeout=0)


@pytest.mark.parametrize("content", [b"", b"hello", b"x" * 5000, b"SQLite format 3\x00"])
def test_something_else_is_no_ledger(tmp_path: Path, content: bytes) -> None:
    """An empty file is a truncated ledger, never a new one."""
    path = tmp_path / "x.ledger"
    path.write_bytes(content)
    with pytest.raises(LedgerCorruptError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(tmp_path: Path) -> None:
    """A SQLite file of somebody else is left alone, even when it claims to be ours."""
    path = tmp_path / "x.ledger"
    raw = sqlite3.connect(path)
    raw.execute("CREATE TABLE entries (number INTEGER)")
    with pytest.raises(LedgerCorruptError, match="no ledger"):
        Ledger.open(path)
    raw.execute(f"PRAGMA application_id = {APPLICATION}")
    with pytest.raises(LedgerCorruptError, match="no ledger"):
        Ledger.open(path)
    raw.close()


def test_a_newer_format_is_refused(book: Ledger) -> None:
    """The message says both versions and to upgrade."""
    raw = sqlite3.connect(book.path)
    raw.execute(f"PRAGMA user_version = {FORMAT + 1}")
    raw.close()
    with pytest.raises(LedgerVersionError, match=f"format {FORMAT + 1}.*upgrade dither"):
        Ledger.open(book.path)
    with pytest.raises(LedgerVersionError):
        spend(book)


def test_a_file_cut_at_any_page_is_refused(full: Ledger) -> None:
    """Whatever is cut off, the ledger does not open, or does not verify, or does not charge."""
    whole = full.path.read_bytes()
    for length in [*range(0, len(whole), 4096), 10, 99, 2000, len(whole) - 1]:
        full.path.write_bytes(whole[:length])
        with pytest.raises(LedgerCorruptError):
            spend(Ledger.open(full.path))
    full.path.write_bytes(whole)
    spend(full)


def test_a_held_ledger_is_reported_as_locked(book: Ledger) -> None:
    """Another process's transaction: wait for the timeout, then say so, and charge nothing."""
    raw = sqlite3.connect(book.path, isolation_level=None)
    raw.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerLockedError, match="held by another process"):
        Ledger.open(book.path, timeout=0.05)
    raw.execute("ROLLBACK")
    quick = Ledger.open(book.path, timeout=0.05)
    raw.execute("BEGIN IMMEDIATE")
    assert quick.balance("visits").spent == Charge(promise=PATIENT)
    with pytest.raises(LedgerLockedError, match="nothing was written"):
        spend(quick)
    raw.execute("ROLLBACK")
    raw.close()
    assert quick.balance("visits").spent == Charge(promise=PATIENT)
    spend(quick)


def test_a_reader_that_stays_delays_a_charge_no_longer_than_the_timeout(book: Ledger) -> None:
    """A commit that cannot get the file to itself is rolled back whole."""
    raw = sqlite3.connect(book.path, isolation_level=None)
    raw.execute("BEGIN")
    raw.execute("SELECT count(*) FROM entries").fetchone()
    quick = Ledger.open(book.path, timeout=0.05)
    with pytest.raises(LedgerLockedError):
        spend(quick)
    raw.close()
    assert quick.balance("visits").spent == Charge(promise=PATIENT)
    assert quick.verify().ok
    spend(quick)


def test_a_thread_waits_no_longer_than_the_timeout(book: Ledger) -> None:
    """Another thread of this process holds the same object."""
    quick = Ledger.open(book.path, timeout=0.05)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with quick._store.read():
            held.set()
            done.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    try:
        with pytest.raises(LedgerLockedError):
            spend(quick)
    finally:
        done.set()
        thread.join()


def test_a_read_only_ledger_can_be_read_and_not_charged(
    full: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archived copy verifies; charging it says what to change."""
    real = store.connect
    monkeypatch.setattr(store, "connect", lambda path, _, timeout: real(path, "ro", timeout))
    assert full.verify().ok
    with pytest.raises(LedgerError, match=r"cannot be written.*chmod"):
        spend(full)


def test_a_full_disk_charges_nothing(book: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own limit of pages stands for the disk's end."""
    real = store.connect

    def narrow(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
        connection = real(path, mode, timeout)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(store, "connect", narrow)
        with pytest.raises(LedgerError, match="full or failing"):
            book.charge(
                ["visits"], TENTH, token="z", request="ab" * 32, note={"query": "x" * 50_000}
            )
    assert book.balance("visits").spent == Charge(promise=PATIENT)
    spend(book)
    assert book.verify().ok


def test_a_directory_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Creation fails with a message and leaves nothing behind."""

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(store, "_name", refuse)
    with pytest.raises(LedgerError, match="may write there"):
        Ledger.open(tmp_path / "x.ledger")
    assert list(tmp_path.iterdir()) == []


def test_creation_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has none gets a rename instead."""

    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(store.os, "link", refuse)
    assert Ledger.open(tmp_path / "x.ledger").verify().ok
    assert [file.name for file in tmp_path.iterdir()] == ["x.ledger"]


def test_two_creators_share_the_winners_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that came first stays as it is."""
    path = tmp_path / "x.ledger"
    first = Ledger.open(path)
    with monkeypatch.context() as patch:
        answers = iter([False])
        real = Path.exists
        patch.setattr(Path, "exists", lambda self: next(answers, None) or real(self))
        second = Ledger.open(path)
    assert second.id == first.id
    assert [file.name for file in tmp_path.iterdir()] == ["x.ledger"]


def test_a_ledger_that_went_away_is_not_begun_anew(book: Ledger) -> None:
    """The file is moved while the object lives: an error, and no new empty file."""
    book.path.rename(book.path.with_suffix(".old"))
    with pytest.raises(LedgerError, match="cannot be opened"):
        spend(book)
    assert not book.path.exists()


def test_a_closed_ledger_says_so(book: Ledger) -> None:
    """After `with`, every call is refused by a clear message."""
    with Ledger.open(book.path) as again:
        spend(again)
    with pytest.raises(LedgerError, match="closed"):
        again.balance("visits")


def test_caps_that_cannot_be_written_are_refused(book: Ledger) -> None:
    """A filter of somebody else's that says its caps in floats."""

    class Loose(BudgetFilter):
        def to_dict(self) -> dict[str, float]:  # type: ignore[override]
            return {"epsilon": 0.5}

    with pytest.raises(ArgumentError, match=r"budget\['epsilon'\] is of type float"):
        book.ensure_account("loose", Loose(Fraction(1), Fraction(0)), PATIENT)
    for name in ("", " ", "a\nb", "x" * 201):
        with pytest.raises(ArgumentError, match="name must be"):
            book.ensure_account(name, BudgetFilter(Fraction(1), Fraction(0)), PATIENT)


def test_a_ledger_on_a_server_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not there, or cannot be loaded, the message says what to install."""
    monkeypatch.setenv("LEDGER_DSN", "host=nowhere")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingLibraryError, match=r"psycopg.*pip install 'dither\[postgres\]'"):
        Ledger.open({"postgres": "env:LEDGER_DSN", "schema": "visits"})
    monkeypatch.setattr("dither._postgres.check_library", lambda *_: None)
    with pytest.raises(LedgerError, match=r"libpq is missing.*pip install 'dither\[postgres\]'"):
        Ledger.open({"postgres": "env:LEDGER_DSN", "schema": "visits"})
