"""A long chain is walked in parts by several processes, and the verdict is that of one walk."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.ledger import BlockBudget, Ledger
from dither.ledger._signing import OwnerKey
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, WindowQuota
from dither.ledger.stores._store import Store, format_of
from dither.ledger.verification import _helpers as helpers
from dither.ledger.verification import _verify
from dither.ledger.verification._batches import onward
from dither.ledger.verification._seams import seam
from dither.ledger.verification._verify import Verification
from dither.ledger.verification._walk import Walk
from dither.privacy import Charge, Promise
from ledger.clocks import ledgers_clock
from ledger.earlier import earlier
from ledger.stores import COLUMNS, only_files
from ledger.verification.walking import Inline, InParts, Raw, in_parts_of

PATIENT = Promise("patient")
WIDE = BudgetFilter(Fraction(1000), Fraction(1, 1000))
CAPS = BudgetFilter(Fraction(100), Fraction(1, 1000))
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
MONTHS = BlockBudget(Calendar(every="month"), CAPS, WIDE)
NOW = datetime(2026, 3, 4, 5, tzinfo=UTC)
BATCH = 4


def fill(book: Ledger, clock: list[datetime]) -> None:
    """Entries of every kind, with what accounts, quotas, reservations and owners make of them."""
    key, new = OwnerKey.make(), OwnerKey.make()
    book.ensure_account("dataset:months", MONTHS, PATIENT)
    book.ensure_account("dataset:patient", CAPS, PATIENT)
    book.ensure_account("analyst:ann", BudgetFilter(Fraction(90), Fraction(0)), PATIENT)
    book.ensure_account("everybody@question:patient", QuestionQuota(CAPS), PATIENT)
    book.ensure_account(
        "everybody@week:patient", WindowQuota(Calendar(every="week"), CAPS), PATIENT
    )
    book.ensure_account("everybody@unlock:patient", UnlockedQuota(WIDE, "week", 52), PATIENT)
    book.set_owner(key)
    names = [name for name in book.accounts() if name != "dataset:months"]
    sets = [
        BlockSet.of_range(24_000, 24_003),
        BlockSet(((24_001, 24_002), (24_007, 24_010)), parallel=True),
        BlockSet(((None, 23_990),), frozenset({"null"})),
        BlockSet.of_range(24_002, 24_002),
    ]
    made = []
    for number in range(16):
        blocks = sets[number % 4] if number % 3 else None
        of = ["analyst:ann", "dataset:months"] if blocks else names
        held = made[-1].id if made and number % 3 == 0 and number < 12 else None
        charge = TENTH if number % 5 else Charge.pure(Fraction(1, 7), PATIENT)
        if held is not None:
            of, charge = ["dataset:patient"], TENTH
        done = book.charge(
            of,
            charge,
            token=f"t{number}",
            request="ab" * 32,
            note={"query": str(number)},
            blocks=blocks,
            tables={f"visits {number // 6}": "column patient_id"},
            reservation=held,
        )
        if number % 4 == 1:
            book.store_answer(done.entry, f"answer {number}")
        if number == 2:
            made.append(
                book.reserve(["dataset:patient"], 9 * TENTH, until=clock[-1] + timedelta(days=9))
            )
        if number == 7:
            book.amend("analyst:ann", CAPS, "agreed", key=key)
            wider = BlockBudget(Calendar(every="month"), WIDE, WIDE)
            book.amend("dataset:months", wider, "agreed", key=key)
        if number == 9:
            book.set_owner(new.public, key=new, recovered="lost")
        if number in (3, 11):
            clock.append(clock[-1] + timedelta(days=number))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, int]:
    """A whole ledger as bytes, and how many entries it has."""
    path = tmp_path_factory.mktemp("parts") / "whole.ledger"
    with pytest.MonkeyPatch.context() as patch:
        clock = ledgers_clock(patch, NOW)
        with Ledger.open(path) as book:
            fill(book, clock)
            return path.read_bytes(), len(book.entries())


@pytest.fixture
def in_parts() -> InParts:
    """Verify in parts of a few entries."""
    return in_parts_of(BATCH)


def at_once(path: Path) -> Verification:
    """One walk, in batches as small."""
    with pytest.MonkeyPatch.context() as patch, Ledger.open(path) as book:
        patch.setattr(_verify, "BATCH", BATCH)
        return book.verify()


def test_a_whole_chain_is_whole_in_parts(
    filled: tuple[bytes, int], tmp_path: Path, in_parts: InParts
) -> None:
    """Every part begins where the one before ends, so that none is walked again."""
    path = tmp_path / "a.ledger"
    path.write_bytes(filled[0])
    for processes in (2, 3, 4):
        found = in_parts(path, processes)
        assert found == at_once(path)
        assert (found.ok, found.entries, len(found.notes)) == (True, filled[1], 1)
        assert len(Inline.replies) == processes - 1
        assert all(reply is not None and reply.bad is None for reply in Inline.replies)


def test_what_a_chain_claims_is_what_a_walk_comes_to(
    filled: tuple[bytes, int], tmp_path: Path
) -> None:
    """Before every entry, of a ledger that has all there is."""
    path = tmp_path / "a.ledger"
    path.write_bytes(filled[0])
    with Ledger.open(path) as book:
        same_at_every_entry(book)


def test_what_the_chain_of_any_store_claims_is_what_a_walk_comes_to(full: Ledger) -> None:
    """On a file and on a server."""
    same_at_every_entry(full)


@only_files
def test_the_same_of_a_ledger_of_an_earlier_format(place: Path) -> None:
    """Before it is upgraded, and after."""
    earlier(place)
    with Ledger.open(place) as book:
        same_at_every_entry(book)
        book.upgrade()
        small = Charge.pure(Fraction(1, 1000), PATIENT)
        book.charge(["dataset:patient"], small, token="z", request="ab" * 32, note={})
        same_at_every_entry(book)


def same_at_every_entry(book: Ledger) -> None:
    """Whether `seam` and a walk agree on what was before each entry, and on nothing less."""
    count, names = len(book.entries()), book.accounts()
    with book._store.read() as connection:
        walk = Walk(format_of(connection))
    for number in range(1, count):
        onward(walk, book._store, names, number, 1, lambda done: None)
        assert seam(book._store, number).compared() == walk.compared(), number


def amended(book: Ledger, spent_before: int) -> None:
    """A ledger of an account whose blocks became others twice, and were none for a while."""
    weeks = BlockBudget(Calendar(every="week"), CAPS, WIDE)
    charges = 0

    def charge(times: int, *names: str, blocks: bool = True) -> None:
        nonlocal charges
        for number in range(charges, charges + times):
            book.charge(
                names,
                TENTH,
                token=f"{number}",
                request="ab" * 32,
                note={},
                blocks=BlockSet.of_range(24_000, 24_000 + number) if blocks else None,
                tables={f"visits {number // 5}": "column patient_id"},
            )
        charges += times

    book.ensure_account("visits", CAPS, PATIENT)
    book.ensure_account("months", MONTHS, PATIENT)
    charge(spent_before, "visits", blocks=False)
    book.amend("visits", MONTHS, "by month from now on")
    charge(8, "visits", "months")
    book.amend("visits", weeks, "by week from now on")
    charge(4, "visits")
    book.amend("visits", BlockBudget(Calendar(every="week"), WIDE, WIDE), "more")
    charge(4, "visits")
    book.amend("visits", WIDE, "no blocks for a while")
    charge(4, "visits", blocks=False)
    charge(2, "months")
    book.amend("visits", weeks, "by week again")
    charge(4, "visits", "months")


@pytest.mark.parametrize("spent_before", [0, 3])
def test_blocks_that_are_counted_anew_are_walked_in_parts(
    tmp_path: Path, in_parts: InParts, spent_before: int
) -> None:
    """Where an account's blocks became others, or none for a while: what was carried is claimed."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path) as book:
        amended(book, spent_before)
        same_at_every_entry(book)
        count = len(book.entries())
    found = in_parts(path, 3)
    assert (found.ok, found.entries) == (True, count)
    assert all(reply is not None and reply.bad is None for reply in Inline.replies)
    assert len(Inline.replies) == 2


