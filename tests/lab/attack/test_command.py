"""The commands ``dither attack census`` and ``dither attack subset-sums``."""

from __future__ import annotations

import itertools
import math
import os
import signal
import sys
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dither.cli import main
from dither.lab.attack.reconstruction import _solver

TOWN = """\
attributes = { age = [0, 9], sex = ["f", "m"] }

[[statistics]]
name = "all"
count = 3
mean = { age = 4 }

[[statistics]]
name = "women"
where = { sex = "f" }
count = 2
median = { age = 5 }
"""


def run(*arguments: str) -> Result:
    """Run a command line."""
    return CliRunner().invoke(main, ["attack", *arguments])


def test_census_shows_both_solutions() -> None:
    """As printed the block has two solutions; what differs and what would settle it is told."""
    shown = run("census")
    assert shown.exit_code == 0
    assert "2 databases agree" in shown.output
    assert shown.output.count("differs") == 2
    assert "status = married" in shown.output
    assert "1 database agrees" in run("census", "--note").output


def test_census_tells_what_rows_are_worth() -> None:
    """Each row is left out in turn."""
    lines = run("census", "--note", "--rows").output.splitlines()
    worth = {line.split()[0]: line.split()[1] for line in lines if line.startswith(("3B", "1A"))}
    assert worth == {"3B": "22", "1A": "1"}


def test_census_of_a_file(tmp_path: Path) -> None:
    """Another table is attacked just so, and drawn."""
    (tmp_path / "town.toml").write_text(TOWN)
    shown = run("census", str(tmp_path / "town.toml"), "--plot", str(tmp_path / "town.png"))
    assert shown.exit_code == 0
    assert "databases agree" in shown.output
    assert (tmp_path / "town.png").exists()
    (tmp_path / "town.toml").write_text(TOWN.replace("count = 2", "count = 4"))
    shown = run("census", str(tmp_path / "town.toml"))
    assert shown.exit_code == 0
    assert "No database agrees" in shown.output
    assert "contradict each other" in shown.output


def test_private_census_says_its_margins() -> None:
    """Fourteen counts share half of ε, seven sums of ages the other half; margins hold together
    95 % of the time, by the tail of discrete Laplace noise."""
    shown = run("census", "--note", "--private", "1")
    row = next(x for x in shown.output.splitlines() if "±" in x).split()
    far = math.log(2 * 21 / 0.05)
    counts, sums = (math.ceil(far * 2 * moved) - 1 for moved in (14, 7 * 125))
    assert row[:3] == ["1", f"±{counts:,}", f"±{sums:,}"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("census", "nowhere.toml"), "No such file"),
        (("census", "--limit", "0"), "--limit"),
        (("census", "--seconds", "-1"), "seconds must be"),
        (("subset-sums", "--noise", "gausian:3"), "did you mean 'gaussian'"),
        (("subset-sums", "--noise", "gaussian"), "such as gaussian:0.2"),
        (("subset-sums", "--plot", "x.txt"), "must end in"),
        (("subset-sums", "--epsilon", "0"), "above 0"),
    ],
)
def test_refusals_say_what_would_do(arguments: tuple[str, ...], said: str) -> None:
    """A wrong command line is refused in one paragraph."""
    shown = run(*arguments)
    assert shown.exit_code in (2, 4)
    assert said in shown.output


def test_subset_sums_side_by_side(tmp_path: Path) -> None:
    """Exact and noisy answers give people away, a private release does not."""
    shown = run(
        "subset-sums", "--people", "60", "--runs", "3", "--noise", "exact", "--noise",
        "corrupted:0.1", "--epsilon", "1", "--plot", str(tmp_path / "sums.png"),
    )  # fmt: skip
    assert shown.exit_code == 0
    rows = [x for x in shown.output.splitlines() if x.endswith(("consistent", "consistent "))]
    assert len(rows) == 3
    assert "100 %" in rows[0]
    assert "all" in rows[0]
    assert "private, ε = 1" in rows[2]
    told = " ".join(shown.output.split())
    assert "Least squares in a box against exact answers; least deviations against 10 %" in told
    assert (tmp_path / "sums.png").exists()


def test_midpoints_are_searched_exhaustively() -> None:
    """With midpoints all subsets are asked, and the theorem's promise is shown."""
    shown = run("subset-sums", "--people", "8", "--noise", "midpoint:0.5")
    assert "Exhaustive search" in shown.output
    assert "≥ 75.0 %" in shown.output


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.usefixtures("hears_interrupts")
def test_ctrl_c_keeps_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted, a long search says how many databases it had found."""
    looked = itertools.count(1)

    def wait_and_interrupt(*searches: Any, timeout: float) -> Any:
        if next(looked) == 3:  # a second into the search, however long it took to begin
            os.kill(os.getpid(), signal.SIGINT)
        return wait(*searches, timeout=timeout)

    monkeypatch.setattr(_solver, "wait", wait_and_interrupt)
    (tmp_path / "wide.toml").write_text(
        'people = 12\n[attributes]\nage = [0, 99]\n[[statistics]]\nname = "all"\n'
        "sum = { age = [300, 700] }\n"
    )
    shown = run("census", str(tmp_path / "wide.toml"), "--limit", "100000000", "--seconds", "120")
    assert shown.exit_code == 0
    assert "At least" in shown.output
    assert "it was stopped" in shown.output.replace("\n", " ")
