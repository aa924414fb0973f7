"""A file that holds what dither never writes: every call says so, in an error of the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import dither as dt
from dither.accounting import BudgetFilter
from dither.cli import main
from dither.errors import CertificateError, DitherError, LedgerError
from dither.ledger import Ledger
from dither.ledger._entries import Record
from dither.ledger.stores import _sqlite as store
from dither.ledger.stores._sqlite import TRIGGERS
from dither.privacy import Charge, Promise

PATIENT = Promise("patient")
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
CAPS = BudgetFilter(Fraction(1), Fraction(0))
COLUMNS = [f.name for f in fields(Record)]

# As SQL, since a text that is not UTF-8 cannot be a parameter.
VALUES = {
    "bytes": "x'ff00fe'",
    "text that is not UTF-8": "CAST(x'ff80' AS TEXT)",
    "text with a NUL": "CAST(x'610062' AS TEXT)",
    "a huge integer": "9223372036854775807",
    "infinity": "9e999",
    "a long number as text": f"'{'9' * 5000}'",
    "no JSON": "'{'",
    "deep JSON": f"'{'[' * 3_000}'",
    "JSON of another shape": "'[1, null]'",
    "JSON of strange members": """'{"visits": 3, "ann": null}'""",
    "nothing": "NULL",
}

CALLS: dict[str, Callable[[Ledger], object]] = {
    "id": lambda book: book.id,
    "accounts": lambda book: book.accounts(),
    "tables": lambda book: book.tables(),
    "check": lambda book: book.check(
        PATIENT, accounts={"visits": CAPS}, tables={"visits": "column pid"}
    ),
    "balance": lambda book: book.balance("visits"),
    "entries": lambda book: book.entries(),
    "entries of ann": lambda book: book.entries("ann"),
    "entry": lambda book: [book.entry(number) for number in range(9)],
    "ensure": lambda book: book.ensure_account("visits", CAPS, PATIENT),
    "ensure new": lambda book: book.ensure_account("new", CAPS, PATIENT),
    "amend": lambda book: book.amend("visits", CAPS, "no reason"),
    "charge": lambda book: book.charge(
        ["visits"], TENTH, token="new", request="ab" * 32, note={}, tables={"visits": "column pid"}
    ),
    "replay": lambda book: book.charge(
        ["visits", "ann"], TENTH, token="a", request="aa" * 32, note={}
    ),
    "answer": lambda book: book.store_answer(4, "x"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file alone: what is done to it is done to SQLite."""
    return tmp_path / "visits.ledger"


