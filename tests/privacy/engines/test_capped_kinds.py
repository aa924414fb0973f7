"""Many sparse samples: hits in closed form and a contour of the rest, against other ways to sum."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.privacy.engines.capped_kinds import CappedKinds, capped_kinds
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.sampled.capped import CappedGaussiansTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.sampled.panels import panel_edges, panel_error, panel_nodes


def sparse(n, removal):
    """Noise from .6 to .9 and rates that grow sixfold."""
    i = np.arange(n) / n
    return SampledGaussiansTerm(0.6 + 0.3 * i, 2e-4 + 1e-3 * i, 1.0 + np.arange(n) % 2, removal)


@pytest.mark.parametrize("removal", [True, False])
def test_sums_on_panels_by_a_fine_rule(removal):
    """Each kind's measure up to its place: midpoints of two million steps, on a line."""
    term = CappedGaussiansTerm(sparse(4, removal), 0.3)
    u = np.arange(40) * 17.0
    base, value, slack = term.along(30.0, u)
    low, high = term.moment_ends(30.0)
    total = np.zeros(len(u), dtype=complex)
    for sigma, g, count, end in zip(
        term.noise_multipliers, term.rates, term.counts, term.places, strict=True
    ):
        edges = np.linspace(-10.5, end, 200_001)
        z = (edges[1:] + edges[:-1]) / 2
        ratio = SampledGaussianTerm(float(sigma), float(g), True, 1).log_ratio(z)[0]
        assert ratio[-1] >= 0.3 - 1e-3
        size = np.exp(-z * z / 2 + (31 if removal else -30) * ratio)
        turned = [(size * np.exp((1j if removal else -1j) * x * ratio)).sum() for x in u]
        total += count * np.log(np.array(turned) * (edges[1] - edges[0]) / math.sqrt(2 * math.pi))
    gap = base + value - total
    turns = np.round(gap.imag / (2 * math.pi)) * 2 * math.pi
    assert np.abs(gap - 1j * turns).max() < 1e-6
    assert slack.max() < 1e-7
    assert low <= total[0].real + 1e-8
    assert high >= total[0].real - 1e-8
    assert high - low < 1e-8


def test_the_rule_errs_by_no_more_than_is_said():
    """On coarse panels, where it errs by much, against fine ones."""
    a, g = np.array([[1.2], [1.6]]), np.array([[1e-3], [5e-3]])
    seen = []
    for removal, power in ((True, 9.0 + 500j), (False, -8.0 - 500j)):
        sums = []
        for speed in (60.0, 120.0, 250.0, 4000.0):
            edges = panel_edges(a, g, speed, -10.0, 6.0)
            z, weights = panel_nodes(edges)
            ratio = np.log1p(g * np.expm1(a * z - a * a / 2))
            sums.append((np.exp(power * ratio - z * z / 2 + weights).sum(axis=1), edges))
        real = abs(np.exp(power.real * ratio - z * z / 2 + weights).sum(axis=1))
        for found, edges in sums[:-1]:
            said = panel_error(
                a, g, 8.0, 500.0, removal, edges, np.log(real / math.sqrt(2 * math.pi))
            )
            off = abs(found - sums[-1][0]) / real
            assert (off <= said + 1e-13).all()
            seen.append(off.max())
    assert max(seen) > 1e-6


@pytest.mark.parametrize("removal", [True, False])
def test_intervals_meet_those_of_grids(removal):
    """At the cap, below and above it; the contour's is far narrower near the cap."""
    term = sparse(60, removal)
    cap = 0.2 if removal else 0.03
    line = CappedKinds(term, cap)
    assert line.certified
    few = [one for one, _ in term.singles()]
    grid = Grid(few, log_delta=None, epsilon=cap, cap=cap, points=1 << 10)
    for epsilon in (0.5 * cap, cap, 1.5 * cap):
        low, high = line.bounds(epsilon)
        other_low, other_high = grid.bounds(epsilon)
        assert low <= other_high
        assert other_low <= high
        if epsilon == cap:
            assert high - low < 1e-6


@pytest.mark.parametrize("removal", [True, False])
def test_two_kinds_by_a_fine_convolution(removal):
    """Both laws on half a million places; hits and all else, at the cap and below."""
    kinds, n = ((0.8, 0.03, 30.0), (1.0, 0.05, 20.0)), 1 << 19
    z = np.linspace(-9, 12, 2_000_001)
    phi = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * float(z[1] - z[0])
    step, spectrum = 40.0 / n, np.ones(n // 2 + 1, dtype=complex)
    for sigma, g, count in kinds:
        ratio = np.log1p(g * np.expm1(z / sigma - 0.5 / sigma**2))
        loss, mass = (ratio, phi * np.exp(ratio)) if removal else (-ratio, phi)
        law = np.bincount(np.rint(loss / step).astype(int) % n, mass, n)
        spectrum *= np.fft.rfft(law) ** count
    total = np.fft.irfft(spectrum, n)
    places = np.where(np.arange(n) > n // 2, np.arange(n) - n, np.arange(n)) * step
    columns = np.array(kinds).T
    line = CappedKinds(SampledGaussiansTerm(*columns, removal), 1.0)
    assert line.certified
    for epsilon in (1.0, 0.7):
        truth = float((total * np.maximum(-np.expm1(np.minimum(epsilon - places, 0)), 0)).sum())
        low, high = line.bounds(epsilon)
        assert low - 2e-3 <= math.log(truth) <= high + 2e-3
        assert high - low < 1e-4


def test_a_sparse_schedule_is_answered_narrowly():
    """By the public way; within what each kind has by itself, and what all have added up."""
    kinds = [privacy.gaussian(0.7 + 0.01 * i).poisson(1e-4 + 1e-4 * i) for i in range(25)]
    found = privacy.compose(*kinds).delta(0.1)
    assert found.upper - found.lower < 1e-7 * found.upper
    assert found.method == "contour quadrature"
    assert found.upper > sum(kind.delta(0.1).upper for kind in kinds[:10])


def test_kinds_that_are_alike_are_as_their_repetition():
    """Fifty within 1e-10 of one another, and fifty runs of that one."""
    near = SampledGaussiansTerm(0.7 + 1e-12 * np.arange(50), np.full(50, 1e-3), np.ones(50), True)
    found = capped_kinds(near, None, 0.2)
    one = (50 * privacy.gaussian(0.7).poisson(1e-3)).delta(0.2)
    assert found is not None
    low, high = found.bounds(0.2)
    assert math.log(one.lower) - 1e-8 <= high
    assert low <= math.log(one.upper) + 1e-8
    assert high - low < 1e-6
