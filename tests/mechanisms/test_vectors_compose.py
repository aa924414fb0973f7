"""Noise on integer vectors: its composable loss says what was charged, and covers every change."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian
from dither.mechanisms.chooser import choose
from dither.privacy import Loss, compose


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)])
@pytest.mark.parametrize(
    "known",
    [
        {"l1": 10, "linf": 1},
        {"linf": 1, "dimension": 50},
        {"linf": 1, "dimension": 400},
        {"l1": 1, "dimension": 1},
        {"l2_squared": 7, "l1": 7},
        {"linf": 5, "dimension": 8},
    ],
)
@pytest.mark.parametrize("delta", [F(1, 10**6), F(1, 10**9), F(1, 3 * 10**7)])
def test_a_choice_costs_what_its_loss_says(epsilon: F, delta: F, known: dict[str, int]) -> None:
    """Asked at its own delta, as a decimal or rounded up, and in composition no less."""
    chosen = choose(epsilon=epsilon, delta=delta, **known)
    loss = chosen.loss()
    asked = float(delta) if F(repr(float(delta))) >= delta else math.nextafter(float(delta), 1)
    found = loss.epsilon(asked)
    assert found.upper <= float(chosen.charge.epsilon) * (1 + 1e-11)
    assert (2 * loss).epsilon(2 * asked).upper <= 2 * float(epsilon) * (1 + 1e-9)


def changes(square: int, coordinates: int) -> list[tuple[int, ...]]:
    """All vectors of whole changes, up to order and sign, of at most this sum of squares."""
    most = math.isqrt(square)
    every = itertools.combinations_with_replacement(range(most + 1), coordinates)
    return [v for v in every if 0 < sum(x * x for x in v) <= square]


@pytest.mark.parametrize("sigma2", [F(3, 2), F(6), F(40)])
def test_every_change_within_the_sensitivity_is_covered(sigma2: F) -> None:
    """Each change is the sum of its coordinates' losses, composed exactly; so are two runs."""
    bound = DiscreteGaussian(sigma2).loss(l2_squared=6, coordinates=3)
    sigma = math.sqrt(sigma2)
    for change in changes(6, 3):
        parts = [privacy.discrete_gaussian(sigma, sensitivity=x) for x in change if x]
        truth = compose(*parts)
        for e in (0.0, 0.3, 1.0, 2.5, 5.0):
            assert truth.delta(e).lower <= bound.delta(e).upper
            assert (2 * truth).delta(e).lower <= (2 * bound).delta(e).upper
        for order in (2, 8, 64):
            assert truth.renyi(order).lower <= bound.renyi(order).upper


def test_vectors_lose_hardly_more_than_continuous_noise() -> None:
    """A thousandth, where the conversion from zCDP alone costs six hundredths."""
    vector = DiscreteGaussian(F(400)).loss(l2_squared=40)
    smooth = privacy.gaussian(math.sqrt(10.0))
    for k in (1, 30):
        ratio = (k * vector).epsilon(1e-6).upper / (k * smooth).epsilon(1e-6).upper
        assert 1 <= ratio < 1.002
    assert vector.zcdp() == pytest.approx(0.05, rel=1e-9)


def test_vectors_beside_other_losses_and_on_samples() -> None:
    """They compose, and are sampled where continuous noise dominates outright."""
    coarse = DiscreteGaussian(F(400)).loss(l2_squared=40)
    total: Loss = coarse + privacy.laplace(5.0) + privacy.approximate(0.1, 1e-8)
    assert total.epsilon(1e-6) > coarse.epsilon(1e-6)
    with pytest.raises(ArgumentError, match="poisson"):
        coarse.poisson(0.1)
    fine = DiscreteGaussian(F(40_000)).loss(l2_squared=40)
    sampled = fine.poisson(0.1).epsilon(1e-6)
    assert sampled.one_sided
    assert sampled == pytest.approx(
        privacy.gaussian(math.sqrt(1000.0)).poisson(0.1).epsilon(1e-6), rel=2e-3
    )
    # No law of so large a sigma is listed, so beside others nothing is said from below.
    huge = DiscreteGaussian(F(10**8)).loss(l2_squared=4, coordinates=2).epsilon(1e-6)
    assert huge.one_sided
    assert huge.lower > (1 - 1e-6) * huge.upper
