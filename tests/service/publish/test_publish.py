"""Published tables: every kind of release, whole or not at all, and held to certificates."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import dither
from dither.errors import ArgumentError, CertificateError, LedgerError, PolicyError
from dither.ledger import OwnerKey
from dither.service.publish import (
    _duckdb,
    _folder,
    _server,
    publish,
    publish_entry,
    read_publish,
    verify_published,
)
from dither.service.publish._checking import verify_table
from dither.service.publish._folder import FolderTarget
from dither.service.publish._forms import made_of
from dither.service.publish._settings import opened_target
from service.publish.people import PEOPLE, PLACES, policy

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY region"


def test_a_table_of_a_question_has_intervals_and_its_certificate(session: Any, place: Any) -> None:
    """Keys as they are, NAME_low and NAME_high beside each output, and a row of certificates."""
    found = session.sql(BY_REGION).release(1)
    made = publish(found, "regions", place)
    assert made.new
    assert made.tables == ("regions",)
    table = opened_target(place).read("regions").sort("line")
    assert table.columns == [
        *("line", "region", "n", "n_low", "n_high", "age", "age_low", "age_high", "certificate")
    ]
    frame = found.frame
    assert table["region"].to_list() == frame["region"].to_list()
    assert table["n_low"].to_list() == frame["n_lower"].to_list()
    assert table["age_high"].to_list() == frame["age_upper"].to_list()
    (row,) = opened_target(place).read("certificates").to_dicts()
    body = found.certificate.to_dict()
    assert row["id"] == body["digest"] == table["certificate"][0]
    assert json.loads(row["certificate"]) == body
    assert "protects one row of people" in row["promise"]
    assert row["question"] == body["text"]["sql"]
    assert row["published"] == dt.datetime.now(dt.UTC).date()
    (said,) = verify_published(place, "regions", ledger=session.ledger)
    assert "the answer is the one that it was issued for" in said


KINDS: dict[str, Any] = {
    "scalar": lambda s: s.sql("SELECT COUNT(*) AS n FROM people").release(1),
    "estimate": lambda s: s.table("people").infer(epsilon=1).mean("age").release(),
    "marginals": lambda s: (
        s.table("people").marginals([["region"], ["region", "ill"]], epsilon=1).release()
    ),
    "ranges": lambda s: s.table("people").ranges("age", epsilon=1).release(),
    "hierarchy": lambda s: (
        s.table("people")
        .hierarchy(["state", "county"], ["ill"], epsilon=1, places="places")
        .release()
    ),
    "synthetic": lambda s: s.table("people").select("region", "ill").synthesize(epsilon=1),
    "logistic": lambda s: (
        s.table("people").learn(epsilon=1, delta=1e-6).logistic("ill ~ region").release()
    ),
    "odds": lambda s: (
        s.table("people").infer(1, 1e-6).logistic_regression("ill ~ region").release()
    ),
    "linear": lambda s: s.table("people").learn(epsilon=1).linear("age ~ region").release(),
}
COLUMNS = {
    "scalar": {"n", "n_low", "n_high"},
    "estimate": {"quantity", "estimate", "estimate_low", "estimate_high", "standard_error"},
    "marginals": {"region", "count", "count_low", "count_high"},
    "ranges": {"age", "estimate", "estimate_low", "estimate_high", "below", "below_low"},
    "hierarchy": {"state", "ill", "count", "count_low", "count_high", "estimate", "estimate_low"},
    "synthetic": {"region", "ill", "synthetic"},
    "logistic": {"term", "coefficient", "coefficient_low", "coefficient_high"},
    "odds": {"quantity", "estimate", "estimate_low", "estimate_high", "standard_error"},
    "linear": {"term", "coefficient", "coefficient_low", "coefficient_high"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_release_is_published_and_checked(
    session: Any, tmp_path: Path, kind: str
) -> None:
    """Several tables where there are several; synthetic rows are marked, without intervals."""
    place = tmp_path / "released.duckdb"
    found = KINDS[kind](session)
    made = publish(found, kind, place)
    assert len(made.tables) == (2 if kind in ("marginals", "hierarchy") else 1)
    table = opened_target(place).read(made.tables[0])
    assert COLUMNS[kind] <= set(table.columns)
    if kind == "synthetic":
        assert table["synthetic"].all()
        assert not [name for name in table.columns if name.endswith("_low")]
    for name in made.tables:
        assert len(verify_published(place, name, ledger=session.ledger)) == 1


def test_linked_tables_are_published_together(tmp_path: Path) -> None:
    """A table each, drawn anew where it is checked; a value that is changed is seen."""
    made = {
        "budget": {"epsilon": 9, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")},
        "releases": {"audience": "everybody"},
        "units": {"home": {"columns": {"homes": "home", "Stays!": "home"}}},
        "tables": {
            name: {"max_rows": 2, "max_groups": 1, "max_join_rows": 2, "columns": columns}
            for name, columns in (("homes", {}), ("Stays!", {"kind": {"values": ["a", "b"]}}))
        },
    }
    sources = {
        "homes": pl.DataFrame({"home": [1, 2, 3]}),
        "Stays!": pl.DataFrame({"home": [1, 1, 3], "kind": ["a", "b", "a"]}),
    }
    place = tmp_path / "released.duckdb"
    with dither.open(made, sources=sources) as session:
        found = session.table("homes").synthesize_linked({"Stays!": {"most": 2}}, 1)
        assert publish(found, "f", place, rows=4).tables == ("f_1_homes", "f_2_stays")
        homes = opened_target(place).read("f_1_homes")
        assert homes.height == 4
        assert homes["synthetic"].all()
        for name in ("f_1_homes", "f_2_stays"):
            (said,) = verify_published(place, name, ledger=session.ledger)
            assert "the table follows from it" in said
        (number,) = [e.number for e in session.ledger.entries() if e.kind == "charge"]
        assert publish_entry(made, number, "e", to=place).tables == ("e_1_homes", "e_2_stays")
        records = opened_target(place).read("certificates").filter(pl.col("name") == "f_1_homes")
        changed = homes.with_columns(home=pl.col("home") + 1)
        with pytest.raises(CertificateError, match="a value of the table is not one"):
            verify_table(changed, records, "f_1_homes", ledger=session.ledger)


@pytest.mark.parametrize("asked", [(0.25, 0.75), (0.2, 0.5, 0.8)])
def test_each_number_of_several_has_its_own_interval(session: Any, asked: Any) -> None:
    """Two numbers have two intervals, whose ends are not each other's."""
    found = session.table("people").infer(epsilon=1).quantiles("age", asked).release()
    frame = made_of(found).tables[""]
    ends = frame.select("estimate_low", "estimate_high").rows()
    assert ends == [tuple(row) for row in found.interval().tolist()]
    assert all(low <= high for low, high in ends)


