"""The picture of a balance: every block by its name, what it spent, and what may still be spent."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.errors import ArgumentError
from dither.ledger import BlockBudget, Ledger
from dither.ledger._accounts import Balance
from dither.ledger.pictures._bars import MOST, bars_of
from dither.ledger.quotas._caps import QuestionQuota, UnlockedQuota, WindowQuota
from dither.privacy import Charge, Promise

NOW = dt.datetime(2024, 5, 15, 9, tzinfo=dt.UTC)
PATIENT = Promise("patient")
MONTHS = Calendar(every="month")
DAYS = Calendar(every="day")
JANUARY = 2024 * 12
HALF, FOUR = BudgetFilter(Fraction(1, 2)), BudgetFilter(Fraction(4))


@pytest.fixture
def ledger(tmp_path: Path, clock: list[dt.datetime]) -> Iterator[Ledger]:
    """An empty ledger of May 2024."""
    with Ledger.open(tmp_path / "visits.ledger") as book:
        yield book


def months(first: int | None, last: int | None, *named: str) -> BlockSet:
    """Months by their numbers from January 2024 on."""
    low, high = (None if at is None else JANUARY + at - 1 for at in (first, last))
    return BlockSet(((low, high),), frozenset(named))


def spend(ledger: Ledger, charge: Charge | str, blocks: BlockSet | None) -> None:
    """Charge the account of the data set; a text is a pure epsilon."""
    made = charge if isinstance(charge, Charge) else Charge.pure(Fraction(charge), PATIENT)
    token = str(len(ledger.entries()))
    ledger.charge(["visits"], made, token=token, request="ab" * 32, note={}, blocks=blocks)


def opened(
    ledger: Ledger, calendar: Calendar, lifetime: BudgetFilter | None = FOUR, delta: int = 0
) -> None:
    """Open the account with half an epsilon for each block."""
    each = BudgetFilter(Fraction(1, 2), Fraction(delta, 10**6))
    ledger.ensure_account("visits", BlockBudget(calendar, each, lifetime), PATIENT)


def columns(balance: Balance) -> list[tuple[str, float, float]]:
    """Label, spent and reserved of each bar."""
    assert balance.blocks is not None
    bars, _, _ = bars_of(balance.blocks)
    return [(bar.label, bar.spent, bar.reserved) for bar in bars]


def words(figure: Any) -> str:
    """Whatever stands on a picture."""
    found = [figure.get_suptitle(), figure.get_supxlabel()]
    for axes in figure.axes:
        found += [axes.get_xlabel(), axes.get_ylabel(), *(t.get_text() for t in axes.texts)]
        found += [t.get_text() for t in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    found += [t.get_text() for legend in figure.legends for t in legend.get_texts()]
    return " | ".join(" ".join(text.split()) for text in found)


def test_each_block_has_a_bar_with_its_name_its_cap_and_its_lifetime(ledger: Ledger) -> None:
    """Blocks before the first change and after the last are one bar each; NULL has its own."""
    opened(ledger, MONTHS)
    spend(ledger, "0.1", months(None, 3, NULL))
    spend(ledger, "0.3", months(2, 2))
    until = NOW + dt.timedelta(days=1)
    tenth = Charge.pure(Fraction(1, 10), PATIENT)
    ledger.reserve(["visits"], tenth, until=until, blocks=months(3, 4))
    balance = ledger.balance("visits")
    assert columns(balance) == [
        ("all up to 2024-01", 0.1, 0.0),
        ("2024-02", 0.4, 0.0),
        ("2024-03", 0.1, 0.1),
        ("2024-04", 0.0, 0.1),
        ("NULL", 0.1, 0.0),
    ]
    above, below = (figure := balance.plot()).axes
    spent, kept, left = above.containers
    assert [bar.get_height() for bar in spent] == [0.1, 0.4, 0.1, 0.0, 0.1]
    assert [(bar.get_y(), bar.get_height()) for bar in kept] == [(0.1, 0.1), (0.0, 0.1)]
    assert [bar.get_y() + bar.get_height() for bar in left] == pytest.approx([0.5] * 5)
    assert kept[0].get_hatch()
    assert above.lines[-1].get_ydata()[0] == 0.5
    assert [bar.get_width() for (bar,) in below.containers] == pytest.approx([0.4, 0.1, 3.5])
    said = words(figure)
    for word in (
        "visits", "cap: ε 0.5 a month", "spent", "reserved", "left", "ε of each", "0.1 + 0.1",
        "all months together", "ε 0.4 of 4 spent, ε 0.1 reserved", "counted by basic composition",
        "at most 0.5·m for someone in m months, 4 in all",
        "a stretch of months has one bar: each of them has spent as much",
    ):  # fmt: skip
        assert word in said


@pytest.mark.parametrize("name", ["budget.png", "budget.svg"])
def test_it_is_saved(ledger: Ledger, tmp_path: Path, name: str) -> None:
    """As what the ending says; another ending is refused."""
    opened(ledger, MONTHS)
    balance = ledger.balance("visits")
    balance.plot(tmp_path / name, title="A budget")
    begins = (tmp_path / name).read_bytes()[:100]
    assert begins.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
    with pytest.raises(ArgumentError, match="path must end in"):
        balance.plot(tmp_path / "budget.txt")


def test_a_year_of_days_can_be_read(ledger: Ledger) -> None:
    """Each day is drawn, and labels stand where months begin, apart from each other."""
    opened(ledger, DAYS, BudgetFilter(Fraction(100)))
    first = dt.date(2024, 1, 1).toordinal()
    spend(ledger, "0.1", BlockSet(tuple((first + i, first + i) for i in range(0, 400, 2))))
    bars = columns(ledger.balance("visits"))
    assert [spent for _, spent, _ in bars] == [0.1, 0.0] * 199 + [0.1]
    assert bars[0][0] == "2024-01-01"
    figure = ledger.balance("visits").plot()
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels[:2] == ["2024-01-01", "2024-02-01"]
    assert len(labels) <= 16
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    # Labels lean, so that their ends are what must not meet.
    assert all(b.x1 - a.x1 > 12 for a, b in pairwise(boxes))


@pytest.mark.parametrize("number", [12, 60, 120, 400])
def test_labels_of_months_do_not_meet(ledger: Ledger, number: int) -> None:
    """One by one while there is room, and by years then."""
    opened(ledger, MONTHS, None)
    spend(ledger, "0.1", months(1, number))
    spend(ledger, "0.1", months(2, number - 1))
    spend(ledger, "0.1", months(number, number))
    figure = ledger.balance("visits").plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    assert len(axes.containers[0]) == number
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert len(boxes) >= 2
    lean = axes.get_xticklabels()[0].get_rotation()
    gaps = [(b.x1 - a.x1 if lean else b.x0 - a.x1) for a, b in pairwise(boxes)]
    assert min(gaps) > (12 if lean else 2)


def test_blocks_far_apart_are_stretches(ledger: Ledger) -> None:
    """Two thousand years of days are three bars; where there are too many, the newest are drawn."""
    opened(ledger, DAYS, None)
    may = dt.date(2024, 5, 1).toordinal()
    spend(ledger, "0.1", BlockSet.of_range(1, may))
    spend(ledger, "0.2", BlockSet.of_range(may - 100, None))
    assert columns(ledger.balance("visits")) == [
        ("0001-01-01 to 2024-01-21", 0.1, 0.0),
        ("2024-01-22 to 2024-05-01", pytest.approx(0.3), 0.0),
        ("2024-05-02 and later", 0.2, 0.0),
    ]
    spend(ledger, "0.001", BlockSet(tuple((1000 * at, 1000 * at + 1) for at in range(40))))
    balance = ledger.balance("visits")
    found = columns(balance)
    assert len(found) == MOST + 1
    assert found[-1][0] == "2024-05-02 and later"
    cuts = len(balance.blocks.state.bounds) if balance.blocks else 0
    assert f"{cuts - 2} earlier stretches left out" in words(balance.plot())


def test_declared_blocks_are_all_there(ledger: Ledger) -> None:
    """Edges and values in their order, and by their names; what has no blocks is named."""
    opened(ledger, Calendar(edges=(Fraction(18), Fraction(40))))
    assert [label for label, _, _ in columns(ledger.balance("visits"))] == [
        "below 18",
        "[18, 40)",
        "from 40",
    ]
    cohorts = Calendar(values=("spring enrolment $1", "autumn enrolment", "winter enrolment"))
    budget = BlockBudget(cohorts, HALF)
    ledger.ensure_account("cohorts", budget, PATIENT)
    charge = Charge.pure(Fraction(1, 4), PATIENT)
    read = BlockSet(((1, 1),), frozenset({OTHERS, "table doctors"}))
    ledger.charge(["cohorts"], charge, token="c", request="ab" * 32, note={}, blocks=read)
    found = columns(ledger.balance("cohorts"))
    assert [label for label, spent, _ in found if spent == 0.25] == [
        "autumn enrolment",
        "other values",
        "doctors (no blocks)",
    ]
    assert "NULL" in [label for label, _, _ in found]
    figure = ledger.balance("cohorts").plot()
    shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown == [label.replace("$", "\\$") for label, _, _ in found]


def test_nothing_and_all_is_spent(ledger: Ledger) -> None:
    """An empty account says so; where the lifetime leaves less than a block does, that is said."""
    opened(ledger, MONTHS, BudgetFilter(Fraction(1)))
    assert columns(ledger.balance("visits")) == [("every month", 0.0, 0.0)]
    assert "no month has spent anything" in words(ledger.balance("visits").plot())
    spend(ledger, "0.5", months(1, 1))
    spend(ledger, "0.5", months(3, 3))
    said = words(ledger.balance("visits").plot())
    assert "what is left of all months together, ε 0, is the most that any month may still" in said


def test_everything_is_read(ledger: Ledger) -> None:
    """A range without ends is one bar that says so."""
    opened(ledger, MONTHS)
    spend(ledger, "0.3", BlockSet(((None, None),)))
    assert columns(ledger.balance("visits")) == [("every month", 0.3, 0.0)]


def test_blocks_that_end_by_different_rules_are_drawn_as_shares(ledger: Ledger) -> None:
    """No one rule adds up both, and none of them is closed: each is held against the caps."""
    opened(ledger, MONTHS, None, delta=1)
    spend(ledger, Charge(None, Fraction(0), Fraction(1, 500), Fraction(0), PATIENT), months(1, 1))
    spend(ledger, Charge(Fraction(1, 10), Fraction(0), None, Fraction(0), PATIENT), months(2, 2))
    each = BudgetFilter(Fraction(1, 2), Fraction(1, 10**6))
    assert each.rho is not None
    found = columns(ledger.balance("visits"))
    assert [spent for _, spent, _ in found] == pytest.approx([float(1 / each.rho / 500), 0.2])
    assert "whichever rule leaves a block more room" in words(ledger.balance("visits").plot())


def test_blocks_that_are_read_each_by_itself_bear_their_part(ledger: Ledger) -> None:
    """A table by month costs each month its own step, and all of them together the sum."""
    opened(ledger, MONTHS)
    read = BlockSet(((JANUARY, JANUARY + 2),), parallel=True)
    spend(ledger, "0.3", read)
    balance = ledger.balance("visits")
    labels = ["2024-01", "2024-02", "2024-03"]
    assert columns(balance) == [(label, 0.1, 0.0) for label in labels]
    assert "ε 0.3 of 4 spent" in words(balance.plot())


def test_rho_is_drawn_where_it_leaves_more_room(ledger: Ledger) -> None:
    """Many small Gaussian charges: the zCDP rule, and its cap."""
    opened(ledger, MONTHS, None, delta=1)
    spend(ledger, Charge(None, Fraction(0), Fraction(1, 500), Fraction(0), PATIENT), months(1, 1))
    assert columns(ledger.balance("visits")) == [("2024-01", 0.002, 0.0)]
    assert "ρ of each" in words(ledger.balance("visits").plot())


def test_accounts_without_blocks_are_one_bar(ledger: Ledger) -> None:
    """Plain caps, and every kind of quota; a quota is called one."""
    half = BudgetFilter(Fraction(1, 2))
    for name, caps in {
        "visits": BudgetFilter(Fraction(1)),
        "analyst:ann:patient": UnlockedQuota(BudgetFilter(Fraction(1)), "month", 4),
        "everybody@week:patient": WindowQuota(Calendar(every="week"), half),
        "everybody@question:patient": QuestionQuota(half),
    }.items():
        ledger.ensure_account(name, caps, PATIENT)
    charge, request = Charge.pure(Fraction(1, 5), PATIENT), "ab" * 32
    ledger.charge(ledger.accounts(), charge, token="a", request=request, note={})
    ledger.reserve(["visits"], charge, until=NOW + dt.timedelta(days=1))
    said = {name: words(ledger.balance(name).plot()) for name in ledger.accounts()}
    assert "ε 0.2 of 1 spent, ε 0.2 reserved" in said["visits"]
    assert "unlocked so far" in said["analyst:ann:patient"]
    assert "2024-W20" in said["everybody@week:patient"]
    assert "week of the charge" in said["everybody@week:patient"]
    assert "ε of one question" in said["everybody@question:patient"]
    assert "questions so far cost ε 0.2 together" in said["everybody@question:patient"]
    assert "promises nothing" not in said.pop("visits")
    kept = [name for name in said if name.startswith("reservation:")]
    assert len(kept) == 1
    assert all("promises nothing" in text for text in said.values())
