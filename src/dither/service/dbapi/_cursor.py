"""Connections and cursors as programs of databases know them: PEP 249, over a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dither import errors
from dither.service.client._connect import connect as connect_session
from dither.service.client._remote import RemoteSession
from dither.service.dbapi import _errors as failures
from dither.service.dbapi._statements import UNPRICED, with_parameters, without_price

__all__ = ["PricedConnection", "PricedCursor", "connect"]

FAILURES: tuple[tuple[type[Exception], type[failures.Error]], ...] = (
    (errors.MissingLibraryError, failures.InterfaceError),
    (errors.QueryError, failures.ProgrammingError),
    (errors.BudgetError, failures.OperationalError),
    (errors.EngineError, failures.OperationalError),
    (errors.ArgumentError, failures.ProgrammingError),
    (errors.DitherError, failures.OperationalError),
)
"""By what a session raises: what PEP 249 calls it. The message stays."""


def failure(error: Exception) -> failures.Error:
    """An error of a session as PEP 249 calls it."""
    kind = next(to for of, to in FAILURES if isinstance(error, of))
    return kind(str(error))


def connect(address: str, *, key: str, purpose: str | None = None, **more: Any) -> PricedConnection:
    """Connect to a policy at a service, as `dither.connect` does.

    Parameters
    ----------
    address, key, purpose
        As of `dither.connect`; so are all others.

    Returns
    -------
    PricedConnection

    Raises
    ------
    Error
        There is no such service, or the key does not hold.
    """
    try:
        return PricedConnection(connect_session(address, key=key, purpose=purpose, **more))
    except errors.DitherError as error:
        raise failure(error) from None


class PricedConnection:
    """A connection. Every answer is charged as it comes, and nothing can be rolled back."""

    Error = failures.Error
    ProgrammingError = failures.ProgrammingError
    OperationalError = failures.OperationalError

    def __init__(self, session: RemoteSession) -> None:
        self._session: RemoteSession | None = session

    @property
    def session(self) -> RemoteSession:
        """The session that questions are asked of.

        Raises
        ------
        InterfaceError
            The connection is closed.
        """
        if self._session is None:
            raise failures.InterfaceError("the connection is closed")
        return self._session

    def cursor(self) -> PricedCursor:
        """A cursor."""
        _ = self.session
        return PricedCursor(self)

    def commit(self) -> None:
        """Nothing is left to commit: charges are on the service's disk."""
        _ = self.session

    def rollback(self) -> None:
        """Nothing can be rolled back: what was charged stays charged.

        It raises nothing all the same, since connection pools call it before a connection is used
        again.
        """

    def close(self) -> None:
        """Close it; once is enough."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def __repr__(self) -> str:
        return f"<connection to a service{', closed' * (self._session is None)}>"

    def __enter__(self) -> PricedConnection:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


Description = tuple[str, Any, None, None, None, None, bool]


class PricedCursor:
    """Asks one question after the other; each is a release, at the price that it names."""

    def __init__(self, connection: PricedConnection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[Description] | None = None
        self.rowcount = -1
        self.release: Any = None
        """What the last statement released, with its certificate."""
        self._rows: list[tuple[Any, ...]] | None = None
        self._at = 0

    def execute(
        self,
        operation: str,
        parameters: Sequence[Any] = (),
        *,
        price: Mapping[str, Any] | None = None,
    ) -> PricedCursor:
        """Release a question.

        Parameters
        ----------
        operation : str
            A ``SELECT`` that ends with ``OPTIONS (epsilon = ...)``; ``delta``, ``confidence`` and
            ``token`` may stand there too. `docs/sql.md` says what is read.
        parameters : sequence
            In place of its question marks.
        price : mapping, optional
            The same options, for statements that say none.

        Raises
        ------
        ProgrammingError
            It cannot be asked, or names no price; nothing is charged.
        OperationalError
            An account cannot bear it, or it failed.
        """
        self.description, self._rows, self.rowcount, self.release = None, None, -1, None
        session = self.connection.session
        if isinstance(parameters, Mapping):
            raise failures.ProgrammingError("parameters must be a sequence, for question marks")
        try:
            asked = without_price(with_parameters(operation, list(parameters)))
            paid = {**(price or {}), **asked.price}
            if paid.get("epsilon") is None:
                raise errors.QueryError(UNPRICED)
            named = {n: paid[n] for n in ("delta", "confidence", "token") if n in paid}
            if "confidence" in named:
                named["confidence"] = _number(named["confidence"])
            found = session.sql(asked.sql).release(paid["epsilon"], **named)
        except errors.DitherError as error:
            raise failure(error) from None
        frame = found.frame
        self.release, self._at = found, 0
        self._rows = frame.rows()
        self.rowcount = len(self._rows)
        self.description = [
            (name, kind, None, None, None, None, True)
            for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        ]
        return self

    def executemany(self, operation: str, several: Sequence[Sequence[Any]]) -> None:
        """Refused: each would be charged, and all answers but the last be lost.

        Raises
        ------
        NotSupportedError
            Always.
        """
        raise failures.NotSupportedError(
            "executemany would charge for each, and lose all answers but the last: call execute"
        )

    def __repr__(self) -> str:
        rows = "nothing asked" if self._rows is None else f"{self.rowcount} rows"
        return f"<cursor of {self.connection!r}: {rows}>"

    def _held(self) -> list[tuple[Any, ...]]:
        if self._rows is None:
            raise failures.ProgrammingError("execute a statement first")
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None where there is none."""
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows."""
        rows, at = self._held(), self._at
        self._at = min(len(rows), at + (self.arraysize if size is None else size))
        return rows[at : self._at]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self.fetchmany(len(self._held()))

    def close(self) -> None:
        """Let go of the rows."""
        self._rows = None

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing follows from it."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing follows from it."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        following: Callable[[], tuple[Any, ...] | None] = self.fetchone
        return iter(following, None)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise errors.QueryError("OPTIONS: confidence must be a number") from None
