"""Ties: what a row moves of the variance they leave, what it costs, and levels on five points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import target
from dither.inference.hypothesis._ranks import twice_ranks
from dither.inference.hypothesis._ties import KINDS, Ties, TiesRelease, part_of_ties

BOTH = ("replace", "add-remove")
NAN = math.nan


def _kinds(kind: str, neighbours: str) -> list[Any]:
    """All that a row may hold."""
    if kind == "signed ranks":
        return [0.0, -1.0, 1.0, 2.0, -3.0]
    one = [0.0, 1.0, 2.0, 3.0] + [NAN] * (neighbours == "replace")
    return list(itertools.product(one, one[:2] + one[4:])) if kind == "pairs" else one


def _table(kind: str, rows: Any) -> np.ndarray[Any, Any]:
    shape = (len(rows), 2) if kind == "pairs" else (len(rows),)
    return np.array(rows, dtype=float).reshape(shape)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_moves_the_variance_by_more_than_one(kind: str, neighbours: str) -> None:
    """Every small table and every neighbour; and the large ones that come near."""
    statistic, rows = KINDS[kind][0], _kinds(kind, neighbours)
    most = Fraction(0)
    for others in itertools.combinations_with_replacement(rows, 3):
        found = [statistic(_table(kind, [*others, row])) for row in rows]
        beside = found if neighbours == "replace" else [statistic(_table(kind, others))]
        most = max(most, *(abs(a - b) for a in found for b in beside))
    for n in (3, 10, 60):
        far, near = _table(kind, [rows[0]] * n), _table(kind, [rows[0]] * (n - 1) + [rows[-1]])
        if neighbours == "add-remove":
            far = far[:-1]
        most = max(most, abs(statistic(far) - statistic(near)))
    assert 0.15 < most <= 1


def _variance(kind: str, values: Any) -> float:
    """Of the statistic over all permutations, or all signs, but for a factor of n alone."""
    n = len(values)
    if kind == "groups":
        return float(np.sum(twice_ranks(values).astype(float) ** 2)) / n**2
    if kind == "signed ranks":
        ranks = stats.rankdata(np.abs(values))
        return float(np.sum(ranks[values != 0] ** 2)) / n**2
    first, second = (np.sign(np.subtract.outer(v, v)) for v in values.T)
    # Kendall's formula, 1948: of all permutations of the second against the first.
    rows, squares = (np.sum((m.sum(1)) ** 2) - np.sum(m**2) for m in (first, second))
    both = 4 * rows * squares / (n * (n - 1) * (n - 2)) + 2 * np.sum(first**2) * np.sum(
        second**2
    ) / (n * (n - 1))
    return float(both) / 4 / n**2


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_what_ties_leave_of_the_variance(kind: str) -> None:
    """T is the variance of the null, of pairs but for lower powers of n."""
    rng, n = np.random.default_rng(1), 300
    whole = rng.normal(0, 1, (n, 2))
    for shares in ([0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]):
        columns = rng.choice(3, (n, 2), p=shares).astype(float)
        tied, free = (v if kind == "pairs" else v[:, 0] for v in (columns, whole))
        found = float(KINDS[kind][0](tied)) / KINDS[kind][1](n)
        wanted = _variance(kind, tied) / _variance(kind, free)
        assert found == pytest.approx(wanted, rel=0.02 if kind == "pairs" else 1e-9, abs=1e-12)
        assert float(KINDS[kind][0](free)) == pytest.approx(KINDS[kind][1](n))


def test_what_it_costs_is_part_of_what_was_asked() -> None:
    """Nothing of few rows, a sixth at most; with the test itself exactly epsilon."""
    rng = np.random.default_rng(2)
    for n, neighbours in itertools.product((40, 300), BOTH):
        x, y = rng.integers(0, 5, (2, n)).astype(float)
        asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 100}
        for found in (
            inference.kruskal(x, y, x, **asked),
            inference.mannwhitneyu(x, y, **asked),
            inference.kendalltau(x, y, **asked),
            inference.wilcoxon(x, y, **asked),
            inference.wilcoxon(x, y, ties=False, **asked),
        ):
            assert found.loss.charge.epsilon == 1
    assert part_of_ties(target(1, 0, "replace"), 40) == 0
    assert part_of_ties(target("0.5", 0, "replace"), 300) == Fraction(1, 6)
    spent, rest = Ties.release("groups", np.zeros(9), target(1, 0, "add-remove"), True)
    assert spent.loss is not None
    assert spent.loss.charge.epsilon == Fraction(1, 10)
    assert rest.epsilon == Fraction(9, 10)
    with pytest.raises(ArgumentError, match="ties"):
        inference.wilcoxon([1.0], epsilon=1, ties="no")  # type: ignore[arg-type]


SKEWED = [0.02, 0.04, 0.1, 0.22, 0.62]
Once = Callable[[Any, Any, Any], Any]
RANKS: dict[str, tuple[Once, Once]] = {
    "kruskal": (
        lambda x, y, a: inference.kruskal(*np.array_split(x, 3), **a),
        lambda x, y, a: stats.kruskal(*np.array_split(x, 3)),
    ),
    "mannwhitneyu": (
        lambda x, y, a: inference.mannwhitneyu(x[::2], x[1::2], **a),
        lambda x, y, a: stats.mannwhitneyu(x[::2], x[1::2]),
    ),
    "kendalltau": (
        lambda x, y, a: inference.kendalltau(x, y, **a),
        lambda x, y, a: stats.kendalltau(x, y),
    ),
    "wilcoxon": (
        lambda x, y, a: inference.wilcoxon(x, y, **a),
        lambda x, y, a: stats.wilcoxon(x, y),
    ),
}


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", RANKS)
def test_levels_on_five_points(name: str, neighbours: str) -> None:
    """Of 150 true nulls at .05 at most 18 are rejected; at .15 at least 8: once in 10⁴ fewer.

    A null of values without ties rejects .02 to .05 of these at .15.
    """
    rng, ours = np.random.default_rng(3), []
    asked = {"epsilon": 2, "neighbours": neighbours, "draws": 300}
    for _ in range(150):
        x, y = rng.choice(5, (2, 600), p=SKEWED).astype(float)
        ours.append(RANKS[name][0](x, y, asked).pvalue)
    assert np.sum(np.array(ours) <= 0.05) <= 18
    assert np.sum(np.array(ours) <= 0.15) >= 8


def test_values_all_alike_leave_the_noise_alone() -> None:
    """T is 0 then, and so is the null's own spread; no data raise anything."""
    design = TiesRelease("groups", target(1, 0, "replace"))
    assert design.statistic(np.full(50, 3.0)) == (0,)
    assert design.statistic(np.zeros(0)) == (0,)
    assert Ties("groups", -5.0, None).narrowing(100) == 0
    assert Ties("groups", 1e9, None).narrowing(100) == 1
    for rows in ([], [1.0], [NAN] * 300, [5.0] * 300):
        for neighbours in BOTH:
            asked: Any = {"epsilon": 1, "neighbours": neighbours, "draws": 100}
            for found in (
                inference.kruskal(rows, rows, rows, **asked),
                inference.kendalltau(rows, rows, **asked),
                inference.wilcoxon(rows, **asked),
            ):
                assert 0 < found.pvalue <= 1
