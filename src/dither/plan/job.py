"""The exact part of a query: what an engine computes, in integers, and hands over.

A job is made from a query by ``dither.plan.lower`` and is all that an engine sees. Each
measurement is one integer per group (or one row of integers per group, for ``Leaves``), summed over
units. An engine must bound every unit's contribution exactly as said here, because the sensitivity
in ``dither.plan.sensitivity`` is computed from the same fields.

Bounding of a unit, where ``unit`` is set (otherwise every row is a unit of its own):

1. Rows with a NULL unit are left out.
2. Of the groups in which the unit has rows, the ``max_groups`` with the smallest keyed hash of
   (unit, group) are kept. Where there are no keys the one group is kept.
3. In each kept group the unit contributes, to each measurement, what its docstring says.

The secret key of the hash is drawn afresh for each run, so a kept group depends on the unit's own
rows and on that key alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither.plan.expressions import Column, Expression
from dither.plan.kinds import Kind, Value
from dither.plan.relations import Relation

__all__ = [
    "Answer",
    "GroupKey",
    "Job",
    "Leaves",
    "Measurement",
    "Rows",
    "Total",
    "Units",
    "Values",
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
    """Rows whose operand is not NULL; a unit contributes ``least(their number, max_rows)``."""

    operand: Expression


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
class Leaves(Measurement):
    """A histogram on a public grid, the leaves of a quantile tree.

    Each row with a value falls into leaf ``(clamp(round(operand / step), lower, upper) - lower)
    // width``, one of ``bins``. A unit contributes at most ``max_rows`` rows: where it has more
    in the group, those with the smallest keyed hash of (unit, group, its own row's leaf and
    occurrence number).
    """

    operand: Expression
    step: Fraction
    lower: int
    upper: int
    width: int
    bins: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One grouping expression. ``values``: the public keys; rows with any other key are left out.

    ``None`` means that the key is to be discovered; NULL is then a key like any other.
    """

    name: str
    expression: Expression
    kind: Kind
    values: tuple[Value, ...] | None


@dataclass(frozen=True, slots=True)
class Job:
    """All that an engine needs to know."""

    relation: Relation
    unit: Column | None
    keys: tuple[GroupKey, ...]
    measurements: tuple[Measurement, ...]
    max_groups: int
    max_rows: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine hands back: exact, so it must never leave ``dither.query`` without noise.

    Parameters
    ----------
    keys : sequence of tuple
        The group of each row of the arrays, as public kinds of value (reals as float). Groups in
        which no unit has a row are absent. In no particular order.
    values : mapping of int to array
        By position in ``Job.measurements``: int64 or object (Python int), shape (groups,), and
        (groups, bins) for ``Leaves``.
    """

    keys: Sequence[tuple[Value | float | None, ...]]
    values: Mapping[int, npt.NDArray[np.int64] | npt.NDArray[np.object_]]
