"""What a noisy residual costs, held against the law that it has, summed over its kernel."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

from dither.synth.marginals._residual_law import Allowance, cost
from dither.synth.marginals._residuals import differences

ORDERS = (1.25, 2.0, 6.0)


def kernel(sizes, reach):
    """Tables that a residual does not see: sums of tables that are constant along an axis."""
    if len(sizes) == 1:
        return [np.full(sizes, k) for k in range(-reach, reach + 1)]
    steps = range(-reach, reach + 1)
    rows, columns = sizes
    return [
        np.add.outer(np.array(a), np.array((0, *b)))
        for a in itertools.product(steps, repeat=rows)
        for b in itertools.product(steps, repeat=columns - 1)
    ]


def law(sizes, sigma2, reach, span):
    """The mass of each residual with entries of at most ``span``: a sum over the kernel."""
    moved = np.array(kernel(sizes, reach), float)
    found = {}
    inner = [n - 1 for n in sizes]
    for entries in itertools.product(range(-span, span + 1), repeat=math.prod(inner)):
        y = np.zeros(sizes)
        y[(slice(1, None),) * len(sizes)] = np.reshape(entries, inner)
        for axis in range(len(sizes)):
            # The member of the class that lies nearest to 0, about: the kernel's sum is there.
            y -= np.round(y.mean(axis=axis, keepdims=True))
        squares = ((moved + y) ** 2).reshape(len(moved), -1).sum(axis=1)
        found[entries] = float(np.exp(-squares / (2 * float(sigma2))).sum())
    total = math.fsum(found.values())
    return {entries: mass / total for entries, mass in found.items()}


def divergence(masses, move, order):
    """Rényi's, of the moved law from the law; entries that leave the span are far in the tail."""
    total = 0.0
    for entries, mass in masses.items():
        other = masses.get(tuple(np.subtract(entries, move)))
        if other and mass:
            total += math.exp(order * math.log(other) + (1 - order) * math.log(mass))
    return math.log(total) / (order - 1)


def moves(sizes, replace):
    """How the residual moves where one row comes, or is replaced."""
    units = []
    for place in itertools.product(*map(range, sizes)):
        unit = np.zeros(sizes, int)
        unit[place] = 1
        units.append(unit)
    changes = [a - b for a in units for b in units if a is not b] if replace else units
    return {tuple(differences(e).reshape(-1).tolist()) for e in changes}


CASES = [((2,), F(2), 9, 40), ((3,), F(2), 9, 30), ((2, 2), F(1), 5, 40), ((2, 3), F(1), 3, 20)]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(("sizes", "sigma2", "reach", "span"), CASES)
def test_no_neighbour_is_further_than_charged(sizes, sigma2, reach, span, replace):
    """At every order, for every change of one row; and some change uses nearly all of it."""
    masses = law(sizes, sigma2, reach, span)
    allowance = Allowance(F(1, 20))
    cells = math.prod(sizes)
    counted = tuple(n for n in sizes if allowance.wide_enough(sigma2, n, cells))
    assert counted == sizes
    charged = cost(counted, replace=replace) / (2 * sigma2)
    tight = 0.0
    for order in ORDERS:
        worst = max(divergence(masses, move, order) for move in moves(sizes, replace))
        assert worst <= order * charged + len(sizes) * allowance.each
        tight = max(tight, worst / float(order * charged))
    # What charges nine tenths of it, as of a sensitivity that is too small, does not hold.
    assert tight > 0.97


def test_noise_that_is_too_narrow_does_not_hide_in_the_projection():
    """Without the condition on its width the smaller charge is wrong, and is seen to be."""
    sigma2 = F(1, 5)
    assert not Allowance(F(1, 20)).wide_enough(sigma2, 2, 2)
    masses = law((2,), sigma2, 8, 12)
    worst = max(divergence(masses, move, 1.25) for move in moves((2,), False))
    assert worst > 1.25 * cost((2,), replace=False) / (2 * sigma2) + F(1, 20)
    assert worst <= 1.25 * cost((), replace=False) / (2 * sigma2)


def test_the_softening_bounds_a_sum_over_the_dual():
    """xi' of one column of 3 values, its sum taken term by term."""
    allowed = Allowance(F(1, 1000))
    t2 = float(allowed.softening(3, 1))
    pairs = itertools.product(range(-6, 7), repeat=2)
    norms = [a * a + b * b + (a + b) ** 2 for a, b in pairs]
    theta = math.fsum(math.exp(-2 * math.pi**2 * t2 * n) for n in norms if n)
    assert math.log((1 + theta) / (1 - theta)) <= 1 / 1000
    assert allowed.softening(3, 0) > allowed.softening(3, 1)
    assert allowed.softening(10**6, 1) > allowed.softening(3, 1)


@pytest.mark.parametrize("sizes", [(2,), (5,), (2, 2), (2, 3), (3, 2, 4)])
@pytest.mark.parametrize("replace", [False, True])
def test_the_cost_is_the_largest_squared_length(sizes, replace):
    """Of what the projection keeps of any change of one row."""
    centring = np.ones((1, 1))
    for n in sizes:
        centring = np.kron(centring, np.eye(n) - 1 / n)
    units = np.eye(math.prod(sizes))
    changes = [a - b for a in units for b in units] if replace else list(units)
    longest = max(float(e @ centring @ e) for e in changes)
    assert longest == pytest.approx(float(cost(sizes, replace=replace)))
