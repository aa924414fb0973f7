"""Discrete Laplace and Gaussian noise on numbers and vectors: losses and errors against laws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dither import noise as samplers
from dither import privacy
from dither.accounting import delta_of_rho
from dither.errors import ArgumentError
from dither.mechanisms import AdditiveNoise, DiscreteGaussian, DiscreteLaplace
from dither.mechanisms.chooser import choose
from dither.privacy import Loss, compose

AMOUNTS = st.fractions(F(1, 1000), 1000, max_denominator=1000)
SMALL = st.fractions(F(1, 10), 8, max_denominator=50)
SHIFTS = st.integers(1, 4)


def mp(value):
    """A Fraction in mpmath."""
    return mpmath.mpf(value.numerator) / value.denominator


def pmf(mechanism, reach=None):
    """The law as {z: probability}, from the parameter that the sampler is given."""
    with mpmath.workdps(40):
        if isinstance(mechanism, DiscreteLaplace):
            s = mp(mechanism.scale)
            reach = reach or int(90 * s) + 40
            weights = {z: mpmath.exp(-abs(z) / s) for z in range(-reach, reach + 1)}
        else:
            s2 = mp(mechanism.sigma2)
            reach = reach or int(14 * mpmath.sqrt(s2)) + 20
            weights = {z: mpmath.exp(-z * z / (2 * s2)) for z in range(-reach, reach + 1)}
        total = mpmath.fsum(weights.values())
        return {z: w / total for z, w in weights.items()}


def hockey_stick(law, shift, epsilon):
    """Σ (P(z) - e^epsilon·P(z - shift))_+, over a support that holds all but 1e-38 of the law."""
    factor = mpmath.exp(epsilon)
    return mpmath.fsum(
        max(mpmath.mpf(0), p - factor * law.get(z - shift, mpmath.mpf(0)))
        for z, p in law.items()
        if z - shift in law
    )


@settings(deadline=None, max_examples=40)
@given(SMALL, SHIFTS)
def test_laplace_loss_is_what_the_law_loses(scale, shift):
    """The largest log-ratio of the law and its shift is the claimed epsilon, and is attained."""
    mechanism = DiscreteLaplace(scale)
    with mpmath.workdps(40):
        law = pmf(mechanism, reach=30)
        ratios = [abs(mpmath.log(p / law[z - shift])) for z, p in law.items() if z - shift in law]
        claimed = mechanism.loss(l1=shift).charge.epsilon
        assert claimed is not None
        assert abs(max(ratios) - mp(claimed)) < mpmath.mpf(10) ** -25


@settings(deadline=None, max_examples=25)
@given(SMALL, SHIFTS, st.floats(0.01, 6))
def test_gaussian_loss_covers_what_the_law_loses(sigma2, shift, epsilon):
    """The law's hockey-stick divergence stays within the delta that the claimed rho gives."""
    mechanism = DiscreteGaussian(sigma2)
    exact_epsilon = F(epsilon)
    with mpmath.workdps(40):
        rho = mechanism.loss(l2_squared=shift**2).charge.rho
        assert rho is not None
        delta = hockey_stick(pmf(mechanism), shift, mp(exact_epsilon))
        assert delta <= mp(delta_of_rho(rho, exact_epsilon))


@settings(deadline=None, max_examples=25)
@given(SMALL, SHIFTS, st.floats(1.01, 30))
def test_gaussian_renyi_divergence_is_within_alpha_rho(sigma2, shift, alpha):
    """The Rényi divergence of the law and its shift is at most alpha·rho, and equal for integers.

    Equality holds where alpha·shift is an integer: the shifted lattice sum is then the whole sum.
    """
    mechanism = DiscreteGaussian(sigma2)
    with mpmath.workdps(60):
        s2 = mp(sigma2)
        rho = mp(mechanism.loss(l2_squared=shift**2).charge.rho)
        for order, equal in ((mpmath.mpf(alpha), False), (mpmath.mpf(int(alpha) + 1), True)):
            middle = int(order * shift)
            span = range(middle - int(16 * mpmath.sqrt(s2)) - 25, middle + int(16 * s2**0.5) + 25)
            top = mpmath.fsum(
                mpmath.exp(-(order * (z - shift) ** 2 + (1 - order) * z * z) / (2 * s2))
                for z in span
            )
            bottom = mpmath.fsum(
                mpmath.exp(-mpmath.mpf(z * z) / (2 * s2)) for z in range(-400, 401)
            )
            divergence = mpmath.log(top / bottom) / (order - 1)
            assert divergence <= order * rho + mpmath.mpf(10) ** -30
            if equal:
                assert abs(divergence - order * rho) < mpmath.mpf(10) ** -25


