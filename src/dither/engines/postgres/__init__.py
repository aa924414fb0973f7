"""PostgreSQL 14 or newer: the exact part of a question runs in the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dither._environment import Secret
from dither.engines import Backend, Engine, Format, TableSource
from dither.engines.deadline import TIMEOUT
from dither.engines.postgres.engine import PostgresEngine
from dither.engines.several import SeveralEngines
from dither.errors import PolicyError

__all__ = ["BACKEND", "PostgresEngine"]

PASSWORD = re.compile(r"password|passfile|://[^/@]*:[^/@]*@", re.IGNORECASE)


def _open(tables: Mapping[str, TableSource], options: Mapping[str, Any]) -> Engine:
    """One engine for each database; a question reads tables of one."""
    servers: dict[Secret, dict[str, TableSource]] = {}
    for name, table in tables.items():
        if not isinstance(table.source, Secret):
            raise PolicyError(
                f"tables.{name}: a frame is not read by postgres; name another engine for frames "
                "in [engine], and this one in the source of each of its tables"
            )
        servers.setdefault(table.source, {})[name] = table
    opened: dict[str, Engine] = {}
    homes: dict[str, str] = {}
    try:
        for dsn, held in servers.items():
            label = f"postgres ({dsn.shown})"
            label += f" {len(opened) + 1}" if label in opened else ""
            opened[label] = PostgresEngine(
                dsn,
                {name: table.table or name for name, table in held.items()},
                timeout=options.get("timeout") or TIMEOUT,
            )
            homes |= dict.fromkeys(held, label)
    except BaseException:
        for engine in opened.values():
            engine.close()
        raise
    return next(iter(opened.values())) if len(opened) == 1 else SeveralEngines(opened, homes)


def _fault(text: str) -> str | None:
    if PASSWORD.search(text):
        return (
            "holds a password, and a policy is public: put the text into a variable of the "
            'environment and write "env:NAME"'
        )
    return None


BACKEND = Backend(
    "postgres",
    _open,
    {"postgres": Format(("",), is_file=False, holds_tables=True, secret=True, fault=_fault)},
)
