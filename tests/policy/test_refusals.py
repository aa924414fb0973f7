"""A policy that is wrong is refused by the full name of the field, with what would work."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dither
from dither.errors import ArgumentError, PolicyError
from dither.policy._policy import read_policy
from query.query_data import policy, regions, visits


def changed(folder, path, value):
    """The policy with one field set, or removed where the value is ``...``."""
    made = policy(folder)
    *sections, field = path.split("/")
    body = made
    for section in sections:
        body = body.setdefault(section, {})
    if value is ...:
        del body[field]
    else:
        body[field] = value
    return made


V = "tables/visits/"
S = V + "source"
C = V + "columns/"
REFUSED = [
    ("budget", ..., r"no \[budget\]"),
    ("budget", 3, r"budget must be a section, \[budget\]"),
    ("budget/epsilon", ..., "budget.epsilon is missing"),
    ("budget/epsilon", 0, "budget.epsilon must be above 0"),
    ("budget/epsilon", -1, "budget.epsilon must be above 0"),
    ("budget/epsilon", math.nan, "budget.epsilon must be a finite number"),
    ("budget/epsilon", math.inf, "budget.epsilon must be a finite number"),
    ("budget/epsilon", True, "budget.epsilon must be a finite number"),
    ("budget/epsilon", "one", "budget.epsilon must be a finite number"),
    ("budget/epsilon", "1e999999999", "budget.epsilon must be a finite number"),
    ("budget/epsilon", Decimal("1e999999999"), "budget.epsilon must be a finite number"),
    ("budget/epsilon", [1], "budget.epsilon must be a finite number"),
    ("budget/delta", 1, r"budget.delta must lie in \[0, 1\)"),
    ("budget/delta", -0.1, r"budget.delta must lie in \[0, 1\)"),
    ("budget/release_delta", 1e-5, r"budget.release_delta must lie in \[0, delta\]"),
    ("budget/ledger", ..., "budget.ledger is missing"),
    ("budget/ledger", "  ", "budget.ledger must be a text"),
    ("budget/ledger", 3, "budget.ledger must be a text"),
    (
        "budget/neighbours",
        "replace",
        "budget.neighbours has no option 'replace'; did you mean 'replace_one'",
    ),
    ("budget/epsilom", 1, "budget has an unknown field 'epsilom'; did you mean 'epsilon'"),
    ("budgets", {}, "unknown field 'budgets'; did you mean 'budget'"),
    ("engine/threads", 0, "engine.threads must be a whole number"),
    ("engine/threads", 1.5, "engine.threads must be a whole number"),
    ("engine/memory", "much", "engine.memory must be a size"),
    ("engine/cores", 2, "engine has an unknown field 'cores'"),
    ("analysts/ana/epsilon", 9, "analysts.ana: the cap is above the whole budget"),
    ("analysts/ana/delta", 0, "analysts.ana.epsilon is missing"),
    ("analysts/ana", 1, "analysts.ana must be"),
    ("tables", ..., r"no \[tables\]"),
    ("tables", {}, "no private table"),
    ("tables/visits", 3, "tables.visits must be"),
    (V + "unit", "pidd", "tables.visits.unit: the source has no column 'pidd'; did you mean 'pid'"),
    (V + "unit", 3, "tables.visits.unit must be a text"),
    (V + "unit", ..., "tables.visits.max_groups has no meaning where a row is a person"),
    (V + "max_groups", ..., "tables.visits.max_groups is missing"),
    (V + "max_rows", ..., "tables.visits.max_rows is missing"),
    (V + "delimiter", ";;", "tables.visits.delimiter must be one character"),
    (S, 3, "tables.visits.source must be a text"),
    (S, {}, "tables.visits.source names no engine; write a file's name"),
    (S, {"duckdbs": "x.db"}, "names no engine; .*; did you mean 'duckdb'"),
    (S, {"duckdb": ""}, "tables.visits.source.duckdb must be a text that is not empty"),
    (S, {"duckdb": "x.db", "tabel": "t"}, "source has an unknown field 'tabel'; did you mean 't"),
    (S, {"duckdb": "a\0b"}, "the policy's text in source holds the character NUL"),
    (V + "max_rows", 0, "tables.visits.max_rows must be a whole number"),
    (V + "max_rows", 2**40, "tables.visits.max_rows must be a whole number"),
    (V + "max_rows", True, "tables.visits.max_rows must be a whole number"),
    (V + "max_row", 3, "tables.visits has an unknown field 'max_row'; did you mean 'max_rows'"),
    (V + "public", True, "tables.visits.unit contradicts public"),
    (V + "public", "yes", "tables.visits.public must be true or false"),
    (V + "unique", ["pid"], "tables.visits.unique is for public tables"),
    (V + "columns", [], "tables.visits.columns must be a section"),
    (
        "tables/regions/unique",
        ["regoin"],
        "tables.regions.unique: the source has no column 'regoin'; did you mean 'region'",
    ),
    ("tables/regions/unique", [], "tables.regions.unique must be a list that is not empty"),
    ("tables/regions/unique", [1], "tables.regions.unique must be a list of texts"),
    ("tables/regions/unique", [["region", 1]], "must be a list of texts, or of lists of texts"),
    ("tables/regions/unique", [["region", "region"]], "names a value twice"),
    ("tables/regions/unique", [["region", "regoin"]], "did you mean 'region'"),
    ("tables/regions/unique", ["region", "region"], "tables.regions.unique names a value twice"),
    ("tables/regions/max_rows", 3, "tables.regions.max_rows contradicts public"),
    (
        C + "ages",
        {},
        "tables.visits.columns.ages: the source has no such column; did you mean 'age'",
    ),
    (C + "age", 3, "tables.visits.columns.age must be"),
    (
        C + "age/bound",
        [0, 1],
        "tables.visits.columns.age has an unknown field 'bound'; did you mean 'bounds'",
    ),
    (C + "age/type", "integr", "columns.age.type has no option 'integr'; did you mean 'integer'"),
    (C + "age/bounds", [0], r"columns.age.bounds must be \[lower, upper\]"),
    (C + "age/bounds", [], "columns.age.bounds must be a list that is not empty"),
    (C + "age/bounds", [110, 0], "columns.age.bounds: the lower bound must be below"),
    (C + "age/bounds", [0, 0.5], "columns.age.bounds of an integer column must be whole"),
    (C + "age/bounds", [0, math.inf], "columns.age.bounds must be a finite number"),
    (C + "age/bounds", [math.nan, 1], "columns.age.bounds must be a finite number"),
    (C + "age/bounds", [0, 2**63], "columns.age.bounds lie too far out"),
    (C + "age/bounds", ["a", "b"], "columns.age.bounds must be a finite number"),
    (C + "age/bounds", [[0], [1]], "columns.age.bounds must be a list of plain values"),
    (C + "age/bounds", [0, "1e999999999"], "columns.age.bounds must be a finite number"),
    (C + "age/values", [1], "columns.age declares both bounds and values"),
    (C + "age/step", 1, "columns.age.step is for real columns"),
    (C + "age/bins", [0], "columns.age.bins must be at least two edges"),
    (C + "age/bins", [18, 0], "columns.age.bins must be at least two edges, each above"),
    (C + "age/nullable", 1, "columns.age.nullable must be true or false"),
    (C + "age/unit", "", "columns.age.unit must be a text"),
    (C + "cost/step", 0, "columns.cost.step must be above 0"),
    (C + "cost/step", 6000, "columns.cost.step is wider than the bounds"),
    (C + "region/values", [], "columns.region.values must be a list that is not empty"),
    (
        C + "region/values",
        ["a", "a"],
        "columns.region.values names a value twice: its elements 1 and 2 are equal",
    ),
    (C + "region/values", ["a", 1], "columns.region.values must all be of kind text"),
    (C + "region/values", [["a"]], "columns.region.values must be a list of plain values"),
    (C + "region/bins", [0, 1], "columns.region declares both bins and values"),
    (C + "city/bins", [0, 1], 'columns.city.bins are for numbers.*type = "integer"'),
    (C + "city/bounds", [0, 1], 'columns.city.bounds do not fit.*type = "integer"'),
    (C + "smoker/values", [0, 1], "columns.smoker.values must all be of kind boolean"),
    (
        C + "cost/type",
        "date",
        "'cost' of table 'visits' cannot be read as date|columns.cost.bounds do not fit",
    ),
]


@pytest.mark.parametrize(("path", "value", "words"), REFUSED, ids=lambda v: str(v)[:30])
def test_wrong_fields_are_refused_by_name(tmp_path, frames, path, value, words):
    """Contradictory, missing, misspelt and impossible fields; no ledger is made."""
    with pytest.raises(PolicyError, match=words):
        dither.open(changed(tmp_path, path, value), sources=frames)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1.5, "2.5"], "must all be of kind real"),
        ([1.5, True], "must all be of kind real"),
        ([1.5, float("nan")], "must"),
        ([1.5, 1e301], "too far out"),
        ([0.1, 0.1000000000000000055511151231257827], "twice"),
    ],
)
def test_values_of_reals_are_numbers(tmp_path, frames, values, words):
    """Finite ones, no two of which are one double."""
    made = changed(tmp_path, C + "cost", {"values": values})
    with pytest.raises(PolicyError, match=words):
        dither.open(made, sources=frames)


def test_a_policy_is_a_path_or_a_dictionary(tmp_path):
    """Anything else is refused, and a missing file says how to draft one."""
    with pytest.raises(ArgumentError, match="policy must be the path"):
        dither.open(None)
    with pytest.raises(PolicyError, match=r"no policy at .*nothing.toml.*dither init"):
        dither.open(tmp_path / "nothing.toml")
    with pytest.raises(PolicyError, match="is a folder; name the policy in it"):
        dither.open(tmp_path)
    with pytest.raises(PolicyError, match="names of fields must be texts"):
        dither.open({1: 2})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[budget\nepsilon = 1", r"p.toml is not valid TOML: .*line 1"),
        (b"epsilon = ", "p.toml is not valid TOML"),
        (b"a = 1\na = 2", "p.toml is not valid TOML"),
        (b"a = '\xff'", "not UTF-8"),
        (b"a = " + b"9" * 6000, "a number in it is too long"),
        (b"a = " + b"[" * 5000, "p.toml"),
        (
            b"[budget]\nepsilon = 1e999999999\nledger = 'l'\n[tables.t]",
            "budget.epsilon must be a finite number",
        ),
        (
            b"[budget]\nepsilon = nan\nledger = 'l'\n[tables.t]",
            "budget.epsilon must be a finite number",
        ),
    ],
)
def test_files_that_cannot_be_read(tmp_path, text, words):
    """Syntax errors say where; hostile numbers neither hang nor crash."""
    path = tmp_path / "p.toml"
    path.write_bytes(text)
    with pytest.raises(PolicyError, match=words):
        dither.open(path)


def test_numbers_are_read_as_they_are_written(tmp_path):
    """0.1 in a policy is one tenth, and the digest does not depend on how a number is written."""
    path = tmp_path / "p.toml"
    text = '[budget]\nepsilon = 0.1\ndelta = 1e-9\nledger = "l"\n[tables.t]\nsource = "t.csv"\n'
    path.write_text(text)
    read = read_policy(path)
    assert str(read.budget.epsilon) == "1/10"
    assert str(read.budget.delta) == "1/1000000000"
    assert read.release_delta * 16 == read.budget.delta
    path.write_text(text.replace("0.1", "0.10"))
    assert read_policy(path).digest == read.digest
    path.write_text(text.replace("0.1", "0.2"))
    assert read_policy(path).digest != read.digest


def test_relative_paths_start_from_the_policy(tmp_path, monkeypatch):
    """Sources, ledger and temporary folder lie beside the policy, wherever it is opened from."""
    folder = tmp_path / "owner"
    folder.mkdir()
    visits(100).write_parquet(folder / "v.parquet")
    (folder / "p.toml").write_text(
        '[budget]\nepsilon = 1\nledger = "v.ledger"\n[engine]\ntemp = "spill"\n'
        '[tables.visits]\nsource = "v.parquet"\n'
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with dither.open("../owner/p.toml") as session:
        assert session.policy.engine["temp"] == str(folder / "spill")
        assert session.sql("SELECT COUNT(*) AS n FROM visits").release(1).frame.height == 1
    assert (folder / "v.ledger").is_file()
    assert not list(elsewhere.iterdir())


def test_given_paths_start_from_here(tmp_path, monkeypatch):
    """A path in ``sources`` is the caller's, so it starts from the current folder."""
    here = tmp_path / "here"
    here.mkdir()
    visits(50).write_parquet(here / "v.parquet")
    (tmp_path / "p.toml").write_text('[budget]\nepsilon = 1\nledger = "l"\n[tables.visits]\n')
    monkeypatch.chdir(here)
    with dither.open(tmp_path / "p.toml", sources={"visits": "v.parquet"}) as session:
        assert "age" in session.tables["visits"].columns


