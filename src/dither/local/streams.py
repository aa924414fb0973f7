"""Counting a stream of chunks: a bad chunk is told and left out, and nothing else is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.local.aggregate import Aggregate
from dither.local.arguments import checked_channel
from dither.local.channel import Channel, Tally

__all__ = ["BadChunk", "StreamCount", "aggregate_stream"]


@dataclass(frozen=True, slots=True)
class BadChunk:
    """A chunk that could not be counted as it should.

    Parameters
    ----------
    index : int
        Its place in the stream, from 0.
    reason : str
        What was wrong; it holds no data.
    counted : int
        Reports of it that were whole, and are counted.
    """

    index: int
    reason: str
    counted: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StreamCount:
    """What a stream gave.

    Parameters
    ----------
    aggregate : Aggregate
        Of all reports that could be read.
    chunks : int
        Chunks seen, bad ones among them.
    bad : tuple of BadChunk
    """

    aggregate: Aggregate
    chunks: int
    bad: tuple[BadChunk, ...]


def aggregate_stream(channel: Channel, chunks: Iterable[Any]) -> StreamCount:
    """Count reports that arrive in chunks, in the memory of one chunk.

    Parameters
    ----------
    channel : Channel
    chunks : iterable
        Each a column of reports, as `Channel.aggregate` takes; or bytes of records (`wire.pack`);
        or a path to a file of reports (`wire.write_reports`) or to a Parquet file
        (`tables.aggregate_table`); or a function without arguments that gives one of these.

    Returns
    -------
    StreamCount
        Its aggregate equals, to the bit, that of all good reports at once. A chunk that raises,
        is of another type, or belongs to another channel is left out; of a truncated one the whole
        reports are counted. Each is told in `bad`. An iterable that raises ends the stream there.

    Examples
    --------
    >>> from dither import local
    >>> found = aggregate_stream(local.GRR(3, epsilon=1), [[0, 2], "oops", [1, 9]])
    >>> found.aggregate.counts.tolist(), found.aggregate.rejected, found.bad[0].reason
    ([1, 1, 1], 1, 'ArgumentError: not a column of reports')
    """
    checked_channel(channel)
    if not isinstance(chunks, Iterable) or isinstance(chunks, str | bytes):
        raise ArgumentError("chunks must be a sequence of chunks of reports")
    counts = np.zeros(channel.features, dtype=np.int64)
    good = dropped = seen = 0
    bad: list[BadChunk] = []
    for chunk in _safely(chunks):
        index, seen = seen, seen + 1
        try:
            (more, g, b), note = _counted(channel, chunk)
        except Exception as error:  # whatever a source raises, the other chunks count
            bad.append(BadChunk(index, _told(error)))
            continue
        counts, good, dropped = counts + more, good + g, dropped + b
        if note:
            bad.append(BadChunk(index, note, g))
    return StreamCount(Aggregate(channel, counts, good, dropped), seen, tuple(bad))


class _Broken:
    """Stands for a chunk that the stream failed to give."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _safely(chunks: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from chunks
    except Exception as error:
        yield _Broken(error)


def _counted(channel: Channel, chunk: Any) -> tuple[Tally, str]:
    """The tally of one chunk, and what was wrong with it."""
    if isinstance(chunk, _Broken):
        raise chunk.error
    if callable(chunk):
        given: Callable[[], Any] = chunk
        chunk = given()
    if isinstance(chunk, Path):
        return _file(channel, chunk)
    if isinstance(chunk, bytes):
        from dither.local.wire import unpack

        rest = len(chunk) % channel.report_bytes
        note = f"truncated: {rest} bytes after the last whole record" if rest else ""
        return channel.tally(unpack(channel, chunk)), note
    if isinstance(chunk, str | dict | int | float) or chunk is None:
        raise ArgumentError("not a column of reports")
    return channel.tally(chunk), ""


def _file(channel: Channel, path: Path) -> tuple[Tally, str]:
    if path.suffix == ".parquet":
        from dither.local.tables import aggregate_table

        found, missing = aggregate_table(channel, path), 0
    else:
        from dither.local.wire import aggregate_file

        found, missing = aggregate_file(path, channel)
    note = f"truncated: {missing} reports are missing" if missing else ""
    return (found.counts, found.n, found.rejected), note


def _told(error: Exception) -> str:
    """The error's kind; its text only where it is our own, which never holds data."""
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, ArgumentError) else name
