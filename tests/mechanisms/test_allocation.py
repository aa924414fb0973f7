"""Sharing a budget: never more than asked, exactly charged, and no worse than one family alone."""

import math
from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.accounting import epsilon_of_rho, rho_of_epsilon
from dither.errors import ArgumentError
from dither.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    KeyDiscovery,
    NoiseRequest,
    allocate,
)
from dither.privacy import Charge

AMOUNTS = st.fractions(F(1, 100), 10**6, max_denominator=100)
WEIGHTS = st.fractions(F(1, 20), 10, max_denominator=20)
EPSILONS = st.fractions(F(1, 100), 20, max_denominator=100)
DELTAS = st.one_of(st.just(F(0)), st.integers(2, 40).map(lambda k: F(1, 10**k)))


@st.composite
def needs(draw):
    """Up to five measurements whose L2 norm lies between what L1 allows at most and at least."""
    found = []
    for i in range(draw(st.integers(1, 5))):
        l1, spread = draw(AMOUNTS), draw(st.integers(1, 500))
        found.append(NoiseRequest(f"m{i}", l1, l1**2 / spread, draw(WEIGHTS)))
    return found


@settings(deadline=None, max_examples=150)
@given(needs(), EPSILONS, DELTAS, st.none() | st.integers(1, 5))
def test_charge_is_exact_and_within_what_was_asked(wanted, epsilon, delta, groups):
    """Epsilon is spent exactly, delta at most; rho is the sum of the samplers' own costs."""
    keys = None
    if groups and delta:
        keys = KeyDiscovery("m0", groups)
    plan = allocate(wanted, epsilon, delta, keys=keys)
    assert plan.charge.epsilon == epsilon
    assert plan.charge.delta == plan.delta_conversion + plan.delta_keys <= delta
    assert plan.charge.rho_delta == plan.delta_keys
    pure, rho_gaussian, rho = F(0), F(0), F(0)
    for share, need in zip(plan.shares, wanted, strict=True):
        assert share.need is need
        if isinstance(share.mechanism, DiscreteLaplace):
            cost = need.l1 / share.mechanism.scale
            assert share.loss().charge.amounts == Charge.pure(cost)
            assert cost == share.epsilon
            pure += cost
            rho += cost**2 / 2
        else:
            cost = need.l2_squared / (2 * share.mechanism.sigma2)
            assert share.loss().charge.amounts == Charge(epsilon=None, rho=cost)
            rho_gaussian += cost
    assert plan.charge.rho == rho + rho_gaussian
    if rho_gaussian:
        # The Gaussian part's own statement follows from its samplers' parameters alone.
        assert rho_gaussian == rho_of_epsilon(epsilon - pure, plan.delta_conversion)
        slack = 1 + F(1, 2**50)
        assert epsilon_of_rho(rho_gaussian, plan.delta_conversion) <= (epsilon - pure) * slack
    else:
        assert plan.delta_conversion == 0
        assert pure == epsilon
    if keys is not None:
        assert plan.keys is not None
        assert plan.keys.noise is plan["m0"].mechanism
        assert plan.keys.delta_keys == plan.delta_keys > 0
    else:
        assert plan.keys is None


@settings(deadline=None, max_examples=60)
@given(needs(), EPSILONS, DELTAS)
def test_no_worse_than_all_laplace(wanted, epsilon, delta):
    """The weighted log-variance is at most that of Laplace noise everywhere."""
    whole = sum(n.weight for n in wanted)
    plan = allocate(wanted, epsilon, delta)

    def logarithm(variance):
        return math.log(variance) if variance > 1e-260 else -600.0

    chosen = sum(float(s.need.weight) * logarithm(s.mechanism.variance) for s in plan.shares)
    laplace = sum(
        float(n.weight)
        * logarithm(DiscreteLaplace.for_loss(n.weight / whole * epsilon, l1=n.l1).variance)
        for n in wanted
    )
    assert chosen <= laplace + 1e-9 * (1 + abs(laplace))


