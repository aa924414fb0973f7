"""Files that commands read and write; targets are checked before anything is spent."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dither._extras import missing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TABLES", "as_file", "check_targets", "read_table", "write_table"]

TABLES = (".csv", ".json", ".parquet")
PICTURES = (".pdf", ".png", ".svg")


def check_targets(
    *,
    table: Path | None = None,
    file: Path | None = None,
    picture: Path | None = None,
    other: Path | None = None,
    option: str = "--certificate",
) -> None:
    """Refuse targets that could not be written, while refusing is still free.

    Both `table` and `file` are ``--out``; a file may have any ending, and so may what `option`
    names.

    Raises
    ------
    click.UsageError
        Naming the option and the fix.
    """
    given = [
        ("--out", table, TABLES),
        ("--out", file, None),
        ("--plot", picture, PICTURES),
        (option, other, None),
    ]
    for name, path, endings in given:
        if path is None:
            continue
        if endings is not None and path.suffix.lower() not in endings:
            raise click.UsageError(f"{name} must end in {', '.join(endings)}")
        folder = path.parent
        if not folder.is_dir():
            raise click.UsageError(f"{name}: there is no folder {str(folder)!r}; make it first")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise click.UsageError(f"{name}: {str(path)!r} cannot be written")
    paths = [path.resolve() for _, path, _ in given if path is not None]
    if len(set(paths)) < len(paths):
        named = [name for name, path, _ in given if path is not None]
        raise click.UsageError(f"{' and '.join(named)} must be different files")
    if picture is not None and find_spec("matplotlib") is None:
        raise click.UsageError(str(missing("matplotlib", "plots", "--plot needs")))


def as_file(frame: pl.DataFrame, suffix: str) -> bytes:
    """A frame as the file that its ending says."""
    assert suffix in TABLES
    into = io.BytesIO()
    match suffix:
        case ".csv":
            frame.write_csv(into)
        case ".parquet":
            frame.write_parquet(into)
        case _:
            into.write(json.dumps(json.loads(frame.write_json())).encode("utf-8"))
    return into.getvalue()


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame in the format that the file's ending says."""
    match path.suffix.lower():
        case ".csv":
            frame.write_csv(path)
        case ".parquet":
            frame.write_parquet(path)
        case _:
            frame.write_json(path)


def read_table(path: Path, texts: Collection[str] = ()) -> pl.DataFrame:
    """A Parquet or CSV file as a frame; ``-`` is CSV from standard input.

    Parameters
    ----------
    path : Path
    texts : collection of str
        Columns that stay as they are written, such as postcodes.

    Raises
    ------
    click.UsageError
        Where it cannot be read; quotes nothing of it.
    """
    import polars as pl

    if str(path) != "-" and not path.is_file():
        raise click.UsageError(f"there is no file {str(path)!r}")
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return _read_csv(text, texts)
    except (pl.exceptions.PolarsError, OSError) as error:
        # What it says may quote a line of the file.
        raise click.UsageError(f"{str(path)!r} cannot be read as a table") from error


def _read_csv(source: bytes, texts: Collection[str]) -> pl.DataFrame:
    """The table, where columns not to be read as texts become numbers and dates if all of one do.

    A column in which a number starts with 0, such as 02139, holds codes and no numbers.

    Spaces around names and cells are left out where names have them.
    """
    import polars as pl

    separator = _separator(source)
    names = pl.read_csv(source, n_rows=0, separator=separator).columns
    if len(names) > 1:
        source = source.rstrip() + b"\n"  # an empty line at the end is nobody
    if any(name != name.strip() for name in names):
        spaced = pl.read_csv(source, separator=separator, infer_schema=False)
        bare = spaced.select(pl.all().str.strip_chars()).rename(str.strip)
        source, separator, names = bare.write_csv().encode(), ",", bare.columns
    written = pl.read_csv(source, separator=separator, infer_schema=False)
    codes = [n for n in names if written[n].str.contains(r"^[-+]?0\d").any()]
    texts = {*texts, *codes}
    frame = pl.read_csv(
        source,
        separator=separator,
        infer_schema_length=None,
        schema_overrides=dict.fromkeys((n for n in texts if n in names), pl.String),
    )
    return frame.with_columns(_dated(frame[name]) for name in names if name not in texts)


def _dated(column: pl.Series) -> pl.Series:
    """Texts as dates, where the first looks like one and all are."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    first = column.drop_nulls().head(1)
    if not first.str.contains(r"^\d{1,4}[-/]\d{1,2}[-/]\d{1,4}").any():
        return column
    for parse in (column.str.to_date, column.str.to_datetime):
        # A text that is not a date is not an error: the column stays as it is.
        with contextlib.suppress(pl.exceptions.PolarsError):
            return parse()
    return column


def _separator(source: bytes) -> str:
    """What divides the names in the first line, where no comma does."""
    names = source[: 1 << 16].partition(b"\n")[0]
    return next((mark for mark in (",", ";", "\t") if mark.encode() in names), ",")
