"""Files that appear under their names once all of them is on the disk."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from dither.errors import ArgumentError

__all__ = ["written"]


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
