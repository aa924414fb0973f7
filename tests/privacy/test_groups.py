"""Groups, and samples of classes: exact where a chain reaches them, else bounds that hold."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dither import privacy
from dither.accounting import by_every_theorem, shuffle
from dither.errors import ArgumentError
from dither.privacy import Bound, Loss, theorems
from dither.privacy.amplification._one_sample import excess
from dither.privacy.theorems import parallel


def power(epsilon: float, delta: float, size: int, level: np.ndarray) -> np.ndarray:
    """The best power along a chain of neighbours under any (epsilon, delta)-DP mechanism."""
    for _ in range(size):
        best = np.minimum(delta + math.exp(epsilon) * level, 1.0)
        level = np.minimum(best, 1 - math.exp(-epsilon) * (1 - delta - level))
        level = np.minimum(level, 1.0)
    return level


@pytest.mark.parametrize("size", [2, 3, 4, 9])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 0.0), (1.0, 1e-3), (0.05, 1e-2)])
def test_groups_under_any_mechanism_by_iterating_the_best_test(
    epsilon: float, delta: float, size: int
) -> None:
    """delta(e) is the largest power - e^e·level over all levels; a fine grid comes close to it."""
    loss = privacy.approximate(epsilon, delta).group(size)
    level = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 400_001), np.linspace(0, 1, 400_001)])
    best = power(epsilon, delta, size, level)
    for e in (0.0, 0.4 * epsilon, epsilon, 1.7 * epsilon, (size - 0.5) * epsilon):
        truth = float((best - math.exp(e) * level).max())
        found = loss.delta(e)
        assert truth <= found.upper + 1e-15
        assert found.lower <= truth + 2e-5 * (1 + math.exp(e))
        assert found.upper - found.lower <= 1e-9


def test_a_pair_of_neighbours_further_apart_is_less_than_a_mechanism_of_twice_the_loss() -> None:
    """1 - 1/e, where 2-DP alone would allow tanh(1)."""
    found = privacy.pure(1.0).group(2).advantage()
    assert found == pytest.approx(1 - math.exp(-1), rel=1e-10)
    assert not found.one_sided
    assert privacy.pure(1.0).group(2).epsilon(0.0) == pytest.approx(2.0)


def test_a_group_that_is_always_found_is_refused() -> None:
    """Its delta is 1 at every epsilon."""
    with pytest.raises(ArgumentError, match="size is too large"):
        privacy.approximate(1.0, 1e-3).group(30)
    with pytest.raises(ArgumentError, match="size is too large"):
        privacy.approximate(0.0, 1e-3).group(1000)


def test_each_member_of_a_group_responds_for_itself() -> None:
    """A group's answers are independent responses."""
    one = privacy.randomized_response(1.0, k=3)
    assert one.group(4).delta(1.0) == (4 * one).delta(1.0)
    assert one.group(4).epsilon(0.0) == pytest.approx(4.0)


def test_very_large_groups_are_bounded() -> None:
    """Beyond what is listed, an upper bound is told as one."""
    found = privacy.pure(1e-7).group(10**6).epsilon(0.0)
    assert found == pytest.approx(0.1)
    assert found.one_sided
    found = privacy.approximate(1e-5, 1e-9).group(10**4).epsilon(0.1)
    assert found.one_sided
    assert str(found).startswith("at most")


@pytest.mark.parametrize(
    "loss",
    [
        privacy.pair([0.5, 0.5], [0.25, 0.75]).group(2),
        privacy.laplace(1.0).poisson(0.1).group(2),
        privacy.pure(1.0, neighbours="replace").without_replacement(1, 10).group(3),
        (privacy.pure(1.0) + privacy.pure(0.5)).poisson(0.1).group(2),
        privacy.renyi({2.0: 0.1}),
    ],
)
def test_what_is_only_bounded_says_so(loss: privacy.Loss) -> None:
    """In text, in tables, and at the end that nothing is known to come near."""
    for found in (loss.epsilon(0.1), loss.delta(0.5)):
        assert found.one_sided
        assert found.lower == 0.0
        assert str(found).startswith("at most ")
        assert f"{found}".startswith("at most ")
        assert "at least" not in found.describe()
    assert loss.tradeoff(0.1).one_sided
    assert str(loss.bayes_risk(0.5)).startswith("at least ")
    assert loss.bayes_risk(0.5).upper == 0.5
    assert "at least" not in str(by_every_theorem(loss, 0.1))
    total = loss + privacy.Loss((), loss.neighbours)
    assert total.epsilon(0.1).one_sided


def test_exponential_mechanisms_on_a_sample_lie_between_one_and_all() -> None:
    """The lower end is a mechanism of that range, and not the bound itself."""
    found = privacy.exponential(1.0).poisson(0.1).epsilon(1e-6)
    half = privacy.randomized_response(0.5).poisson(0.1).epsilon(1e-6)
    assert found.lower <= half.upper
    assert found.upper == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-4)
    group = privacy.exponential(1.0).group(3).delta(0.0)
    steps = privacy.discrete_laplace(2.0, sensitivity=3).delta(0.0)
    assert group.lower <= steps.upper <= group.upper


