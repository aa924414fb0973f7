"""Whole numbers as text, as the ledger and files keep those of a model."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["packed", "unpacked"]

Integers = npt.NDArray[np.int64]


def packed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Whole numbers as text, for JSON."""
    found = np.ascontiguousarray(values, dtype="<i8")
    text = base64.b64encode(zlib.compress(found.tobytes(), 6)).decode("ascii")
    return {"shape": list(values.shape), "int64": text}


def unpacked(found: Mapping[str, Any]) -> Integers:
    """What ``packed`` made."""
    raw = zlib.decompress(base64.b64decode(found["int64"]))
    return np.frombuffer(raw, dtype="<i8").astype(np.int64).reshape(found["shape"])
