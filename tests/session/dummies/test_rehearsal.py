"""Dummy rows and rehearsals: from the schema alone, for every fact that a policy can declare."""

from __future__ import annotations

import copy
import datetime as dt
import html
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import dither
from dither.engines.duckdb.engine import DuckDBEngine
from dither.errors import ArgumentError, CertificateError, PolicyError, UnknownNameError
from dither.policy.dummies import NOTICE
from dither.session.dummies._rehearsal import DummyRows

DAY, MOMENT = dt.date(2023, 5, 4), dt.datetime(2023, 5, 4, 3, 2, 1)


def _policy(folder: Path) -> dict[str, Any]:
    """Every type and fact of a column, tables of one unit, and public tables to join."""
    columns = {
        "age": {"bounds": [0, 110], "bins": [0, 18, 65, 110], "unit": "years"},
        "cost": {"bounds": [10, 20], "step": 0.25, "nullable": False},
        "share": {"bounds": [-1, 1]},
        "score": {"bins": [0.5, 1.5, 2.5]},
        "level": {"bins": [0, 2, 4]},
        "region": {"values": ["north", "south"]},
        "code": {"values": [7, 9]},
        "well": {"type": "boolean", "nullable": False},
        "day": {"bounds": [dt.date(2023, 1, 1), dt.date(2023, 12, 31)]},
        "at": {"bounds": [dt.datetime(2023, 1, 1), dt.datetime(2023, 1, 2)]},
        "holiday": {"values": [DAY, dt.date(2023, 5, 5)]},
        "drugs": {"values": ["aspirin", "ibuprofen"], "max_items": 2, "nullable": False},
        "doses": {"bounds": [1, 5]},
    }
    return {
        "budget": {"epsilon": 10**6, "delta": 1e-3, "ledger": f"{folder}/own.ledger"},
        "units": {"patient": {"columns": {"visits": "who", "labs": "patient"}}},
        "tables": {
            "visits": {
                "unit": "who",
                "max_groups": 2,
                "max_rows": 4,
                "max_join_rows": 4,
                "columns": columns,
            },
            "labs": {"unit": "patient", "max_groups": 1, "max_rows": 2, "max_join_rows": 2},
            "people": {"columns": {"age": {"bounds": [0, 110]}}},
            "regions": {"public": True, "unique": ["region"]},
            "codes": {"public": True, "unique": ["name", ["year", "part"]]},
        },
    }


def _sources() -> dict[str, pl.DataFrame]:
    visits = pl.DataFrame(
        {
            "who": [51, 52],
            "age": [2, 3],
            "cost": [10.0, 12.5],
            "share": [0.5, 0.25],
            "score": [1.0, 2.0],
            "level": [1, 2],
            "region": ["north", "south"],
            "code": [7, 9],
            "well": [True, False],
            "day": [DAY, DAY],
            "at": [MOMENT, MOMENT],
            "holiday": [DAY, DAY],
            "drugs": [["aspirin"], []],
            "doses": [[1, 2], None],
            "plain": ["secret a", "secret b"],
            "number": [77_001, 77_002],
            "real": [77_001.5, 77_002.5],
            "date": [dt.date(1977, 1, 1)] * 2,
            "moment": [dt.datetime(1977, 1, 1)] * 2,
            "zoned": pl.Series([dt.datetime(1977, 1, 1)] * 2).dt.replace_time_zone("UTC"),
        }
    )
    return {
        "visits": visits,
        "labs": pl.DataFrame({"patient": [51, 53], "plain": ["secret a", "secret c"]}),
        "people": pl.DataFrame({"age": [41]}),
        "regions": pl.DataFrame({"region": ["north", "south"], "coast": [True, False]}),
        "codes": pl.DataFrame(
            {"name": ["secret a", "b"], "year": [2001, 2002], "part": ["x", "y"], "n": [1, 2]}
        ),
    }


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with dither.open(_policy(tmp_path), sources=_sources()) as found:
        yield found


