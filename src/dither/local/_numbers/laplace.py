"""The Laplace mechanism on the lattice: noise as wide as the interval, the others' baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither.local._channel import Codes
from dither.local._coins import exp_bounds
from dither.local._guarantee import Guarantee
from dither.local._numbers.linear import BinnedLaw, DenseMatrix, point_bins, report_bins
from dither.local._numbers.numeric import (
    MAX_OUTPUTS,
    NumericChannel,
    NumericLaw,
    too_many_positions,
)
from dither.noise import MAX_SCALE, discrete_laplace
from dither.numeric import Words

Array = npt.NDArray[np.float64]

# Noise goes further with a chance of e^-16, a ten-millionth.
_SCALES = 16


@dataclass(frozen=True)
class LaplaceLaw(NumericLaw):
    """Two-sided geometric noise of `scale` steps on the points 0..steps, clamped `reach` beyond
    both ends.
    """

    steps: int
    reach: int
    scale: Fraction

    @property
    def ratio(self) -> Fraction:
        """r, to 2**-180: the rational that `exact` uses."""
        return 1 / exp_bounds(1 / self.scale)[0]

    @property
    def outputs(self) -> int:  # type: ignore[override]
        """Positions of the report."""
        return self.steps + 2 * self.reach + 1

    def breaks(self) -> Codes:
        """One bin per point; beyond either end all rows fall alike: one bin with the end."""
        return np.append(0, self.reach + np.arange(1, self.steps + 1))

    def compiled(self, edges: Codes) -> LaplaceProducts:
        """The products for these breaks; `forward` and `back` are for single positions."""
        return LaplaceProducts(self)

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[y | x]; the end positions hold all that is clamped to them."""
        r, k = self.ratio, abs(y - self.reach - x)
        if y in (0, self.outputs - 1):
            return r**k / (1 + r)
        return (1 - r) / (1 + r) * r**k

    def draw(self, codes: Codes, words: Words) -> Codes:
        """Noise, then the clamp."""
        noisy = codes + discrete_laplace(self.scale, codes.size, words=words) + self.reach
        return np.asarray(np.clip(noisy, 0, self.outputs - 1), dtype=np.int64)

    def below(self, points: Codes, edges: Codes) -> Array:
        """Pr[report < edge | point], shape (points, edges)."""
        k = edges[None, :] - self.reach - points[:, None]
        rate, top = -1 / float(self.scale), 1 + math.exp(-1 / float(self.scale))
        found = np.where(
            k <= 0,
            np.exp(np.minimum(rate * (1 - k), 0.0)) / top,
            1 - np.exp(np.minimum(rate * k, 0.0)) / top,
        )
        return np.where(edges <= 0, 0.0, np.where(edges >= self.outputs, 1.0, found))

    def row(self, x: int) -> Array:
        """Chances of all reports of a point."""
        k = np.abs(np.arange(self.outputs) - self.reach - x)
        r = math.exp(-1 / float(self.scale))
        found = -math.expm1(-1 / float(self.scale)) / (1 + r) * np.exp(-k / float(self.scale))
        for end in (0, -1):
            found[end] = math.exp(-k[end] / float(self.scale)) / (1 + r)
        return found

    def forward(self, f: Array) -> Array:
        """Shares of the reports: running sums within the interval, one power per step outside."""
        inside, outside = LaplaceProducts(self), self._outside()
        return np.concatenate(
            (
                outside[::-1] * float(f @ inside.powers),
                inside.middle * inside.sums(f),
                outside * float(f @ inside.powers[::-1]),
            )
        )

    def back(self, weights: Array) -> Array:
        """E[weights[report] | point], by the same sums."""
        inside, outside = LaplaceProducts(self), self._outside()
        below, within, above = np.split(weights, [self.reach, self.outputs - self.reach])
        found = inside.middle * inside.sums(within)
        found += float(outside @ below[::-1]) * inside.powers
        return np.asarray(found + float(outside @ above) * inside.powers[::-1])

    def _outside(self) -> Array:
        """Chances of the positions beyond an end, from the end outwards, of the point at it."""
        rate = 1 / float(self.scale)
        found = np.exp(-rate * np.arange(1.0, self.reach + 1)) / (1 + math.exp(-rate))
        # The outermost position holds all that is clamped to it, a whole tail.
        found[:-1] *= -math.expm1(-rate)
        return np.asarray(found)


