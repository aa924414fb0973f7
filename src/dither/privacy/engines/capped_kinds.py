"""Many Gaussians on sparse samples: rare large losses in closed form, and a contour of all others.

Where a unit is removed, kind k loses at least log(1 - g_k), so that a single loss above cap + F, F
the sum of these floors, takes the total above cap whatever the others are. Call that a hit. At any
epsilon <= cap hits add Pr_P[hit] - e^epsilon·Pr_Q[hit], and above cap at least that and at most
Pr_P[hit]. What is left has no loss above cap + F. Where a unit is added, kind k loses at most
-log(1 - g_k). With T their sum, whoever loses less than -T somewhere has a total below 0, and that
adds nothing to delta at epsilon >= 0: no loss below -T is needed.

So in both directions a measure of losses that are short is left (`laws.sampled.capped`), whose
contour is as that of any light tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dither.privacy.engines.contour import Contour
from dither.privacy.engines.search import invert
from dither.privacy.laws.sampled.capped import CappedGaussiansTerm
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.term import EPS, erfc

__all__ = ["CappedKinds", "capped_kinds"]


_DEAREST = 1.2e8
"""What a contour may cost: some seconds."""

_ATTEMPTS = 3

_LARGEST = 600.0
"""Losses whose exponentials are doubles."""

_SHARP = 1e-7

_BEYOND = 1.1
"""How much of a guess a cap is, so that the target is below it more often than not."""

_ERROR = 1e-12
"""What masses beyond a place err by, of themselves (`CappedGaussiansTerm.beyond`)."""


class CappedKinds:
    """A certified profile, tight up to a cap.

    Parameters
    ----------
    term : SampledGaussiansTerm
        All kinds, in one direction.
    cap : float
        Above 0.
    """

    name = "contour quadrature"

    def __init__(self, term: SampledGaussiansTerm, cap: float) -> None:
        # Rounded up: a larger F only moves losses from the hits to the line.
        floor = -math.fsum((term.counts * np.log1p(-term.rates)).tolist()) * (1 + 8 * EPS)
        self.start = self._cap = cap
        self._removal = term.removal
        self.certified = False
        self._p = self._q = 0.0
        # Where a unit is added no loss below -T matters, so that T is the range that is kept.
        largest = cap + floor if term.removal else floor
        if not 0 < largest < _LARGEST:
            return
        body = CappedGaussiansTerm(term, largest)
        if term.removal:
            plain, moved = body.beyond()
            masses = [(1 - body.rates) * plain + body.rates * moved, plain]
            # 1 - Π(1 - m)^count, by logarithms: small chances keep their digits.
            self._p, self._q = (
                -math.expm1(math.fsum((body.counts * np.log1p(-m)).tolist())) for m in masses
            )
        self._line = Contour([body], log_delta=None, epsilon=cap, dearest=_DEAREST)
        self.certified = self._line.certified

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # Hits and caps were argued for epsilon >= 0: elsewhere nothing is said.
        if epsilon < 0 or not self.certified:
            return -math.inf, 0.0
        low, high = self._line.bounds(epsilon)
        if not self._removal:
            return low, high
        grown = math.exp(min(epsilon, 700.0)) * self._q
        # The product of what has no hit, its logarithms and one difference: some roundings.
        off = (2 * _ERROR + 8 * EPS) * (self._p + grown) + 1e-300
        # Cut at 700 it is too small for a lower end.
        least = max(self._p - grown - off, 0.0) if epsilon <= 700 else 0.0
        # Above the cap a hit need not suffice, and all that is known is that it adds at most its
        # chance.
        most = self._p - grown + off if epsilon <= self._cap else self._p + off
        if least > 0:
            low = float(np.logaddexp(low, math.log(least)))
        high = float(np.logaddexp(high, math.log(most)))
        return low - 4 * EPS * (1 + abs(low)), high + 4 * EPS * (1 + abs(high))


def capped_kinds(
    term: SampledGaussiansTerm, log_delta: float | None, epsilon: float | None
) -> CappedKinds | None:
    """The contour made for where the one before puts the target, until that is there."""
    # A guess is enough: every cap proves something, and is tight only below it.
    at = epsilon if epsilon is not None else _guess(term, float(log_delta or 0.0))
    best = None
    for _ in range(_ATTEMPTS):
        if not 0 < at < math.inf:
            break
        found = CappedKinds(term, at)
        if not found.certified:
            break
        best = found
        if log_delta is None:
            break
        above = invert(_end(found, 1), log_delta, at, above=True, tiny=1e-9)
        if not math.isfinite(above):
            break
        below = invert(_end(found, 0), log_delta, above, above=False, tiny=1e-9)
        found.start = above
        if above - below <= _SHARP * above:
            break
        # A little above the target: below the cap bounds are exact.
        at = above * (1 + 1e-6) if above - below <= 0.01 * above else (above + below) / 2 * 1.02
    return best


def _guess(term: SampledGaussiansTerm, log_delta: float) -> float:
    """About where one large loss has that chance: where each kind's own delta add up to it."""

    def over(epsilon: float) -> float:
        z = np.log(math.expm1(min(epsilon, 600.0)) / term.rates + 1) / term.a + term.a / 2
        near, far = erfc(z / math.sqrt(2)) / 2, erfc((z - term.a) / math.sqrt(2)) / 2
        each = term.rates * (far - near) - math.expm1(min(epsilon, 700.0)) * near
        total = float((term.counts * np.maximum(each, 0.0)).sum())
        return math.log(total) if total > 0 else -800.0

    if not term.removal:
        grown = np.expm1(np.minimum(term.a**2 / 2, 300.0))
        spread = float((term.counts * (term.rates * grown) ** 2).sum())
        return min(math.sqrt(spread * -2 * log_delta), term.top())
    return _BEYOND * invert(over, log_delta, 0.1, above=True, tiny=1e-3)


def _end(of: CappedKinds, which: int) -> Callable[[float], float]:
    return lambda e: of.bounds(e)[which]
