"""Losses at the ends of what they may be: atoms, infinities, huge counts, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError
from dither.privacy._side import side
from dither.privacy.engines.choice import engine
from dither.privacy.engines.grid import Grid

MASSES = st.lists(st.integers(0, 8), min_size=2, max_size=3).filter(any)


@pytest.mark.parametrize("delta", [1e-5, Fraction(1, 100_000), 0.25, 3e-17])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 7.5])
def test_exactly_its_own_delta(epsilon, delta):
    """At its delta, an (epsilon, delta) guarantee costs epsilon; just above a little less."""
    loss = privacy.approximate(epsilon, delta)
    for asked in (delta, float(delta), math.nextafter(float(delta), 1.0)):
        found = loss.epsilon(asked)
        assert found.lower <= epsilon <= found.upper
        assert found.width <= 1e-11 * epsilon + 1e-15
    with pytest.raises(ArgumentError, match="at least"):
        loss.epsilon(math.nextafter(float(delta), 0.0))


def test_several_infinite_losses():
    """The delta that the message names is enough, and the answer is then the sum of epsilons."""
    loss = 3 * privacy.approximate(1.0, 1e-5)
    with pytest.raises(ArgumentError, match="at least") as caught:
        loss.epsilon(2.9e-5)
    least = float(str(caught.value).split("at least ")[1].split(",")[0])
    found = loss.epsilon(least)
    assert found.lower <= 3.0 * (1 + 1e-15)
    assert 3.0 - 1e-4 <= found.upper <= 3.0 * (1 + 1e-11)


def best_test(p, q, fpr):
    """Neyman and Pearson's test, by its ranking."""
    ratio = [a / b if b else Fraction(10**30) for a, b in zip(p, q, strict=True)]
    left, caught = Fraction(fpr), Fraction(0)
    for i in sorted(range(len(p)), key=lambda i: -ratio[i]):
        if q[i] > left:
            return caught + p[i] * left / q[i]
        left, caught = left - q[i], caught + p[i]
    return caught


def masses_of(weights):
    return [Fraction(w, sum(weights)) for w in weights]


@settings(max_examples=35, deadline=None)
@given(
    a=MASSES,
    b=MASSES,
    rate=st.integers(1, 9),
    fpr=st.floats(0, 1),
    odds=st.fractions(1, 9, max_denominator=9),
)
def test_pairs_beside_their_samples(a, b, rate, fpr, odds):
    """Delta and the trade-off of a pair and its sample together, by listing every outcome."""
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    if not any(a) or not any(b):
        return
    p, q, g = masses_of(a), masses_of(b), Fraction(rate, 10)
    mixed = [g * x + (1 - g) * y for x, y in zip(p, q, strict=True)]
    one = privacy.pair([float(x) for x in p], [float(x) for x in q])
    loss = one + one.poisson(rate / 10)
    sides = [
        ([x * y for x in p for y in mixed], [x * y for x in q for y in q]),
        ([x * y for x in q for y in q], [x * y for x in p for y in mixed]),
    ]
    found = loss.delta(math.log(odds))
    truth = max(
        sum(max(x - odds * y, Fraction(0)) for x, y in zip(*side, strict=True)) for side in sides
    )
    assert found.lower <= truth * (1 + Fraction(1, 10**15))
    assert truth <= Fraction(found.upper) * (1 + Fraction(1, 10**15))
    caught = loss.tpr(fpr)
    exact = float(max(best_test(*side, fpr) for side in sides))
    assert caught.lower - 1e-15 <= exact <= caught.upper + 1e-15
    assert caught.width <= 1e-10


@pytest.mark.parametrize("fpr", [0.0, 0.1, 0.2, 0.5, 1.0])
@pytest.mark.parametrize(
    "loss",
    [privacy.pure(1.0), privacy.laplace(1.0), 3 * privacy.randomized_response(1.0, 3)],
    ids=["pure", "laplace", "response"],
)
def test_kinks_are_found(loss, fpr):
    """Atoms do not widen the trade-off."""
    assert loss.tpr(fpr).width <= 1e-10
    assert loss.tradeoff(fpr).width <= 1e-10


