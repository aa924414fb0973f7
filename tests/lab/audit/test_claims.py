"""What an event refutes of a claim, and how many samples have the stated power, computed."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dither._stats import lower_bound, upper_bound
from dither.errors import ArgumentError
from dither.lab.audit import samples_needed
from dither.lab.audit._claims import CERTIFYING, Claim, SharedLevels, epsilon_of, mu_of
from dither.lab.audit._coins import odds_of, trials_of


def test_epsilon_and_mu():
    """The inversions of both definitions, which rounding never flatters."""
    assert epsilon_of(0.6, 0.2, 0.1) == pytest.approx(math.log(2.5))
    assert epsilon_of(0.6, 0.2, 0.1) < math.log(2.5)
    assert epsilon_of(0.1, 0.2, 0.1) == -math.inf
    assert mu_of(0.6, 0.2) == pytest.approx(norm.ppf(0.6) - norm.ppf(0.2))
    assert mu_of(0.0, 0.2) == mu_of(0.5, 1.0) == -math.inf


def power_of(samples, epsilon, true_epsilon, delta, mass):
    """The probability that the worst event, found, refutes the claim: summed over both counts."""
    n = samples - round((1 - CERTIFYING) * samples)
    level = SharedLevels(0.01, Claim(epsilon, delta)).refuting
    rate = (mass - delta) * math.exp(-true_epsilon)
    most = np.arange(int(binom.ppf(2e-3, n, rate)), int(binom.ppf(1 - 2e-3, n, rate)) + 1)
    total, least = 0.0, n
    for b in most[::-1]:
        q = upper_bound(int(b), n, level)
        low, high = 0, n  # the fewest hits that refute with this many false ones
        while high - low > 1:
            middle = (low + high) // 2
            if epsilon_of(lower_bound(middle, n, level), q, delta) > epsilon:
                high = middle
            else:
                low = middle
        least = high
        total += binom.pmf(b, n, rate) * binom.sf(least - 1, n, mass)
    return total


def power_of_odds(samples, epsilon, true_epsilon, delta, mass):
    """The same of the odds of guesses, in 1,000 simulated games."""
    trials = trials_of(samples - round((1 - CERTIFYING) * samples))
    right, wrong = mass / 2, (mass - delta) * math.exp(-true_epsilon) / 2
    games = np.random.default_rng(3).multinomial(trials, [right, wrong, 1 - right - wrong], 1_000)
    level = SharedLevels(0.01, Claim(epsilon, delta)).odds(0)
    return np.mean([odds_of(int(r), int(w), trials, level, delta) > epsilon for r, w, _ in games])


@pytest.mark.parametrize(
    ("epsilon", "true_epsilon", "delta", "mass"),
    [(1, 2, 0.0, 0.5), (0.1, 0.6, 0.0, 0.5), (1, 3, 0.01, 0.1)],
)
def test_power_is_as_stated(epsilon, true_epsilon, delta, mass):
    """At least 90 %; with two thirds of the samples, less."""
    n = samples_needed(epsilon, true_epsilon, delta=delta, mass=mass)
    both = power_of, power_of_odds
    assert max(power(n, epsilon, true_epsilon, delta, mass) for power in both) >= 0.9
    assert max(power(2 * n // 3, epsilon, true_epsilon, delta, mass) for power in both) < 0.9


def test_more_is_needed_for_less_excess():
    """Small excess, rare events and high power cost samples."""
    base = samples_needed(1, 2)
    assert samples_needed(1, 1.5) > base
    assert samples_needed(1, 2, mass=0.05) > base
    assert samples_needed(1, 2, power=0.99) > base
    assert samples_needed(1, 2, confidence=0.9999) > base


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"epsilon": 2, "true_epsilon": 1}, "above epsilon"),
        ({"epsilon": 1, "true_epsilon": 2, "power": 1}, "power"),
        ({"epsilon": 1, "true_epsilon": 2, "delta": 0.1, "mass": 0.05}, "mass"),
        ({"epsilon": 1, "true_epsilon": 1 + 1e-9}, "too many samples"),
    ],
)
def test_refusals(arguments, words):
    """What cannot be reached is refused."""
    with pytest.raises(ArgumentError, match=words):
        samples_needed(**arguments)
