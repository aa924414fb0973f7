"""Relations, checked as they are built: where a query may start, and what may be joined.

A join is admitted only where no row of a person can be multiplied without a declared bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.errors import QueryError, UnsupportedError
from dither.plan.expressions import Column, Expression
from dither.plan.relations import PublicJoin, Relation, Scan, UnitJoin, base, scans
from dither.plan.schema import Kind, Schema, Table
from dither.sql.names import Names, find, find_table

__all__ = ["beside", "join", "join_public", "join_unit", "start"]

Pairs = Sequence[tuple[Expression, str]]
"""What a join sets equal: an expression over the source, a column of the joined table."""


def start(table: str, alias: str | None, schema: Schema, *, exact: bool = False) -> Scan:
    """The private table that a query starts from.

    Parameters
    ----------
    table : str
    alias : str, optional
        The name that columns use for it; its own where ``None``.
    schema : Schema
    exact : bool
        Whether upper and lower case matter, as in a quoted identifier.

    Raises
    ------
    UnknownNameError
        Where there is no such table.
    UnsupportedError
        Where it is public.
    """
    facts = find_table(table, schema, exact=exact)
    if not facts.private:
        raise UnsupportedError(
            f"FROM {facts.name}: the table is public and protects nobody, so it needs no noise; "
            "start FROM the private table and JOIN the public one to it"
        )
    return Scan(facts.name, alias or facts.name)


def join(
    source: Relation, table: str, alias: str | None, pairs: Pairs, keep_all: bool, schema: Schema
) -> PublicJoin | UnitJoin:
    """Join a table, by its kind: ``join_public`` or ``join_unit``."""
    facts = find_table(table, schema)
    if not facts.private:
        return join_public(source, table, alias, pairs, keep_all, schema)
    if keep_all:
        raise UnsupportedError(
            f"LEFT JOIN of the private table {facts.name!r} is not offered; write JOIN"
        )
    return join_unit(source, table, alias, pairs, schema)


def join_public(
    source: Relation, table: str, alias: str | None, pairs: Pairs, keep_all: bool, schema: Schema
) -> PublicJoin:
    """Join the one matching row of a public table to each row of the source.

    Parameters
    ----------
    source : Relation
    table : str
        The public table.
    alias : str, optional
        The name that columns use for it; its own where ``None``.
    pairs : sequence of (Expression, str)
        What is set equal: an expression over the source and a column of the public table. At least
        one of the columns must be declared unique.
    keep_all : bool
        Whether rows without a match stay, with NULL in the public columns (a left join).
    schema : Schema

    Raises
    ------
    QueryError
        Where no joined column is declared unique, so that the join could fan out without a bound.
    """
    facts, scan = beside(source, table, alias, schema)
    if facts.private:
        raise QueryError(f"JOIN {facts.name}: {facts.name!r} is private; join it on its unit")
    if not pairs:
        raise QueryError(f"JOIN {facts.name}: at least one equality of columns is needed")
    columns = [facts.column(name).name for _, name in pairs]
    if not facts.unique.intersection(columns):
        on = ", ".join(columns)
        raise QueryError(
            f"JOIN {facts.name} ON {on}: the join could fan out without a bound, since none of its "
            f"columns is declared unique; declare unique = [{columns[0]!r}] for table "
            f"{facts.name!r} in the policy, if no value of it occurs twice"
        )
    _same_kinds(source, pairs, facts, schema)
    on_pairs = tuple(
        (left, Column(scan.alias, name)) for (left, _), name in zip(pairs, columns, strict=True)
    )
    return PublicJoin(source, scan, on_pairs, keep_all)


def join_unit(
    left: Relation, table: str, alias: str | None, pairs: Pairs, schema: Schema
) -> UnitJoin:
    """Join two private tables on the protected unit of both.

    Parameters
    ----------
    left : Relation
    table : str
        The other private table.
    alias : str, optional
        The name that columns use for it; its own where ``None``.
    pairs : sequence of (Expression, str)
        One pair: the unit column of the left table and that of the right one.
    schema : Schema

    Raises
    ------
    UnsupportedError
        Where a row of either table is a person, or for a third private table.
    QueryError
        Where the join is not on the units and those alone, the two units are not declared to be the
        same people, or ``max_join_rows`` is not declared.
    """
    facts, scan = beside(left, table, alias, schema)
    origin = base(left)
    owner = schema.table(origin.table)
    what = f"JOIN {facts.name}"
    if not facts.private:
        raise QueryError(f"{what}: {facts.name!r} is public; join it on a unique column")
    if any(schema.table(s.table).private for s in scans(left) if s != origin):
        raise UnsupportedError(f"{what}: a join of more than two private tables is not offered")
    for side in (owner, facts):
        if side.unit is None:
            raise UnsupportedError(
                f"{what}: a row of {side.name!r} is a person of its own, so it cannot be joined to "
                "another private table; declare its unit in the policy, if it has one"
            )
    if owner.name != facts.name and (owner.unit_name is None or owner.unit_name != facts.unit_name):
        raise QueryError(
            f"{what}: the policy does not say that {owner.unit!r} of {owner.name!r} and "
            f"{facts.unit!r} of {facts.name!r} are the same people; if they are, name both tables "
            f'in one [units.NAME], columns = {{ {owner.name} = "{owner.unit}", '
            f'{facts.name} = "{facts.unit}" }}'
        )
    assert owner.unit is not None
    assert facts.unit is not None
    left_unit = Column(origin.alias, owner.unit)
    if len(pairs) != 1 or pairs[0][0] != left_unit or pairs[0][1] != facts.unit:
        raise QueryError(
            f"{what}: two private tables are joined on their protected units and on those alone; "
            f"write ON {origin.alias}.{owner.unit} = {scan.alias}.{facts.unit}"
        )
    for side in (owner, facts):
        if side.max_join_rows is None:
            raise QueryError(
                f"{what}: the join could fan out without a bound; declare max_join_rows for table "
                f"{side.name!r} in the policy: the rows of one {side.unit!r} that are joined"
            )
    kinds = owner.column(owner.unit).kind, facts.column(facts.unit).kind
    if kinds[0] is not kinds[1]:
        # As doubles, two large integers can be equal: one person's rows would join another's.
        raise QueryError(
            f"{what}: column {facts.unit!r} is {kinds[1].value} and is set equal to "
            f"{kinds[0].value}; join columns of one kind"
        )
    return UnitJoin(left, scan, left_unit, Column(scan.alias, facts.unit))


def beside(
    source: Relation, table: str, alias: str | None, schema: Schema, *, exact: bool = False
) -> tuple[Table, Scan]:
    """The table that is about to be joined, under a name that no other goes by."""
    facts = find_table(table, schema, exact=exact)
    scan = Scan(facts.name, alias or facts.name)
    if find(scan.alias, [s.alias for s in scans(source)]):
        raise QueryError(
            f"JOIN {facts.name}: two tables go by the name {scan.alias!r}; give one another name "
            f"with AS"
        )
    return facts, scan


def _same_kinds(source: Relation, pairs: Pairs, facts: Table, schema: Schema) -> None:
    names = Names(source, schema)
    for left, name in pairs:
        kinds: tuple[Kind | None, Kind] = names.kind(left), facts.column(name).kind
        if kinds[0] is None or kinds[0] is kinds[1] or (kinds[0].numeric and kinds[1].numeric):
            continue
        raise QueryError(
            f"JOIN {facts.name}: column {name!r} is {kinds[1].value} and is set equal to "
            f"{kinds[0].value}; join columns of one kind"
        )