def test_the_ledgers_answers_are_published_without_the_data(session: Any, tmp_path: Path) -> None:
    """By the number of the charge; what needs facts that it has not is named."""
    session.sql(BY_REGION).release(1)
    KINDS["marginals"](session)
    KINDS["synthetic"](session)
    KINDS["ranges"](session)
    numbers = [entry.number for entry in session.ledger.entries() if entry.kind == "charge"]
    made = [publish_entry(policy(tmp_path), n, f"e{i}") for i, n in enumerate(numbers[:3])]
    assert [len(one.tables) for one in made] == [1, 2, 1]
    place = tmp_path / "released"
    assert all(verify_published(place, t, ledger=session.ledger) for m in made for t in m.tables)
    with pytest.raises(ArgumentError, match="ask the question again with its token"):
        publish_entry(policy(tmp_path), numbers[3], "e3")
    with pytest.raises(LedgerError, match="not a charge"):
        publish_entry(policy(tmp_path), 0, "e4")


def test_the_owner_says_that_answers_are_for_everybody(tmp_path: Path) -> None:
    """Nothing is published by default, and nothing of another policy but by [publish] audience."""
    plain = policy(tmp_path, publish={"to": str(tmp_path / "released")})
    sources = {"people": PEOPLE, "places": PLACES}
    with dither.open(plain, sources=sources) as session:
        session.sql("SELECT COUNT(*) AS n FROM people").release(1)
    with pytest.raises(PolicyError, match="for whoever asked"):
        publish_entry(plain, 2, "n")
    later = {**plain, "releases": {"audience": "everybody"}}
    with pytest.raises(LedgerError, match="under another policy"):
        publish_entry(later, 2, "n")
    assert not (tmp_path / "released").exists()
    said = {**plain, "publish": {"to": str(tmp_path / "released"), "audience": "everybody"}}
    assert publish_entry(said, 2, "n").new


def test_where_a_policy_has_an_owner_they_alone_publish(tmp_path: Path) -> None:
    """Their key is asked for, and another one refused."""
    own, other = OwnerKey.make(), OwnerKey.make()
    mine = policy(tmp_path, owner={"public": own.public.text})
    sources = {"people": PEOPLE, "places": PLACES}
    with dither.open(mine, sources=sources, key=own) as session:
        session.sql("SELECT COUNT(*) AS n FROM people").release(1)
        number = session.ledger.entries()[-1].answers
    with pytest.raises(PolicyError, match="give their secret key"):
        publish_entry(mine, number, "n")
    with pytest.raises(PolicyError, match="not that of"):
        publish_entry(mine, number, "n", key=other)
    assert publish_entry(mine, number, "n", key=own).new


