"""Several mechanisms on one sample: the product pair is mixed, held against every outcome."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError

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
