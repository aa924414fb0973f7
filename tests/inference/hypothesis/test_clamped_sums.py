"""Tests through bounded moments: what a row moves, levels, power, and what comes in."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._clamped import ClampedNormal, sums_of
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._inputs import Bounds, bounds_of, target
from dither.inference.hypothesis._clamped_models import TwoMeans
from dither.inference.hypothesis._clamped_sums import ContrastRelease, points_of
from dither.inference.hypothesis._t_tests import score_width
from dither.lab.audit import Outcome, audit

BOTH = ("replace", "add-remove")
STEPS = Bounds.steps


@pytest.mark.parametrize("neighbours", BOTH)
def test_no_row_moves_sums_further_than_proved(neighbours: str) -> None:
    """Over a grid of rows the l1 distance comes near what the noise is made for, not beyond."""
    grid = [STEPS * i // 8 for i in range(-8, 9)]
    design, rows = ContrastRelease(target(1, 0, neighbours)), itertools.product(grid, (0, 1))
    found = np.array(
        [[float(v) for v in design.statistic(tuple(np.array([p]) for p in r))] for r in rows]
    )
    if neighbours == "replace":
        furthest = max(float(np.abs(found - one).sum(axis=1).max()) for one in found)
    else:
        none = design.statistic((np.zeros(0, dtype=np.int64),) * 2)
        furthest = float(np.abs(found - [float(v) for v in none]).sum(axis=1).max())
    assert 0.99 * float(design.l1) < furthest <= float(design.l1)
    assert design.noise.scale >= design.l1
    assert design.loss.charge.epsilon == 1


def test_noise_for_a_value_alone_is_caught() -> None:
    """The classic mistake: noise as if labels were public, for a person who changes the group."""
    design = GroupSumsRelease(bounds_of("bounds", (-1, 1)), target(1, 0, "replace"), 2, moves=True)
    values = np.ones(4)

    def wrong(labels: Any, size: int) -> Any:
        groups = [values[labels == g] for g in (0, 1)]
        exact = np.array([float(v) for v in design.statistic(groups)])
        public = np.random.default_rng().laplace(0, 1.0, (size, exact.size))
        return (exact + public) @ np.array([0, 0, 1, 0, 0, -1])

    first, second = np.array([0, 0, 1, 1]), np.array([1, 0, 1, 1])
    assert audit(wrong, first, second, 1, samples=20_000).verdict is Outcome.VIOLATED


def _once(name: str, shift: float, rng: np.random.Generator, asked: Any) -> bool:
    labels, x = rng.integers(0, 2, 240), rng.normal(0, 1, 240)
    two = [x[labels == g] + shift * g for g in (0, 1)]
    three = [rng.normal(shift * g, 1, 80) for g in range(3)]
    one, wide = rng.normal(shift, 1, 120), (-2, 3)
    tests: dict[str, Any] = {
        "ttest_1samp": lambda: inference.ttest_1samp(one, 0, bounds=wide, **asked),
        "ttest_rel": lambda: inference.ttest_rel(one + 5, np.full(120, 5), bounds=wide, **asked),
        "ztest": lambda: inference.ztest(one, sigma=1, **asked),
        "ztest of two": lambda: inference.ztest(*two, sigma=1, bounds=wide, **asked),
        "ttest_ind": lambda: inference.ttest_ind(*two, bounds=wide, **asked),
        "f_oneway": lambda: inference.f_oneway(*three, bounds=wide, **asked),
    }
    return bool(tests[name]().rejects())


NAMES = ["ttest_1samp", "ttest_rel", "ztest", "ztest of two", "ttest_ind", "f_oneway"]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", NAMES)
def test_levels_and_power(name: str, neighbours: Any) -> None:
    """At most about 5 % of 150 true nulls, and most of 40 plain differences."""
    rng = np.random.default_rng(1)
    asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 200}
    assert sum(_once(name, 0.0, rng, asked) for _ in range(150)) <= 20
    assert sum(_once(name, 0.8, rng, asked) for _ in range(40)) >= 30


def test_scores_are_cut_where_power_is_most() -> None:
    """The more rows or epsilon, the wider; never below a third of a deviation."""
    widths = [score_width(n, 1.4) for n in (10, 75, 500, 10**5)]
    assert widths == sorted(widths)
    assert 0.3 < widths[0] < 1.5 < widths[-1]


@pytest.mark.parametrize("n", [40, 499, 501])
def test_sums_of_many_deviations_are_those_of_one(n: int) -> None:
    """Row by row and in the limit, all alike or not (chance of failing: 1 in 1,000)."""
    rng, law = np.random.default_rng(1), ClampedNormal(0.4, 0.6)
    one = law.sums(n, 4000, rng)[:, :2]
    many = sums_of(0.4, np.full(4000, 0.6), np.full(4000, n), rng)
    for k in (0, 1):
        assert stats.ks_2samp(one[:, k], many[:, k]).pvalue > 1e-3
    assert np.corrcoef(one.T)[0, 1] == pytest.approx(np.corrcoef(many.T)[0, 1], abs=0.06)
    mixed = sums_of(0.0, np.repeat([0.1, 2.0], 2000), np.repeat([n, n // 2], 2000), rng)
    assert mixed[:2000, 1].mean() == pytest.approx(n * 0.01, rel=0.05)
    second = ClampedNormal(0.0, 2.0).moments(2)[1]
    assert mixed[2000:, 1].mean() == pytest.approx(n // 2 * second, rel=0.02)


@pytest.mark.parametrize("neighbours", BOTH)
def test_what_the_noise_leaves_possible_holds_the_truth(neighbours: str) -> None:
    """Sizes drawn from a release lie about those that the groups have, mostly."""
    rng, n = np.random.default_rng(2), 800
    places, outside = np.repeat([0, 1], [500, 300]), 0
    for _ in range(10):
        points = points_of(rng.normal(0, 0.4, n), bounds_of("bounds", (-1, 1)))
        design = ContrastRelease(target(1, 0, neighbours))
        model = TwoMeans(design, n, 0.16)
        sizes = model.possible(rng, design.release((points, places)), 500)
        for g in (0, 1):
            low, high = np.quantile(sizes[g], [0.0005, 0.9995])
            outside += not low - 1 <= (500, 300)[g] <= high + 1
    # The ends of 500 draws miss one in 250 of these twenty.
    assert outside <= 2


def test_unequal_variances_and_groups() -> None:
    """Welch's test keeps its level where a pooled variance would not."""
    rng = np.random.default_rng(2)
    wrong = sum(
        inference.ttest_ind(
            rng.normal(0, 1, 400), rng.normal(0, 0.3, 100), bounds=(-2, 2), epsilon=2, draws=200
        ).rejects()
        for _ in range(150)
    )
    assert wrong <= 20


