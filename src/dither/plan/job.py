"""The exact part of a query: what an engine computes, in integers, and hands over.

A job is made from a query by ``dither.plan.lower`` and is all that an engine sees. Each
measurement is one integer per group (or one row of integers per group, for ``Leaves`` and other
histograms), summed over units. An engine must bound every unit's contribution exactly as said here,
because the sensitivity below is computed from the same fields.

Bounding of a unit, where ``unit`` is set (otherwise every row is a unit of its own):

1. Rows with a NULL unit are left out.
2. Of the groups in which the unit has rows, the ``max_groups`` with the smallest keyed hash of
   (unit, group) are kept. Where there are no keys the one group is kept.
3. In each kept group the unit contributes, to each measurement, what its docstring says.

A job with ``sets`` of keys groups the rows by each of them: its groups are those of all sets
together, and a row is in at most one group of each set, whose keys alone say in which. Step 2 keeps
of every set the ``each`` groups with the smallest keyed hash. ``max_groups`` is how many groups
those are at most, in all: the sum over the sets of ``each``, or of the number of groups that the
set has where that is less. So below k is that sum, and nothing else changes: a measurement is one
vector over the groups of all sets, and its noise is that of a vector in which a unit has k entries.
Where the sets share one budget, that is how they do.

The secret key of the hash is drawn afresh for each run, so a kept group depends on the unit's own
rows and on that key alone.

By how much one unit can change a measurement.

Let k be the number of groups a unit may count in and m the size of what it contributes to one group
(``per_group`` below), both enforced by the engine. A measurement is a vector over all groups, a sum
over units of vectors with at most k entries that are not zero, each of size at most m.

- *Add or remove one unit*: the difference is one such vector, so ‖·‖₁ <= k m and ‖·‖₂² <= k m².
- *Replace one unit*: it is the difference u - v of two such vectors. In a group that both are in it
  is at most w in size, where w = ``width`` is the length of the smallest interval that holds 0 and
  all that a unit can contribute (m where all contributions have one sign, at most 2m otherwise).
  With j groups that both are in, ‖u - v‖₁ <= j w + 2 (k - j) m <= 2 k m and
  ‖u - v‖₂² <= j w² + 2 (k - j) m² <= k max(w², 2 m²). In a query with a single group the norms are
  at most w and w².

``Distinct`` is not a sum over units: it is the size of the union of a set S_u of each unit, of at
most m = ``max_rows`` values, which depends on the unit's own rows and on the key alone, and on
nobody else's. With A the union of all others', adding S to it adds |S - A|, between 0 and m;
replacing S by T changes it by |T - A| - |S - A|, at most m either way. So it moves no further than
a count of at most m rows of each unit, and the bounds above hold with w = m.

A histogram (``Leaves``) spreads m = ``max_rows * parts`` over the leaves of a group, in whole
numbers of parts of at least 0, so m is the ‖·‖₁ of a unit's leaves in it, and ‖·‖₂² <= m² is met
when all rows fall into one leaf. It is a vector over leaves even where there is a single group.
Under replacement the entries of u and of v are of one sign, so ‖u - v‖₂² <= ‖u‖₂² + ‖v‖₂².

A table of counts (``Cells``, ``ListedCells``) has no groups: of each unit at most m = ``max_rows``
rows are counted, each in one cell of every table. So a unit adds to a table whole numbers of at
least 0 whose sum is at most m: ‖·‖₁ <= m and ‖·‖₂² <= m², met when all of its rows lie in one cell.
Replacing it, u - v with both of one sign, ‖u - v‖₁ <= 2m and ‖u - v‖₂² <= 2m².

A histogram of units (``UnitSizeHistogram``) holds each unit in one cell: adding or removing it
changes one entry by 1, replacing it two entries by at most 1, so that ‖·‖₁ and ‖·‖₂² are 1, or 2,
whatever the unit's rows. Neither argument looks at where the cells lie. So it holds of ``Sides``
too, whose ends are taken from what was released before: given that, they are as fixed as any.

Of ``VoteHistogram`` no count is released: in each group one leaf is chosen by the exponential
mechanism, with probability proportional to exp(rate * count). What it loses there is the rate times
the *range* of the change: by how much the largest change of a count lies above the smallest. A unit
that is added or removed changes counts by 0 to m, a range of at most m in each of at most k groups.
One that is replaced changes them by -m to m, a range of 2m, in j groups that both are in, and by a
range of m in at most 2 (k - j) others. So the ranges sum to at most k m, or 2 k m, and their
squares to at most k m², or 4 j m² + 2 (k - j) m² <= 4 k m²: these are the l1 and l2_squared of
``VoteHistogram``, and both are those of k groups with ranges of one size. Two groups of range m
lose no more than one of range 2m, whose loss lies in an interval of the length of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither.plan.expressions import Bin, Column, Expression, Literal
from dither.plan.relations import Relation
from dither.plan.schema import Kind, Value

Integers = npt.NDArray[np.int64]

NOTHING = Literal(None)

__all__ = [
    "Cells",
    "CellsInUse",
    "Distinct",
    "ExactAnswer",
    "GroupKey",
    "Histogram",
    "Job",
    "Leaves",
    "ListedCells",
    "Measurement",
    "MeasurementSensitivity",
    "Rows",
    "Sides",
    "Total",
    "UnitProducts",
    "UnitSizeHistogram",
    "Units",
    "Values",
    "VoteHistogram",
    "public_groups",
    "reach",
    "read_by",
    "sensitivity",
]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The root of all measurements."""


