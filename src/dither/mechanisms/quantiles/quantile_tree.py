"""Quantiles of every group from noisy counts on a tree of bins.

Layout. A public grid of ``bins`` leaves, numbered 0 to bins - 1, is the bottom of a tree in which
every node has ``branching`` children and there are ``levels`` levels below the root; padding leaves
beyond the grid are empty. Level l has branching^l counts. The root is not measured: it is the sum
of its children.

Mechanism. Independent integer noise is added to every count of every level of every group.

Sensitivity (integer vector of all counts of all groups). A unit has at most r = ``max_rows`` rows
in each of at most k = ``max_groups`` groups. Under ADD_REMOVE a level of a group changes by a
vector of L1 norm at most r, so of squared L2 norm at most r²; in all ::

    l1 = levels·r·k,    l2_squared = levels·r²·k.

Under REPLACE the old rows go and the new ones come: l1 doubles, and since a difference of two
vectors with non-negative entries of sum at most r has squared norm at most 2r² (and the two
units may be in 2k different groups) l2_squared doubles too. Proof of the last: the cross term
-2·<a, b> is at most 0.

Estimate. Least squares makes the tree consistent in two passes (Hay, Rastogi, Miklau and Suciu,
"Boosting the accuracy of differentially private histograms through consistency", VLDB 2010). With
all noise of one variance and v_l the variance (in that unit) of a level's estimate from below,

    v_L = 1,    v_l = b·v_{l+1}/(b·v_{l+1} + 1),
    up:    z = v_l·y + (1 - v_l)·Σ children's z,
    down:  x = z + (x_parent - Σ siblings' z)/b,    x_root = Σ z.

Quantile. Of n sorted rows x_0 .. x_{n-1} the q-quantile is the one at p = q·(n - 1), between
x_floor(p) and x_ceil(p) by the fraction of p (what QUANTILE_CONT and MEDIAN are in SQL). Let F(e)
be the number of rows in leaves below e, and n = F(bins). The bin j that it lies in, or any other
from that of x_floor(p) to that of x_ceil(p), has

    F(j) <= ceil(p) <= q·n + (1 - q),    F(j + 1) >= floor(p) + 1 >= q·n - q,

since ceil(p) < p + 1 and floor(p) > p - 1.

Interval. Both F~(e) - q·n~ are fixed linear combinations of the noises, so with h(e) the
half-width of that combination at the stated confidence, that bin fails F~(j) - q·n~ <= h(j) + 1 - q
with probability at most half the allowed error, and F~(j+1) - q·n~ >= -h(j+1) - q likewise. The
interval spans all bins that pass both; its ends are bin edges. Where rows are counted in parts, a
row is ``row`` parts, and so are 1 - q and q.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise, Integers
from dither.mechanisms._combination import Floats
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.quantiles._estimates import (
    Weights,
    crossing,
    passing,
    spread,
    variances_of,
    weights_at,
)
from dither.privacy import Neighbours

__all__ = ["QuantileTree", "Quantiles"]


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Estimates in bin coordinates: 2.5 is the middle of bin 2.

    Parameters
    ----------
    value, lower, upper : arrays of float, shape (groups, quantiles)
        0 <= lower <= value <= upper <= bins. ``lower`` and ``upper`` are bin edges.
    """

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, slots=True)
class Candidates:
    """Where one quantile of each group may lie.

    Parameters
    ----------
    gap : array of float, shape (groups, edges)
        F~ - q·n~.
    middle : array of float, shape (groups,)
        The estimate, in bins.
    first, last : arrays of int64, shape (groups,)
        The edges of the bins that pass both tests, at least one bin.
    """

    gap: Floats
    middle: Floats
    first: Integers
    last: Integers


