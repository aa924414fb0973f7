"""Channels for numbers: exact laws, promises, unbiased means, and the errors they state."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import local
from dither.errors import ArgumentError
from dither.examples.paper import formulas
from dither.local._coins import ONE, exp_bounds
from dither.local._numbers.numeric import NumericChannel
from dither.local._numbers.window import WindowLaw, toss
from dither.numeric import SimulatedWords
from local.laws import (
    check_pure,
    check_rows,
    check_sampler,
    check_wire,
    chi_square_passes,
    duchi_variance,
    hybrid_variance,
    laplace_variance,
    sw_half_width,
)

SMALL = local.Interval(-1, 1, steps=4)
UNBIASED = (local.PM, local.SW, local.Duchi, local.Hybrid)
CHANNELS = [made(SMALL, eps) for made in UNBIASED for eps in (Fraction(3, 10), 1, 5)]


def _names(channel: NumericChannel) -> str:
    return f"{channel.kind}-{float(channel.epsilon):g}"


def _exact_positions(channel: NumericChannel) -> list[Fraction]:
    """Values of the reports where inputs go from -1 to 1, as rationals."""

    def of(law: object) -> list[Fraction]:
        if isinstance(law, WindowLaw):
            return [
                law.spacing * (Fraction(2 * j - law.outputs + 1, 2)) for j in range(law.outputs)
            ]
        if hasattr(law, "bound"):
            return [-law.bound, law.bound]
        return of(law.window) + of(law.ends)  # type: ignore[attr-defined]

    return of(channel.law)


@pytest.mark.parametrize("channel", CHANNELS, ids=_names)
def test_law_and_promise(channel: NumericChannel) -> None:
    """Rows sum to one, no ratio is above e^epsilon, and the class says so."""
    check_rows(channel)
    check_pure(channel)
    assert channel.guarantee.delta == 0
    assert channel.guarantee.loss().epsilon(delta=0) >= float(channel.epsilon)


@pytest.mark.parametrize("channel", CHANNELS, ids=_names)
def test_sampler_realises_the_law(channel: NumericChannel) -> None:
    """A million draws of each point against the matrix, false alarm 1e-7 each."""
    assert check_sampler(channel)


@pytest.mark.parametrize("channel", CHANNELS, ids=_names)
def test_reports_are_unbiased_exactly(channel: NumericChannel) -> None:
    """The expectation of a report's value is the point, as rationals."""
    values = _exact_positions(channel)
    np.testing.assert_allclose(channel.positions, [float(v) for v in values], rtol=1e-12)
    for x in range(SMALL.steps + 1):
        found = sum(channel.exact(x, y) * v for y, v in enumerate(values))
        assert found == Fraction(2 * x, SMALL.steps) - 1


@pytest.mark.parametrize(("epsilon", "steps"), [(1, 2), (4, 3), (8, 5)])
def test_laplace_law_and_promise(epsilon: float, steps: int) -> None:
    """Rows sum to one; ratios stay below e^epsilon to 2**-150; the clamp's bias is bounded."""
    channel = local.LatticeLaplace(local.Interval(-1, 1, steps=steps), epsilon)
    check_rows(channel)
    _, high = exp_bounds(channel.epsilon)
    top = high * (1 + Fraction(1, 1 << 150))
    first, last = ([channel.exact(x, y) for y in range(channel.outputs)] for x in (0, steps))
    assert all(a <= top * b and b <= top * a for a, b in zip(first, last, strict=True))
    step = channel.interval.step
    values = [step * (j - channel.law.reach) - 1 for j in range(channel.outputs)]
    for x in (0, 1, steps):
        mean = sum(channel.exact(x, y) * v for y, v in enumerate(values))
        assert abs(mean - (step * x - 1)) <= channel.bias_bound
    means, variances = channel.moments()
    exact = channel.law.back(channel.positions**2) - channel.law.back(channel.positions) ** 2
    np.testing.assert_allclose(variances, exact, rtol=1e-3)
    np.testing.assert_allclose(means, channel.law.back(channel.positions), atol=1e-5)
    assert check_sampler(channel, 200_000)


@pytest.mark.parametrize(
    "channel",
    [
        *CHANNELS,
        local.Hybrid(local.Interval(0, 3, steps=37), 1),
        local.PM(local.Interval(steps=64), 2),
        local.LatticeLaplace(local.Interval(steps=20), 3),
    ],
    ids=_names,
)
def test_fast_products_are_the_matrix(channel: NumericChannel) -> None:
    """forward, back, and both on bins of reports equal the products with the matrix."""
    matrix, rng = channel.matrix, np.random.default_rng(1)
    f, w = rng.random(matrix.shape[0]), rng.random(matrix.shape[1])
    np.testing.assert_allclose(channel.law.forward(f), f @ matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.law.back(w), matrix @ w, rtol=1e-10)
    linear = channel.linear(None, None)
    counts = np.arange(channel.outputs)
    assert linear.group(counts).sum() == counts.sum()
    for outputs in (None, 2):
        linear = channel.linear(3, outputs)
        rows = np.array([linear.forward(one) for one in np.eye(3)])
        np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
        w = rng.random(rows.shape[1])
        np.testing.assert_allclose(linear.back(w), rows @ w, rtol=1e-10)


