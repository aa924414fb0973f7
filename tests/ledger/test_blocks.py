"""Budgets for each block: exact, all blocks or none, and what a refusal says."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.errors import ArgumentError, BudgetError, LedgerCorruptError, LedgerError, TokenError
from dither.ledger import UNIT, BlockBudget, Ledger
from dither.ledger import _states as states_of
from dither.ledger._block_budget import limits, within
from dither.ledger._place import LedgerSchema
from dither.ledger._states import NO_SPENDING, BlockState, Units, charge_of, units_of
from dither.privacy import Charge, Promise
from ledger.clocks import ledgers_clock
from ledger.stores import only_files, record, resealed, tamper

PATIENT = Promise("patient")
MONTHS = Calendar(every="month")
BUDGET = BlockBudget(MONTHS, BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(4)))
JANUARY = 2024 * 12
TENTH = Charge.pure(Fraction(1, 10), PATIENT)


@pytest.fixture
def monthly(place: Path | LedgerSchema) -> Iterator[Ledger]:
    """A ledger with a budget for each month, and a quota."""
    with Ledger.open(place) as ledger:
        ledger.ensure_account("visits", BUDGET, PATIENT)
        ledger.ensure_account("analyst:ann", BudgetFilter(Fraction(3)), PATIENT)
        yield ledger


def months(first: int, last: int | None = None) -> BlockSet:
    """Months of 2024 by their numbers."""
    return BlockSet.of_range(JANUARY + first - 1, JANUARY + (first if last is None else last) - 1)


def spend(ledger: Ledger, token: str, blocks: BlockSet | None, times: int = 1, *more: str) -> int:
    """Charge tenths to the data set, and to others."""
    return ledger.charge(
        ["visits", *more], times * TENTH, token=token, request="ab" * 32, note={}, blocks=blocks
    ).entry


def test_a_month_that_is_spent_leaves_the_next_one(monthly: Ledger) -> None:
    """What is charged to January is not charged to February; the lifetime adds up both."""
    spend(monthly, "a", months(1), 5, "analyst:ann")
    with pytest.raises(BudgetError, match="nothing was spent"):
        spend(monthly, "b", months(1))
    spend(monthly, "c", months(2), 5)
    balance = monthly.balance("visits")
    assert balance.spent.epsilon == 1
    assert balance.blocks is not None
    assert balance.blocks.of(JANUARY).epsilon == Fraction(1, 2)
    assert balance.blocks.of(JANUARY + 2).epsilon == 0
    assert balance.blocks.stretches() == [
        ((JANUARY, JANUARY + 1), Charge(Fraction(1, 2), 0, Fraction(1, 40), 0))
    ] or balance.blocks.of(JANUARY + 1).epsilon == Fraction(1, 2)
    assert monthly.balance("analyst:ann").spent.epsilon == Fraction(1, 2)
    assert monthly.balance("analyst:ann").blocks is None
    assert monthly.verify().ok


def test_every_block_bears_the_charge_or_none(monthly: Ledger) -> None:
    """A refusal names the blocks that have too little, and what would fit; nothing is written."""
    spend(monthly, "a", months(3), 4)
    spend(monthly, "b", BlockSet.of_names(NULL), 5)
    before = len(monthly.entries())
    with pytest.raises(BudgetError) as told:
        spend(monthly, "c", months(1, 6) | BlockSet.of_names(NULL), 2, "analyst:ann")
    said = str(told.value)
    assert "2024-03 has epsilon 0.1 left; NULL has epsilon 0 left." in said
    assert said.endswith(
        "What fits in all blocks that it reads: epsilon 0 (delta 0) by basic composition"
    )
    with pytest.raises(BudgetError, match=r"2024-03 has .*What fits .*: epsilon 0\.1 \(delta 0\)"):
        spend(monthly, "c", months(1, 6), 2)
    assert len(monthly.entries()) == before
    assert monthly.balance("analyst:ann").spent.free
    assert monthly.balance("visits").admits(TENTH, months(1, 6))
    assert not monthly.balance("visits").admits(2 * TENTH, months(1, 6))
    spend(monthly, "c", months(1, 6))


def test_the_lifetime_ends_all_blocks(monthly: Ledger) -> None:
    """Eight months of a half are four; the ninth is refused, and the refusal says why."""
    for month in range(1, 9):
        spend(monthly, str(month), months(month), 5)
    with pytest.raises(BudgetError, match="all blocks together have epsilon 0 left"):
        spend(monthly, "9", months(9))
    assert monthly.balance("visits").remaining.epsilon == 0


def test_many_stretches_are_said_in_few_words(monthly: Ledger) -> None:
    """At most four are named."""
    for month in range(1, 12, 2):
        spend(monthly, str(month), months(month), 5)
    with pytest.raises(BudgetError, match=r"2024-07 has epsilon 0 left; 2 more stretches have"):
        spend(monthly, "x", BlockSet.of_range(None, JANUARY + 11))


def test_what_is_promised_is_said(monthly: Ledger) -> None:
    """In words, for budgets with and without a delta and a lifetime."""
    assert BUDGET.describe() == "ε 0.5 a month, at most 0.5·m for someone in m months, 4 in all"
    said = monthly.balance("visits").describe()
    assert said == f"one patient, added or removed: {BUDGET.describe()}"
    small = BudgetFilter(Fraction(1, 2), Fraction(1, 10**6))
    days = BlockBudget(Calendar(values=("a", "b")), small)
    assert days.describe() == (
        "ε 0.5 and δ 1e-6 a block, at most m times that for someone in m blocks"
    )
    assert "quota" in monthly.balance("analyst:ann").describe()
    assert "in a new month" in str(monthly.balance("visits"))


def test_blocks_are_given_where_there_are_any(monthly: Ledger) -> None:
    """Left out where they are needed, given where they mean nothing: nothing is charged."""
    with pytest.raises(ArgumentError, match="blocks must be given: account 'visits'"):
        spend(monthly, "a", None)
    with pytest.raises(ArgumentError, match="blocks must be left out"):
        monthly.charge(
            ["analyst:ann"], TENTH, token="a", request="ab" * 32, note={}, blocks=months(1)
        )
    with pytest.raises(ArgumentError, match="blocks must be a BlockSet"):
        spend(monthly, "a", [1])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="blocks must hold at least one block"):
        spend(monthly, "a", BlockSet())
    assert monthly.balance("visits").spent.free


def test_a_replay_costs_no_block(monthly: Ledger) -> None:
    """The request's digest has the blocks in it: under another digest the token is taken."""
    entry = spend(monthly, "a", months(1, 3))
    monthly.store_answer(entry, "answer")
    again = monthly.charge(
        ["visits"], TENTH, token="a", request="ab" * 32, note={}, blocks=months(1, 3)
    )
    assert (again.replayed, again.answer) == (True, "answer")
    with pytest.raises(TokenError):
        monthly.charge(["visits"], TENTH, token="a", request="cd" * 32, note={}, blocks=months(4))
    assert monthly.entry(entry).blocks == months(1, 3)
    assert monthly.balance("visits").spent == TENTH


