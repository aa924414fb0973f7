"""Samples of small tables, and several mechanisms on one: held against every outcome."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError

SCALE = 1.0
SUPPORT = range(-60, 70)


def noisy(total):
    """Discrete Laplace noise around a count, as masses on the support."""
    r = math.exp(-1 / SCALE)
    return [(1 - r) / (1 + r) * r ** abs(x - total) for x in SUPPORT]


def mixed(laws):
    """The law of a mechanism that draws one of weighted laws."""
    return [math.fsum(w * law[i] for w, law in laws) for i in range(len(SUPPORT))]


def on_fixed_sample(table, m):
    """The count of ones in m rows drawn without replacement, with noise."""
    draws = list(itertools.combinations(table, m))
    return mixed([(1 / len(draws), noisy(sum(draw))) for draw in draws])


def on_poisson_sample(table, rate):
    """The count of ones among rows kept independently, with noise."""
    laws = []
    for kept in itertools.product((0, 1), repeat=len(table)):
        chance = math.prod(rate if k else 1 - rate for k in kept)
        laws.append((chance, noisy(sum(x for x, k in zip(table, kept, strict=True) if k))))
    return mixed(laws)


def divergence(p, q, epsilon):
    """The hockey-stick divergence."""
    e = math.exp(epsilon)
    return math.fsum(max(0.0, a - e * b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 1), (4, 2), (5, 3), (4, 4)])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.7])
def test_fixed_size_samples(n, m, epsilon):
    """Every table and every replaced row; the claim is reached by some pair, to within 1e-9."""
    loss = privacy.discrete_laplace(SCALE, neighbours="replace").without_replacement(m, n)
    claimed = loss.delta(epsilon)
    worst = 0.0
    for table in itertools.product((0, 1), repeat=n):
        other = (1 - table[0], *table[1:])
        worst = max(
            worst, divergence(on_fixed_sample(table, m), on_fixed_sample(other, m), epsilon)
        )
    assert worst <= claimed.upper + 1e-15
    assert worst >= claimed.lower - 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3])
def test_poisson_samples(rate, epsilon):
    """Every table of three rows and every row left out, both directions."""
    claimed = privacy.discrete_laplace(SCALE).poisson(rate).delta(epsilon)
    worst = 0.0
    for table in itertools.product((0, 1), repeat=3):
        p, q = on_poisson_sample(table, rate), on_poisson_sample(table[1:], rate)
        worst = max(worst, divergence(p, q, epsilon), divergence(q, p, epsilon))
    assert worst <= claimed.upper + 1e-15
    assert worst >= claimed.lower - 1e-9


@pytest.mark.parametrize("truncate", [1, 2])
def test_truncated_poisson_samples(truncate):
    """A sample above its size is cut to a uniform subset; the charge for it covers the truth."""
    rate, n, epsilon = 0.2, 4, 0.2

    def law(table):
        laws = []
        for kept in itertools.product((0, 1), repeat=len(table)):
            chance = math.prod(rate if k else 1 - rate for k in kept)
            rows = [x for x, k in zip(table, kept, strict=True) if k]
            draws = list(itertools.combinations(rows, min(truncate, len(rows))))
            laws += [(chance / len(draws), noisy(sum(draw))) for draw in draws]
        return mixed(laws)

    loss = privacy.discrete_laplace(SCALE).poisson(rate, truncate=truncate, population=n)
    claimed = loss.delta(epsilon)
    for table in itertools.product((0, 1), repeat=n):
        p, q = law(table), law(table[1:])
        assert max(divergence(p, q, epsilon), divergence(q, p, epsilon)) <= claimed.upper


MASSES = st.lists(st.integers(1, 30), min_size=3, max_size=3)


def normed(masses):
    """Fractions that sum to 1."""
    return [Fraction(x, sum(masses)) for x in masses]


@settings(deadline=None, max_examples=60)
@given(MASSES, MASSES, MASSES, MASSES, st.floats(0.01, 0.9), st.floats(0.0, 0.5))
def test_product_pairs(a, b, c, d, rate, epsilon):
    """Two pairs on one sample, both directions; two samples would be another number."""
    left, right = (normed(a), normed(b)), (normed(c), normed(d))
    g, truth = Fraction(rate), 0.0
    p = [x * y for x, y in itertools.product(left[0], right[0])]
    q = [x * y for x, y in itertools.product(left[1], right[1])]
    mixed = [(1 - g) * y + g * x for x, y in zip(p, q, strict=True)]
    for one, two in ((mixed, q), (q, mixed)):
        gaps = [float(x) - math.exp(epsilon) * float(y) for x, y in zip(one, two, strict=True)]
        truth = max(truth, math.fsum(max(0.0, gap) for gap in gaps))
    pairs = [privacy.pair([float(x) for x in u], [float(x) for x in v]) for u, v in (left, right)]
    bound = (pairs[0] + pairs[1]).poisson(rate).delta(epsilon)
    assert bound.lower <= truth + 1e-14
    assert truth <= bound.upper + 1e-14
    assert bound.upper - bound.lower <= 1e-6 * truth + 1e-13


def test_repeated_and_mixed():
    """Pure, failing and discrete mechanisms together; fixed-size samples too."""
    inner = 3 * privacy.pure(0.2) + privacy.approximate(0.1, 1e-8) + privacy.discrete_laplace(3.0)
    total = 100 * inner.poisson(0.05)
    apart = 100 * (3 * privacy.pure(0.2).poisson(0.05))
    assert total.epsilon(1e-6) > apart.epsilon(1e-6)
    same = [privacy.pure(0.3, neighbours="replace") for _ in range(2)]
    fixed = (same[0] + same[1]).without_replacement(5, 100)
    assert fixed.delta(0.0) <= 0.05 * (same[0] + same[1]).delta(0.0) * (1 + 1e-9)


def test_unknown_pairs_are_refused():
    """A class of mechanisms that is known by moments alone has no known product pair."""
    for loss in (
        privacy.zcdp(0.1) + privacy.gaussian(1.0),
        privacy.zcdp(0.1) + privacy.pure(0.1),
        2 * privacy.renyi({2.0: 0.1}),
    ):
        with pytest.raises(ArgumentError, match="finitely many outcomes"):
            loss.poisson(0.1)
