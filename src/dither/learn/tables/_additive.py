"""Additive models of a protected table: explained, previewed, charged once, then boosted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import count_text, number_text
from dither.errors import ArgumentError
from dither.learn.tables._columns import column_of, stored
from dither.learn.tables._rows import RowsQuestion, Told
from dither.learn.tables._stored import TrainingRecord, finite
from dither.learn.tabular._additive import (
    AdditiveClassifier,
    AdditiveModel,
    AdditiveRegressor,
    labels_of,
    shape_of,
    within,
)
from dither.learn.tabular._boosting import (
    Boosting,
    ColumnTerm,
    FittedBoosting,
    Residuals,
    residuals_of_classes,
    residuals_of_numbers,
)
from dither.privacy import Loss

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["AdditiveQuestion", "additive_from"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class AdditiveQuestion(RowsQuestion):
    """An additive model that may be explained and previewed, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).additive(formula)``.

    Notes
    -----
    *Sensitivity.* Of each unit at most ``max_rows`` rows count, the same in every count and sum,
    chosen by a keyed hash of the unit's own rows. `dither.learn.tabular._boosting` has the proof of
    what a unit of so many rows moves, whatever they hold. The columns' cells and the target's
    classes or bounds are the policy's.
    """

    kind = "additive"
    _noun = "additive model"

    def __init__(
        self,
        rows: TableQuery,
        epsilon: Any,
        delta: Any,
        formula: str,
        *,
        bins: int = 32,
        rounds: int = 10,
        max_rows: int | None = None,
    ) -> None:
        super().__init__(rows, epsilon, delta, formula, max_rows)
        row_epsilon, row_delta = self.budget.of_a_row
        if row_delta == 0:
            raise ArgumentError(
                "delta must be above 0: the noise of an additive model is Gaussian; give "
                "delta=..., or the policy's [budget] a delta"
            )
        self._run = Boosting(
            tuple(map(column_of, self.domain.attributes[:-1])),
            row_epsilon,
            row_delta,
            self._question.neighbours,
            *shape_of(len(self.target.classes or ())),
            check.whole("bins", bins, 2, most=1024),
            check.whole("rounds", rounds, 1, most=1000),
            self._question.max_rows,
        )

    @property
    def _loss(self) -> Loss:
        return self._run.loss

    def _measured(self) -> tuple[tuple[str, str], ...]:
        run = self._run
        columns = count_text(len(run.columns), "column")
        return (
            ("rows of each cell", f"once for {columns}; standard deviation "
             f"{number_text(run.of_count)} rows"),
            ("sums of residuals", f"{run.rounds} rounds over {columns}; standard deviation "
             f"{number_text(run.of_sum)} rows that are wholly wrong"),
            ("law", "discrete Gaussian, added to exact whole numbers"),
        )  # fmt: skip

    def _said(self) -> tuple[dict[str, str], list[dict[str, Any]]]:
        run = self._run
        noise = {"mechanism": run.noise.title, "sigma2": str(run.noise.sigma2)}
        measurements = [
            {"measures": {"node": what}, **noise, "times": times, "unit": unit}
            for what, times, unit in (
                ("rows of cells", str(len(run.columns)), f"1/{run.weight}"),
                ("sums of residuals", str(len(run.columns) * run.rounds), "1/1024"),
            )
        ]
        return {"bins": str(run.bins), "rounds": str(run.rounds)}, measurements

    def _predicted(self, cells: Sequence[Integers], kept: Integers, answers: Integers) -> Floats:
        classes = len(self.target.classes or ())
        residuals = (
            residuals_of_classes(answers, classes)
            if classes
            else residuals_of_numbers(np.asarray(answers, dtype=np.float64) - 0.5)
        )
        margins = self._run.run(cells, kept, residuals).margins(cells)
        if not classes:
            return np.asarray(np.clip(margins[:, 0], -1, 1) + 0.5)
        if classes > 2:
            margins = margins[:, 1:2] - margins[:, :1]
        return np.asarray(1 / (1 + np.exp(-np.clip(margins[:, 0], -700, 700))))

    def _fit(self, places: Integers, counts: Integers, tell: Told) -> dict[str, Any]:
        run, (*cells, answers) = self._run, places.T
        known = answers < self.domain.attributes[-1].inner
        fitted = run.run(cells, counts * known, self._residuals(answers, known), tell)
        return {
            "bins": run.bins,
            "rounds": run.rounds,
            "columns": [stored(column) for column in run.columns],
            "terms": [
                {
                    "joined": term.joined.tolist(),
                    "rows": term.rows.tolist(),
                    "scores": term.scores.tolist(),
                }
                for term in fitted.terms
            ],
            "intercept": fitted.intercept.tolist(),
        }

    def _residuals(self, answers: Any, known: Any) -> Residuals:
        target = self.target
        if target.classes is not None:
            return residuals_of_classes(answers, len(target.classes))
        assert target.bounds is not None
        values: Floats = target.values[np.where(known, answers, 0)]
        return residuals_of_numbers(within(values, *target.bounds))

    @staticmethod
    def _model(content: Mapping[str, Any]) -> AdditiveModel:
        return additive_from(content)


def additive_from(content: Mapping[str, Any]) -> AdditiveModel:
    """The estimator that a release left, from plain data; what is not one raises."""
    taught = TrainingRecord.of(content)
    outputs, _ = shape_of(len(taught.classes or ()))
    terms = []
    for column, found in zip(taught.columns, content["terms"], strict=True):
        joined = np.array(found["joined"], dtype=np.int64)
        rows, scores = finite(found["rows"]), finite(found["scores"])
        if joined.shape != (column.cells,) or scores.shape != (len(rows), outputs):
            raise ValueError("of another shape")
        if sorted(set(joined.tolist())) != list(range(len(rows))):
            raise ValueError("of other cells")
        terms.append(ColumnTerm(column, joined, rows, scores))
    fitted = FittedBoosting(tuple(terms), finite(content["intercept"]))
    if fitted.intercept.shape != (outputs,):
        raise ValueError("of another shape")
    common = taught.cost | {"bins": content["bins"], "rounds": content["rounds"]}
    made: AdditiveModel
    if taught.classes is None:
        assert taught.bounds is not None
        made = AdditiveRegressor(target_bounds=taught.bounds, **common)
    else:
        made = AdditiveClassifier(classes=taught.classes, **common)
        made.classes_ = labels_of(taught.classes)
    made._target = taught.target
    return made._hold(fitted, taught.columns, taught.loss, taught.protects)