def test_shuffled_reports_are_bounded_from_above() -> None:
    """Of three answers the bound claims no more; of two the others' worst inputs are known."""
    keep = math.e / (1 + math.e)
    rows = [np.array([1 - keep, keep]), np.array([keep, 1 - keep])]
    truths = []
    for a, b in ((0, 0), (0, 1), (1, 1)):
        others = np.convolve(rows[a], rows[b])
        p, q = np.convolve(rows[1], others), np.convolve(rows[0], others)
        truths.append(max(np.maximum(p - q, 0).sum(), np.maximum(q - p, 0).sum()))
    two = shuffle(3, 1.0, randomiser="grr", k=2).delta(0.0)
    assert two.lower <= max(truths) * (1 + 1e-14)
    assert max(truths) <= two.upper * (1 + 1e-14)
    assert not two.one_sided
    law = shuffle(3, 1.0, randomiser="grr", k=3)
    assert law.delta(0.0).one_sided
    assert law.epsilon(0.01).one_sided


def test_parts_side_by_side_stay_bounds() -> None:
    """The worst part's bound is what it was."""
    worst = parallel(privacy.pure(0.1), privacy.pair([0.5, 0.5], [0.2, 0.8]).group(2))
    assert worst.epsilon(0.1).one_sided


def test_a_bound_keeps_its_side() -> None:
    """Copies and pickles are the same bound, also where both ends are equal."""
    for bound in (
        Bound(0.0, 1.0, "m", one_sided=True),
        Bound(0.2, 1.0, "m", safe="lower", one_sided=True),
        Bound(0.5, 0.5, "m", safe="lower"),
    ):
        for twin in (copy.copy(bound), pickle.loads(pickle.dumps(bound))):
            assert (twin.lower, twin.upper, twin.safe, twin.one_sided) == (
                bound.lower,
                bound.upper,
                bound.safe,
                bound.one_sided,
            )
            assert str(twin) == str(bound)


def asymmetric() -> list[tuple[Loss, float]]:
    """Samples of pairs that lose more in one direction, and the most that a unit loses."""
    one = privacy.pair([0.9, 0.1], [0.5, 0.5])
    turned = privacy.pair([0.5, 0.5], [0.9, 0.1])
    replaced = privacy.pair([0.9, 0.1], [0.5, 0.5], neighbours="replace")
    far = -math.log(0.1 + 0.9 * 0.2)
    g = math.e - 1
    both = -math.log(0.1 + 0.9 * 0.2 / (1 + g))
    return [
        (one.poisson(0.9), far),
        (turned.poisson(0.9), math.log(0.1 + 0.9 * 5)),
        (replaced.without_replacement(9, 10), math.log(0.1 + 0.9 * 5)),
        ((one + privacy.pure(1.0)).poisson(0.9), both),
    ]


def hockey_stick(p: tuple[float, ...], q: tuple[float, ...], epsilon: float) -> float:
    """delta(epsilon) of one direction."""
    return sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("place", range(4))
def test_a_group_on_a_sample_loses_at_least_what_a_unit_does(place: int) -> None:
    """In whichever direction it loses more; the group's is twice the larger end."""
    loss, most = asymmetric()[place]
    group = loss.group(2)
    assert loss.epsilon(0).upper == pytest.approx(most, rel=1e-9)
    assert group.epsilon(0).upper >= 2 * most * (1 - 1e-12)
    for epsilon in (0.0, 0.3, 1.0, 1.2, 1.25):
        assert group.delta(epsilon).upper >= loss.delta(epsilon).lower


def test_a_group_on_a_poisson_sample_by_brute_force() -> None:
    """Both members, one or none are sampled, of a mechanism whose steps the pair dominates."""
    none, one, two, g = (0.5, 0.5), (0.9, 0.1), (0.98, 0.02), 0.9
    for epsilon in np.linspace(0, 3, 61).tolist():
        for first, second in ((one, two), (two, one)):
            limit = max(hockey_stick(none, one, epsilon), hockey_stick(one, none, epsilon))
            assert hockey_stick(first, second, epsilon) <= limit + 1e-15
    sampled = tuple(
        (1 - g) ** 2 * a + 2 * g * (1 - g) * b + g**2 * c
        for a, b, c in zip(none, one, two, strict=True)
    )
    group = privacy.pair(one, none).poisson(g).group(2)
    for epsilon in (0.0, 0.5, 1.2, 2.0, 2.5):
        for first, second in ((sampled, none), (none, sampled)):
            assert group.delta(epsilon).upper >= hockey_stick(first, second, epsilon) - 1e-15


