"""What must hold of every channel, checked against its law: shared by the tests of this room."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither.examples.paper.formulas import pm_variance
from dither.local import Aggregate, Channel, channel_from_dict
from dither.local._coins import exp_bounds
from dither.local._frequency.unary import UnaryChannel
from dither.local._oracles import FiniteChannel
from dither.numeric import SimulatedWords

DRAWS = 1_000_000
FALSE_ALARM = 1e-7


def chi_square_passes(seen: Any, expected: Any, false_alarm: float = FALSE_ALARM) -> bool:
    """Whether counts agree with expected counts; cells expected below 5 are pooled.

    The chi-square's tail is bounded by Laurent and Massart (2000):
    Pr[X >= d + 2·sqrt(d·t) + 2·t] <= exp(-t).
    """
    seen, expected = np.asarray(seen, float).ravel(), np.asarray(expected, float).ravel()
    if np.any(seen[expected == 0] > 0):
        return False
    small = expected < 5
    seen = np.append(seen[~small], seen[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    kept = expected > 0
    statistic = ((seen[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    d, t = max(1, int(kept.sum()) - 1), -math.log(false_alarm)
    return bool(statistic <= d + 2 * math.sqrt(d * t) + 2 * t)


def check_rows(channel: FiniteChannel) -> None:
    """Rows of the exact law sum to one, and the matrix shows the same law."""
    k, m = len(channel.domain), channel.outputs
    rows = [[channel.exact(x, y) for y in range(m)] for x in range(k)]
    assert all(sum(row, Fraction(0)) == 1 for row in rows)
    assert all(p >= 0 for row in rows for p in row)
    exact = np.array([[float(p) for p in row] for row in rows])
    np.testing.assert_allclose(channel.matrix, exact, rtol=1e-12, atol=1e-15)


def check_pure(channel: FiniteChannel) -> None:
    """No report is more than e^epsilon likelier for one value than for another, exactly."""
    low, _ = exp_bounds(channel.epsilon)
    k = len(channel.domain)
    for y in range(channel.outputs):
        column = [channel.exact(x, y) for x in range(k)]
        assert max(column) <= low * min(column)


def realised(channel: Channel, x: int, seed: int = 1, draws: int = DRAWS) -> Any:
    """Reports of many people who all hold code x."""
    return channel.draw(np.full(draws, x, dtype=np.int64), SimulatedWords(seed))


def check_sampler(channel: FiniteChannel, draws: int = DRAWS) -> bool:
    """Whether the sampler realises the matrix, for every code."""
    rows = channel.matrix
    return all(
        chi_square_passes(
            np.bincount(realised(channel, x, 17 + x, draws), minlength=channel.outputs),
            draws * rows[x],
        )
        for x in range(len(channel.domain))
    )


def simulated_estimates(
    channel: Channel, frequencies: Any, n: int, runs: int, seed: int = 5
) -> tuple[Any, Any]:
    """Raw estimates of many simulated surveys, shape (runs, k), and the true shares."""
    rng = np.random.default_rng(seed)
    histogram = np.round(np.asarray(frequencies) * n).astype(np.int64)
    total = int(histogram.sum())
    found = [channel.decode(channel.simulate(histogram, rng), total) for _ in range(runs)]
    return np.array(found), histogram / total


def check_estimator(channel: Channel, frequencies: Any, n: int = 20_000, runs: int = 6_000) -> None:
    """Unbiased within sampling error, and the stated variance within 3 % in the mean."""
    found, shares = simulated_estimates(channel, frequencies, n, runs)
    stated = channel.variance(shares, n)
    deviations = (found.mean(axis=0) - shares) / np.sqrt(stated / runs)
    assert np.all(np.abs(deviations) < 6)
    ratios = found.var(axis=0) / stated
    assert abs(ratios.mean() - 1) < 0.03
    assert np.all(np.abs(ratios - 1) < 6 * math.sqrt(2 / runs) + 0.01)
    np.testing.assert_allclose(np.diag(channel.noise_covariance(shares)) / n, stated, rtol=1e-9)


def check_wire(channel: Channel, reports: Any) -> None:
    """A channel and its aggregate survive JSON and Arrow, and merging loses nothing."""
    again = channel_from_dict(json.loads(json.dumps(channel.to_dict())))
    assert again == channel
    assert again.hash == channel.hash
    half = len(reports) // 2
    a, b = channel.aggregate(reports[:half]), again.aggregate(reports[half:])
    whole = channel.aggregate(reports)
    assert a + b == b + a == whole
    assert sum([b, a]) == whole
    assert Aggregate.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    assert Aggregate.from_arrow(whole.to_arrow()) == whole
    assert whole.rejected == 0


def check_bit_rows(channel: UnaryChannel) -> None:
    """The law of the rows of bits sums to one, exactly, for every code."""
    for x in range(len(channel.domain)):
        law = [channel.exact(x, bits) for bits in channel.reports()]
        assert min(law) >= 0
        assert sum(law, Fraction(0)) == 1


def worst_bit_ratio(channel: UnaryChannel, x: int, other: int) -> Fraction:
    """The largest ratio of one report's chances, of code x against another, over all reports."""
    pairs = ((channel.exact(x, b), channel.exact(other, b)) for b in channel.reports())
    return max(p / q for p, q in pairs)


