"""Rates over person-time, standardised rates, and ratios over strata."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import target
from dither.inference.engine._inverted import InvertedErrors, count_drawn
from dither.inference.engine._release import seen_at_best
from dither.inference.rates._models import RateModel
from dither.inference.rates._sums import RatesRelease, RateSums, weights_named
from dither.lab.audit import Outcome, audit
from dither.mechanisms import Laplace
from inference.neighbouring import BOTH

NAN, INF = float("nan"), float("inf")
SURE: dict[str, Any] = {"epsilon": 10**6, "draws": 400}


def fallen(n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Falls, years, age bands and groups: twice the rate in the second."""
    rng = np.random.default_rng(seed)
    band, group = rng.integers(0, 3, n), rng.random(n) < 0.4
    years = rng.uniform(0, 5, n)
    falls = rng.poisson(0.05 * (1 + band) * np.where(group, 2, 1) * years)
    return falls, years, band, group


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("dispersed", [False, True])
@pytest.mark.parametrize("cells", [1, 2])
def test_a_row_moves_the_sums_as_far_as_their_noise_is_made_for(
    relation: Any, dispersed: bool, cells: int
) -> None:
    """Every row for every other, in and beyond the bounds, missing, and of no cell."""
    design = RatesRelease(Fraction(2), Fraction(3), cells, dispersed, target(1, 0, relation))
    values = [-1.0, 0.0, 1.0, 2.0, 9.0, INF, -INF, NAN]
    rows = list(itertools.product(values, [0.0, 1.7, 3.0, INF, NAN], range(-1, cells)))

    def summed(*given: Any) -> Any:
        y, t, c = zip((1.0, 1.0, 0), *given, strict=True)
        return design.statistic((np.array(y), np.array(t), np.array(c)))

    alone = summed()
    each = [summed(row) for row in rows]
    pairs = [(alone, one) for one in each]
    if relation == "replace":
        pairs = list(itertools.combinations({*each, alone}, 2))
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in pairs]
    double = 2 if relation == "replace" and cells > 1 else 1
    weights = weights_named(dispersed).values()
    assert max(sum(map(abs, gap)) for gap in gaps) == double * sum(weights)
    assert max(sum(g * g for g in gap) for gap in gaps) == double * sum(w * w for w in weights)
    assert design.loss.charge.epsilon == 1


def test_products_are_exact() -> None:
    """Of lattice points, against plain fractions."""
    design = RatesRelease(Fraction(1), Fraction(1), 1, True, target(1, 0, "replace"))
    rng = np.random.default_rng(0)
    u, v = rng.random((2, 50))
    found = design.statistic((u, v, np.zeros(50, dtype=int)))
    ends = 1 << 21
    points = [[Fraction(round(x * ends), ends) for x in column] for column in (u, v)]
    pairs = list(zip(*points, strict=True))
    weights = list(weights_named(True).values())
    sums = [(a, b, a * a, a * b, b * b) for a, b in pairs]
    wanted = [w * sum(s) for w, s in zip(weights, zip(*sums, strict=True), strict=True)]
    # `Bounds.lattice` is symmetric about the middle: points may differ by a rounding of doubles.
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in wanted], rtol=1e-6)


def test_the_audit_sees_sums_whose_time_was_forgotten() -> None:
    """The classic mistake: noise for the events alone, while time leaves beside them."""

    asked = target(1, 0, "add-remove")
    one = np.zeros(0), np.zeros(0), np.zeros(0, dtype=int)
    two = np.array([9.0]), np.array([9.0]), np.array([0])
    wrong = RatesRelease(Fraction(1), Fraction(1), 1, False, asked)
    # Of an L1 norm of 1, where a row moves 3/2.
    object.__setattr__(wrong, "noise", Laplace.for_loss(1, l1=1, dimension=2))
    found = audit(seen_at_best(wrong, one, two), one, two, 1, samples=20_000)
    assert found.verdict is Outcome.VIOLATED


