"""The verdicts: computed truth of Fisher's test, of intervals, and of what a claim allows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from dither.lab.assess._claim import read_claim
from dither.lab.assess._judged import Tally, chance_of_lot, difference, ends_of, fewest, told


@pytest.mark.parametrize("people", [1, 2, 4])
def test_the_chance_is_that_of_all_lots(people: int) -> None:
    """Against every way in which half of the people can have been in."""
    for hits in itertools.product((0, 1), repeat=2 * people):
        lots = list(itertools.combinations(range(2 * people), people))
        seen = [sum(hits[i] for i in lot) for lot in lots]
        for least in set(seen):
            exact = sum(s >= least for s in seen) / len(lots)
            found = chance_of_lot(least, sum(hits) - least, people)
            assert exact <= found <= exact + 1e-6


def test_fewest_is_the_edge() -> None:
    """One person fewer, and no outcome is told from luck."""
    for level in (0.05, 1e-3, 1e-5):
        n = fewest(level)
        assert told(Tally(n, 0, n), level).chance <= level
        assert chance_of_lot(n - 1, 0, n - 1) > level


@pytest.mark.parametrize("people", [5, 14])
def test_the_interval_of_a_difference_covers(people: int) -> None:
    """By enumeration of both binomial laws: at least as often as it says."""
    level, shares = 0.1, (0.0, 0.03, 0.2, 0.5, 0.9, 1.0)
    ends = {
        (a, b): difference(Tally(a, b, people), level)
        for a in range(people + 1)
        for b in range(people + 1)
    }

    def law(p: float) -> npt.NDArray[np.float64]:
        k = range(people + 1)
        return np.array([math.comb(people, i) * p**i * (1 - p) ** (people - i) for i in k])

    for p, q in itertools.product(shares, shares):
        inside = sum(
            law(p)[a] * law(q)[b]
            for (a, b), (low, high) in ends.items()
            if low - 1e-9 <= p - q <= high + 1e-9
        )
        assert inside >= 1 - level


def test_words_and_interval_agree() -> None:
    """What is found has an interval above 0, and what is not has one that holds it."""
    for people, level in ((6, 0.05), (13, 0.01)):
        for a, b in itertools.product(range(people + 1), repeat=2):
            seen = told(Tally(a, b, people), level)
            assert seen.found == (seen.low > 0.0)
            assert seen.found or seen.low <= 0.0 <= seen.high
            assert seen.ends == ends_of(Tally(a, b, people), level)[0]


def test_a_true_claim_is_not_called_broken() -> None:
    """Of randomised response on everybody's membership, which uses all of its epsilon.

    Each person is in by lot, and the release says so with probability e^ε/(1 + e^ε): 1,000 plays
    at a level of 0.05, in which a sound rule accuses 50 at most, and this one far fewer.
    """
    claim = read_claim(1.0, 0, "add-remove", None, None, None, None, None)
    assert claim is not None
    rng, people = np.random.default_rng(1), 200
    right = math.e / (1 + math.e)
    accused = 0
    for _ in range(1_000):
        tally = Tally(
            int(rng.binomial(people, right)), int(rng.binomial(people, 1 - right)), people
        )
        accused += claim.broken(tally, 0.05, (0.0, 1.0))
    assert accused <= 50
    assert claim.broken(Tally(200, 0, 200), 1e-6, (0.0, 1.0))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_what_is_allowed_is_the_trade_off(relation: str) -> None:
    """Adding or removing one counts twice, as two people change places."""
    claim = read_claim(0.5, 0.01, relation, None, None, None, None, None)
    assert claim is not None
    epsilon, delta = (1.0, 0.01 * (1 + math.exp(0.5))) if relation == "add-remove" else (0.5, 0.01)
    for q in (0.0, 0.1, 0.4):
        most = min(math.exp(epsilon) * q + delta, 1 - math.exp(-epsilon) * (1 - q - delta))
        assert claim.allowed(q) == pytest.approx(most, rel=1e-6)
    assert claim.allowed(1.0) == 1.0
    assert read_claim(1e6, 0, relation, None, None, None, None, None).allowed(1e-6) == 1.0  # type: ignore[union-attr]
