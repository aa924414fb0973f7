"""Bounded numbers on a public lattice: how a measured value becomes an integer on the device.

A value is rounded to one of its two neighbouring points at random, so that the expectation is the
value. Rounding comes before the channel's own coin, so no choice made here can weaken a promise;
and every later step sees integers alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._domain import bind, column
from dither.numeric import Words

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Thresholds = npt.NDArray[np.uint64]

_MAX_STEPS = 1 << 16
# So few values are done exactly at once: fractions are quick enough.
_SMALL = 1024
_LARGEST = Fraction(10**300)
_NEAR = 2.0**-32
"""More than a place of up to 2**17 steps is off in doubles: by 2**-36 for an end, for the value and
for their difference, and by 2**-35 for the step and the division."""


@dataclass(frozen=True, init=False)
class Interval:
    """The numbers from `low` to `high`, held as the points low, low + step, ..., high.

    Parameters
    ----------
    low, high : number
        Public bounds, read exactly, low < high.
    steps : int
        The lattice has this many steps, and one point more; 2 to 65,536.
    clamp : bool
        Move a value outside the bounds to the nearest one, instead of refusing it.

    Raises
    ------
    ArgumentError
        The bounds are not finite or not in order, or steps is out of range.

    Examples
    --------
    >>> Interval(0, 10, steps=5).points.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """

    low: Fraction
    high: Fraction
    steps: int
    clamp: bool

    def __init__(
        self, low: Any = -1, high: Any = 1, *, steps: int = 1024, clamp: bool = False
    ) -> None:
        bind(self, low=_checks.exact("low", low), high=_checks.exact("high", high))
        if self.low >= self.high:
            raise ArgumentError("low must be below high: they are the public bounds of the values")
        if max(abs(self.low), abs(self.high)) > _LARGEST or self.high - self.low < 1 / _LARGEST:
            raise ArgumentError(
                "low and high must be at most 10**300 in size and at least 10**-300 apart: use "
                "another unit"
            )
        bind(self, steps=_checks.whole("steps", steps, 2, _MAX_STEPS))
        bind(self, clamp=_checks.flag("clamp", clamp))

    def __repr__(self) -> str:
        more = ", clamp=True" if self.clamp else ""
        return f"Interval({float(self.low):g}, {float(self.high):g}, steps={self.steps}{more})"

    @property
    def step(self) -> Fraction:
        """The distance between neighbouring points."""
        return (self.high - self.low) / self.steps

    @property
    def points(self) -> Array:
        """The lattice, shape (steps + 1,)."""
        return self.at(np.arange(self.steps + 1))

    def at(self, places: Any) -> Array:
        """Values at places counted in steps from `low`; they may be fractions or outside."""
        low, high = float(self.low), float(self.high)
        share = np.asarray(places, dtype=np.float64) / self.steps
        return np.asarray(low * (1 - share) + high * share)

    def round(self, values: Any, words: Words, *, apart: tuple[int, int] | None = None) -> Codes:
        """Round values to points at random, so that the expectation is the value.

        Parameters
        ----------
        values : column of numbers, shape (n,)
        words : Words
        apart : (int, int), optional
            The first and last point of a class. A value outside the class never becomes one of
            its points; within a step of the class it always goes to the next point outside.

        Returns
        -------
        array of int64, shape (n,)
            Numbers of points, 0 to steps. The expectation is exact to 2**-32 of a step.

        Raises
        ------
        ArgumentError
            A value is missing, not a number, or outside the bounds while `clamp` is not set. No
            value is shown.

        Notes
        -----
        Columns of up to 1,024, a device's, go by rationals throughout. Longer ones go by doubles,
        and by rationals for what lies within 2**-32 of a point; their time depends a little on how
        many values do.
        """
        base, part = self._places(column(values))
        up = words.words(base.size) < part
        if apart is not None:
            # Beside a class, rounding goes away from it whatever the word says: it never joins it.
            between = part > 0
            up &= ~(between & (base == apart[0] - 1))
            up |= between & (base == apart[1])
        return base + up

    def index(self, value: Any, name: str, *, up: bool) -> int:
        """The nearest point at or above (below) a value: how a public bound is read.

        A bound that has no point on that side is past the last point, or before the first: a range
        beyond the interval holds no point of it.
        """
        place = (_checks.exact(name, value) - self.low) / self.step
        return max(math.ceil(place), 0) if up else min(math.floor(place), self.steps)

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold; `from_dict` reads it."""
        found = {"low": str(self.low), "high": str(self.high), "steps": self.steps}
        return {**found, "clamp": True} if self.clamp else found

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Interval:
        """The interval that `to_dict` wrote."""
        return cls(
            found["low"], found["high"], steps=found["steps"], clamp=found.get("clamp", False)
        )

    def _places(self, given: npt.NDArray[Any]) -> tuple[Codes, Thresholds]:
        """The point below each value, and the rest of the way to the next in 2**-64ths."""
        if given.dtype.kind not in "iufO":
            raise ArgumentError("values must be numbers")
        if given.dtype.kind == "O" or given.size <= _SMALL or not self._doubles_do:
            return self._exactly(given)
        if given.dtype.kind in "iu" and int(np.abs(given).max()) >= 1 << 53:
            return self._exactly(given)
        floats = given.astype(np.float64)
        self._refuse(int(np.isnan(floats).sum()), 0, given.size)
        with np.errstate(over="ignore"):
            place = (floats - float(self.low)) / float(self.step)
        # On or beside a point the double might fall on the wrong side: those are done exactly,
        # and so are those outside.
        near = (place < 0) | (place > self.steps)
        place[near] = 0.0
        near |= np.abs(place - np.rint(place)) < _NEAR
        base = np.floor(place).astype(np.int64)
        # All that is left is 2^-32 or more from a point, so that no product reaches 2^64.
        part = ((place - np.floor(place)) * 2.0**64).astype(np.uint64)
        if near.any():
            distinct, inverse = np.unique(given[near], return_inverse=True)
            exact_base, exact_part = self._exactly(distinct, inverse)
            base[near], part[near] = exact_base[inverse], exact_part[inverse]
        return base, part

    def _exactly(
        self, given: npt.NDArray[Any], inverse: npt.NDArray[np.intp] | None = None
    ) -> tuple[Codes, Thresholds]:
        places = [self._place(value) for value in given.tolist()]
        missing = np.array([place is None for place in places], dtype=np.bool_)
        outside = np.array(
            [place is not None and not 0 <= place <= self.steps for place in places],
            dtype=np.bool_,
        )
        if inverse is not None:
            missing, outside = missing[inverse], outside[inverse]
        self._refuse(int(missing.sum()), int(outside.sum()), missing.size)
        found = [min(max(place, 0), self.steps) for place in places if place is not None]
        floors = [math.floor(place) for place in found]
        parts = [math.floor((x - b) * (1 << 64)) for x, b in zip(found, floors, strict=True)]
        return np.array(floors, dtype=np.int64), np.array(parts, dtype=np.uint64)

    def _place(self, value: Any) -> Fraction | float | None:
        """A value's place in steps from low; infinite where it is, None where missing."""
        try:
            if value is None or bool(value != value):
                return None
            if isinstance(value, np.generic):
                value = value.item()
            if isinstance(value, float) and math.isinf(value):
                return value
            return (_checks.exact("values", value) - self.low) / self.step
        except (ArgumentError, TypeError, ValueError):
            raise ArgumentError("values must be numbers") from None

    def _refuse(self, missing: int, outside: int, n: int) -> None:
        if missing:
            raise ArgumentError(
                f"values must not be missing: {missing} of {n} are None or NaN; drop them"
            )
        if outside and not self.clamp:
            raise ArgumentError(
                f"values must be within the public bounds: {outside} of {n} are not; "
                "widen low and high, or set clamp=True"
            )

    @property
    def _doubles_do(self) -> bool:
        """Whether a double gives a place to well under 2**-32 of a step."""
        largest = max(abs(self.low), abs(self.high))
        return largest / self.step < 1 << 17
