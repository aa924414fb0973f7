"""Claims are rounded up, and by no more than their last digits: against many digits."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import mpmath
import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.accounting import by_every_theorem, shares_by_every_theorem
from dither.errors import ArgumentError
from dither.privacy import _side, approximate, pure
from dither.privacy.laws.part import gdp_of_pure, rho_of_pure
from dither.privacy.laws.rationals import (
    mixed,
    mixed_away,
    printed,
    printing_at_least,
    printing_at_most,
    total,
)


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"),
    [(0.3, 1e-7, 2), (0.3, 1e-7, 40), (0.7, 1e-30, 60), (0.1, 1e-9, 150), (1.3, 1e-60, 80)],
)
def test_the_chance_that_a_group_is_given_away(epsilon, delta, size):
    """The chain's own mass at infinity, of the parameters as they print, is between the ends."""
    exact = mpmath.MPContext()
    exact.dps = 120
    e, d = (Fraction(repr(x)) for x in (epsilon, delta))
    grow = exact.exp(exact.mpf(e.numerator) / e.denominator)
    fails, level = exact.mpf(d.numerator) / d.denominator, exact.mpf(0)
    for _ in range(size):
        level = min(fails + grow * level, 1 - (1 - fails - level) / grow)
    found = approximate(epsilon, delta).group(size).delta(1000.0)
    assert exact.mpf(found.lower) <= level <= exact.mpf(found.upper)
    assert found.upper <= found.lower * (1 + 1e-15)


def test_basic_composition_adds_numbers_as_they_print():
    """Doubles below their decimals may not add up to less."""
    for losses in (((7, 0.3), (3, 0.1)), ((10, 0.7),), ((1, 0.1), (1, 0.7))):
        total = sum((k * Fraction(repr(e)) for k, e in losses), Fraction(0))
        loss = sum(k * pure(e) for k, e in losses)
        told = by_every_theorem(loss, 1e-6).rows[-1].value
        assert total <= Fraction(repr(told)) <= total * (1 + Fraction(1, 10**15))


F = Fraction


@pytest.mark.parametrize(
    ("loss", "exact"),
    [
        (privacy.pure(1), F(1)),
        (10 * privacy.pure(0.1), F(1)),
        (3 * privacy.pure(0.1), F(3, 10)),
        (10**12 * privacy.pure(1e-12), F(1)),
        (privacy.pure(0.1) + privacy.pure(0.2), F(3, 10)),
        (privacy.randomized_response(0.3, 5), F(3, 10)),
        (privacy.laplace(3), F(1, 3)),
        (3 * privacy.laplace(3), F(1)),
        (privacy.laplace(1).group(3), F(3)),
        (privacy.laplace(0.1), F(10)),
        (privacy.discrete_laplace(3, sensitivity=6), F(2)),
        (privacy.pure(0.1).group(7), F(7, 10)),
        (privacy.exponential(0.7), F(7, 10)),
        (5 * privacy.exponential(0.1) + privacy.laplace(2), F(1)),
        (privacy.pure(F(1, 3)) * 0 + privacy.laplace(F(1, 3)), F(3)),
    ],
)
def test_rational_sums_are_told_exactly(loss, exact):
    """A rational that a double prints as is both ends; another lies between two doubles."""
    found = loss.epsilon(0)
    assert printed(found.lower) <= exact <= printed(found.upper)
    assert found.upper <= math.nextafter(found.lower, math.inf)
    if printed(float(exact)) == exact:
        assert found.lower == found.upper == float(exact)
    # At the largest loss nothing is left, and below it something is.
    assert loss.delta(found.upper).upper == 0
    assert loss.delta(0.999 * found.lower) > 0


