"""Private predictions: every small table of votes by enumeration, budgets, and hostile teachers."""

from __future__ import annotations

import copy
import itertools
import logging
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from dither import learn, privacy
from dither.accounting import BudgetFilter
from dither.errors import ArgumentError, BudgetError, DitherError, TokenError
from dither.lab.audit import Outcome, audit
from dither.learn.votes._ballot import METHODS, TeacherVote, plan_of
from dither.learn.votes._data_dependent import (
    UNIT,
    PrivateCost,
    costs_by_margin,
    falls,
    miss_bounds,
)
from dither.learn.votes._partition import parts_of
from dither.ledger import Ledger
from dither.mechanisms import DiscreteGaussian, Exponential, NoisyMax, PermuteAndFlip
from dither.privacy import Charge, Neighbours, Promise

TEACHERS = 3
REACH = 60

Law = np.ndarray
Counts = tuple[int, ...]


def _gaussian(sigma2: float) -> Law:
    z = np.arange(-REACH, REACH + 1)
    masses = np.exp(-(z**2) / (2 * sigma2))
    return masses / masses.sum()


def _laplace(rate: float) -> Law:
    z = np.arange(-REACH, REACH + 1)
    masses = np.exp(-np.abs(z) * rate)
    return masses / masses.sum()


def _largest(noise: Law, counts: Counts) -> Law:
    """The law of the largest of three noisy counts, ties at random: E[1/(1 + ties)] by a sum."""
    grid = np.arange(-REACH, REACH + TEACHERS + 1)
    at = np.array([[_at(noise, int(v) - n) for v in grid] for n in counts])
    below = np.cumsum(at, axis=1) - at
    found = []
    for i in range(3):
        j, k = (m for m in range(3) if m != i)
        even = below[j] * below[k] + (below[j] * at[k] + at[j] * below[k]) / 2 + at[j] * at[k] / 3
        found.append(float((at[i] * even).sum()))
    return np.array(found)


def _at(noise: Law, z: int) -> float:
    return float(noise[z + REACH]) if -REACH <= z <= REACH else 0.0


def _flipped(rate: float, counts: Counts) -> Law:
    found = np.zeros(3)
    coins = [math.exp(-rate * (max(counts) - n)) for n in counts]
    for order in itertools.permutations(range(3)):
        left = 1 / 6
        for i in order:
            found[i] += left * coins[i]
            left *= 1 - coins[i]
    return found


def law(ballot: TeacherVote, counts: Counts) -> Law:
    """The exact law of an answer: refused, or one of three labels."""
    answer = ballot.answer
    if isinstance(answer, DiscreteGaussian):
        picked = _largest(_gaussian(float(answer.sigma2)), counts)
    elif isinstance(answer, NoisyMax):
        picked = _largest(_laplace(float(answer.rate)), counts)
    elif isinstance(answer, PermuteAndFlip):
        picked = _flipped(float(answer.rate), counts)
    else:
        assert isinstance(answer, Exponential)
        shares = np.exp(float(answer.rate) * np.array(counts))
        picked = shares / shares.sum()
    passed = 1.0
    if ballot.check is not None and ballot.threshold is not None:
        noise = _gaussian(float(ballot.check.sigma2))
        passed = float(noise[max(0, ballot.threshold - max(counts) + REACH) :].sum())
    return np.array([1 - passed, *(passed * picked)])


def neighbours() -> Iterator[tuple[Counts, Counts]]:
    """All tables of at most three votes for three labels, and all that one teacher can make."""
    for counts in itertools.product(range(TEACHERS + 1), repeat=3):
        if sum(counts) > TEACHERS:
            continue
        for a, b in itertools.product(range(4), repeat=2):
            moved = [*counts, TEACHERS - sum(counts)]
            moved[a], moved[b] = moved[a] - 1, moved[b] + 1
            if a != b and moved[a] >= 0:
                yield counts, tuple(moved[:3])


