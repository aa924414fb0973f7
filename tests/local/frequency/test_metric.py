"""d-privacy: ordered values and places on a grid, pair by pair from the exact law."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import GridPrivacy, TruncatedGeometric, simulate
from dither.local._coins import exp_bounds
from dither.local._frequency.metric import _plane
from dither.numeric import sqrt_lower
from local.laws import check_estimator, check_rows, check_sampler, check_wire

GRIDS = [
    GridPrivacy(3, 3, 1, 1),
    GridPrivacy(2, 5, "0.5", "0.7", unit="km"),
    GridPrivacy(4, 3, 1, 3),
    GridPrivacy(2, 2, 1, "0.2"),
]


def squared_steps(grid: GridPrivacy, x: int, other: int) -> int:
    """The squared distance of two cells, in cells."""
    (a, b), (c, d) = divmod(x, grid.columns), divmod(other, grid.columns)
    return (a - c) ** 2 + (b - d) ** 2


def check_metric(channel: Any, budget: Any) -> None:
    """Every pair of values is within e^(its distance's budget), exactly, for every report."""
    k = len(channel.domain)
    columns = [[channel.exact(x, y) for x in range(k)] for y in range(k)]
    for x in range(k):
        for other in range(k):
            if x != other:
                limit, _ = exp_bounds(budget(x, other))
                assert all(column[x] <= limit * column[other] for column in columns)


def check_grid(grid: GridPrivacy) -> None:
    """`check_metric` with a lower bound of the Euclidean distance."""
    unit = grid.cell * grid.epsilon_per_unit
    check_metric(
        grid, lambda x, other: unit * sqrt_lower(Fraction(squared_steps(grid, x, other)), 200)
    )


@pytest.mark.parametrize("grid", GRIDS)
def test_grid(grid: GridPrivacy) -> None:
    """Rows sum to one, every pair keeps its promise, inner cells use nearly all of it."""
    check_rows(grid)
    check_grid(grid)
    unit = float(grid.cell * grid.epsilon_per_unit)
    if min(grid.rows, grid.columns) > 2:
        inside = grid.columns + 1
        ratio = grid.exact(inside, inside) / grid.exact(inside + 1, inside)
        assert math.log(ratio) == pytest.approx(unit, rel=2.0**-15)
    check_wire(grid, grid.privatize(list(range(len(grid.domain))) * 10))


@pytest.mark.parametrize("grid", [GRIDS[0], GRIDS[1], GRIDS[3]])
def test_grid_sampler(grid: GridPrivacy) -> None:
    """A million reports of each cell agree with the law (false alarm 1e-7 each)."""
    assert check_sampler(grid)


def test_grid_law_is_noise_moved_to_the_nearest_cell() -> None:
    """The law is what adding up the plane's weights by where they move gives."""
    grid, reach = GridPrivacy(2, 3, 1, "0.8"), 30
    assert grid.reach >= reach
    c = 0.8 * (1 - 2.0**-16)
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-c * np.hypot(steps[:, None], steps))
    for x in range(6):
        r = np.clip(x // 3 + steps, 0, 1)[:, None] + 0 * steps
        q = np.clip(x % 3 + steps, 0, 2)[None, :] + 0 * steps[:, None]
        found = np.bincount((r * 3 + q).ravel(), weights.ravel(), minlength=6)
        np.testing.assert_allclose(grid.matrix[x], found / found.sum(), rtol=1e-7)


def test_grid_weights_are_the_same_everywhere() -> None:
    """The integers that devices share: pinned, as another client would compute them."""
    table, total, _ = _plane(Fraction(1), 4)
    assert table[0][0] == 1 << 40
    c = Fraction(65535, 65536)
    low, high = exp_bounds(c * 5)
    assert table[3][4] == math.floor((1 << 40) / low) == math.floor((1 << 40) / high)
    assert total == sum(table[abs(i)][abs(j)] for i in range(-4, 5) for j in range(-4, 5))


@pytest.mark.heavy("test_grid")
def test_estimates() -> None:
    """The inverse is unbiased with the stated variance; the likelihood is nearer the truth."""
    check_estimator(GridPrivacy(2, 3, 1, 2), [0.3, 0.1, 0.1, 0.2, 0.2, 0.1])
    check_estimator(TruncatedGeometric(5, 1), [0.1, 0.2, 0.4, 0.2, 0.1])
    grid = GridPrivacy(6, 6, 1, "0.5")
    place = np.arange(36)
    bump = np.exp(-((place // 6 - 2) ** 2 + (place % 6 - 3) ** 2) / 3)
    histogram = np.round(20_000 * bump / bump.sum()).astype(np.int64)
    shares = histogram / histogram.sum()
    drawn = simulate(grid, histogram, np.random.default_rng(4))
    raw = ((drawn.estimate().shares - shares) ** 2).sum()
    likely = ((drawn.estimate(method="likelihood").shares - shares) ** 2).sum()
    assert likely < raw / 4


@pytest.mark.parametrize(
    "channel", [TruncatedGeometric(2, 1), TruncatedGeometric(5, "0.3"), TruncatedGeometric(6, 4)]
)
def test_ordered(channel: TruncatedGeometric) -> None:
    """Rows sum to one, each step costs epsilon and no more, the sampler agrees."""
    check_rows(channel)
    step = channel.epsilon_per_step
    check_metric(channel, lambda x, other: step * abs(x - other))
    k = len(channel.domain)
    ends = channel.exact(0, 0) / channel.exact(k - 1, 0)
    assert math.log(ends) == pytest.approx(float(channel.epsilon), rel=1e-9)
    assert check_sampler(channel)
    check_wire(channel, channel.privatize(list(range(k)) * 10))


@given(st.integers(2, 12), st.fractions(Fraction(1, 1000), 10, max_denominator=1000))
@settings(max_examples=25, deadline=None)
def test_any_step_is_kept(k: int, step: Fraction) -> None:
    """Whatever the size and epsilon, rows sum to one and one step costs at most epsilon."""
    channel = TruncatedGeometric(k, step)
    limit, _ = exp_bounds(step)
    rows = [[channel.exact(x, y) for y in range(k)] for x in range(k)]
    assert all(sum(row) == 1 for row in rows)
    for one, two in itertools.pairwise(rows):
        assert all(p <= limit * q and q <= limit * p for p, q in zip(one, two, strict=True))


def test_guarantees_speak_of_distance() -> None:
    """Both print epsilon a unit, and compose as epsilon over the whole domain."""
    assert str(GRIDS[1].guarantee).startswith("epsilon = 0.7 for each km")
    assert TruncatedGeometric(4, 1).guarantee.loss().epsilon(delta=0) == pytest.approx(3)
    assert float(GridPrivacy(4, 5, 1, 1).epsilon) == pytest.approx(5)


def test_points_are_located() -> None:
    """Points fall into cells; one beyond the grid is refused without being shown."""
    grid = GridPrivacy(2, 3, "0.5", 1)
    assert grid.locate([0.0, 0.49, 1.49], [0.0, 0.5, 0.99]).tolist() == [0, 3, 5]
    for bad in (-0.1, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="1 of 1") as caught:
            grid.locate([bad], [0.2])
        assert str(bad) not in str(caught.value)


@dataclass(frozen=True, slots=True, init=False)
class Eager(GridPrivacy):
    """A planted mistake: the whole budget for a cell's side, of a grid with half the cells."""

    kind: ClassVar[str] = "test-eager"

    @property
    def reach(self) -> int:
        """Too short: the noise is cut off where far cells can still see it."""
        return 2


def test_planted_mistakes_are_caught() -> None:
    """Noise that is cut off too soon breaks the promise, and the check says so."""
    with pytest.raises(AssertionError):
        check_grid(Eager(3, 3, 1, 1))


def test_refusals() -> None:
    """Grids and budgets out of range are refused, and so is noise that reaches too far."""
    for arguments in ((0, 3, 1, 1), (1, 4, 1, 1), (80, 80, 1, 1), (2.0, 3, 1, 1), (3, 3, 0, 1)):
        with pytest.raises(ArgumentError):
            GridPrivacy(*arguments)  # type: ignore[arg-type]
    for per_unit in (0, -1, 41, "0.001", float("nan")):
        with pytest.raises(ArgumentError):
            GridPrivacy(3, 3, 1, per_unit)
    with pytest.raises(ArgumentError, match="larger cells"):
        GridPrivacy(64, 64, 1, "0.01")
    for arguments in ((5000, 1), (3, 0), (3, "1e-9")):
        with pytest.raises(ArgumentError):
            TruncatedGeometric(*arguments)
