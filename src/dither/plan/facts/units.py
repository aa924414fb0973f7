"""Whose the rows of a relation are, and how many a unit can have, by the form of the query alone.

That form is what an engine runs, whatever its tables hold. So what follows here needs no
declaration, and a limit that it lowers is lowered for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dither.plan.expressions import Column, Expression
from dither.plan.relations import (
    UNIT,
    Derived,
    Elements,
    Filter,
    KeyFilter,
    Named,
    PublicJoin,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    Unnest,
    base,
    scans,
    visible,
)
from dither.plan.schema import Schema

__all__ = [
    "column_names",
    "declared_limits",
    "is_unit",
    "is_unit_key",
    "join_rows",
    "limits",
    "most_rows",
    "padded",
    "rows_of_unit",
    "traced",
    "unit_of",
    "unnested_rows",
]


def unit_of(relation: Relation, schema: Schema) -> Column | None:
    """The column that says whose each row is; ``None`` where a row is a person."""
    match relation:
        case Scan(table=table, alias=alias):
            unit = schema.table(table).unit
            return None if unit is None else Column(alias, unit)
        case (
            Filter(source=source)
            | KeyFilter(source=source)
            | PublicJoin(source=source)
            | UnitJoin(left=source)
            | Unnest(source=source)
        ):
            return unit_of(source, schema)
        case Derived(source=source, alias=alias):
            return None if unit_of(source, schema) is None else Column(alias, UNIT)
        case UnitAggregate(alias=alias):
            return Column(alias, UNIT)
        case Union(alias=alias, parts=parts):
            return None if unit_of(parts[0], schema) is None else Column(alias, UNIT)
    raise TypeError(type(relation).__name__)


def padded(relation: Relation) -> frozenset[str]:
    """The aliases whose columns a left join sets to NULL in rows without a match."""
    match relation:
        case Filter(source=source) | KeyFilter(source=source) | Unnest(source=source):
            return padded(source)
        case PublicJoin(source=source, public=public, keep_all=keep_all):
            return padded(source) | ({public.alias} if keep_all else frozenset())
        case UnitJoin(left=left, right=right, keep_all=keep_all):
            return padded(left) | ({right.alias} if keep_all else frozenset())
    return frozenset()


def column_names(named: Named, schema: Schema) -> tuple[str, ...]:
    """The columns that may be named behind an alias."""
    match named:
        case Scan(table=table):
            return tuple(schema.table(table).columns)
        case Elements(name=name):
            return (name,)
        case Derived(columns=columns):
            return tuple(name for name, _ in columns)
        case UnitAggregate(keys=keys, values=values):
            return (*(name for name, _ in keys), *(name for name, _ in values))
        case Union(parts=parts):
            (first,) = visible(parts[0])
            return column_names(first, schema)


def below(column: Column, relation: Relation, schema: Schema) -> list[tuple[Column, Relation]]:
    """Where a column of a query in the FROM comes from, where it is passed on as it is.

    The column and the relation that it is of: one, or for a ``Union`` one of each part.
    """
    for named in visible(relation):
        if named.alias != column.table:
            continue
        match named:
            case Derived(source=source) | UnitAggregate(source=source) if column.name == UNIT:
                unit = unit_of(source, schema)
                return [] if unit is None else [(unit, source)]
            case Union(parts=parts) if column.name == UNIT:
                units = [(unit_of(part, schema), part) for part in parts]
                return [(unit, part) for unit, part in units if unit is not None]
            case Derived(source=source, columns=made) | UnitAggregate(source=source, keys=made):
                found = dict(made).get(column.name)
                return [(found, source)] if isinstance(found, Column) else []
            case Union(parts=parts):
                place = column_names(named, schema).index(column.name)
                firsts = [visible(part)[0] for part in parts]
                return [(Column(p.alias, column_names(p, schema)[place]), p) for p in firsts]
    return []


def is_unit(column: Column, relation: Relation, schema: Schema) -> bool:
    """Whether a column says, in every row, whose the row is."""
    if column.name == UNIT:
        return True
    if column.table in padded(relation):
        return False
    for named in visible(relation):
        if isinstance(named, Scan) and named.alias == column.table:
            table = schema.table(named.table)
            return table.private and table.unit == column.name
    sources = below(column, relation, schema)
    return bool(sources) and all(is_unit(c, source, schema) for c, source in sources)


def traced(column: Column, relation: Relation, schema: Schema) -> tuple[Scan, str] | None:
    """The table and column that a column is read from as it is; ``None`` where it is made anew.

    Of a ``Union`` that is where its first part has it.
    """
    for named in visible(relation):
        if isinstance(named, Scan) and named.alias == column.table:
            return named, column.name
    sources = below(column, relation, schema)
    return traced(*sources[0], schema) if sources else None


# --- how many rows a unit can have ------------------------------------------------------------


def rows_of_unit(relation: Relation, schema: Schema) -> int:
    """The most rows of one unit, where no column says whose they are; else 1.

    Those that a table may have of it, times the elements of each list that is unnested. A row that
    is public adds none, and neither ``UNION ALL`` nor a join of private tables is of such rows.
    """
    match relation:
        case Scan(table=name):
            return schema.table(name).unit_rows
        case Unnest(source=source, elements=elements):
            if unit_of(source, schema) is not None:
                return 1
            if elements.most is None:
                raise AssertionError("a list of any length beside a row that is a person")
            return elements.most * rows_of_unit(source, schema)
        case (
            Filter(source=source)
            | KeyFilter(source=source)
            | PublicJoin(source=source)
            | Derived(source=source)
        ):
            return rows_of_unit(source, schema)
    if unit_of(relation, schema) is None:
        raise AssertionError("rows of nobody that are joined, or stand one after another")
    return 1


def unnested_rows(relation: Relation, schema: Schema) -> int:
    """The most rows that ``UNNEST`` makes of one unit's rows, all its lists together."""
    return schema.table(base(relation).table).max_unnest_rows


