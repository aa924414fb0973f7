"""Models that were saved, read again: of one table, or of linked ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from dither.errors import ArgumentError, DitherError
from dither.synth.linked._model import LinkedModel
from dither.synth.model._result import FORMAT, SyntheticModel

__all__ = ["load"]


def load(path: str | Path) -> SyntheticModel | LinkedModel:
    """Read a model that `SyntheticModel.save` wrote, or one of linked tables.

    Parameters
    ----------
    path : path

    Raises
    ------
    ArgumentError
        Where there is no such file, or it is not a model.
    """
    source = Path(path)
    if not source.is_file():
        raise ArgumentError(f"no model at {str(path)!r}")
    try:
        body = json.loads(gzip.decompress(source.read_bytes()))
        if body["format"] != FORMAT:
            raise ArgumentError(f"{str(path)!r} is a model of a format that this version lacks")
        linked = body["model"]["kind"] == "linked synthetic data"
        found = (LinkedModel if linked else SyntheticModel)(body["model"])
        found.summary()
    except DitherError:
        raise
    except Exception:
        raise ArgumentError(f"{str(path)!r} is not a model, or is damaged") from None
    return found
