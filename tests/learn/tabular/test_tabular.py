"""Tabular models: what one row can move, what that costs, and what comes out of them."""

from __future__ import annotations

import itertools
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import learn
from dither.errors import ArgumentError, DitherError
from dither.inference.engine._inputs import Bounds, Target
from dither.inference.regression._descent import WeightedRows
from dither.inference.regression._formula import MISSING
from dither.lab.audit import Outcome, audit
from dither.learn._columns import FeatureColumn
from dither.learn._noise import PrivacyParameters, TableSensitivity
from dither.learn._rows import Box, Encoding, cut
from dither.learn.tabular._balls import Balls
from dither.learn.tabular._bayes import STEPS, ClassSums
from dither.learn.tabular._boosting import UNIT
from dither.learn.tabular._cells import HalvedCells, nearest, weighted_centres
from dither.learn.tabular._kmeans import Clusters
from dither.learn.tabular._pca import AxesRun, ProductSums
from dither.learn.tabular._softmax import SoftmaxRelease
from dither.learn.tabular.trees._trees import Trees
from dither.privacy import Neighbours

BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
NUMBER = FeatureColumn("x", bounds=(-1.0, 1.0))
LISTED = FeatureColumn("c", categories=("a", "b"))


class Recorded:
    """Takes the place of noise, and adds none."""

    variance = 0.01

    def draw(self, size: Any) -> Any:
        return np.zeros(size, np.int64)


def _moves(statistics: list[Any], neighbours: Neighbours) -> tuple[int, int]:
    """The largest L1 and squared L2 distance of neighbours, of tables of one row and of none."""
    one = [np.asarray(s, dtype=np.int64).ravel() for s in statistics]
    pairs = (
        itertools.combinations(one, 2)
        if neighbours is Neighbours.REPLACE
        else ((v, np.zeros_like(v)) for v in one)
    )
    gaps = [a - b for a, b in pairs]
    return max(int(np.abs(g).sum()) for g in gaps), max(int((g**2).sum()) for g in gaps)


def _holds(moved: TableSensitivity, found: tuple[int, int], tight: float) -> None:
    l1, l2 = found
    assert l1 <= moved.l1
    assert l2 <= moved.l2_squared
    assert l2 >= tight * moved.l2_squared


@pytest.mark.parametrize("neighbours", BOTH)
def test_sums_of_classes_move_as_proved(neighbours: Neighbours) -> None:
    """Every row of two numbers and a list, on a coarse lattice with its ends."""
    asked = PrivacyParameters(Fraction(1), Fraction(1, 10**6), neighbours)
    run = ClassSums(Encoding((NUMBER, NUMBER, LISTED)), 2, asked)
    ends = [-STEPS, -200, -100, 0, 100, 200, STEPS]
    lists = [(0, 0), (STEPS, 0), (0, STEPS)]
    found = [
        run.statistic(np.array([[x, z, *c]]), np.array([k]))
        for x, z, c, k in itertools.product(ends, ends, lists, (0, 1, 2))
    ]
    _holds(run.moved, _moves(found, neighbours), 0.99)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("steps", [7, 64])
def test_sums_in_balls_move_as_proved(neighbours: Neighbours, steps: int) -> None:
    """Rows within and far beyond a ball, at two centres."""
    balls, rng = Balls(2, steps), np.random.default_rng(0)
    turns = np.linspace(0, 2 * math.pi, 9)
    way = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    points = np.concatenate([way * r for r in (0.0, 0.4, 1.0, 50.0)] + [rng.normal(size=(9, 2))])
    found = [
        balls.statistic(p[None], np.array([k]), np.zeros((2, 2)), 1.0)
        for p in points
        for k in (0, 1)
    ]
    _holds(balls.moved(neighbours is Neighbours.REPLACE), _moves(found, neighbours), 0.8)


@pytest.mark.parametrize("neighbours", BOTH)
def test_products_move_as_proved(neighbours: Neighbours) -> None:
    """Rows of every direction, at most S long."""
    products = ProductSums(3, 50)
    axis = np.linspace(-1, 1, 7)
    points = np.array(list(itertools.product(axis, axis, axis))) * 1.2
    rows = cut(points, 1.0, 50)
    assert ((rows**2).sum(axis=1) <= 50**2).all()
    found = [products.statistic(row[None]) for row in rows]
    _holds(products.moved(neighbours is Neighbours.REPLACE), _moves(found, neighbours), 0.9)


