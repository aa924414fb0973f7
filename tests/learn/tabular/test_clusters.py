"""Clusters and axes where noise is large: what is drawn together, and what a run may take."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dither import learn
from dither.learn._columns import FeatureColumn
from dither.learn._noise import PrivacyParameters, TableSensitivity
from dither.learn._rows import Box
from dither.learn.tabular import _cells
from dither.learn.tabular._cells import nearest, spread_out, weighted_centres
from dither.learn.tabular._kmeans import Clusters
from dither.learn.tabular._pca import Axes, Spread, shrunk
from dither.learn.tabular._sensitivity_left import Remainder
from dither.privacy import Neighbours


def test_little_budget_tells_the_mean() -> None:
    """All of it, in many columns: to tell clusters apart there is none.

    The squared error of that mean is 5 in expectation, of a chi-squared law of 100 degrees; a count
    that takes another way is 6 deviations away.
    """
    rows = np.full((2_000, 100), 0.6) + np.random.default_rng(0).normal(0, 0.1, (2_000, 100))
    model = learn.KMeans(4, epsilon="0.1", delta=1e-6, bounds=(-1, 1)).fit(rows)
    assert ((model.cluster_centers_.mean(axis=0) - 0.6) ** 2).sum() < 20
    assert model.cluster_sizes_.sum() == pytest.approx(2_000, rel=0.4)


@pytest.mark.parametrize("size", [1, 2, 6])
def test_where_nothing_is_told_apart_centres_lie_as_of_a_normal_law(size: int) -> None:
    """Were they all the mean, many clusters would be as good as one."""
    asked = PrivacyParameters(Fraction(1), Fraction(0), Neighbours.ADD_REMOVE)
    columns = tuple(FeatureColumn(f"x{j}", bounds=(-1.0, 1.0)) for j in range(size))
    run = Clusters(Box(columns), 15, 1, asked)
    mean = np.full(size, 0.2)
    centres, sizes, inertia = run._of_law(Spread(1_000.0, mean, 0.3, 0.0))
    assert len(np.unique(centres.round(6), axis=0)) == 15
    assert sizes.sum() == pytest.approx(1_000)
    assert (sizes > 0).all()
    rows = np.random.default_rng(0).normal(mean, 0.3 / math.sqrt(size), (4_000, size))
    away = nearest(rows, centres)[1].mean()
    assert away < {1: 0.03, 2: 0.15, 6: 0.75}[size] * 0.3**2
    assert inertia == pytest.approx(1_000 * away, abs=9)  # a tenth of all


def test_cells_are_spread_out_where_they_are_few() -> None:
    """Within the cell, with all of its weight; where cells are many they stay as they are."""
    low, high = np.array([[-1.0, -1.0], [0.0, -1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    weights, one = np.array([30.0, 10.0]), np.ones(2)
    points, held = spread_out(low, high, weights, one, one, 40)
    assert len(points) == 40
    left = points[:, 0] < 0
    assert held[left].sum() == pytest.approx(30)
    assert held[~left].sum() == pytest.approx(10)
    assert (np.abs(points) <= 1).all()
    same, kept = spread_out(low, high, weights, one, one, 2)
    assert len(same) == 2
    assert kept.tolist() == [30, 10]
    none = np.zeros((0, 2))
    assert spread_out(none, none, np.zeros(0), one, one, 1)[0].tolist() == [[0, 0]]


@pytest.mark.parametrize("absolute", [False, True])
def test_no_part_takes_more_than_is_left(absolute: bool) -> None:
    """The largest weight that fits, in the norm of the noise; and what does not fit is refused."""
    left = Remainder(TableSensitivity(1_000, 90_000, 3), absolute)

    def part(weight: int) -> TableSensitivity:
        return TableSensitivity(3 * weight, 5 * weight**2, 3)

    found = left.weight(0.5, part)
    most = 500 if absolute else 45_000
    cost = [part(w).l1 if absolute else part(w).l2_squared for w in (found, found + 1)]
    assert cost[0] <= most < cost[1]
    left.take(part(found))
    assert left.left == 2 * most - cost[0]
    with pytest.raises(RuntimeError, match="more than is left"):
        left.take(part(2 * found))
    assert left.left == 2 * most - cost[0]


def test_a_centre_between_two_groups_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lloyd's steps alone stay where greedy centres began; one moved at a time finds all groups."""
    rng = np.random.default_rng(9)
    groups = rng.uniform(-1, 1, (12, 2))
    points = np.concatenate([rng.normal(g, 0.03, (15, 2)) for g in groups])
    _, found = weighted_centres(points, np.ones(len(points)), 12)
    assert found < 3 * 0.03**2
    monkeypatch.setattr(_cells, "_SWAPS", 0)
    assert weighted_centres(points, np.ones(len(points)), 12)[1] > 1.1 * found


def test_vectors_are_drawn_to_nothing_by_their_noise() -> None:
    assert not shrunk(np.full(8, 0.5), 1.0).any()
    assert shrunk(np.full(8, 10.0), 0.1) == pytest.approx(np.full(8, 10.0), rel=1e-3)


def test_axes_in_noise_are_what_columns_have_in_common() -> None:
    """None stands above the edge; the mean of all covariances does. Without noise all are found."""
    size, rng = 40, np.random.default_rng(1)
    spread = Spread(1_000.0, np.zeros(size), 1.0, 0.0)
    truth = 0.1 * np.eye(size) + 0.02
    noise = np.triu(rng.normal(0, 0.07, (size, size)))
    seen = truth + noise + np.triu(noise, 1).T
    found = Axes.of(spread, seen, 0.1)
    assert found.clear == 0
    assert abs(found.vectors[0].sum()) > 0.95 * size**0.5
    assert found.vectors @ found.vectors.T == pytest.approx(np.eye(size))
    exact = Axes.of(spread, truth, 1e-9)
    assert exact.clear == size
    assert exact.variances[:2] == pytest.approx([0.9, 0.1])
