"""The square wave (SW): a window around the value, as wide as tells most of the distribution.

Law. The continuous mechanism reports y in [-b, 1 + b] with density p within b of x in [0, 1], and
p/e outside, where b = (εe - e + 1)/(2e(e - 1 - ε)), e = e^ε, makes the mutual information largest.
On a lattice of N steps it is the window law of PM with another width: W = 2bN, rounded.

Guarantee. epsilon-local DP, as for PM.

Error. The distribution is estimated by `local.em`, smoothed by default. The mean of the reports'
values is unbiased too, with more variance than PM's.

Source. Li, Wang, Lopuhaä-Zwakenberg, Škorić and Li, SIGMOD 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from dither.local.chances import exp_bounds
from dither.local.channel import checked_epsilon
from dither.local.domain import Domain
from dither.local.means.interval import Interval
from dither.local.means.piecewise import WindowChannel, window_law
from dither.local.means.window import WindowLaw

__all__ = ["SW"]


@dataclass(frozen=True, slots=True, init=False)
class SW(WindowChannel):
    """The square wave on a lattice.

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
    interval.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Škorić and Li, SIGMOD 2020.

    Examples
    --------
    >>> SW(Interval(0, 10), epsilon=1).law.width    # of 1,024 steps
    524
    """

    kind: ClassVar[str] = "sw"

    domain: Domain = field(repr=False)
    epsilon: Fraction
    interval: Interval
    law: WindowLaw = field(repr=False)

    def __init__(self, interval: Interval, epsilon: Any) -> None:
        self._begin(interval, checked_epsilon(epsilon))
        width = round(2 * interval.steps * half_width(self.epsilon))
        object.__setattr__(self, "law", window_law(interval.steps, width, self.epsilon))


def half_width(epsilon: Fraction) -> Fraction:
    """b of the docstring above, to 2**-100."""
    e, _ = exp_bounds(epsilon)
    return (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
