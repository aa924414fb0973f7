"""Compound mechanisms against brute force: trees, searches, votes, samples of either relation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.accounting import loss_from_expression, shuffle
from dither.errors import ArgumentError


def divergence(p: Any, q: Any, epsilon: float) -> float:
    """Σ (p - e^epsilon·q)+, the larger of both directions."""
    p, q = np.asarray(p), np.asarray(q)
    grow = math.exp(epsilon)
    return max(float(np.maximum(a - grow * b, 0).sum()) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("steps", range(1, 40))
def test_a_step_lies_in_as_many_full_nodes_as_are_charged(steps: int) -> None:
    """Nodes [i·2^j, (i+1)·2^j) that are full, counted for every step."""
    most = max(sum((leaf // 2**j + 1) * 2**j <= steps for j in range(10)) for leaf in range(steps))
    assert privacy.tree_aggregation(3.0, steps).gdp() == pytest.approx(math.sqrt(most) / 3)


def test_trees_that_start_anew() -> None:
    """A unit is in one of them: the longest is charged."""
    several = privacy.tree_aggregation(2.0, [5, 100, 7])
    assert several.epsilon(1e-6) == privacy.tree_aggregation(2.0, 100).epsilon(1e-6)
    with pytest.raises(ArgumentError, match="steps"):
        privacy.tree_aggregation(2.0, [])
    with pytest.raises(ArgumentError, match="steps"):
        privacy.tree_aggregation(2.0, 0)


def runs(mean: float, shape: float | None, most: int) -> np.ndarray:
    """Pr[K = k] for k = 0, 1, ..., most."""
    k = np.arange(most + 1)
    if shape is None:
        return np.exp(-mean + k * math.log(mean) - np.array([math.lgamma(x + 1) for x in k]))
    low, high = 1e-9, 1 - 1e-12
    for _ in range(200):
        gamma = (low + high) / 2
        if shape == 0:
            expected = (1 / gamma - 1) / math.log(1 / gamma)
        else:
            expected = shape * (1 - gamma) / (gamma * (1 - gamma**shape))
        low, high = (gamma, high) if expected > mean else (low, gamma)
    if shape == 0:
        masses = (1 - gamma) ** k / (np.maximum(k, 1) * math.log(1 / gamma))
    else:
        factors = np.cumprod(np.concatenate([[1.0], (np.arange(most) + shape) / (k[1:])]))
        masses = (1 - gamma) ** k / (gamma**-shape - 1) * factors
    masses[0] = 0.0
    return masses


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0, None])
@pytest.mark.parametrize("mean", [1.5, 6.0])
def test_the_best_of_many_runs_by_enumeration(shape: float | None, mean: float) -> None:
    """The law of the best of K runs with three scores, at many orders and both directions."""
    e = 0.8
    low = math.exp(-e)
    whole = 1 + 2 * low
    one = [np.array([low, low, 1.0]) / whole, np.array([1.0, low, low]) / whole]
    chances = runs(mean, shape, 3000)
    assert chances.sum() == pytest.approx(1.0, abs=1e-6)

    def best(law: np.ndarray) -> np.ndarray:
        below = np.cumsum(law)
        at_most = np.array([(chances * b ** np.arange(len(chances))).sum() for b in below])
        return np.concatenate([[chances[0]], np.diff(np.concatenate([[chances[0]], at_most]))])

    p, q = best(one[0]), best(one[1])
    kept = p > 0
    loss = privacy.repeat_and_select(privacy.randomized_response(e, k=3), mean=mean, shape=shape)
    for order in (1.05, 1.5, 2.0, 5.0, 30.0, 500.0):
        bound = loss.renyi(order)
        assert bound.one_sided
        for a, b in ((p[kept], q[kept]), (q[kept], p[kept])):
            logs = order * np.log(a) + (1 - order) * np.log(b)
            truth = float(np.logaddexp.reduce(logs)) / (order - 1)
            assert truth <= bound.upper
    assert loss.delta(0.9) >= divergence(p, q, 0.9)


def test_a_search_needs_renyi_divergences() -> None:
    """Or an epsilon beside what may fail; a mean below one run is not a search."""
    with pytest.raises(ArgumentError, match="infinite"):
        privacy.repeat_and_select(privacy.approximate(1.0, 1e-9), mean=3.0, shape=None)
    leaks = privacy.repeat_and_select(privacy.approximate(1.0, 1e-9), mean=3.0)
    assert (leaks.charge.epsilon, leaks.charge.delta) == (3, Fraction(3, 10**9))
    with pytest.raises(ArgumentError, match="mean"):
        privacy.repeat_and_select(privacy.pure(1.0), mean=0.5)
    with pytest.raises(ArgumentError, match="shape"):
        privacy.repeat_and_select(privacy.pure(1.0), mean=2.0, shape=-1.0)


def winners(votes: list[float], sigma: float) -> np.ndarray:
    """Pr[label i wins] by a fine trapezoid rule."""
    z = np.linspace(min(votes) - 12 * sigma, max(votes) + 12 * sigma, 40_001)
    cdf = np.array([[0.5 * math.erfc(-(x - v) / (sigma * math.sqrt(2))) for x in z] for v in votes])
    density = np.array(
        [np.exp(-((z - v) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi)) for v in votes]
    )
    found = []
    for i in range(len(votes)):
        others = np.prod(np.delete(cdf, i, axis=0), axis=0)
        found.append(float(np.trapezoid(density[i] * others, z)))
    return np.array(found)


@pytest.mark.parametrize("votes", [[12, 3, 1], [30, 2, 0], [6, 5, 5]])
def test_votes_against_every_change_of_one(votes: list[int]) -> None:
    """All tables of votes that differ by one teacher: under both bounds, at several orders."""
    sigma = 4.0
    p = winners([float(v) for v in votes], sigma)
    told = privacy.noisy_votes(sigma, votes=votes)
    blind = privacy.noisy_votes(sigma)
    for a, b in itertools.permutations(range(3), 2):
        if votes[a] == 0:
            continue
        moved = list(map(float, votes))
        moved[a] -= 1
        moved[b] += 1
        q = winners(moved, sigma)
        for order in (1.5, 2.0, 8.0, 30.0):
            truth = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert truth <= told.renyi(order).upper + 1e-9
            assert told.renyi(order).upper <= blind.renyi(order).upper * 1.01


def test_clear_votes_lose_less() -> None:
    """And a query whose votes are even, no more than without them."""
    blind = privacy.noisy_votes(40.0).renyi(8.0)
    assert privacy.noisy_votes(40.0, votes=[240, 5, 5]).renyi(8.0).upper < blind / 5
    assert privacy.noisy_votes(40.0, votes=[80, 80, 80]).renyi(8.0).upper <= blind * 1.01
    with pytest.raises(ArgumentError, match="votes"):
        privacy.noisy_votes(40.0, votes=[3])


@pytest.mark.parametrize("rate", [0.05, 0.4, 1.0])
def test_poisson_samples_of_units_replaced(rate: float) -> None:
    """Gaussians moved in opposite directions, or in one and not at all, by quadrature."""
    z = np.linspace(-14, 14, 80_001)
    step = z[1] - z[0]

    def law(mean: float) -> np.ndarray:
        return np.exp(-((z - mean) ** 2) / 2) / math.sqrt(2 * math.pi) * step

    loss = privacy.gaussian(1.0).poisson(rate, neighbours="replace")
    assert loss.neighbours is privacy.Neighbours.REPLACE
    for other in (-1.0, 0.0, 0.5):
        p = (1 - rate) * law(0.0) + rate * law(1.0)
        q = (1 - rate) * law(0.0) + rate * law(other)
        for e in (0.0, 0.1, 0.7, 2.0):
            assert divergence(p, q, e) <= loss.delta(e).upper + 1e-9
    assert not loss.one_sided


def test_pure_mechanisms_on_poisson_samples_of_units_replaced() -> None:
    """Any three laws within e^epsilon of one another along a chain a, none, b."""
    draw = np.random.default_rng(3)
    e0 = 0.7
    loss = privacy.pure(e0).poisson(0.3, neighbours="replace")
    for _ in range(200):
        none = draw.dirichlet(np.ones(4))
        sides = []
        while len(sides) < 2:
            law = none * np.exp(draw.choice([-e0, 0.0, e0], 4))
            law /= law.sum()
            if np.abs(np.log(law / none)).max() <= e0:
                sides.append(law)
        p, q = (0.7 * none + 0.3 * law for law in sides)
        for e in (0.0, 0.1, 0.3):
            assert divergence(p, q, e) <= loss.delta(e).upper + 1e-12


def test_fixed_samples_of_units_added_or_removed_by_enumeration() -> None:
    """Sums of 2 of 3 or 4 values in {0, 1}, with discrete Laplace noise, over all tables."""
    scale, places = 2.0, np.arange(-120, 125)

    def noise(at: int) -> np.ndarray:
        r = math.exp(-1 / scale)
        return (1 - r) / (1 + r) * r ** np.abs(places - at)

    def released(table: tuple[int, ...]) -> np.ndarray:
        samples = list(itertools.combinations(table, 2))
        return np.sum([noise(sum(s)) for s in samples], axis=0) / len(samples)

    loss = privacy.discrete_laplace(scale).without_replacement(2, 3)
    assert loss.neighbours is privacy.Neighbours.ADD_REMOVE
    worst = dict.fromkeys((0.0, 0.05, 0.2, 0.4), 0.0)
    for table in itertools.product((0, 1), repeat=3):
        for unit in (0, 1):
            for e in worst:
                found = divergence(released((*table, unit)), released(table), e)
                worst[e] = max(worst[e], found)
    for e, truth in worst.items():
        assert truth <= loss.delta(e).upper + 1e-12
    # Values in {-1, 0, 1} would reach it; those in {0, 1} move by 1 where 2 is allowed.
    assert worst[0.0] >= 0.4 * loss.delta(0.0).lower


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_a_gaussian_and_a_laplace_on_one_sample(rate: float) -> None:
    """The pair of both, mixed, by quadrature over the two losses; tight to a thousandth."""
    loss = (privacy.gaussian(1.5) + privacy.laplace(2.0)).poisson(rate)
    assert loss.one_sided
    mu, e0 = 1 / 1.5, 0.5

    def base(x: float) -> Any:
        """delta of both at x: over the Laplace loss, the Gaussian's profile at what is left."""

        def left(y: Any) -> Any:
            z = x - y
            return mpmath.ncdf(mu / 2 - z / mu) - mpmath.e**z * mpmath.ncdf(-mu / 2 - z / mu)

        inner = mpmath.quad(lambda y: mpmath.e ** ((y - e0) / 2) / 4 * left(y), [-e0, 0, e0])
        return inner + left(e0) / 2 + mpmath.e**-e0 * left(-e0) / 2

    with mpmath.workdps(25):
        for e in (0.01, 0.2, 0.6):
            removal = rate * base(float(mpmath.log(1 + mpmath.expm1(e) / rate)))
            rest = (mpmath.e**-e - (1 - rate)) / rate
            addition = (
                (1 - (1 - rate) * mpmath.e**e) * base(float(-mpmath.log(rest))) if rest > 0 else 0
            )
            truth = max(removal, addition)
            found = loss.delta(e).upper
            assert truth <= found <= truth * (1 + 1e-3) + 1e-15


