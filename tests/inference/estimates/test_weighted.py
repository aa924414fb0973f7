"""Survey weights with a declared bound: sensitivity, loss, what is estimated, and how often."""

from __future__ import annotations

import itertools
from fractions import Fraction as F
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dither import inference
from dither.errors import ArgumentError, BoundsError, QueryError
from dither.inference.engine._inputs import Bounds, target
from dither.inference.estimates._weighted import WeightedRelease
from inference.protected import session_over

ENDS = Bounds(F(-1), F(1))


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("gaussian", [False, True])
def test_no_row_moves_the_sums_further_than_is_claimed(neighbours: str, gaussian: bool) -> None:
    """Every value and weight of a grid, added or in the place of every other; the claim is used."""
    design = WeightedRelease(ENDS, F(3), target(1, F(1, 1000), neighbours), gaussian=gaussian)
    values = (-9.0, -1.0, -0.4, 0.0, 0.7, 1.0, np.nan, np.inf)
    weights = (-5.0, 0.0, 1.0, 2.5, 3.0, 1e9, np.nan)
    alone = [
        design.statistic((np.array([x]), np.array([w])))
        for x, w in itertools.product(values, weights)
    ]
    moved = alone
    if neighbours == "replace":
        moved = [
            tuple(a - b for a, b in zip(one, other, strict=True))
            for one, other in itertools.combinations(alone, 2)
        ]
    l1, l2 = max(sum(map(abs, m)) for m in moved), max(sum(v * v for v in m) for m in moved)
    times = 2 if neighbours == "replace" else 1
    assert l1 == times * F(3, 2)
    assert l2 == times * F(5, 4)
    assert design.loss.charge.epsilon <= 1


def test_sums_are_those_of_the_rows() -> None:
    """Exactly, of values and weights within their bounds and beyond."""
    rng = np.random.default_rng(0)
    x, w = rng.normal(0, 1, 500), rng.uniform(-1, 4, 500)
    design = WeightedRelease(ENDS, F(3), target(1, 0, "replace"))
    found = design.moments(np.array([float(v) for v in design.statistic((x, w))]))
    t, u = np.clip(x, -1, 1), np.clip(w, 0, 3) / 3
    truth = [u.sum(), (u * t).sum(), (u**2).sum(), (u**2 * t).sum(), (u**2 * t**2).sum()]
    assert found == pytest.approx(truth, abs=1e-3)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Values that depend on their weights: the plain mean is another."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2, 2, n)
    return x, np.where(x > 4, 1.0, 3.0) * rng.uniform(0.5, 1, n)


def test_with_next_to_no_noise_they_are_the_sample_s() -> None:
    """Mean, share and total, with half of the intervals' width from sampling alone."""
    x, w = rows(4000)
    within = {"bounds": (0, 20), "most": 3, "epsilon": 10**6}
    held = np.clip(x, 0, 20)
    for neighbours in ("replace", "add-remove"):
        mean = inference.weighted_mean(x, w, neighbours=neighbours, **within)
        assert mean.estimate == pytest.approx((w * held).sum() / w.sum(), abs=1e-3)
        total = inference.weighted_total(x, w, neighbours=neighbours, **within)
        assert total.estimate == pytest.approx((w * held).sum(), rel=1e-4)
        share = inference.weighted_proportion(
            x > 4, w, most=3, epsilon=10**6, neighbours=neighbours
        )
        assert share.estimate == pytest.approx(w[x > 4].sum() / w.sum(), abs=1e-3)
        off = mean.estimate
        linear = np.sqrt((w**2 * (held - off) ** 2).sum()) / w.sum()
        assert mean.se == pytest.approx(linear, rel=0.1)
        size = (w**2 * held**2).sum() - (len(x) * (w * held).mean() ** 2) * (
            neighbours == "replace"
        )
        assert total.se == pytest.approx(np.sqrt(size), rel=0.1)


def test_intervals_hold_the_truth() -> None:
    """The weighted mean of a law, at 95 %: false alarms of this test are below 1 in 1,000."""
    big, w = rows(10**5, 99)
    truth = float((np.clip(big, 0, 20) * w).sum() / w.sum())
    held = 0
    for seed in range(60):
        x, w = rows(400, seed)
        found = inference.weighted_mean(x, w, bounds=(0, 20), most=3, epsilon=2)
        low, high = found.simulated(draws=500).interval()
        held += low <= truth <= high
    assert held >= 49  # Binomial(60, .95) is below 49 with probability 1e-4


def test_bad_input_is_refused_by_name() -> None:
    """And data raise nothing."""
    for changed, why in (
        ({"most": 0}, "most"),
        ({"most": float("inf")}, "most"),
        ({"bounds": None}, "bounds"),
        ({"weights": [1.0]}, "as many as"),
        ({"null": "x"}, "null"),
    ):
        given = {"x": [1.0, 2.0], "weights": [1.0, 1.0], "bounds": (0, 3), "most": 2, "epsilon": 1}
        with pytest.raises(ArgumentError, match=why):
            inference.weighted_mean(**(given | changed))


def test_on_tables_it_is_that_of_the_rows_or_of_people(tmp_path: Path) -> None:
    """With next to no noise; a person's rows weigh together as their averages do."""
    x, w = rows(600)
    frame = pl.DataFrame({"pid": np.arange(600) // 2, "cost": x, "w": w, "odd": w - 1})
    columns = {"cost": {"bounds": [0, 20]}, "w": {"bounds": [0, 3]}, "odd": {"bounds": [-1, 2]}}
    held = np.clip(x, 0, 20)
    for unit in (False, True):
        folder = tmp_path / str(unit)
        folder.mkdir()
        with session_over(frame, folder, columns=columns, unit=unit) as session:
            asked = session.table("visits").infer(epsilon=10**5)
            found = asked.weighted_mean("cost", "w").release()
            assert found.estimate == pytest.approx((w * held).sum() / w.sum(), abs=0.02)
            assert found.certificate is not None
            share = asked.weighted_proportion("cost > 4", "w").release()
            assert share.estimate == pytest.approx(w[x > 4].sum() / w.sum(), abs=0.01)
            total = asked.weighted_total("cost", "w").release()
            whole = (w * held).sum() / (2 if unit else 1)
            assert total.estimate == pytest.approx(whole, rel=0.01)
            with pytest.raises(BoundsError, match="below 0"):
                asked.weighted_mean("cost", "odd")
            with pytest.raises(QueryError):
                asked.weighted_mean("cost", "nowhere")


def test_analysis_of_variance_on_tables(tmp_path: Path) -> None:
    """Welch's and the pooled one see means that differ, in all groups or in some."""
    rng = np.random.default_rng(0)
    arm = rng.choice(["a", "b", "c"], 1500)
    frame = pl.DataFrame({"arm": arm, "x": rng.normal(50, 10, 1500) + 8 * (arm == "c")})
    columns = {"arm": {"values": ["a", "b", "c"]}, "x": {"bounds": [0, 100]}}
    with session_over(frame, tmp_path, columns=columns) as session:
        asked = session.table("visits").infer(epsilon=20)
        for equal in (True, False):
            assert asked.f_oneway("x", "arm", equal_var=equal).release().pvalue < 0.01
        same = asked.f_oneway("x", "arm", levels=["a", "b"]).release()
        assert same.pvalue > 0.001
        assert "half" not in str(asked.f_oneway("x", "arm").preview([500]))
        with pytest.raises(ArgumentError, match="not a declared level"):
            asked.f_oneway("x", "arm", levels=["a", "z"])
        with pytest.raises(ArgumentError, match="at least two"):
            asked.f_oneway("x", "arm", levels=["a"])
