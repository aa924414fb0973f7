"""What every function of the package gives, whatever it is asked and whatever the rows hold."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.errors import ArgumentError
from dither.inference import PrivateDescription, PrivateTest
from dither.inference.engine import _simulation
from dither.inference.engine._errors import Errors, SimulatedErrors
from dither.inference.engine._inputs import target
from dither.inference.engine._result import PrivateResult
from dither.inference.estimates._proportion import CanonicalNoise

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Rows:
    """The same kind of rows in each of the forms that functions take."""

    x: list[Any]
    y: list[Any]
    many: np.ndarray[Any, Any]
    signs: np.ndarray[Any, Any]
    groups: list[Any]
    yes: list[Any]
    no: list[Any]


def sampled(n: int) -> Rows:
    """Such as people bring."""
    rng = np.random.default_rng(0)
    x = rng.normal(4, 1, n)
    return Rows(
        x.tolist(),
        (x / 2 + rng.normal(3, 1, n)).tolist(),
        rng.normal(0, 1, (n, 3)),
        rng.choice([-1, 1], (n, 4)),
        rng.integers(0, 3, n).tolist(),
        (rng.random(n) < 0.4).tolist(),
        (rng.random(n) < 0.6).tolist(),
    )


def hostile(n: int) -> Rows:
    """NaN, missing, infinite and huge, in the place of numbers."""
    values = ([NAN, None, INF, -INF, 1e308, -1e308, 3.0] * n)[:n]
    many = np.array([[NAN, INF, -1e308]] * n).reshape(n, 3)
    rows = sampled(n)
    return Rows(values, values[::-1], many, rows.signs, [None] * n, [None] * n, [True] * n)


def quick(found: Any) -> Any:
    """The same with few simulations."""
    return (
        found.simulated(draws=200)
        if hasattr(found, "simulated") and callable(found.simulated)
        else found
    )


BOUNDS = (0, 9)
REGRESSION = {"epsilon": 1, "delta": 1e-6}

DOORS: dict[str, Callable[..., Any]] = {
    "covariance": lambda r, **k: inference.covariance(r.many, radius=4, epsilon=1, delta=1e-6, **k),
    "describe": lambda r, **k: inference.describe(
        {"x": r.x, "g": r.groups, "yes": r.yes},
        by="g",
        bounds={"x": BOUNDS},
        levels={"g": [0, 1, 2], "yes": [False, True]},
        epsilon=1,
        bins=16,
        **k,
    ),
    "difference": lambda r, **k: inference.difference(r.x, r.y, bounds=BOUNDS, epsilon=1, **k),
    "f_oneway": lambda r, **k: inference.f_oneway(r.x, r.y, r.x, bounds=BOUNDS, epsilon=1, **k),
    "goodness_of_fit": lambda r, **k: inference.goodness_of_fit(
        r.groups, categories=[0, 1, 2], epsilon=1, **k
    ),
    "identity_test": lambda r, **k: inference.identity_test(r.signs, epsilon=1, **k),
    "independence_test": lambda r, **k: inference.independence_test(
        r.groups, r.yes, x_categories=[0, 1, 2], y_categories=[False, True], epsilon=1, **k
    ),
    "kaplan_meier": lambda r, **k: inference.kaplan_meier(
        r.x, r.yes, by=r.groups, levels=[0, 1, 2], bounds=BOUNDS, epsilon=1, **k
    ),
    "kendalltau": lambda r, **k: inference.kendalltau(r.x, r.y, epsilon=1, **k),
    "kruskal": lambda r, **k: inference.kruskal(r.x, r.y, epsilon=1, **k),
    "ks_1samp": lambda r, **k: inference.ks_1samp(r.x, stats.norm(4, 1).cdf, epsilon=1, **k),
    "ks_2samp": lambda r, **k: inference.ks_2samp(r.x, r.y, epsilon=1, **k),
    "linear_regression": lambda r, **k: inference.linear_regression(
        "y ~ x", {"x": r.x, "y": r.y}, bounds={"x": BOUNDS, "y": BOUNDS}, **REGRESSION, **k
    ),
    "logistic_regression": lambda r, **k: inference.logistic_regression(
        "yes ~ x", {"x": r.x, "yes": r.no}, bounds={"x": BOUNDS}, **REGRESSION, **k
    ),
    "logrank_test": lambda r, **k: inference.logrank_test(
        r.x, r.yes, r.groups, levels=[0, 1, 2], bounds=BOUNDS, bins=8, epsilon=1, **k
    ),
    "mannwhitneyu": lambda r, **k: inference.mannwhitneyu(r.x, r.y, epsilon=1, **k),
    "mantel_haenszel": lambda r, **k: inference.mantel_haenszel(
        r.yes, r.no, r.groups, categories=[0, 1, 2], epsilon=1, **k
    ),
    "mean": lambda r, **k: inference.mean(r.x, bounds=BOUNDS, epsilon=1, **k),
    "means": lambda r, **k: inference.means(r.many, radius=4, epsilon=1, delta=1e-6, **k),
    "odds_ratio": lambda r, **k: inference.odds_ratio(r.yes, r.no, epsilon=1, null=2.0, **k),
    "pearsonr": lambda r, **k: inference.pearsonr(r.x, r.y, epsilon=1, **k),
    "proportion": lambda r, **k: inference.proportion(r.yes, epsilon=1, **k),
    "quantiles": lambda r, **k: inference.quantiles(
        r.x, [0.25, 0.5], bounds=BOUNDS, epsilon=1, bins=64, **k
    ),
    "rate": lambda r, **k: inference.rate(
        r.yes, r.x, most_time=9, by=r.groups, levels=[0, 1, 2], epsilon=1, **k
    ),
    "rate_ratio": lambda r, **k: inference.rate_ratio(
        r.x,
        r.y,
        r.no,
        levels=[False, True],
        most_events=9,
        most_time=9,
        epsilon=1,
        family="negative-binomial",
        **k,
    ),
    "sign_test": lambda r, **k: inference.sign_test(r.x, 4, epsilon=1, **k),
    "sparse_mean": lambda r: inference.sparse_mean(r.many, radius=4, s=1, epsilon=1, delta=1e-6),
    "standardised_rate": lambda r, **k: inference.standardised_rate(
        r.yes, r.x, r.groups, weights={0: 1, 1: 2, 2: 3}, most_time=9, epsilon=1, **k
    ),
    "standardised_ratio": lambda r, **k: inference.standardised_ratio(
        r.yes, r.x, r.groups, reference={0: 0.1, 1: 0.2, 2: 0.3}, most_time=9, epsilon=1, **k
    ),
    "test_of_tests": lambda r, **k: inference.test_of_tests(
        lambda x: stats.ttest_1samp(x, 4).pvalue, np.array(r.x, float), epsilon=1, **k
    ),
    "truncated_mean_as_printed": lambda r: inference.truncated_mean_as_printed(
        r.many, radius=4, epsilon=1, delta=1e-6
    ),
    "ttest_1samp": lambda r, **k: inference.ttest_1samp(r.x, 4, bounds=BOUNDS, epsilon=1, **k),
    "ttest_ind": lambda r, **k: inference.ttest_ind(r.x, r.y, bounds=BOUNDS, epsilon=1, **k),
    "ttest_rel": lambda r, **k: inference.ttest_rel(r.x, r.y, bounds=(-9, 9), epsilon=1, **k),
    "two_proportions": lambda r, **k: inference.two_proportions(r.yes, r.no, epsilon=1, **k),
    "uniformity_test": lambda r, **k: inference.uniformity_test(
        r.groups, categories=[0, 1, 2], epsilon=1, **k
    ),
    "weighted_mean": lambda r, **k: inference.weighted_mean(
        r.x, r.y, bounds=BOUNDS, most=9, epsilon=1, **k
    ),
    "weighted_proportion": lambda r, **k: inference.weighted_proportion(
        r.yes, r.y, most=9, epsilon=1, **k
    ),
    "weighted_total": lambda r, **k: inference.weighted_total(
        r.x, r.y, bounds=BOUNDS, most=9, epsilon=1, **k
    ),
    "wilcoxon": lambda r, **k: inference.wilcoxon(r.x, epsilon=1, **k),
    "ztest": lambda r, **k: inference.ztest(r.x, value=4, sigma=1, epsilon=1, **k),
}
"""By name: a release of rows, for neighbours where they can be chosen."""

WITHOUT_DATA = {
    "adjust_pvalues",
    "clamping_radius",
    "compare",
    "cost_of_privacy",
    "forest_plot",
    "samples_needed",
}
"""What reads no rows, and so releases nothing."""

OF_ALL = ("summary", "plot", "loss", "cost", "assumptions", "notes")
OF_TESTS = ("statistic", "pvalue", "null", "rejects")
OF_ESTIMATES = ("estimate", "se", "se_sampling", "se_privacy", "interval", "pvalue")


def test_every_function_is_here() -> None:
    """So that an addition is held to the same."""
    public = {n for n in inference.__all__ if inspect.isfunction(getattr(inference, n))}
    assert public == set(DOORS) | WITHOUT_DATA


@pytest.mark.filterwarnings("ignore:.*(small|zero|precision)")
@pytest.mark.parametrize("name", DOORS)
def test_every_result_has_what_results_have(name: str) -> None:
    """A cost, a summary and a picture; of a test its p-value, of an estimate all its errors."""
    found = quick(DOORS[name](sampled(60)))
    assert isinstance(found, PrivateResult)
    assert all(hasattr(found, part) for part in OF_ALL)
    assert found.loss.charge.epsilon is not None
    assert found.assumptions
    shown = found.summary()
    assert "Cost: " in shown
    assert "Assumes: " in shown
    frame = found.to_frame(0.9)
    assert frame.height
    assert set(frame.columns) & {"estimate", "statistic"}
    assert found.to_latex(label="tab:one").count(r"\\") == found.to_html().count("<tr>")
    if isinstance(found, PrivateDescription):
        return
    if isinstance(found, PrivateTest):
        assert all(hasattr(found, part) for part in OF_TESTS)
        assert 0 <= found.noise_share <= 1
    else:
        assert all(hasattr(found, part) for part in OF_ESTIMATES)
    assert "The noise makes " in shown


@pytest.mark.parametrize("name", DOORS)
def test_no_rows_raise_anything(name: str) -> None:
    """None at all, and values that are missing, infinite or huge."""
    door = DOORS[name]
    sides = ("replace", "add-remove") if len(inspect.signature(door).parameters) > 1 else (None,)
    if name == "test_of_tests":
        sides = ("replace",)  # with private n it wants blocks; what it wraps is the caller's
    for side, rows in zip(sides, (sampled(0), hostile(9)), strict=False):
        found = quick(door(rows, **({} if side is None else {"neighbours": side})))
        assert "nan" not in found.summary().lower()
        assert "nan" not in found.to_latex().lower()
        if isinstance(found, PrivateDescription):
            continue
        assert ((np.asarray(found.pvalue) >= 0) & (np.asarray(found.pvalue) <= 1)).all()
        if hasattr(found, "interval"):
            ends = np.atleast_2d(np.asarray(found.interval(0.9), float))
            assert (ends[:, 0] <= ends[:, 1]).all()


MORE: dict[str, Callable[..., Any]] = {
    "mean, normal": lambda r, **k: inference.mean(r.x, bounds=BOUNDS, shape="normal", **k),
    "difference, normal": lambda r, **k: inference.difference(
        r.x, r.y, bounds=BOUNDS, shape="normal", **k
    ),
    "means in a box": lambda r, **k: inference.means(r.many, bounds=(-4, 4), **k),
    "peeling": lambda r, **k: inference.sparse_mean(
        r.many, radius=4, s=1, method="peeling", delta=1e-6, **k
    ),
    "risks": lambda r, **k: inference.mantel_haenszel(
        r.yes, r.no, r.groups, categories=[0, 1, 2], measure="risk", **k
    ),
    "components": lambda r, **k: inference.covariance(r.many, radius=4, delta=1e-6, **k).components(
        2
    )[0],
    "a further row": lambda r, **k: inference.linear_regression(
        "y ~ x", {"x": r.x, "y": r.y}, bounds={"x": BOUNDS, "y": BOUNDS}, **k
    ).predict({"x": [1.0, 2.0]}, new=True),
}
"""Other ways of the same."""


@pytest.mark.filterwarnings("ignore:.*(small|zero|precision)")
@pytest.mark.parametrize("name", [*DOORS, *MORE])
def test_every_result_can_be_copied_and_pickled(name: str) -> None:
    """Whether its errors were simulated before or not, it is the same, and simulates anew."""
    rows = sampled(60)
    found = quick(MORE[name](rows, epsilon=1) if name in MORE else DOORS[name](rows))
    twins = [pickle.loads(pickle.dumps(found)), copy.deepcopy(found), copy.copy(found)]
    shown = found.summary()
    twins += [pickle.loads(pickle.dumps(found)), copy.deepcopy(found)]
    for twin in twins:
        assert type(twin) is type(found)
        assert twin.summary() == shown
        if not isinstance(found, PrivateDescription):
            np.testing.assert_array_equal(twin.pvalue, found.pvalue)
        if hasattr(found, "interval"):
            np.testing.assert_array_equal(twin.interval(0.8), found.interval(0.8))
        if callable(getattr(found, "simulated", None)):
            again = [one.simulated(draws=200, seed=4).interval() for one in (twin, found)]
            np.testing.assert_array_equal(*again)


def test_a_test_says_what_estimates() -> None:
    """It has no interval, and says so rather than that there is no such attribute."""
    found = DOORS["ttest_ind"](sampled(60))
    with pytest.raises(AttributeError, match="is what mean, proportion, difference"):
        _ = found.interval
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = found.nothing


@pytest.mark.parametrize(
    ("name", "null", "far"), [("mean", 4.0, 6.0), ("proportion", 0.5, 0.95), ("quantiles", 0, 9)]
)
def test_power_rises_from_the_level(name: str, null: float, far: float) -> None:
    """It is the level where the null is true, and nearly one far away; nothing is charged."""
    asked: dict[str, Any] = {} if name == "quantiles" else {"null": null}
    rows = sampled(400)
    if name == "quantiles":
        found = DOORS[name](rows)
    elif name == "mean":
        found = inference.mean(rows.x, bounds=BOUNDS, epsilon=1, **asked)
    else:
        found = inference.proportion(rows.yes, epsilon=1, **asked)
    for level in (0.05, 0.2):
        np.testing.assert_allclose(found.power(null, level=level), level, atol=0.02)
    assert np.all(np.asarray(found.power(far)) > 0.99)


def test_power_of_coefficients() -> None:
    """One truth each, or one for all; no more than the level where an interval has no end."""
    rows = sampled(20_000)
    for name in ("linear_regression", "logistic_regression"):
        found = DOORS[name](rows)
        np.testing.assert_allclose(found.power(0.0), 0.05)
        near, far = found.power([0.0, 1e3])
        assert near == pytest.approx(0.05)
        assert far == pytest.approx(1.0)
        with pytest.raises(ArgumentError, match="truth must be one number, or 2"):
            found.power([1.0, 2.0, 3.0])
        nothing = DOORS[name](sampled(0))
        endless = np.isinf(nothing.interval()).any(axis=1)
        np.testing.assert_allclose(nothing.power(1.0)[endless], 0.05)


def test_residuals_that_noise_hides_are_not_shown() -> None:
    """Noise that is larger than they are leaves a variance of 0, which would be read as a fit."""
    found = DOORS["linear_regression"](sampled(400))
    hidden = replace(found, scale=0.0, rsquared=0.0).summary()
    assert "R² and residuals are hidden by the noise." in hidden
    assert "residual standard deviation" not in hidden
    assert "R² and residuals are hidden" not in replace(found, scale=0.5).summary()


def test_simulations_show_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where somebody watches, once patience ends; else nothing is written."""

    def work() -> str:
        simulated = DOORS["linear_regression"](sampled(400)).simulated(draws=200)
        assert len(simulated.interval()) == 2
        inference.samples_needed("sign_test", epsilon=1, distance=0.5, draws=100)
        return capsys.readouterr().err

    monkeypatch.setattr(_simulation, "_PATIENCE", -1.0)
    assert work() == ""
    monkeypatch.setattr(_simulation, "_watched", lambda: True)
    written = work()
    assert "simulated coefficients: 2 of 2" in written
    assert "rows needed: trying " in written


