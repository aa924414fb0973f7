"""One connection to a PostgreSQL server, used in transactions that can only read.

Each transaction is read-only and sees one state of the data (repeatable read). It runs under
settings of its own, which end with it: UTC, ISO dates, doubles that print in full, functions of the
server alone, row-level security that refuses instead of hiding rows, and a limit of time.

Nothing that the client library says is handed on. Its messages hold parts of the connection string,
and the server's hold values. So whatever fails is told by one of a few sentences, and raised where
no other exception is being handled: it has no cause and no context that could be shown.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dither._environment import Secret
from dither._postgres import Unreachable, connect
from dither.errors import ArgumentError, EngineError, PolicyError

if TYPE_CHECKING:
    from psycopg import Connection as Opened

__all__ = ["OLDEST", "Connection", "Failure"]

OLDEST = 14
CONNECT_TIMEOUT = 10
"""Seconds to wait for a server that does not answer, where the connection string says nothing."""

LOCKED = 10
"""Seconds to wait for a table that somebody is changing."""

SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "row_security": "off",
    "lock_timeout": f"{LOCKED}s",
    # Compiling what is written here takes the server longer than it saves, on a million rows.
    "jit": "off",
}

SAID = {
    "55P03": "a table is locked by somebody who changes it; try again later",
    "57014": "the server took longer than engine.timeout allows",
}


class Failure(Exception):
    """What went wrong, in a sentence of ours that holds nothing of the server's.

    ``code`` is the class of error that the server gave, such as ``42501``.
    """

    def __init__(self, code: str | None, words: str) -> None:
        super().__init__(words)
        self.code = code


class Connection:
    """A connection that is opened when it is needed, and opened anew once the server was away.

    Parameters
    ----------
    dsn : Secret
    timeout : int
        Seconds that one statement may take.

    Raises
    ------
    PolicyError
        Where psycopg is missing, the server cannot be reached or lets nobody in, or is too old.
    """

    def __init__(self, dsn: Secret, timeout: int) -> None:
        self._dsn = dsn
        self._timeout = timeout
        self._held = threading.RLock()
        self._opened: Opened[Any] | None = None
        self._depth = 0
        self.closed = False
        self._connect()

    # --- opening ----------------------------------------------------------------------------------

    def _connect(self) -> None:
        opened, reason = None, ""
        try:
            opened = connect(self._dsn, application="dither", timeout=CONNECT_TIMEOUT)
        except Unreachable as found:
            reason = str(found)
        if opened is None:
            raise PolicyError(f"{self._dsn.shown}: {reason}")
        opened.adapters.register_loader("numeric", _whole_loader())
        encoding = opened.info.parameter_status("server_encoding")
        version = opened.info.server_version // 10_000
        if version < OLDEST or encoding != "UTF8":
            opened.close()
            raise PolicyError(
                f"{self._dsn.shown}: the server is PostgreSQL {version}; {OLDEST} or newer is read"
                if version < OLDEST
                else f"{self._dsn.shown}: the database is encoded in {encoding}; one in UTF8 is "
                "read, where every text is one of Unicode"
            )
        self._opened = opened

    def close(self) -> None:
        """Give the connection back; the server ends what it was doing."""
        self.closed = True
        self._drop()

    def _drop(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            with contextlib.suppress(Exception):
                opened.close()

    # --- transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, own_path: bool = False) -> Iterator[None]:
        """Statements within see one state of the data. One within another is the same one.

        Parameters
        ----------
        own_path : bool
            Leave the role's own ``search_path``, to look up a table by its short name.

        Raises
        ------
        EngineError
            Where the server cannot be reached any more.
        """
        if self.closed:
            raise ArgumentError("the engine is closed")
        with self._held:
            if self._depth == 0:
                self._begin(own_path)
            self._depth += 1
            try:
                yield
            except BaseException:
                # A statement that was interrupted may still run: the connection is not used again.
                if self._depth == 1:
                    self._drop()
                raise
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._end()

    def _begin(self, own_path: bool) -> None:
        settings = {**SETTINGS, "statement_timeout": f"{self._timeout}s"}
        if own_path:
            del settings["search_path"]
        asked = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]
        asked += [f"SET LOCAL {name} = {value}" for name, value in _quoted(settings)]
        text = "; ".join(asked)
        if self._opened is not None and self._sent(text) is None:
            return
        # The server may have been started anew since.
        self._drop()
        self._connect()
        failure = self._sent(text)
        if failure is not None:
            raise PolicyError(f"{self._dsn.shown}: {failure}")

    def _sent(self, text: str) -> Failure | None:
        try:
            self.rows(text)
        except Failure as found:
            return found
        return None

    def _end(self) -> None:
        if self._opened is not None and self._sent("ROLLBACK") is not None:
            self._drop()

    def rows(self, text: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Every row of a statement, whose parameters are ``$1``, ``$2`` and so on.

        Raises
        ------
        Failure
            Of our words alone.
        """
        return self.cursor(text, parameters)[0]

    def attempt(
        self, text: str, parameters: Sequence[Any] | None = None
    ) -> list[tuple[Any, ...]] | None:
        """As ``rows``, of what may fail without harm to the transaction: ``None`` where it does."""
        self.rows("SAVEPOINT attempt")
        try:
            return self.rows(text, parameters)
        except Failure:
            self.rows("ROLLBACK TO SAVEPOINT attempt")
            return None

    def cursor(
        self, text: str, parameters: Sequence[Any] | None = None
    ) -> tuple[list[tuple[Any, ...]], list[int]]:
        """The rows of a statement, and the object identifiers of its columns' types."""
        failure = None
        try:
            from psycopg import RawCursor

            assert self._opened is not None
            with RawCursor(self._opened) as cursor:
                cursor.execute(text.encode(), parameters)
                if cursor.description is None:
                    return [], []
                return cursor.fetchall(), [column.type_code for column in cursor.description]
        except Exception as found:
            failure = _failure(found)
        raise failure


def _quoted(settings: dict[str, str]) -> list[tuple[str, str]]:
    listed = ("search_path", "DateStyle")
    return [(n, v if n in listed else f"'{v}'") for n, v in settings.items()]


def _failure(error: Exception) -> Failure:
    """What a failure of the client library is in our words."""
    code = getattr(error, "sqlstate", None)
    return Failure(code, SAID.get(code or "", "the server refused the statement"))


def _whole_loader() -> Any:
    """Reads the server's decimals, which are whole, as Python's integers."""
    from psycopg.adapt import Loader

    class WholeLoader(Loader):  # type: ignore[misc]
        def load(self, data: Any) -> int:
            whole, _, rest = bytes(data).partition(b".")
            if rest.strip(b"0"):
                raise EngineError("a sum is not whole")
            return int(whole)

    return WholeLoader
