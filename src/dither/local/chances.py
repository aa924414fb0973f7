"""Coins whose probability is a whole number of 2**-64ths: what every channel is made of.

A channel's probabilities are irrational (e^epsilon is), so each is first rounded to t/2**64 in the
direction that keeps the promise, and from then on that rational is the channel: the sampler uses
it, the guarantee is computed from it, and a client in another language can use the same integer.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.noise import below
from dither.numeric import Words, directed

__all__ = ["ONE", "coins", "exp_bounds", "pick", "threshold"]

ONE = 1 << 64
"""The threshold of a coin that is always true."""

_BITS = 192
_CHUNK = 1 << 24


def exp_bounds(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of e^epsilon, 2**-188 apart in proportion."""
    return directed.exp_lower(epsilon, _BITS), directed.exp_upper(epsilon, _BITS)


def threshold(probability: Fraction) -> int:
    """The largest t with t/2**64 at most the probability.

    Parameters
    ----------
    probability : Fraction
        In [0, 1].
    """
    if not 0 <= probability <= 1:
        raise ArgumentError("probability must be between 0 and 1")
    return math.floor(probability * ONE)


def coins(t: int, size: int, words: Words) -> npt.NDArray[np.bool_]:
    """Toss independent coins that are true with probability t/2**64, exactly.

    One byte decides all but one coin in 256; those get 56 bits more, and the 64 together are
    compared with t.

    Parameters
    ----------
    t : int
        From 0 to 2**64.
    size : int
        How many, at least 0.
    """
    if t <= 0 or t >= ONE:
        return np.full(size, t >= ONE, dtype=np.bool_)
    out = np.empty(size, dtype=np.bool_)
    high, rest = np.uint8(t >> 56), np.uint64(t & ((1 << 56) - 1))
    for start in range(0, size, _CHUNK):
        part = out[start : start + _CHUNK]
        first = words.words(-(-part.size // 8)).view(np.uint8)[: part.size]
        np.less(first, high, out=part)
        open_ = np.flatnonzero(first == high)
        part[open_] = (words.words(open_.size) >> np.uint64(8)) < rest
    return out


def pick(n: int, size: int, words: Words) -> npt.NDArray[np.int64]:
    """Draw uniform integers in [0, n), exactly."""
    return below(n, size, words=words)
