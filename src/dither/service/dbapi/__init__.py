"""A service as a database, for programs that speak to databases: PEP 249 and SQLAlchemy.

Every statement names what it may cost, as in ``SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon =
0.1)``; one that does not is refused, so that no tool spends by looking around. For dashboards,
released answers are better published: ``dither publish``.

::

    from dither.service import dbapi

    with dbapi.connect("https://data.example.org/visits", key="env:DITHER_KEY") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT COUNT(*) AS n FROM visits OPTIONS (epsilon = 0.1)")
        print(cursor.fetchall())
"""

from __future__ import annotations

import datetime

from dither.service.dbapi._cursor import PricedConnection as Connection
from dither.service.dbapi._cursor import PricedCursor as Cursor
from dither.service.dbapi._cursor import connect
from dither.service.dbapi._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - PEP 249 calls it so
)

__all__ = [
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

Date = datetime.date
Timestamp = datetime.datetime
