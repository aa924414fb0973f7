"""The least rho and mu, and the Rényi profile of bounded ranges, against integrals and sums."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.balls.laws import line_moment
from dither.privacy.engines.concentration import _bends
from dither.privacy.laws.classes import BoundedRange

mpf = mpmath.mpf


def ratio(p, q, c):
    """D_{1+c}/(1+c) of two laws of finitely many outcomes."""
    total = sum(a * (a / b) ** c for a, b in zip(p, q, strict=True) if a > 0)
    return mpmath.log(total) / (c * (c + 1))


def largest(f):
    """The largest value of a function of one hump, or of one that falls from 0."""
    grid = [mpf(10) ** (mpf(k) / 8) for k in range(-80, 40)]
    values = [f(c) for c in grid]
    i = max(range(len(grid)), key=values.__getitem__)
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    for _ in range(60):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if f(a) < f(b) else (low, b)
    return f((low + high) / 2)


def mixed(p, q, rate):
    return [rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True)]


@pytest.mark.parametrize("rate", [1.0, 0.3, 0.01])
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
        ([0.7, 0.2, 0.1], [0.4, 0.4, 0.2]),
        ([0.9, 0.1], [0.5, 0.5]),
    ],
)
def test_finite_pairs(p, q, rate):
    """Both ends hold the truth within a millionth."""
    with mpmath.workdps(40):
        a, b = ([mpf(repr(x)) for x in law] for law in (p, q))
        m = mixed(a, b, mpf(repr(rate)))
        truth = max(largest(lambda c: ratio(m, b, c)), largest(lambda c: ratio(b, m, c)))
        base = privacy.pair(p, q)
        found = (base if rate == 1 else base.poisson(rate)).zcdp()
        assert found.lower <= truth * (1 + mpf(10) ** -12)
        assert truth <= found.upper * (1 + mpf(10) ** -12)
        assert found.width <= 1e-6 * found.upper


def moment(e, g, c, kind):
    """log E[e^{cL}] of a sampled Laplace."""

    def w(x):
        return 1 + g * mpmath.expm1(x)

    def density(x):
        return mpmath.exp(-(x + e) / 2) / 4

    rise = {
        "removal": lambda x: w(x) ** (1 + c),
        "addition": lambda x: w(x) ** -c,
        "fixed": lambda x: w(x) ** (1 + c) + w(x) ** -c,
    }[kind]
    total = rise(e) * mpmath.exp(-e) / 2
    if kind == "fixed":
        total += mpmath.quad(lambda x: rise(x) * density(x), [0, e])
        # What is left at 0: 1 less the masses w and 1 of the two sides.
        total += 1 - mpmath.quad(lambda x: (1 + w(x)) * density(x), [0, e])
        total -= (1 + w(e)) * mpmath.exp(-e) / 2
    else:
        total += rise(-e) / 2 + mpmath.quad(lambda x: rise(x) * density(x), [-e, 0, e])
    return mpmath.log(total)


@pytest.mark.parametrize(("scale", "rate"), [(1.0, 0.125), (0.25, 0.5), (8.0, 0.0078125)])
def test_sampled_laplaces(scale, rate):
    """Moments are integrals, and the supremum is that of their ratio."""
    kinds = {
        "removal": (privacy.laplace(scale).poisson(rate), True),
        "addition": (privacy.laplace(scale).poisson(rate), False),
        "fixed": (
            privacy.laplace(scale, neighbours="replace").without_replacement(1, int(1 / rate)),
            True,
        ),
    }
    with mpmath.workdps(30):
        e, g = 1 / mpf(scale), mpf(rate)
        tops = {}
        for kind, (loss, removal) in kinds.items():
            term = side(loss.parts, removal).upper_terms[0]
            for c in (1e-8, 0.01, 1.0, 30.0):
                truth = moment(e, g, mpf(c), kind)
                low, high = line_moment(term, c)
                assert low <= truth + abs(truth) * mpf(10) ** -18
                assert truth <= high + abs(truth) * mpf(10) ** -18
                assert high - low <= 1e-14 * high
            with mpmath.workdps(22):
                at = [mpf(2) ** (mpf(k) / 2) for k in range(-20, 14)]
                tops[kind] = max(moment(e, g, c, kind) / (c * (c + 1)) for c in at)
        for loss, names in (
            (kinds["removal"][0], ("removal", "addition")),
            (kinds["fixed"][0], ("fixed",)),
        ):
            found = loss.zcdp()
            truth = max(tops[name] for name in names)
            assert truth <= found.upper
            assert found.lower <= truth * 1.02
            assert found.width <= 1e-6 * found.upper


def test_beside_gaussians():
    """A Gaussian adds its rho; one on a sample does not add it at the others' best order."""
    one = privacy.laplace(1.0).poisson(0.1)
    whole = one + privacy.gaussian(2.0)
    assert whole.zcdp().upper == pytest.approx(one.zcdp() + 0.125, rel=1e-9)
    assert whole.zcdp().width <= 1e-6
    sampled = one + privacy.gaussian(2.0).poisson(0.01)
    assert sampled.zcdp().lower <= max(0.125 + 1e-9, sampled.renyi(2.0).upper / 2)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-3, 12.0), st.floats(1e-3, 40.0), st.floats(0.0, 1.0))
