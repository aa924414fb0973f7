"""What every mechanism that adds integer noise offers, whatever its law."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["AdditiveNoise", "Integers", "check_amount"]

Integers = npt.NDArray[np.int64]


_MOST_DRAWS = 10**9


@runtime_checkable
class AdditiveNoise(Protocol):
    """Symmetric integer noise Z, drawn afresh for each coordinate of an integer vector.

    The law is fixed by one exact rational parameter: the one that the sampler uses is the one that
    the loss is computed from.
    """

    def draw(self, size: int | tuple[int, ...]) -> Integers:
        """Draw noise from the operating system's randomness."""
        ...

    @property
    def variance(self) -> float:
        """Var Z of the discrete law itself."""
        ...

    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]."""
        ...

    def tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[|Z| >= t]."""
        ...

    def survival(self, t: int) -> float:
        """Pr[Z >= t] in floating point: for error bars and odds, never for a guarantee."""
        ...

    def half_width(self, confidence: float) -> int:
        """The smallest integer w with Pr[|Z| <= w] >= confidence."""
        ...

    def parameters(self) -> dict[str, str]:
        """The law and its exact parameter as text, for certificates."""
        ...


def check_amount(name: str, value: Fraction | int, *, zero: bool = False) -> Fraction:
    """An exact positive amount (or zero, where allowed) as a Fraction."""
    wanted = "of at least 0" if zero else "above 0"
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise ArgumentError(f"{name} must be an int or a Fraction {wanted}, so that it is exact")
    if value < 0 or (value == 0 and not zero):
        raise ArgumentError(f"{name} must be {wanted}")
    return Fraction(value)


def shape_of(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """A size as a shape, of at most a billion draws."""
    shape = size if isinstance(size, tuple) else (size,)
    if math.prod(shape) > _MOST_DRAWS:
        raise ArgumentError("size must be at most 10**9 draws at once; draw in parts")
    return shape


def smallest_half_width(noise: AdditiveNoise, confidence: float, guess: int) -> int:
    """Walk from a good guess to the smallest w with 2·Pr[Z >= w + 1] <= 1 - confidence."""
    outside = 1.0 - confidence
    width = max(0, guess)
    while width > 0 and 2 * noise.survival(width) <= outside:
        width -= 1
    while 2 * noise.survival(width + 1) > outside:
        width += 1
    return width


def log_of(value: Fraction) -> float:
    """The natural logarithm of a positive Fraction of any size, in floating point."""
    return math.log(value.numerator) - math.log(value.denominator)
