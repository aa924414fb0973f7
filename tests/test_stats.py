"""Tails and intervals against scipy, their coverage computed."""

import math
import random

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, norm, t

from dither import _stats as stats

COUNTS = [(0, 10), (1, 10), (10, 10), (3, 50_000), (49_998, 50_000), (25_000, 50_000), (77, 10**6)]


@pytest.mark.parametrize(("hits", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.05, 1e-3, 1e-9])
def test_bounds_are_scipys(hits, n, level):
    """Both bounds are the quantiles of the beta law, up to the slack, which is outwards."""
    low = beta.ppf(level, hits, n - hits + 1) if hits else 0.0
    high = beta.isf(level, hits + 1, n - hits) if hits < n else 1.0
    assert stats.lower_bound(hits, n, level) <= low * (1 + 1e-12)
    assert stats.lower_bound(hits, n, level) == pytest.approx(low, rel=1e-5)
    assert stats.upper_bound(hits, n, level) >= high * (1 - 1e-12)
    assert stats.upper_bound(hits, n, level) == pytest.approx(high, rel=1e-5)
    both = stats.lower_bound(hits, n, level), stats.upper_bound(hits, n, level)
    assert stats.clopper_pearson(hits, n, 1 - 2 * level) == pytest.approx(both, rel=1e-6)


@given(n=st.integers(1, 3000), share=st.floats(0, 1), p=st.floats(1e-6, 1 - 1e-6))
@settings(deadline=None)
def test_tails_are_scipys(n, share, p):
    """Tails agree with scipy's, wherever the count lies."""
    k = round(share * n)
    assert stats.binomial_tail(n, k, p) == pytest.approx(
        binom.sf(k - 1, n, p), rel=1e-7, abs=1e-290
    )


@pytest.mark.parametrize("n", [10**6, 10**8, 10**9])
@pytest.mark.parametrize("p", [0.5, 0.1, 1e-6])
def test_tails_keep_their_digits(n, p):
    """Six deviations out, tails of many trials are scipy's to nine digits."""
    k = round(n * p + 6 * math.sqrt(n * p * (1 - p)))
    assert stats.binomial_tail(n, k, p) == pytest.approx(binom.sf(k - 1, n, p), rel=1e-9)
    low = round(n * p - 6 * math.sqrt(n * p * (1 - p)))
    if low > 0:
        found = 1 - stats.binomial_tail(n, low, p)
        assert found == pytest.approx(binom.cdf(low - 1, n, p), abs=1e-15)


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_coverage_is_computed(n, p):
    """The probability that a bound fails, summed over all counts, is at most its level."""
    level = 0.01
    law = binom.pmf(np.arange(n + 1), n, p)
    too_high = sum(w for k, w in enumerate(law) if stats.lower_bound(k, n, level) > p)
    too_low = sum(w for k, w in enumerate(law) if stats.upper_bound(k, n, level) < p)
    assert too_high <= level
    assert too_low <= level


def test_quantiles_are_scipys():
    """Normal and Student, also where a confidence leaves very little outside."""
    for confidence in (0.5, 0.95, 0.999, 1 - 1e-12):
        assert stats.two_sided(confidence) == pytest.approx(
            norm.isf((1 - confidence) / 2), rel=1e-9
        )
        for freedom in (1, 2, 3, 10, 99) if confidence < 0.9999 else ():
            reach = t.isf((1 - confidence) / 2, freedom)
            assert stats.student_reach(freedom, confidence) == pytest.approx(reach, rel=1e-9)
    assert stats.normal_quantile(0.3) == pytest.approx(norm.ppf(0.3))


def test_wilson_is_scipys_and_hoeffding_bounds_tails():
    """Wilson's interval as published; Hoeffding's tail never below a binomial's."""
    low, high = binomtest(30, 100).proportion_ci(0.95, method="wilson")
    rate, z = np.array([0.3]), stats.two_sided(0.95)
    assert stats.wilson(rate, 100, -z)[0] == pytest.approx(low)
    assert stats.wilson(rate, 100, z)[0] == pytest.approx(high)
    for hits in range(11):
        tail = stats.binomial_tail(10, hits, 0.4)
        assert stats.hoeffding_tail(hits / 10, 0.4, 10) >= tail * (1 - 1e-9)


def test_quantiles_err_by_less_than_is_charged():
    """At 60 digits; and their difference is rounded down."""
    draw, worst = random.Random(1), 0.0
    many = mpmath.MPContext()
    many.dps = 60
    for i in range(600):
        p = [10 ** draw.uniform(-300, -1), 1 - 10 ** draw.uniform(-15.9, -0.3), draw.random()][
            i % 3
        ]
        z = many.mpf(stats.normal_quantile(p))
        exact = z - (many.erfc(-z / many.sqrt(2)) / 2 - p) / many.npdf(z)
        worst = max(worst, abs(float((z - exact) / exact)))
        assert stats.quantiles_apart(p, 0.5) <= exact
    assert 1e-16 < worst < stats._QUANTILE / 5


def test_tails_of_hoeffding_are_rounded_up():
    """Also where a mean is hardly above its bound, and of very many runs."""
    draw = random.Random(2)
    many = mpmath.MPContext()
    many.dps = 60
    for _ in range(400):
        bound = draw.uniform(0.01, 0.99)
        mean = min(1.0, bound + 10 ** draw.uniform(-9, -0.5))
        runs = int(10 ** draw.uniform(0, 9))
        p, q = many.mpf(mean), many.mpf(bound)
        gap = p * many.log(p / q) + ((1 - p) * many.log((1 - p) / (1 - q)) if mean < 1 else 0)
        exact, found = many.exp(-runs * gap), stats.hoeffding_tail(mean, bound, runs)
        if exact > 1e-300:
            assert exact <= found <= exact * (1 + 1e-5)


@pytest.mark.parametrize("n", [10, 10**6, 10**9, 10**12])
def test_bounds_of_rare_events_keep_their_level(n):
    """The chance of so few hits, or misses, is at most the level at the bound, at 60 digits."""
    many = mpmath.MPContext()
    many.dps = 60
    for hits in range(5):
        for level in (0.05, 1e-9):
            upper = many.mpf(stats.upper_bound(hits, n, level))
            misses = 1 - many.mpf(stats.lower_bound(n - hits, n, level))
            for p in (upper, misses):
                terms = (many.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(hits + 1))
                chance = sum(terms)
                assert chance <= level
                if p is upper and n <= 10**9:
                    assert chance >= level * (1 - 1e-5)
