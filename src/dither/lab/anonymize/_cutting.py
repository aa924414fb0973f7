"""Strict multidimensional partitioning: every part is cut at the median of its widest side.

All parts of one depth are cut together, with sorts and sums over the rows in hand, so that the work
is that of a dozen passes whatever the number of parts. A part's widest side comes first; where no
cut along it leaves both halves with what every class must meet, the next widest is tried, and the
part is finished when none is left. *Strict* means that equal values stay together.

Source: LeFevre, DeWitt, Ramakrishnan, *Mondrian multidimensional k-anonymity* (2006). Greedy, not
optimal: finding the best partition is NP-hard.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dither.lab._grouping import Ints
from dither.lab.anonymize._definitions import Floats, Truths, pair
from dither.lab.anonymize._demands import Demand

__all__ = ["Parts", "cut"]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A partition.

    Attributes
    ----------
    of : array of int64, shape (rows,)
        The part of each row.
    count : int
    complete : bool
        False where it was stopped: parts may then be larger than they need be.
    """

    of: Ints
    count: int
    complete: bool


@dataclass(slots=True, eq=False)
class _State:
    """Rows in the order of parts, and the parts that may still be cut."""

    rank: NDArray[np.int32]  # (sides, rows)
    weight: Ints
    sensitive: list[NDArray[np.int32]]
    row: Ints
    start: Ints
    tried: Truths  # (parts, sides)


