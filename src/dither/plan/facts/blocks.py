"""Which blocks of its tables a question reads: from the text of the question alone.

A table may lie in blocks, stretches of one column (``dither.blocks``). A question is charged to the
blocks that it reads, and an engine leaves rows of all others out before it does anything else. So
two things must hold of the set S that is found here for each ``Scan``.

*Nothing that counts is lost.* A row outside of S is one that the question leaves out by itself, so
that its answer is the same over the rows of S. Conditions come down from above: a ``Filter`` keeps
a row where its predicate is true, and what it names is traced to the columns of the table.

- ``Filter``, ``KeyFilter``, ``PublicJoin``, ``Unnest``, ``Derived``: what is made of a row is made
  of it alone, by its own values. A condition that is never true of what is made of a row leaves all
  of that out, so the row may be missing.
- ``UnitAggregate``: a group is of rows with the same keys. A condition on keys alone that is not
  true of a row's keys is true for no row of its group, and leaves the whole group out. A condition
  on an aggregate is one on several rows, and so restricts nothing below.
- ``Union``: each part by itself, with the column that stands in its place.
- ``UnitJoin``: a pair has one row of either side. A condition that is never true beside a row of
  the right leaves out all pairs with it. Of a left join these pairs may be all that a row on the
  left has: it is then kept once more, the columns of the right NULL. Where the condition is never
  true of that either, nothing changes; else the right is not restricted. Which rows of a unit are
  cut to ``max_join_rows``, and how many lists of it are unnested, is decided among its rows in S:
  limits hold over all blocks that are read together.
- A ``GROUP BY`` whose keys are a public list is a condition: rows with other keys are left out.

*S follows from literals alone.* What is not understood may be true of any row.

``conditions`` reads predicates, and ``points`` says which blocks their values are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from dither.blocks._calendar import Calendar
from dither.blocks._sets import BlockSet
from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.conditions import Conditions
from dither.plan.facts.points import Points
from dither.plan.facts.units import column_names
from dither.plan.job import GroupKey
from dither.plan.relations import (
    Derived,
    Filter,
    KeyFilter,
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
from dither.plan.schema import Schema, Table

__all__ = ["block_key", "in_blocks", "may_be_true", "read_blocks", "reading"]

ANY_CALENDAR = Calendar(every="day")
"""Tables without a column of blocks are named, and no calendar is asked."""

MOST_RANGES = 400
"""A set of more ranges is taken for what lies between its ends: it must be written as SQL."""

UNKNOWN = ex.Column("\x00", "\x00")
"""Stands for whatever is not understood: no alias holds NUL."""

Part = ex.Expression
R = TypeVar("R", bound=Relation)


# --- through a relation ---------------------------------------------------------------------------


def in_blocks(
    relation: Relation, schema: Schema, conditions: Sequence[Part] = ()
) -> tuple[Relation, BlockSet | None]:
    """The same rows out of the blocks that they can lie in, and these blocks.

    Parameters
    ----------
    relation : Relation
    schema : Schema
        Its ``today`` says which blocks of time have begun: no others are read.
    conditions : sequence of Expression
        On the columns that may be named above; rows for which one is not true are left out there.

    Returns
    -------
    Relation
        Each of its tables with ``Scan.blocks``.
    BlockSet or None
        What is read of all tables together; ``None`` where none of them lies in blocks.

    Raises
    ------
    QueryError
        Where it can read no row.
    """
    found = _restricted(relation, schema, tuple(conditions))
    read = read_blocks(found, schema)
    if read is not None and not read:
        raise QueryError(
            "WHERE keeps no row of a block that has begun: without rows the answer is known, and "
            "costs nothing"
        )
    return found, read


def read_blocks(relation: Relation, schema: Schema) -> BlockSet | None:
    """The blocks that a relation reads; ``None`` where no table of it lies in blocks."""
    found = None
    for scan in scans(relation):
        own = blocks_of(scan, schema)
        if own is not None:
            found = own if found is None else found | own
    return found


def blocks_of(scan: Scan, schema: Schema) -> BlockSet | None:
    """The blocks that are read of one table; ``None`` of one that does not lie in blocks."""
    table = schema.table(scan.table)
    if table.one_block:
        return BlockSet.of_table(table.name)
    if table.block is None:
        return None
    return table.block[1].all if scan.blocks is None else scan.blocks


def block_key(relation: Relation, schema: Schema, keys: Sequence[GroupKey]) -> int | None:
    """The key that alone says in which block each row lies; ``None`` where there is none.

    Then every group is of one block, and where what is made of a row is made of it alone, a group
    depends on rows of its block alone: the question reads its blocks in parallel. Joins of private
    tables, nested groups and lists are limited over all rows of a unit, and are not such.

    Parameters
    ----------
    relation : Relation
    schema : Schema
    keys : sequence of GroupKey
    """
    for place, key in enumerate(keys):
        if key.values is None or not _is_block(relation, schema, key.expression):
            continue
        block = schema.table(base(relation).table).block
        assert block is not None
        # Values that are not declared share a block, and so would their groups.
        if len({block[1].block_of(value) for value in key.values}) == len(key.values):
            return place
    return None


def _is_block(relation: Relation, schema: Schema, key: Part) -> bool:
    """Whether rows of one block, and no others, share a value of a key."""
    match relation:
        case Scan(table=name, alias=alias):
            block = schema.table(name).block
            if block is None:
                return False
            column = ex.Column(alias, block[0])
            if isinstance(key, ex.DateTruncate):
                return key.operand == column and key.part == block[1].every
            return key == column and block[1].values is not None
        case Filter(source=source) | KeyFilter(source=source) | PublicJoin(source=source):
            return _is_block(source, schema, key)
        case Derived(source=source, alias=alias, columns=made):
            return _is_block(source, schema, _renamed([key], alias, dict(made))[0])
    return False


def reading(relation: Relation, blocks: BlockSet, schema: Schema) -> str:
    """What is read of a relation, in words."""
    calendars = (schema.table(scan.table).block for scan in scans(relation))
    calendar = next((block[1] for block in calendars if block is not None), ANY_CALENDAR)
    return calendar.reading(blocks)


def _restricted(relation: R, schema: Schema, above: tuple[Part, ...]) -> R:
    found: Relation
    match relation:
        case Scan():
            found = _scan(relation, schema, above)
        case Filter(source=source, predicate=predicate):
            found = replace(relation, source=_restricted(source, schema, (*above, predicate)))
        case KeyFilter(source=source) | PublicJoin(source=source) | Unnest(source=source):
            found = replace(relation, source=_restricted(source, schema, above))
        case UnitJoin(left=left, right=right):
            kept = above if _never_padded(relation, above) else ()
            found = replace(
                relation,
                left=_restricted(left, schema, above),
                right=_restricted(right, schema, kept),
            )
        case Derived(source=source, alias=alias, columns=made):
            below = _renamed(above, alias, dict(made))
            found = replace(relation, source=_restricted(source, schema, below))
        case UnitAggregate(source=source, alias=alias, keys=made):
            below = _renamed(above, alias, dict(made))
            found = replace(relation, source=_restricted(source, schema, below))
        case Union():
            found = _united(relation, schema, above)
        case _:
            found = relation
    return found  # type: ignore[return-value]


def _united(union: Union, schema: Schema, above: tuple[Part, ...]) -> Union:
    names = column_names(union, schema)
    parts = []
    for part in union.parts:
        (own,) = visible(part)
        placed = zip(names, column_names(own, schema), strict=True)
        made: dict[str, Part] = {name: ex.Column(own.alias, its) for name, its in placed}
        parts.append(_restricted(part, schema, _renamed(above, union.alias, made)))
    return replace(union, parts=tuple(parts))


def _never_padded(join: UnitJoin, above: tuple[Part, ...]) -> bool:
    """Whether no row of the left that is kept without a match passes the conditions above."""
    if not join.keep_all:
        return True
    alias = join.right.alias
    padded = _mapped(ex.And(above), lambda c: ex.Literal(None) if c.table == alias else UNKNOWN)
    return not Conditions().of(padded)[0]


def _renamed(above: Iterable[Part], alias: str, made: Mapping[str, Part]) -> tuple[Part, ...]:
    """Conditions on what a query makes as those on what it is made of."""

    def below(column: ex.Column) -> Part:
        return made.get(column.name, UNKNOWN) if column.table == alias else UNKNOWN

    return tuple(_mapped(condition, below) for condition in above)


def _mapped(node: Part, made: Callable[[ex.Column], Part]) -> Part:
    """An expression with others in the place of its columns."""
    if isinstance(node, ex.Column):
        return made(node)
    if isinstance(node, ex.Unreadable):
        # It is asked of a table's own column, which what stands in its place may not be.
        return UNKNOWN
    changed = {}
    for field in fields(node):
        value = getattr(node, field.name)
        other = _mapped_in(value, made)
        if other is not value:
            changed[field.name] = other
    return replace(node, **changed) if changed else node


def _mapped_in(value: Any, made: Callable[[ex.Column], Part]) -> Any:
    if isinstance(value, ex.Expression):
        return _mapped(value, made)
    if isinstance(value, tuple) and any(isinstance(part, ex.Expression | tuple) for part in value):
        return tuple(_mapped_in(part, made) for part in value)
    return value


def _scan(scan: Scan, schema: Schema, above: tuple[Part, ...]) -> Scan:
    table = schema.table(scan.table)
    if table.block is None:
        return scan
    name, calendar = table.block
    begun = calendar.all if schema.today is None else calendar.begun(schema.today)
    found = may_be_true(ex.And(above), ex.Column(scan.alias, name), table) & begun
    return replace(scan, blocks=found)


def may_be_true(predicate: Part, column: ex.Column, table: Table) -> BlockSet:
    """The blocks in which a row may lie for which a predicate is true.

    Parameters
    ----------
    predicate : Expression
    column : Column
        The column of blocks, as the predicate names it.
    table : Table
        Has it.

    Examples
    --------
    >>> import datetime as dt
    >>> from dither.plan.schema import ColumnFacts, Kind
    >>> day, months = ColumnFacts("day", Kind.DATE), Calendar(every="month")
    >>> visits = Table("visits", {"day": day}, block=("day", months))
    >>> column = ex.Column("v", "day")
    >>> since = ex.Compare(">=", column, ex.Literal(dt.date(2024, 3, 9)))
    >>> months.describe(may_be_true(since, column, table=visits))
    '2024-03 and later'
    >>> months.describe(may_be_true(ex.Not(since), column, table=visits))
    'all up to 2024-03'
    """
    assert table.block is not None
    name, calendar = table.block
    points = Points(table.column(name).kind, calendar)
    true, _ = Conditions(column, points).of(predicate)
    found = points.blocks(true)
    if len(found.ranges) > MOST_RANGES:
        found |= BlockSet.of_range(found.ranges[0][0], found.ranges[-1][1])
    return found
