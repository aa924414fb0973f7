"""Personal budgets: any channels of one domain, combined; what the combination assumes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from dither.errors import ArgumentError
from dither.local import GRR, HCMS, OUE, SDGRR, PartCounts, Personal, simulate
from dither.local._estimates.postprocess import nonnegative

SHARES = np.array([0.4, 0.3, 0.2, 0.1])


def surveyed(offer: Personal, sizes: Any, rng: Any, shares: Any = SHARES) -> Any:
    """The counts of people of each class, all with the same shares or each with its own."""
    per_class = np.broadcast_to(shares, (len(sizes), len(SHARES)))
    return simulate(offer, np.round(np.array(sizes)[:, None] * per_class).astype(np.int64), rng)


@pytest.mark.parametrize("make", [GRR, OUE])
@pytest.mark.parametrize("method", ["weights", "population"])
def test_combined_estimates(make: Any, method: str) -> None:
    """Unbiased, with the stated errors, and weights beat the best single class."""
    offer, rng = Personal.of(make, 4, [0.5, 1, 2]), np.random.default_rng(6)
    sizes, runs = (4000, 3000, 2000), 2000
    found = np.array([surveyed(offer, sizes, rng).estimate(method=method).raw for _ in range(runs)])
    told = surveyed(offer, sizes, rng).estimate(method=method)
    assert np.all(np.abs(told.weights.sum(axis=0) - 1) < 1e-12)
    spread = found.std(axis=0)
    assert np.all(np.abs(found.mean(axis=0) - SHARES) < 6 * spread / math.sqrt(runs))
    exact = sum(
        told.weights[c] ** 2 * channel.variance(SHARES, sizes[c])
        for c, channel in enumerate(offer.channels)
    )
    assert np.mean(spread**2 / exact) == pytest.approx(1, abs=0.06)
    # The classes are dealt alike here; where chance deals people out, it adds to the error.
    dealt = sum(
        (told.weights[c] - size / sum(sizes)) ** 2 / size * SHARES * (1 - SHARES)
        for c, size in enumerate(sizes)
    )
    assert told.standard_errors == pytest.approx(np.sqrt(exact + dealt), rel=0.1)
    if method == "weights":
        best = min(
            channel.variance(SHARES, n).sum()
            for channel, n in zip(offer.channels, sizes, strict=True)
        )
        assert exact.sum() < best


@pytest.mark.parametrize("method", ["weights", "population"])
def test_intervals_hold_for_people_who_choose_by_chance(method: str) -> None:
    """Classes are dealt at random, and the shares of all who reported are covered.

    300 surveys at 95 %: more than 31 misses of one of four values have a chance below 4e-4.
    """
    offer, rng = Personal.of(GRR, 4, [1, 8]), np.random.default_rng(12)
    people, missed = np.array([100_000, 60_000, 36_000, 4_000]), np.zeros(4)
    for _ in range(300):
        first = rng.multivariate_hypergeometric(people, 100_000)
        found = simulate(offer, [first, people - first], rng).estimate(method=method)
        lower, upper = found.intervals.T
        missed += ~((lower <= people / people.sum()) & (people / people.sum() <= upper))
    assert missed.max() <= 31


@pytest.mark.parametrize("make", [GRR, OUE])
def test_likelihood_is_nearer_the_truth(make: Any) -> None:
    """Over many surveys the pooled likelihood has the smaller error, and is a distribution."""
    offer, rng = Personal.of(make, 4, [0.1, 0.3]), np.random.default_rng(8)
    weighted, likely = 0.0, 0.0
    for _ in range(40):
        counted = surveyed(offer, (1000, 500), rng)
        found = counted.estimate(method="likelihood")
        assert found.shares.min() >= 0
        assert found.shares.sum() == pytest.approx(1)
        likely += ((found.shares - SHARES) ** 2).sum()
        weighted += ((counted.estimate().shares - SHARES) ** 2).sum()
    assert likely < 0.8 * weighted
    assert found.biased
    with pytest.raises(ArgumentError, match="use weights"):
        _ = found.intervals


def test_normal_likelihood_is_the_best_of_the_simplex() -> None:
    """Unary classes: no other distribution has a smaller distance to the classes' estimates."""
    offer, rng = Personal.of(OUE, 4, [0.5, 1]), np.random.default_rng(3)
    counted = surveyed(offer, (800, 500), rng)
    found = counted.estimate(method="likelihood")
    at = counted.estimate(postprocess="project").shares

    def distance(f: Any) -> float:
        return sum(
            part.n * ((part.estimate().raw - f) ** 2 / part.channel.noise_variance(at)).sum()
            for part in counted.parts.values()
        )

    assert (
        min(distance(f) for f in rng.dirichlet(np.ones(4), 4000)) >= distance(found.shares) - 1e-6
    )


