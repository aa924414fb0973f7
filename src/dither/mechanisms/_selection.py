"""What the mechanisms that pick one of several candidates share.

Utilities are integers (counts, or reals on a public lattice), one a candidate, larger is better;
``sensitivity`` bounds how much any one utility changes between neighbours. Utilities are
*monotone* if between neighbours they all change in the same direction, as counts do when a row is
added; then half the randomness is enough.

Timing. How long a pick takes depends on the utilities: on how many distinct gaps there are, how
large they are, and how many coins are tossed. The guarantee is of the pick and not of its time.
Where someone may time single picks, say the answer at a time fixed beforehand.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dither.errors import ArgumentError
from dither.mechanisms._additive import check_amount
from dither.mechanisms._composable import pure_class
from dither.mechanisms.search import smallest_epsilon
from dither.numeric import check_confidence
from dither.privacy import Loss, Neighbours

__all__ = ["Selection", "check_integers", "check_whole", "smallest_shortfall"]

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)


def check_whole(name: str, value: Any, least: int = 1) -> int:
    """An integer of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool | np.bool_) or number < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}")
    return number


def check_integers(name: str, values: Any) -> list[int]:
    """A non-empty sequence of integers, as Python's; floats are refused, they are not exact."""
    wanted = f"{name} must be a flat sequence of integers; put reals on a public lattice first"
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise ArgumentError(wanted)
        found: list[int] = values.tolist()
    else:
        try:
            found = [operator.index(v) for v in values]
        except TypeError:
            raise ArgumentError(wanted) from None
        if any(isinstance(v, bool) for v in values):
            raise ArgumentError(wanted)
    if not found:
        raise ArgumentError(f"{name} must hold at least one value")
    return found


@dataclass(frozen=True, slots=True)
class Selection:
    """A mechanism that picks one candidate, bound to its exact rate.

    Parameters
    ----------
    rate : Fraction
        Above 0, per unit of utility: a candidate d below the best is about exp(rate·d) times
        less likely.

    Raises
    ------
    ArgumentError
        The rate is not an exact positive number.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", check_amount("rate", self.rate))

    @classmethod
    def for_loss(cls, epsilon: Fraction, *, sensitivity: int, monotone: bool = False) -> Self:
        """The mechanism that costs exactly epsilon at this sensitivity."""
        sides = 1 if monotone else 2
        whole = check_whole("sensitivity", sensitivity)
        return cls(check_amount("epsilon", epsilon) / (sides * whole))

    @classmethod
    def for_shortfall(
        cls, shortfall: int, *, candidates: int, confidence: float, **fields: Any
    ) -> Self:
        """The least rate (three digits) whose `shortfall` is at most the one given.

        ``fields`` are the mechanism's other fields, where it has any.

        Raises
        ------
        ArgumentError
            No rate up to a million reaches it, or an argument is out of range.
        """
        allowed = check_whole("shortfall", shortfall, 0)
        rate = smallest_epsilon(
            lambda r: cls(r, **fields).shortfall(candidates, confidence) <= allowed, _LEAST, _MOST
        )
        if rate is None:
            raise ArgumentError("shortfall cannot be reached: allow more, or a lower confidence")
        return cls(rate, **fields)

    def epsilon(self, *, sensitivity: int, monotone: bool = False) -> Fraction:
        """2·rate·sensitivity, or rate·sensitivity for monotone utilities."""
        return (1 if monotone else 2) * self.rate * check_whole("sensitivity", sensitivity, 0)

    def loss(
        self,
        *,
        sensitivity: int,
        monotone: bool = False,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What one selection costs: pure epsilon, as any mechanism of it."""
        return pure_class(self.epsilon(sensitivity=sensitivity, monotone=monotone), neighbours)

    def draw(self, utilities: Sequence[int]) -> int:
        """Pick the index of one candidate."""
        raise NotImplementedError

    def miss_probability(self, gap: int, candidates: int) -> float:
        """A bound of Pr[the pick is ``gap`` or more below the best]: (n - 1)·exp(-rate·gap)."""
        others = check_whole("candidates", candidates) - 1
        return min(1.0, others * math.exp(-float(self.rate) * gap)) if others else 0.0

    def shortfall(self, candidates: int, confidence: float) -> int:
        """The least w for which the bound says Pr[pick is more than w below the best] <= 1 - c.

        Parameters
        ----------
        candidates : int
            How many there are.
        confidence : float
            c in (0, 1).
        """
        return smallest_shortfall(lambda gap: self.miss_probability(gap, candidates), confidence)

    def parameters(self) -> dict[str, str]:
        """The law and its exact parameter as text, for certificates."""
        return {"mechanism": type(self).__name__, "rate": str(self.rate)}


def smallest_shortfall(miss: Callable[[int], float], confidence: float) -> int:
    """The least w >= 0 with miss(w + 1) <= 1 - confidence, for a bound that falls to 0."""
    outside = 1 - check_confidence(confidence)
    low, high = -1, 0
    while miss(high + 1) > outside:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        if miss(middle + 1) > outside:
            low = middle
        else:
            high = middle
    return high
