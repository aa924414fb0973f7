"""Counts over time: sensitivity of what is released, estimates, intervals, audit, mutants."""

import copy
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError, BudgetError
from dither.mechanisms import BinaryTree, DiscreteGaussian, DiscreteLaplace
from mechanisms.realised import refuted

SILENT = DiscreteLaplace(F(1, 10_000))
"""Noise that is 0 but with probability 1e-4342: the tree's true sums show."""


def run_over(tree, events):
    """A run after all events."""
    run = tree.start()
    for e in events:
        run.add(e)
    return run


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-3, 9), min_size=1, max_size=40), st.data())
def test_released_nodes_and_their_sensitivity(events, data):
    """Each complete node is released once, and a moved event changes them by what is charged."""
    horizon = len(events) + data.draw(st.integers(0, 20))
    tree = BinaryTree(horizon, SILENT)
    released = run_over(tree, events).released
    for height, number, noisy in released:
        assert noisy == sum(events[number << height : (number + 1) << height])
    assert len({(h, i) for h, i, _ in released}) == len(released)
    assert len(released) == 2 * len(events) - len(events).bit_count()
    changed = list(events)
    for _ in range(3):  # one unit's three events
        changed[data.draw(st.integers(0, len(events) - 1))] += 1
    other = run_over(tree, changed).released
    moves = [abs(a[2] - b[2]) for a, b in zip(released, other, strict=True)]
    assert sum(moves) <= 3 * tree.levels
    assert sum(m * m for m in moves) <= 9 * tree.levels
    loss = BinaryTree(horizon, DiscreteLaplace(F(1))).loss(sensitivity=3).charge
    assert loss.epsilon == 3 * tree.levels


def test_sensitivity_is_attained():
    """In a full tree one event changes every level."""
    tree = BinaryTree(8, SILENT)
    one = run_over(tree, [0, 0, 1] + [0] * 5).released
    assert sum(n for _, _, n in one) == tree.levels == 4


@given(st.lists(st.integers(0, 50), min_size=1, max_size=70))
@settings(deadline=None, max_examples=30)
def test_estimates_are_consistent(events):
    """Without noise every running estimate is the count itself: weights sum to 1 at each node."""
    run = BinaryTree(len(events), SILENT).start()
    for t, e in enumerate(events, start=1):
        run.add(e)
        assert run.estimate == sum(events[:t])


def test_estimate_variance_is_the_formula():
    """The estimate's coefficients on the nodes' noises have the variance stated, and the least.

    Each node's noise is set to 1 in turn and the estimate read; the least-variance estimate solves
    the normal equations of the tree.
    """
    horizon = 8

    class One:
        """Noise that is 1 at the n-th draw and else 0."""

        def __init__(self, n):
            self.left = n

        def draw(self, size):
            self.left -= 1
            return np.array([int(self.left == -1)])

    nodes = 2 * horizon - 1
    tree = BinaryTree(horizon, DiscreteLaplace(F(3)))
    for time in (3, 6, 7, 8):
        count = 2 * time - time.bit_count()
        coefficients, columns = [], []
        for n in range(count):
            run = tree.start()
            object.__setattr__(fake := copy.copy(tree), "noise", One(n))
            run.tree = fake
            for _ in range(time):
                run.add(0)
            coefficients.append(float(run.estimate))
            height, number, _ = run.released[n]
            columns.append(
                [number << height <= leaf < (number + 1) << height for leaf in range(time)]
            )
        spread = sum(c * c for c in coefficients) * tree.noise.variance
        assert tree.variance(time) == pytest.approx(spread)
        design = np.array(columns, dtype=float)
        total = np.ones(time)
        best = total @ np.linalg.inv(design.T @ design) @ total
        assert spread == pytest.approx(best * tree.noise.variance)
    assert count == nodes


@pytest.mark.parametrize("noise", [DiscreteLaplace(F(6)), DiscreteGaussian(F(40))])
def test_intervals_cover(noise):
    """90 % intervals hold the count in at least 79 % of 300 runs: 6 deviations, 1e-9 each."""
    tree = BinaryTree(64, noise)
    hits = {5: 0, 31: 0, 63: 0}
    for _ in range(300):
        run = tree.start()
        for t in range(1, 64):
            run.add(1)
            if t in hits:
                low, high = run.interval(0.9)
                hits[t] += low <= t <= high
    assert min(hits.values()) >= 0.79 * 300
    if isinstance(noise, DiscreteGaussian):
        assert max(hits.values()) <= 0.995 * 300


