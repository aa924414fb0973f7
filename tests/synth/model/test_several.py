"""Several data sets of one release: the combining rule, what sets differ by, and refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dither as dt
from dither.errors import ArgumentError
from dither.synth import combined
from dither.synth._spending import MeasuredTable
from dither.synth.model._conditional import GivenRows
from dither.synth.model._graph import GraphModel
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements
from dither.synth.model._several import mirrored


def test_the_rule_is_that_of_the_books():
    """Mean, (1 + 1/m) B and Student's law; mappings, lists and numbers."""
    found = combined([{"a": 1.0, "b": 5}, {"a": 2.0, "b": 5}, {"a": 4.5, "b": 5}])
    error = np.sqrt(4 / 3 * np.var([1, 2, 4.5], ddof=1))
    reach = stats.t.ppf(0.975, 2) * error
    assert found.estimates == (2.5, 5.0)
    assert found.deviations[0] == pytest.approx(error)
    assert (found.lower[0], found.upper[0]) == pytest.approx((2.5 - reach, 2.5 + reach))
    assert found.frame.columns == [*("name", "estimate", "deviation", "lower", "upper"), "measured"]
    assert found.frame["measured"].to_list() == [None, None]
    assert combined([1, 2]).names == ("estimate",)
    assert combined([[1, 2], [3, 4]]).names == ("estimate 1", "estimate 2")
    assert "of 3 data sets, at 95 %" in repr(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1.0], "at least two"),
        ("12", "at least two"),
        ([1.0, float("nan")], "finite"),
        ([{"a": 1}, {"b": 1}], "same names"),
        ([[1], [1, 2]], "same names"),
        ([{"a": "x"}, {"a": "y"}], "must be numbers"),
        ([[], []], "must be numbers"),
        ([10**400, 1], "must be numbers"),
    ],
)
def test_what_cannot_be_combined_is_refused(given, words):
    """By name."""
    with pytest.raises(ArgumentError, match=words):
        combined(given)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of one pair, measured as named; epsilon 1."""
    draw = np.random.default_rng(3)
    a = draw.integers(0, 3, 2000)
    rows = pl.DataFrame({"a": a, "b": draw.random(2000) < 0.2 + 0.2 * a, "c": a > 1})
    columns = {"a": {"values": [0, 1, 2]}, "b": {}, "c": {}}
    for body in columns.values():
        body["nullable"] = False
    folder = tmp_path_factory.mktemp("several")
    made = {
        "budget": {"epsilon": 100, "delta": "1e-4", "ledger": str(folder / "l.ledger")},
        "tables": {"rows": {"columns": columns}},
    }
    with dt.open(made, sources={"rows": rows}) as session:
        table = session.table("rows")
        with pytest.raises(ArgumentError, match="workload is missing"):
            table.synthesis(1, "1e-6", method="workload")
        with pytest.raises(ArgumentError, match="more cells than max_bytes"):
            table.synthesis(1, "1e-6", method="workload", workload=3, max_bytes=64)
        yield table.synthesize(1, "1e-6", method="workload", workload=[["a", "b"]])


def test_named_tables_are_measured_and_no_others(model):
    """A column in none of them by itself."""
    assert model.measured == [("a", "b"), ("c",)]


@pytest.mark.slow
def test_sets_differ_by_noise_and_by_people(model):
    """The deviation of a share: of noise alone about the rows, with people's about people."""
    share = lambda frame: frame["b"].mean()  # noqa: E731
    rows = model.analyse(share, sets=30, about="rows", seed=1)
    people = model.analyse(share, sets=30, seed=1)
    noise = model._found.measured[0].deviation * np.sqrt(3 * 0.4**2 + 3 * 0.6**2) / model.total
    assert rows.deviations[0] == pytest.approx(noise, rel=0.5)
    both = np.hypot(noise, np.sqrt(0.24 / 2000))
    # Of 30 sets a deviation is off by an eighth, and by a half once in 10^4 runs.
    assert people.deviations[0] == pytest.approx(both, rel=0.5)
    assert abs(people.estimates[0] - 0.4) < 5 * both
    again = model.analyse(share, sets=3, seed=2)
    assert again == model.analyse(share, sets=3, seed=2)


@pytest.mark.parametrize(
    ("asked", "words"),
    [({"sets": 1}, "sets"), ({"about": "all"}, "about"), ({"sets": 10**6}, "sets")],
)
def test_sets_are_refused_by_name(model, asked, words):
    """Fewer than two, too many, or about nothing that is known."""
    with pytest.raises(ArgumentError, match=words):
        model.samples(**asked)


def test_an_analysis_is_a_function(model):
    """What is none is refused before data sets are drawn."""
    with pytest.raises(ArgumentError, match="analysis must be a function"):
        model.analyse("mean")


@pytest.mark.parametrize("value", [77_013, None, "x", object()])
def test_given_rows_are_not_shown(model, value):
    """A value that is in no cell may be of a table that was handed over by mistake."""
    given = pl.DataFrame({"a": pl.Series([1, value], dtype=pl.Object)})
    with pytest.raises(ArgumentError, match=r"in none of its cells, 0, 1, 2$"):
        model.sample(given=given)