def divergence(p: Law, q: Law, order: float) -> float:
    """Rényi's, of laws that are positive wherever they are compared."""
    kept = p > 1e-300
    logs = order * np.log(p[kept]) + (1 - order) * np.log(q[kept])
    return float(np.logaddexp.reduce(logs)) / (order - 1)


def _ballots(sigma2: int = 3) -> dict[str, TeacherVote]:
    rate = Fraction(1, 3)
    return {
        "confident": TeacherVote(
            DiscreteGaussian(Fraction(sigma2)), DiscreteGaussian(Fraction(sigma2)), 2
        ),
        "gaussian": TeacherVote(DiscreteGaussian(Fraction(sigma2))),
        "permute-and-flip": TeacherVote(PermuteAndFlip(rate)),
        "exponential": TeacherVote(Exponential(rate)),
        "laplace": TeacherVote(NoisyMax(rate, "laplace")),
    }


@pytest.mark.parametrize("method", METHODS)
def test_every_small_table_of_votes(method: str) -> None:
    """The exact laws of neighbours keep the claim: at all orders, and as epsilon and delta."""
    ballot = _ballots()[method]
    loss, check = ballot.answer_loss(), ballot.check_loss()
    loss = loss if check is None else loss + check
    orders = {order: loss.renyi(order).upper for order in (1.2, 2.0, 5.0, 20.0)}
    deltas = {epsilon: loss.delta(epsilon).upper for epsilon in (0.0, 0.3, 0.6, 1.0)}
    laws: dict[Counts, Law] = {}
    for pair in neighbours():
        p, q = (laws.setdefault(c, law(ballot, c)) for c in pair)
        for order, most in orders.items():
            assert divergence(p, q, order) <= most + 1e-9
        for epsilon, most in deltas.items():
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= most + 1e-9
        if loss.charge.epsilon is not None:
            assert (p <= q * math.exp(float(loss.charge.epsilon)) + 1e-12).all()


@pytest.mark.parametrize("method", ["gaussian", "permute-and-flip", "exponential"])
def test_the_sensitivity_of_one_count_is_refuted(method: str) -> None:
    """A claim that a vote changes one count, not two, is broken by some tables."""
    ballot = _ballots()[method]
    if isinstance(ballot.answer, DiscreteGaussian):
        claim = ballot.answer.loss(l2_squared=1, coordinates=1)
    else:
        claim = ballot.answer.loss(sensitivity=1, monotone=True)
    most = {e: claim.delta(e).upper for e in (0.0, 0.2, 0.4)}
    broken = any(
        np.maximum(law(ballot, a) - math.exp(e) * law(ballot, b), 0).sum() > delta + 1e-6
        for a, b in neighbours()
        for e, delta in most.items()
    )
    assert broken


@pytest.mark.parametrize("method", METHODS)
def test_draws_have_the_law(method: str) -> None:
    """Chi-square on four outcomes: a false alarm in a million runs."""
    ballot, counts, n = _ballots()[method], (2, 1, 0), 2000
    drawn = [ballot.draw(counts) for _ in range(n)]
    seen = np.array([drawn.count(None), *(drawn.count(k) for k in range(3))])
    expected = n * law(ballot, counts)
    kept = expected > 0
    assert (seen[~kept] == 0).all()
    assert ((seen - expected)[kept] ** 2 / expected[kept]).sum() < 31.9


def test_plans_cost_what_was_asked() -> None:
    """The composed loss keeps the promise, nearly uses it up, and its rho is that of the noise."""
    for method in METHODS:
        plan = plan_of(method, Fraction(1), Fraction(1, 10**5), 10, 20, 30, Fraction(1, 4))
        loss, charge = plan.loss(), plan.loss().charge
        assert (charge.epsilon, charge.delta) == (1, Fraction(1, 10**5))
        assert 0.85 < loss.epsilon(1e-5).upper <= 1
        each = 10 * plan.ballot.answer_loss().charge
        check = plan.ballot.check_loss()
        assert charge.rho == (each if check is None else each + 20 * check.charge).rho
    pure = plan_of("laplace", Fraction(1), Fraction(0), 10, 10, 30, Fraction(1, 4))
    assert pure.ballot.answer_loss().charge.epsilon == Fraction(1, 10)
    with pytest.raises(ArgumentError, match="delta must be above 0"):
        plan_of("gaussian", Fraction(1), Fraction(0), 10, 10, 30, Fraction(1, 4))


