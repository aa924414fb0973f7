"""Every number holds the truth: losses against slow, independent computations.

The oracles share nothing with the engines: exact fractions over all outcomes, or mpmath's adaptive
quadrature of delta(e) = E over the first loss of the second one's closed-form profile at e - L.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy import Neighbours

mpf = mpmath.mpf
EPSILONS = st.floats(0.0, 3.0)
SIGMAS = st.floats(0.7, 5.0)
RATES = st.floats(0.01, 0.6)


def contains(bound, truth, width=1e-6):
    """Truth inside, and the interval no wider than asked for, relative to it."""
    assert bound.lower <= truth * (1 + mpf(10) ** -25)
    assert truth <= bound.upper * (1 + mpf(10) ** -25)
    assert float(bound) == bound.upper
    assert bound.upper - bound.lower <= width * float(truth) + 1e-290


def gaussian_delta(mu, e):
    """Closed form, any real e."""
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def log_ratio(z, q, a):
    """The log-ratio of the mixture to the standard normal."""
    return mpmath.log(1 - q + q * mpmath.exp(a * z - a * a / 2))


def sampled_delta(q, sigma, e, removal):
    """One Gaussian on a Poisson sample, any real e."""
    a = 1 / mpf(sigma)
    level = e if removal else -e
    inner = (mpmath.exp(level) - 1 + q) / q
    if inner <= 0:
        return 1 - mpmath.exp(e) if removal else mpf(0)
    z = mpmath.log(inner) / a + a / 2
    sign = -1 if removal else 1
    plain = mpmath.ncdf(sign * z)
    mixed = (1 - q) * plain + q * mpmath.ncdf(sign * (z - a))
    return mixed - mpmath.exp(e) * plain if removal else plain - mpmath.exp(e) * mixed


def over_sampled(q, sigma, removal, inner, epsilon):
    """E over one sampled Gaussian's loss, by quadrature in its noise.

    The inner profile has a corner where its argument passes the other loss's floor (removal) or
    ceiling (addition), which the quadrature's intervals must not straddle.
    """
    a = 1 / mpf(sigma)
    level = mpmath.exp((epsilon if removal else -epsilon) - mpmath.log(1 - q)) - 1 + q
    corner = mpmath.log(level / q) / a + a / 2 if level > 0 else mpf(0)
    around = [corner + d for d in (-1, -0.25, 0, 0.25, 1)] if abs(corner) < 11 else []

    def integrand(z):
        ratio = log_ratio(z, q, a)
        weight = mpmath.npdf(z) * (mpmath.exp(ratio) if removal else 1)
        return weight * inner(ratio if removal else -ratio)

    return mpmath.quad(integrand, sorted([-12, -6, -3, 0, 3, 6, 12, 12 + a, *around]))


def over_laplace(scale, inner):
    """E over one Laplace loss: two atoms and the density between them."""
    e = 1 / mpf(scale)
    return (
        inner(e) / 2
        + mpmath.exp(-e) / 2 * inner(-e)
        + mpmath.quad(lambda x: mpmath.exp((x - e) / 2) / 4 * inner(x), [-e, 0, e])
    )


def response_delta(epsilon, k, e):
    """k-fold randomised response by its binomial sum."""
    p = 1 / (1 + mpmath.exp(-epsilon))
    total = mpf(0)
    for i in range(k + 1):
        loss = (2 * i - k) * epsilon
        if loss > e:
            chance = mpmath.binomial(k, i) * p**i * (1 - p) ** (k - i)
            total += chance * (1 - mpmath.exp(e - loss))
    return total


@settings(deadline=None, max_examples=60)
@given(SIGMAS, st.integers(1, 1000), EPSILONS)
def test_gaussians(sigma, k, epsilon):
    """k Gaussians are one of mu = sqrt(k)/sigma."""
    with mpmath.workdps(40):
        truth = gaussian_delta(mpmath.sqrt(k) / mpf(sigma), mpf(epsilon))
        if truth > mpf(10) ** -280:
            contains((k * privacy.gaussian(sigma)).delta(epsilon), truth, 1e-9)


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 1.0), st.integers(1, 120), st.floats(0.0, 0.9))
def test_pure(epsilon, k, part):
    """k pure mechanisms are at worst k randomised responses."""
    at = part * k * epsilon
    with mpmath.workdps(60):
        truth = response_delta(mpf(epsilon), k, mpf(at))
        if truth > mpf(10) ** -250:
            contains((k * privacy.pure(epsilon)).delta(at), truth, 1e-8)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.6, 8.0), SIGMAS, EPSILONS)
def test_laplace_and_gaussian(scale, sigma, epsilon):
    """An atomic law beside a smooth one."""
    with mpmath.workdps(20):
        mu = 1 / mpf(sigma)
        truth = over_laplace(scale, lambda x: gaussian_delta(mu, mpf(epsilon) - x))
        if truth > 1e-12:
            total = privacy.laplace(scale) + privacy.gaussian(sigma)
            bound = total.delta(epsilon)
            assert bound.lower <= truth * (1 + mpf(10) ** -9)
            assert truth <= bound.upper * (1 + mpf(10) ** -9)
            assert bound.upper - bound.lower <= 1e-6 * truth


@pytest.mark.parametrize("removal", [True, False])
@settings(deadline=None, max_examples=9)
@given(RATES, SIGMAS, st.floats(0.0, 1.0))
def test_sampled_gaussian_twice(removal, rate, sigma, epsilon):
    """Two steps of noisy gradient descent, each direction by itself."""
    from dither.privacy._side import one_delta, side

    step = privacy.gaussian(sigma).poisson(rate)
    with mpmath.workdps(20):
        q, e = mpf(rate), mpf(epsilon)
        truth = over_sampled(
            q, sigma, removal, lambda x: sampled_delta(q, mpf(sigma), e - x, removal), e
        )
        if truth > 1e-10:
            low, high, _ = one_delta(2 * step, side((2 * step).parts, removal), epsilon)
            assert low <= truth * (1 + mpf(10) ** -8)
            assert truth <= high * (1 + mpf(10) ** -8)
            assert high - low <= 1e-3 * truth


@settings(deadline=None, max_examples=40)
@given(RATES, SIGMAS, EPSILONS)
def test_sampled_gaussian_once(rate, sigma, epsilon):
    """One step, the worse direction."""
    with mpmath.workdps(40):
        truth = max(
            sampled_delta(mpf(rate), mpf(sigma), mpf(epsilon), removal) for removal in (True, False)
        )
        if truth > mpf(10) ** -250:
            contains(privacy.gaussian(sigma).poisson(rate).delta(epsilon), truth, 1e-9)


MASSES = st.lists(st.integers(0, 40), min_size=3, max_size=3).filter(any)


def brute(p, q, k, e):
    """The hockey-stick divergence of k-fold products over every outcome."""
    total = mpf(0)
    for outcome in itertools.product(range(len(p)), repeat=k):
        a = math.prod((p[i] for i in outcome), start=Fraction(1))
        b = math.prod((q[i] for i in outcome), start=Fraction(1))
        gap = mpf(a.numerator) / a.denominator - mpmath.exp(e) * b.numerator / b.denominator
        total += max(mpf(0), gap)
    return total


@settings(deadline=None, max_examples=60)
@given(MASSES, MASSES, st.integers(1, 4), st.floats(0.0, 1.5))
def test_pairs(left, right, k, epsilon):
    """Any two mass functions, both directions, by enumeration of fractions."""
    p = [Fraction(x, sum(left)) for x in left]
    q = [Fraction(x, sum(right)) for x in right]
    with mpmath.workdps(40):
        truth = max(brute(p, q, k, mpf(epsilon)), brute(q, p, k, mpf(epsilon)))
        bound = (k * privacy.pair([float(x) for x in p], [float(x) for x in q])).delta(epsilon)
        # The masses themselves are rounded to doubles: 1e-14 of the probabilities.
        assert bound.lower <= truth + 1e-14
        assert truth <= bound.upper + 1e-14
        assert bound.upper - bound.lower <= 1e-6 * truth + 1e-14


@settings(deadline=None, max_examples=30)
@given(MASSES, MASSES, RATES, st.integers(1, 3), st.floats(0.0, 0.5))
def test_sampled_pairs(left, right, rate, k, epsilon):
    """Poisson sampling mixes the pair; both directions are kept apart until the end."""
    g = Fraction(rate)
    p = [Fraction(x, sum(left)) for x in left]
    q = [Fraction(x, sum(right)) for x in right]
    mix = [(1 - g) * b + g * a for a, b in zip(p, q, strict=True)]
    with mpmath.workdps(40):
        truth = max(brute(mix, q, k, mpf(epsilon)), brute(q, mix, k, mpf(epsilon)))
        base = privacy.pair([float(x) for x in p], [float(x) for x in q])
        bound = (k * base.poisson(rate)).delta(epsilon)
        assert bound.lower <= truth + 1e-14
        assert truth <= bound.upper + 1e-14
        assert bound.upper - bound.lower <= 1e-6 * truth + 1e-14


@settings(deadline=None, max_examples=15)
@given(st.integers(1, 9), st.floats(0.2, 2.0), st.floats(0.01, 1.0), st.integers(1, 2))
def test_fixed_size_samples(sample, e0, epsilon, k):
    """Without replacement: the profile of one run is g·delta at the stretched epsilon; two runs
    hold what brute force over the joined pair gives."""
    g = mpf(sample) / 10
    base = privacy.pure(e0, neighbours="replace").without_replacement(sample, 10)
    if k == 1:
        at = mpmath.log(1 + g * (mpmath.exp(epsilon) - 1))
        truth = g * response_delta(mpf(e0), 1, mpf(epsilon))
        bound = base.delta(float(at))
        assert bound.lower <= truth + 1e-15
        assert truth <= bound.upper + 1e-15
        assert bound.upper - bound.lower <= 1e-6
    else:
        p = 1 / (1 + mpmath.exp(-e0))
        rows = [(p, 1 - p), (1 - p, p)]
        up = mpmath.log(((1 - g) * (1 - p) + g * p) / (1 - p))
        top, low = (1 - g) * (1 - p) + g * p, 1 - p
        atoms = [(up, top), (-up, low), (mpf(0), 1 - top - low)]
        assert rows[0][0] == rows[1][1]
        truth = mpf(0)
        for (x, a), (y, b) in itertools.product(atoms, repeat=2):
            truth += a * b * max(mpf(0), 1 - mpmath.exp(mpf(epsilon) - x - y))
        bound = (2 * base).delta(epsilon)
        assert bound.lower <= truth + 1e-15
        assert truth <= bound.upper + 1e-15
        assert bound.upper - bound.lower <= 1e-5


@settings(deadline=None, max_examples=30)
@given(MASSES, MASSES, st.integers(1, 9), st.floats(0.0, 1.0))
def test_fixed_size_samples_of_any_pair(left, right, sample, epsilon):
    """One run of an asymmetric pair: above 0 the mixed pair, in the worse direction."""
    g = Fraction(sample, 10)
    p = [Fraction(x, sum(left)) for x in left]
    q = [Fraction(x, sum(right)) for x in right]

    def mixed(a, b):
        return [(1 - g) * y + g * x for x, y in zip(a, b, strict=True)]

    with mpmath.workdps(40):
        truth = max(brute(mixed(p, q), q, 1, mpf(epsilon)), brute(mixed(q, p), p, 1, mpf(epsilon)))
        base = privacy.pair([float(x) for x in p], [float(x) for x in q], neighbours="replace")
        bound = base.without_replacement(sample, 10).delta(epsilon)
        assert bound.lower <= truth + 1e-13
        assert truth <= bound.upper + 1e-13
        assert bound.upper - bound.lower <= 1e-4


@pytest.mark.parametrize(
    ("rate", "sigma", "steps", "delta", "truth"),
    [
        (0.01, 1.0, 10_000, 1e-5, 6.18771238997154),
        (256 / 60000, 1.1, 14_062, 1e-5, 2.38159692142440),
    ],
)
def test_noisy_gradient_descent(rate, sigma, steps, delta, truth):
    """Two published settings to 1e-9, with a certified contour."""
    bound = (steps * privacy.gaussian(sigma).poisson(rate)).epsilon(delta)
    assert bound.lower <= truth * (1 + 1e-14)
    assert truth * (1 - 1e-14) <= bound.upper
    assert bound.upper - bound.lower < 1e-9
    assert bound.method == "contour quadrature"


def test_thousand_different_mechanisms():
    """500 Laplace and 500 Gaussian mechanisms, all different."""
    parts = [privacy.laplace(10 + 50 * i / 499) for i in range(500)]
    parts += [privacy.gaussian(20 + 80 * i / 499) for i in range(500)]
    bound = privacy.compose(*parts).epsilon(1e-6)
    assert bound.lower <= 5.05262729534415 * (1 + 1e-13)
    assert bound.upper >= 5.05262729534415 * (1 - 1e-13)
    assert bound.upper - bound.lower < 1e-10


@pytest.mark.parametrize(
    ("delta", "truth"),
    [(1e-5, 4.376384509260290), (1e-6, 4.885515601007316), (1e-9, 6.171915016480078)],
)
def test_ten_thousand_pure(delta, truth):
    """The exact optimum for 10,000 mechanisms of 0.01."""
    bound = (10_000 * privacy.pure(0.01)).epsilon(delta)
    assert bound.lower <= truth * (1 + 1e-15)
    assert truth * (1 - 1e-15) <= bound.upper
    assert bound.upper - bound.lower < 1e-9


@pytest.mark.parametrize("power", [15, 30, 45, 60])
def test_tiny_deltas(power):
    """Right down to 1e-60: the epsilon found has the delta asked for, by closed form."""
    bound = (100 * privacy.gaussian(10.0)).epsilon(10.0**-power)
    with mpmath.workdps(90):
        assert gaussian_delta(mpf(1), mpf(bound.upper)) <= mpf(10.0**-power)
        assert gaussian_delta(mpf(1), mpf(bound.lower)) >= mpf(10.0**-power)
    sampled = (10_000 * privacy.gaussian(1.0).poisson(0.01)).epsilon(10.0**-power)
    assert math.isfinite(sampled)
    assert sampled.upper - sampled.lower < 1e-9
    few = (3 * privacy.laplace(1.0)).epsilon(10.0**-power)
    assert 3 - 1e-9 < few.lower <= few.upper <= 3 + 1e-9


def test_relations_are_kept():
    """The relation travels with the loss."""
    loss = 3 * privacy.laplace(2.0, neighbours="replace")
    assert loss.neighbours is Neighbours.REPLACE