@dataclass(frozen=True, slots=True)
class Rows(Measurement):
    """Rows of the group; a unit contributes ``least(its rows, max_rows)``."""


@dataclass(frozen=True, slots=True)
class Units(Measurement):
    """Distinct units in the group; a unit contributes 1."""


@dataclass(frozen=True, slots=True)
class Values(Measurement):
    """Rows whose operand is not NULL; a unit contributes ``least(their number, max_rows)``.

    Where ``once``, it contributes 1 if it has any.
    """

    operand: Expression
    once: bool = False


@dataclass(frozen=True, slots=True)
class Distinct(Measurement):
    """Distinct values of the operand in the group, NULL left out.

    Of each unit's distinct values in the group the ``max_rows`` with the smallest keyed hash of
    (unit, group, value) count; the measurement is the size of the union of what is kept. With
    ``others`` a value is a row of values, left out where any of them is NULL: which rows there are,
    and how many, is all that this rests on, so that a unit changes it by ``max_rows`` at most.
    """

    operand: Expression
    others: tuple[Expression, ...] = ()

    @property
    def operands(self) -> tuple[Expression, ...]:
        """All that makes a value."""
        return (self.operand, *self.others)


@dataclass(frozen=True, slots=True)
class Total(Measurement):
    """A sum on a public lattice.

    Each row with a value contributes the integer
    ``clamp(round(operand / step), lower, upper) - centre``, or, where ``square``, that number
    squared minus ``square_centre``. A row whose operand is NULL contributes nothing, or, where
    ``null_as_centre``, zero (the same thing, except that it counts as a row below).

    With r = the number of a unit's contributing rows in the group and s = the sum of their
    integers, the unit contributes ``s * parts`` where r <= max_rows, else ``s * parts * max_rows /
    r`` rounded towards zero: its rows count with equal weight as if there were max_rows of them.
    Counting in ``parts`` keeps what the rounding takes small beside a row: without it, one yes
    among six answers of which four count would be no yes at all.
    """

    operand: Expression
    step: Fraction
    lower: int
    upper: int
    centre: int = 0
    square: bool = False
    square_centre: int = 0
    null_as_centre: bool = False
    parts: int = 1

    @property
    def ends(self) -> tuple[int, int]:
        """The smallest and the largest integer that one row can contribute, in parts."""
        low, high = self.lower - self.centre, self.upper - self.centre
        if self.square:
            squares = (low * low, high * high)
            low = (0 if low <= 0 <= high else min(squares)) - self.square_centre
            high = max(squares) - self.square_centre
        return low * self.parts, high * self.parts

    @property
    def magnitude(self) -> int:
        """The largest absolute value of one row's integer."""
        return max(abs(end) for end in self.ends)

    @property
    def width(self) -> int:
        """The length of the smallest interval that holds 0 and every row's integer."""
        low, high = self.ends
        return max(high, 0) - min(low, 0)


