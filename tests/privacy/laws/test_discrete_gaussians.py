"""Many discrete Gaussians at once, by waves: as sums over their integers, and as grids of them."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.discrete_gaussians import DiscreteGaussiansTerm
from dither.privacy.laws.many_atoms import joined
from dither.privacy.laws.term import FADED

KINDS = [(0.5, 1, 2), (0.75, 2, 1), (1.0, 1, 3), (1.7, 3, 1), (4.3, 7, 2), (26.0, 1, 1)]
"""Noise, shifts and repetitions."""


def together(kinds):
    """The term of all of them."""
    return DiscreteGaussiansTerm(
        [DiscreteGaussianLaw(sigma, shift) for sigma, shift, _ in kinds], [k for *_, k in kinds]
    )


def summed(sigma, shift, c, u):
    """Σ over the integers around the tilted centre, and log M(c), of one kind."""
    x = np.arange(math.floor(-c * shift - 60 * sigma), math.ceil(-c * shift + 60 * sigma) + 1.0)
    z = -((x + c * shift) ** 2) / (2 * sigma**2)
    weight = np.exp(z) / np.exp(z).sum()
    loss = (shift**2 - 2 * shift * x) / (2 * sigma**2)
    y = np.arange(-60.0 * math.ceil(sigma), 60.0 * math.ceil(sigma) + 1)
    theta = np.exp(-(y**2) / (2 * sigma**2)).sum()
    whole = c * (c + 1) * shift**2 / (2 * sigma**2) + math.log(np.exp(z).sum() / theta)
    return (weight * np.exp(1j * u[:, None] * loss)).sum(axis=1), whole


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_the_sum_over_its_integers(kind):
    """On lines of many tilts, next to 0, at half turns, and where it comes round."""
    sigma, shift, count = kind
    turn = 2 * math.pi * sigma**2 / shift
    around = np.array([0.0, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.003, 1.5, 2.0, 17.25, 100.001])
    for c in (0.013, 0.5, 1.0, 3.7, 40.0):
        u = turn * around
        base, value, slack = together([kind]).along(c, u)
        found, whole = summed(sigma, shift, c, u)
        assert base == pytest.approx(count * whole, rel=1e-12, abs=1e-12)
        low, high = together([kind]).moment_ends(c)
        assert low - 1e-12 <= count * whole <= high + 1e-12
        # What the sum here rounds by: angles of losses of up to 10^5.
        off = 1e-9
        assert (np.abs(np.exp(value) - found**count) <= np.abs(np.exp(value)) * slack + off).all()
        known = value.real > FADED
        assert slack[known & (np.abs(found) > 1e-3)].max() < 1e-9


def test_where_they_have_faded_the_modulus_is_bounded():
    """Never below what all kinds give by themselves."""
    kinds = [(1.0 + 0.37 * i, 1 + i % 3, 1) for i in range(40)]
    u = np.linspace(0.0, 500.0, 4001)
    base, value, slack = together(kinds).along(2.0, u)
    one = [together([kind]).along(2.0, u) for kind in kinds]
    logs = sum(v.real for _, v, _ in one)
    faded = slack > 1
    assert 0.5 < faded.mean() < 1
    assert (logs[faded] <= value.real[faded] + 1e-9).all()
    assert np.abs(value.real - logs)[~faded].max() < 1e-8
    assert base == pytest.approx(sum(b for b, _, _ in one), rel=1e-13)


def test_a_half_of_the_exponent_outweighs_waves():
    """|S(x)|/S(0) is at most e^{v·x²/4}·(1 + 10^-7), closest at v = 1."""
    for v in (1.0, 1.3, 4.0):
        x = np.linspace(0.0, math.pi, 2001)
        m = np.arange(-4, 5)[:, None]
        most = np.exp(-2 * math.pi * v * m * (x + math.pi * m)).sum(axis=0)
        least = 1 - 2.1 * math.exp(-2 * math.pi**2 * v)
        assert (np.log(most / least) <= v * x**2 / 4 + 1e-7).all()


def test_a_schedule_is_answered_within_a_grid_of_its_kinds():
    """By the public way, and far more narrowly."""
    kinds = [privacy.discrete_gaussian(0.6 + 0.31 * i, sensitivity=1 + i % 2) for i in range(12)]
    loss = privacy.compose(*kinds)
    found = loss.epsilon(1e-5)
    assert found.upper - found.lower < 1e-6 * found.upper
    grid = Grid(side(loss.parts, True).lower_terms, log_delta=math.log(1e-5), epsilon=None)
    low, high = grid.bounds(float(found))
    assert low <= math.log(1e-5) <= high
    assert math.log(loss.delta(2.0).upper) >= grid.bounds(2.0)[0]
    assert math.log(loss.delta(2.0).lower) <= grid.bounds(2.0)[1]


def test_kinds_that_are_alike_are_as_their_repetition():
    """Ten within 1e-12 of one another, and ten runs of that one on its lattice."""
    near = [privacy.discrete_gaussian(1.5 + 1e-13 * i) for i in range(10)]
    found = privacy.compose(*near).epsilon(1e-6)
    one = (10 * privacy.discrete_gaussian(1.5)).epsilon(1e-6)
    assert one.lower * (1 - 1e-6) <= found.upper
    assert found.lower <= one.upper * (1 + 1e-6)


def test_beside_a_gaussian_the_contour_needs_no_smoothing():
    """Which knows the same as with it."""
    kinds = [privacy.discrete_gaussian(3.0 + 0.5 * i) for i in range(9)]
    terms = side(privacy.compose(privacy.gaussian(1.0), *kinds).parts, True).lower_terms
    assert any(isinstance(t, DiscreteGaussiansTerm) for t in joined(terms))
    plain = Contour(terms, log_delta=None, epsilon=5.0)
    smooth = Contour(terms, log_delta=None, epsilon=5.0, smoothed=True)
    assert plain.certified
    assert smooth.certified
    low, high = plain.bounds(5.0)
    assert high - low < 1e-9
    other_low, other_high = smooth.bounds(5.0)
    assert other_low <= high
    assert low <= other_high
