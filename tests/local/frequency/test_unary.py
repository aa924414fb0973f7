"""Unary encoding: SUE and OUE against their exact laws, and packed bits against plain ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import OUE, SUE, Guarantee, simulate
from dither.local._coins import ONE
from dither.local._reports.bits import (
    count_columns,
    one_hot,
    packed_coins,
    packed_rows,
    set_column,
)
from dither.numeric import SimulatedWords
from local.laws import (
    check_bit_pure,
    check_bit_rows,
    check_bit_sampler,
    check_estimator,
    check_wire,
    chi_square_passes,
)

CHANNELS = [SUE(4, 1), OUE(4, 1), SUE(3, "0.1"), OUE(3, 4)]


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_law_and_guarantee(channel: SUE | OUE) -> None:
    """The law of all reports sums to one, and its worst ratio is e^epsilon from below."""
    check_bit_rows(channel)
    check_bit_pure(channel)
    assert channel.guarantee == Guarantee.uniform(channel.epsilon)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_sampler_has_the_joint_law(channel: SUE | OUE) -> None:
    """A million rows for each value agree with the exact law (false alarm 1e-7 each)."""
    assert check_bit_sampler(channel)


@pytest.mark.parametrize("channel", [SUE(4, 1), OUE(4, 1), OUE(9, 3)], ids=repr)
def test_estimator(channel: SUE | OUE) -> None:
    """Unbiased, of the stated variance, also against the field's closed form for rare values."""
    k = len(channel.domain)
    check_estimator(channel, np.arange(1, k + 1) / (k * (k + 1) / 2))
    f = np.eye(k)[0]
    e = float(np.exp(float(channel.epsilon)))
    s = np.sqrt(e)
    rare = 4 * e / (e - 1) ** 2 if isinstance(channel, OUE) else s / (s - 1) ** 2
    assert channel.variance(f, 10)[1] == pytest.approx(rare / 10, rel=1e-12)


@pytest.mark.parametrize("channel", [SUE(11, 1), OUE(16, 1), OUE(["a", "b", "c"], 2)], ids=repr)
def test_wire(channel: SUE | OUE) -> None:
    """Channel and aggregate survive JSON and Arrow; bytes, lists and arrays count alike."""
    values = [channel.domain.values[i % len(channel.domain)] for i in range(100)]
    reports = channel.privatize(values)
    assert reports.shape == (100, channel.report_bytes)
    check_wire(channel, reports)
    whole = channel.aggregate(reports)
    assert channel.aggregate([bytes(row) for row in reports]) == whole
    assert channel.aggregate(reports.tolist()) == whole
    one = channel.privatize(values[0])
    assert channel.aggregate([one]).n == 1


def test_simulate_has_the_law_of_reports() -> None:
    """Simulated counts agree with counts of real reports (false alarm 1e-7)."""
    channel, histogram = OUE(5, 1), np.array([400, 300, 200, 100, 0])
    rng = np.random.default_rng(3)
    drawn = np.mean([simulate(channel, histogram, rng).counts for _ in range(2000)], axis=0)
    p, q = channel.chances
    expected = histogram * p + (1000 - histogram) * q
    assert np.all(np.abs(drawn - expected) < 6 * np.sqrt(250 / 2000))


def test_impossible_reports_are_dropped() -> None:
    """Rows with unused bits, of another width or of another kind are counted and dropped."""
    channel = OUE(9, 1)
    good = channel.privatize([0, 1, 2])
    spoilt = good.copy()
    spoilt[1, 1] |= 1
    assert (channel.aggregate(spoilt).n, channel.aggregate(spoilt).rejected) == (2, 1)
    assert channel.aggregate(good[:, :1]).rejected == 3
    found = channel.aggregate([good[0], b"\0", "ab", None, [300, 0], [0.5, 0], b"\0\0"])
    assert (found.n, found.rejected) == (2, 5)
    with pytest.raises(ArgumentError, match="strict=True"):
        channel.aggregate(spoilt, strict=True)
    assert channel.aggregate([]).n == 0


