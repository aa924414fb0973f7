"""Linkage against matching by hand, with its controls."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.examples.survey import COVERS, QUASI, boxes
from dither.lab.attack import Outcome, linkage
from dither.lab.attack.disclosure._labels import coverage


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc")), min_size=1, max_size=12),
    st.booleans(),
)
def test_candidates_are_rows_that_fit(
    spans: list[tuple[int, int]], people: list[tuple[int, str]], letters: bool
) -> None:
    """With overlapping intervals, each person fits exactly the rows that cover the person."""
    release = pl.DataFrame(
        {
            "age": [f"[{a}, {a + w}]" for a, w in spans],
            "letter": ["*" if letters or i % 2 else "b" for i in range(len(spans))],
        }
    )
    public = pl.DataFrame(people, schema=["age", "letter"], orient="row")
    fits = [
        [
            i
            for i, (a, w) in enumerate(spans)
            if a <= age <= a + w and release["letter"][i] in ("*", letter)
        ]
        for age, letter in people
    ]
    if not any(a <= age <= a + w for a, w in spans for age, _ in people) or not any(
        release["letter"][i] in ("*", letter) for i in range(len(spans)) for _, letter in people
    ):
        with pytest.raises(ArgumentError, match="covers="):
            linkage(release, public, ["age", "letter"])
        return
    found = linkage(release, public, ["age", "letter"])
    assert found.candidates.tolist() == [len(rows) for rows in fits]
    for guess, rows in zip(found.guesses.tolist(), fits, strict=True):
        assert guess in rows if rows else guess == -1


def test_guesses_are_even_among_those_that_fit() -> None:
    """Each of four rows that fit is guessed a quarter of the time; beyond 6 sigma once in 1e8."""
    for labels in (["[0, 9]"] * 4, ["[0, 9]", "[0, 8]", "[1, 9]", "[5, 5]"]):
        release = pl.DataFrame({"x": labels})
        found = linkage(release, pl.DataFrame({"x": [5] * 20_000}), ["x"], seed=3)
        counts = np.bincount(found.guesses, minlength=4)
        assert np.abs(counts - 5_000).max() < 6 * np.sqrt(20_000 * 3 / 16)


def test_rows_as_they_are_give_a_thousand_women_away(survey: pl.DataFrame) -> None:
    """All that are alone are found, and found rightly; the whole success is what theory says."""
    found = linkage(survey.drop("affairs"), survey, QUASI, truth="position", confidence=1 - 1e-6)
    assert (found.alone, found.right) == (1_097, 1_097)
    verdict = found.verdict
    assert verdict is not None
    assert verdict.predicted == pytest.approx(2_099 / 6_366)
    assert verdict.low < 2_099 / 6_366 < verdict.high
    assert verdict.outcome is Outcome.CONSISTENT


def test_ten_anonymity_hides_the_row(survey: pl.DataFrame, ten: Any) -> None:
    """Nobody fits fewer than ten rows; controls succeed and fail as they must."""
    found = linkage(ten, survey, covers=COVERS, confidence=1 - 1e-6)
    there = np.zeros(survey.height, dtype=bool)
    there[ten.rows] = True
    assert found.candidates[there].min() >= 10
    assert found.candidates[~there].max() < 10
    verdict = found.verdict
    assert verdict is not None
    assert verdict.control is not None
    assert verdict.null is not None
    assert verdict.predicted == pytest.approx(94 / 6_089)
    assert verdict.low < 94 / 6_089 < verdict.high < 0.1
    assert verdict.control.share > 0.25
    assert verdict.null.share < 0.003


def test_mondrian_is_linked_by_its_boxes(survey: pl.DataFrame) -> None:
    """Intervals and sets are read as they are written: everybody fits exactly the own box."""
    release = boxes(survey)
    found = linkage(release, survey)
    sizes = np.bincount(release.classes)
    assert found.candidates[release.rows].tolist() == sizes[release.classes].tolist()
    assert found.right is not None
    assert found.found == survey.height


LABELS = [
    ("10-19", [9, 10, 19, 20], [0, 1, 1, 0]),
    ("-20 - -10", [-21, -20, -10, -9], [0, 1, 1, 0]),
    ("[10, 20[", [9, 10, 20], [0, 1, 0]),
    ("]10, 20]", [10, 11, 20], [0, 1, 1]),
    ("{38 … 46: 9}", [37, 38, 40, 46, 47, None], [0, 1, 1, 1, 0, 0]),
    ("{38 … NULL: 9}", [37, 38, 99, None], [0, 1, 1, 1]),
    ("{b … d: 9}", ["a", "b", "bb", "d", "e", None], [0, 1, 1, 1, 0, 0]),
    ("{10 … 9: 9}", ["1", "10", "85", "9", "91"], [0, 1, 1, 1, 0]),
    ("{1, NULL}", [1, 2, None], [1, 0, 1]),
    ('{"Lee, Ann", "NULL"}', ["Lee, Ann", "NULL", "Lee", None], [1, 1, 0, 0]),
    ("NULL", ["a", None], [0, 1]),
    ("*1234", ["551234", "123455"], [1, 0]),
    ("021*", ["02139", "2139"], [1, 0]),
    ("1984-Q2", [dt.date(1984, 3, 31), dt.date(1984, 4, 1), dt.date(1984, 6, 30)], [0, 1, 1]),
    ("1984-05", ["1984-05-17", "1984-06-01"], [1, 0]),
    ("1980s", [dt.datetime(1989, 12, 31, 5), dt.date(1990, 1, 1)], [1, 0]),
    ("1984", [1984, 1985], [1, 0]),
    ("1984", [dt.date(1984, 1, 1), dt.date(1985, 1, 1)], [1, 0]),
    ("[2020-01-01, 2020-02-01]", [dt.date(2020, 1, 15), dt.date(2020, 2, 2)], [1, 0]),
    (">=2020-01-01", ["2019-12-31", "2020-01-01"], [0, 1]),
    ("2020-01-01 00:00:00.000000", [dt.datetime(2020, 1, 1)], [1]),
    ("false", [False, True], [1, 0]),
    ("02139-4307", ["02139-4307", "3000"], [1, 0]),
]


@pytest.mark.parametrize(("label", "values", "covered"), LABELS)
def test_labels_are_read_as_they_are_written(
    label: str, values: list[Any], covered: list[int]
) -> None:
    """Sets, ranges, spans of other tools, dates and codes cover what they say."""
    assert coverage([label], values).astype(int).tolist() == [covered]


@given(st.data())
def test_whatever_mondrian_writes_is_read(data: st.DataObject) -> None:
    """Of any column that it cuts, everybody fits the own row, by the label's text alone."""
    from dither import anonymize as an

    cells = data.draw(
        st.sampled_from(
            [
                st.one_of(st.none(), st.integers(-30, 30)),
                st.one_of(st.none(), st.text('ab,"{} …N', max_size=4)),
                st.dates(dt.date(1950, 1, 1), dt.date(2020, 1, 1)),
                st.one_of(st.none(), st.dates(dt.date(1950, 1, 1), dt.date(2020, 1, 1))),
                st.floats(-5, 5),
                st.booleans(),
                st.one_of(st.none(), st.text("0123456789", min_size=1, max_size=5)),
            ]
        )
    )
    people = pl.DataFrame({"x": data.draw(st.lists(cells, min_size=2, max_size=40))}, strict=False)
    boxes = an.mondrian(people, ["x"], k=2)
    for covers in (None, {}):
        found = linkage(boxes, people, covers=covers)
        assert (found.candidates[boxes.rows] >= np.bincount(boxes.classes)[boxes.classes]).all()


