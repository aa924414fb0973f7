"""Exact decisions of irrational probability: coins, and choices weighted by exponentials.

A probability such as 1/(1 + exp(-epsilon)) is not rational, yet a coin of exactly that probability
can be tossed: compare a uniform U, whose bits are drawn as they are needed, with ever tighter
rational bounds of it. The comparison ends with probability 1, after one word in all but about one
case in 2**61, and nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither import noise
from dither.numeric import _directed as directed

__all__ = ["Bounds", "exp_bounds", "exp_choice", "geometric", "real_coin", "real_coins"]

Bounds = Callable[[int], tuple[Fraction, Fraction]]
"""From a number of bits to a lower and an upper bound, about 2**-bits apart or equal."""

_WORD = 62
_SPARE = 32
"""Bits asked of the bounds beyond those of U that they are compared with."""

_WEIGHT_BITS = 128
_NEGLIGIBLE = 100
"""exp(-100) < 2**-128: from here on the dominating weight is the smallest, 1."""
_MANY, _STEPS = 32, 16
"""Of more candidates than this, exponents are rounded down to such parts of 1 for their weights."""
_LAST = _NEGLIGIBLE * _STEPS
"""So many of these parts are negligible."""


def real_coins(bounds: Bounds, size: int) -> npt.NDArray[np.bool_]:
    """Toss independent coins that are true with exactly the probability that ``bounds`` encloses.

    With U the uniform number whose first bits were drawn, U lies in a dyadic interval; the coin is
    decided once that interval lies on one side of the bounds, and else gets more bits.
    """
    low, high = bounds(_WORD + _SPARE)
    one = 1 << _WORD
    first = noise.below(one, size)
    # U is below (first + 1)/2^62, so that it is surely below the lower bound.
    coins: npt.NDArray[np.bool_] = first < math.floor(low * one)
    # Between the bounds: more bits of both decide.
    for i in np.flatnonzero(~coins & (first < math.ceil(high * one))):
        coins[i] = _decide(bounds, int(first[i]))
    return coins


def real_coin(bounds: Bounds) -> bool:
    """Toss one coin of `real_coins`."""
    return bool(real_coins(bounds, 1)[0])


def exp_choice(gaps: Sequence[int], rate: Fraction, counts: Sequence[int] | None = None) -> int:
    """Draw an index with probability exactly proportional to exp(-rate·gap).

    Parameters
    ----------
    gaps : sequence of int
        At least one, of any sign and size.
    rate : Fraction
        At least 0.
    counts : sequence of int, optional
        How many candidates of that gap each index stands for, at least 1.

    Notes
    -----
    Let d_i be the gap above the smallest and w_i = ceil(2**128·exp(-x_i)) or more, an integer that
    dominates, with x_i = rate·d_i. An index drawn with weight w_i is kept with probability
    2**128·exp(-rate·d_i)/w_i, by an exact coin, and else all is drawn again: what is kept has
    probability proportional to w_i·exp(-rate·d_i)/w_i. Of many candidates, x_i is rounded down to a
    sixteenth: one draw in sixteen is repeated at most, and there are few exponentials, which are
    kept from choice to choice.
    """
    # Only differences count, and the largest weight is then 2^128.
    least = min(gaps)
    one, most = 1 << _WEIGHT_BITS, Fraction(_NEGLIGIBLE)
    distinct = {g - least for g in gaps}
    if len(distinct) > _MANY:
        above, below = rate.numerator * _STEPS, rate.denominator
        weights = [_of_steps(min((g - least) * above // below, _LAST)) for g in gaps]
    else:
        known = {gap: _dominating(min(rate * gap, most), _WEIGHT_BITS) for gap in distinct}
        weights = [known[g - least] for g in gaps]
    many = weights if counts is None else [n * w for n, w in zip(counts, weights, strict=True)]
    while True:
        i = int(noise.choose(many, 1)[0])
        exponent = rate * (gaps[i] - least)
        # The best candidate's weight is exact: nothing is rejected.
        if exponent == 0 or real_coin(exp_bounds(exponent, Fraction(one, weights[i]))):
            return i


@lru_cache(maxsize=_LAST + 1)
def _of_steps(steps: int) -> int:
    """The weight of an exponent that was rounded down to so many steps."""
    return _dominating(Fraction(steps, _STEPS), _WEIGHT_BITS)


@lru_cache(maxsize=2 * _LAST)
def _dominating(exponent: Fraction, bits: int) -> int:
    """A whole number of at least 2**bits·exp(-exponent), at least 1."""
    if exponent >= _NEGLIGIBLE:
        # A weight below 1 is raised to 1: its coin makes up for that.
        return 1
    return math.ceil(directed.exp_upper(-exponent, bits + 8) * (1 << bits))


def geometric(mean: Fraction, size: int) -> npt.NDArray[np.int64]:
    """Draw integers from 0 on with Pr[Z >= z] = exp(-z/mean), exactly.

    This is discrete Laplace noise of that scale, given that it is at least 0.
    """
    out = np.zeros(size, dtype=np.int64)
    pending = np.arange(size)
    while pending.size:
        drawn = noise.discrete_laplace(mean, pending.size)
        out[pending] = drawn
        # Given at least 0, discrete Laplace is geometric: the others are drawn again.
        pending = pending[drawn < 0]
    return out


def exp_bounds(exponent: Fraction, factor: Fraction = Fraction(1)) -> Bounds:
    """Bounds of factor·exp(-exponent), a probability."""

    def bounds(bits: int) -> tuple[Fraction, Fraction]:
        low, high = _exp(exponent, bits + _WEIGHT_BITS)
        return low * factor, min(Fraction(1), high * factor)

    return bounds


@lru_cache(maxsize=2 * _LAST)
def _exp(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-exponent), kept from choice to choice: gaps come again."""
    return directed.exp_lower(-exponent, bits), directed.exp_upper(-exponent, bits)


def _decide(bounds: Bounds, prefix: int) -> bool:
    bits = _WORD
    while True:
        prefix = (prefix << _WORD) | int(noise.below(1 << _WORD, 1)[0])
        bits += _WORD
        low, high = bounds(bits + _SPARE)
        # The whole interval of U is below the chance.
        if prefix + 1 <= low * (1 << bits):
            return True
        if prefix >= high * (1 << bits):
            return False
