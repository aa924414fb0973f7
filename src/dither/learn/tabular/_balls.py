"""Sums of points in balls: how many there are, their mean and how far from its centre they lie.

Statistics. Each row belongs to one of k balls. Seen from its centre, and shortened to the radius,
it is a vector v of integers at most ``S`` long (`dither.learn._rows.cut`). In the part of its ball
it has S once, 2·v, and q = 2·‖v‖²/S - S, rounded down, which lies in [-S, S].

Sensitivity, squared. A row that is added or removed moves at most S² + 4·S² + S² = 6·S². One that
is replaced moves at most 12·S² where its ball changes. Where it stays, let a >= b be the lengths of
v and v' by S: 4·‖v - v'‖² + (q - q')² is at most

    4·S²·(a + b)² + (2·S·(a² - b²) + 1)²  <=  4·S²·(a + b)²·(1 + (a - b)²) + 4·S + 1,

and with s = a + b the factor s²·(1 + (a - b)²) is at most s²·(1 + min(s, 2 - s)²): below 2 for s
<= 1, and increasing from there to 4 at s = 2, as 1 - 2·(2 - s) + 2·(2 - s)² is above 0. So
16·S² + 4·S + 1 holds in both cases. In absolute value a vector of m numbers, r long, is at most
√m·r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.learn._noise import RunNoise, TableSensitivity
from dither.learn._rows import cut

__all__ = ["Balls", "ReleasedBalls"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReleasedBalls:
    """What left of k balls.

    Parameters
    ----------
    rows : array of float, shape (k,)
        How many, with noise: it may be below 0.
    sums : array of float, shape (k, d)
        Of the points about the centres, shortened to the radius.
    squares : array of float, shape (k,)
        Sums of their squared lengths.
    """

    rows: Floats
    sums: Floats
    squares: Floats


@dataclass(frozen=True)
class Balls:
    """The statistics of k balls in d dimensions.

    Parameters
    ----------
    size : int
        d.
    steps : int
        S.
    """

    size: int
    steps: int

    def moved(self, replace: bool) -> TableSensitivity:
        """How far a row moves them; see the module."""
        s, d = self.steps, self.size
        if not replace:
            # S of the count and S of q, and twice the root of d times S, rounded up.
            return TableSensitivity(2 * s + 2 * (math.isqrt(d * s * s - 1) + 1), 6 * s * s, d + 2)
        l1 = 2 * (2 * s + 2 * (math.isqrt(d * s * s - 1) + 1))
        return TableSensitivity(l1, 16 * s * s + 4 * s + 1, 2 * (d + 2))

    def statistic(
        self, points: Floats, places: Integers, centres: Floats, radius: float
    ) -> Integers:
        """The exact integers, shape (k, d + 2).

        Parameters
        ----------
        points : array of float, shape (n, d)
        places : array of int, shape (n,)
            The ball of each row.
        centres : array of float, shape (k, d)
        radius : float
        """
        s, k = self.steps, len(centres)
        rows = cut(points - centres[places], radius, s)
        found = np.zeros((k, self.size + 2), np.int64)
        squares = (rows**2).sum(axis=1)
        found[:, 0] = s * np.bincount(places, minlength=k)
        for j in range(self.size):
            # Exact in doubles: sums of integers below 2^53.
            found[:, 1 + j] = 2 * np.bincount(places, rows[:, j], k).astype(np.int64)
        q = 2 * squares // s - s
        found[:, -1] = np.bincount(places, q, k).astype(np.int64)
        return found

    def leave(self, noisy: RunNoise, *statistic: Any) -> ReleasedBalls:
        """The one step that touches rows; arguments as of `statistic`."""
        seen, radius = noisy.leave(self.statistic(*statistic)), statistic[-1]
        rows = seen[:, 0] / self.steps
        sums = seen[:, 1:-1] * (radius / (2 * self.steps))
        squares = (seen[:, -1] / self.steps + rows) / 2 * radius**2
        return ReleasedBalls(rows, sums, squares)

    def of_count(self, noisy: RunNoise) -> float:
        """The deviation of a count's noise, in rows."""
        return noisy.deviation / self.steps

    def of_sum(self, noisy: RunNoise, radius: float) -> float:
        """The deviation of the noise of one number of a sum."""
        return noisy.deviation * radius / (2 * self.steps)
