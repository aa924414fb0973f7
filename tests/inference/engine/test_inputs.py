"""What comes in: types are checked, values never are."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dither import inference
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, bounds_of, column, columns, matrix, target
from dither.inference.hypothesis._contingency import codes


class Hostile:
    """A value whose every conversion fails in a way of its own."""

    def __float__(self) -> float:
        raise OverflowError

    def __gt__(self, other: object) -> bool:
        raise RuntimeError


SAME = [1.0, float("nan"), 2.5]


@pytest.mark.parametrize(
    "given",
    [
        [1, None, 2.5],
        (1, float("nan"), Decimal("2.5")),
        np.array([1, np.nan, 2.5]),
        np.ma.masked_array([1, 7, 2.5], mask=[False, True, False]),
        pl.Series([1.0, None, 2.5]),
        pd.Series([1, None, 2.5], dtype="Float64"),
        pd.Series([1, None, 2.5], dtype=object),
        pa.array([1.0, None, 2.5]),
        [1, "n/a", 2.5],
        [1, object(), 2.5],
        [1, [2, 3], 2.5],
        [1, Hostile(), 2.5],
        pa.chunked_array([[1.0, None], [2.5]]),
    ],
)
def test_columns_are_doubles_with_nan_for_what_is_missing(given: Any) -> None:
    """Whatever holds numbers is taken; what is not a number is missing and raises nothing."""
    np.testing.assert_array_equal(column("x", given), SAME)


@pytest.mark.parametrize(
    "given", ["abc", b"1", 3, {"a": 1}, pl.Series(["a", None]), np.array(["1"]), [[1], [2]]]
)
def test_what_cannot_hold_numbers_is_refused(given: Any) -> None:
    """The type decides, and the message names the argument."""
    with pytest.raises(ArgumentError, match="x must"):
        column("x", given)


def test_categories_come_from_columns_of_every_library() -> None:
    """A column's own way to Python values is taken, so that none counts as undeclared."""
    given = ["a", None, "b", "odd"]
    kinds = (list, pl.Series, pd.Series, pa.array, lambda x: pa.chunked_array([x]))
    for kind in (*kinds, lambda x: pd.Series(x, dtype="category")):
        assert codes("x", kind(given), ["a", "b"]).tolist() == [0, -1, 1, -1]


def test_matrices_and_frames() -> None:
    """Rows of numbers, and frames of any kind, are one."""
    wanted = [[1.0, 3.0], [2.0, 4.0]]
    table = {"a": [1, 2], "b": [3, 4]}
    for given in (wanted, np.array(wanted), pl.DataFrame(table), pd.DataFrame(table)):
        np.testing.assert_array_equal(matrix("x", given), wanted)
    for frame in (table, pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
        assert {k: v.tolist() for k, v in columns("frame", frame).items()} == table
    with pytest.raises(ArgumentError, match="one length"):
        columns("frame", {"a": [1], "b": [1, 2]})
    with pytest.raises(ArgumentError, match="equally many"):
        matrix("x", [[1, 2], [3]])


@pytest.mark.parametrize(
    "bounds", [None, (1, 0), (1, 1), (0, float("inf")), (0, float("nan")), 3, (0, 1, 2), ("a", 1)]
)
def test_bounds_must_be_two_ends_in_order(bounds: Any) -> None:
    """Without usable bounds nothing is released."""
    with pytest.raises(ArgumentError, match="bounds"):
        inference.mean([1, 2], bounds=bounds, epsilon=1)


@pytest.mark.parametrize("values", [[-np.inf, np.inf], [1e308, -1e308], [0.0, 9.0]])
def test_the_lattice_holds_whatever_comes(values: list[float]) -> None:
    """Points stay within the steps, however doubles overflow on the way."""
    bounds = bounds_of("bounds", ("1e-9", "3e-9"))
    points = bounds.lattice(np.array(values))
    assert np.abs(points).max() <= bounds.steps


@pytest.mark.parametrize("values", [[1.0, 1.0, 2.0], [0.0, -3.0, 1e308]])
def test_widths_below_doubles_are_refused(values: list[float]) -> None:
    """Else a value in the middle is 0/0, and one row moves a sum by the largest integer."""
    tiny = Fraction(1, 10**400)
    for call in (
        lambda w: inference.ztest(values, value=1, sigma=w, epsilon=1),
        lambda w: inference.sparse_mean([[v] for v in values], radius=w, s=1, **COSTS),
        lambda w: inference.sparse_mean(
            [[v] for v in values], radius=w, s=1, method="peeling", **COSTS
        ),
        lambda w: inference.truncated_mean_as_printed([[v] for v in values], radius=w, **COSTS),
        lambda w: inference.means([[v] for v in values], radius=w, **COSTS),
        lambda w: inference.means([[v] for v in values], radius=1, spread=w, **COSTS),
        lambda w: inference.covariance([[v] for v in values], radius=w, **COSTS),
    ):
        for width in (tiny, 1 / tiny):
            with pytest.raises(ArgumentError, match=r"sigma|radius|spread"):
                call(width)
    for ends in ((10**400, 10**400 + 1), (0, tiny)):
        with pytest.raises(ArgumentError, match="within doubles"):
            inference.mean(values, bounds=ends, epsilon=1)
    # And what is within stays within, whatever the doubles give on the way.
    edges = np.array([0.0, 5e-324, -np.inf, 1.0])
    points = Bounds(-tiny, tiny).lattice(edges)
    assert np.abs(points).max() <= Bounds.steps
    assert points[0] == 0


COSTS: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}


