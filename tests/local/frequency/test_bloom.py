"""Full RAPPOR: filters, cohorts, both layers, the regression and what it finds."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import Aggregate, BloomRAPPOR, Memory, simulate
from dither.local._coins import ONE, exp_bounds
from dither.local._frequency.filters import set_bits
from dither.local._reports.hashing import hash64, text_bytes
from dither.numeric import SimulatedWords
from local.laws import check_estimator, check_wire, chi_square_passes, realised

KEY = bytes(range(32))
SMALL = BloomRAPPOR(["a", "b", "c"], 3, once=1, bits=4, hashes=1, cohorts=2)
LARGE = BloomRAPPOR(["a", "b", "c", "d"], 4, once=3, bits=16, hashes=2, cohorts=4)
WORDS = [f"word {i}" for i in range(60)]


def law(channel: BloomRAPPOR, x: int) -> dict[Any, Fraction]:
    """The chances of all reports of a code."""
    rows = itertools.product((0, 1), repeat=channel.bits)
    return {
        (c, bits): channel.exact(x, c, bits)
        for c, bits in itertools.product(range(channel.cohorts), list(rows))
    }


@pytest.mark.parametrize("hashes", [1, 2])
def test_law_and_guarantee(hashes: int) -> None:
    """The law sums to one; the worst ratio of one report is at most e^once, and can reach it."""
    channel = BloomRAPPOR(range(12), 3, once=1, bits=5, hashes=hashes, cohorts=2)
    laws = [law(channel, x) for x in range(12)]
    assert all(sum(found.values()) == 1 for found in laws)
    low, high = exp_bounds(Fraction(1))
    worst = max(max(one[r] / two[r] for r in one) for one in laws for two in laws)
    assert worst <= low
    assert worst > high * (1 - Fraction(1, 10**12))
    a = Fraction(channel.layers.flip, ONE)
    assert ((1 - a) / a) ** (2 * hashes) <= exp_bounds(Fraction(3))[0]
    assert channel.lasting.epsilon == 3


def test_sampler_has_the_joint_law() -> None:
    """Cohort and bits of a million reports agree with the law (false alarm 1e-7 a value)."""
    for x in range(3):
        rows = realised(SMALL, x, 5 + x)
        bits = np.unpackbits(rows[:, 2:], axis=1)[:, :4] @ [8, 4, 2, 1]
        seen = np.bincount(rows[:, 0].astype(int) * 16 + bits, minlength=32)
        expected = [float(p) for p in law(SMALL, x).values()]
        assert chi_square_passes(seen, 1_000_000 * np.array(expected))


def test_filters_are_those_of_the_wire_format() -> None:
    """A value sets the bits that one hash at a time gives."""
    packed = set_bits([text_bytes("é"), text_bytes(7)], np.array([3, 0]), 50, 3, 9)
    bits = np.unpackbits(packed, axis=1)
    for row, value, cohort in zip(bits, ("é", 7), (3, 0), strict=True):
        seeds = [(9 << 32) + cohort * 3 + i for i in range(3)]
        hashes = hash64([text_bytes(value)], seeds)[:, 0].tolist()
        expected = {(h >> 32) * 50 >> 32 for h in hashes}
        assert set(np.flatnonzero(row).tolist()) == expected


@pytest.mark.heavy("test_law_and_guarantee")
def test_estimator_and_wire() -> None:
    """Unbiased with the stated variance, and the covariance too; the wire keeps all."""
    shares = [0.4, 0.3, 0.2, 0.1]
    check_estimator(LARGE, shares, n=20_000, runs=4000)
    check_wire(LARGE, LARGE.privatize(["a", "b", "c", "d"] * 20))
    rng, histogram = np.random.default_rng(9), np.array([8000, 6000, 4000, 2000])
    drawn = [LARGE.decode(simulate(LARGE, histogram, rng).counts, 20_000) for _ in range(4000)]
    told = LARGE.noise_covariance(np.array(shares)) / 20_000
    scale = np.sqrt(np.outer(np.diag(told), np.diag(told)))
    assert np.abs((np.cov(np.array(drawn).T) - told) / scale).max() < 0.09


def test_simulation_has_the_law_of_reports() -> None:
    """Simulated counts have the means of the law, by cohort and bit (false alarm 1e-7)."""
    rng = np.random.default_rng(2)
    mean = np.mean(
        [simulate(SMALL, np.array([500, 300, 200]), rng).counts for _ in range(3000)], axis=0
    ).reshape(2, 5)
    assert mean[:, 4] == pytest.approx(500, abs=6 * np.sqrt(250 / 3000))
    people = (500, 300, 200)
    for c, j in itertools.product(range(2), range(4)):
        expected = sum(
            float(p) * people[x]
            for x in range(3)
            for (cohort, bits), p in law(SMALL, x).items()
            if cohort == c and bits[j]
        )
        assert mean[c, j] == pytest.approx(expected, abs=6 * np.sqrt(250 / 3000))


def test_unlisted_values_do_not_bias() -> None:
    """With 40 % of people holding one of many other texts, the candidates keep their shares."""
    channel = BloomRAPPOR(["x", "y"], 6, bits=64, cohorts=16)
    values = ["x"] * 4000 + ["y"] * 2000 + [f"other {i % 500}" for i in range(4000)]
    found = channel.aggregate(channel.privatize(values)).estimate()
    assert np.all(np.abs(found.raw - [0.4, 0.2]) < 6 * found.standard_errors + 0.02)


def held(channel: BloomRAPPOR, shares: dict[str, int], seed: int) -> Aggregate:
    """What so many holders of some candidates would send."""
    histogram = np.array([shares.get(str(v), 0) for v in channel.domain.values])
    return simulate(channel, histogram, np.random.default_rng(seed))


def test_candidates_are_found() -> None:
    """Common candidates are found, rare ones are not; false alarms stay within alpha."""
    channel = BloomRAPPOR(WORDS, 4, bits=64, cohorts=8)
    shares = {"word 3": 20_000, "word 7": 10_000, "word 9": 5_000, "word 11": 10}
    false = 0
    for seed in range(60):
        told = held(channel, shares, seed).estimate(method="selection", alpha=0.05)
        assert {"word 3", "word 7"} <= set(told.found)
        false += bool(set(told.found) - set(shares))
    # Binomial(60, 0.05) exceeds 14 with probability below 1e-6.
    assert false <= 14
    assert "half of the cohorts" not in told.summary()
    assert told["word 3"] == pytest.approx(20_000 / 35_010, abs=0.1)
    assert told.shares.min() >= 0


def test_more_candidates_than_bits() -> None:
    """Where the bits cannot tell all candidates apart, half of the cohorts choose for the rest."""
    words = [f"word {i}" for i in range(600)]
    channel = BloomRAPPOR(words, 6, bits=32, cohorts=16)
    counted = held(channel, {"word 3": 30_000, "word 77": 20_000}, 1)
    with pytest.raises(ArgumentError, match="method='selection'"):
        counted.estimate()
    false = 0
    for seed in range(5):
        told = held(channel, {"word 3": 30_000, "word 77": 20_000}, seed).estimate(
            method="selection"
        )
        assert "half of the cohorts chose" in told.notes[0]
        assert {"word 3", "word 77"} <= set(told.found)
        false += len(told.found) > 2
    # All five at a chance of 0.05 each: below 1e-6.
    assert false <= 4
    assert np.isnan(told.standard_errors).any()


def test_reports_can_be_read_for_other_candidates() -> None:
    """The candidates change neither what devices send nor what can be counted."""
    first = BloomRAPPOR(["x", "y"], 6, bits=64, cohorts=16, question="q")
    other = first.of_candidates(["z", "x", "y"])
    assert first.device == other.device
    assert first.hash != other.hash
    users, memory = range(40), Memory(KEY)
    one = first.report(["z"] * 40, users, memory)
    assert np.array_equal(one, other.report(["z"] * 40, users, memory))
    counted = first.aggregate(first.privatize(["z"] * 3000 + ["x"] * 1000))
    again = Aggregate(other, counted.counts, counted.n)
    assert again.estimate(method="selection").found[0] == "z"
    same = counted.estimate(method="selection", candidates=["z", "x", "y"])
    assert same.found == again.estimate(method="selection").found


def test_memory_keeps_cohort_and_bits() -> None:
    """A person stays in one cohort whatever the value; values have bits of their own."""
    channel, memory = BloomRAPPOR(["x", "y"], 4, bits=64, cohorts=16, question="q"), Memory(KEY)
    x, again, y = (channel.report([v] * 2000, range(2000), memory) for v in ("x", "x", "y"))
    assert np.array_equal(x, again)
    assert np.array_equal(x[:, :2], y[:, :2])
    sizes = np.bincount(x[:, 0], minlength=16)
    assert chi_square_passes(sizes, np.full(16, 125.0))
    true = set_bits([text_bytes("x")] * 2000, x[:, 0].astype(np.int64), 64, 2, 0)
    flips = np.unpackbits(x[:, 2:] ^ true, axis=1)
    a = channel.layers.flip / ONE
    ones = int(flips.sum())
    assert chi_square_passes([ones, flips.size - ones], flips.size * np.array([a, 1 - a]))
    twice = BloomRAPPOR(["x", "y"], 4, once=2, bits=64, cohorts=16, question="r")
    noisy = [twice.report(["x"], ["u"], memory, words=SimulatedWords(s)) for s in (1, 2)]
    assert np.array_equal(noisy[0][:, :2], noisy[1][:, :2])
    assert not np.array_equal(noisy[0], noisy[1])


def test_impossible_reports_are_dropped() -> None:
    """Cohorts that there are not, other widths and unused bits are counted and dropped."""
    good = SMALL.privatize(["a", "b", "never listed"])
    assert SMALL.privatize("a").shape == (3,)
    bad = good.copy()
    bad[0, 0], bad[1, 2] = 2, 1
    found = SMALL.aggregate(bad)
    assert (found.n, found.rejected) == (1, 2)
    assert SMALL.aggregate(good[:, :2]).rejected == 3
    assert SMALL.aggregate([good[0], b"\0", None]).rejected == 2


def test_a_cohort_may_be_silent() -> None:
    """With fewer reports than cohorts the others are read alone."""
    channel = BloomRAPPOR(["x", "y"], 20, bits=64, cohorts=64)
    found = channel.aggregate(channel.privatize(["x"] * 20)).estimate()
    assert found.raw == pytest.approx([1, 0], abs=0.2)


def test_refusals() -> None:
    """Filters out of range, missing values and unlike aggregates are refused."""
    for arguments in (
        {"bits": 1},
        {"hashes": 0},
        {"cohorts": 3},
        {"cohorts": 0},
        {"seed": -1},
        {"bits": True},
        {"once": 5},
    ):
        with pytest.raises(ArgumentError):
            BloomRAPPOR(["a", "b"], 4, **arguments)
    for values in ([None], [1.5], [b"x"]):
        with pytest.raises(ArgumentError, match="texts"):
            SMALL.privatize(values)
    with pytest.raises(ArgumentError, match="one user"):
        SMALL.report(["a"], [1, 2], Memory(KEY))
    with pytest.raises(ArgumentError, match="alpha"):
        SMALL.aggregate(SMALL.privatize(["a"])).estimate(alpha=0.1)
    with pytest.raises(ArgumentError, match="alpha"):
        SMALL.aggregate(SMALL.privatize(["a"])).estimate(method="selection", alpha=1.0)
