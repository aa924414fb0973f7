"""Files of lines: CSV and JSON lines, in which one line is one row, whatever it holds.

A line ends at LF, CR or CRLF. One that is not UTF-8, and one longer than two million bytes, is left
out. Neither kind has types, and none is guessed from the values.

CSV
    The first line of each file names its columns. No quote reaches beyond a line, so that a
    malformed row can never change another. Within a line, a field may stand in double quotes, with
    a double quote inside written twice. An empty field without quotes is NULL, missing fields at
    the end are NULL, surplus fields are left out. Files whose quoted fields span lines should be
    converted to Parquet first.
JSON lines
    Its columns are those that the policy declares. A text is itself, a number and a truth value are
    as they print, and what is missing, null, a list or an object is NULL. A line that is not
    one JSON object has NULL throughout. The unit is text, as in CSV: a text is itself, and a whole
    number its digits, so that ``7``, ``7.0`` and ``"7"`` are one unit. Any other type would leave
    out whoever is written otherwise, without a word, since which lines these are cannot be said
    without reading them. Fractions and truth values identify nobody, and are NULL.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dither._extras import extra_library
from dither.engines.duckdb.names import FILE, keyed, listed, quoted, text
from dither.engines.files import Files
from dither.errors import PolicyError
from dither.plan.schema import Kind

__all__ = ["compression_of", "csv_rows", "header", "json_rows", "lines_left_out"]

LONGEST = 2_000_000

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


def compression_of(path: Path) -> str:
    """How a file is compressed, by its name.

    Examples
    --------
    >>> compression_of(Path("visits.csv.GZ")), compression_of(Path("visits.csv"))
    ('gzip', 'none')
    """
    return COMPRESSIONS.get(path.suffix.lower(), "none")


def header(path: Path, delimiter: str, shown: str) -> list[str]:
    """The column names in the first line of a CSV file.

    Raises
    ------
    MissingLibraryError
        Where zstd compressed it, and pyarrow is not installed, nor Python of 3.14.
    PolicyError
        Where there is none, or it does not name every column once.
    """
    kind = compression_of(path)
    try:
        with _opened(path, kind) as file:
            line = file.readline(LONGEST).replace(b"\r", b"\n").split(b"\n")[0]
        first = line.decode("utf-8-sig")
        names = next(csv.reader([first], delimiter=delimiter), [])
    except UnicodeDecodeError:
        raise PolicyError(f"{shown} is not UTF-8; save it as UTF-8 first") from None
    except (OSError, EOFError, csv.Error, zlib.error):
        packed = f"; is it really compressed with {kind}?" if kind != "none" else ""
        raise PolicyError(f"{shown} does not begin with a line of column names{packed}") from None
    if not names or len(set(names)) < len(names) or not all(names):
        raise PolicyError(f"{shown}: its first line must name every column, each once")
    return names


def _opened(path: Path, kind: str) -> Any:
    if kind == "none":
        return path.open("rb")
    if kind == "gzip":
        return gzip.open(path, "rb")
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.open(path, "rb")
    pa = extra_library("pyarrow", "arrow", "files that zstd compressed need")
    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path)), kind))


def _lines(files: Files, skip: int, *, named: bool) -> str:
    """Each line as the column ``line``, and beside it the file that it is of where this matters."""
    kinds = {compression_of(path) for path in files.paths}
    if len(kinds) > 1:
        raise PolicyError(
            "files that are read together must be compressed in one way; their names end in "
            "different ones of .gz and .zst, or some in neither"
        )
    # The characters below do not occur in text: no line is cut and none is NULL.
    return (
        f"read_csv({listed(files.paths)}, auto_detect = false, header = false, skip = {skip},"
        " columns = {'line': 'VARCHAR'}, delim = '\x02', quote = '', escape = '', nullstr = '\x03',"
        " new_line = '\\n', strict_mode = false, null_padding = true, ignore_errors = true,"
        f" compression = '{kinds.pop()}'"
        + (f", hive_partitioning = false, filename = {text(FILE)})" if named else ")")
    )


def lines_left_out(path: Path, *, names: bool) -> tuple[int, int]:
    """How many lines of a file are not read, as they are not UTF-8 or too long, and how many are
    there; ``names``: the first line names columns, and is none of them.

    The whole file is read, for its owner alone.
    """
    lost = lines = 0
    with _opened(path, compression_of(path)) as file:
        for block in iter(lambda: file.readline(), b""):
            # What is read by LF may hold lines that end at CR.
            for line in block.rstrip(b"\r\n").split(b"\r"):
                lines += bool(line)
                lost += len(line) > LONGEST or not _is_utf8(line)
    return lost, max(lines - names, 0)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def csv_rows(files: Files, names: list[str], delimiter: str, *, named: bool = False) -> str:
    """The rows of CSV files that all have these columns; ``named``: and the file of each."""
    escaped = "\\" + delimiter if not delimiter.isalnum() and delimiter.isascii() else delimiter
    pattern = text(f'("(?:[^"]|"")*"|[^{escaped}]*)({escaped}|$)')
    held = named or bool(files.keys)
    own = f", {quoted(FILE)}" if held else ""
    fields = (
        f"""SELECT CASE WHEN contains(line, '"') THEN regexp_extract_all(line, {pattern}, 1)"""
        f" ELSE string_split(line, {text(delimiter)}) END AS fields{own}"
        f" FROM {_lines(files, 1, named=held)}"
    )
    columns = ", ".join(f"{_field(i)} AS {quoted(name)}" for i, name in enumerate(names, start=1))
    return keyed(f"SELECT {columns}{own} FROM ({fields})", files, named=named)


def _field(position: int) -> str:
    field = f"fields[{position}]"
    return (
        f"CASE WHEN {field} = '' THEN NULL"
        f""" WHEN starts_with({field}, '"') AND ends_with({field}, '"') AND length({field}) > 1"""
        f""" THEN replace({field}[2:length({field}) - 1], '""', '"') ELSE {field} END"""
    )


def json_rows(
    files: Files, columns: Mapping[str, Kind | None], unit: str | None, *, named: bool = False
) -> str:
    """The rows of files of JSON lines, as texts; ``named``: and the file of each."""
    if unit is not None and columns.get(unit) not in (None, Kind.TEXT):
        raise PolicyError(
            f'the unit {unit!r} of JSON lines is read as text: declare type = "text" of it, or no '
            'type; a whole number is then its digits, and 7, 7.0 and "7" are one unit'
        )
    held = named or bool(files.keys)
    own = f", {quoted(FILE)}" if held else ""
    # A cast that is tried gives NULL where a line is not JSON; all below has JSON before it.
    rows = f"SELECT TRY_CAST(line AS JSON) AS row{own} FROM {_lines(files, 0, named=held)}"
    objects = f"SELECT CASE WHEN json_type(row) = 'OBJECT' THEN row END AS row{own} FROM ({rows})"
    read = ", ".join(
        f"{_unit(name) if name == unit else _member(name)} AS {quoted(name)}" for name in columns
    )
    return keyed(f"SELECT {read}{own} FROM ({objects})", files, named=named)


def _place(name: str) -> str:
    return text("/" + name.replace("~", "~0").replace("/", "~1"))


def _member(name: str) -> str:
    place = _place(name)
    return (
        f"CASE WHEN json_type(row, {place}) NOT IN ('OBJECT', 'ARRAY', 'NULL')"
        f" THEN (row ->> {place}) END"
    )


def _unit(name: str) -> str:
    """A text, or the digits of a whole number: JSON has one spelling of each but for its point."""
    place = _place(name)
    value, own = f"(row ->> {place})", f"json_type(row, {place})"
    # Up to 15 digits a double holds every whole number, and has printed it with a point.
    pointed = f"CAST(TRY_CAST({value} AS DOUBLE) AS BIGINT)"
    return (
        f"CASE WHEN {own} = 'VARCHAR' THEN {value}"
        f" WHEN {own} NOT IN ('BIGINT', 'UBIGINT', 'DOUBLE') THEN NULL"
        f" WHEN regexp_full_match({value}, '-?[0-9]+') THEN {value}"
        f" WHEN regexp_full_match({value}, '-?[0-9]{{1,15}}[.]0') THEN CAST({pointed} AS VARCHAR)"
        " END"
    )
