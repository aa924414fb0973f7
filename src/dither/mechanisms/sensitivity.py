"""How far neighbours move an integer vector: bounds in three norms, as tight as they can be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace

__all__ = ["Sensitivity"]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Bounds of ‖q(D) - q(D')‖ over all neighbours, for an integer vector q.

    For an integer vector v of d coordinates (a difference of two answers), each of these holds ::

        l1 <= d·linf,  l1 <= sqrt(d·l2²),  l1 <= l2²  (integers: |v_i| <= v_i²)
        l2² <= l1·linf,  l2² <= d·linf²,   linf <= l1,  linf <= sqrt(l2²)

    and all three norms (the Euclidean one squared) are integers, so that bounds round down. `of`
    tightens what is given by these rules until nothing changes.

    Parameters
    ----------
    l1, l2_squared, linf : int
        At least 1 each: the norms, the Euclidean one squared.
    dimension : int or None
        d, at least 1, where it is known.

    Examples
    --------
    >>> Sensitivity.of(linf=3, dimension=4)
    Sensitivity(l1=12, l2_squared=36, linf=3, dimension=4)
    >>> Sensitivity.of(l1=10, linf=1)
    Sensitivity(l1=10, l2_squared=10, linf=1, dimension=None)
    >>> Sensitivity.of(l2_squared=2, dimension=100).laplace(1).scale
    Fraction(2, 1)
    """

    l1: int
    l2_squared: int
    linf: int
    dimension: int | None = None

    @classmethod
    def of(
        cls,
        *,
        l1: Number | None = None,
        l2_squared: Number | None = None,
        linf: Number | None = None,
        dimension: int | None = None,
    ) -> Sensitivity:
        """Complete and tighten what is known.

        Parameters
        ----------
        l1, l2_squared, linf : number, optional
            At least one of them, and each at least 1: below that an integer vector cannot change.
        dimension : int, optional
            Needed if only ``linf`` is given.

        Raises
        ------
        ArgumentError
            Nothing, or too little, or something out of range is given.
        """
        d = None if dimension is None else check.whole("dimension", dimension, 1)
        given = {"l1": l1, "l2_squared": l2_squared, "linf": linf}
        known = {
            name: math.floor(check.positive(name, value))
            for name, value in given.items()
            if value is not None
        }
        for name, value in known.items():
            if value < 1:
                raise ArgumentError(f"{name} must be at least 1 for a vector of integers to change")
        if not known:
            raise ArgumentError("l1, l2_squared or linf must be given")
        if d is None and set(known) == {"linf"}:
            raise ArgumentError("dimension must be given if only linf is")
        a, b, c = (known.get(name) for name in given)
        while True:
            before = (a, b, c)
            # |v|_1 <= |v|_2², for integers; <= d·|v|_inf, and <= √d·|v|_2.
            a = _least(a, b, c and d and d * c, b and d and math.isqrt(d * b))
            # |v|_2² <= |v|_1², <= |v|_1·|v|_inf, and <= d·|v|_inf².
            b = _least(b, a and a * a, a and c and a * c, c and d and d * c * c)
            # No entry is above either norm.
            c = _least(c, a, b and math.isqrt(b))
            # Each round may tighten what the next one uses; integers that only fall come to rest.
            if before == (a, b, c):
                break
        assert a is not None
        assert b is not None
        assert c is not None
        return cls(a, b, c, d)

    def laplace(self, epsilon: Number) -> DiscreteLaplace:
        """Noise for every coordinate, (pure) epsilon-DP for the whole vector."""
        return DiscreteLaplace.for_loss(epsilon, l1=self.l1)

    def gaussian(self, rho: Number) -> DiscreteGaussian:
        """Noise for every coordinate, rho-zCDP for the whole vector."""
        return DiscreteGaussian.for_loss(rho, l2_squared=self.l2_squared)

    @property
    def changed(self) -> int:
        """The most coordinates that change: at most the dimension, and at most l1."""
        return self.l1 if self.dimension is None else min(self.l1, self.dimension)

    def analytic_gaussian(self, epsilon: Number, delta: Number) -> DiscreteGaussian:
        """The least noise for every coordinate that is (epsilon, delta)-DP for the whole vector."""
        return DiscreteGaussian.for_epsilon(
            epsilon, delta, l2_squared=self.l2_squared, coordinates=self.changed
        )


def _least(*values: int | None) -> int | None:
    """The least of the values that are known."""
    known = [v for v in values if v]
    return min(known) if known else None
