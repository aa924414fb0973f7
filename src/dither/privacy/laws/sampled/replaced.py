"""A Gaussian on a Poisson sample where a unit is replaced: the part, and the law of its loss.

Let M_0 be the law without either unit, M_x with the one and M_y with its replacement, given who
else is sampled. M_x and M_y are 1/noise_multiplier-GDP against M_0, and 2/noise_multiplier-GDP
against each other, by the chain through M_0. In units of the noise's deviation, with c =
1/noise_multiplier and g the rate, ::

    P = (1-g)·N(0, 1) + g·N(c, 1)        Q = (1-g)·N(0, 1) + g·N(-c, 1)

dominate (1-g)·M_0 + g·M_x against (1-g)·M_0 + g·M_y.

*Proof.* For a >= 1 and any u in [0, 1] the divergence at a is ::

    ∫ (g·M_x - (a-1)(1-g)·M_0 - a·g·M_y)+
        <= ∫ (u·g·M_x - (a-1)(1-g)·M_0)+ + ∫ ((1-u)·g·M_x - a·g·M_y)+

as (v + w)+ <= v+ + w+. Both summands are multiples of divergences of M_x, from M_0 and from M_y,
and at most what N(c) has from N(0) and from N(-c). For these all, the densities of N(0) and N(-c)
over that of N(c) fall with z, so that both brackets are above 0 from some z on; with the u at which
that is one z, the two sum up to (v + w)+ again, which is the divergence of P from Q. For a < 1,
H_a(P, Q) = 1 - a + a·H_{1/a}(Q, P), where the two units have changed places. A mean over the
others, whom both tables share, is at most the largest, as divergences are jointly convex. Two
tables with opposite units have this pair, so that no smaller one dominates; and the swapped pair is
its mirror image.

The loss log(P/Q) at z is odd and rises with z. With k = (1-g)/g·e^{c²/2}·sinh(L/2) it is L where ::

    c·z = L/2 + asinh(k)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.numeric import float_up
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.part import Part
from dither.privacy.laws.rationals import Amount, printed
from dither.privacy.laws.sampled.mechanism import FixedSize, Poisson
from dither.privacy.laws.term import EPS, Array, LawCells, Term, normal_mass

__all__ = ["ReplacedGaussian", "ReplacedGaussianTerm", "replaced"]


_MARGIN = 10.0
"""Deviations beyond which a sum ends; what is cut is charged."""

_NODES = 2_000_000
"""Nodes of a sum; of a moment that takes more nothing is said."""


class ReplacedGaussianTerm(Term):
    """A Gaussian on a Poisson sample, units replaced, ``count`` times.

    Parameters
    ----------
    noise_multiplier : float
        Deviation of the noise over the sensitivity for a unit added or removed.
    rate : float
        The chance of each unit to be sampled, in (0, 1).
    count : int
        Repetitions.
    """

    smooth = False

    def __init__(self, noise_multiplier: float, rate: float, count: int) -> None:
        self.c, self.rate, self.count = 1.0 / noise_multiplier, rate, count

    def log_ratio(self, z: Array) -> tuple[Array, Array]:
        """L at z, and its slope."""
        (over, rises), (under, falls) = (self._mixed(sign * self.c * z) for sign in (1.0, -1.0))
        return over - under, self.c * (rises + falls)

    def log_moment(self, c: Array) -> Array:
        """The middle of `moment_ends`, at each c."""
        return np.array([sum(self.moment_ends(x)) / 2 for x in c.tolist()])

    def blur(self, c: float) -> float:
        """The width of `moment_ends`."""
        low, high = self.moment_ends(c)
        return high - low

    def moment_ends(self, c: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}] of all repetitions, by a trapezoid sum.

        As in `laws.sampled_gaussian`: on the line Im z = d the modulus of either mixture over phi
        is at most what it is on Re z, and at least cos(d/(2·noise_multiplier)) of it, so that with
        E(d) = e^{d²/2}·cos(...)^{-c} the rule of step h errs by at most 2·E(d)/(e^{2·pi·d/h} - 1)
        of the whole. Beyond the window the integrand falls at a rate of at least the margin.
        """
        # Heights inside the strip where both mixtures are analytic; any of them gives a bound.
        d = np.linspace(0.02, 0.97, 40) * min(math.pi / self.c, 60.0)
        growth = d * d / 2 - c * np.log(np.cos(d * self.c / 2))
        # The longest step that some height proves: e^-42 of the whole.
        h = float((2 * math.pi * d / (growth + 42.0)).max())
        quadrature = 2.1 * math.exp(float((growth - 2 * math.pi * d / h).min()))
        high = _MARGIN + (1 + 2 * c) * self.c
        # Too many nodes: nothing is said, which is true.
        if high + _MARGIN > _NODES * h:
            return -math.inf, math.inf
        z = h * np.arange(math.floor(-_MARGIN / h), math.ceil(high / h) + 1)
        over, under = (self._mixed(sign * self.c * z)[0] for sign in (1.0, -1.0))
        # P^{1+c}·Q^{-c} over phi, in logarithms.
        f = -0.5 * z * z + (1 + c) * over - c * under
        top = float(f.max())
        weight = np.exp(f - top)
        whole = float(weight.sum())
        value = top + math.log(whole * h / math.sqrt(2 * math.pi))
        # Exponents, logarithms of mixtures, a sum of positive numbers, and what a node is off by.
        y = self.c * np.abs(z) + self.c**2
        each = (1 + 2 * c) * (6 + 4 * y + 2 * np.abs(over) + 2 * np.abs(under)) + 4 * z * z
        each = EPS * (each + 2 * np.abs(f) + len(z) / 4 + 24)
        off = 2 * float((weight * each).sum()) / whole + EPS * (abs(value) + 8)
        cut = (float(weight[0]) + float(weight[-1])) / -math.expm1(-_MARGIN * h) / whole
        off += 2 * (quadrature + cut)
        return self.count * (value - off), self.count * (value + off)

    def _mixed(self, y: Array) -> tuple[Array, Array]:
        """log(1 - g + g·e^{y - c²/2}) and its derivative."""
        y = y - self.c**2 / 2
        # log1p keeps the digits of a small rate; above 600 its exponential is all there is.
        rise = self.rate * np.expm1(np.minimum(y, 600.0))
        far = y > 600.0
        value = np.where(far, y + math.log(self.rate), np.log1p(rise))
        return value, np.where(far, 1.0, (self.rate + rise) / (1 + rise))

    def place(self, losses: Array) -> Array:
        """The z at which L is so large."""
        half = losses / 2
        lift = math.log1p(-self.rate) - math.log(self.rate) + self.c**2 / 2
        with np.errstate(over="ignore"):
            k = np.exp(lift) * np.sinh(np.clip(half, -300.0, 300.0)) if lift < 300 else np.inf
        # Where asinh(k) is log(2k), to all digits.
        far = (np.abs(half) > 300) | ~(np.abs(k) < 1e100)
        # log(2·e^lift·sinh|half|), whatever of it would overflow.
        size = lift + np.abs(half) + np.log(-np.expm1(-2 * np.maximum(np.abs(half), 1e-300)))
        turned = np.where(far, np.sign(half) * size, np.arcsinh(np.where(far, 0.0, k)))
        result: Array = (half + turned) / self.c
        return result

    @property
    def most_mean(self) -> float:
        """An upper bound of the mean loss: divergences are convex, and mixing lowers them."""
        return self.count * self.rate * 2 * self.c**2

    def singles(self) -> list[tuple[Term, int]]:
        """Itself."""
        return [(self, self.count)]

    def ends(self, tail: float) -> tuple[float, float]:
        """L at the ends of a window that both laws leave with probability at most ``tail``."""
        # A quarter of the tail a side of each normal, from the outer means.
        z = math.sqrt(2 * math.log(4 / tail)) + self.c
        high = float(self.log_ratio(np.array([z]))[0][0])
        return -high, high

    def anchors(self) -> tuple[float, float]:
        """Most samples lack both."""
        return 0.0, 0.0

    def cells(self, edges: Array) -> LawCells:
        """Normal masses between the places where L reaches the edges."""
        g, c, place = self.rate, self.c, self.place(edges)
        parts = [normal_mass(place, mean, 1.0) for mean in (0.0, c, -c)]
        plain, up, down = parts
        p, q = ((1 - g) * plain[0] + g * one[0] for one in (up, down))
        p_error, q_error = (
            (1 - g) * plain[1] + g * one[1] + 4 * EPS * (plain[0] + one[0]) for one in (up, down)
        )
        # P - Q with the common part (1 - g)·N(0, 1) left out, which a difference would lose digits
        # to.
        apart = g * (up[0] - down[0])
        apart_error = g * (up[1] + down[1] + 4 * EPS * np.abs(up[0] - down[0]))
        # Masses are those of the rounded places; their losses are off by this much at most. A place
        # errs by some roundings of itself, and the rate by one of its own and of 1 - g.
        at = np.where(np.isfinite(place), place, 0.0)
        slope = self.log_ratio(at)[1]
        largest = float(np.abs(edges).max())
        position = float((slope * (np.abs(at) + 1 + c)).max()) * 16 * EPS
        position += 32 * EPS * (largest + g) + 16 * EPS * g / (1 - g)
        below = (1 - g) * plain[2] + g * up[2]
        above = (1 - g) * plain[3] + g * up[3]
        return LawCells(p, q, p_error, q_error, below, above, position, apart, apart_error)

    def mean(self) -> float:
        """∫ P·L by a trapezoid sum."""
        z = np.linspace(-40.0, 40.0 + self.c, 400_001)
        g, c = self.rate, self.c
        law = (1 - g) * np.exp(-0.5 * z * z) + g * np.exp(-0.5 * (z - c) ** 2)
        value = float((law * self.log_ratio(z)[0]).sum()) * float(z[1] - z[0])
        return self.count * value / math.sqrt(2 * math.pi)


