"""Marginals of a protected table: explained and previewed free of charge, released at their price.

``session.table("adult").marginals([["age", "sex"]], epsilon=1)`` is planned from public facts
alone, so the error of every table is known before anything is spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod, sqrt
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._display import table as shown_table
from dither._format import Printable, cost_text, half_width, level, number_text, wrapped
from dither.errors import ArgumentError
from dither.privacy import Loss, Neighbours
from dither.query.tables._counts import Counts, TablesQuestion
from dither.query.tables._domain import CELLS, CellDomain, domain_of
from dither.query.tables._question import CellQuestion
from dither.session._request import AnsweredRequest, Progress
from dither.synth.marginals._marginals import ReleasedMarginals, packed, reach
from dither.synth.marginals._planner import MOST_AXES, MarginalPlan, plan, subsets
from dither.synth.marginals._residuals import maximal, measured
from dither.synth.model._junction import Clique

if TYPE_CHECKING:
    import polars as pl

    from dither.query._builder import TableQuery

__all__ = ["MarginalsPreview", "MarginalsQuestion", "marginals"]

_MOST_NUMBERS = 1 << 26
"""Residuals of more whole numbers, all together, are refused: half a gigabyte."""

_MOST_RESIDUALS = 1 << 20
_SHOWN = 12

_OBJECTIVES = ("mean", "largest")


@dataclass(frozen=True, eq=False)
class MarginalsPreview(Printable):
    """How wide the intervals of marginals will be.

    Parameters
    ----------
    epsilon, delta : Fraction
        What they would cost.
    confidence : float
        Of the intervals.
    names : tuple of tuple of str
        The tables.
    cells : tuple of int
        How many each has.
    variances : tuple of float
        Of each cell of a table; exact.
    gap : float
        How much larger the largest weighted variance may be than the least possible, as a part.
    """

    epsilon: Fraction
    delta: Fraction
    confidence: float
    names: tuple[tuple[str, ...], ...]
    cells: tuple[int, ...]
    variances: tuple[float, ...]
    gap: float

    @property
    def widths(self) -> tuple[float, ...]:
        """The half-width of the interval about each cell, by table."""
        pairs = zip(self.variances, self.cells, strict=True)
        return tuple(reach(v, n, self.confidence) for v, n in pairs)

    def rmse(self, columns: int) -> float:
        """The root of the mean variance of a cell, over the tables of so many columns.

        Raises
        ------
        ArgumentError
            There are none.
        """
        found = [v for t, v in zip(self.names, self.variances, strict=True) if len(t) == columns]
        if not found:
            raise ArgumentError(f"columns: no table has {columns}")
        return sqrt(sum(found) / len(found))

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: ``table``, ``columns``, ``cells``, ``deviation`` and ``half_width``."""
        import polars as pl

        return pl.DataFrame(
            {
                "table": [", ".join(t) for t in self.names],
                "columns": [len(t) for t in self.names],
                "cells": list(self.cells),
                "deviation": [sqrt(v) for v in self.variances],
                "half_width": list(self.widths),
            }
        )

    def summary(self) -> str:
        """The tables, and by number of columns what is expected of them."""
        lines = [f"{len(self.names):,} tables, at {cost_text(self.epsilon, self.delta)}"]
        rows = [
            [" × ".join(t), f"{n:,}", half_width(w)]
            for t, n, w in zip(self.names, self.cells, self.widths, strict=True)
        ][:_SHOWN]
        lines += shown_table(["table", "cells", "±"], rows, left=1)
        if len(self.names) > _SHOWN:
            lines.append(f"... and {len(self.names) - _SHOWN:,} more")
        for columns in sorted({len(t) for t in self.names}):
            lines.append(
                f"tables of {columns}: {number_text(self.rmse(columns), 3)} is the root of a "
                "cell's mean squared error"
            )
        lines += wrapped(f"intervals at {level(self.confidence)}, of noise alone")
        return "\n".join(lines)


