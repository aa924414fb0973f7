"""A job as SQL: each unit's contribution bounded as ``dither.plan.job`` says, then summed.

Three steps, each one query inside the next: ``rows`` gives every row's unit, group and integers;
``parts`` sums them by unit and group; the last keeps at most ``max_groups`` parts of a unit, brings
each down to ``max_rows`` rows, and sums by group. Without a unit the second falls away.

Public keys are replaced by their position in the public list while the rows are read, so that a
row with any other key is gone before bounding, and the engine groups by small integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from dither.engines.writer import forms
from dither.engines.writer.forms import binary, call, identifier
from dither.engines.writer.public_lists import looked_up
from dither.engines.writer.rows import RowSource, Seeds, without_negative_zero
from dither.engines.writer.totals import (
    centred,
    check_overflow,
    count_of,
    sum_name,
    sum_of,
    times,
)
from dither.plan import expressions as ex
from dither.plan.job import GroupKey, Job, Leaves, Measurement, Rows, Total, Units, Values
from dither.plan.kinds import Kind, Value

__all__ = ["JobQuery"]

UNIT, ROWS = "u", "n"


@dataclass(frozen=True, slots=True)
class _Lattice:
    """One operand on one lattice, shared by the measurements that read it."""

    operand: ex.Expression
    step: Fraction
    lower: int
    upper: int


class JobQuery:
    """Writes the queries that answer a job.

    Parameters
    ----------
    job : Job
    source : RowSource
    seeds : Seeds
    """

    def __init__(self, job: Job, source: RowSource, seeds: Seeds) -> None:
        self._job = job
        self._source = source
        self._seeds = seeds
        self._keys = [f"k{i}" for i in range(len(job.keys))]
        self._lists = [self._listed(key) for key in job.keys]
        for measurement in job.measurements:
            check_overflow(measurement, job.max_rows)

    # --- what the caller reads back -----------------------------------------------------------

    def key_of(self, found: Sequence[object]) -> tuple[Value | float | None, ...]:
        """The public key that the engine's key columns stand for."""
        key: list[Value | float | None] = []
        for group_key, listed, value in zip(self._job.keys, self._lists, found, strict=True):
            if listed is None or group_key.values is None:
                key.append(value)  # type: ignore[arg-type]
            else:
                declared = group_key.values[int(value)]  # type: ignore[call-overload]
                key.append(float(declared) if group_key.kind is Kind.REAL else declared)  # type: ignore[arg-type]
        return tuple(key)

    def sums(self) -> exp.Select:
        """Key columns, then one column for each measurement that is one integer per group."""
        # With histograms alone, the groups are still asked for: those in which a unit has a row.
        wanted = [m for m in self._job.measurements if not isinstance(m, Leaves)] or [Units()]
        if self._job.unit is None:
            return self._sums_of_rows(wanted)
        found = exp.select(*self._key_columns(), *self._unit_sums(wanted)).from_(
            self._kept(self._parts(wanted)).subquery("kept", copy=False)
        )
        return self._grouped(found)

    def _sums_of_rows(self, wanted: list[Measurement]) -> exp.Select:
        """Where each row is a unit: summed by the keys as they are, then held against the lists.

        Nothing is bounded across groups, so looking up each group once does what looking up each
        row would do.
        """
        made = [forms.named(node, f"s{i}") for i, node in enumerate(self._row_sums(wanted))]
        rows = self._rows(wanted, listed=False).subquery("rows", copy=False)
        found = self._grouped(exp.select(*self._key_columns(), *made).from_(rows))
        if all(listed is None for listed in self._lists):
            return found
        outer = exp.select().from_(found.subquery("sums", copy=False))
        keys = []
        for name, key, listed in zip(self._keys, self._job.keys, self._lists, strict=True):
            value = identifier(name, "sums")
            if listed is not None:
                outer, value = looked_up(outer, value, name, listed, key.kind)
            keys.append(forms.named(value, name))
        sums = [identifier(f"s{i}", "sums") for i in range(len(made))]
        return outer.select(*keys, *sums, copy=False)

    def leaves(self, measurement: Leaves) -> exp.Select:
        """Key columns, then leaf and number of rows, in parts."""
        rows = self._leaf_rows(measurement)
        leaf = identifier("leaf")
        present = exp.Not(this=exp.Is(this=leaf.copy(), expression=exp.Null()))
        columns = [*self._key_columns(), leaf]
        if self._job.unit is None:
            count = times(exp.Count(this=exp.Star()), measurement.parts)
            found = exp.select(*columns, count).from_(rows.subquery("rows", copy=False))
            return found.where(present, copy=False).group_by(
                *(c.copy() for c in columns), copy=False
            )
        return self._unit_leaves(measurement, rows)

    # --- rows -----------------------------------------------------------------------------------

    def _listed(self, key: GroupKey) -> list[tuple[int, exp.Expression]] | None:
        """The public values that the engine can hold, each once, with their positions."""
        if key.values is None:
            return None
        found: dict[str, tuple[int, exp.Expression]] = {}
        for position, value in enumerate(key.values):
            if key.kind is Kind.INTEGER and (
                abs(value) > forms.LARGEST or value != int(value)  # type: ignore[operator, arg-type]
            ):
                continue
            constant = forms.constant(value, key.kind)
            found.setdefault(constant.sql(dialect="duckdb"), (position, constant))
        return list(found.values())

    def _key_value(self, key: GroupKey) -> exp.Expression:
        node = key.expression
        if isinstance(node, ex.Column) and key.values is not None:
            declared = self._source.scope.column(node).values
            if declared is not None and set(key.values) <= set(declared):
                # The join with the public list is the test against the declared values too.
                return self._source.unchecked(node)
        return without_negative_zero(self._source.emitter.value(node, key.kind), key.kind)

    def _base(self, values: list[exp.Expression], *, listed: bool = True) -> exp.Select:
        """Unit, keys and the given values of every row, of public groups alone where ``listed``."""
        source, job = self._source, self._job
        columns: list[exp.Expression] = []
        found = exp.select().from_(source.select(job.relation).subquery("t", copy=False))
        for name, key, public in zip(self._keys, job.keys, self._lists, strict=True):
            value = self._key_value(key)
            if listed and public is not None:
                found, value = looked_up(found, value, name, public, key.kind)
            columns.append(forms.named(value, name))
        if job.unit is not None:
            unit = source.emitter.value(job.unit)
            kind = source.emitter.facts(job.unit).kind
            found = found.where(
                exp.Not(this=exp.Is(this=unit.copy(), expression=exp.Null())), copy=False
            )
            columns.append(forms.named(without_negative_zero(unit, kind), UNIT))
        columns.extend(values)
        if not columns:
            columns.append(forms.named(exp.true(), "row"))
        return found.select(*columns, copy=False)

    def _rows(self, wanted: list[Measurement], *, listed: bool = True) -> exp.Select:
        """Each row's integers, clamped, and the values that are only counted."""
        emitter = self._source.emitter
        lattices, plain = self._lattices(wanted), self._plain(wanted)
        # A formula is computed once, below, however often the clamp names it.
        operands = {x: f"o{i}" for i, x in enumerate(dict.fromkeys(k.operand for k in lattices))}
        values = [forms.named(emitter.value(x), name) for x, name in {**operands, **plain}.items()]
        found = self._base(values, listed=listed)
        if not lattices:
            return found
        unit = [identifier(UNIT)] if self._job.unit is not None else []
        clamped = [
            forms.named(
                emitter.lattice(
                    lattice.operand,
                    lattice.step,
                    lattice.lower,
                    lattice.upper,
                    identifier(operands[lattice.operand]),
                ),
                name,
            )
            for lattice, name in lattices.items()
        ]
        counted = [identifier(name) for name in plain.values()]
        return exp.select(*self._key_columns(), *unit, *clamped, *counted).from_(
            found.subquery("values", copy=False)
        )

    @staticmethod
    def _lattices(wanted: Sequence[Measurement]) -> dict[_Lattice, str]:
        found = dict.fromkeys(
            _Lattice(m.operand, m.step, m.lower, m.upper) for m in wanted if isinstance(m, Total)
        )
        return {lattice: f"v{i}" for i, lattice in enumerate(found)}

    def _plain(self, wanted: list[Measurement]) -> dict[ex.Expression, str]:
        """Operands that are only counted: a sum's lattice is NULL exactly where its operand is."""
        summed = {lattice.operand for lattice in self._lattices(wanted)}
        found = dict.fromkeys(
            m.operand for m in wanted if isinstance(m, Values) and m.operand not in summed
        )
        return {operand: f"x{i}" for i, operand in enumerate(found)}

    def _counted(self, operand: ex.Expression, wanted: list[Measurement]) -> str:
        for lattice, name in self._lattices(wanted).items():
            if lattice.operand == operand:
                return name
        return self._plain(wanted)[operand]

    def _name(self, total: Total, wanted: list[Measurement]) -> str:
        key = _Lattice(total.operand, total.step, total.lower, total.upper)
        return self._lattices(wanted)[key]

    # --- one integer per group --------------------------------------------------------------------

    def _row_sums(self, wanted: list[Measurement]) -> list[exp.Expression]:
        found: list[exp.Expression] = []
        for measurement in wanted:
            match measurement:
                case Values(operand=operand):
                    found.append(count_of(self._counted(operand, wanted)))
                case Total():
                    name = self._name(measurement, wanted)
                    whole = centred(measurement, sum_of(measurement, name), count_of(name))
                    found.append(times(whole, measurement.parts))
                case _:
                    found.append(exp.Count(this=exp.Star()))
        return found

    def _parts(self, wanted: list[Measurement]) -> exp.Select:
        """By unit and group: rows, values and raw sums, each once."""
        columns: dict[str, exp.Expression] = {ROWS: exp.Count(this=exp.Star())}
        for measurement in wanted:
            if isinstance(measurement, Values):
                name = self._counted(measurement.operand, wanted)
                columns[f"count_{name}"] = count_of(name)
            if isinstance(measurement, Total):
                name = self._name(measurement, wanted)
                columns[f"count_{name}"] = count_of(name)
                columns[sum_name(measurement, name)] = sum_of(measurement, name)
        by = [identifier(UNIT), *self._key_columns()]
        made = [forms.named(node, name) for name, node in columns.items()]
        return (
            exp.select(*by, *made)
            .from_(self._rows(wanted).subquery("rows", copy=False))
            .group_by(*(c.copy() for c in by), copy=False)
        )

    def _kept(self, parts: exp.Select) -> exp.Select:
        if not self._chooses_groups:
            return parts
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[identifier(UNIT)],
            order=exp.Order(expressions=self._group_order()),
        )
        found = exp.select("*").from_(parts.subquery("parts", copy=False))
        limit = forms.integer(self._job.max_groups)
        found.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=limit)))
        return found

    @property
    def _chooses_groups(self) -> bool:
        """Whether a unit can have rows in more groups than it may count in."""
        groups = 1
        for listed in self._lists:
            if listed is None:
                return True
            groups *= len(listed)
        return groups > self._job.max_groups

    def _group_order(self) -> list[exp.Expression]:
        # Ties of the hash are broken by the group itself, so that no other unit's rows can.
        return [self._seeds.hash(identifier(UNIT), *self._key_columns()), *self._key_columns()]

    def _unit_sums(self, wanted: list[Measurement]) -> list[exp.Expression]:
        limit = forms.integer(self._job.max_rows)
        found: list[exp.Expression] = []
        for measurement in wanted:
            match measurement:
                case Rows():
                    part = call("LEAST", identifier(ROWS), limit.copy())
                case Units():
                    found.append(exp.Count(this=exp.Star()))
                    continue
                case Values(operand=operand):
                    count = identifier(f"count_{self._counted(operand, wanted)}")
                    part = call("LEAST", count, limit.copy())
                case Total():
                    part = self._scaled_down(measurement, wanted)
                case _:
                    raise TypeError(type(measurement).__name__)
            found.append(call("SUM", part))
        return found

    def _scaled_down(self, total: Total, wanted: list[Measurement]) -> exp.Expression:
        name = self._name(total, wanted)
        count = identifier(f"count_{name}")
        summed = centred(total, identifier(sum_name(total, name)), count.copy())
        contributing = identifier(ROWS) if total.null_as_centre else count
        limit = forms.integer(self._job.max_rows * total.parts, "HUGEINT")
        divisor = call("GREATEST", contributing.copy(), forms.integer(1))
        return forms.case(
            (
                binary("<=", contributing, forms.integer(self._job.max_rows)),
                times(summed.copy(), total.parts),
            ),
            # Integer division of the engine is towards zero.
            otherwise=binary("//", binary("*", summed, limit), divisor),
        )

    def _key_columns(self) -> list[exp.Expression]:
        return [identifier(name) for name in self._keys]

    def _grouped(self, found: exp.Select) -> exp.Select:
        if self._keys:
            return found.group_by(*self._key_columns(), copy=False)
        # Without keys there is one group, and it is absent where nobody has a row.
        nobody = exp.GT(this=exp.Count(this=exp.Star()), expression=forms.integer(0))
        return found.having(nobody, copy=False)

    # --- histograms -------------------------------------------------------------------------------

    def _leaf_rows(self, measurement: Leaves) -> exp.Select:
        emitter, operand = self._source.emitter, measurement.operand
        value = emitter.lattice(
            operand, measurement.step, measurement.lower, measurement.upper, identifier("o")
        )
        offset = binary("-", value, forms.integer(measurement.lower))
        leaf = binary("//", offset, forms.integer(measurement.width))
        unit = [identifier(UNIT)] if self._job.unit is not None else []
        return exp.select(*self._key_columns(), *unit, forms.named(leaf, "leaf")).from_(
            self._base([forms.named(emitter.value(operand), "o")]).subquery("values", copy=False)
        )

    def _unit_leaves(self, measurement: Leaves, rows: exp.Select) -> exp.Select:
        unit, leaf, count = identifier(UNIT), identifier("leaf"), identifier("c")
        keys = self._key_columns()
        by = [unit, *keys, leaf]
        counted = (
            exp.select(*by, forms.named(exp.Count(this=exp.Star()), "c"))
            .from_(rows.subquery("rows", copy=False))
            .group_by(*(c.copy() for c in by), copy=False)
        )
        if self._chooses_groups:
            rank = exp.Window(
                this=call("DENSE_RANK"),
                partition_by=[unit.copy()],
                order=exp.Order(expressions=self._group_order()),
            )
            counted = exp.select("*").from_(counted.subquery("counted", copy=False))
            most = forms.integer(self._job.max_groups)
            counted.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=most)))
        valued = (
            exp.select("*")
            .from_(counted.subquery("chosen", copy=False))
            .where(exp.Not(this=exp.Is(this=leaf.copy(), expression=exp.Null())))
        )
        within = [unit.copy(), *(k.copy() for k in keys)]
        total = exp.Window(this=exp.Sum(this=count.copy()), partition_by=within)
        # A leaf occurs once, so the frame that ends at the current row ends at its leaf.
        upto = exp.Window(
            this=exp.Sum(this=count.copy()),
            partition_by=[w.copy() for w in within],
            order=exp.Order(expressions=[leaf.copy()]),
        )
        weighed = exp.select("*", forms.named(total, "total"), forms.named(upto, "upto")).from_(
            valued.subquery("valued", copy=False)
        )
        columns = [*(k.copy() for k in keys), leaf.copy()]
        return (
            exp.select(*columns, call("SUM", self._weighed(measurement)))
            .from_(weighed.subquery("weighed", copy=False))
            .group_by(*(c.copy() for c in columns), copy=False)
        )

    def _weighed(self, leaves: Leaves) -> exp.Expression:
        """What a unit contributes to a leaf: its rows there, together no more than ``max_rows``."""
        count, total, upto = identifier("c"), identifier("total"), identifier("upto")
        most = forms.integer(self._job.max_rows * leaves.parts, "HUGEINT")

        def share(rows: exp.Expression) -> exp.Expression:
            return binary("//", binary("*", rows, most.copy()), total.copy())

        before = binary("-", upto.copy(), count.copy())
        return forms.case(
            (
                binary("<=", total.copy(), forms.integer(self._job.max_rows)),
                times(count.copy(), leaves.parts),
            ),
            otherwise=binary("-", share(upto), share(before)),
        )
