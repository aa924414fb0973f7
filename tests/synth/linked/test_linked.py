"""Linked tables: what one unit moves, by enumeration; keys that join, order, refusals."""

from __future__ import annotations

import datetime as day
import itertools

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BudgetError
from dither.query.tables._linked import linked_levels
from dither.synth.linked._model import LinkedModel

FIRST = day.date(2024, 1, 1)
CHILDREN = {
    "persons": {
        "key": "person",
        "most": 3,
        "children": {"visits": {"most": 4, "order": "day", "rules": ["left >= day"]}},
    }
}
SECRET = b"a key of this test's own, 32 by."


def simulated(homes=400):
    """Homes, persons and visits: type "b" follows "a" a month later, "a" follows "b" at once."""
    draw = np.random.default_rng(7)
    persons, visits = [], []
    for home in range(homes):
        for person in range(draw.integers(0, 4)):
            age = int(draw.integers(0, 80))
            persons.append((home, f"{home}-{person}", "fm"[draw.integers(2)], age))
            at, kind = int(draw.integers(0, 60)), "ab"[draw.integers(2)]
            for _ in range(draw.integers(0, 5) if age > 20 else 1):
                left = min(at + int(draw.integers(0, 4)), 365)
                came, gone = (FIRST + day.timedelta(n) for n in (at, left))
                visits.append((home, f"{home}-{person}", came, gone, kind))
                at += 30 if kind == "a" else 1
                kind = "b" if kind == "a" else "a"
    return {
        "homes": pl.DataFrame({"home": range(homes), "city": [h % 3 == 0 for h in range(homes)]}),
        "persons": pl.DataFrame(persons, ["home", "person", "sex", "age"], orient="row"),
        "visits": pl.DataFrame(visits, ["home", "person", "day", "left", "kind"], orient="row"),
    }


TABLES = simulated()


def opened(folder, frames, name="l", budget=None, **limits):
    """A session on three tables of one unit."""
    dates = {"bounds": ["2024-01-01", "2024-12-31"], "nullable": False}
    tables = {
        "homes": {"max_rows": 1, "max_join_rows": 1, "columns": {"city": {"nullable": False}}},
        "persons": {
            "max_rows": 3,
            "max_join_rows": 4,
            "columns": {
                "sex": {"values": ["f", "m"], "nullable": False},
                "age": {"bounds": [0, 80], "nullable": False},
            },
        },
        "visits": {
            "max_rows": 6,
            "max_join_rows": 20,
            "columns": {"day": dates, "left": dates, "kind": {"values": ["a", "b"]}},
        },
    }
    made = {
        "budget": {
            "epsilon": 1000,
            "delta": "1e-5",
            "ledger": str(folder / f"{name}.ledger"),
            **(budget or {}),
        },
        "units": {"home": {"columns": dict.fromkeys(tables, "home")}},
        "tables": {n: {"max_groups": 1, **t, **limits.get(n, {})} for n, t in tables.items()},
    }
    return dt.open(made, sources=frames)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("linked"), TABLES) as found:
        yield found


@pytest.fixture(scope="module")
def model(session):
    """With little noise."""
    return session.table("homes").synthesize_linked(CHILDREN, 100, "1e-6", cells=12)


def without(frames, home):
    """The tables without one unit: its row, their rows, and the rows of these."""
    return {name: frame.filter(pl.col("home") != home) for name, frame in frames.items()}


def hostile():
    """Units with more rows than count, orphans, ties, two rows of one key, NULLs and no rows."""
    persons = [(0, "x", "f", 5)] * 2 + [(0, f"p{i}", "m", i) for i in range(6)]
    persons += [(1, "x", "m", 99), (1, None, "f", None), (2, "y", "z", -5)]
    came = [FIRST + day.timedelta(d) for d in (0, 0, 3, 3, 300, 400)]
    visits = [(0, "x", d, d, "a") for d in came * 3] + [
        (0, f"p{i}", came[2], None, "b") for i in range(6)
    ]
    visits += [(1, None, came[1], came[0], "c"), (1, "x", None, None, None)] * 4
    visits += [(3, "nobody", came[0], came[0], "a")] * 9
    return {
        "homes": pl.DataFrame({"home": [0, 0, 1, 2, 4], "city": [True, False, True, None, False]}),
        "persons": pl.DataFrame(persons, ["home", "person", "sex", "age"], orient="row"),
        "visits": pl.DataFrame(
            visits,
            {
                "home": pl.Int64,
                "person": pl.String,
                "day": pl.Date,
                "left": pl.Date,
                "kind": pl.String,
            },
            orient="row",
        ),
    }  # fmt: skip


