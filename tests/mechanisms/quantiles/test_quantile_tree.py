"""Quantile trees: weights against dense least squares, sensitivity by brute force, coverage."""

import itertools
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import noise as samplers
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, QuantileTree
from dither.mechanisms.quantiles.quantile_tree import _weights
from dither.numeric import SimulatedWords
from dither.privacy import Neighbours

LAYOUTS = [(8, 2, 3), (7, 2, 3), (9, 3, 2), (5, 5, 1), (10, 4, 2), (16, 2, 4)]


def design(tree):
    """Every measured node as a row over the padded leaves."""
    size = tree.branching**tree.levels
    rows = []
    for level in range(1, tree.levels + 1):
        width = size // tree.branching**level
        rows.append(np.kron(np.eye(tree.branching**level), np.ones(width)))
    return np.vstack(rows)


def operator(tree):
    """The dense least-squares map from measured nodes to F~ at every edge."""
    size = tree.branching**tree.levels
    leaves = np.linalg.pinv(design(tree))
    prefix = np.tril(np.ones((size + 1, size)), -1)
    return prefix @ leaves


@pytest.mark.parametrize("layout", LAYOUTS)
def test_estimate_is_least_squares(layout):
    """The two passes give the dense least-squares answer on arbitrary noisy counts."""
    tree = QuantileTree(*layout)
    noisy = [
        np.random.default_rng(3).normal(size=(4, tree.branching**level)) * 10
        for level in range(1, tree.levels + 1)
    ]
    expected = np.hstack(noisy) @ operator(tree).T
    found = tree.cumulative(noisy)
    np.testing.assert_allclose(found[:, :-1], expected[:, : tree.bins], atol=1e-9)
    np.testing.assert_allclose(found[:, -1], expected[:, -1], atol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_are_those_of_least_squares(layout):
    """Σw², Σ|w|³ and max|w| by recursion equal those of the dense operator."""
    tree, qs = QuantileTree(*layout), (0.1, 0.5, 0.75)
    dense = operator(tree)
    for i, q in enumerate(qs):
        weights = np.abs(dense - q * dense[-1:])[: tree.bins + 1]
        squares, cubes, largest = (found[i] for found in _weights(tree, qs))
        np.testing.assert_allclose(squares, (weights**2).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(cubes, (weights**3).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(largest, weights.max(axis=1), atol=1e-12)


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("layout", [(4, 2, 2), (3, 2, 2), (4, 4, 1)])
@pytest.mark.parametrize(("rows", "groups"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_sensitivity_by_brute_force(neighbours, layout, rows, groups):
    """The claimed sensitivities are the largest changes that one unit can make."""
    tree = QuantileTree(*layout)
    here = [
        c
        for r in range(rows + 1)
        for c in itertools.combinations_with_replacement(range(tree.bins), r)
    ]
    # Under REPLACE the old and the new unit may sit in different groups.
    number = groups * (2 if neighbours is Neighbours.REPLACE else 1)

    def table(*choice):
        leaves = np.zeros((number, tree.bins), dtype=np.int64)
        for group, bins in choice:
            for b in bins:
                leaves[group, b] += 1
        return np.hstack(tree.counts(leaves))

    biggest = max(here, key=lambda c: (len(c), -len(set(c))))
    old = table(*((g, biggest) for g in range(groups)))
    changes = []
    for bins in here:
        if neighbours is Neighbours.ADD_REMOVE:
            changes.append(table(*((g, bins) for g in range(groups))))
        else:
            changes.extend(
                old - table(*((start + g, bins) for g in range(groups))) for start in (0, groups)
            )
    l1, l2_squared = tree.sensitivity(max_rows=rows, max_groups=groups, neighbours=neighbours)
    assert max(np.abs(c).sum() for c in changes) == l1
    assert max((c**2).sum() for c in changes) == l2_squared


def shapes(bins, rng):
    """Groups of several shapes and sizes, tiny and constant ones among them."""
    spread = rng.multinomial(2000, np.ones(bins) / bins)
    peaked = rng.multinomial(300, np.exp(-np.arange(bins) / 5) / np.exp(-np.arange(bins) / 5).sum())
    two = np.zeros(bins, dtype=np.int64)
    two[[3, bins - 2]] = 40, 60
    constant = np.zeros(bins, dtype=np.int64)
    constant[bins // 3] = 500
    tiny = np.zeros(bins, dtype=np.int64)
    tiny[bins // 2] = 1
    return np.array([spread, peaked, two, constant, tiny, np.eye(bins, dtype=int)[0] * 3])


@pytest.mark.parametrize("kind", ["laplace", "small laplace", "gaussian"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_coverage(kind, confidence):
    """The true quantile's bin lies within the interval at least as often as stated.

    4,000 repetitions for each shape and quantile. A true coverage at the nominal level would fall
    under the bar (5.5 standard errors below nominal) with probability below 2e-8 in each of 18
    comparisons: false alarms below 4e-7.
    """
    bins, repeat, qs = 60, 4000, (0.05, 0.5, 0.9)
    tree = QuantileTree.choose(bins, "gaussian" if kind == "gaussian" else "laplace")
    words = SimulatedWords(20240517)
    data = shapes(bins, np.random.default_rng(5))
    law = DiscreteLaplace(F(7) if kind == "laplace" else F(2, 5))
    if kind == "gaussian":
        law = DiscreteGaussian(F(50))
    bar = confidence - 5.5 * (confidence * (1 - confidence) / repeat) ** 0.5
    for leaves in data:
        noisy = []
        for level in tree.counts(np.broadcast_to(leaves, (repeat, bins))):
            if kind == "gaussian":
                drawn = samplers.discrete_gaussian(law.sigma2, level.size, words=words)
            else:
                drawn = samplers.discrete_laplace(law.scale, level.size, words=words)
            noisy.append(level + drawn.reshape(level.shape))
        found = tree.quantiles(noisy, qs, law, confidence)
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
        truth = np.searchsorted(np.cumsum(leaves), np.array(qs) * leaves.sum(), side="left")
        covered = ((found.lower <= truth) & (truth + 1 <= found.upper)).mean(axis=0)
        assert (covered >= bar).all()


def test_intervals_narrow_with_the_group():
    """A large group's interval is a few bins wide; with next to no noise it is the one bin."""
    tree = QuantileTree.choose(60, "laplace")
    leaves = np.full((1, 60), 1000)
    law = DiscreteLaplace(F(7))
    found = tree.quantiles(tree.measure(leaves, law), [0.5], law, 0.95)
    assert found.upper - found.lower <= 4
    assert abs(found.value - 30) <= 2
    exact = DiscreteLaplace(F(1, 100))
    odd = np.full((1, 60), 1000)
    odd[0, 10] = 1001
    found = tree.quantiles(tree.measure(odd, exact), [0.401], exact, 0.95)
    assert (found.lower, found.upper) == (24, 25)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 3000), st.sampled_from(["laplace", "gaussian"]))
def test_chosen_layout_is_no_worse_than_flat_or_binary(bins, family):
    """The chosen layout holds the grid and beats both textbook layouts by its own measure."""
    tree = QuantileTree.choose(bins, family)
    power = 2 if family == "laplace" else 1

    def error(layout):
        return _weights(layout, (0.5,))[0].mean() * layout.levels**power

    assert tree.branching**tree.levels >= bins
    flat = QuantileTree(bins, max(2, bins), 1)
    binary = QuantileTree(bins, 2, max(1, (bins - 1).bit_length()))
    assert error(tree) <= min(error(flat), error(binary)) * (1 + 1e-12)


def test_refusals():
    """Layouts, shapes and quantiles that do not fit are refused by name."""
    with pytest.raises(ArgumentError, match="levels"):
        QuantileTree(9, 2, 3)
    with pytest.raises(ArgumentError, match="bins"):
        QuantileTree.choose(0, "laplace")
    with pytest.raises(ArgumentError, match="family"):
        QuantileTree.choose(4, "cauchy")
    tree = QuantileTree(4, 2, 2)
    with pytest.raises(ArgumentError, match="leaves"):
        tree.counts(np.zeros((1, 5), dtype=np.int64))
    noisy = tree.counts(np.zeros((1, 4), dtype=np.int64))
    with pytest.raises(ArgumentError, match="noisy"):
        tree.quantiles(noisy[:1], [0.5], DiscreteLaplace(F(1)), 0.95)
    for qs in ([], [1.5], [float("nan")]):
        with pytest.raises(ArgumentError, match="qs"):
            tree.quantiles(noisy, qs, DiscreteLaplace(F(1)), 0.95)
    with pytest.raises(ArgumentError, match="max_rows"):
        tree.sensitivity(max_rows=0, max_groups=1)
