"""Expectation maximisation: its products, its maximum, its stop, and what its result tells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import local
from dither.errors import ArgumentError
from dither.examples.paper import formulas
from dither.local._numbers.em import em
from dither.local._numbers.linear import DenseMatrix
from dither.local._numbers.solvers import Factor, solve

INTERVAL = local.Interval(-1, 1, steps=128)
BELL = np.round(20_000 * np.exp(-((INTERVAL.points - 0.3) ** 2) / 0.08)).astype(int)


def _drawn(channel: local.FiniteChannel, histogram: object = BELL, seed: int = 1) -> object:
    return local.simulate(channel, histogram, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "channel",
    [
        local.PM(INTERVAL, 1),
        local.SW(INTERVAL, 1),
        local.Duchi(INTERVAL, 1),
        local.Hybrid(INTERVAL, 1),
        local.SDPM(INTERVAL, (-0.5, 0.5), 1),
        local.LatticeLaplace(INTERVAL, 4),
    ],
    ids=lambda c: c.kind,
)
def test_fast_rounds_are_the_matrix_rounds(channel: local.FiniteChannel) -> None:
    """Forty rounds without the matrix end where forty with it do."""
    drawn = _drawn(channel)
    fast = drawn.estimate(
        method="likelihood", bins=129, max_iterations=40, tolerance=1e-12, smooth=False
    )
    plain = solve([Factor(DenseMatrix(channel.matrix), drawn.counts)], 1e-12, 40)
    np.testing.assert_allclose(fast.shares, plain.shares, atol=1e-9)
    assert fast.iterations == plain.iterations == 40
    assert not fast.converged
    assert fast.shares.sum() == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.sampled_from([1, 3]))
def test_likelihood_never_falls(counts: list[int], epsilon: int) -> None:
    """Each round keeps or raises it, sped up or not, and the leaps end no lower."""
    if sum(counts) == 0:
        counts = [1, 0, 0, 0]
    part = Factor(DenseMatrix(local.GRR(4, epsilon).matrix), np.array(counts))
    reached = [solve([part], 1e-300, rounds).log_likelihood for rounds in range(1, 30)]
    assert np.all(np.diff(reached) >= -1e-12)
    assert solve([part], 1e-300, 300, fast=True).log_likelihood >= reached[-1] - 1e-12


def test_the_maximum_is_the_inverse_where_that_is_plausible() -> None:
    """For GRR with all raw shares positive, the likelihood's top is the raw estimate."""
    channel = local.GRR(5, 1)
    drawn = _drawn(channel, np.array([40_000, 30_000, 20_000, 15_000, 9_000]))
    raw = drawn.estimate().shares
    assert raw.min() > 0
    found = drawn.estimate(method="likelihood", tolerance=1e-15)
    np.testing.assert_allclose(found.shares, raw, atol=1e-5)
    np.testing.assert_allclose(
        drawn.estimate(
            method="likelihood",
        ).shares,
        raw,
        atol=1e-3,
    )
    assert found[3] == found.shares[3]


def test_any_matrix_will_do() -> None:
    """SDGRR and URR: the pooled maximum is at least as likely as the clipped raw shares."""
    histogram = np.array([5_000, 3_000, 200, 0, 1_800])
    for channel in (local.SDGRR(5, {0, 4}, 1), local.URR(5, {0, 4}, 1)):
        drawn = _drawn(channel, histogram)
        found = drawn.estimate(method="likelihood")
        clipped = np.maximum(drawn.estimate().shares, 1e-12)
        chances = clipped / clipped.sum() @ channel.matrix
        seen = drawn.counts > 0
        rival = drawn.counts[seen] / drawn.n @ np.log(chances[seen])
        assert found.log_likelihood >= rival - 1e-7
        assert np.abs(found.shares - histogram / histogram.sum()).max() < 0.1


def test_bins_align_and_straddle() -> None:
    """Aligned bins of reports are the points' on the low range; one that straddles averages."""
    channel = local.SDPM(local.Interval(-1, 1, steps=15), (-0.6, 0.6), 1)
    linear = channel.linear(4, "aligned")
    matrix = channel.matrix
    groups = [range(4 * b, 4 * b + 4) for b in range(4)]
    offset = channel.law.offset
    rows = np.array([linear.forward(one) for one in np.eye(4)])
    straddling = matrix[list(groups[0])].mean(axis=0)
    assert channel.low[list(groups[0])].tolist() == [False, False, False, True]
    begin = int(np.searchsorted(linear.fine[linear.edges], offset))
    assert linear.fine[linear.edges][begin] == offset
    for b, group in enumerate(groups):
        expected = straddling[offset + group[0] : offset + group[-1] + 1].sum()
        assert rows[0, begin + b] == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ArgumentError, match="aligned"):
        local.PM(INTERVAL, 1).linear(4, "aligned")


