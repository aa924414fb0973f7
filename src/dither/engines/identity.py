"""What a ledger knows the rows of a table by, whatever the table is called.

A source is a text and a mark:

============================================== =============================================
text                                           mark
============================================== =============================================
``file:///data/visits.parquet``                device and number of the file (inode)
``file:///data/visits.duckdb#main.visits``     as of a file; the table that the rows lie in
``files:///data/visits/``, ``…/*.parquet``     device and number of the folder
``postgres:73…/16384/public.visits``           its oid, and those of the tables it is part of
``spark:catalog.default.visits``               none
``frame``                                      a random name that the object has in its process
============================================== =============================================

Paths are without links. Which files a pattern or a folder holds is looked up when it is compared,
and never kept: their names may tell of people. Nothing of what a file or a frame holds is kept or
compared, since that would tell of the rows. So a copy of a file is another source.
"""

from __future__ import annotations

import glob
import os
import secrets
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from dither.engines.files import MOST_FILES, Named, fixed_part

__all__ = ["FRAME", "Source", "file_versions", "of_files", "of_frame", "same_rows"]

Source = tuple[str, str]
"""A text and a mark."""

FRAME = "frame"


def of_files(named: Named, inner: str | None = None) -> dict[str, str]:
    """What files are known by: a file, a pattern, a folder, or a list of them.

    Parameters
    ----------
    named : path or sequence of paths
    inner : str, optional
        The table that is read, where a file holds several.
    """
    names = [named] if isinstance(named, str | Path) else named
    return dict(_of_one(Path(one), inner) for one in names)


def _of_one(path: Path, inner: str | None) -> Source:
    if path.is_dir():
        return f"files://{_written(os.path.realpath(path))}/", _mark(path)
    if not path.is_file() and glob.has_magic(str(path)):
        root = fixed_part(path)
        rest = path.relative_to(root) if root != Path() else path
        return f"files://{_written(str(Path(os.path.realpath(root)) / rest))}", _mark(root)
    text = f"file://{_written(os.path.realpath(path))}"
    return text if inner is None else f"{text}#{quote(inner)}", _mark(path)


def _written(path: str) -> str:
    return quote(Path(path).as_posix(), safe="/*=")


def _mark(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_dev}:{found.st_ino}"


_frames: dict[int, tuple[Any, str]] = {}


def of_frame(frame: Any) -> dict[str, str]:
    """What a frame in memory is known by: as long as its process lives, this object."""
    held = _frames.get(id(frame))
    if held is None or held[0]() is not frame:
        try:
            held = _reference(frame), secrets.token_hex(8)
        except TypeError:
            return {FRAME: ""}
        _frames[id(frame)] = held
    return {FRAME: held[1]}


def _reference(frame: Any) -> Any:
    place = id(frame)
    return weakref.ref(frame, lambda _: _frames.pop(place, None))


def same_rows(one: Source, other: Source) -> bool | None:
    """Whether two sources have rows in common, as far as can be told now.

    Returns
    -------
    bool or None
        ``None`` where they may: of frames, of which nothing is known but whether they are one
        object; and where a file has the number that another had, which was moved or removed.

    Examples
    --------
    >>> same_rows(("file:///data/a.parquet", "1:7"), ("file:///data/b.parquet", "1:8"))
    False
    >>> same_rows(("file:///data/a.parquet", "1:7"), ("file:///data/b.parquet", "1:7")) is None
    True
    """
    kinds = [text.partition(":")[0] for text, _ in (one, other)]
    if FRAME in kinds:
        known = kinds[0] == kinds[1] and one[1] == other[1] != ""
        return True if known else None
    if one[0] == other[0]:
        return True
    match kinds:
        case ["file", "file"]:
            return _same_file(one, other)
        case ["file", "files"]:
            return _number(one) in set(_numbers(other))
        case ["files", "file"]:
            return _number(other) in set(_numbers(one))
        case ["files", "files"]:
            if not set(_numbers(one)).isdisjoint(_numbers(other)):
                return True
            return None if one[1] == other[1] != "" and _moved(one, other) else False
        case ["postgres", "postgres"]:
            return _same_relation(one, other)
    return False


def _parts(source: Source) -> tuple[str, str]:
    """The path or pattern of a source of files, and the table in it."""
    path, _, inner = source[0].partition("://")[2].partition("#")
    return unquote(path), unquote(inner)


def _same_file(one: Source, other: Source) -> bool | None:
    (path, inner), (other_path, other_inner) = _parts(one), _parts(other)
    if inner != other_inner:
        return False
    number = _mark(Path(path))
    if number and number == _mark(Path(other_path)):
        return True
    # The number of a file that is gone may be that of a new one.
    return None if one[1] == other[1] != "" else False


def _moved(one: Source, other: Source) -> bool:
    """Whether one of two folders is no longer where it was."""
    return any(_mark(fixed_part(Path(_parts(source)[0]))) != source[1] for source in (one, other))


def _number(source: Source) -> str:
    """The number of a file as it is now, a text that no other has where it is gone."""
    path = _parts(source)[0]
    return _mark(Path(path)) or f"gone: {path}"


def _numbers(source: Source) -> Iterator[str]:
    """The numbers of the files that a folder or a pattern holds now."""
    named = _parts(source)[0]
    for count, path in enumerate(_found(named)):
        if count >= MOST_FILES:
            return
        if path.is_file():
            yield _mark(path)


def file_versions(sources: Iterable[str]) -> list[tuple[str, int, int]] | None:
    """The files of sources, each with its size and the time of its last change, as they are now.

    Parameters
    ----------
    sources : iterable of str
        Texts of sources.

    Returns
    -------
    list of (str, int, int) or None
        By path: bytes, and nanoseconds since 1970; in the order of the paths. None where a source
        is no file, where there is no source, or files are gone or too many.
    """
    found: dict[str, tuple[int, int]] = {}
    texts = list(sources)
    for text in texts:
        kind = text.partition(":")[0]
        if kind not in ("file", "files"):
            return None
        path, inner = _parts((text, ""))
        # What a database has not yet written into its file lies beside it.
        own = [Path(path), *([Path(f"{path}.wal")] if inner else [])]
        for file in own if kind == "file" else _found(path):
            try:
                if not file.is_file() and (kind == "files" or file is not own[0]):
                    continue
                state = file.stat()
            except OSError:
                return None
            found[str(file)] = (state.st_size, state.st_mtime_ns)
            if len(found) > MOST_FILES:
                return None
    return [(name, *found[name]) for name in sorted(found)] if found else None


def _found(named: str) -> Iterator[Path]:
    if named.endswith("/"):
        for above, _, files in os.walk(named):
            yield from (Path(above) / name for name in files)
        return
    # As files are found when a source is opened: unlike pathlib's, this finds no hidden file.
    yield from map(Path, glob.iglob(named, recursive=True))  # noqa: PTH207


def _same_relation(one: Source, other: Source) -> bool:
    databases = [text.rpartition("/")[0] for text, _ in (one, other)]
    if databases[0] != databases[1]:
        return False
    (own, *above), (other_own, *other_above) = (mark.split("<") for _, mark in (one, other))
    return own == other_own or own in other_above or other_own in above
