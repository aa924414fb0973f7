"""Tests of one sample by one number: what a row moves, levels, power, and what comes in."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import target
from dither.inference.engine._statistic import StatisticRelease, StatisticWithRowsRelease
from dither.inference.estimates._proportion import CanonicalNoise
from dither.inference.hypothesis._one_sample import (
    null_of_signed_ranks,
    pvalue_of_signs,
    sign_statistic,
    signed_rank_statistic,
)
from dither.lab.audit import Outcome, audit

BOTH = ("replace", "add-remove")


def _furthest(statistic: Any, kinds: list[float], rows: int) -> tuple[Fraction, Fraction]:
    """How far a row replaced, and a row added, moves a statistic of so many rows."""
    replaced = added = Fraction(0)
    for others in itertools.combinations_with_replacement(kinds, rows - 1):
        before = statistic(np.array(others))
        after = [statistic(np.array([*others, row])) for row in kinds]
        replaced = max(replaced, max(after) - min(after))
        added = max(added, *(abs(value - before) for value in after))
    return replaced, added


def test_no_row_moves_a_statistic_further_than_proved() -> None:
    """All tables of up to five rows, ties and zeros among them; the bounds are reached."""
    kinds = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    assert _furthest(sign_statistic, kinds, 4) == (1, Fraction(1, 2))
    replaced, added = _furthest(signed_rank_statistic, kinds, 5)
    assert replaced == 2
    assert Fraction(13, 10) < added <= Fraction(3, 2)


def test_signed_ranks_are_sums_over_pairs() -> None:
    """Ranks, mean ranks and zeros give Σ sgn(d_i + d_j), whose pairs the proof counts."""
    rng = np.random.default_rng(1)
    for n in range(1, 12):
        d = rng.integers(-3, 4, n).astype(float)
        pairs = sum(np.sign(d[i] + d[j]) for i in range(n) for j in range(i, n))
        assert signed_rank_statistic(d) * n == pairs


def test_noise_for_one_rank_is_caught() -> None:
    """The classic mistake: noise for the row's own rank, where the others' terms move as well."""
    others = np.arange(1.0, 9.0)
    low, high = np.append(others, -9.0), np.append(others, 9.0)
    design = StatisticRelease(Fraction(1), target(1, 0, "replace"))

    def wrong(d: Any, size: int) -> Any:
        return design.release(signed_rank_statistic(d), size)

    assert audit(wrong, low, high, 1, samples=20_000).verdict is Outcome.VIOLATED


def test_losses_are_what_was_asked_for() -> None:
    """A statistic costs its epsilon, with and without n; the reach holds the rounding."""
    known = StatisticRelease(Fraction(7, 3), target("0.5", 0, "replace"))
    both = StatisticWithRowsRelease(Fraction(3, 2), target("0.5", 0, "add-remove"))
    assert known.loss.charge.epsilon == both.loss.charge.epsilon == Fraction(1, 2)
    assert known.reach >= Fraction(7, 3) * 2**20 + 1
    assert both.noise.scale >= 2 * (Fraction(3, 2) + both.count)
    delta = inference.wilcoxon([1, 2], epsilon=1, delta=1e-6).loss.charge
    assert (delta.epsilon, delta.delta) == (1, Fraction(1, 10**6))


def test_limits_of_nulls_are_near() -> None:
    """Just above the number of rows at which the limit is drawn, both laws agree (1 in 1,000)."""
    rng = np.random.default_rng(2)
    many = null_of_signed_ranks(rng, 1001, 4000)
    few = null_of_signed_ranks(rng, 1000, 4000)
    assert stats.ks_2samp(many, few).pvalue > 1e-3


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["sign", "wilcoxon"])
def test_levels_and_power(name: str, neighbours: Any) -> None:
    """About 5 % of 300 true nulls, and most of 60 false ones at n = 75, half a deviation off."""
    rng = np.random.default_rng(3)
    asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 300}
    tests: dict[str, Any] = {
        "sign": lambda x: inference.sign_test(x, **asked),
        "wilcoxon": lambda x: inference.wilcoxon(x, **asked),
    }
    wrong = sum(tests[name](rng.normal(0, 1, 75)).rejects() for _ in range(300))
    right = sum(tests[name](rng.normal(0.5, 1, 75)).rejects() for _ in range(60))
    assert 3 <= wrong <= 30
    assert right >= 44


@pytest.mark.heavy("test_both_tails_of_signs_are_told_alike")
def test_the_exact_pvalue_of_signs_is_uniform() -> None:
    """Over samples and noise (chance of failing: 1 in 1,000)."""
    rng = np.random.default_rng(4)
    found = [inference.sign_test(rng.normal(0, 1, 9), epsilon=1).pvalue for _ in range(1500)]
    assert stats.kstest(found, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("rows", [400, 40_000, 10**7])
@pytest.mark.parametrize("far", [4.0, 6.5, 8.0])
def test_both_tails_of_signs_are_told_alike(rows: int, far: float) -> None:
    """As far below as above: p-values of 1e-15, of ten million rows as of a few hundred.

    A complement to 1 lost 1e-8 there, so that what should be 1e-11 was told as nothing.
    """
    noise, off = CanonicalNoise(target(1, 0, "replace")), far * math.sqrt(rows) / 2
    asked: list[tuple[float, Any]] = [(off, "greater"), (-off, "less"), (off, "two-sided")]
    above, under, both = (pvalue_of_signs(at, rows, 1.0, noise, kind) for at, kind in asked)
    assert under == pytest.approx(above, rel=1e-9)
    assert both == pytest.approx(2 * above, rel=1e-9)
    if rows == 10**7:  # noise of a few rows is nothing beside sqrt(n)
        assert above == pytest.approx(stats.norm.sf(far), rel=0.02)


def test_alternatives_and_pairs() -> None:
    """One-sided tests see their side alone; pairs are tested by their differences."""
    x = np.random.default_rng(5).normal(1, 1, 200)
    for test in (inference.sign_test, inference.wilcoxon):
        assert test(x, epsilon=1, alternative="greater").pvalue < 0.001
        assert test(x, epsilon=1, alternative="less").pvalue > 0.99
    assert inference.wilcoxon(x + 7, np.full(200, 7.0), epsilon=1).rejects(0.001)
    assert not inference.wilcoxon(x, mu0=1, epsilon=1, seed=1).rejects(1e-4)


HOSTILE: list[Any] = [
    [],
    [3.0],
    [None],
    [float("nan")] * 7,
    [float("inf"), float("-inf"), 1.0],
    [1e308, -1e308],
    [5.0] * 300,
    [0.0] * 300,
]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_data_raises_anything(rows: Any, neighbours: Any) -> None:
    """No row, one, missing, infinite, constant: a p-value."""
    asked: Any = {"epsilon": 0.2, "neighbours": neighbours, "draws": 100}
    for found in (
        inference.sign_test(rows, **asked),
        inference.wilcoxon(rows, **asked),
        inference.wilcoxon(rows, rows, **asked),
    ):
        assert 0 < found.pvalue <= 1
        assert "Cost" in found.summary()


def test_too_few_rows_are_told() -> None:
    """Where noise drowns chance, a note says how many rows would do."""
    assert any("too small" in n for n in inference.wilcoxon([1.0] * 9, epsilon=0.1).notes)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"mu0": "x"}, "mu0"),
        ({"epsilon": 0}, "epsilon"),
        ({"alternative": "both"}, "alternative"),
        ({"draws": 5}, "draws"),
        ({"y": [1]}, "equally many"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, Any], named: str) -> None:
    """What is wrong is named."""
    with pytest.raises(ArgumentError, match=named):
        inference.wilcoxon([1, 2], **{"epsilon": 1} | given)
