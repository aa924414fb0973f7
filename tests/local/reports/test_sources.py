"""The same counts from numpy, from a stream, from a table and from a file; bad parts are told."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import (
    BLH,
    CMS,
    FLH,
    GRR,
    HCMS,
    OLH,
    OUE,
    SDGRR,
    SUE,
    Hadamard,
    SubsetSelection,
    aggregate_file,
    aggregate_stream,
    aggregate_table,
    read_reports,
    reports_table,
    write_reports,
)
from dither.local.wire import pack, unpack
from dither.numeric import SimulatedWords

CHANNELS = [
    GRR(300, 1),
    SDGRR(300, range(40), 1),
    Hadamard(300, 3),
    FLH(300, 1),
    OLH(300, 1),
    OLH(300, 7),
    BLH(300, 1),
    OUE(300, 1),
    SUE(300, 1),
    SubsetSelection(300, 1),
    CMS(300, 1, hashes=9, buckets=32),
    HCMS(300, 1, hashes=9, buckets=32),
]
IDS = [c.kind for c in CHANNELS]


def drawn(channel: Any, n: int = 2000, seed: int = 1) -> Any:
    """Reports of people spread over all values."""
    return channel.draw(np.arange(n) % len(channel.domain), SimulatedWords(seed))


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_every_way_counts_alike(channel: Any, tmp_path: Path) -> None:
    """numpy, chunks, records, Arrow, Parquet and files give one aggregate, to the bit."""
    reports = drawn(channel)
    whole = channel.aggregate(reports, strict=True)
    table = reports_table(channel, reports)
    parquet, wired = tmp_path / "r.parquet", tmp_path / "r.reports"
    pq.write_table(table, parquet, row_group_size=300)
    write_reports(wired, channel, reports)
    chunks = [reports[:700], pack(channel, reports[700:1100]), lambda: reports[1100:]]
    assert aggregate_table(channel, table) == whole
    assert aggregate_table(channel, parquet, memory="300MB", threads=1) == whole
    assert aggregate_table(channel, [parquet, str(parquet)]) == whole + whole
    assert aggregate_stream(channel, chunks).aggregate == whole
    assert aggregate_stream(channel, [parquet, wired]).aggregate == whole + whole
    assert aggregate_file(wired) == (whole, 0)
    with wired.open("rb") as file:
        assert aggregate_file(file, channel) == (whole, 0)
        assert not file.closed
    found = read_reports(wired)
    assert found.channel == channel
    assert np.array_equal(found.reports, reports)
    assert not found.truncated
    assert wired.stat().st_size > 2000 * channel.report_bytes


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_truncated_files_keep_what_is_whole(channel: Any) -> None:
    """Wherever a file ends within its records, the whole ones count and the loss is told."""
    reports = drawn(channel, 20)
    file = io.BytesIO()
    write_reports(file, channel, reports)
    written, size = file.getvalue(), channel.report_bytes
    for cut in (1, size, size + 1, 7 * size):
        kept = 20 - -(-cut // size)
        found = read_reports(written[:-cut])
        assert found.truncated
        assert found.missing == 20 - kept
        assert np.array_equal(found.reports, reports[:kept])
        counted, missing = aggregate_file(written[:-cut])
        assert (counted, missing) == (channel.aggregate(reports[:kept]), 20 - kept)


def test_damaged_headers_are_refused() -> None:
    """Another kind of file, a header cut short, a changed channel: none is read as reports."""
    file, channel = io.BytesIO(), GRR(["no", "yes"], 1)
    write_reports(file, channel, [0, 1, 1])
    written = file.getvalue()
    for length in (0, 5, 15, 23, 40, len(written) - 4):
        with pytest.raises(ArgumentError):
            read_reports(written[:length])
    for change in (
        written.replace(b'"yes"', b'"YES"'),
        written[:8] + b"\2" + written[9:],
        written[:12] + b"\xff\xff\xff\xff" + written[16:],
        written[:10] + b"\2" + written[11:],
    ):
        assert change != written
        with pytest.raises(ArgumentError):
            read_reports(change)
    with pytest.raises(ArgumentError, match="not of grr"):
        aggregate_file(written, GRR(["no", "yes"], 2))
    unknown = written[:16] + b"\xff" * 8 + written[24:]
    assert read_reports(unknown).missing == 0
    assert read_reports(unknown).reports.tolist() == [0, 1, 1]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes, after the right beginning or not, raise anything but an ArgumentError."""
    file = io.BytesIO()
    write_reports(file, GRR(3, 1), [0])
    for given_bytes in (data, file.getvalue()[:24] + data, file.getvalue() + data):
        with contextlib.suppress(ArgumentError):
            aggregate_file(given_bytes)
    for channel in CHANNELS:
        counted = channel.aggregate(unpack(channel, data))
        assert counted.n + counted.rejected == len(data) // channel.report_bytes


