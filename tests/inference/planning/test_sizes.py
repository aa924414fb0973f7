"""How many rows a test needs: what is told reaches the power that was asked for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference import samples_needed
from dither.inference.planning._designs import ALL

Once = Callable[[np.random.Generator, int, dict[str, Any]], Any]

ENDS = {"bounds": (-3, 3)}
FIVE = (1 + 0.3 * math.sqrt(5 / 4) * np.array([1, -1, 1, -1, 0])) / 5


def test_own_designs_can_be_sized() -> None:
    """A callable brings its own mechanism; the answer is the textbook's where there is no noise."""

    def z_test(n: int, alternative: bool, rng: np.random.Generator, size: int) -> Any:
        return rng.normal(0.5 * math.sqrt(n) if alternative else 0.0, 1.0, size)

    found = inference.samples_needed(z_test, size=0.05, power=0.8, draws=20_000)
    assert abs(found - ((1.6449 + 0.8416) / 0.5) ** 2) < 2.5


def _halves(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.normal(0, 1, n)
    return x[: n // 2] + 0.6, x[n // 2 :]


def _three(rng: np.random.Generator, n: int) -> list[Any]:
    return [rng.normal(0.8 - 0.4 * g, 1, (n + g) // 3) for g in range(3)]


def _pairs(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.normal(0, 1, n)
    return x, 0.4 * x + math.sqrt(0.84) * rng.normal(0, 1, n)


def _cells(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = rng.integers(0, 2, n)
    return x, np.where(rng.random(n) < 0.5 + 0.15 * (1 - 2 * x), 0, 1)


def _arms(rng: np.random.Generator, n: int, asked: dict[str, Any]) -> Any:
    arm = np.arange(n) % 2
    # Half have died by 10, at hazards of which one is twice the other.
    time = rng.exponential(10 / math.log(2) * np.where(arm, 0.5**0.5, 2**0.5))
    return inference.logrank_test(
        np.minimum(time, 10), time <= 10, arm, levels=[0, 1], bounds=(0, 10), **asked
    )


TESTS: dict[str, tuple[dict[str, Any], Once]] = {
    "sign_test": (
        {"distance": 0.5},
        lambda rng, n, a: inference.sign_test(rng.normal(0.5, 1, n), **a),
    ),
    "wilcoxon": (
        {"distance": 0.5},
        lambda rng, n, a: inference.wilcoxon(rng.normal(0.5, 1, n), **a),
    ),
    "ztest": (
        {"distance": 0.5},
        lambda rng, n, a: inference.ztest(rng.normal(0.5, 1, n), sigma=1, **a),
    ),
    "ttest_1samp": (
        {"distance": 0.5, "bounds": (-2, 3)},
        lambda rng, n, a: inference.ttest_1samp(rng.normal(0.5, 1, n), 0, bounds=(-2, 3), **a),
    ),
    "ttest_rel": (
        {"distance": 0.5},
        lambda rng, n, a: inference.ttest_rel(rng.normal(3.5, 1, n), np.full(n, 3.0), **ENDS, **a),
    ),
    "ks_1samp": (
        {"distance": 0.5},
        lambda rng, n, a: inference.ks_1samp(rng.normal(0.5, 1, n), "norm", **a),
    ),
    "mannwhitneyu": (
        {"distance": 0.6},
        lambda rng, n, a: inference.mannwhitneyu(*_halves(rng, n), **a),
    ),
    "ks_2samp": ({"distance": 0.6}, lambda rng, n, a: inference.ks_2samp(*_halves(rng, n), **a)),
    "ttest_ind": (
        {"distance": 0.6},
        lambda rng, n, a: inference.ttest_ind(*_halves(rng, n), **ENDS, **a),
    ),
    "kruskal": ({"distance": 0.8}, lambda rng, n, a: inference.kruskal(*_three(rng, n), **a)),
    "f_oneway": (
        {"distance": 0.8},
        lambda rng, n, a: inference.f_oneway(*_three(rng, n), **ENDS, **a),
    ),
    "kendalltau": ({"distance": 0.4}, lambda rng, n, a: inference.kendalltau(*_pairs(rng, n), **a)),
    "pearsonr": ({"distance": 0.4}, lambda rng, n, a: inference.pearsonr(*_pairs(rng, n), **a)),
    "goodness_of_fit": (
        {"distance": 0.3, "dimension": 5},
        lambda rng, n, a: inference.goodness_of_fit(
            rng.choice(5, n, p=FIVE), categories=range(5), **a
        ),
    ),
    "uniformity_test": (
        {"distance": 0.3, "dimension": 5},
        lambda rng, n, a: inference.uniformity_test(
            rng.choice(5, n, p=FIVE), categories=range(5), **a
        ),
    ),
    "independence_test": (
        {"distance": 0.3, "dimension": 2},
        lambda rng, n, a: inference.independence_test(
            *_cells(rng, n), x_categories=range(2), y_categories=range(2), **a
        ),
    ),
    "logrank_test": ({"distance": math.log(2)}, lambda rng, n, a: _arms(rng, n, a)),
}


def test_every_name_is_held_here() -> None:
    """Whatever `samples_needed` takes by its name has a test below."""
    assert set(TESTS) == set(ALL)


@pytest.mark.parametrize("test", TESTS)
def test_sizes_reach_their_power(test: str) -> None:
    """With the n that is named, 100 runs of the test itself have about the power asked for."""
    rng, (wanted, once) = np.random.default_rng(8), TESTS[test]
    n = samples_needed(test, epsilon=1, power=0.8, draws=1000, seed=1, **wanted)
    asked = {"epsilon": 1, "draws": 200}
    assert 0.64 <= np.mean([once(rng, n, asked).rejects() for _ in range(100)]) <= 0.94


@pytest.mark.heavy("test_sizes_reach_their_power")
def test_sizes_of_many_rows_are_near_the_open_ones() -> None:
    """Where effects are small the noise costs little: nearly the textbook's numbers."""
    both = (1.96 + 0.8416) / 0.02
    for test, times in (("ttest_1samp", 1), ("ttest_ind", 4), ("mannwhitneyu", 4.19)):
        found = samples_needed(test, distance=0.02, draws=2500, seed=2)
        assert 0.97 < found / (times * both**2) < 1.15
    three = samples_needed("kruskal", distance=0.02, draws=2500, seed=2)
    # Of three groups the noncentrality is n·d²/6, and 9.63 has power .8; ranks see 3/π of it.
    assert 0.95 < three / (9.63 * 6 / 0.02**2 * math.pi / 3) < 1.15


def test_sizes_of_the_log_rank_test_without_noise_are_schoenfelds() -> None:
    """Four events for each squared deviation of power and level over the squared logarithm."""
    found = samples_needed("logrank_test", epsilon=10**5, distance=math.log(2), draws=2000, seed=3)
    assert found == pytest.approx(4 * (1.96 + 0.8416) ** 2 / math.log(2) ** 2 / 0.5, rel=0.1)


def test_bad_arguments_are_named() -> None:
    """Before anything is simulated."""
    for wanted, named in (
        ({"test": "anova"}, "test"),
        ({"test": "pearsonr", "distance": 1}, "correlation"),
        ({"test": "kruskal", "groups": 1}, "groups"),
        ({"test": "ttest_ind", "bounds": (1, 3)}, "bounds"),
        ({"test": "goodness_of_fit"}, "dimension"),
        ({"test": "uniformity_test", "dimension": 4, "distance": 2}, "distance"),
    ):
        with pytest.raises(ArgumentError, match=named):
            samples_needed(**wanted)
