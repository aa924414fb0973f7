"""Intervals of means: coverage, computed wherever the support allows, simulated elsewhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from dither import local
from dither._stats import clopper_pearson
from dither.local._numbers.mean import least_error
from dither.local._numbers.numeric import NumericChannel

UNIT = local.Interval(0, 1, steps=4)
LEVEL = 0.95
Array = npt.NDArray[np.float64]


def law_of_heads(chances: Array) -> Array:
    """The law of how many of some unlike coins are heads."""
    found = np.array([1.0])
    for chance in chances.tolist():
        found = np.convolve(found, [1 - chance, chance])
    return found


PEOPLE = {
    "all at the low end": lambda n: np.zeros(n, dtype=np.int64),
    "all at the high end": lambda n: np.full(n, 4),
    "all in the middle": lambda n: np.full(n, 2),
    "all near an end": lambda n: np.full(n, 1),
    "half at each end": lambda n: np.arange(n) % 2 * 4,
    "one in ten at an end": lambda n: (np.arange(n) % 10 == 0) * 4,
}


@pytest.mark.parametrize("people", PEOPLE.values(), ids=PEOPLE)
@pytest.mark.parametrize("epsilon", [0.5, 2, 4, 6, 8])
@pytest.mark.parametrize("n", [2, 30, 200])
def test_coverage_of_one_bit_is_exact(n: int, epsilon: float, people: object) -> None:
    """Duchi, by the law of all reports: the people's mean is missed no oftener than stated."""
    channel, held = local.Duchi(UNIT, epsilon), people(n)  # type: ignore[operator]
    upper = np.array([channel.law.row(x)[1] for x in range(5)])
    truth = float(channel.interval.points[held].mean())
    covered = 0.0
    for heads, chance in enumerate(law_of_heads(upper[held]).tolist()):
        if chance > 1e-15:
            lower, upper_end = local.Aggregate(channel, [n - heads, heads], n).estimate().interval
            covered += chance * (lower - 1e-9 <= truth <= upper_end + 1e-9)
    # A normal interval's error is known to an eighth of what it may miss.
    assert covered >= 1 - (1 - LEVEL) * 1.25


CHANNELS: list[NumericChannel] = [
    channel(UNIT, epsilon)
    for channel in (local.PM, local.SW, local.Hybrid)
    for epsilon in (1, 4, 8, 16)
] + [local.LatticeLaplace(local.Interval(0, 1, steps=2), 6)]


@pytest.mark.parametrize("channel", CHANNELS)
def test_coverage_of_two_reports_is_exact(channel: NumericChannel) -> None:
    """All pairs of reports of every pair of people: the smallest survey there is."""
    rows = np.array([channel.law.row(x) for x in range(len(channel.domain))])
    m = channel.outputs
    counted = {}
    for a, b in itertools.combinations_with_replacement(range(m), 2):
        counts = np.bincount([a, b], minlength=m)
        counted[a, b] = local.Aggregate(channel, counts, 2).estimate().interval
    for x, y in itertools.combinations_with_replacement(range(len(rows)), 2):
        truth = float(channel.interval.points[[x, y]].mean())
        missed = sum(
            rows[x, a] * rows[y, b]
            for a, b in itertools.product(range(m), repeat=2)
            if not _holds(counted[min(a, b), max(a, b)], truth)
        )
        assert missed <= 1 - LEVEL


def _holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] - 1e-9 <= truth <= interval[1] + 1e-9


@pytest.mark.parametrize("make", [local.PM, local.SW, local.LatticeLaplace])
@pytest.mark.parametrize("epsilon", [1, 4, 8])
@pytest.mark.parametrize("n", [10, 150, 700, 3000])
def test_coverage_of_any_number(make: type[local.PM], epsilon: float, n: int) -> None:
    """Everybody at one end, and in the middle: simulated 1,500 times (false alarm 1e-6 each).

    5 standard deviations of a share of 0.0625 missed, the most that is claimed, are 0.0312.
    """
    channel, rng, runs = (
        make(local.Interval(0, 1, steps=16), epsilon),
        np.random.default_rng(7),
        1500,
    )
    for point in (0, 8):
        law = channel.law.row(point)
        counts = rng.multinomial(n, law / law.sum(), size=runs)
        truth = point / 16
        found = [local.Aggregate(channel, c, n).estimate().interval for c in counts]
        missed = np.mean([not _holds(one, truth) for one in found])
        assert missed <= 0.0625 + 0.0312