def test_noise_that_tells_all_shows_with_its_rate() -> None:
    """Q's mass is kept where P has none to speak of: repeated samples compound."""
    loss = 5 * (privacy.gaussian(0.06) + privacy.laplace(3.0)).poisson(0.2)
    found = loss.delta(1.0).upper
    assert found >= (1 - 0.8**5) * 0.999
    assert found <= (1 - 0.8**5) * 1.01
    with pytest.raises(ArgumentError, match="too small"):
        (privacy.gaussian(0.001) + privacy.laplace(3.0)).poisson(0.2)


def test_all_that_may_share_a_sample() -> None:
    """Finite pairs beside; more costs more, and a sample less than none."""
    two = (privacy.gaussian(2.0) + privacy.laplace(2.0)).poisson(0.1).epsilon(1e-6)
    three = (privacy.gaussian(2.0) + privacy.laplace(2.0) + privacy.pure(0.5)).poisson(0.1)
    whole = privacy.gaussian(2.0) + privacy.laplace(2.0) + privacy.pure(0.5)
    assert two < three.epsilon(1e-6) < whole.epsilon(1e-6)
    fixed = privacy.gaussian(2.0, neighbours="replace") + privacy.laplace(2.0, neighbours="replace")
    assert fixed.without_replacement(1, 10).epsilon(1e-6) == pytest.approx(two, rel=1e-6)


