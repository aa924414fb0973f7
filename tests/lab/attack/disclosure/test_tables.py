"""Tables in an attacker's hands: classes, and which label covers which value."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab._frames import columns_of, released, sorted_codes
from dither.lab._grouping import grouped
from dither.lab.attack.disclosure._labels import coverage

CELL = st.one_of(st.none(), st.integers(0, 3))


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=30))
def test_classes_are_equal_tuples(rows: list[tuple[int | None, ...]]) -> None:
    """Two rows are in one class exactly where all their cells are equal."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys("abc", pl.Int64), orient="row")
    found = grouped(sorted_codes(frame[name])[0] for name in "abc")
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (found[i] == found[j]) == (one == other)


def test_missing_values_are_values() -> None:
    """All NULLs are one value, all NaNs another, and codes tell the values apart."""
    found, values = sorted_codes(
        pl.Series([1.0, None, float("nan"), None, float("nan"), -0.0, 0.0])
    )
    assert found[1] == found[3] != found[2] == found[4]
    assert found[5] == found[6]
    assert len(values) == 4


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        pl.Series(["b", "a", "b"], dtype=pl.Enum(["b", "a"])),
        pl.Series([True, False, True]),
        pl.Series([[1], [2], [1]]),
    ],
)
def test_any_type_has_codes(column: pl.Series) -> None:
    """Texts, categories, booleans and lists are told apart alike."""
    found = sorted_codes(column)[0]
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("label", "covered"),
    [
        ("[20, 30)", [20.0, 25.0]),
        ("(20, 30]", [25.0, 30.0]),
        ("[20.0, 30.0]", [20.0, 25.0, 30.0]),
        ("<25", [3.0, 20.0]),
        (">=25", [25.0, 30.0]),
        ("≥ 25", [25.0, 30.0]),
        ("{3, 30}", [3.0, 30.0]),
        ("2*", [20.0, 25.0]),
        ("*", [3.0, 20.0, 25.0, 30.0]),
        ("25", [25.0]),
        ("elsewhere", []),
    ],
)
def test_labels_cover_numbers(label: str, covered: list[float]) -> None:
    """Each way of writing a set of numbers covers those numbers alone."""
    values = [3.0, 20.0, 25.0, 30.0]
    assert coverage([label], values)[0].tolist() == [v in covered for v in values]


def test_labels_cover_texts() -> None:
    """Prefixes, sets and the label itself; NULL covers NULL alone."""
    values = ["13053", "13068", "14850", None]
    found = coverage(["130**", "14850", "{13053, 14850}", None, "*"], values).astype(int).tolist()
    assert found == [[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]]


def test_covers_says_what_texts_do_not() -> None:
    """A mapping wins over the text of a label."""
    assert coverage(["[1, 2]"], [1, 2, 3], {"[1, 2]": [3]}).tolist() == [[False, False, True]]


def test_frames_of_every_kind_are_read() -> None:
    """Polars, pandas, Arrow and whatever has a frame are one."""
    frame = pl.DataFrame({"a": [1, 2]})

    class Held:
        pass

    held = Held()
    held.frame = frame  # type: ignore[attr-defined]
    for given_frame in (frame, frame.to_pandas(), frame.to_arrow(), held):
        assert released(given_frame, "table")["a"].to_list() == [1, 2]


@pytest.mark.parametrize("wrong", [None, [1], pl.DataFrame(), pl.DataFrame({"a": []})])
def test_no_frame_is_refused(wrong: object) -> None:
    """What is not a table is refused by the name of the argument."""
    with pytest.raises(ArgumentError, match="release"):
        released(wrong, "release")


@pytest.mark.parametrize("wrong", [["aeg"], [], ["age", "age"], None])
def test_columns_are_checked(wrong: list[str] | None) -> None:
    """Unknown, repeated and absent names are refused, and the nearest is offered."""
    with pytest.raises(ArgumentError, match="keys") as caught:
        columns_of("keys", wrong, pl.DataFrame({"age": [1]}), None)
    if wrong == ["aeg"]:
        assert "did you mean 'age'" in str(caught.value)


def test_mixed_cells_are_read_as_texts() -> None:
    """A column of mixed types raises nothing: its cells are texts, which tell their types apart."""
    import pandas as pd

    mixed = pd.DataFrame({"a": [1, "1", np.datetime64("2020-01-01")]})
    cells = released(mixed, "table")["a"]
    assert cells.dtype == pl.String
    assert cells.n_unique() == 3
