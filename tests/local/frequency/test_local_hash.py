"""BLH, OLH and FLH: the law given the seed, supports, errors, and reports that cannot be."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import BLH, FLH, OLH, simulate_attack
from dither.local._coins import exp_bounds
from dither.local._frequency.local_hash import best_buckets, bucket_table, support_counts
from dither.local._oracles import PureChannel
from dither.local._reports.hashing import bucket, words_of
from dither.numeric import SimulatedWords
from local.laws import (
    check_estimator,
    check_pure,
    check_rows,
    check_sampler,
    check_wire,
    chi_square_passes,
    realised,
)

SHARES = [0.5, 0.2, 0.1, 0.08, 0.06, 0.04, 0.02]
CHANNELS = [BLH(7, 1), OLH(7, 1), OLH(7, "0.5"), OLH(7, 3), OLH(["a", "b", "c"], 1, buckets=5)]


def right(reports: Any, x: int, g: int) -> Any:
    """Whether each report names the bucket of x."""
    seeds = reports[:, 0]
    return bucket(words_of(seeds, np.full(seeds.size, x)), g) == reports[:, 1]


@pytest.mark.parametrize("channel", CHANNELS)
def test_exact_law(channel: Any) -> None:
    """Given a seed the reports' chances sum to one, and no two values differ by more than e."""
    e, _ = exp_bounds(channel.epsilon)
    k, g = len(channel.domain), channel.buckets
    worst = Fraction(0)
    for seed in (0, 1, 2**32 - 1, *range(1000, 1040)):
        law = [[channel.exact(x, seed, y) for y in range(g)] for x in range(k)]
        assert all(sum(row, Fraction(0)) * 2**32 == 1 for row in law)
        for y in range(g):
            column = [row[y] for row in law]
            assert 0 < max(column) <= e * min(column)
            worst = max(worst, max(column) / min(column))
    assert worst > e * (1 - Fraction(1, 2**40))


@pytest.mark.parametrize("channel", CHANNELS)
def test_sampler(channel: Any) -> None:
    """Seeds and answers occur as the law says: 10**6 draws, false alarm 1e-7."""
    p, q0 = (float(c) for c in channel._chances)
    g, n = channel.buckets, 1_000_000
    found = realised(channel, 1)
    assert found.dtype == np.uint32
    b = bucket(words_of(found[:, 0], np.full(n, 1)), g)
    cell = ((found[:, 0] >> 29) * g + b) * g + found[:, 1]
    law = np.full((g, g), q0)
    np.fill_diagonal(law, p)
    expected = np.broadcast_to(channel._sizes[:, None] * law / 8, (8, g, g))
    assert chi_square_passes(np.bincount(cell, minlength=8 * g * g), n * expected)


