"""What is publicly known of values, and what arithmetic makes of it: intervals of exact rationals.

Where no bounds follow there are none, and the result can be NULL: whatever leaves what an engine
computes in (a whole number beyond 64 bits, infinity minus infinity) is NULL there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from dither.plan.schema import Kind, Value

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_REAL",
    "LARGEST_WORD",
    "LONGEST_LIST",
    "SMALLEST_WORD",
    "Facts",
    "absolute",
    "arithmetic",
    "clamped",
    "common_step",
    "extreme",
    "lattice_step",
    "listed_values",
    "power_of_two",
    "reshaped",
    "whole",
    "within_limits",
]

Bound = Fraction | dt.date | dt.datetime
Range = tuple[Fraction, Fraction]

SMALLEST_WORD, LARGEST_WORD = -(2**63), 2**63 - 1
"""Integers have 64 bits in every engine."""

LARGEST_INTEGER = 2**62
LARGEST_REAL = Fraction(10) ** 300
"""The widest bounds that are derived, and that a sum may have."""

LONGEST_LIST = 4096
"""Up to so many keys follow from bounds without being written down."""


SUM_CELLS = 2**28
"""A sum's lattice has at most so many points between its bounds; its rounding is far below any
noise that protects it."""

DEFAULT_CELLS = 2**20
"""A real expression without a declared step is rounded to about a millionth of its range."""


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
    def range(self) -> Range | None:
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
            # From the least multiple that is not below the lower end.
            return tuple(range(-(int(-low) // step) * step, int(high) + 1, step))
    if facts.kind is Kind.DATE and isinstance(facts.lower, dt.date):
        assert isinstance(facts.upper, dt.date)
        days = (facts.upper - facts.lower).days
        if days < LONGEST_LIST:
            return tuple(facts.lower + dt.timedelta(days=i) for i in range(days + 1))
    return None


def power_of_two(size: Fraction) -> Fraction:
    """The largest power of two that is at most ``size``; 1 where that is 0."""
    if size <= 0:
        return Fraction(1)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    power = Fraction(2) ** exponent
    # The difference of lengths is the exponent, or one more: of 3/2 it is 0, of 4/3 it is 1.
    return power if power <= size else power / 2


def lattice_step(low: Fraction, high: Fraction, declared: Fraction | None, cells: int) -> Fraction:
    """The step of the lattice that numbers between two bounds are summed on: at most so many cells.

    Examples
    --------
    >>> lattice_step(Fraction(0), Fraction(1000), None, 2**28)
    Fraction(1, 2048)
    """
    step = declared or power_of_two((high - low) / DEFAULT_CELLS)
    if (high - low) / step >= cells:
        times = (high - low) / step / (cells - 1)
        # By a power of two, rounded up: the coarser lattice is within the declared one.
        power = power_of_two(times)
        step *= power if power == times else power * 2
    return step


def within_limits(facts: Facts) -> bool:
    """Whether the bounds are no wider than those of a sum may be."""
    low, high = facts.range or (Fraction(0), Fraction(0))
    limit = Fraction(LARGEST_INTEGER) if facts.kind is Kind.INTEGER else LARGEST_REAL
    return max(abs(low), abs(high)) <= limit


def common_step(steps: Iterable[Fraction | None]) -> Fraction | None:
    """The coarsest lattice that holds all of these; ``None`` where one of them is not a lattice.

    Examples
    --------
    >>> common_step([Fraction(1, 4), Fraction(1, 6), Fraction(0)])
    Fraction(1, 12)
    """
    found: list[Fraction] = []
    for step in steps:
        if step is None:
            return None
        if step:  # zero is on every lattice
            found.append(step)
    bottom = lcm(*(s.denominator for s in found))
    return Fraction(gcd(*(s.numerator * (bottom // s.denominator) for s in found)), bottom)


def _number(kind: Kind, ends: Range | None, step: Fraction | None, nullable: bool) -> Facts:
    if ends is not None:
        found = Facts(kind, *ends, None, step, nullable)
        if within_limits(found):
            return found
    return Facts(kind, step=step, nullable=True)


def arithmetic(op: str, left: Facts, right: Facts, *, same: bool) -> Facts:
    """A sum, difference, product, quotient or remainder of two numbers.

    ``same``: both are one expression, so that a product is a square. ``//`` and ``%`` are of
    integers.
    """
    if op == "/":
        return _quotient(left, right)
    kind = Kind.INTEGER if left.kind is right.kind is Kind.INTEGER else Kind.REAL
    nullable = left.nullable or right.nullable
    step, ends = common_step((left.step, right.step)), None
    if op == "*":
        both = left.step is not None and right.step is not None
        step = _spacing(left) * _spacing(right) if both else None
    elif op in ("//", "%"):
        step = Fraction(1)
    if left.range is not None and right.range is not None:
        (a, b), (c, d) = left.range, right.range
        match op:
            case "+":
                ends = a + c, b + d
            case "-":
                ends = a - d, b - c
            case "*":
                ends = _product((a, b), (c, d), same=same)
            case _:
                ends = (_whole_quotient if op == "//" else _remainder)((a, b), (c, d))
                nullable = nullable or c <= 0 <= d
    return _number(kind, ends, step, nullable)


def _spacing(facts: Facts) -> Fraction:
    """What a factor's values are multiples of: itself, where it is a constant integer."""
    if facts.kind is Kind.INTEGER and facts.range is not None and facts.lower == facts.upper:
        return abs(facts.range[0]) or Fraction(1)
    return facts.step or Fraction(1)


