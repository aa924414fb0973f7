"""MinID-LDP: budgets by value, verified pair by pair from the rationals that are drawn."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dither.errors import ArgumentError
from dither.local import OUE, MinIDLDP, channel_from_dict
from dither.local._coins import exp_bounds
from local.laws import (
    check_bit_rows,
    check_bit_sampler,
    check_estimator,
    check_wire,
    worst_bit_ratio,
)

CHANNELS = [
    MinIDLDP(4, ["0.5", 1, 1, 3]),
    MinIDLDP(4, [2, 1, 1, "0.5"], model="opt1"),
    MinIDLDP(4, [1, 1, 4, 4], model="opt2"),
    MinIDLDP(3, [1, 2, 3], model="opt2"),
]


def check_pairs(channel: MinIDLDP) -> None:
    """Over all reports every pair of values is within the smaller of their budgets."""
    k = len(channel.domain)
    for x in range(k):
        for other in range(k):
            if x != other:
                budget = min(channel.epsilons[x], channel.epsilons[other])
                assert worst_bit_ratio(channel, x, other) <= exp_bounds(budget)[0]


@pytest.mark.parametrize("channel", CHANNELS)
def test_law_and_guarantee(channel: MinIDLDP) -> None:
    """Rows sum to one, every pair keeps its promise, and the matrix tells the true ratios."""
    check_bit_rows(channel)
    check_pairs(channel)
    told = channel.guarantee
    by_name = {float(name.split()[1]): name for name in told.classes}
    for x, e in enumerate(channel.epsilons):
        for other, f in enumerate(channel.epsilons):
            if x != other:
                pair = told.pairs[by_name[float(e)], by_name[float(f)]]
                ratio = math.log(worst_bit_ratio(channel, x, other))
                assert pair.delta == 0
                assert pair.ratio == pytest.approx(ratio, rel=1e-12)
    assert told.loss().epsilon(delta=0) >= max(p.ratio for p in told.pairs.values())
    assert not told.graded


@pytest.mark.parametrize("channel", CHANNELS[:3])
def test_sampler_estimator_and_wire(channel: MinIDLDP) -> None:
    """Reports have the joint law; estimates are unbiased with the stated variance."""
    assert check_bit_sampler(channel)
    check_estimator(channel, [0.4, 0.3, 0.2, 0.1])
    check_wire(channel, channel.privatize([0, 1, 2, 3] * 10))


@given(
    st.lists(st.sampled_from(["0.1", "0.5", "1", "2", "5"]), min_size=2, max_size=5),
    st.sampled_from(["opt1", "opt2", "best"]),
)
@settings(max_examples=30, deadline=None)
def test_any_budgets_are_kept(budgets: list[str], model: str) -> None:
    """Whatever the budgets, every pair of values is within the smaller one."""
    check_pairs(MinIDLDP(len(budgets), budgets, model=model))


def objective(channel: MinIDLDP) -> float:
    """The sum of rare values' variances."""
    p, q = channel.chances
    return float((q * (1 - q) / (p - q) ** 2).sum())


SETTINGS = [
    ([1.0, 2.0, 4.0], [2, 3, 5]),
    ([1.0, 3.0], [1, 1]),
    ([0.5, 1.0, 3.0], [1, 4, 1]),
    ([0.2, 2.0], [1, 9]),
]


@pytest.mark.parametrize(("budgets", "sizes"), SETTINGS)
def test_opt1_is_optimal(budgets: list[float], sizes: list[int]) -> None:
    """No feasible opt1 that a general solver finds from many starts is better."""
    channel = MinIDLDP(sum(sizes), np.repeat(budgets, sizes).tolist(), model="opt1")
    t = len(budgets)
    limits = [
        {"type": "ineq", "fun": lambda x, i=i, j=j: budgets[min(i, j)] - x[i] - x[j]}
        for i in range(t)
        for j in range(i, t)
        if i != j or sizes[i] > 1
    ]
    found = [
        minimize(
            lambda x: sum(m / (4 * math.sinh(v / 2) ** 2) for m, v in zip(sizes, x, strict=True)),
            start,
            bounds=[(1e-6, 20)] * t,
            constraints=limits,
            method="SLSQP",
        )
        for start in np.random.default_rng(2).uniform(0.01, min(budgets) / 2, (6, t))
    ]
    assert objective(channel) <= min(f.fun for f in found if f.success) * (1 + 1e-5)


