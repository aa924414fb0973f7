"""Personalised classes: each person's promise, and the two ways of combining what they report."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.numeric import SimulatedWords
from local.laws import check_wire

EA = np.array(
    [4.4, 3.2, 1.7, 1.7, 7.0, 11.4, 3.9, 4.2, 4.0, 2.9, 22.5, 14.5, 2.6, 2.2, 9.2, 3.1, 1.0, 0.5]
)
INTERVAL = local.Interval(-1, 1, steps=128)
SPLIT = (0.4, 0.3, 0.3)


def _lists(epsilon: float) -> local.Personalised:
    return local.Personalised(
        {f"{h} high": local.SDGRR(18, set(range(h)), epsilon) for h in (4, 9, 14)}
    )


def _numbers(epsilon: float) -> local.Personalised:
    return local.Personalised(
        {f"to {c}": local.SDPM(INTERVAL, (-c, c), epsilon) for c in (0.75, 0.5, 0.25)}
    )


def _histogram(shares: np.ndarray, n: int) -> np.ndarray:
    return np.concatenate([np.round(n * part * shares / shares.sum()) for part in SPLIT]).astype(
        int
    )


def test_each_person_has_the_promise_of_the_chosen_class() -> None:
    """Within a class its own matrix; between classes nothing, and the assumption is told."""
    channel = _lists(1)
    found = channel.guarantee
    assert len(found.classes) == 6
    for name, one in zip(channel.names, channel.channels, strict=True):
        for (a, b), pair in one.guarantee.pairs.items():
            assert found.pairs[f"{name}: {a}", f"{name}: {b}"] == pair
    assert found.pairs["4 high: low", "9 high: low"].delta == 1
    assert "does not depend on the value" in str(found)


def test_reports_carry_the_class() -> None:
    """A report is a place in the joint list: the class, then the class's own report."""
    channel = _numbers(1)
    values, names = np.linspace(-1, 1, 3000), np.repeat(channel.names, 1000).tolist()
    codes = channel.encode(values, names, SimulatedWords(1))
    reports = channel.draw(codes, SimulatedWords(2))
    parts = channel.split(channel.aggregate(reports))
    assert [part.n for part in parts.values()] == [1000] * 3
    for i, one in enumerate(channel.channels):
        mine = codes[1000 * i : 1000 * (i + 1)] - 129 * i
        assert np.all(np.abs(one.interval.points[mine] - values[1000 * i :][:1000]) <= 1 / 64)
    assert isinstance(channel.privatize(0.3, "to 0.5"), int)
    assert channel.privatize([0.3, 0.4], "to 0.5").shape == (2,)


def test_the_wire() -> None:
    """The channel with all its classes survives JSON, and so do aggregates."""
    lists = _lists(0.5)
    check_wire(lists, lists.privatize([1, 2, 17, 4], [*lists.names, lists.names[0]]))
    numbers = _numbers(1)
    again = local.channel_from_dict(json.loads(json.dumps(numbers.to_dict())))
    assert again == numbers
    assert again.hash == numbers.hash != _numbers(2).hash


def test_weights_are_as_the_paper_meant() -> None:
    """n_i/σ_i², for every value; the combined variance is that of the best linear mix."""
    channel, n = _lists(1), 60_000
    drawn = local.simulate(channel, _histogram(EA, n), np.random.default_rng(2))
    found, parts = channel.weighted(drawn), channel.split(drawn)
    raw = np.array([part.estimate().shares for part in parts.values()])
    np.testing.assert_allclose(found.estimates, raw)
    plausible = EA / EA.sum()
    variances = np.array(
        [c.variance(plausible, p.n) for c, p in zip(channel.channels, parts.values(), strict=True)]
    )
    expected = 1 / variances / (1 / variances).sum(axis=0)
    np.testing.assert_allclose(found.weights, expected, atol=0.02)
    np.testing.assert_allclose(found.weights.sum(axis=0), 1)
    best = (1 / variances).sum(axis=0) ** -0.5
    np.testing.assert_allclose(found.standard_errors, best, rtol=0.1)
    assert np.all(np.abs(found.combined - plausible) < 6.5 * best)
    assert "Assumes" in found.summary()
    assert found.frame.columns == ["value", "share", "standard_error"]


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 2_458_285), (0.3, 100_000), (1.0, 100_000)])
def test_pooling_is_no_worse_for_shares(epsilon: float, n: int) -> None:
    """One likelihood has the lower mean squared error over 12 surveys; clearly where noisy."""
    channel, histogram = _lists(epsilon), _histogram(EA, n)
    truth = np.sum(np.split(histogram, 3), axis=0) / histogram.sum()
    rng, apart, pooled = np.random.default_rng(3), 0.0, 0.0
    for _ in range(12):
        drawn = local.simulate(channel, histogram, rng)
        apart += float(((channel.weighted(drawn).combined - truth) ** 2).mean())
        pooled += float(((channel.pooled(drawn).shares - truth) ** 2).mean())
    assert pooled < apart
    if epsilon < 0.2:
        assert np.log10(apart / pooled) > 0.05


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_pooling_is_better_for_means(epsilon: float) -> None:
    """By 0.3 orders or more over 6 surveys of 25,000 people about a mean off the middle."""
    channel = _numbers(epsilon)
    bell = np.exp(-((INTERVAL.points - 0.06) ** 2) / 0.1)
    histogram = _histogram(bell, 25_000)
    held = np.sum(np.split(histogram, 3), axis=0)
    truth = float(held @ INTERVAL.points / held.sum())
    rng, apart, pooled = np.random.default_rng(4), 0.0, 0.0
    for _ in range(6):
        drawn = local.simulate(channel, histogram, rng)
        apart += (channel.weighted(drawn, bins=64).mean - truth) ** 2
        pooled += (channel.pooled(drawn, bins=64).mean - truth) ** 2
    assert np.log10(apart / pooled) > 0.05


