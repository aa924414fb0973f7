"""Millions and more of randomised responses, whose count a lattice's rounding does not bear.

The oracles are sums over the binomial law: term by term in 60 digits where that is feasible, by
ratios of neighbours in extended precision where it is not, and the normal law in the limit.
"""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.privacy.engines.balls.binomial import BinomialProfile
from dither.privacy.engines.choice import engine
from dither.privacy.engines.closed import lattice_of
from dither.privacy.laws.response import ResponseTerm


def first_of(k, e, epsilon):
    """The least number of losses of e whose total is at least epsilon."""
    return max(0, math.ceil((Fraction(epsilon) / Fraction(e) + k) / 2))


def exact(k, e, epsilon, infinite=0.0):
    """log(delta) by every summand that counts, in 60 digits."""
    with mpmath.workdps(60):
        e, epsilon = mpmath.mpf(e), mpmath.mpf(epsilon)
        odds = mpmath.exp(e)
        m = first_of(k, float(e), float(epsilon))
        mass = mpmath.exp(
            mpmath.loggamma(k + 1)
            - mpmath.loggamma(m + 1)
            - mpmath.loggamma(k - m + 1)
            + m * e
            - k * mpmath.log(1 + odds)
        )
        gap, fade = mpmath.exp(epsilon - (2 * m - k) * e), mpmath.exp(-2 * e)
        total, largest = mpmath.mpf(0), mpmath.mpf(0)
        for j in range(m, k + 1):
            total += mass * (1 - gap)
            largest = max(largest, mass)
            if mass < largest * mpmath.mpf(10) ** -45:
                break
            mass *= odds * (k - j) / (j + 1)
            gap *= fade
        return mpmath.log(total) + k * mpmath.log1p(-mpmath.mpf(infinite))


def asked(k, e, epsilon, infinite=0.0):
    """The engine itself, whatever the count."""
    return BinomialProfile(ResponseTerm(e, k, infinite), log_delta=None, epsilon=epsilon).bounds(
        epsilon
    )


@pytest.mark.parametrize(
    ("k", "e"), [(1500, 0.3), (1000, 1e-4), (2000, 0.03), (2001, 1.7), (5000, 0.6), (4001, 1e-9)]
)
def test_few_responses_by_the_same_sum(k, e):
    """From thresholds below the mean, and at a point of the lattice, to the far tail."""
    mean, deviation = k * e * math.tanh(e / 2), math.sqrt(k) * e / math.cosh(e / 2)
    places = [mean + z * deviation for z in (-9.0, -5.3, -2.0, 0.0, 1.1, 3.7, 8.2, 11.0)]
    for epsilon in [0.0, e * (k % 2), *(x for x in places if 0 < x < k * e)]:
        truth = exact(k, e, epsilon)
        low, high = asked(k, e, epsilon)
        assert low <= truth <= high
        assert high - low <= 1e-9, (k, e, epsilon)


def exact_answers(k, e, answers, epsilon):
    """log(delta) of responses among several answers: the law by its recurrence, in 60 digits."""
    with mpmath.workdps(60):
        e, epsilon = mpmath.mpf(e), mpmath.mpf(epsilon)
        a, b = mpmath.mpf(answers - 2), mpmath.exp(e)
        # Coefficients of (1 + a·x + b·x²)^k: up to the middle nothing is subtracted, and the
        # others are b^(j - k) times those that mirror them.
        c = [mpmath.mpf(1), k * a]
        for j in range(1, k):
            c.append((a * (k - j) * c[j] + b * (2 * k - j + 1) * c[j - 1]) / (j + 1))
        c += [b ** (j - k) * c[2 * k - j] for j in range(k + 1, 2 * k + 1)]
        assert abs(sum(c) / (1 + a + b) ** k - 1) < mpmath.mpf(10) ** -50
        over = ((j, x) for j, x in enumerate(c) if (j - k) * e > epsilon)
        total = sum(x * -mpmath.expm1(epsilon - (j - k) * e) for j, x in over)
        return mpmath.log(total) - k * mpmath.log(1 + a + b)


