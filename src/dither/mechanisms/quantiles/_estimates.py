"""How a quantile is read from noisy counts on a tree: weights of noises, bins that pass, crossings.

The names are those of `quantile_tree`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither._stats import two_sided
from dither.mechanisms._base import AdditiveNoise
from dither.mechanisms._combination import Floats, continuous_deviation, laplace_normal_factor
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from dither.mechanisms.quantiles.quantile_tree import QuantileTree

__all__ = ["Weights", "crossing", "passing", "spread", "variances_of", "weights_at"]


Weights = tuple[Floats, Floats, Floats]
"""Of the weights that noises have in a combination: the sum of squares, of cubes, the largest."""


def spread(confidence: float, *parts: tuple[Weights, AdditiveNoise]) -> Floats:
    """The half-width of a combination of noises, from the weights that each law's noises have."""
    squares, cubes, step = (np.zeros(()) for _ in range(3))
    laplace = False
    for (square, cube, largest), noise in parts:
        deviation = continuous_deviation(noise)
        squares = squares + deviation**2 * square
        if isinstance(noise, DiscreteLaplace):
            laplace = True
            cubes = cubes + deviation**3 * cube
        step = np.maximum(step, largest)
    factor = np.asarray(two_sided(confidence))
    if laplace:
        share = np.divide(cubes ** (2 / 3), squares, out=np.ones_like(squares), where=squares > 0)
        factor = laplace_normal_factor(np.minimum(share, 1.0), confidence)
    return np.asarray(factor * np.sqrt(squares) + step / 2)


def passing(
    gap: Floats, width: Floats, q: float, row: int
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Which bins may hold the q-quantile, given F~ - q·n~ at the edges: any, first edge, last."""
    low, high = gap <= width + row * (1 - q), gap >= -width - row * q
    # The quantile lies in a bin if F may be at most q on its left and at least q on its right.
    passes = low[:, :-1] & high[:, 1:]
    some = np.asarray(passes.any(axis=1))
    last = passes.shape[1] - np.argmax(passes[:, ::-1], axis=1)
    return some, np.argmax(passes, axis=1), last


def crossing(gap: Floats, target: float) -> Floats:
    """Where F~ - q·n~ reaches the target, straight within a bin; midway where it rests there."""
    # The better of the two monotone envelopes on either side: their mean.
    rising = np.maximum.accumulate(gap, axis=1)
    falling = np.minimum.accumulate(gap[:, ::-1], axis=1)[:, ::-1]
    smooth = (rising + falling) / 2
    reached, over = smooth >= target, smooth > target
    reached[:, -1] = over[:, -1] = True
    right = np.maximum(1, np.argmax(reached, axis=1))
    rows = np.arange(gap.shape[0])
    before, after = smooth[rows, right - 1], smooth[rows, right]
    rise = after - before
    part = np.divide(target - before, rise, out=np.full(rise.shape, 0.5), where=rise > 0)
    found = right - 1 + np.clip(part, 0.0, 1.0)
    beyond = np.maximum(1, np.argmax(over, axis=1)) - 1
    return np.asarray(np.where(beyond > found, (found + beyond) / 2, found))


def variances_of(tree: QuantileTree) -> list[float]:
    """v_1 .. v_L."""
    variances = [1.0]
    for _ in range(tree.levels - 1):
        variances.append(tree.branching * variances[-1] / (tree.branching * variances[-1] + 1))
    return variances[::-1]


def weights_at(tree: QuantileTree, q: Floats) -> Weights:
    """Σw², Σ|w|³ and max|w| of the weights that the noises have in F~(e) - q·n~.

    ``q`` is of shape (quantiles, 1), or (quantiles, bins + 1) where it differs from edge to edge.
    On the path from the root to edge e, node p's estimate of its own part of F is Σ_j a_j·x_j over
    its children, a = (1, .., 1, φ, 0, .., 0) with φ the share of the path's child that lies below e
    (the rest of that child is a contrast of its own children). Since x_j = x_p/b + z_j - mean(z),
    child j gets the coefficient a_j - mean(a) besides what its parent passes down, and a node
    passes 1 - v of its coefficient to each child and keeps v for itself.
    """
    b, depth = tree.branching, tree.levels
    edges = np.arange(tree.bins + 1)
    size = b**depth
    variances = variances_of(tree)
    # Sums over a subtree whose root has coefficient 1.
    square, cube, top = [1.0], [1.0], [1.0]
    for v in variances[-2::-1]:
        square.append(v**2 + (1 - v) ** 2 * b * square[-1])
        cube.append(v**3 + (1 - v) ** 3 * b * cube[-1])
        top.append(max(v, (1 - v) * top[-1]))
    square, cube, top = square[::-1], cube[::-1], top[::-1]
    passed = edges[None, :] / size - q
    squares, cubes, largest = (np.zeros_like(passed) for _ in range(3))
    for i in range(depth):
        leaves = b ** (depth - i - 1)
        digit = np.minimum(edges // leaves, b ** (i + 1) - 1) % b
        phi = np.where(edges == size, 1.0, (edges % leaves) / leaves)
        mean = (digit + phi) / b
        # digit children wholly below, one on the path, the rest above.
        left, path, right = (passed + a - mean for a in (1.0, phi, 0.0))
        for coefficient, number in ((left, digit), (right, b - 1 - digit)):
            size_of = np.abs(coefficient) * (number > 0)
            squares += number * size_of**2 * square[i]
            cubes += number * size_of**3 * cube[i]
            largest = np.maximum(largest, size_of * top[i])
        own = np.abs(path) * (variances[i] if i < depth - 1 else 1.0)
        squares += own**2
        cubes += own**3
        largest = np.maximum(largest, own)
        passed = path * (1 - variances[i])
    return squares, cubes, largest
