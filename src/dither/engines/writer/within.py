"""Queries in the FROM as SQL: derived columns, groups within a unit, and several queries as one.

Each is written over the rows below it, which have names of their own. What comes out follows from
a unit's rows alone: sums are of integers, so that no order of rows can show.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.engines.writer.dialect import TOO_LARGE
from dither.engines.writer.expressions import unscaled
from dither.engines.writer.forms import (
    binary,
    case,
    identifier,
    is_not_null,
    named,
    selected,
    subquery,
)
from dither.engines.writer.rows import RowSource, without_negative_zero
from dither.errors import BoundsError
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import column_names, is_unit_key, unit_of
from dither.plan.job import Job, Values
from dither.plan.relations import UNIT, Derived, Relation, Union, UnitAggregate, UnitValue, visible
from dither.plan.schema import Kind

__all__ = ["QuerySource"]


class QuerySource(RowSource):
    """Writes the rows of a job's relation, also where that holds queries in the FROM."""

    def select(self, relation: Relation) -> exp.Select:
        """The rows of a relation, with every column that the job reads of it."""
        match relation:
            case Derived():
                return self._derived(relation, self._read_of(relation.alias))
            case UnitAggregate():
                return self._grouped(relation, self._read_of(relation.alias))
            case Union():
                return self._united(relation, self._read_of(relation.alias))
        return super().select(relation)

    def _below(self, relation: Relation, read: Sequence[ex.Expression]) -> RowSource:
        """The rows below, with the columns of these expressions and their unit: names of its own.

        What is read of a relation is what a job on it reads.
        """
        unit = unit_of(relation, self.schema)
        job = Job(relation, unit, (), tuple(map(Values, read)), 1, 1)
        return QuerySource(self.dialect, job, self.schema, self._stored, self._seeds)

    def _derived(self, relation: Derived, read: dict[str, str]) -> exp.Select:
        columns = dict(relation.columns)
        unit = unit_of(relation.source, self.schema)
        wanted: dict[str, ex.Expression] = {}
        for name, own in read.items():
            if name == UNIT:
                assert unit is not None
                wanted[own] = unit
            else:
                wanted[own] = columns[name]
        below = self._below(relation.source, list(wanted.values()))
        made = [named(below.emitter.value(node), own) for own, node in wanted.items()]
        made = made or [self._placeholder(relation.alias)]
        return selected(made, subquery(below.select(relation.source), "d"))

    # --- groups within a unit ---------------------------------------------------------------------

    def _grouped(self, relation: UnitAggregate, read: dict[str, str]) -> exp.Select:
        """Three steps: the rows' keys and integers; their sums by unit and key; the values."""
        # A key that is the unit stands there already, whatever query's name it goes by.
        keys = {
            node: f"g{i}"
            for i, (_, node) in enumerate(relation.keys)
            if not is_unit_key(node, relation, self.schema)
        }
        values = {name: value for name, value in relation.values if name in read}
        operands = [v.operand for v in values.values() if v.operand is not None]
        below = self._below(relation.source, [*keys, *operands])
        grouped = {relation.unit: "u"} | keys
        by = list(grouped.values())
        columns = [named(self._plain(below, node), name) for node, name in grouped.items()]
        taken = {name: f"o{i}" for i, name in enumerate(values)}
        clamped: list[exp.Expression] = [identifier(name) for name in by]
        for name, value in values.items():
            if value.operand is not None:
                operand, whole = self._operand(below, value, taken[name])
                columns.append(operand)
                clamped.append(whole)
        rows = selected(columns, subquery(below.select(relation.source), "d"))
        known = selected(clamped, subquery(rows, "v"))
        known = known.where(is_not_null(identifier("u")), copy=False)
        sums: list[exp.Expression] = [identifier(name) for name in by]
        for name, value in values.items():
            sums += self._sums(value, taken[name])
        groups = selected(sums, subquery(known, "k")).group_by(
            *(identifier(name) for name in by), copy=False
        )
        made = []
        places = {UNIT: "u"} | {name: grouped.get(node, "u") for name, node in relation.keys}
        for name, own in read.items():
            if name in values:
                made.append(named(self._value(below, values[name], taken[name]), own))
            else:
                made.append(named(identifier(places[name]), own))
        made = made or [self._placeholder(relation.alias)]
        return selected(made, subquery(groups, "g"))

    def _plain(self, below: RowSource, node: ex.Expression) -> exp.Expression:
        """A value to group by, or to find the extreme of: both zeros are one."""
        value, kind = below.emitter.value(node), below.emitter.facts(node).kind
        return without_negative_zero(self.dialect, value, kind)

    def _operand(
        self, below: RowSource, value: UnitValue, name: str
    ) -> tuple[exp.Expression, exp.Expression]:
        """What is aggregated: as a column of the rows, and what is made of that above them."""
        assert value.operand is not None
        if value.function not in ("sum", "mean"):
            return named(self._plain(below, value.operand), name), identifier(name)
        self._check_overflow(value)
        if value.lower is None or value.upper is None:
            return named(below.emitter.value(value.operand), name), identifier(name)
        ends = [(value.lower, value.upper)]
        shared = below.emitter.shared(value.operand, value.step, name, ends)
        whole = below.emitter.lattice(value.operand, value.step, value.lower, value.upper, shared)
        return shared.made, named(whole, name)

    def _check_overflow(self, value: UnitValue) -> None:
        """Refuse a sum that could leave the engine's widest integers, whatever its rows hold."""
        # What is summed without bounds is a 64-bit integer.
        most = 2**63
        if value.lower is not None and value.upper is not None:
            most = max(abs(value.lower), abs(value.upper), 1)
        if most * self.dialect.most_rows >= self.dialect.largest_sum:
            raise BoundsError(TOO_LARGE)

    def _sums(self, value: UnitValue, name: str) -> list[exp.Expression]:
        """What is taken of the rows of a group: all of it the same in any order."""
        operand = identifier(name)
        match value.function:
            case "count":
                counted = exp.Star() if value.operand is None else operand
                return [named(exp.Count(this=counted), f"n{name}")]
            case "count distinct":
                distinct = exp.Distinct(expressions=[operand])
                return [named(exp.Count(this=distinct), f"n{name}")]
            case "min":
                return [named(exp.Min(this=operand), f"m{name}")]
            case "max":
                return [named(exp.Max(this=operand), f"m{name}")]
        if value.lower is None or value.upper is None:
            summed = self.dialect.summed(operand)
        else:
            size = max(abs(value.lower), abs(value.upper))
            summed = self.dialect.summed_of_size(operand, size)
        return [
            named(summed, f"s{name}"),
            named(exp.Count(this=operand.copy()), f"n{name}"),
        ]

    def _value(self, below: RowSource, value: UnitValue, name: str) -> exp.Expression:
        if value.function in ("count", "count distinct"):
            return self.dialect.cast(identifier(f"n{name}"), Kind.INTEGER)
        if value.function in ("min", "max"):
            return identifier(f"m{name}")
        assert value.operand is not None
        total = self.dialect.narrowed(identifier(f"s{name}"))
        if value.function == "sum" and below.emitter.facts(value.operand).kind is Kind.INTEGER:
            return total
        real = self.dialect.cast(total, Kind.REAL)
        if value.function == "mean":
            count = identifier(f"n{name}")
            number = self.dialect.cast(count, Kind.REAL)
            found = self.dialect.real_arithmetic("/", real, number)
            real = case((binary(">", count.copy(), self.dialect.integer(0)), found))
        return unscaled(self.dialect, real, value.step)

    # --- several queries --------------------------------------------------------------------------

    def _united(self, relation: Union, read: dict[str, str]) -> exp.Select:
        schema = self.schema
        scope = scope_of(relation, schema)
        firsts = [visible(part)[0] for part in relation.parts]
        names = column_names(firsts[0], schema)
        units = []
        written: list[exp.Select] = []
        for part in firsts:
            own = dict(zip(names, column_names(part, schema), strict=True))
            unit = unit_of(part, schema)
            if unit is not None:
                units.append(self._stored_unit(unit, part))
            wanted = {
                name: unit if name == UNIT else ex.Column(part.alias, own[name]) for name in read
            }
            below = self._below(part, [node for node in wanted.values() if node is not None])
            made = [
                named(
                    below.emitter.value(node, scope.column(ex.Column(relation.alias, name)).kind),
                    read[name],
                )
                for name, node in wanted.items()
                if node is not None
            ]
            made = made or [self._placeholder(relation.alias)]
            written.append(selected(made, subquery(below.select(part), "d")))
        for other in units[1:]:
            self._check_units(units[0], other)
        found: exp.Query = written[0]
        for rows in written[1:]:
            found = exp.Union(this=found, expression=rows, distinct=False)
        return selected([exp.Star()], subquery(found, "p"))