@dataclass(frozen=True, slots=True)
class UnitProducts(Measurement):
    """Products of what each unit contributes to two totals: how units differ, and go together.

    A unit that contributes v to ``left`` and w to ``right``, both bounded as they say, contributes
    ``v * w - centre``. Where ``left`` is ``right`` that is a square, which lies between 0 and its
    largest value, so that a ``centre`` halfway halves what a unit can move.
    """

    left: Total
    right: Total
    centre: int = 0

    def ends(self, max_rows: int) -> tuple[int, int]:
        """The smallest and the largest integer that one unit can contribute."""
        most = max_rows * max_rows * self.left.magnitude * self.right.magnitude
        least = 0 if self.left == self.right else -most
        return least - self.centre, most - self.centre


@dataclass(frozen=True, slots=True)
class Leaves(Measurement):
    """A histogram on a public grid, the leaves of a quantile tree.

    Each row with a value falls into leaf ``(clamp(round(operand / step), lower, upper) - lower)
    // width``, one of ``bins``. Rows are counted in ``parts``.

    With r = the number of a unit's rows with a value in the group, R(e) = how many of them fall
    into leaves below e, and m = ``max_rows``, the unit contributes to leaf j ::

        parts * (R(j + 1) - R(j))                                      where r <= m,
        floor(R(j + 1) * m * parts / r) - floor(R(j) * m * parts / r)  otherwise.

    So its rows count with equal weight, as if there were m of them, as they do in a ``Total``, and
    nothing is chosen by chance. In each leaf it is a whole number of parts, of at least 0. Together
    they are ``parts * min(r, m)``, exactly: the sum telescopes. And what rounding moves stays below
    one part, in every count of leaves below an edge, however many leaves there are. The same edge
    of a coarser histogram of the same operand has the same count below it.

    ``within``, where it is not 0, cuts the leaves into stretches of so many, each the leaves of a
    tree of its own; what is above them is another histogram, of one leaf for each stretch.
    """

    operand: Expression
    step: Fraction
    lower: int
    upper: int
    width: int
    bins: int
    parts: int = 1
    within: int = 0

    @property
    def above(self) -> Leaves:
        """Where ``within`` is not 0: the histogram of the stretches."""
        width, bins = self.width * self.within, -(-self.bins // self.within)
        return replace(self, width=width, bins=bins, within=0)


@dataclass(frozen=True, slots=True)
class VoteHistogram(Leaves):
    """A histogram of which one leaf is chosen in each group, and nothing else released.

    ``choice`` is what its candidates are values of; ``operand`` is where among them a row's is.
    """

    choice: Expression = NOTHING


@dataclass(frozen=True, slots=True)
class UnitSizeHistogram(Measurement):
    """A histogram of how large units are, each of them counted once, in one cell.

    A unit's rows are divided by ``by``, NULL being a value like any other, or are one group where
    ``by`` is empty. Its size is the number of those groups where ``groups``, else the number of
    rows in the largest of them: a whole number of at least 1, since a unit without rows is not in
    the table. Cell i holds the sizes from ``edges[i]`` to the one before ``edges[i + 1]``, and the
    last cell all from ``edges[-1]`` on. Nothing is bounded before: neither ``max_rows`` nor
    ``max_groups`` of a job matters here.
    """

    by: tuple[Expression, ...]
    groups: bool
    edges: tuple[int, ...]

    @property
    def bins(self) -> int:
        """How many cells there are."""
        return len(self.edges)


@dataclass(frozen=True, slots=True)
class Cells(Measurement):
    """A table of counts: rows by what they have of some of a job's keys, all of them public.

    Of key i a row has the place of its value in the public list, or, where its value is not in it
    or NULL, the place after the last one. ``axes`` names keys, rising; the cells of their
    combinations are numbered as those of an array in row-major order, of ``shape``.

    Of each unit the ``max_rows`` rows with the smallest keyed hash of (unit, places of *all* keys
    of the job, number among the unit's rows with these places) are counted. So all tables of all
    jobs with the same keys, limit and secret are of the same rows.

    A job of tables holds nothing else; its keys divide rows into cells and not into groups.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def bins(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    @classmethod
    def of(cls, keys: Sequence[GroupKey], axes: Sequence[int]) -> Self:
        """The table of some of a job's keys.

        Raises
        ------
        ValueError
            Where the axes do not rise, or a key has no public list.
        """
        if any(a >= b for a, b in pairwise(axes)):
            raise ValueError("the axes of a table rise")
        lists = [keys[axis].values for axis in axes]
        if None in lists:
            raise ValueError("the keys of a table are public")
        return cls(tuple(axes), tuple(len(values or ()) + 1 for values in lists))


@dataclass(frozen=True, slots=True)
class ListedCells(Cells):
    """A table of counts of which the cells that are not empty are listed, each by its places.

    So a table may have more cells than there are whole numbers of 64 bits, as one of all columns
    has; it is as long as there are different rows among those that are kept.
    """


@dataclass(frozen=True, slots=True)
class Sides(Measurement):
    """A histogram of a few cells, whose edges are found in another one once that is released.

    Of numbers it has three cells, below, within and above two ends; of sizes of units two, up to an
    end and above. An engine is handed what ``between`` gives.
    """

    of: Leaves | UnitSizeHistogram

    @property
    def bins(self) -> int:
        """How many cells there are."""
        return 3 if isinstance(self.of, Leaves) else 2

    def between(self, *edges: Fraction) -> Leaves | UnitSizeHistogram:
        """The histogram with these edges inside: of as many cells but one."""
        if isinstance(self.of, UnitSizeHistogram):
            return replace(self.of, edges=(self.of.edges[0], *map(int, edges)))
        match self.of.operand:
            case Bin(operand=operand, edges=outer):
                cut = Bin(operand, (outer[0], *edges, outer[-1]))
                return replace(self.of, operand=cut, upper=len(edges), bins=len(edges) + 1)
        raise TypeError("only a histogram of bins can have others")


def read_by(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The measurements that rows are read for: totals in place of the products of them."""
    return [
        part
        for m in measurements
        for part in ((m.left, m.right) if isinstance(m, UnitProducts) else (m,))
    ]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One grouping expression. ``values``: the public keys; rows with any other key are left out.

    ``None`` means that the key is to be discovered; NULL is then a key like any other.
    """

    name: str
    expression: Expression
    kind: Kind
    values: tuple[Value, ...] | None

    @property
    def answered(self) -> tuple[Value | float, ...]:
        """The public values as an answer has them: reals are doubles."""
        values = self.values or ()
        return tuple(map(float, values)) if self.kind is Kind.REAL else values  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Job:
    """All that an engine needs to know."""

    relation: Relation
    unit: Column | None
    keys: tuple[GroupKey, ...]
    measurements: tuple[Measurement, ...]
    max_groups: int
    max_rows: int
    sets: tuple[tuple[int, ...], ...] = ()
    each: int = 0


def public_groups(keys: Sequence[GroupKey], sets: Sequence[Sequence[int]]) -> list[tuple[Any, ...]]:
    """Every public group, as an answer has it, in declared order.

    With sets: of one set after another, ``None`` for a key that is not in it, and last the place of
    the set.
    """
    lists = [key.answered for key in keys]
    if not sets:
        return list(product(*lists))
    found = []
    for at, one in enumerate(sets):
        inside = [values if i in one else (None,) for i, values in enumerate(lists)]
        found += [(*group, at) for group in product(*inside)]
    return found


@dataclass(frozen=True, slots=True)
class Histogram:
    """The counts of ``Leaves`` in every group; what is not listed is 0.

    Parameters
    ----------
    groups, bins : int
        How many there are.
    places : array of int64
        ``group * bins + leaf``, rising and without repetition.
    counts : array of int64
        Of the same length.

    Examples
    --------
    >>> found = Histogram.of(2, 4, np.array([1, 0, 0]), np.array([3, 2, 0]), np.array([5, 6, 7]))
    >>> found.dense().tolist()
    [[7, 0, 6, 0], [0, 0, 0, 5]]
    >>> found.stretches(np.array([1]), np.array([1]), 2).tolist()
    [[0, 5]]
    """

    groups: int
    bins: int
    places: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, groups: int, bins: int, group: Integers, leaf: Integers, count: Integers) -> Self:
        """From triples in any order, no two of one place."""
        places = group * bins + leaf
        # Mostly in long runs that rise, which a stable order only merges.
        order = np.argsort(places, kind="stable")
        return cls(groups, bins, places[order], count[order])

    def __getitem__(self, rows: Integers) -> Histogram:
        """Some of the groups, in the given order; each at most once."""
        to = np.full(self.groups, -1, dtype=np.int64)
        to[rows] = np.arange(len(rows))
        return self.moved(to, len(rows))

    def moved(self, to: Integers, groups: int) -> Histogram:
        """Each group where ``to`` says, out of ``groups``; left out where it says -1."""
        group, leaf = np.divmod(self.places, self.bins)
        kept = to[group] >= 0
        return self.of(groups, self.bins, to[group[kept]], leaf[kept], self.counts[kept])

    def dense(self) -> npt.NDArray[np.int64]:
        """All counts, of shape (groups, bins)."""
        found = np.zeros(self.groups * self.bins, dtype=np.int64)
        found[self.places] = self.counts
        return found.reshape(self.groups, self.bins)

    def stretches(self, group: Integers, stretch: Integers, size: int) -> npt.NDArray[np.int64]:
        """The leaves ``stretch * size`` and on of the named groups; shape (number named, size).

        Beyond the last leaf there is nothing.
        """
        start = group * self.bins + stretch * size
        end = np.minimum(start + size, (group + 1) * self.bins)
        first, last = np.searchsorted(self.places, start), np.searchsorted(self.places, end)
        number = last - first
        row = np.repeat(np.arange(len(group)), number)
        place = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number) + first[row]
        found = np.zeros((len(group), size), dtype=np.int64)
        found[row, self.places[place] - start[row]] = self.counts[place]
        return found

    def coarser(self, size: int) -> Histogram:
        """The histogram of stretches of so many leaves.

        Examples
        --------
        >>> Histogram(1, 5, np.array([0, 1, 4]), np.array([5, 6, 7])).coarser(2).dense().tolist()
        [[11, 0, 7]]
        """
        bins = -(-self.bins // size)
        group, leaf = np.divmod(self.places, self.bins)
        places = group * bins + leaf // size
        first = np.flatnonzero(np.diff(places, prepend=-1))
        places = places[first]
        counts = np.add.reduceat(self.counts, first) if first.size else self.counts
        return Histogram(self.groups, bins, places, counts)

    def tolist(self) -> list[list[int]]:
        """All counts as lists, for people and tests."""
        listed: list[list[int]] = self.dense().tolist()
        return listed


@dataclass(frozen=True, slots=True)
class CellsInUse:
    """The cells of ``ListedCells`` that are not empty, in no particular order.

    Parameters
    ----------
    places : array of int64, shape (cells, axes)
        No two rows are the same.
    counts : array of int64, shape (cells,)
        Above 0.
    """

    places: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def tolist(self) -> list[tuple[tuple[int, ...], int]]:
        """All cells with their counts, in order, for people and tests."""
        found = zip(map(tuple, self.places.tolist()), self.counts.tolist(), strict=True)
        return sorted(found)


@dataclass(frozen=True, slots=True)
class ExactAnswer:
    """What an engine hands back: exact, so it must never leave ``dither.query`` without noise.

    Parameters
    ----------
    keys : sequence of tuple
        The group of each row of the arrays, as public kinds of value (reals as float), with the
        place of its set last where there are sets. Groups in which no unit has a row are absent.
        In no particular order.
    values : mapping of int to array
        By position in ``Job.measurements``: int64 or object (Python int), shape (groups,); for
        ``Leaves``, ``UnitSizeHistogram`` and ``Cells``, a ``Histogram``; for ``ListedCells``,
        ``CellsInUse``. A job of tables has one group.
    """

    keys: Sequence[tuple[Value | float | None, ...]]
    values: Mapping[int, Any]


# --- sensitivity ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeasurementSensitivity:
    """The sensitivity of one measurement, an integer vector over all groups.

    ``per_group`` is the size of one unit's contribution to one group, in lattice units. Of
    ``VoteHistogram``, ``l1`` and ``l2_squared`` are those of the ranges.
    """

    per_group: int
    groups: int
    l1: Fraction
    l2_squared: Fraction


def reach(measurement: Measurement, max_rows: int) -> tuple[int, int]:
    """What one unit contributes to one group: its size at most, and the length of the smallest
    interval that holds 0 and all that it can be.
    """
    if isinstance(measurement, Sides):
        measurement = measurement.of
    match measurement:
        case Units() | UnitSizeHistogram() | Values(once=True):
            size = width = 1
        case Rows() | Values() | Distinct() | Cells():
            size = width = max_rows
        case Leaves():
            size = width = max_rows * measurement.parts
        case Total():
            size = max_rows * measurement.magnitude
            width = max_rows * measurement.width
        case UnitProducts():
            low, high = measurement.ends(max_rows)
            size, width = max(abs(low), abs(high)), max(high, 0) - min(low, 0)
        case _:
            raise TypeError(type(measurement).__name__)
    return size, width


def sensitivity(
    measurement: Measurement,
    *,
    max_groups: int,
    max_rows: int,
    replace_one: bool,
    one_group: bool = False,
) -> MeasurementSensitivity:
    """The sensitivity of a measurement under the bounding that its docstring states.

    Parameters
    ----------
    measurement : Measurement
    max_groups, max_rows : int
        As in the job; both 1 where a row is a unit.
    replace_one : bool
        Neighbours replace a unit instead of adding or removing it.
    one_group : bool
        The query has no keys, or a single public one.

    Examples
    --------
    >>> sensitivity(Rows(), max_groups=3, max_rows=5, replace_one=False).l2_squared
    Fraction(75, 1)
    """
    if isinstance(measurement, Sides):
        measurement = measurement.of
    size, width = reach(measurement, max_rows)
    if isinstance(measurement, Sides):
        measurement = measurement.of
    l1 = Fraction(max_groups * size)
    l2_squared = Fraction(max_groups * size * size)
    if (
        replace_one
        and one_group
        and not isinstance(measurement, Leaves | UnitSizeHistogram | Cells)
    ):
        l1, l2_squared = Fraction(width), Fraction(width * width)
    elif replace_one and isinstance(measurement, VoteHistogram):
        l1, l2_squared = 2 * l1, 4 * l2_squared
    elif replace_one:
        l1, l2_squared = 2 * l1, Fraction(max_groups * max(width * width, 2 * size * size))
    return MeasurementSensitivity(size, max_groups, l1, l2_squared)
