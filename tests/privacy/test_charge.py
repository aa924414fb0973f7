"""Charges: added field by field, exactly, rounded only upwards, converted at a price that holds."""

from __future__ import annotations

import math
from fractions import Fraction as F

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError
from dither.privacy import Charge, Neighbours, Promise
from dither.privacy._charge import group_factor

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


PATIENT = Promise("patient")
REPLACED = Promise("patient", Neighbours.REPLACE)
ROW = Promise("row of visits")


@pytest.mark.parametrize("other", [REPLACED, ROW, None])
def test_different_promises_are_not_added(other):
    """Other neighbours, another unit, or nobody in particular: each is refused, in either order."""
    one, two = Charge.pure(F(1), PATIENT), Charge.pure(F(1), other)
    for left, right in ((one, two), (two, one)):
        with pytest.raises(ArgumentError, match=r"cannot be added.*to_replace, to_group"):
            left + right


def test_a_sum_begins_with_nothing():
    """A charge of nothing is true of every promise."""
    assert (Charge() + Charge.pure(F(1), PATIENT)).promise == PATIENT
    assert (Charge.pure(F(1), PATIENT) + Charge()).promise == PATIENT
    assert (Charge(promise=ROW) + Charge.pure(F(1), PATIENT)).promise == PATIENT
    assert (Charge.pure(F(1)) + Charge(promise=ROW)).promise is None


def test_a_charge_is_stated_once():
    """Amounts without a promise take one; those that have one keep it."""
    assert Charge.pure(F(1)).promising(PATIENT).promising(PATIENT).promise == PATIENT
    with pytest.raises(ArgumentError, match="says nothing of one patient, replaced"):
        Charge.pure(F(1), PATIENT).promising(REPLACED)


@given(st.fractions(F(1, 1000), 4, max_denominator=1000), st.integers(1, 200))
def test_pure_and_zcdp_charges_of_a_group(epsilon, size):
    """Exactly k times epsilon and k squared times rho."""
    group = Charge(epsilon, F(0), F(1, 7), F(0), ROW).to_group("patient", size)
    assert (group.epsilon, group.delta) == (size * epsilon, 0)
    assert (group.rho, group.rho_delta) == (size * size * F(1, 7), 0)
    assert group.promise == PATIENT


@given(
    st.fractions(F(1, 10**6), 3, max_denominator=10**6),
    st.one_of(st.integers(2, 80), st.integers(2, 10**6)),
)
def test_the_delta_of_a_group_is_rounded_up(epsilon, size):
    """Never below δ·(e^{kε} - 1)/(e^ε - 1) to 60 digits, and above it by less than 1e-20 of it."""
    with mpmath.workdps(80):
        x = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        true = mpmath.expm1(size * x) / mpmath.expm1(x)
        found = group_factor(epsilon, size)
        if size * epsilon > 2**16:
            assert found is None
            return
        got = mpmath.mpf(found.numerator) / found.denominator
        assert true <= got * (1 + mpmath.mpf(10) ** -60)
        assert got <= true * (1 + mpmath.mpf(10) ** -20)


def test_a_replacement_costs_two():
    """(2ε, (1 + e^ε)δ) and 4ρ: what a removal and an addition cost together."""
    charge = Charge(F(1, 2), F(1, 10**6), F(1, 9), F(0), PATIENT).to_replace()
    assert (charge.epsilon, charge.rho, charge.promise) == (1, F(4, 9), REPLACED)
    with mpmath.workdps(50):
        true = (1 + mpmath.exp(mpmath.mpf("0.5"))) / 10**6
        got = mpmath.mpf(charge.delta.numerator) / charge.delta.denominator
        assert true <= got <= true * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
