"""Classes that people choose by name: each person's promise, and the ways of combining reports."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.numeric import SimulatedWords

EA = np.array(
    [4.4, 3.2, 1.7, 1.7, 7.0, 11.4, 3.9, 4.2, 4.0, 2.9, 22.5, 14.5, 2.6, 2.2, 9.2, 3.1, 1.0, 0.5]
)
INTERVAL = local.Interval(-1, 1, steps=128)
SPLIT = (0.4, 0.3, 0.3)


def _lists(epsilon: float) -> local.Personal:
    return local.Personal(
        {f"{h} high": local.SDGRR(18, set(range(h)), epsilon) for h in (4, 9, 14)}
    )


def _numbers(epsilon: float) -> local.Personal:
    return local.Personal(
        {f"to {c}": local.SDPM(INTERVAL, (-c, c), epsilon) for c in (0.75, 0.5, 0.25)}
    )


def _histogram(shares: np.ndarray, n: int) -> np.ndarray:
    return np.array([np.round(n * part * shares / shares.sum()) for part in SPLIT]).astype(int)


def test_each_person_has_the_promise_of_the_chosen_class() -> None:
    """Within a class its own matrix; between classes nothing, and the assumption is told."""
    channel = _lists(1)
    found = channel.guarantee
    assert len(found.classes) == 6
    for name, one in channel.parts.items():
        for (a, b), pair in one.guarantee.pairs.items():
            assert found.pairs[f"{name}: {a}", f"{name}: {b}"] == pair
    assert found.pairs["4 high: low", "9 high: low"].delta == 1
    assert "does not depend on the value" in str(found)


def test_reports_carry_the_class() -> None:
    """Each number goes through the chosen class, rounded as the class asks; one choice may do."""
    offer = _numbers(1)
    values, names = np.linspace(-1, 1, 3000), np.repeat(list(offer.parts), 1000).tolist()
    reports = offer.draw((values, names), SimulatedWords(1))
    counts = offer.aggregate(reports)
    assert [part.n for part in counts.parts.values()] == [1000] * 3
    mixed = offer.draw((values[::-1].copy(), names[::-1]), SimulatedWords(1))
    assert {name: len(mine) for name, mine in mixed.items()} == dict.fromkeys(offer.parts, 1000)
    assert list(offer.privatize(0.3, "to 0.5")) == ["to 0.5"]
    assert offer.privatize([0.3, 0.4], "to 0.5")["to 0.5"].shape == (2,)
    # A value beyond the bounds is refused, no matter who holds it, and no report is made.
    with pytest.raises(ArgumentError, match="bounds"):
        offer.privatize([0.3, 1.5], ["to 0.5", "to 0.25"])


def test_the_wire() -> None:
    """The channel with all its classes survives JSON, and so do aggregates."""
    for offer, values in ((_lists(0.5), [1, 2, 17, 4]), (_numbers(1), [0, 0.1, 0.9, -1])):
        again = local.structure_from_dict(json.loads(json.dumps(offer.to_dict())))
        assert again == offer
        assert again.hash == offer.hash
        names = [*offer.parts, next(iter(offer.parts))]
        counts = offer.aggregate(offer.privatize(values, names))
        assert local.PartCounts.from_dict(json.loads(json.dumps(counts.to_dict()))) == counts
        assert sum([counts, counts]).n == 8
    assert _numbers(1).hash != _numbers(2).hash


def test_weights_are_as_the_paper_meant() -> None:
    """n_i/σ_i², for every value; the combined variance is that of the best linear mix."""
    channel, n = _lists(1), 60_000
    drawn = local.simulate(channel, _histogram(EA, n), np.random.default_rng(2))
    found, parts = drawn.estimate(method="plugin"), drawn.parts
    for name, part in parts.items():
        np.testing.assert_allclose(found.parts[name].raw, part.estimate().shares)
    plausible = EA / EA.sum()
    variances = np.array(
        [c.variance(plausible, p.n) for c, p in zip(channel.channels, parts.values(), strict=True)]
    )
    expected = 1 / variances / (1 / variances).sum(axis=0)
    np.testing.assert_allclose(found.weights, expected, atol=0.02)
    np.testing.assert_allclose(found.weights.sum(axis=0), 1)
    best = (1 / variances).sum(axis=0) ** -0.5
    n_c = np.array([[part.n] for part in parts.values()])
    dealt = plausible * (1 - plausible) * ((found.weights - n_c / n) ** 2 / n_c).sum(axis=0)
    np.testing.assert_allclose(found.standard_errors, np.sqrt(best**2 + dealt), rtol=0.1)
    assert np.all(np.abs(found.shares - plausible) < 6.5 * best)
    assert "did not depend on their values" in found.summary()
    assert found.frame.columns == ["value", "share", "standard_error"]


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 2_458_285), (0.3, 100_000), (1.0, 100_000)])
def test_pooling_is_no_worse_for_shares(epsilon: float, n: int) -> None:
    """One likelihood has the lower mean squared error over 12 surveys; clearly where noisy."""
    channel, histogram = _lists(epsilon), _histogram(EA, n)
    truth = histogram.sum(axis=0) / histogram.sum()
    rng, apart, pooled = np.random.default_rng(3), 0.0, 0.0
    for _ in range(12):
        drawn = local.simulate(channel, histogram, rng)
        apart += float(((drawn.estimate(method="plugin").shares - truth) ** 2).mean())
        pooled += float(((drawn.estimate(method="likelihood").shares - truth) ** 2).mean())
    assert pooled < apart
    if epsilon < 0.2:
        assert np.log10(apart / pooled) > 0.05


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_pooling_is_better_for_means(epsilon: float) -> None:
    """By 0.3 orders or more over 6 surveys of 25,000 people about a mean off the middle."""
    channel = _numbers(epsilon)
    bell = np.exp(-((INTERVAL.points - 0.06) ** 2) / 0.1)
    histogram = _histogram(bell, 25_000)
    held = histogram.sum(axis=0)
    truth = float(held @ INTERVAL.points / held.sum())
    rng, apart, pooled = np.random.default_rng(4), 0.0, 0.0
    for _ in range(6):
        drawn = local.simulate(channel, histogram, rng)
        apart += (drawn.estimate(method="plugin", bins=64).mean - truth) ** 2
        pooled += (drawn.estimate(method="likelihood", bins=64).mean - truth) ** 2
    assert np.log10(apart / pooled) > 0.05


def test_a_choice_that_follows_the_value_spoils_both() -> None:
    """People who hold a value and call it high are not estimated: the assumption is needed."""
    channel = local.Personal({"a": local.SDGRR(4, {0, 1}, 1), "b": local.SDGRR(4, {2, 3}, 1)})
    apart = np.array([[90_000, 0, 0, 10_000], [0, 10_000, 90_000, 0]])  # a row a class
    truth = np.array([0.45, 0.05, 0.45, 0.05])
    drawn = local.simulate(channel, apart, np.random.default_rng(5))
    found = drawn.estimate(method="plugin")
    assert np.abs(found.shares - truth).max() > 20 * found.standard_errors.max()
    likely = drawn.estimate(method="likelihood")
    assert any("did not depend" in note for note in likely.notes)
    assert any("differ from those of the others" in note for note in found.notes)
    mixed = np.tile(truth * 100_000, (2, 1)).astype(int)
    again = local.simulate(channel, mixed, np.random.default_rng(6))
    honest = again.estimate(method="plugin")
    assert np.abs(honest.shares - truth).max() < 6.5 * honest.standard_errors.max()


def test_simulation_and_counts() -> None:
    """Histograms have a row for each class; a class may be empty."""
    channel = _numbers(1)
    histogram = np.zeros((3, 129), dtype=int)
    histogram[0, 10], histogram[1, 11] = 50, 70
    drawn = local.simulate(channel, histogram, np.random.default_rng(1))
    assert [part.n for part in drawn.parts.values()] == [50, 70, 0]
    found = drawn.estimate(method="plugin", bins=16)
    assert found.biased
    assert found.n == 120
    assert "Choice to 0.75: 50 reports" in found.summary()
    assert "no interval is valid" in found.summary()
    assert "to 0.25" not in found.summary()
    assert found.frame.columns == ["mean", "standard_error", "n"]


@pytest.mark.parametrize(("n", "method"), [(40, "bounded"), (20_000, "normal")])
def test_unbiased_means_have_an_interval_that_holds(n: int, method: str) -> None:
    """Two epsilons, people at one end: the combined mean is covered, few people or many.

    500 surveys at 95 %: more than 45 misses have a chance below 1e-4.
    """
    line = local.Interval(0, 1, steps=16)
    offer = local.Personal([local.PM(line, 1), local.PM(line, 4)])
    people = np.zeros((2, 17), dtype=int)
    people[:, 0], people[:, 16] = n // 4 * 3, n // 4
    rng, missed = np.random.default_rng(3), 0
    for _ in range(500):
        found = local.simulate(offer, people, rng).estimate()
        assert found.method == method
        missed += not found.interval[0] <= 0.25 <= found.interval[1]
    assert missed <= 45
    alone = local.simulate(offer, people, rng)
    errors = [part.estimate().standard_error for part in alone.parts.values()]
    assert alone.estimate().standard_error < min(errors)


@pytest.mark.parametrize("method", ["weights", "population"])
def test_means_of_few_who_choose_by_chance_are_covered(method: str) -> None:
    """A precise class is not all the people: limits allow for who happened to choose it.

    200 surveys at 95 %: more than 25 misses have a chance below 1e-4.
    """
    line = local.Interval(0, 1, steps=16)
    offer = local.Personal([local.PM(line, 1), local.PM(line, 32)])
    people, rng, missed = np.zeros(17, dtype=int), np.random.default_rng(7), 0
    people[0], people[16] = 20, 20
    for _ in range(200):
        first = rng.multivariate_hypergeometric(people, 20)
        found = local.simulate(offer, [first, people - first], rng).estimate(method=method)
        assert found.method == "bounded"
        missed += not found.interval[0] <= 0.5 <= found.interval[1]
        assert 0 <= found.interval[0] <= found.interval[1] <= 1
    assert missed <= 25
    assumed = "values are, if what they chose does not depend on them." in " ".join(
        found.summary().split()
    )
    assert assumed is (method == "weights")


def test_what_is_refused() -> None:
    """Classes over unlike values, no class, unknown names, missing choices, strange options."""
    with pytest.raises(ArgumentError, match="same values"):
        local.Personal({"a": local.GRR(3, 1), "b": local.GRR(4, 1)})
    with pytest.raises(ArgumentError, match="same values"):
        local.Personal(
            {"a": local.PM(INTERVAL, 1), "b": local.PM(local.Interval(0, 1, steps=128), 1)}
        )
    for bad in ({}, [], {"a": 3}, {1: local.GRR(3, 1)}, "ab", None):
        with pytest.raises(ArgumentError, match="channels"):
            local.Personal(bad)  # type: ignore[arg-type]
    channel = _lists(1)
    with pytest.raises(ArgumentError, match="choices must say"):
        channel.privatize([1])
    with pytest.raises(ArgumentError, match="unknown class"):
        channel.privatize([1], ["5 high"])
    with pytest.raises(ArgumentError, match="as many"):
        channel.privatize([1, 2], ["4 high"])
    counted = channel.aggregate({"4 high": [1], "9 high": [2]})
    with pytest.raises(ArgumentError, match="method"):
        counted.estimate(method="pooled")
    with pytest.raises(ArgumentError, match="no reports"):
        channel.aggregate({}).estimate()
    with pytest.raises(ArgumentError, match="bins cannot be asked for"):
        counted.estimate(bins=3)
    with pytest.raises(ArgumentError, match="postprocess"):
        counted.estimate("clip", method="likelihood")
