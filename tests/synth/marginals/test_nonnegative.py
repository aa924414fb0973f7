"""The nearest non-negative tables to noisy residuals: agreement, optimality, and what they gain."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.optimize import minimize

from dither.synth.marginals._nonnegative import nearest
from dither.synth.marginals._planner import plan, subsets
from dither.synth.marginals._residuals import centred, differences, measured, table

SIZES = (3, 4, 1, 2, 5)
PAIRS = [(0, 1), (1, 3), (0, 3), (3, 4), (2, 4)]


def sparse(n=400, sizes=SIZES, seed=2):
    """Rows of which most lie in a few cells."""
    rng = np.random.default_rng(seed)
    return [np.minimum(k - 1, rng.geometric(0.7, n) - 1) for k in sizes]


def oracle(columns, sizes):
    """Exact tables of columns of places."""

    def counts(cliques):
        found = {}
        for c in cliques:
            made = np.zeros([sizes[i] for i in c], np.int64)
            if c:
                np.add.at(made, tuple(columns[i] for i in c), 1)
            else:
                made += len(columns[0])
            found[c] = made
        return found

    return counts


def noisy(seed=2):
    """A release of sparse pairs: the plan, its residuals and the truth."""
    counts = oracle(sparse(seed=seed), SIZES)
    made = plan(SIZES, PAIRS, F(1, 2), F(1, 10**6))
    return made, measured(counts, made), counts


def found_of(made, residuals):
    """The tables of a release."""
    variances = {a: n.variance for a, n in made.noise.items()}
    return nearest(residuals, variances, SIZES, PAIRS)


def test_tables_agree_and_have_nothing_below_zero():
    """Wherever two overlap, one column of a single value included."""
    made, residuals, _ = noisy()
    found = found_of(made, residuals)
    for t in PAIRS:
        assert found.table(t).shape == tuple(SIZES[i] for i in t)
        assert found.table(t).min() >= 0
        assert found.table(t).sum() == pytest.approx(found.rows)
    for a, b in itertools.combinations(PAIRS, 2):
        for shared in set(a) & set(b):
            axes = [tuple(p for p, i in enumerate(t) if i != shared) for t in (a, b)]
            left, right = (found.table(t).sum(axis=x) for t, x in zip((a, b), axes, strict=True))
            assert left == pytest.approx(right)


def test_tables_without_a_negative_cell_stay_as_they_are():
    """Exact residuals are the nearest to themselves."""
    counts = oracle(sparse(5000), SIZES)
    exact = {
        a: differences(np.asarray(counts([a])[a]))
        for t in PAIRS
        for a in subsets(tuple(i for i in t if SIZES[i] > 1))
    }
    found = nearest(exact, dict.fromkeys(exact, 4.0), SIZES, PAIRS)
    assert found.moved < 1e-9
    for t in PAIRS:
        assert found.table(t) == pytest.approx(counts([t])[t], abs=0.2)


def test_the_last_step_finds_the_nearest():
    """One table with known margins, against a general solver."""
    sizes = (3, 3)
    cells = np.array([[9.0, -3.0, 4.0], [2.0, 5.0, -6.0], [1.0, 1.0, 5.0]])
    residuals = {a: differences(table_of(cells, a)) for a in subsets((0, 1))}
    found = nearest(residuals, dict.fromkeys(residuals, 1.0), sizes, [(0, 1)])
    rows, columns = found.table((0,)), found.table((1,))
    own = centred(residuals[0, 1])

    def far(x):
        grid = x.reshape(3, 3)
        part = grid - grid.mean(axis=0) - grid.mean(axis=1)[:, None] + grid.mean()
        return float(((part - own) ** 2).sum())

    kept = [
        {"type": "eq", "fun": lambda x: x.reshape(3, 3).sum(axis=1) - rows},
        {"type": "eq", "fun": lambda x: x.reshape(3, 3).sum(axis=0)[:2] - columns[:2]},
    ]
    start = np.outer(rows, columns).ravel() / rows.sum()
    best = minimize(far, start, bounds=[(0, None)] * 9, constraints=kept, method="SLSQP")
    assert far(found.table((0, 1)).ravel()) == pytest.approx(best.fun, rel=0.02)


def table_of(cells, a):
    """A table's sums over the axes that are not in a."""
    return np.asarray(cells.sum(axis=tuple(i for i in (0, 1) if i not in a)))


def test_sparse_tables_come_nearer_to_the_truth():
    """Than the noisy ones, over ten releases together."""
    errors = np.zeros(2)
    for seed in range(10):
        made, residuals, counts = noisy(seed)
        found = found_of(made, residuals)
        for t in PAIRS:
            truth = counts([t])[t]
            errors[0] += ((found.table(t) - truth) ** 2).sum()
            errors[1] += ((table(residuals, SIZES, t) - truth) ** 2).sum()
    assert errors[0] < 0.9 * errors[1]


@pytest.mark.parametrize("total", [0, -50])
def test_no_rows_at_all(total):
    """A number of rows that noise took to 0 or below leaves empty tables."""
    residuals = {a: np.zeros([k - 1 for k in (3, 2)][: len(a)], np.int64) for a in subsets((0, 1))}
    residuals[()] = np.array(total)
    residuals[1,] = np.array([7])
    found = nearest(residuals, dict.fromkeys(residuals, 1.0), (3, 2), [(0, 1)])
    assert found.rows == 0
    assert not found.table((0, 1)).any()


def test_pairs_that_say_something_are_told_from_noise():
    """One pair of uneven columns goes together; of 14 others four are told in 10^6 runs or none."""
    rng = np.random.default_rng(4)
    columns = [np.minimum(4, rng.geometric(0.5, 2000) - 1) for _ in range(6)]
    columns[1] = columns[0] // 2
    sizes = (5, 3, 5, 5, 5, 5)
    pairs = list(itertools.combinations(range(6), 2))
    made = plan(sizes, pairs, F(1, 2), F(1, 10**6))
    residuals = measured(oracle(columns, sizes), made)
    found = nearest(residuals, {a: n.variance for a, n in made.noise.items()}, sizes, pairs)
    assert (0, 1) in found.told
    assert len(found.told) < 5
    assert sorted(found.pairs) == pairs