def test_the_share_of_noise_is_what_simulation_gives() -> None:
    """Of a test whose null has a variance in a formula; more epsilon leaves noise less."""
    rows = sampled(400)
    found = inference.sign_test(rows.x, 4, epsilon=1)
    noise = CanonicalNoise(target(1, 0, "replace")).variance
    assert found.noise_share == pytest.approx(noise / (noise + 100), rel=0.1)
    shares = [
        inference.ztest(rows.x, value=4, sigma=1, epsilon=e).noise_share for e in (0.02, 1, 10)
    ]
    assert shares[0] > 0.9 > shares[1] > shares[2]
    assert shares[2] < 0.05


def test_power_is_that_of_the_errors() -> None:
    """Of normal errors it is the normal law's, simulated or not."""
    places = (np.arange(20_000) + 0.5) / 20_000
    draws = 2.0 * stats.norm.ppf(places)[:, None]
    one = np.ones(1)
    errors = SimulatedErrors(3 * one, draws, draws)
    for truth in (0.0, 1.0, -4.0, 6.0):
        reach, off = stats.norm.ppf(0.95), truth / 2.0
        exact = stats.norm.cdf(off - reach) + stats.norm.cdf(-off - reach)
        assert errors.power(truth * one, 0 * one, 0.1) == pytest.approx(exact, abs=1e-3)
        assert Errors.power(errors, truth * one, 0 * one, 0.1) == pytest.approx(exact, abs=1e-3)
