"""One-run audits: the theorem against the best mechanism there is, and its use."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import comb
from scipy.stats import binom

from dither.errors import ArgumentError
from dither.lab.audit import audit_one_run, chance_of_guesses, guess_by_score


def best_chance(m, r, v, epsilon, delta):
    """The largest Pr[v or more of r guesses right] that any (epsilon, delta)-DP mechanism gives.

    A linear program over w_k, the probability of each vector of guesses of which k are right, for
    mechanisms averaged over flips and permutations (which changes neither side), and over the
    positive parts of both comparisons with a neighbour.
    """
    factor, n = math.exp(epsilon), r + 1
    k = np.arange(n)
    rows = np.zeros((2 * r + 1, n + 2 * r))
    for i in range(1, n):
        rows[i - 1, [i, i - 1, n + i - 1]] = 1, -factor, -1
        rows[r + i - 1, [i - 1, i, n + r + i - 1]] = 1, -factor, -1
    each = np.concatenate([comb(r - 1, np.arange(r)), comb(r - 1, np.arange(r))])
    rows[-1, n:] = r / m * each
    goal = np.concatenate([np.where(k >= v, -comb(r, k), 0), np.zeros(2 * r)])
    whole = np.concatenate([comb(r, k), np.zeros(2 * r)])[None]
    limits = np.zeros(2 * r + 1)
    limits[-1] = delta
    found = linprog(goal, A_ub=rows, b_ub=limits, A_eq=whole, b_eq=[1], method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize(
    ("m", "r", "v"),
    [(1, 1, 1), (3, 3, 3), (3, 3, 1), (6, 6, 5), (12, 8, 7), (12, 12, 6), (20, 9, 8)],
)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("delta", [0.0, 1e-4, 5e-3])
def test_theorem_is_the_best_mechanism(m, r, v, epsilon, delta):
    """No mechanism does better than the theorem allows, and one does as well."""
    bound, best = chance_of_guesses(m, r, v, epsilon, delta), best_chance(m, r, v, epsilon, delta)
    assert best <= bound + 1e-7
    if bound < 1:
        assert best == pytest.approx(bound, rel=2e-5, abs=1e-6)


def test_without_delta_it_is_binomial():
    """For delta = 0 the bound is the tail of the binomial law, abstaining or not."""
    for v in (0, 3, 7, 10):
        expected = binom.sf(v - 1, 10, 1 / (1 + math.exp(-0.7)))
        found = chance_of_guesses(50, 10, v, 0.7)
        assert expected * (1 - 1e-12) <= found <= expected * (1 + 2e-6)


def test_many_guesses_do_not_underflow():
    """Where all terms are too small for doubles, delta's part is still there, m·delta/v or more."""
    assert chance_of_guesses(5000, 4000, 4000, 0.0, 1e-6) >= 5000 * 1e-6 / 4000
    assert chance_of_guesses(5000, 4000, 4000, 0.0, 1e-6) < 1e-5


@pytest.mark.parametrize(("r", "v", "epsilon"), [(50, 40, 0.3), (400, 250, 0.1), (400, 400, 3.0)])
def test_what_delta_adds_is_rounded_up(r, v, epsilon):
    """The bound at 60 digits, from its definition."""
    many = mpmath.MPContext()
    many.dps = 60
    right = 1 / (1 + many.exp(-many.mpf(epsilon)))
    law = [many.binomial(r, k) * right**k * (1 - right) ** (r - k) for k in range(r + 1)]
    b = many.fsum(law[v:])
    most = max(b * many.fsum(law[:k]) / law[k] / k for k in range(1, v + 1))
    for delta in (0.0, 1e-9, 1e-5):
        exact = b + 1000 * many.mpf(delta) * most
        assert exact <= chance_of_guesses(1000, r, v, epsilon, delta) <= exact * (1 + 1e-5)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_randomised_response_is_bounded_and_met(delta):
    """Coins reported at epsilon = 2: the exact probability of a too high bound is below 1 %.

    Summed over all counts of right guesses, so this does not vary; and the typical count certifies
    most of epsilon.
    """
    m, epsilon = 400, 2.0
    right = 1 / (1 + math.exp(-epsilon))
    coins = np.arange(m) % 2 == 0
    failed = 0.0
    for v in range(330, m + 1, 1):
        guesses = np.where(np.arange(m) < v, 1, -1) * np.where(coins, 1, -1)
        if audit_one_run(coins, guesses, epsilon, delta).lower > epsilon:
            failed = float(binom.sf(v - 1, m, right))
            break
    assert 0 < failed <= 0.01
    typical = np.where(np.arange(m) < round(m * right), 1, -1) * np.where(coins, 1, -1)
    assert 1.5 < audit_one_run(coins, typical, 1.0, delta).lower < 2.0


