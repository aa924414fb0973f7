"""Linear and logistic regressions of a protected table, as models that predict.

A linear regression is `TableQuery.infer`'s: its sums are made in the engine, and of a unit with
several rows the average counts. A logistic one needs its rows more than once, each time where the
last answer says; so they are read once, of each unit at most m, as the cells that their values lie
in, and a value stands for the middle of its cell.

Sensitivity of the logistic one. `dither.inference.regression._descent` proves its loss for a row
that is added or removed, whatever its values. A unit of m rows is a group of as many
(`Loss.group`); a unit that is replaced, of twice as many: m are removed and m added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._display import Explanation, Node
from dither._display import table as shown_table
from dither._format import Printable, cost_text, number_text, wrapped
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Target
from dither.inference.regression import _formula as fm
from dither.inference.regression._descent import DescentRelease
from dither.inference.regression._linear_regression import length_of
from dither.inference.regression._logistic import logistic_of
from dither.inference.regression._scores import ScoreModel
from dither.inference.regression._terms import names_of
from dither.learn.tables._columns import middles, read_value, stored_value
from dither.learn.tables._model import LearnedModel, loss_of
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._charge import group_factor
from dither.query.tables._counts import ExactTables, TablesQuestion
from dither.query.tables._domain import Attribute, domain_of
from dither.query.tables._question import CellQuestion
from dither.session._request import (
    AnsweredRequest,
    PricedQuestion,
    Progress,
    Request,
    sizes_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from dither.inference.tables._question import InferencePreview
    from dither.query._builder import TableQuery

__all__ = ["FormulaModel", "LinearQuestion", "LogisticQuestion", "regression_from"]

Floats = npt.NDArray[np.float64]

_CELLS = 1024
_MOST = 40
"""Columns of regressors: noise grows with the root of them."""


class LinearQuestion(PricedQuestion[LearnedModel]):
    """A linear regression that may be explained and previewed, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).linear(formula)``. It is the question of
    `Inference.regression`, with what comes of it kept as a model.
    """

    _noun = "linear regression"
    _gives = (LearnedModel,)

    def __init__(self, rows: TableQuery, epsilon: Any, delta: Any, formula: str) -> None:
        self._inferred = rows.infer(epsilon, delta).regression(formula)
        self.formula = " ".join(formula.split())

    @property
    def loss(self) -> Loss:
        """What a release would lose."""
        return self._inferred.loss

    def explain(self) -> Explanation:
        """Who is protected, how far one unit moves each sum, the noise and the cost."""
        return self._inferred.explain()

    def preview(self, sizes: Sequence[int] = (1_000, 10_000, 100_000)) -> InferencePreview:
        """The half-width of the first slope's interval, for some numbers of people."""
        return self._inferred.preview(sizes)

    @property
    def _about(self) -> str:
        return self.formula

    def _request(self, tell: Progress) -> Request:
        return self._inferred._request(tell)

    def _read(self, answered: AnsweredRequest) -> LearnedModel:
        found = self._inferred._read(answered)
        content = _content("linear", self.formula, found) | {
            "table": self._inferred._question._plan.table.name,
            "certificate": found.certificate.to_dict(),
        }
        return LearnedModel(content, regression_from, replayed=answered.replayed is not None)


