"""The Gaussian mechanism for real answers, calibrated by its exact delta, on a public lattice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.mechanisms._base import largest_parameter
from dither.mechanisms._reals import RealNoise, check_step, steps_l2_squared
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.privacy import Charge, Loss, Neighbours

__all__ = ["Gaussian"]


@dataclass(frozen=True, slots=True)
class Gaussian(RealNoise):
    """Gaussian noise for real answers on a public lattice, bound to its exact sigma2 and step.

    The answer is rounded to multiples of h, the step, and z·h is added for an integer z with ::

        Pr[z] proportional to exp(-(z·h)²/(2·sigma2))

    Parameters
    ----------
    sigma2 : Fraction
        σ² above 0, in squared units of the answer.
    step : Fraction
        The public lattice, above 0, in the answer's units; sigma2/step² is at most 2**104.

    Raises
    ------
    ArgumentError
        A parameter is not a number above 0, or beyond the sampler's reach.

    Notes
    -----
    *Guarantee.* Where neighbours, of either relation, change the ``dimension`` numbers of the
    answer by at most ``l2`` in the Euclidean norm: at every epsilon (epsilon, `delta`)-DP, and
    rho-zCDP with rho = (L2 sensitivity in steps)²·h²/(2·sigma2).

    *Proof.* The rounded answer is an integer vector of that sensitivity (`_reals`), and discrete
    Gaussian noise is added to it (`DiscreteGaussian`). Its delta is exact for one number on a
    coarse lattice; else it is Balle and Wang's exact condition for continuous noise [1]_, less a
    proven correction that a fine lattice makes invisible, for vectors too (`_analytic`).

    The classic sigma, l2·sqrt(2·log(1.25/delta))/epsilon, is too large for epsilon <= 1 and not
    private for some above: at (10, 1e-5) its delta is 2.27e-5. The sigma of the conversion from
    zCDP is some seven per cent too large at (1, 1e-6).

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> mechanism = Gaussian.for_loss(1, 1e-5, l2=1)
    >>> round(mechanism.sigma, 9)
    3.730631635
    >>> cost = mechanism.loss(l2=1, epsilon=1).charge
    >>> cost.epsilon, cost.delta <= 1e-5
    (Fraction(1, 1), True)
    >>> len(Gaussian.for_loss(1, 1e-5, l2=1, dimension=3).release([0.5, 2.25, -1.0]))
    3
    """

    title: ClassVar[str] = "Gaussian"

    sigma2: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        self._settle_positive("sigma2", "step")
        DiscreteGaussian(self.sigma2 / self.step**2)

    @property
    def noise(self) -> DiscreteGaussian:
        """The noise in steps."""
        return DiscreteGaussian(self.sigma2 / self.step**2)

    @property
    def sigma(self) -> float:
        """σ in the answer's units."""
        return math.sqrt(self.sigma2)

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        l2: Number,
        dimension: int = 1,
        step: Number | None = None,
    ) -> Self:
        """The least noise found that is (epsilon, delta)-DP, rounding included.

        Parameters
        ----------
        epsilon, delta : Fraction
            Above 0, and in (0, 1).
        l2 : Fraction
            L2 sensitivity, above 0, in the answer's units.
        dimension : int
            How many numbers the answer has.
        step : Fraction, optional
            The public lattice; without it, a fine one that follows from l2 and dimension.
        """
        change = check.positive("l2", l2)
        exact = check_step(step, change, check.whole("dimension", dimension, 1))
        square = steps_l2_squared(change, exact, dimension)
        found = DiscreteGaussian.for_epsilon(
            epsilon, delta, l2_squared=square, coordinates=dimension
        )
        return cls(found.sigma2 * exact**2, exact)

    @classmethod
    def for_half_width(cls, half_width: Number, *, confidence: float, step: Number) -> Self:
        """The mechanism of largest σ² (three digits, in steps²) with this half-width.

        Raises
        ------
        ArgumentError
            Nothing on this lattice reaches it, or an argument is out of range.
        """
        exact = check.positive("step", step)
        found = largest_parameter(
            "half_width",
            half_width,
            lambda s: cls(s * exact**2, exact),
            confidence,
            noise.MAX_SIGMA2,
        )
        return cls(found * exact**2, exact)

    def delta(self, epsilon: Number, *, l2: Number, dimension: int = 1) -> Fraction:
        """A proven upper bound of the delta at an epsilon, tight to many digits."""
        square = steps_l2_squared(l2, self.step, dimension)
        return self.noise.delta(epsilon, l2_squared=square, coordinates=dimension)

    def loss(
        self,
        *,
        l2: Number,
        dimension: int = 1,
        epsilon: Number | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What a release costs: rho, and (epsilon, `delta`) where an epsilon is named.

        The epsilon is for the charge alone, which otherwise claims none: the loss itself answers at
        every epsilon.
        """
        square = steps_l2_squared(l2, self.step, dimension)
        found = self.noise.loss(l2_squared=square, coordinates=dimension, neighbours=neighbours)
        if epsilon is None or found.free:
            return found
        at = check.positive("epsilon", epsilon)
        delta = self.delta(at, l2=l2, dimension=dimension)
        return found.with_charge(Charge(at, delta, found.charge.rho))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        noise = cls.for_loss(Fraction(1), delta, l2=1)
        yield Subject("Gaussian", noise.release, 0.0, 1.0, delta=delta)
