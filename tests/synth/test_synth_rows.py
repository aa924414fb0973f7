"""Rows of a model: whole numbers that add up, and pairs that nobody measured."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.synth._graph import GraphModel, Marginal
from dither.synth._rows import rounded, rows_of

STAR = (3, 4, 5, 2)
"""Sizes of a root and three columns that depend on it alone."""


def star(n: float) -> GraphModel:
    """A root whose children are independent of one another given it."""
    rng = np.random.default_rng(11)
    parts = []
    for child in (1, 2, 3):
        chances = rng.dirichlet(np.full(STAR[child], 0.7), STAR[0])
        counts = n * np.array([0.5, 0.3, 0.2])[:, None] * chances
        parts.append(Marginal((0, child), counts, n / 1e5))
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


def test_rows_in_the_order_of_another_column_are_caught() -> None:
    """The classic mistake: without an order of chance in each group, siblings go up together."""
    n = 20_000
    model = star(n)

    class InOrder:
        """Numbers that decide nothing."""

        def __init__(self) -> None:
            self.fair = np.random.default_rng(5)

        def random(self, size: object = None) -> object:
            """Zeros where rows are put in order."""
            return np.zeros(size) if isinstance(size, int) else self.fair.random(size)

    rows = rows_of(model, n, InOrder())  # type: ignore[arg-type]
    off = np.abs(counted(rows, (1, 2)) - model.marginal((1, 2))).sum() / (2 * n)
    right = rows_of(model, n, np.random.default_rng(6))
    assert off > 0.1
    assert np.abs(counted(right, (1, 2)) - model.marginal((1, 2))).sum() / (2 * n) < 0.02


@pytest.mark.parametrize("n", [0, 1])
def test_tables_of_no_row_and_one(n: int) -> None:
    """They are tables."""
    assert rows_of(star(100), n, np.random.default_rng(7)).shape == (n, 4)