class LogisticQuestion(CellQuestion[LearnedModel]):
    """A logistic regression that may be explained, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).logistic(formula)``.
    """

    _noun = "logistic regression"
    _gives = (LearnedModel,)

    def __init__(
        self,
        rows: TableQuery,
        epsilon: Any,
        delta: Any,
        formula: str,
        *,
        max_rows: int | None = None,
    ) -> None:
        answer, terms = fm.parsed(formula)
        self.formula = " ".join(formula.split())
        parts = [part for term in terms for part in term]
        factors = {name for part in parts if (name := fm.named_factor(part)) is not None}
        names = list(dict.fromkeys(n for part in parts for n in names_of(part)))
        if not answer.isidentifier():
            raise ArgumentError("the response must be the name of a column of yes and no")
        if not names or answer in names:
            raise ArgumentError("formula must have columns beside the response")
        domain = domain_of(rows, [*names, answer], _CELLS)
        self._classes = _yes_or_no(domain.attributes[-1])
        bounds, levels = {}, {}
        for attribute in domain.attributes[:-1]:
            if attribute.name in factors or not attribute.kind.numeric:
                levels[attribute.name] = _levels(attribute)
            else:
                bounds[attribute.name] = _ends(attribute)
        self._design = fm.read_design(formula, bounds, levels, binary=True)
        columns, count = len(self._design.columns), len(self._design.terms)
        if not 0 < columns <= _MOST:
            raise ArgumentError(
                f"formula has {columns} columns of regressors, levels counted apart: from 1 to "
                f"{_MOST} can be asked"
            )
        question = TablesQuestion(rows, domain, max_rows=max_rows)
        super().__init__(question, question.budget(epsilon, delta))
        if not self.budget.of_a_row[1]:
            raise ArgumentError("delta must be above 0: the noise is Gaussian; give delta=...")
        reach = length_of(count, None)
        self._noisy = DescentRelease(columns, count, self._target(), reach)

    def _target(self) -> Target:
        """What the mechanism may lose for one row: a unit's budget, where it has several."""
        (epsilon, delta), size = self.budget.of_a_row, self._question.max_rows
        if size == 1:
            return Target(epsilon, delta, self._question.neighbours)
        if self._question.neighbours is Neighbours.REPLACE:
            size *= 2
        wide = group_factor(epsilon / size, size)
        if wide is None:
            raise ArgumentError("epsilon is too large for units of several rows")
        return Target(epsilon / size, delta / wide, Neighbours.ADD_REMOVE)

    @property
    def _loss(self) -> Loss:
        """Of the release, for one of the units that the mechanism's rows belong to."""
        found, size = self._noisy.loss, self._question.max_rows
        if size > 1:
            found = found.group(size)
            if self._question.neighbours is Neighbours.REPLACE:
                found = found.to_replace()
        # What a row may lose was chosen such that a group of these loses no more than this.
        return found.with_charge(Charge(*self.budget.of_a_row, found.charge.rho))

    @property
    def _about(self) -> str:
        return self.formula

    def _nodes(self) -> tuple[Node, ...]:
        design = self._design
        measured = (
            ("coefficients", f"{len(design.names)}, of {design.formula}"),
            ("leaves", "a Gram matrix, a few scores of the likelihood and its information"),
            ("law", "Gaussian on a lattice, added to exact sums"),
        )
        return Node("measured", measured), self._costs(), self._noted()

    def preview(self, sizes: Sequence[int] = (1_000, 10_000)) -> LogisticPreview:
        """The half-width of the first slope's interval, for tables of some sizes.

        Parameters
        ----------
        sizes : sequence of int
            Public guesses of the number of rows, up to a million.

        Returns
        -------
        LogisticPreview
            Of rows that are made up: spread evenly over bounds, half of them yes.
        """
        numbers = sizes_of(sizes, most=10**6)
        widths = []
        for n in numbers:
            places = np.arange(n)[:, None] * np.sqrt(2.0 + np.arange(len(self._design.columns)))
            points = np.rint((2 * (places % 1) - 1) * Bounds.steps).astype(np.int64)
            answers = np.where(np.arange(n) % 2, Bounds.steps, -Bounds.steps)
            scored = self._noisy.release(np.column_stack([points, answers]))
            title, loss = self.formula, self._noisy.loss
            low, high = logistic_of(self._design, ScoreModel(scored), loss, title, 0).interval(
                0.95
            )[1]
            widths.append(float(high - low) / 2)
        first = self._design.names[1]
        return LogisticPreview(self.formula, *self._cost, first, tuple(numbers), tuple(widths))

    def _notes(self) -> list[str]:
        found = self._question.notes()
        numbers = [a.name for a in self.domain.attributes[:-1] if a.edges is not None]
        if numbers:
            found.append(
                f"of {', '.join(numbers)} a row is known by the cell that its value lies in, and "
                "counts with the middle of it"
            )
        found.append("rows in which a value is missing or not declared do not count")
        return found

    def _asked(self) -> dict[str, Any]:
        return {"what": self._noun, "formula": self.formula}

    def _measurements(self) -> list[dict[str, Any]]:
        noise = self._noisy.noise
        return [
            {
                "measures": {"node": "scores of a logistic regression"},
                "mechanism": "Gaussian on a lattice",
                "variance": str(Fraction(noise.variance)),
                "step": str(noise.step),
            }
        ]

    def _read(self, answered: AnsweredRequest) -> LearnedModel:
        replayed = answered.replayed is not None
        return LearnedModel(answered.content, regression_from, replayed=replayed)

    def _measure(self, exact: ExactTables, tell: Progress) -> dict[str, Any]:
        rows = exact.rows()
        places = np.repeat(rows.places, rows.counts, axis=0)
        frame = {
            attribute.name: self._values(attribute, own)
            for attribute, own in zip(self.domain.attributes, places.T, strict=True)
        }
        scored = self._noisy.release(self._design.rows(frame))
        title = f"logistic regression {self._design.formula}"
        found = logistic_of(self._design, ScoreModel(scored), self._noisy.loss, title, 0)
        return _content("logistic", self.formula, found) | {
            "table": self._question.table,
            "target": {
                "name": self._design.answer,
                "classes": [stored_value(v) for v in self._classes],
                "bounds": None,
            },
            "notes": [*found.notes, *self._notes()],
        }

    def _values(self, attribute: Attribute, places: Any) -> Any:
        """What stands for each row: a number, or a level; NaN, or None, where it is missing."""
        missing = places >= attribute.inner
        if attribute is self.domain.attributes[-1]:
            return np.where(missing, np.nan, places)
        if attribute.name in self._design.levels:
            listed = np.empty(attribute.inner + 1, dtype=object)
            listed[:-1] = [_level(v) for v in attribute.values or ()]
            return listed[np.where(missing, attribute.inner, places)]
        return np.where(missing, np.nan, middles(attribute)[np.where(missing, 0, places)])


