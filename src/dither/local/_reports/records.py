"""Reports as records of one size, and back: see `wire` for the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._channel import PART_BYTES, Channel
from dither.local._frequency.histogram import SHE
from dither.local._frequency.local_hash import OLH
from dither.local._oracles import FiniteChannel
from dither.local._personal import Personal
from dither.local._registry import channel_from_dict, checked_channel
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.parts import PartCounts, Structure, structure_from_dict

Carrier = Channel | Structure
"""What reports are of: one channel, or several of which each report names one."""


def pack(channel: Channel, reports: Any) -> bytes:
    """Write reports as records.

    Parameters
    ----------
    channel : Channel
    reports : array, as `Channel.privatize` gives them for a column

    Raises
    ------
    ArgumentError
        The channel's reports have no fixed size, or these are not its reports.

    Examples
    --------
    >>> from dither import local
    >>> pack(local.GRR(1000, epsilon=1), [1, 258]).hex()
    '01000201'
    """
    size = checked_channel(channel).report_bytes
    try:
        given = np.asarray(reports)
    except ValueError:
        raise ArgumentError("reports must be a column of reports of this channel") from None
    limits = _limits(channel)
    if isinstance(channel, SHE):
        return _packed_bins(channel, given)
    if limits is None:
        if given.dtype != np.uint8 or given.ndim != 2 or given.shape[1] != size:
            raise ArgumentError(f"reports must be rows of {size} bytes")
        return np.ascontiguousarray(given).tobytes()
    columns = given.reshape(-1, 1) if len(limits) == 1 and given.ndim == 1 else given
    if columns.size == 0:
        return b""
    if columns.dtype.kind not in "iu" or columns.ndim != 2 or columns.shape[1] != len(limits):
        raise ArgumentError("reports must be whole numbers of this channel")
    parts, left = [], size
    for column, limit in zip(columns.T, limits, strict=True):
        if int(column.min()) < 0 or int(column.max()) >= limit:
            raise ArgumentError("reports must be ones that this channel can produce")
        wide = 4 if len(limits) == 2 and left == size else left
        parts.append(column.astype("<u8")[:, None].view(np.uint8)[:, :wide])
        left -= wide
    return np.concatenate(parts, axis=1).tobytes()


def unpack(channel: Channel, records: bytes) -> npt.NDArray[Any]:
    """Read whole records; bytes after the last whole one are left out.

    Parameters
    ----------
    channel : Channel
    records : bytes

    Returns
    -------
    array of int64 of shape (n,) or (n, 2), or of uint8 of shape (n, report_bytes)
        As `Channel.aggregate` takes them; impossible ones among them are dropped there.
    """
    size = checked_channel(channel).report_bytes
    if not isinstance(records, bytes | bytearray | memoryview):
        raise ArgumentError("records must be bytes")
    rows = np.frombuffer(records, dtype=np.uint8)[: len(records) // size * size].reshape(-1, size)
    limits = _limits(channel)
    if isinstance(channel, SHE):
        k, width = len(channel.domain), channel.bin_bytes
        wide = np.zeros((rows.shape[0], k, 8), dtype=np.uint8)
        wide[:, :, :width] = rows.reshape(rows.shape[0], k, width)
        return wide.view("<u8")[:, :, 0].astype(np.int64) - channel.clamp
    if limits is None:
        return rows
    cuts = [0, size] if len(limits) == 1 else [0, 4, size]
    columns = [_number(rows[:, first:last]) for first, last in pairwise(cuts)]
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def _packed_bins(channel: SHE, given: npt.NDArray[Any]) -> bytes:
    """Bins of noisy histograms, each plus the clamp."""
    if given.size == 0:
        return b""
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != len(channel.domain):
        raise ArgumentError("reports must be rows of whole numbers, one for each value")
    moved = given.astype(np.int64) + channel.clamp
    if int(moved.min()) < 0 or int(moved.max()) > 2 * channel.clamp + 1:
        raise ArgumentError("reports must be ones that this channel can produce")
    wide = moved.astype("<u8")[:, :, None].view(np.uint8)
    return np.ascontiguousarray(wide[:, :, : channel.bin_bytes]).tobytes()


def records_of(carrier: Carrier, reports: Any) -> bytes:
    """Records of the reports of a channel, or of parts one after another."""
    if not isinstance(carrier, Structure):
        return pack(carrier, reports)
    if not isinstance(reports, Mapping) or not set(reports) <= set(carrier.parts):
        raise ArgumentError("reports must be a dictionary from part or choice to its reports")
    found, size = [], carrier.report_bytes
    for number, (name, channel) in enumerate(carrier.parts.items()):
        if name not in reports:
            continue
        packed = pack(channel, reports[name])
        if isinstance(carrier, Personal) and carrier.joint:
            numbers = unpack(channel, packed).astype("<u8") + np.uint64(carrier.begins[number])
            rows = numbers[:, None].view(np.uint8)[:, :size]
        else:
            records = np.frombuffer(packed, dtype=np.uint8).reshape(-1, channel.report_bytes)
            rows = np.zeros((records.shape[0], size), np.uint8)
            rows[:, 0], rows[:, 1] = number & 255, number >> 8
            rows[:, PART_BYTES : PART_BYTES + channel.report_bytes] = records
        found.append(rows.tobytes())
    return b"".join(found)


def _by_part(carrier: Structure, records: bytes) -> tuple[dict[Any, npt.NDArray[Any]], int]:
    """Each part's reports, and how many whole records are of none, or not filled up by 0."""
    size = carrier.report_bytes
    whole = len(records) // size
    rows = np.frombuffer(records, dtype=np.uint8, count=whole * size).reshape(whole, size)
    found, good = {}, 0
    if isinstance(carrier, Personal) and carrier.joint:
        numbers, begins = _number(rows), carrier.begins
        for name, first, last in zip(carrier.parts, begins, begins[1:], strict=False):
            found[name] = numbers[(numbers >= first) & (numbers < last)] - first
            good += found[name].size
        return found, whole - good
    numbers = _number(rows[:, :PART_BYTES])
    for number, (name, channel) in enumerate(carrier.parts.items()):
        end = PART_BYTES + channel.report_bytes
        mine = rows[numbers == number]
        mine = mine[~mine[:, end:].any(axis=1)]
        found[name] = unpack(channel, np.ascontiguousarray(mine[:, PART_BYTES:end]).tobytes())
        good += mine.shape[0]
    return found, whole - good


