"""Searches: the one copy that every room uses.

A search bisects a predicate that is false first and true from some point on, and returns both ends
of what is left: the caller takes the end at which their statement is safe.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

__all__ = [
    "bisect",
    "bisect_arrays",
    "false_position",
    "greatest_decimal",
    "least_decimal",
    "least_integer",
]

Floats = npt.NDArray[np.float64]
Real = TypeVar("Real", float, Fraction)


def bisect(
    turned: Callable[[Real], bool],
    low: Real,
    high: Real,
    width: float = 0.0,
    *,
    steps: int = 100,
) -> tuple[Real, Real]:
    """Close in on where a predicate turns true, between a point before and a point after.

    Parameters
    ----------
    turned : callable
        False first, true from some point on. It is not asked about the two ends.
    low, high : float or Fraction
        Where it is false, and where it is true; Fractions stay exact.
    width : float
        Stop once the ends are so close.
    steps : int
        How often to halve at the most; doubles also end where nothing lies between them.

    Returns
    -------
    (low, high)
        The last point at which it was false and the first at which it was true.

    Examples
    --------
    >>> low, high = bisect(lambda x: x * x >= 2, 1.0, 2.0)
    >>> low * low < 2 <= high * high, high - low < 1e-15
    (True, True)
    >>> bisect(lambda x: 3 * x >= 1, Fraction(0), Fraction(1), steps=4)
    (Fraction(5, 16), Fraction(3, 8))
    """
    for _ in range(steps):
        middle = (low + high) / 2
        if high - low <= width or middle in (low, high):
            break
        if turned(middle):
            high = middle
        else:
            low = middle
    return low, high


def false_position(
    over: Callable[[float], float],
    low: float,
    high: float,
    ends: tuple[float, float],
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
    steps: int = 100,
) -> tuple[float, float]:
    """As `bisect`, where a falling function passes 0, by its values: Illinois' rule.

    Parameters
    ----------
    over : callable
        Above 0 first, at most 0 from some point on.
    low, high : float
        Where it is above 0, and where it is not. Both are only ever moved to places that were
        asked, so that they stay proved.
    ends : (float, float)
        Its values there. While one is infinite the interval is halved.
    relative, absolute : float
        Stop once the ends are within that part of the upper one, or as close as that: it decides
        how wide an answer is. No step is shorter than a fifth of either.
    steps : int
        How many at the most.

    Returns
    -------
    (low, high)

    Examples
    --------
    >>> low, high = false_position(lambda x: 2 - x * x, 1.0, 2.0, (1.0, -2.0), relative=1e-12)
    >>> low * low < 2 <= high * high, high - low < 1e-11
    (True, True)
    """
    (f_low, f_high), side = ends, 0
    for _ in range(steps):
        close = max(absolute, relative * abs(high))
        if high - low <= close:
            break
        if math.isfinite(f_low) and math.isfinite(f_high) and f_low > f_high:
            at = high - f_high * (high - low) / (f_high - f_low)
            at = min(max(at, low + 0.2 * close), high - 0.2 * close)
        else:
            at = (low + high) / 2
        value = over(at)
        # An end that stays is halved, so that the next step lands beyond the root.
        if value <= 0:
            high, f_high, f_low = at, value, f_low / 2 if side < 0 else f_low
            side = -1
        else:
            low, f_low, f_high = at, value, f_high / 2 if side > 0 else f_high
            side = 1
    return low, high


def bisect_arrays(
    turned: Callable[[Floats], npt.NDArray[np.bool_]], low: Floats, high: Floats, *, steps: int = 60
) -> tuple[Floats, Floats]:
    """As `bisect`, for many predicates side by side.

    Examples
    --------
    >>> squares = np.array([4.0, 9.0])
    >>> bisect_arrays(lambda x: x * x >= squares, np.zeros(2), np.full(2, 10.0))[1].round(9)
    array([2., 3.])
    """
    for _ in range(steps):
        middle = (low + high) / 2
        after = turned(middle)
        low, high = np.where(after, low, middle), np.where(after, middle, high)
    return low, high


@overload
def least_integer(turned: Callable[[int], bool], least: int = 0, *, step: int = 1) -> int: ...
@overload
def least_integer(
    turned: Callable[[int], bool], least: int = 0, *, step: int = 1, most: int
) -> int | None: ...
def least_integer(
    turned: Callable[[int], bool], least: int = 0, *, step: int = 1, most: int | None = None
) -> int | None:
    """The least integer, of at least ``least``, for which a predicate that turns true is true.

    Parameters
    ----------
    turned : callable
        False first, true from some integer on.
    least : int
        Where to begin.
    step : int
        The first stride upwards, which doubles until the predicate is true.
    most : int, optional
        Where to give up.

    Returns
    -------
    int or None
        None where the predicate is false up to ``most``.

    Examples
    --------
    >>> least_integer(lambda n: n * n >= 1000), least_integer(lambda n: n >= 9, most=8)
    (32, None)
    """
    low, high = least - 1, least
    while not turned(high):
        if most is not None and high >= most:
            return None
        low, high, step = high, high + step, 2 * step
        if most is not None:
            high = min(high, most)
    return _between(turned, low, high)


def _between(turned: Callable[[int], bool], low: int, high: int) -> int:
    """The least integer at which it is true, where it is false at low and true at high."""
    while high - low > 1:
        middle = (low + high) // 2
        if turned(middle):
            high = middle
        else:
            low = middle
    return high


def least_decimal(
    turned: Callable[[Fraction], bool], low: Fraction, high: Fraction
) -> Fraction | None:
    """The least decimal of three significant digits for which a predicate that turns true is true.

    Parameters
    ----------
    turned : callable
        False first, true from some number on.
    low, high : Fraction
        Where to look, above 0.

    Returns
    -------
    Fraction or None
        None where the predicate is false at ``high``, or there is no such decimal in between.

    Examples
    --------
    >>> least_decimal(lambda x: x * x >= 2, Fraction(1), Fraction(9))
    Fraction(71, 50)
    """
    first, last = _place(low, up=True), _place(high, up=False)
    if last < first or not turned(_decimal(last)):
        return None
    return _decimal(_between(lambda i: turned(_decimal(i)), first - 1, last))


def greatest_decimal(
    fits: Callable[[Fraction], bool], low: Fraction, high: Fraction
) -> Fraction | None:
    """The greatest decimal of three significant digits for which a predicate is still true.

    Parameters
    ----------
    fits : callable
        True first, false from some number on.
    low, high : Fraction
        Where to look, above 0.

    Returns
    -------
    Fraction or None
        None where the predicate is false at ``low``, or there is no such decimal in between.

    Examples
    --------
    >>> greatest_decimal(lambda x: 3 * x <= 1, Fraction(1, 1000), Fraction(100))
    Fraction(333, 1000)
    """
    first, last = _place(low, up=True), _place(high, up=False)
    if last < first or not fits(_decimal(first)):
        return None
    return _decimal(_between(lambda i: not fits(_decimal(i)), first, last + 1) - 1)


def _decimal(index: int) -> Fraction:
    exponent, digits = divmod(index, 900)
    return (digits + 100) * Fraction(10) ** exponent


def _place(value: Fraction, *, up: bool) -> int:
    """The grid point next to a value: the least not below it, or the greatest not above it."""
    # Off by one at most, since the lengths in bits are; the loops put it right.
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    exponent = math.floor(bits * math.log10(2)) - 2
    while value < 100 * Fraction(10) ** exponent:
        exponent -= 1
    while value >= 1000 * Fraction(10) ** exponent:
        exponent += 1
    scaled = value / Fraction(10) ** exponent
    return exponent * 900 + (math.ceil(scaled) if up else math.floor(scaled)) - 100
