"""The commands bounds, check and owner: what they print, and their exit codes."""

from __future__ import annotations

import json

import polars as pl
import pytest
from click.testing import CliRunner

from dither.cli import main

POLICY = """
[budget]
epsilon = 100
ledger = "t.ledger"

[tables.t]
source = "t.parquet"

[tables.t.columns]
x = { bounds = "learned" }
g = { values = ["a", "A"] }
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A command in a folder with a policy and its table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dither.toml").write_text(POLICY)
    frame = pl.DataFrame({"x": [5.0] * 200, "g": ["a"] * 200})
    frame.write_parquet(tmp_path / "t.parquet")

    def command(*arguments):
        return CliRunner().invoke(main, list(arguments))

    return command


def test_bounds_are_learned_and_printed(run):
    """For people, and as JSON with the certificate; under one token it is charged once."""
    told = run("bounds", "t", "x", "--epsilon", "10", "--token", "a")
    assert told.exit_code == 0
    assert told.output.startswith("bounds of x: [3, 5]")
    body = json.loads(run("bounds", "t", "x", "--epsilon", "10", "--token", "a", "--json").output)
    assert (body["learned"]["lower"], body["learned"]["upper"]) == ("3", "5")
    assert body["certificate"]["loss"]["epsilon"] == "10"
    refused = run("bounds", "t", "y", "--epsilon", "1")
    assert refused.exit_code == 4
    assert "unknown column" in refused.output


def test_check_says_by_its_exit_code_whether_a_policy_opens(run, tmp_path):
    """0 with warnings, 1 where they are to fail, and 1 where there is an error."""
    assert run("check").exit_code == 0
    assert run("check", "--strict").exit_code == 1
    assert json.loads(run("check", "--json").output)["ok"] is True
    (tmp_path / "dither.toml").write_text(POLICY.replace("g =", "gg ="))
    failed = run("check")
    assert failed.exit_code == 1
    assert "no such column" in failed.output
    assert not (tmp_path / "t.ledger").exists()


def test_the_owner_must_say_that_nothing_is_published(run, tmp_path):
    """And every output says it again."""
    assert run("owner", "bias").exit_code == 2
    told = run("owner", "bias", "--not-for-publication")
    assert told.exit_code == 0
    assert told.output.startswith("NOT FOR PUBLICATION")
    body = json.loads(run("owner", "bias", "--not-for-publication", "--json").output)
    assert "not_for_publication" in body
    assert run("owner", "bias", "--not-for-publication", "--out", "bias.json").exit_code == 4
    assert not (tmp_path / "bias.json").exists()
