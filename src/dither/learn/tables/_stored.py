"""What models that a session released have in files: columns, target, loss, and whom it protects.

Reading is strict: what is not such a model raises, whatever the file holds in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.learn._columns import FeatureColumn
from dither.learn.tables._columns import column_from, read_value
from dither.learn.tables._model import loss_of
from dither.privacy import Loss

__all__ = ["TrainingRecord", "finite"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRecord:
    """What a released model was taught on, and what it cost.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    target : str
    classes : list or None
    bounds : (float, float) or None
        Of a number that is predicted, instead of classes.
    loss : Loss
    protects : str
        Whom the loss protects, in words.
    """

    columns: tuple[FeatureColumn, ...]
    target: str
    classes: list[Any] | None
    bounds: tuple[float, float] | None
    loss: Loss
    protects: str

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TrainingRecord:
        """From plain data; what is not such a model raises."""
        target, bounds = content["target"], None
        classes = None if target["classes"] is None else [read_value(v) for v in target["classes"]]
        if classes is None:
            low, high = finite(target["bounds"]).tolist()
            bounds = low, high
        return cls(
            tuple(map(column_from, content["columns"])),
            str(target["name"]),
            classes,
            bounds,
            loss_of(content),
            content["certificate"]["text"]["protects"],
        )

    @property
    def cost(self) -> dict[str, Any]:
        """The arguments of an estimator that say what it costs, and for which neighbours."""
        charge = self.loss.charge
        return {
            "epsilon": charge.epsilon,
            "delta": charge.delta,
            "neighbours": self.loss.neighbours,
        }


def finite(found: Any) -> Floats:
    """Numbers of a file, as an array; what is not finite raises."""
    made = np.array(found, dtype=np.float64)
    if not np.isfinite(made).all():
        raise ValueError("not finite")
    return made