@given(st.integers(1, 20), st.integers(0, 400), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_columns_are_counted(k: int, n: int, seed: int) -> None:
    """The adders count what unpacked bits sum to, and any split of the rows gives the same."""
    bits = np.random.default_rng(seed).integers(0, 2, (n, k), dtype=np.uint8)
    rows = np.packbits(bits, axis=1)
    assert np.array_equal(count_columns(rows, k), bits.sum(axis=0))
    cut = n // 3
    parts = count_columns(rows[cut:], k) + count_columns(rows[:cut], k)
    assert np.array_equal(parts, count_columns(rows, k))
    assert packed_rows(rows, k)[1] == 0


@given(st.lists(st.integers(0, ONE), min_size=1, max_size=12), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_coins_of_any_threshold(ts: list[int], seed: int) -> None:
    """Each column has its own probability (false alarm 1e-9 a column), unused bits are 0."""
    n = 3000
    rows = packed_coins(ts, n, len(ts), SimulatedWords(seed))
    bits = np.unpackbits(rows, axis=1)
    assert not bits[:, len(ts) :].any()
    for j, t in enumerate(ts):
        p = t / ONE
        assert abs(bits[:, j].mean() - p) <= 6.2 * np.sqrt(p * (1 - p) / n) + 20 / n


@pytest.mark.parametrize("t", [1 << 55, (77 << 56) + 5, (77 << 56) | ((1 << 56) - 1), ONE - 1])
@pytest.mark.parametrize("mixed", [False, True])
def test_ties_are_decided_by_the_low_bits(t: int, mixed: bool) -> None:
    """A threshold's last 56 bits count: its share of ones lies where they put it."""
    n, k = 500_000, 8
    ts = [t, *[1 << 60] * (k - 1)] if mixed else t
    ones = np.unpackbits(packed_coins(ts, n, k, SimulatedWords(8)), axis=1)
    ones = ones[:, 0] if mixed else ones
    p = t / ONE
    counts = np.array([ones.sum(), ones.size - ones.sum()])
    assert chi_square_passes(counts, ones.size * np.array([p, 1 - p]))


def test_one_hot_and_set_column() -> None:
    """Single bits are set and cleared where numpy's packing puts them."""
    columns = np.arange(10)
    assert np.array_equal(np.unpackbits(one_hot(columns, 10), axis=1)[:, :10], np.eye(10))
    rows = np.full((2, 2), 255, dtype=np.uint8)
    set_column(rows, np.array([3, 9]), np.array([False, True]))
    assert rows.tolist() == [[0b11101111, 255], [255, 255]]


@dataclass(frozen=True, slots=True, init=False)
class Swapped(OUE):
    """A planted mistake: p and q exchanged on the device."""

    kind: ClassVar[str] = "test-swapped"

    def draw(self, codes, words):  # type: ignore[no-untyped-def]
        """Own bits rarely 1, the others half the time."""
        rows = packed_coins(ONE // 2, codes.size, len(self.domain), words)
        set_column(rows, codes, packed_coins(self.false, codes.size, 1, words)[:, 0] > 0)
        return rows


@dataclass(frozen=True, slots=True, init=False)
class RoundedUp(SUE):
    """A planted mistake: p one step of 2**-64 too large."""

    kind: ClassVar[str] = "test-rounded"

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """p rounded the wrong way."""
        k = len(self.domain)
        return (self.truth + 1,) * k, (ONE - self.truth - 1,) * k


@dataclass(frozen=True, slots=True, init=False)
class Lazy(OUE):
    """A planted mistake: OUE whose own bit is always 1."""

    kind: ClassVar[str] = "test-lazy"

    def draw(self, codes, words):  # type: ignore[no-untyped-def]
        """Own bit on, without a coin."""
        rows = OUE.draw(self, codes, words)
        set_column(rows, codes, np.ones(codes.size, dtype=np.bool_))
        return rows


def test_planted_mistakes_are_caught() -> None:
    """A step of rounding, exchanged probabilities and a forgotten coin fail the same checks."""
    with pytest.raises(AssertionError):
        check_bit_pure(RoundedUp(3, 1))
    assert not check_bit_sampler(Lazy(3, 1), draws=10_000)
    assert not check_bit_sampler(Swapped(3, 1), draws=10_000)
    with pytest.raises(ArgumentError, match=r"larger|at least 2"):
        SUE(3, "1e-30")


def test_refusals() -> None:
    """Bad arguments are refused, and no message shows a value."""
    for bad in (0, -1, float("nan"), 41):
        with pytest.raises(ArgumentError):
            OUE(3, bad)
    with pytest.raises(ArgumentError) as caught:
        SUE(["a", "b"], 1).privatize("secret-value")
    assert "secret-value" not in str(caught.value)