HOSTILE: list[Any] = [[], [3.0], [None], [float("nan")] * 5, [float("inf"), -1e308], [5.0] * 50]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_data_raises_anything(rows: Any, neighbours: Any) -> None:
    """No row, one, missing, infinite, constant, all beyond, an empty group: a p-value."""
    asked: Any = {"epsilon": 0.2, "neighbours": neighbours, "draws": 100}
    ends = (0, 2)
    for found in (
        inference.ttest_1samp(rows, 1, bounds=ends, **asked),
        inference.ttest_rel(rows, rows, bounds=(-1, 1), **asked),
        inference.ztest(rows, value=1, sigma=2, **asked),
        inference.ztest(rows, [], sigma=2, bounds=ends, **asked),
        inference.ttest_ind(rows, [1.0], bounds=ends, **asked),
        inference.f_oneway(rows, [], rows, bounds=ends, **asked),
        inference.f_oneway(rows, [], rows, bounds=ends, equal_var=False, **asked),
        inference.ttest_1samp(rows, 1, bounds=ends, shape="normal", **asked),
        inference.ttest_ind(rows, [1.0], bounds=ends, shape="normal", **asked),
        inference.f_oneway(rows, [], rows, bounds=ends, shape="normal", **asked),
    ):
        assert 0 < found.pvalue <= 1
        assert np.isfinite(found.statistic)
        assert "Cost" in found.summary()


@pytest.mark.parametrize("bounds", [None, (1, 0), (1, 1), (0, float("inf")), 3])
def test_bounds_must_be_two_ends_in_order(bounds: Any) -> None:
    """Without usable bounds nothing is released."""
    for call in (
        lambda: inference.ttest_1samp([1, 2], 1, bounds=bounds, epsilon=1),
        lambda: inference.ttest_ind([1], [2], bounds=bounds, epsilon=1),
        lambda: inference.f_oneway([1], [2], bounds=bounds, epsilon=1),
        lambda: inference.ztest([1], [2], sigma=1, bounds=bounds, epsilon=1),
    ):
        with pytest.raises(ArgumentError, match="bounds"):
            call()


def test_bad_arguments_are_named() -> None:
    """What is wrong is named."""
    with pytest.raises(ArgumentError, match="popmean"):
        inference.ttest_1samp([1], 3, bounds=(0, 2), epsilon=1)
    with pytest.raises(ArgumentError, match="sigma"):
        inference.ztest([1], sigma=0, epsilon=1)
    with pytest.raises(ArgumentError, match="bounds must be left out"):
        inference.ztest([1], sigma=1, bounds=(0, 1), epsilon=1)
    with pytest.raises(ArgumentError, match="equally many"):
        inference.ttest_rel([1], [1, 2], bounds=(0, 1), epsilon=1)
    with pytest.raises(ArgumentError, match="samples"):
        inference.f_oneway([1], bounds=(0, 1), epsilon=1)
    with pytest.raises(ArgumentError, match="shape"):
        inference.ttest_ind([1], [2], bounds=(0, 2), epsilon=1, shape="round")
    with pytest.raises(ArgumentError, match="equal_var"):
        inference.f_oneway([1], [2], bounds=(0, 2), epsilon=1, equal_var="no")