@pytest.mark.parametrize("turned", [False, True])
def test_no_group_of_a_sample_that_may_lose_everything(turned: bool) -> None:
    """Whichever law lacks an outcome of the other."""
    p, q = ([0.5, 0.5], [1, 0]) if turned else ([1, 0], [0.5, 0.5])
    with pytest.raises(ArgumentError, match="pure"):
        privacy.pair(p, q, neighbours="replace").without_replacement(9, 10).group(2)
    with pytest.raises(ArgumentError, match="pure"):
        privacy.pair(p, q).poisson(0.9).group(2)


@pytest.mark.parametrize(
    ("population", "rate", "most"),
    [
        (1000, 0.1, 150),
        (10, 0.5, 8),
        (10**17, 1e-15, 150),
        (10**18, 1e-16, 150),
        (10**18, 0.5, 5 * 10**17 + 4 * 10**9),
        (10**30, 1e-28, 160),
        (10**6, 1e-300, 3),
    ],
)
def test_truncated_mass_against_many_digits(population: int, rate: float, most: int) -> None:
    """At least the true tail, above 0, and not far above: first terms are summed at 120 digits."""
    found = excess(population, rate, most)
    with mpmath.workdps(120):
        n, g = mpmath.mpf(population), mpmath.mpf(rate)
        if population > 10**17 and most > 10**6:
            # Too many terms to sum; the normal tail is near at 8 deviations of so large a number.
            truth = mpmath.ncdf(-(most + 0.5 - n * g) / mpmath.sqrt(n * g * (1 - g)))
        else:
            k = most + 1
            term = mpmath.binomial(n, k) if k < 50 else None
            if term is None:
                term = mpmath.exp(
                    mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
                )
            term *= g**k * (1 - g) ** (n - k)
            truth = mpmath.mpf(0)
            while k <= population and term > truth * mpmath.mpf(10) ** -40:
                truth += term
                term *= (n - k) / (k + 1) * g / (1 - g)
                k += 1
        assert truth * (1 - mpmath.mpf("1e-6" if most > 10**6 else "1e-25")) <= found
        assert 5e-324 <= found <= max(1.2 * float(truth), 1e-323)


def test_truncated_mass_at_the_ends() -> None:
    """Nothing is cut where all fit, everything may be where the mean does not."""
    assert excess(10, 0.5, 10) == 0.0
    assert excess(10, 0.5, 3) == 1.0
    assert excess(10, 1.0, 9) == 1.0


@pytest.mark.parametrize("text", ["0.1", "0.3", "0.7", "1.1"])
@pytest.mark.parametrize("size", [2, 3, 7, 10])
def test_amounts_of_groups_are_not_below_their_rationals(text: str, size: int) -> None:
    """Doubles read as they print, and multiplied as rationals."""
    exact = Fraction(text)

    def told(x: float) -> Fraction:
        return Fraction(repr(float(x)))

    concentrated = privacy.zcdp(text).group(size)
    assert concentrated.parts[0][0].rho() == exact * size**2 == concentrated.charge.rho
    ranges = privacy.exponential(float(text)).group(size)
    assert told(ranges.epsilon(0).upper) == exact * size
    assert f"exponential({text})" in ranges.describe()
    assert told(privacy.pure(float(text)).group(size).epsilon(0).upper) == exact * size


def test_a_very_large_group_of_a_pure_mechanism() -> None:
    """Where the chain is too long to be listed."""
    found = privacy.pure(0.7).group(300_001).epsilon(0).upper
    assert Fraction(repr(float(found))) >= Fraction(7, 10) * 300_001


@pytest.mark.parametrize("text", ["1/3", "2/7", "0.1", "1e-20"])
def test_theorems_round_what_they_are_given_upwards(text: str) -> None:
    """A rational between two doubles is not taken for the one below."""
    x = Fraction(text)
    for k in (1, 3, 10):
        for epsilon, delta in (
            theorems.basic(text, k, delta="1/30"),  # type: ignore[arg-type]
            theorems.heterogeneous([(text, "1/30")] * k),  # type: ignore[list-item]
            theorems.group(text, "1/30", k),  # type: ignore[arg-type]
        ):
            assert Fraction(repr(epsilon)) >= k * x
            assert Fraction(repr(delta)) >= k * Fraction(1, 30)
    with mpmath.workdps(60):
        e = mpmath.mpf(x.numerator) / x.denominator
        slack = mpmath.sqrt(8 * mpmath.log(3e5))
        truth = e * slack + 4 * e * mpmath.tanh(e / 2)
        assert theorems.advanced(text, 4, Fraction(1, 300_000)) >= truth  # type: ignore[arg-type]


def test_orders_of_a_renyi_profile_are_rounded_down() -> None:
    """A divergence at an order bounds those below it, not those above."""
    ((part, _),) = privacy.renyi({Fraction(5, 3): Fraction(1, 3)}).parts  # type: ignore[dict-item]
    assert Fraction(part.orders[0]) < Fraction(5, 3)  # type: ignore[attr-defined]
    assert part.values[0] > Fraction(1, 3)  # type: ignore[attr-defined]