def test_every_fact_holds(session: Any) -> None:
    """Values lie where the policy says, and are of the types that the source has."""
    frame = session.dummy("visits", rows=600, seed=1).frame
    assert frame.height == 600
    assert frame.schema == _sources()["visits"].schema
    for name, low, high in (
        ("age", 0, 110),
        ("cost", 10, 20),
        ("share", -1, 1),
        ("score", 0.5, 2.5),
        ("level", 0, 3),
        ("day", dt.date(2023, 1, 1), dt.date(2023, 12, 31)),
        ("at", dt.datetime(2023, 1, 1), dt.datetime(2023, 1, 2)),
    ):
        assert frame[name].drop_nulls().is_between(low, high).all(), name
        assert frame[name].n_unique() > 3, name
    assert (frame["cost"] % 0.25 == 0).all()
    for name, values in (
        ("region", {"north", "south"}),
        ("code", {7, 9}),
        ("holiday", {DAY, dt.date(2023, 5, 5)}),
    ):
        assert set(frame[name].drop_nulls()) == values
    assert set(frame["drugs"].explode().drop_nulls()) == {"aspirin", "ibuprofen"}
    assert frame["drugs"].list.len().max() == 2
    assert frame["doses"].explode().drop_nulls().is_between(1, 5).all()
    nulls = {name for name in frame.columns if frame[name].null_count()}
    assert nulls == {*frame.columns} - {"who", "cost", "well", "drugs"}


def test_no_value_of_the_rows_is_in_them(session: Any) -> None:
    """What the policy does not declare comes from the schema alone."""
    for found in session.dummies(seed=2).values():
        text = found.frame.write_json()
        assert "secret" not in text
        assert "1977-" not in text
    visits = session.dummy("visits", seed=2).frame
    assert visits["number"].max() < 77_000 > visits["real"].max()
    assert {51, 52} < set(visits["who"]), "identifiers are numbered, whoever has rows"


def test_nothing_is_read(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that refuses to read a row, of a private table or a public one, makes them too."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a row was read")

    held = session._engine
    for name in ("run", "public_rows", "public_values", "lost", "left_out"):
        monkeypatch.setattr(held, name, refuse)
    monkeypatch.setattr(held, "_connection", None)
    assert {*session.dummies(rows=5)} == {*session.tables}
    with session.rehearsal(rows=50, seed=3) as tried:
        assert tried.sql("SELECT COUNT(*) AS n FROM visits").release(100).frame["n"][0] >= 40
    assert [e.kind for e in session.ledger.entries()] == ["genesis"]


def test_keys_match(session: Any) -> None:
    """Units are shared, unique columns are unique, and columns of one name have the same values."""
    made = {name: found.frame for name, found in session.dummies(rows=400, seed=4).items()}
    assert set(made["labs"]["patient"]) & set(made["visits"]["who"])
    assert made["regions"]["region"].sort().to_list() == ["north", "south"]
    for key in (["name"], ["year", "part"]):
        assert not made["codes"].select(key).is_duplicated().any()
    plain = made["visits"]["plain"].drop_nulls().unique()
    assert plain.is_in(made["codes"]["name"].implode()).all()
    with session.rehearsal(rows=400, seed=4) as tried:
        for text in (
            "SELECT coast, COUNT(*) AS n FROM visits JOIN regions ON visits.region = "
            "regions.region GROUP BY coast",
            "SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.who = labs.patient",
            "SELECT COUNT(*) AS n FROM visits JOIN codes ON visits.plain = codes.name",
        ):
            assert tried.sql(text).release(10_000, 0.0001).frame["n"].sum() > 10


