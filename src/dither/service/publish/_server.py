"""Tables in a schema of a PostgreSQL database: one transaction for each release.

A table whose columns stay has its rows replaced, not itself, so that views of it and who may read
it stay as well; readers see the old rows until all new ones are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dither._environment import secret
from dither._extras import extra_library
from dither._postgres import Unreachable, connect, quoted
from dither.errors import ArgumentError
from dither.service.publish._target import (
    CERTIFICATES,
    PublishedTable,
    PublishTarget,
    check_ours,
    same_columns,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ServerTarget"]

LONGEST_COLUMN = 63
"""Bytes of a column's name: the server would cut a longer one without a word."""

_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
_COLUMNS = (
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s "
    "AND table_name = %s ORDER BY ordinal_position"
)


class ServerTarget(PublishTarget):
    """A schema of a PostgreSQL database, made where there is none and the role may."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn, self.schema = dsn, schema

    def write(
        self, tables: Sequence[PublishedTable], record: pl.DataFrame, *, history: bool
    ) -> bool:
        """As `PublishTarget.write`."""
        for table in tables:
            for column in table.frame.columns:
                if len(column.encode()) > LONGEST_COLUMN:
                    raise ArgumentError(
                        f"a column's name is longer than the {LONGEST_COLUMN} bytes that "
                        "PostgreSQL keeps: give the output a shorter one (AS)"
                    )
        with self._opened() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [_LOCK + self.schema])
            made = connection.execute(
                "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", [self.schema]
            ).fetchone()
            if made is None:
                connection.execute(f"CREATE SCHEMA {quoted(self.schema)}")
            return self._written(connection, tables, record, history)

    def _written(
        self,
        connection: Any,
        tables: Sequence[PublishedTable],
        record: pl.DataFrame,
        history: bool,
    ) -> bool:
        there = {row[0] for row in connection.execute(_TABLES, [self.schema]).fetchall()}
        known: dict[str, set[str]] = {}
        if CERTIFICATES in there:
            self._same(connection, CERTIFICATES, record)
            for name, found in connection.execute(
                f"SELECT name, id FROM {self._place(CERTIFICATES)}"
            ).fetchall():
                known.setdefault(name, set()).add(found)
        wrote = False
        identity = record["id"][0]
        for table in tables:
            if table.name in there:
                check_ours(table.name, list(known))
            if table.name in there and history:
                self._same(connection, table.name, table.frame)
                if identity in known[table.name]:
                    continue
            elif table.name in there and self._columns(connection, table.name) == _types(
                table.frame
            ):
                connection.execute(f"DELETE FROM {self._place(table.name)}")
            else:
                if table.name in there:
                    connection.execute(f"DROP TABLE {self._place(table.name)}")
                self._create(connection, table.name, table.frame)
            self._copy(connection, table.name, table.frame)
            wrote = True
        if CERTIFICATES not in there:
            self._create(connection, CERTIFICATES, record)
        held = [i in known.get(n, ()) for i, n in record.select("id", "name").iter_rows()]
        fresh = record.filter([not one for one in held])
        self._copy(connection, CERTIFICATES, fresh)
        return wrote

    def read(self, name: str) -> pl.DataFrame:
        """As `PublishTarget.read`."""
        import polars as pl

        with self._opened() as connection:
            columns = self._columns(connection, name)
            if not columns:
                raise ArgumentError(f"there is no published table {name!r}")
            rows = connection.execute(f"SELECT * FROM {self._place(name)}").fetchall()
        kinds: Mapping[str, Any] = {
            "text": pl.String,
            "bigint": pl.Int64,
            "double precision": pl.Float64,
            "boolean": pl.Boolean,
            "date": pl.Date,
            "timestamp without time zone": pl.Datetime("us"),
        }
        schema = [(column, kinds.get(kind)) for column, kind in columns.items()]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _columns(self, connection: Any, name: str) -> dict[str, str]:
        return dict(connection.execute(_COLUMNS, [self.schema, name]).fetchall())

    def _same(self, connection: Any, name: str, frame: pl.DataFrame) -> None:
        found = self._columns(connection, name)
        same_columns(name, list(found.items()), list(_types(frame).items()))  # type: ignore[arg-type]

    def _place(self, name: str) -> str:
        return f"{quoted(self.schema)}.{quoted(name)}"

    def _create(self, connection: Any, name: str, frame: pl.DataFrame) -> None:
        columns = ", ".join(f"{quoted(c)} {kind}" for c, kind in _types(frame).items())
        connection.execute(f"CREATE TABLE {self._place(name)} ({columns})".replace("%", "%%"), [])

    def _copy(self, connection: Any, name: str, frame: pl.DataFrame) -> None:
        with connection.cursor().copy(f"COPY {self._place(name)} FROM STDIN") as copy:
            for row in frame.iter_rows():
                # The server has no text with NUL in it; a reader sees that something stood there.
                copy.write_row(
                    [v.replace("\x00", "\ufffd") if isinstance(v, str) else v for v in row]
                )

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        failed = None
        found = secret(self.dsn, "publish.to.postgres")
        try:
            connection = connect(found, application="dither publish", timeout=10)
        except Unreachable as error:
            failed = f"to: {error}"
        if failed is not None:
            raise ArgumentError(failed)
        psycopg = extra_library("psycopg", "postgres", "tables on a server need")
        try:
            # Else a server may leave out the last digits of a real.
            connection.execute("SET extra_float_digits = 3")
            yield connection
        except psycopg.errors.DependentObjectsStillExist:
            failed = (
                "to: the columns changed, and views rest on the table, so that it stays as it "
                "was: drop them first, or publish under another name"
            )
        except psycopg.errors.InsufficientPrivilege:
            failed = (
                f"to: the role may not write to the schema {self.schema!r}: GRANT CREATE, USAGE "
                "on it to the role, or let its owner publish"
            )
        except psycopg.Error:
            failed = "to: the server did not take the tables; what was there is as it was"
        finally:
            connection.close()
        if failed is not None:
            raise ArgumentError(failed)


_LOCK = "dither publish "


def _types(frame: pl.DataFrame) -> dict[str, str]:
    import polars as pl

    kinds: Mapping[Any, str] = {
        pl.String: "text",
        pl.Int64: "bigint",
        pl.Float64: "double precision",
        pl.Boolean: "boolean",
        pl.Date: "date",
        pl.Datetime: "timestamp without time zone",
    }
    return {name: kinds[kind.base_type()] for name, kind in frame.schema.items()}
