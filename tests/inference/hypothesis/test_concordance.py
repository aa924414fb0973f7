"""Kendall's tau and Pearson's correlation: what a row moves, levels, power, intervals."""

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
from dither.inference.engine._statistic import StatisticRelease
from dither.inference.hypothesis._concordance import (
    ConcordanceRelease,
    concordance,
    null_of_concordance,
)
from dither.inference.hypothesis._pearson import tau_of
from dither.lab.audit import Outcome, audit
from inference.neighbouring import BOTH


def test_no_row_moves_concordance_further_than_proved() -> None:
    """Every table of four pairs: 2(n - 1)/n replaced, below 3/2 added; and it counts pairs."""
    kinds = list(itertools.product((0.0, 1, 2), repeat=2))
    replaced, added = 0.0, 0.0
    for others in itertools.combinations_with_replacement(kinds, 3):
        x, y = (np.array(part) for part in zip(*others, strict=True))
        after = []
        for a, b in kinds:
            p, q = np.append(x, a), np.append(y, b)
            after.append(concordance(p, q) / 4)
            pairs = itertools.combinations(range(4), 2)
            assert after[-1] * 4 == sum(
                np.sign(p[i] - p[j]) * np.sign(q[i] - q[j]) for i, j in pairs
            )
        replaced = max(replaced, max(after) - min(after))
        added = max(added, *(abs(v - concordance(x, y) / 3) for v in after))
    assert replaced == 2 * 3 / 4
    assert 0.9 < added <= 1.5


def test_concordance_counts_pairs_of_any_table() -> None:
    """Ties, infinities and sizes about the powers of two that are merged."""
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 15, 16, 17, 33, 65):
        x, y = (rng.integers(-n // 3, n // 3 + 1, n).astype(float) for _ in range(2))
        x[: n // 9], y[: n // 8] = math.inf, -math.inf
        pairs = itertools.combinations(range(n), 2)
        assert concordance(x, y) == sum(
            ((x[i] > x[j]) - int(x[i] < x[j])) * ((y[i] > y[j]) - int(y[i] < y[j]))
            for i, j in pairs
        )


def test_noise_for_one_pair_is_caught() -> None:
    """The classic mistake: the mean of pairs taken as a mean of rows, of which one moves by 2/n.

    A row is in n - 1 pairs: the mean over pairs moves by 4/n, and K/n by 2 rather than 1.
    """
    x = np.arange(9.0)
    turned = np.append(9.0, x[1:])
    design = StatisticRelease(Fraction(1), target(1, 0, "replace"))
    known = ConcordanceRelease(target(1, 0, "replace"))

    def wrong(y: Any, size: int) -> Any:
        return design.release(known.statistic(x, y), size)

    assert audit(wrong, x, turned, 1, samples=20_000).verdict is Outcome.VIOLATED


def test_losses_are_what_was_asked_for() -> None:
    """Whatever follows from the release costs nothing more."""
    x = np.arange(30.0)
    for neighbours in BOTH:
        asked: Any = {"epsilon": "0.7", "neighbours": neighbours, "draws": 100}
        found = inference.pearsonr(x, x, **asked)
        found.interval(0.9)
        for test in (found, inference.kendalltau(x, x, **asked)):
            assert test.loss.charge.epsilon == Fraction(7, 10)
            assert test.loss.charge.delta == 0
    cut = inference.pearsonr(x, x, epsilon=1, delta=1e-6, draws=100).loss.charge
    assert (cut.epsilon, cut.delta) == (1, Fraction(1, 10**6))


def test_the_limit_of_the_null_is_near() -> None:
    """Permutations and the normal limit have one law (chance of failing: 1 in 1,000)."""
    rng = np.random.default_rng(1)
    few, many = null_of_concordance(rng, 60, 3000), null_of_concordance(rng, 61, 3000)
    assert stats.ks_2samp(few, many).pvalue > 1e-3


@pytest.mark.parametrize("rho", [0.0, 0.4, -0.9])
def test_moments_of_tau_are_those_of_normal_pairs(rho: float) -> None:
    """Greiner's mean and Esscher's variance against samples (chance of failing: 1 in 10,000)."""
    rng, n, runs = np.random.default_rng(2), 12, 4000
    x = rng.normal(size=(runs, n))
    y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=(runs, n))
    taus = np.array([2 * concordance(a, b) / (n * (n - 1)) for a, b in zip(x, y, strict=True)])
    mean, deviation = (float(v[0]) for v in tau_of(np.array([rho]), n))
    assert abs(taus.mean() - mean) < 4 * deviation / math.sqrt(runs)
    assert taus.std() == pytest.approx(deviation, rel=0.06)


def _pairs(rng: np.random.Generator, n: int, rho: float) -> tuple[Any, Any]:
    x = rng.normal(0, 1, n)
    return x, rho * x + math.sqrt(1 - rho**2) * rng.normal(0, 1, n)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["kendalltau", "pearsonr"])
def test_levels_and_power(name: str, neighbours: Any) -> None:
    """About 5 % of 300 true nulls, and at least 70 % of correlations of .3 with 150 rows."""
    rng, test = np.random.default_rng(2), getattr(inference, name)
    asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 200}
    assert sum(test(*_pairs(rng, 150, 0.0), **asked).rejects() for _ in range(300)) <= 30
    assert sum(test(*_pairs(rng, 150, 0.3), **asked).rejects() for _ in range(60)) >= 42


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("n", "rho", "epsilon"), [(60, 0.5, 1), (400, -0.9, 0.5)])
def test_intervals_hold_the_correlation(n: int, rho: float, epsilon: Any, neighbours: Any) -> None:
    """150 runs; a true .95 fails once in 10⁴. Standard errors are of the size of the errors."""
    rng, held, off, errors = np.random.default_rng(3), 0, [], []
    for _ in range(150):
        found = inference.pearsonr(
            *_pairs(rng, n, rho), epsilon=epsilon, neighbours=neighbours, draws=400
        )
        low, high = found.interval()
        held += low <= rho <= high
        off.append(found.estimate - rho)
        errors.append(found.se)
    assert held >= 130
    assert 0.6 < np.median(errors) / np.sqrt(np.mean(np.square(off))) < 1.5