def test_caps_are_opened_with_the_charge(place: Path | LedgerSchema) -> None:
    """As other accounts are; a policy whose blocks are others is refused from then on."""
    with Ledger.open(place) as ledger:
        ledger.charge(
            {"visits": BUDGET}, TENTH, token="a", request="ab" * 32, note={}, blocks=months(1)
        )
        weeks = BlockBudget(Calendar(every="week"), BUDGET.each, BUDGET.lifetime)
        for other in (weeks, BUDGET.each):
            with pytest.raises(LedgerError, match=r"blocks cannot change unnoticed"):
                ledger.check(PATIENT, accounts={"visits": other})
        higher = BlockBudget(MONTHS, BudgetFilter(Fraction(1)), BUDGET.lifetime)
        with pytest.raises(LedgerError, match="blocks of every month, delta = 0, epsilon = 1/2"):
            ledger.ensure_account("visits", higher, PATIENT)
        ledger.check(PATIENT, accounts={"visits": BUDGET})


def test_other_blocks_begin_with_all_that_was_spent(place: Path | LedgerSchema) -> None:
    """An amendment to blocks, or to others, counts everything in every block that had begun."""
    with Ledger.open(place) as ledger:
        ledger.ensure_account("visits", BudgetFilter(Fraction(1)), PATIENT)
        ledger.charge(
            ["visits"], 2 * TENTH, token="a", request="ab" * 32, note={}, tables={"visits": "p"}
        )
        ledger.amend("visits", BUDGET, "by month", read_until=dt.date(2024, 3, 9))
        balance = ledger.balance("visits")
        assert balance.blocks is not None
        for block in (JANUARY - 999, JANUARY + 2, NULL, OTHERS, "table visits"):
            assert balance.blocks.of(block).epsilon == Fraction(1, 5)
        for block in (JANUARY + 3, "table others"):
            assert balance.blocks.of(block).epsilon == 0
        spend(ledger, "b", months(3, 4), 3)
        assert ledger.verify().ok
        weeks = BlockBudget(Calendar(every="week"), BUDGET.each, BUDGET.lifetime)
        ledger.amend("visits", weeks, "by week", read_until=dt.date(2024, 4, 30))
        blocks = ledger.balance("visits").blocks
        assert blocks is not None
        april = weeks.calendar.block_of(dt.date(2024, 4, 30))
        assert [blocks.of(april).epsilon, blocks.of(int(april) + 1).epsilon] == [Fraction(1, 2), 0]
        # Higher caps of the same blocks forget nothing.
        more = BlockBudget(weeks.calendar, BudgetFilter(Fraction(3)), BUDGET.lifetime)
        ledger.amend("visits", more, "more")
        assert ledger.balance("visits").blocks == type(blocks)(more, blocks.state, blocks.total)
        with pytest.raises(ArgumentError, match="read_until must be left out"):
            ledger.amend("visits", BudgetFilter(Fraction(3)), "x", read_until=dt.date(2024, 1, 1))
        ledger.amend("visits", BudgetFilter(Fraction(3)), "one cap again")
        ledger.charge(["visits"], TENTH, token="c", request="ab" * 32, note={})
        ledger.amend("visits", BUDGET, "by month again", read_until=dt.date(2024, 1, 31))
        blocks = ledger.balance("visits").blocks
        assert blocks is not None
        assert blocks.of(JANUARY).epsilon == Fraction(6, 10)
        found = ledger.verify()
        assert found.ok, found.describe()


