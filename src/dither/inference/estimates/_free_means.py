"""Means of clamped values of whatever law: intervals and p-values from noisy sums.

The target is the mean m of the clamped values t, in half-ranges from the middle of their bounds,
over the people that rows were sampled from. Of each group are known N = n + ν, S = Σ t + η and
Q = Σ t² + ζ, of whose noises (ν, η, ζ) the joint law is known exactly.

Infer. For the true m

    S - m·N = Σ (t - m) + η - m·ν,    Σ (t - m) = √(n·q/χ²)·Z  about,

with q = Σ (t - mean)² and χ² of n - 1 degrees of freedom, as in Student's test: exact for normal
values. So the test of m that compares S - m·N with fresh draws of the right side does not divide by
the noisy N (Fieller's test). All of these tests, for all m, are inverted at once: S - m·N lies
above a draw of the right side just where m lies below

    m* = (S - η* - √(q*·n/χ²*)·Z*)/(N - ν*),

as long as N - ν* > 0, so that the quantiles of m* are the ends of the intervals, its tails are the
p-values, and those of m*_1 - m*_2 are those of a difference. N - ν* below 1 counts as 1: few rows
leave the interval wide. q is not known but through Q, N and S: each draw has a q* = Q' - S'²/N'
that fresh noise leaves possible: N' >= 2, |S'| <= N', 0 < q* <= N' - S'²/N'. Where that noise is
large beside q the test is conservative.

Skew values. Where most values are near a bound and few are far from it, chance that gives a high
mean gives a large q with it. With γ their skewness and a = γ/√n, Z is drawn as

    (Z + a·(Z² - 1)/6)·exp(-a·Z/2),

whose first factor gives Σ (t - m) its skewness, and whose second moves with it what it is divided
by, to first order as in the expansion of Student's statistic: its quantiles are those of Z less
a·(2·Z² + 1)/6. γ is not released, but bounds, a mean and a variance tell of it: it is taken to be
that of the beta law on [-1, 1] that has both, which is 0 where the mean is in the middle. Of what
the noise leaves possible the one that is nearly the nearest to 0 is taken, so that what is not
shown to be skew is drawn as Z. Rows need not be of a beta law: an interval leans too little where
they are more skew, as without this, and too much where they are less.

Source. Fieller, "Some problems in interval estimation", JRSS B 1954; for sets of draws that stand
for a family of tests, Xie and Singh, "Confidence distribution", ISR 2013; for Student's statistic
of skew values, Johnson, "Modified t tests and confidence intervals for asymmetrical populations",
JASA 1978, and Hall, "On the removal of skewness by transformation", JRSS B 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._simulation import SimulatedDraws

__all__ = ["FreeMeans"]

_LEAST = 1e-4
"""Squared half-ranges: no variance is taken to be smaller."""

_SPARE = 4
"""Draws of noise for each that has to leave a variance possible."""

_DRAWN = 2000
"""Draws that tell the deviation of the noise in a mean, to 2 % or so."""

_NEVER = 1e-9
"""A share of χ² that stands for 0: of one row nothing but the bounds is left."""

_SHOWN = 0.05
"""The share of skewnesses that the noise leaves possible and that may be nearer to 0."""

_SKEW = 3.0
"""The most that is reckoned with: beyond, the expansion to the first order tells nothing."""


@dataclass(frozen=True, eq=False)
class FreeMeans:
    """Layers 2 and 3 of means of k groups, from their noisy sums; of one release or of a batch.

    Parameters
    ----------
    sums : array of float, shape (..., k, 3)
        N, S and Q, as released.
    noise : callable
        Of a generator and a size, draws of (ν, η, ζ), shape (size, k, 3).
    pooled : bool
        Whether all groups have one variance.
    """

    sums: Floats
    noise: Callable[[np.random.Generator, int], Floats]
    pooled: bool = False

    @property
    def n(self) -> Floats:
        """Rows of each group, at least 1, shape (..., k)."""
        return np.maximum(self.sums[..., 0], 1.0)

    @property
    def means(self) -> Floats:
        """The means of clamped values, wherever noise puts them, shape (..., k)."""
        return np.asarray(self.sums[..., 1] / self.n)

    @property
    def clipped(self) -> Floats:
        """The means within the bounds: the estimates."""
        return np.clip(self.means, -1.0, 1.0)

    @cached_property
    def noise_of_means(self) -> Floats:
        """Deviations of the noise in each mean, shape (k,), of one release."""
        drawn = self.noise(SimulatedDraws.of(None), _DRAWN)
        moved = drawn[..., 1] - self.clipped * drawn[..., 0]
        return np.asarray(np.sqrt(np.mean(moved**2, axis=0)) / self.n)

    def draws(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws of m*, shape (..., size, k)."""
        return self._drawn(rng, size)[0]

    def _drawn(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats, Floats]:
        """Draws of m*, of q*, and of √(n/χ²)·Z, each of shape (..., size, k)."""
        fresh = self.noise(rng, size)
        left = self.sums[..., None, :, :] - fresh
        square = self._possible(rng, size)
        n = np.rint(self.n)[..., None, :]
        groups = n.shape[-1]
        free = n.sum(axis=-1, keepdims=True) - groups if self.pooled else n - 1.0
        free = np.maximum(free, 0.0)
        chi = rng.chisquare(np.maximum(free, 0.5), square.shape[:-1] + free.shape[-1:])
        share = np.where(free > 0, chi / np.maximum(free, 1.0), 0.0)
        unit = self._skewed(rng.standard_normal(square.shape), left, square)
        unit /= np.sqrt(np.maximum(share, _NEVER))
        # With the share, χ² over its degrees, that is √(n/χ²)·Z.
        unit *= np.sqrt(n / np.maximum(n - 1.0, 1.0))
        found = (left[..., 1] - np.sqrt(square) * unit) / np.maximum(left[..., 0], 1.0)
        return np.asarray(found), square, unit

    def _skewed(self, z: Floats, left: Floats, square: Floats) -> Floats:
        """Normal draws as those of the mean of skew values over their spread."""
        means = left[..., 1] / np.maximum(left[..., 0], 1.0)
        low, high = np.quantile(
            skewness_of(means, square / self.n[..., None, :]), [_SHOWN, 1.0 - _SHOWN], axis=-2
        )
        shown = np.clip(np.maximum(low, 0.0) + np.minimum(high, 0.0), -_SKEW, _SKEW)
        a = (shown / np.sqrt(self.n))[..., None, :]
        moved = a * z
        if self.pooled:
            # The spread is that of all groups: each moves it by its part.
            parts = square / square.sum(axis=-1, keepdims=True)
            moved = (parts * moved).sum(axis=-1, keepdims=True)
        return np.asarray((z + a * (z**2 - 1.0) / 6.0) * np.exp(-moved / 2.0))

    def _seen(self, possible: Floats) -> Floats:
        """Σ (t - mean)² of one release, where it may be that; else the median of what may be."""
        n = self.n
        seen = self.sums[..., 2] - self.clipped**2 * n
        if self.pooled:
            shares = n / n.sum(axis=-1, keepdims=True)
            seen = shares * seen.sum(axis=-1, keepdims=True)
        middle = np.median(possible, axis=0)
        return np.where((seen > _LEAST * n) & (seen <= n), seen, middle)

    def _possible(self, rng: np.random.Generator, size: int) -> Floats:
        """Σ (t - mean)² that the noise leaves possible, shape (..., size, k)."""
        left = self.sums[..., None, :, :] - self.noise(rng, _SPARE * size)
        rows = np.maximum(left[..., 0], 1.0)
        middle = left[..., 1] / rows
        square = left[..., 2] - middle * left[..., 1]
        valid = (left[..., 0] >= 2.0) | (np.rint(self.sums[..., 0]) < 2.0)[..., None, :]
        valid &= np.abs(middle) <= 1.0
        if self.pooled:
            total = rows.sum(axis=-1, keepdims=True)
            square = square.sum(axis=-1, keepdims=True)
            most = (rows * (1.0 - np.minimum(middle**2, 1.0))).sum(axis=-1, keepdims=True)
            valid = valid.all(axis=-1, keepdims=True) & (square > _LEAST * total) & (square <= most)
            square = square / total * rows
            valid = np.broadcast_to(valid, square.shape)
        else:
            most = rows * (1.0 - np.minimum(middle**2, 1.0))
            valid &= (square > _LEAST * rows) & (square <= most)
        found = _kept(np.moveaxis(square, -2, -1), np.moveaxis(valid, -2, -1), size)
        least = _LEAST * self.n[..., None, :]
        return np.where(np.isnan(found), least, found)

    def errors(
        self, rng: np.random.Generator, size: int, bounds: Bounds, *, within: bool = True
    ) -> SimulatedErrors:
        """Errors of the means of one release, in the values' own units.

        Parameters
        ----------
        within : bool
            Whether estimates and truths are taken to lie within the bounds, as they do. A test that
            several are one takes them as they come: what is cut off is lost to both sides of it.
        """
        drawn, square, unit = self._drawn(rng, size)
        alone = np.sqrt(self._seen(square)) * unit / self.n
        half, middle = float(bounds.half), float(bounds.middle)
        if not within:
            at = self.means
            return SimulatedErrors(at * half + middle, (at - drawn) * half, alone * half)
        at = self.clipped
        limits = np.tile(np.array([[middle - half, middle + half]]), (at.size, 1))
        return SimulatedErrors(
            at * half + middle,
            (at - np.clip(drawn, -1.0, 1.0)) * half,
            np.clip(alone, -2.0, 2.0) * half,
            limits,
        )


