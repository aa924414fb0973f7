"""Clopper-Pearson bounds against scipy, and their coverage, computed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from dither._stats import binomial_tail, lower_bound, upper_bound
from dither.lab.audit._claims import epsilon_of, mu_of

COUNTS = [(0, 10), (1, 10), (10, 10), (3, 50_000), (49_998, 50_000), (25_000, 50_000), (77, 10**6)]


@pytest.mark.parametrize(("hits", "n"), COUNTS)
@pytest.mark.parametrize("level", [0.05, 1e-3, 1e-9])
def test_bounds_are_scipys(hits, n, level):
    """Both bounds are the quantiles of the beta law, up to the slack, which is outwards."""
    low = beta.ppf(level, hits, n - hits + 1) if hits else 0.0
    high = beta.ppf(1 - level, hits + 1, n - hits) if hits < n else 1.0
    if level == 1e-9 and hits < n:
        high = beta.isf(level, hits + 1, n - hits)
    assert lower_bound(hits, n, level) <= low * (1 + 1e-12)
    assert lower_bound(hits, n, level) == pytest.approx(low, rel=1e-5)
    assert upper_bound(hits, n, level) >= high * (1 - 1e-12)
    assert upper_bound(hits, n, level) == pytest.approx(high, rel=1e-5)


@given(n=st.integers(1, 3000), share=st.floats(0, 1), p=st.floats(1e-6, 1 - 1e-6))
def test_tails_are_scipys(n, share, p):
    """Tails agree with scipy's, wherever the count lies."""
    k = round(share * n)
    assert binomial_tail(n, k, p) == pytest.approx(binom.sf(k - 1, n, p), rel=1e-7, abs=1e-290)


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_coverage_is_computed(n, p):
    """The probability that a bound fails, summed over all counts, is at most its level."""
    level = 0.01
    law = binom.pmf(np.arange(n + 1), n, p)
    too_high = sum(w for k, w in enumerate(law) if lower_bound(k, n, level) > p)
    too_low = sum(w for k, w in enumerate(law) if upper_bound(k, n, level) < p)
    assert too_high <= level
    assert too_low <= level


def test_epsilon_and_mu():
    """The inversions of both definitions, which rounding never flatters."""
    assert epsilon_of(0.6, 0.2, 0.1) == pytest.approx(math.log(2.5))
    assert epsilon_of(0.6, 0.2, 0.1) < math.log(2.5)
    assert epsilon_of(0.1, 0.2, 0.1) == -math.inf
    assert mu_of(0.6, 0.2) == pytest.approx(norm.ppf(0.6) - norm.ppf(0.2))
    assert mu_of(0.0, 0.2) == mu_of(0.5, 1.0) == -math.inf


@pytest.mark.parametrize("n", [10**6, 10**8, 10**9])
@pytest.mark.parametrize("p", [0.5, 0.1, 1e-6])
def test_tails_keep_their_digits(n, p):
    """Six deviations out, tails of many trials are scipy's to nine digits."""
    k = round(n * p + 6 * math.sqrt(n * p * (1 - p)))
    assert binomial_tail(n, k, p) == pytest.approx(binom.sf(k - 1, n, p), rel=1e-9)
    low = round(n * p - 6 * math.sqrt(n * p * (1 - p)))
    if low > 0:
        assert 1 - binomial_tail(n, low, p) == pytest.approx(binom.cdf(low - 1, n, p), abs=1e-15)
