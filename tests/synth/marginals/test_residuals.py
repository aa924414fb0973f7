"""Residuals and the tables they make up; and the law of a whole release, outcome by outcome."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction as F

import numpy as np
import pytest

from dither.synth.marginals import _residuals
from dither.synth.marginals._planner import plan, subsets
from dither.synth.marginals._residuals import centred, differences, maximal, measured, table

SIZES = (3, 1, 2, 4)
ROWS = np.random.default_rng(3).integers(0, 50, SIZES)


def oracle(rows):
    """Exact tables of an array of counts."""
    every = range(rows.ndim)
    return lambda cliques: {
        c: rows.sum(axis=tuple(i for i in every if i not in c)) for c in cliques
    }


def test_residuals_without_noise_give_the_tables():
    """Every table that was asked for, and all smaller ones."""
    tables = [(0, 1, 2), (2, 3)]
    exact = {
        a: differences(np.asarray(oracle(ROWS)([a])[a]))
        for t in tables
        for a in subsets(t)
        if 1 not in a
    }
    for t in tables:
        for clique in subsets(t):
            assert table(exact, SIZES, clique) == pytest.approx(oracle(ROWS)([clique])[clique])


def test_differences_hold_what_the_projection_holds():
    """Tables that are constant along an axis leave them as they are, and nothing else does."""
    cells = np.arange(12).reshape(3, 4) ** 2
    moved = cells + np.array([5, -2, 7])[:, None] + np.array([1, 0, 3, 9])
    assert np.array_equal(differences(cells), differences(moved))
    assert centred(differences(cells)) == pytest.approx(
        (np.eye(3) - 1 / 3) @ cells @ (np.eye(4) - 1 / 4)
    )


def test_only_the_largest_tables_are_counted():
    """The smaller ones are sums of them."""
    assert maximal([(0,), (0, 1), (1, 2), (1, 0, 2)[:1], (0, 1)]) == [(0, 1), (1, 2)]


def test_tables_are_unbiased_consistent_and_as_precise_as_planned():
    """Means and variances of 600 releases; one false alarm in 10^6 runs or fewer."""
    tables = [(0, 1, 2), (2, 3)]
    made = plan(SIZES, tables, F(2), F(1, 10**6))
    errors = defaultdict(list)
    for _ in range(600):
        found = measured(oracle(ROWS), made)
        for t in [*tables, (2,)]:
            errors[t].append(table(found, SIZES, t) - oracle(ROWS)([t])[t])
        left, right = table(found, SIZES, (0, 2)), table(found, SIZES, (2, 3))
        assert left.sum(axis=0) == pytest.approx(right.sum(axis=1))
    for t, seen in errors.items():
        values = np.array(seen)
        variance = made.variance(t)
        assert np.abs(values.mean(axis=0)).max() < 6 * math.sqrt(variance / 600)
        assert np.abs(values.var(axis=0) / variance - 1).max() < 6 * math.sqrt(2 / 600)


class Written:
    """A source of noise that gives what is written, and says how likely that was."""

    def __init__(self):
        self.values, self.mass = [], 1.0

    def __call__(self, sigma2):
        return _Drawn(self, float(sigma2))


class _Drawn:
    def __init__(self, written, sigma2):
        self.written, self.sigma2 = written, sigma2

    def draw(self, shape):
        n = math.prod(shape)
        taken, self.written.values = self.written.values[:n], self.written.values[n:]
        self.written.mass *= math.exp(-sum(z * z for z in taken) / (2 * self.sigma2))
        return np.array(taken, np.int64).reshape(shape)


def law(monkeypatch, counts, made, span):
    """The probability of every outcome of a release: all noise is gone through."""
    written = Written()
    monkeypatch.setattr(_residuals, "DiscreteGaussian", written)
    found = defaultdict(float)
    for noise in itertools.product(range(-span, span + 1), repeat=3):
        written.values, written.mass = list(noise), 1.0
        out = measured(oracle(counts), made)
        found[tuple(tuple(np.ravel(v).tolist()) for v in out.values())] += written.mass
    whole = math.fsum(found.values())
    return {key: mass / whole for key, mass in found.items()}


def delta(p, q, epsilon):
    """The larger of both directions."""
    each = math.exp(epsilon)
    keys = p.keys() | q.keys()
    return max(
        math.fsum(max(0.0, a.get(k, 0.0) - each * b.get(k, 0.0)) for k in keys)
        for a, b in ((p, q), (q, p))
    )


EPSILON, DELTA = 1, F(1, 20)


@pytest.fixture
def worst(monkeypatch):
    """The delta of a release of one column of two values, where rows are added to either cell."""
    made = plan((2,), [(0,)], F(EPSILON), DELTA)
    assert made.noise[0,].counted == (2,)

    def found(more=1):
        before = law(monkeypatch, np.array([2, 1]), made, 9)
        moved = [np.array([2 + more, 1]), np.array([2, 1 + more])]
        return max(delta(before, law(monkeypatch, m, made, 9), EPSILON) for m in moved)

    return found


def test_the_law_of_a_release_keeps_what_is_charged(worst):
    """delta, added up over all outcomes, is below the charge, and not far."""
    assert 0.5 * DELTA < worst() <= DELTA


def test_a_sensitivity_that_is_too_small_is_caught(worst):
    """Two rows a unit, charged as one."""
    assert worst(2) > 2 * DELTA


def test_noise_that_serves_two_residuals_is_caught(worst, monkeypatch):
    """The total's noise, used once more for the first cell."""
    made = _residuals._noisy
    kept = {}

    def reused(cells, sigma2):
        found = made(cells, sigma2)
        if cells.ndim == 0:
            kept["noise"] = found - cells
        else:
            found[0] = cells[0] + kept["noise"]
        return found

    monkeypatch.setattr(_residuals, "_noisy", reused)
    assert worst() > 1.5 * DELTA


def test_cells_that_leave_unprojected_are_caught(worst, monkeypatch):
    """The noisy table itself in place of its residual: it says the total once more."""
    monkeypatch.setattr(_residuals, "differences", lambda cells: cells)
    assert worst() > 1.2 * DELTA
