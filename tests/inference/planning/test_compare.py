"""Comparisons of ways: on simulated rows alone, the same for all, with figures that are right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError


def _normal(rng):
    return rng.normal(0, 1, 400)


def _mean(**more):
    return lambda x: inference.mean(x, bounds=(-4, 4), epsilon="0.5", **more)


def test_a_naive_interval_is_shown_to_be_too_short():
    """It leaves out the noise: known width and coverage; the honest one covers and is wider."""
    noise = 2 * 4 / (400 * 0.5) * 2**0.5
    mechanisms = np.random.default_rng(2)

    def naive(x):
        at = float(np.mean(x)) + mechanisms.laplace(0, noise / 2**0.5)
        return at, at - 1.96 * 0.05, at + 1.96 * 0.05

    found = inference.compare({"naive": naive, "ours": _mean()}, _normal, 0, runs=150, seed=1)
    plain, ours = found.ways
    assert plain.error == pytest.approx(np.hypot(0.05, noise), rel=0.25)
    assert plain.width == pytest.approx(2 * 1.96 * 0.05)
    assert plain.coverage is not None
    assert ours.coverage is not None
    assert plain.coverage < 0.9 < ours.coverage
    assert ours.width is not None
    assert ours.width > plain.width
    assert (plain.cost, plain.epsilon) == ("not known", None)
    assert (ours.epsilon, ours.neighbours) == (0.5, "replace")


def test_costs_and_neighbours_stand_beside_errors():
    """As a frame and as text; an epsilon is rounded up, never down."""
    third = Fraction(1, 3)
    found = inference.compare(
        {
            "replaced": _mean(),
            "added": _mean(neighbours="add-remove"),
            "cheap": lambda x: inference.mean(x, bounds=(-4, 4), epsilon=third),
            "bare": np.median,
        },
        _normal,
        truth=0.0,
        runs=2,
    )
    frame = found.frame
    assert frame["way"].to_list() == ["replaced", "added", "cheap", "bare"]
    assert frame["neighbours"].to_list() == ["replace", "add-remove", "replace", None]
    assert Fraction(frame["epsilon"][2]) >= third
    assert frame["coverage"][3] is None
    text = str(found)
    assert "neighbours 'add-remove'" in text
    assert "not known" in text
    assert "2 runs" in text


def test_every_way_sees_the_same_rows_whatever_the_others_do_to_them():
    """And each run has others; the same seed gives them again."""
    seen: dict[str, list[float]] = {"first": [], "second": []}

    def first(x):
        seen["first"].append(float(x.sum()))
        x[:] = 0
        return 0.0

    def second(x):
        seen["second"].append(float(x.sum()))
        return 0.0

    inference.compare({"first": first, "second": second}, _normal, 0, runs=3, seed=5)
    assert seen["first"] == seen["second"]
    assert len(set(seen["first"])) == 3
    inference.compare({"second": second}, _normal, 0, runs=3, seed=5)
    assert seen["second"][3:] == seen["first"]


def test_regressions_are_compared_number_by_number():
    """The moments err less than the functional mechanism."""

    def sample(rng):
        x = rng.uniform(-1, 1, 4000)
        return {"x": x, "y": 0.2 + 0.5 * x + rng.normal(0, 0.2, 4000)}

    def linear(method):
        ends = {"x": (-1, 1), "y": (-1, 1)}
        return lambda rows: inference.linear_regression(
            "y ~ x", rows, bounds=ends, epsilon="0.2", delta=1e-6, method=method
        )

    ways = {"moments": linear("moments"), "functional": linear("functional")}
    moments, functional = inference.compare(ways, sample, [0.2, 0.5], runs=12).ways
    assert moments.error < functional.error
    assert functional.delta == 0 or functional.delta is None


def test_logistic_regressions_are_compared():
    """Both ways cover and cost the same; a minimiser errs no more than half as much again."""

    def sample(rng):
        x = rng.uniform(-1, 1, 4000)
        return {"x": x, "y": rng.random(4000) < 1 / (1 + np.exp(-x))}

    def logistic(method):
        return lambda rows: inference.logistic_regression(
            "y ~ x", rows, bounds={"x": (-1, 1)}, epsilon=1, delta=1e-6, method=method
        )

    ways = {method: logistic(method) for method in ("descent", "objective")}
    descent, objective = inference.compare(ways, sample, [0, 1], runs=20).ways
    assert objective.error < 1.5 * descent.error
    assert descent.epsilon == objective.epsilon == 1
    for way in (descent, objective):
        assert way.coverage is not None
        assert way.coverage >= 0.8


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"ways": {}}, "at least one"),
        ({"ways": [np.mean]}, "mapping"),
        ({"ways": {"a": 3}}, "functions"),
        ({"ways": {1: np.mean}}, "texts"),
        ({"sample": [1, 2]}, "sample must be a function"),
        ({"sample": lambda rng: np.ones(9)}, "never on the data"),
        ({"truth": float("nan")}, "truth"),
        ({"truth": []}, "truth"),
        ({"truth": [1, None]}, "truth"),
        ({"truth": True}, "truth"),
        ({"runs": 1}, "runs"),
        ({"confidence": 95}, "confidence"),
        ({"truth": [0, 0]}, "estimate of 2 numbers"),
        ({"ways": {"a": lambda x: "much"}}, "estimate of one number"),
        ({"ways": {"a": lambda x: None}}, "estimate of one number"),
        ({"ways": {"a": lambda x: inference.sign_test(x, epsilon=1)}}, "estimate of one number"),
        ({"ways": {"a": lambda x: inference.mean(x, bounds=(1, 0), epsilon=1)}}, "lower below"),
    ],
)
def test_what_cannot_be_compared_is_refused(more, said):
    """With the argument and the way that is at fault."""
    given = {"ways": {"plain": np.mean}, "sample": _normal, "truth": 0, "runs": 2, **more}
    with pytest.raises(ArgumentError, match=said):
        inference.compare(**given)
