"""Where a unit is replaced each mechanism is met in either direction: against all 2^k of them."""

import itertools
import math
import random
from fractions import Fraction as F

import numpy as np
import pytest

from dither import privacy
from dither.accounting import RenyiFilter, calibrate
from dither.errors import ArgumentError
from dither.privacy import Loss, Neighbours
from dither.privacy.laws.either import EitherPair, listed
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.sampled.mechanism import Poisson

ABOVE = 1 + F(1, 2**50)
"""What e^epsilon in doubles may be off by."""

NAMED = [
    ([F(870, 1000), F(116, 1000), F(14, 1000)], [F(499, 1000), F(499, 1000), F(2, 1000)]),
    ([F(1, 2), F(1, 2), F(0)], [F(1, 100), F(98, 100), F(1, 100)]),
]


def law(rng: random.Random, n: int = 3) -> list[F]:
    """A law of n points, some of which it may never give."""
    weights = [rng.choice([0, 1, 2, 5, 20, 100]) for _ in range(n)]
    weights[rng.randrange(n)] += 1
    return [F(w, sum(weights)) for w in weights]


def product(laws):
    """Independent draws."""
    found = [F(1)]
    for one in laws:
        found = [a * b for a in found for b in one]
    return found


def divergence(p, q, epsilon):
    """At most Σ (p - e^epsilon·q)+."""
    a = F(math.exp(epsilon)) * ABOVE
    return sum(max(F(0), x - a * y) for x, y in zip(p, q, strict=True))


def worst(choices, epsilon):
    """The largest divergence of products of one pair out of each list."""
    return max(
        divergence(product(p for p, _ in taken), product(q for _, q in taken), epsilon)
        for taken in itertools.product(*choices)
    )


def replaced(p, q) -> Loss:
    """The loss of a pair where a unit is replaced."""
    return privacy.pair([float(x) for x in p], [float(x) for x in q], neighbours="replace")


def both(p, q):
    """The pair and the swapped one."""
    return [(p, q), (q, p)]


def adaptive(pairs, epsilon):
    """The largest divergence of whoever picks each direction by what came out before."""

    def best(p: F, q: F, rest) -> F:
        if not rest:
            return max(F(0), p - F(math.exp(epsilon)) * ABOVE * q)
        return max(
            sum(best(p * a, q * b, rest[1:]) for a, b in zip(x, y, strict=True))
            for x, y in both(*rest[0])
        )

    return best(F(1), F(1), pairs)


@pytest.mark.parametrize("seed", range(30))
def test_all_directions_of_pairs_by_enumeration(seed):
    """Upper ends hold all 2^k products and choices made on the way; lower ends exceed neither."""
    rng = random.Random(seed)
    k = 1 + seed % 3
    pairs = [(law(rng), law(rng)) for _ in range(k)]
    if seed < len(NAMED):
        pairs = [NAMED[seed]] * 2
    epsilon = rng.choice([0.0, 0.1, 0.5, 1.0, 2.0, 3.0])
    found = privacy.compose(*(replaced(p, q) for p, q in pairs)).delta(epsilon)
    truth = worst([both(p, q) for p, q in pairs], epsilon)
    assert truth <= adaptive(pairs, epsilon) <= F(found.upper)
    assert F(found.lower) <= truth * (1 + F(1, 10**9)) + F(1, 10**13)
    if len(pairs) == 1:
        assert found.upper - found.lower < 1e-10


def test_three_of_epsilon_three():
    """The pair whose upper end was a sixteenth of the truth."""
    pairs = [NAMED[0]] * 2
    found = (2 * replaced(*NAMED[0])).delta(3.0)
    assert float(worst([both(*pair) for pair in pairs], 3.0)) <= found.upper < 0.0046
    assert (2 * replaced(*NAMED[0])).epsilon(0.001) > 3.2


@pytest.mark.parametrize("seed", range(16))
def test_all_directions_of_samples_by_enumeration(seed):
    """One of n without replacement: what is there in the unit's place may be either one as well."""
    rng = random.Random(100 + seed)
    sample, population = rng.choice([(1, 2), (1, 10), (9, 10)])
    g = F(sample, population)

    def mixed(a, b):
        return [(1 - g) * x + g * y for x, y in zip(a, b, strict=True)]

    choices, losses = [], []
    for _ in range(1 + seed % 2):
        parts = [(law(rng), law(rng)) for _ in range(rng.choice([1, 1, 2]))]
        whole = privacy.compose(*(replaced(p, q) for p, q in parts))
        losses.append(whole.without_replacement(sample, population))
        found = []
        for taken in itertools.product(*(both(p, q) for p, q in parts)):
            p, q = product(a for a, _ in taken), product(b for _, b in taken)
            found += [(mixed(other, p), mixed(other, q)) for other in (p, q)]
        choices.append(found)
    epsilon = rng.choice([0.0, 0.1, 0.5, 1.0, 2.0])
    truth = worst(choices, epsilon)
    found = privacy.compose(*losses).delta(epsilon)
    assert truth <= F(found.upper)
    assert F(found.lower) <= truth * (1 + F(1, 10**9)) + F(1, 10**13)


def test_losses_that_a_sample_brings_to_zero_are_not_lost():
    """A difference of 1e-5 among 10^11 units: 1e-16 of one run, and 1.2 times that of two."""
    p, q = [F(6, 10), F(4, 10)], [F(59999, 100_000), F(40001, 100_000)]
    one = replaced(p, q).without_replacement(1, 10**11)
    assert 1e-16 <= one.delta(0.0).upper < 1.1e-16
    assert (2 * one).delta(0.0).upper >= 1.2e-16
    third = privacy.pair([1 / 3] * 3, [0, 0, 1.0], neighbours="replace").without_replacement(1, 2)
    assert (2 * third).delta(0.0).upper >= 5 / 9