class LaplaceProducts:
    """f @ matrix and matrix @ w with all reports at or beyond either end in one bin each.

    From an end outwards every row falls by the same r a step, so how far out a report lies carries
    no information. Within, sums of f·r^|i-j| are two running sums, of f/r^i and f·r^i; as r^-N =
    e^epsilon neither overflows, and as all terms are positive nothing cancels.
    """

    def __init__(self, law: LaplaceLaw) -> None:
        rate = 1 / float(law.scale)
        self.powers = np.exp(-rate * np.arange(law.steps + 1))
        self.middle = -math.expm1(-rate) / (1 + math.exp(-rate))
        self.end = 1 / (1 + math.exp(-rate))

    def sums(self, f: Array) -> Array:
        """Sums of f·r^|i-j| over the points."""
        below = self.powers * np.cumsum(f / self.powers)
        above = np.cumsum((f * self.powers)[::-1])[::-1] / self.powers
        return np.asarray(below + above - f)

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports, one per point."""
        found = self.middle * self.sums(f)
        found[0] = self.end * (f @ self.powers)
        found[-1] = self.end * (f @ self.powers[::-1])
        return found

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | point]."""
        inner = weights.copy()
        inner[[0, -1]] = 0.0
        ends = weights[0] * self.powers + weights[-1] * self.powers[::-1]
        return np.asarray(self.middle * self.sums(inner) + self.end * ends)


@dataclass(frozen=True, init=False)
class LatticeLaplace(NumericChannel):
    """Discrete Laplace noise on the lattice.

    Parameters
    ----------
    interval : Interval
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is not an `Interval`, or `epsilon` is out of range.

    Notes
    -----
    Law. The point's number i, plus discrete Laplace noise of scale N/epsilon steps (chance of k
    proportional to r^|k|, r = e^{-epsilon/N}), clamped to R steps beyond either end, R = 16 scales.

    Guarantee. epsilon-local DP: neighbours are any two numbers of one person within the interval;
    two points are at most N steps apart, and clamping is post-processing. It rests on the sampler
    of `dither.noise`, which is within 2**-142 of its law in total variation.

    Error. Given the value, the variance is 2r/(1 - r)² steps², about 2(N/epsilon)²; the clamp moves
    the expectation by at most r^{R+1}/(1 - r²) steps, less than 5e-8 of a standard deviation.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, TCC 2006; Ghosh, Roughgarden and Sundararajan, STOC 2009.

    Examples
    --------
    >>> from dither import local
    >>> channel = LatticeLaplace(local.Interval(0, 1, steps=8), epsilon=2)
    >>> channel.outputs, float(channel.bias_bound) < 1e-6
    (137, True)
    """

    kind: ClassVar[str] = "laplace"

    @cached_property
    def law(self) -> LaplaceLaw:
        """Noise of N/epsilon steps, clamped 16 scales beyond either end."""
        steps, scale = self.interval.steps, self.interval.steps / self.epsilon
        reach = math.ceil(_SCALES * scale)
        if scale > MAX_SCALE or steps + 2 * reach >= MAX_OUTPUTS:
            raise too_many_positions()
        return LaplaceLaw(steps, reach, scale)

    @property
    def positions(self) -> Array:
        """Values of the reports."""
        return self.interval.at(np.arange(self.outputs) - self.law.reach)

    @property
    def bias_bound(self) -> Fraction:
        """How far the clamp may move the expectation of a report, in the interval's unit."""
        r = self.law.ratio
        return self.interval.step * r ** (self.law.reach + 1) / (1 - r * r)

    def moments(self) -> tuple[Array, Array]:
        """The points, and 2r/(1 - r)² steps² for each, as if nothing were clamped."""
        rate = 1 / float(self.law.scale)
        variance = float(self.interval.step) ** 2 / (2 * math.sinh(rate / 2) ** 2)
        points = self.interval.points
        return points, np.full(points.size, variance)

    @property
    def guarantee(self) -> Guarantee:
        """epsilon-local DP."""
        return Guarantee.uniform(
            self.epsilon,
            assumes="the noise is the discrete Laplace law; it is drawn within 2**-142 of it",
        )

    def linear(self, bins: int | None, outputs: int | str | None) -> BinnedLaw | DenseMatrix:
        """The law between bins; by default, all beyond either end is one bin, at no loss."""
        if outputs is None:
            return super().linear(bins, outputs)
        starts, points = point_bins(self, bins), self.interval.steps + 1
        edges = report_bins(self, outputs, starts)
        below = self.law.below(np.arange(points), np.append(edges, self.outputs))
        sizes = np.diff(np.append(starts, points))
        matrix = np.add.reduceat(np.diff(below, axis=1), starts, axis=0) / sizes[:, None]
        return DenseMatrix(matrix, edges, self.outputs)
