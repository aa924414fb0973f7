"""What scikit-learn's callers expect: with that library, and without it."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import learn
from dither.errors import ArgumentError, DitherError, NotFittedError

X = np.linspace(0, 1, 240).reshape(120, 2)[np.argsort(np.arange(120) * 7 % 120)]
Y = (X[:, 0] > 0.5).astype(int)
COST: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
TWO: dict[str, Any] = COST | {"bounds": (0, 1), "classes": [0, 1]}
NUMBER: dict[str, Any] = COST | {"bounds": (0, 1), "target_bounds": (0, 1)}

ALL: list[Any] = [
    lambda: learn.AdditiveClassifier(**TWO, rounds=2),
    lambda: learn.AdditiveRegressor(**NUMBER, rounds=2),
    lambda: learn.GaussianNB(**TWO),
    lambda: learn.KMeans(3, **COST, bounds=(0, 1)),
    lambda: learn.LinearRegression(**NUMBER),
    lambda: learn.LogisticRegression(**TWO),
    lambda: learn.PCA(2, **COST, bounds=(0, 1)),
    lambda: learn.RandomForestClassifier(**TWO, n_estimators=2),
    lambda: learn.RandomForestRegressor(**NUMBER, n_estimators=2),
    lambda: learn.Votes(_Mean, epsilon=2, delta=1e-6, classes=[0, 1], teachers=5, answers=2),
]


class _Mean:
    """A teacher."""

    def fit(self, X: Any, y: Any) -> None:
        """Keep a cut."""
        self.cut = X.mean()

    def predict(self, X: Any) -> Any:
        """Above it or not."""
        return (X[:, 0] > self.cut).astype(int)


def test_every_estimator_is_here() -> None:
    """What the package lists, and has a ``fit``."""
    own = set(learn.__all__) - set(learn._LATER)  # Those need torch, and are no estimators.
    listed = {name for name in own if hasattr(getattr(learn, name), "fit")}
    assert listed == {type(make()).__name__ for make in ALL}


@pytest.mark.parametrize("make", ALL, ids=lambda make: type(make()).__name__)
def test_a_model_without_a_fit_says_so(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an error that is scikit-learn's own, too, where that is installed; else by the house's."""
    model = make()
    use = "transform" if isinstance(model, learn.PCA) else "predict"
    with pytest.raises(NotFittedError, match=f"this {type(model).__name__} is not fitted") as got:
        getattr(model, use)(X)
    assert isinstance(got.value, DitherError)
    assert not hasattr(model, "coef_")
    theirs = pytest.importorskip("sklearn.exceptions", reason="scikit-learn is not installed")
    assert isinstance(got.value, theirs.NotFittedError)
    again = pickle.loads(pickle.dumps(got.value))
    assert type(again) is type(got.value)
    assert str(again) == str(got.value)
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
    monkeypatch.delattr("dither.learn._conventions.SharedNotFittedError")
    with pytest.raises(NotFittedError) as alone:
        getattr(model, use)(X)
    assert type(alone.value) is NotFittedError


def test_scikit_learn_sees_whether_there_was_a_fit() -> None:
    """``check_is_fitted`` of that library agrees."""
    checks = pytest.importorskip("sklearn.utils.validation", reason="scikit-learn is not installed")
    model = learn.GaussianNB(**TWO)
    with pytest.raises(checks.NotFittedError):
        checks.check_is_fitted(model)
    checks.check_is_fitted(model.fit(X, Y))
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.shape == (2,)


@pytest.mark.parametrize("make", ALL, ids=lambda make: type(make()).__name__)
def test_weights_of_rows_are_refused_before_any_is_read(make: Any) -> None:
    """With the reason, and without a fit."""

    class Unread:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("the rows were looked at")

    model = make()
    with pytest.raises(ArgumentError, match=r"sample_weight is not taken: .* of weight 3"):
        model.fit(Unread(), Unread(), sample_weight=np.ones(120))
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    "make", [m for m in ALL if hasattr(m(), "score")], ids=lambda make: type(make()).__name__
)
def test_scores_take_weights(make: Any) -> None:
    """A row of weight 2 counts like two rows, one of weight 0 like none."""
    model = make().fit(X, Y)
    weights = np.arange(120) % 3
    rows = np.repeat(np.arange(120), weights)
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(model.score(X[rows], Y[rows]))
    assert model.score(X, Y, sample_weight=np.ones(120)) == pytest.approx(model.score(X, Y))
    for wrong in (-np.ones(120), np.zeros(120), np.ones(3), [np.nan] * 120, ["a"] * 120):
        with pytest.raises(ArgumentError, match="sample_weight must be one finite number"):
            model.score(X, Y, sample_weight=wrong)


@pytest.mark.parametrize("make", [ALL[3], ALL[6]], ids=["KMeans", "PCA"])
def test_containers_of_new_columns(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays, or frames with names and, of pandas, the index that the rows had."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    model = make()
    name = type(model).__name__.lower()
    with pytest.raises(ArgumentError, match="transform"):
        model.set_output(transform="numpy")
    with pytest.raises(NotFittedError):
        model.get_feature_names_out()
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(120) + 7)
    plain = model.fit(frame).transform(frame)
    assert isinstance(plain, np.ndarray)
    found = model.set_output(transform="pandas").transform(frame)
    assert list(found.index[:2]) == [7, 8]
    assert list(found.columns) == list(model.get_feature_names_out())
    assert found.columns[0] == f"{name}0"
    assert np.array_equal(found.to_numpy(), plain)
    assert list(model.transform(X).index[:2]) == [0, 1]
    assert model.set_output() is model
    assert isinstance(model.transform(X), pd.DataFrame)
    other = model.set_output(transform="polars").transform(frame)
    assert isinstance(other, pl.DataFrame)
    assert np.array_equal(other.to_numpy(), plain)
    assert isinstance(model.fit_transform(X), pl.DataFrame)
    assert isinstance(model.set_output(transform="default").transform(X), np.ndarray)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ArgumentError, match="needs pandas, which is not installed"):
        model.set_output(transform="pandas").transform(X)


