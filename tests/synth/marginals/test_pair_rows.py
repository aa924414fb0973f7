"""Rows near tables of pairs: single columns are right, and pairs come near."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.synth.marginals._nonnegative import Nonnegative
from dither.synth.marginals._pair_rows import rows_near

SIZES = (3, 4, 2, 5)


def tables(cliques, n=4000, seed=1):
    """Exact tables of rows whose columns go together in a chain."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, SIZES[0], n)]
    for k in SIZES[1:]:
        columns.append(np.where(rng.random(n) < 0.6, columns[-1] % k, rng.integers(0, k, n)))
    found = {}
    for c in cliques:
        made = np.zeros([SIZES[i] for i in c])
        np.add.at(made, tuple(columns[i] for i in c), 1.0)
        found[c] = made
    return Nonnegative(found, float(n), 0, 0.0)


def counted(rows, clique):
    """A table of rows."""
    made = np.zeros([SIZES[i] for i in clique])
    np.add.at(made, tuple(rows[:, i] for i in clique), 1.0)
    return made


def test_single_columns_have_their_counts():
    """To the next whole number, for any number of rows."""
    given = tables(list(itertools.combinations(range(4), 2)))
    for n in (1, 77, 4000):
        rows, _ = rows_near(given, SIZES, n, np.random.default_rng(3))
        for v in range(4):
            wanted = given.table((v,)) * n / 4000
            assert np.abs(counted(rows, (v,)) - wanted).max() < 1


def test_all_pairs_come_near():
    """Where some rows have them all, within a small part; the distances are those of the rows."""
    pairs = list(itertools.combinations(range(4), 2))
    given = tables(pairs)
    rows, far = rows_near(given, SIZES, 4000, np.random.default_rng(3))
    assert max(far.values()) < 0.01
    for pair in pairs:
        own = np.abs(counted(rows, pair) - given.table(pair)).sum() / 8000
        assert far[pair] == pytest.approx(own)


def test_pairs_that_no_tree_holds_are_improved():
    """Three columns of which the third is told by both others together: the tree gives two."""
    rng = np.random.default_rng(5)
    n = 6000
    a, b = rng.integers(0, 3, n), rng.integers(0, 4, n)
    c = np.where(rng.random(n) < 0.5, a % 2, b % 2)
    made = {}
    for clique, (x, y) in {(0, 1): (a, b), (0, 2): (a, c), (1, 2): (b, c)}.items():
        made[clique] = np.zeros([SIZES[i] for i in clique])
        np.add.at(made[clique], (x, y), 1.0)
    rows, far = rows_near(Nonnegative(made, n, 0, 0.0), SIZES[:3], n, np.random.default_rng(1))
    assert max(far.values()) < 0.03
    assert rows.shape == (n, 3)


def test_columns_without_pairs_are_independent():
    """And a column of which nothing was asked is even."""
    given = tables([(0,), (1,)])
    rows, far = rows_near(given, SIZES, 4000, np.random.default_rng(3))
    assert far == {}
    together = counted(rows, (0, 1))
    apart = np.outer(given.table((0,)), given.table((1,))) / 4000
    assert np.abs(together - apart).max() < 6 * np.sqrt(apart.max())
    assert np.abs(counted(rows, (3,)) - 800).max() < 1


def test_no_rows():
    """An array of none."""
    rows, far = rows_near(tables([(0, 1)]), SIZES, 0, np.random.default_rng(3))
    assert rows.shape == (0, 4)
    assert far == {(0, 1): 0.0}
