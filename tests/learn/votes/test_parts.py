"""One row changes one part: whatever the code does that is called on each of them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from dither import learn
from dither.errors import ArgumentError
from dither.learn.votes import _aggregate, _partition, _votes
from dither.learn.votes._partition import each_anew

PARTS = np.arange(40) % 5
QUESTIONS = np.linspace(0, 1, 20)[:, None]


class Scales:
    """Scales its questions in place, as a pipeline whose first step has ``copy=False``."""

    def fit(self, X: Any, y: Any) -> None:
        """Learn the largest."""
        self.largest = X.max()

    def predict(self, X: Any) -> Any:
        """Whether they are above its half."""
        X /= self.largest
        return (X[:, 0] > 0.5).astype(int)


def counts_of(X: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """How many of five teachers vote for each label, of each question."""
    monkeypatch.setattr(_votes, "parts_of", lambda rows, parts, groups=None: PARTS[:rows])
    votes = learn.Votes(Scales, epsilon=1, delta=1e-6, classes=[0, 1], teachers=5, answers=20)
    votes.fit(X, np.zeros(len(X)))
    return np.array(votes._counted(QUESTIONS.copy(), np.arange(20)))


def test_a_teacher_does_not_change_the_questions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row moves one vote, though its teacher writes into what it is asked."""
    # All teachers scale by nearly 1; the one whose row is replaced by far more.
    X = np.linspace(0.1, 1, 40)[:, None]
    other = X.copy()
    other[0] = 1e6
    moved = np.abs(counts_of(X, monkeypatch) - counts_of(other, monkeypatch))
    assert moved.max() == 1
    assert QUESTIONS[-1] == 1


def test_teachers_are_not_one_model() -> None:
    """All would have seen the rows of the last part alone, and one row would move every vote."""
    one = Scales()
    votes = learn.Votes(lambda: one, epsilon=1, delta=1e-6, classes=[0, 1], teachers=5, answers=20)
    with pytest.raises(ArgumentError, match="another model each time"):
        votes.fit(np.ones((40, 1)), np.zeros(40))


def drawing(rows: Any) -> float:
    """A statistic that draws as often as it has rows, as a bootstrap does."""
    return float(np.mean([random.random() + np.random.random() for _ in rows])) / 2  # noqa: NPY002


def values_of(rows: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Of five parts, of which the first has the last row, under a seed that everybody knows."""
    parts = np.append(PARTS, 0)[:rows]
    seeds = itertools.count()
    monkeypatch.setattr(_aggregate, "parts_of", lambda rows, count, groups=None: parts)
    monkeypatch.setattr(_partition.noise, "below", lambda n, size: np.array([next(seeds)]))
    made = learn.SampleAndAggregate(drawing, bounds=(0, 1), epsilon=1, parts=5)
    found = []
    monkeypatch.setattr(made, "_aggregated", found.append)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    made.release(np.zeros(rows))
    return found[0][:, 0]


def test_parts_do_not_meet_in_shared_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn for one part shifts nothing of the others, nor of what comes later."""
    moved = values_of(40, monkeypatch) != values_of(41, monkeypatch)
    assert moved.tolist() == [True, False, False, False, False]
    after = random.random(), float(np.random.random())  # noqa: NPY002
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    assert after == (random.random(), float(np.random.random()))  # noqa: NPY002


def test_generators_stand_where_they_stood() -> None:
    """Also where what is called fails; what was drawn between follows from no seed of theirs."""
    drawn = []

    def fails() -> None:
        with each_anew() as anew:
            anew()
            drawn.append(random.random())
            raise ValueError("some")

    for _ in range(2):
        random.seed(1)
        with pytest.raises(ValueError, match="some"):
            fails()
        assert random.random() == random.Random(1).random()
    # Alike with a chance of 2**-32 under fresh seeds.
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    "metric",
    [
        lambda truth, given: (truth == given) / len(truth),
        lambda truth, given: (truth == given) / max((truth == given).sum(), 1),
        lambda truth, given: (truth == given) - (truth == given).mean(),
    ],
)
def test_metrics_score_each_row_by_itself(metric: Any) -> None:
    """Else one row that is held out moves the scores of all."""
    X, y = np.arange(100)[:, None] % 10, np.arange(100) % 2
    model = learn.GaussianNB(epsilon=1, bounds=(0, 9), classes=[0, 1])
    with pytest.raises(ArgumentError, match="score each row by itself"):
        learn.search(model, [{}], X, y, mean=2, metric=metric)
    learn.search(model, [{}], X, y, mean=2, metric=lambda truth, given: truth == given)
