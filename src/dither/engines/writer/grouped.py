"""What every query of a job shares: who and which group each row belongs to, and what is kept.

The query of a histogram stands here too: how many rows fall into each leaf of each group, in parts.

Public keys are replaced by their position in the public list while the rows are read, so that a
row with any other key is gone before bounding, and the engine groups by small integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from sqlglot import exp

from dither.engines.writer.beyond import first_of_each, rows_in_first_groups
from dither.engines.writer.dialect import LARGEST, Seeds
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
from dither.plan import expressions as ex
from dither.plan.job import (
    LONGEST_KEY,
    Distinct,
    GroupKey,
    Job,
    Leaves,
    UnitSizeHistogram,
)
from dither.plan.schema import Kind, Value

__all__ = ["UNIT", "DistinctQuery", "GroupedQuery", "HistogramQuery"]

UNIT = "u"
SET = "set"
"""The place of the set that a group is of, where several sets of keys are grouped by."""
NOT_IN_SET = -1
"""Stands for the position of a public key in a group whose set does not have it."""


class GroupedQuery:
    """A query over the groups of a job.

    Parameters
    ----------
    job : Job
    source : RowSource
    seeds : Seeds
    part : (number, parts), optional
        The units of one of so many parts alone.
    """

    def __init__(
        self, job: Job, source: RowSource, seeds: Seeds, part: tuple[int, int] | None = None
    ) -> None:
        self._part = part
        self._job = job
        self._source = source
        self._dialect = source.dialect
        self._seeds = seeds
        self._keys = [f"k{i}" for i in range(len(job.keys))]
        self._lists = [self._listed(key) for key in job.keys]

    @property
    def width(self) -> int:
        """How many columns say which group a row of the answer is of."""
        return len(self._key_columns())

    def key_of(self, found: Sequence[object]) -> tuple[Value | float | None, ...]:
        """The group that the engine's key columns stand for."""
        every = range(len(self._keys))
        at = int(found[-1]) if self._job.sets else None  # type: ignore[call-overload]
        inside = every if at is None else self._job.sets[at]
        key = [self._value_of(i, found[i]) if i in inside else None for i in every]
        return tuple(key) if at is None else (*key, at)

    def _value_of(self, place: int, found: object) -> Value | float | None:
        key = self._job.keys[place]
        if self._lists[place] is not None:
            return key.answered[int(found)]  # type: ignore[call-overload]
        value: Value | float | None = self._dialect.value_of(found, key.kind)
        return value

    @property
    def keys_are_listed(self) -> bool:
        """Whether the key columns hold positions in public lists, every one."""
        return all(listed is not None for listed in self._lists)

    def _listed(self, key: GroupKey) -> list[tuple[int, Value]] | None:
        """The public values that the engine can hold, each once, with their positions."""
        if key.values is None:
            return None
        found: dict[object, tuple[int, Value]] = {}
        for position, value in enumerate(key.values):
            if key.kind is Kind.INTEGER and (
                not -LARGEST - 1 <= value <= LARGEST  # type: ignore[operator]
                or value != int(value)  # type: ignore[arg-type]
            ):
                continue
            # Of reals two can be one double; other values, all of one kind, are distinct.
            real = key.kind is Kind.REAL
            same = self._dialect.sql(self._dialect.constant(value, key.kind)) if real else value
            found.setdefault(same, (position, value))
        return list(found.values())

    def _key_value(self, key: GroupKey) -> exp.Expression:
        node = key.expression
        if isinstance(node, ex.Column) and self._source.reads_unchecked(key):
            return self._source.unchecked(node)
        return without_negative_zero(
            self._dialect, self._source.emitter.value(node, key.kind), key.kind
        )

    def _looked_up(
        self,
        found: exp.Select,
        value: exp.Expression,
        name: str,
        listed: list[tuple[int, Value]],
        kind: Kind,
        how: str | None = None,
    ) -> tuple[exp.Select, exp.Expression]:
        """Joined with a public list on the value, and the value's position in it."""
        table = f"{name}_public"
        joined = found.join(
            subquery(self._dialect.listed(listed, kind), table),
            on=exp.EQ(this=value, expression=identifier("value", table)),
            join_type=how,
            copy=False,
        )
        return joined, identifier("position", table)

    def _base(self, values: list[exp.Expression], *, listed: bool = True) -> exp.Select:
        """Unit, keys and the given values of every row, of public groups alone where ``listed``."""
        source, job = self._source, self._job
        how = "LEFT" if job.sets else None
        columns: list[exp.Expression] = []
        found = selected([], subquery(self._rows_of_part(source.select(job.relation)), "t"))
        for name, key, public in zip(self._keys, job.keys, self._lists, strict=True):
            value = self._key_value(key)
            if listed and public is not None:
                found, value = self._looked_up(found, value, name, public, key.kind, how)
            columns.append(named(value, name))
        if job.unit is not None:
            unit = source.emitter.value(job.unit)
            kind = source.emitter.facts(job.unit).kind
            found = found.where(is_not_null(unit.copy()), copy=False)
            columns.append(named(without_negative_zero(self._dialect, unit, kind), UNIT))
        columns.extend(values)
        if not columns:
            columns.append(named(exp.true(), "row"))
        rows = self._short_keys(found.select(*columns, copy=False), columns)
        if not job.sets:
            return rows
        return self._in_sets(rows, [column.alias for column in columns[len(job.keys) :]])

    def _short_keys(self, rows: exp.Select, columns: list[exp.Expression]) -> exp.Select:
        """The same rows; a text that is too long for a key that is discovered is NULL there."""
        texts = {
            name
            for name, key in zip(self._keys, self._job.keys, strict=True)
            if key.values is None and key.kind is Kind.TEXT
        }
        if not texts:
            return rows
        most, made = self._dialect.integer(LONGEST_KEY), []
        for column in columns:
            value = identifier(column.alias)
            if column.alias in texts:
                length = self._dialect.length(value.copy())
                value = named(case((binary("<=", length, most.copy()), value)), column.alias)
            made.append(value)
        return selected(made, subquery(rows, "keyed_rows"))

    def _rows_of_part(self, rows: exp.Select) -> exp.Select:
        """The rows of the units of this query's part; of everybody where it is of all."""
        unit = self._job.unit
        if self._part is None or unit is None:
            return rows
        kind = self._source.emitter.facts(unit).kind
        value = without_negative_zero(self._dialect, self._source.emitter.value(unit), kind)
        inside = self._dialect.in_part(value, *self._part)
        return selected([exp.Star()], subquery(rows, "all")).where(inside, copy=False)

    def _in_sets(self, rows: exp.Select, kept: Sequence[str]) -> exp.Select:
        """Each row once for every set of keys, with its group there.

        A row whose key is in no public list is in no group of a set that has the key. A key that is
        discovered may be NULL in a group of its set; the set says that it is not left out.
        """
        dialect, job = self._dialect, self._job
        at = identifier("position", "sets")
        columns, held = [], []
        for i, (name, listed) in enumerate(zip(self._keys, self._lists, strict=True)):
            inside = exp.In(
                this=at.copy(),
                expressions=[dialect.integer(j) for j, one in enumerate(job.sets) if i in one],
            )
            other = None if listed is None else dialect.integer(NOT_IN_SET)
            columns.append(named(case((inside, identifier(name)), otherwise=other), name))
            if listed is not None:
                # A key that is not public puts a row out of the sets that have it, and of no other.
                held.append(is_not_null(identifier(name)))
        columns += [named(at, SET), *(identifier(name) for name in kept)]
        numbers: list[tuple[int, Value]] = [(i, i) for i in range(len(job.sets))]
        every = selected(columns, subquery(rows, "keyed")).join(
            subquery(dialect.listed(numbers, Kind.INTEGER), "sets"), join_type="CROSS", copy=False
        )
        return selected([exp.Star()], subquery(every, "in_sets")).where(*held, copy=False)

    @property
    def _chooses_groups(self) -> bool:
        """Whether a unit can have rows in more groups than it may count in."""
        job = self._job
        most = self._most_groups
        every = [i for i in range(len(job.keys)) if i != job.block_key]
        return any(self._groups_of(one) > most for one in job.sets or (every,))

    def _groups_of(self, keys: Sequence[int]) -> float:
        """How many groups a set of keys can have: any number where one of them is discovered."""
        lists = [self._lists[i] for i in keys]
        return prod(math.inf if listed is None else len(listed) for listed in lists)

    def _group_order(self) -> list[exp.Expression]:
        # Ties of the hash are broken by the group itself, so that no other unit's rows can.
        group = [identifier(UNIT), *self._key_columns()]
        hashed = self._dialect.keyed_hash(self._seeds, group)
        return [hashed, *self._key_columns()]

    def _limited_within(self) -> list[str]:
        """What says of whose groups some are kept: a unit's, or those of each set, or block."""
        block = self._job.block_key
        return [
            UNIT,
            *([SET] if self._job.sets else []),
            *([] if block is None else [self._keys[block]]),
        ]

    def _ranked(self, rows: exp.Select, name: str, *, all_ranked: bool = False) -> exp.Select:
        """The rows in the groups of each unit, or of each and set or block, whose hash is smallest.

        ``all_ranked`` says that nobody's groups are counted first, whatever the dialect says.
        """
        within, order = self._limited_within(), self._group_order()
        most = self._most_groups
        groups = None if all_ranked else [key for key in self._keys if key not in within]
        return rows_in_first_groups(self._dialect, rows, name, within, groups, most, order)

    def _first_groups(self, parts: exp.Select, columns: Sequence[str]) -> exp.Select:
        """As ``_ranked``, of parts of which each unit has one in each of its groups."""
        within, order = self._limited_within(), self._group_order()
        columns = list(dict.fromkeys([*self._keys, *within[1:], *columns]))
        return first_of_each(self._dialect, parts, columns, within, self._most_groups, order)

    @property
    def _most_groups(self) -> int:
        """In how many groups a unit counts, or in how many of a set or of a block."""
        return self._job.each if self._job.sets else self._job.max_groups

    def _times(self, whole: exp.Expression, parts: int) -> exp.Expression:
        """A whole number counted in parts."""
        if parts == 1:
            return whole
        return self._dialect.arithmetic("*", whole, self._dialect.wide_integer(parts))

    def _set_column(self) -> list[exp.Expression]:
        return [identifier(SET)] if self._job.sets else []

    def _key_columns(self) -> list[exp.Expression]:
        return [*(identifier(name) for name in self._keys), *self._set_column()]