def test_a_choice_that_follows_the_value_spoils_both() -> None:
    """People who hold a value and call it high are not estimated: the assumption is needed."""
    channel = local.Personalised({"a": local.SDGRR(4, {0, 1}, 1), "b": local.SDGRR(4, {2, 3}, 1)})
    apart = np.array([90_000, 0, 0, 10_000, 0, 10_000, 90_000, 0])  # by class, then value
    truth = np.array([0.45, 0.05, 0.45, 0.05])
    drawn = local.simulate(channel, apart, np.random.default_rng(5))
    found = channel.weighted(drawn)
    assert np.abs(found.combined - truth).max() > 20 * found.standard_errors.max()
    assert any("does not depend" in note for note in channel.pooled(drawn).notes)
    mixed = np.tile(truth * 100_000, 2).astype(int)
    honest = channel.weighted(local.simulate(channel, mixed, np.random.default_rng(6)))
    assert np.abs(honest.combined - truth).max() < 6.5 * honest.standard_errors.max()


def test_simulation_and_counts() -> None:
    """Histograms have one count for each class and value; a class may be empty."""
    channel = _numbers(1)
    histogram = np.zeros(3 * 129, dtype=int)
    histogram[[10, 140]] = 50, 70
    drawn = local.simulate(channel, histogram, np.random.default_rng(1))
    assert [part.n for part in channel.split(drawn).values()] == [50, 70, 0]
    found = channel.weighted(drawn, bins=16)
    assert found.names == channel.names[:2]
    assert "mean" in found.summary()
    assert found.frame.columns == ["mean"]


def test_what_is_refused() -> None:
    """Classes over unlike values, no class, unknown names, missing choices, shares as such."""
    with pytest.raises(ArgumentError, match="same values"):
        local.Personalised({"a": local.GRR(3, 1), "b": local.GRR(4, 1)})
    with pytest.raises(ArgumentError, match="same values"):
        local.Personalised(
            {"a": local.PM(INTERVAL, 1), "b": local.PM(local.Interval(0, 1, steps=128), 1)}
        )
    for bad in ({}, [local.GRR(3, 1)], {"a": 3}, {1: local.GRR(3, 1)}):
        with pytest.raises(ArgumentError, match="classes"):
            local.Personalised(bad)  # type: ignore[arg-type]
    channel = _lists(1)
    with pytest.raises(ArgumentError, match="choices must say"):
        channel.privatize([1])
    with pytest.raises(ArgumentError, match="unknown class"):
        channel.privatize([1], ["5 high"])
    with pytest.raises(ArgumentError, match="as many"):
        channel.privatize([1, 2], ["4 high"])
    counted = channel.aggregate([1, 2])
    with pytest.raises(ArgumentError, match="pooled"):
        counted.estimate()
    with pytest.raises(ArgumentError, match="this channel"):
        _lists(2).split(counted)
    with pytest.raises(ArgumentError, match="no reports"):
        channel.weighted(channel.aggregate([]))
    with pytest.raises(ArgumentError, match="leave them out"):
        channel.weighted(counted, bins=3)
    with pytest.raises(ArgumentError, match="list of values"):
        _ = channel.weighted(counted).mean
