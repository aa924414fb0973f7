"""Half-widths of sums of noises, against exact discrete sums and numerical inversion."""

import itertools
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from scipy import stats

from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, half_width, linear_interval
from dither.mechanisms._combination import (
    SummedNoise,
    _laplace_normal_table,
    _look_up,
    _two_laplace_table,
)
from dither.plan.lowering.levels import Levels

SCALES = (F(1, 5), F(1, 2), F(1), F(2), F(20))
COEFFICIENTS = (0.01, 0.1, 0.3, 0.5, 0.77, 1.0, 1.7, 3.0, 10.0, 33.3)


def pmf(mechanism):
    """Support and probabilities of the discrete law."""
    if isinstance(mechanism, DiscreteLaplace):
        s = float(mechanism.scale)
        z = np.arange(-int(40 * s) - 4, int(40 * s) + 5)
        p = np.exp(-np.abs(z) / s)
    else:
        s = float(mechanism.sigma2) ** 0.5
        z = np.arange(-int(9 * s) - 4, int(9 * s) + 5)
        p = np.exp(-((z / s) ** 2) / 2)
    return z, p / p.sum()


def laws(kinds, scales):
    """Mechanisms from a string of L and G."""
    return [
        DiscreteLaplace(s) if kind == "L" else DiscreteGaussian(s**2)
        for kind, s in zip(kinds, scales, strict=True)
    ]


@pytest.mark.parametrize("kinds", ["LL", "LG", "GL", "GG"])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_two_terms_cover_by_exact_sums(kinds, confidence):
    """Pr[|Z1 + c·Z2| <= q], summed over both discrete laws, is never below the confidence."""
    for scales in itertools.product(SCALES, repeat=2):
        one, two = laws(kinds, scales)
        (z1, p1), (z2, p2) = pmf(one), pmf(two)
        joint = p1[:, None] * p2[None, :]
        widths = half_width([(1.0, one), (np.array(COEFFICIENTS), two)], confidence)
        for c, width in zip(COEFFICIENTS, widths, strict=True):
            sums = np.abs(z1[:, None] + c * z2[None, :])
            assert joint[sums <= width * (1 + 1e-12)].sum() >= confidence


@pytest.mark.parametrize("kinds", ["LL", "LG", "GG", "LLL", "LLG", "LGG", "LLLLL"])
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_large_scales_against_inversion(kinds, confidence):
    """At large scales q is at least the continuous quantile, and at most a few percent above.

    The quantile comes from inverting the characteristic function on a grid of period 80 standard
    deviations. Low confidences of many Laplace terms are the loosest.
    """
    rng = np.random.default_rng(7)
    for _ in range(15):
        scales = [F(int(s)) for s in 10**6 * np.exp(rng.normal(0, 1, len(kinds)))]
        mechanisms = laws(kinds, scales)
        found = float(half_width([(1.0, m) for m in mechanisms], confidence))
        variance = sum(m.variance for m in mechanisms)
        step = 2 * np.pi / 80
        u = np.arange(1, 40_000) * step
        phi = np.ones_like(u)
        for m in mechanisms:
            if isinstance(m, DiscreteLaplace):
                phi /= 1 + (float(m.scale) * u) ** 2 / variance
            else:
                phi *= np.exp(-float(m.sigma2) * u**2 / 2 / variance)

        def inside(t, u=u, phi=phi, step=step):
            return (2 / np.pi) * step * (t / 2 + (np.sin(t * u) / u * phi).sum())

        t = found / variance**0.5
        assert inside(t) >= confidence - 1e-6
        slack = 0.001 if len(kinds) == 2 else 0.13 if confidence < 0.9 else 0.05
        assert inside(t * (1 - slack)) < confidence


def beyond(t, share, other, normal):
    """Pr[|X + Y| > t] at many digits: a Laplace of deviation ``share`` and one more noise."""
    t, a, b = (mpmath.mpf(x) for x in (t, share, other))
    a /= mpmath.sqrt(2)
    if not normal:
        b /= mpmath.sqrt(2)
        if abs(a - b) < 1e-20:
            return (1 + t / (2 * a)) * mpmath.exp(-t / a)
        return (a**2 * mpmath.exp(-t / a) - b**2 * mpmath.exp(-t / b)) / (a**2 - b**2)
    root, lift = mpmath.sqrt(2), b**2 / (2 * a**2)
    low, high = (b / a - t / b) / root, (b / a + t / b) / root
    first = mpmath.exp(lift - t / a) * mpmath.erfc(low)
    return mpmath.erfc(t / b / root) + (first - mpmath.exp(lift + t / a) * mpmath.erfc(high)) / 2


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 1 - 1e-6, 1 - 1e-9])
@pytest.mark.parametrize("normal", [False, True])
def test_tables_are_at_least_the_quantile(confidence, normal):
    """On and between their points, at seventy digits: no tail is above what is allowed."""
    draw = np.random.default_rng(5)
    # A Laplace of deviation 1 and one of r, or a Laplace of 1 - u and a normal law of u.
    table = _laplace_normal_table(confidence) if normal else _two_laplace_table(confidence)
    knots = np.array([1, 2, 511, 512, 1022, 1023, *([] if normal else [1024])]) / 1024
    with mpmath.workdps(70):
        for at in [*knots.tolist(), *draw.uniform(0.001, 0.999, 40).tolist(), 0.99951, 0.00049]:
            t = float(_look_up(table, np.array(at)))
            tail = beyond(t, 1 - mpmath.mpf(at) if normal else 1, at, normal)
            allowed = 1 - mpmath.mpf(confidence)
            assert allowed * (1 - mpmath.mpf("1e-3")) < tail <= allowed