def test_a_clock_that_is_set_back_forgets_no_block(
    place: Path | LedgerSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks have begun by the day of the newest entry, whatever the clock says since."""
    with Ledger.open(place) as ledger:
        ledger.ensure_account("visits", BudgetFilter(Fraction(1)), PATIENT)
        ledger.charge(["visits"], TENTH, token="a", request="ab" * 32, note={})
        newest = ledger.entries()[-1].time
        ledgers_clock(monkeypatch, newest - dt.timedelta(hours=20))
        days = BlockBudget(Calendar(every="day"), BUDGET.each)
        ledger.amend("visits", days, "by day")
        blocks = ledger.balance("visits").blocks
        assert blocks is not None
        assert blocks.of(newest.date().toordinal()).epsilon == Fraction(1, 10)
        assert blocks.of(newest.date().toordinal() + 1).epsilon == 0
        assert ledger.verify().ok


def test_a_lifetime_below_a_block_is_refused() -> None:
    """No block could spend what it has."""
    with pytest.raises(ArgumentError, match="lifetime must be at least"):
        BlockBudget(MONTHS, BudgetFilter(Fraction(2)), BudgetFilter(Fraction(1)))
    for wrong in ({"calendar": "month"}, {"each": 1}, {"lifetime": 4}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            BlockBudget(**{"calendar": MONTHS, "each": BUDGET.each, **wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "calendar",
    [
        MONTHS,
        Calendar(edges=(dt.date(2024, 1, 1), dt.date(2025, 2, 3))),
        Calendar(edges=(Fraction(-3), Fraction(1, 2), Fraction(20240101))),
        Calendar(values=("a", "b")),
    ],
)
def test_a_budget_is_read_back_as_it_was_written(calendar: Calendar) -> None:
    """The calendar too, so that labels are the same."""
    for lifetime in (None, BudgetFilter(Fraction(4))):
        budget = BlockBudget(calendar, BUDGET.each, lifetime)
        assert BlockBudget.from_dict(budget.to_dict()) == budget
    for broken in ({}, {"blocks": {}, "each": {}, "lifetime": None}):
        with pytest.raises(ArgumentError):
            BlockBudget.from_dict(broken)


def drawn_set(draws: random.Random, names: str = "ab") -> BlockSet:
    """Simulated: a few ranges, some without end, and names; some are read in parallel."""
    ranges: list[tuple[int | None, int | None]] = []
    for _ in range(draws.randint(0, 4)):
        low = draws.randint(-12, 12)
        ends = (low, low + draws.randint(0, 5))
        ranges.append((None if draws.random() < 0.1 else ends[0], ends[1]))
        if draws.random() < 0.1:
            ranges[-1] = (low, None)
    found = BlockSet(tuple(ranges), frozenset(n for n in names if draws.random() < 0.2))
    return found if found.endless else replace(found, parallel=draws.random() < 0.3)


def part(charge: Charge, read: BlockSet) -> Charge:
    """What one block bears, in plain fractions: of blocks read in parallel what one step costs."""
    steps = (len(read) or 1) if read.parallel else 1

    def up(amount: Fraction | None) -> Fraction | None:
        return None if amount is None else UNIT * ceil(amount / steps / UNIT)

    return Charge(up(charge.epsilon), up(charge.delta), up(charge.rho), up(charge.rho_delta))


def sequences(number: int) -> Iterator[tuple[random.Random, BudgetFilter, BudgetFilter | None]]:
    """Simulated: caps for sequences of charges."""
    for seed in range(number):
        draws = random.Random(seed)
        each = BudgetFilter(Fraction(draws.randint(1, 9), 3), draws.choice([0, Fraction(1, 99)]))
        whole = draws.choice([None, BudgetFilter(each.epsilon * 3, each.delta)])
        yield draws, each, whole


def play(draws: random.Random, each: BudgetFilter, whole: BudgetFilter | None) -> None:
    """A sequence of charges, beside one that adds up plain fractions block by block."""
    # Few amounts are different: each is added to and looked at once, and a block has the place of
    # its own among them.
    amounts = [Charge()]
    blocks: dict[int | str, int] = dict.fromkeys([*range(-20, 21), "a", "b"], 0)
    state, total = NO_SPENDING, Charge()
    for _ in range(draws.randint(1, 8)):
        read = drawn_set(draws)
        charge = Charge(
            None if draws.random() < 0.05 else Fraction(draws.randint(0, 9), 7),
            Fraction(draws.randint(0, 2), 999),
            None if draws.random() < 0.05 else Fraction(draws.randint(0, 9), 70),
            Fraction(draws.randint(0, 2), 1999),
        ).rounded_up(UNIT)
        after, totals = state.plus(read, units_of(charge))
        passes = all(within(limits(each), units) for units in totals) and (
            whole is None or whole.admits(total + charge)
        )
        inside = [block for block in blocks if block in read]
        one = part(charge, read)
        grown = {place: amounts[place] + one for place in {blocks[block] for block in inside}}
        # Ranges without end reach past the blocks that are looked at, and are the same there.
        wanted = all(each.admits(total) for total in grown.values())
        assert not wanted or {charge_of(units) for units in totals} == set(grown.values())
        assert passes == (wanted and (whole is None or whole.admits(total + charge)))
        if passes:
            state, total = after, total + charge
            places = {}
            for place, amount in grown.items():
                places[place] = len(amounts)
                amounts.append(amount)
            for block in inside:
                blocks[block] = places[blocks[block]]
        for place, units in {(place, state.of(block)) for block, place in blocks.items()}:
            assert charge_of(units) == amounts[place]
        assert BlockState.from_text(state.text()) == state


def test_charges_agree_with_plain_fractions() -> None:
    """300 random sequences: the same are let through, and every block has spent the same."""
    for drawn in sequences(300):
        play(*drawn)


@pytest.mark.heavy("test_charges_agree_with_plain_fractions")
def test_many_charges_agree_with_plain_fractions() -> None:
    """10,000 of them."""
    for drawn in sequences(10_000):
        play(*drawn)


def test_one_function_has_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever way it came about: spliced or swept, in this order or another."""
    for seed in range(200):
        draws = random.Random(seed)
        # Some sets more than once: a range that is a stretch already is charged in place.
        sets = [drawn_set(draws), drawn_set(draws), BlockSet.of_range(2, 4)]
        steps = [
            (draws.choice(sets), (draws.randint(0, 3), 0, draws.randint(0, 3), 0)) for _ in range(8)
        ]
        texts = set()
        for few in (16, -1):
            for order in (steps, steps[::-1]):
                with monkeypatch.context() as patch:
                    patch.setattr(states_of, "FEW", few)
                    state = NO_SPENDING
                    for read, units in order:
                        state, _ = state.plus(read, units)
                texts.add(state.text())
                again = BlockState.from_text(state.text())
                assert (again, again.text()) == (state, state.text())
                assert list(state.bounds) == sorted(set(state.bounds))
        assert len(texts) == 1


def test_what_is_spent_within_a_set() -> None:
    """Stretch by stretch, and no block outside of it."""
    for seed in range(200):
        draws = random.Random(seed)
        state = NO_SPENDING
        for _ in range(4):
            state, _ = state.plus(drawn_set(draws), (1, 0, 1, 0))
        read = drawn_set(draws)
        found: dict[int | str, Units] = {}
        for held, units in state.within(read):
            for block in range(-20, 21):
                inside = not isinstance(held, str) and block in BlockSet((held,))
                if inside:
                    assert block not in found
                    found[block] = units
            if isinstance(held, str):
                found[held] = units
        assert found == {b: state.of(b) for b in [*range(-20, 21), "a", "b"] if b in read}


def test_ten_thousand_blocks_are_one_charge(monthly: Ledger) -> None:
    """Every second month of 20,000: all or none, and the next charge finds them."""
    blocks = BlockSet(tuple((2 * i, 2 * i) for i in range(10_000)))
    spend(monthly, "a", blocks, 4)
    with pytest.raises(BudgetError, match="9996 more stretches"):
        spend(monthly, "b", blocks, 2)
    spend(monthly, "c", BlockSet.of_range(0, 20_000))
    state = monthly.balance("visits").blocks
    assert state is not None
    assert [state.of(block).epsilon for block in (0, 1, 2)] == [Fraction(n, 10) for n in (5, 1, 5)]
    assert monthly.verify().ok


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE states SET text = '{NO_SPENDING.text()}'",
        "UPDATE states SET text = 'x'",
        "UPDATE states SET entry = 1",
        "DELETE FROM states",
        "UPDATE states SET account = 'other'",
    ],
)
def test_spending_of_blocks_that_was_changed_is_found(monthly: Ledger, statement: str) -> None:
    """By the next charge, which writes nothing, and by `verify`."""
    spend(monthly, "a", months(1, 3))
    tamper(monthly, statement)
    with pytest.raises(LedgerCorruptError):
        spend(monthly, "b", months(1))
    found = monthly.verify()
    assert not found.ok
    assert "blocks" in str(found.problem)


