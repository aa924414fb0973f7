"""`--reuse` and `--reservation`, of every command that releases something."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

import dither as dt

ANA = ("--analyst", "ana", "--epsilon", "0.1", "--delta", "0")
PLACES = """
[tables.places]
source = "places.parquet"
public = true
unique = ["region"]
"""
LINES = {
    "infer": ("infer", "mean(cost)", *ANA),
    "learn": ("learn", "region ~ cost", *ANA, "--model", "naive-bayes", "--out", "m.json"),
    "synth": ("synth", "visits", *ANA[:-1], "1e-7", "--out", "s.csv"),
    "hierarchy": (
        *("hierarchy", "visits", *ANA, "--levels", "land,region", "--by", "cost"),
        *("--out", "h.csv"),
    ),
    "release": ("release", "SELECT COUNT(*) AS n FROM visits", *ANA),
}


@pytest.fixture
def places(folder: Path) -> Path:
    """Regions of one land, in a public table."""
    made = {"land": ["a", "a"], "region": ["north", "south"]}
    pl.DataFrame(made).write_parquet(folder / "places.parquet")
    text = (folder / "dither.toml").read_text()
    (folder / "dither.toml").write_text(text + PLACES)
    return folder


def charges() -> int:
    """How many charges the ledger has."""
    with dt.open("dither.toml", analyst="ana") as session:
        return sum(entry.kind == "charge" for entry in session.ledger.entries())


@pytest.mark.parametrize("name", LINES)
def test_an_earlier_answer_is_reused(run, places, name: str) -> None:
    """Asked with --reuse the second time, nothing is charged; asked without, it is."""
    line = LINES[name]
    first = run(*line, "--reuse")
    assert first.exit_code == 0, first.output
    assert charges() == 1
    assert run(*line, "--reuse").exit_code == 0
    assert charges() == 1
    assert run(*line).exit_code == 0
    assert charges() == 2


@pytest.mark.parametrize("name", [*LINES, "bounds"])
def test_a_reservation_is_charged(run, places, name: str) -> None:
    """It counts down; one that nobody holds is refused, and nothing is charged."""
    line = LINES.get(name, ("bounds", "visits", "cost", *ANA))
    with dt.open("dither.toml", analyst="ana") as session:
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=2)
        kept = session.reserve("0.1", delta="2e-7" if name == "synth" else "0", until=until)
    refused = run(*line, "--reservation", "ab" * 16)
    assert refused.exit_code == 7
    assert "no open reservation has this id" in refused.output
    assert charges() == 0
    done = run(*line, "--reservation", kept.id)
    assert done.exit_code == 0, done.output
    with dt.open("dither.toml", analyst="ana") as session:
        left = session.ledger.reserved(kept.id)
    assert not left.spent.free


@pytest.mark.parametrize("name", ["infer", "learn", "synth", "hierarchy"])
def test_what_is_free_takes_neither(run, places, name: str) -> None:
    """A plan charges nothing, so that there is nothing to reuse."""
    line = [part for part in LINES[name] if part != "--out" and not part.endswith(("json", "csv"))]
    for option in (["--reuse"], ["--reservation", "ab"]):
        found = run(*line, "--explain", *option)
        assert found.exit_code == 2
        assert f"{option[0]} goes with a release" in found.output


WRITES = {
    "infer": (LINES["infer"], "--certificate"),
    "infer's picture": (LINES["infer"], "--plot"),
    "learn": (LINES["learn"][:-2], "--out"),
    "synth": (LINES["synth"][:-2], "--out"),
    "synth's model": (LINES["synth"], "--model"),
    "hierarchy": (LINES["hierarchy"][:-2], "--out"),
    "release": (LINES["release"], "--certificate"),
}
"""Commands, and the option of each that names a file to write."""


@pytest.mark.parametrize("name", WRITES)
def test_what_a_policy_rests_on_is_not_written_over(run, places, name: str) -> None:
    """Its file, its ledger and what its tables are read from, by any name; nothing is spent."""
    line, option = WRITES[name]
    (places / "data").mkdir()
    (places / "data" / "a.csv").write_text("region,n\nnorth,1\n")
    text = PLACES.replace("places", "more").replace("more.parquet", "data/*.csv")
    (places / "dither.toml").write_text((places / "dither.toml").read_text() + text)
    (places / "link.csv").symlink_to(places / "visits.parquet")
    (places / "here").symlink_to(places)
    named = ("dither.toml", "visits.ledger", "data/a.csv", "link.csv", "here/places.parquet")
    for file in (*named, "data/new.csv"):
        target = Path(file)
        if name in ("synth", "hierarchy") and target.suffix in (".toml", ".ledger"):
            continue
        if option == "--plot":
            target = places / "region.png"
            target.unlink(missing_ok=True)
            target.symlink_to(places / file)
        before = {path: path.read_bytes() for path in places.glob("**/*.parquet")}
        found = run(*line, option, str(target))
        assert found.exit_code == 2, found.output
        assert "is what the policy rests on, or lies where a table" in " ".join(
            found.output.split()
        )
        assert {path: path.read_bytes() for path in places.glob("**/*.parquet")} == before
    assert charges() == 0
