"""Where noisy scores are 0: the law of margins, and how few rounds it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dither.inference.regression._margins import MarginModel


def _moments(u: Any, weights: Any) -> Any:
    return (u * weights[:, None]).T @ u


def _score(u: Any, weights: Any, slopes: Any) -> Any:
    return u.T @ (weights / (1 + np.exp(-(u @ slopes))))


SHAPES = {
    "even": (1.0, 1.0),
    "few high": (0.5, 3.0),
    "at both ends": (0.3, 0.2),
    "in the middle": (40.0, 40.0),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.5, 2.0), (-1.25, 6.25), (3.0, -20.0)])
def test_of_a_beta_law_it_is_exact(name: str, slopes: tuple[float, float]) -> None:
    """The score and its slope of one column, against sums over its quantiles."""
    from scipy.stats import beta

    law, n = beta(*SHAPES[name]), 100_000
    z = 2 * law.ppf((np.arange(n) + 0.5) / n) - 1
    u, at, each = np.column_stack([np.ones(n), z]), np.array(slopes), np.ones(n)
    found, slope = MarginModel(_moments(u, each), floor=0.0).score(at)
    np.testing.assert_allclose(found, _score(u, each, at), atol=4e-3 * n)
    p = 1 / (1 + np.exp(-(u @ at)))
    np.testing.assert_allclose(slope, _moments(u, p * (1 - p)), atol=4e-3 * n)


def _columns(name: str, n: int, rng: np.random.Generator) -> Any:
    if name == "skew":
        return np.clip(rng.exponential(0.4, (n, 1)) - 1, -1, 1)
    if name == "levels":
        level = rng.choice(4, n, p=[0.1, 0.2, 0.3, 0.4])
        return np.column_stack([level == k for k in (1, 2, 3)]).astype(float)
    if name == "pulled apart":
        return np.column_stack([np.sign(rng.normal(size=n)), rng.uniform(-1, 1, n) ** 3])
    return np.clip(rng.normal(0, 0.4, (n, 6)), -1, 1)


TRUTHS = {
    "skew": [-1.0, 4.0],
    "levels": [-2.0, 1.0, 3.0, 5.0],
    "pulled apart": [0.5, 3.0, -5.0],
    "many": [0.3, 5.0, -4.0, 3.0, 0.0, -2.0, 1.0],
}


@pytest.mark.parametrize("name", TRUTHS)
def test_three_rounds_arrive_where_steps_by_a_bound_do_not(name: str) -> None:
    """Without noise, from 0: margins that are right to a few tenths, where they were off by more.

    Steps by M/4, which is above the slope wherever they are, leave more than three times as much.
    """
    rng, n = np.random.default_rng(3), 40_000
    z = _columns(name, n, rng)
    u = np.column_stack([np.ones(n), z])
    weights = np.minimum(1.0, np.sqrt(1 + z.shape[1] / 3) / np.sqrt((u**2).sum(1)))
    truth, target = np.array(TRUTHS[name]), _score(u, weights, np.array(TRUTHS[name]))
    gram = _moments(u, weights**2)
    model = MarginModel(gram, floor=1.0)
    ours, by_bound = np.zeros((2, len(truth)))
    for _ in range(3):
        ours = model.next(ours, _score(u, weights, ours) - target)
        by_bound = by_bound - 4 * np.linalg.solve(gram, _score(u, weights, by_bound) - target)
    off, short = (np.sqrt(np.mean((u @ (at - truth)) ** 2)) for at in (ours, by_bound))
    assert off < 0.3
    assert short > 3 * off


@pytest.mark.parametrize("size", [1, 2, 40])
def test_nothing_that_noise_can_make_of_moments_raises_anything(size: int) -> None:
    """Moments that no rows have, scores of any length, coefficients out to the last ones."""
    rng = np.random.default_rng(size)
    for scale in (0.0, 1.0, 1e9):
        gram = rng.normal(0, 1 + scale, (size, size))
        model = MarginModel(gram + gram.T, floor=1.0)
        for far in (0.0, 1.0, 1e6):
            at = rng.normal(0, 1 + far, size) * far
            score = rng.normal(0, 1, size) * scale
            assert all(np.isfinite(found).all() for found in model.score(at))
            assert np.isfinite(model.next(at, score)).all()
