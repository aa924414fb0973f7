"""Dividing a promise: the parts keep it, and no grid of other parts does better."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import _checks as check
from dither.accounting import calibrate, divide
from dither.errors import ArgumentError
from dither.privacy import approximate, compose, gdp
from dither.privacy.division._descent import BoundaryPoint
from dither.privacy.division._division import _Search
from dither.privacy.division._every_theorem import shares_by_every_theorem
from dither.privacy.theorems import advanced_heterogeneous


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
            value = drift + math.sqrt(2 * square * log)
            low, high = (t, high) if value <= epsilon else (low, t)
        return weights[0] * 2 / low**2 + weights[1] * 2 * math.log(1.25 / each) / (low * ratio) ** 2

    parts = divide(errors, epsilon=1.0, delta=1e-6, theorem="advanced")
    least = min(
        grid_error(r, s, 1.0, 1e-6)
        for r, s in itertools.product(np.geomspace(0.3, 10, many), np.linspace(0.02, 0.98, many))
    )
    assert parts.error <= least * 1.002


def test_many_parts_prefer_a_slack():
    """Twenty alike: theorems with slack win, the exact one most, and all parts are equal."""
    errors = [gaussian(1.0)] * 20
    by = {
        name: divide(errors, epsilon=0.5, delta=1e-3, theorem=name)
        for name in ("basic", "advanced", "optimal")
    }
    assert by["optimal"].error < 0.8 * by["advanced"].error < 0.7 * by["basic"].error
    assert divide(errors, epsilon=0.5, delta=1e-3) == by["optimal"]
    assert len(set(by["optimal"].epsilons)) == 1
    alike = divide([gaussian(1.0) for _ in range(20)], epsilon=0.5, delta=1e-3)
    assert alike.error == pytest.approx(by["optimal"].error, rel=1e-2)


def test_the_exact_division_is_near_an_exhaustive_scan():
    """Equal Gaussians: every share of the deltas tried, with the exact composition, gains < 1 %."""
    error = gaussian(1.0)
    for n, epsilon, delta in ((3, 1.0, 1e-3), (10, 1.0, 1e-4), (20, 0.5, 1e-6)):
        found = divide([error] * n, epsilon=epsilon, delta=delta, theorem="optimal")
        least = math.inf
        for share in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.999):
            each = share * delta / n
            level = calibrate(
                lambda x, each=each, n=n: n * approximate(x, each), epsilon=epsilon, delta=delta
            )
            least = min(least, n * error(float(level), each))
        assert found.error <= least * 1.01


def test_twenty_different_parts_keep_the_promise_exactly():
    """A mix too large to enumerate: certified by the exact composition, and better than basic."""
    errors = [(gaussian if i % 2 else laplace)(1.0 + i) for i in range(20)]
    parts = divide(errors, epsilon=1.0, delta=1e-6)
    assert parts.theorem == "optimal"
    assert spent(parts) <= Fraction(1e-6)
    pairs = zip(parts.epsilons, parts.deltas, strict=True)
    assert compose(*(approximate(e, d) for e, d in pairs)).delta(1.0).upper <= 1e-6
    basic = divide(errors, epsilon=1.0, delta=1e-6, theorem="basic")
    assert parts.error < 0.9 * basic.error


def test_the_exact_theorem_is_never_worse():
    """A few parts: what adds up is the best, and the exact composition certifies it."""
    errors = [laplace(1.0), laplace(1.0), gaussian(1.0)]
    closed = divide(errors, epsilon=1.0, delta=1e-4)
    parts = divide(errors, epsilon=1.0, delta=1e-4, theorem="optimal")
    pairs = list(zip(parts.epsilons, parts.deltas, strict=True))
    assert compose(*(approximate(e, d) for e, d in pairs)).delta(1.0).lower <= 1e-4
    assert parts.error <= closed.error


def test_no_delta_means_plain_sums():
    """At delta 0 only the sum is left; a theorem with slack says so."""
    assert divide([laplace(1.0)] * 2, epsilon=1.0, delta=0.0).epsilons == pytest.approx((0.5, 0.5))
    with pytest.raises(ArgumentError, match="above 0 for a theorem with slack"):
        divide([laplace(1.0)], epsilon=1.0, delta=0.0, theorem="optimal")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"errors": []}, "errors must hold"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"errors": 3}, "errors must be a sequence of functions"),
        ({"errors": ["1"]}, "errors must be functions"),
        ({"theorem": "advancd"}, "advanced"),
        ({"errors": [lambda e, d: 0.0]}, "finite numbers above 0"),
    ],
)
def test_refusals(arguments, message):
    """Each bad argument is named."""
    given = {"errors": [laplace(1.0)], "epsilon": 1.0, "delta": 1e-6} | arguments
    with pytest.raises(ArgumentError, match=message):
        divide(given.pop("errors"), **given)


@pytest.mark.parametrize(
    "tiny", [7.873971570789525e-19, 8.098510160219618e-19, 1.2551272886980569e-19]
)
def test_the_slack_is_what_the_deltas_leave_rounded_down(tiny):
    """Of deltas of very different sizes, whose rest is not a double, nothing is rounded up."""
    search = _Search([gaussian(1.0), gaussian(1.0)], np.array([4.0, 3.0]), 1.0, 1e-6)
    deltas = np.array([1e-7, tiny])
    search.known["optimal"] = BoundaryPoint(np.array([0.1, 0.1]), deltas, 1e-7, 1.0)
    parts = search._optimal()
    left = Fraction(1e-6) - 4 * Fraction(1e-7) - 3 * Fraction(tiny)
    assert Fraction(float(left)) > left
    assert parts.slack <= left < math.nextafter(parts.slack, 1.0)


def test_a_promise_between_two_doubles_is_rounded_down():
    """What is promised as a fraction is kept as one; a double is taken as it is."""
    tenth = Fraction(1, 10)
    assert Fraction(float(tenth)) > tenth
    read = check.number("epsilon", tenth, above=0, below=1, rounding="down")
    assert Fraction(read) < tenth < Fraction(math.nextafter(read, 1.0))
    assert check.number("epsilon", 0.1, above=0, below=1, rounding="down") == 0.1
    shares = shares_by_every_theorem(tenth, 1, 1e-6)
    assert all(Fraction(row.value) <= tenth for row in shares.rows if row.theorem == "basic")


def test_slacks_add_up_to_no_less_than_their_sum():
    """The chances of cut samples, added in any way."""
    base = gdp(1.0)
    for i in range(1, 40):
        parts = [replace(base, slack=1e-3 / 7 / i), replace(base, slack=1e-5 / 3 / i)]
        exact = sum(Fraction(part.slack) for part in parts)
        assert Fraction((parts[0] + parts[1]).slack) >= exact
        assert Fraction(compose(*parts).slack) >= exact
        assert Fraction((i * parts[0]).slack) >= i * Fraction(parts[0].slack)
