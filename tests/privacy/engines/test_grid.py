"""The grid: cell masses within their errors, loans between cells, rare hits, sparse samples."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.privacy._side import one_delta, side
from dither.privacy.engines import grid as grids
from dither.privacy.engines.balls.closed import SampledGaussianProfile
from dither.privacy.engines.grid import Grid, _Hits, _levelled
from dither.privacy.engines.lattice import LatticeEngine, LatticeLaw
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import EPS, normal_mass

mpf = mpmath.mpf


def test_the_error_function_is_within_its_margin():
    """The C library's erfc against forty digits, on 3,000 points: 16 roundings are charged."""
    worst = 0.0
    with mpmath.workdps(40):
        for x in np.linspace(-6.0, 26.0, 3000).tolist():
            truth = mpmath.erfc(mpf(x))
            worst = max(worst, float(abs(mpf(math.erfc(x)) - truth) / truth))
    assert worst < 4 * EPS


@settings(deadline=None, max_examples=80)
@given(st.floats(-9.0, 9.0), st.floats(-7.0, 0.3), st.floats(-3.0, 3.0), st.floats(0.01, 20.0))
def test_normal_masses(start, log_width, mean, sd):
    """Narrow and wide cells alike err by less than they say."""
    edges = mean + sd * (start + 10.0**log_width * np.arange(4.0))
    mass, error, below, above = normal_mass(edges, mean, sd)
    with mpmath.workdps(60):
        at = [mpmath.ncdf((mpf(float(e)) - mpf(mean)) / mpf(sd)) for e in edges]
        tail = [mpmath.ncdf(-(mpf(float(e)) - mpf(mean)) / mpf(sd)) for e in edges]
        for i in range(3):
            truth = at[i + 1] - at[i] if at[i] < 0.5 else tail[i] - tail[i + 1]
            assert abs(mpf(float(mass[i])) - truth) <= error[i]
        assert below >= at[0]
        assert above >= tail[-1]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 100), st.floats(-0.6, 0.6)), min_size=2, max_size=8))
def test_loans_are_post_processing(rows):
    """After the loans the profile is nowhere above what it was."""
    h, p = 0.1, np.array([float(x) for x, _ in rows]) / 100
    away = np.array([x for _, x in rows]) * h / 1.2
    found, distance = _levelled(p, away, h)
    point = h * np.arange(len(rows))
    before, after = point + away, point + distance
    for e in np.linspace(-0.2, h * len(rows), 60):
        old = (p * -np.expm1(np.minimum(e - before, 0))).sum()
        new = (found * -np.expm1(np.minimum(e - after, 0))).sum()
        assert new <= old + 1e-14


def convolved(rate, removal, k, epsilon, spacing, points, *, step=2e-5):
    """delta(epsilon) of k steps, each loss split between its two lattice neighbours."""
    nodes = round(12 / step)
    z = step * np.arange(-nodes, nodes)
    mass = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * step
    loss = np.log1p(rate * np.expm1(z - 0.5))
    mass, loss = (mass * np.exp(loss), loss) if removal else (mass, -loss)
    kept = np.abs(loss) < 0.3 * spacing * points
    at = loss[kept] / spacing
    low = np.floor(at).astype(int)
    law = np.bincount(low % points, mass[kept] * (1 - at + low), points)
    law += np.bincount((low + 1) % points, mass[kept] * (at - low), points)
    total = np.fft.irfft(np.fft.rfft(law) ** k, points)
    where = np.arange(points)
    where = np.where(where < 0.8 * points, where, where - points) * spacing
    return float((total * -np.expm1(np.minimum(epsilon - where, 0.0))).sum())


def extrapolated(removal, k, epsilon):
    """Two spacings, and the limit that their second-order error points to."""
    rough = convolved(1e-4, removal, k, epsilon, 1e-6, 1 << 19)
    fine = convolved(1e-4, removal, k, epsilon, 5e-7, 1 << 20)
    return fine + (fine - rough) / 3


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("epsilon", [0.0005, 0.00107])
def test_few_sparse_steps(k, epsilon):
    """Each direction by itself: inside, and narrow."""
    total = k * privacy.gaussian(1.0).poisson(1e-4)
    for removal in (True, False):
        low, high, _ = one_delta(total, side(total.parts, removal), epsilon)
        truth = extrapolated(removal, k, epsilon)
        assert high - low <= 3e-5 * high + 1e-12
        assert low * (1 - 1e-5) - 1e-11 <= truth <= high * (1 + 1e-5) + 1e-11


