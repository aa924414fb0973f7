"""Peeling: pick the k largest coordinates of a vector, one by one, and release them with noise.

Mechanism. k times: pick the coordinate with the largest |v_i| among those left, by a selection
mechanism. Then add *fresh* noise to the k picked values. With the exponential mechanism as the
selection the picks are one-shot top-k.

Assumption. v is an integer vector of which each coordinate changes by at most ``sensitivity``
between neighbours (the neighbour relation is the caller's). Then so does each |v_i|.

Guarantee. The sum of k selection losses and of the loss of the values, whose sensitivities are
l1 = k·sensitivity and l2_squared = k·sensitivity².

Proof. Given the picks, the values are k fixed coordinates; everything composes adaptively. The
noise of the picks says nothing that composition does not allow, as it is never used again.

Source. Dwork, Su and Zhang, "Differentially private false discovery rate control", 2018; Cai, Wang
and Zhang, "The cost of privacy", Annals of Statistics 2021, for sparse means. With Gumbel and
Gaussian noise the same error costs less than in their Laplace form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.errors import ArgumentError
from dither.mechanisms.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.discrete_laplace import DiscreteLaplace
from dither.mechanisms.selection import Selection, check_integers, check_whole
from dither.privacy import Charge

__all__ = ["Peeling"]


@dataclass(frozen=True, slots=True)
class Peeling:
    """Noisy top-k values of an integer vector.

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

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dither.mechanisms import Exponential
    >>> pick = Exponential.for_loss(Fraction(1, 2), sensitivity=1)
    >>> peeling = Peeling(pick, 2, DiscreteGaussian.for_loss(Fraction(1, 16), l2_squared=2))
    >>> peeling.loss(sensitivity=1).rho
    Fraction(1, 8)
    >>> where, values = peeling.release([0, -5000, 3, 9000])
    >>> sorted(where)
    [1, 3]
    """

    selection: Selection
    k: int
    noise: DiscreteLaplace | DiscreteGaussian

    def __post_init__(self) -> None:
        if not isinstance(self.selection, Selection):
            raise ArgumentError("selection must be an Exponential, PermuteAndFlip or NoisyMax")
        if not isinstance(self.noise, DiscreteLaplace | DiscreteGaussian):
            raise ArgumentError("noise must be a DiscreteLaplace or a DiscreteGaussian")
        object.__setattr__(self, "k", check_whole("k", self.k))

    def loss(self, *, sensitivity: int) -> Charge:
        """What the picks and their values cost together."""
        whole = check_whole("sensitivity", sensitivity, 0)
        pick = self.selection.loss(sensitivity=whole)
        values = (
            self.noise.loss(l1=self.k * whole)
            if isinstance(self.noise, DiscreteLaplace)
            else self.noise.loss(l2_squared=self.k * whole**2)
        )
        return sum([pick] * self.k, values)

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
        found = check_integers("values", values)
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

    def parameters(self) -> dict[str, str]:
        """The law and its exact parameters as text, for certificates."""
        pick = {f"selection {name}": text for name, text in self.selection.parameters().items()}
        noise = {f"noise {name}": text for name, text in self.noise.parameters().items()}
        return {"mechanism": "peeling", "k": str(self.k)} | pick | noise
