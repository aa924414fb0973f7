"""Single draws come from a stock: each value is served once, to one thread of one process."""

import itertools
import os
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dither.errors import ArgumentError
from dither.noise import _laplace as singles
from dither.noise import discrete_laplace_one
from dither.noise._staircase import StaircaseSampler
from dither.numeric import _keystream as keystream
from dither.numeric import secure_words

pytestmark = pytest.mark.fresh


class Numbered:
    """A sampler whose draws are 0, 1, 2, …, so that a value served twice shows."""

    def __init__(self) -> None:
        self.next = itertools.count()

    def draw(self, size, words):
        return np.array([next(self.next) for _ in range(size)])


def test_each_value_is_served_once():
    """Two samplers drawn by turns serve every number of theirs at most once."""
    first, second = Numbered(), Numbered()
    served = [(singles._one(first), singles._one(second)) for _ in range(3 * singles._STOCK)]
    assert len({a for a, _ in served}) == len({b for _, b in served}) == len(served)


def test_threads_share_no_value():
    """Four threads that draw from one sampler together serve distinct values."""
    sampler, served = Numbered(), [[] for _ in range(4)]
    start = threading.Barrier(4)

    def work(mine):
        start.wait()
        mine.extend(singles._one(sampler) for _ in range(5 * singles._STOCK))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in served]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set().union(*served)) == 4 * 5 * singles._STOCK


def test_stocks_are_few():
    """Drawing from many samplers keeps a bounded number of stocks, and serves none again."""
    samplers = [Numbered() for _ in range(3 * singles._SAMPLERS)]
    served = [[singles._one(s) for s in samplers] for _ in range(3)]
    assert len(singles._stocks.by_sampler) <= singles._SAMPLERS
    assert all(len({row[i] for row in served}) == 3 for i in range(len(samplers)))


FORK = """
import os, sys, time
from fractions import Fraction
from dither.noise import _laplace as singles, discrete_laplace_one
from dither.numeric import _keystream as keystream
time.time_ns = lambda: 10**18
def draw():
    return " ".join(str(discrete_laplace_one(Fraction(2**50))) for _ in range(4))
draw()
stocks, words, pid = singles._stocks, keystream._per_thread, os.getpid()
if "number hidden" in sys.argv:
    os.getpid = lambda: pid
read, write = os.pipe()
if os.fork() == 0:
    if "stock kept" in sys.argv:
        singles._stocks = stocks
    if "words kept" in sys.argv:
        keystream._per_thread = words
    os.write(write, draw().encode())
    os._exit(0)
os.wait()
print(draw())
print(os.read(read, 1000).decode())
"""


def fork(*broken: str) -> tuple[list[str], list[str]]:
    """Four draws of a parent and of its forked child."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, *broken]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return lines[0].split(), lines[1].split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize(
    "broken",
    [[], ["number hidden", "stock kept"], ["stock kept", "words kept"], ["number hidden"]],
    ids=str,
)
def test_a_forked_child_serves_other_values(broken):
    """After a fork, parent and child draw different noise; any of three safeguards sees to it."""
    parent, child = fork(*broken)
    assert len({*parent, *child}) == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_the_fork_test_catches_a_stock_that_survives():
    """With every safeguard out of order, the child repeats the parent."""
    parent, child = fork("number hidden", "stock kept", "words kept")
    assert parent == child


def test_a_new_key_empties_the_stock(monkeypatch):
    """What was drawn before a release began is not served in it."""
    served = []
    real = StaircaseSampler.draw
    monkeypatch.setattr(
        StaircaseSampler, "draw", lambda self, n, words: (served.append(n), real(self, n, words))[1]
    )
    monkeypatch.setattr(keystream.time, "time_ns", lambda: 10**18)
    for _ in range(2):
        secure_words().renew()
        for _ in range(5):
            discrete_laplace_one(Fraction(7))
    assert len(served) == 2


def test_single_draws_have_the_law():
    """Signs and zeros of 20,000 single draws fit (false alarm 1e-9)."""
    drawn = np.array([discrete_laplace_one(Fraction(3)) for _ in range(20_000)])
    mass = np.exp(-np.abs(np.arange(-60, 61)) / 3.0)
    mass /= mass.sum()
    bins = np.clip(drawn, -4, 4) + 4
    expected = np.array([mass[:57].sum(), *mass[57:64], mass[64:].sum()]) * drawn.size
    assert stats.chisquare(np.bincount(bins, minlength=9), expected).pvalue > 1e-9


def test_single_draws_check_their_parameter():
    """Single draws refuse what the vectors refuse."""
    with pytest.raises(ArgumentError, match=r"^scale must be"):
        discrete_laplace_one(-0.5)