def test_reports_are_privatised_by_choice_and_merge() -> None:
    """Each value goes through the chosen channel; parts add up in any order and survive JSON."""
    offer = Personal((GRR(["a", "b"], 1), OUE(["a", "b"], 2), SDGRR(["a", "b"], ["a"], 1)))
    reports = offer.privatize(["a", "b", "a", "b", "a"], [0, 1, 1, 0, 2])
    assert {c: len(r) for c, r in reports.items()} == {0: 2, 1: 2, 2: 1}
    one, two = offer.aggregate(reports), offer.aggregate({1: reports[1]})
    assert one + two == two + one
    assert ((one + two).n, one.n) == (7, 5)
    again = PartCounts.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again == one
    assert again.structure.hash == offer.hash
    found = one.estimate()
    assert found.n == 5
    assert found["a"] == found.shares[0]


def test_bad_reports_are_dropped() -> None:
    """Reports of a choice that is not offered, or of another channel, are counted and dropped."""
    offer = Personal.of(GRR, 3, [1, 2])
    found = offer.aggregate({0: [0, 1, 9], 7: [1, 2]})
    assert (found.n, found.rejected) == (2, 3)
    with pytest.raises(ArgumentError, match="offered"):
        offer.aggregate({7: [1]}, strict=True)
    assert offer.aggregate({}).n == 0


def test_it_says_what_it_rests_on() -> None:
    """The note is always there; a choice that depends on the value is noticed; else it is not."""
    offer, rng = Personal.of(GRR, 4, [1, 2]), np.random.default_rng(5)
    for _ in range(20):
        fair = surveyed(offer, (20_000, 20_000), rng).estimate()
        assert len(fair.notes) == 1
        assert "must not" in str(offer.promise(0)) or "does not depend" in str(offer.promise(0))
    told = surveyed(offer, (20_000, 20_000), rng, [SHARES, SHARES[::-1]])
    noticed = told.estimate()
    assert any("choice 1" in note for note in noticed.notes)
    # Only the population's weights estimate the shares of all the users then.
    truth = (SHARES + SHARES[::-1]) / 2
    whole = told.estimate(method="population")
    assert np.all(np.abs(whole.raw - truth) < 6 * whole.standard_errors)
    assert not np.all(np.abs(noticed.raw - truth) < 6 * noticed.standard_errors)


def test_guarantee_is_that_of_the_choice() -> None:
    """Each choice has its own channel's promise, and what it assumes is told."""
    offer = Personal.of(GRR, 4, ["0.5", 2])
    assert [float(offer.promise(c).epsilon) for c in (0, 1)] == [0.5, 2]
    assert "does not depend on the value" in offer.promise(0).assumes


@given(st.integers(1, 8), st.integers(0, 2**32), st.booleans())
@settings(max_examples=60, deadline=None)
def test_nonnegative_least_squares(k: int, seed: int, deficient: bool) -> None:
    """The active set finds the optimum that scipy finds, and its gradient shows it."""
    rng = np.random.default_rng(seed)
    a, y = rng.normal(size=(max(2, k - 2) if deficient else k + 3, k)), rng.normal(size=k + 3)
    y = y[: a.shape[0]]
    f = nonnegative(a.T @ a, a.T @ y)
    assert f.min() >= 0
    assert np.linalg.norm(a @ f - y) <= nnls(a, y)[1] + 1e-6
    slope = a.T @ (a @ f - y)
    assert slope.min() >= -1e-6
    assert np.abs(slope[f > 0]).max(initial=0) < 1e-6