def test_spending_that_was_put_back_to_an_older_one_is_found(monthly: Ledger) -> None:
    """A row as it once was is not what the newest entry says."""
    spend(monthly, "a", months(1))
    before = monthly.balance("visits").blocks
    spend(monthly, "b", months(1))
    assert before is not None
    entry = monthly.entries()[-2].number
    tamper(
        monthly,
        ("UPDATE states SET text = ?, entry = ?", (before.state.text(), entry)),
    )
    with pytest.raises(LedgerCorruptError, match="the blocks of account 'visits' have spent"):
        spend(monthly, "c", months(1))
    assert not monthly.verify().ok


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        (None, "which blocks"),
        ("{}", "cannot be read"),
        ('{"states":{"visits":"x"}}', "which blocks"),
        ('{"read":{"named":[],"ranges":[]},"states":{}}', "blocks of account 'visits' have spent"),
        (
            '{"read":{"named":[],"ranges":[[24288,24288]]},"states":{"visits":"x","y":"z"}}',
            "blocks of account 'visits' have spent",
        ),
    ],
)
def test_an_entry_that_reads_other_blocks_is_found(
    monthly: Ledger, blocks: str | None, problem: str
) -> None:
    """A chain that is whole, and says fewer blocks than were charged."""
    entry = spend(monthly, "a", months(1, 3))
    resealed(monthly, entry, {"blocks": blocks})
    found = monthly.verify()
    assert (found.ok, found.bad) == (False, entry)
    assert problem in str(found.problem), found.problem


