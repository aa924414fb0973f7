"""Ball arithmetic: what it claims to prove, against rigorous integration and other engines."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.numeric._balls import down, powers, precision, up
from dither.privacy.engines.balls import contour as ball_contour
from dither.privacy.engines.balls.closed import (
    SampledGaussianProfile,
    SeparatedLaplacesProfile,
    SeparatedProfile,
)
from dither.privacy.engines.balls.contour import BallContour, laws_of
from dither.privacy.engines.balls.laws import SampledGaussianLaw, law_of
from dither.privacy.engines.grid import Grid
from dither.privacy.engines.search import best_tilt
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import SampledTerm

REFERENCE = Path(__file__).parents[4] / "shared" / "reference" / "sampled_gaussian_epsilons.csv"


def integrated(flint, term, c, u):
    """M(c + iu) of one repetition by Arb's own adaptive quadrature, its tails left out."""
    arb, acb = flint.arb, flint.acb
    a, g, k = 1 / arb(term.noise_multiplier), arb(term.rate), term.k
    weights = [arb(math.comb(k, j)) * g**j * (1 - g) ** (k - j) for j in range(k + 1)]
    t = acb(c, u)
    power = 1 + t if term.removal else -t

    def density(z, _):
        ratio = sum(
            (w * (j * a * z - (j * a) ** 2 / 2).exp() for j, w in enumerate(weights)), acb(0)
        )
        return (power * ratio.log() - z * z / 2).exp()

    far = 14 + (1 + c) * term.k * term.a
    return acb.integral(density, -14, far) / (2 * arb.pi()).sqrt()


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize(("noise", "rate", "size"), [(1.0, 0.01, 1), (0.6, 0.2, 1), (3.0, 0.1, 3)])
def test_generating_functions_hold_what_arb_integrates(noise, rate, size, removal):
    """Nodes off the real axis, ends and discretisation: the balls overlap, and are small."""
    term = SampledGaussianTerm(noise, rate, removal, 1, size)
    law = SampledGaussianLaw(term)
    with precision(120) as flint:
        line = law.line(1.5, 7.0, 30, 90)
        small = flint.arb(2) ** -60
        for j in (0, 1, 5, 29):
            exact = integrated(flint, term, 1.5, 7.0 * j)
            gap = line[j] - exact
            # 14 deviations leave out less than 1e-40.
            assert abs(gap.real) < small
            assert abs(gap.imag) < small
            widened = exact + flint.acb(flint.arb(0, 1e-38), flint.arb(0, 1e-38))
            assert widened.overlaps(line[j])
            assert line[j].rel_accuracy_bits() > 60
        assert law.moment(1.5, 60).overlaps(line[0].real)


def test_what_decays_is_bounded():
    """`fade` is above the true modulus from there on, and not by much far out."""
    for removal in (True, False):
        term = SampledGaussianTerm(1.0, 0.02, removal, 4)
        u = 50.0 * np.arange(1, 60)
        bound = term.fade(4.0, u)
        assert np.all(term.quick_fade(4.0, u) >= bound)
        with precision(90) as flint:
            line = SampledGaussianLaw(term).line(4.0, 50.0, 60, 80)
            true = [float((abs(v) / abs(line[0])).upper().log()) for v in line[1:]]
            assert flint.ctx.prec == 90
        true = np.maximum.accumulate(np.array(true)[::-1])[::-1]
        assert np.all(bound >= true - 1e-12)
        assert bound[-1] <= 0.85 * true[-1]


