"""Real answers on a public lattice: rounding, and what it does to sensitivity.

A real q is put on the lattice of multiples of ``step`` as k = floor(q/step + 1/2), half upwards.

Sensitivity in steps. If |q - q'| <= x·step then |k - k'| <= ceil(x): the map is monotone and a
whole step moves it by exactly 1. So rounding adds less than one step a coordinate, and nothing
where the sensitivity of one number is a whole number of steps. For d coordinates, ceil(x) < x + 1:

    Σ|k_i - k'_i| <= ceil(l1/step) + d - 1,
    Σ(k_i - k'_i)² <= ceil((l2/step + sqrt(d))²) - 1,     ceil(l2/step)² for d = 1,

integers strictly below l1/step + d and (l2/step + sqrt(d))² (by Minkowski's inequality).

Error. The released point is within half a step of q plus the noise.

Timing. Exact arithmetic takes longer on numbers with more digits; the guarantee is of the released
point, not of the time to round.

The step must not be taken from the data. Left out, it is the largest power of two that makes a
2**-20th of the sensitivity, shared by the coordinates: rounding then costs about a millionth.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise, Integers, Mechanism
from dither.numeric import Lattice, binary_size
from dither.numeric import _directed as directed

__all__ = ["Answer", "RealNoise", "check_step", "steps_l1", "steps_l2_squared"]

Answer = Number | Iterable[Number] | npt.NDArray[Any]

# Rounding then costs about a millionth, and integers stay short.
_FINE = 20


class RealNoise(Mechanism, ABC):
    """What noise on real answers offers, whatever its law: points of a lattice of a step."""

    __slots__ = ()

    step: Fraction

    @property
    @abstractmethod
    def noise(self) -> AdditiveNoise:
        """The integer noise, in steps."""

    def release(self, answer: Answer) -> Any:
        """Release the answer with noise.

        Parameters
        ----------
        answer : number, sequence of numbers or array
            Finite; ints, Fractions, Decimals and floats (read as the decimals they print as).

        Returns
        -------
        Fraction, tuple of Fraction, or array of float64
            Points of the lattice; for an array, each correctly rounded to a double.

        Raises
        ------
        ArgumentError
            The answer is empty, or holds what is not a finite number.
        """
        return released(answer, self.step, self.noise)

    def draw(self, size: int | tuple[int, ...]) -> Integers:
        """Draw independent noise in steps, int64, of the given shape."""
        return self.noise.draw(size)

    @property
    def variance(self) -> float:
        """Of the noise, in squared units of the answer."""
        return self.noise.variance * float(self.step) ** 2

    def half_width(self, confidence: float) -> float:
        """A w with Pr[|released - answer| <= w] >= confidence, rounding included."""
        return float((self.noise.half_width(confidence) + Fraction(1, 2)) * self.step)

    def tail(self, t: Number) -> Fraction:
        """A proven upper bound of Pr[|released - answer| >= t], t in the answer's units."""
        steps = check.exact("t", t, least=0) / self.step - Fraction(1, 2)
        return self.noise.tail(math.ceil(steps))


def check_step(step: Number | None, sensitivity: Fraction, dimension: int) -> Fraction:
    """The lattice's step as given, or the one that follows from the sensitivity alone."""
    if step is not None:
        return check.positive("step", step)
    fine = sensitivity / math.isqrt(4 * dimension - 3) / (1 << _FINE)
    exponent = binary_size(fine)
    return Fraction(2) ** (exponent if Fraction(2) ** exponent <= fine else exponent - 1)


def steps_l1(l1: Number, step: Fraction, dimension: int) -> int:
    """The L1 sensitivity of the rounded answer, in steps."""
    exact_l1, d = check.exact("l1", l1, least=0), check.whole("dimension", dimension, 1)
    return math.ceil(exact_l1 / step) + d - 1 if exact_l1 else 0


def steps_l2_squared(l2: Number, step: Fraction, dimension: int) -> int:
    """The squared L2 sensitivity of the rounded answer, in squared steps."""
    exact_l2, d = check.exact("l2", l2, least=0), check.whole("dimension", dimension, 1)
    if exact_l2 == 0:
        return 0
    if d == 1:
        return math.ceil(exact_l2 / step) ** 2
    return math.ceil((exact_l2 / step + directed.sqrt_upper(Fraction(d))) ** 2) - 1


def released(answer: Any, step: Fraction, noise: AdditiveNoise) -> Any:
    """The answer rounded to the lattice, plus fresh noise in steps.

    Returns
    -------
    Fraction, tuple of Fraction, or array of float64
        For a number, a sequence, and an array (correctly rounded points, of the same shape).

    Raises
    ------
    ArgumentError
        The answer is empty, or holds what is not a finite number.
    """
    if isinstance(answer, np.number):
        answer = answer.item()
    if isinstance(answer, np.ndarray):
        if answer.dtype.kind not in "iuf" or answer.size == 0:
            raise ArgumentError("answer must be a non-empty array of real numbers")
        noisy = _noisy(answer.ravel().tolist(), step, noise)
        points = [Lattice(step).to_float(k) for k in noisy]
        return np.array(points, dtype=np.float64).reshape(answer.shape)
    if isinstance(answer, int | float | Fraction | Decimal | str):
        return _noisy([answer], step, noise)[0] * step
    try:
        values = list(answer)
    except TypeError:
        raise ArgumentError("answer must be a number or a flat sequence of numbers") from None
    if not values:
        raise ArgumentError("answer must hold at least one number")
    return tuple(k * step for k in _noisy(values, step, noise))


def _noisy(values: list[Number], step: Fraction, noise: AdditiveNoise) -> list[int]:
    half = Fraction(1, 2)
    points = [math.floor(check.exact("answer", value) / step + half) for value in values]
    return [k + int(z) for k, z in zip(points, noise.draw(len(points)), strict=True)]
