"""What every estimator of this package has in common with those of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither._format import cost_text, count_text, display_text, number_text, wrapped
from dither.errors import ArgumentError
from dither.learn._columns import FeatureColumn, numbers, places_in
from dither.learn._conventions import (
    SharedFits,
    contained,
    html_of,
    not_fitted,
    output_asked,
    score_weights,
)
from dither.privacy import Loss, Neighbours

__all__ = [
    "Classifier",
    "Estimator",
    "Regressor",
    "Transformer",
    "bars",
    "distinct",
    "labels_of",
    "probabilities",
    "protected_row",
    "summarised",
    "within",
]

Floats = npt.NDArray[np.float64]

_SHOWN = 12


class Estimator:
    """Parameters that can be read, set and copied, as scikit-learn's ``clone`` and pipelines do.

    A subclass takes its parameters by name and keeps them as they are, under the same names; what
    is wrong with them is said by ``fit``, before any row is read.
    """

    kind = "classifier"
    loss_: Loss
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    _copies: SharedFits | None = None
    _copied = False
    _loss_with_copies: Loss | None = None
    _sklearn_output_config: dict[str, str]

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters.

        Raises
        ------
        ArgumentError
            One is not known; nothing is changed.
        """
        names = self._names()
        for name in parameters:
            if name not in names:
                raise ArgumentError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
        for name, value in parameters.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._given())
        return f"{type(self).__name__}({shown})"

    def _given(self) -> list[str]:
        """Parameters that are not at their defaults."""
        found = []
        for name, parameter in inspect.signature(type(self).__init__).parameters.items():
            if name == "self":
                continue
            value = getattr(self, name)
            if parameter.default is inspect.Parameter.empty or value is not parameter.default:
                found.append(name)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "loss_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags, TransformerTags

        tags = Tags(
            estimator_type=None if self.kind == "transformer" else self.kind,
            target_tags=TargetTags(required=self.kind in ("classifier", "regressor")),
            transformer_tags=TransformerTags() if hasattr(self, "transform") else None,
            classifier_tags=ClassifierTags() if self.kind == "classifier" else None,
            regressor_tags=RegressorTags() if self.kind == "regressor" else None,
        )
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """A copy without its fit, for scikit-learn's ``clone``; both know that there are two."""
        from sklearn.base import clone

        parameters = {
            name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()
        }
        made = type(self)(**parameters)
        if hasattr(self, "_sklearn_output_config"):
            made._sklearn_output_config = dict(self._sklearn_output_config)
        if self._copies is None:
            self._copies = SharedFits()
        made._copies, made._copied, self._copied = self._copies, True, True
        return made

    def _fitted_on(self, columns: Sequence[FeatureColumn], loss: Loss) -> Self:
        """The end of a fit: what its columns were, and what it cost."""
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        self._keep_loss(loss)
        return self

    def _keep_loss(self, loss: Loss) -> None:
        """What a fit cost, written down for all copies of this estimator."""
        if self._copies is None:
            self._copies = SharedFits()
        self.loss_ = loss
        self._loss_with_copies = self._copies.fitted(type(self).__name__, loss, self._copied)

    @property
    def loss_with_copies_(self) -> Loss | None:
        """What this fit and those before it cost together, of this estimator and of its copies.

        Of this process alone; copies are those that scikit-learn's ``clone`` makes, as searches and
        cross-validation do. None where their fits promise different things.
        """
        self._check_fitted()
        return self._loss_with_copies

    def _check_fitted(self) -> None:
        if not hasattr(self, "loss_"):
            raise not_fitted(type(self).__name__)

    def _repr_html_(self) -> str:
        protects = getattr(self, "_protects", "")
        if self.__sklearn_is_fitted__() and not protects:
            protects = protected_row(self.loss_.neighbours)
        return html_of(self, protects)


