"""The median with noise fitted to the data: smooth sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._search import least_integer
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import _coins as coins
from dither.mechanisms._base import Integers, Mechanism, least_epsilon
from dither.mechanisms._composable import approximate_class
from dither.numeric import _directed as directed
from dither.numeric import shortened
from dither.privacy import Loss, Neighbours

__all__ = ["SmoothMedian"]

_BITS = 96
_MOST = 1 << 60


@dataclass(frozen=True, slots=True)
class SmoothMedian(Mechanism):
    """The smooth-sensitivity median, bound to its exact alpha and falloff.

    For n integers clamped to public bounds [lower, upper] and sorted as x_1..x_n (values beyond the
    ends count as lower and upper), rank m = floor((n + 1)/2) ::

        A_k = max over t in 0..k+1 of x_{m+t} - x_{m+t-k-1}
        S   = max over k in 0..n of g_k·A_k,   g_0 = 1, g_k falling by at most the factor q a step
        release round(x_m + (S/alpha)·X), X of density exp(-|x|)/2, clamped to the bounds

    A_k bounds the local sensitivity of the median at every table within k replacements [1]_. S is a
    rational; the rounded continuous Laplace noise is drawn exactly, as a geometric number of
    halves.

    Parameters
    ----------
    lower, upper : int
        Public bounds of the values, lower < upper.
    alpha : Fraction
        Above 0: the noise has scale S/alpha.
    falloff : Fraction
        q in (0, 1): how fast distant tables cease to matter.
    epsilon : Fraction
        At least alpha + log(1/q): where the guarantee is stated.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Neighbours are tables of n values (n public) that differ in one. With beta =
    log(1/q), for every epsilon >= alpha + beta: (epsilon, delta)-DP with ::

        delta = (1 - q)·exp(-(epsilon - alpha + beta)·q/(1 - q))

    *Proof.* A_k(D) <= A_{k+1}(D'), so S(D) <= S(D')/q, and |x_m - x'_m| <= A_0 <= S at both tables.
    Let s = S/alpha, s' for D', and s/s' = e^t with |t| <= beta. At x = (y - x_m)/s the loss is ::

        log(s'/s) + |y - x'_m|/s' - |y - x_m|/s  <=  alpha - t + |x|·(e^t - 1).

    For t <= 0 that is at most alpha + beta <= epsilon. For t > 0, as |x| is exponential of mean 1,
    E[(1 - exp(epsilon - loss))_+] is at most (1 - e^-t)·exp(-(epsilon - alpha + t)/(e^t - 1)). Its
    logarithm has the derivative (epsilon - alpha + t)·e^t/(e^t - 1)² > 0, so t = beta is the worst.
    Rounding and clamping are post-processing. (The tail bound of [1]_ gives a delta of
    exp(-(epsilon - alpha - beta)/(e^beta - 1)), with no factor in front.)

    *Timing.* How many A_k are looked at, and how long the noise takes, depend on the data: the
    guarantee is of the median released, not of its time. Where that can be seen, give the answer at
    a time fixed in advance.

    References
    ----------
    .. [1] Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in private data
       analysis", STOC 2007.

    Examples
    --------
    >>> median = SmoothMedian.for_loss(1, 1e-6, lower=0, upper=1000)
    >>> median.alpha, median.loss().charge.epsilon, median.loss().charge.delta <= 1e-6
    (Fraction(1, 2), Fraction(1, 1), True)
    >>> values = [500] * 400 + [501] * 400
    >>> float(median.smooth_sensitivity(values))
    1.0
    >>> 400 < median.release(values) < 600
    True
    """

    title: ClassVar[str] = "smooth median"

    lower: int
    upper: int
    alpha: Fraction
    falloff: Fraction
    epsilon: Fraction

    def __post_init__(self) -> None:
        low, high = check.integers("lower and upper", [self.lower, self.upper])
        if not -_MOST <= low < high <= _MOST:
            raise ArgumentError("lower must be below upper, both within 2**60 of 0")
        self._settle(lower=low, upper=high)
        self._settle_positive("alpha", "falloff", "epsilon")
        if self.falloff >= 1:
            raise ArgumentError("falloff must be below 1")
        if self.epsilon < self.alpha + directed.log_upper(1 / self.falloff):
            raise ArgumentError("epsilon must be at least alpha + log(1/falloff)")
        if 2 * (high - low) / self.alpha > noise.MAX_SCALE:
            raise ArgumentError("alpha must be at least (upper - lower)/2**51")

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        lower: int,
        upper: int,
        share: Number = Fraction(1, 2),
    ) -> Self:
        """The mechanism that costs epsilon and at most delta, with alpha = share·epsilon.

        The falloff is the smallest of 40 bits that the guarantee allows.
        """
        exact = check.positive("epsilon", epsilon)
        part = check.exact("share", share, above=0, below=1)
        target = check.exact("delta", delta, above=0, below=1)
        alpha, one = part * exact, 1 << 40

        def good(step: int) -> bool:
            q = Fraction(step, one)
            return alpha + directed.log_upper(1 / q) <= exact and _delta(exact, alpha, q) <= target

        if not good(one - 1):
            raise ArgumentError("epsilon is too small for this delta: ask for more of either")
        least = least_integer(good, 1, step=one // 2, most=one - 1) or one - 1
        return cls(lower, upper, alpha, Fraction(least, one), exact)

    @classmethod
    def for_half_width(
        cls,
        half_width: int,
        delta: Number,
        *,
        lower: int,
        upper: int,
        smooth: Number,
        confidence: float,
        share: Number = Fraction(1, 2),
    ) -> Self:
        """The mechanism of least epsilon (three digits) for a half-width where S is ``smooth``.

        ``smooth`` must be public: S of a planning table, never of the data.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        planned = check.positive("smooth", smooth) / check.positive("share", share)
        inside = math.log(1 - check.confidence(confidence))

        def error(epsilon: Fraction) -> float:
            return math.floor(-float(planned / epsilon) * inside + 0.5)

        found = least_epsilon("half_width", half_width, error)
        return cls.for_loss(found, delta, lower=lower, upper=upper, share=share)

    def loss(self, *, neighbours: Neighbours | str = Neighbours.REPLACE) -> Loss:
        """What a release costs: (epsilon, delta)."""
        delta = _delta(self.epsilon, self.alpha, self.falloff)
        return approximate_class(self.epsilon, delta, neighbours)

    def smooth_sensitivity(self, values: Sequence[int] | Integers) -> Fraction:
        """S. It depends on the data as they are: a secret, and for planning on other data.

        Parameters
        ----------
        values : sequence of int
            At least one; clamped to the bounds.
        """
        return self._median_and_smooth(values)[1]

    def release(self, values: Sequence[int] | Integers) -> int:
        """Release the median with noise.

        Parameters
        ----------
        values : sequence of int
            At least one; clamped to the bounds.

        Raises
        ------
        ArgumentError
            There are no values, or they are not integers.
        """
        median, smooth = self._median_and_smooth(values)
        return min(self.upper, max(self.lower, median + self.draw(smooth)))

    def draw(self, smooth: Fraction) -> int:
        """Noise for an integer statistic whose smooth sensitivity at this falloff is ``smooth``.

        The guarantee's proof uses no more of the median than that, and that it is an integer.

        Parameters
        ----------
        smooth : Fraction
            Above 0. It depends on the data, and so does how long a draw takes.
        """
        halves = int(coins.geometric(2 * smooth / self.alpha, 1)[0])
        sign = 1 - 2 * int(noise.below(2, 1)[0])
        # Rounding gives z or more from z - 1/2 on, which is 2z - 1 halves.
        return sign * ((halves + 1) // 2)

    def half_width(self, smooth: Number, confidence: float) -> int:
        """The half-width of the noise where the smooth sensitivity is ``smooth``."""
        scale = float(check.positive("smooth", smooth) / self.alpha)
        return math.floor(-scale * math.log(1 - check.confidence(confidence)) + 0.5)

    def _median_and_smooth(self, values: Sequence[int] | Integers) -> tuple[int, Fraction]:
        known = check.integers("values", values)
        x = np.sort(np.array([min(self.upper, max(self.lower, v)) for v in known], dtype=np.int64))
        n, rank = x.size, (x.size + 1) // 2
        one = g = 1 << _BITS
        width, best = self.upper - self.lower, 0
        for k in range(n + 1):
            # A_k is at most the range, and g falls: nothing larger follows.
            if g * width <= best:
                break
            best = max(best, g * self._spread(x, rank, k))
            # Rounded up, so that it falls by no more than q.
            g = math.ceil(g * self.falloff)
        return int(x[rank - 1]), Fraction(best, one)

    def _spread(self, x: Integers, rank: int, k: int) -> int:
        """A_k."""
        above = np.arange(rank, rank + k + 2)
        below = above - k - 1

        def at(i: Integers) -> Integers:
            inside = x[(i - 1).clip(0, x.size - 1)]
            return np.where(i < 1, self.lower, np.where(i > x.size, self.upper, inside))

        return int(np.max(at(above) - at(below)))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        median = cls.for_loss(1, Fraction(1, 100), lower=0, upper=100)
        d0, d1 = [0] * 6 + [100] * 5, [0] * 5 + [100] * 6
        yield Subject("smooth median", median.release, d0, d1, delta=median.loss().charge.delta)


def _delta(epsilon: Fraction, alpha: Fraction, q: Fraction) -> Fraction:
    """The guarantee's delta, rounded up."""
    # delta falls with beta, so that a lower end gives the upper one.
    beta = directed.log_lower(1 / q)
    delta = (1 - q) * directed.exp_upper(-(epsilon - alpha + beta) * q / (1 - q))
    return shortened(delta, 64, up=True)
