"""Tables in a DuckDB file: one transaction for each release."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
                wrote = self._written(connection, tables, record, Path(folder), history)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(Exception):
                    connection.execute("ROLLBACK")
                raise
        return wrote

    def _written(
        self,
        connection: Any,
        tables: Sequence[PublishedTable],
        record: pl.DataFrame,
        folder: Path,
        history: bool,
    ) -> bool:
        # Here "Visits" and "visits" are one table.
        there = {row[0].lower() for row in connection.execute(_TABLES).fetchall()}
        known: dict[str, set[str]] = {}
        if CERTIFICATES in there:
            self._same(connection, CERTIFICATES, record)
            for name, found in connection.execute(
                f'SELECT name, id FROM "{CERTIFICATES}"'
            ).fetchall():
                known.setdefault(name, set()).add(found)
        wrote = False
        for table in tables:
            source = _parquet(table.frame, folder / f"{table.name}.parquet")
            name = f'"{table.name}"'
            if table.name in there:
                check_ours(table.name, list(known))
            if table.name in there and history:
                self._same(connection, table.name, table.frame)
                if record["id"][0] in known[table.name]:
                    continue
                connection.execute(f"INSERT INTO {name} SELECT * FROM read_parquet(?)", [source])
            else:
                connection.execute(f"DROP TABLE IF EXISTS {name}")
                connection.execute(
                    f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?)",
                    [source],
                )
            wrote = True
        source = _parquet(record, folder / "certificate.parquet")
        if CERTIFICATES not in there:
            connection.execute(
                f'CREATE TABLE "{CERTIFICATES}" AS SELECT * FROM read_parquet(?) LIMIT 0',
                [source],
            )
        connection.execute(
            f'INSERT INTO "{CERTIFICATES}" SELECT * FROM read_parquet(?) AS fresh WHERE NOT EXISTS '
            f'(SELECT 1 FROM "{CERTIFICATES}" AS held '
            "WHERE held.id = fresh.id AND held.name = fresh.name)",
            [source],
        )
        return wrote

    def _same(self, connection: Any, name: str, frame: pl.DataFrame) -> None:
        rows = connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE lower(table_name) = ? AND "
            "schema_name = 'main' AND database_name = current_database() ORDER BY column_index",
            [name],
        ).fetchall()
        same_columns(name, [row[0] for row in rows], frame.columns)

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


_TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' "
    "AND table_catalog = current_database()"
)


def _parquet(frame: pl.DataFrame, path: Path) -> str:
    # DuckDB reads frames of Polars with Arrow's library alone, and files of Parquet by itself.
    frame.write_parquet(path)
    return str(path)
