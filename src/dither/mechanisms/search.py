"""Questions about a budget that have no formula: what would ±w cost, what would still fit.

Answers are decimals of three significant digits, found by bisection on that grid, so that people
can read, say and repeat them. Nothing here touches data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from dither.errors import ArgumentError
from dither.mechanisms._additive import check_amount, log_of
from dither.numeric import check_confidence

__all__ = ["largest_epsilon", "largest_parameter", "least_epsilon", "smallest_epsilon"]


def smallest_epsilon(
    good: Callable[[Fraction], bool],
    low: Fraction = Fraction(1, 1000),
    high: Fraction = Fraction(100),
) -> Fraction | None:
    """The least epsilon of three significant decimal digits for which ``good`` holds.

    Parameters
    ----------
    good : callable
        Monotone: once true it stays true as epsilon grows. For example "the half-width of the
        95 % interval at this epsilon is at most w", which answers what ±w would cost.
    low, high : Fraction
        Where to look.

    Returns
    -------
    Fraction or None
        None where ``good(high)`` is false.

    Examples
    --------
    >>> from dither.mechanisms import DiscreteLaplace
    >>> smallest_epsilon(lambda e: DiscreteLaplace.for_loss(e, l1=1).half_width(0.95) <= 10)
    Fraction(57, 200)
    """
    first, last = _grid_index(low, up=True), _grid_index(high, up=False)
    if last < first or not good(_grid(last)):
        return None
    while first < last:
        middle = (first + last) // 2
        if good(_grid(middle)):
            last = middle
        else:
            first = middle + 1
    return _grid(first)


def largest_epsilon(
    fits: Callable[[Fraction], bool],
    low: Fraction = Fraction(1, 1000),
    high: Fraction = Fraction(100),
) -> Fraction | None:
    """The greatest epsilon of three significant decimal digits for which ``fits`` holds.

    Parameters
    ----------
    fits : callable
        Monotone: once false it stays false as epsilon grows. For example "the account admits this
        release at this epsilon", which answers what would still fit.
    low, high : Fraction
        Where to look.

    Returns
    -------
    Fraction or None
        None where ``fits(low)`` is false.

    Examples
    --------
    >>> largest_epsilon(lambda e: e <= Fraction(1, 3))
    Fraction(333, 1000)
    """
    first, last = _grid_index(low, up=True), _grid_index(high, up=False)
    if last < first or not fits(_grid(first)):
        return None
    while first < last:
        middle = (first + last + 1) // 2
        if fits(_grid(middle)):
            first = middle
        else:
            last = middle - 1
    return _grid(first)


class HasHalfWidth(Protocol):
    """Noise that tells its half-width."""

    def half_width(self, confidence: float) -> float:
        """A w with Pr[|Z| <= w] >= confidence."""
        ...


def least_epsilon(
    name: str,
    most: float | Fraction,
    error: Callable[[Fraction], float],
    *,
    high: Fraction = Fraction(10**4),
) -> Fraction:
    """The least epsilon of three digits whose error is at most ``most``, or a clear refusal.

    Raises
    ------
    ArgumentError
        ``most`` is not a number above 0 (0 is allowed for integer errors), or cannot be reached.
    """
    if isinstance(most, bool) or not isinstance(most, int | float | Fraction) or not most >= 0:
        raise ArgumentError(f"{name} must be a number of at least 0")
    found = smallest_epsilon(lambda e: error(e) <= most, Fraction(1, 10**6), high)
    if found is None:
        raise ArgumentError(f"{name} cannot be reached: allow more, or a lower confidence")
    return found


def largest_parameter(
    name: str,
    most: float | Fraction,
    made: Callable[[Fraction], HasHalfWidth],
    confidence: float,
    high: Fraction,
) -> Fraction:
    """The largest parameter of three digits whose half-width is at most ``most``.

    Raises
    ------
    ArgumentError
        ``most`` is not a number of at least 0, or the confidence is out of range.
    """
    check_confidence(confidence)
    if isinstance(most, bool) or not isinstance(most, int | float | Fraction) or not most >= 0:
        raise ArgumentError(f"{name} must be a number of at least 0")
    found = largest_epsilon(
        lambda p: made(p).half_width(confidence) <= most, Fraction(1, 10**6), high
    )
    if found is None:
        raise ArgumentError(f"{name} cannot be reached: allow more, or a lower confidence")
    return found


def _grid(index: int) -> Fraction:
    exponent, digits = divmod(index, 900)
    return (digits + 100) * Fraction(10) ** exponent


def _grid_index(value: Fraction, *, up: bool) -> int:
    """The grid point next to a value: the least not below it, or the greatest not above it."""
    exponent = math.floor(log_of(check_amount("low and high", value)) / math.log(10)) - 2
    while value < 100 * Fraction(10) ** exponent:  # the logarithm above is rounded
        exponent -= 1
    scaled = value / Fraction(10) ** exponent
    return exponent * 900 + (math.ceil(scaled) if up else math.floor(scaled)) - 100
