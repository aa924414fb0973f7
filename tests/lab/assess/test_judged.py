"""The verdicts: computed truth of Fisher's test, of intervals, and of what a claim allows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from dither.lab.assess._claim import read_claim
from dither.lab.assess._difference import difference, share_ends
from dither.lab.assess._judged import Tally, chance_of_lot, fewest, told


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


@pytest.mark.parametrize(("people", "level"), [(5, 0.1), (8, 0.002), (12, 7e-4)])
def test_the_intervals_cover(people: int, level: float) -> None:
    """By enumeration of both binomial laws: that of the difference, and those of both shares.

    Near 1 and 0 both shares lie at their ends at once, where squares of reaches are too short.
    """
    shares = (0.0, 0.003, 0.02, 0.05, 0.2, 0.5, 0.8, 0.95, 0.98, 0.997, 1.0)
    every = list(itertools.product(range(people + 1), repeat=2))
    ends = {(a, b): difference(a, b, people, level) for a, b in every}
    both = {(a, b): share_ends(a, b, people, level) for a, b in every}

    def law(p: float) -> npt.NDArray[np.float64]:
        k = range(people + 1)
        return np.array([math.comb(people, i) * p**i * (1 - p) ** (people - i) for i in k])

    def inside(end: tuple[float, float], value: float) -> bool:
        return end[0] - 1e-9 <= value <= end[1] + 1e-9

    for p, q in itertools.product(shares, shares):
        chance = np.outer(law(p), law(q))
        missed = sum(chance[a, b] for a, b in every if not inside(ends[a, b], p - q))
        apart = sum(
            chance[a, b]
            for a, b in every
            if not (inside(both[a, b][0], p) and inside(both[a, b][1], q))
        )
        assert missed <= level
        assert apart <= level


def test_words_and_interval_agree() -> None:
    """Found is what Fisher's test tells from luck, no less and no more.

    The interval of what is not found holds 0, and one that lies above it is of something found.
    """
    for people, level in ((6, 0.05), (9, 0.01)):
        for a, b in itertools.product(range(people + 1), repeat=2):
            seen = told(Tally(a, b, people), level)
            assert seen.found == (seen.chance <= level)
            assert seen.found or not seen.low > 0.0
            assert seen.found or seen.low <= 0.0 <= seen.high
            assert seen.ends == share_ends(a, b, people, level)[0]


@pytest.mark.parametrize(("relation", "epsilon"), [("add-remove", 1.0), ("replace", 2.0)])
def test_a_true_claim_is_not_called_broken(relation: str, epsilon: float) -> None:
    """Of randomised response on everybody's membership, which uses all of its epsilon.

    Each person is in by lot, and the release says so with probability e/(1 + e), so somebody who is
    replaced moves it by 2: 1,000 plays at a level of 0.05, in which a sound rule accuses 50 at
    most, and this one far fewer.
    """
    claim = read_claim(epsilon, 0, relation, None, None, None, None, None)
    assert claim is not None
    rng, people = np.random.default_rng(1), 200
    right = math.e / (1 + math.e)
    accused = 0
    for _ in range(1_000):
        tally = Tally(
            int(rng.binomial(people, right)), int(rng.binomial(people, 1 - right)), people
        )
        accused += claim.broken(tally, 0.05, rng)
    assert accused <= 50
    assert claim.broken(Tally(200, 0, 200), 1e-6, rng)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_what_delta_lets_happen_is_no_breach(relation: str) -> None:
    """With probability delta all is published: hits have all to do with one another then."""
    claim = read_claim("0.1", "0.01", relation, None, None, None, None, None)
    assert claim is not None
    rng = np.random.default_rng(2)
    for many in (20, 200, 1_000):
        assert not claim.broken(Tally(many, 0, many), 0.005, rng)
    smaller = read_claim("0.1", "1e-6", relation, None, None, None, None, None)
    assert smaller is not None
    assert smaller.broken(Tally(1_000, 0, 1_000), 0.01, rng)


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
