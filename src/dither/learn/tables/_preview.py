"""What noise leaves to be seen of models of some sizes, tried on rows that are made up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._display import table as shown_table
from dither._format import Printable, cost_text, number_text, percent, wrapped

__all__ = ["ModelPreview", "Predicted", "tried"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

Predicted = Callable[[Sequence[Integers], Integers, Integers], Floats]
"""From the cells of rows, how many rows each stands for, and answers of 0 and 1, to what a model of
them expects the answers to be."""

_PREVIEWED = 1000
_ALL_NOISE, _HARDLY = 0.15, 0.3
"""Off by so much of the range of predictions, or seeing so little of a clear step, a model says
next to nothing."""


@dataclass(frozen=True, eq=False)
class ModelPreview(Printable):
    """What noise alone does to the predictions of a model.

    Parameters
    ----------
    formula : str
    epsilon, delta : Fraction
        What it would cost.
    sizes : tuple of int
        Numbers of rows.
    off : tuple of float
        How far predictions of nothing lie off, as a part of their range.
    seen : tuple of float
        How much is seen of a step in the first column: of two halves with 20 % and 80 % of a class,
        or of a number that lies in the lower or the upper half of its bounds as often.
    bounds : (float, float), optional
        Of a number that is predicted.
    """

    formula: str
    epsilon: Fraction
    delta: Fraction
    sizes: tuple[int, ...]
    off: tuple[float, ...]
    seen: tuple[float, ...]
    bounds: tuple[float, float] | None

    @property
    def enough(self) -> tuple[bool, ...]:
        """By size: whether there is more to see than noise."""
        return tuple(
            off < _ALL_NOISE and seen > _HARDLY
            for off, seen in zip(self.off, self.seen, strict=True)
        )

    def summary(self) -> str:
        """A line for each size."""
        width = 1.0 if self.bounds is None else self.bounds[1] - self.bounds[0]
        rows = [
            [
                f"{n:,}",
                percent(off) if self.bounds is None else number_text(off * width, 3),
                percent(seen, 0),
                "" if enough else "too few",
            ]
            for n, off, seen, enough in zip(
                self.sizes, self.off, self.seen, self.enough, strict=True
            )
        ]
        what = "probabilities ±" if self.bounds is None else "predictions ±"
        lines = [f"{self.formula}, at {cost_text(self.epsilon, self.delta)}"]
        lines += shown_table(["rows", what, "of a step", ""], rows)
        lines += wrapped(
            "±: by noise alone, as a root mean square, where columns say nothing; of a step: how "
            "much is seen where the first column divides 20 % from 80 %; of rows that are made up"
        )
        return "\n".join(lines)


def tried(predicted: Predicted, sizes: Sequence[int], rows: int) -> tuple[float, float]:
    """Of rows that are made up: by how much predictions of nothing lie off, as a part of their
    range, and how much is seen of a step in the first column.

    Parameters
    ----------
    predicted : callable
        Trains a model, with its noise.
    sizes : sequence of int
        How many cells each column has, without that of what is missing.
    rows : int
    """
    half = max(1, min(_PREVIEWED, rows // 10))
    # Of ten rows in a place each answer has as many; of a step, one has four times the others.
    low = np.repeat(np.arange(half), 10)
    cells = [
        np.floor(low * math.sqrt(2 + j) % 1 * size).astype(np.int64) for j, size in enumerate(sizes)
    ]
    upper = cells[0] >= sizes[0] // 2
    kept = np.full(len(low), max(1, round(rows / len(low))))
    tens = np.tile(np.arange(10), half)
    even, step = tens % 2, np.where(upper, tens < 8, tens < 2).astype(np.int64)
    off = predicted(cells, kept, even) - 0.5
    found = predicted(cells, kept, step)
    seen = 0.0
    # One cell alone divides nothing.
    if upper.any() and not upper.all():
        seen = (found[upper].mean() - found[~upper].mean()) / 0.6
    return float(np.sqrt((off**2).mean())), min(1.0, max(0.0, float(seen)))
