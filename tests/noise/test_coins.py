"""Coins, uniform integers, choices and orders: exact laws, counted or computed, not sampled."""

from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import iv
from scipy import stats

from dither.errors import ArgumentError
from dither.noise import below, bernoulli, bernoulli_exp, choose, permutation
from dither.numeric import SimulatedWords


class Path(SimulatedWords):
    """Lets the first `successes` draws of `below` be 0 and the next its largest value."""

    def __init__(self, successes: int) -> None:
        super().__init__(0)
        self.successes, self.ranges = successes, []

    def below(self, n):
        self.ranges.append(n)
        return 0 if len(self.ranges) <= self.successes else n - 1


def law_of_bernoulli_exp(gamma: Fraction) -> Fraction:
    """The probability of heads, for 0 < gamma < 1, up to paths of probability gamma**60/60!."""
    heads = Fraction(0)
    for successes in range(60):
        path = Path(successes)
        outcome = bernoulli_exp(gamma, words=path)
        assert len(path.ranges) == successes + 1
        chances = [Fraction(gamma.numerator, n) for n in path.ranges]
        assert all(0 < p < 1 for p in chances)
        probability = 1 - chances[-1]
        for p in chances[:-1]:
            probability *= p
        heads += outcome * probability
    return heads


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(999, 1000)))
@settings(deadline=None)
def test_bernoulli_exp_has_its_probability(gamma):
    """Summed over its paths, heads come with probability exp(−gamma), to 2**-200."""
    before, iv.prec = iv.prec, 300
    try:
        ideal = iv.exp(-iv.mpf(gamma.numerator) / gamma.denominator)
        heads = law_of_bernoulli_exp(gamma)
        drawn = iv.mpf(heads.numerator) / heads.denominator
        with mpmath.workprec(300):
            assert abs(drawn - ideal).b < mpmath.mpf(2) ** -200
    finally:
        iv.prec = before


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(5, 2), Fraction(3)])
def test_bernoulli_exp_beyond_one(gamma):
    """Thirty thousand coins fit exp(−gamma) (simulated; false alarm 1e-7)."""
    words = SimulatedWords(2)
    heads = sum(bernoulli_exp(gamma, words=words) for _ in range(30_000))
    assert stats.binomtest(heads, 30_000, float(np.exp(-float(gamma)))).pvalue > 1e-7


def test_bernoulli_exp_of_zero_and_of_much():
    """exp(0) is always heads; exp(−10**9) ends at once."""
    assert all(bernoulli_exp(Fraction(0)) for _ in range(100))
    assert not bernoulli_exp(Fraction(10**9))


@given(st.fractions(min_value=0, max_value=1))
@settings(deadline=None)
def test_bernoulli_compares_exactly(p):
    """Words below the threshold are heads, above tails, and on it the rest of p decides."""
    threshold, rest = divmod(p * 2**64, 1)
    u = [w for w in (0, threshold - 1, threshold, threshold + 1, 2**64 - 1) if 0 <= w < 2**64]

    class Source(SimulatedWords):
        asked = 0

        def words(self, n):
            return np.array(u[:n], dtype=np.uint64)

        def below(self, n):
            self.asked = n
            return rest.numerator - 1

    source = Source(0)
    coins = bernoulli(p, len(u), words=source)
    assert coins.tolist() == [w < threshold or (w == threshold and rest > 0) for w in u]
    assert source.asked == (rest.denominator if rest else 0)


def test_bernoulli_fits():
    """Ten million coins of one third fit (simulated; false alarm 1e-7), and not 0.334."""
    heads = int(bernoulli(Fraction(1, 3), 10_000_000, words=SimulatedWords(3)).sum())
    assert stats.binomtest(heads, 10_000_000, 1 / 3).pvalue > 1e-7
    assert stats.binomtest(heads, 10_000_000, 0.3343).pvalue < 1e-7