def test_sources_are_named_in_refusals(tmp_path, frames):
    """Missing sources, missing files, unknown endings and formats, tables that are not there."""
    made = policy(tmp_path)
    with pytest.raises(PolicyError, match=r"tables.visits.source is missing"):
        dither.open(made)
    for source, more, words in (
        ("no.parquet", {}, "tables.visits.source: no file 'no.parquet'"),
        ("v.xlsx", {}, "tables.visits.source: unknown ending"),
        (
            "v.parquet",
            {"format": "parket"},
            "tables.visits.format has no option 'parket'.*'parquet'",
        ),
        ("v.parquet", {"table": "x"}, "tables.visits.table is for sources of several"),
    ):
        visits(5).write_parquet(tmp_path / "v.parquet")
        bad = policy(tmp_path, visits={"source": str(tmp_path / source), **more})
        with pytest.raises(PolicyError, match=words.replace("'no.parquet'", "")):
            dither.open(bad, sources={"regions": regions()})
    with pytest.raises(ArgumentError, match="sources: no table 'visit'; did you mean 'visits'"):
        dither.open(made, sources={**frames, "visit": visits(5)})
    with pytest.raises(ArgumentError, match="a path, or a Polars, pandas or Arrow frame"):
        dither.open(made, sources={**frames, "visits": 3})


