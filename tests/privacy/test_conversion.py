"""The conversion between rho and (epsilon, delta), held against high-precision minimisation."""

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import delta_of_rho, epsilon_of_rho, rho_of_epsilon
from dither.errors import ArgumentError

RHOS = st.floats(-8, 3).map(lambda x: Fraction(10**x).limit_denominator(10**12))
EPSILONS = st.floats(-5, 2).map(lambda x: Fraction(10**x).limit_denominator(10**9))
DELTAS = st.floats(-60, -0.5).map(lambda x: Fraction(1, int(10 ** (-x)) + 1))


def formula(alpha, rho, delta):
    """The conversion's epsilon at one order, in mpmath."""
    return alpha * rho + mpmath.log(1 / (alpha * delta)) / (alpha - 1) + mpmath.log(1 - 1 / alpha)


def optimum(rho, delta):
    """The smallest epsilon over all orders: mpmath's root of the derivative."""
    with mpmath.workdps(50):
        r, d = mpmath.mpf(rho.numerator) / rho.denominator, mpmath.mpf(1) * delta.numerator
        d /= delta.denominator
        low, high = mpmath.mpf(-80), mpmath.mpf(200)
        for _ in range(200):
            t = (low + high) / 2
            x = mpmath.exp(t)
            if r * x * x + mpmath.log(1 + x) + mpmath.log(d) > 0:
                high = t
            else:
                low = t
        return formula(1 + mpmath.exp(low), r, d)


@pytest.mark.parametrize(
    ("power", "value"),
    [(5, 4.728386984943314), (6, 5.221534444530169), (9, 6.474070020726486)],
)
def test_reference_values(power, value):
    """Known values for 10,000 pure mechanisms of 0.01, that is rho = 1/2."""
    assert float(epsilon_of_rho(Fraction(1, 2), Fraction(1, 10**power))) == pytest.approx(
        value, rel=2e-15
    )


@settings(deadline=None, max_examples=150)
@given(RHOS.filter(bool), DELTAS)
def test_epsilon_is_an_upper_bound_and_tight(rho, delta):
    """Never below the true minimum, and within 1e-12 of it."""
    answer = epsilon_of_rho(rho, delta)
    with mpmath.workdps(50):
        best = optimum(rho, delta)
        given_value = mpmath.mpf(answer.numerator) / answer.denominator
        assert given_value >= best
        assert given_value <= max(mpmath.mpf(0), best) * (1 + mpmath.mpf(1e-12)) + mpmath.mpf(1e-15)


@settings(deadline=None, max_examples=150)
@given(EPSILONS, DELTAS)
def test_rho_is_a_lower_bound_and_tight(epsilon, delta):
    """The true epsilon of the rho returned is at most epsilon, and a little more rho exceeds it."""
    rho = rho_of_epsilon(epsilon, delta)
    with mpmath.workdps(50):
        wanted = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        assert optimum(rho, delta) <= wanted
        assert optimum(rho * (1 + Fraction(1, 10**9)), delta) > wanted


@settings(deadline=None, max_examples=100)
@given(RHOS.filter(bool), EPSILONS)
def test_delta_and_epsilon_agree(rho, epsilon):
    """delta_of_rho is the inverse of epsilon_of_rho wherever epsilon is not cut at zero."""
    delta = delta_of_rho(rho, epsilon)
    assert 0 < delta <= 1
    if Fraction(1, 10**200) < delta < Fraction(9, 10):
        with mpmath.workdps(50):
            best = optimum(rho, delta)
            wanted = mpmath.mpf(epsilon.numerator) / epsilon.denominator
            assert best <= wanted
            assert best >= wanted * (1 - mpmath.mpf(10) ** -9) - mpmath.mpf(10) ** -9


@settings(deadline=None, max_examples=50)
@given(EPSILONS, DELTAS, DELTAS)
def test_more_delta_allows_more_rho(epsilon, a, b):
    """rho grows with delta, up to the rounding."""
    low, high = sorted((a, b))
    slack = 1 + Fraction(1, 2**45)
    assert rho_of_epsilon(epsilon, low) <= rho_of_epsilon(epsilon, high) * slack


def test_ends():
    """No rho costs nothing, and an enormous rho is certain to be told apart."""
    assert epsilon_of_rho(Fraction(0), Fraction(1, 10)) == 0
    assert delta_of_rho(Fraction(0), Fraction(0)) == 0
    assert delta_of_rho(Fraction(10**6), Fraction(1)) == 1


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), -0.1])
def test_delta_out_of_range(delta):
    """A delta outside (0, 1) is refused by name."""
    with pytest.raises(ArgumentError, match="delta"):
        epsilon_of_rho(Fraction(1), delta)
    with pytest.raises(ArgumentError, match="delta"):
        rho_of_epsilon(Fraction(1), delta)


def test_other_arguments_out_of_range():
    """Negative or inexact amounts are refused by name."""
    with pytest.raises(ArgumentError, match="rho"):
        epsilon_of_rho(Fraction(-1), Fraction(1, 2))
    with pytest.raises(ArgumentError, match="epsilon"):
        rho_of_epsilon(Fraction(0), Fraction(1, 2))
    with pytest.raises(ArgumentError, match="epsilon"):
        delta_of_rho(Fraction(1), Fraction(-1))