def check_bit_pure(channel: UnaryChannel, tight: float = 1e-12) -> None:
    """Over all reports the worst ratio is at most e^epsilon, and no less than the claim by much."""
    low, high = exp_bounds(channel.guarantee.epsilon)
    k = range(len(channel.domain))
    worst = max(worst_bit_ratio(channel, x, other) for x in k for other in k if x != other)
    assert worst <= low
    assert worst >= high * (1 - Fraction(tight))


def check_bit_sampler(channel: UnaryChannel, draws: int = DRAWS) -> bool:
    """Whether the sampler realises the joint law of the bits, for every code."""
    k = len(channel.domain)
    weights = 1 << np.arange(k)[::-1]
    for x in range(k):
        rows = np.unpackbits(realised(channel, x, 31 + x, draws), axis=1)
        assert not rows[:, k:].any()
        seen = np.bincount(rows[:, :k] @ weights, minlength=1 << k)
        law = [float(channel.exact(x, bits)) for bits in channel.reports()]
        if not chi_square_passes(seen, draws * np.array(law)):
            return False
    return True


def hockey_stick(channel: FiniteChannel, x: int, other: int, epsilon: Fraction) -> Fraction:
    """An upper bound of delta(epsilon) of code x against another: sum over y of (p - e^eps q)+."""
    low, _ = exp_bounds(epsilon)
    rows = ([channel.exact(code, y) for y in range(channel.outputs)] for code in (x, other))
    return sum((max(Fraction(0), p - low * q) for p, q in zip(*rows, strict=True)), Fraction(0))


def duchi_variance(x: Any, epsilon: float) -> Any:
    """((e + 1)/(e - 1))² - x²."""
    return np.asarray(1 / math.tanh(epsilon / 2) ** 2 - np.square(x))


def hybrid_variance(x: Any, epsilon: float) -> Any:
    """PM's and Duchi's variance with chances 1 - 1/s and 1/s; Duchi's up to epsilon 0.61."""
    if epsilon <= 0.61:
        return duchi_variance(x, epsilon)
    beta = -math.expm1(-epsilon / 2)
    return beta * pm_variance(x, epsilon) + (1 - beta) * duchi_variance(x, epsilon)


def laplace_variance(epsilon: float) -> float:
    """8/epsilon²: noise of scale 2/epsilon on an interval of length 2."""
    return 8 / epsilon**2


def sw_half_width(epsilon: float) -> float:
    """b = (εe - e + 1)/(2e(e - 1 - ε)) of the square wave on [0, 1]; 1/2 as epsilon vanishes."""
    if epsilon < 1e-3:  # the quotient of two numbers near 0; its series to an error of epsilon²
        return 0.5 - epsilon / 3
    e = math.exp(epsilon)
    return (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
