"""Policies and frames that the tests of this package ask about."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import polars as pl

REGIONS = ["north", "south", "east", "west"]


def visits(rows: int = 4000, units: int = 800, seed: int = 0) -> pl.DataFrame:
    """Visits of patients: simulated data, so seeded numpy is right here."""
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "pid": draw.integers(0, units, rows),
            "region": draw.choice(REGIONS, rows),
            "city": draw.choice(["alpha", "beta", "gamma"], rows),
            "age": draw.integers(0, 110, rows),
            "cost": np.round(draw.lognormal(5, 1, rows), 2),
            "smoker": draw.random(rows) < 0.3,
        }
    )


def regions() -> pl.DataFrame:
    """A public table with a key."""
    return pl.DataFrame({"region": REGIONS, "coast": [True, False, False, True]})


COLUMNS: dict[str, Any] = {
    "region": {"values": REGIONS, "nullable": False},
    "age": {"bounds": [0, 110], "nullable": False, "unit": "years", "bins": [0, 18, 65, 110]},
    "cost": {"bounds": [0, 5000], "step": 0.01, "unit": "EUR", "nullable": False},
}


def policy(folder: Any, **changes: Any) -> dict[str, Any]:
    """A policy of visits, whose units are patients; ``budget`` and ``visits`` change sections."""
    made: dict[str, Any] = {
        "budget": {"epsilon": 8, "delta": "1e-6", "ledger": str(folder / "visits.ledger")},
        "tables": {
            "visits": {
                "unit": "pid",
                "max_groups": 3,
                "max_rows": 5,
                "columns": copy.deepcopy(COLUMNS),
            },
            "regions": {"public": True, "unique": ["region"]},
        },
    }
    made["budget"] |= changes.pop("budget", {})
    made["tables"]["visits"] |= changes.pop("visits", {})
    made["tables"] |= changes.pop("tables", {})
    return made | changes


def rows_policy(folder: Any, **budget: Any) -> dict[str, Any]:
    """The same, but a row is a person."""
    made = policy(folder, budget=budget)
    for field in ("unit", "max_groups", "max_rows"):
        del made["tables"]["visits"][field]
    return made


def leaves(value, path=()):
    """Every path to a leaf of what JSON holds."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path