def test_fractions_between_doubles_are_rounded_to_a_larger_loss():
    """What is stored prints as the fraction or more, so that its promise implies the true one."""
    for n in range(3, 400, 7):
        assert printed(privacy.pure(F(1, n)).epsilon(0).upper) >= F(1, n)
        assert printed((n * privacy.pure(F(1, n))).epsilon(0).upper) >= 1
        assert privacy.laplace(F(n, 7)).epsilon(0).upper == printing_at_least(F(7, n))
        assert privacy.gaussian(F(n, 7)).gdp() == printing_at_least(F(7, n))


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-9, 30) | st.floats(900, 1100),
    st.floats(1e-12, 1) | st.just(1.0),
    st.sampled_from([privacy.pure, privacy.randomized_response]),
)
def test_samples_of_pure_mechanisms(epsilon, rate, make):
    """log(1 + g(e^epsilon - 1)) to the last digit."""
    with mpmath.workdps(1000):
        e, g = printed(epsilon), printed(rate)
        e, g = (mpmath.mpf(x.numerator) / x.denominator for x in (e, g))
        for ends, truth in (
            (mixed((printed(epsilon),) * 2, printed(rate)), mpmath.log1p(g * mpmath.expm1(e))),
            (
                mixed_away((printed(epsilon),) * 2, printed(rate)),
                -mpmath.log1p(g * mpmath.expm1(-e)),
            ),
        ):
            low, high = (mpmath.mpf(x.numerator) / x.denominator for x in ends)
            tiny = mpmath.mpf(10) ** -450
            assert low <= truth * (1 + tiny)
            assert truth * (1 - tiny) <= high
            assert high - low <= truth * mpmath.mpf(10) ** -30
        if epsilon <= 300:
            found = make(epsilon).poisson(rate).epsilon(0)
            assert found.upper <= math.nextafter(found.lower, math.inf)


def test_added_units_with_an_infinite_loss():
    """What the sample never shows without the unit is bounded by -log(1 - g)."""
    loss = privacy.pair([0.5, 0.5], [0.0, 1.0]).poisson(0.25)
    with pytest.raises(ArgumentError, match="at least"):
        loss.epsilon(0)
    for base in (privacy.gaussian(1), privacy.approximate(1, 1e-3)):
        sides = _side.sides(base.poisson(0.25))
        assert printed(sides[1].top) >= printing_at_most(F(287682, 10**6))
        assert sides[1].top == pytest.approx(-math.log(0.75), rel=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 600))
def test_pure_mechanisms_as_concentrated_and_gaussian(epsilon):
    """rho = e·tanh(e/2) and Phi(-mu/2) = 1/(1 + e^e): from above, and by little."""
    e = printed(epsilon)
    with mpmath.workdps(400):
        x = mpmath.mpf(e.numerator) / e.denominator
        rho = rho_of_pure(e)
        truth = x * mpmath.tanh(x / 2)
        assert (
            truth
            <= mpmath.mpf(rho.numerator) / rho.denominator
            <= truth * (1 + mpmath.mpf(10) ** -20)
        )
        mu = mpmath.mpf(gdp_of_pure(e).numerator) / gdp_of_pure(e).denominator
        assert mpmath.erfc(mu / mpmath.sqrt(8)) / 2 <= 1 / (1 + mpmath.exp(x))
        mu *= 1 - mpmath.mpf(10) ** -10
        assert mpmath.erfc(mu / mpmath.sqrt(8)) / 2 > 1 / (1 + mpmath.exp(x))


def test_gaussians_and_concentrated_mechanisms():
    """mu and rho of what is stated by them are what was stated."""
    assert privacy.gdp(3).gdp() == 3
    assert privacy.gdp(3).gdp().lower == 3
    assert (4 * privacy.gaussian(2)).gdp() == 1
    assert privacy.gaussian(2).group(6).gdp() == 3
    assert privacy.gaussian(2).zcdp() == privacy.gaussian(2).zcdp().lower == 0.125
    assert (10 * privacy.zcdp(0.1)).zcdp() == 1
    assert privacy.zcdp(0.1).zcdp().width == 0


@given(st.fractions(min_value=0, max_value=10**6))
def test_told_numbers_stand_on_their_side(x):
    """The nearest double, or the one beside it."""
    assert printed(printing_at_most(x)) <= x <= printed(printing_at_least(x))
    assert printing_at_least(x) <= math.nextafter(printing_at_most(x), math.inf)


