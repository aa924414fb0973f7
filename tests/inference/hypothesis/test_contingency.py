"""Tests through noisy tables: what moves a cell, and how often a test is right."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Target, target
from dither.inference.hypothesis._contingency import TableRelease
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours


@pytest.mark.parametrize("neighbours", Neighbours.of_tables())
def test_no_row_moves_more_cells_than_proved(neighbours: Neighbours) -> None:
    """A row that changes group and value at once moves two counts, one that comes moves one."""
    design = TableRelease((2, 3), Target(Fraction(1), Fraction(0), neighbours))
    rows = list(itertools.product((-1, 0, 1), (-1, 0, 1, 2)))
    others = [(0, 0), (1, 2)]

    def table(extra: list[tuple[int, int]]) -> Any:
        first, second = np.array([*others, *extra]).T
        return design.statistic([first, second])

    if design.asked.replace:
        gaps = [table([a]) - table([b]) for a, b in itertools.combinations(rows, 2)]
    else:
        gaps = [table([a]) - table([]) for a in rows]
    furthest = max(int(np.abs(gap).sum()) for gap in gaps)
    assert furthest == (2 if design.asked.replace else 1)
    # The law of the noise, computed: at the furthest the ratio of chances is e to the epsilon.
    law = design.noise
    chance = [law.survival(k) - law.survival(k + 1) for k in range(30)]
    steepest = max(math.log(a / b) for a, b in itertools.pairwise(chance))
    assert furthest * steepest == pytest.approx(1.0)
    assert design.loss.charge.epsilon == 1


def test_public_group_labels_are_caught() -> None:
    """The classic mistake: noise for one cell, where a person who moves changes both groups."""
    design = TableRelease((2,), target(1, 0, "add-remove"))

    def wrong(place: int, size: int) -> Any:
        counts = design.statistic([np.array([place, 1])])
        noise = np.asarray(design.noise.draw((size, 2)))
        return (counts + noise) @ np.array([1, -1])

    assert audit(wrong, 0, 1, 1, samples=40_000).verdict is Outcome.VIOLATED


def _naive(table: Any, rng: np.random.Generator) -> float:
    noisy = np.maximum(table + np.round(rng.laplace(0, 4, table.shape)), 1)
    return float(stats.chi2_contingency(noisy, correction=False).pvalue)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_levels_hold(neighbours: Any) -> None:
    """Of 300 true nulls of each about 5 % are rejected; the plug-in test rejects far more."""
    rng, fit, independent, naive = np.random.default_rng(9), 0, 0, 0
    for _ in range(300):
        x, y = rng.choice(3, 200, p=[0.5, 0.3, 0.2]), rng.integers(0, 2, 200)
        asked: Any = {"epsilon": 0.5, "neighbours": neighbours, "draws": 300}
        fit += inference.goodness_of_fit(
            x, categories=[0, 1, 2], probabilities=[0.5, 0.3, 0.2], **asked
        ).rejects()
        independent += inference.independence_test(
            x, y, x_categories=[0, 1, 2], y_categories=[0, 1], **asked
        ).rejects()
        table = np.bincount(2 * x + y, minlength=6).reshape(3, 2)
        naive += _naive(table, rng) <= 0.05
    assert 4 <= fit <= 31
    assert 4 <= independent <= 31
    assert naive > 45


def test_what_differs_is_seen() -> None:
    """Power against a plain alternative, with missing and undeclared rows beside it."""
    rng = np.random.default_rng(10)
    region = rng.choice(["n", "s"], 1500)
    ill = rng.random(1500) < np.where(region == "n", 0.6, 0.4)
    odd: list[Any] = [None, float("nan"), "elsewhere", [1], object()]
    found = inference.independence_test(
        [*region, *odd],
        [*ill, *odd],
        x_categories=["n", "s"],
        y_categories=[False, True],
        epsilon=1,
    )
    assert found.rejects(0.001)
    assert "Cost" in found.summary()


@pytest.mark.parametrize("rows", [[], [1], [None] * 4, [1] * 50])
def test_no_data_raises_anything(rows: Any) -> None:
    """No row, one, none known, all alike: a p-value."""
    for neighbours in ("replace", "add-remove"):
        asked: Any = {"epsilon": 0.1, "neighbours": neighbours, "draws": 100}
        assert 0 < inference.goodness_of_fit(rows, categories=[1, 2], **asked).pvalue <= 1
        found = inference.independence_test(
            rows, rows, x_categories=[1, 2], y_categories=[1, 2, 3], **asked
        )
        assert 0 < found.pvalue <= 1


def test_bad_arguments_are_named() -> None:
    """What is wrong is named, before anything is released."""
    for given in (
        {"categories": [1]},
        {"categories": "ab"},
        {"categories": [1, 1]},
        {"categories": [[1], [2]]},
        {"probabilities": [1]},
        {"probabilities": [1, 0]},
        {"draws": 1},
    ):
        with pytest.raises(ArgumentError, match=next(iter(given))):
            inference.goodness_of_fit([1], **{"categories": [1, 2], "epsilon": 1} | given)
    with pytest.raises(ArgumentError, match="equally many"):
        inference.independence_test(
            [1], [1, 2], x_categories=[1, 2], y_categories=[1, 2], epsilon=1
        )
