"""Reservations: nobody else spends them, they count down, and they lapse by the clock alone."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, BudgetError, LedgerError, PromiseError
from dither.ledger import BlockBudget, Ledger
from dither.ledger._states import NOTHING, added, units_of
from dither.ledger.quotas._caps import QuestionQuota, ReservedQuota, UnlockedQuota, WindowQuota
from dither.ledger.quotas._reserved import room
from dither.privacy import Charge, Promise
from ledger.racing import raced
from ledger.stores import only_files

PATIENT = Promise("patient")
CAPS = {
    "dataset:patient": BudgetFilter(Fraction(1)),
    "analyst:ana:patient": BudgetFilter(Fraction(4, 5)),
}
NOON = datetime(2024, 2, 4, 12, 30, tzinfo=UTC)
NOW = NOON
HOUR = timedelta(hours=1)
JANUARY = BlockSet.of_range(2024 * 12, 2024 * 12)
FEBRUARY = BlockSet.of_range(2024 * 12 + 1, 2024 * 12 + 1)


def tenths(number: int) -> Charge:
    """So many tenths."""
    return Charge.pure(Fraction(number, 10), PATIENT)


_tokens = iter(range(10**9))


def spend(ledger, number, caps=CAPS, reservation=None, blocks=None):
    """Charge tenths."""
    return ledger.charge(
        caps,
        tenths(number),
        token=f"token {next(_tokens)}",
        request="ab" * 32,
        note={},
        blocks=blocks,
        reservation=reservation,
    ).entry


def test_what_is_reserved_is_kept_for_its_holder(ledger: Ledger) -> None:
    """Others get what is left beside it; the holder all of it, counted down, and no more."""
    made = ledger.reserve(CAPS, tenths(5), until=NOON + HOUR)
    assert made.id not in repr(made)
    assert ledger.balance("dataset:patient").reserved == tenths(5)
    assert ledger.balance("dataset:patient").remaining.epsilon == Fraction(1, 2)
    assert "reserved epsilon 0.5" in str(ledger.balance("dataset:patient"))
    with pytest.raises(
        BudgetError, match=r"analyst's quota\).*Others have reserved.*remains: epsilon 0\.3"
    ):
        spend(ledger, 4)
    spend(ledger, 3)
    with pytest.raises(BudgetError):
        spend(ledger, 1)
    with pytest.raises(BudgetError, match="a reservation"):
        spend(ledger, 6, reservation=made.id)
    spend(ledger, 2, reservation=made.id)
    assert ledger.balance("dataset:patient").reserved.epsilon == Fraction(3, 10)
    assert ledger.balance("dataset:patient", reservation=made.id).remaining.epsilon == Fraction(
        1, 2
    )
    spend(ledger, 3, reservation=made.id)
    with pytest.raises(BudgetError):
        spend(ledger, 1, reservation=made.id)
    assert ledger.balance("dataset:patient").spent.epsilon == Fraction(4, 5)
    found = ledger.verify()
    assert found.ok, found.problem


def test_it_lapses_at_its_hour(ledger: Ledger, clock: list[datetime]) -> None:
    """Not a microsecond before, whoever holds it; afterwards nobody can use it."""
    made = ledger.reserve(CAPS, tenths(8), until=NOON + HOUR)
    assert made.until == datetime(2024, 2, 4, 13, tzinfo=UTC)
    clock.append(datetime(2024, 2, 4, 12, 59, 59, 999999, UTC))
    with pytest.raises(BudgetError):
        spend(ledger, 1)
    clock.append(datetime(2024, 2, 4, 13, tzinfo=UTC))
    with pytest.raises(LedgerError, match="has lapsed, or there never was one"):
        spend(ledger, 1, reservation=made.id)
    assert ledger.balance("dataset:patient").reserved.free
    spend(ledger, 8)
    # A clock that is set back brings it back no more than the entry's hour goes back.
    clock.append(NOON)
    with pytest.raises(LedgerError):
        spend(ledger, 1, reservation=made.id)
    found = ledger.verify()
    assert found.ok, found.problem


def test_reservations_together_stay_within_caps(ledger: Ledger) -> None:
    """A second one gets what the first leaves; one that does not fit writes nothing."""
    ledger.reserve(CAPS, tenths(5), until=NOON + HOUR)
    count = len(ledger.entries())
    with pytest.raises(BudgetError, match="nothing was spent"):
        ledger.reserve(CAPS, tenths(4), until=NOON + HOUR)
    assert len(ledger.entries()) == count
    ledger.reserve(CAPS, tenths(3), until=NOON + HOUR)
    with pytest.raises(BudgetError):
        spend(ledger, 1)
    assert ledger.verify().ok


def test_a_reservation_is_of_the_same_accounts_and_blocks(ledger: Ledger) -> None:
    """Of blocks each keeps it; another analyst, and other blocks, do not use it."""
    each = BlockBudget(
        Calendar(every="month"), BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(2))
    )
    caps = {"dataset:patient": each, "analyst:ana:patient": BudgetFilter(Fraction(9))}
    with pytest.raises(ArgumentError, match="blocks must hold at least one block"):
        ledger.reserve(caps, tenths(3), until=NOON + HOUR, blocks=BlockSet())
    made = ledger.reserve(caps, tenths(3), until=NOON + HOUR, blocks=JANUARY)
    with pytest.raises(BudgetError, match="2024-01"):
        spend(ledger, 3, caps, blocks=JANUARY)
    spend(ledger, 5, caps, blocks=FEBRUARY)
    with pytest.raises(ArgumentError, match="other blocks"):
        spend(ledger, 1, caps, made.id, JANUARY | FEBRUARY)
    with pytest.raises(ArgumentError, match="for the accounts analyst:ana:patient, dataset"):
        spend(ledger, 1, {"dataset:patient": each}, made.id, JANUARY)
    spend(ledger, 2, caps, blocks=JANUARY)
    spend(ledger, 3, caps, made.id, JANUARY)
    found = ledger.verify()
    assert found.ok, found.problem


@pytest.mark.parametrize(
    "caps",
    [
        WindowQuota(Calendar(every="week"), BudgetFilter(Fraction(1, 2))),
        UnlockedQuota(BudgetFilter(Fraction(1)), "week", 2),
    ],
)
def test_quotas_of_time_keep_it_as_well(
    ledger: Ledger, clock: list[datetime], caps: WindowQuota
) -> None:
    """In each window: Sunday's leave, and Monday's."""
    quota = {
        "everybody@x:patient": caps,
        "everybody@question:patient": QuestionQuota(CAPS["dataset:patient"]),
    }
    made = ledger.reserve(quota, tenths(3), until=NOON + timedelta(days=3))
    with pytest.raises(BudgetError, match="Others have reserved"):
        spend(ledger, 3, quota)
    spend(ledger, 2, quota)
    clock.append(NOON + timedelta(days=1))
    spend(ledger, 2, quota)
    spend(ledger, 3, quota, made.id)
    found = ledger.verify()
    assert found.ok, found.problem


def test_bad_reservations_are_refused(ledger: Ledger) -> None:
    """By name; nothing is written."""
    for until in (NOON, NOON - HOUR, NOON + timedelta(minutes=29)):
        with pytest.raises(ArgumentError, match="until must lie at least an hour ahead"):
            ledger.reserve(CAPS, tenths(1), until=until)
    with pytest.raises(ArgumentError, match="at most 366 days"):
        ledger.reserve(CAPS, tenths(1), until=NOON + timedelta(days=367))
    with pytest.raises(ArgumentError, match="time zone"):
        ledger.reserve(CAPS, tenths(1), until=datetime(2030, 1, 1))
    with pytest.raises(ArgumentError, match="above 0, and finite"):
        ledger.reserve(CAPS, tenths(0), until=NOON + HOUR)
    with pytest.raises(ArgumentError, match="above 0, and finite"):
        ledger.reserve(CAPS, Charge.concentrated(1).promising(PATIENT), until=NOON + HOUR)
    with pytest.raises(PromiseError):
        ledger.reserve(CAPS, Charge.pure(1), until=NOON + HOUR)
    with pytest.raises(BudgetError):
        ledger.reserve(CAPS, tenths(10**9), until=NOON + HOUR)
    with pytest.raises(LedgerError, match="there never was one"):
        spend(ledger, 1, reservation="ab" * 16)
    with pytest.raises(ArgumentError, match="reservations themselves"):
        ledger.reserve(["reservation:x"], tenths(1), until=NOON + HOUR)
    assert ledger.accounts() == []


@only_files
@pytest.mark.parametrize("amount", [3, 5])
def test_a_program_that_ignores_reservations_is_found(ledger: Ledger, amount: int) -> None:
    """`verify` adds up at each charge what was spent and what is held."""
    made = ledger.reserve(
        {"dataset:patient": CAPS["dataset:patient"]}, tenths(6), until=NOON + HOUR
    )

    class Careless(Ledger):
        def _bear(self, connection, names, charge, blocks, now):  # type: ignore[no-untyped-def]
            return {n: self._account(connection, n).spent + charge for n in names}, {}

    with Careless.open(ledger.place) as careless:
        spend(careless, amount, {"dataset:patient": CAPS["dataset:patient"]})
    found = ledger.verify()
    assert found.ok == (amount == 3)
    if amount == 5:
        assert "what others have reserved" in str(found.problem)
    else:
        with Careless.open(ledger.place) as careless:
            spend(careless, 7, {"dataset:patient": CAPS["dataset:patient"]}, made.id)
        assert not ledger.verify().ok


RACE = """
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from dither.accounting import BudgetFilter
from dither.errors import BudgetError
from dither.ledger import Ledger
from dither.privacy import Charge, Promise
patient = Promise("patient")
caps = {"dataset:patient": BudgetFilter(Fraction(1))}
tenth = Charge.pure(Fraction(1, 10), patient)
with Ledger.open(sys.argv[1]) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(10):
        try:
            if sys.argv[3]:
                ledger.charge(caps, tenth, token=f"{sys.argv[2]} {number}", request="ab" * 32,
                              note={}, reservation=sys.argv[3])
            else:
                ledger.reserve(caps, tenth, until=datetime.now(UTC) + timedelta(days=9))
            print("yes")
        except BudgetError:
            print("no")
