"""Functions of numbers: what they mean in doubles, and between which ends their values lie.

Reals are doubles. Sums, products and quotients of them, and square roots, are the same on every
machine; logarithms and powers are not, and libraries differ in their last digits. So those are
rounded to 44 of the 53 bits, some 13 digits: LOG10(1000) is 3, on every engine. What is left is a
chance of about 1 in 1,000 that a last digit, 2^-44 of the value, differs between two engines where
their libraries do. No privacy rests on it: whatever the digit, it is a function of the row alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.facts.ranges import LONGEST_LIST, Facts, Range
from dither.plan.functions._signature import (
    Option,
    Signature,
    called,
    in_64_bits,
    number,
    whole_option,
)
from dither.plan.schema import Kind

__all__ = ["LARGEST", "MOST_EXPONENT", "NUMBERS", "SPLITTER", "WHOLE"]

LARGEST = 1e300
"""Logarithms and powers are of finite numbers up to this size; larger ones, and infinity, are
NULL."""

MOST_EXPONENT = 690.0
"""The largest logarithm of a result: e^690 is 7e299."""

SPLITTER = 513.0
"""2^9 + 1: ``c = 513 x; c - (c - x)`` leaves 44 bits of ``x`` (Veltkamp, 1968)."""

WHOLE = 2.0**52
"""Every double from here on is a whole number."""


def half_away(value: float) -> float:
    """The nearest whole number, halves away from zero; the steps are exact in doubles."""
    size = abs(value)
    if size < WHOLE:
        low = float(math.floor(size))
        size = low + 1.0 if size - low >= 0.5 else low
    return math.copysign(size, value)


def short(value: float) -> float:
    """A double to 44 bits."""
    c = value * SPLITTER
    return c - (c - value)


def _outward(value: float, *, up: bool) -> Fraction:
    """A double to 40 bits, up or down: further out than any library's error, and still short."""
    mantissa, exponent = math.frexp(value)
    turn = math.ceil if up else math.floor
    return Fraction(turn(mantissa * 2.0**40)) * Fraction(2) ** (exponent - 40)


def _between(low: float, high: float) -> Range:
    return _outward(low, up=False), _outward(high, up=True)


# --- ROUND --------------------------------------------------------------------------------------


