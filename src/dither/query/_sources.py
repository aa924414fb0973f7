"""Where tables come from, and the keys that a public table lists.

Values of a public table protect nobody, so they may be read freely. A query that groups by a column
of a joined public table would otherwise have to discover the keys, at a cost in delta, although
anybody can look them up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError, PolicyError, nearest
from dither.plan.aggregates import Query
from dither.plan.expressions import Column, columns
from dither.plan.facts import LONGEST_LIST
from dither.plan.kinds import Kind, Value
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Schema
from dither.query._policy import DeclaredTable, Policy

if TYPE_CHECKING:
    from dither.engines.base import Engine

__all__ = [
    "PublicKeys",
    "connect",
]


def connect(policy: Policy, given: Mapping[str, Any]) -> Engine:
    """An engine over the sources of a policy.

    Raises
    ------
    ArgumentError
        Where a source is given for a table that the policy does not have.
    PolicyError
        Where a table has no source, or a file is missing or of no known format.
    """
    from dither.engines.duckdb import DuckDBEngine, FileSource, FrameSource

    for name in given:
        if name not in policy.tables:
            raise ArgumentError(f"sources: no table {name!r}" + nearest(name, policy.tables))
    sources: dict[str, FileSource | FrameSource] = {}
    for name, table in policy.tables.items():
        source = given.get(name, table.source)
        if source is None:
            raise PolicyError(f"tables.{name}.source is missing, and no frame was given for it")
        if isinstance(source, str | Path):
            # What the policy names starts from the policy; what the caller names, from here.
            path = Path(source) if name in given else policy.folder / source
            form = source_format(path, table.format, f"tables.{name}")
            if not path.is_file():
                raise PolicyError(f"tables.{name}.source: no file {str(source)!r}")
            if table.delimiter is not None and form != "csv":
                raise PolicyError(f"tables.{name}.delimiter is for CSV files")
            table_in, delimiter = _table_in(table, form), table.delimiter or ","
            sources[name] = FileSource(path, form, table_in, delimiter, table.unit)
        else:
            sources[name] = FrameSource(source, table.unit)
    options = policy.engine
    try:
        return DuckDBEngine(
            sources,
            memory_limit=options["memory"],
            threads=options["threads"],
            temp_directory=options["temp"],
        )
    except ArgumentError as error:
        if not str(error).startswith("memory_limit"):
            raise
        raise PolicyError(
            "engine.memory must be a size such as '2GB', and engine.temp a folder that can be "
            "written to"
        ) from None


def source_format(path: Path, declared: str | None, where: str) -> str:
    """The format of a file: as declared, else by its ending."""
    from dither.engines.duckdb.sources import ENDINGS

    if declared is not None:
        options = sorted(set(ENDINGS.values()))
        if declared not in options:
            raise PolicyError(
                f"{where}.format has no option {declared!r}" + nearest(declared, options)
            )
        return declared
    for ending, form in ENDINGS.items():
        if path.name.lower().endswith(ending):
            return form
    raise PolicyError(f"{where}.source: unknown ending; declare format = parquet, csv or duckdb")


def _table_in(table: DeclaredTable, form: str) -> str | None:
    if form == "duckdb":
        return table.source_table or table.name
    if table.source_table is not None:
        raise PolicyError(f"tables.{table.name}.table is for DuckDB databases")
    return None


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