class DistinctQuery(GroupedQuery):
    """Writes the query of one count of distinct values."""

    def query(self, measurement: Distinct) -> exp.Select:
        """Key columns, then how many values the kept sets of all units have together."""
        emitter, made = self._source.emitter, []
        for number, operand in enumerate(measurement.operands):
            kind = emitter.facts(operand).kind
            value = without_negative_zero(self._dialect, emitter.value(operand, kind), kind)
            made.append(named(value, f"v{number or ''}"))
        names = [f"v{number or ''}" for number in range(len(made))]
        rows, keys = self._base(made), self._key_columns()
        kept = rows if self._job.unit is None else self._of_units(rows, names)
        counted = exp.Count(this=exp.Distinct(expressions=[identifier("v")]))
        if measurement.others:
            by = [*keys, *map(identifier, names)]
            once = selected(by, subquery(kept, "kept"))
            if self._job.unit is None:
                once = once.where(*(is_not_null(identifier(n)) for n in names), copy=False)
            kept = once.group_by(*(c.copy() for c in by), copy=False)
            keys, counted = [k.copy() for k in keys], exp.Count(this=exp.Star())
        query = selected([*keys, counted], subquery(kept, "kept"))
        return query.group_by(*(k.copy() for k in keys), copy=False) if keys else query

    def _of_units(self, rows: exp.Select, names: Sequence[str]) -> exp.Select:
        """Of each unit and group the ``max_rows`` values with the smallest keyed hash."""
        keys, values_of = self._key_columns(), [identifier(name) for name in names]
        by = [identifier(UNIT), *keys, *values_of]
        values = selected(by, subquery(rows, "rows")).group_by(*(c.copy() for c in by), copy=False)
        if self._chooses_groups:
            # Before values that are NULL go: in which groups a unit counts is the same for all.
            # Counted first, it took a sixth less where nobody has more, and a quarter more where
            # many have.
            values = self._ranked(values, "values", all_ranked=True)
        known = selected([exp.Star()], subquery(values, "chosen"))
        known = known.where(*(is_not_null(v.copy()) for v in values_of), copy=False)
        hashed = self._dialect.keyed_hash(self._seeds, [c.copy() for c in by])
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[identifier(UNIT), *(k.copy() for k in keys)],
            order=exp.Order(expressions=[hashed, *(v.copy() for v in values_of)]),
        )
        columns = [*(k.copy() for k in keys), *(v.copy() for v in values_of)]
        return self._dialect.ranked(
            columns, subquery(known, "known"), place, self._job.max_rows, "place"
        )