def test_a_row_changes_one_teacher() -> None:
    """Parts by coins keep everybody else in place; parts by position do not."""
    assert parts_of(0, 5).tolist() == []
    parts = parts_of(1000, 7, [i // 10 for i in range(1000)])
    assert all(len(set(parts[i : i + 10])) == 1 for i in range(0, 1000, 10))
    assert set(parts) == set(range(7))
    odd = parts_of(6, 1000, [math.nan, [1], "a", "a", None, math.nan])
    assert odd[2] == odd[3]
    assert odd[0] == odd[1] == odd[4] == odd[5]
    with pytest.raises(ArgumentError, match="groups"):
        parts_of(3, 2, ["a"])

    def changed(of: Callable[[int], np.ndarray]) -> int:
        rows = np.arange(20)
        before = [set(rows[of(20) == k]) for k in range(5)]
        after = [set(rows[1:][of(19) == k]) for k in range(5)]
        return sum(a != b for a, b in zip(before, after, strict=True))

    coins = parts_of(20, 5)
    assert changed(lambda n: coins[20 - n :]) == 1
    assert changed(lambda n: np.arange(n) * 5 // n) > 1


class Cut:
    """A teacher that says whether a number is above the mean of its rows."""

    def fit(self, X: Any, y: Any) -> None:
        """The mean."""
        self.mean = float(np.asarray(X)[:, 0].mean())

    def predict(self, X: Any) -> np.ndarray:
        """0 or 1."""
        return (np.asarray(X)[:, 0] > self.mean).astype(int)


ROWS = np.arange(6000)[:, None] % 100
TRUTH = (ROWS[:, 0] >= 50).astype(int)
GOOD: dict[str, Any] = {
    "epsilon": 2,
    "delta": 1e-6,
    "classes": [0, 1],
    "teachers": 60,
    "answers": 6,
    "queries": 8,
}


def test_it_answers_until_it_is_spent() -> None:
    """Answers, free repetitions, and a refusal that leaves what was answered."""
    votes = learn.Votes(Cut(), **GOOD).fit(ROWS, TRUTH)
    asked = np.array([[1], [98], [2], [97]])
    first = votes.predict(asked)
    assert all(
        label in (expected, None) for label, expected in zip(first, [0, 1, 0, 1], strict=True)
    )
    left = votes.answers_left, votes.queries_left
    assert votes.predict(asked).tolist() == first.tolist()
    assert votes.predict(asked[::-1].astype(float)).tolist() == first.tolist()[::-1]
    assert (votes.answers_left, votes.queries_left) == left == (votes.answers_left, 4)
    with pytest.raises(BudgetError, match="are spent"):
        votes.predict(np.arange(20, 40)[:, None])
    assert votes.predict(asked).tolist() == first.tolist()
    assert 0 in (votes.answers_left, votes.queries_left)
    assert votes.loss_.charge.epsilon == 2
    assert "may be published" in votes.summary()
    frame = pl.DataFrame({"x": ROWS[:, 0]})
    again = learn.Votes(Cut, **GOOD).fit(frame, pl.Series(TRUTH), groups=ROWS[:, 0])
    assert set(again.predict(frame[:2])) <= {0, 1, None}


def test_a_fitted_object_cannot_be_copied() -> None:
    """A copy would answer everything once more; a clone begins anew."""
    votes = learn.Votes(Cut(), **GOOD).fit(ROWS, TRUTH)
    for attempt in (copy.deepcopy, pickle.dumps):
        with pytest.raises(copy.Error):
            attempt(votes)
    from sklearn.base import clone

    assert not clone(votes).__sklearn_is_fitted__()


class Odd:
    """A teacher that fails in some way."""

    def __init__(self, how: str) -> None:
        self.how = how

    def predict(self, X: Any) -> Any:
        """Rubbish."""
        if self.how == "raise":
            raise RuntimeError("secret")
        if self.how == "exit":
            return None
        rubbish = {"nan": math.nan, "class": 7, "list": [1], "text": "0"}
        if self.how == "length":
            return np.zeros(len(X) + 1)
        return np.fromiter([rubbish[self.how]] * len(X), object, len(X))


def test_what_teachers_say_raises_nothing() -> None:
    """A vote for no declared class counts for the default, or for nobody."""
    kinds = ["raise", "exit", "nan", "class", "list", "text", "length"]
    for default, named in ((None, None), (1, 1)):
        votes = learn.Votes(**GOOD | {"teachers": 70, "epsilon": 50, "default": default})
        votes.with_teachers([Odd(kinds[i % 7]) for i in range(70)])
        counts = votes._counted(np.zeros((2, 1)), np.arange(2))
        assert counts == ([[0, 0]] * 2 if default is None else [[0, 70]] * 2)
        assert votes.predict(np.zeros((1, 1))).tolist() == [named]

    class Never(Cut):
        def fit(self, X: Any, y: Any) -> None:
            raise ValueError("secret")

    votes = learn.Votes(Never(), **GOOD).fit(ROWS, TRUTH)
    assert votes.predict([[3]]).tolist() in ([None], [0], [1])
    with pytest.raises(ValueError, match="secret"):
        votes.try_on(ROWS, TRUTH)
    assert learn.Votes(Cut, **GOOD).try_on(ROWS, TRUTH) == 1


def test_votes_from_elsewhere() -> None:
    """A table of labels, one a teacher."""
    votes = learn.Votes(**GOOD | {"epsilon": 50, "classes": ["no", "yes"]})
    table = [["yes"] * 59 + [None], ["no"] * 60]
    assert votes.answer_votes(table).tolist() == ["yes", "no"]
    assert votes.answers_left == 4
    for wrong in ([["yes"] * 59], [], 3, [3]):
        with pytest.raises(ArgumentError, match="votes must be a table of 60"):
            votes.answer_votes(wrong)
    with pytest.raises(ArgumentError, match="no teachers"):
        votes.predict([[1]])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0}, "delta must be above 0"),
        ({"classes": [1]}, "classes"),
        ({"teachers": 2}, "teachers"),
        ({"answers": 0}, "answers"),
        ({"queries": 5}, "queries"),
        ({"threshold": 61}, "threshold must be at most 60, the teachers"),
        ({"share": 1}, "share"),
        ({"default": 2}, "default"),
        ({"method": "max"}, "method"),
        ({"method": "laplace"}, "queries and threshold"),
        ({"neighbours": "some"}, "neighbours"),
    ],
)
def test_refusals_name_the_argument(change: dict[str, Any], named: str) -> None:
    """Before any row is read."""
    with pytest.raises(DitherError, match=named):
        learn.Votes(Cut, **GOOD | change).fit(ROWS, TRUTH)


