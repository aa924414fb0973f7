"""Arguments of losses: numbers as doubles, on the side of what is promised, and counts."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

from dither.errors import ArgumentError
from dither.numeric import exact, float_down

__all__ = ["exactly", "number", "promised", "whole"]

_MOST = 10**18


def number(name: str, value: Any, *, low: float, high: float, closed: str = "neither") -> float:
    """A finite argument in a range, as a double, or an error that names it."""
    ends = {
        "neither": ("above", "below"),
        "low": ("at least", "below"),
        "high": ("above", "at most"),
        "both": ("at least", "at most"),
    }[closed]
    wanted = f"{name} must be a number {ends[0]} {low:g}" + (
        f" and {ends[1]} {high:g}" if math.isfinite(high) else " and finite"
    )
    if isinstance(value, bool | str | bytes | bytearray | memoryview) or value is None:
        raise ArgumentError(wanted)
    if _truth_value(value) or _array(value):
        raise ArgumentError(wanted)
    try:
        x = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(wanted) from error
    fits_low = x >= low if ends[0] == "at least" else x > low
    fits_high = x <= high if ends[1] == "at most" else x < high
    if not (math.isfinite(x) and fits_low and fits_high):
        raise ArgumentError(wanted)
    return x


def promised(name: str, value: Any, *, low: float, high: float, closed: str = "neither") -> float:
    """As `number`, for what is promised: a rational between two doubles is rounded down."""
    x = number(name, value, low=low, high=high, closed=closed)
    if isinstance(value, Rational):
        x = number(name, float_down(Fraction(value)), low=low, high=high, closed=closed)
    return x


def exactly(value: Any) -> Fraction:
    """A number that `number` took, exactly: a float as it prints, all others as they are."""
    return exact(value if isinstance(value, Rational | Decimal) else float(value), "value")


def whole(name: str, value: Any, low: int, *, most: int = _MOST, instead: str = "") -> int:
    """An integer argument of at least ``low``, and small enough for doubles to count with."""
    wanted = f"{name} must be an integer of at least {low}"
    if isinstance(value, bool) or _truth_value(value) or _array(value):
        raise ArgumentError(wanted)
    try:
        n = operator.index(value)
    except TypeError as error:
        raise ArgumentError(wanted) from error
    if n < low:
        raise ArgumentError(wanted)
    if n > most:
        raise ArgumentError(f"{name} must be at most {_power(most)}" + instead)
    return n


def _power(value: int) -> str:
    exponent = len(str(value)) - 1
    return f"10**{exponent}" if value == 10**exponent and exponent > 6 else f"{value:,}"


def _array(value: Any) -> bool:
    """Whether it has dimensions: one item of an array is no number."""
    return bool(getattr(value, "ndim", 0))


def _truth_value(value: Any) -> bool:
    """Whether numpy calls it one: its ``True`` would pass for 1."""
    return getattr(getattr(value, "dtype", None), "kind", "") == "b"