@pytest.mark.parametrize("removal", [True, False])
def test_every_line_says_the_same(removal, monkeypatch):
    """The line and its period are free: all intervals overlap, the narrow ones at 1e-12."""
    term = SampledGaussianTerm(6.5433, 0.000374, removal, 38_626)
    laws, e, size = laws_of([term]), 0.0648354168, math.log(1e-11)
    tilt, _ = best_tilt(term.log_moment, log_delta=None, epsilon=e, reach=term.reach)
    ends = []
    for part in (1.0, 0.7, 0.5, 0.35, 0.25, 0.15):
        monkeypatch.setattr(ball_contour, "_PARTS", (part,))
        contour = BallContour(laws, epsilon=e, log_delta=size, tilt=tilt)
        if contour.certified:
            ends.append(contour.bounds(e))
    assert len(ends) >= 4
    assert max(low for low, _ in ends) <= min(high for _, high in ends)
    assert min(high - low for low, high in ends) < 1e-12


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "delta", "truth"),
    [
        (0.002545, 2.1662, 249, 1e-19, "0.18949689892423567932"),
        (0.000767, 2.1496, 11_034, 1e-19, "0.34082580662300699774"),
        (0.003357, 2.7726, 263, 1e-16, "0.16675257675412254231"),
    ],
)
def test_small_deltas_of_sparse_samples(rate, noise, steps, delta, truth):
    """Doubles lose all digits there. Truth: another program's contours, at 140 bits."""
    found = (steps * privacy.gaussian(noise).poisson(rate)).epsilon(delta)
    assert Fraction(found.lower) <= Fraction(truth) <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-11 * found.upper


@pytest.mark.skipif(not REFERENCE.exists(), reason="reference values are not at hand")
def test_reference_epsilons():
    """Forty random settings: no interval is wrong, none wider than 1e-9."""
    with REFERENCE.open() as lines:
        for row in csv.DictReader(lines):
            loss = privacy.gaussian(float(row["noise_multiplier"])).poisson(float(row["rate"]))
            found = (int(row["steps"]) * loss).epsilon(float(row["delta"]))
            assert Fraction(found.lower) <= Fraction(row["epsilon"]) <= Fraction(found.upper)
            assert found.upper - found.lower <= 1e-9 * found.upper


@pytest.mark.parametrize("steps", [2, 3, 10])
def test_few_samples_agree_with_a_grid(steps):
    """Few repetitions fade slowly. The grid knows nothing of contours, and is wider."""
    loss = steps * privacy.gaussian(2.0).poisson(0.05)
    found = loss.epsilon(1e-6)
    term = SampledGaussianTerm(2.0, 0.05, True, steps)
    grid = Grid([term], log_delta=None, epsilon=float(found), points=1 << 13, cap=float(found))
    low, high = grid.bounds(float(found))
    assert low <= math.log(1e-6) <= high
    assert found.upper - found.lower <= 1e-9 * found.upper


def test_several_kinds_at_once():
    """Gaussians and samples of several rates together: balls agree with the contour in doubles."""
    terms = [
        SampledGaussianTerm(1.0, 0.01, True, 500),
        SampledGaussianTerm(2.0, 0.05, True, 100, 2),
        GaussianTerm(0.1),
    ]
    loss = (
        500 * privacy.gaussian(1.0).poisson(0.01)
        + (100 * privacy.gaussian(2.0).poisson(0.05)).group(2)
        + privacy.gdp(math.sqrt(0.1))
    )
    found = loss.delta(4.0)
    laws = laws_of(terms)
    contour = BallContour(laws, epsilon=4.0, log_delta=math.log(found), tilt=2.0)
    low, high = contour.bounds(4.0)
    assert low <= math.log(found.upper) + 1e-9
    assert high >= math.log(found.lower) - 1e-9
    assert high - low < 1e-9
    assert laws_of([*terms, AtomTerm(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), 1)]) is None
    assert law_of(GaussianTerm(1.0)).swapped().moment(1.0, 60) > 2.7


def test_one_sample_at_random_settings():
    """Weights 1 - g are exact: the truth in sixty digits is inside, for any rate and size."""
    random = np.random.default_rng(20)
    mpmath.mp.dps, before = 60, mpmath.mp.dps
    try:
        for _ in range(120):
            noise, rate = float(random.uniform(0.3, 4)), float(10 ** random.uniform(-17, -0.1))
            e = float(random.choice([0.0, 10 ** random.uniform(-6, 1)]))
            a, g, y = 1 / mpmath.mpf(noise), mpmath.mpf(rate), mpmath.mpf(e)
            z = mpmath.log((mpmath.expm1(y) + g) / g) / a + a / 2
            plain, moved = mpmath.ncdf(-z), mpmath.ncdf(a - z)
            delta = g * (moved - plain) - mpmath.expm1(y) * plain
            low, high = SampledGaussianProfile(SampledGaussianTerm(noise, rate, True, 1)).bounds(e)
            assert low <= mpmath.log(delta) <= high
            assert high - low < 1e-13 * (1 + abs(high))
    finally:
        mpmath.mp.dps = before
    assert privacy.gaussian(1.0).poisson(1e-17).delta(0).lower > 3.8e-18