def is_unit_key(key: Expression, groups: UnitAggregate, schema: Schema) -> bool:
    """Whether a key of groups within a unit is that unit, also under another query's name for it.

    It then tells no two rows of a unit apart.
    """
    if key == groups.unit:
        return True
    return isinstance(key, Column) and is_unit(key, groups.source, schema)


def most_rows(relation: Relation, schema: Schema) -> int | None:
    """The most rows of one unit, where the form of the query says so.

    Groups within a unit are one where it is their only key. Rows of lists are as many as a unit may
    have, which every engine enforces before it makes them (``dither.plan.lowering.unnested``).
    """
    match relation:
        case (
            Filter(source=source)
            | KeyFilter(source=source)
            | PublicJoin(source=source)
            | Derived(source=source)
        ):
            return most_rows(source, schema)
        case Unnest():
            return None if unit_of(relation, schema) is None else unnested_rows(relation, schema)
        case UnitAggregate(keys=keys):
            return 1 if all(is_unit_key(key, relation, schema) for _, key in keys) else None
        case Union(parts=parts):
            each = [most_rows(part, schema) for part in parts]
            return sum(n for n in each if n is not None) if None not in each else None
    return None


def _once_in_each(relation: Relation, keys: Collection[Expression], schema: Schema) -> bool:
    """Whether a unit has at most one row in each group of these keys.

    So it is where rows are one for each inner key, and every inner key is an outer one as it is:
    two rows of a unit then differ in an outer key.
    """
    match relation:
        case Filter(source=source) | KeyFilter(source=source) | PublicJoin(source=source):
            return _once_in_each(source, keys, schema)
        case Derived(source=source, alias=alias, columns=columns):
            passed_on = [x for n, x in columns if Column(alias, n) in keys]
            return _once_in_each(source, passed_on, schema)
        case UnitAggregate(alias=alias, keys=inner):
            return all(
                is_unit_key(key, relation, schema) or Column(alias, name) in keys
                for name, key in inner
            )
    return False


def _declared(relation: Relation, schema: Schema) -> dict[str, tuple[int, int]]:
    match relation:
        case Scan(table=name):
            table = schema.table(name)
            return {name: (table.max_groups, table.max_rows)}
        case Union(parts=parts):
            return {n: limit for part in parts for n, limit in _declared(part, schema).items()}
        case UnitJoin(left=source):
            return _declared(source, schema)
        case (
            Filter(source=source)
            | KeyFilter(source=source)
            | PublicJoin(source=source)
            | Unnest(source=source)
        ):
            return _declared(source, schema)
        case Derived(source=source) | UnitAggregate(source=source):
            return _declared(source, schema)
    raise TypeError(type(relation).__name__)


def declared_limits(relation: Relation, schema: Schema) -> tuple[int, int]:
    """The groups, and the rows in each, that a unit counts in as its tables declare.

    Of a ``Union`` of tables a unit has rows in each, often in the same groups: the rows of all of
    them, in the groups of the one that has most.
    """
    found = _declared(relation, schema).values()
    # The limits are caps of what counts, so that a unit with rows in more groups loses accuracy
    # alone.
    return max(groups for groups, _ in found), sum(rows for _, rows in found)


def limit_caps(relation: Relation, schema: Schema) -> tuple[int | None, int | None]:
    """The most groups, and rows in each, that the policy lets a question of these rows ask for.

    Whose caps add up is as in `declared_limits`, so that what is declared may be asked for. A table
    that is joined to them caps the question as well.
    """
    own = [schema.table(name) for name in _declared(relation, schema)]
    read = [schema.table(scan.table) for scan in scans(relation)]
    joined = [table for table in read if table.private and table not in own]
    groups = [_together(max, (t.max_groups_cap for t in own)), *(t.max_groups_cap for t in joined)]
    rows = [_together(sum, (t.max_rows_cap for t in own)), *(t.max_rows_cap for t in joined)]
    least = [min((n for n in caps if n is not None), default=None) for caps in (groups, rows)]
    return least[0], least[1]


def _together(add: Callable[[Iterable[int]], int], caps: Iterable[int | None]) -> int | None:
    """One cap of several tables; none where one of them has none."""
    found = list(caps)
    return None if None in found else add(n for n in found if n is not None)


def limits(
    relation: Relation, keys: Collection[Expression], groups: int, rows: int, schema: Schema
) -> tuple[int, int]:
    """Limits on the groups, and the rows in each, that a unit counts in when a relation is grouped:
    those given, lowered to what a unit can have by the form of the query.
    """
    if (most := most_rows(relation, schema)) is not None:
        groups, rows = min(groups, most), min(rows, most)
    if _once_in_each(relation, keys, schema):
        rows = 1
    return groups, rows


def join_rows(relation: Relation, schema: Schema) -> int | None:
    """The rows of a unit that a join uses of one side; ``None`` where nothing says how many."""
    declared, most = schema.table(base(relation).table).max_join_rows, most_rows(relation, schema)
    known = [n for n in (declared, most) if n is not None]
    return min(known, default=None)