def test_dummy_rows_open_under_their_policy(session: Any, tmp_path: Path) -> None:
    """They are sources of the policy that they were made of, and `check` finds no error in them."""
    frames = {name: found.frame for name, found in session.dummies(seed=5).items()}
    policy = _policy(tmp_path / "other")
    (tmp_path / "other").mkdir()
    assert dither.check(policy, sources=frames).ok
    with dither.open(policy, sources=frames) as again:
        assert {t: [*f.columns] for t, f in again.tables.items()} == {
            t: [*f.columns] for t, f in session.tables.items()
        }
        assert again.sql("SELECT AVG(cost) AS c FROM visits").release(100).frame["c"][0] > 10


@pytest.mark.parametrize(
    "written",
    [
        {"bounds": [0, 5000], "type": "real", "decimal": ",", "thousands": "."},
        {"bounds": [0, 5000], "type": "integer"},
        {"bounds": ["2023-01-01", "2023-12-31"], "type": "date", "date_format": "%d-%b-%y"},
        {"bounds": ["2023-01-01", "2023-12-31"], "type": "date"},
        {
            "bounds": ["2023-01-01", "2023-12-31"],
            "type": "timestamp",
            "date_format": "%d/%m/%Y %H:%M:%S",
        },
        {"bounds": ["2023-01-01", "2023-12-31"], "type": "timestamp"},
        {"type": "boolean"},
        {"values": ["a", "b"], "null_values": ["NA"], "trim": True},
    ],
)
def test_texts_are_read_as_what_they_say(tmp_path: Path, written: dict[str, Any]) -> None:
    """A CSV file holds texts, so do its dummy rows, and the policy reads every one of them."""
    (tmp_path / "t.csv").write_text("who,value\n1,x\n")
    policy = {
        "budget": {"epsilon": 10**6, "ledger": f"{tmp_path}/t.ledger"},
        "tables": {
            "t": {
                "source": f"{tmp_path}/t.csv",
                "unit": "who",
                "max_groups": 1,
                "max_rows": 100,
                "columns": {"value": {**written, "nullable": False}},
            }
        },
    }
    with dither.open(policy) as session:
        frame = session.dummy("t", rows=60, seed=6).frame
        assert frame.schema == {"who": pl.String, "value": pl.String}
        with session.rehearsal(rows=60, seed=6) as tried:
            found = tried.sql("SELECT COUNT(value) AS n FROM t").release(10**4)
            assert found.frame["n"][0] == pytest.approx(60, abs=2)


@pytest.mark.parametrize(
    ("block", "column"),
    [
        ({"column": "at", "every": "month"}, {}),
        ({"column": "at", "every": "day"}, {"bounds": [dt.date(2023, 5, 1), dt.date(2023, 5, 9)]}),
        ({"column": "at", "edges": [dt.date(2022, 1, 1), dt.date(2023, 1, 1)]}, {}),
        ({"column": "at", "edges": [10, 20, 40]}, {}),
        ({"column": "at", "values": ["2022", "2023"]}, {}),
    ],
)
def test_blocks(tmp_path: Path, block: dict[str, Any], column: dict[str, Any]) -> None:
    """Rows lie in more than one of the blocks that the policy declares."""
    kinds = {"edges": [5] if block.get("edges", [0])[0] == 10 else [DAY], "values": ["2022"]}
    held = next((kinds[name] for name in kinds if name in block), [DAY])
    policy = {
        "budget": {"epsilon": 10, "per": "block", "ledger": f"{tmp_path}/t.ledger"},
        "tables": {"t": {"block": block, "columns": {"at": column}}},
    }
    with dither.open(policy, sources={"t": pl.DataFrame({"at": held})}) as session:
        _, calendar = session.tables["t"].block
        values = session.dummy("t", rows=300, seed=7).frame["at"].to_list()
        assert len({calendar.block_of(v) for v in values if v is not None}) > 1
        with session.rehearsal(seed=7) as tried:
            tried.sql("SELECT COUNT(*) AS n FROM t").release(1)


