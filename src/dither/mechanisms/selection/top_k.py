"""One-shot top-k: the k largest of the utilities with Gumbel noise, in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import Mechanism
from dither.mechanisms._coins import exp_choice
from dither.mechanisms.selection._selection import least_rate, smallest_shortfall
from dither.mechanisms.selection.exponential import Exponential
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["TopK"]


@dataclass(frozen=True, slots=True)
class TopK(Mechanism):
    """One-shot top-k with Gumbel noise, bound to its exact rate.

    With independent Gumbel noises G_i of scale 1/rate: the indices of the k largest u_i + G_i,
    largest first. That is the law of the exponential mechanism applied k times, each time without
    the candidates already picked (a race between exponential clocks goes on without its winner),
    and it is drawn in that form, exactly.

    Parameters
    ----------
    rate : Fraction
        Above 0, per unit of utility: one over the scale of the Gumbel noise.
    k : int
        How many candidates are picked, at least 1.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Where each integer u_i changes by at most ``sensitivity`` between neighbours, of
    either relation: with e = 2·rate·sensitivity (rate·sensitivity if the utilities are monotone,
    all changing in the same direction) (k·e)-DP and (k·e²/8)-zCDP. The second is by far the better
    one for more than a few picks.

    *Proof.* k adaptive exponential mechanisms of e and e²/8 each (`Exponential`), composed.

    *Timing.* How long a draw takes depends on the utilities; where single draws may be timed, give
    the answer at a time fixed in advance.

    References
    ----------
    Durfee and Rogers, "Practical differentially private top-k selection with pay-what-you-get
    composition", NeurIPS 2019; Cesar and Rogers, ALT 2021, for e²/8.

    Examples
    --------
    >>> mechanism = TopK.for_loss(1, k=4, sensitivity=1, monotone=True)
    >>> loss = mechanism.loss(sensitivity=1, monotone=True).charge
    >>> mechanism.rate, loss.epsilon, loss.rho
    (Fraction(1, 4), Fraction(1, 1), Fraction(1, 32))
    >>> sorted(TopK(1, 2).draw([0, 1000, 3, 2000]))
    [1, 3]
    """

    title: ClassVar[str] = "one-shot top-k"

    rate: Fraction
    k: int

    def __post_init__(self) -> None:
        self._settle_positive("rate")
        self._settle(k=check.whole("k", self.k, 1))

    @classmethod
    def for_loss(cls, epsilon: Number, *, k: int, sensitivity: int, monotone: bool = False) -> Self:
        """The mechanism that costs exactly epsilon in all."""
        each = check.positive("epsilon", epsilon) / check.whole("k", k, 1)
        return cls(Exponential.for_loss(each, sensitivity=sensitivity, monotone=monotone).rate, k)

    @classmethod
    def for_rho(cls, rho: Number, *, k: int, sensitivity: int, monotone: bool = False) -> Self:
        """The mechanism that costs at most rho in all: e = sqrt(8·rho/k), rounded down."""
        # Each pick of bounded range e is e²/8-zCDP; the root is rounded down, as rho is a promise.
        square = 8 * check.positive("rho", rho) / check.whole("k", k, 1)
        return cls.for_loss(
            k * directed.sqrt_lower(square, 48), k=k, sensitivity=sensitivity, monotone=monotone
        )

    @classmethod
    def for_shortfall(cls, shortfall: int, *, k: int, candidates: int, confidence: float) -> Self:
        """The least rate (three digits) whose `shortfall` is at most the one given.

        Raises
        ------
        ArgumentError
            No rate up to a million reaches it, or an argument is out of range.
        """
        rate = least_rate(shortfall, lambda r: cls(r, k).shortfall(candidates, confidence))
        return cls(rate, k)

    def loss(
        self,
        *,
        sensitivity: int,
        monotone: bool = False,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What all k picks cost: k mechanisms of bounded range e."""
        return self.k * Exponential(self.rate).loss(
            sensitivity=sensitivity, monotone=monotone, neighbours=neighbours
        )

    def draw(self, utilities: Sequence[int]) -> tuple[int, ...]:
        """Pick the indices of k candidates, in the order of the race.

        Parameters
        ----------
        utilities : sequence of int
            At least k.

        Raises
        ------
        ArgumentError
            There are fewer than k utilities, or they are not integers.
        """
        found = check.integers("utilities", utilities)
        if len(found) < self.k:
            raise ArgumentError("utilities must hold at least k candidates; ask for a smaller k")
        left = list(range(len(found)))
        # Each round by a fresh exact choice among those left: the law of the race.
        picked = [left.pop(exp_choice([-found[i] for i in left], self.rate)) for _ in range(self.k)]
        return tuple(picked)

    def miss_probability(self, gap: int, candidates: int) -> float:
        """A bound of Pr[some pick is ``gap`` or more below the k-th best].

        In each round at least one of the k best is still there, so that a pick so far below has
        probability at most (n - 1)·exp(-rate·gap).
        """
        others = check.whole("candidates", candidates, self.k) - 1
        return min(1.0, self.k * others * math.exp(-float(self.rate) * gap))

    def shortfall(self, candidates: int, confidence: float) -> int:
        """The least w with Pr[some pick is more than w below the k-th best] <= 1 - confidence."""
        return smallest_shortfall(lambda gap: self.miss_probability(gap, candidates), confidence)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        pick = cls.for_loss(1, k=2, sensitivity=1)
        yield Subject("top-k", pick.draw, (1, 1, 0, 0, 0), (0, 0, 1, 1, 1))
