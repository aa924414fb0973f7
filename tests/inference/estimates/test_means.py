"""Means of many numbers: what one row can do in a box and a ball, prices of rounds, errors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._ball import BallRelease
from dither.inference.engine._inputs import Target, bounds_of
from dither.inference.estimates._covariance import CovarianceRelease
from dither.inference.estimates._means import BoxRelease, _radii, _rounds
from dither.inference.estimates._sparse import SparseRelease
from dither.privacy import Neighbours

DELTA = Fraction(1, 10**6)
BOTH = Neighbours.of_tables()


def _worst(rows: list[np.ndarray[Any, Any]], neighbours: Neighbours) -> float:
    """The largest squared L2 distance of what two rows, or one and none, add."""
    found = np.array(rows)
    if neighbours is Neighbours.ADD_REMOVE:
        return float((found**2).sum(1).max())
    square = (found**2).sum(1)
    return float((square[:, None] + square - 2 * found @ found.T).max())


def _floats(vector: Any) -> np.ndarray[Any, Any]:
    return np.array([float(v) for v in vector])


def _unit_rows(d: int) -> np.ndarray[Any, Any]:
    """Rows of all lengths and directions, far beyond the ball too; signs, axes and their halves."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(400, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lengths = rng.choice([0.3, 0.7, 1.0, 5.0], 400)[:, None]
    return np.concatenate([rows * lengths, -rows, np.eye(d), -np.eye(d), np.zeros((1, d))])


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_box_moves_as_far_as_was_proved(neighbours: Neighbours) -> None:
    """Over a grid of rows, the squared distance reaches what the Gaussian noise was made for."""
    bounds = (bounds_of("bounds", (-1, 1)),) * 3
    design = BoxRelease(bounds, Target(Fraction(1), DELTA, neighbours), rho=Fraction(1, 50))
    ends = np.linspace(-1, 1, 9)
    grid = np.array(np.meshgrid(ends, ends, ends)).reshape(3, -1).T
    none = _floats(design.statistic(np.zeros((0, 3))))
    moved = _worst([_floats(design.statistic(row[None])) - none for row in grid], neighbours)
    rho = moved / (2 * float(design.noise.sigma2))  # type: ignore[union-attr]
    assert 0.999 / 50 < rho <= float(design.loss.charge.rho or 0) <= 1 / 50


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", [BallRelease, CovarianceRelease])
def test_a_ball_moves_as_far_as_was_proved(kind: Any, neighbours: Neighbours) -> None:
    """The same for sums and products in a ball, the weights of the second moments included."""
    asked = Target(Fraction(1), DELTA, neighbours)
    ball = BallRelease(3, asked, gaussian=True)
    design = ball if kind is BallRelease else kind(3, asked)
    points = ball.points(_unit_rows(3), np.zeros(3), 1.0)
    none = _floats(design.statistic(np.zeros((0, 3), dtype=np.int64)))
    moved = _worst([_floats(design.statistic(row[None])) - none for row in points], neighbours)
    rho = moved / (2 * float(design.noise.sigma2))
    assert 0.999 * float(design.loss.charge.rho) < rho <= float(design.loss.charge.rho)
    assert design.loss.delta(1.0) <= 1.0001e-6


@pytest.mark.parametrize("d", [1, 2, 100, 3000])
def test_no_row_leaves_the_ball(d: int) -> None:
    """Whatever a row holds, its point is of norm at most the steps; direction is kept."""
    design = BallRelease(d, Target(Fraction(1), DELTA, Neighbours.REPLACE), gaussian=True)
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(60, d)) * np.geomspace(1e-150, 1e300, 60)[:, None]
    rows[0], rows[1, 0], rows[2, :], rows[3, 0] = 1e308, np.inf, -np.inf, np.nan
    points = design.points(rows, np.full(d, 1e-3), 1e-2)
    assert np.einsum("ij,ij->i", points, points).max() <= design.steps**2
    assert not points[3].any()
    way = rows[40:] / 1e300 / np.linalg.norm(rows[40:] / 1e300, axis=1, keepdims=True)
    far = points[40:] / np.linalg.norm(points[40:], axis=1, keepdims=True)
    if d > 1:
        assert np.sum(far * way, axis=1).min() > 0.999


