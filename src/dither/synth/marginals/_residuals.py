"""Residuals of tables as whole numbers, and tables as sums of residuals.

A residual is kept as differences to the first entry along every axis, an array of n_i - 1 entries
along axis i: a linear image of the counts whose kernel is that of the projection H, so that it
holds what H·c holds and nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import prod

import numpy as np
import numpy.typing as npt

from dither.mechanisms import DiscreteGaussian
from dither.synth.marginals._planner import MarginalPlan, subsets
from dither.synth.model._junction import Clique

__all__ = ["centred", "differences", "maximal", "measured", "table"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Counts = Callable[[Sequence[Clique]], Mapping[Clique, Integers]]

_AT_ONCE = 1 << 22
"""Cells that are asked for in one scan of the data."""


def differences(cells: Integers) -> Integers:
    """Differences to the first entry, along every axis.

    Examples
    --------
    >>> differences(np.array([[5, 1], [2, 4]])).tolist()
    [[6]]
    """
    for axis in range(cells.ndim):
        first = [slice(None)] * cells.ndim
        first[axis] = slice(0, 1)
        rest = [slice(None)] * cells.ndim
        rest[axis] = slice(1, None)
        cells = cells[tuple(rest)] - cells[tuple(first)]
    return cells


def centred(residual: npt.NDArray[np.generic]) -> Floats:
    """H of the counts that these are differences of: sums along every axis are 0.

    Examples
    --------
    >>> centred(np.array([[6]])).tolist()
    [[1.5, -1.5], [-1.5, 1.5]]
    """
    found = np.zeros([n + 1 for n in residual.shape])
    found[(slice(1, None),) * residual.ndim] = residual
    for axis in range(found.ndim):
        found -= found.mean(axis=axis, keepdims=True)
    return found


def maximal(tables: Iterable[Clique]) -> list[Clique]:
    """Those that no other holds, in the order in which they first stand."""
    found: list[Clique] = []
    held: set[Clique] = set()
    for table in sorted(dict.fromkeys(tables), key=len, reverse=True):
        if table not in held:
            found.append(table)
            held.update(subsets(table))
    return found


def measured(counts: Counts, plan: MarginalPlan) -> dict[Clique, Integers]:
    """The noisy residual of each set of the plan, exact discrete Gaussian noise in each.

    Each residual has noise of its own, which is in no other. Exact tables are held some at a time,
    until their residuals are made.
    """
    found: dict[Clique, Integers] = {}
    if not plan.noise[()].sigma2:
        # Public is the number of rows, and not of those that are in some cell.
        found[()] = np.asarray(counts([()])[()])
    for some in _batches(plan):
        tables = counts(some)
        for clique in some:
            exact = tables[clique]
            for a in subsets(clique):
                if a in plan.noise and a not in found:
                    axes = tuple(p for p, i in enumerate(clique) if i not in a)
                    margin = np.asarray(exact.sum(axis=axes, dtype=np.int64))
                    found[a] = differences(_noisy(margin, plan.noise[a].sigma2))
    return found


def _noisy(cells: Integers, sigma2: Fraction) -> Integers:
    return cells + DiscreteGaussian(sigma2).draw(cells.shape) if sigma2 else cells


def _batches(plan: MarginalPlan) -> Iterable[list[Clique]]:
    held: list[Clique] = []
    cells = 0
    for clique in maximal(plan.tables):
        more = prod(plan.sizes[i] for i in clique)
        if held and cells + more > _AT_ONCE:
            yield held
            held, cells = [], 0
        held.append(clique)
        cells += more
    yield held


def table(
    residuals: Mapping[Clique, npt.NDArray[np.generic]], sizes: Sequence[int], clique: Clique
) -> Floats:
    """The table that residuals make up: the best unbiased estimate of its counts."""
    found = np.zeros([sizes[i] for i in clique])
    for a in subsets(tuple(i for i in clique if sizes[i] > 1)):
        part = centred(residuals[a])
        shape = [sizes[i] if i in a else 1 for i in clique]
        found += part.reshape(shape) / prod(sizes[i] for i in clique if i not in a)
    return found
