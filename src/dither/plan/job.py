"""The exact part of a query: what an engine computes, in integers, and hands over.

A job is made from a query by ``dither.plan.lowering.lower`` and is all that an engine sees. Each
measurement is one integer per group (or one row of integers per group, for ``Leaves`` and other
histograms), summed over units. An engine must bound every unit's contribution exactly as said here,
because ``dither.plan.lowering.sensitivity`` is computed from the same fields.

Bounding of a unit, where ``unit`` is set (otherwise every row is a unit of its own):

1. Rows with a NULL unit are left out.
2. Of the groups in which the unit has rows, the ``max_groups`` with the smallest keyed hash of
   (unit, group) are kept. Where there are no keys the one group is kept.
3. In each kept group the unit contributes, to each measurement, what its docstring says.

A job with ``sets`` of keys groups the rows by each of them: its groups are those of all sets
together, and a row is in at most one group of each set, whose keys alone say in which. Step 2 keeps
of every set the ``each`` groups with the smallest keyed hash. ``max_groups`` is how many groups
those are at most, in all: the sum over the sets of ``each``, or of the number of groups that the
set has where that is less. So the k of the sensitivities is that sum, and nothing else changes: a
measurement is one vector over the groups of all sets, and its noise is that of a vector in which a
unit has k entries. Where the sets share one budget, that is how they do.

A job with a ``block_key`` reads blocks of rows in parallel: that key alone says in which block a
row lies, and step 2 keeps of every block the ``max_groups`` groups with the smallest keyed hash.
Nothing that it gives of one block depends on rows of another.

The secret key of the hash is drawn afresh for each run, so a kept group depends on the unit's own
rows and on that key alone. The hash is the one that is fastest in an engine. So engines that are
given one key keep different groups, values and rows of a unit that has more than may count, all of
them within its limits; where it has no more, their integers are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Any, Self

from dither.plan.expressions import Bin, Case, Column, Expression, Literal, Unreadable
from dither.plan.relations import Relation
from dither.plan.schema import Kind, Value

NOTHING = Literal(None)

__all__ = [
    "Cells",
    "Distinct",
    "GroupKey",
    "History",
    "Job",
    "Leaves",
    "ListedCells",
    "Measurement",
    "Rows",
    "Sides",
    "Total",
    "UnitProducts",
    "UnitSizeHistogram",
    "Units",
    "Values",
    "VoteHistogram",
    "public_groups",
    "read_by",
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
    end and above. Of a table's own column there is a last one, of the rows in which it is
    ``unreadable``: they have no value, so that each row is still in one cell at most. An engine is
    handed what ``between`` gives.
    """

    of: Leaves | UnitSizeHistogram
    unreadable: Column | None = None

    @property
    def bins(self) -> int:
        """How many cells there are."""
        return (3 if isinstance(self.of, Leaves) else 2) + (self.unreadable is not None)

    def between(self, *edges: Fraction) -> Leaves | UnitSizeHistogram:
        """The histogram with these edges inside: of as many cells but one."""
        if isinstance(self.of, UnitSizeHistogram):
            return replace(self.of, edges=(self.of.edges[0], *map(int, edges)))
        match self.of.operand:
            case Bin(operand=operand, edges=outer):
                cut: Expression = Bin(operand, (outer[0], *edges, outer[-1]))
                last = len(edges)
                if self.unreadable is not None:
                    last += 1
                    cut = Case(((Unreadable(self.unreadable), Literal(last)),), cut)
                return replace(self.of, operand=cut, upper=last, bins=last + 1)
        raise TypeError("only a histogram of bins can have others")


def read_by(measurements: Iterable[Measurement]) -> list[Measurement]:
    """The measurements that rows are read for: totals in place of the products of them."""
    return [
        part
        for m in measurements
        for part in ((m.left, m.right) if isinstance(m, UnitProducts) else (m,))
    ]


LONGEST_KEY = 1_000
"""Code points that a text may have which is a key without being declared."""


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One grouping expression. ``values``: the public keys; rows with any other key are left out.

    ``None`` means that the key is to be discovered; NULL is then a key like any other. A text of
    more than ``LONGEST_KEY`` code points is NULL there: keys that are discovered leave the engine
    before noise says which are shown, and what they take outside of its memory is public, for each.
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
class History:
    """What a row of a table of counts has of the row before it, in the history that it belongs to.

    The rows of a unit that agree on ``within`` (NULL being a value like any other) are one history,
    in the order of ``order``, an integer of at most 62 bits, its NULLs last; rows of one moment in
    that of their places, and rows alike in all of these are told apart by nothing that counts. All
    rows of the unit that the relation gives are ordered, before any of them is chosen to count: so
    what a row has follows from its unit's rows alone, and no sensitivity is other than without.

    Some keys of the job are given by it, in place of their expressions:

    - ``number``: how many rows of its history come up to this one; the last place but one, and the
      one beyond it, is of so many and more;
    - ``gap``: by how much ``order`` is above that of the row before: the last edge of ``edges``
      that is not above it says in which place. The place after the last one is of the first row,
      and of rows without an order;
    - ``before``, pairs of keys: the place that the row before has in the second is that of the
      first; of the first row of a history it is the place after the last one.
    """

    within: tuple[Expression, ...]
    order: Expression
    number: int
    gap: int | None
    edges: tuple[int, ...]
    before: tuple[tuple[int, int], ...]

    @property
    def given(self) -> frozenset[int]:
        """The keys whose places it says."""
        gap = () if self.gap is None else (self.gap,)
        return frozenset((self.number, *gap, *(key for key, _ in self.before)))


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
    block_key: int | None = None
    """The place among ``keys``; it is public, and there are no ``sets``."""
    history: History | None = None
    """Of tables of counts of rows that units have."""


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
