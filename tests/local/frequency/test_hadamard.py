"""Hadamard response and its transform."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import Aggregate, Hadamard
from dither.local._coins import exp_bounds
from dither.local._frequency.hadamard import best_blocks, hadamard, parity
from dither.numeric import SimulatedWords
from local.laws import check_estimator, check_pure, check_rows, check_sampler, check_wire

CHANNELS = [Hadamard(2, 1), Hadamard(7, 1), Hadamard(8, 3, blocks=4), Hadamard(6, 2, blocks=2)]


def test_transform() -> None:
    """It is the product with Sylvester's matrix, exactly, along the last axis."""
    rng = np.random.default_rng(1)
    for m in (1, 2, 8, 64):
        i = np.arange(m)
        sylvester = 1 - 2 * parity(i[:, None] & i[None, :])
        columns = rng.integers(-(2**40), 2**40, (3, m))
        kept = columns.copy()
        assert np.array_equal(hadamard(columns), columns @ sylvester)
        assert np.array_equal(columns, kept)
    assert parity(np.array([0, 1, 3, 2**31, 2**32 - 1])).tolist() == [0, 1, 0, 1, 0]
    with pytest.raises(ArgumentError, match="power of two"):
        hadamard(np.zeros(6, dtype=np.int64))


@pytest.mark.parametrize("channel", CHANNELS)
def test_law(channel: Any) -> None:
    """Rows sum to one, epsilon holds and is used, and the sampler draws the matrix."""
    check_rows(channel)
    check_pure(channel)
    e, _ = exp_bounds(channel.epsilon)
    a, c = channel._chances
    assert a / c > e * (1 - Fraction(1, 2**40))
    assert check_sampler(channel, 300_000 if len(channel.domain) > 2 else 1_000_000)


def test_a_wrong_side_is_caught() -> None:
    """A sampler that forgets the parity of its index fails the same check."""

    class Forgetful(Hadamard):
        __slots__ = ()

        def draw(self, codes: Any, words: Any) -> Any:
            found = Hadamard.draw(self, codes, words)
            return np.where(found == 0, 1, found)

    assert not check_sampler(Forgetful(7, 1), 100_000)


@pytest.mark.parametrize("channel", [Hadamard(7, 1), Hadamard(7, 3, blocks=4)])
def test_estimator(channel: Any) -> None:
    """Unbiased, with the stated variance; covariances are those that the matrix gives."""
    f = np.array([0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.02])
    check_estimator(channel, f)
    w = np.array([channel.decode(row, 1) for row in np.eye(channel.outputs, dtype=np.int64)]).T
    np.testing.assert_allclose(w @ channel.matrix.T, np.eye(7), atol=1e-12)
    derived = (w * (f @ channel.matrix)) @ w.T - np.diag(f)
    np.testing.assert_allclose(channel.noise_covariance(f), derived, atol=1e-10)


def test_best_blocks() -> None:
    """The chosen number of blocks has the least mean variance, by trying them all."""
    for k, epsilon in ((2, 1), (1000, 1), (1000, 3), (1000, 5), (60, 7)):
        powers = [1 << i for i in range(10) if i == 0 or 1 << i < k]
        f = np.full(k, 1 / k)
        found = [Hadamard(k, epsilon, blocks=b).noise_variance(f).mean() for b in powers]
        chosen = powers.index(best_blocks(k, Fraction(epsilon)))
        assert found[chosen] <= 1.02 * min(found)


def test_wire_and_refusals() -> None:
    """JSON and Arrow keep channels and counts; impossible reports are dropped and counted."""
    channel = Hadamard(100, 3)
    check_wire(channel, channel.draw(np.arange(100), SimulatedWords(1)))
    assert channel.aggregate([0, channel.outputs, -1, "a", 0.5]).rejected == 4
    for blocks in (0, 3, 2.0, 1 << 13):
        with pytest.raises(ArgumentError, match="blocks"):
            Hadamard(9, 1, blocks=blocks)  # type: ignore[arg-type]


def test_large_domain() -> None:
    """A million values are read back from 300,000 reports within 6 standard errors."""
    channel = Hadamard(1_000_000, 2)
    rng = np.random.default_rng(2)
    codes = np.where(rng.random(300_000) < 0.3, 777_777, rng.integers(0, 1_000_000, 300_000))
    counted = channel.aggregate(channel.draw(codes, SimulatedWords(5)))
    found = channel.decode(counted.counts, counted.n)
    truth = np.bincount(codes, minlength=1_000_000) / codes.size
    errors = np.sqrt(channel.variance(truth, codes.size))
    assert abs(found[777_777] - truth[777_777]) < 6 * errors[777_777]
    assert np.abs((found - truth) / errors).max() < 7


def test_stated_errors_of_large_domains() -> None:
    """Where most shares are noise, the stated errors are still those seen, in every block."""
    k = 1 << 13
    channel = Hadamard(k, epsilon=3)
    shares = np.full(k, 0.35 / k)
    shares[[3, 77, 1000]] += [0.3, 0.2, 0.15]
    codes = np.random.default_rng(5).choice(k, 20_000, p=shares)
    counts, n, _ = channel.tally(channel.draw(codes, SimulatedWords(3)))
    found = Aggregate(channel, counts, n).estimate()
    truth = np.bincount(codes, minlength=k) / n
    z = (found.shares - truth) / found.standard_errors
    for block in range(channel.blocks):
        assert np.std(z[np.arange(k) % channel.blocks == block]) == pytest.approx(1, abs=0.1)
