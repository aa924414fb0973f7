"""Calibration: known values, certified on the safe side, and refused where there is no solution."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.accounting import calibrate, split
from dither.errors import ArgumentError
from dither.privacy import _calibration
from dither.privacy._calibration import _Promise
from dither.privacy._side import Side


@pytest.mark.parametrize(
    ("epsilon", "delta", "truth"),
    [
        (0.1, 1e-6, 36.304690426195785),
        (1.0, 1e-5, 3.7306316348159418),
        (1.0, 1e-6, 4.2246788893268353),
        (10.0, 1e-5, 0.49988861970900851),
    ],
)
def test_analytic_gaussian(epsilon, delta, truth):
    """The analytic calibration of the Gaussian mechanism."""
    sigma = calibrate(privacy.gaussian, epsilon=epsilon, delta=delta)
    assert sigma.lower <= truth <= sigma.upper
    assert float(sigma) == sigma.upper
    assert sigma.upper - sigma.lower < 1e-9 * truth


def test_noisy_gradient_descent():
    """The noise of 10,000 steps at rate 0.01."""
    sigma = calibrate(lambda s: 10_000 * privacy.gaussian(s).poisson(0.01), epsilon=3.0, delta=1e-5)
    assert sigma.lower <= 1.56496553546 + 1e-11
    assert sigma.upper >= 1.56496553546 - 1e-11
    assert sigma.upper - sigma.lower < 1e-8


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 5.0), st.sampled_from([1e-4, 1e-8, 1e-20]), st.integers(1, 50))
def test_the_promise_is_kept(epsilon, delta, k):
    """What is returned keeps the promise, and a little less noise breaks it."""
    for make in (lambda s: k * privacy.gaussian(s), lambda s: k * privacy.discrete_laplace(s)):
        scale = calibrate(make, epsilon=epsilon, delta=delta)
        assert make(float(scale)).delta(epsilon).upper <= delta
        assert make(float(scale) * (1 - 1e-6)).delta(epsilon).lower > delta


def test_rising_parameters():
    """A parameter that costs more as it grows is rounded down."""
    rate = calibrate(
        lambda q: 1000 * privacy.gaussian(2.0).poisson(q), epsilon=1.0, delta=1e-6, start=0.01
    )
    assert float(rate) == rate.lower
    assert (1000 * privacy.gaussian(2.0).poisson(rate.lower)).delta(1.0) <= 1e-6
    pure = calibrate(privacy.pure, epsilon=0.7, delta=0.0)
    assert float(pure) == pytest.approx(0.7, rel=1e-9)
    assert pure.lower <= 0.7


def test_no_solution():
    """A promise that no parameter meets, or every one does, is refused with the nearest."""
    with pytest.raises(ArgumentError, match="nearest"):
        calibrate(lambda s: privacy.gaussian(0.1) + privacy.gaussian(s), epsilon=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="depend"):
        calibrate(lambda s: privacy.gaussian(1.0), epsilon=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="epsilon"):
        calibrate(privacy.gaussian, epsilon=0.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="delta"):
        calibrate(privacy.gaussian, epsilon=1.0, delta=math.nan)


def test_split():
    """Gaussians share by the fourth root of their weights; mixtures do no worse than equal."""
    makes = [privacy.gaussian, privacy.gaussian]
    best = split(makes, epsilon=1.0, delta=1e-6, weights=[1.0, 81.0])
    assert best.scales[0] / best.scales[1] == pytest.approx(3.0, rel=1e-3)
    assert best.loss.delta(1.0) <= 1e-6
    mixed = [privacy.gaussian, privacy.laplace]
    found = split(mixed, epsilon=1.0, delta=1e-6, weights=[1.0, 2.0])
    equal = calibrate(lambda t: privacy.gaussian(t) + privacy.laplace(t), epsilon=1.0, delta=1e-6)
    assert found.loss.delta(1.0) <= 1e-6
    assert found.error <= 3 * float(equal) ** 2 * (1 + 1e-9)
    with pytest.raises(ArgumentError, match="weights"):
        split(makes, epsilon=1.0, delta=1e-6, weights=[1.0])


@pytest.mark.parametrize("target", [3.7e-7, 1e-6, 2.9e-5])
def test_one_unit_in_the_last_place_breaks_the_promise(target):
    """Logarithms do not tell such deltas apart; the search must, and on either side."""
    for units in (-2, 0, 1, 2, 3):
        delta = target * (1 + units * 2.0**-52)
        promise = _Promise(lambda _, d=delta: privacy.approximate(0.1, d), 1.0, target)
        kept = privacy.approximate(0.1, delta).delta(1.0).upper <= target
        assert (promise.excess(1.0) <= 0) == kept


def directions(monkeypatch):
    """The directions whose delta is asked for from now on, as they are."""
    asked = []
    one_delta = _calibration.one_delta

    def spy(loss, this, at):
        asked.append(this.removal)
        return one_delta(loss, this, at)

    monkeypatch.setattr(_calibration, "one_delta", spy)
    return asked


def test_the_better_direction_is_not_worked_out(monkeypatch):
    """A unit removed is the worse one here: the other's delta is never asked for."""
    asked = directions(monkeypatch)
    found = calibrate(lambda x: 100 * privacy.gaussian(x).poisson(0.01), epsilon=1, delta=1e-6)
    assert set(asked) == {True}
    worst = 100 * privacy.gaussian(found.upper).poisson(0.01)
    assert worst.delta(1).upper <= 1e-6


@pytest.mark.heavy("test_the_promise_is_kept")
def test_one_direction_breaks_a_promise(monkeypatch):
    """Where the first direction breaks it the other one is not asked for, and the sign is right."""
    asked = directions(monkeypatch)
    monkeypatch.setattr(Side, "below", lambda *_: False)
    promise = _Promise(lambda x: 100 * privacy.gaussian(x).poisson(0.01), 1.0, 1e-6)
    assert promise.excess(0.5) > 0
    assert asked == [True]
    assert promise.excess(0.5, lower=True) > 0
    assert asked == [True, True]
    assert promise.excess(5.0) < 0
    assert asked == [True, True, True, False]


@pytest.mark.parametrize("epsilon", [1e-8, 1e-15, 1e-3])
def test_tiny_promises_are_calibrated_though_moments_say_nothing_of_them(epsilon: float) -> None:
    """A bound of moments takes what keeps them to break them; the least noise is found anyway."""
    found = calibrate(privacy.gaussian, epsilon=epsilon, delta=1e-12, start=2.0)
    assert privacy.gaussian(float(found)).delta(epsilon).upper <= 1e-12
    assert privacy.gaussian(float(found) * (1 - 1e-6)).delta(epsilon).lower > 1e-12
