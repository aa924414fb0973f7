"""Tables in a folder: a Parquet file each, which appears once all of it is on the disk.

The certificate is written first, and then one table after another: a reader may see some tables of
a release before the others, and never a part of one.
"""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dither._files import written
from dither.errors import ArgumentError
from dither.service.publish._target import (
    CERTIFICATES,
    PublishedTable,
    PublishTarget,
    added,
    check_ours,
    same_columns,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FolderTarget"]


class FolderTarget(PublishTarget):
    """A folder of Parquet files, made where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(
        self, tables: Sequence[PublishedTable], record: pl.DataFrame, *, history: bool
    ) -> bool:
        """As `PublishTarget.write`."""
        import polars as pl

        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError:
            raise ArgumentError(f"to: the folder {str(self.path)!r} cannot be made") from None
        with self._alone():
            there = {table.name: self._file(table.name).exists() for table in tables}
            certificates = record
            known: list[str] = []
            if self._file(CERTIFICATES).exists():
                held = self.read(CERTIFICATES)
                certificates = added(held, record)
                known = held["name"].unique().to_list()
            bodies = {}
            for table in tables:
                frame = table.frame
                if there[table.name]:
                    check_ours(table.name, known)
                if there[table.name] and history:
                    # The rows decide, not the certificates, which are written before them.
                    before = self.read(table.name)
                    same_columns(table.name, before.columns, frame.columns)
                    if record["id"][0] in before["certificate"]:
                        continue
                    frame = pl.concat([before, frame], how="vertical_relaxed")
                bodies[table.name] = _body(frame)
            written(self._file(CERTIFICATES), _body(certificates))
            for name, body in bodies.items():
                written(self._file(name), body)
        return bool(bodies)

    def read(self, name: str) -> pl.DataFrame:
        """As `PublishTarget.read`."""
        import polars as pl

        file = self._file(name)
        if not file.is_file():
            raise ArgumentError(f"there is no published table {name!r}")
        try:
            return pl.read_parquet(file, hive_partitioning=False)
        except Exception:
            # What it says may quote the file.
            failed = f"to: {file.name!r} cannot be read as Parquet"
        raise ArgumentError(failed)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.parquet"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One publication after another; the lock ends with its process."""
        try:
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            raise ArgumentError(f"to: nothing can be written in {str(self.path)!r}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _body(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()
