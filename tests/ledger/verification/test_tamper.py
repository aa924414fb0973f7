"""Tampering with the file behind the ledger's back: every kind of it is found and named."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dither.accounting import BudgetFilter
from dither.errors import LedgerCorruptError
from dither.ledger import Ledger
from dither.privacy import Charge, Promise
from ledger.stores import COLUMNS, only_files, rehashed, tamper

PATIENT = Promise("patient")

COPY = ", ".join(COLUMNS)
TENTH = Charge.pure(Fraction(1, 10), PATIENT)


def swap(a: int, b: int) -> list[str]:
    """Let two entries change places."""
    return [
        f"UPDATE entries SET number = -5 WHERE number = {a}",
        f"UPDATE entries SET number = {a} WHERE number = {b}",
        f"UPDATE entries SET number = {b} WHERE number = -5",
    ]


def copied(source: int, to: int) -> str:
    """Insert a copy of an entry at another place, without what must be unique."""
    columns = COPY.replace("number", str(to), 1).replace("token", "NULL").replace("answers", "NULL")
    return f"INSERT INTO entries ({COPY}) SELECT {columns} FROM entries WHERE number = {source}"


@pytest.mark.parametrize(
    ("statements", "bad", "problem"),
    [
        (["UPDATE entries SET epsilon = '1' WHERE number = 3"], 3, "changed"),
        (["""UPDATE entries SET note = '{"query":"other"}' WHERE number = 4"""], 4, "changed"),
        (["UPDATE entries SET time = '2020-01-01T00:00:00+00:00' WHERE number = 7"], 7, "changed"),
        (["""UPDATE entries SET budget = '{"epsilon":"99"}' WHERE number = 1"""], 1, "changed"),
        (["UPDATE entries SET answer = 'better' WHERE number = 5"], 5, "changed"),
        (["UPDATE entries SET note = 1.5 WHERE number = 4"], 4, "changed"),
        (["DELETE FROM entries WHERE number = 4"], 4, "removed"),
        (["DELETE FROM entries WHERE number = 0"], 0, "removed"),
        (
            [
                "DELETE FROM entries WHERE number = 4",
                "UPDATE entries SET number = number - 1 WHERE number > 4",
                "UPDATE head SET count = count - 1",
                "DELETE FROM touches WHERE entry = 4",
                "UPDATE touches SET entry = entry - 1 WHERE entry > 4",
            ],
            4,
            "removed: what stands here was entry 5",
        ),
        (["DELETE FROM entries WHERE number = 8"], 8, "removed, with every entry after it"),
        (["DELETE FROM entries WHERE number > 5"], 6, "removed, with every entry after it"),
        (
            ["DELETE FROM entries WHERE number = 8", "UPDATE head SET count = 8"],
            7,
            "the head of the ledger knows another hash",
        ),
        (swap(3, 4), 3, "reordered: what stands here was entry 4"),
        (swap(3, 7), 3, "reordered: what stands here was entry 7"),
        ([copied(3, 9)], 9, "added"),
        ([copied(3, 9), "UPDATE head SET count = 10"], 9, "changed"),
        (
            [copied(1, 9), "UPDATE head SET count = 10"],
            9,
            "reordered: what stands here was entry 1",
        ),
        (["DELETE FROM entries WHERE number = 2", copied(1, 2)], 2, "reordered: what stands here"),
        (
            ["DELETE FROM entries WHERE number = 4", copied(3, 4)],
            4,
            "changed",
        ),
        (["UPDATE head SET count = 8"], 8, "added"),
        (["UPDATE head SET hash = 'x'"], 8, "another hash"),
        (["DELETE FROM head"], None, "head of the ledger is gone"),
        (["DELETE FROM touches WHERE entry = 7"], 7, "index of accounts"),
        (["INSERT INTO touches VALUES ('bob', 7, FALSE)"], 7, "index of accounts"),
        (["UPDATE touches SET sets_budget = TRUE WHERE entry = 4"], 4, "index of accounts"),
        (["INSERT INTO touches VALUES ('bob', 70, FALSE)"], None, "entries that are gone"),
    ],
)
def test_tampering_is_found_and_named(
    full: Ledger, statements: list[str], bad: int | None, problem: str
) -> None:
    """The first bad entry and what is wrong with it."""
    tamper(full, *statements)
    with Ledger.open(full.place) as again:
        found = again.verify()
    assert not found.ok
    assert (found.bad, problem in str(found.problem)) == (bad, True), found.describe()
    assert found.describe().startswith("" if bad is None else f"entry {bad}: ")


@only_files
@pytest.mark.parametrize(
    ("statements", "bad", "problem"),
    [
        (["UPDATE entries SET note = x'00ff' WHERE number = 4"], 4, "changed"),
        (["UPDATE head SET count = 'x'"], None, "head of the ledger is gone"),
        (["DROP TABLE touches", "CREATE TABLE touches (account, entry, sets_budget)"], 1, "index"),
    ],
)
def test_tampering_that_only_sqlite_lets_in(
    full: Ledger, statements: list[str], bad: int | None, problem: str
) -> None:
    """Values of other types, and other tables under the same names."""
    test_tampering_is_found_and_named(full, statements, bad, problem)


def test_the_whole_ledger_verifies(full: Ledger) -> None:
    """Nothing is found where nothing was done, and lifting and restoring triggers is nothing."""
    tamper(full)
    found = full.verify()
    assert (found.ok, found.entries, found.bad, found.problem) == (True, 9, None, None)
    assert found.hash == full.entry(8).hash
    assert found.describe().startswith("9 entries, chain whole")


@only_files
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    number=st.integers(0, 8),
    column=st.sampled_from([c for c in COLUMNS if c != "number"]),
    value=st.one_of(
        st.none(), st.integers(-(2**40), 2**40), st.text(max_size=5), st.floats(), st.binary()
    ),
)
def test_no_cell_can_be_changed(full: Ledger, number: int, column: str, value: object) -> None:
    """Any cell, to any value of any type: found at that very entry, or SQLite refuses it."""
    whole = full.path.read_bytes()
    try:
        before = _cell(full.path, number, column)
        tamper(full, (f"UPDATE entries SET {column} = ? WHERE number = ?", (value, number)))
        after = _cell(full.path, number, column)
        found = full.verify()
        if after == before:
            assert found.ok
        else:
            assert (found.ok, found.bad) == (False, number)
    except (sqlite3.IntegrityError, UnicodeEncodeError):
        pass  # NULL where none may be, a token twice, text that is not UTF-8
    finally:
        full.path.write_bytes(whole)


def _cell(path: Path, number: int, column: str) -> object:
    raw = sqlite3.connect(path)
    row = raw.execute(
        f"SELECT {column}, typeof({column}) FROM entries WHERE number = ?", (number,)
    ).fetchone()
    raw.close()
    return row


@pytest.mark.parametrize("number", range(9))
def test_a_hash_made_anew_is_found(full: Ledger, number: int) -> None:
    """Somebody changes an entry and its own hash: the next one, or the head, disagrees."""
    change = "UPDATE entries SET time = '2020-01-01T00:00:00+00:00' WHERE number = "
    tamper(full, change + str(number))
    rehashed(full, number)
    found = full.verify()
    assert (found.ok, found.bad) == (False, number)


@pytest.mark.parametrize(
    ("column", "text", "problem"),
    [
        ("epsilon", "1", "total of account"),
        ("totals", "{}", "index of accounts"),
        ("totals", "not json", "cannot be read"),
        ("epsilon", "many", "cannot be read"),
        ("kind", "genesis", "cannot be read"),
    ],
)
def test_a_last_entry_with_hash_and_head_made_anew(
    full: Ledger, column: str, text: str, problem: str
) -> None:
    """A consistent chain whose meaning is wrong is found by its totals."""
    full.charge(["visits"], TENTH, token="d", request="dd" * 32, note={})
    tamper(full, (f"UPDATE entries SET {column} = ? WHERE number = 9", (text,)))
    rehashed(full, 9)
    tamper(full, "UPDATE head SET hash = (SELECT hash FROM entries WHERE number = 9)")
    found = full.verify()
    assert (found.ok, found.bad) == (False, 9)
    assert problem in str(found.problem)


def test_a_writer_that_does_not_check_is_found(full: Ledger) -> None:
    """A chain written by a program that overspends is whole, and does not verify."""

    class Careless(Ledger):
        def _bear(self, connection, names, charge, *more):  # type: ignore[no-untyped-def]
            return {name: self._account(connection, name).spent + charge for name in names}, {}

    careless = Careless.open(full.place)
    whole = Charge.pure(Fraction(1), PATIENT)
    careless.charge(["visits"], whole, token="x", request="ee" * 32, note={})
    careless.charge(["ann"], TENTH, token="y", request="ee" * 32, note={})
    found = full.verify()
    assert (found.ok, found.bad) == (False, 9)
    assert "more to account 'visits'" in str(found.problem)
    full.amend("visits", BudgetFilter(Fraction(5), Fraction(0)), "hide it")
    assert full.verify().bad == 9


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries WHERE number = 8",
        "UPDATE head SET count = count - 1",
        "UPDATE head SET hash = 'x'",
        "DELETE FROM head",
        "UPDATE entries SET note = 'x' WHERE number = 8",
        "UPDATE entries SET epsilon = '0' WHERE number = 7",
        "UPDATE entries SET totals = '{}' WHERE number = 7",
        """UPDATE entries SET budget = '{"delta":"0","epsilon":"9"}' WHERE number = 6""",
        "DELETE FROM entries WHERE number = 7",
        "UPDATE touches SET sets_budget = FALSE WHERE account = 'ann'",
        "UPDATE touches SET entry = 0 WHERE account = 'ann' AND entry = 7",
    ],
)
def test_no_charge_is_added_to_a_ledger_that_does_not_hold(full: Ledger, statement: str) -> None:
    """The cheap check before each charge: head, last entry, and the account's own entries."""
    tamper(full, statement)
    if "entry = 0" in statement:
        # The older entry's totals would make the account richer: only `verify` sees that.
        assert not full.verify().ok
        return
    with pytest.raises(LedgerCorruptError, match="chain of the ledger does not hold"):
        full.charge(["ann"], TENTH, token="d", request="dd" * 32, note={})


