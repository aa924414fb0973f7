"""Dividing a promise: the parts keep it, and no grid of other parts does better."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import advanced_heterogeneous, divide
from dither.errors import ArgumentError
from dither.privacy import approximate, compose


def laplace(weight):
    """The weighted variance of Laplace noise."""
    return lambda e, d: weight * 2 / e**2


def gaussian(weight):
    """The weighted variance of the classical Gaussian calibration."""
    return lambda e, d: weight * 2 * math.log(1.25 / d) / e**2


def spent(parts):
    """The exact sum of all deltas."""
    return sum((Fraction(x) for x in parts.deltas), Fraction(parts.slack))


def test_laplaces_alone_have_a_closed_form():
    """Least Σ w/e² at a fixed Σ e has e proportional to the cube root of w."""
    parts = divide([laplace(1.0), laplace(8.0)], epsilon=3.0, delta=1e-9, theorem="basic")
    assert parts.epsilons == pytest.approx((1.0, 2.0), rel=1e-3)
    assert parts.error == pytest.approx(6.0, rel=1e-6)
    assert parts.deltas == (0.0, 0.0)
    assert sum(map(Fraction, parts.epsilons)) <= 3


@settings(deadline=None, max_examples=15)
@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.05, 20.0)), min_size=1, max_size=4),
    st.floats(0.1, 5.0),
    st.floats(1e-9, 1e-3),
)
def test_parts_keep_the_promise(kinds, epsilon, delta):
    """Whatever the mix, the theorem at the parts never exceeds the promise, deltas exactly."""
    errors = [(gaussian if smooth else laplace)(weight) for smooth, weight in kinds]
    for theorem in ("basic", "advanced"):
        parts = divide(errors, epsilon=epsilon, delta=delta, theorem=theorem)
        assert spent(parts) <= Fraction(delta)
        if theorem == "basic":
            assert parts.slack == 0
            assert sum(map(Fraction, parts.epsilons)) <= Fraction(epsilon)
        else:
            pairs = list(zip(parts.epsilons, parts.deltas, strict=True))
            assert advanced_heterogeneous(pairs, parts.slack).upper <= epsilon
            exact = compose(*(approximate(e, d) for e, d in pairs))
            assert exact.delta(epsilon).lower <= delta


def test_no_grid_beats_the_advanced_division():
    """One Laplace, one Gaussian: a grid of ratios, shares and slacks gains under 0.2 %."""
    many = 40
    errors = [laplace(1.0), gaussian(5.0)]
    weights = (1.0, 5.0)

    def grid_error(ratio, share, epsilon, delta):
        slack, each = delta * (1 - share), delta * share
        low, high = 0.0, epsilon
        for _ in range(50):
            t = (low + high) / 2
            e = np.array([t, t * ratio])
            square = (e**2).sum()
            drift = (e * np.tanh(e / 2)).sum()
            log = min(math.log(1 / slack), math.log(math.e + math.sqrt(square) / slack))
            value = min(e.sum(), drift + math.sqrt(2 * square * log))
            low, high = (t, high) if value <= epsilon else (low, t)
        return weights[0] * 2 / low**2 + weights[1] * 2 * math.log(1.25 / each) / (low * ratio) ** 2

    parts = divide(errors, epsilon=1.0, delta=1e-6, theorem="advanced")
    least = min(
        grid_error(r, s, 1.0, 1e-6)
        for r, s in itertools.product(np.geomspace(0.3, 10, many), np.linspace(0.02, 0.98, many))
    )
    assert parts.error <= least * 1.002


def test_many_parts_prefer_the_advanced_theorem():
    """Twenty alike: the slack pays, all parts are equal, and the exact theorem gives still more."""
    errors = [gaussian(1.0)] * 20
    chosen = divide(errors, epsilon=0.5, delta=1e-3)
    basic = divide(errors, epsilon=0.5, delta=1e-3, theorem="basic")
    assert chosen.theorem == "advanced"
    assert chosen.error < 0.9 * basic.error
    assert max(chosen.epsilons) == pytest.approx(min(chosen.epsilons), rel=1e-2)


def test_the_exact_theorem_allows_more():
    """Optimal composition of the same ratios has less error, and its certificate holds."""
    errors = [laplace(1.0), laplace(1.0), gaussian(1.0)]
    closed = divide(errors, epsilon=1.0, delta=1e-4)
    parts = divide(errors, epsilon=1.0, delta=1e-4, theorem="optimal")
    pairs = list(zip(parts.epsilons, parts.deltas, strict=True))
    assert compose(*(approximate(e, d) for e, d in pairs)).delta(1.0).upper <= 1e-4
    assert parts.error <= closed.error * 1.001


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"errors": []}, "errors must hold"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"theorem": "advancd"}, "advanced"),
        ({"errors": [lambda e, d: 0.0]}, "finite numbers above 0"),
    ],
)
def test_refusals(arguments, message):
    """Each bad argument is named."""
    given = {"errors": [laplace(1.0)], "epsilon": 1.0, "delta": 1e-6} | arguments
    with pytest.raises(ArgumentError, match=message):
        divide(given.pop("errors"), **given)
