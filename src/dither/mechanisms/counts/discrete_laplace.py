"""The discrete Laplace mechanism: pure privacy for integer vectors of bounded L1 sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise, Integers, largest_parameter
from dither.mechanisms._composable import laplace_pair
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["DiscreteLaplace", "Geometric"]


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(AdditiveNoise):
    """Discrete Laplace noise for integer vectors, bound to its exact scale.

    Added to each coordinate independently, with s the scale, r = exp(-1/s) and z an integer ::

        Pr[Z = z] = (1 - r)/(1 + r) · r^|z|

    It is also called the geometric mechanism. For one count of sensitivity 1 no epsilon-DP
    mechanism is more useful, to any Bayesian with a symmetric monotone loss [1]_.

    Parameters
    ----------
    scale : Fraction
        s above 0, in units of the integers it is added to.

    Raises
    ------
    ArgumentError
        The scale is not a number above 0, or beyond the sampler's reach.

    Notes
    -----
    *Guarantee.* Where ``l1`` bounds Σ|q_i(D) - q_i(D')| of the integer vector q for all neighbours
    D, D', of either relation: epsilon-DP with epsilon = l1/s exactly, hence (epsilon²/2)-zCDP [2]_.

    *Proof.* For every output y, Pr[y | D]/Pr[y | D'] = r^(Σ|y_i - q_i(D)| - |y_i - q_i(D')|), and
    by the triangle inequality the exponent is at least -Σ|q_i(D) - q_i(D')| >= -l1. So the ratio is
    at most r^(-l1) = exp(l1/s). It is attained wherever one coordinate carries the whole change and
    the change is as large as l1 (an integer): the loss is exact.

    References
    ----------
    .. [1] Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms",
       STOC 2009.
    .. [2] Bun and Steinke, "Concentrated differential privacy", TCC 2016, proposition 1.4.

    Examples
    --------
    >>> mechanism = DiscreteLaplace.for_loss("1/2", l1=3)
    >>> mechanism.scale, mechanism.loss(l1=3).charge.epsilon
    (Fraction(6, 1), Fraction(1, 2))
    >>> mechanism.half_width(0.95)
    18
    """

    title: ClassVar[str] = "discrete Laplace"

    scale: Fraction

    def __post_init__(self) -> None:
        self._settle_positive("scale")
        if self.scale > noise.MAX_SCALE:
            raise ArgumentError(
                "scale must be at most 2**52: ask for a larger epsilon or a coarser lattice"
            )

    @classmethod
    def for_loss(cls, epsilon: Number, *, l1: Number) -> DiscreteLaplace:
        """The mechanism that costs exactly epsilon at L1 sensitivity ``l1``."""
        return cls(check.positive("l1", l1) / check.positive("epsilon", epsilon))

    @classmethod
    def for_half_width(cls, half_width: int, *, confidence: float) -> DiscreteLaplace:
        """The noise of largest scale (three digits) whose half-width is at most the one given.

        Raises
        ------
        ArgumentError
            An argument is out of range.
        """
        found = largest_parameter("half_width", half_width, cls, confidence, noise.MAX_SCALE)
        return cls(found)

    def loss(self, *, l1: Number, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What a release of L1 sensitivity ``l1`` costs: pure epsilon = l1/scale.

        It composes as one coordinate that carries the whole change, floor(l1).
        """
        return laplace_pair(self.scale, check.exact("l1", l1, least=0), neighbours)

    def _draw(self, n: int) -> Integers:
        return noise.discrete_laplace(self.scale, n)

    @property
    def variance(self) -> float:
        """2r/(1 - r)², slightly below 2·scale²."""
        inverse = float(1 / self.scale)
        if inverse > 700:
            return 0.0
        return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2

    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]: r^t/(1 + r) for t >= 1.

        For t <= 0 it is 1 - Pr[Z >= 1 - t], with that tail bounded from below.
        """
        over_scale = 1 / self.scale
        if t >= 1:
            return directed.exp_upper(-t * over_scale) / (1 + directed.exp_lower(-over_scale))
        below = directed.exp_lower((t - 1) * over_scale) / (1 + directed.exp_upper(-over_scale))
        return 1 - below

    def _survival(self, t: int) -> float:
        inverse = float(1 / self.scale)
        return math.exp(-t * inverse) / (1 + math.exp(-inverse))

    def _guess(self, outside: float) -> float:
        inverse = float(1 / self.scale)
        return (math.log(2 / outside) - math.log1p(math.exp(-inverse))) / inverse - 1

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise = cls.for_loss(1, l1=1)
        yield Subject("discrete Laplace", lambda count, size: count + noise.draw(size), 0, 1)


Geometric = DiscreteLaplace
"""`DiscreteLaplace`, under the name that statisticians of counts use."""
