"""Noise that clients add together: its law, its loss against exact sums, and what breaks it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import chisquare

from dither import privacy
from dither.errors import ArgumentError
from dither.learn.federated import DistributedNoise, FedAvg
from dither.learn.federated._encoding import UpdateEncoding, hadamard
from dither.learn.federated._noise import (
    NoiseShare,
    fewest_bits,
    gaussian_excess,
    skellam_divergence,
)
from dither.noise._skellam import _table, skellam, skellam_tail
from dither.numeric import SimulatedWords


def _law(share: NoiseShare, reach: int) -> Any:
    """Masses of one share on [-reach, reach]."""
    z = np.arange(-reach, reach + 1)
    variance = float(share.variance)
    if share.law == "skellam":
        return ive(np.abs(z), variance)
    masses = np.exp(-(z**2) / (2 * variance))
    return masses / masses.sum()


def _sum(share: NoiseShare, shares: int, reach: int) -> Any:
    """The law of a sum of shares, by convolution."""
    found = _law(share, reach)
    for _ in range(shares - 1):
        found = np.convolve(found, _law(share, reach))
    return found


def _wrapped(masses: Any, shift: int, bits: int) -> Any:
    """The law of shift plus noise, modulo 2^bits."""
    half = len(masses) // 2
    found = np.zeros(1 << bits)
    np.add.at(found, (np.arange(-half, half + 1) + shift) % (1 << bits), masses)
    return found


def _delta(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("variance", ["1/50", "3", "250"])
def test_skellam_masses(variance: str) -> None:
    """The table is the law to the last digits of doubles, symmetric, and cut far out."""
    table = _table(Fraction(variance))
    edges = [0, *table.cumulative]
    found = np.array([float(Fraction(b - a, table.total)) for a, b in itertools.pairwise(edges)])
    z = np.arange(len(found)) - len(found) // 2
    assert np.allclose(found, ive(np.abs(z), float(Fraction(variance))), rtol=1e-12, atol=1e-40)
    assert abs(1 - table.total / 2**208) < 2**-140
    assert skellam_tail(float(Fraction(variance)), z[-1]) <= -100


def test_skellam_draws_follow_their_law() -> None:
    """Sums of two draws have twice the variance; false alarms below 1e-6."""
    words = SimulatedWords(5)
    drawn = skellam(2, 40_000, words=words) + skellam("1/2", 40_000, words=words)
    cells = np.clip(drawn, -5, 5)
    wanted = ive(np.abs(np.arange(-5, 6)), 2.5)
    wanted[[0, -1]] = (1 - wanted[1:-1].sum()) / 2
    seen = np.bincount(cells + 5, minlength=11)
    assert chisquare(seen, wanted / wanted.sum() * len(drawn)).pvalue > 1e-6


def test_skellam_refuses() -> None:
    """Variances that no table holds."""
    for bad in (0, 2**24 + 1, math.nan):
        with pytest.raises(ArgumentError, match="variance"):
            skellam(bad, 1)


@pytest.mark.parametrize("variance", [1.5, 4.0, 30.0, 400.0])
def test_skellam_bound_holds(variance: float) -> None:
    """The proved divergence lies above the exact one, at orders and shifts near and far."""
    reach = int(14 * math.sqrt(variance) + 60)
    z = np.arange(-reach, reach + 1)
    for shift in (1, 2, 3, 1 + int(math.sqrt(variance)), 3 * int(math.sqrt(variance))):
        here, there = ive(np.abs(z), variance), ive(np.abs(z + shift), variance)
        seen = (here > 1e-280) & (there > 1e-280)
        for order in (1.001, 1.5, 2.0, 7.0, 20.0):
            terms = np.log(here[seen]) * order - np.log(there[seen]) * (order - 1)
            exact = float(np.logaddexp.reduce(terms)) / (order - 1)
            bound = skellam_divergence(Fraction(str(order)), Fraction(variance), shift**2, shift)
            assert exact <= bound * (1 + 1e-9) + 1e-9, (shift, order)


def test_skellam_bound_is_near() -> None:
    """On lattices that are used it is that of Gaussian noise, but for a few percent."""
    for order, most in ((2, 1.06), (8, 1.02), (32, 1.01)):
        bound = skellam_divergence(order, 10_000, 10_000, 100)
        assert 1 <= bound / (order / 2) < most + order**2 / 10_000


def test_gaussian_excess_bounds_convolutions() -> None:
    """The logarithms of sums' laws and of the discrete Gaussian's differ by no more."""
    for variance, shares in ((Fraction(1, 2), 2), (Fraction(7, 10), 3), (Fraction(1), 5)):
        reach = 40
        found = _sum(NoiseShare("discrete gaussian", variance), shares, reach)
        half = len(found) // 2
        z = np.arange(-half, half + 1)
        wanted = np.exp(-(z**2) / (2 * float(variance) * shares))
        wanted /= wanted.sum()
        inner = np.abs(z) <= reach // 2
        apart = np.abs(np.log(found[inner] / wanted[inner])).max()
        assert 0 < apart <= float(gaussian_excess(variance, shares))
    assert gaussian_excess(Fraction(4), 1000) < 1e-15
    with pytest.raises(ArgumentError, match="too small"):
        NoiseShare("discrete gaussian", Fraction(1, 9)).loss(50, l2_squared=4, coordinates=8)


LAWS = ("skellam", "discrete gaussian")


def _broken(law: str, bits: int, share: Fraction, shares: int, shift: int) -> bool:
    """Whether exact laws of a modular sum pass what the shares are charged."""
    claimed = NoiseShare(law, Fraction(3)).loss(3, l2_squared=9, coordinates=1)
    masses = _sum(NoiseShare(law, share), shares, 40)
    p, q = _wrapped(masses, shift, bits), _wrapped(masses, 0, bits)
    return any(
        max(_delta(p, q, e), _delta(q, p, e)) > claimed.delta(e).upper + 1e-12
        for e in (0.0, 0.5, 1.0, 2.0, 4.0)
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bits", [3, 5, 8])
def test_modular_sums_keep_the_claim(law: str, bits: int) -> None:
    """Three shares, a shift of every admitted length; wrapping around costs no privacy."""
    for shift, shares in itertools.product((-3, 1, 2, 3), (3, 4, 6)):
        assert not _broken(law, bits, Fraction(3), shares, shift)


@pytest.mark.parametrize("law", LAWS)
def test_planted_mistakes_are_seen(law: str) -> None:
    """Shares not counted for those who dropped out, shares split among all, and long vectors."""
    assert _broken(law, 8, Fraction(3), 1, 3), "two of three survivors dropped out"
    assert _broken(law, 8, Fraction(3, 4), 3, 3), "a share of a quarter, as for four times as many"
    assert _broken(law, 8, Fraction(3), 3, 5), "a vector that rounding made longer than its bound"


@pytest.mark.parametrize("law", LAWS)
def test_sampled_rounds_keep_the_claim(law: str) -> None:
    """What is published: with one client sampled at rate q, and without it, noise filled up."""
    variance, shares, rate, shift = Fraction(1600), 2, 0.25, 40
    share = NoiseShare(law, variance / shares)
    claimed = share.loss(shares, l2_squared=shift**2, coordinates=1, rate=rate, filled=True)
    masses = _sum(share, shares, 400)
    without = _wrapped(masses, 0, 11)
    with_it = (1 - rate) * without + rate * _wrapped(masses, shift, 11)
    for epsilon in (0.0, 0.25, 0.5, 1.0):
        bound = claimed.delta(epsilon).upper + 1e-12
        assert _delta(with_it, without, epsilon) <= bound
        assert _delta(without, with_it, epsilon) <= bound
    whole = share.loss(shares, l2_squared=shift**2, coordinates=1)
    assert claimed.epsilon(1e-6) < whole.epsilon(1e-6)


def test_gaussian_rounds_cost_what_the_accountant_says() -> None:
    """The plan's loss is gaussian(z).poisson(q) for all rounds, to what rounding adds."""
    plan = FedAvg(100, clients=1000, rate=0.05, rounds=30, noise_multiplier=0.9)
    plain = 30 * privacy.gaussian(0.9).poisson(0.05)
    assert plan.loss.epsilon(1e-5) == pytest.approx(plain.epsilon(1e-5), rel=1e-6)
    counted = FedAvg(100, clients=1000, rate=0.05, rounds=30, noise_multiplier=0.9, quantile=0.5)
    assert counted.loss.epsilon(1e-5) == pytest.approx(plain.epsilon(1e-5), rel=1e-6)
    assert counted.sigma2 == Fraction(81, 100) * counted.encoding.l2_squared