@pytest.mark.parametrize(
    ("loss", "finite"),
    [
        (privacy.pair([1, 0], [0, 1]), 0.0),
        (2 * privacy.pair([1, 0], [0, 1]), 0.0),
        (privacy.approximate(0.0, 0.5), 0.5),
        (privacy.pair([0.5, 0.5, 0], [0, 0.5, 0.5]), 0.5),
        (privacy.pair([1], [1]), 1.0),
    ],
)
def test_laws_of_one_point_or_none(loss, finite, tmp_path):
    """Their distribution holds the finite mass, and they can be drawn."""
    points, masses = loss.loss_distribution()
    assert masses.sum() == pytest.approx(finite, abs=1e-9)
    assert np.all(np.abs(points[masses > 1e-9]) < 1e-6)
    loss.plot(tmp_path / "law.png")
    assert (tmp_path / "law.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: privacy.discrete_laplace(1.0, sensitivity=10**400), "sensitivity"),
        (lambda: privacy.discrete_laplace(1.0, sensitivity=10**7), "sensitivity"),
        (lambda: privacy.gaussian(1.0).poisson(0.1).group(10**6), "size"),
        (lambda: (10**18 * privacy.pure(0.0)).poisson(0.1), "repetitions"),
        (lambda: privacy.discrete_gaussian(1e-300), "sigma"),
        (lambda: privacy.discrete_laplace(1e-320), "scale"),
        (lambda: privacy.laplace(1e-320), "noise_multiplier"),
    ],
)
def test_sizes_have_ends(make, name):
    """What would fill the memory, or leave the range of doubles, is refused by name."""
    with pytest.raises(ArgumentError, match=name):
        make()


def test_largest_sizes():
    """What the caps let through is answered."""
    assert privacy.discrete_laplace(1e6, sensitivity=10**6).epsilon(0) == pytest.approx(1)
    far = privacy.discrete_gaussian(10.0, sensitivity=10**17).epsilon(1e-6)
    assert far.lower <= (10**17 / 10) ** 2 / 2 <= far.upper * 1.001
    assert privacy.gaussian(1.0).delta(1e300) <= 1e-300


def test_cut_samples_tell_what_they_need():
    """No delta of 2 is asked for."""
    step = privacy.gaussian(1.0).poisson(0.1, truncate=10, population=1000)
    with pytest.raises(ArgumentError, match="truncate less") as caught:
        step.epsilon(1e-6)
    assert "above 2" not in str(caught.value)
    assert step.delta(1.0) == 1.0
    wider = privacy.gaussian(1.0).poisson(0.1, truncate=150, population=1000)
    with pytest.raises(ArgumentError, match="truncate less"):
        wider.epsilon(1e-9)


def test_nothing_left_of_a_sample():
    """A pair without a common point may be sampled with others."""
    loss = (privacy.pair([1, 0], [0, 1]) + privacy.pure(1.0)).poisson(0.25)
    found = loss.delta(3.0)
    assert found.lower <= 0.25 <= found.upper <= 0.25 + 1e-9


def test_a_quintillion_steps():
    """As many steps as doubles count: between the limit's own value and a little above."""
    many = (10**18 * privacy.gaussian(1e4).poisson(1e-6)).epsilon(1e-6)
    limit = privacy.gdp(0.1).epsilon(1e-6)
    assert many.lower <= limit * (1 + 1e-6)
    assert many.upper >= limit * (1 - 1e-6)
    assert many.width < 2e-4
    assert 4.8865 < (10**18 * privacy.pure(1e-9)).epsilon(1e-6) < 5.2216


@pytest.mark.parametrize(
    ("loss", "width"),
    [
        (30 * privacy.gaussian(0.3).poisson(0.01), 2e-5),
        (1000 * privacy.gaussian(0.3).poisson(1e-3), 2e-4),
    ],
)
def test_little_noise_and_few_steps(loss, width):
    """Nearly an atom at the floor, and a long tail: the grid's points lie on the atom."""
    found = loss.epsilon(1e-5)
    assert found.width <= width * found


@settings(max_examples=40, deadline=None)
@given(
    sigma=st.floats(0.25, 2.0),
    rate=st.floats(1e-4, 0.5),
    epsilon=st.floats(0.05, 4.0),
    removal=st.booleans(),
    points=st.sampled_from([64, 512]),
)
def test_coarse_grids_stay_on_their_sides(sigma, rate, epsilon, removal, points):
    """However few the points, and however near to an atom, both ends hold the closed form."""
    terms = side(privacy.gaussian(sigma).poisson(rate).parts, removal).upper_terms
    truth = engine(terms, epsilon=epsilon)
    low, high = Grid(terms, log_delta=None, epsilon=epsilon, points=points).bounds(epsilon)
    below, above = truth.bounds(epsilon)
    assert low <= above + 1e-12
    assert high >= below - 1e-12


