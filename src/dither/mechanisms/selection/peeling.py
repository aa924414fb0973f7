"""Peeling: pick the k largest coordinates of a vector, one by one, and release them with noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import Mechanism, cheapest
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.selection._selection import (
    Selection,
    smallest_shortfall,
)
from dither.mechanisms.selection.exponential import Exponential
from dither.privacy import Loss, Neighbours

__all__ = ["Peeling"]


@dataclass(frozen=True, slots=True)
class Peeling(Mechanism):
    """Noisy top-k values of an integer vector.

    k times: pick the coordinate with the largest |v_i| among those left, by a selection mechanism.
    Then add *fresh* noise to the k picked values. With the exponential mechanism as the selection
    the picks are one-shot top-k (`TopK`).

    Parameters
    ----------
    selection : Selection
        Picks one coordinate: `Exponential`, `PermuteAndFlip` or `NoisyMax`.
    k : int
        How many coordinates are released, at least 1.
    noise : DiscreteLaplace or DiscreteGaussian
        Added to the picked values.

    Raises
    ------
    ArgumentError
        A parameter is of the wrong kind or out of range.

    Notes
    -----
    *Guarantee.* Where each coordinate changes by at most ``sensitivity`` between neighbours, of
    either relation, and then so does each |v_i|: the sum of k selection losses and of the loss of
    the values, whose sensitivities are l1 = k·sensitivity and l2_squared = k·sensitivity².

    *Proof.* Given the picks, the values are k fixed coordinates; everything composes adaptively.
    The noise of the picks reveals no more than composition allows, as it is never used again.

    *Timing.* How long the picks take depends on the values; where they may be timed, give the
    answer at a time fixed in advance.

    References
    ----------
    Dwork, Su and Zhang, "Differentially private false discovery rate control", 2018; Cai, Wang and
    Zhang, "The cost of privacy", Annals of Statistics 2021, for sparse means. With Gumbel and
    Gaussian noise the same error costs less than in their Laplace form.

    Examples
    --------
    >>> from dither.mechanisms import Exponential
    >>> pick = Exponential.for_loss("1/2", sensitivity=1)
    >>> peeling = Peeling(pick, 2, DiscreteGaussian.for_loss("1/16", l2_squared=2))
    >>> peeling.loss(sensitivity=1).charge.rho
    Fraction(1, 8)
    >>> where, values = peeling.release([0, -5000, 3, 9000])
    >>> sorted(where)
    [1, 3]
    """

    title: ClassVar[str] = "peeling"

    selection: Selection
    k: int
    noise: DiscreteLaplace | DiscreteGaussian

    def __post_init__(self) -> None:
        if not isinstance(self.selection, Selection):
            raise ArgumentError("selection must be an Exponential, PermuteAndFlip or NoisyMax")
        if not isinstance(self.noise, DiscreteLaplace | DiscreteGaussian):
            raise ArgumentError("noise must be a DiscreteLaplace or a DiscreteGaussian")
        self._settle(k=check.whole("k", self.k, 1))

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        *,
        k: int,
        sensitivity: int,
        value_share: Number = Fraction(1, 2),
    ) -> Self:
        """Exponential picks and Laplace values that cost exactly epsilon in all.

        ``value_share`` in (0, 1) of epsilon goes to the values.
        """
        exact, times = check.positive("epsilon", epsilon), check.whole("k", k, 1)
        share = check.exact("value_share", value_share, above=0, below=1)
        pick = Exponential.for_loss(exact * (1 - share) / times, sensitivity=sensitivity)
        return cls(pick, times, DiscreteLaplace.for_loss(exact * share, l1=times * sensitivity))

    @classmethod
    def for_half_width(
        cls,
        half_width: int,
        *,
        k: int,
        sensitivity: int,
        confidence: float,
        value_share: Number = Fraction(1, 2),
    ) -> Self:
        """The peeling of least epsilon (three digits) whose values' half-width is as asked.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        made = partial(cls.for_loss, k=k, sensitivity=sensitivity, value_share=value_share)
        return cheapest("half_width", half_width, made, lambda m: m.half_width(confidence))

    def loss(
        self, *, sensitivity: int, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Loss:
        """What the picks and their values cost together: k picks and k values, each by its own."""
        whole = check.whole("sensitivity", sensitivity)
        pick = self.selection.loss(sensitivity=whole, neighbours=neighbours)
        if isinstance(self.noise, DiscreteLaplace):
            value = self.noise.loss(l1=whole, neighbours=neighbours)
        else:
            value = self.noise.loss(l2_squared=whole**2, coordinates=1, neighbours=neighbours)
        return self.k * pick + self.k * value

    def shortfall(self, candidates: int, confidence: float) -> int:
        """The least w with Pr[some pick is more than w below the k-th best] <= 1 - confidence.

        By a union over the k picks: in each round one of the k best is still there.
        """
        n = check.whole("candidates", candidates, self.k)
        return smallest_shortfall(
            lambda gap: min(1.0, self.k * self.selection.miss_probability(gap, n)), confidence
        )

    def release(self, values: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Pick k coordinates and give their noisy values.

        Parameters
        ----------
        values : sequence of int
            At least k.

        Returns
        -------
        where, noisy : tuples of k int
            The coordinates in the order of picking, and their values with fresh noise.

        Raises
        ------
        ArgumentError
            There are fewer than k values, or they are not integers.
        """
        found = check.integers("values", values)
        if len(found) < self.k:
            raise ArgumentError("values must hold at least k coordinates; ask for a smaller k")
        left = list(range(len(found)))
        where = tuple(
            left.pop(self.selection.draw([abs(found[i]) for i in left])) for _ in range(self.k)
        )
        fresh = np.asarray(self.noise.draw(self.k))
        return where, tuple(found[i] + int(z) for i, z in zip(where, fresh, strict=True))

    def half_width(self, confidence: float) -> int:
        """The half-width that each released value's own interval has."""
        return self.noise.half_width(confidence)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        pick = Exponential.for_loss(Fraction(1, 4), sensitivity=1)
        peel = cls(pick, 2, DiscreteLaplace.for_loss(Fraction(1, 2), l1=2))
        epsilon = peel.loss(sensitivity=1).charge.epsilon
        assert epsilon is not None
        yield Subject("peeling", peel.release, (1, 1, 0, 0), (0, 0, 1, 1), epsilon)