def test_containers_as_scikit_learn_asks() -> None:
    """Through pipelines, clones and its settings for all."""
    sklearn = pytest.importorskip("sklearn", minversion="1.6")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    from sklearn.base import clone
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    piped = make_pipeline(learn.PCA(2, **COST, bounds=(0, 1)), learn.GaussianNB(**TWO))
    piped.set_output(transform="pandas").fit(X, Y)
    assert list(piped[:-1].transform(X).columns) == ["pca0", "pca1"]
    assert clone(piped)[0].fit(X).transform(X).columns[0] == "pca0"
    with sklearn.config_context(transform_output="polars"):
        found = learn.KMeans(2, **COST, bounds=(0, 1)).fit_transform(X)
    assert isinstance(found, pl.DataFrame)
    both = make_column_transformer((learn.KMeans(2, **COST, bounds=(0, 1)), ["a", "b"]))
    table = pd.DataFrame(X, columns=["a", "b"])
    both.set_output(transform="pandas").fit(table)
    assert list(both.transform(table).columns) == ["kmeans__kmeans0", "kmeans__kmeans1"]


def _searched(jobs: int | None, **grid: Any) -> Any:
    from sklearn.model_selection import GridSearchCV

    model = learn.LogisticRegression(**TWO)
    return GridSearchCV(model, grid or {"radius": [None, 0.2, 0.3, 0.4, 0.5, 0.6]}, n_jobs=jobs)


def _seen_in(warned: Any) -> None:
    (only,) = [str(one.message) for one in warned]
    assert "GridSearchCV fitted 31 copies of this LogisticRegression" in only
    assert "which cost ε = 31, δ = 0.000031 together" in only
    assert "loss_, ε = 1, δ = 1e-6, is of the last fit alone" in only
    assert "exact scores, which no epsilon bounds" in only
    assert "dither.learn.search" in only


def test_a_search_with_exact_scores_is_told_what_was_lost() -> None:
    """Thirty-one fits cost 31, and the winner's own loss says 1: the warning has both."""
    pytest.importorskip("sklearn", minversion="1.6")
    with pytest.warns(UserWarning, match="GridSearchCV") as warned:
        best = _searched(None).fit(X, Y).best_estimator_
    _seen_in(warned)
    assert best.loss_.charge.epsilon == 1
    assert best.loss_with_copies_.charge.epsilon == 31
    assert "ε = 31, δ = 0.000031 together" in best._repr_html_()


@pytest.mark.slow
def test_a_search_in_other_processes_is_told_so_too() -> None:
    """Fits that this process did not see are counted by what the search says."""
    pytest.importorskip("sklearn", minversion="1.6")
    with pytest.warns(UserWarning, match="GridSearchCV") as warned:
        best = _searched(2).fit(X, Y).best_estimator_
    _seen_in(warned)
    assert best.loss_with_copies_.charge.epsilon == 31


def test_helpers_that_fit_copies_warn_once() -> None:
    """Of several models that are kept; not of one, nor of folds, of which none is."""
    pytest.importorskip("sklearn", minversion="1.6")
    from sklearn.base import clone
    from sklearn.ensemble import BaggingClassifier
    from sklearn.model_selection import cross_val_score
    from sklearn.multiclass import OneVsRestClassifier

    model = learn.GaussianNB(**TWO)
    cross_val_score(model, X, Y, cv=2)
    # Errors of this suite are warnings: nothing was said.
    assert clone(model).fit(X, Y).loss_with_copies_.charge.epsilon == 3
    assert _searched(None, radius=[None, 0.5]).set_params(refit=False, cv=2).fit(X, Y)
    with pytest.warns(UserWarning, match="OneVsRest") as warned:
        OneVsRestClassifier(learn.GaussianNB(**TWO)).fit(X, np.arange(120) % 4)
    (only,) = [str(one.message) for one in warned]
    assert "OneVsRestClassifier fitted 2 copies" in only
    # A row that is drawn three times would move three times as much as is charged.
    with pytest.raises(ArgumentError, match="bagging draws three times"):
        BaggingClassifier(learn.GaussianNB(**TWO), n_estimators=2).fit(X, Y)


def test_fits_that_promise_different_things_have_no_sum() -> None:
    """A row that may be removed and one that may be replaced are two promises."""
    pytest.importorskip("sklearn", minversion="1.6")
    grid = {"neighbours": ["add-remove", "replace"]}
    with pytest.warns(UserWarning, match="5 copies of this LogisticRegression: best"):
        best = _searched(None, **grid).set_params(cv=2).fit(X, Y).best_estimator_
    assert best.loss_with_copies_ is None
    assert "together" not in best._repr_html_()


@pytest.mark.parametrize("make", ALL, ids=lambda make: type(make()).__name__)
def test_notebooks_show_parameters_and_cost(make: Any) -> None:
    """Before and after the fit; what people declared cannot be read as a page."""
    model = make()
    page = model._repr_html_()
    assert f"<b>{type(model).__name__}</b> (not fitted)" in page
    for name in model.get_params():
        assert f">{name}</td>" in page
    model.fit(X, Y)
    page = model._repr_html_()
    assert "(fitted: ε = " in page
    assert "protects one row, added or removed" in page
    assert "together" not in page
    if hasattr(model, "classes"):
        assert "<script>" not in type(model)(**model.get_params() | {
            "classes": ["<script>alert(1)</script>", "b"]
        })._repr_html_()  # fmt: skip