def clones(n: int, e0: float) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """The pair that any randomiser's shuffled reports are post-processing of."""
    p = math.exp(e0)
    laws: tuple[dict[tuple[int, int], float], ...] = ({}, {})
    for c in range(n):
        mass_c = math.comb(n - 1, c) * (2 / (p + 1)) ** c * (1 - 2 / (p + 1)) ** (n - 1 - c)
        for a in range(c + 1):
            mass = mass_c * math.comb(c, a) * 0.5**c
            for law, first in zip(laws, (p / (p + 1), 1 / (p + 1)), strict=True):
                law[a + 1, c - a] = law.get((a + 1, c - a), 0.0) + mass * first
                law[a, c - a + 1] = law.get((a, c - a + 1), 0.0) + mass * (1 - first)
    return laws[0], laws[1]


@pytest.mark.parametrize(("n", "e0"), [(3, 1.0), (6, 2.0)])
def test_shuffled_rounds_that_add_up(n: int, e0: float) -> None:
    """Two rounds of the reduction's pair, enumerated: covered, and to a hundredth."""
    first, second = clones(n, e0)
    places = sorted(first)
    p, q = np.array([first[x] for x in places]), np.array([second[x] for x in places])
    loss = 2 * shuffle(n, e0).loss()
    assert loss.one_sided
    assert loss.neighbours is privacy.Neighbours.REPLACE
    for e in (0.0, 0.3, e0, 1.5 * e0):
        truth = divergence(np.outer(p, p), np.outer(q, q), e)
        assert truth <= loss.delta(e).upper + 1e-12
        assert loss.delta(e).upper <= truth * 1.01 + 1e-4


def test_shuffled_rounds_beside_other_mechanisms() -> None:
    """One round alone costs what it did; with others of its relation it adds."""
    law = shuffle(10_000, 1.0)
    alone = law.loss().epsilon(1e-6)
    assert alone == pytest.approx(law.epsilon(1e-6), rel=1e-3)
    total = law.loss() + privacy.gaussian(20.0, neighbours="replace")
    assert total.epsilon(1e-6) > alone
    with pytest.raises(ArgumentError, match="neighbours"):
        law.loss() + privacy.gaussian(20.0)
    with pytest.raises(ArgumentError, match="group"):
        law.loss().group(2)


def test_compound_mechanisms_in_expressions() -> None:
    """As the terminal reads them."""
    text = (
        "repeat_and_select(3 * gaussian(4), mean=10) + tree_aggregation(4, 1000) + noisy_votes(40)"
    )
    loss = loss_from_expression(text)
    assert loss.one_sided
    assert loss.epsilon(1e-6) > privacy.tree_aggregation(4.0, 1000).epsilon(1e-6)
    sampled = loss_from_expression("gaussian(1).poisson(0.1, neighbours='replace')")
    assert sampled.neighbours is privacy.Neighbours.REPLACE
