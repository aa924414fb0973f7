"""Sessions over one protected table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

import dither as dt


def session_over(
    frame: pl.DataFrame,
    folder: Path,
    *,
    columns: Mapping[str, Any],
    unit: bool = False,
    neighbours: str | None = None,
    epsilon: int = 10**6,
    **table: Any,
) -> dt.Session:
    """A session over ``visits``: of rows, or of people who have up to four of them."""
    if unit:
        table = {"unit": "pid", "max_rows": 4, "max_groups": 2} | table
    budget = {"epsilon": epsilon, "delta": "1e-3", "ledger": str(folder / "v.ledger")}
    if neighbours:
        budget["neighbours"] = neighbours
    made = {"budget": budget, "tables": {"visits": {"columns": columns} | table}}
    return dt.open(made, sources={"visits": frame})
