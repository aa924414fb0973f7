"""Levels of places, read from public tables: which county is in which state, and public numbers.

No private table is read here. What a place lies in is what the policy's public table says, whatever
columns of the same names a private table has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither._format import display_text
from dither.errors import ArgumentError, BoundsError, QueryError, nearest
from dither.plan.aggregates import Count, Output, Query
from dither.plan.job import GroupKey
from dither.plan.schema import Kind, Table
from dither.query.tables._domain import Attribute
from dither.session._opened import OpenedPolicy
from dither.sql import Names

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["PublicLevels", "place_attribute", "public_levels"]

NAMED = (Kind.TEXT, Kind.INTEGER, Kind.DATE, Kind.BOOLEAN)
"""What can name a place: a real is not compared for being equal."""


@dataclass(frozen=True)
class PublicLevels:
    """Where levels are declared.

    Parameters
    ----------
    table : str
        The public table.
    rows : list of tuple
        Its rows: a value for each level.
    """

    table: str
    rows: list[tuple[Any, ...]]
    _tables: dict[str, Table]
    _opened: OpenedPolicy

    def numbers(self, level: str, column: str) -> dict[Any, int]:
        """Public numbers of the places of a level.

        Parameters
        ----------
        level : str
        column : str
            Of this table, or ``table.column`` of another public one that has a column ``level``.

        Raises
        ------
        ArgumentError
            It is not there, not a whole number of at least 0, or not one for each place.
        """
        where = f"invariants[{level!r}]"
        name, _, own = column.rpartition(".")
        table = self._tables.get(name or self.table)
        if table is None:
            raise ArgumentError(f"{where}: no public table {name!r}" + nearest(name, self._tables))
        for wanted in (level, own):
            if wanted not in table.columns:
                raise ArgumentError(
                    f"{where}: public table {table.name!r} has no column {wanted!r}"
                    + nearest(wanted, table.columns)
                )
        facts = [table.columns[level], table.columns[own]]
        if facts[1].kind is not Kind.INTEGER:
            raise ArgumentError(f"{where}: {table.name}.{own} must hold whole numbers")
        found: dict[Any, int] = {}
        for place, number in self._opened.engine.public_rows(table.name, facts):
            if place is None:
                continue
            shown = f"{level} {display_text(place)}"
            if not isinstance(number, int) or number < 0:
                raise ArgumentError(
                    f"{where}: {table.name}.{own} must be a number of at least 0 for {shown}"
                )
            if found.setdefault(place, number) != number:
                raise ArgumentError(f"{where}: {table.name}.{own} gives two numbers for {shown}")
        return found


def public_levels(rows: TableQuery, levels: Sequence[str], table: str | None) -> PublicLevels:
    """The public table that says which places lie in which.

    Parameters
    ----------
    rows : TableQuery
    levels : sequence of str
        The widest first; columns of the public table.
    table : str, optional
        Its name; where left out, the one public table that has all of the columns.

    Raises
    ------
    ArgumentError
        Fewer than two levels, one twice, no such table, or several.
    """
    if isinstance(levels, str) or not all(isinstance(name, str) for name in levels):
        raise ArgumentError('levels must be a list of columns, such as ["state", "county"]')
    if len(levels) < 2:
        raise ArgumentError(
            "levels must be two at least, the widest first; of one level alone ask with group_by"
        )
    if len(set(levels)) < len(levels):
        raise ArgumentError("levels names a column twice")
    public = {name: t for name, t in rows.schema.tables.items() if not t.private}
    if table is not None:
        if table not in public:
            known = table in rows.schema.tables
            raise ArgumentError(
                f"places: table {table!r} is private, and what lies in what must be public"
                if known
                else f"places: no public table {table!r}" + nearest(str(table), public)
            )
        public = {table: public[table]}
    found = [t for t in public.values() if all(name in t.columns for name in levels)]
    if len(found) > 1:
        names = ", ".join(t.name for t in found)
        raise ArgumentError(f"places: several public tables have these columns, {names}; name one")
    if not found:
        every = [column for t in public.values() for column in t.columns]
        missing = next((name for name in levels if name not in every), None)
        hint = nearest(missing, every) if missing is not None else ""
        raise ArgumentError(
            f"levels: no public table has the columns {', '.join(levels)}{hint}; declare one in "
            f"the policy (public = true) with a row for each {levels[-1]}, so that what lies in "
            "what is public and not taken from the data"
        )
    held = [found[0].columns[name] for name in levels]
    for facts in held:
        if facts.kind not in NAMED:
            raise ArgumentError(f"levels: {facts.name} is {facts.kind.value}, which names no place")
    opened = rows.ask(Query(rows.relation, (), (Output("n", Count()),)))._opened
    opened.check_open()
    tables = {name: t for name, t in rows.schema.tables.items() if not t.private}
    read = opened.engine.public_rows(found[0].name, held)
    return PublicLevels(found[0].name, read, tables, opened)


def place_attribute(rows: TableQuery, levels: PublicLevels, column: str) -> Attribute:
    """The places of the last level as cells of a column of private rows.

    Raises
    ------
    UnknownNameError
        The rows have no such column.
    QueryError, BoundsError
        It says who is protected, or is of another kind than the public one.
    """
    names = Names(rows.relation, rows.schema)
    found = names.column(column, exact=True)
    if names.is_unit(found):
        raise QueryError(f"levels: {column} says who is protected; it names no place")
    own, public = names.facts(found), levels._tables[levels.table].columns[column]
    if own.kind is not public.kind:
        raise BoundsError(
            f"levels: {column} is {own.kind.value}, and {public.kind.value} in the public table "
            f"{levels.table!r}; declare one type for both in the policy"
        )
    values = tuple(sorted({row[-1] for row in levels.rows if row[-1] is not None}))
    key = GroupKey(column, found, own.kind, values)
    return Attribute(column, own.kind, values, key=key)
