"""The Laplace mechanism for real answers: pure privacy, on a public lattice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.mechanisms._base import largest_parameter
from dither.mechanisms._reals import RealNoise, check_step, steps_l1
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True)
class Laplace(RealNoise):
    """Laplace noise for real answers on a public lattice, bound to its exact scale and step.

    The answer is rounded to multiples of h, the step, and z·h is added for an integer z with ::

        Pr[z] proportional to exp(-|z|·h/scale)

    As h falls to 0 this becomes the Laplace law of density exp(-|x|/scale)/(2·scale). Samplers of
    that law in floating point leak through its gaps [2]_; this one has none.

    Parameters
    ----------
    scale : Fraction
        Above 0, in the answer's units.
    step : Fraction
        The public lattice, above 0, in the answer's units; scale/step is at most 2**52.

    Raises
    ------
    ArgumentError
        A parameter is not a number above 0, or beyond the sampler's reach.

    Notes
    -----
    *Guarantee.* Where neighbours, of either relation, change the ``dimension`` numbers of the
    answer by at most ``l1`` in the L1 norm: epsilon-DP with epsilon = (ceil(l1/h) + dimension -
    1)·h/scale exactly, the rounding included.

    *Proof.* The rounded answer is an integer vector of that L1 sensitivity in steps (`_reals`), and
    discrete Laplace noise is added to it (`DiscreteLaplace`), after [1]_.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data
       analysis", TCC 2006.
    .. [2] Mironov, "On significance of the least significant bits for differential privacy", CCS
       2012.

    Examples
    --------
    >>> mechanism = Laplace.for_loss("1/2", l1="5/2", step="1/100")
    >>> mechanism.scale, mechanism.loss(l1="5/2").charge.epsilon
    (Fraction(5, 1), Fraction(1, 2))
    >>> abs(mechanism.release(1234.56) - 1234) < 1000, mechanism.half_width(0.95)
    (True, 14.985)
    """

    title: ClassVar[str] = "Laplace"

    scale: Fraction
    step: Fraction

    def __post_init__(self) -> None:
        self._settle_positive("scale", "step")
        DiscreteLaplace(self.scale / self.step)

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise in steps."""
        return DiscreteLaplace(self.scale / self.step)

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        *,
        l1: Number,
        dimension: int = 1,
        step: Number | None = None,
    ) -> Self:
        """The mechanism that costs exactly epsilon, rounding included.

        Parameters
        ----------
        epsilon : Fraction
            Above 0.
        l1 : Fraction
            L1 sensitivity, above 0, in the answer's units.
        dimension : int
            How many numbers the answer has.
        step : Fraction, optional
            The public lattice; without it, a fine one that follows from l1 and dimension.
        """
        change = check.positive("l1", l1)
        exact = check_step(step, change, check.whole("dimension", dimension, 1))
        return cls(
            steps_l1(change, exact, dimension) * exact / check.positive("epsilon", epsilon), exact
        )

    @classmethod
    def for_half_width(cls, half_width: Number, *, confidence: float, step: Number) -> Self:
        """The mechanism of largest scale (three digits, in steps) with this half-width.

        Raises
        ------
        ArgumentError
            Nothing on this lattice reaches it, or an argument is out of range.
        """
        exact = check.positive("step", step)
        found = largest_parameter(
            "half_width", half_width, lambda s: cls(s * exact, exact), confidence, noise.MAX_SCALE
        )
        return cls(found * exact, exact)

    def loss(
        self,
        *,
        l1: Number,
        dimension: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What a release of L1 sensitivity ``l1`` costs: pure epsilon."""
        return self.noise.loss(l1=steps_l1(l1, self.step, dimension), neighbours=neighbours)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise = cls.for_loss(1, l1=1, step=Fraction(1, 64))
        yield Subject("Laplace", noise.release, 0.0, 1.0)
