"""Logistic regression for prediction, of two classes or several.

The release, its sensitivity and its proof are those of `dither.learn.tabular._softmax`. It is
imported when a model is fitted, since it rests on parts of inference, which brings its tests and
intervals along.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn._columns import places_in
from dither.learn._conventions import no_weights
from dither.learn._estimator import Classifier, distinct, labels_of, probabilities
from dither.learn._noise import PrivacyParameters
from dither.learn._rows import Encoding, declared
from dither.learn.tabular._linear import in_units
from dither.numeric import sqrt_lower
from dither.privacy import Neighbours

__all__ = ["LogisticRegression"]

Floats = npt.NDArray[np.float64]


class LogisticRegression(Classifier):
    """A linear score of each class, trained by a few noisy steps.

    Parameters
    ----------
    epsilon, delta : number
        What fitting costs; delta in (0, 1), far below one over the number of rows.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column of numbers; others are moved there,
        and what is missing counts as the middle.
    classes : sequence
        The labels that are possible, two or more. A row with another does not count.
    categories : mapping, optional
        Of columns of categories, by name or position: the values that are possible.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    radius : number, optional
        In (0, 1]: rows longer than this share of the longest possible one weigh less, for less
        noise. Without it, by a rule that looks at the numbers of columns alone.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    classes_ : array
    coef_ : array, shape (1 or classes, features)
        In the columns' own units; a column of categories has one feature a category.
    intercept_ : array, shape (1 or classes,)
    features_ : tuple of str
        Names of the coefficients.

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named. *Proof*:
    `dither.learn.tabular._softmax`. For coefficients with intervals and p-values there is
    `dither.inference.logistic_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> age = np.repeat(np.arange(20, 80), 50)
    >>> X, y = age[:, None], (age > 50).astype(int)
    >>> model = learn.LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 100), classes=[0, 1])
    >>> model.fit(X, y).predict([[25], [75]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bounds: Any = None,
        classes: Sequence[Any],
        categories: Mapping[Any, Sequence[Any]] | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        radius: Number | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.categories, self.neighbours, self.radius = categories, neighbours, radius

    def fit(self, X: Any, y: Any, sample_weight: None = None) -> Self:
        """Fit, once, at the cost of epsilon and delta.

        Parameters
        ----------
        X : array or data frame, shape (n, d)
        y : array, shape (n,)
        sample_weight : None
            Not taken: a row counts once.

        Returns
        -------
        LogisticRegression
            This one.
        """
        no_weights(sample_weight)
        from dither.inference.engine._inputs import Bounds, Target
        from dither.inference.regression._formula import MISSING
        from dither.inference.regression._linear_regression import length_of
        from dither.learn.tabular._softmax import SoftmaxRelease

        found = PrivacyParameters.of(self.epsilon, self.delta, self.neighbours, pure=False)
        asked = Target(found.epsilon, found.delta, found.neighbours)
        share = None if self.radius is None else check.exact("radius", self.radius, above=0, most=1)
        classes = distinct(self.classes)
        encoding = Encoding(declared(X, self.bounds, self.categories))
        size, terms = encoding.starts[-1], len(encoding.columns)
        k = len(classes)
        if share is None:
            # A list of categories makes a row longer by 1, and a number by little: most lie nearer
            # to the middle of what is possible than they would if they were spread evenly.
            square = 1 + (terms - encoding.numbers) + Fraction(encoding.numbers, 10)
            share = sqrt_lower(square / (terms + 1))
        reach = length_of(terms, share)
        release = SoftmaxRelease(size, terms, k, asked, reach)
        points, labels = encoding.points(X, Bounds.steps), places_in(classes, y)
        if len(points) != len(labels):
            raise ArgumentError("y must have one value for each row of X")
        rows = np.column_stack([points, np.where(labels < k, 0, MISSING)])
        self._slopes = release.release(rows, labels)
        self.encoding_, self.features_ = encoding, encoding.names
        self.classes_ = labels_of(classes)
        return self._fitted_on(encoding.columns, release.loss)

    @property
    def coef_(self) -> Floats:
        """Slopes in the columns' own units."""
        self._check_fitted()
        return in_units(self.encoding_, self._slopes)[:, 1:]

    @property
    def intercept_(self) -> Floats:
        """Scores where every number is 0 and no category is listed."""
        self._check_fitted()
        return in_units(self.encoding_, self._slopes)[:, 0]

    def decision_function(self, X: Any) -> Floats:
        """The scores: of the second class, shape (n,), or of each of several, shape (n, m)."""
        self._check_fitted()
        points = self.encoding_.points(X, 1 << 20) / (1 << 20)
        found = self._slopes[:, 0] + points @ self._slopes[:, 1:].T
        return found[:, 0] if found.shape[1] == 1 else found

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, shape (n, classes)."""
        return probabilities(self.decision_function(X))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls, of two classes and of several."""
        from dither.learn.tabular._softmax import SoftmaxRelease

        yield from SoftmaxRelease.audit_subjects()
