"""Logistic regression: what a row can do in every round, and what it predicts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Target
from dither.inference.regression._descent import DescentRelease, WeightedRows
from dither.inference.regression._formula import MISSING
from dither.inference.regression._objective import ObjectiveRelease
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("radius", [Fraction(17, 10), Fraction(1)])
def test_no_row_moves_further_than_proved(neighbours: Neighbours, radius: Fraction) -> None:
    """Two numbers on a grid, both answers, a missing row: matrices and scores, and all together."""
    asked = Target(Fraction(1), Fraction(1, 10**6), neighbours)
    design = DescentRelease(2, 2, asked, radius)
    steps, r2 = Bounds.steps, float(radius) ** 2
    grid = itertools.product([-1, -0.5, 0, 0.7, 1], [-1, 0.3, 1], [-1, 1])
    points = np.array([[int(v * steps) for v in row] for row in grid] + [[MISSING] * 3])
    each = [WeightedRows.of(row[None], radius) for row in points]
    replaced = neighbours is Neighbours.REPLACE

    def moved(shares: Any) -> float:
        given = np.array([[float(v) for v in row] for row in shares])
        gaps = given
        if replaced:
            gaps = (given[:, None] - given).reshape(-1, given.shape[1])
        return float((gaps**2).sum(1).max())

    matrix, score = (1.0, 4.0) if replaced else (0.5, 1.0)
    assert moved(rows.gram(rows.weights) for rows in each) <= matrix * r2**2
    assert moved(rows.score(np.zeros(3)) for rows in each) <= score * r2 / 4
    for slopes in (np.zeros(3), np.array([40.0, -90.0, 3.0]), np.array([0.1, 0.5, -2.0])):
        assert moved(rows.score(slopes) for rows in each) <= score * r2
        assert moved(rows.information(slopes) for rows in each) <= matrix * r2 * 3 / 16
    largest = moved(rows.score(np.array([40.0, -90.0, 3.0])) for rows in each)
    assert largest > 0.7 * score * r2
    exact = Fraction(score).limit_denominator(), Fraction(matrix).limit_denominator()
    assert 0.999 < design.moved(exact[1], int(score), Fraction(3)) <= 1
    assert design.loss.charge.epsilon == 1
    assert design.loss.epsilon(delta=1e-6) <= 1


def test_noise_of_one_score_in_every_round_is_caught() -> None:
    """The classic mistake: rounds that each cost what all of them may."""
    asked = Target(Fraction(1), Fraction(1, 100), Neighbours.ADD_REMOVE)
    design = DescentRelease(0, 0, asked, Fraction(1))

    def run(points: Any, size: int) -> Any:
        rows = WeightedRows.of(points, design.radius)
        exact = float(rows.score(np.array([-30.0]))[0])
        sigma = design.noise.variance**0.5
        return (exact + np.random.default_rng().normal(0, sigma, (size, 4))).sum(axis=1)

    pair = [np.full((k, 1), Bounds.steps) for k in (1, 2)]
    found = audit(run, *pair, 1, Fraction(1, 100), samples=60_000)
    assert found.verdict is Outcome.VIOLATED


def test_a_rows_share_does_not_depend_on_where_it_stands() -> None:
    """The sum of many rows is that of each alone, exactly, in any order."""
    rng = np.random.default_rng(2)
    points = rng.integers(-Bounds.steps, Bounds.steps + 1, (257, 4))
    points[:, -1] = np.where(points[:, -1] > 0, Bounds.steps, -Bounds.steps)
    slopes = rng.normal(0, 3, 4)

    def total(rows: Any) -> list[Fraction]:
        weighted = WeightedRows.of(rows, Fraction(5, 4))
        return [*weighted.score(slopes), *weighted.information(slopes)]

    each = [total(row[None]) for row in points]
    assert total(points[::-1]) == [sum(column, Fraction(0)) for column in zip(*each, strict=True)]


def _densities(signs: list[int], ridge: float, sigma: float, at: Any) -> Any:
    """Of the minimiser over rows that are the intercept alone."""
    wrong = [1 / (1 + np.exp(s * at)) for s in signs]
    b = sum((s * p for s, p in zip(signs, wrong, strict=True)), 0.0) - ridge * at
    slope = ridge + sum(p * (1 - p) for p in wrong)
    return np.exp(-((b / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi)) * slope


def _lost(first: Any, second: Any, epsilon: float, width: float) -> float:
    return float(np.maximum(first - np.exp(epsilon) * second, 0).sum() * width)


PAIRS = {
    Neighbours.ADD_REMOVE: [([], [1]), ([1, 1, -1], [1, 1]), ([1] * 9, [1] * 8)],
    Neighbours.REPLACE: [([1], [-1]), ([1, 1, -1], [1, 1, 1]), ([1] * 9, [1] * 8 + [-1])],
}


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_the_delta_of_a_minimiser_is_below_what_is_proved(
    neighbours: Neighbours, epsilon: Fraction
) -> None:
    """By integrals over its exact densities; and the noise is not much more than is needed."""
    delta = Fraction(1, 100)
    design = ObjectiveRelease(0, 0, Target(epsilon, delta, neighbours), Fraction(1))
    ridge, sigma = float(design.ridge), design.slope.sigma
    at = np.linspace(-12, 12, 400_001) * max(1.0, sigma / ridge)
    width, e, worst = float(at[1] - at[0]), float(epsilon), 0.0
    for pair in PAIRS[neighbours]:
        a, b = (_densities(signs, ridge, sigma, at) for signs in pair)
        assert a.sum() * width == pytest.approx(1, abs=1e-6)
        worst = max(worst, _lost(a, b, e, width), _lost(b, a, e, width))
    assert worst <= float(delta)
    if neighbours is Neighbours.ADD_REMOVE:
        # Of all that leaves this is the larger part. Rows that are the intercept alone cannot be
        # opposite to each other, so that replacing one does not use the whole bound.
        assert worst > float(delta) / 30
    assert design.loss.charge.epsilon == epsilon
    assert design.loss.charge.delta == delta


def test_a_ridge_that_is_too_small_is_seen() -> None:
    """The classic mistake: to forget that determinants differ too."""
    target = Target(Fraction(1), Fraction(1, 10**6), Neighbours.ADD_REMOVE)
    design = ObjectiveRelease(0, 0, target, Fraction(1))
    sigma, ridge = design.slope.sigma, float(design.ridge) / 20
    at = np.linspace(-400, 400, 4_000_001)
    a, b = (_densities(signs, ridge, sigma, at) for signs in ([1], []))
    assert _lost(a, b, 1.0, float(at[1] - at[0])) > 1e-6


def test_minimisers_are_as_exact_as_promised() -> None:
    """The slope of the whole objective, computed apart, is shorter than half of the tolerance."""
    rng = np.random.default_rng(3)
    for n, epsilon in ((0, 1), (40, 10), (3000, 100)):
        target = Target(Fraction(epsilon), Fraction(1, 10**6), Neighbours.REPLACE)
        design = ObjectiveRelease(2, 2, target, Fraction(13, 10))
        points = rng.integers(-Bounds.steps, Bounds.steps + 1, (n, 3))
        points[:, 2] = np.where(points[:, 0] > 0, Bounds.steps, -Bounds.steps)
        rows = WeightedRows.of(points, design.radius)
        b = rng.normal(0, design.slope.sigma, 3)
        at, u = design.minimised(rows, b), rows.regressors / Bounds.steps
        wrong = rows.weights * rows.signs / (1 + np.exp(rows.signs * (u @ at)))
        slope = -(u * wrong[:, None]).sum(axis=0) + float(design.ridge) * at + b
        assert np.linalg.norm(slope) <= float(design.tolerance) * 0.51


@pytest.mark.parametrize("method", ["descent", "objective"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_hold_as_often_as_they_say(neighbours: Any, method: str) -> None:
    """Coefficients where noise is half of the error: 100 runs; a true .95 fails once in 10⁴."""
    rng, truth = np.random.default_rng(8), np.array([0.5, 1.0, -1.0])
    held, widths = np.zeros(3), []
    for _ in range(100):
        x, z = rng.uniform(-1, 1, 2000), np.clip(rng.normal(0, 0.4, 2000), -1, 1)
        chance = 1 / (1 + np.exp(-(0.5 + x - z)))
        found = inference.logistic_regression(
            "y ~ x + z",
            {"x": x, "z": z, "y": rng.random(2000) < chance},
            bounds={"x": (-1, 1), "z": (-1, 1)},
            epsilon=1,
            delta=1e-6,
            neighbours=neighbours,
            method=method,
        ).simulated(draws=200)
        ends = found.interval()
        held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        widths.append(ends[1, 1] - ends[1, 0])
    assert (held >= 86).all()
    assert np.median(widths) < 1.5


def _steep(rng: np.random.Generator, n: int, epsilon: float, method: str) -> Any:
    """Answers that turn from nearly never to nearly always: 8.75 of log odds between the rows."""
    age = rng.uniform(20, 90, n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 8))
    return inference.logistic_regression(
        "ill ~ age",
        {"age": age, "ill": ill},
        bounds={"age": (0, 100)},
        epsilon=epsilon,
        delta=1e-6,
        method=method,
    ).simulated(draws=200)


@pytest.mark.parametrize("method", ["descent", "objective"])
def test_steep_slopes_are_not_drawn_towards_0(method: str) -> None:
    """40 tables: a true .95 fails once in 10⁶. Steps that stop short hold 1 in 12."""
    rng, truth, held, off = np.random.default_rng(5), np.array([-7.5, 0.125]), np.zeros(2), 0.0
    for _ in range(40):
        found = _steep(rng, 20_000, 1, method)
        ends = found.interval()
        assert all(found.valid.values())
        held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        off += (found.params["age"] - 0.125) / 40
    assert (held >= 30).all()
    # The mean errs by .0004 to .0005 by chance; where rounds stop short, by .008.
    assert abs(off) < 0.003


@pytest.mark.parametrize("method", ["descent", "objective"])
def test_an_interval_that_is_not_valid_says_so(method: str) -> None:
    """Few rows and steep slopes: infinite, or marked, or right. 40 tables, as above."""
    rng, right, marked = np.random.default_rng(6), 0, 0
    for _ in range(40):
        found = _steep(rng, 400, 1, method)
        lower, upper = found.conf_int()["age"]
        marked += not found.valid["age"]
        right += (not found.valid["age"]) or lower <= 0.125 <= upper
        assert found.valid["age"] == all("age are not valid" not in note for note in found.notes)
    assert right >= 30
    assert marked > 0


def test_without_noise_it_is_maximum_likelihood() -> None:
    """At an epsilon so large that noise is nothing, statsmodels' numbers."""
    smf = pytest.importorskip("statsmodels.formula.api")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"x": rng.uniform(0, 4, 4000), "g": rng.choice(["a", "b"], 4000)})
    odds = np.exp(-1 + 0.7 * frame.x - 0.8 * (frame.g == "b"))
    frame["y"] = (rng.random(4000) < odds / (1 + odds)).astype(int)
    theirs = smf.logit("y ~ x + C(g)", frame).fit(disp=0)
    for method in ("descent", "objective"):
        ours = inference.logistic_regression(
            "y ~ x + C(g)",
            frame,
            bounds={"x": (0, 4)},
            levels={"g": ["a", "b"]},
            epsilon=10_000,
            delta=1e-6,
            method=method,
            radius=1,
        )
        for name, value in theirs.params.items():
            assert ours.params[name] == pytest.approx(value, abs=0.03)
            assert ours.bse[name] == pytest.approx(theirs.bse[name], rel=0.12)
            assert ours.pvalues[name] < 0.01


