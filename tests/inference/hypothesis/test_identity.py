"""Identity and uniformity: what one row can move, what it costs, and how often a test is right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import erf

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import target
from dither.inference.engine._pairs import blocks_for, moved_by_pairs, pairs_of, signs_of_pairs
from dither.inference.engine._signs import SquareRelease, signs
from dither.inference.engine._statistic import (
    LATTICE,
    StatisticRelease,
    StatisticWithRowsRelease,
    root,
)
from dither.inference.estimates._proportion import CanonicalNoise
from dither.inference.hypothesis._efficient import EfficientRelease
from dither.inference.planning._sizes import samples_needed
from dither.lab.audit import Outcome, audit
from dither.numeric import sqrt_upper

ROWS = [np.array(r, dtype=np.int8) for r in itertools.product((-1, 0, 1), repeat=2)]


def _length(rows: list[Any]) -> tuple[Fraction, int]:
    square = int((np.sum(rows, axis=0, dtype=int) ** 2).sum()) if rows else 0
    return root(Fraction(square)), len(rows)


def _design(moved_squared: int) -> StatisticRelease:
    """Noise of a length whose vector a row moves by so much."""
    return StatisticRelease(sqrt_upper(Fraction(moved_squared)), target(1, 0, "replace"))


def test_no_row_moves_the_length_further_than_proved() -> None:
    """All tables of up to three rows in two dimensions, with missing signs, by brute force."""
    known = _design(8)
    unknown = StatisticWithRowsRelease(sqrt_upper(Fraction(2)), target(1, 0, "add-remove"))
    replaced = added = Fraction(0)
    for others in itertools.combinations_with_replacement(ROWS, 2):
        tables = [_length([*others, row]) for row in ROWS]
        lengths = [length for length, _ in tables]
        replaced = max(replaced, (max(lengths) - min(lengths)) * LATTICE)
        before = unknown.statistic(_length(list(others)))
        for table in tables:
            after = unknown.statistic(table)
            added = max(added, sum(abs(x - y) for x, y in zip(before, after, strict=True)))
    assert 0.999 * known.reach < replaced <= known.reach
    assert 0.999 * unknown.noise.scale < added <= unknown.noise.scale
    assert known.loss.charge.epsilon == unknown.loss.charge.epsilon == 1


def test_no_row_moves_the_square_further_than_proved() -> None:
    """All tables of three rows in two dimensions: 4(n - 1)d is reached and not passed."""
    design = SquareRelease(3, 2, target(1, 0, "replace"))
    furthest = max(
        abs(
            design.statistic(np.array([*others, first]))[0]
            - design.statistic(np.array([*others, second]))[0]
        )
        for others in itertools.combinations_with_replacement(ROWS, 2)
        for first, second in itertools.combinations(ROWS, 2)
    )
    assert furthest == 16
    assert design.noise.scale >= 16


@pytest.mark.parametrize(("cap", "most"), [(1, 8), (2, 16)])
def test_no_row_moves_the_extension_further_than_proved(cap: int, most: int) -> None:
    """All tables of four rows in two dimensions: 4cd is reached and not passed; T below the cap."""
    design = SquareRelease(4, 2, target(1, 0, "replace"), cap)
    furthest = Fraction(0)
    for others in itertools.combinations_with_replacement(ROWS, 3):
        tables = [np.array([*others, row]) for row in ROWS]
        found = [design.statistic(table)[0] for table in tables]
        furthest = max(furthest, max(found) - min(found))
        for table, value in zip(tables, found, strict=True):
            sums = table.sum(axis=0, dtype=int)
            assert design.extended(sums[None].astype(float))[0] == value
            if np.abs(sums).max() <= cap:
                assert value == (sums**2).sum() - 8
    assert furthest == most
    assert design.noise.scale >= most


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50)])
def test_the_loss_is_what_the_law_of_the_noise_gives(delta: Fraction) -> None:
    """δ at ε of lengths 1 to K points apart, over the lattice: at K the claim."""
    reach = 7
    law = CanonicalNoise(target("0.5", delta, "replace")).law
    chance = np.array([law.survival(k) - law.survival(k + 1) for k in range(-60, 61)])
    points = np.repeat(chance / reach, reach)
    for shift in range(1, reach + 1):
        moved = np.concatenate([np.zeros(shift), points[:-shift]])
        for first, second in ((points, moved), (moved, points)):
            lost = np.maximum(first - math.exp(0.5) * second, 0)[reach:-reach].sum()
            assert lost == pytest.approx(float(delta) * shift / reach, abs=1e-9)


def test_released_and_simulated_noise_are_one() -> None:
    """Drawn releases and simulated ones have one law (chance of failing: 1 in 10,000)."""
    design = _design(80)
    drawn = design.release(Fraction(5), 20_000) - 5
    simulated = design.draw(np.random.default_rng(2), 20_000)
    assert stats.ks_2samp(drawn, simulated).pvalue > 1e-4


def test_noise_for_one_coordinate_is_caught() -> None:
    """The classic mistake: noise as for one coordinate, where all d move at once."""
    found = audit(_design(4).release, Fraction(6), Fraction(2), 1, samples=20_000)
    assert found.verdict is Outcome.VIOLATED


@pytest.mark.heavy("test_released_and_simulated_noise_are_one")
def test_level_and_power() -> None:
    """Of 400 true nulls about 5 % are rejected; of false ones at n = 134 two thirds at 1/3."""
    rng = np.random.default_rng(3)
    for neighbours in ("replace", "add-remove"):
        found = [
            inference.identity_test(
                rng.choice([-1, 1], (60, 5)), epsilon=1, neighbours=neighbours, draws=300
            ).pvalue
            for _ in range(400)
        ]
        assert 6 <= np.sum(np.array(found) <= 0.05) <= 40
        assert np.mean(found) == pytest.approx(0.5, abs=0.06)
    right = [
        inference.identity_test(
            np.where(rng.random((140, 100)) < 0.525, 1, -1), epsilon=1, draws=300
        ).pvalue
        <= 1 / 3
        for _ in range(150)
    ]
    assert sum(right) >= 80


def test_whitened_signs_have_the_expectation_of_the_theorem() -> None:
    """E sgn is erf(u/√2) of the whitened mean, whatever the covariance is."""
    rng = np.random.default_rng(4)
    covariance = np.array([[4.0, 1.5, 0.0], [1.5, 2.0, -0.5], [0.0, -0.5, 1.0]])
    u = np.array([0.3, -0.2, 0.1])
    mean = np.linalg.cholesky(covariance) @ u + 5
    drawn = rng.multivariate_normal(mean, covariance, 200_000)
    found = signs(drawn, covariance, [5, 5, 5]).mean(axis=0)
    np.testing.assert_allclose(found, erf(u / math.sqrt(2)), atol=0.01)


def test_a_row_is_whitened_without_the_others() -> None:
    """No sign of one row depends on which or how many other rows there are."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 7))
    root = rng.normal(size=(7, 7))
    covariance = root @ root.T
    alone = np.concatenate([signs(rows[i : i + 1], covariance) for i in range(200)])
    np.testing.assert_array_equal(signs(rows, covariance), alone)