"""


@pytest.mark.parametrize("use", [False, True])
def test_processes_race_for_a_reservation(tmp_path: Path, use: bool) -> None:
    """To make one of the last that is left, and to use the last of one."""
    place = tmp_path / "visits.ledger"
    with Ledger.open(place) as ledger:
        known = ""
        if use:
            until = datetime.now(UTC) + timedelta(days=9)
            caps = {"dataset:patient": CAPS["dataset:patient"]}
            known = ledger.reserve(caps, tenths(10), until=until).id
    said = raced([["-c", RACE, str(place), str(number), known] for number in range(2)])
    assert sum(words.count("yes") for words in said) == 10
    with Ledger.open(place) as ledger:
        found = ledger.verify()
        assert found.ok, found.problem


@pytest.mark.heavy("test_what_is_reserved_is_kept_for_its_holder")
def test_random_sequences_agree_with_plain_fractions() -> None:
    """10,000 of charges, uses, reservations and lapses: never above a cap, and never too strict."""
    words = random.Random(20240204)
    said = {True: 0, False: 0}
    for _ in range(10_000):
        cap = Fraction(words.randint(1, 10))
        caps, spent, plain, hour = BudgetFilter(cap), NOTHING, Fraction(0), NOON
        made: list[tuple[ReservedQuota, list]] = []
        for _ in range(words.randint(2, 8)):
            hour += timedelta(hours=words.randint(0, 5))
            now = hour.isoformat()
            amount = Fraction(words.randint(1, 12), 4)
            units = units_of(Charge.pure(amount))
            live = [(r, used) for r, used in made if r.until > now]
            use = words.choice([None, *live])
            left = {id(r): r.left(used[0]) for r, used in live}
            kept = sum(
                (max(Fraction(r.amount[0] or 0, 10**18) - used[1], 0) for r, used in live),
                Fraction(0),
            )
            if words.random() < 0.4:
                held = [(left[id(r)], None) for r, _ in live] + [(units, None)]
                fits = room(caps, spent, None, None, held, now, now)
                assert fits == (plain + kept + amount <= cap)
                if fits:
                    until = (hour + timedelta(hours=words.randint(1, 9))).isoformat()
                    made.append((ReservedQuota(units, ("a",), until, ""), [NOTHING, Fraction(0)]))
            else:
                total = added(spent, units)
                may = True
                if use is not None:
                    quota, used = use
                    may = quota.bears(added(used[0], units), now)
                    assert may == (used[1] + amount <= Fraction(quota.amount[0] or 0, 10**18))
                    left[id(quota)] = quota.left(added(used[0], units))
                    kept -= min(amount, max(Fraction(quota.amount[0] or 0, 10**18) - used[1], 0))
                held = [(left[id(r)], None) for r, _ in live]
                fits = may and room(caps, total, None, None, held, now, now)
                assert fits == (may and plain + amount + kept <= cap)
                # What is reserved can always be used.
                assert use is None or fits == may
                if fits:
                    spent, plain = total, plain + amount
                    if use is not None:
                        used[0], used[1] = added(used[0], units), used[1] + amount
            said[fits] += 1
            assert plain <= cap
    assert min(said.values()) > 5_000