def test_it_finds_the_coefficients_where_noise_is_little() -> None:
    """Close to what was simulated, at an epsilon of 100; signs at 1."""
    rng = np.random.default_rng(4)
    x, g = rng.uniform(0, 10, 30_000), rng.choice(["a", "b"], 30_000)
    chance = 1 / (1 + np.exp(-(-2 + 0.4 * x + (g == "b"))))
    frame = {"y": rng.random(30_000) < chance, "x": x, "g": g}
    for epsilon, off in ((100, 0.25), (1, 0.8)):
        found = inference.logistic_regression(
            "y ~ x + C(g)",
            frame,
            bounds={"x": (0, 10)},
            levels={"g": ["a", "b"]},
            epsilon=epsilon,
            delta=1e-6,
        )
        params = found.params
        assert params["x"] == pytest.approx(0.4, abs=off / 2)
        assert params["C(g)[T.b]"] == pytest.approx(1.0, abs=2 * off)


def test_breast_cancer() -> None:
    """Nine in ten of unseen tumours at an epsilon of 1, on average over eight splits."""
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.load_breast_cancer(return_X_y=True)
    names, right = [f"x{j}" for j in range(x.shape[1])], []
    ends = dict(zip(names, zip(x.min(0), x.max(0), strict=True), strict=True))
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.split(order, [455])
        made = inference.logistic_regression(
            "y ~ " + " + ".join(names),
            {**dict(zip(names, x[train].T, strict=True)), "y": y[train]},
            bounds=ends,
            epsilon=1,
            delta=1e-6,
            neighbours="add-remove",
        )
        guessed = made.predict(dict(zip(names, x[test].T, strict=True))) > 0.5
        right.append(float((guessed == y[test]).mean()))
    assert np.mean(right) > 0.87


