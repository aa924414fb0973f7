"""``dither hierarchy``: counts that add up in a file, and what it refuses."""

from __future__ import annotations

import polars as pl
import pytest

from dither.ledger import Ledger

PUBLIC = """
[tables.places]
source = "places.parquet"
public = true
unique = ["region"]
"""
ASKED = ("hierarchy", "visits", "--analyst", "ana", "--levels", "land,region")
LINE = (*ASKED, "--epsilon", "0.25", "--delta", "0")


@pytest.fixture
def places(folder):
    """Regions of one land, in a public table."""
    made = {"land": ["a", "a"], "region": ["north", "south"], "people": [150, 150]}
    pl.DataFrame(made).write_parquet(folder / "places.parquet")
    with (folder / "dither.toml").open("a") as policy:
        policy.write(PUBLIC)
    return folder


def spent(folder):
    """What the ledger says was spent, by any account."""
    with Ledger.open(folder / "visits.ledger") as book:
        return [entry.charge.epsilon for entry in book.entries() if entry.charge is not None]


def test_counts_are_written_and_charged_once(run, places):
    """The last level, another one by a token for nothing, and a certificate that verifies."""
    again = ("--token", "once")
    found = run(*LINE, "--by", "cost", *again, "--out", "c.parquet", "--certificate", "c.json")
    assert found.exit_code == 0, found.output
    counts = pl.read_parquet(places / "c.parquet")
    assert counts.columns[:4] == ["land", "region", "cost", "count"]
    found = run(*LINE, "--by", "cost", *again, "--level", "land", "--out", "land.csv")
    assert found.exit_code == 0, found.output
    assert pl.read_csv(places / "land.csv")["count"].sum() == counts["count"].sum()
    assert len(spent(places)) == 1
    assert run("verify", "c.json", "--ledger", "visits.ledger").exit_code == 0


def test_nothing_is_spent_before(run, places):
    """Explaining and previewing."""
    assert "2 levels of places" in run(*LINE, "--explain").output
    assert "Nothing is spent" in run(*LINE, "--preview").output
    assert not (places / "visits.ledger").exists() or spent(places) == []


def test_public_numbers_are_taken_as_they_are(run, places):
    """Exact in the file, and said to be unprotected."""
    found = run(*LINE, "--public", "region=people", "--out", "c.csv")
    assert found.exit_code == 0, found.output
    assert pl.read_csv(places / "c.csv")["count"].to_list() == [150, 150]
    assert "not protected" in " ".join(found.output.split())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ((), "--out"),
        (("--level", "town", "--out", "c.csv"), "--level must be one of"),
        (("--public", "region", "--out", "c.csv"), "such as state=population"),
        (("--explain", "--preview"), "not both"),
        (("--explain", "--token", "x"), "--token"),
        (("--out", "c.txt"), "must end in"),
    ],
)
def test_what_cannot_be_asked_is_refused(run, places, more, says):
    """Before anything is spent."""
    found = run(*LINE, *more)
    assert found.exit_code == 2
    assert says in found.output
    assert not (places / "visits.ledger").exists() or spent(places) == []
