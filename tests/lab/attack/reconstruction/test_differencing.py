"""Differencing: certainty from exact counts, the bound from private ones."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither import privacy
from dither.errors import ArgumentError, BudgetError
from dither.lab.attack import Outcome, differencing, predicted_difference
from dither.noise import discrete_laplace
from dither.numeric import SimulatedWords

SURE = 1 - 1e-6
MANY = 6_000


def noisy(scale: Fraction | int, seed: int, targets: int = MANY) -> tuple[Any, list[str], Any]:
    """Counts with discrete Laplace noise over people with alternating secrets, as a callable."""
    secrets = [i % 2 == 1 for i in range(targets)]
    total = sum(secrets)
    draws = iter(discrete_laplace(Fraction(scale), 40 * targets, words=SimulatedWords(seed)))

    def answer(condition: str) -> float:
        left_out = condition.partition("id = ")[2].rstrip(")")
        return total - (secrets[int(left_out)] if left_out else 0) + int(next(draws))

    return answer, [f"id = {i}" for i in range(targets)], secrets


def by_sums(scale: float, repeats: int, alone: bool) -> float:
    """The predicted success from the law of the noise, by plain convolution."""
    reach = int(60 * scale)
    k = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(k) / scale)
    law = one / one.sum()
    total = law
    for _ in range(repeats * (1 if alone else 2) - 1):
        total = np.convolve(total, law)
    noise = np.arange(len(total)) - len(total) // 2
    return float(total[noise + repeats > repeats / 2].sum() + total[noise <= repeats / 2].sum()) / 2


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("repeats", [1, 2, 5])
@pytest.mark.parametrize("alone", [True, False])
def test_the_prediction_is_the_law_of_the_noise(scale: float, repeats: int, alone: bool) -> None:
    """The fast transform agrees with convolving by hand."""
    found = predicted_difference(scale, repeats, alone=alone)
    assert found == pytest.approx(by_sums(scale, repeats, alone), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_who_knows_the_others_reaches_the_bound(epsilon: float) -> None:
    """With one answer and everybody else known, theory gives e^ε/(1 + e^ε) exactly."""
    best = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert predicted_difference(1 / epsilon, alone=True) == pytest.approx(best, rel=1e-9)
    assert predicted_difference(1 / epsilon) < best


def test_exact_answers_are_certainty() -> None:
    """Every target, with no promise; and the null control fails."""
    answer, targets, secrets = noisy(Fraction(1, 100), 1, 400)
    found = differencing(answer, targets, "ill", truth=secrets)
    assert found.guesses.tolist() == secrets
    verdict = found.verdict
    assert verdict is not None
    assert verdict.success == 1.0
    assert verdict.bound == 1.0
    assert verdict.null is not None
    assert abs(verdict.null.share - 0.5) < 0.13


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
def test_private_answers_obey_the_bound_of_one_answer(epsilon: Fraction) -> None:
    """Both attackers succeed as predicted and not beyond one answer's ε; 1e-6 a false alarm."""
    for knows in (False, True):
        answer, targets, secrets = noisy(1 / epsilon, 7)
        others = [sum(secrets) - s for s in secrets] if knows else None
        found = differencing(
            answer,
            targets,
            "ill",
            loss=privacy.pure(float(epsilon)),
            truth=secrets,
            others=others,
            confidence=SURE,
        )
        verdict = found.verdict
        assert verdict is not None
        best = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert verdict.bound == pytest.approx(best, rel=1e-6)
        predicted = predicted_difference(float(1 / epsilon), alone=knows)
        assert verdict.low < predicted < verdict.high
        assert verdict.outcome is Outcome.CONSISTENT
        if knows:
            assert verdict.low < best < verdict.high


def test_half_the_noise_is_caught() -> None:
    """A release that claims ε = 1 with noise for 2 is found out by who knows the others."""
    answer, targets, secrets = noisy(Fraction(1, 2), 3)
    others = [sum(secrets) - s for s in secrets]
    found = differencing(
        answer,
        targets,
        "ill",
        loss=privacy.pure(1.0),
        truth=secrets,
        others=others,
        confidence=SURE,
    )
    assert found.verdict is not None
    assert found.verdict.outcome is Outcome.VIOLATED


def test_asking_again_costs_and_pays() -> None:
    """Four askings put the target in four answers: the bound is of 4ε, and success rises to it."""
    results = []
    for repeats in (1, 4):
        answer, targets, secrets = noisy(2, 5, 3_000)
        found = differencing(
            answer,
            targets,
            "ill",
            loss=privacy.pure(0.5),
            repeats=repeats,
            truth=secrets,
            confidence=SURE,
        )
        assert found.loss is not None
        assert float(found.loss.epsilon(0.0)) == pytest.approx(0.5 * repeats)
        assert found.verdict is not None
        predicted = predicted_difference(2.0, repeats)
        assert found.verdict.low < predicted < found.verdict.high <= found.verdict.bound + 0.05
        results.append(found.verdict.success)
    assert results[0] < results[1]


