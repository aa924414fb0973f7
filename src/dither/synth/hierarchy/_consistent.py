"""Consistent estimates on a spine: least squares up and down, in linear time, with exact variances.

Every place u of every level was measured by itself: y_u = x_u + noise, of a known variance v_u,
noises uncorrelated, and x_u is the sum of the x of the places inside it. The best linear unbiased
estimates follow in two passes (Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of
differentially private histograms through consistency", VLDB 2010, here with a variance for each
place, any numbers of children, and any number of roots).

Up. z_u is the best estimate from what was measured inside of u, and s_u its variance. A leaf has
z = y, s = v. With Z = Σ z_c and S = Σ s_c over the children, which are independent of y_u, ::

    w_u = S/(v_u + S),    z_u = w_u·y_u + (1 - w_u)·Z,    s_u = v_u·S/(v_u + S).

Down. A root has x = z. With a_c = s_c/S (0 where S is 0), ::

    x_c = z_c + a_c·(x_u - Z).

z_c - a_c·Z is uncorrelated with Z, as Cov(z_c, Z) = s_c, and with all that was measured elsewhere;
x_u depends on the children's measurements through Z alone. So this is the projection.

What is carried. Let k_i be the coefficients of the measurements in an estimate, and q_i a number of
each, such as its variance: Σ |k_i|^p·q_i follows in the same two passes, since subtrees hold
different measurements. Write x_u = g_u·z_u + (what was measured outside of u), g = 1 at a root.
Then x_c has on its own z_c the coefficient ::

    g_c = 1 - a_c + a_c·h_u,    h_u = g_u·(1 - w_u),

on the z of each of its siblings a_c·(h_u - 1), on y_u a_c·g_u·w_u, and a_c times what x_u has
outside of u. With p = 2 and the variances this is the exact variance of every estimate; p = 3 says
how near to Laplace an estimate from Laplace noise is.

An exact measurement is one of variance 0, and one that was not made has variance inf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither._stats import two_sided
from dither.mechanisms._combination import laplace_normal_factor
from dither.synth.hierarchy._spine import Spine

__all__ = ["Consistency", "half_widths"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Consistency:
    """Least squares on a spine, for measurements of given variances.

    Parameters
    ----------
    spine : Spine
    variances : tuple of array, shape (places,)
        By level.
    """

    spine: Spine
    variances: tuple[Floats, ...]

    @cached_property
    def _weights(self) -> tuple[list[Floats], list[Floats]]:
        """By level w, 1 in the last one; by level but the first a."""
        spine, s = self.spine, self.variances[-1]
        weights, shares = [np.ones(len(s))], []
        for level in range(spine.depth - 2, -1, -1):
            v, summed = self.variances[level], spine.summed(level, s)
            over = summed[spine.parents[level]]
            shares.append(np.divide(s, over, out=np.zeros_like(s), where=over > 0))
            # Of two exact measurements, which agree, the own one is taken.
            made = np.isfinite(v)
            # Infinity times the 0 that is its weight would be NaN; what stands here is masked
            # below.
            v = np.where(made, v, 1.0)
            w = np.divide(summed, v + summed, out=np.ones_like(v), where=v + summed > 0)
            w = np.where(made, w, 0.0)
            s = np.where(made, v * w, summed)
            weights.append(w)
        return weights[::-1], shares[::-1]

    def estimates(self, measured: Sequence[npt.ArrayLike]) -> list[Floats]:
        """The best unbiased estimates that add up.

        Parameters
        ----------
        measured : sequence of array, shape (places,) or (places, cells)
            By level; what stands where the variance is inf is not read.

        Returns
        -------
        list of array
            Of the same shapes.
        """
        spine, (weights, shares) = self.spine, self._weights
        read = [np.asarray(y, dtype=np.float64) for y in measured]
        up = [read[-1].reshape(len(read[-1]), -1)]
        for level in range(spine.depth - 2, -1, -1):
            w = weights[level][:, None]
            own = np.where(w > 0, read[level].reshape(len(w), -1), 0.0)
            up.append(w * own + (1 - w) * spine.summed(level, up[-1]))
        up = up[::-1]
        down = [up[0]]
        for level in range(spine.depth - 1):
            missing = down[level] - spine.summed(level, up[level + 1])
            shared = shares[level][:, None] * missing[spine.parents[level]]
            down.append(up[level + 1] + shared)
        return [x.reshape(y.shape) for x, y in zip(down, read, strict=True)]

    def carried(self, own: Sequence[Floats], power: int) -> list[Floats]:
        """Σ |k|^power·own over the measurements that each place's estimate is made of.

        ``own`` is by level, shape (places,).
        """
        spine, (weights, shares) = self.spine, self._weights
        read = [np.where(w > 0, q, 0.0) for w, q in zip(weights, own, strict=True)]
        up = [read[-1]]
        for level in range(spine.depth - 2, -1, -1):
            w = weights[level]
            below = (1 - w) ** power * spine.summed(level, up[-1])
            up.append(w**power * read[level] + below)
        up = up[::-1]
        passed, outside = np.ones(len(up[0])), np.zeros(len(up[0]))
        found = [up[0]]
        for level in range(spine.depth - 1):
            parent, a, own_up = spine.parents[level], shares[level], up[level + 1]
            through = (passed * (1 - weights[level]))[parent]
            measured = (passed * weights[level]) ** power * read[level]
            siblings = np.maximum(spine.summed(level, own_up)[parent] - own_up, 0.0)
            near = np.abs(1 - through) ** power * siblings
            outside = a**power * (near + (measured + outside)[parent])
            passed = 1 - a + a * through
            found.append(passed**power * own_up + outside)
        return found

    @cached_property
    def errors(self) -> list[Floats]:
        """The exact variance of every place's estimate, by level."""
        return self.carried(self.variances, 2)


def half_widths(squares: npt.ArrayLike, cubes: npt.ArrayLike | None, confidence: float) -> Floats:
    """How far sums of independent noises stray at a confidence; never less than half a step more.

    Parameters
    ----------
    squares : array
        Σ (k·d)², with d the deviations of the continuous laws that stand for the noises.
    cubes : array or None
        Σ |k·d|³, or more, of Laplace noises; None where all are Gaussian.
    confidence : float
    """
    square = np.asarray(squares, dtype=np.float64)
    factor = np.asarray(two_sided(confidence))
    if cubes is not None:
        over = np.asarray(cubes, dtype=np.float64) ** (2 / 3)
        share = np.divide(over, square, out=np.ones_like(square), where=square > 0)
        factor = laplace_normal_factor(np.minimum(share, 1.0), confidence)
    # Coefficients are at most 1, so half a unit is what discreteness may add.
    return np.asarray(np.where(square > 0, factor * np.sqrt(square) + 0.5, 0.0))
