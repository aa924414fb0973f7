"""Gaussians on a Poisson sample where a unit is replaced: against the laws of all directions."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.privacy.laws.sampled.replaced import ReplacedGaussianTerm


def normal(x, y, at):
    """The density of a plane's normal law around a point."""
    return np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 2) / (2 * math.pi)


@pytest.mark.parametrize(("sigma", "g"), [(1.0, 0.2), (0.5, 0.05), (2.0, 0.6)])
def test_every_two_units_lose_at_most_the_opposite_ones(sigma, g):
    """By quadrature in the plane: any angle, any length; and opposite ones reach it."""
    c = 1 / sigma
    one = privacy.gaussian(sigma).poisson(g, neighbours="replace")
    axis = np.linspace(-8 - c, 8 + c, 401)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2
    zero = normal(x, y, (0, 0))
    for epsilon in (0.0, 0.1, 1.0):
        bound = one.delta(epsilon)
        found = []
        for length in (0.3 * c, c):
            for angle in np.linspace(0, math.pi, 7):
                at = length * math.cos(angle), length * math.sin(angle)
                p = (1 - g) * zero + g * normal(x, y, (c, 0))
                q = (1 - g) * zero + g * normal(x, y, at)
                for a, b in ((p, q), (q, p)):
                    found.append(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) * cell)
        # A kink costs the rule half a thousandth.
        assert max(found) <= bound.upper * (1 + 1e-3) + 1e-9
        assert found[-1] == pytest.approx(bound.upper, rel=1e-3, abs=1e-9)
        assert bound.upper - bound.lower <= 1e-9 * bound.upper


@pytest.mark.parametrize(("sigma", "g", "k"), [(2.0, 0.05, 50)])
def test_several_runs_by_a_fine_convolution(sigma, g, k):
    """The law of the loss on a million places; both ends of the answer are near."""
    c, n = 1 / sigma, 1 << 20
    z = np.linspace(-11 - c, 11 + c, 2_000_001)
    h = float(z[1] - z[0])
    phi = [np.exp(-((z - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (0, c, -c)]
    p, q = ((1 - g) * phi[0] + g * one for one in phi[1:])
    loss = np.log(p / q)
    step = 16 * float(loss.max()) / n
    law = np.bincount(np.rint(loss / step).astype(int) % n, p * h, n)
    total = np.fft.irfft(np.fft.rfft(law) ** k, n)
    places = np.where(np.arange(n) > n // 2, np.arange(n) - n, np.arange(n)) * step
    truth = float((total * np.maximum(-np.expm1(0.5 - places), 0)).sum())
    found = (k * privacy.gaussian(sigma).poisson(g).to_replace()).delta(0.5)
    assert found.lower == pytest.approx(truth, rel=1e-3)
    assert found.upper == pytest.approx(found.lower, rel=1e-5)


def test_moments_by_quadrature():
    """E[e^{cL}] of one run, in both directions alike."""
    for sigma, g, c in ((1.0, 0.1, 3.0), (0.5, 0.5, 1.0), (3.0, 0.01, 20.0)):
        term = ReplacedGaussianTerm(sigma, g, 1)
        z = np.linspace(-30, 60, 900_001)
        ratio, _ = term.log_ratio(z)
        p = (1 - g) * np.exp(-z * z / 2) + g * np.exp(-((z - 1 / sigma) ** 2) / 2)
        truth = math.log(
            float((p * np.exp(c * ratio)).sum() * (z[1] - z[0])) / math.sqrt(2 * math.pi)
        )
        low, high = term.moment_ends(c)
        assert low - 1e-11 <= truth <= high + 1e-11
        assert high - low < 1e-10
        places = np.array([-3.0, -0.01, 0.0, 1e-9, 0.5, 7.0])
        assert term.log_ratio(term.place(places))[0] == pytest.approx(places, rel=1e-9, abs=1e-15)


def test_a_conversion_is_the_sample_of_units_replaced():
    """to_replace of a sample and a sample stated so are one loss, with one charge."""
    one = privacy.gaussian(1.0).poisson(0.1)
    converted, stated = one.to_replace(), privacy.gaussian(1.0).poisson(0.1, neighbours="replace")
    assert converted.parts == stated.parts
    assert converted.charge == stated.charge
    assert converted.delta(0.5) < one.group(2).delta(0.5)
    assert converted.renyi(2.0).upper <= privacy.gaussian(0.5).renyi(2.0).upper
    with pytest.raises(ArgumentError, match="already a sample"):
        stated.without_replacement(1, 10)
    with pytest.raises(ArgumentError, match="truncated"):
        privacy.gaussian(1.0).poisson(0.1, truncate=30, population=100).to_replace()


@pytest.mark.parametrize("m", [1, 3])
def test_groups_on_a_sample_replaced_by_enumeration(m):
    """m rows on one side and m on the other, all opposite; of Poisson and of fixed size."""
    g, sigma = 0.1, 2.0
    z = np.linspace(-12, 12, 60_001)
    h = float(z[1] - z[0])

    def mixture(weights, step):
        parts = [w * np.exp(-((z - j * step) ** 2) / 2) for j, w in enumerate(weights)]
        return sum(parts) / math.sqrt(2 * math.pi)

    binomial = [math.comb(m, j) * g**j * (1 - g) ** (m - j) for j in range(m + 1)]
    units, size = 40, 5
    drawn = [
        math.comb(m, j) * math.comb(units, size - j) / math.comb(units + m, size)
        for j in range(m + 1)
    ]
    poisson = privacy.gaussian(sigma).poisson(g).group(m).to_replace()
    fixed = privacy.gaussian(sigma).without_replacement(size, units).group(m).to_replace()
    for loss, weights in ((poisson, binomial), (fixed, drawn)):
        for epsilon in (0.0, 0.5):
            p, q = mixture(weights, 1 / sigma), mixture(weights, -1 / sigma)
            truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) * h
            assert truth <= loss.delta(epsilon).upper * (1 + 1e-6)
