"""Exact inversion: as a function of its random bits, the outcome is the inverse of the weights."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.noise._cells import WeightedOutcomes
from dither.numeric import SimulatedWords

WEIGHTS = st.lists(
    st.one_of(st.just(0), st.integers(1, 9), st.integers(0, 2**70), st.integers(0, 2**260)),
    min_size=1,
    max_size=12,
).filter(sum)
BITS = 256


class Bits(SimulatedWords):
    """The bits of one real number after its first `skip`, 64 at a time."""

    def __init__(self, v: int, skip: int) -> None:
        super().__init__(0)
        self.left = [(v >> shift) & (2**64 - 1) for shift in range(BITS - skip - 64, -1, -64)]

    def words(self, n):
        assert n == 1
        return np.array([self.left.pop(0)], dtype=np.uint64)


def truth(weights: list[int], v: int) -> int:
    """The outcome that v/2**256 selects, by its definition."""
    cumulative = [sum(weights[: k + 1]) for k in range(len(weights))]
    return bisect_right(cumulative, Fraction(v * cumulative[-1], 1 << BITS))


def points(weights: list[int]) -> list[int]:
    """Numbers v around every boundary, from 2**-256 to 2**-10 away, where a cell holds them."""
    total, found = sum(weights), [0, (1 << BITS) - 1]
    for k in range(len(weights)):
        edge = (sum(weights[: k + 1]) << BITS) // total
        found += [edge + sign * (1 << j) for sign in (-1, 1) for j in (0, 50, 127, 192, 200, 246)]
    return [v for v in found if 0 <= v < 1 << BITS and roomy(weights, v)]


def roomy(weights: list[int], v: int) -> bool:
    """Whether the interval of width 2**-130 around v lies in one cell, so that 256 bits decide."""
    first, end = v >> 126 << 126, (v >> 126) + 1 << 126
    cell = truth(weights, first)
    return end * sum(weights) <= sum(weights[: cell + 1]) << BITS


def check(cells: WeightedOutcomes, weights: list[int]) -> None:
    """Every way of drawing gives the inverse of v at each of the points."""
    prefixes = cells.prefixes()
    for v in points(weights):
        wanted = truth(weights, v)
        word = np.array([v >> (BITS - 64)], dtype=np.uint64)
        assert cells.invert(word, Bits(v, 64)).tolist() == [wanted]
        assert cells.resolve(0, 0, Bits(v, 0)) == wanted
        assert prefixes[v >> (BITS - 16)] in (-1, wanted)


@given(WEIGHTS)
@settings(deadline=None)
def test_the_outcome_is_the_inverse_of_the_weights(weights):
    """By word, by lazily drawn bits and by prefix, v selects the cell that holds it."""
    check(WeightedOutcomes(weights), weights)


def check_edges(cells: WeightedOutcomes, weights: list[int]) -> None:
    """Each threshold is the 64-bit floor of its cumulative probability."""
    total = sum(weights)
    wanted = [sum(weights[: k + 1]) * 2**64 // total for k in range(len(weights) - 1)]
    assert cells.thresholds.tolist() == [min(c, 2**64 - 1) for c in wanted]


@given(WEIGHTS)
@settings(deadline=None)
def test_thresholds_are_floors(weights):
    """The 64-bit thresholds are the floors that the proof speaks of."""
    check_edges(WeightedOutcomes(weights), weights)


@pytest.mark.parametrize("move", [-1, 1])
def test_a_moved_threshold_is_caught(move):
    """Both checks above fail when one threshold is wrong by one part in 2**64."""
    weights = [3, 5, 1, 2**40]
    check(WeightedOutcomes(weights), weights)
    cells = WeightedOutcomes(weights)
    cells.thresholds[1] = np.uint64(int(cells.thresholds[1]) + move)
    with pytest.raises(AssertionError):
        check(cells, weights)
    with pytest.raises(AssertionError):
        check_edges(cells, weights)


@given(WEIGHTS)
@settings(deadline=None)
def test_prefixes_are_decided_only_if_their_whole_interval_is(weights):
    """Each decided prefix lies within its cell, and each undecided one touches a boundary."""
    cells = WeightedOutcomes(weights)
    total = sum(weights)
    decided = cells.prefixes()
    edges = [Fraction(sum(weights[:k]) << 16, total) for k in range(len(weights) + 1)]
    for k in set(decided.tolist()) - {-1}:
        places = np.flatnonzero(decided == k)
        assert edges[k] <= int(places[0])
        assert int(places[-1]) + 1 <= edges[k + 1]
    assert np.count_nonzero(decided == -1) <= len(weights)


def test_bits_are_drawn_until_they_decide(scripted):
    """On a boundary the next word decides: zeros stay at or above it, and it takes no more."""
    cells = WeightedOutcomes([1, 2])
    third = (2**64 - 1) // 3  # 0.0101…: one third of 2**64, rounded down
    assert int(cells.thresholds[0]) == third
    u = np.array([third, third], dtype=np.uint64)
    words = scripted(0, 2**64 - 1)
    assert cells.invert(u, words).tolist() == [0, 1]
    assert words.script == []
    words = scripted(third, third, 2**63)
    assert cells.invert(u[:1], words).tolist() == [1]
    assert words.script == []


def test_decide_takes_the_rest_of_a_word(scripted):
    """A prefix is continued by the upper 48 bits of a fresh word."""
    cells = WeightedOutcomes([1, 1, 1, 1])
    prefixes = np.array([0x4000, 0x3FFF], dtype=np.uint16)
    words = scripted(0, 2**64 - 1, 0)  # right on a boundary: a third word decides
    assert cells.decide(prefixes, words).tolist() == [1, 0]


@pytest.mark.parametrize("weights", [[], [0], [0, 0], [1, -1], [3, -1]])
def test_weights_that_make_no_law(weights):
    """No weights, only zeros, or one below zero: refused."""
    with pytest.raises(ArgumentError, match="weights must be at least 0, with a sum above 0"):
        WeightedOutcomes(weights)
