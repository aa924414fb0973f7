"""The columns that the expressions over a relation may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dither.errors import UnknownNameError, nearest
from dither.plan.expressions import Column
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin
from dither.plan.schema import ColumnFacts, Schema, Table

__all__ = ["Scope"]


class Scope:
    """The columns that the expressions over a relation may name.

    Parameters
    ----------
    tables : mapping of str to (Table, bool)
        By alias: the table, and whether a left join pads it with NULL.
    """

    def __init__(self, tables: Mapping[str, tuple[Table, bool]]) -> None:
        self._tables = dict(tables)

    @classmethod
    def of(cls, relation: Relation, schema: Schema) -> Scope:
        """The scope of a relation: its tables by alias, and whether a left join pads them."""
        return cls(_tables(relation, schema))

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables in scope, by alias."""
        return {alias: table for alias, (table, _) in self._tables.items()}

    def column(self, column: Column) -> ColumnFacts:
        """The public facts of a column; NULL is possible in one that a left join pads.

        Raises
        ------
        UnknownNameError
            Where there is no such table or column; the nearest is offered.
        """
        if column.table not in self._tables:
            raise UnknownNameError(
                f"unknown table {column.table!r}" + nearest(column.table, self._tables)
            )
        table, padded = self._tables[column.table]
        facts = table.column(column.name)
        return replace(facts, nullable=True) if padded else facts


def _tables(relation: Relation, schema: Schema) -> dict[str, tuple[Table, bool]]:
    match relation:
        case Scan(table=table, alias=alias):
            return {alias: (schema.table(table), False)}
        case Filter(source=source):
            return _tables(source, schema)
        case PublicJoin(source=source, public=public, keep_all=keep_all):
            return _tables(source, schema) | {public.alias: (schema.table(public.table), keep_all)}
        case UnitJoin(left=left, right=right):
            return _tables(left, schema) | {right.alias: (schema.table(right.table), False)}
    raise TypeError(type(relation).__name__)