def test_without_noise_they_are_what_textbooks_compute() -> None:
    """Rates, their ratio, both standardisations and both Mantel-Haenszel ratios."""
    y, t, s, g = fallen(5000, 1)
    kept: dict[str, Any] = {"most_events": 9, "most_time": 5, **SURE}
    of = {(b, k): (y[(s == b) & (g == k)].sum(), t[(s == b) & (g == k)].sum())
          for b in range(3) for k in (False, True)}  # fmt: skip
    assert inference.rate(y, t, per=100, **kept).estimate == pytest.approx(
        100 * y.sum() / t.sum(), rel=1e-4
    )
    each = [y[g == k].sum() / t[g == k].sum() for k in (False, True)]
    two: dict[str, Any] = {"by": g, "levels": [False, True], **kept}
    np.testing.assert_allclose(inference.rate(y, t, **two).estimate, each, rtol=1e-4)
    assert inference.rate_ratio(y, t, **two).estimate == pytest.approx(each[1] / each[0], rel=1e-4)
    weights = {0: 2, 1: 1, 2: 1}
    direct = [
        sum(w / 4 * of[b, k][0] / of[b, k][1] for b, w in weights.items()) for k in (False, True)
    ]
    found = inference.standardised_rate(y, t, s, weights=weights, **two)
    np.testing.assert_allclose(found.estimate, direct, rtol=1e-4)
    ratio = inference.standardised_ratio(y, t, s, weights=weights, **two)
    assert ratio.estimate == pytest.approx(direct[1] / direct[0], rel=1e-4)
    reference = {0: 0.05, 1: 0.1, 2: 0.2}
    expected = sum(reference[b] * time for (b, _), (_, time) in of.items())
    observed = inference.standardised_ratio(y, t, s, reference=reference, **kept)
    assert observed.estimate == pytest.approx(y.sum() / expected, rel=1e-4)

    ill = y > 0
    upper, lower, above, below = 0.0, 0.0, 0.0, 0.0
    for b in range(3):
        in_b = s == b
        n = in_b.sum()
        a, c = (ill & g & in_b).sum(), (ill & ~g & in_b).sum()
        m, k = (g & in_b).sum(), (~g & in_b).sum()
        upper, lower = upper + a * (k - c) / n, lower + (m - a) * c / n
        above, below = above + a * k / n, below + c * m / n
    for measure, truth in (("odds", upper / lower), ("risk", above / below)):
        got = inference.mantel_haenszel(ill, g, s, categories=[0, 1, 2], measure=measure, **SURE)
        assert got.estimate == pytest.approx(truth, rel=1e-6)


def test_intervals_without_noise_are_those_of_events() -> None:
    """Exact Poisson limits of 12 events, and those of Robins and others for an odds ratio."""
    t, y = np.full(1000, 1.0), np.zeros(1000)
    y[:12] = 1
    low, high = inference.rate(y, t, most_time=1, per=1000, **SURE).interval(0.95)
    # Garwood's 6.20 and 20.96, and a mid-p limit is a little nearer.
    assert 5.8 < low < 7.2
    assert 19.5 < high < 22.0
    y, _, s, g = fallen(2000, 2)
    found = inference.mantel_haenszel(y > 0, g, s, categories=[0, 1, 2], **SURE)
    low, high = np.log(found.interval(0.95))
    a = [[((y > 0) & e & (s == b)).sum() for e in (g, ~g)] for b in range(3)]
    n = [[(e & (s == b)).sum() for e in (g, ~g)] for b in range(3)]
    p = r = u = w = x = 0.0
    for (yes, other), (m, k) in zip(a, n, strict=True):
        whole = m + k
        top, low_part = yes * (k - other) / whole, (m - yes) * other / whole
        agree = (yes + k - other) / whole
        p, r = p + agree * top, r + top
        u, w = u + agree * low_part + (1 - agree) * top, w + low_part
        x += (1 - agree) * low_part
    robins = np.sqrt(p / (2 * r * r) + u / (2 * r * w) + x / (2 * w * w))
    assert (high - low) / 2 / 1.96 == pytest.approx(robins, rel=0.06)