def test_deltas_next_to_nothing_are_outside_too() -> None:
    """Below 1e-308 a double rounds by halves of the least one, and no longer by parts of itself."""
    with mpmath.workdps(60):
        for sigma, epsilon in [
            ("3.5", "11.1"),
            ("0.98", "39.3"),
            ("0.154", "270.3"),
            ("4.69", "8.11"),
            ("3.35", "11.5"),
            ("0.778", "49.4"),
            ("6.35", "6.05"),
            ("0.112", "377.4"),
        ]:
            mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
            exact = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            found = privacy.gaussian(sigma).delta(float(epsilon))
            assert found.lower <= exact <= found.upper
            assert 0 < exact < 2.3e-308


def test_delta_holds_at_any_deviation() -> None:
    """400 totals with mu up to 30,000, down to delta 1e-150, against 80 digits."""
    chance = random.Random(11)
    seen = 0
    with mp.workdps(80):
        for _ in range(400):
            scale = 10 ** chance.uniform(-3, 0)
            count = chance.choice([1, 1, 2, 7, 1000])
            mu = mp.sqrt(count) / _exact(scale)
            epsilon = float(mu * mu / 2 + chance.uniform(-2, 25) * mu)
            if epsilon <= 0:
                continue
            found = (count * privacy.gaussian(scale)).delta(epsilon)
            truth = _delta(mu, _exact(epsilon))
            assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
            assert found.upper - found.lower <= 1e-8 * found.upper
            seen += mu > 1000
    assert seen > 50


def test_epsilon_holds_at_any_deviation() -> None:
    """The inverse: delta at its two ends lies on either side of the target."""
    with mp.workdps(80):
        for scale in (0.001, 0.0037, 0.02, 0.5):
            for delta in (0.1, 1e-6, 1e-40):
                found = (100 * privacy.gaussian(scale)).epsilon(delta)
                mu = 10 / _exact(scale)
                assert _delta(mu, _exact(found.upper)) <= delta <= _delta(mu, _exact(found.lower))
                assert math.isclose(found.lower, found.upper, rel_tol=1e-11)


def _exact(number: float) -> mp.mpf:
    fraction = Fraction(repr(float(number)))
    return mp.mpf(fraction.numerator) / fraction.denominator


def _delta(mu: mp.mpf, epsilon: mp.mpf) -> mp.mpf:
    return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def test_tables_of_theorems_round_as_their_claims_do() -> None:
    """What is shown of an epsilon is no less than it, of a share no more, whatever is cut off."""
    loss = 7 * privacy.gaussian(3.0)
    for table in (by_every_theorem(loss, 1e-6), shares_by_every_theorem(1.0, 97, 1e-6)):
        for row in table.rows:
            if row.value is None:
                continue
            (line,) = (
                t for t in table.summary().splitlines() if t.startswith(f"  {row.theorem}  ")
            )
            shown = Fraction(line.removeprefix(f"  {row.theorem}").split()[0])
            exact = Fraction(repr(row.value))
            assert (shown <= exact) if table.more else (shown >= exact)
            assert abs(shown - exact) <= exact / 10**13


@given(
    st.lists(st.tuples(st.fractions(0, 5, max_denominator=10**6), st.integers(1, 9)), max_size=9)
)
def test_losses_of_many_parts_add_up_exactly(parts):
    """In any order, at both ends; what has no largest loss has no sum."""
    found = total(((low, low + Fraction(k, 7)), k) for low, k in parts)
    low = sum((k * low for low, k in parts), Fraction(0))
    assert found == (low, low + sum((Fraction(k * k, 7) for _, k in parts), Fraction(0)))
    assert total([((Fraction(1), Fraction(1)), 1), (None, 1)]) is None


def test_what_is_exact_and_long_is_not_made_until_it_is_asked_for():
    """Of a thousand mechanisms that differ the sum of their rhos has a denominator without end."""
    loss = privacy.compose(*(privacy.laplace(10 + i / 7) for i in range(40)))
    assert loss.epsilon(1e-6).upper < 10
    assert all("rho" not in vars(one) for one in _side.sides(loss))
    assert _side.sides(loss)[0].rho > 0
