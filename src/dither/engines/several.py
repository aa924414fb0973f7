"""The engines of a policy whose tables lie in more than one: each table asks its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from dither.engines import Engine, Lost
from dither.errors import PolicyError, UnsupportedError, nearest
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job
from dither.plan.relations import scans
from dither.plan.schema import ColumnFacts, Kind, Schema, Value

__all__ = ["SeveralEngines"]


class SeveralEngines(Engine):
    """Engines by the name that policies give them, with the tables of each.

    A question runs on the engine of its tables. One that reads tables of two is refused: rows do
    not leave the engine that they are in.

    Parameters
    ----------
    engines : mapping of str to Engine
    homes : mapping of str to str
        By table: the name of its engine.
    """

    def __init__(self, engines: Mapping[str, Engine], homes: Mapping[str, str]) -> None:
        self._engines = dict(engines)
        self._homes = dict(homes)

    def _of(self, table: str) -> Engine:
        if table not in self._homes:
            raise PolicyError(f"no source for table {table!r}" + nearest(table, self._homes))
        return self._engines[self._homes[table]]

    def describe(self, table: str) -> Mapping[str, Kind | None]:
        return self._of(table).describe(table)

    def lists(self, table: str) -> Mapping[str, Kind]:
        return self._of(table).lists(table)

    def zoned(self, table: str) -> frozenset[str]:
        return self._of(table).zoned(table)

    def labels(self, table: str) -> Mapping[str, tuple[str, ...]]:
        return self._of(table).labels(table)

    def complete(self, table: str) -> bool:
        return self._of(table).complete(table)

    def unread(self, table: str) -> Mapping[str, str]:
        return self._of(table).unread(table)

    def nobody(self, table: str) -> str:
        return self._of(table).nobody(table)

    def places(self, table: str) -> frozenset[Hashable]:
        return self._of(table).places(table)

    def sources(self, table: str) -> Mapping[str, str]:
        return self._of(table).sources(table)

    def public_rows(
        self, table: str, columns: Sequence[ColumnFacts]
    ) -> list[tuple[Value | None, ...]]:
        return self._of(table).public_rows(table, columns)

    def lost(self, table: str, columns: Sequence[ColumnFacts]) -> list[Lost]:
        return self._of(table).lost(table, columns)

    def left_out(self, table: str) -> Mapping[str, tuple[int, int]]:
        return self._of(table).left_out(table)

    def check_together(self, tables: Collection[str]) -> None:
        first, *others = tables
        for other in others:
            ours, theirs = self._homes[first], self._homes[other]
            if ours != theirs:
                raise UnsupportedError(
                    f"table {first!r} is on {ours} and table {other!r} on {theirs}, and rows do "
                    "not leave the engine that they are in: ask about each by itself, or keep "
                    "both in one engine (a public table can be copied to the other)"
                )
        self._of(first).check_together(tables)

    def check(self, schema: Schema) -> None:
        for name, engine in self._engines.items():
            own = {t: table for t, table in schema.tables.items() if self._homes[t] == name}
            engine.check(replace(schema, tables=own))

    def _engine_of(self, job: Job) -> Engine:
        tables = tuple(dict.fromkeys(scan.table for scan in scans(job.relation)))
        self.check_together(tables)
        return self._of(tables[0])

    def prepare(self, job: Job, schema: Schema) -> None:
        self._engine_of(job).prepare(job, schema)

    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        return self._engine_of(job).run(job, schema, key)

    def close(self) -> None:
        """Close every engine, also where one fails to."""
        with ExitStack() as stack:
            for engine in self._engines.values():
                stack.callback(engine.close)
