"""Drafts open as they stand, whatever the columns are called, and tell nothing of the data."""

from __future__ import annotations

import tomllib

import duckdb
import polars as pl
import pytest

import dither
from dither.errors import PolicyError
from dither.policy._drafting import draft_policy

ODD = [
    "plain",
    "with space",
    "dot.ted",
    'quo"te',
    "apo'strophe",
    "back\\slash",
    "new\nline",
    "tab\there",
    "umlaut ü",
    "emoji 🙂",
    "del \x7f",
    "c1 \x85",
    "1digit",
    "-dash-",
    "#hash",
    "[bracket]",
    "a = b",
    "SELECT",
    " ",
]


def test_odd_names_open(tmp_path, monkeypatch):
    """Quotes, dots, spaces, control characters and other scripts in column names."""
    frame = pl.DataFrame({name: [1, 2] for name in ODD})
    monkeypatch.chdir(tmp_path)
    frame.write_parquet("odd.parquet")
    (tmp_path / "p.toml").write_text(draft_policy("odd.parquet"), encoding="utf-8")
    with dither.open("p.toml") as session:
        assert list(session.tables["odd"].columns) == ODD


@pytest.mark.parametrize("unit", ODD)
def test_an_odd_unit_opens(tmp_path, unit):
    """The unit's name is quoted as TOML quotes it."""
    path = tmp_path / "odd.parquet"
    pl.DataFrame({name: [1, 2] for name in ODD}).write_parquet(path)
    text = draft_policy(path, table="t", unit=unit)
    assert tomllib.loads(text)["tables"]["t"]["unit"] == unit


def test_very_many_columns(tmp_path):
    """Two thousand columns are two thousand lines."""
    path = tmp_path / "wide.parquet"
    pl.DataFrame({f"c{i}": [0.5] for i in range(2000)}).write_parquet(path)
    assert len(tomllib.loads(draft_policy(path))["tables"]["wide"]["columns"]) == 2000


def test_no_value_is_shown(tmp_path):
    """The draft is the same for two files of one schema."""
    texts = []
    for values in ([1, 2, 3], [999_983]):
        path = tmp_path / "v.parquet"
        pl.DataFrame({"a": values, "b": [str(v) for v in values]}).write_parquet(path)
        texts.append(draft_policy(path))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("my visits-2024.parquet", "my_visits_2024"),
        ("2024.parquet", "table_2024"),
        ("données.parquet", "données"),
        ("---.parquet", "data"),
    ],
)
def test_the_table_is_named_after_the_file(tmp_path, name, table):
    """In a form that needs no quotes in a query."""
    path = tmp_path / name
    pl.DataFrame({"a": [1]}).write_parquet(path)
    made = tmp_path / "p.toml"
    made.write_text(draft_policy(path), encoding="utf-8")
    with dither.open(made) as session:
        assert session.sql(f"SELECT COUNT(*) AS n FROM {table}").release(1).frame.height == 1


def test_types_that_are_not_read_are_left_out(tmp_path):
    """A list column is named in a comment alone."""
    path = tmp_path / "v.parquet"
    pl.DataFrame({"a": [1], "b": [[1, 2]]}).write_parquet(path)
    text = draft_policy(path)
    assert "# b: not read; store it as text, numbers or dates" in text
    assert set(tomllib.loads(text)["tables"]["v"]["columns"]) == {"a"}


def test_a_csv_draft_says_that_types_are_needed(tmp_path):
    """All columns of a CSV file are text until the policy says otherwise."""
    path = tmp_path / "v.csv"
    path.write_text("age,city\n30,alpha\n")
    text = draft_policy(path)
    assert 'type = "integer"' in text
    (tmp_path / "p.toml").write_text(
        text.replace("age = {}", 'age = { type = "integer", bounds = [0, 110] }')
    )
    with dither.open(tmp_path / "p.toml") as session:
        assert session.sql("SELECT AVG(age) AS a FROM v").release(1).frame.height == 1


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_csv_cut_at_another_character(tmp_path, delimiter):
    """The header tells the delimiter; the draft declares it, and opens."""
    path = tmp_path / "v.csv"
    path.write_text(f"pid{delimiter}age\n7{delimiter}30\n")
    (tmp_path / "p.toml").write_text(draft_policy(path, unit="pid"))
    with dither.open(tmp_path / "p.toml") as session:
        assert set(session.tables["v"].columns) == {"age", "pid"}


def test_a_delimiter_is_for_csv_files(tmp_path):
    """A Parquet file has none."""
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "v.parquet")
    text = draft_policy(tmp_path / "v.parquet").replace("source =", 'delimiter = ";"\nsource =')
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(PolicyError, match=r"tables\.v\.delimiter is for CSV files"):
        dither.open(tmp_path / "p.toml")


def test_a_database_needs_its_table(tmp_path):
    """The nearest table is offered; with its name the draft opens."""
    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits (pid INTEGER, age INTEGER)")
    with pytest.raises(PolicyError, match=r"no table 'visit' in .*did you mean 'visits'"):
        draft_policy(path, table="visit")
    (tmp_path / "p.toml").write_text(draft_policy(path, table="visits", unit="pid"))
    with dither.open(tmp_path / "p.toml") as session:
        assert session.tables["visits"].unit == "pid"


def test_refusals(tmp_path):
    """A missing file, an unknown ending and an unknown unit."""
    path = tmp_path / "v.parquet"
    pl.DataFrame({"pid": [1]}).write_parquet(path)
    with pytest.raises(PolicyError, match="no file"):
        draft_policy(tmp_path / "w.parquet")
    with pytest.raises(PolicyError, match="no column 'pidd'; did you mean 'pid'"):
        draft_policy(path, unit="pidd")
    odd = path.rename(tmp_path / "v.xlsx")
    with pytest.raises(PolicyError, match="unknown ending"):
        draft_policy(odd)
