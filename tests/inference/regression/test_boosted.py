"""Boosted linear regression: what a row can do in each round, and what rounds undo."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.inference.engine._inputs import Bounds, Target
from dither.inference.regression._boosted import BoostedRelease
from dither.inference.regression._formula import MISSING
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("radius", [Fraction(17, 10), Fraction(1)])
def test_no_row_moves_further_than_proved(neighbours: Neighbours, radius: Fraction) -> None:
    """Two numbers and a response on a grid, and a missing row: each part, and all together."""
    design = BoostedRelease(2, Target(Fraction(1), Fraction(1, 10**6), neighbours), radius)
    grid = itertools.product([-1, -0.5, 0, 0.7, 1], [-1, 0.3, 1], [-1, 0.2, 1])
    points = np.array([[int(v * Bounds.steps) for v in r] for r in grid] + [[MISSING] * 3])
    each = [design.read(row[None]) for row in points]

    def moved(shares: Any) -> float:
        given = np.array([[float(v) for v in row] for row in shares])
        if neighbours is Neighbours.REPLACE:
            given = (given[:, None] - given).reshape(-1, given.shape[1])
        return float((given**2).sum(1).max())

    gram, *rounds, end = (float(m) for m in design.moves())
    assert moved(rows.gram(rows.weights) for rows, _ in each) <= gram
    for slopes in (np.zeros(3), np.array([9.0, -9.0, 3.0]), np.array([0.1, 0.5, -2.0])):
        for cut, most in zip((Fraction(1), Fraction(1, 2)), rounds, strict=False):
            found = moved(design.round(*pair, slopes, cut) for pair in each)
            assert found <= most
        assert moved(design.end(*pair, slopes) for pair in each) <= end
    largest = moved(design.round(*pair, np.zeros(3), Fraction(1)) for pair in each)
    assert largest > 0.9 * rounds[0]
    assert 0.999 < design.moved() <= 1
    assert design.loss.charge.epsilon == 1
    assert design.loss.epsilon(delta=1e-6) <= 1


def test_rounds_that_are_not_cut_are_caught() -> None:
    """The classic mistake: noise for residuals of 1/2, and residuals as they are."""
    asked = Target(Fraction(1), Fraction(1, 100), Neighbours.ADD_REMOVE)
    design = BoostedRelease(0, asked, Fraction(1))
    far = np.array([-9.0])

    def run(points: Any, size: int) -> Any:
        exact = float(design.round(*design.read(points), far, Fraction(10))[0])
        sigma = design.noise.variance**0.5 / float(design.of_rounds[1])
        return np.random.default_rng().normal(exact, sigma, (size, 3)).sum(axis=1)

    pair = [np.full((k, 1), Bounds.steps) for k in (1, 2)]
    found = audit(run, *pair, 1, Fraction(1, 100), samples=20_000)
    assert found.verdict is Outcome.VIOLATED


def _asked(n: int, epsilon: float, neighbours: Any, rng: np.random.Generator, **more: Any) -> Any:
    x, z = rng.uniform(-1, 1, (2, n))
    y = 0.1 + 0.4 * x - 0.2 * z + rng.normal(0, 0.2, n)
    return inference.linear_regression(
        "y ~ x + z",
        {"y": y, "x": x, "z": z},
        bounds={"y": (-1.2, 1.2), "x": (-1, 1), "z": (-1, 1)},
        epsilon=epsilon,
        delta=1e-6,
        neighbours=neighbours,
        method="boosted",
        **more,
    )


def test_without_noise_it_is_least_squares() -> None:
    """Coefficients, R², residuals and predictions of a model whose residuals are hardly cut."""
    found = _asked(6000, 10_000, "replace", np.random.default_rng(2))
    np.testing.assert_allclose(found.estimate, [0.1, 0.4, -0.2], atol=0.015)
    np.testing.assert_allclose(found.bse["x"], 0.2 / np.sqrt(6000 / 3), rtol=0.25)
    assert found.residual_deviation == pytest.approx(0.2, abs=0.01)
    assert found.rsquared == pytest.approx((0.2 / 3) / (0.2 / 3 + 0.04), abs=0.03)
    point = found.predict({"x": [0.5], "z": [0.0]})
    assert point.estimate == pytest.approx([0.3], abs=0.02)
    lower, upper = point.simulated(draws=200).interval()[0]
    assert lower < point.estimate[0] < upper
    assert "boosted" in found.summary()
    assert found.rows == 6000


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_hold_as_often_as_they_say(neighbours: str) -> None:
    """Noise as large as sampling: 100 runs; a true .95 fails once in 10⁴."""
    rng, held, widths = np.random.default_rng(8), np.zeros(3), []
    for _ in range(100):
        ends = _asked(2000, 1, neighbours, rng).simulated(draws=200).interval()
        held += (ends[:, 0] <= [0.1, 0.4, -0.2]) & (ends[:, 1] >= [0.1, 0.4, -0.2])
        widths.append(ends[1, 1] - ends[1, 0])
    assert (held >= 86).all()
    assert np.median(widths) < 0.8


def test_it_explains_more_of_ten_columns_and_few_rows() -> None:
    """Than the moments do at the same cost: on average over twelve samples of 450 rows."""
    rng, explained = np.random.default_rng(5), {"moments": 0.0, "boosted": 0.0}
    names = [f"x{j}" for j in range(10)]
    slopes = np.array([0.3, -0.2, 0.2, 0.1, -0.1, 0, 0, 0, 0, 0])
    for _ in range(12):
        x = np.clip(rng.normal(0, 0.4, (450, 10)), -1, 1)
        y = x @ slopes + rng.normal(0, 0.15, 450)
        for method in explained:
            found = inference.linear_regression(
                "y ~ " + " + ".join(names),
                {**dict(zip(names, x.T, strict=True)), "y": y},
                bounds=dict.fromkeys([*names, "y"], (-1, 1)),
                epsilon=1,
                delta=1e-6,
                neighbours="add-remove",
                method=method,
            )
            off = found.estimate[1:] - slopes
            explained[method] += float(off @ off)
    assert explained["boosted"] < explained["moments"]
