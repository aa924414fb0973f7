"""What every estimator of this room has in common with those of scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from dither.errors import ArgumentError

__all__ = ["Estimator"]


class Estimator:
    """Parameters that can be read, set and copied, as scikit-learn's ``clone`` and pipelines do.

    A subclass takes its parameters by name and keeps them as they are, under the same names; what
    is wrong with them is said by ``fit``, before any row is read.
    """

    kind = "classifier"

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
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        classifier = self.kind == "classifier"
        tags = Tags(
            estimator_type=self.kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags() if classifier else None,
            regressor_tags=None if classifier else RegressorTags(),
        )
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.non_deterministic = True
        return tags

    def _check_fitted(self) -> None:
        if not hasattr(self, "loss_"):
            raise ArgumentError(f"this {type(self).__name__} is not fitted yet: call fit(X, y)")