def test_a_swapped_coin_is_caught() -> None:
    """A report that lies as often as it should tell the truth fails both checks above."""
    channel = OLH(7, 1)
    object.__setattr__(channel, "truth", 2**64 - channel.truth // 4)
    e, _ = exp_bounds(channel.epsilon)
    column = [channel.exact(x, 5, 0) for x in range(7)]
    assert max(column) > e * min(column)
    rate = right(realised(channel, 1), 1, channel.buckets).mean()
    assert abs(rate - OLH(7, 1).support[0]) > 0.1


@pytest.mark.parametrize("channel", CHANNELS)
def test_supports(channel: Any) -> None:
    """Reports support their holder's value, others', and pairs of others', as stated.

    Within 6 standard errors over 10**6 draws.
    """
    reports = realised(channel, 0)
    p, q = channel.support
    hits = [right(reports, x, channel.buckets) for x in range(3)]
    for seen, stated in ((hits[0], p), (hits[1], q), (hits[2], q)):
        assert abs(seen.mean() - stated) < 6 * np.sqrt(stated * (1 - stated) / 1e6)
    # Pairwise and triple-wise independence, up to the unequal sizes of buckets.
    for a, b, stated in ((hits[0], hits[1], p * q), (hits[1], hits[2], q * q)):
        assert abs((a & b).mean() - stated) < 6 * np.sqrt(stated / 1e6)


def test_counting_is_looking_at_each() -> None:
    """The tables count what hashing each report against each code counts."""
    rng = np.random.default_rng(3)
    for k, g in ((2, 2), (7, 4), (300, 3), (1000, 150)):
        rows = np.stack([rng.integers(0, 2**32, 500), rng.integers(0, g, 500)], axis=1)
        plain = [int(right(rows, x, g).sum()) for x in range(k)]
        assert support_counts(rows, g, k).tolist() == plain
    many = np.tile(rows, (70, 1))
    assert support_counts(many, g, k).tolist() == [70 * c for c in plain]


@pytest.mark.parametrize("channel", CHANNELS[:4])
def test_estimator_under_an_ideal_hash(channel: Any) -> None:
    """Unbiased, of the stated variance, in the simulation that takes the hash as ideal."""
    check_estimator(channel, SHARES)


@pytest.mark.parametrize("channel", [OLH(7, 1), BLH(7, 2)])
def test_estimator_with_the_hash_itself(channel: Any) -> None:
    """The same of true reports: 4,000 surveys of 500, mean within 6 errors, variance within 3 %."""
    runs, n = 4000, 500
    codes = np.repeat(np.arange(7), [int(f * n) for f in SHARES])
    reports = channel.draw(np.tile(codes, runs), SimulatedWords(4))
    counts = np.array(
        [right(reports, x, channel.buckets).reshape(runs, n).sum(axis=1) for x in range(7)]
    )
    found = np.array([channel.decode(c, n) for c in counts.T])
    stated = channel.variance(SHARES, n)
    assert np.all(np.abs(found.mean(axis=0) - SHARES) < 6 * np.sqrt(stated / runs))
    assert abs((found.var(axis=0) / stated).mean() - 1) < 0.03
    covariance = np.cov(found.T) - channel.noise_covariance(np.array(SHARES)) / n
    assert np.abs(covariance).max() < 6 * stated.max() * np.sqrt(2 / runs)


def test_best_buckets() -> None:
    """The chosen number has the least variance of all, by trying them all."""
    for epsilon in ("0.1", "0.5", 1, 2, 4, 8):
        channels = [OLH(1000, epsilon, buckets=g) for g in range(2, 64)]
        f = np.full(1000, 1e-3)
        least = min(c.noise_variance(f)[0] for c in channels)
        if best_buckets(Fraction(epsilon)) < 64:
            assert OLH(1000, epsilon).noise_variance(f)[0] <= least * (1 + 1e-3)
    assert best_buckets(Fraction(40)) == 4096


def test_flh_law() -> None:
    """FLH has an exact matrix: rows sum to one, epsilon holds, the sampler draws it."""
    channel = FLH(5, 1, seeds=3)
    check_rows(channel)
    check_pure(channel)
    assert check_sampler(channel)


def test_flh_estimates() -> None:
    """Over lists of seeds it errs as stated: coins and collisions together, within 3 %.

    Disjoint lists stand for random ones: 400 of them, each with a survey of 20,000.
    """
    k, n, seeds = 60, 20_000, 64
    f = np.repeat([0.05, 0.02, 0.005], [10, 20, 20])
    f = np.append(f, np.zeros(10))
    channel = FLH(k, 1, seeds=seeds)
    rng = np.random.default_rng(5)
    p, q0 = (float(c) for c in channel._chances)
    errors = []
    for run in range(400):
        b = bucket(
            words_of(np.repeat(np.arange(seeds) + run * seeds, k), np.tile(np.arange(k), seeds)), 4
        ).reshape(seeds, k)
        rows = np.where(np.arange(4)[None, None, :] == b.T[:, :, None], p, q0) / seeds
        counts = sum(rng.multinomial(int(n * f[x]), rows[x].ravel()) for x in range(k))
        table = np.asarray(counts).reshape(seeds, 4)
        supports = table[np.arange(seeds)[:, None], b].sum(axis=0)
        errors.append(PureChannel.decode(channel, supports, n) - f)
        if run == 0:
            np.testing.assert_allclose(errors[0], channel.decode(table.ravel(), n) - f)
    stated = channel.noise_variance(f) / n + channel.collision_error(f) ** 2
    assert abs((np.array(errors) ** 2).mean() / stated.mean() - 1) < 0.03
    assert not channel.unbiased


def test_the_adversary() -> None:
    """Likelihoods are the law's; the best guess, played, succeeds as often as the law says.

    Among k values of which, given the seed, one bucket is likelier: within 6 standard errors.
    """
    channel = OLH(7, 1)
    reports = realised(channel, 3, draws=500)
    found = channel.likelihoods(reports)
    for (seed, y), row in zip(reports[:60].tolist(), found, strict=False):
        law = np.array([float(channel.exact(x, seed, y)) for x in range(7)])
        np.testing.assert_allclose(law * 2**32, row, rtol=1e-12)
    p, q0 = (float(c) for c in channel._chances)
    seeds = np.random.default_rng(8).integers(0, 2**32, 20_000)
    table = bucket_table(seeds, 7, 4)
    held = np.stack([(table == y).any(axis=0) for y in range(4)])
    expected = (held * p + ~held * q0).sum(axis=0).mean() / 7
    played = simulate_attack(channel, np.random.default_rng(9), people=200_000)
    assert abs(played.success - expected) < 6 * 0.5 / np.sqrt(100_000)


def test_wire_and_refusals() -> None:
    """JSON and Arrow keep channels and counts; impossible reports are dropped and counted."""
    for channel in (BLH(300, 1), OLH(300, 1), FLH(300, 1, seeds=20)):
        check_wire(channel, channel.draw(np.arange(300), SimulatedWords(1)))
    channel = OLH(9, 1)
    bad = [[1, 4], [2**32, 0], [-1, 0], [1], "ab", None, [1, 2, 3], [1, 0.5], [True, 1], [1.5, 0]]
    counted = channel.aggregate([*bad, [3, 0], (4, 1)])
    assert (counted.n, counted.rejected) == (2, len(bad))
    assert channel.aggregate(np.array([[0.5, 1.0], [1.0, 1.0]])).rejected == 1
    assert channel.aggregate(np.arange(4)).rejected == 4
    assert channel.aggregate([]).n == 0
    with pytest.raises(ArgumentError, match="could not have"):
        channel.aggregate(bad, strict=True)
    for make in (
        lambda: OLH(9, 1, buckets=1),
        lambda: OLH(9, 1, buckets=2.0),
        lambda: FLH(9, 1, seeds=0),
        lambda: BLH(9, 0),
        lambda: OLH(1, 1),
    ):
        with pytest.raises(ArgumentError):
            make()
