"""Noisy votes of teachers: how one question is answered, what that loses, and a plan of many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dither import _checks as check
from dither import noise
from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, Exponential, NoisyMax, PermuteAndFlip
from dither.mechanisms._base import Mechanism
from dither.mechanisms.counts._analytic import gaussian_mu
from dither.mechanisms.selection._selection import Selection
from dither.numeric import shortened
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy.laws.rationals import printing_at_most

__all__ = ["METHODS", "PollPlan", "TeacherVote", "plan_of"]

METHODS = ("confident", "gaussian", "permute-and-flip", "exponential", "laplace")

_BITS = 40
_PARTS = (Fraction(0), *(Fraction(1, 1 << k) for k in (16, 10, 4)))
"""By how much less than what continuous noise allows is tried; what is found is proved."""
_STEPS = 1000
"""Of parameters that are tried between the sum of epsilons and all of it for one answer."""


@dataclass(frozen=True, slots=True)
class TeacherVote(Mechanism):
    """One question to the teachers, answered by their noisy votes.

    With n_j teachers for label j, whole numbers: where there is a threshold, first ::

        refuse unless  max_j n_j + Z >= threshold,    Z discrete Gaussian of ``check.sigma2``

    and then name the label whose count, with discrete Gaussian noise of its own, is largest (ties
    by a uniformly random order); or pick it by `PermuteAndFlip`, `Exponential` or `NoisyMax`.

    Parameters
    ----------
    answer : DiscreteGaussian or Selection
        What names the label.
    check : DiscreteGaussian, optional
        The noise of the largest count that the threshold is compared with.
    threshold : int, optional
        Votes; with ``check``.

    Raises
    ------
    ArgumentError
        One of check and threshold is given without the other.

    Notes
    -----
    *Guarantee.* Neighbours are tables of votes in which one teacher's vote differs: cast for
    another label, or for none. The check is 1/(2·check.sigma2)-zCDP. A Gaussian answer is
    1/answer.sigma2-zCDP; the others are 2·rate-DP.

    *Proof.* One vote that moves changes two counts by 1 each, one up and one down, and one that is
    not cast changes one: the L2 sensitivity of all counts is sqrt(2), squared 2, and each count's
    is 1. The largest count moves by at most 1: had it risen by 2, some count would have. What is
    compared and named is computed from noisy counts alone. Counts move in both directions, so that
    selections are not monotone, and lose 2·rate.

    References
    ----------
    Papernot and others, "Scalable private learning with PATE", ICLR 2018, algorithm 1 (Confident
    GNMax), with noise on the integers.

    Examples
    --------
    >>> ballot = TeacherVote(DiscreteGaussian(Fraction(100)), DiscreteGaussian(Fraction(50)), 150)
    >>> ballot.draw([240, 5, 5]), ballot.draw([85, 85, 80])
    (0, None)
    >>> ballot.answer_loss().charge.rho, ballot.check_loss().charge.rho
    (Fraction(1, 100), Fraction(1, 100))
    """

    title: ClassVar[str] = "noisy votes"

    answer: DiscreteGaussian | Selection
    check: DiscreteGaussian | None = None
    threshold: int | None = None

    def __post_init__(self) -> None:
        if (self.check is None) != (self.threshold is None):
            raise ArgumentError("check and threshold belong together: give both or neither")

    def passes(self, counts: Sequence[int]) -> bool:
        """Whether the question is answered: the threshold's check, with noise."""
        if self.check is None or self.threshold is None:
            return True
        return max(counts) + int(self.check.draw(1)[0]) >= self.threshold

    def pick(self, counts: Sequence[int]) -> int:
        """The place of the label that is named, with noise."""
        if isinstance(self.answer, Selection):
            return self.answer.draw(counts)
        noisy = np.asarray(counts, dtype=np.int64) + self.answer.draw(len(counts))
        tied = np.flatnonzero(noisy == noisy.max())
        return int(tied[noise.below(len(tied), 1)[0]])

    def draw(self, counts: Sequence[int]) -> int | None:
        """The place of the label that is named, or None where the question is refused."""
        return self.pick(counts) if self.passes(counts) else None

    def check_loss(self, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss | None:
        """What a check costs; None where there is none."""
        if self.check is None:
            return None
        # By one vote the largest count moves by 1 at most.
        return self.check.loss(l2_squared=1, coordinates=1, neighbours=neighbours)

    def answer_loss(self, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What an answer costs, its check not counted."""
        if isinstance(self.answer, Selection):
            return self.answer.loss(sensitivity=1, neighbours=neighbours)
        # A unit has one teacher, whose vote leaves one count and enters another.
        return self.answer.loss(l2_squared=2, coordinates=2, neighbours=neighbours)

    def chances(self, agreeing: int, teachers: int, labels: int) -> tuple[float, float]:
        """Where so many teachers agree, and the rest are even: for planning, in doubles.

        Returns
        -------
        (float, float)
            The chance that the question is answered, and a lower bound of the chance that an answer
            names their label.
        """
        answered = 1.0
        if self.check is not None and self.threshold is not None:
            answered = self.check.survival(self.threshold - agreeing)
        rest = -(-(teachers - agreeing) // (labels - 1))
        gap = agreeing - rest
        if gap < 0:
            return answered, 0.0
        if isinstance(self.answer, Selection):
            return answered, 1 - self.answer.miss_probability(gap, labels)
        # The difference of two noises has the variance 2·σ².
        apart = gap / (2 * math.sqrt(float(self.answer.sigma2)))
        return answered, max(0.0, 1 - (labels - 1) * math.erfc(apart) / 2)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        for method in METHODS:
            plan = plan_of(method, Fraction(1), Fraction(1, 100), 1, 1, 3, Fraction(1, 4))
            charge = plan.loss().charge
            assert charge.epsilon is not None
            yield Subject(
                f"votes of teachers, {method}",
                plan.ballot.draw,
                (2, 1, 0),
                (1, 2, 0),
                charge.epsilon,
                charge.delta,
            )


@dataclass(frozen=True, slots=True)
class PollPlan:
    """So many answers at most, and so many checks, fixed before the first question.

    Parameters
    ----------
    ballot : TeacherVote
    answers, queries : int
        How many questions may be answered, and how many checked.
    epsilon, delta : Fraction
        What all of it costs.

    Notes
    -----
    *Guarantee.* Whatever is asked, in whatever order, and however it depends on earlier answers,
    the whole loses no more than ``queries`` checks and ``answers`` answers fixed beforehand.

    *Proof.* Let a pair dominate a check, and one an answer, whatever the counts. Draw samples of
    the first ``queries`` times and of the second ``answers`` times, before anything is asked. Each
    check that is made, given all before it, is a random map of the next sample of the first kind,
    and each answer of one of the second, by maps that do not know which table it is (Blackwell). No
    more are used than were drawn. So the view is a random map of the samples. (A law within a
    factor of such a map keeps that factor, and factors multiply.) Where no pair is known, but
    divergences are, their sums bound every adaptive order.
    """

    ballot: TeacherVote
    answers: int
    queries: int
    epsilon: Fraction
    delta: Fraction

    def loss(self, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What all of it costs."""
        whole = _composed(self.ballot, self.answers, self.queries, neighbours)
        return whole.with_charge(Charge(self.epsilon, self.delta, whole.charge.rho))


def _composed(
    ballot: TeacherVote,
    answers: int,
    queries: int,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Loss:
    whole, each = answers * ballot.answer_loss(neighbours), ballot.check_loss(neighbours)
    return whole if each is None else whole + queries * each


def plan_of(
    method: str,
    epsilon: Fraction,
    delta: Fraction,
    answers: int,
    queries: int,
    threshold: int,
    share: Fraction,
) -> PollPlan:
    """The least noise whose whole plan costs at most (epsilon, delta).

    Raises
    ------
    ArgumentError
        A Gaussian method has a delta of 0; or so small an epsilon needs more noise than there is.
    """
    ballot = _least_noise(method, epsilon, delta, answers, queries, share)
    if ballot.check is not None:
        ballot = replace(ballot, threshold=threshold)
    return PollPlan(ballot, answers, queries, epsilon, delta)


@lru_cache(maxsize=64)
def _least_noise(
    method: str, epsilon: Fraction, delta: Fraction, answers: int, queries: int, share: Fraction
) -> TeacherVote:
    """The ballot of a plan, with a threshold of one vote: its noise is that of any threshold."""
    check.choice("method", method, METHODS)
    if method in ("confident", "gaussian"):
        if not delta:
            raise ArgumentError(
                f"delta must be above 0 for the {method} method; permute-and-flip takes 0"
            )
        checked = share if method == "confident" else Fraction(0)

        def made(rho: Fraction) -> TeacherVote:
            # An answer costs 2/(2·σ²) of rho and a check 1/(2·σ²); rounded up, σ² costs less.
            spread = shortened(answers / (rho * (1 - checked)), _BITS, up=True)
            if not checked:
                return TeacherVote(DiscreteGaussian(spread))
            wide = shortened(queries / (2 * rho * checked), _BITS, up=True)
            return TeacherVote(DiscreteGaussian(spread), DiscreteGaussian(wide), 1)

        # Composed, Gaussian noise is that of one answer with all of the rho, or nearly; that zCDP
        # reaches the promise is proved without a search.
        base = rho_of_epsilon(epsilon, delta)
        whole = Fraction(gaussian_mu(epsilon, delta)) ** 2 / 2
        steps = [shortened(whole * (1 - part), _BITS, up=False) for part in _PARTS]
    else:

        def made(rho: Fraction) -> TeacherVote:
            # A vote that changes moves two counts apart by 2: a choice costs twice its rate.
            rate = rho / 2
            if method == "exponential":
                return TeacherVote(Exponential(rate))
            if method == "permute-and-flip":
                return TeacherVote(PermuteAndFlip(rate))
            return TeacherVote(NoisyMax(rate, "laplace"))

        base = epsilon / answers
        # From the sum of epsilons up to the most that any theorem could give.
        grown = math.log(answers) / _STEPS
        steps = [
            shortened(base * Fraction(math.exp(grown * k)), _BITS, up=False)
            for k in range(_STEPS - 1, 0, -1)
        ]
    best = made(base)
    if delta:
        best = _first(made, best, [x for x in steps if x > base], epsilon, delta, answers, queries)
    return best


def _first(
    made: Callable[[Fraction], TeacherVote],
    least: TeacherVote,
    steps: Sequence[Fraction],
    epsilon: Fraction,
    delta: Fraction,
    answers: int,
    queries: int,
) -> TeacherVote:
    """The first of falling parameters whose composed loss keeps the promise, by halving."""
    asked, most = printing_at_most(epsilon), printing_at_most(delta)

    def keeps(parameter: Fraction) -> bool:
        try:
            found = _composed(made(parameter), answers, queries).delta(asked)
        except ArgumentError:
            return False
        return found.upper <= most

    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(steps[middle]) else (middle + 1, high)
    return made(steps[low]) if low < len(steps) else least
