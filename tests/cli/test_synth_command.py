"""``dither synth``: rows in a file that appears whole, and what it refuses."""

from __future__ import annotations

import signal
import subprocess
import sys

import polars as pl
import pytest

from dither.ledger import Ledger

LINE = ("synth", "visits", "--analyst", "ana", "--epsilon", "0.4", "--delta", "1e-7")


def spent(folder):
    """What the ledger says was spent, by any account."""
    with Ledger.open(folder / "visits.ledger") as book:
        return [entry.charge.epsilon for entry in book.entries() if entry.charge is not None]


def test_rows_are_written_and_charged(run, folder):
    """Rows in the policy's types, a model to draw more from, a certificate to verify."""
    files = ("--out", "rows.parquet", "--model", "v.model", "--certificate", "v.json")
    found = run(*LINE, "--rows", "40", "--seed", "3", *files)
    assert found.exit_code == 0, found.output
    assert "synthetic model of visits" in found.output
    rows = pl.read_parquet(folder / "rows.parquet")
    assert rows.schema == {"region": pl.String, "cost": pl.Float64}
    assert rows.height == 40
    again = run(
        "synth", "--from", "v.model", "--rows", "40", "--seed", "3", "--out", "more.parquet"
    )
    assert again.exit_code == 0, again.output
    assert pl.read_parquet(folder / "more.parquet").equals(rows)
    assert run("verify", "v.json", "--ledger", "visits.ledger").exit_code == 0
    assert len(spent(folder)) == 1
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("name", ["rows.csv", "rows.json"])
def test_other_forms(run, folder, name):
    """As the ending says."""
    found = run(*LINE, "--method", "mst", "--rows", "5", "--out", name)
    assert found.exit_code == 0, found.output
    read = pl.read_csv if name.endswith("csv") else pl.read_json
    assert read(folder / name).shape == (5, 2)


def test_nothing_is_spent_before(run, folder):
    """Explaining and previewing."""
    explained = run(*LINE, "--explain")
    assert "discrete" in explained.output
    assert "3 rows" not in explained.output
    previewed = run(*LINE, "--preview", "--sizes", "500")
    assert "500 rows" in previewed.output
    assert not (folder / "visits.ledger").exists() or spent(folder) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (LINE, "give --out"),
        ((*LINE, "--out", "rows.txt"), "must end in"),
        ((*LINE, "--out", "nowhere/rows.csv"), "there is no folder"),
        ((*LINE, "--explain", "--out", "rows.csv"), "goes with a release"),
        ((*LINE, "--out", "rows.csv", "--columns", "nope"), "nope"),
        (("synth", "visits", "--out", "rows.csv"), "--epsilon is missing"),
        (("synth", "--epsilon", "1", "--out", "rows.csv"), "name the TABLE"),
        (("synth", "visits", "--from", "v.model", "--out", "rows.csv"), "without --from"),
        (("synth", "--from", "v.model", "--out", "rows.csv"), "no model"),
        ((*LINE, "--method", "magic", "--out", "rows.csv"), "magic"),
        ((*LINE, "--out", "rows.csv", "--given", "regoin=north"), "no column 'regoin'"),
        ((*LINE, "--out", "rows.csv", "--given", "region=nowhere"), "in none of its cells"),
        ((*LINE, "--out", "rows.csv", "--given", "region"), "write COLUMN=VALUE"),
        ((*LINE, "--out", "rows.csv", "--given", "cost=100", "--rule", "cost <= 9"), "forbid"),
        ((*LINE, "--out", "rows.csv", "--rows", str(2**40)), "--rows"),
        ((*LINE, "--model", "m", "--certificate", "./m"), "must be different files"),
    ],
)
def test_refusals_cost_nothing(run, folder, line, says):
    """By the option that is wrong, before the charge."""
    found = run(*line)
    assert found.exit_code != 0
    assert says in found.output
    assert not (folder / "rows.csv").exists()
    assert not (folder / "visits.ledger").exists() or spent(folder) == []


CUT = """
import os, signal, sys
from dither.synth.model import _plans
real = _plans.MethodRun.tell
def tell(self, stage):
    real(self, stage)
    if self.found.measured:
        os.kill(os.getpid(), signal.SIGKILL)
_plans.MethodRun.tell = tell
from dither.cli import main
main(sys.argv[1:])
"""


def test_a_run_that_is_cut_off_is_charged_and_leaves_no_file(run, folder):
    """SIGKILL in the middle: the charge stands, no part of a file is there, nothing is resumed."""
    line = [sys.executable, "-c", CUT, *LINE, "--token", "t", "--out", "rows.csv"]
    done = subprocess.run(line, cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(folder.glob("*rows.csv*"))
    assert not list(folder.glob(".rows.csv*"))
    assert len(spent(folder)) == 1
