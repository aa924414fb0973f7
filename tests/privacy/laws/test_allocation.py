"""Random allocation: against quadrature of two steps, simulation of many, and its neighbours."""

import math

import numpy as np
import pytest

from dither import privacy
from dither.errors import ArgumentError
from dither.privacy.laws.sampled.allocation import _Put


def two_steps(sigma, epsilon):
    """Both directions' deltas of two steps, by a fine rule in the plane."""
    axis = np.linspace(-9, 9 + 1 / sigma, 1501)
    x, y = np.meshgrid(axis, axis)
    q = np.exp(-(x * x + y * y) / 2) / (2 * math.pi)
    ratio = (np.exp(x / sigma) + np.exp(y / sigma)) * math.exp(-1 / (2 * sigma**2)) / 2
    cell = (axis[1] - axis[0]) ** 2
    a = math.exp(epsilon)
    return [float((q * np.maximum(z, 0)).sum()) * cell for z in (ratio - a, 1 - a * ratio)]


@pytest.mark.parametrize("sigma", [0.7, 2.0])
def test_two_steps_by_quadrature(sigma):
    """The upper end is the pair's own to a thousandth, and the lower one is below it."""
    loss = privacy.gaussian(sigma).random_allocation(2)
    for epsilon in (0.0, 0.3, 1.0):
        truth = max(two_steps(sigma, epsilon))
        found = loss.delta(epsilon)
        assert found.lower * (1 - 1e-4) <= truth <= found.upper * (1 + 1e-4)
        assert found.upper <= truth * 1.01 + 1e-7


def test_many_steps_by_simulation():
    """A hundred steps: within five deviations of a simulated mean, in the worse direction."""
    rng = np.random.default_rng(20_260_101)
    z = np.concatenate(
        [np.exp(rng.standard_normal((2000, 100)) - 0.5).mean(axis=1) for _ in range(20)]
    )
    loss = privacy.gaussian(1.0).random_allocation(100)
    for epsilon in (0.0, 0.1, 0.3):
        a = math.exp(epsilon)
        gains = np.maximum(z - a, 0), np.maximum(1 - a * z, 0)
        worst = [(float(x.mean()), float(x.std()) / math.sqrt(len(z))) for x in gains]
        found = loss.delta(epsilon)
        mean, error = max(worst)
        assert mean - 5 * error <= found.upper <= mean + 5 * error + 1e-6
        assert found.lower <= mean + 5 * error


def test_units_that_move_less_or_by_what_came_before_lose_no_more():
    """Two steps, of which the second's length depends on the first's output."""
    sigma, n = 1.0, 1501
    axis = np.linspace(-9, 10, n)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    q = np.exp(-(x * x + y * y) / 2) / (2 * math.pi)
    cell = (axis[1] - axis[0]) ** 2
    loss = privacy.gaussian(sigma).random_allocation(2)
    for length in (lambda x: np.where(x > 1, -1.0, 0.3), lambda x: np.tanh(x)):
        c = length(x)
        ratio = (np.exp(x - 0.5) + np.exp(c * y - c * c / 2)) / 2
        for epsilon in (0.0, 0.5):
            a = math.exp(epsilon)
            for z in (ratio - a, 1 - a * ratio):
                assert float((q * np.maximum(z, 0)).sum()) * cell <= loss.delta(epsilon).upper


def test_an_allocation_lies_between_its_neighbours():
    """Never more than one Gaussian; one step is one; epochs add up; the charge is a Gaussian's."""
    one = privacy.gaussian(1.0)
    assert one.random_allocation(1) == one
    epoch = one.random_allocation(50)
    assert epoch.charge == one.charge
    assert str(epoch).startswith("<Loss gaussian(1).random_allocation(50);")
    few, many = one.random_allocation(5).epsilon(1e-6), epoch.epsilon(1e-6)
    assert many < few < one.epsilon(1e-6)
    assert many.lower <= many.upper
    three = (3 * epoch).epsilon(1e-6)
    assert many < three < 3 * many
    assert epoch.renyi(4.0).upper <= one.renyi(4.0).upper * (1 + 1e-12)
    assert 0 < epoch.tpr(0.05).lower <= epoch.tpr(0.05).upper < one.tpr(0.05)
    # Several releases in one step are one Gaussian.
    assert (2 * one).random_allocation(50).delta(0.5) > epoch.delta(0.5)


def test_what_has_no_account_is_refused():
    """Other noise, samples of samples, replaced units, groups, and too many steps."""
    one = privacy.gaussian(1.0)
    for refused, words in (
        (lambda: privacy.laplace(1.0).random_allocation(10), "Gaussian"),
        (lambda: one.poisson(0.1).random_allocation(10), "already a sample"),
        (lambda: one.random_allocation(10).poisson(0.1), "already a sample"),
        (lambda: privacy.gaussian(1.0, neighbours="replace").random_allocation(9), "added"),
        (lambda: one.random_allocation(10).group(2), "group"),
        (lambda: one.random_allocation(10).to_replace(), "group"),
        (lambda: one.random_allocation(0), "steps"),
        (lambda: one.random_allocation(10**6), "steps"),
    ):
        with pytest.raises(ArgumentError, match=words):
            refused()


def test_the_put_counts_what_its_lattice_ends_at():
    """At and beyond the last place: v(k) >= k - 1, and v rises with a slope below 1."""
    put = _Put(1.0, 20, 4.0)
    k = np.array([0.0, 0.5, 1.0, put.most * 0.999, put.most, put.most * 1.01])
    value = put(k)
    assert (value >= np.maximum(k - 1, 0)).all()
    assert (np.diff(value) <= np.diff(k) + 1e-9).all()
    assert value[-1] - value[-2] == pytest.approx(k[-1] - k[-2], rel=1e-6)