def broken(path: Path, *statements: str) -> None:
    """Change the file as a failing disk or another program would, whatever guards it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("PRAGMA foreign_keys = OFF")
        raw.execute("PRAGMA synchronous = OFF")
        raw.execute("BEGIN")
        for name in TRIGGERS:
            raw.execute(f"DROP TRIGGER IF EXISTS {name}")
        for statement in statements:
            raw.execute(statement)
        for text in TRIGGERS.values():
            raw.execute(text)
        raw.execute("COMMIT")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power is lost here, so nothing waits for the disk."""
    real = store.connect

    def loose(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
        connection = real(path, mode, timeout)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    monkeypatch.setattr(store, "connect", loose)


def tried(book: Ledger) -> None:
    """Every call on the damaged file: an answer, or an error of the ledger, and nothing else."""
    path = book.path
    damaged = path.read_bytes()
    for name, call in CALLS.items():
        try:
            call(book)
        except LedgerError:
            pass
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        if path.read_bytes() != damaged:
            path.write_bytes(damaged)


def found(path: Path) -> None:
    """`verify` sees the damage, or the file is refused."""
    with suppress(LedgerError):
        assert not Ledger.open(path).verify().ok


CELLS = [("entries", column, " WHERE number >= 7") for column in COLUMNS if column != "number"]
CELLS += [("entries", "number", " WHERE number = 8"), ("head", "count", ""), ("head", "hash", "")]
CELLS += [
    ("touches", column, " WHERE account = 'ann' AND entry = 7")
    for column in ("account", "entry", "sets_budget")
]


@pytest.mark.parametrize(("table", "column", "where"), CELLS)
def test_any_cell_of_the_newest_entries_and_of_the_indexes(
    full: Ledger, table: str, column: str, where: str
) -> None:
    """Every column of the newest charge and its answer, of the head and of the index."""
    whole = full.path.read_bytes()
    for value in VALUES.values():
        full.path.write_bytes(whole)
        with suppress(sqlite3.IntegrityError):
            broken(full.path, f"UPDATE {table} SET {column} = {value}{where}")
            tried(full)
            # Any number is a truth value to SQLite, and some cells hold nothing anyhow.
            if column != "sets_budget" and value != "NULL":
                found(full.path)


@pytest.mark.parametrize("column", ["epsilon", "totals", "promise", "tables", "budget", "note"])
def test_an_entry_whose_hash_was_made_anew(full: Ledger, column: str) -> None:
    """The chain is whole, and what it holds cannot be read: no call crashes on it."""
    full.amend("visits", CAPS, "so that the newest entry sets the caps of visits")
    whole = full.path.read_bytes()
    for value in VALUES.values():
        full.path.write_bytes(whole)
        with suppress(sqlite3.IntegrityError, sqlite3.OperationalError, DitherError):
            broken(full.path, f"UPDATE entries SET {column} = {value} WHERE number = 9")
            sealed = _sealed(full.path)
            broken(
                full.path,
                f"UPDATE entries SET hash = '{sealed}' WHERE number = 9",
                f"UPDATE head SET hash = '{sealed}'",
            )
        tried(full)


def _sealed(path: Path) -> str:
    raw = sqlite3.connect(path)
    raw.row_factory = sqlite3.Row
    try:
        row = dict(raw.execute("SELECT * FROM entries WHERE number = 9").fetchone())
    finally:
        raw.close()
    return Record(**row).computed_hash()


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE touches",
        "DROP TABLE head",
        "DROP TABLE entries",
        "ALTER TABLE entries DROP COLUMN note",
        "ALTER TABLE entries RENAME COLUMN totals TO sums",
        "ALTER TABLE touches RENAME TO touched",
        "ALTER TABLE entries ADD COLUMN extra",
        "DROP TABLE head; CREATE TABLE head (id, count, hash)",
        "DROP TABLE head; CREATE VIEW head AS SELECT 1 AS id, 'x' AS count, 2 AS hash",
        "DROP TABLE touches; CREATE TABLE touches (account BLOB, entry TEXT, sets_budget)",
        "PRAGMA application_id = 3",
        "PRAGMA user_version = 1",
        "PRAGMA user_version = 99",
        "PRAGMA user_version = -1",
    ],
)
def test_another_schema(full: Ledger, statement: str) -> None:
    """Tables and columns gone, renamed or added: refused, or read as it was."""
    raw = sqlite3.connect(full.path, isolation_level=None)
    for trigger in TRIGGERS:
        raw.execute(f"DROP TRIGGER {trigger}")
    raw.executescript(statement)
    raw.close()
    tried(full)


def test_a_ledger_of_the_first_format_says_why_it_is_refused(full: Ledger) -> None:
    """Its accounts never said whom they protect; the message says so, and what to do."""
    raw = sqlite3.connect(full.path)
    raw.execute("PRAGMA user_version = 1")
    raw.close()
    with pytest.raises(LedgerError, match=r"format 1.*do not say which unit.*begin a new ledger"):
        Ledger.open(full.path)


def test_a_stored_answer_that_is_no_release(book: Ledger) -> None:
    """`verify` says that the answer is none; it does not crash on it."""
    entry = book.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
    body = {"format": 2, "question": {}, "requested": {}, "promise": PATIENT.to_dict()}
    for answer in ("{", "[]", '{"certificate": 3}', "null", "[" * 3_000):
        other = Ledger.open(book.path.with_name(f"{len(answer)}.ledger"))
        other.ensure_account("visits", CAPS, PATIENT)
        entry = other.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
        other.store_answer(entry.entry, answer)
        named = {"id": other.id, "accounts": ["visits"], "entry": entry.entry, "hash": entry.hash}
        with pytest.raises(CertificateError):
            dt.verify({**body, "ledger": named, "loss": {}, "request": "ab" * 32}, other)


@pytest.mark.parametrize("value", [VALUES["text that is not UTF-8"], VALUES["bytes"]])
def test_the_command_says_it_in_a_line(full: Ledger, value: str) -> None:
    """No traceback: one sentence, and a code: it does not hold, or cannot be used."""
    broken(full.path, f"UPDATE entries SET note = {value} WHERE number = 8")
    for verb, code in (("show", 7), ("verify", 1)):
        result = CliRunner().invoke(main, ["ledger", verb, str(full.path)])
        assert result.exit_code == code
        assert "Traceback" not in result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
