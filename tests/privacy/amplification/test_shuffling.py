"""Shuffling: the numeric bound against brute force over all counts, and the closed forms."""

import math
from itertools import combinations_with_replacement
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import shuffle, shuffle_clones_2021, shuffle_clones_2023
from dither.errors import ArgumentError
from dither.privacy.amplification._clones import blanket as blanket_of_doubles
from dither.privacy.amplification._clones import counted as list_of_counts
from dither.privacy.amplification._two_answers import TwoAnswers


def clones(n, epsilon_0, epsilon, *, digits=30):
    """The divergence of the counts of clones, summed over every outcome in 30 digits."""
    with mpmath.workdps(digits):
        p = mpmath.exp(epsilon_0)
        left, right = {}, {}
        for c in range(n):
            weight = comb(n - 1, c) * (2 / (p + 1)) ** c * (1 - 2 / (p + 1)) ** (n - 1 - c)
            for a in range(c + 1):
                mass = weight * comb(c, a) / mpmath.mpf(2) ** c / (p + 1)
                for key, x, y in (((a + 1, c - a), p, 1), ((a, c - a + 1), 1, p)):
                    left[key] = left.get(key, 0) + mass * x
                    right[key] = right.get(key, 0) + mass * y
        return sum(max(mpmath.mpf(0), left[o] - mpmath.exp(epsilon) * right[o]) for o in left)


def blanket(n, epsilon_0, k, h, epsilon, *, digits=30):
    """The divergence of a victim's answer among uniform ones, over all compositions."""
    with mpmath.workdps(digits):
        p = mpmath.exp(epsilon_0)
        d, e = k + p - 1, mpmath.exp(epsilon)
        total = mpmath.mpf(0)
        for m in range(n):
            weight = comb(n - 1, m) * (h / d) ** m * (1 - h / d) ** (n - 1 - m)
            for a in range(m + 2):
                for b in range(m + 2 - a):
                    c = m + 1 - a - b
                    if c and h == 2:
                        continue
                    ways = mpmath.factorial(m + 1) / (
                        mpmath.factorial(a) * mpmath.factorial(b) * mpmath.factorial(c)
                    )
                    mass = ways * (mpmath.mpf(1) / h) ** (a + b) * (1 - mpmath.mpf(2) / h) ** c
                    w = [h / (d * (m + 1)) * ((m + 1) + x * (p - 1)) for x in (a, b)]
                    total += weight * mass * max(mpmath.mpf(0), w[0] - e * w[1])
        return total


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 24), st.floats(0.1, 4.0), st.floats(0.0, 0.95))
def test_clones(n, epsilon_0, part):
    """For any randomiser, the reduction's divergence lies inside."""
    epsilon = part * epsilon_0
    truth = clones(n, epsilon_0, epsilon)
    low, high = shuffle(n, epsilon_0)._ends(epsilon)
    assert low <= truth <= high
    assert high - low <= 1e-6 * truth + 1e-15


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 14), st.floats(0.1, 4.0), st.integers(2, 9), st.floats(0, 0.95), st.data())
def test_blanket(n, epsilon_0, k, part, data):
    """For randomised response, plain or graded, the reduction's divergence lies inside."""
    h = data.draw(st.integers(2, k))
    if k == h == 2:
        # There the reports' own law is computed: see below.
        k = 3
    epsilon = part * epsilon_0
    truth = blanket(n, epsilon_0, k, h, epsilon)
    if h == k:
        truth = min(truth, clones(n, epsilon_0, epsilon))
    low, high = shuffle(n, epsilon_0, randomiser="grr", k=k, hidden=h)._ends(epsilon)
    assert low <= truth <= high
    assert high - low <= 1e-6 * truth + 1e-15


def histograms(rows):
    """The law of the histogram of independent reports, one row a report."""
    found = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        after = {}
        for key, mass in found.items():
            for y, p in enumerate(row):
                new = tuple(c + (i == y) for i, c in enumerate(key))
                after[new] = after.get(new, 0.0) + mass * p
        found = after
    return found


def rows_of(k, h, epsilon_0):
    """The matrix of randomised response among k answers of which h are high (all: plain)."""
    p = math.exp(epsilon_0)
    d = k + p - 1
    high = [[(p if x == y else 1) / d for y in range(k)] for x in range(h)]
    low = [
        [1 / d if y < h else (k - h + p - 1) / d * (x == y) for y in range(k)] for x in range(h, k)
    ]
    return high + low


