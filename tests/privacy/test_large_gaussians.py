"""Gaussians of very large loss, where a rounding of the parameter is worth many of delta."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath as mp

from dither import privacy


def test_delta_holds_at_any_deviation() -> None:
    """400 totals with mu up to 30,000, down to delta 1e-150, against 80 digits."""
    chance = random.Random(11)
    seen = 0
    with mp.workdps(80):
        for _ in range(400):
            scale = 10 ** chance.uniform(-3, 0)
            count = chance.choice([1, 1, 2, 7, 1000])
            mu = mp.sqrt(count) / _exact(scale)
            epsilon = float(mu * mu / 2 + chance.uniform(-2, 25) * mu)
            if epsilon <= 0:
                continue
            found = (count * privacy.gaussian(scale)).delta(epsilon)
            truth = _delta(mu, _exact(epsilon))
            assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
            assert found.upper - found.lower <= 1e-8 * found.upper
            seen += mu > 1000
    assert seen > 50


def test_epsilon_holds_at_any_deviation() -> None:
    """The inverse: delta at its two ends lies on either side of the target."""
    with mp.workdps(80):
        for scale in (0.001, 0.0037, 0.02, 0.5):
            for delta in (0.1, 1e-6, 1e-40):
                found = (100 * privacy.gaussian(scale)).epsilon(delta)
                mu = 10 / _exact(scale)
                assert _delta(mu, _exact(found.upper)) <= delta <= _delta(mu, _exact(found.lower))
                assert math.isclose(found.lower, found.upper, rel_tol=1e-11)


def _exact(number: float) -> mp.mpf:
    fraction = Fraction(repr(float(number)))
    return mp.mpf(fraction.numerator) / fraction.denominator


def _delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
