"""People of regions and counties, and a policy over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

__all__ = ["PEOPLE", "PLACES", "policy"]

PEOPLE = pl.DataFrame(
    {
        "region": ["north", "south", "north", "south", "east"] * 120,
        "age": [i % 100 for i in range(600)],
        "ill": [(i // 3) % 2 for i in range(600)],
        "county": [["a", "b", "c"][i % 3] for i in range(600)],
    }
)
PLACES = pl.DataFrame({"county": ["a", "b", "c"], "state": ["x", "x", "y"]})


def policy(folder: Path, **more: Any) -> dict[str, Any]:
    """People of regions and counties."""
    return {
        "budget": {"epsilon": 10**4, "delta": 1e-3, "ledger": str(folder / "people.ledger")},
        "tables": {
            "people": {
                "columns": {
                    "region": {"values": ["north", "south", "east"], "nullable": False},
                    "age": {"type": "integer", "bounds": [0, 100], "bins": [0, 20, 50, 101]},
                    "ill": {"type": "integer", "values": [0, 1], "nullable": False},
                    "county": {"values": ["a", "b", "c"], "nullable": False},
                }
            },
            "places": {"public": True, "unique": ["county"]},
        },
        "publish": {"to": str(folder / "released"), "audience": "everybody"},
        **more,
    }
