"""CMS and HCMS: exact laws, sums of sketches, errors over hash functions, unlisted values."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import CMS, HCMS
from dither.local._coins import ONE, exp_bounds
from dither.local._frequency.sketch import _digests
from dither.local._reports.hashing import again, bucket, text_bytes
from dither.numeric import SimulatedWords
from local.laws import (
    check_pure,
    check_rows,
    check_sampler,
    check_wire,
    chi_square_passes,
    realised,
)

CITIES = ["Paris", "Lima", "Oslo", "Rome", "Bonn", "Kyiv"]


def test_cms_law() -> None:
    """Chances of all 2**8 sets of bits sum to one; the worst pair of buckets uses epsilon up."""
    channel = CMS(CITIES, 1, hashes=3, buckets=8)
    e, _ = exp_bounds(channel.epsilon)
    sets = [frozenset(c) for r in range(9) for c in combinations(range(8), r)]
    rows = [[channel.exact(b, s) for s in sets] for b in range(8)]
    assert all(sum(row, Fraction(0)) == 1 for row in rows)
    ratios = [max(c) / min(c) for c in zip(*rows, strict=True)]
    assert e * (1 - Fraction(1, 2**40)) < max(ratios) <= e


def test_cms_spends_epsilon_on_two_bits() -> None:
    """Were the whole epsilon given to each bit, the check above would see twice the loss."""
    channel = CMS(CITIES, 1, hashes=3, buckets=8)
    object.__setattr__(channel, "truth", HCMS(CITIES, 1).truth)
    e, _ = exp_bounds(channel.epsilon)
    one, two = (channel.exact(b, frozenset({0})) for b in (0, 1))
    assert one / two > e


def test_cms_sampler() -> None:
    """Functions and bits occur as the law says: 10**6 draws, false alarm 1e-7."""
    channel = CMS(CITIES, 1, hashes=3, buckets=8)
    sets = [frozenset(i for i in range(8) if mask >> (7 - i) & 1) for mask in range(256)]
    digest = _digests([text_bytes(CITIES[1])])
    found = realised(channel, 1)
    cell = found[:, 0].astype(np.int64) * 256 + found[:, 2]
    assert not found[:, 1].any()
    law = []
    for j in range(3):
        b = int(bucket(again(digest, [j]), 8)[0])
        law += [float(channel.exact(b, s)) / 3 for s in sets]
    assert chi_square_passes(np.bincount(cell, minlength=768), 1e6 * np.array(law))


def test_hcms_law() -> None:
    """HCMS has an exact matrix: rows sum to one, epsilon holds, the sampler draws it."""
    channel = HCMS(CITIES, 1, hashes=2, buckets=4)
    check_rows(channel)
    check_pure(channel)
    assert check_sampler(channel, 200_000)


def test_cms_likelihoods() -> None:
    """They are the law's, up to a factor of each report's own."""
    channel = CMS(CITIES, 1, hashes=3, buckets=8)
    reports = realised(channel, 1, draws=100)
    digests = _digests([text_bytes(v) for v in CITIES])
    for report, seen in zip(reports, channel.likelihoods(reports), strict=True):
        b = bucket(again(digests, np.full(6, report[0])), 8)
        ones = frozenset(np.flatnonzero(np.unpackbits(report[2:])).tolist())
        law = np.array([float(channel.exact(int(x), ones)) for x in b])
        np.testing.assert_allclose(law / law[0], seen / seen[0], rtol=1e-12)


def survey(channel: Any, f: Any, n: int, seed: int, offset: int) -> Any:
    """Raw estimates of one survey of values that no other survey has, so of fresh hashes."""
    values = [f"{offset}-{v}" for v in range(len(f))]
    codes = np.repeat(np.arange(len(f)), np.round(np.asarray(f) * n).astype(int))
    digests = _digests([text_bytes(v) for v in values])
    counted = channel.aggregate(channel._randomise(digests[codes], SimulatedWords(seed)))
    return counted.estimate(candidates=values).shares


@pytest.mark.parametrize(
    "channel",
    [CMS(CITIES, 4, hashes=16, buckets=16), HCMS(CITIES, 2, hashes=16, buckets=16)],
)
def test_errors_over_hash_functions(channel: Any) -> None:
    """Unbiased over hash functions; coins and collisions together as stated, within 5 %.

    1,200 surveys of 1,000: each survey's names, and so its buckets, are fresh.
    """
    f, n, runs = np.array([0.5, 0.2, 0.1, 0.1, 0.1, 0.0]), 1000, 1200
    found = np.array([survey(channel, f, n, 100 + r, r) for r in range(runs)])
    stated = channel.noise_variance(f) / n + (f**2).sum() / 15 / 16 - f**2 / 15 / 16
    assert np.all(np.abs(found.mean(axis=0) - f) < 6 * np.sqrt(stated / runs))
    assert abs((found.var(axis=0) / stated).mean() - 1) < 0.05
    assert abs(channel.collision_error(f) - np.sqrt((f**2).sum() / 240)) < 1e-12


@pytest.mark.parametrize(
    "channel",
    [CMS(CITIES, 2, hashes=512, buckets=64), HCMS(CITIES, 1, hashes=512, buckets=64)],
)
def test_noise_given_the_functions(channel: Any) -> None:
    """With many functions, repeated surveys vary as stated, within 3 %, covariances with them."""
    f, n, runs = np.array([0.4, 0.2, 0.2, 0.1, 0.1, 0.0]), 50, 16_000
    codes = np.tile(np.repeat(np.arange(6), np.round(f * n).astype(int)), runs)
    reports = channel.draw(codes, SimulatedWords(9))
    digests = _digests([text_bytes(v) for v in CITIES])
    p = float(Fraction(channel.truth, ONE))
    if isinstance(channel, CMS):
        j = reports[:, 0].astype(np.int64) + 256 * reports[:, 1].astype(np.int64)
        bits = np.unpackbits(reports[:, 2:], axis=1)
        where = bucket(again(digests[None, :], j[:, None]), 64)
        reading = (np.take_along_axis(bits, where, axis=1) - (1 - p)) / (2 * p - 1)
    else:
        j, index = np.divmod(reports // 2, 64)
        where = bucket(again(digests[None, :], j[:, None]), 64)
        odd = np.bitwise_count(where & index[:, None]) % 2
        reading = (1 - 2.0 * (odd ^ (reports % 2)[:, None])) / (2 * p - 1)
    found = (reading.reshape(runs, n, 6).mean(axis=1) - 1 / 64) * 64 / 63
    whole = channel.aggregate(reports)
    np.testing.assert_allclose(found.mean(axis=0), channel.decode(whole.counts, whole.n))
    stated = channel.variance(f, n)
    assert abs((found.var(axis=0) / stated).mean() - 1) < 0.03
    covariance = channel.noise_covariance(f) / n
    np.testing.assert_allclose(np.diag(covariance), stated)
    assert np.abs(np.cov(found.T) - covariance).max() < 6 * stated.max() * np.sqrt(2 / runs)


def test_unlisted_values() -> None:
    """A value that the domain does not list is reported and estimated as well as any other."""
    for channel in (CMS(CITIES, 8, hashes=64, buckets=256), HCMS(CITIES, 8, hashes=64)):
        values = ["Quito"] * 6000 + ["Paris"] * 3000 + [7] * 1000
        counted = channel.aggregate(channel.privatize(values))
        found = counted.estimate(candidates=["Quito", "Paris", 7, "Nowhere"])
        shares = found.shares
        limits = 7 * (found.standard_errors + channel.collision_error([0.6, 0.3, 0.1]))
        assert np.all(np.abs(shares - [0.6, 0.3, 0.1, 0]) < limits)
        assert abs(counted.estimate()["Paris"] - 0.3) < limits[1]
        with pytest.raises(ArgumentError, match="not valid"):
            _ = counted.estimate().intervals
        with pytest.raises(ArgumentError, match="not valid"):
            _ = found.intervals
        with pytest.raises(ArgumentError, match="no reports"):
            channel.aggregate([]).estimate(candidates=["Paris"])
        with pytest.raises(ArgumentError, match="texts or integers"):
            counted.estimate(candidates=[None])
    with pytest.raises(ArgumentError, match="missing"):
        channel.privatize(["Paris", None])
    assert isinstance(HCMS(CITIES, 1).privatize("Lima"), int)


def test_other_takes_unlisted_values() -> None:
    """With a declared other, an unlisted value is reported as that one."""
    from dither.local import Domain

    channel = HCMS(Domain(["Paris", "elsewhere"], other="elsewhere"), 20, hashes=64)
    counted = channel.aggregate(channel.privatize(["Quito"] * 2000))
    found = counted.estimate(candidates=["elsewhere", "Quito"])
    limits = 7 * (found.standard_errors + channel.collision_error([1.0]))
    assert np.all(np.abs(found.shares - [1, 0]) < limits)


def test_wire_and_refusals() -> None:
    """JSON and Arrow keep channels and counts; impossible reports are dropped and counted."""
    for channel in (CMS(CITIES, 1, hashes=5, buckets=16), HCMS(CITIES, 1, hashes=5, buckets=16)):
        check_wire(channel, channel.draw(np.arange(6).repeat(20), SimulatedWords(1)))
    cms = CMS(CITIES, 1, hashes=5, buckets=16)
    assert cms.aggregate([[5, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0], [4, 0, 255, 0]]).rejected == 3
    assert channel.aggregate([160, 159, -1]).rejected == 2
    for make in (
        lambda: CMS(CITIES, 1, buckets=4),
        lambda: CMS(CITIES, 1, buckets=100),
        lambda: HCMS(CITIES, 1, hashes=0),
        lambda: HCMS(CITIES, 1, hashes=1 << 16, buckets=1 << 10),
    ):
        with pytest.raises(ArgumentError):
            make()
