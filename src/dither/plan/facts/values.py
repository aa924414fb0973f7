"""What is publicly known of an expression's values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from fractions import Fraction

from dither.plan.kinds import Kind, Value

__all__ = ["LARGEST_INTEGER", "LARGEST_REAL", "LONGEST_LIST", "Facts", "listed_values"]

Bound = Fraction | dt.date | dt.datetime

LARGEST_INTEGER = 2**62
LARGEST_REAL = Fraction(10) ** 300
LONGEST_LIST = 4096
"""Up to so many keys follow from bounds without being written down."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is publicly known of an expression's values.

    ``kind`` is ``None`` for the literal NULL. ``lower`` and ``upper`` are exact rationals, or dates
    for temporal kinds, and ``None`` where unknown. ``domain`` lists all values but NULL.

    ``step`` is the lattice of a number: its exact values are multiples of it, provided that every
    column's values are multiples of the column's declared step. It is ``None`` where there is no
    lattice, and for integers a whole number: 1, or a constant factor.
    """

    kind: Kind | None
    lower: Bound | None = None
    upper: Bound | None = None
    domain: tuple[Value, ...] | None = None
    step: Fraction | None = None
    nullable: bool = False

    @property
    def range(self) -> tuple[Fraction, Fraction] | None:
        """The bounds of a number, where both are known."""
        if isinstance(self.lower, Fraction) and isinstance(self.upper, Fraction):
            return self.lower, self.upper
        return None


def listed_values(facts: Facts) -> tuple[Value, ...] | None:
    """All values, where the public facts list them or bound them to a short range.

    Examples
    --------
    >>> listed_values(Facts(Kind.INTEGER, Fraction(1), Fraction(3)))
    (1, 2, 3)
    >>> listed_values(Facts(Kind.INTEGER, Fraction(0), Fraction(20), step=Fraction(10)))
    (0, 10, 20)
    """
    if facts.domain is not None:
        return facts.domain
    if facts.kind is Kind.BOOLEAN:
        return (False, True)
    if facts.kind is Kind.INTEGER and facts.range is not None:
        low, high = facts.range
        # FLOOR(x / 100) * 100 is a multiple of 100.
        step = max(int(facts.step or 1), 1)
        if high - low < LONGEST_LIST * step:
            return tuple(range(-(int(-low) // step) * step, int(high) + 1, step))
    if facts.kind is Kind.DATE and facts.lower is not None and facts.upper is not None:
        assert isinstance(facts.lower, dt.date)
        assert isinstance(facts.upper, dt.date)
        days = (facts.upper - facts.lower).days
        if days < LONGEST_LIST:
            return tuple(facts.lower + dt.timedelta(days=i) for i in range(days + 1))
    return None
