"""Canonical noise for a count: all of (epsilon, delta) is used, and nothing wasted on tails."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._stats import log_of
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import _coins as coins
from dither.mechanisms._base import AdditiveNoise, Integers, cheapest
from dither.mechanisms._composable import approximate_class
from dither.numeric import _directed as directed
from dither.privacy import Loss, Neighbours

__all__ = ["Tulap"]

_BITS = 192
_SUMMED = 1_000_000


@dataclass(frozen=True, slots=True)
class Tulap(AdditiveNoise):
    """Canonical (Tulap) noise for a count, bound to its exact epsilon and delta.

    With b = exp(-epsilon), a reach m >= 1, a weight w in [0, 1] at its ends and z an integer ::

        Pr[Z = z] = c·b^|z| for |z| < m,   c·w·b^m for |z| = m,   0 beyond

    It is discrete Laplace noise cut off as soon as delta allows, and also Tulap noise, rounded: the
    most powerful tests of a count under (epsilon, delta) add Tulap noise [1]_, [2]_, which is this
    law plus a uniform fraction that reveals nothing of the data.

    Parameters
    ----------
    epsilon : Fraction
        Above 0, and at least 2**-40.
    delta : Fraction
        In (0, 1).

    Attributes
    ----------
    reach : int
        m: no draw is further from 0.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Where the integer count changes by at most 1 between neighbours, of either
    relation: (epsilon, delta)-DP, tightly, hence delta-approximate (epsilon²/2)-zCDP [3]_.

    *Proof.* Compare Z with Z + 1, at y. For -m + 2 <= y <= m - 1 both have their geometric weights,
    which differ by a factor of at most e^epsilon. At y = m the first has c·w·b^m and the second
    c·b^(m-1), which is no less. At y = -m the first has c·w·b^m and the second nothing; at y = -m +
    1 the first has c·b^(m-1) and the second c·w·b^m = c·w·b^(m-1)/e^epsilon. So the first exceeds
    e^epsilon times the second by, in all, ::

        delta = c·(w·b^m + (1 - w)·b^(m-1)),   1/c = 1 + 2·(b - b^m)/(1 - b) + 2·w·b^m,

    and the other direction is the same by symmetry (y to 1 - y). Solved for w: with
    h = delta·(1 + b)/(1 - b + 2·delta·b), m is the smallest integer with b^m <= h, and
    w = (1 - h·b^(1-m))/(1 - b). The coin at the ends is tossed exactly.

    References
    ----------
    .. [1] Awan and Slavković, "Differentially private uniformly most powerful tests for binomial
       data", NeurIPS 2018.
    .. [2] Awan and Vadhan, "Canonical noise distributions and private hypothesis tests", Annals of
       Statistics 2023.
    .. [3] Bun and Steinke, "Concentrated differential privacy", TCC 2016, lemma 8.8.

    Examples
    --------
    >>> mechanism = Tulap(1, "1/1000")
    >>> mechanism.reach, mechanism.half_width(0.95), mechanism.loss().charge.delta
    (7, 3, Fraction(1, 1000))
    """

    title: ClassVar[str] = "Tulap"

    epsilon: Fraction
    delta: Fraction
    reach: int = field(init=False)

    def __post_init__(self) -> None:
        self._settle_positive("epsilon", "delta")
        if self.delta >= 1:
            raise ArgumentError("delta must be below 1; at delta = 0 use DiscreteLaplace")
        if self.epsilon < Fraction(1, 2**40):
            raise ArgumentError("epsilon must be at least 2**-40")
        self._settle(reach=_reach(self.epsilon, self.delta))

    @classmethod
    def for_loss(cls, epsilon: Number, delta: Number) -> Self:
        """The mechanism that costs exactly (epsilon, delta)."""
        return cls(check.positive("epsilon", epsilon), check.positive("delta", delta))

    @classmethod
    def for_half_width(cls, half_width: int, delta: Number, *, confidence: float) -> Self:
        """The mechanism of least epsilon (three digits) whose half-width is at most the one given.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        made = partial(cls.for_loss, delta=delta)
        return cheapest("half_width", half_width, made, lambda m: m.half_width(confidence))

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What a count costs: (epsilon, delta), as any mechanism of these.

        The trade-off curve is that of the class, up to the rounding of the reach.
        """
        return approximate_class(self.epsilon, self.delta, neighbours)

    def _draw(self, n: int) -> Integers:
        """Discrete Laplace draws, kept within the reach; at its ends, with probability w.

        Where the scale exceeds the reach few would be kept: then uniform draws, each kept with
        probability exp(-epsilon·|z|), which is above 1/e.
        """
        out = np.zeros(n, dtype=np.int64)
        pending = np.arange(n)
        # The law is nearly flat within its reach then.
        short = self.epsilon * self.reach < 1
        while pending.size:
            if short:
                drawn = noise.below(2 * self.reach + 1, pending.size) - self.reach
            else:
                drawn = noise.discrete_laplace(1 / self.epsilon, pending.size)
            out[pending] = drawn
            far = np.abs(drawn)
            ends = np.flatnonzero(far == self.reach)
            kept = far <= self.reach
            if short:
                kept = _exp_coins(self.epsilon, far)
                ends = ends[kept[ends]]
            kept &= far < self.reach
            if ends.size:
                # At the ends by a coin of exactly w.
                kept[ends] = coins.real_coins(self._end_bounds, ends.size)
            pending = pending[~kept]
        return out

    @property
    def variance(self) -> float:
        """Var Z; for a reach beyond a million, by the integral instead of the sum."""
        if self.reach > _SUMMED:
            return _cut_variance(float(self.epsilon * self.reach)) / float(self.epsilon) ** 2
        c, w = self._constants()
        z = np.arange(1, self.reach, dtype=float)
        b = np.exp(-float(self.epsilon) * z)
        end = w * self.reach**2 * math.exp(-float(self.epsilon) * self.reach)
        return 2 * c * (float(np.sum(z * z * b)) + end)

    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]; for t <= 0 it is 1, which serves no guarantee."""
        if t < 1:
            return Fraction(1)
        if t > self.reach:
            return Fraction(0)
        low, high = _ratio(self.epsilon, 1)
        first, (end_low, end_high) = _ratio(self.epsilon, t)[1], _ratio(self.epsilon, self.reach)
        w_low, w_high = self._end_bounds(_BITS)
        top = (first - end_low) / (1 - high) + w_high * end_high
        return min(Fraction(1), top / (1 + 2 * (low - end_high) / (1 - low) + 2 * w_low * end_low))

    def _survival(self, t: int) -> float:
        if t > self.reach:
            return 0.0
        c, w = self._constants()
        e = float(self.epsilon)
        last = math.exp(-e * self.reach)
        inner = math.exp(-e * t) * -math.expm1(-e * (self.reach - t)) / -math.expm1(-e)
        return c * (inner + w * last)

    def _guess(self, outside: float) -> float:
        return min(self.reach, math.log(2 / outside) / float(self.epsilon))

    def _constants(self) -> tuple[float, float]:
        """(c, w) in floating point."""
        e, w = float(self.epsilon), float(self._end_bounds(_BITS)[0])
        last = math.exp(-e * self.reach)
        inner = math.exp(-e) * -math.expm1(-e * (self.reach - 1)) / -math.expm1(-e)
        return 1 / (1 + 2 * inner + 2 * w * last), w

    def _end_bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Bounds of w = (1 - h·b^(1-m))/(1 - b), kept in [0, 1]."""
        spare = bits + 2 * self.epsilon.denominator.bit_length() + 16
        b_low, b_high = _ratio(self.epsilon, 1, spare)
        # b^(1-m)·b^(m-1) = 1, and m - 1 >= 0.
        p_low, p_high = _ratio(self.epsilon, self.reach - 1, spare)
        h_low, h_high = _h(b_low, self.delta), _h(b_high, self.delta)
        zero, one = Fraction(0), Fraction(1)
        return (
            # w falls with h: its upper end gives the lower bound, with the divisors that make it
            # small.
            max(zero, min(one, (1 - h_high / p_low) / (1 - b_low))),
            max(zero, min(one, (1 - h_low / p_high) / (1 - b_high))),
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise, delta = cls(Fraction(1), Fraction(1, 100)), Fraction(1, 100)
        yield Subject("Tulap", lambda count, size: count + noise.draw(size), 0, 1, delta=delta)


def _cut_variance(x: float) -> float:
    """∫ t²·e^-t dt / ∫ e^-t dt over [0, x]: the variance of Laplace noise cut at x scales."""
    if x < 1e-2:
        # To x³ inside; the next terms are below 1e-7 of it.
        top = x**3 * (1 / 3 - x / 4 + x * x / 10 - x**3 / 36)
        return top / (x * (1 - x / 2 + x * x / 6 - x**3 / 24))
    return (2 - math.exp(-x) * (2 + 2 * x + x * x)) / -math.expm1(-x)


def _exp_coins(epsilon: Fraction, far: Integers) -> npt.NDArray[np.bool_]:
    """Independent coins, true with probability exp(-epsilon·far) each, exactly."""
    tossed: npt.NDArray[np.bool_] = np.zeros(far.size, dtype=np.bool_)
    for value in np.unique(far).tolist():
        at = np.flatnonzero(far == value)
        tossed[at] = coins.real_coins(coins.exp_bounds(epsilon * value), at.size)
    return tossed


def _ratio(epsilon: Fraction, power: int, bits: int = _BITS) -> tuple[Fraction, Fraction]:
    """Bounds of b^power."""
    exponent = -epsilon * power
    return directed.exp_lower(exponent, bits), directed.exp_upper(exponent, bits)


def _h(b: Fraction, delta: Fraction) -> Fraction:
    """delta·(1 + b)/(1 - b + 2·delta·b), which rises with b."""
    return delta * (1 + b) / (1 - b + 2 * delta * b)


def _reach(epsilon: Fraction, delta: Fraction) -> int:
    """The smallest m with b^m <= h, decided by ever tighter bounds.

    exp of a rational is not a root of an equation with rational coefficients, so that the two sides
    are never equal and the bounds part.
    """
    bits = _BITS
    low, high = directed.exp_lower(-epsilon, bits), directed.exp_upper(-epsilon, bits)
    guess = max(1, math.ceil(-log_of(_h((low + high) / 2, delta)) / float(epsilon)) - 2)
    # The guess in doubles may be off on either side; what is returned was proved.
    while guess > 1 and _within(epsilon, delta, guess):
        guess -= 1
    while not _within(epsilon, delta, guess):
        guess += 1
    return guess


def _within(epsilon: Fraction, delta: Fraction, m: int) -> bool:
    bits = _BITS
    while True:
        b_low, b_high = _ratio(epsilon, 1, bits)
        p_low, p_high = _ratio(epsilon, m, bits)
        if p_high <= _h(b_low, delta):
            return True
        if p_low > _h(b_high, delta):
            return False
        # Not decided: the two sides differ, so that more digits part them.
        bits *= 2
