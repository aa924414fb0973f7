"""The deepest question that is read is also planned, explained and answered, whoever asks."""

from __future__ import annotations

import sys
import threading

import pytest

from dither._depth import deep
from dither.errors import QueryError

TERMS = 76


def long_sum(column: str) -> str:
    """A sum of as many terms as are read."""
    return " + ".join([column] * TERMS)


def behind(frames: int, call):
    """A call behind so many frames of its caller."""
    return call() if frames == 0 else behind(frames - 1, call)


def whole_life(session, text: str):
    """A question from its text to its answer."""
    question = session.sql(text)
    question.explain()
    question.preview(epsilon=1)
    return question.release(1).frame


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT SUM({long_sum('cost')}) AS s FROM visits",
        f"SELECT COUNT(*) AS n FROM visits WHERE {long_sum('age')} > 5",
        f"SELECT COUNT(*) AS n FROM visits WHERE {' || '.join(['region'] * TERMS)} = 'north'",
    ],
)
@pytest.mark.parametrize("depth", [0, 700])
def test_a_long_sum_is_answered(session, text, depth):
    """Behind a deep caller as well as from the top."""
    before = sys.getrecursionlimit()
    assert behind(depth, lambda: whole_life(session, text)).height == 1
    assert sys.getrecursionlimit() == before


def test_a_longer_one_is_refused_free(session):
    """By a limit that is the same wherever it is asked."""
    text = f"SELECT SUM({' + '.join(['cost'] * 2000)}) AS s FROM visits"
    for depth in (0, 700):
        with pytest.raises(QueryError, match="nested too deeply"):
            behind(depth, lambda: session.sql(text))
    assert session.balance()[0].spent.epsilon == 0


def test_the_limit_is_as_it_was_once_all_threads_have_left():
    """Threads that overlap neither lower it for one another nor leave it raised."""
    before, seen = sys.getrecursionlimit(), []
    inside, leave = threading.Barrier(3), threading.Event()

    def first():
        with deep():
            inside.wait()
        leave.set()

    def second():
        with deep():
            inside.wait()
            leave.wait()
            seen.append(sys.getrecursionlimit())

    threads = [threading.Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    inside.wait()
    for thread in threads:
        thread.join()
    assert seen == [max(before, 10_000)]
    assert sys.getrecursionlimit() == before


def test_the_limit_is_as_it_was_after_an_error(session):
    """Whatever is raised inside."""
    before = sys.getrecursionlimit()
    with pytest.raises(QueryError):
        session.sql("SELECT nothing FROM visits")
    assert sys.getrecursionlimit() == before
