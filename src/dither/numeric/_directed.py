"""Directed rounding: bounds of exp, log and sqrt at rationals, and the doubles around a rational.

A guarantee quotes the side that errs towards caution, so every function here says which side it
is on. Nothing is rounded to nearest.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dither.errors import ArgumentError

__all__ = [
    "binary_size",
    "exp_lower",
    "exp_upper",
    "float_down",
    "float_up",
    "log_lower",
    "log_upper",
    "shortened",
    "sqrt_lower",
    "sqrt_upper",
]

# mpmath's interval ends are taken with 32 guard bits and then moved outwards by 2**-bits of
# themselves: the bound holds even if mpmath were wrong by four thousand million units in its
# last place.
_GUARD = 32

# exp(±2**17) has 189,000 bits; beyond it a bound by monotony is enough and stays small.
_EXP_REACH = Fraction(1 << 17)


def exp_lower(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at most exp(x).

    Parameters
    ----------
    x : Fraction
        The exponent, at most 2**17. Below -2**17 the bound is 0.
    bits : int
        Relative tightness: the result is above exp(x)·(1 − 2**(2 − bits)) for |x| ≤ 2**17.

    Returns
    -------
    Fraction
        A lower bound, ≥ 0; exactly 1 at x = 0.

    Raises
    ------
    ArgumentError
        If x is above 2**17.

    Examples
    --------
    >>> exp_lower(Fraction(1)) < exp_upper(Fraction(1))
    True
    >>> float(exp_upper(Fraction(1)) - exp_lower(Fraction(1))) < 1e-37
    True
    """
    if x == 0:
        # Exactly, so that what costs nothing is charged nothing.
        return Fraction(1)
    _check_exponent(x)
    if x < -_EXP_REACH:
        return Fraction(0)
    return _outwards(_interval("mpi_exp", x, bits), bits)[0]


