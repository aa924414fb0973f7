"""How far a row may move what leaves, shared out among parts as a run goes on.

A plan is fixed before any row is read, and how far a row moves all that leaves by it is what a run
is charged for. As it goes on, a run may leave some parts of the plan out and give others larger
weights: it takes what a part moves from what is left of the plan, in the norm that the noise is
for, and never more than is left.

Guarantee. What is taken, and of which part, depends on what left before alone. So at the same
earlier answers two neighbours take the same, and a row moves the whole sequence no further than the
plan says: the squares of the parts (or their absolute values, for Laplace noise) add up to no more,
on every path. For Laplace noise the losses of the parts add up in the same way. For Gaussian noise
parts whose lengths follow from what left before are together as one Gaussian mechanism of the whole
length: `dither.accounting.GdpFilter` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dither._search import least_integer
from dither.learn._noise import TableSensitivity

__all__ = ["Remainder"]


class Remainder:
    """What is left of a plan.

    Parameters
    ----------
    plan : TableSensitivity
        What is charged.
    absolute : bool
        Whether noise is for absolute values, as Laplace noise is; else it is for squares.
    """

    def __init__(self, plan: TableSensitivity, absolute: bool) -> None:
        self._absolute = absolute
        self.left = self._of(plan)

    def _of(self, moved: TableSensitivity) -> int:
        return moved.l1 if self._absolute else moved.l2_squared

    def take(self, moved: TableSensitivity) -> None:
        """Take what a part moves.

        Raises
        ------
        RuntimeError
            More than is left: nothing may leave.
        """
        if self._of(moved) > self.left:
            raise RuntimeError("a part would move more than is left of the plan")
        self.left -= self._of(moved)

    def weight(self, share: float | Fraction, part: Callable[[int], TableSensitivity]) -> int:
        """The largest weight, at least 1, of a part that moves at most this share of what is left.

        Parameters
        ----------
        share : float or Fraction
            In (0, 1].
        part : callable
            How far a row moves the part by its weight, rising with it.
        """
        most = math.floor(self.left * Fraction(share))
        return least_integer(lambda weight: self._of(part(weight)) > most, 2) - 1
