"""What is public of a policy's tables: as a list beside the question, and for what completes it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dither._format import display_text, number_text
from dither.plan.schema import ColumnFacts, Kind, Table
from dither.session._session import Session
from dither.sql.allow_list import AGGREGATE_NAMES, FUNCTION_NAMES
from dither.sql.functions import FUNCTIONS as FUNCTIONS  # fills the names of all
from dither.sql.write import _identifier

__all__ = ["completed", "functions", "tables"]

MOST_VALUES = 6


def tables(session: Session) -> list[dict[str, Any]]:
    """Every table, private ones first, with what is public of each column."""
    found = sorted(session.tables.values(), key=lambda one: not one.private)
    return [
        {
            "name": one.name,
            "sql": _identifier(one.name),
            "private": one.private,
            "unit": one.unit,
            "max_rows": one.max_rows,
            "max_groups": one.max_groups,
            "columns": [_column(one, column) for column in one.columns.values()],
            "unread": dict(one.unread),
        }
        for one in found
    ]


def _column(table: Table, column: ColumnFacts) -> dict[str, Any]:
    listed = column.values is not None or column.edges is not None
    return {
        "name": column.name,
        "sql": _identifier(column.name),
        "kind": column.kind.value,
        "number": column.kind.numeric,
        "bounded": column.lower is not None and column.kind.numeric,
        "who": column.name == table.unit,
        "groups": listed or column.kind is Kind.BOOLEAN,
        "values": [_written(value) for value in column.values or ()][:200],
        "unit": column.unit,
        "about": _about(column),
    }


def _written(value: Any) -> str:
    return number_text(value, 15) if isinstance(value, Fraction) else str(value)


def _about(column: ColumnFacts) -> str:
    """Bounds, values or bins, in a few characters."""
    if column.values is not None:
        shown = [display_text(_written(one), 24) for one in column.values[:MOST_VALUES]]
        more = len(column.values) - len(shown)
        return ", ".join(shown) + (f", … (+{more:,})" if more else "")
    if column.lower is not None and column.upper is not None:
        return f"{_end(column.lower)} – {_end(column.upper)}"
    if column.edges is not None:
        return f"{_end(column.edges[0])} | … | {_end(column.edges[-1])}"
    return ""


def _end(value: Any) -> str:
    return number_text(value, 15) if isinstance(value, Fraction | int) else str(value)


def completed(listed: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The same as an editor completes it: by table its columns, as SQL spells them."""
    return {
        one["sql"]: [
            {
                "label": column["sql"],
                "detail": " ".join(filter(None, (column["kind"], column["about"]))),
            }
            for column in one["columns"]
        ]
        for one in listed
    }


def functions() -> list[str]:
    """The names of functions that questions may have."""
    return sorted({*AGGREGATE_NAMES, *FUNCTION_NAMES})