@pytest.mark.parametrize(("k", "h"), [(2, 2), (3, 3), (4, 4), (4, 2), (5, 3)])
@pytest.mark.parametrize("epsilon_0", [0.5, 1.0, 3.0])
def test_every_database(k, h, epsilon_0):
    """The histogram itself, whatever the others hold, keeps the delta that is claimed."""
    rows = rows_of(k, h, epsilon_0)
    for n in (1, 2, 3, 4):
        law = shuffle(n, epsilon_0, randomiser="grr", k=k, hidden=h)
        claimed = {part: float(law.delta(part * epsilon_0)) for part in (0.0, 0.3, 0.6, 0.9)}
        for others in combinations_with_replacement(range(k), n - 1):
            left, right = (histograms([rows[v], *(rows[x] for x in others)]) for v in (0, 1))
            for part, delta in claimed.items():
                e = math.exp(part * epsilon_0)
                truth = sum(max(0.0, left[o] - e * right.get(o, 0.0)) for o in left)
                assert truth <= delta + 1e-12


def test_any_randomiser_of_few_reports():
    """Random extremal randomisers, all rows of each as others, keep the delta that is claimed."""
    rng = np.random.default_rng(11)
    tried = 0
    while tried < 400:
        epsilon_0, size, n = rng.choice([0.5, 1.0, 2.0]), rng.integers(2, 5), rng.integers(2, 5)
        pattern = np.where(rng.random((2, size)) < 0.5, 1.0, math.exp(epsilon_0))
        weights = np.linalg.lstsq(pattern, np.ones(2), rcond=None)[0]
        if weights.min() < 0 or np.abs(pattern @ weights - 1).max() > 1e-9:
            continue
        tried += 1
        rows = pattern * weights
        law = shuffle(int(n), float(epsilon_0))
        others = [rows[i] for i in rng.integers(2, size=n - 1)]
        left, right = histograms([rows[0], *others]), histograms([rows[1], *others])
        for part in (0.0, 0.4, 0.8):
            e = math.exp(part * epsilon_0)
            truth = sum(max(0.0, left[o] - e * right.get(o, 0.0)) for o in left)
            assert truth <= float(law.delta(part * epsilon_0)) + 1e-12


@pytest.mark.parametrize(
    ("options", "truth"), [({}, 0.0343), ({"randomiser": "grr", "k": 18}, 0.0299)]
)
def test_a_million_reports(options, truth):
    """Known values at n = 1e6, epsilon_0 = 4, delta = 1e-6."""
    bound = shuffle(1_000_000, 4.0, **options).epsilon(1e-6)
    assert bound == pytest.approx(truth, abs=6e-5)
    low, high = shuffle(1_000_000, 4.0, **options)._epsilon_ends(1e-6)
    assert high - low < (1e-3 if options else 1e-6) * bound


@settings(deadline=None, max_examples=10)
@given(st.integers(2_000, 10**6), st.floats(0.1, 3.0))
def test_closed_forms_are_above(n, epsilon_0):
    """Numbers are no larger than the closed forms, nor than epsilon_0; their delta is met."""
    law = shuffle(n, epsilon_0)
    epsilon = law.epsilon(1e-6)
    assert epsilon <= epsilon_0 * (1 + 1e-12)
    assert law.delta(float(epsilon)).upper <= 1e-6
    for form in (shuffle_clones_2021, shuffle_clones_2023):
        try:
            closed = form(n, epsilon_0, 1e-6)
        except ArgumentError:
            continue
        assert epsilon.lower <= closed


def test_ends():
    """One report hides nothing, and what no chance distinguishes costs nothing."""
    one = shuffle(1, 1.0)
    assert one.delta(0.0) == pytest.approx(math.tanh(0.5), rel=1e-6)
    assert one.delta(1.0) == pytest.approx(0.0, abs=1e-9)
    assert shuffle(10**6, 0.001).epsilon(0.1) == 0.0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: shuffle(0, 1.0), "n must"),
        (lambda: shuffle(10**18, 1.0), "n must be at most"),
        (lambda: shuffle(10, 0.0), "epsilon_0"),
        (lambda: shuffle(10, 1.0, randomiser="gr", k=2), "grr"),
        (lambda: shuffle(10, 1.0, randomiser="grr"), "k belongs"),
        (lambda: shuffle(10, 1.0, k=3), "k belongs"),
        (lambda: shuffle(10, 1.0, hidden=3), "hidden belongs"),
        (lambda: shuffle(10, 1.0, randomiser="grr", k=3, hidden=4), "hidden must be at most k"),
        (lambda: shuffle(10, 1.0).epsilon(0.0), "delta"),
        (lambda: shuffle_clones_2021(10, 4.0, 1e-6), "too large"),
        (lambda: shuffle_clones_2023(10, 4.0, 1e-6), "too large"),
    ],
)
def test_refusals(make, name):
    """Each refusal names the argument."""
    with pytest.raises(ArgumentError, match=name):
        make()