def test_refusals() -> None:
    """Unlike domains, choices that are not offered and unknown methods are refused."""
    for channels in ((), (GRR(2, 1), GRR(3, 1)), ("grr",)):
        with pytest.raises(ArgumentError, match="channels"):
            Personal(channels)  # type: ignore[arg-type]
    offer = Personal.of(GRR, 3, [1, 2])
    for choices in ([0], [0, 2], [0, -1], [0.0, 1.0]):
        with pytest.raises(ArgumentError, match="choices"):
            offer.privatize([1, 2], choices)
    with pytest.raises(ArgumentError, match="no reports"):
        offer.aggregate({}).estimate()
    with pytest.raises(ArgumentError, match="did you mean"):
        offer.aggregate({0: [1]}).estimate(method="weight")
    with pytest.raises(ArgumentError, match="same structure"):
        _ = offer.aggregate({}) + Personal.of(GRR, 3, [1, 3]).aggregate({})
    with pytest.raises(ArgumentError, match="truncated"):
        PartCounts.from_dict({"parts": []})


def test_an_estimate_prints_as_its_summary() -> None:
    """Shares, their errors, the sizes of the classes and the caution are told to people."""
    offer = Personal.of(GRR, ["no", "yes"], epsilons=[1, 2])
    counts = offer.aggregate(offer.privatize(["yes"] * 30, choices=[0, 1, 1] * 10))
    told = str(counts.estimate())
    assert told.startswith("personal, by weights: 30 reports (10 + 20)\nvalue ")
    assert "did not depend on their values" in told
    assert "Shares are biased" not in told
    likely = counts.estimate(method="likelihood").summary()
    assert "no interval is valid" in likely
    assert "did not depend on their values" in likely
    rows = Personal.of(OUE, ["no", "yes"], epsilons=[1, 2])
    counts = rows.aggregate(rows.privatize(["yes"] * 30, choices=[0, 1, 1] * 10))
    likely = counts.estimate(method="likelihood").summary()
    assert "±" not in likely
    assert "too few reports decide" not in likely
    assert "Shares are biased by the method that they are estimated by" in likely


def test_biased_estimates_show_no_half_width() -> None:
    """Neither a channel's bias nor a method's leaves a ±; a rule leaves that of the raw shares."""
    rng = np.random.default_rng(4)
    people = [4000, 3000, 2000, 1000]
    counts = simulate(HCMS(4, 2, hashes=16, buckets=16), people, rng)
    for rule in ("none", "project"):
        told = counts.estimate(rule).summary()
        assert "±" not in told
        assert "Shares are biased by their channel: no interval is valid." in told
    assert "Shares are biased (postprocess: project)." in told
    offer = Personal([HCMS(4, 2, hashes=16, buckets=16), GRR(4, 1)])
    told = simulate(offer, [people, people], rng).estimate().summary()
    assert "±" not in told
    assert "Shares are biased by the channels of some choices" in told
    counts = surveyed(Personal.of(GRR, 4, [1, 2]), (4000, 3000), rng)
    assert "±" not in counts.estimate(method="plugin").summary()
    told = counts.estimate("project").summary()
    assert "±" in told
    assert "Intervals are those of the raw shares." in told


def test_small_errors_are_shown_in_digits_of_their_own() -> None:
    """No half-width of zero, and no zero with a sign, however many report."""
    shares, errors = np.array([1.0, -1e-9]), np.array([1e-6, 3e-7])
    few = GRR(2, 8).aggregate([0, 0, 1]).estimate()
    sure = replace(few, raw=shares, shares=shares, standard_errors=errors, steps=0 * errors)
    first, second = sure.summary().splitlines()[2:4]
    assert first.split() == ["0", "1.00000000", "[0.99999804,", "1.00000000]"]
    assert second.split() == ["1", "0.00000000", "[0.00000000,", "0.00000059]"]
    unknown = replace(sure, standard_errors=np.array([1e-3, np.nan])).summary()
    assert "the error is not known" in unknown
    assert "too few reports decide" not in unknown


def test_choices_and_values_may_be_lists_of_numpys_integers() -> None:
    """As they come out of a loop over an array."""
    offer = Personal.of(GRR, [1, 2, 3], epsilons=[1, 2])
    values, choices = [np.int64(1), np.int32(2), 3], [np.int64(0), np.uint8(1), 1]
    reports = offer.privatize(values, choices)
    assert {choice: len(mine) for choice, mine in reports.items()} == {0: 1, 1: 2}
    with pytest.raises(ArgumentError, match="whole numbers, places in channels"):
        offer.privatize(values, [np.float64(0.5), 0, 1])
