"""Layers 2 and 3 of a description: what a released vector says of each column, with its errors.

A column is read in each group, and in all of them together, whose sums are those of the groups.

*Means.* `FreeMeans`: draws m* that invert tests of S - m·N.

*Standard deviations.* Σ (t - mean)² of n rows has about the relative variance (κ - 1)/n + 2/n²,
κ = n·Σ (t - m)⁴/(Σ (t - m)²)². Each draw takes q* and κ* from sums from which fresh noise is
taken, brought where they may be, and s* = √(q*/(n* - 1))·exp(Z·√v*/2): on the scale of logarithms,
where s has no end.

*Quantiles.* `QuantileModel`: tests of every edge of a tree of bins.

*Shares.* Of y of n rows, both with fresh noise taken away and brought between 0 and n, a draw is of
Beta(y, n - y + 1) or of Beta(y + 1, n - y), as likely: the two laws whose quantiles are the ends
of Clopper and Pearson's interval, so that it lies between theirs and Jeffreys'.

*Standardised differences* from the first group: of numbers (m_g - m_1)/√((s_g² + s_1²)/2), of a
level (p_g - p_1)/√((p_g·(1 - p_g) + p_1·(1 - p_1))/2), with draws of all four.

Source. Austin, "Balance diagnostics for comparing the distribution of baseline covariates",
Statistics in Medicine 2009, for standardised differences; Brown, Cai and DasGupta, "Interval
estimation for a binomial proportion", Statistical Science 2001, for intervals of shares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._quantiles import QuantileModel
from dither.mechanisms import QuantileTree

__all__ = ["CategoryReading", "NumberReading", "TruthDraws", "Uncertain", "with_all"]

Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Simulated noise of entries of the released vector."""

QUARTILES = (0.25, 0.5, 0.75)

_LEAST = 1e-4
"""Squared half-ranges: no variance is taken to be smaller, as in `FreeMeans`."""


@dataclass(frozen=True, eq=False)
class TruthDraws:
    """An estimate, and draws of what the truth may be.

    Parameters
    ----------
    at : float
    draws : array of float, shape (B,)
    """

    at: float
    draws: Floats

    def interval(self, outside: float) -> tuple[float, float]:
        """The ends beyond which a half of ``outside`` lies on either side."""
        low, high = np.quantile(self.draws, [outside / 2, 1 - outside / 2], method="weibull")
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class RankDraws:
    """A quantile of a model, with the interval of its tests of edges."""

    at: float
    model: QuantileModel
    place: int
    draws_of: Callable[[], object]

    def interval(self, outside: float) -> tuple[float, float]:
        """The bins that hold it."""
        ends = self.draws_of().interval(1.0 - outside)  # type: ignore[attr-defined]
        return float(ends[self.place, 0]), float(ends[self.place, 1])


Uncertain = TruthDraws | RankDraws


def with_all(each: Floats) -> Floats:
    """What groups have, shape (..., groups, k), and below it what all have together.

    Examples
    --------
    >>> with_all(np.array([[1.0], [2.0]])).tolist(), with_all(np.array([[1.0]])).tolist()
    ([[1.0], [2.0], [3.0]], [[1.0]])
    """
    if each.shape[-2] == 1:
        return each
    return np.concatenate([each, each.sum(axis=-2, keepdims=True)], axis=-2)


