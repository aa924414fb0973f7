"""Columns as people hand them in: whatever holds them, the same values are read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import graph, inference, learn, local, places, series
from dither._columns import array_of, doubles, is_masked, is_text, number
from dither.errors import ArgumentError

VALUES = [3.0, 1.5, 2.0]

MASKED = np.ma.masked_array([3.0, 1e9, 2.0], mask=[False, True, False])


def _holders():
    """The same column in everything that people keep columns in."""
    yield "list", VALUES
    yield "tuple", tuple(VALUES)
    yield "generator", (v for v in VALUES)
    yield "array", np.array(VALUES)
    yield "objects", np.array(VALUES, dtype=object)
    yield "Polars", pl.Series(VALUES)
    if pandas := pytest.importorskip("pandas", reason="pandas is not installed"):
        yield "pandas", pandas.Series(VALUES, index=[7, 7, 1])
    if arrow := pytest.importorskip("pyarrow", reason="pyarrow is not installed"):
        yield "Arrow", arrow.array(VALUES)
        yield "Arrow, in parts", arrow.chunked_array([VALUES[:1], VALUES[1:]])


def test_a_column_is_the_same_whatever_holds_it():
    """Of every holder the same doubles, in their order."""
    for name, held in _holders():
        assert doubles(array_of(held)).tolist() == VALUES, name


def test_a_tensor_of_a_graph_is_its_values():
    """What takes part in gradients has no array of its own; its values are read all the same."""
    torch = pytest.importorskip("torch")
    assert array_of(torch.tensor(VALUES, requires_grad=True)).tolist() == VALUES


def test_texts_keep_their_ends():
    """NumPy's texts of one width lose NULs at their end, so that two would be one."""
    assert array_of(pl.Series(["a\0", "a"])).tolist() == ["a\0", "a"]


def test_a_column_of_texts_says_so():
    """By its declared type, whatever it holds; of a list nothing is declared."""
    texts = [pl.Series(["a", None]), pl.Series([], dtype=pl.String), np.array(["a"])]
    texts += [pl.Series(["a"]).cast(pl.Categorical), pl.Series(["a"]).cast(pl.Enum(["a"]))]
    if pandas := pytest.importorskip("pandas", reason="pandas is not installed"):
        texts += [pandas.Series(["a"], dtype="string"), pandas.Series(["a"], dtype="category")]
    if arrow := pytest.importorskip("pyarrow", reason="pyarrow is not installed"):
        texts += [arrow.array(["a"]), arrow.chunked_array([["a"]])]
        texts += [arrow.array(["a"]).dictionary_encode(), arrow.array(["a"], arrow.string_view())]
    assert all(map(is_text, texts))
    odd = pl.DataFrame({"dtype": ["string"], "type": ["string"]})
    odd_too = pandas.DataFrame({"dtype": ["string"], "type": ["string"]})
    whole = pandas.Series([1, 2], dtype="category")
    assert not any(map(is_text, [odd, odd_too, whole]))
    assert not any(map(is_text, [["a"], np.array([1]), pl.Series([1.5]), None, "a", MASKED]))


def test_what_lies_under_a_mask_is_nobodys_value():
    """It is missing in every package that reads columns."""
    assert is_masked(MASKED)
    assert array_of(MASKED).tolist() == [3.0, None, 2.0]
    found = inference.mean(MASKED, bounds=(0, 10), epsilon=1e6, neighbours="replace")
    filled = inference.mean([3.0, None, 2.0], bounds=(0, 10), epsilon=1e6, neighbours="replace")
    assert found.estimate == pytest.approx(filled.estimate, abs=1e-3)
    with pytest.raises(Exception, match="missing"):
        local.GRR([2, 3], epsilon=1).privatize(np.ma.masked_array([2, 3], mask=[True, False]))
    with pytest.raises(Exception, match="mask"):
        learn.federated.ClientData(MASKED[:, None], np.zeros(3, int), np.zeros(3, int))


def test_what_an_iterable_holds_keeps_its_kind():
    """Whole numbers stay whole beyond 2**53, truth stays truth, and words leave numbers alone."""
    assert array_of([2**53 + 1, np.int32(1)]).tolist() == [2**53 + 1, 1]
    assert array_of([True, np.bool_(False)]).dtype == np.bool_
    assert array_of([1, "1", 2**70]).tolist() == [1, "1", 2**70]
    assert array_of([1, 0.5]).tolist() == [1, 0.5]
    assert array_of([]).size == 0


def test_what_is_no_column_is_refused():
    """Texts, bytes and single numbers hold no values."""
    for nothing in ("abc", b"abc", 7, None):
        with pytest.raises(TypeError):
            array_of(nothing)


class Hostile:
    """Raises whatever it is asked."""

    def __float__(self) -> float:
        raise RuntimeError("the value is 42")


def test_no_value_raises():
    """What cannot be a double is missing; what is beyond doubles is infinite."""
    assert number(-(10**400)) == -math.inf
    assert math.isnan(number(Hostile()))
    assert math.isnan(number("2"))
    assert number("2", texts=True) == 2.0
    odd = np.array([[None, Hostile()], [1, "x"]], dtype=object)
    assert doubles(odd).shape == (2, 2)
    assert np.isnan(doubles(odd)).tolist() == [[True, True], [False, True]]


def _rows(given: Any) -> Any:
    return [[v] for v in given] if isinstance(given, list) else given


READERS: dict[str, Callable[[Any], Any]] = {
    "x": lambda given: inference.mean(given, bounds=(0, 1), epsilon=1),
    "column 'x' of frame": lambda given: inference.linear_regression(
        "y ~ x", {"x": given, "y": [1.0] * 4}, bounds={"x": (0, 1), "y": (0, 1)}, epsilon=1
    ),
    "y": lambda given: places.Paths([1] * 4, [0] * 4, [0.5] * 4, given),
    "readings": lambda given: series.window_sums(
        _rows(given),
        bounds=(0, 1),
        epsilon=1,
    ),
    "features": lambda given: graph.neighbour_sums(
        graph.Graph([(0, 1)], nodes=4),
        _rows(given),
        epsilon=1,
        delta=1e-6,
    ),
}
"""By what they call the column: whoever reads numbers that people hand in."""


@pytest.mark.parametrize("name", READERS)
def test_no_value_decides_whether_numbers_are_read(name: str) -> None:
    """Neighbours under the replacement of one row: both are answered, or both refused. Of objects
    both are answered, whatever they are; of texts by their declared type both are refused."""
    objects = [["a", "b", "c", "d"], ["a", "b", "c", None], ["a", "b", "c", 1.5], [None] * 4]
    for given in objects:
        READERS[name](given)
        if name not in ("readings", "features"):
            READERS[name](np.array(given, dtype=object))
            if pandas := pytest.importorskip("pandas", reason="pandas is not installed"):
                READERS[name](pandas.Series(given, dtype=object))
    frames = name in ("readings", "features")
    for given in (["a"] * 4, ["a", None, "b", "c"], [None] * 4):
        held: Any = pl.Series("x", given, dtype=pl.String)
        with pytest.raises(ArgumentError, match=f"{name} must hold numbers, and is a column of te"):
            READERS[name](held.to_frame() if frames else held)
    with pytest.raises(ArgumentError, match=name):
        READERS[name](7)