def cut(
    rank: NDArray[np.int32],
    positions: list[Floats],
    weight: Ints,
    sensitive: list[NDArray[np.int32]],
    demand: Demand,
    *,
    seconds: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Parts:
    """Partition weighted rows, the whole of which meets the demand.

    ``rank`` is the place of each row's value along each side, shape (sides, rows); ``positions``
    says how far along each place is, so that the width of a part is the difference of its ends over
    that of the whole.
    """
    rows = rank.shape[1]
    part = np.zeros(rows, dtype=np.int64)
    spans = [max(float(p[-1] - p[0]), 0.0) for p in positions]
    state = _State(
        rank,
        weight,
        sensitive,
        np.arange(rows),
        np.zeros(1, dtype=np.int64),
        np.zeros((1, len(positions)), dtype=np.bool_),
    )
    whole = [
        np.bincount(c, weight, column.size).astype(np.int64)
        for c, column in zip(sensitive, demand.columns, strict=True)
    ]
    deadline = time.monotonic() + (np.inf if seconds is None else seconds)
    done, complete = 0, True
    # An interrupt may come between any two lines: it goes back to the last whole depth.
    before = replace(state), done
    try:
        while len(state.row):
            side, total = _choose(state, positions, spans, demand.k)
            done = _finish(state, side, part, done)
            if not len(state.row):
                break
            side, total = side[side >= 0], total[side >= 0]
            _divide(state, side, total, demand, whole)
            before = replace(state), done
            if progress is not None:
                progress(rows - len(state.row), done + len(state.start))
            if time.monotonic() >= deadline:
                complete = False
                break
    except KeyboardInterrupt:
        state, done = before
        complete = False
    if not complete:
        # Every part in hand meets the demand, so stopping early is sound, only coarser.
        done = _finish(state, np.full(len(state.start), -1), part, done)
    return Parts(part, done, complete)


def _choose(
    state: _State, positions: list[Floats], spans: list[float], k: int
) -> tuple[Ints, Ints]:
    """The widest side of each part that was not tried, or -1; and the part's weight."""
    parts, sides = state.tried.shape
    width = np.zeros((parts, sides))
    for j in range(sides):
        if spans[j]:
            low = np.minimum.reduceat(state.rank[j], state.start)
            high = np.maximum.reduceat(state.rank[j], state.start)
            width[:, j] = (positions[j][high] - positions[j][low]) / spans[j]
    width[state.tried] = 0.0
    side = width.argmax(axis=1)
    total = np.add.reduceat(state.weight, state.start)
    fine = (width[np.arange(parts), side] > 0) & (total >= 2 * k)
    return np.where(fine, side, -1), total


def _finish(state: _State, side: Ints, part: Ints, done: int) -> int:
    """Number the parts that have no side left, and take their rows out."""
    over = side < 0
    length = np.diff(np.append(state.start, len(state.row)))
    gone = np.repeat(over, length)
    number = np.cumsum(over) - 1 + done
    part[state.row[gone]] = np.repeat(number, length)[gone]
    if gone.any():
        stay = ~gone
        state.rank = state.rank[:, stay]
        state.weight, state.row = state.weight[stay], state.row[stay]
        state.sensitive = [c[stay] for c in state.sensitive]
        length = length[~over]
        state.start = np.cumsum(length) - length
        state.tried = state.tried[~over]
    return done + int(over.sum())


def _divide(state: _State, side: Ints, total: Ints, demand: Demand, whole: list[Ints]) -> None:
    """Cut every part along its side where both halves stand; else mark the side as tried."""
    parts, rows = len(state.start), len(state.row)
    length = np.diff(np.append(state.start, rows))
    owner = np.repeat(np.arange(parts), length)
    value = state.rank[side[owner], np.arange(rows)].astype(np.int64)
    order = np.argsort(owner * (int(value.max()) + 1) + value, kind="stable")
    value, weight = value[order], state.weight[order]
    running = np.cumsum(weight)
    left = running - np.append(0, running)[state.start][owner]
    # A cut may fall after the last row of a value that is not the part's last value.
    ends = np.flatnonzero((owner[1:] == owner[:-1]) & (value[1:] != value[:-1]))
    of = owner[ends]
    fair = (left[ends] >= demand.k) & (total[of] - left[ends] >= demand.k)
    ends, of = ends[fair], of[fair]
    off = np.abs(2 * left[ends] - total[of])
    nearest = np.lexsort((off, of))
    first = np.flatnonzero(np.diff(of[nearest], prepend=-1))
    place = np.full(parts, -1, dtype=np.int64)
    place[of[nearest][first]] = ends[nearest][first]
    sensitive = [c[order] for c in state.sensitive]
    if demand.requirements:
        place[~_stands(state, place, sensitive, weight, demand, whole)] = -1
    cuts = place >= 0
    state.rank, state.row = state.rank[:, order], state.row[order]
    state.weight, state.sensitive = weight, sensitive
    tried = state.tried.copy()
    tried[np.arange(parts)[~cuts], side[~cuts]] = True
    tried[cuts] = False
    starts = np.sort(np.concatenate([state.start, place[cuts] + 1]))
    state.tried = tried[np.searchsorted(state.start, starts, side="right") - 1]
    state.start = starts


def _stands(
    state: _State,
    place: Ints,
    sensitive: list[NDArray[np.int32]],
    weight: Ints,
    demand: Demand,
    whole: list[Ints],
) -> Truths:
    """Whether both halves of each part meet every requirement, against the whole table."""
    parts, rows = len(place), len(weight)
    middle = np.where(place >= 0, place + 1, state.start)
    halves = np.ravel(np.column_stack([state.start, middle]))
    marks = np.zeros(rows + 1, dtype=np.int64)
    np.add.at(marks, halves[1:], 1)
    half = np.cumsum(marks[:-1])
    sizes = np.bincount(half, weight, 2 * parts).astype(np.int64)
    there = sizes > 0
    number = np.cumsum(there) - 1
    fine = np.ones(int(there.sum()), dtype=np.bool_)
    for i, requirement in demand.requirements:
        column = demand.columns[i]
        pairs = pair(number[half], sizes[there], sensitive[i], column.size, weight)
        held = type(pairs)(pairs.owner, pairs.value, pairs.count, pairs.sizes, whole[i])
        fine &= requirement.met(held, column.context)
    both = np.ones(2 * parts, dtype=np.bool_)
    both[there] = fine
    found: Truths = both[0::2] & both[1::2]
    return found
