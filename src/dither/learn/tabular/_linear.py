"""Linear regression for prediction, from the moments that `dither.inference` releases.

The release, its sensitivity and its proof are those of `dither.inference.regression._moments`,
which allows delta 0, and of `dither.inference.regression._boosted`: what is estimated for intervals
there predicts here. They are imported when a model is fitted, since they bring the tests and
intervals of their room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.learn._columns import numbers
from dither.learn._conventions import no_weights
from dither.learn._estimator import Regressor, within
from dither.learn._noise import PrivacyParameters
from dither.learn._rows import Encoding, declared
from dither.privacy import Neighbours

__all__ = ["LinearRegression", "in_units"]

Floats = npt.NDArray[np.float64]


class LinearRegression(Regressor):
    """Least squares from noisy sums of products.

    Parameters
    ----------
    epsilon, delta : number
        What fitting costs; without a delta the guarantee is pure.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column of numbers; others are moved there,
        and what is missing counts as the middle.
    target_bounds : (float, float)
        The least and the largest possible target; others are moved there, and a row without a
        target does not count, or counts as one in the middle of everything where rows are replaced.
    categories : mapping, optional
        Of columns of categories, by name or position: the values that are possible.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    method : {"moments", "boosted"}
        "boosted" takes a few noisy steps along what the last one left: better with many columns and
        few rows, where delta is above 0.
    radius : number, optional
        In (0, 1]: rows longer than this share of the longest possible one weigh less, for less
        noise. Without it, by a rule that looks at the number of columns alone.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    coef_ : array, shape (features,)
        In the columns' own units; a column of categories has one feature a category.
    intercept_ : float
    features_ : tuple of str
        Names of the coefficients.

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named. *Proof*:
    `dither.inference.regression._moments`. For coefficients with intervals and p-values there is
    `dither.inference.linear_regression`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> x = np.tile(np.arange(100), 50)
    >>> model = learn.LinearRegression(epsilon=1, bounds=(0, 100), target_bounds=(0, 300))
    >>> bool(abs(model.fit(x[:, None], 3 * x).predict([[50]])[0] - 150) < 30)
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
        method: str = "moments",
        radius: Number | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds = epsilon, delta, bounds
        self.target_bounds, self.categories, self.neighbours = target_bounds, categories, neighbours
        self.method, self.radius = method, radius

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
        LinearRegression
            This one.
        """
        no_weights(sample_weight)
        from dither.inference.engine._inputs import Bounds, Target
        from dither.inference.regression._boosted import BoostedModel, BoostedRelease
        from dither.inference.regression._formula import MISSING
        from dither.inference.regression._linear_models import LinearModel
        from dither.inference.regression._linear_regression import length_of, moments_for

        found = PrivacyParameters.of(self.epsilon, self.delta, self.neighbours)
        asked = Target(found.epsilon, found.delta, found.neighbours)
        check.choice("method", self.method, ("moments", "boosted"))
        share = None if self.radius is None else check.exact("radius", self.radius, above=0, most=1)
        ends = self._ends()
        encoding = Encoding(declared(X, self.bounds, self.categories))
        size, terms, plain = encoding.starts[-1], len(encoding.columns), encoding.numbers
        release: Any
        if self.method == "boosted":
            release = BoostedRelease(size, asked, length_of(terms, share))
        else:
            apart = encoding.apart()
            release = moments_for(size, plain, terms - plain, apart, asked, radius=share)
        points, values = encoding.points(X, Bounds.steps), numbers(y)
        if len(points) != len(values):
            raise ArgumentError("y must have one value for each row of X")
        answers = np.rint(within(values, *ends) * Bounds.steps).astype(np.int64)
        answers[np.isnan(values)] = MISSING
        left = release.release(np.column_stack([points, answers]))
        rows = len(points) if asked.replace else None
        model: LinearModel
        if self.method == "boosted":
            model = BoostedModel(left, rows)
        else:
            model = LinearModel(release, left.values, rows)
        self._slopes, self.encoding_ = model.at + model.slopes, encoding
        self.features_ = encoding.names
        return self._fitted_on(encoding.columns, release.loss)

    @property
    def coef_(self) -> Floats:
        """Slopes in the columns' own units."""
        self._check_fitted()
        return self._in_units()[1:]

    @property
    def intercept_(self) -> float:
        """The target where every number is 0 and no category is listed."""
        self._check_fitted()
        return float(self._in_units()[0])

    def _in_units(self) -> Floats:
        low, high = self._ends()
        found = in_units(self.encoding_, self._slopes[None]) * (high / 2 - low / 2)
        found[:, 0] += low / 2 + high / 2
        return np.asarray(found[0])

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, within its bounds, shape (n,)."""
        self._check_fitted()
        points = self.encoding_.points(X, 1 << 20) / (1 << 20)
        return self._predicted(self._slopes[0] + points @ self._slopes[1:])


def in_units(encoding: Encoding, slopes: Floats) -> Floats:
    """Intercepts and slopes of features from -1 to 1 as those of columns in their own units.

    Parameters
    ----------
    encoding : Encoding
    slopes : array of float, shape (m, 1 + features)
    """
    found = slopes.copy()
    for column, start in zip(encoding.columns, encoding.starts, strict=False):
        if column.bounds is not None:
            low, high = column.bounds
            found[:, 1 + start] /= high / 2 - low / 2
            found[:, 0] -= found[:, 1 + start] * (low / 2 + high / 2)
    return found