def test_dates_and_timestamps_are_bounds(tmp_path):
    """Dates as TOML has them; a zone is brought to UTC, at the ends of time too."""
    frame = pl.DataFrame({"day": [dt.date(2020, 5, 5)], "seen": [dt.datetime(2020, 5, 5, 12)]})
    path = tmp_path / "p.toml"
    head = '[budget]\nepsilon = 1\nledger = "l"\n[tables.t.columns]\n'
    path.write_text(
        head + "day = { bounds = [2020-01-01, 2020-12-31] }\n"
        "seen = { bounds = [2020-01-01T02:00:00+02:00, 2020-12-31] }\n"
    )
    with dither.open(path, sources={"t": frame}) as session:
        assert session.tables["t"].column("day").lower == dt.date(2020, 1, 1)
        assert session.tables["t"].column("seen").lower == dt.datetime(2020, 1, 1)
    for line, words in (
        (
            'day = { bounds = ["2020-01-01", "2020-13-31"] }',
            r"columns.day.bounds do not fit.*2024-01-31, in Python as datetime.date\(2024, 1, 31\)",
        ),
        ("day = { bounds = [2020-01-01T00:00:00, 2020-12-31] }", "columns.day.bounds do not fit"),
        ("day = { values = [2020-01-01T00:00:00] }", "columns.day.values must all be of kind date"),
        ("seen = { bounds = [12:00:00, 13:00:00] }", "columns.seen.bounds do not fit"),
        ("seen = { bounds = [0001-01-01T00:00:00+05:00, 2020-01-01] }", "columns.seen.bounds"),
    ):
        path.write_text(head + line)
        with pytest.raises(PolicyError, match=words):
            dither.open(path, sources={"t": frame})