@dataclass(frozen=True, eq=False)
class LogisticPreview(Printable):
    """How wide the interval of a slope will be.

    Parameters
    ----------
    formula : str
    epsilon, delta : Fraction
        What it would cost.
    first : str
        The slope.
    sizes : tuple of int
        Numbers of rows.
    widths : tuple of float
        Half-widths of the interval at 95 %; infinite where noise hides it.
    """

    formula: str
    epsilon: Fraction
    delta: Fraction
    first: str
    sizes: tuple[int, ...]
    widths: tuple[float, ...]

    def summary(self) -> str:
        """A line for each size."""
        rows = [
            [f"{n:,}", number_text(width, 3) if math.isfinite(width) else "hidden by noise"]
            for n, width in zip(self.sizes, self.widths, strict=True)
        ]
        lines = [f"{self.formula}, at {cost_text(self.epsilon, self.delta)}"]
        lines += shown_table(["rows", f"half-width of {self.first}"], rows)
        return "\n".join([*lines, *wrapped("intervals at 95 %, of rows that are made up")])


def _yes_or_no(attribute: Attribute) -> tuple[Any, Any]:
    if attribute.values not in ((False, True), (0, 1)):
        raise ArgumentError(
            f"{attribute.name} cannot be told by a logistic regression: it must be a boolean, or "
            "a whole number that is declared to be 0 or 1"
        )
    no, yes = attribute.values
    return no, yes


