"""Subsample and aggregate: what any statistic may do, by its values on parts."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import learn
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, DitherError
from dither.lab.audit import Outcome, audit
from dither.learn.votes._aggregate import _STEPS, _picked
from dither.ledger import Ledger
from dither.mechanisms import DiscreteGaussian, Exponential
from dither.privacy import Neighbours, Promise

ROWS = np.repeat(np.arange(100.0), 60)
KINDS = [("mean", 0), ("mean", 1e-6), ("median", 0), ("median", 1e-6)]


@pytest.mark.parametrize(("how", "delta"), KINDS)
def test_it_is_near_what_it_aggregates(how: str, delta: float) -> None:
    """Each kind of aggregate, of a number and of an array, and what it costs."""
    made = learn.SampleAndAggregate(
        lambda rows: np.mean(rows), bounds=(0, 100), epsilon=2, delta=delta, parts=300, how=how
    )
    found = made.release(ROWS)
    assert found.value.shape == ()
    assert abs(float(found.value) - 49.5) < 10
    assert made.loss.charge.epsilon == 2
    assert made.loss.charge.delta <= Fraction(str(delta))
    assert "300 parts" in found.summary()
    both = learn.SampleAndAggregate(
        lambda rows, y: [np.mean(rows), -np.mean(y)],
        bounds=([0, -1], [100, 0]),
        epsilon=8,
        delta=delta,
        parts=300,
        how=how,
    )
    got = both.release(pl.Series(ROWS), (ROWS > 50).tolist()).value
    assert abs(got[0] - 49.5) < 12
    assert abs(got[1] + 0.49) < 0.15
    assert both.loss.charge.epsilon == 8
    assert (found.half_width is None) is (how == "median")


def _all(values: Any, others: Any, noise: Exponential) -> float:
    """The largest ratio of the exact laws of a median among few places."""
    places = np.arange(1025) * (_STEPS // 1024)

    def law(column: np.ndarray) -> np.ndarray:
        below = (column[:, None] < places).sum(axis=0)
        above = (column[:, None] > places).sum(axis=0)
        weights = np.exp(-float(noise.rate) * np.maximum(below, above))
        return np.asarray(weights / weights.sum())

    p, q = law(np.array(values)), law(np.array(others))
    return float(np.abs(np.log(p) - np.log(q)).max())


def test_a_picked_median_loses_what_it_says() -> None:
    """By enumeration: every value that one of three parts may take instead."""
    noise = Exponential.for_loss(1, sensitivity=1)
    ends = (0, _STEPS // 3, _STEPS // 2, _STEPS)
    found = [
        _all((a, b, c), (d, b, c), noise) for a in ends for b in ends for c in ends for d in ends
    ]
    assert 0.5 < max(found) <= 1 + 1e-9
    assert _picked(Exponential(Fraction(1000)), np.array([0, 64, _STEPS])) == 64


def test_places_that_are_alike_count_each() -> None:
    """The middle against 1,024 others that are one worse: five deviations of the exact chance."""
    values, n = np.array([0, _STEPS // 2, _STEPS]), 1500
    found = [_picked(Exponential(Fraction(8)), values) for _ in range(n)]
    chance = 1 / (1 + 1024 * math.exp(-8))
    inner = found.count(_STEPS // 2)
    assert abs(inner - n * chance) < 5 * math.sqrt(n * chance * (1 - chance))
    assert min(found) < _STEPS // 4 < 3 * _STEPS // 4 < max(found)


@pytest.mark.parametrize("size", [1, 3])
def test_the_sensitivity_of_sums(size: int) -> None:
    """One part moves each of d sums by at most all steps, and the noise is charged for that."""
    made = learn.SampleAndAggregate(
        lambda rows: rows, bounds=(-1, 1), shape=(size,), epsilon=1, delta=1e-6, parts=2
    )
    low, high = (made._value((np.full(size, v),)) for v in (-math.inf, math.inf))
    moved = high - low
    assert (moved == _STEPS).all()
    noise = made._aggregator
    assert isinstance(noise, DiscreteGaussian)
    assert made.loss.charge.rho == Fraction(int((moved**2).sum())) / (2 * noise.sigma2)
    pure = learn.SampleAndAggregate(lambda r: r, bounds=(-1, 1), shape=size, epsilon=1, parts=2)
    assert pure.loss.charge.epsilon == 1 == int(moved.sum()) / pure._aggregator.scale


def test_what_a_statistic_does_raises_nothing() -> None:
    """Failing, giving NaN, words or another shape counts as the default; infinities as the ends."""
    for wrong in (math.nan, None, "x", [1, 2], [[]], {}):
        made = learn.SampleAndAggregate(
            lambda _, w=wrong: w, bounds=(0, 8), epsilon=1, parts=5, default=2
        )
        assert made._value((ROWS,)).tolist() == [_STEPS // 4]
        made.release(ROWS)
    for end, at in ((math.inf, _STEPS), (-math.inf, 0), (1e300, _STEPS)):
        made = learn.SampleAndAggregate(lambda _, e=end: e, bounds=(0, 8), epsilon=1, parts=5)
        assert made._value((ROWS,)).tolist() == [at]

    def fails(_: Any) -> float:
        raise RuntimeError("secret")

    made = learn.SampleAndAggregate(fails, bounds=(0, 8), epsilon=1, parts=5)
    assert made._value((ROWS,)).tolist() == [_STEPS // 2]
    assert 0 <= made.release([]).value <= 8
    with pytest.raises(ArgumentError, match=r"say shape=\(2,\)"):
        learn.SampleAndAggregate(lambda _: [1, 2], bounds=(0, 8), epsilon=1).try_on(ROWS)
    with pytest.raises(ArgumentError, match="statistic must give numbers"):
        learn.SampleAndAggregate(lambda _: "x", bounds=(0, 8), epsilon=1).try_on(ROWS)
    assert learn.SampleAndAggregate(np.mean, bounds=(0, 8), epsilon=1).try_on(ROWS) == 49.5


GOOD: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"bounds": (1, 0)}, "bounds"),
        ({"bounds": (0, math.nan)}, "bounds"),
        ({"bounds": 3}, "bounds"),
        ({"bounds": ([0, 0], [1, 1]), "shape": 3}, "bounds"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"parts": 1}, "parts"),
        ({"how": "mode"}, "how"),
        ({"default": 2}, "default"),
        ({"neighbours": "none"}, "neighbours"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, Any], named: str) -> None:
    """When it is made."""
    with pytest.raises(DitherError, match=named):
        learn.SampleAndAggregate(np.mean, **GOOD | change)


def test_releases_are_charged_first(tmp_path: Path) -> None:
    """Each one, and the one that does not fit reads nothing."""
    with Ledger.open(tmp_path / "a.ledger") as book:
        caps = BudgetFilter(Fraction(2), Fraction(0))
        book.ensure_account("all", caps, Promise("row", Neighbours.REPLACE))
        made = learn.SampleAndAggregate(np.mean, **GOOD, neighbours="replace", parts=3)
        made.charge_to(book, "all", unit="row")
        made.release(ROWS)
        made.release(ROWS)
        assert book.balance("all").spent.epsilon == 2
        with pytest.raises(BudgetError):
            made.release(ROWS)
    with pytest.raises(ArgumentError, match="one value for each row"):
        made.release(ROWS, [1])


@pytest.mark.heavy("test_the_sensitivity_of_sums")
def test_it_stands_the_audit_and_a_planted_bug_does_not() -> None:
    """Noise for the bounds of one part; noise for a part of them is found out."""
    for subject in learn.SampleAndAggregate.audit_subjects():
        claim = {"epsilon": 1, "delta": subject.delta, "samples": 500}
        found = audit(subject.mechanism, subject.d0, subject.d1, **claim)
        assert found.verdict is not Outcome.VIOLATED
    made = learn.SampleAndAggregate(
        lambda rows: max(rows, default=0.0), bounds=(0, 1), epsilon=6, parts=2
    )
    found = audit(
        lambda rows: float(made.release(rows).value),
        [0.0] * 4,
        [1.0, 0.0, 0.0, 0.0],
        epsilon=1,
        samples=400,
    )
    assert found.verdict is Outcome.VIOLATED
