"""Where tables come from: the policy's files or frames given in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.errors import ArgumentError, PolicyError, nearest
from dither.query.policy import DeclaredTable, Policy

if TYPE_CHECKING:
    from dither.engines.base import Engine

__all__ = ["connect"]

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".duckdb": "duckdb",
    ".db": "duckdb",
}


def connect(policy: Policy, given: Mapping[str, Any]) -> Engine:
    """An engine over the sources of a policy.

    Raises
    ------
    ArgumentError
        Where a source is given for a table that the policy does not have.
    PolicyError
        Where a table has no source, or a file is missing or of no known format.
    """
    from dither.engines.duckdb import DuckDBEngine, FileSource, FrameSource

    for name in given:
        if name not in policy.tables:
            raise ArgumentError(f"sources: no table {name!r}" + nearest(name, policy.tables))
    sources: dict[str, FileSource | FrameSource] = {}
    for name, table in policy.tables.items():
        source = given.get(name, table.source)
        if source is None:
            raise PolicyError(f"tables.{name}.source is missing, and no frame was given for it")
        if isinstance(source, str | Path):
            path = policy.folder / source
            form = source_format(path, table.format, f"tables.{name}")
            if not path.is_file():
                raise PolicyError(f"tables.{name}.source: no file {str(source)!r}")
            sources[name] = FileSource(path, form, _table_in(table, form))
        else:
            sources[name] = FrameSource(source)
    return DuckDBEngine(
        sources,
        memory_limit=policy.engine["memory"],
        threads=policy.engine["threads"],
        temp_directory=policy.engine["temp"],
    )


def source_format(path: Path, declared: str | None, where: str) -> str:
    """The format of a file: as declared, else by its ending."""
    if declared is not None:
        if declared not in FORMATS.values():
            options = sorted(set(FORMATS.values()))
            raise PolicyError(f"{where}.format has no such option" + nearest(declared, options))
        return declared
    for ending, form in FORMATS.items():
        if path.name.lower().endswith(ending):
            return form
    raise PolicyError(f"{where}.source: unknown ending; declare format = parquet, csv or duckdb")


def _table_in(table: DeclaredTable, form: str) -> str | None:
    if form == "duckdb":
        return table.source_table or table.name
    if table.source_table is not None:
        raise PolicyError(f"tables.{table.name}.table is for DuckDB databases")
    return None
