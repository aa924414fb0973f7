"""By how much one unit can change a measurement.

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

A histogram (``Leaves``) spreads m = ``max_rows * parts`` over the leaves of a group, in whole
numbers of parts of at least 0, so m is the ‖·‖₁ of a unit's leaves in it, and ‖·‖₂² <= m² is met
when all rows fall into one leaf. It is a vector over leaves even where there is a single group.
Under replacement the entries of u and of v are of one sign, so ‖u - v‖₂² <= ‖u‖₂² + ‖v‖₂².
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.plan.job import Leaves, Measurement, Rows, Total, Units, Values

__all__ = ["MeasurementSensitivity", "sensitivity"]


@dataclass(frozen=True, slots=True)
class MeasurementSensitivity:
    """The sensitivity of one measurement, an integer vector over all groups.

    ``per_group`` is the size of one unit's contribution to one group, in lattice units.
    """

    per_group: int
    groups: int
    l1: Fraction
    l2_squared: Fraction


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
    match measurement:
        case Units():
            size = width = 1
        case Rows() | Values():
            size = width = max_rows
        case Leaves():
            size = width = max_rows * measurement.parts
        case Total():
            size = max_rows * measurement.magnitude
            width = max_rows * measurement.width
        case _:
            raise TypeError(type(measurement).__name__)
    l1 = Fraction(max_groups * size)
    l2_squared = Fraction(max_groups * size * size)
    if replace_one and one_group and not isinstance(measurement, Leaves):
        l1, l2_squared = Fraction(width), Fraction(width * width)
    elif replace_one:
        l1, l2_squared = 2 * l1, Fraction(max_groups * max(width * width, 2 * size * size))
    return MeasurementSensitivity(size, max_groups, l1, l2_squared)
