"""The picture of a ledger over time: sums by date, caps as they were, and a look ahead."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.cli import main
from dither.errors import LedgerError
from dither.ledger import BlockBudget, Ledger
from dither.ledger.quotas._caps import QuestionQuota
from dither.privacy import Charge, Promise

NOW = dt.datetime(2024, 1, 1, 9, tzinfo=dt.UTC)
PATIENT = Promise("patient")


@pytest.fixture
def ledger(tmp_path: Path, clock: list[dt.datetime]) -> Iterator[Ledger]:
    """A tenth each ten days, of ann and of ben in turn; the cap grows on the way."""
    with Ledger.open(tmp_path / "visits.ledger") as book:
        book.ensure_account("visits", BudgetFilter(Fraction(1)), PATIENT)
        for name in ("ann", "ben"):
            book.ensure_account(f"analyst:{name}:patient", BudgetFilter(Fraction(1)), PATIENT)
        book.ensure_account("everybody@question:patient", QuestionQuota(BudgetFilter(1)), PATIENT)
        for i in range(6):
            clock.append(NOW + dt.timedelta(days=10 * i))
            if i == 3:
                book.amend("visits", BudgetFilter(Fraction(2)), "second year")
            names = ["visits", f"analyst:{('ann', 'ben')[i % 2]}:patient"]
            tenth = Charge.pure(Fraction(1, 10), PATIENT)
            book.charge(
                [*names, "everybody@question:patient"],
                tenth, token=str(i), request="ab" * 32, note={},
            )  # fmt: skip
        yield book


def lines(figure: Any) -> dict[str, list[tuple[str, float]]]:
    """The points of each line by its label, moments as text."""
    from matplotlib.dates import num2date

    def day(x: Any) -> str:
        moment = x if isinstance(x, dt.datetime) else num2date(x)
        return f"{moment:%m-%d}"

    return {
        str(line.get_label()): [
            (day(x), round(float(y), 6))
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
        ]
        for axes in figure.axes
        for line in axes.lines
    }


def test_sums_by_date_with_caps_and_quotas(ledger: Ledger) -> None:
    """The last point is the balance; the cap steps up on the day of its amendment."""
    figure = ledger.plot()
    found = lines(figure)
    days = ["01-01", "01-11", "01-21", "01-31", "02-10", "02-20"]
    assert found["visits"][1:-1] == list(zip(days, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], strict=True))
    assert found["visits"][-1][1] == float(ledger.balance("visits").spent.epsilon or 0)
    assert found["analyst:ann:patient (a quota)"][1:-1] == [
        ("01-01", 0.1),
        ("01-21", 0.2),
        ("02-10", 0.3),
    ]
    until = ledger.balance("visits").forecast().until
    assert until is not None
    assert found["cap: ε 2"][:2] == [("01-01", 1.0), ("01-31", 2.0)]
    assert f"at this pace until {until.isoformat()}" in found
    assert "everybody@question:patient (a quota)" not in found
    foot = " ".join(figure.get_supxlabel().split())
    assert "quotas of a question or of a window begin anew" in foot
    assert "quotas promise nothing" in foot
    assert "which promises nothing" in foot


def test_a_forecast_within_sight_ends_at_the_cap(ledger: Ledger) -> None:
    """One that lies further away than what has passed runs to the picture's edge."""
    (ahead,) = [v for k, v in lines(ledger.plot()).items() if k.startswith("at this pace")]
    assert ahead[0] == ("02-20", 0.6)
    assert 0.6 < ahead[1][1] < 2.0
    tenth = Charge.pure(Fraction(3, 10), PATIENT)
    ledger.charge(["analyst:ann:patient"], tenth, token="z", request="ab" * 32, note={})
    found = lines(ledger.plot(account="analyst:ann:patient"))
    (ahead,) = [v for k, v in found.items() if k.startswith("at this pace")]
    until = ledger.balance("analyst:ann:patient").forecast().until
    assert until is not None
    assert ahead[1] == (f"{until:%m-%d}", 1.0)
    assert found["cap: ε 1"][0][1] == 1.0


def test_blocks_are_held_against_their_lifetime(ledger: Ledger) -> None:
    """Without one there is no cap of all time, and the picture says so."""
    months, half = Calendar(every="month"), BudgetFilter(Fraction(1, 2))
    ledger.ensure_account("a", BlockBudget(months, half, BudgetFilter(4)), Promise("a"))
    ledger.ensure_account("b", BlockBudget(months, half), Promise("b"))
    tenth = Charge.pure(Fraction(1, 10), Promise("b"))
    january = BlockSet.of_range(2024 * 12, 2024 * 12)
    ledger.charge(["b"], tenth, token="b", request="ab" * 32, note={}, blocks=january)
    figure = ledger.plot()
    assert len(figure.axes) == 3
    found = lines(figure)
    assert "cap: ε 4" in found
    assert [y for _, y in found["b"]] == [0.0, 0.1, 0.1]
    foot = " ".join(figure.get_supxlabel().split())
    assert "the cap is that of all months together" in foot
    assert "there is none for all" in foot


def test_a_ledger_without_accounts_and_one_without_charges(
    tmp_path: Path, clock: list[dt.datetime]
) -> None:
    """Both are drawn; an account that is not there is refused."""
    with Ledger.open(tmp_path / "new.ledger") as book:
        assert [t.get_text() for t in book.plot().axes[0].texts] == ["no account yet"]
        book.ensure_account("visits", BudgetFilter(Fraction(1)), PATIENT)
        found = lines(book.plot())
        assert {y for _, y in found["visits"]} == {0.0}
        assert found["cap: ε 1"]
        with pytest.raises(LedgerError, match="no account"):
            book.plot(account="vists")


def test_gaussian_charges_are_counted_by_rho(ledger: Ledger) -> None:
    """Where basic composition cannot add them up."""
    doctor = Promise("doctor")
    ledger.ensure_account("d", BudgetFilter(Fraction(1), Fraction(1, 10**6)), doctor)
    charge = Charge(None, Fraction(0), Fraction(1, 1000), Fraction(0), doctor)
    ledger.charge(["d"], charge, token="d", request="ab" * 32, note={})
    (axes,) = ledger.plot(account="d").axes
    assert axes.get_ylabel() == "ρ spent in all"
    assert max(axes.lines[0].get_ydata()) == 0.001


def test_the_command_draws(ledger: Ledger, tmp_path: Path) -> None:
    """The ledger over time, or one account's bars; a bad target is refused beforehand."""

    def run(*arguments: str) -> Any:
        path = str(tmp_path / "visits.ledger")
        return CliRunner().invoke(main, ["ledger", "show", path, *arguments])

    whole, one = tmp_path / "all.svg", tmp_path / "one.svg"
    made = run("--plot", str(whole))
    assert made.exit_code == 0, made.output
    assert f"wrote {whole}" in made.stderr
    assert "wrote" not in made.stdout
    assert run("--account", "visits", "--plot", str(one), "--json").exit_code == 0
    assert whole.read_bytes()[:5] == one.read_bytes()[:5] == b"<?xml"
    assert whole.stat().st_size != one.stat().st_size
    refused = run("--plot", str(tmp_path / "all.txt"))
    assert refused.exit_code == 2
    assert "--plot must end in" in refused.output