def test_errors_of_a_correlation() -> None:
    """Both parts add up, wider confidence holds narrower, and enough rows leave little noise."""
    x, y = _pairs(np.random.default_rng(4), 2000, 0.6)
    found = inference.pearsonr(x, y, epsilon=1, seed=1)
    assert found.se**2 == pytest.approx(found.se_sampling**2 + found.se_privacy**2)
    (a, b), (c, d) = found.interval(0.99), found.interval(0.5)
    assert -1 <= a < c < found.estimate < d < b <= 1
    assert found.se_privacy < found.se_sampling
    assert "Correlation of normal pairs" in found.summary()
    assert inference.pearsonr(x, y, epsilon=1, alternative="less").pvalue > 0.99


HOSTILE: list[Any] = [
    [],
    [3.0],
    [None],
    [float("nan")] * 5,
    [float("inf"), -1e308],
    [5.0] * 50,
    range(9),
]


@pytest.mark.parametrize("epsilon", [0.01, 8, 100])
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_data_raises_anything(rows: Any, neighbours: Any, epsilon: Any) -> None:
    """No row, one, missing, infinite, constant: a p-value, and an interval within [-1, 1]."""
    asked: Any = {"epsilon": epsilon, "neighbours": neighbours, "draws": 100}
    for found in (
        inference.kendalltau(rows, rows, **asked),
        inference.pearsonr(rows, rows, **asked),
    ):
        assert 0 < found.pvalue <= 1
        assert "Cost" in found.summary()
    low, high = found.interval()  # type: ignore[attr-defined]
    assert -1 <= low <= high <= 1


def test_bad_arguments_are_named() -> None:
    """What is wrong is named."""
    for test in (inference.kendalltau, inference.pearsonr):
        with pytest.raises(ArgumentError, match="equally many"):
            test([1], [2, 3], epsilon=1)
        with pytest.raises(ArgumentError, match="alternative"):
            test([1], [2], epsilon=1, alternative="x")
    with pytest.raises(ArgumentError, match="confidence"):
        inference.pearsonr([1, 2], [2, 3], epsilon=1).interval(2)
