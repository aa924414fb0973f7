"""Logistic regression of a protected table.

It needs its rows more than once, each time where the last answer says; so they are read once, of
each unit at most m, as the cells that their values lie in, and a value stands for the middle of its
cell.

Sensitivity. `dither.inference.regression._descent` proves its loss for a row that is added or
removed, whatever its values. A unit of m rows is a group of as many (`Loss.group`); a unit that is
replaced, of twice as many: m are removed and m added. For an estimate of people m is 1: rows of one
person are no independent sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dither._display import Node
from dither._display import table as shown_table
from dither._format import Printable, cost_text, number_text, wrapped
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.regression import _formula as fm
from dither.inference.regression._descent import DescentRelease, ScoreRelease
from dither.inference.regression._linear_regression import length_of
from dither.inference.regression._logistic import LogisticEstimate, logistic_of
from dither.inference.regression._scores import ScoreModel
from dither.inference.regression._terms import names_of
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._charge import group_factor
from dither.query.tables._counts import ExactTables, TablesQuestion
from dither.query.tables._domain import Attribute, domain_of, middles
from dither.query.tables._question import CellQuestion
from dither.session._certificate import Certificate
from dither.session._request import AnsweredRequest, Progress, sizes_of

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["LogisticInference", "LogisticPreview", "LogisticScores"]

Released = TypeVar("Released")

_CELLS = 1024
_MOST = 40
"""Columns of regressors: noise grows with the root of them."""


class LogisticScores(CellQuestion[Released]):
    """A logistic regression that may be explained, and released at its price.

    What is made of the scores is said by who derives from it.
    """

    _noun = "logistic regression"

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

    def _scored(self, exact: ExactTables) -> ScoreRelease:
        """The noisy scores: the one step that touches data."""
        rows = exact.rows()
        places = np.repeat(rows.places, rows.counts, axis=0)
        frame = {
            attribute.name: self._values(attribute, own)
            for attribute, own in zip(self.domain.attributes, places.T, strict=True)
        }
        return self._noisy.release(self._design.rows(frame))

    def read(self, scored: ScoreRelease, loss: Loss) -> LogisticEstimate:
        """The coefficients, with intervals."""
        title = f"logistic regression {self._design.formula}"
        return logistic_of(self._design, ScoreModel(scored), loss, title, 0)

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


class LogisticInference(LogisticScores[LogisticEstimate]):
    """The coefficients of a logistic regression, with intervals that count who was sampled.

    Made by ``session.table("visits").infer(epsilon=1).logistic_regression(formula)``.
    """

    _noun = "scores of a logistic regression"
    _gives = (LogisticEstimate,)

    def __init__(
        self, rows: TableQuery, epsilon: Any, delta: Any, formula: str, unit: str | None
    ) -> None:
        self._unit = unit
        super().__init__(rows, epsilon, delta, formula, max_rows=None if unit is None else 1)

    def _measure(self, exact: ExactTables, tell: Progress) -> dict[str, Any]:
        return {"scores": _stored(self._scored(exact))}

    def _read(self, answered: AnsweredRequest) -> LogisticEstimate:
        found = self.read(_scores(answered.content["scores"]), self.loss)
        who: tuple[str, ...] = ("rows are an independent sample",)
        if self._unit is not None:
            who = (
                f"people, identified by {self._unit}, are an independent sample",
                f"one row of each {self._unit} counts",
            )
        return replace(
            found,
            assumptions=(*who, *found.assumptions[1:-1]),
            notes=(*found.notes, *self._notes()),
            certificate=Certificate(answered.content["certificate"]),
            people=self._unit is not None,
            released={"scores": answered.content["scores"]},
        )


def _stored(found: ScoreRelease) -> dict[str, Any]:
    """Scores as plain data."""
    return {
        "at": found.at.tolist(),
        "score": found.score.tolist(),
        "information": found.information.tolist(),
        "of_score": float(found.of_score),
        "of_information": float(found.of_information),
        "apart": None if found.apart is None else found.apart.tolist(),
    }


def _scores(content: Mapping[str, Any]) -> ScoreRelease:
    """What `_stored` wrote.

    Examples
    --------
    >>> one = ScoreRelease(np.zeros(1), np.ones(1), np.eye(1), 2.0, 3.0)
    >>> _scores(_stored(one)).information, _scores(_stored(one)).apart
    (array([[1.]]), None)
    """

    def read(name: str) -> Floats:
        return np.array(content[name], dtype=np.float64)

    return ScoreRelease(
        read("at"),
        read("score"),
        read("information"),
        float(content["of_score"]),
        float(content["of_information"]),
        None if content["apart"] is None else read("apart"),
    )


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
