"""Additive models in scikit-learn's manner: a classifier and a regressor that people can read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import count_text
from dither.errors import ArgumentError
from dither.learn._columns import (
    FeatureColumn,
    numbers,
    places_in,
    read_columns,
)
from dither.learn._conventions import no_weights
from dither.learn._estimator import (
    Classifier,
    Estimator,
    Regressor,
    bars,
    distinct,
    labels_of,
    probabilities,
    protected_row,
    summarised,
    within,
)
from dither.learn._rows import declared
from dither.learn.tabular._boosting import (
    Boosting,
    ColumnTerm,
    FittedBoosting,
    Residuals,
    residuals_of_classes,
    residuals_of_numbers,
)
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "AdditiveClassifier",
    "AdditiveModel",
    "AdditiveRegressor",
    "distinct",
    "labels_of",
    "shape_of",
    "within",
]

Floats = npt.NDArray[np.float64]
Categories = Mapping[Hashable, Sequence[Any]]


class AdditiveModel(Estimator):
    """What both have in common; see `AdditiveClassifier`."""

    epsilon: Number
    delta: Number
    bounds: Any
    categories: Categories | None
    neighbours: Neighbours | str
    bins: int
    rounds: int

    _target = ""

    columns_: tuple[FeatureColumn, ...]
    fitted_: FittedBoosting

    def _boosting(self, table: Any, outputs: int, curvature: float) -> Boosting:
        return Boosting(
            declared(table, self.bounds, self.categories),
            check.positive("epsilon", self.epsilon),
            check.exact("delta", self.delta, above=0, below=1),
            as_table_neighbours(self.neighbours),
            outputs,
            curvature,
            check.whole("bins", self.bins, 2, most=1024),
            check.whole("rounds", self.rounds, 1, most=1000),
        )

    def _run(
        self,
        run: Boosting,
        table: Any,
        kept: npt.NDArray[np.bool_],
        residuals: Residuals,
        seen: Callable[[int], None] | None,
    ) -> Self:
        places = read_columns(run.columns, table)
        if len(places[0]) != len(kept):
            raise ArgumentError("y must have one value for each row of X")
        fitted = run.run(places, kept.astype(np.int64), residuals, seen)
        return self._hold(fitted, run.columns, run.loss, protected_row(run.neighbours))

    def _hold(
        self, fitted: FittedBoosting, columns: tuple[FeatureColumn, ...], loss: Loss, protects: str
    ) -> Self:
        """What training found, and whom its loss protects."""
        self.fitted_, self.columns_, self._protects = fitted, columns, protects
        return self._fitted_on(columns, loss)

    def _margins(self, table: Any) -> Floats:
        self._check_fitted()
        return self.fitted_.margins(read_columns(self.columns_, table))

    @property
    def terms_(self) -> tuple[ColumnTerm, ...]:
        """The part of each column: joined cells, noisy counts and scores."""
        self._check_fitted()
        return self.fitted_.terms

    @property
    def intercept_(self) -> Floats:
        """The score of a row whose parts are all average."""
        self._check_fitted()
        return self.fitted_.intercept

    def explain(self, X: Any) -> list[dict[str, Floats]]:
        """What each column adds to the score of each row.

        Parameters
        ----------
        X : table, shape (n, d)

        Returns
        -------
        list of dict
            One a row: of each column, by name, its part of the score, shape (m,).
        """
        self._check_fitted()
        places = read_columns(self.columns_, X)
        parts = [
            term.scores[term.joined[cells]]
            for term, cells in zip(self.fitted_.terms, places, strict=True)
        ]
        names = [column.name for column in self.columns_]
        return [
            {name: part[i] for name, part in zip(names, parts, strict=True)}
            for i in range(len(places[0]))
        ]

    def summary(self) -> str:
        """The model in words: what it cost, whom it protects, and which columns say most.

        Returns
        -------
        str
        """
        self._check_fitted()
        terms = self.fitted_.terms
        rows = max(float(np.median([term.rows.sum() for term in terms])), 0.0)
        of = f"{type(self).__name__}: {count_text(len(terms), 'column')}"
        found = [
            "mean size of each column's part of the score:",
            *bars({term.column.name: term.importance for term in terms}),
        ]
        return summarised(of, rows, self.loss_, self._protects, found)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The scores of the columns that say most, over their values.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots.learn._learn import draw_terms

        self._check_fitted()
        return draw_terms(self, path)

    @property
    def outputs_(self) -> list[str]:
        """What each of the m scores of a cell is for; one name, or one a class."""
        raise NotImplementedError


class AdditiveClassifier(AdditiveModel, Classifier):
    """A classifier whose score is a sum of one part a column, trained under differential privacy.

    Each part is a table of scores over the values of its column, which a person can read, check and
    correct: a generalised additive model, fitted by boosting on noisy sums. Of the estimators here
    it is the one to try first.

    Parameters
    ----------
    epsilon, delta : number
        What training costs; delta in (0, 1), far below one over the number of rows.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column of numbers; values beyond are
        moved to the ends. Declare them from what is known of the subject, never from the data.
    classes : sequence
        The labels that are possible, two at least. A row with another label does not count.
    categories : mapping, optional
        Of columns of categories, by name or position: the values that are possible. Others count
        as missing, which has a score of its own.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    bins : int
        Into how many ranges the values of a column of numbers are joined, about; 2 to 1024.
    rounds : int
        How often each column is fitted. More rounds follow steep shapes, with more noise.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    classes_ : array
    terms_ : tuple
        The parts: ``column``, ``labels()``, ``rows`` (noisy counts), ``scores`` and ``importance``.
    intercept_ : array, shape (m,)

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read: a parameter is out of range, or a column was not
        declared. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named; all of
    the model may be published. Two fits cost twice: ``first.loss_ + second.loss_``. *Proof*, method
    and source: `dither.learn.tabular._boosting`.

    ``score`` and other measures on held-out rows are exact numbers about those rows, and protect
    nobody in them.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> age = np.repeat(np.arange(20, 80), 50)
    >>> X, y = age[:, None], (age > 50).astype(int)
    >>> model = learn.AdditiveClassifier(epsilon=1, delta=1e-6, bounds=(0, 100), classes=[0, 1])
    >>> model.fit(X, y).predict([[25], [75]]).tolist()
    [0, 1]
    >>> model.loss_.charge.epsilon
    Fraction(1, 1)
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Any = None,
        classes: Sequence[Any],
        categories: Categories | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        bins: int = 32,
        rounds: int = 10,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.categories, self.neighbours = categories, neighbours
        self.bins, self.rounds = bins, rounds

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
            Told after each round how many are done.

        Returns
        -------
        AdditiveClassifier
            This one.
        """
        no_weights(sample_weight)
        classes = distinct(self.classes)
        run = self._boosting(X, *shape_of(len(classes)))
        labels = places_in(classes, y)
        residuals = residuals_of_classes(labels, len(classes))
        self._run(run, X, labels < len(classes), residuals, progress)
        self.classes_ = labels_of(classes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """The scores: of the second class, shape (n,), or of each of several, shape (n, m)."""
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes that the scores stand for, shape (n, classes)."""
        return probabilities(self.decision_function(X))

    @property
    def outputs_(self) -> list[str]:
        """What each of the m scores of a cell is for: the second class, or each class."""
        names = [str(label) for label in self.classes_.tolist()]
        if len(names) > 2:
            return names
        return [f"{self._target} = {names[1]}" if self._target else names[1]]


