"""Exact rationals: what is read, as what, and what is refused without telling the value."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.numeric import exact, positive


@pytest.mark.parametrize(
    "value", [0.1, "0.1", " 1/10 ", "1e-1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1)]
)
def test_a_tenth_is_a_tenth(value):
    """Every way to write a tenth gives one tenth, never the double beside it."""
    assert exact(value, "epsilon") == Fraction(1, 10)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 3.0, "3", Decimal(3)])
def test_integers_are_read(value):
    """Whole numbers of any type are read, and the result is a plain Fraction."""
    assert type(exact(value, "n")) is Fraction
    assert exact(value, "n") == 3


@pytest.mark.parametrize(
    "value",
    [
        *(True, False, np.bool_(True), None, "", "abc", "nan", "1/0", "1e_", "1e"),
        *(float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity")),
        *(1j, b"1", [1], np.array([1.0, 2.0])),
    ],
)
def test_what_is_no_number_is_refused(value):
    """Booleans, NaN, infinities and other types are refused under the argument's name."""
    with pytest.raises(ArgumentError, match=r"^epsilon must"):
        exact(value, "epsilon")


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e-99999999999999999999", "1e9_999_999_999", Decimal("1e99999")]
)
def test_gigantic_exponents_are_refused_at_once(value):
    """An exponent that would fill the memory is refused before it is expanded."""
    with pytest.raises(ArgumentError, match="exponent"):
        exact(value, "scale")


def test_messages_hold_no_value():
    """The message names the argument and the type, not what was given."""
    with pytest.raises(ArgumentError) as caught:
        exact("secret-4711", "bounds")
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, "0", -0.0, Fraction(-1, 3)])
def test_positive_refuses_zero_and_below(value):
    """`positive` wants more than zero."""
    with pytest.raises(ArgumentError, match="scale must be above 0"):
        positive(value, "scale")


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(deadline=None)
def test_a_float_is_read_as_its_shortest_decimal(x):
    """The rational rounds back to the same double, and is what its repr says."""
    assert float(exact(x, "x")) == x
    assert exact(x, "x") == Fraction(repr(x))


@given(st.fractions())
@settings(deadline=None)
def test_fractions_pass_unchanged(x):
    """A Fraction is its own exact value, and so is its text."""
    assert exact(x, "x") == x == exact(str(x), "x")
