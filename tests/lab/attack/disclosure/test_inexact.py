"""Linkage by what is known roughly: weights, tolerances, claims, and its controls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither.errors import ArgumentError
from dither.lab.attack import Outcome, inexact_linkage, linkage

FILMS = [f"film{i}" for i in range(60)]


def ratings(people: int = 400, seed: int = 1) -> pl.DataFrame:
    """Ratings from 1 to 5 of some of 60 films, of which few are seen by many."""
    rng = np.random.default_rng(seed)
    seen = rng.random((people, 60)) < np.linspace(0.6, 0.05, 60)
    stars = rng.integers(1, 6, (people, 60))
    return pl.DataFrame(
        {
            f: pl.Series(
                [
                    int(s) if there else None
                    for s, there in zip(stars[:, i], seen[:, i], strict=True)
                ],
                dtype=pl.Int64,
            )
            for i, f in enumerate(FILMS)
        }
    )


def eight_films(table: pl.DataFrame, off: int, seed: int = 2) -> tuple[pl.DataFrame, Any]:
    """Of 40 people, eight ratings each, of which so many are off by one; and who they are."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(table.height)[:40]
    rows = []
    for p in who:
        there = [(f, v) for f, v in zip(FILMS, table.row(p), strict=True) if v is not None]
        some = rng.permutation(len(there))[:8]
        known = {there[i][0]: there[i][1] for i in some}
        for i in some[:off]:
            name, stars = there[i]
            known[name] = stars + 1 if stars < 5 else 4
        rows.append(known)
    return pl.DataFrame(rows, schema=dict.fromkeys(FILMS, pl.Int64)), who


@pytest.mark.parametrize("off", [0, 1, 3])
def test_eight_films_find_people_though_some_ratings_are_off(off: int) -> None:
    """Exact linkage finds nobody once a rating is off by one; scores find nearly everybody."""
    table = ratings()
    known, who = eight_films(table, off)
    found = inexact_linkage(table, known, FILMS, truth=who, seed=1)
    assert found.verdict is not None
    assert found.verdict.success >= 0.9
    assert found.right is not None
    assert found.right >= 0.9 * found.claimed >= 20
    assert found.verdict.null is not None
    assert found.verdict.null.share < 0.1
    assert "and 52 more" in found.summary()


def test_strangers_are_not_claimed() -> None:
    """Of people who are not in the release hardly any row stands out, and none is right."""
    table = ratings(430)
    known, who = eight_films(table[400:], 0)
    found = inexact_linkage(table[:400], known[: len(who)], FILMS, eccentricity=3)
    mine = inexact_linkage(table[400:], known, FILMS, eccentricity=3)
    assert found.claimed <= 3
    assert mine.claimed >= 25


def test_rare_facts_weigh_more_and_shared_ones_nothing() -> None:
    """By computed scores: what all share says nothing, what one in four has says log 4."""
    rows = pl.DataFrame({"sex": ["f"] * 4, "town": ["a", "a", "a", "b"], "pet": [*"xyzx"]})
    one = pl.DataFrame({"sex": ["f"], "town": ["b"], "pet": ["y"]})
    found = inexact_linkage(rows, one, rows.columns)
    # Scores 0, log 4, 0 and log 4: a tie of a rare town and a rare pet.
    assert found.leads.tolist() == [0.0]
    assert found.claimed == 0
    rarer = pl.DataFrame({"sex": ["f"], "town": ["b"], "pet": ["x"]})
    scores = np.array([np.log(2), 0, 0, np.log(4) + np.log(2)])
    lead = (scores[3] - scores[0]) / scores.std()
    again = inexact_linkage(rows, rarer, rows.columns)
    assert again.guesses.tolist() == [3]
    assert again.leads[0] == pytest.approx(lead, rel=1e-5)


def test_labels_and_numbers_are_read_and_a_tolerance_is_a_scale() -> None:
    """An interval agrees with what it holds; a number at the tolerance is alike to 1/e."""
    wards = pl.DataFrame({"age": ["[30, 40)", "[40, 50)"], "pay": [1000.0, 2000.0]})
    known = pl.DataFrame({"age": [44], "pay": [1100.0]})
    near = inexact_linkage(wards, known, ["pay"], tolerance={"pay": 100})
    assert near.guesses.tolist() == [0]
    assert inexact_linkage(wards, known, ["age"]).guesses.tolist() == [1]


def test_what_is_missing_is_not_known_or_like_nothing() -> None:
    """NULL in the public table says nothing; in the release it is like no value."""
    rows = pl.DataFrame({"a": [1.0, None, float("nan")], "b": ["x", "y", "y"]})
    known = pl.DataFrame({"a": pl.Series([None, 1.0], dtype=pl.Float64), "b": ["x", None]})
    found = inexact_linkage(rows, known, ["a", "b"])
    assert found.guesses.tolist() == [0, 0]
    nothing = pl.DataFrame(
        {"a": pl.Series([None], dtype=pl.Float64), "b": pl.Series([None], dtype=pl.String)}
    )
    assert inexact_linkage(rows, nothing, ["a", "b"]).claimed == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tolerance": {"b": 1}}, "holds no numbers"),
        ({"tolerance": {"c": 1}}, "no key"),
        ({"tolerance": {"a": 0}}, "above 0"),
        ({"tolerance": 1}, "mapping"),
        ({"eccentricity": -1}, "at least 0"),
        ({"truth": [0, 0]}, "no row twice"),
        ({"keys": ["z"]}, "unknown column"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], said: str) -> None:
    """By the argument's name."""
    rows = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    with pytest.raises(ArgumentError, match=said):
        inexact_linkage(rows, rows, **{"keys": ["a", "b"]} | options)


def test_odd_tables_and_a_picture(tmp_path: Path) -> None:
    """One row, constant columns, truth of some; the picture is drawn with and without it."""
    one = pl.DataFrame({"a": [1]})
    assert inexact_linkage(one, one, ["a"], truth="position").right == 1
    rows = pl.DataFrame({"a": [1] * 5, "b": [*"vwxyz"]})
    found = inexact_linkage(rows, rows[:3], ["a", "b"], truth=[0, -1, 2])
    assert found.verdict is not None
    assert found.verdict.outcome in Outcome
    for name, result in (("a", found), ("b", inexact_linkage(rows, rows, ["a"]))):
        result.plot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").is_file()
    assert linkage(rows, rows, ["b"]).alone == 5