def test_the_stop_regularises() -> None:
    """Without an early stop the estimate follows the noise; with it or smoothing, the bell."""
    drawn = _drawn(local.SW(INTERVAL, 1), BELL // 20)
    truth = BELL / BELL.sum()

    def off(**options: object) -> float:
        found = drawn.estimate(method="likelihood", bins=129, **options)
        return float(np.abs(found.shares - truth).sum())

    early = off(smooth=False)
    smooth, late = off(), off(smooth=False, tolerance=1e-13, max_iterations=5000)
    assert smooth < early < late
    assert smooth < 0.5 * late


def test_the_papers_rule_answers_the_middle() -> None:
    """At epsilon 0.1 one round of PM gains less than the paper's tolerance per report."""
    drawn = _drawn(local.PM(INTERVAL, 0.1))
    found = drawn.estimate(method="likelihood", tolerance=formulas.paper_tolerance(0.1))
    assert found.iterations == 1
    assert abs(found.mean) < 0.01
    truth = BELL @ INTERVAL.points / BELL.sum()
    assert (found.mean - truth) ** 2 == pytest.approx(formulas.midpoint_error(truth), rel=0.05)
    assert formulas.midpoint_error(0.3) == pytest.approx(0.09)


def test_early_stops_bias_towards_the_middle() -> None:
    """EM's mean of PM lies nearer to the middle than the truth does, on average over surveys."""
    channel, truth = local.PM(INTERVAL, 0.5), BELL @ INTERVAL.points / BELL.sum()
    means = [
        _drawn(channel, BELL // 20, seed)
        .estimate(method="likelihood", bins=32, tolerance=1e-4)
        .mean
        for seed in range(20)
    ]
    assert 0 < np.mean(means) < 0.9 * truth


def test_several_channels_pool_into_one_likelihood() -> None:
    """Reports of PM and SW over one interval give one distribution; unlike intervals do not."""
    a, b = _drawn(local.PM(INTERVAL, 2)), _drawn(local.SW(INTERVAL, 2), seed=2)
    found = em([a, b], smooth=True)
    assert found.n == a.n + b.n
    assert found.kinds == ("pm", "sw")
    assert abs(found.mean - BELL @ INTERVAL.points / BELL.sum()) < 0.02
    other = local.PM(local.Interval(-2, 1, steps=128), 2).aggregate([1, 2])
    for wrong in (other, local.GRR(129, 1).aggregate([1])):
        with pytest.raises(ArgumentError, match="same"):
            em([a, wrong])
    with pytest.raises(ArgumentError, match="same domain"):
        em([local.GRR(3, 1).aggregate([1]), local.GRR(4, 1).aggregate([1])])


def test_the_result_tells_what_it_rests_on() -> None:
    """Bins, tolerance, rounds and likelihood are in the result, and in its summary."""
    drawn = _drawn(local.SW(INTERVAL, 1))
    found = drawn.estimate(method="likelihood", bins=20, outputs=30)
    assert (found.bins, found.outputs, found.smooth) == (20, (30,), True)
    assert found.tolerance == pytest.approx(1e-3 * np.e / drawn.n)
    assert found.converged
    assert 0 < found.iterations < 10_000
    chances = drawn.channel.linear(20, 30)
    likely = chances.group(drawn.counts) / drawn.n @ np.log(chances.forward(found.shares))
    assert found.log_likelihood == pytest.approx(likely)
    assert found.edges[[0, -1]].tolist() == [-1, 1]
    assert found.centres.shape == (20,)
    assert found.variance == pytest.approx(found.shares @ found.centres**2 - found.mean**2)
    assert found.quantile(0) == -1
    assert found.quantile(1) == 1
    assert abs(found.quantile(0.5) - 0.3) < 0.05
    assert found.frame.columns == ["lower", "upper", "share"]
    assert found.frame.height == 20
    for word in ("EMS", "20 bins", "rounds", "quartiles", "Biased"):
        assert word in found.summary()
    capped = drawn.estimate(method="likelihood", max_iterations=2)
    assert "greatest number" in capped.summary()
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        found.quantile(2)


def test_a_list_has_shares_and_no_mean() -> None:
    """Of GRR, say: values, their shares, and a refusal of what only numbers have."""
    drawn = _drawn(local.GRR(["a", "b", "c"], 2), np.array([700, 200, 100]))
    found = drawn.estimate(method="likelihood")
    assert found.frame.columns == ["value", "share"]
    assert "a " in found.summary()
    with pytest.raises(ArgumentError, match="not of numbers"):
        _ = found.mean
    with pytest.raises(ArgumentError, match="domain"):
        _ = found["d"]
    with pytest.raises(ArgumentError, match="leave them out"):
        drawn.estimate(method="likelihood", bins=2)


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 1},
        {"bins": 130},
        {"bins": 2.5},
        {"outputs": 1},
        {"outputs": 10**6},
        {"outputs": "all"},
        {"tolerance": 0},
        {"tolerance": float("nan")},
        {"tolerance": "small"},
        {"max_iterations": 0},
        {"max_iterations": 1.5},
    ],
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    """Every option has its range."""
    with pytest.raises(ArgumentError, match=next(iter(options))):
        _drawn(local.PM(INTERVAL, 1)).estimate(method="likelihood", **options)  # type: ignore[arg-type]


def test_nothing_to_read_is_refused() -> None:
    """No reports, or a channel without a matrix."""
    with pytest.raises(ArgumentError, match="no reports"):
        local.PM(INTERVAL, 1).aggregate([]).estimate(method="likelihood")
    hashed = local.OLH(10, 1)
    with pytest.raises(ArgumentError, match="matrix"):
        hashed.aggregate(hashed.privatize([1, 2])).estimate(method="likelihood")


@pytest.mark.parametrize("kind", ["numbers", "list", "means"])
def test_pictures(kind: str, tmp_path: object) -> None:
    """Each result draws itself and saves the picture."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.png"  # type: ignore[operator]
    if kind == "numbers":
        found = _drawn(local.SW(INTERVAL, 1)).estimate(method="likelihood", bins=129)
        found.plot(path, truth=BELL / BELL.sum())
    elif kind == "list":
        _drawn(local.GRR(3, 1), np.array([70, 20, 10])).estimate(method="likelihood").plot(path)
    else:
        _drawn(local.PM(INTERVAL, 1)).estimate().plot(path)
    assert path.stat().st_size > 5_000
    with pytest.raises(ArgumentError, match="truth"):
        _drawn(local.GRR(3, 1), np.array([7, 2, 1])).estimate(method="likelihood").plot(truth=[1.0])
