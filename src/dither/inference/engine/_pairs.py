"""Rows of ±1 by the signs of inner products of blocks: a test whose rows grow as √d.

Release. Rows are dealt to k = 16 blocks by their place, which is public with n (fewer where rows
are). With B_a the sum of a block,

    T = Σ over a < b of sign ⟨B_a, B_b⟩,

a whole number. A row that is replaced changes one block, hence k - 1 of the signs, each by at most
2: T moves by at most 2·(k - 1), whatever the rows are and however many numbers they have. It leaves
with canonical noise.

Power. Under fair coins the signs of different pairs are uncorrelated, of mean 0. Under means of
length α a pair has ⟨B_a, B_b⟩ of mean (n/k)²·α² and deviation (n/k)·√d about, so that T has mean
(k - 1)·n·α²/√(2·π·d) where that is small, beside deviation √(k·(k - 1)/2) of chance and noise of
scale 2·(k - 1)/ε: n = O(√d/(α²·min(ε, 1))) rows suffice. In d that is the rate that no test can be
below, private or not. "norm" needs d^(2/3)/(α·ε^(1/2))^(4/3) beside √d/α², as any row may move the
length by √d: less where d is small, more from a few thousand numbers a row on.

Why not the rate in ε. The least that is known is √d/α² + d^(1/3)/(α^(4/3)·ε^(2/3)) + 1/(α·ε), of a
statistic extended from tables in which every ⟨x, S⟩ is about √(n·d) to all others, which takes time
exponential in n; algorithms in polynomial time (`method="efficient"`) pay in constants and in a
delta: at d = 100 they need 7,024 rows where "norm" needs 134.

Source. Narayanan, "Private high-dimensional hypothesis testing", COLT 2022, for the rate and its
lower bound; Canonne, Kamath, McMillan, Ullman and Zakynthinou, NeurIPS 2020. Deriving tests from
signs of pairs of blocks is our own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import batches

__all__ = ["BLOCKS", "blocks_for", "moved_by_pairs", "pairs_of", "signs_of_pairs"]

BLOCKS = 16
"""More gain little: with k blocks chance is √(k/(k - 1)) of what it is with many."""

_BATCH = 1 << 21
"""Simulated numbers that are held at once."""


def blocks_for(rows: int) -> int:
    """How many blocks so many rows make."""
    return max(1, min(BLOCKS, rows))


def moved_by_pairs(rows: int) -> int:
    """How far one row that is replaced moves T; at least 1, so that there is noise."""
    return max(1, 2 * (blocks_for(rows) - 1))


def pairs_of(rows: npt.NDArray[np.int8]) -> int:
    """T of rows of ±1, exactly; 0 for what is missing.

    Examples
    --------
    >>> pairs_of(np.array([[1, 1], [1, 1], [-1, -1]], dtype=np.int8))
    -1
    """
    k = blocks_for(len(rows))
    # As Python's integers: products of sums of many rows may not fit 64 bits.
    sums = [[int(v) for v in rows[a::k].sum(axis=0, dtype=np.int64)] for a in range(k)]
    total = 0
    for b in range(k):
        for a in range(b):
            inner = sum(x * y for x, y in zip(sums[a], sums[b], strict=True))
            total += (inner > 0) - (inner < 0)
    return total


def signs_of_pairs(
    rng: np.random.Generator, rows: int, chances: Floats, size: int
) -> Iterator[Floats]:
    """Simulated T of so many rows, in batches.

    Parameters
    ----------
    chances : array of float, shape (d,)
        Of a +1.
    """
    k = blocks_for(rows)
    sizes = np.array([len(range(a, rows, k)) for a in range(k)])[None, :, None]
    above = np.triu_indices(k, 1)
    for some in batches(size, max(1, _BATCH // (k * chances.size)), "simulations"):
        shape = (some, k, chances.size)
        sums = 2.0 * rng.binomial(np.broadcast_to(sizes, shape), chances) - sizes
        inner = sums @ sums.transpose(0, 2, 1)
        yield np.sign(inner[:, above[0], above[1]]).sum(axis=1)
