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
from dither.inference._formula import MISSING
from dither.inference._inputs import Bounds, Target
from dither.inference._logistic import DescentRelease
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("radius", [Fraction(17, 10), Fraction(1)])
def test_no_row_moves_further_than_proved(neighbours: Neighbours, radius: Fraction) -> None:
    """Two numbers on a grid, both answers, a missing row: the Gram matrix and each gradient."""
    asked = Target(Fraction(1), Fraction(1, 10**6), neighbours)
    design = DescentRelease(2, 2, asked, radius)
    steps = Bounds.steps
    grid = itertools.product([-1, -0.5, 0, 0.7, 1], [-1, 0.3, 1], [-1, 1])
    rows = np.array([[int(v * steps) for v in row] for row in grid] + [[MISSING] * 3])
    for slopes in (np.zeros(3), np.array([40.0, -90.0, 3.0]), np.array([0.1, 0.5, -2.0])):
        added: dict[str, list[Any]] = {"gram": [], "gradient": []}
        for row in rows:
            short, signs = design.shortened(row[None])
            added["gram"].append([float(v) for v in design.gram(short)])
            shares = design.gradient(short, signs, slopes)
            added["gradient"].append([float(v) for v in shares])
        r2 = float(radius) ** 2
        most = {"gram": r2**2 / 2, "gradient": r2}
        if neighbours is Neighbours.REPLACE:
            most = {"gram": r2**2, "gradient": 4 * r2}
        for name, given in added.items():
            each = np.array(given)
            gaps = each
            if neighbours is Neighbours.REPLACE:
                gaps = (each[:, None] - each).reshape(-1, each.shape[1])
            assert (gaps**2).sum(1).max() <= most[name] * (1 + 1e-9)
    assert design.loss.charge.epsilon == 1
    assert design.loss.epsilon(delta=1e-6) <= 1


def test_noise_of_one_round_in_every_round_is_caught() -> None:
    """The classic mistake: rounds that each cost what all of them may."""
    asked = Target(Fraction(1), Fraction(1, 100), Neighbours.ADD_REMOVE)
    design = DescentRelease(0, 0, asked, Fraction(1))

    def run(points: Any, size: int) -> Any:
        rows, signs = design.shortened(points)
        exact = float(design.gradient(rows, signs, np.array([-30.0]))[0])
        sigma = design.of_gradient.sigma / 5**0.5
        return (exact + np.random.default_rng().normal(0, sigma, (size, 5))).sum(axis=1)

    pair = [np.full((k, 1), Bounds.steps) for k in (1, 2)]
    found = audit(run, *pair, 1, Fraction(1, 100), samples=60_000)
    assert found.verdict is Outcome.VIOLATED


def test_a_rows_share_does_not_depend_on_where_it_stands() -> None:
    """The sum of many rows is that of each alone, exactly, in any order."""
    design = DescentRelease(
        3, 3, Target(Fraction(1), Fraction(1, 10**6), Neighbours.ADD_REMOVE), Fraction(1)
    )
    rng = np.random.default_rng(2)
    points = rng.integers(-Bounds.steps, Bounds.steps + 1, (257, 4))
    points[:, -1] = np.where(points[:, -1] > 0, Bounds.steps, -Bounds.steps)
    slopes = rng.normal(0, 3, 4)

    def total(rows: Any) -> list[Fraction]:
        return list(design.gradient(*design.shortened(rows), slopes))

    each = [total(row[None]) for row in points]
    assert total(points[::-1]) == [sum(column, Fraction(0)) for column in zip(*each, strict=True)]


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
            radius="0.6",
        )
        guessed = made.predict(dict(zip(names, x[test].T, strict=True))) > 0.5
        right.append(float((guessed == y[test]).mean()))
    assert np.mean(right) > 0.85


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("x", [[], [1.0], [None] * 9, [float("inf")] * 30, [2.0] * 50])
def test_no_data_raise_anything(x: list[Any], neighbours: Any, tmp_path: Path) -> None:
    """Constant, missing, one row or none; and what is shown of it."""
    found = inference.logistic_regression(
        "y ~ x",
        {"y": x, "x": x},
        bounds={"x": (0, 9)},
        epsilon=1,
        delta=1e-6,
        neighbours=neighbours,
    )
    assert np.isfinite(found.estimate).all()
    assert ((found.predict({"x": [1, None]}) >= 0) & (found.predict({"x": [1, 2]}) <= 1)).all()
    assert "not given" in found.summary()
    found.plot(tmp_path / "a.png")


def test_arguments_are_checked() -> None:
    """Before any data are read."""
    for more, told in (
        ({"delta": 0}, "delta must be above 0"),
        ({"formula": "log(y) ~ x"}, "name of a column of yes and no"),
        ({"radius": 2}, "radius"),
    ):
        given: dict[str, Any] = {"formula": "y ~ x", "epsilon": 1, "delta": 1e-6, **more}
        with pytest.raises(ArgumentError, match=told):
            inference.logistic_regression(
                given.pop("formula"), {"y": [1], "x": [1]}, bounds={"x": (0, 1)}, **given
            )
