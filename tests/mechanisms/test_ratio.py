"""Ratio and variance intervals: coverage by simulation, and the shape of the acceptance set."""

from fractions import Fraction as F

import numpy as np
import pytest

from dither import noise as samplers
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    _ratio,
    half_width,
    ratio_interval,
    shared_ratio_interval,
    variance_interval,
)
from dither.numeric import SimulatedWords

REPEAT = 20_000


def drawn(law, words, size=REPEAT):
    """Simulated noise of a mechanism's law."""
    if isinstance(law, DiscreteLaplace):
        return samplers.discrete_laplace(law.scale, size, words=words)
    return samplers.discrete_gaussian(law.sigma2, size, words=words)


def bar(confidence, repeat=REPEAT):
    """5.5 standard errors below nominal: a true nominal coverage fails it with odds below 2e-8."""
    return confidence - 5.5 * (confidence * (1 - confidence) / repeat) ** 0.5


@pytest.mark.parametrize("n", [0.5, 1, 5, 20, 100, 5000])
@pytest.mark.parametrize("mean", [-40.0, 0.0, 3.0, 100.0])
@pytest.mark.parametrize("family", ["laplace", "gaussian", "mixed"])
def test_ratio_covers(n, mean, family):
    """The true ratio is inside at least as often as stated, however small the denominator.

    72 comparisons with false-alarm odds below 2e-8 each.
    """
    top = DiscreteLaplace(F(150)) if family != "gaussian" else DiscreteGaussian(F(150**2))
    bottom = DiscreteLaplace(F(3, 2)) if family == "laplace" else DiscreteGaussian(F(4))
    words = SimulatedWords(11)
    denominator = n + drawn(bottom, words)
    numerator = mean * n + drawn(top, words)
    lower, upper = ratio_interval(numerator, denominator, top, bottom, 0.95)
    covered = ((lower <= mean) & (mean <= upper)).mean()
    assert covered >= bar(0.95)
    if n >= 100:
        assert np.isfinite(lower).all()
        # Not merely safe: exact by the pivot, up to half a step of the coarser law.
        assert covered <= 0.975


def test_interval_ends_are_where_the_pivot_meets_its_width():
    """At a finite end |N - theta·D| equals q(theta); beyond it, it exceeds q."""
    top, bottom = DiscreteLaplace(F(100)), DiscreteGaussian(F(4))
    rng = np.random.default_rng(2)
    numerator, denominator = rng.normal(0, 3000, 50), rng.uniform(6, 400, 50)
    for end in ratio_interval(numerator, denominator, top, bottom, 0.9):
        assert np.isfinite(end).all()
        width = half_width([(1.0, top), (end, bottom)], 0.9)
        np.testing.assert_allclose(np.abs(numerator - end * denominator), width, rtol=1e-6)


def test_shared_noise_cancels():
    """A part of a whole that contains it: theta·(a + b) - a uses each noise once, and covers."""
    law, words = DiscreteLaplace(F(4)), SimulatedWords(5)
    a, b = 30 + drawn(law, words), 70 + drawn(law, words)
    terms = [(1.0, 1.0, law), (0.0, 1.0, law)]
    lower, upper = shared_ratio_interval(a, a + b, terms, 0.95)
    assert bar(0.95) <= ((lower <= 0.3) & (upper >= 0.3)).mean() <= 0.965


def test_hopeless_denominators():
    """Zero, negative or drowned denominators give the whole line, never an error or NaN."""
    top, bottom = DiscreteLaplace(F(10)), DiscreteLaplace(F(10))
    lower, upper = ratio_interval([1.0, 1.0, 0.0, 1e12], [0.0, -50.0, 5.0, 1.0], top, bottom, 0.95)
    assert (lower == -np.inf).all()
    assert (upper == np.inf).all()


@pytest.mark.parametrize("centre", [0, 200])
@pytest.mark.parametrize("size", [4, 60, 2000])
def test_variance_covers(size, centre):
    """The true population variance is inside at least as often as stated (odds below 2e-8 each)."""
    repeat = 3000
    values = np.random.default_rng(size).integers(0, 21, size)
    n, s, t = size, values.sum(), (values**2 - centre).sum()
    laws = (DiscreteLaplace(F(3)), DiscreteLaplace(F(60)), DiscreteGaussian(F(1000**2)))
    words = SimulatedWords(8)
    lower, upper = variance_interval(
        n + drawn(laws[0], words, repeat),
        s + drawn(laws[1], words, repeat),
        t + drawn(laws[2], words, repeat),
        laws,
        0.95,
        mean_bounds=(0.0, 20.0),
        square_centre=centre,
    )
    truth = values.var()
    assert ((lower <= truth) & (truth <= upper)).mean() >= bar(0.95, repeat)
    assert (lower >= 0).all()
    assert (upper <= 100).all()
    if size == 2000:
        assert (upper - lower).mean() < 10


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
def test_many_groups_have_the_same_intervals_as_few(law, monkeypatch):
    """All points of the grid at once, or one after the other: bit for bit."""
    rng = np.random.default_rng(4)
    count = rng.uniform(-10, 2000, (4, 5))
    sums = count * rng.uniform(0, 10, count.shape), count * rng.uniform(0, 100, count.shape)
    noises = tuple(law(F(scale)) for scale in (1, 7, 40))

    def ends():
        return variance_interval(count, *sums, noises, 0.95, mean_bounds=(0.0, 10.0))

    few = ends()
    monkeypatch.setattr(_ratio, "SIDE_BY_SIDE", 0)
    for one, other in zip(few, ends(), strict=True):
        assert one.shape == count.shape
        np.testing.assert_array_equal(one, other)