_ENDS = ("first", "last")


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """A layout, fixed by public facts alone.

    Parameters
    ----------
    bins : int
        Leaves of the public grid, at least 1.
    branching : int
        Children of a node, at least 2.
    levels : int
        Levels below the root, with branching^levels >= bins.

    Raises
    ------
    ArgumentError
        The levels do not hold the bins.

    Examples
    --------
    >>> tree = QuantileTree.choose(1000, "laplace")
    >>> tree.branching, tree.levels, tree.nodes
    (10, 3, 1110)
    >>> tree.sensitivity(max_rows=2, max_groups=3)
    (Fraction(18, 1), Fraction(36, 1))
    """

    bins: int
    branching: int
    levels: int

    def __post_init__(self) -> None:
        for name, least in (("bins", 1), ("branching", 2), ("levels", 1)):
            check.whole(name, getattr(self, name), least)
        if self.branching**self.levels < self.bins:
            raise ArgumentError("levels must be enough for branching**levels to reach bins")

    @classmethod
    def choose(cls, bins: int, family: Literal["laplace", "gaussian"]) -> QuantileTree:
        """The layout of least mean variance of F~(e) - n~/2 over the grid, at a given budget.

        The noise's variance grows with levels² for Laplace and with levels for Gaussian noise.
        """
        check.choice("family", family, ("laplace", "gaussian"))
        return _choose(check.whole("bins", bins, 1), family)

    @property
    def nodes(self) -> int:
        """Noisy counts for each group."""
        return sum(self.branching**level for level in range(1, self.levels + 1))

    def sensitivity(
        self,
        *,
        max_rows: int,
        max_groups: int,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> tuple[Fraction, Fraction]:
        """(l1, l2_squared) of all counts of all groups together."""
        rows, groups = (
            check.whole("max_rows", max_rows, 1),
            check.whole("max_groups", max_groups, 1),
        )
        factor = 2 if neighbours is Neighbours.REPLACE else 1
        l1 = factor * self.levels * rows * groups
        return Fraction(l1), Fraction(l1 * rows)

    def counts(self, leaves: Integers) -> list[Integers]:
        """Exact counts of each level, root's children first; leaves of shape (groups, bins)."""
        leaves = np.asarray(leaves)
        if leaves.ndim != 2 or leaves.shape[1] != self.bins:
            raise ArgumentError(f"leaves must have shape (groups, {self.bins})")
        size = self.branching**self.levels
        level = np.zeros((leaves.shape[0], size), dtype=np.int64)
        level[:, : self.bins] = leaves
        levels = [level]
        while level.shape[1] > self.branching:
            size //= self.branching
            level = level.reshape(len(level), size, self.branching).sum(axis=2)
            levels.append(level)
        return levels[::-1]

    def measure(self, leaves: Integers, noise: AdditiveNoise) -> list[Integers]:
        """Release noisy counts of every level: the only step that sees exact counts.

        Its loss is the noise's at this layout's :meth:`sensitivity`.
        """
        return [level + noise.draw(level.shape) for level in self.counts(leaves)]

    def quantiles(
        self,
        noisy: Sequence[npt.ArrayLike],
        qs: Sequence[float],
        noise: AdditiveNoise,
        confidence: float,
        row: int = 1,
    ) -> Quantiles:
        """Estimate quantiles from what :meth:`measure` released.

        Parameters
        ----------
        noisy : sequence of arrays, shape (groups, branching^level)
            All levels.
        qs : sequence of float
            In [0, 1].
        noise : AdditiveNoise
            The noise that was drawn.
        confidence : float
            In (0, 1), for each quantile of each group by itself.
        row : int
            What one row counts: more than 1 where rows are counted in parts.

        Returns
        -------
        Quantiles
            The intervals account for noise and bin width.
        """
        width = self.half_widths(qs, noise, confidence)
        read = list(self.candidates(noisy, qs, width, row))
        lower, upper = (np.stack([getattr(one, end) for one in read], axis=1) for end in _ENDS)
        value = np.stack([one.middle for one in read], axis=1)
        return Quantiles(np.clip(value, lower, upper), lower.astype(float), upper.astype(float))

    def candidates(
        self, noisy: Sequence[npt.ArrayLike], qs: Sequence[float], width: Floats, row: int
    ) -> Iterator[Candidates]:
        """For each quantile, the bins that may hold it, given half-widths of shape (qs, edges)."""
        below = self.cumulative(noisy)
        for q, reach in zip(qs, width, strict=True):
            gap = below - q * below[:, -1:]
            middle = crossing(gap, row * (0.5 - q))
            some, first, last = passing(gap, reach, q, row)
            # Where noise lets no bin pass, the likeliest stands for all.
            likeliest = np.minimum(np.floor(middle), self.bins - 1).astype(np.int64)
            yield Candidates(
                gap, middle, np.where(some, first, likeliest), np.where(some, last, likeliest + 1)
            )

    def half_widths(self, qs: Sequence[float], noise: AdditiveNoise, confidence: float) -> Floats:
        """h(e) for each q and each edge e = 0..bins; infinite at both ends, where F is known.

        Shape (quantiles, bins + 1), in rows. Says before any release how well ranks will be known.
        """
        check_shares(qs)
        width = spread(check.confidence(confidence), (self.weights(qs), noise))
        width[:, [0, -1]] = np.inf
        return width

    def rank_widths(self, noise: AdditiveNoise, confidence: float) -> Floats:
        """How far F~(e) may be off at each edge by itself, shape (bins + 1,), in rows."""
        width = np.asarray(spread(check.confidence(confidence), (self.weights([0.0]), noise))[0])
        width[0] = 0.0
        return width

    def weights(self, qs: Sequence[float]) -> Weights:
        """Those of the noises in F~(e) - q·n~, for each q and each edge e."""
        return _weights(self, tuple(float(q) for q in qs))

    def cumulative(self, noisy: Sequence[npt.ArrayLike]) -> Floats:
        """Least-squares F~ at the edges 0..bins, shape (groups, bins + 1)."""
        levels = [np.asarray(level, dtype=float) for level in noisy]
        b = self.branching
        if [level.shape[-1] for level in levels] != [b ** (i + 1) for i in range(self.levels)]:
            raise ArgumentError("noisy must hold every level of this layout")
        variances = variances_of(self)
        for i in range(self.levels - 2, -1, -1):
            summed = levels[i + 1].reshape((*levels[i].shape, b)).sum(axis=2)
            levels[i] = variances[i] * levels[i] + (1 - variances[i]) * summed
        for i in range(1, self.levels):
            children = levels[i].reshape((*levels[i - 1].shape, b))
            excess = (levels[i - 1] - children.sum(axis=2)) / b
            levels[i] = (children + excess[:, :, None]).reshape(levels[i].shape)
        total = levels[0].sum(axis=1, keepdims=True)
        inner = np.cumsum(levels[-1], axis=1)[:, : self.bins - 1]
        return np.concatenate((np.zeros_like(total), inner, total), axis=1)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        tree = cls(8, 2, 3)
        noise = DiscreteLaplace.for_loss(1, l1=tree.sensitivity(max_rows=1, max_groups=1)[0])

        def measured(leaves: tuple[int, ...], size: int) -> npt.NDArray[np.int64]:
            counts = np.repeat(np.array([leaves], dtype=np.int64), size, axis=0)
            return np.concatenate(tree.measure(counts, noise), axis=1)

        yield Subject("quantile tree", measured, (0,) * 8, (0, 0, 0, 0, 0, 1, 0, 0))


def check_shares(qs: Sequence[float]) -> None:
    """Refuse a value that is not a share of the rows."""
    if any(not 0 <= q <= 1 for q in qs) or not len(qs):
        raise ArgumentError("qs must hold at least one number from 0 to 1")


@lru_cache(maxsize=64)
def _weights(tree: QuantileTree, qs: tuple[float, ...]) -> Weights:
    """Σw², Σ|w|³ and max|w|, of shape (quantiles, bins + 1)."""
    return weights_at(tree, np.asarray(qs, dtype=float)[:, None])


@lru_cache(maxsize=256)
def _choose(bins: int, family: str) -> QuantileTree:
    best: tuple[float, QuantileTree] | None = None
    for levels in range(1, max(1, math.ceil(math.log2(bins))) + 1):
        branching = max(2, math.ceil(bins ** (1 / levels)) - 1)
        while branching**levels < bins:
            branching += 1
        tree = QuantileTree(bins, branching, levels)
        squares = _weights(tree, (0.5,))[0]
        error = float(squares.mean()) * (levels**2 if family == "laplace" else levels)
        if best is None or error < best[0]:
            best = error, tree
    assert best is not None
    return best[1]