@pytest.mark.parametrize("removal", [True, False])
def test_one_sample_of_a_group(removal):
    """Newton's method in balls: the event that it finds is the best, so no other does better."""
    profile = SampledGaussianProfile(SampledGaussianTerm(1.0, 0.3, removal, 1, 4))
    weights = [math.comb(4, j) * 0.3**j * 0.7 ** (4 - j) for j in range(5)]
    for e in (0.0, 0.3, 1.0):
        best = 0.0
        for z in np.linspace(-4, 8, 4001):
            plain = 0.5 * math.erfc(z / math.sqrt(2))
            mixed = sum(w * 0.5 * math.erfc((z - j) / math.sqrt(2)) for j, w in enumerate(weights))
            gap = mixed - math.exp(e) * plain if removal else 1 - plain - math.exp(e) * (1 - mixed)
            best = max(best, gap)
        low, high = profile.bounds(e)
        assert high - low < 1e-13 or best == 0
        assert math.exp(high) >= best * (1 - 1e-12)
        assert math.exp(low) <= best * (1 + 1e-5) + 1e-300


@pytest.mark.parametrize("mu", [1e-30, 1e-16, 1e-3])
def test_a_tiny_shift_is_not_rounded_away(mu):
    """delta(0) = erf(mu/√8) = mu/√(2·pi)·(1 - mu²/24 + ...), and delta(mu) by forty more digits."""
    found = privacy.gaussian(1 / mu).delta(0)
    truth = mu / math.sqrt(2 * math.pi) * (1 - mu * mu / 24)
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper
    assert found.upper - found.lower < 1e-10 * truth


@pytest.mark.parametrize("removal", [True, False])
def test_separated_gaussians_agree_with_a_contour(removal):
    """A binomial sum of Gaussian profiles, where the two normals are far apart."""
    term = SampledGaussianTerm(0.05, 0.2, removal, 5)
    apart = SeparatedProfile(term, None)
    for e in (0.3, 150.0, 900.0) if removal else (0.3, 1.0):
        low, high = apart.bounds(e)
        tilt, value = best_tilt(term.log_moment, log_delta=None, epsilon=e, reach=term.reach)
        contour = BallContour(laws_of([term]), epsilon=e, log_delta=high, tilt=tilt)
        if contour.certified:
            other = contour.bounds(e)
            assert low <= other[1]
            assert other[0] <= high
        assert high - low < 1e-9
        assert low <= value


def two_laplaces(top, g, e):
    """delta(e) of two Laplace releases on samples, removal: one's loss is integrated."""

    def once(level):
        inner = mpmath.exp(level) - 1 + g
        if inner <= g * mpmath.exp(-top):
            return 1 - mpmath.exp(level)
        x = mpmath.log(inner / g)
        if x >= top:
            return mpmath.mpf(0)
        under_q, under_p = mpmath.exp(-(x + top) / 2) / 2, 1 - mpmath.exp(-(top - x) / 2) / 2
        return (1 - g) * under_q + g * under_p - mpmath.exp(level) * under_q

    def loss(x):
        return mpmath.log(1 - g + g * mpmath.exp(x))

    def rest(x):
        size = (1 - g) * mpmath.exp(-(x + top) / 2) + g * mpmath.exp(-(top - x) / 2)
        return size / 4 * once(e - loss(x))

    least = mpmath.exp(-top)
    total = ((1 - g) + g * least) / 2 * once(e - loss(-top))
    total += ((1 - g) * least + g) / 2 * once(e - loss(top))
    bends = [e - loss(top), e - loss(-top)]
    places = [mpmath.log((mpmath.exp(b) - 1 + g) / g) for b in bends if mpmath.exp(b) > 1 - g]
    edges = sorted({-top, -top + 9, -top / 2, 0, top / 2, top - 9, top, *places})
    inside = [x for x in edges if -top <= x <= top]
    return total + mpmath.quad(rest, inside)