def test_masked_values_of_any_type_are_missing() -> None:
    """A text below the mask, or beside it, stands in no error; nothing warns of a value."""
    for given in (
        np.ma.array([1, "secret", 2.5], dtype=object),
        np.ma.array([1, "secret", 2.5], dtype=object, mask=[False, True, False]),
        [1.0, np.ma.masked, 2.5],
    ):
        np.testing.assert_array_equal(column("x", given), SAME)
    with pytest.raises(ArgumentError, match="x must hold numbers, and is a column of texts"):
        column("x", np.ma.array(["secret", "b"]))
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        large = np.array([np.longdouble("1e400"), 1])
        np.testing.assert_array_equal(column("x", large), [np.inf, 1.0])


def test_targets_are_exact() -> None:
    """Amounts are read as they print; what is out of range is refused."""
    asked = target(0.1, 1e-6, "replace")
    assert (asked.epsilon * 10, asked.delta * 10**6, asked.replace) == (1, 1, True)
    for epsilon, delta, neighbours in ((0, 0, "replace"), (1, 1, "replace"), (1, 0, "swap")):
        with pytest.raises(ArgumentError):
            target(epsilon, delta, neighbours)


HOSTILE: list[Any] = [
    [],
    [3.0],
    [None],
    [float("nan")] * 7,
    [float("inf"), float("-inf"), 1.0],
    [1e308] * 5,
    [5.0] * 1000,
    [-5.0] * 3,
    [10**400, 1],
]


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", HOSTILE)
def test_no_data_raises_anything(rows: list[Any], neighbours: Any) -> None:
    """No row, one row, constant, missing, infinite, all beyond: an honest answer, finite ends."""
    for found in (
        inference.mean(rows, bounds=(0, 2), epsilon=0.1, neighbours=neighbours),
        inference.mean(rows, bounds=(0, 2), epsilon=0.1, neighbours=neighbours, shape="normal"),
        inference.mean(rows, bounds=(0, 2), epsilon=5, delta=1e-6, neighbours=neighbours),
        inference.proportion(rows, epsilon=0.1, neighbours=neighbours),
        inference.proportion(rows, epsilon=0.1, delta=1e-6, neighbours=neighbours),
    ):
        lower, upper = found.interval(0.95)
        assert np.isfinite([lower, upper, found.estimate, found.se]).all()
        assert lower <= upper
        assert 0 <= found.pvalue <= 1
        assert "Cost" in found.summary()


def test_too_few_rows_are_told() -> None:
    """Where the noise drowns the sample, a note says how many rows would do."""
    assert any("too small" in n for n in inference.mean([1] * 9, bounds=(0, 2), epsilon=0.1).notes)
    assert any("too small" in n for n in inference.proportion([1] * 9, epsilon=0.1).notes)


def test_all_rows_beyond_a_bound_give_the_whole_box() -> None:
    """Clamped values say only that the mean is far out: a wide interval, and a note says so."""
    wide = 0
    for _ in range(60):
        found = inference.mean([50.0] * 5000, bounds=(0, 2), epsilon=1, shape="normal")
        lower, upper = found.interval()
        wide += lower < 2 < 4.5 < upper and any("beyond a bound" in n for n in found.notes)
    # The slopes at the solution alone would have it some 50 times.
    assert wide >= 56


def test_no_row_is_so_large_that_something_is_said_of_it() -> None:
    """Beyond doubles, too: a warning, which may be an error, would tell of a row."""
    far = np.array([[1.7e308, 1.7e308], [1.0, 2.0], [-1.7e308, 1.7e308]] * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inference.means(far, radius=10, epsilon=1, delta=1e-6)
        inference.covariance(far, radius=10, epsilon=1, delta=1e-6)
        inference.identity_test(far, epsilon=1, centre=[-1.7e308, -1.7e308], draws=100, seed=1)
