"""Models of a session's table: doors, types, files, and what is refused before the charge."""

from __future__ import annotations

import datetime as day
from fractions import Fraction as F
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, BudgetError
from dither.plan.job import Cells
from dither.synth._spending import MeasuredTable
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements

COLUMNS = {
    "sex": {"values": ["f", "m"], "nullable": False},
    "age": {"bounds": [0, 99], "nullable": False},
    "cost": {"bounds": [0, 10], "step": 0.25},
    "seen": {"bounds": ["2020-01-01", "2020-12-31"], "nullable": False},
    "ill": {"nullable": False},
}


def people(rows=3000, seed=0):
    """Simulated people: the old are ill more often."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 100, rows)
    return pl.DataFrame(
        {
            "sex": draw.choice(["f", "m"], rows),
            "age": age,
            "cost": np.where(draw.random(rows) < 0.1, np.nan, draw.random(rows) * 10),
            "seen": [day.date(2020, 1, 1) + day.timedelta(days=int(d)) for d in age * 3],
            "ill": age + draw.normal(0, 10, rows) > 60,
        }
    ).with_columns(pl.col("cost").fill_nan(None))


def opened(folder, frame, **budget):
    """A session in which every row is a person."""
    made = {"epsilon": 10**4, "delta": "1e-5", "ledger": str(folder / "people.ledger")} | budget
    return dt.open(
        {"budget": made, "tables": {"people": {"columns": COLUMNS}}}, sources={"people": frame}
    )


@pytest.fixture
def session(tmp_path):
    """Three thousand people."""
    with opened(tmp_path, people()) as found:
        yield found


@pytest.mark.parametrize("method", ["aim", "mst", "independent"])
def test_rows_are_of_the_policys_types(session, method):
    """Kinds, bounds, steps and dates as declared; as many rows as there are, nearly."""
    model = session.table("people").synthesize(100, "1e-6", method=method, cells=10)
    rows = model.sample(seed=1)
    assert rows.schema == people().schema
    assert abs(len(rows) - 3000) < 20
    assert rows["age"].is_between(0, 99).all()
    assert rows["seen"].is_between(day.date(2020, 1, 1), day.date(2020, 12, 31)).all()
    known = rows["cost"].drop_nulls()
    assert known.is_between(0, 10).all()
    assert ((known * 4) % 1 == 0).all()
    assert 0.05 < rows["cost"].is_null().mean() < 0.15
    assert abs(rows["ill"].mean() - people()["ill"].mean()) < 0.05
    if method != "independent":
        old = rows.filter(pl.col("age") >= 80)["ill"].mean()
        assert old > 0.8
    assert model.sample(7, seed=3).equals(model.sample(7, seed=3))
    assert model.sample(0).schema == rows.schema
    assert method in str(model)
    assert dt.verify(model.certificate, session.ledger).ok


def test_what_is_charged_is_what_was_asked(session):
    """Exactly epsilon and delta, with the rho that they hold, whatever the run chose."""
    asked = session.table("people").synthesis("1/2", "1e-6")
    before = session.balance()[0].spent
    asked.release()
    spent = session.balance()[0].spent
    assert (spent.epsilon - before.epsilon, spent.delta) == (F(1, 2), F(1, 10**6))
    # The ledger rounds up, to 10^-18.
    assert 0 <= spent.rho - asked.loss.charge.rho < F(1, 10**18)
    assert float(asked.loss.epsilon(1e-6)) <= 0.5 + 1e-9


def test_measured_tables_have_intervals(session):
    """A noisy count and its interval where a table was measured; else the model alone."""
    model = session.table("people").synthesize(50, "1e-6", method="independent", cells=10)
    table = model.marginal(["ill"], confidence=0.999999)
    exact = people()["ill"].value_counts().sort("ill")["count"].to_list()
    for (low, high), n in zip(table.select("lower", "upper").iter_rows(), exact, strict=True):
        assert low <= n <= high
    both = model.marginal(["ill", "sex"])
    assert both.columns == ["ill", "sex", "count", "measured", "lower", "upper"]
    assert both["measured"].null_count() == 4
    assert both["count"].sum() == pytest.approx(model.total)
    turned = model.marginal(["sex", "ill"])
    assert turned.filter(sex="m", ill="TRUE")["count"][0] == pytest.approx(
        both.filter(sex="m", ill="TRUE")["count"][0]
    )


def test_a_model_is_kept(session, tmp_path):
    """In the ledger, by its token, and in a file: the same rows by the same seed."""
    table = session.table("people")
    model = table.synthesize(1, "1e-6", token="once", cells=6)
    spent = session.balance()[0].spent
    again = table.synthesize(1, "1e-6", token="once", cells=6)
    assert again.replayed
    assert session.balance()[0].spent == spent
    loaded = dt.synth.load(model.save(tmp_path / "people.model"))
    rows = model.sample(50, seed=2)
    assert rows.equals(again.sample(50, seed=2))
    assert rows.equals(loaded.sample(50, seed=2))
    assert loaded.certificate.content == model.certificate.content
    (tmp_path / "other.model").write_bytes(b"something else")
    for name in ("other.model", "none.model"):
        with pytest.raises(ArgumentError):
            dt.synth.load(tmp_path / name)
    with pytest.raises(ArgumentError, match="cannot be written"):
        model.save(tmp_path / "nowhere" / "people.model")


def test_nothing_is_read_or_charged_before_the_release(session, monkeypatch):
    """Explaining and previewing run nothing."""
    monkeypatch.setattr(session._engine, "run", None)
    asked = session.table("people").synthesis(1, "1e-6", cells=6)
    assert "5 columns" in str(asked.explain())
    assert "3-way" in asked.preview()
    assert session.balance()[0].spent.free


def test_neither_the_rows_nor_the_domain_come_from_the_data(tmp_path):
    """Two tables under one policy are asked for alike: cells, tables, noise, words."""
    said = []
    for name, frame in (("a", people(10)), ("b", people(500, seed=4)[:1])):
        folder = tmp_path / name
        folder.mkdir()
        with opened(folder, frame) as session:
            asked = session.table("people").synthesis(1, "1e-6")
            said.append((asked.domain, str(asked.explain()), asked.preview(), asked.loss.charge))
    assert said[0] == said[1]


def test_the_number_of_rows_is_measured(session, monkeypatch):
    """No table without columns is ever counted, and totals differ from run to run."""
    engine, run = session._engine, session._engine.run
    counted = []

    def watched(job, schema, key):
        counted.extend(m.axes for m in job.measurements if isinstance(m, Cells))
        return run(job, schema, key)

    monkeypatch.setattr(engine, "run", watched)
    found = [
        session.table("people").synthesize("1/2", "1e-6", method="mst", cells=4) for _ in range(2)
    ]
    assert counted
    assert () not in counted
    assert found[0].total != found[1].total
    assert not found[0].public_size


def test_the_number_of_rows_is_exact_where_it_is_public(tmp_path):
    """Under neighbours that replace a row."""
    with opened(tmp_path, people(321), neighbours="replace_one") as session:
        model = session.table("people").synthesize(1, "1e-6", method="independent")
        assert model.public_size
        assert len(model.sample()) == 321


@pytest.mark.parametrize("method", ["aim", "mst"])
def test_so_little_is_spent_that_uniform_is_best(session, method):
    """It is said, and rows are uniform."""
    model = session.table("people").synthesize("1e-6", "1e-6", method=method)
    assert model.uniform
    assert "all values are as likely" in str(model)
    rows = model.sample(10_000, seed=1)
    assert abs((rows["sex"] == "f").mean() - 0.5) < 0.01


def test_a_uniform_model_takes_no_notice_of_what_is_rare():
    """Values that were counted together are as likely as all others."""
    found = Measurements([MeasuredTable((0,), np.array([5, 0, 1]), F(1))], method="mst")
    found.merged, found.shares = {0: np.array([0, 1, 1])}, {0: np.array([1, 0.9, 0.1])}
    model = FittedModel.of((3,), found, total=6.0, uniform=True)
    assert model.marginal((0,)).tolist() == pytest.approx([2, 2, 2])


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("method", ["aim", "mst", "independent"])
def test_hardly_any_rows(tmp_path, rows, method):
    """An empty table, and one row: a model all the same."""
    with opened(tmp_path, people(5)[:rows]) as session:
        model = session.table("people").synthesize(1, "1e-6", method=method, cells=4)
        assert model.sample(3, seed=1).height == 3
        assert model.total >= 1


@pytest.mark.heavy("test_rows_are_of_the_policys_types")
def test_columns_of_one_value_and_of_very_many(tmp_path):
    """Neither fails."""
    columns = {
        "one": {"values": ["x"], "nullable": False},
        "many": {"values": list(range(30_000)), "nullable": False},
    }
    frame = pl.DataFrame({"one": ["x"] * 100, "many": list(range(100))})
    budget = {"epsilon": 100, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")}
    made = {"budget": budget, "tables": {"t": {"columns": columns}}}
    with dt.open(made, sources={"t": frame}) as session:
        for method in ("aim", "mst", "independent"):
            model = session.table("t").synthesize(1, "1e-6", method=method)
            assert set(model.sample(20, seed=1)["one"]) == {"x"}
        with pytest.raises(ArgumentError, match="max_bytes"):
            session.table("t").synthesis(1, "1e-6", max_bytes=1000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "magic"}, "method"),
        ({"workload": [["sex", "nope"]]}, "workload: no column 'nope'"),
        ({"workload": [["sex", "sex"]]}, "twice"),
        ({"workload": 9}, "more than the 5"),
        ({"workload": 0}, "workload"),
        ({"workload": []}, "workload"),
        ({"workload": "sex"}, "workload"),
        ({"workload": {("sex",): 0}}, "weight"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_bytes": 2**70}, r"max_bytes must be at most .* no more memory may be taken here"),
        ({"columns": ["nope"]}, "nope"),
        ({"cells": 0}, "cells"),
        ({"max_rows": 3}, "max_rows"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta must be above 0"),
        ({"delta": 1}, "delta"),
        ({"epsilon": True}, "epsilon"),
    ],
)
def test_bad_input_is_refused_before_the_charge(session, given, says):
    """By the argument that is wrong; nothing is spent."""
    with pytest.raises(dt.errors.DitherError, match=says):
        session.table("people").synthesize(**{"epsilon": 1, "delta": "1e-6"} | given)
    assert session.balance()[0].spent.free


def test_no_model_is_allowed_more_memory_than_there_is(tmp_path, monkeypatch):
    """Nor a rule of combinations, whose table is made first: that ended in a MemoryError. Where a
    process may have less than the machine, that is what holds."""
    columns = {name: {"values": list(range(100))} for name in "abcdefghijkl"}
    frame = pl.DataFrame({name: [1] * 20 for name in columns})
    budget = {"epsilon": 100, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")}
    made = {"budget": budget, "tables": {"t": {"columns": columns}}}
    rules = [{"columns": list(columns), "allowed": [[1] * len(columns)]}]
    with dt.open(made, sources={"t": frame}) as session:
        for given in ({"rules": rules}, {}):
            with pytest.raises(ArgumentError, match="max_bytes must be at most"):
                session.table("t").synthesis(1, "1e-6", max_bytes=2**70, **given)
        with pytest.raises(ArgumentError, match="more cells than max_bytes has room for"):
            session.table("t").synthesis(1, "1e-6", rules=rules)
        monkeypatch.setattr("resource.getrlimit", lambda _: (2**20, 2**20))
        assert session.table("t").synthesis(1, "1e-6", max_bytes=2**20)
        with pytest.raises(
            ArgumentError, match=r"max_bytes must be at most 1,048,576, about 2\*\*20"
        ):
            session.table("t").synthesis(1, "1e-6", max_bytes=2**20 + 1)


def test_more_than_the_budget_is_refused(tmp_path):
    """Nothing is spent."""
    with opened(tmp_path, people(50), epsilon=1) as session:
        with pytest.raises(BudgetError):
            session.table("people").synthesize(2, "1e-6")
        assert session.balance()[0].spent.free


def test_a_column_without_a_domain_is_refused(session, tmp_path):
    """With what to declare."""
    frame = people(20).with_columns(name=pl.lit("somebody"))
    with opened(tmp_path, frame) as other, pytest.raises(BoundsError, match=r"name: .* values = "):
        other.table("people").synthesize(1, "1e-6")


def test_samples_are_refused_by_argument(session):
    """Counts, seeds and columns that cannot be."""
    model = session.table("people").synthesize(1, "1e-6", method="independent", cells=4)
    for given in ({"n": -1}, {"n": 1.5}, {"n": True}, {"seed": -1}, {"n": 2**40}):
        with pytest.raises(ArgumentError):
            model.sample(**given)
    for columns in ([], ["nope"], ["sex", "sex"]):
        with pytest.raises(ArgumentError):
            model.marginal(columns)
    with pytest.raises(ArgumentError):
        model.marginal(["sex"], confidence=1)


def test_progress_is_told(session):
    """Rising to all of the budget; what is left of the time is guessed."""
    told = []
    session.table("people").synthesize(1, "1e-6", cells=6, progress=told.append)
    shares = [p.share for p in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert told[-1].remaining == pytest.approx(0, abs=1e-6)


def test_units_with_many_rows_are_cut_and_said(tmp_path):
    """One unit moves a table by max_rows, so the noise grows with it."""
    columns = {"sex": COLUMNS["sex"], "ill": COLUMNS["ill"]}
    frame = people(300).with_columns(who=pl.Series(np.arange(300) // 3)).select("who", *columns)
    table = {"unit": "who", "max_groups": 1, "max_rows": 2, "columns": columns}
    budget = {"epsilon": 10**7, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")}
    with dt.open({"budget": budget, "tables": {"t": table}}, sources={"t": frame}) as session:
        model = session.table("t").synthesize(10**6, "1e-6", method="mst")
        assert model.total == pytest.approx(200, abs=1)
        assert "at most 2 rows count" in str(model)
        assert model.columns == ("sex", "ill")


def test_pairs_of_a_model_are_near_those_of_the_table(session):
    """With much budget, pairs that were asked for are right."""
    model = session.table("people").synthesize(
        1000,
        "1e-6",
        workload=[["age", "ill"], ["sex", "ill"]],
        cells=8,
        columns=["age", "sex", "ill"],
    )
    rows, real = model.sample(3000, seed=1), people()
    bins = [pl.col("age") // 13, pl.col("ill"), pl.col("sex")]
    for a, b in combinations(bins, 2):
        counts = [f.group_by(a.alias("a"), b.alias("b")).len().sort("a", "b") for f in (rows, real)]
        both = counts[0].join(counts[1], on=["a", "b"], how="full", coalesce=True).fill_null(0)
        assert (both["len"] - both["len_right"]).abs().sum() / 6000 < 0.05


def test_aim_measures_pairs_whose_values_are_mostly_rare(tmp_path):
    """Two columns of 100 values, of which few occur, are measured together: 25 cells, not 10,000.

    Of all of these the noise adds up to more than any two tables of so many rows are apart.
    """
    draw = np.random.default_rng(1)
    left = draw.integers(0, 4, 5000) * 20
    right = np.where(draw.random(5000) < 0.9, left, draw.integers(0, 4, 5000) * 20)
    frame = pl.DataFrame({"left": left, "right": right})
    listed = {"values": list(range(100)), "nullable": False}
    budget = {"epsilon": 9, "delta": "1e-5", "ledger": str(tmp_path / "own.ledger")}
    policy = {"budget": budget, "tables": {"t": {"columns": {"left": listed, "right": listed}}}}
    with dt.open(policy, sources={"t": frame}) as session:
        model = session.table("t").synthesize(1, "1e-6", method="aim")
    assert ("left", "right") in model.measured
    rows = model.sample(5000, seed=1)
    assert (rows["left"] == rows["right"]).mean() > 0.7


def test_progress_that_raises_ends_no_run(session):
    """It is paid for: a warning, once, and the model all the same."""
    told = []

    def progress(found):
        told.append(found)
        raise KeyError("somewhere else")

    with pytest.warns(UserWarning, match="progress raised KeyError"):
        model = session.table("people").synthesize(1, "1e-6", method="mst", progress=progress)
    assert len(told) == 1
    assert model.sample(3).height == 3


@pytest.mark.parametrize("method", ["mst", "independent"])
def test_where_the_budget_went(session, tmp_path, method):
    """Shares of what was measured add up to what was not spent on choices; a picture of them."""
    model = session.table("people").synthesize(epsilon=1, method=method)
    assert model.spending["columns"].to_list() == [list(names) for names in model.measured]
    share = model.spending["share"].sum()
    assert share == pytest.approx(1 if method == "independent" else 7 / 8, rel=1e-9)
    model.plot(tmp_path / "spent.png")
    assert (tmp_path / "spent.png").stat().st_size > 10_000


def test_edges_are_those_between_cells(session):
    """Of columns in bins or periods: compared by them, an independent model has its columns right.

    Numbers on a step stay in their bin, which the nearest multiple may not be in.

    3,000 rows at epsilon 20: noise moves a share by far less than 0.02.
    """
    model = session.table("people").synthesize(epsilon=20, method="independent")
    assert model.edges
    for name, inner in model.edges.items():
        assert len(inner) == model.domain[name].inner - 1
    found = dt.synth.compare(people(), model.sample(3000, seed=1), bins=model.edges, ways=1)
    for names, far in found.tables.select("columns", "distance").iter_rows():
        if names[0] in model.edges:
            assert far < 0.02


def test_a_refusal_says_what_would_fit(tmp_path):
    """Beside what was spent before; and that epsilon fits, while one a tenth larger does not."""
    with opened(tmp_path, people(200), epsilon=1) as session:
        table = session.table("people")
        table.synthesize("0.7", "1e-6", method="independent", cells=4)
        with pytest.raises(BudgetError, match="fits with epsilon = ") as refused:
            table.synthesize(1, "1e-6", method="independent", cells=4)
        fits = F(str(refused.value).rsplit("= ", 1)[1].rstrip("."))
        with pytest.raises(BudgetError):
            table.synthesize(fits * F(11, 10), "1e-6", method="independent", cells=4)
        table.synthesize(fits, "1e-6", method="independent", cells=4)
