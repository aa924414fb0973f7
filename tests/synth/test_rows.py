"""Rows of a model: whole numbers that add up, and pairs that nobody measured."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.synth import _rows
from dither.synth._rows import rounded, rows_of
from dither.synth.model._graph import GraphModel, NoisyMarginal

STAR = (3, 4, 5, 2)
"""Sizes of a root and three columns that depend on it alone."""


def star(n: float) -> GraphModel:
    """A root whose children are independent of one another given it."""
    rng = np.random.default_rng(11)
    parts = []
    for child in (1, 2, 3):
        chances = rng.dirichlet(np.full(STAR[child], 0.7), STAR[0])
        counts = n * np.array([0.5, 0.3, 0.2])[:, None] * chances
        parts.append(NoisyMarginal((0, child), counts, n / 1e5))
    return GraphModel(STAR, [p.clique for p in parts], n).fit(parts, tolerance=1e-4)


def counted(rows: np.ndarray, clique: tuple[int, ...]) -> np.ndarray:
    """The marginal of rows."""
    shape = [STAR[v] for v in clique]
    flat = np.ravel_multi_index(tuple(rows[:, v] for v in clique), shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)


def test_numbers_add_up_and_stay_next_to_what_was_expected() -> None:
    """In each group, whatever doubles do; on average they are what was expected."""
    rng = np.random.default_rng(1)
    totals = np.array([0, 1, 7, 1000, 10**9])
    chances = rng.dirichlet(np.full(6, 0.3), 5)
    expected = chances * totals[:, None]
    drawn = np.array([rounded(expected, totals, rng) for _ in range(4000)])
    assert (drawn.sum(axis=2) == totals).all()
    assert (drawn >= 0).all()
    assert (np.abs(drawn - expected) < 1 + 1e-6).all()
    # A rounded fraction has a deviation of at most 1/2.
    assert np.abs(drawn.mean(axis=0) - expected).max() < 5 * 0.5 / 4000**0.5 + 1e-6


def test_whole_numbers_are_left_alone() -> None:
    """Nothing is rounded where nothing needs to be."""
    expected = np.array([[3.0, 0.0, 4.0]])
    assert rounded(expected, np.array([7]), np.random.default_rng(2)).tolist() == [[3, 0, 4]]


def test_measured_marginals_are_met_to_the_row() -> None:
    """Each pair of a column and its root is off by less than two a cell."""
    model = star(5000)
    rows = rows_of(model, 5000, np.random.default_rng(3))
    for child in (1, 2, 3):
        off = counted(rows, (0, child)) - model.marginal((0, child))
        assert np.abs(off).max() < 2


def test_pairs_that_were_not_measured_are_those_of_the_model() -> None:
    """Siblings, given their root, are independent: neither in order nor against it."""
    n = 20_000
    model = star(n)
    tables = [rows_of(model, n, np.random.default_rng(seed)) for seed in range(20)]
    for pair in itertools.combinations((1, 2, 3), 2):
        expected = model.marginal(pair)
        mean = np.mean([counted(rows, pair) for rows in tables], axis=0)
        # Cells vary by no more than multinomial ones; 40 cells, five deviations.
        assert (np.abs(mean - expected) < 5 * np.sqrt(expected / 20 + 1)).all()


def test_values_laid_out_in_the_order_of_another_column_are_caught(monkeypatch) -> None:
    """The classic mistake: where values stand in blocks, siblings go up together."""
    n = 20_000
    model = star(n)

    def off(seed: int) -> float:
        rows = rows_of(model, n, np.random.default_rng(seed))
        return float(np.abs(counted(rows, (1, 2)) - model.marginal((1, 2))).sum() / (2 * n))

    assert off(6) < 0.02
    monkeypatch.setattr(_rows, "_spread", lambda counts, sizes, rng: np.arange(counts.sum()))
    assert off(6) > 0.1


def test_no_value_prefers_rows_by_their_other_columns() -> None:
    """In small groups too, where a value's places are few, and regular ones would be seen."""
    n, times = 60, 1000
    model = GraphModel((3, 3, 5), [(0,), (1,), (2,)], n)
    shares = np.array([0.1, 0.1, 0.2, 0.25, 0.35])
    model.fit([NoisyMarginal((2,), n * shares, 1e-3)], tolerance=1e-4)
    mean = np.zeros((3, 3, 5))
    for seed in range(times):
        rows = rows_of(model, n, np.random.default_rng(seed))
        np.add.at(mean, tuple(rows.T), 1 / times)
    expected = n / 9 * shares[None, None, :]
    # A cell varies by no more than a multinomial one; 45 cells, five deviations.
    assert (np.abs(mean - expected) < 5 * np.sqrt(expected / times)).all()


def test_tables_that_no_clique_holds_are_nearer_than_by_chance() -> None:
    """Three independent columns: their tables are off by less than half of what draws leave."""
    n = 20_000
    model = GraphModel((5, 6, 7), [(0,), (1,), (2,)], n)
    off = [
        np.abs(np.bincount(rows[:, 1] * 7 + rows[:, 2], minlength=42) - n / 42).mean()
        for rows in (rows_of(model, n, np.random.default_rng(seed)) for seed in range(5))
    ]
    # The mean distance of a draw is 0.8 roots of its expectation.
    assert np.mean(off) < 0.4 * (n / 42) ** 0.5


@pytest.mark.parametrize("n", [0, 1])
def test_tables_of_no_row_and_one(n: int) -> None:
    """They are tables."""
    assert rows_of(star(100), n, np.random.default_rng(7)).shape == (n, 4)