def test_seeds(session: Any) -> None:
    """One seed gives the same rows, alone or beside others; without one they are others."""
    first = session.dummy("visits", rows=30, seed=8)
    assert first.frame.equals(session.dummies(rows=30, seed=8)["visits"].frame)
    assert not first.frame.equals(session.dummy("visits", rows=30, seed=9).frame)
    drawn = session.dummy("visits", rows=30)
    assert drawn.frame.equals(session.dummy("visits", rows=30, seed=drawn.seed).frame)
    assert not drawn.frame.equals(session.dummy("visits", rows=30).frame)


def test_dummy_rows_say_so(session: Any, tmp_path: Path) -> None:
    """On a terminal, in a notebook, in a file."""
    found = session.dummy("people", rows=3, seed=1)
    assert NOTICE in repr(found)
    assert "no row is real" in found._repr_html_()
    path = found.save(tmp_path / "people.parquet")
    assert pl.read_parquet_metadata(path)["dither"] == NOTICE
    assert pl.read_parquet(path).equals(found.frame)
    assert pl.read_csv(found.save(tmp_path / "people.dummy.csv")).equals(found.frame)


def test_refusals(session: Any, tmp_path: Path) -> None:
    """What cannot be made or saved is refused with the fix, and nothing is written."""
    found = session.dummy("visits", rows=3)
    for name, told in (
        ("visits.csv", "dummy"),
        ("visits.dummy.csv", "lists"),
        ("visits.txt", "end in"),
        ("nowhere/visits.parquet", "folder"),
    ):
        with pytest.raises(ArgumentError, match=told):
            found.save(tmp_path / name)
    for rows in (0, -1, 10**7, 2.5, True):
        with pytest.raises(ArgumentError, match="rows"):
            session.dummy("visits", rows=rows)
    with pytest.raises(ArgumentError, match="seed"):
        session.dummy("visits", seed=-1)
    with pytest.raises(UnknownNameError, match="visits"):
        session.dummy("visit")
    session.close()
    with pytest.raises(ArgumentError, match="closed"):
        session.dummies()
    assert [*tmp_path.glob("visits*")] == []


def test_a_rehearsal_touches_nothing(session: Any, tmp_path: Path) -> None:
    """It has a ledger of its own, which goes with it; the real one stays as it was."""
    before = (tmp_path / "own.ledger").read_bytes()
    with session.rehearsal(rows=50) as tried:
        place = Path(tried.ledger.place)
        tried.sql("SELECT COUNT(*) AS n FROM visits").release(1)
        assert tried.balance()[0].spent.epsilon == 1
        assert tried.policy.digest == session.policy.digest
        assert place.is_file()
    assert not place.parent.exists()
    assert session.balance()[0].spent.epsilon == 0
    assert (tmp_path / "own.ledger").read_bytes() == before


def test_answers_of_a_rehearsal_say_so(session: Any) -> None:
    """Sessions, questions, answers and certificates, of every kind of question."""
    with session.rehearsal(rows=200, seed=1) as tried:
        assert NOTICE in repr(tried)
        assert html.escape(NOTICE) in tried._repr_html_()
        asked = tried.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region")
        found = asked.release(1)
        learned = tried.learn("people", "age", epsilon=100)
        marginals = tried.table("people").marginals([["age"]], epsilon=10).release()
        asked_twice = asked.published(1)[0]
        assert "over dummy rows" in repr(asked)
        assert "over dummy rows" in repr(tried.table("people").marginals([["age"]], epsilon=10))
        for answer in (found, learned, marginals, asked_twice):
            assert NOTICE in " ".join(repr(answer).split()), type(answer)
            assert html.escape(NOTICE) in answer._repr_html_(), type(answer)
            assert answer.certificate.content["dummy"] == NOTICE
            assert NOTICE in str(answer.certificate)
        assert NOTICE in found.summary()
        assert isinstance(found, dither.Release)
        for again in (copy.copy(found), pickle.loads(pickle.dumps(found))):
            assert repr(again) == repr(found)
    assert "dummy" not in repr(session.sql("SELECT COUNT(*) AS n FROM visits").release(1))


