"""``mondrian``: classes as small as k allows, each with a range of its own in every column.

Strict multidimensional partitioning: every part is cut at the median of its widest side. All parts
of one depth are cut together, with sorts and sums over the rows in hand, so that the work is that
of a dozen passes whatever the number of parts. A part's widest side comes first; where no cut along
it leaves both halves with what every class must meet, the next widest is tried, and the part is
finished when none is left. *Strict* means that equal values stay together.

Source: LeFevre, DeWitt, Ramakrishnan, *Mondrian multidimensional k-anonymity* (2006). Greedy, not
optimal: finding the best partition is NP-hard.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dither.errors import ArgumentError
from dither.lab._frames import Coded, as_it_is, texts
from dither.lab._grouping import Ints, combine, label, stable_order
from dither.lab.anonymize._definitions import Floats, Truths, pair
from dither.lab.anonymize._demands import Demand, PreparedTable, Require, check_seconds
from dither.lab.anonymize._hierarchy import ANY, fit
from dither.lab.anonymize._result import Anonymized, Covers, released

__all__ = ["mondrian"]

Ranges = tuple[pl.Series, pl.Series, NDArray[np.int32], NDArray[np.int32]]
_LISTED = 6
"""Values that a set names one by one, where the rest follows from its ends."""
_ODD = re.compile(r'[,"{}…\r\n]|^\s|\s$|^NULL$|^$')


def mondrian(
    frame: object,
    quasi: Sequence[str],
    k: int = 10,
    *,
    hierarchies: Mapping[str, object] | None = None,
    sensitive: str | Sequence[str] = (),
    require: Require = (),
    distance: str | Mapping[str, str] | None = None,
    order: Mapping[str, Sequence[object]] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Anonymized:
    """Cut the data into boxes that hold k rows or more, and release each row's box.

    Keeps far more detail than `generalize` and leaves no row out. In return the same value reads
    differently in different classes, which many tools cannot work with. Greedy, not optimal.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
    quasi : list of str
        Numbers and dates are cut along their values; other columns, and those with missing values,
        along an order: that of their hierarchy where one is given, else the alphabet, NULL last.
    k : int
        The least size of a class.
    hierarchies : mapping of str, optional
        For the order of columns of categories.
    sensitive, require, distance, order
        As in `generalize`. No row is left out, so the release's distribution is the data's.
    seconds : float, optional
        After this long parts stay as they are, with ``complete`` false; the same after an
        interrupt.
    progress : callable, optional
        Called with the rows settled and the number of parts, once a depth.

    Returns
    -------
    Anonymized
        Generalised columns are texts: ``[30, 34]``, ``{a, b}``, ``{a … k: 9}`` for nine values in
        order, ``*``. Rows are in a secret order. Its ``unprotected`` says what it does not
        protect.

    Raises
    ------
    ArgumentError
        For unknown columns, an empty frame, k above the number of rows, or a requirement that not
        even the whole table meets.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [31, 34, 38, 52, 55, 57]})
    >>> mondrian(people, ["age"], k=3).frame["age"].unique().sort().to_list()
    ['[31, 38]', '[52, 57]']
    """
    asked = PreparedTable.of(
        frame, quasi, k, hierarchies or {}, sensitive, require, distance, order, all_of=False
    )
    seconds = check_seconds(seconds)
    known, rows = asked.quasi, asked.table.height
    demand, base, codes = asked.demand, asked.base, list(asked.sensitive_codes)
    sides = [
        _Side(name, one, asked.hierarchies.get(name))
        for name, one in zip(known, asked.coded, strict=True)
    ]
    _check_whole(demand, codes, base.weight)
    rank = np.stack([side.place[c] for side, c in zip(sides, asked.quasi_codes, strict=True)])
    positions = [side.positions for side in sides]
    found = cut(rank, positions, base.weight, codes, demand, seconds=seconds, progress=progress)
    class_of = found.of[base.of]
    sizes = np.bincount(class_of, minlength=found.count)
    by = stable_order(found.of)
    starts = np.searchsorted(found.of[by], range(found.count))
    new: dict[str, pl.Series | Coded] = {}
    loss = 0.0
    ranges: dict[str, Ranges] = {}
    for i, (name, side) in enumerate(zip(known, sides, strict=True)):
        low = np.minimum.reduceat(rank[i][by], starts)
        high = np.maximum.reduceat(rank[i][by], starts)
        span = float(side.positions[-1] - side.positions[0])
        if span > 0:
            wide = (side.positions[high] - side.positions[low]) / span
            loss += float(wide @ sizes) / rows / len(known)
        if (low == high).all():
            new[name] = as_it_is(asked.table[name], asked.coded[i])
        else:
            labels = side.labels(low, high)
            ranges[name] = (side.values, labels, low, high)
            new[name] = Coded(class_of.astype(np.int32), labels)
    return released(
        asked,
        new,
        class_of,
        method="mondrian",
        loss=loss,
        complete=found.complete,
        tried=found.count,
        meaning=partial(_covers, ranges),
    )


def _written(text: str | None) -> str:
    """A member of a set, in quotes where it could be misread."""
    if text is None:
        return "NULL"
    return '"' + text.replace('"', '""') + '"' if _ODD.search(text) else text


class _Side:
    """One quasi-identifier in order: where each code stands, and how a range of places reads."""

    def __init__(self, name: str, coded: Coded, source: object | None) -> None:
        values = coded.values
        self.size = coded.size
        self.number = False
        self.sorted = source is None
        if source is not None:
            maps = fit(name, source, coded).maps
            # From the top, so that values which share an ancestor stand together.
            order = np.lexsort(maps)
            self.positions: Floats = np.arange(self.size, dtype=np.float64)
        else:
            sortable = values if values.dtype.is_numeric() or values.dtype.is_temporal() else None
            if sortable is None:
                sortable = values if values.dtype == pl.Boolean else texts(values)
            rows = sortable.to_frame("v").with_row_index("row")
            order = rows.sort("v", nulls_last=True)["row"].to_numpy().astype(np.int64)
            self.positions = self._widths(values, order)
        self.place = np.empty(self.size, dtype=np.int32)
        self.place[order] = np.arange(self.size)
        self.values = values.gather(order)

    def _widths(self, values: pl.Series, order: Ints) -> Floats:
        """Numbers and dates as far apart as they are; all else, and what is missing, by rank."""
        if values.dtype.is_numeric() or values.dtype.is_temporal():
            self.number = not values.has_nulls()
            if self.number:
                physical = values.to_physical() if values.dtype.is_temporal() else values
                found = physical.cast(pl.Float64).to_numpy()[order]
                with np.errstate(over="ignore"):
                    if np.isfinite(found).all() and np.isfinite(found[-1] - found[0]):
                        return found
        return np.arange(self.size, dtype=np.float64)

    def labels(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> pl.Series:
        """The text of each part's range."""
        key, size = combine([(low, self.size), (high, self.size)], len(low))
        classes = label(key, size)
        shown = [_written(t) for t in texts(self.values).to_list()]
        alone = ["NULL" if t is None else t for t in texts(self.values).to_list()]
        written = [
            alone[low[one]]
            if low[one] == high[one]
            else self._range_text(shown, int(low[one]), int(high[one]))
            for one in classes.first.tolist()
        ]
        return pl.Series(written, dtype=pl.String).gather(classes.of)

    def _range_text(self, shown: list[str], low: int, high: int) -> str:
        if high - low + 1 == self.size and not self.number:
            return ANY
        if self.number:
            return f"[{shown[low]}, {shown[high]}]"
        if high - low < _LISTED or not self.sorted:
            return "{" + ", ".join(dict.fromkeys(shown[low : high + 1])) + "}"
        return f"{{{shown[low]} … {shown[high]}: {high - low + 1}}}"


