"""``session.table("adult").compare(synthetic, ...)``: distances of chosen tables, with noise.

Explained and previewed free of charge, from public facts; released at its price. `_compared` has
the sensitivity.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._format import Printable, cost_text, count_text, half_width, level
from dither._stats import two_sided
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.lab._frames import released
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Charge, Loss
from dither.query.tables._counts import Counts, TablesQuestion
from dither.query.tables._domain import CELLS, Clique, domain_of
from dither.query.tables._question import CellQuestion
from dither.session._request import AnsweredRequest, Progress
from dither.synth._compared import MeasuredDistances, apart, codes_of, counted

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["ComparisonPreview", "ComparisonQuestion", "compared"]

_MOST_TABLES = 100_000
_AT_ONCE = 64


class ComparisonPreview(Printable):
    """How wide the intervals of distances will be, by how many rows there turn out to be."""

    def __init__(self, deviation: float, tables: int, confidence: float) -> None:
        self._deviation, self.tables, self.confidence = deviation, tables, confidence

    def half_width(self, rows: int) -> float:
        """Of the interval of one distance, of so many real rows; at most 1."""
        rows = check.whole("rows", rows, 1)
        return min(1.0, two_sided(self.confidence) * self._deviation / rows)

    def summary(self) -> str:
        """The half-width of one distance and of their mean."""
        lines = [f"{count_text(self.tables, 'distance')}, at {level(self.confidence)}:"]
        lines += [
            f"of {rows:>11,} rows ± {half_width(self.half_width(rows))}, their mean "
            f"± {half_width(self.half_width(rows) / math.sqrt(self.tables))}"
            for rows in (1_000, 10_000, 100_000, 1_000_000)
        ]
        return "\n".join(lines)


class ComparisonQuestion(CellQuestion[MeasuredDistances]):
    """Distances that may be explained and previewed free of charge, and released at their price."""

    _noun = "distances"
    _gives = (MeasuredDistances,)

    def __init__(
        self,
        question: TablesQuestion,
        tables: tuple[Clique, ...],
        codes: Mapping[int, Any],
        epsilon: Any,
        delta: Any,
    ) -> None:
        super().__init__(question, question.budget(epsilon, delta))
        self._tables, self._codes = tables, codes
        self._synthetic = len(next(iter(codes.values())))
        of_row, share = self.budget.of_a_row
        k, m, many = question.max_rows, self._synthetic, len(tables)
        neighbours = question.neighbours
        if share:
            rho = rho_of_epsilon(of_row, share)
            each = rho / (many + 1)
            distances: Any = DiscreteGaussian.for_loss(each, l2_squared=(2 * m * k) ** 2)
            size: Any = DiscreteGaussian.for_loss(each, l2_squared=k * k)
            charge = Charge(of_row, share, rho)
        else:
            each = of_row / (many + 1)
            distances = DiscreteLaplace.for_loss(each, l1=2 * m * k)
            size = DiscreteLaplace.for_loss(each, l1=k)
            charge = Charge.pure(of_row)
        self._noise = distances, size
        one, two = (
            noise.loss(l2_squared=move * move, neighbours=neighbours)
            if share
            else noise.loss(l1=move, neighbours=neighbours)
            for noise, move in ((distances, 2 * m * k), (size, k))
        )
        self._of_all: Loss = (many * one + two).with_charge(charge)

    @property
    def _loss(self) -> Loss:
        return self._of_all

    @property
    def _about(self) -> str:
        return count_text(len(self._tables), "table")

    _title = "distances"

    def _facts(self) -> list[tuple[str, str]]:
        noise = "Gaussian" if self.budget.delta else "Laplace"
        return [
            ("tables", f"{len(self._tables):,}, each as one number: its distance"),
            ("synthetic", f"{self._synthetic:,} rows, which are public"),
            ("noise", f"discrete {noise}, of one part for each distance and one for the rows"),
            ("cost", cost_text(*self._cost)),
            *(("", note) for note in self._notes()),
        ]

    def preview(self, *, confidence: float = 0.95) -> ComparisonPreview:
        """How wide the intervals will be, before anything is spent or read."""
        deviation = math.sqrt(self._noise[0].variance) / (2 * self._synthetic)
        return ComparisonPreview(deviation, len(self._tables), check.confidence(confidence))

    def _asked(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for place in sorted(self._codes):
            digest.update(np.ascontiguousarray(self._codes[place], dtype="<i8").tobytes())
        return {
            "what": "distances",
            "tables": [list(map(str, t)) for t in self._tables],
            "synthetic": {"rows": str(self._synthetic), "cells": digest.hexdigest()},
        }

    def _wanted(self) -> Sequence[Clique]:
        return self._tables[:1]

    def _measurements(self) -> list[dict[str, Any]]:
        names = "sigma2" if self.budget.delta else "scale"
        return [
            {
                "measures": {"node": what},
                "mechanism": noise.title,
                names: str(getattr(noise, names)),
            }
            for what, noise in zip(("distance", "rows"), self._noise, strict=True)
        ]

    def _read(self, answered: AnsweredRequest) -> MeasuredDistances:
        return MeasuredDistances.read(answered.content)

    def _measure(self, exact: Counts, tell: Progress) -> dict[str, Any]:
        distances, size = self._noise
        moved, rows = [], 0
        for start in range(0, len(self._tables), _AT_ONCE):
            some = self._tables[start : start + _AT_ONCE]
            real = exact(some)
            for table in some:
                moved.append(apart(real[table], counted(self.domain, self._codes, table)))
                rows = rows if start or len(moved) > 1 else int(real[table].sum())
        noise = [int(z) for z in distances.draw(len(moved))]
        return {
            "columns": [[self.domain.names[v] for v in table] for table in self._tables],
            "synthetic_rows": self._synthetic,
            "epsilon": str(self.budget.epsilon),
            "delta": str(self.budget.delta),
            "apart": [str(f + z) for f, z in zip(moved, noise, strict=True)],
            "rows": str(rows + int(size.draw(1)[0])),
            "deviations": [math.sqrt(distances.variance), math.sqrt(size.variance)],
        }


def compared(
    rows: TableQuery,
    synthetic: object,
    tables: int | Sequence[Sequence[str]],
    epsilon: Any,
    delta: Any = None,
    *,
    columns: Sequence[str] | None = None,
    cells: int | Mapping[str, int] = CELLS,
    max_rows: int | None = None,
) -> ComparisonQuestion:
    """See `TableQuery.compare`."""
    frame = released(synthetic, "synthetic")
    if isinstance(tables, int) and not isinstance(tables, bool):
        domain = domain_of(rows, columns, cells)
        order = check.whole("tables", tables, 1, min(3, len(domain.names)))
        if math.comb(len(domain.names), order) > _MOST_TABLES:
            raise ArgumentError(f"tables: there are too many of {order} columns; name some")
        cliques = tuple(itertools.combinations(range(len(domain.names)), order))
    else:
        if columns is not None:
            raise ArgumentError("columns goes with a number of columns; tables names its own")
        named = _named(tables)
        domain = domain_of(rows, list(dict.fromkeys(c for t in named for c in t)), cells)
        cliques = tuple(domain.clique(t, "tables") for t in named)
    if len(set(cliques)) < len(cliques):
        raise ArgumentError("tables names a table twice")
    question = TablesQuestion(rows, domain, max_rows=max_rows)
    return ComparisonQuestion(question, cliques, codes_of(domain, frame), epsilon, delta)


def _named(tables: Any) -> list[list[str]]:
    found = list(tables) if isinstance(tables, Sequence) and not isinstance(tables, str) else []
    if not found or any(isinstance(t, str) or not isinstance(t, Sequence) or not t for t in found):
        raise ArgumentError(
            'tables must be a number of columns, or lists of columns such as [["age", "sex"]]'
        )
    if len(found) > _MOST_TABLES:
        raise ArgumentError(f"tables: there are more than {_MOST_TABLES:,}; name fewer")
    return [list(t) for t in found]
