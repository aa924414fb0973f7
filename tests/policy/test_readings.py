"""What a policy says of how values are written, from the policy to the released share."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import dither as dt
from dither.errors import PolicyError, QueryError

SURE = 1e6
"""An epsilon at which noise is 0 for certain, as far as a test can see."""

FILE = (
    """\
patient,region,cost,day
p1,north,"1,234.50",01/03/2024
p2, north ,(5),13/12/2024
p3,NA,$12,31/02/2024
NA,south,"1,2",
p5,x,abc,NA
p6,south,,"""
    + "  \n"
)


def policy(tmp_path: Path, columns: dict, **table) -> dict:
    return {
        "budget": {"epsilon": 1e9, "ledger": str(tmp_path / "t.ledger")},
        "tables": {"t": {"columns": columns, **table}},
    }


WRITTEN = {"null_values": ["NA"], "trim": True, "date_format": "%d/%m/%Y"}
COLUMNS = {
    "region": {"values": ["north", "south"]},
    "cost": {
        "type": "real",
        "bounds": [-10, 5000],
        "thousands": ",",
        "trim": "$",
        "parentheses": True,
        "step": 0.5,
    },
    "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
}
ASKED = """
    SELECT COUNT(region) AS region, COUNT(cost) AS cost, SUM(cost) AS total, COUNT(day) AS day,
        COUNT_IF(UNREADABLE(cost)) AS bad, COUNT_IF(UNREADABLE(region)) AS other,
        COUNT_IF(UNREADABLE(day)) AS late, COUNT_IF(NOT UNREADABLE(cost)) AS good
    FROM t
"""
TRUTH = {"region": 4, "cost": 3, "total": 1241.5, "day": 2, "bad": 2, "other": 1, "late": 1,
         "good": 3}  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "folders"])
def test_one_file_is_read_alike_in_every_form(tmp_path, form):
    """Text of a CSV file, of Parquet, of a frame, and beside keys in the names of folders."""
    frame = pl.read_csv(FILE.encode(), infer_schema=False)
    given: dict = policy(tmp_path, COLUMNS, **WRITTEN)
    sources = {}
    if form == "frame":
        sources["t"] = frame
    else:
        path = tmp_path / ("year=2024/t.csv" if form == "folders" else f"t.{form}")
        path.parent.mkdir(exist_ok=True)
        if form == "parquet":
            frame.write_parquet(path)
        else:
            path.write_text(FILE)
        given["tables"]["t"]["source"] = str(
            tmp_path / "year=*/*.csv" if form == "folders" else path
        )
    with dt.open(given, sources=sources) as session:
        found = session.sql(ASKED).release(SURE).frame.row(0, named=True)
    assert {name: found[name] for name in TRUTH} == TRUTH


def test_the_share_is_asked_for_at_its_price(tmp_path):
    """As a method, and as SQL: the same question, with the sensitivity of a 0 or 1."""
    given = policy(tmp_path, COLUMNS, **WRITTEN)
    with dt.open(given, sources={"t": pl.read_csv(FILE.encode(), infer_schema=False)}) as session:
        question = session.table("t").unreadable("cost", "region")
        assert "AVG(CAST(UNREADABLE(cost) AS BIGINT)) AS unreadable_cost" in question.sql
        assert session.sql(question.sql).sql == question.sql
        explained = str(question.explain())
        assert "bounds       [0, 1] on multiples of 1" in explained
        assert explained.count("sensitivity  1 in a group") == 4
        row = question.release(SURE).frame.row(0, named=True)
        assert (row["unreadable_cost"], row["unreadable_region"]) == (0.4, 0.2)
        grouped = session.sql(
            "SELECT region, COUNT(*) AS n FROM t WHERE UNREADABLE(day) OR UNREADABLE(cost) "
            "GROUP BY region"
        )
        assert grouped.release(SURE).frame["n"].to_list() == [0, 1]
        inner = session.sql(
            "SELECT COUNT_IF(bad) AS n FROM (SELECT UNREADABLE(cost) AS bad FROM t)"
        )
        assert inner.release(SURE).frame["n"][0] == 2


def test_units_count_within_their_limits_and_missing_ones_are_nobody(tmp_path):
    """A unit's rows count up to max_rows; a unit that is written as NULL has no rows."""
    given = policy(tmp_path, COLUMNS, unit="patient", max_groups=1, max_rows=1, **WRITTEN)
    twice = pl.read_csv((FILE + FILE[FILE.index("p1") :]).encode(), infer_schema=False)
    with dt.open(given, sources={"t": twice}) as session:
        found = session.sql("SELECT COUNT(*) AS n, COUNT_IF(UNREADABLE(cost)) AS bad FROM t")
        assert found.release(SURE).frame.select("n", "bad").rows() == [(5, 1)]
        with pytest.raises(QueryError, match="says who is protected"):
            session.table("t").unreadable("patient")


