"""Many Laplaces on Poisson samples at once: as one by one, and as grids of them."""

import numpy as np
import pytest

from dither import privacy
from dither.privacy._side import side
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.many_atoms import joined
from dither.privacy.laws.sampled.laplaces import SampledLaplacesTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import SampledTerm
from dither.privacy.laws.term import UNKNOWN

KINDS = [
    (0.02, 0.3, 1),
    (0.1, 0.01, 3),
    (0.5, 0.9, 1),
    (1.3, 0.001, 2),
    (4.0, 0.05, 1),
    (20, 0.2, 1),
]
"""Epsilons without a sample, rates and repetitions."""


def alone(epsilon, rate, count, removal):
    """One kind, by the quadrature of one."""
    base = LaplaceTerm(np.array([float(epsilon)]), np.ones(1))
    return SampledLineTerm(SampledTerm(base, rate, removal, count))


def together(kinds, removal):
    """All of them."""
    columns = np.array(kinds, dtype=float).T
    return SampledLaplacesTerm(*columns, removal)


@pytest.mark.parametrize("removal", [True, False])
@pytest.mark.parametrize("c", [1e-3, 0.7, 9.0, 150.0])
def test_sums_are_those_one_by_one(removal, c):
    """On the real line and on vertical ones, within both errors."""
    for kind in KINDS:
        one, all_of_it = alone(*kind, removal), together([kind], removal)
        low, high = all_of_it.moment_ends(c)
        other_low, other_high = one.moment_ends(c)
        assert low <= other_high
        assert other_low <= high
        assert high - low < 1e-10 * (1 + abs(high))
        u = np.arange(60) * (0.3 / kind[1])
        base, value, slack = all_of_it.along(c, u)
        other_base, other, other_slack = one.along(c, u)
        gap = np.abs(np.exp(value + base - other_base) - np.exp(other))
        off = np.exp(value.real) * np.expm1(slack) + np.exp(other.real) * np.expm1(other_slack)
        assert (gap <= off * (1 + 1e-6) + 1e-300).all()
        assert np.median(slack) < 1e-9


@pytest.mark.parametrize("removal", [True, False])
def test_fades_and_bounds_hold_beyond(removal):
    """Nowhere is the modulus above them; atoms alone bound it where they fade."""
    kinds = [(0.2 + 0.01 * i, 0.02 + 0.001 * i, 8) for i in range(60)]
    term, u = together(kinds, removal), np.arange(400) * 3.0
    value = sum(alone(*kind, removal).along(8.0, u)[1] for kind in kinds)
    beyond = np.maximum.accumulate(value.real[::-1])[::-1]
    assert (beyond <= term.fade(8.0, u) + 1e-9).all()
    _, found, slack = term.along(8.0, u)
    known = slack < UNKNOWN
    assert 0 < known.sum() < len(u)
    assert (value.real <= found.real + slack + 1e-9).all()
    assert np.abs(np.exp(found) - np.exp(value))[known].max() < 1e-10
    assert np.exp(found.real[~known]).sum() < 1e-8


def test_a_plain_laplace_is_bounded_by_its_atoms():
    """The same of Laplaces without a sample, where each is known from nearby kinds."""
    epsilons = 0.05 + 0.0007 * np.arange(200)
    term, u = LaplaceTerm(epsilons, np.ones(200)), np.arange(600) * 1.1
    _, found, slack = term.along(3.0, u)
    t = 3.0 + 1j * u[:, None]
    whole = (t * epsilons + np.log(1 + t * np.expm1(-epsilons * (2 * t + 1)) / (2 * t + 1))).real
    truth = (whole - whole[0]).sum(axis=1)
    known = slack < UNKNOWN
    assert 0 < known.sum() < len(u)
    assert (truth <= found.real + 1e-9).all()
    assert np.abs(truth - found.real)[known].max() < 1e-9


@pytest.mark.parametrize("removal", [True, False])
def test_a_schedule_is_within_a_grid_of_its_kinds(removal):
    """In both directions, and far more narrowly."""
    kinds = [20 * privacy.laplace(1.0 + 0.1 * i).poisson(0.02 + 0.01 * i) for i in range(10)]
    terms = side(privacy.compose(*kinds).parts, removal).lower_terms
    assert any(isinstance(term, SampledLaplacesTerm) for term in joined(terms))
    line = Contour(terms, log_delta=None, epsilon=1.0)
    assert line.certified
    low, high = line.bounds(1.0)
    assert high - low < 1e-8
    grid = Grid(terms, log_delta=None, epsilon=1.0, points=1 << 11).bounds(1.0)
    assert grid[0] <= high
    assert low <= grid[1]


def test_kinds_that_are_alike_are_as_their_repetition():
    """Twelve within 1e-12 of one another, and twelve runs of that one, on a line."""
    near = together([(0.5 + 1e-13 * i, 0.1, 1) for i in range(12)], True)
    one, u = together([(0.5, 0.1, 12)], True), np.arange(50) * 2.0
    base, value, slack = near.along(6.0, u)
    other_base, other, _ = one.along(6.0, u)
    assert base == pytest.approx(other_base, rel=1e-10)
    assert (np.abs(np.exp(value) - np.exp(other)) <= np.exp(value.real) * slack + 1e-9).all()
