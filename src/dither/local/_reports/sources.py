"""Reports from tables and streams, counted in bounded memory.

A table (Parquet, Arrow) is counted by DuckDB: a channel whose report is one number by one ``GROUP
BY``, others in batches. Of a stream, a bad chunk is reported and left out, and nothing else is
lost. All give the counts that `Channel.aggregate` gives, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._extras import extra_library
from dither.errors import ArgumentError, MissingLibraryError
from dither.local._channel import Channel, Tally
from dither.local._frequency.local_hash import OLH
from dither.local._oracles import FiniteChannel
from dither.local._registry import checked_channel
from dither.local._reports.aggregate import Aggregate

if TYPE_CHECKING:
    import duckdb

TABLES = "tables of reports need"
_HASH = b"dither.local._channel"
_BATCH = 1 << 18
_FLOATS = {"FLOAT", "DOUBLE"}
_WHOLE = {f"{u}{n}INT" for u in ("", "U") for n in ("TINY", "SMALL", "BIG", "HUGE")}
_WHOLE |= {"INTEGER", "UINTEGER"}


def reports_table(channel: Channel, reports: Any) -> Any:
    """Reports as an Arrow table that names their channel's hash in its metadata.

    Parameters
    ----------
    channel : Channel
    reports : array, as `Channel.privatize` gives them for a column

    Returns
    -------
    pyarrow.Table
        One column ``report``, of numbers or of bytes; for OLH and BLH ``seed`` and ``bucket``.
        Write it with ``pyarrow.parquet.write_table``.

    Raises
    ------
    ArgumentError
        What is given is not reports of the channel.
    MissingLibraryError
        pyarrow is not installed; the extra ``arrow`` brings it.

    Examples
    --------
    >>> from dither import local
    >>> channel = local.OLH(100, epsilon=1)
    >>> reports_table(channel, channel.privatize([3, 14, 15])).column_names
    ['seed', 'bucket']
    """
    from dither.local.wire import pack

    pa = extra_library("pyarrow", "arrow", TABLES)

    # As records: what is not a report of the channel is refused here, with one message.
    records = pack(channel, reports)
    given = np.asarray(reports)
    if isinstance(channel, FiniteChannel):
        given = given.reshape(-1)
    if isinstance(channel, OLH):
        columns = {
            "seed": pa.array(given[:, 0].astype(np.uint32)),
            "bucket": pa.array(given[:, 1].astype(np.uint16)),
        }
    elif isinstance(channel, FiniteChannel):
        columns = {"report": pa.array(given.astype(np.uint32))}
    else:
        size = channel.report_bytes
        buffer, kind = pa.py_buffer(records), pa.binary(size)
        columns = {"report": pa.Array.from_buffers(kind, len(records) // size, [None, buffer])}
    return pa.table(columns).replace_schema_metadata({_HASH: channel.hash})


def aggregate_table(
    channel: Channel,
    source: Any,
    *,
    memory: str = "1GB",
    threads: int = 2,
) -> Aggregate:
    """Count a table of reports.

    Parameters
    ----------
    channel : Channel
    source : path, list of paths, or pyarrow.Table
        Parquet files, or a table, with a column ``report``, or ``seed`` and ``bucket`` for OLH and
        BLH, as `reports_table` makes.
    memory : str
        What DuckDB may use, such as "1GB".
    threads : int
        How many threads DuckDB may use, from 1 to 1,024.

    Returns
    -------
    Aggregate
        NULLs and impossible reports are counted as rejected.

    Raises
    ------
    ArgumentError
        The table cannot be read, lacks the columns, or names another channel's hash.
    MissingLibraryError
        pyarrow is not installed; the extra ``arrow`` brings it.

    Examples
    --------
    >>> from dither import local
    >>> channel = local.GRR(3, epsilon=1)
    >>> aggregate_table(channel, reports_table(channel, [0, 1, 1])).counts.tolist()
    [1, 2, 0]
    """
    import duckdb

    checked_channel(channel)
    _checks.whole("threads", threads, 1, 1 << 10)
    wanted = ["seed", "bucket"] if isinstance(channel, OLH) else ["report"]
    _check_hash(channel, source)
    try:
        engine = duckdb.connect(":memory:", config={"memory_limit": memory, "threads": threads})
    except (duckdb.Error, RuntimeError):  # what is not Unicode is refused by a bare RuntimeError
        raise ArgumentError('memory must be a size such as "1GB"') from None
    with engine:
        try:
            engine.execute("SET preserve_insertion_order = false")
            relation = _relation(engine, source)
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            if not set(wanted) <= set(kinds):
                raise ArgumentError(f"the table must have the columns {', '.join(wanted)}")
            if isinstance(channel, FiniteChannel):
                return _grouped(channel, relation, kinds["report"])
            return _batched(channel, relation, wanted)
        except duckdb.Error:
            raise ArgumentError(
                "the table of reports cannot be read: it is truncated or not Parquet"
            ) from None


def _relation(engine: duckdb.DuckDBPyConnection, source: Any) -> duckdb.DuckDBPyRelation:
    if hasattr(source, "schema") and hasattr(source, "column_names"):
        return engine.from_arrow(source)
    paths = [str(p) for p in (source if isinstance(source, list | tuple) else [source])]
    return engine.read_parquet(paths)


def _grouped(channel: FiniteChannel, relation: duckdb.DuckDBPyRelation, kind: str) -> Aggregate:
    """One count for each report by GROUP BY; -1 stands for what no channel could have said."""
    counts = np.zeros(channel.outputs, dtype=np.int64)
    if kind not in _WHOLE | _FLOATS:
        n = relation.aggregate("count(*)").fetchall()[0][0]
        return Aggregate(channel, counts, 0, int(n))
    within = f"report >= 0 AND report < {channel.outputs}"
    if kind in _FLOATS:
        within += " AND report = floor(report)"
    code = f"CASE WHEN {within} THEN CAST(report AS BIGINT) ELSE -1 END"
    found = relation.aggregate(f"{code} AS code, count(*) AS found", "code").fetchnumpy()
    codes, each = found["code"].astype(np.int64), found["found"].astype(np.int64)
    good = codes >= 0
    counts[codes[good]] = each[good]
    return Aggregate(channel, counts, int(each[good].sum()), int(each[~good].sum()))


def _batched(channel: Channel, relation: duckdb.DuckDBPyRelation, wanted: list[str]) -> Aggregate:
    counts = np.zeros(channel.features, dtype=np.int64)
    good = bad = 0
    quoted = ", ".join(f'"{name}"' for name in wanted)
    for batch in relation.project(quoted).to_arrow_reader(_BATCH):
        reports, nulls = _columns(channel, batch)
        more, g, b = channel.tally(reports)
        counts, good, bad = counts + more, good + g, bad + b + nulls
    return Aggregate(channel, counts, good, bad)


def _columns(channel: Channel, batch: Any) -> tuple[npt.NDArray[Any] | list[Any], int]:
    """Reports of a batch as `Channel.tally` takes them, and how many were NULL."""
    from dither.local.wire import unpack

    pa = extra_library("pyarrow", "arrow", TABLES)
    table = pa.Table.from_batches([batch]).drop_null()
    nulls = batch.num_rows - table.num_rows
    if table.num_columns == 2:
        columns = [table.column(i).to_numpy() for i in range(2)]
        if all(c.dtype.kind in "iuf" for c in columns):
            return np.stack(
                [c.astype(np.float64 if c.dtype.kind == "f" else np.int64) for c in columns], axis=1
            ), nulls
        return list(zip(*(c.tolist() for c in columns), strict=True)), nulls
    rows = table.column(0).to_pylist()
    sizes = {len(r) for r in rows if isinstance(r, bytes)}
    if len(sizes) == 1 and all(isinstance(r, bytes) for r in rows):
        if sizes == {channel.report_bytes}:
            return unpack(channel, b"".join(rows)), nulls
        return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1), nulls
    return rows, nulls


def _check_hash(channel: Channel, source: Any) -> None:
    """Refuse files and tables whose metadata name another channel; without any, trust."""
    pq = extra_library("pyarrow.parquet", "arrow", TABLES)
    if hasattr(source, "schema") and hasattr(source, "column_names"):
        schemas = [source.schema]
    else:
        paths = source if isinstance(source, list | tuple) else [source]
        try:
            schemas = [pq.read_schema(str(p)) for p in paths if Path(p).is_file()]
        except Exception:  # what pyarrow raises has no common root
            raise ArgumentError(
                "the table of reports cannot be read: it is truncated or not Parquet"
            ) from None
    for schema in schemas:
        named = (schema.metadata or {}).get(_HASH)
        if named is not None and named.decode("ascii", "replace") != channel.hash:
            raise ArgumentError(
                f"the table's reports are of channel {named[:8].decode('ascii', 'replace')}, "
                f"not of {channel.kind} {channel.hash[:8]}"
            )


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
        Each a column of reports, as `Channel.aggregate` takes; or bytes of records; or a path to a
        file of reports (`write_reports`) or to a Parquet file (`aggregate_table`); or a function
        without arguments that gives one of these.

    Returns
    -------
    StreamCount
        Its aggregate equals, to the bit, that of all good reports at once. A chunk that raises,
        is of another type, or belongs to another channel is left out; of a truncated one the whole
        reports are counted. Each is listed in `bad`. An iterable that raises ends the stream there.

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
    try:
        given = iter(chunks)
    except TypeError:  # such as an array without dimensions
        raise ArgumentError("chunks must be a sequence of chunks of reports") from None
    counts = np.zeros(channel.features, dtype=np.int64)
    good = dropped = seen = 0
    bad: list[BadChunk] = []
    for chunk in _safely(given):
        index, seen = seen, seen + 1
        try:
            (more, g, b), note = _counted(channel, chunk)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a source raises, an exit too, the others count
            bad.append(BadChunk(index, _error_text(error)))
            continue
        counts, good, dropped = counts + more, good + g, dropped + b
        if note:
            bad.append(BadChunk(index, note, g))
    return StreamCount(Aggregate(channel, counts, good, dropped), seen, tuple(bad))


class _Broken:
    """Stands for a chunk that the stream failed to give."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _safely(given: Iterator[Any]) -> Iterator[Any]:
    while True:
        try:
            chunk = next(given)
        except StopIteration:
            return
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            chunk = _Broken(error)
        yield chunk
        if isinstance(chunk, _Broken):
            return


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
        found, missing = aggregate_table(channel, path), 0
    else:
        from dither.local.wire import aggregate_file

        found, missing = aggregate_file(path, channel)
    note = f"truncated: {missing} reports are missing" if missing else ""
    return (found.counts, found.n, found.rejected), note


def _error_text(error: BaseException) -> str:
    """The error's kind; its text only where it is our own, which never holds data."""
    name = type(error).__name__
    own = isinstance(error, ArgumentError | MissingLibraryError)
    return f"{name}: {error}" if own else name