def test_rounds_cost_what_one_gaussian_costs() -> None:
    """Shares of the multipliers compose to the whole, and the claim is computed, not assumed."""
    asked = Target(Fraction(1), DELTA, Neighbours.REPLACE)
    designs, loss = _rounds(10, asked, [Fraction(1, 10), Fraction(1, 10), Fraction(4, 5)])
    assert loss.charge.epsilon == 1
    assert loss.charge.delta <= DELTA
    assert loss.delta(1.0) == pytest.approx(1e-6, rel=1e-3)
    whole = float(_rounds(10, asked, [Fraction(1)])[0][0].noise.sigma2)  # type: ignore[union-attr]
    assert sum(whole / float(each.noise.sigma2) for each in designs) == pytest.approx(1.0, rel=1e-6)  # type: ignore[union-attr]


def test_radii_never_grow() -> None:
    """Where n·epsilon is small the noise would blow the next ball up: it stays as it is."""
    shares = [Fraction(1, 4)] * 4
    tight = _radii(10, 20.0, 3.0, 1.0, shares, sigma=50.0)
    assert tight == sorted(tight, reverse=True)
    assert tight[0] == tight[-1]
    loose = _radii(10, 1e5, 300.0, 1.0, shares, sigma=8.0)
    assert loose[-1] < 10 < loose[0]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_means_are_near_and_their_intervals_hold(neighbours: Any) -> None:
    """Box, ball and shrinking ball: of 600 intervals at least 545 hold (1 in 10,000 fewer)."""
    rng, held = np.random.default_rng(6), 0
    truth = rng.uniform(-1, 1, 10)
    for _ in range(20):
        x = rng.normal(truth, 1.0, (2000, 10))
        for how in (
            {"bounds": (-3, 3)},
            {"radius": 7},
            {"radius": 4, "spread": 1},
        ):
            found = inference.means(x, epsilon=2, delta=1e-6, neighbours=neighbours, **how)
            assert found.loss.charge.epsilon == 2
            assert found.loss.charge.delta <= DELTA
            ends = found.simulated(draws=500).interval()
            held += int(np.sum((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
    assert held >= 545


def test_a_shrinking_ball_beats_the_others() -> None:
    """With ten numbers a row and the radius far too large, rounds pay: a tenth of the error."""
    rng = np.random.default_rng(1)
    x = rng.normal(0.5, 1.0, (10_000, 10))
    asked = {"radius": 300, "epsilon": 1, "delta": 1e-6}
    wide, narrow = inference.means(x, **asked), inference.means(x, spread=1, **asked)
    assert "rounds" in narrow.title
    errors = [float(np.sum((r.estimate - 0.5) ** 2)) for r in (wide, narrow)]
    assert errors[1] < errors[0] / 10


def test_the_printed_noise_is_charged_at_its_true_price() -> None:
    """What is printed as 1 costs 1.148, as 0.5 costs 0.545, as 10 costs 15.83."""
    rows = [[0.0, 1.0]] * 50
    for nominal, true in ((1, 1.148), (0.5, 0.545), (10, 15.834)):
        found = inference.truncated_mean_as_printed(rows, radius=1, epsilon=nominal, delta=1e-6)
        assert float(found.loss.charge.epsilon or 0) == pytest.approx(true, rel=2e-3)
        assert found.loss.charge.epsilon > Fraction(repr(nominal))  # type: ignore[operator]
        assert "costs" in found.summary()


def test_frames_lend_their_names() -> None:
    """Columns of a frame name the numbers; pairs of bounds are one for each."""
    frame = pd.DataFrame({"age": [30.0, 50.0] * 500, "cost": [1.0, 3.0] * 500})
    found = inference.means(frame, bounds=[(0, 100), (0, 9)], epsilon=5)
    assert found.names == ("age", "cost")
    np.testing.assert_allclose(found.estimate, [40, 2], atol=2)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"bounds": (0, 1), "radius": 1},
        {"bounds": [(0, 1)] * 3},
        {"bounds": (0, 1), "spread": 1},
        {"radius": 1, "centre": [0]},
        {"radius": 1, "spread": 0},
        {"radius": -1},
    ],
)
def test_bad_arguments_are_told(how: dict[str, Any]) -> None:
    """Each is refused before anything is released."""
    with pytest.raises(ArgumentError):
        inference.means([[1, 2], [3, 4]], epsilon=1, delta=1e-6, **how)


