"""Searches against their definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import _search as search


@given(st.floats(-1e6, 1e6), st.booleans())
@settings(deadline=None)
def test_doubles_are_bisected_to_neighbours(turn, closed):
    """Both ends keep their side, and no double lies between them."""

    def turned(x):
        return x >= turn if closed else x > turn

    low, high = search.bisect(turned, -2e6, 2e6, steps=3000)
    assert turned(high)
    assert not turned(low)
    assert high == math.nextafter(low, math.inf)


@given(
    st.floats(-20.0, 20.0),
    st.sampled_from([1.0, 5.0, 0.2]),
    st.floats(1e-12, 1e-2),
    st.booleans(),
)
def test_false_positions_hold_on_either_side(root, power, width, cut):
    """A flat or steep function of either sign, infinite at an end: proved ends, close enough."""

    def over(x):
        if cut and x < root - 10:
            return math.inf
        return math.copysign(abs(root - x) ** power, root - x)

    low, high = search.false_position(
        over, -50.0, 60.0, (over(-50.0), over(60.0)), absolute=width, steps=300
    )
    assert over(low) > 0 >= over(high)
    assert high - low <= width


def test_bisections_stop_where_they_are_told():
    """After so many halvings or at a width; Fractions stay exact; arrays side by side."""
    low, high = search.bisect(lambda x: 3 * x >= 1, Fraction(0), Fraction(1), steps=50)
    assert high - low == Fraction(1, 2**50)
    assert low < Fraction(1, 3) <= high
    low, high = search.bisect(lambda x: 3 * x >= 1, 0.0, 1.0, 0.01)
    assert 0.005 < high - low <= 0.01
    roots = np.array([2.0, 3.0, 5.0])
    low, high = search.bisect_arrays(lambda x: x**2 >= roots, np.zeros(3), np.full(3, 9.0))
    assert (low**2 <= roots).all()
    assert high == pytest.approx(np.sqrt(roots), rel=1e-15)


@given(st.integers(-50, 10**9), st.integers(-50, 50), st.integers(1, 1000))
def test_the_least_integer_is_the_least(turn, least, step):
    """From any start and stride; where a limit lies below, there is none."""
    right = max(turn, least)
    assert search.least_integer(lambda n: n >= turn, least, step=step) == right
    assert search.least_integer(lambda n: n >= turn, least, step=step, most=right) == right
    if right > least:
        assert search.least_integer(lambda n: n >= turn, least, step=step, most=right - 1) is None


@given(st.fractions(Fraction(1, 10**6), 10**6))
@settings(deadline=None)
def test_decimals_have_three_digits_and_are_next_to_the_turn(turn):
    """The least at or above and the greatest at or below are neighbours of the turning point."""
    low, high = Fraction(1, 10**6), Fraction(10**6)
    up = search.least_decimal(lambda x: x >= turn, low, high)
    down = search.greatest_decimal(lambda x: x <= turn, low, high)
    assert down <= turn <= up
    for found in (up, down):
        exponent = math.floor(math.log10(found) + 1e-12) - 2
        assert (found / Fraction(10) ** exponent).denominator == 1
    assert up == down or up - down <= Fraction(11, 1000) * turn


def test_decimals_of_what_never_turns():
    """None where nothing in the range will do; an end where all of it does."""
    low, high = Fraction(1, 10), Fraction(10)
    assert search.least_decimal(lambda x: False, low, high) is None
    assert search.greatest_decimal(lambda x: False, low, high) is None
    assert search.least_decimal(lambda x: True, low, high) == low
    assert search.greatest_decimal(lambda x: True, low, high) == high
    narrow = Fraction(10001, 10000), Fraction(10002, 10000)
    assert search.least_decimal(lambda x: True, *narrow) is None