@pytest.mark.parametrize("n", [2, 3, 6, 100, 255, 256])
def test_below_is_uniform_over_its_words(n, scripted):
    """Over all values of its bits, each integer below n comes equally often."""
    lanes = np.arange(256, dtype=np.uint8).view(np.uint64).tolist()
    words = scripted(*lanes, *[0] * 64)
    drawn = below(n, 256, words=words)
    per = 256 >> (n - 1).bit_length()
    first = [v for v in np.arange(256) & ((1 << (n - 1).bit_length()) - 1) if v < n]
    assert np.bincount(first, minlength=n).tolist() == [per] * n
    # Places whose first bits were refused were filled from the zeros that follow.
    assert np.bincount(drawn, minlength=n).tolist() == [per + 256 - per * n, *[per] * (n - 1)]


@pytest.mark.parametrize("n", [1, 7, 255, 257, 65_537, 2**32 + 1, 2**62 + 1, 2**63])
def test_below_stays_below(n):
    """Every width of integer is served, up to the whole of 63 bits."""
    drawn = below(n, 3000)
    assert drawn.dtype == np.int64
    assert 0 <= drawn.min() <= drawn.max() < n
    assert n == 1 or drawn.max() > n // 2


def test_below_fits():
    """Ten million dice fit (simulated; false alarm 1e-7), and a loaded one does not."""
    counts = np.bincount(below(6, 10_000_000, words=SimulatedWords(4)))
    assert stats.chisquare(counts).pvalue > 1e-7
    counts[0] -= 20_000
    counts[5] += 20_000
    assert stats.chisquare(counts).pvalue < 1e-7


def test_choose_fits():
    """Ten million choices fit their weights (simulated; false alarm 1e-7)."""
    weights = [1, 0, 2, 3, 10**30, 10**30]
    small = [5, 0, 1, 2**40, 2**41]
    for w in (weights, small):
        counts = np.bincount(choose(w, 10_000_000, words=SimulatedWords(5)), minlength=len(w))
        share = np.array([float(Fraction(x, sum(w))) for x in w])
        large = share > 1e-5
        assert counts[~large].sum() < 100
        expected = share[large] / share[large].sum() * counts[large].sum()
        assert stats.chisquare(counts[large], expected).pvalue > 1e-7


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_permutation_is_one(n):
    """The result holds each of 0..n−1 once."""
    assert np.array_equal(np.sort(permutation(n)), np.arange(n))


def test_permutations_come_equally_often():
    """All 24 orders of four fit a uniform law over 50,000 draws (simulated; false alarm 1e-7)."""
    words, orders = SimulatedWords(6), dict.fromkeys(permutations(range(4)), 0)
    for _ in range(50_000):
        orders[tuple(permutation(4, words=words).tolist())] += 1
    assert stats.chisquare(list(orders.values())).pvalue > 1e-7


def test_a_tie_draws_all_words_again(scripted):
    """Equal keys would favour an order: all keys are drawn again."""
    assert permutation(3, words=scripted(5, 5, 1, 9, 7, 8)).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: bernoulli(Fraction(3, 2), 1), "p"),
        (lambda: bernoulli(True, 1), "p"),
        (lambda: bernoulli(Fraction(1, 2), -1), "size"),
        (lambda: bernoulli_exp(Fraction(-1)), "gamma"),
        (lambda: bernoulli_exp(float("nan")), "gamma"),
        (lambda: below(0, 1), "n"),
        (lambda: below(2**63 + 1, 1), "n"),
        (lambda: below(2.0, 1), "n"),
        (lambda: choose([1.5, 2], 1), "weights"),
        (lambda: choose([1, -2], 1), "weights"),
        (lambda: choose([], 1), "weights"),
        (lambda: permutation(-1), "n"),
    ],
)
def test_arguments(call, name):
    """What is out of range is refused by its name."""
    with pytest.raises(ArgumentError, match=rf"^{name} must be"):
        call()