@pytest.mark.parametrize(("budgets", "sizes"), SETTINGS)
def test_opt2_is_optimal(budgets: list[float], sizes: list[int]) -> None:
    """No feasible opt2 that a general solver finds from many starts is better."""
    channel = MinIDLDP(sum(sizes), np.repeat(budgets, sizes).tolist(), model="opt2")
    t = len(budgets)
    limits = [
        {"type": "ineq", "fun": lambda b, i=i, j=j: math.exp(budgets[min(i, j)]) * b[i] + b[j] - 1}
        for i in range(t)
        for j in range(t)
        if i != j or sizes[i] > 1
    ]
    found = [
        minimize(
            lambda b: sum(m * v * (1 - v) / (0.5 - v) ** 2 for m, v in zip(sizes, b, strict=True)),
            start,
            bounds=[(1e-4, 0.4999)] * t,
            constraints=limits,
            method="SLSQP",
        )
        for start in np.random.default_rng(2).uniform(0.3, 0.49, (6, t))
    ]
    assert objective(channel) <= min(f.fun for f in found if f.success) * (1 + 1e-5)


def test_it_pays() -> None:
    """With budgets 1, 2 and 4 its variance is below that of OUE at the smallest."""
    channel = MinIDLDP(10, [1] * 2 + [2] * 3 + [4] * 5)
    assert channel.model == "opt1"
    f = np.full(10, 0.1)
    assert channel.variance(f, 1).sum() < 0.9 * OUE(10, 1).variance(f, 1).sum()
    assert channel.epsilon == 4
    assert MinIDLDP(2, [1, 4]).epsilon == 1


def test_thresholds_are_the_channel_and_are_verified() -> None:
    """Told thresholds give the same channel; a step beyond the promise is refused."""
    channel = MinIDLDP(["a", "b", "c"], {"a": 1, "b": 2, "c": 2})
    found = channel.to_dict()
    assert channel_from_dict(found) == channel
    held, other = found["thresholds"]
    spoilt = {**found, "thresholds": [held, [str(int(b) * 3 // 4) for b in other]]}
    with pytest.raises(ArgumentError, match="smaller of their epsilons"):
        channel_from_dict(spoilt)
    for bad in ([held], [held, held], [held, other[:1]], 3, [["x"], ["y"]]):
        with pytest.raises(ArgumentError, match="thresholds"):
            MinIDLDP(["a", "b", "c"], [1, 2, 2], thresholds=bad)  # type: ignore[arg-type]


def test_the_guarantee_prints_as_a_matrix() -> None:
    """Budgets label the classes, and a class of one value has no pair within it."""
    text = str(MinIDLDP(["HIV", "flu", "cold"], {"HIV": 1, "flu": 3, "cold": 3}).guarantee)
    assert text.splitlines()[0] == "epsilon of a value of the row against one of the column"
    assert text.splitlines()[2].split()[-2:] == ["–", "1"]


def test_refusals() -> None:
    """Missing values, unknown values, bad budgets and unknown models are refused."""
    for epsilons in ({"a": 1}, {"a": 1, "z": 2}, [1], "12", 3, [1, 0], [1, float("nan")]):
        with pytest.raises(ArgumentError):
            MinIDLDP(["a", "b"], epsilons)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="did you mean"):
        MinIDLDP(2, [1, 2], model="opt3")
    assert Fraction(1, 2) == MinIDLDP(2, ["1/2", 3]).epsilon
