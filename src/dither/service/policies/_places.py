"""What a draft that comes over the network may name, and what is changed at the server alone.

A policy names files, keys and servers. Whoever writes it at the server has these already; whoever
sends it over the network must not get at more by it. So what a draft names anew are files of tables
in the folder of the policy, whose rows are protected: everything else is as the served file has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

from dither.errors import PolicyError
from dither.policy._canonical import AROUND

__all__ = ["check_places_of", "files_of", "inside"]

FIXED = ("owner", "engine", *AROUND)
"""Sections that name keys, servers and places."""

ENDINGS = (
    *(".parquet", ".csv", ".csv.gz", ".csv.zst", ".arrow", ".feather", ".ipc", ".duckdb"),
    *(".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst"),
)

AT_THE_SERVER = "it is changed in the policy's file at the server, not from here"

MOST_FILES = 500


def inside(folder: Path, source: str) -> Path:
    """The file of a folder that a text names, links followed.

    Raises
    ------
    PolicyError
        There is none in the folder. What is elsewhere is told from what is nowhere by nothing.
    """
    refused = PolicyError(
        "source must be a data file in the folder of the policy, or in a folder within it, by its "
        f"path from there; it ends in one of {', '.join(ENDINGS)}"
    )
    if "\0" in source or has_magic(source) or not source.strip() or len(source) > 1000:
        raise refused
    try:
        home = folder.resolve()
        found = (home / source).resolve(strict=True)
        near = found.relative_to(home)
        plain = found.is_file()
    except (OSError, RuntimeError, ValueError):
        raise refused from None
    hidden = any(part.startswith(".") for part in near.parts)
    if not plain or hidden or not _is_data(found.name) or not _is_data(source):
        raise refused
    return found


def _is_data(name: str) -> bool:
    return name.lower().endswith(ENDINGS)


def files_of(folder: Path) -> list[str]:
    """The data files of a folder and of those within it, by their paths from there."""
    return sorted(_found(folder.resolve()))[:MOST_FILES]


def _found(folder: Path) -> Iterator[str]:
    seen = 0
    for base, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not one.startswith(".")]
        for name in names:
            seen += 1
            if seen > 20 * MOST_FILES:
                return
            if name.startswith(".") or not _is_data(name):
                continue
            shown = Path(base, name).relative_to(folder).as_posix()
            try:
                inside(folder, shown)
            except PolicyError:
                continue
            yield shown


def check_places_of(
    new: Mapping[str, Any], known: Sequence[Mapping[str, Any]], folder: Path
) -> None:
    """See that a draft names nothing anew but files of protected tables in the folder.

    Parameters
    ----------
    new : mapping
        The draft.
    known : sequence of mapping
        Documents that were written at the server, or that this was seen of before.
    folder : Path

    Raises
    ------
    PolicyError
        Naming the field, before anything that the draft names is opened.
    """
    for section in FIXED:
        if not any(new.get(section) == old.get(section) for old in known):
            raise PolicyError(f"{section} names keys and places: {AT_THE_SERVER}")
    for field in ("ledger", "checkpoint"):
        value = _field(new, "budget", field)
        if not any(value == _field(old, "budget", field) for old in known):
            raise PolicyError(
                f"budget.{field} is where spending is kept: {AT_THE_SERVER}. Another ledger would "
                "know nothing of what was spent"
            )
    tables = new.get("tables")
    engine = _field(new, "engine", "name") or "duckdb"
    for name, body in tables.items() if isinstance(tables, Mapping) else ():
        if isinstance(body, Mapping):
            before = [_field(old, "tables", name) for old in known]
            _check_table(name, body, [b for b in before if isinstance(b, Mapping)], engine, folder)


NAMED = ("source", "format", "table", "delimiter")


def _check_table(
    name: str,
    body: Mapping[str, Any],
    before: Sequence[Mapping[str, Any]],
    engine: Any,
    folder: Path,
) -> None:
    if any(all(body.get(f) == old.get(f) for f in ("public", *NAMED)) for old in before):
        return
    if body.get("public") or any(old.get("public") for old in before):
        raise PolicyError(
            f"tables.{name}.public shows every row of a table to everybody who may ask: "
            f"{AT_THE_SERVER}"
        )
    if not isinstance(body.get("source"), str) or engine != "duckdb":
        raise PolicyError(f"tables.{name}.source must be the path of one file: {AT_THE_SERVER}")
    if body.get("format") is not None:
        raise PolicyError(f"tables.{name}.format follows from the file's ending: leave it out")
    try:
        inside(folder, body["source"])
    except PolicyError as error:
        raise PolicyError(f"tables.{name}.{error}") from None


def _field(document: Mapping[str, Any], section: str, field: str) -> Any:
    body = document.get(section)
    return body.get(field) if isinstance(body, Mapping) else None
