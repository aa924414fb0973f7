"""Files, aggregates and dictionaries that somebody made up: refused clearly, and cheaply."""

from __future__ import annotations

import copy
import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local import wire
from dither.local._channel import Channel
from dither.local._limits import sums_to
from dither.local._registry import channel_from_dict
from dither.local._reports import aggregate as _aggregate
from dither.local._structures import parts
from dither.local.wire import _HEAD, _MAGIC, _UNKNOWN

UNIT = local.Interval(0, 1, steps=8)
CATALOGUE: list[Channel] = [
    local.GRR(5, 1),
    local.SDGRR(5, {0, 1}, 1),
    local.URR(5, {0, 1}, 1),
    local.SUE(5, 1),
    local.OUE(5, 1),
    local.THE(5, 1),
    local.SHE(5, 1),
    local.OLH(5, 1),
    local.BLH(5, 1),
    local.FLH(5, 1, seeds=8),
    local.Hadamard(5, 1),
    local.SubsetSelection(5, 1),
    local.CMS(5, 1, hashes=4, buckets=8),
    local.HCMS(5, 1, hashes=4, buckets=8),
    local.RAPPOR(5, 2, once=1, question="q"),
    local.BloomRAPPOR(5, 2, once=1, bits=8, cohorts=2),
    local.LOLOHA(5, 1, 2),
    local.TruncatedGeometric(5, 1),
    local.GridPrivacy(2, 2, 1, 1),
    local.MinIDLDP(3, [1, 2, 2]),
    local.Duchi(UNIT, 1),
    local.PM(UNIT, 1),
    local.Hybrid(UNIT, 1),
    local.LatticeLaplace(UNIT, 1),
    local.SW(UNIT, 1),
    local.SDPM(UNIT, (0.25, 0.5), 1),
]
KINDS = [channel.kind for channel in CATALOGUE]


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    (1 << 24) + 1,
    1 << 24,
    10**400,
    0.5,
    1e308,
    "",
    "x",
    "1e9",
    "1e-4000",
    "1/0",
    [],
    [[1]],
    {},
    {"size": 1 << 24},
    {"size": 2.5},
    {"size": True},
    {"values": "abc"},
    {"values": [1, 1]},
    {"values": [[1]]},
    {"values": None},
    {"low": "0", "high": "1e300", "steps": 4},
    nested(900),
]


def file_of(described: Any, size: int = 1, records: bytes = b"\0" * 8) -> bytes:
    """A file whose header says what it likes, with the digest that belongs to it."""
    text = described if isinstance(described, bytes) else json.dumps(described).encode()
    head = _HEAD.pack(_MAGIC, 1, size, len(text), _UNKNOWN)
    return head + text + hashlib.sha256(text).digest() + records


def places(found: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a nested value can be changed."""
    if before:
        yield before
    if isinstance(found, dict | list):
        for key in found if isinstance(found, dict) else range(len(found)):
            yield from places(found[key], (*before, key))


def changed(found: Any) -> Iterator[Any]:
    """Every setting missing, and replaced by everything strange."""
    for place in places(found):
        for strange in (*STRANGE, "missing"):
            made = copy.deepcopy(found)
            inner = made
            for key in place[:-1]:
                inner = inner[key]
            if strange == "missing":
                del inner[place[-1]]
            else:
                inner[place[-1]] = strange
            yield made


@pytest.mark.parametrize("channel", CATALOGUE, ids=KINDS)
def test_a_header_may_say_anything(channel: Channel) -> None:
    """Whatever a description says, it makes a channel or a clear error, and nothing else."""
    for described in changed(channel.to_dict()):
        try:
            local.aggregate_file(file_of(described))
        except ArgumentError:
            continue


OFFERS = [
    local.Personal({"a": local.GRR(4, 1), "b": local.SDGRR(4, {3}, 1)}),
    local.Personal({"a": local.GRR(4, 1), "b": local.OUE(4, 1)}),
    local.Personal([local.GRR(4, 1), local.SDGRR(4, {3}, 1)]),
]


@pytest.mark.parametrize("offer", OFFERS, ids=["joint", "named", "listed"])
def test_a_description_of_an_offer_may_say_anything(offer: local.Personal) -> None:
    """Whatever it says, and whatever its counts say, it is read or refused clearly."""
    for described in changed(offer.to_dict()):
        try:
            local.aggregate_file(file_of(described))
        except ArgumentError:
            continue
    reports = offer.privatize([0, 1, 2, 3], list(offer.parts) * 2)
    for found in changed(offer.aggregate(reports).to_dict()):
        for given in (found, signed(found)):
            try:
                wire.counts_from_dict(given)
            except ArgumentError:
                continue


def signed(found: dict[str, Any]) -> dict[str, Any]:
    """Counts with the digest of what they say that they are of."""
    of = next((found[k] for k in ("structure", "personal", "channel") if k in found), None)
    return {**found, "hash": hashlib.sha256(json_of(of)).hexdigest()}


def json_of(described: Any) -> bytes:
    """The canonical text of a description."""
    return json.dumps(described, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "counts",
    [
        local.GRR(1 << 16, 1).aggregate([3]),
        local.Personal({"a": local.GRR(4, 1), "b": local.OUE(4, 1)}).aggregate({"a": [0]}),
    ],
    ids=["channel", "offer"],
)
def test_nothing_is_made_of_a_description_with_another_digest(
    counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is compared first: its size and its channels are whatever somebody wrote."""
    found = json.loads(json.dumps(counts.to_dict()))
    assert wire.counts_from_dict(found).n == 1

    def made(*_: Any) -> Any:
        raise AssertionError("made before its digest was compared")

    for module in (_aggregate, parts):
        for name in ("channel_from_dict", "structure_from_dict"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, made)
    with pytest.raises(ArgumentError, match="hash"):
        wire.counts_from_dict({**found, "hash": "0" * 64})
    with pytest.raises(AssertionError):
        wire.counts_from_dict(found)


@pytest.mark.parametrize("header", [b"3", b"[]", b'"grr"', b"null", b"{", b"\xff", b"[" * 9000])
def test_a_header_that_is_no_object_is_damaged(header: bytes) -> None:
    """Lists, numbers, half an object and a thousand brackets are refused as what they are."""
    for read in (local.aggregate_file, local.read_reports):
        with pytest.raises(ArgumentError):
            read(file_of(header))


def peak(data: bytes, channel: Channel | None) -> int:
    """Bytes that reading a file asks for, at most."""
    tracemalloc.start()
    try:
        with pytest.raises(ArgumentError, match="file"):
            local.aggregate_file(data, channel)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "described",
    [
        {"channel": "grr", "domain": {"size": 1 << 24}, "epsilon": "1", "version": 1},
        {"channel": "she", "clamp": 9, "domain": {"size": 1 << 24}, "epsilon": "1", "version": 1},
        {**local.BloomRAPPOR(2, 2).to_dict(), "bits": 4096, "cohorts": 65536},
        {**local.CMS(2, 2).to_dict(), "hashes": 1 << 10, "buckets": 1 << 14},
        {**local.FLH(2, 2).to_dict(), "seeds": 1 << 16, "buckets": 1 << 12},
    ],
)
def test_a_few_bytes_ask_for_little_memory(described: dict[str, Any]) -> None:
    """A channel of millions of counts is not made because a stranger's header names it."""
    data = file_of(described)
    assert len(data) < 300
    assert peak(data, None) < 1 << 20
    # Anyone who says which channel is expected makes nothing of what the file describes.
    assert peak(data, local.GRR(3, 1)) < 1 << 20