class HistogramQuery(GroupedQuery):
    """Writes the query of one histogram."""

    def query(self, measurement: Leaves | UnitSizeHistogram) -> exp.Select:
        """Key columns, then leaf and number of rows, in parts, or of units."""
        if isinstance(measurement, UnitSizeHistogram):
            return self._sizes(measurement)
        rows = self._leaf_rows(measurement)
        leaf = identifier("leaf")
        present = is_not_null(leaf.copy())
        columns = [*self._key_columns(), leaf]
        if self._job.unit is None:
            count = self._times(exp.Count(this=exp.Star()), measurement.parts)
            count = named(self._dialect.narrowed(count), "rows")
            found = selected([*columns, count], subquery(rows, "rows"))
            return found.where(present, copy=False).group_by(
                *(c.copy() for c in columns), copy=False
            )
        return self._unit_leaves(measurement, rows)

    def _leaf_rows(self, measurement: Leaves) -> exp.Select:
        emitter, operand = self._source.emitter, measurement.operand
        ends = [(measurement.lower, measurement.upper)]
        shared = emitter.shared(operand, measurement.step, "o", ends)
        value = emitter.lattice(
            operand, measurement.step, measurement.lower, measurement.upper, shared
        )
        offset = self._dialect.arithmetic("-", value, self._dialect.integer(measurement.lower))
        leaf = self._dialect.arithmetic("//", offset, self._dialect.integer(measurement.width))
        unit = [identifier(UNIT)] if self._job.unit is not None else []
        columns = [*self._key_columns(), *unit, named(leaf, "leaf")]
        return selected(columns, subquery(self._base([shared.made]), "values"))

    def _unit_leaves(self, measurement: Leaves, rows: exp.Select) -> exp.Select:
        """A unit's rows in a group in the order of their leaves, each with what it adds to its own.

        With r rows there, and m = ``max_rows``, the i-th adds floor(i m parts / r) less floor((i -
        1) m parts / r) where r > m. Rows of one leaf follow each other, so what they add is what
        ``Leaves`` says, whichever of them is the first.
        """
        leaf, keys = identifier("leaf"), self._key_columns()
        if self._chooses_groups:
            rows = self._ranked(rows, "rows")
        valued = subquery(rows, "valued")
        within = [identifier(UNIT), *keys]
        total = exp.Window(this=exp.Count(this=exp.Star()), partition_by=within)
        place = exp.Window(
            this=exp.RowNumber(),
            partition_by=[w.copy() for w in within],
            order=exp.Order(expressions=[leaf.copy()]),
        )
        columns = [*(k.copy() for k in keys), leaf.copy()]
        placed = selected([*columns, named(total, "total"), named(place, "place")], valued)
        placed = placed.where(is_not_null(leaf.copy()), copy=False)
        columns = [c.copy() for c in columns]
        weight = named(self._weight(measurement), "weight")
        weighed = selected([*columns, weight], subquery(placed, "placed"))
        columns = [c.copy() for c in columns]
        # No row weighs more than one whole.
        summed = self._dialect.summed_of_size(identifier("weight"), measurement.parts)
        summed = self._dialect.narrowed(summed)
        return selected([*columns, named(summed, "rows")], subquery(weighed, "weighed")).group_by(
            *(c.copy() for c in columns), copy=False
        )

    def _sizes(self, sizes: UnitSizeHistogram) -> exp.Select:
        """By the number of rows in a unit's largest group, or of its groups: how many units."""
        emitter, unit, size = self._source.emitter, identifier(UNIT), identifier("size")
        names = [f"b{i}" for i in range(len(sizes.by))]
        values: list[exp.Expression] = []
        for name, key in zip(names, sizes.by, strict=True):
            kind = emitter.facts(key).kind
            value = without_negative_zero(self._dialect, emitter.value(key), kind)
            values.append(named(value, name))
        by = [unit, *map(identifier, names)]
        groups = selected(
            [*by, named(exp.Count(this=exp.Star()), "c")], subquery(self._base(values), "rows")
        ).group_by(*(c.copy() for c in by), copy=False)
        made = exp.Count(this=exp.Star()) if sizes.groups else exp.Max(this=identifier("c"))
        units = selected([unit.copy(), named(made, "size")], subquery(groups, "groups"))
        units = units.group_by(unit.copy(), copy=False)
        cut = self._cell(size, [self._dialect.integer(edge) for edge in sizes.edges[1:]], 0)
        leaves = selected([named(cut, "leaf")], subquery(units, "units"))
        count = named(self._dialect.narrowed(exp.Count(this=exp.Star())), "rows")
        counted = selected([identifier("leaf"), count], subquery(leaves, "leaves"))
        return counted.group_by(identifier("leaf"), copy=False)

    def _cell(self, size: exp.Expression, cuts: list[exp.Expression], first: int) -> exp.Expression:
        """The number of a size's cell among those from ``first`` on, which the cuts divide."""
        if not cuts:
            return self._dialect.integer(first)
        middle = len(cuts) // 2
        below = binary("<", size.copy(), cuts[middle])
        return case(
            (below, self._cell(size, cuts[:middle], first)),
            otherwise=self._cell(size, cuts[middle + 1 :], first + middle + 1),
        )

    def _weight(self, leaves: Leaves) -> exp.Expression:
        """What one of a unit's rows adds to its leaf, in parts."""
        dialect, most = self._dialect, self._job.max_rows * leaves.parts
        # No unit has more rows than there are in the table.
        fits = most * dialect.most_rows < LARGEST
        whole = dialect.integer if fits else dialect.wide_integer
        total, place = identifier("total"), identifier("place")
        if not fits:
            total, place = dialect.widened(total), dialect.widened(place)

        def share(rows: exp.Expression) -> exp.Expression:
            times = dialect.arithmetic("*", rows, whole(most))
            if fits:
                return dialect.arithmetic("//", times, total.copy())
            return dialect.wide_quotient(times, total.copy())

        # Differences of one rounded running total: however each is rounded, they add up to the
        # limit.
        before = dialect.arithmetic("-", place.copy(), whole(1))
        limit = dialect.integer(self._job.max_rows)
        return case(
            (binary("<=", identifier("total"), limit), whole(leaves.parts)),
            otherwise=dialect.arithmetic("-", share(place), share(before)),
        )
