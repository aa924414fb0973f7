"""Survival curves and the log-rank test: the counts, what they say without noise, and with it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import bounds_of, target
from dither.inference.survival._counts import SurvivalRelease, codes_of
from dither.lab.audit import Outcome, audit
from inference.neighbouring import BOTH

NAN, INF = float("nan"), float("inf")
SURE: dict[str, Any] = {"epsilon": 10**6, "draws": 300}


def followed(n: int, seed: int, scale: float = 4.0) -> tuple[Any, Any]:
    """Times of exponential events, censored at random and at 10."""
    rng = np.random.default_rng(seed)
    death, left = rng.exponential(scale, n), np.minimum(rng.uniform(0, 15, n), 10)
    return np.minimum(death, left), death <= left


def product(time: Any, event: Any, at: float) -> float:
    """Kaplan and Meier's product, by its definition."""
    found = 1.0
    for t in np.unique(time[event & (time <= at)]):
        found *= 1 - np.sum(event & (time == t)) / np.sum(time >= t)
    return found


@pytest.mark.parametrize("relation", BOTH)
def test_a_row_moves_the_counts_as_far_as_their_noise_is_made_for(relation: Any) -> None:
    """Every row of two arms for every other, with and without one beside it, all levels at once."""
    ends, bins = bounds_of("bounds", (0, 3)), 3
    cells = 2 * (2 * bins + 1)
    design = SurvivalRelease(bounds_of("", (0, cells)), cells, target(1, 0, relation))
    times = np.array([-1.0, 0.0, 1.0, 1.5, 3.0, 9.0, INF, -INF, NAN])
    codes = {
        -1 if code < 0 else arm * (2 * bins + 1) + int(code)
        for event in (0, 1)
        for arm in (0, 1)
        for code in codes_of(times, np.full(len(times), event), ends, bins)
    }

    def counted(rows: list[int]) -> Any:
        levels = design.tree.counts(design.leaves(np.array(rows, float))[None, :])
        return np.concatenate([level[0] for level in levels])

    empty = counted([-1, 4])
    gaps = [counted([code, 4]) - empty for code in codes]
    if relation == "replace":
        gaps = [counted([a, 4]) - counted([b, 4]) for a, b in itertools.product(codes, codes)]
    l1, l2 = design.tree.sensitivity(max_rows=1, max_groups=1, neighbours=design.asked.neighbours)
    assert max(np.abs(gap).sum() for gap in gaps) == l1
    assert max((gap**2).sum() for gap in gaps) == l2
    assert design.loss.charge.epsilon == 1


def test_the_audit_sees_noise_for_half_of_it() -> None:
    """The classic mistake: levels of a tree that each have noise of the whole epsilon."""
    wrong = SurvivalRelease(bounds_of("", (0, 14)), 14, target(2, 0, "add-remove"))

    def seen(codes: Any, size: int) -> Any:
        counts = np.repeat(wrong.leaves(codes)[None, :], size, axis=0)
        return np.concatenate(wrong.tree.measure(counts, wrong.noise), axis=1)

    found = audit(seen, np.array([-1.0]), np.array([13.0]), 1, samples=8_000)
    assert found.verdict is Outcome.VIOLATED


@pytest.mark.parametrize("censored", ["end", "spread"])
def test_without_noise_it_is_the_product_of_kaplan_and_meier(censored: str) -> None:
    """In whole months exactly; of continuous times, near it, and nearer than the end of bins is."""
    time, event = followed(4000, 1)
    if censored == "end":
        time = np.ceil(time)
    found = inference.kaplan_meier(time, event, bounds=(0, 10), bins=10, censored=censored, **SURE)
    truth = [product(time, event, t) for t in found.edges[1:]]
    atol = 1e-3 if censored == "end" else 4e-3
    np.testing.assert_allclose(found.estimate, truth, atol=atol)
    assert found.rows == 4000
    # Greenwood's deviation, which sampling alone has.
    np.testing.assert_allclose(found.se_sampling, found.se, rtol=0.05)


def test_heavy_censoring_within_bins_biases_nothing() -> None:
    """Three in four are censored, and bins are wide: with 200,000 rows a bias would show."""
    rng = np.random.default_rng(3)
    death, left = rng.exponential(8, 200_000), rng.exponential(2.5, 200_000)
    time, event = np.minimum(death, left), death <= left
    found = inference.kaplan_meier(time, event, bounds=(0, 8), bins=8, epsilon=3, draws=300)
    off = (found.estimate - np.exp(-found.edges[1:] / 8)) / found.se
    assert np.abs(off).max() < 4


