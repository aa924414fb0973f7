"""Intervals of one number that simulated tests of each of its values leave.

A statistic T(v) of what was released has its middle where the truth is v, and is larger where the
truth is. For a value v the model is fitted with the truth held at v, releases are simulated from
it, sampling and noise, and the released T(v) is placed among theirs: the interval holds the values
that neither one-sided test rejects. Draws are made once and shared by all values, so that p-values
change smoothly with v.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither._stats import two_sided
from dither.inference.engine._errors import (
    Alternative,
    Errors,
    inverted,
    monte_carlo,
    normal_power,
)
from dither.inference.engine._inputs import Floats

__all__ = ["InvertedErrors", "count_drawn"]

_MOST = 14.0
"""Of a logarithm, beside the estimate's: beyond, an interval is open."""


def count_drawn(mean: Floats, spread: Floats, z: Floats, skew: Floats) -> Floats:
    """Whole numbers of a mean and a variance, from standard normal draws.

    Parameters
    ----------
    mean, spread : array of float
        Of a number of events, and its variance.
    z : array of float
        Normal draws, shared by all means, so that what is drawn rises with them.
    skew : array of float
        The third moment over the variance: 1 of a Poisson law, 1 - 2p of a binomial one.

    Notes
    -----
    The expansion of Cornish and Fisher (1937) to the skewness; it promises nothing.

    Examples
    --------
    >>> count_drawn(np.array([4.0]), np.array([4.0]), np.array([-1.96, 0.0, 1.96]), np.ones(1))
    array([1., 4., 8.])
    """
    found = mean + z * np.sqrt(np.maximum(spread, 0.0)) + skew * (z**2 - 1.0) / 6.0
    return np.asarray(np.maximum(np.rint(found), 0.0))


@dataclass(frozen=True, eq=False)
class InvertedErrors(Errors):
    """Errors of one number above 0, or of any number, by simulated tests of its values.

    Parameters
    ----------
    estimate : float
    observed : callable
        Of a value: the released statistic.
    simulated : callable
        Of a value, and whether there is noise: the statistic of simulated releases, shape (B,).
    ratio : bool
        Whether values are above 0 and are looked for by their logarithm; an end that is not found
        is 0 or infinite.
    limits : (float, float)
        Where values end, of what is not a ratio.
    around : float
        A value about which those of a ratio are looked for.
    slope : float
        How fast the statistic falls with the value, above 0.
    """

    estimate: float
    observed: Callable[[float], float]
    simulated: Callable[[float, bool], Floats]
    ratio: bool = True
    limits: tuple[float, float] = (-math.inf, math.inf)
    around: float = 1.0
    slope: float = 1.0

    @cached_property
    def _middle(self) -> float:
        return math.log(self.around) if self.ratio else 0.0

    def _value(self, place: float) -> float:
        return math.exp(place) if self.ratio else place

    def _place(self, value: float) -> float:
        """Where a value is looked for; within what is looked at."""
        if not self.ratio:
            return min(max(value, self.limits[0]), self.limits[1])
        low, high = self._ends
        return min(max(math.log(value) if value > 0 else low, low), high)

    @property
    def _ends(self) -> tuple[float, float]:
        return (self._middle - _MOST, self._middle + _MOST) if self.ratio else self.limits

    def _one_sided(self, place: float, alternative: Alternative) -> float:
        value = self._value(place)
        return monte_carlo(self.observed(value), self.simulated(value, True), alternative)

    @cached_property
    def _known(self) -> dict[float, Floats]:
        return {}

    def interval(self, confidence: float) -> Floats:
        """What the two tests leave, shape (1, 2)."""
        if confidence not in self._known:
            low, high = inverted(
                lambda v: self._one_sided(v, "greater"),
                lambda v: self._one_sided(v, "less"),
                confidence=confidence,
                inside=self._place(self.estimate),
                limits=self._ends,
                steps=26,
            )
            if self.ratio:
                first, last = self._ends
                low = 0.0 if low <= first else math.exp(low)
                high = math.inf if high >= last else math.exp(high)
            self._known[confidence] = np.array([[low, high]])
        return self._known[confidence]

    def _deviation(self, noisy: bool) -> Floats:
        at = self._value(self._place(self.estimate))
        return np.array([float(np.std(self.simulated(at, noisy))) / self.slope])

    @cached_property
    def se(self) -> Floats:
        """The deviation of the statistic at the estimate, by how fast it falls with the value."""
        return np.fmax(self._deviation(True), self.se_sampling)

    @cached_property
    def se_sampling(self) -> Floats:
        """The same of simulated releases without noise."""
        return self._deviation(False)

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Monte Carlo p-values; a ratio is never 0 or below."""
        return np.array([self._one_sided(self._place(float(v)), alternative) for v in null])

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """Of a normal law; of a ratio on the scale of its logarithm."""
        reach = two_sided(1.0 - level)
        if not self.ratio:
            return normal_power(truth - null, self.se, reach)
        first, second = (np.log(np.maximum(v, 1e-300)) for v in (truth, null))
        wide = self.se / self.estimate if self.estimate > 0 else np.array([math.inf])
        return normal_power(first - second, wide, reach)
