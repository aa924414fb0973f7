"""Duchi's mechanism: one bit, whose chance is a straight line in the value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither.local._channel import Codes
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._numbers.numeric import NumericChannel, NumericLaw, spread
from dither.numeric import Words

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EndsLaw(NumericLaw):
    """Report 1 for the upper end and 0 for the lower, truthfully by truth/2**64.

    The law of `Duchi` as it can be drawn exactly: a point goes to one end of the interval at
    random, without bias, and that end is reported truthfully with chance t/2**64 <= e/(e + 1). So
    it is epsilon-local DP: the second step alone is randomised response between two ends, and the
    first only mixes its two rows.
    """

    steps: int
    truth: int

    outputs: ClassVar[int] = 2  # type: ignore[misc]

    @property
    def bound(self) -> Fraction:
        """B: the value of report 1, where inputs go from -1 to 1."""
        return 1 / (2 * Fraction(self.truth, ONE) - 1)

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[y | x]."""
        upper = Fraction(1, 2) + (Fraction(2 * x, self.steps) - 1) / (2 * self.bound)
        return upper if y == 1 else 1 - upper

    def draw(self, codes: Codes, words: Words) -> Codes:
        """To an end at random, then the end or the other."""
        up = pick(self.steps, codes.size, words) < codes
        return np.asarray(up == coins(self.truth, codes.size, words), dtype=np.int64)

    def breaks(self) -> Codes:
        """Both reports."""
        return np.arange(2)

    def compiled(self, edges: Codes) -> EndsLaw:
        """Itself: two reports are as few bins as can be."""
        return self

    def forward(self, f: Array) -> Array:
        """Shares of the two reports."""
        upper = float(f @ self._upper)
        return np.array([f.sum() - upper, upper])

    def back(self, weights: Array) -> Array:
        """E[weights[report] | point]."""
        upper = self._upper
        return np.asarray(weights[0] * (1 - upper) + weights[1] * upper)

    @property
    def _upper(self) -> Array:
        line = 2 * np.arange(self.steps + 1) / self.steps - 1
        return np.asarray(0.5 + line / (2 * float(self.bound)))


@dataclass(frozen=True, init=False)
class Duchi(NumericChannel):
    """One bit a person; the best unbiased mean for epsilon up to about 0.61.

    Parameters
    ----------
    interval : Interval
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is not an `Interval`, or `epsilon` is out of range.

    Notes
    -----
    Law, on the scale where the interval is [-1, 1], e = e^epsilon, B = (e + 1)/(e - 1): the report
    is B with chance 1/2 + x·(e - 1)/(2e + 2), else -B.

    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the interval.

    Error. Unbiased, with variance B² - x² for one report.

    References
    ----------
    Duchi, Jordan and Wainwright, FOCS 2013 and JASA 2018.

    Examples
    --------
    >>> from dither import local
    >>> channel = Duchi(local.Interval(0, 10, steps=10), epsilon=1)
    >>> channel.positions.round(2).tolist()
    [-5.82, 15.82]
    >>> bool(abs(channel.moments()[0] - channel.interval.points).max() < 1e-12)
    True
    """

    kind: ClassVar[str] = "duchi"

    @cached_property
    def law(self) -> EndsLaw:
        """To an end at random, which is reported truthfully or not."""
        low, _ = exp_bounds(self.epsilon)
        return EndsLaw(self.interval.steps, threshold(low / (low + 1)))

    @property
    def positions(self) -> Array:
        """-B and B, in the interval's unit."""
        bound = float(self.law.bound)
        return spread(self.interval, np.array([-bound, bound]))