def _level(value: Any) -> Any:
    """A declared value as tables hold it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def _levels(attribute: Attribute) -> tuple[Any, ...]:
    if attribute.values is None or attribute.period is not None or attribute.clamped:
        raise ArgumentError(
            f"{attribute.name} has no declared levels: give its values in the policy"
            + (", or use it as a number" if attribute.kind.numeric else "")
        )
    return tuple(map(_level, attribute.values))


def _ends(attribute: Attribute) -> tuple[Fraction, Fraction]:
    """The bounds of a number, by what is declared of it."""
    if attribute.bounds is not None:
        return Fraction(attribute.bounds[0]), Fraction(attribute.bounds[1])
    listed = [Fraction(v) for v in attribute.values or ()]  # type: ignore[arg-type]
    return min(listed), max(listed)


def _content(kind: str, formula: str, found: Any) -> dict[str, Any]:
    """Coefficients as plain data."""
    design, ends = found.design, found.interval(0.95)
    needed = dict.fromkeys(
        name
        for column in design.columns
        for name in (*(n for part in column.parts for n in names_of(part)),
                     *(n for n, _ in column.where))
    )  # fmt: skip
    return {
        "kind": kind,
        "formula": formula,
        "target": {"name": design.answer, "classes": None, "bounds": None},
        "columns": [{"name": name} for name in needed],
        "names": list(design.names),
        "estimate": list(map(_plain, found.estimate)),
        "lower": [_plain(low) for low, _ in ends],
        "upper": [_plain(high) for _, high in ends],
        "numbers": {n: [str(b.lower), str(b.upper)] for n, b in design.bounds.items()},
        "levels": {n: [stored_value(v) for v in known] for n, known in design.levels.items()},
        "notes": list(found.notes),
    }


def _plain(value: float) -> float | None:
    """JSON knows no infinity."""
    return float(value) if math.isfinite(value) else None


class FormulaModel(Printable):
    """A regression by formula that predicts; its coefficients have the intervals of its release.

    Parameters
    ----------
    content : mapping
        What was released.

    Attributes
    ----------
    params : dict
        Coefficients by name.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.kind, self.loss_ = str(content["kind"]), loss_of(content)
        levels = {name: tuple(map(read_value, known)) for name, known in content["levels"].items()}
        binary = self.kind == "logistic"
        bounds = {n: (Fraction(a), Fraction(b)) for n, (a, b) in content["numbers"].items()}
        self.design = fm.read_design(content["formula"], bounds, levels, binary=binary)
        self._estimate = np.array(content["estimate"], dtype=np.float64)
        ends = [_read(content[side], sign) for side, sign in (("lower", -1), ("upper", 1))]
        self.ends = np.stack(ends, axis=1)
        if self._estimate.shape != (len(self.design.names),) or len(self.ends) != len(self.names):
            raise ValueError("of another shape")
        self._protects = str(content["certificate"]["text"]["protects"])

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return self.design.names

    @property
    def params(self) -> dict[str, float]:
        """Coefficients by name."""
        return dict(zip(self.names, self._estimate.tolist(), strict=True))

    @property
    def reach(self) -> Floats:
        """By column: how far the middle of its values, or a level, is from what it is compared to.

        A number's whole range, and 1 of a level: by so much a coefficient is multiplied to be drawn
        beside others.
        """
        columns = self.design.columns
        wide = [c.bounds.upper if c.where else c.bounds.upper - c.bounds.lower for c in columns]
        return np.array([float(w) for w in wide])

    def decision_function(self, frame: Any) -> Floats:
        """The sum of the columns by their coefficients, shape (n,)."""
        points = self.design.points(frame)
        points = np.where(points == fm.MISSING, 0, points)
        found = np.full(len(points), self._estimate[0])
        for j, column in enumerate(self.design.columns):
            own = float(column.bounds.middle) + float(column.bounds.half) * (
                points[:, j] / Bounds.steps
            )
            found = found + own * self._estimate[j + 1]
        return found

    def predict(self, frame: Any) -> npt.NDArray[Any]:
        """The expected number of each row, shape (n,).

        A row that misses something is taken to be one of middles and reference levels.
        """
        return self.decision_function(frame)

    def summary(self) -> str:
        """The coefficients with their intervals, and what they cost."""
        charge = self.loss_.charge
        rows = [
            [name, number_text(value), number_text(low), number_text(high)]
            for name, value, (low, high) in zip(
                self.names, self._estimate.tolist(), self.ends.tolist(), strict=True
            )
        ]
        cost = f"cost: {cost_text(charge.epsilon, charge.delta)}; protects {self._protects}"
        heads = ["", "coefficient", "[0.025", "0.975]"]
        return "\n".join([*wrapped(cost), *shown_table(heads, rows, left=1)])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what each column adds from one end of its bounds to the other."""
        from dither.plots.learn._learn import draw_coefficients

        return draw_coefficients(self, path)


class LogisticFormulaModel(FormulaModel):
    """A logistic regression by formula: `FormulaModel`, of log odds.

    Attributes
    ----------
    classes_ : tuple
        No and yes, as the policy declares them.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        no, yes = map(read_value, content["target"]["classes"])
        self.classes_ = (no, yes)

    def predict(self, frame: Any) -> npt.NDArray[Any]:
        """The likelier class of each row, shape (n,)."""
        likelier = (self.decision_function(frame) >= 0).astype(int)
        return np.asarray(np.array(self.classes_)[likelier])

    def predict_proba(self, frame: Any) -> Floats:
        """The probabilities of no and yes, shape (n, 2)."""
        yes = 1.0 / (1.0 + np.exp(-np.clip(self.decision_function(frame), -700.0, 700.0)))
        return np.column_stack([1.0 - yes, yes])


def regression_from(content: Mapping[str, Any]) -> FormulaModel:
    """The model that a release left, from plain data; what is not one raises."""
    return (LogisticFormulaModel if content["kind"] == "logistic" else FormulaModel)(content)


def _read(found: Sequence[float | None], sign: int) -> Floats:
    return np.array([sign * math.inf if v is None else v for v in found], dtype=np.float64)
