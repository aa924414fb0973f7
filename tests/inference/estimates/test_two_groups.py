"""Two groups: what a row can do, what a move costs, and how often intervals hold."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Target, bounds_of
from dither.inference.estimates._difference import DifferenceRelease
from dither.inference.estimates._two_proportions import CellsRelease
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours

BOUNDS = bounds_of("bounds", (-1, 1))
NONE = np.zeros(0)


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("kind", [DifferenceRelease, GroupSumsRelease])
def test_a_row_that_moves_does_no_more_than_proved(gaussian: bool, kind: Any) -> None:
    """Over every value and group before and after; some pair is as far as proved, or nearly."""
    asked = Target(Fraction(1), Fraction(1, 10**6), Neighbours.REPLACE)
    design = kind(BOUNDS, asked, groups=2, moves=True, gaussian=gaussian)
    grid = [-9.0, *np.linspace(-1, 1, 41), 9.0, np.nan]
    placed = [(np.array([v]), NONE) for v in grid] + [(NONE, np.array([v])) for v in grid]
    rows = np.array([[float(v) for v in design.statistic(pair)] for pair in placed])
    gaps = (rows[:, None] - rows[None]).reshape(-1, rows.shape[1])
    furthest = float(np.linalg.norm(gaps, 2 if gaussian else 1, axis=1).max())
    noise: Any = design.noise
    made_for = noise.sigma / 4.2246788893 if gaussian else float(noise.scale)
    assert 0.99 * made_for < furthest < made_for * (1 + 1e-5)
    assert design.loss.charge.epsilon == 1


def test_noise_for_a_row_that_stays_is_caught_where_one_moves() -> None:
    """The classic mistake: two groups, each with a noise of its own, as if nobody could move."""
    wrong = CellsRelease(Target(Fraction(1), Fraction(0), Neighbours.ADD_REMOVE), False)

    def run(cells: tuple[int, ...], size: int) -> np.ndarray[Any, Any]:
        return np.array(cells) + wrong.noise.release((0,) * (4 * size)).reshape(size, 4)

    found = audit(run, (3, 2, 4, 4), (2, 2, 4, 5), 1, samples=40_000)
    assert found.verdict is Outcome.VIOLATED


def test_a_move_costs_what_it_says() -> None:
    """Four cells of which two change by 1: twice the noise, and the loss says epsilon."""
    asked = Target(Fraction(1), Fraction(0), Neighbours.REPLACE)
    moves, stays = CellsRelease(asked, True), CellsRelease(asked, False)
    assert moves.loss.charge.epsilon == stays.loss.charge.epsilon == 1
    assert moves.noise.variance > 3.5 * stays.noise.variance
    cells = [
        moves.statistic(g) for g in ((np.array([1.0, 0]), NONE), (np.array([0.0]), np.ones(1)))
    ]
    assert sum(abs(a - b) for a, b in zip(*cells, strict=True)) == 2


WAYS = list(itertools.product(["replace", "add-remove"], [False, True]))


@pytest.mark.parametrize(("neighbours", "private"), WAYS)
def test_differences_of_means_hold(neighbours: str, private: bool) -> None:
    """Active clamping on one side of one group: 150 runs; a true .95 fails once in 10⁴."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(150):
        x, y = rng.normal(1.5, 1, 600), rng.normal(0.5, 1, 400)
        found = inference.difference(
            x,
            y,
            bounds=(-1, 3),
            epsilon=1,
            delta=1e-6,
            neighbours=neighbours,  # type: ignore[arg-type]
            private_groups=private,
            shape="normal",
        ).simulated(draws=500)
        low, high = found.interval()
        held += low <= 1 <= high
    assert held >= 130


@pytest.mark.parametrize(("neighbours", "private"), WAYS)
def test_two_proportions_and_odds_ratios_hold(neighbours: str, private: bool) -> None:
    """Coverage and level of both: 150 runs; a true .95 fails once in 10⁴."""
    rng = np.random.default_rng(4)
    held, rejected = np.zeros(2), np.zeros(2)
    truths = (0.2, (0.4 / 0.6) / (0.2 / 0.8))
    for _ in range(150):
        x, y, z = rng.random(300) < 0.4, rng.random(200) < 0.2, rng.random(200) < 0.4
        more: dict[str, Any] = {"epsilon": 1, "neighbours": neighbours, "private_groups": private}
        for j, function in enumerate((inference.two_proportions, inference.odds_ratio)):
            low, high = function(x, y, **more).simulated(draws=400).interval()
            held[j] += low <= truths[j] <= high
            rejected[j] += function(x, z, **more).simulated(draws=400).pvalue <= 0.05
    assert (held >= 130).all()
    assert (rejected <= 20).all()


@pytest.mark.parametrize("x", [[], [1], [None] * 9, [float("nan"), float("inf")], [1] * 40])
@pytest.mark.parametrize(("neighbours", "private"), WAYS)
def test_no_data_raise_anything(x: list[Any], neighbours: str, private: bool) -> None:
    """One row, none, missing, all alike: an answer, and a wide interval where rows are few."""
    more: dict[str, Any] = {"epsilon": 0.5, "neighbours": neighbours, "private_groups": private}
    found = [
        inference.difference(x, [0.0] * len(x), bounds=(0, 9), **more),
        inference.difference(x, [0.0] * len(x), bounds=(0, 9), shape="normal", **more),
        inference.two_proportions(x, [], **more),
        inference.odds_ratio(x, [0] * 3, **more),
    ]
    for result in found:
        low, high = result.simulated(draws=200).interval()
        assert low <= result.estimate <= high
    assert all(result.notes for result in found[2:])
    assert found[2].interval()[1] - found[2].interval()[0] > 0.2


def test_arguments_are_checked() -> None:
    """Before any data are read."""
    with pytest.raises(ArgumentError, match="bounds must be given"):
        inference.difference([1], [2], epsilon=1)
    with pytest.raises(ArgumentError, match="lower below upper"):
        inference.difference([1], [2], bounds=(3, 1), epsilon=1)
    with pytest.raises(ArgumentError, match="null"):
        inference.two_proportions([1], [0], epsilon=1, null=2)
    with pytest.raises(ArgumentError, match="null"):
        inference.odds_ratio([1], [0], epsilon=1, null=0)
