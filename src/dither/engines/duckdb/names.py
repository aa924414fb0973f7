"""Names, texts and lists of files in DuckDB's SQL, and the columns that names of folders give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dither.engines.files import Files

__all__ = ["FILE", "keyed", "listed", "quoted", "text"]

FILE = "\x01file"
"""The column that says which file a row is of, below the columns of a table."""


def quoted(name: str) -> str:
    """A name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text of SQL."""
    return "'" + value.replace("'", "''") + "'"


def listed(paths: Sequence[Path]) -> str:
    """One file, or a list of them."""
    shown = [text(str(path)) for path in paths]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def keyed(rows: str, files: Files, *, named: bool = False) -> str:
    """The rows of files, each with the keys of its folders in place of the column ``FILE``, or,
    where ``named``, beside it.

    Each file stands in the list once, so that no row is lost or doubled.
    """
    if not files.keys:
        return rows
    columns = [(FILE, [text(str(path)) for path in files.paths])]
    columns += [
        (key, ["NULL" if row[i] is None else text(str(row[i])) for row in files.values])
        for i, key in enumerate(files.keys)
    ]
    made = ", ".join(
        f"unnest(CAST([{', '.join(values)}] AS VARCHAR[])) AS {quoted(name)}"
        for name, values in columns
    )
    keys = ", ".join(f"k.{quoted(key)}" for key in files.keys)
    own = "r.*" if named else f"r.* EXCLUDE ({quoted(FILE)})"
    return (
        f"SELECT {own}, {keys} FROM ({rows}) AS r "
        f"JOIN (SELECT {made}) AS k ON r.{quoted(FILE)} = k.{quoted(FILE)}"
    )
