"""Quotas of a question, of a window of time and in parts: exact, by the ledger's own clock."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.errors import ArgumentError, BudgetError
from dither.ledger import Ledger, OwnerKey
from dither.ledger._accounts import Balance, is_quota, quota_of
from dither.ledger._states import NOTHING, added, units_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    UnlockedQuota,
    WindowQuota,
    holds,
    read_caps,
    window,
)
from dither.privacy import Charge, Promise
from ledger.racing import raced
from ledger.stores import only_files

PATIENT = Promise("patient")
TENTH = Charge.pure(Fraction(1, 10), PATIENT)
WEEKS = Calendar(every="week")
QUESTION = QuestionQuota(BudgetFilter(Fraction(1, 10)))
RATE = WindowQuota(WEEKS, BudgetFilter(Fraction(1, 5)))
PARTS = UnlockedQuota(BudgetFilter(Fraction(1)), "week", 5)
CAPS = {
    "dataset:patient": BudgetFilter(Fraction(10)),
    "analyst:ana@question:patient": QUESTION,
    "analyst:ana@week:patient": RATE,
    "everybody@unlock:patient": PARTS,
}
SUNDAY = datetime(2024, 2, 4, 23, 59, 59, 999999, UTC)
"""The last moment of a week."""
NOW = SUNDAY


def spend(ledger: Ledger, *names: str, tenths: Fraction | int = 1) -> None:
    """Charge tenths to accounts, which are opened with their caps."""
    caps = {name: CAPS[name] for name in names}
    ledger.charge(
        caps,
        Charge.pure(Fraction(tenths) / 10, PATIENT),
        token=_token(),
        request="ab" * 32,
        note={},
    )


_tokens = iter(range(10**9))


def _token() -> str:
    return f"token {next(_tokens)}"


def test_a_quota_of_questions(ledger: Ledger) -> None:
    """Any number of small ones, and no large one; a refusal charges no account."""
    names = ("dataset:patient", "analyst:ana@question:patient")
    for _ in range(3):
        spend(ledger, *names)
    with pytest.raises(BudgetError, match=r"an analyst's quota.* for ε 0.1 a question.*0.1 "):
        spend(ledger, *names, tenths=Fraction(10**18 + 1, 10**18))
    assert [ledger.balance(name).spent.epsilon for name in names] == [Fraction(3, 10)] * 2
    assert ledger.balance(names[1]).admits(TENTH)
    assert not ledger.balance(names[1]).admits(2 * TENTH)
    assert ledger.verify().ok


def test_a_window_at_its_edge(ledger: Ledger, clock: list[datetime]) -> None:
    """The last microsecond of a week is in it, and the next one in the next."""
    name = "analyst:ana@week:patient"
    spend(ledger, name, tenths=2)
    with pytest.raises(BudgetError, match=r"ε 0.2 a week. What remains in 2024-W05: epsilon 0 "):
        spend(ledger, name)
    assert not ledger.balance(name).admits(TENTH)
    clock.append(SUNDAY + timedelta(microseconds=1))
    assert ledger.balance(name).admits(2 * TENTH)
    assert not ledger.balance(name).admits(3 * TENTH)
    spend(ledger, name, tenths=2)
    with pytest.raises(BudgetError, match="What remains in 2024-W06"):
        spend(ledger, name)
    found = ledger.verify()
    assert found.ok, found.problem


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=1), timedelta(days=400)])
def test_a_clock_that_is_set_back_opens_nothing(
    ledger: Ledger, clock: list[datetime], back: timedelta
) -> None:
    """Neither a window that was spent, nor a part anew: what was spent there is known."""
    rate, parts = "analyst:ana@week:patient", "everybody@unlock:patient"
    spend(ledger, rate, parts, tenths=2)
    clock.append(SUNDAY + timedelta(hours=1))
    spend(ledger, rate, parts, tenths=2)
    clock.append(clock[-1] - back)
    for name in (rate, parts):
        with pytest.raises(BudgetError):
            spend(ledger, name)
    found = ledger.verify()
    assert found.ok, found.problem


def test_parts_at_their_edges(ledger: Ledger, clock: list[datetime]) -> None:
    """One from the first week on, one with each Monday, never more than there are."""
    name = "everybody@unlock:patient"
    spend(ledger, name, tenths=2)
    for week in range(1, 5):
        with pytest.raises(BudgetError, match=r"a quota of all who ask.*unlocked in 5 parts"):
            spend(ledger, name, tenths=Fraction(1, 10**17))
        clock.append(SUNDAY + timedelta(weeks=week - 1, microseconds=1))
        assert ledger.balance(name).remaining.epsilon == Fraction(1, 5)
        assert ledger.balance(name).admits(2 * TENTH)
        assert not ledger.balance(name).admits(3 * TENTH)
        spend(ledger, name, tenths=2)
    clock.append(SUNDAY + timedelta(weeks=5000))
    with pytest.raises(BudgetError, match="What remains: epsilon 0 "):
        spend(ledger, name)
    found = ledger.verify()
    assert found.ok, found.problem


def test_nothing_of_a_promise_has_such_caps(ledger: Ledger) -> None:
    """An account that carries one is a sum, of all time or of blocks."""
    for caps in (QUESTION, RATE, PARTS):
        with pytest.raises(ArgumentError, match="carries a promise"):
            ledger.ensure_account("dataset:patient", caps, PATIENT)
    assert ledger.accounts() == []


@pytest.mark.parametrize("caps", [QUESTION, RATE, PARTS, BudgetFilter(Fraction(1, 3))])
def test_caps_are_read_as_they_were_written(caps: QuestionQuota) -> None:
    """And shown as a quota, with no promise."""
    assert read_caps(caps.to_dict()) == caps
    balance = Balance.of("analyst:a@week:patient", PATIENT, caps, Charge(), None)
    assert balance.quota
    assert "promises nothing" in balance.describe()
    assert [quota_of(name) for name in ("group:a:b", "everybody@week:b", "purpose:x:y")] == [
        *("a group's quota", "a quota of all who ask", "a purpose's quota")
    ]
    assert is_quota("everybody@question:patient")
    assert not is_quota("dataset:everybody@week")


def test_bad_caps_are_refused() -> None:
    """By the name of what is wrong."""
    with pytest.raises(ArgumentError, match="every must be one of day"):
        UnlockedQuota(BudgetFilter(1), "hour", 3)
    with pytest.raises(ArgumentError, match="parts must"):
        UnlockedQuota(BudgetFilter(1), "week", 0)
    with pytest.raises(ArgumentError, match="stretch of time"):
        WindowQuota(Calendar(values=("a",)), BudgetFilter(1))


@only_files
@pytest.mark.parametrize("name", list(CAPS)[1:])
def test_a_program_that_ignores_quotas_is_found(ledger: Ledger, name: str) -> None:
    """`verify` holds each of them at the hour of each charge."""

    class Careless(Ledger):
        def _bear(self, connection, names, charge, blocks, now):  # type: ignore[no-untyped-def]
            from dither.ledger.quotas._caps import by_clock, current

            totals, states = {}, {}
            for name in names:
                account = self._account(connection, name)
                totals[name] = account.spent + charge
                if by_clock(account.budget):
                    read = current(account.budget, now)
                    states[name] = account.state.plus(read, units_of(charge))[0]
            return totals, states

    with Careless.open(ledger.place) as careless:
        spend(careless, name, tenths=3)
    found = ledger.verify()
    assert not found.ok
    assert name in str(found.problem)


def test_an_owner_signs_a_rate_once(ledger: Ledger, clock: list[datetime]) -> None:
    """Windows open by the clock: no signature is needed for each."""
    key = OwnerKey.make()
    ledger.set_owner(key)
    ledger.open_accounts(CAPS, PATIENT, key=key)
    for week in range(4):
        clock.append(SUNDAY + timedelta(weeks=week))
        spend(ledger, *CAPS)
    assert ledger.balance("analyst:ana@week:patient").blocks is not None
    found = ledger.verify()
    assert found.ok, found.problem


RACE = """
import sys
from fractions import Fraction
from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.errors import BudgetError
from dither.ledger import Ledger
from dither.ledger.quotas._caps import WindowQuota
from dither.privacy import Charge, Promise
patient = Promise("patient")
caps = {"analyst:ana@year:patient": WindowQuota(Calendar(every="year"), BudgetFilter(Fraction(1)))}
with Ledger.open(sys.argv[1]) as ledger:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(20):
        try:
            ledger.charge(caps, Charge.pure(Fraction(1, 10), patient),
                          token=f"{sys.argv[2]} {number}", request="ab" * 32, note={})
            print("charged")
        except BudgetError:
            print("refused")
