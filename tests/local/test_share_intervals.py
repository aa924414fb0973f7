"""Intervals hold what they promise where they are told, and are left out where they would not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dither import local

SHARES = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02, 0, 0, 0, 0])
CHANNELS = [
    local.GRR(10, 1),
    local.OUE(10, 1),
    local.SUE(10, 4),
    local.THE(10, 1),
    local.SHE(10, 1),
    local.RAPPOR(10, 3, once=1),
    local.SubsetSelection(10, 2),
    local.OLH(10, 4),
    local.Hadamard(10, 4),
    local.LOLOHA(10, 1, 2),
    local.MinIDLDP(10, [1] * 5 + [3] * 5),
    local.TruncatedGeometric(10, 1),
    local.SDGRR(10, [0, 9], "0.5"),
    local.URR(10, [0, 9], "0.5"),
    local.URR(10, [0, 9], 5),
]


def told(channel: local.Channel, n: int, runs: int, seed: int) -> tuple[Any, Any]:
    """How often each value's interval was told, and how often it held the truth then."""
    rng, histogram = np.random.default_rng(seed), np.round(SHARES * n).astype(np.int64)
    trusted, held = np.zeros(10), np.zeros(10)
    for _ in range(runs):
        found = local.simulate(channel, histogram, rng).estimate()
        low, high = found.intervals.T
        np.testing.assert_array_equal(np.isnan(low), ~found.trusted)
        trusted += found.trusted
        held += (low <= SHARES) & (high >= SHARES)
    return trusted, held


@pytest.mark.parametrize("place", range(len(CHANNELS)))
@pytest.mark.parametrize("n", [300, 10_000])
def test_coverage(place: int, n: int) -> None:
    """Over all told intervals 95 % hold the truth, to 3 %, however few reports there are.

    Values of one survey err together, so the standard error allowed is that of its surveys alone.
    """
    runs = 400
    trusted, held = told(CHANNELS[place], n, runs, 7 * place + n)
    if trusted.sum() < runs / 2:
        return
    slack = 6 * math.sqrt(0.95 * 0.05 / min(runs, trusted.sum()) / 2)
    assert abs(held.sum() / trusted.sum() - 0.95) < 0.03 + slack


def test_no_interval_from_no_reports() -> None:
    """A value that happened not to be reported once would seem to be known without error."""
    channel = local.URR(10, [0, 9], "0.5")
    trusted, _ = told(channel, 100, 200, 3)
    assert trusted[5] < 20
    counts = np.array([80, 20, 0, 0, 0, 0, 0, 0, 0, 0])
    found = local.Aggregate(channel, counts, 100).estimate()
    assert found.standard_errors[5] < 1e-12
    assert not found.trusted[5]
    assert found.frame["lower"].null_count() >= 7
    assert "No interval for 8 values: too few reports decide the share" in found.summary()
    assert "unknown" in found.summary()


def test_many_reports_are_all_trusted() -> None:
    """With a hundred thousand reports no plain channel leaves anything out."""
    for channel in CHANNELS[:12]:
        found = local.simulate(channel, np.full(10, 10_000), np.random.default_rng(1)).estimate()
        assert found.trusted.all()
        assert "left out" not in found.summary()


def test_biased_channels_have_none() -> None:
    """Sketches and fixed hashes carry collisions: no interval, and nothing is said to be left."""
    channel = local.FLH(10, 1, seeds=64)
    found = local.simulate(channel, np.full(10, 1_000), np.random.default_rng(1)).estimate()
    assert not found.trusted.any()
    assert "lower" not in found.frame.columns
    assert "left out" not in found.summary()


@pytest.mark.parametrize("channel", [c for c in CHANNELS if isinstance(c, local.FiniteChannel)])
def test_largest_step_of_matrices(channel: local.FiniteChannel) -> None:
    """What one report can move is the spread of the decoder's weights, or nearly."""
    weights = np.stack([channel.decode(row, 1) for row in np.eye(channel.outputs)], axis=1)
    spread = np.ptp(weights, axis=1)
    assert np.all(spread <= 1.5 * channel.largest_step + 1e-9)
    assert np.all(spread >= channel.largest_step * (1 - 1e-9) / 1.01)
