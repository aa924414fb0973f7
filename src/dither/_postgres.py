"""Connections to PostgreSQL, and why there is none, without a word of the secret that led there.

What the driver says of a connection that fails may quote the connection string, so none of it
leaves this module: a few sentences of our own stand for it. They are raised where no other
exception is being handled, and from no frame that holds the string: there is no cause, no context
and no variable that could be shown.
"""

from __future__ import annotations

import re
from contextlib import suppress
from importlib import import_module
from typing import Any

from dither._environment import Secret
from dither._extras import check_library

__all__ = ["Unreachable", "check_driver", "connect", "quoted"]


class Unreachable(Exception):
    """There is no connection; the message says why and what would help, and quotes nothing."""


_BROKEN = (
    "psycopg, the driver for PostgreSQL, cannot be loaded: its libpq is missing; install both: "
    "pip install 'dither[postgres]'"
)
_NO_STRING = (
    "this is not a connection string; write {shown} as "
    "'host=… dbname=… user=… password=…' or 'postgresql://user:password@host/database'"
)

# What the driver and the server say, in the order in which it is looked for.
_REASONS = [
    (
        r"password authentication failed|authentication failed|no password supplied",
        "the server refuses the role or its password: see the user and the password in {shown}",
    ),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "the server lets nobody in from here: have pg_hba.conf on the server allow it",
    ),
    (
        r"database .* does not exist",
        "the server has no such database: see the database's name in {shown}",
    ),
    (
        r"role .* does not exist|not permitted to log in",
        "the server has no such role: see the user in {shown}",
    ),
    (
        r"permission denied for database",
        "the role may not connect to the database: GRANT CONNECT to it",
    ),
    (
        r"too many (clients|connections)|remaining connection slots",
        "the server has as many connections as it takes: close some, or raise max_connections",
    ),
    (
        r"starting up|shutting down|recovery mode",
        "the server is starting or stopping: try again in a moment",
    ),
    (
        r"definition of service|service file",
        "{shown} names a service that is in no service file here",
    ),
    (
        r"SSL|certificate|TLS",
        "no secure connection could be made: see sslmode and the certificates in {shown}",
    ),
    (
        r"resolve|refused|No such file|time.?out|unreachable|No route|reset by peer|closed the",
        "nothing answers there: see that the server runs, and the host and port in {shown}",
    ),
]


def quoted(name: str) -> str:
    """A name as the server's SQL writes it.

    SQLAlchemy's own doubles every % as well, which text that is compared must not have.

    Examples
    --------
    >>> print(quoted("a visit"))
    "a visit"
    """
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def check_driver() -> None:
    """See that the driver can be loaded.

    Raises
    ------
    MissingLibraryError
        It is not installed; the extra ``postgres`` brings it.
    Unreachable
        It is, and the library that it calls is not.
    """
    check_library("psycopg", "postgres", "tables and ledgers on PostgreSQL need")
    with suppress(ImportError):
        import_module("psycopg")
        return
    raise Unreachable(_BROKEN)


def connect(dsn: Secret, *, application: str, timeout: float) -> Any:
    """A connection of psycopg on which each statement commits unless a transaction is begun.

    Parameters
    ----------
    dsn : Secret
        A connection string or URI of libpq.
    application : str
        What the server's own lists call the connection, unless the string says otherwise.
    timeout : float
        Seconds to wait for each server that the string names, unless it says otherwise.

    Raises
    ------
    MissingLibraryError
        The driver is not installed; the extra ``postgres`` brings it.
    Unreachable
        There is none.
    """
    check_driver()
    opened, reason = _opened(dsn, application, max(2, round(timeout)))
    if opened is None:
        raise Unreachable(reason.format(shown=dsn.shown))
    return opened


def _opened(dsn: Secret, application: str, seconds: int) -> tuple[Any, str]:
    """A connection, or why there is none."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    # A server that went away without a word is noticed within half a minute.
    alive = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
    try:
        given = conninfo_to_dict(dsn.reveal())
    except Exception:
        return None, _NO_STRING
    given.setdefault("connect_timeout", seconds)
    given.setdefault("fallback_application_name", application)
    try:
        return psycopg.connect(
            **{**given, "client_encoding": "UTF8", "tcp_user_timeout": 30_000, **alive},
            autocommit=True,
            prepare_threshold=None,  # a pooler may hand each transaction to another server process
        ), ""
    except psycopg.ProgrammingError:
        return None, _NO_STRING
    except Exception as error:
        return None, _why(str(error))


def _why(said: str) -> str:
    for pattern, reason in _REASONS:
        if re.search(pattern, said, re.IGNORECASE):
            return reason
    return "the server cannot be connected to: try {shown} with psql"
