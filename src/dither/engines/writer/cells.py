"""Tables of counts as SQL: of the same rows all of them, several in one query.

Each row's values are first replaced by their places in the public lists, so that the engine groups
by small integers, and a value that is not in its list is nothing but the place after the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.engines.writer.forms import (
    call,
    case,
    identifier,
    is_not_null,
    named,
    selected,
    subquery,
)
from dither.engines.writer.grouped import UNIT, GroupedQuery
from dither.engines.writer.rows import without_negative_zero
from dither.plan.job import Cells, GroupKey, History
from dither.plan.schema import Kind

__all__ = ["ELSEWHERE", "CellsQuery"]

ELSEWHERE = -1
"""The place of a row in a key that its table does not have."""

MOST_SETS, MOST_SETS_OF_UNITS = 8, 64
"""Tables that one query counts: each has a hash table of its own while it runs, and what few of
them gain over many is lost where the rows of units are chosen anew for each query."""


class CellsQuery(GroupedQuery):
    """Writes the query of some tables of counts."""

    def query(self, tables: Sequence[Cells]) -> exp.Select:
        """The place in every key that some table has, rising, ``ELSEWHERE`` in those that the row's
        table has not; then a count, of cells that are not empty.
        """
        axes = axes_of(tables)
        rows = self._kept() if self._job.unit is not None else self._places(axes)
        columns = [f"k{axis}" for axis in axes]
        sets = [[f"k{axis}" for axis in table.axes] for table in tables]
        if self._dialect.grouping_sets:
            return self._by_sets(rows, columns, sets)
        parts = [self._by_set(rows.copy(), columns, names) for names in sets]
        found: exp.Query = parts[0]
        for part in parts[1:]:
            found = exp.Union(this=found, expression=part, distinct=False)
        return selected([exp.Star()], subquery(found, "tables"))

    def _by_sets(self, rows: exp.Select, columns: list[str], sets: list[list[str]]) -> exp.Select:
        # Places are never NULL, so NULL says that the column is not in the set.
        made: list[exp.Expression] = [
            named(call("COALESCE", identifier(name), self._dialect.integer(ELSEWHERE)), name)
            for name in columns
        ]
        found = selected([*made, self._count()], subquery(rows, "kept"))
        grouped = [exp.Tuple(expressions=[identifier(n, "kept") for n in names]) for names in sets]
        found.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=grouped)]))
        return found

    def _by_set(self, rows: exp.Select, columns: list[str], names: list[str]) -> exp.Select:
        elsewhere = self._dialect.integer(ELSEWHERE)
        made = [identifier(n) if n in names else named(elsewhere.copy(), n) for n in columns]
        found = selected([*made, self._count()], subquery(rows, "kept"))
        return found.group_by(*map(identifier, names), copy=False) if names else found

    def _count(self) -> exp.Expression:
        return named(self._dialect.narrowed(exp.Count(this=exp.Star())), "rows")

    def _places(self, axes: Sequence[int]) -> exp.Select:
        """Each row's unit, and its places in these keys."""
        source, job = self._source, self._job
        history = job.history
        if history is not None:
            axes = [axis for axis in axes if axis not in history.given]
        # Each value is computed once, below, however often its place names it.
        below = [named(self._key_value(job.keys[axis]), f"v{axis}") for axis in axes]
        rows = selected([], subquery(source.select(job.relation), "t"))
        columns: list[exp.Expression] = []
        if job.unit is not None:
            unit = source.emitter.value(job.unit)
            kind = source.emitter.facts(job.unit).kind
            rows = rows.where(is_not_null(unit.copy()), copy=False)
            below.append(named(without_negative_zero(self._dialect, unit, kind), UNIT))
            columns.append(identifier(UNIT, "values"))
        if history is not None:
            orders = {f"w{i}": node for i, node in enumerate(history.within)} | {"o": history.order}
            for name, node in orders.items():
                value, kind = source.emitter.value(node), source.emitter.facts(node).kind
                assert kind is not None
                below.append(named(without_negative_zero(self._dialect, value, kind), name))
                columns.append(identifier(name, "values"))
        if not below:
            below.append(named(exp.true(), "row"))
        found = selected([], subquery(rows.select(*below, copy=False), "values"))
        for axis in axes:
            found, place = self._placed(found, axis)
            columns.append(named(place, f"k{axis}"))
        if not columns:
            columns.append(identifier("row"))
        return found.select(*columns, copy=False)

    def _placed(self, found: exp.Select, axis: int) -> tuple[exp.Select, exp.Expression]:
        """The place of a value in its list, or the one after the last."""
        key, listed = self._job.keys[axis], self._lists[axis]
        assert key.values is not None
        assert listed is not None
        last, value = self._dialect.integer(len(key.values)), identifier(f"v{axis}", "values")
        first = _first_of_run(key)
        if first is None:
            found, place = self._looked_up(found, value, f"k{axis}", listed, key.kind, how="LEFT")
            return found, call("COALESCE", place, last)
        # Places follow each other as the values do, and need no list.
        low, high = (self._dialect.integer(n) for n in (first, first + len(key.values) - 1))
        inside = exp.Between(this=value, low=low, high=high)
        # Held within the run although only those inside it get here: an engine may compute a branch
        # of every row, and elsewhere the difference could leave 64 bits.
        near = self._dialect.greatest(self._dialect.least(value.copy(), high.copy()), low.copy())
        place = self._dialect.arithmetic("-", near, low.copy())
        return found, case((inside, place), otherwise=last)

    def _after_another(self, rows: exp.Select, history: History) -> exp.Select:
        """The same rows with their places in the keys that a history gives."""
        keys, integer = self._job.keys, self._dialect.integer
        own = [axis for axis in range(len(keys)) if axis not in history.given]
        unordered = case((is_not_null(identifier("o")), integer(0)), otherwise=integer(1))
        order = [unordered, identifier("o"), *(identifier(f"k{axis}") for axis in own)]
        parted = [identifier(UNIT), *(identifier(f"w{i}") for i in range(len(history.within)))]

        def over(function: exp.Expression) -> exp.Expression:
            return exp.Window(
                this=function,
                partition_by=[part.copy() for part in parted],
                order=exp.Order(expressions=[part.copy() for part in order]),
            )

        columns: list[exp.Expression] = [identifier(UNIT), *(identifier(f"k{a}") for a in own)]
        made = [
            *columns,
            identifier("o"),
            named(over(exp.RowNumber()), "number"),
            named(over(exp.Lag(this=identifier("o"))), "earlier"),
            *(
                named(over(exp.Lag(this=identifier(f"k{of}"))), f"b{key}")
                for key, of in history.before
            ),
        ]
        found = selected(
            [c.copy() for c in columns], subquery(selected(made, subquery(rows, "own")), "ordered")
        )

        def listed(key: int) -> int:
            return len(keys[key].values or ())

        places: dict[int, exp.Expression] = {
            key: call("COALESCE", identifier(f"b{key}"), integer(listed(key)))
            for key, _ in history.before
        }
        most = self._dialect.least(identifier("number"), integer(listed(history.number)))
        places[history.number] = self._dialect.arithmetic("-", most, integer(1))
        if history.gap is not None:
            gap = self._dialect.arithmetic("-", identifier("o"), identifier("earlier"))
            there = is_not_null(gap.copy())
            steps = [
                (exp.LT(this=gap.copy(), expression=integer(edge)), integer(i))
                for i, edge in enumerate(history.edges[1:])
            ]
            last = integer(len(history.edges) - 1)
            inside = case(*steps, otherwise=last) if steps else last
            places[history.gap] = case((there, inside), otherwise=integer(listed(history.gap)))
        return found.select(*(named(p, f"k{key}") for key, p in sorted(places.items())), copy=False)

    def _kept(self) -> exp.Select:
        """The places of at most ``max_rows`` rows of each unit in every key of the job.

        Equal rows are distinguished by a number; as they are alike, it does not matter which has
        which.
        """
        rows = self._places(range(len(self._job.keys)))
        if self._job.history is not None:
            rows = self._after_another(rows, self._job.history)
        content = [identifier(UNIT), *self._key_columns()]
        number = self._dialect.row_number([c.copy() for c in content])
        numbered = selected([exp.Star(), named(number, "occurrence")], subquery(rows, "places"))
        content = [*(c.copy() for c in content), identifier("occurrence")]
        hashed = self._dialect.keyed_hash(self._seeds, content)
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[identifier(UNIT)],
            order=exp.Order(expressions=[hashed, *(c.copy() for c in content)]),
        )
        most = self._job.max_rows
        kept = self._key_columns() or [identifier(UNIT)]
        return self._dialect.ranked(kept, subquery(numbered, "numbered_rows"), rank, most, "rank")


def axes_of(tables: Sequence[Cells]) -> list[int]:
    """Every key that some table has, rising."""
    return sorted({axis for table in tables for axis in table.axes})


def _first_of_run(key: GroupKey) -> int | None:
    """Where a key's values are whole numbers that follow each other: the first of them."""
    values = key.values
    if not values or key.kind is not Kind.INTEGER or isinstance(values[0], bool):
        return None
    first = values[0]
    if not all(isinstance(v, int) and v == first + i for i, v in enumerate(values)):  # type: ignore[operator]
        return None
    assert isinstance(first, int)
    # So far from the ends of 64 bits, the last of the run and every difference fit them too.
    return first if -(2**62) <= first <= 2**62 else None
