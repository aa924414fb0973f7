"""Losses on very sparse samples, whose scale is the rate and whose tail is a lognormal's.

The oracles use no contour: a direct convolution on a fine lattice, in plain doubles and improved by
one extrapolation, and a trapezoid sum so fine that it resolves every turn of the integrand.
"""

import numpy as np
import pytest

from dither import privacy
from dither.privacy._side import one_delta, side
from dither.privacy.laws.sampled_gaussian import SampledGaussianTerm


def losses(rate, removal):
    """Nodes of one step's loss and their probabilities."""
    z = 5e-5 * np.arange(-240_000, 240_000)
    phi = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * 5e-5
    ratio = np.log1p(rate * np.expm1(z - 0.5))
    return (ratio, phi * np.exp(ratio)) if removal else (-ratio, phi)


def convolved(rate, removal, k, epsilon, spacing, points):
    """delta(epsilon) of k steps, each loss split between its two lattice neighbours."""
    loss, mass = losses(rate, removal)
    kept = np.abs(loss) < 0.3 * spacing * points
    at = loss[kept] / spacing
    low = np.floor(at).astype(int)
    part = at - low
    law = np.bincount(low % points, mass[kept] * (1 - part), points)
    law += np.bincount((low + 1) % points, mass[kept] * part, points)
    total = np.fft.irfft(np.fft.rfft(law) ** k, points)
    where = np.arange(points)
    where = np.where(where < 0.8 * points, where, where - points) * spacing
    return float((total * -np.expm1(np.minimum(epsilon - where, 0.0))).sum())


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("epsilon", [0.008, 0.0112])
def test_many_sparse_steps(removal, epsilon):
    """A thousand steps at rate 1e-4: inside a narrow interval, each direction by itself."""
    total = 1000 * privacy.gaussian(1.0).poisson(1e-4)
    low, high, method = one_delta(total, side(total.parts, removal), epsilon)
    rough = convolved(1e-4, removal, 1000, epsilon, 2e-6, 1 << 18)
    fine = convolved(1e-4, removal, 1000, epsilon, 1e-6, 1 << 19)
    truth = fine + (fine - rough) / 3
    assert method.startswith("contour")
    assert high - low <= 2e-5 * high
    assert low * (1 - 1e-5) <= truth <= high * (1 + 1e-5)


def test_sparse_epsilon_is_narrow():
    """The epsilon of a sparse total is known to better than a millionth."""
    for steps, rate in ((1000, 1e-4), (1000, 1e-3)):
        found = (steps * privacy.gaussian(1.0).poisson(rate)).epsilon(1e-5)
        assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize(("rate", "size"), [(1e-4, 1), (1e-3, 1), (0.01, 2)])
def test_moments_along_a_line(removal, rate, size):
    """The quadrature errs by less than it says."""
    term = SampledGaussianTerm(1.0, rate, removal, 1, size)
    weights = term.weights
    c, u = 6.0, 40.0 * np.arange(60)
    base, value, slack = term.along(c, u)
    z = 2e-4 * np.arange(-70_000, 170_000)
    j = np.arange(len(weights))[:, None]
    # Losses near 1e-4 are turned by up to 2,400: their own rounding must be far below a double's.
    wide = np.exp((j * z - j * j / 2).astype(np.longdouble))
    exact = np.array(weights, dtype=np.longdouble)
    exact[0] = 1 - exact[1:].sum()
    ratio = np.log((exact[:, None] * wide).sum(axis=0))
    power = 1 + c if removal else -c
    weight = np.exp(power * ratio - z * z / 2) * np.longdouble(2e-4) / np.sqrt(2 * np.pi)
    assert base == pytest.approx(float(np.log(weight.sum())), abs=1e-12)
    sign = 1j if removal else -1j
    for i in (1, 7, 25, 59):
        truth = (weight * np.exp(sign * u[i] * ratio)).sum() / weight.sum()
        allowed = np.exp(value[i].real) * np.expm1(slack[i])
        assert allowed < 1e-9
        assert abs(np.exp(value[i]) - truth) <= allowed + 1e-15
