"""PostgreSQL as an engine: a job runs in the server, in one transaction that can only read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dither._environment import Secret
from dither._postgres import quoted
from dither.engines import FAILED
from dither.engines.deadline import TIMEOUT
from dither.engines.postgres.connection import Connection, Failure
from dither.engines.postgres.dialect import POSTGRES
from dither.engines.postgres.relations import CHANGED, CatalogueTable, find, resolve
from dither.engines.sql_engine import Cursor, SQLEngine, all_rows
from dither.engines.writer.dialect import Seeds
from dither.engines.writer.rows import Stored
from dither.engines.writer.sums import SumsQuery
from dither.errors import (
    ArgumentError,
    DitherError,
    EngineError,
    PolicyError,
    UnsupportedError,
)
from dither.plan.answers import ExactAnswer
from dither.plan.job import Cells, Job
from dither.plan.relations import scans
from dither.plan.schema import Schema

__all__ = ["PostgresEngine"]

TYPES = {
    16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 700: "real",
    701: "double precision", 1082: "date", 1114: "timestamp without time zone", 1700: "numeric",
}  # fmt: skip
"""By object identifier, the types that a query can give."""

QUESTION = ("0A", "22", "42", "54")
"""Classes of errors that a query is to blame for."""


class _Seeded(str):
    """A query whose parameters are the seeds of its hash."""

    seeds: Seeds

    @classmethod
    def of(cls, sql: str, seeds: Seeds) -> _Seeded:
        found = cls(sql)
        found.seeds = seeds
        return found


class _Rows:
    """Rows that have all arrived, as the database interface of Python gives them."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._given = 0

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        found = self._rows[self._given : self._given + size]
        self._given += len(found)
        return found


class PostgresEngine(SQLEngine):
    """Runs jobs in a PostgreSQL server, as a role that need only SELECT.

    Parameters
    ----------
    dsn : Secret or str
        What connects: ``postgresql://role:password@host/database``, or its parts as
        ``host=... dbname=...``.
    tables : mapping of str to str
        By the name in questions: a table or view of the database, with its schema where needed.
    timeout : int
        Seconds that one statement may take.

    Raises
    ------
    PolicyError
        Where the server cannot be reached or lets nobody in, or a table is not read.
    """

    dialect = POSTGRES

    def __init__(
        self, dsn: Secret | str, tables: Mapping[str, str], *, timeout: int = TIMEOUT
    ) -> None:
        secret = dsn if isinstance(dsn, Secret) else Secret(dsn, "the connection string")
        self._rehearsed: dict[str, Sequence[str]] = {}
        self._connection = Connection(secret, timeout)
        try:
            self._names = self._resolved(tables)
            self._found = self._looked_up(list(tables))
        except BaseException:
            self.close()
            raise

    def _resolved(self, tables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        with _Told(), self._connection.transaction(own_path=True):
            return {
                name: resolve(self._connection, table, f"table {name!r}")
                for name, table in tables.items()
            }

    def _looked_up(self, tables: Sequence[str]) -> dict[str, CatalogueTable]:
        numbers = {name: number for number, name in enumerate(self._names)}
        with _Told(), self._connection.transaction():
            return {
                name: find(self._connection, self._names[name], numbers[name], f"table {name!r}")
                for name in tables
            }

    def _check_open(self) -> None:
        if self._connection.closed:
            raise ArgumentError("the engine is closed")

    def _stored_tables(self) -> Mapping[str, Stored]:
        return {name: found.stored for name, found in self._found.items()}

    def places(self, table: str) -> frozenset[Hashable]:
        self._table(table)
        return self._found[table].places

    def sources(self, table: str) -> Mapping[str, str]:
        self._table(table)
        return self._found[table].sources

    def _hold(self, job: Job, schema: Schema) -> None:
        tables = tuple(dict.fromkeys(scan.table for scan in scans(job.relation)))
        for name, found in self._looked_up(tables).items():
            if _read(found.stored) != _read(self._found[name].stored):
                raise PolicyError(f"table {name!r}: {CHANGED}")

    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        self._check_open()
        wrong: DitherError
        try:
            with self._connection.transaction():
                return super().run(job, schema, key)
        except ArgumentError as error:
            wrong = error
        except Exception:
            # Also where the server is gone: what was charged stays charged.
            wrong = EngineError(FAILED)
        raise wrong

    def _written(
        self,
        job: Job,
        schema: Schema,
        seeds: Seeds,
        stored: Mapping[str, Stored] | None = None,
    ) -> tuple[SumsQuery, str, dict[int, str]]:
        query, sums, histograms = super()._written(job, schema, seeds, stored)
        seeded = {place: _Seeded.of(sql, seeds) for place, sql in histograms.items()}
        return query, _Seeded.of(sums, seeds), dict(seeded)

    def _written_tables(
        self,
        job: Job,
        schema: Schema,
        seeds: Seeds,
        stored: Mapping[str, Stored] | None = None,
    ) -> list[tuple[dict[int, Cells], str]]:
        parts = super()._written_tables(job, schema, seeds, stored)
        return [(tables, _Seeded.of(sql, seeds)) for tables, sql in parts]

    def _asked(self, sql: str) -> tuple[str, list[int] | None]:
        """A query over the tables that it names, and its parameters."""
        held = []
        for found in self._found.values():
            # Read where it is named, and not put aside where it is named twice.
            for name, rows in ((found.stored.view, found.rows), (found.stored.empty, found.none)):
                if f'"{name}"' in sql:
                    held.append(f"{quoted(name)} AS NOT MATERIALIZED ({rows})")
        before = f"WITH {', '.join(held)} " if held else ""
        if not isinstance(sql, _Seeded):
            return before + sql, None
        # Not every query hashes, and the server wants to be told the types of its parameters.
        named = "$1::bigint IS NOT NULL AND $2::bigint IS NOT NULL"
        seeds = [(seed + 2**63) % 2**64 - 2**63 for seed in (sql.seeds.first, sql.seeds.second)]
        return f'{before}SELECT * FROM ({sql}) AS "asked" WHERE {named}', seeds

    def _execute(self, sql: str, take: Callable[[Cursor], Any] = all_rows) -> Any:
        text, parameters = self._asked(sql)
        rows = None
        try:
            with self._connection.transaction():
                rows = self._connection.rows(text, parameters)
        except Exception:
            # Raised below, where nothing of the server's is its context.
            rows = None
        if rows is None:
            raise EngineError(FAILED)
        return take(_Rows(rows))

    def _rehearse(self, sql: str) -> Sequence[str]:
        text, parameters = self._asked(sql)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in self._rehearsed:
            with _Told(), self._connection.transaction():
                _, codes = self._connection.cursor(text, parameters)
            self._rehearsed[digest] = [TYPES.get(code, "another type") for code in codes]
        return self._rehearsed[digest]

    def close(self) -> None:
        """Give back the connection."""
        if connection := getattr(self, "_connection", None):
            connection.close()


def _read(stored: Stored) -> Stored:
    """What is read of a table; its layout has all columns that the role may read."""
    types = {name: kind for name, kind in stored.types.items() if kind is not None}
    return replace(stored, types=types, unread={})


class _Told:
    """Tells a failure of the server in our words, before anything is charged."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if isinstance(error, Failure):
            if error.code is not None and error.code[:2] in QUESTION:
                raise UnsupportedError(
                    "PostgreSQL does not run this question, even over empty tables; nothing was "
                    "charged. Ask for less at once"
                ) from None
            raise PolicyError(f"PostgreSQL: {error}") from None
