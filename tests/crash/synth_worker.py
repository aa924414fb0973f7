"""The process that the crash test of syntheses starts and kills: run as a script.

It synthesizes a table under a token and saves the model; a byte on its output says that the charge
is made and measuring has begun.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import polars as pl

import dither as dt

COLUMNS = {f"c{i}": {"values": [0, 1, 2], "nullable": False} for i in range(5)}
ROWS = pl.DataFrame({name: [(i * j) % 3 for j in range(300)] for i, name in enumerate(COLUMNS)})
COST = 2


def opened(folder: Path) -> dt.Session:
    """A session whose account bears one hundred syntheses."""
    policy = {
        "budget": {"epsilon": 100 * COST, "delta": "1e-4", "ledger": str(folder / "people.ledger")},
        "tables": {"people": {"columns": COLUMNS}},
    }
    return dt.open(policy, sources={"people": ROWS})


def main(folder: Path, token: str) -> None:
    """Charge, measure, save."""

    def tell(_: Any) -> None:
        os.write(1, b".")

    with opened(folder) as session:
        question = session.table("people").synthesis(COST, "1e-6")
        model = question.release(token=token, progress=tell)
    model.save(folder / f"{token}.model")
    os.write(1, b"!")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