def test_abstaining_helps():
    """The sure half of the guesses certifies more than all of them."""
    rng = np.random.default_rng(3)
    coins = rng.random(4000) < 0.5
    scores = np.where(coins, 1.0, -1.0) + 1.2 * rng.normal(size=4000)
    every = audit_one_run(coins, guess_by_score(scores, 2000, 2000), epsilon=1.0)
    sure = audit_one_run(coins, guess_by_score(scores, 300, 300), epsilon=1.0)
    assert sure.lower > every.lower > 1.0
    assert sure.verdict == "violated"
    assert "in one run" in sure.summary()
    assert sure.guesses == 600


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c, g: audit_one_run(c.astype(int), g), "array of bool"),
        (lambda c, g: audit_one_run(c, g[:-1]), "for each canary"),
        (lambda c, g: audit_one_run(c, 2 * g), "1, -1 or 0"),
        (lambda c, g: audit_one_run(c, g, epsilon=-1), "epsilon must be"),
        (lambda c, g: audit_one_run(c, g, confidence=1), "confidence"),
        (lambda c, g: audit_one_run(c, g * (np.arange(40) < 9), 2.0), "at least 68 are needed"),
        (lambda c, g: audit_one_run(c), "one of both"),
        (lambda c, g: audit_one_run(c, g, scores=g), "one of both"),
        (lambda c, g: audit_one_run(c, scores=g[1:]), "one number for each"),
        (lambda c, g: audit_one_run(c, scores=np.where(c, math.nan, 0)), "one number for each"),
        (lambda c, g: audit_one_run(c, scores=g, epsilon=2.0), "canaries are too few"),
        (lambda c, g: guess_by_score(np.ones(3), 2, 2), "at most all canaries"),
        (lambda c, g: guess_by_score([math.nan], 1, 0), "flat array of numbers"),
    ],
)
def test_refusals(call, words):
    """What cannot be judged is refused, with what would do."""
    coins = np.arange(40) % 2 == 0
    with pytest.raises(ArgumentError, match=words):
        call(coins, np.where(coins, 1, -1))


@pytest.mark.parametrize(
    "asked", [(1, 2, 2, 1.0), (9, 2, 3, 1.0), (9, 2, -1, 1.0), (9, 2, 1, -1.0), (9, 2, 1, 1.0, 1.5)]
)
def test_impossible_counts_have_no_chance(asked: tuple[float, ...]) -> None:
    """More right than guessed, more guessed than planted, or no budget: refused, not told as 0."""
    with pytest.raises(ArgumentError):
        chance_of_guesses(*asked)  # type: ignore[arg-type]


def test_coins_that_are_not_fair_are_refused():
    """Canaries that are all in would make every guess of "in" right, whatever the mechanism."""
    with pytest.raises(ArgumentError, match="fair coins"):
        audit_one_run(np.ones(200, dtype=bool), np.ones(200, dtype=int))


def told(rng, coins, rate):
    """Scores of noise, of which those of some canaries that were in give them away."""
    return rng.normal(size=coins.size) + np.where(coins & (rng.random(coins.size) < rate), 9, 0)


def test_scores_show_a_leak_of_few_canaries():
    """One canary in 200 is given away: no number of guesses was named, and it is seen."""
    rng = np.random.default_rng(11)
    coins = rng.random(20_000) < 0.5
    scores = told(rng, coins, 1 / 200)
    found = audit_one_run(coins, scores=scores, epsilon=1)
    assert found.verdict == "violated"
    assert found.correct == found.guesses < 100
    named = audit_one_run(coins, guess_by_score(scores, 5000, 5000), epsilon=1)
    assert named.lower == 0


def test_scores_show_a_leak_of_all_canaries():
    """The same ladder certifies nearly what the best number of guesses does."""
    rng = np.random.default_rng(12)
    coins = rng.random(20_000) < 0.5
    scores = np.where(coins, 1.0, -1.0) + 1.2 * rng.normal(size=coins.size)
    found = audit_one_run(coins, scores=scores, epsilon=1, delta=1e-6)
    best = max(
        audit_one_run(coins, guess_by_score(scores, n, n), epsilon=1, delta=1e-6).lower
        for n in (300, 1000, 3000)
    )
    assert 0.8 * best < found.lower < best + 0.5
    assert found.verdict == "violated"


def test_true_claims_are_accused_by_scores_as_rarely_as_stated():
    """Coins reported at epsilon = 1: of 40 runs none is accused, and few certify too much."""
    rng = np.random.default_rng(13)
    above = 0
    for _ in range(40):
        coins = rng.random(600) < 0.5
        right = rng.random(600) < math.e / (1 + math.e)
        scores = np.where(right, coins, ~coins) + 0.1 * rng.random(600)
        found = audit_one_run(coins, scores=scores, epsilon=1, confidence=0.9)
        assert found.verdict == "not refuted"
        above += found.lower > 1
    assert above <= 10


def test_a_verdict_is_surer_than_the_bound():
    """Certified above the claim, but not so surely: no verdict, and the summary says why."""
    coins = np.arange(1000) % 2 == 0
    right = np.where(np.arange(1000) < 772, 1, -1)
    found = audit_one_run(coins, np.where(coins, 1, -1) * right, epsilon=1)
    assert found.verdict == "not refuted"
    assert found.lower > 1
    assert "99.98 %" in found.summary()
