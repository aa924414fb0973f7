"""The least rho and mu of samples, and the Rényi profile of bounded ranges, held against truth."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy.laws.classes import BoundedRange

mpf = mpmath.mpf


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
