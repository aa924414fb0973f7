"""Key discovery: the threshold is proven, smallest, and the release's law keeps its promise."""

import math
from fractions import Fraction as F

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold

NOISES = st.one_of(
    st.builds(DiscreteLaplace, st.fractions(F(1, 5), 50, max_denominator=20)),
    st.builds(DiscreteGaussian, st.fractions(F(1, 5), 3000, max_denominator=20)),
)


def survival(noise, t):
    """Pr[Z >= t] in mpmath, by direct summation."""
    with mpmath.workdps(60):
        if isinstance(noise, DiscreteLaplace):
            r = mpmath.exp(-mpmath.mpf(noise.scale.denominator) / noise.scale.numerator)
            return r**t / (1 + r) if t >= 1 else 1 - r ** (1 - t) / (1 + r)
        s2 = mpmath.mpf(noise.sigma2.numerator) / noise.sigma2.denominator
        reach = abs(t) + int(20 * math.sqrt(s2)) + 20

        def total(start):
            # exp(-(z+1)²/2s2) = exp(-z²/2s2)·exp(-(2z+1)/2s2): one exponential in all.
            term = mpmath.exp(-mpmath.mpf(start**2) / (2 * s2))
            ratio = mpmath.exp(-mpmath.mpf(2 * start + 1) / (2 * s2))
            step, found = mpmath.exp(-1 / s2), mpmath.mpf(0)
            for _ in range(reach):
                found, term, ratio = found + term, term * ratio, ratio * step
            return found

        whole = 1 + 2 * total(1)
        return total(t) / whole if t >= 1 else 1 - total(1 - t) / whole


@settings(deadline=None, max_examples=30)
@given(NOISES, st.integers(1, 20), st.integers(1, 40))
def test_threshold_is_sound_and_smallest(noise, groups, power):
    """k·Pr[1 + Z >= tau] is at most delta by the true law, and one less would not do."""
    delta = F(1, 10**power)
    rule = KeyThreshold(noise, groups, delta)
    with mpmath.workdps(60):
        allowed = mpmath.mpf(1) / 10**power
        assert groups * survival(noise, rule.tau - 1) <= allowed
        assert rule.tau == 2 or groups * survival(noise, rule.tau - 2) > allowed


@settings(deadline=None, max_examples=20)
@given(NOISES, st.integers(1, 3), st.integers(1, 200))
def test_odds_of_missing_a_group(noise, groups, n):
    """The odds are those of the law, and n_for is where they cross."""
    rule = KeyThreshold(noise, groups, F(1, 10**6))
    assert rule.miss_probability(n) == pytest.approx(
        float(1 - survival(noise, rule.tau - n)), rel=1e-9, abs=1e-12
    )
    enough = rule.n_for(0.05)
    assert rule.miss_probability(enough) <= 0.05
    assert enough == 1 or rule.miss_probability(enough - 1) > 0.05


@pytest.mark.parametrize("others", [0, 1, 3])
def test_the_release_keeps_its_promise_in_law(others):
    """The law of (which keys, noisy counts) on neighbours, computed: (epsilon, delta)-close.

    Two keys; one unit is added to both (k = 2). Key 1 has ``others`` units besides; key 2 none, so
    that on one of the two tables it does not exist. Both directions are summed over all outcomes.
    """
    epsilon, delta, groups = 1.0, F(1, 50), 2
    noise = DiscreteLaplace(F(2))  # l1 = 2
    rule = KeyThreshold(noise, groups, delta)
    span = range(rule.tau, rule.tau + 120)

    def law(n):
        """Outcome of one key: None (not shown) or its noisy count."""
        if n == 0:
            return {None: 1.0}
        shown = {y: noise.survival(y - n) - noise.survival(y - n + 1) for y in span}
        return {None: 1 - noise.survival(rule.tau - n)} | shown

    def both(first, second):
        return {(a, b): p * q for a, p in law(first).items() for b, q in law(second).items()}

    small, large = both(others, 0), both(others + 1, 1)
    outcomes = small.keys() | large.keys()
    for p, q in ((small, large), (large, small)):
        found = sum(max(0.0, p.get(o, 0) - math.exp(epsilon) * q.get(o, 0)) for o in outcomes)
        assert found <= delta
    # A threshold of 1 would give the lonely key away.
    assert noise.survival(0) > delta


def test_refusals():
    """A threshold needs a delta and a bound on groups."""
    noise = DiscreteLaplace(F(1))
    for delta in (F(0), F(1), -0.5):
        with pytest.raises(ArgumentError, match="delta_keys"):
            KeyThreshold(noise, 1, delta)
    with pytest.raises(ArgumentError, match="max_groups"):
        KeyThreshold(noise, 0, F(1, 9))
    with pytest.raises(ArgumentError, match="probability"):
        KeyThreshold(noise, 1, F(1, 9)).n_for(0)


def test_empty_groups_are_never_shown():
    """A group without units is always missed."""
    assert KeyThreshold(DiscreteLaplace(F(1)), 1, F(1, 9)).miss_probability(0) == 1