def test_a_preview_says_that_nothing_will_be_heard() -> None:
    """At too small an epsilon; and how many answers to expect otherwise."""
    poor = learn.Votes(Cut, **GOOD | {"epsilon": 0.01}).preview()
    assert "take more teachers" in str(poor)
    good = learn.Votes(Cut, **GOOD | {"teachers": 1000}).preview()
    assert "take more teachers" not in str(good)
    assert 5.9 < good.expected_answers(1.0) <= 6
    assert good.chances(1.0)[1] > 0.99
    assert good.plot() is not None


def _account(folder: Path, epsilon: int = 3) -> Ledger:
    book = Ledger.open(folder / "a.ledger")
    book.ensure_account("all", BudgetFilter(Fraction(epsilon), Fraction(1, 10**5)), Promise("row"))
    return book


def test_the_whole_is_reserved(tmp_path: Path) -> None:
    """One charge when the teachers are made; a second fit under the same token is refused."""
    with _account(tmp_path) as book:
        votes = learn.Votes(Cut, **GOOD).charge_to(book, "all", unit="row", token="a")
        votes.fit(ROWS, TRUTH).predict([[3], [4]])
        spent = book.balance("all").spent
        assert (spent.epsilon, len(book.entries("all"))) == (2, 2)
        with pytest.raises(TokenError):
            votes.fit(ROWS, TRUTH)

        class Unread:
            shape = (6000, 1)

            def __getitem__(self, places: Any) -> Any:
                raise AssertionError("a row was read")

        more = learn.Votes(Cut, **GOOD | {"epsilon": 30}).charge_to(book, "all", unit="row")
        with pytest.raises(BudgetError, match="cannot bear"):
            more.fit(Unread(), TRUTH)
        assert book.balance("all").spent == spent


