"""Facts of arithmetic: interval arithmetic on exact rationals."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.common import (
    FactsOf,
    bounded,
    checked,
    common_step,
    number,
    unite_kinds,
)
from dither.plan.facts.values import Facts
from dither.plan.kinds import Kind
from dither.plan.text import show

__all__ = ["absolute", "arithmetic", "bin_number", "clamp", "extreme", "whole"]

Range = tuple[Fraction, Fraction]


def arithmetic(node: ex.Arithmetic, of: FactsOf) -> Facts:
    """Sums, differences, products, quotients and remainders."""
    left, right = (number(x, of, node) for x in (node.left, node.right))
    (a, b), (c, d) = bounded(left, node.left), bounded(right, node.right)
    integers = left.kind is right.kind is Kind.INTEGER
    nullable = left.nullable or right.nullable
    kind = Kind.INTEGER if integers else Kind.REAL
    step: Fraction | None
    match node.op:
        case "+":
            ends, step = (a + c, b + d), common_step((left.step, right.step))
        case "-":
            ends, step = (a - d, b - c), common_step((left.step, right.step))
        case "*":
            ends = _product((a, b), (c, d), same=node.left == node.right)
            step = None
            if left.step is not None and right.step is not None:
                step = _spacing(left) * _spacing(right)
        case "/":
            return _quotient(node, left, right)
        case "//" | "%" if integers:
            ends = (_whole_quotient if node.op == "//" else _remainder)((a, b), (c, d))
            step, nullable = Fraction(1), nullable or c <= 0 <= d
        case "//" | "%":
            raise QueryError(f"{show(node)}: {node.op} is of two integers; use FLOOR(x / y)")
        case _:
            raise UnsupportedError(f"operator {node.op!r} is not offered")
    return checked(Facts(kind, *ends, None, step, nullable), node)


def _spacing(facts: Facts) -> Fraction:
    """What a factor's values are multiples of: itself, where it is a constant integer."""
    if facts.kind is Kind.INTEGER and facts.range is not None and facts.lower == facts.upper:
        return abs(facts.range[0]) or Fraction(1)
    return facts.step or Fraction(1)


def _product(left: Range, right: Range, *, same: bool) -> Range:
    products = [x * y for x in left for y in right]
    if same:  # a square
        squares = [x * x for x in left]
        return Fraction(0) if left[0] <= 0 <= left[1] else min(squares), max(squares)
    return min(products), max(products)


def _quotient(node: ex.Arithmetic, left: Facts, right: Facts) -> Facts:
    low, high = bounded(right, node.right)
    nullable = left.nullable or right.nullable or low <= 0 <= high
    if low <= 0 <= high and right.kind is not Kind.INTEGER and low < high:
        # A divisor may come as near to zero as it likes.
        return Facts(Kind.REAL, nullable=nullable)
    divisors = _divisors(low, high)
    if not divisors:
        return Facts(Kind.REAL, Fraction(0), Fraction(0), nullable=True)
    ends = [t / d for t in bounded(left, node.left) for d in divisors]
    step = left.step / abs(low) if left.step is not None and low == high else None
    return checked(Facts(Kind.REAL, min(ends), max(ends), None, step, nullable), node)


def _whole_quotient(top: Range, bottom: Range) -> Range:
    ends = [Fraction(int(t / d)) for t in top for d in _divisors(*bottom)]
    return (min(ends), max(ends)) if ends else (Fraction(0), Fraction(0))


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


def absolute(node: ex.Absolute, of: FactsOf) -> Facts:
    """``ABS``."""
    facts = number(node.operand, of, node)
    low, high = bounded(facts, node.operand)
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return replace(facts, lower=least, upper=max(abs(low), abs(high)), domain=None)


def whole(node: ex.Floor | ex.Ceil, of: FactsOf) -> Facts:
    """``FLOOR`` and ``CEIL``: integers."""
    facts = number(node.operand, of, node)
    if facts.kind is Kind.INTEGER:
        return facts
    low, high = bounded(facts, node.operand)
    turn = floor if isinstance(node, ex.Floor) else ceil
    ends = Fraction(turn(low)), Fraction(turn(high))
    return checked(Facts(Kind.INTEGER, *ends, None, Fraction(1), facts.nullable), node)


def extreme(node: ex.Least | ex.Greatest, of: FactsOf) -> Facts:
    """``LEAST`` and ``GREATEST``, which skip NULL."""
    parts = [number(x, of, node) for x in node.operands]
    if not parts:
        raise QueryError(f"{show(node)}: needs at least one argument")
    kind = unite_kinds([p.kind for p in parts], node)
    sign = 1 if isinstance(node, ex.Least) else -1
    # Read with the sign turned, GREATEST is LEAST: far is the side that any operand may reach,
    # near the side where an operand that is never NULL holds the result.
    far = [_end(p, -sign) for p in parts]
    near = [_end(p, sign) for p in parts]
    held = [e for p, e in zip(parts, near, strict=True) if e is not None and not p.nullable]
    out = _least(far, sign)
    back = _least(held, sign) if held else _least(near, -sign)
    lower, upper = (out, back) if sign > 0 else (back, out)
    step = common_step(p.step for p in parts)
    return Facts(kind, lower, upper, None, step, all(p.nullable for p in parts))


def _end(facts: Facts, sign: int) -> Fraction | None:
    end = facts.upper if sign > 0 else facts.lower
    return end if isinstance(end, Fraction) else None


def _least(ends: list[Fraction | None] | list[Fraction], sign: int) -> Fraction | None:
    known = [e for e in ends if e is not None]
    if len(known) < len(ends):
        return None
    return min(known) if sign > 0 else max(known)


def clamp(node: ex.Clamp, of: FactsOf) -> Facts:
    """``CLAMP``: bounds that the query itself states."""
    facts = number(node.operand, of, node)
    if node.lower > node.upper:
        raise BoundsError(f"{show(node)}: the lower bound is above the upper one")
    low, high = node.lower, node.upper
    if facts.kind is Kind.INTEGER and (low.denominator != 1 or high.denominator != 1):
        raise BoundsError(f"{show(node)}: an integer is clamped to whole bounds")
    # A bound that moves values adds itself to the lattice.
    moved = [low, high]
    if facts.range is not None:
        low = min(max(low, facts.range[0]), high)
        high = max(min(high, facts.range[1]), low)
        moved = [
            bound
            for bound, moves in (
                (node.lower, facts.range[0] < node.lower),
                (node.upper, facts.range[1] > node.upper),
            )
            if moves
        ]
    step = common_step((facts.step, *map(abs, moved)))
    return checked(Facts(facts.kind, low, high, None, step, facts.nullable), node)


def bin_number(node: ex.Bin, of: FactsOf) -> Facts:
    """A bin's number, NULL outside all bins."""
    facts = number(node.operand, of, node)
    if len(node.edges) < 2 or any(a >= b for a, b in zip(node.edges, node.edges[1:], strict=False)):
        raise QueryError(f"{show(node)}: needs at least two edges, each above the one before")
    first, last = node.edges[0], node.edges[-1]
    inside = facts.range is not None and first <= facts.range[0] and facts.range[1] <= last
    bins = Fraction(len(node.edges) - 2)
    nullable = facts.nullable or not inside
    return Facts(Kind.INTEGER, Fraction(0), bins, None, Fraction(1), nullable)