def _covers(ranges: Mapping[str, Ranges]) -> Covers:
    """The values under each label of the columns that are generalised."""
    found: dict[str, dict[str | None, tuple[Any, ...]]] = {}
    for name, (values, labels, low, high) in ranges.items():
        listed, under = values.to_list(), found.setdefault(name, {})
        for label_of, first, last in set(
            zip(labels.to_list(), low.tolist(), high.tolist(), strict=True)
        ):
            under[label_of] = under.get(label_of, ()) + tuple(listed[first : last + 1])
    return found


def _check_whole(demand: Demand, sensitive: Sequence[NDArray[np.int32]], weight: Ints) -> None:
    """Whether one class of everything meets what is required."""
    sizes = np.array([weight.sum()])
    one = np.zeros(len(weight), dtype=np.int64)
    for i, requirement in demand.requirements:
        column = demand.columns[i]
        whole = pair(one, sizes, sensitive[i], column.size, weight)
        if not requirement.met(whole, column.context).all():
            raise ArgumentError(
                f"require asks for {requirement!s} of {column.name!r}, which not even the whole "
                "table meets; ask for less"
            )


# --- cutting ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Partition:
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
) -> Partition:
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
    return Partition(part, done, complete)


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
    order = stable_order(owner * (int(value.max()) + 1) + value)
    value, weight = value[order], state.weight[order]
    running = np.append(0, np.cumsum(weight))
    # A cut may fall after the last row of a value that is not the part's last value.
    ends = np.flatnonzero((owner[1:] == owner[:-1]) & (value[1:] != value[:-1]))
    of = owner[ends]
    left = running[ends + 1] - running[state.start[of]]
    fair = (left >= demand.k) & (total[of] - left >= demand.k)
    ends, of, off = ends[fair], of[fair], np.abs(2 * left - total[of])[fair]
    place = np.full(parts, -1, dtype=np.int64)
    if len(ends):
        first = np.flatnonzero(np.diff(of, prepend=-1))
        least = np.minimum.reduceat(off, first)
        nearest = np.flatnonzero(off == np.repeat(least, np.diff(np.append(first, len(of)))))
        # Of cuts that are equally near the first is taken: written last, it stays.
        place[of[nearest][::-1]] = ends[nearest][::-1]
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