def test_bad_chunks_lose_nothing_else(tmp_path: Path) -> None:
    """Chunks that raise, are cut, are of another kind or channel are told; the others count."""
    channel = GRR(1000, 1)
    reports = drawn(channel)
    cut, other, absent = tmp_path / "cut.reports", tmp_path / "other.reports", tmp_path / "none"
    write_reports(cut, channel, reports[:50])
    cut.write_bytes(cut.read_bytes()[:-1])
    write_reports(other, OLH(1000, 1), drawn(OLH(1000, 1)))
    broken = tmp_path / "broken.parquet"
    pq.write_table(reports_table(channel, reports), broken)
    broken.write_bytes(broken.read_bytes()[:-100])
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(reports_table(GRR(1000, 2), reports), foreign)

    def raising() -> Any:
        raise OSError("a secret value")

    chunks: list[Any] = [
        reports[:100],
        raising,
        cut,
        other,
        absent,
        broken,
        foreign,
        pack(channel, reports[:10]) + b"\0",
        {"report": 3},
        None,
        "reports",
        7,
        np.zeros((3, 3, 3)),
        reports[100:200],
        [5000, 3],
    ]
    found = aggregate_stream(channel, chunks)
    good = np.concatenate([reports[:100], reports[:49], reports[:10], reports[100:200], [3]])
    expected = channel.aggregate(good)
    assert np.array_equal(found.aggregate.counts, expected.counts)
    assert (found.aggregate.n, found.aggregate.rejected, found.chunks) == (260, 1, 15)
    assert [b.index for b in found.bad] == list(range(1, 13))
    told = {b.index: b for b in found.bad}
    assert (told[2].counted, told[7].counted, told[1].counted) == (49, 10, 0)
    assert "secret" not in str(found.bad)
    assert "truncated" in told[2].reason
    assert "truncated" in told[7].reason


def test_a_stream_that_breaks_keeps_what_came() -> None:
    """An iterator that raises ends the stream; what it gave before is counted."""

    def stream() -> Any:
        yield [0, 1]
        yield [1]
        raise ConnectionError

    found = aggregate_stream(GRR(2, 1), stream())
    assert found.aggregate.counts.tolist() == [1, 2]
    assert [(b.index, b.reason) for b in found.bad] == [(2, "ConnectionError")]


@given(st.lists(st.lists(st.integers(-2, 6), max_size=5), max_size=6), st.randoms())
def test_order_and_cuts_make_no_difference(chunks: list[list[int]], random: Any) -> None:
    """Any cut into chunks in any order gives the aggregate of all reports at once."""
    channel = GRR(5, 1)
    whole = channel.aggregate([r for chunk in chunks for r in chunk])
    random.shuffle(chunks)
    assert aggregate_stream(channel, chunks).aggregate == whole


def test_impossible_rows_of_tables() -> None:
    """NULLs, fractions, NaN, texts and numbers out of range are counted as rejected."""
    channel = GRR(5, 1)
    for column, counts, rejected in (
        (pa.array([0, 4, 5, -1, None]), [1, 0, 0, 0, 1], 3),
        (pa.array([0.0, 4.0, 0.5, float("nan"), float("inf"), None]), [1, 0, 0, 0, 1], 4),
        (pa.array(["0", "1"]), [0] * 5, 2),
        (pa.array([True, False]), [0] * 5, 2),
        (pa.array([2**63, 1], pa.uint64()), [0, 1, 0, 0, 0], 1),
    ):
        found = aggregate_table(channel, pa.table({"report": column}))
        assert (found.counts.tolist(), found.rejected) == (counts, rejected)
    olh = OLH(5, 1)
    table = pa.table({"seed": [1, 2, None, -1, 2**32], "bucket": [0, 9, 1, 1, 1]})
    assert (aggregate_table(olh, table).n, aggregate_table(olh, table).rejected) == (1, 4)
    oue = OUE(9, 1)
    table = pa.table({"report": [b"\1\0", b"\1", None, b"\1\1"]})
    assert (aggregate_table(oue, table).n, aggregate_table(oue, table).rejected) == (1, 3)


def test_refusals(tmp_path: Path) -> None:
    """A table of another channel, without its columns, or unreadable is refused by name."""
    channel = GRR(5, 1)
    table = reports_table(channel, np.array([0, 1]))
    for match, call in (
        ("not of grr", lambda: aggregate_table(GRR(5, 2), table)),
        ("columns", lambda: aggregate_table(channel, pa.table({"answer": [1]}))),
        ("threads", lambda: aggregate_table(channel, table, threads=0)),
        ("memory", lambda: aggregate_table(channel, table, memory="lots")),
        ("cannot be read", lambda: aggregate_table(channel, tmp_path / "none.parquet")),
        ("rows of", lambda: pack(OUE(9, 1), np.zeros((2, 3), dtype=np.uint8))),
        ("produce", lambda: pack(channel, [5])),
        ("produce", lambda: pack(OLH(5, 1), [[-1, 0]])),
        ("whole numbers", lambda: pack(channel, [0.5])),
    ):
        with pytest.raises(ArgumentError, match=match):
            call()
    assert pack(channel, []) == b""


def _ending():
    """A stream that gives one chunk and exits."""
    yield [0]
    raise SystemExit(0)


def test_exits_do_not_leave_a_stream():
    """A chunk or a stream that exits is one that is bad; what it is closed by is not."""
    channel = GRR(3, epsilon=1)
    found = aggregate_stream(channel, [[0], lambda: sys.exit(0), [1]])
    assert [bad.reason for bad in found.bad] == ["SystemExit"]
    assert found.aggregate.counts.tolist() == [1, 1, 0]
    ended = aggregate_stream(channel, _ending())
    assert (ended.chunks, [bad.reason for bad in ended.bad]) == (2, ["SystemExit"])
