"""Duchi's mechanism, one bit per person; and the hybrid: by a public chance PM, else Duchi."""

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
from dither.local._numbers.window import PM, WindowLaw
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
        """Itself: two reports are already the fewest bins."""
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
    """One bit per person; the best unbiased mean for epsilon up to about 0.61.

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
        # Of a lower bound of e^epsilon, rounded down: truth over lie never exceeds e^epsilon.
        return EndsLaw(self.interval.steps, threshold(low / (low + 1)))

    @property
    def positions(self) -> Array:
        """-B and B, in the interval's unit."""
        bound = float(self.law.bound)
        return spread(self.interval, np.array([-bound, bound]))


SWITCH = Fraction(61, 100)
"""Up to this epsilon Duchi alone is best in the worst case."""


@dataclass(frozen=True)
class ArmsLaw(NumericLaw):
    """A window law with chance arm/2**64, else two ends."""

    window: WindowLaw
    ends: EndsLaw
    arm: int

    @property
    def steps(self) -> int:  # type: ignore[override]
        """Of both arms."""
        return self.window.steps

    @property
    def outputs(self) -> int:  # type: ignore[override]
        """The window's positions, and the two ends."""
        return self.window.outputs + 2

    @property
    def chance(self) -> Fraction:
        """Of the window."""
        return Fraction(self.arm, ONE)

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[y | x]."""
        m = self.window.outputs
        if y < m:
            return self.chance * self.window.exact(x, y)
        return (1 - self.chance) * self.ends.exact(x, y - m)

    def draw(self, codes: Codes, words: Words) -> Codes:
        """Both arms for everyone; the coin says which counts."""
        window, ends = self.window.draw(codes, words), self.ends.draw(codes, words)
        return np.where(
            coins(self.arm, codes.size, words), window, self.window.outputs + ends
        ).astype(np.int64)

    def breaks(self) -> Codes:
        """Positions at which some row changes."""
        m = self.window.outputs
        return np.concatenate((self.window.breaks(), [m, m + 1]))

    def compiled(self, edges: Codes) -> ArmsProducts:
        """The law's two products, with reports in bins that begin at `edges`, breaks included."""
        return ArmsProducts(self, edges)


class ArmsProducts:
    """f @ matrix and matrix @ w of both arms, with bins of reports from `edges`."""

    def __init__(self, law: ArmsLaw, edges: Codes) -> None:
        self.window = law.window.compiled(edges[:-2])
        self.ends = law.ends
        self.chance, self.rest = float(law.chance), float(1 - law.chance)

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports."""
        window, ends = self.window.forward(f), self.ends.forward(f)
        return np.concatenate((self.chance * window, self.rest * ends))

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | point]."""
        window, ends = self.window.back(weights[:-2]), self.ends.back(weights[-2:])
        return np.asarray(self.chance * window + self.rest * ends)


@dataclass(frozen=True, init=False)
class Hybrid(NumericChannel):
    """PM or Duchi, by a public coin.

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
    Law. With chance beta = 1 - e^{-epsilon/2} the report is one of PM's M positions, else one of
    two more, M for Duchi's lower end and M + 1 for the upper; for epsilon up to 0.61, always Duchi.

    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the interval.
    The arm is tossed without regard to the value and shows in the report; within each arm the
    likelihood ratio of two values is at most e^epsilon, and the arm's chance cancels from the
    ratio. So any beta keeps the promise; it is rounded down to a multiple of 2**-64.

    Error. Unbiased, exactly. Above 0.61 the variance of one report no longer depends on the value,
    in the continuous limit: x² enters PM's and Duchi's variance with chances that cancel.

    References
    ----------
    Wang et al., ICDE 2019.

    Examples
    --------
    >>> from dither import local
    >>> low, high = (Hybrid(local.Interval(), e).moments()[1] for e in (0.5, 2))
    >>> bool(low.max() / low.min() > 1.03), round(float(high.max() / high.min()), 2)
    (True, 1.0)
    """

    kind: ClassVar[str] = "hybrid"

    @cached_property
    def law(self) -> ArmsLaw | EndsLaw:
        """PM's positions and two more; up to epsilon 0.61 the two alone."""
        ends = Duchi(self.interval, self.epsilon).law
        if self.epsilon <= SWITCH:
            return ends
        half, _ = exp_bounds(self.epsilon / 2)
        # PM's part of least worst-case variance; either arm keeps the promise by itself.
        return ArmsLaw(PM(self.interval, self.epsilon).law, ends, threshold(1 - 1 / half))

    @property
    def positions(self) -> Array:
        """PM's values, if it has a part, then Duchi's two."""
        ends = Duchi(self.interval, self.epsilon).positions
        if not isinstance(self.law, ArmsLaw):
            return ends
        return np.concatenate((PM(self.interval, self.epsilon).positions, ends))
