"""How far to clamp: a radius that holds all rows with a chance that is chosen, from σ and n.

Row. Let q be the chance that one row lies beyond the radius R. Rows are independent, so that all
are within with probability (1 - q)ⁿ, which is 1 - β at q = 1 - (1 - β)^(1/n). A box has d numbers
in a row, and each gets q/d: numbers of a row may depend on each other in any way.

Normal numbers, with a mean up to ``off`` from the centre, in deviations: one is beyond R with
probability Φ(off - R) + Φ(-off - R). That rises with ``off`` and, as long as off <= R, with the
deviation; so the worst that is allowed decides. In a ball of d > 1 the squared distance is a
noncentral χ² of d degrees, a Poisson mixture (mean off²/2) of χ² of d + 2j degrees. Numbers of one
smaller deviation stay within more often, off <= R again: the ball is star-shaped about their mean.
Of other covariances below σ²I that is so at off = 0 (Anderson's inequality), and not shown beyond.

Sub-Gaussian rows: E exp⟨v, x - μ⟩ <= exp(|v|²σ²/2). A number is beyond R on one side with at most
exp(-(R - off)²/2), a row at d + 2√(dt) + 2t in squared distance from its mean with at most exp(-t).

Bias. Clamping moves what is beyond R to R. A normal number's expectation moves by L(R - off) -
L(R + off), L(t) = φ(t) - t·Φ(-t) being the expected excess, which again rises with ``off``. In a
ball by at most the expected excess of the distance, and by nothing at off = 0, where what is cut
is the same on all sides. Of sub-Gaussian numbers the two sides work against each other: at most
the integral of one tail. In a ball exp(-t(u)) has an exponent of rising slope: at most q over it.

Source. The truncation level of Cai, Wang and Zhang, "The cost of privacy", Annals of Statistics
2021, is K·σ·√(log n) with a K that is "large enough"; their σ is that of exp(|v|²σ²), which is
smaller by √2 than this one. Hsu, Kakade and Zhang, "A tail inequality for quadratic forms of
subgaussian random vectors", 2012, for balls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, count_text, loss_text, number_text, wrapped
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats

__all__ = ["ClampingRadius", "clamping_radius"]

REGIONS = ("box", "ball")
LAWS = ("normal", "sub-gaussian")

_OUTWARDS = 1 + 1e-9
"""By how much a radius is enlarged: a search comes a thousand times as near."""
_FAR, _RARE = 1e6, 1e-25
"""A mixture's mean beyond which its terms are too many, and the chance below which those that are
left out (1e-31 in all, twelve deviations and sixty terms away) would count. There off is added to
the radius at 0 instead, which is never less."""


@dataclass(frozen=True)
class ClampingRadius(Printable):
    """A public radius for clamped means, and what it costs.

    Parameters
    ----------
    radius : float
    n, d : int
    spread, beta, off : float
    within : {"box", "ball"}
    law : {"normal", "sub-gaussian"}
    bias : float
        How far clamping moves the mean at most: of a box each number's, of a ball its length.
    """

    radius: float
    n: int
    d: int
    spread: float
    beta: float
    off: float
    within: str
    law: str
    bias: float

    @property
    def sensitivity(self) -> float:
        """How far another row in the place of one moves the mean: what noise has to hide.

        Of a box in each number, which is √d times as much in Euclidean length; of a ball in length.
        """
        return 2 * self.radius / self.n

    def bounds(self, centre: Number = 0) -> tuple[float, float]:
        """The ends of an interval around a public centre, as ``bounds=`` of a mean takes them."""
        at = check.number("centre", centre)
        return at - self.radius, at + self.radius

    def summary(self) -> str:
        """What is within, on what conditions, and what it costs."""
        what = f"rows of {self.d:,} numbers" if self.within == "ball" else "numbers"
        width = "deviation" if self.law == "normal" else "parameter"
        off = f", their mean within {number_text(self.off, 4)} of the centre" if self.off else ""
        lines = (
            f"radius {loss_text(self.radius)}: {count_text(self.n, 'row')} within, but for a "
            f"chance of {loss_text(self.beta)} that any is clamped",
            f"{self.law} {what} of {width} at most {number_text(self.spread, 4)}{off}; rows are "
            "independent",
            f"another row in the place of one moves the mean by at most "
            f"{loss_text(self.sensitivity, 3)}, and clamping its expectation by "
            f"{loss_text(self.bias, 2)}",
        )
        return "\n".join(line for text in lines for line in wrapped(text, "  ", first=""))


def clamping_radius(
    n: int,
    *,
    spread: Number,
    beta: Number = 0.05,
    off: Number = 0,
    d: int = 1,
    within: str = "box",
    law: str = "normal",
) -> ClampingRadius:
    """The radius about a rough centre that holds all n rows with probability 1 - beta.

    Nothing is spent and no data is read: it follows from public facts, and is as good as they are.

    Parameters
    ----------
    n : int
        Rows, a public number or a bound of it from above; from 1 to 10**18.
    spread : number
        A public bound of the standard deviation of each number, above 0; of a sub-Gaussian law, of
        its parameter.
    beta : number
        The chance that any row is clamped, in (0, 1). Noise grows with the radius: where it is most
        of the error a beta near 1, or a radius below, errs less.
    off : number
        How far the mean may lie from the centre, at least 0: of a box in each number, of a ball in
        length.
    d : int
        Numbers in a row, at least 1.
    within : {"box", "ball"}
        "box": each number is clamped by itself, for ``bounds=``; "ball": rows, for ``radius=``.
    law : {"normal", "sub-gaussian"}
        What rows are sampled from. Where neither holds, tails are longer, and more is clamped.

    Returns
    -------
    ClampingRadius

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    For one normal number of this deviation the radius is exact; so it is for a ball of independent
    ones. Others, and smaller deviations, are within at least as often; but in a ball with ``off``
    above 0 normal numbers have to be independent and of one deviation. A radius must not be chosen
    by looking at the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> found = inference.clamping_radius(1000, spread=2, beta=0.01)
    >>> print(found)
    radius 8.833: 1,000 rows within, but for a chance of 0.01 that any is clamped
    normal numbers of deviation at most 2; rows are independent
    another row in the place of one moves the mean by at most 0.0177, and clamping
      its expectation by 0
    >>> x = np.random.default_rng(1).normal(30, 2, 1000)
    >>> round(inference.mean(x, bounds=found.bounds(30), epsilon=1).estimate)
    30
    """
    rows, numbers = check.count("n", n), check.count("d", d)
    deviation = check.number("spread", spread, above=0)
    chance = check.number("beta", beta, above=0, below=1)
    distance = check.number("off", off, least=0)
    check.choice("within", within, REGIONS)
    check.choice("law", law, LAWS)
    beyond, shift = -math.expm1(math.log1p(-chance) / rows), distance / deviation
    ball = within == "ball" and numbers > 1
    if not ball:
        beyond /= numbers
    if beyond < _LEAST or not math.isfinite(shift):
        raise ArgumentError(
            "beta is too small, or n, d or off too large: no float holds the chance"
        )
    make: Any = {
        (False, "normal"): lambda: _number(beyond, shift),
        (False, "sub-gaussian"): lambda: _number_below(beyond, shift),
        (True, "normal"): lambda: _ball(beyond, shift, numbers),
        (True, "sub-gaussian"): lambda: _ball_below(beyond, shift, numbers),
    }[ball, law]
    reach, bias = make()
    return ClampingRadius(
        reach * _OUTWARDS * deviation,
        rows,
        numbers,
        deviation,
        chance,
        distance,
        within,
        law,
        bias * deviation,
    )


_LEAST = 1e-290
"""Chances of one row below it would come near the least of floats."""


def _excess(t: float) -> float:
    """How much of a standard normal number lies beyond t, in expectation."""
    from scipy import special

    density = math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
    return max(0.0, density - t * float(special.ndtr(-t)))


def _number(q: float, off: float) -> tuple[float, float]:
    """Radius and bias of one normal number."""
    from scipy import special

    def over(r: float) -> float:
        logs = np.array([special.log_ndtr(off - r), special.log_ndtr(-off - r)])
        return float(np.logaddexp(*logs)) - math.log(q)

    # Not below off: else a smaller deviation would hold fewer.
    found = max(off, _root(over, off - float(special.ndtri(q / 2))))
    return found, max(0.0, _excess(found - off) - _excess(found + off))


def _number_below(q: float, off: float) -> tuple[float, float]:
    """Of one sub-Gaussian number."""
    from scipy import special

    reach = math.sqrt(2 * math.log(2 / q))
    return off + reach, math.sqrt(2 * math.pi) * float(special.ndtr(-reach))


def _root(over: Any, above: float) -> float:
    """Where a falling function is 0, between 0 and where it is below."""
    from scipy import optimize

    if over(0.0) <= 0:
        return 0.0
    # Radii are rounded outwards by more than that.
    return float(optimize.brentq(over, 0.0, above * _OUTWARDS, xtol=1e-13, rtol=1e-13))


def _mixture(off: float) -> tuple[Floats, Floats]:
    """The weights of j = 0, 1, ... in a noncentral χ², but for some that weigh 1e-31 together."""
    from scipy import special

    rate = off * off / 2
    if not rate:
        return np.zeros(1), np.ones(1)
    wide = 12 * math.sqrt(rate) + 60
    j = np.arange(max(0.0, math.floor(rate - wide)), math.ceil(rate + wide) + 1)
    return j, np.exp(j * math.log(rate) - rate - special.gammaln(j + 1))


def _ball(q: float, off: float, d: int) -> tuple[float, float]:
    """Radius and bias of d independent normal numbers."""
    from scipy import special

    at_zero = math.sqrt(2 * float(special.gammainccinv(d / 2, q)))
    if not off:
        return at_zero, 0.0
    if off * off / 2 > _FAR or q < _RARE:
        (j, weight), inner = _mixture(0.0), at_zero
        found = off + at_zero
    else:
        j, weight = _mixture(off)

        def over(r: float) -> float:
            return float(weight @ special.gammaincc(d / 2 + j, r * r / 2)) / q - 1

        found = inner = max(off, _root(over, off + at_zero))
    half = d / 2 + j
    mean = math.sqrt(2) * np.exp(special.gammaln(half + 0.5) - special.gammaln(half))
    square = inner * inner / 2
    excess = mean * special.gammaincc(half + 0.5, square)
    excess -= inner * special.gammaincc(half, square)
    return found, max(0.0, float(weight @ excess))


def _ball_below(q: float, off: float, d: int) -> tuple[float, float]:
    """Of a sub-Gaussian row."""
    t = -math.log(q)
    reach = math.sqrt(d + 2 * math.sqrt(d * t) + 2 * t)
    slope = reach * (1 - math.sqrt(d / (2 * reach * reach - d)))
    # A row lies √d from its mean at most, in the mean square.
    return off + reach, min(math.sqrt(d), q / slope if slope > 0 else math.inf)
