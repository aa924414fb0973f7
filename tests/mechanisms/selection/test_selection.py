"""Picking a candidate: realised laws held against claimed losses, and mutants that are caught."""

import itertools
import math
from collections import Counter
from fractions import Fraction as F

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import noise
from dither.errors import ArgumentError
from dither.mechanisms import (
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    TopK,
)
from dither.mechanisms import _coins as coins
from dither.numeric import _directed as directed
from mechanisms.realised import (
    fraction,
    realised_law,
    refuted,
    renyi,
    worst_ratio,
)

EPSILON = F(3, 2)
PAIRS = [([0, 1, 3], [1, 0, 2]), ([0, 0, 1], [1, 1, 0]), ([2, 2, 2], [3, 1, 3])]
RISING = [([0, 1, 3], [1, 1, 4]), ([0, 0, 1], [1, 1, 1]), ([2, 2, 2], [3, 2, 3])]


def laplace(rate):
    """Report-noisy-max with Laplace noise."""
    return NoisyMax(rate, "laplace")


def test_exponential_law_is_the_formula(monkeypatch):
    """The realised probabilities are exp(rate·u_i)/Σ, to the digits computed."""
    rate, utilities = F(2, 3), [0, 1, 3, 1]
    law, lost = realised_law(monkeypatch, lambda: Exponential(rate).draw(utilities), floor=1e-40)
    weights = [mpmath.exp(fraction(rate) * u) for u in utilities]
    assert lost < 1e-36
    for i, w in enumerate(weights):
        assert abs(law[i] - w / sum(weights)) < 1e-14


def test_exponential_rejection_is_exact(monkeypatch):
    """With 3-bit dominating weights the exact coin corrects them: the law is still the formula."""
    monkeypatch.setattr(coins, "_WEIGHT_BITS", 3)
    rate, utilities = F(1), [0, 4, 3]
    monkeypatch.setattr(coins, "_NEGLIGIBLE", 4)
    law, lost = realised_law(monkeypatch, lambda: Exponential(rate).draw(utilities), floor=1e-11)
    total = sum(mpmath.exp(u) for u in utilities)
    assert lost < 1e-8
    for i, u in enumerate(utilities):
        assert abs(law[i] - mpmath.exp(u) / total) < 1e-8


@pytest.mark.heavy("test_exponential_law_is_the_formula")
def test_a_choice_among_many_has_the_law_of_the_formula():
    """Where weights are of rounded exponents: chi-square, above 103 once in a million runs."""
    rate, utilities = F(3, 29), [*range(40), 0]
    pick, draws = Exponential(rate), 20_000
    weights = [math.exp(float(rate) * u) for u in utilities]
    seen = Counter(pick.draw(utilities) for _ in range(draws))
    expected = [draws * w / sum(weights) for w in weights]
    assert sum((seen[i] - e) ** 2 / e for i, e in enumerate(expected)) < 103


def test_permute_and_flip_is_the_exponential_race(monkeypatch):
    """Its realised law is that of the largest of u_i + exponential noise, by quadrature."""
    rate, utilities = F(1), [0, 1, 2]
    law, lost = realised_law(monkeypatch, lambda: PermuteAndFlip(rate).draw(utilities))
    assert lost < 1e-10

    def wins(i):
        def density(x):
            value = mpmath.exp(-x)
            for j, u in enumerate(utilities):
                if j != i:
                    over = utilities[i] + x - u
                    value *= 1 - mpmath.exp(-over) if over > 0 else 0
            return value

        return mpmath.quad(density, [0, 1, 2, 3, 10, 40])

    for i in range(3):
        assert abs(law[i] - wins(i)) < 1e-9


@pytest.mark.parametrize("make", [Exponential, PermuteAndFlip, laplace])
@pytest.mark.parametrize("monotone", [False, True])
def test_realised_ratio_is_within_epsilon(monkeypatch, make, monotone):
    """On neighbours no realised probability exceeds exp(epsilon) times the other's.

    The mutant of twice the rate exceeds it on the same neighbours.
    """
    rate = Exponential.for_loss(EPSILON, sensitivity=1, monotone=monotone).rate
    loss = make(rate).loss(sensitivity=1, monotone=monotone).charge
    assert loss.epsilon == EPSILON

    def few(utilities):
        # Three Laplace noises have too many paths; the test after this one computes them.
        return utilities[1:] if make is laplace else utilities

    def worst(rate):
        found = mpmath.mpf(0)
        for pair in RISING if monotone else PAIRS:
            laws = [
                realised_law(monkeypatch, lambda u=u: make(rate).draw(u), floor=1e-9, reach=12)
                for u in (few(p) for p in pair)
            ]
            assert max(lost for _, lost in laws) < 0.02
            found = max(found, worst_ratio(laws[0][0], laws[1][0]))
        return found

    slack = 0.02 if make is laplace else 1e-6
    assert worst(rate) <= fraction(EPSILON) + slack
    assert worst(2 * rate) > fraction(EPSILON) + slack


