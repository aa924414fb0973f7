"""Combinations that cannot be, and known counts: kept exactly, or refused before the charge."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError
from dither.synth.model._graph import GraphModel, NoisyMarginal

COLUMNS = {
    "age": {"bins": [0, 15, 30, 100], "nullable": False},
    "married": {"nullable": False},
    "sex": {"values": ["f", "m"], "nullable": False},
    "region": {"values": ["n", "s", "e"], "nullable": False},
}
CHILDREN = {"age": (0, 15), "married": True}


def people(rows=2000):
    """Simulated: nobody under 15 is married."""
    draw = np.random.default_rng(3)
    age = draw.integers(0, 100, rows)
    return pl.DataFrame(
        {
            "age": age,
            "married": (draw.random(rows) < 0.5) & (age >= 15),
            "sex": draw.choice(["f", "m"], rows),
            "region": draw.choice(["n", "s", "e"], rows, p=[0.6, 0.3, 0.1]),
        }
    )


@pytest.fixture
def rows(tmp_path):
    """A table on the way to a question."""
    budget = {"epsilon": 1000, "delta": "1e-5", "ledger": str(tmp_path / "l.ledger")}
    made = {"budget": budget, "tables": {"people": {"columns": COLUMNS}}}
    with dt.open(made, sources={"people": people()}) as session:
        yield session.table("people")


@pytest.mark.parametrize("method", ["aim", "mst", "independent"])
def test_what_cannot_be_is_in_no_row(rows, method, tmp_path):
    """However much noise there is; also of a model that was saved."""
    model = rows.synthesize("1/5", "1e-6", method=method, zeros=[CHILDREN])
    loaded = dt.synth.load(model.save(tmp_path / "people.model"))
    for found in (model, loaded):
        sample = found.sample(5000, seed=1)
        assert sample.filter((pl.col("age") < 15) & pl.col("married")).is_empty()
        assert not sample.filter(pl.col("married")).is_empty()
    assert "combinations that cannot be" in str(model)


@pytest.mark.parametrize("method", ["aim", "mst", "independent"])
def test_known_tables_are_exact(rows, method):
    """To a thousandth of a row, and nothing is spent on columns that are known."""
    known = {
        ("sex", "region"): {("f", "n"): 700, ("f", "s"): 200, ("m", "n"): 500, ("m", "e"): 600}
    }
    model = rows.synthesize("1/5", "1e-6", method=method, known=known, zeros=[CHILDREN])
    table = model.marginal(["sex", "region"])
    for (sex, region), count in known["sex", "region"].items():
        assert table.filter(sex=sex, region=region)["count"][0] == pytest.approx(count, abs=1e-3)
    assert table.filter(sex="f", region="e")["count"][0] < 1e-3
    assert model.total == 2000
    assert ("sex",) not in model.measured[:2]
    assert len(model.sample()) == 2000


def test_a_public_total_is_kept(rows):
    """As many rows as it says."""
    model = rows.synthesize(1, "1e-6", method="mst", total=1234)
    assert model.public_size
    assert len(model.sample()) == 1234


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"zeros": [{"age": (0, 100)}]}, "leave no row"),
        ({"zeros": [{"married": True}, {"married": False}]}, "leave no row"),
        ({"zeros": [{"age": (0, 10), "married": True}]}, "one edge of its bins"),
        ({"zeros": [{"age": 7}]}, "pair of a lower"),
        ({"zeros": [{"nope": 1}]}, "no column 'nope'"),
        ({"zeros": [{"sex": "x"}]}, "in none of its cells"),
        ({"zeros": [{}]}, "must map"),
        ({"zeros": CHILDREN}, "must be a list"),
        ({"known": {"sex": {"f": 10, "x": 1}}}, "in none of its cells"),
        ({"known": {"sex": {"f": -1}}}, "count"),
        ({"known": {"sex": {}}}, "must not all be 0"),
        ({"known": {"sex": {"f": 10}}, "total": 11}, "total must agree"),
        ({"known": {"sex": {"f": 10}, "region": {"n": 11}}}, "one number of rows"),
        (
            {"known": {"sex": {"f": 5, "m": 5}, ("sex", "region"): {("f", "n"): 10}}},
            "contradict one another in sex",
        ),
        (
            {"known": {"married": {True: 3, False: 1}}, "zeros": [{"married": True}]},
            "that zeros forbid",
        ),
        ({"total": 0}, "total"),
        ({"total": -3}, "total"),
    ],
)
def test_contradictions_are_refused(rows, given, says):
    """Before anything is charged."""
    with pytest.raises(ArgumentError, match=says):
        rows.synthesis(1, "1e-6", **given)


def test_a_fit_keeps_to_what_is_forbidden():
    """Against a table that measures what cannot be: nothing there, and the gap is certified."""
    mask = np.array([[True, False], [False, False]])
    model = GraphModel([2, 2, 2], [(0, 1), (1, 2)], 100, {(0, 1): mask})
    measured = [
        NoisyMarginal((0, 1), np.array([[40.0, 20.0], [30.0, 10.0]]), 1.0),
        NoisyMarginal((1, 2), np.array([[20.0, 30.0], [10.0, 40.0]]), 1.0),
    ]
    model.fit(measured, most=3000)
    found = model.marginal((0, 1))
    assert found[0, 0] < 1e-100
    assert found.sum() == pytest.approx(100)
    assert model.gap < 0.1
    assert model.widened((0, 2)).marginal((0, 1))[0, 0] < 1e-100


@pytest.mark.parametrize("method", ["aim", "mst"])
def test_columns_are_held_as_given(rows, method):
    """Row by row; the others follow from them as the model says."""
    model = rows.synthesize(500, "1e-6", method=method, zeros=[CHILDREN])
    given = pl.DataFrame({"age": [5] * 300 + [50] * 300, "sex": ["f", "m"] * 300})
    found = model.sample(seed=1, given=given)
    assert found.select("age", "sex").equals(given)
    assert found.columns == list(COLUMNS)
    assert not found[:300]["married"].any()
    assert 0.35 < found[300:]["married"].mean() < 0.65
    for wrong, says in (
        (pl.DataFrame({"nope": [1]}), "no column"),
        (pl.DataFrame({"sex": ["x"]}), "in none of its cells"),
        (pl.DataFrame({"age": [5], "married": [True]}), "forbid"),
        ([1], "Polars frame"),
    ):
        with pytest.raises(ArgumentError, match=says):
            model.sample(given=wrong)
    with pytest.raises(ArgumentError, match="left out"):
        model.sample(3, given=given)
