"""The piecewise mechanism (PM): a window around the value, as wide as makes the mean best.

Law. With s = e^{epsilon/2}, the continuous mechanism reports y in [-C, C], C = (s + 1)/(s - 1),
with density p = (e - s)/(2s + 2) on [l(x), l(x) + C - 1], l(x) = (C + 1)x/2 - (C - 1)/2, and p/e
outside. Here it stands on a lattice (`dither.local.means.window`): N steps, a window of W positions
that begins at the point's own number, M = N + W positions, W = N/s rounded, and the window's chance
P = e·W/(e·W + N), rounded down to a multiple of 2**-64.

Guarantee. epsilon-local DP: p/q <= e^epsilon by the rounding of P.

Error. Unbiased, exactly. As N grows the variance of one report goes to
x²/(s - 1) + (s + 3)/(3(s - 1)²).

Source. Wang, Xiao, Yang, Zhao, Hui, Shin, Shin and Yu, ICDE 2019.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.local.chances import ONE, exp_bounds, threshold
from dither.local.channel import checked_epsilon
from dither.local.domain import Domain
from dither.local.means.interval import Interval
from dither.local.means.numeric import NumericChannel, spread
from dither.local.means.window import WindowLaw

__all__ = ["PM", "WindowChannel", "window_law"]

Array = npt.NDArray[np.float64]


class WindowChannel(NumericChannel):
    """A channel whose law is a window that begins at the point's own number."""

    law: WindowLaw

    @property
    def outputs(self) -> int:
        """Positions of the report: steps + width."""
        return self.law.outputs

    @property
    def positions(self) -> Array:
        """Values of the reports, whose expectation is the point."""
        places: Array = np.arange(self.outputs, dtype=np.float64) - (self.outputs - 1) / 2
        return spread(self.interval, float(self.law.spacing) * places)


@dataclass(frozen=True, slots=True, init=False)
class PM(WindowChannel):
    """The piecewise mechanism on a lattice.

    Parameters
    ----------
    interval : Interval
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is no `Interval`, or `epsilon` is out of range.

    Notes
    -----
    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the
    interval. The mean of reports is unbiased.

    References
    ----------
    Wang et al., ICDE 2019.

    Examples
    --------
    >>> channel = PM(Interval(0, 10, steps=10), epsilon=1)
    >>> bool(abs(channel.moments()[0] - channel.interval.points).max() < 1e-12)
    True
    """

    kind: ClassVar[str] = "pm"

    domain: Domain = field(repr=False)
    epsilon: Fraction
    interval: Interval
    law: WindowLaw = field(repr=False)

    def __init__(self, interval: Interval, epsilon: Any) -> None:
        self._begin(interval, checked_epsilon(epsilon))
        steps = interval.steps
        half, _ = exp_bounds(self.epsilon / 2)
        object.__setattr__(self, "law", window_law(steps, round(steps / half), self.epsilon))


def window_law(steps: int, width: int, epsilon: Fraction) -> WindowLaw:
    """The window law of this width that is epsilon-local DP and as telling as that allows."""
    width = min(max(width, 1), steps)
    low, _ = exp_bounds(epsilon)
    chance = threshold(low * width / (low * width + steps))
    return WindowLaw(steps, steps + width, width, Fraction(chance, ONE))
