"""Hadamard response: a report is one index; the server's work is one fast transform."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._channel import Codes, Counts, DomainLike, Shares
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import Domain, bind
from dither.local._limits import checked_cells, checked_epsilon, checked_pairs
from dither.local._oracles import FiniteChannel
from dither.numeric import Words

_MAX_BLOCKS = 1 << 12


def best_blocks(k: int, epsilon: Fraction) -> int:
    """The power of two with the least variance where all values are alike: (e-1+2B)²/B least."""
    e = float(exp_bounds(epsilon)[0])
    powers = [1 << i for i in range(13) if i == 0 or 1 << i < k]
    return min(powers, key=lambda b: (e - 1 + 2 * b) ** 2 / b)


@dataclass(frozen=True, init=False)
class Hadamard(FiniteChannel):
    """Hadamard response; a report is an integer below B·b, about the size of the domain.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        From 2**-32 to 40; read exactly.
    blocks : int, optional
        B, a power of two from 1 to 4,096; by default the best.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `blocks` is.

    Notes
    -----
    Law. The K = B·b indices are B blocks of b, both powers of two. Value x has block i = x mod B
    and column j = 1 + floor(x/B), and the set S of the b/2 indices t of its block at which
    (-1)^(bits of j & t) is +1. With e = e^epsilon and D = (b/2)(e - 1) + K::

        Pr[y | x] = a = e/D if y in S,   c = 1/D for each other y

    Guarantee. epsilon-local DP: neighbours are any two values of one person. The sampler's Pr[y in
    S] is rounded down to a multiple of 2**-64, which raises c, so that a/c <= e.

    Error. With T the transform of the block's counts, f̂ = T[j]/(n·A), A = (b/2)(a - c), is
    unbiased; given the users' values its variance is (Pr[y in block i]/A² - f)/n. The best B is
    next to (e-1)/2: one block up to epsilon = 1.8. For small epsilon this is ((e+1)/(e-1))², some
    1.27 times that of OLH at epsilon = 1; for large epsilon it is at most twice that.

    References
    ----------
    Acharya, Sun and Zhang, AISTATS 2019 (blocks by the low digits of the code, and the estimator
    from the transform alone, are this package's).

    Examples
    --------
    >>> channel = Hadamard(1_000_000, epsilon=1)
    >>> channel.blocks, channel.outputs == 2**20
    (1, True)
    """

    kind: ClassVar[str] = "hadamard"

    blocks: int

    def __init__(self, domain: DomainLike, epsilon: Any, *, blocks: int | None = None) -> None:
        found, checked = Domain(domain), checked_epsilon(epsilon)
        made = best_blocks(len(found), checked) if blocks is None else blocks
        if _checks.whole("blocks", made, 1, _MAX_BLOCKS) & (made - 1):
            raise ArgumentError(f"blocks must be a power of two from 1 to {_MAX_BLOCKS}")
        bind(self, domain=found, epsilon=checked, blocks=int(made))

    @cached_property
    def width(self) -> int:
        """b: how many indices a block has."""
        # Column 0 is all +1 and carries no information, so the columns begin at 1.
        return 1 << (-(-len(self.domain) // self.blocks)).bit_length()

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often the report is in the value's set."""
        (low, _), mine = exp_bounds(self.epsilon), Fraction(self.width, 2)
        # Of a lower bound of e^epsilon, and rounded down: a over c never exceeds e^epsilon.
        return threshold(mine * low / (mine * (low - 1) + self.outputs))

    @property
    def outputs(self) -> int:
        """K = B·b."""
        return self.blocks * self.width

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """a of each index of the set and c of each other, exactly as drawn."""
        p, mine = Fraction(self.truth, ONE), self.width // 2
        return p / mine, (1 - p) / (self.outputs - mine)

    def exact(self, x: int, y: int) -> Fraction:
        """a if y is in the set of x, else c."""
        a, c = self._chances
        block, t = divmod(y, self.width)
        column = 1 + x // self.blocks
        return a if block == x % self.blocks and (column & t).bit_count() % 2 == 0 else c

    @property
    def matrix(self) -> Shares:
        """a in each value's set and c outside it, shape (k, K)."""
        k, m = len(self.domain), self.outputs
        checked_cells(k, m)
        a, c = (float(v) for v in self._chances)
        x, y = np.arange(k)[:, None], np.arange(m)[None, :]
        even = parity((1 + x // self.blocks) & (y % self.width)) == 0
        return np.where(even & (y // self.width == x % self.blocks), a, c)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """A uniform index of the value's set, or of the others."""
        b, n = self.width, codes.size
        block, column = codes % self.blocks, 1 + codes // self.blocks
        inside = coins(self.truth, n, words)
        # Where a bit of the column is flipped, an index changes sides: both halves are uniform.
        t = pick(b, n, words)
        odd = parity(t & column)
        lowest = column & -column
        at_plus, at_minus = t ^ (lowest * odd), t ^ (lowest * (1 - odd))
        if self.blocks == 1:
            return np.where(inside, at_plus, at_minus)
        # Of the K - b/2 others, b/2 are in the own block and the rest in the next ones.
        u = pick(self.outputs - b // 2, n, words)
        away = (u - b // 2) % b + b * ((block + 1 + (u - b // 2) // b) % self.blocks)
        outside = np.where(u < b // 2, block * b + at_minus, away)
        return np.where(inside, block * b + at_plus, outside)

    @property
    def _advantage(self) -> float:
        """A: what a holder adds to the transform at the own column, in expectation."""
        a, c = self._chances
        return float((self.width // 2) * (a - c))

    @property
    def largest_step(self) -> Shares:
        """2/A: from -1 to +1 in the transform."""
        return np.full(len(self.domain), 2 / self._advantage)

    def decode(self, counts: Counts, n: int) -> Shares:
        """T[j]/(n·A), T the transform of the counts of each block."""
        k = len(self.domain)
        found = hadamard(counts.reshape(self.blocks, self.width))
        # Rows are blocks, columns are 1 + x // B: read across, the codes are in order.
        return np.asarray(found[:, 1:].T.ravel()[:k] / (n * self._advantage))

    def noise_variance(self, frequencies: Shares) -> Shares:
        """Pr[y in the block]/A² - f, for one report."""
        a, c = (float(v) for v in self._chances)
        half, which = self.width // 2, np.arange(frequencies.size) % self.blocks
        holders = np.bincount(which, weights=frequencies, minlength=self.blocks)
        inside = holders * half * (a + c) + (1 - holders) * self.width * c
        return np.asarray(inside[which] / self._advantage**2 - frequencies)

    def variance_from(self, counts: Counts, n: int, plausible: Shares) -> Shares:
        """The shares of reports in each block are seen, not estimated."""
        inside = counts.reshape(self.blocks, self.width).sum(axis=1) / n
        which = np.arange(plausible.size) % self.blocks
        return np.asarray(inside[which] / self._advantage**2 - plausible)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Two values of a block are tied by the one whose column is the exclusive or of theirs."""
        k, f = len(self.domain), frequencies
        checked_pairs(k)
        block, column = np.arange(k) % self.blocks, 1 + np.arange(k) // self.blocks
        padded = np.zeros((self.blocks, self.width))
        padded[block, column] = f
        tied = padded[block[:, None], column[:, None] ^ column[None, :]] / self._advantage
        found = np.where(block[:, None] == block[None, :], tied, 0.0)
        np.fill_diagonal(found, self.noise_variance(f))
        return np.asarray(found)


def hadamard(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Transform the last axis: out[..., i] = sum over j of (-1)^(bits of i & j)·columns[..., j].

    Its length must be a power of two. Exact as long as the sum of magnitudes is below 2**63.

    >>> hadamard(np.array([5, 1, 0, 0])).tolist()
    [6, 4, 6, 4]
    """
    m = columns.shape[-1]
    if m < 1 or m & (m - 1):
        raise ArgumentError("the last axis must have a power of two as its length")
    found, spare = np.array(columns, dtype=np.int64), np.empty(columns.shape, dtype=np.int64)
    half = 1
    while half < m:
        pairs = found.reshape(-1, m // (2 * half), 2, half)
        out = spare.reshape(pairs.shape)
        np.add(pairs[:, :, 0], pairs[:, :, 1], out=out[:, :, 0])
        np.subtract(pairs[:, :, 0], pairs[:, :, 1], out=out[:, :, 1])
        found, spare = spare, found
        half *= 2
    return found


def parity(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whether each number, from 0 to 2**32 - 1, has an odd number of bits set: 0 or 1."""
    found = x.copy()
    for shift in (16, 8, 4, 2, 1):
        found ^= found >> shift
    return found & 1
