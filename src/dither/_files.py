"""Files of this machine: what names one, and how one appears once all of it is on the disk."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dither.errors import ArgumentError, DitherError

__all__ = ["file_stamp", "looked_at", "named", "written"]

# A text such as "s3://…", also as pathlib writes it. The connection strings of PostgreSQL are not
# files either, and whoever takes these says so.
_REMOTE = re.compile(r"(?!postgres)([A-Za-z][A-Za-z0-9+.-]+):/")


def named(path: str | Path) -> Path:
    """The file or folder of this machine that a text names; ``~`` is the user's own folder.

    Raises
    ------
    ArgumentError
        It is the address of something elsewhere. The message shows the scheme alone: the rest may
        hold a key.

    Examples
    --------
    >>> named("visits.csv").name
    'visits.csv'
    >>> named("s3://hospital/visits.parquet")
    Traceback (most recent call last):
    dither.errors.ArgumentError: begins with s3:// and is not read: files are read from this...
    """
    found = Path(path)
    scheme = _REMOTE.match(str(path))
    if scheme is not None and not found.exists():
        how = (
            "write the path alone"
            if scheme[1].lower() == "file"
            else "copy it here, or mount what holds it, and name that path"
        )
        raise ArgumentError(
            f"begins with {scheme[1]}:// and is not read: files are read from this machine, and "
            f"nothing is fetched; {how}"
        )
    try:
        return found.expanduser()
    except RuntimeError:
        # Nobody of that name: it is what it says.
        return found


@contextmanager
def looked_at(path: Path, refused: type[DitherError] = ArgumentError) -> Iterator[None]:
    """Look at a file within this, where a folder above it may be one that nobody may enter.

    Parameters
    ----------
    path : Path
    refused : type
        The class of the error.

    Raises
    ------
    DitherError
        Of that class: the user that runs this may not look there.
    """
    try:
        yield
    except PermissionError:
        raise refused(
            f"{str(path)!r} cannot be looked at: the user that runs this may not enter a folder "
            "above it"
        ) from None


def file_stamp(path: Path) -> tuple[int, int, int]:
    """What tells a file from what it was, and from another one of its name.

    Raises
    ------
    OSError
        There is none, or it cannot be looked at.

    Examples
    --------
    >>> file_stamp(Path(__file__)) == file_stamp(Path(__file__))
    True
    """
    held = path.stat()
    return held.st_mtime_ns, held.st_size, held.st_ino


def written(target: Path, body: bytes) -> None:
    """Write a file under its name once all of it is on the disk.

    Raises
    ------
    ArgumentError
        It cannot be written; no part of it is left, and what had the name before is as it was.
    """
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError:
        raise ArgumentError(
            f"{str(target)!r} cannot be written; name a file in a folder that you may write to"
        ) from None