@pytest.mark.parametrize("law", LAWS)
def test_epsilon_is_reached(law: str) -> None:
    """The noise that is found keeps the promise, and its charge says so."""
    plan = FedAvg(
        60,
        clients=500,
        rate=0.1,
        rounds=5,
        epsilon=2,
        delta=1e-5,
        distributed=DistributedNoise(law, survivors=20, honest="0.9"),
    )
    assert plan.loss.epsilon(1e-5) <= 2
    assert plan.loss.epsilon(1e-5) > 1.8
    assert plan.loss.charge.epsilon == 2
    assert plan.loss.charge.delta <= Fraction(1, 10**5)
    # The server counts on 18 shares of honest survivors, the world on nine tenths of all.
    assert plan.server_loss(1).epsilon(1e-5) > plan.round_loss().epsilon(1e-5)
    assert plan.share().variance * 18 < plan.sigma2


def test_fewer_shares_than_clients_are_refused() -> None:
    """Where more clients are sampled than have a share, by the argument's name."""
    few = DistributedNoise("skellam", survivors=60, most=100)
    with pytest.raises(ArgumentError, match="most must be larger"):
        FedAvg(6, clients=2000, rate=0.05, rounds=30, noise_multiplier=1, distributed=few)


def test_honest_shares_alone_are_counted() -> None:
    """Fewer honest survivors, less noise and a larger loss to the server, exactly as by hand."""
    whole = DistributedNoise("skellam", survivors=10, most=20)
    half = DistributedNoise("skellam", survivors=10, most=20, honest="1/2")
    assert (whole.counted(10), half.counted(10)) == (10, 5)
    made = [
        FedAvg(8, clients=20, rate=1, rounds=1, noise_multiplier=2, distributed=given)
        for given in (whole, half)
    ]
    for plan, shares, published in zip(made, (10, 5), (20, 10), strict=True):
        share = plan.share()
        assert share.variance * published == 4 * plan.encoding.l2_squared
        square, n = plan.encoding.l2_squared, plan.encoding.coordinates
        wanted = share.loss(shares, l2_squared=square, coordinates=n)
        assert plan.server_loss(1).epsilon(1e-6) == wanted.epsilon(1e-6)


