"""Sensitivities in three norms, and the choice of the mechanism of least error."""

import itertools
import math
from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    MaxNorm,
    Sensitivity,
    Staircase,
    Tulap,
    choose,
)

DELTA = F(1, 10**6)


@settings(deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6).filter(any), st.data())
def test_bounds_hold_for_every_vector(vector, data):
    """Whatever is told of a vector, the completed bounds still hold for it."""
    norms = {
        "l1": sum(map(abs, vector)),
        "l2_squared": sum(v * v for v in vector),
        "linf": max(map(abs, vector)),
    }
    told = data.draw(st.sets(st.sampled_from(sorted(norms)), min_size=1))
    slack = data.draw(st.fractions(0, 5))
    found = Sensitivity.of(**{n: norms[n] + slack for n in told}, dimension=len(vector))
    for name, value in norms.items():
        assert value <= getattr(found, name)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("told", [{"l1": 3}, {"linf": 2}, {"l2_squared": 5}, {"l1": 4, "linf": 2}])
def test_bounds_are_nearly_attained(d, told):
    """Against all integer vectors that fit what was told: never below the largest norms."""
    found = Sensitivity.of(**told, dimension=d)
    fitting = [
        v
        for v in itertools.product(range(-5, 6), repeat=d)
        if sum(map(abs, v)) <= told.get("l1", 99)
        and max(map(abs, v)) <= told.get("linf", 99)
        and sum(x * x for x in v) <= told.get("l2_squared", 99)
    ]
    assert found.l1 >= max(sum(map(abs, v)) for v in fitting)
    assert found.linf >= max(max(map(abs, v)) for v in fitting)
    largest = max(sum(x * x for x in v) for v in fitting)
    assert largest <= found.l2_squared <= 2 * largest


def test_vector_mechanisms_cost_what_was_asked():
    """Laplace at l1 and Gaussian at l2_squared, exactly, from a bound in any norm."""
    for told in ({"l1": 6}, {"linf": 2}, {"l2_squared": 12}):
        known = Sensitivity.of(**told, dimension=5)
        assert known.laplace(F(3, 7)).loss(l1=known.l1).charge.epsilon == F(3, 7)
        assert known.gaussian(F(1, 7)).loss(l2_squared=known.l2_squared).charge.rho == F(1, 7)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ({"l1": 1, "dimension": 1}, DiscreteLaplace),
        ({"l1": 1, "dimension": 1, "delta": F(1, 10)}, Tulap),
        ({"l1": 500, "dimension": 1, "epsilon": F(6)}, Staircase),
        ({"l1": 500, "dimension": 1, "epsilon": F(6), "delta": DELTA}, Staircase),
        ({"linf": 1, "dimension": 200, "delta": DELTA}, DiscreteGaussian),
        ({"linf": 1, "dimension": 200}, MaxNorm),
        ({"l1": 2, "dimension": 200, "delta": DELTA}, DiscreteLaplace),
    ],
)
def test_least_error_wins(question, kind):
    """The choice is of the kind expected, its loss within what was asked, its error the least."""
    asked = {"epsilon": F(1)} | question
    choice = choose(**asked)
    assert isinstance(choice.mechanism, kind)
    assert choice.charge.epsilon == asked["epsilon"]
    assert choice.charge.delta <= asked.get("delta", 0)
    assert f"{math.sqrt(choice.mechanism.variance):.4g}" in choice.reason
    # The pair of a discrete law or its class: at most 2 % above what was asked.
    whole = choice.loss().epsilon(delta=1.001 * float(asked.get("delta", 0)))
    assert whole <= float(asked["epsilon"]) * 1.02
    known = choice.sensitivity
    assert choice.mechanism.variance <= known.laplace(asked["epsilon"]).variance * (1 + 1e-9)


def test_refusals():
    """Too little, zero or infinite parameters are refused by name."""
    with pytest.raises(ArgumentError, match="must be given"):
        choose(epsilon=F(1))
    with pytest.raises(ArgumentError, match="dimension"):
        choose(epsilon=F(1), linf=1)
    for value in (0, -1, 0.5, float("inf"), F(1, 2)):
        for name in ("l1", "l2_squared", "linf"):
            with pytest.raises(ArgumentError, match=name):
                choose(epsilon=F(1), dimension=2, **{name: value})
    for epsilon in (0, -1, -0.5, float("inf")):
        with pytest.raises(ArgumentError, match="epsilon"):
            choose(epsilon=epsilon, l1=1)
    for delta in (1, -1, -1e-6):
        with pytest.raises(ArgumentError, match="delta"):
            choose(epsilon=F(1), delta=delta, l1=1)
    with pytest.raises(ArgumentError, match="dimension"):
        choose(epsilon=F(1), l1=1, dimension=0)