def test_the_variance_that_rows_show_widens_intervals() -> None:
    """Of gamma-mixed events it is wider than Poisson's; of Poisson events much the same."""
    rng = np.random.default_rng(3)
    t = rng.uniform(0, 5, 20_000)
    kept: dict[str, Any] = {"most_events": 20, "most_time": 5, "epsilon": 50, "draws": 1000}

    def wide(y: Any, family: str) -> float:
        low, high = inference.rate(y, t, family=family, **kept).interval()
        return float(high - low)

    mixed = rng.poisson(0.4 * t * rng.gamma(0.5, 2, 20_000))
    plain = rng.poisson(0.4 * t)
    # Var/mean = 1 + 2·λ·E t²/E t = 1 + 2·0.4·10/3.
    ratio = wide(mixed, "negative-binomial") / wide(mixed, "poisson")
    assert ratio == pytest.approx((1 + 8 / 3) ** 0.5, rel=0.1)
    assert wide(plain, "negative-binomial") / wide(plain, "poisson") == pytest.approx(1, rel=0.1)


KINDS = ("rate", "rate_ratio", "standardised_rate", "standardised_ratio", "mantel_haenszel")


def one_of(kind: str, rng: Any, n: int, epsilon: float, neighbours: str) -> tuple[float, Any]:
    """A truth, and an estimate of it from fresh rows."""
    band, group = rng.integers(0, 3, n), rng.random(n) < 0.4
    years = rng.uniform(0, 5, n)
    falls = rng.poisson(0.05 * (1 + band) * np.where(group, 2, 1) * years)
    kept: dict[str, Any] = {"epsilon": epsilon, "neighbours": neighbours, "draws": 300}
    timed: dict[str, Any] = {"most_events": 4, "most_time": 5} | kept
    two: dict[str, Any] = {"by": group, "levels": [False, True]}
    if kind == "rate":
        return 0.1, inference.rate(falls[~group], years[~group], **timed)
    if kind == "rate_ratio":
        return 2.0, inference.rate_ratio(falls, years, **two, **timed)
    if kind == "standardised_rate":
        old = {0: 1, 1: 1, 2: 4}
        return 0.125, inference.standardised_rate(
            falls[~group], years[~group], band[~group], weights=old, **timed
        )
    if kind == "standardised_ratio":
        return 2.0, inference.standardised_ratio(
            falls, years, band, weights={0: 1, 1: 1, 2: 1}, **two, **timed
        )
    odds = 0.2 * (1 + band) * np.where(group, 2, 1)
    ill = rng.random(n) < odds / (1 + odds)
    return 2.0, inference.mantel_haenszel(ill, group, band, categories=[0, 1, 2], **kept)


def missed(kind: str, runs: int) -> float:
    """How often the truth is beyond an interval at 95 %."""
    rng, out = np.random.default_rng(5), 0
    for run in range(runs):
        truth, found = one_of(kind, rng, 1500, 0.7, BOTH[run % 2])
        low, high = found.interval(0.95)
        out += not low <= truth <= high
    return out / runs


@pytest.mark.parametrize("kind", ["rate", "mantel_haenszel"])
def test_intervals_hold(kind: str) -> None:
    """Of 24 with noise as large as sampling, 6 that fail would be one chance in 1,000."""
    assert missed(kind, 24) < 6 / 24


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_hold_often(kind: str) -> None:
    """Three deviations above .05 of 120 runs; below it where noise leaves an end open."""
    assert missed(kind, 120) < 0.11


@pytest.mark.parametrize("kind", ["standardised_rate", "standardised_ratio"])
def test_intervals_of_small_studies_hold(kind: str) -> None:
    """A hundred people, of whose strata the noise hides much of the person-time.

    Of 300 each is missed 15 times; 31 or more are one chance in thousands.
    """
    rng, out = np.random.default_rng(7), 0
    kept: dict[str, Any] = {"epsilon": 1, "neighbours": "add-remove", "draws": 400, "seed": rng}
    kept |= {"most_time": 5, "most_events": 4, "weights": {0: 1, 1: 1, 2: 1, 3: 3}}
    for _ in range(300):
        band, group, years = rng.integers(0, 4, 100), rng.random(100) < 0.4, rng.uniform(0, 5, 100)
        falls = rng.poisson(0.12 * (1 + band) * np.where(group, 2, 1) * years)
        truth = 2.0
        if kind == "standardised_ratio":
            found = inference.standardised_ratio(
                falls, years, band, by=group, levels=[False, True], **kept
            )
        else:
            own = ~group
            truth = 0.36
            found = inference.standardised_rate(falls[own], years[own], band[own], **kept)
        # What an interval at 95 % does not hold is rejected at 5 %: one value, so it is quicker.
        out += found.test(truth) <= 0.05
    assert out <= 30


