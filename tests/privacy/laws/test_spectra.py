"""Sums of many kinds through a grid of losses: as they are one by one, within the error stated."""

import mpmath
import numpy as np
import pytest

from dither.privacy.laws.sampled.spectra import _spread, layers_of_kinds, logs_of_kinds
from dither.privacy.laws.term import layers_of


@pytest.mark.parametrize(("nodes", "length"), [(1, 1), (3, 2), (40, 9), (300, 700)])
def test_sums_are_within_the_error(nodes, length):
    """Losses of either sign that come round many times, and weights of many sizes."""
    random = np.random.default_rng(nodes)
    losses = random.normal(size=(3, nodes)) * 10.0 ** random.integers(-6, 2, (3, nodes))
    weights = random.random((3, nodes)) ** 8
    weights /= weights.sum(axis=1)[:, None]
    u = 0.375 * np.arange(length)
    found, error = _spread(losses, weights, u)
    exact = (weights[:, None, :] * np.exp(1j * u[:, None] * losses[:, None, :])).sum(axis=2)
    # Angles round on both sides.
    turned = 1e-15 * u * (weights * np.abs(losses)).sum(axis=1)[:, None]
    assert (np.abs(found - exact) <= error + turned + 1e-15).all()
    assert error < 1e-12


def test_kernel_and_its_transform():
    """What is divided out, what comes round, and what is cut, by a hundred summands each."""
    a, reach = mpmath.mpf(92), 13
    with mpmath.workdps(40):
        for d in (0, mpmath.mpf(1) / 3, mpmath.mpf(1) / 2):
            for r in (0, mpmath.mpf(1) / 16, mpmath.mpf(1) / 8):
                places = [
                    (m, mpmath.exp(-2 * mpmath.pi**2 * (m - d) ** 2 / a)) for m in range(-99, 100)
                ]
                turn = [w * mpmath.expjpi(2 * r * (m - d)) for m, w in places]
                kept = sum(x for (m, _), x in zip(places, turn, strict=True) if abs(m) <= reach)
                main = mpmath.sqrt(a / (2 * mpmath.pi)) * mpmath.exp(-a * r * r / 2)
                assert abs(kept / main - 1) < 1.2e-15


def test_many_repetitions_keep_what_is_small():
    """Where an error counts a million times, sums err by a part of what they differ from 1."""
    losses, weights = np.array([[1e-9, -2e-9]]), np.array([[0.75, 0.25]])
    u = np.arange(8.0)
    few = logs_of_kinds(losses, weights, u, np.ones(1))
    many = logs_of_kinds(losses, weights, u, np.full(1, 1e9))
    assert few[2].max() > 1e-15
    assert many[2].max() < 1e-23
    assert np.abs(few[0] - many[0]).max() <= few[2].max()


def test_layers_of_kinds_fit_under_their_densities():
    """As those of one kind, in coarser steps: in no cell are they above it."""
    random = np.random.default_rng(3)
    edges = np.cumsum(random.random((4, 31)), axis=1)
    density = np.exp(-((np.arange(30) - 11.5) ** 2) / 40) * random.uniform(0.5, 1, (4, 30))
    masses, widths = layers_of_kinds(density, edges)
    for i in range(4):
        one = layers_of(density[i], edges[i])[0].sum()
        whole = (density[i] * np.diff(edges[i])).sum()
        assert 0.5 * one < masses[i].sum() <= whole
        assert (widths[i] <= edges[i, -1] - edges[i, 0]).all()
