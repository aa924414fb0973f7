"""Shuffling: the numeric bound against brute force over all counts, and the closed forms."""

import math
from math import comb

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import shuffle, shuffle_clones_2021, shuffle_clones_2023
from dither.errors import ArgumentError


def brute(n, epsilon_0, k, epsilon):
    """The divergence of the counts, summed over every outcome in 30 digits."""
    with mpmath.workdps(30):
        p = mpmath.exp(epsilon_0)
        alpha = 1 / (p + k - 1)
        rate, rest = 2 * alpha, max(mpmath.mpf(0), 1 - alpha - alpha * p)
        left, right = {}, {}
        for c in range(n):
            weight = comb(n - 1, c) * rate**c * (1 - rate) ** (n - 1 - c) if c or rate < 1 else 0
            for a in range(c + 1):
                mass = weight * comb(c, a) / mpmath.mpf(2) ** c
                for key, x, y in (
                    ((a + 1, c - a), alpha * p, alpha),
                    ((a, c - a + 1), alpha, alpha * p),
                    ((a, c - a), rest, rest),
                ):
                    left[key] = left.get(key, 0) + mass * x
                    right[key] = right.get(key, 0) + mass * y
        return sum(max(mpmath.mpf(0), left[o] - mpmath.exp(epsilon) * right[o]) for o in left)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 24), st.floats(0.1, 4.0), st.integers(2, 30), st.floats(0.0, 0.95))
def test_brute_force(n, epsilon_0, k, part):
    """The truth lies inside, for every small case."""
    epsilon = part * epsilon_0
    truth = brute(n, epsilon_0, k, epsilon)
    bound = shuffle(n, epsilon_0, randomiser="grr", k=k).delta(epsilon)
    assert bound.lower <= truth <= bound.upper
    assert bound.upper - bound.lower <= 1e-6 * truth + 1e-15


@pytest.mark.parametrize(
    ("options", "truth"), [({}, 0.0343), ({"randomiser": "grr", "k": 18}, 0.0299)]
)
def test_a_million_reports(options, truth):
    """Known values at n = 1e6, epsilon_0 = 4, delta = 1e-6."""
    bound = shuffle(1_000_000, 4.0, **options).epsilon(1e-6)
    assert bound == pytest.approx(truth, abs=6e-5)
    assert bound.upper - bound.lower < 1e-6 * bound


@settings(deadline=None, max_examples=10)
@given(st.integers(2_000, 10**6), st.floats(0.1, 3.0))
def test_closed_forms_are_above(n, epsilon_0):
    """Numbers are no larger than the closed forms, nor than epsilon_0; their delta is met."""
    law = shuffle(n, epsilon_0)
    epsilon = law.epsilon(1e-6)
    assert epsilon <= epsilon_0 * (1 + 1e-12)
    assert law.delta(float(epsilon)).upper <= 1e-6
    for form in (shuffle_clones_2021, shuffle_clones_2023):
        try:
            closed = form(n, epsilon_0, 1e-6)
        except ArgumentError:
            continue
        assert epsilon.lower <= closed


def test_ends():
    """One report hides nothing, and what no chance distinguishes costs nothing."""
    one = shuffle(1, 1.0)
    assert one.delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-6)
    assert one.delta(1.0) == pytest.approx(0.0, abs=1e-9)
    assert shuffle(10**6, 0.001).epsilon(0.1) == 0.0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: shuffle(0, 1.0), "n must"),
        (lambda: shuffle(10, 0.0), "epsilon_0"),
        (lambda: shuffle(10, 1.0, randomiser="gr", k=2), "grr"),
        (lambda: shuffle(10, 1.0, randomiser="grr"), "k belongs"),
        (lambda: shuffle(10, 1.0, k=3), "k belongs"),
        (lambda: shuffle(10, 1.0).epsilon(0.0), "delta"),
        (lambda: shuffle_clones_2021(10, 4.0, 1e-6), "too large"),
        (lambda: shuffle_clones_2023(10, 4.0, 1e-6), "too large"),
    ],
)
def test_refusals(make, name):
    """Each refusal names the argument."""
    with pytest.raises(ArgumentError, match=name):
        make()
