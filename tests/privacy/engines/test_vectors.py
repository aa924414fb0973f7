"""Discrete Gaussian noise on vectors: held against every vector of small norm, counted exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dither import privacy
from dither.mechanisms import DiscreteGaussian
from dither.privacy.engines.vectors import _waves, reached


def weights(sigma2, by):
    """Masses of by·x for x of discrete Gaussian noise, at all integers around 0."""
    half = math.ceil(math.sqrt(2 * sigma2 * 120))
    x = np.arange(-half, half + 1)
    mass = np.zeros(2 * half * by + 1)
    mass[by * (x + half)] = np.exp(-x * x / (2 * sigma2))
    return mass / math.fsum(mass)


def losses(sigma2, vector):
    """Masses, and the losses that they are of, of one vector."""
    law = np.ones(1)
    for by in vector:
        law = np.convolve(law, weights(sigma2, by))
    w = np.arange(len(law)) - len(law) // 2
    return law, (sum(x * x for x in vector) - 2 * w) / (2 * sigma2)


def truth(sigma2, vector, epsilon):
    """delta of one vector, as the law of the loss has it."""
    law, loss = losses(sigma2, vector)
    above = loss > epsilon
    return math.fsum((law[above] * -np.expm1(epsilon - loss[above])).tolist())


def vectors(square, entries):
    """All changes of a square sum of at most this, signs and order apart."""
    rows = itertools.combinations_with_replacement(range(math.isqrt(square) + 1), entries)
    return [row for row in rows if 0 < sum(x * x for x in row) <= square]


@pytest.mark.parametrize(
    ("sigma2", "square", "entries", "tight"),
    [
        (100, 4, 4, 1e-9),
        (100, 9, 3, 1e-9),
        (100, 25, 2, 1e-9),
        (20, 6, 6, 1e-9),
        (5, 2, 2, 1e-6),
        (5, 30, 3, 1.0),
        (2, 9, 3, 1.0),
    ],
)
def test_the_worst_vector_is_inside(sigma2, square, entries, tight):
    """Both ends, and on a fine scale nothing between them: so the lattice's waves are the truth."""
    loss = DiscreteGaussian(Fraction(sigma2)).loss(l2_squared=square, coordinates=entries)
    mu = math.sqrt(square / sigma2)
    for z in (0.3, 1.7, 3.1, 4.9):
        epsilon = mu * z + mu * mu / 2
        found = loss.delta(epsilon)
        worst = max(truth(sigma2, vector, epsilon) for vector in vectors(square, entries))
        assert found.lower * (1 - 1e-10) <= worst <= found.upper * (1 + 1e-10)
        assert found.upper <= found.lower * (1 + tight) or tight == 1.0


def test_several_releases_are_one_of_a_longer_vector():
    """Three releases of two ones each."""
    loss = 3 * DiscreteGaussian(Fraction(30)).loss(l2_squared=2, coordinates=2)
    for epsilon in (0.4, 1.1, 2.0):
        found, exact = loss.delta(epsilon), truth(30, (1,) * 6, epsilon)
        assert found.lower * (1 - 1e-10) <= exact <= found.upper * (1 + 1e-10)
        assert found.upper <= found.lower * (1 + 1e-9)


@pytest.mark.parametrize(("sigma2", "apart"), [(4, 3.7), (12, 1.4)])
def test_a_second_vector_may_be_chosen_after_the_first_answer(sigma2, apart):
    """(2) or four ones, whichever is worse for what is left: worse than any vector fixed before."""
    loss = 2 * DiscreteGaussian(Fraction(sigma2)).loss(l2_squared=4, coordinates=4)
    laws = [losses(sigma2, vector) for vector in ((2,), (1, 1, 1, 1))]

    def left(epsilons):
        gaps = [(law, np.minimum(epsilons[:, None] - loss, 0)) for law, loss in laws]
        return [-np.expm1(gap) @ law for law, gap in gaps]

    for z in (1.0, 2.5, 4.0):
        epsilon = math.sqrt(8 / sigma2) * z + 4 / sigma2
        each = [(law, left(epsilon - loss)) for law, loss in laws]
        fixed = max(float(law @ one) for law, found in each for one in found)
        chosen = max(float(law @ np.maximum(*found)) for law, found in each)
        found = loss.delta(epsilon)
        assert found.lower <= fixed <= chosen <= found.upper <= apart * chosen


@pytest.mark.parametrize(
    ("sigma2", "square"), [(100, 1), (100, 7), (100, 49), (10**4, 25), (10**6, 3 * 10**4)]
)
def test_epsilon_is_known_to_a_millionth(sigma2, square):
    """From ten steps of the lattice on; continuous noise is off by what the lattice itself is."""
    loss = DiscreteGaussian(Fraction(sigma2)).loss(l2_squared=square)
    found = loss.epsilon(1e-6)
    assert found.upper - found.lower <= 1e-6 * found.upper
    continuous = privacy.gaussian(math.sqrt(sigma2 / square)).epsilon(1e-6)
    assert abs(found / continuous - 1) <= 0.05 / sigma2


def test_the_bump_of_one_entry_covers_what_the_lattice_adds():
    """delta of one number differs from continuous noise's by less, but by more than a third."""
    sigma, nearest = 4.0, 0.0
    mu = 1 / sigma
    for epsilon in np.linspace(0.2, 1.2, 41).tolist():
        c = epsilon / mu**2 - 0.5
        bound = math.exp(c * (c + 1) * mu**2 / 2 - c * epsilon + _waves(sigma, 1, 1, c))
        apart = truth(16, (1,), epsilon) - privacy.gaussian(sigma).delta(epsilon)
        assert abs(apart) <= bound
        nearest = max(nearest, abs(apart) / bound)
    assert nearest > 1 / 3


def test_vectors_of_few_entries():
    """By search, against a count of all."""
    for square, entries in itertools.product(range(1, 40), range(1, 5)):
        rows = [row for row in vectors(square, entries) if sum(x * x for x in row) == square]
        assert reached(square, entries) == any(math.gcd(*row) == 1 for row in rows)


@pytest.mark.parametrize(
    ("square", "entries", "epsilon"), [(100, None, 1), (4, 4, 3), (2, 2, 1), (500, None, 1)]
)
def test_calibration_is_as_tight_as_the_loss(square, entries, epsilon):
    """The least noise for a promise has the delta that was promised, by its own lower end."""
    delta = Fraction(1, 10**6)
    made = DiscreteGaussian.for_epsilon(epsilon, delta, l2_squared=square, coordinates=entries)
    assert made.delta(epsilon, l2_squared=square, coordinates=entries) <= delta
    found = made.loss(l2_squared=square, coordinates=entries).delta(float(epsilon))
    assert found.lower >= float(delta) * (1 - 1e-6)


@pytest.mark.parametrize("square", [10**14, 10**14 + 1])
def test_long_vectors_have_both_ends(square):
    """Where a norm has too many possible divisors, what any vector's waves add says enough."""
    loss = DiscreteGaussian(Fraction(square)).loss(l2_squared=square)
    found, continuous = loss.delta(1.0), privacy.gaussian(1.0).delta(1.0)
    assert found.lower * (1 - 1e-9) <= continuous <= found.upper * (1 + 1e-9)
    assert found.width <= 1e-9 * found.upper
