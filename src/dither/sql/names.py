"""What a name in a query means: the columns that are in scope over a relation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dither.errors import QueryError, UnknownNameError, nearest
from dither.plan.expressions import Column, Expression
from dither.plan.facts import Scope, infer
from dither.plan.kinds import Kind
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, scans
from dither.plan.schema import ColumnFacts, Schema, Table

__all__ = ["Names", "find", "find_table"]


def find(name: str, known: Iterable[str], *, exact: bool = False) -> tuple[str, ...]:
    """The known names that a written one can mean.

    The same spelling wins; otherwise upper and lower case are alike, unless ``exact``, which is how
    a quoted identifier is read.

    Examples
    --------
    >>> find("AGE", ["age", "cost"]), find("AGE", ["age", "cost"], exact=True)
    (('age',), ())
    """
    options = tuple(known)
    if name in options:
        return (name,)
    if exact:
        return ()
    return tuple(o for o in options if o.casefold() == name.casefold())


def find_table(name: str, schema: Schema, *, exact: bool = False) -> Table:
    """The table that a written name means.

    Raises
    ------
    UnknownNameError
        Where there is none; the nearest is offered.
    QueryError
        Where several differ from it in upper and lower case alone.
    """
    found = find(name, schema.tables, exact=exact)
    if len(found) > 1:
        shown = " and ".join(repr(f) for f in found)
        raise QueryError(f"table {name!r} could be {shown}; write it as it is declared")
    return schema.table(found[0] if found else name)


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that expressions over a relation may name.

    Parameters
    ----------
    relation : Relation
    schema : Schema
    beside : Scan, optional
        A table that is about to be joined and counts as in scope: for the condition of the join.

    Examples
    --------
    >>> from dither.plan.schema import ColumnFacts
    >>> visits = Table("visits", {"age": ColumnFacts("age", Kind.INTEGER)})
    >>> Names(Scan("visits", "v"), Schema({"visits": visits})).column("AGE")
    Column(table='v', name='age')
    """

    relation: Relation
    schema: Schema
    beside: Scan | None = None

    @property
    def scans(self) -> tuple[Scan, ...]:
        """The tables in scope, leftmost first."""
        return scans(self.relation) + ((self.beside,) if self.beside is not None else ())

    def table(self, alias: str, *, exact: bool = False) -> Scan:
        """The table in scope that goes by ``alias``.

        Raises
        ------
        UnknownNameError
            Where there is none; the nearest is offered.
        """
        by_alias = {scan.alias: scan for scan in self.scans}
        found = find(alias, by_alias, exact=exact)
        if not found:
            hint = nearest(alias, by_alias)
            for scan in self.scans:
                if find(alias, [scan.table], exact=exact):
                    hint = f"; in this query that table goes by {scan.alias!r}"
            raise UnknownNameError(f"unknown table {alias!r} before a column name{hint}")
        return by_alias[found[0]]

    def column(
        self, name: str, table: str | None = None, *, exact: bool = False, exact_table: bool = False
    ) -> Column:
        """The column that a written name means.

        Parameters
        ----------
        name : str
        table : str, optional
            The alias written before it.
        exact, exact_table : bool
            Whether upper and lower case matter, as in a quoted identifier.

        Raises
        ------
        UnknownNameError
            Where there is none; the nearest is offered.
        QueryError
            Where several tables have one. Columns that a join sets equal count as one, the
            leftmost.
        """
        among = self.scans if table is None else (self.table(table, exact=exact_table),)
        found = [
            Column(scan.alias, match)
            for scan in among
            for match in find(name, self.schema.table(scan.table).columns, exact=exact)
        ]
        equal = set(_equal(self.relation))
        kept = [c for i, c in enumerate(found) if not any((left, c) in equal for left in found[:i])]
        if len(kept) == 1:
            return kept[0]
        if kept:
            options = " or ".join(repr(f"{c.table}.{c.name}") for c in kept)
            raise QueryError(f"column {name!r} is ambiguous; write {options}")
        if table is not None:
            self.schema.table(among[0].table).column(name)
        known = [c for scan in among for c in self.schema.table(scan.table).columns]
        hint = nearest(name, known)
        if exact and len(among) == 1:
            hint += " (double quotes name a column; text stands in single quotes)"
        raise UnknownNameError(f"unknown column {name!r}{hint}")

    def facts(self, column: Column) -> ColumnFacts:
        """The public facts of a column."""
        return self.schema.table(self.table(column.table, exact=True).table).column(column.name)

    def is_unit(self, column: Column) -> bool:
        """Whether a column says who is protected."""
        table = self.schema.table(self.table(column.table, exact=True).table)
        return table.private and table.unit == column.name

    def kind(self, expression: Expression) -> Kind | None:
        """The kind of an expression, ``None`` where its facts do not say."""
        try:
            return infer(expression, Scope.of(self.relation, self.schema)).kind
        except QueryError:
            return None


def _equal(relation: Relation) -> Iterator[tuple[Expression, Column]]:
    match relation:
        case Filter(source=source):
            yield from _equal(source)
        case PublicJoin(source=source, on=on):
            yield from _equal(source)
            yield from on
        case UnitJoin(left=left, left_unit=left_unit, right_unit=right_unit):
            yield from _equal(left)
            yield left_unit, right_unit
