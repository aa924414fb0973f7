"""Many entries are compared at once, and the verdict is that of reading each in full."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.ledger import BlockBudget, Ledger
from dither.ledger._entries import Record, blocks_json, digest
from dither.ledger._states import NO_SPENDING, BlockState, Units, added
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, WindowQuota, by_clock, current
from dither.ledger.verification import _walk
from dither.ledger.verification._expected import Expectation
from dither.ledger.verification._rows import dict_of, units_of
from dither.ledger.verification._verify import Verification
from dither.privacy import Charge, Promise
from ledger.clocks import ledgers_clock
from ledger.stores import COLUMNS
from ledger.verification.walking import Inline, Raw, in_parts_of

PATIENT = Promise("patient")
CAPS = BudgetFilter(Fraction(100), Fraction(1, 1000))
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
CHARGES = (
    TENTH,
    TENTH,
    Charge.pure(Fraction(1, 7), PATIENT),
    Charge(Fraction(1, 9), Fraction(1, 10**7), Fraction(1, 90), Fraction(1, 10**9), PATIENT),
)
GAUSSIAN = Charge(None, Fraction(0), Fraction(1, 50), Fraction(0), PATIENT)
"""Epsilon is infinite from its first on."""
MONTHS = BlockBudget(Calendar(every="month"), CAPS, CAPS)
NOW = datetime(2026, 3, 4, 5, tzinfo=UTC)
# Names that a text template, JSON and an alphabet have something to say about.
FLAT, BLOCKS, ANN = "dataset:100 %s", 'dataset:"months"', "analyst:änn"
WEEK = "everybody@week:patient"
QUOTAS = ["everybody@question:patient", WEEK, "everybody@unlock:patient"]
FIELDS = ("epsilon", "delta", "rho", "rho_delta")
SETS = [BlockSet.of_range(24_000 + i, 24_000 + i) for i in range(7)] + [
    BlockSet.of_range(24_001, 24_004),
    BlockSet(((24_001, 24_002), (24_005, 24_006)), parallel=True),
    BlockSet(((None, 23_990),), frozenset({"null"})),
]
ENTRIES = 120


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A ledger of charges and answers to several accounts, as bytes."""
    path = tmp_path_factory.mktemp("together") / "whole.ledger"
    draws = random.Random(29)
    with pytest.MonkeyPatch.context() as patch:
        clock = ledgers_clock(patch, NOW)
        with Ledger.open(path) as book:
            for name, caps in (
                (FLAT, CAPS),
                (BLOCKS, MONTHS),
                (ANN, CAPS),
                (QUOTAS[0], QuestionQuota(CAPS)),
                (WEEK, WindowQuota(Calendar(every="week"), CAPS)),
                (QUOTAS[2], UnlockedQuota(CAPS, "week", 4)),
            ):
                book.ensure_account(name, caps, PATIENT)
            book.reserve([FLAT], TENTH, until=NOW + timedelta(days=9))
            for number in range(ENTRIES):
                of: list[str] = draws.choice(([FLAT, *QUOTAS], [ANN, BLOCKS], [FLAT, ANN]))
                done = book.charge(
                    of,
                    GAUSSIAN if number > ENTRIES - 15 else draws.choice(CHARGES),
                    token=f"t{number}",
                    request="ab" * 32,
                    note={"query": draws.choice(("SELECT '%d' AS n", "SELECT 1"))},
                    blocks=draws.choice(SETS) if BLOCKS in of else None,
                    tables={"visits": "column patient_id"},
                )
                if draws.random() < 0.1:
                    book.store_answer(done.entry, f"answer {number}")
                if number == 2 * ENTRIES // 3:
                    clock.append(NOW + timedelta(days=8))
            return path.read_bytes()


def read_in_full(path: Path) -> Verification:
    """What is found where every entry is read by itself and in full."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Expectation, "_alike", lambda self, rows: 0)
        with Ledger.open(path) as book:
            return book.verify()


def one_by_one(path: Path) -> Verification:
    """What is found where none is compared together with another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_walk, "_MOST", 1)
        with Ledger.open(path) as book:
            return book.verify()


def together(path: Path) -> Verification:
    """What is found."""
    with Ledger.open(path) as book:
        return book.verify()


def looked_at(path: Path) -> list[int]:
    """The numbers of entries that are read in full."""
    found: list[int] = []
    look = _walk.Walk._look

    def noted(self: _walk.Walk, record: Record, index: Any) -> None:
        found.append(record.number)
        look(self, record, index)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_walk.Walk, "_look", noted)
        assert together(path).ok
    return found