def counted(session, orders):
    """Every table of one and of two columns, of every level, exactly."""
    found = {}
    for level in linked_levels(session.table("homes"), CHILDREN, cells=12):
        places = range(len(level.domain.sizes))
        cliques = [c for k in orders for c in itertools.combinations(places, k)]
        tables = level.question._count(cliques, SECRET)
        bound = level.question.l1, level.question.l2_squared
        found[level.name] = tables, bound
    return found


@pytest.mark.parametrize("homes", [(0,), pytest.param(range(5), marks=pytest.mark.slow)])
def test_a_unit_moves_each_table_by_what_is_claimed_at_most(tmp_path, homes):
    """Each unit with all of its rows taken out: of all tables of all levels, and attained."""
    frames = hostile()
    orders = (1,) if len(homes) == 1 else (1, 2)
    with opened(tmp_path, frames) as session:
        whole = counted(session, orders)
    most = dict.fromkeys(whole, 0)
    for home in homes:
        with opened(tmp_path, without(frames, home), f"without{home}") as session:
            rest = counted(session, orders)
        for name, (tables, (l1, l2_squared)) in whole.items():
            for clique, table in tables.items():
                moved = table - rest[name][0][clique]
                assert (moved >= 0).all()
                assert np.abs(moved).sum() <= l1
                assert (moved.astype(object) ** 2).sum() <= l2_squared
                most[name] = max(most[name], int(np.abs(moved).sum()))
    # One row of a home, three persons of it and six visits: the limits, and no more.
    assert most == {"homes": 1, "persons": 3, "visits": 6}
    assert {n: bound for n, (_, bound) in whole.items()} == {
        "homes": (1, 1),
        "persons": (3, 9),
        "visits": (6, 36),
    }


@pytest.mark.slow
def test_the_levels_cost_what_is_charged(session):
    """Parts of rho add up to all of it, and each level spends its own at most."""
    question = session.table("homes").linked_synthesis(CHILDREN, 2, "1e-6", cells=12)
    assert sum(question._shares) == 1
    assert question.price.epsilon == 2
    assert question.price.rho == question.rho
    assert question.price.promise.unit == "home"
    content = question.release()._content
    for level, share in zip(content["levels"], question._shares, strict=True):
        assert level["rho"] == str(question.rho * share)
    assert "level visits" in str(question.explain())
    assert "100,000 units" in question.preview()


def test_keys_join_and_rows_are_in_order(model):
    """Every key that refers to a row has one; nobody has more rows than there may be."""
    made = model.sample(600, seed=1)
    homes, persons, visits = (made[name] for name in ("homes", "persons", "visits"))
    assert homes["home"].to_list() == list(range(1, 601))
    assert persons["person"].n_unique() == persons.height
    assert persons.join(homes, on="home", how="anti").is_empty()
    assert visits.join(persons, on=["home", "person"], how="anti").is_empty()
    assert persons.group_by("home").len()["len"].max() <= 3
    assert visits.group_by("person").len()["len"].max() <= 4
    assert persons.schema["person"] == pl.String
    assert visits.schema["day"] == pl.Date
    gaps = (
        visits["day"]
        .diff()
        .dt.total_days()
        .filter((visits["person"] == visits["person"].shift()).fill_null(False))
    )
    assert gaps.min() >= 0
    assert visits.filter(pl.col("left") < pl.col("day")).is_empty()
    assert visits["day"].max() <= day.date(2024, 12, 31)