def skewness_of(means: Floats, variances: Floats) -> Floats:
    """The skewness of the beta laws on [-1, 1] that have these means and variances.

    Parameters
    ----------
    means, variances : array of float
        Brought to where a law on [-1, 1] can have them.

    Examples
    --------
    >>> skewness_of(np.array([0.0, -0.5, 0.5]), np.array([0.3, 0.25, 0.25])).round(3)
    array([ 0.,  1., -1.])
    """
    share = (1.0 + np.clip(means, -0.999, 0.999)) / 2.0
    most = share * (1.0 - share)
    # The sum of both parameters: 0 of a law on the two ends alone.
    size = np.maximum(most / np.maximum(variances / 4.0, 1e-12) - 1.0, 0.0)
    return np.asarray(2 * (1 - 2 * share) * np.sqrt(size + 1.0) / ((size + 2) * np.sqrt(most)))


def _kept(values: Floats, valid: npt.NDArray[np.bool_], size: int) -> Floats:
    """So many of the valid values along the last axis, over again where they are fewer.

    Returns
    -------
    array of float, shape (..., size, k)
        From arrays of shape (..., k, number); NaN where none is valid.

    Examples
    --------
    >>> values = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> _kept(values, np.array([[True, False, True], [False] * 3]), 4).T
    array([[ 1.,  3.,  1.,  3.],
           [nan, nan, nan, nan]])
    """
    count = valid.sum(axis=-1)
    start = (np.cumsum(count) - count.ravel()).reshape(count.shape)
    place = start[..., None] + np.arange(size) % np.maximum(count, 1)[..., None]
    held = np.append(values[valid], np.nan)
    found = np.where(count[..., None] > 0, held[np.minimum(place, held.size - 1)], np.nan)
    return np.asarray(np.moveaxis(found, -1, -2))