@pytest.mark.parametrize("size", [2, 3])
def test_laplace_race_keeps_epsilon_in_law(size):
    """All neighbours of small utilities: the exact law of the Laplace race keeps epsilon.

    The law is summed over the winner's noise; ties are shared evenly, by inclusion of how many tie.
    """
    epsilon = F(1)
    mechanism = NoisyMax.for_loss(epsilon, sensitivity=1, kind="laplace")
    r = mpmath.exp(-fraction(mechanism.rate))

    def pmf(z):
        return (1 - r) / (1 + r) * r ** abs(z)

    def under(z):
        return 1 - r**z / (1 + r) if z >= 1 else r ** (1 - z) / (1 + r)

    def law(utilities):
        found = []
        for i, u in enumerate(utilities):
            others = [v for j, v in enumerate(utilities) if j != i]
            total = mpmath.mpf(0)
            for z in range(-40, 41):
                for ties in itertools.product((0, 1), repeat=len(others)):
                    p = pmf(z)
                    for tie, v in zip(ties, others, strict=True):
                        p *= pmf(u + z - v) if tie else under(u + z - v)
                    total += p / (1 + sum(ties))
            found.append(total)
        return found

    mechanism_law = law((0,) * size)
    assert abs(sum(mechanism_law) - 1) < 1e-8
    for gap in (0, 2):
        base = (gap, *(0,) * (size - 1))
        for change in itertools.product((-1, 1), repeat=size):
            near = law([b + c for b, c in zip(base, change, strict=True)])
            for p, q in zip(law(base), near, strict=True):
                assert abs(mpmath.log(p / q)) <= fraction(epsilon) + 1e-8


@pytest.mark.parametrize("monotone", [False, True])
def test_exponential_zcdp_is_epsilon_squared_over_8(monkeypatch, monotone):
    """The realised Rényi divergences stay within alpha·rho, and a rate of twice leaves them."""
    mechanism = Exponential.for_loss(EPSILON, sensitivity=1, monotone=monotone)
    rho = fraction(mechanism.loss(sensitivity=1, monotone=monotone).charge.rho)
    assert rho == fraction(EPSILON**2 / 8)
    exceeded = False
    for pair in RISING if monotone else PAIRS:
        for rate, honest in ((mechanism.rate, True), (2 * mechanism.rate, False)):
            p, q = (
                realised_law(monkeypatch, lambda u=u, r=rate: Exponential(r).draw(u), floor=1e-30)[
                    0
                ]
                for u in pair
            )
            for alpha in (1.01, 2, 5, 20):
                found = max(renyi(p, q, mpmath.mpf(alpha)), renyi(q, p, mpmath.mpf(alpha)))
                if honest:
                    assert found <= alpha * rho + 1e-12
                exceeded = exceeded or found > alpha * rho
    assert exceeded


@pytest.mark.parametrize("make", [Exponential, PermuteAndFlip, laplace])
def test_black_box_audit(make):
    """2 x 1,600 picks never refute epsilon (false alarm 1e-7); at four times the rate they do.

    Two candidates level with each other, and then apart by twice the sensitivity.
    """
    epsilon = F(1)
    honest = Exponential.for_loss(epsilon, sensitivity=1).rate

    def picks(rate):
        mechanism = make(rate)
        return [[mechanism.draw(u) for _ in range(1600)] for u in ([1, 0], [0, 1])]

    assert not refuted(*picks(honest), float(epsilon))
    assert refuted(*picks(4 * honest), float(epsilon))


def test_releasing_the_noisy_maximum_is_caught():
    """A race that says its winner's noisy value breaks the epsilon that its pick keeps.

    Three level counts all rise by one: a pick's law is unchanged, and the largest noisy value is
    small on one side only, by far more than exp(1/2).
    """
    mechanism = NoisyMax.for_loss(F(1, 2), sensitivity=1, monotone=True, kind="laplace")
    values = [
        (noise.discrete_laplace(1 / mechanism.rate, 60_000).reshape(-1, 3) + shift).max(axis=1)
        for shift in (0, 1)
    ]
    assert refuted(*(v.tolist() for v in values), 0.5)