def session_of(folder: Path, people: pl.DataFrame, budget: float) -> Any:
    """A session on people with an id and a secret."""
    policy = {
        "budget": {"epsilon": budget, "ledger": str(folder / "people.ledger")},
        "tables": {"people": {"columns": {"id": {"bounds": [0, 9999]}, "ill": {"bounds": [0, 1]}}}},
    }
    return dt.open(policy, sources={"people": people})


def test_a_session_says_itself_what_it_loses(tmp_path: Path) -> None:
    """Forty women at ε = 4: the target's loss is of one answer, the ledger is charged for two."""
    people = pl.DataFrame({"id": range(300), "ill": [i % 2 for i in range(300)]})
    with session_of(tmp_path, people, 1_000) as session:
        found = differencing(
            session,
            [f"id = {i}" for i in range(40)],
            "ill = 1",
            epsilon=4,
            truth=[i % 2 == 1 for i in range(40)],
            confidence=SURE,
        )
        spent = session.balance()[0]
    assert found.spent == 2 * 40 * 4
    assert "320" in str(spent)
    assert found.loss is not None
    assert float(found.loss.epsilon(0.0)) == pytest.approx(4.0)
    verdict = found.verdict
    assert verdict is not None
    assert verdict.predicted == pytest.approx(predicted_difference(0.25))
    assert verdict.outcome is Outcome.CONSISTENT
    assert verdict.low < verdict.predicted < verdict.high


def test_a_budget_stops_the_attack(tmp_path: Path) -> None:
    """The ledger refuses what the budget cannot bear, no matter who asks."""
    people = pl.DataFrame({"id": range(10), "ill": [0, 1] * 5})
    with session_of(tmp_path, people, 1) as session, pytest.raises(BudgetError):
        differencing(session, "id = 1", "ill = 1", epsilon=1)


def test_repeats_are_averaged() -> None:
    """The difference is the mean over repeats, outliers and all."""
    answers = iter([5, 5, 5, 5, 9, 3])
    found = differencing(lambda _: next(answers), "a", "ill", repeats=3)
    assert found.differences.tolist() == [2.0]


def test_refusals_tell_nothing() -> None:
    """A release that answers no small difference leaves the attacker guessing 'no'."""
    found = differencing(lambda _: None, ["a", "b"], "ill", truth=[True, False])
    assert found.guesses.tolist() == [False, False]
    assert np.isnan(found.differences).all()


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"target": []}, "target"),
        ({"target": " "}, "target"),
        ({"truth": [True, True]}, "truth"),
        ({"truth": [1, 0]}, "truth"),
        ({"truth": [True]}, "truth"),
        ({"others": [1]}, "others"),
        ({"repeats": 0}, "repeats"),
        ({"epsilon": 1}, "epsilon"),
        ({"session": 3}, "session"),
        ({"confidence": 1.0}, "confidence"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], match: str) -> None:
    """Arguments are named."""
    given: dict[str, Any] = {"session": lambda _: 0, "target": ["a", "b"], "secret": "ill", **asked}
    with pytest.raises(ArgumentError, match=match):
        differencing(**given)


def test_an_answer_that_is_no_number_is_not_told() -> None:
    """A text that a callable gives may be data."""
    with pytest.raises(ArgumentError, match="number") as caught:
        differencing(lambda _: "top-secret", "a", "ill")  # type: ignore[arg-type,return-value]
    assert "top-secret" not in str(caught.value)


def test_a_session_needs_an_epsilon(tmp_path: Path) -> None:
    """And takes no loss from outside."""
    people = pl.DataFrame({"id": [1], "ill": [1]})
    with session_of(tmp_path, people, 1) as session:
        with pytest.raises(ArgumentError, match="epsilon"):
            differencing(session, "id = 1", "ill = 1")
        with pytest.raises(ArgumentError, match="loss"):
            differencing(session, "id = 1", "ill = 1", epsilon=1, loss=privacy.pure(1.0))


def test_conditions_may_end_in_comments_and_semicolons() -> None:
    """What is asked is the same, and what is plain is asked as it was written."""
    asked: list[str] = []

    def answer(condition: str) -> float:
        asked.append(condition)
        return 1.0

    differencing(answer, "id = 7 -- him", "ill = 1 ; ")
    differencing(answer, "id = 7", "ill = 1 -- yes")
    differencing(answer, "id = 7", "ill = 1")
    assert asked == [
        *("ill = 1 ; ", "(ill = 1) AND NOT (id = 7 -- him\n)"),
        *("ill = 1 -- yes", "(ill = 1 -- yes\n) AND NOT (id = 7)"),
        *("ill = 1", "(ill = 1) AND NOT (id = 7)"),
    ]