def _number(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Numbers of a few bytes each, low byte first."""
    padded = np.zeros((rows.shape[0], 8), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    return padded.view("<u8")[:, 0].astype(np.int64)


def reports_of(carrier: Carrier, records: bytes) -> Any:
    """Reports of a channel, or of parts by name, from whole records."""
    return (
        _by_part(carrier, records)[0]
        if isinstance(carrier, Structure)
        else unpack(carrier, records)
    )


def counted(carrier: Carrier, records: bytes) -> Aggregate | PartCounts:
    """The counts of some records, bytes after the last whole one left out."""
    if not isinstance(carrier, Structure):
        return Aggregate(carrier, *carrier.tally(unpack(carrier, records)))
    parts, lost = _by_part(carrier, records)
    found = {name: Aggregate(c, *c.tally(parts[name])) for name, c in carrier.parts.items()}
    if isinstance(carrier, Personal):
        return PartCounts(carrier, found, lost)
    # Records of unknown parts are counted with the first part.
    first = next(iter(found))
    found[first] = replace(found[first], rejected=found[first].rejected + lost)
    return PartCounts(carrier, found)


def _limits(channel: Channel) -> tuple[int, ...] | None:
    """Above what each number of a report is impossible; None where reports are rows of bytes."""
    if isinstance(channel, FiniteChannel):
        return (channel.outputs,)
    if isinstance(channel, OLH):
        return (1 << 32, channel.buckets)
    return None


def carrier_from_dict(described: Any) -> Carrier:
    """The channel, structure or offer of channels that a description is of."""
    several = isinstance(described, dict) and (
        "structure" in described
        or "offer" in described
        or described.get("channel") == "personalised"
    )
    return structure_from_dict(described) if several else channel_from_dict(described)


def counts_from_dict(found: Any) -> Aggregate | PartCounts:
    """The counts that `to_dict` of an `Aggregate` or of `PartCounts` wrote."""
    if isinstance(found, Mapping):
        of = found.get("channel")
        joint = isinstance(of, Mapping) and of.get("channel") == "personalised"
        if joint or "structure" in found or "personal" in found:
            return PartCounts.from_dict(dict(found))
    return Aggregate.from_dict(found)
