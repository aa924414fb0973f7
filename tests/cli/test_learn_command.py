"""``dither learn``: a model in a file that appears whole, what it predicts, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import polars as pl
import pytest

from dither import learn
from dither.ledger import Ledger

LINE = ("learn", "region ~ cost", "--analyst", "ana", "--epsilon", "0.4", "--delta", "1e-7")


def spent(folder):
    """What the ledger says was spent, by any account."""
    if not (folder / "visits.ledger").exists():
        return []
    with Ledger.open(folder / "visits.ledger") as book:
        return [entry.charge.epsilon for entry in book.entries() if entry.charge is not None]


def test_a_model_is_kept_and_predicts(run, folder):
    """Charged once; a file, a picture and a certificate; predictions free, of CSV and Parquet."""
    files = ("--out", "m.json", "--plot", "m.png", "--certificate", "c.json", "--token", "one")
    found = run(*LINE, *files)
    assert found.exit_code == 0, found.output
    assert "additive model of visits: region ~ cost" in found.output
    assert (folder / "m.png").stat().st_size > 1000
    assert run("verify", "c.json", "--ledger", "visits.ledger").exit_code == 0
    again = run(*LINE, "--out", "again.json", "--token", "one")
    assert "nothing is charged now" in again.output
    assert (folder / "m.json").read_text() == (folder / "again.json").read_text()
    assert len(spent(folder)) == 1
    (folder / "new.csv").write_text("cost,who\n20,a\n60,b\n,c\n")
    for name in ("told.csv", "told.parquet"):
        said = run("learn", "--from", "m.json", "--predict", "new.csv", "--out", name)
        assert said.exit_code == 0, said.output
    told = pl.read_parquet(folder / "told.parquet")
    assert told.columns == [
        "cost", "who", "region_predicted", "region_chance_of_north", "region_chance_of_south",
    ]  # fmt: skip
    assert told["who"].to_list() == ["a", "b", "c"]
    assert set(told["region_predicted"]) <= {"north", "south"}
    assert run("learn", "--from", "m.json").output == learn.load(folder / "m.json").summary() + "\n"
    assert len(spent(folder)) == 1


@pytest.mark.heavy("test_a_model_is_kept_and_predicts")
def test_other_models(run, folder):
    """A regression of a number, by curves, trees and by formula; classes by laws and trees."""
    for kind, formula in (
        ("additive", "cost ~ region"),
        ("forest", "cost ~ region"),
        ("naive-bayes", "region ~ cost"),
        ("linear", "cost ~ C(region)"),
    ):
        line = ("learn", formula, "--model", kind, "--analyst", "ana", "--epsilon", "0.1")
        more = ("--trees", "2", "--depth", "2") if kind == "forest" else ()
        found = run(*line, *more, "--delta", "1e-7", "--out", f"{kind}.json")
        assert found.exit_code == 0, found.output
        model = json.loads((folder / f"{kind}.json").read_text())["model"]
        assert model["kind"] == kind.replace("-", "_")
        again = run("learn", "--from", f"{kind}.json", "--plot", f"{kind}.png")
        assert again.exit_code == 0, again.output


def test_nothing_is_spent_before(run, folder):
    """Explaining and previewing, of each model."""
    for kind, formula in (
        ("additive", "region ~ cost"),
        ("forest", "region ~ cost"),
        ("naive-bayes", "region ~ cost"),
        ("linear", "cost ~ C(region)"),
    ):
        line = ("learn", formula, "--model", kind, *LINE[2:])
        assert "protects one row of visits" in run(*line, "--explain").output
        assert "500" in run(*line, "--preview", "--sizes", "500").output
    assert spent(folder) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (LINE, "give --out"),
        ((*LINE, "--out", "nowhere/m.json"), "there is no folder"),
        ((*LINE, "--explain", "--out", "m.json"), "goes with a release"),
        ((*LINE, "--explain", "--preview"), "not both"),
        (("learn", "region ~ nope", *LINE[2:], "--out", "m.json"), "nope"),
        (("learn", "region", *LINE[2:], "--out", "m.json"), "formula"),
        (("learn", "region ~ cost", "--out", "m.json"), "--epsilon is missing"),
        (("learn", "--epsilon", "1", "--out", "m.json"), "give a FORMULA"),
        ((*LINE, "--table", "nope", "--out", "m.json"), "nope"),
        ((*LINE, "--model", "magic", "--out", "m.json"), "magic"),
        ((*LINE, "--model", "logistic", "--rounds", "3", "--out", "m.json"), "--model additive"),
        ((*LINE, "--trees", "3", "--out", "m.json"), "--model forest"),
        ((*LINE, "--model", "naive-bayes", "--depth", "3", "--out", "m.json"), "--model forest"),
        ((*LINE, "--model", "forest", "--trees", "0", "--out", "m.json"), "--trees"),
        (
            ("learn", "cost ~ region", "--model", "naive-bayes", *LINE[2:], "--out", "m.json"),
            "cost is a number",
        ),
        ((*LINE, "--predict", "new.csv", "--out", "m.csv"), "goes with --from"),
        (("learn", "--from", "m.json", "--predict", "new.csv"), "go together"),
        (("learn", "--from", "m.json", "--out", "new.csv"), "go together"),
        (("learn", "--from", "m.json", "--predict", "n.csv", "--out", "m.txt"), "must end in"),
        (("learn", "region ~ cost", "--from", "m.json"), "without --from"),
        (("learn", "--from", "m.json"), "no model at"),
        ((*LINE, "--epsilon", "2", "--out", "m.json"), "fits with epsilon"),
    ],
)
def test_refusals_cost_nothing(run, folder, line, says):
    """By the option that is wrong, before the charge."""
    found = run(*line)
    assert found.exit_code != 0
    assert says in found.output
    assert not (folder / "m.json").exists()
    assert spent(folder) == []


def test_rows_that_do_not_fit_are_refused(run, folder):
    """A column that is missing, one that is there already, no table, a file that was changed."""
    assert run(*LINE, "--out", "m.json").exit_code == 0
    line = ("learn", "--from", "m.json", "--predict", "new.csv", "--out", "told.csv")
    for body, says in (
        ("price\n1\n", "no column 'cost'"),
        ("cost,region_predicted\n1,2\n", "already"),
    ):
        (folder / "new.csv").write_text(body)
        found = run(*line)
        assert found.exit_code != 0
        assert says in found.output
    (folder / "m.json").write_text((folder / "m.json").read_text().replace("north", "nowhere"))
    assert "is damaged" in run(*line).output
    assert not (folder / "told.csv").exists()


CUT = """
import os, signal, sys
from dither.learn.tabular._boosting import Boosting
def run(self, *given):
    os.kill(os.getpid(), signal.SIGKILL)
Boosting.run = run
from dither.cli import main
main(sys.argv[1:])
"""


def test_a_run_that_is_cut_off_is_charged_and_leaves_no_file(run, folder):
    """SIGKILL in the middle: the charge stands, no part of a file is there."""
    line = [sys.executable, "-c", CUT, *LINE, "--out", "m.json"]
    done = subprocess.run(line, cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(folder.glob("*m.json*"))
    assert not list(folder.glob(".m.json*"))
    assert len(spent(folder)) == 1
