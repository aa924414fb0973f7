"""Proportions: noise against its law, exact tests, and intervals that hold."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dither import inference
from dither.inference.engine._inputs import Target
from dither.inference.estimates import _proportion
from dither.inference.estimates._proportion import CanonicalNoise, KnownRows, MeasuredRows, binomial
from dither.lab.audit import Outcome, audit
from dither.privacy import Neighbours

PURE = Target(Fraction(1, 2), Fraction(0), Neighbours.REPLACE)
LOOSE = Target(Fraction(1, 2), Fraction(1, 50), Neighbours.REPLACE)


@pytest.mark.parametrize("asked", [PURE, LOOSE], ids=["pure", "with delta"])
def test_the_noise_keeps_its_claim(asked: Target) -> None:
    """The density of a count's noise against that of the next count, exactly: delta at epsilon."""
    noise = CanonicalNoise(asked)
    edges = np.arange(-60, 61) - 0.5
    mass = noise.survival(edges[:-1]) - noise.survival(edges[1:])
    assert mass.sum() == pytest.approx(1.0, abs=1e-9)
    # On each unit interval the density is constant, so that sums over intervals are integrals.
    moved = np.roll(mass, 1)
    moved[0] = 0.0
    for first, second in itertools.permutations((mass, moved)):
        lost = np.maximum(first - np.exp(0.5) * second, 0.0)[1:].sum()
        assert lost == pytest.approx(float(asked.delta), abs=1e-9)


@pytest.mark.parametrize("asked", [PURE, LOOSE], ids=["pure", "with delta"])
def test_drawn_and_simulated_noise_follow_the_law(asked: Target) -> None:
    """Both kinds pass Kolmogorov and Smirnov's test against the computed law (1 in 10,000)."""
    noise = CanonicalNoise(asked)
    for drawn in (
        noise.release((0,) * 20_000),
        noise.draw(np.random.default_rng(1), 20_000),
    ):
        assert stats.kstest(drawn, lambda t: 1 - noise.survival(t)).pvalue > 1e-4
        assert np.var(drawn) == pytest.approx(noise.variance, rel=0.08)


