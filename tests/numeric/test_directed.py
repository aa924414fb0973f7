"""Directed rounding: each bound is on its side, close, and agrees with a series of our own."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.numeric import (
    exp_lower,
    exp_upper,
    float_down,
    float_up,
    log_lower,
    log_upper,
    sqrt_lower,
    sqrt_upper,
)

MODEST = st.fractions(min_value=-30, max_value=30, max_denominator=10**6)
ABOVE_ZERO = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9)


def exp_by_series(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bound exp(x) for |x| ≤ 1 by 60 terms of its series; the rest is below twice the next."""
    total, term = Fraction(0), Fraction(1)
    for k in range(1, 61):
        total += term
        term = term * x / k
    return total - 2 * abs(term), total + 2 * abs(term)


@given(st.fractions(min_value=-1, max_value=1, max_denominator=10**6))
@settings(max_examples=50, deadline=None)
def test_exp_holds_the_series(x):
    """The interval of exp at 128 bits holds the interval of its series at 260."""
    low, high = exp_by_series(x)
    assert exp_lower(x) <= low <= high <= exp_upper(x)


def test_a_tighter_claim_would_be_caught():
    """The series is fine enough to catch a bound on the wrong side by 2**-200."""
    low, high = exp_by_series(Fraction(1, 3))
    assert exp_lower(Fraction(1, 3), 250) * (1 + Fraction(1, 2**200)) > high
    assert exp_upper(Fraction(1, 3), 250) * (1 - Fraction(1, 2**200)) < low


@given(MODEST, MODEST)
@settings(deadline=None)
def test_exp_respects_sums(x, y):
    """Bounds of exp(x+y) and of exp(x)·exp(y) overlap, each on its own side."""
    assert exp_lower(x) * exp_lower(y) <= exp_upper(x + y)
    assert exp_upper(x) * exp_upper(y) >= exp_lower(x + y)


@given(MODEST, st.sampled_from([64, 128, 256]))
@settings(deadline=None)
def test_exp_is_as_tight_as_it_says(x, bits):
    """The two bounds differ by less than 2**(3 − bits) of themselves."""
    low, high = exp_lower(x, bits), exp_upper(x, bits)
    assert low <= high <= low * (1 + Fraction(8, 1 << bits))


@given(ABOVE_ZERO)
@settings(deadline=None)
def test_log_undoes_exp(x):
    """exp of the lower logarithm is at most x, of the upper at least x."""
    assert exp_lower(log_lower(x)) <= x <= exp_upper(log_upper(x))
    assert log_upper(x) - log_lower(x) <= Fraction(abs(log_upper(x))) / 2**120


def test_log_next_to_one_keeps_its_digits():
    """log(1 + 2**-200) is bounded relative to itself: it lies within t − t²/2 and t."""
    t = Fraction(1, 2**200)
    assert t - t * t / 2 <= log_upper(1 + t) <= t * (1 + Fraction(1, 2**120))
    assert t * (1 - Fraction(1, 2**120)) <= log_lower(1 + t) <= t


@given(st.fractions(min_value=0, max_value=10**12, max_denominator=10**12))
@settings(deadline=None)
def test_sqrt_squares_to_its_side(x):
    """The square of each bound is on its side of x, and the two are close."""
    low, high = sqrt_lower(x), sqrt_upper(x)
    assert low * low <= x <= high * high
    assert high - low <= high / 2**126


@given(st.fractions(min_value=0, max_value=1000))
@settings(deadline=None)
def test_sqrt_of_a_square_is_exact(x):
    """A rational square has its root on both sides."""
    assert sqrt_lower(x * x) == x == sqrt_upper(x * x)


@given(st.fractions() | st.floats(allow_nan=False, allow_infinity=False).map(Fraction))
@settings(deadline=None)
def test_doubles_around_a_rational(x):
    """float_up and float_down are neighbours around x, or x itself."""
    up, down = float_up(x), float_down(x)
    assert Fraction(down) <= x <= Fraction(up)
    if down != up:
        assert math.nextafter(down, math.inf) == up
    else:
        assert Fraction(up) == x


def test_doubles_at_the_ends_of_their_range():
    """Beyond the largest double and below the smallest the side is still right."""
    huge, tiny = Fraction(10) ** 400, Fraction(1, 10**400)
    assert float_up(huge) == math.inf
    assert float_down(huge) == 1.7976931348623157e308
    assert float_up(-huge) == -1.7976931348623157e308
    assert float_down(-huge) == -math.inf
    assert (float_down(tiny), float_up(tiny)) == (0.0, 5e-324)
    assert math.copysign(1, float_down(Fraction(0))) == 1


def test_far_exponents_stay_small():
    """Very negative exponents give a small honest bound; very large ones are refused."""
    far = Fraction(-(2**40))
    assert exp_lower(far) == 0
    assert 0 < exp_upper(far) < Fraction(1, 2**180000)
    with pytest.raises(ArgumentError, match=r"x must be at most 2\*\*17"):
        exp_upper(-far)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1)])
def test_exact_points_are_exact(x):
    """exp(0) = 1, log(1) = 0, sqrt(0) = 0 and sqrt(1) = 1 carry no error."""
    assert sqrt_lower(x) == sqrt_upper(x) == x
    assert exp_lower(Fraction(0)) == exp_upper(Fraction(0)) == 1
    assert log_lower(Fraction(1)) == log_upper(Fraction(1)) == 0


@pytest.mark.parametrize(
    ("function", "x"), [(log_lower, 0), (log_upper, -1), (sqrt_lower, -1), (sqrt_upper, -1)]
)
def test_outside_the_domain(function, x):
    """log and sqrt name their argument outside their domain."""
    with pytest.raises(ArgumentError, match=r"^x must be"):
        function(Fraction(x))
