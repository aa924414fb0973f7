"""Numbers become lattice points without bias, and never cross into a class that is not theirs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local import Interval
from dither.numeric import SimulatedWords


def test_points_stay_and_others_go_to_a_neighbour() -> None:
    """A point is kept for sure; any other value goes to the point below or above it."""
    interval = Interval(0, 10, steps=5)
    words = SimulatedWords(1)
    assert interval.round([0, 2.0, "4", Decimal(10)], words).tolist() == [0, 1, 2, 5]
    assert set(interval.round(np.full(5000, 3.0), words).tolist()) == {1, 2}


@pytest.mark.parametrize("size", [1000, 400_000])
def test_rounding_is_unbiased(size: int) -> None:
    """The mean of the points is the mean of the values, by either path (6 sigma, 2e-9)."""
    interval = Interval(Fraction(-1, 3), 2, steps=7)
    values = np.linspace(-0.3, 1.99, size)
    found = interval.at(interval.round(values, SimulatedWords(3))) - values
    assert abs(found.mean()) < 6 * float(interval.step) / 2 / np.sqrt(size)


def test_both_paths_agree() -> None:
    """Doubles place a column as exact rationals do; on and beside points exactly so."""
    interval = Interval("0.1", "0.9", steps=8)
    beside = np.nextafter(interval.points, 2)[:-1]
    values = np.concatenate((interval.points[1:-1], beside, np.linspace(0.11, 0.89, 3000)))
    base, part = interval._places(values)
    exact_base, exact_part = interval._exactly(values)
    assert np.array_equal(base, exact_base)
    off = np.abs(part.astype(np.float64) - exact_part.astype(np.float64)) / 2.0**64
    assert off.max() < 2.0**-32


def test_wide_origins_are_placed_exactly() -> None:
    """Where a double is too coarse for a place, every value is placed by rationals."""
    interval = Interval(10**9, 10**9 + 1, steps=4)
    values = np.full(5000, 1e9 + 0.25)
    assert set(interval.round(values, SimulatedWords(1)).tolist()) == {1}


@given(st.floats(-1, 1), st.integers(0, 2**32))
def test_a_class_is_never_entered_or_left(value: float, seed: int) -> None:
    """Rounding keeps a value in its class: low stays low, high stays high."""
    interval, apart = Interval(-1, 1, steps=10), (3, 6)
    code = int(interval.round([value], SimulatedWords(seed), apart=apart)[0])
    place = (Fraction(float.__repr__(value)) + 1) * 5
    assert (3 <= code <= 6) == (3 <= place <= 6)
    assert abs(code - place) < 1 or code == place


def test_classes_hold_in_long_columns() -> None:
    """The same in the path of long columns, at the class's very edges."""
    interval, apart = Interval(-1, 1, steps=10), (3, 6)
    edges = np.array([-0.4, 0.2])
    near = np.concatenate([np.nextafter(edges, 2), np.nextafter(edges, -2), edges, edges + 0.05])
    codes = interval.round(np.tile(near, 1000), SimulatedWords(5), apart=apart).reshape(-1, 8)
    low = (codes >= 3) & (codes <= 6)
    expected = [True, False, False, True, True, True, True, False]
    assert np.all(low == expected)


@pytest.mark.parametrize("size", [1, 5000])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 7.25, -7.25])
def test_what_is_refused(bad: float, size: int) -> None:
    """Missing values and values outside the bounds are refused, and not shown."""
    with pytest.raises(ArgumentError, match="values must") as caught:
        Interval(-1, 1).round(np.append(np.zeros(size), bad), SimulatedWords(1))
    assert "7.25" not in str(caught.value)


@pytest.mark.parametrize("bad", [[None], ["seven"], [True], [[1]], np.array([True])])
def test_what_is_no_number_is_refused(bad: object) -> None:
    """None, texts that are no number, truth values and tables are refused."""
    with pytest.raises(ArgumentError, match="values must"):
        Interval(-1, 1).round(bad, SimulatedWords(1))


@pytest.mark.parametrize("size", [1, 5000])
def test_clamping_is_declared(size: int) -> None:
    """With clamp, what is outside counts as the bound."""
    interval = Interval(-1, 1, steps=10, clamp=True)
    values = np.tile([-7.0, 7.0, np.inf, -np.inf], size)
    found = interval.round(values, SimulatedWords(1)).reshape(-1, 4)
    assert np.all(found == [0, 10, 10, 0])


@pytest.mark.parametrize(
    "arguments",
    [
        {"low": 1, "high": 1},
        {"low": 2, "high": 1},
        {"low": float("nan"), "high": 1},
        {"low": 0, "high": 1, "steps": 1},
        {"low": 0, "high": 1, "steps": 1 << 17},
        {"low": 0, "high": 1, "steps": 2.5},
    ],
)
def test_bad_intervals_are_refused(arguments: dict[str, object]) -> None:
    """Bounds are in order and finite, steps whole and in range."""
    with pytest.raises(ArgumentError):
        Interval(**arguments)  # type: ignore[arg-type]


def test_it_survives_the_wire() -> None:
    """An interval is what its dictionary says; bounds are read inwards."""
    interval = Interval("1/3", "0.9", steps=9, clamp=True)
    assert Interval.from_dict(interval.to_dict()) == interval
    assert repr(Interval(0, 2)) == "Interval(0, 2, steps=1024)"
    ten = Interval(0, 10, steps=10)
    assert (ten.index(2.5, "low", up=True), ten.index(2.5, "low", up=False)) == (3, 2)
    assert (ten.index(-9, "low", up=True), ten.index(99, "low", up=False)) == (0, 10)
