"""What votes cost on the very votes that were cast: a private number, and its private release.

Where nearly all teachers agree, an answer says little of any one of them, and the Rényi divergence
between these votes and any neighbour's is far below that between the worst two. But that number is
a function of the votes, and so of the rows: it must not be published, nor decide what is published.
This module keeps it apart. Nothing here makes a `Loss` of it, and no certificate or ledger takes
it; what may be published is an estimate with noise, at a cost of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import cost_text, number_text
from dither._notebook import Shown
from dither.errors import ArgumentError
from dither.learn._spending import Spending
from dither.learn.votes._ballot import TeacherVote
from dither.mechanisms import DiscreteGaussian, SmoothMedian
from dither.numeric._balls import Ball, library, precision, up
from dither.privacy import Loss, Neighbours
from dither.privacy._compound import votes_at

__all__ = ["PrivateCost", "PublishedCost", "costs_by_margin", "falls", "miss_bounds"]

Integers = npt.NDArray[np.int64]

UNIT = Fraction(1, 1 << 24)
"""Of divergences that are added up as whole numbers, each rounded up."""

_ORDERS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256)
_BITS = 60


@dataclass(frozen=True, repr=False)
class PublishedCost:
    """A noisy estimate of what answers cost on the votes that were cast. It may be published.

    Parameters
    ----------
    order : int
        Of the Rényi divergence.
    divergence : float
        The estimate: its noise may take it below the truth as well as above. It is not a guarantee.
    loss : Loss
        What publishing it costs.
    """

    order: int
    divergence: float
    loss: Loss

    def estimate(self, delta: Number) -> float:
        """The epsilon at a delta that this divergence would mean."""
        return _epsilon({self.order: self.divergence}, delta)

    def __repr__(self) -> str:
        charge = self.loss.charge
        return (
            f"<published estimate, not a guarantee: about {number_text(self.divergence)} of "
            f"divergence at order {self.order}; publishing it cost "
            f"{cost_text(charge.epsilon, charge.delta)}>"
        )


class PrivateCost(Shown):
    """What answers cost on the votes that were cast. **Private: for the keeper of the rows alone.**

    Made by `Votes.data_dependent`. It is not a loss: it cannot be added to one, charged or
    certified. `release` makes an estimate that may be published.

    Notes
    -----
    *Bound.* Of one answer at noise sigma2, with Delta the votes by which the first label leads: by
    theorem 6 of [1]_, which takes any bound of the chance that another label is named. Each of
    k - 1 labels is, with a chance of at most Pr[Z - Z' >= Delta] of two discrete Gaussian noises; a
    smaller lead is never taken to cost less. To that come the checks, as they always cost. It
    compares these votes with those of any neighbour, and holds for no neighbour's own.

    *Release* at an order fixed in advance. The sum F of the answers' bounds, whole numbers of
    `UNIT`, each capped by the bound that needs no votes. A vote that moves changes each lead by at
    most 2. Let c(Delta) be the bound, falling in Delta, and ::

        A_d(Delta) = max of c(max(D - 2, 0)) - c(D)  over D within 2d + 2 of Delta
        S = max over d of g_d·(sum over answers of A_d),     g falling by at most q a step

    Then |F - F'| <= S at both of two neighbours, since the D of a lead that rises from D - 2 to D
    lies within 2 of either, and S <= S'/q, since leads within 2d + 2 of Delta lie within
    2(d + 1) + 2 of Delta'. So the noise of `SmoothMedian`, whose proof needs just this, makes its
    release (epsilon, delta)-DP.

    References
    ----------
    .. [1] Papernot and others, "Scalable private learning with PATE", ICLR 2018, theorem 6 and
       appendix B (which uses Gaussian noise, and a closer bound that needs more proof).
    """

    def __init__(
        self,
        ballot: TeacherVote,
        teachers: int,
        labels: int,
        margins: tuple[int, ...],
        checks: int,
        neighbours: Neighbours,
        spending: Spending | None,
    ) -> None:
        assert isinstance(ballot.answer, DiscreteGaussian)
        self._sigma2, self._check = ballot.answer.sigma2, ballot.check
        self._teachers, self._labels, self._margins = teachers, labels, margins
        self._checks, self._neighbours, self._spending = checks, neighbours, spending

    def __repr__(self) -> str:
        return (
            f"<PRIVATE: the data-dependent cost of {len(self._margins):,} answers. It depends on "
            "the votes: do not publish it or let it decide what is published; see release()>"
        )

    __str__ = __repr__

    def secret_epsilon(self, delta: Number) -> float:
        """The epsilon at a delta of these very votes: **a private number**.

        Parameters
        ----------
        delta : number
            In (0, 1).

        Returns
        -------
        float
        """
        return _epsilon({order: self._divergence(order) for order in _ORDERS}, delta)

    def release(self, *, epsilon: Number, delta: Number, order: int = 16) -> PublishedCost:
        """Publish an estimate of the divergence at an order, at a cost of its own.

        Parameters
        ----------
        epsilon, delta : number
            What the release costs, beside all answers. Charged to the account of the votes, where
            they have one, before anything is drawn.
        order : int
            From 2 to 1,000; to be chosen without looking.

        Returns
        -------
        PublishedCost

        Raises
        ------
        ArgumentError
            A parameter is out of range.
        BudgetError
            The ledger refuses; nothing was released.
        """
        at = check.whole("order", order, 2, most=1000)
        costs = costs_by_margin(at, self._sigma2, self._teachers, self._labels)
        most = max(1, int(costs[0]) * len(self._margins))
        noise = SmoothMedian.for_loss(epsilon, delta, lower=0, upper=most)
        loss = noise.loss(neighbours=self._neighbours)
        if self._spending is not None:
            said = (at, noise.epsilon, noise.falloff, len(self._margins), self._checks)
            self._spending.once(loss, f"cost of {len(self._margins)} answers at {at}", *said)
        total = sum(int(costs[m]) for m in self._margins)
        noisy = min(most, max(0, total + noise.draw(self._smooth(costs, noise.falloff))))
        return PublishedCost(at, float(noisy * UNIT) + self._of_checks(at), loss)

    def _divergence(self, order: int) -> float:
        costs = costs_by_margin(order, self._sigma2, self._teachers, self._labels)
        return float(sum(int(costs[m]) for m in self._margins) * UNIT) + self._of_checks(order)

    def _of_checks(self, order: int) -> float:
        if self._check is None:
            return 0.0
        return float(self._checks * order / (2 * self._check.sigma2))

    def _smooth(self, costs: Integers, falloff: Fraction) -> Fraction:
        """S, in units; at least 1, so that there is always noise."""
        counted = np.bincount(self._margins, minlength=len(costs)).tolist()
        one = g = 1 << _BITS
        best = one
        for fall in falls(costs):
            best = max(best, g * sum(n * int(a) for n, a in zip(counted, fall, strict=True) if n))
            # Rounded up, so that it falls by no more than q.
            g = math.ceil(g * falloff)
        return Fraction(best, one)


def falls(costs: Integers) -> list[Integers]:
    """A_d of each lead, for d from 0 until nothing changes."""
    one = np.concatenate([[0], costs[np.maximum(np.arange(1, len(costs)) - 2, 0)] - costs[1:]])
    found = [_widened(one)]
    while True:
        wider = _widened(found[-1])
        if (wider == found[-1]).all():
            return found
        found.append(wider)


def _widened(values: Integers) -> Integers:
    """The largest within 2 places."""
    padded = np.pad(values, 2)
    return np.asarray(np.max([padded[i : i + len(values)] for i in range(5)], axis=0))


@lru_cache(maxsize=64)
def costs_by_margin(order: int, sigma2: Fraction, teachers: int, labels: int) -> Integers:
    """c: of each lead, from 0 to all teachers, what an answer costs at most, in units."""
    with precision(128) as flint:
        sigma = flint.arb(flint.fmpq(sigma2.numerator, sigma2.denominator)).sqrt()
        chances = miss_bounds(sigma2, teachers, labels)
        found = [math.ceil(Fraction(votes_at(order, sigma, q)) / UNIT) for q in chances]
    if max(found) * 10**6 > 2**60:
        raise ArgumentError("order must be lower: at so little noise an answer costs too much")
    # A longer lead is never taken to cost more than a shorter one.
    return np.maximum.accumulate(np.array(found[::-1], dtype=np.int64))[::-1]


def miss_bounds(sigma2: Fraction, teachers: int, labels: int) -> list[float]:
    """By the lead: a bound of the chance that another label than the first is named.

    (labels - 1)·Pr[Z - Z' >= lead], summed over w from the lead on, with N the sum of exp(-z²/(2·
    sigma2)) over all integers z::

        Pr[Z - Z' = w] = exp(-w²/(4·sigma2))/N²·sum over z of exp(-(z - w/2)²/sigma2)

    in which the last sum is largest at w = 0 (Poisson summation has positive terms).
    """
    with precision(128) as flint:
        s2 = flint.arb(flint.fmpq(sigma2.numerator, sigma2.denominator))
        norm, second = _theta(1 / (2 * s2)), _theta(1 / s2)
        # Beyond the last lead: terms fall by at least the ratio of the first two.
        last = flint.arb(teachers + 1)
        first = (-(last**2) / (4 * s2)).exp()
        total = first / (1 - (-(2 * last + 1) / (4 * s2)).exp())
        found = []
        for lead in range(teachers, -1, -1):
            total += (-(flint.arb(lead) ** 2) / (4 * s2)).exp()
            found.append(min(1.0, up((labels - 1) * total * second / norm**2)))
    return found[::-1]


def _theta(rate: Ball) -> Ball:
    """The sum of exp(-rate·z²) over all integers."""
    flint = library()
    reach = math.ceil(math.sqrt(100 / float(rate))) + 1
    if reach > 100_000:
        # By Poisson summation: sqrt(pi/rate)·(1 + 2·exp(-pi²/rate) + ...), and rate is tiny.
        small = (-(flint.arb.pi() ** 2) / rate).exp()
        return (flint.arb.pi() / rate).sqrt() * (1 + flint.arb(0).union(4 * small))
    inner = sum(((-rate * flint.arb(z) ** 2).exp() for z in range(1, reach)), flint.arb(0))
    edge = (-rate * flint.arb(reach) ** 2).exp() / (1 - (-rate * (2 * reach + 1)).exp())
    return 1 + 2 * (inner + flint.arb(0).union(edge))


def _epsilon(divergences: dict[int, float], delta: Number) -> float:
    """The least over orders of D + log(1 - 1/a) - log(delta·a)/(a - 1), nearly."""
    target = float(check.exact("delta", delta, above=0, below=1))
    return max(
        0.0,
        min(
            value + math.log1p(-1 / a) - (math.log(target) + math.log(a)) / (a - 1)
            for a, value in divergences.items()
        ),
    )
