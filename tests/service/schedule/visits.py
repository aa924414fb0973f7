"""Visits of patients over days, and a policy with a budget for each day."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl

import dither
from dither.session._session import Session

__all__ = ["COUNT", "DAYS", "PER_DAY", "VISITS", "day", "opened", "policy"]

DAYS = 8
COUNT = "SELECT COUNT(*) AS n FROM visits"
FIRST = dt.date(2024, 1, 1)
VISITS = pl.DataFrame(
    [
        {"patient": p, "day": FIRST + dt.timedelta(days=d), "cost": p % 5}
        for d in range(DAYS + 2)
        for p in range(30)
        for _ in range(p % 3 + 1)
    ]
)
PER_DAY = 50
"""Rows of a day that count, at most two of each patient."""


def day(number: int) -> dt.datetime:
    """The first moment after so many days."""
    return dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=number)


def policy(folder: Path, *, unit: bool = True, ledger: Any = None, **schedules: Any) -> Any:
    """Schedules over those visits, published in a folder."""
    table: dict[str, Any] = {
        "block": {"column": "day", "every": "day"},
        "columns": {
            "day": {"bounds": ["2024-01-01", "2024-12-31"]},
            "cost": {"type": "integer", "bounds": [0, 10], "nullable": False},
        },
    }
    if unit:
        table |= {"unit": "patient", "max_groups": 1, "max_rows": 2}
    return {
        "budget": {
            "epsilon": 10,
            "per": "block",
            "lifetime": {"epsilon": 10**5},
            "ledger": ledger or str(folder / "visits.ledger"),
        },
        "tables": {"visits": table},
        "publish": {"to": str(folder / "released"), "audience": "everybody"},
        "schedule": {
            name: {"every": "day", "sql": COUNT, "epsilon": "1", "begin": "2024-01-01"} | one
            for name, one in schedules.items()
        },
    }


def opened(made: Any, visits: pl.DataFrame = VISITS) -> Session:
    """A session of a policy over them."""
    return dither.open(made, sources={"visits": visits})