def test_one_term_is_exact():
    """One term is the discrete law's own half-width, scaled."""
    law = DiscreteLaplace(F(7, 3))
    assert half_width([(np.array([0.0, -2.0]), law)], 0.9).tolist() == [0, 2 * law.half_width(0.9)]


def test_no_noise_in_a_term():
    """A zero coefficient adds nothing but keeps its shape."""
    one, two = DiscreteLaplace(F(1000)), DiscreteLaplace(F(1000))
    alone, both = half_width([(1.0, one), (np.array([0.0, 1.0]), two)], 0.95)
    assert alone == pytest.approx(1000 * np.log(20), rel=1e-3)
    assert both > 1.3 * alone
    assert half_width([(0.0, one), (0.0, two)], 0.95) == 0


def test_linear_interval_is_centred():
    """An interval is the estimate plus and minus q."""
    terms = [(2.0, DiscreteGaussian(F(100))), (1.0, DiscreteGaussian(F(25)))]
    lower, upper = linear_interval([1.0, 5.0], terms, 0.95)
    np.testing.assert_allclose((lower + upper) / 2, [1.0, 5.0])
    width = stats.norm.ppf(0.975) * 425**0.5
    np.testing.assert_allclose((upper - lower) / 2, width + 1)  # half a step of the larger term


def test_refusals():
    """Nothing to combine, or an impossible confidence."""
    with pytest.raises(ArgumentError, match="terms"):
        half_width([], 0.95)
    with pytest.raises(ArgumentError, match="confidence"):
        half_width([(1.0, DiscreteLaplace(F(1)))], 1.0)


FITTED = [
    Levels((4,), ((0,), ())),
    Levels((2, 2), ((0, 1), (0,), ())),
    Levels((3, 5), ((0, 1), (0,), (1,), ())),
    Levels((40, 2), ((0, 1), (0,), ())),
]


@pytest.mark.parametrize("levels", FITTED, ids=str)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.99])
def test_sums_of_many_draws_against_inversion(levels, confidence):
    """Weights of levels that were made to add up: q is the continuous quantile at least."""
    noise = DiscreteLaplace(F(1000))
    for at in range(len(levels.sets)):
        weights = levels.weights(at)
        width = float(half_width([(1.0, SummedNoise(noise, tuple(weights)))], confidence)) / 1000
        t = (np.arange(200_000) + 0.5) * 2e-3
        law = np.prod([(1 + (w * t) ** 2) ** -float(n) for w, n in weights], axis=0)
        inside = 2 / np.pi * np.sum(np.sin(width * t) / t * law) * 2e-3
        # Low confidences of many draws are the loosest.
        assert confidence - 1e-5 <= inside <= confidence + (0.12 if confidence < 0.8 else 0.06)


@pytest.mark.parametrize("scale", [F(1, 5), F(1, 2), F(1), F(3)])
@pytest.mark.parametrize("kind", ["L", "G"])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_sums_of_few_draws_cover_by_exact_sums(scale, kind, confidence):
    """The discrete law of a cell of two levels, on the lattice of its weights' fifths."""
    levels = Levels((4,), ((0,), ()))
    (noise,) = laws(kind, (scale,))
    z, p = pmf(noise)
    for at in range(2):
        joint, offset = np.ones(1), 0
        for weight, number in levels.weights(at):
            fifths = round(abs(5 * weight))
            spread = np.zeros(fifths * (len(z) - 1) + 1)
            spread[::fifths] = p
            for _ in range(number):
                joint, offset = np.convolve(joint, spread), offset + fifths * int(z[-1])
        sums = np.abs(np.arange(len(joint)) - offset) / 5
        width = half_width([(1.0, SummedNoise(noise, tuple(levels.weights(at))))], confidence)
        assert joint[sums <= width * (1 + 1e-12)].sum() >= confidence


def test_one_draw_is_itself():
    """A sum of a single draw has the width of a Laplace, and half a step."""
    noise = DiscreteLaplace(F(50))
    assert SummedNoise(noise, ((1.0, 1),)).half_width(0.95) == pytest.approx(150, abs=1)