def test_bounded_range_holds_every_two_point_pair(epsilon, c, part):
    """No pair with losses t and t - epsilon has a larger moment, whatever t."""
    bound = float(BoundedRange(epsilon).log_moment(np.array([c]))[0])
    with mpmath.workdps(40):
        e, t = mpf(epsilon), mpf(part) * mpf(epsilon)
        p = (mpmath.exp(e) - mpmath.exp(t)) / (mpmath.exp(e) - 1)
        truth = mpmath.log(p * mpmath.exp(c * t) + (1 - p) * mpmath.exp(c * (t - e)))
        assert truth <= bound
        # And some t comes close, or the quadratic bound was as good.
        worst = mpf(c) / (1 + mpf(c)) * (1 - mpmath.exp(-(1 + mpf(c)) * e))
        worst /= mpmath.exp(-e) - mpmath.exp(-(1 + mpf(c)) * e)
        p = (mpmath.exp(e) - worst) / (mpmath.exp(e) - 1)
        best = p * worst**c + (1 - p) * (worst * mpmath.exp(-e)) ** c
        assert bound <= mpmath.log(best) + 1e-12 * (1 + c * epsilon)


def test_exponential_is_tighter_than_its_quadratic_bound():
    """At large epsilon the exact worst pair wins."""
    sharp = 3 * privacy.exponential(4.0)
    assert sharp.renyi(4.0) < 3 * 4.0 * 4.0**2 / 8 * 0.9
    assert sharp.epsilon(1e-6).lower <= sharp.epsilon(1e-6)


@pytest.mark.parametrize("steps", [1, 50])
@pytest.mark.parametrize("rate", [1e-3, 0.2])
def test_samples_keep_their_tail(steps, rate):
    """rho and mu of sampled Gaussians are those without sampling, exactly."""
    total = steps * privacy.gaussian(2.0).poisson(rate)
    assert total.gdp().lower == pytest.approx(math.sqrt(steps) / 2, rel=1e-10)
    assert total.gdp() >= math.sqrt(steps) / 2
    assert total.zcdp().lower == pytest.approx(steps / 8, rel=1e-10)
    assert total.zcdp() >= steps / 8


def test_no_smaller_mu_holds():
    """Far enough out, the sampled profile passes that of a Gaussian of a slightly smaller mu."""
    with mpmath.workdps(60):
        q, mu, e = mpf(0.01), mpf("0.9"), mpf(60)
        z = mpmath.log((mpmath.exp(e) - 1 + q) / q) + mpf(1) / 2
        sampled = (1 - q) * mpmath.ncdf(-z) + q * mpmath.ncdf(1 - z)
        sampled -= mpmath.exp(e) * mpmath.ncdf(-z)
        plain = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        assert sampled > plain
    found = privacy.gaussian(1.0).poisson(0.01).gdp()
    assert 0.9 < found.lower <= 1 <= found.upper


def test_mixtures_are_named_as_upper_bounds():
    """Beside an atomic law only an interval is known, and the method says so."""
    total = privacy.gaussian(1.0).poisson(0.1) + privacy.laplace(1.0)
    assert total.gdp().lower < total.gdp().upper
    assert "upper bound" in total.gdp().method
    assert "upper bound" in total.zcdp().method


def test_moments_beyond_the_doubles_bend_nothing():
    """Where a moment is infinite K'' is only known to be at least 0, and nothing is undefined."""
    c = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    k = np.array([1.0, 4.0, 9.0, np.inf, np.inf])
    found = _bends(c, k, k, 1.0)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found[0] == pytest.approx(2 * math.exp(-2.0))
    assert (found[2:] == 0).all()
