"""Where numbers end, and how large units are, read from noisy histograms: post-processing.

Ends. A cell is *occupied* where its noisy count is so high that, were all cells empty, any of them
would be so high with probability at most 1/1000: such a mistake makes bounds absurdly wide. From
the outermost occupied cells the ends move outwards, cell by cell, while the next one's count is so
high that it would be with probability alpha = 1 - confidence were it empty: data seldom have gaps,
one cell is one test, and a mistake makes bounds wider by one cell. The outermost cells of a grid,
which hold what lies beyond it, are not ends.

A limit. The smallest end of a cell above which lies at most a given share of the units in cells up
to the last occupied one. What lies beyond that is mostly noise, of which there is more the more
cells are added up.

Share outside. Given the ends, which rest on other noise, o~ = o + X and i~ = i + Y are the noisy
numbers of values outside and inside, X and Y being sums of one draw or more. With Pr[X < -x] and
Pr[Y > y] at most alpha/2 each, o <= o~ + x and i >= i~ - y hold together with the stated
confidence, and then o/(o + i) <= (o~ + x)/(o~ + x + max(0, i~ - y)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dither._search import least_integer
from dither.mechanisms import AdditiveNoise, half_width
from dither.mechanisms._base import Integers

__all__ = ["ShareOutside", "ends_of", "limit_of", "outside_of", "share_beyond", "threshold"]

FAR = Fraction(1, 1000)
"""How likely an empty cell, out of all, may be to pass for an occupied one."""


@lru_cache(maxsize=256)
def threshold(noise: AdditiveNoise, cells: int, alpha: Fraction = FAR) -> int:
    """The count that the largest of so many empty cells reaches with probability at most alpha."""
    return least_integer(lambda t: cells * noise.upper_tail(t) <= alpha, 1)


def ends_of(counts: Integers, noise: AdditiveNoise, alpha: Fraction) -> tuple[int, int] | None:
    """The first and the last cell within the ends; ``None`` where no cell is seen to be occupied.

    Parameters
    ----------
    counts : array of int, shape (cells,)
        Noisy counts; the first and the last cell hold what lies beyond the grid.
    noise : AdditiveNoise
    alpha : Fraction
    """
    inner = counts[1:-1]
    found = _occupied(inner, noise)
    if found is None:
        return None
    first, last = found
    one = threshold(noise, 1, alpha)
    while first > 0 and inner[first - 1] >= one:
        first -= 1
    while last < len(inner) - 1 and inner[last + 1] >= one:
        last += 1
    return first + 1, last + 1


def limit_of(counts: Integers, noise: AdditiveNoise, share: Fraction) -> int | None:
    """The cell at whose end a limit stands, so that about ``share`` lies above it.

    ``None`` where no cell is seen to be occupied.
    """
    found = _occupied(counts, noise)
    if found is None:
        return None
    known = counts[: found[1] + 1]
    above = known.sum() - np.cumsum(known)
    return int(np.argmax(above <= float(share) * max(known.sum(), 0)))


def share_beyond(
    counts: Integers, sizes: Sequence[Fraction], limit: Fraction, noise: AdditiveNoise
) -> float | None:
    """The share of all that units have which lies beyond a limit, as far as can be told.

    Cells up to the last occupied one tell, each by the middle of its sizes; what lies in those
    above it is mostly noise. ``None`` where no cell is seen to be occupied.
    """
    found = _occupied(counts, noise)
    if found is None:
        return None
    known = [max(int(count), 0) for count in counts[: found[1] + 1]]
    nothing = Fraction(0)
    pairs = list(zip(known, sizes, strict=False))
    every = sum((n * size for n, size in pairs), start=nothing)
    beyond = sum((n * max(size - limit, nothing) for n, size in pairs), start=nothing)
    return float(beyond / every) if every else None


def _occupied(counts: Integers, noise: AdditiveNoise) -> tuple[int, int] | None:
    """The first and the last cell that is surely not empty."""
    seen = np.flatnonzero(counts >= threshold(noise, max(len(counts), 1)))
    return (int(seen[0]), int(seen[-1])) if seen.size else None


@dataclass(frozen=True, slots=True)
class ShareOutside:
    """Which share lies outside of ends: as far as can be told, and at most."""

    expected: float
    most: float


def outside_of(
    outside: Integers, inside: Integers | int, noise: AdditiveNoise, confidence: float
) -> ShareOutside:
    """The share outside, from the noisy numbers outside and inside (of each side, or part)."""
    alpha = 1 - confidence
    # Noise is symmetric: half of what a half-width leaves outside lies on either side.
    reach, short = (
        float(half_width([(1.0, noise)] * len(numbers), 1 - alpha))
        for numbers in (outside, np.atleast_1d(inside))
    )
    out, within = float(np.sum(outside)), float(np.sum(inside))
    most, least = max(out + reach, 0.0), max(within - short, 0.0)
    known = max(out, 0.0) + max(within, 0.0)
    expected = max(out, 0.0) / known if known > 0 else 1.0
    bound = most / (most + least) if most + least > 0 else 1.0
    return ShareOutside(min(expected, bound), bound)
