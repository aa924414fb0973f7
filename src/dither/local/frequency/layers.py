"""Two layers of noise on bits: a permanent one, and one that is tossed for every report.

With a = f/2 the chance that a permanent bit is not the true one, and p, q the chances of a reported
1 where the permanent bit is 0 and 1, one report says 1 with

    q* = (1-a)q + a·p  where the true bit is 1,      p* = a·q + (1-a)p  where it is 0.

Where two values differ in d bits, any number of reports differ by a factor of at most
((1-a)/a)**d, and one report by at most that of q*, p* for each of the bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.chances import ONE, exp_bounds, threshold
from dither.local.channel import checked_epsilon
from dither.local.frequency.packed import packed_coins
from dither.numeric import Words, directed, exact

__all__ = ["Layers", "checked_noise", "promises"]

Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Layers:
    """The chances of both layers, out of 2**64.

    Parameters
    ----------
    flip : int
        a: a permanent bit is not the true one.
    low, high : int
        p and q: a reported 1 where the permanent bit is 0, and where it is 1.
    """

    flip: int
    low: int
    high: int

    @classmethod
    def of(cls, epsilon: Fraction, once: Fraction | None, differing: int) -> Layers:
        """The layers for given promises, where two values differ in at most so many bits.

        a is rounded up and q down, with p = 1 - q, so that both promises hold of the rationals.
        """
        s, _ = exp_bounds(epsilon / differing)
        keep = threshold(s / (s + 1))
        if once is None:
            return cls(ONE - keep, 0, ONE)
        s, _ = exp_bounds(once / differing)
        a = 1 - Fraction(keep, ONE)
        high = threshold(max(Fraction(0), (s / (s + 1) - a) / (1 - 2 * a)))
        return cls(ONE - keep, ONE - high, high)

    @classmethod
    def of_noise(cls, noise: tuple[Fraction, Fraction, Fraction]) -> Layers:
        """The layers of RAPPOR's f, p and q, each rounded towards more privacy."""
        f, p, q = noise
        # A larger a, a larger p and a smaller q all bring the two laws together.
        return cls(ONE - threshold(1 - f / 2), ONE - threshold(1 - p), threshold(q))

    @property
    def star(self) -> tuple[Fraction, Fraction]:
        """q* and p*, exactly."""
        a, p, q = (Fraction(t, ONE) for t in (self.flip, self.low, self.high))
        return (1 - a) * q + a * p, a * q + (1 - a) * p

    def forever(self, differing: int) -> Fraction:
        """An upper bound of the epsilon of any number of reports."""
        a = Fraction(self.flip, ONE)
        return directed.log_upper((1 - a) / a) * differing

    def single(self, differing: int) -> Fraction:
        """An upper bound of the epsilon of one report of one-hot bits, or of symmetric layers.

        Half of the bits in which two values differ are 1 for the first, the others for the second.
        """
        high, low = self.star
        up, down = directed.log_upper(high / low), directed.log_upper((1 - low) / (1 - high))
        return (up + down) * (differing // 2)

    def permanent(self, true: Bits, k: int, words: Words) -> Bits:
        """Rows after the permanent layer, tossed afresh."""
        return true ^ packed_coins(self.flip, true.shape[0], k, words)

    def report(self, permanent: Bits, k: int, words: Words) -> Bits:
        """Rows after the second layer."""
        if (self.low, self.high) == (0, ONE):
            return permanent
        rows = permanent.shape[0]
        if self.low + self.high == ONE:
            return permanent ^ packed_coins(self.low, rows, k, words)
        ones = packed_coins(self.high, rows, k, words)
        zeros = packed_coins(self.low, rows, k, words)
        return (permanent & ones) | (~permanent & zeros)

    def remembered(self, true: Bits, words: npt.NDArray[np.uint64]) -> Bits:
        """Rows after the permanent layer, by given words: bit j is flipped if word j < a·2**64."""
        return true ^ np.packbits(words < np.uint64(self.flip), axis=1)


def promises(epsilon: Any, once: Any) -> tuple[Fraction, Fraction | None]:
    """Read the two epsilons: of any number of reports, and of one."""
    forever = checked_epsilon(epsilon)
    if once is None:
        return forever, None
    single = checked_epsilon(once, "once")
    if single >= forever:
        raise ArgumentError(
            "once (the epsilon of one report) must be below epsilon (that of any number of "
            "them); leave it out to send the permanent bits themselves"
        )
    return forever, single


def checked_noise(noise: Any) -> tuple[Fraction, Fraction, Fraction]:
    """Read RAPPOR's (f, p, q): 0 < f < 1 and 0 <= p < q <= 1."""
    try:
        f, p, q = (exact(value, "noise") for value in noise)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError("noise must be three numbers (f, p, q)") from None
    if not (0 < f < 1 and 0 <= p < q <= 1):
        raise ArgumentError("noise (f, p, q) must have 0 < f < 1 and 0 <= p < q <= 1")
    return f, p, q