@pytest.mark.parametrize("delta", [F(0), F(1, 100)])
def test_replacing_costs_what_the_worst_chain_loses(epsilon, delta):
    """Brute force: three laws, each step as leaky as (ε, δ) allows, and no event breaks the price.

    The extremal mechanism on a chain A - B - C: it is (ε, δ) a step and reaches 2ε at the ends.
    """
    e, d = math.exp(float(epsilon)), float(delta)
    # Outcomes: shown A, high, middle, low, shown C; B can show itself to either side.
    p = (1 - d) / (1 + e + e * e)
    a = [d, p * e * e, p * e, p, 0.0]
    b = [0.0, p * e, p * e * e, p * e, 0.0]
    b[2] += 1 - sum(b)
    c = [0.0, p, p * e, p * e * e, d]
    worst = Charge(epsilon, delta, None, F(0), PATIENT).to_replace()
    allowed = float(worst.delta)
    for one, two in ((a, c), (c, a)):
        lost = sum(max(0.0, x - e * e * y) for x, y in zip(one, two, strict=True))
        assert lost <= allowed + 1e-12
    tight = sum(max(0.0, x - e * (1 + 1e-9) * y) for x, y in zip(a, c, strict=True))
    assert tight > allowed, "the price of one step alone would be refuted"


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_price_agrees_with_the_loss(size):
    """The group of a Laplace mechanism, by its own exact loss, is within the converted charge."""
    epsilon = F(1, 2)
    group = Charge.pure(epsilon, ROW).to_group("patient", size)
    exact = privacy.laplace(2.0).group(size)
    assert float(group.epsilon) >= exact.epsilon(0).lower
    rho = privacy.gaussian(3.0).zcdp()
    wide = Charge(None, F(0), F(rho), F(0), ROW).to_group("patient", size)
    assert float(wide.rho) >= privacy.gaussian(3.0 / size).zcdp().lower


def test_approximate_zcdp_has_no_chain():
    """Where a delta stands beside rho, a group's rho comes from its epsilon, or is not claimed."""
    charge = Charge(F(1), F(1, 10**6), F(1, 8), F(1, 10**7), ROW).to_group("patient", 2)
    assert (charge.rho, charge.rho_delta) == (F(2), charge.delta)
    open_ended = Charge(None, F(0), F(1, 8), F(1, 10**7), ROW).to_group("patient", 2)
    assert (open_ended.epsilon, open_ended.rho) == (None, None)


def test_a_delta_beyond_one_is_one():
    """No claim is worse than none, whatever the group."""
    charge = Charge(F(10), F(1, 100), F(50), F(1, 100), ROW).to_group("patient", 10**5)
    assert charge.delta == 1


def test_nothing_follows_from_a_replacement():
    """A row replaced says nothing of a row added, nor of a unit with another number of rows."""
    replaced = Charge.pure(F(1), Promise("row of visits", Neighbours.REPLACE))
    for convert in (Charge.to_replace, lambda c: c.to_group("patient", 3)):
        with pytest.raises(ArgumentError, match="added or removed"):
            convert(replaced)
        with pytest.raises(ArgumentError, match="added or removed"):
            convert(Charge.pure(F(1)))


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2"])
def test_a_size_is_a_whole_number(size):
    """Named in the message."""
    with pytest.raises(ArgumentError, match="size must be a whole number of at least 1"):
        Charge.pure(F(1), ROW).to_group("patient", size)


@pytest.mark.parametrize("unit", ["", " ", "a\nb", "x" * 201, 3, None])
def test_a_unit_is_a_name(unit):
    """Printable text."""
    with pytest.raises(ArgumentError, match="unit must be"):
        Promise(unit)


def test_promises_are_read_back():
    """And nothing else is."""
    for promise in (PATIENT, REPLACED, ROW):
        assert Promise.from_dict(promise.to_dict()) == promise
    for stored in ({}, {"unit": "x"}, {"unit": "x", "neighbours": "both"}, {"unit": 3}, None, []):
        with pytest.raises(ArgumentError, match="stored promise"):
            Promise.from_dict(stored)
    with pytest.raises(ArgumentError, match="neighbours must be"):
        Promise("x", "add-remove")
    with pytest.raises(ArgumentError, match="promise must be"):
        Charge(promise="patient")