def test_products_are_exact_whatever_else_there_is() -> None:
    """Sums of many rows are the sums of their parts, digit by digit."""
    rng = np.random.default_rng(0)
    rows = cut(rng.normal(size=(70_000, 3)), 1.0, 1 << 10)
    products = ProductSums(3, 1 << 10)
    halves = products.statistic(rows[:1]) + products.statistic(rows[1:])
    assert np.array_equal(products.statistic(rows), halves)


@pytest.mark.parametrize("neighbours", BOTH)
def test_counts_of_cells_move_as_proved(neighbours: Neighbours) -> None:
    """A row is in one cell of a level, whatever the cells are."""
    cells, seen = HalvedCells(5, 4), []

    class Kept(Recorded):
        def leave(self, exact: Any) -> Any:
            seen[-1].append(np.asarray(exact))
            # Every cell seems full, so that all of them are halved.
            return np.full(np.shape(exact), 1e6)

        deviation = 1.0

    grid = np.array(list(itertools.product((-2.0, -0.5, 0.0, 0.5, 2.0), repeat=2)))
    for point in grid:
        seen.append([])
        cells.leave(Kept(), point[None], np.ones(2), np.ones(2))  # type: ignore[arg-type]
    found = [np.concatenate(levels) for levels in seen]
    _holds(cells.moved(neighbours is Neighbours.REPLACE), _moves(found, neighbours), 1.0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("neighbours", BOTH)
def test_scores_of_classes_move_as_proved(neighbours: Neighbours, classes: int) -> None:
    """Gram matrix and scores at hostile coefficients, of rows of every kind."""
    asked = Target(Fraction(1), Fraction(1, 10**6), neighbours)
    release = SoftmaxRelease(1, 1, classes, asked, Fraction(1))

    far = np.array([[40.0, -40.0, 0.0], [40.0, 0.0, -40.0]])[:, : release.outputs]
    rows = [
        (np.array([[x * Bounds.steps, s * Bounds.steps]]), np.array([k]))
        for x, s, k in itertools.product((-1, 0, 1), (1,), range(classes))
    ]
    matrix, first, later = release.moves()
    for slopes, most in ((0 * far, first), (far, later), (-far, later)):
        found = [
            np.array(
                [
                    int(v * UNIT**2)
                    for v in release.score(WeightedRows.of(r, release.radius), k, slopes)
                ]
            )
            for r, k in rows
        ]
        assert _moves(found, neighbours)[1] <= float(most) * UNIT**4 * 1.001
    assert release.moved() <= 1
    weighed = [WeightedRows.of(row, release.radius) for row, _ in rows]
    found = [np.array([int(v * UNIT**2) for v in row.gram(row.weights)]) for row in weighed]
    assert _moves(found, neighbours)[1] <= float(matrix) * UNIT**4 * 1.001
    none = WeightedRows.of(np.array([[0, MISSING]]), release.radius)
    assert not any(none.gram(none.weights))


def _moons(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1, 1, (n, 3))
    score = 4 * table[:, 0] - 3 * table[:, 1]
    return table, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


GOOD: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (-1, 1)}
TWO: dict[str, Any] = {**GOOD, "classes": [0, 1]}
SMALL: dict[str, Any] = {"n_estimators": 3, "max_depth": 3}
CLASSIFIERS: list[Any] = [
    learn.LogisticRegression(**TWO),
    learn.GaussianNB(**TWO),
    learn.RandomForestClassifier(**TWO, **SMALL),
]
REGRESSORS: list[Any] = [
    learn.LinearRegression(**GOOD, target_bounds=(0, 1)),
    learn.RandomForestRegressor(**GOOD, target_bounds=(0, 1), **SMALL),
]
OTHERS: list[Any] = [learn.PCA(2, **GOOD), learn.KMeans(2, **GOOD)]
ALL = CLASSIFIERS + REGRESSORS + OTHERS
IDS = [type(model).__name__ for model in ALL]


