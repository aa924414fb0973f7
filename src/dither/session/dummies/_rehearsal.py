"""Dummy rows of a session's tables, and rehearsals: the same questions, of rows that nobody has.

A rehearsal is a session of the same policy over dummy rows, with a ledger of its own in a temporary
folder. Notebooks, dashboards and models are written in it before anything is spent. It charges no
account of the policy, and all that comes out of it says what it is of.
"""

from __future__ import annotations

import html
import secrets
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither.engines import Engine
from dither.errors import ArgumentError
from dither.ledger import Ledger
from dither.policy._facts import Fact, facts_in
from dither.policy._publishing import DeclaredOwner
from dither.policy._sources import connect
from dither.policy.dummies import MOST_ROWS, NOTICE, StoredColumns, dummy_table
from dither.session._session import Session

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DummyRows", "Rehearsal", "dummies", "dummy", "rehearsal"]

MOST_SEED = 2**63


@dataclass(frozen=True, repr=False)
class DummyRows:
    """Rows of one table that nobody has, made from the policy's public facts.

    Parameters
    ----------
    table : str
    frame : polars.DataFrame
        Every column that a question may name.
    seed : int
        What made them: the same rows come of it again.
    """

    table: str
    frame: pl.DataFrame
    seed: int
    notice: str = NOTICE

    def __len__(self) -> int:
        return self.frame.height

    def save(self, path: str | Path) -> Path:
        """Write them to a file that says what they are.

        Parameters
        ----------
        path : path
            Ends in ``.parquet``, whose metadata has the notice under ``dither``, or in ``.csv``.
            CSV has no place for it, so ``dummy`` must be in the file's name.

        Returns
        -------
        Path

        Raises
        ------
        ArgumentError
            It ends otherwise, or cannot be written.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending not in (".parquet", ".csv"):
            raise ArgumentError("path must end in .parquet or .csv")
        if ending == ".csv" and "dummy" not in target.name.lower():
            raise ArgumentError(
                "path must have 'dummy' in the file's name, such as visits.dummy.csv: a CSV file "
                "says in no other way that no row is real; or save it as Parquet"
            )
        if ending == ".csv" and any(kind.is_nested() for kind in self.frame.dtypes):
            raise ArgumentError("path must end in .parquet: a CSV file holds no lists")
        try:
            if ending == ".csv":
                self.frame.write_csv(target)
            else:
                self.frame.write_parquet(target, metadata={"dither": self.notice})
        except OSError:
            raise ArgumentError(
                f"{str(target)!r} cannot be written; name a file in a folder that you may write to"
            ) from None
        return target

    def __repr__(self) -> str:
        return f"{self.table}: {self.notice}\n{self.frame}"

    def _repr_html_(self) -> str:
        return (
            f"<div><b>{html.escape(f'{self.table}: {self.notice}')}</b>"
            f"{self.frame._repr_html_()}</div>"
        )


def dummy(session: Session, table: str, rows: int, seed: int | None) -> DummyRows:
    """As `Session.dummy`."""
    session.schema.table(table)
    return _made(session, [table], rows, seed)[table]


def dummies(session: Session, rows: int, seed: int | None) -> dict[str, DummyRows]:
    """As `Session.dummies`."""
    return _made(session, session.tables, rows, seed)


def _made(
    session: Session, names: Iterable[str], rows: int, seed: int | None
) -> dict[str, DummyRows]:
    session._opened.check_open()
    number = check.whole("rows", rows, 1, MOST_ROWS)
    chosen = secrets.randbelow(MOST_SEED) if seed is None else check.whole("seed", seed)
    engine = session._engine
    stored = {
        name: StoredColumns(
            engine.describe(name), engine.lists(name), engine.zoned(name), engine.labels(name)
        )
        for name in session.tables
    }
    return {
        name: DummyRows(name, dummy_table(name, session.schema, stored, number, chosen), chosen)
        for name in names
    }


def rehearsal(session: Session, rows: int, seed: int | None) -> Rehearsal:
    """As `Session.rehearsal`."""
    return Rehearsal.of(session, rows, seed)


class Rehearsal(Session):
    """A session over dummy rows; made by ``Session.rehearsal``. Nothing in it is of real rows."""

    def __init__(
        self,
        real: Session,
        engine: Engine,
        ledger: Ledger,
        folder: tempfile.TemporaryDirectory[str],
        policy: Any,
    ) -> None:
        self._folder = folder
        self._together = real._engine
        self._known = facts_in(real.ledger) if real._learns else []
        caps, opened = real._opened.caps, (real.analyst, None, real.purpose)
        super().__init__(policy, real._declared, engine, ledger, caps, *opened)
        self._opened.dummy = True
        self._learn_from_the_ledger()

    @classmethod
    def of(cls, real: Session, rows: int, seed: int | None) -> Rehearsal:
        """As `Session.rehearsal`."""
        tables = dummies(real, rows, seed)
        folder = tempfile.TemporaryDirectory(prefix="dither-rehearsal-")
        try:
            # The owner's key signs nothing that is of dummy rows, and no checkpoint is of them.
            policy = replace(
                real.policy,
                ledger=Path(folder.name) / "rehearsal.ledger",
                owner=DeclaredOwner(),
                engine={**real.policy.engine, "name": "duckdb"},
            )
            engine = connect(policy, {name: found.frame for name, found in tables.items()}, {})
            try:
                engine.check(real._declared)
                ledger = Ledger.open(policy.ledger)
                try:
                    return cls(real, engine, ledger, folder, policy)
                except BaseException:
                    ledger.close()
                    raise
            except BaseException:
                engine.close()
                raise
        except BaseException:
            folder.cleanup()
            raise

    def close(self) -> None:
        """Give back the engine, and remove the rehearsal's ledger."""
        super().close()
        self._folder.cleanup()

    def _known_facts(self) -> list[Fact]:
        # What was learned of the real rows, and paid for, is as public as what is declared.
        return [*self._known, *super()._known_facts()]

    def _check_together(self, tables: Collection[str]) -> None:
        # Dummy rows lie in one engine, and what they stand for may not.
        self._together.check_together(tables)

    def asked_by(self, asker: str, purpose: str | None = None, *, owner: bool = False) -> Session:
        """A session of somebody else, over the same dummy rows."""
        found = super().asked_by(asker, purpose, owner=owner)
        found._opened.dummy = True
        found._opened.facts, found.schema = self._opened.facts, self.schema
        return found
