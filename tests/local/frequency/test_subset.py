"""Subset selection: the law over all sets, the sampler, the errors, reports that cannot be."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import SubsetSelection, simulate_attack
from dither.local._coins import exp_bounds
from dither.local._frequency.subset import best_size
from dither.numeric import SimulatedWords
from local.laws import check_wire, chi_square_passes, realised

CHANNELS = [
    SubsetSelection(2, 1),
    SubsetSelection(5, "0.5"),
    SubsetSelection(6, 1, size=3),
    SubsetSelection(9, 3),
    SubsetSelection(4, 1, size=3),
]


def law(channel: Any) -> tuple[list[frozenset[int]], list[list[Fraction]]]:
    """All sets, and their chances for each code."""
    k = len(channel.domain)
    sets = [frozenset(c) for c in combinations(range(k), channel.size)]
    return sets, [[channel.exact(x, s) for s in sets] for x in range(k)]


@pytest.mark.parametrize("channel", CHANNELS)
def test_exact_law(channel: Any) -> None:
    """Rows sum to one, no set is more than e likelier for one value than for another."""
    e, _ = exp_bounds(channel.epsilon)
    _, rows = law(channel)
    assert all(sum(row, Fraction(0)) == 1 for row in rows)
    assert all(max(column) <= e * min(column) for column in zip(*rows, strict=True))
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert worst > e * (1 - Fraction(1, 2**40))


@pytest.mark.parametrize("channel", CHANNELS)
def test_sampler(channel: Any) -> None:
    """Every set occurs as often as the law says, for every code: false alarm 1e-7 each."""
    sets, rows = law(channel)
    k = len(channel.domain)
    for x in range(k):
        found = realised(channel, x, 17 + x)
        bits = np.unpackbits(found, axis=1)[:, :k]
        place = np.full(1 << k, -1)
        place[[sum(1 << c for c in s) for s in sets]] = range(len(sets))
        seen = place[bits @ (1 << np.arange(k))]
        assert seen.min() >= 0
        expected = 1e6 * np.array([float(p) for p in rows[x]])
        assert chi_square_passes(np.bincount(seen, minlength=len(sets)), expected)


def test_a_forgotten_round_is_caught() -> None:
    """Were p that of w/k, as without the value's favour, epsilon would not be reached."""
    channel = SubsetSelection(6, 1)
    object.__setattr__(channel, "truth", (1 << 64) * 9 // 10)
    _, rows = law(channel)
    e, _ = exp_bounds(channel.epsilon)
    assert any(max(column) > e * min(column) for column in zip(*rows, strict=True))


def test_estimator() -> None:
    """Unbiased within 6 errors, variances within 3 %, covariances as stated: 4,000 surveys."""
    f, runs, n = np.array([0.5, 0.2, 0.1, 0.1, 0.06, 0.04]), 4000, 500
    channel = SubsetSelection(6, 1)
    codes = np.tile(np.repeat(np.arange(6), (f * n).astype(int)), runs)
    bits = np.unpackbits(channel.draw(codes, SimulatedWords(3)), axis=1)
    counts = bits[:, :6].reshape(runs, n, 6).sum(axis=1)
    found = np.array([channel.decode(c, n) for c in counts])
    stated = channel.variance(f, n)
    assert np.all(np.abs(found.mean(axis=0) - f) < 6 * np.sqrt(stated / runs))
    assert abs((found.var(axis=0) / stated).mean() - 1) < 0.03
    np.testing.assert_allclose(found.sum(axis=1), 1)
    covariance = channel.noise_covariance(f) / n
    np.testing.assert_allclose(covariance.sum(axis=1), 0, atol=1e-12)
    assert np.abs(np.cov(found.T) - covariance).max() < 6 * stated.max() * np.sqrt(2 / runs)


def test_the_adversary() -> None:
    """Likelihoods are the law's up to a factor a report; played, success is p/w, in 6 errors."""
    channel = SubsetSelection(6, 1)
    reports = realised(channel, 2, draws=200)
    found = channel.likelihoods(reports)
    for row, seen in zip(np.unpackbits(reports, axis=1)[:, :6], found, strict=True):
        chosen = frozenset(np.flatnonzero(row).tolist())
        law = np.array([float(channel.exact(x, chosen)) for x in range(6)])
        np.testing.assert_allclose(law / law.min(), seen, rtol=1e-12)
    played = simulate_attack(channel, np.random.default_rng(9), people=200_000)
    stated = channel.support[0] / channel.size
    assert abs(played.success - stated) < 6 * 0.5 / np.sqrt(200_000)


def test_best_size() -> None:
    """The chosen size has the least variance of all, by trying them all."""
    for k, epsilon in ((2, 1), (10, "0.1"), (100, 1), (100, 4), (30, 12)):
        found = [
            SubsetSelection(k, epsilon, size=w).noise_variance(np.zeros(k))[0] for w in range(1, k)
        ]
        assert found[best_size(k, Fraction(epsilon)) - 1] == pytest.approx(min(found), rel=1e-12)


def test_wire_and_refusals() -> None:
    """JSON and Arrow keep channels and counts; impossible reports are dropped and counted."""
    channel = SubsetSelection(20, 1)
    good = channel.draw(np.arange(20), SimulatedWords(1))
    check_wire(channel, good)
    bad = good.copy()
    bad[3] = 0
    bad[4, 2] |= 128
    counted = channel.aggregate(bad)
    assert (counted.n, counted.rejected) == (18, 2)
    assert channel.aggregate([*good.tolist(), [1, 2], [256, 0, 0], None]).rejected == 3
    for make in (
        lambda: SubsetSelection(9, 1, size=9),
        lambda: SubsetSelection(9, 1, size=0),
        lambda: SubsetSelection(1 << 15, 1),
        lambda: SubsetSelection(9, -1),
    ):
        with pytest.raises(ArgumentError):
            make()