def _copy(model: Any, **changed: Any) -> Any:
    return type(model)(**{**model.get_params(), **changed})


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_classes_are_told_apart(model: Any) -> None:
    """On rows that were held out; and probabilities are some."""
    table, labels = _moons(6_000)
    fitted = _copy(model).fit(table, labels)
    held, truth = _moons(2_000, seed=1)
    assert fitted.score(held, truth) > 0.75
    shares = fitted.predict_proba(held)
    assert shares.shape == (2_000, 2)
    assert np.allclose(shares.sum(axis=1), 1)
    assert fitted.loss_.charge.epsilon == 1
    assert fitted.loss_.charge.delta <= Fraction(1, 10**6)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_several_classes_words_and_frames(model: Any) -> None:
    """Three labels of text, and a column of categories beside a number; columns in any order."""
    rng = np.random.default_rng(3)
    kind = rng.choice(["low", "mid", "high"], 6_000)
    size = np.select([kind == "low", kind == "mid"], [1.0, 2.0], 3.0) + rng.normal(0, 0.2, 6_000)
    colour = np.where(kind == "mid", "red", rng.choice(["red", "blue"], 6_000))
    frame = pl.DataFrame({"size": size, "colour": colour})
    fitted = _copy(
        model,
        epsilon=4,
        bounds=([0, np.nan], [4, np.nan]),
        categories={"colour": ["red", "blue"]},
        classes=["low", "mid", "high", "never"],
    ).fit(frame, kind)
    assert fitted.score(frame, kind) > 0.8
    shuffled = fitted.predict(frame[["colour", "size"]])
    assert shuffled.tolist() == fitted.predict(frame).tolist()


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_numbers_are_predicted(model: Any) -> None:
    """Targets beyond their bounds are moved to the ends, and missing ones do not count."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (6_000, 2))
    y = np.clip(0.5 + 0.4 * x[:, 0] - 0.2 * x[:, 1], 0, 1)
    y[:20], y[20:30], y[30:40] = np.nan, np.inf, -1e9
    fitted = _copy(model, epsilon=2).fit(x, y)
    assert fitted.score(x[100:], y[100:]) > 0.7
    assert ((fitted.predict(x) >= 0) & (fitted.predict(x) <= 1)).all()


def test_coefficients_are_in_the_units_of_columns() -> None:
    """What they say of a row by hand is what the model says."""
    rng = np.random.default_rng(5)
    x = rng.uniform(10, 30, (5_000, 2))
    y = 100 + 3 * x[:, 0] - 2 * x[:, 1]
    line = learn.LinearRegression(epsilon=50, delta=1e-6, bounds=(10, 30), target_bounds=(0, 200))
    line.fit(x, y)
    assert line.coef_ == pytest.approx([3, -2], abs=0.3)
    assert line.intercept_ + x[:5] @ line.coef_ == pytest.approx(line.predict(x[:5]), abs=0.1)
    logit = learn.LogisticRegression(epsilon=8, delta=1e-6, bounds=(10, 30), classes=[0, 1])
    logit.fit(x, x[:, 0] > x[:, 1])
    by_hand = logit.intercept_[0] + x[:5] @ logit.coef_[0]
    assert by_hand == pytest.approx(logit.decision_function(x[:5]), abs=1e-3)


def test_components_are_those_of_the_rows() -> None:
    """Directions, variances in the columns' units, there and back."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(8_000, 3)) * [3.0, 1.0, 0.1] + [20.0, 10.0, 5.0]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rows = rows @ turn
    ends = (np.floor(rows.min(axis=0)) - 5, np.ceil(rows.max(axis=0)) + 5)
    model = learn.PCA(2, epsilon=2, delta=1e-6, bounds=ends).fit(rows)
    assert np.abs(model.components_ @ turn.T)[0, 0] > 0.99
    assert model.explained_variance_ == pytest.approx([9, 1], rel=0.3)
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(2))
    assert model.mean_ == pytest.approx(rows.mean(axis=0), abs=0.5)
    back = model.inverse_transform(model.transform(rows))
    assert ((back - rows) ** 2).sum(axis=1).mean() < 0.2


