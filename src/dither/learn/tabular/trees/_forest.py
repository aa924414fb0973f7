"""Random forests in scikit-learn's manner: a classifier and a regressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import count_text
from dither.errors import ArgumentError
from dither.learn._columns import FeatureColumn, numbers, places_in, read_columns
from dither.learn._conventions import no_weights
from dither.learn._estimator import (
    Classifier,
    Estimator,
    Regressor,
    bars,
    distinct,
    labels_of,
    protected_row,
    summarised,
    within,
)
from dither.learn._noise import PrivacyParameters
from dither.learn._rows import declared
from dither.learn.tabular.trees._tree import ReleasedForest
from dither.learn.tabular.trees._trees import UNIT, Trees
from dither.privacy import Loss, Neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Forest", "RandomForestClassifier", "RandomForestRegressor", "forest_run"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def forest_run(
    columns: tuple[FeatureColumn, ...],
    classes: int,
    asked: PrivacyParameters,
    n_estimators: Any,
    max_depth: Any,
    max_features: Any,
    splits: Any,
    of_unit: int = 1,
) -> Trees:
    """A run of these columns, from parameters as people give them; 0 classes for a number."""
    return Trees(
        columns,
        classes,
        check.whole("n_estimators", n_estimators, 1, most=1000),
        check.whole("max_depth", max_depth, 1, most=16),
        check.whole("max_features", max_features, 1, most=1000),
        asked,
        check.choice("splits", splits, ("auto", "drawn")) == "drawn",
        of_unit,
    )


class Forest(Estimator):
    """What both have in common; see `RandomForestClassifier`."""

    epsilon: Number
    delta: Number
    bounds: Any
    categories: Mapping[Any, Sequence[Any]] | None
    neighbours: Neighbours | str
    n_estimators: int
    max_depth: int
    max_features: int
    splits: str

    grown_: ReleasedForest
    _protects: str

    def _trees(self, table: Any, classes: int) -> Trees:
        return forest_run(
            declared(table, self.bounds, self.categories),
            classes,
            PrivacyParameters.of(self.epsilon, self.delta, self.neighbours),
            self.n_estimators,
            self.max_depth,
            self.max_features,
            self.splits,
        )

    def _run(
        self, run: Trees, table: Any, targets: Integers, seen: Callable[[int], None] | None
    ) -> Self:
        places = read_columns(run.columns, table)
        if len(places[0]) != len(targets):
            raise ArgumentError("y must have one value for each row of X")
        grown = run.run(places, targets, seen)
        return self._hold(grown, run.loss, protected_row(run.asked.neighbours))

    def _hold(self, grown: ReleasedForest, loss: Loss, protects: str) -> Self:
        """What training found, and whom its loss protects."""
        self.grown_, self._protects = grown, protects
        return self._fitted_on(grown.columns, loss)

    def _mean(self, table: Any) -> Floats:
        self._check_fitted()
        return self.grown_.mean(read_columns(self.grown_.columns, table))

    @property
    def feature_importances_(self) -> Floats:
        """How many of the rows' ways through the trees each column splits, by noisy counts."""
        self._check_fitted()
        found = np.zeros(len(self.grown_.columns))
        for tree, rows in zip(self.grown_.trees, self.grown_.rows, strict=True):
            for column, held in zip(tree.column, rows.tolist(), strict=True):
                found[column] += held if column >= 0 else 0.0
        return found / max(float(found.sum()), 1e-300)

    def summary(self) -> str:
        """The forest in words: what it cost, whom it protects, and which columns it asks about.

        Returns
        -------
        str
        """
        shares = self.feature_importances_
        names = [column.name for column in self.grown_.columns]
        rows = max(float(np.median([held[0] for held in self.grown_.rows])), 0.0)
        trees, columns = len(self.grown_.trees), count_text(len(names), "column")
        of = f"{type(self).__name__}: {count_text(trees, 'tree')} of {columns}"
        found = [
            "share of each column in what the trees ask:",
            *bars(dict(zip(names, shares.tolist(), strict=True))),
        ]
        return summarised(of, rows, self.loss_, self._protects, found)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The share of each column in what the trees ask.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots.learn._learn import draw_shares

        self._check_fitted()
        return draw_shares(self, path)


