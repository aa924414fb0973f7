"""Quantiles: what a row can do, and how often intervals hold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Target, bounds_of
from dither.inference.estimates._quantiles import BinsRelease, _rising
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours

BOUNDS = bounds_of("bounds", (-1, 1))


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
def test_no_row_moves_the_tree_further_than_paid_for(
    neighbours: Neighbours, delta: Fraction
) -> None:
    """Every value beside every other, or beside none, missing ones included."""
    design = BinsRelease(BOUNDS, 16, Target(Fraction(1), delta, neighbours))
    grid = [np.array([v]) for v in (-np.inf, *np.linspace(-1, 1, 33), np.inf, np.nan)]

    def tree(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.concatenate(design.tree.counts(design.leaves(values)[None]), axis=1)[0]

    each = np.array([tree(v) for v in grid])
    gaps = (
        each
        if neighbours is Neighbours.ADD_REMOVE
        else (each[:, None] - each).reshape(-1, each.shape[1])
    )
    l1, l2_squared = design.tree.sensitivity(max_rows=1, max_groups=1, neighbours=neighbours)
    assert np.abs(gaps).sum(1).max() == l1
    assert (gaps**2).sum(1).max() == l2_squared
    assert float(design.loss.charge.epsilon or 0) <= 1


def test_noise_for_one_level_is_caught() -> None:
    """The classic mistake: each level of the tree with the noise that it alone would need."""
    design = BinsRelease(BOUNDS, 64, Target(Fraction(1), Fraction(0), Neighbours.REPLACE))
    noise = type(design.noise).for_loss(1, l1=2)  # type: ignore[union-attr]

    def run(values: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
        counts = np.repeat(design.leaves(values)[None], size, axis=0)
        levels = design.tree.measure(counts, noise)  # type: ignore[arg-type]
        return np.concatenate([level[:, [0, -1]] for level in levels], axis=1)

    found = audit(run, np.array([-1.0]), np.array([1.0]), 1, samples=40_000)
    assert found.verdict is Outcome.VIOLATED


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_hold_at_least_as_often_as_they_say(neighbours: Any) -> None:
    """Three quantiles at once of a skewed law, 100 runs; a true .95 fails once in 10⁴."""
    rng, shares = np.random.default_rng(2), np.array([0.1, 0.5, 0.8])
    truth, held = -2 * np.log1p(-shares), np.zeros(3)
    for _ in range(100):
        found = inference.quantiles(
            rng.exponential(2, 2000),
            shares,
            bounds=(0, 16),
            epsilon=1,
            neighbours=neighbours,
            bins=128,
        ).simulated(draws=400)
        ends = found.interval()
        held += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        assert (ends[:, 0] <= found.estimate).all()
        assert (found.estimate <= ends[:, 1]).all()
    assert (held >= 86).all()


def test_numbers_below_edges_are_made_to_rise() -> None:
    """Halfway between the least rising curve above and the largest below; what rises stays."""
    rng = np.random.default_rng(6)
    gap = np.linspace(-5, 5, 40) + rng.normal(0, 2, 40)
    found = _rising(gap)
    assert (np.diff(found) >= 0).all()
    assert np.abs(found - gap).max() <= np.max(np.maximum.accumulate(gap) - gap) + 1e-12
    np.testing.assert_array_equal(_rising(np.sort(gap)), np.sort(gap))


def test_a_known_number_of_rows_makes_intervals_narrower() -> None:
    """Under 'replace' the counts are made to add up to it; the last edge then has no error."""
    x = np.random.default_rng(3).uniform(0, 1, 400)
    found = inference.quantiles(x, [0.9], bounds=(0, 1), epsilon=1, bins=64)
    model = found.simulate.__self__  # type: ignore[attr-defined]
    assert model.known == 400
    assert model._gap(model.below[None, :], 400.0, 0.9)[0, -1] == pytest.approx(40)
    errors = found.errors
    assert np.ptp(errors.simulated[0][:, -1] - np.sort(errors.sampling[0])) < 1e-9


def test_without_noise_they_are_order_statistics() -> None:
    """At an epsilon so large that noise is nothing, the sample's quantiles to within a bin."""
    x = np.random.default_rng(3).normal(0, 1, 5000)
    found = inference.quantiles(x, [0.25, 0.5, 0.75], bounds=(-4, 4), epsilon=1000)
    np.testing.assert_allclose(found.estimate, np.quantile(x, [0.25, 0.5, 0.75]), atol=0.02)
    assert found.test(-1.0)[1] < 0.01
    assert found.test(0.0)[1] > 0.01
    assert found.test(-1.0, "greater")[1] < 0.01 < found.test(-1.0, "less")[1]


@pytest.mark.parametrize("x", [[], [1.0], [None] * 9, [float("inf")] * 30, [2.0] * 500])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_no_data_raise_anything(x: list[Any], neighbours: Any) -> None:
    """One row, none, missing, all beyond a bound, all alike."""
    found = inference.quantiles(
        x, [0.5], bounds=(0, 9), epsilon=1, neighbours=neighbours, bins=64
    ).simulated(draws=200)
    low, high = found.interval()[0]
    assert 0 <= low <= found.estimate[0] <= high <= 9
    assert "0.5" in found.summary()


def test_arguments_are_checked() -> None:
    """Before any data are read."""
    for more, told in (
        ({"bounds": None}, "bounds must be given"),
        ({"probabilities": [0.5, 1.0]}, "between 0 and 1"),
        ({"probabilities": []}, "between 0 and 1"),
        ({"bins": 1}, "bins"),
    ):
        given: dict[str, Any] = {"probabilities": [0.5], "bounds": (0, 1), "epsilon": 1, **more}
        with pytest.raises(ArgumentError, match=told):
            inference.quantiles([0.5], **given)