@dataclass(frozen=True, eq=False)
class NumberReading:
    """One number in each group and in all.

    Parameters
    ----------
    powers : array of float, shape (groups, 5)
        n to Σ t⁴, as released.
    noise : callable
        Of a generator and a size, the noise of these, shape (size, groups, 5).
    middle, half : float
        Of the bounds.
    tree : QuantileTree
    levels : sequence of array of float
        Noisy counts, in rows.
    node : Noise
        Simulated noise of one of them, in rows.
    deviation : float
        Of that noise.
    edges : array of float, shape (bins + 1,)
    trim : float
        How far inside an edge the nearest number lies that can occur.
    size : int
        Draws.
    """

    powers: Floats
    noise: Callable[[np.random.Generator, int], Floats]
    middle: float
    half: float
    tree: QuantileTree
    levels: Sequence[Floats]
    node: Noise
    deviation: float
    edges: Floats
    trim: float
    size: int

    @cached_property
    def sums(self) -> Floats:
        """n to Σ t⁴ of groups, and of all."""
        return with_all(self.powers)

    @property
    def n(self) -> Floats:
        """How many have it, at least 1."""
        return np.maximum(self.sums[:, 0], 1.0)

    @cached_property
    def free(self) -> FreeMeans:
        """The means, in half-ranges."""
        return FreeMeans(self.sums[:, :3], self._noise_with_all)

    def _noise_with_all(self, rng: np.random.Generator, size: int) -> Floats:
        return with_all(self.noise(rng, size))[..., :3]

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Draws of means and of deviations in half-ranges, shape (size, groups + 1)."""
        rng = SimulatedDraws.of(None)
        means = self.free.draws(rng, self.size)
        return np.clip(means, -1.0, 1.0), self._spread(rng)

    def _spread(self, rng: np.random.Generator) -> Floats:
        """Draws of deviations: of sums from which noise is taken, each brought where it may be.

        So where the noise hides a deviation some draws are of none, others of the largest one.
        """
        n = np.maximum(np.rint(self.n), 1.0)
        left = self.sums - with_all(self.noise(rng, self.size))
        rows = np.maximum(left[..., 0], 2.0)
        m = np.clip(left[..., 1] / rows, -1.0, 1.0)
        fourth = left[..., 4] - 4 * m * left[..., 3] + 6 * m**2 * left[..., 2] - 3 * m**4 * rows
        second = np.clip(left[..., 2] - m**2 * rows, _LEAST * rows, None)
        second = np.minimum(second, np.maximum((1.0 - m**2) * rows, _LEAST * rows))
        # κ is at least 1, and with |t - m| <= 1 + |m| at most (1 + |m|)²·n/Σ (t - m)².
        most = np.maximum((1 + np.abs(m)) ** 2 * rows / second, 1.0)
        kurtosis = np.clip(rows * fourth / second**2, 1.0, most)
        # By e² at most either way: with that, few rows say nothing.
        relative = np.minimum((kurtosis - 1.0) / n + 2.0 / np.maximum(n * (n - 1.0), 1.0), 4.0)
        unit = rng.standard_normal(second.shape)
        # Where nothing but the least is left, the truth may be none at all.
        square = np.where(second <= _LEAST * rows, 0.0, second)
        found = np.sqrt(square / (rows - 1.0)) * np.exp(unit * np.sqrt(relative) / 2.0)
        # Of fewer than two rows nothing is known: each end is as likely.
        ends = rng.integers(0, 2, second.shape).astype(float)
        return np.where(left[..., 0] < 2.0, ends, np.minimum(found, 1.0))

    @cached_property
    def _at(self) -> tuple[Floats, Floats]:
        """Means and deviations as they were released, in half-ranges."""
        n, m = self.n, self.free.clipped
        square = np.clip(self.sums[:, 2] - m**2 * n, _LEAST * n, n)
        return m, np.minimum(np.sqrt(square / np.maximum(n - 1.0, 1.0)), 1.0)

    def mean(self, group: int) -> TruthDraws:
        """The mean of clamped values."""
        at, draws = float(self._at[0][group]), self._moments[0][:, group]
        return TruthDraws(at * self.half + self.middle, draws * self.half + self.middle)

    def deviation_of(self, group: int) -> TruthDraws:
        """The standard deviation of clamped values."""
        at, draws = float(self._at[1][group]), self._moments[1][:, group]
        return TruthDraws(at * self.half, draws * self.half)

    def difference(self, group: int) -> TruthDraws:
        """Standardised, from the first group."""
        (m, s), (means, spreads) = self._at, self._moments
        at = (m[group] - m[0]) / math.sqrt((s[group] ** 2 + s[0] ** 2) / 2)
        scale = np.sqrt((spreads[:, group] ** 2 + spreads[:, 0] ** 2) / 2)
        return TruthDraws(
            float(at), (means[:, group] - means[:, 0]) / np.maximum(scale, math.sqrt(_LEAST))
        )

    @cached_property
    def _ranks(self) -> list[tuple[QuantileModel, _Once]]:
        levels = [with_all(level) for level in self.levels]
        below = self.tree.cumulative(levels)
        groups = len(self.levels[0])
        found = []
        for place, counted in enumerate(below):
            together = groups if place == groups else 1
            model = QuantileModel(
                self.tree,
                partial(_summed, self.node, together),
                self.deviation * math.sqrt(together),
                self.edges,
                counted,
                QUARTILES,
                trim=self.trim,
            )
            found.append((model, _Once(model, self.size)))
        return found

    def quantile(self, group: int, place: int) -> RankDraws:
        """One of the quartiles."""
        model, errors = self._ranks[group]
        return RankDraws(float(model.middle[place]), model, place, errors)


def _summed(node: Noise, times: int, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.asarray(sum(node(rng, shape) for _ in range(times)))


@dataclass(frozen=True, eq=False)
class _Once:
    """The errors of a model, simulated when they are first asked for."""

    model: QuantileModel
    size: int

    @cached_property
    def _held(self) -> object:
        return self.model.errors(SimulatedDraws.of(None), self.size)

    def __call__(self) -> object:
        return self._held


@dataclass(frozen=True, eq=False)
class CategoryReading:
    """One category in each group and in all.

    Parameters
    ----------
    table : array of float, shape (groups, levels)
        As released.
    noise : callable
        Of a generator and a size, its noise, shape (size, groups, levels).
    size : int
        Draws.
    """

    table: Floats
    noise: Callable[[np.random.Generator, int], Floats]
    size: int

    @cached_property
    def counts(self) -> Floats:
        """Of groups, and of all."""
        return with_all(self.table)

    @cached_property
    def _noise(self) -> Floats:
        return with_all(self.noise(SimulatedDraws.of(None), self.size))

    @cached_property
    def _shares(self) -> Floats:
        """Draws, shape (size, groups + 1, levels)."""
        rng = SimulatedDraws.of(None)
        left = self.counts - self._noise
        rows = np.maximum(left.sum(axis=-1, keepdims=True), 1.0)
        yes = np.clip(left, 0.0, rows)
        more = rng.integers(0, 2, yes.shape)
        first, second = yes + more, rows - yes + 1 - more
        # A law needs numbers above 0; where one is not, what is drawn is not looked at.
        drawn = rng.beta(np.where(first > 0, first, 1.0), np.where(second > 0, second, 1.0))
        return np.asarray(np.where(first <= 0, 0.0, np.where(second <= 0, 1.0, drawn)))

    @cached_property
    def _at(self) -> Floats:
        rows = np.maximum(self.counts.sum(axis=-1, keepdims=True), 1.0)
        return np.asarray(np.clip(self.counts / rows, 0.0, 1.0))

    def count(self, group: int, level: int) -> TruthDraws:
        """How many rows have a level; its interval is about the noise."""
        at = float(self.counts[group, level])
        return TruthDraws(max(0.0, at), np.maximum(at - self._noise[:, group, level], 0.0))

    def share(self, group: int, level: int) -> TruthDraws:
        """The share with a level, among those that have any."""
        return TruthDraws(float(self._at[group, level]), self._shares[:, group, level])

    def difference(self, group: int, level: int) -> TruthDraws:
        """Standardised, of the share, from the first group."""
        at = _standardised(self._at[group, level], self._at[0, level])
        drawn = _standardised(self._shares[:, group, level], self._shares[:, 0, level])
        return TruthDraws(float(at), np.asarray(drawn))


def _standardised(second: Floats, first: Floats) -> Floats:
    scale = np.sqrt((second * (1 - second) + first * (1 - first)) / 2)
    # Of shares that are 0 or 1 in both groups there is no difference to standardise.
    return np.asarray((second - first) / np.maximum(scale, 1e-3))