@pytest.mark.parametrize("size", [2, 5])
def test_clusters_are_found(size: int) -> None:
    """Centres near those that rows were drawn about, in few dimensions and in more."""
    rng = np.random.default_rng(7)
    centres = np.array([[-6.0] * size, [0.0] * size, [6.0] * size])
    rows = centres[rng.integers(0, 3, 6_000)] + rng.normal(size=(6_000, size))
    model = learn.KMeans(3, epsilon=2, delta=1e-6, bounds=(-10, 10)).fit(rows)
    found = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
    assert found == pytest.approx(centres, abs=0.5)
    assert model.inertia_ == pytest.approx(-model.score(rows), rel=0.3)
    assert model.cluster_sizes_.sum() == pytest.approx(6_000, rel=0.1)
    assert len(set(model.predict(centres).tolist())) == 3
    assert model.transform(centres).min(axis=1) == pytest.approx(0, abs=1)


def test_greedy_centres_are_the_nearest() -> None:
    """By brute force on few points: no pair of points would be much nearer."""
    rng = np.random.default_rng(8)
    points, weights = rng.normal(size=(12, 2)), rng.uniform(1, 5, 12)
    _, mean = weighted_centres(points, weights, 2)
    best = min(
        float(weights @ nearest(points, points[list(pair)])[1]) / weights.sum()
        for pair in itertools.combinations(range(12), 2)
    )
    assert mean <= 1.1 * best


@pytest.mark.parametrize("model", ALL, ids=IDS)
@pytest.mark.parametrize("neighbours", BOTH)
def test_hostile_rows_raise_nothing(model: Any, neighbours: Neighbours) -> None:
    """No rows, one row, rows of rubbish, labels that nobody declared; little budget and much."""
    rubbish = np.array([[None, "x"], [math.inf, math.nan], [[], {}]], dtype=object)
    tables = [
        (np.zeros((0, 2)), []),
        (np.zeros((1, 2)), [1]),
        (rubbish, [0, None, math.nan]),
        (np.full((50, 2), math.nan), ["c"] * 50),
        (np.full((50, 2), -math.inf), [1] * 50),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for (table, labels), epsilon in itertools.product(tables, ("1e-4", 1, 500)):
            fitted = _copy(model, neighbours=neighbours, epsilon=epsilon).fit(table, labels)
            told = fitted.transform(rubbish) if "PCA" in repr(model) else fitted.predict(rubbish)
            assert np.isfinite(np.asarray(told, dtype=float)).all()
            assert fitted.loss_.charge.epsilon == Fraction(epsilon)


@pytest.mark.parametrize("model", [m for m in ALL if "Logistic" not in repr(m)], ids=str)
def test_pure_guarantees_spend_no_delta(model: Any) -> None:
    """Without a delta the charge is pure."""
    table, labels = _moons(300)
    made = _copy(model, delta=0).fit(table, labels)
    assert made.loss_.charge.delta == 0
    assert made.loss_.charge.epsilon == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"delta": -1}, "delta"),
        ({"bounds": None}, "bounds of column 'x0'"),
        ({"bounds": (1, 0)}, "bounds of column 'x0'"),
        ({"bounds": (0, math.inf)}, "bounds of column 'x0'"),
        ({"bounds": "wide"}, "bounds must be a pair"),
        ({"neighbours": "some"}, "neighbours"),
        ({"classes": [0]}, "classes"),
        ({"target_bounds": (1, 0)}, "target_bounds"),
        ({"categories": {"z": [1]}}, "no column 'z'"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_components": 3}, "n_components"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_depth": 17}, "max_depth"),
        ({"max_features": 0}, "max_features"),
        ({"method": "guessed"}, "method"),
        ({"radius": 2}, "radius"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, Any], named: str) -> None:
    """Of every model that has it, before any row is read."""
    models = [model for model in ALL if set(change) <= set(model.get_params())]
    assert models
    for model in models:
        made = _copy(model, **change)
        with pytest.raises(DitherError, match=named):
            made.fit(np.zeros((4, 2)), [7, 7, 7, 7])
        assert not made.__sklearn_is_fitted__()


@pytest.mark.parametrize("model", ALL, ids=IDS)
def test_tables_that_do_not_fit(model: Any) -> None:
    """Other columns than were fitted, other lengths, no fit at all."""
    made = _copy(model)
    use = made.transform if isinstance(made, learn.PCA) else made.predict
    with pytest.raises(ArgumentError, match="not fitted"):
        use(np.zeros((1, 2)))
    if not isinstance(made, learn.PCA | learn.KMeans):
        with pytest.raises(ArgumentError, match="one value for each row"):
            made.fit(np.zeros((4, 2)), [0, 1])
    made.fit(pl.DataFrame({"a": [0.1, 0.9], "b": [0.5, 0.5]}), [0, 1])
    with pytest.raises(ArgumentError, match="2 columns; it has 3"):
        use(np.zeros((1, 3)))
    with pytest.raises(ArgumentError, match=r"lacks \['b'\]"):
        use(pl.DataFrame({"a": [0.1], "c": [0.5]}))