def test_faults_planted_where_blocks_became_others_get_one_verdict(
    tmp_path: Path, in_parts: InParts
) -> None:
    """In parts and at once."""
    path = tmp_path / "whole.ledger"
    with Ledger.open(path) as book:
        amended(book, 3)
        whole = path.read_bytes(), len(book.entries())
    assert agree_on_planted_faults(3, 12, whole, tmp_path, in_parts) > 3


def starts(count: int) -> list[int]:
    """Where parts begin in these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(helpers, "LEAST", 0)
        return [start for start, _ in helpers.parts(count, BATCH, 3)]


def altered(raw: Raw, number: int) -> None:
    """What was spent is something else, and the entry's hash fits."""
    said = raw.record(number).totals.replace('"epsilon":"', '"epsilon":"1', 1)
    more = '{"x":{"delta":"0","epsilon":"1","rho":"0","rho_delta":"0"}}'
    totals = more if said == "{}" else said
    raw.to.execute("UPDATE entries SET totals = ? WHERE number = ?", (totals, number))
    raw.chained(number)


def state_altered(raw: Raw, number: int) -> None:
    """The hash of what blocks have spent is another, or there is one where none may be."""
    begins, _, states = (raw.record(number).blocks or "{").rpartition('"states":{')
    states = states.removesuffix("}}").replace(':"', ':"0')
    text = f'{begins}"states":{{{states}}}}}' if states else '{"states":{"x":"y"}}'
    raw.to.execute("UPDATE entries SET blocks = ? WHERE number = ?", (text, number))
    raw.chained(number)