@pytest.mark.parametrize(
    ("first", "last"),
    [("2020-01-01", "2020-12-31"), (dt.date(2020, 1, 1), np.datetime64("2020-12-31"))],
)
def test_dates_in_a_dictionary_may_be_text(tmp_path, first, last):
    """Days and times as ISO text, as JSON has them, beside those of Python and numpy."""
    frame = pl.DataFrame({"day": [dt.date(2020, 5, 5)], "seen": [dt.datetime(2020, 5, 5, 12)]})
    made = {
        "budget": {"epsilon": 1, "ledger": str(tmp_path / "l")},
        "tables": {
            "t": {
                "columns": {
                    "day": {"bounds": [first, last]},
                    "seen": {"bounds": ["2020-01-01T02:00:00+02:00", last]},
                }
            },
            "u": {"columns": {"day": {"values": ["2020-02-29", dt.date(2021, 1, 1)]}}},
        },
    }
    with dither.open(made, sources={"t": frame, "u": frame.clone()}) as session:
        day, seen = (session.tables["t"].column(name) for name in ("day", "seen"))
        assert (day.lower, day.upper) == (dt.date(2020, 1, 1), dt.date(2020, 12, 31))
        assert (seen.lower, seen.upper) == (dt.datetime(2020, 1, 1), dt.datetime(2020, 12, 31))
        listed = session.tables["u"].column("day").values
        assert listed == (dt.date(2020, 2, 29), dt.date(2021, 1, 1))
    for field in ({"values": ["2020-02-30"]}, {"bounds": ["1.1.20", last]}):
        bad = {**made, "tables": {"t": {"columns": {"day": field}}}}
        with pytest.raises(PolicyError, match=r"datetime.date\(2024, 1, 31\)"):
            dither.open(bad, sources={"t": frame})


