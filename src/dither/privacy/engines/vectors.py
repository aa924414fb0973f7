"""Discrete Gaussian noise on integer vectors: how far their profile is from continuous noise's.

Noise of parameter sigma on every coordinate, against itself moved by an integer vector a. To leave
coordinates out is post-processing, so the worst a has all of its norm: |a|² = N. With t = c + iu,
mu² = N/sigma² and theta as in `discrete_gaussian`, the Poisson sums of theta are ::

    M_a(t) = e^{t(t+1)·mu²/2}·Σ_k e^{-2·pi²·sigma²·|k|² + 2·pi·i·(k·a)·t}/Z,   k integer vectors

    |summand| = e^{c(c+1)·mu²/2}·e^{-sigma²·|a·u/sigma² - 2·pi·k|²/2}
              = e^{c(c+1)·mu²/2}·e^{-mu²·(u - u_k)²/2 - 2·pi²·sigma²·|k'|²}

with k' the part of k that is orthogonal to a. k = 0 is continuous noise. delta is the integral of
M(t)·e^{-t·epsilon}/(t(1 + t)) over the line, by 2·pi. Let G(v) = Σ_j e^{-sigma²·(v - 2·pi·j)²/2}.

*Any a.* Let b be its largest entry, v = b·u/sigma². Where |v| <= pi/2 each coordinate's factor is
within 5·e^{-pi²·sigma²} of continuous noise's, as q = e^{-2·pi²·sigma²} is weighed by at most
e^{pi²·sigma²}. Elsewhere |M_a| is at most e^{c(c+1)·mu²/2}·G(v), whose bumps at v = 2·pi·j weigh
1/u². With 1/(m + w)² <= 1/m² - 2w/m³ + 3.6·w²/m⁴ for |w| <= m/8, Σ 1/(2·pi·j)² = 1/24 and
Σ 1/(2·pi·j)⁴ = 1/1440, this differs from continuous noise's delta by at most

    e^{c(c+1)·mu²/2 - c·epsilon}·(b/sigma³)·(1/24 + 1/(400·sigma²) + tails)·sqrt(2/pi)

*On a fine scale only the greatest common divisor g of a counts.* Of the k that are parallel to a
the sum is that of one number: noise of parameter sigma·sqrt(N)/g moved by N/g. Of all others
|k'|² >= 1/N, since |k|²·|a|² - (k·a)² is an integer (Lagrange). Let d_j <= pi be how far coordinate
j is from 2·pi times an integer. If one is above 0.9·pi, G says e^{-(0.9·pi·sigma)²/2} for all
together; if the nearest k is not parallel, they are at most e^{-2·pi²·sigma²/N}; if it is, the
others are at most N·2.01·e^{-(1.1·pi·sigma)²/2}; each times E = exp(2.01·N·e^{-pi²·sigma²/5}).
And ∫ du/|t(1 + t)| <= pi/c. As g² divides the squared norm, few g are possible, and each one's
delta is a sum over a lattice.

*Several releases*, k of them, of vectors that may each be chosen after the answers before it. Where
n = |a|² of one is below 4 all its entries are 1, so that nothing is to be chosen: they are one
release of a longer vector. Else whoever chooses may do better than any one vector, by choosing the
g that is worst for what is left: (2) or (1, 1, 1, 1). Then the bound of *any a* is taken, release
by release from the last one on. Let the last i be of continuous noise, whose loss hangs on n alone,
and let a be the vector of the one before them, which the answers so far have fixed. To make that
one continuous, too, moves delta, at an epsilon x that they have left, by at most ::

    e^{-c·x}·g(c)^i·∫ |M_a(t) - g(t)|·e^{-i·u²·n/(2·sigma²)}/(2·pi·|t(1 + t)|) du

with g(t) = e^{t(t+1)·n/(2·sigma²)}. Over the releases before, e^{c·loss} averages to a power of
g(c) at most, so that the k steps move delta by g(c)^k·e^{-c·epsilon} = e^{c(c+1)·mu²/2 - c·epsilon}
times the sum over i of what *any a* bounds, with the factor e^{-i·u²·n/(2·sigma²)} in it. Where
|v| <= pi/2 that adds up to k·5·n·e^{-pi²·sigma²}, as of all entries together; elsewhere u²·n >=
(pi·sigma²/2)², and it is at most 1 + 1/(e^{pi²·sigma²/8} - 1) times what it is of one release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dither.privacy.engines.balls.closed import GaussianProfile
from dither.privacy.engines.closed import Profile, lattice_of
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.gaussian import WidenedGaussianTerm
from dither.privacy.laws.term import EPS

__all__ = ["VectorProfile", "reached"]


_ATOMS = 60_000
"""Losses that are summed one by one; beyond, one number's noise is compared with continuous."""

