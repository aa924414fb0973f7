"""What was measured as plain data, as the ledger and files keep that of a model."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.synth._spending import MeasuredTable
from dither.synth.model._plans import Measurements

__all__ = ["measured_from", "measured_to", "packed", "unpacked"]

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


def measured_to(found: Measurements) -> dict[str, Any]:
    """What a run released, as plain data."""
    return {
        "measured": [
            {"clique": list(m.clique), "sigma2": str(m.sigma2), "values": packed(m.values)}
            for m in found.measured
        ],
        "merged": {str(v): packed(to) for v, to in found.merged.items()},
        "shares": {str(v): s.tolist() for v, s in found.shares.items()},
    }


def measured_from(stored: Mapping[str, Any]) -> Measurements:
    """What ``measured_to`` made."""
    measured = [
        MeasuredTable(tuple(m["clique"]), unpacked(m["values"]), Fraction(m["sigma2"]))
        for m in stored["measured"]
    ]
    return Measurements(
        measured,
        {int(v): unpacked(to) for v, to in stored["merged"].items()},
        {int(v): np.array(s, dtype=np.float64) for v, s in stored["shares"].items()},
    )
