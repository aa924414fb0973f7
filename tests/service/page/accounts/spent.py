"""A policy with a budget for each month that was asked for weeks, and one with 10,000 entries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

import dither as dt
from dither.ledger import Ledger
from dither.privacy import Promise, pure
from dither.privacy.accounts._budget import BudgetFilter
from ledger.clocks import ledgers_clock
from service.loopback import OnLoopback, serving

HOSTILE = "<img src=x onerror=alert(1)>"
"""What must stay text wherever it is shown."""

POLICY = f"""
[budget]
epsilon = 1
delta = 1e-6
per = "block"
lifetime = {{ epsilon = 4, delta = 4e-6 }}
ledger = "visits.ledger"

[service]
name = "visits"
approve_above = {{ epsilon = 0.25 }}

[quotas]
first_come = true
[quotas.analysts.ann]
epsilon = 1
[quotas.analysts.bob]
epsilon = 1

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows = 3
max_groups = 2
block = {{ column = "day", every = "month" }}
[tables.visits.columns]
day = {{ type = "date", bounds = ["2026-01-01", "2026-12-31"] }}
cost = {{ bounds = [0, 100] }}
group = {{ values = ["control", "{HOSTILE}"] }}
"""

MONTHS = "SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN '2026-0{}-01' AND '2026-0{}-28'"


def spent(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A policy whose months were asked for in the ten weeks before today."""
    pl.DataFrame(
        {
            "patient": [i // 3 for i in range(600)],
            "day": [date(2026, 1 + i % 6, 1 + i % 28) for i in range(600)],
            "cost": [float(i % 100) for i in range(600)],
            "group": ["control", HOSTILE] * 300,
        }
    ).write_parquet(folder / "visits.parquet")
    file = folder / "dither.toml"
    file.write_text(POLICY)
    with patch.context() as at:
        clock = ledgers_clock(at, datetime.now(UTC) - timedelta(days=70))
        for week in range(9):
            clock.append(clock[0] + timedelta(days=7 * (week + 1)))
            who = ("ann", "bob")[week % 2]
            with dt.open(file, analyst=who) as session:
                low = 1 + week % 4
                session.sql(MONTHS.format(low, low + week % 3)).release(Fraction(1, 20))
                session.sql(
                    f"SELECT COUNT(*) AS n FROM visits WHERE \"group\" = '{HOSTILE}' "
                    "AND day < '2026-03-01'"
                ).release(Fraction(1, 50))
        with dt.open(file, analyst="bob") as session:
            session.reserve(Fraction(1, 10), until=datetime.now(UTC) + timedelta(days=20))
    return file


def long_ledger(place: Path, entries: int, answer: str = "{}") -> None:
    """A ledger of so many entries, charges and answers by turns."""
    promise = Promise("patient")
    with Ledger.open(place) as book:
        caps = {
            "dataset:patient": BudgetFilter(Fraction(10_000), Fraction(1, 1000)),
            "analyst:ann:patient": BudgetFilter(Fraction(5_000), Fraction(1, 1000)),
        }
        while (number := book.entries(limit=1)[0].number) < entries - 2:
            charged = book.charge(
                caps,
                pure(Fraction(1, 100)).promising(promise),
                token=f"token {number}",
                request=f"{number:064x}",
                note={"query": f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}"},
            )
            book.store_answer(charged.entry, answer)


@contextmanager
def served_long(folder: Path, entries: int) -> Iterator[OnLoopback]:
    """A service whose ledger is long."""
    from service.loopback import write

    policy = write(folder)
    long_ledger(folder / "visits.ledger", entries)
    with serving(policy) as found:
        yield found
