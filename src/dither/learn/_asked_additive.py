"""Additive models of a protected table: explained, previewed, charged once, then boosted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import Printable, cost_text, count_text, number_text, percent, wrapped
from dither.errors import ArgumentError
from dither.learn._additive import (
    AdditiveClassifier,
    AdditiveModel,
    AdditiveRegressor,
    Floats,
    labels_of,
    shape_of,
    within,
)
from dither.learn._asked_columns import (
    PredictedColumn,
    asked_columns,
    column_from,
    column_of,
    read_formula,
    read_value,
    stored,
    stored_value,
)
from dither.learn._asked_model import LearnedModel, loss_of
from dither.learn._boosting import (
    Boosting,
    ColumnTerm,
    FittedBoosting,
    Residuals,
    residuals_of_classes,
    residuals_of_numbers,
)
from dither.privacy import Loss
from dither.query._display import Explanation, Node, Unreleased
from dither.query._display import table as shown_table
from dither.query._domain import CellDomain
from dither.query._tables import ExactTables, TablesQuestion, heard

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["AdditivePreview", "AdditiveQuestion", "additive_from"]

_PREVIEWED = 1000
_ALL_NOISE, _HARDLY = 0.15, 0.3
"""Off by so much of the range of predictions, or seeing so little of a clear step, a model says
next to nothing."""


class AdditiveQuestion(Unreleased):
    """An additive model that may be explained and previewed, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).additive(formula)``.

    Notes
    -----
    *Sensitivity.* Of each unit at most ``max_rows`` rows count, the same in every count and sum,
    chosen by a keyed hash of the unit's own rows. `dither.learn._boosting` has the proof of what a
    unit of so many rows moves, whatever they hold. The columns' cells and the target's classes or
    bounds are the policy's.
    """

    _RESULTS = frozenset({"model", "predict", "save", "summary", "plot", "certificate"})

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
        target, names = read_formula(formula)
        self.domain: CellDomain = asked_columns(rows, target, names)
        self.target = PredictedColumn.of(self.domain.attributes[-1])
        self.formula = " ".join(formula.split())
        self._question = TablesQuestion(rows, self.domain, max_rows=max_rows)
        self.budget = self._question.budget(epsilon, delta)
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

    # --- before it is paid for --------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """What a release would lose."""
        return self._question.promised(self._run.loss)

    def explain(self) -> Explanation:
        """Who is protected, the cells, what is measured with which noise, and the cost."""
        run, target = self._run, self.target
        wanted = (
            f"a number from {number_text(target.bounds[0])} to {number_text(target.bounds[1])}"
            if target.bounds
            else f"one of {count_text(len(target.classes or ()), 'class', 'classes')}"
        )
        columns = count_text(len(run.columns), "column")
        noise = (
            ("rows of each cell", f"once for {columns}; standard deviation "
             f"{number_text(run.of_count)} rows"),
            ("sums of residuals", f"{run.rounds} rounds over {columns}; standard deviation "
             f"{number_text(run.of_sum)} rows that are wholly wrong"),
            ("law", "discrete Gaussian, added to exact whole numbers"),
        )  # fmt: skip
        cost = ("epsilon, delta", cost_text(self.budget.epsilon, self.budget.delta))
        children = (
            *self._question.nodes(),
            Node("predicts", ((target.name, wanted),)),
            Node("measured", noise),
            Node("cost, charged before a row is read", (cost,)),
            Node("notes", tuple(("", note) for note in self._notes())),
        )
        return Explanation(Node(f"additive model {self.formula}", children=children))

    def preview(self, sizes: Sequence[int] = (1_000, 10_000, 100_000)) -> AdditivePreview:
        """What noise alone does to predictions, for tables of some sizes.

        Parameters
        ----------
        sizes : sequence of int
            Public guesses of the number of rows.

        Returns
        -------
        AdditivePreview
            Two runs on rows that are made up. How far predictions lie off, as a root mean square,
            where the columns say nothing of the target and there is nothing to find but noise; and
            how much is seen of a clear step.
        """
        numbers = [check.whole("sizes", n, 1) for n in sizes]
        if not numbers:
            raise ArgumentError("sizes must hold at least one number of rows")
        found = tuple(self._tried(n) for n in numbers)
        return AdditivePreview(
            self.formula,
            self.budget.epsilon,
            self.budget.delta,
            tuple(numbers),
            tuple(off for off, _ in found),
            tuple(seen for _, seen in found),
            self.target.bounds,
        )

    def _tried(self, rows: int) -> tuple[float, float]:
        """Of rows that are made up: by how much predictions of nothing lie off, as a part of their
        range, and how much is seen of a step in the first column.
        """
        classes = len(self.target.classes or ())
        half = max(1, min(_PREVIEWED, rows // 10))
        # Of ten rows in a place each answer has as many; of a step, one has four times the others.
        low = np.repeat(np.arange(half), 10)
        cells = [
            np.floor(low * math.sqrt(2 + j) % 1 * (column.cells - 1)).astype(np.int64)
            for j, column in enumerate(self._run.columns)
        ]
        upper = cells[0] >= (self._run.columns[0].cells - 1) // 2
        kept = np.full(len(low), max(1, round(rows / len(low))))
        tens = np.tile(np.arange(10), half)
        even, step = tens % 2, np.where(upper, tens < 8, tens < 2).astype(np.int64)

        def predicted(answers: npt.NDArray[np.int64]) -> Floats:
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

        off = predicted(even) - 0.5
        found = predicted(step)
        seen = (found[upper].mean() - found[~upper].mean()) / 0.6 if upper.any() else 0.0
        return float(np.sqrt((off**2).mean())), min(1.0, max(0.0, float(seen)))

    def _notes(self) -> list[str]:
        target = self.target
        found = self._question.notes()
        found.append(f"rows whose {target.name} is missing or not declared do not count")
        cut = [c.name for c in self._run.columns if c.ends is not None]
        if cut:
            found.append(
                f"of {', '.join(cut)} a row is known by the cell that its value lies in, one of "
                "those that the policy's bounds are cut into"
            )
        return found

    # --- the release ------------------------------------------------------------------------------

    def release(
        self, *, token: str | None = None, progress: Callable[[int], None] | None = None
    ) -> LearnedModel:
        """Charge the ledger, train, and give the model.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with it, the stored model comes back, and nothing is
            charged.
        progress : callable, optional
            Told after each round how many are done.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        run, tell = self._run, heard(progress)
        asked = {
            "what": "additive model",
            "bins": str(run.bins),
            "rounds": str(run.rounds),
        }
        noise = {"mechanism": run.noise.title, "sigma2": str(run.noise.sigma2)}
        measurements = [
            {"measures": {"node": what}, **noise, "times": times, "unit": unit}
            for what, times, unit in (
                ("rows of cells", str(len(run.columns)), f"1/{run.weight}"),
                ("sums of residuals", str(len(run.columns) * run.rounds), "1/1024"),
            )
        ]
        found = self._question.release(
            self.budget,
            run.loss,
            asked,
            lambda exact: self._train(exact, tell),
            listed=True,
            measurements=measurements,
            token=token,
        )
        return LearnedModel(found.content, additive_from, replayed=found.replayed is not None)

    def _train(self, exact: ExactTables, tell: Callable[[int], None]) -> dict[str, Any]:
        """The one step that sees rows: what is released, as plain data."""
        run, target, rows = self._run, self.target, exact.rows()
        *places, answers = rows.places.T
        known = answers < self.domain.attributes[-1].inner
        fitted = run.run(places, rows.counts * known, self._residuals(answers, known), tell)
        return {
            "kind": "additive",
            "table": self._question.table,
            "formula": self.formula,
            "target": {
                "name": target.name,
                "classes": target.classes and [stored_value(v) for v in target.classes],
                "bounds": target.bounds and list(target.bounds),
            },
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
            "notes": self._notes(),
        }

    def _residuals(self, answers: Any, known: Any) -> Residuals:
        target = self.target
        if target.classes is not None:
            return residuals_of_classes(answers, len(target.classes))
        assert target.bounds is not None
        values: Floats = target.values[np.where(known, answers, 0)]
        return residuals_of_numbers(within(values, *target.bounds))

    def __repr__(self) -> str:
        return f"<additive model, not released yet: {self.formula}>"


