"""A coarse map of points: noisy counts of cells that are halved where there are many.

Statistics. A box is halved along its longest side, its halves again, and so on for a fixed number
of levels; of each level leave the numbers of rows in the halves of those cells whose own noisy
count was large. A row is in one cell of a level, or in none that is counted: added or removed it
moves one count of each level by 1, and replaced two.

What follows is made of the noisy counts alone: points with weights, each where the rows of a normal
law would lie in its cell, or in halves of it where cells are few beside k; and the k centres from
which they are nearest, taken greedily, each where it helps most (as k-means++ chooses them by
chance), then improved by Lloyd's steps, and by moving one at a time to where it helps more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.learn._noise import RunNoise, TableSensitivity

__all__ = ["HalvedCells", "nearest", "spread_out", "weighted_centres"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_CLEAR = 2.0
_LLOYD = 30
_SWAPS = 10


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

    def moved(self, replace: bool) -> TableSensitivity:
        """How far a row moves the counts; see the module."""
        one = TableSensitivity(self.weight, self.weight**2, 1)
        return one * (2 * self.levels if replace else self.levels)

    def least(self, noisy: RunNoise) -> float:
        """How many rows a cell must seem to hold to be halved."""
        return 2 * _CLEAR * noisy.deviation / self.weight

    def leave(
        self, noisy: RunNoise, points: Floats, reach: Floats, deviations: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The one step that touches rows: ends of cells, each of shape (m, q), and their counts.

        Parameters
        ----------
        noisy : RunNoise
        points : array of float, shape (n, q)
            Beyond the box they lie in its cells at the end.
        reach : array of float, shape (q,)
            Half the sides of the box about 0.
        deviations : array of float, shape (q,)
            Of rows about 0, as what left before tells them.
        """
        low, high = -reach[None], reach[None]
        places = np.zeros(len(points), np.int64)
        held = np.full(1, np.inf)
        kept: list[tuple[Floats, Floats, Floats]] = []
        least = self.least(noisy)
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
            split = found > least
            rest = ~split & (found > least / 2)
            kept.append((low[rest], high[rest], found[rest]))
            renamed = np.where(split, np.cumsum(split) - 1, -1)
            places[inside] = renamed[places[inside]]
            low, high, held = low[split], high[split], found[split]
            if not len(low):
                break
        kept.append((low, high, held[: len(low)]))
        low, high, held = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return low, high, held


def spread_out(
    low: Floats, high: Floats, weights: Floats, reach: Floats, deviations: Floats, most: int
) -> tuple[Floats, Floats]:
    """Points of cells, shape (m, q), and their weights: several of a cell where cells are few.

    Rows within a cell are taken to lie as those of a normal law about 0. Nothing is read of them.

    Parameters
    ----------
    low, high : array of float, shape (c, q)
    weights : array of float, shape (c,)
    reach, deviations : array of float, shape (q,)
        As of `HalvedCells.leave`.
    most : int
        Cells are halved while they are fewer; the one that would be the largest sum of squares.
    """
    if not len(low):
        low, high, weights = -reach[None], reach[None], np.ones(1)
    parts = list(zip(low, high, weights.tolist(), strict=True))
    sizes = [weight * float(((b - a) ** 2).max()) for a, b, weight in parts]
    while len(parts) < most:
        at = int(np.argmax(sizes))
        first, last, weight = parts[at]
        axis = int((last - first).argmax())
        left, right = last.copy(), first.copy()
        left[axis] = right[axis] = (first[axis] + last[axis]) / 2
        halves = [(first, left), (right, last)]
        masses = [_mass(a[axis], b[axis], reach[axis], deviations[axis]) for a, b in halves]
        total = max(sum(masses), 1e-300)
        made = [(a, b, weight * m / total) for (a, b), m in zip(halves, masses, strict=True)]
        grown = [w * float(((b - a) ** 2).max()) for a, b, w in made]
        parts[at], sizes[at] = made[0], grown[0]
        parts.append(made[1])
        sizes.append(grown[1])
    low, high = np.stack([a for a, _, _ in parts]), np.stack([b for _, b, _ in parts])
    return _typical(low, high, reach, deviations), np.array([w for _, _, w in parts])


def _mass(first: float, last: float, reach: float, deviation: float) -> float:
    """The chance of an interval, whose ends at the reach stand for all beyond."""
    low = -1.0 if first <= -reach else math.erf(first / deviation / math.sqrt(2))
    high = 1.0 if last >= reach else math.erf(last / deviation / math.sqrt(2))
    # Above 0, so that a weight can be divided by it where no normal law has anything.
    return max(high - low, 1e-12)


def _typical(low: Floats, high: Floats, reach: Floats, deviations: Floats) -> Floats:
    """Where rows of cells lie in the mean, were they of a normal law about 0."""
    first = np.where(low <= -reach, -np.inf, low / deviations)
    last = np.where(high >= reach, np.inf, high / deviations)
    inside = _erf(last / math.sqrt(2)) - _erf(first / math.sqrt(2))
    slope = np.exp(-(first**2) / 2) - np.exp(-(last**2) / 2)
    found = deviations * math.sqrt(2 / math.pi) * slope / np.maximum(inside, 1e-300)
    return np.clip(np.where(inside > 1e-9, found, (low + high) / 2), low, high)


def _erf(values: Floats) -> Floats:
    return np.array([math.erf(x) for x in values.ravel().tolist()]).reshape(values.shape)


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
    apart = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    best = np.full(len(points), np.inf)
    chosen: list[int] = []
    for _ in range(k):
        costs = np.minimum(best[:, None], apart).T @ weights
        chosen.append(int(costs.argmin()))
        best = np.minimum(best, apart[chosen[-1]])
    centres, cost = _settled(points, weights, points[chosen])
    for _ in range(_SWAPS if 1 < k < len(points) else 0):
        moved, less = _swapped(points, weights, apart, centres)
        if less >= cost * (1 - 1e-3):
            break
        centres, cost = moved, less
    return centres, cost


def _swapped(
    points: Floats, weights: Floats, apart: Floats, centres: Floats
) -> tuple[Floats, float]:
    """Centres of which one moved to another point, the best such move, and their cost."""
    away = ((points[:, None, :] - centres[None]) ** 2).sum(axis=2)
    mine, ranked = away.argmin(axis=1), np.sort(away, axis=1)
    moves = []
    for j in range(len(centres)):
        others = np.where(mine == j, ranked[:, 1], ranked[:, 0])
        costs = np.minimum(others[:, None], apart).T @ weights
        moves.append((float(costs.min()), j, int(costs.argmin())))
    _, j, place = min(moves)
    moved = centres.copy()
    moved[j] = points[place]
    return _settled(points, weights, moved)


def _settled(points: Floats, weights: Floats, centres: Floats) -> tuple[Floats, float]:
    """After Lloyd's steps, and the weighted mean of squared distances."""
    centres, k = centres.copy(), len(centres)
    for _ in range(_LLOYD):
        place, best = nearest(points, centres)
        held = np.bincount(place, weights, k)
        for j in np.flatnonzero(held > 0):
            mine = place == j
            centres[j] = weights[mine] @ points[mine] / held[j]
    return centres, float(weights @ best / weights.sum())
