"""A tree over one ordered attribute that answers all of its ranges, consistently, with exact
errors.

Layout. N public bins are the leaves 0 .. N - 1; level m = 1 .. L cuts the leaves into nodes of s_m
leaves, b_m nodes of it in each of the level above (one node is above level 1; b_1 = 1 counts all of
the leaves as one). Leaves beyond N are empty, and counted like any other.

Mechanism. Every node of level m is counted with independent noise of variance v_m = 1/p_m. One unit
changes each level by no more than it changes a table of the leaves.

Estimates. Least squares over all levels. Let P_m project on what is constant in nodes of level m
and adds up to 0 in those of level m - 1 (P_1: what is constant in nodes of level 1). These spaces
are orthogonal, span all, and level k >= m sees what lies in the m-th one with precision s_k·p_k,
others not at all. So with h_m = Σ_{k>=m} s_k·p_k the estimate of a range q (a vector of zeros and
ones) has the exact variance ::

    Var(q) = Σ_m |P_m q|²/h_m,    |P_m q|² = |Q_m q|² - |Q_{m-1} q|²,

where |Q_m q|² = Σ (leaves of q in a node)²/s_m over the nodes of level m, which takes only the two
nodes that the ends of q lie in. A node's noise has the weight s_m·p_m·Σ_{k<=m} (q's mean in its
k-th ancestor less that in the ancestor above)/h_k; as 1/h rises, it is at most s_m·p_m/h_m <= 1.

Noise by level. With M_m the mean of |P_m q|² over all ranges, the mean variance is Σ M_m/h_m. Since
p_m = (h_m - h_{m+1})/s_m, a budget Σ p_m = 1 (zCDP) reads Σ c_m·h_m = 1 with c_m = 1/s_m -
1/s_{m-1} (c_1 = 1/s_1), and by Cauchy and Schwarz ::

    h_m = √(M_m/c_m)/Σ √(M_k·c_k),    mean variance (Σ √(M_m·c_m))².

Where some p_m came out below 0, the level is not worth measuring, and the layout without it is
better. For Laplace noise, p_m = e_m²/2 and Σ e_m = 1, the condition is that e_m·s_m·Σ_{k<=m}
M_k/h_k² is the same for all levels; it is met by iterating it. Of layouts whose b_m differ by at
most one the one of the least mean variance is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError

__all__ = ["RangeTree"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Family = Literal["laplace", "gaussian"]

_GRAIN = 1 << 20
"""Shares of the budget are whole numbers of its parts."""


@dataclass(frozen=True)
class RangeTree:
    """A layout, and how the budget is divided over its levels: fixed by public facts alone.

    Parameters
    ----------
    bins : int
        Leaves, at least 1.
    branchings : tuple of int
        b_1 .. b_L, whose product is at least ``bins``.
    shares : tuple of Fraction
        By level, above 0, adding up to 1: of epsilon for Laplace noise, of rho for Gaussian.
    family : {"laplace", "gaussian"}

    Examples
    --------
    >>> tree = RangeTree.choose(1024, "laplace")
    >>> tree.branchings, round(tree.error, 2)
    ((10, 10, 11), 12.39)
    """

    bins: int
    branchings: tuple[int, ...]
    shares: tuple[Fraction, ...]
    family: Family

    def __post_init__(self) -> None:
        check.whole("bins", self.bins, 1)
        if math.prod(self.branchings) < self.bins:
            raise ArgumentError("branchings must be enough for their product to reach bins")
        if len(self.shares) != len(self.branchings) or sum(self.shares) != 1:
            raise ArgumentError("shares must be one for each level, adding up to 1")

    @classmethod
    def choose(cls, bins: int, family: Family) -> RangeTree:
        """The layout of least mean variance over all ranges, with the noise that is best for it."""
        check.choice("family", family, ("laplace", "gaussian"))
        return _choose(check.whole("bins", bins, 1), family)

    @property
    def levels(self) -> int:
        """How many levels are measured."""
        return len(self.branchings)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """s_m: how many leaves a node of each level has."""
        found = [math.prod(self.branchings[m + 1 :]) for m in range(self.levels)]
        return tuple(found)

    @cached_property
    def _precisions(self) -> Floats:
        """p_m at a budget of 1: epsilon 1 at an L1 sensitivity of 1, or rho 1/2 at an L2 one."""
        each = np.array([float(s) for s in self.shares])
        return each**2 / 2 if self.family == "laplace" else each

    @property
    def error(self) -> float:
        """The root of the mean variance over all ranges at a budget of 1, of continuous noise.

        For Laplace noise that is epsilon 1; for Gaussian the unit is the deviation that a single
        table of the leaves would have at that rho.
        """
        return math.sqrt(self.mean_variance(1 / self._precisions))

    def mean_variance(self, variances: npt.ArrayLike) -> float:
        """Over all ranges, exact."""
        seen = self._seen(1 / np.asarray(variances, dtype=np.float64))
        return float((_means(self.bins, self.sizes) / seen).sum())

    def counts(self, leaves: Integers) -> list[Integers]:
        """Exact counts of every level, widest nodes first; leaves of shape (bins,)."""
        whole = np.zeros(math.prod(self.branchings), dtype=np.int64)
        whole[: self.bins] = leaves
        return [whole.reshape(-1, size).sum(axis=1) for size in self.sizes]

    def cumulative(self, noisy: Sequence[npt.ArrayLike], variances: Sequence[float]) -> Floats:
        """How many lie in the leaves before each edge 0 .. bins, by least squares.

        Parameters
        ----------
        noisy : sequence of array
            By level, as `counts` gives them.
        variances : sequence of float
            v_m.
        """
        read = [np.asarray(level, dtype=np.float64) for level in noisy]
        below, up = variances[-1], read[-1]
        estimates = [up]
        for m in range(self.levels - 2, -1, -1):
            summed = self.branchings[m + 1] * below
            w = _share(summed, variances[m])
            up = w * read[m] + (1 - w) * up.reshape(-1, self.branchings[m + 1]).sum(axis=1)
            below = w * variances[m]
            estimates.append(up)
        estimates = estimates[::-1]
        found = estimates[0]
        for m in range(1, self.levels):
            inside = estimates[m].reshape(-1, self.branchings[m])
            missing = (found - inside.sum(axis=1)) / self.branchings[m]
            found = (inside + missing[:, None]).ravel()
        return np.concatenate([[0.0], np.cumsum(found[: self.bins])])

    def variance(
        self, first: npt.ArrayLike, end: npt.ArrayLike, variances: Sequence[float]
    ) -> Floats:
        """The exact variance of the estimate of leaves ``first`` .. ``end`` - 1."""
        i, j = np.asarray(first, dtype=np.int64), np.asarray(end, dtype=np.int64)
        seen = self._seen(1 / np.asarray(variances, dtype=np.float64))
        found, before = np.zeros(np.broadcast(i, j).shape), np.zeros(np.broadcast(i, j).shape)
        for size, h in zip(self.sizes, seen, strict=True):
            square = _square(i, j, size)
            found += (square - before) / h
            before = square
        return found

    def largest(self, variances: Sequence[float]) -> float:
        """No single noise, of the deviations that go with these variances, counts for more."""
        p = 1 / np.asarray(variances, dtype=np.float64)
        weights = np.array(self.sizes) * p / self._seen(p)
        return float((weights / np.sqrt(p)).max())

    def _seen(self, precisions: Floats) -> Floats:
        """h_m."""
        return np.cumsum((np.array(self.sizes) * precisions)[::-1])[::-1]


def _share(summed: float, own: float) -> float:
    return summed / (own + summed) if own + summed > 0 else 1.0


def _square(i: Integers, j: Integers, size: int) -> Floats:
    """|Q q|² of the leaves i .. j - 1 in nodes of so many leaves."""
    # Leaves of q in the two nodes that it does not fill: all others are whole, or empty.
    left, right = -i % size, j % size
    same = i // size == (j - 1) // size
    whole = (j - i - left - right).astype(float)
    apart = whole + (left.astype(float) ** 2 + right.astype(float) ** 2) / size
    return np.where(same, (j - i).astype(float) ** 2 / size, apart)


def _mean_square(bins: int, size: int) -> float:
    """The mean of |Q q|² over all ranges of the bins that hold one at least."""
    u = np.arange(0, bins, size, dtype=np.float64)
    k = np.minimum(size, bins - u)
    # Ranges that begin before a node and end after it, within it on one side, or on both.
    outside = (u + 1) * (bins - u - k + 1) * k**2
    inner = (k - 1) * k * (2 * k - 1) / 6
    one_side = (u + 1 + bins - u - k + 1) * inner
    # Σ_t (k - 1 - t)·t² over t = 1 .. k - 2
    cubes = ((k - 1) * k / 2) ** 2
    within = (k - 1) * inner - cubes
    return float((outside + one_side + within).sum() / size / (bins * (bins + 1) / 2))


def _means(bins: int, sizes: Sequence[int]) -> Floats:
    """M_m."""
    squares = np.array([_mean_square(bins, size) for size in sizes])
    return np.diff(squares, prepend=0.0)


def _divided(means: Floats, sizes: Floats, family: Family) -> Floats | None:
    """How the budget is divided best; None where a level is not worth measuring."""
    if family == "gaussian":
        cost = np.diff(1 / sizes, prepend=0.0)
        h = np.sqrt(means / cost)
        p = -np.diff(h, append=0.0) / sizes
        return np.asarray(p / p.sum()) if (p > 0).all() else None
    e = np.full(len(sizes), 1 / len(sizes))
    for _ in range(200):
        h = np.cumsum((sizes * e**2)[::-1])[::-1]
        pull = e * sizes * np.cumsum(means / h**2)
        moved = e * np.cbrt(pull)
        moved /= moved.sum()
        # The error is computed of the shares as they are, so how near they come promises nothing.
        if np.abs(moved - e).max() < 1e-9:
            break
        e = moved
    return np.asarray(e) if (e > 1e-3 / len(sizes)).all() else None


def _layouts(bins: int) -> list[tuple[int, ...]]:
    """Branchings that differ by at most one, smaller ones first, for every number of levels."""
    found = []
    if bins == 1:
        return [(1,)]
    for levels in range(1, math.ceil(math.log2(bins)) + 1):
        b = 1
        while (b + 1) ** levels < bins:
            b += 1
        for more in range(levels + 1):
            # So many of the levels branch once more; a level of single nodes repeats the next.
            if (b > 1 or more == levels) and b ** (levels - more) * (b + 1) ** more >= bins:
                found.append((b,) * (levels - more) + (b + 1,) * more)
                found.append((b + 1,) * more + (b,) * (levels - more))
                break
    return found


@lru_cache(maxsize=256)
def _choose(bins: int, family: Family) -> RangeTree:
    best: RangeTree | None = None
    for layout in dict.fromkeys(_layouts(bins)):
        for branchings in (layout, (1, *layout)) if bins > 1 else (layout,):
            sizes = [math.prod(branchings[m + 1 :]) for m in range(len(branchings))]
            each = _divided(_means(bins, sizes), np.array(sizes, dtype=float), family)
            if each is None:
                continue
            tree = RangeTree(bins, branchings, _exact(each), family)
            # Of layouts that are as good but for some 10^6 roundings the first is taken, so that no
            # last digit of one processor changes the tree.
            if best is None or tree.error < best.error * (1 - 1e-9):
                best = tree
    assert best is not None
    return best


def _exact(shares: Floats) -> tuple[Fraction, ...]:
    """The same as fractions that add up to 1."""
    parts = np.maximum(np.rint(shares * _GRAIN), 1).astype(int).tolist()
    return tuple(Fraction(n, sum(parts)) for n in parts)