@dataclass(frozen=True, eq=False)
class AdditivePreview(Printable):
    """What noise alone does to the predictions of an additive model.

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


def additive_from(content: Mapping[str, Any]) -> AdditiveModel:
    """The estimator that a release left, from plain data; what is not one raises."""
    columns = tuple(map(column_from, content["columns"]))
    target, loss = content["target"], loss_of(content)
    classes = None if target["classes"] is None else [read_value(v) for v in target["classes"]]
    outputs, _ = shape_of(len(classes or ()))
    terms = []
    for column, found in zip(columns, content["terms"], strict=True):
        joined = np.array(found["joined"], dtype=np.int64)
        rows, scores = _numbers(found["rows"]), _numbers(found["scores"])
        if joined.shape != (column.cells,) or scores.shape != (len(rows), outputs):
            raise ValueError("of another shape")
        if sorted(set(joined.tolist())) != list(range(len(rows))):
            raise ValueError("of other cells")
        terms.append(ColumnTerm(column, joined, rows, scores))
    fitted = FittedBoosting(tuple(terms), _numbers(content["intercept"]))
    if fitted.intercept.shape != (outputs,):
        raise ValueError("of another shape")
    common: dict[str, Any] = {
        "epsilon": loss.charge.epsilon,
        "delta": loss.charge.delta,
        "neighbours": loss.neighbours,
        "bins": content["bins"],
        "rounds": content["rounds"],
    }
    made: AdditiveModel
    if classes is None:
        low, high = _numbers(target["bounds"]).tolist()
        made = AdditiveRegressor(target_bounds=(low, high), **common)
    else:
        made = AdditiveClassifier(classes=classes, **common)
        made.classes_ = labels_of(classes)
    made._target = str(target["name"])
    return made._hold(fitted, columns, loss, content["certificate"]["text"]["protects"])


def _numbers(found: Any) -> Floats:
    made = np.array(found, dtype=np.float64)
    if not np.isfinite(made).all():
        raise ValueError("not finite")
    return made
