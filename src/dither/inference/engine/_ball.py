"""Rows in a ball: the sum of what lies within, and what the ball takes from their mean.

Release. Rows y, in radii from the centre, are moved along their ray into ‖y‖ <= 1, and Σ y and
k·Σ (‖y‖² - 1/2) leave. Under REPLACE, with D = ‖y - y'‖, |‖y‖² - ‖y'‖²| <= D·‖y + y'‖ and
‖y + y'‖² <= 4 - D², so that

    l2² = max D² + k²·D²·(4 - D²) = 4   for k <= 1/2,   as (4 - D²)·(k²·D² - 1) <= 0,

and l1 <= 2·√d + k. Under ADD_REMOVE l2² = 1 + k²/4 + c², l1 <= √d + k/2 + c, for k <= 1. The spread
of the rows costs nothing.

Model. Rows are normal around their mean with the same spread in every direction. Then what the ball
takes from the mean is a factor, that of a law of two numbers: the coordinate along the mean, and
the norm of the others. Sums of many rows are normal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._errors import closest
from dither.inference.engine._inputs import Floats, Target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    exact_sum_of_squares,
    gaussian_is_better,
    noise_of_either,
    rows_of,
    seen_at_best,
    spread_of,
    squared_lengths,
)
from dither.inference.engine._simulation import SimulatedDraws
from dither.mechanisms import Gaussian
from dither.numeric import sqrt_upper
from dither.privacy import Loss, Neighbours

__all__ = ["BallModel", "BallRelease"]


@dataclass(frozen=True)
class BallRelease:
    """Layer 1 of a ball: the sum of rows within it, and of their squared norms.

    Parameters
    ----------
    dimension : int
    asked : Target
    share : Fraction
        What part of a Gaussian's budget (one over its squared multiplier) this ball has; below 1
        the noise is Gaussian.
    """

    dimension: int
    asked: Target
    share: Fraction = Fraction(1)
    gaussian: bool | None = None
    square: Fraction = field(default=Fraction(1, 2), init=False)
    count: Fraction = field(default=Fraction(1, 2), init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    steps = 1 << 20

    def __post_init__(self) -> None:
        d, asked, k, c = self.dimension, self.asked, self.square, self.count
        root = sqrt_upper(Fraction(d))
        if asked.replace:
            l1, l2_squared = 2 * root + k, Fraction(4)
        else:
            l1, l2_squared = root + k / 2 + c, 1 + k**2 / 4 + c**2
        gaussian = self.gaussian
        if gaussian is None:
            gaussian = self.share < 1 or gaussian_is_better(
                asked, l1=float(l1), l2=math.sqrt(l2_squared)
            )
        size = d + 1 + int(not asked.replace)
        noise, loss = noise_of_either(
            gaussian,
            asked=asked,
            dimension=size,
            l1=l1,
            l2_squared=l2_squared,
        )
        if self.share < 1:
            assert isinstance(noise, Gaussian)
            l2 = sqrt_upper(l2_squared) if l2_squared != 4 else Fraction(2)
            # A share of one over the squared multiplier is as much more variance.
            noise = Gaussian(noise.sigma2 / self.share, noise.step)
            loss = noise.loss(l2=l2, dimension=size, neighbours=asked.neighbours)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def stretch(self) -> float:
        """By how much a lattice radius is larger than the ball: room for rounding each number."""
        return self.steps / (self.steps - math.sqrt(self.dimension))

    # No row is so long that something is said of it.
    @np.errstate(over="ignore", invalid="ignore")
    def points(self, rows: Floats, centre: Floats, radius: float) -> npt.NDArray[np.int64]:
        """Rows on the lattice, each of norm at most ``steps``; what is missing lies at the centre.

        Rounding moves a row by at most √d/2, and the ball is √d within the steps: whatever doubles
        lose on the way is far less than the other half. A row that were outside would count as 0.
        """
        off = (rows - centre) / radius
        off[np.isnan(off).any(axis=1)] = 0.0
        largest = np.abs(off).max(axis=1, keepdims=True, initial=1.0)
        endless = np.isinf(largest)[:, 0]
        off[endless] = np.where(np.isinf(off[endless]), np.sign(off[endless]), 0.0)
        largest[endless] = 1.0
        part = off / largest
        # Of parts of the largest coordinate, whose squares stay within the doubles.
        norm = np.sqrt(squared_lengths(part))[:, None] * largest
        scale = (self.steps - math.sqrt(self.dimension)) / np.maximum(norm, 1.0)
        found = np.rint(part * np.minimum(largest * scale, self.steps)).astype(np.int64)
        beyond = ((found > self.steps) | (found < -self.steps)).any(axis=1)
        found[beyond | (np.einsum("ij,ij->i", found, found) > self.steps**2)] = 0
        return np.asarray(found)

    def statistic(self, points: npt.NDArray[np.int64]) -> tuple[Fraction, ...]:
        """The exact vector of rows on the lattice."""
        sums = points.sum(axis=0).tolist()
        squares = sum(exact_sum_of_squares(np.ascontiguousarray(column)) for column in points.T)
        found = [Fraction(total, self.steps) for total in sums]
        found.append(self.square * (Fraction(squares, self.steps**2) - Fraction(len(points), 2)))
        if not self.asked.replace:
            found.append(self.count * len(points))
        return tuple(found)

    def release(self, rows: Floats, centre: Floats, radius: float) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        if not self.asked.replace:
            rows = rows[~np.isnan(rows).any(axis=1)]
        exact = self.statistic(self.points(rows, centre, radius))
        return NoisyStatistic(self.noise.release(exact), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(3, Target(Fraction(1), delta, Neighbours.REPLACE), gaussian=True)
        low, high = (design.points(np.full((1, 3), x), np.zeros(3), 1.0) for x in (-9.0, 9.0))
        seen = seen_at_best(design, low, high)
        yield Subject("means in a ball", seen, low, high, delta=delta)


@dataclass(frozen=True, eq=False)
class BallModel:
    """Layers 2 and 3 of a ball, in its radii from its centre.

    Parameters
    ----------
    design : BallRelease
    released : array of float
    rows : int or None
        The public n, or None where it was measured.

    Attributes
    ----------
    mean : array of float, shape (d,)
        What the ball takes from it given back.
    n, spread, shrink : float
        Rows; the deviation of each coordinate; the factor of the ball.
    """

    design: BallRelease
    released: Floats
    rows: int | None
    n: float = field(init=False)
    mean: Floats = field(init=False)
    spread: float = field(init=False)
    shrink: float = field(init=False)

    def __post_init__(self) -> None:
        d, k = self.design.dimension, float(self.design.square)
        n = rows_of(self.released, self.design.count, self.rows)
        seen = self.released[:d] / n
        square = min(1.0, max(0.0, float(self.released[d]) / (k * n) + 0.5))
        noise = spread_of(self.design.noise).deviation / n
        # Noise adds its variance in every direction to the squared length, on average.
        length = math.sqrt(max(0.0, float(seen @ seen) - d * noise**2))
        # Noise may make it negative: a start for the search.
        across = max(1e-6, (square - length**2) / d)
        # At 1 no spread at all would be left, and the search could not move.
        along, spread = self._solved(min(length, 0.99), math.sqrt(across), square)
        shrink = max(0.05, self._expected(along, spread)[0] / along)
        values = {"n": n, "mean": seen / shrink, "spread": spread, "shrink": shrink}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _expected(self, along: float, spread: float) -> Floats:
        """E of the coordinate along the mean and of the squared norm, within the ball."""
        # The same draws at every point, so that the search sees a smooth function.
        rng, d = SimulatedDraws.of(None), self.design.dimension
        first = along + spread * rng.standard_normal(8192)
        # Each draw with its mirror image, so that small means keep their sign.
        first = np.concatenate([first, 2 * along - first])
        others = spread**2 * rng.chisquare(d - 1, 8192) if d > 1 else np.zeros(8192)
        square = first**2 + np.concatenate([others, others])
        kept = 1.0 / np.sqrt(np.maximum(square, 1.0))
        return np.array([np.mean(first * kept), np.mean(square * kept**2)])

    def _solved(self, length: float, spread: float, square: float) -> tuple[float, float]:
        wanted = np.array([max(length, 1e-3), square])

        def off(point: Floats) -> Floats:
            return np.asarray(self._expected(float(point[0]), math.exp(float(point[1]))) - wanted)

        start = np.array([wanted[0], math.log(spread)])
        found = closest(off, start, np.array([1e-3, -9.0]), np.array([2.0, 1.0]))
        return float(found[0]), math.exp(float(found[1]))

    def simulate(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Layer 2: errors of the mean with noise and without, shape (size, d) each."""
        d = self.design.dimension
        shown = float(self.mean @ self.mean) * self.shrink**2
        along = math.sqrt(float(self.mean @ self.mean))
        square = self._expected(max(1e-3, along), self.spread)[1]
        # A variance that noise made negative; its root is next to nothing.
        deviation = math.sqrt(max(1e-12, (square - shown) / d) / self.n)
        sampling = rng.standard_normal((size, d)) * deviation
        noise = spread_of(self.design.noise)
        noisy = sampling + noise.draw(rng, (size, d)) / self.n
        if self.rows is None:
            rows = noise.draw(rng, (size, 1)) / float(self.design.count) / self.n
            noisy = noisy - self.mean * self.shrink * rows
        return noisy / self.shrink, sampling / self.shrink
