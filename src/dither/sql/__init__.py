"""SQL text to plan, and plan to SQL that people read.

What is read is an allow-list: every part of a query that is not understood is refused by name, and
nothing is ever passed through to an engine.

- ``parse``: text to sqlglot's tree.
- ``select``, ``expressions``, ``aggregates``: one clause each, from that tree; ``rows``: FROM and
  WHERE, with joins and queries in the FROM.
- ``allow_list``: what may stand where, and how the rest of SQL is refused.
- ``names``, ``rows.joins``, ``dates``: what SQL and the Python builder share; free of sqlglot.
- ``write``: a plan as SQL that people read.

The names below load sqlglot when they are first used, so that importing this package stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dither.sql.names import Names as Names

if TYPE_CHECKING:
    from dither.sql.parse import part_of as part_of
    from dither.sql.select import parse_expression as parse_expression
    from dither.sql.select import parse_order as parse_order
    from dither.sql.select import parse_query as parse_query
    from dither.sql.select import parse_released as parse_released
    from dither.sql.select import parse_where as parse_where
    from dither.sql.select import parse_written as parse_written
    from dither.sql.write import to_sql as to_sql
    from dither.sql.write import unit_value as unit_value

__all__: list[str] = []

_HOMES = {
    **dict.fromkeys(
        (
            *("parse_expression", "parse_order", "parse_query", "parse_released"),
            *("parse_where", "parse_written"),
        ),
        "select",
    ),
    "part_of": "parse",
    **dict.fromkeys(("to_sql", "unit_value"), "write"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