def test_rows_beside_given_ones_have_the_model_s_law():
    """Five columns, a zero and a cycle: every conditional chance, but for rounding."""
    draw = np.random.default_rng(0)
    sizes, zero = [2, 3, 2, 3, 2], {(0, 2): np.array([[True, False], [False, False]])}
    model = GraphModel(sizes, [(0, 1), (1, 2, 3), (3, 4), (0, 2)], 100, zero)
    for clique in model.cliques:
        model._potentials[clique] = draw.normal(0, 1.5, model.tree.shape(clique))
    model.beliefs = model._inferred(model._potentials)
    law = model.marginal((0, 1, 2, 3, 4))
    for held in ((), (1,), (0, 4), (0, 2), (0, 1, 2, 3, 4)):
        n = 20_000
        given = {v: draw.integers(0, sizes[v], n) for v in held}
        rows, good = GivenRows(model).rows(given, n, draw)
        for kind in np.ndindex(*(sizes[v] for v in held)):
            inside = np.ones(n, bool)
            at = [slice(None)] * 5
            for v, cell in zip(held, kind, strict=True):
                inside &= given[v] == cell
                at[v] = slice(cell, cell + 1)
            chances = law[tuple(at)]
            possible = chances.sum() > 1e-9
            assert (good[inside] == possible).all()
            if possible:
                counts = np.zeros(sizes)
                np.add.at(counts, tuple(rows[inside].T), 1)
                # Whole numbers next to what was expected, clique by clique.
                off = counts[tuple(at)] - chances / chances.sum() * inside.sum()
                assert np.abs(off).max() <= 8


@pytest.fixture(scope="module")
def diagonal(tmp_path_factory):
    """A model of two columns of five values, and how to fit it to other counts."""
    columns = {name: {"values": [0, 1, 2, 3, 4], "nullable": False} for name in "ab"}
    folder = tmp_path_factory.mktemp("diagonal")
    made = {
        "budget": {"epsilon": 100, "delta": "1e-4", "ledger": str(folder / "l.ledger")},
        "tables": {"rows": {"columns": columns}},
    }
    rows = pl.DataFrame({"a": [0, 1, 2, 3, 4], "b": [0, 1, 2, 3, 4]})
    with dt.open(made, sources={"rows": rows}) as session:
        model = session.table("rows").synthesize(1, "1e-6", method="workload", workload=2)

    def of(counts, deviation):
        table = MeasuredTable((0, 1), counts, Fraction(deviation) ** 2)
        return model._with(FittedModel.of((5, 5), Measurements([table])))

    return of


def slope(frame):
    """Of b on a."""
    a, b = (frame[name].to_numpy().astype(float) for name in "ab")
    return float(np.cov(a, b)[0, 1] / a.var(ddof=1))


def noisy_diagonal(draw, people, deviation):
    """Counts of people whose two values are one, with noise; 20 of 25 cells are empty."""
    counts = np.diag(np.bincount(draw.integers(0, 5, people), minlength=5))
    return counts + np.rint(draw.normal(0, deviation, (5, 5))).astype(int)


def test_a_mirror_takes_away_what_cutting_off_adds(diagonal):
    """Over 12 releases the slope, which is 1, is missed by much, and corrected by little."""
    draw = np.random.default_rng(4)
    found = []
    for _ in range(12):
        model = diagonal(noisy_diagonal(draw, 1000, 25), 25)
        mirror = model._with(mirrored(model._fitted))
        a, b = (slope(one.sample(2000, seed=draw)) for one in (model, mirror))
        found.append((a, 2 * a - b))
    plain, better = np.mean(found, axis=0)
    # The deviation of a mean of 12 is about 0.02.
    assert plain < 0.93
    assert abs(better - 1) < 0.07


def test_where_counts_are_large_a_mirror_shows_the_same(diagonal):
    """And with a noise that cuts nothing off."""
    counts = np.random.default_rng(5).integers(400, 900, (5, 5))
    model = diagonal(counts, 10)
    twice = mirrored(model._fitted)
    assert np.abs(twice.marginal((0, 1)) - model._fitted.marginal((0, 1))).max() < 1
    # And the model is what was measured: nothing was cut off.
    assert np.abs(model._fitted.marginal((0, 1)) - counts).max() < 1


@pytest.mark.slow
def test_intervals_cover_beside_empty_cells(diagonal):
    """12 releases: those of `analyse` do, those that take rows for people do not."""
    draw = np.random.default_rng(6)
    aware = naive = 0
    for _ in range(12):
        model = diagonal(noisy_diagonal(draw, 1000, 25), 25)
        found = model.analyse(slope, sets=4, seed=draw)
        aware += found.lower[0] <= 1 <= found.upper[0]
        rows = model.sample(1000, seed=draw)
        fitted = stats.linregress(rows["a"].to_numpy(), rows["b"].to_numpy())
        naive += abs(fitted.slope - 1) <= 1.96 * fitted.stderr
    # At .95 each, fewer than 9 of 12 cover once in 5,000 runs.
    assert aware >= 9
    assert naive <= 6
