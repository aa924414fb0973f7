"""GRR, SDGRR and URR: the law as drawn, the promise as computed, the estimate as stated."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import GRR, SDGRR, URR, Aggregate, FiniteChannel, simulate
from local import laws

CHANNELS = [
    GRR(5, epsilon="0.5"),
    GRR(2, epsilon=3),
    SDGRR(6, high=[0, 1], epsilon="0.5"),
    SDGRR(4, high=[3], epsilon=1),
    SDGRR(3, high=[0, 1], epsilon=2),
    URR(6, high=[0, 1], epsilon="0.5"),
    URR(3, high=[2], epsilon=1),
]
IDS = [f"{c.kind}-{len(c.domain)}-{float(c.epsilon):g}" for c in CHANNELS]


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_rows(channel: FiniteChannel) -> None:
    """Each row of the law sums to one, exactly."""
    laws.check_rows(channel)


@pytest.mark.parametrize("channel", CHANNELS[1:6:2], ids=IDS[1:6:2])
def test_sampler(channel: FiniteChannel) -> None:
    """A million draws of each value follow the matrix (false alarm 1e-7 a row)."""
    assert laws.check_sampler(channel)


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_estimator(channel: FiniteChannel) -> None:
    """Estimates are unbiased and vary as stated."""
    k = len(channel.domain)
    laws.check_estimator(channel, np.arange(1, k + 1) / (k * (k + 1) / 2))


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_closed_forms(channel: FiniteChannel) -> None:
    """Decoder and variance in closed form are those of the matrix."""
    k = len(channel.domain)
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 1000, k)
    n = int(counts.sum())
    matrix_way = channel.decoder @ (counts / n)
    np.testing.assert_allclose(channel.decode(counts, n), matrix_way, atol=1e-10)
    f = rng.dirichlet(np.ones(k))
    np.testing.assert_allclose(
        channel.noise_variance(f), np.diag(channel.noise_covariance(f)), rtol=1e-8
    )
    np.testing.assert_allclose(
        channel.variance(f, 10, population=True) - channel.variance(f, 10), f * (1 - f) / 10
    )


@pytest.mark.parametrize("channel", CHANNELS, ids=IDS)
def test_wire(channel: FiniteChannel) -> None:
    """Channels and aggregates survive the wire and merge in any order."""
    values = np.arange(900) % len(channel.domain)
    laws.check_wire(channel, channel.privatize(values))


@settings(deadline=None)
@given(st.integers(2, 40), st.fractions(Fraction(1, 100), 8))
def test_grr_promise(k: int, epsilon: Fraction) -> None:
    """GRR as drawn is epsilon-DP, and no more than a rounding away from it."""
    channel = GRR(k, epsilon)
    laws.check_pure(channel)
    ratio = channel.exact(0, 0) / channel.exact(0, 1)
    assert math.log(ratio) == pytest.approx(float(epsilon), abs=1e-12)


@settings(deadline=None)
@given(st.integers(2, 12), st.fractions(Fraction(1, 100), 6), st.data())
def test_sdgrr_classes(k: int, epsilon: Fraction, data: st.DataObject) -> None:
    """The class matrix is the worst pair's hockey-stick divergence, and the closed form."""
    h = data.draw(st.integers(1, k - 1))
    channel = SDGRR(k, range(h), epsilon)
    promise, m, e = channel.guarantee, k - h, math.exp(epsilon)
    d = k + e - 1
    classes = {"high": range(h), "low": range(h, k)}
    for (a, b), pair in promise.pairs.items():
        deltas = [
            laws.hockey_stick(channel, x, z, channel.epsilon)
            for x in classes[a]
            for z in classes[b]
            if x != z
        ]
        worst = float(max(deltas, default=Fraction(0)))
        assert pair.delta == pytest.approx(worst, abs=1e-15)
        assert pair.delta >= worst
    assert promise.pairs["high", "high"].delta == 0
    assert promise.pairs["high", "low"].delta == pytest.approx((m - 1) / d, abs=1e-12)
    assert promise.pairs["low", "high"].delta == pytest.approx((m - 1) / d, abs=1e-12)
    if m > 1:
        assert promise.pairs["low", "low"].delta == pytest.approx((m + e - 1) / d, abs=1e-12)
        assert math.isinf(promise.pairs["high", "low"].ratio)


def test_graded_is_no_single_epsilon() -> None:
    """A graded guarantee is refused as a loss until its delta is accepted by name."""
    promise = SDGRR(18, range(4), "0.1").guarantee
    assert promise.graded
    with pytest.raises(ArgumentError, match="matrix of classes"):
        promise.loss()
    accepted = promise.loss(accept_delta=True)
    assert accepted.delta(epsilon=0.1) >= promise.delta


class _SwappedGRR(GRR):
    """A mutant: lies as often as it should tell the truth."""

    def draw(self, codes: Any, words: Any) -> Any:
        told = super().draw(codes, words)
        return np.where(told == codes, (codes + 1) % len(self.domain), codes)


