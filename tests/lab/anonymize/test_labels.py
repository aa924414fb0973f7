"""The lab takes releases as they are: what their labels stand for is known to its scores."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dither as dt

RNG = np.random.default_rng(7)
PEOPLE = pl.DataFrame(
    {
        "zip": [f"{n:05}" for n in RNG.integers(0, 300, 600)],
        "job": [None if n == 9 else f"job {n}" for n in RNG.integers(0, 10, 600).tolist()],
        "age": RNG.integers(20, 60, 600),
        "ill": [*"abc"] * 200,
    }
)
QUASI = ["zip", "job", "age"]


def boxes():
    """Cut into boxes."""
    return dt.anonymize.mondrian(PEOPLE, QUASI, 5, sensitive="ill")


def levels():
    """Generalised by rules and by a table."""
    trade = {f"job {n}": [f"trade {n // 3}"] for n in range(9)}
    rules = {
        "zip": dt.anonymize.prefixes([4, 3]),
        "job": dt.anonymize.hierarchy(trade),
        "age": dt.anonymize.intervals([10, 20]),
    }
    return dt.anonymize.generalize(PEOPLE, QUASI, rules, 5, sensitive="ill")


@pytest.mark.parametrize("made", [boxes, levels])
def test_labels_cover_the_values_they_replace(made) -> None:
    """Every cell's value is among those that its label stands for; none is shown."""
    release = made()
    assert set(release.covers) <= set(QUASI)
    for name, under in release.covers.items():
        before, after = PEOPLE[name].gather(release.rows).to_list(), release.frame[name].to_list()
        assert all(value in under[label] for value, label in zip(before, after, strict=True))
    assert "covers" not in repr(release)
    assert not any(code in repr(release) for code in PEOPLE["zip"].unique())


@pytest.mark.parametrize("made", [boxes, levels])
def test_the_lab_links_it(made) -> None:
    """The attacks need no more than the release; each person is among the rows that fit them."""
    release = made()
    found = dt.attack.linkage(release, PEOPLE, covers=release.covers)
    assert found.rows == len(release.rows)
    assert found.alone == 0
    assert found.verdict.score.targets == (len(release.rows),)
    # Anyone who guesses within a class of five or more is right a fifth of the time, at most.
    assert sum(found.verdict.score.hits) / len(release.rows) < 0.3
    assert found.verdict.predicted == pytest.approx(release.measures.risk.marketer, rel=0.5)
    given_away = dt.attack.homogeneity(release).given_away
    assert given_away == release.measures.sensitive["ill"].disclosed