def test_losses_compose():
    """The composable object claims the charge's epsilon, and a bounded range composes better."""
    for make in (Exponential, PermuteAndFlip, laplace):
        mechanism = make(F(1, 20))
        loss = mechanism.loss(sensitivity=1)
        assert loss.epsilon(delta=0) == pytest.approx(0.1, rel=1e-9)
        assert loss.epsilon(delta=0) >= loss.charge.epsilon
    many = (1000 * m(F(1, 20)).loss(sensitivity=1) for m in (Exponential, PermuteAndFlip))
    ranged, pure = (m.epsilon(delta=1e-6) for m in many)
    assert ranged < pure
    picks = TopK(F(1, 20), 1000).loss(sensitivity=1)
    assert picks.epsilon(delta=1e-6) == ranged
    said = RandomizedResponse(F(1), 4).loss()
    assert said.epsilon(delta=0) == pytest.approx(1)
    gumbel = NoisyMax(F(1, 20), "gumbel").loss(sensitivity=1)
    assert (1000 * gumbel).epsilon(delta=1e-6) == ranged


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=8),
    st.fractions(F(1, 20), 5, max_denominator=50),
    st.floats(0.5, 0.999),
)
def test_shortfall_is_a_bound(utilities, rate, confidence):
    """The exponential mechanism's exact shortfall stays within the bound at its confidence."""
    width = Exponential(rate).shortfall(len(utilities), confidence)
    weights = [mpmath.exp(fraction(rate) * u) for u in utilities]
    near = sum(w for u, w in zip(utilities, weights, strict=True) if u >= max(utilities) - width)
    assert near / sum(weights) >= confidence - 1e-12


@pytest.mark.parametrize("kind", ["gumbel", "exponential", "laplace"])
def test_shortfall_inverts(kind):
    """`for_shortfall` gives a rate that meets it, and a percent less does not."""
    made = NoisyMax.for_shortfall(10, candidates=50, confidence=0.95, kind=kind)
    assert made.kind == kind
    assert made.shortfall(50, 0.95) <= 10
    assert NoisyMax(made.rate * F(99, 100), kind).shortfall(50, 0.95) > 10


def test_laplace_race_misses_as_computed():
    """Pr[Z - Z' >= gap] in closed form is the convolution of the law."""
    mechanism = NoisyMax(F(1, 2), "laplace")
    r = mpmath.exp(mpmath.mpf(-1) / 2)
    p = {z: (1 - r) / (1 + r) * r ** abs(z) for z in range(-80, 81)}
    for gap in (1, 2, 7):
        exact = mpmath.fsum(p[a] * p[b] for a in p for b in p if a - b >= gap)
        assert mechanism.miss_probability(gap, 2) == pytest.approx(float(exact), rel=1e-9)


def test_real_coins_are_decided_by_their_bounds(monkeypatch):
    """A coin whose first word ties with the bounds asks for more bits and decides rightly."""
    third = F(1, 3)
    served = iter([int(third * 2**62), 0, int(third * 2**62), 2**62 - 1])
    monkeypatch.setattr(
        coins.noise, "below", lambda n, size: np.array([next(served)], dtype=np.int64)
    )

    def bounds(bits):
        return third - F(1, 2**bits), third + F(1, 2**bits)

    assert coins.real_coin(bounds)
    assert not coins.real_coin(bounds)


def test_real_coins_have_their_probability():
    """20,000 coins of probability exp(-1) stay within 6 standard deviations (false alarm 2e-9)."""

    def bounds(bits):
        return directed.exp_lower(F(-1), bits), directed.exp_upper(F(-1), bits)

    n, p = 20_000, np.exp(-1)
    assert abs(coins.real_coins(bounds, n).sum() - n * p) < 6 * np.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("make", [Exponential, PermuteAndFlip, laplace])
def test_refusals(make):
    """Floats, nothing to choose from, and parameters out of range are refused by name."""
    mechanism = make(F(1))
    for utilities in ([], [0.5, 1.0], [True, False], np.array([0.1]), np.zeros((2, 2), int), 3):
        with pytest.raises(ArgumentError, match="utilities"):
            mechanism.draw(utilities)
    for rate in (0, F(-1), -0.5, float("inf"), True):
        with pytest.raises(ArgumentError, match="rate"):
            make(rate)
    for sensitivity in (0, -1, 0.5, float("inf"), True):
        with pytest.raises(ArgumentError, match="sensitivity"):
            type(mechanism).for_loss(F(1), sensitivity=sensitivity)
    with pytest.raises(ArgumentError, match="epsilon"):
        type(mechanism).for_loss(F(0), sensitivity=1)
    with pytest.raises(ArgumentError, match="kind"):
        NoisyMax(F(1), "gauss")


def test_extreme_utilities_draw():
    """Gaps beyond any double, and utilities beyond 64 bits, are drawn rightly."""
    for make in (Exponential, PermuteAndFlip):
        assert make(F(1)).draw([10**30, 0, -(10**30)]) == 0
        assert make(F(1)).draw(np.array([5, 2**62], dtype=np.int64)) == 1