def _product(left: Range, right: Range, *, same: bool) -> Range:
    products = [x * y for x in left for y in right]
    if same:
        # A square is never negative, whatever corner products say.
        squares = [x * x for x in left]
        return Fraction(0) if left[0] <= 0 <= left[1] else min(squares), max(squares)
    return min(products), max(products)


def _quotient(left: Facts, right: Facts) -> Facts:
    if left.range is None or right.range is None:
        return Facts(Kind.REAL, nullable=True)
    low, high = right.range
    nullable = left.nullable or right.nullable or low <= 0 <= high
    if low <= 0 <= high and right.kind is not Kind.INTEGER and low < high:
        # A divisor may come as near to zero as it likes.
        return Facts(Kind.REAL, nullable=nullable)
    # On either side of 0 a quotient is monotone in both operands, and so is extreme at corners.
    ends = [t / d for t in left.range for d in _divisors(low, high)] or [Fraction(0)]
    step = left.step / abs(low) if left.step is not None and low == high != 0 else None
    return _number(Kind.REAL, (min(ends), max(ends)), step, nullable)


def _whole_quotient(top: Range, bottom: Range) -> Range:
    # Towards zero as engines divide, which keeps the order of quotients: corners stay extreme.
    ends = [Fraction(int(t / d)) for t in top for d in _divisors(*bottom)] or [Fraction(0)]
    return min(ends), max(ends)


def _divisors(low: Fraction, high: Fraction) -> list[Fraction]:
    """The divisors at which a quotient can be extreme: both ends, and those nearest to zero.

    An end that is zero is left out: a zero divisor gives NULL. Where zero lies between, the
    divisor is an integer, so that one which is not zero is at least 1 in size.
    """
    near = [Fraction(s) for s in (-1, 1) if low <= s <= high] if low <= 0 <= high else []
    return [d for d in (low, high) if d != 0] + near


def _remainder(top: Range, bottom: Range) -> Range:
    # |x % y| is at most |x| and at most |y| - 1, and has the sign of x.
    size = max(abs(bottom[0]), abs(bottom[1]), Fraction(1)) - 1
    return max(-size, min(top[0], Fraction(0))), min(size, max(top[1], Fraction(0)))


def absolute(facts: Facts) -> Facts:
    """The absolute value of a number."""
    if facts.range is None:
        return Facts(facts.kind, step=facts.step, nullable=True)
    low, high = facts.range
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return replace(facts, lower=least, upper=max(abs(low), abs(high)), domain=None)


def whole(facts: Facts, *, up: bool) -> Facts:
    """A number rounded to an integer, up or down."""
    if facts.kind is Kind.INTEGER:
        return facts
    turn = ceil if up else floor
    ends = None
    if facts.range is not None:
        ends = Fraction(turn(facts.range[0])), Fraction(turn(facts.range[1]))
    return _number(Kind.INTEGER, ends, Fraction(1), facts.nullable)


def extreme(parts: Sequence[Facts], kind: Kind | None, *, largest: bool) -> Facts:
    """The smallest, or largest, of the operands that are not NULL."""
    sign = -1 if largest else 1
    # Read with the sign turned, the largest is the smallest: far is the side that any operand may
    # reach, near the side where an operand that is never NULL holds the result.
    far = [_end(p, -sign) for p in parts]
    near = [_end(p, sign) for p in parts]
    held = [e for p, e in zip(parts, near, strict=True) if e is not None and not p.nullable]
    out = _least(far, sign)
    # If all may be NULL, any of them may be the only one left, so that the furthest end counts.
    back = _least(held, sign) if held else _least(near, -sign)
    lower, upper = (out, back) if sign > 0 else (back, out)
    step = common_step(p.step for p in parts)
    return Facts(kind, lower, upper, None, step, all(p.nullable for p in parts))


def _end(facts: Facts, sign: int) -> Fraction | None:
    end = facts.upper if sign > 0 else facts.lower
    return end if isinstance(end, Fraction) else None


def _least(ends: Sequence[Fraction | None], sign: int) -> Fraction | None:
    known = [e for e in ends if e is not None]
    if len(known) < len(ends):
        return None
    return min(known) if sign > 0 else max(known)


def reshaped(facts: Facts, turn: Callable[[str], str]) -> Facts:
    """Text whose letters are turned: a short list of values stays one."""
    domain: tuple[Value, ...] | None = None
    # Only ASCII is sure to change case alike here and in every engine.
    if facts.domain is not None and all(str(v).isascii() for v in facts.domain):
        domain = tuple(dict.fromkeys(turn(str(v)) for v in facts.domain))
    return Facts(Kind.TEXT, domain=domain, nullable=facts.nullable)


def clamped(facts: Facts, lower: Fraction, upper: Fraction) -> Facts:
    """A number moved into bounds; a bound that moves values adds itself to the lattice."""
    # Of values without bounds each end may move some.
    low, high = facts.range or (lower - 1, upper + 1)
    moved = [bound for bound, moves in ((lower, low < lower), (upper, high > upper)) if moves]
    ends = min(max(lower, low), upper), max(min(upper, high), lower)
    step = common_step((facts.step, *map(abs, moved)))
    return Facts(facts.kind, *ends, None, step, facts.nullable)