@given(AMOUNTS, AMOUNTS)
def test_sampler_parameter_and_loss_are_one_rational(cost, sensitivity):
    """Calibrating for a loss and reading the loss back is exact equality of rationals."""
    laplace = DiscreteLaplace.for_loss(cost, l1=sensitivity)
    assert laplace.loss(l1=sensitivity).charge.epsilon == cost
    assert laplace.loss(l1=sensitivity).charge.rho == cost**2 / 2
    gaussian = DiscreteGaussian.for_loss(cost, l2_squared=sensitivity)
    assert gaussian.loss(l2_squared=sensitivity).charge.rho == cost
    assert gaussian.loss(l2_squared=sensitivity).charge.epsilon is None


def test_draw_uses_the_parameter_that_is_charged(monkeypatch):
    """The sampler is called with the very rational that the loss is computed from."""
    seen = []

    def record(parameter, size):
        seen.append((parameter, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(samplers, "discrete_laplace", record)
    monkeypatch.setattr(samplers, "discrete_gaussian", record)
    assert DiscreteLaplace(F(22, 7)).draw((2, 3)).shape == (2, 3)
    assert DiscreteGaussian(F(355, 113)).draw(4).shape == (4,)
    assert seen == [(F(22, 7), 6), (F(355, 113), 4)]


@pytest.mark.parametrize(
    "mechanism",
    [DiscreteLaplace(F(1, 50)), DiscreteLaplace(F(1, 3)), DiscreteLaplace(F(7, 2))]
    + [DiscreteLaplace(F(20))]
    + [DiscreteGaussian(F(s)) for s in ("1/100", "1/5", "1", "399/100", "4", "17", "900")],
)
def test_error_of_the_law(mechanism):
    """Variance, tails and half-widths are those of the law, summed term by term."""
    assert isinstance(mechanism, AdditiveNoise)
    with mpmath.workdps(40):
        law = pmf(mechanism)
        variance = mpmath.fsum(z * z * p for z, p in law.items())
        assert mechanism.variance == pytest.approx(float(variance), rel=1e-12, abs=1e-300)
        upper = mpmath.mpf(0)
        above = {}
        for z in sorted(law, reverse=True):
            upper += law[z]
            above[z] = upper
        for t in (-3, 0, 1, 2, 5, 20):
            exact = above.get(t, mpmath.mpf(0))
            assert mp(mechanism.upper_tail(t)) >= exact * (1 - mpmath.mpf(10) ** -30)
            assert mp(mechanism.tail(t)) >= (2 * exact if t >= 1 else 1) * (1 - mpmath.mpf(1e-30))
            assert mechanism.survival(t) == pytest.approx(float(exact), rel=1e-12, abs=1e-300)
            if t >= 1 and exact > mpmath.mpf(10) ** -30:
                assert mp(mechanism.upper_tail(t)) <= exact * (1 + mpmath.mpf(10) ** -8)
        for confidence in (0.01, 0.5, 0.9, 0.95, 0.999):
            width = 0
            while 2 * above.get(width + 1, mpmath.mpf(0)) > mpmath.mpf(1 - confidence):
                width += 1
            assert mechanism.half_width(confidence) == width


@pytest.mark.parametrize("sigma2", [F(4097), F(10**6), F(2) ** 40])
@pytest.mark.parametrize("t_over_sigma", [0.2, 0.99, 1.5, 5, 12, 40])
def test_gaussian_tail_of_large_sigma(sigma2, t_over_sigma):
    """The closed bound lies above the law's own tail, and is tight far out.

    The law's tail is summed for the smaller two; for the largest sigma it is the Euler-Maclaurin
    value, exact to more digits than the slack asked for.
    """
    mechanism = DiscreteGaussian(sigma2)
    with mpmath.workdps(40):
        s2 = mp(sigma2)
        t = int(t_over_sigma * mpmath.sqrt(s2))
        x = (mpmath.mpf(t) - 0.5) / mpmath.sqrt(s2)
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        smooth = mpmath.erfc(x / mpmath.sqrt(2)) / 2 - x * density / (24 * s2)
        if sigma2 < 5000:
            reach = int(20 * mpmath.sqrt(s2))
            above = mpmath.fsum(
                mpmath.exp(-mpmath.mpf(z * z) / (2 * s2)) for z in range(t, t + reach)
            )
            exact = above / mpmath.sqrt(2 * mpmath.pi * s2)
        else:
            exact = smooth
        bound = mp(mechanism.upper_tail(t))
        assert bound >= exact
        if x >= 1:
            assert bound <= exact * (1 + mpmath.mpf(3) / mpmath.sqrt(s2) * (1 + x))
        else:
            assert bound <= 0.5
        assert mechanism.survival(t) == pytest.approx(float(exact), rel=1e-5, abs=1e-300)


@settings(deadline=None)
@given(st.integers(-8, 90), st.floats(0.001, 0.99999))
@example(90, 1 - 2**-53)
def test_half_width_of_any_scale(power, confidence):
    """From no noise to 2^45, a half-width is the first integer whose survival is small enough."""
    for mechanism in (DiscreteLaplace(F(2) ** (power // 2)), DiscreteGaussian(F(2) ** power)):
        width = mechanism.half_width(confidence)
        assert 2 * mechanism.survival(width + 1) <= 1 - confidence
        assert width == 0 or 2 * mechanism.survival(width) > 1 - confidence


def test_tails_reach_below_any_float():
    """Tails stay positive and right at 1e-400, where floats end."""
    with mpmath.workdps(30):
        laplace = mp(DiscreteLaplace(F(1)).upper_tail(1000))
        assert laplace == pytest.approx(mpmath.exp(-1000) / (1 + mpmath.exp(-1)), rel=1e-20)
        gaussian = mp(DiscreteGaussian(F(10**6)).upper_tail(43_000))
        reference = mpmath.erfc((mpmath.mpf(43_000) - 0.5) / 1000 / mpmath.sqrt(2)) / 2
        assert 1 <= gaussian / reference < 1 + 1e-3


def test_no_sensitivity_costs_nothing():
    """A vector that no neighbour changes is free."""
    assert DiscreteLaplace(F(1)).loss(l1=0).charge.epsilon == 0
    assert DiscreteGaussian(F(1)).loss(l2_squared=0).charge.epsilon == 0


@pytest.mark.parametrize("value", [0, F(-1), -0.5, True, F(2) ** 200])
def test_parameters_out_of_range(value):
    """Zero, negative or unreachable parameters are refused by name."""
    with pytest.raises(ArgumentError, match="scale"):
        DiscreteLaplace(value)
    with pytest.raises(ArgumentError, match="sigma2"):
        DiscreteGaussian(value)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, float("nan"), "high"])
def test_confidence_out_of_range(confidence):
    """A confidence must be a number strictly between 0 and 1."""
    with pytest.raises(ArgumentError, match="confidence"):
        DiscreteLaplace(F(1)).half_width(confidence)


def test_parameters_read_back():
    """A certificate's text holds the exact parameter."""
    assert F(DiscreteLaplace(F(22, 7)).parameters()["scale"]) == F(22, 7)
    assert F(DiscreteGaussian(F(22, 7)).parameters()["sigma2"]) == F(22, 7)


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
@pytest.mark.parametrize(
    "known",
    [
        {"l1": 10, "linf": 1},
        {"linf": 1, "dimension": 50},
        {"linf": 1, "dimension": 400},
        {"l1": 1, "dimension": 1},
        {"l2_squared": 7, "l1": 7},
        {"linf": 5, "dimension": 8},
    ],
)
@pytest.mark.parametrize("delta", [F(1, 10**6), F(1, 10**9), F(1, 3 * 10**7)])
def test_a_choice_costs_what_its_loss_says(epsilon: F, delta: F, known: dict[str, int]) -> None:
    """Asked at its own delta, as a decimal or rounded up, and in composition no less."""
    chosen = choose(epsilon=epsilon, delta=delta, **known)
    loss = chosen.loss()
    asked = float(delta) if F(repr(float(delta))) >= delta else math.nextafter(float(delta), 1)
    found = loss.epsilon(asked)
    assert found.upper <= float(chosen.charge.epsilon) * (1 + 1e-11)
    assert (2 * loss).epsilon(2 * asked).upper <= 2 * float(epsilon) * (1 + 1e-9)


def changes(square: int, coordinates: int) -> list[tuple[int, ...]]:
    """All vectors of whole changes, up to order and sign, of at most this sum of squares."""
    most = math.isqrt(square)
    every = itertools.combinations_with_replacement(range(most + 1), coordinates)
    return [v for v in every if 0 < sum(x * x for x in v) <= square]


@pytest.mark.parametrize("sigma2", [F(3, 2), F(6), F(40)])
def test_every_change_within_the_sensitivity_is_covered(sigma2: F) -> None:
    """Each change is the sum of its coordinates' losses, composed exactly; so are two runs."""
    bound = DiscreteGaussian(sigma2).loss(l2_squared=6, coordinates=3)
    sigma = math.sqrt(sigma2)
    for change in changes(6, 3):
        parts = [privacy.discrete_gaussian(sigma, sensitivity=x) for x in change if x]
        truth = compose(*parts)
        for e in (0.0, 0.3, 1.0, 2.5, 5.0):
            assert truth.delta(e).lower <= bound.delta(e).upper
            assert (2 * truth).delta(e).lower <= (2 * bound).delta(e).upper
        for order in (2, 8, 64):
            assert truth.renyi(order).lower <= bound.renyi(order).upper


def test_vectors_lose_hardly_more_than_continuous_noise() -> None:
    """A thousandth, where the conversion from zCDP alone costs six hundredths."""
    vector = DiscreteGaussian(F(400)).loss(l2_squared=40)
    smooth = privacy.gaussian(math.sqrt(10.0))
    for k in (1, 30):
        ratio = (k * vector).epsilon(1e-6).upper / (k * smooth).epsilon(1e-6).upper
        assert 1 <= ratio < 1.002
    assert vector.zcdp() == pytest.approx(0.05, rel=1e-9)


def test_vectors_beside_other_losses_and_on_samples() -> None:
    """They compose, and are sampled where continuous noise dominates outright."""
    coarse = DiscreteGaussian(F(400)).loss(l2_squared=40)
    total: Loss = coarse + privacy.laplace(5.0) + privacy.approximate(0.1, 1e-8)
    assert total.epsilon(1e-6) > coarse.epsilon(1e-6)
    with pytest.raises(ArgumentError, match="poisson"):
        coarse.poisson(0.1)
    fine = DiscreteGaussian(F(40_000)).loss(l2_squared=40)
    sampled = fine.poisson(0.1).epsilon(1e-6)
    assert sampled.one_sided
    assert sampled == pytest.approx(
        privacy.gaussian(math.sqrt(1000.0)).poisson(0.1).epsilon(1e-6), rel=2e-3
    )
    # No law of so large a sigma is listed, so beside others nothing is said from below.
    huge = DiscreteGaussian(F(10**8)).loss(l2_squared=4, coordinates=2).epsilon(1e-6)
    assert huge.one_sided
    assert huge.lower > (1 - 1e-6) * huge.upper
