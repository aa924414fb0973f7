"""Random forests of a protected table: explained, previewed, charged once, then grown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._format import count_text, number_text
from dither.learn._estimator import labels_of, within
from dither.learn._noise import Noise, PrivacyParameters
from dither.learn.tables._columns import column_of, stored
from dither.learn.tables._rows import RowsQuestion, Told
from dither.learn.tables._stored import TrainingRecord, finite
from dither.learn.tabular.trees._forest import (
    Forest,
    RandomForestClassifier,
    RandomForestRegressor,
    forest_run,
)
from dither.learn.tabular.trees._tree import ReleasedForest, Tree
from dither.learn.tabular.trees._trees import UNIT
from dither.mechanisms import Exponential
from dither.privacy import Loss

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["ForestQuestion", "forest_from"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class ForestQuestion(RowsQuestion):
    """A random forest that may be explained and previewed, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).forest(formula)``.

    Notes
    -----
    *Sensitivity.* Of each unit at most ``max_rows`` rows count, in every tree the same, chosen by a
    keyed hash of the unit's own rows. `dither.learn.tabular.trees._trees` has the proof of what a
    unit of so many rows moves, whatever they hold. The columns' cells and the target's classes or
    bounds are the policy's; which columns and ranges a tree tries is drawn without regard to rows.
    """

    kind = "forest"
    _noun = "random forest"

    def __init__(
        self,
        rows: TableQuery,
        epsilon: Any,
        delta: Any,
        formula: str,
        *,
        n_estimators: int = 16,
        max_depth: int = 5,
        max_features: int = 4,
        splits: str = "auto",
        max_rows: int | None = None,
    ) -> None:
        super().__init__(rows, epsilon, delta, formula, max_rows)
        self._run = forest_run(
            tuple(map(column_of, self.domain.attributes[:-1])),
            len(self.target.classes or ()),
            PrivacyParameters(*self.budget.of_a_row, self._question.neighbours),
            n_estimators,
            max_depth,
            max_features,
            splits,
            self._question.max_rows,
        )

    @property
    def _loss(self) -> Loss:
        return self._run.loss

    def _measured(self) -> tuple[tuple[str, str], ...]:
        run = self._run
        if run.drawn:
            found = self._of_leaves(run.noisy.noise, run.trees)
            return (("leaves of splits by chance", found), _law(run.noisy.noise))
        rows, listed = run.planner.rows, run.planner.listed
        most = run.planner.plan(1e18)
        what = "by class" if run.classes else "and their mean"
        size = f"1 of 1 question to {run.trees} of {run.depth} levels, by noisy rows"
        measured = [("rows", f"once, {what}; {self._spread(rows)}"), ("trees", size)]
        for name, plan in (
            ("if they are few", run.planner.purely(1, 1)),
            ("if they are many", most),
        ):
            lists = f"; {count_text(listed, 'list')}: {self._spread(plan.lists)}" if listed else ""
            level = number_text(float(plan.level))
            measured.append((name, f"splits by the exponential mechanism, epsilon {level} a level"))
            measured.append(("", f"leaves: {self._of_leaves(plan.leaves, plan.trees)}{lists}"))
        return (*measured, _law(rows, most.leaves))

    def _spread(self, noise: Noise) -> str:
        return f"standard deviation {number_text(self._run.deviation(noise))} rows"

    def _of_leaves(self, noise: Noise, trees: int) -> str:
        return f"{count_text(trees, 'tree')}, each of all rows; {self._spread(noise)}"

    def _said(self) -> tuple[dict[str, str], list[dict[str, Any]]]:
        run = self._run
        asked = {
            "n_estimators": str(run.trees),
            "max_depth": str(run.depth),
            "max_features": str(run.tries),
            "splits": "drawn" if run.drawn else "auto",
        }
        unit = "1" if run.classes else f"1/{UNIT}"

        def table(what: str, noise: Noise, times: int) -> dict[str, Any]:
            measures = {"measures": {"node": what}, **noise.parameters()}
            return measures | {"times": str(times), "unit": unit}

        if run.drawn:
            return asked, [table("leaves of splits by chance", run.noisy.noise, run.trees)]
        found = [table("rows", run.planner.rows, 1)]
        plans = {"if rows are few": run.planner.purely(1, 1), "if many": run.planner.plan(1e18)}
        for when, plan in plans.items():
            if run.planner.listed:
                found.append(table(f"order of lists, {when}", plan.lists, run.planner.listed))
            splits = Exponential(plan.level / run.planner.units)
            measured = {"measures": {"node": f"levels of splits, {when}"}, **splits.parameters()}
            found.append(measured | {"times": str(plan.trees * plan.depth), "unit": "1 row"})
            found.append(table(f"leaves, {when}", plan.leaves, plan.trees))
        return asked, found

    def _predicted(self, cells: Sequence[Integers], kept: Integers, answers: Integers) -> Floats:
        classes = len(self.target.classes or ())
        targets = (
            _of_classes(answers, classes)
            if classes
            else _of_numbers(np.asarray(answers, dtype=np.float64) - 0.5)
        )
        found = self._run.run(cells, targets, stands=kept).mean(cells)
        if not classes:
            return np.asarray(np.clip(found[:, 0], -1, 1) + 0.5)
        shares = np.clip(found[:, :2], 1e-4, 1.0)
        return np.asarray(shares[:, 1] / shares.sum(axis=1))

    def _fit(self, places: Integers, counts: Integers, tell: Told) -> dict[str, Any]:
        run, target, (*cells, answers) = self._run, self.target, places.T
        known = answers < self.domain.attributes[-1].inner
        if target.classes is not None:
            targets = _of_classes(answers, len(target.classes))
        else:
            assert target.bounds is not None
            values = target.values[np.where(known, answers, 0)]
            targets = _of_numbers(within(values, *target.bounds))
        grown = run.run(cells, targets * known[:, None], tell, counts)
        return {
            "n_estimators": run.trees,
            "max_depth": run.depth,
            "max_features": run.tries,
            "splits": "drawn" if run.drawn else "auto",
            "columns": [stored(column) for column in run.columns],
            "orders": [order.tolist() for order in grown.orders],
            "trees": [
                {
                    "column": tree.column,
                    "code": tree.code,
                    "left": tree.left,
                    "values": values.tolist(),
                    "rows": rows.tolist(),
                }
                for tree, values, rows in zip(grown.trees, grown.values, grown.rows, strict=True)
            ],
        }

    @staticmethod
    def _model(content: Mapping[str, Any]) -> Forest:
        return forest_from(content)


def _law(*noises: Noise) -> tuple[str, str]:
    titles = " or ".join(dict.fromkeys(noise.title for noise in noises))
    return ("law", f"{titles}, added to exact whole numbers")


def _of_classes(answers: Integers, classes: int) -> Integers:
    return np.asarray(answers[:, None] == np.arange(classes), dtype=np.int64)


def _of_numbers(targets: Floats) -> Integers:
    """Of targets in [-1, 1]: what a tree sums."""
    whole = np.full(len(targets), UNIT)
    return np.column_stack([whole, np.rint(targets * UNIT)]).astype(np.int64)


def forest_from(content: Mapping[str, Any]) -> Forest:
    """The estimator that a release left, from plain data; what is not one raises."""
    taught = TrainingRecord.of(content)
    columns, classes = taught.columns, taught.classes
    orders = []
    for column, found in zip(columns, content["orders"], strict=True):
        order = np.array(found, dtype=np.int64)
        if order.shape != (column.cells,) or (order < 0).any():
            raise ValueError("of other cells")
        orders.append(order)
    trees, values, rows = [], [], []
    for found in content["trees"]:
        tree = _tree(found, len(columns))
        trees.append(tree)
        values.append(finite(found["values"]))
        rows.append(finite(found["rows"]))
        size = len(tree.column)
        if values[-1].shape != (size, len(classes or (0,))) or rows[-1].shape != (size,):
            raise ValueError("of another shape")
    if not trees:
        raise ValueError("no tree")
    grown = ReleasedForest(columns, tuple(orders), tuple(trees), tuple(values), tuple(rows))
    shape = ("n_estimators", "max_depth", "max_features", "splits")
    common = taught.cost | {name: content[name] for name in shape}
    made: RandomForestClassifier | RandomForestRegressor
    if classes is None:
        assert taught.bounds is not None
        made = RandomForestRegressor(target_bounds=taught.bounds, **common)
    else:
        made = RandomForestClassifier(classes=classes, **common)
        made.classes_ = labels_of(classes)
    return made._hold(grown, taught.loss, taught.protects)


def _tree(found: Mapping[str, Any], columns: int) -> Tree:
    """A tree whose ways all lead down to a leaf."""
    parts = [[int(v) for v in found[name]] for name in ("column", "code", "left")]
    size = len(parts[0])
    if not size or any(len(part) != size for part in parts):
        raise ValueError("of another shape")
    for node, (column, _, left) in enumerate(zip(*parts, strict=True)):
        if not -1 <= column < columns or (column >= 0 and not node < left < size - 1):
            raise ValueError("not a tree")
    return Tree(*parts)