@pytest.mark.parametrize(
    "channel",
    [local.GRR(1 << 21, 1), local.OLH((1 << 16) + 1, 1), local.BLH(1 << 17, 1)],
    ids=["grr", "olh", "blh"],
)
def test_a_large_channel_is_read_by_whoever_expects_it(channel: Channel) -> None:
    """The limit is on what a file may ask for, not on what it may hold."""
    canonical = json.dumps(channel.to_dict(), sort_keys=True, separators=(",", ":")).encode()
    record = b"\0" * channel.report_bytes
    data = file_of(canonical, channel.report_bytes, record)
    for read in (local.read_reports, local.aggregate_file):
        with pytest.raises(ArgumentError, match="pass the channel"):
            read(data)
    assert len(local.read_reports(data, channel).reports) == 1
    assert local.aggregate_file(data, channel)[0].n == 1
    with pytest.raises(ArgumentError, match="not of grr"):
        local.read_reports(data, local.GRR(5, 1))


@pytest.mark.parametrize("channel", CATALOGUE, ids=KINDS)
def test_impossible_counts_are_refused(channel: Channel) -> None:
    """No channel takes counts that its reports cannot add up to, nor ones that overflow."""
    m = channel.features
    good = channel.simulate(np.full(len(channel.domain), 3), np.random.default_rng(1))
    n = 3 * len(channel.domain)
    local.Aggregate(channel, good, n)
    for counts, reports in (
        ([10**9] * m, 1),
        (good.tolist(), 0),
        ([0] * (m - 1) + [1 << 40], n),
        # Sums that come to n, or to 0, in sixty-four bits.
        ([1 << 62] * m, 0),
        ([1 << 62] * 4 + [0] * (m - 4) if m >= 4 else [1 << 63] * m, n),
        ([10**30] * m, n),
        ([[1], [1, 2]], 1),
        ([True] * m, n),
        ([0.5] * m, n),
        ([-1] * m, n),
    ):
        with pytest.raises(ArgumentError):
            local.Aggregate(channel, counts, reports)  # type: ignore[arg-type]


def test_sums_are_exact() -> None:
    """Counts whose sum is 2**64 and more are not taken for their remainder."""
    assert sums_to(np.array([1, 2, 3]), 6)
    assert sums_to(np.array([], dtype=np.int64), 0)
    assert not sums_to(np.array([1 << 62] * 4), 0)
    assert sums_to(np.array([1 << 62] * 4), 1 << 64)
    assert not sums_to(np.array([1 << 62] * 5), 1 << 62)


def test_a_saved_aggregate_may_say_anything() -> None:
    """Every part of a saved aggregate, missing or strange, is refused or read."""
    saved = local.GRR(3, 1).aggregate([0, 1, 2]).to_dict()
    for found in changed(saved):
        try:
            local.Aggregate.from_dict(found)
        except ArgumentError:
            continue
    for strange in STRANGE:
        with pytest.raises(ArgumentError):
            local.Aggregate.from_dict(strange)
        with pytest.raises(ArgumentError):
            channel_from_dict(strange)
        table = pa.table({"feature": [0], "count": [1]})
        with pytest.raises(ArgumentError):
            local.Aggregate.from_arrow(strange)
        about = {"dither.local": json.dumps(strange)}
        with pytest.raises(ArgumentError):
            local.Aggregate.from_arrow(table.replace_schema_metadata(about))


def test_budgets_from_a_file_are_not_solved_for() -> None:
    """The thresholds are the channel: a file that leaves them out is refused at once."""
    described = local.MinIDLDP(3, [1, 2, 2]).to_dict()
    with pytest.raises(ArgumentError, match="thresholds"):
        channel_from_dict({**described, "thresholds": None})
    many = [str(1 + i) + "/1000" for i in range(300)]
    with pytest.raises(ArgumentError, match="256"):
        channel_from_dict({**described, "domain": {"size": 300}, "epsilons": many})
