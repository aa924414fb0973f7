"""The range tree: closed forms against dense algebra, and the errors that it was chosen for."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.synth.ranges._tree import RangeTree, _mean_square, _square


def even(bins: int, branchings: tuple[int, ...], family: str = "laplace") -> RangeTree:
    """A layout with the same share for each level."""
    shares = (F(1, len(branchings)),) * len(branchings)
    return RangeTree(bins, branchings, shares, family)


def dense(tree: RangeTree, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of all leaves' estimates, and the variance of each measurement."""
    n = math.prod(tree.branchings)
    a = np.vstack([np.kron(np.eye(n // s), np.ones(s)) for s in tree.sizes])
    each = np.repeat(variances, [n // s for s in tree.sizes])
    w = a.T / each
    return np.linalg.solve(w @ a, w), each


@pytest.mark.parametrize(
    ("bins", "branchings"), [(11, (3, 4)), (12, (1, 3, 2, 2)), (7, (2, 2, 2)), (1, (1,)), (5, (5,))]
)
def test_every_range_has_the_estimate_and_the_variance_of_dense_least_squares(
    bins: int, branchings: tuple[int, ...]
) -> None:
    """All ranges of small trees, uneven noise, empty leaves; no weight above its bound."""
    rng = np.random.default_rng(1)
    tree, variances = even(bins, branchings), rng.uniform(0.5, 2, len(branchings))
    made_of, each = dense(tree, variances)
    noisy = [rng.normal(9, 3, len(level)) for level in tree.counts(np.zeros(bins, dtype=np.int64))]
    below = tree.cumulative(noisy, list(variances))
    i, j = np.triu_indices(bins + 1, 1)
    leaves = np.arange(made_of.shape[0])
    ranges = ((leaves >= i[:, None]) & (leaves < j[:, None])).astype(float)
    weights = ranges @ made_of
    np.testing.assert_allclose(below[j] - below[i], weights @ np.concatenate(noisy), atol=1e-9)
    found = tree.variance(i, j, list(variances))
    np.testing.assert_allclose(found, (weights**2 * each).sum(axis=1))
    assert np.abs(weights * np.sqrt(each)).max() <= tree.largest(list(variances)) + 1e-12


@pytest.mark.parametrize("bins", [1, 5, 11, 64])
@pytest.mark.parametrize("size", [1, 3, 4, 16, 64])
def test_mean_squares_are_those_over_all_ranges(bins: int, size: int) -> None:
    """The closed form of the mean, against the sum."""
    i, j = np.triu_indices(bins + 1, 1)
    assert _mean_square(bins, size) == pytest.approx(float(_square(i, j, size).mean()))


def test_all_ranges_of_1024_values() -> None:
    """Root mean squared errors at epsilon 1, and in deviations of one table at equal rho.

    With a flat histogram of Laplace noise the first is 26.2, with a binary tree whose levels share
    evenly 20.3 and 4.53.
    """
    laplace, gaussian = (RangeTree.choose(1024, family) for family in ("laplace", "gaussian"))
    assert even(1024, (1024,)).error == pytest.approx(26.15, abs=0.01)
    assert even(1024, (2,) * 10).error == pytest.approx(20.26, abs=0.01)
    assert laplace.error == pytest.approx(12.39, abs=0.01)
    assert gaussian.error == pytest.approx(4.248, abs=0.001)
    i, j = np.triu_indices(1025, 1)
    for tree, variances in (
        (laplace, [2 / float(s) ** 2 for s in laplace.shares]),
        (gaussian, [1 / float(s) for s in gaussian.shares]),
    ):
        mean = float(tree.variance(i, j, variances).mean())
        assert math.sqrt(mean) == pytest.approx(tree.error)


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_no_other_division_of_the_budget_is_better(family: str) -> None:
    """Around the one that was chosen, the mean variance rises."""
    rng = np.random.default_rng(2)
    tree = RangeTree.choose(40, family)
    each = np.array([float(s) for s in tree.shares])
    for _ in range(50):
        moved = each * np.exp(0.2 * rng.normal(size=len(each)))
        shares = tuple(F(round(x * 10**6), 1) for x in moved)
        other = RangeTree(40, tree.branchings, tuple(s / sum(shares) for s in shares), family)
        assert other.error >= tree.error * (1 - 1e-6)


@pytest.mark.parametrize("bins", [1, 2, 3, 10, 111, 1000])
@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_a_layout_is_chosen_for_every_size(bins: int, family: str) -> None:
    """It holds the bins, and its shares are a budget; counts without noise give every range."""
    tree = RangeTree.choose(bins, family)
    assert math.prod(tree.branchings) >= bins
    assert sum(tree.shares) == 1
    leaves = np.random.default_rng(3).integers(0, 9, bins)
    below = tree.cumulative(tree.counts(leaves), [1.0] * tree.levels)
    np.testing.assert_allclose(below, np.concatenate([[0], np.cumsum(leaves)]), atol=1e-6)


def test_what_is_not_a_layout_is_refused() -> None:
    """Too few leaves, or shares that are not a budget."""
    with pytest.raises(ArgumentError):
        even(9, (2, 4))
    with pytest.raises(ArgumentError):
        RangeTree(8, (2, 4), (F(1, 2), F(1, 4)), "laplace")
