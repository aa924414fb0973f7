"""A histogram of a job as SQL: how many rows fall into each leaf of each group, in parts."""

from __future__ import annotations

from sqlglot import exp

from dither.engines.writer.forms import (
    binary,
    call,
    case,
    identifier,
    is_not_null,
    named,
    selected,
    subquery,
)
from dither.engines.writer.grouped import UNIT, GroupedQuery
from dither.plan.job import Leaves

__all__ = ["HistogramQuery"]


class HistogramQuery(GroupedQuery):
    """Writes the query of one histogram."""

    def query(self, measurement: Leaves) -> exp.Select:
        """Key columns, then leaf and number of rows, in parts."""
        rows = self._leaf_rows(measurement)
        leaf = identifier("leaf")
        present = is_not_null(leaf.copy())
        columns = [*self._key_columns(), leaf]
        if self._job.unit is None:
            count = self._times(exp.Count(this=exp.Star()), measurement.parts)
            found = selected([*columns, count], subquery(rows, "rows"))
            return found.where(present, copy=False).group_by(
                *(c.copy() for c in columns), copy=False
            )
        return self._unit_leaves(measurement, rows)

    def _leaf_rows(self, measurement: Leaves) -> exp.Select:
        emitter, operand = self._source.emitter, measurement.operand
        shared = emitter.shared(operand, measurement.step, "o")
        value = emitter.lattice(
            operand, measurement.step, measurement.lower, measurement.upper, shared
        )
        offset = self._dialect.arithmetic("-", value, self._dialect.integer(measurement.lower))
        leaf = self._dialect.arithmetic("//", offset, self._dialect.integer(measurement.width))
        unit = [identifier(UNIT)] if self._job.unit is not None else []
        columns = [*self._key_columns(), *unit, named(leaf, "leaf")]
        return selected(columns, subquery(self._base([shared.made]), "values"))

    def _unit_leaves(self, measurement: Leaves, rows: exp.Select) -> exp.Select:
        unit, leaf, count = identifier(UNIT), identifier("leaf"), identifier("c")
        keys = self._key_columns()
        by = [unit, *keys, leaf]
        counted = selected(
            [*by, named(exp.Count(this=exp.Star()), "c")], subquery(rows, "rows")
        ).group_by(*(c.copy() for c in by), copy=False)
        if self._chooses_groups:
            counted = self._ranked(counted, "counted", call("DENSE_RANK"))
        valued = selected([exp.Star()], subquery(counted, "chosen"))
        valued = valued.where(is_not_null(leaf.copy()), copy=False)
        within = [unit.copy(), *(k.copy() for k in keys)]
        total = exp.Window(this=self._dialect.summed(count.copy()), partition_by=within)
        # A leaf occurs once, so the frame that ends at the current row ends at its leaf.
        upto = exp.Window(
            this=self._dialect.summed(count.copy()),
            partition_by=[w.copy() for w in within],
            order=exp.Order(expressions=[leaf.copy()]),
        )
        weighed = selected(
            [exp.Star(), named(total, "total"), named(upto, "upto")], subquery(valued, "valued")
        )
        columns = [*(k.copy() for k in keys), leaf.copy()]
        return selected(
            [*columns, self._dialect.summed(self._weighed(measurement))],
            subquery(weighed, "weighed"),
        ).group_by(*(c.copy() for c in columns), copy=False)

    def _weighed(self, leaves: Leaves) -> exp.Expression:
        """What a unit contributes to a leaf: its rows there, together no more than ``max_rows``."""
        count, total, upto = identifier("c"), identifier("total"), identifier("upto")
        most = self._dialect.wide_integer(self._job.max_rows * leaves.parts)

        arithmetic = self._dialect.arithmetic

        def share(rows: exp.Expression) -> exp.Expression:
            return self._dialect.arithmetic(
                "//", self._dialect.arithmetic("*", rows, most.copy()), total.copy()
            )

        before = self._dialect.arithmetic("-", upto.copy(), count.copy())
        return case(
            (
                binary("<=", total.copy(), self._dialect.integer(self._job.max_rows)),
                self._times(count.copy(), leaves.parts),
            ),
            otherwise=arithmetic("-", share(upto), share(before)),
        )
