"""The command dummy: a file of rows that nobody has, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from cli.conftest import Run
from dither.ledger import Ledger
from dither.policy.dummies import NOTICE


def test_rows_are_written(run: Run, folder: Path) -> None:
    """As many as were asked for, marked, the same under one seed; the ledger is charged nothing."""
    told = run(
        *("dummy", "dither.toml", "visits", "--rows", "50", "--seed", "3"),
        *("--out", "visits.dummy.parquet", "--analyst", "ana"),
    )
    assert told.exit_code == 0, told.output
    assert NOTICE in told.output
    frame = pl.read_parquet(folder / "visits.dummy.parquet")
    assert pl.read_parquet_metadata(folder / "visits.dummy.parquet")["dither"] == NOTICE
    assert frame.height == 50
    assert set(frame["region"]) == {"north", "south"}
    again = run(
        *("dummy", "dither.toml", "visits", "--rows", "50", "--seed", "3"),
        *("--out", "visits.dummy.csv", "--analyst", "ana"),
    )
    assert again.exit_code == 0
    assert pl.read_csv(folder / "visits.dummy.csv").equals(frame)
    with Ledger.open(folder / "visits.ledger") as book:
        assert [entry.kind for entry in book.entries()] == ["genesis"]


def test_refusals(run: Run, folder: Path) -> None:
    """Before anything is written: an unmarked name, a table that is not there, a folder."""
    for arguments, code, word in (
        (("visits", "--out", "visits.csv"), 4, "dummy"),
        (("visit", "--out", "v.parquet"), 4, "visits"),
        (("visits", "--out", "nowhere/v.parquet"), 2, "folder"),
        (("visits", "--rows", "0", "--out", "v.parquet"), 4, "rows"),
    ):
        told = run("dummy", "dither.toml", *arguments, "--analyst", "ana")
        assert (told.exit_code, word in told.output) == (code, True), told.output
    assert {p.name for p in folder.iterdir()} <= {
        "dither.toml",
        "visits.parquet",
        "visits.ledger",
    }
