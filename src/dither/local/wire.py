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
number; for OLH and BLH the seed in 4 bytes and the bucket in the rest; else the bytes of the row.
``docs/local/wire.md`` tells it for clients in other languages.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.aggregate import Aggregate
from dither.local.arguments import checked_channel
from dither.local.channel import Channel, channel_from_dict
from dither.local.finite import FiniteChannel
from dither.local.frequency.local_hash import OLH

__all__ = ["ReportFile", "aggregate_file", "pack", "read_reports", "unpack", "write_reports"]

_MAGIC = b"DITHERLR"
_VERSION = 1
_UNKNOWN = (1 << 64) - 1
_HEAD = struct.Struct("<8sHHIQ")
_MOST_TEXT = 1 << 28
_MOST_FEATURES = 1 << 20
_CHUNK = 1 << 24

Source = str | Path | bytes | BinaryIO


@dataclass(frozen=True, slots=True, eq=False)
class ReportFile:
    """What a file of reports holds.

    Parameters
    ----------
    channel : Channel
        As the header names it; its hash has been checked.
    reports : array
        The whole records, as `Channel.aggregate` takes them.
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

    channel: Channel
    reports: npt.NDArray[Any]
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
    if limits is None:
        return rows
    cuts = [0, size] if len(limits) == 1 else [0, 4, size]
    columns = []
    for first, last in pairwise(cuts):
        padded = np.zeros((rows.shape[0], 8), dtype=np.uint8)
        padded[:, : last - first] = rows[:, first:last]
        columns.append(padded.view("<u8")[:, 0].astype(np.int64))
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def write_reports(target: str | Path | BinaryIO, channel: Channel, reports: Any) -> None:
    """Write a file of reports.

    Parameters
    ----------
    target : path, or binary file open for writing
    channel : Channel
    reports : array, as `Channel.privatize` gives them for a column

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
    records = pack(channel, reports)
    text = _text(channel)
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


def read_reports(source: Source, channel: Channel | None = None) -> ReportFile:
    """Read a file of reports; of a truncated one, what is whole.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel, optional
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
    reports = unpack(found, records)
    rest = len(records) % found.report_bytes
    _bounded(announced, reports.shape[0], rest)
    missing = _missing(announced, reports.shape[0], rest)
    return ReportFile(found, reports, missing > 0, missing)


def aggregate_file(source: Source, channel: Channel | None = None) -> tuple[Aggregate, int]:
    """Count a file of reports of any length in bounded memory.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel, optional
        Which the file must be of: its hash is compared before anything of the file is read as a
        channel. Without, the file's own channel is made, of up to 2**20 values and counts.

    Returns
    -------
    aggregate : Aggregate
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
        counts = np.zeros(found.features, dtype=np.int64)
        good = bad = rest = 0
        for records in _chunks(file, found.report_bytes):
            more, g, b = found.tally(unpack(found, records))
            counts, good, bad = counts + more, good + g, bad + b
            rest = len(records) % found.report_bytes
            _bounded(announced, good + bad, rest)
    return Aggregate(found, counts, good, bad), _missing(announced, good + bad, rest)


def _limits(channel: Channel) -> tuple[int, ...] | None:
    """Above what each number of a report is impossible; None where reports are rows of bytes."""
    if isinstance(channel, FiniteChannel):
        return (channel.outputs,)
    if isinstance(channel, OLH):
        return (1 << 32, channel.buckets)
    return None


def _text(channel: Channel) -> bytes:
    found = json.dumps(
        channel.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return found.encode()


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if isinstance(source, str | Path):
        return Path(source).open("rb")
    # A file of the caller's stays open.
    return nullcontext(source)


def _header(file: BinaryIO, expected: Channel | None) -> tuple[Channel, int]:
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


def _described(text: bytes) -> Channel:
    """The channel that a text describes; no larger one than a stranger's few bytes may ask for."""
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        raise ArgumentError("the header of the file of reports is damaged") from None
    domain = described.get("domain") if isinstance(described, dict) else None
    size = domain.get("size") if isinstance(domain, dict) else None
    channel = None
    if not (isinstance(size, int) and size > _MOST_FEATURES):
        channel = channel_from_dict(described)
    if channel is None or channel.features > _MOST_FEATURES:
        raise ArgumentError(
            f"the file describes a channel of more than {_MOST_FEATURES:,} values or counts: pass "
            "the channel that you expect, and it is read"
        )
    return channel


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
