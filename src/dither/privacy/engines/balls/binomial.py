"""Very many randomised responses: their sum in ball arithmetic, at a cost that knows no count.

Each of k responses loses -e, 0 or e with odds a_0 : a_1 : a_2 = 1 : answers - 2 : e^e. Their total
is L_j = h·j - k·e, h = e, with j a sum of k independent parts of 0, 1 or 2; of two answers h = 2e,
and j is binomial, of parts 0 and 1. With A(x) = Σ a_i·x^i, m the first j that has L_j >= epsilon,
g = e^{epsilon - L_m} <= 1, and any s > 0 ::

    delta(epsilon) = Σ_{t >= 0} Pr[j = m + t]·(1 - g·e^{-ht})
                   = M·e^{-sm}·Σ_{t >= 0} b(m + t)·w(t),   M = (A(e^s)/A(1))^k
    w(t) = e^{-st} - g·e^{-(s + h)t},   0 <= w(t) <= e^{-st}

with b the law of j where a part has the odds a_i·e^{si}, and phi(u) = (A(e^{s + iu})/A(e^s))^k its
transform. No two tails are subtracted: each summand is positive. The sum over N-th roots of unity,
u_n = 2·pi·n/N ::

    (1/N)·Σ_n phi(u_n)·e^{-i·u_n·m}·W(u_n),   W(u) = Σ_t w(t)·e^{-iut}, two geometric series

is Σ_t w(t)·Σ_l b(m + t + l·N). *Aliases* l != 0 only add, and at most ::

    (e^{-sN/2} + b{j < m - N/2} + b{j >= m + N})/(1 - e^{-sN})

*Nodes left out.* With b_i the chances of a part, |phi(u)|^{2/k} = 1 - 4·Σ_{i<l} b_i·b_l·
sin²((l - i)·u/2), so |phi(u)| <= e^{-2r·sin²(u/2)}, r = k·Σ b_i·b_{i+1}, which falls up to u = pi,
and |W| <= 1/(1 - e^{-s}). For N = 64 deviations some hundreds of nodes are left, whatever k.

*Below the mean.* Where m is far below the mean the sum begins at an m nearer by; what lies below
that is at most its chance. All chances by Bernstein's inequality, e^{-d²/(2(v + c·d/3))} with v the
variance of j and c the largest part.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dither._search import bisect
from dither.numeric._balls import Ball, down, library, powers, precision, up
from dither.privacy.engines.search import best_tilt
from dither.privacy.laws.response import ResponseTerm

__all__ = ["BinomialProfile"]


_FEWEST = 1_000_000
"""Repetitions from which roundings of masses and positions, which add up, show on a lattice."""

_SPREAD, _LEAST = 1e4, 100.0
"""The least r under P, and as tilted: below that delta leaves the doubles."""

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
        self._parts = 1 if term.answers == 2 else 2
        if epsilon is None:
            _, epsilon = best_tilt(
                lambda c: term.count * term.log_grown(c), log_delta=log_delta, epsilon=None
            )
        self.start = epsilon

    @staticmethod
    def fits(term: ResponseTerm) -> bool:
        """Whether a lattice would be wide, and the sum is one of many summands."""
        b = term.probabilities
        return term.count >= _FEWEST and term.count * float((b[1:] * b[:-1]).sum()) >= _SPREAD

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of the finite part's delta(epsilon)."""
        if self._seen is None or self._seen[0] != epsilon:
            self._seen = epsilon, self._bounds(epsilon)
        return self._seen[1]

    def _bounds(self, epsilon: float) -> tuple[float, float]:
        k, e = self._term.count, Fraction(self._term.epsilon)
        # In rationals: a rounding might miss the first total that counts, or take one too many.
        first = max(math.ceil((Fraction(epsilon) / e + k) * self._parts / 2), 0)
        # Above the largest total.
        if first > self._parts * k:
            return -math.inf, -math.inf
        # A k-th power, and a logarithm k times as large, lose as many bits as k has.
        with precision(_BITS + 2 * k.bit_length()) as flint:
            # The odds are of a loss that is finite: all k have to be.
            kept = k * (1 - flint.arb(self._term.infinite)).log()
            scale, value = self._sum(epsilon, first)
            low = down(scale + kept + flint.arb(value.lower()).log()) if value > 0 else -math.inf
            high = up(scale + kept + flint.arb(value.upper()).log())
        # Together they are a chance.
        return low, min(high, 0.0)

    def _odds(self, s: float) -> list[Ball]:
        """a_i·e^{si}."""
        arb, t = library().arb, self._term
        x, last = arb(s), arb(t.epsilon)
        if self._parts == 1:
            return [arb(1), (last + x).exp()]
        return [arb(1), (t.answers - 2) * x.exp(), (last + 2 * x).exp()]

    def _sum(self, epsilon: float, first: int) -> tuple[Ball, Ball]:
        """(log of a scale, a ball): their product is delta(epsilon), infinite losses apart."""
        arb, k = library().arb, self._term.count
        plain = _Parts(self._odds(0.0), k)
        deviation = math.sqrt(float(plain.variance))
        # Far below the mean nearly all of the law is above epsilon: a sum over all of it would be
        # long.
        m = max(first, int(float(plain.mean) - _START * deviation))
        below = plain.chance(plain.mean - m) if m > first else arb(0)
        # Two over a deviation, so that aliases, e^{-sN/2} with N some 64 deviations, are next to
        # nothing.
        s = max(self._saddle(m / k), _TILT / deviation)
        tilted = _Parts(self._odds(s), k)
        scale = k * (tilted.whole / plain.whole).log() - m * arb(s)
        # Weights lie in [0, 1]: what is left out below m is between nothing and its chance.
        rest = arb(0).union(below) * (-scale).exp()
        if tilted.spread < _LEAST:
            # Weights are at most 1: Chernoff's bound, of a number that no double holds.
            return scale, arb(0).union(arb(1)) + rest
        e = arb(self._term.epsilon)
        step = 2 * e / self._parts
        g = (arb(epsilon) - (m * step - k * e)).exp()
        return scale, _transformed(tilted, m, s, step, g) + rest

    def _saddle(self, mean: float) -> float:
        """The s at which a part has this mean, by bisection; any other would be as sound."""
        odds = [float(x) for x in self._odds(0.0)]

        def reached(s: float) -> bool:
            at = [x * math.exp(s * i) for i, x in enumerate(odds)]
            return sum(i * x for i, x in enumerate(at)) >= mean * sum(at)

        return bisect(reached, 0.0, 40.0, steps=60)[0]