class MarginalsQuestion(CellQuestion[ReleasedMarginals]):
    """Marginals that may be explained and previewed free of charge, and released at their price.

    Notes
    -----
    A release is (epsilon, delta)-differentially private, and zCDP at the rho that its certificate
    states, for the unit and the neighbours that ``explain`` names:
    `dither.synth.marginals._residual_law` has the proof.
    """

    _noun = "marginals"
    _gives = (ReleasedMarginals,)

    def __init__(
        self,
        question: TablesQuestion,
        tables: tuple[Clique, ...],
        epsilon: Any,
        delta: Any,
        objective: str,
        weights: tuple[Fraction, ...] | None,
    ) -> None:
        super().__init__(question, question.budget(epsilon, delta))
        self._tables, self._objective, self._weights = tables, objective, weights
        if not self.budget.delta:
            raise ArgumentError(
                "delta must be above 0: marginals take Gaussian noise; give delta=..., or the "
                "policy's [budget] a delta"
            )
        domain = question.domain
        replaced = question.neighbours is Neighbours.REPLACE
        self._plan: MarginalPlan = plan(
            domain.sizes,
            tables,
            *self.budget.of_a_row,
            weights=None if weights is None else [float(w) for w in weights],
            largest=objective == "largest",
            rows=question.max_rows,
            replace_one=replaced,
            public_total=question.public_size,
            neighbours=question.neighbours,
        )

    @property
    def _loss(self) -> Loss:
        return self._plan.loss

    @property
    def _about(self) -> str:
        return f"{len(self._tables):,} tables"

    _title = "marginals"

    def _names(self, clique: Clique) -> tuple[str, ...]:
        return tuple(self.domain.names[i] for i in clique)

    def _facts(self) -> list[tuple[str, str]]:
        noise = [n.sigma2 for n in self._plan.noise.values() if n.sigma2]
        widths = [
            f"{number_text(sqrt(v), 3)}" for v in (min(noise, default=0), max(noise, default=0))
        ]
        aim = (
            "largest variance of a cell"
            if self._objective == "largest"
            else ("mean variance of a cell, over the tables")
        )
        facts = [
            ("tables", f"{len(self._tables):,}, of {self._cells:,} cells"),
            ("residuals", f"{len(noise):,}, each what a table says beyond all smaller ones"),
            ("noise", f"discrete Gaussian, of a deviation from {widths[0]} to {widths[1]}"),
            ("least", aim),
            ("cost", cost_text(*self._cost)),
        ]
        if self._question.public_size:
            facts.append(("rows", "their number is public, and has no noise"))
        return [*facts, *(("", note) for note in self._notes())]

    @property
    def _cells(self) -> int:
        return sum(self.domain.cells_in(t) for t in self._tables)

    def preview(self, *, confidence: float = 0.95) -> MarginalsPreview:
        """The exact variance of every cell to come, before anything is spent or read.

        Parameters
        ----------
        confidence : float
            Of the intervals.
        """
        return MarginalsPreview(
            *self._cost,
            check.confidence(confidence),
            tuple(self._names(t) for t in self._tables),
            tuple(self.domain.cells_in(t) for t in self._tables),
            tuple(self._plan.variance(t) for t in self._tables),
            self._plan.gap,
        )

    def _asked(self) -> dict[str, Any]:
        return {
            "what": "marginals",
            "tables": [list(map(str, t)) for t in self._tables],
            "objective": self._objective,
            "weights": None if self._weights is None else [str(w) for w in self._weights],
        }

    def _wanted(self) -> Sequence[Clique]:
        return maximal(self._tables)

    def _read(self, answered: AnsweredRequest) -> ReleasedMarginals:
        return ReleasedMarginals(answered.content, replayed=answered.replayed)

    def _measure(self, exact: Counts, tell: Progress) -> dict[str, Any]:
        noise = self._plan.noise
        residuals = measured(exact, self._plan)
        return {
            "domain": self.domain.to_list(),
            "tables": [list(t) for t in self._tables],
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "residuals": [[list(a), str(noise[a].sigma2), packed(residuals.pop(a))] for a in noise],
            "notes": self._notes(),
        }

    def _measurements(self) -> list[dict[str, Any]]:
        return [
            {
                "measures": {"node": "residual", "columns": list(self._names(a))},
                "mechanism": "discrete Gaussian, projected" if one.sigma2 else "none",
                "sigma2": str(one.sigma2),
                "projected": [str(n) for n in one.counted],
            }
            for a, one in self._plan.noise.items()
        ]


