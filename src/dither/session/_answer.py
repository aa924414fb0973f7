"""The hash of an answer, which anybody can compute anew from the file that it was written to.

A table is hashed by what its cells say and not by how a format writes them, so CSV, Parquet, JSON
and a frame of one release have one hash. Anything else that is released, such as a model, is hashed
as the plain data that its file holds. ``docs/certificates.md`` writes both forms down.

In a table an empty text and NULL count as one, and so do numbers that are not finite: CSV tells the
first two apart in no way that programs agree on, and JSON has none of the others.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dither._files import written
from dither.errors import ArgumentError, CertificateError

__all__ = ["answer_hash", "check_answer", "read_answer", "save_answer"]

FORM = 1
"""The version of what is hashed."""

Cell = str | None

_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_LARGEST = 1 << 30
"""Bytes of a file that is read."""


def answer_hash(content: Mapping[str, Any]) -> dict[str, Any]:
    """What a certificate says of the answer that it is of.

    Parameters
    ----------
    content : mapping
        What was released, as the ledger keeps it, with its certificate or without.

    Returns
    -------
    dict
        ``form``, ``kind`` and ``hash``; of a table also its ``columns``, each with the kind of its
        values, and how many ``rows`` it has; and the hash of what was ``learned`` from it, if
        anything was.

    Examples
    --------
    >>> column = {"name": "n", "kind": "integer", "values": [3, 5]}
    >>> found = answer_hash({"columns": [column], "outputs": ["n"]})
    >>> found["kind"], found["columns"], found["rows"], found["hash"][:8]
    ('table', [['n', 'integer']], 2, 'eb99d470')
    """
    columns = _table_of(content)
    if columns is None:
        body = {name: part for name, part in content.items() if name != "certificate"}
        return {"form": FORM, "kind": "data", "hash": _hash("data", _numbers(body))}
    named = [[str(c["name"]), str(c["kind"])] for c in columns]
    found = _table_hash(named, [c["values"] for c in columns])
    if "learned" in content:
        found["learned"] = _hash("data", _numbers(content["learned"]))
    return found


def check_answer(expected: Mapping[str, Any], found: Any) -> None:
    """Hold an answer against the hash that a certificate has of it.

    Parameters
    ----------
    expected : mapping
        As `answer_hash` gives it.
    found : plain data
        As `read_answer` gives it.

    Raises
    ------
    CertificateError
        It is another one. No value is shown.
    """
    if expected["form"] != FORM:
        raise CertificateError("the answer is hashed in a form that this version does not know")
    if expected["kind"] == "data":
        if not isinstance(found, Mapping) or isinstance(found, _Table) or _table_of(found):
            raise CertificateError(
                "the certificate is not of a table: give the file that the answer was saved to"
            )
        if answer_hash(found)["hash"] != expected["hash"]:
            raise CertificateError(_ANOTHER)
        return
    columns = [(str(name), str(kind)) for name, kind in expected["columns"]]
    table = _as_table(found)
    if table is None:
        raise CertificateError("the certificate is of a table, and the answer is none")
    if not table and not expected["rows"]:
        # JSON of no row has no names of columns.
        table = {name: [] for name, _ in columns}
    if sorted(table) != sorted(name for name, _ in columns):
        raise CertificateError(f"{_ANOTHER}: it has other columns")
    values = [table[name] for name, _ in columns]
    made = _table_hash([list(c) for c in columns], values)
    if made["rows"] != expected["rows"]:
        raise CertificateError(
            f"{_ANOTHER}: it has {made['rows']:,} rows, and {expected['rows']:,} were released"
        )
    if made["hash"] != expected["hash"]:
        raise CertificateError(f"{_ANOTHER}: a value differs, or the order of its rows")
    learned = found.get("learned") if isinstance(found, Mapping) else None
    known = expected.get("learned")
    if None not in (known, learned) and _hash("data", _numbers(learned)) != known:
        raise CertificateError(f"{_ANOTHER}: what was learned differs")


def save_answer(found: Any, path: str | Path) -> Path:
    """Write what was released to a file of JSON, as certificates hash it.

    Of a table that is the table with its intervals; of a model, of marginals, counts and distances
    the noisy numbers that all else follows from.

    Parameters
    ----------
    found : what a release gave
    path : path

    Raises
    ------
    ArgumentError
        It is nothing that was released, or the file cannot be written.
    """
    body = read_answer(found) if not isinstance(found, str | Path) else None
    if isinstance(body, _Table):
        raise ArgumentError("found must be what a release gave: a frame writes itself")
    if not isinstance(body, Mapping):
        raise ArgumentError("found must be what a release gave")
    plain = {name: part for name, part in body.items() if name != "certificate"}
    target = Path(path)
    written(target, (json.dumps(plain, ensure_ascii=False) + "\n").encode("utf-8"))
    return target


_ANOTHER = "the answer is not the one that the certificate was issued for"


# --- tables ---------------------------------------------------------------------------------------


def _table_of(content: Mapping[str, Any]) -> Sequence[Mapping[str, Any]] | None:
    """The columns of a released table; None where something else was released."""
    columns = content.get("columns")
    if not isinstance(columns, list) or "outputs" not in content:
        return None
    whole = all(isinstance(c, Mapping) and {"name", "kind", "values"} <= set(c) for c in columns)
    return columns if whole else None


def _table_hash(
    columns: Sequence[Sequence[str]], values: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    kinds = [_CELLS.get(kind, _text) for _, kind in columns]
    cells = [list(map(said, of)) for said, of in zip(kinds, values, strict=True)]
    rows = max(map(len, cells), default=0)
    body = {"columns": [list(c) for c in columns], "values": cells}
    return {
        "form": FORM,
        "kind": "table",
        "columns": [list(c) for c in columns],
        "rows": rows,
        "hash": _hash("table", body),
    }


def _hash(kind: str, body: Any) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(f"dither answer {FORM} {kind}\n{text}".encode()).hexdigest()


def _text(value: Any) -> Cell:
    try:
        missing = value is None or bool(value == "") or bool(value != value)
    except TypeError:
        missing = True  # pandas' NA says of nothing whether it is it
    return None if missing else str(value)


def _whole(value: Any) -> Cell:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else _real(value)
    text = _text(value)
    if text is None or not _WHOLE.fullmatch(text) or len(text) > 1000:
        return text
    return str(int(text.partition(".")[0]))


def _real(value: Any) -> Cell:
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (OverflowError, TypeError, ValueError):
        return str(value)
    # A zero has no sign here: not every program writes it.
    return repr(found + 0.0) if math.isfinite(found) else None


def _truth(value: Any) -> Cell:
    text = _text(value)
    return text.lower() if text is not None and text.lower() in ("true", "false") else text


def _moment(value: Any) -> dt.datetime | None:
    if _text(value) is None:
        return None
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    try:
        return dt.datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None


def _day(value: Any) -> Cell:
    found = _moment(value)
    if found is None or found.time() != dt.time():
        return _text(value)
    return found.date().isoformat()


def _time(value: Any) -> Cell:
    found = _moment(value)
    return _text(value) if found is None else found.isoformat(timespec="microseconds")


_CELLS: Mapping[str, Callable[[Any], Cell]] = {
    "text": _text,
    "integer": _whole,
    "real": _real,
    "boolean": _truth,
    "date": _day,
    "timestamp": _time,
}
"""By kind of a column: what a cell says, however it is written."""


# --- anything else --------------------------------------------------------------------------------


def _numbers(value: Any) -> Any:
    """Plain data, each number as exact text, whether its program wrote ``1`` or ``1.0``."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return {"number": str(value)}
    if isinstance(value, float):
        whole = math.isfinite(value) and value.is_integer()
        return {"number": str(int(value)) if whole else repr(value)}
    if isinstance(value, Mapping):
        return {str(name): _numbers(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(part) for part in value]
    return {"other": type(value).__name__}


# --- what people have of an answer ----------------------------------------------------------------


def read_answer(answer: Any) -> Any:
    """A mapping from names to columns, a list of rows, or the plain data that were released.

    Parameters
    ----------
    answer : path, frame, mapping, or what a release gave
        A table as CSV, Parquet or JSON, or a frame; else the file that it was saved to.

    Raises
    ------
    ArgumentError
        It cannot be read as an answer. Nothing of it is shown.
    """
    if isinstance(answer, str | Path):
        return _file(Path(answer))
    for name in ("released", "_release", "_content"):
        held = getattr(answer, name, None)
        if held is not None:
            return read_answer(held)
    for name, given in (("to_pydict", ()), ("to_dict", ("list",)), ("to_dict", ())):
        # Arrow's tables, pandas' frames, Polars' frames.
        method = getattr(answer, name, None)
        if method is not None and not isinstance(answer, Mapping):
            try:
                found = method(*given)
            except TypeError:
                continue
            return _Table({str(column): list(values) for column, values in found.items()})
    if isinstance(answer, Mapping | list):
        return answer
    raise ArgumentError(
        "answer must be a CSV, Parquet or JSON file, a frame, or what a release gave"
    )


class _Table(dict[str, list[Any]]):
    """By name: the values of a column."""


def _as_table(found: Any) -> Mapping[str, Sequence[Any]] | None:
    if isinstance(found, _Table):
        return found
    if isinstance(found, Mapping):
        columns = _table_of(found)
        if columns is not None:
            return {str(c["name"]): c["values"] for c in columns}
        found = found.get("rows")
    if isinstance(found, list) and all(isinstance(row, Mapping) for row in found):
        names = dict.fromkeys(name for row in found for name in row)
        return {name: [row.get(name) for row in found] for name in names}
    return None


def _file(path: Path) -> Any:
    if not path.is_file():
        raise ArgumentError(f"answer: there is no file {str(path)!r}")
    try:
        if path.stat().st_size > _LARGEST:
            raise ArgumentError(f"answer: {path.name} is too large")
        if path.suffix.lower() == ".parquet":
            import polars as pl

            return read_answer(pl.read_parquet(path, hive_partitioning=False))
        body = path.read_bytes()
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        if path.suffix.lower() == ".csv":
            return _csv(body.decode("utf-8-sig"))
        found = json.loads(body)
    except ArgumentError:
        raise
    except Exception:
        # What it says may quote the file.
        raise ArgumentError(f"answer: {path.name} cannot be read as CSV, Parquet or JSON") from None
    # As models are saved.
    return found["model"] if isinstance(found, dict) and "model" in found else found


def _csv(text: str) -> _Table:
    # Only LF and CR end a line, as those who write CSV mean it.
    names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    if len(names) == 1:
        # Here an empty line is an empty cell.
        rows = [row or [""] for row in rows]
    rows = [row for row in rows if row]
    if len(set(names)) < len(names) or any(len(row) != len(names) for row in rows):
        raise ValueError("no table")
    return _Table({name: [row[i] for row in rows] for i, name in enumerate(names)})
