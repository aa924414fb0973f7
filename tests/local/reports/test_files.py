"""Files of reports of everything that is reported: channels, structures and offers."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local._channel import Channel
from dither.local.wire import Carrier, pack, unpack
from local.reports.test_hostile import CATALOGUE, KINDS, file_of

PEOPLE = 60
STRUCTURES: list[tuple[local.Structure, Any]] = [
    (
        local.Attributes({"b": 2, "a": 300}, 2, channel=local.OLH),
        {"b": [0, 1] * 30, "a": [7] * PEOPLE},
    ),
    (local.Attributes({"b": 2, "a": 3}, 2, method="split"), {"b": [0, 1] * 30, "a": [2] * PEOPLE}),
    (local.FakeData({"b": 2, "a": 300}, 2), {"b": [0, 1] * 30, "a": [7] * PEOPLE}),
    (local.Marginals({"b": 2, "a": 3}, 1, 2), {"b": [0, 1] * 30, "a": [2] * PEOPLE}),
    (local.ItemSets(5, 2, padding=2, channel=local.SHE), [{0, 1}, set(), {4}] * 20),
    (local.KeyValue(3, (0, 1), 2, padding=2, channel=local.OUE), [{0: 1}, {}, {2: 0.5}] * 20),
    (local.HeavyHitters("ab", 3, 2, bits=8), ["ab", "b", "aba"] * 20),
]


def written(carrier: Carrier, reports: Any) -> bytes:
    file = io.BytesIO()
    local.write_reports(file, carrier, reports)
    return file.getvalue()


def drawn(channel: Channel) -> Any:
    """Reports of every value of a channel."""
    if hasattr(channel, "interval"):
        return channel.privatize([0, 0.25, 1] * 20)
    return channel.privatize(list(channel.domain.values) * 10)


@pytest.mark.parametrize("channel", CATALOGUE, ids=KINDS)
def test_every_channel_has_a_wire(channel: Channel) -> None:
    """Records are of the size that is told, come back as they were, and count to the bit."""
    reports = drawn(channel)
    records = pack(channel, reports)
    assert len(records) == channel.report_bytes * len(reports)
    assert np.array_equal(unpack(channel, records), reports)
    data = written(channel, reports)
    counted, missing = local.aggregate_file(data)
    assert (counted, missing) == (channel.aggregate(reports), 0)
    assert local.aggregate_file(data[:-1], channel)[1] == 1
    table = local.reports_table(channel, reports)
    assert local.aggregate_table(channel, table) == channel.aggregate(reports)


@pytest.mark.parametrize(("structure", "records"), STRUCTURES, ids=[s.kind for s, _ in STRUCTURES])
def test_structures_have_a_wire(structure: local.Structure, records: Any) -> None:
    """Every part's reports survive a file; its counts are those of the reports themselves."""
    reports = structure.privatize(records)
    data = written(structure, reports)
    assert len(data) > structure.report_bytes * sum(len(r) for r in reports.values())
    found = local.read_reports(data, structure)
    assert list(found.reports) == list(structure.parts)
    for name, part in reports.items():
        assert np.array_equal(found.reports[name], part)
    counted, missing = local.aggregate_file(data, structure)
    assert (counted.to_dict(), missing) == (structure.aggregate(reports).to_dict(), 0)
    # Without the structure, it is made from the file's own description.
    again, _ = local.aggregate_file(data)
    assert again.to_dict() == counted.to_dict()  # type: ignore[comparison-overlap]
    cut, missing = local.aggregate_file(data[:-1], structure)
    assert (cut.n, missing) == (counted.n - 1, 1)


@pytest.mark.parametrize("names", [False, True])
def test_offers_of_any_channels_have_a_wire(names: bool) -> None:
    """Reports of each choice survive a file; a choice that is not offered is lost, and told."""
    rated = (local.GRR(300, 1), local.OUE(300, 2), local.SHE(300, 1))
    offer = local.Personal({c.kind: c for c in rated} if names else rated)
    reports = offer.privatize([7, 8, 9] * 20, list(offer.parts) * 20)
    data = written(offer, reports)
    found, missing = local.aggregate_file(data, offer)
    assert found == offer.aggregate(reports)
    assert missing == 0
    assert local.aggregate_file(data)[0] == found  # type: ignore[comparison-overlap]
    size = offer.report_bytes
    strange = bytes([9, 0]) + bytes(size - 2)
    padded = bytes([0, 0]) + bytes(size - 3) + b"\1"
    records = data[-60 * size :] + strange + padded
    more = data[: -60 * size]
    told = more[:16] + (62).to_bytes(8, "little") + more[24:] + records
    counted, missing = local.aggregate_file(told, offer)
    assert (counted.n, counted.rejected, missing) == (60, 2, 0)


def test_named_channels_with_a_matrix_are_one_list_of_reports() -> None:
    """A report is one number: the class's first, plus its own; numbers beyond the list are lost."""
    offer = local.Personal({"a": local.GRR(4, 1), "b": local.SDGRR(4, {3}, 1)})
    reports = offer.privatize([0, 1, 2, 3] * 10, ["a", "b"] * 20)
    data = written(offer, reports)
    assert offer.report_bytes == 1
    records = data[-40:]
    assert sorted(records[:20]) == sorted(reports["a"].tolist())
    assert sorted(b - 4 for b in records[20:]) == sorted(reports["b"].tolist())
    found, missing = local.aggregate_file(data)
    assert (found, missing) == (offer.aggregate(reports), 0)
    assert local.read_reports(data).reports["b"].tolist() == reports["b"].tolist()
    told = data[:16] + (41).to_bytes(8, "little") + data[24:] + b"\x08"
    lost, _ = local.aggregate_file(told, offer)
    assert (lost.n, lost.rejected) == (40, 1)
    again = local.PartCounts.from_dict(json.loads(json.dumps(lost.to_dict())))
    assert again == lost
    assert (again + found).n == 80


def test_impossible_bins_are_dropped() -> None:
    """A bin beyond the clamp is not a report of the channel; it is refused where it is written."""
    channel = local.SHE(3, 1, clamp=2)
    assert (channel.bin_bytes, channel.report_bytes) == (1, 3)
    assert unpack(channel, bytes([0, 2, 5])).tolist() == [[-2, 0, 3]]
    assert channel.aggregate(unpack(channel, bytes([0, 6, 0, 1, 1, 1]))).rejected == 1
    for wrong in ([[3, 0, 4]], [[0, 0]], [[0.5, 0, 0]], [0, 0, 0]):
        with pytest.raises(ArgumentError):
            pack(channel, wrong)


def test_files_of_structures_are_checked() -> None:
    """Another structure's file, unknown parts and a description that promises more are refused."""
    structure = local.Attributes({"a": 3, "b": 2}, 1)
    data = written(structure, structure.privatize({"a": [0, 1], "b": [1, 0]}))
    other = local.Attributes({"a": 3, "b": 2}, 1, method="split")
    with pytest.raises(ArgumentError, match="not of attributes"):
        local.aggregate_file(data, other)
    with pytest.raises(ArgumentError, match="part"):
        local.write_reports(io.BytesIO(), structure, {"c": [0]})
    described = structure.to_dict()
    described["parts"][0][1] = local.GRR(3, 9).to_dict()
    with pytest.raises(ArgumentError, match="epsilon"):
        local.aggregate_file(file_of(described, structure.report_bytes))
    large = local.HeavyHitters("ab", 9, 1, bits=20)
    with pytest.raises(ArgumentError, match="pass the channel"):
        local.aggregate_file(written(large, {}))
    assert local.aggregate_file(written(large, {}), large)[0].n == 0
