"""A poll of teachers: how they are trained and heard, and what was asked and spent so far."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._silence import silence
from dither.errors import ArgumentError, BudgetError
from dither.learn._columns import places_in
from dither.learn._spending import Spending, digest_of
from dither.learn.votes._ballot import PollPlan
from dither.mechanisms._base import Run
from dither.privacy import Loss, Neighbours

__all__ = ["Poll", "as_table", "key_of", "maker_of", "tallied", "trained", "voted"]

Integers = npt.NDArray[np.int64]


class Poll(Run):
    """What was asked so far. It may go on in one place only: a copy would spend all once more."""

    __slots__ = ("_known", "_spending", "answered", "asked", "margins", "neighbours", "plan")

    def __init__(self, plan: PollPlan, neighbours: Neighbours, spending: Spending | None) -> None:
        super().__init__()
        self.plan, self.neighbours, self._spending = plan, neighbours, spending
        self._known: dict[str, int | None] = {}
        self.answered = self.asked = 0
        self.margins: list[int] = []

    def __repr__(self) -> str:
        plan = self.plan
        return (
            f"<Poll: {self.answered:,} of {plan.answers:,} answers, {self.asked:,} of "
            f"{plan.queries:,} questions>"
        )

    def knows(self, key: str) -> bool:
        """Whether this question was asked before."""
        return key in self._known

    def ask(self, key: str, counts: list[int] | None) -> int | None:
        """The place of the label that is named, or None where the question is refused."""
        self._check_process()
        with self._lock:
            if key in self._known:
                return self._known[key]
            assert counts is not None
            plan, ballot = self.plan, self.plan.ballot
            if self.answered >= plan.answers or self.asked >= plan.queries:
                spent = "answers" if self.answered >= plan.answers else "questions"
                raise BudgetError(
                    f"all {spent} of the plan are spent ({plan.answers:,} answers, "
                    f"{plan.queries:,} questions); what was answered may be asked again, free. "
                    "More needs new votes, at their cost"
                )
            # Counted before anything is drawn: what fails in the middle stays spent.
            self.asked += 1
            checked = ballot.check_loss(self.neighbours)
            passed = checked is None or self._kept(
                checked, lambda: int(ballot.passes(counts)), "check", key
            )
            place = None
            if passed:
                self.answered += 1
                first, second = sorted(counts)[-1:-3:-1]
                self.margins.append(first - second)
                loss = ballot.answer_loss(self.neighbours)
                place = self._kept(loss, lambda: ballot.pick(counts), "answer", key)
            self._known[key] = place
            return place

    def _kept(self, loss: Loss, answer: Callable[[], int], what: str, key: str) -> int:
        if self._spending is None:
            return answer()
        said = (tuple(self.plan.ballot.parameters().items()), key)
        return int(self._spending.kept(loss, lambda: str(answer()), what, *said))


def maker_of(estimator: Any) -> Callable[[], Any]:
    """What makes a teacher: a function or class, or copies of a model.

    Raises
    ------
    ArgumentError
        It is neither.
    """
    if estimator is None:
        raise ArgumentError(
            "estimator must be a model to train, such as LogisticRegression(); with trained "
            "models call with_teachers, with votes answer_votes"
        )
    if inspect.isclass(estimator) or not hasattr(estimator, "fit"):
        if not callable(estimator):
            raise ArgumentError("estimator must have fit and predict, or make what has")
        if not inspect.isclass(estimator) and estimator() is estimator():
            raise ArgumentError(
                "estimator must make another model each time: teachers that are one and the same "
                "model were all trained on the rows of the last"
            )
        return estimator  # type: ignore[no-any-return]
    return lambda: copy.deepcopy(estimator)


def trained(made: Callable[[], Any], X: Any, y: Any) -> Any:
    """A teacher, or None where its rows were not enough for one; nothing is said of why."""
    try:
        with silence():
            teacher = made()
            teacher.fit(X, y)
    except Exception:
        return None
    return teacher


def voted(teacher: Any, rows: Any, size: int, labels: Sequence[Any]) -> Integers:
    """The places of a teacher's labels; the last, for none, where it fails or gives another."""
    try:
        with silence():
            found = places_in(labels, np.asarray(teacher.predict(rows)).reshape(-1))
    except Exception:
        found = np.empty(0, np.int64)
    return found if len(found) == size else np.full(size, len(labels), np.int64)


def tallied(votes: Integers, labels: int, default: int | None) -> list[list[int]]:
    """Of each question how many vote for each label, from places of labels, shape (teachers, n).

    A vote for none counts for the default, or not at all.
    """
    counts = np.stack([(votes == k).sum(axis=0) for k in range(labels + 1)], axis=1)
    if default is not None:
        counts[:, default] += counts[:, labels]
    found: list[list[int]] = counts[:, :labels].tolist()
    return found


def as_table(X: Any) -> Any:
    """A list of rows as an array; whatever else as it is."""
    if not isinstance(X, list | tuple):
        return X
    try:
        return np.asarray(X)
    except ValueError:
        return np.fromiter(X, dtype=object, count=len(X))


def key_of(row: Any) -> str:
    """A digest of one row's values, alike for the same numbers and words."""
    array = np.asarray(row.to_numpy() if hasattr(row, "to_numpy") else row)
    if array.dtype.kind in "fb" or (array.dtype.kind in "iu" and (abs(array) < 2**53).all()):
        return digest_of(("numbers", array.astype(np.float64).tobytes()))
    return digest_of(("values", [_value(v) for v in array.reshape(-1).tolist()]))


def _value(value: Any) -> Any:
    if isinstance(value, str | bytes) or value is None:
        return value
    if isinstance(value, bool | int | float):
        return np.float64(value).tobytes() if abs(value) < 2**53 else ("large", str(value))
    return (type(value).__name__, str(value))
