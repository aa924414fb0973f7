"""Homogeneity, skewness and background knowledge, against definitions and enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither import anonymize as an
from dither.errors import ArgumentError
from dither.lab.attack import Outcome, background, homogeneity, skewness

ROWS = st.lists(st.tuples(st.sampled_from("pqr"), st.sampled_from("xyz")), min_size=2, max_size=24)
HOSPITAL = pl.DataFrame(
    {
        "zip": ["130**"] * 12,
        "age": ["<30"] * 4 + [">40"] * 4 + ["3*"] * 4,
        "condition": [
            *("AIDS", "heart", "viral", "viral"),
            *("cancer", "heart", "viral", "viral"),
            *["cancer"] * 4,
        ],
    }
)
"""A printed 4-anonymous table whose third class is all of one answer."""


def frame_of(rows: list[tuple[str, str]]) -> pl.DataFrame:
    """Two columns: a class, and an answer."""
    return pl.DataFrame(rows, schema=["group", "answer"], orient="row")


@given(ROWS)
def test_given_away_by_counting(rows: list[tuple[str, str]]) -> None:
    """Exactly the people whose class has one answer; alone or not."""
    found = homogeneity(frame_of(rows), ["group"], "answer")
    of = {g: {a for h, a in rows if h == g} for g, _ in rows}
    sizes = Counter(g for g, _ in rows)
    pure = [g for g, _ in rows if len(of[g]) == 1]
    assert found.given_away == len(pure)
    assert found.in_groups == sum(sizes[g] > 1 for g in pure)
    assert found.largest == max((sizes[g] for g in pure), default=0)


def test_the_printed_table() -> None:
    """Four of twelve patients of a 4-anonymous table are given away."""
    found = homogeneity(HOSPITAL, ["zip", "age"], "condition")
    assert (found.given_away, found.in_groups, found.largest) == (4, 4, 4)
    assert found.verdict.score.hits == (8,)


def test_it_agrees_with_the_measure(survey: pl.DataFrame, ten: Any) -> None:
    """What anonymising calls disclosed is what the attack gets, in raw rows and in a release."""
    for table, measured in (
        (survey, an.measure(survey, list(ten.quasi), "affair")),
        (ten, ten.measures),
    ):
        found = homogeneity(table, list(ten.quasi), "affair")
        assert found.given_away == measured.sensitive["affair"].disclosed


def test_controls_of_homogeneity(ten: Any) -> None:
    """On the bare truth it is always right; on strangers no better than blind."""
    verdict = homogeneity(ten, confidence=1 - 1e-6).verdict
    assert verdict.outcome is Outcome.CONSISTENT
    assert verdict.control is not None
    assert verdict.null is not None
    assert verdict.control.share == 1.0
    assert verdict.null.share < verdict.prior < verdict.success


def test_diversity_stops_certainty_and_not_the_guess(survey: pl.DataFrame, ten: Any) -> None:
    """With two answers in every class nobody is certain; the ranking still tells."""
    diverse = an.mondrian(
        survey.select(*ten.quasi, "affair"),
        list(ten.quasi),
        k=10,
        sensitive="affair",
        require=[an.l_diversity(2)],
    )
    assert homogeneity(diverse).given_away == 0
    assert skewness(diverse, value="yes").auc > 0.6


@given(ROWS)
def test_skewness_by_definition(rows: list[tuple[str, str]]) -> None:
    """Posterior, gain, distance and area, from their definitions."""
    value = rows[0][1]
    answers = Counter(a for _, a in rows)
    if len(answers) < 2:
        with pytest.raises(ArgumentError, match="value"):
            skewness(frame_of(rows), ["group"], "answer", value=value)
        return
    found = skewness(frame_of(rows), ["group"], "answer", value=value)
    groups = {g: Counter(a for h, a in rows if h == g) for g, _ in rows}
    posterior = [groups[g][value] / groups[g].total() for g, _ in rows]
    assert found.posterior.tolist() == pytest.approx(posterior)
    prior = answers[value] / len(rows)
    assert found.gain == pytest.approx(max(posterior) / prior)
    far = [
        sum(abs(c[a] / c.total() - answers[a] / len(rows)) for a in answers) / 2
        for c in groups.values()
    ]
    assert found.variation == pytest.approx(max(far))
    has = [p for p, (_, a) in zip(posterior, rows, strict=True) if a == value]
    lacks = [p for p, (_, a) in zip(posterior, rows, strict=True) if a != value]
    pairs = [(p > q) + (p == q) / 2 for p in has for q in lacks]
    assert found.auc == pytest.approx(sum(pairs) / len(pairs))


def test_ninety_nine_of_a_hundred() -> None:
    """Two answers in a class of a hundred, and still 99 are all but sure."""
    rows = [("p", "x")] * 99 + [("p", "y")] + [("q", "y")] * 100
    found = skewness(frame_of(rows), ["group"], "answer", value="x")
    assert homogeneity(frame_of(rows[:100]), ["group"], "answer").given_away == 0
    assert found.reaching(0.99) == 100
    assert found.raised(1.9) == 100


def test_closeness_is_the_distance(survey: pl.DataFrame, ten: Any) -> None:
    """The farthest class is at t, as t-closeness of equal distances measures it."""
    measured = an.measure(ten.frame, list(ten.quasi), "affair", distance="equal")
    assert skewness(ten, value="yes").variation == pytest.approx(measured.sensitive["affair"].t)


def test_skewness_succeeds_as_theory_says(ten: Any) -> None:
    """Duels are won as often as the area under the curve; strangers are a coin."""
    found = skewness(ten, value="yes", confidence=1 - 1e-6)
    assert found.verdict.low < found.auc < found.verdict.high
    assert found.verdict.null is not None
    assert abs(found.verdict.null.share - 0.5) < 0.03
    assert found.verdict.outcome is Outcome.CONSISTENT


@given(
    st.lists(st.tuples(st.just("p"), st.sampled_from("xy")), min_size=1, max_size=6),
    st.integers(0, 6),
)
def test_certainty_by_enumeration(rows: list[tuple[str, str]], j: int) -> None:
    """The exact share equals an enumeration of every choice of companions."""
    found = background(frame_of(rows), ["group"], "answer", companions=[j]).known[0]
    sure = tries = 0
    for i, (_, mine) in enumerate(rows):
        others = [a for n, (_, a) in enumerate(rows) if n != i]
        for struck in itertools.combinations(range(len(others)), min(j, len(others))):
            left = {a for n, a in enumerate(others) if n not in struck} | {mine}
            sure += len(left) == 1
            tries += 1
    assert found.certain == pytest.approx(sure / tries)


@given(ROWS)
def test_knowledge_never_harms(rows: list[tuple[str, str]]) -> None:
    """Certainty grows with what is known, from homogeneity to everybody."""
    table = frame_of(rows)
    found = background(table, ["group"], "answer", companions=range(len(rows))).known
    shares = [one.certain for one in found]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(homogeneity(table, ["group"], "answer").share)
    assert shares[-1] == pytest.approx(1.0)
    assert found[-1].verdict.success == 1.0


def test_exclusions(ten: Any) -> None:
    """In the printed table, who is known to have no viral infection, nor a weak heart."""
    found = background(
        HOSPITAL, ["zip", "age"], "condition", companions=[], excluded=["viral", "heart"]
    )
    # AIDS below 30, cancer above 40, and cancer in the third class: one answer is left each time.
    assert (found.ruled_out, found.concerned) == (6, 6)
    assert "of 6 people who gave none of them, given away: 6" in found.summary()


def test_guesses_with_background_have_controls(ten: Any) -> None:
    """With all others known everybody is given away; strangers are not."""
    last = background(ten, companions=[4, 5_000], confidence=1 - 1e-6).known[-1]
    assert last.certain == pytest.approx(1.0)
    assert last.verdict.control is not None
    assert last.verdict.null is not None
    assert last.verdict.control.share == 1.0
    assert last.verdict.null.share < last.verdict.prior + 0.03


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"sensitive": "group"}, "sensitive"),
        ({"sensitive": "anwser"}, "did you mean 'answer'"),
        ({"quasi": []}, "quasi"),
        ({"companions": [-1]}, "companions"),
        ({"companions": 4}, "companions"),
        ({"excluded": "x"}, "excluded"),
        ({"confidence": 2}, "confidence"),
        ({"excluded": ["nothing"]}, "excluded"),
        ({"excluded": ["x", "y"]}, "excluded"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], match: str) -> None:
    """Arguments are named."""
    table = frame_of([("p", "x"), ("p", "y")])
    with pytest.raises(ArgumentError, match=match):
        background(table, **{"quasi": ["group"], "sensitive": "answer", **asked})


def test_errors_hold_no_value() -> None:
    """A value that the column lacks is refused without telling which values it has."""
    table = frame_of([("p", "top-secret"), ("p", "y")])
    with pytest.raises(ArgumentError) as caught:
        skewness(table, ["group"], "answer", value="z")
    assert "top-secret" not in str(caught.value)


def test_pictures_of_classes(tmp_path: Path, ten: Any) -> None:
    """Each result can be seen."""
    found = {
        "homogeneity": homogeneity(ten),
        "skewness": skewness(ten, value="yes"),
        "background": background(ten, companions=[0, 8, 16]),
    }
    for name, one in found.items():
        one.plot(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5_000
        assert len(one.summary().splitlines()) > 2


def test_the_seed_decides(ten: Any) -> None:
    """The same seed gives the same verdict."""
    one, two = (background(ten, companions=[6], seed=5).known[0].verdict for _ in range(2))
    assert one == two
    assert np.isfinite(one.success)


@pytest.mark.parametrize("seed", range(8))
def test_strangers_of_few_people_say_nothing(seed: int) -> None:
    """In a table of eight, one deal of strangers' classes may rank them well by luck; the null
    control is dealt anew each time, so that nobody is said to know more than they should."""
    wards = pl.DataFrame({"zip": [*"aaaabbbb"], "ill": [*"yyynynnn"]})
    found = skewness(wards, ["zip"], "ill", value="y", seed=seed, confidence=1 - 1e-6)
    assert found.verdict.outcome is Outcome.CONSISTENT
    assert found.verdict.null is not None
    assert abs(found.verdict.null.share - 0.5) < 0.03


def test_one_answer_for_all_is_not_a_failing_attack() -> None:
    """Where everybody gave the same answer, the attack is not said to fail on the bare truth."""
    wards = pl.DataFrame({"zip": [1, 1, 2, 2], "ill": ["y"] * 4})
    for verdict in (
        homogeneity(wards, ["zip"], "ill").verdict,
        background(wards, ["zip"], "ill", companions=[1]).known[0].verdict,
    ):
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "always right" in verdict.reason
