"""Domains: how a column of any kind becomes codes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dither.errors import ArgumentError
from dither.local import GRR, Domain

COLOURS = ["red", "green", "blue"]


@pytest.mark.parametrize(
    "given",
    [
        ["blue", "red"],
        ("blue", "red"),
        np.array(["blue", "red"]),
        np.array(["blue", "red"], dtype=object),
        pl.Series(["blue", "red"]),
        pl.Series(["blue", "red"], dtype=pl.Categorical),
        pd.Series(["blue", "red"]),
        pd.Series(["blue", "red"], dtype="category"),
        pa.array(["blue", "red"]),
        pa.chunked_array([["blue"], ["red"]]),
    ],
)
def test_columns(given: Any) -> None:
    """Every kind of column gives the same codes."""
    assert Domain(COLOURS).encode(given).tolist() == [2, 0]


@pytest.mark.parametrize(
    "missing", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_missing_is_refused(missing: Any) -> None:
    """A missing value is refused, with or without a bucket for others."""
    for domain in (Domain(COLOURS), Domain(COLOURS, other="red")):
        with pytest.raises(ArgumentError, match="1 of 2 are None or NaN"):
            domain.encode(["red", missing])


def test_missing_in_frames() -> None:
    """A missing value is refused in the columns of data frames as well."""
    for given in (pl.Series([1, None]), pd.Series([1, None]), pa.array([1, None])):
        with pytest.raises(ArgumentError, match="None or NaN"):
            Domain(3).encode(given)


def test_unknown_values_show_nothing() -> None:
    """A value outside the domain is refused without being shown, or goes to the bucket."""
    with pytest.raises(ArgumentError, match="1 of 2 are not") as caught:
        Domain(COLOURS).encode(["red", "secret disease"])
    assert "secret" not in str(caught.value)
    assert Domain(COLOURS, other="blue").encode(["red", "secret", 7, [1]]).tolist() == [0, 2, 2, 2]
    assert Domain(4, other=3).encode(np.array([2, -1, 99])).tolist() == [2, 3, 3]


def test_one_value() -> None:
    """One value gives one report, of plain Python's own type."""
    report = GRR(COLOURS, epsilon=1).privatize("red")
    assert type(report) is int
    assert 0 <= report < 3


def test_numbers_are_themselves() -> None:
    """Whole floats and numpy scalars count as the integers that they equal."""
    assert Domain(3).encode(np.array([0.0, 2.0])).tolist() == [0, 2]
    assert Domain([10, 20]).encode([np.int64(20), 10.0]).tolist() == [1, 0]
    with pytest.raises(ArgumentError, match="1 of 1 are not"):
        Domain(3).encode([0.5])


def test_sets_are_sorted() -> None:
    """A set has no order of its own, so two builds of it are one domain."""
    assert Domain({"b", "a", 3}).values == (3, "a", "b")
    assert GRR({"b", "a"}, 1).hash == GRR({"a", "b"}, 1).hash


def test_round_trip() -> None:
    """A domain survives its dictionary, with its bucket."""
    for domain in (Domain(5), Domain(5, other=2), Domain(COLOURS), Domain([0, 2, 1])):
        assert Domain.from_dict(domain.to_dict()) == domain


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain(1), "at least two"),
        (lambda: Domain(2**30), "at most 2"),
        (lambda: Domain([1.5, 2.5]), "texts, integers or booleans"),
        (lambda: Domain(COLOURS, other="pink"), "other must be one"),
        (lambda: Domain(3).encode("red"), "column"),
        (lambda: Domain(3).encode(np.zeros((2, 2))), "one-dimensional"),
    ],
)
def test_domain_refusals(make: Any, message: str) -> None:
    """Each bad argument is named, with what was wanted."""
    with pytest.raises(ArgumentError, match=message):
        make()


def test_what_lies_under_a_mask_is_missing() -> None:
    """It would have been reported as somebody's answer."""
    masked = np.ma.array([1, 0, 3], mask=[False, False, True])
    with pytest.raises(ArgumentError, match="1 of 3 are None or NaN"):
        GRR(5, epsilon=1).privatize(masked)
    whole = Domain(5).encode(np.ma.array([1, 0, 3], mask=False))
    assert whole.tolist() == [1, 0, 3]


@pytest.mark.parametrize("mixed", [False, True])
def test_lists_of_numpys_scalars_are_what_they_stand_for(mixed: bool) -> None:
    """A loop over an array gives them; beside Python's they are the same values."""
    assert Domain(3).encode([np.int64(2), 0 if mixed else np.uint8(0)]).tolist() == [2, 0]
    large = 2**63 + 1
    assert Domain([large, 5]).encode([np.uint64(large), 5 if mixed else np.int8(5)]).tolist() == [
        0,
        1,
    ]
    truths = Domain([True, False]).encode([np.False_, True if mixed else np.True_])
    assert truths.tolist() == [1, 0]
    assert Domain(["a", "b"]).encode([np.str_("b"), "a" if mixed else np.str_("a")]).tolist() == [
        1,
        0,
    ]
