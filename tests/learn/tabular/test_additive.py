"""Additive models: what one row can move, what that costs, and what comes out of it."""

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

from dither import learn, privacy
from dither.errors import ArgumentError, DitherError
from dither.lab.audit import Outcome, audit
from dither.learn._columns import FINE, FeatureColumn
from dither.learn.tabular._boosting import (
    UNIT,
    Boosting,
    residuals_of_classes,
    residuals_of_numbers,
)
from dither.privacy import Neighbours

BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
COLUMNS = (FeatureColumn("a", categories=("x", "y")), FeatureColumn("b", bounds=(0.0, 1.0)))


def _boosting(neighbours: Neighbours, outputs: int = 1, rounds: int = 2) -> Boosting:
    curvature = 0.25 if outputs == 1 else 0.5
    return Boosting(
        COLUMNS, Fraction(1), Fraction(1, 10**6), neighbours, outputs, curvature, 4, rounds
    )


class Recorded:
    """Takes the place of noise: keeps the seed that all runs share, so that statistics compare."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self.variance = 1e6

    def draw(self, size: Any) -> Any:
        return self._generator.integers(-1000, 1001, size)


def _statistics(run: Boosting, rows: list[tuple[int, int, Any]], residuals: Any, seed: int) -> Any:
    """What leaves, in units, of a run whose noise is that of the seed."""
    object.__setattr__(run, "noise", Recorded(seed))
    found: list[Any] = []
    counted, summed = type(run).counted, type(run).summed

    class WatchedObjects(Boosting):
        def counted(self, *given: Any) -> Any:
            made = counted(self, *given)
            found.append(np.rint(made * self.weight))
            return made

        def summed(self, *given: Any) -> Any:
            made = summed(self, *given)
            found.append(np.rint(made * UNIT).ravel())
            return made

    object.__setattr__(run, "__class__", WatchedObjects)
    places = [np.array([row[i] for row in rows], np.int64) for i in range(2)]
    run.run(places, np.ones(len(rows), np.int64), residuals([row[2] for row in rows]))
    return found


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_no_row_moves_more_than_proved(neighbours: Neighbours, kind: str) -> None:
    """Statistic by statistic, at the same scores, over all pairs of rows and hostile margins."""
    outputs = 3 if kind == "three classes" else 1
    run = _boosting(neighbours, outputs)
    margins = [-40.0, -1.0, 0.0, 0.3, 40.0]
    given = np.array(list(itertools.product(margins, repeat=outputs)))
    found = []
    for label in (0, 1, 2) if outputs == 3 else (0, 1):
        if kind == "numbers":
            made = residuals_of_numbers(np.full(len(given), 2.0 * label - 1))
        else:
            made = residuals_of_classes(np.full(len(given), label), max(outputs, 2))
        found.append(made(given))
    rows = np.concatenate(found).astype(int)
    longest = int((rows**2).sum(axis=1).max())
    pairs = rows[:, None, :] - rows[None, :, :]
    apart = int((pairs**2).sum(axis=2).max())
    d, replaced = len(COLUMNS), neighbours is Neighbours.REPLACE
    # A row that is replaced keeps its cell, or leaves one and enters another.
    moved = max(apart, 2 * longest) if replaced else longest
    counts = (2 if replaced else 1) * run.weight**2
    needed = d * (counts + run.rounds * moved)
    assert needed <= run.l2_squared
    assert needed >= 0.95 * run.l2_squared


@pytest.mark.parametrize("neighbours", BOTH)
def test_a_whole_run_moves_no_more_than_proved(neighbours: Neighbours) -> None:
    """With the same released numbers up to some step, neighbours differ there by what it may."""
    rng = np.random.default_rng(0)
    for trial in range(20):
        rows = [
            (int(rng.integers(3)), int(rng.integers(FINE + 1)), int(rng.integers(2)))
            for _ in range(6)
        ]
        extra = (int(rng.integers(3)), int(rng.integers(FINE + 1)), int(rng.integers(2)))
        other = [*rows[:-1], extra] if neighbours is Neighbours.REPLACE else [*rows, extra]

        def residuals(labels: list[int]) -> Any:
            return residuals_of_classes(np.array(labels), 2)

        first = _statistics(_boosting(neighbours), rows, residuals, trial)
        # The first sums see no score yet; later ones see scores that the rows' own sums moved.
        second = _statistics(_boosting(neighbours), other, residuals, trial)
        run = _boosting(neighbours)
        moved = sum(((a - b) ** 2).sum() for a, b in zip(first[:3], second[:3], strict=True))
        replaced = neighbours is Neighbours.REPLACE
        counts = (2 if replaced else 1) * 2 * run.weight**2
        assert moved <= counts + (4 if replaced else 1) * UNIT**2


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (1, 1e-6), (8, 1e-20)])
def test_the_charge_is_that_of_the_noise(
    neighbours: Neighbours, epsilon: float, delta: float
) -> None:
    """A Gaussian mechanism of that length: neither more than was asked for, nor much less."""
    run = Boosting(
        COLUMNS, Fraction(str(epsilon)), Fraction(str(delta)), neighbours, 1, 0.25, 32, 10
    )
    charge = run.loss.charge
    assert charge.epsilon == Fraction(str(epsilon))
    assert 0.99 * delta <= charge.delta <= Fraction(str(delta))
    sigma = math.sqrt(run.noise.sigma2 / run.l2_squared)
    assert privacy.gaussian(sigma).delta(epsilon).lower <= delta


def test_rows_are_read_where_they_lie() -> None:
    """Each value has its cell, whatever stands beside it; hostile ones have one, too."""
    number = FeatureColumn("x", bounds=(-1.0, 1.0))
    hostile = [-1.0, 1.0, 0.0, -9e99, math.inf, -math.inf, math.nan, None, "one", 10**400]
    expected = [0, FINE - 1, FINE // 2, 0, FINE - 1, 0, FINE, FINE, FINE, FINE - 1]
    assert number.places(np.array(hostile, dtype=object)).tolist() == expected
    wide = FeatureColumn("x", bounds=(-1.7e308, 1.7e308))
    assert wide.places(np.array([-1.7e308, 0.0, 1.7e308])).tolist() == [0, FINE // 2, FINE - 1]
    listed = FeatureColumn("x", categories=("a", 1, True))
    assert listed.places(np.array(["a", 1, 2, None, [1]], dtype=object)).tolist()[:1] == [0]
    unhashable = np.empty(2, object)
    unhashable[:] = [["a"], {"b": 1}]
    assert listed.places(unhashable).tolist() == [2, 2]


def _hills(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = rng.random((n, 3))
    score = 6 * np.abs(table[:, 0] - 0.5) + 2 * (table[:, 1] > 0.3) - 2.5
    return table, (rng.random(n) < 1 / (1 + np.exp(-3 * score))).astype(int)


def test_a_shape_that_no_line_has_is_found() -> None:
    """Scores follow a valley and a step, and the column that says nothing says little."""
    table, labels = _hills(20_000)
    model = learn.AdditiveClassifier(epsilon=2, delta=1e-6, bounds=(0, 1), classes=[0, 1])
    model.fit(table, labels)
    held, truth = _hills(4_000, seed=1)
    assert model.score(held, truth) > 0.83
    valley, step, nothing = model.terms_
    middle = [valley.scores[valley.joined[cell], 0] for cell in (0, FINE // 2, FINE - 1)]
    assert middle[0] > middle[1] < middle[2]
    assert nothing.importance < min(valley.importance, step.importance) / 3
    assert np.allclose(model.predict_proba(held).sum(axis=1), 1)
    parts = model.explain(held[:3])
    again = model.intercept_ + np.array([sum(part.values()) for part in parts])
    assert np.allclose(again[:, 0], model.decision_function(held[:3]))
    text = model.summary()
    assert "ε = 2, δ = 1e-6" in text
    assert "one row, added or removed" in text


def test_several_classes_and_words() -> None:
    """Three labels of text, and a column of categories beside a number."""
    rng = np.random.default_rng(3)
    kind = rng.choice(["low", "mid", "high"], 9_000)
    size = np.select([kind == "low", kind == "mid"], [1.0, 2.0], 3.0) + rng.normal(0, 0.2, 9_000)
    colour = np.where(kind == "mid", "red", rng.choice(["red", "blue"], 9_000))
    frame = pl.DataFrame({"size": size, "colour": colour})
    model = learn.AdditiveClassifier(
        epsilon=1,
        delta=1e-6,
        bounds=([0, np.nan], [4, np.nan]),
        categories={"colour": ["red", "blue"]},
        classes=["low", "mid", "high"],
    ).fit(frame, kind)
    assert model.score(frame, kind) > 0.95
    assert model.predict(frame[:5]).tolist() == kind[:5].tolist()
    assert model.predict(frame[["colour", "size"]][:5]).tolist() == kind[:5].tolist()


def test_regression_follows_a_curve() -> None:
    """Targets beyond their bounds are moved to the ends, and missing ones do not count."""
    rng = np.random.default_rng(4)
    x = rng.random((8_000, 2))
    y = 100 * np.sin(3 * x[:, 0])
    y[:50], y[50:60], y[60:70] = np.nan, np.inf, -1e9
    model = learn.AdditiveRegressor(epsilon=1, delta=1e-6, bounds=(0, 1), target_bounds=(0, 100))
    model.fit(x, y)
    assert model.score(x[100:], y[100:]) > 0.9
    assert "AdditiveRegressor" in model.summary()


def test_hostile_rows_raise_nothing() -> None:
    """No rows, one row, rows of rubbish, labels that nobody declared."""
    model = learn.AdditiveClassifier(epsilon=1, delta=1e-6, bounds=(0, 1), classes=["a", "b"])
    rubbish = np.array([[None, "x"], [math.inf, math.nan], [[], {}]], dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table, labels in [
            (np.zeros((0, 2)), []),
            (np.zeros((1, 2)), ["a"]),
            (rubbish, ["b", None, math.nan]),
            (np.full((50, 2), math.nan), ["c"] * 50),
        ]:
            model.fit(table, labels)
            assert np.isfinite(model.predict_proba(rubbish)).all()
            assert set(model.predict(rubbish)) <= {"a", "b"}
            model.summary()


GOOD: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": (0, 1), "classes": [0, 1]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"bounds": None}, "bounds of column 'x0'"),
        ({"bounds": (1, 0)}, "bounds of column 'x0'"),
        ({"bounds": (0, math.inf)}, "bounds of column 'x0'"),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, "bounds must be a pair"),
        ({"bounds": "wide"}, "bounds must be a pair"),
        ({"bounds": (0, 5e-324)}, "bounds of column 'x0'"),
        ({"classes": [0]}, "classes"),
        ({"classes": [0, 0]}, "classes"),
        ({"classes": "ab"}, "classes"),
        ({"categories": {"z": [1]}}, "no column 'z'"),
        ({"categories": {0: []}}, "categories of column 'x0'"),
        ({"categories": ["a"]}, "categories must be a mapping"),
        ({"bins": 1}, "bins"),
        ({"rounds": 0}, "rounds"),
        ({"neighbours": "some"}, "neighbours"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, Any], named: str) -> None:
    """Before any row is read: the labels here could not be."""
    model = learn.AdditiveClassifier(**GOOD | change)
    with pytest.raises(DitherError, match=named):
        model.fit(np.zeros((4, 2)), [7, 7, 7, 7])
    assert not model.__sklearn_is_fitted__()


def test_tables_that_do_not_fit() -> None:
    """Other columns than were fitted, other lengths, no table at all, no fit at all."""
    model = learn.AdditiveClassifier(**GOOD)
    with pytest.raises(ArgumentError, match="not fitted"):
        model.predict(np.zeros((1, 2)))
    with pytest.raises(ArgumentError, match="one value for each row"):
        model.fit(np.zeros((4, 2)), [0, 1])
    for wrong in (object(), np.zeros((4, 1)), "0101", 7):
        with pytest.raises(ArgumentError, match="y must be one value"):
            model.fit(np.zeros((4, 2)), wrong)
    with pytest.raises(ArgumentError, match="X must be a table"):
        model.fit([1, 2, 3], [0, 1, 0])
    model.fit(pl.DataFrame({"a": [0.1, 0.9], "b": [0.5, 0.5]}), [0, 1])
    with pytest.raises(ArgumentError, match="2 columns; it has 3"):
        model.predict(np.zeros((1, 3)))
    with pytest.raises(ArgumentError, match=r"lacks \['b'\]"):
        model.predict(pl.DataFrame({"a": [0.1], "c": [0.5]}))


def test_it_is_an_estimator_of_scikit_learn() -> None:
    """Cloned, in a pipeline, cross-validated and pickled."""
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = learn.AdditiveClassifier(**GOOD | {"epsilon": 8, "rounds": 3})
    assert is_classifier(model)
    assert is_regressor(learn.AdditiveRegressor(epsilon=1, delta=1e-6, target_bounds=(0, 1)))
    assert clone(model).get_params() == model.get_params()
    table, labels = _hills(2_000)
    piped = make_pipeline(FunctionTransformer(), model)
    assert cross_val_score(piped, table, labels, cv=2).mean() > 0.6
    model.fit(table, labels)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(table), model.predict(table))
    assert repr(model).startswith("AdditiveClassifier(epsilon=8, delta=1e-06, bounds=(0, 1)")
    with pytest.raises(ArgumentError, match="no parameter 'bin'"):
        model.set_params(bin=4)


def test_losses_of_fits_add_up() -> None:
    """Two fits cost what their losses compose to."""
    table, labels = _hills(100)
    one = learn.AdditiveClassifier(**GOOD).fit(table, labels).loss_
    both = one + one
    assert both.charge.epsilon == 2
    assert 1.4 < float(both.epsilon(1e-6).upper) < 1.6


def test_it_stands_the_audit_and_a_planted_bug_does_not() -> None:
    """The claim holds for the noise as drawn; with residuals of twice the length it does not."""
    (subject,) = Boosting.audit_subjects()
    claim = {"epsilon": 1, "delta": subject.delta, "samples": 40_000}
    assert audit(subject.mechanism, 1, 2, **claim).verdict is not Outcome.VIOLATED

    def doubled(rows: int, size: int) -> Any:
        return subject.mechanism(2 * rows - 1, size)

    assert audit(doubled, 1, 2, **claim).verdict is Outcome.VIOLATED


@pytest.mark.parametrize(("rows", "least", "most"), [(1e9, 0.99, 1.0), (10.0, 0.0, 0.01)])
def test_noise_of_many_columns_does_not_add_up(rows: float, least: float, most: float) -> None:
    """A step along what noise alone would give: as it was where rows are many, else far less."""
    columns = tuple(FeatureColumn(f"x{j}", categories=("a",)) for j in range(50))
    run = Boosting(
        columns, Fraction(1, 10), Fraction(1, 10**6), Neighbours.ADD_REMOVE, 1, 0.25, 32, 10
    )
    held = np.array([0.0, rows])
    step = run._step(columns[0], held, np.full((2, 1), run.of_sum))
    assert least <= 3 * step[0, 0] <= most