def test_rates_under_the_noise_are_not_drawn_to_none() -> None:
    """Person-time of less than three deviations is a weight no more; it divides nothing."""
    flat = {"y": np.full(8, 3.0), "t": np.full(8, 12.0)}

    def draw(rng: Any, size: int) -> Any:
        return {name: rng.laplace(0, 5, (size, 8)) for name in flat}

    sums = RateSums(flat, draw, {"y": 7.0, "t": 7.0})
    model = RateModel(sums, 8, 1, np.full(8, 1 / 8))
    np.testing.assert_allclose(model.values, [24 / 96])
    errors = model.errors(np.random.default_rng(1), 400)
    lower, upper = errors.interval(0.95)[0]
    assert lower < 0.25 < upper
    assert upper > 0.5
    assert errors.se[0] > errors.se_sampling[0] > 0


def test_scattered_events_that_noise_drowns_have_the_mean_that_they_are_drawn_with() -> None:
    """A normal law of so much variance at so low a mean, cut at 0, has several times that mean."""
    flat = {"y": 2.0, "t": 60.0, "yy": 30.0, "yt": 200.0, "tt": 300.0}
    wide = {"y": 3.0, "t": 1.0, "yy": 70.0, "yt": 50.0, "tt": 20.0}

    def draw(rng: Any, size: int) -> Any:
        return {name: rng.laplace(0, by / 2**0.5, (size, 4)) for name, by in wide.items()}

    sums = RateSums({name: np.full(4, v) for name, v in flat.items()}, draw, wide, most=12.0)
    model = RateModel(sums, 4, 1, np.full(4, 1 / 4))
    errors: Any = model.errors(np.random.default_rng(1), 20_000)
    drawn = errors.simulated(float(model.values[0]), True)
    assert abs(drawn.mean()) < 0.06 * drawn.std()


@pytest.mark.parametrize("most", [1.0, 4.0])
def test_events_scatter_by_no_more_than_their_bound_lets_them(most: float) -> None:
    """Of at most m events a row the variance is at most m times the mean, whatever noise says."""
    none = {"y": 0.1, "t": 1.0, "yy": 300.0, "yt": 0.1, "tt": 0.1}

    def draw(rng: Any, size: int) -> Any:
        return {name: rng.laplace(0, by / 2**0.5, (size, 1)) for name, by in none.items()}

    flat = {"y": 50.0, "t": 500.0, "yy": 9000.0, "yt": 100.0, "tt": 900.0}
    sums = RateSums({name: np.full(1, v) for name, v in flat.items()}, draw, none, most=most)
    errors: Any = RateModel(sums, 1, 1, np.ones(1)).errors(np.random.default_rng(1), 4000)
    assert np.var(errors.simulated(0.1, False)) < 1.15 * most * 50


@pytest.mark.parametrize("values", [[], [1.0], [None] * 9, [INF] * 30, [-INF, NAN, 1e308] * 9])
@pytest.mark.parametrize("neighbours", BOTH)
def test_no_data_raise_anything(values: list[Any], neighbours: Any) -> None:
    """No rows, one, missing, beyond bounds, strata and groups that nobody declared."""
    n = len(values)
    odd = (["a", "b", None, ["odd"]] * n)[:n]
    kept: dict[str, Any] = {"epsilon": 0.2, "neighbours": neighbours, "draws": 100}
    timed: dict[str, Any] = {"most_time": 2, "most_events": 3, "family": "negative-binomial"} | kept
    two: dict[str, Any] = {"by": odd, "levels": ["a", "b"]}
    weights: dict[Any, float] = {"a": 1, "b": 2}
    for found in (
        inference.rate(values, values, **timed),
        inference.rate_ratio(values, values, **two, **timed),
        inference.standardised_rate(values, values, odd, weights=weights, **two, **timed),
        inference.standardised_ratio(values, values, odd, reference=weights, **timed),
        inference.standardised_ratio(values, values, odd, weights=weights, **two, **timed),
        inference.mantel_haenszel(values, values, odd, categories=["a", "b"], **kept),
    ):
        ends = np.atleast_2d(found.interval(0.9))
        assert (ends[:, 0] <= ends[:, 1]).all()
        assert (ends >= 0).all()
        assert "nan" not in found.summary().lower()