@pytest.mark.parametrize("seed", range(8))
def test_the_pair_of_both_directions_has_the_larger_profile(seed):
    """At knots, between them, and below 1, exactly."""
    rng = random.Random(200 + seed)
    p, q = law(rng, 5), law(rng, 5)
    atoms, rest = listed(p, q)
    for a in [
        F(1, 20),
        F(1, 3),
        F(1),
        F(3),
        F(40),
        *(x / y for x, y in zip(p, q, strict=True) if y),
    ]:
        truth = max(
            sum(max(F(0), x - a * y) for x, y in zip(*way, strict=True)) for way in both(p, q)
        )
        assert rest + sum(max(F(0), m - a * n) for _, m, n in atoms) == truth
    assert sum(m for _, m, _ in atoms) + rest == 1


def test_a_loss_that_is_made_by_hand_is_met_in_either_direction():
    """A sample said to be stated for units replaced: the worse direction of each run."""
    (part, _), g = privacy.randomized_response(1.0).parts[0], 0.2
    made = Loss(((Poisson(part, g), 2),), Neighbours.REPLACE)
    yes = math.e / (1 + math.e)
    q = [F(yes), 1 - F(yes)]
    p = [(1 - F(g)) * a + F(g) * b for a, b in zip(q, q[::-1], strict=True)]
    for epsilon in (0.0, 0.1, 0.2):
        truth = worst([both(p, q)] * 2, epsilon)
        assert truth * (1 - F(1, 10**9)) <= F(made.delta(epsilon).upper) <= truth * F(13, 10)
    with pytest.raises(ArgumentError, match="to_replace"):
        Loss(((Poisson(privacy.gaussian(1.0).parts[0][0], g), 2),), Neighbours.REPLACE).group(2)


def test_other_pairs_are_laid_on_a_lattice():
    """A sampled Gaussian in both directions: above the larger profile, and near it."""
    found = EitherPair(Poisson(privacy.gaussian(1.0).parts[0][0], 0.2)).term(True, 1)
    z = np.linspace(-12, 13, 400_001)
    q = np.exp(-z * z / 2)
    p = (0.8 * q + 0.2 * np.exp(-((z - 1) ** 2) / 2)) / q.sum()
    q /= q.sum()
    for a in (0.3, 0.85, 1.0, 1.1, 1.5, 4.0):
        truth = max(float(np.maximum(x - a * y, 0).sum()) for x, y in ((p, q), (q, p)))
        rest = found.probabilities * np.maximum(1 - a * np.exp(-found.losses), 0)
        mine = found.infinite + float(rest.sum())
        assert truth * (1 - 1e-7) <= mine <= truth + 1e-5


def test_whatever_reads_a_loss_reads_both_directions():
    """Rényi filters, calibration, charges, trade-offs and rho of two unlike pairs."""
    p, q = NAMED[0]
    one, turned = replaced(p, q), replaced(q, p)
    aligned = privacy.pair([float(x) for x in p], [float(x) for x in q])
    most = max(2 * aligned.renyi(4.0).lower, 0)
    for loss in (2 * one, one + turned):
        assert loss.renyi(4.0).upper >= most
        assert loss.mean() == pytest.approx(2 * aligned.mean())
        assert loss.zcdp().upper >= 2 * aligned.zcdp().lower
        assert loss.gdp().upper >= aligned.gdp().lower
        assert loss.charge == (2 * one).charge
        assert loss.epsilon(0.0) == pytest.approx((2 * aligned).epsilon(0.0))
        for order in (2, 8):
            account = RenyiFilter(100, order=order).charge(loss)
            assert account.spent >= F(2 * aligned.renyi(float(order)).lower)
        tpr = loss.tpr(0.05).upper
        for way in itertools.product(both(p, q), repeat=2):
            under = product(a for a, _ in way), product(b for _, b in way)
            points = sorted(zip(*under, strict=True), key=lambda r: r[1] * 10**9 - r[0] * 10**9)
            points.sort(key=lambda r: (r[1] / r[0]) if r[0] else F(10**9))
            level = power = F(0)
            for a, b in points:
                if level + b > F(1, 20):
                    power += a * (F(1, 20) - level) / b
                    break
                level, power = level + b, power + a
            assert float(power) <= tpr
    # The least epsilon of a response beside it that keeps a promise.
    rest = 2 * one
    found = calibrate(
        lambda e: rest + privacy.randomized_response(e, neighbours="replace"),
        epsilon=5.0,
        delta=0.01,
    )
    kept = rest + privacy.randomized_response(float(found), neighbours="replace")
    assert kept.delta(5.0) <= 0.01
    e = math.exp(float(found))
    response = [F(e / (1 + e)), 1 - F(e / (1 + e))]
    assert worst([both(p, q), both(p, q), [(response, response[::-1])]], 5.0) <= F(1, 100)


def test_where_units_are_added_or_removed_the_direction_is_one():
    """All mechanisms run with the unit, or all without it: no table is of both directions."""
    p, q = NAMED[0]
    found = (2 * privacy.pair([float(x) for x in p], [float(x) for x in q])).delta(3.0)
    truth = max(divergence(product([a, a]), product([b, b]), 3.0) for a, b in both(p, q))
    assert found.lower <= float(truth) * (1 + 1e-9)
    assert truth <= F(found.upper)
    assert found.upper - found.lower < 1e-10
    assert isinstance(EitherPair(PmfPair((0.5, 0.5), (0.4, 0.6))).term(True, 1).infinite, float)
