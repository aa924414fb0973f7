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
from dither.numeric import Words
from dither.numeric import _directed as directed

ONE = 1 << 64
"""The threshold of a coin that is always true."""

_BITS = 192
_CHUNK = 1 << 24
_PART = 1 << 18


def exp_bounds(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of e^epsilon, 2**-188 apart in proportion."""
    return directed.exp_lower(epsilon, _BITS), directed.exp_upper(epsilon, _BITS)


def threshold(probability: Fraction) -> int:
    """The largest t with t/2**64 at most the probability, which is in [0, 1]."""
    if not 0 <= probability <= 1:
        raise ArgumentError("probability must be between 0 and 1")
    return math.floor(probability * ONE)


def coins(t: int, size: int, words: Words) -> npt.NDArray[np.bool_]:
    """Toss independent coins that are true with probability t/2**64, exactly.

    One byte decides all but one coin in 256; those get 56 bits more, and the 64 together are
    compared with t.
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
    """Draw uniform integers in [0, n), n at most 2**63, exactly.

    The fewest bits that hold n - 1 are drawn, for a few more numbers than are wanted; those below n
    are uniform and independent, and the first `size` of them are kept.
    """
    bits = (n - 1).bit_length()
    if bits == 0 or n > 1 << 32:
        return below(n, size, words=words)
    unit = next(u for u in (8, 16, 32) if bits <= u)
    dtype = np.dtype(f"u{unit // 8}")
    mask, last = dtype.type((1 << bits) - 1), dtype.type(n - 1)
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        wanted = min(size - filled, _PART)
        drawn = words.words(-(-(((wanted << bits) // n + 16) * unit) // 64)).view(dtype) & mask
        kept = drawn if n == 1 << bits else drawn.take(np.flatnonzero(drawn <= last))
        part = out[filled : filled + min(wanted, kept.size)]
        part[:] = kept[: part.size]
        filled += part.size
    return out
