"""SDPM: its class matrix against all pairs of rows, its bias and variance, and who is low."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.examples.paper import formulas
from dither.local._coins import exp_bounds
from dither.local._oracles import log_ratio, worst_pair
from dither.numeric import SimulatedWords
from local.laws import check_rows, check_sampler, check_wire, hockey_stick

EIGHT = local.Interval(-1, 1, steps=8)
SMALL = [
    local.SDPM(EIGHT, low, eps)
    for low, eps in [
        ((-0.5, 0.5), Fraction(1, 2)),
        ((-0.5, 0.5), 2),
        ((0, 0.75), 1),
        ((-1, 0), 3),
        ((0.25, 0.25), 1),
    ]
]


def _name(channel: local.SDPM) -> str:
    return f"{float(channel.low_range[0]):g}..{float(channel.low_range[1]):g}@{channel.epsilon}"


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_law(channel: local.SDPM) -> None:
    """Rows sum to one; fast products are the matrix; breaks lose nothing."""
    check_rows(channel)
    matrix, rng = channel.matrix, np.random.default_rng(1)
    f, w = rng.random(matrix.shape[0]), rng.random(matrix.shape[1])
    np.testing.assert_allclose(channel.law.forward(f), f @ matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.law.back(w), matrix @ w, rtol=1e-10)
    edges = channel.law.breaks()
    widths = np.diff(np.append(edges, channel.outputs))
    np.testing.assert_allclose(np.repeat(matrix[:, edges], widths, axis=1), matrix, rtol=1e-12)


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_sampler_realises_the_law(channel: local.SDPM) -> None:
    """A million draws of each point of one channel, fewer of others; false alarm 1e-7 each."""
    assert check_sampler(channel, 1_000_000 if channel is SMALL[1] else 100_000)


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_class_matrix_is_the_worst_of_all_pairs(channel: local.SDPM) -> None:
    """Every delta and pure ratio equals the worst over all pairs of exact rows."""
    codes = {"high": np.flatnonzero(~channel.low), "low": np.flatnonzero(channel.low)}
    stated = channel.guarantee
    for pair, found in stated.pairs.items():
        worst = worst_pair(channel, codes[pair[0]], codes[pair[1]], channel.epsilon)
        assert found.delta == pytest.approx(worst.delta, rel=1e-12, abs=1e-15)
        assert found.delta >= worst.delta
        assert found.ratio == pytest.approx(worst.ratio, rel=1e-12)
    assert stated.pairs["high", "high"].delta == 0
    assert stated.graded
    with pytest.raises(ArgumentError, match="matrix of classes"):
        stated.loss()


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_the_definition_put_right(channel: local.SDPM) -> None:
    """High values reach every output, low ones no other low output; on high outputs, e^epsilon."""
    low_e, _ = exp_bounds(channel.epsilon)
    lows = range(channel.outputs)[channel.law.lows]
    for y in range(channel.outputs):
        highs = [channel.exact(x, y) for x in np.flatnonzero(~channel.low).tolist()]
        assert min(highs) > 0
        assert max(highs) <= low_e * min(highs)
        others = [channel.exact(x, y) for x in np.flatnonzero(channel.low).tolist()]
        if y in lows:
            assert sorted(others) == [0] * (len(others) - 1) + [channel.law.truth]
        else:
            everyone = highs + others
            assert max(everyone) <= low_e * min(everyone)


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_bias(channel: local.SDPM) -> None:
    """High reports are exactly unbiased; a low x counts p'x less what the low range lacks."""
    law, n = channel.law, EIGHT.steps
    values = [Fraction(2 * (j - law.offset), n) - 1 for j in range(channel.outputs)]
    np.testing.assert_allclose(channel.positions, [float(v) for v in values], atol=1e-12)
    missing = law.window.q * sum(values[channel.law.lows])
    assert law.window.spacing == Fraction(2, n)
    for x in range(n + 1):
        point = Fraction(2 * x, n) - 1
        mean = sum(channel.exact(x, y) * v for y, v in enumerate(values))
        assert mean == (law.truth * point - missing if channel.low[x] else point)


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("c", [0.25, 0.75])
def test_fine_lattices_meet_the_closed_forms(epsilon: float, c: float) -> None:
    """p' and both classes' variances within half a percent at 1,024 steps; (15) misses a term."""
    interval = local.Interval()
    channel = local.SDPM(interval, (-c, c), epsilon)
    truth = formulas.sdpm_truth(epsilon, -c, c)
    assert float(channel.law.truth) == pytest.approx(truth, rel=5e-3)
    x, (means, variances) = interval.points, channel.moments()
    low = channel.low
    stated = formulas.sdpm_low_variance(x, epsilon, c)
    np.testing.assert_allclose(variances[low], stated[low], rtol=5e-3)
    np.testing.assert_allclose(means[low], truth * x[low], rtol=5e-3, atol=1e-9)
    pm = formulas.pm_variance(x, epsilon)
    np.testing.assert_allclose(variances[~low], pm[~low], rtol=5e-3)
    np.testing.assert_allclose(means[~low], x[~low], rtol=1e-8, atol=1e-10)
    printed = formulas.sdpm_low_variance_printed(epsilon, c)
    assert stated[low].max() - printed == pytest.approx(truth * (1 - truth) * c * c, rel=0.02)