@pytest.mark.parametrize(
    ("method", "d", "distance", "n"),
    [
        ("norm", 20, 0.5, 56),
        ("non-private", 20, 0.5, 25),
        ("efficient", 20, 0.5, 3901),
        ("norm", 100, 0.5, 134),
    ],
)
def test_sizes_are_those_of_the_literature(method: str, d: int, distance: float, n: int) -> None:
    """Least n with size at most 1/3 and power at least 2/3, within both errors."""
    found = samples_needed(
        "identity",
        delta=1e-6 if method == "efficient" else 0,
        dimension=d,
        distance=distance,
        method=method,
        size=1 / 3,
        power=2 / 3,
        draws=5000,
    )
    assert abs(found - n) <= max(2, 0.08 * n)


def test_the_efficient_test_is_right_where_it_has_enough_rows() -> None:
    """It accepts fair coins and sees others, and it spends all that it was given."""
    rng = np.random.default_rng(6)
    fair = rng.choice([-1, 1], (5000, 4))
    turned = np.where(rng.random((5000, 4)) < 0.75, 1, -1)
    accepted = [
        inference.identity_test(fair, epsilon=4, delta=1e-6, method="efficient", seed=1).pvalue
        for _ in range(4)
    ]
    # The coins are the same, the noise is not: all four at most .001 is one chance in 10¹².
    assert max(accepted) > 0.001
    found = inference.identity_test(turned, epsilon=4, delta=1e-6, method="efficient")
    assert found.pvalue < 0.05
    charge = found.loss.charge
    assert (charge.epsilon, charge.delta) == (4, Fraction(1, 10**6))
    part = EfficientRelease(5000, 4, target(4, 1e-6, "replace")).part
    assert (part.epsilon, part.delta) == (1, Fraction(1, 14 * 10**6))


