"""Reports on the wire: a header that names the channel, then records of one size.

::

    bytes 0-7     the text "DITHERLR"
    8-9           version of this format, 1
    10-11         r, the bytes of one record
    12-15         c, the bytes of the channel's text
    16-23         how many records follow; 2**64 - 1 where the writer did not know
    next c        the channel: its canonical JSON, in ASCII
    next 32       SHA-256 of that text, the channel's hash
    the rest      records of r bytes

Numbers are unsigned and little-endian. A record is, for channels whose report is one number, that
number; for OLH and BLH the seed in 4 bytes and the bucket in the rest; for SHE each bin plus its
clamp; else the bytes of the row. Where people report through one of several channels, as in a
structure or an offer, the text describes all of them, and a record is the number of the channel in
2 bytes, its record, and zeros up to the widest.
``docs/local/wire.md`` describes it for clients in other languages.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._aggregate import Aggregate
from dither.local._channel import PART_BYTES, Channel, canonical, channel_from_dict, checked_channel
from dither.local._frequency.histogram import SHE
from dither.local._frequency.local_hash import OLH
from dither.local._oracles import FiniteChannel
from dither.local._personal import Personal
from dither.local._structures.parts import PartCounts, Structure, structure_from_dict

__all__ = [
    "ReportFile",
    "aggregate_file",
    "carrier_from_dict",
    "counts_from_dict",
    "pack",
    "read_reports",
    "unpack",
    "write_reports",
]

_MAGIC = b"DITHERLR"
_VERSION = 1
_UNKNOWN = (1 << 64) - 1
_HEAD = struct.Struct("<8sHHIQ")
_MOST_TEXT = 1 << 28
_MOST_FEATURES = 1 << 20
_CHUNK = 1 << 24

Source = str | Path | bytes | BinaryIO
Carrier = Channel | Structure
"""What reports are of: one channel, or several of which each report names one."""


@dataclass(frozen=True, slots=True, eq=False)
class ReportFile:
    """What a file of reports holds.

    Parameters
    ----------
    channel : Channel or Structure
        As the header names it; its hash has been checked.
    reports : array, or dict of arrays by part or choice
        The whole records, as `aggregate` of the channel takes them.
    truncated : bool
        Whether records are missing: the last is incomplete, or there are fewer than announced.
    missing : int
        How many announced records are not there whole; 0 where the writer announced no number and
        the last record is whole.

    Examples
    --------
    >>> import io
    >>> from dither import local
    >>> file = io.BytesIO()
    >>> local.write_reports(file, local.GRR(3, epsilon=1), [0, 2])
    >>> found = local.read_reports(file.getvalue())
    >>> found.channel.kind, found.reports.tolist(), found.truncated
    ('grr', [0, 2], False)
    """

    channel: Carrier
    reports: Any
    truncated: bool
    missing: int


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


def write_reports(target: str | Path | BinaryIO, channel: Carrier, reports: Any) -> None:
    """Write a file of reports.

    Parameters
    ----------
    target : path, or binary file open for writing
    channel : Channel or Structure
    reports : array or dict of arrays, as `privatize` gives them for a column

    Raises
    ------
    ArgumentError
        See `pack`.

    Examples
    --------
    >>> import io
    >>> from dither import local
    >>> file = io.BytesIO()
    >>> write_reports(file, local.GRR(3, epsilon=1), [0, 2, 1])
    >>> file.getvalue()[:8]
    b'DITHERLR'
    """
    records = _packed(channel, reports)
    text = canonical(channel.to_dict())
    head = _HEAD.pack(
        _MAGIC, _VERSION, channel.report_bytes, len(text), len(records) // channel.report_bytes
    )
    whole = head + text + bytes.fromhex(channel.hash) + records
    if not isinstance(target, str | Path):
        if not hasattr(target, "write"):
            raise ArgumentError("target must be a path, or a binary file open for writing")
        target.write(whole)
        return
    try:
        Path(target).write_bytes(whole)
    except (OSError, ValueError):
        raise ArgumentError("target must be a path that can be written") from None


def read_reports(source: Source, channel: Carrier | None = None) -> ReportFile:
    """Read a file of reports; of a truncated one, what is whole.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel or Structure, optional
        Which the file must be of: its hash is compared before anything of the file is read as a
        channel. Without, the file's own channel is made, of up to 2**20 values and counts.

    Returns
    -------
    ReportFile
        The channel, the whole records, and how many are missing.

    Raises
    ------
    ArgumentError
        The header is not whole, of a newer version, or names another hash than its channel's; the
        file is of another channel, or describes too large a one; or it goes on after the records
        that it announces.

    Examples
    --------
    >>> import io
    >>> from dither import local
    >>> file = io.BytesIO()
    >>> write_reports(file, local.GRR(3, epsilon=1), [0, 2, 1])
    >>> found = read_reports(file.getvalue()[:-1])
    >>> found.reports.tolist(), found.truncated, found.missing
    ([0, 2], True, 1)
    """
    with _opened(source) as file:
        found, announced = _header(file, channel)
        records = file.read()
    whole, rest = divmod(len(records), found.report_bytes)
    reports = _unpacked(found, records)
    _bounded(announced, whole, rest)
    missing = _missing(announced, whole, rest)
    return ReportFile(found, reports, missing > 0, missing)


def aggregate_file(source: Source, channel: Carrier | None = None) -> tuple[Any, int]:
    """Count a file of reports of any length in bounded memory.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel or Structure, optional
        Which the file must be of: its hash is compared before anything of the file is read as a
        channel. Without, the file's own channel is made, of up to 2**20 values and counts.

    Returns
    -------
    aggregate : Aggregate or PartCounts
        Of the whole records; impossible ones are counted as rejected.
    missing : int
        How many records the file announced, or began, and does not hold; 0 for a whole file.

    Raises
    ------
    ArgumentError
        See `read_reports`.

    Examples
    --------
    >>> import io
    >>> from dither import local
    >>> file, channel = io.BytesIO(), local.GRR(3, epsilon=1)
    >>> write_reports(file, channel, [0, 2, 1])
    >>> found, missing = aggregate_file(file.getvalue(), channel)
    >>> found.counts.tolist(), missing
    ([1, 1, 1], 0)
    """
    with _opened(source) as file:
        found, announced = _header(file, channel)
        counted = _counted(found, b"")
        seen = rest = 0
        for records in _chunks(file, found.report_bytes):
            counted = counted + _counted(found, records)
            whole, rest = divmod(len(records), found.report_bytes)
            seen += whole
            _bounded(announced, seen, rest)
    return counted, _missing(announced, seen, rest)


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


def _packed(carrier: Carrier, reports: Any) -> bytes:
    """Records of whatever reports are of; those of parts one after another."""
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


def _unpacked(carrier: Carrier, records: bytes) -> Any:
    return (
        _by_part(carrier, records)[0]
        if isinstance(carrier, Structure)
        else unpack(carrier, records)
    )


def _counted(carrier: Carrier, records: bytes) -> Aggregate | PartCounts:
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


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if isinstance(source, str | Path):
        return Path(source).open("rb")
    # A file of the caller's stays open.
    return nullcontext(source)


def _header(file: BinaryIO, expected: Carrier | None) -> tuple[Carrier, int]:
    """The channel of a file, which may say anything, and how many records it announces."""
    head = file.read(_HEAD.size)
    if not head.startswith(_MAGIC):
        raise ArgumentError("the source is not a file of reports")
    if len(head) < _HEAD.size:
        raise ArgumentError("the file of reports ends within its header")
    _, version, size, length, announced = _HEAD.unpack(head)
    if version != _VERSION:
        raise ArgumentError(f"the file of reports must be of version {_VERSION}")
    if length > _MOST_TEXT:
        raise ArgumentError("the header of the file of reports is damaged")
    text, digest = file.read(length), file.read(32)
    if len(digest) < 32:
        raise ArgumentError("the file of reports ends within its header")
    if hashlib.sha256(text).digest() != digest:
        raise ArgumentError("the header of the file of reports is damaged: the hash does not match")
    channel: Carrier
    if expected is None:
        channel = _described(text)
    elif expected.hash == digest.hex():
        channel = expected
    else:
        raise ArgumentError(
            f"the file is of channel {digest.hex()[:8]}, not of {expected.kind} {expected.hash[:8]}"
        )
    if channel.hash != digest.hex() or size != channel.report_bytes:
        raise ArgumentError("the file's channel is not written as this dither writes it")
    return channel, announced


def _described(text: bytes) -> Carrier:
    """The channel that a text describes; refused where it would ask for too much memory."""
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError("the header of the file of reports is damaged") from None
    if _asked_for(described) <= _MOST_FEATURES:
        channel = carrier_from_dict(described)
        parts = channel.parts.values() if isinstance(channel, Structure) else [channel]
        if sum(part.features for part in parts) <= _MOST_FEATURES:
            return channel
    raise ArgumentError(
        f"the file describes a channel of more than {_MOST_FEATURES:,} values or counts: pass "
        "the channel that you expect, and it is read"
    )


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


def _asked_for(described: Any) -> int:
    """The largest number that stands for as many values anywhere in a description."""
    most, left = 0, [described]
    while left:
        found = left.pop()
        if isinstance(found, dict):
            size = found.get("size")
            most = max(most, size) if isinstance(size, int) and "domain" not in found else most
            left += found.values()
        elif isinstance(found, list):
            left += found
    return most


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Pieces of whole records; the last may have bytes too many."""
    step = max(1, _CHUNK // size) * size
    while records := file.read(step):
        yield records


def _bounded(announced: int, found: int, rest: int) -> None:
    """Refuse what follows the announced records: joined files would be read as reports."""
    if announced != _UNKNOWN and (found > announced or (found == announced and rest)):
        raise ArgumentError(
            "the file of reports goes on after the records that it announces; if files were "
            "joined, count each by itself and add the aggregates"
        )


def _missing(announced: int, whole: int, rest: int) -> int:
    if announced == _UNKNOWN:
        return int(rest > 0)
    return max(announced - whole, int(rest > 0))
