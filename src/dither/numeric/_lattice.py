"""Lattices: the public grid of multiples of a rational step on which every real is an integer."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from dither._checks import exact, positive
from dither.errors import ArgumentError

__all__ = ["Lattice", "common"]

# Up to here every integer is a double.
_EXACT_DOUBLE = 1 << 53


@dataclass(frozen=True, slots=True)
class Lattice:
    """The multiples of a step.

    Parameters
    ----------
    step : Fraction
        The distance between neighbouring points, above 0. A float is read as it
        prints; held as a Fraction.

    Raises
    ------
    ArgumentError
        If the step is not above 0.

    Examples
    --------
    >>> cents = Lattice(Fraction(1, 100))
    >>> cents.to_integer("12.345"), cents.floor("12.345"), cents.ceil("12.345")
    (1234, 1234, 1235)
    >>> cents.to_float(1234)
    12.34
    """

    step: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", positive("step", self.step))

    def to_integer(self, value: Any) -> int:
        """Return the index of the point nearest to a value; a tie goes to the even index.

        Parameters
        ----------
        value : int, Fraction, Decimal, float or str
            A float is read as it prints.

        Returns
        -------
        int
            The index: the point is index × step.
        """
        return round(exact("value", value) / self.step)

    def floor(self, value: Any) -> int:
        """Return the index of the last point at or below a value."""
        return math.floor(exact("value", value) / self.step)

    def ceil(self, value: Any) -> int:
        """Return the index of the first point at or above a value."""
        return math.ceil(exact("value", value) / self.step)

    def contains(self, value: Fraction) -> bool:
        """Return whether a value is a point of the lattice."""
        return (exact("value", value) / self.step).denominator == 1

    @overload
    def to_float(self, integers: int) -> float: ...
    @overload
    def to_float(self, integers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]: ...
    def to_float(self, integers: int | npt.NDArray[np.int64]) -> float | npt.NDArray[np.float64]:
        """Return the points of given indices as correctly rounded doubles.

        Parameters
        ----------
        integers : int or array of int
            Indices, of any shape.

        Returns
        -------
        float or array of float64
            index × step, each rounded once, to nearest; the same shape.

        Raises
        ------
        ArgumentError
            If the indices are not integers, or a point is beyond the largest double.
        """
        above, below = self.step.numerator, self.step.denominator
        if not isinstance(integers, np.ndarray):
            return _divide(int(exact("integers", integers)) * above, below)
        if integers.dtype.kind not in "iu":
            raise ArgumentError("integers must be an array of an integer type")
        largest = max(abs(int(integers.max())), abs(int(integers.min()))) if integers.size else 0
        if largest * above <= _EXACT_DOUBLE and below <= _EXACT_DOUBLE:
            # Both operands are exact doubles, so the division is the only rounding.
            points: npt.NDArray[np.float64] = integers.astype(np.float64) * float(above)
            points /= float(below)
            return points
        flat = [_divide(int(i) * above, below) for i in integers.ravel()]
        return np.array(flat, dtype=np.float64).reshape(integers.shape)


def common(steps: Iterable[Any]) -> Lattice:
    """Return the coarsest lattice that contains the points of several.

    Parameters
    ----------
    steps : iterable of Fraction
        Steps, each above 0; at least one.

    Returns
    -------
    Lattice
        Its step is the greatest common divisor of the steps as rationals.

    Raises
    ------
    ArgumentError
        If there is no step, or one is not above 0.

    Examples
    --------
    >>> common([Fraction(1, 4), Fraction(1, 6)]).step
    Fraction(1, 12)
    """
    fractions = [positive("steps", step) for step in steps]
    if not fractions:
        raise ArgumentError("steps must hold at least one step")
    return Lattice(
        Fraction(
            # Of fractions in lowest terms, as these are, that is their greatest common divisor.
            math.gcd(*(f.numerator for f in fractions)),
            math.lcm(*(f.denominator for f in fractions)),
        )
    )


def _divide(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # integers divide with one rounding, to nearest
    except OverflowError:
        raise ArgumentError("integers must give points within the range of a double") from None
