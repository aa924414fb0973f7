"""What may come in: arrays, columns and frames as floats, bounds, and what is promised.

A value of the data never decides whether something is refused or warned of, and never stands in a
message. What is not a number (NaN, NULL, a text in a column of objects) is *missing*; an infinity
lies beyond every bound. Only what is public is checked: types, shapes, arguments. Of a plain list,
which has no type, that is whether its rows are equally long: who cannot tell beforehand gives an
array, or a column of a frame.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._columns import doubles, numeric
from dither.errors import ArgumentError
from dither.numeric import float_down, float_up
from dither.privacy import Neighbours
from dither.privacy._promise import as_table_neighbours

__all__ = [
    "Bounds",
    "Floats",
    "Target",
    "around",
    "bounds_of",
    "column",
    "columns",
    "matrix",
    "target",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Target:
    """What a release may cost, and for which neighbours.

    Parameters
    ----------
    epsilon : Fraction
        Above 0.
    delta : Fraction
        In [0, 1); 0 asks for a pure guarantee.
    neighbours : Neighbours
        Under REPLACE the number of rows is public; under ADD_REMOVE it is measured with noise.
    """

    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours

    @property
    def replace(self) -> bool:
        """Whether the number of rows is public."""
        return self.neighbours is Neighbours.REPLACE

    def share(self, part: Fraction) -> Target:
        """A part of both amounts."""
        return Target(self.epsilon * part, self.delta * part, self.neighbours)


def target(epsilon: Number, delta: Number, neighbours: Neighbours | str) -> Target:
    """Read what a release may cost.

    Examples
    --------
    >>> target(1, 1e-6, "replace").delta
    Fraction(1, 1000000)
    """
    return Target(
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
        as_table_neighbours(neighbours),
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two public ends that values are clamped to, with the lattice between them.

    A value x is held as the integer t nearest to ``steps``·(x - middle)/half in [-steps, steps].
    However doubles round on the way, t is an integer within those ends, and only that is used.
    """

    lower: Fraction
    upper: Fraction

    # Of squares of at most 2^40 a great many, 2^21, add up within 64 bits.
    steps = 1 << 20

    @property
    def middle(self) -> Fraction:
        """Half way between the ends."""
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> Fraction:
        """Half the distance of the ends."""
        return (self.upper - self.lower) / 2

    def scaled(self, values: Floats) -> Floats:
        """Values as multiples of ``half`` from the middle, not clamped: [-1, 1] are the bounds."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return np.asarray((values - float(self.middle)) / float(self.half))

    def lattice(self, values: Floats) -> npt.NDArray[np.int64]:
        """Values that are not missing, clamped, on the lattice."""
        # Clipped before it is cast: a cast of an infinity, or of NaN, to a whole number is
        # undefined.
        inside = np.nan_to_num(np.clip(self.scaled(values), -1.0, 1.0))
        return np.rint(inside * self.steps).astype(np.int64)


def bounds_of(name: str, given: Any) -> Bounds:
    """Read a pair of ends.

    Raises
    ------
    ArgumentError
        There are none, or they are not two finite numbers, the lower one first.

    Examples
    --------
    >>> bounds_of("bounds", (0, "0.5")).middle
    Fraction(1, 4)
    >>> bounds_of("bounds", (9, 0))
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: bounds must be (lower, upper) with lower below upper
    """
    if given is None:
        raise ArgumentError(
            f"{name} must be given: two ends, (lower, upper), that you know without looking at "
            "the data; values beyond them are clamped"
        )
    try:
        lower, upper = given
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a pair of numbers, (lower, upper)") from None
    low, high = check.exact(f"{name}[0]", lower), check.exact(f"{name}[1]", upper)
    if low >= high:
        raise ArgumentError(f"{name} must be (lower, upper) with lower below upper")
    furthest = max(abs(low), abs(high), high - low)
    if not (math.isfinite(float_up(furthest)) and float_down((high - low) / 2) > 0):
        raise ArgumentError(f"{name} must be ends whose distance is within doubles")
    return Bounds(low, high)


def around(name: str, half: Fraction) -> Bounds:
    """Ends as far on either side of 0.

    Parameters
    ----------
    name : str
        The argument that says how far.
    half : Fraction
        Above 0.

    Raises
    ------
    ArgumentError
        No double is as large, or as small.

    Examples
    --------
    >>> around("radius", Fraction(3)).lower
    Fraction(-3, 1)
    """
    if not (math.isfinite(float_up(2 * half)) and float_down(half) > 0):
        raise ArgumentError(f"{name} must be a number within doubles, such as 1e-300")
    return Bounds(-half, half)


def column(name: str, values: Any) -> Floats:
    """A flat sequence as doubles, what is missing as NaN.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    values : array, list, or column of Polars, pandas or pyarrow
        Of numbers or truth values.

    Raises
    ------
    ArgumentError
        It is not flat, or its type does not hold numbers.

    Examples
    --------
    >>> column("x", [1, None, 2.5, float("inf"), "n/a"])
    array([1. , nan, 2.5, inf, nan])
    >>> column("x", "abc")
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: x must be a sequence of numbers, such as a list or an array
    """
    found = _read(name, values)
    if found.ndim != 1:
        raise ArgumentError(
            f"{name} must be a flat sequence of numbers, such as a list or an array"
        )
    return found


def matrix(name: str, values: Any) -> Floats:
    """Rows of equally many numbers as doubles, what is missing as NaN; a column of one is taken.

    Examples
    --------
    >>> matrix("x", [[1, 2], [3, None]])
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    if _is_frame(values):
        found = np.column_stack(list(columns(name, values).values()))
    else:
        found = _read(name, values)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.shape[1] == 0:
        raise ArgumentError(
            f"{name} must be rows of equally many numbers: an array of shape (n, d)"
        )
    return found


def columns(name: str, frame: Any) -> dict[str, Floats]:
    """The columns of a frame, or of a mapping from names to sequences, as doubles.

    Raises
    ------
    ArgumentError
        It is not a frame, or its columns are not equally long.

    Examples
    --------
    >>> list(columns("frame", {"y": [1, 2], "x": [3, 4]}))
    ['y', 'x']
    """
    if isinstance(frame, Mapping):
        names = list(frame)
    elif _is_frame(frame):
        names = list(getattr(frame, "column_names", None) or frame.columns)
    else:
        raise ArgumentError(f"{name} must be a frame, or a mapping from names to columns")
    if not names or not all(isinstance(n, str) for n in names):
        raise ArgumentError(f"{name} must have columns, named by texts")
    found = {n: column(f"column {n!r} of {name}", frame[n]) for n in names}
    if len({len(values) for values in found.values()}) > 1:
        raise ArgumentError(f"{name} must have columns of one length")
    return found


def _is_frame(values: Any) -> bool:
    return (
        hasattr(values, "columns") and hasattr(values, "__getitem__") and hasattr(values, "shape")
    )


def _read(name: str, values: Any) -> Floats:
    found = numeric(name, values)
    if found.dtype.kind == "O" and found.ndim == 1 and not isinstance(values, np.ndarray):
        items = found.tolist()
        if items and all(hasattr(v, "__len__") and not isinstance(v, str | bytes) for v in items):
            return _rows(name, items)
    return doubles(found)


def _rows(name: str, items: list[Any]) -> Floats:
    """Rows of equally many numbers."""
    rows = [_read(name, item) for item in items]
    if len({row.shape for row in rows}) > 1:
        raise ArgumentError(f"{name} must be rows of equally many numbers")
    return np.stack(rows)
