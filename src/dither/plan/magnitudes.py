"""Public grids on which bounds and limits are found: every power of ten in six steps, and 0.

A grid is fixed by the kind of a column alone, so that where a value lies on it says nothing about
any other value. Its steps are 1, 1.5, 2, 3, 5, 7 and 10: an end that is found is at most two thirds
above the value that it has to hold. Cells are closed at the end away from 0, as people choose ends:
100 is the end of a cell, and not the beginning of the next.

Beyond the last step there is one more cell on either side, for values that lie outside of whatever
bounds can be found. Values beyond that, infinite ones included, count in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.plan import expressions as ex
from dither.plan.schema import Kind

__all__ = ["GRIDS", "SIZES", "MagnitudeGrid"]

STEPS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(7))


@dataclass(frozen=True)
class MagnitudeGrid:
    """A grid of numbers.

    Parameters
    ----------
    steps : tuple of Fraction
        The ends of cells above 0, rising.
    furthest : Fraction
        Where the outermost cells end.
    whole : bool
        Of whole numbers: then 0 has a cell of its own.

    Examples
    --------
    >>> grid = GRIDS[Kind.INTEGER]
    >>> [tuple(map(str, grid.ends(grid.zero + i))) for i in (-2, -1, 0, 1, 2, 3)]
    [('-2', '-2'), ('-1', '-1'), ('0', '0'), ('1', '1'), ('2', '2'), ('3', '3')]
    >>> [str(end) for end in grid.ends(grid.zero + 7)]
    ['11', '15']
    """

    steps: tuple[Fraction, ...]
    furthest: Fraction
    whole: bool

    @cached_property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges of the bins, as `expressions.Bin` has them: the lower end belongs to a bin."""
        above = [self._next(step) for step in self.steps]
        below = [-step for step in reversed(self.steps)]
        zero = [Fraction(0), Fraction(1)] if self.whole else [Fraction(0)]
        return (-self.furthest, *below, *zero, *above, self.furthest)

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    @property
    def zero(self) -> int:
        """The cell that 0 lies in."""
        return len(self.steps) + 1

    def ends(self, cell: int) -> tuple[Fraction, Fraction]:
        """The least and the largest value in a cell; of reals, the step that none is below."""
        if cell < self.zero:
            far = -self.edges[cell]
            near = -self.edges[cell + 1]
            return -far, -(near + 1 if self.whole else near)
        place = cell - self.zero - self.whole
        if place < 0:
            return Fraction(0), Fraction(0)
        near = self.steps[place - 1] if place else Fraction(0)
        far = self.steps[place] if place < len(self.steps) else self.furthest
        return near + 1 if self.whole else near, far

    def around(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """The edges of the bin that holds what lies from one number to the other, both included."""
        return lower, self._next(upper)

    def cell_of(self, operand: ex.Expression) -> ex.Expression:
        """The number of the cell that an expression's value lies in."""
        return ex.Bin(ex.Clamp(operand, -self.furthest, self.furthest), self.edges)

    def _next(self, step: Fraction) -> Fraction:
        """Where the cell above a step begins: at the next number that there is."""
        return step + 1 if self.whole else Fraction(math.nextafter(float(step), math.inf))


def _steps(first: int, last: int) -> tuple[Fraction, ...]:
    """The steps of the powers of ten from one to the other, the last power being the last step."""
    ten = Fraction(10)
    powers = (step * ten**power for power in range(first, last) for step in STEPS)
    return (*powers, ten**last)


GRIDS = {
    Kind.INTEGER: MagnitudeGrid(
        tuple(s for s in _steps(0, 18) if s.denominator == 1), Fraction(2**62), whole=True
    ),
    Kind.REAL: MagnitudeGrid(_steps(-9, 15), Fraction(10) ** 300, whole=False),
}
"""By kind of column."""

SIZES = (
    *range(1, 11),
    *(int(1 + step * 10**power) for power in range(1, 4) for step in STEPS),
    10**4 + 1,
)
"""The edges of `job.UnitSizeHistogram`: up to 10 every number by itself, then the steps, up
to 10,000.

Each but the first follows the end of a cell: 11 to 15, 16 to 20, and so on."""
