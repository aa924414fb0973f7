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
from dither.service.publish._target import CERTIFICATES, PublishedTable, PublishTarget
from dither.service.publish._writing import ReleaseWriting

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
            return _ServerWriting(connection, self.schema).written(tables, record, history=history)

    def read(self, name: str) -> pl.DataFrame:
        """As `PublishTarget.read`."""
        import polars as pl

        with self._opened() as connection:
            writing = _ServerWriting(connection, self.schema)
            columns = dict(writing.columns(name))
            if not columns:
                raise ArgumentError(f"there is no published table {name!r}")
            rows = connection.execute(f"SELECT * FROM {writing.place(name)}").fetchall()
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


class _ServerWriting(ReleaseWriting):
    """In a schema of a server."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection, self._schema = connection, schema

    def names(self) -> set[str]:
        """As `ReleaseWriting.names`."""
        return {row[0] for row in self._connection.execute(_TABLES, [self._schema]).fetchall()}

    def published(self) -> list[tuple[str, str]]:
        """As `ReleaseWriting.published`."""
        query = f"SELECT name, id FROM {self.place(CERTIFICATES)}"
        found: list[tuple[str, str]] = self._connection.execute(query).fetchall()
        return found

    def columns(self, name: str) -> list[tuple[str, str]]:
        """As `ReleaseWriting.columns`, each with its type."""
        return list(self._connection.execute(_COLUMNS, [self._schema, name]).fetchall())

    def columns_of(self, frame: pl.DataFrame) -> list[tuple[str, str]]:
        """As `ReleaseWriting.columns_of`."""
        return list(_types(frame).items())

    def place(self, name: str) -> str:
        """A table as SQL writes it."""
        return f"{quoted(self._schema)}.{quoted(name)}"

    def create(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.create`."""
        columns = ", ".join(f"{quoted(c)} {kind}" for c, kind in self.columns_of(frame))
        made = f"CREATE TABLE {self.place(name)} ({columns})"
        self._connection.execute(made.replace("%", "%%"), [])

    def clear(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.clear`: where its columns stay, so do views of it, and its readers."""
        if self.columns(name) == self.columns_of(frame):
            self._connection.execute(f"DELETE FROM {self.place(name)}")
        else:
            self._connection.execute(f"DROP TABLE {self.place(name)}")
            self.create(name, frame)

    def insert(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.insert`."""
        with self._connection.cursor().copy(f"COPY {self.place(name)} FROM STDIN") as copy:
            for row in frame.iter_rows():
                # The server has no text with NUL in it; a reader sees that something stood there.
                copy.write_row(
                    [v.replace("\x00", "\ufffd") if isinstance(v, str) else v for v in row]
                )


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
