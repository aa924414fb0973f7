"""By how much one unit changes a measurement, bounded as ``dither.plan.job`` says.

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

A mean is two measurements (``PlannedMeasurements``): a ``Total`` of what values are above a centre
between their bounds, and the number of them, ``Rows`` or ``Values``. One row's integer in the total
lies within M = ``magnitude`` of 0: half of the bounds' width in steps of the lattice, rounded up,
times ``parts``. A unit of more than ``max_rows`` rows in a group counts there as ``max_rows`` rows
of its own mean. So m is ``max_rows * M`` for the total and ``max_rows`` for the number, and the
bounds above hold for each; the two get noise, and are charged, as two measurements.

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

from dataclasses import dataclass
from fractions import Fraction

from dither.plan.job import (
    Cells,
    Distinct,
    Leaves,
    Measurement,
    Rows,
    Sides,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
    Values,
    VoteHistogram,
)

__all__ = ["MeasurementSensitivity", "reach", "sensitivity"]


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
    l1 = Fraction(max_groups * size)
    l2_squared = Fraction(max_groups * size * size)
    if (
        replace_one
        and one_group
        # These are vectors over leaves or cells even of one group: two units may lie in different
        # ones.
        and not isinstance(measurement, Leaves | UnitSizeHistogram | Cells)
    ):
        l1, l2_squared = Fraction(width), Fraction(width * width)
    elif replace_one and isinstance(measurement, VoteHistogram):
        # A choice loses by the range of the change, -m to m, and not by its size.
        l1, l2_squared = 2 * l1, 4 * l2_squared
    elif replace_one:
        l1, l2_squared = 2 * l1, Fraction(max_groups * max(width * width, 2 * size * size))
    return MeasurementSensitivity(size, max_groups, l1, l2_squared)