def test_a_block_beyond_its_caps_is_found(monthly: Ledger) -> None:
    """A program that charges without looking at blocks writes a whole chain, and is found."""

    class Careless(Ledger):
        def _bear(self, connection, names, charge, blocks, now):  # type: ignore[no-untyped-def]
            account = self._account(connection, names[0])
            state, _ = account.state.plus(blocks, units_of(charge))
            return {names[0]: account.spent + charge}, {names[0]: state}

    careless = Careless.open(monthly.place)
    spend(monthly, "a", months(1, 3), 5)
    entry = spend(careless, "b", months(2))
    found = monthly.verify()
    assert (found.ok, found.bad) == (False, entry)
    assert "more to a block of account 'visits'" in str(found.problem)
    careless.close()


@only_files
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE states SET text = 'x'",
        "UPDATE states SET text = 'x', entry = (SELECT count FROM head)",
        "DELETE FROM states",
        "INSERT INTO states VALUES ('analyst:ann', 2, 'x')",
        "INSERT OR REPLACE INTO states VALUES ('visits', 1, 'x')",
        "INSERT OR REPLACE INTO states VALUES ('visits', (SELECT count FROM head), 'x')",
    ],
)
def test_sqlite_itself_refuses_a_state_without_an_entry(monthly: Ledger, statement: str) -> None:
    """What blocks have spent changes with the entry that is being written, and with no other."""
    import sqlite3

    raw = sqlite3.connect(monthly.path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()
    assert monthly.verify().ok


def test_blocks_read_in_parallel_bear_a_part_each(monthly: Ledger) -> None:
    """As many steps of one cost, of which each reads one month: the lifetime bears all of them."""
    quarter = replace(months(1, 3), parallel=True)
    spend(monthly, "a", quarter, 9, "analyst:ann")
    balance = monthly.balance("visits")
    assert balance.spent.epsilon == monthly.balance("analyst:ann").spent.epsilon == Fraction(9, 10)
    assert balance.blocks is not None
    assert {balance.blocks.of(JANUARY + i).epsilon for i in range(3)} == {Fraction(3, 10)}
    assert balance.blocks.of(JANUARY + 3).epsilon == 0
    assert monthly.entries()[-1].blocks == quarter
    assert balance.admits(6 * TENTH, quarter)
    assert not balance.admits(7 * TENTH, quarter)
    assert balance.after(6 * TENTH, quarter).blocks.of(JANUARY).epsilon == Fraction(1, 2)
    with pytest.raises(BudgetError, match=r"2024-01 to 2024-03 have epsilon 0\.2 left"):
        spend(monthly, "b", quarter, 7)
    spend(monthly, "b", months(2), 2)
    assert monthly.verify().ok


def test_the_lifetime_bears_every_step(monthly: Ledger) -> None:
    """A year at a tenth a month is 1.2 of the lifetime, of which 4 are 3 such and no fourth."""
    year = replace(months(1, 12), parallel=True)
    for token in "abc":
        spend(monthly, token, year, 12)
    with pytest.raises(BudgetError, match=r"all blocks together have epsilon 0\.4 left"):
        spend(monthly, "d", year, 12)
    assert monthly.balance("visits").blocks.remaining(year).epsilon == Fraction(4, 120)
    assert monthly.verify().ok


def test_parts_are_rounded_up(monthly: Ledger) -> None:
    """A third of a grain is a grain, in each block and so in all."""
    quarter = replace(months(1, 3), parallel=True)
    grain = Charge.pure(UNIT, PATIENT)
    monthly.charge(["visits"], grain, token="a", request="ab" * 32, note={}, blocks=quarter)
    balance = monthly.balance("visits")
    assert balance.blocks is not None
    assert (balance.spent.epsilon, balance.blocks.of(JANUARY).epsilon) == (3 * UNIT, UNIT)
    assert monthly.verify().ok


def test_blocks_without_end_are_not_read_one_by_one() -> None:
    """Nobody could say how many steps it takes."""
    with pytest.raises(ArgumentError, match="finitely many"):
        BlockSet(((None, 3),), parallel=True)
    for held in ({"ranges": [[1, None]], "named": [], "parallel": True}, {"parallel": 1}):
        with pytest.raises(ArgumentError):
            BlockSet.from_dict({"ranges": [], "named": []} | held)


def test_a_share_that_was_charged_to_fewer_is_found(monthly: Ledger) -> None:
    """A chain that is whole, and says that blocks bore a part of what they bear."""
    entry = spend(monthly, "a", months(1, 3), 3)
    held = json.loads(str(record(monthly, entry).blocks))
    held["read"]["parallel"] = True
    resealed(monthly, entry, {"blocks": json.dumps(held, sort_keys=True, separators=(",", ":"))})
    found = monthly.verify()
    assert (found.ok, found.bad) == (False, entry)


def test_a_reservation_of_blocks_in_parallel_is_for_such(monthly: Ledger) -> None:
    """It keeps a part of each block, and is used by what reads the same in the same way."""
    quarter = replace(months(1, 3), parallel=True)
    until = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    kept = monthly.reserve(["visits"], 12 * TENTH, until=until, blocks=quarter)
    with pytest.raises(BudgetError, match="reserved"):
        spend(monthly, "a", months(1), 2)
    spend(monthly, "a", months(1), 1)
    for other in (months(1, 3), replace(months(1, 2), parallel=True)):
        with pytest.raises(ArgumentError, match="reservation: it is for"):
            monthly.charge(
                ["visits"],
                TENTH,
                token="b",
                request="ab" * 32,
                note={},
                blocks=other,
                reservation=kept.id,
            )
    for token in "cd":
        monthly.charge(
            ["visits"],
            6 * TENTH,
            token=token,
            request="ab" * 32,
            note={},
            blocks=quarter,
            reservation=kept.id,
        )
    balance = monthly.balance("visits").blocks
    assert balance is not None
    assert [balance.of(JANUARY + i).epsilon for i in range(3)] == [
        Fraction(1, 2),
        Fraction(2, 5),
        Fraction(2, 5),
    ]
    assert monthly.verify().ok