class _NearGRR(GRR):
    """A mutant: a lie is always a neighbour, so other values never occur."""

    def draw(self, codes: Any, words: Any) -> Any:
        told = super().draw(codes, words)
        return np.where(told == codes, codes, (codes + 1) % len(self.domain))


@pytest.mark.parametrize("mutant", [_SwappedGRR, _NearGRR])
def test_mutants_are_caught(mutant: type[GRR]) -> None:
    """The sampler check fails on a wrong sampler."""
    assert not laws.check_sampler(mutant(4, epsilon=1), draws=20_000)


@given(st.lists(st.lists(st.integers(-2, 6), max_size=20), min_size=1, max_size=5))
def test_merging(chunks: list[list[int]]) -> None:
    """However reports are split and ordered, the counts are the same."""
    channel = GRR(5, epsilon=1)
    parts = [channel.aggregate(chunk) for chunk in chunks]
    whole = channel.aggregate([report for chunk in chunks for report in chunk])
    assert sum(parts) == sum(reversed(parts)) == whole
    assert whole.n + whole.rejected == sum(map(len, chunks))


def test_unlike_aggregates_refuse() -> None:
    """Aggregates of different channels do not add, nor does a tampered one load."""
    a, b = GRR(3, epsilon=1).aggregate([0]), GRR(3, epsilon=2).aggregate([0])
    with pytest.raises(ArgumentError, match="same channel"):
        a + b
    written = a.to_dict()
    written["channel"]["epsilon"] = "2"
    with pytest.raises(ArgumentError, match="hash"):
        Aggregate.from_dict(written)
    del written["counts"]
    with pytest.raises(ArgumentError, match="truncated"):
        Aggregate.from_dict(written)


def test_impossible_reports() -> None:
    """What no channel could have produced is counted and dropped, or refused when strict."""
    channel = GRR(3, epsilon=1)
    odd = [0, 3, -1, None, "1", 1.5, float("nan"), True, 2, 10**30, [1]]
    found = channel.aggregate(odd)
    assert (found.n, found.rejected) == (2, 9)
    assert found.counts.tolist() == [1, 0, 1]
    with pytest.raises(ArgumentError, match="9 of 11"):
        channel.aggregate(odd, strict=True)


def test_simulation_has_the_law() -> None:
    """Simulated counts have the mean that privatised reports have."""
    channel = SDGRR(4, [0], 1)
    drawn = simulate(channel, [400_000, 300_000, 200_000, 100_000], np.random.default_rng(2))
    expected = np.array([4, 3, 2, 1]) * 100_000 @ channel.matrix
    assert laws.chi_square_passes(drawn.counts, expected)
    assert drawn.n == 1_000_000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GRR(3, epsilon=0), "epsilon must be above 0"),
        (lambda: GRR(3, epsilon=-1), "epsilon must be above 0"),
        (lambda: GRR(3, epsilon=float("nan")), "epsilon must be finite"),
        (lambda: GRR(3, epsilon=41), "at most 40"),
        (lambda: GRR([], epsilon=1), "at least two"),
        (lambda: GRR(["a", "b", "a"], epsilon=1), "twice"),
        (lambda: GRR([1, True], epsilon=1), "twice"),
        (lambda: GRR("ab", epsilon=1), "size or a list"),
        (lambda: SDGRR(3, [], 1), "high must hold at least one"),
        (lambda: SDGRR(3, [0, 1, 2], 1), "not all of them"),
        (lambda: SDGRR(["a", "b"], ["c"], 1), "values of the domain only"),
        (lambda: SDGRR(["a", "b"], "a", 1), "collection of values"),
        (lambda: simulate(GRR(2, 1), [1, 2, 3], np.random.default_rng()), "one count for each"),
        (lambda: simulate(GRR(2, 1), [1, -2], np.random.default_rng()), "at least 0"),
        (lambda: simulate(GRR(2, 1), [0.5, 0.5], np.random.default_rng()), "whole numbers"),
        (lambda: GRR(2, 1).variance([0.5, 0.6], 10), "sum to 1"),
        (lambda: GRR(2, 1).variance([0.5, 0.5], 0), "at least 1"),
        (lambda: GRR(2, 1).aggregate([]).estimate(), "no reports"),
        (lambda: GRR(2, 1).aggregate([0]).estimate("normsub"), "norm_sub"),
        (lambda: GRR(2, 1).aggregate([0]).estimate(confidence=95), "confidence"),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    """Each bad argument is named, with what was wanted."""
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [1.5, 1, 1]},
        {"counts": [True, True, True]},
        {"counts": [2**64, 0, 0]},
        {"counts": [1, 1, 2]},
        {"n": 2.7},
        {"n": "3"},
        {"n": 7},
        {"rejected": False},
        {"channel": None},
    ],
)
def test_what_no_reports_can_count(change: dict[str, Any]) -> None:
    """Counts that are no whole numbers, or not of n reports, are refused when they are read."""
    written = GRR(3, 1).aggregate([0, 1, 2]).to_dict()
    assert Aggregate.from_dict(written).n == 3
    with pytest.raises(ArgumentError):
        Aggregate.from_dict({**written, **change})
