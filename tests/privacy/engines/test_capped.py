"""Capped losses of few sparse samples: against an integral, other engines, and other caps."""

import math

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.numeric._balls import precision, transforms
from dither.privacy.engines.balls import capped as ball_capped
from dither.privacy.engines.balls.capped import CappedContour
from dither.privacy.engines.balls.contour import BallContour
from dither.privacy.engines.balls.jumps import JumpContour
from dither.privacy.engines.balls.laws import SampledGaussianLaw
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from privacy.two_samples import twice


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta"),
    [
        (9.44e-6, 6.82, 10, 3.2e-20),
        (6.74e-6, 7.55, 3, 8.3e-20),
        (1.86e-4, 5.29, 4, 8.2e-9),
        (7.56e-6, 7.31, 9, 2.1e-8),
        (6.27e-5, 2.22, 11, 3.2e-20),
        (1.9305e-5, 1.0186, 19, 5.24e-7),
        (2.16e-6, 4.78, 10, 8.5e-8),
    ],
)
def test_few_sparse_samples_with_much_noise_are_sharp(rate, noise, steps, delta):
    """Their losses are nearly lognormal, and so is the grid's answer, which knows no cap."""
    found = (steps * privacy.gaussian(noise).poisson(rate)).epsilon(delta)
    assert found.upper - found.lower <= 1e-8 * found.upper
    e = float(found)
    for removal in (True, False):
        term = SampledGaussianTerm(noise, rate, removal, steps)
        low, _ = Grid([term], log_delta=None, epsilon=e, points=1 << 13, cap=e).bounds(e)
        assert low <= math.log(delta) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("noise", "rate", "epsilon"),
    [(6.0, 1e-5, 2e-5), (3.0, 1e-3, 0.01), (1.5, 0.02, 0.4), (2.0, 0.3, 2.0)],
)
def test_two_samples_agree_with_an_integral(noise, rate, epsilon):
    """One dimension is left, and mpmath integrates it."""
    mpmath.mp.dps, before = 40, mpmath.mp.dps
    try:
        truth = mpmath.log(twice(noise, rate, epsilon))
        term = SampledGaussianTerm(noise, rate, True, 2)
        found = CappedContour(term, epsilon=epsilon, log_delta=float(truth))
        low, high = found.bounds(epsilon)
        assert low <= truth <= high
        assert high - low < 1e-11
    finally:
        mpmath.mp.dps = before


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_cap_is_free(size, monkeypatch):
    """Its place and width are arbitrary, and jumps have none: all overlap, at places around too."""
    term = SampledGaussianTerm(2.5, 0.0006, True, 25, size)
    e, ends = 0.012 * size, {}
    near = -34.0
    for factor in (1.1, 1.4, 1.8, 2.6, 4.0):
        monkeypatch.setattr(ball_capped, "_CAPS", (factor,))
        found = CappedContour(term, epsilon=e, log_delta=near)
        assert found.certified
        for at in (0.9 * e, e, 1.02 * e):
            ends.setdefault(at, []).append(found.bounds(at))
    jumps = JumpContour(term, epsilon=e, log_delta=near, tolerance=1e-3, dearest=3e7)
    for at, seen in ends.items():
        if at == e:
            seen.append(jumps.bounds(at))
        assert max(low for low, _ in seen) <= min(high for _, high in seen)
    assert max(high - low for low, high in ends[e][:-1]) < 1e-9
    assert np.ptp(jumps.bounds(e)) < 0.01


def test_it_agrees_with_a_line_over_the_whole_law():
    """`BallContour` cuts nothing; both are sharp where noise is small enough for one, and large."""
    term = SampledGaussianTerm(3.72, 0.00181, True, 20)
    found = CappedContour(term, epsilon=0.0242, log_delta=-45.4)
    whole = BallContour(
        [SampledGaussianLaw(term)], epsilon=0.0242, log_delta=-45.4, tilt=300.0, tolerance=1e-9
    )
    low, high = found.bounds(0.0242)
    least, most = whole.bounds(0.0242)
    assert high - low < 1e-11
    assert most - least < 1e-6
    assert max(low, least) <= min(high, most)


def test_a_leak_is_not_forgotten():
    """So wide a cap that small losses are far too makes the interval wide, and not wrong."""
    term = SampledGaussianTerm(5.0, 1e-4, True, 6)
    sharp = CappedContour(term, epsilon=2e-4, log_delta=-20.0)
    truth = sharp.bounds(2e-4)
    rough = CappedContour(term, epsilon=2e-4, log_delta=-20.0, tolerance=1e-2)
    low, high = rough.bounds(2e-4)
    assert low <= truth[0] < truth[1] <= high
    assert 1e-9 < high - low < 0.1
    # Far beyond where it was made for, some of what leaks does not suffice.
    far = sharp.bounds(1e-3)
    other = CappedContour(term, epsilon=1e-3, log_delta=-45.0).bounds(1e-3)
    assert far[0] <= other[0]
    assert other[1] <= far[1]


