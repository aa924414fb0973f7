"""A radius from σ and n: the chance that it states is the chance that it has, at its edges too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dither import inference
from dither.errors import ArgumentError


def radius(n: int, **how: Any) -> inference.ClampingRadius:
    """With a deviation of 1, where nothing else is asked."""
    return inference.clamping_radius(n, **{"spread": 1, **how})


@pytest.mark.parametrize("n", [1, 7, 1000, 10**9])
@pytest.mark.parametrize("beta", [1e-9, 0.05, 0.5, 0.999])
@pytest.mark.parametrize("off", [0.0, 0.3, 8.0])
def test_a_normal_number_is_within_as_often_as_is_stated(n: int, beta: float, off: float) -> None:
    """The chance of all n, from scipy's law, is 1 - beta; never more than beta beyond."""
    found = radius(n, beta=beta, off=off)
    beyond = stats.norm.sf(found.radius, off) + stats.norm.cdf(-found.radius, off)
    chance = -math.expm1(n * math.log1p(-beyond))
    assert chance <= beta * (1 + 1e-12)
    if found.radius > off * (1 + 1e-8):  # else it is off, which is more than is asked
        assert chance == pytest.approx(beta, rel=1e-5)


@pytest.mark.parametrize("d", [2, 10, 1000])
@pytest.mark.parametrize("off", [0.0, 0.3, 8.0])
def test_so_is_a_row_of_a_ball(d: int, off: float) -> None:
    """By the noncentral χ² of scipy."""
    found = radius(200, beta=0.02, off=off, d=d, within="ball")
    beyond = stats.ncx2.sf(found.radius**2, d, off**2) if off else stats.chi2.sf(found.radius**2, d)
    assert -math.expm1(200 * math.log1p(-beyond)) == pytest.approx(0.02, rel=1e-5)


@pytest.mark.parametrize("beta", [0.05, 0.999])
@pytest.mark.parametrize("off", [0.5, 20.0])
def test_smaller_deviations_are_within_more_often(beta: float, off: float) -> None:
    """Of one number, and of rows of alike ones in a ball, where the mean is far off, too."""
    one, ball = radius(2, beta=beta, off=off), radius(2, beta=beta, off=off, d=4, within="ball")
    for spread in (1.0, 0.7, 0.2, 0.01):
        beyond = stats.norm.sf(one.radius, off, spread) + stats.norm.cdf(-one.radius, off, spread)
        assert 1 - (1 - beyond) ** 2 <= beta * (1 + 1e-9)
        away = stats.ncx2.sf((ball.radius / spread) ** 2, 4, (off / spread) ** 2)
        assert 1 - (1 - away) ** 2 <= beta * (1 + 1e-6)


def test_simulated_rows_are_within() -> None:
    """2,000 tables of normal numbers: clamped as often as beta says, ± 4 deviations."""
    rng = np.random.default_rng(3)
    found = inference.clamping_radius(50, spread=2, beta=0.3, off=1, d=3)
    # Numbers of a row depend on each other; of independent ones the chance is the same, nearly.
    rows = rng.normal(1, 2, (2000, 50, 3))
    clamped = (np.abs(rows) > found.radius).any(axis=(1, 2)).mean()
    assert abs(clamped - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 2000) + 0.01
    alike = np.repeat(rng.normal(1, 2, (2000, 50, 1)), 3, axis=2)
    assert (np.abs(alike) > found.radius).any(axis=(1, 2)).mean() < 0.3


