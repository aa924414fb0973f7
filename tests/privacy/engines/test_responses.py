"""Many responses of several kinds, sampled or beside Gaussians, against sums over every outcome."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.balls.responses import ResponsesProfile

UNIT = 0.002


def power(masses, count):
    """The law of a sum, by doubling: all masses are positive, so it errs by roundings alone."""
    total = np.ones(1)
    while count:
        if count & 1:
            total = np.convolve(total, masses)
        masses, count = np.convolve(masses, masses), count >> 1
    return total


def response(steps, answers):
    """Masses at -steps..steps units of loss."""
    e = steps * UNIT
    odds = np.zeros(2 * steps + 1)
    odds[0], odds[steps], odds[-1] = math.exp(-e), (answers - 2) * math.exp(-e), 1.0
    return odds / odds.sum()


def divergence(losses, masses, epsilon):
    gap = losses - epsilon
    return float((masses[gap > 0] * -np.expm1(-gap[gap > 0])).sum())


@pytest.mark.parametrize("answers", [2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
def test_two_kinds(answers, epsilon):
    """Both ends hold the sum over every total, and lie within the deviation that was added."""
    loss = 1500 * privacy.randomized_response(5 * UNIT, answers) + 2000 * privacy.pure(2 * UNIT)
    masses = np.convolve(power(response(5, answers), 1500), power(response(2, 2), 2000))
    reach = 5 * 1500 + 2 * 2000
    truth = divergence(UNIT * np.arange(-reach, reach + 1), masses, epsilon)
    profile = ResponsesProfile(side(loss.parts, True).upper_terms, log_delta=None, epsilon=epsilon)
    assert profile.certified
    low, high = profile.bounds(epsilon)
    assert math.exp(low) <= truth * (1 + 1e-9)
    assert truth <= math.exp(high) * (1 + 1e-9)
    # Far out, the deviation that so few need is a large part of an e-fold.
    assert epsilon > 0.5 or high - low <= 0.5


@pytest.mark.parametrize("epsilon", [0.2, 1.5])
def test_beside_a_gaussian(epsilon):
    """The Gaussian that is there does the fading: then the interval is as narrow as balls are."""
    sigma = 2.0
    loss = 4000 * privacy.pure(UNIT) + privacy.gaussian(sigma)
    masses = power(response(1, 2), 4000)
    at = epsilon - UNIT * np.arange(-4000, 4001)
    mu = 1 / sigma
    tails = [
        0.5 * math.erfc((x / mu - mu / 2) / math.sqrt(2))
        - math.exp(x) * 0.5 * math.erfc((x / mu + mu / 2) / math.sqrt(2))
        for x in at.tolist()
    ]
    truth = float(masses @ np.array(tails))
    profile = ResponsesProfile(side(loss.parts, True).upper_terms, log_delta=None, epsilon=epsilon)
    low, high = profile.bounds(epsilon)
    assert high - low <= 1e-9
    assert abs(math.exp(high) - truth) <= 1e-10


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("epsilon", [0.02, 0.1])
def test_sampled(removal, epsilon):
    """Two outer losses that are not opposite: a binomial sum."""
    count, e, rate = 4000, 0.01, 0.25
    high_w, low_w = (1 + rate * math.expm1(x) for x in (e, -e))
    q = [1 / (1 + math.exp(e)), 1 / (1 + math.exp(-e))]
    losses = [math.log(high_w), math.log(low_w)]
    p = [q[0] * high_w, q[1] * low_w]
    if not removal:
        losses, p = [-x for x in losses], q
    hits = power(np.array([p[1], p[0]]), count)
    places = np.arange(count + 1)
    truth = divergence(places * losses[0] + (count - places) * losses[1], hits, epsilon)
    terms = side((count * privacy.pure(e).poisson(rate)).parts, removal).upper_terms
    profile = ResponsesProfile(terms, log_delta=None, epsilon=epsilon)
    low, high = profile.bounds(epsilon)
    assert math.exp(low) <= truth * (1 + 1e-9)
    assert truth <= math.exp(high) * (1 + 1e-9)
    assert high - low <= 0.5


@pytest.mark.parametrize(
    "loss",
    [
        10**12 * (privacy.pure(1e-6) + privacy.gaussian(1e6)),
        10**12 * (privacy.pure(1e-6) + privacy.pure(2e-6)),
        10**12 * privacy.pure(1e-3).poisson(1e-3),
    ],
    ids=["beside a Gaussian", "two kinds", "sampled"],
)
def test_very_many_are_narrow(loss):
    """A million million of them, near the Gaussian that their sum is but not below its own law."""
    found = loss.epsilon(1e-6)
    assert found.width <= 1e-6 * found.upper
    square = 2 * sum(
        count * side(((part, 1),), True).upper_terms[0].mean() for part, count in loss.parts
    )
    near = privacy.gdp(math.sqrt(square)).epsilon(1e-6)
    assert found.upper == pytest.approx(near, rel=1e-5)