def test_a_release_says_itself_what_its_labels_cover() -> None:
    """Labels of a table are read by the release's own covers, without being told."""
    from dither import anonymize as an

    people = pl.DataFrame({"job": ["nurse", "surgeon", "clerk", "cashier"]})
    tree = {"nurse": ["care"], "surgeon": ["care"], "clerk": ["office"], "cashier": ["office"]}
    release = an.generalize(people, ["job"], {"job": an.hierarchy(tree)}, k=2, suppress=0)
    assert linkage(release, people).candidates.tolist() == [2, 2, 2, 2]


def test_people_who_are_not_there_are_not_scored() -> None:
    """A truth of -1 counts neither for nor against."""
    release = pl.DataFrame({"x": [1, 2, 3]})
    public = pl.DataFrame({"x": [3, 9, 1, 2]})
    found = linkage(release, public, ["x"], truth=[2, -1, 0, 1])
    assert found.verdict is not None
    assert found.verdict.score.hits == (3,)
    assert found.verdict.score.targets == (3,)
    assert found.found == 3


def test_without_a_truth_nothing_is_judged() -> None:
    """The attacker's own view: claims, and no verdict."""
    found = linkage(pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [1]}), ["x"])
    assert (found.alone, found.right, found.verdict) == (1, None, None)
    assert re.search(r"exactly one row \d+\.", found.summary())


@pytest.mark.parametrize(
    "truth", ["position", "rows", [0], [0, 5, 1], [0, 0, 1], [-1, -1, -1], [0.0, 1.0, -1.0]]
)
def test_a_truth_that_does_not_fit_is_refused(truth: Any) -> None:
    """Wrong lengths, rows that are not there, rows given twice, nobody at all."""
    release, public = pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": [1, 2, 3]})
    with pytest.raises(ArgumentError, match="truth"):
        linkage(release, public, ["x"], truth=truth)


@pytest.mark.parametrize(
    "asked", [{"confidence": 0}, {"confidence": True}, {"covers": {"x": 3}}, {"seed": -1}]
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any]) -> None:
    """Arguments are named."""
    with pytest.raises(ArgumentError, match=next(iter(asked))):
        linkage(pl.DataFrame({"x": [1]}), pl.DataFrame({"x": [1]}), ["x"], **asked)


def test_pictures(tmp_path: Path) -> None:
    """One with a verdict, one without."""
    release, public = pl.DataFrame({"x": [1, 2, 2]}), pl.DataFrame({"x": [1, 2, 2]})
    for name, truth in (("with", "position"), ("without", None)):
        linkage(release, public, ["x"], truth=truth).plot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000


@pytest.mark.parametrize("seed", range(5))
def test_few_people_in_many_rows_are_no_cheats(seed: int) -> None:
    """Ten people among a thousand rows: strangers are any rows of it, not each other's."""
    release = pl.DataFrame({"x": range(1000)})
    public = pl.DataFrame({"x": range(10)})
    found = linkage(release, public, ["x"], truth=list(range(10)), seed=seed)
    assert found.verdict is not None
    assert found.verdict.outcome is Outcome.CONSISTENT