def adaptive(k, epsilon, level, tilts):
    """The worst adaptive run of mechanisms of bounded range among some tilts, by recursion."""
    if k == 0:
        return max(0.0, -math.expm1(level))
    worst = 0.0
    for t in tilts:
        # Losses t and t - epsilon, and masses of Q that make both laws sum to 1.
        high = (math.exp(-t * epsilon) - math.exp(-epsilon)) / -math.expm1(-epsilon)
        up, down = t * epsilon, (t - 1) * epsilon
        value = high * math.exp(up) * adaptive(k - 1, epsilon, level - up, tilts)
        value += (1 - high) * math.exp(down) * adaptive(k - 1, epsilon, level - down, tilts)
        worst = max(worst, value)
    return worst


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_bounded_ranges_hold_adaptively(epsilon, k):
    """Utilities that depend on earlier picks stay within the bound, and not within half of it."""
    for part in (0.05, 0.2, 0.5):
        level = part * k * epsilon
        truth = adaptive(k, epsilon, level, np.linspace(0.05, 0.95, 9))
        found = (k * privacy.exponential(epsilon)).delta(level)
        assert truth <= found.upper
        assert "adaptively" in found.method
        assert truth > (k * privacy.exponential(epsilon / 2)).delta(level).upper


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: privacy.gaussian(b"1"), "noise_multiplier"),
        (lambda: privacy.gaussian(bytearray(b"1")), "noise_multiplier"),
        (lambda: privacy.gaussian(memoryview(b"1")), "noise_multiplier"),
        (lambda: privacy.gaussian(np.array([1.0])), "noise_multiplier"),
        (lambda: privacy.gaussian(1.0).epsilon(np.array([[1e-6]])), "delta"),
        (lambda: privacy.pair([1.0], [b"1"]), "q must"),
        (lambda: privacy.gaussian(1.0) * np.array([2]), "repetitions"),
        (lambda: np.array([2]) * privacy.gaussian(1.0), "repetitions"),
        (lambda: np.array([2, 3]) * privacy.gaussian(1.0), "repetitions"),
        (lambda: privacy.gaussian(1.0) * np.float64(2), "repetitions"),
        (lambda: privacy.gaussian(1.0).group(np.array([2])), "size"),
        (lambda: privacy.discrete_gaussian(1.0, sensitivity=np.array([1])), "sensitivity"),
        (lambda: privacy.randomized_response(1.0, k=np.array([3])), "k must"),
        (lambda: privacy.compose([privacy.gaussian(1.0)]), "one argument each"),
        (lambda: privacy.compose(privacy.gaussian(1.0), 3), "one argument each"),
    ],
)
def test_what_is_no_number_is_refused_by_name(make, name):
    """Bytes that spell a number, arrays of one item, lists of losses."""
    with pytest.raises(ArgumentError, match=name):
        make()


def test_numbers_of_other_kinds_are_numbers():
    """Items of arrays and fractions; an array without dimensions is an array."""
    one = privacy.gaussian(1.0).epsilon(1e-6)
    for value in (np.float64(1.0), np.int64(1), Fraction(1)):
        assert privacy.gaussian(value).epsilon(1e-6) == one
    with pytest.raises(ArgumentError, match="got ndarray"):
        privacy.gaussian(np.array(1.0))
    assert (np.int64(2) * privacy.gaussian(1.0)).parts == (2 * privacy.gaussian(1.0)).parts


@pytest.mark.parametrize("delta", [1e-7, 1e-6, 0.1, 1 / 3, 1e-300, 0.999])
def test_a_stated_failure_is_charged_as_stated(delta):
    """Beyond the largest finite loss delta is what was said, to its last digit, and not below."""
    loss = privacy.approximate(0.5, delta)
    assert loss.delta(0.6) == delta
    assert loss.epsilon(delta) <= 0.5 * (1 + 1e-11)
    for k in (2, 3, 17):
        found = (k * loss).delta(0.6 * k)
        assert found.lower <= -math.expm1(k * math.log1p(-delta)) <= found.upper


def test_random_failures_are_never_understated():
    """Every delta comes back whole."""
    draw = np.random.default_rng(5)
    for delta in (10 ** draw.uniform(-12, -0.001, 300)).tolist():
        assert privacy.approximate(0.5, delta).delta(0.6).upper >= delta