HOSTILE = [np.zeros((0, 3)), np.full((1, 3), np.nan), np.full((5, 3), np.inf), np.ones((9, 3))]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_rows_raise_anything(rows: Any, neighbours: Any) -> None:
    """No row, a missing one, endless ones, constant ones: numbers come back, finite."""
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "neighbours": neighbours}
    for found in (
        inference.means(rows, bounds=(0, 1), **asked),
        inference.means(rows, radius=2, **asked),
        inference.means(rows, radius=2, spread=1, **asked),
        inference.covariance(rows, radius=2, **asked),
        inference.covariance(rows, radius=2, **asked).components(2)[0],
        inference.sparse_mean(rows, radius=2, s=1, **asked),
    ):
        found = found.simulated(draws=200)
        assert np.isfinite(found.estimate).all()
        assert np.isfinite(found.interval()).all() or "along" in found.title
        assert "Cost" in found.summary()


def test_covariances_and_their_components() -> None:
    """Entries, eigenvalues and directions are near, and one release gives all of them."""
    rng = np.random.default_rng(2)
    true = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]])
    held = 0
    for _ in range(40):
        x = rng.multivariate_normal([0.5] * 3, true, 4000)
        found = inference.covariance(x, radius=8, epsilon=2, delta=1e-6).simulated(draws=400)
        ends, entries = found.interval(), true[np.triu_indices(3)]
        held += int(np.sum((ends[:, 0] <= entries) & (entries <= ends[:, 1])))
    assert held >= 214  # of 240 nominal 95 % intervals; fewer has a chance below 1 in 10,000
    values, directions = found.components(1)
    assert values.estimate[0] == pytest.approx(np.linalg.eigvalsh(true)[-1], rel=0.15)
    assert abs(directions[0] @ np.linalg.eigh(true)[1][:, -1]) > 0.98
    assert values.loss is found.loss
    assert found.correlation[0, 1] == pytest.approx(0.5, abs=0.15)
    np.testing.assert_allclose(found.mean, 0.5, atol=0.3)


def test_sparse_means_in_one_shot_beat_peeling() -> None:
    """At the same nominal price one shot finds more coordinates and errs less."""
    rng, d, s = np.random.default_rng(3), 400, 10
    truth = np.zeros(d)
    truth[:s] = 0.5
    x = rng.normal(truth, 1.0, (2500, d))
    errors, recalls = [], []
    for method in ("one-shot", "peeling"):
        found = inference.sparse_mean(x, radius=4, s=s, epsilon=1, delta=1e-6, method=method)  # type: ignore[arg-type]
        assert found.chosen.size == s
        errors.append(float(np.sum((found.vector - truth) ** 2)))
        recalls.append(float(np.mean(found.chosen < s)))
    assert recalls[0] > recalls[1]
    assert errors[0] < errors[1]
    assert 0.6 < float(found.loss.charge.epsilon or 0) < 0.774


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("s", [1, 5])
def test_sparse_means_keep_their_price(neighbours: Neighbours, s: int) -> None:
    """Choice and values together cost what was asked for, as composed numerically too."""
    asked = Target(Fraction(1), DELTA, neighbours)
    design = SparseRelease(bounds_of("bounds", (-1, 1)), s, asked)
    assert 0.8 < float(design.loss.epsilon(1e-6)) <= 1.0
    change = (2 if asked.replace else 1) * (1 << 20)
    assert change % design.unit == 0
    for total in (-3 * change - 7, 0, 5, change):
        near = design.utilities([total, total + change, abs(total) + change])
        assert abs(near[1] - near[0]) <= change // design.unit
        assert near[2] - near[0] == change // design.unit