"""


def test_processes_race_for_the_last_of_a_quota(tmp_path: Path) -> None:
    """Twenty ask twice each for a tenth, and ten get it: a new year may begin in between."""
    place = tmp_path / "visits.ledger"
    Ledger.open(place).close()
    said = raced([["-c", RACE, str(place), str(number)] for number in range(2)])
    with Ledger.open(place) as ledger:
        assert ledger.verify().ok
        years = {entry.time.year for entry in ledger.entries() if entry.kind == "charge"}
    assert sum(words.count("charged") for words in said) == 10 * len(years)


@pytest.mark.heavy("test_parts_at_their_edges")
def test_rules_agree_with_plain_fractions() -> None:
    """Of 10,000 random sequences of charges and hours: questions, windows and parts."""
    words = random.Random(20240204)
    seen = {True: 0, False: 0}
    for _ in range(10_000):
        parts = UnlockedQuota(BudgetFilter(Fraction(words.randint(1, 9))), "week", 3)
        hour = SUNDAY.replace(minute=0, second=0, microsecond=0)
        first, total, plain = hour.isoformat(), NOTHING, Fraction(0)
        for _ in range(words.randint(1, 6)):
            hour += timedelta(hours=words.choice([0, 1, 24, 100, 168]))
            amount = Fraction(words.randint(0, 12), words.randint(1, 6))
            units = units_of(Charge.pure(amount))
            weeks = (hour.date() - datetime(2024, 1, 29).date()).days // 7
            cap = parts.whole.epsilon * min(weeks + 1, 3) / 3
            after = Fraction(added(total, units)[0], 10**18)  # type: ignore[arg-type]
            fits = holds(parts, units, added(total, units), first, hour.isoformat())
            assert fits == (after <= cap)
            assert window("week", hour.isoformat()) - window("week", first) == weeks
            assert holds(QUESTION, units, total, first, first) == (
                Fraction(units[0], 10**18) <= Fraction(1, 10)  # type: ignore[arg-type]
            )
            seen[fits] += 1
            if fits:
                total, plain = added(total, units), plain + amount
        assert 0 <= Fraction(total[0] or 0, 10**18) - plain < Fraction(1, 10**16)
    assert min(seen.values()) > 3_000
