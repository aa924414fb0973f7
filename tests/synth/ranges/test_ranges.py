"""Ranges asked of tables: answers that agree, exact errors, one charge, clear refusals."""

from __future__ import annotations

import datetime as day
import math
from fractions import Fraction as F

import numpy as np
import polars as pl
import pytest

import dither as dt
from dither.errors import ArgumentError, BoundsError, BudgetError, UnknownNameError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.privacy import Neighbours
from dither.synth.marginals._divided import noises_of
from dither.synth.ranges._plan import planned
from dither.synth.ranges._tree import RangeTree

N = 400
AGES = np.random.default_rng(3).integers(0, 100, N)
TABLE = pl.DataFrame(
    {
        "age": AGES,
        "cost": AGES * 0.5,
        "town": ["a", "b"] * (N // 2),
        "day": [day.date(2024, 1, 1) + day.timedelta(days=int(a)) for a in AGES],
        "grade": (AGES % 5).astype(np.int64),
    }
)
COLUMNS = {
    "age": {"bounds": [0, 99]},
    "cost": {"bins": [0, 10, 20, 50], "nullable": False},
    "town": {"values": ["a", "b"]},
    "day": {"bounds": [day.date(2024, 1, 1), day.date(2024, 4, 30)]},
    "grade": {"values": [3, 1, 2]},
}


@pytest.fixture
def session(tmp_path):
    """A session with a column of every kind."""
    made = {
        "budget": {"epsilon": 10**6, "delta": "1e-5", "ledger": str(tmp_path / "r.ledger")},
        "tables": {"people": {"columns": COLUMNS}},
    }
    with dt.open(made, sources={"people": TABLE}) as opened:
        yield opened


def test_every_range_is_right_where_there_is_no_noise(session) -> None:
    """Whole numbers with both ends, bins by their edges, days; and the ends of the column."""
    people = session.table("people")
    ages = people.ranges("age", epsilon=10**5).release()
    for lower, upper in ((0, 99), (18, 64), (40, 40), (99, 99)):
        wanted = int(((lower <= AGES) & (upper >= AGES)).sum())
        assert ages.count(lower, upper).estimate == pytest.approx(wanted, abs=1e-6)
    assert ages.count().estimate == pytest.approx(N)
    assert ages.count(upper=17).estimate == pytest.approx(int((AGES <= 17).sum()))
    costs = people.ranges("cost", epsilon=10**5).release()
    assert costs.count(10, 50).estimate == pytest.approx(int((AGES >= 20).sum()))
    days = people.ranges("day", epsilon=10**5).release()
    first = day.date(2024, 1, 1)
    wanted = int((AGES < 31).sum())
    assert days.count(first, day.date(2024, 1, 31)).estimate == pytest.approx(wanted)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_ranges_agree_with_one_another_and_with_the_errors_that_they_state(session, delta) -> None:
    """Neighbouring ranges add up; the variance is that of the released law; the token replays."""
    people = session.table("people")
    found = people.ranges("age", epsilon=1, delta=delta).release(token="r")
    parts = [found.count(0, 29), found.count(30, 99)]
    assert sum(p.estimate for p in parts) == pytest.approx(found.count().estimate)
    frame = found.frame
    assert frame.height == 100
    assert frame["below"][99] == pytest.approx(found.count().estimate)
    assert frame["estimate"][7] == pytest.approx(found.count(7, 7).estimate)
    again = people.ranges("age", epsilon=1, delta=delta).release(token="r")
    assert again.replayed is not None
    assert again.frame.equals(frame)
    assert dt.verify(found.certificate, session.ledger).ok
    charge = found.loss.charge
    assert charge.epsilon == 1
    law = DiscreteGaussian if delta else DiscreteLaplace
    kinds = {type(noise) for noise in found.plan.noises}
    assert kinds <= {law, DiscreteLaplace}
    if kinds == {DiscreteLaplace}:
        assert sum(1 / noise.scale for noise in found.plan.noises) == 1
        assert charge.delta == 0
    else:
        assert charge.rho == sum(1 / (2 * noise.sigma2) for noise in found.plan.noises)
        assert F(found.loss.delta(1.0).upper) <= F(delta)


@pytest.mark.parametrize("delta", [F(0), F(1, 100)])
def test_intervals_hold_the_truth_as_often_as_they_say(session, delta) -> None:
    """90 % intervals of three ranges in each of 300 releases, false alarm below 1e-5."""
    asked = session.table("people").ranges("age", epsilon=1)
    leaves = np.bincount(AGES, minlength=100)
    asking = asked._question
    plan = planned(100, F(1), delta, (asking.l1, asking.l2_squared), asking.neighbours)
    first, end = np.array([0, 13, 50]), np.array([100, 78, 51])
    width = plan.half_width(first, end, 0.9)
    variance = plan.tree.variance(first, end, plan.variances)
    truth = np.array([leaves[a:b].sum() for a, b in zip(first, end, strict=True)])
    hits, squares = np.zeros(3), np.zeros(3)
    for _ in range(300):
        noisy = [
            level + noise.draw(level.shape)
            for level, noise in zip(plan.tree.counts(leaves), plan.noises, strict=True)
        ]
        below = plan.tree.cumulative(noisy, plan.variances)
        error = below[end] - below[first] - truth
        hits += np.abs(error) <= width
        squares += error**2 / variance
    assert (hits / 300 > 0.9 - 0.087).all()
    assert (np.abs(squares / 300 - 1) < 0.8).all()


def test_all_ranges_of_1024_values_meet_their_errors(tmp_path) -> None:
    """At epsilon 1, root mean squared: 12.3 with Laplace noise; of Gaussian 4.25 deviations."""
    made = {
        "budget": {"epsilon": 10, "delta": "1e-5", "ledger": str(tmp_path / "w.ledger")},
        "tables": {"people": {"columns": {"x": {"bounds": [0, 1023]}}}},
    }
    with dt.open(made, sources={"people": pl.DataFrame({"x": [1, 2]})}) as opened:
        asked = opened.table("people").ranges("x", epsilon=1, delta=0)
        assert asked.error == pytest.approx(12.34, abs=0.02)
        assert opened.balance()[0].spent.epsilon == 0
        assert "root mean square" in str(asked.explain())
        assert (
            asked.preview() == "ranges of x, at ε = 1: 12.3, root mean square error of all ranges"
        )
    tree = RangeTree.choose(1024, "gaussian")
    bounds = (1, 1)
    noises, loss = noises_of(
        tree.shares, "gaussian", F(1), F(1, 10**6), bounds, Neighbours.ADD_REMOVE
    )
    error = math.sqrt(tree.mean_variance([noise.variance for noise in noises]))
    assert error * math.sqrt(2 * loss.charge.rho) == pytest.approx(4.248, abs=0.001)
    assert F(loss.delta(1.0).upper) <= F(1, 10**6)


REFUSED = [
    (("town",), {}, BoundsError, "no order"),
    (("grade",), {}, BoundsError, "rising order"),
    (("agee",), {}, UnknownNameError, "age"),
    ((["age"],), {}, ArgumentError, "name of a column"),
    (("age",), {"bins": 0}, ArgumentError, "bins"),
    (("age",), {"epsilon": 0}, ArgumentError, "epsilon"),
    (("age",), {"epsilon": "1e-20"}, BoundsError, "epsilon is too small"),
]


@pytest.mark.parametrize(("given", "named", "kind", "words"), REFUSED)
def test_what_cannot_be_asked_is_refused_before_it_is_charged(
    session, given, named, kind, words
) -> None:
    """With what would do; no account changes."""
    with pytest.raises(kind, match=words):
        session.table("people").ranges(*given, **({"epsilon": 1} | named))
    assert session.balance()[0].spent.epsilon == 0


def test_ends_that_are_no_edges_are_refused(session) -> None:
    """With the nearest one, or what the ends of the column are."""
    people = session.table("people")
    costs = people.ranges("cost", epsilon=1).release()
    with pytest.raises(ArgumentError, match="nearest is 10"):
        costs.count(9, 50)
    ages = people.ranges("age", epsilon=1).release()
    with pytest.raises(ArgumentError, match="0 to 99"):
        ages.count(0, 100)
    with pytest.raises(ArgumentError, match="above lower"):
        ages.count(9, 3)
    with pytest.raises(AttributeError, match="nothing has been released"):
        _ = people.ranges("age", epsilon=1).frame
    whole = people.ranges("age", epsilon=999_000)
    whole.release()
    with pytest.raises(BudgetError):
        whole.release()


def test_a_picture_is_drawn(session, tmp_path) -> None:
    """Of counts and of running counts."""
    path = tmp_path / "r.png"
    found = session.table("people").ranges("age", epsilon=1).release()
    found.plot(path)
    assert path.stat().st_size > 10_000
    assert "Root mean squared" in found.summary()
