"""Files that commands write, checked before anything is spent."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TABLES", "check_targets", "write_table"]

TABLES = (".csv", ".json", ".parquet")
PICTURES = (".pdf", ".png", ".svg")


def check_targets(
    *, table: Path | None = None, picture: Path | None = None, other: Path | None = None
) -> None:
    """Refuse targets that could not be written, while refusing is still free.

    Raises
    ------
    click.UsageError
        Naming the option and the fix.
    """
    given = [
        ("--out", table, TABLES),
        ("--plot", picture, PICTURES),
        ("--certificate", other, None),
    ]
    for option, path, endings in given:
        if path is None:
            continue
        if endings is not None and path.suffix.lower() not in endings:
            raise click.UsageError(f"{option} must end in {', '.join(endings)}")
        folder = path.parent
        if not folder.is_dir():
            raise click.UsageError(f"{option}: there is no folder {str(folder)!r}; make it first")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise click.UsageError(f"{option}: {str(path)!r} cannot be written")
    paths = [path.resolve() for _, path, _ in given if path is not None]
    if len(set(paths)) < len(paths):
        raise click.UsageError("--out, --plot and --certificate must be different files")
    if picture is not None and find_spec("matplotlib") is None:
        raise click.UsageError("--plot needs matplotlib: pip install 'dither[plots]'")


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame in the format that the file's ending says."""
    match path.suffix.lower():
        case ".csv":
            frame.write_csv(path)
        case ".parquet":
            frame.write_parquet(path)
        case _:
            frame.write_json(path)
