"""What the owner is told of values that are lost before anything is cut: by column and file."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError

MONEY = """\
cost,region
"1,234.50",north
700,North
NA,south
,east
3,
"""


def policy(tmp_path: Path, source: str, **table) -> dict:
    columns = {
        "cost": {"type": "real", "bounds": [0, 5000]},
        "region": {"values": ["north", "south"]},
    }
    (tmp_path / "own").mkdir(exist_ok=True)
    return {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "own" / "t.ledger")},
        "tables": {"t": {"source": str(tmp_path / source), "columns": columns, **table}},
    }


def told(given: dict) -> list[dict]:
    found = dt.owner_bias(given, not_for_publication=True)
    return [row for row in found.to_dict()["rows"] if row["cut"] not in ("values", "rows")]


def test_money_with_separators_is_counted_as_what_it_is(tmp_path):
    """Two of four values cannot be read, two of four match no key; declared, all but that are."""
    (tmp_path / "t.csv").write_text(MONEY)
    unread, no_key = told(policy(tmp_path, "t.csv"))
    assert (unread["cut"], unread["of"], unread["number"]) == ("unreadable", "cost", 2)
    assert unread["share"] == 0.5
    assert (no_key["cut"], no_key["of"], no_key["number"]) == ("no key", "region", 2)
    assert no_key["share"] == 0.5
    read = told(policy(tmp_path, "t.csv", thousands=",", null_values=["NA"]))
    assert [(r["number"], r["share"]) for r in read] == [(0, 0.0), (2, 0.5)]


def test_files_are_told_apart_for_the_owner(tmp_path):
    """The total, and the files that lose something; texts of Parquet as those of CSV."""
    for form in ("csv", "parquet"):
        folder = tmp_path / form
        folder.mkdir()
        for number, cost in enumerate(("1.5", "1,234.50", "7")):
            frame = pl.DataFrame({"cost": [cost, "2"], "region": ["north", "south"]})
            getattr(frame, f"write_{form}")(folder / f"{number}.{form}")
        rows = told(policy(tmp_path, form))
        found = [(r["cut"], r["file"] and Path(r["file"]).name, r["number"]) for r in rows]
        assert found == [
            ("unreadable", None, 1),
            ("unreadable", f"1.{form}", 1),
            ("no key", None, 0),
        ], form
        assert [r["share"] for r in rows] == [1 / 6, 0.5, 0.0]
        shown = dt.owner_bias(policy(tmp_path, form), not_for_publication=True)
        assert f"1.{form}" in shown.summary()
        assert shown.frame["file"].drop_nulls().len() == 1


def test_bins_are_keys_and_lines_that_are_left_out_are_counted(tmp_path):
    """A number in no bin matches no key; a line of Latin-1 is in no count, but in this one."""
    (tmp_path / "t.csv").write_bytes(
        b"cost,region\n1,north\n99,north\n5,caf\xe9\n\n2,south\r3,south"
    )
    given = policy(tmp_path, "t.csv")
    given["tables"]["t"]["columns"]["cost"] = {"type": "integer", "bins": [0, 3, 10]}
    rows = {(r["cut"], r["of"]): (r["number"], r["share"]) for r in told(given)}
    assert rows["no key", "cost"] == (1, 0.25)
    assert rows["lines", "not UTF-8, or too long"] == (1, 0.2)


def test_files_that_differ_are_named_to_the_owner_alone(tmp_path):
    """The file and the column, under the warning; whoever opens the policy hears of no file."""
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(5):
        frame = pl.DataFrame({"cost": [1.0], "region": ["north"]})
        frame = frame.rename({"cost": "costs"}) if number == 3 else frame
        frame = frame.with_columns(pl.col("region").cast(pl.Binary)) if number == 2 else frame
        frame.write_parquet(folder / f"secret-{number}.parquet")
    given = policy(tmp_path, "many")
    for asked in (lambda: dt.open(given), lambda: dt.owner_bias(given)):
        with pytest.raises(dt.errors.DitherError) as refused:
            asked()
        assert "secret" not in str(refused.value)
        assert "costs" not in str(refused.value)
    with pytest.raises(PolicyError) as named:
        dt.owner_bias(given, not_for_publication=True)
    text = str(named.value)
    assert text.count("NOT FOR PUBLICATION") == 2
    assert "secret-3.parquet: column 'cost' is missing" in text
    assert "secret-3.parquet: column 'costs' is there" in text
    assert "secret-2.parquet: column 'region' is BLOB" in text
    assert "secret-0" not in text


def test_every_output_is_marked(tmp_path):
    """As text, as data and in a notebook, files among them."""
    (tmp_path / "t.csv").write_text(MONEY)
    found = dt.owner_bias(policy(tmp_path, "t.csv"), not_for_publication=True)
    for text in (found.summary(), found._repr_html_(), json.dumps(found.to_dict())):
        assert "NOT FOR PUBLICATION" in text
        assert "unreadable" in text
