"""Losses that are known to all digits: rationals, and logarithms with directed rounding.

A double that came as an argument is read as it prints, so that ten times ``pure(0.1)`` is 1. What
stands for it in a result is the nearest double that prints as a number on its safe side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from dither.numeric import exp_lower, exp_upper, log_lower, log_upper, sqrt_upper

__all__ = [
    "Amount",
    "Ends",
    "mixed",
    "mixed_away",
    "printed",
    "printing_at_least",
    "printing_at_most",
    "ratio",
    "root",
    "rounded",
    "total",
    "written",
]


Ends = tuple[Fraction, Fraction]
"""Rationals around a number; equal where it is rational itself."""

Amount = Fraction | float
"""A rational, or infinity."""

_LARGE = 1000
"""Losses whose e^-loss is below 1e-434: what a rate of any double adds to it is not a double."""


def printed(x: float) -> Fraction:
    """The rational that the double prints as."""
    return Fraction(float.__repr__(float(x)))


def printing_at_least(x: Fraction) -> float:
    """The double next to x that prints as x or more."""
    try:
        near = float(x)
    except OverflowError:
        return math.inf
    # What counts is the decimal that a double prints as: that is what is read back.
    return near if printed(near) >= x else math.nextafter(near, math.inf)


def printing_at_most(x: Fraction) -> float:
    """The double next to x that prints as x or less."""
    # A difference, as minus 0.0 would be -0.0.
    return 0.0 - printing_at_least(-x)


def rounded(x: Fraction) -> tuple[float, Fraction | None]:
    """The double that x prints as; or, where none does, the one below, and x."""
    down = printing_at_most(x)
    return down, None if printed(down) == x else x


def written(x: float, rational: Fraction | None) -> Fraction:
    """What `rounded` was given."""
    return printed(x) if rational is None else rational


def total(found: Iterable[tuple[Ends | None, int]]) -> Ends | None:
    """The sum of numbers that many times; None where one is."""
    lows, highs = [], []
    for ends, count in found:
        if ends is None:
            return None
        lows.append(count * ends[0])
        highs.append(count * ends[1])
    low = _sum(lows)
    # Where every part is rational so is the sum, and both ends are one.
    return low, low if lows == highs else _sum(highs)


def _sum(found: list[Fraction]) -> Fraction:
    """By halves: the denominator grows with each number, so that few sums are of long ones."""
    while len(found) > 1:
        found = [sum(found[i : i + 2], Fraction(0)) for i in range(0, len(found), 2)]
    return found[0] if found else Fraction(0)


def root(square: Amount) -> Amount:
    """The square root, rounded up."""
    return sqrt_upper(square) if isinstance(square, Fraction) else math.sqrt(square)


def ratio(p: Fraction, q: Fraction) -> Ends:
    """log(p/q)."""
    return log_lower(p / q), log_upper(p / q)


def mixed(loss: Ends, g: Fraction) -> Ends:
    """log(1 + g·(e^loss - 1)): the largest loss of a sample, from that of what is sampled."""
    low, high = loss
    return _mixed(low, g)[0], _mixed(high, g)[1]


def mixed_away(loss: Ends | None, g: Fraction) -> Ends | None:
    """-log(1 + g·(e^-loss - 1)), the same in the other direction; of None, an infinite loss."""
    if loss is None:
        return (-log_upper(1 - g), -log_lower(1 - g)) if g < 1 else None
    low, high = loss
    # The map falls in -loss: ends change places.
    return -_mixed(-low, g)[1], -_mixed(-high, g)[0]


# Most often both ends are of one loss.
@lru_cache(maxsize=1)
def _mixed(x: Fraction, g: Fraction) -> Ends:
    if x == 0 or g == 1:
        return x, x
    if x > _LARGE:
        # The rest, log(1 + (1 - g)/(g·e^x)), is below (1/g)·2^-1442.
        return x + log_lower(g), x + log_upper(g) + 1 / (g * (1 << 1442))
    if x < -_LARGE:
        # log(1 - g + g·e^x) lies between its value at the floor and that at a larger x.
        x, low = -Fraction(_LARGE), 1 - g
    else:
        low = None
    # So many bits that e^x - 1 has a hundred left where x and g are small.
    bits = 128 + x.denominator.bit_length() + g.denominator.bit_length()
    bits = min(bits, 4096)
    ends = 1 + g * (exp_lower(x, bits) - 1), 1 + g * (exp_upper(x, bits) - 1)
    return log_lower(ends[0] if low is None else low, bits), log_upper(ends[1], bits)