def test_a_publication_replaces_and_a_history_adds_once(session: Any, place: Any) -> None:
    """The newest alone; or all, each certificate once, however often it is published."""
    first, second = (session.sql("SELECT COUNT(*) AS n FROM people").release(1) for _ in "ab")
    target = opened_target(place)
    for found in (first, second, second):
        publish(found, "newest", place)
    assert target.read("newest").height == 1
    assert verify_published(place, "newest", ledger=session.ledger)
    day = {"day": dt.date(2026, 3, 1)}
    new = [
        publish(found, "every", place, history=True, beside=day).new
        for found in (first, second, second, first)
    ]
    assert new == [True, True, False, False]
    assert target.read("every").height == 2
    assert target.read("every")["day"].to_list() == [dt.date(2026, 3, 1)] * 2
    assert len(verify_published(place, "every", ledger=session.ledger)) == 2
    other = session.sql("SELECT SUM(age) AS n, COUNT(*) AS m FROM people").release(1)
    with pytest.raises(ArgumentError, match="other columns"):
        publish(other, "every", place, history=True)
    assert target.read("every").height == 2
    publish(other, "newest", place)
    assert "m_low" in target.read("newest").columns


NAMES = ['a"; DROP TABLE certificates; --', "", "A", "1a", "a b", "../x", "a" * 49, "certificates"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_no_names_are_refused(session: Any, tmp_path: Path, name: str) -> None:
    """Nothing is written by then."""
    place = tmp_path / "folder"
    found = session.sql("SELECT COUNT(*) AS n FROM people").release(1)
    with pytest.raises(ArgumentError, match="name must"):
        publish(found, name, place)
    with pytest.raises(ArgumentError):
        opened_target(place).read("certificates")


def test_hostile_names_of_columns_are_names(session: Any, place: Any) -> None:
    """Quotes, semicolons, percent signs and script in outputs' names are written as they are."""
    hostile = '"x""; DROP TABLE t; -- %s <b>"'
    found = session.sql(f"SELECT COUNT(*) AS {hostile} FROM people").release(1)
    publish(found, "hostile", place)
    assert 'x"; DROP TABLE t; -- %s <b>_low' in opened_target(place).read("hostile").columns
    assert verify_published(place, "hostile", ledger=session.ledger)


def test_columns_that_would_be_one_are_refused(session: Any, tmp_path: Path) -> None:
    """A column of the table's own, and two that capitals alone tell apart."""
    for text in (
        "SELECT COUNT(*) AS certificate FROM people",
        "SELECT COUNT(*) AS n, COUNT(*) AS n_low FROM people",
        "SELECT COUNT(*) AS line FROM people",
    ):
        with pytest.raises(ArgumentError, match=r"another name|other names"):
            publish(session.sql(text).release(1), "twice", tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_table_that_was_not_published_stays(session: Any, place: Any, request: Any) -> None:
    """Raw data by the same name are never replaced."""
    found = session.sql("SELECT COUNT(*) AS n FROM people").release(1)
    if isinstance(place, dict):
        database = request.getfixturevalue("postgres")
        database.execute("CREATE SCHEMA released", "CREATE TABLE released.raw (n int)")
    elif place.suffix:
        with duckdb.connect(str(place)) as connection:
            connection.execute('CREATE TABLE "RAW" (n INTEGER)')
    else:
        place.mkdir()
        pl.DataFrame({"n": [1]}).write_parquet(place / "raw.parquet")
    with pytest.raises(ArgumentError, match="was not published"):
        publish(found, "raw", place)
    publish(found, "other", place)
    with pytest.raises(ArgumentError, match="was not published"):
        publish(found, "raw", place, history=True)


def test_a_file_that_another_program_holds_is_named(session: Any, tmp_path: Path) -> None:
    """Nothing is lost: published again once it is free."""
    place = tmp_path / "released.duckdb"
    found = session.sql("SELECT COUNT(*) AS n FROM people").release(1)
    publish(found, "n", place)
    holds = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holds, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline().strip() == "held"
        with pytest.raises(ArgumentError, match="another program has it open"):
            publish(found, "m", place)
        other.stdin.write("\n")
        other.stdin.flush()
        other.wait()
    publish(found, "m", place)
    assert opened_target(place).read("n").height == 1


def test_what_is_cut_off_leaves_what_was_there(session: Any, place: Any, monkeypatch: Any) -> None:
    """A crash in the middle: the old rows, or the new ones, and once more makes it whole."""
    first, second = (session.sql("SELECT COUNT(*) AS n FROM people").release(1) for _ in "ab")
    publish(first, "n", place, history=True)
    target = opened_target(place)
    broken: dict[str, tuple[Any, str]] = {
        "duckdb": (_duckdb._DuckDBWriting, "insert"),
        "folder": (_folder, "written"),
        "postgres": (_server._ServerWriting, "insert"),
    }
    kind = "postgres" if isinstance(place, dict) else "duckdb" if place.suffix else "folder"
    holder, name = broken[kind]
    calls = []
    real = getattr(holder, name)

    def breaks(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(holder, name, breaks)
        with pytest.raises(KeyboardInterrupt):
            publish(second, "n", place, history=True)
    assert target.read("n").height == 1
    assert verify_published(place, "n", ledger=session.ledger)
    assert publish(second, "n", place, history=True).new
    assert target.read("n").height == 2
    assert target.read("certificates").height == 2
    assert len(verify_published(place, "n", ledger=session.ledger)) == 2


def test_what_was_changed_is_found(session: Any, tmp_path: Path) -> None:
    """A value, a line that is missing, a table that does not follow from its answer."""
    place = tmp_path / "folder"
    publish(session.sql(BY_REGION).release(1), "regions", place)
    (name, _) = publish(KINDS["marginals"](session), "marginals", place).tables
    for table, column in (("regions", "n"), (name, "count")):
        file = place / f"{table}.parquet"
        whole = pl.read_parquet(file)
        whole.with_columns(pl.col(column) + 1).write_parquet(file)
        with pytest.raises(CertificateError):
            verify_published(place, table, ledger=session.ledger)
        whole.head(1).with_columns(pl.col("line") + 1).write_parquet(file)
        with pytest.raises(CertificateError, match="lines"):
            verify_published(place, table, ledger=session.ledger)
        whole.with_columns(certificate=pl.lit("x")).write_parquet(file)
        with pytest.raises(CertificateError, match="not among those"):
            verify_published(place, table, ledger=session.ledger)


def test_what_is_no_table_is_refused(session: Any, tmp_path: Path) -> None:
    """Models that are no coefficients by name, frames, and estimates without a certificate."""
    bayes = session.table("people").learn(epsilon=1).naive_bayes("ill ~ region").release()
    with pytest.raises(ArgumentError, match="is no table"):
        publish(bayes, "bayes", tmp_path / "folder")
    with pytest.raises(ArgumentError, match="not released yet"):
        publish(session.sql(BY_REGION), "regions", tmp_path / "folder")
    with pytest.raises(ArgumentError, match="what a release gave"):
        publish(PEOPLE, "people", tmp_path / "folder")
    found = session.sql("SELECT COUNT(*) AS n FROM people").release(1)
    with pytest.raises(ArgumentError, match="synthetic data alone"):
        publish(found, "n", tmp_path / "folder", rows=3)
    with pytest.raises(ArgumentError, match="no place for tables"):
        publish(found, "n", tmp_path / "n.csv")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"history": True}, "publish.to is missing"),
        ({"to": 3}, "must be a path"),
        ({"to": "s3://x/y"}, "path of this machine"),
        ({"to": {"postgres": "host=x password=hunter2"}}, "must name a variable"),
        ({"to": {"postgres": "env:X", "schema": 'a"b'}}, "publish.to.schema"),
        ({"to": "x", "audience": "friends"}, "audience"),
        ({"to": "x", "other": 1}, "other"),
    ],
)
def test_a_section_that_is_wrong_is_named(section: dict[str, Any], says: str) -> None:
    """By its field, and without a password."""
    with pytest.raises(PolicyError, match=says) as caught:
        read_publish(section, Path())
    assert "hunter2" not in str(caught.value)


def test_texts_of_the_data_are_data(tmp_path: Path, monkeypatch: Any, postgres: Any) -> None:
    """NUL in a key, which the server cannot write, is shown as something else there."""
    monkeypatch.setenv("PUBLISH_DSN", postgres.owner)
    place = {"postgres": "env:PUBLISH_DSN"}
    hostile = ["a'); DROP TABLE x; --", "\\N", "tab\tand\nline", "<script>"]
    people = pl.DataFrame({"k": hostile * 30})
    made = policy(tmp_path)
    made["tables"] = {"people": {"columns": {"k": {"values": hostile, "nullable": False}}}}
    with dither.open(made, sources={"people": people}) as session:
        found = session.sql("SELECT k, COUNT(*) AS n FROM people GROUP BY k").release(1)
        publish(found, "texts", place)
        assert verify_published(place, "texts", ledger=session.ledger)
    assert FolderTarget(tmp_path / "none").path.exists() is False
