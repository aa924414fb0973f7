"""What a release of ranges gives: every range of one column, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import (
    Printable,
    cost_text,
    count_text,
    interval,
    number_text,
    sentence,
    wrapped,
)
from dither._format import level as level_text
from dither._notebook import Shown
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Loss
from dither.query.tables._domain import Attribute
from dither.session._certificate import Certificate
from dither.session._request import AnsweredRequest
from dither.synth.marginals._marginals import unpacked
from dither.synth.ranges._plan import RangePlan
from dither.synth.ranges._tree import Family, RangeTree

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["RangeAnswer", "RangeCounts"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RangeAnswer(Shown):
    """How many lie in a range.

    Parameters
    ----------
    estimate : float
        Unbiased; it may be below 0.
    variance : float
        Exact.
    lower, upper : float
        The interval at the confidence that was asked for.
    """

    estimate: float
    variance: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return interval(self.estimate, self.lower, self.upper)


class RangeCounts(Printable):
    """Every range of one column, as it was released. What it answers costs nothing more.

    Answers are the best unbiased estimates of all levels of the tree, so those of two ranges that
    lie side by side add up to that of both.
    """

    def __init__(self, attribute: Attribute, released: AnsweredRequest, loss: Loss) -> None:
        self._attribute, self._content = attribute, released.content
        self.replayed, self.loss = released.replayed, loss
        stored = self._content
        family: Family = stored["family"]
        made = DiscreteGaussian if family == "gaussian" else DiscreteLaplace
        tree = RangeTree(
            attribute.inner,
            tuple(stored["branchings"]),
            tuple(Fraction(share) for share in stored["shares"]),
            family,
        )
        noises = tuple(made(Fraction(parameter)) for parameter in stored["noise"])
        self.plan = RangePlan(tree, noises, loss)

    @property
    def name(self) -> str:
        """The column."""
        return self._attribute.name

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers should know."""
        return tuple(self._content["notes"])

    @cached_property
    def _below(self) -> Floats:
        """How many lie before each edge between bins."""
        noisy = [unpacked(text, (-1,)) for text in self._content["counts"]]
        return self.plan.tree.cumulative(noisy, self.plan.variances)

    def count(
        self, lower: Any = None, upper: Any = None, *, confidence: float = 0.95
    ) -> RangeAnswer:
        """How many lie in a range.

        Parameters
        ----------
        lower, upper : value, optional
            Of a column cut into bins, edges of bins: from ``lower`` up to below ``upper``. Of whole
            numbers and dates that are cells of their own, the first and the last, both in it. The
            ends of the column where left out.
        confidence : float
            In (0, 1).

        Raises
        ------
        ArgumentError
            An end is not one of those, or they are in the wrong order.
        """
        inside = check.confidence(confidence)
        first = 0 if lower is None else self._edge("lower", lower, 0)
        end = self._attribute.inner if upper is None else self._edge("upper", upper, 1)
        if first >= end:
            raise ArgumentError("upper must lie above lower")
        found = float(self._below[end] - self._below[first])
        variance = float(self.plan.tree.variance(first, end, self.plan.variances))
        width = float(self.plan.half_width(first, end, inside))
        return RangeAnswer(found, variance, found - width, found + width)

    def _edge(self, what: str, value: Any, after: int) -> int:
        attribute = self._attribute
        if attribute.values is not None:
            for i, own in enumerate(attribute.values):
                if type(own) is type(value) and own == value:
                    return i + after
            shown = f"{attribute.labels[0]} to {attribute.labels[attribute.inner - 1]}"
            raise ArgumentError(f"{what} must be one of the column's cells, {shown}")
        edges = attribute.edges or ()
        exact = check.exact(what, value)
        if exact not in edges:
            near = min(edges, key=lambda edge: abs(edge - exact))
            raise ArgumentError(
                f"{what} must be an edge of the bins; the nearest is {number_text(near, 6)}"
            )
        return edges.index(exact)

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: a row for each bin, and how many lie in it and in all up to it.

        ``estimate``, ``lower`` and ``upper`` are of the bin, ``below``, ``below_lower`` and
        ``below_upper`` of it and all before, at 95 %.
        """
        import polars as pl

        n = self._attribute.inner
        ends = np.arange(1, n + 1)
        columns: dict[str, Any] = {self.name: list(self._attribute.labels[:n])}
        if self._attribute.values is not None:
            columns[self.name] = list(self._attribute.values)
        for name, first in (("", np.arange(n)), ("below", np.zeros(n, dtype=np.int64))):
            found = self._below[ends] - self._below[first]
            width = self.plan.half_width(first, ends, 0.95)
            prefix = f"{name}_" if name else ""
            columns |= {
                name or "estimate": found,
                f"{prefix}lower": found - width,
                f"{prefix}upper": found + width,
            }
        return pl.DataFrame(columns)

    def summary(self) -> str:
        """A few lines for people."""
        tree = self.plan.tree
        charge, error = self.loss.charge, math.sqrt(tree.mean_variance(self.plan.variances))
        entry = self._content["certificate"]["ledger"]["entry"]
        lines = [
            f"ranges of {self.name}, {count_text(tree.bins, 'bin')}: all of it "
            f"{self.count()} at {level_text(0.95)}",
            f"Root mean squared error of all ranges: {number_text(error, 3)}.",
            f"Cost: {cost_text(charge.epsilon, charge.delta)}. Ledger entry {entry}.",
        ]
        for note in self.notes:
            lines += wrapped(sentence(f"note: {note}"), "  ", first="")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the counts of bins, and of all up to each, with their intervals.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._hierarchy import draw_ranges

        return draw_ranges(self, path)
