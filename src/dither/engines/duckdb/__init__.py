"""The embedded engine: DuckDB inside this process, over files and frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dither.engines import Backend, TableSource
from dither.engines.deadline import TIMEOUT
from dither.engines.duckdb.drift import differences
from dither.engines.duckdb.engine import DuckDBEngine
from dither.engines.duckdb.sources import FORMATS, FileSource, FrameSource
from dither.errors import ArgumentError, PolicyError

__all__ = ["BACKEND", "DuckDBEngine", "FileSource", "FrameSource"]


def _open(tables: Mapping[str, TableSource], options: Mapping[str, Any]) -> DuckDBEngine:
    try:
        return DuckDBEngine(
            {name: _source(table) for name, table in tables.items()},
            memory_limit=options.get("memory"),
            threads=options.get("threads"),
            temp_directory=options.get("temp"),
            timeout=options.get("timeout") or TIMEOUT,
            progress=options.get("progress"),
            owner=bool(options.get("owner")),
        )
    except ArgumentError as error:
        if not str(error).startswith(("memory_limit", "temp_directory")):
            raise
        raise PolicyError(
            "engine.memory must be a size such as '2GB', and engine.temp a folder that can be "
            "written to"
        ) from None


def _source(table: TableSource) -> FileSource | FrameSource:
    if table.format is None:
        return FrameSource(table.source, table.unit)
    delimiter = table.delimiter or ","
    return FileSource(
        table.source,
        table.format,
        table.table,
        delimiter,
        table.unit,
        table.columns,
        table.block,
    )


def _differences(table: TableSource) -> list[str]:
    source = _source(table)
    return differences(source) if isinstance(source, FileSource) else []


BACKEND = Backend("duckdb", _open, FORMATS, differences=_differences)
