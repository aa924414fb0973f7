"""Rare large losses of few sparse samples: against an integral, a grid, and other cuts."""

import math

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.numeric._balls import precision
from dither.privacy.engines.balls import jump_plan
from dither.privacy.engines.balls.jumps import JumpContour, _series
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from privacy.two_samples import twice


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta"),
    [
        (0.0005638, 0.5116, 59, 1.5e-11),
        (0.0001106, 0.592, 162, 4.08e-14),
        (1e-3, 0.5, 30, 1e-20),
        (1e-4, 1, 30, 1e-20),
        (2e-4, 0.5, 30, 1e-20),
        (1e-4, 0.5, 60, 1e-20),
        (1e-4, 0.7, 30, 1e-20),
        (1e-4, 0.5, 30, 1e-8),
        (1e-4, 0.5, 30, 1e-12),
        (1e-6, 1, 2, 1e-20),
        (0.01, 0.5, 30, 1e-20),
    ],
)
def test_few_sparse_samples_are_sharp(rate, noise, steps, delta):
    """Where neither doubles nor a line over the whole law will do. The grid knows nothing of it."""
    found = (steps * privacy.gaussian(noise).poisson(rate)).epsilon(delta)
    assert found.upper - found.lower <= 1e-11 * found.upper
    term, e = SampledGaussianTerm(noise, rate, True, steps), float(found)
    low, high = Grid([term], log_delta=None, epsilon=e, points=1 << 13, cap=e).bounds(e)
    assert low <= math.log(delta) <= high


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon"),
    [(1.0, 1e-6, 0.0028568882730), (0.5, 1e-3, 5.0), (0.7, 0.02, 2.0), (2.0, 1e-3, 0.02)],
)
def test_two_samples_agree_with_an_integral(noise, rate, epsilon):
    """One dimension is left, and mpmath integrates it."""
    mpmath.mp.dps, before = 40, mpmath.mp.dps
    try:
        truth = twice(noise, rate, epsilon)
        term = SampledGaussianTerm(noise, rate, True, 2)
        found = JumpContour(term, epsilon=epsilon, log_delta=float(mpmath.log(truth)))
        low, high = found.bounds(epsilon)
        assert low <= mpmath.log(truth) <= high
        assert high - low < 1e-11
    finally:
        mpmath.mp.dps = before


@pytest.mark.parametrize("size", [1, 2])
def test_where_one_cuts_is_free(size, monkeypatch):
    """Widths and places of the edges are arbitrary: all intervals overlap, at places around too."""
    term = SampledGaussianTerm(0.8, 0.003, True, 25, size)
    e, ends = 1.7, {at: [] for at in (1.5, 1.7, 1.72)}
    guess = SampledGaussianTerm(0.8, 0.003, True, 1, size)
    near = JumpContour(guess, epsilon=e, log_delta=-15.0).bounds(e)[0] + math.log(25)
    for width, part in [(0.05, 1.0), (0.08, 1.0), (0.08, 0.4), (0.13, 1.0), (0.2, 1.0), (0.2, 0.4)]:
        monkeypatch.setattr(jump_plan, "_WIDTHS", (width,))
        monkeypatch.setattr(jump_plan, "_SHARPER", (part,))
        found = JumpContour(term, epsilon=e, log_delta=near)
        for at, seen in ends.items():
            if found.certified:
                seen.append(found.bounds(at))
    assert len(ends[e]) >= 3
    for seen in ends.values():
        assert max(low for low, _ in seen) <= min(high for _, high in seen)
    assert max(high - low for low, high in ends[1.7]) < 1e-11


def test_what_decays_is_bounded():
    """`faded` is above J's modulus on every later node, and not far above on the last."""
    term = SampledGaussianTerm(0.5, 1e-4, True, 30)
    found = JumpContour(term, epsilon=9.6, log_delta=math.log(1e-20))
    plan = found.plan
    with precision(120):
        line = found._line(plan.c, 2 * plan.nodes, jump=True)
        seen = [float(abs(value).upper().log()) for value in line[plan.nodes :]]
    assert max(seen) <= plan.faded
    assert max(seen) >= plan.faded - 15


def test_a_body_is_not_forgotten():
    """Cut so high that the body reaches epsilon by itself, the interval stays wide, not wrong."""
    term = SampledGaussianTerm(0.5, 1e-4, True, 30)
    e, truth = 9.644129867311, math.log(1e-20)
    sharp = JumpContour(term, epsilon=e, log_delta=truth)
    rough = JumpContour(term, epsilon=e, log_delta=truth, tolerance=1e-2)
    low, high = rough.bounds(e)
    assert low <= sharp.bounds(e)[0]
    assert sharp.bounds(e)[1] <= high
    assert 1e-6 < high - low < 0.1
    # Its place moved up by four widths, a body that mattered is in the bound again.
    wide = JumpContour(term, epsilon=e + 3, log_delta=truth - 8)
    low, high = wide.bounds(e)
    assert low <= truth + 1e-9
    assert high >= truth - 1e-9


def test_powers_without_their_difference():
    """x^n - y^n over x - y, for close x and y, keeps its digits."""
    with precision(80) as flint:
        x, y = flint.acb(1, 2), flint.acb(1, 2) + flint.acb(flint.arb(2) ** -70)
        for n in (1, 2, 3, 30, 1000):
            plain = sum((x**k * y ** (n - 1 - k) for k in range(n)), flint.acb(0))
            found = _series(x, y, n)
            assert found.overlaps(plain)
            assert found.rel_accuracy_bits() > 60


def test_refusals_of_plans():
    """At epsilon 0, or where all but everything is sampled, there is no such cut."""
    assert not JumpContour(
        SampledGaussianTerm(1, 0.1, True, 5), epsilon=0.0, log_delta=-3
    ).certified
    dense = SampledGaussianTerm(4.0, 0.5, True, 1000)
    assert not JumpContour(dense, epsilon=4.0, log_delta=-12.0).certified
    assert np.isfinite(float((5 * privacy.gaussian(1).poisson(0.1)).delta(0)))