def _round(x: float, places: int) -> float | None:
    """On integers exact; on reals ``half_away(x * 10^places) / 10^places`` in doubles.

    With no places, or fewer, the result is an integer, as that of FLOOR is. A real that is whole
    in those steps already, infinity among them, stays as it is.
    """
    unit = 10 ** abs(places)
    if isinstance(x, int):
        if places >= 0:
            return x
        size = (abs(x) + unit // 2) // unit * unit
        return in_64_bits(size if x > 0 else -size)
    if places > 0:
        scaled = x * float(unit)
        return half_away(scaled) / float(unit) if abs(scaled) < WHOLE else x
    steps = half_away(x / float(unit))
    if not math.isfinite(steps) or in_64_bits(int(steps)) is None:
        return None
    return in_64_bits(int(steps) * unit)


def _rounded(parts: Sequence[Facts], places: int) -> Facts:
    (x,) = parts
    if x.kind is Kind.INTEGER and places >= 0:
        return x
    unit = Fraction(10) ** -places
    ends = None
    if x.range is not None:
        low, high = (_exact_half_away(end / unit) * unit for end in x.range)
        ends = low, high
    kind = Kind.REAL if places > 0 else Kind.INTEGER
    found = number(kind, ends, step=unit, partial=x.nullable)
    if kind is Kind.INTEGER or found.range is None:
        return found
    first, last = (int(end / unit) for end in found.range)
    if last - first >= LONGEST_LIST:
        return found
    return replace(found, domain=tuple(n * unit for n in range(first, last + 1)))


def _exact_half_away(value: Fraction) -> int:
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def _round_words(operands: Sequence[str], places: int) -> str:
    return f"ROUND({operands[0]}{f', {places}' if places else ''})"


# --- roots, logarithms and powers ---------------------------------------------------------------


def _sqrt(x: float) -> float | None:
    return math.sqrt(x) if x >= 0 else None


def _sqrt_facts(parts: Sequence[Facts]) -> Facts:
    (x,) = parts
    ends = None
    if x.range is not None:
        low, high = (math.sqrt(max(float(end), 0.0)) for end in x.range)
        ends = _between(low, high)
    return number(Kind.REAL, ends)


def _log(x: float, base: Fraction | None = None) -> float | None:
    """Of positive numbers; to a base, the quotient of two natural logarithms."""
    if not 0 < x <= LARGEST:
        return None
    return short(math.log(x) if base is None else math.log(x) / math.log(float(base)))


def _log_facts(parts: Sequence[Facts], base: Fraction | None = None) -> Facts:
    (x,) = parts
    if x.range is None or x.range[0] <= 0:
        return number(Kind.REAL, None)
    scale = 1.0 if base is None else math.log(float(base))
    # A range that begins below the smallest double has no logarithm of one to speak of.
    if not float(x.range[0]) > 0:
        return number(Kind.REAL, None)
    low, high = sorted(math.log(float(end)) / scale for end in x.range)
    return number(Kind.REAL, _between(low, high))


def _base(name: str, options: tuple[Option, ...]) -> None:
    (base,) = options if len(options) == 1 else (None,)
    # So far from 1 that the logarithm to it is as exact as the natural one.
    fits = isinstance(base, Fraction) and 1e-300 <= base <= 1e300 and abs(base - 1) >= 1e-9
    if not fits:
        raise QueryError("the base of LOG is a constant that is positive and not 1, nor next to it")


def _exp(x: float) -> float | None:
    if x < -MOST_EXPONENT:
        return 0.0
    return short(math.exp(x)) if x <= MOST_EXPONENT else None


def _exp_facts(parts: Sequence[Facts]) -> Facts:
    (x,) = parts
    if x.range is None or x.range[1] > MOST_EXPONENT:
        return number(Kind.REAL, None)
    low, high = (math.exp(float(end)) if end >= -MOST_EXPONENT else 0.0 for end in x.range)
    return number(Kind.REAL, _between(low, high))


def _power(x: float, y: float) -> float | None:
    """NULL of a negative base with an exponent that is not whole, and of 0 with a negative one."""
    if abs(x) > LARGEST or abs(y) > LARGEST:
        return None
    if x == 0:
        return None if y < 0 else 1.0 if y == 0 else 0.0
    if x < 0 and y != math.floor(y):
        return None
    size = y * math.log(abs(x))
    if size > MOST_EXPONENT:
        return None
    return short(math.pow(x, y)) if size >= -MOST_EXPONENT else 0.0


def _power_facts(parts: Sequence[Facts]) -> Facts:
    x, y = parts
    if x.range is None or y.range is None:
        return number(Kind.REAL, None)
    (low, high), (least, most) = x.range, y.range
    # A power is monotone in its base and in its exponent wherever the base is positive, and so it
    # is extreme at corners. Of other bases only constant exponents have bounds.
    if low <= 0 and (least != most or most < 0):
        return number(Kind.REAL, None)
    corners = [(a, b) for a in (low, high, Fraction(0)) for b in (least, most) if low <= a <= high]
    if low <= 0:
        # Beside a negative base stands nothing, where the exponent is not whole.
        corners = [(a, b) for a, b in corners if a >= 0 or b.denominator == 1]
        corners = corners or [(Fraction(0), most)]
    made = [_power(float(a), float(b)) for a, b in corners]
    known = [value for value in made if value is not None]
    if len(known) < len(made):
        return number(Kind.REAL, None)
    return number(Kind.REAL, _between(min(known), max(known)))


def _signature(name: str, facts: Callable[..., Facts], meaning: Callable[..., object]) -> Signature:
    return Signature(name, ("real",), facts, meaning, called(name.upper()))


NUMBERS = (
    Signature("round", ("number",), _rounded, _round, _round_words, whole_option(-15, 15)),
    _signature("sqrt", _sqrt_facts, _sqrt),
    _signature("ln", _log_facts, _log),
    Signature(
        "log",
        ("real",),
        _log_facts,
        _log,
        lambda operands, base: f"LOG({_shown(base)}, {operands[0]})",
        _base,
    ),
    _signature("exp", _exp_facts, _exp),
    Signature("power", ("real", "real"), _power_facts, _power, called("POWER")),
)


def _shown(base: Fraction) -> str:
    return (
        str(base.numerator) if base.denominator == 1 else f"{base.numerator} / {base.denominator}"
    )