def hash_altered(raw: Raw, number: int) -> None:
    """The hash alone."""
    raw.to.execute("UPDATE entries SET hash = ? WHERE number = ?", ("ab" * 32, number))


def removed(raw: Raw, number: int) -> None:
    """The entry is gone, and those after it have moved up."""
    for table, column in (("entries", "number"), ("touches", "entry")):
        raw.to.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        text = f"UPDATE {table} SET {column} = -{column} WHERE {column} > ?"
        raw.to.execute(text, (number,))
        raw.to.execute(f"UPDATE {table} SET {column} = -{column} - 1 WHERE {column} < 0")
    raw.to.execute("UPDATE head SET count = count - 1")


def gone(raw: Raw, number: int) -> None:
    """The entry is gone, and its place is empty."""
    raw.to.execute("DELETE FROM entries WHERE number = ?", (number,))


def swapped(raw: Raw, number: int) -> None:
    """The entry and the one before it have changed places."""
    for old, new in ((number, -5), (number - 1, number), (-5, number - 1)):
        raw.to.execute("UPDATE entries SET number = ? WHERE number = ?", (new, old))


def doubled(raw: Raw, number: int) -> None:
    """A copy of the entry before stands in its place, and fits into the chain."""
    copied = ", ".join(COLUMNS).replace("number", str(number), 1)
    copied = copied.replace("token", "NULL").replace("answers", "NULL")
    raw.to.execute("DELETE FROM entries WHERE number = ?", (number,))
    names = ", ".join(COLUMNS)
    raw.to.execute(
        f"INSERT INTO entries ({names}) SELECT {copied} FROM entries WHERE number = ?",
        (number - 1,),
    )
    raw.chained(number)


def dated_back(raw: Raw, number: int) -> None:
    """It is dated before those before it."""
    time = "2020-01-01T00:00:00+00:00"
    raw.to.execute("UPDATE entries SET time = ? WHERE number = ?", (time, number))
    raw.to.execute("UPDATE entries SET kind = 'charge' WHERE number = ?", (number,))
    raw.chained(number)


def signed_wrong(raw: Raw, number: int) -> None:
    """It carries a signature that is nobody's."""
    raw.to.execute("UPDATE entries SET signature = 'AAAA' WHERE number = ?", (number,))


def spliced(raw: Raw, number: int) -> None:
    """From here on all entries agree with one another on totals that no charges come to."""
    text = 'UPDATE entries SET totals = replace(totals, \'"delta":"0\', \'"delta":"70\')'
    raw.to.execute(f"{text} WHERE number >= ?", (number,))
    raw.chained(number)