def test_arguments_are_checked() -> None:
    """By name, before any data are read."""
    y = t = s = [1.0, 0.0]
    good: dict[str, Any] = {"epsilon": 1, "most_time": 1}
    weights: dict[Any, float] = {0: 1, 1: 1}
    for ask, told in (
        (lambda: inference.rate(y, t, epsilon=1, most_time=0), "most_time"),
        (lambda: inference.rate(y, t, most_events="1e300", **good), "most_events must be from"),
        (lambda: inference.rate(y, t, family="normal", **good), "family"),
        (lambda: inference.rate(y, t, per=0, **good), "per"),
        (lambda: inference.rate(y, t, levels=[0, 1], **good), "by must be given"),
        (lambda: inference.rate(y, [1.0], **good), "equally long"),
        (lambda: inference.rate_ratio(y, t, s, levels=[0, 1, 2], **good), "two groups"),
        (lambda: inference.rate_ratio(y, t, s, levels=[0, 1], null=0, **good), "null"),
        (lambda: inference.standardised_rate(y, t, s, weights={0: 1}, **good), "at least two"),
        (lambda: inference.standardised_rate(y, t, s, weights={0: 1, 1: 0}, **good), "weights"),
        (lambda: inference.standardised_ratio(y, t, s, **good), "one of the two"),
        (
            lambda: inference.standardised_ratio(
                y, t, s, reference=weights, weights=weights, **good
            ),
            "one of the two",
        ),
        (lambda: inference.standardised_ratio(y, t, s, weights=weights, **good), "by must be"),
        (
            lambda: inference.mantel_haenszel(y, t, s, categories=[0], epsilon=1),
            "at least two categories",
        ),
        (
            lambda: inference.mantel_haenszel(y, t, [0], categories=[0, 1], epsilon=1),
            "equally many rows",
        ),
        (
            lambda: inference.mantel_haenszel(
                y, t, s, categories=[0, 1], measure="hazard", epsilon=1
            ),
            "measure",
        ),
    ):
        with pytest.raises(ArgumentError, match=told):
            ask()


def test_drawn_counts_have_the_moments_that_are_asked_for() -> None:
    """Mean, variance and third moment of 20,000, of Poisson and of binomial numbers."""
    z = np.random.default_rng(0).standard_normal(200_000)
    for mean, spread, skew in ((20.0, 20.0, 1.0), (50.0, 25.0, 0.0), (8.0, 7.2, 0.8)):
        drawn = count_drawn(np.array(mean), np.array(spread), z, np.array(skew))
        assert drawn.mean() == pytest.approx(mean, rel=0.01)
        assert drawn.var() == pytest.approx(spread, rel=0.03)
        third = np.mean((drawn - mean) ** 3)
        assert third == pytest.approx(skew * spread, abs=0.12 * spread**1.5)


def test_a_difference_is_inverted_within_its_limits() -> None:
    """Of a number that is no ratio, too."""
    z = np.random.default_rng(1).standard_normal(2000)
    errors = InvertedErrors(
        2.0, lambda v: 2.0 - v, lambda v, noisy: z * (1 + noisy), ratio=False, limits=(0.0, 5.0)
    )
    low, high = errors.interval(0.95)[0]
    assert low == 0.0
    assert high == 5.0
    assert errors.interval(0.3)[0][1] == pytest.approx(2 + 2 * 0.385, abs=0.1)
    assert errors.se_sampling[0] == pytest.approx(1, rel=0.1)
    assert errors.power(np.array([2.0]), np.array([2.0]), 0.05)[0] == pytest.approx(0.05)