@pytest.mark.parametrize("method", ["descent", "objective"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("x", [[], [1.0], [None] * 9, [float("inf")] * 30, [2.0] * 50])
def test_no_data_raise_anything(x: list[Any], neighbours: Any, method: str, tmp_path: Path) -> None:
    """Constant, missing, one row or none; and what is shown of it."""
    found = inference.logistic_regression(
        "y ~ x",
        {"y": x, "x": x},
        bounds={"x": (0, 9)},
        epsilon=1,
        delta=1e-6,
        neighbours=neighbours,
        method=method,
    ).simulated(draws=200)
    ends = found.interval()
    assert np.isfinite(found.estimate).all()
    assert (ends[:, 0] <= found.estimate).all()
    assert (found.estimate <= ends[:, 1]).all()
    assert ((found.predict({"x": [1, None]}) >= 0) & (found.predict({"x": [1, 2]}) <= 1)).all()
    assert "logistic regression y ~ x" in found.summary()
    found.plot(tmp_path / "a.png")


def test_arguments_are_checked() -> None:
    """Before any data are read."""
    for more, told in (
        ({"delta": 0}, "delta must be above 0"),
        ({"formula": "log(y) ~ x"}, "name of a column of yes and no"),
        ({"radius": 2}, "radius"),
        ({"method": "newton"}, "method"),
        ({"method": "objective", "delta": 0}, "delta must be above 0"),
        ({"method": "objective", "delta": 1e-30}, "delta is below what rounding costs"),
    ):
        given: dict[str, Any] = {"formula": "y ~ x", "epsilon": 1, "delta": 1e-6, **more}
        with pytest.raises(ArgumentError, match=told):
            inference.logistic_regression(
                given.pop("formula"), {"y": [1], "x": [1]}, bounds={"x": (0, 1)}, **given
            )
