"""Randomised response between two answers, whose law one number gives exactly."""

from __future__ import annotations

import math

import numpy as np

from dither.privacy.terms.atoms import AtomTerm
from dither.privacy.terms.base import EPS

__all__ = ["ResponseTerm"]

_LARGE = 300.0
"""Exponents from which hyperbolic functions are left alone."""


class ResponseTerm(AtomTerm):
    """Losses -epsilon and epsilon with P's odds 1 : e^epsilon, but for a chance of infinite loss.

    The number of losses of ``epsilon`` in ``count`` repetitions is binomial, and its chance is a
    function of ``epsilon``: nothing that is derived here needs the rounded masses.

    Parameters
    ----------
    epsilon : float
        Above 0.
    count : int
        Repetitions.
    infinite : float
        P's mass where Q has none.
    """

    def __init__(self, epsilon: float, count: int, infinite: float = 0.0) -> None:
        e, low = epsilon, math.exp(-epsilon)
        mass = (1 - infinite) * np.array([low, 1.0]) / (1 + low)
        super().__init__(np.array([-e, e]), mass, count, infinite, (-e, 2 * e))
        self.epsilon = epsilon

    def moment_ends(self, c: float) -> tuple[float, float]:
        """log(1 + 2·sinh((c+1)·e/2)·sinh(c·e/2)/cosh(e/2)): no difference of near equals."""
        e = self.epsilon
        if (c + 1) * e > _LARGE:
            return super().moment_ends(c)
        grown = 2 * math.sinh((c + 1) * e / 2) * math.sinh(c * e / 2) / math.cosh(e / 2)
        value = self.count * math.log1p(grown)
        kept = self.count * math.log1p(-self.infinite)
        # A sinh errs by its argument's rounding, times the argument where that is large.
        # What underflows is below 1e-300.
        slack = EPS * ((32 + 8 * (c + 1) * e) * value + 4 * abs(kept)) + 1e-300 * self.count
        return value + kept - slack, value + kept + slack

    def mean(self) -> float:
        """epsilon·tanh(epsilon/2), each time."""
        if self.infinite > 0:
            return math.inf
        return self.count * self.epsilon * math.tanh(self.epsilon / 2)
