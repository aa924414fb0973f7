"""The cost of privacy: rates that agree with what the methods do, and with each other."""

from __future__ import annotations

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError


def test_the_error_of_a_mean_is_the_one_that_is_stated():
    """Means of one number, 400 releases: the mean squared error within a fifth of the rate."""
    rng = np.random.default_rng(4)
    stated = inference.cost_of_privacy("mean", 300, epsilon="0.5", delta=0)
    found = [
        inference.mean(rng.normal(0, 1, 300), bounds=(-4, 4), epsilon="0.5", shape="any").estimate
        for _ in range(400)
    ]
    assert np.mean(np.square(found)) == pytest.approx(float(stated.best.at(300)), rel=0.2)


def test_in_a_ball_too():
    """Means of ten numbers, 40 releases."""
    rng = np.random.default_rng(5)
    stated = inference.cost_of_privacy("mean", 2000, d=10)
    ball = next(m for m in stated.methods if m.name == "mean, in a ball")
    radius = 10**0.5 + 4
    found = [
        inference.means(
            rng.normal(0, 1, (2000, 10)), radius=radius, epsilon=1, delta="1e-6"
        ).estimate
        for _ in range(40)
    ]
    assert np.mean(np.sum(np.square(found), axis=1)) == pytest.approx(ball.at(2000), rel=0.25)


@pytest.mark.parametrize(
    ("problem", "more"),
    [("mean", {}), ("mean", {"d": 50}), ("sparse mean", {"d": 900, "s": 9}), ("regression", {})],
)
def test_privacy_starts_to_cost_where_it_doubles_the_error(problem, more):
    """There, both terms are alike; beyond, the error falls to that without privacy."""
    found = inference.cost_of_privacy(problem, 10_000, **more)
    at = found.starts
    assert found.best.at(at) == pytest.approx(2 * found.best.per_n / at)
    assert found.best.at(1e9) == pytest.approx(float(found.sampling.at(1e9)), rel=0.01)
    for rate in found.methods:
        assert rate.at(100) > found.sampling.at(100)
        assert rate.per_square > found.lower.per_square or problem == "sparse mean"
    assert found.frame.height == 2 + len(found.methods)
    assert "more than doubles" in str(found)


def test_what_costs_more_than_it_says_is_never_the_best():
    """The noise as printed is shown, and not recommended."""
    found = inference.cost_of_privacy("mean", 100, d=2)
    assert "truncated mean as printed" in {m.name for m in found.methods}
    assert found.best.name != "truncated mean as printed"
    pure = inference.cost_of_privacy("mean", 100, d=2, delta=0)
    assert "truncated mean as printed" not in {m.name for m in pure.methods}


def test_the_picture_is_drawn(tmp_path):
    """With the point where privacy starts to cost."""
    found = inference.cost_of_privacy("sparse mean", 100, d=100, s=3)
    figure = found.plot(str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").exists()
    assert any("more than doubles" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"problem": "median"}, "problem"),
        ({"n": 0}, "n must"),
        ({"d": 0}, "d must"),
        ({"s": 1}, "s goes with"),
        ({"problem": "sparse mean"}, "s must be given"),
        ({"problem": "sparse mean", "d": 5, "s": 5}, "below d"),
        ({"problem": "sparse mean", "d": 5, "s": 2, "delta": 0}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"reach": 0}, "reach"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, said):
    """By the name of the argument."""
    with pytest.raises(ArgumentError, match=said):
        inference.cost_of_privacy(**({"problem": "mean", "n": 100} | arguments))


def test_the_lower_bound_knows_delta_where_its_conditions_hold():
    """log(1/δ) within them; without it at each of their ends, where it is not proved."""
    asked = {"d": 50, "epsilon": "0.5", "delta": "1e-9"}
    within = inference.cost_of_privacy("mean", 10_000, **asked)
    assert within.lower.per_square == pytest.approx((50 / 0.5) ** 2 * np.log(1e9))
    assert within.lower.formula == "d/n + d²·log(1/δ)/(nε)²"
    assert "for n from 65 to 1/δ" in within.lower.constant
    for one in within.methods:
        assert one.per_square > within.lower.per_square
    outside = [
        {"epsilon": 1},  # ε below 1
        {"delta": "1e-4"},  # δ below 1/n
        {"delta": 0},
        {"d": 20},  # d at least log(1/δ)
        {"n": 64},  # n at least √(d log(1/δ))/ε
        {"n": 100, "delta": "1e-40", "d": 100, "epsilon": "0.8"},  # δ above exp(-nε)/n
    ]
    for change in outside:
        more = {"n": 10_000, **asked, **change}
        found = inference.cost_of_privacy("mean", **more)
        assert found.lower.formula == "d/n + d²/(nε)²", change