def test_each_answer_is_charged_before_it_leaves(tmp_path: Path) -> None:
    """By itself, once: the same question is free, in this process and in the next."""
    with _account(tmp_path) as book:
        votes = learn.Votes(Cut, **GOOD | {"teachers": 100}).charge_to(
            book, "all", unit="row", token="a", reserve=False
        )
        votes.fit(ROWS, TRUTH)
        assert book.balance("all").spent.rho == 0
        first = votes.predict([[1], [98]]).tolist()
        ballot = votes.preview().ballot
        answers = sum(label is not None for label in first)
        check = ballot.check_loss()
        assert check is not None
        whole = 2 * check.charge + answers * ballot.answer_loss().charge
        spent = book.balance("all").spent.rho
        assert spent is not None
        assert whole.rho is not None
        assert whole.rho <= spent <= whole.rho + Fraction(4, 10**18)
        again = learn.Votes(Cut, **GOOD | {"teachers": 100}).charge_to(
            book, "all", unit="row", token="a", reserve=False
        )
        assert again.fit(ROWS, TRUTH).predict([[98], [1]]).tolist() == first[::-1]
        assert book.balance("all").spent.rho == spent
    small = Ledger.open(tmp_path / "b.ledger")
    caps = BudgetFilter(Fraction(1, 1000), Fraction(1, 10**9))
    small.ensure_account("all", caps, Promise("row"))
    votes = learn.Votes(Cut, **GOOD).charge_to(small, "all", unit="row", reserve=False)
    votes.fit(ROWS, TRUTH)
    with pytest.raises(BudgetError, match="cannot bear"):
        votes.predict([[1]])


def test_votes_from_elsewhere_are_never_taken_for_others(tmp_path: Path) -> None:
    """Under the same name, in another process, other votes get an answer of their own."""
    where = {"unit": "row", "token": "a", "reserve": False}
    for label in (0, 1):
        with _account(tmp_path, 100) as book:
            votes = learn.Votes(**GOOD | {"epsilon": 50}).charge_to(book, "all", **where)
            assert votes.answer_votes([[label] * 60]).tolist() == [label]


def test_what_was_charged_and_never_answered_is_charged_again(tmp_path: Path) -> None:
    """A process that ends between a charge and its answer."""
    with _account(tmp_path) as book:
        made = learn.Votes(Cut, **GOOD).charge_to(book, "all", unit="row", token="a", reserve=False)
        made.fit(ROWS, TRUTH)
        spending = made._spending
        loss = made.preview().ballot.answer_loss()

        def killed() -> str:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            spending.kept(loss, killed, "answer", "k")
        assert spending.kept(loss, lambda: "1", "answer", "k") == "1"
        assert spending.kept(loss, lambda: "0", "answer", "k") == "1"
        assert len([e for e in book.entries("all") if e.kind == "charge"]) == 2


def _private(**change: Any) -> tuple[learn.Votes, PrivateCost]:
    votes = learn.Votes(Cut, **GOOD | {"teachers": 200} | change).fit(ROWS, TRUTH)
    votes.predict([[1], [98], [3]])
    return votes, votes.data_dependent()


