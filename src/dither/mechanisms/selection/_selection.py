"""What the mechanisms that pick one of several candidates share.

Utilities are integers (counts, or reals on a public lattice), one for each candidate; larger is
better. ``sensitivity`` bounds how much any one utility changes between neighbours, of either
relation. Utilities are *monotone* if between neighbours they all change in the same direction, as
counts do when a row is added; then half the randomness is enough.

*Timing.* How long a pick takes depends on the utilities: on how many distinct gaps there are, how
large they are, and how many coins are tossed. The guarantee is of the pick and not of its time.
Where someone may time single picks, give the answer at a time fixed in advance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from dither import _checks as check
from dither._checks import Number
from dither._search import least_integer
from dither.mechanisms._base import Mechanism, least_epsilon
from dither.mechanisms._composable import pure_class
from dither.privacy import Loss, Neighbours

__all__ = ["Selection", "least_rate", "smallest_shortfall"]

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)


@dataclass(frozen=True, slots=True)
class Selection(Mechanism):
    """A mechanism that picks one candidate, bound to its exact rate.

    Parameters
    ----------
    rate : Fraction
        Above 0, per unit of utility: a candidate d below the best is about exp(rate·d) times
        less likely.

    Raises
    ------
    ArgumentError
        The rate is not a number above 0.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        self._settle_positive("rate")

    @classmethod
    def for_loss(cls, epsilon: Number, *, sensitivity: int, monotone: bool = False) -> Self:
        """The mechanism that costs exactly epsilon at this sensitivity."""
        sides = 1 if monotone else 2
        whole = check.whole("sensitivity", sensitivity, 1)
        return cls(check.positive("epsilon", epsilon) / (sides * whole))

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
        rate = least_rate(shortfall, lambda r: cls(r, **fields).shortfall(candidates, confidence))
        return cls(rate, **fields)

    def epsilon(self, *, sensitivity: int, monotone: bool = False) -> Fraction:
        """2·rate·sensitivity, or rate·sensitivity for monotone utilities."""
        return (1 if monotone else 2) * self.rate * check.whole("sensitivity", sensitivity)

    def loss(
        self,
        *,
        sensitivity: int,
        monotone: bool = False,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What one selection costs: pure epsilon, and the rho of the guarantee."""
        return self._loss(self.epsilon(sensitivity=sensitivity, monotone=monotone), neighbours)

    def _loss(self, epsilon: Fraction, neighbours: Neighbours | str) -> Loss:
        """That of any mechanism of an epsilon, unless more is known."""
        return pure_class(epsilon, neighbours)

    def draw(self, utilities: Sequence[int]) -> int:
        """Pick the index of one candidate.

        Parameters
        ----------
        utilities : sequence of int
            At least one, larger is better. How long a pick takes depends on them.

        Raises
        ------
        ArgumentError
            There are no utilities, or they are not integers.
        """
        raise NotImplementedError

    def miss_probability(self, gap: int, candidates: int) -> float:
        """A bound of Pr[the pick is ``gap`` or more below the best]: (n - 1)·exp(-rate·gap)."""
        others = check.whole("candidates", candidates, 1) - 1
        return min(1.0, others * math.exp(-float(self.rate) * gap)) if others else 0.0

    def shortfall(self, candidates: int, confidence: float) -> int:
        """The least w for which Pr[pick is more than w below the best] <= 1 - c is proved.

        Parameters
        ----------
        candidates : int
            How many there are.
        confidence : float
            c in (0, 1).
        """
        return smallest_shortfall(lambda gap: self.miss_probability(gap, candidates), confidence)


def smallest_shortfall(miss: Callable[[int], float], confidence: float) -> int:
    """The least w >= 0 with miss(w + 1) <= 1 - confidence, for a bound that falls to 0."""
    outside = 1 - check.confidence(confidence)
    return least_integer(lambda w: miss(w + 1) <= outside)


def least_rate(shortfall: int, error: Callable[[Fraction], int]) -> Fraction:
    """The least rate (three digits) whose shortfall is at most the one given."""
    allowed = check.whole("shortfall", shortfall)
    return least_epsilon("shortfall", allowed, error, low=_LEAST, high=_MOST)
