"""Where tables come from, and the keys that a public table lists.

Values of a public table protect nobody, so they may be read freely. A query that groups by a column
of a joined public table would otherwise have to discover the keys, at a cost in delta, although
anybody can look them up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dither._environment import secret
from dither._files import looked_at
from dither.engines import Engine, TableSource, backend, engine_names, engine_of_frame
from dither.engines.files import is_many
from dither.engines.several import SeveralEngines
from dither.errors import ArgumentError, PolicyError, nearest
from dither.plan.aggregates import Query
from dither.plan.expressions import columns
from dither.plan.facts.units import traced
from dither.plan.facts.values import LONGEST_LIST
from dither.plan.schema import ColumnFacts, Kind, Schema, Value
from dither.policy._fields import Reader
from dither.policy._places import as_path, of_files, read_source
from dither.policy._policy import DeclaredTable, Policy

__all__ = [
    "PublicKeys",
    "connect",
    "differences",
]


def connect(
    policy: Policy,
    given: Mapping[str, Any],
    connections: Mapping[str, Any],
    progress: Callable[[float], None] | None = None,
    *,
    owner: bool = False,
) -> Engine:
    """The policy's engine over its sources; several, where its tables name several.

    ``progress`` is called with the share done while one of them runs a job. ``owner``: the owner of
    the data asks, who may be told files apart.

    Raises
    ------
    ArgumentError
        Where a source is given for a table that the policy does not have, or a connection for an
        engine that takes none or reads no table.
    PolicyError
        Where a table has no source, or a file is missing or of no known format.
    """
    for name in given:
        if name not in policy.tables:
            raise ArgumentError(f"sources: no table {name!r}" + nearest(name, policy.tables))
    tables: dict[str, dict[str, TableSource]] = {}
    for name, table in policy.tables.items():
        engine, found = _table_source(table, given.get(name), policy)
        tables.setdefault(engine, {})[name] = found
    for name, connection in connections.items():
        _check_connection(name, connection, tables)
    opened: dict[str, Engine] = {}
    try:
        for engine, held in tables.items():
            given_too = {"given": connections.get(engine), "progress": progress, "owner": owner}
            opened[engine] = backend(engine).open(held, {**policy.engine, **given_too})
    except BaseException:
        for one in opened.values():
            one.close()
        raise
    if len(opened) == 1:
        return next(iter(opened.values()))
    return SeveralEngines(opened, {t: engine for engine, held in tables.items() for t in held})


def differences(policy: Policy, given: Mapping[str, Any]) -> list[str]:
    """For the owner of the data alone: what sets files of the tables apart from most of them."""
    found = []
    for name, table in policy.tables.items():
        engine, source = _table_source(table, given.get(name), policy)
        found += [f"{name}: {line}" for line in backend(engine).differences(source)]
    return found


def _check_connection(name: str, connection: Any, used: Mapping[str, Any]) -> None:
    if name not in engine_names():
        raise ArgumentError(f"engines: no engine {name!r}" + nearest(name, engine_names()))
    if not backend(name).is_connection(connection):
        raise ArgumentError(
            f"engines[{name!r}] is not a connection that the engine takes: one of Spark is a "
            "SparkSession, and other engines are named in the policy alone"
        )
    if name not in used:
        raise ArgumentError(
            f"engines[{name!r}]: no table of the policy is on that engine; name it, as in "
            f'source = {{ {name} = "…" }}'
        )


def _table_source(table: DeclaredTable, given: Any, policy: Policy) -> tuple[str, TableSource]:
    """The engine of a table, and what it is to read."""
    where, declared, default = f"tables.{table.name}", table.source, policy.engine["name"]
    source: Any = declared.source if given is None else given
    folder = policy.folder if given is None else Path()
    if isinstance(given, Mapping):
        where = f"sources.{table.name}"
        declared = read_source(Reader({"source": given}, where), default)
        source = declared.source
    if source is None:
        raise PolicyError(f"{where}.source is missing, and no frame was given for it")
    several = isinstance(source, list | tuple) and all(isinstance(s, str | Path) for s in source)
    if not several and not isinstance(source, str | Path):
        return engine_of_frame(source, default), TableSource(source, unit=table.unit)
    engine = backend(declared.engine)
    # What the policy names starts from the policy; what the caller names, from here.
    located: Any = source
    if several or of_files(engine):
        parts = [folder / as_path(one, where) for one in (source if several else [source])]
        located = tuple(parts) if several else parts[0]
    with looked_at(Path(str(source)), PolicyError):
        name = engine.format_of(located, declared.format, where)
    form = engine.formats[name]
    if several and not form.many:
        raise PolicyError(f"{where}.source: a list of files is not read as {name}; name one")
    if form.is_file:
        with looked_at(Path(str(source)), PolicyError):
            there = (form.many and is_many(located)) or Path(located).is_file()
        if not there:
            raise PolicyError(f"{where}.source: no file {str(source)!r}")
        source = located
    if form.secret:
        source = secret(str(source), declared.where)
    if declared.delimiter is not None and not form.delimited:
        raise PolicyError(f"{where}.delimiter is for CSV files")
    if form.pointed:
        _check_pointed(table)
    if declared.table is not None and not form.holds_tables:
        raise PolicyError(f"{where}.table is for sources of several tables, not for {name}")
    inner = (declared.table or table.name) if form.holds_tables else None
    held = {column: facts.kind for column, facts in table.columns.items()}
    keys = [c for key in table.unique for c in ((key,) if isinstance(key, str) else key)]
    block = None if table.block is None else table.block.column
    columns = {**dict.fromkeys(n for n in (table.unit, block, *keys) if n), **held}
    found = TableSource(source, name, inner, declared.delimiter, table.unit, columns, block)
    return engine.name, found


def _check_pointed(table: DeclaredTable) -> None:
    """Refuse another decimal where numbers that are no texts stand beside those that are."""
    where = f"tables.{table.name}"
    said = {where: table.reading}
    said |= {f"{where}.columns.{name}": facts.reading for name, facts in table.columns.items()}
    for place, reading in said.items():
        for name, other in (("decimal", ","), ("thousands", ".")):
            if reading.get(name) == other:
                raise PolicyError(
                    f"{place}.{name}: the numbers of JSON lines are written with a point, so that "
                    "texts with another one cannot be told from them; write the file anew"
                )


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
        for column in {c for key in query.keys for c in columns(key.expression)}:
            found = traced(column, query.relation, schema)
            if found is not None:
                schema = self._with_values(found[0].table, found[1], schema)
        return schema

    def _with_values(self, name: str, column: str, schema: Schema) -> Schema:
        table = schema.table(name)
        facts = table.column(column)
        if table.private or _declared(facts) or facts.kind not in LISTED:
            return schema
        values = self._values(name, facts)
        if values is None:
            return schema
        found = replace(table, columns={**table.columns, column: replace(facts, values=values)})
        return replace(schema, tables={**schema.tables, name: found})

    def _values(self, table: str, facts: ColumnFacts) -> tuple[Value, ...] | None:
        place = (table, facts.name)
        if place not in self._read:
            found = {v for v in self._engine.public_values(table, facts) if v is not None}
            self._read[place] = tuple(sorted(found)) if 0 < len(found) <= LONGEST_LIST else None
        return self._read[place]


def _declared(facts: ColumnFacts) -> bool:
    return facts.values is not None or facts.lower is not None or facts.edges is not None
