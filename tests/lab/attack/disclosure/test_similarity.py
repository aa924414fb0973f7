"""Answers that mean the same, by groups and by distance; and two releases of one table."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dither.errors import ArgumentError
from dither.lab import anonymize
from dither.lab.attack import homogeneity, similarity, snapshots

WARDS = pl.DataFrame(
    {
        "zip": ["130**"] * 3 + ["148**"] * 3,
        "illness": ["ulcer", "gastritis", "ulcer", "flu", "ulcer", "hiv"],
        "pay": [3.0, 4, 5, 3, 7, None],
    }
)
GROUPS = {"ulcer": "stomach", "gastritis": "stomach", "flu": "lung"}


def test_answers_of_one_group_give_a_class_away() -> None:
    """Two answers, both of the stomach: no homogeneity, and certainty all the same."""
    assert homogeneity(WARDS, ["zip"], "illness").given_away == 0
    found = similarity(WARDS, ["zip"], "illness", groups=GROUPS)
    assert (found.given_away, found.in_groups, found.several, found.share) == (3, 3, 3, 0.5)
    # Four of the stomach blindly; by class the three, and one of the three others.
    assert found.verdict.prior == pytest.approx(4 / 6)
    assert found.verdict.success == pytest.approx(4 / 6)
    assert "the group of illness" in found.summary()


def test_answers_within_a_distance_give_a_class_away() -> None:
    """Three salaries within 2 of one another; one that is missing is like none."""
    found = similarity(WARDS, ["zip"], "pay", within=2)
    assert (found.given_away, found.several) == (3, 3)
    assert found.verdict.prior == pytest.approx(4 / 6)  # 3 to 5 holds four of six
    assert similarity(WARDS, ["zip"], "pay", within=1.5).given_away == 0
    alone = similarity(WARDS[5:], ["zip"], "pay", within=1)
    assert alone.given_away == 1


def test_a_diverse_release_is_read_by_its_groups() -> None:
    """Two answers in each class, as l-diversity asks, all of one group."""
    people = pl.DataFrame(
        {"age": range(40), "illness": ["ulcer", "gastritis"] * 10 + ["flu", "cold"] * 10}
    )
    made = anonymize.mondrian(
        people, ["age"], k=4, sensitive="illness", require=[anonymize.l_diversity(2)]
    )
    assert homogeneity(made).given_away == 0
    found = similarity(made, groups=GROUPS | {"cold": "lung"})
    assert found.given_away > 20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give groups"),
        ({"groups": GROUPS, "within": 1}, "give groups"),
        ({"groups": "stomach"}, "must be a mapping"),
        ({"within": 0}, "above 0"),
        ({"within": 1}, "column of numbers"),
        ({"groups": {"ulcer": []}}, "texts, numbers or dates"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], said: str) -> None:
    """By the argument's name, and without a value of the data."""
    with pytest.raises(ArgumentError, match=said) as refused:
        similarity(WARDS, ["zip"], "illness", **options)
    assert "ulcer itself" not in str(refused.value)


def test_the_difference_of_two_releases_gives_newcomers_away() -> None:
    """Two joined a class of four with one answer: certain, though five of six hide neither."""
    may = pl.DataFrame({"zip": ["130**"] * 4 + ["148**"] * 3, "illness": [*"ffccfcc"]})
    june = may.vstack(pl.DataFrame({"zip": ["130**"] * 2, "illness": ["h", "h"]}))
    found = snapshots(may, june, ["zip"], "illness")
    assert (found.came, found.left, found.given_away, found.smallest) == (2, 0, 2, 6)
    assert homogeneity(june, ["zip"], "illness").given_away == 0
    back = snapshots(june, may, ["zip"], "illness")
    assert (back.came, back.left, back.given_away, back.smallest) == (0, 2, 2, 6)
    assert found.verdict is not None
    assert found.verdict.success == 1.0


def test_mixed_changes_are_guessed_and_equal_releases_say_nothing() -> None:
    """Two newcomers with two answers are not certain; a person replaced by an equal is unseen."""
    may = pl.DataFrame({"zip": ["1"] * 4 + ["2"] * 2, "illness": [*"ffccfc"]})
    june = may.vstack(pl.DataFrame({"zip": ["1", "1", "1", "2"], "illness": [*"hhfh"]}))
    found = snapshots(may, june, ["zip"], "illness")
    assert (found.came, found.given_away) == (4, 1)
    assert found.verdict is not None
    assert found.verdict.success == 0.75
    same = snapshots(may, may.sample(fraction=1, shuffle=True, seed=1), ["zip"], "illness")
    assert (same.came, same.left, same.verdict) == (0, 0, None)
    assert "0 rows came" in same.summary()
    with pytest.raises(ArgumentError, match="nothing to draw"):
        same.plot()


def test_snapshots_read_columns_of_other_types_and_refuse_unknown_ones(tmp_path: Any) -> None:
    """A CSV file holds as texts what another holds as numbers; labels are compared as texts."""
    may = pl.DataFrame({"age": [30, 30, 40], "ill": ["y", "n", "n"]})
    june = pl.DataFrame({"age": ["30", "30", "40", "40"], "ill": ["y", "n", "n", "y"]})
    found = snapshots(may, june, ["age"], "ill")
    assert (found.came, found.given_away) == (1, 1)
    found.plot(tmp_path / "two.png")
    assert (tmp_path / "two.png").is_file()
    with pytest.raises(ArgumentError, match="unknown column"):
        snapshots(may.drop("ill"), june, ["age"], "ill")
    with pytest.raises(ArgumentError, match="must not be in quasi"):
        snapshots(may, june, ["age"], "age")
