"""PostgreSQL over rows that are exchanged: its tables are emptied and filled for each example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dither._environment import Secret
from dither.engines.postgres import PostgresEngine
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job
from dither.plan.schema import Kind, Schema
from engines.hostile import SCHEMA
from postgres_server import Server

TYPES = {
    Kind.INTEGER: "bigint",
    Kind.REAL: "double precision",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "boolean",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp",
}


class PostgresBench:
    """A server's tables, which one role fills and another reads."""

    def __init__(self, server: Server, schema: Schema = SCHEMA, engine=PostgresEngine) -> None:
        database = server.database()
        self._columns = {
            name: {n: TYPES[facts.kind] for n, facts in table.columns.items()}
            | {n: f"{TYPES[facts.kind]}[]" for n, facts in table.lists.items()}
            for name, table in schema.tables.items()
        }
        for name, columns in self._columns.items():
            fields = ", ".join(f'"{n}" {kind}' for n, kind in columns.items())
            database.execute(f'CREATE TABLE "{name}" ({fields})')
        self._owner = server.connect(database.name, "owner")
        self.engine = engine(
            Secret(database.reader, "the test's server"), {n: n for n in schema.tables}
        )

    def put(self, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Have the tables hold these rows."""
        with self._owner.transaction(), self._owner.cursor() as cursor:
            for name, content in rows.items():
                cursor.execute(f'DELETE FROM "{name}"')
                columns = self._columns[name]
                if content:
                    places = ", ".join(["%s"] * len(columns))
                    cursor.executemany(
                        f'INSERT INTO "{name}" VALUES ({places})',
                        [[row[n] for n in columns] for row in content],
                    )

    def run(self, job: Job, schema: Schema, rows: Any, key: bytes) -> ExactAnswer:
        """The answer over these rows, after a trial over none, as a release has it."""
        self.put(rows)
        self.engine.prepare(job, schema)
        return self.engine.run(job, schema, key)

    def close(self) -> None:
        """Give back both connections."""
        self.engine.close()
        self._owner.close()


def postgres_bench(server: Server) -> Iterator[PostgresBench]:
    """Open as long as it is asked for."""
    bench = PostgresBench(server)
    yield bench
    bench.close()
