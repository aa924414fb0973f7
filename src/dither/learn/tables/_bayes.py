"""Naive Bayes of a protected table: explained, previewed, charged once, then fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._format import count_text, number_text
from dither.errors import ArgumentError
from dither.learn._columns import FeatureColumn
from dither.learn._estimator import probabilities
from dither.learn._noise import PrivacyParameters
from dither.learn._rows import Encoding
from dither.learn.tables._columns import column_of, stored
from dither.learn.tables._rows import RowsQuestion, Told
from dither.learn.tables._stored import TrainingRecord, finite
from dither.learn.tabular._bayes import STEPS, BayesStatistics, ClassSums, GaussianNB
from dither.privacy import Loss
from dither.query.tables._domain import Attribute, middles

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["BayesQuestion", "bayes_from"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class BayesQuestion(RowsQuestion):
    """Naive Bayes that may be explained and previewed, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).naive_bayes(formula)``.

    Notes
    -----
    *Sensitivity.* Of each unit at most ``max_rows`` rows count, chosen by a keyed hash of the
    unit's own rows. One vector leaves, a sum over rows; `dither.learn.tabular._bayes` has the proof
    of what a unit of so many moves, for any numbers between bounds, among them the middles of cells
    that stand for them here. Cells, bounds and classes are the policy's.
    """

    kind = "naive_bayes"
    _noun = "naive Bayes"

    def __init__(
        self,
        rows: TableQuery,
        epsilon: Any,
        delta: Any,
        formula: str,
        *,
        max_rows: int | None = None,
    ) -> None:
        super().__init__(rows, epsilon, delta, formula, max_rows)
        if self.target.classes is None:
            raise ArgumentError(
                f"naive Bayes tells classes apart, and {self.target.name} is a number: declare "
                "values of it in the policy, or ask for .additive(...), .forest(...) or "
                ".linear(...)"
            )
        self._run = ClassSums(
            Encoding(tuple(map(_column, self.domain.attributes[:-1]))),
            len(self.target.classes),
            PrivacyParameters(*self.budget.of_a_row, self._question.neighbours),
            self._question.max_rows,
        )

    @property
    def _loss(self) -> Loss:
        return self._run.noisy.loss

    def _measured(self) -> tuple[tuple[str, str], ...]:
        run, deviation = self._run, self._run.noisy.deviation
        classes = count_text(run.classes, "class", "classes")

        def spread(weight: float) -> str:
            return f"standard deviation {number_text(deviation / weight)} rows"

        found = [("rows", f"of {classes}, once; {spread(run.count)}")]
        if numbers := run.encoding.numbers:
            what = count_text(numbers, "number")
            ends = "as far as their bounds"
            first, second = spread(run.first * STEPS), spread(2 * run.second * STEPS)
            found += [
                ("sums", f"of {what} in each class, once; {first} {ends}"),
                ("sums of squares", f"of {what} in each class, once; {second} {ends}"),
            ]
        if run.lists:
            what = f"of {count_text(run.lists, 'column')} in each class, once"
            found.append(("rows of each cell", f"{what}; {spread(run.cell)}"))
        return (*found, ("law", f"{run.noisy.noise.title}, added to exact whole numbers"))

    def _said(self) -> tuple[dict[str, str], list[dict[str, Any]]]:
        run = self._run
        parts = {"rows of classes": run.count}
        if run.encoding.numbers:
            parts |= {
                "sums of numbers": run.first * STEPS,
                "sums of squares of numbers": 2 * run.second * STEPS,
            }
        if run.lists:
            parts["rows of cells"] = run.cell
        law = run.noisy.noise.parameters()
        return {}, [
            {"measures": {"node": what}, **law, "times": "1", "unit": f"1/{weight}"}
            for what, weight in parts.items()
        ]

    @cached_property
    def _lattice(self) -> list[Integers | None]:
        """Of each column of numbers the point of each cell, the last for what is missing."""
        found: list[Integers | None] = []
        pairs = zip(self._run.encoding.columns, self.domain.attributes, strict=False)
        for column, attribute in pairs:
            if column.bounds is None:
                found.append(None)
                continue
            shares = column.shares(middles(attribute))
            points = np.rint((2 * shares - 1) * STEPS).astype(np.int64)
            found.append(np.append(points, 0))
        return found

    def _points(self, cells: Sequence[Integers]) -> Integers:
        """The features of rows that are known by their cells, as of `Encoding.points`."""
        parts = [
            STEPS * (places[:, None] == np.arange(column.cells - 1))
            if points is None
            else points[places][:, None]
            for column, points, places in zip(
                self._run.encoding.columns, self._lattice, cells, strict=True
            )
        ]
        return np.concatenate(parts, axis=1).astype(np.int64)

    def _predicted(self, cells: Sequence[Integers], kept: Integers, answers: Integers) -> Floats:
        points = self._points(cells)
        scores = self._run.release(points, answers, kept).scores_of(points)
        return np.asarray(probabilities(scores[:, :2])[:, 1])

    def _fit(self, places: Integers, counts: Integers, tell: Told) -> dict[str, Any]:
        *cells, answers = places.T
        fitted = self._run.release(self._points(cells), answers, counts)
        tell(1)
        return {
            "columns": [stored(column) for column in fitted.encoding.columns],
            "rows": fitted.rows.tolist(),
            "mean": fitted.mean.tolist(),
            "variance": fitted.variance.tolist(),
            "shares": fitted.shares.tolist(),
        }

    @staticmethod
    def _model(content: Mapping[str, Any]) -> GaussianNB:
        return bayes_from(content)


def _column(attribute: Attribute) -> FeatureColumn:
    """A number between bounds where rows are moved to these; a list of cells otherwise."""
    if attribute.kind.numeric and attribute.clamped and attribute.bounds is not None:
        low, high = (float(end) for end in attribute.bounds)
        if high / 2 - low / 2 > 0:
            return FeatureColumn(attribute.name, bounds=(low, high))
    return column_of(attribute)


def bayes_from(content: Mapping[str, Any]) -> GaussianNB:
    """The estimator that a release left, from plain data; what is not one raises."""
    taught = TrainingRecord.of(content)
    encoding, classes = Encoding(taught.columns), taught.classes
    if classes is None:
        raise ValueError("no classes")
    rows, parts = finite(content["rows"]), ("mean", "variance", "shares")
    mean, variance, shares = (finite(content[name]) for name in parts)
    if rows.shape != (len(classes),) or (rows <= 0).any():
        raise ValueError("of other classes")
    for part in (mean, variance, shares):
        if part.shape != (len(classes), encoding.starts[-1]):
            raise ValueError("of another shape")
    if (variance <= 0).any():
        raise ValueError("not a variance")
    made = GaussianNB(**taught.cost, classes=classes)
    fitted = BayesStatistics(encoding, encoding.of_numbers, rows, mean, variance, shares)
    return made._hold(fitted, classes, taught.loss, taught.protects)
