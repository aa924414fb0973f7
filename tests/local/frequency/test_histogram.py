"""Histogram encoding: summation and thresholding against their laws."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import OUE, SHE, THE
from dither.local._frequency.histogram import best_threshold
from local.laws import (
    check_bit_pure,
    check_bit_rows,
    check_bit_sampler,
    check_estimator,
    check_wire,
    chi_square_passes,
    realised,
)


@pytest.mark.parametrize("channel", [THE(3, 1), THE(4, 3), THE(3, 2, threshold="0.9")])
def test_thresholding(channel: THE) -> None:
    """The law sums to one, spends exactly what is claimed, and is what is drawn."""
    check_bit_rows(channel)
    check_bit_pure(channel)
    assert check_bit_sampler(channel)
    check_wire(channel, channel.privatize([0, 1, 2] * 20))
    assert channel.guarantee.epsilon < channel.epsilon


def test_thresholding_estimator() -> None:
    """Unbiased, of the stated variance."""
    check_estimator(THE(4, 1), [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("epsilon", [0.1, 1, 4])
def test_threshold_is_the_best(epsilon: float) -> None:
    """No other threshold gives rare values less variance; OUE at the same epsilon does."""
    channel = THE(10, epsilon)
    f = np.eye(10)[0]
    least = channel.variance(f, 1)[1]
    for t in np.linspace(0.5, 1, 31).tolist():
        assert THE(10, epsilon, threshold=t).variance(f, 1)[1] >= least * (1 - 1e-9)
    assert OUE(10, epsilon).variance(f, 1)[1] < least
    assert best_threshold(channel.epsilon) == channel.threshold


def laplace_exceeds(t: float, scale: float) -> float:
    """Pr[Laplace > t] by integrating its density in fine steps."""
    x = np.linspace(t, t + 60 * scale, 600_001)
    return float(np.trapezoid(np.exp(-np.abs(x) / scale) / (2 * scale), x))


def test_thresholding_is_of_laplace_noise() -> None:
    """p and q are the chances that noise of scale 2/epsilon carries 1 and 0 over the threshold."""
    channel = THE(3, "1.5")
    t, scale = float(channel.threshold), 2 / 1.5
    p, q = channel.chances
    assert p[0] == pytest.approx(laplace_exceeds(t - 1, scale), rel=1e-7)
    assert q[0] == pytest.approx(laplace_exceeds(t, scale), rel=1e-7)


@pytest.mark.parametrize("channel", [SHE(2, 1), SHE(2, 2, clamp=2), SHE(2, "0.5", clamp=1)])
def test_summation_law(channel: SHE) -> None:
    """Bins sum to one, the worst ratio over all reports is e^epsilon, and the sampler agrees."""
    values, zero = channel.bin_law(0)
    _, one = channel.bin_law(1)
    assert zero.sum() == pytest.approx(1, abs=1e-12)
    assert one.sum() == pytest.approx(1, abs=1e-12)
    worst = max(
        one[i] * zero[j] / (zero[i] * one[j])
        for i, j in itertools.product(range(values.size), repeat=2)
    )
    assert worst == pytest.approx(math.exp(float(channel.epsilon)), rel=1e-9)
    reports = realised(channel, 1, 3) + channel.clamp
    size = values.size
    seen = np.bincount(reports[:, 0] * size + reports[:, 1], minlength=size * size)
    assert chi_square_passes(seen, 1_000_000 * np.outer(zero, one).ravel())


@pytest.mark.parametrize("channel", [SHE(3, 1), SHE(3, 1, clamp=1), SHE(3, "0.2", clamp=10)])
def test_summation_estimator(channel: SHE) -> None:
    """Unbiased whatever the clamp, of the stated variance; the wire keeps it."""
    check_estimator(channel, [0.1, 0.3, 0.6], runs=3000)
    check_wire(channel, channel.privatize([0, 1, 2] * 20))


def test_summation_variance() -> None:
    """Hardly clamped, a bin has the variance of discrete Laplace noise, 2a/(1-a)²."""
    a = math.exp(-0.25)
    assert SHE(3, "0.5").variance([1, 0, 0], 7)[2] == pytest.approx(2 * a / (1 - a) ** 2 / 7)


def test_summation_counts_and_drops() -> None:
    """Rows beyond the clamp, of another width or not of whole numbers are dropped and counted."""
    channel = SHE(2, 1, clamp=3)
    found = channel.aggregate([[-3, 4], [0, 5], [-4, 0], [1], "ab", [0.5, 1], None, [True, 1]])
    assert (found.n, found.rejected, found.counts.tolist()) == (1, 7, [0, 7])
    assert channel.aggregate(np.zeros((4, 3), dtype=np.int64)).rejected == 4
    assert channel.aggregate(np.array([[-3, 4], [9, 0]])).rejected == 1
    ratio = channel.likelihoods(np.array([[4, -3]]))
    assert ratio[0, 0] / ratio[0, 1] == pytest.approx(math.e)


@dataclass(frozen=True, slots=True, init=False)
class HalfNoise(SHE):
    """A planted mistake: noise for a sensitivity of 1."""

    kind: ClassVar[str] = "test-half-noise"

    def draw(self, codes, words):  # type: ignore[no-untyped-def]
        """The draws of twice the epsilon."""
        return SHE(self.domain, 2 * self.epsilon, clamp=self.clamp).draw(codes, words)


def test_planted_mistake_is_caught() -> None:
    """Noise of half the scale does not have the law that is claimed."""
    channel = HalfNoise(2, 1, clamp=4)
    seen = np.bincount(realised(channel, 0, 1, 10_000)[:, 1] + 4, minlength=10)
    assert not chi_square_passes(seen, 10_000 * channel.bin_law(0)[1])


def test_refusals() -> None:
    """Clamps and thresholds out of range are refused."""
    for clamp in (0, 1 << 21, 1.5, True):
        with pytest.raises(ArgumentError, match="clamp"):
            SHE(3, 1, clamp=clamp)  # type: ignore[arg-type]
    for t in (0.4, 1.1, float("nan")):
        with pytest.raises(ArgumentError, match="threshold"):
            THE(3, 1, threshold=t)
