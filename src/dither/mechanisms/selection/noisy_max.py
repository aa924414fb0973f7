"""Report-noisy-max: add noise to every utility and name the largest, but not its value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self, get_args

import numpy as np

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._composable import bounded_class, pure_class
from dither.mechanisms.selection._selection import Selection
from dither.mechanisms.selection.exponential import Exponential
from dither.mechanisms.selection.permute_and_flip import PermuteAndFlip
from dither.privacy import Loss, Neighbours

__all__ = ["NoisyMax"]

Kind = Literal["gumbel", "exponential", "laplace"]


@dataclass(frozen=True, slots=True)
class NoisyMax(Selection):
    """Report-noisy-max, bound to its exact rate.

    Noise of scale 1/rate is added to every utility, and the index of the largest is released:

    * ``"gumbel"``: the exponential mechanism, by another name, and drawn as it (`Exponential`);
    * ``"exponential"``: permute-and-flip, by another name, and drawn as it (`PermuteAndFlip`);
    * ``"laplace"``: discrete Laplace noise on the integer utilities; ties go to the candidate that
      comes first in a uniformly random order.

    The winner's noisy value must not be released with it: that would cost more than the winner. For
    the value, add fresh noise (`Peeling`).

    Parameters
    ----------
    rate : Fraction
        Above 0: one over the scale of the noise.
    kind : {"gumbel", "exponential", "laplace"}
        The noise.

    Raises
    ------
    ArgumentError
        The rate is not a number above 0, or the noise is not known.

    Notes
    -----
    *Guarantee.* Of the first two, that of the mechanisms named. With Laplace noise, where each
    integer u_i changes by at most ``sensitivity`` between neighbours, of either relation:
    epsilon-DP with epsilon = 2·rate·sensitivity, or rate·sensitivity if the utilities are monotone,
    all changing in the same direction.

    *Proof.* Fix the order and all noises but Z_i. Let s = 2·sensitivity (sensitivity, if monotone).
    If i wins with Z_i = z on D, then on D' it wins with z + s: its lead over each other candidate
    shrank by at most s, so u'_i + z + s >= u'_j + Z_j, and equality there means equality on D,
    where i came first in the order. So the set of z with which i wins moves by at most s, and
    Pr[Z_i = z] <= exp(rate·s)·Pr[Z_i = z + s]. Average over the rest.

    *Timing.* How long a draw takes depends on the utilities; where single draws may be timed, give
    the answer at a time fixed in advance.

    References
    ----------
    Dwork and Roth, "The algorithmic foundations of differential privacy", 2014, section 3.3 (claim
    3.9, for continuous noise and counts); with ties and integers as proved above.

    Examples
    --------
    >>> mechanism = NoisyMax.for_loss(1, sensitivity=1, kind="laplace")
    >>> mechanism.draw([0, 1000, 3]), mechanism.loss(sensitivity=1).charge.epsilon
    (1, Fraction(1, 1))
    """

    title: ClassVar[str] = "report-noisy-max"

    kind: Kind = "exponential"

    def __post_init__(self) -> None:
        self._settle_positive("rate")
        check.choice("kind of noise", self.kind, get_args(Kind))
        if self.kind == "laplace" and 1 / self.rate > noise.MAX_SCALE:
            raise ArgumentError("rate must be at least 2**-52 for Laplace noise")

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        *,
        sensitivity: int,
        monotone: bool = False,
        kind: Kind = "exponential",
    ) -> Self:
        """The mechanism that costs exactly epsilon at this sensitivity."""
        found = Exponential.for_loss(epsilon, sensitivity=sensitivity, monotone=monotone)
        return cls(found.rate, kind)

    def _loss(self, epsilon: Fraction, neighbours: Neighbours | str) -> Loss:
        """With Gumbel noise of bounded range, so that rho is epsilon²/8."""
        return (bounded_class if self.kind == "gumbel" else pure_class)(epsilon, neighbours)

    def draw(self, utilities: Sequence[int]) -> int:
        """Pick the index of one candidate; arguments and errors as of `Selection.draw`."""
        if self.kind == "gumbel":
            # The same law, drawn exactly; real-valued noise would have to be rounded.
            return Exponential(self.rate).draw(utilities)
        if self.kind == "exponential":
            return PermuteAndFlip(self.rate).draw(utilities)
        found = check.integers("utilities", utilities)
        noisy = [
            u + int(z)
            for u, z in zip(found, noise.discrete_laplace(1 / self.rate, len(found)), strict=True)
        ]
        top = max(noisy)
        # By chance, as integers tie often: a rule that looked at the index would not treat all
        # alike.
        tied = np.array([i for i, value in enumerate(noisy) if value == top])
        return int(tied[noise.below(len(tied), 1)[0]])

    def miss_probability(self, gap: int, candidates: int) -> float:
        """A bound of Pr[the pick is ``gap`` or more below the best], by the union over candidates.

        With Laplace noise it is (n - 1)·Pr[Z - Z' >= gap]; with r = exp(-rate), for k >= 0,
        Pr[Z - Z' = k] = ((1 - r)/(1 + r))²·((k + 1)·r^k + 2·r^(k + 2)/(1 - r²)).
        """
        bound = Exponential(self.rate).miss_probability(gap, candidates)
        if self.kind != "laplace" or gap < 1:
            return bound
        rate = float(self.rate)
        r, lost = math.exp(-rate), -math.expm1(-rate)
        tail = (gap + 1) / lost + r / lost**2 + 2 * r * r / ((1 + r) * lost**2)
        each = math.exp(-rate * gap) * (lost / (1 + r)) ** 2 * tail
        return min(1.0, (candidates - 1) * each)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        kinds: tuple[Literal["gumbel", "exponential", "laplace"], ...]
        kinds = ("gumbel", "exponential", "laplace")
        for kind in kinds:
            pick = cls.for_loss(1, sensitivity=1, kind=kind)
            d0, d1 = (1, 0, 0, 0, 0, 0), (0, 1, 1, 1, 1, 1)
            yield Subject(f"noisy max, {kind}", pick.draw, d0, d1)
