"""Where a ledger is: a file, or a schema of a PostgreSQL database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither._environment import PREFIX
from dither._files import named
from dither.errors import ArgumentError, nearest

__all__ = ["SCHEMA", "LedgerSchema", "read_place"]

SCHEMA = "dither"
"""The schema of a ledger that names none."""

LONGEST = 63
"""Bytes of a schema's name: a server cuts longer ones short, and two ledgers would be one."""


@dataclass(frozen=True, slots=True)
class LedgerSchema:
    """A ledger in a PostgreSQL database: one schema holds one ledger.

    Parameters
    ----------
    dsn : str
        ``env:NAME``: the variable of the environment that holds the connection string.
    schema : str
        Its name.

    Examples
    --------
    >>> print(LedgerSchema("env:LEDGER_DSN"), LedgerSchema("env:LEDGER_DSN", "visits"))
    env:LEDGER_DSN env:LEDGER_DSN#visits
    """

    dsn: str
    schema: str = SCHEMA

    def beside(self, ending: str) -> LedgerSchema:
        """The schema of what is kept beside the ledger, named after it.

        Examples
        --------
        >>> print(LedgerSchema("env:LEDGER_DSN", "visits").beside("_service"))
        env:LEDGER_DSN#visits_service
        """
        schema = self.schema + ending
        if len(schema.encode()) > LONGEST:
            # The server would cut it, to what may be the name of the ledger's own schema.
            schema = hashlib.sha256(self.schema.encode()).hexdigest()[:32] + ending
        return LedgerSchema(self.dsn, schema)

    def __str__(self) -> str:
        return self.dsn if self.schema == SCHEMA else f"{self.dsn}#{self.schema}"


def read_place(given: object, where: str = "ledger") -> Path | LedgerSchema:
    """Where a ledger is, from what a policy, a command or a caller says.

    Parameters
    ----------
    given : path, LedgerSchema or mapping
        A file; or ``{"postgres": "env:NAME", "schema": …}``, for which the text
        ``"env:NAME#schema"`` is short.
    where : str
        How messages call what was given.

    Raises
    ------
    ArgumentError
        It is something else, or holds a connection string itself; the message quotes none of it.

    Examples
    --------
    >>> read_place({"postgres": "env:LEDGER_DSN", "schema": "visits"})
    LedgerSchema(dsn='env:LEDGER_DSN', schema='visits')
    """
    match given:
        case LedgerSchema():
            return given
        case str() | Path():
            # A path may be a text that went through a command line's type for files.
            text = str(given)
            if text.startswith(PREFIX):
                dsn, _, schema = text.partition("#")
                return _schema(dsn, schema or SCHEMA, where)
            if _CONNECTION.match(text):
                raise ArgumentError(_secret(where))
            if not text.strip():
                raise ArgumentError(f"{where} must be a file's name, or {_FORM}")
            try:
                return named(given)
            except ArgumentError as error:
                raise ArgumentError(f"{where} {error}") from None
        case Mapping():
            for name in given:
                if name not in ("postgres", "schema"):
                    raise ArgumentError(
                        f"{where} has no field {str(name)[:40]!r}; write a file's name, or {_FORM}"
                        + nearest(str(name), ("postgres", "schema"))
                    )
            return _schema(given.get("postgres"), given.get("schema", SCHEMA), where)
    raise ArgumentError(f"{where} must be a file's name, or {_FORM}")


_CONNECTION = re.compile(
    r"\s*(postgres(ql)?(\+\w+)?:|(host|hostaddr|port|dbname|user|password|service|sslmode)\s*=)"
)
_FORM = '{ postgres = "env:NAME" } for a PostgreSQL database'


def _schema(dsn: Any, schema: Any, where: str) -> LedgerSchema:
    if not isinstance(dsn, str) or not dsn.startswith(PREFIX):
        raise ArgumentError(_secret(f"{where}.postgres"))
    if not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*", dsn):
        raise ArgumentError(f"{where}: name one variable of the environment, as in {_FORM}")
    well = isinstance(schema, str) and schema.isprintable() and 0 < len(schema.encode()) <= LONGEST
    if not well or schema.startswith("pg_"):
        raise ArgumentError(
            f"{where}.schema must be a name of 1 to 63 bytes that does not begin with 'pg_'"
        )
    return LedgerSchema(dsn, schema)


def _secret(where: str) -> str:
    return (
        f"{where} must name a variable of the environment that holds the connection string, "
        f"as in {_FORM}: a connection string may hold a password, which no policy and no command "
        "should"
    )