class AdditiveRegressor(AdditiveModel, Regressor):
    """A regression that is a sum of one part a column, trained under differential privacy.

    Parameters
    ----------
    epsilon, delta : number
    bounds : pair of (float or array of float)
        Of the columns of numbers; see `AdditiveClassifier`, as for the parameters below.
    target_bounds : (float, float)
        The least and the largest possible target; others are moved to these ends.
    categories : mapping, optional
    neighbours : Neighbours or str
    bins, rounds : int

    Attributes
    ----------
    loss_ : Loss
    terms_ : tuple
        Their scores are in halves of the distance of the target's bounds.
    intercept_ : array, shape (1,)

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row; `dither.learn.tabular._boosting`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> x = np.tile(np.arange(100), 50)
    >>> model = learn.AdditiveRegressor(
    ...     epsilon=2, delta=1e-6, bounds=(0, 100), target_bounds=(0, 10_000))
    >>> bool(abs(model.fit(x[:, None], x**2).predict([[50]])[0] - 2500) < 500)
    True
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Any = None,
        target_bounds: tuple[float, float],
        categories: Categories | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        bins: int = 32,
        rounds: int = 10,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.target_bounds, self.categories, self.neighbours = target_bounds, categories, neighbours
        self.bins, self.rounds = bins, rounds

    @property
    def outputs_(self) -> list[str]:
        """What the score of a cell is for."""
        return [self._target or "target"]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Train, once; parameters as in `AdditiveClassifier.fit`."""
        no_weights(sample_weight)
        low, high = self._ends()
        run = self._boosting(X, *shape_of(0))
        values = numbers(y)
        residuals = residuals_of_numbers(within(values, low, high))
        return self._run(run, X, ~np.isnan(values), residuals, progress)

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, within its bounds, shape (n,)."""
        return self._predicted(self._margins(X)[:, 0])


def shape_of(classes: int) -> tuple[int, float]:
    """How many scores a cell has, and the bound of a loss's curvature; 0 classes for a number."""
    if classes == 0:
        return 1, 1.0
    return (1, 0.25) if classes == 2 else (classes, 0.5)
