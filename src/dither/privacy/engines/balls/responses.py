"""Very many randomised responses of several kinds, sampled or beside Gaussians, in balls.

A response's generating function is 1 + s·2·sinh((t + 1)e/2)·sinh(te/2)/cosh(e/2), s the chance that
its loss is not 0. On a Poisson sample of rate g, x the base's loss and w = 1 - g + g·e^x, it is
1 + E_Q[w·(w^t - 1)] for a unit removed and 1 + E_Q[w^{-t} - 1] for one added.

On a vertical line it fades until the outer losses, 2e apart, come round again, near w = pi/e: with
b the tilted chances of these, |M(c + iw)/M(c)|² <= 1 - 4·b_+·b_-·sin²(we), and the sine is at least
its lesser end on [u, W], W = 0.95·pi/e of the largest e. Beyond W a Gaussian fades, of variance v,
as e^{-vW²/2}: one that is there, or a small one that is added.

*What the small one costs.* Let D be delta of the responses and D_G with the Gaussian loss G beside
them, which to leave out is post-processing: D <= D_G. And D_G(x) = E D(x - G), where D falls, so ::

    D_G(x) <= Pr[G <= 0]·D(x) + E[D_G(x - G); G > 0]

where the last is at most a sum over steps of G. So D is known to about one deviation of G.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dither.numeric._balls import Ball, library
from dither.privacy.engines.balls.contour import BallContour
from dither.privacy.engines.balls.laws import Law
from dither.privacy.engines.search import best_tilt, invert
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.gaussian import GaussianTerm
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["ResponsesProfile"]


_FEWEST = 1_000_000
"""Repetitions from which the rounding of masses shows on a lattice."""

_SMALLEST = 0.01
"""Losses that are small beside their sum's deviation."""

_AROUND = 0.95 * math.pi

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0, 12.0)
"""Ends of the steps of G, in deviations; beyond the last lies less than 1e-30."""

_ROUNDED = 1e-9
"""For the rounding of chances in doubles: see the places where it is used."""


def _half(term: AtomTerm) -> float:
    """Half of what lies between the outer losses, a little above: they are off by ``position``."""
    apart = float(term.losses[-1] - term.losses[0]) * (1 + 4 * EPS)
    return apart / 2 + term.position


class _Total(Term):
    """Responses and Gaussians, as a contour plans with them."""

    def __init__(self, responses: Sequence[AtomTerm], variance: float) -> None:
        self.responses, self.variance = responses, variance
        self.count = sum(term.count for term in responses)
        self.widest = max(_half(term) for term in responses)
        # Exponents of up to 300, which `fade` counts on.
        self.reach = 300.0 / self.widest

    def log_moment(self, c: Array) -> Array:
        """The sum."""
        value: Array = c * (c + 1) * (self.variance / 2)
        for term in self.responses:
            rise = np.expm1(c[:, None] * term.losses[None, :])
            value = value + term.count * np.log1p((rise * term.probabilities).sum(axis=1))
        return value

    def swapped(self) -> _Total:
        """Of the swapped pair."""
        return _Total([_turned(term) for term in self.responses], self.variance)


def _turned(term: AtomTerm) -> AtomTerm:
    if isinstance(term, ResponseTerm):
        return term
    assert term.mixture is not None
    e, rate, removal = term.mixture
    # In the swapped pair Q's masses are P's, and losses change their sign.
    turned = AtomTerm(-term.losses[::-1], term.under_q()[::-1], term.count)
    turned.mixture = e, rate, not removal
    return turned


class _TotalLaw(Law):
    """The product of all, whose fading ends where responses come round."""

    def __init__(self, term: _Total) -> None:
        self.term: _Total = term

    def swapped(self) -> Law:
        """The law of the swapped pair."""
        return _TotalLaw(self.term.swapped())

    def moment(self, c: float, bits: int) -> Ball:
        """As it stands."""
        return self._at(library().arb(c)).exp()

    def line(self, c: float, step: float, count: int, bits: int) -> list[Ball]:
        """As it stands."""
        flint = library()
        return [self._at(flint.acb(c, flint.arb(step) * j)).exp() for j in range(count)]

    def _at(self, t: Ball) -> Ball:
        arb = library().arb
        total = t * (t + 1) * arb(self.term.variance) / 2
        for one in self.term.responses:
            total += one.count * (1 + _grown(one, t)).log()
        return total

    def fade(self, c: float, u: Array) -> Array:
        """The larger of what is reached at u, and of what the Gaussian leaves beyond W."""
        v, far = self.term.variance, _AROUND / self.term.widest
        # The Gaussian fades everywhere; the responses only up to where their losses come round.
        value = -v * u * u / 2
        # A chance is off by what its mass is, 16·EPS, and by its exponent's rounding, of a number
        # up to 300; the sine, below 0.95·pi, by 40 times its angle's, which is off by at most that
        # of the half, some 1e-14. So 4·b·b·sin² is off by less than 1e-11 of itself; and cut at a
        # half, it moves log(1 - x) by no more than 1.5 times as much. Then there are products and
        # a sum of numbers of one sign.
        for term in self.term.responses:
            e = _half(term)
            p = term.probabilities * np.exp(c * term.losses)
            p /= p.sum()
            sine = np.minimum(np.sin(np.minimum(u, far) * e) ** 2, math.sin(far * e) ** 2)
            both = 4 * float(p[0] * p[-1]) * sine * (1 - _ROUNDED)
            value = value + term.count / 2 * np.log1p(-np.minimum(both, 0.5))
        result: Array = np.where(u < far, np.maximum(value, -v * far * far / 2), -v * u * u / 2)
        return result * (1 - _ROUNDED)