def test_curves_fall_and_bands_hold_intervals() -> None:
    """Whatever the noise; a band is no narrower than an interval, and both lie in [0, 1]."""
    time, event = followed(300, 2)
    arm = np.arange(300) % 2
    found = inference.kaplan_meier(
        time, event, by=arm, levels=[0, 1], bounds=(0, 10), epsilon=0.5, draws=300
    )
    curves, band = found.estimate.reshape(2, -1), found.band(0.95)
    ends = found.interval(0.95).reshape(2, -1, 2)
    assert (np.diff(curves, axis=1) <= 1e-12).all()
    assert (np.diff(band, axis=1) <= 1e-12).all()
    assert ((ends >= 0) & (ends <= 1)).all()
    assert (np.diff(ends, axis=2) >= 0).all()
    frame = found.frame
    assert frame.columns[:3] == ["arm", "time", "survival"]
    assert frame.height == 40
    assert found.plot() is not None


def test_medians_lie_between_ends_of_bins() -> None:
    """With much data, where the curve crosses a half; never, where it does not."""
    time, event = followed(20_000, 5)
    found = inference.kaplan_meier(time, event, bounds=(0, 10), bins=40, epsilon=3, draws=300)
    at, low, high = found.quantile()["all"]
    assert low <= 4 * math.log(2) <= high
    assert abs(at - 4 * math.log(2)) < 0.3
    rare = inference.kaplan_meier(
        time, np.zeros(20_000), bounds=(0, 10), bins=4, epsilon=3, draws=300
    )
    assert rare.quantile()["all"] == (INF, INF, INF)
    assert "Median: not reached" in rare.summary()


def test_p_values_of_survival() -> None:
    """Small where the truth is far off, on the side that it is on."""
    time, event = followed(5000, 6)
    found = inference.kaplan_meier(
        time, event, bounds=(0, 10), bins=4, epsilon=1, null=0.9, draws=300
    )
    assert found.pvalue[1] < 0.01
    assert found.test(0.9, "less")[1] < 0.01 < found.test(0.9, "greater")[1]
    truth = float(np.exp(-5 / 4))
    assert found.test(truth)[1] > 0.01


def test_the_log_rank_test_without_noise_is_mantels() -> None:
    """The p-value of whole months is that of the hypergeometric variance, to its simulation."""
    time, event = followed(600, 7)
    time, arm = np.ceil(time), np.arange(600) % 3 == 0
    score = spread = 0.0
    for t in np.unique(time[event]):
        n, d = np.sum(time >= t), np.sum(event & (time == t))
        part = np.sum(arm & (time >= t)) / n
        score += np.sum(event & arm & (time == t)) - d * part
        spread += d * part * (1 - part) * (n - d) / max(1, n - 1)
    found = inference.logrank_test(
        time,
        event,
        arm,
        levels=[False, True],
        bounds=(0, 10),
        bins=10,
        censored="end",
        epsilon=10**6,
        seed=1,
    )
    expected = math.erfc(abs(score) / math.sqrt(2 * spread))
    assert found.pvalue == pytest.approx(expected, abs=0.04)


def test_the_log_rank_test_sees_a_difference() -> None:
    """Hazards of 3 to 2, with noise; three arms that are alike are not told apart."""
    rng = np.random.default_rng(8)
    arm = np.arange(3000) % 2
    death = rng.exponential(np.where(arm, 6, 4))
    kept: dict[str, Any] = {"bounds": (0, 10), "epsilon": 1, "draws": 300, "seed": 1}
    found = inference.logrank_test(np.minimum(death, 10), death <= 10, arm, levels=[0, 1], **kept)
    assert found.pvalue < 0.02
    time, event = followed(3000, 9)
    same = inference.logrank_test(time, event, np.arange(3000) % 3, levels=[0, 1, 2], **kept)
    assert same.pvalue > 0.02
    assert 0 < same.noise_share < 1


