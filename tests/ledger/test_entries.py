"""How entries are written and read: one canonical text, exact amounts, hashes, and parts."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError, LedgerCorruptError
from dither.ledger import Ledger
from dither.ledger._entries import FIRST, UNIT, Amounts, Record, canonical, digest
from dither.privacy import Charge, Promise, pure
from dither.privacy.accounts._budget import BudgetFilter

PATIENT = Promise("patient")

RECORD = Record(
    number=4,
    time="2026-05-12T10:00:00.000000+00:00",
    kind="charge",
    token="t",
    request="ab" * 32,
    epsilon="5",
    delta="0",
    rho="infinite",
    rho_delta="0",
    totals='{"a":{"delta":"0","epsilon":"5","rho":"infinite","rho_delta":"0"}}',
    promise='{"neighbours":"add-remove","unit":"patient"}',
    tables="{}",
    budget=None,
    note="{}",
    answers=None,
    answer=None,
    answer_digest=None,
    previous=FIRST,
    hash="",
).sealed()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_canonical_text_reads_back(value: object) -> None:
    """Nothing is lost, and the text does not depend on the order of keys."""
    text = canonical(value)
    assert json.loads(text) == value
    assert text.isascii()
    if isinstance(value, dict):
        assert canonical(dict(reversed(value.items()))) == text


@pytest.mark.parametrize("value", [0.5, float("nan"), b"x", {1}, object(), {"a": 1.0}])
def test_canonical_text_has_no_floats_nor_strangers(value: object) -> None:
    """What two programs could write differently is refused."""
    with pytest.raises(ArgumentError, match="is of type"):
        canonical(value)


@given(st.fractions(min_value=0), st.fractions(min_value=0, max_value=1))
def test_amounts_are_rounded_up_by_less_than_a_unit(epsilon: Fraction, delta: Fraction) -> None:
    """Written and read back, an amount is at least what it was, and a whole number of units."""
    back = Amounts.of(Charge(epsilon=epsilon, delta=delta, rho=None, promise=PATIENT)).charge(
        PATIENT
    )
    assert back.epsilon is not None
    assert 0 <= back.epsilon - epsilon < UNIT
    assert 0 <= back.delta - delta < UNIT
    assert (back.epsilon / UNIT).denominator == 1
    assert back.rho is None
    assert back.promise == PATIENT


def test_an_amount_beyond_all_reason_is_refused() -> None:
    """What could not be read back as a whole number is not written."""
    with pytest.raises(ArgumentError, match="cannot be written"):
        Amounts.of(Charge(epsilon=Fraction(10**1001), promise=PATIENT))


def test_the_hash_is_what_the_docstring_says() -> None:
    """SHA-256 over the canonical JSON of every column, without the library's own code."""
    body = {f.name: getattr(RECORD, f.name) for f in fields(Record)}
    del body["hash"], body["answer"], body["signature"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    expected = hashlib.sha256(b"dither ledger entry 3\n" + text.encode()).hexdigest()
    assert RECORD.hash == expected
    assert RECORD.sound()


@given(
    st.sampled_from([f.name for f in fields(Record) if f.name != "signature"]),
    st.one_of(st.text(), st.integers()),
)
def test_every_column_is_covered(name: str, value: object) -> None:
    """A change of any column, to anything, is seen; a signature covers what it signs itself."""
    changed = replace(RECORD, **{name: value})
    assert changed.sound() == (getattr(RECORD, name) == value)


def test_columns_do_not_run_into_each_other() -> None:
    """Moving text from one column to its neighbour changes the hash."""
    assert replace(RECORD, epsilon="50", delta="").computed_hash() != RECORD.hash
    assert replace(RECORD, token=None, request="t").computed_hash() != RECORD.hash


def test_an_answer_is_held_by_its_digest() -> None:
    """The text may be as long as it likes; its digest is in the hash."""
    answered = replace(RECORD, answer="x", answer_digest=digest("x")).sealed()
    assert answered.sound()
    assert not replace(answered, answer="y").sound()
    assert not replace(answered, answer="y", answer_digest=digest("y")).sound()
    assert not replace(answered, answer=None).sound()


def test_parts_are_the_whole(tmp_path: Path) -> None:
    """Each entry once and in order, whichever way; kinds and accounts are kept to."""
    promise = Promise("patient")
    with Ledger.open(tmp_path / "a.ledger") as book:
        for i in range(7):
            charged = book.charge(
                {"a": BudgetFilter(Fraction(9))},
                pure(Fraction(1)).promising(promise),
                token=str(i),
                request=f"{i:064x}",
                note={},
            )
            book.store_answer(charged.entry, "x")
        whole = [one.number for one in book.entries()]
        found: list[int] = []
        before = None
        while part := book.entries(limit=3, before=before):
            found = [one.number for one in part] + found
            before = part[0].number
        assert found == whole == list(range(16))
        assert [one.number for one in book.entries(after=12)] == [13, 14, 15]
        assert [one.number for one in book.entries(after=12, before=15, limit=1)] == [14]
        kinds = [one.kind for one in book.entries("a", kind="charge", before=9)]
        assert kinds == ["charge"] * 4
        assert book.entries(kind="nothing like it") == []
        # Of an account, with the answers to its charges.
        assert {one.kind for one in book.entries("a", after=1)} == {"charge", "answer"}


def test_one_answer_is_found_by_the_number_of_its_charge(tmp_path: Path) -> None:
    """Of a charge that has one; whatever else is asked for is nobody's answer."""
    promise = Promise("patient")
    with Ledger.open(tmp_path / "a.ledger") as book:
        charged = [
            book.charge(
                {"a": BudgetFilter(Fraction(9))},
                pure(Fraction(1)).promising(promise),
                token=str(i),
                request="ab" * 32,
                note={},
            ).entry
            for i in range(3)
        ]
        for number in charged[:2]:
            book.store_answer(number, f"of {number}")
        assert [book.answer(n) for n in charged[:2]] == book.answers_to("ab" * 32)
        answers = [one.number for one in book.entries(kind="answer")]
        assert [book.answer(n) for n in (charged[2], *answers, 0, -1, 10**30)] == [None] * 6


HUNT = "SELECT * FROM entries WHERE request = ? AND kind = 'charge' ORDER BY number"


def asked_often(place: Path) -> None:
    """Six charges of three requests, each answered."""
    with Ledger.open(place) as book:
        for i in range(6):
            charged = book.charge(
                {"a": BudgetFilter(Fraction(9))},
                pure(Fraction(1)).promising(Promise("patient")),
                token=str(i),
                request=f"{i % 3:064x}",
                note={},
            )
            book.store_answer(charged.entry, f"of {i}")


def found(place: Path, request: int) -> list[str]:
    """The answers to a request."""
    with Ledger.open(place, create=False) as book:
        return [answer for _, answer in book.answers_to(f"{request:064x}")]


def test_answers_to_a_request_are_found_in_an_index(tmp_path: Path) -> None:
    """No other charge is read. A ledger of before has the index from its next charge on, also where
    two objects write to it in turn."""
    place = tmp_path / "a.ledger"
    asked_often(place)

    def plan() -> str:
        with closing(sqlite3.connect(place)) as raw:
            return str(raw.execute(f"EXPLAIN QUERY PLAN {HUNT}", [""]).fetchall())

    assert "USING INDEX requests (request=?)" in plan()
    with closing(sqlite3.connect(place)) as raw:
        raw.execute("DROP INDEX requests")
    assert "requests" not in plan()
    assert found(place, 1) == ["of 1", "of 4"]
    with Ledger.open(place) as one, Ledger.open(place) as two:
        for book, token in ((one, "x"), (two, "y"), (one, "z")):
            charged = book.charge(
                {"a": BudgetFilter(Fraction(9))},
                pure(Fraction(1)).promising(Promise("patient")),
                token=token,
                request=f"{1:064x}",
                note={},
            )
            book.store_answer(charged.entry, f"of {token}")
            assert book.verify().ok
            wanted = [f"of {name}" for name in "14xyz" if name <= token]
            assert [answer for _, answer in book.answers_to(f"{1:064x}")] == wanted
    assert "USING INDEX requests (request=?)" in plan()


def test_an_index_that_lies_gives_nobody_anothers_answer(tmp_path: Path) -> None:
    """One that was written over names other entries, or hides some: no answer of another request
    comes of it, and `verify` says that the file is damaged."""
    place = tmp_path / "a.ledger"
    asked_often(place)
    with closing(sqlite3.connect(place)) as raw:
        (page,) = raw.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'requests'"
        ).fetchone()
        (size,) = raw.execute("PRAGMA page_size").fetchone()
    written = place.read_bytes()
    start, end = (page - 1) * size, page * size
    index = written[start:end]
    for old, new in ((0, 1), (1, 9)):
        swapped = index.replace(f"{old:064x}".encode(), f"{new:064x}".encode())
        assert swapped != index
        place.write_bytes(written[:start] + swapped + written[end:])
        with pytest.raises(LedgerCorruptError, match="was changed"):
            found(place, new)
        assert old == 0 or found(place, old) == []
        with Ledger.open(place, create=False) as book:
            assert not book.verify().ok