def test_analysts_must_name_themselves(tmp_path, frames):
    """With caps an analyst is needed, and an unknown one is offered the nearest."""
    made = policy(tmp_path, analysts={"ana": {"epsilon": 1}})
    with pytest.raises(ArgumentError, match=r"analyst must be given.*'ana'"):
        dither.open(made, sources=frames)
    with pytest.raises(PolicyError, match="unknown analyst 'anna'; did you mean 'ana'"):
        dither.open(made, sources=frames, analyst="anna")
    with pytest.raises(ArgumentError, match=r"caps no analysts; add \[quotas.analysts.ana\]"):
        dither.open(policy(tmp_path), sources=frames, analyst="ana")


def test_a_policy_with_a_byte_order_mark_opens(tmp_path):
    """As some editors write it, and with their ends of lines."""
    text = '[budget]\nepsilon = 1\nledger = "l"\n[tables.t]\nsource = "t.csv"\n'
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "p.toml").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    with dither.open(tmp_path / "p.toml") as session:
        assert list(session.tables) == ["t"]


def test_a_dictionary_may_hold_numpy_and_ranges(tmp_path):
    """They are read as the numbers that they are."""
    columns = {
        "a": {"bounds": np.array([0, 10]), "nullable": np.bool_(False)},
        "b": {"values": range(3)},
        "c": {"bounds": (np.int64(0), np.float64(0.5))},
    }
    made = {
        "budget": {"epsilon": np.float64(0.1), "ledger": str(tmp_path / "l")},
        "tables": {"t": {"columns": columns}},
    }
    frame = pl.DataFrame({"a": [1], "b": [1], "c": [0.1]})
    with dither.open(made, sources={"t": frame}) as session:
        facts = session.tables["t"].columns
        assert facts["a"].upper == 10
        assert facts["b"].values == (0, 1, 2)
        assert facts["c"].upper == Fraction(1, 2)
        assert session.balance()[0].caps.epsilon == Fraction(1, 10)
