"""Charges add up field by field, exactly, and only upwards when rounded."""

from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.privacy import Charge, Neighbours

AMOUNTS = st.fractions(0, 100)
CHARGES = st.builds(Charge, st.none() | AMOUNTS, AMOUNTS, st.none() | AMOUNTS, AMOUNTS)


@given(CHARGES, CHARGES, CHARGES)
def test_addition_is_a_commutative_monoid(a, b, c):
    """The order of an adaptive sequence does not change its sum, and nothing costs nothing."""
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + Charge() == a


@given(CHARGES, st.integers(1, 10**6))
def test_rounding_never_lowers_a_charge(charge, denominator):
    """Rounded amounts are whole multiples of the unit, at least as large, by less than a unit."""
    unit = F(1, denominator)
    rounded = charge.rounded_up(unit)
    for name in ("epsilon", "delta", "rho", "rho_delta"):
        before, after = getattr(charge, name), getattr(rounded, name)
        if before is None:
            assert after is None
        else:
            assert 0 <= after - before < unit
            assert (after / unit).denominator == 1


def test_pure():
    """epsilon-DP is (epsilon²/2)-zCDP."""
    assert Charge.pure(F(3)) == Charge(epsilon=F(3), rho=F(9, 2))


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "rho_delta"])
@pytest.mark.parametrize("value", [F(-1), -0.5, float("nan"), float("inf"), True, "a half"])
def test_no_number_or_a_negative_one_is_an_amount(name, value):
    """Only finite numbers of at least 0 are amounts."""
    with pytest.raises(ArgumentError, match=name):
        Charge(**{name: value})


@pytest.mark.parametrize("value", [0.1, "1/10", F(1, 10)])
def test_amounts_are_read_exactly(value):
    """A float is read as it prints, and every amount is kept as a Fraction."""
    tenth, promise = F(1, 10), Charge.pure(F(1, 10))
    for name in ("epsilon", "delta", "rho", "rho_delta"):
        kept = getattr(Charge(**{name: value}), name)
        assert type(kept) is F
        assert kept == tenth
    assert Charge.pure(value) == promise
    assert Charge.approximate(value, value) == Charge.approximate(tenth, tenth)
    assert Charge.concentrated(value) == Charge.concentrated(tenth)
    assert Charge.bounded_range(value) == Charge.bounded_range(tenth)
    assert Charge.response(value) == Charge.response(tenth)
    assert promise.sampled(value) == promise.sampled(tenth)
    assert promise.moved(value) == promise.moved(tenth)
    assert promise.rounded_up(value) == promise.rounded_up(tenth)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_each_relation_says_what_it_means(neighbours):
    """Every relation has one sentence, and its stored name reads back."""
    assert neighbours.meaning.endswith(".")
    assert Neighbours(neighbours.value) is neighbours
