"""Quantiles over a wide range: coverage, what is read, and that nothing else is."""

from fractions import Fraction as F

import numpy as np
import pytest

from dither import noise as samplers
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, QuantileTree
from dither.mechanisms.quantiles.quantile_tree import Candidates
from dither.mechanisms.quantiles.refined_quantiles import FIRST, OPEN, OpenedBins, RefinedQuantiles
from dither.numeric import SimulatedWords

STRETCHES, SIZE, BINS = 24, 40, 24 * 40 - 7


def simulated(noise, words):
    """The same law, from a seed."""
    draw, parameter = (
        (samplers.discrete_laplace, noise.scale)
        if isinstance(noise, DiscreteLaplace)
        else (samplers.discrete_gaussian, noise.sigma2)
    )
    return lambda shape: draw(parameter, int(np.prod(shape)), words=words).reshape(shape)


def shapes():
    """Groups of several shapes: spread, on one value, on two, few rows, and at the very end."""
    found = np.zeros((6, STRETCHES * SIZE), dtype=np.int64)
    found[0, :BINS] = np.random.default_rng(1).multinomial(40_000, np.full(BINS, 1 / BINS))
    found[1, 333] = 3000
    found[2, [41, 900]] = 700, 900
    found[3, [100, 101, 102]] = 1, 1, 1
    found[4, BINS - 1] = 500
    found[5, 400:480] = np.random.default_rng(2).multinomial(5000, np.full(80, 1 / 80))
    return found


def truth(leaves, q):
    """The bin of the quantile as SQL interpolates it: q (n - 1) rows from the first."""
    values = np.repeat(np.arange(leaves.size), leaves)
    return float(np.quantile(values, q))


@pytest.mark.parametrize("kind", ["laplace", "sharp laplace", "gaussian"])
def test_coverage(kind):
    """The interpolated quantile lies in the interval at least as often as stated.

    1,500 repetitions for each of 6 shapes and 3 quantiles. A true coverage at the nominal level
    would fall under the bar (5.5 standard errors below it) with probability below 2e-8 in each of
    54 comparisons: false alarms below 2e-6.
    """
    repeat, confidence, qs = 1500, 0.9, (0.1, 0.5, 0.98)
    family = "gaussian" if kind == "gaussian" else "laplace"
    layout = RefinedQuantiles(
        QuantileTree.choose(STRETCHES, family), QuantileTree.choose(SIZE, family), BINS
    )
    laws = {
        "laplace": (DiscreteLaplace(F(6)), DiscreteLaplace(F(16))),
        "sharp laplace": (DiscreteLaplace(F(2, 5)), DiscreteLaplace(F(1))),
        "gaussian": (DiscreteGaussian(F(60)), DiscreteGaussian(F(240))),
    }[kind]
    words = SimulatedWords(20250101)
    draws = [simulated(law, words) for law in laws]
    bar = confidence - 5.5 * (confidence * (1 - confidence) / repeat) ** 0.5
    for leaves in shapes():
        stretches = leaves.reshape(STRETCHES, SIZE)
        top = [
            level + draws[0](level.shape)
            for level in layout.top.counts(np.tile(stretches.sum(axis=1), (repeat, 1)))
        ]
        group, stretch = layout.wanted(top, qs, laws[0], confidence)
        below = [level + draws[1](level.shape) for level in layout.below.counts(stretches[stretch])]
        found = layout.quantiles(top, OpenedBins(group, stretch, below), qs, laws, confidence)
        assert (found.lower >= 0).all()
        assert (found.upper <= BINS).all()
        assert (found.lower < found.upper).all()
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
        for i, q in enumerate(qs):
            at = truth(leaves, q)
            inside = (found.lower[:, i] <= at) & (at <= found.upper[:, i])
            assert inside.mean() >= bar


def test_one_value_is_found_to_the_bin():
    """All rows in one bin of a million: little noise leaves that bin alone."""
    layout = RefinedQuantiles(
        QuantileTree.choose(1000, "laplace"), QuantileTree.choose(1000, "laplace"), 10**6
    )
    noise = DiscreteLaplace(F(1))
    leaves = np.zeros((1, 1000), dtype=np.int64)
    leaves[0, 1] = 1000

    def stretches(group, stretch, size):
        found = np.zeros((len(group), size), dtype=np.int64)
        found[stretch == 1, 234] = 1000
        return found

    top = layout.top.measure(leaves, noise)
    opened = layout.measure(top, stretches, [0.5], (noise, noise), 0.999)
    assert 1 in opened.stretch
    found = layout.quantiles(top, opened, [0.5], (noise, noise), 0.999)
    assert (found.lower, found.upper) == (1234, 1235)


def test_at_most_a_few_stretches_are_read():
    """Spread values leave most stretches open, and then none is read."""
    layout = RefinedQuantiles(
        QuantileTree.choose(STRETCHES, "laplace"), QuantileTree.choose(SIZE, "laplace"), BINS
    )
    noise = DiscreteLaplace(F(30))
    few = layout.top.measure(np.full((50, STRETCHES), 3), noise)
    many = layout.top.measure(np.full((50, STRETCHES), 10**6), noise)
    for noisy in (few, many):
        group, stretch = layout.wanted(noisy, [0.3, 0.5], noise, 0.95)
        assert (np.bincount(group, minlength=50) <= 2 * OPEN).all()
        assert len({*zip(group.tolist(), stretch.tolist(), strict=True)}) == group.size
    assert len(layout.wanted(few, [0.5], noise, 0.95)[0]) == 0
    assert len(layout.wanted(many, [0.5], noise, 0.95)[0]) >= 50


def test_the_curve_inside_meets_the_tree_above():
    """F~ is one curve: at the ends of a stretch it is the first tree's."""
    layout = RefinedQuantiles(
        QuantileTree.choose(STRETCHES, "laplace"), QuantileTree.choose(SIZE, "laplace"), BINS
    )
    noise = DiscreteLaplace(F(5))
    leaves = shapes()[[1]]
    stretches = leaves.reshape(1, STRETCHES, SIZE)
    top = layout.top.measure(stretches.sum(axis=2), noise)
    group, stretch = layout.wanted(top, [0.5], noise, 0.95)
    opened = OpenedBins(group, stretch, layout.below.measure(stretches[0, stretch], noise))
    above = layout.top.cumulative(top)
    gap, first, last = above - 0.5 * above[:, -1:], stretch[:1], stretch[-1:] + 1
    inside = layout.below.cumulative(opened.noisy)
    found = Candidates(gap, first, first, last)
    curve = layout._inside(found, first * 0, opened, inside, 0.5, (noise, noise), 0.95)
    joints = curve.gaps[0, : (last[0] - first[0]) * SIZE + 1 : SIZE]
    np.testing.assert_allclose(joints, gap[0, first[0] : last[0] + 1])


def test_the_errors_allowed_add_up():
    """Finding the stretch and finding the bin in it share the error that is allowed."""
    assert 0 < FIRST < 1
    layout = RefinedQuantiles(QuantileTree(4, 2, 2), QuantileTree(4, 2, 2), 16)
    noise = DiscreteLaplace(F(5))
    noisy = layout.top.measure(np.full((1, 4), 100), noise)
    with pytest.raises(ArgumentError, match="qs"):
        layout.wanted(noisy, [], noise, 0.95)
    with pytest.raises(ArgumentError, match="confidence"):
        layout.wanted(noisy, [0.5], noise, 1.5)
