"""Lattices: rounding to the nearest point, its two sides, and correctly rounded doubles."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.numeric import Lattice, common

STEPS = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)
VALUES = st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6)


@given(STEPS, VALUES)
@settings(deadline=None)
def test_nearest_floor_and_ceil(step, value):
    """The nearest index is within half a step; floor and ceil enclose the value."""
    lattice = Lattice(step)
    assert abs(lattice.to_integer(value) * step - value) * 2 <= step
    assert lattice.floor(value) * step <= value < (lattice.floor(value) + 1) * step
    assert (lattice.ceil(value) - 1) * step < value <= lattice.ceil(value) * step


@pytest.mark.parametrize(("value", "index"), [("0.5", 0), ("1.5", 2), ("2.5", 2), ("-0.5", 0)])
def test_ties_go_to_even(value, index):
    """Halfway values go to the even index."""
    assert Lattice(Fraction(1)).to_integer(value) == index


@given(STEPS, st.integers(-(2**62), 2**62))
@settings(deadline=None)
def test_points_are_contained_and_return(step, index):
    """A point of the lattice is contained and gives its index back; half a step off is not."""
    lattice = Lattice(step)
    assert lattice.contains(index * step)
    assert not lattice.contains(index * step + step / 2)
    assert lattice.to_integer(index * step) == index


@given(STEPS, st.lists(st.integers(-(2**62), 2**62), max_size=5))
@settings(deadline=None)
def test_doubles_are_correctly_rounded(step, indices):
    """Scalars and arrays, by the short way or the long, give the double nearest to the point."""
    lattice = Lattice(step)
    wanted = [float(i * step) for i in indices]
    assert [lattice.to_float(i) for i in indices] == wanted
    assert lattice.to_float(np.array(indices, dtype=np.int64)).tolist() == wanted


@given(STEPS, st.lists(st.integers(-(2**30), 2**30), max_size=5))
@settings(deadline=None)
def test_doubles_of_small_indices(step, indices):
    """The short way, taken for small indices, is correctly rounded too."""
    wanted = [float(i * step) for i in indices]
    assert Lattice(step).to_float(np.array(indices, dtype=np.int64)).tolist() == wanted


@pytest.mark.parametrize("step", [Fraction(7, 10), Fraction(1, 3**40), Fraction(3**40, 7)], ids=str)
def test_doubles_beyond_53_bits(step):
    """Where index, step or product leaves 53 bits, the one rounding stays one."""
    for indices in (2**62 - 12_347 * np.arange(300), np.arange(-300, 300) * 7919):
        points = Lattice(step).to_float(indices)
        assert points.tolist() == [float(int(i) * step) for i in indices]
        twice = indices.astype(float) * float(step.numerator) / float(step.denominator)
        small = abs(int(indices[0])) * step.numerator < 2**53 > step.denominator
        assert small or not np.array_equal(points, twice)


def test_shapes_and_types():
    """Any shape and any integer type is taken; floats are not indices."""
    lattice = Lattice(Fraction(1, 4))
    assert lattice.to_float(np.arange(6, dtype=np.uint8).reshape(2, 3)).shape == (2, 3)
    assert lattice.to_float(np.int64(3)) == 0.75
    with pytest.raises(ArgumentError, match="integers must be"):
        lattice.to_float(np.array([0.5]))
    with pytest.raises(ArgumentError, match="range of a double"):
        lattice.to_float(10**400)


@given(st.lists(STEPS, min_size=1, max_size=5))
@settings(deadline=None)
def test_common_is_the_coarsest(steps):
    """Every step is a multiple of the common one, and no multiple of it would do."""
    step = common(steps).step
    ratios = [s / step for s in steps]
    assert all(r.denominator == 1 for r in ratios)
    assert math.gcd(*(r.numerator for r in ratios)) == 1


@pytest.mark.parametrize("step", [0, -1, float("nan"), True])
def test_a_step_is_above_zero(step):
    """A lattice wants a step above zero, and takes texts and decimals."""
    with pytest.raises(ArgumentError, match="step must be"):
        Lattice(step)
    assert Lattice("0.01") == Lattice(Fraction(1, 100))


def test_common_of_nothing():
    """No steps, no lattice."""
    with pytest.raises(ArgumentError, match="at least one"):
        common([])