class _Parts:
    """k independent parts of 0, 1, ... with the odds given."""

    def __init__(self, odds: list[Ball], k: int) -> None:
        self.k = k
        self.whole: Ball = sum(odds[1:], odds[0])
        self.chances = [x / self.whole for x in odds]
        mean = sum((i * b for i, b in enumerate(self.chances)), 0 * self.whole)
        around = ((i - mean) ** 2 * b for i, b in enumerate(self.chances))
        self.mean, self.variance = k * mean, k * sum(around, 0 * self.whole)
        near = zip(self.chances, self.chances[1:], strict=False)
        self.spread = k * sum((a * b for a, b in near), 0 * self.whole)

    def chance(self, far: Ball) -> Ball:
        """A bound of the chance to be ``far`` or more from the mean, on one side."""
        if not far > 0:
            return library().arb(1)
        most = len(self.chances) - 1
        return (-(far**2) / (2 * (self.variance + most * far / 3))).exp()


def _transformed(law: _Parts, m: int, s: float, step: Ball, g: Ball) -> Ball:
    """Σ_t b(m + t)·w(t), both errors included."""
    flint = library()
    arb, acb = flint.arb, flint.acb
    # Odd, so that all nodes but the first come in pairs of conjugates.
    n = int(_SPAN * math.sqrt(float(law.variance))) | 1
    # Below 0.75, as the spread is at least 100: there is such an angle.
    sine = math.sqrt(_NATS / 2 / float(law.spread))
    last = min(n // 2, math.ceil(n / math.pi * math.asin(sine)))
    turn = 2 * arb.pi() / n
    roots = powers(acb(turn.cos(), turn.sin()), last + 1)
    # Whole turns are taken off while they are integers.
    turn *= m % n
    phases = powers(acb(turn.cos(), -turn.sin()), last + 1)
    decay = (-arb(s)).exp()
    faster = decay * (-step).exp()
    total = arb(0)
    for j, (root, phase) in enumerate(zip(roots, phases, strict=True)):
        back = acb(root.real, -root.imag)
        weight = 1 / (1 - decay * back) - g / (1 - faster * back)
        one = acb(0)
        for b in reversed(law.chances):
            one = one * root + b
        value = (one**law.k * phase * weight).real
        # The conjugate node adds the conjugate.
        total += 2 * value if j else value
    total /= n
    if last < n // 2:
        high = (arb.pi() * (last + 1) / n).sin()
        # The bound falls from node to node, and a mean over fewer than n nodes is at most their
        # largest.
        cut = (-2 * law.spread * high**2).exp() / (1 - decay)
        total += arb(0, cut.upper())
    aliases = (-arb(s) * n / 2).exp() + law.chance(law.mean - (m - n // 2))
    aliases = (aliases + law.chance(m + n - law.mean)) / (1 - (-arb(s) * n).exp())
    # Aliases only add, between nothing and their bound.
    return total - arb(0).union(aliases)
