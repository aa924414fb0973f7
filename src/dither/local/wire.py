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
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dither.errors import ArgumentError
from dither.local._channel import Channel
from dither.local._frequency.local_hash import OLH
from dither.local._registry import canonical
from dither.local._reports.records import (
    Carrier,
    carrier_from_dict,
    counted,
    counts_from_dict,
    pack,
    records_of,
    reports_of,
    unpack,
)
from dither.local._structures.parts import Structure

__all__ = [
    "ReportFile",
    "aggregate_file",
    "carrier_from_dict",
    "counts_from_dict",
    "file_of",
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
_MOST_HASHED = 1 << 16
"""Each report that was hashed is compared with every value, so that a few bytes ask for so many."""
_CHUNK = 1 << 24

Source = str | Path | bytes | BinaryIO


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
        The channel's reports have no fixed size, or these are not its reports.

    Examples
    --------
    >>> import io
    >>> from dither import local
    >>> file = io.BytesIO()
    >>> write_reports(file, local.GRR(3, epsilon=1), [0, 2, 1])
    >>> file.getvalue()[:8]
    b'DITHERLR'
    """
    whole = file_of(channel, records_of(channel, reports))
    if not isinstance(target, str | Path):
        if not hasattr(target, "write"):
            raise ArgumentError("target must be a path, or a binary file open for writing")
        target.write(whole)
        return
    try:
        Path(target).write_bytes(whole)
    except (OSError, ValueError):
        raise ArgumentError("target must be a path that can be written") from None


def file_of(channel: Carrier, records: bytes) -> bytes:
    """Whole records of a channel as a file of reports."""
    text = canonical(channel.to_dict())
    head = _HEAD.pack(
        _MAGIC, _VERSION, channel.report_bytes, len(text), len(records) // channel.report_bytes
    )
    return head + text + bytes.fromhex(channel.hash) + records


def read_reports(source: Source, channel: Carrier | None = None) -> ReportFile:
    """Read a file of reports; of a truncated one, what is whole.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel or Structure, optional
        Which the file must be of: its hash is compared before anything of the file is read as a
        channel. Without, the file's own channel is made, of up to 2**20 values and counts, and of
        OLH, BLH and LOLOHA 2**16, as each report is compared with all.

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
    reports = reports_of(found, records)
    _bounded(announced, whole, rest)
    missing = _missing(announced, whole, rest)
    return ReportFile(found, reports, missing > 0, missing)


def aggregate_file(source: Source, channel: Carrier | None = None) -> tuple[Any, int]:
    """Count a file of reports of any length in bounded memory.

    Parameters
    ----------
    source : path, bytes, or binary file open for reading
    channel : Channel or Structure, optional
        As for `read_reports`.

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
        total = counted(found, b"")
        seen = rest = 0
        for records in _chunks(file, found.report_bytes):
            total = total + counted(found, records)
            whole, rest = divmod(len(records), found.report_bytes)
            seen += whole
            _bounded(announced, seen, rest)
    return total, _missing(announced, seen, rest)


def _opened(source: Source) -> AbstractContextManager[BinaryIO]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if isinstance(source, str | Path):
        try:
            return Path(source).open("rb")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "not a path"
            raise ArgumentError(f"source must be a file that can be read: {reason}") from None
    if not hasattr(source, "read"):
        raise ArgumentError("source must be a path, bytes, or a binary file open for reading")
    # A file of the caller's stays open.
    return nullcontext(source)


def _header(file: BinaryIO, expected: Carrier | None) -> tuple[Carrier, int]:
    """The channel of a file, which may say anything, and how many records it announces."""
    if expected is not None and not isinstance(expected, Channel | Structure):
        raise ArgumentError("channel must be a Channel or a Structure, such as local.GRR(5, 1)")
    head = file.read(_HEAD.size)
    if not isinstance(head, bytes):
        raise ArgumentError("source must be open for reading bytes: open it as 'rb'")
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
        hashed = sum(part.features for part in parts if isinstance(part, OLH))
        if sum(part.features for part in parts) <= _MOST_FEATURES and hashed <= _MOST_HASHED:
            return channel
    raise ArgumentError(
        f"the file describes a channel of more than {_MOST_FEATURES:,} values or counts, or "
        f"{_MOST_HASHED:,} that are hashed: pass the channel that you expect, and it is read"
    )


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