def test_pure_budget_gets_laplace_only():
    """With delta 0 every measurement gets Laplace noise, by weight."""
    plan = allocate(
        [NoiseRequest("a", F(2), F(2)), NoiseRequest("b", F(100), F(100), F(3))], F(2), F(0)
    )
    assert plan["a"].mechanism == DiscreteLaplace(F(4))
    assert plan["b"].mechanism == DiscreteLaplace(F(200, 3))
    assert plan.charge == Charge(F(2), F(0), F(1, 8) + F(9, 8), F(0))


def test_families_are_mixed_where_that_is_best():
    """A wide histogram gets Gaussian noise beside a single count that keeps Laplace."""
    plan = allocate(
        [NoiseRequest("n", F(1), F(1)), NoiseRequest("histogram", F(64), F(64))], F(1), F(1, 10**6)
    )
    assert isinstance(plan["n"].mechanism, DiscreteLaplace)
    assert isinstance(plan["histogram"].mechanism, DiscreteGaussian)
    assert "all measurements together" in plan["histogram"].reason
    with pytest.raises(KeyError):
        plan["other"]


def test_keys_take_all_of_delta_when_nothing_is_gaussian():
    """Without Gaussian noise no delta goes to the conversion."""
    plan = allocate([NoiseRequest("n", F(1), F(1))], F(1), F(1, 10**6), keys=KeyDiscovery("n", 1))
    assert plan.delta_keys == F(1, 10**6)
    assert plan.charge == Charge(F(1), F(1, 10**6), F(1, 2), F(1, 10**6))


def test_refusals():
    """Each refusal names the argument and the fix."""
    one = [NoiseRequest("n", F(1), F(1))]
    with pytest.raises(ArgumentError, match=r"delta must be above 0.*public"):
        allocate(one, F(1), F(0), keys=KeyDiscovery("n", 1))
    with pytest.raises(ArgumentError, match=r"did you mean 'n'|known: 'n'"):
        allocate(one, F(1), F(1, 9), keys=KeyDiscovery("m", 1))
    with pytest.raises(ArgumentError, match="needs"):
        allocate([], F(1), F(0))
    with pytest.raises(ArgumentError, match="needs"):
        allocate(one * 2, F(1), F(0))
    with pytest.raises(ArgumentError, match="epsilon"):
        allocate(one, F(0), F(0))
    with pytest.raises(ArgumentError, match="delta"):
        allocate(one, F(1), F(1))
    for bad in ({"l1": F(0)}, {"l2_squared": -0.5}, {"weight": F(-1)}):
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            NoiseRequest(**({"name": "n", "l1": F(1), "l2_squared": F(1)} | bad))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 50), st.integers(1, 9), needs(), EPSILONS, DELTAS)
def test_a_choice_takes_its_share(each, groups, wanted, epsilon, delta):
    """Beside Laplace noise a pure one, else one of zCDP, charged for each of its groups."""
    choice = NoiseRequest("choice", groups * each, groups * each**2, choice=True)
    assert (choice.groups, choice.range) == (groups, each)
    plan = allocate([choice, *wanted], epsilon, delta)
    share = plan["choice"]
    lost = share.mechanism.rate * each
    assert isinstance(share.mechanism, Exponential)
    assert share.loss().charge.amounts == Charge.bounded_range(lost) * groups
    assert groups * lost**2 / 8 <= share.charge.rho
    assert plan.charge.epsilon == epsilon
    assert plan.charge.rho == sum(s.charge.rho for s in plan.shares)
    if share.charge.epsilon is not None:
        assert groups * lost == share.charge.epsilon == share.epsilon


def test_a_choice_has_ranges_of_one_size():
    """And no keys are discovered by one."""
    with pytest.raises(ArgumentError, match="ranges of one size"):
        NoiseRequest("choice", F(3), F(2), choice=True)
    choice = NoiseRequest("choice", F(2), F(2), choice=True)
    with pytest.raises(ArgumentError, match="not a choice"):
        allocate([choice], F(1), F(1, 100), keys=KeyDiscovery("choice", 1))
