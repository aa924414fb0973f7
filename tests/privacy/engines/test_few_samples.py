"""Few sampled Gaussians against integrals of the closed form of one, and what settles a side."""

import math

import mpmath
import pytest

from dither import privacy
from dither.privacy import _side
from dither.privacy._side import side

mpf = mpmath.mpf


def loss_at(z, sigma, rate):
    """The loss of one run at the outcome z, in units of the noise; a unit added is -loss."""
    return mpmath.log1p(rate * mpmath.expm1(z / sigma - 1 / (2 * sigma**2)))


def one(epsilon, sigma, rate, removal):
    """One run's delta at any epsilon, in closed form."""
    level = mpmath.exp(epsilon if removal else -epsilon)
    if level <= 1 - rate:
        return -mpmath.expm1(epsilon) if removal else mpf(0)
    z = (mpmath.log((level - 1 + rate) / rate) + 1 / (2 * sigma**2)) * sigma
    if removal:
        tail = (1 - rate) * mpmath.ncdf(-z) + rate * mpmath.ncdf(1 / sigma - z)
        return tail - mpmath.exp(epsilon) * mpmath.ncdf(-z)
    tail = (1 - rate) * mpmath.ncdf(z) + rate * mpmath.ncdf(z - 1 / sigma)
    return mpmath.ncdf(z) - mpmath.exp(epsilon) * tail


def two(epsilon, sigma, rate, removal):
    """E[delta of the second at epsilon less the first's loss], by quadrature in 20 digits."""

    def density(z):
        if not removal:
            return mpmath.npdf(z)
        return (1 - rate) * mpmath.npdf(z) + rate * mpmath.npdf(z - 1 / sigma)

    def value(z):
        loss = loss_at(z, sigma, rate)
        return density(z) * one(epsilon - (loss if removal else -loss), sigma, rate, removal)

    # Kinks where the second's delta is 1 - e^x, or 0.
    level = mpmath.exp(epsilon) / (1 - rate) if removal else mpmath.exp(-epsilon) / (1 - rate)
    kink = (
        (mpmath.log((level - 1 + rate) / rate) + 1 / (2 * sigma**2)) * sigma
        if (level > 1 - rate)
        else mpf(0)
    )
    cuts = sorted({*(mpf(x) for x in range(-10, 13, 2)), kink, 12 + 2 / sigma})
    return mpmath.quad(value, cuts)


@pytest.mark.parametrize(
    ("sigma", "rate", "delta"),
    [
        (1.0, 0.01, 1e-6),
        (2.0, 0.3, 1e-5),
        (0.86, 0.015, 2e-9),
        (3.0, 0.001, 1e-6),
        (3.9, 0.0002, 1e-11),
    ],
)
def test_two_runs(sigma, rate, delta):
    """The interval of epsilon holds the truth, and is narrow."""
    loss = 2 * privacy.gaussian(sigma).poisson(rate)
    found = loss.epsilon(delta)
    assert found.width <= 1e-6 * found.upper
    with mpmath.workdps(20):
        s, g = mpf(sigma), mpf(rate)
        for end, sign in ((found.lower, 1), (found.upper, -1)):
            truth = max(two(mpf(end), s, g, removal) for removal in (True, False))
            assert sign * (truth - delta) >= -1e-11 * delta


def test_what_is_settled_is_true():
    """A direction is called smaller only where it is, and is so called where it clearly is."""
    sigma, rate, epsilon = 1.0, 0.05, 0.05
    with mpmath.workdps(20):
        truth = float(two(mpf(epsilon), mpf(sigma), mpf(rate), False))
    addition = side((2 * privacy.gaussian(sigma).poisson(rate)).parts, False)
    for over in (1e-9, 1e-7, 1e-5):
        assert not addition.below(epsilon, math.log(truth) - over)
    assert addition.below(epsilon, math.log(truth) + 1e-3)


@pytest.mark.parametrize("count", [2, 3, 7, 20])
def test_the_worse_direction_is_quoted(count):
    """With a bound for one direction the answer is what both directions' own intervals say."""
    loss = count * privacy.gaussian(1.0).poisson(0.02)
    found = loss.epsilon(1e-7)
    ends = [_side.one_epsilon(loss, s, 1e-7) for s in _side.sides(loss)]
    assert found.lower <= max(e[1] for e in ends)
    assert max(e[0] for e in ends) <= found.upper
    assert found.width <= 1e-6 * found


@pytest.mark.parametrize(
    ("count", "sigma", "rate", "delta"), [(15, 1.9687, 6.33e-5, 1e-3), (18, 6.6479, 1.21e-6, 1e-4)]
)
def test_no_epsilon_is_needed_above_delta_at_0(count, sigma, rate, delta):
    """A delta that the total variations add up to needs no epsilon, and none is charged."""
    loss = count * privacy.gaussian(sigma).poisson(rate)
    with mpmath.workdps(20):
        each = one(mpf(0), mpf(sigma), mpf(rate), True)
        assert count * each < delta
    assert loss.epsilon(delta).upper == 0
    assert loss.delta(0).upper <= float(count * each) * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 1e-4), (4.0, 1e-3), (2.0, 0.3)])
def test_epsilon_is_0_only_above_delta_at_0(sigma, rate):
    """The distance is at least delta(0) of two runs; just below that an epsilon is charged."""
    loss = 2 * privacy.gaussian(sigma).poisson(rate)
    with mpmath.workdps(20):
        truth = float(two(mpf(0), mpf(sigma), mpf(rate), True))
        each = float(one(mpf(0), mpf(sigma), mpf(rate), True))
    for removal in (True, False):
        assert truth <= side(loss.parts, removal).distance <= 2 * each * (1 + 1e-9)
    assert loss.epsilon(truth * (1 - 1e-6)).upper > 0
    assert loss.epsilon(2 * each * (1 + 1e-9)).upper == 0


@pytest.mark.parametrize(
    "loss",
    [
        privacy.laplace(2.0) + 2 * privacy.laplace(5.0),
        3 * privacy.gaussian(4.0) + privacy.laplace(3.0),
        5 * privacy.laplace(2.0).poisson(0.01),
        3 * privacy.discrete_gaussian(5),
        4 * privacy.discrete_gaussian(3).poisson(0.02),
        3 * privacy.gaussian(1.0).poisson(0.01) + 2 * privacy.discrete_gaussian(9),
    ],
    ids=lambda loss: str(loss)[:60],
)
def test_distances_of_other_noises(loss):
    """What adds up is at least delta(0), and not more than so many times it."""
    for this in _side.sides(loss):
        low, high, _ = _side.one_delta(loss, this, 0.0)
        assert low <= this.distance <= 6 * high


def test_nothing_is_protected_where_one_part_tells_all():
    """A delta that is almost 1 has a lower end as well: that of the part which tells most."""
    loss = 15557 * privacy.discrete_gaussian(533) + 24388 * privacy.gaussian(0.0711)
    for epsilon in (0, 0.138, 1e6):
        found = loss.delta(epsilon)
        assert found.lower >= 1 - 1e-10
        assert found.upper == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_one_term_has_no_more_than_all(epsilon):
    """What one term has by itself never exceeds the whole's delta."""
    loss = privacy.gaussian(0.8) + privacy.laplace(1.0) + 3 * privacy.discrete_gaussian(2)
    this = side(loss.parts, True)
    assert this.apart(epsilon) <= math.log(loss.delta(epsilon).upper)
    alone = privacy.gaussian(0.8).delta(epsilon)
    assert this.apart(epsilon) >= math.log(alone.lower) - 1e-9
