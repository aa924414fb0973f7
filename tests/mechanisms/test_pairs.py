"""Intervals of covariance, slope and correlation: they hold, and are as wide as the noise needs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dither.mechanisms import (
    Combination,
    DiscreteGaussian,
    DiscreteLaplace,
    PairSums,
    pair_interval,
)

NOISES: dict[str, Any] = {
    "Laplace": DiscreteLaplace(Fraction(40)),
    "Gaussian": DiscreteGaussian(Fraction(3000)),
}
RUNS = 400
FEWEST = int(binom.ppf(1e-5, RUNS, 0.95))


def _sums() -> PairSums:
    one = [Combination({i: np.ones(())}) for i in range(6)]
    return PairSums(*one, reach=(20.0, 20.0))  # type: ignore[arg-type]


def _exact(n: int, slope: float, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], Any]:
    x = np.clip(np.rint(rng.normal(3, 6, n)), -20, 20)
    y = np.clip(np.rint(slope * x + rng.normal(-2, 4, n)), -20, 20)
    sums = np.array([n, x.sum(), y.sum(), (x * y).sum(), (x * x).sum(), (y * y).sum()])
    covariance = float(np.mean(x * y) - x.mean() * y.mean())
    truths = {
        "COVARIANCE": covariance,
        "SLOPE": covariance / x.var(),
        "CORRELATION": covariance / (x.std() * y.std()),
    }
    return sums, truths


@pytest.mark.parametrize("family", NOISES)
@pytest.mark.parametrize("n", [60, 30_000])
@pytest.mark.parametrize("slope", [0.0, 0.5, -3.0])
def test_they_hold_and_are_no_wider_than_they_must(n: int, slope: float, family: str) -> None:
    """Groups are runs: at least 359 of 400 hold; of many rows the width is that of the spread."""
    rng, noise = np.random.default_rng(1), NOISES[family]
    sums, truths = _exact(n, slope, rng)
    scale = noise.variance**0.5
    drawn = rng.laplace(0, scale / 2**0.5, (6, RUNS))
    if family == "Gaussian":
        drawn = rng.normal(0, scale, (6, RUNS))
    noisy = dict(enumerate(sums[:, None] + np.rint(drawn)))
    for word, truth in truths.items():
        lower, upper = pair_interval(word, _sums(), noisy, dict.fromkeys(range(6), noise), 0.95)
        assert ((lower <= truth) & (truth <= upper)).sum() >= FEWEST
        if n > 60:
            needed = np.quantile(np.abs(_statistic(word, noisy) - truth), 0.95)
            # From intervals of its parts a correlation's would be 1.6 times as wide as that.
            assert 0.9 < np.median(upper - lower) / 2 / needed < 1.35


def _statistic(word: str, noisy: dict[int, Any]) -> Any:
    n, x, y, xy, xx, yy = (noisy[i] for i in range(6))
    covariance = xy / n - x * y / n**2
    first, second = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
    bottom = {"COVARIANCE": 1.0, "SLOPE": first, "CORRELATION": np.sqrt(first * second)}
    return covariance / bottom[word]


def test_nothing_is_said_where_nothing_is_known() -> None:
    """An empty group, and one of which a column may not vary: everything stays possible."""
    noises = dict.fromkeys(range(6), NOISES["Laplace"])
    for sums in (np.zeros(6), np.full(6, -900.0), np.array([900, 0, 0, 0, 0, 9000.0])):
        noisy = dict(enumerate(sums[:, None]))
        lower, upper = pair_interval("CORRELATION", _sums(), noisy, noises, 0.95)
        assert lower == -np.inf
        assert upper == np.inf