def test_truth_of_the_corrections() -> None:
    """p' is 0.061 at epsilon 0.1 and 0.468 at 1, for [-0.5, 0.5]; so is delta between two low."""
    for epsilon, expected in ((0.1, 0.061), (1, 0.468)):
        channel = local.SDPM(local.Interval(), (-0.5, 0.5), epsilon)
        assert round(formulas.sdpm_truth(epsilon, -0.5, 0.5), 3) == expected
        assert channel.guarantee.pairs["low", "low"].delta == pytest.approx(expected, abs=1e-3)


def test_stated_variance_against_simulation() -> None:
    """mean_variance and means against half a million reports of each of three points."""
    channel = local.SDPM(local.Interval(steps=64), (-0.5, 0.5), 1)
    shares = np.zeros(65)
    shares[[20, 32, 60]] = 0.25, 0.5, 0.25
    means, total = [], 0.0
    for x, part in ((20, 0.25), (32, 0.5), (60, 0.25)):
        drawn = channel.positions[channel.draw(np.full(500_000, x), SimulatedWords(x))]
        total += part * drawn.var()
        means.append(part * drawn.mean())
    assert total == pytest.approx(channel.mean_variance(shares, 1), rel=0.03)
    assert sum(means) == pytest.approx(shares @ channel.moments()[0], abs=0.02)


def test_high_values_are_never_rounded_into_the_low_class() -> None:
    """A value just outside the low range is randomised as a high point, and the range inwards."""
    channel = local.SDPM(EIGHT, (-0.6, 0.6), 1)
    assert channel.low_range == (Fraction(-1, 2), Fraction(1, 2))
    assert channel.apart == (2, 6)
    values = np.tile([0.5001, 0.55, -0.5001, 0.5, 0.499], 400)
    codes = channel.interval.round(values, SimulatedWords(2), apart=channel.apart)
    low = channel.low[codes].reshape(-1, 5)
    assert np.all(low == [False, False, False, True, True])


@pytest.mark.parametrize("channel", SMALL, ids=_name)
def test_the_wire(channel: local.SDPM) -> None:
    """JSON, Arrow and merging lose nothing."""
    check_wire(channel, channel.privatize(np.linspace(-1, 1, 50)))


def test_the_plain_mean_is_told_to_be_biased() -> None:
    """It has no interval, and says what to use instead."""
    found = SMALL[0].aggregate([1, 2, 3]).estimate()
    assert found.biased
    assert "biased" in found.summary()
    assert "lower" not in found.frame.columns
    with pytest.raises(ArgumentError, match="not valid"):
        _ = found.interval


@pytest.mark.parametrize(
    "low", [(-2, 2), (0.1, 0.2), (2, 3), (-3, -2), (0.5, -0.5), 3, (0, 1, 2), ("a", 1)]
)
def test_bad_ranges_are_refused(low: object) -> None:
    """All points low, none (nor where the range is beyond the interval), or no two numbers."""
    with pytest.raises(ArgumentError, match="low_range"):
        local.SDPM(EIGHT, low, 1)  # type: ignore[arg-type]


def test_too_many_positions_are_refused() -> None:
    """A tiny epsilon asks for fewer steps."""
    with pytest.raises(ArgumentError, match="fewer steps"):
        local.SDPM(local.Interval(), (-0.5, 0.5), Fraction(1, 10**5))


def test_planted_error_is_caught() -> None:
    """A truth that is a little greater, as if the low range were wider, breaks the rows."""
    channel = SMALL[0]

    class Bold(type(channel.law)):  # type: ignore[misc]
        @property
        def truth(self) -> Fraction:
            return super().truth + Fraction(1, 1 << 40)

    law = Bold(channel.law.window, channel.law.first, channel.law.last)
    x = int(np.flatnonzero(channel.low)[0])
    assert sum(law.exact(x, y) for y in range(channel.outputs)) != 1


def test_helpers_speak_of_exact_rows() -> None:
    """The worst delta from low to high is at a point that a high window misses."""
    channel = SMALL[0]
    low, high = int(np.flatnonzero(channel.low)[0]), EIGHT.steps
    delta = hockey_stick(channel, low, high, channel.epsilon)
    assert 0 < delta < 1
    assert math.isinf(log_ratio(channel.exact(high, low + channel.law.offset), Fraction(0)))