@pytest.mark.heavy("test_released_nodes_and_their_sensitivity")
def test_black_box_audit():
    """Released nodes keep epsilon (false alarm 1e-7); noise for a single level does not.

    The statistic is the loss-optimal one: how many of the changed nodes are at least 1.
    """
    epsilon = F(2)

    def scores(noise, event):
        tree = BinaryTree(4, noise)
        found = []
        for _ in range(1500):
            run = run_over(tree, [0, event, 0, 0])
            found.append(sum(n >= 1 for h, i, n in run.released if 1 >> h == i))
        return found

    honest = BinaryTree.for_loss(epsilon, horizon=4, sensitivity=1)
    assert not refuted(scores(honest.noise, 0), scores(honest.noise, 1), float(epsilon))
    mutant = DiscreteLaplace.for_loss(epsilon, l1=1)
    assert refuted(scores(mutant, 0), scores(mutant, 1), float(epsilon))


def test_reused_noise_is_caught():
    """A tree that draws one noise for all its nodes shows its counts in their differences."""

    class Once:
        """One draw, given again and again."""

        def __init__(self, noise):
            self.kept = noise.draw(1)

        def draw(self, size):
            return self.kept

    def differences(event, *, reuse):
        tree = BinaryTree.for_loss(F(2), horizon=2, sensitivity=1)
        found = []
        for _ in range(400):
            run = tree.start()
            if reuse:
                object.__setattr__(fake := copy.copy(tree), "noise", Once(tree.noise))
                run.tree = fake
            run.add(event)
            run.add(0)
            first, second, _ = (noisy for _, _, noisy in run.released)
            found.append(int(first - second >= 1))
        return found

    for reuse in (False, True):
        sides = (differences(event, reuse=reuse) for event in (0, 1))
        assert refuted(*sides, 2.0) == reuse


def test_calibration():
    """Losses read back exactly; the least epsilon for a half-width meets it, and no less does."""
    tree = BinaryTree.for_loss(F(3, 2), horizon=1000, sensitivity=2)
    assert tree.loss(sensitivity=2).charge.epsilon == F(3, 2)
    smooth = BinaryTree.for_rho(F(1, 8), horizon=1000, sensitivity=2)
    assert smooth.loss(sensitivity=2).charge.rho == F(1, 8)
    made = BinaryTree.for_half_width(100, horizon=365, sensitivity=1, confidence=0.95)
    assert made.worst_half_width(0.95) <= 100
    less = BinaryTree.for_loss(
        made.loss(sensitivity=1).charge.epsilon * F(99, 100), horizon=365, sensitivity=1
    )
    assert less.worst_half_width(0.95) > 100
    worst = max(made.variance(t) for t in range(1, 366))
    assert made.half_width(255, 0.95) == made.worst_half_width(0.95)
    assert made.variance(255) == worst


def test_a_run_refuses():
    """Beyond the horizon, and in a copy, a run says nothing more."""
    run = run_over(BinaryTree(2, SILENT), [1, 2])
    assert run.interval(0.9)[0] <= 3 <= run.interval(0.9)[1]
    with pytest.raises(BudgetError, match="horizon"):
        run.add(1)
    with pytest.raises(copy.Error):
        copy.copy(run)
    assert BinaryTree(2, SILENT).start().interval(0.9) == (0.0, 0.0)


def test_refusals():
    """Parameters out of range are refused by name."""
    for horizon in (0, -1, 2.5):
        with pytest.raises(ArgumentError, match="horizon"):
            BinaryTree(horizon, SILENT)
    with pytest.raises(ArgumentError, match="noise"):
        BinaryTree(5, F(1))
    with pytest.raises(ArgumentError, match="sensitivity"):
        BinaryTree.for_loss(F(1), horizon=5, sensitivity=0)
    with pytest.raises(ArgumentError, match="events"):
        BinaryTree(5, SILENT).start().add(0.5)
    with pytest.raises(ArgumentError, match="time"):
        BinaryTree(5, SILENT).variance(6)
    with pytest.raises(ArgumentError, match="half_width"):
        BinaryTree.for_half_width(-1, horizon=5, sensitivity=1, confidence=0.9)