def marginals(
    rows: TableQuery,
    tables: int | Sequence[Sequence[str]],
    epsilon: Any,
    delta: Any = None,
    *,
    columns: Sequence[str] | None = None,
    objective: str = "mean",
    weights: Sequence[Any] | None = None,
    cells: int | Mapping[str, int] = CELLS,
    max_rows: int | None = None,
) -> MarginalsQuestion:
    """See `TableQuery.marginals`."""
    check.choice("objective", objective, _OBJECTIVES)
    if isinstance(tables, int) and not isinstance(tables, bool):
        domain = domain_of(rows, columns, cells)
        order = check.whole("tables", tables, 1, len(domain.names))
        if comb(len(domain.names), order) > _MOST_RESIDUALS:
            raise ArgumentError(f"tables: there are too many of {order} columns; name some")
        cliques = tuple(combinations(range(len(domain.names)), order))
    else:
        if columns is not None:
            raise ArgumentError("columns goes with a number of columns; tables names its own")
        named = _named(tables)
        domain = domain_of(rows, list(dict.fromkeys(c for t in named for c in t)), cells)
        cliques = tuple(domain.clique(t, "tables") for t in named)
    if len(set(cliques)) < len(cliques):
        raise ArgumentError("tables names a table twice; give it a larger weight instead")
    _check_size(domain, cliques)
    exact = None
    if weights is not None:
        exact = tuple(
            check.positive("weights", w) for w in check.listed("weights", weights, "numbers")
        )
        if len(exact) != len(cliques):
            raise ArgumentError(
                f"weights must be as many as the tables, {len(cliques):,}; got {len(exact):,}"
            )
    question = TablesQuestion(rows, domain, max_rows=max_rows)
    return MarginalsQuestion(question, cliques, epsilon, delta, objective, exact)


def _named(tables: Any) -> list[list[str]]:
    wanted = 'tables must be lists of columns, such as [["age", "sex"], ["age"]]'
    if isinstance(tables, str | bytes) or not isinstance(tables, Sequence):
        raise ArgumentError(wanted)
    found: list[list[str]] = []
    for one in tables:
        if isinstance(one, str | bytes) or not isinstance(one, Sequence):
            raise ArgumentError(wanted)
        if not one or not all(isinstance(c, str) for c in one):
            raise ArgumentError(wanted)
        found.append(list(one))
    if not found:
        raise ArgumentError("tables must hold at least one: a list of columns")
    return found


def _check_size(domain: CellDomain, cliques: Sequence[Clique]) -> None:
    """Refuse what could not be held, before anything is planned."""
    real = [tuple(i for i in t if domain.sizes[i] > 1) for t in cliques]
    widest = max(map(len, real))
    if widest > MOST_AXES:
        raise ArgumentError(f"tables: a table has at most {MOST_AXES} columns")
    if sum(2 ** len(t) for t in real) > 4 * _MOST_RESIDUALS:
        raise ArgumentError("tables: there are too many; ask for fewer, or of fewer columns")
    held: set[Clique] = set()
    numbers = 0
    for t in maximal(real):
        for a in subsets(t):
            if a not in held:
                held.add(a)
                numbers += prod(domain.sizes[i] - 1 for i in a)
        if numbers > _MOST_NUMBERS or domain.cells_in(t) > _MOST_NUMBERS:
            names = ", ".join(domain.names[i] for i in t)
            raise ArgumentError(
                f"tables: with {names} they have more than {_MOST_NUMBERS:,} cells; ask for "
                "fewer, or cut columns into fewer cells"
            )