def test_join_rows_are_chosen_by_what_is_read_of_them(tmp_path):
    """Rows that differ in nothing but what cannot be read are two kinds of rows to a join."""
    given = policy(
        tmp_path, COLUMNS, unit="patient", max_groups=1, max_rows=9, max_join_rows=9, **WRITTEN
    )
    given["tables"]["other"] = {"unit": "patient", "max_groups": 1, "max_rows": 9,
                                "max_join_rows": 9}  # fmt: skip
    given["units"] = {"patient": {"columns": {"t": "patient", "other": "patient"}}}
    frame = pl.read_csv(FILE.encode(), infer_schema=False)
    with dt.open(given, sources={"t": frame, "other": frame.select("patient")}) as session:
        found = session.sql(
            "SELECT COUNT_IF(UNREADABLE(t.cost)) AS bad, COUNT(*) AS n "
            "FROM t JOIN other ON t.patient = other.patient"
        )
        assert found.release(SURE).frame.select("bad", "n").rows() == [(1, 5)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("UNREADABLE(cost + 1)", r"write UNREADABLE\(x\), of a column x"),
        ("UNREADABLE(cost, day)", r"write UNREADABLE\(x\), of a column x"),
        ("UNREADABLE(costs)", "did you mean 'cost'"),
    ],
)
def test_what_is_not_a_column_is_refused(tmp_path, asked, words):
    """By name, before anything is charged."""
    frame = pl.read_csv(FILE.encode(), infer_schema=False)
    with dt.open(policy(tmp_path, COLUMNS, **WRITTEN), sources={"t": frame}) as session:
        with pytest.raises(dt.errors.DitherError, match=words):
            session.sql(f"SELECT COUNT_IF({asked}) AS n FROM t")
        with pytest.raises(QueryError, match="of a column of a table of the policy"):
            session.sql("SELECT COUNT_IF(UNREADABLE(x)) AS n FROM (SELECT cost AS x FROM t)")