def counted(n, epsilon_0, epsilon):
    """The largest divergence of two answers' counts, over all inputs of the others, by listing."""
    with mpmath.workdps(30):
        a = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon_0)))
        best = mpmath.mpf(0)
        for others in combinations_with_replacement((a, 1 - a), n - 1):
            laws = []
            for victim in (a, 1 - a):
                law = [mpmath.mpf(1)]
                for chance in (*others, victim):
                    law = [
                        (law[i] if i < len(law) else 0) * (1 - chance)
                        + (law[i - 1] if i else 0) * chance
                        for i in range(len(law) + 1)
                    ]
                laws.append(law)
            for p, q in (laws, laws[::-1]):
                apart = [max(x - mpmath.exp(epsilon) * y, 0) for x, y in zip(p, q, strict=True)]
                best = max(best, sum(apart))
        return best


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 14), st.floats(0.05, 5.0), st.floats(0, 0.98))
def test_two_answers_are_exact(n, epsilon_0, part):
    """Of few reports with two answers both ends are told, and they hold the worst inputs' truth."""
    epsilon = part * epsilon_0
    truth = counted(n, epsilon_0, epsilon)
    found = shuffle(n, epsilon_0, randomiser="grr", k=2).delta(epsilon)
    assert found.lower <= truth <= found.upper
    assert found.width <= 1e-11
    assert not found.one_sided


@pytest.mark.parametrize("gap", [1e-12, 1e-8, 1e-5, 1e-3, 0.03])
@pytest.mark.parametrize("epsilon_0", [16.5, 36.1, 60.0, 99.0])
def test_large_epsilons_are_no_smaller_when_shuffled(epsilon_0, gap):
    """Where e^epsilon has more digits than a double, by brute force in eighty: no event is lost."""
    with mpmath.workdps(80):
        printed = [mpmath.mpf(repr(x)) for x in (epsilon_0, epsilon_0 * (1 - gap))]
    for n in (1, 2, 5):
        any_kind = shuffle(n, epsilon_0).delta(epsilon_0 * (1 - gap)).upper
        exact = clones(n, *printed, digits=80)
        assert exact <= any_kind <= exact * (1 + 1e-3) + 1e-10
        three = shuffle(n, epsilon_0, randomiser="grr", k=3).delta(epsilon_0 * (1 - gap)).upper
        exact = min(exact, blanket(n, printed[0], 3, 3, printed[1], digits=80))
        assert exact <= three <= exact * (1 + 1e-3) + 1e-10


@pytest.mark.parametrize("gap", [1e-12, 1e-8, 1e-3])
@pytest.mark.parametrize("epsilon_0", [1e-12, 1e-6, 60.0, 99.0])
def test_two_answers_at_the_ends_of_their_range(epsilon_0, gap):
    """Next to epsilon_0 what p and e^epsilon were rounded by is a large part of delta."""
    epsilon = epsilon_0 * (1 - gap)
    with mpmath.workdps(80):
        p, e = (mpmath.exp(mpmath.mpf(repr(x))) for x in (epsilon_0, epsilon))
        for n in (1, 2, 4):
            exact = 0
            for j in range(n):
                law = [mpmath.mpf(1)]
                for a in [p / (p + 1)] * j + [1 / (p + 1)] * (n - 1 - j):
                    pairs = zip([*law, 0], [0, *law], strict=True)
                    law = [(1 - a) * x + a * y for x, y in pairs]
                # One more coin, on either side of the others.
                first = [(x + p * y) / (p + 1) for x, y in zip([*law, 0], [0, *law], strict=True)]
                second = [(p * x + y) / (p + 1) for x, y in zip([*law, 0], [0, *law], strict=True)]
                rows = zip(first, second, strict=True)
                exact = max(exact, sum(max(x - e * y, 0) for x, y in rows))
            found = shuffle(n, epsilon_0, randomiser="grr", k=2).delta(epsilon)
            assert found.lower <= exact <= found.upper
            assert epsilon_0 != 1e-6 or gap < 1e-3 or found.upper <= exact * (1 + 1e-3)


