"""Very many randomised responses: a binomial sum in ball arithmetic, at a cost that knows no count.

The loss of k responses is L_j = (2j - k)·e, j binomial(k, p), p = e^e/(1 + e^e). With m the first j
that has L_j >= epsilon, g = e^{epsilon - L_m} <= 1, and any s > 0 ::

    delta(epsilon) = Σ_{t >= 0} Pr[j = m + t]·(1 - g·e^{-2et})
                   = M·e^{-sm}·Σ_{t >= 0} b(m + t)·w(t),   M = (1 - p + p·e^s)^k
    w(t) = e^{-st} - g·e^{-(s + 2e)t},   0 <= w(t) <= e^{-st}

with b the law binomial(k, p') of odds e^{e + s}, and phi(u) = (1 - p' + p'·e^{iu})^k. No two tails
are subtracted: each summand is positive. The sum over N-th roots of unity, u_n = 2·pi·n/N ::

    (1/N)·Σ_n phi(u_n)·e^{-i·u_n·m}·W(u_n),   W(u) = Σ_t w(t)·e^{-iut}, two geometric series

is Σ_t w(t)·Σ_l b(m + t + l·N). *Aliases* l != 0 only add, and at most ::

    (e^{-sN/2} + b{j < m - N/2} + b{j >= m + N})/(1 - e^{-sN})

*Nodes left out.* |phi(u)| <= e^{-2v·sin²(u/2)}, v = k·p'·(1 - p'), which falls up to u = pi, and
|W| <= 1/(1 - e^{-s}). For N = 64 deviations some two hundred nodes are left, whatever k.

*Below the mean.* Where m is far below k·p the sum begins at an m nearer by; what lies below that is
at most its chance. All chances by Bernstein's inequality, e^{-d²/(2(v + d/3))}.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dither.privacy.ball.numbers import Ball, down, library, powers, precision, up
from dither.privacy.profile.search import best_tilt
from dither.privacy.terms import ResponseTerm
from dither.privacy.terms.base import Array

__all__ = ["BinomialProfile"]

_FEWEST = 1_000_000
"""Repetitions from which roundings of masses and positions, which add up, show on a lattice."""

_VARIANCE, _LEAST = 1e4, 100.0
"""The least variance of j, and of j as tilted: below it delta leaves the doubles."""

_SPAN, _TILT, _START = 64, 2.0, 12.0
"""The period, the least tilt and the furthest start below the mean, in deviations."""

_NATS = 110.0
"""How small the first node is that is left out."""

_BITS = 192


class BinomialProfile:
    """A certified profile of many equal randomised responses."""

    name = "binomial sum (ball arithmetic)"
    certified = True

    def __init__(
        self, term: ResponseTerm, *, log_delta: float | None, epsilon: float | None
    ) -> None:
        self._term = term
        self._seen: tuple[float, tuple[float, float]] | None = None
        if epsilon is None:
            _, epsilon = best_tilt(self._log_moment, log_delta=log_delta, epsilon=None)
        self.start = epsilon

    @staticmethod
    def fits(term: ResponseTerm) -> bool:
        """Whether a lattice would be wide, and the sum is one of many summands."""
        share = math.exp(-term.epsilon)
        return term.count >= _FEWEST and term.count * share / (1 + share) ** 2 >= _VARIANCE

    def _log_moment(self, c: Array) -> Array:
        """K(c), to find a place to start."""
        e = self._term.epsilon
        with np.errstate(over="ignore", invalid="ignore"):
            grown = 2 * np.sinh((c + 1) * e / 2) * np.sinh(c * e / 2) / math.cosh(e / 2)
            value: Array = self._term.count * np.log1p(grown)
        return value

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of the finite part's delta(epsilon)."""
        if self._seen is None or self._seen[0] != epsilon:
            self._seen = epsilon, self._bounds(epsilon)
        return self._seen[1]

    def _bounds(self, epsilon: float) -> tuple[float, float]:
        k, e = self._term.count, Fraction(self._term.epsilon)
        first = max(math.ceil((Fraction(epsilon) / e + k) / 2), 0)
        if first > k:
            return -math.inf, -math.inf
        with precision(_BITS + 2 * k.bit_length()) as flint:
            kept = k * (1 - flint.arb(self._term.infinite)).log()
            scale, value = self._sum(epsilon, first)
            low = down(scale + kept + flint.arb(value.lower()).log()) if value > 0 else -math.inf
            high = up(scale + kept + flint.arb(value.upper()).log())
        # Together they are a chance.
        return low, min(high, 0.0)

    def _sum(self, epsilon: float, first: int) -> tuple[Ball, Ball]:
        """(log of a scale, a ball): their product is delta(epsilon), infinite losses apart."""
        arb, k = library().arb, self._term.count
        e = arb(self._term.epsilon)
        p, below = 1 / (1 + (-e).exp()), arb(0)
        deviation = math.sqrt(float(k * p * (1 - p)))
        least = int(float(k * p) - _START * deviation)
        m = max(first, least)
        if m > first:
            below = _chance(k * p - m, k * p * (1 - p))
        # log of the odds at which m is the mean, without the difference of near equals.
        s = math.log1p((2 * m - k - 1) / (k - m + 1)) - self._term.epsilon
        s = max(s, _TILT / deviation)
        odds = (e + s).exp()
        share = odds / (1 + odds)
        variance = k * share * (1 - share)
        scale = k * (1 - p + p * arb(s).exp()).log() - m * arb(s)
        if variance < _LEAST:
            # Weights are at most 1: Chernoff's bound, of a number that no double holds.
            return scale, arb(0).union(arb(1)) + below * (-scale).exp()
        tilted = self._tilted(m, s, share, variance, (arb(epsilon) - (2 * m - k) * e).exp())
        return scale, tilted + arb(0).union(below) * (-scale).exp()

    def _tilted(self, m: int, s: float, share: Ball, variance: Ball, g: Ball) -> Ball:
        """Σ_t b(m + t)·w(t), both errors included."""
        flint, k = library(), self._term.count
        arb, acb = flint.arb, flint.acb
        spread = math.sqrt(float(variance))
        n = int(_SPAN * spread) | 1
        last = min(n // 2, math.ceil(n / math.pi * math.asin(math.sqrt(_NATS / 2) / spread)))
        turn = 2 * arb.pi() / n
        roots = powers(acb(turn.cos(), turn.sin()), last + 1)
        turn *= m % n
        phases = powers(acb(turn.cos(), -turn.sin()), last + 1)
        decay = (-arb(s)).exp()
        faster = decay * (-2 * arb(self._term.epsilon)).exp()
        total = arb(0)
        for j, (root, phase) in enumerate(zip(roots, phases, strict=True)):
            back = acb(root.real, -root.imag)
            weight = 1 / (1 - decay * back) - g / (1 - faster * back)
            value = ((1 - share + share * root) ** k * phase * weight).real
            total += 2 * value if j else value
        total /= n
        if last < n // 2:
            sine = (arb.pi() * (last + 1) / n).sin()
            cut = (-2 * variance * sine**2).exp() / (1 - decay)
            total += arb(0, cut.upper())
        mean = k * share
        aliases = (-arb(s) * n / 2).exp() + _chance(mean - (m - n // 2), variance)
        aliases = (aliases + _chance(m + n - mean, variance)) / (1 - (-arb(s) * n).exp())
        return total - arb(0).union(aliases)


def _chance(far: Ball, variance: Ball) -> Ball:
    """A bound of the chance that a binomial is ``far`` or more from its mean, on one side."""
    arb = library().arb
    return (-(far**2) / (2 * (variance + far / 3))).exp() if far > 0 else arb(1)
