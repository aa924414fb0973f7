"""Arguments: what is read, as what, and what is refused without telling the value."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import _checks as checks
from dither.errors import ArgumentError

NOT_NUMBERS = [
    *(True, False, np.bool_(True), None, "", "abc", "nan", "1/0", "1e_", "1e"),
    *(float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity")),
    *(1j, b"1", bytearray(b"1"), [1], np.array([1.0]), np.array([1]), np.float32("inf")),
    *(np.array(1.0), np.array(1), np.array(1, dtype=np.float32), np.array(1, dtype=np.uint8)),
    *(np.timedelta64(1), np.array(["1"]), object()),
]


@pytest.mark.parametrize(
    "value",
    [
        *(0.1, "0.1", " 1/10 ", "1e-1", Decimal("0.1"), Fraction(1, 10)),
        *(np.float64(0.1), np.float32(0.1), np.float16(0.1)),
    ],
)
def test_a_tenth_is_a_tenth(value):
    """Every way to write a tenth gives one tenth, never the double beside it."""
    assert checks.exact("epsilon", value) == Fraction(1, 10)
    assert checks.number("epsilon", value) == 0.1


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), 3.0, "3", Decimal(3)])
def test_integers_are_read(value):
    """Whole numbers of any type are read, and the result is a plain Fraction."""
    assert type(checks.exact("n", value)) is Fraction
    assert checks.exact("n", value) == 3
    assert type(checks.number("n", value)) is float


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("read", [checks.exact, checks.positive, checks.number])
def test_what_is_not_a_number_is_refused(read, value):
    """Booleans, NaN, infinities, bytes and arrays are refused under the argument's name."""
    with pytest.raises(ArgumentError, match=r"^epsilon must"):
        read("epsilon", value)


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e-99999999999999999999", "1e9_999_999_999", Decimal("1e99999")]
)
def test_gigantic_exponents_are_refused_at_once(value):
    """An exponent that would fill the memory is refused before it is expanded."""
    for read in (checks.exact, checks.number):
        with pytest.raises(ArgumentError, match="exponent"):
            read("scale", value)


def test_messages_hold_no_number():
    """The message names the argument and the type, not what was given."""
    for read in (checks.exact, checks.number):
        for value in ("secret-4711", 4711, 4711.5, "4711"):
            with pytest.raises(ArgumentError) as caught:
                read("bounds", value, below=10)
            assert "4711" not in str(caught.value)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(deadline=None)
def test_a_float_is_read_as_it_prints(x):
    """The rational rounds back to the same double, and is what its repr says."""
    assert checks.exact("x", x) == Fraction(repr(x))
    assert checks.number("x", x) == float(checks.exact("x", x)) == x


@given(st.fractions())
@settings(deadline=None)
def test_fractions_pass_unchanged(x):
    """A Fraction is its own exact value, and so is its text."""
    assert checks.exact("x", x) == x == checks.exact("x", str(x))


@given(st.fractions(Fraction(1, 10**9), 10**9))
@settings(deadline=None)
def test_a_promise_is_rounded_down_and_a_cost_up(x):
    """The two doubles around a rational, each on its side; the nearest is one of them."""
    down = checks.number("x", x, rounding="down")
    up = checks.number("x", x, rounding="up")
    assert down <= x <= up
    assert up == down or up == math.nextafter(down, math.inf)
    assert checks.number("x", x) in (down, up)


def test_what_is_rounded_out_of_its_range_is_refused():
    """The double itself must be in the range: 1 less very little is 1 to the nearest."""
    almost = 1 - Fraction(1, 10**40)
    assert checks.number("rate", almost, below=1, rounding="down") < 1
    with pytest.raises(ArgumentError, match="rate must be below 1"):
        checks.number("rate", almost, below=1)
    with pytest.raises(ArgumentError, match="within doubles"):
        checks.number("rate", 10**400)


RANGES = [
    ({"above": 0}, [1e-300, 5], [0, -1, -0.0], "x must be above 0"),
    ({"least": 0}, [0, 5], [-1e-300], "x must be at least 0"),
    ({"above": 0, "below": 1}, ["1/2"], [0, 1, 2], "x must be above 0 and below 1"),
    ({"above": 0, "most": 1}, [1], [0, 1.5], "x must be above 0 and at most 1"),
    ({"least": 0.5, "most": 10**9}, [0.5, 1e9], [0.4, 2e9], r"at least 0.5 and at most 10\*\*9"),
]


@pytest.mark.parametrize(("limits", "good", "bad", "message"), RANGES)
def test_ranges_are_held_and_named(limits, good, bad, message):
    """Open and closed ends, on both sides, and the message says which."""
    for read in (checks.exact, checks.number):
        for value in good:
            assert read("x", value, **limits) == read("x", value)
        for value in bad:
            with pytest.raises(ArgumentError, match=message):
                read("x", value, **limits)


@pytest.mark.parametrize(
    "value", [2.0, "2", True, np.True_, None, 0, -1, np.array([2]), np.array(2), np.timedelta64(2)]
)
def test_what_is_not_an_integer_in_range_is_refused(value):
    """Floats that happen to be whole are not integers; nor are truth values and arrays."""
    with pytest.raises(ArgumentError, match="k must be an integer of at least 1 and at most 9"):
        checks.whole("k", value, 1, 9)


def test_integers_are_taken_from_any_type():
    """numpy's integers count, and what is too large is told what would work."""
    assert checks.whole("k", np.uint64(2**63), 1) == 2**63
    assert checks.whole("k", -5, None) == -5
    with pytest.raises(ArgumentError, match=r"^k must be at most 1,000; use tables$"):
        checks.whole("k", 1001, 1, 1000, instead="; use tables")
    assert checks.integers("u", np.array([1, 2], dtype=np.uint8)) == [1, 2]
    assert checks.integers("u", range(3)) == [0, 1, 2]
    for bad in ([1, True], [1.0], np.array([1.0]), np.array([[1]]), "12", b"12", 5, None, [None]):
        with pytest.raises(ArgumentError, match="u must be a flat sequence of integers"):
            checks.integers("u", bad)
    with pytest.raises(ArgumentError, match="u must not be empty"):
        checks.integers("u", [])


def test_confidence_choice_and_flag():
    """Each names its argument and what would work."""
    assert checks.confidence("0.95") == checks.confidence(Fraction(19, 20)) == 0.95
    for bad in (0, 1, 95, -0.5, True, "high", None, math.nan, 1 - Fraction(1, 10**40)):
        with pytest.raises(ArgumentError, match="strictly between 0 and 1"):
            checks.confidence(bad)
    assert checks.choice("rule", "none", {"none": 1, "simplex": 2}) == "none"
    with pytest.raises(ArgumentError, match="did you mean 'simplex'"):
        checks.choice("rule", "Simplexx", ("none", "simplex"))
    with pytest.raises(ArgumentError, match="rule must be one of 'none', 'simplex'"):
        checks.choice("rule", 3, ("none", "simplex"))
    assert checks.flag("monotone", False) is False
    with pytest.raises(ArgumentError, match="monotone must be True or False"):
        checks.flag("monotone", 0)


@pytest.mark.parametrize(
    "text", ["1e0000009999999", "1e" + "9" * 6000, "1e-0_0_9999999", "1e٠٩٩٩٩٩٩"]
)
def test_exponents_are_small_however_they_are_written(text: str) -> None:
    """Leading zeros, separators and other alphabets hide no gigabyte of digits."""
    with pytest.raises(ArgumentError, match="exponent"):
        checks.exact("epsilon", text)
