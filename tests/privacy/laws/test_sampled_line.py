"""Samples of a Gaussian or a Laplace as a certified quadrature.

The generating functions are held against mpmath's adaptive quadrature of the definitions, and the
profiles against two grids, an engine that shares only the formula of the loss.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.sampled import line as sampled_line
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import FixedSizeTerm, SampledTerm

mpf = mpmath.mpf
KINDS = ["removal", "addition", "fixed"]


def line(kind, base, rate, count=1):
    """The term."""
    if kind == "fixed":
        return SampledLineTerm(FixedSizeTerm(base, rate, count))
    return SampledLineTerm(SampledTerm(base, rate, kind == "removal", count))


def base_of(name, size):
    """A Gaussian of mu = size, or a Laplace of epsilon = size."""
    if name == "gaussian":
        return GaussianTerm(size**2)
    return LaplaceTerm(np.array([size]), np.ones(1))


def over_q(name, size, inner, start):
    """E over the base's loss x under Q, where x > start."""
    s = mpf(size)
    if name == "gaussian":
        places = sorted({start if start is not None else -13 * s, *(k * s for k in (0, 3, 6, 14))})
        if start is None:
            places = sorted({*places, -8 * s, -4 * s, -2 * s})
        density = lambda x: mpmath.npdf(x, -s * s / 2, s)  # noqa: E731
        return mpmath.quad(lambda x: density(x) * inner(x), places)
    low = -s if start is None else mpf(start)
    total = mpmath.quad(lambda x: mpmath.exp(-(x + s) / 2) / 4 * inner(x), [low, (low + s) / 2, s])
    total += mpmath.exp(-s) / 2 * inner(s)
    return total + (inner(-s) / 2 if start is None else 0)


def moment(kind, name, size, rate, t):
    """E[e^{tL}] from the definition."""
    g = mpf(rate)

    def w(x):
        return 1 - g + g * mpmath.exp(x)

    if kind == "removal":
        return over_q(name, size, lambda x: w(x) ** (1 + t), None)
    if kind == "addition":
        return over_q(name, size, lambda x: w(x) ** (-t), None)
    high = over_q(name, size, lambda x: w(x) ** (1 + t), 0)
    low = over_q(name, size, lambda x: w(x) ** (-t), 0)
    still = 1 - over_q(name, size, w, 0) - over_q(name, size, lambda x: mpf(1), 0)
    return high + low + still


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "size"), [("gaussian", 1.0), ("laplace", 1.5), ("laplace", 4.0)])
@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_moments_along_a_line(kind, name, size, rate):
    """Each value errs by less than it says, and says little."""
    term, c, u = line(kind, base_of(name, size), rate), 3.0, 5.0 * np.arange(9)
    base, value, slack = term.along(c, u)
    with mpmath.workdps(30):
        whole = moment(kind, name, size, rate, mpf(c))
        assert abs(mpf(base) - mpmath.log(whole)) <= slack[0] + 2e-16
        assert (np.exp(value.real) * np.expm1(slack)).max() < 1e-11
        for i in (1, 3, 8):
            truth = moment(kind, name, size, rate, mpmath.mpc(c, u[i]))
            found = mpmath.exp(mpf(base) + mpmath.mpc(value[i]))
            assert abs(found - truth) <= abs(found) * mpmath.expm1(slack[i])


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["gaussian", "laplace"]),
    st.floats(0.2, 3.0),
    st.floats(0.005, 0.5),
    st.integers(60, 2000),
    st.floats(0.1, 2.0),
)
def test_profiles_meet_the_grids(kind, name, size, rate, count, epsilon):
    """Two engines' certified intervals hold one truth, so they meet."""
    term = line(kind, base_of(name, size), rate, count)
    contour = Contour([term], log_delta=None, epsilon=epsilon)
    if not contour.certified:
        return
    low, high = contour.bounds(epsilon)
    grid = Grid([term.inner], log_delta=None, epsilon=epsilon, points=1 << 11)
    below, above = grid.bounds(epsilon)
    assert low <= above
    assert below <= high


def test_a_wrong_rate_shows():
    """With a rate that is a thirtieth too small the same comparison fails."""
    term = line("fixed", GaussianTerm(1.0), 0.1, 200)
    below, _ = Grid([term.inner], log_delta=None, epsilon=3.0, points=1 << 12).bounds(3.0)
    term.rate *= 0.97
    contour = Contour([term], log_delta=None, epsilon=3.0)
    assert contour.certified
    assert contour.bounds(3.0)[1] < below


@pytest.mark.parametrize(
    "total",
    [
        1000 * privacy.laplace(1).poisson(0.01),
        100_000 * privacy.laplace(3).poisson(0.01),
        10_000 * privacy.gaussian(1, neighbours="replace").without_replacement(100, 10_000),
        1000 * privacy.laplace(1, neighbours="replace").without_replacement(10, 1000),
        100 * privacy.randomized_response(1, neighbours="replace").without_replacement(100, 1000),
    ],
    ids=["laplace", "many", "fixed", "fixed laplace", "fixed response"],
)
def test_narrow(total):
    """Settings that used to be wide are known to better than a millionth."""
    found = total.epsilon(1e-6)
    assert found.upper - found.lower <= 1e-8 * found.upper


def test_mean_loss():
    """The mean loss of samples by the same nodes."""
    with mpmath.workdps(20):
        truth = mpmath.diff(lambda t: moment("removal", "laplace", 1.0, 0.1, t), 0)
    term = line("removal", base_of("laplace", 1.0), 0.1)
    assert term.mean() == pytest.approx(float(truth), rel=1e-9)


def test_a_direction_without_losses_that_large_is_not_worked_out():
    """Added, ten samples at 1/10 lose at most -10·log(0.9) = 1.0536: nothing is left beyond."""
    added = side((10 * privacy.laplace(1).poisson(0.1)).parts, False)
    assert added.below(1.0537, -700.0)
    assert not added.below(0.5, -700.0)
    # What may be infinite has no such end.
    lost = side((10 * privacy.approximate(1, 1e-9).poisson(0.1)).parts, True)
    assert not lost.below(100.0, -30.0)


def test_few_nodes_are_kept():
    """Rare large losses take tens of thousands of nodes a tilt: not those of every tilt stay."""
    term = line("removal", base_of("laplace", 50.0), 1e-4)
    for c in np.geomspace(1e-3, 1e3, 40):
        term.log_moment(np.array([c]))
    sizes = [len(nodes.loss) for nodes in term._kept.values()]
    assert 1 < len(sizes) < 40
    assert sum(sizes) <= sampled_line._HELD + max(sizes)
