"""A small folder in which commands can be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from dither.cli import main

POLICY = """\
[budget]
epsilon = 1
delta = 1e-6
ledger = "visits.ledger"

[analysts.ana]
epsilon = 0.5

[tables.visits]
source = "visits.parquet"

[tables.visits.columns]
region = { values = ["north", "south"], nullable = false }
cost = { bounds = [0, 100], step = 1, nullable = false, unit = "EUR" }
"""

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a policy and its data, and no ledger yet."""
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"region": ["north", "south"] * 150, "cost": [20.0, 60.0] * 150})
    frame.write_parquet(tmp_path / "visits.parquet")
    (tmp_path / "dither.toml").write_text(POLICY)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Run:
    """Run a command line in the folder."""

    def run(*arguments: str, **options: str) -> Result:
        return CliRunner().invoke(main, list(arguments), **options)  # type: ignore[arg-type]

    return run
