"""What anybody may hand in: odd reports, odd containers, joined files, one class of many."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.numeric import SimulatedWords
from local.reports.test_hostile import CATALOGUE, KINDS

LINE = local.Interval(0, 1, steps=10)
IMPOSSIBLE: list[Any] = [
    {},
    [None],
    ["x"],
    [[]],
    np.array([1.5]),
    np.array([np.nan]),
    [2**70],
    [-(2**70)],
    [float("inf")],
    [object()],
    [True],
    [{"a": 1}],
    ["żółć", None, math.nan],
]


@pytest.mark.parametrize("channel", CATALOGUE, ids=KINDS)
def test_impossible_reports(channel: local.Channel) -> None:
    """Each is counted and dropped, none raises, and none is lost; strict refuses them all."""
    for reports in IMPOSSIBLE:
        found = channel.aggregate(reports)
        assert (found.n, found.rejected) == (0, len(reports))
        assert not found.counts.any()
        if reports:
            with pytest.raises(ArgumentError, match="could not have"):
                channel.aggregate(reports, strict=True)
    for reports in (None, 5, "abc", b"abc", object()):
        with pytest.raises(ArgumentError, match="reports must be a column"):
            channel.aggregate(reports)


@pytest.mark.parametrize("channel", CATALOGUE, ids=KINDS)
def test_containers(channel: local.Channel) -> None:
    """Lists, rows, objects, slices and generators of the same reports count alike."""
    codes = np.tile(np.arange(len(channel.domain)), 20)
    reports = channel.draw(codes, SimulatedWords(3))
    expected = channel.aggregate(reports)
    assert (expected.n, expected.rejected) == (codes.size, 0)
    forms = [
        reports.tolist(),
        list(reports),
        reports.astype(object),
        np.asfortranarray(reports),
        np.repeat(reports, 2, axis=0)[::2],
        (report for report in reports.tolist()),
        reports.astype(np.int64),
    ]
    assert all(channel.aggregate(form) == expected for form in forms)
    assert channel.aggregate(channel.privatize([])).n == 0


def test_joined_files() -> None:
    """What follows the announced records is refused: a second header would be read as reports."""
    channel, file = local.GRR(10, 1), io.BytesIO()
    local.write_reports(file, channel, [1, 2, 3])
    whole = file.getvalue()
    for joined in (whole + b"\x01", whole + whole):
        for read in (local.aggregate_file, local.read_reports):
            with pytest.raises(ArgumentError, match="goes on after the records"):
                read(joined)
    assert local.aggregate_file(whole)[0].counts.tolist()[:5] == [0, 1, 1, 1, 0]
    assert local.aggregate_file(whole[:-1])[1] == 1
    # A writer that did not know how many would come announces 2**64 - 1.
    open_end = whole[:16] + b"\xff" * 8 + whole[24:]
    assert local.aggregate_file(open_end + b"\x01")[0].n == 4


def test_the_adversary_of_one_class() -> None:
    """A personalised report shows its class; within it the success is that of its channel."""
    parts = [local.SDGRR(4, [0], 1), local.SDGRR(4, [0, 1], 1)]
    offer = local.Personal({"a": parts[0], "b": parts[1]})
    expected = np.array([part.attack().per_value for part in parts])
    np.testing.assert_allclose(offer.attack().per_value, expected)
    prior = np.array([[4, 2, 1, 1], [3, 3, 1, 1]]) / 16
    told = offer.attack(prior)
    rows = [row[:, None] * part.matrix for row, part in zip(prior, parts, strict=True)]
    assert told.success == pytest.approx(sum(r.max(axis=0).sum() for r in rows))
    assert told.baseline == pytest.approx(7 / 16)
    rng = np.random.default_rng(2)
    played = sum(
        row.sum() * local.simulate_attack(part, rng, row / row.sum(), people=40_000).success
        for row, part in zip(prior, parts, strict=True)
    )
    assert played == pytest.approx(told.success, abs=6 * 0.5 / 200)


def test_the_promise_of_one_choice() -> None:
    """A choice's promise is its channel's, a distance's unit included."""
    offer = local.Personal((local.GridPrivacy(2, 2, 1, 1), local.GRR(4, 1)))
    first, second = offer.promise(0), offer.promise(1)
    assert (first.per_unit, first.unit) == (1, "unit")
    assert second.per_unit is None
    assert "does not depend on the value" in first.assumes
    assert "for each unit" in str(first)