@pytest.mark.heavy("test_the_efficient_test_is_right_where_it_has_enough_rows")
def test_uniformity() -> None:
    """True nulls are rejected at their level, skewed categories are seen, odd values left out."""
    rng = np.random.default_rng(7)
    for neighbours in ("replace", "add-remove"):
        found = [
            inference.uniformity_test(
                rng.integers(0, 6, 200),
                categories=range(6),
                epsilon=1,
                neighbours=neighbours,
                draws=300,
            ).pvalue
            for _ in range(400)
        ]
        assert 6 <= np.sum(np.array(found) <= 0.05) <= 40
        skewed = inference.uniformity_test(
            ["a"] * 700 + ["b"] * 300 + [None, float("nan"), [1]],
            categories=["a", "b"],
            epsilon=1,
            neighbours=neighbours,
        )
        assert skewed.pvalue < 0.01


@pytest.mark.parametrize("rows", [np.zeros((0, 3)), [[np.nan, np.inf, 1.0]], [[1e308] * 3] * 2])
def test_no_data_raises_anything(rows: Any) -> None:
    """No row, one row, missing and infinite entries: an honest p-value."""
    for wanted in (
        {"covariance": np.eye(3)},
        {"neighbours": "add-remove"},
        {"method": "lipschitz"},
        {"method": "efficient", "delta": 1e-6},
    ):
        found = inference.identity_test(rows, epsilon=0.1, draws=100, **wanted)
        assert 0 < found.pvalue <= 1
        assert "Cost" in found.summary()


@pytest.mark.parametrize(
    "wanted",
    [
        {"epsilon": 0},
        {"method": "best"},
        {"method": "efficient"},
        {"method": "lipschitz", "neighbours": "add-remove"},
        {"covariance": [[1, 2], [2, 1]]},
        {"covariance": np.eye(3)},
        {"covariance": "x"},
        {"centre": [1]},
        {"draws": 3},
    ],
)
def test_bad_arguments_are_named(wanted: dict[str, Any]) -> None:
    """What is wrong is named, and how it is mended."""
    with pytest.raises(ArgumentError, match=next(reversed(wanted))):
        inference.identity_test([[1, -1]] * 5, **{"epsilon": 1} | wanted)
    with pytest.raises(ArgumentError, match="categories"):
        inference.uniformity_test([1], categories=[1, 1], epsilon=1)
    with pytest.raises(ArgumentError, match="distance"):
        inference.samples_needed("identity", dimension=1, distance=2)


def test_each_test_draws_its_own_null() -> None:
    """Without a seed no two tests share simulated draws; with one they can be repeated."""
    rows = np.ones((30, 2))
    fresh = [inference.identity_test(rows, epsilon=1, draws=100).simulated for _ in range(2)]
    again = [
        inference.identity_test(rows, epsilon=1, draws=100, seed=3).simulated for _ in range(2)
    ]
    assert not np.array_equal(*fresh)
    np.testing.assert_array_equal(*again)


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_no_row_moves_the_signs_of_pairs_further_than_is_claimed(n: int) -> None:
    """Every row of ±1 and 0 in the place of every other, of tables that lean on it."""
    rng = np.random.default_rng(n)
    rows = [np.array(row, dtype=np.int8) for row in itertools.product((-1, 0, 1), repeat=2)]
    furthest = 0
    for seed in range(20):
        table = rng.choice([-1, 1], (n, 2)).astype(np.int8)
        if seed < 2:
            table[:] = 2 * seed - 1
        found = []
        for row in rows:
            table[0] = row
            found.append(pairs_of(table))
        furthest = max(furthest, max(found) - min(found))
    assert furthest <= moved_by_pairs(n)
    assert furthest == 2 * (blocks_for(n) - 1)


def test_pairs_are_simulated_as_they_are_released() -> None:
    """The same mean and deviation from rows that are drawn one by one, fair or not."""
    rng, n, d = np.random.default_rng(1), 40, 30
    for p in (0.5, 0.62):
        drawn = np.concatenate(list(signs_of_pairs(rng, n, np.full(d, p), 2000)))
        each = [
            pairs_of(rng.choice([-1, 1], (n, d), p=[1 - p, p]).astype(np.int8)) for _ in range(300)
        ]
        assert np.mean(each) == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 300**0.5)
        assert np.std(each) == pytest.approx(drawn.std(), rel=0.25)


def test_pairs_need_rows_as_the_root_of_d() -> None:
    """By what is known before: beyond some 3,000 numbers they need fewer than the length."""
    few, many = (inference.cost_of_privacy("identity", 2000, d=d) for d in (100, 10_000))
    assert few.best.name.endswith("norm")
    assert many.best.name.endswith("pairs")
    for found in (few, many):
        assert all(found.lower.at(2000) < m.at(2000) for m in found.methods)
        assert found.summary()
        assert found.plot().axes[0].get_ylabel().startswith("least squared distance")
    asked = {"epsilon": 1, "dimension": 100, "size": 1 / 3, "power": 2 / 3, "draws": 400, "seed": 1}
    assert 150 < inference.samples_needed("identity", method="pairs", **asked) < 220
