"""A dialect of SQLAlchemy: ``create_engine("dither://:KEY@data.example.org/visits")``.

It compiles what SQLAlchemy writes for any database, and leaves to the service what can be asked.
The price is that of the statement's ``OPTIONS``, or of ``execution_options(epsilon=...)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, default

from dither.plan.schema import Kind, Table
from dither.service import dbapi
from dither.service.dbapi._statements import PRICE

__all__ = ["DitherDialect"]

TYPES: dict[Kind, type[sa.types.TypeEngine[Any]]] = {
    Kind.BOOLEAN: sa.Boolean,
    Kind.DATE: sa.Date,
    Kind.INTEGER: sa.BigInteger,
    Kind.REAL: sa.Float,
    Kind.TEXT: sa.Text,
    Kind.TIMESTAMP: sa.DateTime,
}


class DitherDialect(default.DefaultDialect):
    """What SQLAlchemy needs to know of a service."""

    name = "dither"
    driver = "http"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    supports_native_boolean = True
    supports_alter = False
    supports_sane_rowcount = False
    postfetch_lastrowid = False
    returns_native_bytes = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """The module of PEP 249."""
        return dbapi

    def create_connect_args(self, url: URL) -> tuple[Sequence[Any], dict[str, Any]]:
        """The address and the key; on this machine it is asked without TLS.

        ``?purpose=...`` says what it is asked for, ``?verify=FILE`` whose certificates are trusted.
        """
        local = url.host in ("localhost", "127.0.0.1", "::1")
        port = "" if url.port is None else f":{url.port}"
        address = f"{'http' if local else 'https'}://{url.host}{port}/{url.database}"
        named = {n: v for n, v in url.query.items() if n in ("purpose", "verify")}
        return [address], {"key": url.password or "", **named}

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Run a statement at its price."""
        options = {} if context is None else context.execution_options
        price = {name: options[name] for name in PRICE if name in options}
        cursor.execute(statement, parameters or (), price=price)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the connection is open; nothing is asked."""
        _ = dbapi_connection.session
        return True

    def initialize(self, connection: Any) -> None:
        """Nothing is probed: each probe would be a question."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing can be rolled back."""

    def _tables(self, connection: Any) -> dict[str, Table]:
        session = connection.connection.dbapi_connection.session
        return dict(session.schema.tables)

    def get_table_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """The policy's tables."""
        return [] if schema is not None else sorted(self._tables(connection))

    def get_view_names(self, connection: Any, schema: str | None = None, **_: Any) -> list[str]:
        """None."""
        return []

    def get_schema_names(self, connection: Any, **_: Any) -> list[str]:
        """None."""
        return []

    def has_table(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> bool:
        """Whether the policy has it."""
        return schema is None and table_name in self._tables(connection)

    def get_columns(
        self, connection: Any, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        """Its columns, from the policy and the source's schema."""
        table = self._tables(connection).get(table_name)
        if table is None:
            raise sa.exc.NoSuchTableError(table_name)
        return [
            {"name": name, "type": TYPES[facts.kind](), "nullable": True, "default": None}
            for name, facts in table.columns.items()
        ]

    def get_pk_constraint(self, *_: Any, **__: Any) -> Any:
        """None."""
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(self, *_: Any, **__: Any) -> list[Any]:
        """None."""
        return []

    def get_indexes(self, *_: Any, **__: Any) -> list[Any]:
        """None."""
        return []