@pytest.mark.parametrize("model", ALL, ids=IDS)
def test_they_are_estimators_of_scikit_learn(model: Any) -> None:
    """Cloned, in a pipeline, cross-validated where that has a score, and pickled."""
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.base import clone, is_classifier, is_clusterer, is_regressor
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    assert clone(model).get_params() == model.get_params()
    assert is_classifier(model) == (model in CLASSIFIERS)
    assert is_regressor(model) == (model in REGRESSORS)
    assert is_clusterer(model) == isinstance(model, learn.KMeans)
    table, labels = _moons(600)
    piped = make_pipeline(FunctionTransformer(), clone(model))
    if isinstance(model, learn.PCA):
        piped.fit(table, labels)
        assert piped.transform(table).shape == (600, 2)
    else:
        assert np.isfinite(cross_val_score(piped, table, labels, cv=2)).all()
    made = clone(model).fit(table, labels)
    again = pickle.loads(pickle.dumps(made))
    use = "transform" if isinstance(made, learn.PCA) else "predict"
    assert np.array_equal(getattr(again, use)(table), getattr(made, use)(table))
    with pytest.raises(ArgumentError, match="no parameter 'bin'"):
        model.set_params(bin=4)


def test_components_feed_a_classifier() -> None:
    """A transformer in a pipeline; both parts cost."""
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.pipeline import make_pipeline

    table, labels = _moons(3_000)
    both = make_pipeline(learn.PCA(2, **GOOD), learn.GaussianNB(**{**TWO, "bounds": (-2, 2)})).fit(
        table, labels
    )
    total = both[0].loss_ + both[1].loss_
    assert total.charge.epsilon == 2


AUDITED = (learn.LogisticRegression, AxesRun, ClassSums, Clusters, Trees)


def _subjects() -> list[Any]:
    return [subject for made in AUDITED for subject in made.audit_subjects()]


def test_all_are_audited() -> None:
    """By ``dither audit --all``, which reads these."""
    assert set(AUDITED) <= {*learn.AUDITED, learn.LogisticRegression}


@pytest.mark.parametrize("subject", _subjects(), ids=lambda s: s.name)
def test_each_stands_the_audit_and_a_planted_bug_does_not(subject: Any) -> None:
    """The claim holds for the noise as drawn; with half the sensitivity it does not."""
    claim = {"epsilon": subject.epsilon, "delta": subject.delta, "samples": 20_000}
    ends = subject.d0, subject.d1
    assert audit(subject.mechanism, *ends, **claim).verdict is not Outcome.VIOLATED

    def doubled(rows: Any, size: int) -> Any:
        # As neighbours that are twice as far from each other as was proved.
        if isinstance(rows, int):
            return subject.mechanism(rows + (rows - subject.d0), size)
        more = np.concatenate([rows, rows[len(subject.d0) :]])
        return subject.mechanism(more, size)

    assert audit(doubled, *ends, **claim).verdict is Outcome.VIOLATED


def test_a_radius_from_the_data_is_seen() -> None:
    """Were rows shortened to their own longest, and not to a public one, they would tell all."""
    asked = PrivacyParameters(Fraction(1), Fraction(1, 100), Neighbours.ADD_REMOVE)
    run = AxesRun(Box((NUMBER,)), asked)

    def learned(rows: int, size: int) -> Any:
        points = np.concatenate([np.full((30, 1), 0.05), np.ones((rows, 1))])
        radius = float(np.abs(points).max())
        exact = run.products.statistic(cut(points, radius, run.products.steps))
        return run.noisy.leave(np.broadcast_to(exact, (size, len(exact))))[:, 0] * -1.0

    claim = {"epsilon": 1, "delta": Fraction(1, 100), "samples": 20_000}
    assert audit(learned, 0, 1, **claim).verdict is Outcome.VIOLATED
