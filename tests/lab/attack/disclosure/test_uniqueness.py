"""Uniqueness against counting by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab.attack import uniqueness

ADULT = Path(__file__).parents[5] / "shared" / "data" / "adult_binned" / "adult.csv"
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=25)


def by_hand(rows: list[tuple[int, ...]], chosen: tuple[int, ...]) -> float:
    """The share of rows whose chosen cells no other row has."""
    seen = Counter(tuple(row[i] for i in chosen) for row in rows)
    return sum(seen[tuple(row[i] for i in chosen)] == 1 for row in rows) / len(rows)


@given(ROWS)
def test_shares_are_those_of_counting(rows: list[tuple[int, ...]]) -> None:
    """Least, mean and most are over all choices of columns, and the worst attains the most."""
    frame = pl.DataFrame(rows, schema=list("abcd"), orient="row")
    for one in uniqueness(frame, list("abcd"), range(1, 5)).sizes:
        shares = [by_hand(rows, c) for c in itertools.combinations(range(4), one.columns)]
        assert one.least == pytest.approx(min(shares))
        assert one.mean == pytest.approx(sum(shares) / len(shares))
        assert one.most == pytest.approx(max(shares))
        assert by_hand(rows, tuple("abcd".index(n) for n in one.worst)) == pytest.approx(one.most)


@given(ROWS)
def test_more_columns_never_hide(rows: list[tuple[int, ...]]) -> None:
    """The share alone grows with the number of columns known."""
    frame = pl.DataFrame(rows, schema=list("abcd"), orient="row")
    found = uniqueness(frame, list("abcd"), range(1, 5)).sizes
    for one, more in itertools.pairwise(found):
        assert one.mean <= more.mean + 1e-12
        assert one.most <= more.most + 1e-12


def test_sizes_are_three_to_eight() -> None:
    """By default as far as the columns reach."""
    frame = pl.DataFrame({name: [1, 2] for name in "abcde"})
    assert [one.columns for one in uniqueness(frame, list("abcde")).sizes] == [3, 4, 5]


@pytest.mark.parametrize("sizes", [[0], [3], [1.5], None])
def test_sizes_beyond_the_columns_are_refused(sizes: list[int] | None) -> None:
    """A size that no choice of columns has is refused."""
    with pytest.raises(ArgumentError, match="sizes"):
        uniqueness(pl.DataFrame({"a": [1], "b": [1]}), ["a", "b"], sizes)


def test_too_many_choices_are_refused() -> None:
    """Before any work, with their number."""
    names = [f"c{i}" for i in range(30)]
    with pytest.raises(ArgumentError, match="choices of columns"):
        uniqueness(pl.DataFrame({name: [1] for name in names}), names)


def test_a_summary_and_a_picture(tmp_path: Path) -> None:
    """Both name the share."""
    found = uniqueness(pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, 2]}), ["a", "b"], [1, 2])
    assert "100 %" in found.summary()
    found.plot(tmp_path / "alone.png")
    assert (tmp_path / "alone.png").stat().st_size > 5_000


def test_the_survey(survey: pl.DataFrame) -> None:
    """Eight answers single out 62 % of 6,366 women; three single out fewer than 1 %."""
    known = [name for name in survey.columns if name not in ("affairs", "affair")]
    found = uniqueness(survey, known)
    assert [one.columns for one in found.sizes] == [3, 4, 5, 6, 7, 8]
    assert found.sizes[0].most < 0.01
    assert round(found.sizes[-1].most, 3) == 0.619


@pytest.mark.skipif(not ADULT.is_file(), reason="the Adult data are not here")
def test_adult() -> None:
    """Eight columns of the census extract, coarse already, leave a quarter of people alone."""
    known = ["age", "workclass", "education-num", "marital-status", "occupation", "race", "sex"]
    found = uniqueness(pl.read_csv(ADULT), [*known, "native-country"], [3, 8])
    assert found.people == 48_842
    assert found.sizes[0].most < found.sizes[1].most
    assert found.sizes[1].most > 0.1
