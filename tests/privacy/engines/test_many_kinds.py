"""Many kinds of sampled Gaussians, taken together: as one by one, and within each other's ends."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.accounting import calibrate
from dither.privacy._side import side
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm

KINDS = [(0.6 + 0.13 * i, 0.002 * 1.3**i, 1 + i % 3) for i in range(14)]
"""Noise, rates up to 0.06, and repetitions."""


def schedule(kinds):
    """The loss of a schedule of noise and rates."""
    return privacy.compose(*(k * privacy.gaussian(s).poisson(g) for s, g, k in kinds))


def terms(removal):
    """All together, and one by one."""
    columns = np.array(KINDS, dtype=float).T
    singles = [SampledGaussianTerm(s, g, removal, k) for s, g, k in KINDS]
    return SampledGaussiansTerm(*columns, removal), singles


@pytest.mark.parametrize("removal", [True, False])
def test_moments_are_those_one_by_one(removal):
    """On the real line, on vertical lines, and their variation."""
    together, singles = terms(removal)
    for c in (0.01, 1.0, 8.0, 20.0):
        low, high = together.moment_ends(c)
        ends = [one.moment_ends(c) for one in singles]
        assert low <= sum(b for _, b in ends)
        assert high >= sum(a for a, _ in ends)
        assert high - low < 1e-9 * max(1.0, abs(high))
    u = np.arange(60) * 0.7
    base, value, slack = together.along(5.0, u)
    found = [one.along(5.0, u) for one in singles]
    other = sum(v for _, v, _ in found) + sum(b for b, _, _ in found)
    # Logarithms of moduli, and angles up to turns.
    gap = base + value - other
    turns = np.round(gap.imag / (2 * math.pi)) * 2 * math.pi
    assert np.abs(gap.real).max() <= (slack + sum(s for _, _, s in found)).max()
    assert np.abs(gap.imag - turns).max() <= (slack + sum(s for _, _, s in found)).max()
    one = sum(k * g * math.erf(1 / (s * math.sqrt(8))) for s, g, k in KINDS)
    assert one <= together.variation() <= one * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("removal", [True, False])
def test_fades_bound_the_line(removal):
    """Nowhere beyond u is the modulus larger than the bound there."""
    together, _ = terms(removal)
    u = np.linspace(0, 60, 241)
    _, value, _ = together.along(4.0, u)
    beyond = np.maximum.accumulate(value.real[::-1])[::-1]
    for fade in (together.fade(4.0, u), together.quick_fade(4.0, u)):
        assert (beyond <= fade + 1e-9).all()


def test_a_schedule_is_answered_as_its_kinds():
    """The same interval as of kinds taken one by one, which a third of the kinds still are."""
    few, many = schedule(KINDS[:10]), schedule(KINDS)
    rest = [SampledGaussianTerm(s, g, True, k) for s, g, k in KINDS]
    assert any(isinstance(t, SampledGaussiansTerm) for t in side(many.parts, True).lower_terms)
    assert not any(isinstance(t, SampledGaussiansTerm) for t in side(few.parts, True).lower_terms)
    epsilon = many.epsilon(1e-6)
    assert epsilon.upper - epsilon.lower < 1e-6 * epsilon
    delta = many.delta(float(epsilon))
    assert delta.lower <= 1e-6 * (1 + 1e-6)
    assert delta.upper <= 1e-6
    assert few.epsilon(1e-6) < epsilon
    # A grid of the same kinds, one by one.
    grid = Grid(rest, log_delta=None, epsilon=float(epsilon), points=1 << 12)
    low, high = grid.bounds(float(epsilon))
    assert low <= math.log(1e-6) <= high
    assert high - low < 0.1


def test_kinds_that_are_alike_are_as_their_repetition():
    """Twenty kinds within 1e-9 of one another, and twenty runs of that one."""
    near = [(1.0 + 1e-10 * i, 0.02, 5) for i in range(20)]
    one = (100 * privacy.gaussian(1.0).poisson(0.02)).epsilon(1e-6)
    found = schedule(near).epsilon(1e-6)
    assert found.lower <= one.upper
    assert one.lower * (1 - 1e-8) <= found.upper
    assert float(found) == pytest.approx(float(one), rel=1e-7)


@pytest.mark.slow
def test_three_hundred_kinds():
    """Both ends, to nine digits, and in both directions."""
    found = schedule([(1 + 0.01 * i, 0.01 + 0.0001 * i, 1) for i in range(300)])
    epsilon = found.epsilon(1e-6)
    assert epsilon.lower <= 0.86150518717 <= epsilon.upper * (1 + 1e-11)
    assert epsilon.upper - epsilon.lower < 1e-7


def test_calibration_passes_by_what_is_far_from_its_promise():
    """A billion steps; and a promise that is kept at once, or never."""
    found = calibrate(lambda s: 10**9 * privacy.gaussian(s).poisson(1e-4), epsilon=1.0, delta=1e-6)
    assert float(found) == pytest.approx(13.378351514839, rel=1e-10)
    assert found.upper - found.lower < 1e-9
    assert (10**9 * privacy.gaussian(float(found)).poisson(1e-4)).delta(1.0) <= 1e-6
