"""What may be joined: relations, checked as they are built.

A join is admitted only where no row of a person can be multiplied without a declared bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.errors import QueryError, UnsupportedError
from dither.plan.expressions import Column, Expression
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import is_unit, join_rows
from dither.plan.lowering.unnested import items
from dither.plan.relations import (
    Elements,
    Named,
    PublicJoin,
    Relation,
    Scan,
    UnitJoin,
    Unnest,
    base,
    visible,
)
from dither.plan.schema import Kind, Schema
from dither.sql.names import Names, find, find_table

__all__ = ["beside", "check_alias", "join", "join_public", "join_unit", "unnest"]

MOST_PAIRS = 1_000_000
"""Of rows of one unit that a join of two private tables may look at. A policy may let a unit have
many rows on either side; what they are together decides how long a question runs."""

Pairs = Sequence[tuple[Expression, str]]
"""What a join sets equal: an expression over the source, a column of the joined side."""


def join(
    source: Relation, joined: Named, pairs: Pairs, keep_all: bool, schema: Schema
) -> PublicJoin | UnitJoin:
    """Join a table, or a query in the FROM, by its kind: ``join_public`` or ``join_unit``."""
    if isinstance(joined, Scan) and not schema.table(joined.table).private:
        return join_public(source, joined, pairs, keep_all, schema)
    return join_unit(source, joined, pairs, keep_all, schema)


def join_public(
    source: Relation, scan: Scan, pairs: Pairs, keep_all: bool, schema: Schema
) -> PublicJoin:
    """Join the one matching row of a public table to each row of the source.

    Parameters
    ----------
    source : Relation
    scan : Scan
        The public table.
    pairs : sequence of (Expression, str)
        What is set equal: an expression over the source and a column of the public table. One of
        the columns must be declared unique, or several of them together.
    keep_all : bool
        Whether rows without a match stay, with NULL in the public columns (a left join).
    schema : Schema

    Raises
    ------
    QueryError
        Where the joined columns hold none that is declared unique, alone or with others, so that
        the join could fan out without a bound.
    """
    facts = schema.table(scan.table)
    check_alias(source, scan)
    if facts.private:
        raise QueryError(f"JOIN {facts.name}: {facts.name!r} is private; join it on its unit")
    if not pairs:
        raise QueryError(f"JOIN {facts.name}: at least one equality of columns is needed")
    columns = [facts.column(name).name for _, name in pairs]
    if not any({*key} <= {*columns} for key in facts.unique_keys):
        on = ", ".join(columns)
        together = f", or unique = [{columns!r}] if they do not together" if columns[1:] else ""
        raise QueryError(
            f"JOIN {facts.name} ON {on}: the join could fan out without a bound, since none of its "
            f"columns is declared unique; declare unique = [{columns[0]!r}] for table "
            f"{facts.name!r} in the policy, if no value of it occurs twice{together}"
        )
    _same_kinds(source, pairs, scan, schema)
    on_pairs = tuple(
        (left, Column(scan.alias, name)) for (left, _), name in zip(pairs, columns, strict=True)
    )
    return PublicJoin(source, scan, on_pairs, keep_all)


def join_unit(
    left: Relation, right: Named, pairs: Pairs, keep_all: bool, schema: Schema
) -> UnitJoin:
    """Join two private tables, or queries of them, on the protected unit of both.

    Parameters
    ----------
    left, right : Relation
    pairs : sequence of (Expression, str)
        One of them the unit columns of both sides; others set equal more of the rows of one unit.
    keep_all : bool
        Whether rows on the left without a match stay, with NULL on the right (a left join).
    schema : Schema

    Raises
    ------
    UnsupportedError
        Where a row of either table is a person, or for a third private table.
    QueryError
        Where the join is not on the units, the two units are not declared to be the same people, or
        ``max_join_rows`` is not declared.
    """
    check_alias(left, right)
    owner, facts = (schema.table(base(side).table) for side in (left, right))
    called = facts.name if isinstance(right, Scan) else right.alias
    what = f"{'LEFT ' if keep_all else ''}JOIN {called}"
    if not facts.private:
        raise QueryError(f"{what}: {facts.name!r} is public; join it on a unique column")
    first, *others = visible(left)
    if any(isinstance(other, Elements) for other in others):
        raise UnsupportedError(
            f"{what}: the rows that a join may use are cut before it, by max_join_rows, and lists "
            "are unnested after; join first, in a query in the FROM that names the unit, or unnest "
            "in one"
        )
    if any(schema.table(base(other).table).private for other in others):
        raise UnsupportedError(f"{what}: a join of more than two private tables is not offered")
    for table in (owner, facts):
        if table.unit is None:
            raise UnsupportedError(
                f"{what}: a row of {table.name!r} is a person of its own, so it cannot be joined "
                "to another private table; declare its unit in the policy, if it has one"
            )
    if owner.name != facts.name and (owner.unit_name is None or owner.unit_name != facts.unit_name):
        raise QueryError(
            f"{what}: the policy does not say that {owner.unit!r} of {owner.name!r} and "
            f"{facts.unit!r} of {facts.name!r} are the same people; if they are, name both tables "
            f'in one [units.NAME], columns = {{ {owner.name} = "{owner.unit}", '
            f'{facts.name} = "{facts.unit}" }}'
        )
    on = [(ours, Column(right.alias, theirs)) for ours, theirs in pairs]
    units = [
        (ours, theirs)
        for ours, theirs in on
        if isinstance(ours, Column)
        and is_unit(ours, left, schema)
        and is_unit(theirs, right, schema)
    ]
    if not units:
        raise QueryError(
            f"{what}: two private tables are joined on their protected units, and on more columns "
            f"where that is wanted; write ON {_unit_text(first, schema)} = "
            f"{_unit_text(right, schema)}"
        )
    pairs_of_unit = 1
    for side, table in ((left, owner), (right, facts)):
        rows = join_rows(side, schema)
        pairs_of_unit *= rows or 1
        if rows is None:
            raise QueryError(
                f"{what}: the join could fan out without a bound; declare max_join_rows for table "
                f"{table.name!r} in the policy: the rows of one {table.unit!r} that are joined"
            )
    if pairs_of_unit > MOST_PAIRS:
        raise QueryError(
            f"{what}: one {owner.unit} could have {pairs_of_unit:,} pairs of rows, more than "
            f"{MOST_PAIRS:,}; lower max_join_rows in the policy, or join a query in the FROM that "
            f"has one row for each {owner.unit}"
        )
    scopes = scope_of(left, schema), scope_of(right, schema)
    kinds = [scope.column(unit).kind for scope, unit in zip(scopes, units[0], strict=True)]
    if kinds[0] is not kinds[1]:
        # As doubles, two large integers can be equal: one person's rows would join another's.
        raise QueryError(
            f"{what}: column {units[0][1].name!r} is {kinds[1].value} and is set equal to "
            f"{kinds[0].value}; join columns of one kind"
        )
    more = tuple(pair for pair in on if pair != units[0])
    _same_kinds(left, [(ours, c.name) for ours, c in more], right, schema)
    return UnitJoin(left, right, *units[0], more, keep_all)


def unnest(
    source: Relation,
    written: tuple[str, str | None],
    alias: str,
    name: str,
    schema: Schema,
    *,
    exact: bool = False,
) -> Unnest:
    """Rows beside each element of a list that they hold.

    Parameters
    ----------
    source : Relation
    written : tuple of str
        The list's column and, where it is given, the alias of its table.
    alias, name : str
        What the elements go by: ``alias.name``.
    schema : Schema
    exact : bool
        Whether upper and lower case of the column matter.

    Raises
    ------
    UnknownNameError
        Where no table of the source has such a column.
    QueryError
        Where it is not a list, or a row of its table is a person and nothing says how many elements
        count; or where lists beside one another could make too many rows of one.
    """
    column, table = written
    scans = [scan for scan in visible(source) if isinstance(scan, Scan)]
    if table is not None:
        wanted = Names(source, schema).table(table)
        scans = [scan for scan in scans if scan.alias == wanted]
    found = [
        (scan, match)
        for scan in scans
        for match in find(column, schema.table(scan.table).lists, exact=exact)
    ]
    if not found:
        above = [one for one in visible(source) if not isinstance(one, Scan)]
        below = [
            t for t in schema.tables.values() if t.private and find(column, t.lists, exact=exact)
        ]
        if above and below:
            raise QueryError(
                f"UNNEST({column}): a query in the FROM hands no list on; unnest where the table "
                f"is read: FROM {below[0].name}, UNNEST({column}) AS t(x)"
            )
        Names(source, schema).column(column, table, exact=exact)
        raise QueryError(f"UNNEST({column}): the column is not a list")
    if len(found) > 1:
        options = " or ".join(f"{scan.alias}.{match}" for scan, match in found)
        raise QueryError(f"UNNEST({column}): the column is ambiguous; write {options}")
    ((scan, match),) = found
    owner = schema.table(scan.table)
    if not owner.private:
        raise UnsupportedError(
            f"UNNEST({column}): {owner.name!r} is public; store a row for each element of its list"
        )
    most = owner.lists[match].max_items
    if owner.unit is None and most is None:
        raise QueryError(
            f"UNNEST({column}): a row of {owner.name!r} is a person, who would have a row for each "
            f"element; declare in the policy how many of them count (max_items = 10 of {match!r}), "
            "or the column that tells people apart (unit = ...)"
        )
    if any(isinstance(one, UnitJoin) for one in _joined(source)):
        raise UnsupportedError(
            f"UNNEST({column}) after a join of private tables is not offered; unnest in a query in "
            "the FROM, and join that"
        )
    elements = Elements(scan.alias, match, alias, name, most)
    check_alias(source, elements)
    made = Unnest(source, elements)
    items(made, schema)
    return made


def _joined(relation: Relation) -> list[Relation]:
    """The joins of a FROM."""
    found: list[Relation] = []
    while isinstance(relation, PublicJoin | Unnest | UnitJoin):
        found.append(relation)
        relation = relation.left if isinstance(relation, UnitJoin) else relation.source
    return found


def _unit_text(side: Named, schema: Schema) -> str:
    """How the unit of one side is written, where a column of it is the unit."""
    names = Names(side, schema)
    found = [c for c in names.columns if names.is_unit(c)]
    unit = found[0].name if found else str(schema.table(base(side).table).unit)
    return f"{side.alias}.{unit}"


def beside(
    source: Relation, table: str, alias: str | None, schema: Schema, *, exact: bool = False
) -> Scan:
    """The table that is about to be joined, under a name that no other goes by."""
    facts = find_table(table, schema, exact=exact)
    scan = Scan(facts.name, alias or facts.name)
    check_alias(source, scan)
    return scan


def check_alias(source: Relation, joined: Named) -> None:
    """Refuse a name by which something in the FROM goes already."""
    if find(joined.alias, [s.alias for s in visible(source)]):
        called = joined.table if isinstance(joined, Scan) else joined.alias
        raise QueryError(
            f"JOIN {called}: two tables go by the name {joined.alias!r}; give one another name "
            f"with AS"
        )


def _same_kinds(source: Relation, pairs: Pairs, joined: Named, schema: Schema) -> None:
    names, scope = Names(source, schema), scope_of(joined, schema)
    called = joined.table if isinstance(joined, Scan) else joined.alias
    for left, name in pairs:
        kinds: tuple[Kind | None, Kind]
        kinds = names.kind(left), scope.column(Column(joined.alias, name)).kind
        if kinds[0] is None or kinds[0] is kinds[1] or (kinds[0].numeric and kinds[1].numeric):
            continue
        raise QueryError(
            f"JOIN {called}: column {name!r} is {kinds[1].value} and is set equal to "
            f"{kinds[0].value}; join columns of one kind"
        )