def coverage(runs: int, n: int) -> tuple[float, float, float]:
    """How often intervals and bands hold, and a true null is rejected."""
    rng = np.random.default_rng(4)
    point, band, wrong = [], 0, 0
    for _ in range(runs):
        death, left = 5 * rng.weibull(1.5, n), rng.uniform(0, 15, n)
        end = np.minimum(left, 10)
        time, event, arm = np.minimum(death, end), death <= end, rng.random(n) < 0.4
        asked: dict[str, Any] = {"levels": [False, True], "bounds": (0, 10), "bins": 10}
        asked |= {"epsilon": 1, "draws": 200, "neighbours": "add-remove"}
        found = inference.kaplan_meier(time, event, by=arm, **asked)
        truth = np.tile(np.exp(-((found.edges[1:] / 5) ** 1.5)), 2)
        ends, wide = found.interval(0.95), found.band(0.95).reshape(-1, 2)
        point.append(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
        band += bool(np.all((wide[:, 0] <= truth) & (truth <= wide[:, 1])))
        wrong += inference.logrank_test(time, event, arm, seed=rng, **asked).pvalue <= 0.05
    return float(np.mean(point)), band / runs, wrong / runs


def test_intervals_hold() -> None:
    """24 runs of 800 people: fewer than 19 bands that hold would be one chance in 1,000."""
    point, band, wrong = coverage(24, 800)
    assert point > 0.9
    assert band >= 19 / 24
    assert wrong <= 6 / 24


@pytest.mark.slow
def test_intervals_hold_often() -> None:
    """150 runs: three deviations about .95, and above it where noise hides the curve's end."""
    point, band, wrong = coverage(150, 800)
    assert 0.92 < point < 0.995
    assert band > 0.895
    assert wrong < 0.105


@pytest.mark.parametrize("time", [[], [3.0], [None] * 9, [INF] * 30, [-INF, NAN, 1e308] * 9])
@pytest.mark.parametrize("neighbours", BOTH)
def test_no_data_raise_anything(time: list[Any], neighbours: Any) -> None:
    """No rows, one, missing times, events that are missing, arms that nobody declared."""
    n = len(time)
    arm = (["a", "b", None, ["odd"]] * n)[:n]
    asked: dict[str, Any] = {"bounds": (0, 9), "bins": 4, "epsilon": 0.3, "draws": 100}
    asked |= {"neighbours": neighbours, "levels": ["a", "b"]}
    events = [None, True] * n
    found = inference.kaplan_meier(time, events[:n], by=arm, **asked)
    ends = found.interval()
    assert ((ends >= 0) & (ends <= 1)).all()
    assert "nan" not in found.summary()
    tested = inference.logrank_test(time, [True] * n, arm, **asked)
    assert 0 < tested.pvalue <= 1


def test_arguments_are_checked() -> None:
    """Before any data are read."""
    for more, told in (
        ({"bounds": None}, "bounds must be given"),
        ({"bins": 1}, "bins"),
        ({"bins": 501}, "bins"),
        ({"censored": "never"}, "censored"),
        ({"levels": ["a", "b"]}, "by and levels go together"),
        ({"by": ["a"], "levels": ["a"]}, "levels must be at least two"),
        ({"by": ["a", "b"], "levels": ["a", "b"]}, "equally many rows"),
        ({"by": ["a"], "levels": [*"abcdefghij"], "bins": 400}, "bins must be fewer"),
        ({"null": 1}, "null"),
        ({"epsilon": 0}, "epsilon"),
        ({"draws": 5}, "draws"),
    ):
        given: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1, **more}
        with pytest.raises(ArgumentError, match=told):
            inference.kaplan_meier([0.5], [True], **given)
    with pytest.raises(ArgumentError, match="by and levels"):
        inference.logrank_test([0.5], [True], None, levels=["a", "b"], bounds=(0, 1), epsilon=1)


def test_a_table_of_a_curve_has_its_band() -> None:
    """And no p-value at each time, of a survival that nobody asked about."""
    time, event = followed(300, 2)
    found = inference.kaplan_meier(time, event, bounds=(0, 10), bins=4, epsilon=1, draws=200)
    heads, rows, _ = found._printed(0.9)
    assert heads == ["arm", "time", "survival", "90 % interval", "90 % band"]
    assert [row[1] for row in rows] == ["2.5", "5", "7.5", "10"]
    band = found.band(0.9)[0]
    for row, (low, high) in zip(rows, band, strict=True):
        first, last = map(float, row[4].split(" to "))
        assert first <= low <= high <= last
    assert "arm & time & survival" in found.to_latex(0.9)