@dataclass(frozen=True, slots=True)
class ReplacedGaussian(Part):
    """A Gaussian on a Poisson sample; neighbours replace one unit.

    Parameters
    ----------
    base : GaussianNoise
        Stated for a unit that is added or removed.
    rate : float
        In (0, 1).
    """

    base: GaussianNoise
    rate: float

    def term(self, removal: bool, count: int) -> Term:
        """Both mixtures; either direction is the other one's mirror image."""
        return ReplacedGaussianTerm(self.base.noise_multiplier, self.rate, count)

    def grouped(self, size: int) -> Part:
        """As what is sampled is moved as a whole: see `replaced`."""
        return _moved(self.base.grouped(2 * size), self.rate, size)

    def gdp(self) -> Amount:
        """That of both unsampled: mixing is post-processing."""
        return self.base.grouped(2).gdp()

    def rho(self) -> Amount:
        """The same."""
        return self.base.grouped(2).rho()

    def tail(self) -> Fraction:
        """The base's: far out the loss rises as that of one unit."""
        return self.base.tail()

    def describe(self) -> str:
        """As written."""
        return f"{self.base.describe()}.poisson({self.rate:g}) of units replaced"


def _moved(whole: Part, rate: float, size: int) -> Part:
    """``size`` units replaced at once, of whom each is sampled with at most this chance.

    Parameters
    ----------
    whole : Part
        What the mechanism itself loses where all of them are replaced.

    Notes
    -----
    With a chance of at least (1-g)^size none of them is sampled, and both laws are one M_0. Else
    each is a mean of laws that are no further from M_0, and from one another, than where all are
    replaced; so that advanced joint convexity [1]_ bounds delta by that of one sample, at the rate
    of the rest. (Of those drawn without replacement each is drawn with at most this chance whatever
    happened to the others before.)

    References
    ----------
    .. [1] Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", 2018, theorem 2.
    """
    some = float_up(1 - (1 - printed(rate)) ** size)
    return FixedSize(whole, min(some, 1.0), 1, poisson=True)


def replaced(part: Part) -> tuple[Part, int]:
    """A part's loss where a unit is replaced, from its loss where one is added or removed.

    A Gaussian on a Poisson sample has a pair of its own there. A sample of fixed size states, as
    its base, what the mechanism loses where a unit is replaced. Of any other the chain of two
    neighbours, one out and one in, is a group of two.
    """
    if isinstance(part, Poisson) and part.fixed:
        whole = part.base if part.size == 1 else part.base.grouped(part.size)
        return _moved(whole, part.rate, part.size), 1
    if isinstance(part, Poisson) and isinstance(part.base, GaussianNoise):
        if part.size == 1:
            return ReplacedGaussian(part.base, part.rate), 1
        return _moved(part.base.grouped(2 * part.size), part.rate, part.size), 1
    return part.group(2)