def test_charges_and_answers_are_not_read_one_by_one(whole: bytes, tmp_path: Path) -> None:
    """But the first of a table, and the first of a new hour."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with Ledger.open(path) as book:
        held = book.entries()
    first = next(entry.number for entry in held if entry.kind == "charge")
    later = next(e.number for e in held if e.kind == "charge" and e.time.date() > NOW.date())
    opens = [entry.number for entry in held if entry.kind not in ("charge", "answer")]
    assert looked_at(path) == sorted([*opens, first, later])
    assert len(held) > ENTRIES + len(opens)
    found = together(path)
    assert (found.ok, found.entries) == (True, len(held))
    assert found == one_by_one(path) == read_in_full(path) == in_parts_of(16)(path, 3)
    assert all(reply is not None and reply.bad is None for reply in Inline.replies)


class Forger:
    """All entries from one on, made anew so that they agree with one another and with the head."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        rows = raw.to.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY number")
        self.records = [Record(*row) for row in rows.fetchall()]
        self.spent: dict[str, Units] = {}
        self.states: dict[str, BlockState] = {BLOCKS: NO_SPENDING, WEEK: NO_SPENDING}

    def forge(
        self, number: int, grown: dict[str, Units], states: dict[str, tuple[BlockSet, Units]]
    ) -> int:
        """Let accounts, or blocks of them, have spent more from an entry on.

        Returns
        -------
        int
            The first entry that says so.
        """
        first = 0
        for record in self.records:
            said = {name: units_of([one[f] for f in FIELDS]) for name, one in totals(record)}
            changed = False
            if record.number == number:
                for name, (blocks, more) in states.items():
                    self.states[name], _ = self.states[name].plus(blocks, more)
            if record.number >= number and record.kind == "charge":
                for name in said.keys() & grown.keys():
                    said[name] = added(said[name], grown[name])
                    changed = True
            written, hashes = asdict(record), {}
            if record.kind == "charge":
                charge = units_of([getattr(record, field) for field in FIELDS])
                for name in said.keys() & self.states.keys():
                    read = record.read_blocks() if name == BLOCKS else week(record.time)
                    assert read is not None
                    self.states[name], _ = self.states[name].plus(read, charge)
                    hashes[name] = digest(self.states[name].text())
                    changed = changed or (record.number >= number and name in states)
            if changed:
                first = first or record.number
                shown = {name: dict_of(units) for name, units in said.items()}
                written["totals"] = json.dumps(shown, sort_keys=True, separators=(",", ":"))
                written["blocks"] = blocks_json(record.read_blocks(), hashes)
                self.raw.to.execute(
                    "UPDATE entries SET totals = ?, blocks = ? WHERE number = ?",
                    (written["totals"], written["blocks"], record.number),
                )
        for name, state in self.states.items():
            self.raw.to.execute(
                "UPDATE states SET text = ? WHERE account = ?", (state.text(), name)
            )
        self.raw.chained(first)
        return first


def totals(record: Record) -> list[tuple[str, dict[str, str]]]:
    return list(json.loads(record.totals).items())


def week(time: str) -> BlockSet:
    quota = WindowQuota(Calendar(every="week"), CAPS)
    assert by_clock(quota)
    return current(quota, time)


def test_a_forger_who_changes_nothing_is_not_found(whole: bytes, tmp_path: Path) -> None:
    """So that what is found below is what was changed."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        assert Forger(raw).forge(20, dict.fromkeys((FLAT, ANN), (0, 0, 0, 0)), {}) >= 20
    found = together(path)
    assert found.ok, found.describe()


ONES: Sequence[Units] = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))


@pytest.mark.parametrize("unit", ONES)
@pytest.mark.parametrize("account", [FLAT, ANN, *QUOTAS])
def test_a_total_that_is_one_unit_too_much_is_found(
    whole: bytes, tmp_path: Path, account: str, unit: Units
) -> None:
    """From any entry on, though all entries from there on agree with one another."""
    path = tmp_path / "a.ledger"
    draws = random.Random(f"{account} {unit}")
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        forger = Forger(raw)
        first = forger.forge(draws.randrange(10, len(forger.records) - 30), {account: unit}, {})
    found = together(path)
    assert (found.ok, found.bad) == (False, first)
    assert "is not the sum of its charges" in str(found.problem)
    assert found == in_parts_of(16)(path, 3)


@pytest.mark.parametrize("unit", ONES)
@pytest.mark.parametrize("blocks", [*SETS, week(NOW.isoformat())])
def test_a_block_that_has_spent_one_unit_more_is_found(
    whole: bytes, tmp_path: Path, blocks: BlockSet, unit: Units
) -> None:
    """Each field of each block's state, though all entries from there on agree on it."""
    path = tmp_path / "a.ledger"
    account = BLOCKS if blocks in SETS else WEEK
    draws = random.Random(f"{blocks.ranges} {unit}")
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        forger = Forger(raw)
        number = draws.randrange(10, len(forger.records) - 30)
        first = forger.forge(number, {}, {account: (blocks, unit)})
    found = together(path)
    assert (found.ok, found.bad) == (False, first)
    assert "have spent is not the sum of its charges" in str(found.problem)
    assert found == in_parts_of(16)(path, 3)
    assert found == one_by_one(path)


