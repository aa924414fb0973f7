"""Whole fits of neighbours at the same released numbers: all that leaves moves no further than is
charged, whatever the rows are and in whatever kind of table they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dither import learn
from dither.errors import ArgumentError
from dither.learn import _noise
from dither.learn._columns import numbers, places_in
from dither.learn._noise import PrivacyParameters, TableSensitivity
from dither.learn._rows import Encoding, declared
from dither.learn.tabular import _boosting
from dither.learn.tabular._bayes import ClassSums, _drawn, _sizes
from dither.learn.votes._partition import parts_of
from dither.mechanisms import DiscreteLaplace

HOSTILE = [-1e9, -1.0, -0.5, 0.0, 0.3, 1.0, 7.0, np.nan, np.inf, -np.inf]


class Watch:
    """Stands between runs and their noise: keeps what is exact, and answers as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exact: list[Any] = []
        self.said: list[Any] = []
        self.replayed = False
        self.claim: Any = None
        best, gaussian = PrivacyParameters.best, PrivacyParameters.gaussian

        def of_best(asked: PrivacyParameters, moved: TableSensitivity) -> Any:
            noise, loss = best(asked, moved)
            self.claim = (noise, moved)
            return noise, loss

        def of_gaussian(asked: PrivacyParameters, l2_squared: int, coordinates: int) -> Any:
            noise, loss = gaussian(asked, l2_squared, coordinates)
            self.claim = (noise, TableSensitivity(0, l2_squared, coordinates))
            return noise, loss

        def counted(run: Any, places: Any, cells: int, kept: Any) -> Any:
            found = np.bincount(places, kept, cells).astype(np.int64) * run.weight
            return self.left(run.noise, found) / run.weight

        def summed(run: Any, places: Any, cells: int, residuals: Any) -> Any:
            parts = [np.bincount(places, part, cells) for part in residuals.T.astype(float)]
            return self.left(run.noise, np.stack(parts, axis=1).astype(int)) / _boosting.UNIT

        monkeypatch.setattr(PrivacyParameters, "best", of_best)
        monkeypatch.setattr(PrivacyParameters, "gaussian", of_gaussian)
        monkeypatch.setattr(_noise, "left", self.left)
        monkeypatch.setattr(_boosting.Boosting, "counted", counted)
        monkeypatch.setattr(_boosting.Boosting, "summed", summed)

    def left(self, noise: Any, exact: Any) -> Any:
        self.exact.append(np.asarray(exact))
        if self.replayed:
            return self.said[len(self.exact) - 1]
        self.said.append((self.exact[-1] + noise.draw(self.exact[-1].shape)).astype(float))
        return self.said[-1]

    def share(self, model: Any, one: Any, two: Any) -> float:
        """How far two tables differ, as a share of what is charged."""
        self.exact, self.said, self.replayed = [], [], False
        model.fit(*one)
        first, (noise, moved) = self.exact, self.claim
        self.exact, self.replayed = [], True
        model.fit(*two)
        assert [a.shape for a in first] == [a.shape for a in self.exact]
        gaps = [(a - b).ravel().tolist() for a, b in zip(first, self.exact, strict=True)]
        flat = [int(gap) for part in gaps for gap in part]
        if isinstance(noise, DiscreteLaplace):
            return sum(map(abs, flat)) / moved.l1
        assert sum(gap != 0 for gap in flat) <= moved.coordinates
        return sum(gap**2 for gap in flat) / moved.l2_squared


KINDS: dict[str, Callable[..., Any]] = {
    "naive Bayes": lambda turn, **given: learn.GaussianNB(
        classes=[0, 1, 2][: 2 + turn % 2], **given
    ),
    "k-means": lambda turn, **given: learn.KMeans(1 + turn % 4, max_iter=1 + turn % 3, **given),
    "PCA": lambda turn, **given: learn.PCA(**given),
    "additive": lambda turn, **given: learn.AdditiveClassifier(
        classes=[0, 1, 2][: 2 + turn % 2], rounds=2, **{**given, "delta": given["delta"] or 1e-6}
    ),
    "additive, a number": lambda turn, **given: learn.AdditiveRegressor(
        target_bounds=(-1, 1), rounds=2, **{**given, "delta": given["delta"] or 1e-6}
    ),
}