REFUSED = {
    "the point twice": ({"cost": {"type": "real", "thousands": "."}}, {}, "thousands and decimal"),
    "another point": (
        {"cost": {"type": "real", "decimal": ";"}},
        {},
        r"decimal must be '\.' or ','",
    ),
    "a long separator": ({}, {"thousands": ", "}, "thousands must be"),
    "of text": ({"region": {"thousands": ","}}, {}, "thousands is for numbers"),
    "of no date": (
        {"cost": {"type": "real", "date_format": "%d/%m/%Y"}},
        {},
        "for dates and times",
    ),
    "no year": ({}, {"date_format": "%d/%m"}, r"must hold the year \(%Y or %y\) once"),
    "two days": ({}, {"date_format": "%d/%d/%m/%Y"}, "the day"),
    "a week": ({}, {"date_format": "%d/%m/%Y %j"}, "has no directive '%j'"),
    "minutes alone": ({}, {"date_format": "%d/%m/%Y %M"}, r"must hold the hour \(%H\)"),
    "digits trimmed": ({}, {"trim": "$0"}, "must not hold '0'"),
    "nothing trimmed": ({}, {"trim": ""}, "trim must be true"),
    "a text": ({}, {"null_values": "NA"}, "null_values must be a list"),
    "twice": ({}, {"null_values": ["-99", -99]}, "names a value twice"),
    "both": (
        {"region": {"values": ["NA", "x"]}},
        {"null_values": ["NA"]},
        "which null_values reads",
    ),
    "the unit": ({"patient": {"trim": True}}, {}, "compared as it is stored"),
    "stored as numbers": (
        {"n": {"null_values": ["-99"]}},
        {},
        "for values that are stored as text",
    ),
    "a flag": ({}, {"parentheses": "yes"}, "must be true or false"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_its_field(tmp_path, case):
    """Before anything is opened, and by a check too."""
    columns, table, words = REFUSED[case]
    given = policy(tmp_path, columns, unit="patient", max_groups=1, max_rows=1, **table)
    frame = pl.read_csv(FILE.encode(), infer_schema=False).with_columns(n=1)
    with pytest.raises(PolicyError, match=words):
        dt.open(given, sources={"t": frame})
    assert not dt.check(given, sources={"t": frame}).ok


def test_a_column_goes_before_its_table_and_may_take_back(tmp_path):
    """Field by field: an empty list, and false, say that nothing of it is meant."""
    columns = {"region": {"null_values": [], "trim": False}, "cost": {"type": "real"}}
    with dt.open(
        policy(tmp_path, columns, **WRITTEN),
        sources={"t": pl.read_csv(FILE.encode(), infer_schema=False)},
    ) as session:
        found = session.sql(
            "SELECT COUNT_IF(region = 'NA') AS na, COUNT_IF(region = ' north ') AS blank FROM t"
        )
        assert found.release(SURE).frame.select("na", "blank").rows() == [(1, 1)]


def test_json_lines_have_numbers_with_a_point(tmp_path):
    """Texts with separators are read; a decimal that its own numbers do not have is refused."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"cost": "1,234.5"}\n{"cost": 10.5}\n{"cost": "NA"}\n{"cost": "1,2"}\n')
    columns = {"cost": {"type": "real", "bounds": [0, 5000], "step": 0.5}}
    given = policy(tmp_path, columns, source=str(path), thousands=",", null_values=["NA"])
    with dt.open(given) as session:
        found = session.sql("SELECT SUM(cost) AS s, COUNT_IF(UNREADABLE(cost)) AS n FROM t")
        assert found.release(SURE).frame.select("s", "n").rows() == [(1245.0, 1)]
    given["tables"]["t"] |= {"thousands": ".", "decimal": ","}
    with pytest.raises(PolicyError, match=r"tables\.t\.decimal: the numbers of JSON lines"):
        dt.open(given)


def test_a_spreadsheet_of_another_country(tmp_path):
    """A byte order mark, semicolons, a decimal comma, thin blanks, a currency and per cent."""
    path = tmp_path / "t.csv"
    path.write_text(
        '\ufeffcost;share\n"1\u202f234,50 €";12,5 %\n-€ 2,5;100%\n1.234,5;0,5\n', encoding="utf-8"
    )
    columns = {
        "cost": {"type": "real", "bounds": [-10, 5000], "step": 0.5, "trim": "€"},
        "share": {"type": "real", "bounds": [0, 200], "step": 0.5, "trim": "%"},
    }
    given = policy(tmp_path, columns, source=str(path), delimiter=";", decimal=",", thousands=" ")
    with dt.open(given) as session:
        found = session.sql(
            "SELECT SUM(cost) AS cost, SUM(share) AS share, "
            "COUNT_IF(UNREADABLE(cost)) AS bad FROM t"
        )
        assert found.release(SURE).frame.select("cost", "share", "bad").rows() == [(1232.0, 113, 1)]