def charges_of(path: Path) -> list[int]:
    with Ledger.open(path) as book:
        return [entry.number for entry in book.entries() if entry.kind == "charge"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_charge_below_nothing_is_found(whole: bytes, tmp_path: Path, field: str) -> None:
    """Else an account could be overdrawn, and come back within its caps before anybody looks."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        forger = Forger(raw)
        plain = [r.number for r in forger.records if [n for n, _ in totals(r)] == [ANN, FLAT]]
        number = plain[len(plain) // 2]
        record = forger.records[number]
        less = -int(getattr(record, field)) - 1
        raw.to.execute(f"UPDATE entries SET {field} = '-1' WHERE number = ?", (number,))
        grown: Units = tuple(less if name == field else 0 for name in FIELDS)  # type: ignore[assignment]
        forger.forge(number, {ANN: grown, FLAT: grown}, {})
        raw.chained(number)
    found = together(path)
    assert (found.ok, found.bad) == (False, number)
    assert found == read_in_full(path)


@pytest.mark.parametrize("account", [FLAT, BLOCKS, ANN, *QUOTAS])
def test_the_first_charge_beyond_caps_is_found(whole: bytes, tmp_path: Path, account: str) -> None:
    """Caps that bear some charges: of a sum, a block, a question, a window, an unlocked part."""
    path = tmp_path / "a.ledger"
    found = []
    for most in ("1/20", "3/4", "3/2", "3", "6", "30"):
        path.write_bytes(whole)
        with closing(Raw(path)) as raw:
            (opens,) = [
                record
                for record in Forger(raw).records
                if record.kind == "account" and account in json.loads(record.totals)
            ]
            assert opens.budget is not None
            text = opens.budget.replace('"epsilon":"100"', f'"epsilon":"{most}"')
            assert text != opens.budget
            change = (text, opens.number)
            raw.to.execute("UPDATE entries SET budget = ? WHERE number = ?", change)
            raw.chained(opens.number)
        found.append(together(path))
        assert found[-1] == read_in_full(path)
    assert not found[0].ok
    bad = {one.bad for one in found}
    # The sum of all is held against its caps once, at the last charge.
    assert len(bad) > (1 if account in (ANN, QUOTAS[0]) else 2)


@pytest.mark.parametrize(
    ("kind", "change", "chained"),
    [
        ("answer", "INSERT INTO touches VALUES ('other', {0}, 0)", False),
        ("charge", "INSERT INTO touches VALUES ('other', {0}, 0)", False),
        ("charge", "UPDATE touches SET sets_budget = 1 WHERE entry = {0}", False),
        ("charge", "UPDATE entries SET note = '{{' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET note = '{{' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET promise = '{{' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET blocks = '{{\"states\":7}}' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET totals = '{{\"x\":1}}' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET answer = 'better' WHERE number = {0}", True),
        ("answer", "UPDATE entries SET answer = NULL WHERE number = {0}", True),
        ("charge", "UPDATE entries SET answer = 'none' WHERE number = {0}", True),
        ("charge", "UPDATE entries SET answer_digest = 'none' WHERE number = {0}", True),
        ("charge", "UPDATE entries SET signature = 'AAAA' WHERE number = {0}", True),
        (
            "charge",
            "UPDATE entries SET time = '2026-03-04T06:00:00+00:00' WHERE number = {0}",
            True,
        ),
        ("charge", "UPDATE entries SET kind = 'answers' WHERE number = {0}", True),
    ],
)
def test_one_fault_in_a_row_of_charges_is_found(
    whole: bytes, tmp_path: Path, kind: str, change: str, chained: bool
) -> None:
    """Which nothing else gives away: all hashes are made anew where the fault is hashed."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        of_kind = [r.number for r in Forger(raw).records if r.kind == kind]
        number = of_kind[len(of_kind) // 2]
        raw.to.execute(change.format(number))
        if chained:
            raw.chained(number)
    found = together(path)
    assert not found.ok
    assert found == read_in_full(path)


def test_a_hash_that_was_made_anew_alone_is_found(whole: bytes, tmp_path: Path) -> None:
    """The next entry vouches for what stood there."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        raw.to.execute("UPDATE entries SET note = '{}' WHERE number = 50")
        anew = (raw.record(50).computed_hash(),)
        raw.to.execute("UPDATE entries SET hash = ? WHERE number = 50", anew)
    found = together(path)
    assert (found.ok, found.bad) == (False, 50)
    assert "its hash made anew" in str(found.problem)
    assert found == read_in_full(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (',"states"', '"states"'),
        ('"states"', '"more":1,"states"'),
        ('"states"', '"states":{},"states"'),
        ('"ranges":[[', '"ranges":[[0,0],['),
        ('{"read"', '{"reads"'),
        ('"}}', '","x":"y"}}'),
        ('"}}', '"}} '),
        ("}}", "}"),
    ],
)
def test_blocks_that_are_written_another_way_are_judged_as_read_in_full(
    whole: bytes, tmp_path: Path, old: str, new: str
) -> None:
    """No comma, one thing twice, something beside: alone in a row of charges."""
    path = tmp_path / "a.ledger"
    path.write_bytes(whole)
    with closing(Raw(path)) as raw:
        records = Forger(raw).records
        said = [(r.number, r.blocks) for r in records if r.blocks and r.read_blocks()]
        number, blocks = said[len(said) // 2]
        assert old in blocks
        text = (blocks.replace(old, new, 1), number)
        raw.to.execute("UPDATE entries SET blocks = ? WHERE number = ?", text)
        raw.chained(number)
    found = together(path)
    assert found == read_in_full(path)
    assert found.ok or found.bad == number


def planted(raw: Raw, draws: random.Random) -> None:
    """Something else in one cell, or entries in other places; mostly the chain made anew."""
    (count,) = raw.to.execute("SELECT count FROM head").fetchone()
    number = draws.randrange(9, count)
    record = raw.record(number)
    kind = draws.random()
    if kind < 0.1:
        for old, new in ((number, -5), (number - 1, number), (-5, number - 1)):
            raw.to.execute("UPDATE entries SET number = ? WHERE number = ?", (new, old))
    elif kind < 0.2:
        change = draws.choice(
            (
                "DELETE FROM touches WHERE entry = {0}",
                "UPDATE touches SET sets_budget = 1 WHERE entry = {0}",
                "INSERT OR IGNORE INTO touches VALUES ('other', {0}, 0)",
                "UPDATE OR IGNORE touches SET entry = entry + 1 WHERE entry = {0}",
            )
        )
        raw.to.execute(change.format(number))
        return
    else:
        column = draws.choice([name for name in COLUMNS if name not in ("number", "token")])
        value = getattr(record, column)
        if isinstance(value, str) and draws.random() < 0.7:
            at = draws.randrange(len(value) + 1)
            value = value[:at] + draws.choice("019 ä%\"'}x") + value[at + draws.randrange(2) :]
        else:
            value = draws.choice((None, "{}", "7", 3, getattr(raw.record(number - 1), column)))
        text = f"UPDATE OR IGNORE entries SET {column} = ? WHERE number = ?"
        raw.to.execute(text, (value, number))
        if column in ("hash", "previous"):
            return
    if draws.random() < 0.8:
        raw.chained(number - 1)


def agree(seed: int, times: int, whole: bytes, path: Path) -> int:
    """How many of so many ledgers with a fault do not verify; each gets one verdict."""
    draws = random.Random(seed)
    bad = 0
    for _ in range(times):
        path.write_bytes(whole)
        with closing(Raw(path)) as raw:
            planted(raw, draws)
        found = together(path)
        assert found == read_in_full(path)
        assert found == one_by_one(path)
        assert found == in_parts_of(16)(path, draws.randint(2, 4))
        bad += not found.ok
    return bad


def test_planted_faults_get_the_verdict_of_reading_in_full(whole: bytes, tmp_path: Path) -> None:
    """Some of everything that a row can have."""
    assert agree(1, 5, whole, tmp_path / "a.ledger") >= 3


@pytest.mark.heavy("test_planted_faults_get_the_verdict_of_reading_in_full")
@pytest.mark.parametrize("seed", range(2, 8))
def test_many_planted_faults_get_the_verdict_of_reading_in_full(
    whole: bytes, seed: int, tmp_path: Path
) -> None:
    """The same of fifty."""
    assert agree(seed, 50, whole, tmp_path / "a.ledger") > 33
