"""Rare and small faults: the odds of guesses, neighbours further apart, given and learned scores.

Noise is simulated from fixed seeds, and faults are caught by margins of some deviations.
``benchmarks/audit.py`` has the long runs: how often each kind is caught, and that of a thousand
true claims none is accused.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, multinomial

import dither as dt
from dither.errors import ArgumentError
from dither.lab.audit import Outcome, audit, grid_score, samples_needed
from dither.lab.audit._claims import EVENTS, Claim, SharedLevels, certifying
from dither.lab.audit._coins import flip_coins, odds_of, trials_of
from dither.noise import discrete_laplace
from dither.numeric import SimulatedWords
from dither.privacy import gaussian

SURE = 1 - 1e-6


def on_grid(values):
    """Values whose low-order bits say nothing."""
    return np.round(values * 2.0**20) / 2.0**20


def laplace(seed, scale=1.0, rate=0.0, fault=None):
    """Laplace noise, and at some rate a fault of (data, size) in its place."""
    rng = np.random.default_rng(seed)

    def release(data, size):
        right = data + on_grid(rng.laplace(0, scale, size))
        return right if fault is None else np.where(rng.random(size) < rate, fault(data), right)

    return release


def coordinates(seed, scale, width=64):
    """A Laplace-noised vector of which all coordinates change."""
    rng = np.random.default_rng(seed)
    return lambda data, size: data + on_grid(rng.laplace(0, scale, (size, width)))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_odds_err_as_rarely_as_stated(epsilon):
    """Of right guesses that meet the claim, the bound is above it no more often than its level."""
    level, share = 0.01, math.exp(epsilon) / (1 + math.exp(epsilon))
    for k in (5, 40, 300):
        right = np.arange(k + 1)
        over = np.array([odds_of(int(r), int(k - r), k, level) > epsilon for r in right])
        chance = binom.pmf(right, k, share)[over].sum()
        assert chance <= level
        # And not far more rarely: one more outcome would be too many.
        first = int(np.argmax(over)) if over.any() else k + 1
        assert binom.sf(first - 2, k, share) > level


@pytest.mark.parametrize("both", [False, True])
def test_odds_with_delta_err_as_rarely_as_stated(both):
    """The same in the whole game, where delta makes right guesses of its own."""
    trials, epsilon, delta, level = 24, 0.5, 0.1, 0.05
    part = delta if both else delta / 2
    for wrong in (0.05, 0.2):
        right = math.exp(epsilon) * wrong + part
        law = multinomial(trials, [right, wrong, 1 - right - wrong])
        chance = sum(
            law.pmf([r, w, trials - r - w])
            for r in range(trials + 1)
            for w in range(trials + 1 - r)
            if odds_of(r, w, trials, level, delta, both=both) > epsilon
        )
        assert chance <= level


def test_coins_take_what_there_is():
    """The trials take as many outcomes of each dataset as coins say, of those that certify."""
    second = np.repeat([False, True], 100)
    certifying_ones = np.tile([True, False], 100)
    kept = [flip_coins(50, SimulatedWords(seed)) for seed in range(300)]
    assert sum(not c.held for c in kept) <= 6
    for coins in kept:
        used = coins.used(second, certifying_ones)
        assert not np.any(used & ~certifying_ones)
        if coins.held:
            assert used.sum() == coins.trials == trials_of(50)
            assert used[second].sum() == coins.heads


@pytest.mark.parametrize("claim", [Claim(1.0), Claim(1.0, 0.1), Claim(0.0, 0.0, 1.0)])
def test_levels_are_shared_out(claim):
    """All that is bounded costs no more than the whole."""
    levels = SharedLevels(0.01, claim)
    spent = 2 * EVENTS * levels.each + sum(levels.odds(i) for i in range(EVENTS))
    assert spent == pytest.approx(0.01, rel=1e-9)
    # What refutes costs a fiftieth.
    refuting = 2 * EVENTS * levels.refuting + (spent - 2 * EVENTS * levels.each)
    assert refuting == pytest.approx(levels.verdict, rel=1e-9)
    assert levels.verdict <= 0.01 / 50 * (1 + 1e-9)


def test_a_leak_of_one_call_in_a_thousand():
    """The raw value is found among 100,000 outputs, as a guess of both datasets."""
    found = audit(laplace(3, rate=1e-3, fault=float), 0, 1, 1)
    assert found.verdict is Outcome.VIOLATED
    assert found.event.likelier == "either"
    assert "right with probability at least" in str(found.event)
    assert found.lower > 2


def test_a_fault_of_one_call_in_two_thousand():
    """Of one dataset alone, and among 200,000."""

    def missing(data):
        return np.nan if data else 0.5

    found = audit(laplace(4, rate=1 / 2000, fault=missing), 0, 1, 1, samples=200_000)
    assert found.verdict is Outcome.VIOLATED


def test_what_comes_nearly_again():
    """Nearly the same value, once in 200 calls of continuous noise."""
    rng = np.random.default_rng(5)
    quiet = lambda data: data + on_grid(rng.normal(0, 1e-4))  # noqa: E731
    found = audit(laplace(6, rate=0.005, fault=quiet), 0, 1, 1, samples=40_000)
    assert found.verdict is Outcome.VIOLATED


def test_neighbours_further_apart():
    """A sensitivity of 10 where 8 is meant, at a small epsilon: seen from afar, not from near."""

    def total(seed):
        words = SimulatedWords(seed)
        return lambda data, size: 10 * data + discrete_laplace(Fraction(80), size, words=words)

    near = audit(total(1), 0, 1, Fraction(1, 10), samples=10_000)
    far = audit(total(1), 0, 16, Fraction(1, 10), samples=10_000, distance=16)
    assert near.verdict is Outcome.NOT_REFUTED
    assert far.verdict is Outcome.VIOLATED
    assert 0.1 < far.lower < 0.125
    assert far.delta > 0
    assert "16 neighbours apart" in far.summary()
    true = audit(total(2), 0, 16, Fraction(1, 8), samples=10_000, distance=16, confidence=SURE)
    assert true.verdict is Outcome.NOT_REFUTED
    by_mu = audit(total(3), 0, 16, mu=0.1, samples=10_000, distance=16)
    assert by_mu.mu < 0.125


def test_given_scores(tmp_path):
    """A score of the caller's is looked at alone, thresholds of it chosen by a fifth."""
    rng = np.random.default_rng(8)

    def wide(data, size):
        out = rng.normal(size=(size, 8))
        out[:, 5] = 2 * data + rng.laplace(0, 1, size)
        return out

    found = audit(wide, 0, 1, 1, samples=4_000, score=lambda y: np.clip(y[:, 5], 0, 2))
    assert found.verdict is Outcome.VIOLATED
    assert {event.kind for event in found.events} == {"given"}
    assert "the given score" in found.summary()
    assert sum(certifying(4_000, share) for share in (0.5, 0.8)) == 2_000 + 3_200
    found.plot(tmp_path / "audit.svg")
    assert (tmp_path / "audit.svg").stat().st_size > 5_000

    def fails(data):
        if rng.random() < 0.5:
            raise KeyError("Ann")
        return data + rng.laplace()

    single = audit(fails, 0, 1, 1, samples=400, score=float, confidence=SURE)
    assert single.verdict is Outcome.NOT_REFUTED
    same = audit(laplace(9), 0, 1, 1, samples=400, score=np.zeros_like)
    assert same.verdict is Outcome.INCONCLUSIVE
    assert "score is the same for every output" in same.summary()