class RandomForestClassifier(Forest, Classifier):
    """A forest: the mean of trees whose splits are chosen with noise, as leaves are counted.

    Parameters
    ----------
    epsilon, delta : number
        What training costs, all trees together; without a delta the guarantee is pure, with much
        more noise.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column of numbers; others are moved there.
        Declare them from what is known of the subject, never from the data.
    classes : sequence
        The labels that are possible, two at least. A row with another does not count.
    categories : mapping, optional
        Of columns of categories, by name or position: the values that are possible. Others count as
        missing, as what is not a number does in columns of numbers: both have a place of their own.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    n_estimators : int
        How many trees at most. Each row goes through all, so that more trees have more noise: there
        are as many as a noisy number of rows is enough for, down to one tree of one question. With
        one, it is a decision tree.
    max_depth : int
        How many questions a tree asks of a row at most, 1 to 16.
    max_features : int
        How many columns are tried for a split, at least: a third of them where that is more, and
        all where there is but one split.
    splits : {"auto", "drawn"}
        "auto" chooses splits by the exponential mechanism. "drawn" draws them by chance, and spends
        all on the leaves of ``n_estimators`` trees at full depth.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    classes_ : array
    feature_importances_ : array, shape (d,)
        The share of each column in what the trees ask.

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named; all of
    the trees may be published. *Proof*, method and source: `dither.learn.tabular.trees._trees`
    and `dither.learn.tabular.trees._plans`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> age = np.repeat(np.arange(20, 80), 50)
    >>> X, y = age[:, None], (abs(age - 50) > 15).astype(int)
    >>> model = learn.RandomForestClassifier(
    ...     epsilon=2, delta=1e-6, bounds=(0, 100), classes=[0, 1], n_estimators=5)
    >>> model.fit(X, y).predict([[25], [50], [75]]).tolist()
    [1, 0, 1]
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        classes: Sequence[Any],
        categories: Mapping[Any, Sequence[Any]] | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        n_estimators: int = 16,
        max_depth: int = 5,
        max_features: int = 4,
        splits: str = "auto",
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.categories, self.neighbours = categories, neighbours
        self.n_estimators, self.max_depth = n_estimators, max_depth
        self.max_features, self.splits = max_features, splits

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Train, once, at the cost of epsilon and delta.

        Parameters
        ----------
        X : array or data frame, shape (n, d)
        y : array, shape (n,)
        sample_weight : None
            Not taken: a row counts once.
        progress : callable, optional
            Told after each tree how far it is, of ``n_estimators``.

        Returns
        -------
        RandomForestClassifier
            This one.
        """
        no_weights(sample_weight)
        classes = distinct(self.classes)
        run = self._trees(X, len(classes))
        labels = places_in(classes, y)
        targets = (labels[:, None] == np.arange(len(classes))).astype(np.int64)
        self._run(run, X, targets, progress)
        self.classes_ = labels_of(classes)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The mean of the trees' shares of the classes, shape (n, classes)."""
        # Above 0, as nothing is certain.
        shares = np.clip(self._mean(X), 1e-4, 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


class RandomForestRegressor(Forest, Regressor):
    """A forest for a number: the mean of trees whose splits are chosen with noise, as leaves are.

    Parameters
    ----------
    epsilon, delta : number
    bounds : pair of (float or array of float)
        Of the columns of numbers; see `RandomForestClassifier`, as for the parameters below.
    target_bounds : (float, float)
        The least and the largest possible target; others are moved to these ends, and a row without
        a target does not count.
    categories : mapping, optional
    neighbours : Neighbours or str
    n_estimators, max_depth, max_features : int
    splits : {"auto", "drawn"}

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    feature_importances_ : array, shape (d,)

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row;
    `dither.learn.tabular.trees._trees`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> x = np.tile(np.arange(100), 50)
    >>> model = learn.RandomForestRegressor(
    ...     epsilon=2, delta=1e-6, bounds=(0, 100), target_bounds=(0, 10_000), n_estimators=5)
    >>> bool(abs(model.fit(x[:, None], x**2).predict([[50]])[0] - 2500) < 1000)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        target_bounds: tuple[float, float],
        categories: Mapping[Any, Sequence[Any]] | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        n_estimators: int = 16,
        max_depth: int = 5,
        max_features: int = 4,
        splits: str = "auto",
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.target_bounds, self.categories, self.neighbours = target_bounds, categories, neighbours
        self.n_estimators, self.max_depth = n_estimators, max_depth
        self.max_features, self.splits = max_features, splits

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Train, once; parameters as in `RandomForestClassifier.fit`."""
        no_weights(sample_weight)
        ends = self._ends()
        run = self._trees(X, 0)
        values = numbers(y)
        kept = ~np.isnan(values)
        scaled = np.rint(within(values, *ends) * UNIT).astype(np.int64)
        return self._run(run, X, np.column_stack([UNIT * kept, scaled * kept]), progress)

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, within its bounds, shape (n,)."""
        return self._predicted(self._mean(X)[:, 0])
