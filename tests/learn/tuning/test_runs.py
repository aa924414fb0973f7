"""Whole runs: with the same answers, neighbours differ by no more than is charged."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import learn
from dither.learn._columns import FeatureColumn
from dither.learn._noise import PrivacyParameters
from dither.learn._rows import Box, Encoding
from dither.learn.tabular._bayes import STEPS, ClassSums
from dither.learn.tabular._kmeans import Clusters
from dither.learn.tabular._pca import AxesRun
from dither.privacy import Neighbours

BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
NUMBER = FeatureColumn("x", bounds=(-1.0, 1.0))
LISTED = FeatureColumn("c", categories=("a", "b", "c"))
DELTA = Fraction(1, 10**6)


class Answers:
    """Takes the place of noise: answers that are the same for all rows, and what was asked."""

    def __init__(self, seed: int, first: float, deviation: float = 1.0) -> None:
        self._generator, self._first = np.random.default_rng(seed), first
        self.asked: list[Any] = []
        self.deviation = deviation

    def leave(self, exact: Any) -> Any:
        self.asked.append(np.asarray(exact, dtype=np.int64).ravel())
        if len(self.asked) == 1 and len(self.asked[0]) == 1:
            return np.full(np.shape(exact), self._first)
        return self._generator.integers(0, 10**6, np.shape(exact)).astype(float)


def _moved(first: list[Any], second: list[Any]) -> tuple[int, int]:
    assert [len(v) for v in first] == [len(v) for v in second]
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    return sum(int(np.abs(g).sum()) for g in gaps), sum(int((g**2).sum()) for g in gaps)


def _extremes(size: int, neighbours: Neighbours) -> Iterator[tuple[int, list[Any], list[Any]]]:
    """Neighbours that differ by rows at corners, in the middle, and near to each other."""
    others = np.random.default_rng(0).uniform(-1, 1, (2, size))
    corners = [np.full(size, v) for v in (-1.0, 0.0, 0.3, 1.0)]
    for seed, (one, two) in itertools.product(range(3), itertools.permutations(corners, 2)):
        yield seed, [*others, one], [*others, two] if neighbours is BOTH[1] else [*others]


def _box(size: int) -> Box:
    return Box(tuple(FeatureColumn(f"x{i}", bounds=(-1.0, 1.0)) for i in range(size)))


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("size", [2, 4])
def test_components_move_as_proved(neighbours: Neighbours, size: int) -> None:
    run = AxesRun(_box(size), PrivacyParameters(Fraction(1), DELTA, neighbours))
    given, largest = run.moved, 0
    for seed, *tables in _extremes(size, neighbours):
        left = []
        for table in tables:
            answers = Answers(seed, 0.0)
            object.__setattr__(run, "noisy", answers)
            run.release(np.array(table))
            left.append(answers.asked)
        l1, l2 = _moved(*left)
        assert l1 <= given.l1
        assert l2 <= given.l2_squared
        largest = max(largest, l2)
    assert largest >= 0.45 * given.l2_squared


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("pure", [False, True])
def test_clusters_move_as_proved(neighbours: Neighbours, size: int, pure: bool) -> None:
    """By the plan, with fewer steps and levels, with a second look at the mean, and that alone."""
    delta = Fraction(0) if pure else DELTA
    run = Clusters(_box(size), 2, 4, PrivacyParameters(Fraction(1), delta, neighbours))
    assert run.absolute == pure
    given, ways, shares = run.moved, set(), []
    for deviation in (1.0, 2e4, 4e4, 8e4, 3e5, 1e6, 1e7):
        for seed, *tables in _extremes(size, neighbours):
            left = []
            for table in tables:
                answers = Answers(seed, 0.0, deviation)
                object.__setattr__(run, "noisy", answers)
                run.release(np.array(table))
                left.append(answers.asked)
            l1, l2 = _moved(*left)
            moved, most = (l1, given.l1) if pure else (l2, given.l2_squared)
            assert moved <= most
            gaps = [a != b for a, b in zip(*left, strict=True)]
            assert sum(int(gap.sum()) for gap in gaps) <= given.coordinates
            shares.append(moved / most)
            ways.add(len(left[0]))
    # The mean twice and nothing else; the plan, whose cells may end early; and what is between.
    assert min(ways) == 2
    assert len(ways) >= 4
    assert max(shares) >= 0.45


@pytest.mark.parametrize("neighbours", BOTH)
def test_bayes_leaves_once(neighbours: Neighbours) -> None:
    """One vector, of the declared classes: a row of none is as if it were not there."""
    run = ClassSums(
        Encoding((NUMBER, LISTED)), 2, PrivacyParameters(Fraction(1), DELTA, neighbours)
    )
    given, left = run.moved, []
    replaced = neighbours is BOTH[1]
    for label, row in ((0, [STEPS, STEPS, 0, 0]), (0 if replaced else 2, [-STEPS, 0, STEPS, 0])):
        answers = Answers(0, 0.0)
        object.__setattr__(run, "noisy", answers)
        run.release(np.array([row]), np.array([label]))
        left.append(answers.asked)
    assert len(left[0]) == 1
    assert _moved(*left)[1] <= given.l2_squared


@pytest.mark.parametrize(
    ("more", "least"),
    [
        ({"epsilon": 4, "delta": 0, "splits": "drawn", "n_estimators": 2}, 0.75),
        ({"epsilon": 4, "delta": 1e-6}, 0.9),
        ({"epsilon": 4, "n_estimators": 1}, 0.9),
        ({"epsilon": "0.3", "delta": 1e-6}, 0.75),
    ],
)
def test_few_rows_have_trees_too(more: dict[str, Any], least: float) -> None:
    """Drawn by chance, or chosen: down to one question. One fit in a hundred is worse, at most, so
    that the median is by a chance below 1e-7."""
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (400, 1))
    labels = (table[:, 0] > 0).astype(int)
    found = [
        learn.RandomForestClassifier(bounds=(-1, 1), classes=[0, 1], **more)
        .fit(table, labels)
        .score(table, labels)
        for _ in range(9)
    ]
    assert np.median(found) > least


def test_a_forest_asks_several_questions() -> None:
    """Two columns of which only both together tell, a list, and what is missing."""
    rng = np.random.default_rng(1)
    size = rng.uniform(-1, 1, (20_000, 2))
    missing = rng.random(20_000) < 0.2
    size[missing, 0] = np.nan
    kind = rng.integers(0, 4, 20_000)
    labels = np.where(missing, kind == 2, (size[:, 0] > -0.4) & (size[:, 1] > -0.4)).astype(int)
    table = np.column_stack([size, kind])
    model = learn.RandomForestClassifier(
        epsilon=4,
        delta=1e-6,
        bounds=(-1, 1),
        categories={2: [0, 1, 2, 3]},
        classes=[0, 1],
        max_features=3,
    ).fit(table, labels)
    assert model.score(table, labels) > 0.8
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert (model.feature_importances_ >= 0).all()
