"""Exact inversion: an outcome drawn with integer weights from as few random bits as decide it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.numeric import Words

__all__ = ["WeightedOutcomes"]

# A table of 65,536 prefixes, which decide nearly every draw of a law with few outcomes.
_PREFIX_BITS = 16


class WeightedOutcomes:
    """Outcomes 0..n−1 with probabilities weights[k] / sum(weights), drawn exactly.

    Parameters
    ----------
    weights : sequence of int
        Each at least 0, their sum above 0, of any size.

    Notes
    -----
    Let S_k be the cumulative weights and N their sum. A uniform real v in [0, 1) gives the
    outcome k with S_{k−1} ≤ v·N < S_k. Only some leading bits of v are drawn: after B bits with
    value u, v lies in [u, u+1)/2**B, and k is decided as soon as that interval lies within one
    cell. Undecided, further bits are drawn. No rounding occurs anywhere:

    - 64 bits are compared with c_k = floor(2**64·S_k/N). If u < c_k then u+1 ≤ 2**64·S_k/N, so
      the interval lies below S_k/N; if u > c_k it lies above; u = c_k is undecided.
    - A prefix of 16 bits is decided only if its first and last 64-bit continuation are decided
      alike (`prefixes`).
    - `resolve` compares with S_k itself, in integers, for as many bits as it takes; the
      probability that more than B bits are needed is below n·2**−B.

    So the law drawn is the ratio of the integers, exactly: its distance to it is 0.
    """

    __slots__ = ("count", "cumulative", "thresholds", "total")

    def __init__(self, weights: Sequence[int]) -> None:
        self.cumulative = list(accumulate(weights))
        self.count = len(self.cumulative)
        self.total = self.cumulative[-1] if self.cumulative else 0
        if self.total <= 0 or min(weights) < 0:
            raise ArgumentError("weights must be at least 0, with a sum above 0")
        total = self.total
        # S_k = N (only zero weights follow) would need 65 bits. The last word is left undecided
        # there instead: one wrongly modest threshold costs a resolution, never exactness.
        top = (1 << 64) - 1
        self.thresholds: npt.NDArray[np.uint64] = np.array(
            [min((s << 64) // total, top) for s in self.cumulative[:-1]], dtype=np.uint64
        )

    def prefixes(self) -> npt.NDArray[np.int64]:
        """Return the outcome that each 16-bit prefix decides, −1 where it decides none."""
        first = np.arange(1 << _PREFIX_BITS, dtype=np.uint64) << np.uint64(64 - _PREFIX_BITS)
        last = first | np.uint64((1 << (64 - _PREFIX_BITS)) - 1)
        # Left, so that a word on a threshold is given the cell that ends there, and found to touch
        # it.
        outcome = np.searchsorted(self.thresholds, first, side="left")
        if self.count == 1:
            return outcome
        final = self.count - 1
        decided = outcome == final
        # Above the last continuation strictly: no continuation lies on a threshold.
        decided |= self.thresholds[np.minimum(outcome, final - 1)] > last
        return np.where(decided, outcome, -1)

    def decide(self, prefixes: npt.NDArray[np.uint16], words: Words) -> npt.NDArray[np.int64]:
        """Return the outcomes of given uniform prefixes, drawing what further bits they need."""
        u = words.words(prefixes.size)
        u >>= np.uint64(_PREFIX_BITS)
        u |= prefixes.astype(np.uint64) << np.uint64(64 - _PREFIX_BITS)
        return self.invert(u, words)

    def invert(self, u: npt.NDArray[np.uint64], words: Words) -> npt.NDArray[np.int64]:
        """Return the outcomes of given uniform words, drawing further bits where they touch."""
        outcome = np.searchsorted(self.thresholds, u, side="left")
        if self.count > 1:
            # On a threshold 64 bits leave two cells open.
            touching = self.thresholds[np.minimum(outcome, self.count - 2)] == u
            for i in np.flatnonzero(touching):
                outcome[i] = self.resolve(int(u[i]), 64, words)
        return outcome

    def resolve(self, u: int, bits: int, words: Words) -> int:
        """Return the outcome of v in [u, u+1)/2**bits, drawing further bits until it is decided."""
        while True:
            # The cell of the interval's lower end; it is decided when the upper end lies in it too.
            outcome = bisect_right(self.cumulative, (u * self.total) >> bits)
            if (u + 1) * self.total <= self.cumulative[outcome] << bits:
                return outcome
            u = (u << 64) | words.bits(64)
            bits += 64

    def draw(self, size: int, words: Words) -> npt.NDArray[np.int64]:
        """Draw independent outcomes.

        Parameters
        ----------
        size : int
            How many.
        words : Words
            The source of randomness.

        Returns
        -------
        array of int64, shape (size,)
        """
        return self.invert(words.words(size), words)