def test_true_claims_with_scores_and_distance():
    """Of 12 audits each at 90 % confidence, not three accuse: odds have a hundredth of the rest."""
    for k in (1, 2):
        accused = sum(
            audit(
                laplace([run, k]), 0, k, 1, samples=600, confidence=0.9, distance=k,
                score=lambda y, k=k: np.clip(y, 0, k), words=SimulatedWords(run),
            ).verdict
            is Outcome.VIOLATED
            for run in range(12)
        )  # fmt: skip
        assert accused < 3


def near_the_best(width, samples):
    """What a learned score and the best one certify, of coordinates of true epsilon 8 in all."""
    make = lambda: coordinates(1, width / 8, width)  # noqa: E731
    found = audit(make(), 0, 1, 2, samples=samples)
    best = lambda y: np.clip(y - 0.5, -0.5, 0.5).sum(axis=1)  # noqa: E731
    return found, audit(make(), 0, 1, 2, samples=samples, score=best).lower


def test_some_coordinates():
    """A learned score of 16 coordinates comes near the best one."""
    found, best = near_the_best(16, 4_000)
    assert found.lower > 0.7 * best > 1
    assert any("of 16 coordinates" in event.description for event in found.events)


@pytest.mark.slow
def test_many_coordinates():
    """So does one of 64."""
    found, best = near_the_best(64, 20_000)
    assert found.lower > 0.75 * best > 1