FAULTS = (
    altered,
    state_altered,
    hash_altered,
    removed,
    gone,
    swapped,
    doubled,
    dated_back,
    signed_wrong,
    spliced,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_a_seam_is_found_as_by_one_walk(
    fault: Callable[[Raw, int], None],
    filled: tuple[bytes, int],
    tmp_path: Path,
    in_parts: InParts,
) -> None:
    """At each seam, and on either side of it, in the same words."""
    path = tmp_path / "a.ledger"
    seams = starts(filled[1])
    assert len(seams) == 2
    for number in [start + off for start in seams for off in (-1, 0, 1)]:
        path.write_bytes(filled[0])
        with closing(Raw(path)) as raw:
            fault(raw, number)
        one = at_once(path)
        assert not one.ok
        assert in_parts(path, 3) == one, (number, one)


def planted(raw: Raw, draws: random.Random, count: int) -> None:
    """One fault or two, anywhere; the chain made anew after some of them."""
    for _ in range(draws.choice((1, 1, 2))):
        number = draws.randrange(1, count)
        column = draws.choice([name for name in COLUMNS if name not in ("number", "token")])
        other = raw.record(draws.randrange(count))
        value = draws.choice((getattr(other, column), "7", "{}", None, 3))
        if draws.random() < 0.3:
            table = draws.choice(("touches", "states"))
            raw.to.execute(f"UPDATE {table} SET entry = entry + 1 WHERE entry = ?", (number,))
        elif draws.random() < 0.2:
            draws.choice(FAULTS)(raw, number)
            return
        else:
            text = f"UPDATE OR IGNORE entries SET {column} = ? WHERE number = ?"
            raw.to.execute(text, (value, number))
            if draws.random() < 0.7 and column not in ("hash", "previous"):
                raw.chained(number)


def agree_on_planted_faults(
    seed: int, times: int, whole: tuple[bytes, int], folder: Path, in_parts: InParts
) -> int:
    """How many of so many ledgers with faults do not verify; each gets one verdict."""
    draws = random.Random(seed)
    path, bad = folder / "a.ledger", 0
    for _ in range(times):
        path.write_bytes(whole[0])
        with closing(Raw(path)) as raw:
            try:
                planted(raw, draws, whole[1])
            except sqlite3.IntegrityError:
                continue
        one = at_once(path)
        assert in_parts(path, draws.randint(2, 4)) == one
        bad += not one.ok
    return bad


def test_planted_faults_get_one_verdict(
    filled: tuple[bytes, int], tmp_path: Path, in_parts: InParts
) -> None:
    """In parts and at once."""
    assert agree_on_planted_faults(1, 12, filled, tmp_path, in_parts) > 3


@pytest.mark.heavy("test_planted_faults_get_one_verdict")
def test_many_planted_faults_get_one_verdict(
    filled: tuple[bytes, int], tmp_path: Path, in_parts: InParts
) -> None:
    """The same of hundreds."""
    assert agree_on_planted_faults(2, 300, filled, tmp_path, in_parts) > 150


def small_parts(monkeypatch: pytest.MonkeyPatch) -> list[helpers.Helper | None]:
    """Let another process help with a ledger of a few entries; those that were begun."""
    made: list[helpers.Helper | None] = []
    begun = helpers.begun

    def noted(store: Store, part: helpers.ChainPart) -> helpers.Helper | None:
        made.append(begun(store, part))
        return made[-1]

    monkeypatch.setattr(_verify, "BATCH", 2)
    monkeypatch.setattr(helpers, "LEAST", 0)
    monkeypatch.setattr(helpers, "_processors", lambda: 2)
    monkeypatch.setattr(helpers, "begun", noted)
    return made


def test_another_process_walks_a_part(full: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file and on a server; it ends with the verification."""
    made = small_parts(monkeypatch)
    told: list[tuple[int, int]] = []
    if not isinstance(full.place, Path):
        # The variable may say something else by now.
        monkeypatch.setenv("LEDGER_DSN", "postgresql://nobody@nowhere.invalid/none")
    found = full.verify(lambda done, total: told.append((done, total)))
    assert (found.ok, found.entries) == (True, 9)
    (helper,) = made
    assert helper is not None
    reply = helper.reply(lambda done: None)
    assert reply is not None
    assert (reply.walk.count, reply.bad, reply.unreadable) == (9, None, False)
    assert helper._process.returncode is not None
    assert told == sorted(told)
    assert told[-1] == (9, 9)


@only_files
@pytest.mark.parametrize("how", ["nowhere", "another", "ended"])
def test_without_another_process_the_verdict_is_the_same(
    full: Ledger, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """There is no interpreter, this is another program, or the process ends at once."""
    if how == "ended":
        monkeypatch.setattr(helpers, "_CODE", "raise SystemExit(3)")
    else:
        name = "python-nowhere" if how == "nowhere" else "another-program"
        monkeypatch.setattr(sys, "executable", f"/nowhere/{name}")
    made = small_parts(monkeypatch)
    found = full.verify()
    assert (found.ok, found.entries) == (True, 9)
    (helper,) = made
    assert (helper is None) == (how != "ended")
    assert helper is None or helper.reply(lambda done: None) is None


@only_files
def test_a_walk_that_is_broken_off_ends_the_other_process(
    full: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C."""
    monkeypatch.setattr(helpers, "_CODE", "import time; time.sleep(600)")
    made = small_parts(monkeypatch)

    def broken_off(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        full.verify(broken_off)
    (helper,) = made
    assert helper is not None
    assert isinstance(helper._process, subprocess.Popen)
    assert helper._process.returncode is not None


@pytest.mark.parametrize("count", [0, 1, 49_999, 50_000, 123_457, 1_000_000])
@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_parts_cover_a_chain(count: int, processes: int) -> None:
    """In whole batches, in order, to the last entry; a short chain has none."""
    found = helpers.parts(count, 5_000, processes)
    assert len(found) == (processes - 1 if count >= helpers.LEAST else 0)
    if found:
        assert found[0][0] > 0
        assert found[-1][1] == count
        assert all(start % 5_000 == 0 and start < stop for start, stop in found)
        assert all(one[1] == two[0] for one, two in pairwise(found))
