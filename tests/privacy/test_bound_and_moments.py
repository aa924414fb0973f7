"""Losses that are known by (epsilon, delta) and by moments: the better of both answers, soundly."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.mechanisms._composable import approximate_profile
from dither.privacy import Loss
from dither.privacy._compound import ORDERS

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
RHO = Fraction(1, 9)
DELTAS = (1e-9, 9e-7, 1e-6, 1e-5, 1e-3, 0.1)


def divergence(order: Fraction) -> Fraction:
    """Of a mechanism that is rho-zCDP, and not more than 1-DP in most outcomes."""
    return min(order * RHO, Fraction(3, 2))


def known_by_both() -> Loss:
    """A class, as forests state it."""
    return approximate_profile(EPSILON, DELTA, divergence, RHO, "add-remove")


def by_pair() -> Loss:
    """What the first statement says alone."""
    return privacy.approximate(EPSILON, DELTA)


def by_moments() -> Loss:
    """What the second says alone."""
    return privacy.renyi({a: float(divergence(Fraction(a))) for a in ORDERS.tolist()})


def answered(loss: Loss, delta: float) -> float:
    """Infinity where nothing is known."""
    try:
        return float(loss.epsilon(delta))
    except ArgumentError:
        return math.inf


def test_one_is_what_was_proved():
    one = known_by_both()
    assert one.epsilon(1e-6) == 1.0
    assert one.delta(1.0) == 1e-6
    assert (one.charge.epsilon, one.charge.delta) == (EPSILON, DELTA)
    assert one.charge.rho == RHO


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("delta", DELTAS)
def test_a_total_is_the_better_of_both(count, delta):
    found = answered(count * known_by_both(), delta)
    pair, moments = answered(count * by_pair(), delta), answered(count * by_moments(), delta)
    # By moments it is also rho-zCDP beyond the listed orders.
    assert found <= min(pair, moments) * (1 + 1e-9)
    zcdp = answered(privacy.zcdp(count * RHO), delta)
    assert found >= min(pair, moments, zcdp) * (1 - 1e-2)


@pytest.mark.parametrize("count", [1, 3])
def test_delta_is_the_better_of_both(count):
    for epsilon in (0.0, 0.5, 0.999, 1.0, 1.5, 3.0, 5.0):
        found = (count * known_by_both()).delta(epsilon)
        pair, moments = (count * by_pair()).delta(epsilon), (count * by_moments()).delta(epsilon)
        assert found <= min(pair, moments) * (1 + 1e-9)
        assert found.lower == 0.0


def test_both_ways_are_taken():
    one = known_by_both()
    # Where the pair fails with a larger chance, moments answer; else it does, while they are few.
    assert answered(by_pair(), 9e-7) == math.inf
    assert 1 < one.epsilon(9e-7) < 2
    assert one.delta(2.0) < 1e-9
    assert (30 * one).epsilon(1e-6) < 30
    with pytest.raises(ArgumentError, match="delta is too small"):
        one.epsilon(0)


@pytest.mark.parametrize("count", [1, 4])
def test_a_mechanism_of_the_class_loses_no_more(count):
    # Gaussian noise of a mu whose epsilon at delta and whose rho are within what is stated: it is
    # a member, and its own numbers are those of a closed form.
    gauss = privacy.gaussian(5.0)
    epsilon = Fraction(gauss.epsilon(1e-6).upper)
    rho = Fraction(1, 50)
    stated = approximate_profile(epsilon, DELTA, lambda a: a * rho, rho, "add-remove")
    for delta in DELTAS:
        assert (count * stated).epsilon(delta) >= (count * gauss).epsilon(delta).lower
        mixed = (count * stated + privacy.laplace(2.0)).epsilon(delta)
        assert mixed >= (count * gauss + privacy.laplace(2.0)).epsilon(delta).lower
    for epsilon in np.linspace(0, 6, 13).tolist():
        assert (count * stated).delta(epsilon) >= (count * gauss).delta(epsilon).lower
    for fpr in (0.0, 1e-7, 1e-3, 0.1, 0.5):
        assert (count * stated).tpr(fpr) >= (count * gauss).tpr(fpr).lower
    for order in (1.5, 2.0, 30.0, 4096.0, 5000.0):
        assert (count * stated).renyi(order) >= (count * gauss).renyi(order).lower


def test_a_failing_mechanism_keeps_its_failures():
    # What fails by itself has a delta of its own, in whatever company.
    failing = privacy.approximate(0.5, 1e-4)
    total = known_by_both() + failing
    assert total.delta(50.0) >= 1e-4
    with pytest.raises(ArgumentError, match="delta is too small"):
        total.epsilon(9e-5)
    # At a delta between both chances, the class is known by its moments alone.
    assert total.epsilon(1.005e-4) < math.inf
    with pytest.raises(ArgumentError, match="infinite with positive probability"):
        total.renyi(2.0)


def test_moments_answer_in_their_own_words():
    one = known_by_both()
    assert one.zcdp() == pytest.approx(float(RHO), rel=1e-12)
    assert one.renyi(2.0) == pytest.approx(2 * float(RHO), rel=1e-12)
    assert one.renyi(10_000.0) <= 10_000 * float(RHO) * (1 + 1e-12)
    assert (3 * one).zcdp() == pytest.approx(3 * float(RHO), rel=1e-12)
    with pytest.raises(ArgumentError, match="no finite mu"):
        one.gdp()


def test_groups_and_samples_are_known():
    pair = by_pair()
    both = known_by_both().to_replace()
    assert both.charge.rho == 4 * RHO
    assert both.zcdp() == pytest.approx(4 * float(RHO), rel=1e-12)
    for delta in (1e-5, 1e-3):
        assert both.epsilon(delta) <= pair.to_replace().epsilon(delta) * (1 + 1e-12)
    sampled = known_by_both().poisson(0.1)
    assert sampled.epsilon(1e-5) == pytest.approx(pair.poisson(0.1).epsilon(1e-5), rel=1e-9)


def test_it_is_written_as_its_bound():
    assert known_by_both().describe() == "approximate(1, 1e-6)"