def test_the_data_dependent_cost_is_kept_apart(tmp_path: Path) -> None:
    """It says that it is private, and nothing that is published or charged takes it."""
    votes, cost = _private()
    for text in (repr(cost), str(cost), f"{cost}"):
        assert "PRIVATE" in text
        assert "do not publish" in text
    assert 0 < cost.secret_epsilon(1e-6) < 2
    assert not hasattr(cost, "charge")
    assert not isinstance(cost, privacy.Loss)
    with pytest.raises((TypeError, ArgumentError)):
        votes.loss_ + cost  # type: ignore[operator]
    with pytest.raises(ArgumentError):
        votes.loss_.with_charge(cost)  # type: ignore[arg-type]
    assert str(cost.secret_epsilon(1e-6))[:6] not in votes.summary() + repr(votes.loss_)
    with _account(tmp_path) as book, pytest.raises((TypeError, DitherError, AttributeError)):
        book.charge(["all"], cost, token="t", request="ab" * 32, note={})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="data_dependent needs"):
        _private(method="laplace", queries=None)[0].data_dependent()


def test_a_data_dependent_charge_would_be_refuted() -> None:
    """What clear votes cost is less than what even ones lose: as a charge it would be wrong."""
    ballot = TeacherVote(DiscreteGaussian(Fraction(1)))
    clear = float(costs_by_margin(4, Fraction(1), 20, 3)[20] * UNIT)
    p, q = law(ballot, (2, 1, 0)), law(ballot, (1, 2, 0))
    assert divergence(p, q, 4.0) > 2 * clear
    claim = privacy.renyi({4.0: clear})
    assert np.maximum(p - q, 0).sum() > claim.delta(0.0).upper


@pytest.mark.parametrize("sigma2", [1, 3])
def test_the_data_dependent_bound_by_enumeration(sigma2: int) -> None:
    """Of all votes of twelve teachers: no neighbour lies further off than their lead says."""
    ballot, teachers = TeacherVote(DiscreteGaussian(Fraction(sigma2))), 12
    miss = miss_bounds(Fraction(sigma2), teachers, 3)
    laws: dict[Counts, Law] = {}

    def known(counts: Counts) -> Law:
        if counts not in laws:
            shift = min(counts)
            laws[counts] = _largest_wide(_gaussian(float(sigma2)), counts) if shift >= 0 else None
        return laws[counts]

    del ballot
    below = 0
    for counts in itertools.product(range(teachers + 1), repeat=3):
        if sum(counts) != teachers or list(counts) != sorted(counts, reverse=True):
            continue
        p, lead = known(counts), counts[0] - counts[1]
        assert 1 - p[0] <= miss[lead] + 1e-12
        for a, b in itertools.permutations(range(3), 2):
            moved = list(counts)
            moved[a], moved[b] = moved[a] - 1, moved[b] + 1
            if moved[a] < 0:
                continue
            q = known(tuple(moved))
            for order in (2, 8):
                most = float(costs_by_margin(order, Fraction(sigma2), teachers, 3)[lead] * UNIT)
                assert divergence(p, q, order) <= most + 1e-9
                below += most < order / sigma2 / 2
    assert below > 5


def _largest_wide(noise: Law, counts: Counts) -> Law:
    grid = np.arange(-REACH, REACH + 20)
    at = np.array([[_at(noise, int(v) - n) for v in grid] for n in counts])
    below = np.cumsum(at, axis=1) - at
    found = []
    for i in range(3):
        j, k = (m for m in range(3) if m != i)
        even = below[j] * below[k] + (below[j] * at[k] + at[j] * below[k]) / 2 + at[j] * at[k] / 3
        found.append(float((at[i] * even).sum()))
    return np.array(found)


