"""Keys that a public table lists: its values protect nobody, so they may be read freely.

A query that groups by a column of a joined public table would otherwise have to discover the keys,
at a cost in delta, although anybody can look them up.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dither.plan.aggregates import Query
from dither.plan.expressions import Column, columns
from dither.plan.facts import LONGEST_LIST
from dither.plan.kinds import Kind, Value
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Schema

if TYPE_CHECKING:
    from dither.engines.base import Engine

__all__ = ["PublicKeys"]

LISTED = (Kind.TEXT, Kind.INTEGER, Kind.DATE)


class PublicKeys:
    """Adds to a schema the values of public columns that a query groups by; reads each once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read: dict[tuple[str, str], tuple[Value, ...] | None] = {}

    def listed(self, query: Query, schema: Schema) -> Schema:
        """The schema in which the query's public key columns have their values.

        Columns with declared values, bounds or bins stay as they are, and so do columns with more
        values than a list of keys may have.
        """
        if query.discover:
            return schema
        tables = {scan.alias: scan.table for scan in scans(query.relation)}
        for column in {c for key in query.keys for c in columns(key.expression)}:
            schema = self._with_values(tables[column.table], column, schema)
        return schema

    def _with_values(self, name: str, column: Column, schema: Schema) -> Schema:
        table = schema.table(name)
        facts = table.column(column.name)
        if table.private or _declared(facts) or facts.kind not in LISTED:
            return schema
        values = self._values(name, facts)
        if values is None:
            return schema
        found = replace(
            table, columns={**table.columns, column.name: replace(facts, values=values)}
        )
        return replace(schema, tables={**schema.tables, name: found})

    def _values(self, table: str, facts: ColumnFacts) -> tuple[Value, ...] | None:
        place = (table, facts.name)
        if place not in self._read:
            found = {v for v in self._engine.public_values(table, facts) if v is not None}
            self._read[place] = tuple(sorted(found)) if 0 < len(found) <= LONGEST_LIST else None
        return self._read[place]


def _declared(facts: ColumnFacts) -> bool:
    return facts.values is not None or facts.lower is not None or facts.edges is not None