def test_left_out_hits_show(monkeypatch):
    """Without the rare large losses the upper end is below the truth."""
    terms = [SampledGaussianTerm(1.0, 1e-4, True, 10)]
    truth = extrapolated(True, 10, 0.00107)
    assert (
        math.exp(Grid(terms, log_delta=None, epsilon=0.00107).bounds(0.00107)[1]) > truth * 0.9999
    )
    monkeypatch.setattr(Grid, "_hit", lambda *_: _Hits(0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert math.exp(Grid(terms, log_delta=None, epsilon=0.00107).bounds(0.00107)[1]) < truth * 0.99


def test_hits_that_all_but_always_come(monkeypatch):
    """Where one in ten thousand runs has no large loss, what is left of the mass is still exact."""
    term, epsilon = SampledGaussianTerm(0.1, 0.9999, True, 1), 1.0
    low, high = SampledGaussianProfile(term).bounds(epsilon)

    def found():
        return Grid([term], log_delta=None, epsilon=epsilon, cap=epsilon).bounds(epsilon)

    assert found()[0] <= low
    assert high <= found()[1] <= high + 1e-6
    # A chance that is held below one puts the upper end below the truth.
    monkeypatch.setattr(grids, "_log_rest", lambda mass: math.log1p(-min(max(mass, 0.0), 0.999)))
    assert found()[1] < low


@pytest.mark.parametrize(
    ("multiplier", "rate", "other", "epsilon"),
    [
        (0.1, 0.5, (1.0, 0.5, 1), 80.0),
        (0.1, 0.5, (2.0, 0.5, 1), 75.0),
        (0.1, 0.01, (1.0, 0.5, 3), 60.0),
        (0.15, 0.3, (4.0, 0.5, 1), 50.0),
    ],
)
def test_only_laws_that_reach_beyond_the_cap_have_hits(multiplier, rate, other, epsilon):
    """Above the grid of a small loss, e^epsilon times its q would be taken from what others add."""
    term, (scale, share, count) = SampledGaussianTerm(multiplier, rate, True, 1), other
    alone = SampledGaussianProfile(term).bounds(epsilon)[0]
    terms = [term, SampledGaussianTerm(scale, share, True, count)]
    low, high = Grid(terms, log_delta=alone, epsilon=None).bounds(epsilon)
    # A composition is no more private than its parts.
    assert alone < high < low + 1e-5


@pytest.mark.parametrize(
    ("parts", "delta"),
    [
        ((0.05, 0.9, 4, 0.1), 0.45),
        ((0.1, 0.1, 2, 0.1), 0.005),
        ((0.05, 0.01, 2, 0.1), 0.002),
    ],
)
def test_a_large_loss_beside_small_ones(parts, delta):
    """What a grid certifies of a whole is no less than a closed form says of one of its parts."""
    multiplier, rate, scale, share = parts
    one = privacy.gaussian(multiplier).poisson(rate)
    whole = one + privacy.gaussian(scale).poisson(share) + privacy.randomized_response(1)
    assert whole.epsilon(delta).upper >= one.epsilon(delta).lower


@pytest.mark.parametrize("rate", [1e-14, 1e-9, 1e-4, 0.3, 0.99, 1 - 1e-12])
@pytest.mark.parametrize("size", [1, 3])
def test_the_ends_of_a_sampled_gaussians_losses(rate, size):
    """log((1 - g)^k), however small g is."""
    with mpmath.workdps(40):
        exact = size * mpmath.log1p(-mpf(rate))
        least = SampledGaussianTerm(1.0, rate, True, 7, size).least()
        top = SampledGaussianTerm(1.0, rate, False, 7, size).top()
        assert exact * (1 + 6 * EPS) <= least <= exact
        assert abs(top + 7 * exact) <= 4 * EPS * abs(7 * exact)


def test_lattices_against_all_outcomes():
    """Masses that fall by e^20 a point, near where a lattice was made and far off: exactly."""
    h, masses = 0.3, np.exp(-np.array([0.3, 9.0, 25.0, 45.0, 70.0]))
    with mpmath.workdps(60):
        exact = [mpf(m) for m in masses.tolist()]
        for count, epsilon in ((1, 0.25), (1, 1.05), (2, 0.1), (3, 0.95), (3, 2.3), (3, 3.1)):
            law = [mpf(1)]
            for _ in range(count):
                total = [mpf(0)] * (len(law) + len(exact) - 1)
                for i, a in enumerate(law):
                    for j, b in enumerate(exact):
                        total[i + j] += a * b
                law = total
            for made_for in (epsilon, 0.05):
                laws = [LatticeLaw(-0.1, masses, count, 0.0)]
                low, high = LatticeEngine(laws, h, log_delta=None, epsilon=made_for).bounds(epsilon)
                above = [mpf(-0.1) * count + mpf(h) * i - mpf(epsilon) for i in range(len(law))]
                truth = mpmath.log(
                    sum(-m * mpmath.expm1(-x) for m, x in zip(law, above, strict=True) if x > 0)
                )
                assert low <= truth <= high
                assert made_for != epsilon or high - low < 1e-5


@pytest.mark.parametrize("rough", [1e-9, 1e-4, 0.1])
@pytest.mark.parametrize("sign", [1, -1])
def test_masses_that_are_off_by_all_they_may_be(rough, sign):
    """Every mass above an epsilon to one side, and all below it to the other: exactly."""
    h, masses = 0.4, np.array([0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    with mpmath.workdps(40):
        for count, epsilon in ((1, 0.25), (2, 0.5), (3, 0.95), (6, 3.1), (6, 7.0)):
            at = mpf(-0.5) + mpf(h) * np.arange(len(masses))
            off = [1 + mpf(sign * rough) * (1 if x * count > epsilon else -1) for x in at]
            exact = [mpf(m) * r for m, r in zip(masses.tolist(), off, strict=True)]
            law = [mpf(1)]
            for _ in range(count):
                law = [
                    sum(law[i - j] * b for j, b in enumerate(exact) if 0 <= i - j < len(law))
                    for i in range(len(law) + len(exact) - 1)
                ]
            above = [mpf(-0.5) * count + mpf(h) * i - mpf(epsilon) for i in range(len(law))]
            total = sum(-m * mpmath.expm1(-x) for m, x in zip(law, above, strict=True) if x > 0)
            laws = [LatticeLaw(-0.5, masses, count, rough)]
            low, high = LatticeEngine(laws, h, log_delta=None, epsilon=epsilon).bounds(epsilon)
            assert low <= mpmath.log(total) <= high
            assert mpmath.isinf(low) or high - low < 20 * count * rough + 1e-9


def test_above_the_cap():
    """Asked above the place it was built for, a grid stays sound."""
    terms = [SampledGaussianTerm(1.0, 1e-4, True, 10)]
    found = Grid(terms, log_delta=None, epsilon=0.001, cap=0.001)
    low, high = found.bounds(0.004)
    truth = extrapolated(True, 10, 0.004)
    assert math.exp(low) <= truth * 1.00001
    assert truth <= math.exp(high) * 1.00001


@pytest.mark.parametrize(("delta", "width"), [(1e-5, 1e-6), (1e-9, 1e-6), (1e-15, 1e-6)])
def test_few_sparse_steps_are_narrow(delta, width):
    """The epsilon of ten steps at rate 1e-4 is known to a millionth."""
    found = (10 * privacy.gaussian(1).poisson(1e-4)).epsilon(delta)
    assert found.upper - found.lower <= width * found.upper


@pytest.mark.parametrize("rate", [1e-6, 1e-10, 1e-13])
def test_rates_close_to_nothing(rate):
    """At tiny rates losses are rate·x, x = e^{z - 1/2} - 1, so delta(0) is rate·E max(x + x', 0).

    Differences of masses are then a tiny part of them, and are formed without cancellation.
    """
    z = np.linspace(-9, 11, 2001)
    weight = np.exp(-z * z / 2) * (z[1] - z[0]) / math.sqrt(2 * math.pi)
    x = np.exp(z - 0.5) - 1
    limit = float(weight @ np.maximum(x[:, None] + x[None, :], 0.0) @ weight)
    found = (2 * privacy.gaussian(1.0).poisson(rate)).delta(0)
    assert found.upper - found.lower <= 1e-6 * found.upper
    # The next order is the rate itself; the sum's kink costs 1e-5.
    assert found.lower <= rate * limit * (1 + 1e-5)
    assert found.upper >= rate * limit * (1 - 1e-5)


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("epsilon", [0.008, 0.0112])
def test_many_sparse_steps(removal, epsilon):
    """A thousand steps at rate 1e-4: inside a narrow interval, each direction by itself."""
    total = 1000 * privacy.gaussian(1.0).poisson(1e-4)
    low, high, method = one_delta(total, side(total.parts, removal), epsilon)
    rough = convolved(1e-4, removal, 1000, epsilon, 2e-6, 1 << 18, step=5e-5)
    fine = convolved(1e-4, removal, 1000, epsilon, 1e-6, 1 << 19, step=5e-5)
    truth = fine + (fine - rough) / 3
    assert method.startswith("contour")
    assert high - low <= 2e-5 * high
    assert low * (1 - 1e-5) <= truth <= high * (1 + 1e-5)


def test_sparse_epsilon_is_narrow():
    """The epsilon of a sparse total is known to better than a millionth."""
    for steps, rate in ((1000, 1e-4), (1000, 1e-3)):
        found = (steps * privacy.gaussian(1.0).poisson(rate)).epsilon(1e-5)
        assert found.upper - found.lower <= 1e-6 * found.upper


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize(("rate", "size"), [(1e-4, 1), (1e-3, 1), (0.01, 2)])
def test_moments_along_a_line(removal, rate, size):
    """The quadrature errs by less than it says."""
    term = SampledGaussianTerm(1.0, rate, removal, 1, size)
    weights = term.weights
    c, u = 6.0, 40.0 * np.arange(60)
    base, value, slack = term.along(c, u)
    z = 2e-4 * np.arange(-70_000, 170_000)
    j = np.arange(len(weights))[:, None]
    # Losses near 1e-4 are turned by up to 2,400: their own rounding must be far below a double's.
    wide = np.exp((j * z - j * j / 2).astype(np.longdouble))
    exact = np.array(weights, dtype=np.longdouble)
    exact[0] = 1 - exact[1:].sum()
    ratio = np.log((exact[:, None] * wide).sum(axis=0))
    power = 1 + c if removal else -c
    weight = np.exp(power * ratio - z * z / 2) * np.longdouble(2e-4) / np.sqrt(2 * np.pi)
    assert base == pytest.approx(float(np.log(weight.sum())), abs=1e-12)
    sign = 1j if removal else -1j
    for i in (1, 7, 25, 59):
        truth = (weight * np.exp(sign * u[i] * ratio)).sum() / weight.sum()
        allowed = np.exp(value[i].real) * np.expm1(slack[i])
        assert allowed < 1e-9
        assert abs(np.exp(value[i]) - truth) <= allowed + 1e-15


@pytest.mark.parametrize(
    ("noise", "epsilon", "below"),
    [(1000, 1.0, 1e-300), (1000, 0.01, 1e-150), (30, 1.0, 1e-300), (100, 0.1, 1e-150)],
)
def test_tiny_losses_have_tiny_tails(noise, epsilon, below):
    """Thousands of deviations out the bound is as small as the moments say, and never below one.

    One step of the many is post-processing of them, so its lower end holds for all.
    """
    loss = 1000 * privacy.gaussian(noise).poisson(0.01)
    bound = loss.delta(epsilon)
    assert 0 < bound.upper < below
    assert bound.lower <= bound.upper
    one = privacy.gaussian(noise).poisson(0.01).delta(epsilon)
    assert bound.upper >= one.lower
    assert loss.profile([epsilon, 0.0])[0].upper == pytest.approx(bound.upper, rel=1e-6)