def test_a_bin_is_the_mean_of_its_points() -> None:
    """Rows of bins are means of rows of points, with reports added up."""
    channel = local.SW(local.Interval(steps=10), 1)
    linear = channel.linear(4, 3)
    points = np.array_split(np.arange(11), [3, 6, 9])  # begins at ceil(11·b/4)
    ends = [0, -(-channel.outputs // 3), -(-2 * channel.outputs // 3)]
    expected = np.add.reduceat(channel.matrix, ends, axis=1)
    expected = np.array([expected[group].mean(axis=0) for group in points])
    found = np.array([linear.forward(one) for one in np.eye(4)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("channel", [*CHANNELS, local.LatticeLaplace(SMALL, 1)], ids=_names)
def test_stated_variance(channel: NumericChannel) -> None:
    """mean_variance against 60,000 simulated surveys: 3 % is 5.2 sigma (2e-7)."""
    histogram, rng, runs = np.array([300, 100, 0, 500, 100]), np.random.default_rng(7), 60_000
    positions, found = channel.positions, np.zeros(runs)
    for x, n in enumerate(histogram.tolist()):
        row = channel.law.row(x)
        if row.size <= 20:
            found += rng.multinomial(n, row / row.sum(), size=runs) @ positions
        else:  # one report's law, added up n times, has the same variance
            drawn = rng.choice(positions, p=row / row.sum(), size=(runs, 2))
            mean = row @ positions
            found += (drawn - mean).sum(axis=1) * np.sqrt(n / 2) + n * mean
    found /= 1000
    stated = channel.mean_variance(histogram / 1000, 1000)
    assert abs(found.var() / stated - 1) < 0.03
    truth = histogram @ SMALL.points / 1000
    assert abs(found.mean() - truth) < 6 * np.sqrt(stated / runs)
    between = histogram @ SMALL.points**2 / 1000 - truth**2
    assert channel.mean_variance(histogram / 1000, 1000, population=True) == pytest.approx(
        stated + between / 1000
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2, 4])
def test_fine_lattices_meet_the_closed_forms(epsilon: float) -> None:
    """At 1,024 steps variances agree with the continuous mechanisms' within half a percent."""
    interval = local.Interval()
    x, near = interval.points, {"rtol": 5e-3}
    pm = local.PM(interval, epsilon)
    np.testing.assert_allclose(pm.moments()[1], formulas.pm_variance(x, epsilon), **near)
    duchi = local.Duchi(interval, epsilon).moments()[1]
    np.testing.assert_allclose(duchi, duchi_variance(x, epsilon), rtol=1e-9)
    hybrid = local.Hybrid(interval, epsilon).moments()[1]
    np.testing.assert_allclose(hybrid, hybrid_variance(x, epsilon), **near)
    laplace = local.LatticeLaplace(interval, epsilon).moments()[1]
    np.testing.assert_allclose(laplace, laplace_variance(epsilon), **near)
    width = local.SW(interval, epsilon).law.width
    assert abs(width - 2048 * sw_half_width(epsilon)) <= 0.5 + 1e-9
    density = float(pm.law.p / pm.law.spacing)
    assert density == pytest.approx(formulas.pm_density(epsilon), rel=5e-3)


def test_square_wave_narrows_to_a_half() -> None:
    """b goes to one half as epsilon vanishes, without cancellation."""
    assert sw_half_width(1e-9) == pytest.approx(0.5)
    below, above = sw_half_width(0.000999), sw_half_width(0.001001)
    assert below == pytest.approx(above, rel=1e-5)
    for epsilon in (Fraction(1, 1 << 32), Fraction(1, 10**6)):
        assert local.SW(SMALL, epsilon).law.width == 4


@pytest.mark.parametrize("channel", [*CHANNELS, local.LatticeLaplace(SMALL, 1)], ids=_names)
def test_the_wire(channel: NumericChannel) -> None:
    """JSON, Arrow and merging lose nothing; impossible reports are counted and dropped."""
    check_wire(channel, channel.privatize(np.linspace(-1, 1, 50)))
    counted = channel.aggregate([0, 1, -1, channel.outputs, 0.5, None])
    assert (counted.n, counted.rejected) == (2, 4)
    with pytest.raises(ArgumentError, match="could not have"):
        channel.aggregate([channel.outputs], strict=True)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-1, 6), max_size=40), st.randoms(use_true_random=False))
def test_merging_is_free_of_order(reports: list[int], shuffler: object) -> None:
    """However reports are cut and mixed, the aggregate and the mean are the same."""
    channel = local.PM(SMALL, 1)
    mixed = list(reports)
    shuffler.shuffle(mixed)  # type: ignore[attr-defined]
    parts = sum([channel.aggregate(mixed[i : i + 7]) for i in range(0, len(mixed), 7)], 0)
    whole = channel.aggregate(reports)
    assert parts == (whole if reports else 0)
    if whole.n > 1:
        assert parts.estimate() == whole.estimate()


