"""Which files of a table have other columns than most: for the owner of the data alone.

Names of files may tell of people, so that the refusal that everybody sees names none. This names
them, and the columns: it reads names and types, and no value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dither.engines.duckdb.connection import open_unlocked
from dither.engines.duckdb.lines import header
from dither.engines.duckdb.names import text
from dither.engines.duckdb.sources import FileSource, files_of
from dither.errors import PolicyError

__all__ = ["differences"]

MOST = 50
"""Differences that are told."""

Columns = Mapping[str, str]


def differences(source: FileSource) -> list[str]:
    """What sets files of a source apart from most of them, a line for each file and column.

    None where the files agree, or cannot be looked at.
    """
    try:
        paths = files_of(source).paths
    except PolicyError:
        return []
    if len(paths) < 2:
        return []
    found = _columns(paths, source)
    usual = Counter(tuple(columns.items()) for columns in found.values() if columns is not None)
    if not usual:
        return []
    ((most, number),) = usual.most_common(1)
    told = [
        f"{path}: {line}"
        for path, columns in found.items()
        for line in _told(columns, dict(most), number)
    ]
    more = [f"and {len(told) - MOST:,} more"] if len(told) > MOST else []
    return told[:MOST] + more


def _columns(paths: Sequence[Path], source: FileSource) -> dict[Path, Columns | None]:
    """By file its columns and their types; ``None`` where it cannot be looked at."""
    if source.format == "csv":
        return {
            path: _tried(lambda p: dict.fromkeys(_header(p, source), ""), path) for path in paths
        }
    if source.format == "arrow":
        return {path: _tried(_of_arrow, path) for path in paths}
    if source.format != "parquet":
        return {}
    with TemporaryDirectory() as folder, closing(open_unlocked(None, None, folder)) as connection:

        def described(path: Path) -> Columns:
            rows = connection.execute(
                f"DESCRIBE SELECT * FROM read_parquet({text(str(path))}, hive_partitioning = false)"
            ).fetchall()
            return {name: kind for name, kind, *_ in rows}

        return {path: _tried(described, path) for path in paths}


def _tried(read: Any, path: Path) -> Columns | None:
    try:
        found: Columns = read(path)
    except Exception:
        return None
    return found


def _header(path: Path, source: FileSource) -> list[str]:
    return header(path, source.delimiter, str(path))


def _of_arrow(path: Path) -> Columns:
    import pyarrow as pa

    with pa.OSFile(str(path)) as file:
        return {field.name: str(field.type) for field in pa.ipc.open_file(file).schema}


def _told(columns: Columns | None, usual: Columns, number: int) -> list[str]:
    """How the columns of one file differ from those that most have."""
    if columns is None:
        return ["its columns cannot be read"]
    lines = [f"column {name!r} is missing" for name in usual if name not in columns]
    lines += [
        f"column {name!r} is there, and in the other {number:,} files it is not"
        for name in columns
        if name not in usual
    ]
    lines += [
        f"column {name!r} is {kind}, and {usual[name]} in the other {number:,} files"
        for name, kind in columns.items()
        if usual.get(name, kind) != kind
    ]
    if not lines and list(columns) != list(usual):
        place = next(i for i, (a, b) in enumerate(zip(columns, usual, strict=True)) if a != b)
        name = list(columns)[place]
        lines = [f"column {name!r} stands at another place, the {place + 1:,}th"]
    return lines
