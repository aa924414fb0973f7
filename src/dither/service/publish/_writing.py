"""Writing a release into a database: what is there, whose it is, and whether rows are replaced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dither.service.publish._target import (
    CERTIFICATES,
    PublishedTable,
    check_ours,
    same_columns,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ReleaseWriting"]


class ReleaseWriting(ABC):
    """The tables of one release in one transaction, which whoever makes this begins and ends.

    Each kind of database says how it does the parts.
    """

    def written(
        self, tables: Sequence[PublishedTable], record: pl.DataFrame, *, history: bool
    ) -> bool:
        """Write them; parameters, result and errors as of `PublishTarget.write`."""
        there = self.names()
        known: dict[str, set[str]] = {}
        if CERTIFICATES in there:
            self._check(CERTIFICATES, record)
            for name, identity in self.published():
                known.setdefault(name, set()).add(identity)
        wrote = False
        for table in tables:
            name, frame = table.name, table.frame
            if name not in there:
                self.create(name, frame)
            else:
                check_ours(name, list(known))
                if not history:
                    self.clear(name, frame)
                else:
                    self._check(name, frame)
                    if record["id"][0] in known[name]:
                        continue
            self.insert(name, frame)
            wrote = True
        if CERTIFICATES not in there:
            self.create(CERTIFICATES, record)
        held = [i in known.get(n, ()) for i, n in record.select("id", "name").iter_rows()]
        self.insert(CERTIFICATES, record.filter([not one for one in held]))
        return wrote

    def _check(self, name: str, frame: pl.DataFrame) -> None:
        same_columns(name, self.columns(name), self.columns_of(frame))

    @abstractmethod
    def names(self) -> Collection[str]:
        """Which tables are there."""

    @abstractmethod
    def published(self) -> Iterable[tuple[str, str]]:
        """The tables that were published, each with the ids of its certificates."""

    @abstractmethod
    def columns(self, name: str) -> list[Any]:
        """The columns of a table that is there."""

    @abstractmethod
    def columns_of(self, frame: pl.DataFrame) -> list[Any]:
        """The same of a table that is made of a frame."""

    @abstractmethod
    def create(self, name: str, frame: pl.DataFrame) -> None:
        """Make a table without rows."""

    @abstractmethod
    def clear(self, name: str, frame: pl.DataFrame) -> None:
        """Make a table that is there one without rows, of the frame's columns."""

    @abstractmethod
    def insert(self, name: str, frame: pl.DataFrame) -> None:
        """Add rows."""