@pytest.mark.parametrize("off", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("beta", [0.05, 0.9999])
def test_the_bias_is_that_of_clamping(off: float, beta: float) -> None:
    """Of a number: the expectation of the clamped one, by quadrature; no mean nearer has more."""
    found = radius(10, beta=beta, off=off)

    def moved(mean: float) -> float:
        cut = integrate.quad(
            lambda x: np.clip(x, *found.bounds()) * stats.norm.pdf(x, mean),
            -15,
            15,
            limit=300,
            points=found.bounds(),
        )[0]
        return abs(float(cut) - mean)

    assert moved(off) == pytest.approx(found.bias, rel=1e-4, abs=1e-7)
    assert all(moved(off * part) <= found.bias + 1e-7 for part in (-1, 0, 0.5))


def test_the_bias_in_a_ball_is_bounded() -> None:
    """20,000 rows cut to a ball that is too small: their mean moves by less; at its centre by 0."""
    rng = np.random.default_rng(4)
    found = radius(2, beta=0.9, off=2, d=5, within="ball")
    rows = rng.normal([2, 0, 0, 0, 0], 1, (20_000, 5))
    length = np.linalg.norm(rows, axis=1)
    cut = rows * np.minimum(1, found.radius / length)[:, None]
    assert 0.02 < np.linalg.norm((cut - rows).mean(axis=0)) < found.bias
    assert found.bias == pytest.approx(np.maximum(length - found.radius, 0).mean(), rel=0.1)
    assert radius(2, beta=0.9, d=5, within="ball").bias == 0


def test_what_holds_for_every_sub_gaussian_law_reaches_further() -> None:
    """Normal numbers are such, too, and reach less far."""
    for how in ({}, {"d": 20}, {"d": 20, "within": "ball"}, {"off": 2.0}, {"beta": 0.9999999}):
        sub = radius(100, law="sub-gaussian", **how)
        assert sub.radius > radius(100, **how).radius
        assert 0 < sub.bias < 0.3
    assert radius(1, law="sub-gaussian", beta=1 - 2**-53, d=9, within="ball").bias <= 3


def test_it_is_no_more_than_the_textbooks_bound() -> None:
    """σ·√(2·log(2n/β)), which is a union bound with a bound of the tail."""
    for n in (1, 100, 10**6):
        for beta in (0.5, 0.01):
            assert radius(n, beta=beta).radius < math.sqrt(2 * math.log(2 * n / beta))


@given(
    n=st.integers(1, 10**18),
    beta=st.floats(1e-200, 1 - 1e-9),
    off=st.floats(0, 1e9),
    d=st.integers(1, 5000),
    within=st.sampled_from(["box", "ball"]),
    law=st.sampled_from(["normal", "sub-gaussian"]),
)
def test_more_of_anything_needs_no_less(**how: Any) -> None:
    """Whatever is asked: finite, above off, and rising in n, off and d, and as beta falls."""
    n = how.pop("n")
    found = radius(n, **how)
    assert how["off"] <= found.radius < math.inf or how["within"] == "ball"
    assert 0 <= found.bias < math.inf
    assert str(found)
    slack = 1 + 1e-8
    assert radius(min(2 * n, 10**18), **how).radius * slack >= found.radius
    for more in ({"beta": how["beta"] / 2}, {"d": 2 * how["d"]}, {"off": 2 * how["off"]}):
        assert radius(n, **{**how, **more}).radius * slack >= found.radius


def test_it_goes_into_a_mean() -> None:
    """As bounds and as a radius; what it costs stands with it."""
    found = inference.clamping_radius(400, spread="0.5", off=1)
    rng = np.random.default_rng(5)
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    mean = inference.mean(rng.normal(7.5, 0.5, 400), bounds=found.bounds(7), epsilon=1)
    assert abs(mean.estimate - 7.5) < 0.3
    assert found.sensitivity == 2 * found.radius / 400
    ball = inference.clamping_radius(400, spread=1, d=6, within="ball").radius
    means = inference.means(rng.normal(0, 1, (400, 6)), radius=ball, **asked)
    assert np.abs(means.estimate).max() < 1


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"n": 0}, "n"),
        ({"spread": 0}, "spread"),
        ({"spread": math.inf}, "spread"),
        ({"beta": 0}, "beta"),
        ({"beta": 1}, "beta"),
        ({"off": -1}, "off"),
        ({"d": 0}, "d"),
        ({"within": "cube"}, "within"),
        ({"law": "cauchy"}, "law"),
        ({"beta": 1e-299}, "beta"),
        ({"spread": 1e-200, "off": 1e200}, "off"),
    ],
)
def test_bad_arguments_are_named(how: dict[str, Any], name: str) -> None:
    """With what was expected."""
    with pytest.raises(ArgumentError, match=name):
        inference.clamping_radius(**{"n": 100, "spread": 1, **how})