@pytest.mark.slow
def test_histories_are_those_of_the_data(model):
    """How many rows, what follows what, and after how long; with little noise."""
    made = model.sample(4000, seed=2)
    for name, above in (("persons", "homes"), ("visits", "persons")):
        share = made[name].height / made[above].height
        # Some of the visits beyond the sixth of a home do not count.
        assert share == pytest.approx(TABLES[name].height / TABLES[above].height, rel=0.1)

    def follows(visits):
        visits = visits.with_columns(
            gap=pl.col("day").diff().over("person").dt.total_days(),
            before=pl.col("kind").shift().over("person"),
        )
        kept = visits.drop_nulls(["gap", "before"])
        return {
            key: (group["gap"].median(), (group["kind"] != key[0]).mean())
            for key, group in kept.group_by("before")
        }

    found = follows(made["visits"])
    # Thirty days lie in a cell of 29 to 56; one day is a cell.
    assert found["a",][0] == pytest.approx(42, abs=4)
    assert found["b",][0] == 1
    assert found["a",][1] > 0.9
    assert found["b",][1] > 0.9
    young = made["visits"].join(made["persons"].filter(pl.col("age") < 18), on="person", how="semi")
    # One visit each, in truth.
    assert young.group_by("person").len()["len"].mean() < 1.4


@pytest.mark.parametrize("units", [0, 1, 30])
def test_few_units(model, units):
    """None, one and thirty: frames of the same columns and types."""
    made, more = model.sample(units, seed=3), model.sample(200, seed=3)
    assert made["homes"].height == units
    for name, frame in made.items():
        assert frame.schema == more[name].schema


def test_it_is_saved_and_read(model, tmp_path):
    """The same rows again, with the certificate."""
    again = dt.synth.load(model.save(tmp_path / "m.model"))
    assert isinstance(again, LinkedModel)
    for name, frame in model.sample(50, seed=4).items():
        assert again.sample(50, seed=4)[name].equals(frame)
    assert again.tables == ("homes", "persons", "visits")
    assert again.columns["visits"] == ("day", "left", "kind")
    assert "protects one home, with all its rows of homes" in repr(again)
    assert "units: about" in again._repr_html_()


@pytest.mark.slow
def test_a_token_gives_it_again(session):
    """Nothing more is charged."""
    asked = {"token": "again", "cells": 12}
    first = session.table("homes").synthesize_linked(CHILDREN, 1, "1e-6", **asked)
    second = session.table("homes").synthesize_linked(CHILDREN, 1, "1e-6", **asked)
    assert second.replayed
    assert not first.replayed
    assert second.sample(9, seed=1)["homes"].equals(first.sample(9, seed=1)["homes"])
    assert first.certificate == second.certificate


@pytest.mark.slow
def test_empty_tables_are_a_release_like_any(tmp_path):
    """With noise alone in it."""
    empty = {name: frame.clear() for name, frame in TABLES.items()}
    with opened(tmp_path, empty) as session:
        made = session.table("homes").synthesize_linked(CHILDREN, 1, "1e-6", cells=12)
        assert made.sample(20, seed=1)["homes"].height == 20
        with pytest.raises(BudgetError):
            session.table("homes").synthesize_linked(CHILDREN, 2000, "1e-6", cells=12)


@pytest.mark.slow
def test_hostile_rows_raise_nothing(tmp_path):
    """Orphans, ties, NULLs and keys that stand twice."""
    with opened(tmp_path, hostile()) as session:
        made = session.table("homes").synthesize_linked(CHILDREN, 50, "1e-6", cells=12)
        found = made.sample(40, seed=1)
        assert found["visits"].join(found["persons"], on="person", how="anti").is_empty()


def test_rows_without_an_order_are_drawn_beside_their_parent(session):
    """Two tables below one."""
    children = {
        "persons": {"most": 3, "columns": ["sex"]},
        "visits": {"most": 8, "columns": ["kind"]},
    }
    made = session.table("homes").synthesize_linked(children, 50, "1e-6").sample(300, seed=1)
    assert set(made) == {"homes", "persons", "visits"}
    assert made["visits"].columns == ["home", "kind"]
    assert made["visits"].group_by("home").len()["len"].max() <= 8


