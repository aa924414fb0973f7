"""Tables in a DuckDB file: one transaction for each release."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError
from dither.service.publish._target import CERTIFICATES, PublishedTable, PublishTarget
from dither.service.publish._writing import ReleaseWriting

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DuckDBTarget"]


class DuckDBTarget(PublishTarget):
    """A DuckDB file.

    One process may have it open to write, and none beside it: while a program holds it, nothing is
    published, and it is said so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self, tables: Sequence[PublishedTable], record: pl.DataFrame, *, history: bool
    ) -> bool:
        """As `PublishTarget.write`."""
        if not self.path.parent.is_dir():
            raise ArgumentError(f"to: there is no folder {str(self.path.parent)!r}: make it first")
        with self._opened(read_only=False) as connection, tempfile.TemporaryDirectory() as folder:
            connection.execute("BEGIN")
            try:
                writing = _DuckDBWriting(connection, Path(folder))
                wrote = writing.written(tables, record, history=history)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    connection.execute("ROLLBACK")
                raise
        return wrote

    def read(self, name: str) -> pl.DataFrame:
        """As `PublishTarget.read`."""
        import polars as pl

        if not self.path.is_file():
            raise ArgumentError(f"to: there is no file {str(self.path)!r}")
        with self._opened(read_only=True) as connection, tempfile.TemporaryDirectory() as folder:
            there = {row[0] for row in connection.execute(_TABLES).fetchall()}
            if name not in there:
                raise ArgumentError(f"there is no published table {name!r}")
            target = Path(folder) / "table.parquet"
            connection.table(f'"{name}"').write_parquet(str(target))
            return pl.read_parquet(target)

    @contextmanager
    def _opened(self, *, read_only: bool) -> Iterator[Any]:
        import duckdb

        try:
            connection = duckdb.connect(str(self.path), read_only=read_only)
        except duckdb.Error:
            # What DuckDB says names the other process and its user.
            connection = None
        if connection is None:
            raise ArgumentError(
                f"to: {self.path.name!r} cannot be opened: another program has it open, or it is "
                "no DuckDB file. Nothing was changed; close it there, and publish again"
            )
        try:
            yield connection
        except duckdb.Error:
            failed = True
        else:
            failed = False
        finally:
            connection.close()
        if failed:
            raise ArgumentError(
                f"to: {self.path.name!r} could not be written or read. What was in it is as it was"
            )


class _DuckDBWriting(ReleaseWriting):
    """In a file of DuckDB, by way of Parquet files in a folder of its own."""

    def __init__(self, connection: Any, folder: Path) -> None:
        self._connection, self._folder = connection, folder

    def names(self) -> set[str]:
        """As `ReleaseWriting.names`; here "Visits" and "visits" are one table."""
        return {row[0].lower() for row in self._connection.execute(_TABLES).fetchall()}

    def published(self) -> list[tuple[str, str]]:
        """As `ReleaseWriting.published`."""
        query = f'SELECT name, id FROM "{CERTIFICATES}"'
        found: list[tuple[str, str]] = self._connection.execute(query).fetchall()
        return found

    def columns(self, name: str) -> list[str]:
        """As `ReleaseWriting.columns`."""
        rows = self._connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE lower(table_name) = ? AND "
            "schema_name = 'main' AND database_name = current_database() ORDER BY column_index",
            [name],
        ).fetchall()
        return [row[0] for row in rows]

    def columns_of(self, frame: pl.DataFrame) -> list[str]:
        """As `ReleaseWriting.columns_of`."""
        return frame.columns

    def create(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.create`."""
        self._read(f'CREATE TABLE "{name}" AS SELECT * FROM read_parquet(?)', frame.clear())

    def clear(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.clear`."""
        self._connection.execute(f'DROP TABLE "{name}"')
        self.create(name, frame)

    def insert(self, name: str, frame: pl.DataFrame) -> None:
        """As `ReleaseWriting.insert`."""
        self._read(f'INSERT INTO "{name}" SELECT * FROM read_parquet(?)', frame)

    def _read(self, statement: str, frame: pl.DataFrame) -> None:
        # DuckDB reads frames of Polars with Arrow's library alone, and files of Parquet by itself.
        path = self._folder / "table.parquet"
        frame.write_parquet(path)
        self._connection.execute(statement, [str(path)])


_TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' "
    "AND table_catalog = current_database()"
)
