"""What every estimator of this room has in common with those of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither._format import cost_text, count_text, display_text, number_text, wrapped
from dither.errors import ArgumentError
from dither.learn._columns import numbers, places_in
from dither.privacy import Loss, Neighbours

__all__ = [
    "Classifier",
    "Estimator",
    "Regressor",
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

    def _check_fitted(self) -> None:
        if not hasattr(self, "loss_"):
            raise ArgumentError(f"this {type(self).__name__} is not fitted yet: call fit(X, y)")


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

    def score(self, X: Any, y: Any) -> float:
        """The share of rows whose class is predicted: exact, so it protects nobody in them."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return float(np.mean(places_in(self.classes_.tolist(), y) == likeliest))


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

    def score(self, X: Any, y: Any) -> float:
        """R²: the share of the variance that is explained; exact, so it protects nobody."""
        values = numbers(y)
        left = float(((values - self.predict(X)) ** 2).mean())
        return 1 - left / float(values.var())


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