def with_field(**fields):
    return {"visits": {"most": 4, **fields}}


@pytest.mark.parametrize(
    ("children", "words"),
    [
        ({}, "children must map tables"),
        (["visits"], "children must map tables"),
        ({"visits": 4}, "visits: must be a mapping"),
        ({"visits": {}}, "visits: most is missing"),
        (with_field(most=0), "visits: most must be"),
        (with_field(order="kind"), "order: kind must be a date or a whole number"),
        (with_field(order="dya"), "order: no column 'dya'"),
        (with_field(ordr="day"), "no field 'ordr'"),
        (with_field(gaps=[0, 5]), "gaps are between rows in an order"),
        (with_field(order="day", gaps=[1, 5]), "gaps must begin at 0"),
        (with_field(order="day", gaps=[0, 5, 5]), "each be above the last"),
        (with_field(columns=["home"]), "columns: no column 'home'"),
        (with_field(rules="left >= day"), "visits: rules must be a list"),
        (
            with_field(rules=["left < day", "day < left"], columns=["day", "left"]),
            "contradict one another",
        ),
        (with_field(children=3), "children must map tables"),
        ({"homes": {"most": 1}}, "homes stands twice"),
        ({"persons": {"most": 3, "children": with_field()}}, "name the key that rows below refer"),
        ({"nowhere": {"most": 3}}, "nowhere"),
        (with_field(max_rows=0), "max_rows"),
        (with_field(order="day", gaps=[0, 2**63]), "gaps must be at most"),
        (with_field(order="day", key="day"), "day can be only one of"),
        ({"persons": {"key": "home", "most": 3}}, "home can be only one of"),
        ({"persons": {"key": "person", "most": 3, "children": with_field(on="home")}},
         "home can be only one of"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(session, children, words):
    """Nothing is charged."""
    with pytest.raises(dt.errors.DitherError, match=words):
        session.table("homes").linked_synthesis(children, 1, "1e-6", cells=12)


def test_cells_are_of_columns_that_there_are(session):
    """A name that is mistyped is said, and not passed over."""
    with pytest.raises(ArgumentError, match="cells: no column 'ages'; did you mean 'age'"):
        session.table("homes").linked_synthesis(CHILDREN, 1, "1e-6", cells={"ages": 3})


def test_no_level_is_allowed_more_memory_than_there_is(session):
    """Before anything of its size is made."""
    with pytest.raises(ArgumentError, match="max_bytes must be at most"):
        session.table("homes").linked_synthesis(CHILDREN, 1, "1e-6", max_bytes=2**70)


def stays(folder, bounds, rows, more=(), name="stay"):
    """A session on homes and rows of theirs, which whole numbers order."""
    made = {
        "budget": {"epsilon": 1000, "delta": "1e-5", "ledger": str(folder / "s.ledger")},
        "units": {"home": {"columns": {"homes": "home", "stays": "home"}}},
        "tables": {
            "homes": {"max_rows": 1, "max_groups": 1, "max_join_rows": 1,
                      "columns": {c: {"values": ["a", "b"]} for c in more}},
            "stays": {"max_rows": 3, "max_groups": 1, "max_join_rows": 3,
                      "columns": {name: {"type": "integer", "bounds": bounds}}
                      | {c: {"values": ["a", "b"]} for c in more}},
        },
    }  # fmt: skip
    beside = dict.fromkeys(more, "a")
    homes = pl.DataFrame({"home": [0, 1], **{c: ["a", "b"] for c in more}})
    found = [{"home": home, name: at, **beside} for home, at in rows]
    types = {"home": pl.Int64, name: pl.Int64, **dict.fromkeys(more, pl.String)}
    return dt.open(made, sources={"homes": homes, "stays": pl.DataFrame(found, types)})


def test_moments_that_lie_too_far_apart_are_refused_before_the_charge(tmp_path):
    """A gap of 2^63 would fail on the rows that have it: then the failure tells of them."""
    ends = [-(2**62), 2**62]
    children = {"stays": {"most": 3, "order": "stay"}}
    with stays(tmp_path, ends, [(0, ends[0]), (0, ends[1]), (1, None)]) as found:
        with pytest.raises(ArgumentError, match="bounds of stay lie too far apart"):
            found.table("homes").linked_synthesis(children, 1, "1e-6")
        assert [entry.kind for entry in found.ledger.entries() if entry.kind == "charge"] == []


@pytest.mark.parametrize("bounds", [[0, 2**62], [-(2**61), 2**61]])
def test_gaps_as_wide_as_there_may_be_are_counted(tmp_path, bounds):
    """In the last of the cells."""
    children = {"stays": {"most": 3, "order": "stay"}}
    with stays(tmp_path, bounds, [(0, bounds[0]), (0, bounds[1])]) as found:
        _, level = linked_levels(found.table("homes"), children, cells=4)
        gaps = level.question._count([(level.gap,)], SECRET)[level.gap,]
        assert gaps[len(level.edges) - 1] == 1
        assert gaps.sum() == 2


def test_one_cell_of_gaps_is_enough(tmp_path):
    """Then a row has one before it or none, and no more is told."""
    children = {"stays": {"most": 3, "order": "stay", "gaps": [0]}}
    with stays(tmp_path, [0, 9], [(0, 2), (0, 7), (0, 9), (1, 3)]) as found:
        _, level = linked_levels(found.table("homes"), children)
        assert level.question._count([(level.gap,)], SECRET)[level.gap,].tolist() == [2, 2]


def test_columns_may_have_the_names_that_are_made(tmp_path):
    """Those of counts, of a parent's columns and of the order."""
    more, children = ("number of stays", "homes's city", "homes's number of stays"), {
        "stays": {"most": 3, "order": "order of rows"}
    }  # fmt: skip
    with stays(tmp_path, [0, 9], [(0, 2), (0, 7)], more, "order of rows") as found:
        first, level = linked_levels(found.table("homes"), children)
        assert len(first.domain.sizes) == 4
        assert len(level.parents) == 3
        table = level.question._count([level.parents[0][:1]], SECRET)
        assert sum(t.sum() for t in table.values()) == 2


def test_a_table_without_columns_is_refused_before_the_charge(tmp_path):
    """There is nothing of its rows to tell."""
    children = {"stays": {"most": 3, "key": "stay"}}
    with (
        stays(tmp_path, [0, 9], [(0, 2)]) as found,
        pytest.raises(ArgumentError, match="stays: no column is left"),
    ):
        found.table("homes").linked_synthesis(children, 1, "1e-6")


def test_only_whole_tables_of_units_are_linked(session, tmp_path):
    """Not filtered ones, nor a table in which a row is a person."""
    rows = session.table("homes").filter("city")
    with pytest.raises(ArgumentError, match="leave filters and joins out"):
        rows.linked_synthesis(CHILDREN, 1, "1e-6")
    alone = {"budget": {"epsilon": 1, "delta": "1e-5", "ledger": str(tmp_path / "a.ledger")},
             "tables": {"homes": {"columns": {"city": {"nullable": False}}}}}  # fmt: skip
    alone["tables"]["flats"] = alone["tables"]["homes"]
    with (
        dt.open(
            alone, sources={"homes": TABLES["homes"], "flats": TABLES["homes"].head(9)}
        ) as other,
        pytest.raises(dt.errors.DitherError, match="declare its unit"),
    ):
        other.table("homes").linked_synthesis({"flats": {"most": 3}}, 1, "1e-6")


def test_tables_in_blocks_are_not_linked(tmp_path):
    """Refused by name, for nothing: their histories would go through all blocks."""
    blocks = {"block": {"column": "day", "every": "month"}}
    with opened(tmp_path, TABLES, budget={"per": "block"}, visits=blocks) as found:
        with pytest.raises(ArgumentError, match="lie in blocks"):
            found.table("homes").linked_synthesis(CHILDREN, 1, "1e-6")
        assert [entry.kind for entry in found.ledger.entries() if entry.kind == "charge"] == []