def test_vectors_are_never_longer_than_charged() -> None:
    """Over hostile updates, both ways of rounding, and in integers."""
    words = SimulatedWords(3)
    hostile = np.array(
        [
            [1e300, -1e300, 0, 1e-300, 5],
            [np.nan, 1, 2, 3, 4],
            [np.inf, 0, 0, 0, 0],
            [1, 1, 1, 1, 1],
            [0.49, -0.51, 0.5, 1e-12, 0],
            [0, 0, 0, 0, 1],
        ]
    )
    for encoding in (
        UpdateEncoding(5, 7),
        UpdateEncoding(5, 7, True),
        UpdateEncoding(5, 3, True, 2),
    ):
        for clip in (1e-9, 0.5, 3.0, 1e9):
            signs = 1 - 2 * (words.words(encoding.width) & np.uint64(1)).astype(np.int64)
            for _ in range(30):
                found = encoding.encode(hostile, clip, signs, words)
                assert int((found**2).sum(axis=1).max()) <= encoding.l2_squared
                assert not found[1:3, : encoding.width].any()


def test_rounding_without_its_bound_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round-up of every coordinate, as a rounding without the check gives now and then."""
    monkeypatch.setattr(
        UpdateEncoding, "_rounded", lambda self, rows, words: np.ceil(rows).astype(int)
    )
    monkeypatch.setattr(
        UpdateEncoding, "_too_long", lambda self, vectors: np.zeros(len(vectors), np.bool_)
    )
    encoding, words = UpdateEncoding(4, 2, True), SimulatedWords(1)
    update = np.random.default_rng(1).normal(size=(200, 4))
    found = encoding.encode(update, 1e-3, np.ones(4, np.int64), words)
    assert int((found**2).sum(axis=1).max()) > encoding.l2_squared


def test_rotation_and_rounding_keep_the_mean() -> None:
    """Decoded, the mean of many roundings is the update; false alarms below 1e-6."""
    words, encoding = SimulatedWords(8), UpdateEncoding(6, 40, True)
    signs = np.array([1, -1, 1, 1, -1, 1, -1, -1])
    update = np.array([0.3, -0.2, 0.1, 0.0, 0.05, -0.4])
    found = encoding.encode(np.tile(update, (4000, 1)), 1.0, signs, words)
    mean = encoding.decode(found.sum(axis=0), 1.0, signs) / 4000
    # A rounding has a deviation of at most 1/2 a unit.
    assert np.abs(mean - update).max() < 5.5 * 0.5 / 40 / math.sqrt(4000)
    rows = np.random.default_rng(1).normal(size=(3, 16))
    assert np.allclose(hadamard(hadamard(rows)), rows)


def test_modulus_is_wide_enough() -> None:
    """Sums of the worst updates, all alike, do not wrap around in 2,000 coordinates."""
    share, words = NoiseShare("skellam", Fraction(3)), SimulatedWords(2)
    encoding = UpdateEncoding(200, 64, True)
    bits = fewest_bits(share, 50, vectors=50, units=64, width=256, weight=0, wrap=1e-3)
    assert bits < 14
    for _ in range(8):
        signs = 1 - 2 * (words.words(256) & np.uint64(1)).astype(np.int64)
        update = np.zeros((50, 200))
        update[:, 0] = 1
        total = encoding.encode(update, 1.0, signs, words).sum(axis=0)
        total = total + share.times(50).draw(total.shape, words)
        assert np.abs(total).max() < 1 << (bits - 1)
