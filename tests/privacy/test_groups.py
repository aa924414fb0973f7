"""Groups and samples of classes: exact where a chain reaches it, else told as bounds."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

from dither import privacy
from dither.accounting import by_every_theorem, shuffle
from dither.errors import ArgumentError
from dither.privacy import Bound
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