def test_within_a_family():
    """Common events bound all of epsilon where the law is known, and nothing is accused by that."""
    rng = np.random.default_rng(11)

    def vector(data, size):
        return data / 2 + on_grid(rng.normal(0, 1, (size, 4)))

    found = audit(
        vector, 0, 1, 5, 1e-5, samples=4_000, confidence=SURE, family=lambda noise: gaussian(noise)
    )
    true = float(gaussian(1).epsilon(1e-5).upper)
    assert found.verdict is Outcome.NOT_REFUTED
    assert found.lower < 0.6 * true < found.within <= true
    assert "Within the family" in found.summary()


def test_floats_behind_a_cast():
    """The grid of a uniform of 24 bits shows through a cast, to who knows the answer."""
    rng = np.random.default_rng(12)

    def release(data, size):
        uniform = (rng.integers(0, 2**24, size) + 0.5) / 2.0**24 - 0.5
        noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
        return (data + noise).astype(np.float32)

    blind = audit(release, 0, 1, 1, samples=5_000)
    assert blind.verdict is Outcome.NOT_REFUTED
    found = audit(release, 0, 1, 1, samples=5_000, score=grid_score(0, 1, 24))
    assert found.verdict is Outcome.VIOLATED
    assert np.isnan(grid_score(0, 1)(np.array([np.nan, np.inf, -np.inf]))).all()


def test_floats_in_another_unit():
    """Low-order bits survive a change of units."""
    rng = np.random.default_rng(13)
    cents = lambda data, size: (data + rng.laplace(0, 1, size)) * 0.01  # noqa: E731
    found = audit(cents, 0, 1, 1, samples=20_000)
    assert found.verdict is Outcome.VIOLATED
    assert "the lowest bit of 100 times the output" in found.summary().replace("\n", " ")


def test_samples_for_rare_events():
    """An event of one call in a thousand, and nothing on the other side: by odds, as computed."""
    n = certifying(samples_needed(1, 8, mass=1e-3))
    level = SharedLevels(0.01, Claim(1.0)).odds(0)
    least = next(k for k in range(1, 999) if odds_of(k, 0, n, level) > 1)
    assert binom.sf(least - 1, trials_of(n), 5e-4) > 0.9
    assert binom.sf(least - 1, trials_of(n) // 2, 5e-4) < 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"distance": 0}, "distance must be"),
        ({"distance": 2, "delta": 0.1}, "goes with delta = 0"),
        ({"distance": 2, "family": gaussian}, "family goes with distance 1"),
        ({"score": 3}, "score must be callable"),
        ({"score": lambda y: y[0]}, "one number for each output"),
        ({"score": lambda y: ["Ann"] * len(y)}, r"score failed .*ValueError"),
    ],
)
def test_refusals(options, words):
    """What does not fit is refused by name, and shows no output."""
    with pytest.raises(ArgumentError, match=words) as caught:
        dt.audit(laplace(1), 0, 1, samples=1_000, **options)
    assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("x", 1, 24), "centre"), ((0, 0, 24), "scale"), ((0, 1, 60), "bits")],
)
def test_grids_that_are_none(arguments, words):
    """Numbers out of range are refused."""
    with pytest.raises(ArgumentError, match=words):
        grid_score(*arguments)
