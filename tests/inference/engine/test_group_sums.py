"""Sums of clamped values in groups: what a row moves, and that n, Σ t and Σ t² come back."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Target, bounds_of
from dither.privacy import Neighbours

BOUNDS = bounds_of("bounds", (-1, 1))
DELTA = Fraction(1, 10**6)
NONE = np.zeros(0)
GRID = [-9.0, *np.linspace(-1, 1, 81), 9.0, np.nan]
WAYS = [
    (neighbours, moves, gaussian)
    for neighbours in Neighbours.of_tables()
    for moves in (False, True)
    for gaussian in (False, True)
    if neighbours is Neighbours.REPLACE or not moves
]


def _design(neighbours: Neighbours, moves: bool, gaussian: bool) -> GroupSumsRelease:
    asked = Target(Fraction(1), DELTA, neighbours)
    return GroupSumsRelease(BOUNDS, asked, 2, moves=moves, gaussian=gaussian)


@pytest.mark.parametrize(("neighbours", "moves", "gaussian"), WAYS)
def test_no_row_moves_them_further_than_proved(
    neighbours: Neighbours, moves: bool, gaussian: bool
) -> None:
    """Over all values and groups, before and after; some pair is as far as proved, or nearly."""
    design = _design(neighbours, moves, gaussian)
    placed = [(np.array([v]), NONE) for v in GRID]
    other = [(NONE, np.array([v])) for v in GRID]
    rows = np.array([[float(v) for v in design.statistic(pair)] for pair in placed + other])
    if neighbours is Neighbours.ADD_REMOVE:
        gaps = rows - [float(v) for v in design.statistic((NONE, NONE))]
    elif moves:
        gaps = (rows[:, None] - rows).reshape(-1, rows.shape[1])
    else:
        halves = np.split(rows, 2)
        gaps = np.concatenate([(h[:, None] - h).reshape(-1, rows.shape[1]) for h in halves])
    furthest = float(np.linalg.norm(gaps, 2 if gaussian else 1, axis=1).max())
    noise: Any = design.noise
    made_for = noise.sigma / 4.2246788893 if gaussian else float(noise.scale)
    assert 0.99 * made_for < furthest < made_for * (1 + 1e-5)
    assert design.loss.charge.epsilon == 1


def test_three_sums_of_a_row_are_chances() -> None:
    """What a row adds is not negative and adds up to 1: n, Σ t and Σ t² cost what n costs."""
    design = _design(Neighbours.ADD_REMOVE, False, False)
    for value in GRID[:-1]:
        found = design.statistic((np.array([value]), NONE))
        assert min(found) >= 0
        assert sum(found) == 1


def test_the_middle_sum_weighs_no_more_than_it_may() -> None:
    """With √3.5 no row is longer than 1 in l2, and that in the middle is as long; more is over."""
    p = np.linspace(0, 1, 2001)
    for square, most in ((3.5, 1.0), (3.6, 1.025)):
        length = p**4 + (1 - p) ** 4 + 4 * square * (p * (1 - p)) ** 2
        assert length.max() == pytest.approx(most)
    assert _design(Neighbours.ADD_REMOVE, False, True).weight ** 2 <= 3.5


@pytest.mark.parametrize(("neighbours", "moves", "gaussian"), WAYS)
def test_moments_come_back(neighbours: Neighbours, moves: bool, gaussian: bool) -> None:
    """Without noise n, Σ t and Σ t² are those of the rows, and the noise is that of the release."""
    design = _design(neighbours, moves, gaussian)
    groups = (np.array([0.25, 9.0, np.nan]), np.array([-0.5]))
    exact = np.array([float(v) for v in design.statistic(groups)])
    found = design.moments(exact, [3, 1])
    n = 3 if design.public else 2
    np.testing.assert_allclose(found, [[n, 1.25, 1.0625], [1, -0.5, 0.25]], atol=1e-5)
    drawn = design.drawn(np.random.default_rng(1), 50_000)
    scale = np.sqrt(2) * float(design.noise.scale) if not gaussian else design.noise.sigma  # type: ignore[union-attr]
    across = 1 / float(design.weight)
    wanted = [0, 1, across] if design.public else [np.hypot(2**0.5, across), 2**0.5]
    for place, times in enumerate(wanted):
        assert drawn[:, 0, place].std() == pytest.approx(times * scale, rel=0.03)
    assert abs(np.corrcoef(drawn[:, 0, 1], drawn[:, 1, 1])[0, 1]) < 0.02
    assert all(len(set(pair)) == 2 for pair in itertools.pairwise(drawn[:50, 0, 1]))