def _grown(term: AtomTerm, t: Ball) -> Ball:
    """M(t) - 1 of one response."""
    arb = library().arb
    if isinstance(term, ResponseTerm):
        e = arb(term.epsilon)
        low = (-e).exp()
        some = (1 + low) / (1 + (term.answers - 1) * low)
        return some * 2 * ((t + 1) * e / 2).sinh() * (t * e / 2).sinh() / (e / 2).cosh()
    assert term.mixture is not None
    epsilon, rate, removal = term.mixture
    total: Ball = 0 * t
    for x in (arb(epsilon), -arb(epsilon)):
        w = 1 + arb(rate) * x.expm1()
        grown = w * (t * w.log()).expm1() if removal else (-t * w.log()).expm1()
        total += grown / (1 + x.exp())
    return total


class ResponsesProfile:
    """A certified profile of very many responses of several kinds, or of some beside Gaussians."""

    name = "contour quadrature in ball arithmetic"

    def __init__(
        self, terms: Sequence[Term], *, log_delta: float | None, epsilon: float | None
    ) -> None:
        responses = [t for t in terms if isinstance(t, AtomTerm)]
        there = sum(t.mu_squared for t in terms if isinstance(t, GaussianTerm))
        plain = _Total(responses, there)
        # Where a contour would go without the small Gaussian: good enough to size it by.
        tilt, value = best_tilt(
            plain.log_moment, log_delta=log_delta, epsilon=epsilon, reach=plain.reach
        )
        at = value if epsilon is None else epsilon
        # Chernoff's bound is a few nats too large as a rule: asked for less, the line is sharp
        # enough.
        size = (value if log_delta is None else log_delta) - 3
        self.start, self.certified, self._deviation = at, False, 0.0
        if not (math.isfinite(at) and math.isfinite(size)):
            return
        # So that beyond W less is left than any contour asks for.
        least = 2 * (100 - size) * (plain.widest / _AROUND) ** 2
        if there < least:
            self._deviation = math.sqrt(least)
        law = _TotalLaw(_Total(responses, there + self._deviation**2))
        # The second line is made for where the first puts the target.
        for _ in range(2):
            if not math.isfinite(at):
                return
            tilt, _ = best_tilt(law.term.log_moment, log_delta=None, epsilon=at, reach=plain.reach)
            self._inner = BallContour([law], epsilon=at, log_delta=size, tilt=tilt, tolerance=1e-11)
            if not self._inner.certified:
                return
            if log_delta is not None:
                at = invert(self._high, log_delta, at, above=True, tiny=1e-9)
        self.certified = True

    @staticmethod
    def fits(terms: Sequence[Term]) -> bool:
        """Whether all are responses and Gaussians, so many that doubles would show."""
        responses = [t for t in terms if isinstance(t, AtomTerm)]
        known = all(isinstance(t, ResponseTerm) or t.mixture for t in responses)
        if not (known and responses) or any(t.infinite > 0 for t in responses):
            return False
        if not all(isinstance(t, AtomTerm | GaussianTerm) for t in terms):
            return False
        small = max(_half(t) for t in responses) <= _SMALLEST
        return small and sum(t.count for t in responses) >= _FEWEST

    def _high(self, epsilon: float) -> float:
        return self._inner.bounds(epsilon)[1]

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # To add a Gaussian loss only raises delta: the upper end is sound as it is.
        low, high = self._inner.bounds(epsilon)
        s = self._deviation
        if s == 0 or low == -math.inf:
            return low, high
        # In units of the value there; G has the mean s²/2 under P. A chance is a difference of two
        # tails, of which one is at most 0.81 of the other, and off by some 1e-14 of itself; an
        # exponential, of a number of up to 700, by 4e-13. A billionth of `rest` is more than that,
        # and more than 1 - rest loses where it is near 1.
        rest, before = 0.0, _above(-s / 2)
        for z in _STEPS[1:]:
            beyond = _above(z - s / 2)
            chance = (before - beyond) * (1 + _ROUNDED) + 1e-18
            rest += chance * math.exp(self._high(epsilon - z * s) - low)
            before = beyond
        # Beyond the last step D_G is a chance, at most 1.
        rest += before * (1 + _ROUNDED) * math.exp(min(-low, 700.0))
        known = (1 - rest * (1 + _ROUNDED)) / ((1 - _above(-s / 2)) * (1 + _ROUNDED))
        # A sum of logarithms of up to 745, each with a rounding or two: 5e-13.
        return low + math.log(known) - 1e-12 if known > 0 else -math.inf, high


def _above(z: float) -> float:
    """Pr[N(0, 1) > z]."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))
