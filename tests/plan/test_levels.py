"""Levels that add up: the closed form against matrices, and what one unit can change of them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from dither.plan.expressions import Column
from dither.plan.job import Rows, Total
from dither.plan.lowering.levels import Levels, sensitivity_of_levels

SHAPES = (
    Levels((2, 2), ((0, 1), (0,), ())),
    Levels((3, 2, 4), ((0, 1, 2), (0, 1), (2,), ())),
    Levels((3, 2, 4), ((0, 1), (1, 2), ())),
    Levels((1, 3), ((0,), (1,), ())),
    Levels((5,), ((0,), ())),
    Levels((2, 3), ((0, 1),)),
)


def matrix(levels: Levels) -> np.ndarray:
    """What sums the table's cells to those of all levels."""
    return np.stack([levels.sums(row) for row in np.eye(int(np.prod(levels.sizes)))], axis=1)


@pytest.mark.parametrize("levels", SHAPES, ids=str)
def test_the_fit_is_that_of_least_squares(levels):
    """As the pseudo-inverse of the matrix has it, which no level need determine."""
    sums = matrix(levels)
    hat = sums @ np.linalg.pinv(sums)
    noisy = np.random.default_rng(1).normal(size=len(sums))
    assert levels.fitted(noisy) == pytest.approx(hat @ noisy)
    exact = levels.sums(np.arange(np.prod(levels.sizes)) ** 2)
    assert levels.fitted(exact) == pytest.approx(exact)


@pytest.mark.parametrize("levels", SHAPES, ids=str)
def test_weights_are_those_of_every_cell(levels):
    """Each level's cells are sums of the noises with these weights, whichever the cell."""
    sums = matrix(levels)
    hat = sums @ np.linalg.pinv(sums)
    for at, place in enumerate(levels.slices):
        said = sorted(w for w, n in levels.weights(at) for _ in range(n) if abs(w) > 1e-12)
        for row in hat[place]:
            assert said == pytest.approx(sorted(w for w in row if abs(w) > 1e-12))


def test_levels_add_up():
    """Whatever was released."""
    levels = Levels((3, 4), ((0, 1), (0,), (1,), ()))
    fine, rows, columns, all_of_it = (
        levels.fitted(np.random.default_rng(2).normal(size=12 + 3 + 4 + 1))[s]
        for s in levels.slices
    )
    assert fine.reshape(3, 4).sum(axis=1) == pytest.approx(rows)
    assert fine.reshape(3, 4).sum(axis=0) == pytest.approx(columns)
    assert rows.sum() == pytest.approx(all_of_it[0])


def contributions(cells: int, k: int, ends: tuple[int, ...]) -> list[np.ndarray]:
    """Every vector of a unit with at most k entries, each at one of the ends."""
    found = []
    for places in itertools.combinations(range(cells), k):
        for values in itertools.product(ends, repeat=k):
            one = np.zeros(cells, dtype=int)
            one[list(places)] = values
            found.append(one)
    return found


SMALL = (
    Levels((2, 2), ((0, 1), (0,), ())),
    Levels((2, 3), ((0, 1), (1,))),
    Levels((4,), ((), (0,))),
)


@pytest.mark.parametrize("levels", SMALL, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("ends", [(0, 2), (-2, 2), (-1, 3)])
def test_no_unit_changes_levels_further_than_claimed(levels, k, ends):
    """All contributions at the ends, where convex norms are largest; coming and going is tight."""
    total = Total(Column("t", "x"), Fraction(1), *ends)
    sums = matrix(levels)
    cells = sums.shape[1]
    every = [sums @ u for u in contributions(cells, k, (*ends, 0))]
    claims = {
        replaced: sensitivity_of_levels(
            total, levels, max_groups=k, max_rows=1, replace_one=replaced
        )
        for replaced in (False, True)
    }
    l1, l2 = (max(np.abs(u).sum() for u in every), max((u**2).sum() for u in every))
    assert (l1, l2) == (claims[False].l1, claims[False].l2_squared)
    differences = np.unique(np.stack(every), axis=0)
    for u in differences:
        moved = differences - u
        assert np.abs(moved).sum(axis=1).max() <= claims[True].l1
        assert (moved**2).sum(axis=1).max() <= claims[True].l2_squared


def test_limits_of_each_level_would_claim_too_little():
    """The claim for one group of each level is refuted: a unit's groups meet in the total."""
    levels = Levels((4,), ((0,), ()))
    claim = sensitivity_of_levels(Rows(), levels, max_groups=2, max_rows=1, replace_one=False)
    assert claim.l2_squared == 2 * 1 + 2**2
    assert claim.l2_squared > (2 + 1) * 1
