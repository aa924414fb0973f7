"""Quantiles over a wide range: a tree of stretches, then trees inside the few that stay open.

Layout. A public grid of many bins is cut into stretches of ``below.bins`` each. The stretches are
the leaves of one :class:`QuantileTree`, ``top``; the bins of each stretch are the leaves of a tree
``below`` of its own. Each is measured with noise of its own: ``top`` first.

Reading. From the first answer follows, for each group and quantile, which stretches may hold it.
Where they are at most ``OPEN`` in a row, the trees below those are read, and only those.

Privacy. Suppose that the trees of *all* stretches were measured. A row lies in one stretch, and
there in one node of each level, so the sensitivity of all those counts together is that of a single
tree ``below`` (:meth:`QuantileTree.sensitivity`). What is read depends on ``top``'s noisy counts
alone, so it is post-processing of both complete measurements. Noises are independent, so those
that nobody reads need not be drawn.

Estimate. Inside stretch j, at the edge before its bin t, with φ = t/``below.bins``, F1 and F2 the
least-squares estimates of the two trees ::

    F~(j, t) = F1(j) + F2(t) + φ·(F1(j + 1) - F1(j) - F2(end)).

It has no bias, and meets F1 at both ends of a stretch. So

    F~(j, t) - q·n~ = (1 - φ)·[F1(j) - q·n1] + φ·[F1(j + 1) - q·n1] + [F2(t) - φ·F2(end)].

The last bracket has the weights of :func:`weights_at` at q = φ. Those of the first two together
have, by the triangle inequality, an L2 and an L3 norm of at most the same mean of the two norms.

Interval. The stretch that holds the quantile fails its test with probability at most ``FIRST`` of
the allowed error, and the bin, inside it, with the rest: at least the stated confidence is left,
whichever stretches were read. The interval spans the bins that pass in the stretches that pass, or
the stretches where those are too many to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.mechanisms._base import AdditiveNoise, Integers
from dither.mechanisms._combination import Floats
from dither.mechanisms.quantiles._estimates import Weights, crossing, passing, spread, weights_at
from dither.mechanisms.quantiles.quantile_tree import Candidates, Quantiles, QuantileTree

__all__ = ["OPEN", "OpenedBins", "RefinedQuantiles"]

OPEN = 4
"""At most so many stretches are read below, for one quantile of one group."""

FIRST = 0.8
"""The share of the allowed error that finding the stretches takes."""


@dataclass(frozen=True, slots=True)
class OpenedBins:
    """What was read below.

    Parameters
    ----------
    group, stretch : arrays of int64, shape (read,)
        Which; in order, and none twice.
    noisy : list of arrays, shape (read, branching^level)
        Noisy counts of each level.
    """

    group: Integers
    stretch: Integers
    noisy: list[Integers]


@dataclass(frozen=True, slots=True)
class RefinedQuantiles:
    """A layout of two steps, fixed by public facts alone.

    Parameters
    ----------
    top : QuantileTree
        Over the stretches.
    below : QuantileTree
        Over the bins of one stretch.
    bins : int
        Of the whole grid: at most ``top.bins * below.bins``, and in the last stretch.
    """

    top: QuantileTree
    below: QuantileTree
    bins: int

    def measure(
        self,
        noisy: Sequence[npt.ArrayLike],
        leaves: Callable[[Integers, Integers, int], Integers],
        qs: Sequence[float],
        noises: tuple[AdditiveNoise, AdditiveNoise],
        confidence: float,
        row: int = 1,
    ) -> OpenedBins:
        """Release noisy counts below the open stretches: the only step that sees exact counts.

        Parameters
        ----------
        noisy : sequence of arrays
            What ``top.measure`` released.
        leaves : callable
            Exact counts of the bins: called with groups, stretches and the size of a stretch.
        qs, noises, confidence, row
            As for ``quantiles``.
        """
        # From noisy counts alone: which stretches are opened tells nothing new.
        group, stretch = self.wanted(noisy, qs, noises[0], confidence, row)
        exact = leaves(group, stretch, self.below.bins)
        return OpenedBins(group, stretch, self.below.measure(exact, noises[1]))

    def wanted(
        self,
        noisy: Sequence[npt.ArrayLike],
        qs: Sequence[float],
        noise: AdditiveNoise,
        confidence: float,
        row: int = 1,
    ) -> tuple[Integers, Integers]:
        """Groups and stretches that are open, in order and none twice: from ``noisy`` alone."""
        found: set[tuple[int, int]] = set()
        for one in self._open(noisy, qs, noise, confidence, row):
            for g in np.flatnonzero(one.last - one.first <= OPEN).tolist():
                found.update((g, j) for j in range(one.first[g], one.last[g]))
        pairs = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def quantiles(
        self,
        noisy: Sequence[npt.ArrayLike],
        opened: OpenedBins,
        qs: Sequence[float],
        noises: tuple[AdditiveNoise, AdditiveNoise],
        confidence: float,
        row: int = 1,
    ) -> Quantiles:
        """Estimate quantiles from what was released; see :meth:`QuantileTree.quantiles`.

        Parameters
        ----------
        noisy : sequence of arrays
            What ``top.measure`` released.
        opened : OpenedBins
            What ``measure`` released, for these quantiles and perhaps others.
        qs : sequence of float
            In [0, 1].
        noises : tuple of AdditiveNoise
            Of ``top`` and of ``below``.
        confidence : float
            In (0, 1), for each quantile of each group by itself.
        row : int
            What one row counts: more than 1 where rows are counted in parts.

        Returns
        -------
        Quantiles
            In bins of the whole grid.
        """
        size = self.below.bins
        inside = self.below.cumulative(opened.noisy)
        found = []
        for q, on_top in zip(qs, self._open(noisy, qs, noises[0], confidence, row), strict=True):
            first, last = on_top.first, on_top.last
            lower = (first * size).astype(float)
            upper = np.minimum(last * size, self.bins).astype(float)
            value = np.clip(on_top.middle * size, lower, upper)
            at = np.flatnonzero((last - first <= OPEN) & self._read(opened, first, last))
            if at.size:
                curve = self._inside(on_top, at, opened, inside, q, noises, confidence)
                for part, new in zip((value, lower, upper), curve.read(q, row), strict=True):
                    part[at] = first[at] * size + new
            found.append((value, lower, upper))
        return Quantiles(*(np.stack(parts, axis=1) for parts in zip(*found, strict=True)))

    def _read(self, opened: OpenedBins, first: Integers, last: Integers) -> npt.NDArray[np.bool_]:
        """Whether all of a group's stretches ``first .. last - 1`` were read."""
        if not opened.group.size:
            return np.zeros(first.size, dtype=np.bool_)
        known = opened.group * self.top.bins + opened.stretch
        wanted = np.arange(first.size) * self.top.bins + np.stack((first, last - 1))
        place = np.searchsorted(known, wanted)
        inside = known[np.minimum(place, known.size - 1)] == wanted
        # They are in order, so between two of one group lie just those between.
        return np.asarray(inside.all(axis=0) & (place[1] - place[0] == last - 1 - first))

    def _open(
        self,
        noisy: Sequence[npt.ArrayLike],
        qs: Sequence[float],
        noise: AdditiveNoise,
        confidence: float,
        row: int,
    ) -> list[Candidates]:
        """For each quantile, the stretches that may hold it in each group."""
        level = 1 - FIRST * (1 - check.confidence(confidence))
        width = self.top.half_widths(qs, noise, level)
        return list(self.top.candidates(noisy, qs, width, row))

    def _inside(
        self,
        on_top: Candidates,
        groups: npt.NDArray[np.intp],
        opened: OpenedBins,
        inside: Floats,
        q: float,
        noises: tuple[AdditiveNoise, AdditiveNoise],
        confidence: float,
    ) -> Curve:
        """F~ - q·n~ inside the open stretches of each of the groups."""
        gap, first, last = on_top.gap[groups], on_top.first[groups], on_top.last[groups]
        size = self.below.bins
        edges = np.arange(size + 1)
        share = edges / size
        level = 1 - (1 - FIRST) * (1 - confidence)
        coarse = [part[0] for part in self.top.weights([q])]
        squares, cubes, largest = weights_at(self.below, share[None, :])
        fine: Weights = squares[0], cubes[0], largest[0]
        read = np.searchsorted(
            opened.group * self.top.bins + opened.stretch, groups * self.top.bins + first
        )
        gaps = np.full((groups.size, OPEN * size + 1), np.nan)
        widths = np.zeros_like(gaps)
        for k in range(OPEN):
            at = np.flatnonzero(first + k < last)
            j = first[at] + k
            tree = inside[read[at] + k]
            left, right = gap[at, j][:, None], gap[at, j + 1][:, None]
            place = at[:, None], k * size + edges[None, :]
            gaps[place] = (1 - share) * left + share * right + tree - share * tree[:, -1:]
            mixed: list[Floats] = []
            for part, p in zip(coarse, (2, 3, 1), strict=True):
                norm = part ** (1 / p)
                mixed.append(((1 - share) * norm[j][:, None] + share * norm[j + 1][:, None]) ** p)
            above: Weights = mixed[0], mixed[1], mixed[2]
            width = spread(level, (above, noises[0]), (fine, noises[1]))
            # At both ends of the range F is known.
            known = j[:, None] * size + edges
            width[(known == 0) | (known == self.bins)] = np.inf
            widths[place] = width
        ends = np.minimum(last * size, self.bins) - first * size
        gaps[np.arange(gaps.shape[1]) > ends[:, None]] = np.nan
        return Curve(gaps, widths, ends)


@dataclass(frozen=True, slots=True)
class Curve:
    """F~ - q·n~ at the edges of the bins of open stretches.

    Parameters
    ----------
    gaps, widths : arrays of float, shape (groups, edges)
        The curve and its half-width. Not a number beyond a group's last stretch and beyond the
        grid, so that nothing there passes a test.
    ends : array of int64, shape (groups,)
        How many bins the stretches of each group have.
    """

    gaps: Floats
    widths: Floats
    ends: Integers

    def read(self, q: float, row: int) -> tuple[Floats, Floats, Floats]:
        """Value, lower and upper end, in bins from the first open stretch on."""
        some, first, last = passing(self.gaps, self.widths, q, row)
        # Where noise lets no bin pass, the stretches stand.
        lower = np.where(some, first, 0).astype(float)
        upper = np.where(some, last, self.ends).astype(float)
        known = ~np.isnan(self.gaps)
        highest = self.gaps.max(axis=1, where=known, initial=-np.inf, keepdims=True)
        middle = crossing(np.where(known, self.gaps, highest), row * (0.5 - q))
        return np.clip(middle, lower, upper), lower, upper
