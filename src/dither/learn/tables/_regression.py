"""Linear and logistic regressions of a protected table, as models that predict.

A linear regression is `TableQuery.infer`'s: its sums are made in the engine, and of a unit with
several rows the average counts. A logistic one is `dither.inference.tables._logistic`'s, of which
each unit may have as many rows as the policy lets count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._display import Explanation
from dither._display import table as shown_table
from dither._format import Printable, cost_text, number_text, wrapped
from dither.inference.engine._inputs import Bounds
from dither.inference.regression import _formula as fm
from dither.inference.regression._terms import names_of
from dither.inference.tables._logistic import LogisticScores
from dither.learn.tables._columns import read_value, stored_value
from dither.learn.tables._model import LearnedModel, loss_of
from dither.privacy import Loss
from dither.query.tables._counts import ExactTables
from dither.session._request import AnsweredRequest, PricedQuestion, Progress, Request

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from dither.inference.tables._question import InferencePreview
    from dither.query._builder import TableQuery

__all__ = ["FormulaModel", "LinearQuestion", "LogisticQuestion", "regression_from"]

Floats = npt.NDArray[np.float64]


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


class LogisticQuestion(LogisticScores[LearnedModel]):
    """A logistic regression that may be explained, and released at its price.

    Made by ``session.table("visits").learn(epsilon=1).logistic(formula)``.
    """

    _gives = (LearnedModel,)

    def _measure(self, exact: ExactTables, tell: Progress) -> dict[str, Any]:
        found = self.read(self._scored(exact), self._noisy.loss)
        return _content("logistic", self.formula, found) | {
            "table": self._question.table,
            "target": {
                "name": self._design.answer,
                "classes": [stored_value(v) for v in self._classes],
                "bounds": None,
            },
            "notes": [*found.notes, *self._notes()],
        }

    def _read(self, answered: AnsweredRequest) -> LearnedModel:
        replayed = answered.replayed is not None
        return LearnedModel(answered.content, regression_from, replayed=replayed)


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