def test_a_changed_answer_is_not_replayed(full: Ledger) -> None:
    """A replay checks the digest of what it hands out."""
    tamper(full, "UPDATE entries SET answer = 'better' WHERE number = 5")
    with pytest.raises(LedgerCorruptError, match="entry 5 was changed"):
        full.charge(["visits", "ann"], TENTH, token="a", request="aa" * 32, note={})
    with pytest.raises(LedgerCorruptError, match="entry 5 was changed"):
        full.entries()


@only_files
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET note = '{}' WHERE number = 3",
        "DELETE FROM entries WHERE number = 8",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE number = 3",
        f"INSERT OR REPLACE INTO entries SELECT {COPY.replace('number', '9', 1)} FROM entries"
        " WHERE number = 3",
        f"INSERT OR REPLACE INTO entries SELECT {COPY.replace('number', '9', 1)} FROM entries"
        " WHERE number = 5",
        "UPDATE touches SET account = 'x'",
        "DELETE FROM touches",
        "INSERT INTO touches VALUES ('x', 3, 1)",
        "UPDATE head SET hash = 'x'",
        "UPDATE head SET count = 0",
        "DELETE FROM head",
        "INSERT OR REPLACE INTO head VALUES (1, 0, 'x')",
    ],
)
def test_sqlite_itself_refuses_what_is_no_append(full: Ledger, statement: str) -> None:
    """Triggers stand against mistakes of other programs; the chain against malice."""
    raw = sqlite3.connect(full.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()
    assert full.verify().ok


@only_files
def test_missing_triggers_are_found(full: Ledger) -> None:
    """A ledger whose guards were taken down says so, though its chain is whole."""
    raw = sqlite3.connect(full.path)
    raw.execute("DROP TRIGGER entries_delete")
    raw.close()
    found = full.verify()
    assert (found.ok, found.bad) == (False, None)
    assert "append-only" in str(found.problem)


@only_files
def test_damaged_bytes_never_verify_wrongly(full: Ledger) -> None:
    """A page overwritten with noise: refused or found, never a crash of another kind."""
    whole = full.path.read_bytes()
    pages = len(whole) // 4096
    for page in range(pages):
        broken = bytearray(whole)
        broken[page * 4096 : (page + 1) * 4096] = bytes([165]) * 4096
        full.path.write_bytes(bytes(broken))
        with suppress(LedgerCorruptError):
            assert not Ledger.open(full.path).verify().ok, page
    full.path.write_bytes(whole)
    assert full.verify().ok


def test_verification_reports_progress_in_batches(full: Ledger) -> None:
    """The caller is told how far it is."""
    told: list[tuple[int, int]] = []
    assert full.verify(lambda done, total: told.append((done, total))).ok
    assert told == [(9, 9)]


def test_a_chain_longer_than_a_batch(full: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches join up, and a gap at their seam is found."""
    monkeypatch.setattr("dither.ledger.verification._verify.BATCH", 2)
    assert full.verify().ok
    # The gap is where it began, whatever else is taken from before it later.
    for number in (4, 3, 2):
        tamper(full, f"DELETE FROM entries WHERE number = {number}")
        assert full.verify().bad == number


def test_entries_added_during_a_verification_are_left_for_the_next(full: Ledger) -> None:
    """Charges go on while the chain is read; what was there at the start is what is checked."""

    def charge(_: int, __: int) -> None:
        full.charge(["visits"], TENTH, token="late", request="ff" * 32, note={})

    found = full.verify(charge)
    assert (found.ok, found.entries) == (True, 9)
    assert full.verify().entries == 10
    assert asdict(full.verify())["ok"]
