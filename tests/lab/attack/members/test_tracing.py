"""Tracing people in published means: the attack, its theory, and the noise that stops it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dither import privacy
from dither.cli import main
from dither.errors import ArgumentError
from dither.examples.traced_means import private_means, simulated_bits
from dither.lab.attack import Outcome, tracing
from dither.lab.attack.members._tracing import trace_score


def exact(rows: Any) -> Any:
    """The means of columns."""
    return rows.mean(axis=0)


def test_more_columns_than_people_give_all_away() -> None:
    """Exact means of 2,000 columns of 60 people, and means of one digit."""
    bits = simulated_bits(60, 2000, 1)
    for digits in (12, 1):
        found = tracing(lambda rows, d=digits: exact(rows).round(d), bits, plays=5)
        assert found.auc.low > 0.97
        assert found.verdict.success > 0.95
        assert found.verdict.null is not None
        assert abs(found.verdict.null.share - 0.5) < 0.15


@pytest.mark.parametrize("columns", [25, 100, 400])
def test_the_success_is_what_theory_says(columns: int) -> None:
    """Of independent columns and N people, half of them in: Φ(√(d/N)), within 4 deviations."""
    from statistics import NormalDist

    people = 100
    found = tracing(exact, simulated_bits(people, columns, 3), plays=40, seed=2)
    theory = NormalDist().cdf((columns / people) ** 0.5)
    assert found.verdict.success == pytest.approx(theory, abs=4 * 0.5 / 4000**0.5 + 0.01)


def test_private_means_meet_what_they_promise_and_false_claims_are_refuted() -> None:
    """ε = 1 for all 500 columns is not accused; the exact means sold as ε = 1 are."""
    bits = simulated_bits(60, 500, 1)
    loss = privacy.approximate(1, "1e-6")
    honest = tracing(private_means(500, Fraction(1)), bits, loss=loss, plays=10)
    assert honest.verdict.outcome is Outcome.CONSISTENT
    assert honest.auc.value < 0.7
    assert tracing(exact, bits, loss=loss, plays=3).verdict.outcome is Outcome.VIOLATED


def test_a_score_is_the_inner_product_of_two_pulls() -> None:
    """Computed by hand, a constant column aside."""
    rows = np.array([[0.0, 1.0, 5.0], [1.0, 1.0, 5.0], [0.0, 0.0, 5.0], [1.0, 0.0, 5.0]])
    published = np.array([0.5, 0.75, 5.0])
    assert trace_score(rows, published).tolist() == [0.5, 0.5, -0.5, -0.5]


@pytest.mark.parametrize(
    ("means", "data", "said"),
    [
        (1, np.eye(4), "function of rows"),
        (exact, np.ones((4, 2)), "not the same for everybody"),
        (exact, [["a"], ["b"]], "must be numbers"),
        (lambda rows: rows.mean(), np.eye(4), "each of 4 columns"),
        (lambda rows: rows.mean(axis=0) * np.nan, np.eye(4), "finite number"),
    ],
)
def test_what_does_not_fit_is_refused(means: Any, data: Any, said: str) -> None:
    """By the argument's name."""
    with pytest.raises(ArgumentError, match=said):
        tracing(means, data)


def test_a_function_that_writes_into_its_rows_changes_nobody() -> None:
    """Each call has a copy."""
    bits = simulated_bits(40, 200, 1)
    before = bits.copy()

    def spoiling(rows: Any) -> Any:
        found = rows.mean(axis=0)
        rows[:] = 0
        return found

    assert tracing(spoiling, bits, plays=3).auc.value == tracing(exact, bits, plays=3).auc.value
    assert (bits == before).all()


def test_the_command_on_a_table(tmp_path: Any) -> None:
    """Zeros and ones of a file; anything else is refused, and shown nowhere."""
    import polars as pl

    path = tmp_path / "bits.csv"
    pl.DataFrame(simulated_bits(40, 300, 1), schema=[f"c{i}" for i in range(300)]).write_csv(path)
    asked = ["attack", "tracing", str(path), "--plays", "3", "--plot", str(tmp_path / "roc.png")]
    done = CliRunner().invoke(main, asked)
    assert done.exit_code == 0, done.output
    assert "means of 300 columns" in " ".join(done.output.split())
    assert (tmp_path / "roc.png").is_file()
    path.write_text("a,b\n0,17\n1,0\n")
    done = CliRunner().invoke(main, ["attack", "tracing", str(path)])
    assert done.exit_code != 0
    assert "zeros and ones" in done.output
    assert "17" not in done.output