def test_a_certificate_of_a_rehearsal_is_none_of_the_real_ledger(
    session: Any, tmp_path: Path
) -> None:
    """It is refused there, and beside its own ledger it says what it is of."""
    with session.rehearsal() as tried:
        found = tried.sql("SELECT COUNT(*) AS n FROM visits").release(1)
        assert "no row is real" in dither.verify(found.certificate, tried.ledger).text
        with pytest.raises(CertificateError, match="another ledger"):
            dither.verify(found.certificate, tmp_path / "own.ledger")
        changed = found.certificate.to_dict()
        del changed["dummy"]
        with pytest.raises(CertificateError, match="changed"):
            dither.verify(changed, tried.ledger)


def test_what_was_learned_stands_in_a_rehearsal(tmp_path: Path) -> None:
    """A policy that learns its bounds is rehearsed with those that its ledger has."""
    policy = {
        "budget": {"epsilon": 10**6, "ledger": f"{tmp_path}/t.ledger"},
        "tables": {"t": {"columns": {"cost": {"bounds": "learned"}}}},
    }
    rows = pl.DataFrame({"cost": [12.5, 80.0, 450.0] * 100})
    with dither.open(policy, sources={"t": rows}) as session:
        bounds = session.learn("t", "cost", epsilon=10**5)
        with session.rehearsal() as tried:
            assert [fact.text for fact in tried.facts] == [fact.text for fact in session.facts]
            frame = tried._engine
            assert frame is not session._engine
            mean = tried.sql("SELECT AVG(cost) AS c FROM t").release(100).frame["c"][0]
            assert bounds.lower < mean < bounds.upper
        values = session.dummy("t").frame["cost"].drop_nulls()
        assert values.is_between(float(bounds.lower), float(bounds.upper)).all()


def test_two_engines_stay_two(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused of the real tables, since they lie apart, is refused of dummy rows too."""

    def apart(_: Any, tables: Any) -> None:
        raise PolicyError("apart: " + " and ".join(sorted(tables)))

    monkeypatch.setattr(DuckDBEngine, "check_together", apart)
    with (
        session.rehearsal() as tried,
        pytest.raises(PolicyError, match="apart: labs and visits"),
    ):
        tried.sql("SELECT COUNT(*) AS n FROM visits JOIN labs ON visits.who = labs.patient")


def test_quotas_and_analysts_stay(tmp_path: Path) -> None:
    """Whoever asks has in a rehearsal what the policy gives them, with nothing spent."""
    policy = {
        "budget": {"epsilon": 2, "ledger": f"{tmp_path}/t.ledger"},
        "analysts": {"ana": {"epsilon": 1}},
        "tables": {"t": {}},
    }
    with dither.open(policy, sources={"t": pl.DataFrame({"n": [1]})}, analyst="ana") as session:
        session.sql("SELECT COUNT(*) AS n FROM t").release(1)
        with session.rehearsal() as tried:
            assert tried.analyst == "ana"
            question = tried.sql("SELECT COUNT(*) AS n FROM t")
            assert question.release(1).certificate.content["dummy"]
            with pytest.raises(dither.errors.BudgetError):
                question.release(0.5)


def test_whoever_asks_in_a_rehearsal_asks_of_dummy_rows(session: Any) -> None:
    """A session of somebody else over it is one of dummy rows, too, and never of the data."""
    with session.rehearsal(rows=50) as tried:
        other = tried.asked_by("ben")
        assert NOTICE in repr(other)
        found = other.sql("SELECT COUNT(*) AS n FROM people").release(1)
        assert found.certificate.content["dummy"] == NOTICE
        assert NOTICE in repr(found)


def test_it_is_a_table() -> None:
    """What a caller holds is a frame with its length."""
    assert len(DummyRows("t", pl.DataFrame({"n": [1, 2]}), 0)) == 2
