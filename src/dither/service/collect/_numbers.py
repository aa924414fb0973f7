"""Counts of a survey as a row of whole numbers: rows that are added are counts that are merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._reports.aggregate import Aggregate
from dither.local._reports.records import Carrier, counted
from dither.local._structures.parts import PartCounts, Structure

__all__ = ["Counts", "counts_from", "numbers_of"]

Counts = Aggregate | PartCounts
Numbers = npt.NDArray[np.int64]


def numbers_of(carrier: Carrier, records: bytes) -> Numbers:
    """The counts of some records, as a row.

    Examples
    --------
    >>> from dither import local
    >>> numbers_of(local.GRR(3, epsilon=1), bytes([0, 2, 2, 7])).tolist()
    [3, 1, 1, 0, 2]
    """
    found = counted(carrier, records)
    parts = list(found.parts.values()) if isinstance(found, PartCounts) else [found]
    rows = [np.concatenate([[part.n, part.rejected], part.counts]) for part in parts]
    lost = [[found.lost]] if isinstance(found, PartCounts) else []
    return np.concatenate([*rows, *lost]).astype(np.int64)


def counts_from(carrier: Carrier, numbers: Numbers) -> Counts:
    """The counts that a row is of.

    Raises
    ------
    ArgumentError
        It is of another channel.

    Examples
    --------
    >>> from dither import local
    >>> channel = local.GRR(3, epsilon=1)
    >>> counts_from(channel, numbers_of(channel, bytes([0, 2, 2, 7]))).counts.tolist()
    [1, 0, 2]
    """
    several = isinstance(carrier, Structure)
    channels = carrier.parts if isinstance(carrier, Structure) else {"": carrier}
    wanted = sum(channel.features + 2 for channel in channels.values()) + several
    if numbers.size != wanted:
        raise ArgumentError("the counts are not of the survey's channel")
    found, at = {}, 0
    for name, channel in channels.items():
        n, rejected = map(int, numbers[at : at + 2])
        end = at + 2 + channel.features
        found[name] = Aggregate(channel, numbers[at + 2 : end].copy(), n, rejected)
        at = end
    if isinstance(carrier, Structure):
        return PartCounts(carrier, found, int(numbers[-1]))
    return found[""]