@pytest.mark.parametrize(
    ("k", "e", "answers"), [(1500, 0.3, 3), (2000, 1e-5, 3), (2500, 0.05, 40), (3000, 1.5, 4)]
)
def test_few_responses_among_several_answers(k, e, answers):
    """The same, with losses of 0 between."""
    low, top = math.exp(-e), (answers - 1) * math.exp(-e)
    mean = k * e * (1 - low) / (1 + top)
    deviation = e * math.sqrt(k * (1 + low) / (1 + top))
    for z in (-5.0, -1.0, 0.0, 2.5, 6.0):
        epsilon = max(0.0, mean + z * deviation)
        term = ResponseTerm(e, k, answers=answers)
        low, high = BinomialProfile(term, log_delta=None, epsilon=epsilon).bounds(epsilon)
        assert low <= exact_answers(k, e, answers, epsilon) <= high <= low + 1e-9


def test_a_trillion_among_several_answers():
    """The normal law's, of the same variance; and the divergences."""
    k, e, answers = 10**12, 1e-6, 5
    loss = k * privacy.randomized_response(e, k=answers)
    with mpmath.workdps(60):
        t = mpmath.mpf(e)
        whole = answers - 1 + mpmath.exp(t)
        square = k * t**2 * 2 / answers
        for c in (mpmath.mpf(1), mpmath.mpf(31)):
            moment = mpmath.exp((c + 1) * t) + mpmath.exp(-c * t) + answers - 2
            truth = k * mpmath.log(moment / whole) / c
            found = loss.renyi(float(c) + 1)
            assert found.lower <= truth <= found.upper <= found.lower * (1 + 1e-12)
        mean = k * t * (mpmath.exp(t) - 1) / whole
        assert loss.mean() == pytest.approx(float(mean), rel=1e-14)
    normal = privacy.gaussian(1 / math.sqrt(square))
    for target in (1e-6, 1e-20):
        found = loss.epsilon(target)
        assert found.upper <= found.lower * (1 + 1e-10)
        # The third cumulant is of order e, and so is what it does to epsilon.
        assert found == pytest.approx(normal.epsilon(target), rel=1e-5)


def test_next_to_the_largest_loss():
    """Where too few losses are left for the sum, what is said is no less true."""
    for k, m in ((500, 420), (500, 499), (500, 500), (4000, 3995), (4000, 4000)):
        epsilon = (2 * m - k) * 0.3 - 0.1
        low, high = asked(k, 0.3, epsilon)
        assert low <= exact(k, 0.3, epsilon) <= high < 0
    assert asked(500, 0.3, 150.5) == (-math.inf, -math.inf)


def test_few_failing_responses():
    """The finite part only counts what has not failed."""
    low, high = asked(3000, 0.04, 2.0, 1e-5)
    assert low <= exact(3000, 0.04, 2.0, 1e-5) <= high <= low + 1e-9


def test_a_million_and_a_hundred():
    """Where the new engine begins: summand by summand."""
    for k, e, epsilon in ((1_000_100, 1e-3, 4.0), (1_000_100, 1e-3, 30.0), (10**7, 2e-4, 0.0)):
        found = engine([ResponseTerm(e, k)], log_delta=None, epsilon=epsilon)
        assert found.name == BinomialProfile.name
        low, high = found.bounds(epsilon)
        assert low <= exact(k, e, epsilon) <= high <= low + 1e-12


def test_small_counts_stay_on_the_lattice():
    """Below a million, and where few losses differ from the rest."""
    for term in (ResponseTerm(0.01, 10_000), ResponseTerm(20.0, 1_000_000)):
        found = engine([term], log_delta=math.log(1e-6), epsilon=None)
        assert found.name == "lattice"
    both = [
        make(term, 3.0)
        for term in [ResponseTerm(2e-3, 10**6)]
        for make in (
            lambda t, e: engine([t], log_delta=None, epsilon=e).bounds(e),
            lambda t, e: lattice_of([t], log_delta=None, epsilon=e).bounds(e),
        )
    ]
    assert both[1][0] <= both[0][0] <= both[0][1] <= both[1][1]