def exp_upper(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at least exp(x).

    Parameters
    ----------
    x : Fraction
        The exponent, at most 2**17. Below -2**17 the bound is that of exp(-2**17).
    bits : int
        Relative tightness: the result is below exp(x)·(1 + 2**(2 − bits)) for |x| ≤ 2**17.

    Returns
    -------
    Fraction
        An upper bound; exactly 1 at x = 0.

    Raises
    ------
    ArgumentError
        If x is above 2**17.

    Examples
    --------
    >>> float(exp_upper(Fraction(1)))
    2.718281828459045
    """
    if x == 0:
        return Fraction(1)
    _check_exponent(x)
    # exp rises, so that its bound at -2**17 holds for every x below.
    return _outwards(_interval("mpi_exp", max(x, -_EXP_REACH), bits), bits)[1]


def log_lower(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at most log(x), x > 0.

    Parameters
    ----------
    x : Fraction
        Above 0.
    bits : int
        Working precision; close to 1 the logarithm's own size is what the error is relative to.

    Returns
    -------
    Fraction
        A lower bound; exactly 0 at x = 1.

    Raises
    ------
    ArgumentError
        If x is not above 0.

    Examples
    --------
    >>> log_lower(Fraction(2)) < log_upper(Fraction(2))
    True
    """
    return _log(x, bits)[0]


def log_upper(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at least log(x), x > 0; see `log_lower`.

    Parameters
    ----------
    x : Fraction
        Above 0.
    bits : int
        Working precision.

    Returns
    -------
    Fraction
        An upper bound; exactly 0 at x = 1.

    Raises
    ------
    ArgumentError
        If x is not above 0.

    Examples
    --------
    >>> float(log_upper(Fraction(2)))
    0.6931471805599453
    """
    return _log(x, bits)[1]


def sqrt_lower(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at most sqrt(x), x ≥ 0.

    Parameters
    ----------
    x : Fraction
        At least 0.
    bits : int
        Relative tightness: within 2**(1 − bits) of sqrt(x); exact where the root is rational.

    Returns
    -------
    Fraction
        A lower bound, by integer square root alone.

    Raises
    ------
    ArgumentError
        If x is below 0.

    Examples
    --------
    >>> sqrt_lower(Fraction(9, 4)), sqrt_upper(Fraction(9, 4))
    (Fraction(3, 2), Fraction(3, 2))
    """
    root, denominator, _ = _sqrt(x, bits)
    return Fraction(root, denominator)


def sqrt_upper(x: Fraction, bits: int = 128) -> Fraction:
    """Return a rational that is at least sqrt(x), x ≥ 0; see `sqrt_lower`.

    Parameters
    ----------
    x : Fraction
        At least 0.
    bits : int
        Relative tightness.

    Returns
    -------
    Fraction
        An upper bound, by integer square root alone.

    Raises
    ------
    ArgumentError
        If x is below 0.

    Examples
    --------
    >>> sqrt_upper(Fraction(2)) ** 2 >= 2
    True
    """
    root, denominator, whole = _sqrt(x, bits)
    # The integer root is rounded down: one more is above, unless it is the root itself.
    return Fraction(root if whole else root + 1, denominator)


def float_up(x: Fraction) -> float:
    """Return the smallest double that is at least x.

    Parameters
    ----------
    x : Fraction
        Any rational.

    Returns
    -------
    float
        ``inf`` where x is above every finite double.

    Examples
    --------
    >>> float_up(Fraction(1, 10)) >= Fraction(1, 10) > float_down(Fraction(1, 10))
    True
    """
    try:
        # Integers divide with one rounding, to nearest: the double is next to x on one side or the
        # other.
        near = x.numerator / x.denominator
    except OverflowError:
        # Below all doubles the least one is the smallest that is at least x.
        return math.inf if x > 0 else -sys.float_info.max
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def float_down(x: Fraction) -> float:
    """Return the largest double that is at most x.

    Parameters
    ----------
    x : Fraction
        Any rational.

    Returns
    -------
    float
        ``-inf`` where x is below every finite double.

    Examples
    --------
    >>> float_down(Fraction(1, 2))
    0.5
    """
    # A difference, as minus 0.0 would be -0.0.
    return 0.0 - float_up(-x)


def binary_size(x: Fraction) -> int:
    """Return how many bits the numerator has more than the denominator: log2(x), within 1.

    Examples
    --------
    >>> binary_size(Fraction(1000)), binary_size(Fraction(1, 1000))
    (9, -9)
    """
    return abs(x.numerator).bit_length() - x.denominator.bit_length()


def shortened(x: Fraction, bits: int, *, up: bool) -> Fraction:
    """Return x rounded up, or down, to so many significant bits.

    Parameters
    ----------
    x : Fraction
        Any rational.
    bits : int
        How many to keep, or one more.
    up : bool
        In which direction.

    Returns
    -------
    Fraction
        A short one: rationals that become parameters of samplers, or are stored, should be.

    Examples
    --------
    >>> shortened(Fraction(1, 3), 4, up=True), shortened(Fraction(1, 3), 4, up=False)
    (Fraction(11, 32), Fraction(5, 16))
    """
    if x == 0:
        return x
    # A power of two within a bit of x's own last place that is kept.
    unit = Fraction(2) ** (binary_size(x) - bits)
    return (-((-x) // unit) if up else x // unit) * unit


def _check_exponent(x: Fraction) -> None:
    if x > _EXP_REACH:
        raise ArgumentError("x must be at most 2**17 for exp")


def _log(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    if x <= 0:
        raise ArgumentError("x must be above 0 for log")
    if x == 1:
        return Fraction(0), Fraction(0)
    # Next to 1 rounding x itself would swamp log(x); the extra bits keep the result's own digits.
    gap = abs(x - 1)
    near = max(0, gap.denominator.bit_length() - gap.numerator.bit_length() + 1)
    return _outwards(_interval("mpi_log", x, bits + near), bits)


def _sqrt(x: Fraction, bits: int) -> tuple[int, int, bool]:
    if x < 0:
        raise ArgumentError("x must be at least 0 for sqrt")
    # sqrt(p/q) = sqrt(p·q)/q, scaled by a power of four so that the root has `bits` bits.
    product = x.numerator * x.denominator
    shift = max(0, bits - product.bit_length() // 2)
    scaled = product << (2 * shift)
    root = math.isqrt(scaled)
    return root, x.denominator << shift, root * root == scaled


# Kept once, as whoever asks for one end most often asks for the other.
@lru_cache(maxsize=1)
def _interval(function: str, x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    # mpmath's functional layer takes its precision as an argument; the `iv` context would keep it
    # in a global that other threads may change.
    from mpmath import libmp

    precision = bits + _GUARD
    argument = (
        # Rounded down for the lower end and up for the upper, far below the digits that are asked
        # for.
        libmp.from_rational(x.numerator, x.denominator, precision + 20, "f"),
        libmp.from_rational(x.numerator, x.denominator, precision + 20, "c"),
    )
    low, high = getattr(libmp, function)(argument, precision)
    return _fraction(low), _fraction(high)


def _fraction(number: Any) -> Fraction:
    sign, mantissa, exponent, _ = number
    value = Fraction(int(mantissa)) * (
        Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)
    )
    return -value if sign else value


def _outwards(interval: tuple[Fraction, Fraction], bits: int) -> tuple[Fraction, Fraction]:
    low, high = interval
    return low - abs(low) / (1 << bits), high + abs(high) / (1 << bits)
