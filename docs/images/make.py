"""Draw the pictures of the pages: ``python docs/images/make.py [ideas]``.

Those of README and tutorial are of releases, so their noise differs every time. Those of budgets
are of a ledger that is made here. The other pages' are computed: each draws its own in a hidden
block, which the tests run too.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from unittest.mock import patch

import polars as pl
from PIL import Image
from statsmodels.datasets import fair

import dither as dt
from dither.accounting import BudgetFilter
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, BlockSet
from dither.ledger import BlockBudget, Ledger, _entries
from dither.privacy import Charge, Promise

HERE = Path(__file__).parent
COLUMNS = {
    "rate_marriage": {"type": "integer", "values": [1, 2, 3, 4, 5], "nullable": False},
    "age": {"bounds": [15, 60], "nullable": False, "unit": "years"},
    "yrs_married": {"bounds": [0, 30], "step": 0.5, "nullable": False, "unit": "years"},
}


def ideas() -> None:
    """Run the pages of ideas and attacks and keep the pictures that they draw."""
    sys.path.insert(0, str(HERE.parents[1] / "tests" / "docs"))
    from test_code_blocks import run_page

    drawn_here = [
        p
        for at in ("ideas", "inference", "attacks", "local", "learn")
        for p in (HERE.parent / at).glob("*.md")
    ]
    for page in sorted([*drawn_here, HERE.parent / "anonymize.md"]):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run_page(page.read_text(), page.name, lambda *_: None)
            for drawn in Path().glob(f"{page.stem}*.png"):
                keep(drawn)


def keep(drawn: Path) -> None:
    """A picture in few colours, beside this file."""
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(128).save(HERE / drawn.name, optimize=True)


def releases() -> None:
    """Release what the pages release, and draw it."""
    survey = pl.from_pandas(fair.load_pandas().data)
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": 1, "delta": "1e-6", "ledger": f"{folder}/survey.ledger"},
            "tables": {"survey": {"columns": COLUMNS}},
        }
        with dt.open(policy, sources={"survey": survey}) as session:
            rows = session.table("survey")
            counted = {"women": dt.count(), "married": dt.mean("yrs_married")}
            whole = rows.group_by("rate_marriage").agg(**counted)
            whole.release(epsilon=0.5).plot(str(HERE / "readme.png"))
            older = rows.filter("age >= 20").group_by("rate_marriage").agg(**counted)
            older.release(epsilon=0.3).plot(str(HERE / "tutorial.png"))


def budgets() -> None:
    """A year of a ledger, by a clock that is set: over its months, and by day of the charge."""
    said = [datetime(2024, 1, 2, 9, tzinfo=UTC)]

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return said[-1]

    months, january, patient = Calendar(every="month"), 2024 * 12, Promise("patient")
    each, lifetime = BudgetFilter(1), BudgetFilter(4)
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(_entries, "datetime", Clock),
        Ledger.open(Path(folder) / "visits.ledger") as book,
    ):
        book.ensure_account("dataset:patient", BlockBudget(months, each, lifetime), patient)
        book.ensure_account("analyst:ana:patient", BudgetFilter(3), patient)
        book.ensure_account("analyst:ben:patient", BudgetFilter(2), patient)

        def ask(analyst: str, tenths: int, first: int | None, last: int) -> None:
            read = BlockSet.of_range(None if first is None else january + first, january + last)
            if first is None:
                read |= BlockSet.of_names(NULL)
            book.charge(
                ["dataset:patient", f"analyst:{analyst}:patient"],
                Charge.pure(Fraction(tenths, 20), patient),
                token=str(len(book.entries())),
                request="ab" * 32,
                note={},
                blocks=read,
            )

        for month in range(9):
            said.append(datetime(2024, month + 2, 3 + month, 9, tzinfo=UTC))
            ask("ana", 2 + month % 3, month, month)
            if month % 3 == 2:
                said.append(datetime(2024, month + 2, 20, 9, tzinfo=UTC))
                ask("ben", 4, month - 2, month)
        ask("ben", 1, None, 8)
        until = said[-1] + timedelta(days=30)
        kept = Charge.pure(Fraction(3, 10), patient)
        read = BlockSet.of_range(january + 7, january + 9)
        book.reserve(["dataset:patient"], kept, until=until, blocks=read)
        time, ledger = Path(folder) / "time.png", Path(folder) / "ledger.png"
        book.balance("dataset:patient").plot(time)
        book.plot(ledger)
        keep(time)
        keep(ledger)


if __name__ == "__main__":
    ideas()
    budgets()
    if sys.argv[1:] != ["ideas"]:
        releases()