@pytest.mark.parametrize("made", UNBIASED)
def test_device_to_estimate(made: type[NumericChannel]) -> None:
    """From numbers to a mean with its error: within 6 standard errors, which are as predicted."""
    channel = made(local.Interval(0, 50, steps=100), 1)  # type: ignore[call-arg]
    values = np.repeat([10.03, 12.2, 31.9], 20_000)
    words = SimulatedWords(11)
    reports = channel.draw(channel.interval.round(values, words), words)
    found = channel.aggregate(reports).estimate()
    assert abs(found.mean - values.mean()) < 6 * found.standard_error
    histogram = np.bincount(np.rint(values * 2).astype(int), minlength=101)
    shares = histogram / histogram.sum()
    predicted = channel.mean_variance(shares, values.size, population=True)
    assert found.standard_error**2 == pytest.approx(predicted, rel=0.03)
    lower, upper = found.interval
    assert upper - lower == pytest.approx(2 * 1.959964 * found.standard_error)
    assert not found.biased
    assert "95 %" in found.summary()
    assert found.frame.columns == ["mean", "standard_error", "n", "lower", "upper"]


def test_one_number_and_a_column() -> None:
    """A device privatises one number, a simulation a column; both are whole positions."""
    channel = local.PM(SMALL, 1)
    for value in (0.25, 1, Fraction(1, 3), "0.5"):
        assert 0 <= channel.privatize(value) < channel.outputs
    assert channel.privatize([0.5, -1]).shape == (2,)
    with pytest.raises(ArgumentError, match="bounds"):
        channel.privatize(1.5)


def test_simulation_by_counts_has_the_same_law() -> None:
    """Multinomial counts and single reports agree with the expected counts (1e-7 each)."""
    channel, rng = local.SW(SMALL, 1), np.random.default_rng(3)
    for n, runs in ((10, 2000), (400_000, 1)):
        histogram = np.array([n, 0, n, 0, 2 * n])
        drawn = sum(channel.simulate(histogram, rng) for _ in range(runs))
        expected = channel.law.forward(histogram.astype(float)) * runs
        assert chi_square_passes(drawn, expected)


def test_what_is_refused() -> None:
    """No interval, a bad epsilon, shares of points, means of lists, too many positions."""
    with pytest.raises(ArgumentError, match="Interval"):
        local.PM(100, 1)  # type: ignore[arg-type]
    for bad in (0, -1, 41, float("nan")):
        with pytest.raises(ArgumentError):
            local.Duchi(SMALL, bad)
    counted = local.PM(SMALL, 1).aggregate([1, 2, 3])
    with pytest.raises(ArgumentError, match="not for numbers"):
        counted.estimate("clip")
    with pytest.raises(ArgumentError, match=r"estimate\(\) reads the mean"):
        counted.channel.variance(np.full(5, 0.2), 10)
    with pytest.raises(ArgumentError, match="two reports"):
        local.PM(SMALL, 1).aggregate([1]).estimate()
    with pytest.raises(ArgumentError, match="bins cannot be asked for of a mean"):
        counted.estimate(bins=3)
    with pytest.raises(ArgumentError, match="confidence"):
        counted.estimate(confidence=95)
    with pytest.raises(ArgumentError, match="fewer steps"):
        local.LatticeLaplace(local.Interval(), Fraction(1, 10**6))
    with pytest.raises(ArgumentError, match="n must"):
        local.PM(SMALL, 1).mean_variance(np.full(5, 0.2), 0)


def test_planted_errors_are_caught() -> None:
    """Too sure a window, a window that begins one too late, and swapped ends all fail."""
    channel = local.PM(SMALL, 1)
    sure = replace_law(channel, replace(channel.law, inside=channel.law.inside + Fraction(1, ONE)))
    with pytest.raises(AssertionError):
        check_pure(sure)

    class Late(WindowLaw):
        def draw(self, codes, words):  # type: ignore[no-untyped-def]
            return WindowLaw.draw(self, np.minimum(codes + 1, self.steps), words)

    law = channel.law
    late = replace_law(channel, Late(law.steps, law.outputs, law.width, law.inside))
    assert not check_sampler(late, 100_000)
    duchi = local.Duchi(SMALL, 1)
    swapped = replace_law(duchi, replace(duchi.law, truth=ONE - duchi.law.truth))
    mean = sum(swapped.exact(4, y) * v for y, v in enumerate(_exact_positions(duchi)))
    assert mean == -1


def replace_law(channel: NumericChannel, law: object) -> NumericChannel:
    """A channel with another law."""
    made = object.__new__(type(channel))
    for name in ("domain", "epsilon", "interval"):
        object.__setattr__(made, name, getattr(channel, name))
    object.__setattr__(made, "law", law)
    return made


@pytest.mark.parametrize("chance", [Fraction(3, 7), Fraction(1, 4), Fraction(0), Fraction(1)])
def test_rational_coins(chance: Fraction) -> None:
    """Coins of any rational chance come true that often (6 sigma, 2e-9)."""
    n = 200_000
    found = int(toss(chance, n, SimulatedWords(9)).sum())
    assert abs(found - n * chance) <= 6 * float(n * chance * (1 - chance)) ** 0.5