def test_no_interval_without_width() -> None:
    """Reports that are all alike are no proof: two, or thirty, of the same give a wide interval."""
    for make in (local.PM, local.Duchi, local.Hybrid, local.LatticeLaplace, local.SW):
        channel = make(UNIT, 2)
        for n in (2, 30):
            found = channel.aggregate([0] * n).estimate()
            assert found.standard_error >= least_error(channel, n) > 0
            assert found.method in ("exact", "bounded")
            assert found.interval[1] - found.interval[0] > 0.05
            assert "Too few reports" in found.summary()
            assert "±" not in found.summary()
    assert "± 0.000000" not in str(local.PM(UNIT, 4).aggregate([0, 0]).estimate())


def test_many_reports_have_a_normal_interval() -> None:
    """Where enough reports decide, the interval is the normal one, of the spread that is seen."""
    channel = local.PM(local.Interval(0, 1, steps=64), 1)
    drawn = local.simulate(channel, np.full(65, 400), np.random.default_rng(2))
    found = drawn.estimate()
    assert found.method == "normal"
    half = 1.959964 * found.standard_error
    assert found.interval == pytest.approx((found.mean - half, found.mean + half), abs=1e-6)
    spread = drawn.counts / drawn.n @ (channel.positions - found.mean) ** 2
    assert found.standard_error == pytest.approx(math.sqrt(spread / drawn.n), rel=1e-4)


def test_limits_of_a_coin() -> None:
    """Clopper and Pearson's limits are those of their table, and cover."""
    assert clopper_pearson(0, 10, 0.95) == pytest.approx((0, 0.30850), abs=1e-5)
    assert clopper_pearson(3, 10, 0.95) == pytest.approx((0.06674, 0.65245), abs=1e-5)
    assert clopper_pearson(10, 10, 0.95) == pytest.approx((0.69150, 1), abs=1e-5)
    lower, upper = clopper_pearson(500, 100_000, 0.99)
    assert lower < 0.005 < upper < 0.0057


def test_the_laplace_law_is_summed_as_its_rows_say() -> None:
    """Running sums give what the matrix gives, clamped ends included."""
    for epsilon, steps in ((0.1, 8), (1, 16), (40, 8), (8, 3)):
        law = local.LatticeLaplace(local.Interval(0, 1, steps=steps), epsilon).law
        rows = np.array([law.row(x) for x in range(steps + 1)])
        rng = np.random.default_rng(3)
        weights, shares = rng.random(rows.shape[1]), rng.random(steps + 1)
        assert law.back(weights) == pytest.approx(rows @ weights, abs=1e-12)
        assert law.forward(shares) == pytest.approx(shares @ rows, abs=1e-12)


def test_nothing_seen_is_no_certainty() -> None:
    """Errors of made-up attributes are those of a population, also where nobody said a value."""
    survey = local.FakeData({"a": 4, "b": 4}, epsilon=8)
    found = survey.aggregate({"a": [0, 0], "b": [1, 1]}).estimate()
    assert all(part.standard_errors.min() > 0.01 for part in found.values())


def test_personal_shares_know_which_intervals_to_trust() -> None:
    """Classes together, as each alone: where hardly a report decides there is no interval."""
    offer = local.Personal.of(local.GRR, 3, epsilons=[8, 9])
    few = offer.aggregate({0: [0] * 20, 1: [0] * 20}).estimate()
    assert not few.trusted.any()
    assert np.isnan(few.intervals).all()
    assert "unknown" in few.summary()
    many = offer.aggregate({0: [0, 1, 2] * 40_000, 1: [0, 1, 2] * 40_000}).estimate()
    assert many.trusted.all()
    assert np.isfinite(many.intervals).all()