def test_what_decays_is_bounded():
    """`faded` is above N's modulus on every later node, and not far above on the last."""
    term = SampledGaussianTerm(3.0, 1e-4, True, 5)
    found = CappedContour(term, epsilon=1e-3, log_delta=-40.0)
    plan = found.plan
    with precision(160) as flint:
        h, y, a = flint.arb(plan.h), flint.arb(plan.y), found._ratio.a
        points = [flint.acb(h * i, y) for i in range(plan.first, plan.last + 1)]
        ratios = [found._ratio(z) for z in points]
        kept = [(found._cap - (a * z).exp()) / found._wide / flint.arb(2).sqrt() for z in points]
        masses = [
            h / (2 * flint.arb.pi()).sqrt() * ((1 + plan.c) * r - z * z / 2).exp() * (-k).erfc() / 2
            for z, r, k in zip(points, ratios, kept, strict=True)
        ]
        line = transforms(masses, ratios, found._step, 2 * plan.nodes)
        seen = [float(abs(value).upper().log()) for value in line[plan.nodes :]]
    assert max(seen) <= plan.faded
    assert max(seen) >= plan.faded - 6


def test_refusals_of_plans():
    """At epsilon 0, where all are sampled, or where it would be dear, there is none."""
    assert not CappedContour(
        SampledGaussianTerm(4, 0.1, True, 5), epsilon=0.0, log_delta=-3
    ).certified
    assert not CappedContour(
        SampledGaussianTerm(4, 1.0, True, 5), epsilon=1.0, log_delta=-3
    ).certified
    few = SampledGaussianTerm(5.0, 1e-4, True, 6)
    dear = CappedContour(few, epsilon=2e-4, log_delta=-20.0, dearest=1e3)
    assert not dear.certified
    assert 1e3 < dear.work < 1e6
    assert CappedContour(few, epsilon=2e-4, log_delta=-20.0).bounds(0.0) == (-math.inf, 0.0)


@pytest.mark.parametrize("size", [1, 3])
def test_a_unit_that_is_added_has_bounded_losses(size):
    """So large tilts are of use: moments, their fading and the modulus there, by other means."""
    term = SampledGaussianTerm(6.0, 1e-5, False, 1, size)
    c = 3e5
    assert term.reach > c
    plain = float(term.log_moment(np.array([c]))[0])
    with precision(120) as flint:
        law = SampledGaussianLaw(term)
        moment = law.moment(c, 80)
        assert abs(float(moment.log()) - plain) < 1e-9
        line = law.line(c, 2e5, 40, 80)
        assert line[0].real.overlaps(moment)
        logs = [float(abs(value / moment).upper().log()) for value in line]
        # One run by another rule: adaptive, on the real line.
        a, g = 1 / flint.arb(6), flint.arb(1e-5)
        weights = [math.comb(size, j) * g**j * (1 - g) ** (size - j) for j in range(size + 1)]

        def integrand(z, _):
            w = sum(v * (j * a * z - (j * a) ** 2 / 2).exp() for j, v in enumerate(weights))
            t = flint.acb(c, 2e5 * 7)
            return (-t * w.log() - z * z / 2).exp() / (2 * flint.arb.pi()).sqrt()

        direct = flint.acb.integral(integrand, flint.acb(-25), flint.acb(25))
        assert abs(direct - line[7]).upper() < 1e-15
    u = 2e5 * np.arange(40.0)
    fade = term.fade(c, u)
    assert np.all(fade >= np.array(logs) - 1e-12)
    assert fade[-1] < -2
    y, z = 0.4 * math.pi / (size / 6.0), np.linspace(-8, 90, 400)
    w = sum(v * np.exp(j * (z + 1j * y) / 6 - (j / 6) ** 2 / 2) for j, v in enumerate(term.weights))
    least = term._least_modulus(y, term.log_ratio(z)[0])
    assert np.all(least <= np.log(np.abs(w)) + 1e-12)
    assert np.all(least >= np.log(np.abs(w)) - 1.5)


@pytest.mark.parametrize("epsilon", [2e-4, 4e-4])
def test_what_is_far_and_what_leaks(epsilon):
    """Of one repetition both are integrals: what far losses have, and how far they fall short."""
    rate, a = 1e-4, 0.2
    term = SampledGaussianTerm(5.0, rate, True, 1)
    found = CappedContour(term, epsilon=2e-4, log_delta=-15.0, tolerance=1e-3)
    cap, width = found.plan.bounds.cap, found.plan.bounds.width
    with mpmath.workdps(30):

        def far(z):
            return mpmath.npdf(z) * mpmath.ncdf((mpmath.exp(a * z) - cap) / width)

        def ratio(z):
            return 1 - rate + rate * mpmath.exp(a * z - a * a / 2)

        bend = (mpmath.log((mpmath.expm1(epsilon) + rate) / rate) + a * a / 2) / a
        places = [-12, -4, 0, 4, bend - 2, bend]
        short = mpmath.quad(lambda z: far(z) * (mpmath.exp(epsilon) - ratio(z)), places)
        over = mpmath.quad(far, [*places, bend + 2, bend + 5, bend + 12])
        taken = mpmath.quad(lambda z: far(z) * ratio(z), [*places, bend + 2, bend + 5, bend + 12])
    assert float(found._far_other) == pytest.approx(float(over), rel=1e-6)
    assert float(found._far) == pytest.approx(float(taken), rel=1e-6)
    with precision(80) as flint:
        leak = float(found._leak(flint.arb(epsilon)))
    # All that fall short are charged as if they did by as much as can be, and cell by cell.
    assert short < leak < 20 * short