@pytest.mark.parametrize("asked", [PURE, LOOSE], ids=["pure", "with delta"])
def test_tails_go_on_where_their_table_ends(asked: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of few tails, as of very wide noise: beyond it is the law's, or a bound."""
    monkeypatch.setattr(_proportion, "_REACH", 4)
    noise = CanonicalNoise(asked)
    for k in (2, 4, 5, 6, 20, 90):
        found, law = float(noise.survival(np.array(k - 0.5))), float(noise.law.survival(k))
        assert law * (1 - 1e-9) <= found
        if not asked.delta:
            assert found <= law * (1 + 1e-9)


def test_binomial_is_scipys() -> None:
    """The window holds all mass that matters."""
    for n, p in ((0, 0.3), (1, 0.0), (50, 0.02), (10**6, 0.5), (300, 1.0)):
        x, law = binomial(n, p)
        np.testing.assert_allclose(law, stats.binom.pmf(x, n, p), rtol=1e-6, atol=1e-12)
        assert law.sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("asked", [PURE, LOOSE], ids=["pure", "with delta"])
def test_p_values_are_uniform_under_the_null(asked: Target) -> None:
    """One-sided p-values are exact: their law is computed on a grid of releases."""
    noise, n, p = CanonicalNoise(asked), 12, 0.3
    x, law = binomial(n, p)
    released = np.linspace(-30, 45, 3001)
    for level in (0.01, 0.05, 0.5):
        rejected = [
            z for z in released if KnownRows(noise, z, n)._one_sided(p, above=True) <= level
        ]
        cut = min(rejected)
        chance = float(np.sum(law * noise.survival(cut - x)))
        assert chance == pytest.approx(level, abs=0.02)
        assert chance <= level + 1e-9


def test_no_test_beats_it() -> None:
    """At its own level, for every larger share, Laplace noise of the same epsilon is weaker."""
    noise, n, null, truth = CanonicalNoise(PURE), 30, 0.5, 0.75
    grid = np.linspace(-20, 50, 7001)
    x, law0 = binomial(n, null)
    _, law1 = np.broadcast_arrays(x, stats.binom.pmf(x, n, truth))

    def power(survival: Any) -> float:
        size = np.array([float(np.sum(law0 * survival(z - x))) for z in grid])
        cut = grid[np.argmax(size <= 0.05)]
        return float(np.sum(law1 * survival(cut - x)))

    ours = power(noise.survival)
    assert ours >= power(stats.laplace(scale=2.0).sf) - 1e-9
    assert ours > 0.3


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_intervals_hold(neighbours: Any) -> None:
    """Of 300 nominal 90 % intervals at least 248 hold: fewer has a chance of 1 in 10,000."""
    rng, held, rejected = np.random.default_rng(8), 0, 0
    for _ in range(300):
        found = inference.proportion(rng.random(60) < 0.15, epsilon=0.5, neighbours=neighbours)
        found = found.simulated(draws=1000)
        lower, upper = found.interval(0.9)
        held += lower <= 0.15 <= upper
        rejected += found.test(0.15) <= 0.1
    assert 248 <= held <= 290
    assert abs(rejected - 30) < 24


def test_half_the_noise_is_caught() -> None:
    """The auditor refutes canonical noise made for twice the epsilon that is claimed."""
    noise = CanonicalNoise(Target(Fraction(2), Fraction(0), Neighbours.REPLACE))
    found = audit(lambda count, size: count + noise.release((0,) * size), 3, 4, 1, samples=40_000)
    assert found.verdict is Outcome.VIOLATED


def test_anything_but_zero_is_a_yes() -> None:
    """Truth values and numbers are taken; the estimate stays within [0, 1]."""
    for rows in ([True] * 50, [2.5] * 50, [float("inf")] * 50):
        found = inference.proportion(rows, epsilon=5)
        assert 0.8 < found.estimate <= 1.0
        assert found.null == 0.5


def test_measured_rows_are_whole_numbers() -> None:
    """Where the noise of both counts is 0, fractions make no row more or less."""
    noise, none = (
        CanonicalNoise(Target(Fraction(8), Fraction(0), Neighbours.ADD_REMOVE)),
        np.zeros((0, 2)),
    )
    for yes, no in ((1.4, 1.4), (0.6, 0.6), (2.0, 0.49), (1.51, -0.49)):
        assert MeasuredRows(noise, yes, no, none).n == 2
    assert MeasuredRows(noise, -3.2, 1.0, none).n == 1


def test_p_values_of_measured_rows_are_monotone() -> None:
    """Else halving would end at one of several values, and intervals miss what is not rejected."""
    noise = CanonicalNoise(Target(Fraction(2), Fraction(0), Neighbours.ADD_REMOVE))
    rng, nulls = np.random.default_rng(3), np.linspace(0.0, 1.0, 65)
    draws = noise.draw(rng, (1000, 2))
    for yes, no in np.concatenate([noise.draw(rng, (30, 2)) + 1.0, [[-9.2, 3.1], [-4.0, -5.0]]]):
        rows = MeasuredRows(noise, yes, no, draws)
        above = np.array([rows._one_sided(p, above=True) for p in nulls])
        under = np.array([rows._one_sided(p, above=False) for p in nulls])
        assert np.all(np.diff(above) >= -1e-12)
        assert np.all(np.diff(under) <= 1e-12)


@pytest.mark.heavy("test_intervals_hold")
def test_intervals_of_few_measured_rows_hold() -> None:
    """The coverage of 95 % intervals, summed over all releases of three rows but one in 1,000.

    What is left to chance are the 10,000 draws: over these eighths of a row, the sum deviates by
    0.002 about 0.97, so that it falls to 0.95 with a chance below 1e-9. Were no draw to count a row
    more, it would be 0.94.
    """
    n, share, epsilon = 3, 0.5, 2.0
    noise = CanonicalNoise(Target(Fraction(2), Fraction(0), Neighbours.ADD_REMOVE))
    draws = noise.draw(np.random.default_rng(5), (10_000, 2))
    each = np.arange(-5, 6)
    law = np.exp(-epsilon * np.abs(each))
    law *= np.tanh(epsilon / 2)
    chances: dict[tuple[int, int], float] = {}
    for x, a, b in itertools.product(range(n + 1), range(each.size), range(each.size)):
        at = int(x + each[a]), int(n - x + each[b])
        mass = float(stats.binom.pmf(x, n, share) * law[a] * law[b])
        chances[at] = chances.get(at, 0.0) + mass
    held = seen = 0.0
    for (yes, no), mass in chances.items():
        if mass < 2e-5:
            continue
        seen += mass
        for fraction in (np.arange(8) + 0.5) / 8 - 0.5:
            rows = MeasuredRows(noise, yes + fraction, no + fraction, draws)
            # At most one of the two rejects, so that their chances add up.
            rejected = sum(rows._one_sided(share, above=side) <= 0.025 for side in (True, False))
            held += mass * (1.0 - rejected) / 8
    assert seen > 0.999
    assert held / seen > 0.95
