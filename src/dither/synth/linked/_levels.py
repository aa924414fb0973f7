"""What a level of linked tables is, once it was released: plain data, and rows of its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.query.tables._domain import CellDomain
from dither.synth._rules import Rules
from dither.synth._values import values_of
from dither.synth.constraints._row_rules import RowRules
from dither.synth.model._conditional import GivenRows
from dither.synth.model._junction import Clique
from dither.synth.model._model import FittedModel
from dither.synth.model._plans import Measurements
from dither.synth.tables._stored import measured_from

__all__ = ["ReleasedLevel", "SampledLevel", "history_zeros"]

Integers = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]

TRIES = 5
"""How often a row that no model can have beside the one before is drawn again."""


def history_zeros(domain: CellDomain, where: Mapping[str, Any]) -> dict[Clique, Masks]:
    """Cells that no row of a history has: the first row has none before it, others have one."""
    number = where["number"]
    if number is None:
        return {}
    found: dict[Clique, Masks] = {}
    sizes = domain.sizes
    for key, of in where["before"]:
        mask = np.zeros((sizes[number], sizes[key]), dtype=bool)
        mask[0, :-1] = True
        mask[1:, -1] = True
        if not domain.attributes[of].missing:
            # The row before has a value, where the policy says that each has.
            mask[1:, -2] = True
        found[number, key] = mask
    gap = where["gap"]
    mask = np.zeros((sizes[number], sizes[gap]), dtype=bool)
    mask[0, :-1] = True
    if not domain.attributes[where["time"]].missing:
        mask[1:, -1] = True
    found[number, gap] = mask
    return found


@dataclass(frozen=True)
class SampledLevel:
    """Rows of a level: their cells, whose children they are, and their moments.

    Parameters
    ----------
    cells : array of int, shape (n, attributes)
    parent : array of int, shape (n,)
        The row above of each; itself at the first level.
    unit : array of int, shape (n,)
        The unit of each.
    moments : array of int, shape (n,), optional
        In the order's own count, where rows are in one.
    numbers : dict of int to (RuleLattice, array, array)
        What rules join.
    """

    cells: Integers
    parent: Integers
    unit: Integers
    moments: Integers | None
    numbers: Mapping[int, Any]


class ReleasedLevel:
    """One table of a linked release.

    Parameters
    ----------
    body : mapping
        As it was released.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.name, self.parent = str(body["table"]), int(body["parent"])
        self.domain = CellDomain.from_list(body["domain"])
        where = body["where"]
        self.own = tuple(where["own"])
        self.counts = {int(b): int(v) for b, v in where["counts"]}
        self.parents = [(int(a), int(b)) for a, b in where["parents"]]
        self.before = [(int(a), int(b)) for a, b in where["before"]]
        self.time, self.number, self.gap = where["time"], where["number"], where["gap"]
        self.edges, self.origin = np.array(where["edges"], dtype=np.int64), int(where["origin"])
        self.unit, self.key, self.on = where["unit"], where["key"], where["on"]
        self.texts = where["texts"]

    @cached_property
    def measurements(self) -> Measurements:
        """What was measured."""
        return measured_from(self.body)

    @cached_property
    def fitted(self) -> FittedModel:
        """The model of its columns, beside those of its parent and of the row before."""
        rules = Rules.from_dict(self.body["rules"], self.domain)
        return FittedModel.of(
            self.domain.sizes,
            self.measurements,
            total=self.body["total"],
            forbidden=rules.forbidden,
            uniform=self.body["uniform"],
        )

    @cached_property
    def rules(self) -> RowRules:
        """The comparisons that its rows keep."""
        inside = CellDomain(tuple(self.domain.attributes[v] for v in self.own))
        return RowRules.from_list(self.body["row_rules"], inside)

    @cached_property
    def _given(self) -> GivenRows:
        return GivenRows(self.fitted.graph)

    def _merged(self, held: Mapping[int, Integers]) -> dict[int, Integers]:
        merged = self.measurements.merged
        return {v: merged[v][at] if v in merged else at for v, at in held.items()}

    def _beside(
        self, held: Mapping[int, Integers], n: int, rng: np.random.Generator
    ) -> tuple[Integers, Masks]:
        """Rows beside given columns, and which can be."""
        found, good = self._given.rows(self._merged(held), n, rng)
        found = self.fitted.apart(found, rng)
        for v, cells in held.items():
            found[:, v] = cells
        return found, good

    # --- rows -------------------------------------------------------------------------------------

    def first(self, n: int, rng: np.random.Generator) -> SampledLevel:
        """Rows of the first level: a unit each."""
        cells = self.fitted.rows(n, rng)
        numbers: dict[int, Any] = {}
        if self.rules.lattices and n:
            cells, numbers = self.rules.kept_by(
                lambda many: self.fitted.rows(many, rng), cells, rng
            )
        own = np.arange(n)
        return SampledLevel(cells, own, own, None, numbers)

    def below(self, above: SampledLevel, column: int, rng: np.random.Generator) -> SampledLevel:
        """The rows below those of another level, as many as its column says."""
        many = above.cells[:, column]
        held = {here: above.cells[:, there] for here, there in self.parents}
        if self.number is None:
            return self._unordered(above, many, held, rng)
        return self._in_order(above, many, held, rng)

    def _unordered(
        self,
        above: SampledLevel,
        many: Integers,
        held: Mapping[int, Integers],
        rng: np.random.Generator,
    ) -> SampledLevel:
        parent = np.repeat(np.arange(len(many)), many)
        found, _, numbers, good = self._row(
            {v: at[parent] for v, at in held.items()}, len(parent), None, rng
        )
        kept = np.flatnonzero(good)
        return SampledLevel(
            found[kept], parent[kept], above.unit[parent[kept]], None, _some(numbers, kept)
        )

    def _in_order(
        self,
        above: SampledLevel,
        many: Integers,
        held: Mapping[int, Integers],
        rng: np.random.Generator,
    ) -> SampledLevel:
        """One row after another of all histories at once."""
        parts: list[tuple[Integers, Integers, Integers, dict[int, Any]]] = []
        sizes = self.domain.sizes
        active = np.flatnonzero(many > 0)
        last: Integers = np.zeros((len(active), len(sizes)), dtype=np.int64)
        moment = np.zeros(len(active), dtype=np.int64)
        for k in range(1, int(many.max(initial=0)) + 1):
            stay = many[active] >= k
            active, last, moment = active[stay], last[stay], moment[stay]
            if not len(active):
                break
            n = len(active)
            given = {v: at[active] for v, at in held.items()}
            given[self.number] = np.full(n, min(k, sizes[self.number]) - 1)
            for key, of in self.before:
                given[key] = last[:, of] if k > 1 else np.full(n, sizes[key] - 1)
            if k == 1:
                given[self.gap] = np.full(n, sizes[self.gap] - 1)
            found, moment, numbers, good = self._row(given, n, moment if k > 1 else None, rng)
            rows = np.flatnonzero(good)
            active, last, moment = active[rows], found[rows], moment[rows]
            parts.append((active, last, moment, _some(numbers, rows)))
        if not parts:
            empty = np.zeros(0, dtype=np.int64)
            cells = np.zeros((0, len(sizes)), dtype=np.int64)
            return SampledLevel(cells, empty, empty, empty, {})
        parent = np.concatenate([p[0] for p in parts])
        # By parent, each in its order.
        order = np.argsort(parent, kind="stable")
        numbers = {
            v: (
                parts[0][3][v][0],
                *(np.concatenate([p[3][v][i] for p in parts])[order] for i in (1, 2)),
            )
            for v in parts[0][3]
        }
        return SampledLevel(
            np.concatenate([p[1] for p in parts])[order],
            parent[order],
            above.unit[parent[order]],
            np.concatenate([p[2] for p in parts])[order],
            numbers,
        )

    def _row(
        self,
        held: Mapping[int, Integers],
        n: int,
        moment: Integers | None,
        rng: np.random.Generator,
    ) -> tuple[Integers, Integers, dict[int, Any], Masks]:
        """One row beside each of some given ones: cells, moments, numbers, and which there are."""
        found = np.zeros((n, len(self.domain.sizes)), dtype=np.int64)
        moments, good = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        numbers: dict[int, Any] = {}
        waiting = np.arange(n)
        for _ in range(TRIES):
            given = {v: at[waiting] for v, at in held.items()}
            made, when, parts, fits = self._tried(
                given, len(waiting), None if moment is None else moment[waiting], rng
            )
            to = waiting[fits]
            found[to], moments[to], good[to] = made[fits], when[fits], True
            for v, (lattice, values, null) in parts.items():
                if v not in numbers:
                    numbers[v] = lattice, np.zeros(n, np.int64), np.zeros(n, dtype=bool)
                numbers[v][1][to], numbers[v][2][to] = values[fits], null[fits]
            waiting = waiting[~fits]
            if not len(waiting):
                break
        return found, moments, numbers, good

    def _tried(
        self, held: dict[int, Integers], n: int, moment: Integers | None, rng: np.random.Generator
    ) -> tuple[Integers, Integers, dict[int, Any], Masks]:
        when = np.zeros(n, dtype=np.int64)
        if self.time is not None and moment is not None:
            # First the gap, which says when; then what else the row has, given that.
            found, fits = self._beside(held, n, rng)
            gap = found[:, self.gap]
            when, null = self._later(moment, gap, rng)
            inner = self.domain.attributes[self.time].inner
            cells = np.where(null, inner, self._cell_of(when))
            held = held | {self.gap: gap, self.time: cells}
            again, more = self._beside(held, n, rng)
            # Beside a moment that no row was in, the row is as it was drawn without it.
            found = np.where(more[:, None], again, found)
            found[:, self.time] = cells
        else:
            found, fits = self._beside(held, n, rng)
            if self.time is not None:
                when = self._moment_in(found[:, self.time], rng)
        numbers: dict[int, Any] = {}
        if self.rules.lattices and n:
            inside, whole = {}, self.rules
            for lattice in whole.lattices:
                if self.time in lattice.columns:
                    scale = lattice.unit.denominator
                    inside[self.time] = (when + self.origin) * scale
            own = found[:, list(self.own)]
            parts, keeps = whole.numbers(own, rng, held=inside)
            fits = fits & keeps
            numbers = {
                v: (lattice, values[:, i], null[:, i])
                for lattice, values, null in parts
                for i, v in enumerate(lattice.columns)
            }
        return found, when, numbers, fits

    # --- moments ----------------------------------------------------------------------------------

    @cached_property
    def _span(self) -> tuple[int, int]:
        """The first and last moment that there are, in the order's count."""
        assert self.time is not None
        bounds: tuple[Any, Any] = self.domain.attributes[self.time].bounds or (0, 0)
        low, high = bounds
        if self.domain.attributes[self.time].kind.value == "date":
            return 0, (high - low).days
        return int(low), int(high)

    def _later(
        self, moment: Integers, gap: Integers, rng: np.random.Generator
    ) -> tuple[Integers, Masks]:
        """The moment after a gap, never before the last one nor after the last that there is."""
        null = gap >= len(self.edges)
        cell = np.where(null, 0, gap)
        _, most = self._span
        ends = np.append(self.edges[1:] - 1, max(most - self._span[0], int(self.edges[-1])))
        low, high = self.edges[cell], ends[cell]
        room = np.maximum(most - moment, 0)
        low, high = np.minimum(low, room), np.minimum(high, room)
        return np.where(null, moment, moment + rng.integers(low, high, endpoint=True)), null

    def _cell_of(self, when: Integers) -> Integers:
        """The cell of the column that orders rows which holds each moment."""
        assert self.time is not None
        starts = self._starts
        return np.maximum(np.searchsorted(starts, when, side="right") - 1, 0)

    @cached_property
    def _starts(self) -> Integers:
        """Where the cells of the column that orders rows begin."""
        assert self.time is not None
        column = self.domain.attributes[self.time]
        if column.period is not None or column.kind.value == "date":
            low = (column.bounds or (None,))[0]
            return np.array([(v - low).days for v in column.values or ()], dtype=np.int64)
        if column.edges is not None:
            return np.array([int(np.ceil(float(e))) for e in column.edges[:-1]], dtype=np.int64)
        return np.array([int(v) for v in column.values or ()], dtype=np.int64)

    def _moment_in(self, cells: Integers, rng: np.random.Generator) -> Integers:
        """A moment in each cell."""
        low, high = self._span
        inner = len(self._starts)
        at = np.where(cells >= inner, 0, cells)
        ends = np.append(self._starts[1:] - 1, high)
        first = np.maximum(self._starts[at], low)
        return rng.integers(first, np.maximum(np.minimum(ends[at], high), first), endpoint=True)

    # --- frames -----------------------------------------------------------------------------------

    def frame(
        self, rows: SampledLevel, above: SampledLevel | None, rng: np.random.Generator
    ) -> Any:
        """The rows as a Polars frame, with keys that join."""
        import polars as pl

        def named(name: str, numbers: Integers, text: bool) -> Any:
            series = pl.Series(name, numbers + 1)
            return series.cast(pl.String) if text else series

        made = [named(self.unit, rows.unit, self.texts[0])]
        if self.on is not None:
            made.append(named(self.on, rows.parent, self.texts[2]))
        if self.key is not None and self.key != self.unit:
            made.append(named(self.key, np.arange(len(rows.unit)), self.texts[1]))
        for v in self.own:
            attribute = self.domain.attributes[v]
            if v == self.time and rows.moments is not None:
                made.append(self._times(rows))
            elif v in rows.numbers:
                lattice, values, null = rows.numbers[v]
                made.append(lattice.as_values(attribute, values, null))
            else:
                made.append(values_of(attribute, rows.cells[:, v], rng))
        return pl.DataFrame(made)

    def _times(self, rows: SampledLevel) -> Any:
        import polars as pl

        assert self.time is not None
        assert rows.moments is not None
        column = self.domain.attributes[self.time]
        values = pl.Series(column.name, rows.moments + self.origin)
        if column.kind.value == "date":
            values = values.cast(pl.Int32).cast(pl.Date)
        null = rows.cells[:, self.time] >= column.inner
        if null.any():
            values = pl.select(
                pl.when(pl.Series(~null)).then(values).otherwise(None).alias(column.name)
            ).to_series()
        return values


def _some(numbers: Mapping[int, Any], rows: Integers) -> dict[int, Any]:
    return {
        v: (lattice, values[rows], null[rows]) for v, (lattice, values, null) in numbers.items()
    }
