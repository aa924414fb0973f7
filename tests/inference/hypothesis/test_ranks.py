"""Tests of groups by ranks: what a person who moves changes, levels, power, and what comes in."""

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
from dither.inference.engine._inputs import target
from dither.inference.hypothesis import _ranks
from dither.inference.hypothesis._ranks import (
    GroupRanks,
    null_of_ranks,
)
from inference.neighbouring import BOTH, furthest


@pytest.mark.parametrize(
    ("k", "values", "rows"),
    [(2, [0.0, 1, 2, 3], 4), (2, [0.0, 1, math.nan], 5), (3, [0.0, 1, 2], 4)],
)
def test_no_row_moves_ranks_further_than_proved(k: int, values: list[float], rows: int) -> None:
    """Every small table, every neighbour."""
    known = GroupRanks(k, rows, target(1, 0, "replace"))
    unknown = GroupRanks(k, 0, target(1, 0, "add-remove"))
    replaced, _ = furthest(known.statistic, k, values, rows)
    _, added = furthest(unknown.statistic, k, values, rows)
    assert replaced <= known.moved
    assert added <= unknown.moved
    if k == 2:
        assert replaced >= 1.3


@pytest.mark.parametrize("beyond", [0, 3])
def test_no_row_moves_separated_groups_further(
    beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two groups wholly apart, of all sizes, are the worst; the cut is what bounds them."""
    monkeypatch.setattr(_ranks, "_BEYOND", beyond)
    worst = 0.0
    for first, second in itertools.product(range(1, 16), repeat=2):
        n = first + second
        places = np.repeat([0, 1], [first, second])
        values = np.arange(n, dtype=float)
        design = GroupRanks(2, n, target(1, 0, "replace"))
        before = design.statistic(values, places)
        for row, at, to in itertools.product(
            {0, first - 1, first, n - 1}, (-1.0, first - 0.5, n + 1.0), (0, 1)
        ):
            moved, dealt = values.copy(), places.copy()
            moved[row], dealt[row] = at, to
            gap = float(abs(design.statistic(moved, dealt) - before))
            assert gap <= design.moved
            worst = max(worst, gap / float(design.moved))
    assert worst > 0.7


def test_losses_add_up_to_what_was_asked_for() -> None:
    """The sizes of groups and the statistic together cost epsilon, no more."""
    x = np.arange(30.0)
    for neighbours in BOTH:
        for found in (
            inference.mannwhitneyu(x, x, epsilon="0.7", neighbours=neighbours, draws=100),
            inference.kruskal(x, x, x, epsilon="0.7", neighbours=neighbours, draws=100),
        ):
            assert found.loss.charge.epsilon == Fraction(7, 10)
            assert found.loss.charge.delta == 0


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.2, 0.3, 0.5]])
def test_limits_of_nulls_are_near(shares: list[float]) -> None:
    """Dealt rows and the normal limit have one law (chance of failing: 1 in 1,000)."""
    rng = np.random.default_rng(1)
    few = null_of_ranks(rng, 300, 3000, np.array(shares))
    many = null_of_ranks(rng, 301, 3000, np.array(shares))
    assert stats.ks_2samp(few, many).pvalue > 1e-3


def _groups(rng: np.random.Generator, k: int, shift: float) -> list[Any]:
    """Labels are dealt at random, as they are in a sample."""
    labels, x = rng.integers(0, k, 60 * k), rng.normal(0, 1, 60 * k)
    return [x[labels == g] + shift * g for g in range(k)]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["mannwhitneyu", "kruskal"])
def test_levels_and_power(name: str, neighbours: Any) -> None:
    """At most about 5 % of 300 true nulls, and most of 50 plain differences."""
    rng = np.random.default_rng(2)
    asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 200}

    def once(shift: float) -> bool:
        groups = _groups(rng, 3 if name == "kruskal" else 2, shift)
        return bool(getattr(inference, name)(*groups, **asked).rejects())

    assert sum(once(0.0) for _ in range(300)) <= 30
    assert sum(once(0.9) for _ in range(50)) >= 38


def test_unequal_groups_stay_within_their_level() -> None:
    """One group in four, sizes hidden by noise: conservative, not liberal."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        x, first = rng.normal(0, 1, 200), rng.random(200) < 0.25
        wrong += inference.mannwhitneyu(x[first], x[~first], epsilon=2, draws=200).rejects()
    assert wrong <= 26


def test_too_few_rows_are_told_in_sane_numbers() -> None:
    """Empty groups and small epsilons ask for rows of the order of what a row moves."""
    for x in ([], [1.0], [1.0] * 9):
        (note,) = inference.mannwhitneyu(x, [], epsilon=0.2).notes
        needed = int(note.split("About ")[1].split()[0].replace(",", ""))
        assert 100 < needed < 20_000


HOSTILE: list[Any] = [[], [3.0], [None], [float("nan")] * 5, [float("inf"), -1e308], [5.0] * 50]


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_data_raises_anything(rows: Any, neighbours: Any) -> None:
    """No row, one, missing, infinite, constant, an empty group: a p-value."""
    asked: Any = {"epsilon": 0.2, "neighbours": neighbours, "draws": 100}
    for found in (
        inference.mannwhitneyu(rows, [1.0, 2.0], **asked),
        inference.mannwhitneyu(rows, [], **asked),
        inference.kruskal(rows, [], rows, **asked),
    ):
        assert 0 < found.pvalue <= 1
        assert "Cost" in found.summary()


def test_bad_arguments_are_named() -> None:
    """What is wrong is named."""
    with pytest.raises(ArgumentError, match="samples"):
        inference.kruskal([1], epsilon=1)
    with pytest.raises(ArgumentError, match="alternative"):
        inference.mannwhitneyu([1], [2], epsilon=1, alternative="x")
    with pytest.raises(ArgumentError, match="must"):
        inference.mannwhitneyu([1], "abc", epsilon=1)
