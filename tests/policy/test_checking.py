"""Checking a policy without a row, and what its owner may see: findings, refusals, warnings."""

from __future__ import annotations

import json

import duckdb
import polars as pl
import pytest

import dither as dt
from dither.engines.duckdb import DuckDBEngine
from dither.errors import ArgumentError


def policy(folder, columns, **table):
    """A policy over one table ``t``."""
    (folder / "own").mkdir(exist_ok=True)
    return {
        "budget": {"epsilon": 1, "delta": "1e-6", "ledger": str(folder / "own" / "t.ledger")},
        "tables": {"t": {"columns": columns, **table}},
    }


ROWS = pl.DataFrame({"u": [1, 1, 1, 2], "g": ["a", "a", "b", "a"], "x": [1.0, 5.0, 50.0, -9.0]})


def test_declared_values_are_held_against_the_labels_of_a_type(tmp_path):
    """An enumeration lists its values; what is declared beside them cannot occur."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute("CREATE TYPE sides AS ENUM ('north', 'o''hare', 'a, b')")
        made.execute("CREATE TABLE t (u INT, g sides)")
    source = {"duckdb": str(tmp_path / "t.duckdb"), "table": "t"}
    declared = policy(tmp_path, {"g": {"values": ["North", "o'hare"]}}, source=source)
    found = [(f.level, f.text) for f in dt.check(declared).findings if "label" in f.text]
    assert found == [
        ("warning", "'North' is not among the labels of its type; did you mean 'north'?")
    ]
    (note,) = [f.text for f in dt.check(declared).findings if "also has" in f.text]
    assert note == "its type also has 'north', 'a, b'; rows of these are in no group"


CASES = {
    "a column that is not there": ({"xx": {}}, "error", "no such column"),
    "bounds of another kind": ({"g": {"bounds": [0, 1]}}, "error", "bounds do not fit"),
    "values of another kind": ({"g": {"values": [1, 2]}}, "error", "must all be of kind text"),
    "another case": ({"g": {"values": ["a", "A"]}}, "warning", "'a' and 'A' differ in case"),
    "blanks": ({"g": {"values": ["a ", "b"]}}, "warning", "begins or ends with a blank"),
    "an accent": ({"g": {"values": ["Zürich", "Zurich"]}}, "warning", "accents"),
    "leading zeros": ({"g": {"values": ["07", "7"]}}, "warning", "leading zeros"),
    "no bounds": ({"x": {}}, "note", 'bounds = "learned"'),
    "no values": ({"g": {}}, "note", "at a cost in delta"),
    "to be learned": ({"x": {"bounds": "learned"}}, "note", "once somebody has paid"),
    "text as numbers": ({"g": {"type": "integer", "bounds": [0, 1]}}, "note", "is NULL"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_finding_names_its_field(tmp_path, case):
    """With its level and what to look at."""
    columns, level, words = CASES[case]
    found = dt.check(policy(tmp_path, columns), sources={"t": ROWS})
    hits = [f for f in found.findings if f.level == level and words in f.text]
    assert hits
    assert hits[0].where.startswith(f"tables.t.columns.{next(iter(columns))}")
    assert found.ok is (level != "error")


def test_all_is_found_at_once_and_no_row_is_read(tmp_path, monkeypatch):
    """Two tables that are wrong in two ways each; the engine runs nothing, no ledger is begun."""
    for name in ("run", "_execute", "public_values"):
        monkeypatch.setattr(DuckDBEngine, name, lambda *_, **__: pytest.fail("a row was read"))
    given = policy(tmp_path, {"x1": {}, "g": {"values": ["a", "A"]}}, unit="u", max_groups=1,
                   max_rows=1)  # fmt: skip
    given["tables"]["p"] = {"public": True, "unique": ["k"], "columns": {"nothing": {}}}
    found = dt.check(given, sources={"t": ROWS, "p": pl.DataFrame({"k": [1, 1]}), "q": ROWS})
    assert [f.where for f in found.findings if f.level == "error"] == [
        "sources",
        "tables.t.columns.x1",
        "tables.p.columns.nothing",
    ]
    assert not found.ok
    assert found.frame.height == len(found.findings)
    assert found.to_dict()["ok"] is False
    assert "no row was read" in found.summary()
    assert "no row was read" in found._repr_html_()
    assert list((tmp_path / "own").iterdir()) == []


def test_a_policy_that_cannot_be_read_is_one_finding(tmp_path):
    """The sentence that opening it would give; so is a table without a source."""
    found = dt.check({"budget": {}})
    assert [f.level for f in found.findings] == ["error"]
    missing = policy(tmp_path, {}) | {}
    missing["tables"]["t"]["source"] = str(tmp_path / "none.parquet")
    assert "no file" in dt.check(missing).findings[0].text


def test_what_opens_checks_and_what_checks_opens(tmp_path):
    """A policy without errors is one that opens."""
    good = policy(tmp_path, {"x": {"bounds": [0, 10]}}, unit="u", max_groups=1, max_rows=1)
    assert dt.check(good, sources={"t": ROWS}).ok
    dt.open(good, sources={"t": ROWS}).close()
    bad = policy(tmp_path, {}, unit="x", max_groups=1, max_rows=1)
    bad["tables"]["t"]["columns"] = {"x": {"type": "integer"}}
    assert not dt.check(bad, sources={"t": ROWS}).ok
    with pytest.raises(dt.errors.PolicyError):
        dt.open(bad, sources={"t": ROWS})


# --- the owner ------------------------------------------------------------------------------------


@pytest.fixture
def biased(tmp_path):
    """Bounds that cut two values of four, and limits that cut one row of four."""
    columns = {"x": {"bounds": [0, 10]}, "g": {"values": ["a", "b"]}}
    given = policy(tmp_path, columns, unit="u", max_groups=1, max_rows=2)
    return dt.owner_bias(given, not_for_publication=True, sources={"t": ROWS}), tmp_path


def test_the_owner_sees_exactly_what_is_cut(biased):
    """Values of each side, how far the mean moves, rows beyond the limits."""
    no_key, values, rows, by = biased[0].frame.rows(named=True)
    assert (no_key["cut"], no_key["of"], no_key["number"]) == ("no key", "g", 0)
    assert (values["of"], values["below"], values["above"]) == ("x", 0.25, 0.25)
    # 50 becomes 10 and -9 becomes 0: (-40 + 9)/4.
    assert values["moved"] == pytest.approx(-31 / 4)
    assert (rows["of"], rows["share"]) == ("all rows", 0.25)
    # One of the first unit's groups is left out, with one row or two.
    assert by["of"] == "by g"
    assert by["share"] in (0.25, 0.5)


def test_it_says_on_every_output_that_nothing_is_to_be_published(biased):
    """As text, in a notebook, as data and in a file."""
    found, folder = biased
    for text in (found.summary(), found._repr_html_(), json.dumps(found.to_dict())):
        assert "NOT FOR PUBLICATION" in text
    (folder / "mine").mkdir()
    saved = found.save(folder / "mine" / "bias.json")
    assert "NOT FOR PUBLICATION" in json.loads(saved.read_text())["not_for_publication"]
    with pytest.raises(ArgumentError, match="exists"):
        found.save(saved)


def test_it_is_not_written_beside_what_is_published(biased, tmp_path):
    """The ledger's folder, and one that holds a certificate."""
    found, folder = biased
    with pytest.raises(ArgumentError, match="not for publication"):
        found.save(folder / "own" / "bias.json")
    published = tmp_path / "published"
    published.mkdir()
    (published / "n.cert.json").write_text('{"digest": "", "ledger": {}}')
    with pytest.raises(ArgumentError, match="not for publication"):
        found.save(published / "bias.json")


def test_it_must_be_confirmed_and_begins_no_ledger(tmp_path):
    """Without the word nothing is read; with it nothing is charged or written."""
    given = policy(tmp_path, {"x": {"bounds": [0, 10]}})
    with pytest.raises(ArgumentError, match="not_for_publication"):
        dt.owner_bias(given, sources={"t": ROWS})
    dt.owner_bias(given, not_for_publication=True, sources={"t": ROWS})
    assert list((tmp_path / "own").iterdir()) == []
