"""Public grids on which bounds and limits are found: every power of ten in six steps, and 0.

A grid is fixed by the kind of a column alone, of dates and times by a public day too, so that where
a value lies on it says nothing about any other value. Its steps are 1, 1.5, 2, 3, 5, 7 and 10: an
end that is found is at most two thirds above the value that it has to hold. Cells are closed at the
end away from 0, as people choose ends: 100 is the end of a cell, and not the beginning of the next.

Beyond the last step there is one more cell on either side, for values that lie outside of whatever
bounds can be found. Values beyond that, infinite ones included, count in it.

Dates and times lie on a grid of whole days, which are exact integers: the days since an origin. Its
cells end so many days, months and years after it, or before: cells are as long as what lies between
them and the origin, or shorter, so that bounds are the sharper the nearer to the origin.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dither.errors import ArgumentError
from dither.plan import expressions as ex
from dither.plan.functions.dates import months_later
from dither.plan.schema import Kind

__all__ = ["GRIDS", "ORIGIN", "SIZES", "DayGrid", "MagnitudeGrid", "gridded"]

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

    def texts(self, lower: Fraction, upper: Fraction) -> tuple[str, str]:
        """Bounds as text."""
        return str(lower), str(upper)

    def _next(self, step: Fraction) -> Fraction:
        """Where the cell above a step begins: at the next number that there is."""
        # Bins hold their lower ends; cells are to hold their far ends, and so end just above them.
        return step + 1 if self.whole else Fraction(math.nextafter(float(step), math.inf))


ORIGIN = dt.date(2000, 1, 1)
"""The day about which the grid of days is finest, where nobody names another."""

DAYS = (1, 2, 3, 5, 7, 10, 15, 20)
MONTHS = (1, 2, 3, 4, 6, 9, 12, 18)
YEARS = (2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100, 150, 200, 300, 500)
"""Where cells end, on either side of the origin. Dates further away lie outside of any bounds."""

# 9,999 years of 365.2425 days are 3.65 million.
BEYOND = 4_000_000
"""More days than there are in the years 1 to 9999."""


@dataclass(frozen=True)
class DayGrid:
    """A grid of days, by their number since a public day: of dates, and of the days of timestamps.

    Parameters
    ----------
    origin : date
        In the years 1000 to 8999.
    moments : bool
        Of timestamps: a day's bounds are its midnight and the next.

    Examples
    --------
    >>> grid = DayGrid(dt.date(2024, 1, 1))
    >>> first = grid.edges.index(0)
    >>> [" to ".join(grid.texts(*grid.ends(first + i))) for i in (-1, 0, 1, 2, 3)]
    ['2023-12-31 to 2023-12-31', '2024-01-01 to 2024-01-01', '2024-01-02 to 2024-01-02', \
'2024-01-03 to 2024-01-03', '2024-01-04 to 2024-01-05']
    >>> " to ".join(grid.texts(*grid.ends(first + 16)))
    '2025-07-01 to 2025-12-31'
    """

    origin: dt.date = ORIGIN
    moments: bool = False

    whole = True

    def __post_init__(self) -> None:
        if not self.allows(self.origin):
            raise ArgumentError("origin must be a date (datetime.date) in the years 1000 to 8999")

    @staticmethod
    def allows(origin: object) -> bool:
        """Whether a grid can lie about it."""
        return type(origin) is dt.date and 1000 <= origin.year < 9000

    @cached_property
    def edges(self) -> tuple[Fraction, ...]:
        """The edges of the bins, as `expressions.Bin` has them: the lower end belongs to a bin."""
        months = (*MONTHS, *(12 * years for years in YEARS))
        after = [*DAYS, *((months_later(self.origin, m) - self.origin).days for m in months)]
        before = [*DAYS, *((self.origin - months_later(self.origin, -m)).days for m in months)]
        numbers = (-BEYOND, *(-n for n in reversed(before)), 0, *after, BEYOND)
        return tuple(map(Fraction, numbers))

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.edges) - 1

    def ends(self, cell: int) -> tuple[Fraction, Fraction]:
        """The numbers of the first and the last day in a cell."""
        return self.edges[cell], self.edges[cell + 1] - 1

    def around(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """The edges of the bin that holds the days from one to the other, both included."""
        return lower, upper + 1

    def cell_of(self, operand: ex.Expression) -> ex.Expression:
        """The number of the cell that an expression's value lies in."""
        number = ex.Call("date difference", (ex.Literal(self.origin), operand), ("day",))
        return ex.Bin(ex.Clamp(number, Fraction(-BEYOND), Fraction(BEYOND)), self.edges)

    def day(self, number: Fraction) -> dt.date:
        """The day of a number; beyond the years 1 to 9999, the last one there is."""
        found = self.origin.toordinal() + int(number)
        return dt.date.fromordinal(min(max(found, 1), dt.date.max.toordinal()))

    def texts(self, lower: Fraction, upper: Fraction) -> tuple[str, str]:
        """Bounds as text: of times from the first midnight to the one after the last day."""
        if not self.moments:
            return self.day(lower).isoformat(), self.day(upper).isoformat()
        days = self.day(lower), self.day(upper + 1)
        first, last = (dt.datetime.combine(day, dt.time()).isoformat() for day in days)
        return first, last


def gridded(node: ex.Expression) -> tuple[ex.Expression, dt.date | None] | None:
    """What is counted along a grid, and about which day; ``None`` where it is none of these grids.

    Examples
    --------
    >>> born = ex.Column("visits", "born")
    >>> gridded(DayGrid().cell_of(born)) == (born, ORIGIN)
    True
    """
    match node:
        case ex.Bin(operand=ex.Clamp(operand=x), edges=edges):
            if any(grid.edges == edges for grid in GRIDS.values()):
                return x, None
            match x:
                case ex.Call("date difference", (ex.Literal(value=dt.date() as origin), day)):
                    if DayGrid.allows(origin) and DayGrid(origin).edges == edges:
                        return day, origin
    return None


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