def _tables(rng: np.random.Generator, neighbours: str, numeric: bool) -> tuple[Any, Any]:
    """A table and a neighbour of it, of a few hostile rows, one of which may stand many times."""
    size, rows = int(rng.integers(1, 4)), int(rng.integers(0, 6))
    some = rng.choice(HOSTILE, (rows, size)).repeat(rng.choice([1, 20]), axis=0)
    each = rng.choice(HOSTILE, (2, size))
    labels = rng.choice(HOSTILE, len(some) + 2) if numeric else rng.integers(0, 4, len(some) + 2)
    one = np.concatenate([some, each[:1]]), labels[:-1]
    if neighbours == "add-remove":
        return one, (some, labels[:-2])
    return one, (np.concatenate([some, each[1:]]), np.append(labels[:-2], labels[-1]))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_runs_move_as_charged(
    kind: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of a fit, at small and large budgets, with Laplace and Gaussian noise."""
    watch, rng, shares = Watch(monkeypatch), np.random.default_rng(7), []
    for turn in range(24):
        one, two = _tables(rng, neighbours, kind.endswith("number"))
        model = KINDS[kind](
            turn,
            epsilon=(0.01, 1, 100)[turn % 3],
            delta=(0, 1e-6)[turn // 3 % 2],
            bounds=(-1, 1),
            neighbours=neighbours,
        )
        shares.append(watch.share(model, *((one, two) if turn % 2 else (two, one))))
    assert 0.2 < max(shares) <= 1


def test_a_weight_that_is_not_charged_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows are added with more than the weight of their proof."""
    right = ClassSums.statistic
    monkeypatch.setattr(
        ClassSums, "statistic", lambda run, points, *rest: right(run, 2 * points, *rest)
    )
    watch = Watch(monkeypatch)
    model = learn.GaussianNB(epsilon=1, bounds=(-1, 1), classes=[0, 1])
    rows = np.ones((2, 2)), np.zeros(2)
    assert watch.share(model, rows, (rows[0][:1], rows[1][:1])) > 1


def test_what_lies_under_a_mask_is_missing() -> None:
    """Operations on masked arrays skip it: were they used, it would stay beyond its bounds."""
    table = np.ma.masked_array([[1e9, 5.0], [5.0, 7.0]], mask=[[True, False], [False, False]])
    plain = np.array([[np.nan, 5.0], [5.0, 7.0]])
    encoding = Encoding(declared(table, (4, 8)))
    assert np.array_equal(encoding.points(table, 256), encoding.points(plain, 256))
    masked = np.ma.masked_array([1e9, 1.0], mask=[True, False])
    found = numbers(masked)
    assert type(found) is np.ndarray
    assert np.isnan(found[0])
    assert places_in([1e9, 1.0], masked).tolist() == [2, 1]
    texts = np.ma.masked_array(["yes", "no"], mask=[True, False])
    assert places_in(["yes", "no", "?"], texts).tolist() == [3, 1], "nor is it NumPy's filling"


def test_masked_targets_move_no_further_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies beneath would else count as far beyond the bounds."""
    from dither.inference.regression._moments import MomentsRelease

    seen = []
    right = MomentsRelease.release
    monkeypatch.setattr(
        MomentsRelease, "release", lambda run, rows: (seen.append(rows), right(run, rows))[1]
    )
    model = learn.LinearRegression(epsilon=1, bounds=(0, 1), target_bounds=(0, 1))
    model.fit([[0.5], [0.5]], np.ma.masked_array([1e9, 0.5], mask=[True, False]))
    model.fit([[0.5], [0.5]], [np.nan, 0.5])
    assert np.array_equal(seen[0], seen[1])


def test_any_array_has_labels() -> None:
    """Tensors and the like say their values by ``__array__``: each is a label, none a stranger."""

    class Tensor:
        def __init__(self, values: Any) -> None:
            self.values = np.asarray(values)

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.values

        def __iter__(self) -> Any:
            return (Tensor(v) for v in self.values)

    assert places_in([0, 1], Tensor([1, 0, 1])).tolist() == [1, 0, 1]
    assert numbers(Tensor([1, 0.5])).tolist() == [1, 0.5]


def test_values_of_ones_own_raise_nothing() -> None:
    """Whatever a value does when it is looked at, it is missing; a huge number is a number."""

    class Wild:
        def __float__(self) -> float:
            raise RuntimeError("seen")

        def __hash__(self) -> int:
            raise RuntimeError("seen")

    assert np.isnan(numbers([Wild(), 1])[0])
    assert numbers([10**400, -(10**400)]).tolist() == [np.inf, -np.inf]
    assert places_in(["a"], [Wild(), "a"]).tolist() == [1, 0]


def test_missing_groups_are_one() -> None:
    """pandas says neither yes nor no of NA: nothing is raised, and they share a part."""
    groups = pd.array([None, 1, None, 2] * 50, dtype="Int64")
    found = parts_of(200, 1000, groups)
    assert len(set(found[::2].tolist())) == 1


def test_sparse_tables_are_refused_with_the_way_out() -> None:
    model = learn.GaussianNB(epsilon=1, bounds=(0, 1), classes=[0, 1])
    with pytest.raises(ArgumentError, match=r"X\.toarray\(\)"):
        model.fit(sparse.csr_array(np.eye(3)), [0, 1, 0])


def test_distances_from_centres_in_one_call() -> None:
    """Pipelines ask for it."""
    model = learn.KMeans(2, epsilon=1, bounds=(0, 1))
    assert model.fit_transform(np.random.default_rng(0).random((20, 3))).shape == (20, 2)


def test_classes_are_drawn_together_by_their_noise() -> None:
    """Without noise nothing moves; where noise drowns all, the order of sizes alone is left."""
    seen = np.array([100.0, 900.0])
    assert np.allclose(_sizes(seen, 0.0), seen)
    drowned = _sizes(seen, 1e5)
    assert drowned[0] < drowned[1] < 1.01 * drowned[0]
    assert _sizes(np.array([-1e6, -2e6, 5.0]), 1e5).min() >= 1
    shares, two = np.array([[0.5], [0.5]]), np.array([True, True])
    values, most = np.array([[0.1, -0.2], [0.3, 0.2]]), np.ones(2)
    told, left = _drawn(values, np.zeros((2, 2)), shares, two, 1.0, most)
    assert np.allclose(told, values)
    assert not left.any()
    told, _ = _drawn(values, np.full((2, 2), 10.0), shares, two, 1.0, most)
    assert np.allclose(told, values.mean(axis=0))


def test_many_columns_speak_together() -> None:
    """Each differs no more than noise might; all of them together do not."""
    rng, shares, off = np.random.default_rng(0), np.full((2, 1), 0.5), np.full((2, 400), 1.0)
    most, all_numbers = np.ones(400), np.ones(400, bool)
    same = rng.normal(size=(2, 400))
    apart = same + np.array([[-1.0], [1.0]])
    alone, _ = _drawn(same, off, shares, all_numbers, 1e9, most)
    assert np.ptp(alone, axis=0).mean() < 0.1 * np.ptp(same, axis=0).mean()
    told, left = _drawn(apart, off, shares, all_numbers, 1e9, most)
    assert (told[1] - told[0]).mean() > 0.5
    assert (left > 0).all()


def test_noise_does_not_make_naive_bayes_certain() -> None:
    """Of rows that a budget tells nothing about, no class is nearly sure.

    The loss is 1.2 in the mean, and was 2.9 when noise counted as knowledge; a mean of 20 has a
    deviation of 0.03, and the largest of 75 was 1.28.
    """
    rng = np.random.default_rng(0)
    table, labels = rng.uniform(-1, 1, (200, 13)), rng.integers(0, 3, 200)
    losses = []
    for _ in range(20):
        model = learn.GaussianNB(epsilon=0.02, bounds=(-1, 1), classes=[0, 1, 2])
        told = model.fit(table, labels).predict_proba(table)
        losses.append(-np.log(np.maximum(told[np.arange(200), labels], 1e-12)).mean())
    assert np.mean(losses) < 1.7
