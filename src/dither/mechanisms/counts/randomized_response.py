"""Randomised response: each person reports their own category, or by chance another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._stats import two_sided
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import _coins as coins
from dither.mechanisms._base import Integers, Mechanism, cheapest
from dither.mechanisms._composable import response_class
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["RandomizedResponse"]


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """Randomised response among k categories, bound to its exact epsilon.

    For a truth x ::

        Pr[report = x] = e^epsilon/(e^epsilon + k - 1),
        Pr[report = y] = 1/(e^epsilon + k - 1)   for each y != x

    Two categories are Warner's form [1]_, the truth with probability e^epsilon/(1 + e^epsilon);
    more are that of [2]_.

    Parameters
    ----------
    epsilon : Fraction
        Above 0.
    categories : int
        k, at least 2; they are the integers 0 to k - 1.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Local: the neighbours are all pairs of truths of one person. Each report is
    epsilon-DP, and rho-zCDP with rho = epsilon·tanh(epsilon/2), rounded up.

    *Proof.* Every probability is 1 or e^epsilon times 1/(e^epsilon + k - 1). For rho: an epsilon-DP
    pair of laws is a function of the two laws of binary randomised response [3]_, so these are the
    worst. With x = epsilon/2 and g(t) = log cosh(t·x) their Rényi divergence of order alpha is, for
    t = 2·alpha - 1, 2·(g(t) - g(1))/(t - 1). It has to be at most rho·alpha = x·tanh(x)·(t + 1),
    that is g(t) - g(1) <= (t² - 1)·x·tanh(x)/2 for t >= 1. Both sides are 0 at t = 1, and g'(t) =
    x·tanh(t·x) <= t·x·tanh(x), as tanh is concave and 0 at 0. No smaller rho serves two categories,
    since rho is their divergence as alpha goes to 1.

    *Error.* With p, q the two probabilities above, (reported share - q)/(p - q) is an unbiased
    estimate of a category's share f; given the truths of n people its variance is (f·p·(1 - p) + (1
    - f)·q·(1 - q))/(n·(p - q)²).

    References
    ----------
    .. [1] Warner, "Randomized response", JASA 1965.
    .. [2] Kairouz, Bonawitz and Ramage, "Discrete distribution estimation under local privacy",
       ICML 2016.
    .. [3] Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.

    Examples
    --------
    >>> mechanism = RandomizedResponse(1, 4)
    >>> reports = mechanism.draw([0, 1, 2, 3])
    >>> reports.shape, mechanism.loss().charge.epsilon, round(float(mechanism.loss().charge.rho), 4)
    ((4,), Fraction(1, 1), 0.4621)
    >>> round(mechanism.deviation(10_000), 4)
    0.0166
    """

    title: ClassVar[str] = "randomised response"

    epsilon: Fraction
    categories: int = 2

    def __post_init__(self) -> None:
        self._settle_positive("epsilon")
        self._settle(categories=check.whole("categories", self.categories, 2))

    @classmethod
    def for_loss(cls, epsilon: Number, *, categories: int = 2) -> Self:
        """The mechanism that costs exactly epsilon a report."""
        return cls(check.positive("epsilon", epsilon), categories)

    @classmethod
    def for_deviation(cls, deviation: float, *, reports: int, categories: int = 2) -> Self:
        """The least epsilon (three digits) whose `deviation` is at most the one given.

        Raises
        ------
        ArgumentError
            No epsilon up to 100 reaches it, or an argument is out of range.
        """
        made = partial(cls.for_loss, categories=categories)
        ends = {"low": Fraction(1, 1000), "high": Fraction(100)}
        return cheapest("deviation", deviation, made, lambda m: m.deviation(reports), **ends)

    def loss(self, *, neighbours: Neighbours | str = Neighbours.REPLACE) -> Loss:
        """What one report costs: epsilon, and the rho above; it composes exactly."""
        return response_class(self.epsilon, self.categories, neighbours)

    def draw(self, truths: Sequence[int] | Integers) -> Integers:
        """Report for each person, independently.

        Parameters
        ----------
        truths : sequence of int, shape (n,)
            Each in 0..k-1.

        Returns
        -------
        array of int64, shape (n,)

        Raises
        ------
        ArgumentError
            A truth is not one of the categories.
        """
        known = np.array(check.integers("truths", truths), dtype=object)
        if not np.all((known >= 0) & (known < self.categories)):
            raise ArgumentError("truths must be integers from 0 to categories - 1")
        found = known.astype(np.int64)
        kept = coins.real_coins(self._truth_bounds, found.size)
        others = noise.below(self.categories - 1, found.size)
        # Of the others each is as likely: a step of 1 to k - 1 around the circle.
        return np.where(kept, found, (found + 1 + others) % self.categories)

    @property
    def probabilities(self) -> tuple[float, float]:
        """(p, q): of the truth, and of each other category."""
        lie = math.exp(-float(self.epsilon))
        truth = 1 / (1 + (self.categories - 1) * lie)
        return truth, truth * lie

    def deviation(self, reports: int, share: float | None = None) -> float:
        """The standard deviation of the estimate of a category's share; the largest, without one.

        Parameters
        ----------
        reports : int
            n, at least 1.
        share : float, optional
            f in [0, 1].
        """
        p, q = self.probabilities
        n = check.whole("reports", reports, 1)
        shares = [0.0, 1.0] if share is None else [check.number("share", share, least=0, most=1)]
        each = [f * p * (1 - p) + (1 - f) * q * (1 - q) for f in shares]
        return math.sqrt(max(each) / n) / (p - q)

    def estimate(self, reports: Sequence[int] | Integers) -> npt.NDArray[np.float64]:
        """Unbiased estimates of all categories' shares; they sum to 1 and may be negative."""
        p, q = self.probabilities
        found = np.array(check.integers("reports", reports), dtype=np.int64)
        if found.min() < 0 or found.max() >= self.categories:
            raise ArgumentError("reports must be integers from 0 to categories - 1")
        shares = np.bincount(found, minlength=self.categories) / found.size
        return np.asarray((shares - q) / (p - q))

    def half_width(self, reports: int, confidence: float) -> float:
        """The half-width of a share's interval for the people asked, by the normal limit."""
        return two_sided(check.confidence(confidence)) * self.deviation(reports)

    def _truth_bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        others = self.categories - 1
        spare = bits + others.bit_length()
        return (
            # The chance of the truth falls with e^-epsilon: its upper end gives the lower bound.
            1 / (1 + others * directed.exp_upper(-self.epsilon, spare)),
            1 / (1 + others * directed.exp_lower(-self.epsilon, spare)),
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        response = cls(Fraction(1), 4)
        yield Subject(
            "randomised response", lambda truth, size: response.draw(np.full(size, truth)), 0, 1
        )
