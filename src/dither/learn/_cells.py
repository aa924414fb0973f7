"""A coarse map of points: noisy counts of cells that are halved where there are many.

Statistics. A box is halved along its longest side, its halves again, and so on for a fixed number
of levels; of each level leave the numbers of rows in the halves of those cells whose own noisy
count was large. A row is in one cell of a level, or in none that is counted: added or removed it
moves one count of each level by 1, and replaced two.

What follows is made of the noisy counts alone: points with weights, and the k centres from which
they are nearest, taken greedily, each where it helps most (as k-means++ chooses them by chance),
then improved by Lloyd's steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.learn._noise import Moved, RunNoise

__all__ = ["HalvedCells", "nearest", "weighted_centres"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CLEAR = 2.0
_LLOYD = 30


@dataclass(frozen=True)
class HalvedCells:
    """Levels of halved cells.

    Parameters
    ----------
    weight : int
        What a row counts.
    levels : int
    """

    weight: int
    levels: int

    def moved(self, replace: bool) -> Moved:
        """How far a row moves the counts; see the module."""
        one = Moved(self.weight, self.weight**2, 1)
        return one * (2 * self.levels if replace else self.levels)

    def leave(self, noisy: RunNoise, points: Floats, reach: Floats) -> tuple[Floats, Floats]:
        """The one step that touches rows: middles of cells, shape (m, q), and their counts.

        Parameters
        ----------
        noisy : RunNoise
        points : array of float, shape (n, q)
            Beyond the box they lie in its cells at the end.
        reach : array of float, shape (q,)
            Half the sides of the box about 0.
        """
        low, high = -reach[None], reach[None]
        places = np.zeros(len(points), np.int64)
        held = np.full(1, np.inf)
        kept: list[tuple[Floats, Floats]] = []
        clear = _CLEAR * noisy.deviation / self.weight
        for _ in range(self.levels):
            axes = (high - low).argmax(axis=1)
            each = np.arange(len(axes))
            cuts = (low[each, axes] + high[each, axes]) / 2
            inside = places >= 0
            spot = places[inside]
            upper = points[inside, axes[spot]] >= cuts[spot]
            places[inside] = 2 * spot + upper
            counts = np.bincount(places[inside], minlength=2 * len(axes)).astype(np.int64)
            found = noisy.leave(self.weight * counts) / self.weight
            low, high = np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0)
            high[2 * each, axes] = cuts
            low[2 * each + 1, axes] = cuts
            # Halves that noise alone could be do not split; they keep what they seem to hold.
            split = found > 2 * clear
            rest = ~split & (found > clear)
            kept.append(((low[rest] + high[rest]) / 2, found[rest]))
            renamed = np.where(split, np.cumsum(split) - 1, -1)
            places[inside] = renamed[places[inside]]
            low, high, held = low[split], high[split], found[split]
            if not len(low):
                break
        kept.append(((low + high) / 2, held[: len(low)]))
        return np.concatenate([m for m, _ in kept]), np.concatenate([w for _, w in kept])


def nearest(points: Floats, centres: Floats) -> tuple[Integers, Floats]:
    """The nearest centre of each point, and the squared distance; row by row the same."""
    best = np.full(len(points), np.inf)
    found = np.zeros(len(points), np.int64)
    for j, centre in enumerate(centres):
        away = np.zeros(len(points))
        for column, at in zip(points.T, centre.tolist(), strict=True):
            away = away + (column - at) ** 2
        nearer = away < best
        best[nearer], found[nearer] = away[nearer], j
    return found, best


def weighted_centres(points: Floats, weights: Floats, k: int) -> tuple[Floats, float]:
    """k centres of weighted points, and the weighted mean of squared distances from them."""
    if not len(points):
        points, weights = np.zeros((1, points.shape[1])), np.ones(1)
    apart = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    best = np.full(len(points), np.inf)
    chosen: list[int] = []
    for _ in range(k):
        costs = np.minimum(best[:, None], apart).T @ weights
        chosen.append(int(costs.argmin()))
        best = np.minimum(best, apart[chosen[-1]])
    centres = points[chosen]
    for _ in range(_LLOYD):
        place, best = nearest(points, centres)
        held = np.bincount(place, weights, k)
        for j in np.flatnonzero(held > 0):
            mine = place == j
            centres[j] = weights[mine] @ points[mine] / held[j]
    return centres, float(weights @ best / weights.sum())