def test_an_unreadable_description() -> None:
    """What describes no channel is refused, whatever it is."""
    for found in (None, [], "grr", 3, {}, {"channel": "grr"}, {"channel": "grr", "version": 1}):
        with pytest.raises(ArgumentError):
            local.channel_from_dict(found)  # type: ignore[arg-type]


SURVEY = local.Attributes({"a": 2, "b": 3}, 2)
RATINGS = local.KeyValue(["film", "book"], bounds=(0, 5), epsilon=2, padding=2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SURVEY.privatize({"a": 1, "b": 2}),
        lambda: SURVEY.privatize({"a": "x", "b": "y"}),
        lambda: SURVEY.aggregate(None),
        lambda: SURVEY.aggregate([1]),
        lambda: local.Marginals({"a": 2, "b": 2}, of=1.5, epsilon=1),
        lambda: local.Marginals({"a": 2, "b": 2}, of=True, epsilon=1),
        lambda: local.HeavyHitters("ab", 3, 1).privatize(None),
        lambda: local.HeavyHitters("ab", 3, 1).privatize(5),
        lambda: local.KeyValue(2, (-1e308, 1e308), 1, padding=1),
        lambda: RATINGS.privatize([{"film": [1, 2]}]),
        lambda: RATINGS.privatize([{"film": 10**400}]),
        lambda: RATINGS.privatize([{"film": None}]),
        lambda: local.ItemSets(4, 1, padding=2).privatize({0: 1}),
    ],
)
def test_structures_refuse(make: Any) -> None:
    """What is not a record, no counts or no bounds is refused by name."""
    with pytest.raises(ArgumentError):
        make()


def test_counts_of_other_parts() -> None:
    """Counts whose parts were exchanged are not those of the structure, whatever hash they show."""
    counts = SURVEY.aggregate(SURVEY.privatize({"a": [0, 1] * 50, "b": [0, 2] * 50}))
    assert set(counts.estimate()) == {"a", "b"}
    exchanged = {"a": counts["b"], "b": counts["a"]}
    for parts in (exchanged, {}, {"a": counts["a"]}, {**counts.parts, "c": counts["a"]}):
        with pytest.raises(ArgumentError, match="counts must"):
            local.PartCounts(SURVEY, parts)


@pytest.mark.parametrize(
    "make",
    [
        lambda: local.MinIDLDP(3, ["1e-300", 1, 1]),
        lambda: local.GridPrivacy(3, 3, 1, 1).locate([1, 2], [0]),
        lambda: local.GridPrivacy(3, 3, 1, 1).locate(["a"], [0]),
        lambda: local.GridPrivacy(3, 3, 1, 1).locate(1, 1),
        lambda: local.RAPPOR(3, 2, once=1, question="q").report([0], ["a"], None),
        lambda: local.BloomRAPPOR(["x", "y"], 2, question="q").report(["x"], ["a"], b"key"),
        lambda: local.LOLOHA(3, 1, 2, question="q").report([0], ["a"], None),
        lambda: local.PM(LINE, 1).privatize([np.bool_(True)]),
    ],
)
def test_devices_refuse(make: Any) -> None:
    """Too small an epsilon, places that are none, a device without memory."""
    with pytest.raises(ArgumentError):
        make()


def test_numbers_of_any_width() -> None:
    """A list of numpy's own numbers is a list of numbers."""
    channel = local.PM(LINE, 1)
    for kind in (np.float16, np.float32, np.float64, np.int8, np.uint64):
        assert 0 <= channel.privatize([kind(1)])[0] < channel.outputs