_DIVISORS = 12
"""Divisors that are kept apart."""

_ALIKE = 4
"""Vectors of a squared norm below it have entries of 1 alone."""

_LISTED = 10_000
"""The largest squared norm whose vectors of few entries are searched, and the largest norm whose
divisors are."""

_ROUGH = 1e-9
"""What logarithms of `_waves` and `_others` may be off by: exponents, which are below 745 where
anything is left of them, have 5 roundings each, 4e-13, and all the rest some forty. It is charged
on what is only added to delta, so that its size does not matter."""


class VectorProfile:
    """The profile of the worst vector: both ends, where the scale is fine."""

    name = "closed form (Gaussian) and the lattice's own waves"
    certified = True

    def __init__(
        self,
        term: WidenedGaussianTerm,
        other: Profile,
        start: float,
        *,
        log_delta: float | None,
        epsilon: float | None,
    ) -> None:
        self._other, self.start = other, start
        self._sigma, self._square = term.sigma, term.square * term.times
        self._mu2 = self._square / self._sigma**2
        self._plain = GaussianProfile(self._mu2, start)
        # An integer entry is at most the norm, rounded down; the bound of the waves grows with it.
        self._entry = math.isqrt(term.square)
        self._ones: list[tuple[bool, _Wave]] = []
        # Every number is a sum of four squares.
        self._whole = term.entries >= 4 or self._entry**2 == term.square
        # Of several releases each vector may be chosen after the answers before it.
        self._chosen = term.times > 1 and term.square >= _ALIKE
        # With sigma >= 1 this is at most 0.35; far out its exponential is no double.
        turn = math.pi**2 * term.sigma**2 / 8
        self._turned = math.log1p(1 / math.expm1(min(turn, 700))) if self._chosen else 0.0
        # g divides every entry, so that g² divides the squared norm, and g is at most the norm.
        most = min(self._entry, _LISTED)
        found = [g for g in range(1, most + 1) if term.square % (g * g) == 0]
        if len(found) <= _DIVISORS and most == self._entry:
            self._ones = [
                (
                    reached(term.square // g**2, term.entries),
                    _Wave(self, g, log_delta=log_delta, epsilon=epsilon),
                )
                for g in found
            ]

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        plain = self._plain.bounds(epsilon)
        # The Gaussian's saddle, c(c + 1)·mu²/2 - c·epsilon at its least; any c > 0 is as sound.
        c = max(epsilon / self._mu2 - 0.5, 1e-3)
        grown, turned = c * (c + 1) * self._mu2 / 2, c * epsilon
        # mu² has 3 roundings, this product 4, and the other and the difference one each.
        lead = grown - turned + 4 * EPS * (grown + abs(turned)) + _ROUGH
        waves = _waves(self._sigma, self._entry, self._square, c) + self._turned
        high = min(self._other.bounds(epsilon)[1], _sum(plain[1], lead + waves))
        apart = lead + self._others(c)
        ends = [(known, wave.bounds(epsilon, plain, c, lead)) for known, wave in self._ones]
        # Too many divisors, or too large a norm, to go through: one bound serves every vector.
        if not ends:
            low = _less(plain[0], lead + waves) if self._whole else -math.inf
            return min(low, high), high
        if not self._chosen:
            high = min(high, _sum(max(end[1] for _, end in ends), apart))
        # Only a vector that is known to exist bounds the worst one from below.
        low = max((end[0] for known, end in ends if known), default=-math.inf)
        return min(_less(low, apart), high), high

    def _others(self, c: float) -> float:
        """log of what all k that are not parallel add, and the masses' own sums."""
        v, n = self._sigma**2, self._square
        # 2.01 for 2 holds the further summands of a theta sum, as sigma >= 1 here.
        grown = 2.01 * n * math.exp(-(math.pi**2) * v / 5)
        far = max(
            2.01 * math.exp(-((0.9 * math.pi) ** 2) * v / 2),
            math.exp(-2 * math.pi**2 * v / n),
            2.01 * n * math.exp(-((1.1 * math.pi) ** 2) * v / 2),
        )
        q = 2.01 * math.exp(-2 * math.pi**2 * v)
        # Then this proves nothing, and its exponentials would leave the doubles.
        if grown > 300 or n * q > 300:
            return math.inf
        total = far * math.exp(grown) + 2.1 * (math.expm1(n * q) + q)
        # ∫ du/|t(1 + t)| <= pi/c on the line, over the 2·pi of the inversion.
        return math.log(max(total, 1e-300) / (2 * c))


class _Wave:
    """Vectors of one greatest common divisor: one number's noise."""

    def __init__(
        self, whole: VectorProfile, g: int, *, log_delta: float | None, epsilon: float | None
    ) -> None:
        # All k along a are multiples of a/g: one number's noise, moved by N/g.
        self._sigma = whole._sigma * math.sqrt(whole._square) / g
        self._shift = whole._square // g
        self._summed, self._lost = None, -math.inf
        if 75 * self._sigma + self._shift <= _ATOMS:
            term = DiscreteGaussianLaw(self._sigma, self._shift).term(1)
            # sigma² is off by 4 roundings; exponents are below 680, and losses in proportion to it.
            term.relative += 4 * 680 * EPS
            term.position *= 3
            self._summed = lattice_of([term], log_delta=log_delta, epsilon=epsilon)
            self._lost = math.log(term.lost)

    def bounds(
        self, epsilon: float, plain: tuple[float, float], c: float, lead: float
    ) -> tuple[float, float]:
        """(log lower, log upper) of its delta."""
        if self._summed is not None:
            low, high = self._summed.bounds(epsilon)
            return low, _sum(high, self._lost)
        waves = lead + _waves(self._sigma, self._shift, 1, c)
        return _less(plain[0], waves), _sum(plain[1], waves)


def _waves(sigma: float, entry: int, coordinates: int, c: float) -> float:
    """log of what the bumps of one entry add; of at most so many coordinates in all."""
    v = sigma * sigma
    y = v * math.pi**2 / 32
    tails = math.exp(-y) / -math.expm1(-y) + 3 * math.exp(-v * math.pi**2 / 8)
    bumps = 1 / 24 + 1 / (400 * v) + 4 / math.pi**2 * tails
    near = 5 * coordinates * math.exp(-(math.pi**2) * v)
    # The coordinates' factors say nothing then, and e^near is no double.
    if near > 300:
        return math.inf
    return math.log(math.sqrt(2 / math.pi) * entry / sigma**3 * bumps + math.expm1(near) / (2 * c))


def _sum(a: float, b: float) -> float:
    top = max(a, b)
    if not math.isfinite(top):
        return top
    return top + math.log1p(math.exp(min(a, b) - top)) + 4 * EPS * (1 + abs(top))


def _less(a: float, b: float) -> float:
    if not a > b:
        return -math.inf
    # log(e^a - e^b) by one exponential, which no size of a or b overflows.
    return a + math.log(-math.expm1(b - a)) - 4 * EPS * (1 + abs(a)) if b > -math.inf else a


def reached(square: int, entries: int) -> bool:
    """Whether so many integers, or fewer, are known to have no common divisor and this square sum.

    Every number is a sum of four squares, so that five entries do, one of them 1.

    Examples
    --------
    >>> reached(25, 2), reached(4, 2), reached(4, 4), reached(6, 2)
    (True, False, True, False)
    """
    if square == 1 or entries >= min(square, 5):
        return True
    if entries < 2 or square > _LISTED:
        return False
    return _found(square, entries, math.isqrt(square), ())


def _found(rest: int, entries: int, largest: int, taken: Sequence[int]) -> bool:
    if rest == 0:
        return math.gcd(*taken) == 1
    if entries == 0:
        return False
    top = min(largest, math.isqrt(rest))
    return any(
        _found(rest - x * x, entries - 1, x, (*taken, x))
        for x in range(top, 0, -1)
        if entries * x * x >= rest
    )