class Transformer(Estimator):
    """What gives new columns for the rows by ``transform``."""

    kind = "transformer"

    def fit(self, X: Any, y: Any = None, sample_weight: None = None) -> Self:
        """Fit, once, at the cost of epsilon and delta."""
        raise NotImplementedError

    def _transformed(self, X: Any) -> Floats:
        """What `transform` gives, shape (n, m)."""
        raise NotImplementedError

    def _columns_out(self) -> int:
        """m."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """New columns of rows, shape (n, m); exact, so it protects nobody in them.

        Parameters
        ----------
        X : array or data frame, shape (n, d)

        Returns
        -------
        array or data frame, shape (n, m)
            As `set_output` asks.
        """
        self._check_fitted()
        return contained(self, X, self._transformed(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: None = None) -> Any:
        """``fit(X).transform(X)``: the second part gives rows away."""
        return self.fit(X, y, sample_weight).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of what `transform` gives: that of the class, in small letters, and a number.

        Parameters
        ----------
        input_features : ignored
        """
        self._check_fitted()
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self._columns_out())], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say what `transform` gives.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            An array, or a frame with the names of `get_feature_names_out`. Without it, what was
            asked for before; where nothing was, what ``sklearn.set_config`` says.

        Returns
        -------
        Transformer
            This one.

        Raises
        ------
        ArgumentError
            There is no such container.
        """
        wanted = output_asked(transform)
        if wanted is not None:
            self._sklearn_output_config = {"transform": wanted}
        return self


class Classifier(Estimator):
    """What tells classes apart by ``predict_proba``; the labels are declared."""

    kind = "classifier"
    classes: Any
    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, shape (n, classes)."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row, shape (n,)."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted: exact, so it protects nobody in them."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        right = places_in(self.classes_.tolist(), y) == likeliest
        return float(np.average(right, weights=score_weights(sample_weight, len(right))))


class Regressor(Estimator):
    """What predicts a number whose bounds are declared."""

    kind = "regressor"
    target_bounds: Any

    def _ends(self) -> tuple[float, float]:
        try:
            low, high = (float(v) for v in self.target_bounds)
        except (TypeError, ValueError):
            low = high = 0.0
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ArgumentError("target_bounds must be two finite numbers that rise")
        return low, high

    def _predicted(self, targets: Floats) -> Floats:
        """The other way round."""
        low, high = self._ends()
        share = (np.clip(targets, -1, 1) + 1) / 2
        return np.asarray(low * (1 - share) + high * share)

    def predict(self, X: Any) -> Floats:
        """The expected target of each row, shape (n,)."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²: the share of the variance that is explained; exact, so it protects nobody."""
        values = numbers(y)
        weights = score_weights(sample_weight, len(values))
        left = float(np.average((values - self.predict(X)) ** 2, weights=weights))
        middle = np.average(values, weights=weights)
        return 1 - left / float(np.average((values - middle) ** 2, weights=weights))


def probabilities(scores: Floats) -> Floats:
    """Of classes whose scores are logarithms; of two, the score of the second may stand alone."""
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def bars(sizes: Mapping[str, float]) -> list[str]:
    """Columns by what they weigh, the largest first, a line each; the rest is counted."""
    ranked = sorted(sizes.items(), key=lambda item: -item[1])
    shown = [(display_text(name), size) for name, size in ranked[:_SHOWN]]
    wide, most = max(len(name) for name, _ in shown), max(shown[0][1], 1e-9)
    found = [
        f"  {name:<{wide}}  {size:8.3f}  {'#' * round(30 * size / most)}".rstrip()
        for name, size in shown
    ]
    if len(ranked) > _SHOWN:
        found.append(f"  and {count_text(len(ranked) - _SHOWN, 'column')} more")
    return found


def protected_row(neighbours: Neighbours) -> str:
    """Whom a fit on rows in memory protects, in words."""
    return {
        Neighbours.ADD_REMOVE: "one row, added or removed",
        Neighbours.REPLACE: "one row, replaced by another (the number of rows is public)",
    }[neighbours]


def summarised(of: str, rows: float, loss: Loss, protects: str, found: Sequence[str]) -> str:
    """A fitted model in words: of what, what it cost and protects, and lines of what it found."""
    charge = loss.charge
    return "\n".join(
        [
            f"{of}, about {number_text(round(rows))} rows (a noisy count)",
            *wrapped(f"cost: {cost_text(charge.epsilon, charge.delta)}; protects {protects}"),
            *found,
            "Everything here may be published: it was made with noise, at that cost.",
        ]
    )


def within(values: Floats, low: float, high: float) -> Floats:
    """Numbers moved to their bounds, these being -1 and 1; 0 for what is missing."""
    near = np.clip(np.nan_to_num(values, posinf=high, neginf=low), low, high)
    found = 2 * ((near / 2 - low / 2) / (high / 2 - low / 2)) - 1
    return np.where(np.isnan(values), 0.0, found)


def labels_of(classes: Sequence[Any]) -> npt.NDArray[Any]:
    """Labels as an array, of objects where they are not of one kind."""
    alike = len({type(label) for label in classes}) == 1
    return np.array(classes, dtype=None if alike else object)


def distinct(classes: Any) -> list[Any]:
    """The labels that are possible, as they were declared."""
    try:
        found = list(dict.fromkeys(classes))
    except TypeError:
        found = []
    if isinstance(classes, str) or len(found) < 2 or len(found) != len(classes):
        raise ArgumentError("classes must be a list of two or more different labels")
    if len(found) > 1000:
        raise ArgumentError("classes must be at most 1,000 labels")
    return found
