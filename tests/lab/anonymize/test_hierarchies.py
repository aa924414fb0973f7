"""Hierarchies: read, made, checked, and laid over a column."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.lab._frames import Coded
from dither.lab.anonymize import dates, hierarchy, intervals, prefixes, recode, suppression
from dither.lab.anonymize._hierarchy import fit

TREE = {"ann": ["short", "*"], "bob": ["short", "*"], "clara": ["long", "*"]}


def fitted(source, values):
    """Laid over distinct values, each with one row."""
    series = pl.Series("v", values)
    return fit("v", source, Coded(np.arange(len(series), dtype=np.int32), series))


def test_tables_in_three_forms(tmp_path) -> None:
    """A file, a mapping and a frame say the same."""
    path = tmp_path / "tree.csv"
    path.write_text("ann;short;*\nbob;short;*\nclara;long;*\n")
    frame = pl.DataFrame([(k, *v) for k, v in TREE.items()], orient="row")
    found = [hierarchy(source).frame.rows() for source in (path, str(path), TREE, frame)]
    assert all(rows == found[0] for rows in found)
    assert hierarchy(path).height == 2


def test_a_star_is_added_where_the_top_tells_apart() -> None:
    """Every hierarchy ends where nothing is told apart."""
    assert hierarchy({"a": ["x"], "b": ["y"]}).frame.row(0) == ("a", "x", "*")
    assert hierarchy({"a": ["x"], "b": ["x"]}).frame.row(0) == ("a", "x")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"a": ["x", "p"], "b": ["x", "q"]}, "not monotone: 1 labels of level 1"),
        ({"a": ["x"], "b": ["x", "y"]}, "same number of coarser levels"),
        ({}, "same number"),
        (
            pl.DataFrame({"0": ["secret", "secret"], "1": ["x", "x"]}),
            "lists 1 values more",
        ),
        (pl.DataFrame(), "is empty"),
        (3, "must be a Polars"),
        ("no/such/file.csv", "cannot be read"),
    ],
)
def test_what_is_no_hierarchy(source, message) -> None:
    """Each fault is named, no value is."""
    with pytest.raises(ArgumentError, match=message) as told:
        hierarchy(source)
    assert "secret" not in str(told.value)


def test_uncovered_values_are_counted() -> None:
    """How many values and rows, and whether spaces are to blame; never which."""
    values = pl.Series("v", ["ann", "secretive"])
    with pytest.raises(ArgumentError, match=r"1 of 2 values \(7 of 10 rows\); add a row") as told:
        fit("v", TREE, Coded(np.repeat(np.arange(2, dtype=np.int32), [3, 7]), values))
    assert "secretive" not in str(told.value)
    with pytest.raises(ArgumentError, match="spaces around"):
        fitted(TREE, [" ann", "bob "])


@pytest.mark.parametrize(
    ("values", "leaves"),
    [
        ([1, 12], (1.0, 12.0)),
        ([1.0, 12.0], (1, 12)),
        ([1.0, 12.0], ("1", "12")),
        ([1, 12], ("1", "12")),
        (["1", "12"], (1, 12)),
    ],
)
def test_numbers_meet_whatever_their_type(values, leaves) -> None:
    """1 and 1.0 are one number; texts are matched as they are written."""
    assert fitted({leaf: ["x"] for leaf in leaves}, values).sizes == (2, 1)


def test_missing_values_stay_until_the_top() -> None:
    """NULL and NaN are values of their own, unless the table lists them."""
    found = fitted(TREE, ["ann", None])
    assert [level[1] for level in found.maps] != [level[0] for level in found.maps]
    assert set(found.labels[1]) == {"short", None}
    assert found.sizes == (2, 2, 1)
    numbers = fitted(intervals([10]), [1.0, None, float("nan"), float("inf")])
    assert set(numbers.labels[1]) == {"[0, 10)", None, "nan", "inf"}
    assert numbers.sizes[-1] == 1
    listed = fitted({"ann": ["x"], None: ["x"]}, ["ann", None])
    assert listed.sizes == (2, 1)


def test_spread_counts_leaves() -> None:
    """The share of the domain that a value could be, from the whole table."""
    found = fitted(TREE, ["ann", "clara"])
    assert [level.tolist() for level in found.spread] == [[0, 0], [0.5, 0], [1, 1]]


@given(
    st.lists(
        st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6)), min_size=1, unique=True
    ),
    st.sampled_from([[1, 5, 10], ["0.1", "0.3", 3], [7], [Fraction(1, 3), 1, 10]]),
    st.sampled_from([0, 1, "0.5", -3]),
)
def test_intervals_hold_their_numbers(values, widths, start) -> None:
    """Each number lies in its interval, exactly, and each interval in the next."""
    series = pl.Series("v", [float(v) for v in values]).unique()
    table = intervals(widths, start=start).levels_of("v", series)
    for value, *levels, top in zip(series, *table.get_columns()[1:], strict=True):
        assert top == "*"
        exact = Fraction(repr(value))
        for width, level in zip(widths, levels, strict=True):
            low, high = (float(Fraction(end)) for end in level[1:-1].split(", "))
            assert low <= float(exact) <= high
            assert high - low == pytest.approx(float(Fraction(width)), abs=1e-6)
    assert hierarchy(table).height == len(widths) + 1


def test_decimal_bounds_are_exact() -> None:
    """0.3 begins the interval [0.3, 0.4), though the binary 0.3 is below 3 times 0.1."""
    table = intervals([0.1]).levels_of("v", pl.Series([0.3, 0.7, 0.1 + 0.2]))
    assert table["1"].to_list() == ["[0.3, 0.4)", "[0.7, 0.8)", "[0.3, 0.4)"]


def test_dates_and_prefixes() -> None:
    """Calendar units and first characters, missing ones kept."""
    days = pl.Series([dt.date(1999, 12, 31), dt.date(2000, 1, 1), None])
    table = dates(["month", "quarter", "year", "decade"]).levels_of("d", days)
    assert table.row(0) == ("1999-12-31", "1999-12", "1999-Q4", "1999", "1990s", "*")
    assert table.row(2) == (None, None, None, None, None, "*")
    codes = prefixes([3, 1]).levels_of("z", pl.Series(["02139", "021", None]))
    assert codes.rows() == [
        ("02139", "021*", "0*", "*"),
        ("021", "021", "0*", "*"),
        (None, None, None, "*"),
    ]
    assert suppression().levels_of("z", pl.Series([1])).row(0) == ("1", "*")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: intervals([]), "widths"),
        (lambda: intervals([0]), "above 0"),
        (lambda: intervals([5, 12]), "whole multiple"),
        (lambda: intervals([5, 5]), "whole multiple"),
        (lambda: dates(["monht"]), "did you mean 'month'"),
        (lambda: dates(["year", "month"]), "fine to coarse"),
        (lambda: prefixes([1, 2]), "that fall"),
        (lambda: prefixes([0]), "at least 1"),
        (lambda: intervals([5]).levels_of("v", pl.Series(["secret"])), "columns of numbers"),
        (lambda: dates().levels_of("v", pl.Series(["secret"])), "parse the texts"),
    ],
)
def test_rules_are_checked(make, message) -> None:
    """Each rule says what it wants."""
    with pytest.raises(ArgumentError, match=message):
        make()


def test_recode_takes_any_level() -> None:
    """A population is brought to the levels of a release."""
    frame = pl.DataFrame({"v": ["ann", "clara"], "n": [1, 12]})
    found = recode(frame, {"v": TREE, "n": intervals([10])}, {"v": 1, "n": 1})
    assert found.rows() == [("short", "[0, 10)"), ("long", "[10, 20)")]
    assert recode(frame, {"v": TREE}, {"v": 0}).equals(frame)
    with pytest.raises(ArgumentError, match=r"levels\['v'\] must be at most 2"):
        recode(frame, {"v": TREE}, {"v": 3})


@given(st.lists(st.text(max_size=6), min_size=1, unique=True))
def test_prefixes_nest_whatever_the_text(values) -> None:
    """Every level is a function of the one below, for any text."""
    said = [v.encode("utf-8", "replace").decode() for v in values]
    table = prefixes([4, 2, 1]).levels_of("v", pl.Series(said).unique())
    assert hierarchy(table).height == 4


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_quotes_in_files(tmp_path, end, mark) -> None:
    """A value may hold the separator and quotes, as spreadsheets and ARX write them."""
    path = tmp_path / "tree.csv"
    lines = ['"a;b";letters;*', '"say ""hi""";words;*', "5\u2028;letters;*", ""]
    path.write_text(mark + end.join(lines), encoding="utf-8", newline="")
    tree = hierarchy(path)
    assert tree.frame["0"].to_list() == ["a;b", 'say "hi"', "5\u2028"]
    assert tree.frame["1"].to_list() == ["letters", "words", "letters"]