def by_ratios(k, e, epsilon):
    """log(delta) with masses as running products of ratios, to about 1e-11."""
    with mpmath.workdps(60):
        m = first_of(k, e, epsilon)
        odds = mpmath.exp(mpmath.mpf(e))
        lead = float(
            mpmath.loggamma(k + 1)
            - mpmath.loggamma(m + 1)
            - mpmath.loggamma(k - m + 1)
            + m * mpmath.mpf(e)
            - k * mpmath.log1p(odds)
        )
        gap = float(mpmath.mpf(epsilon) - (2 * m - k) * mpmath.mpf(e))
    j = m + np.arange(int(2.5 * math.sqrt(k)), dtype=np.int64)
    # odds·(k - j)/(j + 1) is 1 and a little.
    less = np.log1p((k - 2 * j - 1).astype(np.longdouble) / (j + 1)) + np.longdouble(e)
    logs = np.concatenate([[0], np.cumsum(less)[:-1]])
    weights = -np.expm1(np.longdouble(gap) - 2 * np.longdouble(e) * (j - m))
    return lead + float(np.log((np.exp(logs) * weights).sum()))


def test_a_trillion():
    """Every summand at 10^12, and the normal law, which is off by some parts in a trillion."""
    k, e, epsilon = 10**12, 1e-6, 4.0
    loss = k * privacy.pure(e)
    found = loss.delta(epsilon)
    assert found.upper <= found.lower * (1 + 1e-10)
    assert math.log(found.lower) == pytest.approx(by_ratios(k, e, epsilon), abs=1e-9)
    normal = privacy.gaussian(1.0)
    assert found == pytest.approx(normal.delta(epsilon), rel=1e-9)
    back = loss.epsilon(1e-6)
    assert back.upper <= back.lower * (1 + 1e-12)
    assert loss.delta(back.upper).lower <= 1e-6 <= loss.delta(back.lower).upper
    assert back == pytest.approx(normal.epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("k", [10**8, 10**13, 10**18])
@pytest.mark.parametrize("mu", [0.05, 1.0, 6.0])
def test_the_normal_limit(k, mu):
    """Losses of mu/sqrt(k): third cumulants cancel between the laws, so the error is about 1/k."""
    e = mu / math.sqrt(k)
    loss, normal = k * privacy.randomized_response(e), privacy.gaussian(1.0 / (e * math.sqrt(k)))
    for target in (1e-3, 1e-40):
        found = loss.epsilon(target)
        assert found.upper <= found.lower * (1 + 1e-10)
        assert found == pytest.approx(normal.epsilon(target), rel=1e3 / k + 1e-11)
    for epsilon in (0.0, 0.1 * mu, 8.0 * mu):
        found = loss.delta(epsilon)
        assert found.upper <= found.lower * (1 + 1e-9)


def test_beyond_what_doubles_hold():
    """Chances of 0 and of 1, and failures beside them."""
    loss = 10**12 * privacy.pure(1e-6)
    assert loss.delta(2e6) == 0.0
    assert 0 < loss.delta(999_999.9) <= 2e-323
    assert (10**9 * privacy.pure(1.0)).delta(0.0).lower > 1 - 1e-11
    failing = 10**12 * privacy.approximate(1e-6, 1e-19)
    found = failing.delta(4.0)
    # Failures are one in ten million; the rest is as without.
    lost = -math.expm1(10**12 * math.log1p(-1e-19))
    assert found == pytest.approx(lost + (1 - lost) * loss.delta(4.0), rel=1e-9)
    assert found.upper <= found.lower * (1 + 1e-6)


def test_divergences_of_many_responses():
    """Orders, rho and mean: a sum of near equals is not taken a trillion times."""
    k, e = 10**12, 1e-6
    loss = k * privacy.pure(e)
    with mpmath.workdps(60):
        t = mpmath.mpf(e)
        for order in (1.001, 2.0, 64.0):
            c = mpmath.mpf(order) - 1
            moment = mpmath.log(mpmath.cosh((c + 0.5) * t) / mpmath.cosh(t / 2))
            found = loss.renyi(order)
            assert found.lower <= k * moment / c <= found.upper <= found.lower * (1 + 1e-12)
        mean = k * t * mpmath.tanh(t / 2)
        assert loss.zcdp() == pytest.approx(float(mean), rel=1e-9)
        assert loss.zcdp().lower <= mean <= loss.zcdp().upper
        response = k * privacy.randomized_response(e)
        assert response.mean() == pytest.approx(float(mean), rel=1e-14)