def test_separated_laplaces_agree_with_an_integral():
    """A binomial sum of Laplace profiles, where a sampled one's loss is far from the others'."""
    base = LaplaceTerm(np.array([150.0]), np.array([1]))
    g, profiles = 0.25, {}
    for removal in (True, False):
        term = SampledLineTerm(SampledTerm(base, g, removal, 2))
        assert SeparatedLaplacesProfile.fits(term)
        profiles[removal] = SeparatedLaplacesProfile(term, None)
    with mpmath.workdps(60):
        for e in (0.5, 60.0, 140.0, 147.0, 250.0, 290.0):
            low, high = profiles[True].bounds(e)
            truth = mpmath.log(two_laplaces(mpmath.mpf(150), mpmath.mpf(g), mpmath.mpf(e)))
            assert low - 1e-13 <= truth <= high + 1e-13
            assert high - low < 1e-12
    # Added, nearly all of Q's mass is where no sample holds the unit.
    low, high = profiles[False].bounds(0.5)
    assert (low + high) / 2 == pytest.approx(math.log(1 - math.exp(0.5) * 0.75**2), abs=1e-13)
    found = (10 * privacy.laplace(0.001).poisson(0.1)).epsilon(1e-5)
    assert found.upper - found.lower < 1e-12 * found.upper
    assert 5985.07 < found.lower < 5985.89


@pytest.mark.heavy("test_every_line_says_the_same")
def test_losses_beyond_the_largest_exponent():
    """e^709 is the last double; losses go on. No warning, no error of Python's own."""
    # Six of ten samples hold the unit with probability 1.4e-4, seven with less than 1e-5.
    ten = (10 * privacy.gaussian(0.02).poisson(0.1)).epsilon(1e-5)
    assert ten.lower <= ten.upper < ten.lower * (1 + 1e-12)
    shares = [math.comb(10, j) * 0.1**j * 0.9 ** (10 - j) for j in range(11)]
    shift = [j * math.log(0.1) + (10 - j) * math.log(0.9) for j in range(11)]

    def above(e):
        return sum(
            shares[j] * 0.5 * math.erfc((e - shift[j] - 1250 * j) / (50 * math.sqrt(2 * j)))
            for j in range(1, 11)
        )

    # Pr[L > e] is more than delta(e), and Pr[L > e + 20] is less but for e^{-20}.
    assert above(ten.upper) >= 1e-5 * (1 - 1e-9)
    assert above(ten.lower + 20) <= 1e-5 * (1 + 1e-8)
    for loss in (
        privacy.discrete_laplace(0.0014, neighbours="replace").without_replacement(1, 10),
        privacy.discrete_laplace(0.0014).poisson(0.1),
        privacy.discrete_laplace(1e-5).poisson(0.1),
        privacy.laplace(0.001).poisson(0.1),
    ):
        found = loss.delta(1)
        assert found.lower <= 0.1 <= found.upper
        assert found.upper - found.lower < 1e-9
    base = privacy.gaussian(0.02, neighbours="replace").without_replacement(1, 10)
    sampled = (3 * base).epsilon(0.1)
    assert 1200 < sampled.lower <= sampled.upper < 1300
    with pytest.raises(ArgumentError, match="delta is too small"):
        (10 * privacy.gaussian(1e-90).poisson(0.1)).epsilon(1e-5)


def test_balls_and_doubles():
    """Doubles lie outside of the ball; powers stay small where turning would let them grow."""
    with precision(80) as flint:
        third = flint.arb(1) / 3
        assert Fraction(down(third)) < Fraction(1, 3) < Fraction(up(third))
        assert down(flint.arb("nan")) == -math.inf
        assert up(flint.arb("inf")) == math.inf
        turn = flint.acb(0, 1.234).exp()
        found = powers(turn, 600)
        assert found[599].rel_accuracy_bits() > 55
        assert found[599].overlaps(flint.acb(0, 599 * flint.arb(1.234)).exp())
        assert len(powers(turn, 1)) == 1
    before = flint.ctx.prec
    with pytest.raises(ZeroDivisionError), precision(200):
        raise ZeroDivisionError
    assert flint.ctx.prec == before
