"""What all masks share: keys, and new values put where codes say."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from dither.errors import ArgumentError
from dither.lab.anonymize.frames import Coded

__all__ = ["LEAST_KEY", "check_key", "coded_back"]

LEAST_KEY = 16


def check_key(key: object) -> bytes:
    """A key that is long enough to be secret."""
    if not isinstance(key, bytes) or len(key) < LEAST_KEY:
        raise ArgumentError(
            f"key must be at least {LEAST_KEY} bytes: dt.anonymize.new_key() makes one"
        )
    return key


def coded_back(coded: Coded, new: Sequence[str | None]) -> pl.Series:
    """The column with each distinct value replaced by its new one."""
    return pl.Series(coded.values.name, new, dtype=pl.String).gather(coded.codes)
