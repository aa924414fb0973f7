"""The levels of keys: order, labels, ranges."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.plots._levels import joined, levels_of


@pytest.mark.parametrize(
    ("label", "edges"),
    [
        ("[0, 18)", (0.0, 18.0)),
        ("[0,18)", (0.0, 18.0)),
        ("[65, 110]", (65.0, 110.0)),
        ("-1.5–2.25", (-1.5, 2.25)),
        ("[−4, 1e3)", (-4.0, 1000.0)),
        ("0.5 to 2", (0.5, 2.0)),
    ],
)
def test_range_labels_are_read(label: str, edges: tuple[float, float]) -> None:
    """However a range is written, its ends become places on the axis."""
    assert levels_of("x", [label]).edges == (edges,)


@pytest.mark.parametrize("label", ["north", "2024-01", "3", "[5, 2)", "a, b", "", "[0, 1) x"])
def test_other_texts_are_no_ranges(label: str) -> None:
    """A text that only resembles a range stays a text."""
    levels = levels_of("x", [label])
    assert levels.edges is None
    assert levels.labels == (label,)


def test_ranges_rise_and_are_even_only_if_equally_wide() -> None:
    """Ranges are ordered by their ends; only touching, equal ones make a number axis."""
    even = levels_of("x", ["[20, 30)", "[0, 10)", "[10, 20)"])
    assert even.labels == ("0–10", "10–20", "20–30")
    assert even.even
    assert not levels_of("x", ["[0, 18)", "[18, 65)"]).even
    assert not levels_of("x", ["[0, 10)", "[20, 30)"]).even


def test_null_comes_last_and_takes_the_places_away() -> None:
    """NULL has no place on a number axis, so a key with NULL is drawn by category."""
    levels = levels_of("x", [2, None, 1])
    assert levels.values == (1, 2, None)
    assert levels.labels == ("1", "2", "NULL")
    assert levels.places is None


def test_days_and_flags_rise_and_texts_stay() -> None:
    """Moments and flags are ordered; texts keep the order of the release."""
    days = [dt.date(2024, 2, 1), dt.date(2024, 1, 1)]
    assert levels_of("day", days).values == (days[1], days[0])
    assert levels_of("flag", [True, False]).labels == ("False", "True")
    assert levels_of("text", ["b", "a"]).labels == ("b", "a")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_keep_all_levels_in_order(column: list[float]) -> None:
    """No level is lost or doubled, whatever the numbers."""
    levels = levels_of("x", column)
    assert list(levels.values) == sorted(set(column))
    assert levels.places == levels.values


def test_joined_keys_name_all() -> None:
    """Keys past the first share one axis, under both names."""
    assert joined(["a", "b"], [["x", "y"], [1, None]]) == ("a · b", ["x · 1", "y · NULL"])