def test_the_smooth_sensitivity_holds_for_every_neighbour() -> None:
    """All leads of two answers: the sum moves by at most S, and S by at most the falloff."""
    teachers, sigma2, falloff = 9, Fraction(2), Fraction(9, 10)
    costs = costs_by_margin(4, sigma2, teachers, 2)
    assert (np.diff(costs) <= 0).all()
    assert (falls(costs)[0] > 0).any()

    def smooth(leads: Counts) -> Fraction:
        ballot = TeacherVote(DiscreteGaussian(sigma2))
        cost = PrivateCost(ballot, teachers, 2, leads, 2, Neighbours.ADD_REMOVE, None)
        return cost._smooth(costs, falloff)

    known = {pair: smooth(pair) for pair in itertools.product(range(teachers + 1), repeat=2)}
    used = Fraction(0)
    for (a, b), (c, d) in itertools.product(known, repeat=2):
        if max(abs(a - c), abs(b - d)) > 2:
            continue
        moved = abs(int(costs[a] + costs[b]) - int(costs[c] + costs[d]))
        assert moved <= min(known[a, b], known[c, d])
        assert known[a, b] * falloff <= known[c, d]
        used = max(used, Fraction(moved) / known[a, b])
    assert used > Fraction(1, 2)


def test_the_release_of_the_cost_is_charged(tmp_path: Path) -> None:
    """It has noise and a price, and says that it is an estimate."""
    with _account(tmp_path) as book:
        votes = learn.Votes(Cut, **GOOD | {"teachers": 200}).charge_to(book, "all", unit="row")
        votes.fit(ROWS, TRUTH).predict([[1], [98]])
        cost = votes.data_dependent()
        before = book.balance("all").spent.epsilon
        told = cost.release(epsilon=0.5, delta=1e-7)
        spent = book.balance("all").spent.epsilon
        assert before is not None
        assert spent is not None
        assert spent - before == Fraction(1, 2)
        with pytest.raises(BudgetError):
            votes.data_dependent().release(epsilon=5, delta=1e-7, order=4)
    assert told.loss.charge.epsilon == Fraction(1, 2)
    assert "estimate, not a guarantee" in repr(told)
    assert told.estimate(1e-6) > 0
    several = {_private()[1].release(epsilon=1, delta=1e-6).divergence for _ in range(4)}
    assert len(several) > 1
    with pytest.raises(ArgumentError, match="order"):
        cost.release(epsilon=1, delta=1e-6, order=1)


def test_votes_stand_the_audit_and_planted_bugs_do_not() -> None:
    """The claims hold for answers as drawn; a mechanism at twice the rate breaks its claim."""
    for subject in TeacherVote.audit_subjects():
        claim = {"epsilon": subject.epsilon, "delta": subject.delta, "samples": 300}
        found = audit(subject.mechanism, subject.d0, subject.d1, **claim)
        assert found.verdict is not Outcome.VIOLATED
    wrong = TeacherVote(PermuteAndFlip(Fraction(1)))
    found = audit(wrong.draw, (2, 1, 0), (1, 2, 0), epsilon=1, samples=1500)
    assert found.verdict is Outcome.VIOLATED


def test_charges_of_either_relation() -> None:
    """The same amounts, stated for the neighbours that were named."""
    for relation in Neighbours.of_tables():
        votes = learn.Votes(**GOOD, neighbours=relation)
        votes.answer_votes([[0] * 60])
        assert votes.loss_.neighbours is relation
        assert votes.loss_.charge.amounts == Charge(2, Fraction(1, 10**6), votes.loss_.charge.rho)


class Talkative:
    """A teacher that says what it sees."""

    def fit(self, X: Any, y: Any) -> None:
        """Print, warn and log a row."""
        print("a row:", X[0])
        warnings.warn(f"a row: {X[0]}", stacklevel=1)
        logging.getLogger("teacher").error("a row: %s", X[0])

    def predict(self, X: Any) -> Any:
        """As it learned."""
        warnings.warn("a row is unlike the others", stacklevel=1)
        return np.zeros(len(X), int)


def test_nothing_that_teachers_say_is_shown(
    capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    """What models, statistics and runs print, warn of or log may tell of a row."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        votes = learn.Votes(Talkative, **GOOD)
        votes.fit(ROWS, TRUTH).predict(ROWS[:2])
    assert not [w for w in warned if "row" in str(w.message)]
    assert capsys.readouterr() == ("", "")
    assert not caplog.records