def test_the_worst_inputs_are_not_alike():
    """Others who all hold one answer are not the worst: from them alone a bound is too low."""
    with mpmath.workdps(30):
        a = 1 / (1 + mpmath.exp(-mpmath.mpf("2.6")))
        binomial = [mpmath.binomial(2, i) * a**i * (1 - a) ** (2 - i) for i in range(3)]
        p = [x * (1 - a) for x in [*binomial, 0]], [x * a for x in [0, *binomial]]
        first = [x + y for x, y in zip(*p, strict=True)]
        q = [x * a for x in [*binomial, 0]], [x * (1 - a) for x in [0, *binomial]]
        second = [x + y for x, y in zip(*q, strict=True)]
        e = mpmath.exp(mpmath.mpf("0.02"))
        alike = max(
            sum(max(x - e * y, 0) for x, y in zip(*pair, strict=True))
            for pair in ((first, second), (second, first))
        )
    found = shuffle(3, 2.6, randomiser="grr", k=2).delta(0.02)
    assert found.lower > alike * (1 + mpmath.mpf(10) ** -4)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 12), st.floats(0.05, 5.0), st.floats(0, 0.98))
def test_the_search_among_inputs_finds_the_worst(n, epsilon_0, part):
    """Of few reports it is what a list of all inputs says."""
    epsilon = part * epsilon_0
    truth = counted(n, epsilon_0, epsilon)
    low, high = TwoAnswers(n, math.exp(epsilon_0), float(truth)).ends(epsilon)
    assert low <= truth <= high
    assert high - low <= 1e-8 * truth + 1e-13


@pytest.mark.parametrize(("n", "epsilon_0"), [(40, 3.0), (700, 0.4), (1100, 1.5)])
def test_the_search_among_many_inputs(n, epsilon_0):
    """Against the laws of the counts of ones, for every number of others who hold one."""
    p = math.exp(epsilon_0)
    for part in (0.0, 0.02, 0.1, 0.3):
        low, high = list_of_counts(n, p, part * epsilon_0)
        if low > 0:
            found = TwoAnswers(n, p, low).ends(part * epsilon_0)
            assert found[0] <= high
            assert low <= found[1]
            # At 0 nearly all inputs are alike, and not all are told apart.
            assert found[1] - found[0] <= (1e-8 if part else 1e-3) * high


def test_a_block_of_inputs_is_bounded_by_fewer_others(monkeypatch):
    """Were all others counted for every block, the first ones would hide the worst inputs."""
    n, p, epsilon = 300, math.exp(1.0), 0.2
    truth = list_of_counts(n, p, epsilon)[0]
    whole = TwoAnswers._delta

    def all_ones(self, ones, zeros, at):
        return whole(self, n - 1 - zeros, zeros, at) if ones + zeros < n - 1 else (0.0, 0.0)

    monkeypatch.setattr(TwoAnswers, "_delta", all_ones)
    assert TwoAnswers(n, p, truth).ends(epsilon)[1] < truth


def test_few_blocks_are_still_an_upper_bound():
    """Where the search ends early both ends hold."""
    n, p = 3000, math.exp(1.0)
    for epsilon in (0.02, 0.07):
        found = TwoAnswers(n, p, 1e-6).ends(epsilon)
        early = TwoAnswers(n, p, 1e-6, most=20).ends(epsilon)
        assert early[0] <= found[1]
        assert found[0] <= early[1] <= 10 * found[1]


@pytest.mark.parametrize("n", [1001, 20_000])
def test_two_answers_have_both_ends(n):
    """Beyond the list, too; and delta there is the one that was asked for."""
    one = shuffle(n, 1.0, randomiser="grr", k=2)
    found = one.epsilon(1e-6)
    assert not found.one_sided
    assert found.width <= 1e-9 * found.upper
    assert one.delta(found.lower).upper >= 1e-6 >= one.delta(found.upper).lower
    assert one.delta(float(found)).width <= 1e-7 * 1e-6
    assert one.loss().epsilon(1e-6) <= 1.1 * found


def test_two_answers_are_tighter_than_the_blanket():
    """The counts say less than the blanket, where all are listed and where they are searched."""
    for n in (1000, 1001):
        found = shuffle(n, 1.0, randomiser="grr", k=2).epsilon(1e-6)
        assert found.width <= 1e-8
        low, high = blanket_of_doubles(n, math.exp(1.0), float(found), 1e-6, (2, 2), 12)
        assert 1e-6 < low <= high
